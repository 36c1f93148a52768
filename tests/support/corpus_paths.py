"""How a session without a browser asks for a file of the server as its corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamlit.proto.WidgetStates_pb2 import WidgetState

from tests.support.session import Session

FILE = "File on this machine"
PATH = "Path of a file on this machine"


def ask_for_path(session: Session, values: list[str], path: Path, known: str = "") -> tuple[Any, str]:
    """Choose these values as the corpus and send a path; the widgets' values sent, and the id of the path's field."""
    session.run("search", "v=corpus")
    (chooser,) = session.labelled("Corpus")
    forged = WidgetState(id=chooser.id)  # type: ignore[attr-defined]
    forged.string_array_value.data.extend(values)
    session.run("search", "v=corpus", states=(forged,))
    fields = session.labelled(PATH)
    known = fields[0].id if fields else known  # type: ignore[attr-defined]
    states = (forged, WidgetState(id=known, string_value=str(path)))
    session.run("search", "v=corpus", states=states)
    return states, known
