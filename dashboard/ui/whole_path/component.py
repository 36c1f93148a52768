"""The browser's component that draws the whole path (assets/web/path*.js), and the sentences that stand beside it."""

from __future__ import annotations

from typing import Any

from dashboard.ui import browser

_PARTS = ("arrays", "path_drawing", "path_numbers", "path_words", "path_stops")
CAVEAT = (
    "Attention shows where a head looks, not why the model decides as it does. A strip's colours are numbers: a single cell "
    "has no meaning of its own."
)
_ICONS = {
    "before": "M15.4 5l-7 7 7 7 1.4-1.4L11.2 12l5.6-5.6z",
    "go": "M8 5v14l11-7z",
    "pause": "M7 5h4v14H7zm6 0h4v14h-4z",
    "after": "M8.6 5l7 7-7 7-1.4-1.4 5.6-5.6-5.6-5.6z",
}


def _icon(name: str) -> str:
    return f'<svg class="{name}" viewBox="0 0 24 24" aria-hidden="true"><path d="{_ICONS[name]}"/></svg>'


def _choice(name: str, label: str) -> str:
    """Numbers to choose from: buttons beside each other, or a list where there are many."""
    return (
        f'<div class="choice {name}" role="group" aria-label="{label}"><span>{label.lower()}</span><div class="row"></div>'
        f'<select aria-label="{label}"></select></div>'
    )


_HTML = (
    '<section class="path" aria-label="The whole path"><span class="probe"></span>'
    '<div class="top"><div class="say"><h3></h3><p class="line"></p><p class="found" aria-live="polite"></p>'
    '<button type="button" class="second" hidden>Add an example</button></div>'
    '<div class="side"><button type="button" class="left" role="switch" aria-checked="false"><i></i>only look left, as GPT'
    "</button>"
    '<div class="legend"><p>brown: below zero, green: above; the scale is not linear</p>'
    '<canvas width="240" height="1"></canvas><div></div></div></div></div>'
    '<div class="tokens" role="group" aria-label="Piece"></div>'
    '<div class="stage"><canvas tabindex="0" role="application" aria-label="The path from the sentence to its vector. Left and '
    "right: stop. Up and down: piece. Page up and down: block, or on a projector the next view. Comma and full stop: head. "
    'Space: play. The list and the table below say the same in words."></canvas><p class="tip" role="tooltip" hidden></p>'
    '<span class="here"></span><span class="front"></span></div>'
    '<div class="player"><div class="keys">'
    f'<button type="button" class="before" aria-label="Stop before">{_icon("before")}</button>'
    f'<button type="button" class="play" aria-label="Play">{_icon("go")}{_icon("pause")}</button>'
    f'<button type="button" class="after" aria-label="Next stop">{_icon("after")}</button></div>'
    '<div class="slide"><input type="range" min="1" max="8" step="1" aria-label="Stop">'
    '<ol class="marks" aria-hidden="true"></ol></div>'
    f"{_choice('blocks', 'Block')}{_choice('heads', 'Head')}</div>"
    '<div class="below"><button type="button" class="more"></button><button type="button" class="save">Save as picture</button>'
    "<details><summary>Numbers of this stop</summary><table></table></details>"
    '<details class="hints"><summary>Keys</summary><p class="caveat">← → stop · ↑ ↓ piece · Page ↑ ↓ block · “,” “.” head · '
    f'Space plays</p></details><p class="caveat">{CAVEAT}</p></div>'
    '<ol class="text" aria-label="The path in words"></ol></section>'
)


def component() -> Any:
    """The drawing. It reports "want", "place", "open" and "second"; see assets/web/path.js."""
    return browser.web_component("path", _HTML, *_PARTS)
