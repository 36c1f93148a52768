"""What a threshold on scores does: which documents it accepts, and how precision and recall change with it.

A document is accepted if its score is at least the threshold. With true and false positives and negatives as usual,

    precision = TP / (TP + FP)    recall = TP / (TP + FN)    F1 = 2 TP / (2 TP + FP + FN)
    accuracy  = (TP + TN) / all, beside the share of the larger class, which needs no score at all
    average precision = sum over the distinct scores of (recall - recall before) * precision

(Manning, Raghavan and Schütze 2008, chapter 8), with the conventions of scikit-learn: a share of nothing is 0, and the
curve ends at precision 1 and recall 0. Tests compare the two.

What it does not show: how the threshold does on other queries. The best one for these documents was chosen by their own
marks, so that it is too good.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from components.arrays import Float64, read_only


@dataclass(frozen=True)
class Confusion:
    """Documents by whether they are relevant and whether they were accepted."""

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @property
    def precision(self) -> float:
        return _share(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float:
        return _share(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def f1(self) -> float:
        return _share(2 * self.true_positives, 2 * self.true_positives + self.false_positives + self.false_negatives)

    @property
    def accuracy(self) -> float:
        right = self.true_positives + self.true_negatives
        return _share(right, right + self.false_positives + self.false_negatives)

    @property
    def majority_is_relevant(self) -> bool:
        """Whether more documents are relevant than not."""
        return self.true_positives + self.false_negatives > self.false_positives + self.true_negatives

    @property
    def majority(self) -> float:
        """The accuracy of always giving the more frequent answer: the share of the larger class."""
        relevant, others = self.true_positives + self.false_negatives, self.false_positives + self.true_negatives
        return _share(max(relevant, others), relevant + others)


@dataclass(frozen=True, eq=False)
class ThresholdAnalysis:
    """Precision and recall at every distinct score, and the confusion matrix at any threshold."""

    thresholds: Float64  # [point], the distinct scores, ascending
    precision: Float64  # [point + 1], of what scores at least the threshold; the last is 1, of nothing
    recall: Float64  # [point + 1]; the last is 0
    average_precision: float
    _relevant: Float64  # the sorted scores of relevant documents
    _others: Float64  # the same of all others

    def at(self, threshold: float) -> Confusion:
        """The documents that this threshold accepts."""
        missed, rejected = (int(np.searchsorted(scores, threshold)) for scores in (self._relevant, self._others))
        return Confusion(len(self._relevant) - missed, len(self._others) - rejected, missed, rejected)

    def best_f1(self) -> float:
        """The score that gives the highest F1 as a threshold on these documents; of equal ones the highest score."""
        total = self.precision[:-1] + self.recall[:-1]
        f1 = np.divide(2 * self.precision[:-1] * self.recall[:-1], total, out=np.zeros_like(total), where=total > 0)
        return float(self.thresholds[len(f1) - 1 - int(np.argmax(f1[::-1]))])


def analyse(scores: np.ndarray, relevant: np.ndarray) -> ThresholdAnalysis:
    """The analysis of scores [document], with a flag for each relevant document.

    Raises ValueError without a document, for unequal lengths, and for scores that are not finite.
    """
    scores, is_relevant = np.asarray(scores, np.float64), np.asarray(relevant, bool)
    if scores.shape != is_relevant.shape or scores.ndim != 1 or not len(scores):
        raise ValueError(f"scores {scores.shape} and flags {is_relevant.shape}: one of each per document was expected")
    if not np.isfinite(scores).all():
        raise ValueError("a score is not a finite number")
    hits, others = np.sort(scores[is_relevant]), np.sort(scores[~is_relevant])
    thresholds, precision, recall = precision_and_recall(hits, others)
    average = float(-np.sum(np.diff(recall) * precision[:-1]))
    return ThresholdAnalysis(
        read_only(thresholds), read_only(precision), read_only(recall), average, read_only(hits), read_only(others)
    )


def precision_and_recall(hits: Float64, others: Float64) -> tuple[Float64, Float64, Float64]:
    """The distinct scores as thresholds [point], precision and recall [point + 1]; of the sorted scores of both groups."""
    thresholds = np.unique(np.append(hits, others))
    accepted_hits = len(hits) - np.searchsorted(hits, thresholds)  # [point]
    accepted = accepted_hits + len(others) - np.searchsorted(others, thresholds)  # never 0
    precision = np.append(accepted_hits / accepted, 1.0)
    # Without a relevant document recall is 1 by convention, as in scikit-learn.
    recall = np.append(accepted_hits / len(hits) if len(hits) else np.ones(len(thresholds)), 0.0)
    return thresholds, precision, recall


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
