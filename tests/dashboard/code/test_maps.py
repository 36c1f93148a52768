"""Map: the code gives the points and curves that the figures show."""

from __future__ import annotations

import numpy as np
import pytest

from tests.dashboard.code.shown import SENTENCES, codes, numbers, points, same, same_points, y
from tests.support.pages import Open, at_rest
from tests.support.snippets import Run


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ({"by": "pca"}, "map_0"),
        ({"by": "tsne", "l": "3", "seed": "7", "sp": "0"}, "map_1"),
        ({"by": "umap", "nn": "4", "md": "20"}, "map_1"),
        ({"by": "pca", "j": "1"}, "map_both"),
        ({"rd": "together", "sb": "2", "by": "pca"}, "map_1"),
        ({"view": "senses", "w": "bank", "sl": "2", "by": "pca"}, "senses_map"),
    ],
)
def test_maps(open_page: Open, run: Run, address: dict[str, str], key: str) -> None:
    app = at_rest(open_page("map", s=SENTENCES, **address))
    found = numbers(run(codes(app)[key].snippet)["values"])
    same_points(found, points(app, key), 2e-4)


def test_the_senses_of_a_word(open_page: Open, run: Run) -> None:
    app = at_rest(open_page("map", v="word-senses", w="spring"))
    found = run(codes(app)["senses_curve"].snippet)
    curve = found["curve"]
    accuracy, chance, silhouette = y(app, "senses_curve")
    same(curve.accuracy, accuracy)
    same(np.full(len(chance), found["by_chance"](found["senses"])), chance)
    same(curve.silhouette, silhouette)


def test_a_sample_of_a_corpus(open_page: Open, run: Run) -> None:
    app = at_rest(open_page("map", v="two-layers", src="corpus", nt="500", by="pca"))
    found = numbers(run(codes(app)["map_1"].snippet)["values"])
    assert found.shape == (500, 2)
    same_points(found, points(app, "map_1"), 2e-4)
