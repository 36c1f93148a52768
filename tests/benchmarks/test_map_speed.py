"""The map's promises: ratios in one run, against umap-learn itself (`make bench -s`)."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from components.analysis.maps import drawing
from components.analysis.maps.drawing import MapMaker
from components.analysis.maps.projection import MapOptions, layer_map, start_map
from components.analysis.maps.token_set import of_corpus
from components.jobs import Lane, Queue
from tests.support.measurements import report
from tests.support.places import ASSETS

CORPUS = ASSETS / "demo_corpus.jsonl"


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [json.loads(line)["sentence"] for line in CORPUS.read_text(encoding="utf-8").splitlines()]


def seconds(action: Callable[[], Any]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def their_umap(vectors: np.ndarray) -> Any:
    from umap import UMAP

    return UMAP(n_neighbors=15, min_dist=0.1, metric="cosine", random_state=0, n_jobs=1).fit_transform(vectors)


def test_all_layers_of_200_tokens_against_aligned_umap(embedded: Any, texts: list[str]) -> None:
    from umap import AlignedUMAP

    vectors = np.asarray(embedded.token_vectors(texts, max_tokens=200).vectors, np.float32)  # [layer, token, dim]
    same = [{row: row for row in range(200)}] * 6
    options = MapOptions()

    def ours() -> list[np.ndarray]:
        start = start_map(vectors, options)
        return [layer_map(layer, options, start) for layer in vectors]

    def theirs() -> Any:
        model = AlignedUMAP(n_neighbors=15, min_dist=0.1, metric="cosine", random_state=0)
        return model.fit(list(vectors), relations=same)

    ours()
    theirs()  # both have compiled what they need
    mine, other = (statistics.median(seconds(action) for _ in range(3)) for action in (ours, theirs))
    report(f"7 layers of 200 tokens: {mine:.2f} s, AlignedUMAP {other:.2f} s: {mine / other:.2f}")
    assert mine / other <= 0.5


def test_5000_tokens_against_umap_learns_own_fit(embedded: Any, texts: list[str]) -> None:
    vectors = np.asarray(embedded.token_vectors(texts, layers=(6,), max_tokens=5_000).vectors[0], np.float32)
    options = MapOptions()
    start = layer_map(vectors, MapOptions("pca"), None)
    layer_map(vectors, options, start)
    their_umap(vectors)
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(3):  # in turn, so that a slow minute hits both
        times["ours"].append(seconds(lambda: layer_map(vectors, options, start)))
        times["theirs"].append(seconds(lambda: their_umap(vectors)))
    mine, other = (statistics.median(taken) for taken in times.values())
    report(f"5,000 tokens: {mine:.2f} s, umap-learn's own fit {other:.2f} s: {mine / other:.2f}")
    assert mine / other <= 1.1


def test_a_layer_change_on_a_computed_map_fits_nothing(embedded: Any, texts: list[str], monkeypatch: Any) -> None:
    found = embedded.token_vectors(texts, max_tokens=5_000)
    tokens = of_corpus(("bench",), found, texts, {})
    maker, options = MapMaker(Queue({"quick maps": Lane()})), MapOptions("pca")
    assert maker.request(tokens, options, range(7)).wait(60)
    passes = embedded.forward_passes

    def never(*_: Any) -> None:
        raise AssertionError("a refit")

    monkeypatch.setattr(drawing, "layer_map", never)
    taken = seconds(lambda: [maker.request(tokens, options, [layer]).maps[layer] for layer in range(7)])
    report(f"seven layer changes of 5,000 tokens: {1000 * taken:.2f} ms, no pass, no fit")
    assert embedded.forward_passes == passes
