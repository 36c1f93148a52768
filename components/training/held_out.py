"""How well a model does on the held-out part while it is trained.

What is measured depends on the rows that are held out:
- pairs and triplets: each query searches all held-out answers; Recall@1 and Recall@10, in which ties count against the query,
  rows with the same query all hold right answers of it, and equal answers are searched once; nothing is
  measured where every answer is right for every query (Pairs.can_be_measured)
- scored rows: Spearman's correlation of the model's scores with those of people
- classes: the share that the classifier of the softmax objective names correctly
- texts that belong together or do not: the share on the right side of the cosine that best separates training rows; a
  cross-encoder's boundary is 0
- sentences alone, and pairs of which no answer is wrong for a query: nothing but the validation loss

A cross-encoder would have to read every query with every answer, so pairs count for it as texts that belong together or
not, each correct answer beside a wrong one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from components.arrays import Float32, Float64, Int64, cosine
from components.errors import InputError
from components.retrieval.evaluation.metrics import recall
from components.retrieval.evaluation.pair_runs import Pairs, pairs_of_rows
from components.retrieval.evaluation.sts import correlations
from components.training.negatives import binary_classes
from components.training.notices import Diverged
from components.training.objectives import OBJECTIVES, ModelKind

if TYPE_CHECKING:
    from components.training.data import TrainingData
    from components.training.settings import TrainingSettings

Task = Literal["retrieval", "scores", "classes", "binary", "none"]
BATCH = 64
MOST_BOUNDARY_ROWS = 512  # training rows that decide which cosine separates best
# The measure by which the best step is chosen, the first that there is; higher is better.
DECIDING = ("spearman", "recall@1", "accuracy")


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What is measured on the held-out part. Texts are in `first` and `second`, row by row."""

    task: Task
    kind: ModelKind
    first: tuple[str, ...]
    second: tuple[str, ...]
    labels: Float64 | None = None  # [row]: a score, 1 for belongs together and 0 for not, or the number of a class
    calibration: HeldOut | None = None  # training rows of the same task, which give the boundary between 1 and 0

    @cached_property
    def _pairs(self) -> Pairs:
        """The rows of retrieval as queries and the answers that they search."""
        return pairs_of_rows("held-out rows", self.second, self.first)

    @property
    def can_be_measured(self) -> bool:
        """Whether there is anything to tell apart: see `Pairs.can_be_measured`."""
        return self._pairs.can_be_measured if self.task == "retrieval" else self.task != "none"

    def measure(self, model: Any, classifier: Any = None) -> dict[str, float]:
        """The measures of a model by name: recall@1, recall@10, spearman, accuracy (all 0..1, Spearman -1..1).

        For an encoder also "unrelated_cosine", the mean cosine of texts that have nothing to do with each other.
        `classifier` is the softmax objective's loss. Raises Diverged for a model that has diverged: its vectors or scores
        are not finite, so that they have no order, and comparing them could give any measure, a perfect one too.
        """
        if self.kind == "cross-encoder":
            return self._of_scores(_pair_scores(model, self.first, self.second), lambda: 0.0)
        vectors = _vectors(model, (*self.first, *self.second))
        first, second = vectors[: len(self.first)], vectors[len(self.first) :]
        measures = self._unrelated(first, second if len(second) else first)
        if self.task == "retrieval":
            measures |= self._retrieval(first, second)
        elif self.task == "classes":
            predicted = _classes(model, classifier, self.first, self.second)
            measures["accuracy"] = float(np.mean(predicted == self.labels))
        elif self.task in ("scores", "binary"):
            measures |= self._of_scores(cosine(first, second), lambda: self._boundary(model))
        return measures

    def _retrieval(self, queries: Float32, answers: Float32) -> dict[str, float]:
        if not self.can_be_measured:
            return {}
        pairs = self._pairs
        asked, answered = ({text: row for row, text in enumerate(side)} for side in (self.first, self.second))
        ranks = pairs.ranks_by_vectors(
            queries[[asked[text] for text in pairs.queries.texts]],
            answers[[answered[text] for text in pairs.documents.texts]],
        )
        return {f"recall@{k}": float(recall(ranks, k).mean()) for k in (1, 10)}

    def _of_scores(self, scores: Float64, boundary: Any) -> dict[str, float]:
        assert self.labels is not None
        if self.task == "binary":
            return {"accuracy": float(np.mean((scores > boundary()) == (self.labels > 0.5)))}
        spearman = correlations(scores, self.labels.tolist())[0]
        return {} if spearman is None else {"spearman": spearman}

    def _boundary(self, model: Any) -> float:
        if self.calibration is None or self.calibration.labels is None:
            return 0.5
        vectors = _vectors(model, (*self.calibration.first, *self.calibration.second))
        count = len(self.calibration.first)
        return best_boundary(cosine(vectors[:count], vectors[count:]), self.calibration.labels)

    @staticmethod
    def _unrelated(first: Float32, second: Float32) -> dict[str, float]:
        """The mean cosine of each row's first text with the second text of the row half the rows further on."""
        if len(first) < 4:
            return {}
        return {"unrelated_cosine": float(cosine(first, np.roll(second, len(second) // 2, axis=0)).mean())}


def held_out_of(
    settings: TrainingSettings,
    kind: ModelKind,
    held_out: TrainingData,
    rows: TrainingData,
    train: TrainingData | None = None,
) -> HeldOut:
    """What to measure on the held-out part.

    `rows` is what the first objective makes of it, which is what a cross-encoder is measured on. `train` is the training
    part, for a boundary between two classes.
    """
    objective = settings.objectives[0]
    if kind == "cross-encoder":
        return _with_labels("binary" if OBJECTIVES[objective].rows == "binary" else "scores", kind, rows)
    if held_out.kind == "labelled":
        if objective == "softmax":
            return _with_labels("classes", kind, held_out)
        try:
            positive, negative = binary_classes(held_out)
        except InputError:  # other classes, which say nothing about how similar two texts are
            return HeldOut("none", kind, held_out.columns["sentence1"], held_out.columns["sentence2"])
        assert held_out.labels is not None
        if OBJECTIVES[objective].rows in ("pairs", "triplets"):
            columns = held_out.take(np.flatnonzero(held_out.labels == positive)).columns
            return _retrieval(kind, columns["sentence1"], columns["sentence2"])
        known = None if train is None else train.take(np.arange(min(len(train), MOST_BOUNDARY_ROWS)))
        calibration = None if known is None else _with_labels("binary", kind, _two_classes(known, positive, negative))
        return _with_labels("binary", kind, _two_classes(held_out, positive, negative), calibration)
    if held_out.kind == "scored":
        return _with_labels("scores", kind, held_out)
    if held_out.kind == "sentences":
        return HeldOut("none", kind, held_out.columns["sentence"], ())
    return _retrieval(kind, held_out.columns["anchor"], held_out.columns["positive"])


def _retrieval(kind: ModelKind, queries: tuple[str, ...], answers: tuple[str, ...]) -> HeldOut:
    """Queries that search answers; nothing is measured where they cannot be told apart (`Pairs.can_be_measured`)."""
    found = HeldOut("retrieval", kind, queries, answers)
    return found if found.can_be_measured else replace(found, task="none")


def is_better(measures: Mapping[str, Any], than: Mapping[str, Any]) -> bool:
    """Whether an evaluation is better than another: by its deciding measure, and if that is equal by the validation loss."""

    def rank(values: Mapping[str, Any]) -> tuple[float, float]:
        score = next((values[name] for name in DECIDING if values.get(name) is not None), 0.0)
        loss = values.get("validation_loss")
        return score, -np.inf if loss is None else -loss

    return rank(measures) > rank(than)


def best_boundary(scores: Float64, labels: Float64) -> float:
    """The number above which scores count as 1 so that most labels (1 or 0) are right; between two scores."""
    order = np.argsort(scores, kind="stable")
    sorted_scores, ones = scores[order], (labels[order] > 0.5).astype(np.int64)
    # Of a boundary below place k, the ones from k on and the zeros before it are right.
    right = np.concatenate([[0], np.cumsum(1 - ones)]) + ones.sum() - np.concatenate([[0], np.cumsum(ones)])
    steps = np.flatnonzero(np.diff(sorted_scores) > 0) + 1  # equal scores cannot be separated
    candidates = np.concatenate([[0], steps, [len(scores)]])
    best = int(candidates[np.argmax(right[candidates])])
    if best == 0:
        return float(sorted_scores[0]) - 1.0
    if best == len(scores):
        return float(sorted_scores[-1])
    return float(sorted_scores[best - 1] + sorted_scores[best]) / 2


def _with_labels(task: Task, kind: ModelKind, rows: TrainingData, calibration: HeldOut | None = None) -> HeldOut:
    assert rows.labels is not None
    first, second = rows.columns.values()
    return HeldOut(task, kind, first, second, rows.labels.astype(np.float64), calibration)


def _two_classes(data: TrainingData, positive: int, negative: int) -> TrainingData:
    """The rows of two classes, labelled 1 and 0."""
    assert data.labels is not None
    rows = np.flatnonzero((data.labels == positive) | (data.labels == negative))
    kept = data.take(rows)
    return replace(kept, labels=(data.labels[rows] == positive).astype(np.int64), label_names=("no", "yes"))


def _vectors(model: Any, texts: Sequence[str]) -> Float32:
    """The model's vectors, float32 [text, dim]; each different text is embedded once."""
    numbers: dict[str, int] = {}
    rows = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)
    vectors: Float32 = model.encode(list(numbers), batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True)
    return _finite(np.asarray(vectors, np.float32))[rows]


def _pair_scores(model: Any, first: Sequence[str], second: Sequence[str]) -> Float64:
    """The cross-encoder's raw outputs, float64 [pair]."""
    import torch

    pairs = list(zip(first, second, strict=True))
    scores = model.predict(pairs, batch_size=BATCH, activation_fn=torch.nn.Identity(), show_progress_bar=False)
    return _finite(np.asarray(scores, np.float64)).reshape(-1)


def _classes(model: Any, classifier: Any, first: Sequence[str], second: Sequence[str]) -> Int64:
    """The class that the softmax objective's classifier names for each pair, int64 [pair]."""
    import torch

    predicted = []
    model.eval()
    with torch.inference_mode():
        for start in range(0, len(first), BATCH):
            features = [
                {
                    name: value.to(model.device)
                    for name, value in model.preprocess(list(side)).items()
                    if hasattr(value, "to")
                }
                for side in (first[start : start + BATCH], second[start : start + BATCH])
            ]
            predicted.append(_finite(classifier(features, None)[1].float().cpu().numpy()).argmax(axis=1))
    return np.concatenate(predicted).astype(np.int64)


def _finite(values: np.ndarray) -> np.ndarray:
    """The values as they are. Raises Diverged if one is NaN or infinite."""
    if np.isfinite(values).all():
        return values
    raise Diverged("The model has diverged: on the held-out rows it gives values that are not finite numbers.")
