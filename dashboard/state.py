"""The session's settings, and how they are read from the address and written to it.

dashboard/declared has the table of settings and views: an address is /<page>?v=<view>&<settings of the view>. The values are
kept under session keys that belong to no widget, because Streamlit forgets a widget's value when its page is left. An invalid
value in an address is replaced by the default, with a notice.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import streamlit as st

from components import packing
from components.errors import UserError
from dashboard.declared import older, table
from dashboard.declared.table import SETTING, SETTINGS, VIEW
from dashboard.settings import Setting

NOTICE_SECONDS = 8.0
_RESTORED = "_restored"  # session key: the names of settings to how often they were restored
_ARRIVALS = "_arrivals"  # session key
EXPECTED_REVISIONS = "_expected_revisions"  # session key: model keys to the revisions that a session file names
_READ = "_settings_read"  # session key: the names of the settings that the view under way has read
_POSTPONED = "_address_postponed"  # session key
SHOWN_VIEW = "_view"  # session key: the page and the view that are being drawn, or were drawn last
OF_SENTENCES = {"s", "t"}  # the keys that a short address leaves out: the sentences, and the tokens chosen in them
ADDRESS_LIMIT = 8_000  # characters: longer links break in mail programs and proxies
PACKED = "zip"  # the key of long texts in an address that would be too long without it
LONG = 80  # characters of a setting's texts that are packed, and left out if that is not enough

MODELS = ("model", "model2", "cross_encoder")  # the settings that name a model
# What a person has put together: no Back, no reset of the settings, and no session file without one takes it away.
KEPT = ("lecture", "lecture_place")
COMPARED = "compared_models"  # the setting that names several
MOST_NAMED = 3  # keys or values of a link that a notice names
_SHOWN_AT = "_shown_at"  # session key: a path, and the page that it shows since its address named a view of that one


def get(name: str) -> Any:
    """The session's value of a setting."""
    if (read := st.session_state.get(_READ)) is not None:
        read.add(name)
    return peek(name)


def peek(name: str) -> Any:
    """As `get`, where a setting is read for an address or for what is opened next, and not for what a view draws."""
    return st.session_state.get(name, SETTING[name].default)


def length_within(most: int, published: int) -> int | None:
    """The chosen maximum length in tokens, of `most` at most; None for the `published` one of a model."""
    chosen = get("max_length")
    length = None if chosen is None else min(max(3, int(chosen)), most)
    return None if length == published else length


def watch() -> None:
    """Note from now on which settings are read: a view begins to be drawn."""
    st.session_state[_READ] = set()


def read_until_now() -> frozenset[str]:
    """The names of the settings that were read since `watch`."""
    return frozenset(st.session_state.get(_READ, ()))


def stop_watching() -> frozenset[str]:
    """The names of the settings that were read since `watch`: those that the view uses."""
    return frozenset(st.session_state.pop(_READ, ()))


def default(name: str) -> Any:
    """A setting's value before a person has chosen."""
    return SETTING[name].default


def put(name: str, value: Any) -> None:
    """Set a setting. Raises KeyError for a name that is not in the table."""
    if name not in SETTING:
        raise KeyError(name)
    st.session_state[name] = value
    if name == "sentences":  # a sentence that is no longer there is nobody's choice
        for chosen, most in (("sentence_a", len(value) - 1), ("sentence_b", len(value))):
            if (peek(chosen) or 0) > most:
                st.session_state[chosen] = default(chosen)


def view_of(page: str) -> str:
    """The key of the view that is open on a page, or will be when the page is opened."""
    views = [view.key for view in table.views_of(page)]
    chosen = peek(table.view_setting(page)) if len(views) > 1 else views[0]
    return chosen if chosen in views else views[0]


def shown_view() -> str:
    """The key of the view that is being drawn, or was drawn last; empty before the first one."""
    return str(st.session_state.get(SHOWN_VIEW, ("", ""))[1])


def open_view(view: str) -> None:
    """Let the page on which a view stands show it."""
    page = table.place_of(view)
    if len(table.views_of(page)) > 1:
        put(table.view_setting(page), view)


def is_in_view(name: str, page: str) -> bool:
    """Whether the view that is open on a page uses a setting."""
    return name in table.VIEWS[view_of(page)].settings


def reset() -> None:
    """Restore the default of every setting."""
    with restoring():
        for setting in SETTINGS:
            if setting.name not in KEPT:
                st.session_state.pop(setting.name, None)
    st.session_state.pop("_notices", None)
    st.session_state.pop(EXPECTED_REVISIONS, None)


def restorations(name: str) -> int:
    """How often Back, Forward, a reset or a lesson has changed a setting's value in this session.

    A widget that has not been drawn since, as in a closed panel, keeps the value before in the browser, which sends it
    again with the next click. So each of these changes needs a new widget.
    """
    return int(st.session_state.get(_RESTORED, {}).get(name, 0))


@contextlib.contextmanager
def restoring() -> Iterator[None]:
    """For changes that no widget made: counts the settings whose values change within it (see `restorations`)."""
    before = {setting.name: peek(setting.name) for setting in SETTINGS}
    yield
    counts: dict[str, int] = st.session_state.setdefault(_RESTORED, {})
    for name, value in before.items():
        if peek(name) != value:
            counts[name] = counts.get(name, 0) + 1


def read_address(path: str, history: bool = False) -> str:
    """Copy the address into the session in its first run (a person opened a link), and after Back or Forward.

    Returns the page to show: that of the view that the address named, else that of the path. The server corrects a path
    that is not the view's before Streamlit sees it; who comes here by another way sees the view all the same.

    In every other run the session has written the address itself, and the browser may send one that is a click
    old. `history` means that Back or Forward caused this run. An address without values is then the state just
    after a page change, before the session wrote its own: it says nothing about model and sentences.
    """
    if st.session_state.get("_address") is not None and not history:
        # Not by the address of every run: it may be that of the page before.
        shown = st.session_state.get(_SHOWN_AT, ("", ""))
        return str(shown[1]) if shown[0] == path else path
    named = table.PLACE.get("".join(st.query_params.get_all(VIEW)), path)
    st.session_state[_SHOWN_AT] = (path, named)
    page = named
    if history:
        with restoring():
            _take_address(page, keep=KEPT)
        # Writing an address adds a step to the browser's history, so wait until a setting changes again.
        st.session_state["_held"] = address_of(page)[0]
    else:
        _take_address(page)
    return page


def arrivals() -> int:
    """How often an address has set what a page shows: when the session began, and after each Back or Forward."""
    return int(st.session_state.get(_ARRIVALS, 0))


def _take_address(page: str, keep: tuple[str, ...] = ()) -> None:
    st.session_state[_ARRIVALS] = arrivals() + 1
    address = {key: st.query_params.get_all(key) for key in st.query_params}
    apply(page, unpacked(page, address), keep)
    st.session_state["_address"] = (page, address)


def unpacked(page: str, address: dict[str, list[str]]) -> dict[str, list[str]]:
    """An address with the texts that were packed; without them, and with a notice, if they are damaged."""
    try:
        return with_packed(address)
    except ValueError as problem:
        key = _packed_key(address)
        notice(f"The link's long texts (“{key}”) were ignored: {problem}.")
        return {other: texts for other, texts in address.items() if other != key}


def with_packed(address: dict[str, list[str]]) -> dict[str, list[str]]:
    """An address with the texts that were packed, also by an older form. Raises ValueError if they are damaged."""
    key = _packed_key(address)
    if not key:
        return address
    words, others = address[key], {other: texts for other, texts in address.items() if other != key}
    if len(words) != 1 or len(words[0]) > ADDRESS_LIMIT:
        raise ValueError("it is longer than a link can be")
    texts = packing.unpack(words[0])
    if key == older.PACKED and VIEW in others:  # the server has translated all but what was packed
        texts = older.unpacked("".join(others[VIEW]), texts)
    return texts | others


def _packed_key(address: dict[str, list[str]]) -> str:
    """The key of an address's packed texts; empty if it has none."""
    return next((key for key in (PACKED, older.PACKED) if key in address), "")


def open_address(page: str, address: dict[str, list[str]], keep: tuple[str, ...] = ()) -> None:
    """Give the session what an address of a page says, as a link would. The page is still to be changed.

    `keep`: the names of settings whose values stay, whatever the address says.
    """
    with restoring():
        apply(page, address, keep)


def apply(page: str, address: dict[str, list[str]], keep: tuple[str, ...] = ()) -> None:
    """Copy a page's address into the session; an invalid value gives the default and a notice.

    `keep`: the names of settings whose values stay, whatever the address says.
    """
    st.session_state.pop("_anchors", None)  # the token positions in the address belong to its own sentences
    address = older.translated(page, address)
    known, ignored = {VIEW}, _open_named_view(page, address)
    in_view = table.VIEWS[view_of(page)].settings
    for setting in SETTINGS:
        used = setting.name in in_view
        if not used and not setting.shared:
            continue
        # A shared value that this view does not use is kept for the others; older links contain such values.
        known.add(setting.short)
        if setting.name in keep:
            continue
        if setting.short not in address:
            # An address that leaves a value out means its default.
            if used and (address or not setting.shared):
                st.session_state.pop(setting.name, None)
            continue
        if problem := _take(setting, address[setting.short]):
            value = ", ".join(address[setting.short])[:60]
            ignored.append(
                f"The link's value for the {setting.label} (“{setting.short}={value}”) was ignored: {problem}."
            )
    for text in ignored[:MOST_NAMED]:
        notice(text)
    if (further := len(ignored) - MOST_NAMED) > 0:
        notice(f"{further} more value{' of the link was' if further == 1 else 's of the link were'} ignored.")
    if unknown := sorted(address.keys() - known):
        notice(f"This page does not use the link's {_named(unknown)}.")


def _open_named_view(page: str, address: dict[str, list[str]]) -> list[str]:
    """Open the view that an address names, else a page's first one; returns what was ignored, in sentences."""
    choice = table.view_choice(page)
    if VIEW not in address:
        st.session_state.pop(choice.name, None)
        return []
    # A page with one view has no such setting; an address can still ask for another view, or for two.
    problem = (_take if choice.name in SETTING else _problem_of)(choice, address[VIEW])
    value = ", ".join(address[VIEW])[:60]
    return [f"The link's value for the view (“{VIEW}={value}”) was ignored: {problem}."] if problem else []


def _named(keys: Sequence[str]) -> str:
    """Keys in words: at most MOST_NAMED of them, and how many more there are."""
    names, further = [f"“{key[:30]}”" for key in keys[:MOST_NAMED]], len(keys) - MOST_NAMED
    if further > 0:
        return f"{', '.join(names)} and {further} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _problem_of(setting: Setting, texts: list[str]) -> str:
    """Why a setting does not take these texts; empty if it does."""
    try:
        setting.parse(texts)
    except (ValueError, UserError) as problem:
        return str(problem).rstrip(".")
    return ""


def texts_key(name: str) -> str:
    """The session key of the texts for which a token was chosen, by its position, in the setting of this name."""
    return f"_{name}_of"


def forget_texts(name: str) -> None:
    """Let the value of a setting belong to the texts with which it is shown next, whatever those before were."""
    st.session_state.pop(texts_key(name), None)


def _take(setting: Setting, texts: list[str]) -> str:
    """Give a setting the value that somebody else's texts stand for; its default if they are invalid, and the reason."""
    forget_texts(setting.name)  # a position in an address belongs to the sentences of the address
    try:
        put(setting.name, setting.parse(texts))
    except (ValueError, UserError) as problem:
        st.session_state.pop(setting.name, None)
        return str(problem).rstrip(".")
    if setting.name in MODELS or setting.name == COMPARED:
        st.session_state.setdefault("_linked_models", set()).update(_models_of(setting.name))
    return ""


def _models_of(name: str) -> tuple[str, ...]:
    """The keys of the models that a setting names."""
    value = peek(name)
    return () if not value else value if isinstance(value, tuple) else (value,)


def named_models() -> dict[str, str]:
    """The key of each model that this session has chosen, by the setting that names it; of several, with its number."""
    found = {name: peek(name) for name in MODELS if peek(name)}
    return found | {f"{COMPARED} {number}": key for number, key in enumerate(_models_of(COMPARED), start=1)}


def chosen() -> dict[str, list[str]]:
    """The texts of every setting that this session has a value for, by the setting's name."""
    found: dict[str, list[str]] = {}
    for setting in SETTINGS:
        has_value = _is_always_named(setting) or st.session_state.get(setting.name) is not None
        if has_value and (texts := _texts_of(setting)) is not None:
            found[setting.name] = texts
    return found


def _is_always_named(setting: Setting) -> bool:
    """Whether its default is named too."""
    return bool(peek(setting.always)) if isinstance(setting.always, str) else setting.always


def apply_chosen(values: dict[str, list[str]]) -> list[str]:
    """Give every setting its value in `values`, by name, or else its default; returns what was ignored, in sentences."""
    st.session_state.pop("_anchors", None)
    ignored = []
    for setting in SETTINGS:
        if setting.name not in values:
            if setting.name not in KEPT:
                st.session_state.pop(setting.name, None)
        elif problem := _take(setting, values[setting.name]):
            ignored.append(f"The {setting.label} was ignored: {problem}.")
    if unknown := sorted(values.keys() - SETTING.keys()):
        ignored.append(f"There is no setting {_named(unknown)}.")
    return ignored


def address_of(page: str) -> tuple[dict[str, list[str]], bool]:
    """The open view of a page and those of its settings that differ from their defaults; whether all of them have room.

    Where the address would be too long, its long texts are packed; if it still is, it goes without the sentences, and at
    last without all long texts.
    """
    address = _whole(page)
    rest = {key: texts for key, texts in address.items() if key not in OF_SENTENCES}
    for written, has_room in ((address, True), (_packed(address), True), (rest, False), (_packed(rest), False)):
        if size_of(_items(written)) <= ADDRESS_LIMIT:
            return written, has_room
    return {key: texts for key, texts in rest.items() if size_of(_items({key: texts})) <= LONG}, False


def _whole(page: str) -> dict[str, list[str]]:
    """The open view, and the texts of its settings that differ from their defaults, by address key, however long."""
    view = view_of(page)
    address = {VIEW: [view]} if len(table.views_of(page)) > 1 else {}
    for setting in table.settings_in(view):
        is_default = peek(setting.name) == setting.default
        if (
            is_default
            and not _is_always_named(setting)
            and not (setting.if_chosen and setting.name in st.session_state)
        ):
            continue
        texts = _texts_of(setting)
        if texts is not None:
            address[setting.short] = texts
    return address


def _packed(address: dict[str, list[str]]) -> dict[str, list[str]]:
    long = {key: texts for key, texts in address.items() if size_of(_items({key: texts})) > LONG}
    short = {key: texts for key, texts in address.items() if key not in long}
    return short | ({PACKED: [packing.pack(long)]} if long else {})


def _texts_of(setting: Setting) -> list[str] | None:
    """What an address writes for a setting's value; None for one that cannot be written: it must not make the page fail."""
    with contextlib.suppress(TypeError, ValueError):
        texts = setting.show(peek(setting.name))
        if all(isinstance(text, str) for text in texts):
            return texts
    return None


def _items(address: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(key, text) for key, texts in address.items() for text in texts]


def size_of(items: list[tuple[str, str]]) -> int:
    """The characters of an address with these keys and texts."""
    return sum(len(key) + len(quote(text, errors="replace")) + 2 for key, text in items)


def postpone_address() -> None:
    """Let the next run write the address only after it has drawn its page: the view that opens may have values to set."""
    st.session_state[_POSTPONED] = True


def write_address(page: str, before_drawing: bool = False) -> None:
    """Write the page's open view and its settings to the address."""
    if before_drawing and st.session_state.pop(_POSTPONED, False):
        return
    address, _ = address_of(page)
    if st.session_state.get("_held") == address:
        return
    st.session_state.pop("_held", None)
    # Of two quick clicks the second can come with the address of before the first one's was written: by then it has its own
    # again, which the first one's, still on its way to the browser, would replace.
    before, last = st.session_state.get("_address") or (page, address)
    is_overtaken = before == page and last != address
    if is_overtaken or {key: st.query_params.get_all(key) for key in st.query_params} != address:
        st.query_params.from_dict(address)
    st.session_state["_address"] = (page, address)


def notice(text: str, page: str = "") -> None:
    """Show a message for some seconds: at the top of every page, or on one page, above its view."""
    st.session_state.setdefault("_notices", []).append(_Notice(text, page=page))


def notice_while(name: str, value: Any, text: str) -> None:
    """Show a message for some seconds, as long as a setting has this value, in the views that use the setting."""
    st.session_state.setdefault("_notices", []).append(_Notice(text, name, ((name, value),)))


def refuse(name: str, replacement: Any, text: str) -> None:
    """Replace a setting's value that is not available, and say so for some seconds.

    The views that use the setting show the message, until the value, the model or the corpus changes.
    """
    put(name, replacement)
    situation = tuple((other, peek(other)) for other in dict.fromkeys((name, "model", "corpus")))
    st.session_state.setdefault("_notices", []).append(_Notice(text, name, situation))


def current_notices(page: str | None = None) -> list[str]:
    """The notices to show now: those of a page, and those about settings of its open view; without a page, all others.

    A page that waits for a job is drawn again, so each notice stays for some seconds. They count from when a view is drawn,
    which asks with its page: on a slow server the drawing itself may take longer than that.
    """
    kept = [item for item in st.session_state.get("_notices", ()) if item.is_current()]
    if page is not None:
        kept = [replace(item, since=time.monotonic()) if item.since is None else item for item in kept]
    st.session_state["_notices"] = kept
    if page is None:
        return [item.text for item in kept if not item.setting and not item.page]
    here = {table.view_setting(page), *table.VIEWS[view_of(page)].settings}
    return [item.text for item in kept if item.page == page or item.setting in here]


@dataclass(frozen=True)
class _Notice:
    text: str
    setting: str = ""  # the one that it is about, if any
    situation: tuple[tuple[str, Any], ...] = ()  # the settings and values with which it is true
    page: str = ""  # the page that shows it, if not all
    since: float | None = None  # when a view was drawn with it, by the monotonic clock in seconds; None before

    def is_current(self) -> bool:
        is_fresh = self.since is None or time.monotonic() - self.since < NOTICE_SECONDS
        return is_fresh and all(peek(name) == value for name, value in self.situation)
