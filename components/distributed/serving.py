"""One model server for several dashboards: a Ray Serve application, and the dashboards' side of it.

The server loads models once, where the accelerator is. Requests for traces that come during a pass share the next one
(dynamic batching), up to the number of sentences that a page may show; requests with attentions or mask logits, whose size
grows quickly, have a pass of their own. Vectors of a corpus cross in pieces, so that progress and Stop stay with the
dashboard. Requests and results go by a connection of their own where there can be one (direct.py), else Ray's way.

Each dashboard loads its models too: words, tokens and whatever needs hooks or gradients are computed there. Where the server
does not answer, or has another model or other weights, the dashboard computes everything itself and asks again later.

What it does not do: keep strangers out. Ray's own token does that (RAY_AUTH_TOKEN, the same for all); whoever has it can run
programs on the cluster, so that its address belongs into a network of your own.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from components.arrays import Float32
from components.distributed import direct
from components.distributed.cluster import connected
from components.distributed.messages import TraceRequest
from components.errors import InputError, UserError, first_line
from components.jobs import RETRY_SECONDS, WorkFailed
from components.model.backend import Backend
from components.model.elsewhere import part_of_trace
from components.model.embedding.options import EmbedOptions, EmbedReport
from components.model.tokenization import MAX_SENTENCES
from components.model.trace import Trace, TraceOptions

if TYPE_CHECKING:
    from ray.serve.handle import DeploymentHandle

APPLICATION = "bert-internals"
DIRECT_METHODS = ("trace", "vectors")  # those of the server that pages and jobs wait for
REMOVAL_SECONDS = 15.0  # for the cluster to answer when the server is removed; END_SECONDS are among them
END_SECONDS = 5.0  # for the passes under way when the server is stopped; dashboards compute what they did not get
UNANSWERED = "The model server at %s does not answer: %s. This process computes."
# The longest a dashboard waits before it computes itself, and asks no more for RETRY_SECONDS.
TRACE_SECONDS = 20.0  # for a trace: somebody looks at a page
PIECE_SECONDS = 60.0  # for a piece of a corpus
MOST_PADDING = 1.5  # how much longer, all sentences together, a shared pass may be than the texts in it
Result = TypeVar("Result")
log = logging.getLogger(__name__)


def joined(requests: Sequence[TraceRequest], most: int) -> list[int]:
    """Which requests share a pass with the first one, as indices; the first is always among them.

    They are for the same model with the same options, have at most `most` sentences together, and are not so unlike in length
    that the pass would consist of padding.
    """
    first = requests[0]
    group, lengths = [0], first.lengths
    for index, request in enumerate(requests[1:], start=1):
        is_like_the_first = (request.model, request.options) == (first.model, first.options)
        if not (is_like_the_first and request.can_be_joined):
            continue
        together = lengths + request.lengths
        if len(together) <= most and max(together) * len(together) <= MOST_PADDING * sum(together):
            group.append(index)
            lengths = together
    return group


def traces_of(backend: Backend, requests: Sequence[TraceRequest]) -> list[Trace]:
    """The traces of requests that share a pass, each without the model's own Dense layers, which the asker has."""
    texts = [text for request in requests for text in request.texts]
    pairs = [pair for request in requests for pair in request.pairs or [None] * len(request.texts)]
    trace = replace(backend.run(texts, pairs, requests[0].options), head=None)
    if len(requests) == 1:
        return [trace]
    starts = [0]
    for request in requests:
        starts.append(starts[-1] + len(request.texts))
    return [part_of_trace(trace, start, stop) for start, stop in pairwise(starts)]


class ModelServer:
    """The deployment: loaded models, and their passes for whoever asks. Each method answers one dashboard's request.

    Requests are joined here and not by Ray Serve's own batches, which are made before they can be computed: a request would
    have to wait for others that may never come, where these share the pass for which they wait anyway.
    """

    def __init__(self, models: Sequence[str], gpus: float = 0) -> None:
        """Load the models by catalogue key, hub id or folder. Raises UserError.

        Without reserved `gpus` on the CPU: Ray shows its workers all GPUs of a machine, also those that are not theirs.
        """
        name = None if gpus else "cpu"
        self.backends = {
            backend.spec.key: backend for backend in (Backend.load(model, device_name=name) for model in models)
        }
        self.passes = 0  # for traces
        self.waiting: list[tuple[TraceRequest, asyncio.Future[Trace | UserError]]] = []
        self.computing: asyncio.Task[None] | None = None
        # Traces have a thread of their own: pieces of corpora, which take seconds, must not be before them.
        self.trace_thread = ThreadPoolExecutor(1, "traces")
        self.opening_port = asyncio.Lock()
        self.direct_port: direct.Port | None = None

    def models(self) -> dict[str, str]:
        """What is served: the revision of each model's weights, by the model's key."""
        return {key: backend.revision for key, backend in self.backends.items()}

    def trace_passes(self) -> int:
        """How many passes the traces have taken so far."""
        return self.passes

    async def port(self) -> direct.Port | None:
        """Where dashboards can ask without Ray, opened for the first that wants to know; None if nowhere."""
        import ray

        async with self.opening_port:
            if self.direct_port is None:
                methods = {name: getattr(self, name) for name in DIRECT_METHODS}
                self.direct_port = await direct.listen(ray.util.get_node_ip_address(), methods)
            return self.direct_port

    async def trace(self, request: TraceRequest) -> Trace | UserError:
        """The trace, or the error that its asker reads. Requests that come during a pass share the next one."""
        joined([request, request], MAX_SENTENCES)  # one that cannot be read, from other code than ours, fails by itself
        answer = asyncio.get_running_loop().create_future()
        self.waiting.append((request, answer))
        if self.computing is None or self.computing.done():
            self.computing = asyncio.create_task(self._compute_waiting())
        return await answer

    async def _compute_waiting(self) -> None:
        """One pass after the other, until nobody waits; each for the one who has waited longest, and those who can join."""
        while self.waiting:
            self.waiting = [(request, answer) for request, answer in self.waiting if not answer.done()]  # some gave up
            if not self.waiting:
                return
            group = joined([request for request, _ in self.waiting], MAX_SENTENCES)
            taken = [self.waiting[index] for index in group]
            self.waiting = [each for index, each in enumerate(self.waiting) if index not in group]
            loop, requests = asyncio.get_running_loop(), [request for request, _ in taken]
            work = loop.run_in_executor(self.trace_thread, self._traces, requests)
            (results,) = await asyncio.gather(work, return_exceptions=True)
            if isinstance(results, BaseException):  # the askers learn of it, and the server goes on
                for _, answer in taken:
                    if not answer.done():
                        answer.set_exception(WorkFailed.of(results))
                continue
            for (_, answer), result in zip(taken, results, strict=True):
                if not answer.done():
                    answer.set_result(result)

    def _traces(self, requests: Sequence[TraceRequest]) -> list[Trace | UserError]:
        """The results of requests that share a pass."""
        try:
            return [*self._pass(requests)]
        except UserError:  # one text may be at fault: each is asked for again by itself
            return [self._alone(request) for request in requests]

    def _alone(self, request: TraceRequest) -> Trace | UserError:
        try:
            return self._pass([request])[0]
        except UserError as problem:
            return problem

    def _pass(self, requests: Sequence[TraceRequest]) -> list[Trace]:
        self.passes += 1
        return traces_of(self.backends[requests[0].model], requests)

    async def vectors(
        self, model: str, texts: Sequence[str], options: EmbedOptions
    ) -> tuple[Float32, EmbedReport] | UserError:
        """Vectors of texts, float32 [layer, pooling, text, dim], and their counts; or the error that its asker reads."""
        work = asyncio.to_thread(self.backends[model].embed_with_report, texts, options)
        outcomes = await asyncio.gather(work, return_exceptions=True)
        outcome: tuple[Float32, EmbedReport] | BaseException = outcomes[0]
        if isinstance(outcome, BaseException) and not isinstance(outcome, UserError):
            raise WorkFailed.of(outcome)
        return outcome


@contextmanager
def serving(models: Sequence[str], address: str | None, gpus: float = 0) -> Iterator[Callable[[], bool]]:
    """The application, ready; it takes the place of one that runs, and is removed at the end.

    Yields a function that tells whether it is still there, as far as is known: another process can take its place, whose
    application is then left alone at the end. `gpus` is the accelerator's share that it reserves, 0 for a server on the CPU.
    Raises InputError where Ray is not installed, the cluster does not answer, also at the end, or a model cannot be loaded.
    """
    with connected(address):
        from ray import serve
        from ray.serve.exceptions import RayServeException

        name = f"models-{secrets.token_hex(4)}"  # tells our application from one that takes its place
        deployment: Any = serve.deployment(
            ModelServer,
            name=name,
            ray_actor_options={"num_gpus": gpus},
            max_ongoing_requests=256,
            graceful_shutdown_timeout_s=END_SECONDS,
        )

        def has_ours() -> bool:
            application = serve.status().applications.get(APPLICATION)
            return application is not None and name in application.deployments

        try:
            try:
                serve.start(http_options={"location": "NoServer"})
                serve.run(deployment.bind(list(models), gpus), name=APPLICATION, route_prefix=None)
            except (RayServeException, RuntimeError) as problem:
                raise InputError(
                    f"The model server could not be started: {first_line(problem)}.",
                    f"The cluster's machines must have {' and '.join(models)} and enough memory.",
                    "Check the names of the models, and that each can be loaded on these machines.",
                ) from problem
            yield _Looks(has_ours)
        finally:  # also of one that was stopped while its models were loaded
            _remove(has_ours, lambda: serve.delete(APPLICATION))


class _Looks:
    """Whether something is there, as far as the last look that was answered tells. It never waits for an answer."""

    def __init__(self, look: Callable[[], bool]) -> None:
        self._look, self._is_there = look, True
        self._answer: Future[bool] | None = None

    def __call__(self) -> bool:
        """Begins the next look once the last one was answered. Raises what that raised."""
        if self._answer is not None and self._answer.done():
            self._is_there, self._answer = self._answer.result(), None
        if self._answer is None:
            self._answer = _asked(self._look)
        return self._is_there


def _asked(call: Callable[[], Result]) -> Future[Result]:
    """The answer of the cluster. Ray's own functions wait for it without a limit: a thread asks, and ends with the process."""
    answer: Future[Result] = Future()

    def ask() -> None:
        try:
            answer.set_result(call())
        except BaseException as problem:  # noqa: BLE001 - it reaches whoever asked
            answer.set_exception(problem)

    threading.Thread(target=ask, daemon=True, name="asking the cluster").start()
    return answer


def _remove(has_ours: Callable[[], bool], delete: Callable[[], object], seconds: float = REMOVAL_SECONDS) -> None:
    """Remove the application if it is ours. Raises InputError where the cluster does not answer within so many seconds."""
    end = time.monotonic() + seconds
    try:
        if _asked(has_ours).result(seconds):
            _asked(delete).result(max(0.0, end - time.monotonic()))
    except TimeoutError as problem:
        raise InputError(
            f"The cluster has not answered for {seconds:.0f} seconds: the application {APPLICATION} may still be there.",
            "A server that has ended should leave nothing behind.",
            "Remove it with `serve shutdown` once the cluster answers, or run this command again, which takes its place.",
        ) from problem


@dataclass(frozen=True, eq=False)
class Connection:
    """A dashboard's connection to the server, with what the server said when it was made."""

    handle: DeploymentHandle[Any]
    direct: direct.Direct | None  # None: all goes through the handle
    revisions: dict[str, str]  # of the weights, by the model's key
    resources: ExitStack  # closes it

    def ask(self, name: str, arguments: tuple[Any, ...], seconds: float) -> Any:
        """What the server answers. Raises whatever stands in the way, also when nothing comes within so many seconds."""
        if self.direct is not None and name in DIRECT_METHODS:
            return self.direct.ask(name, arguments, seconds)
        return getattr(self.handle, name).remote(*arguments).result(timeout_s=seconds)


class Served:
    """The server as a dashboard sees it. It connects in a thread of its own: pages compute by themselves until then."""

    def __init__(self, address: str) -> None:
        """Nothing is connected before the first question."""
        self.address = address
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._connecting: threading.Thread | None = None
        self._failed_at = float("-inf")

    def of(self, backend: Backend) -> PassesOfModel:
        """The passes of this model on the server; begins to connect."""
        self.connection()
        return PassesOfModel(self, backend)

    def connection(self) -> Connection | None:
        """The connection; None while there is none. Begins to connect, after a failure not before RETRY_SECONDS are over."""
        failure: RuntimeError | None = None
        with self._lock:
            is_due = time.monotonic() - self._failed_at >= RETRY_SECONDS
            if self._connection is None and self._connecting is None and is_due:
                thread = threading.Thread(target=self._connect, daemon=True, name="model server")
                try:
                    thread.start()
                except RuntimeError as problem:  # no more threads: as where the server does not answer
                    failure, self._failed_at = problem, time.monotonic()
                else:
                    self._connecting = thread  # it takes the lock before it ends
            connection = self._connection
        if failure is not None:  # outside the lock: handlers of the log run code of their own
            log.warning(UNANSWERED, self.address, first_line(failure), exc_info=failure)
        return connection

    def wait(self, seconds: float) -> bool:
        """Whether there is a connection, at the latest after so many seconds."""
        self.connection()
        thread = self._connecting
        if thread is not None:
            thread.join(seconds)
        return self._connection is not None

    def revision(self, key: str) -> str | None:
        """The weights of a model that the server has; None if it has not, or is not connected."""
        connection = self.connection()
        return None if connection is None else connection.revisions.get(key)

    def ask(self, name: str, *arguments: Any, seconds: float) -> Any | None:
        """What a method of the server gives; None where it does not answer within so many seconds."""
        connection = self.connection()
        if connection is None:
            return None
        try:
            return connection.ask(name, arguments, seconds)
        except Exception as problem:
            log.warning(UNANSWERED, self.address, first_line(problem), exc_info=problem)
            self._lose(connection)
            return None

    def _connect(self) -> None:
        resources = ExitStack()
        try:
            resources.enter_context(connected(self.address))
            from ray import serve

            handle = serve.get_app_handle(APPLICATION)
            revisions = handle.models.remote().result(timeout_s=PIECE_SECONDS)
            by_port = self._direct(handle.port.remote().result(timeout_s=PIECE_SECONDS))
            if by_port is not None:
                resources.callback(by_port.close)
            connection = Connection(handle, by_port, revisions, resources)
        except Exception as problem:
            log.warning(UNANSWERED, self.address, first_line(problem), exc_info=problem)
            resources.close()
            with self._lock:
                self._failed_at, self._connecting = time.monotonic(), None
            return
        with self._lock:
            self._connection, self._connecting = connection, None

    def _direct(self, port: direct.Port | None) -> direct.Direct | None:
        if port is None:
            return None
        try:
            return direct.Direct(port)
        except (TimeoutError, ConnectionError) as problem:
            log.warning(
                "%s: requests to the model server at %s go through Ray, which is slower.", problem, self.address
            )
            return None

    def _lose(self, connection: Connection) -> None:
        """Give up a connection, unless another has taken its place. It is closed by a thread: that can take seconds."""
        with self._lock:
            if self._connection is not connection:
                return
            self._failed_at, self._connection = time.monotonic(), None
        try:
            threading.Thread(target=connection.resources.close, daemon=True, name="closing the model server").start()
        except RuntimeError:  # the system allows no more threads
            connection.resources.close()


class PassesOfModel:
    """One model's passes on the server (components.model.elsewhere.Elsewhere)."""

    def __init__(self, server: Served, backend: Backend) -> None:
        """Nothing is asked yet."""
        self._server = server
        self._key, self._revision = backend.spec.key, backend.revision

    @property
    def is_there(self) -> bool:
        """Whether the server has this model, with the same weights."""
        return self._server.revision(self._key) == self._revision

    def trace(self, texts: Sequence[str], pairs: Sequence[str | None] | None, options: TraceOptions) -> Trace | None:
        """See Elsewhere."""
        if not self.is_there:
            return None
        request = TraceRequest(self._key, tuple(texts), None if pairs is None else tuple(pairs), options)
        return _raised(self._server.ask("trace", request, seconds=TRACE_SECONDS))

    def embed(self, texts: Sequence[str], options: EmbedOptions) -> tuple[Float32, EmbedReport] | None:
        """See Elsewhere."""
        if not self.is_there:
            return None
        return _raised(self._server.ask("vectors", self._key, list(texts), options, seconds=PIECE_SECONDS))


def _raised(answer: Result | UserError) -> Result:
    if isinstance(answer, UserError):
        raise answer
    return answer
