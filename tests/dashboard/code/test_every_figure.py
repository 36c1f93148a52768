"""Every figure and table of the dashboard has its code, or stands in a short list with the reason why it has none."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from collections.abc import Iterator

from components.shown_code.code import Command
from dashboard.ui import figures
from tests.support.places import ROOT

# Figures and tables without code, by their keys as they stand in the code. Each says to people why.
WITHOUT_CODE = {
    # Times of this machine at the moment when they were measured.
    "compare_cost",
    "pair_cost",
    "second_look",
    "training_speed",
    # Drawings of an idea, which show no numbers.
    "f'objective_{item.key}",
    # Rows of texts as they are.
    "training_cards",
    # The votes of a class.
    "blind",
    # The edits of a failed query, which depend on searches that are stopped as soon as enough of them help.
    "key",
}
DRAWING = {"figure": "figures", "above": "figures", "matrix": "figures", "part_bars": "figures", "data": "figures"}
CODE_OF_DATA = 2  # the place of the code among the arguments of `figures.data`


@functools.cache
def drawn() -> list[tuple[str, str, ast.expr | None]]:
    """File and line, key, and code of each figure or table that the dashboard draws."""
    return list(found())


def found() -> Iterator[tuple[str, str, ast.expr | None]]:
    for path in sorted((ROOT / "dashboard").rglob("*.py")):
        if path.name == "figures.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if DRAWING.get(node.func.attr) != ast.unparse(node.func.value):
                continue
            named = {word.arg: word.value for word in node.keywords}
            if None in named and "code" not in named:
                continue  # a function that hands on what it is given: its callers are found by `handed_on`
            is_data = node.func.attr == "data"
            key = node.args[0] if is_data else named["key"]
            code = named.get("code")
            if is_data and code is None and len(node.args) > CODE_OF_DATA:
                code = node.args[CODE_OF_DATA]
            yield f"{path.relative_to(ROOT)}:{node.lineno}", ast.unparse(key).strip("'\""), code


def has_none(code: ast.expr | None) -> bool:
    return code is None or ast.unparse(code) in {"None", "NO_CODE"} or ast.unparse(code).startswith("NoCode(")


def test_figures_are_found() -> None:
    assert len(drawn()) > 80


def test_every_figure_has_code_or_a_reason() -> None:
    missing = [(place, key) for place, key, code in drawn() if has_none(code) and key not in WITHOUT_CODE]
    assert missing == []


def test_the_list_has_no_figure_that_has_code() -> None:
    without = {key for _, key, code in drawn() if has_none(code)}
    assert without == WITHOUT_CODE


def test_code_is_asked_for() -> None:
    """A new figure cannot be drawn without a word on its code: the parameter has no default."""
    for function in (figures.figure, figures.matrix, figures.part_bars, figures.data, figures.above):
        assert inspect.signature(function).parameters["code"].default is inspect.Parameter.empty


def test_a_figure_without_code_says_why() -> None:
    """None is no code: a NoCode has a sentence for people."""
    assert [place for place, _, code in drawn() if code is None or ast.unparse(code) == "None"] == []


def test_every_command_names_a_function_and_its_file() -> None:
    named, local = [], []
    for path in sorted((ROOT / "dashboard").rglob("*.py")):
        calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in calls:
            if ast.unparse(node.func) != "Command":
                continue
            try:
                function = eval(ast.unparse(node.args[0]), vars(importlib.import_module(module)))
            except NameError:
                local.append(ast.unparse(node.args[0]))
                continue
            named.append(Command(function).text)
    assert len(named) > 45
    chosen_where_it_is_drawn = re.compile(r"\bif\b|\[kind\]|^type\(|^function$")
    assert [name for name in local if not chosen_where_it_is_drawn.search(name)] == []
    assert all(
        re.search(r"^# \w[\w.]* in (components|dashboard)/[\w/]+\.py computes them\.$", text, re.M) for text in named
    )
