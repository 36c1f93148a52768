"""What the views of a block say is true of the numbers they draw, for sentences that nobody chose."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from components.analysis import block_change
from components.analysis.block_change import BlockMeans, LeastLikeItself
from components.analysis.similarity.baseline import measure_sample
from components.arrays import cosine
from components.model.backend import Backend
from components.model.trace import Trace
from dashboard.views.heatmaps import findings
from tests.components.analysis.handmade import trace
from tests.support.places import ASSETS

SETS = {
    "one word": "Ja",
    "equal sentences": "Snow fell on the roofs.",
    "German": "Der alte Mann am Fluss verkaufte seine Bücher an eine Bank in der Stadt.",
    "sixty tokens": "When the ferry left the harbour at dawn, the two sisters stood at the rail and counted the lamps along "
    "the quay, while their brother slept below among crates of oranges, dreaming of a house with a green door, a dog that "
    "never barked, and a garden in which nobody had ever planted anything at all.",
    "one word again and again": "stone stone stone stone stone",
    "a pronoun": "The trophy does not fit into the suitcase because it is too big.",
    "numbers": "3,499.50 + 12 = ?",
    "unknown signs": "🙂 🙃 🙂",
    "code": "for i in range(10): print(i)",
    "shouting": "STOP!!! NOW!!!",
}
SECONDS = {"equal sentences": "Snow fell on the roofs.", "a pronoun": "What is too big?"}
BLOCKS = [(0, 5), (5, 0), (1, 3), (2, 2), (4, 5)]
NUMBER = r"−?\d\.\d{2,3}"


@pytest.fixture(scope="module")
def across(embedded: Backend) -> np.ndarray:
    sample = (ASSETS / "demo_sentences.txt").read_text(encoding="utf-8").splitlines()
    return measure_sample(embedded.run, sample).tokens.across


def said_of(record: Trace, shown: tuple[int, int], across: np.ndarray, special: bool = True) -> tuple[str, list[str]]:
    """The sentence about a trace's first text, and its tokens."""
    changes = {
        block: block_change.block_change(record, 0, block, include_special=special) for block in dict.fromkeys(shown)
    }
    tokens = [record.sentences[0].tokens[place] for place in changes[shown[0]].positions]
    pieces = [token.piece for token in tokens]
    means = block_change.diagonal(record, 0, include_special=special).values.mean(axis=1).tolist()
    least = block_change.least_like_itself(changes[shown[1]], [not token.special for token in tokens])
    of_blocks = [block_change.means_of(change, block) for block, change in changes.items()]
    return findings.before_and_after(of_blocks, means, across.tolist(), least, pieces), pieces


def first_and_second(hidden: np.ndarray, block: int) -> tuple[float, float]:
    """A block's mean cosines by plain numpy: of a token with itself, and with another."""
    cells = cosine(hidden[block][:, None].astype(np.float64), hidden[block + 1][None].astype(np.float64))
    return float(np.diagonal(cells).mean()), float(cells[~np.eye(len(cells), dtype=bool)].mean())


@pytest.mark.parametrize("shown", BLOCKS)
@pytest.mark.parametrize("name", SETS)
def test_every_word_of_it_is_true(embedded: Backend, across: np.ndarray, name: str, shown: tuple[int, int]) -> None:
    record = embedded.trace([SETS[name]], [SECONDS.get(name)])
    said, pieces = said_of(record, shown, across)
    assert len(said) <= 215, said
    hidden = record.hidden_states[:, 0, : len(pieces)]
    every = [first_and_second(hidden, block) for block in range(6)]
    (itself, another), (last, last_other) = every[shown[0]], every[shown[1]]
    assert f"{itself:.2f} like itself, {another:.2f} like the others".replace("-", "−") in said
    assert ("keeps every token" in said) <= (itself > 0.8)
    if shown[0] == shown[1]:
        assert "Block 2 " in said
        assert "most" not in said
        assert "mixes" not in said
        return
    assert f"{last:.2f} and {last_other:.2f}".replace("-", "−") in said
    assert ("changes most" in said) == (itself - last >= 0.1 and last == min(own for own, _ in every))
    assert (" and mixes" in said) == (last_other - across[shown[1]] >= 0.05)
    same = itself - another >= 0.2 and (itself > 0.8) == (last > 0.8)
    for likened in (" too", " as much"):
        assert (likened in said) <= (same and abs(itself - last) < 0.1), said
    clause = rf"“([^”]+)” comes out (?:more like “[^”]+” \({NUMBER}\) than like itself \()?({NUMBER})"
    (token, number) = re.findall(clause, said)[0]
    own = np.diagonal(cosine(hidden[shown[1]][:, None], hidden[shown[1] + 1][None]))
    words = [place for place, item in enumerate(record.sentences[0].tokens) if not item.special]
    least = min(words, key=lambda place: own[place])
    assert token.replace("\\", "") in pieces[least]
    assert float(number.replace("−", "-")) == pytest.approx(own[least], abs=0.006)


def test_the_usual_story_about_the_bank(embedded: Backend, across: np.ndarray) -> None:
    said, _ = said_of(embedded.trace(["We will rob a bank next week!"]), (0, 5), across)
    assert re.fullmatch(
        r"Block 0 keeps every token: 0\.86 like itself, 0\.03 like the others\. Block 5 changes most and mixes: 0\.69 and "
        r"0\.12 \(other sentences 0\.03\); “a” comes out 0\.48 like itself, 0\.34 like “rob”\.",
        said,
    ), said


def test_closer_tokens_are_no_mixing_where_those_of_other_sentences_come_closer_too(
    embedded: Backend, across: np.ndarray
) -> None:
    """Block 3's other tokens stand at 0.21, seven times those of block 0; so do tokens of any two sentences, nearly."""
    said, _ = said_of(embedded.trace(["We will rob a bank next week!"]), (0, 3), across)
    assert "Block 3 keeps them too" in said
    assert "mixes" not in said
    assert "all came closer" in said


def test_one_token_has_no_others(embedded: Backend, across: np.ndarray) -> None:
    said, _ = said_of(embedded.trace(["bank"]), (0, 5), across, special=False)
    assert re.fullmatch(r"Block 0 keeps its only token: 0\.\d\d like itself\. Block 5 changes most: 0\.\d\d\.", said), (
        said
    )
    assert not np.isnan(across).any()


def test_where_all_cosines_are_high_nothing_is_kept_and_nothing_mixed(embedded: Backend, across: np.ndarray) -> None:
    """The same run with one long vector added to all: cosines near 1 everywhere, as some models have."""
    record = embedded.trace(["We will rob a bank next week!"])
    hidden = record.hidden_states + 2 * np.ones(record.hidden_states.shape[-1], np.float32)
    said, _ = said_of(trace(record.sentences, hidden), (0, 5), np.full(6, 0.5))
    assert said.startswith("In block 0 all tokens are alike: 0.9"), said
    assert "keeps" not in said
    assert "mixes" not in said
    assert "In block 5 they stay so" in said
    assert "1.00 like itself" not in said or "1.00 like the others" not in said  # numbers that differ read differently


def means(block: int, itself: float, another: float, tokens: int = 5, nearest: int = 5) -> BlockMeans:
    return BlockMeans(block, tokens, itself, another, nearest)


@pytest.mark.parametrize(
    ("first", "last", "every", "other", "expected"),
    [
        # The last keeps more than the first.
        (
            means(0, 0.6, 0.1),
            means(2, 0.9, 0.1),
            [0.6, 0.7, 0.9],
            0.1,
            "changes its tokens: 0.60.*Block 2 keeps more: 0.90",
        ),
        # Another block than the two changes most.
        (means(0, 0.9, 0.1), means(2, 0.7, 0.1), [0.9, 0.5, 0.7], 0.1, "Block 2 changes more: 0.70"),
        # Both change.
        (
            means(0, 0.6, 0.1),
            means(2, 0.6, 0.3),
            [0.6, 0.6, 0.6],
            0.1,
            "Block 2 changes as much and mixes: 0.60 and 0.30",
        ),
        # On the two sides of what is called keeping.
        (
            means(0, 0.78, 0.1),
            means(5, 0.82, 0.1),
            [0.78] * 6,
            0.1,
            "changes its tokens: 0.78.*Block 5 keeps them: 0.82",
        ),
        (
            means(0, 0.82, 0.1),
            means(5, 0.79, 0.1),
            [0.82] * 6,
            0.1,
            "keeps every token: 0.82.*Block 5 changes them: 0.79",
        ),
        # Only in the first are all alike.
        (means(0, 0.9, 0.8), means(5, 0.85, 0.1), [0.9] * 6, 0.1, "all tokens are alike.*Block 5 keeps them: 0.85"),
        # It is not the token itself that comes out nearest.
        (means(0, 0.9, 0.1, nearest=4), means(2, 0.9, 0.1), [0.9] * 3, 0.1, "Block 0 keeps its tokens: 0.90"),
        # No baseline: no word on mixing.
        (
            means(0, 0.9, 0.1),
            means(2, 0.7, 0.4),
            [0.9, 0.9, 0.7],
            float("nan"),
            r"Block 2 changes most: 0.70 and 0.40\.",
        ),
        # Only in the second are all alike.
        (means(0, 0.9, 0.1), means(2, 0.95, 0.9), [0.9] * 3, 0.88, "In block 2 all are alike: 0.95 and 0.90"),
    ],
)
def test_cases_in_which_the_usual_story_is_false(
    first: BlockMeans, last: BlockMeans, every: list[float], other: float, expected: str
) -> None:
    unrelated = [0.0] * last.block + [other]
    said = findings.before_and_after([first, last], every, unrelated, None, [])
    assert re.search(expected, said), said
    assert ("mixes" in said) == ("mixes" in expected)


def test_a_token_that_becomes_another_is_said_to() -> None:
    least = LeastLikeItself(0, 0.2, 1, 0.3)
    said = findings.before_and_after([means(0, 0.5, 0.1)], [0.5], [0.1], least, ["<b>a</b>", "*b*"])
    assert said.endswith("; “\\<b\\>a\\</b\\>” comes out more like “\\*b\\*” (0.30) than like itself (0.20).") or (
        "more like" in said and "<b>" not in said.replace("\\<b", "")
    ), said


# What the parts add


def test_a_token_far_above_all_others_is_named_and_else_the_larger_part(embedded: Backend) -> None:
    record = embedded.inside("We will rob a bank next week!", attentions=False)
    lengths: dict[int, Any] = {
        block: np.linalg.norm(
            np.array([record.attention_output[block], record.feed_forward_output[block]], np.float64), axis=-1
        )
        for block in (0, 5)
    }
    tokens = record.sentence.tokens
    far = block_change.far_above(np.concatenate(list(lengths.values())))
    said = findings.parts_add(lengths, [token.piece for token in tokens], [token.special for token in tokens], far)
    assert said == (
        r"In block 0 feed-forward adds a vector of length 192 to \[CLS\], and of 4 to 8 to every other token; "
        r"in block 5 feed-forward adds more than attention to all 10 tokens, most to “next” (27)."
    )


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        (
            [[9, 8, 7], [1, 2, 3]],
            "In block 1 attention adds more than feed-forward to all 3 tokens, of the words most to “b” (8).",
        ),
        ([[1, 3, 1], [2, 2, 3]], "In block 1 feed-forward adds more than attention to 2 of 3 tokens, most to “c” (3)."),
        ([[3.9, 1, 1], [1, 1, 1]], None),  # less than four times all others: not far above
        (
            [[1, 1, 1], [1, 9, 1]],
            "In block 1 feed-forward adds a vector of length 9 to “b”, and of 1 to every other token.",
        ),
    ],
)
def test_what_is_far_above_and_what_is_not(lengths: list[list[float]], expected: str | None) -> None:
    values = np.array(lengths, float)
    said = findings.parts_add({1: values}, ["[CLS]", "b", "c"], [True, False, False], block_change.far_above(values))
    assert said == expected if expected else "every other" not in said


def test_all_broken_bars_are_named_and_the_other_block_is_told_as_ever() -> None:
    """Two of sixteen tokens are far above all others, in one block of two: neither is four times as long as the other."""
    lengths = {0: np.full((2, 16), 5.0), 5: np.full((2, 16), 4.0)}
    lengths[0][1, [0, 9]] = 90, 80
    lengths[0][0, 3] = 6
    far = block_change.far_above(np.concatenate(list(lengths.values())))
    pieces = ["[CLS]", *"abcdefghijklmno"]
    said = findings.parts_add(lengths, pieces, [True, *[False] * 15], far)
    assert said == (
        r"In block 0 feed-forward adds vectors of length 90 to \[CLS\] and 80 to “i”, and of 5 to every other token; "
        "in block 5 attention adds more than feed-forward to all 16 tokens, most to “a” (4)."
    ), said


def test_a_mark_or_special_token_with_the_longest_bar_is_not_passed_over_in_silence() -> None:
    lengths = np.array([[4.0, 4, 9, 12], [1, 1, 1, 1]])
    said = findings.parts_add({0: lengths}, ["a", "bank", ".", "[SEP]"], [False, False, False, True], None)
    assert said.endswith("to all 4 tokens, of the words most to “a” (4)."), said
    said = findings.parts_add({0: lengths[:, 2:]}, [".", "[SEP]"], [False, True], None)
    assert said.endswith(r"to all 2 tokens, most to \[SEP\] (12)."), said


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        (
            [12.4, 11.9],
            "both steps turn the tokens about as far: on average attention turns their vectors by 12.4°, feed-forward by 11.9°",
        ),
        (
            [12.4, 13.6],
            "the feed-forward step turns the tokens more: on average attention turns their vectors by 12°, feed-forward by 14°",
        ),
        (
            [30.0, 12.0],
            "the attention step turns the tokens more: on average attention turns their vectors by 30°, feed-forward by 12°",
        ),
    ],
)
def test_steps_that_turn_about_as_far_are_said_to(turns: list[float], expected: str) -> None:
    assert findings.parts_turn(2, np.array(turns)[:, None]) == f"In block 2 {expected}."


def test_one_token_alone() -> None:
    said = findings.parts_add({0: np.array([[1.0], [2.0]])}, ["a"], [False], None)
    assert said == "In block 0 feed-forward adds more than attention to the only token."
