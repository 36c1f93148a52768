"""A model as rectangles to one scale: every matrix has the area of its numbers, in one drawing for a page and one for a phone.

Drawings are lists of plain shapes (`Item`), which assets/web/architecture.js draws and `svg` writes for a report. A table is
folded to the height (on a phone the width) that it has there; its rows run from top to bottom, or from left to right.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from components.charts import theme
from components.numbers import millions, percent

WIDE, NARROW = 1136, 358  # pixels
_TABLE_TOP, _TABLE_HEIGHT = 28, 420
_LABELS, _RIGHT = 150, 104  # pixels: of the names beside the blocks, and of the sentence's vector
_MOST, _NARROW_MOST = 40.0, 30.0  # pixels for the hidden size
_LEAST_TABLE = 28  # pixels: a smaller table is not folded, so that it can be seen
_LETTERS, _WORDS = 15, 17  # pixels for the hidden size from which matrices are named
_BLOCKS_WITH_STRIPS = 8
_STRIP = 16
_PER_LINE = 14  # blocks beside each other
_LEAST_ROOM = 120.0  # pixels for the table and its texts
_TALLEST = 300  # pixels: of the blocks, and of a table on a phone

Item = dict[str, Any]


@dataclass(frozen=True)
class Model:
    """What a drawing shows, in plain values; a block is its matrices' (name, hidden, inner) by part."""

    hidden: int
    tables: Mapping[str, tuple[int, int]]
    projection: tuple[int, int] | None
    blocks: Sequence[tuple[Sequence[tuple[str, int, int]], Sequence[tuple[str, int, int]], int]]
    heads: int
    counts: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def share(self, kind: str) -> str:
        """The share of a kind of part of all parameters."""
        return percent(self.counts.get(kind, 0) / self.total)


@dataclass(frozen=True)
class Read:
    """What of the model a sentence reads: rows of the table of pieces, and the vectors of one token."""

    rows: Sequence[int] = ()
    chosen: int | None = None  # a row
    piece: str = ""
    strips: int = 0  # how many layers are drawn as strips of numbers; 0: none
    pooling: str = ""  # how the sentence's vector is made; empty: it is not drawn
    tokens: int = 0


@dataclass
class ShapeDrawing:
    """Shapes, and the size of the area that they fill. `card` is where the card of a part fits: left, top, width."""

    width: float
    height: float = 0.0
    items: list[Item] = field(default_factory=list)
    card: tuple[float, float, float] | None = None

    def rect(self, x: float, y: float, w: float, h: float, kind: str, part: str = "") -> None:
        self.items.append(_rounded({"t": "rect", "x": x, "y": y, "w": w, "h": h, "c": kind, "p": part}))

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start", turn: bool = False) -> None:
        self.items.append(_rounded({"t": "text", "x": x, "y": y, "s": text, "c": kind, "a": anchor, "turn": turn}))

    def line(self, x: float, y: float, x2: float, y2: float, kind: str) -> None:
        self.items.append(_rounded({"t": "line", "x": x, "y": y, "x2": x2, "y2": y2, "c": kind}))

    def strip(self, x: float, y: float, w: float, h: float, number: int) -> None:
        self.items.append(_rounded({"t": "strip", "x": x, "y": y, "w": w, "h": h, "n": number}))


def _rounded(item: Item) -> Item:
    return {name: round(value, 2) if isinstance(value, float) else value for name, value in item.items()}


def wide(model: Model, read: Read) -> ShapeDrawing:
    """The drawing for a page: the table at the left, the blocks beside each other, the sentence's vector at the right."""
    return _wide_table(model, read) if not model.blocks else _wide_blocks(model, read)


def _wide_table(model: Model, read: Read) -> ShapeDrawing:
    drawing = ShapeDrawing(WIDE, _TABLE_TOP + _TABLE_HEIGHT + 10)
    width = 420.0
    _table(drawing, model, read, width, _TABLE_HEIGHT)
    drawing.card = (width + 40, _TABLE_TOP, WIDE - width - 40)
    return drawing


def _wide_blocks(model: Model, read: Read) -> ShapeDrawing:
    drawing = ShapeDrawing(WIDE)
    count, has_strips = len(model.blocks), 0 < len(model.blocks) <= _BLOCKS_WITH_STRIPS and read.strips > 0
    lines = -(-count // _PER_LINE)
    beside = -(-count // lines)
    gap = 34.0 if has_strips else max(4.0, min(14.0, 160 / beside))
    right = _RIGHT if read.pooling else 20
    columns = _columns(model)

    def place(side: float) -> tuple[float, float, float, float]:
        """For this length of the hidden size: the table's size, where the second part of a block begins, a line's height."""
        attention, forward = _heights(model, side)
        lower = max(attention + 34, 66.0)
        return (*_folded(model, side, _TABLE_HEIGHT), lower, lower + forward)

    side = _MOST
    while side > 1:
        table, height, lower, line = place(side)
        fits = max(table, _LEAST_ROOM) + _LABELS + right + beside * (columns * side + gap) <= WIDE
        if fits and lines * (line + 30) <= _TALLEST + 30:
            break
        side -= 0.25
    table, height, lower, line = place(side)
    bottom = _table(drawing, model, read, table, height) + 6
    for kind in ("positions", "distances"):
        bottom = _below(drawing, model, kind, max(table, _LEAST_ROOM), bottom, side)
    start = max(table, _LEAST_ROOM) + _LABELS
    step = (WIDE - right - start) / beside
    width, attention = columns * side, _heights(model, side)[0]
    first = 48.0
    end = first + (lines - 1) * (line + 30) + line
    for number, block in enumerate(model.blocks):
        row, column = divmod(number, beside)
        x = start + column * step + (step - width) / 2 + (_STRIP / 2 if has_strips else 0)
        top = first + row * (line + 30)
        drawing.text(x + width / 2, top - 8, f"block {number}" if width >= 46 else str(number), "small", "middle")
        _block(drawing, model, number, block, x, top, top + lower, side)
        if width >= 58:
            drawing.text(x + width / 2, top + attention + 20, "add, norm", "small", "middle")
        if has_strips:
            drawing.strip(x - _STRIP - 9, top, _STRIP, line, number)
    if has_strips:
        drawing.strip(start + count * step + _STRIP / 2 - 7, first, _STRIP, line, count)
    heads = f"{model.heads} heads × {model.blocks[0][0][0][2] // max(1, model.heads)}"
    _label(drawing, start - 14, first + 12, "attention", heads, model.share("attention"))
    _label(drawing, start - 14, first + lower + 12, "feed-forward", _sizes(model), model.share("feed-forward"))
    of_blocks = (model.counts.get("attention", 0) + model.counts.get("feed-forward", 0)) / model.total
    named = f"{count} block{'s' * (count > 1)}"
    drawing.text(start, 16, f"{named}: {percent(of_blocks)} of all parameters", "head")
    if model.projection is not None:
        small, large = model.projection
        w, h = small / model.hidden * side, large / model.hidden * side
        at = start - _LABELS + 12
        drawing.rect(at, first + line - h, w, h, "projection", "projection")
        drawing.text(at, first + line + 13, f"{small:,} → {large:,}", "small")
    if read.pooling:
        _pooling(drawing, model, read, first, line, side)
    drawing.card = (start - 130, end + 22, WIDE - start + 130)
    drawing.height = max(bottom, end + 222)
    return drawing


def _pooling(drawing: ShapeDrawing, model: Model, read: Read, top: float, height: float, side: float) -> None:
    """The sentence's vector at the right edge, and the pooler that it is made without."""
    at, left = WIDE - 24.0, WIDE - _RIGHT + 36.0
    middle = (left - 6 + at) / 2
    drawing.text(WIDE, 16, "sentence", "head", "end")
    drawing.line(left, top + 40, at - 4, top + 40, "arrow")
    drawing.text(middle, top + 32, read.pooling, "small bold", "middle")
    drawing.text(middle, top + 56, f"of {read.tokens}", "small", "middle")
    drawing.rect(at, top, _STRIP, height, "pooling", "pooling")
    if read.strips:
        drawing.strip(at, top, _STRIP, height, read.strips)
    if "pooler" in model.counts:
        drawing.rect(left, top + height - side - 16, side, side, "pooler", "pooler")
        drawing.text(left, top + height, "pooler", "small")


def narrow(model: Model, read: Read) -> ShapeDrawing:
    """The drawing for a phone: the table, the blocks below it, then the token's vectors."""
    drawing = ShapeDrawing(NARROW)
    columns = _columns(model)
    rows, size = model.tables["pieces"]
    beside = min(6 if len(model.blocks) <= 12 else 12, max(1, len(model.blocks)))
    side = min(_NARROW_MOST, (NARROW - 8.0 * (beside - 1)) / (beside * columns))
    while side > 1 and rows * size * (side / model.hidden) ** 2 / NARROW > _TALLEST:
        side -= 0.25
    area = rows * size * (side / model.hidden) ** 2 if model.blocks else 180.0 * NARROW
    height = max(20.0, area / NARROW)  # so that its marks can be seen: a small table is not as wide
    width = area / height
    drawing.text(0, 14, f"{rows:,} pieces × {size}: {millions(rows * size)}, {model.share('pieces')}", "head")
    drawing.rect(0, 22, width, height, "pieces", "pieces")
    for row in sorted(set(read.rows)):
        at = width * (row + 0.5) / rows
        drawing.line(at, 22, at, 22 + height, "picked" if row == read.chosen else "row")
    if read.chosen is not None:
        at = width * (read.chosen + 0.5) / rows
        said = f"{read.piece}: row {read.chosen:,}"
        right = at > NARROW / 2
        x, anchor = (
            (at + (-6 if right else 6), "end" if right else "start") if width == NARROW else (width + 8, "start")
        )
        drawing.text(x, 38, said, "picked", anchor)
    y = 22 + height + 4
    for kind in ("positions", "distances"):
        if kind in model.counts:
            h = max(3.0, model.counts[kind] * (side / model.hidden) ** 2 / NARROW)
            drawing.rect(0, y, NARROW, h, "positions", kind)
            y += h + 4
    if model.blocks:
        y += 18
        blocks = f"{len(model.blocks)} block{'s' * (len(model.blocks) > 1)}"
        shares = f"attention {model.share('attention')}, feed-forward {model.share('feed-forward')}"
        drawing.text(0, y, f"{blocks}: {shares}", "head")
        y += 8
        attention, forward = _heights(model, side)
        step = (NARROW - columns * side) / max(1, beside - 1)
        for number, block in enumerate(model.blocks):
            row, place = divmod(number, beside)
            top, x = y + 12 + row * (attention + forward + 28), place * min(step, columns * side + 24)
            drawing.text(x + columns * side / 2, top - 4, str(number), "small", "middle")
            _block(drawing, model, number, block, x, top, top + attention + 8, side)
        y += 12 + (-(-len(model.blocks) // beside)) * (attention + forward + 28)
    if read.strips:
        drawing.text(0, y + 6, f"{read.piece} layer by layer" + (", and the sentence" if read.pooling else ""), "head")
        shown = list(range(read.strips)) + ([read.strips] if read.pooling else [])
        strip = min(30.0, (NARROW - 6.0 * (len(shown) - 1)) / len(shown))
        for place, number in enumerate(shown):
            x = place * (NARROW - strip) / max(1, len(shown) - 1)
            drawing.strip(x, y + 14, strip, 84, number)
            if number == read.strips:
                drawing.rect(x, y + 14, strip, 84, "pooling", "pooling")
        y += 104
    drawing.height = y + 4
    return drawing


def _columns(model: Model) -> int:
    return max((max(2, len(forward)) for _, forward, _ in model.blocks), default=2)


def _heights(model: Model, side: float) -> tuple[float, float]:
    """The heights of the two parts of a block."""
    (q, k, v, o), forward, _ = model.blocks[0]
    unit = side / model.hidden
    return (max(q[2], k[2]) + max(v[2], o[2])) * unit, max(matrix[2] for matrix in forward) * unit


def _sizes(model: Model) -> str:
    _, forward, _ = model.blocks[0]
    return f"{forward[0][1]:,} → {forward[0][2]:,} → {forward[-1][1]:,}"


def _folded(model: Model, side: float, height: float) -> tuple[float, float]:
    """Width and height of the table of pieces where the hidden size is `side` pixels long."""
    rows, size = model.tables["pieces"]
    area = rows * size * (side / model.hidden) ** 2
    width = area / height
    return (width, height) if width >= _LEAST_TABLE else (_LEAST_TABLE, max(8.0, area / _LEAST_TABLE))


def _table(drawing: ShapeDrawing, model: Model, read: Read, width: float, height: float) -> float:
    """The table of pieces with the rows that are read; returns where it ends, its texts included."""
    rows, size = model.tables["pieces"]
    is_large = width >= 150 and height > 200
    drawing.text(0, 16, f"{rows:,} pieces" + ("" if is_large else f": {model.share('pieces')}"), "head")
    drawing.rect(0, _TABLE_TOP, width, height, "pieces", "pieces")
    for row in sorted(set(read.rows)):
        y = _TABLE_TOP + height * (row + 0.5) / rows
        drawing.line(0, y, width, y, "picked" if row == read.chosen else "row")
    if is_large:
        middle = _TABLE_TOP + height * 0.56
        drawing.text(width / 2, middle - 26, f"{rows:,} × {size}", "bold over", "middle")
        drawing.text(width / 2, middle, millions(rows * size), "over", "middle")
        drawing.text(width / 2, middle + 28, model.share("pieces"), "large over", "middle")
    bottom = _TABLE_TOP + height
    if read.chosen is not None:
        y, said = _TABLE_TOP + height * (read.chosen + 0.5) / rows, f"{read.piece}: row {read.chosen:,}"
        if is_large and width >= 8.5 * (len(said) + len(f"{rows:,} pieces")):
            drawing.text(width, 16, said, "picked", "end")  # in the table it would cover lines beside its own
        elif is_large:
            drawing.text(width - 4, y - 6 if y > _TABLE_TOP + 24 else y + 18, said, "picked", "end")
        else:  # it does not fit into a small one
            drawing.text(0, bottom + 16, said, "picked")
            bottom += 20
    return bottom


def _below(drawing: ShapeDrawing, model: Model, kind: str, width: float, top: float, side: float) -> float:
    """A smaller table below that of the pieces, and what its lower edge is."""
    if kind not in model.counts:
        return top
    table = model.tables.get(kind)
    said = f"{table[0]:,} positions × {table[1]}" if table else f"{model.counts[kind]:,} for distances"
    area = model.counts[kind] * (side / model.hidden) ** 2
    width = min(width, max(_LEAST_TABLE, area / 3))
    drawing.text(0, top + 14, f"+ {said}", "small")
    height = max(2.0, area / width)
    drawing.rect(0, top + 20, width, height, "positions", kind)
    return top + 24 + height


def _block(
    drawing: ShapeDrawing, model: Model, number: int, block: Any, x: float, top: float, lower: float, side: float
) -> None:
    """The matrices of a block; those of weights that an earlier block has already are outlines."""
    attention, forward, weights = block
    is_again = any(other[2] == weights for other in model.blocks[:number])
    again = " again" if is_again else ""
    unit = side / model.hidden
    (q, k, v, o) = attention
    columns = max(2, len(forward))
    inset = (columns - 2) * side / 2
    first = max(q[2], k[2]) * unit
    for matrix, column, y in ((q, 0, top), (k, 1, top), (v, 0, top + first), (o, 1, top + first)):
        w, h = matrix[1] * unit, matrix[2] * unit
        drawing.rect(x + inset + column * side, y, w, h, f"attention{again}", "attention")
        if min(w, h) >= _LETTERS:
            drawing.text(x + inset + column * side + w / 2, y + h / 2 + 5, matrix[0], "letter", "middle")
    start = x + (columns - len(forward)) * side / 2
    for place, (name, hidden, inner) in enumerate(forward):
        w, h = hidden * unit, inner * unit
        drawing.rect(start + place * side, lower, w, h, f"forward{again}", "forward")
        if w >= _WORDS and h >= 84:
            text = f"{inner:,} → {hidden:,}" if name == "out" else f"{hidden:,} → {inner:,}"
            drawing.text(start + place * side + w / 2 + 4, lower + h / 2, text, "small", "middle", turn=True)


def _label(drawing: ShapeDrawing, x: float, y: float, name: str, detail: str, share: str) -> None:
    drawing.text(x, y, name, "bold", "end")
    drawing.text(x, y + 18, detail, "small", "end")
    drawing.text(x, y + 38, share, "bold", "end")


_COLOURS = {
    "pieces": theme.GREEN,
    "positions": theme.GREEN,
    "attention": theme.BLUE,
    "forward": theme.ORANGE,
    "projection": theme.OLIVE,
    "pooler": theme.PURPLE,
    "pooling": theme.GREY,
}
_SIZES = {"large": 26, "bold": 15, "small": 12, "head": 14}


def svg(drawing: ShapeDrawing) -> str:
    """The drawing as SVG, without the strips of a token's numbers; texts are escaped."""
    written = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {drawing.width:g} {drawing.height:g}" role="img" '
        f'style="max-width:{drawing.width:g}px;width:100%" font-family="sans-serif" fill="currentColor">'
    ]
    for item in drawing.items:
        kinds = str(item.get("c", "")).split()
        colour = next((_COLOURS[kind] for kind in kinds if kind in _COLOURS), theme.GREY)
        if item["t"] == "rect":
            fill = "0" if "again" in kinds or "pooler" in kinds else "0.25"
            written.append(
                f'<rect x="{item["x"]:g}" y="{item["y"]:g}" width="{item["w"]:g}" height="{item["h"]:g}" fill="{colour}" '
                f'fill-opacity="{fill}" stroke="{colour}"/>'
            )
        elif item["t"] == "line":
            stroke = theme.BLUE if "picked" in kinds else theme.GREEN if "row" in kinds else theme.GREY
            written.append(
                f'<line x1="{item["x"]:g}" y1="{item["y"]:g}" x2="{item["x2"]:g}" y2="{item["y2"]:g}" stroke="{stroke}" '
                f'stroke-width="{2 if "picked" in kinds else 1}"/>'
            )
        elif item["t"] == "text":
            size = next((_SIZES[kind] for kind in kinds if kind in _SIZES), 14)
            weight = ' font-weight="bold"' if {"bold", "large", "letter", "head"} & set(kinds) else ""
            turned = f' transform="rotate(-90 {item["x"]:g} {item["y"]:g})"' if item["turn"] else ""
            written.append(
                f'<text x="{item["x"]:g}" y="{item["y"]:g}" font-size="{size}" text-anchor="{item["a"]}"{weight}{turned}>'
                f"{html.escape(item['s'])}</text>"
            )
    return "".join([*written, "</svg>"])
