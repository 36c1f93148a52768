"""A page as a notebook: valid, the same for the same page, and run from its first cell to its last."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest

from components import VERSION
from components.model.backend import Backend
from components.snippets import heatmaps
from components.snippets.code import Input, Snippet
from components.snippets.notebook import TitledSnippet, notebook
from tests.support.hostile_texts import HOSTILE

TITLE = "How does a <b>word</b>'s *vector* change?"


@pytest.fixture(scope="module")
def page(embedded: Backend) -> Any:
    """Two figures of the same texts and one of others, read back."""
    read, others = Input(embedded, ["A dog runs.", *HOSTILE[:5]]), Input(embedded, ["Prices fell."], 8)
    figures = [
        TitledSnippet("Block 1 | <img src=x>", heatmaps.blocks_change(read, [1], True)),
        TitledSnippet("All *blocks*", heatmaps.kept_by_blocks(read, False)),
        TitledSnippet("Other texts", heatmaps.turns(others, [2])),
    ]
    content = notebook(TITLE, {"maximum | length": "8", "word": "a\nb"}, figures)
    assert content == notebook(TITLE, {"maximum | length": "8", "word": "a\nb"}, figures)
    found = nbformat.reads(content.decode("utf-8"), as_version=4)
    nbformat.validate(found)
    return found


def sources(page: Any, kind: str) -> list[str]:
    return [cell["source"] for cell in page["cells"] if cell["cell_type"] == kind]


def test_the_first_cell_says_what_it_is(page: Any, embedded: Backend) -> None:
    first = sources(page, "markdown")[0]
    assert VERSION in first
    assert "torch" in first
    assert first.count(embedded.spec.title.replace("-", "\\-")) == 1
    assert "| maximum \\| length | 8 |" in first
    assert "a b" in first


def test_what_a_person_typed_is_no_markup(page: Any) -> None:
    for source in sources(page, "markdown"):
        assert "<" not in source
    assert "## All \\*blocks\\*" in sources(page, "markdown")


def test_the_model_and_the_texts_stand_once_and_other_texts_in_their_own_cell(page: Any) -> None:
    shared, *of_figures = sources(page, "code")
    assert "Backend.load" in shared
    assert "texts = " in shared
    assert ["Backend.load" in source for source in of_figures] == [False, False, True]
    assert ["texts = " in source for source in of_figures] == [False, False, True]


def test_the_cells_run_in_order(page: Any, embedded: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backend, "load", lambda key: embedded)
    names: dict[str, Any] = {}
    found = []
    for source in sources(page, "code"):
        exec(source, names)
        found.append(names.get("values"))
    assert np.shape(found[1]) == (1, 6, 6)  # one block
    assert np.shape(found[2]) == (6, 4)
    assert np.shape(names["attention"]) == (1, 5)


def test_elsewhere_the_first_cell_says_where_to_run_it(page: Any, tmp_path: Path) -> None:
    for source in (sources(page, "code")[0], Snippet((), ("print(np.zeros(2))",)).code):
        result = subprocess.run(
            [sys.executable, "-S", "-"], input=source, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert result.returncode == 1
        last = result.stderr.strip().splitlines()[-1]
        assert last == "ImportError: Run this in the folder of BERT Internals: there is no package “components” here."
    assert "save this notebook in the folder of BERT Internals" in sources(page, "markdown")[0]
    assert Snippet((), ("print(1)",)).code.startswith("# Save this in the folder of BERT Internals")


def test_a_figure_without_a_model_stands_alone() -> None:
    content = notebook("t", {}, [TitledSnippet("one", Snippet((), ("values = 1", "print(values)")))])
    cells = nbformat.reads(content.decode(), as_version=4)["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "markdown", "code"]
