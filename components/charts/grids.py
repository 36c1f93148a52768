"""Pieces and their numbers in HTML: the input tensors below the words that they stand for, and where pieces stand in a
vocabulary. All text from people and models is escaped.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from components.numbers import counted, enumerated

_TYPES = "token_type_ids"  # whose 1 has a colour: the second text of a pair
_MASK = "attention_mask"  # whose 1 has a colour, because it says what is read


@dataclass(frozen=True)
class GridRow:
    """One row of the tensors: a text with its pieces, without padding."""

    name: str
    words: Sequence[
        tuple[str, int]
    ]  # each text, and over how many pieces it stands; empty for what the tokenizer added
    pieces: Sequence[str]
    pad: str = ""  # the piece that fills a shorter row


def tensor_grids(
    tensors: Sequence[tuple[str, np.ndarray]], rows: Sequence[GridRow], mask: np.ndarray, total: int | None = None
) -> str:
    """Several tensors [row, position]: for each row its words, its pieces, and below each piece its numbers.

    All rows have the same columns; `mask` [row, position] is 0 for padding, which is grey. `total` is the number of rows of
    the tensors if these are only some of them. Each cell's tooltip is its piece.
    """
    width = mask.shape[1]
    head = "".join(f'<th scope="col">{column}</th>' for column in range(width))
    body = "".join(
        _band([(name, values[at]) for name, values in tensors], row, mask[at]) for at, row in enumerate(rows)
    )
    names = [name for name, _ in tensors]
    listed = html.escape(enumerated(names))
    count = total or len(rows)
    shape = f"{listed}: {counted(len(tensors), 'tensor')} of {count:,} × {width:,} numbers"
    return (
        '<div class="bi-grids" tabindex="0" role="region" aria-label="Input tensors">'
        f'<p class="more" aria-hidden="true"><span>{counted(width, "column")} →</span></p><table>'
        f"<caption><span>{shape}</span></caption>"
        f'<thead><tr><th scope="col">position</th>{head}</tr></thead>{body}</table></div>'
    )


def _band(tensors: Sequence[tuple[str, np.ndarray]], row: GridRow, mask: np.ndarray) -> str:
    """A row's words, pieces and numbers."""
    padding = len(mask) - len(row.pieces)
    words = "".join(
        f'<td class="word" colspan="{pieces}">{f"<b>{html.escape(text)}</b>" if text else "<small>added</small>"}</td>'
        for text, pieces in row.words
    )
    pieces = "".join(f'<td class="piece"><i>{html.escape(piece)}</i></td>' for piece in row.pieces)
    if padding:
        words += f'<td class="word" colspan="{padding}"><small>padding</small></td>'
        pieces += f'<td class="piece"><i>{html.escape(row.pad)}</i></td>' * padding
    numbers = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th>'
        + "".join(
            f'<td{_colour(name, int(value))} title="{html.escape(piece)}">{value}</td>'
            for value, piece in zip(values, row.pieces, strict=False)
        )
        + "".join(f'<td class="pad" title="padding">{value}</td>' for value in values[len(row.pieces) :])
        + "</tr>"
        for name, values in tensors
    )
    return (
        f'<tbody><tr class="text"><th scope="rowgroup">{html.escape(row.name)}</th>{words}</tr>'
        f'<tr class="pieces"><th scope="row">pieces</th>{pieces}</tr>{numbers}</tbody>'
    )


def _colour(name: str, value: int) -> str:
    """A class for the numbers that are worth a look."""
    kinds = {(_TYPES, 1): "second", (_MASK, 1): "read"}
    kind = kinds.get((name, value))
    return f' class="{kind}"' if kind else ""


@dataclass(frozen=True)
class KnownRow:
    """A piece, or what a search has found."""

    name: str
    number: str  # its id as it is shown
    ids: Sequence[int]  # one tick each
    alike: int  # how many other pieces begin like it; of a search, how many it has found
    first: Sequence[str]  # the first of them
    kind: Literal["", "chosen", "found"] = ""


def known_pieces(rows: Sequence[KnownRow], size: int) -> str:
    """Lines of pieces in a vocabulary of `size` pieces; what a search has found stands above them."""
    head = (
        f'<tr><th scope="col">piece</th><th scope="col">id</th><th scope="col"><span>0</span><span>{size - 1:,}</span></th>'
        '<th scope="col">begin like it</th></tr>'
    )
    found = "".join(_line(row, size) for row in rows if row.kind == "found")
    lines = "".join(_line(row, size) for row in rows if row.kind != "found")
    return (
        '<div class="bi-known" tabindex="0" role="region" aria-label="Pieces in the vocabulary"><table>'
        f"<colgroup><col><col><col><col></colgroup><thead>{found}{head}</thead><tbody>{lines}</tbody></table></div>"
    )


def _line(row: KnownRow, size: int) -> str:
    ticks = "".join(f'<b style="left: {100 * number / max(1, size - 1):.2f}%"></b>' for number in row.ids)
    named = ", ".join(html.escape(piece if any(map(str.isalnum, piece)) else f"“{piece}”") for piece in row.first)
    more = ", …" if row.alike > len(row.first) > 0 else ""
    # A mark alone, such as "…", would read as if something were left out.
    if row.first and not any(map(str.isalnum, "".join(row.first))):
        named = f"{'piece' if row.alike == 1 else 'pieces'}: {named}"
    # A phone has no room for the colour's name.
    found = f"found<em> (orange)</em>{': ' * bool(row.first)}" if row.kind == "found" else ""
    others = f"<b>{row.alike:,}</b> {found}{named}{more}" if row.alike else "none"
    name = f'<th scope="row"><i>{html.escape(row.name)}</i></th><td>{row.number}</td>'
    if row.kind == "found":
        name = f'<th scope="row" colspan="2">{html.escape(row.name)}</th>'
    return f'<tr class="{row.kind}">{name}<td class="stands"><u>{ticks}</u></td><td><span>{others}</span></td></tr>'
