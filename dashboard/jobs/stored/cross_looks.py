"""What the included cross-encoder changes over the included collections, where it re-ranks the included model's first hits.

assets/cross_looks.npz holds the ranks, and for which two models, texts, layer and pooling they hold: with any other, nothing
is taken from it. `python -m dashboard.views.home.stored` writes it; a test measures some of the ranks again.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from components.retrieval.reranking.quality import Reordered, by_cross_encoder, rankings_of
from dashboard.jobs.stored import second_looks
from dashboard.ready_made import ASSETS

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.evaluation.pair_runs import Pairs

PATH = ASSETS / "cross_looks.npz"
NAMES = ("headlines", *(name for name, *_ in second_looks.COLLECTIONS))  # of the queries, in the order of `included`
DEPTH = 10  # candidates, of which the sentences tell


@cache
def _stored() -> tuple[dict[str, Any], Mapping[str, Reordered]]:
    """The facts of the file, and by the name of the queries what was measured."""
    with np.load(PATH, allow_pickle=False) as file:
        facts = json.loads(str(file["facts"]))
        looks = {
            name: Reordered(
                rankings_of({0: file[f"{name} first"], **{depth: file[f"{name} {depth}"] for depth in facts["depths"]}})
            )
            for name in NAMES
        }
    return facts, looks


def looks() -> Mapping[str, Reordered]:
    """What was measured of the two included models, by the name of the queries: "headlines", "questions", "paraphrases"."""
    return _stored()[1]


def finding(look: Reordered | None = None) -> str:
    """What the included cross-encoder changes for the demo's headlines: one sentence. `look`: other ranks, for a test."""
    look = looks()[NAMES[0]] if look is None else look
    count, repaired, harmed = len(look.ranks()), look.repaired(DEPTH), look.harmed(DEPTH)
    reason = ": it was trained to grade similarity, not to answer queries" if harmed > repaired else ""
    return (
        f"**Re-ranking the first {DEPTH} with the included cross-encoder** repairs {repaired} of {count:,} headlines and harms "
        f"{harmed}{reason}."
    )


def measured(backend: Backend, scorer: Backend, collections: Sequence[Pairs]) -> bytes:
    """The file's content, measured with the two models; `collections` in the order of NAMES."""
    layer, pooling = backend.facts.layers, backend.own_pooling
    arrays: dict[str, Any] = {}
    depths: tuple[int, ...] = ()
    for name, pairs in zip(NAMES, collections, strict=True):
        look = by_cross_encoder(
            backend, scorer, pairs.queries.texts, pairs.documents.texts, second_looks.gold_of(pairs), layer, pooling
        )
        for depth in (0, *look.depths):
            arrays[f"{name} {depth or 'first'}"] = look.ranks(depth).astype(np.int32)
        depths = look.depths
    facts = {
        "revision": backend.revision,
        "cross_encoder": scorer.revision,
        "layer": layer,
        "pooling": pooling,
        "depths": depths,
        "content": [pairs.content_hash for pairs in collections],
    }
    file = io.BytesIO()
    np.savez_compressed(file, facts=np.array(json.dumps(facts)), **arrays)
    return file.getvalue()
