"""The ready-made pairs in the included model: their cosines, what a probe reads from them, and what experiments on them show.

assets/ready_made_pairs.npz holds the numbers, and for which model, texts and options they hold: with any other, nothing is
taken from it and the caller computes. `python -m dashboard.views.home.stored` writes it; a test measures the numbers again.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from components.analysis.why import patching
from components.analysis.why.contrasts import PairCosines, pair_cosines
from components.analysis.why.patching import PairEffect
from components.analysis.why.probes import ProbeResult, probe_pairs
from components.arrays import read_only
from components.retrieval.corpora.minimal_pairs import MinimalPairs, read_minimal_pairs
from dashboard.ready_made import ASSETS

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.embedding.options import EmbedOptions

PATH = ASSETS / "ready_made_pairs.npz"
FILE = ASSETS / "minimal_pairs.jsonl"
EXPERIMENTS = ASSETS / "patching_pairs.json"
# The kinds whose second sentences have something in common that a probe can read.
PROBED = ("negation", "numbers", "time", "quantity")


@cache
def demo_pairs() -> MinimalPairs:
    """The pairs that come with the dashboard."""
    return read_minimal_pairs(FILE, FILE.name, limits=None)


@cache
def texts_of_experiments() -> tuple[tuple[str, str, str], ...]:
    """A, B and C of each ready-made experiment."""
    rows = json.loads(EXPERIMENTS.read_text(encoding="utf-8"))
    return tuple((row["a"], row["b"], row["c"]) for row in rows)


@dataclass(frozen=True, eq=False)
class StoredPairs:
    """What the file holds."""

    revision: str  # of the model: a checksum of its weights
    pairs: str  # the content hash of the pairs
    experiments: str  # of the texts of the experiments
    tokens: int  # of the longest text: with a smaller maximum length the numbers are others
    options: dict[str, Any]  # layers and poolings of the cosines, and the pooling of the probes
    cosines: PairCosines
    probes: dict[str, ProbeResult]  # by kind, with the model's own pooling
    effects: tuple[PairEffect, ...]  # of each experiment


@cache
def stored() -> StoredPairs:
    """Read the file."""
    with np.load(PATH, allow_pickle=False) as file:
        facts = json.loads(str(file["facts"]))
        cosines = PairCosines(*(read_only(file[name]) for name in ("of_pairs", "unrelated", "partners")))
        probes = {
            kind: ProbeResult(read_only(file[f"right {kind}"]), read_only(file[f"control {kind}"]), repeated)
            for kind, repeated in facts["repeated"].items()
        }
    return StoredPairs(
        revision=facts["revision"],
        pairs=facts["pairs"],
        experiments=facts["experiments"],
        tokens=facts["tokens"],
        options=facts["options"],
        cosines=cosines,
        probes=probes,
        # JSON has no NaN: a share that is not measured.
        effects=tuple(
            PairEffect(same, of_a, of_b, float("nan") if carried is None else carried)
            for same, of_a, of_b, carried in facts["effects"]
        ),
    )


def cosines(backend: Backend, pairs: MinimalPairs, options: EmbedOptions) -> PairCosines | None:
    """The cosines of these pairs as embedded with these options, or None where they have to be computed."""
    kept = stored()
    if not _is_of(backend, pairs, options) or options.poolings != tuple(kept.options["poolings"]):
        return None
    return kept.cosines if options.layers == tuple(kept.options["layers"]) else None


def probe(backend: Backend, pairs: MinimalPairs, kind: str, options: EmbedOptions) -> ProbeResult | None:
    """What a probe reads from the vectors of a kind's sentences, or None where it has to be trained."""
    kept = stored()
    if not _is_of(backend, pairs, options) or options.poolings != (kept.options["probed"],):
        return None
    return kept.probes.get(kind) if options.layers == tuple(kept.options["layers"]) else None


def effects(backend: Backend, texts: Sequence[tuple[str, str, str]]) -> tuple[PairEffect, ...] | None:
    """What experiments on these texts can show with the model's own pooling, or None where it has to be measured."""
    kept = stored()
    return kept.effects if backend.revision == kept.revision and hash_of(texts) == kept.experiments else None


def hash_of(texts: Sequence[tuple[str, str, str]]) -> str:
    """SHA-256 of the texts of experiments."""
    return hashlib.sha256(json.dumps([list(row) for row in texts]).encode()).hexdigest()


def _is_of(backend: Backend, pairs: MinimalPairs, options: EmbedOptions) -> bool:
    kept = stored()
    return (
        backend.revision == kept.revision
        and pairs.content_hash == kept.pairs
        and options.max_length >= kept.tokens
        and options.precision == "float32"
        and not options.prompt
    )


def measured(backend: Backend) -> bytes:
    """The file's content, measured with a model."""
    pairs, texts = demo_pairs(), texts_of_experiments()
    own = backend.own_pooling
    options = backend.embed_options(backend.text_layers, backend.poolings, precision="float32")
    found = pair_cosines(
        lambda some, progress, is_stopped: backend.embed(some, options=options), pairs.first, pairs.second
    )
    probes = {kind: _probe(backend, pairs, kind) for kind in PROBED}
    shown = [patching.pair_effect(backend, row, own) for row in texts]
    facts = {
        "revision": backend.revision,
        "pairs": pairs.content_hash,
        "experiments": hash_of(texts),
        "tokens": max(backend.tokenization.lengths([*pairs.first, *pairs.second])),
        "options": {"layers": options.layers, "poolings": options.poolings, "probed": own},
        "repeated": {kind: result.repeated for kind, result in probes.items()},
        "effects": [
            [each.has_same_count, each.of_a, each.of_b, None if np.isnan(each.carried) else each.carried]
            for each in shown
        ],
    }
    arrays: dict[str, Any] = {"of_pairs": found.of_pairs, "unrelated": found.unrelated, "partners": found.partners}
    for kind, result in probes.items():
        arrays |= {f"right {kind}": result.right, f"control {kind}": result.control}
    file = io.BytesIO()
    np.savez_compressed(file, facts=np.array(json.dumps(facts)), **arrays)
    return file.getvalue()


def _probe(backend: Backend, pairs: MinimalPairs, kind: str) -> ProbeResult:
    rows = pairs.rows_of(kind).tolist()
    first, second = ([texts[row] for row in rows] for texts in (pairs.first, pairs.second))
    options = backend.embed_options(backend.text_layers, [backend.own_pooling], precision="float32")
    vectors = backend.embed([*first, *second], options=options)[:, 0]
    return probe_pairs(vectors, first, second)
