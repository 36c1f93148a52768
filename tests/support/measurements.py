"""How long something takes, how a measurement is told, and the record of the last one of each test: docs/measurements.json.

The record says for each test in a marked folder what it measures and what is promised, which a person writes, and what it
measured last, on which machine and when, which `make bench`, `make load` and `make soak` write. The table of
docs/measurements.md is made from it.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import re
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.support.places import ROOT

RECORD, TABLE = ROOT / "docs/measurements.json", ROOT / "docs/measurements.md"
BEGIN, END = "<!-- made from measurements.json -->", "<!-- end -->"
_told: dict[str, list[str]] = {}  # by test, of this process: what each told


def report(text: str) -> None:
    """Tell a measurement, and note it for the record of the test that runs."""
    sys.stdout.write(f"\n    {text}\n")
    _told.setdefault(_test_of(os.environ.get("PYTEST_CURRENT_TEST", "")), []).append(text)


def _test_of(node: str) -> str:
    """The file and name of a test, without its parameters: rows of the record are for all of them together."""
    return re.sub(r"\[.*|\s.*", "", node)


def rows() -> list[dict[str, str]]:
    """The record: test, what, promised, measured, machine, date."""
    found: list[dict[str, str]] = json.loads(RECORD.read_text("utf-8"))
    return found


def keep(incomplete: Sequence[str], told: Mapping[str, Sequence[str]] | None = None) -> None:
    """Write what tests told into the record and its table.

    Of a test that failed or was left out, for one parameter or for all, the last one stays.
    """
    told = _told if told is None else told
    kept = {test: texts for test, texts in told.items() if test not in set(map(_test_of, incomplete))}
    found = rows()
    for row in found:
        if row["test"] in kept:
            today = datetime.now(UTC).date().isoformat()
            row.update(measured="; ".join(kept[row["test"]]), machine=machine(), date=today)
    if any(row["test"] in kept for row in found):
        RECORD.write_text(json.dumps(found, ensure_ascii=False, indent=2) + "\n", "utf-8")
        head, _, rest = TABLE.read_text("utf-8").partition(BEGIN)
        TABLE.write_text(f"{head}{BEGIN}\n{table(found)}{END}{rest.partition(END)[2]}", "utf-8")


def table(found: Sequence[Mapping[str, str]]) -> str:
    """The rows as a table of Markdown; machines are named below it, by number."""
    machines = list(dict.fromkeys(row["machine"] for row in found if row["machine"]))
    cells = [
        (
            row["what"],
            row["measured"],
            row["promised"],
            f"{machines.index(row['machine']) + 1}, {row['date']}" if row["machine"] else "",
        )
        for row in found
    ]
    lines = [
        "| | measured | promised | machine, date |",
        "|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in cells),
    ]
    named = "; ".join(f"{number}: {name}" for number, name in enumerate(machines, 1))
    return "\n".join(lines) + f"\n\nMachines: {named}.\n"


def machine() -> str:
    """The cores and the processor of this machine, and its accelerator."""
    import torch

    cpu = next(
        (
            line.partition(":")[2].strip()
            for line in (_text_of(Path("/proc/cpuinfo"))).splitlines()
            if line.startswith("model name")
        ),
        platform.processor() or platform.machine(),
    )
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    name = re.sub(r"\((R|TM)\)| Processor| CPU| @.*", "", cpu).strip()  # as it is called; the makers' signs differ
    return f"{os.cpu_count()} cores, {name}, {gpu}"


def _text_of(path: Path) -> str:
    return path.read_text("utf-8") if path.is_file() else ""


def percentile_95(seconds: Sequence[float]) -> float:
    return statistics.quantiles(seconds, n=20)[-1]


def seconds(action: Callable[[], Any]) -> float:
    gc.collect()
    started = time.perf_counter()
    action()
    return time.perf_counter() - started
