"""Recall, MRR, nDCG and MAP on generated files against ir_measures and sentence-transformers, which get the files' own ids.

The sets have what files of people have: queries and answers in several rows, relevant documents that the corpus lacks,
judgements of unknown queries and documents, equal texts under several ids, and queries that are documents. The two libraries
break ties by the ids; here they count against the query, so that ir_measures gets an order in which of two equal documents the
less relevant one comes first.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import ir_measures
import numpy as np
import pytest
import torch
from ir_measures import AP, RR, P, R, Success, nDCG
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.evaluation import metrics
from components.retrieval.evaluation.graded import metrics as graded_metrics
from components.retrieval.evaluation.graded.collection import read_graded
from components.retrieval.evaluation.pair_runs import pairs_of_corpus

SETS = 200
DIM = 6
GRADED = {"nDCG@10": nDCG @ 10, "MRR": RR, "P@10": P @ 10, "Recall@10": R @ 10, "Recall@100": R @ 100, "MAP": AP}
WITH_ONE_GRADE = {**{f"Recall@{k}": Success @ k for k in metrics.CUTOFFS}, "MRR": RR, "nDCG@10": nDCG @ 10}


def vectors_of(texts: Sequence[str], seed: int) -> np.ndarray:
    """A vector for each different text, the same wherever it stands, float32 [text, dim]."""
    seeds = {text: [seed, *text.strip().encode()] for text in texts}
    drawn = {text: np.random.default_rng(own).normal(size=DIM).astype(np.float32) for text, own in seeds.items()}
    return np.array([drawn[text] for text in texts], np.float32).reshape(len(texts), DIM)


def cosines(queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """float64 [query, document]."""
    sides = (side.astype(np.float64) for side in (queries, documents))
    first, second = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides)
    return first @ second.T


def by_query(qrels, run, wanted, ids) -> dict[str, list[float]]:
    """The measures of ir_measures, by name, [query]."""
    found = {name: dict.fromkeys(ids, -1.0) for name in wanted}
    names = {str(measure): name for name, measure in wanted.items()}
    for value in ir_measures.iter_calc(list(wanted.values()), qrels, run):
        found[names[str(value.measure)]][value.query_id] = value.value
    return {name: list(values.values()) for name, values in found.items()}


@pytest.mark.parametrize("seed", range(SETS))
def test_pairs_in_rows_equal_ir_measures(seed):
    """Each different query once, with all answers of its rows; equal answers are one document."""
    chance = np.random.default_rng(seed)
    count = int(chance.integers(1, 60))
    asked, told = (int(chance.integers(1, count + 1)) for _ in range(2))
    rows = [
        {
            "sentence": f"answer {chance.integers(told)}",
            "compressed": ""
            if chance.random() < 0.1
            else f"{' ' * int(chance.integers(2))}query {chance.integers(asked)}",
        }
        for _ in range(count)
    ]
    rows.append({"sentence": "answer 0", "compressed": "query 0"})
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    pairs = pairs_of_corpus(read_corpus(content, "rows.jsonl", "sentence"))
    asking = [row for row in rows if row["compressed"].strip()]
    # The reference: ids are the texts.
    qrels: dict[str, dict[str, int]] = {}
    for row in asking:
        qrels.setdefault(row["compressed"].strip(), {})[row["sentence"]] = 1
    documents = list(dict.fromkeys(row["sentence"] for row in asking))
    of = cosines(vectors_of(list(qrels), seed), vectors_of(documents, seed))
    run = {query: dict(zip(documents, own.tolist(), strict=True)) for query, own in zip(qrels, of, strict=True)}
    ranks = pairs.ranks_by_vectors(vectors_of(pairs.queries.texts, seed), vectors_of(pairs.documents.texts, seed))
    theirs = by_query(qrels, run, WITH_ONE_GRADE, qrels)
    for name, measure in metrics.MEASURES.items():
        np.testing.assert_allclose(measure(ranks), theirs[name], atol=1e-9, err_msg=name)
    if seed % 10 == 0:
        _equal_sentence_transformers(ranks, qrels, documents, seed)


def _equal_sentence_transformers(ranks, qrels, documents, seed) -> None:
    class Model:
        @staticmethod
        def encode_query(texts, **_):
            return torch.from_numpy(vectors_of(texts, seed))

        encode_document = encode_query

    def score(first, second):
        return torch.from_numpy(cosines(first.numpy(), second.numpy()))

    evaluator = InformationRetrievalEvaluator(
        {query: query for query in qrels}, {text: text for text in documents}, {key: set(own) for key, own in qrels.items()},
        accuracy_at_k=list(metrics.CUTOFFS), mrr_at_k=[1_000], ndcg_at_k=[10], write_csv=False,
        score_functions={"cosine": score},
    )  # fmt: skip
    theirs = evaluator.compute_all_metrics(Model())["cosine"]
    for k in metrics.CUTOFFS:
        assert metrics.recall(ranks, k).mean() == pytest.approx(theirs["accuracy@k"][k])
    assert metrics.reciprocal_rank(ranks).mean() == pytest.approx(theirs["mrr@k"][1_000])
    assert metrics.ndcg(ranks).mean() == pytest.approx(theirs["ndcg@k"][10])


@pytest.mark.parametrize("seed", range(SETS))
def test_files_with_ids_equal_ir_measures(seed):
    """A query's own document is left out of its run, as BEIR does, and relevant documents that are nowhere count as missed."""
    chance = np.random.default_rng(seed)
    documents = {
        f"d{number}": f"text {chance.integers(40) if seed % 2 else number}"
        for number in range(int(chance.integers(3, 40)))
    }
    ids = list(documents)
    queries = {}
    for number in range(int(chance.integers(1, 12))):
        own = str(chance.choice(ids))
        queries[own if chance.random() < 0.3 else f"q{number}"] = (
            documents[own] if chance.random() < 0.5 else f"query {number % 3}"
        )
    known = [*queries, "q unknown"]
    judged: dict[str, dict[str, int]] = {}
    for query in known:
        for document in chance.choice([*ids, "d unknown", "d lost"], int(chance.integers(1, len(ids))), replace=False):
            if document != query:
                judged.setdefault(query, {})[str(document)] = int(chance.integers(0, 4))
    first = next(iter(queries))
    judged.setdefault(first, {})[next(key for key in ids if key != first)] = 2
    lines = [f"{query}\t{document}\t{grade}" for query, own in judged.items() for document, grade in own.items()]
    graded = read_graded(
        {
            "corpus.jsonl": "".join(
                json.dumps({"_id": key, "text": text}) + "\n" for key, text in documents.items()
            ).encode(),
            "queries.jsonl": "".join(
                json.dumps({"_id": key, "text": text}) + "\n" for key, text in queries.items()
            ).encode(),
            "qrels/test.tsv": "\n".join(["query-id\tcorpus-id\tscore", *lines]).encode(),
        }
    )
    # All that the reference knows are the files' ids, and BEIR's rule. As in trec_eval, a query whose relevant documents are
    # all lost counts, and one without a relevant document does not.
    kept = [query for query in queries if any(grade > 0 for grade in judged.get(query, {}).values())]
    of = cosines(vectors_of([queries[key] for key in kept], seed), vectors_of(list(documents.values()), seed))
    run = {}
    for query, own in zip(kept, of.round(9), strict=True):
        scores = {key: score for key, score in zip(documents, own.tolist(), strict=True) if key != query}
        order = sorted(scores, key=lambda key: (-scores[key], judged[query].get(key, 0)))
        run[query] = {key: float(-place) for place, key in enumerate(order)}
    assert graded.queries == tuple(queries[key] for key in kept)
    found = graded.ranks_by_vectors(vectors_of(graded.queries, seed), vectors_of(graded.documents, seed))
    theirs = by_query({key: judged[key] for key in kept}, run, GRADED, kept)
    for name, measure in graded_metrics.MEASURES.items():
        np.testing.assert_allclose(measure(found), theirs[name], atol=1e-9, err_msg=name)
