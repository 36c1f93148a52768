"""What a snippet is made of: texts that cannot break out of their string, and the import lines."""

from __future__ import annotations

import ast
import importlib

import numpy as np
import pytest

from components.snippets import code
from components.snippets.code import HOMES, MODULES, Snippet, import_lines, literal, remark
from tests.support.hostile_texts import HOSTILE


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_is_read_back_as_it_was(text: str) -> None:
    for value in (text, [text, text], (text,), {text: text}, [[text], None, 1.5, True]):
        written = literal(value)
        assert ast.literal_eval(written) == value
        # One expression: nothing of a text is code.
        assert isinstance(ast.parse(written, mode="eval").body, ast.Constant | ast.List | ast.Tuple | ast.Dict)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_is_printable_in_the_code(text: str) -> None:
    assert all(mark.isprintable() or mark == "\n" for mark in literal([text] * 40))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_comment_stays_a_comment(text: str) -> None:
    written = remark(f"{text}\nraise SystemExit")
    assert ast.parse(written).body == []
    assert written.splitlines() == [written]


def test_long_lists_have_one_item_a_line() -> None:
    texts = ["a sentence of some words"] * 9
    assert literal(texts).count("\n") == 10
    assert literal(texts[:2]).count("\n") == 0
    assert ast.literal_eval(literal({"texts": texts, "rows": list(range(200))}))["texts"] == texts


def test_numbers_of_numpy_are_written_as_pythons() -> None:
    assert literal([np.int64(3), np.float32(0.5), np.bool_(True)]) == "[3, 0.5, True]"
    assert literal((4,)) == "(4,)"


@pytest.mark.parametrize("value", [object(), np.zeros(2), {1, 2}, b"bytes", [object()]])
def test_what_is_not_plain_is_refused(value: object) -> None:
    """Its `repr` might be anything."""
    with pytest.raises(TypeError):
        literal(value)


def test_every_name_is_where_its_import_line_says() -> None:
    missing = []
    for name, home in HOMES.items():
        module = importlib.import_module(home)
        if not hasattr(module, name):
            try:
                importlib.import_module(f"{home}.{name}")
            except ModuleNotFoundError:
                missing.append(f"{home}.{name}")
    assert missing == []


def test_only_what_is_used_is_imported_in_the_usual_order() -> None:
    lines = import_lines("print(np.zeros(2), Path('x'), pool(trace, 'mean'), json.dumps(Backend.load('m')))")
    assert lines == [
        "import json",
        "from pathlib import Path",
        "",
        "import numpy as np",
        "",
        "from components.analysis.pooling import pool",
        "from components.model.backend import Backend",
    ]
    assert import_lines("print(1)") == []
    assert set(MODULES) & set(HOMES) == set()


def test_a_name_inside_a_text_is_not_imported() -> None:
    snippet = Snippet((code.texts(["Backend and np and pool"]),), ("print(texts)",))
    assert "import" not in snippet.code.removeprefix(code.START)


def test_a_call_leaves_out_what_is_not_given() -> None:
    assert code.call("f", "x", a=None, b=[1], c="d") == 'f(x, b=[1], c="d")'
    assert code.call("f") == "f()"
