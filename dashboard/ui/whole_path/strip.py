"""The stops of the whole path in one line above a view that treats one of them: it is lit, and each leads to the path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard.declared.stops import STOPS
from dashboard.ui import browser

if TYPE_CHECKING:
    from dashboard.declared.stops import Stop

_KEY = "path_strip"


def strip(lit: Stop) -> Stop | None:
    """Draw the line. Returns the stop that was clicked, if one was, in the run that follows the click."""
    browser.web_component("path_strip", '<ol class="path-strip" aria-label="Stops of the whole path"></ol>')(
        key=_KEY,
        data={"lit": lit, "stops": [{"key": key, "name": name, "hint": hint} for key, (name, hint) in STOPS.items()]},
        on_opened_change=lambda: None,
    )
    sent = browser.sent_by(_KEY, "opened")
    return next((key for key in STOPS if key == sent), None)
