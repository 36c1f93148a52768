"""Vectors of many sentences by several workers: an actor pool of Ray Data, each actor with a model of its own.

The process that starts the work (the driver) reads the corpus, so that its texts are those of one machine, and cuts it into
the blocks that one machine would embed one after the other. A worker embeds whole blocks: its batches, and with them the
vectors, are those of one machine up to the rounding of float32 (about 1e-6, as between any two machines).

Workers give their vectors back to the driver, which alone writes the index: the machines need no common folder, each block
is written once, at its final place, and is recorded when it is there. The price is that all vectors pass through the
driver, 4,096 x 384 numbers or 6 MB a block. A block that the record names is never embedded again. A block whose worker or
machine is lost goes to another worker; after too many losses the build ends with an error, and goes on with the same command.

What each worker needs: the packages of both requirements files, and the model, at the same path where it is a folder. A
worker whose model has another revision refuses to work.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from components.distributed.cluster import WORKER_RESTARTS, connected, workers
from components.errors import InputError, UserError, first_line
from components.jobs import IsStopped, ReportProgress, Stopped
from components.model.embedding.options import SENTENCES_PER_BLOCK, EmbedOptions
from components.retrieval.index.unfinished import UnfinishedVectors

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.embedding.embedder import Sink

Row = dict[str, Any]


class BlockEmbedder:
    """What a worker runs: it loads the model once, with the first block, and embeds block after block."""

    def __init__(self, model: str, revision: str, options: EmbedOptions, dtype: str, threads: int) -> None:
        self._model, self._revision, self._options = model, revision, options
        self._dtype, self._threads = dtype, threads
        self._backend: Backend | None = None

    def __call__(self, row: Row) -> Row:
        """The vectors [layer, pooling, sentence, dim] of a block's texts, with its number and counts.

        What a person can mend comes back as `error`: problem, expected and fix. Ray would repeat the work otherwise.
        """
        result = {"block": int(row["block"]), "tokens": 0, "truncated": 0, "error": ["", "", ""]}
        try:
            vectors, report = self._loaded().embed_with_report(list(row["texts"]), self._options)
        except UserError as problem:
            error = [problem.problem, problem.expected, problem.fix]
            return result | {"error": error, "vectors": np.zeros((1, 1, 1, 1), self._dtype)}
        counts = {"tokens": report.tokens, "truncated": report.truncated}
        with np.errstate(over="ignore"):  # a number that float16 cannot hold is refused where it is stored
            return result | counts | {"vectors": vectors.astype(self._dtype)}

    def _loaded(self) -> Backend:
        if self._backend is None:
            import torch

            from components.model.backend import Backend

            torch.set_num_threads(self._threads)
            backend = Backend.load(self._model)
            if backend.revision != self._revision:
                raise InputError(
                    f"A worker has another revision of {self._model}: {backend.revision[:16]} instead of "
                    f"{self._revision[:16]}.",
                    "All vectors of an index must come from the same weights.",
                    "Put the same files on all machines, or empty the model's cache there.",
                )
            self._backend = backend
        return self._backend


def embedded_blocks(
    ray: Any,
    backend: Backend,
    blocks: Sequence[tuple[int, Sequence[str]]],
    options: EmbedOptions,
    dtype: str = "float32",
    is_stopped: IsStopped = lambda: False,
) -> Iterator[Row]:
    """The rows of BlockEmbedder for numbered blocks of texts, in the order in which workers finish them.

    Raises InputError for what a worker could not do, and Stopped once `is_stopped()` is true, asked before each block.
    """
    if not blocks:
        return
    import ray.data as ray_data

    count, needs = workers(ray)
    count = min(count, len(blocks))
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # now, because its import sets another level
    logging.getLogger("ray.data").propagate = False
    ray_data.DataContext.get_current().enable_progress_bars = False
    items = [{"block": number, "texts": list(texts)} for number, texts in blocks]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # on the last two arguments, which have no other name yet
        rows = ray_data.from_items(items, override_num_blocks=len(items)).map(
            BlockEmbedder,
            fn_constructor_args=(backend.spec.key, backend.revision, options, dtype, int(needs["num_cpus"])),
            # With a smaller minimum, the pool gives up the place of a lost worker instead of waiting for its machine.
            compute=ray_data.ActorPoolStrategy(min_size=1, max_size=count, initial_size=count),
            # Work is tried again until its worker has been lost too often: a lost machine is noticed after many attempts.
            max_restarts=WORKER_RESTARTS,
            max_task_retries=-1,
            **needs,
        )
    try:
        for batch in rows.iter_batches(batch_size=None, batch_format="numpy"):
            for number in range(len(batch["block"])):
                if is_stopped():
                    raise Stopped
                row = {name: values[number] for name, values in batch.items()}
                if row["error"][0]:
                    raise InputError(*map(str, row["error"]))
                yield row
    except ray.exceptions.RayError as problem:
        raise InputError(
            f"The work on the cluster failed: {first_line(problem)}.",
            "Workers may be lost now and then, but not again and again.",
            "Check memory and disk of its machines; the same command continues after the last complete block.",
        ) from problem


def embed_on_ray(
    backend: Backend,
    texts: Sequence[str],
    vectors: UnfinishedVectors,
    progress: ReportProgress,
    is_stopped: IsStopped,
    address: str | None = None,
) -> None:
    """Embed the waiting blocks of an unfinished index; `progress(done, total)` counts sentences, block by block.

    For `build_index`, with `address` set by functools.partial. Raises InputError (see `cluster.connected`) and Stopped.
    """
    progress(vectors.sentences, len(texts))
    waiting = [(block, texts[vectors.rows(block)]) for block in vectors.waiting()]
    if not waiting:
        return
    with connected(address) as ray:
        info = vectors.info
        for row in embedded_blocks(ray, backend, waiting, info.options, info.dtype, is_stopped):
            block = int(row["block"])
            vectors.keep(vectors.rows(block), row["vectors"])
            vectors.finish(block, int(row["tokens"]), int(row["truncated"]))
            progress(vectors.sentences, len(texts))


def embed_into_on_ray(
    backend: Backend,
    texts: Sequence[str],
    options: EmbedOptions,
    sink: Sink,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
    address: str | None = None,
    sentences_per_block: int = SENTENCES_PER_BLOCK,
) -> None:
    """As `Backend.embed_into`: each block goes to `sink(rows, vectors [layer, pooling, n, dim])` when it is finished."""
    starts = range(0, len(texts), sentences_per_block)
    blocks = [(number, texts[start : start + sentences_per_block]) for number, start in enumerate(starts)]
    done = 0
    with connected(address) as ray:
        for row in embedded_blocks(ray, backend, blocks, options, is_stopped=is_stopped):
            number = int(row["block"])
            rows = np.arange(len(blocks[number][1])) + starts[number]
            sink(rows, row["vectors"])
            done += len(rows)
            progress(done, len(texts))
