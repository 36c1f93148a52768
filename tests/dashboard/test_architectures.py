"""Every page with a tiny model of every family: it opens, and says in one sentence what the model does not have."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dashboard.navigation import PATH
from tests import tiny
from tests.dashboard.conftest import Open, figures, settled, texts

TEXTS = ["The cat sat on the bank.", "a bank by the river", "we put money in the bank"]
# The views that look inside a model; the other pages open with what they show first.
VIEWS = {
    "model": ("facts", "zero", "inner"),
    "heatmaps": ("blocks", "inside"),
    "attention": ("matrix", "neuron", "scores", "flow", "mask"),
    "why": ("split", "experiments"),
}
CASES = [(page[0], view) for page in PATH for view in VIEWS.get(page[0], ("",))]
INSIDE = [(page, view) for page, view in CASES if view]
LIKE_ROBERTA = {"data2vec-text", "ernie", "roberta-prelayernorm"}  # for which the other pages do nothing of their own


@pytest.mark.parametrize("family", tiny.OTHERS)
def test_every_page_opens(open_page: Open, tiny_folder: Callable[[str], Path], family: str) -> None:
    drawn, app = 0, open_page("home", m=str(tiny_folder(family)), s=TEXTS)
    cases = INSIDE if family in LIKE_ROBERTA else CASES
    for page, view in cases:
        if view:
            app.session_state[f"{page}_view"] = view
        if page != "home":
            app.switch_page(f"views/{page}/page.py").run()
        assert not app.exception, (page, view, app.exception)
        assert [item.value for item in app.error] == [], (page, view)
        assert app.session_state["model"] == str(tiny_folder(family))
        drawn += len(figures(app))
    assert drawn > len(cases) / 2


@pytest.mark.parametrize("family", tiny.OTHERS)
@pytest.mark.parametrize("split", ["blocks", "words"])
def test_the_splits_add_up(open_page: Open, tiny_folder: Callable[[str], Path], family: str, split: str) -> None:
    app = settled(open_page("why", m=str(tiny_folder(family)), s=TEXTS, view="split", by=split, steps="100"))
    assert not app.exception
    assert [item.value for item in app.error] == []
    said = re.search(r"(?:to within|but for) [−+]?([0-9.]+[0-9])", texts(app))
    assert said is not None, texts(app)
    assert (
        float(said[1]) <= {"blocks": 1e-5, "words": 0.02}[split]  # random weights need more steps than real ones
    )  # words: the default number of steps, random weights


NO_POSITIONS = {
    "modernbert": "ModernBERT has no position vectors: positions enter by rotation in each block.",
    "nomic_bert": "Nomic BERT has no position vectors: positions enter by rotation in each block.",
    "eurobert": "EuroBERT has no position vectors: positions enter by rotation in each block.",
    "deberta-v2": "DeBERTa has no position vectors: in each block, terms for the distance of two tokens are added",
}


@pytest.mark.parametrize("family", ["bert", "albert", *NO_POSITIONS])
def test_a_part_that_is_missing_is_said(open_page: Open, tiny_folder: Callable[[str], Path], family: str) -> None:
    for page, address in (("model", {"view": "zero"}), ("layers", {})):
        said = texts(open_page(page, m=str(tiny_folder(family)), s=TEXTS, **address))
        assert ("has no position vectors" in said) == (family in NO_POSITIONS)
        assert NO_POSITIONS.get(family, "") in said


def _facts(open_page: Open, folder: Path) -> dict[str, Any]:
    app = open_page("model", m=str(folder), s=TEXTS, view="facts")
    table = next(item.value for item in app.table if "Positions" in list(item.value.iloc[:, 0]))
    return dict(zip(table.iloc[:, 0], table.iloc[:, 1], strict=True))


def test_the_model_page_says_what_an_encoder_is(open_page: Open, tiny_folder: Callable[[str], Path]) -> None:
    bert, modern, albert = (_facts(open_page, tiny_folder(name)) for name in ("bert", "modernbert", "albert"))
    assert bert["Positions"].startswith("a vector for each position")
    assert modern["Positions"].startswith("rotation of queries and keys")
    assert "in 1 of 3 blocks only to tokens at most 2 positions away" in modern["Attention"]
    assert modern["Norms"].startswith("LayerNorm first")
    assert albert["Weights of the blocks"] == "2 sets for 3 blocks"
    assert bert["Weights of the blocks"] == "each block has its own"
