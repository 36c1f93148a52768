"""Runs in rows: their differences with intervals, what is more than chance, and for which queries two of them differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from components.retrieval.evaluation import metrics
from components.retrieval.evaluation.chance import paired
from components.retrieval.evaluation.metrics import Interval
from components.retrieval.evaluation.ranks import NOT_FOUND
from dashboard.views.evaluate.rows import runs
from dashboard.views.evaluate.rows.runs import RunRow, for_whom


def row(name: str, value: float, difference: float | None = None, is_clear: bool = False) -> RunRow:
    apart = None if difference is None else Interval(difference, difference - 1, difference + 1)
    return RunRow(
        name, Interval(value, value - 2, value + 2), (value, value, value), apart, is_clear, difference is None
    )


REFERENCE = np.array([1, 1, 1, 2, 3, NOT_FOUND, 9])
OTHER = np.array([1, 1, 4, 1, 1, 1, 8])


def test_the_queries_are_those_that_one_run_both_or_neither_answers_the_hardest_first() -> None:
    found = for_whom(OTHER, REFERENCE, 1)
    assert found.both.tolist() == [0, 1]
    assert found.only_run.tolist() == [5, 4, 3]  # by how far the reference misses them
    assert found.only_reference.tolist() == [2]
    assert found.neither.tolist() == [6]
    assert found.missed == 4
    assert len(for_whom(OTHER, REFERENCE, 3).both) == 4


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (
            row("MaxSim", 98, 1.4, True),
            "**MaxSim** is better than **Vectors** beyond chance, by Recall@1: it finds 3 of the 4 queries that **Vectors** "
            "misses, and loses 1.",
        ),
        (
            row("MaxSim", 90, -5, True),
            "**MaxSim** is worse than **Vectors** beyond chance, by Recall@1: it finds 3 of the 4 queries that **Vectors** "
            "misses, and loses 1.",
        ),
        (
            row("MaxSim", 97, 0.4),
            "**MaxSim** may be as good as **Vectors**, by Recall@1: it finds 3 of the 4 queries that **Vectors** misses, and "
            "loses 1.",
        ),
    ],
)
def test_the_finding_says_better_worse_or_unsure(one: RunRow, said: str) -> None:
    assert runs.finding(one, row("Vectors", 96.7), "Recall@1", for_whom(OTHER, REFERENCE, 1), 1) == said


def test_the_best_run_is_told_first_with_how_many_it_surely_beats() -> None:
    best = replace(row("Layer 6, Mean", 96.7), is_reference=True, difference=None)
    worse, near = row("TF-IDF", 82.4, -14.3, True), row("Layer 6, [CLS]", 95.0, -1.7)
    said = "**Layer 6, Mean** has the best Recall@1, 96.7 %"
    assert runs.leading([worse, best], "Recall@1") == f"{said}, clearly more than the other."
    assert runs.leading([worse, best, worse], "Recall@1") == f"{said}, clearly more than all 2 others."
    assert runs.leading([near, best, worse], "Recall@1") == f"{said}, clearly more than 1 of the 2 others."
    assert runs.leading([near, best], "Recall@1") == f"{said}, but no other is clearly worse."
    # Where another one is compared with, or stands alone, nothing is said of chance.
    other = replace(row("BM25", 81.9), is_reference=True, difference=None)
    assert runs.leading([other, row("Layer 6, Mean", 96.7, 14.8, True)], "Recall@1") == f"{said}."
    elsewhere = replace(row("On other data", 99.0), difference=None, is_reference=False)
    assert runs.leading([elsewhere, best], "Recall@1") == f"{said}."
    # The pair is then told without the verdict; not where the reference is not the best.
    found = for_whom(OTHER, REFERENCE, 1)
    assert runs.finding(worse, best, "Recall@1", found, 1, True) == (
        "**TF-IDF** finds 3 of the 4 queries that **Layer 6, Mean** misses, and loses 1."
    )
    assert "may be as good as" in runs.finding(near, best, "Recall@1", found, 1, True)


def test_equal_runs_are_both_told_whichever_stands_first() -> None:
    one = replace(row("A", 96.68), is_reference=True, difference=None)
    two, worse = row("B", 96.7, 0.0), row("C", 80.0, -16.7, True)
    for rows in ([one, two], [two, one]):
        assert runs.best_of(rows) is one  # so that the pair is told without the verdict
        assert runs.leading(rows, "MRR") == "**A** has the best MRR, 96.7 %; **B** has as much."
    assert runs.leading([two, worse, one], "MRR") == (
        "**A** has the best MRR, 96.7 %, clearly more than 1 of the 2 others; **B** has as much."
    )
    assert runs.leading([two, one, two, row("D", 96.0, -0.7)], "MRR") == (
        "**A** has the best MRR, 96.7 %, but no other is clearly worse; 2 others have as much."
    )


def test_a_difference_is_that_of_the_values_beside_it() -> None:
    best = replace(row("Layer 6, Mean", 96.66), is_reference=True, difference=None)
    bag = row("Bag of words", 72.24, -24.42, True)  # shown as 72.2 and 96.7
    assert "<strong>−24.5</strong>" in runs.drawn([best, bag], "Recall@1", "Layer 6, Mean")


def test_a_difference_that_is_unsure_only_by_the_correction_says_so_with_its_size() -> None:
    one = replace(row("TF-IDF", 77.1, -7.9), comparisons=6)
    found = for_whom(OTHER, REFERENCE, 1)
    said = runs.finding(one, row("Vectors", 85), "Recall@1", found, 1)
    assert said.startswith(
        "**TF-IDF** is 7.9 points lower than **Vectors** by Recall@1; unsure after correcting for 6 comparisons: it finds 3"
    )
    assert "−7.9 <small>unsure after correcting for 6 comparisons</small>" in runs.drawn([one], "Recall@1", "Vectors")
    picked = replace(one, comparisons=28, among=8)  # the best one was taken as the reference
    assert picked.unsure == "unsure after correcting for all 28 pairs of the 8 runs"
    near = replace(row("TF-IDF", 84.6, -0.4), comparisons=6)  # its own interval holds 0
    assert "−0.4 <small>unsure</small>" in runs.drawn([near], "Recall@1", "Vectors")
    assert "may be as good as" in runs.finding(near, row("Vectors", 85), "Recall@1", found, 1)


def test_runs_that_answer_the_same_queries_are_said_to() -> None:
    found = for_whom(REFERENCE, REFERENCE, 2)
    said = runs.finding(row("Copy", 50, 0.0), row("Vectors", 50), "MRR", found, 2)
    assert said == "**Copy** and **Vectors** answer the same queries among the first 2: 4 queries."


def test_differences_of_shares_have_tangos_interval_and_runs_on_other_data_none() -> None:
    judged = [metrics.recall(ranks, 1) for ranks in (REFERENCE, OTHER, OTHER)]
    found = runs.measured(judged, 0, [True, True, False])
    assert [difference for _, difference in found] == [None, paired.difference(3, 1, 7), None]
    assert found[1][0] == metrics.interval(judged[1])
    of_mrr = [metrics.reciprocal_rank(ranks) for ranks in (REFERENCE, OTHER)]
    assert runs.measured(of_mrr, 0, [True, True])[1][1] == metrics.difference_interval(of_mrr[1] - of_mrr[0])


def test_the_run_opened_first_is_a_better_one_or_else_one_with_queries_on_both_sides() -> None:
    subset = np.where(REFERENCE == 1, 1, REFERENCE).copy()
    subset[:2] = 5  # loses two, gains none
    ranks = [REFERENCE, subset, OTHER]
    vectors = [False, False, False]
    assert runs.most_telling(ranks, 0, [0, 1, 2], [], 1, vectors) == 2
    assert runs.most_telling(ranks, 0, [0, 1, 2], [1], 1, vectors) == 1
    assert runs.most_telling(ranks, 0, [0], [], 1, vectors) is None
    # Vectors are compared with words first, where there are both.
    assert runs.most_telling(ranks, 0, [0, 1, 2], [], 1, [False, True, False]) == 1
    assert runs.most_telling(ranks, 0, [0, 1, 2], [], 1, [False, None, None]) == 2
    assert runs.most_telling(ranks, 0, [0, 1, 2], [], 1, [None, True, False]) == 2


def test_rows_stand_in_order_and_only_a_clear_difference_is_bold() -> None:
    drawn = runs.drawn(
        [
            row("Vectors", 96.7),
            row("<b>Best</b>", 98.1, 1.4, True),
            row("Words", 80.2, -16.5, True),
            row("Max", 96, -0.7),
        ],
        "Recall@1",
        "Vectors",
    )
    places = [drawn.index(f">{name} ") for name in ("&lt;b&gt;Best&lt;/b&gt;", "Vectors", "Max", "Words")]
    assert places == sorted(places)
    assert "<strong>+1.4</strong>" in drawn
    assert "<strong>−16.5</strong>" in drawn
    assert "−0.7 <small>unsure</small>" in drawn
    assert drawn.count("(reference)") == 1
    assert drawn.count('<b class="better"') == drawn.count('<b class="worse"') == drawn.count('<b class="unsure"') == 1


def test_there_is_one_square_for_each_query_and_three_lists_with_both_ranks() -> None:
    queries = [f"query <{number}>" for number in range(7)]
    found = for_whom(OTHER, REFERENCE, 1)
    drawn = runs.squares(found, "MaxSim", "Vectors", queries, OTHER, REFERENCE, 1)
    inside = drawn[drawn.index('class="squares few"') : drawn.index('class="lists"')]
    assert [inside.count(f'<i class="{kind}">') for kind in ("both", "run", "reference", "neither")] == [2, 3, 1, 1]
    assert "query &lt;5&gt;</span><span>1 · –</span>" in drawn  # not found by one of them
    assert "Only MaxSim: 3" in drawn
    many = np.ones(4_000, np.int64)
    drawn = runs.squares(for_whom(many, many, 1), "A", "B", ["q"] * 4_000, many, many, 1)
    assert 'class="squares"' in drawn  # as small as many need
    assert "a square is up to 3 queries" in drawn
