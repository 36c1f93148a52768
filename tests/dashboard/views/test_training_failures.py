"""Known failures before and after training: shares of comparisons, and what is said where training made nothing better."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.why.contrasts import Separation
from components.retrieval.corpora.minimal_pairs import MinimalPairs
from dashboard.views.training import failures
from dashboard.views.training.failures import PairFailures


def share(value: float) -> Separation:
    return Separation(value, value - 0.05, value + 0.05)


def test_the_shares_are_those_of_all_comparisons_and_equal_cosines_count_half() -> None:
    pairs = MinimalPairs(("negation",) * 2 + ("paraphrase",) * 2 + ("time",), ("a",) * 5, ("b",) * 5)
    before = np.array([0.9, 0.5, 0.6, 0.5, 0.1])
    after = np.array([0.1, 0.2, 0.6, 0.5, 0.6])
    found = failures.measured([before, after], pairs)
    assert found.kinds == ("negation", "time")
    assert [of.value for of in found.base] == pytest.approx([(1 + 0.5) / 4, 1])
    assert [of.value for of in found.tuned] == pytest.approx([1, 0.25])
    assert found.untouched is None
    assert failures.most_changed(found) == "time"
    assert failures.measured([before, after, before], pairs).untouched == found.base


@pytest.mark.parametrize(
    ("base", "tuned", "said"),
    [
        (
            (0.08, 0.03, 0.5),
            (0.53, 0.02, 0.1),
            "**Negation:** a paraphrase is nearer than a pair that differs by negation "
            "in 8 % of comparisons before training, "
            "**53 %** after it: a clear rise, to about what guessing gives (50 % within its interval). "
            "Of the 2 other kinds, none clearly rose and 1 (time) clearly fell.",
        ),
        (
            (0.5, 0.1, 0.1),
            (0.3, 0.9, 0.9),
            "**Negation:** a paraphrase is nearer than a pair that differs by negation "
            "in 50 % of comparisons before training, "
            "**30 %** after it, less than by guessing (50 %). "
            "Of the 2 other kinds, 2 (numbers and time) clearly rose and none clearly fell.",
        ),
        (
            (0.5,),
            (0.5,),
            "**Negation:** a paraphrase is nearer than a pair that differs by negation "
            "in **50 %** of comparisons before and after "
            "training: no more than guessing (50 % within its interval).",
        ),
        (
            (0.5,),
            (0.9,),
            "**Negation:** a paraphrase is nearer than a pair that differs by negation "
            "in 50 % of comparisons before training, "
            "**90 %** after it (guessing: 50 %).",
        ),
    ],
)
def test_the_finding_says_whether_it_rose_and_what_became_of_the_others(
    base: tuple[float, ...], tuned: tuple[float, ...], said: str
) -> None:
    kinds = ("negation", "numbers", "time")[: len(base)]
    found = PairFailures(kinds, tuple(map(share, base)), tuple(map(share, tuned)))
    assert failures.finding(found, "negation") == said


def test_the_name_of_a_kind_keeps_its_capital_letters() -> None:
    found = PairFailures(("NP and VP of Rome",), (share(0.5),), (share(0.9),))
    assert failures.finding(found, "NP and VP of Rome").startswith("**NP and VP of Rome:** ")
