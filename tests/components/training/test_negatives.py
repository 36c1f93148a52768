"""Wrong answers are never correct ones; hard ones are those of BM25 and sentence-transformers; each objective gets its rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from components.errors import InputError
from components.training.data import TrainingData, from_columns, group_numbers, load, split
from components.training.negatives import (
    binary_classes,
    dataset_columns,
    few_answers,
    find_negatives,
    training_rows,
    with_deleted_words,
    wrong_of_each,
)
from components.training.objectives import OBJECTIVES
from components.training.settings import TrainingSettings

SETTINGS = TrainingSettings()


def pairs_of(rows, name="rows") -> TrainingData:
    first, second = zip(*rows, strict=True)
    return TrainingData("pairs", name, {"anchor": first, "positive": second})


def embed_words(texts, role):
    """A vector of hashed words, the same in every process."""
    vectors = np.zeros((len(texts), 256), np.float32)
    for row, text in enumerate(texts):
        for word in text.casefold().split():
            vectors[row, sum(map(ord, word)) % 256] += 1
    return vectors


@pytest.fixture(scope="module")
def demo():
    return load("demo:pairs")


@pytest.mark.parametrize("kind", ["random", "bm25", "model"])
@pytest.mark.parametrize("seed", range(5))
def test_a_wrong_answer_is_never_a_correct_one(kind, seed):
    random = np.random.default_rng(seed)
    data = pairs_of((f"query {random.integers(30)}", f"answer {random.integers(30)} x") for _ in range(40))
    groups = group_numbers(data)
    negatives = find_negatives(data, kind, seed, embed_words)
    assert (groups[negatives.rows] != groups).all()
    assert negatives.rows.tolist() == find_negatives(data, kind, seed, embed_words).rows.tolist()


def test_random_wrong_answers_are_spread_over_all_rows(demo):
    rows = find_negatives(demo, "random", seed=1).rows
    assert len(set(rows)) > 0.5 * len(demo)
    assert rows.tolist() != find_negatives(demo, "random", seed=2).rows.tolist()


def test_bm25_takes_the_best_wrong_answer(demo):
    from components.retrieval.search.lexical import make_ranker

    negatives = find_negatives(demo, "bm25", seed=0)
    ranker = make_ranker("bm25", demo.columns["positive"])
    without = 0
    for row, anchor in enumerate(demo.columns["anchor"]):
        scores = ranker.scores(anchor)
        scores[row] = 0
        if scores.max() > 0:
            assert scores[negatives.rows[row]] == scores.max()
        else:
            without += 1
    assert negatives.at_random == without
    assert 0 < without < len(demo) / 2


def test_the_models_wrong_answers_are_those_of_sentence_transformers(demo, embedded_folder):
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.util import mine_hard_negatives

    from components.training.negatives import RELATIVE_MARGIN

    model = SentenceTransformer(str(embedded_folder), device="cpu")
    part = demo.take(range(60))
    mined = mine_hard_negatives(
        Dataset.from_dict({name: list(texts) for name, texts in part.columns.items()}),
        model,
        relative_margin=RELATIVE_MARGIN,
        num_negatives=1,
        range_max=60,
        verbose=False,
    )
    expected = dict(zip(mined["anchor"], mined["negative"], strict=True))

    def embed(texts, role):
        return (model.encode_query if role == "query" else model.encode_document)(list(texts))

    negatives = find_negatives(part, "model", 0, embed)
    ours = {
        anchor: part.columns["positive"][row]
        for anchor, row in zip(part.columns["anchor"], negatives.rows, strict=True)
    }
    assert len(expected) == 60 - negatives.at_random
    assert {anchor: ours[anchor] for anchor in expected} == expected


def test_no_wrong_answer_is_known_where_all_pairs_hang_together():
    data = pairs_of((f"a {i}", f"a {i + 1}") for i in range(10))
    for kind in ("random", "bm25"):
        with pytest.raises(InputError, match="share texts with each other"):
            find_negatives(data, kind)


def test_the_work_can_be_stopped_and_reports_progress(demo):
    from components.jobs import Stopped

    seen = []
    find_negatives(demo, "bm25", progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(demo), len(demo))
    with pytest.raises(Stopped):
        find_negatives(demo, "bm25", is_stopped=lambda: True)


def test_pairs_and_wrong_answers_in_equal_number(demo):
    for key in ("contrastive", "online-contrastive", "relevance"):
        rows = training_rows(SETTINGS, key, demo)
        assert rows.kind == "labelled"
        assert np.bincount(rows.labels).tolist() == [len(demo), len(demo)]
        assert rows.labels.dtype == np.int64
        right = set(zip(*demo.columns.values(), strict=True))
        for first, second, label in zip(*rows.columns.values(), rows.labels, strict=True):
            assert ((first, second) in right) == bool(label)


def test_without_wrong_answers_only_ones_are_left(demo):
    """The settings that provoke a collapse."""
    rows = training_rows(TrainingSettings(negatives="none"), "contrastive", demo)
    assert rows.labels.tolist() == [1] * len(demo)
    with pytest.raises(InputError, match="no wrong answers"):
        training_rows(TrainingSettings(negatives="none"), "triplet", demo)


def test_ranking_takes_hard_wrong_answers_as_a_third_column(demo):
    assert training_rows(SETTINGS, "mnrl", demo) is demo
    rows = training_rows(TrainingSettings(negatives="bm25"), "mnrl", demo)
    assert list(rows.columns) == ["anchor", "positive", "negative"]
    assert list(dataset_columns(SETTINGS, "mnrl", rows)) == ["anchor", "positive", "negative"]


@pytest.mark.parametrize("kind", ["none", "random", "bm25"])
@pytest.mark.parametrize("source", ["demo:pairs", "demo:not", "demo:scored"])
def test_wrong_answers_of_a_row_are_counted_without_finding_them(kind, source):
    settings, data = TrainingSettings(negatives=kind), load(source).take(np.arange(60))
    rows = training_rows(settings, "mnrl", data)
    assert wrong_of_each(settings, data) == sum(name.startswith("negative") for name in rows.columns)


def test_premises_with_labels_serve_every_objective_that_takes_them():
    data = load("demo:nli")
    pairs = training_rows(SETTINGS, "mnrl", data)
    assert len(pairs) == 105
    assert pairs.dropped == {"not entailment": 210}
    triplets = training_rows(SETTINGS, "triplet", data)
    assert len(triplets) == 105
    row = {name: texts[0] for name, texts in triplets.columns.items()}
    first = {data.label_names[data.labels[i]]: data.columns["sentence2"][i] for i in range(3)}
    assert row == {
        "anchor": data.columns["sentence1"][0],
        "positive": first["entailment"],
        "negative": first["contradiction"],
    }
    binary = training_rows(SETTINGS, "contrastive", data)
    assert np.bincount(binary.labels).tolist() == [105, 105]
    assert sum(binary.dropped.values()) == 105
    assert training_rows(SETTINGS, "softmax", data) is data
    scored = training_rows(SETTINGS, "cosine", data)
    assert scored.labels.dtype == np.float32
    assert set(scored.labels.tolist()) == {0.0, 1.0}


def test_scored_pairs_serve_ranking_by_their_best_pairs():
    data = load("demo:scored")
    pairs = training_rows(SETTINGS, "mnrl", data)
    assert len(pairs) == int((data.labels >= np.float32(0.8)).sum())
    assert pairs.labels is None
    for key in ("cosine", "regression", "relevance"):
        assert training_rows(SETTINGS, key, data) is data


def test_every_objective_has_rows_from_every_kind_that_it_takes(demo):
    triplets = training_rows(TrainingSettings(negatives="bm25"), "triplet", demo)
    sentences = training_rows(SETTINGS, "simcse", demo)
    kinds = {
        "pairs": demo,
        "triplets": triplets,
        "sentences": sentences,
        "scored": load("demo:scored"),
        "labelled": load("demo:nli"),
    }
    tsdae = TrainingSettings(objectives=("tsdae",), adapter=False)
    for key, objective in OBJECTIVES.items():
        for kind, data in kinds.items():
            if kind not in objective.takes:
                with pytest.raises(InputError, match="cannot learn"):
                    training_rows(SETTINGS, key, data)
                continue
            rows = training_rows(SETTINGS, key, data)
            columns = dataset_columns(tsdae if key == "tsdae" else SETTINGS, key, rows)
            lengths = {len(values) for values in columns.values()}
            assert lengths == {len(rows)}
            assert ("label" in columns) == (objective.rows in {"scored", "labelled", "binary"})
            texts = len(columns) - ("label" in columns)
            assert texts == (3 if objective.rows == "triplets" or (key == "mnrl" and kind == "triplets") else 2)


def test_sentences_are_all_different_texts(demo):
    rows = training_rows(SETTINGS, "simcse", demo)
    assert len(rows) == 620
    assert len(set(rows.columns["sentence"])) == 620
    nli = training_rows(SETTINGS, "simcse", load("demo:nli"))
    assert len(nli) == 105 + 315


def test_wrong_answers_come_from_the_same_side_of_the_split(demo):
    parts = split(demo, 0.2, 10)
    train, held_out = (
        training_rows(SETTINGS, "contrastive", demo.take(rows)) for rows in (parts.train, parts.held_out)
    )
    texts = [{text for column in rows.columns.values() for text in column} for rows in (train, held_out)]
    assert texts[0].isdisjoint(texts[1])


def test_unknown_labels_are_refused_where_two_classes_are_needed():
    columns = {"sentence1": tuple("abcd"), "sentence2": tuple("efgh")}
    data = TrainingData("labelled", "file", columns, np.array([0, 1, 2, 0]), ("sport", "politics", "arts"))
    with pytest.raises(InputError, match="sport, politics, arts"):
        training_rows(SETTINGS, "contrastive", data)
    assert training_rows(SETTINGS, "softmax", data) is data
    named = TrainingData("labelled", "file", columns, np.array([0, 1, 1, 0]), ("Not_Entailment", "Entailment"))
    assert binary_classes(named) == (1, 0)


def test_numbers_of_classes_mean_something_only_where_there_are_two():
    """In SNLI 0 is entailment: a model trained the wrong way round would learn to contradict."""
    columns = {"sentence1": tuple("abcd"), "sentence2": tuple("efgh")}
    two = TrainingData("labelled", "file", columns, np.array([0, 1, 1, 0]), ("0", "1"))
    assert binary_classes(two) == (1, 0)
    three = TrainingData("labelled", "file", columns, np.array([0, 1, 2, 0]), ("0", "1", "2"))
    premises = replace(two, read_from={"sentence1": "Premise", "sentence2": "hypothesis", "label": "label"})
    for unclear in (three, premises):
        with pytest.raises(InputError, match="labels of file are 0, 1"):
            training_rows(SETTINGS, "contrastive", unclear)


def test_too_few_rows_are_refused():
    columns = {"sentence1": tuple("abcd"), "sentence2": tuple("efgh")}
    data = TrainingData("scored", "file", columns, np.array([0.9, 0, 0, 0], np.float32))
    with pytest.raises(InputError, match="has 1 row from"):
        training_rows(SETTINGS, "mnrl", data)


def test_deleted_words():
    text = "one two three four five six seven eight nine ten"
    random = np.random.default_rng(0)
    kept = [with_deleted_words(text, 0.6, random).split() for _ in range(2_000)]
    assert np.mean([len(words) for words in kept]) == pytest.approx(4.0, abs=0.1)
    order = {word: number for number, word in enumerate(text.split())}
    assert all([order[word] for word in words] == sorted(order[word] for word in words) for words in kept)
    assert with_deleted_words("alone", 0.95, random) == "alone"
    assert with_deleted_words(text, 0.0, random) == text


def test_deleted_words_are_those_of_the_seed(demo):
    settings = TrainingSettings(objectives=("tsdae",), adapter=False, seed=4)
    rows = training_rows(settings, "tsdae", demo)
    columns = dataset_columns(settings, "tsdae", rows)
    assert columns == dataset_columns(settings, "tsdae", rows)
    assert columns["sentence"] == list(rows.columns["sentence"])
    assert all(columns["damaged"])


def test_few_answers_are_said_and_one_answer_measures_nothing():
    """60 questions of a chat bot with three answers: a held-out part with one of them would always be right."""
    from components.training.held_out import held_out_of

    answers = ("Please restart it.", "Please write to us.", "Please wait a day.")
    columns = {
        "question": [f"What do I do about problem {number}?" for number in range(60)],
        "answer": [answers[number % 3] for number in range(60)],
    }
    data = from_columns(columns, "chats")
    parts = split(data, 0.2, 1)
    settings = replace(SETTINGS, objectives=("mnrl",), batch_size=16)
    said = few_answers(settings, data, parts)
    assert len(said) == 2
    assert "The 20 held-out rows have one answer in all: whether queries find theirs cannot be measured" in said[0]
    assert "at most 2 of its 16 rows are filled, and a query learns beside 1 wrong answer." in said[1]
    held_out = data.take(parts.held_out)
    measured = held_out_of(settings, "encoder", held_out, held_out)
    assert measured.task == "none"

    class Model:
        """A model with a vector for each text."""

        def encode(self, texts, **_):
            return np.eye(len(texts), 64, dtype=np.float32)

    assert not [name for name in measured.measure(Model()) if "recall" in name]
    many = from_columns({**columns, "answer": [f"Please do thing {number}." for number in range(60)]}, "chats")
    assert few_answers(settings, many, split(many, 0.2, 1)) == ()
