"""A linear probe for each layer: can a difference between sentences still be read from their vectors?

A probe is a classifier that is trained on vectors that a model has made, to see whether they hold a property (Alain and
Bengio 2016; for sentence vectors Conneau et al. 2018). Here it is a logistic regression that tells the second sentences
of minimal pairs from the first ones. Both sentences of a pair are always in the same fold of the cross-validation, so that
the probe is tested on pairs of which it has seen neither sentence, and what the two share (their topic) does not help.

A probe can also be right because it learns words by heart. The control task of Hewitt and Liang (2019) measures that: each
word gets one of two labels at random, and the same probe learns these. Here the "word" of a sentence is the form in which
it differs from the other of its pair ("is not", "never"). Only a probe that memorises forms, and meets them again in the
test, can be right more often than by chance. Selectivity is the accuracy of the probe minus that of the control task.

What it does not show: that the model uses what can be read. And a word that makes the difference is part of the input, so
that the mean of the token vectors holds it from layer 0 on: a probe shows that it was kept, not that it was understood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components.analysis.why.contrasts import changed_forms
from components.arrays import Float64, Int64, read_only
from components.jobs import IsStopped, ReportProgress, Stopped

FOLDS = 5
DRAWS = 5  # of the control task's labels: one draw alone can be easy or hard by chance
C = 0.01  # inverse strength of regularisation, on standardised numbers; not tuned to any of these tasks
FEWEST_PAIRS = 10
MOST_PAIRS = 200
_STEPS = 500  # of the solver at most


@dataclass(frozen=True, eq=False)
class ProbeResult:
    """How often the probe and the control task were right about the two sentences of each pair: 0, 0.5 or 1 for one draw."""

    right: Float64  # [layer, pair]
    control: Float64  # [layer, pair]: means over the draws
    repeated: int  # sentences whose changed form occurs in another pair too

    @property
    def nbytes(self) -> int:
        """Memory the arrays take, in bytes."""
        return self.right.nbytes + self.control.nbytes

    @property
    def accuracy(self) -> Float64:
        """float64 [layer]"""
        return np.asarray(self.right.mean(axis=1))

    @property
    def control_accuracy(self) -> Float64:
        """float64 [layer]"""
        return np.asarray(self.control.mean(axis=1))

    @property
    def selectivity(self) -> Float64:
        """float64 [layer]"""
        return self.accuracy - self.control_accuracy


def probe_pairs(
    vectors: np.ndarray,
    first: Sequence[str],
    second: Sequence[str],
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> ProbeResult:
    """Probe every layer of pairs of texts: vectors [layer, text, dim], the `first` texts of all pairs before the others."""
    both = vectors.reshape(len(vectors), 2, len(first), -1)  # [layer, side, pair, dim]
    forms = [changed_forms(*texts) for texts in zip(first, second, strict=True)]
    return probe_layers(both, forms, progress=progress, is_stopped=is_stopped)


def probe_layers(
    vectors: np.ndarray,
    forms: Sequence[tuple[str, str]],
    seed: int = 0,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> ProbeResult:
    """Probe every layer, vectors [layer, side, pair, dim] with side 0 for the first sentences and 1 for the second.

    `forms` are the changed words of the two sentences of each pair. Folds and control labels are drawn with the seed and
    are the same at all layers. Raises ValueError for fewer than FEWEST_PAIRS pairs, and Stopped.
    """
    layers, _, count, _ = vectors.shape
    if count < FEWEST_PAIRS:
        raise ValueError(f"{count} pairs: at least {FEWEST_PAIRS} are needed")
    folds = np.random.default_rng(seed).permutation(count) % FOLDS  # [pair]
    labels = np.repeat(np.array([[False], [True]]), count, axis=1)  # [side, pair]
    controls = [control_labels(forms, seed + draw) for draw in range(DRAWS)]
    right, control = np.empty((layers, count)), np.empty((layers, count))
    for layer in range(layers):
        if is_stopped():
            raise Stopped
        own = np.asarray(vectors[layer], np.float64)  # [side, pair, dim]
        found = _right(own, [labels, *controls], folds)  # [task, pair]
        right[layer], control[layer] = found[0], found[1:].mean(axis=0)
        progress(layer + 1, layers)
    return ProbeResult(read_only(right), read_only(control), repeated_forms(forms))


def control_labels(forms: Sequence[tuple[str, str]], seed: int) -> NDArray[np.bool_]:
    """A random label for each distinct form, given to all its sentences: [side, pair].

    Forms get their labels in a random order, each the label that fewer sentences have so far, so that always giving the
    more frequent label helps little.
    """
    texts, form_of, counts = np.unique(np.array(forms).T, return_inverse=True, return_counts=True)
    numbers = np.random.default_rng(seed)
    of_forms, sizes = np.zeros(len(texts), bool), [0, 0]
    for form in numbers.permutation(len(texts)).tolist():
        label = int(numbers.integers(2)) if sizes[0] == sizes[1] else int(sizes[1] < sizes[0])
        of_forms[form] = bool(label)
        sizes[label] += int(counts[form])
    return of_forms[form_of.reshape(2, len(forms))]


def repeated_forms(forms: Sequence[tuple[str, str]]) -> int:
    """How many sentences have a form that a sentence of another pair has too."""
    pairs_with: dict[str, set[int]] = {}
    for pair, both in enumerate(forms):
        for form in both:
            pairs_with.setdefault(form, set()).add(pair)
    return sum(len(pairs_with[form]) > 1 for both in forms for form in both)


def _right(vectors: Float64, tasks: Sequence[NDArray[np.bool_]], folds: Int64) -> Float64:
    """The share of each pair's two sentences whose label the probe gives when their fold is left out, float64 [task, pair].

    vectors [side, pair, dim], labels of each task [side, pair], folds [pair].
    """
    from sklearn.linear_model import LogisticRegression

    right = np.empty((len(tasks), *vectors.shape[:2]))  # [task, side, pair]
    for fold in range(FOLDS):
        is_test = folds == fold
        train, test = (vectors[:, part].reshape(-1, vectors.shape[-1]) for part in (~is_test, is_test))
        mean, deviation = train.mean(axis=0), train.std(axis=0)
        deviation = np.where(deviation < 1e-9, 1.0, deviation)  # as the [CLS] vectors of layer 0, which are all equal
        train, test = (train - mean) / deviation, (test - mean) / deviation
        # With few sentences the coefficients lie in the space that the sentences span: turning that space to the axes
        # changes no result, and leaves the solver far fewer numbers.
        directions = np.linalg.svd(train, full_matrices=False)[2].T
        train, test = train @ directions, test @ directions
        for number, labels in enumerate(tasks):
            known = labels[:, ~is_test].ravel()
            if known.all() or not known.any():  # one label alone cannot be learnt
                predicted = np.full(len(test), known[0])
            else:
                predicted = LogisticRegression(C=C, max_iter=_STEPS).fit(train, known).predict(test)
            right[number][:, is_test] = predicted.reshape(2, -1) == labels[:, is_test]
    return np.asarray(right.mean(axis=1))
