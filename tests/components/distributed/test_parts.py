"""What comes back from workers in any order stands at its own place, and how many workers there is room for: no cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from components.distributed import embedding, ranks
from components.distributed.cluster import workers
from components.distributed.embedding import embed_into_on_ray
from components.distributed.ranks import QUERIES_PER_SLICE, gold_ranks_on_ray
from components.retrieval.evaluation.ranks import QUERIES_PER_BLOCK, gold_ranks


class LastFirst:
    """What is asked of Ray: each task is computed when it is asked for, the last one first."""

    def __init__(self, *nodes: tuple[bool, dict[str, float]]) -> None:
        self._nodes = nodes or ((True, {"CPU": 4.0}),)

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": is_alive, "Resources": resources} for is_alive, resources in self._nodes]

    def put(self, value: Any) -> Any:
        return value

    def remote(self, **_: Any) -> Callable[..., Any]:
        def of(function: Callable[..., Any]) -> Any:
            return type("Remote", (), {"remote": staticmethod(lambda *given: _Task(lambda: function(*given)))})

        return of

    def wait(self, tasks: list[Any], timeout: float) -> tuple[list[Any], list[Any]]:
        return tasks[-1:], tasks[:-1]

    def get(self, task: _Task, timeout: float) -> Any:
        return task.compute()


class _Task:
    def __init__(self, compute: Callable[[], Any]) -> None:
        self.compute = compute


def test_ranks_of_slices_stand_at_their_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "connected", lambda address: nullcontext(LastFirst()))
    random = np.random.default_rng(0)
    queries, documents = random.normal(size=(20, 4)), random.normal(size=(30, 4))
    gold = random.permutation(30)[:20]
    done: list[tuple[int, int]] = []
    found = gold_ranks_on_ray(queries, documents, gold, lambda *counts: done.append(counts), queries_per_slice=6)
    np.testing.assert_array_equal(found, gold_ranks(queries, documents, gold))
    assert done[-1] == (20, 20)


def test_vectors_of_blocks_stand_at_their_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    def lengths(
        ray: Any, backend: Any, blocks: Sequence[tuple[int, Sequence[str]]], *_: Any, **__: Any
    ) -> Iterator[Any]:
        for number, texts in reversed(blocks):
            yield {"block": number, "vectors": np.array([len(text) for text in texts])}

    monkeypatch.setattr(embedding, "connected", lambda address: nullcontext(None))
    monkeypatch.setattr(embedding, "embedded_blocks", lengths)
    texts = ["a" * length for length in (3, 1, 4, 1, 5, 9, 2, 6)]
    kept, done = np.zeros(8, int), []
    embed_into_on_ray(
        None,  # type: ignore[arg-type]
        texts,
        None,  # type: ignore[arg-type]
        kept.__setitem__,
        lambda *counts: done.append(counts),
        sentences_per_block=3,
    )
    assert kept.tolist() == [3, 1, 4, 1, 5, 9, 2, 6]
    assert done == [(2, 8), (5, 8), (8, 8)]


def test_workers_take_what_every_machine_has() -> None:
    mixed = LastFirst((True, {"CPU": 8.0}), (True, {"CPU": 2.0}), (False, {"CPU": 64.0, "GPU": 4.0}))
    assert workers(mixed) == (
        5,
        {"num_cpus": 2, "num_gpus": 0},
    )  # 4 on one and 1 on the other; none on one that is lost
    assert workers(LastFirst((True, {"CPU": 9.0}))) == (2, {"num_cpus": 4, "num_gpus": 0})
    with_gpus = LastFirst((True, {"CPU": 8.0, "GPU": 2.0}))
    assert workers(with_gpus) == (2, {"num_cpus": 1, "num_gpus": 1})
    assert workers(with_gpus, on_cpus=True) == (2, {"num_cpus": 4, "num_gpus": 0})


@pytest.mark.parametrize(("queries", "count"), [(10, 4), (5_000, 3), (1_000_000, 2)])
def test_slices_are_whole_blocks_of_one_machine(queries: int, count: int) -> None:
    size = ranks._slice_size(queries, count)
    assert size % QUERIES_PER_BLOCK == 0
    assert QUERIES_PER_BLOCK <= size <= max(QUERIES_PER_SLICE, QUERIES_PER_BLOCK)
