"""The most telling head and the kinds of heads: by plain loops, on sentences that nobody had in view."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from components.analysis.attention.head_kinds import EVEN, KINDS, RELATIONS, head_kinds, relations
from components.analysis.attention.telling import telling_looks
from components.analysis.attention.weights import TextsFilter, pair_mask
from components.analysis.first_look.decisive import Habits, habits_of
from components.analysis.first_look.words import words_of
from components.model.backend import Backend
from components.words.function import FUNCTION_WORDS, PERSONAL
from tests.components.analysis.handmade import words
from tests.support import plain_encoder as plain

SETS = (
    ("Rain.",),
    ("My neighbour sold her old piano.", "My neighbour sold her old piano."),
    ("Die Katze des Nachbarn schläft auf dem warmen Sofa.",),
    (
        "After the long winter the farmers opened the gates of the valley and let the sheep climb the green hills where the "
        "first flowers had begun to bloom between the stones and small streams of melted snow ran down into the lake that "
        "had been frozen since the middle of November when the last boat was pulled out.",
    ),
    ("The nurse told the doctor that he was late.", "The doctor told the nurse that she was late."),
    ("Colourless green ideas sleep furiously.",),
    ("of the in and",),
    ("Hello world",),
    ("Bücher 😀 12 %, unputdownable!",),
    ("Did the pilot who flew the plane that crashed survive?", "Yes.", "No one knows it."),
)


def reference(text: str, habits: np.ndarray | None) -> dict[tuple[int, int], tuple[float, int, int]]:
    """The best pair of each head by a loop over all, for texts whose words are single pieces."""
    run = plain.run(text)
    length = len(run.pieces)
    content = [piece.lower() not in FUNCTION_WORDS and any(map(str.isalpha, piece)) for piece in run.pieces]
    looks = [is_content or piece in PERSONAL for is_content, piece in zip(content, run.pieces, strict=True)]
    pairs = [
        (query, key)
        for query in range(1, length - 1)
        for key in range(1, length - 1)
        if looks[query] and content[key] and abs(query - key) > 1
    ]
    found = {}
    for block in range(6):
        for head in range(12):
            given = {pair: float(run.attention[block, head][pair]) for pair in pairs}
            mean = float(np.mean(list(given.values())))
            excess = {
                pair: weight - (mean if habits is None else habits[block, head, pair[1] - pair[0] + 24])
                for pair, weight in given.items()
            }
            best = max(excess, key=lambda pair: excess[pair])
            found[block, head] = (excess[best], *best)
    return found


@pytest.mark.parametrize("with_habits", [True, False])
def test_the_looks_of_all_heads_are_those_of_a_loop(embedded: Backend, with_habits: bool) -> None:
    text = "The trophy does not fit in the suitcase because it is too big."
    habits = habits_of([embedded.trace(SETS[4], attentions=True)]) if with_habits else None
    expected = reference(text, None if habits is None else habits.weights)
    trace = embedded.trace([text], attentions=True)
    assert trace.attentions is not None
    found = telling_looks(trace.attentions[:, 0], words_of(trace.sentences), habits)
    assert len(found) == 72
    for look in found:
        excess, query, key = expected[look.block, look.head]
        assert look.excess == pytest.approx(excess, abs=1e-5)
        assert (look.query, look.key) == (query, key)
    assert [look.excess for look in found] == sorted((look.excess for look in found), reverse=True)


@pytest.mark.parametrize("texts", SETS, ids=lambda texts: texts[0][:12])
def test_on_sentences_nobody_had_in_view(embedded: Backend, texts: Sequence[str]) -> None:
    trace = embedded.trace(texts, attentions=True)
    assert trace.attentions is not None
    for row, sentence in enumerate(trace.sentences):
        weights = trace.attentions[:, row, :, : len(sentence), : len(sentence)]
        found_words = words_of([sentence])
        looks = telling_looks(weights, found_words)
        kinds = head_kinds(weights, sentence)
        assert kinds is not None
        assert sum(len(kinds.of(kind)) for kind in KINDS) == 72
        np.testing.assert_allclose(kinds.shares.sum(axis=-1), 1, atol=1e-9)
        assert (kinds.evenness >= 0).all()
        assert (kinds.evenness <= 1 + 1e-9).all()
        if len(found_words) < 2:
            assert looks == ()
            continue
        assert {(look.block, look.head) for look in looks} == {(b, h) for b in range(6) for h in range(12)}
        for look in looks:
            assert not sentence.tokens[look.query].special
            assert not sentence.tokens[look.key].special
            assert sentence.word_positions(look.query) != sentence.word_positions(look.key)
            assert look.weight == pytest.approx(float(weights[look.block, look.head, look.query, look.key]))
    same = [sentence.text for sentence in trace.sentences]
    if len(set(same)) < len(same):  # two equal sentences have the same head
        both = [
            telling_looks(trace.attentions[:, row], words_of([sentence]))[0]
            for row, sentence in enumerate(trace.sentences)
        ]
        assert (both[0].block, both[0].head, both[0].key) == (both[1].block, both[1].head, both[1].key)


def test_a_head_that_always_looks_two_places_back_does_not_win() -> None:
    sentence = words("cats chased mice under old houses")
    usual, special = np.full((6 + 2, 6 + 2), 0.0), 8
    back = usual.copy()
    for query in range(2, special):
        back[query, query - 2] = 1.0
    one = np.full((special, special), 1 / special)
    one[6, 1] = 0.6  # only this
    habits = np.zeros((1, 2, 49), np.float32)
    habits[0, 0, 24 - 2] = 1.0
    (best, other) = telling_looks(np.array([[back, one]]), words_of([sentence]), Habits(habits))
    assert (best.head, best.query, best.key) == (1, 6, 1)
    assert best.excess == pytest.approx(0.6)
    assert other.excess == pytest.approx(0)


def test_neighbours_count_only_where_there_is_nothing_else() -> None:
    sentence = words("good dogs")
    weights = np.full((1, 1, 4, 4), 0.25)
    weights[0, 0, 1, 2] = 0.9
    (look,) = telling_looks(weights, words_of([sentence]))
    assert (look.query, look.key, look.weight) == (1, 2, 0.9)
    assert telling_looks(np.full((1, 1, 3, 3), 1 / 3), words_of([words("dogs")])) == ()
    assert telling_looks(np.full((1, 1, 2, 2), 1 / 2), ()) == ()


def plain_kinds(attention: np.ndarray) -> list[str]:
    """As the prototype has it: loops over the tokens between [CLS] and [SEP], [head]."""
    length, found = attention.shape[-1], []
    for head in attention:
        sums, entropy = dict.fromkeys(("before", "after", "itself", "special", "words"), 0.0), 0.0
        for query in range(1, length - 1):
            for key in range(length):
                name = (
                    "special"
                    if key in (0, length - 1)
                    else {-1: "before", 1: "after", 0: "itself"}.get(key - query, "words")
                )
                sums[name] += float(head[query, key])
            entropy -= float((head[query] * np.log(head[query])).sum())
        even = entropy / (length - 2) / np.log(length)
        found.append("spread" if even > EVEN else max(sums, key=lambda name: sums[name]))
    return found


def test_the_kinds_of_heads_are_those_of_a_loop(embedded: Backend) -> None:
    text = "The trophy does not fit in the suitcase because it is too big."
    trace = embedded.trace([text], attentions=True)
    assert trace.attentions is not None
    kinds = head_kinds(trace.attentions[:, 0], trace.sentences[0])
    assert kinds is not None
    attention = plain.run(text).attention
    assert [list(row) for row in kinds.names] == [plain_kinds(block) for block in attention]
    counts = {kind: len(kinds.of(kind)) for kind in KINDS}
    assert counts == {"special": 34, "spread": 18, "words": 18, "before": 1, "after": 1, "itself": 0}
    purest = kinds.of("words")
    purities = [kinds.purity(*at) for at in purest]
    assert purities == sorted(purities, reverse=True)
    assert kinds.of("before") == ((0, 2),)


def test_a_window_bounds_how_even_attention_can_be() -> None:
    sentence = words("a b c d e f g h")
    weights = np.zeros((1, 1, 10, 10))
    for query in range(10):
        seen = range(max(0, query - 1), min(10, query + 2))
        weights[0, 0, query, list(seen)] = 1 / len(seen)
    with_window, without = (head_kinds(weights, sentence, windows) for windows in ((1,), ()))
    assert with_window is not None
    assert without is not None
    assert with_window.evenness[0, 0] == pytest.approx(1)
    assert with_window.names == (("spread",),)
    assert without.names != (("spread",),)
    blocks = head_kinds(np.repeat(weights, 2, axis=0), sentence, (None, 1))  # each block has a window of its own
    assert blocks is not None
    np.testing.assert_allclose(blocks.evenness, [without.evenness[0], with_window.evenness[0]])


def test_relations_and_texts_without_tokens_of_their_own() -> None:
    names = [[RELATIONS[number] for number in row] for row in relations(words("a b c"))]
    assert names[2] == ["special", "before", "itself", "after", "special"]
    assert names[1] == ["special", "itself", "after", "words", "special"]
    nothing = words("x")
    empty = type(nothing)("", None, (nothing.tokens[0],), ())
    assert head_kinds(np.ones((1, 1, 1, 1)), empty) is None
    with pytest.raises(ValueError, match="was expected"):
        head_kinds(np.ones((1, 1, 2, 2)), nothing)


@pytest.mark.parametrize("which", ["ab", "ba", "aa", "bb"])
def test_of_a_pair_only_the_texts_that_are_shown_count_in_the_mean(embedded: Backend, which: TextsFilter) -> None:
    """Without habits the usual weight is the mean over the pairs that are shown, not over all with zeros for the others."""
    trace = embedded.trace(["My sister repaired two bicycles."], ["Four engines broke near Vienna."], attentions=True)
    assert trace.attentions is not None
    weights, (sentence,) = trace.attentions[:, 0], trace.sentences
    found_words, links = words_of([sentence]), pair_mask(sentence, which)
    pairs = [
        (one.last, position)
        for one in found_words
        for other in found_words
        if (one.is_content or one.is_pronoun) and other.is_content and one is not other
        for position in other.positions
        if abs(position - one.last) > 1 and links[one.last, position]
    ]
    assert pairs
    for look in telling_looks(weights, found_words, allowed=links):
        given = [float(weights[look.block, look.head, query, key]) for query, key in pairs]
        assert look.usual == pytest.approx(np.mean(given), abs=1e-6)
        assert look.weight == pytest.approx(max(given), abs=1e-6)
    nothing = np.zeros_like(links)
    assert telling_looks(weights, found_words, allowed=nothing) == ()
