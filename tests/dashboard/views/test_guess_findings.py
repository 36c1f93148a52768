"""What is said about guesses, from numbers that are written here: each case, and those in which the usual story is false."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dashboard.views.attention.guess import findings
from dashboard.views.attention.guess.findings import Guessed

NAN = float("nan")


def guessed(**changes: Any) -> Guessed:
    """“paris” is guessed first, from block 4 of six on; looking only left it is third."""
    values: dict[str, Any] = {
        "pieces": ("paris", "lyon", "lille"),
        "probabilities": np.array([0.42, 0.071, 0.063]),
        "first_ranks": np.array([9120, 6400, 1310, 204, 5, 1, 1]),
        "true": "paris",
        "true_ranks": np.array([9120, 6400, 1310, 204, 5, 1, 1]),
        "true_share": 0.42,
        "n_pieces": 30522,
        "only_left": False,
        "other_rank": 3,
        "other_first": "the",
        "other_share": 0.14,
    }
    return Guessed(**{**values, **changes})


LEFT = {
    "pieces": ("the", "a", "paris"),
    "probabilities": np.array([0.14, 0.09, 0.081]),
    "true_ranks": np.array([9120, 6400, 1310, 204, 5, 3, 3]),
    "true_share": 0.081,
    "only_left": True,
    "other_rank": 1,
}
TYPED = {"true": None, "true_ranks": np.zeros(7, int), "true_share": NAN, "other_rank": None}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "“paris” is the first guess (42 %), since block 4; looking only left it is third."),
        (LEFT, "The first guess is “the” (14 %); “paris” is third of 30,522; seeing both sides it is first."),
        ({"other_rank": 1}, "“paris” is the first guess (42 %), since block 4; looking only left it is first too."),
        ({"other_rank": None}, "“paris” is the first guess (42 %), since block 4."),  # no causal mask for this model
        ({"other_rank": 1203}, "“paris” is the first guess (42 %), since block 4; looking only left it is 1,203rd."),
        # First in between, and lost again: it does not count from there.
        (
            {"true_ranks": np.array([9, 1, 1, 2, 5, 4, 1])},
            "“paris” is the first guess (42 %), only after the last block; looking only left it is third.",
        ),
        (
            {"true_ranks": np.ones(7, int)},
            "“paris” is the first guess (42 %), at every layer; looking only left it is third.",
        ),
        (
            {"true_ranks": np.array([12, 1]), "first_ranks": np.array([12, 1])},
            "“paris” is the first guess (42 %), after its only block; looking only left it is third.",
        ),
        (
            {**TYPED, "other_first": "the"},
            "The first guess is “paris” (42 %), since block 4; looking only left it is “the” (14 %).",
        ),
        (
            {**TYPED, "other_first": "paris"},
            "The first guess is “paris” (42 %), since block 4; looking only left it is the same (14 %).",
        ),
        ({**TYPED, "other_first": "", "other_share": NAN}, "The first guess is “paris” (42 %), since block 4."),
        (
            {"probabilities": np.array([0.2, 0.2, 0.1]), "true_ranks": np.array([2, 2])},
            "“paris” and “lyon” share the first place (20 % each); “paris” is second of 30,522; looking only left it is third.",
        ),
        (
            {**TYPED, "probabilities": np.array([0.2, 0.2, 0.2]), "other_first": ""},
            "“paris” and “lyon” and 1 more share the first place (20 % each).",
        ),
    ],
)
def test_one_mask(changes: dict[str, Any], said: str) -> None:
    assert findings.of_guess(guessed(**changes)) == said


def test_a_right_guess_at_a_tie_is_not_said_to_be_first() -> None:
    tie = guessed(probabilities=np.array([0.2, 0.2 * (1 - 1e-12), 0.1]), true_ranks=np.array([2, 2]))
    assert "is the first guess" not in findings.of_guess(tie)


def test_several_masks_are_guessed_one_by_one() -> None:
    right, wrong = guessed(), guessed(**LEFT)
    unknown = guessed(**TYPED)
    assert findings.of_several([unknown, unknown]) == (
        "Each of the 2 masks is guessed by itself: “paris” (42 %) and “paris” (42 %) come first."
    )
    assert findings.of_several([right, wrong], "walking") == (
        "Each of the 2 pieces of “walking” is guessed by itself: “paris” (42 %) and “the” (14 %) come first; 1 of 2 is right."
    )
    assert findings.of_several([right, right]).endswith("; all of 2 are right.")
    assert findings.of_several([wrong, wrong]).endswith("; none of 2 are right.")
    assert findings.of_several([unknown, wrong]).endswith("come first; “paris” is third.")
    assert "“paris” (42 %), “paris” (42 %), “paris” (42 %) … come first" in findings.of_several([unknown] * 5)


def test_words_of_ranks_and_probabilities() -> None:
    ranks = {1: "first", 10: "tenth", 11: "11th", 12: "12th", 21: "21st", 57: "57th", 102: "102nd", 1113: "1,113th"}
    assert {rank: findings.ordinal(rank) for rank in ranks} == ranks
    shares = {0.42: "42 %", 0.0996: "10 %", 0.0994: "9.9 %", 0.002: "0.2 %", 1e-7: "less than 0.1 %", 0.0: "0 %"}
    assert {share: findings.share_text(share) for share in shares} == shares
    assert findings.share_text(0.9999) == "over 99 %"
    assert findings.share_text(1.0) == "100 %"


@pytest.mark.parametrize(
    ("piece", "marks", "said"),
    [
        ("bank", False, "bank"),
        ("##ing", False, "…ing"),
        ("##", False, "##"),
        ("Ġbank", True, "bank"),
        ("ing", True, "…ing"),
        ("▁the", True, "the"),
        (".", True, "."),
        ("<mask>", True, "<mask>"),
        ("▁", True, "(space)"),
        ("", False, "(no piece)"),
    ],
)
def test_pieces_are_readable(piece: str, marks: bool, said: str) -> None:
    assert findings.readable(piece, marks) == said


def test_which_word_surprises_most() -> None:
    assert findings.of_surprise([("The", 0.5), ("France", 1.7)]) == "in bits; most by “France”"
    assert findings.of_surprise([("the", 1.0), ("cat", 1.0)]) == "in bits; equally by each word"
    assert findings.of_surprise([]) == ""


def test_two_contexts() -> None:
    river = guessed(pieces=("bed", "bank", "paris"), probabilities=np.array([0.3, 0.2, 0.1]))
    assert findings.of_two(guessed(), river, 10) == (
        "Sentence A: first comes “paris” (42 %); sentence B: “bed” (30 %). 1 of 3 guesses is the same."
    )
    same = findings.of_two(guessed(), guessed(probabilities=np.array([0.1, 0.05, 0.01])), 10)
    assert same == "“paris” comes first in both sentences (42 % and 10 %). 3 of 3 guesses are the same."
    other = guessed(pieces=("a", "b", "c"))
    assert findings.of_two(guessed(), other, 10).endswith("None of 3 guesses are the same.")


def test_a_template_is_called_an_anecdote() -> None:
    fillings, asked = ("nurse", "doctor"), ("she", "he")
    turned = findings.of_template(fillings, asked, np.array([[0.6, 0.1], [0.05, 0.4]]))
    assert turned == (
        "“she” is likelier than “he” with “nurse” (60 % and 10 %), and less likely with “doctor” (5.0 % and 40 %). "
        "One template is an anecdote."
    )
    usual = findings.of_template(fillings, asked, np.array([[0.6, 0.1], [0.5, 0.4]]))
    assert (
        usual == "“she” is likelier than “he” with every filling: least so with “doctor”. One template is an anecdote."
    )
    never = findings.of_template(fillings, asked, np.array([[0.1, 0.2], [0.1, 0.4]]))
    assert (
        never == "“he” is likelier than “she” with every filling: least so with “nurse”. One template is an anecdote."
    )
    one = findings.of_template(("nurse",), asked, np.array([[0.6, 0.1]]))
    assert one == "With “nurse”, “she” and “he” have 60 % and 10 %. One template is an anecdote."
    single = findings.of_template(fillings, ("she",), np.array([[0.6], [0.1]]))
    assert single == "“she” has 60 % with “nurse”, and 10 % with “doctor”. One template is an anecdote."
    unknown = findings.of_template(fillings, ("xyzzy",), np.full((2, 1), NAN))
    assert unknown == "None of the words is one piece of this model's vocabulary. One template is an anecdote."
