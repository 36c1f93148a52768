"""Every session key, its default, and how it stands in the address.

dashboard/settings.py has the table. Values live in session keys that are no widget's, because Streamlit forgets
a widget's value when its page is left. A value from an address that makes no sense is replaced by the default,
with a notice.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any
from urllib.parse import quote

import streamlit as st

from components.errors import UserError
from dashboard.settings import SETTINGS

NOTICE_SECONDS = 8.0
ADDRESS_LIMIT = 8_000  # characters: longer links break in mail programs and proxies

_BY_NAME = {setting.name: setting for setting in SETTINGS}


def get(name: str) -> Any:
    """The session's value of a setting."""
    return st.session_state.get(name, _BY_NAME[name].default)


def default(name: str) -> Any:
    """A setting's value before anybody chose."""
    return _BY_NAME[name].default


def put(name: str, value: Any) -> None:
    """Set a setting. Raises KeyError for a name that is not in the table."""
    if name not in _BY_NAME:
        raise KeyError(name)
    st.session_state[name] = value


def means_something(name: str, page: str) -> bool:
    """Whether a page uses a setting."""
    return page in _BY_NAME[name].pages


def reset() -> None:
    """Every setting back to its default."""
    for setting in SETTINGS:
        st.session_state.pop(setting.name, None)


def read_address(page: str, history: bool = False) -> None:
    """Take the address over into the session: on its first run (somebody opened a link), and on Back or Forward.

    In every other run the session itself wrote the address, and what the browser sends along may be a click
    behind. `history` says that the browser's Back or Forward asked for this run. A bare address is then the
    moment after a page change, before ours was written: it says nothing about model and sentences.
    """
    if st.session_state.get("_address") is not None and not history:
        return
    address = {key: st.query_params.get_all(key) for key in st.query_params}
    st.session_state.pop("_anchors", None)  # the choices of the address are positions in its own sentences
    linked: set[str] = st.session_state.setdefault("_linked_models", set())
    known = set()
    for setting in SETTINGS:
        used = page in setting.pages
        if not used and not setting.shared:
            continue
        # A shared value that this page does not use is taken along for the others: links made before say more than ours.
        known.add(setting.short)
        if setting.short not in address:
            # An address that leaves a value out means its default.
            if used and (address or not setting.shared):
                st.session_state.pop(setting.name, None)
            continue
        try:
            put(setting.name, setting.parse(address[setting.short]))
            if setting.name in {"model", "model2"}:
                linked.add(get(setting.name))
        except (ValueError, UserError) as problem:
            st.session_state.pop(setting.name, None)
            if used:
                notice(
                    f"The link's value for “{setting.short}” ({', '.join(address[setting.short])[:60]!r}): {problem}"
                )
    for key in address.keys() - known:
        notice(f"The link's “{key[:30]}” means nothing on this page.")
    st.session_state["_address"] = address
    if history:
        # Writing an address adds a step to the browser's history: not before something changes again.
        st.session_state["_held"] = address_of(page)[0]


def address_of(page: str) -> tuple[dict[str, list[str]], bool]:
    """The page's settings that differ from their defaults, and whether the sentences fit in with them."""
    wanted: dict[str, list[str]] = {}
    for setting in SETTINGS:
        value = get(setting.name)
        if page not in setting.pages or value == setting.default:
            continue
        with contextlib.suppress(
            TypeError, ValueError
        ):  # no link is worth a page: a value that cannot be written stays out
            written = setting.show(value)
            if all(isinstance(text, str) for text in written):
                wanted[setting.short] = written
    size = sum(len(key) + len(quote(text, errors="replace")) + 2 for key, texts in wanted.items() for text in texts)
    if size <= ADDRESS_LIMIT:
        return wanted, True
    return {key: texts for key, texts in wanted.items() if key not in {"s", "t"}}, False


def write_address(page: str) -> None:
    """Put the page's settings into the address."""
    wanted, _ = address_of(page)
    if st.session_state.get("_held") == wanted:
        return
    st.session_state.pop("_held", None)
    if {key: st.query_params.get_all(key) for key in st.query_params} != wanted:
        st.query_params.from_dict(wanted)
    st.session_state["_address"] = wanted


def notice(text: str) -> None:
    """Something to tell the person at the top of the page."""
    st.session_state.setdefault("_notices", []).append((time.monotonic(), text))


def current_notices() -> list[str]:
    """What the person should be told now. Each stays for some seconds: a page whose work is done draws itself anew."""
    fresh = [entry for entry in st.session_state.get("_notices", ()) if time.monotonic() - entry[0] < NOTICE_SECONDS]
    st.session_state["_notices"] = fresh
    return [text for _, text in fresh]
