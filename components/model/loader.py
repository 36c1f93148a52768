"""Models that are loaded or being loaded, shared by all sessions.

Each is loaded once for everybody; those who wait can read the job's progress (in bytes, for a download)
and may stop it. At most `capacity` models are kept; the least recently used is removed first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from components.jobs import RETRY_SECONDS, IsCancelled, Job, Jobs, Queue, ReportProgress
from components.model.catalog import ModelSpec, spec_of
from components.model.files import hub
from components.model.files.sources import folder_of, folder_stamp
from components.model.store import TraceStore

if TYPE_CHECKING:
    from components.model.backend import Backend

LANE, DOWNLOAD_LANE = "models", "downloads"


class ModelLoader:
    """Loads models on request and keeps the last few. The result of a job is a Backend."""

    def __init__(
        self, queue: Queue, store: TraceStore, capacity: int = 3, after_load: Callable[[Backend], None] = lambda _: None
    ) -> None:
        """`after_load` runs in the loading thread, after those who wait have received the model."""
        self.store = store
        self._after_load = after_load
        self._stamps: dict[
            Hashable, object
        ] = {}  # by the model's key: the state of its folder's files when they were read
        self.jobs = Jobs(queue, LANE, keep=capacity, retry_seconds=RETRY_SECONDS, is_stale=self._is_saved_anew)

    def request(self, spec: ModelSpec, person: Hashable = None) -> Job:
        """The job of a model: finished, under way, or started now."""

        def load(report_progress: ReportProgress, is_cancelled: IsCancelled) -> Backend:
            # Imported here: this is the first import of torch, and it must not delay the page.
            from components.model.backend import Backend

            self._stamps[spec.key] = folder_stamp(spec)
            return Backend.load(spec, self.store, progress=report_progress, is_cancelled=is_cancelled)

        is_download = spec.source == "hub" and hub.cached_folder(spec.key) is None
        return self.jobs.request(
            spec.key,
            f"Downloading {spec.title} and loading it into memory"
            if is_download
            else f"Loading {spec.title} into memory",
            load,
            person=person,
            # Downloads are slow: a model that is on this machine does not wait for them.
            lane=DOWNLOAD_LANE if is_download else LANE,
            then=lambda job: self._after_load(job.result),
        )

    def find(self, key: str) -> Backend | None:
        """A model that is in memory; starts nothing."""
        job = self.jobs.find(key)
        return None if job is None else job.result

    def forget(self, key: str, person: Hashable = None) -> None:
        """Let the next request try a failed or stopped model again. Loaded models stay."""
        job = self.jobs.find(key)
        if job is not None:
            self.jobs.forget(job, person)

    def _is_saved_anew(self, job: Job) -> bool:
        spec = spec_of(str(job.key))
        folder = folder_of(spec)
        return folder is not None and self._stamps.get(spec.key) != folder_stamp(spec) and folder.is_dir()
