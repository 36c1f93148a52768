"""The drawing of the model to one scale, what a sentence reads of it, and what each of its parts is."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.pooling import pool
from components.charts.inside_blocks import architecture as drawing
from components.charts.stand_alone.page import PagePart
from components.errors import InputError
from components.numbers import counted, millions, percent
from components.shown_code.parameters import parameters_of
from dashboard import navigation, state
from dashboard.declared import table
from dashboard.sharing import lecture, report
from dashboard.ui import browser, controls, figures, messages

if TYPE_CHECKING:
    from components.model.architecture.shapes import Shapes
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence

_KEY = "architecture"
_HTML = (
    '<section class="arch" aria-label="The model as rectangles to one scale"><svg role="group" aria-label="Parts of the '
    'model"></svg><div class="card" aria-live="polite"></div></section>'
)
MORE = {  # the view that treats a part by itself
    "pieces": "pieces",
    "positions": "layer-zero",
    "projection": "layer-zero",
    "distances": "attention-scores",
    "attention": "all-heads",
    "forward": "feed-forward",
    "pooling": "sentence-curves",
}
NAMES = {  # of the kinds of parameters, as a sentence says them
    "pieces": "the table of pieces",
    "positions": "the table of positions",
    "segments": "the table of segments",
    "tasks": "the table of tasks",
    "distances": "numbers for distances",
    "norms": "norms",
    "pooler": "the pooler",
    "projection": "the projection",
}
LETTERS = {"Q": "query", "K": "key", "V": "value", "O": "output"}
_POOLED = {"mean": "mean", "cls": "first", "max": "max"}
_PIECE = 12  # characters
_SPREAD = 2.5  # standard deviations of a vector's numbers: the ends of a strip's colours


def finding(counts: dict[str, int], rows: int, read: int, pieces: int = 0) -> str:
    """Where the parameters are: the largest kinds with their shares, and how many `rows` of the table a sentence `read`s.

    `counts` are parameters by kind, of which "pieces" is one; `read` is 0 without a sentence, of so many `pieces`.
    """
    total = sum(counts.values())
    ordered = sorted(counts, key=lambda kind: -counts[kind])
    shares = [kind for kind in ordered[:3] if counts[kind] >= 0.05 * total or kind == ordered[0]]
    names = [NAMES.get(kind, kind) for kind in shares]
    first = names[0][0].upper() + names[0][1:]
    verb = "hold" if names[0].endswith("s") and not names[0].startswith("the") else "holds"
    if counts[ordered[0]] == total:
        said = f"{first} is all there is: {total:,} parameters"
    else:
        said = f"{first} {verb} {percent(counts[ordered[0]] / total)} of all {total:,} parameters"
        others = [f"{name} {percent(counts[kind] / total)}" for name, kind in zip(names[1:], shares[1:], strict=True)]
        said += "".join(f", {other}" for other in others)
    of = f"of its {rows:,} rows" if ordered[0] == "pieces" else f"of the table's {rows:,} rows"
    who = f"this sentence's {pieces:,} pieces read" if pieces > read else "this sentence reads"
    return f"{said}; {who} {read:,} {of}." if read else f"{said}."


def draw(backend: Backend) -> None:
    """The drawing with the chosen token's row and vectors; a click on a part says what it is."""
    shapes = backend.shapes
    model = _model(shapes)
    sentence, position, row = _sentence(backend)
    read, strips = _read(backend, sentence, position, row)
    wide, narrow = drawing.wide(model, read), drawing.narrow(model, read)
    parts = _parts(backend, model, read)
    largest = max(shapes.counts, key=lambda kind: shapes.counts[kind]).replace("feed-forward", "forward")
    said = finding(dict(shapes.counts), shapes.tables["pieces"][0], len(set(read.rows)), len(read.rows))
    figures.above(
        said,
        key=_KEY,
        place=f".st-key-{_KEY}",
        table=lambda: pd.DataFrame(
            [{"group": part.group, "part": part.part, "parameters": part.count} for part in backend.parameter_parts]
        ),
        code=parameters_of({backend.spec.title: backend}, by_kind=False),
        title="The model to one scale",
        read="Every rectangle is a matrix, all to one scale: its area is how many numbers it has. The table of pieces is "
        "folded. A line in it is a row that the sentence reads; a thick one is that of the chosen token."
        + (" The strips are that token's numbers before and after each block, four in a row." * bool(read.strips))
        + " A click on a rectangle says what it is.",
        not_shown="Norms, biases and segments: together they would be a few hairs. Nor how much a part matters: one with few "
        "parameters can have a large effect.",
    )
    report.add(f"{_KEY}_drawn", PagePart(title="The model to one scale", markup=drawing.svg(wide)))
    browser.web_component("architecture", _HTML)(
        key=_KEY,
        data=_packed(
            {
                "wide": _sent(wide),
                "narrow": _sent(narrow),
                "parts": parts,
                "first": largest if largest in parts else "pieces",  # which the finding names first
                "dim": shapes.hidden,
            },
            strips,
        ),
        on_open_change=lambda: None,
    )
    if key := _key_of_signs(model, read):
        figures.note(key, "architecture_signs")
    opened = browser.sent_by(_KEY, "open")
    if isinstance(opened, str) and opened in parts and _is_offered(backend, opened):
        navigation.go_to(MORE[opened])


def _key_of_signs(model: drawing.Model, read: drawing.Read) -> str:
    """What the letters in a block, the strips and the pooler are, as far as the model has them."""
    letters = {name for attention, _, _ in model.blocks for name, _, _ in attention}
    named = [f"{letter} {word}" for letter, word in LETTERS.items() if letter in letters]
    said = [
        f"Areas are to scale. Attention's matrices: {', '.join(named)}. Add, norm: what a part gives is added to its input."
    ]
    said = said if named else []
    if read.strips:
        piece = messages.escape(read.piece)
        said.append(f"Strips: the numbers of “{piece}” before and after each block, brown below zero, green above.")
    if read.pooling and "pooler" in model.counts:
        said.append("The file also has a pooler, but the sentence's vector is made without it.")
    return " ".join(said)


def _model(shapes: Shapes) -> drawing.Model:
    """The shapes as the chart takes them: charts know no models."""
    return drawing.Model(
        shapes.hidden,
        shapes.tables,
        shapes.projection,
        [
            (
                [(matrix.name, matrix.hidden, matrix.inner) for matrix in block.attention],
                [(matrix.name, matrix.hidden, matrix.inner) for matrix in block.feed_forward],
                block.weights,
            )
            for block in shapes.blocks
        ],
        shapes.heads,
        shapes.counts,
    )


def _sentence(backend: Backend) -> tuple[TokenizedSentence | None, int, int]:
    """The sentence whose rows are marked, the chosen token's position and the sentence's number; draws their choice."""
    texts = state.get("sentences")
    try:
        tokens = controls.current_tokens(backend) if texts else ()
    except InputError:  # other views say what is wrong with the text: the model is the same without it
        tokens = ()
    if not tokens:
        return None, 0, 0
    if (
        "tokens" not in backend.structure.offered
    ):  # of a decoder the rows that it reads are shown, and no token's vectors
        return tokens[0], 0, 0
    interest = controls.interest(tokens, backend)
    row, chosen = interest.row, interest.positions
    with controls.row():
        chips = st.container(key="few_rows")
        if len(texts) > 1:
            with controls.options():
                row = controls.sentence_of(texts, "sentence", "Sentence", interest.row)
        with chips:
            controls.token_chips(tokens, chosen, "chips_architecture", rows=[row])
    if lecture.is_given():  # where the tokens do not stand above the picture
        with st.container(key="explains_sentence"):
            st.caption(f"This sentence: {messages.escape(texts[row])}")
    return tokens[row], chosen[row], row


def _read(backend: Backend, sentence: TokenizedSentence | None, position: int, row: int) -> tuple[drawing.Read, bytes]:
    """What a sentence reads of the model, and the numbers of the strips, uint8 [strip, dim]: 128 is zero."""
    if sentence is None:
        return drawing.Read(), b""
    token = sentence.tokens[position]
    rows = [item.id for item in sentence.tokens if item.id < backend.shapes.tables["pieces"][0]]
    piece = token.piece if len(token.piece) <= _PIECE else token.piece[: _PIECE - 1] + "…"
    offered = backend.structure.offered
    if "tokens" not in offered:
        return drawing.Read(rows, tokens=len(rows)), b""
    if "blocks" not in offered:
        return drawing.Read(rows, token.id, piece, tokens=len(rows)), b""
    trace = controls.current_trace(backend)
    layers = trace.hidden_states[:, row, position]  # [layer, dim]
    pooling = backend.own_pooling
    vectors = [*layers] + ([pool(trace, pooling)[-1, row]] if pooling in _POOLED else [])
    read = drawing.Read(rows, token.id, piece, len(layers), _POOLED.get(pooling, ""), len(rows))
    return read, b"".join(_numbers(vector) for vector in vectors)


def _numbers(vector: np.ndarray) -> bytes:
    """A vector's numbers as bytes around 128, each by the spread of its own vector: one large number would hide the others."""
    spread = _SPREAD * float(np.std(vector)) or 1.0
    return np.rint(128 + 127 * np.clip(np.nan_to_num(vector) / spread, -1, 1)).astype(np.uint8).tobytes()


def _packed(facts: dict[str, Any], strips: bytes) -> bytes:
    """A component takes bytes only as its whole data: the length of a JSON text, that text, and the bytes."""
    text = json.dumps(facts).encode()
    return struct.pack("<I", len(text)) + text + strips


def _sent(of: drawing.ShapeDrawing) -> dict[str, Any]:
    return {"width": of.width, "height": round(of.height, 1), "items": of.items, "card": of.card}


def _is_offered(backend: Backend, part: str) -> bool:
    """Whether a view treats this part by itself and shows this model."""
    return part in MORE and table.VIEWS[MORE[part]].needs in backend.structure.offered


def _parts(backend: Backend, model: drawing.Model, read: drawing.Read) -> dict[str, dict[str, Any]]:
    """What the card says of each part that is drawn."""
    shapes, hidden = backend.shapes, f"{model.hidden:,}"
    rows, size = model.tables["pieces"]
    said: dict[str, tuple[str, str, str, list[str]]] = {}  # kind of the counts, title, shape, texts
    reads = counted(len(set(read.rows)), "row")
    said["pieces"] = (
        "pieces",
        "Table of pieces",
        f"{rows:,} × {size:,}",
        [
            "One row for each piece of the vocabulary: its vector "
            + ("before the first block." if model.blocks else "in every text, because there is nothing after it.")
        ]
        + ([f"This sentence reads {reads}, the lines in the table; near ones are one line."] if read.rows else []),
    )
    if "positions" in model.counts:
        places, _ = model.tables["positions"]
        said["positions"] = (
            "positions",
            "Table of positions",
            f"{places:,} × {size:,}",
            [
                "One row for each place in a text, added to the row of the piece that stands there: without it a text would be "
                "the same in any order."
            ],
        )
    if "distances" in model.counts:
        said["distances"] = (
            "distances",
            "Distances",
            f"{model.counts['distances']:,} numbers",
            ["For each distance of two tokens, numbers that enter the scores of attention. All blocks share them."],
        )
    if model.projection is not None:
        small, large = model.projection
        said["projection"] = (
            "projection",
            "Projection",
            f"{small:,} × {large:,}",
            [f"The rows of the tables have {small:,} numbers, the blocks read {large:,}: this matrix makes them."],
        )
    if model.blocks:
        said |= _of_blocks(shapes, hidden)
    if read.pooling:
        how = {
            "mean": f"The mean of all {read.tokens} tokens is the vector of the sentence: what search compares.",
            "first": "The vector of the first token stands for the sentence: what search compares.",
            "max": f"In each of the {hidden} places the largest number of all tokens: what search compares.",
        }[read.pooling]
        said["pooling"] = (
            "",
            "Pooling",
            f"{read.tokens} × {hidden} numbers become {hidden}",
            [how, "Nothing is learnt here."],
        )
        if "pooler" in model.counts:
            said["pooler"] = (
                "pooler",
                "Pooler",
                f"{hidden} × {hidden}",
                [
                    "BERT's own way to a vector of the whole text: a dense layer over the first token. The file has it; the "
                    "vector of the sentence is made without it here."
                ],
            )
    return {
        part: {
            "kind": part,
            "share": model.share(kind) if kind else "0 %",
            "count": millions(model.counts[kind]) if kind else "nothing learnt",
            "title": title,
            "shape": shape,
            "texts": texts,
            "link": f"See it work: {table.VIEWS[MORE[part]].label} ›" if _is_offered(backend, part) else "",
        }
        for part, (kind, title, shape, texts) in said.items()
    }


def _of_blocks(shapes: Shapes, hidden: str) -> dict[str, tuple[str, str, str, list[str]]]:
    """What the card says of the two parts of a block."""
    block = shapes.blocks[0]
    own = len({item.weights for item in shapes.blocks})
    times = counted(own, "block")
    is_shared = own < len(shapes.blocks)
    shared = (
        [f"{len(shapes.blocks)} blocks use {own} set{'s' * (own > 1)} of weights, which count once."]
        if is_shared
        else []
    )
    sizes = [f"{matrix.hidden:,} × {matrix.inner:,}" for matrix in block.attention]
    each = f"4 × {sizes[0]}" if len(set(sizes)) == 1 else " + ".join(sizes)
    dim = block.attention[0].inner // max(1, shapes.heads)
    heads = (
        f"Each matrix is cut into {counted(shapes.heads, 'head')} of {dim:,} numbers, which look at different things."
    )
    if shapes.heads_per_key > 1:
        heads += f" {shapes.heads_per_key} heads share their K and V, which are smaller."
    inner = f"{block.feed_forward[0].inner:,}"
    gated = len(block.feed_forward) == 3
    passes = (
        "a second matrix, the gate, says how much of each passes, and the third"
        if gated
        else "of which only some pass on, and the second matrix"
    )
    middle = f"{hidden} numbers become {inner}, {passes} brings them"
    return {
        "attention": (
            "attention",
            "Attention",
            f"{times} × {'(' if '+' in each else ''}{each}{')' if '+' in each else ''}",
            [
                "Each token takes from the others. Q asks, K answers: their product says how much a token looks at another. V "
                f"is what is taken, O brings it back to {hidden} numbers, and it is added to what came in.",
                heads,
                *shared,
            ],
        ),
        "forward": (
            "feed-forward",
            "Feed-forward",
            f"{times} × {len(block.feed_forward)} × {hidden} × {inner}",
            [f"Each token by itself: {middle} back to {hidden}, and that is added to what came in.", *shared],
        ),
    }
