"""The whole path of an included sentence on Start: it stands before any model is loaded, from assets/start_path.bin.

The file holds what the browser gets: one block of the six is in it, and other blocks are opened in the view of the whole path.
"""

from __future__ import annotations

import json
import struct
from functools import cache
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.charts.stand_alone.page import PagePart
from components.folders import ASSETS
from dashboard import navigation, state
from dashboard.declared.stops import STOPS, VIEW
from dashboard.jobs import warm_up
from dashboard.sharing import report
from dashboard.ui import browser
from dashboard.ui.whole_path.component import component

if TYPE_CHECKING:
    from collections.abc import Callable

    from components.model.backend import Backend

PATH = ASSETS / "start_path.bin"
SENTENCES = ("The children skipped stones by the bank of the river.", "I put money in the bank.")
TOKEN, BLOCK, HEAD = 7, 0, 4  # "bank", in the head that looks from it at "river"
_KEY = "start_path"
_ASKS = "_start_asks"  # session key: whether the browser is to say once that it has drawn the path
_FIRST = "look"  # the stop that is open


def revision() -> str:
    """The checksum of the weights that gave the file's numbers."""
    return str(_read()[0]["revision"])


def draw(take: Callable[[str], bool]) -> None:
    """Draw the path; what the file does not hold, and each stop's own numbers, open in the view of the whole path.

    `take` makes a text that was typed meanwhile the session's sentences, and returns whether it has any.
    """
    component()(
        key=_KEY,
        data=_stored(st.session_state.setdefault(_ASKS, not warm_up.is_torch_imported())),
        on_drawn_change=lambda: None,
        on_want_change=lambda: None,
        on_place_change=lambda: None,
        on_open_change=lambda: None,
    )
    report.add(_KEY, PagePart(message=f"The whole path of “{SENTENCES[0]}”."))
    sent = browser.sent_by(_KEY, "open")  # not by a callback, which cannot go to another page
    if not isinstance(sent, list | tuple) or len(sent) not in (4, 5) or not browser.is_one_of(sent[0], STOPS):
        return
    stop, token, block, head, *typed = sent
    if typed and isinstance(typed[0], str) and take(typed[0]):
        navigation.go_to(VIEW, path_stop=stop)
    elif all(browser.is_index(value, 1_000) for value in (token, block, head)):
        state.put("sentences", SENTENCES)
        navigation.go_to(
            VIEW, path_stop=stop, tokens=(token, 6), sentence_a=0, sentence_b=2, block=block, head=head, only_left=False
        )


def is_drawn() -> bool:
    """Whether the browser has just said that it has drawn the path."""
    return bool(browser.sent_by(_KEY, "drawn"))


@cache
def _read() -> tuple[dict[str, Any], bytes]:
    """What the file says of its numbers, and the numbers."""
    data = PATH.read_bytes()
    length = struct.unpack("<I", data[:4])[0]
    return json.loads(data[4 : 4 + length]), data[4 + length :]


@cache
def _stored(asks: bool) -> bytes:
    """What the file holds, with the words that the dashboard has today."""
    facts, numbers = _read()
    facts = facts | {
        "names": facts["names"] | {key: name for key, (name, _) in STOPS.items() if key != "pool"},
        "hints": {key: hint for key, (_, hint) in STOPS.items()},
        "more": dict.fromkeys(STOPS, "Open with your own sentence"),
        "asksWhenDrawn": asks,
    }
    text = json.dumps(facts).encode()
    return struct.pack("<I", len(text)) + text + numbers


def measured(backend: Backend) -> bytes:
    """The file's content, measured with a model."""
    from components.analysis.similarity.baseline import measure_sample
    from components.retrieval.corpora.demo import demo_sentences
    from dashboard.ui.whole_path.packed import Path, arrays_of, facts_of, packed, unrelated

    path = Path(backend, SENTENCES, None)
    facts = facts_of(path) | {
        "revision": backend.revision,
        "stops": list(STOPS),
        "place": [_FIRST, TOKEN, BLOCK, HEAD, False],
        "opened": [BLOCK],  # the blocks that can be opened here
        "unrelated": unrelated(measure_sample(backend.run, demo_sentences()), backend.own_pooling),
        "canLookLeft": False,
    }
    return packed(facts, arrays_of(path, ["all", f"all.{BLOCK}"]))
