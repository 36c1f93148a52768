"""Texts of people in code: none can end its string, its comment, or the line of a shell."""

from __future__ import annotations

import ast
import subprocess

import numpy as np
import pytest

from components.analysis.similarity.cosines import cosine_matrix
from components.shown_code.code import Command
from components.shown_code.written import call, literal, places, remark
from tests.support.hostile_texts import HOSTILE


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_is_read_back_as_it_was(text: str) -> None:
    for value in (text, [text, text], (text,), {text: text}, [[text], None, 1.5, True]):
        written = literal(value)
        assert ast.literal_eval(written) == value
        # One expression: nothing of a text is code.
        assert isinstance(ast.parse(written, mode="eval").body, ast.Constant | ast.List | ast.Tuple | ast.Dict)
        assert all(mark.isprintable() or mark == "\n" for mark in written)


@pytest.mark.parametrize("text", [*HOSTILE, "a\x15touch x\rb", "a\x1b[201~\ntouch x\n'b\\"])
def test_a_comment_and_a_command_stay_what_they_are(text: str) -> None:
    written = remark(f"{text}\nraise SystemExit")
    assert ast.parse(written).body == []
    assert written.splitlines() == [written]
    arguments = ("why", "--", text, "b")
    shown = Command(cosine_matrix, arguments).text
    # A terminal takes no character of what is pasted for a key, and bash reads the arguments.
    assert all(mark.isprintable() or mark == "\n" for mark in shown)
    assert shown.count("\n") == Command(cosine_matrix, ("why", "--", "a", "b")).text.count("\n")
    script = "python() { printf '%s\\0' \"$@\"; }\n" + shown
    said = subprocess.run(["bash", "-c", script], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}).stdout
    read = said.decode(errors="surrogatepass").split("\0")[2:-1]
    assert read == [argument.partition("\0")[0] for argument in arguments]  # which no argument can hold


def test_numbers_of_numpy_are_written_as_pythons_and_long_lists_have_one_item_a_line() -> None:
    assert literal([np.int64(3), np.float32(0.5), np.bool_(True)]) == "[3, 0.5, True]"
    assert literal((4,)) == "(4,)"
    texts = ["a sentence of some words"] * 9
    assert literal(texts).count("\n") == 10
    assert literal(texts[:2]).count("\n") == 0


@pytest.mark.parametrize("value", [object(), np.zeros(2), {1, 2}, b"bytes", [object()]])
def test_what_is_not_plain_is_refused(value: object) -> None:
    """Its `repr` might be anything."""
    with pytest.raises(TypeError):
        literal(value)


def test_a_call_leaves_out_what_is_not_given_and_an_index_is_a_slice_where_it_can_be() -> None:
    assert call("f", "x", a=None, b=[1], c="d") == 'f(x, b=[1], c="d")'
    assert places([2, 3, 4]) == "2:5"
    assert places([2, 4]) == "[2, 4]"
    assert places([]) == "[]"
