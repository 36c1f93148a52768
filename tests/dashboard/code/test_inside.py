"""Code that reads the modules inside a model gives the numbers on screen, for each kind of block."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from components.analysis.layer_zero import part_cosines, part_norms
from components.model.backend import Backend
from components.shown_code.arrays import Input
from components.shown_code.code import Command
from components.shown_code.inside import Inside
from dashboard.views.heatmaps import blocks
from tests.dashboard.code.shown import EQUAL, SENTENCES, found_by, same, short, x, z
from tests.support.elsewhere import Elsewhere
from tests.support.pages import Open, at_rest

TEXTS = ["the cat sat on the bank .", "a red hat ran"]
Folder = Callable[[str], Path]


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "modernbert", "albert"])
def test_each_family(elsewhere: Elsewhere, tiny_folder: Folder, family: str) -> None:
    backend = Backend.load(str(tiny_folder(family)), device_name="cpu")
    code = Inside(Input(backend, TEXTS[:1]))
    record = backend.inside(TEXTS[0])
    same(short(elsewhere, code.turns([0, 1])), [blocks._turns(record, block) for block in (0, 1)], 1e-3)  # degrees
    same(short(elsewhere, code.lengths([1, 0])), [blocks._lengths(record, block) for block in (1, 0)], EQUAL)
    trace = backend.trace(TEXTS)
    alone = Inside(Input(backend, TEXTS[1:]))
    same(short(elsewhere, alone.layer_zero()), part_norms(trace, 1).values, EQUAL)
    both = Inside(Input(backend, TEXTS)).layer_zero_cosines([2, 3], [(0, 1)])
    same(short(elsewhere, both), part_cosines(trace, [2, 3], [(0, 1)]).values, EQUAL)
    scores, inner = code.scores(1, 1, 3), code.inner([1], "values = inner[0, 2]", "print(values)")
    if family == "modernbert":  # whose queries are turned, and whose feed-forward part has gates
        assert isinstance(scores, Command)
        assert isinstance(inner, Command)
    else:
        same(short(elsewhere, scores), record.score_parts(1, 1)["content to content"][3], EQUAL)
        same(short(elsewhere, inner), backend.feed_forward(TEXTS[0], block=1).activations_of(1)[2], EQUAL)


def test_a_model_that_only_this_project_loads_has_no_code() -> None:
    code = Inside(Input(Backend.load("embedded-cross-encoder", device_name="cpu"), TEXTS[:1]))
    found = (
        code.turns([0]),
        code.lengths([0]),
        code.scores(0, 0, 1),
        code.norms(0, None, [0], [0]),
        code.layer_zero(),
        code.inner([0]),
    )
    assert all(isinstance(each, Command) for each in found)


def test_what_parts_of_blocks_add(open_page: Open, elsewhere: Elsewhere) -> None:
    app = at_rest(open_page("heatmaps", s=SENTENCES, v="inside-block", b1="1", b2="4"))
    for key in ("inside_turns", "inside_norms"):  # the second with a mark for what is added to
        found = found_by(elsewhere, app, key)
        assert found.shape[0] == 2
        same(np.sort(found.ravel()), np.sort(x(app, key)), 1e-3)


@pytest.mark.parametrize("address", [{}, {"fh": "one", "h": "3"}])
def test_norms_of_one_block(open_page: Open, elsewhere: Elsewhere, address: dict[str, str]) -> None:
    app = open_page("attention", s=SENTENCES, view="flow", fl="norms", ff="all", fb="2", **address)
    same(found_by(elsewhere, app, "flow_matrix"), z(app, "flow_matrix"), EQUAL)


@pytest.mark.parametrize(
    "address",
    [{}, {"xm": "heads", "xv": "change"}, {"xm": "parts", "xt": "own", "s": ["A red dog.", "A dog."], "pool": "cls"}],
)
def test_patching(open_page: Open, elsewhere: Elsewhere, address: dict[str, str]) -> None:
    app = at_rest(open_page("why", v="experiments", **address))
    shown = z(app, "experiments_map")
    found = found_by(elsewhere, app, "experiments_map")
    assert np.abs(shown).max() > 0.01
    same(found.reshape(shown.shape), shown, EQUAL)
