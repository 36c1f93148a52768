"""What failed queries share: planted traits are named first, chance is not, and no trait looks at the rank."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from components.jobs import Stopped
from components.retrieval.corpora.texts import Texts
from components.retrieval.evaluation.pair_runs import Pairs
from components.retrieval.failures import traits
from components.retrieval.failures.traits import TRAITS, Traits, compared, in_words, twin
from components.retrieval.failures.vocabulary import CorpusWords, are_one_edit_apart
from components.words.function import is_function_word
from tests.components.retrieval.failures import planted

COUNT = 160


def found_traits(embedded: Any, pairs: Pairs, read: int = 10_000) -> tuple[Traits, np.ndarray]:
    """The traits of planted queries, and whether each fails."""
    queries = planted.vectors_of(pairs.queries.texts)
    documents = planted.vectors_of(pairs.documents.texts, read)
    # A word of these texts is at least one token, and each text is read up to so many tokens, two of them special.
    found = traits.traits_of(pairs, queries, documents, embedded.tokenization, min(read, 10_000) + 2)
    return found, planted.ranks_of(pairs, queries, documents) > 1


def test_exchanged_letters_are_named_first(embedded: Any) -> None:
    numbers = random.Random(0)
    texts = planted.demo_texts(COUNT)
    queries = [planted.own_words(text) for text in texts]
    queries = [planted.mistyped_query(q, numbers) if row % 10 < 3 else q for row, q in enumerate(queries)]
    found, failed = found_traits(embedded, planted.pairs_of(texts, queries))
    assert 30 <= failed.sum() <= COUNT - 30
    first, *others = traits.compared(found, failed)
    assert (first.name, first.is_named) == ("likely misspelling", True)
    assert first.share_of_failed > first.share_of_found
    assert first.difference is not None
    assert first.difference.low > 0
    assert not any(
        share.is_named for share in others if share.name in {"near duplicate", "several right texts", "negation"}
    )


def test_right_texts_beyond_the_window_are_named_first(embedded: Any) -> None:
    texts = planted.demo_texts(COUNT)
    queries = [planted.own_words(text) for text in texts]
    read = 40
    filler = " ".join(["moreover"] * read)
    texts = [f"{filler} {text}" if row % 4 == 0 else text for row, text in enumerate(texts)]
    found, failed = found_traits(embedded, planted.pairs_of(texts, queries), read)
    first = traits.compared(found, failed)[0]
    assert (first.name, first.is_named) == ("right text not read to its end", True)
    assert first.failed >= COUNT // 4


def test_a_doubled_corpus_is_named_first(embedded: Any) -> None:
    """A text that stands twice, with a word more, takes the place of the right one."""
    texts = planted.demo_texts(COUNT)
    queries = [planted.own_words(text) for text in texts]
    pairs = planted.pairs_of(texts, queries)
    copies = [f"{query} {text}" for query, text in zip(queries[::3], texts[::3], strict=True)]
    doubled = replace(
        pairs,
        documents=Texts("doubled", (*pairs.documents.texts, *copies)),
        answers=tuple((row,) for row in range(len(pairs))),
    )
    found, failed = found_traits(embedded, doubled)
    first = traits.compared(found, failed)[0]
    assert (first.name, first.is_named) == ("near duplicate", True)


def test_permuted_failures_are_seldom_named(embedded: Any) -> None:
    numbers = random.Random(1)
    texts = planted.demo_texts(COUNT)
    queries = [planted.own_words(text, 2 + row % 4) for row, text in enumerate(texts)]
    queries = [planted.mistyped_query(q, numbers) if row % 10 < 3 else q for row, q in enumerate(queries)]
    found, failed = found_traits(embedded, planted.pairs_of(texts, queries))
    named = sum(
        any(share.is_named for share in traits.compared(found, np.random.default_rng(seed).permutation(failed)))
        for seed in range(100)
    )
    assert any(share.is_named for share in traits.compared(found, failed))
    assert named <= 10


def test_each_rule(embedded: Any) -> None:
    """Every trait holds for a query made for it, and for no other of these."""
    texts = [
        "Travellers may return the vouchers before spring.",
        "The council repaired nineteen bridges.",
        "The council repaired nineteen bridges again.",
        "Новая больница.",
        "Lava ran down the mountain.",
        "The library opens at noon.",
        "The library opens at noon on weekdays, and the reading room stays open until the last reader has left the building.",
    ]
    asked = {
        "another form of a word": ("voucher", 0),
        "likely misspelling": ("vouhcers", 0),
        "unknown word": ("qwzzxv travellers", 0),
        "negation": ("travellers who did not return", 0),
        "number or code": ("bridges 19", 1),
        "near duplicate": ("repaired bridges", 1),
        "unknown language": ("больница", 3),
        "no shared word": ("volcano erupts", 4),
        "long query": ("the library in the town where I was born opens at noon on which weekdays", 5),
        "right text not read to its end": ("reading room", 6),
    }
    pairs = planted.pairs_of([texts[row] for _, row in asked.values()], [query for query, _ in asked.values()])
    pairs = replace(
        pairs,
        documents=Texts("rules", tuple(texts)),
        answers=tuple((row,) for _, row in asked.values()),
    )
    vectors = planted.vectors_of(pairs.queries.texts), planted.vectors_of(pairs.documents.texts)
    found = traits.traits_of(pairs, *vectors, embedded.tokenization, 22)
    for number, name in enumerate(asked):
        assert name in found.of_query(number), name
    holding = {name: [list(asked)[number] for number in np.flatnonzero(found.of(name))] for name in TRAITS}
    assert holding["negation"] == ["negation"]
    assert holding["another form of a word"] == ["another form of a word"]
    assert holding["likely misspelling"] == ["likely misspelling"]
    assert holding["near duplicate"] == ["number or code", "near duplicate"]
    assert holding["unknown language"] == ["unknown language"]
    assert holding["long query"] == ["long query"]
    assert holding["right text not read to its end"] == ["right text not read to its end"]
    assert holding["several right texts"] == []
    assert "no shared word" not in found.of_query(0)
    assert "unknown word" not in found.of_query(1)  # but misspelt


def test_several_right_texts_are_looked_at_together(embedded: Any) -> None:
    pairs = planted.pairs_of(
        ["Lava ran down the mountain.", "A volcano erupts.", "The bank raised its rate.", "A volcano: erupts!"],
        ["volcano", "volcano", "rate", "volcano"],
    )
    vectors = planted.vectors_of(pairs.queries.texts), planted.vectors_of(pairs.documents.texts)
    found = traits.traits_of(pairs, *vectors, embedded.tokenization, 64)
    assert found.of("several right texts").tolist() == [True, False]
    assert not found.of("no shared word").any()
    assert not found.of("near duplicate").any()  # those of one query are no rivals of each other


def test_a_query_is_short_up_to_three_words_and_long_from_thirteen(embedded: Any) -> None:
    pairs = planted.pairs_of(planted.demo_texts(4), [" ".join(["volcano"] * count) for count in (3, 4, 12, 13)])
    vectors = planted.vectors_of(pairs.queries.texts), planted.vectors_of(pairs.documents.texts)
    found = traits.traits_of(pairs, *vectors, embedded.tokenization, 64)
    assert found.of("short query").tolist() == [True, False, False, False]
    assert found.of("long query").tolist() == [False, False, False, True]


def test_a_query_with_one_right_text_that_is_read_and_known_is_none_of_those_without(embedded: Any) -> None:
    cut, unknown = "The volcano erupts " * 30, "Новая больница открыта."
    pairs = planted.pairs_of([cut, unknown, "Lava ran down."], ["volcano", "volcano", "volcano"])
    vectors = planted.vectors_of(pairs.queries.texts), planted.vectors_of(pairs.documents.texts)
    for rights, are in (((0, 1, 2), [False, False]), ((0,), [True, False]), ((1,), [False, True])):
        found = traits.traits_of(replace(pairs, answers=(rights,)), *vectors, embedded.tokenization, 32)
        assert [bool(found.of(name)[0]) for name in ("right text not read to its end", "unknown language")] == are


@pytest.mark.parametrize("room", [0, 1])
def test_the_prompt_counts_when_a_query_or_a_text_is_read(embedded: Any, room: int) -> None:
    pairs = planted.pairs_of(["Lava ran down."], ["volcano erupts"])
    vectors = planted.vectors_of(pairs.queries.texts), planted.vectors_of(pairs.documents.texts)
    of_query, of_text = embedded.tokenization.lengths(["query: volcano erupts", "a text: Lava ran down."])
    for name, length in (("query not read to its end", of_query), ("right text not read to its end", of_text)):
        read = length - 1 + room
        found = traits.traits_of(pairs, *vectors, embedded.tokenization, read, ("query: ", "a text: "))
        assert bool(found.of(name)[0]) == (room == 0)


def test_few_queries_are_not_compared() -> None:
    held = np.zeros((1, 60), bool)
    held[0, :30] = True
    found = Traits(("negation",), held)
    failed = np.zeros(60, bool)
    failed[:31] = True  # 29 are found
    (share,) = traits.compared(found, failed)
    assert (share.failed, share.found, share.difference, share.is_named) == (30, 0, None, False)
    assert traits.remark(failed).startswith("Too few found queries to judge (29; it takes 30): what a remedy harms")
    assert traits.remark(failed[29:33]) == (
        "Too few failed queries (2) and too few found ones (2) to judge: it takes 30 of each."
    )
    assert traits.remark(np.ones(20, bool)).startswith("Only failures were given: what a remedy harms cannot be seen")
    (share,) = traits.compared(found, ~failed)
    assert share.difference is None
    assert traits.remark(~failed) == traits.FEW_FAILURES
    assert traits.remark(np.zeros(20, bool)) == ""  # nothing fails: there is nothing to add to
    failed[30] = False
    (share,) = traits.compared(found, failed)
    assert share.is_named
    assert traits.remark(failed) == ""


def test_what_found_queries_have_more_often_is_not_named() -> None:
    held = np.zeros((2, 100), bool)
    held[0, 50:] = True
    failed = np.arange(100) < 50
    share, never = traits.compared(Traits(("negation", "short query"), held), failed)
    assert (share.name, share.is_named) == ("negation", False)
    assert share.adjusted_p is not None
    assert share.adjusted_p < 1e-6
    assert (never.name, never.adjusted_p) == ("short query", 1.0)


def test_a_stop_is_noticed(embedded: Any) -> None:
    pairs = planted.pairs_of(["one two", "three"], ["one", "three"])
    vectors = planted.vectors_of(pairs.queries.texts), planted.vectors_of(pairs.documents.texts)
    with pytest.raises(Stopped):
        traits.traits_of(pairs, *vectors, embedded.tokenization, 64, is_stopped=lambda: True)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("physics", "phyiscs", True),
        ("physics", "physic", True),
        ("physics", "physicsx", True),
        ("physics", "phxsics", True),
        ("physics", "physics", False),
        ("physics", "hpysisc", False),
        ("abcd", "badc", False),
        ("", "a", True),
    ],
)
def test_one_edit(first: str, second: str, expected: bool) -> None:
    assert are_one_edit_apart(first, second) is are_one_edit_apart(second, first) is expected


def test_neighbours_are_those_of_a_plain_search() -> None:
    texts = planted.demo_texts(80)
    known = CorpusWords(texts, ["##ing", "▁volcano", "plain"])
    numbers = random.Random(2)
    long = sorted(word for word in known.counts if len(word) >= 6 and word.isalpha() and word.isascii())
    for word in long:
        wrong = planted.mistyped(word, numbers)
        near = [
            other
            for other in known.counts
            if len(other) >= 4 and other.isalpha() and not is_function_word(other) and are_one_edit_apart(wrong, other)
        ]
        expected = min(near, key=lambda other: (-known.counts[other], other), default=None)
        assert known.neighbour(wrong) == (None if known.knows(wrong) else expected)
    assert CorpusWords(["bridge bridge", "bridle"], []).neighbour("bridxe") == "bridge"
    assert CorpusWords(["bridge", "bridle bridle"], []).neighbour("bridxe") == "bridle"  # the more frequent one
    assert known.neighbour("volcano") is None  # of the model's vocabulary
    assert known.neighbour("the") is None
    assert known.unknown("the volcano of qwzzxv qwzzxv") == ("qwzzxv",)


def test_the_words_of_a_corpus_take_memory_by_their_number_and_all_of_it_before_the_first_question() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz" * 100
    known = CorpusWords([f"volcano {letters[:40]} {letters[1:42]} {letters}"])
    known.prepare(lambda: False)
    size = known.nbytes
    assert 10_000 < size < 100_000  # each of the 2,600 letters left out would take 7 MB
    assert known.neighbour("volcanno") == "volcano"
    assert known.neighbour(letters[1:40]) == letters[:40]
    assert known.neighbour(letters[2:42]) is None  # of 40 letters, one edit from a word of 41
    assert known.nbytes == size
    with pytest.raises(Stopped):
        CorpusWords(["volcano"]).prepare(lambda: True)


def test_what_found_queries_have_clearly_more_often_comes_before_what_may_be_chance() -> None:
    failed = np.repeat([True, False], 50)
    held = np.zeros((3, 100), bool)
    held[0, :6] = held[0, 50:55] = True
    held[1, 50:80] = True
    held[2, :30] = True
    found = traits.compared(Traits(("short query", "negation", "number or code"), held), failed)
    assert [share.name for share in found] == ["number or code", "negation", "short query"]


def test_traits_that_hold_for_the_same_queries_are_one_test_and_one_finding() -> None:
    failed = np.arange(100) < 40
    one, other = np.arange(100) < 20, np.arange(100) % 10 == 0
    names = ("unknown word", "negation", "number or code", "long query")
    shares = compared(Traits(names, np.array([one, other, one, ~other])), failed)
    alone = compared(Traits(names[:2] + names[3:], np.array([one, other, ~other])), failed)
    of = {share.name: share.adjusted_p for share in shares}
    assert of == {**{share.name: share.adjusted_p for share in alone}, "number or code": of["unknown word"]}
    assert [share.name for share in shares if share.is_named] == ["unknown word", "number or code"]
    said = (
        "have the traits “unknown word” and “number or code” (the same queries: 50 % of the failed, 0 % of the found)."
    )
    assert in_words(shares).endswith(said)
    assert [twin(share, shares) for share in shares] == ["", "the same queries as unknown word", "", ""]
