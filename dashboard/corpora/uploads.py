"""Uploads: read once, kept on the server under the hash of their content, and remembered by the session.

The server takes files up to a limit for each session (dashboard/app.py). Those of a view that was left are freed as soon as
another asks for files. What was readable is kept on disk (components/kept_files.py), from where it is read again once what was
read is no longer in memory: after others' files have taken its room, after a restart, or when a browser comes back.
A session holds only keys, since the memory of a session is not freed when the session ends. What was read is shared by
all sessions (see dashboard/caching.py), and can be found only by somebody who has the file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from components.errors import InputError, UserError
from components.retrieval.corpora.readers.limits import browser_limits
from dashboard import access, caching
from dashboard.corpora import usage
from dashboard.jobs import requests
from dashboard.ui import messages
from dashboard.ui.waiting import frame

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from components.jobs import CachePart, IsStopped, ReportProgress

T = TypeVar("T")
# The kind whose session key holds the key of the upload, its encoding, its text column, and the dialect if one was chosen.
CORPUS = "corpus_upload"
# Every kind of upload; what a session has of each stands under the kind with a "_" before it.
KINDS = (
    *(CORPUS, "queries", "static", "graded", "sts", "training", "senses", "minimal_pairs"),
    "saved_runs",  # several keys
)
_DIGEST = re.compile(r"[0-9a-f]{64}")
MOST_NAME = 120  # characters of a file's name; what stands in its middle is left out
_SHOWN = "_uploads_shown"  # session key: the ids of each uploader's files, by the uploader's key
IN_CORPUS = "_corpus_files"  # session key: the files from which the session's corpus was read
_REMOVED = "× beside a file, or “Remove”, deletes it, unless a corpus in use was read from it."
_KEPT = "_uploads_kept"  # session key: whether each file of an uploader could be kept, by the file's id


@dataclass(frozen=True)
class StoredFile:
    """A file that was uploaded before, with what readers use of Streamlit's own."""

    name: str
    digest: str

    def getvalue(self) -> bytes:
        """Its bytes. Raises InputError if they are no longer kept."""
        content = caching.kept_files().read(self.digest)
        if content is None:
            raise InputError(
                f"“{self.name}” is no longer kept on this server.",
                "A file is kept for some days after its last use, while there is room.",
                "Upload it again.",
            )
        return content


def kept(
    kind: str,
    cache: CachePart[T],
    file: UploadedFile | Sequence[UploadedFile] | None,
    read: Callable[[Any, IsStopped], T],
    *,
    several: bool = False,
    variant: str = "",
) -> T | None:
    """What this session uploaded of a kind, now or earlier; None if there is nothing, or it is no longer kept.

    `read` gets the file, or with `several` the list of files; `variant` names how, where a person chose it. While a file is
    read, its progress is drawn, and for one that cannot be read an error: below the uploader, which stays, and so does the
    earlier upload.
    """
    added_key = None
    if file:
        with frame.figure(f"read_{kind}"):
            added_key = added(cache, file, read, variant)
    if added_key is not None:
        st.session_state[f"_{kind}"] = added_key
    key = st.session_state.get(f"_{kind}", "")
    if added_key is not None or not key:
        return cache.find(varied(key, variant))
    result = None
    with frame.figure(f"read_again_{kind}"):
        result = again(cache, key, read, several=several, key=varied(key, variant))
    if not file:
        earlier(kind, file_names(key), is_here=result is not None)
    return result


def again(
    cache: CachePart[T],
    upload: str,
    read: Callable[[Any, IsStopped], T],
    *,
    several: bool = False,
    key: Hashable = None,
) -> T | None:
    """What was read of an earlier upload, and is read again if it is no longer in memory.

    None if its files are no longer kept, which is drawn. Raises NotReady while it is read. `key`: what was read, if not all
    of the upload.
    """
    files, key = stored(upload), upload if key is None else key
    can_be_had = is_here(cache, upload)
    known = cache.find(key)
    if known is not None:
        return known
    if not can_be_had:
        st.warning(
            f"**{messages.escape(file_names(upload))}** is no longer kept on this server: upload it again.",
            icon=":material/draft:",
        )
        return None
    return read_once(cache, key, lambda is_stopped: read(files if several else files[0], is_stopped))


def is_here(cache: CachePart[Any], upload: str) -> bool:
    """Whether what an upload holds is in memory or can be read again."""
    can_be_read = are_kept(upload)  # also where it is in memory: its files are in use
    return can_be_read or cache.find(upload) is not None


def are_kept(upload: str) -> bool:
    """Whether every file of an upload is kept; those that are count as used now."""
    kept = [caching.kept_files().use(file.digest, caching.person()) for file in stored(upload)]
    return bool(kept) and all(kept)


def uploader(
    kind: str, label: str, *, key: str, most_bytes: int | None = None, is_kept: bool = True, **arguments: Any
) -> Any:
    """An uploader of files of a kind; returns its file or files.

    `most_bytes`: the largest file, where the kind has a limit below the operator's. `is_kept`: whether they are kept, as
    the page then says.

    Streamlit empties an uploader when its view is left. What was read stays in use: only a person who removes the
    file from the uploader, or presses "Remove" in `earlier`, ends that.
    """

    def changed() -> None:
        if not st.session_state[key]:
            forget(kind)

    usage.note(kind)
    most = min(browser_limits().bytes, most_bytes or browser_limits().bytes)
    limit = max(1, most >> 20)  # Streamlit's MB are 2**20 bytes, like those of the limits
    _free_left()
    is_allowed = access.uploads_allowed()
    files = st.file_uploader(
        label, key=key, on_change=changed, max_upload_size=limit, disabled=not is_allowed, **arguments
    )
    if not is_allowed:
        st.caption("This server takes no files: its operator decides that.")
    elif is_kept:
        st.caption(how_long_kept())
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


def how_long_kept() -> str:
    """What happens to the files that people give this server, in a sentence."""
    files = caching.kept_files()
    if files.where == "disk":
        days = "a day" if files.days == 1 else f"{files.days} days"
        return f"Files stay on this server until {days} after their last use. {_REMOVED}"
    who = "This server cannot write to its disk: it keeps" if files.problem else "This server keeps"
    return f"{who} files in memory only, at the latest until it stops. {_REMOVED}"


def earlier(kind: str, names: str, *, is_here: bool = True) -> None:
    """Say that files which were uploaded before this view was left are still in use, and offer to remove them."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if is_here:
            st.caption(f":material/draft: **{messages.escape(names)}**, uploaded before, is kept.", width="content")
        st.button("Remove", key=f"remove_{kind}", on_click=forget, args=(kind,), type="tertiary")


def file_names(key: str) -> str:
    """The names of the files under a key of `key_of`, for people."""
    return ", ".join(names_of(key))


def names_of(key: str) -> list[str]:
    """The name of each file under a key of `key_of`."""
    return [file.name for file in stored(key)]


def stored(key: str) -> list[StoredFile]:
    """The files under a key of `key_of`, whether they are still kept or not."""
    files, name = list[StoredFile](), list[str]()
    for word in key.split(" "):
        if name and _DIGEST.fullmatch(word):
            files.append(StoredFile(" ".join(name), word))
            name = []
        else:
            name.append(word)
    return files


def added(
    cache: CachePart[T],
    file: UploadedFile | Sequence[UploadedFile],
    read: Callable[[Any, IsStopped], T],
    variant: str = "",
) -> str:
    """The key of a file, or of several that belong together, read unless they are. Raises NotReady."""
    key = key_of(file)
    read_once(cache, varied(key, variant), lambda is_stopped: read(file, is_stopped))
    keep(file)
    return key


def varied(key: str, variant: str) -> str:
    """The key of what was read of an upload in a way that a person chose; of the usual way the upload's own."""
    return f"{key} ({variant})" if variant else key


def keep(file: UploadedFile | Sequence[UploadedFile]) -> None:
    """Keep files that could be read, for as long as `how_long_kept` says; what is too large for that is said."""
    outcomes: dict[str, bool] = st.session_state.setdefault(_KEPT, {})
    for one in file if isinstance(file, Sequence) else [file]:
        digest = stored(_mark(one))[0].digest
        is_kept = outcomes.get(one.file_id)
        if is_kept is None or (is_kept and not caching.kept_files().use(digest, caching.person())):
            is_kept = caching.kept_files().keep(one.getbuffer(), caching.person()) is not None
            outcomes[one.file_id] = is_kept
        if not is_kept:
            st.caption(
                f"**{messages.escape(_short(one.name))}** is too large to be kept on this server: upload it again when you "
                "come back."
            )


def read_once(cache: CachePart[T], key: Hashable, read: Callable[[IsStopped], T], *, anew: bool = False) -> T:
    """What is kept under a key, or else is read by a job, once for all sessions that need it at the same time.

    Raises NotReady while it is read, and if it cannot be read. A file that was refused is not read again; where the key does
    not name the content, `anew` reads it again.
    """
    known = cache.find(key)
    if known is not None and not anew:
        return known

    def work(_: ReportProgress, is_stopped: IsStopped) -> T:
        value = read(is_stopped)
        cache.put(key, value)  # also where nobody waits any more
        return value

    jobs, where = caching.readings(), hashlib.sha256(repr(key).encode()).hexdigest()[:8]
    name = ("read", cache.kind, key)
    if anew and (refused := jobs.find(name)) is not None:
        jobs.forget(refused, caching.person())
    # Whoever waits has the job, and everybody else the cache: nothing is kept twice.
    job = jobs.request(name, "Reading a file", work, person=caching.person(), then=lambda job: jobs.drop([job]))
    result: T = requests.result_of(
        jobs,
        job,
        doing="reading a file",
        stop_key=f"stop_read_{where}",
        again_key=f"again_read_{where}",
        final=UserError,
    )
    return result


def key_of(file: UploadedFile | Sequence[UploadedFile]) -> str:
    """The key of a file, or of several in any order: made of their names and contents."""
    return " ".join(sorted(map(_mark, file if isinstance(file, Sequence) else [file])))


def forget(kind: str) -> None:
    """Use no upload of this kind any more, and delete its files unless something else of somebody present uses them."""
    removed = st.session_state.pop(f"_{kind}", None)
    still_used = {digest for other in KINDS for digest in _digests(st.session_state.get(f"_{other}"))}
    still_used |= st.session_state.get(IN_CORPUS, set())
    for digest in _digests(removed):
        if digest not in still_used:
            caching.kept_files().leave(digest, caching.person())


def _digests(value: object) -> set[str]:
    """The files in what a session has of a kind: a key, or several of them among other things."""
    parts = value if isinstance(value, tuple) else (value,)
    return {file.digest for part in parts if isinstance(part, str) for file in stored(part)}


def _mark(file: UploadedFile) -> str:
    """A file's name and the hash of its content, computed once per session."""
    marks = st.session_state.setdefault("_upload_marks", {})
    if file.file_id not in marks:
        marks[file.file_id] = f"{_short(file.name)} {hashlib.sha256(file.getbuffer()).hexdigest()}"
    return str(marks[file.file_id])


def _short(name: str) -> str:
    """A file's name of at most MOST_NAME characters, with its end, which names the format, and without what is like a hash."""
    name = _DIGEST.sub(lambda found: f"{found[0][:8]}…", name)
    return name if len(name) <= MOST_NAME else f"{name[: MOST_NAME - 41]}…{name[-40:]}"
