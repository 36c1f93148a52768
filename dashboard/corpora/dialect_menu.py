"""How a file is written, for a person to say where the reader guesses wrongly: menus behind one button."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
_MENUS: Mapping[str, tuple[str, Mapping[str, bool | str]]] = {
    "header": ("The first row", {"names the columns": True, "is a row": False}),
    "separator": (
        "Between fields",
        {"commas": "comma", "semicolons": "semicolon", "tabs": "tab", "vertical bars": "bar"},
    ),
    "quotes": ("Quotation marks", {"enclose fields": True, "are characters": False}),
    "escapes": ("A backslash", {"escapes what follows": True, "is a character": False}),
}


@dataclass(frozen=True)
class FormChoice:
    """What a person chose of how a file is written."""

    dialect: DialectChoice = AS_FOUND
    encoding: str | None = None

    @property
    def as_text(self) -> str:
        """A mark of the choice; "" where nothing was chosen."""
        return " ".join(filter(None, (self.dialect.as_text, f"encoding {self.encoding}" if self.encoding else "")))


def draw(names: Iterable[str], key: str, place: DeltaGenerator | None = None) -> DialectChoice:
    """Draw the menus for files of these names, if all are separated text, and return what is chosen.

    `key` names the content: the menus of another file begin with nothing chosen.
    """
    if not all(_is(name, SEPARATED) for name in names):
        return AS_FOUND
    with _button(place or st.container()):
        return _menus(key)


def of_upload(kind: str, file: UploadedFile | None) -> FormChoice:
    """The menus below the uploader of a kind, for its file or the one that was uploaded before: its encoding too."""
    key = uploads.key_of(file) if file is not None else str(st.session_state.get(f"_{kind}", ""))
    names = uploads.names_of(key)
    if not key or all(_is(name, (".parquet",)) for name in names):
        return FormChoice()
    with _button(st.container()):
        dialect = _menus(key) if all(_is(name, SEPARATED) for name in names) else AS_FOUND
        typed = st.text_input(
            "Encoding", key=f"written_encoding_{_mark(key)}", placeholder="found automatically", max_chars=40
        )
    return FormChoice(dialect, typed.strip() or None)


def _button(place: DeltaGenerator) -> DeltaGenerator:
    return place.popover(TITLE, icon=":material/csv:", width="content")


def _menus(key: str) -> DialectChoice:
    chosen: dict[str, Any] = {}
    for part, (title, values) in _MENUS.items():
        picked = controls.checked(
            st.selectbox, title, key=f"written_{part}_{_mark(key)}", default=FOUND, options=[FOUND, *values]
        )
        chosen[part] = values.get(picked)
    return DialectChoice(**chosen)


def _mark(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:8]


def _is(name: str, endings: tuple[str, ...]) -> bool:
    return name.lower().removesuffix(".gz").endswith(endings)
