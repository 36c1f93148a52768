"""`rerank INDEX QUERIES`: search an index for many queries, and put the hits of each into a cross-encoder's order.

The cross-encoder runs in bfloat16 where that is faster: of 60 queries with 20 candidates each (demo corpus and sentence
compressions), the first hit and the rank of the correct answer stayed the same for all, and 99.7 % of the first ten.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.command_line import options as shared
from components.command_line.commands import search
from components.errors import InputError

if TYPE_CHECKING:
    from components.retrieval.corpora.corpus import Corpus

NAME = "rerank"
HELP = "search an index for many queries, and put the hits of each into the order of a cross-encoder"
TEXT = "text"  # the column of a file without one that is named as queries are


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="INDEX", type=Path, help="a folder written by `index`")
    parser.add_argument(
        "queries",
        metavar="QUERIES",
        type=Path,
        help="a .txt file with one query per line, or a .jsonl, .csv, .tsv or .parquet file with a column of queries",
    )
    parser.add_argument("-k", type=int, default=100, help="how many hits of each query are re-ranked (default: 100)")
    parser.add_argument("--query-column", help="the column with the queries (default: query, or detected)")
    shared.add_dialect(parser)
    shared.add_cross_encoder(parser)
    parser.add_argument(
        "--precision",
        default="auto",
        help="of the cross-encoder: float32, bfloat16, or auto for the faster of the two on this machine (default: auto)",
    )
    parser.add_argument(
        "--max-length", type=int, help="truncate pairs to this many tokens (default: the model's maximum)"
    )
    search.add_ranking(parser)
    shared.add_limits(parser)


def run(options: argparse.Namespace) -> dict[str, Any]:
    import numpy as np

    from components.retrieval.evaluation.second_stage import candidate_scores
    from components.retrieval.rankings.ranking import Ranking
    from components.retrieval.search.exact import checked_similarity
    from components.retrieval.search.query import query_vectors

    if options.k < 1:
        raise InputError(f"k is {options.k}.", "At least 1 hit can be re-ranked.", "Write for example -k 100")
    index, layer, pooling = search.opened(options)
    read = _queries(options)
    queries = read.texts
    cross_encoder, label = shared.load_cross_encoder(options)
    score = partial(cross_encoder.score_pairs, label=label, precision=options.precision, max_length=options.max_length)
    score([], [])  # raises for options that the model does not have
    backend = shared.load_with_prompt(index.info.model, options.prompt)
    similarity = checked_similarity(options.similarity or backend.sentence_config.similarity)
    unknown_language = shared.unknown_languages(backend, {"the index": index.texts, "the queries": queries})
    started = time.perf_counter()
    vectors = query_vectors(backend, queries, index.info)[layer, pooling]
    rows = index.engine(layer, pooling).search(vectors, options.k, similarity).indices  # [query, candidate]
    retrieved = time.perf_counter()
    # Said with the first progress: until then a wrong option is answered with one line.
    tell = partial(shared.write_corpus, read, "--query-column NAME")
    with shared.progress_bar("Re-ranking", " pairs", before=tell) as report_progress:
        # Only the candidates are read: an index may hold millions of texts.
        used, places = np.unique(rows, return_inverse=True)
        documents = [index.texts[int(row)] for row in used]
        scores = candidate_scores(score, queries, documents, places.reshape(rows.shape), report_progress)
    seconds = {"retrieve": round(retrieved - started, 3), "rerank": round(time.perf_counter() - retrieved, 3)}
    results = []
    for query, own_rows, own_scores in zip(queries, rows, scores, strict=True):
        # Of the candidates alone: number c has the rank c + 1 by vectors.
        ranking = Ranking.of_candidates(query, "logit", own_scores, np.arange(len(own_rows)), len(own_rows))
        hits = [
            {
                "rank": rank,
                "index": int(own_rows[place]),
                "score": round(float(value), 6),
                "retrieved_rank": place + 1,
                "text": index.texts[int(own_rows[place])],
            }
            for rank, (place, value) in enumerate(zip(ranking.best.tolist(), ranking.hit_scores, strict=True), start=1)
        ]
        results.append({"query": query, "results": hits})
        if options.json != "-":
            shared.say(query)
            for hit in hits:
                shared.say(
                    f"{hit['rank']:>4}  {hit['score']:>9.4f}  was {hit['retrieved_rank']:>4}  {hit['index']:>8}  {hit['text']}"
                )
    shared.note(
        f"{len(queries):,} queries, {rows.size:,} candidates: {seconds['retrieve']:.1f} s to retrieve, "
        f"{seconds['rerank']:.1f} s to re-rank"
    )
    return {
        "model": index.info.model,
        "layer": layer,
        "pooling": pooling,
        "similarity": similarity,
        "not_applied": list(backend.not_applied),
        "unknown_language": unknown_language,
        "cross_encoder": cross_encoder.spec.key,
        "cross_encoder_revision": cross_encoder.revision,
        "cross_encoder_label": None if label is None else cross_encoder.pair_labels()[label],
        "precision": cross_encoder.embedder.resolve(options.precision),
        "k": options.k,
        "seconds": seconds,
        "queries": results,
    }


def _queries(options: argparse.Namespace) -> Corpus:
    """The queries of the file. Raises InputError for a file without one."""
    from components.retrieval.corpora.column_names import is_question
    from components.retrieval.corpora.corpus import read_corpus
    from components.retrieval.corpora.readers.files import read_table

    path: Path = options.queries
    limits, dialect = shared.limits_of(options), shared.dialect_of(options)
    column = options.query_column
    if column is None and path.suffix.lower() != ".txt":
        names = read_table(path, path.name, options.encoding, limits, max_rows=1, dialect=dialect).columns
        column = next(
            (name for name in names if is_question(name)), next((name for name in names if name == TEXT), None)
        )
    corpus = read_corpus(path, path.name, column, options.encoding, limits, dialect=dialect)
    return corpus
