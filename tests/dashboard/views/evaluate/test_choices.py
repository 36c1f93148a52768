"""What evaluation offers is what its address takes, in the same order."""

from __future__ import annotations

from components.retrieval.evaluation import pooling_lab
from components.retrieval.evaluation.graded import metrics as graded_metrics
from components.retrieval.evaluation.metrics import MEASURES
from dashboard import settings
from dashboard.declared import table
from dashboard.views.evaluate import choices, graded, lab


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
