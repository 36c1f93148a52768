"""What is said about guesses, from numbers that are written here: each case, and those in which the usual story is false."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from components import numbers
from components.analysis.guesses.templates import Template, TemplateGuesses
from components.model.guesses import names
from dashboard.views.attention.guess import changes, findings
from dashboard.views.attention.guess.findings import Guessed

NAN = float("nan")


def guessed(**changes: Any) -> Guessed:
    """“paris” is guessed first, from layer 5 of six on; looking only left, “paris” is third."""
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
        ({}, "“paris” is the first guess (42 %), since layer 5; looking only left, “paris” is third."),
        (
            LEFT,
            "Looking only left, the first guess is “the” (14 %); “paris” is third of 30,522; "
            "seeing both sides, “paris” is first.",
        ),
        (
            {"other_rank": 1},
            "“paris” is the first guess (42 %), since layer 5; looking only left, “paris” is first too.",
        ),
        (
            {"probabilities": np.array([0.1, 0.096, 0.08]), "other_rank": None},
            "“paris” (10 %) and “lyon” (9.6 %) come first, nearly level.",
        ),
        (
            {**TYPED, "probabilities": np.array([0.1, 0.09, 0.08])},
            "“paris” (10 %) and “lyon” (9.0 %) come first, nearly level; looking only left, the first is “the” (14 %).",
        ),
        (
            {
                "true": "rome",
                "true_ranks": np.array([9, 5, 4, 2, 5, 4, 4]),
                "probabilities": np.array([0.1, 0.096, 0.08]),
            },
            "“paris” (10 %) and “lyon” (9.6 %) come first, nearly level; “rome” is fourth of 30,522; "
            "looking only left, “rome” is third.",
        ),
        ({"other_rank": None}, "“paris” is the first guess (42 %), since layer 5."),  # no causal mask for this model
        (
            {"other_rank": 1203},
            "“paris” is the first guess (42 %), since layer 5; looking only left, “paris” is 1,203rd.",
        ),
        # First in between, and lost meanwhile: "only" would be false.
        (
            {"true_ranks": np.array([9, 1, 1, 2, 5, 4, 1])},
            "“paris” is the first guess (42 %), again after the last block; looking only left, “paris” is third.",
        ),
        (
            {"true_ranks": np.array([9, 1, 3, 2, 1, 1, 1])},
            "“paris” is the first guess (42 %), again since layer 4; looking only left, “paris” is third.",
        ),
        (
            {"true_ranks": np.array([9, 5, 4, 2, 5, 4, 1])},
            "“paris” becomes the first guess (42 %) only after the last block; looking only left, “paris” is third.",
        ),
        (
            {"true_ranks": np.ones(7, int)},
            "“paris” is the first guess (42 %), at every layer; looking only left, “paris” is third.",
        ),
        (
            {"true_ranks": np.array([12, 1]), "first_ranks": np.array([12, 1])},
            "“paris” is the first guess (42 %), after its only block; looking only left, “paris” is third.",
        ),
        (
            {**TYPED, "other_first": "the"},
            "The first guess is “paris” (42 %), since layer 5; looking only left, it is “the” (14 %).",
        ),
        (
            {**TYPED, "other_first": "paris"},
            "The first guess is “paris” (42 %), since layer 5; looking only left, it is the same (14 %).",
        ),
        ({**TYPED, "other_first": "", "other_share": NAN}, "The first guess is “paris” (42 %), since layer 5."),
        (
            {"probabilities": np.array([0.2, 0.2, 0.1]), "true_ranks": np.array([2, 2])},
            "“paris” and “lyon” share the first place (20 % each); “paris” is second of 30,522; "
            "looking only left, “paris” is third.",
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
    assert findings.of_several([wrong, wrong]).startswith("Looking only left, each of the 2 masks")


def test_words_of_ranks_and_probabilities() -> None:
    ranks = {1: "first", 10: "tenth", 11: "11th", 12: "12th", 21: "21st", 57: "57th", 102: "102nd", 1113: "1,113th"}
    assert {rank: findings.ordinal(rank) for rank in ranks} == ranks
    shares = {0.42: "42 %", 0.0996: "10 %", 0.0994: "9.9 %", 0.002: "0.2 %", 1e-7: "less than 0.1 %", 0.0: "0 %"}
    assert {share: numbers.share_text(share) for share in shares} == shares
    assert numbers.share_text(0.9999) == "over 99 %"
    assert numbers.share_text(1.0) == "100 %"


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
    assert names.readable(piece, marks) == said


def test_which_word_surprises_most() -> None:
    france = "most by “France”: hidden, it gets 25 %, which is 2.0 bits"
    assert findings.of_surprise([("The", 0.5, 1), ("France", 2.0, 1)]) == france
    sums = "a word of several pieces has the sum of their bits, each hidden alone"
    assert findings.of_surprise([("Theresienstadt", 0.5, 4), ("France", 2.0, 1)]) == f"{france}; {sums}"
    assert findings.of_surprise([("the", 1.0, 1), ("cat", 1.0, 1)]) == "equally by each word"
    assert "blindly" not in findings.as_many_pieces(30_000.0, 30_522)
    assert findings.as_many_pieces(223_892.2, 30_522).endswith(": worse than guessing blindly among its 30,522 pieces")
    assert findings.of_surprise([]) == ""
    assert findings.of_surprise([("The", 0.5, 1), ("cat", 1.7, 1), ("the", 12.0, 1)]) == (
        "most by the second “the”: hidden, it gets one chance in 4,100, which is 12.0 bits"
    )
    # Of several pieces no probability of the word is known.
    assert findings.of_surprise([("The", 0.5, 1), ("walking", 9.5, 2)]) == (
        "most by “walking”: 9.5 bits, the sum of its 2 pieces, each hidden alone"
    )


def test_two_contexts() -> None:
    river = guessed(pieces=("bed", "bank", "paris"), probabilities=np.array([0.3, 0.2, 0.1]))
    assert findings.of_two(guessed(), river, 10) == (
        "The context changes 2 of the 3 guesses: first comes “paris” (42 %) in A, “bed” (30 %) in B."
    )
    same = findings.of_two(guessed(), guessed(probabilities=np.array([0.1, 0.05, 0.01])), 10)
    assert same == "The context changes none of the 3 guesses, and “paris” comes first in both (42 % and 10 %)."
    turned = guessed(pieces=guessed().pieces[::-1])
    assert findings.of_two(guessed(), turned, 10).startswith(
        "The context changes only the order of the 3 guesses: first comes "
    )
    other = guessed(pieces=("a", "b", "c"))
    assert findings.of_two(guessed(), other, 10).startswith("The context changes all 3 guesses: first comes ")
    low = [
        guessed(pieces=(name,) * 3, true="bank", true_ranks=np.array([rank])) for name, rank in (("a", 12), ("b", 50))
    ]
    said = "in B; “bank” is 12th in A and 50th in B."
    assert findings.of_two(low[0], low[1], 10).endswith(said)
    other = replace(low[1], true="bench")
    assert findings.of_two(low[0], other, 10).endswith("“bank” is 12th in A and “bench” is 50th in B.")


def found(
    shares: list[list[float]], words: tuple[str, ...] = ("she", "he"), controls: int = 0, templates: int = 1
) -> Any:
    """A template's table, [filling, word]; NaN for a word that is no single piece. The last fillings are control words."""
    table = np.array([shares] * templates)
    fillings = ("nurse", "doctor", "person", "neighbour")[: len(shares)]
    return TemplateGuesses(
        templates=(Template("The ", " said that [MASK] was tired.", fillings),) * templates,
        fillings=fillings,
        controls=fillings[len(fillings) - controls :],
        words=words,
        ids=np.zeros((templates, len(shares), 1), np.int64),
        probabilities=np.ones((templates, len(shares), 1)),
        word_ids=np.where(np.isnan(table[:, 0]), -1, 7),
        word_probabilities=table,
        word_ranks=np.ones(table.shape, np.int64),
    )


ANECDOTE = " One template proves nothing."


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        (
            [[0.6, 0.1], [0.05, 0.4]],
            "“she” is likelier than “he” with “nurse” (60 % and 10 %), and less likely with “doctor” (5.0 % and 40 %).",
        ),
        ([[0.6, 0.1], [0.5, 0.4]], "“she” is likelier than “he” with every filling: least so with “doctor”."),
        ([[0.1, 0.2], [0.1, 0.4]], "“he” is likelier than “she” with every filling: least so with “nurse”."),
        ([[0.2, 0.1], [0.1, 0.1]], "“she” is likelier than “he” with “nurse”; the two are equal with “doctor”."),
        ([[0.1, 0.1], [0.1, 0.2]], "“he” is likelier than “she” with “doctor”; the two are equal with “nurse”."),
        ([[0.2, 0.2], [0.1, 0.1]], "“she” and “he” are equally likely with every filling."),
        ([[0.6, 0.1]], "With “nurse”, “she” and “he” have 60 % and 10 %."),
        (  # below what is shown of a probability nothing differs
            [[4e-4, 1e-5], [3e-4, 1e-6]],
            "“she” and “he” both have less than 0.1 % with every filling: too little to compare.",
        ),
        ([[4e-4, 1e-5]], "“she” and “he” both have less than 0.1 % with “nurse”: too little to compare."),
        (
            [[0.6, 0.1], [4e-4, 3e-4]],
            "With “nurse”, “she” and “he” have 60 % and 10 %; with the other fillings both have less than 0.1 %.",
        ),
        (
            [[0.6, 0.1], [0.5, 0.4], [1e-5, 1e-4]],
            "“she” is likelier than “he” with every filling that gives one of them 0.1 % or more: least so with “doctor”.",
        ),
    ],
)
def test_a_template_compares_two_words(shares: list[list[float]], said: str) -> None:
    assert findings.of_template(found(shares)) == f"{said}{ANECDOTE}"


def test_a_template_with_one_word_or_none() -> None:
    single = findings.of_template(found([[0.6], [0.1]], ("she",)))
    assert single == f"“she” has 60 % with “nurse”, and 10 % with “doctor”.{ANECDOTE}"
    little = findings.of_template(found([[4e-4], [1e-5]], ("she",)))
    assert little == f"“she” has less than 0.1 % with every filling.{ANECDOTE}"
    unknown = findings.of_template(found([[NAN], [NAN]], ("xyzzy",)))
    assert unknown == f"None of the words is one piece of this model's vocabulary.{ANECDOTE}"


def test_words_that_a_template_leaves_out_are_named() -> None:
    said = findings.of_template(found([[0.6, NAN, 0.1, 0.2], [0.5, NAN, 0.4, 0.1]], ("she", "xyzzy", "he", "it")))
    assert said == (
        "“she” is likelier than “he” with every filling: least so with “doctor”. “xyzzy” is no single piece. "
        f"“it”: only in the table.{ANECDOTE}"
    )


def test_how_general_a_table_of_templates_is() -> None:
    shares = [[0.6, 0.1], [0.5, 0.4], [0.3, 0.3]]
    assert findings.of_template(found(shares, controls=1)).endswith(ANECDOTE)
    two = findings.of_template(found(shares, templates=2))
    assert two.endswith("2 templates without control words prove nothing.")
    controlled = findings.of_template(found(shares, controls=1, templates=2))
    assert controlled == (
        "“she” is likelier than “he” with every filling: least so with “doctor”. "
        "The mean of 2 templates, beside 1 control word."
    )


def test_a_text_without_an_end_is_said_where_an_end_changes_the_guess() -> None:
    stop = {**TYPED, "pieces": (".", "paris", "lyon"), "with_end": ("paris", 0.31)}
    said = findings.of_missing_end(guessed(**stop))
    assert said == "The sentence has no end: with a full stop behind it, the first guess is “paris” (31 %)."
    assert guessed(**stop).missing_end == "."
    # One that is guessed all the same, that was hidden itself, that shares its place, or that nothing behind it changes.
    assert not findings.of_missing_end(guessed(**{**stop, "with_end": (".", 0.5)}))
    assert not guessed(**{**stop, "true": "."}).missing_end
    assert not guessed(**{**stop, "probabilities": np.array([0.3, 0.3, 0.1])}).missing_end
    assert not guessed(**{**stop, "only_left": True}).missing_end
    assert not guessed().missing_end
    assert not findings.of_missing_end(guessed())


def test_words_that_turn_as_far_are_named_or_counted_without_their_kind_twice() -> None:
    """It is said before: "Of the words, 5 depend most on ..."."""
    assert changes.together(["“a”", "“b”"]) == "“a” and “b”"
    assert changes.together(["“a”"] * (changes.MOST_NAMED + 1)) == str(changes.MOST_NAMED + 1)
