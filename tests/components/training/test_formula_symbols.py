"""Each formula's legend explains the symbols that stand in it, and no others."""

from __future__ import annotations

import re

import pytest

from components.training.objectives import OBJECTIVES, legend, symbols_of

WORDS = (
    "frac",
    "sum",
    "log",
    "cos",
    "left",
    "right",
    "max",
    "in",
    "mid",
    "text",
    "operatorname",
    "softmax",
    "hard",
    "sigma",
)


@pytest.mark.parametrize("key", OBJECTIVES)
def test_a_legend_has_the_symbols_of_its_formula_and_no_others(key: str) -> None:
    formula = OBJECTIVES[key].formula
    runs = re.findall(r"[A-Za-z]+", formula.replace("'", ""))  # read in another way: by runs of letters
    assert all(len(run) == 1 for run in runs if run not in WORDS)
    expected = {run for run in runs if run not in WORDS and run != "e"} | ({"hard", "sigma"} & {*runs})
    found = legend(OBJECTIVES[key])
    assert {symbol.replace("'", "") for symbol in found} == expected
    assert ("u'" in found) == ("u'" in formula)
    assert all(found.values())


def test_the_scale_is_explained_where_it_stands_and_a_distance_only_where_it_does() -> None:
    assert {"s", "u", "v"} <= set(legend(OBJECTIVES["mnrl"]))
    assert not {"d", "y"} & set(legend(OBJECTIVES["mnrl"]))
    assert {"d", "y", "m"} <= set(legend(OBJECTIVES["contrastive"]))
    assert symbols_of(r"\frac{a}{b} \log \sigma(u'_i) e^{s} \max \operatorname{softmax} \text{hard}") == (
        *("a", "b", "sigma", "u'", "i", "s", "hard"),
    )
