"""Each remedy repairs a failure of its own kind, its control repairs nothing but by chance, and equal scores help nobody."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
import pytest

from components.errors import InputError
from components.jobs import Stopped
from components.retrieval.evaluation.metrics import first_ranks
from components.retrieval.evaluation.second_stage import candidate_scores, candidates, either_ranks
from components.retrieval.failures.remedies import diagnosis, kinds
from components.retrieval.failures.remedies.kinds import CANDIDATES, RemedyInput
from components.retrieval.failures.repair import (
    LONGEST,
    MOST_ALONE,
    each_repair,
    every_way,
    in_no_query,
    parsed_abbreviations,
    repaired,
)
from components.retrieval.failures.vocabulary import CorpusWords
from components.retrieval.search.rerank import max_sim_scores
from components.words.unicode_words import words
from tests.components.retrieval.failures import planted
from tests.components.retrieval.failures.remedies import planted_remedies
from tests.components.retrieval.failures.remedies.planted_remedies import COUNT, setting_of

TEXTS = planted.demo_texts(COUNT)
QUERIES = [planted.own_words(text) for text in TEXTS]
PROMPT = "query: "


def misspelt() -> RemedyInput:
    numbers = random.Random(0)
    return setting_of(
        TEXTS, [planted.mistyped_query(q, numbers) if row % 3 == 0 else q for row, q in enumerate(QUERIES)]
    )


def needs_words() -> RemedyInput:
    """The vectors of a third of the texts have lost nearly all of what the texts say."""
    lost = planted_remedies.noise(COUNT, 30) * (np.arange(COUNT) % 3 == 0)[:, None]
    return setting_of(TEXTS, QUERIES, documents=planted.vectors_of(TEXTS) + lost)


def needs_tokens(**more: Any) -> RemedyInput:
    """The vector of a text mixes its words with noise, so that the right text is among the first but seldom first."""
    return setting_of(TEXTS, QUERIES, documents=planted.vectors_of(TEXTS) + planted_remedies.noise(COUNT, 6), **more)


def needs_prompt() -> RemedyInput:
    """A model that reads a query as one only behind its prompt."""

    def embed(texts: Any, prompt: str) -> np.ndarray:
        vectors = planted.vectors_of(list(texts))
        return vectors if prompt == PROMPT else vectors + planted_remedies.noise(len(vectors), 2.5, seed=len(prompt))

    return setting_of(TEXTS, QUERIES, embed, prompts=(PROMPT, "passage: "))


def needs_layer() -> RemedyInput:
    good = planted.vectors_of(QUERIES), planted.vectors_of(TEXTS)
    bad = good[0] + planted_remedies.noise(COUNT, 6, 5), good[1]
    equal = np.ones_like(good[0]), np.ones_like(good[1])
    return setting_of(
        TEXTS,
        QUERIES,
        lambda texts, prompt: good[0] + planted_remedies.noise(COUNT, 2.5),
        cells={(0, "cls"): equal, (1, "mean"): good, (1, "cls"): bad},
    )


def needs_cross_encoder() -> RemedyInput:
    def score(queries: Any, documents: Any, **_: Any) -> np.ndarray:
        return np.array(
            [len(set(words(a)) & set(words(b))) for a, b in zip(queries, documents, strict=True)], np.float32
        )

    return needs_tokens(cross_encoder=score)


PLANTED = {
    "repair": misspelt,
    "hybrid": needs_words,
    "maxsim": needs_tokens,
    "prompt": needs_prompt,
    "layer": needs_layer,
    "cross-encoder": needs_cross_encoder,
}


@pytest.mark.parametrize("name", PLANTED)
def test_each_remedy_repairs_its_own_kind_and_is_advised(name: str) -> None:
    setting = PLANTED[name]()
    now = setting.present.now
    assert 30 <= (now > 1).sum() <= COUNT - 30, int((now > 1).sum())
    rows = list(diagnosis.rows_of([name], setting))
    (row,) = rows
    assert row.result.repaired >= 10
    assert row.result.helps
    assert all(row.result.chosen)
    found = diagnosis.diagnosed(now, (), rows, setting.present.queries, setting.first)
    assert (found.advice.halves, found.advice.remedy) == ((name, name), name)
    assert found.advice.sentence.startswith(
        f"{row.title[:1].upper()}{row.title[1:]}: it repaired {row.result.repaired} of "
    )
    assert found.followed is not None
    assert found.followed.repaired == row.result.repaired
    assert row.control[0] - row.control[1] < row.result.repaired / 3


def test_the_cheap_remedies_are_advised_where_several_help() -> None:
    setting = misspelt()
    rows = list(diagnosis.rows_of(["maxsim", "layer", "hybrid", "prompt", "repair"], setting))
    assert [row.name for row in rows] == ["prompt", "repair", "hybrid", "maxsim", "layer"]
    found = diagnosis.diagnosed(setting.present.now, (), rows, setting.present.queries, setting.first)
    assert found.advice.halves == ("repair", "repair")
    assert rows[0].result.repaired == rows[0].result.harmed == 0  # prompts change nothing here
    assert rows[0].result.chosen == ("", "")


@pytest.mark.rare
@pytest.mark.parametrize("name", PLANTED)
def test_a_control_seldom_seems_to_help(name: str) -> None:
    setting = PLANTED[name]()
    remedy = kinds.measure(name, setting)
    above = sum(
        diagnosis.control(remedy, setting.present.now, setting.first, seed).change.low > 0 for seed in range(100)
    )
    assert above <= 8


def test_equal_vectors_repair_nothing() -> None:
    setting = needs_layer()
    remedy = kinds.measure("layer", setting)
    assert set(remedy.options) == {"layer 0, cls", "layer 1, mean", "layer 1, cls"}
    assert (remedy.options["layer 0, cls"] == COUNT).all()
    control = remedy.control(1)["layer 0, cls"]
    assert (control > 1).sum() >= (setting.present.now > 1).sum() - 30  # what is equal changes no order


def test_max_sim_alone_is_that_of_evaluate() -> None:
    setting = needs_tokens()
    present = setting.present
    rows = candidates(present.query_vectors, present.document_vectors, CANDIDATES)
    token_vectors = [planted_remedies.word_vectors(text) for text in present.pairs.documents.texts]
    scores = np.array(
        [
            max_sim_scores(planted_remedies.word_vectors(query), [token_vectors[row] for row in own])
            for query, own in zip(present.queries, rows, strict=True)
        ]
    )
    expected = first_ranks(either_ranks(present.ranking.ranks, rows, scores))
    assert np.array_equal(kinds.measure("maxsim", setting).options["share 1"], expected)


def test_a_cross_encoder_alone_is_that_of_evaluate() -> None:
    setting = needs_cross_encoder()
    present = setting.present
    rows = candidates(present.query_vectors, present.document_vectors, CANDIDATES)
    assert setting.cross_encoder is not None
    scores = candidate_scores(setting.cross_encoder, present.queries, present.pairs.documents.texts, rows)
    expected = first_ranks(either_ranks(present.ranking.ranks, rows, scores))
    assert np.array_equal(kinds.measure("cross-encoder", setting).options["share 1"], expected)


def test_several_right_texts() -> None:
    """The first right text counts, also in the controls."""
    queries = [QUERIES[row - row % 2] for row in range(COUNT)]
    setting = setting_of(TEXTS, queries, documents=planted.vectors_of(TEXTS) + planted_remedies.noise(COUNT, 6))
    assert setting.present.pairs.has_several
    for name in ("hybrid", "maxsim", "prompt"):
        remedy = kinds.measure(name, setting)
        for ranks in (*remedy.options.values(), *remedy.control(0).values()):
            assert ranks.shape == (COUNT // 2,)
            assert ranks.min() >= 1


@pytest.mark.parametrize("name", PLANTED)
def test_a_stop_is_noticed(name: str) -> None:
    with pytest.raises(Stopped):
        kinds.measure(name, misspelt(), is_stopped=lambda: True)


def test_a_query_is_written_in_other_ways() -> None:
    known = CorpusWords(["The physics institute may close.", "A short course for beginners on the KB."])
    assert repaired("Phyiscs sohrt, for BEGINERS!", known).text == "physics short, for beginners!"
    assert repaired("Phyiscs sohrt", known).words == (("Phyiscs", "physics"), ("sohrt", "short"))
    assert repaired("Physics HERE", known, ("lower case",)).text == "physics here"
    ways = every_way({"kb": "knowledge base"})
    assert list(ways) == [
        "abbreviations",
        "spelling",
        "lower case",
        "abbreviations, spelling",
        "abbreviations, lower case",
        "spelling, lower case",
        "abbreviations, spelling, lower case",
    ]
    found = repaired("KB of phyiscs", known, ways["abbreviations, spelling"], {"kb": "knowledge base"})
    assert found.text == "knowledge base of physics"
    assert list(every_way()) == ["spelling", "lower case", "spelling, lower case"]


def test_each_repair_of_a_query_is_another_text() -> None:
    known = CorpusWords(["The physics institute may close.", "A short course for beginners on the KB."])
    meanings = parsed_abbreviations("KB = knowledge base, pw=password")
    assert meanings == {"kb": "knowledge base", "pw": "password"}
    found = each_repair("Phyiscs KB sohrt", known, meanings)
    assert [each.text for each in found] == [
        "physics KB sohrt",
        "Phyiscs knowledge base sohrt",
        "Phyiscs KB short",
        "physics knowledge base short",  # all of them, in which nothing is left for lower case
    ]
    assert found[1].words == (("KB", "knowledge base"),)
    assert [each.text for each in each_repair("Physics HERE", known)] == ["physics here"]
    assert each_repair("physics here", known) == ()
    with pytest.raises(InputError, match="abbreviations 'kb' are not valid"):
        parsed_abbreviations("kb")
    assert parsed_abbreviations("kb=knowledge base, ") == {"kb": "knowledge base"}


@pytest.mark.parametrize(
    ("given", "query", "expected"),
    [
        ("TT-123=tent", "Clean the tt-123, please", "Clean the tent, please"),
        ("TT 123=tent", "clean the TT-123", "clean the tent"),
        ("TT-123=tent", "clean the TT 123", "clean the tent"),
        ("TNT-123=tent", "clean the TNT-123!", "clean the tent!"),
        ("TT-123A=tent", "clean the TT-123A", "clean the tent"),
        ("v.c.=vacuum cleaner", "a v.c. is loud", "a vacuum cleaner is loud"),
        ("hoover thing=vacuum cleaner", "my Hoover  thing", "my vacuum cleaner"),
        ("hoover=cleaner, hoover thing=vacuum cleaner", "hoover thing, hoover", "vacuum cleaner, cleaner"),
        ("知識庫=kb", "這個知識庫", "這個kb"),
        ("TT-123=tent", "the TT-1234 and the things", "the TT-1234 and the things"),
    ],
)
def test_an_abbreviation_is_one_word_or_several(given: str, query: str, expected: str) -> None:
    meanings, known = parsed_abbreviations(given), CorpusWords(["The tent."])
    assert repaired(query, known, ("abbreviations",), meanings).text == expected
    assert bool(in_no_query(meanings, ["another", query])) == (query == expected)


def test_what_is_wrong_with_abbreviations_is_said() -> None:
    meanings = parsed_abbreviations("kb=knowledge base, v.c.=vacuum cleaner, pw=password, pw = password, x y=z")
    assert len(meanings) == 4
    assert in_no_query(meanings, ["the KB", "x-y"]) == "2 of 4 abbreviations stand in no query: v.c., pw."
    assert in_no_query({}, ["the KB"]) == ""
    with pytest.raises(InputError, match="'TT-1' is given twice"):
        parsed_abbreviations("TT-1=tent, tt 1=table")
    for text in ("kb=knowledge=base", "&=and", "=base", "kb="):
        with pytest.raises(InputError, match="are not valid"):
            parsed_abbreviations(text)


def test_a_long_query_has_few_repairs_and_is_written_once() -> None:
    known, meanings = CorpusWords(["The physics institute may close."]), {"kb": "b"}
    words_of_it = [f"kb{'' if number else 'x'} {number}" for number in range(60)]
    query = " ".join(words_of_it)
    found = each_repair(query, known, meanings)
    assert [len(each.words) for each in found] == [1] * MOST_ALONE + [59]
    assert found[0].text == query.replace("kb 1", "b 1", 1)
    assert found[-1].text == query.replace("kb ", "b ")
    whole = query.ljust(LONGEST)
    assert len(each_repair(whole, known, meanings)) == len(found)
    assert each_repair(f"{whole} ", known, meanings) == ()
    count = 300_000
    started = time.thread_time()
    text = repaired("kb " * count, known, ("abbreviations",), meanings).text
    assert time.thread_time() - started < 5  # a copy of the query for each word takes several times as long
    assert text == "b " * count
