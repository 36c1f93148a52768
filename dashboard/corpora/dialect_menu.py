"""How a separated file is written, for a person to say where the reader guesses wrongly: four menus behind one button."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.retrieval.corpora.readers.files import SEPARATED
from components.retrieval.corpora.readers.separated_rows import AS_FOUND, DialectChoice
from dashboard.corpora import uploads
from dashboard.ui import controls

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator
    from streamlit.runtime.uploaded_file_manager import UploadedFile

TITLE = "How it is written"
FOUND = "(found automatically)"
# The parts of a choice: what they are called, and what each of their values is called.
_MENUS: Mapping[
    str, tuple[str, Mapping[str, bool | str]]
] = {  # the parts of a choice: what they are called, and what each of their values is called
    "header": ("The first row", {"names the columns": True, "is a row": False}),
    "separator": (
        "Between fields",
        {"commas": "comma", "semicolons": "semicolon", "tabs": "tab", "vertical bars": "bar"},
    ),
    "quotes": ("Quotation marks", {"enclose fields": True, "are characters": False}),
    "escapes": ("A backslash", {"escapes what follows": True, "is a character": False}),
}


def draw(names: Iterable[str], key: str, place: DeltaGenerator | None = None) -> DialectChoice:
    """Draw the menus for files of these names, if all are separated text, and return what is chosen.

    `key` names the content: the menus of another file begin with nothing chosen.
    """
    if not all(name.lower().removesuffix(".gz").endswith(SEPARATED) for name in names):
        return AS_FOUND
    mark = hashlib.sha256(key.encode()).hexdigest()[:8]
    chosen: dict[str, Any] = {}
    with (place or st.container()).popover(TITLE, icon=":material/csv:", width="content"):
        for part, (title, values) in _MENUS.items():
            picked = controls.checked(
                st.selectbox, title, key=f"written_{part}_{mark}", default=FOUND, options=[FOUND, *values]
            )
            chosen[part] = values.get(picked)
    return DialectChoice(**chosen)


def of_upload(kind: str, file: UploadedFile | None) -> DialectChoice:
    """The menus below the uploader of a kind, for its file or the one that was uploaded before."""
    key = uploads.key_of(file) if file is not None else str(st.session_state.get(f"_{kind}", ""))
    return draw(uploads.names_of(key), key) if key else AS_FOUND
