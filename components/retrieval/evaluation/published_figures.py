"""Figures published by others, for comparison with what is measured here. None of them was measured here.

Each record is one line of a published table: a model, a pooling of its last layer, a data set, and the values of one
or more measures, in points of a hundred (a Spearman correlation of 0.5932 is 59.32), as the `evaluate` command prints them.

What they do not show: how they were made. Precision, maximum length and the treatment of ties are not published, nor is
which 36,000 pairs the test split of the compression corpus contained. A difference of up to 1.5 points only means that
both measured the same thing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from components.model.catalog import EMBEDDED_KEY, catalog_spec
from components.model.trace import POOLING_NAMES, Pooling

Task = Literal["retrieval", "similarity"]

TOLERANCE = 1.5  # points: two measurements that differ by less count as the same
SAME_SIZE = 0.01  # two values are compared if their numbers of pairs differ by at most this share
# The included model is this one (the checksum of its weights is that of the hub's file).
EMBEDDED_HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
PAIRS_DATASET, STS_DATASET = "embedding-data/sentence-compression", "sentence-transformers/stsb"


@dataclass(frozen=True)
class PublishedResult:
    """One line of a published table."""

    source: str  # who published it, in words
    task: Task
    dataset: str  # in words
    split: str
    n: int  # pairs
    model: str  # hub id, as in the catalog
    pooling: Pooling  # of the last layer
    values: tuple[tuple[str, float], ...]  # measure ("recall@1", "spearman") and points of a hundred
    trained_on: str = ""  # the data on which the model was fine-tuned first; empty for the model of the hub
    remarks: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Model, pooling and data."""
        name = self.model.rpartition("/")[2] + (f" fine-tuned on {self.trained_on}" if self.trained_on else "")
        return f"{name}, {POOLING_NAMES[self.pooling]}, {self.dataset}"

    def value(self, measure: str) -> float | None:
        """The published value of a measure; None if it was not published."""
        return dict(self.values).get(measure)

    def is_comparable(self, n: int) -> bool:
        """Whether a measurement over n pairs can be compared with this one: fewer sentences make retrieval easier."""
        return abs(n - self.n) <= SAME_SIZE * self.n


_CUTOFFS = (1, 5, 10, 20, 50)
_BERT, _MSMARCO = "google-bert/bert-base-uncased", "sentence-transformers/msmarco-bert-base-dot-v5"


def _recalls(model: str, pooling: Pooling, values: tuple[float, ...], *remarks: str) -> PublishedResult:
    return PublishedResult(
        source="a student report of 2025 on BERT models",
        task="retrieval",
        dataset="36,000 test pairs of the sentence-compression corpus",
        split="test",
        n=36_000,
        model=model,
        pooling=pooling,
        values=tuple((f"recall@{k}", value) for k, value in zip(_CUTOFFS, values, strict=True)),
        remarks=("the split's seed is not published", *remarks),
    )


# Measured on STS-B validation, Spearman, bert-base-uncased mean pooling before and after one epoch of fine-tuning on SNLI.
_COURSE = "a run of the course this project accompanies"


def _spearman(
    source: str, model: str, split: str, n: int, value: float, trained_on: str = "", *remarks: str
) -> PublishedResult:
    return PublishedResult(
        source=source,
        task="similarity",
        dataset=f"STS-B {split}",
        split=split,
        n=n,
        model=model,
        pooling="mean",
        values=(("spearman", value),),
        trained_on=trained_on,
        remarks=remarks,
    )


PUBLISHED: tuple[PublishedResult, ...] = (
    _recalls(_BERT, "mean", (46.86, 63.78, 70.00, 75.79, 82.36), "its text also says 46.94 for Recall@1"),
    _recalls(_BERT, "cls", (10.83, 18.11, 21.72, 26.01, 32.72)),
    _recalls(_MSMARCO, "mean", (90.15, 95.89, 96.89, 97.68, 98.35), "its text also says 90.37 for Recall@1"),
    _recalls(_MSMARCO, "cls", (3.34, 8.44, 11.84, 16.26, 23.54)),
    _spearman(_COURSE, _BERT, "validation", 1_500, 59.32, "", "before fine-tuning; printed as 0.5932"),
    _spearman(_COURSE, _BERT, "validation", 1_500, 76.74, "SNLI", "after one epoch; printed as 0.7674"),
    _spearman("a published result whose source is not known", EMBEDDED_HUB_ID, "test", 1_379, 82.03),
)


def published_for(
    task: Task | None = None,
    model: str | None = None,
    pooling: str | None = None,
    split: str | None = None,
    trained: bool | None = False,
) -> tuple[PublishedResult, ...]:
    """The published results of a task, model, pooling and split; None means any.

    `model` can also be the included model or an older short hub id. Results of models that have to be fine-tuned first are
    left out, unless `trained` is True (only these) or None (all).
    """
    hub_id = None if model is None else hub_id_of(model)
    return tuple(
        result
        for result in PUBLISHED
        if task in (None, result.task)
        and hub_id in (None, result.model)
        and pooling in (None, result.pooling)
        and split in (None, result.split)
        and trained in (None, bool(result.trained_on))
    )


def hub_id_of(model: str) -> str:
    """The hub id of a model's key, also of the included model; other keys are returned unchanged."""
    if model == EMBEDDED_KEY:
        return EMBEDDED_HUB_ID
    spec = catalog_spec(model)
    return model if spec is None else spec.key
