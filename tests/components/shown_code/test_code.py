"""The second part of a figure's code: the source of what the page called, whole and in an order that runs."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from components.analysis import word_senses
from components.analysis.attention import flow
from components.analysis.similarity import cka, cosines
from components.shown_code.code import Code, Command, source_of, sources


def test_a_function_comes_with_what_it_calls_each_once() -> None:
    found = sources(cosines.cosine_matrix, cosines.cross_cosines)
    assert [source.partition("(")[0] for source in found] == ["def unit", "def cosine_matrix", "def cross_cosines"]
    vectors = np.random.default_rng(0).standard_normal((2, 3, 4))
    names: dict[str, object] = {"np": np, "vectors": vectors}
    program = "\n\n".join(["from __future__ import annotations", *found, "values = cosine_matrix(vectors)"])
    exec(program, names)
    np.testing.assert_array_equal(names["values"], cosines.cosine_matrix(vectors))


def test_numbers_of_its_module_come_too() -> None:
    assert sources(word_senses.nearest_neighbour_accuracy)[0] == "_TIE = 1e-05"


def test_a_source_is_that_of_the_file_without_the_rest_of_its_docstring() -> None:
    whole, shown = inspect.getsource(flow.rollout), source_of(flow.rollout)
    assert len(shown.splitlines()) < len(whole.splitlines())
    first, *rest = shown.splitlines()[1:]
    assert first.endswith('"""')
    assert all(line in whole for line in rest)


def test_a_command_names_the_file_and_its_papers() -> None:
    shown = Command(cka.layer_cka).text
    assert "# layer_cka in components/analysis/similarity/cka.py computes them." in shown
    assert "Kornblith et al. 2019" in " ".join(shown.replace("\n# ", " ").split())
    assert "python -m" not in shown
    twice = Command(cka.layer_cka, (), ("why", "a b", "c"), ("why", "a b", "c"))
    assert twice.text.count("python -m components why 'a b' c\n") == 1


@pytest.mark.parametrize("functions", [(), (cosines.cross_cosines,)])
def test_both_parts_say_what_they_are(functions: tuple[object, ...]) -> None:
    code = Code("# the arrays", functions, ("values = 1",))  # type: ignore[arg-type]
    assert code.text.startswith("from __future__ import annotations\n\n# the arrays\n\n# What is computed from them")
