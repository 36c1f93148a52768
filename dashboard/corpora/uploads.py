"""What people upload: read once, kept on the server under its content's hash, and remembered by the session.

A session holds keys only: what a session holds is not freed when its time is over. The things themselves are shared and
few (see dashboard/caching.py); nobody finds one who does not have the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from components.errors import UserError
from dashboard.ui import messages

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from components.jobs import Cache

T = TypeVar("T")


def kept(
    kind: str, cache: Cache[T], file: UploadedFile | Sequence[UploadedFile] | None, read: Callable[[Any], T]
) -> T | None:
    """What this session uploaded of a kind, now or earlier; None where there is nothing, or it is kept no more.

    A file that cannot be read is explained, and what was there before stays.
    """
    key = added(cache, file, read) if file else None
    if key is not None:
        st.session_state[f"_{kind}"] = key
    return cache.find(st.session_state.get(f"_{kind}", ""))


def added(cache: Cache[T], file: UploadedFile | Sequence[UploadedFile], read: Callable[[Any], T]) -> str | None:
    """The key under which a file (or several that belong together) is kept, read if need be; None if it is bad."""
    files = file if isinstance(file, Sequence) else [file]
    key = " ".join(sorted(map(_mark, files)))
    if cache.find(key) is None:
        try:
            cache.put(key, read(file))
        except UserError as problem:
            messages.explain(problem, "reading an upload")
            return None
    return key


def forget(kind: str) -> None:
    """Use nothing of this kind any more."""
    st.session_state.pop(f"_{kind}", None)


def _mark(file: UploadedFile) -> str:
    """A file's name and the hash of its content, worked out once a session."""
    marks = st.session_state.setdefault("_upload_marks", {})
    if file.file_id not in marks:
        marks[file.file_id] = f"{file.name} {hashlib.sha256(file.getbuffer()).hexdigest()}"
    return str(marks[file.file_id])
