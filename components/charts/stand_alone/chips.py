"""Rows of tokens as HTML that needs no script, drawn by the style of the page's own chips."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from components.folders import ASSETS

# The colours of a white page, which the dashboard's theme gives to the same style.
_COLOURS = (
    ".rows { --size: 1rem; --st-font: system-ui, sans-serif; --st-code-font: ui-monospace, monospace; "
    "--st-text-color: #1b2230; --st-background-color: #fff; --st-primary-color: #2463a6; margin: .6rem 0; } "
    ".rows .chip { cursor: default; }"
)


@cache
def style() -> str:
    """The style sheet of the rows."""
    return (ASSETS / "web" / "chips.css").read_text(encoding="utf-8") + _COLOURS


def rows(drawn: Sequence[Mapping[str, Any]]) -> str:
    """Rows of tokens, as assets/web/chips.js takes them; all texts are escaped."""
    return f'<div class="rows">{"".join(map(_row, drawn))}</div>'


def _row(row: Mapping[str, Any]) -> str:
    words = "".join(
        f'<span class="word tint{word["tint"]}">{"".join(map(_chip, word["tokens"]))}</span>' for word in row["words"]
    )
    return (
        f'<div class="row" role="group" aria-label="{_text(row["label"])}"><span class="number">{_text(row["number"])}</span>'
        f'<div class="flow" dir="{_text(row["direction"])}">{words}</div></div>'
    )


def _chip(token: Mapping[str, Any]) -> str:
    under = "".join(f"<small>{_text(line)}</small>" for line in token["under"])
    names = " ".join(("chip", *token["marks"]))
    return f'<span class="{_text(names)}" title="{_text(token["hint"])}">{_text(token["piece"])}{under}</span>'


def _text(value: object) -> str:
    """Text as HTML; characters that cannot be sent become question marks."""
    return html.escape(str(value).encode("utf-8", "replace").decode("utf-8"))
