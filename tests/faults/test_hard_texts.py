"""Texts that are hard to read: long rows of one character, or of two. No time may grow with the square of their length.

A regular expression that begins again at each of many spaces holds Python's lock while it does: the whole server waits.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import components
import dashboard
from components.analysis.why.contrasts import changed_spans
from components.errors import UserError
from components.markup import to_html
from components.retrieval.failures.edits import new_words, removals
from components.retrieval.search.questions import content_words
from components.words.lines import on_one_line, sentences_in
from components.words.typed import is_open, typed_words
from dashboard.corpora.own_queries import as_table
from tests.support.places import ROOT

LENGTHS = (1_000, 4_000, 16_000)  # characters: what grows with the square takes sixteen times as long for each next one
QUICK = 0.001  # seconds of a processor, below which a measurement says nothing
LONG = 0.1  # seconds of a processor, from which one measurement says enough
MOST_GROWTH = 8.0
FUNCTIONS = {"compile", "search", "match", "fullmatch", "split", "sub", "subn", "findall", "finditer"}
NOT_IMPORTED = {"components.__main__", "dashboard.app", "dashboard.main", "dashboard.views.__main__"}


def modules() -> Iterator[ModuleType]:
    for package in (components, dashboard):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name not in NOT_IMPORTED:
                yield importlib.import_module(found.name)


def compiled(name: str, value: Any) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """The regular expressions in what a module holds under a name, with that name."""
    if isinstance(value, re.Pattern):
        yield name, value
    elif isinstance(value, (dict, tuple, list, set, frozenset)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from compiled(name, inner)


def uses() -> Iterator[tuple[re.Pattern[Any], str]]:
    """Every regular expression of the program, with each way in which it is used; "search" where that is not plain."""
    for module in modules():
        if module.__file__ is None or not module.__file__.endswith(".py"):
            continue
        source = Path(module.__file__).read_text(encoding="utf-8")
        calls = [
            node
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FUNCTIONS
        ]
        for name, pattern in itertools.chain.from_iterable(itertools.starmap(compiled, vars(module).items())):
            methods = {node.func.attr for node in calls if ast.unparse(node.func.value) == name}
            yield from ((pattern, method) for method in methods or {"search"})
        for node in calls:
            if ast.unparse(node.func.value) == "re" and node.func.attr != "compile" and node.args:
                flags = set(re.findall(r"re\.([A-Z]+)", ast.unparse(node)))
                if isinstance(node.args[0], ast.Constant):
                    yield re.compile(node.args[0].value, sum(getattr(re, flag) for flag in flags)), node.func.attr


def hard_for(pattern: str) -> Iterator[str]:
    """What is repeated to make a text: characters that the pattern names, spaces and letters, and pairs of them."""
    named = re.sub(r"\\[a-zA-Z0-9]", "", pattern)
    characters = list(dict.fromkeys([*" a.-\n0", *(mark for mark in named if not mark.isalnum())]))[:16]
    yield from characters
    yield from (first + second for first, second in itertools.permutations(characters[:8], 2))


def seconds(work: Callable[[], Any]) -> float:
    started = time.process_time()
    with suppress(UserError):  # a text that is refused is read too
        work()
    return time.process_time() - started


def grows_with_the_square(work: Callable[[str], Any], unit: str, end: str = "\0") -> bool:
    """Whether a text four times as long takes far more than four times as long, twice one after the other."""

    def taken(length: int) -> float:
        text = "a" + unit * (length // len(unit)) + end
        first = seconds(lambda: work(text))
        return first if first >= LONG else min(first, seconds(lambda: work(text)))

    before = taken(LENGTHS[0])
    for length in LENGTHS[1:]:
        after = taken(length)
        if after < QUICK or after < MOST_GROWTH * before:
            return False
        before = after
    return True


def used(pattern: re.Pattern[Any], method: str) -> Callable[[str], Any]:
    """What looks for a pattern in a text as the program does; whatever goes through the text, to its end."""
    is_bytes = isinstance(pattern.pattern, bytes)
    look = getattr(pattern, method) if method in {"match", "fullmatch"} else lambda text: list(pattern.finditer(text))
    return lambda text: look(text.encode("latin-1", "replace") if is_bytes else text)


def slow_units(pattern: re.Pattern[Any], method: str) -> list[str]:
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    return list(islice((unit for unit in hard_for(text) if grows_with_the_square(used(pattern, method), unit)), 1))


@pytest.mark.rare
def test_no_regular_expression_of_the_program_takes_a_time_that_grows_with_the_square() -> None:
    found = set(uses())
    assert len(found) > 60
    assert [(pattern.pattern, method, slow) for pattern, method in found if (slow := slow_units(pattern, method))] == []


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"\s*\|\s*", r"<[^>]*>", r"\s*\t\s*"),
        *(pytest.param(slow, marks=pytest.mark.rare) for slow in (r"[.!?]+\s+", r"\w*$", r"(?:=|-+)?>")),
    ],
)
def test_one_that_does_is_found(pattern: str) -> None:
    assert slow_units(re.compile(pattern), "search")


@pytest.mark.parametrize(
    "unit",
    [
        *(*' .-"|\n', "(a", "a b > c\n"),
        *(pytest.param(unit, marks=pytest.mark.rare) for unit in (*")'“>(*_`:[", ". ", "a.", "' ", "e. ", ")a", "。")),
    ],
)
@pytest.mark.parametrize(
    "read",
    [
        sentences_in,
        as_table,
        typed_words,
        to_html,
        removals,
        lambda text: is_open(text, "'"),
        lambda text: new_words(text, text),
        lambda text: on_one_line(text.split(" ")),
        lambda text: changed_spans(text, text[::-1]),
        content_words,
    ],
)
def test_no_reader_of_a_text_takes_a_time_that_grows_with_the_square(read: Callable[[str], Any], unit: str) -> None:
    assert not grows_with_the_square(read, unit)
    assert seconds(lambda: read("a" + unit * (60_000 // len(unit)))) < 3


def test_all_modules_are_looked_through() -> None:
    names = {module.__name__ for module in modules()} | NOT_IMPORTED
    files = {path.relative_to(ROOT) for part in ("components", "dashboard") for path in (ROOT / part).rglob("*.py")}
    assert names == {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in files} - {
        "components",
        "dashboard",
    }
