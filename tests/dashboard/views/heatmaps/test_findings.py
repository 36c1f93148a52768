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
    of_blocks = [block_change.means_of(change, block) for block, change in changes.items()]
    return findings.before_and_after(of_blocks, means, across.tolist()), pieces


def least_of(record: Trace, block: int) -> str:
    """The sentence about the token of a trace's first text that a block leaves least like itself."""
    change = block_change.block_change(record, 0, block)
    tokens = [record.sentences[0].tokens[place] for place in change.positions]
    least = block_change.least_like_itself(change, [not token.special for token in tokens])
    return findings.least_like_itself(least, [token.piece for token in tokens])


def first_and_second(hidden: np.ndarray, block: int) -> tuple[float, float]:
    """A block's mean cosines by plain numpy: of a token with itself, and with another."""
    cells = cosine(hidden[block][:, None].astype(np.float64), hidden[block + 1][None].astype(np.float64))
    return float(np.diagonal(cells).mean()), float(cells[~np.eye(len(cells), dtype=bool)].mean())


@pytest.mark.parametrize("shown", BLOCKS)
@pytest.mark.parametrize("name", SETS)
def test_every_word_of_it_is_true(embedded: Backend, across: np.ndarray, name: str, shown: tuple[int, int]) -> None:
    record = embedded.trace([SETS[name]], [SECONDS.get(name)])
    said, pieces = said_of(record, shown, across)
    assert len(said) <= 150, said
    assert len(re.findall(NUMBER, said)) <= 2, said  # one comparison
    hidden = record.hidden_states[:, 0, : len(pieces)]
    every = [first_and_second(hidden, block) for block in range(6)]
    (itself, another), (last, last_other) = every[shown[0]], every[shown[1]]
    is_little = "change the tokens little" in said
    if is_little:  # of all blocks but the second shown
        least = min(own for block, (own, _) in enumerate(every) if block != shown[1])
        assert f"(cosine with itself {least:.2f} or more on average)" in said
        assert least > 0.8
        assert least - last >= 0.1
        assert said.startswith("Blocks 0 to 4 " if shown[1] == 5 else "All other blocks ")
    else:
        assert f"({itself:.2f} like itself)".replace("-", "−") in said
    assert ("keeps every token" in said) <= (itself > 0.8)
    start, _, end = said.partition("; ")
    assert (" and mixes them" in start) == (another - across[shown[0]] >= 0.05)
    if shown[0] == shown[1]:
        assert "Block 2 " in said
        assert "most" not in said
        assert not end
        return
    assert f"block {shown[1]} " in end
    assert f"({last:.2f})".replace("-", "−") in end
    assert ("changes them most" in end) == (itself - last >= 0.1 and last == min(own for own, _ in every))
    assert (" and mixes them" in end) == (last_other - across[shown[1]] >= 0.05)
    assert ("does not mix" in end) == (" and mixes" in start and " and mixes" not in end)
    same = itself - another >= 0.2 and (itself > 0.8) == (last > 0.8)
    for likened in ("keeps them too", " as much"):
        assert (likened in said) <= (same and abs(itself - last) < 0.1), said
    described = least_of(record, shown[1])
    clause = (
        rf"“([^”]+)”, (?:which comes out more like “[^”]+” \(\*\*{NUMBER}\*\*\) than like itself \()?\*\*({NUMBER})"
    )
    (token, number) = re.findall(clause, described)[0]
    own = np.diagonal(cosine(hidden[shown[1]][:, None], hidden[shown[1] + 1][None]))
    words = [place for place, item in enumerate(record.sentences[0].tokens) if not item.special]
    lowest = min(words, key=lambda place: own[place])
    assert token.replace("\\", "") in pieces[lowest]
    assert float(number.replace("−", "-")) == pytest.approx(own[lowest], abs=0.006)


def test_the_usual_story_about_the_bank(embedded: Backend, across: np.ndarray) -> None:
    record = embedded.trace(["We will rob a bank next week!"])
    said, _ = said_of(record, (0, 5), across)
    assert said == (
        "Blocks 0 to 4 change the tokens little (cosine with itself 0.86 or more on average); block 5 changes them most (0.69) "
        "and mixes them."
    )
    assert least_of(record, 5) == "“a”, **0.48** like itself and 0.34 like “rob”"


def test_closer_tokens_are_no_mixing_where_those_of_other_sentences_come_closer_too(
    embedded: Backend, across: np.ndarray
) -> None:
    """Block 3's other tokens stand at 0.21, seven times those of block 0; so do tokens of any two sentences, nearly."""
    said, _ = said_of(embedded.trace(["We will rob a bank next week!"]), (0, 3), across)
    assert "block 3 keeps them too" in said
    assert "mixes" not in said
    assert said.endswith(": all tokens are closer there, those of other sentences too.")


def test_one_token_has_no_others(embedded: Backend, across: np.ndarray) -> None:
    said, _ = said_of(embedded.trace(["bank"]), (0, 5), across, special=False)
    assert re.fullmatch(
        r"Block 0 keeps its only token \(0\.\d\d like itself\); block 5 changes it most \(0\.\d\d\)\.", said
    ), said
    assert not np.isnan(across).any()


def test_where_all_cosines_are_high_nothing_is_kept_and_nothing_mixed(embedded: Backend, across: np.ndarray) -> None:
    """The same run with one long vector added to all: cosines near 1 everywhere, as some models have."""
    record = embedded.trace(["We will rob a bank next week!"])
    hidden = record.hidden_states + 2 * np.ones(record.hidden_states.shape[-1], np.float32)
    said, _ = said_of(trace(record.sentences, hidden), (0, 5), np.full(6, 0.5))
    assert said.startswith("In block 0 all tokens are alike (0.9"), said
    assert "keeps" not in said
    assert "mixes" not in said
    assert "in block 5 they stay so (" in said
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
            r"^Block 0 changes its tokens \(0.60 like itself\); block 2 keeps them more \(0.90\)\.$",
        ),
        # Every other block changes little, whichever of them keeps most; not all others do; the first mixes.
        (
            means(1, 0.9, 0.1),
            means(2, 0.7, 0.1),
            [0.85, 0.9, 0.7, 0.95],
            0.1,
            r"^All other blocks change the tokens little \(cosine with itself 0.85 or more on average\); block 2 changes them "
            "most",
        ),
        (means(1, 0.9, 0.1), means(2, 0.6, 0.1), [0.75, 0.9, 0.6], 0.1, r"^Block 1 keeps every token \(0.90"),
        (
            means(1, 0.9, 0.3),
            means(2, 0.6, 0.3),
            [0.9, 0.9, 0.6],
            0.1,
            r"^Block 1 keeps every token .* and mixes them; ",
        ),
        # Another block than the two changes most.
        (means(0, 0.9, 0.1), means(2, 0.7, 0.1), [0.9, 0.5, 0.7], 0.1, r"block 2 changes them more \(0.70\)\.$"),
        # Both change.
        (
            means(0, 0.6, 0.1),
            means(2, 0.6, 0.3),
            [0.6, 0.6, 0.6],
            0.1,
            r"block 2 changes them as much \(0.60\) and mixes them\.$",
        ),
        # On the two sides of what is called keeping.
        (
            means(0, 0.78, 0.1),
            means(5, 0.82, 0.1),
            [0.78] * 6,
            0.1,
            r"changes its tokens \(0.78.*block 5 keeps them \(0.82\)\.$",
        ),
        (
            means(0, 0.82, 0.1),
            means(5, 0.79, 0.1),
            [0.82] * 6,
            0.1,
            r"keeps every token \(0.82.*block 5 changes them \(0.79\)\.$",
        ),
        # Only in the first are all alike.
        (
            means(0, 0.9, 0.8),
            means(5, 0.85, 0.1),
            [0.9] * 6,
            0.1,
            r"all tokens are alike \(0.90 like itself, 0.80 like the others\); block 5 keeps them \(0.85\)\.$",
        ),
        # It is not the token itself that comes out nearest.
        (means(0, 0.9, 0.1, nearest=4), means(2, 0.9, 0.1), [0.9] * 3, 0.1, r"^Block 0 keeps its tokens \(0.90"),
        # No baseline: no word on mixing.
        (
            means(0, 0.9, 0.1),
            means(2, 0.7, 0.4),
            [0.9, 0.9, 0.7],
            float("nan"),
            r"block 2 changes them most \(0.70\)\.$",
        ),
        # The first mixes too, or alone.
        (means(3, 0.6, 0.3), means(5, 0.6, 0.3), [0.6] * 6, 0.1, "and mixes them; block 5 .* and mixes them too"),
        (means(3, 0.6, 0.3), means(5, 0.6, 0.1), [0.6] * 6, 0.1, "and mixes them; block 5 .* and does not mix them"),
        # Only in the second are all alike.
        (means(0, 0.9, 0.1), means(2, 0.95, 0.9), [0.9] * 3, 0.88, r"in block 2 all are alike \(0.95 and 0.90\)\.$"),
    ],
)
def test_cases_in_which_the_usual_story_is_false(
    first: BlockMeans, last: BlockMeans, every: list[float], other: float, expected: str
) -> None:
    unrelated = [0.1] * last.block + [other]
    said = findings.before_and_after([first, last], every, unrelated)
    assert re.search(expected, said), said
    assert (" and mixes" in said) == (" and mixes" in expected or "does not mix" in expected)


def test_a_token_that_a_block_changes_far_more_than_the_others_is_named() -> None:
    pieces, least = ["a", "bank"], LeastLikeItself(0, 0.48, 1, 0.34)
    item = BlockMeans(5, 2, 0.69, 0.12, 2)
    assert findings.changed_most(least, item, pieces) == " Of the text's own tokens, block 5 changes “a” most (0.48)."
    other = findings.changed_most(LeastLikeItself(0, 0.48, 1, 0.55), item, pieces)
    assert other.startswith(" Of the text's own tokens, block 5 changes most “a”, which comes out more like")
    # As far as its others, all of them alike, or nothing to compare with.
    assert not findings.changed_most(LeastLikeItself(0, 0.62, 1, 0.34), item, pieces)
    assert not findings.changed_most(least, BlockMeans(5, 2, 0.69, 0.62, 2), pieces)
    assert not findings.changed_most(None, item, pieces)


def test_a_token_that_becomes_another_is_said_to() -> None:
    least = LeastLikeItself(0, 0.2, 1, 0.3)
    said = findings.least_like_itself(least, ["<b>a</b>", "*b*"])
    assert said.endswith("comes out more like “\\*b\\*” (**0.30**) than like itself (**0.20**)"), said
    assert "<b>" not in said.replace("\\<b", "")
    assert findings.least_like_itself(LeastLikeItself(0, 0.2, None, float("nan")), ["a"]) == "“a”, **0.20** like itself"
    assert findings.least_like_itself(None, []) == ""


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
    # The long vector turns [CLS] by 14° only: what it is added to points the same way, though it is short.
    added, to = record.feed_forward_output[0][0], record.after_attention[0][0]
    share = float(cosine(added, to))
    assert np.linalg.norm(to) < 30
    along = {block: np.zeros((2, len(tokens))) for block in lengths}
    along[0][1, 0] = share
    pieces, special = [token.piece for token in tokens], [token.special for token in tokens]
    why = findings.parts_add(lengths, pieces, special, far, along).removeprefix(said)
    assert why == (
        rf" What feed-forward adds to \[CLS\] is long, but points the same way as \[CLS\] itself (cosine {share:.2f}), "
        "so it hardly turns it."
    )
    along[0][1, 0] = 0.5  # then it does not
    assert findings.parts_add(lengths, pieces, special, far, along) == said


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
        ({2: [12.4, 11.9]}, "Both steps turn the tokens about as far in block 2 (12.4° and 11.9°)."),
        ({2: [12.4, 13.6]}, "Feed-forward turns the tokens more in block 2 (14° against 12°)."),
        (
            {0: [30.0, 12.0], 5: [12.0, 40.0]},
            "Attention turns the tokens more in block 0 (30° against 12°), feed-forward in block 5 (40° against 12°).",
        ),
        (
            {0: [30.0, 12.0], 5: [40.0, 12.0]},
            "Attention turns the tokens more in block 0 (30° against 12°) and in block 5 (40° against 12°).",
        ),
        (
            {0: [30.0, 12.0], 5: [12.4, 11.9]},
            "Attention turns the tokens more in block 0 (30° against 12°), both about as far in block 5 (12.4° and 11.9°).",
        ),
        (
            {0: [12.4, 11.9], 5: [12.0, 40.0]},
            "Both steps turn the tokens about as far in block 0 (12.4° and 11.9°), feed-forward more in block 5 (40° against "
            "12°).",
        ),
    ],
)
def test_which_step_turns_the_tokens_more(turns: dict[int, list[float]], expected: str) -> None:
    assert findings.parts_turn({block: np.array(values)[:, None] for block, values in turns.items()}) == expected


def test_one_token_alone() -> None:
    said = findings.parts_add({0: np.array([[1.0], [2.0]])}, ["a"], [False], None)
    assert said == "In block 0 feed-forward adds more than attention to the only token."
