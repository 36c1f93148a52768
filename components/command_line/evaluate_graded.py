"""`evaluate FOLDER`: MAP, MRR, nDCG@10, P@10 and Recall@k on documents, queries and graded judgements."""

from __future__ import annotations

import argparse
import sys
from operator import itemgetter
from typing import Any

from components.command_line import options as shared


def run(options: argparse.Namespace) -> dict[str, Any]:
    """`options` are those of `evaluate`."""
    from components.retrieval.evaluation.graded.collection import read_graded_folder
    from components.retrieval.evaluation.graded.metrics import graded_summary
    from components.retrieval.evaluation.graded.runs import graded_runs

    graded = read_graded_folder(options.pairs, options.split, limits=None)
    if graded.report.left_out:
        sys.stderr.write(f"Left out: {', '.join(f'{n:,} {what}' for what, n in graded.report.left_out.items())}.\n")
    backend = shared.load(options)
    chosen, asked = (shared.embed_options(backend, options, role) for role in ("document", "query"))
    runs: list[dict[str, Any]] = []
    with shared.Bar(f"Embedding {graded.name}") as bar:
        for one in graded_runs(backend, graded, chosen, asked, bar.update):
            runs.append({"model": one.model, "layer": one.layer, "pooling": one.pooling, **graded_summary(one.ranks)})
    if options.json != "-":
        means = {"MAP": "map", "MRR": "mrr", "nDCG@10": "ndcg@10", "P@10": "p@10"}
        recalls = {f"R@{k}": lambda run, k=k: run["recall"][k] for k in ("10", "100")}
        shared.write_table(runs, {**{title: itemgetter(key) for title, key in means.items()}, **recalls}, digits=2)
    return {
        "file": str(options.pairs),
        "judgements": graded.report.files["judgements"],
        "documents": len(graded.documents),
        "left_out": graded.report.left_out,
        "revision": backend.revision,
        "precision": chosen.precision,
        "runs": runs,
    }
