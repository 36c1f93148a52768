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
from components.retrieval.corpus import read_corpus
from components.retrieval.evaluation import compressed_pairs, retrieval_runs
from components.retrieval.ranks import gold_ranks
from tests.benchmarks.test_speed import report

PAIRS = Path(__file__).resolve().parents[3] / "shared" / "data" / "compression-pairs.jsonl"
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


def test_the_whole_grid_against_embedding(embedded: Any) -> None:
    if not PAIRS.exists():
        pytest.skip("the real pairs are not here")
    documents, queries, _ = compressed_pairs(read_corpus(PAIRS, "pairs.jsonl", "sentence"))
    options = embedded.embed_options(range(7), POOLINGS, precision="float32")
    embedded.embed(documents[:256], options=options)
    alone, whole = [], []
    for _ in range(2):
        alone.append(seconds(lambda: [embedded.embed(texts, options=options) for texts in (documents, queries)]))
        whole.append(seconds(lambda: list(retrieval_runs(embedded, documents, queries, options))))
    ratio = min(whole) / min(alone)
    report(f"grid of {len(documents):,} pairs: {min(whole):.1f} s, embedding alone {min(alone):.1f} s: {ratio:.2f}")
    assert ratio <= 1.5
