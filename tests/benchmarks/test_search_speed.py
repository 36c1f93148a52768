"""Exact search against one read of the matrix and sentence-transformers' search; the live query (`make bench -s`)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser

from components.retrieval.search.exact import ExactSearch
from tests.support.browser import settle
from tests.support.interactions import median_time, trivial_interaction
from tests.support.measurements import report
from tests.support.server import Server


def median_seconds(action: Callable[[], object], rounds: int) -> float:
    taken = []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        action()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken[1:])


@pytest.mark.parametrize(("sentences", "rounds"), [(36_000, 15), (1_000_000, 4)])
def test_exact_top_ten_against_one_read_of_the_matrix(sentences: int, rounds: int) -> None:
    from sentence_transformers.util import semantic_search

    numbers = np.random.default_rng(0)
    vectors = numbers.standard_normal((sentences, 384), dtype=np.float32)
    query = numbers.standard_normal(384, dtype=np.float32)
    engine = ExactSearch(vectors)
    shared, asked = torch.from_numpy(vectors), torch.from_numpy(query)
    ours = median_seconds(lambda: engine.search(query, 10), rounds)
    read = median_seconds(lambda: shared.sum(), rounds)
    theirs = median_seconds(lambda: semantic_search(asked, shared, top_k=10), max(2, rounds // 3))
    report(
        f"{sentences:,} x 384: top 10 in {1000 * ours:.1f} ms = {ours / read:.2f} reads ({1000 * read:.1f} ms); "
        f"semantic_search {1000 * theirs:.0f} ms = {theirs / ours:.1f} times"
    )
    found = semantic_search(asked, shared, top_k=10)[0]
    assert [hit["corpus_id"] for hit in found] == engine.search(query, 10).indices[0].tolist()
    assert ours <= 2 * read
    assert theirs >= 5 * ours


def first_hit(topic: str) -> str:
    return (
        "() => [...document.querySelectorAll('*')].some((element) =>"
        f" element.shadowRoot?.querySelector('.hits .hit .tag')?.textContent.startsWith({topic!r}))"
    )


def test_a_live_query_costs_at_most_three_trivial_interactions(
    browser: Browser,
    servers: Callable[..., Server],
) -> None:
    """From Enter to the hits of the demo corpus on the screen; each query is new, so each costs a forward pass."""
    trivial = trivial_interaction(browser, servers)
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{servers().url}/search")
    settle(page)
    page.wait_for_function(first_hit("volcano"), timeout=60_000)
    box = page.get_by_label("Query", exact=True)
    words = [("volcano erupts", "volcano"), ("an earthquake shook", "earthquake")]

    def ask(number: int) -> None:
        box.fill(f"{words[(number + 1) % 2][0]} {number}")
        box.press("Enter")

    taken = median_time(page, ask, lambda number: first_hit(words[(number + 1) % 2][1]))
    page.close()
    report(f"trivial {1000 * trivial:.0f} ms; live query {1000 * taken:.0f} ms = {taken / trivial:.2f}")
    assert taken <= 3 * trivial
