"""Which tests a run has: README, Makefile and `.ci/run` name one selection, and the parts of the rare tests are all of them."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import selection
from tests.support.places import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def selected_by(target: str) -> str:
    """The expression of `-m` in what make would run."""
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", target], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return re.findall(r'pytest .*-m "([^"]+)"', done.stdout)[0]


def test_readme_and_the_script_for_new_machines_run_what_make_test_runs() -> None:
    usual = selected_by("test")
    assert re.findall(r'python -m pytest -m "([^"]+)"', README) == [usual]
    assert (ROOT / ".ci" / "run").read_text().split("\n\n")[-1].split() == ["make", "lint", "make", "test"]
    assert selected_by("test-all") == usual.removesuffix(" and not rare")
    assert selected_by("test-rare") == f"{selected_by('test-all')} and rare"
    assert selected_by("test-fast") == f"{usual} and not browser"


def test_every_marker_is_chosen_or_left_out_by_name() -> None:
    markers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["markers"]
    left_out = set(re.findall(r"not (\w+)", selected_by("test")))
    assert {marker.partition(":")[0] for marker in markers} == left_out | {"browser", "core"}
    for name in left_out - {"rare"}:
        assert f"-m {name}" in MAKEFILE  # a command of its own


def items(count: int, of_rare: int) -> list[Any]:
    def item(number: int) -> SimpleNamespace:
        marker = "rare" if number < of_rare else None
        return SimpleNamespace(number=number, get_closest_marker=lambda name: marker if name == "rare" else None)

    return [item(number) for number in range(count)]


@pytest.mark.parametrize("of_rare", [0, 3, 8, 29])
def test_each_rare_test_is_in_one_of_eight_parts(of_rare: int) -> None:
    every = items(40, of_rare)
    left_out = [{item.number for item in selection._other_parts(every, part)} for part in range(1, 9)]
    for number in range(of_rare):
        assert sum(number not in numbers for numbers in left_out) == 1
    assert all(numbers <= set(range(of_rare)) for numbers in left_out)
    sizes = [of_rare - len(numbers) for numbers in left_out]
    assert max(sizes) - min(sizes) <= 1


def test_a_part_is_a_number_or_the_commits() -> None:
    assert [selection.part_of(str(number)) for number in range(1, 9)] == list(range(1, 9))
    assert 1 <= selection.part_of("commit") <= 8
    for wrong in ("0", "9", "x", "-1"):
        with pytest.raises(pytest.UsageError, match="must be 1 to 8"):
            selection.part_of(wrong)


def test_files_known_as_slow_come_first_and_exist() -> None:
    assert all((ROOT / name).is_file() for name in selection.SLOWEST)
    assert len(set(selection.SLOWEST)) == len(selection.SLOWEST)
    paths = [Path("b"), Path("a"), Path("a"), ROOT / selection.SLOWEST[1], ROOT / selection.SLOWEST[0]]
    found = [SimpleNamespace(path=path) for path in paths]
    ordered = sorted(found, key=selection._place(found, None))
    assert [item.path for item in ordered] == [paths[4], paths[3], Path("a"), Path("a"), Path("b")]
    by_chance = [[item.path for item in sorted(found, key=selection._place(found, seed))] for seed in range(20)]
    assert len({tuple(order) for order in by_chance}) > 1
    assert all(
        abs(order.index(Path("a")) - (len(order) - 1 - order[::-1].index(Path("a")))) == 1 for order in by_chance
    )


@pytest.mark.parametrize("processes", [1, 2, 3, 4])
def test_files_of_the_browser_go_to_one_process_and_of_two_those_of_pages_to_the_other(processes: int) -> None:
    config: Any = SimpleNamespace(getvalue={"dist": "loadfile", "tx": ["popen"] * processes}.get)
    scheduler = selection.pytest_xdist_make_scheduler(config, None)
    assert scheduler is not None
    names = ("browser/test_a", "browser/test_b", "dashboard/test_a", "dashboard/views/test_b", "a/test_a", "a/test_b")
    scopes = [scheduler._split_scope(f"tests/{name}.py::test") for name in names]
    assert scopes[0] == scopes[1]
    assert (scopes[2] == scopes[3]) == (processes <= 2)
    assert len({*scopes[1:3], *scopes[3:]}) == (4 if processes <= 2 else 5)
    assert scopes[4:] == ["tests/a/test_a.py", "tests/a/test_b.py"]
    assert all((ROOT / folder).is_dir() for folder in (selection.BROWSER, selection.PAGES))
    other: Any = SimpleNamespace(getvalue={"dist": "load"}.get)
    assert selection.pytest_xdist_make_scheduler(other, None) is None


def test_the_end_of_a_run_lists_the_slowest_files() -> None:
    def report(name: str, seconds: float, when: Any = "call") -> pytest.TestReport:
        return pytest.TestReport(f"{name}::test", ("", 0, ""), {}, "passed", None, when, duration=seconds)

    lines: list[str] = []
    stats = {"passed": [report(f"f{number:02}", number) for number in range(30)], "": [report("f01", 41, "setup")]}
    reporter: Any = SimpleNamespace(stats=stats, section=lines.append, write_line=lines.append)
    selection.pytest_terminal_summary(reporter)
    assert lines[0] == "slowest files of 476 s of tests"
    assert [line.split() for line in lines[1:3]] == [["42.0", "s", "8.8%", "f01"], ["29.0", "s", "6.1%", "f29"]]
    assert len(lines) == 21
