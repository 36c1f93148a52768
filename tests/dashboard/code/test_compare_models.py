"""Model, "Compare models": the code gives the numbers that the figures show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.code.shown import SENTENCES, codes, figure, same, x, y, z
from tests.support.pages import Open, at_rest
from tests.support.snippets import Run


@pytest.fixture(scope="module")
def address(tiny_folder: Callable[[str], Path]) -> dict[str, str]:
    first, second = (str(tiny_folder(family).resolve()) for family in ("bert", "distilbert"))
    return {"m": first, "with": second, "len": "12"}


def opened(open_page: Open, address: dict[str, str], **more: str) -> AppTest:
    return at_rest(open_page("model", v="compare-models", s=SENTENCES, **address, **more))


@pytest.mark.parametrize(
    ("more", "precision"),
    [
        ({}, 1e-5),
        ({"cv": "words", "n": "1", "w1": "1", "w2": "3"}, 1e-5),
        ({"cv": "sentences", "n2": "2"}, 1e-5),
        ({"cv": "sentences", "pct": "1"}, 0.11),  # one of the 2,000 unrelated pairs may lie on either side
        ({"cv": "words", "pct": "1"}, 0.11),
        ({"cv": "steps", "n": "2"}, 1e-5),
    ],
)
def test_curves(open_page: Open, run: Run, address: dict[str, str], more: dict[str, str], precision: float) -> None:
    app = opened(open_page, address, **more)
    found = run(codes(app)["compare_depth"].snippet)["values"]
    assert list(found) == [trace["name"] for trace in figure(app, "compare_depth")["data"]]
    same(list(found.values()), y(app, "compare_depth"), precision)


def test_parts_pieces_and_what_is_measured(open_page: Open, run: Run, address: dict[str, str]) -> None:
    app = opened(open_page, address, meas="1")
    code = codes(app)
    parts = run(code["compare_parameters"].snippet)["values"]
    counts = [count for of_model in parts.values() for count in of_model.values()]
    same(np.sort(counts), np.sort(x(app, "compare_parameters")))
    pieces = run(code["compare_pieces"].snippet)["values"]
    assert [list(found)[:1] + list(found)[-1:] for found in pieces.values()] == [["[CLS]", "[SEP]"]] * 2
    same(list(run(code["compare_recall"].snippet)["values"].values()), y(app, "compare_recall"))
    same(run(code["compare_cka"].snippet)["values"], z(app, "compare_cka"), 1e-4)
