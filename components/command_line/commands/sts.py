"""`sts FILE`: how well cosines of sentence vectors agree with scores given by people."""

from __future__ import annotations

import argparse
from operator import itemgetter
from pathlib import Path
from typing import Any

from components.command_line import options as shared

NAME = "sts"
HELP = "measure Spearman and Pearson correlations on sentence pairs (columns sentence1, sentence2, score), by layer and pooling"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pairs", metavar="FILE", type=Path, help="a .csv, .tsv, .jsonl or .parquet file of scored pairs"
    )
    shared.add_rows(parser, "sentence1=left,sentence2=right,label=value", "the test rows")
    shared.add_dialect(parser)
    parser.add_argument("--dry-run", action="store_true", help="say what was read of the file; measure nothing")
    shared.add_limits(parser)
    shared.add_embedding(parser, precision="float32")


def run(options: argparse.Namespace) -> dict[str, Any]:
    from components.retrieval.evaluation import sts

    pairs = sts.read_scored_pairs(
        options.pairs,
        options.pairs.name,
        chosen=shared.columns_of(options),
        part=options.part,
        limits=shared.limits_of(options),
        dialect=shared.dialect_of(options),
        encoding=options.encoding,
    )
    assert pairs.reading is not None
    if options.dry_run:
        shared.write_reading(pairs.reading, write=shared.writer(options))
        return {"file": str(options.pairs), "pairs": len(pairs.first), "reading": pairs.reading.as_json()}
    backend = shared.load(options)
    embed_options = shared.embed_options(backend, options, None)
    unknown_language = shared.unknown_languages(backend, {"the pairs": [*pairs.first, *pairs.second]})
    shared.write_reading(pairs.reading, with_preview=False)
    with shared.progress_bar(f"Embedding {options.pairs.name}") as report_progress:
        grid = sts.similarity_grid(backend, pairs, embed_options, report_progress)
    runs = []
    for layer, pooling in grid.cosines.cells:
        spearman, pearson = (None if value is None else round(value, 6) for value in grid.of(layer, pooling))
        run = {"model": backend.spec.key, "layer": layer, "pooling": pooling}
        runs.append({**run, "spearman": spearman, "pearson": pearson, "n": len(pairs.first)})
    correlations = {"Spearman": itemgetter("spearman"), "Pearson": itemgetter("pearson")}
    shared.write_table(options, runs, correlations, digits=4)
    return {
        "file": str(options.pairs),
        "reading": pairs.reading.as_json(),
        "revision": backend.revision,
        "precision": embed_options.precision,
        "not_applied": list(backend.not_applied),
        "unknown_language": unknown_language,
        "runs": runs,
    }
