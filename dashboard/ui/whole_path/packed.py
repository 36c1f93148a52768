"""The numbers of a path as the browser takes them: facts as JSON, and float32 arrays behind them.

The layers of all tokens and what they took are sent with the view (about a megabyte for 48 tokens of the included model). The
steps of a block are sent when it is opened, 0.7 MB for 48 tokens: assets/web/path.js asks for what it lacks, by name.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from components.analysis.path.block_steps import BlockSteps, block_steps
from components.analysis.path.overview import PathOverview, overview
from components.analysis.path.sentence_vector import SentenceSteps, sentence_steps
from dashboard.declared.stops import STOPS

if TYPE_CHECKING:
    from components.analysis.similarity.baseline import Baselines
    from components.model.backend import Backend
    from components.model.inside import InsideBlocks
    from components.model.trace import Pooling, TokenizedSentence, Trace

POOLED = {
    "mean": "Mean",
    "cls": "First",
    "max": "Max",
    "last": "Last",
    "own": "Pooling",
}  # the names of the stop by pooling
Mode = Literal["all", "left"]  # which tokens a token may attend to
MODES: tuple[Mode, ...] = ("all", "left")


class Path:
    """The path of one sentence, and the vector of a second one, in one model."""

    def __init__(self, backend: Backend, texts: Sequence[str], length: int | None) -> None:
        """`texts` are one or two. Raises InputError for what the model cannot read."""
        self.backend, self.texts, self.length = backend, tuple(texts), length
        self.trace: Trace = backend.trace(list(texts), max_length=length)
        self.sentence: TokenizedSentence = self.trace.sentences[0]
        self.has_blocks = not backend.structure.why_not("blocks")

    @property
    def id(self) -> str:
        """What tells paths apart: the browser keeps their arrays by it."""
        named = [self.backend.spec.key, self.backend.revision, str(self.length), *self.texts]
        return hashlib.sha256(json.dumps(named).encode()).hexdigest()[:16]

    def record(self, mode: Mode, row: int = 0) -> InsideBlocks | None:
        """The pass over a sentence by itself; None without blocks. Raises ModelError where no such mask is taken."""
        if not self.has_blocks:
            return None
        return self.backend.inside(
            self.texts[row],
            max_length=self.length,
            attentions=True,
            score_terms=self.backend.structure.adds_to_scores,
            only_left=mode == "left",
        )

    def overview(self, mode: Mode) -> PathOverview:
        """All layers, and how much each token takes from each."""
        return overview(self.trace, 0, self.record(mode))

    def vector(self, mode: Mode, row: int) -> SentenceSteps:
        """The steps to a sentence's vector."""
        record = self.record(mode, row)
        last = None if record is None else record.hidden_states[-1]
        return sentence_steps(self.trace, row, self.backend.own_pooling, last)

    def block(self, mode: Mode, block: int) -> BlockSteps:
        """The steps of a block."""
        record = self.record(mode)
        if record is None:
            raise ValueError("this model has no blocks")
        neurons = self.backend.feed_forward(
            self.texts[0], max_length=self.length, block=block, only_left=mode == "left"
        )
        return block_steps(record, neurons, self.backend.structure, self.backend.applied_norms(block), block)


def arrays_of(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """The arrays that belong to these names: "all" or "left" for what the view begins with, "all.3" for the steps of block 3.

    Raises ValueError for another name.
    """
    found: dict[str, np.ndarray] = {}
    for name in names:
        mode, _, block = name.partition(".")
        if mode not in MODES or (block and not (block.isdecimal() and int(block) < path.backend.facts.layers)):
            raise ValueError(f"{name!r} names no arrays of this path")
        found |= _of_block(path, mode, int(block)) if block else _of_mode(path, mode)
    return found


def _of_mode(path: Path, mode: Mode) -> dict[str, np.ndarray]:
    whole = path.overview(mode)
    found: dict[str, np.ndarray] = {
        f"{mode}.layers": whole.layers,
        **{f"part.{name}": part for name, part in whole.parts.items()},
    }
    if whole.took is not None:
        found[f"{mode}.took"] = whole.took
    norm = path.backend.layer_zero_norm()
    if norm is not None:
        found["norm.layer 0.scale"], found["norm.layer 0.shift"] = norm.scale, norm.shift
    for row, which in enumerate(("first", "second")[: len(path.texts)]):
        steps = path.vector(mode, row)
        found |= {f"{mode}.{which}.pooled": steps.pooled, f"{mode}.{which}.vector": steps.vector}
        found |= {f"{mode}.{which}.step.{number}": vector for number, (_, vector) in enumerate(steps.steps)}
    if len(path.texts) > 1:
        record, length = path.record(mode, 1), len(path.trace.sentences[1])
        found[f"{mode}.second.layer"] = (
            path.trace.hidden_states[-1, 1, :length] if record is None else record.hidden_states[-1]
        )
    return found


def _of_block(path: Path, mode: Mode, block: int) -> dict[str, np.ndarray]:
    steps = path.block(mode, block)
    named: dict[str, np.ndarray | None] = {
        "queries": steps.queries,
        "keys": steps.keys,
        "values": steps.values,
        "attention_output": steps.attention_output,
        "after_attention": steps.after_attention,
        "feed_forward_reads": steps.feed_forward_reads,
        "neurons": steps.neurons,
        "feed_forward_output": steps.feed_forward_output,
        **{f"term.{name}": term for name, term in steps.terms.items()},
    }
    found = {f"{mode}.{block}.{name}": array for name, array in named.items() if array is not None}
    for norm in steps.norms:
        name = _norm_name(block, norm.place)
        found |= {f"norm.{name}.scale": norm.scale, f"norm.{name}.shift": norm.shift}
    return found


def _norm_name(block: int, place: str) -> str:
    return "final" if place == "final" else f"{block}.{place}"


def facts_of(path: Path) -> dict[str, Any]:
    """What the browser has to know about the model and the sentences, without the numbers of vectors."""
    backend, structure, facts = path.backend, path.backend.structure, path.backend.facts
    own = path.vector("all", 0)
    first = {
        name: part[0] for name, part in (path.trace.embedding_parts.named if path.trace.embedding_parts else {}).items()
    }
    norms = {
        _norm_name(block, norm.place): {"epsilon": norm.epsilon, "isCentred": norm.is_centred}
        for block in range(facts.layers if path.has_blocks else 0)
        for norm in backend.applied_norms(block)
    }
    zero = backend.layer_zero_norm()
    if zero is not None:
        norms["layer 0"] = {"epsilon": zero.epsilon, "isCentred": zero.is_centred}
    record = path.record("all")
    reason = backend.why_not_only_left() if path.has_blocks else ""
    return {
        "id": path.id,
        "names": {key: name for key, (name, _) in STOPS.items()} | {"pool": POOLED[own.pooling]},
        "hints": {key: hint for key, (_, hint) in STOPS.items()},
        "model": backend.spec.title,
        "text": path.texts[0],
        "second": None if len(path.texts) < 2 else _second(path),
        "tokens": tokens_of(
            path.sentence, structure.has_position_vectors, backend.first_position, backend.tokenization.unknown_id
        ),
        "blocks": facts.layers if path.has_blocks else 0,
        "heads": facts.heads if path.has_blocks else 0,
        "headSize": 0 if record is None else int(record.queries.shape[-1]),
        "dim": int(path.trace.hidden_states.shape[-1]),
        "inner": facts.feed_forward_size,
        "isGated": structure.has_gated_feed_forward,
        "vocabulary": facts.vocabulary_size,
        "maxPositions": facts.max_positions,
        "parts": [{"name": name, "size": int(part.shape[-1])} for name, part in first.items()],
        "zeroSteps": list(structure.layer_zero_steps),
        "positions": list(structure.positions),
        "normsFirst": structure.normalises_first,
        "hasFinalNorm": structure.has_final_norm,
        "windows": list(structure.windows),
        "terms": [] if record is None else [name for name in record.score_parts(0) if name != "content to content"],
        "scale": 0.0 if record is None else record.score_scale,
        "norms": norms,
        "pooling": own.pooling,
        "weights": None if own.weights is None else own.weights.tolist(),
        "steps": [name for name, _ in own.steps],
        "canLookLeft": path.has_blocks and not reason,
        "whyNotLeft": reason,
    }


def _second(path: Path) -> dict[str, Any]:
    sentence = path.trace.sentences[1]
    weights = path.vector("all", 1).weights
    return {
        "text": path.texts[1],
        "pieces": [token.piece for token in sentence.tokens],
        "weighted": len(sentence) if weights is None else int(np.count_nonzero(weights)),
    }


def tokens_of(sentence: TokenizedSentence, has_rows: bool, first_row: int, unknown: int | None) -> list[dict[str, Any]]:
    """The tokens of a sentence as the browser takes them; `row` is that of the table of positions."""
    found: list[dict[str, Any]] = []
    for token in sentence.tokens:
        before = sentence.tokens[token.position - 1] if token.position else None
        found.append(
            {
                "piece": token.piece,
                "id": token.id,
                "text": sentence.surface(token.position),
                "special": token.special,
                "unknown": token.id == unknown,
                "segment": token.segment,
                "goesOn": token.word is not None and before is not None and before.word == token.word,
                "row": first_row + token.position if has_rows else token.position,
            }
        )
    return found


def unrelated(baselines: Baselines, pooling: Pooling) -> list[float] | None:
    """The 5th, 50th and 95th percentile of the cosines of unrelated sentences at the last layer; None if not measured."""
    found = baselines.sentences.get((pooling, True))
    if found is None or not found.is_measured:
        return None
    return [float(value) for value in found.calibration(len(found.raw.mean) - 1).quantiles()]


def packed(facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Four bytes with the length of a JSON text, that text, and the arrays as float32, which the text says where to find."""
    places, parts, at = {}, [], 0
    for name, array in arrays.items():
        values = np.ascontiguousarray(array, dtype="<f4")
        places[name] = {"at": at, "shape": list(values.shape)}
        parts.append(values.tobytes())
        at += values.size
    text = json.dumps({**facts, "arrays": places}).encode()
    return struct.pack("<I", len(text)) + text + b"".join(parts)
