"""The address of the open view, to copy or to point a phone at."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

import segno
import streamlit as st

from components.shown_code.code import Command
from dashboard import state
from dashboard.declared import table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Settings of a session that change no number of a figure; a corpus changes those of figures that read it.
NO_NUMBERS = ("projector", "lesson", "class_code", "corpus")
OF_A_FILE = ("file", "path")  # values of settings that stand for a file of one's own
MOST_FOR_CODE = 400  # characters: a code for a longer address is too fine for a camera at the back of a room
CORPUS_FILE = "_corpus_file"  # session key: the key of the corpus, and the options by which a command reads its file
_HOME = "home"  # the page whose address has no path


def draw(page: str) -> None:
    """Draw the address, a code that a camera reads, and what a person has to know who passes it on."""
    values, has_room = state.address_of(page)
    url = address(st.context.url or "", page, values)
    st.code(url, language=None, wrap_lines=True)
    for note in notes(url, has_room):
        st.caption(note)
    if len(url) <= MOST_FOR_CODE:
        # White around the code and behind it in dark mode too: cameras look for dark on light.
        drawn = segno.make(url, error="m").svg_inline(scale=5, border=3, dark="#000", light="#fff")
        st.image(drawn, width=220, alt="A code with the address, for the camera of a phone")


def address(shown: str, page: str, values: Mapping[str, Sequence[str]]) -> str:
    """The address of a page with these values, on the server whose page the browser shows at `shown`."""
    parts = urlsplit(shown)
    root = f"{parts.scheme}://{parts.netloc}{parts.path.rsplit('/', 1)[0]}" if parts.netloc else ""
    query = urlencode(values, doseq=True, quote_via=quote, errors="surrogatepass")
    return f"{root}/{'' if page == _HOME else page}{'?' if query else ''}{query}"


def command(page: str, key: str, function: Callable[..., Any]) -> Command:
    """The command that prints the numbers of a figure of the open view, or why there is none."""
    values, has_room = state.address_of(page)
    read = {name: state.peek(name) for name in state.read_until_now()}
    key_of_corpus, of_corpus = st.session_state.get(CORPUS_FILE, ("", ()))
    of_corpus = of_corpus if read.get("corpus") == key_of_corpus else ()
    is_of_file = any(value in OF_A_FILE for value in read.values() if isinstance(value, str))
    if is_of_file or (read.get("corpus") and not of_corpus):
        return Command(function, lacks="they come from a file of this session, which no address holds")
    if not has_room:
        return Command(function, lacks="the texts are too long for an address")
    for name in NO_NUMBERS:
        values.pop(table.SETTING[name].short, None)
    held = address("", page, values)
    return Command(function, ("numbers", "--figure", key, *of_corpus, "--json", "-", "--", held))


def notes(url: str, has_room: bool) -> tuple[str, ...]:
    """What an address does not do, a sentence each: it leaves texts out, works on one computer only, or has no code."""
    found = []
    if not has_room:
        found.append(
            "The texts are too long for an address: it opens the view without them. “Session” saves them as a file."
        )
    if _is_of_this_computer(urlsplit(url).hostname or ""):
        found.append("It works on this computer only, where the dashboard runs.")
    if len(url) > MOST_FOR_CODE:
        found.append(
            f"It has {len(url):,} characters: too many for a code that a camera reads, which has room for {MOST_FOR_CODE}."
        )
    return tuple(found)


def _is_of_this_computer(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
