"""What evaluation offers is what its address takes, in the same order."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from components.retrieval.evaluation import pooling_lab
from components.retrieval.evaluation.graded import metrics as graded_metrics
from components.retrieval.evaluation.metrics import MEASURES
from dashboard import settings
from dashboard.declared import table
from dashboard.views.evaluate import choices, graded, lab
from tests.support.pages import Open
from tests.support.tiny import pooling_module, publish


def test_every_measure_has_a_code_that_the_address_takes() -> None:
    named = {setting.name: setting for setting in table.SETTINGS}
    assert list(choices.CODES) == ["r1", "r5", "r10", "r20", "r50", "mrr", "ndcg"]
    assert list(graded.CODES) == ["ndcg", "mrr", "p10", "r10", "r100", "map"]
    assert list(choices.CODES.values()) == list(MEASURES)
    assert list(graded.CODES.values()) == list(graded_metrics.MEASURES)
    for name, codes in (("measure", choices.CODES), ("graded_measure", graded.CODES)):
        assert [named[name].parse([code]) for code in codes] == list(codes)


def test_the_labs_poolings_are_the_same_everywhere() -> None:
    assert tuple(lab.POOLINGS) == settings.LAB_POOLINGS == pooling_lab.POOLINGS
    assert tuple(lab.TREATMENTS) == pooling_lab.TREATMENTS


@pytest.mark.parametrize("view", ["layer-grid", "compare-runs", "graded-relevance"])
def test_a_view_that_ranks_by_the_cosine_says_so_of_other_models(
    open_page: Open, tiny_folder: Callable[[str], Path], tmp_path: Path, view: str
) -> None:
    folder = publish(shutil.copytree(tiny_folder("bert"), tmp_path / "model"), pooling_module())
    (folder / "config_sentence_transformers.json").write_text('{"similarity_fn_name": "dot"}')
    address = {"v": view, "m": str(folder.resolve()), "src": "demo"}
    said = [
        caption.value for caption in open_page("evaluate", **address).run().caption if "published for" in caption.value
    ]
    assert len(said) == 1
    assert "was published for the dot product. This view ranks by the cosine" in said[0]
    plain = publish(shutil.copytree(tiny_folder("bert"), tmp_path / "plain"), pooling_module())
    again = open_page("evaluate", **(address | {"m": str(plain.resolve())})).run()
    assert not [caption for caption in again.caption if "published for" in caption.value]
