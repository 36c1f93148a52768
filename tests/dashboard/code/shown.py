"""What a page shows: its figures by their keys, their numbers, and their code."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest

from components.shown_code.code import Code, sources
from components.shown_code.notebook import TitledCode
from tests.support.elsewhere import Elsewhere
from tests.support.pages import charts, figures

SENTENCES = ["A dog runs in the park.", "The puppy is running.", "Prices fell again."]
EQUAL = 1e-4
MOST_OF_FUNCTIONS, MOST_LINES = 20, 30
PRECISION = 2e-6  # of figures in float32; the model's results move by some 1e-7 with the padding


def codes(app: AppTest) -> dict[str, TitledCode]:
    """The code of the figures that a page shows now, by the figures' keys."""
    assert not app.exception
    return app.session_state["_figures_drawn"]


def numbers(values: Any) -> np.ndarray:
    return np.asarray(values, float)


def figure(app: AppTest, key: str) -> dict[str, Any]:
    """The figure with this key."""
    (place,) = [place for place, chart in enumerate(charts(app)) if chart.proto.id.endswith(f"-{key}")]
    return figures(app)[place]


def z(app: AppTest, key: str) -> np.ndarray:
    """The cells of a heatmap."""
    return numbers(figure(app, key)["data"][0]["z"])


def y(app: AppTest, key: str, first: int = 0) -> list[np.ndarray]:
    """The heights of a figure's traces, in their order, without those before the `first`."""
    return [numbers(trace["y"]) for trace in figure(app, key)["data"][first:]]


def x(app: AppTest, key: str) -> np.ndarray:
    """The lengths of all horizontal bars of a figure."""
    return np.concatenate([numbers(trace["x"]) for trace in figure(app, key)["data"]])


def same(found: Any, shown: Any, precision: float = PRECISION) -> None:
    np.testing.assert_allclose(numbers(found), numbers(shown), rtol=0, atol=precision)


def points(app: AppTest, key: str) -> np.ndarray:
    """The points of a map [point, axis]; the figure has them in the order of their groups."""
    return np.concatenate(
        [np.stack([numbers(t["x"]), numbers(t["y"])], 1) for t in figure(app, key)["data"] if len(t["x"])]
    )


def same_points(found: np.ndarray, shown: np.ndarray, precision: float) -> None:
    """Each point of either set lies on one of the other; the figure has labelled points once more."""
    distances = np.abs(found[:, None] - shown[None]).max(axis=2)
    assert max(distances.min(axis=0).max(), distances.min(axis=1).max()) < precision


def lines_of(program: str) -> int:
    """The lines of a program without imports and empty lines; a list of texts is one."""
    statements = [node for node in ast.parse(program).body if not isinstance(node, ast.Import | ast.ImportFrom)]
    return sum(
        1
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List | ast.Constant)
        else len(ast.unparse(node).splitlines())
        for node in statements
    )


def short(elsewhere: Elsewhere, code: object) -> np.ndarray:
    """The numbers that a figure's code gives, which is short."""
    assert isinstance(code, Code)
    assert sum(len(source.splitlines()) for source in sources(*code.functions)) <= MOST_OF_FUNCTIONS
    assert lines_of(code.text) <= MOST_LINES
    return elsewhere.values(code)


def found_by(elsewhere: Elsewhere, app: AppTest, key: str) -> np.ndarray:
    """The same of a figure on screen."""
    return short(elsewhere, codes(app)[key].code)
