"""`evaluate PAIRS`: Recall@k of compressed sentences against the sentences they come from.

A folder instead of a file is a collection with graded relevance: components.command_line.evaluate_graded.
"""

from __future__ import annotations

import argparse
from operator import itemgetter
from pathlib import Path
from typing import Any

from components.command_line import evaluate_graded
from components.command_line import options as shared

NAME = "evaluate"
HELP = (
    "Recall@k, MRR and nDCG@10 on pairs (columns sentence and compressed), and MAP and P@10 too on a folder with graded "
    "relevance, by layer and pooling"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pairs",
        metavar="PAIRS",
        type=Path,
        help=".jsonl, .csv, .tsv or .parquet with the pairs, or a folder with graded relevance: corpus.jsonl, "
        "queries.jsonl and qrels/test.tsv as in BEIR, or documents, queries and qrels in TREC's form",
    )
    parser.add_argument("--split", default="test", help="of a folder with several qrels, those to take (default: test)")
    shared.add_embedding(parser, precision="float32")


def run(options: argparse.Namespace) -> dict[str, Any]:
    if options.pairs.is_dir():
        return evaluate_graded.run(options)
    from components.retrieval.corpora.corpus import read_corpus
    from components.retrieval.evaluation import grid, metrics
    from components.retrieval.evaluation.pair_runs import pairs_of_corpus

    corpus = read_corpus(options.pairs, options.pairs.name, "sentence", limits=None)
    pairs = pairs_of_corpus(corpus)
    shared.tell_left_out(pairs.left_out + corpus.report.bad_count, len(pairs))
    backend = shared.load(options)
    chosen, asked = (shared.embed_options(backend, options, role) for role in ("document", "query"))
    runs: list[dict[str, Any]] = []
    with shared.Bar(f"Embedding {corpus.name}") as bar:
        for one in grid.retrieval_runs(backend, pairs.documents.texts, pairs.queries.texts, chosen, asked, bar.update):
            runs.append({"model": one.model, "layer": one.layer, "pooling": one.pooling, **metrics.summary(one.ranks)})
    if options.json != "-":
        recalls = {f"R@{k}": lambda run, k=k: run["recall"][k] for k in runs[0]["recall"]}
        shared.write_table(runs, {**recalls, "MRR": itemgetter("mrr"), "nDCG@10": itemgetter("ndcg@10")}, digits=2)
    return {"file": str(options.pairs), "revision": backend.revision, "precision": chosen.precision, "runs": runs}
