"""One sentence of advice: what each half advises, and what is better over both."""

from __future__ import annotations

import numpy as np
import pytest

from components.retrieval.failures.remedies.advice import advice, repaired_by_trait
from components.retrieval.failures.remedies.folds import RemedyRanking, measured
from components.retrieval.failures.traits import Traits, TraitShare, compared

TITLES = {"prompt": "a prompt", "repair": "query repair", "maxsim": "MaxSim re-ranking"}
QUERIES = [f"query {number}" for number in range(160)]
NOW = np.where(np.arange(160) % 4 == 0, 2, 1)  # 40 fail, 20 of each half
FIRST = np.arange(160) < 80


def repairing(*failures: int) -> np.ndarray:
    """Ranks with so many of the failures of each half repaired, or some of them harmed besides."""
    ranks = np.array(NOW)
    for half, count in zip((FIRST, ~FIRST), failures, strict=True):
        ranks[np.flatnonzero((NOW > 1) & half)[:count]] = 1
    return ranks


def said(shares: tuple[TraitShare, ...] = (), **ranks: np.ndarray) -> tuple[tuple[str | None, str | None], str]:
    options = {name: {"the one": own} for name, own in ranks.items()}
    results = {name: measured(NOW, own, FIRST) for name, own in options.items()}
    found = advice(NOW, options, results, TITLES, shares, QUERIES, FIRST)
    return found.halves, found.sentence


@pytest.mark.parametrize(("all_of_them", "is_named"), [(20, True), (0, False)])
def test_where_the_halves_differ_what_is_better_than_either_over_both_is_named(
    all_of_them: int, is_named: bool
) -> None:
    halves, sentence = said(
        prompt=repairing(18, 0), repair=repairing(0, 18), maxsim=repairing(all_of_them, all_of_them)
    )
    assert halves == ("prompt", "repair")
    decided = "Your data do not decide between a prompt and query repair: each half of the queries advises one of them"
    more = "; over both, MaxSim re-ranking is better than either." if is_named else "."
    assert sentence == f"{decided}{more}"


def test_the_cheapest_is_advised_and_a_better_dearer_one_is_named() -> None:
    halves, sentence = said(repair=repairing(18, 17), maxsim=repairing(20, 20))
    assert halves == ("repair", "repair")
    assert sentence.startswith("Query repair: it repaired 35 of 40 failures and harmed none of 120 found queries")
    assert sentence.endswith(" Over both, MaxSim re-ranking, which costs more, is better.")
    assert " Over both" not in said(repair=repairing(19, 19), maxsim=repairing(20, 20))[1]


def test_where_no_remedy_helps_the_sentence_begins_with_the_result_and_ends_with_what_failures_share() -> None:
    better = (
        "No remedy is clearly better: the right text is first for 75.0 % of the queries now and 76.2 % with the best one, "
        "query repair"
    )
    none = "No remedy is better: the right text is first for 75.0 % of the queries, and none raises that"
    named = compared(Traits(("negation",), (NOW > 1)[None]), NOW > 1)
    alike = compared(Traits(("negation",), (np.arange(160) % 2 == 0)[None]), np.arange(160) % 4 < 2)
    few = compared(Traits(("negation",), (NOW > 1)[None]), np.arange(160) < 29)
    for ranks, begin in ((repairing(1, 1), better), (np.array(NOW), none)):
        assert said(repair=ranks)[1] == said(few, repair=ranks)[1] == f"{begin}."
        assert said(named, repair=ranks)[1] == f"{begin}; your failures share “negation”."
        assert said(alike, repair=ranks)[1] == (
            f"{begin}; your failures share no trait more often than found queries by more than chance."
        )


def test_a_remedy_that_does_harm_for_sure_is_named_in_place_of_what_failures_share() -> None:
    harmful = np.where(np.arange(160) < 12, 2, NOW)  # 9 found queries fail with it
    always = measured(NOW, {"the one": np.array(NOW)}, FIRST).harms
    results = {
        "repair": measured(NOW, {"the one": repairing(1, 1)}, FIRST),
        "prompt": RemedyRanking("a prompt", ranks=harmful, now=NOW, chosen=("the one", "the one")),
    }
    options = {"repair": {"the one": repairing(1, 1)}, "prompt": {"the one": harmful}}
    named = compared(Traits(("negation",), (NOW > 1)[None]), NOW > 1)
    sentence = advice(NOW, options, results, TITLES, named, QUERIES, FIRST).sentence
    assert (always, results["prompt"].harms, results["repair"].harms) == (False, True, False)
    assert sentence.endswith("76.2 % with the best one, query repair; a prompt does harm.")


def test_of_each_named_trait_it_is_said_how_many_of_its_failures_the_advised_remedy_repaired() -> None:
    repaired = repairing(18, 18)
    number, misspelt = (NOW > 1) & (repaired > 1), (NOW > 1) & (repaired == 1)
    many = (NOW > 1) & (np.arange(160) % 8 == 0)
    holds = np.array([number | (np.arange(160) == 1), misspelt, many, misspelt])
    shares = compared(Traits(("negation", "likely misspelling", "long query", "unknown word"), holds), NOW > 1)
    options = {"repair": {"the one": repaired}}
    results = {name: measured(NOW, own, FIRST) for name, own in options.items()}
    sentence = advice(NOW, options, results, TITLES, shares, QUERIES, FIRST).sentence
    own = {name: int(((NOW > 1) & (repaired == 1) & held).sum()) for name, held in (("long query", many),)}
    assert repaired_by_trait(results["repair"], shares)["long query"] == own["long query"]
    assert sentence.endswith(
        "both halves of the queries advise it. Of the 36 failures with “likely misspelling” and “unknown word” (the same "
        f"queries) it repaired 36; of the 20 with “long query” {own['long query']}; of the 4 with “negation” none."
    )
