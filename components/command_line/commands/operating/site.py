"""`site OUT`: the best views of a model as a website of static files, for sentences of one's own.

The dashboard draws them, which components do not know: it runs as a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from components import operator_settings
from components.command_line import options as shared
from components.errors import InputError
from components.folders import ASSETS
from components.model.catalog import EMBEDDED_KEY, parse_model, typed_model
from components.sizes import in_words

NAME = "site"
HELP = "write the whole path and the best views as a website that needs no Python, no server and no network"
WRITER = "dashboard.website"


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
    answer = _asked({"out": str(options.out.absolute()), "model": spec.key, "sentences": sentences})
    if "problem" in answer:
        raise InputError(*answer["problem"])
    if options.json != "-":
        shared.say(
            f"{len(answer['pages'])} pages, {in_words(answer['bytes'])}. Open {options.out / answer['pages'][0]}"
        )
    for name, reason in answer["left_out"].items():
        shared.note(f"Not in the site: {name} ({reason}).")
    for sentence in answer["notes"]:
        shared.note(sentence)
    return answer


def _asked(question: dict[str, Any]) -> dict[str, Any]:
    """What the process answers that writes the site. Raises RuntimeError where it ends without an answer."""
    process = subprocess.Popen(
        [sys.executable, "-m", WRITER],
        cwd=ASSETS.parent,
        # Nothing is computed that no view of the site shows.
        env={**operator_settings.environment(), operator_settings.WARM_UP.variable: "0"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    try:
        out, _ = process.communicate(json.dumps(question))
    finally:
        process.kill()
        process.wait()
    try:
        answer: dict[str, Any] = json.loads(out)
    except ValueError as problem:
        raise RuntimeError(f"the process that draws the site ended with status {process.returncode}") from problem
    return answer
