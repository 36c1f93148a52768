"""Hooks of tests/conftest.py: which tests a run has, in which order and process, and which files took longest."""

from __future__ import annotations

import random
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from _pytest.terminal import TerminalReporter
from xdist.scheduler import LoadFileScheduling

from tests.support import measurements
from tests.support.places import ROOT

BROWSER, PAGES = "tests/browser/", "tests/dashboard/"
PARTS = 8  # of the rare tests: `make test-rare` runs one
MOST_FILES = 20  # that the end of a run lists
# The files that take longest, longest first, as a run of `make test` lists them at its end: no process is left alone with one.
SLOWEST = (
    "tests/browser/test_first_screen.py",
    "tests/browser/test_frame.py",
    "tests/browser/test_search_page.py",
    "tests/browser/test_map_page.py",
    "tests/browser/test_lecture.py",
    "tests/dashboard/test_restored.py",
    "tests/dashboard/test_architectures.py",
    "tests/faults/test_server.py",
    "tests/dashboard/lessons/test_lesson_files.py",
    "tests/dashboard/code/test_texts.py",
    "tests/dashboard/code/test_commands.py",
    "tests/dashboard/code/test_numbers.py",
    "tests/dashboard/views/test_search.py",
    "tests/dashboard/views/evaluate/test_page.py",
    "tests/components/analysis/maps/test_projection.py",
    "tests/dashboard/views/test_training.py",
    "tests/components/distributed/test_ray.py",
    "tests/components/command_line/test_commands.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", default="", help="of the rare tests one eighth: 1 to 8, or commit: by the commit's hash")
    parser.addoption(
        "--file-order", type=int, help="another order of the files: a number, the same order for the same one"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=_place(items, config.getoption("--file-order")))
    if config.getoption("--part"):
        left_out = _other_parts(items, part_of(config.getoption("--part")))
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def _place(items: Sequence[pytest.Item], seed: int | None) -> Callable[[pytest.Item], tuple[int, int, str]]:
    """The key by which tests are sorted: slow files first, then those with most tests; with a seed, files by chance."""
    sizes = Counter(item.path for item in items)
    shuffled = sorted(sizes)
    random.Random(seed).shuffle(shuffled)
    by_chance = {path: number for number, path in enumerate(shuffled)}
    slow = {ROOT / name: number for number, name in enumerate(SLOWEST)}

    def place(item: pytest.Item) -> tuple[int, int, str]:
        if seed is not None:
            return by_chance[item.path], 0, ""
        return slow.get(item.path, len(slow)), -sizes[item.path], str(item.path)

    return place


def part_of(given: str) -> int:
    """The number of the part, 1 to 8, that `--part` names. Raises UsageError for anything else."""
    if given == "commit":
        answer = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
        return int(answer.stdout.strip() or "0", 16) % PARTS + 1
    if given.isdecimal() and 1 <= int(given) <= PARTS:
        return int(given)
    raise pytest.UsageError(f"--part is {given!r}. It must be 1 to {PARTS}, or commit.")


def _other_parts(items: Sequence[pytest.Item], part: int) -> list[pytest.Item]:
    """The rare tests of the other parts. Those of one file stand together, so that a part starts few clusters."""
    rare = [item for item in items if item.get_closest_marker("rare")]
    return [item for number, item in enumerate(rare) if number * PARTS // len(rare) + 1 != part]


class OneBrowser(LoadFileScheduling):
    """Whole files to a process, those of the browser to one: a second server and Chromium take a minute of a core to begin,
    and each server would compute the same figures.

    Of two processes the other one draws the pages without a browser: the first would load the models, embed the included texts
    and start the process of the figures' code a second time. With more processes they would all wait for that one.
    """

    def _split_scope(self, nodeid: str) -> str:
        together = (BROWSER, PAGES) if self.numnodes <= 2 else (BROWSER,)
        return next((folder for folder in together if nodeid.startswith(folder)), super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist there is none
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneBrowser | None:
    return OneBrowser(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """The slowest files, with their seconds and their share of all: setting up and clearing away included.

    What tests of speed measured in this process goes into its record.
    """
    stats = terminalreporter.stats
    measurements.keep([each.nodeid for kind in ("failed", "error", "deselected") for each in stats.get(kind, [])])
    seconds: dict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.partition("::")[0]] += report.duration
    if len(seconds) < 2:
        return
    total = sum(seconds.values()) or 1.0
    terminalreporter.section(f"slowest files of {total:.0f} s of tests")
    for name, taken in sorted(seconds.items(), key=lambda item: -item[1])[:MOST_FILES]:
        terminalreporter.write_line(f"{taken:7.1f} s  {taken / total:5.1%}  {name}")
