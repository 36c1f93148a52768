"""Models that are loaded or being loaded, shared by all sessions.

Each is loaded once for everybody; those who wait can read the job's progress (in bytes, for a download)
and may stop it. At most `capacity` models are kept, and no more than fit into a number of bytes; the least recently used is
removed first. The model that was loaded last is kept however large it is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from components import operator_settings
from components.errors import ModelError
from components.jobs import RETRY_SECONDS, IsStopped, Job, Jobs, Queue, ReportProgress
from components.model import device
from components.model.catalog import ModelSpec, spec_of
from components.model.files import hub
from components.model.files.sources import folder_of, folder_stamp
from components.model.store import TraceStore

if TYPE_CHECKING:
    import torch

    from components.model.backend import Backend

LANE, DOWNLOAD_LANE = "models", "downloads"
DEVICE_PART = 0.6  # of an accelerator's free memory: batches, traces and the library take the rest
BYTES_PER_WEIGHT = 4  # they are float32 in memory, whatever the files hold


def configured_bytes() -> int:
    """The most bytes of weights, the operator's setting `model_bytes`. Raises InputError for an invalid one."""
    return operator_settings.MODEL_BYTES.chosen() or default_bytes()


def default_bytes() -> int:
    """What holds without the setting: half of the machine's memory, or DEVICE_PART of what is free on the device where it has
    a memory of its own and that is less (found out when the first model goes there)."""
    return device.machine_memory() // 2


class ModelLoader:
    """Loads models on request and keeps the last few. The result of a job is a Backend."""

    def __init__(
        self,
        queue: Queue,
        store: TraceStore,
        capacity: int = 3,
        after_load: Callable[[Backend], None] = lambda _: None,
        max_bytes: int | None = None,
    ) -> None:
        """`after_load` runs in the loading thread, after those who wait have received the model.

        `max_bytes` is the limit of the weights in memory, by default the operator's setting.
        """
        self.store = store
        self.max_bytes = configured_bytes() if max_bytes is None else max_bytes
        self._is_default = max_bytes is None and not operator_settings.MODEL_BYTES.chosen()
        self._sizes: dict[Hashable, int] = {}  # by the model's key: bytes of weights of each that was ever loaded
        self._on_their_way: dict[Hashable, int] = {}  # the same of those that are being loaded, in whichever lane
        self._after_load = after_load
        self._stamps: dict[
            Hashable, object
        ] = {}  # by the model's key: the state of its folder's files when they were read
        self.jobs = Jobs(
            queue,
            LANE,
            keep=capacity,
            keep_bytes=self.max_bytes,
            retry_seconds=RETRY_SECONDS,
            is_stale=lambda job: self._is_saved_anew(job) or self._is_to_move(job),
        )

    def request(self, spec: ModelSpec, person: Hashable = None) -> Job:
        """The job of a model: finished, under way, or started now."""

        def load(report_progress: ReportProgress, is_stopped: IsStopped) -> Backend:
            # Imported here: this is the first import of torch, and it must not delay the page.
            from components.model.backend import Backend

            self._stamps[spec.key] = folder_stamp(spec)
            try:
                make_room = partial(self._make_room, spec.key)
                backend = Backend.load(
                    spec, self.store, progress=report_progress, is_stopped=is_stopped, make_room=make_room
                )
            except ModelError as problem:
                others = [job.result.spec.title for job in self.jobs.finished() if job.error is None]
                if problem.kind != "memory" or not others:
                    raise
                expected = f"{problem.expected} In memory now: {', '.join(others)}."
                raise ModelError(problem.kind, problem.problem, expected, problem.fix) from problem
            finally:
                self._on_their_way.pop(spec.key, None)
            self._sizes[spec.key] = backend.nbytes
            return backend

        is_download = spec.source == "hub" and hub.cached_folder(spec.hub_id) is None
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

    def _make_room(self, key: Hashable, target: torch.device, nbytes: int) -> None:
        """Before a model goes to its device: of an accelerator with memory of its own the default takes a part."""
        self._on_their_way[key] = nbytes
        free = device.free_at_start(target)
        if self._is_default and free is not None:
            self.max_bytes = min(self.max_bytes, int(DEVICE_PART * free))
        self.jobs.make_room(sum(tuple(self._on_their_way.values())), self.max_bytes)

    def find(self, key: str) -> Backend | None:
        """A model that is in memory; starts nothing."""
        job = self.jobs.find(key)
        return None if job is None else job.result

    def size(self, spec: ModelSpec) -> int:
        """Bytes of a model's weights in memory, as far as they are known before it is loaded; else 0."""
        parameters = spec.facts.parameters if spec.facts is not None else 0
        return self._sizes.get(spec.key, BYTES_PER_WEIGHT * parameters)

    def fits(self, spec: ModelSpec, others: Sequence[ModelSpec]) -> bool:
        """Whether a model can be in memory together with others.

        Of models that do not fit together, each would push the others out every time a page that needs all is drawn.
        """
        return (
            sum(map(self.size, {spec.key: spec, **{other.key: other for other in others}}.values())) <= self.max_bytes
        )

    def forget(self, key: str, person: Hashable = None) -> None:
        """Let the next request try a failed or stopped model again. Loaded models stay."""
        job = self.jobs.find(key)
        if job is not None:
            self.jobs.forget(job, person)

    def _is_to_move(self, job: Job) -> bool:
        """Whether a model is on a device that has failed, and is to be read again for the CPU."""
        return device.goes_on_with_cpu() and device.is_lost(job.result.device)

    def _is_saved_anew(self, job: Job) -> bool:
        spec = spec_of(str(job.key))
        folder = folder_of(spec)
        return folder is not None and self._stamps.get(spec.key) != folder_stamp(spec) and folder.is_dir()
