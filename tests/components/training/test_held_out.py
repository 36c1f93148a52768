"""What is measured on the held-out part, on models whose vectors are known."""

from __future__ import annotations

import numpy as np
import pytest

from components.errors import InputError
from components.retrieval.evaluation.pair_runs import pairs_of_rows
from components.training.data import Split, TrainingData, from_columns
from components.training.held_out import HeldOut, best_boundary, held_out_of, is_better
from components.training.negatives import few_answers
from components.training.notices import Diverged
from components.training.settings import TrainingSettings


class KnownVectors:
    """A model that gives each text the vector that stands in a table."""

    def __init__(self, **vectors):
        self.vectors, self.calls = {text: np.array(vector, np.float32) for text, vector in vectors.items()}, []

    def encode(self, texts, **_):
        self.calls.append(list(texts))
        return np.stack([self.vectors[text] for text in texts])


def test_recall_counts_ties_against_the_query_and_equal_answers_once():
    model = KnownVectors(q1=[1, 0], q2=[0, 1], q3=[1, 0], a=[1, 0], b=[1, 1], c=[1, 0.0])
    pairs = HeldOut("retrieval", "encoder", ("q1", "q2", "q3"), ("a", "b", "a"))
    assert pairs.measure(model) == {"recall@1": 1.0, "recall@10": 1.0}
    tied = HeldOut("retrieval", "encoder", ("q1", "q2", "q3"), ("a", "b", "c"))
    assert tied.measure(model)["recall@1"] == pytest.approx(1 / 3)
    assert sorted(model.calls[0]) == ["a", "b", "q1", "q2", "q3"]  # each text once


def test_any_row_of_an_equal_query_is_right():
    """By counting: of each different query, whether one of its answers is nearer than every other text."""
    rng = np.random.default_rng(5)
    queries = [f"q{number}" for number in rng.integers(0, 12, 40)]
    answers = [f"a{number}" for number in rng.integers(0, 30, 40)]
    model = KnownVectors(**{text: rng.normal(size=8) for text in sorted({*queries, *answers})})

    def cosine_of(one, other):
        first, second = model.vectors[one].astype(float), model.vectors[other].astype(float)
        return first @ second / np.linalg.norm(first) / np.linalg.norm(second)

    right = {query: {answers[row] for row in range(40) if queries[row] == query} for query in queries}
    found = {k: [] for k in (1, 10)}
    for query, own in right.items():
        nearest = sorted(set(answers), key=lambda answer: -cosine_of(query, answer))
        for k, each in found.items():
            each.append(bool(own & set(nearest[:k])))
    assert max(map(len, right.values())) > 2
    measured = HeldOut("retrieval", "encoder", tuple(queries), tuple(answers)).measure(model)
    assert 0 < measured["recall@1"] < measured["recall@10"]
    for k in (1, 10):
        assert measured[f"recall@{k}"] == pytest.approx(np.mean(found[k]))


def test_one_distinct_answer_is_not_measured():
    """Recall@1 among one answer is 1 before and after training, whatever the model: no number decides by it."""
    rows = HeldOut("retrieval", "encoder", tuple(f"question {number}" for number in range(20)), ("the answer",) * 20)
    assert not rows.can_be_measured
    measures = rows.measure(KnownVectors(**{text: [1, 0] for text in {*rows.first, *rows.second}}))
    assert "recall@1" not in measures
    assert "recall@10" not in measures
    assert HeldOut("retrieval", "encoder", ("a", "b"), ("the answer", "another")).can_be_measured
    assert not HeldOut("retrieval", "encoder", ("a", "a"), ("the answer", "another")).can_be_measured  # both are right
    assert not HeldOut("retrieval", "encoder", ("a", "b"), ("Yes.", "yes")).can_be_measured


@pytest.mark.parametrize(
    ("queries", "answers", "can_be"),
    [
        (("a", "b"), ("one answer", "one answer"), False),
        (("a", "b"), ("Yes.", "yes"), False),
        (("a", "a", "b", "b"), ("x y", "z", "x y", "z"), False),
        (("a", "a", "b", "b"), ("x y", "z", "X, y!", "z"), False),
        (("a", "b"), ("x y", "z"), True),
        (("a", "a", "b"), ("x y", "z", "x y"), True),
    ],
)
def test_one_rule_says_what_cannot_be_measured(queries, answers, can_be):
    """Before a run (few_answers), in it (held_out_of), and by `evaluate` (check_measurable)."""
    data = from_columns({"anchor": [*queries, "t 1", "t 2"], "positive": [*answers, "u 1", "u 2"]}, "rows")
    parts = Split(np.array([len(queries), len(queries) + 1]), np.arange(len(queries)), 0)
    settings = TrainingSettings(objectives=("mnrl",), batch_size=2)
    held_out = data.take(parts.held_out)
    is_measured = held_out_of(settings, "encoder", held_out, held_out).can_be_measured
    is_said = any("cannot be measured" in sentence for sentence in few_answers(settings, data, parts))
    pairs = pairs_of_rows("rows", answers, queries)
    assert (is_measured, pairs.can_be_measured, is_said) == (can_be, can_be, not can_be)
    if can_be:
        pairs.check_measurable()
    else:
        with pytest.raises(InputError, match="cannot be measured"):
            pairs.check_measurable()


def test_scores_are_compared_by_rank():
    model = KnownVectors(x=[1, 0], near=[1, 0.1], middle=[1, 1], far=[0, 1])
    scored = HeldOut("scores", "encoder", ("x",) * 3, ("near", "middle", "far"), np.array([0.9, 0.8, 0.1]))
    assert scored.measure(model) == {"spearman": 1.0}
    equal = HeldOut("scores", "encoder", ("x",) * 3, ("near", "near", "near"), np.array([0.9, 0.8, 0.1]))
    assert equal.measure(model) == {}  # no order


@pytest.mark.parametrize("broken", [np.nan, np.inf])
@pytest.mark.parametrize("task", ["retrieval", "scores", "binary", "none"])
def test_a_model_that_has_diverged_gets_no_measure(task, broken):
    """NaN is neither smaller nor larger than anything: counted, it would be a first rank or the highest score."""
    model = KnownVectors(a=[1, 0], b=[broken, broken], c=[0, 1], d=[1, 1])
    labels = None if task in ("retrieval", "none") else np.array([0.0, 1.0])
    with pytest.raises(Diverged, match="has diverged"):
        HeldOut(task, "encoder", ("a", "c"), ("d", "b"), labels).measure(model)


def test_scores_of_a_cross_encoder_that_has_diverged_are_no_measure():
    class Broken:
        def predict(self, pairs, **_):
            return np.array([0.5, np.nan])

    with pytest.raises(Diverged, match="has diverged"):
        HeldOut("binary", "cross-encoder", ("a", "c"), ("d", "b"), np.array([1.0, 0.0])).measure(Broken())


def test_the_boundary_comes_from_training_rows():
    model = KnownVectors(x=[1, 0], near=[1, 0.1], middle=[1, 1], far=[0, 1])
    known = HeldOut("binary", "encoder", ("x",) * 3, ("near", "middle", "far"), np.array([1.0, 0.0, 0.0]))
    unseen = HeldOut("binary", "encoder", ("x", "x"), ("near", "middle"), np.array([1.0, 1.0]), known)
    assert unseen.measure(model) == {"accuracy": 0.5}


@pytest.mark.parametrize(
    ("scores", "labels"),
    [([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]), ([0.5, 0.5, 0.5], [1, 1, 0]), ([0.1, 0.9], [1, 1]), ([0.1, 0.9], [0, 0])],
)
def test_no_boundary_is_better(scores, labels):
    scores, labels = np.array(scores), np.array(labels, float)

    def right(boundary):
        return np.mean((scores > boundary) == (labels > 0.5))

    assert right(best_boundary(scores, labels)) == max(right(other) for other in [-1, *scores, *(scores - 1e-6), 2])


def test_unrelated_texts_are_those_half_the_rows_away():
    model = KnownVectors(a=[1, 0], b=[0, 1], c=[0.6, 0.8], d=[0.8, 0.6])
    rows = HeldOut("none", "encoder", ("a", "b", "c", "d"), ())
    assert rows.measure(model) == {"unrelated_cosine": pytest.approx(0.6)}  # a with c, b with d


def labelled(names):
    columns = {"sentence1": tuple("abcdef"), "sentence2": tuple("ghijkl")}
    return TrainingData("labelled", "x", columns, np.array([0, 1, 2, 0, 1, 2]), names)


@pytest.mark.parametrize(
    ("objective", "names", "task", "rows"),
    [
        ("softmax", ("entailment", "neutral", "contradiction"), "classes", 6),
        ("mnrl", ("entailment", "neutral", "contradiction"), "retrieval", 2),
        ("triplet", ("entailment", "neutral", "contradiction"), "retrieval", 2),
        ("contrastive", ("entailment", "neutral", "contradiction"), "binary", 4),
        ("simcse", ("red", "green", "blue"), "none", 6),
    ],
)
def test_what_is_measured_follows_from_rows_and_objective(objective, names, task, rows):
    settings = TrainingSettings(objectives=(objective,))
    held_out = held_out_of(settings, "encoder", labelled(names), labelled(names), labelled(names))
    assert (held_out.task, len(held_out.first)) == (task, rows)


def test_equal_measures_are_decided_by_the_validation_loss():
    assert is_better({"recall@1": 0.6, "validation_loss": 9.0}, {"recall@1": 0.5, "validation_loss": 1.0})
    assert is_better({"recall@1": 0.5, "validation_loss": 0.9}, {"recall@1": 0.5, "validation_loss": 1.0})
    assert not is_better({"recall@1": 0.5, "validation_loss": 1.0}, {"recall@1": 0.5, "validation_loss": 1.0})
    assert is_better({"validation_loss": 0.9}, {"validation_loss": 1.0})
    assert not is_better({"recall@1": 0.5, "validation_loss": None}, {"recall@1": 0.5, "validation_loss": 1.0})
