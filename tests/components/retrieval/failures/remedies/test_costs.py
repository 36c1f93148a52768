"""What a search costs: the median of all searches counts, and a remedy's arrays add to those of the vectors."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from components.jobs import Stopped
from components.retrieval.failures.remedies import costs, kinds
from components.retrieval.failures.remedies.costs import REPEATS, TIMED, SearchCost, cost, cost_now, first_hits
from tests.components.retrieval.failures import planted
from tests.components.retrieval.failures.remedies.planted_remedies import COUNT, setting_of, word_vectors
from tests.support.closeness import assert_close


def test_the_median_of_all_searches_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search of query n takes n + 1 ms, and 50 ms more for the first seven, while other work goes on."""
    clock, searched = [0.0], []
    monkeypatch.setattr(costs.time, "perf_counter", lambda: clock[0])

    def search(query: str) -> None:
        searched.append(query)
        clock[0] += (int(query) + 1) / 1000 + (0.05 if len(searched) <= 7 else 0)

    queries = [str(number) for number in range(9)]
    # The first search of each warms up; then 51, 53, 5, 7, 9, and twice 1, 3, 5, 7, 9 ms.
    assert cost(search, queries, 128.0) == SearchCost(pytest.approx(7.0), 128.0)
    assert searched == queries[::2] * (1 + REPEATS)  # from the first to the last
    assert len(searched) == TIMED * (1 + REPEATS)
    with pytest.raises(Stopped):
        cost(search, queries, 4.0, is_stopped=lambda: True)


def test_a_remedy_adds_its_own_part_to_a_search_with_which_it_takes_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The remedy takes 3 ms more; other work lengthens the first eight searches by 50 ms."""
    clock, asked = [0.0], []
    monkeypatch.setattr(costs.time, "perf_counter", lambda: clock[0])

    def search(query: str, more: int = 0) -> None:
        asked.append(more)
        clock[0] += (10 + more + (50 if len(asked) <= 8 else 0)) / 1000

    found = cost(partial(search, more=3), ["a", "b"], 4.0, now=search)
    assert (found.more, found.milliseconds) == (pytest.approx(3.0), pytest.approx(13.0))
    assert asked == [0, 3, 3, 0] * (1 + REPEATS)  # each of them first in turn


def test_a_difference_that_may_be_chance_is_no_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other work lengthens more of the searches that are now; most turns, but not nearly all, find the remedy faster."""
    clock, turns = [0.0], {"now": 0, "remedy": 0}
    monkeypatch.setattr(costs.time, "perf_counter", lambda: clock[0])

    def search(query: str, which: str = "now") -> None:
        turns[which] += 1
        is_slowed = turns[which] % 3 if which == "now" else turns[which] % 3 == 0
        clock[0] += 0.01 + 0.004 * bool(is_slowed)

    found = cost(partial(search, which="remedy"), list("abcde"), 4.0, now=search)
    assert found.more == 0.0
    assert found.milliseconds == pytest.approx(10.0)


def test_a_search_of_one_query_finds_what_the_ranks_say_and_remedies_add_their_arrays() -> None:
    texts = planted.demo_texts(COUNT)
    setting = setting_of(texts, [planted.own_words(text) for text in texts])
    now = setting.present
    search = first_hits(now.asked_alone, now.document_vectors)
    found = int(np.flatnonzero(now.now == 1)[0])
    hits = search(now.queries[found]).tolist()
    assert (len(hits), hits[0]) == (costs.HITS, found)
    own = cost_now(now).bytes_per_text
    assert_close(own, 4 * planted.DIM)
    tokens = np.mean([word_vectors(text).size for text in texts])
    assert_close(kinds.measure("maxsim", setting).cost("share 1").bytes_per_text, own + 4 * float(tokens))
    assert_close(kinds.measure("prompt", setting).cost("“query: ”").bytes_per_text, own)
    assert kinds.measure("prompt", setting).cost("“query: ”").once == ""


def test_the_words_of_a_corpus_are_kept_once_and_not_for_each_text() -> None:
    texts = planted.demo_texts(COUNT)
    setting = setting_of(texts, [planted.own_words(text).upper() for text in texts])
    remedy = kinds.measure("repair", setting)
    found = remedy.cost(next(iter(remedy.options)))
    assert_close(found.bytes_per_text, 4 * planted.DIM)
    assert found.bytes_once == setting.known.own_nbytes > 0
    assert (found.once[:2], found.once[-7:]) == (" (", ", once)")
