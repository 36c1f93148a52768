"""A view as the dashboard draws it, kept as HTML and as the data of its figures.

What a site says and draws is what the page says and draws. Controls, and what leads to other places of the dashboard, are
left out.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from components.markup import to_html, to_text
from dashboard.website.session import Session, not_drawn

OURS = "bert_internals_"  # how the names of components begin
HELP = "How to read this"
# Containers that are not part of what a view says: its first line, its controls, and what is done with figures.
LEFT_OUT = re.compile(
    r"(page_header|sentence_bar|session_panel|view_names|path_line|view_header|figure_controls|search_controls|row_ready|"
    r"star_|data_|bare_line_|start_title|start_cards|select_|probe_w|phone_)"
)
NOT_DRAWN = frozenset(
    ("tools", "memory", "webgl", "editor", "visitor", "start_field", "keep_picture", "path_strip", "ticker")
)
_KEY = re.compile(r"\$\$ID-[0-9a-f]{32}-(.{1,80})", re.DOTALL)
_TITLE = re.compile(r"<br>.*", re.DOTALL)


@dataclass
class Drawn:
    """What a view showed in one state."""

    title: str = ""
    intro: str = ""
    finding: str = ""  # the first one, as plain text
    markup: str = ""  # with an empty box for each figure
    figures: list[dict[str, Any]] = field(default_factory=list)  # "part", and its "data", "bytes" or "layout"
    parts: dict[str, dict[str, str]] = field(default_factory=dict)  # the components' html, css and js by name

    def first(self, part: str) -> dict[str, Any] | None:
        """The first figure that a component drew, or that is a "plot"."""
        return next((figure for figure in self.figures if figure["part"] == part), None)


class Recorder:
    """One session of the dashboard, which goes from state to state of a view."""

    def __init__(self, view: str, common: Mapping[str, Any], until: str = "") -> None:
        """`common` are settings of all states; `until`: how the text begins with which what is left out begins."""
        self._view, self._common, self._until = view, common, until
        self._session = Session(view)

    def drawn(self, settings: Mapping[str, Any]) -> Drawn:
        """What the view shows with these settings, by name, once nothing is under way.

        Raises InputError for a view that shows an error, or whose work does not end, with what it says.
        """
        app = self._session.at({**self._common, **settings})
        reader = _PageReader(self._view, self._until)
        reader.drawn.markup = reader.children(app.main)
        return reader.drawn


def refused(drawn: Drawn, part: str, name: str) -> None:
    """Raises InputError for a page that did not draw what it is about, with what it says instead."""
    if drawn.first(part) is None:
        raise not_drawn(name, to_text(re.sub(r"<[^<>]*>", " ", drawn.markup)))


class _PageReader:
    """Reads a page's elements into HTML."""

    def __init__(self, view: str, until: str) -> None:
        self.drawn = Drawn()
        self._view = view
        self._until, self._is_over = until, False

    def children(self, node: Any) -> str:
        return "".join(self._element(child) for child in _children(node))

    def _element(self, node: Any) -> str:
        kind = getattr(node, "type", "")
        if kind == "title":
            self.drawn.title = to_text(node.value)
        key = _key_of(node)
        if self._is_over or LEFT_OUT.match(key):
            return self._header(node) if key == "view_header" else ""
        if hasattr(node, "children"):
            return self._block(node, key)
        said = str(getattr(node, "value", "")) if kind in ("markdown", "caption", "header", "subheader", "html") else ""
        if self._until and to_text(said).startswith(self._until):
            self._is_over = True
            return ""
        if kind == "html":
            return said if "<style" not in said else ""
        if kind == "markdown":
            return self._text(said)
        if kind == "caption":
            return f'<div class="caption">{_lines(said)}</div>'
        if kind in ("header", "subheader"):
            return f"<h2>{html.escape(to_text(said))}</h2>"
        if kind == "error":  # a failed job, or what could not be computed, is nothing that a site shows
            raise not_drawn(self._view, to_text(node.value))
        if kind in ("info", "warning", "success"):
            return f'<div class="box">{_lines(node.value)}</div>'
        if kind in ("table", "arrow_data_frame"):
            return f'<div class="wide">{node.value.to_html(index=False, escape=True, border=0)}</div>'
        if kind == "plotly_chart":
            return self._plot(node.proto, key)
        return self._component(node.proto, key) if kind == "bidi_component" else ""

    def _header(self, node: Any) -> str:
        """Keep the question and the line below it; they stand above the page's choices."""
        for child in _all_below(node):
            if getattr(child, "type", "") == "title":
                self.drawn.title = to_text(child.value)
            elif getattr(child, "type", "") == "caption":
                self.drawn.intro = to_text(child.value)
        return ""

    def _block(self, node: Any, key: str) -> str:
        kind, proto = getattr(node, "type", ""), getattr(node, "proto", None)
        if kind == "expander":
            if self._until and node.label.startswith(self._until):
                self._is_over = True
                return ""
            within = self.children(node)
            return f"<details><summary>{html.escape(to_text(node.label))}</summary>{within}</details>" if within else ""
        if kind == "popover" or (proto is not None and str(getattr(proto, "popover", "")).strip()):
            label = proto.popover.label if proto is not None else ""
            return (
                f'<details class="read"><summary>{HELP}</summary>{self.children(node)}</details>'
                if label == HELP
                else ""
            )
        columns = [child for child in _children(node) if getattr(child, "type", "") == "column"]
        if columns:
            drawn = [(column.weight, self.children(column)) for column in columns]
            within = "".join(f'<div style="flex-grow:{weight}">{of}</div>' for weight, of in drawn if of)
            return f'<div class="columns" data-testid="stHorizontalBlock">{within}</div>' if within else ""
        within = self.children(node)
        if not within:
            return ""
        border = proto is not None and proto.flex_container.border
        names = " ".join(
            filter(None, (f"st-key-{key}" if key else "", "line" if key.startswith("line_") else "", "box" * border))
        )
        return f'<div class="{html.escape(names)}">{within}</div>' if names else within

    def _text(self, said: str) -> str:
        is_finding = said.startswith(":material/insights:")
        if is_finding and not self.drawn.finding:
            self.drawn.finding = " ".join(html.unescape(re.sub(r"<[^<>]*>", "", to_html(said))).split())
        return f'<div class="finding">{_lines(said)}</div>' if is_finding else f"<div>{_lines(said)}</div>"

    def _plot(self, proto: Any, key: str) -> str:
        spec = json.loads(proto.spec)
        layout = spec["layout"]
        for left_out in ("template", "paper_bgcolor", "plot_bgcolor"):  # the site has its own, light and dark
            layout.pop(left_out, None)
        said = proto.alt or to_text(_TITLE.sub("", layout.get("title", {}).get("text", "")))
        height = int(layout.get("height") or 400)
        beside = (
            " beside" if "xaxis2" in layout else ""
        )  # pictures beside each other, which a phone shows by moving them
        return self._box(
            {"part": "plot", "data": spec["data"], "layout": layout}, said, key + beside, f"height:{height}px"
        )

    def _component(self, proto: Any, key: str) -> str:
        name = proto.component_name.rpartition(".")[2].removeprefix(OURS)
        if name in NOT_DRAWN:
            return ""
        self.drawn.parts[name] = {"html": proto.html_content, "css": proto.css_content, "js": proto.js_content}
        figure: dict[str, Any] = {"part": name}
        if proto.WhichOneof("data") == "bytes":
            figure["bytes"] = proto.bytes
        else:
            figure["data"] = json.loads(proto.json)
        return self._box(figure, "", key)

    def _box(self, figure: dict[str, Any], said: str, key: str, style: str = "") -> str:
        self.drawn.figures.append(figure)
        role = f' role="img" aria-label="{html.escape(said)}"' if said else ""
        name = f" st-key-{html.escape(key)}" if key else ""
        drawn = f'<div class="figure{name}" data-figure="{len(self.drawn.figures) - 1}"{role} style="{style}"></div>'
        return f'<div class="wide">{drawn}</div>' if figure["part"] == "plot" else drawn


def _children(node: Any) -> Iterator[Any]:
    yield from (getattr(node, "children", None) or {}).values()


def _all_below(node: Any) -> Iterator[Any]:
    for child in _children(node):
        yield child
        yield from _all_below(child)


def _key_of(node: Any) -> str:
    """The key that the dashboard gave an element; empty where it gave none."""
    found = _KEY.match(str(getattr(getattr(node, "proto", None), "id", "") or ""))
    return "" if found is None or found[1] == "None" else found[1]


def _lines(markdown: str) -> str:
    """Markdown as HTML, with its line ends."""
    return "<br>".join(to_html(line) for line in re.split(r" {2}\n", markdown)).replace("</p><br><p>", "<br>")
