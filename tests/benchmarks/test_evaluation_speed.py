"""Evaluation's promises, as ratios in one run (`make bench -s`)."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from components.model.trace import POOLINGS
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.corpora.texts import Texts
from components.retrieval.evaluation.grid import retrieval_runs
from components.retrieval.evaluation.pair_runs import grid_ranks, pairs_of_corpus
from components.retrieval.evaluation.ranks import gold_ranks
from components.retrieval.index.build import build_index
from tests.support.measurements import report
from tests.support.places import DATA

PAIRS = DATA / "compression-pairs.jsonl"
COUNT, DIM = 36_000, 384


def seconds(action: Callable[[], Any]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def test_ranks_of_36000_queries_against_the_bare_products() -> None:
    random = np.random.default_rng(0)
    documents = random.normal(size=(COUNT, DIM)).astype(np.float32)
    queries = documents + random.normal(size=(COUNT, DIM)).astype(np.float32)
    process = psutil.Process()
    before, most, done = process.memory_info().rss, 0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(0.05):
            most = max(most, process.memory_info().rss)

    def bare() -> None:
        block = np.empty((512, 8_192), np.float32)
        for start in range(0, COUNT, 512):
            rows = queries[start : start + 512]
            for other in range(0, COUNT, 8_192):
                part = documents[other : other + 8_192]
                np.matmul(rows, part.T, out=block[: len(rows), : len(part)])

    threading.Thread(target=watch, daemon=True).start()
    gold_ranks(queries[:1024], documents)
    times: dict[str, list[float]] = {"ours": [], "bare": []}
    for _ in range(3):  # in turn, so that a slow minute hits both
        times["ours"].append(seconds(lambda: gold_ranks(queries, documents)))
        times["bare"].append(seconds(bare))
    done.set()
    ours, plain = (statistics.median(taken) for taken in times.values())
    report(
        f"{COUNT:,} ranks: {ours:.1f} s, bare products {plain:.1f} s: {ours / plain:.2f}; {(most - before) / 2**20:.0f} MiB"
    )
    assert ours / plain <= 1.3
    assert most - before < 1 << 30


def test_the_whole_grid_against_embedding(embedded: Any, tmp_path: Path) -> None:
    """Both ways: all at once, and by way of indexes on disk, as the dashboard goes."""
    if not PAIRS.exists():
        pytest.skip("the real pairs are not here")
    pairs = pairs_of_corpus(read_corpus(PAIRS, "pairs.jsonl", "sentence"))
    options = embedded.embed_options(range(7), POOLINGS, precision="float32")
    sides = (pairs.documents, pairs.queries)
    documents, queries = (side.texts for side in sides)
    embedded.embed(documents[:256], options=options)
    found: dict[str, Any] = {}

    def at_once() -> None:
        found["at once"] = list(retrieval_runs(embedded, documents, queries, gold_ranks, options))

    def by_indexes(turn: int) -> None:
        def index(side: Texts, name: str) -> Any:
            return build_index(embedded, side, tmp_path / f"{name} {turn}", options, "float32")

        found["indexes"] = grid_ranks(*(index(side, name) for side, name in zip(sides, ("d", "q"), strict=True)))

    alone, whole, indexed = [], [], []
    for turn in range(2):
        alone.append(seconds(lambda: [embedded.embed(texts, options=options) for texts in (documents, queries)]))
        whole.append(seconds(at_once))
        indexed.append(seconds(lambda turn=turn: by_indexes(turn)))
    for name, taken in (("at once", whole), ("by indexes", indexed)):
        report(
            f"grid of {len(pairs):,} pairs {name}: {min(taken):.1f} s, embedding alone {min(alone):.1f} s: "
            f"{min(taken) / min(alone):.2f}"
        )
    # What is quick must be right as well: the same ranks both ways.
    assert len(found["at once"]) == 7 * len(POOLINGS)
    for layer, pooling, ranks in found["at once"]:
        np.testing.assert_array_equal(found["indexes"].of(layer, pooling), ranks)
    assert min(whole) / min(alone) <= 1.5
    assert min(indexed) / min(alone) <= 1.5
