"""Uploads: read once, kept on the server under the hash of their content, and remembered by the session.

The server takes files up to a limit for each session (dashboard/app.py). Those of a view that was left are freed as soon as
another asks for files; what was read of them stays in use.
A session holds only keys, since the memory of a session is not freed when the session ends. What was read is shared by
all sessions (see dashboard/caching.py), and can be found only by somebody who has the file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from components.errors import UserError
from components.retrieval.corpora.readers.limits import browser_limits
from dashboard import access, caching
from dashboard.jobs import progress
from dashboard.ui import messages

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from components.jobs import Cache, IsCancelled, ReportProgress

T = TypeVar("T")
_SHOWN = "_uploads_shown"  # session key: the ids of each uploader's files, by the uploader's key


def kept(
    kind: str,
    cache: Cache[T],
    file: UploadedFile | Sequence[UploadedFile] | None,
    read: Callable[[Any, IsCancelled], T],
) -> T | None:
    """What this session uploaded of a kind, now or earlier; None if there is nothing, or it is no longer kept.

    For a file that cannot be read an error is drawn, and the earlier upload stays.
    """
    key = added(cache, file, read) if file else None
    if key is not None:
        st.session_state[f"_{kind}"] = key
    result = cache.find(st.session_state.get(f"_{kind}", ""))
    if result is not None and not file:
        earlier(kind, file_names(st.session_state[f"_{kind}"]))
    return result


def uploader(kind: str, label: str, *, key: str, most_bytes: int | None = None, **arguments: Any) -> Any:
    """An uploader of files of a kind; returns its file or files.

    `most_bytes`: the largest file, where the kind has a limit below the operator's.

    Streamlit empties an uploader when its view is left. What was read stays in use: only a person who removes the
    file from the uploader, or presses "Remove" in `earlier`, ends that.
    """

    def changed() -> None:
        if not st.session_state[key]:
            forget(kind)

    most = min(browser_limits().bytes, most_bytes or browser_limits().bytes)
    limit = max(1, most >> 20)  # Streamlit's MB are 2**20 bytes, like those of the limits
    _free_left()
    is_allowed = access.uploads_allowed()
    files = st.file_uploader(
        label, key=key, on_change=changed, max_upload_size=limit, disabled=not is_allowed, **arguments
    )
    if not is_allowed:
        st.caption("This server takes no files: its operator decides that.")
    shown = files if isinstance(files, list) else [files] if files else []
    st.session_state.setdefault(_SHOWN, {})[key] = [file.file_id for file in shown]
    return files


def _free_left() -> None:
    """Free the bytes of files whose uploader was left: it comes back empty. Streamlit keeps them until the session ends."""
    context, shown = get_script_run_ctx(suppress_warning=True), st.session_state.get(_SHOWN, {})
    for key in [key for key in shown if key not in st.session_state]:
        for file in shown.pop(key):
            if context is not None and isinstance(context.uploaded_file_mgr, MemoryUploadedFileManager):
                context.uploaded_file_mgr.remove_file(context.session_id, file)


def earlier(kind: str, names: str) -> None:
    """Say that files which were uploaded before this view was left are still in use, and offer to remove them."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f":material/draft: **{messages.escape(names)}**, uploaded before, is kept.", width="content")
        st.button("Remove", key=f"remove_{kind}", on_click=forget, args=(kind,), type="tertiary")


def file_names(key: str) -> str:
    """The names of the files under a key of `key_of`, for people."""
    return ", ".join(names_of(key))


def names_of(key: str) -> list[str]:
    """The name of each file under a key of `key_of`."""
    return re.split(r" [0-9a-f]{64}(?: |$)", key)[:-1]


def added(
    cache: Cache[T], file: UploadedFile | Sequence[UploadedFile], read: Callable[[Any, IsCancelled], T]
) -> str | None:
    """The key of a file, or of several that belong together, read unless they are kept; None if they cannot be read."""
    key = key_of(file)
    return None if read_once(cache, key, lambda is_cancelled: read(file, is_cancelled)) is None else key


def read_once(cache: Cache[T], key: Hashable, read: Callable[[IsCancelled], T], *, anew: bool = False) -> T | None:
    """What is kept under a key, or else is read by a job, once for all sessions that need it at the same time.

    None while it is read, with the progress drawn if that takes a while; None if it cannot be read, with the error drawn.
    A file that was refused is not read again; where the key does not name the content, `anew` reads it again.
    """
    known = cache.find(key)
    if known is not None and not anew:
        return known

    def work(_: ReportProgress, is_cancelled: IsCancelled) -> T:
        value = read(is_cancelled)
        cache.put(key, value)  # also where nobody waits any more
        return value

    jobs, where = caching.readings(), hashlib.sha256(repr(key).encode()).hexdigest()[:8]
    name = ("read", id(cache), key)
    if anew and (refused := jobs.find(name)) is not None:
        jobs.forget(refused, caching.person())
    # Whoever waits has the job, and everybody else the cache: nothing is kept twice.
    job = jobs.request(name, "Reading a file", work, person=caching.person(), then=lambda job: jobs.drop([job]))
    is_read = progress.ready(
        jobs,
        job,
        doing="reading a file",
        stop_key=f"stop_read_{where}",
        again_key=f"again_read_{where}",
        final=UserError,
    )
    result: T | None = job.result if is_read else None
    return result


def key_of(file: UploadedFile | Sequence[UploadedFile]) -> str:
    """The key of a file, or of several in any order: made of their names and contents."""
    return " ".join(sorted(map(_mark, file if isinstance(file, Sequence) else [file])))


def forget(kind: str) -> None:
    """Use no upload of this kind any more."""
    st.session_state.pop(f"_{kind}", None)


def _mark(file: UploadedFile) -> str:
    """A file's name and the hash of its content, computed once per session."""
    marks = st.session_state.setdefault("_upload_marks", {})
    if file.file_id not in marks:
        marks[file.file_id] = f"{file.name} {hashlib.sha256(file.getbuffer()).hexdigest()}"
    return str(marks[file.file_id])
