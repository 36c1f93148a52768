"""Token vectors of corpora for many sessions: taken in the background, once for everybody, the last few kept.

Vectors lie on the disk of a cache folder, in files without a name that are mapped into memory: a set that makes room
for another frees its disk space once nobody looks at it any more.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from components.errors import UserError
from components.jobs import Cancelled
from components.model.embedding.token_vectors import TokenVectors

if TYPE_CHECKING:
    from components.model.backend import Backend

KEPT = 4
log = logging.getLogger(__name__)


@dataclass(eq=False)
class TokenJob:
    """One set of token vectors on its way. Read it from any thread; only its own thread writes it."""

    key: tuple[str, ...]
    total: int  # sentences, at most
    done: int = 0
    started: float = field(default_factory=time.monotonic)
    vectors: TokenVectors | None = None
    error: Exception | None = None
    cancel: threading.Event = field(default_factory=threading.Event)
    finished: threading.Event = field(default_factory=threading.Event)

    @property
    def cancelled(self) -> bool:
        return isinstance(self.error, Cancelled)

    @property
    def seconds_left(self) -> float | None:
        """Of this run; None before the first batch."""
        if not self.done:
            return None
        return (self.total - self.done) * (time.monotonic() - self.started) / self.done


class TokenShelf:
    """Takes token vectors on request and keeps the last sets."""

    def __init__(self, folder: Path, capacity: int = KEPT) -> None:
        self.folder = folder
        self._capacity = capacity
        self._lock = threading.Lock()
        self._turn = threading.Semaphore(2)  # jobs at work: more would only slow each other down
        self._kept: OrderedDict[tuple[str, ...], TokenJob] = OrderedDict()

    def request(
        self,
        backend: Backend,
        corpus: str,
        texts: Sequence[str],
        word: str | None = None,
        max_tokens: int = 2_000,
        seed: int = 0,
    ) -> TokenJob:
        """The job for all layers of a sample of the corpus's tokens, or of a word's occurrences.

        `corpus` names exactly these texts, by a hash of their content. A failed or cancelled job stays until it is forgotten.
        """
        key = (backend.spec.key, backend.revision, corpus, word or "", str(max_tokens), str(seed))
        with self._lock:
            job = self._kept.get(key)
            if job is None:
                job = self._kept[key] = TokenJob(key, len(texts))
                finished = [at for at, one in self._kept.items() if one.finished.is_set()]
                for old in finished[: max(0, len(self._kept) - self._capacity)]:
                    del self._kept[old]
                threading.Thread(
                    target=self._work, args=(job, backend, texts, word, max_tokens, seed), name="tokens", daemon=True
                ).start()
            self._kept.move_to_end(key)
            return job

    def forget(self, job: TokenJob) -> None:
        """Drop a failed or cancelled job, so that the next request begins anew."""
        with self._lock:
            if job.error is not None:
                self._kept.pop(job.key, None)

    def _work(
        self, job: TokenJob, backend: Backend, texts: Sequence[str], word: str | None, max_tokens: int, seed: int
    ) -> None:
        def progress(done: int, total: int) -> None:
            job.done, job.total = done, total

        try:
            with self._turn:
                job.started = time.monotonic()
                job.vectors = backend.token_vectors(
                    texts,
                    word=word,
                    max_tokens=max_tokens,
                    seed=seed,
                    folder=self.folder,
                    progress=progress,
                    cancelled=job.cancel.is_set,
                )
        except Cancelled as stopped:
            job.error = stopped.with_traceback(None)
        except UserError as problem:  # meant for a person, and no fault of the server
            job.error = problem.with_traceback(None)
        except Exception as problem:
            log.warning("no token vectors", exc_info=problem)
            job.error = problem.with_traceback(None)
            problem.__cause__ = problem.__context__ = None
        finally:
            job.finished.set()
