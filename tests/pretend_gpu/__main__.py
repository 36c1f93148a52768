"""The whole project on the pretend machine: `python -m tests.pretend_gpu [NAME ...]`, or what is named alone.

A name is one of a check (tests/pretend_gpu/checks.py), of a model (tests/gpu/models.py), or "comparisons", all models. The last
three lines count the paths whose numbers are equal on the CPU and on the device, those that both refuse in the same words, and
those whose difference is explained. Exit status 1: something differs, a check failed, or the paths are fewer than LEAST.
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from pathlib import Path

from tests.pretend_gpu.checks import CHECKS, DEVICE, run  # first: before torch

import torch  # isort: skip

from components import operator_settings
from tests.gpu.comparison import EQUAL, EXPLAINED, REFUSED, compare
from tests.gpu.models import Model, every_model

COMPARISONS = "comparisons"
LEAST = 1_764  # comparisons


def main(names: list[str]) -> int:
    torch.set_num_threads(1)
    models = list(every_model())
    known = {COMPARISONS, *(check.__name__ for check in CHECKS), *(model.name for model in models)}
    if unknown := set(names) - known:
        sys.stdout.write(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}\n")
        return 2
    with tempfile.TemporaryDirectory() as place:
        tempfile.tempdir = os.environ[operator_settings.CACHE.variable] = place
        return _run(names, models)


def _run(names: list[str], models: list[Model]) -> int:
    has_all = not names or COMPARISONS in names
    chosen = [model for model in models if has_all or model.name in names]
    counts, wrong = compare(chosen, DEVICE, Path(tempfile.mkdtemp()))
    for line in wrong:
        sys.stdout.write(f"different: {line}\n")
    for check in CHECKS:
        if names and check.__name__ not in names:
            continue
        said = check.__name__.replace("_", " ")
        try:
            run(check)
        except Exception as problem:  # noqa: BLE001 - all are told, and the others run
            wrong.append(said)
            sys.stdout.write("".join(traceback.format_exception(problem)))
        sys.stdout.write(f"{'failed' if said in wrong else 'passed'}: {said}\n")
        sys.stdout.flush()
    for kind in (EQUAL, REFUSED, EXPLAINED):
        sys.stdout.write(f"{kind}: {counts[kind]}\n")
    return int(bool(wrong) or (has_all and counts.total() < LEAST))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
