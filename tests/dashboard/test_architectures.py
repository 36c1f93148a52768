"""Every page with a tiny model of every family: it opens, and says in one sentence what the model does not have."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.support import tiny
from tests.support.pages import Open, at_rest, figures, go_to, new_session, settled, texts
from tests.support.views import views_by_folder

TEXTS = ["The cat sat on the bank.", "a bank by the river", "we put money in the bank"]
# The subjects whose every view looks inside a model; of the others the first view is opened, and they need a model less.
INSIDE = ("model", "layers", "heatmaps", "attention", "why")
# Views of these that show a corpus, other models or a list.
ELSEWHERE = {"compare-models", "available-models", "important-words", "failed-search", "known-failures"}
CASES = [
    view
    for folder, views in views_by_folder().items()
    for view in (views if folder in INSIDE else views[:1])
    if view not in ELSEWHERE
]
# Families that are read as another one here: RoBERTa's kin, and norms and rotation as in ModernBERT. Each opens what a page
# that looks inside shows first, and what its scores are made of.
LIKE_ANOTHER = {"data2vec-text", "ernie", "roberta-prelayernorm", "xlm-roberta-xl", "nomic_bert", "eurobert"}
# What their scores are made of beside queries and keys has figures of its own: rotation, and terms for distances.
SCORES = {"modernbert": 3, "nomic_bert": 3, "eurobert": 3, "deberta-v2": 5}


def drawn_by(app: AppTest, view: str) -> int:
    """How many figures a view of this session draws."""
    if view != "home":
        at_rest(go_to(app, view))
    assert not app.exception, (view, app.exception)
    assert [item.value for item in app.error] == [], view
    return len(figures(app))


@pytest.fixture(scope="module")
def of_bert(tiny_folder: Callable[[str], Path]) -> dict[str, int]:
    """How many figures each view draws for BERT."""
    app = new_session("home", m=str(tiny_folder("bert")), s=TEXTS)
    return {case: drawn_by(app, case) for case in CASES}


# Of the families that are read in a way of their own all views are opened by `make test-all`, and of one of them by each run.
ALL_VIEWS = [
    pytest.param(family, True, marks=() if family == "modernbert" else pytest.mark.rare)
    for family in tiny.OTHERS
    if family not in LIKE_ANOTHER
]


@pytest.mark.parametrize(
    ("family", "every"), [*ALL_VIEWS, *((family, False) for family in tiny.OTHERS if family != "modernbert")]
)
def test_every_page_draws_what_it_draws_for_bert(
    open_page: Open, tiny_folder: Callable[[str], Path], of_bert: dict[str, int], family: str, every: bool
) -> None:
    app = open_page("home", m=str(tiny_folder(family)), s=TEXTS)
    first = {views[0] for folder, views in views_by_folder().items() if folder in INSIDE}
    cases = [case for case in CASES if every or case in {*first, "attention-scores"}]
    drawn = {case: drawn_by(app, case) for case in cases}
    assert app.session_state["model"] == str(tiny_folder(family))
    expected = of_bert | ({"attention-scores": SCORES[family]} if family in SCORES else {})
    assert drawn == {case: expected[case] for case in cases}
    assert sum(count > 0 for count in drawn.values()) > len(cases) / 2


# By words one family: random weights need many steps, and tests of the analysis hold the sum for the others.
SPLITS = [("words", "albert"), *(("blocks", family) for family in tiny.OTHERS if family != "albert")]


@pytest.mark.parametrize(("split", "family"), SPLITS)
def test_the_splits_add_up(open_page: Open, tiny_folder: Callable[[str], Path], split: str, family: str) -> None:
    app = settled(open_page("why", m=str(tiny_folder(family)), s=TEXTS[:2], v="score-split", by=split, steps="100"))
    assert not app.exception
    assert [item.value for item in app.error] == []
    said = re.search(r"(?:to within|but for) [−+]?([0-9.]+[0-9])", texts(app))
    assert said is not None, texts(app)
    assert float(said[1]) <= {"blocks": 1e-5, "words": 0.02}[split]


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
    app = open_page("model", m=str(folder), s=TEXTS, v="model-facts")
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
