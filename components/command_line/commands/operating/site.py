"""`site OUT`: the best views of a model as a website of static files, for sentences of one's own.

The dashboard draws them, which components do not know: it runs as a process of its own.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from components.command_line import dashboard_process
from components.command_line import options as shared
from components.model.catalog import EMBEDDED_KEY, parse_model, typed_model
from components.sizes import in_words

NAME = "site"
HELP = "write the whole path and the best views as a website that needs no Python, no server and no network"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", metavar="OUT", type=Path, help="the folder to write to: empty, or an earlier site")
    parser.add_argument(
        "--model", type=typed_model, default=EMBEDDED_KEY, help="a hub id, a folder, or embedded (default)"
    )
    parser.add_argument(
        "--sentences",
        metavar="FILE",
        type=Path,
        help="one to six sentences, one a line (default: those of the dashboard)",
    )
    shared.add_limits(parser)


def run(options: argparse.Namespace) -> dict[str, Any]:
    spec = parse_model(options.model)
    sentences = None
    if options.sentences is not None:
        from components.retrieval.corpora.corpus import read_corpus

        corpus = read_corpus(options.sentences, options.sentences.name, limits=shared.limits_of(options))
        sentences = list(corpus.texts)
    # The key of a folder is its whole path: the process that is asked runs in another folder.
    answer = dashboard_process.answer_of(
        {"out": str(options.out.absolute()), "model": spec.key, "sentences": sentences}
    )
    if options.json != "-":
        shared.say(
            f"{len(answer['pages'])} pages, {in_words(answer['bytes'])}. Open {options.out / answer['pages'][0]}"
        )
    for name, reason in answer["left_out"].items():
        shared.note(f"Not in the site: {name} ({reason}).")
    for sentence in answer["notes"]:
        shared.note(sentence)
    return answer
