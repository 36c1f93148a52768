"""What evaluation offers is what its address takes, in the same order."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from components.retrieval.evaluation import pooling_lab
from components.retrieval.evaluation.graded import metrics as graded_metrics
from components.retrieval.evaluation.metrics import MEASURES
from components.retrieval.rankings.run_code import RunCode
from dashboard import settings
from dashboard.declared import table
from dashboard.jobs.embedding import EmbedRequest
from dashboard.jobs.reranking import SecondStage
from dashboard.jobs.second_stage import TwoStages
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


def test_each_run_of_two_stages_has_its_own_models() -> None:
    """The first stage is the run's; its hits are ranked again by the cross-encoder, by the same model, or by the second one."""

    def model(key: str, late: object = None) -> Any:
        return SimpleNamespace(spec=SimpleNamespace(key=key, title=key), late_interaction=late)

    first, second, scorer = EmbedRequest(model("first"), 7), EmbedRequest(model("second"), 8), model("scorer")
    trained = EmbedRequest(model("trained", late=object()), 9)
    cross = SecondStage("rerank", scorer, 5)

    def stages(code: str, beside: EmbedRequest = second) -> TwoStages:
        found = choices.RunRequest({"m": first, "m2": beside}, (), {}, cross).stages(RunCode.read(code))
        assert found is not None
        return found

    assert choices.RunRequest({"m": first}, (), {}).stages(RunCode.read("m.3.mean")) is None
    by_cross = stages("rr.20.m2.3.cls")
    assert (by_cross.backend, by_cross.layer, by_cross.pooling, by_cross.k) == (second.backend, 3, "cls", 20)
    assert by_cross.second is cross
    by_itself = stages("ms.10.m2.3.mean").second
    assert (by_itself.kind, by_itself.backend, by_itself.max_length, by_itself.layer) == (
        "maxsim",
        second.backend,
        8,
        3,
    )
    by_second = stages("mx.10.m.3.mean", trained)
    assert by_second.backend is first.backend
    assert (by_second.second.backend, by_second.second.max_length, by_second.second.layer) == (trained.backend, 9, 0)


def test_what_may_rank_the_hits_of_a_run_again() -> None:
    def request(late: object = None, why_not: str = "") -> Any:
        structure = SimpleNamespace(why_not=lambda _: why_not)
        return SimpleNamespace(backend=SimpleNamespace(late_interaction=late, structure=structure))

    plain, trained, without_tokens = request(), request(late=object()), request(why_not="has no tokens")
    offered = choices._is_offered
    first, of_second = RunCode.read("m.3.mean"), RunCode.read("m2.3.mean")
    assert offered("rr", first, {"m": plain})
    assert offered("ms", first, {"m": plain})
    assert not offered("ms", first, {"m": without_tokens})
    assert not offered("ms", of_second, {"m": plain})
    assert offered("mx", first, {"m": plain, "m2": trained})
    for code, models in (
        (first, {"m": trained}),
        (first, {"m": trained, "m2": plain}),
        (of_second, {"m": plain, "m2": trained}),
    ):
        assert not offered("mx", code, models)
