"""`index CORPUS --out DIR`: embed a corpus into a folder that `search` reads."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from components.command_line import options as shared
from components.errors import InputError
from components.numbers import counted
from components.sizes import in_words

NAME = "index"
HELP = "embed a corpus (.txt, .csv, .tsv, .jsonl, .json, .parquet) into an index folder"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "corpus",
        metavar="CORPUS",
        help="the file with the sentences, a folder of such files, or an address (file://, s3://, gs://, ...)",
    )
    parser.add_argument("--out", metavar="DIR", type=Path, help="the folder to write (needed without --dry-run)")
    shared.add_dry_run(parser)
    parser.add_argument("--text-column", help="the column with the sentences (default: detected)")
    shared.add_dialect(parser)
    parser.add_argument(
        "--dtype", default="auto", help="float32, float16, or auto for float32 up to 2 GB (default: auto)"
    )
    shared.add_limits(parser)
    shared.add_embedding(parser)
    shared.add_engine(parser)


def run(options: argparse.Namespace) -> dict[str, Any]:
    from components.retrieval.corpora.corpus import read_corpus
    from components.retrieval.corpora.readers.places import files_at
    from components.retrieval.index.build import build_index, check_folder
    from components.retrieval.index.unfinished import Embed, embed_here

    shared.check_engine(options)
    if options.out is not None:
        check_folder(options.out)
    elif not options.dry_run:
        raise InputError(
            "index needs --out, the folder to write.",
            "Only with --dry-run nothing is written.",
            "Write for example --out my-index, or add --dry-run.",
        )
    limits, dialect = shared.limits_of(options), shared.dialect_of(options)
    with files_at(options.corpus, limits) as (files, left_out):
        name = Path(options.corpus).name
        corpus = read_corpus(files, name, options.text_column, options.encoding, limits, dialect=dialect)
    report, write = corpus.report, shared.writer(options)

    def write_reading() -> None:
        if left_out:
            named = ", ".join(left_out[:3])
            verb = "is" if len(left_out) == 1 else "are"
            write(
                f"{counted(len(left_out), 'file')} (other formats, links, or not documents) {verb} left out ({named})."
            )
        shared.write_corpus(corpus, "--text-column NAME", write)
        if report.duplicates:
            verb = "repeats" if report.duplicates == 1 else "repeat"
            write(f"{counted(report.duplicates, 'sentence')} {verb} an earlier one; all are kept.")

    facts = {**shared.corpus_facts(corpus), "left_out_files": left_out}
    if options.dry_run:
        write_reading()
        return {"file": options.corpus, **shared.previewed(corpus, write), **facts}
    assert options.out is not None
    backend = shared.load(options)
    embed_options = shared.embed_options(backend, options, "document")
    embed: Embed = embed_here
    if options.engine == "ray":
        from components.distributed.embedding import embed_on_ray

        embed = partial(embed_on_ray, address=options.address)
    # What is said of the file comes with the first progress: until then a wrong option is answered with one line.
    with shared.progress_bar(f"Embedding {corpus.name}", before=write_reading) as report_progress:
        index = build_index(backend, corpus, options.out, embed_options, options.dtype, report_progress, embed=embed)
    unknown_language = shared.unknown_languages(backend, {"the texts": corpus.texts})
    info = index.info
    size = index.nbytes
    shared.note(
        f"{info.sentences:,} sentences, {info.tokens:,} tokens, {info.truncated:,} truncated to "
        f"{info.options.max_length} tokens; {in_words(size)} in {index.folder}"
    )
    return {
        "folder": str(index.folder),
        "model": info.model,
        "prompt": info.options.prompt,
        "not_applied": list(backend.not_applied),
        "unknown_language": unknown_language,
        "revision": info.revision,
        "layers": list(info.options.layers),
        "poolings": list(info.options.poolings),
        "precision": info.options.precision,
        "max_length": info.options.max_length,
        "dtype": info.dtype,
        "sentences": info.sentences,
        "tokens": info.tokens,
        "truncated": info.truncated,
        "bad_rows": report.bad_count,
        **facts,
        "duplicates": report.duplicates,
        "bytes": size,
    }
