"""Indexes that are open or being built, shared by all sessions, in a cache folder of bounded size.

The same corpus, model and options are never embedded twice, neither at the same time nor later: a finished index is
found again on the disk by its content. An index with further layers and poolings is used too.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
import time
from collections.abc import Hashable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import Timeout

from components import operator_settings
from components.errors import InputError
from components.folders import cache_part, private_folder
from components.jobs import RETRY_SECONDS, IsStopped, Job, Jobs, Lane, Queue, ReportProgress, Stopped
from components.model.embedding.options import EmbedOptions
from components.retrieval.corpora.texts import Texts
from components.retrieval.index.build import built, lock_of, planned, remove_unfinished
from components.retrieval.index.folder import MANIFEST, IndexInfo, VectorIndex, open_index, read_manifest
from components.retrieval.index.unfinished import DONE

if TYPE_CHECKING:
    from components.model.backend import Backend

DEFAULT_CACHE_BYTES = operator_settings.CACHE_BYTES.default or 0
KEPT_JOBS = 16
WAIT_SECONDS = 0.5  # between two looks at what another process builds
LANE, SHORT_LANE = "embedding", "short embedding"
WAIT_LANE = "other servers"  # for what another server with the same cache embeds: it needs no processor here
SHORT = 3_000  # sentences: up to here a corpus does not wait behind long ones
log = logging.getLogger(__name__)


def cache_folder() -> Path:
    """The folder of the indexes (see `cache_part`). Raises InputError for a path that no folder can have."""
    return cache_part("indexes")


def cache_limit() -> int:
    """The bytes that finished indexes may take: the operator's setting `cache_bytes`. Raises InputError."""
    return operator_settings.CACHE_BYTES.value()


class IndexCache:
    """Builds indexes on request and keeps them open.

    A job's result is the VectorIndex, its key the name of the index's folder, and its unit sentences.
    """

    def __init__(self, queue: Queue | None = None, folder: Path | None = None, limit: int | None = None) -> None:
        """`queue` has the lanes LANE, SHORT_LANE and WAIT_LANE; without a queue, the cache creates one."""
        self.folder = cache_folder() if folder is None else folder
        self.limit = cache_limit() if limit is None else limit
        # Held while folders are opened or removed, so that none is removed while it is opened. Files are what it guards: they
        # are read under it, and logged where they are damaged. It is taken before the lock of `jobs`, and never under a lock of
        # jobs or of a queue; jobs are put without it. Whoever asks for an index that is open does not wait for it.
        self._lock = threading.Lock()
        self._manifests: dict[Path, tuple[float, IndexInfo]] = {}  # with the time of their last change
        self.jobs = Jobs(
            queue or Queue({LANE: Lane(), SHORT_LANE: Lane(), WAIT_LANE: Lane(workers=4)}),
            LANE,
            keep=KEPT_JOBS,
            retry_seconds=RETRY_SECONDS,
            is_stale=lambda job: not (job.result.folder / MANIFEST).exists(),  # removed by another process
        )

    def request(
        self,
        backend: Backend,
        corpus: Texts,
        options: EmbedOptions,
        dtype: str = "auto",
        *,
        person: Hashable = None,
        lane: str | None = None,
    ) -> Job:
        """The job of an index: finished, under way, or added to its lane now (see `Jobs.request`)."""
        wanted = planned(backend, corpus, options, dtype)
        key = wanted.identity

        def work(report_progress: ReportProgress, is_stopped: IsStopped) -> VectorIndex:
            while True:
                with self._lock:  # a usable index may have been built since the request
                    usable = self._open_usable(wanted, wanted.dtype)
                if usable is not None:
                    return usable
                private_folder(self.folder)
                self._remove_damaged(self.folder / key)
                try:
                    index = built(backend, corpus, self.folder / key, wanted, report_progress, is_stopped)
                    break
                except Timeout:  # another server with the same cache builds it: its index serves here too
                    if is_stopped():
                        raise Stopped from None
                    time.sleep(WAIT_SECONDS)
            for path in (index.folder, *index.folder.iterdir()):
                path.chmod(0o700 if path.is_dir() else 0o600)
            self._make_room(key)
            return index

        is_known = self.jobs.find(key) is not None
        job = None if is_known else self._usable_job(wanted, dtype)
        if job is not None:
            return job
        title = f"Embedding {corpus.name}"
        lane = lane or (SHORT_LANE if wanted.sentences <= SHORT else LANE)
        if not is_known:
            with self._lock:  # by one thread at a time: the look at the folder's lock takes it for a moment
                is_built_elsewhere = self._is_built_elsewhere(key)
            if is_built_elsewhere:
                title, lane = f"Another server is embedding {corpus.name}", WAIT_LANE
        return self.jobs.request(key, title, work, person=person, lane=lane, total=wanted.sentences)

    def _is_built_elsewhere(self, key: str) -> bool:
        """Whether another process builds an index that no job of this one builds."""
        if self.jobs.find(key) is not None or not self.folder.exists():
            return False
        try:
            with lock_of(self.folder / key):
                return False
        except Timeout:
            return True
        except OSError:  # the job says why
            return False

    def find(self, backend: Backend, corpus: Texts, options: EmbedOptions, dtype: str = "auto") -> Job | None:
        """The job of an index that is finished, under way, or in the cache folder; None otherwise."""
        wanted = planned(backend, corpus, options, dtype)
        return self.jobs.find(wanted.identity) or self._usable_job(wanted, dtype)

    def usage(self) -> tuple[int, int]:
        """The number of folders in the cache, and their bytes."""
        sizes = [_size(path) for path in self._folders()]
        return len(sizes), sum(sizes)

    def clear(self) -> int:
        """Remove every index and unfinished build that no process works on, and return the bytes freed.

        An index that is open can still be read until it is closed: its files are mapped into memory.
        """
        with self._lock:
            self.jobs.drop(self.jobs.finished())
            under_way = {job.key for job in self.jobs.under_way()}
            unused = [path for path in self._folders() if path.name.removesuffix(".part") not in under_way]
            return sum(self._remove(path) for path in unused)

    def _usable_job(self, wanted: IndexInfo, dtype: str) -> Job | None:
        """A finished job for an index, open or in the folder, with at least these layers and poolings."""
        job = self._open_job(wanted, dtype)
        if job is None:
            with self._lock:
                job = self._open_job(wanted, dtype)  # another thread may have opened it while this one waited
                index = None if job is not None else self._open_usable(wanted, dtype)
                if index is not None:
                    job = self.jobs.add(index.folder.name, f"Embedding {wanted.corpus}", index)
        return job

    def _open_job(self, wanted: IndexInfo, dtype: str) -> Job | None:
        """A finished job for an open index with at least these layers and poolings."""
        for job in self.jobs.finished():
            usable = job.error is None and _is_usable(job.result.info, wanted, dtype)
            if usable and self.jobs.find(job.key) is job:  # which also marks it as used now
                return job
        return None

    def _open_usable(self, wanted: IndexInfo, dtype: str) -> VectorIndex | None:
        """An index in the folder with at least these layers and poolings."""
        for path in self._folders():
            if path.suffix == ".part":
                continue
            try:
                if not _is_usable(self._manifest(path), wanted, dtype):
                    continue
                index = open_index(path)
            except InputError as problem:
                log.warning("%s", problem)
                continue
            with suppress(OSError):  # marks it as used now, except in a read-only cache
                os.utime(path / MANIFEST)
            return index
        return None

    def _manifest(self, path: Path) -> IndexInfo:
        """The manifest of an index, which is read again only after it changed."""
        modified = _last_used(path)
        kept = self._manifests.get(path)
        if kept is None or kept[0] != modified:
            self._manifests[path] = kept = (modified, read_manifest(path))
        return kept[1]

    def _make_room(self, newest: str) -> None:
        """Remove the least recently used indexes until the rest fits; open indexes and the newest are kept."""
        with self._lock:
            kept = {newest}
            for job in (*self.jobs.finished(), *self.jobs.under_way()):
                kept.add(str(job.key))
                if isinstance(job.result, VectorIndex):
                    kept.add(job.result.folder.name)
            folders = self._folders()  # unfinished ones too: their files have their final size from the start
            total = sum(_size(path) for path in folders)
            for path in sorted(folders, key=_last_used):
                if total <= self.limit:
                    return
                if path.name.removesuffix(".part") not in kept:
                    total -= self._remove(path)

    def _folders(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return [path for path in sorted(self.folder.iterdir()) if path.is_dir()]

    def _remove(self, path: Path) -> int:
        """Remove a folder that no process builds. The lock file stays, since another process may use it next."""
        size = _size(path)
        try:
            with lock_of(path):
                if path.suffix == ".part":
                    remove_unfinished(path)
                else:
                    shutil.rmtree(path, ignore_errors=True)
        except (Timeout, OSError) as problem:
            log.info("%s is kept: %s", path, problem)
            return 0
        return 0 if path.exists() else size

    def _remove_damaged(self, path: Path) -> None:
        """Remove an index of the cache that can no longer be opened, so that it can be built again."""
        if not path.is_dir():
            return
        try:
            open_index(path)
        except InputError as problem:
            log.warning("removed, and will be built again: %s", problem)
            self._remove(path)


def _is_usable(stored: IndexInfo, wanted: IndexInfo, dtype: str) -> bool:
    """Whether an index has these texts, columns and vectors, perhaps with further layers and poolings."""
    ours, theirs = wanted.options, stored.options
    return (
        (stored.model, stored.revision, stored.corpus_hash) == (wanted.model, wanted.revision, wanted.corpus_hash)
        and dtype in ("auto", stored.dtype)
        and set(ours.layers) <= set(theirs.layers)
        and set(ours.poolings) <= set(theirs.poolings)
        and (theirs.max_length, theirs.precision, theirs.prompt) == (ours.max_length, ours.precision, ours.prompt)
        and wanted.columns_hash in ("", stored.columns_hash)
    )


def _size(folder: Path) -> int:
    total = 0
    with suppress(OSError):  # removed in the meantime
        for path in folder.iterdir():
            with suppress(FileNotFoundError):  # as files of graphs that are being built are
                total += path.stat().st_size
    return total


def _last_used(folder: Path) -> float:
    for name in (MANIFEST, DONE):  # an unfinished index has no manifest, but a record written after each block
        with suppress(OSError):
            return (folder / name).stat().st_mtime
    return 0.0
