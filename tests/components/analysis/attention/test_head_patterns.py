import unicodedata
from dataclasses import replace

import numpy as np
import pytest

from components.analysis.attention.head_patterns import MEANING, PATTERNS, HeadPatterns, RankedHead, score_heads
from components.analysis.attention.weights import of_sentence
from components.errors import InputError
from components.model.trace import TokenizedSentence, TraceOptions
from tests.components.analysis.handmade import sentence, words
from tests.support.closeness import assert_close
from tests.support.places import ASSETS

SAMPLE = (ASSETS / "demo_sentences.txt").read_text(encoding="utf-8").splitlines()
BLOCKS, HEADS = 3, 4
TARGETED = tuple(pattern for pattern in PATTERNS if pattern != "broad")

# [CLS] the cat , the dog [SEP]: positions 0..6
SIX = words("the cat , The dog")
SIX = replace(SIX, tokens=tuple(replace(token, id=900) if token.piece == "cat" else token for token in SIX.tokens))
# Where each query of SIX looks that has such a target; all others look at [CLS], or at the end where it is asked for.
LOOKS = {
    "previous": {1: 0, 2: 1, 3: 2, 4: 3, 5: 4},
    "next": {1: 2, 2: 3, 3: 4, 4: 5, 5: 6},
    "itself": {1: 1, 2: 2, 3: 3, 4: 4, 5: 5},
    "first": {1: 0, 2: 0, 3: 0, 4: 0, 5: 0},
    "separators": {1: 6, 2: 6, 3: 6, 4: 6, 5: 6},
    "same_word": {1: 4, 4: 1},
    "punctuation": {1: 3, 2: 3, 4: 3, 5: 3},
    "rarest": {1: 2, 3: 2, 4: 2, 5: 2},
}


def even(length: int) -> np.ndarray:
    """Every head spreads its attention evenly: [block, head, query, key]."""
    return np.full((BLOCKS, HEADS, length, length), 1 / length)


def random_attention(length: int, seed: int = 5) -> np.ndarray:
    weights = np.random.default_rng(seed).random((BLOCKS, HEADS, length, length)) ** 4
    return weights / weights.sum(axis=-1, keepdims=True)


def synthetic(pattern: str) -> np.ndarray:
    """One head of SIX that looks at the pattern's target wherever there is one, [query, key]."""
    attention = np.full((7, 7), 1 / 7)
    for query, key in LOOKS[pattern].items():
        attention[query] = 0
        attention[query, key] = 1
    return attention


# Every pattern is found where it was put


@pytest.mark.parametrize("pattern", TARGETED)
@pytest.mark.parametrize("place", [(0, 0), (2, 1), (1, 3)])
def test_a_head_made_for_a_pattern_is_found(pattern, place):
    attention = even(7)
    attention[place] = synthetic(pattern)
    found = score_heads([attention], [SIX])
    assert found.scores[pattern][place] == pytest.approx(1, abs=1e-12)
    assert found.top(pattern, 1) == (RankedHead(*place, pytest.approx(1, abs=1e-12)),)
    others = np.delete(found.scores[pattern].ravel(), place[0] * HEADS + place[1])
    np.testing.assert_allclose(others, found.chance[pattern][0], atol=1e-12)
    assert found.queries[pattern] == len(LOOKS[pattern])
    best, score = found.best_pattern(*place)
    # Two queries of five have the same word elsewhere: what the other three do decides nothing.
    assert (best, score) == (pattern, pytest.approx(1, abs=1e-12))


def test_an_even_head_is_found_among_focused_ones():
    attention = np.zeros((BLOCKS, HEADS, 7, 7))
    attention[..., 2] = 1
    attention[1, 2] = 1 / 7
    found = score_heads([attention], [SIX])
    assert found.top("broad", 1) == (RankedHead(1, 2, pytest.approx(1, abs=1e-12)),)
    assert found.best_pattern(1, 2) == ("broad", pytest.approx(1, abs=1e-12))
    assert found.scores["broad"][0, 0] == found.entropy[0, 0] == 0


def test_heads_of_every_pattern_at_once():
    attention = even(7)
    places = {pattern: divmod(number, HEADS) for number, pattern in enumerate(TARGETED)}
    for pattern, place in places.items():
        attention[place] = synthetic(pattern)
    found = score_heads([attention], [SIX])
    for pattern, place in places.items():
        assert found.best_pattern(*place)[0] == pattern
    assert {found.best_pattern(block, head)[0] for block in range(BLOCKS) for head in range(HEADS)} == set(PATTERNS)


def test_the_clearest_head_has_the_most_above_chance_and_no_refuge():
    """A head on [SEP] or spread evenly is not shown first, however strong; nor one on a target that all tokens are."""
    attention = even(7)
    attention[0, 1] = synthetic("separators")
    attention[2, 3] = 0.4 * synthetic("rarest") + 0.6 / 7
    clearest = score_heads([attention], [SIX]).clearest()
    assert clearest == RankedHead(2, 3, pytest.approx(0.4 * (1 - 1 / 7), abs=1e-12))
    attention[1, 0] = 0.9 * synthetic("previous") + 0.1 / 7
    clearest = score_heads([attention], [SIX]).clearest()
    assert (clearest.block, clearest.head) == (1, 0)


# Identities


@pytest.mark.parametrize("include_special", [True, False])
def test_even_attention_scores_what_chance_says(include_special):
    texts = [SIX, words("a b . a ! dog cat"), words("x")]
    found = score_heads([even(len(one)) for one in texts], texts, include_special)
    for pattern in PATTERNS:
        np.testing.assert_allclose(found.scores[pattern], np.stack([found.chance[pattern]] * HEADS, axis=1), atol=1e-12)
    assert found.chance["broad"] == pytest.approx(np.ones(BLOCKS))


def test_chance_is_that_of_the_tokens_that_a_block_sees():
    """Evenly spread attention within the window of a local block scores what chance says of that block."""
    windows, texts = (None, 1, 2), [SIX, words("a b . a ! dog cat"), words("x")]
    attentions = []
    for text in texts:
        positions = np.arange(len(text))
        far = np.abs(positions[None, :] - positions[:, None])
        sees = np.stack([far <= (len(text) if window is None else window) for window in windows])  # [block, query, key]
        shares = sees / sees.sum(axis=-1, keepdims=True)
        attentions.append(np.repeat(shares[:, None], HEADS, axis=1))
    found = score_heads(attentions, texts, windows=windows)
    for pattern in PATTERNS:
        np.testing.assert_allclose(found.scores[pattern], np.stack([found.chance[pattern]] * HEADS, axis=1), atol=1e-12)
    np.testing.assert_allclose(found.chance["broad"], 1)
    assert found.chance["previous"][1] == pytest.approx(
        1 / 3
    )  # words have neighbours on both sides, and [CLS] is no query
    assert found.chance["previous"][0] < found.chance["previous"][2] < found.chance["previous"][1]
    assert found.clearest().score == pytest.approx(0, abs=1e-12)


def test_even_attention_has_the_highest_entropy_there_is():
    found = score_heads([even(7)], [SIX])
    np.testing.assert_allclose(found.entropy, np.log(7), atol=1e-12)
    for seed in range(5):
        assert (score_heads([random_attention(7, seed)], [SIX]).entropy < np.log(7)).all()


def test_the_three_places_a_token_can_look_at_share_its_attention():
    """Before, at and after each token: with the rest they make up the whole."""
    attention = random_attention(5)
    scores = score_heads([attention], [words("a b c")]).scores
    near = sum(scores[name] for name in ("previous", "itself", "next"))
    far = np.mean(
        [attention[..., 1, [3, 4]].sum(-1), attention[..., 2, [0, 4]].sum(-1), attention[..., 3, [0, 1]].sum(-1)], 0
    )
    np.testing.assert_allclose(near + far, 1, atol=1e-12)


@pytest.mark.parametrize("include_special", [True, False])
def test_scores_equal_a_plain_loop(tiny_backends, include_special):
    """Over two sentences and a pair with padding, by the definitions and nothing else."""
    texts, pairs = ["The cat , the dog .", "x", "a cat ran !"], [None, None, "the cat sat"]
    run = tiny_backends["bert"].run(texts, pairs, TraceOptions(attentions=True))
    found = score_heads([of_sentence(run, row) for row in range(3)], run.sentences, include_special)
    every = {**found.scores, "entropy": found.entropy, "distance": found.distance}
    for block in range(3):
        for head in range(4):
            expected = by_definition(
                [run.attentions[block, row, head] for row in range(3)], run.sentences, include_special
            )
            for name, values in expected.items():
                assert_close(every[name][block, head], np.mean(values), what=name)
    assert {name: found.queries[name] for name in PATTERNS} == {name: len(expected[name]) for name in PATTERNS}


def by_definition(
    heads: list[np.ndarray], sentences: tuple[TokenizedSentence, ...], include_special: bool
) -> dict[str, list[float]]:
    """Name to the value at each query token concerned, for one head."""
    values: dict[str, list[float]] = {name: [] for name in (*PATTERNS, "entropy", "distance")}
    for attention, one in zip(heads, sentences, strict=True):
        rarest = max((token.id for token in one.tokens if not token.special and token.piece.isalnum()), default=-1)
        for query in one.tokens:
            if query.special and not include_special:
                continue
            row = attention[query.position, : len(one)].astype(float)
            others = [token for token in one.tokens if token.position != query.position]
            targets = {
                "previous": [token for token in one.tokens if token.position == query.position - 1],
                "next": [token for token in one.tokens if token.position == query.position + 1],
                "itself": [query],
                "first": [token for token in others if token.position == 0],
                "separators": [token for token in others if token.piece == "[SEP]"],
                "same_word": [
                    token
                    for token in others
                    if one.word_text(token.position).lower() == one.word_text(query.position).lower()
                    and not token.special
                    and one.word_text(token.position).isalpha()
                ],
                "punctuation": [
                    token
                    for token in others
                    if not token.special and unicodedata.category(one.surface(token.position)[0]).startswith("P")
                ],
                "rarest": [token for token in others if token.id == rarest],
            }
            for name, found in targets.items():
                if found:
                    values[name].append(sum(row[token.position] for token in found))
            entropy = -sum(share * np.log(share) for share in row if share > 0)
            values["entropy"].append(entropy)
            values["broad"].append(entropy / np.log(len(one)))
            values["distance"].append(sum(share * abs(query.position - key) for key, share in enumerate(row)))
    return values


# Numbers worked out on paper


def test_mean_distance_and_entropy_on_paper():
    """[CLS] a b [SEP]: a looks half at [CLS] and half at [SEP], b at itself."""
    attention = np.zeros((1, 1, 4, 4))
    attention[0, 0, 1, [0, 3]] = 0.5
    attention[0, 0, 2, 2] = 1
    attention[0, 0, [0, 3], 0] = 1
    found = score_heads([attention], [words("a b")])
    assert found.distance[0, 0] == pytest.approx((0.5 * 1 + 0.5 * 2 + 0) / 2)
    assert found.entropy[0, 0] == pytest.approx(np.log(2) / 2)
    assert found.scores["broad"][0, 0] == pytest.approx(np.log(2) / 2 / np.log(4))
    assert found.scores["first"][0, 0] == pytest.approx(0.25)
    assert found.scores["itself"][0, 0] == pytest.approx(0.5)
    everybody = score_heads([attention], [words("a b")], include_special=True)
    assert everybody.distance[0, 0] == pytest.approx((0 + 1.5 + 0 + 3) / 4)
    assert everybody.scores["first"][0, 0] == pytest.approx((0.5 + 0 + 1) / 3)  # [CLS] itself is not asked
    assert everybody.scores["itself"][0, 0] == pytest.approx((1 + 0 + 1 + 0) / 4)


def test_a_sentence_weighs_as_much_as_it_has_queries():
    short, long = words("a"), words("a b c")
    always, never = np.zeros((1, 1, 3, 3)), np.zeros((1, 1, 5, 5))
    always[..., 0] = 1
    never[..., 4] = 1
    found = score_heads([always, never], [short, long])
    assert found.scores["first"][0, 0] == pytest.approx(1 / 4)
    assert found.queries["first"] == 4
    np.testing.assert_allclose(score_heads([never, always], [long, short]).scores["first"], 1 / 4)


def test_a_stream_of_attentions_is_read_once():
    texts = [SIX, words("a b")]
    listed = score_heads([random_attention(7), random_attention(4)], texts)
    streamed = score_heads((random_attention(len(one)) for one in texts), texts)
    np.testing.assert_array_equal(listed.scores["next"], streamed.scores["next"])


# What counts as a target


def share_of(one: TokenizedSentence, pattern: str, query: int, key: int) -> float:
    """The score when this query looks at this key, and all others at nothing."""
    attention = np.zeros((1, 1, len(one), len(one)))
    attention[0, 0, query, key] = 1
    found = score_heads([attention], [one])
    return 0.0 if not found.queries[pattern] else float(found.scores[pattern][0, 0] * found.queries[pattern])


def test_the_same_word_ignores_case_and_takes_whole_words():
    one = sentence(
        "Jumping jump jumping",
        [("jump", 0, 0, 4), ("##ing", 0, 4, 7), ("jump", 1, 8, 12), ("jump", 2, 13, 17), ("##ing", 2, 17, 20)],
    )
    assert share_of(one, "same_word", 1, 4) == share_of(one, "same_word", 1, 5) == 1  # any piece of the other one
    assert share_of(one, "same_word", 2, 4) == share_of(one, "same_word", 5, 1) == 1
    assert share_of(one, "same_word", 1, 2) == 0  # a piece of the same word is not elsewhere
    assert share_of(one, "same_word", 1, 3) == 0  # the same piece of another word
    assert share_of(one, "same_word", 3, 1) == 0  # "jump" occurs once


def test_a_word_of_the_other_text_counts_and_marks_do_not():
    one = sentence(
        "cat .", [("cat", 0, 0, 3), (".", 1, 4, 5)], pair="Cat .", pair_pieces=[("cat", 0, 0, 3), (".", 1, 4, 5)]
    )
    assert share_of(one, "same_word", 1, 4) == 1
    assert share_of(one, "same_word", 2, 5) == 0
    assert share_of(one, "punctuation", 2, 5) == 1


@pytest.mark.parametrize(
    ("mark", "is_one"),
    [
        (",", True),
        ("...", True),
        ("«", True),
        ("—", True),
        ("。", True),
        (" ,", True),
        ("$", False),
        ("a.", False),
        ("1", False),
    ],
)
def test_what_is_punctuation(mark, is_one):
    one = sentence(f"cat {mark}", [("cat", 0, 0, 3), ("[UNK]", 1, 4, 4 + len(mark))])
    assert share_of(one, "punctuation", 1, 2) == is_one


def test_a_typed_separator_is_one_and_cls_is_none(embedded):
    typed = embedded.tokenize(["cat [SEP] dog"])[0]
    assert [token.piece for token in typed.tokens] == ["[CLS]", "cat", "[SEP]", "dog", "[SEP]"]
    assert share_of(typed, "separators", 1, 2) == share_of(typed, "separators", 1, 4) == 1
    assert share_of(typed, "separators", 1, 0) == 0


def test_patterns_without_a_query_have_no_score():
    found = score_heads([even(4)], [words("cat dog")])  # no word twice, no mark
    for pattern in ("same_word", "punctuation"):
        assert np.isnan(found.scores[pattern]).all()
        assert np.isnan(found.chance[pattern]).all()
        assert found.queries[pattern] == 0
        assert found.top(pattern) == ()
    assert found.best_pattern(0, 0) == ("broad", pytest.approx(1))


def test_a_single_mark_is_no_target_of_its_own():
    one = words("cat .")
    found = score_heads([even(4)], [one])
    assert found.queries["punctuation"] == 1
    assert share_of(one, "punctuation", 2, 2) == 0


# Ranking


@pytest.fixture
def ranked():
    scores = np.array([[0.2, np.nan, 0.7], [0.7, 0.9, 0.2]])
    return HeadPatterns({"next": scores}, {}, {}, entropy=scores[::-1], distance=scores * 2)


def test_the_table_is_best_first_and_reads_on_ties(ranked):
    assert [(entry.block, entry.head, entry.score) for entry in ranked.top("next", 10)] == [
        (1, 1, 0.9),
        (0, 2, 0.7),
        (1, 0, 0.7),
        (0, 0, 0.2),
        (1, 2, 0.2),
    ]
    assert ranked.top("next", 2) == ranked.top("next", 10)[:2]
    assert ranked.top("next", 0) == ranked.top("next", -1) == ()


def test_ties_between_patterns_go_to_the_first_of_the_list():
    attention = np.zeros((1, 1, 3, 3))  # the token before "cat" is the first token
    attention[..., 0] = 1
    assert score_heads([attention], [words("cat")]).best_pattern(0, 0) == ("previous", 1)


def test_every_pattern_is_explained():
    assert tuple(MEANING) == PATTERNS


# What is refused


def test_only_special_tokens_give_no_scores_unless_they_count():
    empty = sentence("\x01", [])
    with pytest.raises(InputError, match="contain only special tokens"):
        score_heads([even(2)], [empty])
    with pytest.raises(InputError):
        score_heads([], [])
    assert score_heads([even(2)], [empty], include_special=True).queries["itself"] == 2


def test_attentions_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"\[block, head, 7, 7\]"):
        score_heads([even(6)], [SIX])
    with pytest.raises(ValueError, match="zip"):
        score_heads([even(7)], [SIX, SIX])


def test_the_shared_arrays_cannot_be_changed():
    found = score_heads([even(7)], [SIX])
    assert not any(array.flags.writeable for array in (*found.scores.values(), found.entropy, found.distance))


# The embedded model


@pytest.fixture(scope="module")
def embedded_patterns(embedded):
    run = embedded.run(SAMPLE[:30], options=TraceOptions(attentions=True))
    return score_heads((of_sentence(run, row) for row in range(30)), run.sentences)


def test_the_heads_of_the_embedded_model(embedded_patterns):
    """Block 0 has a head that looks at the previous token and nothing else, block 1 one for the next token."""
    before, after, marks = (embedded_patterns.top(name, 1)[0] for name in ("previous", "next", "punctuation"))
    assert (before.block, before.head) == (0, 2)
    assert before.score > 0.99
    assert embedded_patterns.best_pattern(0, 2)[0] == "previous"
    assert (after.block, after.head) == (1, 8)
    assert after.score > 0.6 > 3 * embedded_patterns.chance["next"][after.block]
    assert embedded_patterns.best_pattern(1, 8)[0] == "next"
    assert (marks.block, marks.head) == (3, 11)
    # Block 0 is the broadest; later on most attention of the median head rests on [CLS].
    assert embedded_patterns.scores["broad"].mean(axis=1).argmax() == 0
    assert np.median(embedded_patterns.scores["first"][2:]) > 0.35


@pytest.mark.parametrize(
    ("which", "queries", "keys"),
    [("aa", (0, 3), (0, 3)), ("ab", (0, 3), (3, 5)), ("ba", (3, 5), (0, 3)), ("bb", (3, 5), (3, 5))],
)
def test_the_texts_of_a_pair_apart(which, queries, keys):
    """[CLS] cat [SEP] Cat [SEP]: queries of one text, targets in the other, by hand."""
    one = sentence("cat", [("cat", 0, 0, 3)], pair="Cat", pair_pieces=[("cat", 0, 0, 3)])
    attention = random_attention(5)
    found = score_heads([attention], [one], texts=which)
    asking = range(max(1, queries[0]), queries[0] + 2 if queries[0] == 0 else 4)  # token 1 of A, token 3 of B
    (query,) = asking
    separators = [place for place in (2, 4) if keys[0] <= place < keys[1]]
    np.testing.assert_allclose(found.scores["separators"], attention[:, :, query, separators].sum(axis=-1))
    other = {1: 3, 3: 1}[query]
    if keys[0] <= other < keys[1]:
        np.testing.assert_allclose(found.scores["same_word"], attention[:, :, query, other])
    else:
        assert np.isnan(found.scores["same_word"]).all()
    entropy = -(attention[:, :, query] * np.log(attention[:, :, query])).sum(axis=-1)
    np.testing.assert_allclose(found.entropy, entropy)
