"""`reproduce`: published figures measured again and compared with the published values."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.command_line import options as shared
from components.errors import InputError
from components.model.catalog import typed_model
from components.model.trace import POOLING_NAMES

if TYPE_CHECKING:
    from components.retrieval.evaluation.reproduction import Outcome, ReproductionRow

NAME = "reproduce"
HELP = "measure published figures again and compare them with the published values"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pairs",
        metavar="FILE",
        type=Path,
        help="use these pairs (columns sentence and compressed) instead of the hub's",
    )
    parser.add_argument(
        "--sts",
        metavar="FILE",
        type=Path,
        help="use these scored pairs (columns sentence1, sentence2, score) instead of the hub's STS-B",
    )
    parser.add_argument(
        "--sts-split", choices=("validation", "test"), help="the split of STS-B in that file (default: validation)"
    )
    parser.add_argument(
        "--trained",
        metavar="MODEL",
        type=typed_model,
        help="a model fine-tuned with the command train, a folder or run:NAME, for the figures after fine-tuning on SNLI",
    )
    shared.add_limits(parser)
    parser.add_argument("--seed", type=int, default=0, help="seed for the sample of 36,000 pairs (default: 0)")


def run(options: argparse.Namespace) -> dict[str, Any]:
    if options.sts_split is not None and options.sts is None:
        raise InputError(
            f"The split {options.sts_split} was given without a file.",
            "A split can be chosen only for a file.",
            "Add --sts FILE (make: STSB=FILE), or leave the split out.",
        )
    from components.retrieval.evaluation import reproduction

    sources = reproduction.Sources(
        options.pairs,
        options.sts,
        options.sts_split or "validation",
        options.seed,
        options.trained,
        shared.limits_of(options),
    )
    outcome = reproduction.reproduce(sources, shared.progress_bar)
    for data in outcome.data:
        shared.write_left_out(data.bad_rows, data.of)
    if not outcome.rows:
        reasons = dict.fromkeys(figure.why for figure in outcome.left_out if not figure.needs_training)
        raise InputError(
            f"Nothing could be measured: {' '.join(reasons)}",
            "At least one data set and a model are needed.",
            "Use local files: --pairs FILE --sts FILE (make: PAIRS=FILE STSB=FILE), or connect to the hub.",
        )
    if options.json != "-":
        _tables(outcome)
    return {
        "unit": "points of a hundred",
        "tolerance": reproduction.TOLERANCE,
        "seed": options.seed,
        "precision": "float32",
        "data": [
            {
                "task": data.task,
                "split": data.split,
                "name": data.name,
                "n": data.n,
                "of": data.of,
                "bad_rows": data.bad_rows,
            }
            for data in outcome.data
        ],
        "rows": [_row(row) for row in outcome.rows],
        "left_out": [
            {"figure": left_out.figure, "why": f"{left_out.why} {left_out.fix}".strip()}
            for left_out in outcome.left_out
        ],
    }


def _row(row: ReproductionRow) -> dict[str, Any]:
    names = ("model", "revision", "task", "split", "data", "layer", "pooling", "measure")
    numbers = ("published", "ours", "difference", "n", "within", "note")
    return {
        "source": None if row.theirs is None else row.theirs.source,
        **{name: getattr(row, name) for name in (*names, *numbers)},
        "remarks": [] if row.theirs is None else list(row.theirs.remarks),
    }


def _tables(outcome: Outcome) -> None:
    from components.retrieval.evaluation.published_figures import TOLERANCE

    for data in outcome.data:
        sampled = "" if data.n == data.of else f", a seeded sample of {data.of:,}"
        shared.say(f"{_data_title(data.task, data.split)}: {data.n:,} pairs of {data.name}{sampled}")
    compared = [row for row in outcome.rows if row.theirs is not None]
    if compared:
        shared.say()
        shared.say("Published values and ours (last layer, float32, points of a hundred)")
        shared.say(f"{_HEAD}{'theirs':>8}{'ours':>8}{'ours - theirs':>15}  within {TOLERANCE}")
        for row in compared:
            verdict = {True: "yes", False: "no", None: row.note or "-"}[row.within]
            numbers = f"{_number(row.published):>8}{_number(row.ours):>8}{_number(row.difference, '+'):>15}"
            shared.say(f"{_start(row)}{numbers}  {verdict}")
        for row in {row.theirs: row for row in compared}.values():
            if row.theirs is not None:
                remarks = "; ".join((row.theirs.source, *row.theirs.remarks))
                shared.say(f"  {row.theirs.title}: {remarks}")
    unpublished = [row for row in outcome.rows if row.theirs is None]
    if unpublished:
        shared.say()
        shared.say("Ours, without a published value")
        shared.say(f"{_HEAD}{'ours':>8}")
        for row in unpublished:
            shared.say(f"{_start(row)}{_number(row.ours):>8}")
    shared.say()
    shared.say("Left out")
    for why, fix in dict.fromkeys((left_out.why, left_out.fix) for left_out in outcome.left_out):
        figures = [left_out.figure for left_out in outcome.left_out if (left_out.why, left_out.fix) == (why, fix)]
        for figure in figures:
            shared.say(f"  {figure}")
        shared.say(f"    {why} {fix}".rstrip())


_HEAD = f"{'model':<25}{'data':<18}{'pooling':<9}{'measure':<10}{'n':>7}"


def _start(row: ReproductionRow) -> str:
    name, data = row.model.rpartition("/")[2], _data_title(row.task, row.split)
    return f"{name:<25}{data:<18}{POOLING_NAMES[row.pooling]:<9}{row.measure.capitalize():<10}{row.n:>7,}"


def _data_title(task: str, split: str) -> str:
    return "compression pairs" if task == "retrieval" else f"STS-B {split}"


def _number(value: float | None, sign: str = "") -> str:
    return "-" if value is None else f"{value:{sign}.2f}"
