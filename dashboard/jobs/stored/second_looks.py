"""What MaxSim changes over the included collections in the included model, and what it cost when it was measured.

assets/second_looks.npz holds the ranks and times, and for which model, texts, layer and pooling they hold: with any other,
nothing is taken from it and the caller computes. `python -m dashboard.views.home.stored` writes it; a test measures the ranks
again.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from components.retrieval.corpora.demo import demo_corpus
from components.retrieval.evaluation.pair_runs import pairs_of_corpus, pairs_of_rows
from components.retrieval.reranking.quality import SecondLook, rankings_of, second_look
from dashboard.ready_made import ASSETS

if TYPE_CHECKING:
    from components.arrays import Int64
    from components.model.backend import Backend
    from components.retrieval.evaluation.pair_runs import Pairs

PATH = ASSETS / "second_looks.npz"
# Name, file of assets/collections, its columns of queries and of texts.
COLLECTIONS = (
    ("questions", "questions.jsonl", "question", "passage"),
    ("paraphrases", "paraphrases.jsonl", "paraphrase", "sentence"),
)


@cache
def _stored() -> tuple[dict[str, Any], dict[str, SecondLook]]:
    """The facts of the file, and by the content hash of the pairs what was measured."""
    with np.load(PATH, allow_pickle=False) as file:
        facts = json.loads(str(file["facts"]))
        looks = {
            of: SecondLook(
                rankings_of(
                    {0: file[f"{of} first"], **{int(depth): file[f"{of} {depth}"] for depth in one["milliseconds"]}}
                ),
                milliseconds={int(depth): value for depth, value in one["milliseconds"].items()},
                query_milliseconds=one["query_milliseconds"],
                vector_bytes=one["vector_bytes"],
                token_bytes=one["token_bytes"],
            )
            for of, one in facts["looks"].items()
        }
    return facts, looks


def look(backend: Backend, pairs: Pairs, layer: int, pooling: str, max_length: int | None) -> SecondLook | None:
    """What was measured for these pairs, or None where it has to be measured."""
    facts, looks = _stored()
    is_of = (
        backend.revision == facts["revision"]
        and layer == facts["layer"]
        and pooling == facts["pooling"]
        and (max_length is None or max_length >= facts["tokens"])
    )
    return looks.get(pairs.content_hash) if is_of else None


def gold_of(pairs: Pairs) -> Int64:
    """The number of each query's right text, int64 [query]."""
    return np.arange(len(pairs)) if pairs.gold is None else pairs.gold


@cache
def collection(file: str, queries: str, texts: str) -> Pairs:
    """A file of assets/collections: queries with one right text each."""
    lines = (ASSETS / "collections" / file).read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    return pairs_of_rows(file, [row[texts] for row in rows], [row[queries] for row in rows], queries)


def included() -> tuple[Pairs, ...]:
    """The demonstration headlines, and the collections."""
    return (pairs_of_corpus(demo_corpus()), *(collection(*columns) for _, *columns in COLLECTIONS))


def measured(backend: Backend, collections: Sequence[Pairs]) -> bytes:
    """The file's content, measured with a model."""
    layer, pooling = backend.facts.layers, backend.own_pooling
    arrays: dict[str, Any] = {}
    looks: dict[str, Any] = {}
    texts: list[str] = []
    for pairs in collections:
        queries, documents = pairs.queries.texts, pairs.documents.texts
        texts += [*queries, *documents]
        look_again = second_look(backend, queries, documents, gold_of(pairs), layer, pooling)
        for depth in (0, *look_again.depths):
            arrays[f"{pairs.content_hash} {depth or 'first'}"] = look_again.ranks(depth).astype(np.int32)
        looks[pairs.content_hash] = {
            "milliseconds": {str(depth): round(value, 3) for depth, value in look_again.milliseconds.items()},
            "query_milliseconds": round(look_again.query_milliseconds, 3),
            "vector_bytes": look_again.vector_bytes,
            "token_bytes": round(look_again.token_bytes, 1),
        }
    facts = {
        "revision": backend.revision,
        "layer": layer,
        "pooling": pooling,
        "tokens": max(backend.tokenization.lengths(texts)),
        "looks": looks,
    }
    file = io.BytesIO()
    np.savez_compressed(file, facts=np.array(json.dumps(facts)), **arrays)
    return file.getvalue()
