"""`verify MODEL [TEXTS]`: whether a model gives the same vectors here as in sentence-transformers."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.command_line import options as shared
from components.model.catalog import typed_model

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "verify"
HELP = (
    "embed texts by sentence-transformers itself and here, and say whether the vectors are equal (exit status 1 if not)"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", metavar="MODEL", type=typed_model, help="a hub id, a folder, or embedded (all-MiniLM-L6-v2)"
    )
    parser.add_argument(
        "texts",
        metavar="TEXTS",
        nargs="?",
        type=Path,
        help="a file with texts, at most 1,000 (default: three: a short one, a long one, and one with capitals and accents)",
    )
    parser.add_argument("--text-column", help="the column with the texts (default: detected)")
    shared.add_dialect(parser)
    shared.add_limits(parser)


def run(options: argparse.Namespace) -> dict[str, Any]:
    from components.model.backend import Backend
    from components.model.verification import comparison

    texts: Sequence[str] = comparison.TEXTS
    if options.texts is not None:
        texts = shared.texts_of(options.texts, options)
    comparison.check(texts)
    with shared.progress_bar("Downloading the model", unit="B") as report_progress:
        backend = Backend.load(options.model, device_name=None, progress=report_progress)
    result = comparison.verify(backend, texts)
    if not result.is_equal:
        options.status = 1
    if options.json != "-":
        shared.say(result.sentence())
        if not result.is_equal:
            shared.say(result.report())
    for sentence in result.not_applied:
        shared.note(sentence)
    return {
        "model": backend.spec.key,
        "revision": result.revision,
        "library": result.library,
        "equal": result.is_equal,
        "largest_difference": _number(result.largest_difference),
        "lowest_cosine": _number(result.lowest_cosine),
        "not_applied": list(result.not_applied),
        "first_step": result.first_step or None,
        "texts": [
            {
                "text": item.text,
                "role": item.role or None,
                "difference": _number(item.difference),
                "cosine": _number(item.cosine),
            }
            for item in result.differences
        ],
    }


def _number(value: float) -> float | None:
    """A number for JSON, which has neither infinity nor NaN."""
    return value if math.isfinite(value) else None
