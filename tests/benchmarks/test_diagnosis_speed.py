"""What a diagnosis costs beside the embedding that it needs, as a ratio in one run (`make bench -s`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from components.retrieval.evaluation.pair_runs import first_pairs, pairs_of_corpus
from components.retrieval.failures.remedies import USUAL, diagnosis, folds, kinds
from components.retrieval.failures.remedies.present import present
from components.retrieval.failures.vocabulary import CorpusWords
from dashboard.corpora import current
from tests.support.measurements import report

COUNT, MOST = 300, 4.0


@pytest.mark.timeout(3600)
def test_all_remedies_against_embedding_for_each_layer_and_prompt(embedded: Any) -> None:
    """300 pairs over 300 texts, and every remedy without a second model."""
    pairs = first_pairs(pairs_of_corpus(current.demo()), COUNT)
    queries, documents = pairs.queries.texts, pairs.documents.texts
    own = [
        embedded.embed_options([embedded.text_layers[-1]], [embedded.own_pooling], precision="float32", role=role)
        for role in ("query", "document")
    ]

    def embed_each() -> None:
        for layer in embedded.text_layers:
            options = [replace(each, layers=(layer,)) for each in own]
            embedded.embed(queries, options=options[0])
            embedded.embed(documents, options=options[1])
        for prompt in kinds.PROMPTS:
            embedded.embed(queries, options=replace(own[0], prompt=prompt))

    def diagnose() -> list[diagnosis.RemedyRow]:
        now = present(embedded, pairs, *own, every_cell=True)
        known = CorpusWords(documents, embedded.tokenization.vocabulary)
        setting = kinds.RemedyInput(now, folds.halves(queries), known)
        return list(diagnosis.rows_of(USUAL, setting))

    def seconds(action: Callable[[], object]) -> float:
        started = time.perf_counter()
        action()
        return time.perf_counter() - started

    embedded.embed(documents[:64], options=own[1])  # what is loaded with the first pass
    alone, whole, found = [], [], []
    for _ in range(2):  # in turn, so that a slow minute hits both
        alone.append(seconds(embed_each))
        whole.append(seconds(lambda: found.append(diagnose())))
    each = ", ".join(f"{row.name} {row.seconds:.1f} s" for row in found[-1])
    report(
        f"diagnosis of {len(pairs)} pairs: {min(whole):.1f} s ({each}, without their shams), embedding for each layer and "
        f"prompt {min(alone):.1f} s: {min(whole) / min(alone):.2f}"
    )
    assert [row.name for row in found[-1]] == list(USUAL)
    assert min(whole) / min(alone) <= MOST
