"""`evaluate PAIRS`: how well queries retrieve their correct answers, by layer and pooling.

PAIRS is a file of pairs, where each query has one correct answer, or a folder with graded relevance, where it may have many.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from components.command_line import options as shared
from components.errors import InputError

NAME = "evaluate"
HELP = (
    "measure Recall@k, MRR and nDCG@10 on pairs (columns sentence and compressed), or also MAP and P@10 on a folder with "
    "graded relevance, by layer and pooling"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pairs",
        metavar="PAIRS",
        type=Path,
        help="a .jsonl, .csv, .tsv or .parquet file of pairs, or a folder with graded relevance: corpus.jsonl, "
        "queries.jsonl and qrels/test.tsv as in BEIR, or documents, queries and qrels as in TREC",
    )
    parser.add_argument("--split", default="test", help="which of a folder's qrels files to read (default: test)")
    _add_fields(parser)
    parser.add_argument(
        "--rerank",
        metavar="K",
        type=int,
        help="measure each run once more with its first K hits re-ranked by a cross-encoder",
    )
    shared.add_cross_encoder(parser)
    shared.add_embedding(parser, precision="float32")


def _add_fields(parser: argparse.ArgumentParser) -> None:
    """The options that choose which fields of a folder's queries and documents are searched."""
    parser.add_argument(
        "--query-field",
        default=None,
        help="which field of a folder's queries asks: text, title, description or narrative (default: the text, else the "
        "first of these that they have)",
    )
    parser.add_argument(
        "--document-fields",
        default=None,
        help="which fields of a folder's documents are searched: title, text or title,text (default: all that they have)",
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    if options.rerank is not None and options.rerank < 2:
        raise InputError(
            f"--rerank {options.rerank} leaves nothing to re-rank.",
            "Another order needs at least 2 hits.",
            "Write for example --rerank 100",
        )
    for option, value in (("--cross-encoder", options.cross_encoder), ("--label", options.label)):
        if options.rerank is None and value is not None:
            raise InputError(
                f"{option} is given without --rerank.",
                "A cross-encoder only re-ranks the first hits of a run.",
                f"Add for example --rerank 100, or leave {option} out.",
            )
    return _run_graded(options) if options.pairs.is_dir() else _run_pairs(options)


def _run_pairs(options: argparse.Namespace) -> dict[str, Any]:
    from components.errors import InputError
    from components.retrieval.corpora.corpus import read_corpus
    from components.retrieval.evaluation import metrics
    from components.retrieval.evaluation.pair_runs import pairs_of_corpus
    from components.retrieval.evaluation.ranks import gold_ranks
    from components.retrieval.evaluation.second_stage import second_ranks

    if any(choice is not None for choice in _fields(options)):
        raise InputError(
            "--query-field and --document-fields were given with a file of pairs.",
            "They choose the fields of a folder with graded relevance.",
            "Leave them out, or name a folder.",
        )
    corpus = read_corpus(options.pairs, options.pairs.name, "sentence", limits=None)
    pairs = pairs_of_corpus(corpus)
    shared.write_left_out(pairs.left_out + corpus.report.bad_count, len(pairs))
    texts = pairs.documents.texts, pairs.queries.texts
    result = _measured(options, corpus.name, *texts, gold_ranks, second_ranks, metrics.summary)
    _write_table(options, result["runs"], {"MRR": "mrr", "nDCG@10": "ndcg@10"}, recalls_first=True)
    return {"file": str(options.pairs), **result}


def _run_graded(options: argparse.Namespace) -> dict[str, Any]:
    from components.retrieval.evaluation.graded.collection import read_folder_fields
    from components.retrieval.evaluation.graded.metrics import graded_summary
    from components.retrieval.evaluation.graded.ranks import vector_relevant_ranks
    from components.retrieval.evaluation.second_stage import second_relevant_ranks

    graded = read_folder_fields(options.pairs, options.split, limits=None).chosen(*_fields(options))
    report = graded.report
    if report.left_out:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in report.left_out.items())
        shared.note(f"Left out: {counts}.")
    rank = partial(vector_relevant_ranks, grades=graded.grades)
    texts = graded.documents, graded.queries
    result = _measured(options, graded.name, *texts, rank, second_relevant_ranks, graded_summary)
    _write_table(options, result["runs"], {"MAP": "map", "MRR": "mrr", "nDCG@10": "ndcg@10", "P@10": "p@10"})
    return {
        "file": str(options.pairs),
        "judgements": report.files["judgements"],
        "query_field": graded.query_field,
        "document_fields": list(graded.document_fields),
        "documents": len(graded.documents),
        "left_out": report.left_out,
        **result,
    }


def _fields(options: argparse.Namespace) -> tuple[str | None, list[str] | None]:
    """The chosen field of the queries and those of the documents; None for what is not chosen."""
    names = options.document_fields
    return options.query_field, None if names is None else [name.strip() for name in names.split(",")]


def _measured(
    options: argparse.Namespace,
    name: str,
    documents: Sequence[str],
    queries: Sequence[str],
    rank: Callable[..., Any],
    second_rank: Callable[..., Any],
    summary: Callable[[Any], dict[str, Any]],
) -> dict[str, Any]:
    """The revision, the precision and the measures of every run, and with --rerank once more after re-ranking."""
    from components.retrieval.evaluation.grid import retrieval_runs
    from components.retrieval.evaluation.second_stage import candidate_scores, candidates

    # Fails before the work.
    cross_encoder, label = (None, None) if options.rerank is None else shared.load_cross_encoder(options)
    backend = shared.load(options)
    document_options, query_options = (shared.embed_options(backend, options, role) for role in ("document", "query"))

    def both(query_vectors: Any, document_vectors: Any, is_cancelled: Callable[[], bool]) -> tuple[Any, Any]:
        ranks = rank(query_vectors, document_vectors, is_cancelled=is_cancelled)
        k = options.rerank
        return ranks, None if k is None else candidates(query_vectors, document_vectors, k, is_cancelled)

    with shared.progress_bar(f"Embedding {name}") as report_progress:
        measured = list(
            retrieval_runs(backend, documents, queries, both, document_options, query_options, report_progress)
        )
    runs = [
        {"model": backend.spec.key, "layer": layer, "pooling": pooling, **summary(ranks)}
        for layer, pooling, (ranks, _) in measured
    ]
    result = {"revision": backend.revision, "precision": document_options.precision, "runs": runs}
    if cross_encoder is None:
        return result
    import numpy as np

    rows = np.stack([rows for _, _, (_, rows) in measured])  # [run, query, candidate]
    started = time.perf_counter()
    with shared.progress_bar("Re-ranking", " pairs") as report_progress:
        score = partial(cross_encoder.score_pairs, label=label, precision=options.precision)
        scores = candidate_scores(score, queries, documents, rows, report_progress)
    seconds = round(time.perf_counter() - started, 3)
    second = {"reranked": options.rerank, "cross_encoder": cross_encoder.spec.key}
    for run, (_, _, (ranks, own_rows)), own_scores in zip(list(runs), measured, scores, strict=True):
        place = {key: run[key] for key in ("model", "layer", "pooling")}
        runs.append(place | second | summary(second_rank(ranks, own_rows, own_scores)))
    return result | {
        "cross_encoder_revision": cross_encoder.revision,
        "cross_encoder_label": None if label is None else cross_encoder.pair_labels()[label],
        "rerank_seconds": seconds,
    }


def _write_table(
    options: argparse.Namespace, runs: list[dict[str, Any]], measures: dict[str, str], recalls_first: bool = False
) -> None:
    recalls = {f"R@{k}": lambda run, k=k: run["recall"][k] for k in runs[0]["recall"]}
    others = {title: itemgetter(key) for title, key in measures.items()}
    shared.write_table(options, runs, {**recalls, **others} if recalls_first else {**others, **recalls}, digits=2)
