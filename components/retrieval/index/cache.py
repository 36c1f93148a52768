"""Indexes that are open or being built, shared by all sessions, in a cache folder of bounded size.

Building runs in a thread of its own, once for everybody who asks: the same corpus, model and options are never
embedded twice, neither at the same time nor later, for a finished index is found again by its content. An index with
more layers and poolings than asked for serves as well.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import Timeout

from components.errors import InputError
from components.jobs import Cancelled
from components.model.embedding.embedder import EmbedOptions
from components.model.store import parse_bytes
from components.retrieval.index.build import DONE, HasTexts, build_index, columns_hash, job_identity, lock_of
from components.retrieval.index.folder import MANIFEST, IndexInfo, VectorIndex, open_index, read_manifest, resolve_dtype

if TYPE_CHECKING:
    from components.model.backend import Backend

CACHE_VARIABLE = "BERT_INTERNALS_CACHE"
CACHE_BYTES_VARIABLE = "BERT_INTERNALS_CACHE_BYTES"
DEFAULT_CACHE_BYTES = 20 << 30
KEPT_JOBS = 16
FAILURE_KEPT_SECONDS = 20.0
log = logging.getLogger(__name__)


def cache_folder() -> Path:
    """Where indexes are kept: BERT_INTERNALS_CACHE where it is set, else the user's cache folder."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser() / "indexes"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "bert-internals" / "indexes"


def cache_limit() -> int:
    """The bytes that finished indexes may take: BERT_INTERNALS_CACHE_BYTES where it is set, else 20 GiB."""
    text = os.environ.get(CACHE_BYTES_VARIABLE)
    return parse_bytes(text) if text else DEFAULT_CACHE_BYTES


@dataclass
class IndexJob:
    """One index on its way. Read it from any thread; only its own thread writes it."""

    corpus: str
    total: int
    started: float = field(default_factory=time.monotonic)
    done: int = 0
    resumed_at: int | None = None  # sentences that were there already
    index: VectorIndex | None = None
    error: Exception | None = None
    finished_at: float | None = None
    finished: threading.Event = field(default_factory=threading.Event)
    cancel: threading.Event = field(default_factory=threading.Event)

    @property
    def cancelled(self) -> bool:
        return isinstance(self.error, Cancelled)

    @property
    def sentences_per_second(self) -> float:
        """Of this run; 0 before the first batch."""
        new = self.done - (self.resumed_at or 0)
        return new / max(1e-6, time.monotonic() - self.started) if new > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        speed = self.sentences_per_second
        return (self.total - self.done) / speed if speed else None


class IndexShelf:
    """Builds indexes on request and keeps them open."""

    def __init__(self, folder: Path | None = None, limit: int | None = None) -> None:
        self.folder = cache_folder() if folder is None else folder
        self.limit = cache_limit() if limit is None else limit
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, IndexJob] = OrderedDict()

    def request(self, backend: Backend, corpus: HasTexts, options: EmbedOptions, dtype: str = "auto") -> IndexJob:
        """The job of an index: finished, under way, or started now."""
        resolved = resolve_dtype(dtype, len(corpus.texts), backend.facts.hidden_size, options)
        key = job_identity(backend, corpus, options, resolved)
        with self._lock:
            job = self._known(key, dtype)
            if job is None:
                job = self._serving(backend, corpus, options, dtype)
            if job is None:
                job = IndexJob(corpus.name, len(corpus.texts))
                threading.Thread(
                    target=self._work,
                    args=(job, key, backend, corpus, options, resolved),
                    name=f"index {corpus.name[:40]}",
                    daemon=True,
                ).start()
            self._jobs[key] = job
            self._jobs.move_to_end(key)
            finished = [at for at, one in self._jobs.items() if one.finished.is_set() and one is not job]
            for old in finished[: max(0, len(self._jobs) - KEPT_JOBS)]:
                del self._jobs[old]
            return job

    def find(self, backend: Backend, corpus: HasTexts, options: EmbedOptions, dtype: str = "auto") -> IndexJob | None:
        """The job of such an index if it is finished or under way, or if one that serves lies in the cache."""
        resolved = resolve_dtype(dtype, len(corpus.texts), backend.facts.hidden_size, options)
        key = job_identity(backend, corpus, options, resolved)
        with self._lock:
            return self._known(key, dtype) or self._serving(backend, corpus, options, dtype)

    def forget(self, job: IndexJob) -> None:
        """Drop a failed or cancelled job, so that the next request goes on with it."""
        with self._lock:
            for key in [key for key, one in self._jobs.items() if one is job and one.error is not None]:
                del self._jobs[key]

    def usage(self) -> tuple[int, int]:
        """How many folders the cache has, and their bytes."""
        sizes = [_size(path) for path in self._folders()]
        return len(sizes), sum(sizes)

    def clear(self) -> int:
        """Remove every index and unfinished build that no process works on; the bytes that were freed.

        Who has an index open can go on reading it until it is let go: its files are mapped.
        """
        with self._lock:
            freed = 0
            for key in [key for key, job in self._jobs.items() if job.finished.is_set()]:
                del self._jobs[key]
            for path in self._folders():
                if path.name.removesuffix(".part") not in self._jobs:
                    freed += self._remove(path)
            return freed

    def _known(self, key: str, dtype: str) -> IndexJob | None:
        """The job under a key, unless it is to be tried again, or serves those only who take either number format."""
        job = self._jobs.get(key)
        if job is None or _may_be_tried_again(job):
            return None
        return job if job.index is None or dtype in ("auto", job.index.info.dtype) else None

    def _serving(self, backend: Backend, corpus: HasTexts, options: EmbedOptions, dtype: str) -> IndexJob | None:
        """A finished job for an index in the cache that has at least what is asked for."""
        for path in self._folders():
            if path.suffix == ".part":
                continue
            try:
                info = read_manifest(path)
                if not _serves(info, backend, corpus, options, dtype):
                    continue
                index = open_index(path)
            except InputError as problem:
                log.warning("%s", problem)
                continue
            with suppress(OSError):  # its turn to be removed comes later; a read-only cache serves all the same
                os.utime(path / MANIFEST)
            job = IndexJob(corpus.name, len(corpus.texts), done=len(corpus.texts), index=index)
            job.finished_at = time.monotonic()
            job.finished.set()
            return job
        return None

    def _work(
        self, job: IndexJob, key: str, backend: Backend, corpus: HasTexts, options: EmbedOptions, dtype: str
    ) -> None:
        def progress(done: int, total: int) -> None:
            if job.resumed_at is None:  # the first call says what an earlier run had done
                job.resumed_at, job.started = done, time.monotonic()
            job.done, job.total = done, total

        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._remove_damaged(self.folder / key)
            job.index = build_index(backend, corpus, self.folder / key, options, dtype, progress, job.cancel.is_set)
            job.done = job.total
            self._make_room(key)
        except Cancelled as stopped:
            job.error = stopped.with_traceback(None)
        except Exception as problem:
            log.warning("indexing %s failed", corpus.name, exc_info=problem)
            job.error = problem.with_traceback(None)
            problem.__cause__ = problem.__context__ = None
        finally:
            job.finished_at = time.monotonic()
            job.finished.set()

    def _make_room(self, newest: str) -> None:
        """Remove the least recently used indexes until the rest fits; open ones and the newest stay."""
        with self._lock:
            open_now = {job.index.folder.name for job in self._jobs.values() if job.index is not None} | {
                newest,
                *self._jobs,
            }
            folders = self._folders()  # unfinished ones too: they hold their room from the start
            total = sum(_size(path) for path in folders)
            for path in sorted(folders, key=_last_used):
                if total <= self.limit:
                    return
                if path.name.removesuffix(".part") not in open_now:
                    total -= self._remove(path)

    def _folders(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return [path for path in sorted(self.folder.iterdir()) if path.is_dir()]

    def _remove(self, path: Path) -> int:
        """Remove a folder that no process builds; the lock's file stays, for another process may hold it next."""
        size = _size(path)
        try:
            with lock_of(path):
                shutil.rmtree(path, ignore_errors=True)
        except (Timeout, OSError) as problem:
            log.info("%s stays: %s", path, problem)
            return 0
        return 0 if path.exists() else size

    def _remove_damaged(self, path: Path) -> None:
        """Make room for a new build where an index of our own cannot be opened any more."""
        if not path.is_dir():
            return
        try:
            open_index(path)
        except InputError as problem:
            log.warning("removed, to be built again: %s", problem)
            self._remove(path)


def _serves(info: IndexInfo, backend: Backend, corpus: HasTexts, options: EmbedOptions, dtype: str) -> bool:
    have = info.options
    return (
        (info.model, info.revision, info.corpus_hash) == (backend.spec.key, backend.revision, corpus.content_hash)
        and dtype in ("auto", info.dtype)
        and set(options.layers) <= set(have.layers)
        and set(options.poolings) <= set(have.poolings)
        and (have.max_length, have.precision, have.prompt) == (options.max_length, options.precision, options.prompt)
        and (not corpus.columns or columns_hash(corpus) == info.columns_hash)
    )


def _may_be_tried_again(job: IndexJob) -> bool:
    """A failure that is old, or an index whose folder was removed. A cancelled job stays cancelled until forgotten."""
    if job.index is not None:
        return not (job.index.folder / MANIFEST).exists()
    if job.error is None or job.cancelled or job.finished_at is None:
        return False
    return time.monotonic() - job.finished_at > FAILURE_KEPT_SECONDS


def _size(folder: Path) -> int:
    with suppress(OSError):  # removed meanwhile
        return sum(path.stat().st_size for path in folder.iterdir())
    return 0


def _last_used(folder: Path) -> float:
    for name in (MANIFEST, DONE):  # an unfinished one has no manifest, but a record that is written at each block
        with suppress(OSError):
            return (folder / name).stat().st_mtime
    return 0.0
