"""What is said of the included cross-encoder is what it does: its stored ranks are those of the two models."""

from __future__ import annotations

import json

import numpy as np
import pytest

from components.model.backend import Backend
from components.retrieval.evaluation.pair_runs import pairs_of_corpus
from components.retrieval.reranking.quality import Reordered, rankings_of
from dashboard.corpora import current
from dashboard.jobs.stored import cross_looks, second_looks
from tests.support.pages import backend


def test_the_stored_ranks_are_those_of_the_two_models(scorer: Backend, demo_vectors: np.ndarray) -> None:
    """A sample of the headlines, by plain arrays and the cross-encoder's scores: those that it moves, and others."""
    pairs = pairs_of_corpus(current.demo())
    look = cross_looks.looks()["headlines"]
    moved = np.flatnonzero(look.ranks() != look.ranks(10))
    sample = np.unique([*moved[:6].tolist(), *np.random.default_rng(1).integers(0, len(pairs), 6).tolist()])
    options = backend().embed_options(precision="float32")
    queries = backend().embed([pairs.queries.texts[row] for row in sample], options=options)[0, 0].astype(np.float64)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    gold = second_looks.gold_of(pairs)[sample]
    for query, vector, right in zip(sample.tolist(), queries, gold.tolist(), strict=True):
        cosines = demo_vectors @ vector
        first = int(np.count_nonzero(cosines >= cosines[right] - 1e-6))
        assert look.ranks()[query] == first
        near = np.argsort(-cosines, kind="stable")[:10]
        after = first
        if right in near:
            texts = [pairs.documents.texts[row] for row in near]
            scores = scorer.score_pairs([pairs.queries.texts[query]] * 10, texts)
            own = scores[near.tolist().index(right)]
            after = int(np.count_nonzero(scores >= own - 1e-5))
        assert look.ranks(10)[query] == after


def test_it_is_stored_for_both_models_and_the_texts_that_are_included(scorer: Backend) -> None:
    with np.load(cross_looks.PATH, allow_pickle=False) as file:
        facts = json.loads(str(file["facts"]))
    assert facts["content"] == [pairs.content_hash for pairs in second_looks.included()]
    assert facts["cross_encoder"] == scorer.revision
    assert facts["revision"] == backend().revision


def test_the_sentence_has_the_numbers_of_the_ranks_and_can_say_the_opposite() -> None:
    look = cross_looks.looks()["headlines"]
    first, now = (ranks == 1 for ranks in (look.ranks(), look.ranks(10)))
    counts = f"repairs {np.sum(~first & now)} of 630 headlines and harms {np.sum(first & ~now)}"
    assert f"{counts}: it was trained to grade similarity, not to answer queries." in cross_looks.finding()

    def reordered(first: list[int], after: list[int]) -> Reordered:
        return Reordered(rankings_of({0: np.array(first), 10: np.array(after)}))

    assert cross_looks.finding(reordered([1, 2, 3, 1], [1, 1, 1, 2])).endswith("repairs 2 of 4 headlines and harms 1.")
    assert "repairs 1 of 3 headlines and harms 2: it was" in cross_looks.finding(reordered([1, 1, 2], [2, 2, 1]))
    assert cross_looks.finding(reordered([1, 2], [2, 1])).endswith("repairs 1 of 2 headlines and harms 1.")


@pytest.mark.parametrize("name", cross_looks.NAMES)
def test_a_rank_outside_of_the_candidates_stays(name: str) -> None:
    look = cross_looks.looks()[name]
    for depth in look.depths:
        outside = look.ranks() > depth
        np.testing.assert_array_equal(look.ranks(depth)[outside], look.ranks()[outside])
