"""Figures as a page of HTML that needs no other file and no network: plotly's code is in it.

Each text is escaped; a figure's own labels were made safe when it was drawn. The page may load nothing and talk to nobody: its
content security policy says so to the browser.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
import plotly.io
from plotly.offline import get_plotlyjs

from components.charts import theme
from components.charts.stand_alone import chips
from components.markup import to_html

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 200  # of a table
# Some figures are drawn by WebGL, for which plotly compiles code of its own.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
    "worker-src blob:; font-src data:"
)
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1b2230; background: #fff; }
body { max-width: 72rem; margin: 1.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .3rem; } h2 { font-size: 1.05rem; margin: 1.2rem 0 .2rem; }
h2.part { font-size: 1.25rem; } section:has(> h2.part:only-child) { margin: 0; }
p { margin: .4rem 0; } section { margin: 0 0 2rem; } .texts { display: grid; grid-template-columns: 1fr 1fr; gap: 1.5rem; }
.facts, footer { color: #5b6472; font-size: .9rem; } footer { border-top: 1px solid #ccd; margin-top: 1.5rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .2rem .6rem; border: 1px solid #ccd; } details { margin: .5rem 0; }
:root { color-scheme: light; } .bi-map-key { display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; font-size: .9rem; }
.bi-map-key i { display: inline-block; width: 1.8rem; margin-right: .2rem; vertical-align: middle; }
.bi-standing { position: relative; height: 4.3rem; margin: 0 .4rem; font-size: .85rem; }
.bi-standing u { position: absolute; left: 0; bottom: 1.5rem; width: 100%; height: 2.2rem; background: #858b9566; }
.bi-standing div { position: absolute; left: 0; right: 0; bottom: 0; height: 1.5rem; border-top: 1px solid #858b95; }
.bi-standing i { position: absolute; top: .15rem; transform: translateX(-50%); font-style: normal; }
.bi-standing b { position: absolute; bottom: 1.5rem; width: 1.5px; height: .9rem; background: #858b95; }
.bi-standing b.score { width: 3px; height: 2.9rem; background: #2b7bba; }
.bi-standing span { position: absolute; bottom: 1.8rem; white-space: nowrap; margin: 0 .4rem; }
.bi-standing span.score { top: 0; font-weight: 700; font-size: 1.1rem; line-height: 1.2; }
.bi-standing em { font-style: normal; font-weight: 400; font-size: .85rem; }
iframe { border: 0; width: 100%; } img.drawn { max-width: 100%; }
.keys-end { min-height: 90vh; }
kbd { border: 1px solid #ccd; border-radius: .3rem; padding: 0 .3rem; font: inherit; }
:is(.bi-nearest, .bi-pairs) h4 { margin: .5rem 0 .2rem; } .bi-nearest small { color: #5b6472; }
.bi-pairs div { display: grid; grid-template-columns: 3rem 1fr; gap: 0 .7rem; padding: .35rem 0; border-bottom: 1px solid #ccd }
.bi-pairs p { margin: 0; } .bi-pairs u { font-weight: 600; text-decoration: underline 2px #c97f00; text-underline-offset: 3px; }
.bi-case { display: flex; flex-direction: column; gap: .7rem; }
.bi-case section { margin: 0; padding-left: .7rem; border-left: 4px solid #b4bdc8; }
.bi-case h6 { margin: 0; font-size: .9rem; }
.bi-case .right { border-left-color: #2b7bba; } .bi-case .rival { border-left-color: #c97f00; }
.bi-case h6 span { font-weight: 400; } .bi-case p { margin: 0; white-space: pre-line; overflow-wrap: anywhere; }
.bi-case .query { font-size: 1.15rem; font-weight: 600; } .bi-case mark { background: rgba(230, 159, 0, .32); }
.bi-repairs h6 { margin: 0; font-size: .9rem; } .bi-repairs ul { list-style: none; margin: 0; padding: 0; }
.bi-repairs li { display: flex; justify-content: space-between; gap: 1rem; border-top: 1px solid #d9dee5; }
@media (max-width: 640px) { .texts { grid-template-columns: 1fr; gap: 0; } }
@media (pointer: coarse) { .keys { display: none; } }
@media print { .keys { display: none; } .keys-end { min-height: 0; } }
@media print { body { margin: 0; max-width: none; } section { break-inside: avoid; } }
"""
_DARK = """
html { color-scheme: dark; } body { color: #e8ebef; background: #12161c; } a { color: #6db3ec; }
.facts, footer, .bi-nearest small { color: #aab3c0; }
"""
_KEYS_HINT = '<p class="facts keys"><kbd>←</kbd> <kbd>→</kbd> go from picture to picture.</p>'
# From one titled part to the next: the one that is shown is the last whose title stands at the top or above it.
_KEYS = """
addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 }[event.key];
  if (!step || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const titles = [...document.querySelectorAll("h2.part")], tops = titles.map((title) => title.getBoundingClientRect().top);
  const isLow = (top) => top > 30;
  const next = step > 0 ? tops.findIndex(isLow) : tops.findLastIndex((top) => top < -2);
  event.preventDefault();
  if (next >= 0) scrollTo({ top: scrollY + tops[next] - 8 });
  else if (step < 0) scrollTo({ top: 0 });
});
"""


@dataclass(frozen=True)
class Frame:
    """A whole HTML document, drawn in a frame of its own."""

    document: str
    height: int  # pixels
    title: str  # for those who cannot see it


@dataclass(frozen=True)
class PagePart:
    """A figure, a table or another drawing with the texts that belong to it, which are Markdown as the pages write it."""

    figure: go.Figure | None = None
    table: pd.DataFrame | None = None
    alt: str = ""  # what the figure shows, for those who cannot see it
    message: str = ""
    read: str = ""  # how to read it
    not_shown: str = ""
    chips: Sequence[Mapping[str, Any]] = ()  # rows of tokens, as assets/web/chips.js takes them
    markup: str = ""  # HTML, in which the texts of people are escaped
    frame: Frame | None = None
    title: str = ""  # plain text, drawn above the rest


def page(
    title: str,
    parts: Sequence[PagePart],
    footer: str,
    facts: Sequence[str] = (),
    heading: bool = True,
    has_keys: bool = False,
    is_dark: bool = False,
) -> str:
    """A page of figures and tables; `title`, `facts` and `footer` are plain texts. `heading`: the title stands on the page.

    `has_keys`: the arrow keys and those for pages go from one titled part to the next; the last can be brought to the top.
    `is_dark`: light type on a dark page, as pictures have it that were drawn in dark colours.
    """
    name = html.escape(title)
    style = _STYLE + _DARK * is_dark
    of_chips = chips.style() if any(part.chips for part in parts) else ""
    has_figures = any(part.figure is not None for part in parts)
    listed = f'<p class="facts">{"<br>".join(map(html.escape, facts))}</p>' if facts else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(_POLICY)}"><style>{style}{of_chips}</style>'
        f"{f'<script>{get_plotlyjs()}</script>' if has_figures else ''}</head><body>"
        f"{f'<h1>{name}</h1>' if heading else ''}{listed}{_KEYS_HINT if has_keys else ''}"
        f"{''.join(_section(part, is_dark) for part in parts)}"
        f"<footer{' class=keys-end' if has_keys else ''}>{html.escape(footer)}</footer>"
        f"{f'<script>{_KEYS}</script>' if has_keys else ''}</body></html>"
    )


def title_of(figure: go.Figure) -> str:
    """A figure's title as plain text, without the legend that some figures write below it (`theme.BELOW_TITLE`)."""
    title, _, _ = (figure.layout.title.text or "").partition(theme.BELOW_TITLE)
    return " ".join(html.unescape(re.sub(r"<[^<>]*>", " ", title)).split())


def _section(part: PagePart, is_dark: bool) -> str:
    below = f'<div class="texts">{_text("How to read this", part.read)}{_text("What it does not show", part.not_shown)}</div>'
    title = f'<h2 class="part">{html.escape(part.title)}</h2>' if part.title else ""
    return (
        f"<section>{title}"
        f"{to_html(part.message) if part.message else ''}{_figure(part, is_dark)}{_frame(part.frame)}{part.markup}"
        f"{chips.rows(part.chips) if part.chips else ''}"
        f"{below if part.read or part.not_shown else ''}{_table(part)}</section>"
    )


def _figure(part: PagePart, is_dark: bool) -> str:
    if part.figure is None:
        return ""
    template, paper, type_colour = (
        ("plotly_dark", "#12161c", "#e8ebef") if is_dark else ("plotly_white", "#fff", "#1b2230")
    )
    shown = go.Figure(part.figure).update_layout(template=template, paper_bgcolor=paper, font_color=type_colour)
    shown.update_layout(plot_bgcolor=paper)
    shown.update_layout(title_font_weight="bold")
    drawn = plotly.io.to_html(
        shown, full_html=False, include_plotlyjs=False, config={"displaylogo": False, "responsive": True}
    )
    return f'<div role="img" aria-label="{html.escape(part.alt)}">{drawn}</div>'


def _frame(frame: Frame | None) -> str:
    """The document within the page. It may run its scripts, and reaches neither the page around it nor the network."""
    if frame is None:
        return ""
    return (
        f'<iframe sandbox="allow-scripts" style="height: {frame.height}px" title="{html.escape(frame.title)}" '
        f'srcdoc="{html.escape(frame.document)}"></iframe>'
    )


def _table(part: PagePart) -> str:
    """The table, of at most MOST_ROWS rows; below a figure it is folded."""
    if part.table is None:
        return ""
    rows = part.table.head(MOST_ROWS)
    table = f'<div class="wide">{rows.to_html(index=False, escape=True, border=0)}</div>'
    if len(part.table) > MOST_ROWS:
        table += f'<p class="facts">The first {MOST_ROWS:,} of {len(part.table):,} rows.</p>'
    is_below = part.figure is not None or bool(part.markup)
    return f"<details><summary>Data of this figure</summary>{table}</details>" if is_below else table


def _text(title: str, markdown: str) -> str:
    return f"<div><h2>{title}</h2>{to_html(markdown)}</div>" if markdown else ""
