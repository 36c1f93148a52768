"""The sentence above each picture, also where the usual story is false."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from components.analysis.first_look.course import WordCourse
from components.analysis.first_look.decisive import Look
from components.analysis.first_look.nearest import Neighbour, WordPlace
from components.analysis.first_look.words import Word
from dashboard.views.home import findings
from dashboard.views.home.stored import ScoredPair, stored

SENSES, BLINDNESS = stored().senses, stored().blindness


def test_the_stored_pictures() -> None:
    assert findings.of_senses(SENSES) == "“bank” in 20 sentences: mixed before the first block, apart at layer 4."
    assert (
        findings.of_blindness(BLINDNESS)
        == "To this model the opposite is nearer than the paraphrase: 0.88 against 0.48."
    )
    share = np.mean(np.array(BLINDNESS.negations)[:, None] > np.array(BLINDNESS.paraphrases)[None])
    medians = " and ".join(f"{np.median(values):.2f}" for values in (BLINDNESS.negations, BLINDNESS.paraphrases))
    said = f"Over all pairs, a negation is nearer in {100 * share:.0f} % of comparisons; the medians are {medians}."
    assert findings.of_strips(BLINDNESS) == f"{said} The paraphrase shown is the 3rd least similar of 44."
    lowest = replace(BLINDNESS, paraphrase=replace(BLINDNESS.paraphrase, cosine=min(BLINDNESS.paraphrases)))
    assert findings.of_strips(lowest) == f"{said} The paraphrase shown is the least similar of 44."
    usual = replace(BLINDNESS, paraphrase=replace(BLINDNESS.paraphrase, cosine=float(np.median(BLINDNESS.paraphrases))))
    assert findings.of_strips(usual) == said


def test_senses_that_stay_mixed_or_are_apart_from_the_start() -> None:
    assert findings.of_senses(replace(SENSES, accuracy=(0.5,) * 7)).endswith("its senses stay mixed.")
    assert findings.of_senses(replace(SENSES, accuracy=(0.9,) * 7)).endswith("its senses are apart from the start.")


def test_a_model_that_sees_the_opposite() -> None:
    pair = ScoredPair("a", "b", 0.3)
    said = findings.of_blindness(replace(BLINDNESS, opposite=pair, paraphrase=replace(pair, cosine=0.302)))
    assert said == "To this model the paraphrase is nearer than the opposite: 0.302 against 0.300."
    tied = replace(BLINDNESS, negations=(0.5,), paraphrases=(0.2, 0.5))
    assert "nearer in 75 %" in findings.of_strips(tied)


def test_where_a_word_looks() -> None:
    look = Look(2, 1, 14, 0.78, 0.05, ())
    said = "Head 1 of block 2 gives “big” 78 % of its attention; 5 % is usual at this distance."
    assert findings.of_look(look, "big") == said
    assert "less than 1 % is usual" in findings.of_look(replace(look, usual=0.001), "big")
    hardly = findings.of_look(replace(look, weight=0.12), "big")
    assert hardly.startswith("No head looks at one word much more than it does anyway: the clearest gives “big” 12 %")
    assert findings.of_look(None, "") == "There is no other word that it could look at."


def word(text: str, sentence: int = 0) -> Word:
    return Word(sentence, text, (1,), 0, len(text), (False, 1), is_content=True)


def course(start: list[float], others: list[float] | None, *twins: tuple[int, list[float]]) -> WordCourse:
    return WordCourse(
        np.array(start),
        None if others is None else np.array(others),
        tuple((number, np.array(values)) for number, values in twins),
    )


def test_how_a_word_changes_within_its_sentence() -> None:
    words = [word("it")]
    crossing = course([1, 0.8, 0.4, 0.4], [0.2, 0.5, 0.7, 0.7])
    assert findings.of_course(crossing, words[0], words) == (
        "From layer 2 on it is nearer to the other words (0.70 at the end) than to its start (0.40)."
    )
    again = course([1, 0.4, 0.6, 0.3], [0.2, 0.5, 0.5, 0.7])  # the last crossing counts
    assert findings.of_course(again, words[0], words).startswith("At layer 3, the last, it is nearer ")
    late = course([1, 0.8, 0.4], [0.2, 0.5, 0.7])
    assert findings.of_course(late, words[0], words).startswith("Only at layer 2 is it nearer ")
    stays = course([1, 0.9, 0.8], [0.2, 0.5, 0.7])
    assert findings.of_course(stays, words[0], words) == (
        "It stays nearer to its own start (0.80) than to the other words (0.70)."
    )
    returns = course([1, 0.9, 0.8], [0.2, 0.95, 0.7])
    assert findings.of_course(returns, words[0], words) == (
        "At the end it is nearer to its own start (0.80) than to the other words (0.70)."
    )
    assert findings.of_course(course([0.1, 0.2], [0.3, 0.4]), words[0], words).startswith("From the start")
    assert findings.of_course(course([1, 0.5], None), words[0], words) == (
        "The blocks change it: its similarity to its own start falls to 0.50."
    )


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0.99, 0.74], "It moves away from the “bank” of sentence 2: similarity 0.99 at first, 0.74 at the end."),
        ([0.4, 0.7], "It comes nearer to the “bank” of sentence 2: similarity 0.40 at first, 0.70 at the end."),
        ([0.99, 0.96], "Hardly: to this model “Bank” is nearly the same in sentence 2 (0.96 after the last block)."),
        (
            [0.302, 0.304],
            "Its similarity to the “bank” of sentence 2 hardly changes: 0.302 at first, 0.304 at the end.",
        ),
    ],
)
def test_how_a_word_changes_against_its_other_occurrence(values: list[float], said: str) -> None:
    words = [word("Bank"), word("bank", 1)]
    assert findings.of_course(course([1, 1], None, (1, values)), words[0], words) == said


def test_the_least_similar_of_several_is_named_and_one_sentence_has_no_number() -> None:
    words = [word("bank"), word("bank", 1), word("banks", 2)]
    both = course([1, 1], None, (1, [0.9, 0.8]), (2, [0.9, 0.5]))
    assert "the “banks” of sentence 3" in findings.of_course(both, words[0], words)
    alike = course([1, 1], None, (1, [1, 0.97]), (2, [1, 0.98]))
    assert "nearly the same in all 3 places that are compared (0.97" in findings.of_course(alike, words[0], words)
    come = course([1, 1], None, (1, [0.95, 0.95]), (2, [0.2, 0.97]))  # one of them has come nearer
    assert findings.of_course(come, words[0], words).startswith("At the end “bank” is nearly the same in all 3 places")
    alone = course([1, 1], None, (1, [0.9, 0.5]))
    assert "the “fly” in its other place" in findings.of_course(alone, word("fly"), [word("fly"), word("fly")])
    among = [word("fly"), word("fly"), word("boat"), word("fly")]
    several = course([1, 1], None, (1, [0.9, 0.8]), (3, [0.9, 0.5]))
    assert findings.of_course(several, among[0], among).startswith("It moves away from the 3rd “fly”: similarity ")
    of_second = [word("fly"), word("fly", 1), word("fly", 1)]
    said = findings.of_course(course([1, 1], None, (2, [0.9, 0.5])), of_second[0], of_second)
    assert said.startswith("It moves away from the 2nd “fly” of sentence 2: ")
    beside_another = [word("fly", 1), word("fly", 1), word("boat")]
    assert "the “fly” in its other place" in findings.of_course(alone, beside_another[0], beside_another)


def near(*names: str) -> list[Neighbour]:
    """Neighbours by "word", or "word/sense"."""
    found = []
    for number, name in enumerate(names):
        text, _, sense = name.partition("/")
        found.append(Neighbour(WordPlace(number, text, 0, len(text), sense), f"sentence {number}", 0.5))
    return found


@pytest.mark.parametrize(
    ("found", "before", "said"),
    [
        (
            ["bank/river"] * 5,
            ["bank/river"] * 3 + ["bank/money"] * 2,
            "All five are “bank” in the sense of river; before the first block three of five.",
        ),
        (
            ["bank/river"] * 5,
            ["bank/river"] * 5,
            "All five are “bank” in the sense of river; before the first block all, too.",
        ),
        (
            ["banks/river"] * 3 + ["shore"] * 2,
            ["bank/money"] * 4 + ["bank/river"] * 4,
            "Three of five are “bank” in the sense of river; before the first block 4 of 8, ties included.",
        ),
        (
            ["bank/river", "bank/river", "bank/money", "bank/money", "bank"],
            None,
            "All are “bank” itself, in the senses of river (2) and money (2).",
        ),
        (["bank"] * 5, None, "All are “bank” itself, in other sentences."),
        (["shore"] * 5, None, "All are “shore”."),
        (["bank", "shore", "Coast", "coast", "beach"], None, "“bank” itself (1 of 5), then “shore”, “coast”."),
        ([], None, "No other sentence has a word to compare it with."),
    ],
)
def test_the_nearest_words(found: list[str], before: list[str] | None, said: str) -> None:
    assert findings.of_nearest("bank", near(*found), None if before is None else near(*before)) == said


def test_how_many_of_the_nearest_were_near_before() -> None:
    found = near("shore", "coast", "beach", "cliff", "sea")
    others = [replace(item, place=replace(item.place, sentence=90)) for item in found]
    assert findings.of_nearest("bank", found, others).endswith("; none of them was near before the first block.")
    assert findings.of_nearest("bank", found, [*found[:1], *others]).endswith(
        "; one of them was near before the first block."
    )
    assert findings.of_nearest("bank", found, found).endswith("; all were near before the first block, too.")


def test_words_that_are_no_nearer_than_unrelated_words_are_no_finding() -> None:
    found = [
        replace(item, cosine=value)
        for item, value in zip(near("shore", "coast", "voice"), (0.5, 0.4, 0.2), strict=True)
    ]
    far = "“shore”, the nearest, is as far as unrelated words."
    assert findings.of_nearest("q", found, found, unrelated=0.5) == f"No included sentence has a word near it: {far}"
    said = findings.of_nearest("[MASK]", found, found, unrelated=0.5, is_hole=True)
    assert said == f"A mask is near no word: {far} Its guesses say more."
    assert findings.of_nearest("sea", found, found, unrelated=0.3) == (
        "“shore”, “coast”; the others are as far as unrelated words."
    )
    assert findings.of_nearest("shore", found, found, unrelated=0.45) == (
        "“shore” itself (1 of 3); the others are as far as unrelated words."
    )
    all_of_them = findings.of_nearest("sea", found, found, unrelated=float("nan"))  # not known
    assert all_of_them == "“shore”, “coast”, “voice”; all were near before the first block, too."


def test_guesses_for_a_hole() -> None:
    pieces = ["paris", "lyon", "lille"]
    assert findings.of_guesses(pieces, [0.31, 0.05, 0.04], is_last=True) == (
        "The first guess is “paris” (31 %), then “lyon” (5.0 %)."
    )
    assert findings.of_guesses(pieces, [0.1, 0.096, 0.04], is_last=False) == (
        "“paris” (10 %) and “lyon” (9.6 %) are nearly level."
    )
    stop = [".", "paris"]
    assert findings.of_guesses(stop, [0.98, 0.01], is_last=True) == (
        "The first guess is “.” (98 %): the sentence has no end yet. Add a full stop."
    )
    assert "no end" not in findings.of_guesses(stop, [0.98, 0.01], is_last=False)  # words stand behind the hole
    assert "no end" not in findings.of_guesses(stop, [0.31, 0.3], is_last=True)
    assert findings.of_guesses(["paris"], [1.0], is_last=True) == "The first guess is “paris” (100 %)."
