"""The pictures of a lecture, in their order: a star at a figure notes the view with its settings, and which figure it is.

The list is a setting, so that the page of the lecture has an address and a session file holds it. What a picture showed is kept
beside it for the page that a person takes along: a figure of plotly's packed, of other pictures their numbers, and what the
browser has sent of them as a picture.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

import plotly.io
import streamlit as st

from components import VERSION
from components.charts.stand_alone import page as stand_alone
from components.charts.stand_alone.page import MOST_ROWS, Part
from components.model.tokenization import MAX_CHARACTERS
from dashboard import caching, state
from dashboard.declared import table
from dashboard.settings import MOST_PICTURES, is_star, untitled
from dashboard.sharing import report
from dashboard.ui import browser
from dashboard.ui.wording import counted

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

_SHOWN = "_lecture_shown"  # session key: what each picture showed when it was drawn last, by its star
# Session key: the stars of the pictures that are opened one after the other, from the open one on.
DRAWING = "_lecture_drawing"
_SENT = "_lecture_sent"  # session key: the pictures of which the browser has sent what it shows
PLACE = "lecture_place"  # setting: the number of the picture that is shown, from 0, while a lecture is given
_SAID = "_lecture_said"  # session key: at which figure what is said next, and its icon: a callback cannot draw
WAITING = "_lecture_waiting"  # session key: whether a lecture of an earlier session is offered on its page
_PLACES = "_lecture_places"  # session key: where the open view draws a figure that is not plotly's, by the figure's key
_BEFORE = "_lecture_before"  # session key: the list before a picture was taken out of it
_READ = "_lecture_read"  # session key: the pictures that were read, by their star
_MOST_UNPACKED = MAX_CHARACTERS + state.ADDRESS_LIMIT  # characters of all sentences, and of what else an address holds
_MOST_BYTES = 4 << 20  # of all packed figures and pictures: a session's memory is for small things
_MOST_CELLS = 20_000  # of a picture's numbers
MOST_TITLE = 80  # characters of a title of one's own
_MOST_URL = 1 << 20  # characters of a picture that a browser sends
_NOT_OF_A_PICTURE = ("projector", "lesson", "class_code")  # settings of how it is looked at


@dataclass(frozen=True)
class Picture:
    """A figure of a view with its settings."""

    page: str
    view: str
    address: Mapping[str, list[str]]
    figure: str

    @property
    def title(self) -> str:
        """The question that its view answers."""
        return table.VIEWS[self.view].question or table.PAGE_BY_KEY[self.page].question

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences that its address names; none where they are those of a new session, or cannot be read."""
        try:
            return tuple(table.SETTING["sentences"].parse(self.address.get("s", [])))
        except ValueError:
            return ()


@dataclass(frozen=True)
class Shown:
    """What a picture showed: its texts, its numbers or its figure, and the settings in words."""

    title: str
    part: Part  # without its figure
    figure: bytes  # plotly's JSON, packed; empty where there is none, or it is too large to be kept
    facts: tuple[str, ...]
    picture: bytes = b""  # WebP, of what is not drawn by plotly; empty until the browser has sent it
    small: bytes = b""  # the same of every picture, for the list of them
    is_dark: bool = False  # whether it was drawn in dark colours
    beside: Mapping[str, tuple[Part, bytes]] = field(
        default_factory=dict
    )  # by title: figures that it stands with, packed

    @property
    def size(self) -> int:
        """The bytes that are kept of its figures and picture."""
        return (
            len(self.figure)
            + len(self.picture)
            + len(self.small)
            + sum(len(packed) for _, packed in self.beside.values())
        )


def listed() -> tuple[str, ...]:
    """The stars in their order, without their titles. Not a setting that the view under way reads."""
    return tuple(map(untitled, _entries()))


def _entries() -> tuple[str, ...]:
    """The stars in their order; behind one that has a title of a person's own stands that."""
    entries: tuple[str, ...] = state.peek("lecture")
    return entries


def is_given() -> bool:
    """Whether a lecture is given: its pictures follow each other on the projector, without controls."""
    return st.session_state.get(PLACE) is not None


def shows(figure: str) -> bool:
    """Whether a lecture is given, and its picture is this figure."""
    place, stars = st.session_state.get(PLACE), listed()
    return place is not None and place < len(stars) and read(stars[place]).figure == figure


def title_of(noted: str) -> str:
    """What a picture is called: a person's own title, or else the question that its view answers."""
    if own := _own_title(noted):
        return own
    found = shown(noted)
    return read(noted).title if found is None else found.title


def _own_title(noted: str) -> str:
    """The title that a person gave a picture; empty where there is none."""
    entry = next((entry for entry in _entries() if untitled(entry) == noted), noted)
    return " ".join(unquote(entry.removeprefix(noted).removeprefix("#")).split())[:MOST_TITLE]  # a link may hold more


def title_above(view: str) -> str:
    """The title that a person gave the picture of this view which a lecture shows now; empty where there is none."""
    place, stars = st.session_state.get(PLACE), listed()
    if place is None or place >= len(stars) or read(stars[place]).view != view:
        return ""
    return _own_title(stars[place])


def retitle(noted: str, title: str) -> None:
    """Give a picture a title of one's own; an empty one, or the one that it has by itself, takes that away."""
    title = " ".join(title.split())[:MOST_TITLE]
    found = shown(noted)
    is_own = title not in ("", read(noted).title if found is None else found.title)
    entry = f"{noted}#{quote(title, safe='', errors='replace')}" if is_own else noted
    state.put("lecture", tuple(entry if untitled(each) == noted else each for each in _entries()))


def star_of(page: str, figure: str) -> str:
    """What is noted of a figure of the view that is open on a page, as it is now; empty if its texts are too long for it."""
    address, has_room = state.address_of(page)
    left_out = {table.SETTING[name].short for name in _NOT_OF_A_PICTURE}
    values = {key: texts for key, texts in address.items() if key not in left_out}
    query = urlencode(values, doseq=True, safe="/", quote_via=quote, errors="surrogatepass")
    noted = f"{page}?{query}#{quote(figure, safe='')}"
    return noted if has_room and is_star(noted) else ""


def read(star: str) -> Picture:
    """The picture of a star, unpacked once for the session. Of a view that there is no more it is the first of its page, and
    of such a page Start. Texts that are longer than a page takes count as none."""
    known: dict[str, Picture] = st.session_state.setdefault(_READ, {})
    if star not in known:
        known[star] = _read(star)
        if len(known) > MOST_PICTURES:
            del known[next(iter(known))]
    return known[star]


def _read(star: str) -> Picture:
    parts = urlsplit(star)
    try:
        address = parse_qs(parts.query, keep_blank_values=True, errors="surrogatepass")
    except UnicodeDecodeError:  # a link that was cut, or made by hand
        address = parse_qs(parts.query, keep_blank_values=True, errors="replace")
    page = parts.path if parts.path in table.PAGE_BY_KEY else table.PAGES[0].key
    address = state.unpacked(page, address)
    if sum(len(text) for texts in address.values() for text in texts) > _MOST_UNPACKED:
        address = {table.VIEW: address.get(table.VIEW, [])}
    view = "".join(address.get(table.VIEW, []))
    if view not in table.VIEWS:
        view = table.views_of(page)[0].key
    return Picture(table.place_of(view), view, address, unquote(parts.fragment))


def star(page: str, figure: str, part: Part, numbers: Callable[[], pd.DataFrame], place: str = "") -> None:
    """Draw the button that puts a figure of a page into the lecture, or takes it out.

    `place` is the CSS selector of what the browser sends as a picture, of a figure that is not plotly's.
    """
    noted = star_of(page, figure)
    is_in = noted in listed()
    st.session_state.setdefault(_PLACES, {})[figure] = place
    if is_in:
        _keep(page, noted, part, numbers)
    if st.session_state.get(_SAID, ("",))[0] == figure:
        _, said, icon = st.session_state.pop(_SAID)
        st.toast(said, icon=icon)
    with st.container(key=f"star_{'in' if is_in else 'out'}_{figure}", width="content"):
        st.button(
            "Take out of my lecture" if is_in else "Put into my lecture",
            icon=":material/star:",
            key=f"star_{figure}",
            help="Takes this picture out of your lecture"
            if is_in
            else "Puts this picture, with its sentences and settings, into your lecture",
            on_click=_toggle,
            args=(page, figure),
        )
    if is_in:
        _ask_for_picture(noted, figure, part, place)
        if was_sent(noted) and noted in st.session_state.get(DRAWING, ())[:1]:
            st.rerun()  # also where a part of the page alone is drawn anew: the next picture is opened


def place_of(figure: str) -> str:
    """The CSS selector of a figure that is not plotly's, once it is drawn; empty for others."""
    return str(st.session_state.get(_PLACES, {}).get(figure, ""))


def _ask_for_picture(noted: str, figure: str, part: Part, place: str) -> None:
    """Let the browser send what it shows, anew where the finding has changed; of plotly's figures (no `place`) small only."""
    drawn = hashlib.sha256(f"{noted} {part.message} {_is_dark()}".encode(errors="surrogatepass")).hexdigest()
    key = f"kept_{figure}"
    browser.web_component("keep_picture", "<i></i>", "snapshot")(
        key=key,
        data={"place": place, "plots": [f".st-key-beside_{figure}", f".st-key-{figure}"], "of": drawn},
        on_picture_change=partial(_take_picture, noted, drawn, key),
        height=0,
        width="content",
    )


def _take_picture(noted: str, drawn: str, key: str) -> None:
    """Keep a picture that the browser has sent, if there is room for it."""
    sent = browser.sent_by(key, "picture")
    known: dict[str, Shown] = st.session_state.get(_SHOWN, {})
    if not isinstance(sent, dict) or sent.get("of") != drawn or noted not in known:
        return
    st.session_state[_SENT] = st.session_state.get(_SENT, frozenset()) | {noted}
    now = replace(known[noted], picture=webp_of(sent.get("url")), small=webp_of(sent.get("small")))
    if now.size + sum(other.size for star, other in known.items() if star != noted) <= _MOST_BYTES:
        _remember(noted, now)


def webp_of(url: object) -> bytes:
    """The picture in a data URL as a browser writes it; empty for anything else, and for what is too large."""
    begin = "data:image/webp;base64,"
    if not isinstance(url, str) or not url.startswith(begin) or len(url) > _MOST_URL:
        return b""
    try:
        picture = base64.b64decode(url.removeprefix(begin), validate=True)
    except ValueError:
        return b""
    return picture if picture[:4] == b"RIFF" and picture[8:12] == b"WEBP" else b""


def _toggle(page: str, figure: str) -> None:
    noted, stars = star_of(page, figure), listed()
    if not noted:
        said = "These sentences are too long to be kept with a picture. “Session” saves them as a file."
        st.session_state[_SAID] = (figure, said, ":material/block:")
    elif noted in stars:
        take_out(noted)
    elif len(stars) >= MOST_PICTURES:
        st.session_state[_SAID] = (figure, f"A lecture has at most {MOST_PICTURES} pictures.", ":material/block:")
    else:
        state.put("lecture", (*_entries(), noted))
        count = counted(len(stars) + 1, "picture")
        said = f"**My lecture** now has {count}."
        if st.session_state.get(WAITING):
            said += " That of your last visit waits there: “Use again” joins the two."
        st.session_state[_SAID] = (figure, said, ":material/star:")


def _keep(page: str, noted: str, part: Part, numbers: Callable[[], pd.DataFrame]) -> None:
    """Keep what a picture of the lecture shows now, and of no other picture than those of the list."""
    known: dict[str, Shown] = st.session_state.setdefault(_SHOWN, {})
    if (found := shown(noted)) is not None and (found.part.message, found.is_dark) == (part.message, _is_dark()):
        return
    wanted = {*listed(), *map(untitled, st.session_state.get(_BEFORE, ()))} - {noted}
    for gone in known.keys() - wanted:
        del known[gone]
    kept, packed = _packed(part, numbers, sum(other.size for star, other in known.items() if star != noted))
    title = table.VIEWS[state.view_of(page)].question or part.title
    facts = tuple(
        f"{fact.name}: {', '.join(fact.values)}"
        for fact in report.facts_of(page)
        if fact.setting not in _NOT_OF_A_PICTURE
    )
    st.session_state[_SENT] = st.session_state.get(_SENT, frozenset()) - {noted}  # another picture, which is sent anew
    _remember(noted, Shown(title, kept, packed, facts, is_dark=_is_dark()))


def _packed(part: Part, numbers: Callable[[], pd.DataFrame], others: int) -> tuple[Part, bytes]:
    """A part with the first of its numbers, and its figure packed; empty if there is no room beside the bytes of `others`."""
    numbered = numbers()
    rows = numbered.head(min(MOST_ROWS, max(1, _MOST_CELLS // max(1, len(numbered.columns)))))
    packed = b"" if part.figure is None else zlib.compress(part.figure.to_json().encode())
    return replace(part, figure=None, table=rows), packed if len(packed) + others <= _MOST_BYTES else b""


def add_beside(page: str, figure: str, part: Part, numbers: Callable[[], pd.DataFrame]) -> None:
    """Add to a picture of the lecture a figure that stands beside it and has no star of its own."""
    if not listed():
        return
    noted, title = star_of(page, figure), stand_alone.title_of(part.figure)
    found = shown(noted) if noted in listed() else None
    if found is not None and title not in found.beside:
        kept = _packed(part, numbers, sum(other.size for other in st.session_state[_SHOWN].values()))
        _remember(noted, replace(found, beside={**found.beside, title: kept}))


def add_texts(page: str, figure: str, *, read: str = "", not_shown: str = "", markup: str = "") -> None:
    """Add to a picture of the lecture what the page says of it once it is drawn: how it is read, or HTML that belongs to it."""
    if not listed():
        return
    noted = star_of(page, figure)
    if noted in listed() and (found := shown(noted)) is not None:
        part = replace(found.part, markup=markup or found.part.markup)
        if read:
            part = replace(part, read=read, not_shown=not_shown)
        _remember(noted, replace(found, part=part))


def shown(noted: str) -> Shown | None:
    """What a picture showed; None if it has not been drawn in this session, nor before in this tab of the browser."""
    known: dict[str, Shown] = st.session_state.setdefault(_SHOWN, {})
    if noted not in known and caching.is_visitor_known():
        found = caching.lecture_pictures().find((caching.visitor(), noted))
        if found is not None and found.size + sum(other.size for other in known.values()) <= _MOST_BYTES:
            known[noted] = found
    return known.get(noted)


def was_sent(noted: str) -> bool:
    """Whether the browser has sent a picture as it is now, even one for which there was no room."""
    return noted in st.session_state.get(_SENT, frozenset())


def is_drawn(noted: str) -> bool:
    """Whether the exported page has a picture in the colours of now: its figure, or what the browser has sent of it."""
    found = shown(noted)
    if found is None or found.is_dark != _is_dark():
        return False
    return bool(found.figure or found.picture) or was_sent(noted)


def _is_dark() -> bool:
    """Whether the page has dark colours."""
    return st.context.theme.type == "dark"


def begin_drawing() -> None:
    """Let the next runs open the pictures that have not been drawn, or in other colours, until each has been sent."""
    lacking = tuple(noted for noted in listed() if not is_drawn(noted))
    st.session_state[_SENT] = st.session_state.get(_SENT, frozenset()) - set(lacking)
    st.session_state[DRAWING] = ("", *lacking)


def keep_for_tab() -> None:
    """Keep what this session has seen of its pictures for one that follows it in the same tab, once the tab is known."""
    if caching.is_visitor_known():
        for noted, found in st.session_state.get(_SHOWN, {}).items():
            caching.lecture_pictures().put((caching.visitor(), noted), found)


def _remember(noted: str, found: Shown) -> None:
    """Keep what a picture shows for the session, and for one that follows it in the same tab, as after a reload."""
    st.session_state.setdefault(_SHOWN, {})[noted] = found
    if caching.is_visitor_known():
        caching.lecture_pictures().put((caching.visitor(), noted), found)


def take_out(noted: str) -> None:
    """Take a picture out of the list, which `bring_back` undoes."""
    entries = _entries()
    st.session_state[_BEFORE] = entries
    state.put("lecture", tuple(entry for entry in entries if untitled(entry) != noted))


def can_bring_back() -> bool:
    """Whether the list is still the one from which a picture was taken out last."""
    before: tuple[str, ...] = st.session_state.get(_BEFORE, ())
    return bool(before) and set(listed()) < set(map(untitled, before))


def bring_back() -> None:
    """Put the picture that was taken out last where it was."""
    state.put("lecture", st.session_state.pop(_BEFORE))


def reorder(order: object) -> None:
    """Put the pictures in an order of their stars. What is not an order of them all changes nothing."""
    if isinstance(order, list) and all(isinstance(noted, str) for noted in order) and sorted(order) == sorted(listed()):
        by_star = {untitled(entry): entry for entry in _entries()}
        state.put("lecture", tuple(by_star[noted] for noted in order))


def to_bytes(pictures: Sequence[tuple[str, Shown | None]], is_dark: bool = False) -> bytes:
    """The lecture as one page of HTML in light or dark colours: the title of each picture, and what it showed.

    A picture that was drawn in the other colours counts as lacking.
    """
    parts: list[Part] = []
    for number, (title, found) in enumerate(pictures, start=1):
        if found is None or found.is_dark != is_dark:
            text = "This picture has not been drawn in the session that saved the lecture."
            parts.append(Part(title=f"{number}. {title}", message=text))
            continue
        facts = "<br>".join(map(html.escape, found.facts))
        parts.append(Part(title=f"{number}. {title}", markup=f'<p class="facts">{facts}</p>'))
        drawn = base64.b64encode(found.picture).decode()
        image = f'<img class="drawn" alt="{html.escape(found.part.title)}" src="data:image/webp;base64,{drawn}">'
        markup = f"{image if found.picture else ''}{found.part.markup}"
        read = _without_actions(found.part.read, "click|arrow keys|hover" if found.picture else "click|arrow keys")
        parts.append(replace(found.part, figure=_unpacked(found.figure), markup=markup, title="", read=read))
        parts += [replace(part, figure=_unpacked(packed)) for part, packed in found.beside.values()]
    day = date.today()
    footer = f"BERT Internals {VERSION}, {day.day} {day:%B %Y}."
    return stand_alone.page("My lecture", parts, footer, has_keys=True, is_dark=is_dark).encode()


def _without_actions(text: str, actions: str) -> str:
    """A text without its sentences, or their parts between semicolons, that say what a person can do on the page alone."""
    kept = []
    for sentence in re.split(r"(?<=[.!?]) (?=[A-Z“*])", text):
        parts = [part for part in sentence.rstrip(".").split("; ") if not re.search(rf"\b(?:{actions})", part.lower())]
        if parts:
            kept.append("; ".join(parts) + "." * sentence.endswith("."))
    return " ".join(kept)


def _unpacked(figure: bytes) -> go.Figure | None:
    return plotly.io.from_json(zlib.decompress(figure)) if figure else None


def saver(stars: tuple[str, ...]) -> Callable[[], bytes]:
    """What makes the page of a lecture when a person saves it, which is not in a run of the session."""
    return partial(to_bytes, [(title_of(noted), shown(noted)) for noted in stars], _is_dark())
