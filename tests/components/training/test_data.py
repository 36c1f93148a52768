"""Training data: which columns are recognised, what is dropped and refused, and that no text is on both sides of a split."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from components.errors import InputError
from components.retrieval.corpora.readers.limits import RAISED
from components.retrieval.corpora.rows.read import NO_GOLD_LABEL
from components.retrieval.corpora.rows.roles import recognise
from components.retrieval.corpora.rows.scores import NO_NUMBER, NO_SCORE
from components.training.data import (
    DEMO,
    MEASURED,
    MEASURED_WITH,
    MOST_HELD_OUT,
    REPEATED,
    TrainingData,
    from_columns,
    group_numbers,
    joint_lengths,
    load,
    normalised,
    split,
    token_lengths,
)

FIRST = ["The cat sat.", "A dog ran away.", "Money is short.", "Rivers flow south.", "We walk home."]
SECOND = ["A cat was sitting.", "The dog fled.", "There is no money.", "Streams go south.", "We go home on foot."]
THIRD = ["It is late.", "He sings.", "The bank is open.", "Nobody came.", "Eggs are cheap."]


def lines(rows) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode()


@pytest.mark.parametrize(
    ("columns", "kind", "texts", "label"),
    [
        ({"sentence": FIRST}, "sentences", ["sentence"], None),
        ({"Anything": FIRST}, "sentences", ["Anything"], None),
        ({"sentence_1": FIRST, "sentence_2": SECOND}, "pairs", ["sentence_1", "sentence_2"], None),
        ({"b": FIRST, "c": SECOND}, "pairs", ["b", "c"], None),
        ({"sentence": SECOND, "topic": THIRD, "compressed": FIRST}, "pairs", ["compressed", "sentence"], None),
        ({"Positive": SECOND, "Query": FIRST}, "pairs", ["Query", "Positive"], None),
        ({"id": [1, 2, 3, 4, 5], "question": FIRST, "answer": SECOND}, "pairs", ["question", "answer"], None),
        (
            {"negative": THIRD, "positive": SECOND, "anchor": FIRST},
            "triplets",
            ["anchor", "positive", "negative"],
            None,
        ),
        (
            {"sentence1": FIRST, "sentence2": SECOND, "score": [5, 3, 2.5, 1, 0]},
            "scored",
            ["sentence1", "sentence2"],
            "score",
        ),
        (
            {"label": [0.5, 1, 0, 0.25, 0], "text1": FIRST, "text2": SECOND},
            "scored",
            ["text1", "text2"],
            "label",
        ),
        (
            {"premise": FIRST, "hypothesis": SECOND, "label": [0, 1, 2, 0, 1]},
            "labelled",
            ["premise", "hypothesis"],
            "label",
        ),
        (
            {"gold_label": list("abcab"), "sentence1": FIRST, "sentence2": SECOND},
            "labelled",
            ["sentence1", "sentence2"],
            "gold_label",
        ),
        (
            {"question1": FIRST, "question2": SECOND, "is_duplicate": ["1", "0", "1", "0", "0"]},
            "labelled",
            ["question1", "question2"],
            "is_duplicate",
        ),
    ],
)
def test_columns_are_recognised(columns, kind, texts, label):
    recognised = recognise(columns, "file")
    assert (recognised.kind, list(recognised.texts.values()), recognised.label) == (kind, texts, label)
    data = from_columns(columns, "file")
    assert data.kind == kind
    assert [list(values) for values in data.columns.values()] == [columns[name] for name in texts]
    assert (data.labels is None) == (label is None)


def test_a_person_may_know_better():
    columns = {"a": FIRST, "b": SECOND, "c": THIRD, "n": [0, 1, 0, 1, 1]}
    with pytest.raises(InputError, match="not clear"):
        from_columns(columns, "file")
    triplets = from_columns(columns, "file", {"anchor": "c", "positive": "a", "negative": "b"})
    assert triplets.columns == {"anchor": tuple(THIRD), "positive": tuple(FIRST), "negative": tuple(SECOND)}
    labelled = from_columns(columns, "file", {"sentence1": "b", "sentence2": "a", "label": "n"})
    assert labelled.labels.tolist() == [0, 1, 0, 1, 1]
    assert labelled.read_from == {"sentence1": "b", "sentence2": "a", "label": "n"}


def test_lists_are_a_sentence_and_its_short_version():
    data = from_columns({"set": [list(pair) for pair in zip(SECOND, FIRST, strict=True)]}, "file")
    assert data.columns == {"anchor": tuple(FIRST), "positive": tuple(SECOND)}


@pytest.mark.parametrize("no_label", [-1, "-1", "-", None, float("nan"), ""])
def test_rows_without_a_gold_label_are_dropped_and_counted(no_label):
    labels = ["entailment", no_label, "contradiction", "neutral", no_label]
    if isinstance(no_label, int):
        labels = [0, no_label, 2, 1, no_label]
    columns = {"premise": [*FIRST, *THIRD], "hypothesis": [*SECOND, *FIRST], "label": labels * 2}
    data = from_columns(columns, "file")
    assert data.dropped == {NO_GOLD_LABEL: 4}
    assert len(data) == 6
    assert data.label_names == ("entailment", "neutral", "contradiction")
    assert data.labels.tolist() == [0, 2, 1] * 2
    assert data.labels.dtype == np.int64
    assert any("6 of 10" in warning for warning in data.warnings)


def test_numbers_of_classes_are_kept_in_their_order():
    columns = {"sentence1": FIRST, "sentence2": SECOND, "label": ["10", "2", "2.0", "7", "10"]}
    data = from_columns(columns, "file")
    assert data.label_names == ("2", "7", "10")
    assert data.labels.tolist() == [2, 0, 0, 1, 2]


@pytest.mark.parametrize(
    ("scores", "score_range", "expected"),
    [
        ([0.0, 0.5, 1, 0.25, 0.75], (0, 1), [0, 0.5, 1, 0.25, 0.75]),
        ([-1, 0, 1, 0.5, -0.5], (-1, 1), [0, 0.5, 1, 0.75, 0.25]),
        (["5", "0", "2.5", "4", "1"], (0, 5), [1, 0, 0.5, 0.8, 0.2]),
        ([10, 0, 5, 7, 1], (0, 10), [1, 0, 0.5, 0.7, 0.1]),
        ([100, 0, 50, 7, 1], (0, 100), [1, 0, 0.5, 0.07, 0.01]),
    ],
)
def test_scores_are_scaled_to_0_and_1(scores, score_range, expected):
    data = from_columns({"sentence1": FIRST, "sentence2": SECOND, "score": scores}, "file")
    assert data.score_range == score_range
    assert data.labels.dtype == np.float32
    np.testing.assert_allclose(data.labels, expected, rtol=1e-6)


def test_bad_rows_are_dropped_and_counted():
    columns = {
        "sentence1": [*FIRST, "", None, 5, "x", "y", FIRST[0]],
        "sentence2": [*SECOND, "a", "b", "c", "d", "e", SECOND[0]],
        "score": [1, 2, 3, 4, 5, 1, 1, 1, "nan", "many", 1],
    }
    data = from_columns(columns, "file", dropped={"broken JSON": 2})
    assert len(data) == 5
    assert data.dropped == {
        "broken JSON": 2,
        "empty": 1,
        "no text": 1,
        "not text": 1,
        NO_SCORE: 1,
        NO_NUMBER: 1,
        REPEATED: 1,
    }


def test_pairs_of_the_same_text_teach_nothing():
    pairs = {"anchor": [*FIRST, "Same!"], "positive": [*SECOND, "same"]}
    for columns in (pairs, {**pairs, "negative": [*THIRD, "Other."]}):
        assert from_columns(columns, "file").dropped == {"both texts are the same": 1}


def test_one_row_in_ten_may_be_lost_without_a_warning():
    def warnings(lost):
        return from_columns({"sentence": [*FIRST, *SECOND[:4], *[""] * lost]}, "file").warnings

    assert warnings(1) == ()
    assert warnings(2) == ("Only 9 of 11 rows can be used (2 rows: empty).",)


def test_texts_that_differ_in_vowel_signs_alone_are_two_texts():
    """In Hindi endings are written as vowel signs: a child plays, children play."""
    one = ["बच्चा खेलता है", "लड़का दौड़ता है", "घोड़ा भागता है", "बेटा सोता है"]
    many = ["बच्चे खेलते हैं", "लड़के दौड़ते हैं", "घोड़े भागते हैं", "बेटे सोते हैं"]
    data = from_columns({"anchor": one, "positive": many}, "file")
    assert (len(data), dict(data.dropped)) == (4, {})
    assert len({normalised(text) for text in one + many}) == 8


@pytest.mark.parametrize("path", MEASURED_WITH, ids=lambda path: path.name)
def test_what_the_demo_is_measured_with_is_never_trained_on(path):
    with pytest.raises(InputError, match="Diagnose's demo measures with"):
        load(path)
    row = json.loads(path.read_text(encoding="utf-8").splitlines()[3])
    text = row.get("compressed") or list(row.values())[1]
    data = from_columns({"query": [*FIRST, text.upper()], "positive": [*SECOND, "Another answer."]}, "file")
    assert data.dropped == {MEASURED: 1}


def message(error) -> str:
    """What is wrong, after a look at the other two sentences; a name of a file may begin the first."""
    assert all(part[0].isupper() for part in (error.expected, error.fix))
    assert all(part.endswith((".", RAISED)) for part in (error.problem, error.expected, error.fix))
    return error.problem


@pytest.mark.parametrize(
    ("content", "name", "expected"),
    [
        (b"", "a.jsonl", "it is empty"),
        (b"\n\n", "a.csv", "it is empty"),
        (b"sentence1,sentence2,score\n", "a.csv", "it is empty"),
        (lines([{"anchor": "a b", "positive": "c d"}]), "a.jsonl", "1 usable row"),
        (lines([{"anchor": "a b", "positive": "c d"}] * 9), "a.jsonl", "1 usable row (8 rows: repeated)"),
        (
            lines({"sentence1": a, "sentence2": b, "label": 1} for a, b in zip(FIRST, SECOND, strict=True)),
            "a.jsonl",
            "the label '1'",
        ),
        (
            lines({"sentence1": a, "sentence2": b, "score": 4} for a, b in zip(FIRST, SECOND, strict=True)),
            "a.jsonl",
            "the label '4'",
        ),
        (
            lines({"sentence1": a, "sentence2": b, "label": -1} for a, b in zip(FIRST, SECOND, strict=True)),
            "a.jsonl",
            "5 rows: no gold label",
        ),
        (
            b"sentence1,sentence2,score\na b,c d,nan\ne f,g h,NaN\ni j,k l,nan\nm n,o p,nan\n",
            "a.csv",
            "'score' of a.csv holds no numbers, but values such as 'NaN'",
        ),
        (
            b'{"text1": "a b", "text2": "c d", "score": NaN}\n{"text1": "e f", "text2": "g h", "score": NaN}\n',
            "a.jsonl",
            "2 rows: no score (unknown)",
        ),
        (
            lines({"sentence1": a, "sentence2": 3, "score": 4} for a in FIRST),
            "a.jsonl",
            "column 'sentence2' of a.jsonl holds no texts, but values such as '3'",
        ),
        (  # label and hypothesis swapped
            lines({"premise": a, "hypothesis": 1, "label": b} for a, b in zip(FIRST, SECOND, strict=True)),
            "a.jsonl",
            "column 'hypothesis' of a.jsonl holds no texts",
        ),
        (  # score and sentence swapped
            lines({"sentence1": a, "sentence2": "x y", "score": b} for a, b in zip(FIRST, SECOND, strict=True)),
            "a.jsonl",
            "column 'score' of a.jsonl holds no numbers",
        ),
        (
            lines({"sentence1": f"a {i}", "sentence2": f"b {i}", "label": f"c {i}"} for i in range(101)),
            "a.jsonl",
            "101 different values",
        ),
        (
            lines(
                {"sentence1": a, "sentence2": b, "score": 200 - 100 * i}
                for i, (a, b) in enumerate(zip(FIRST, SECOND, strict=True))
            ),
            "a.jsonl",
            "scores from -200 to 200",
        ),
        (lines({"a": 1, "b": 2} for _ in range(9)), "a.jsonl", "not clear which hold the texts"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "a.csv", "a picture in spite of its name"),
        (b"PK\x03\x04", "a.jsonl", "a zip archive"),
        (b"x", "a.bin", "format of a.bin is not known"),
    ],
)
def test_bad_files_are_refused_before_anything_starts(content, name, expected):
    with pytest.raises(InputError) as caught:
        load(content, name)
    assert expected in message(caught.value)


def test_swapped_queries_and_answers_are_noticed():
    long = [f"{a} {b} {c}" for a, b, c in zip(FIRST, SECOND, THIRD, strict=True)]
    assert from_columns({"query": FIRST, "positive": long}, "file").warnings == ()
    (warning,) = from_columns({"query": long, "positive": FIRST}, "file").warnings
    assert "swapped" in warning


def test_a_file_that_is_too_large_is_refused_unread(tmp_path):
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as file:
        file.truncate(10 << 30)  # a hole: no such disk is needed
    with pytest.raises(InputError) as caught:
        load(path)
    assert "huge.jsonl has 10.0 GiB" in message(caught.value)
    assert "python -m components train" in caught.value.fix


def test_rows_beyond_the_operators_limit_are_refused(monkeypatch):
    monkeypatch.setenv("BERT_INTERNALS_CORPUS_SENTENCES", "3")
    rows = lines({"anchor": a, "positive": b} for a, b in zip(FIRST, SECOND, strict=True))
    with pytest.raises(InputError, match="5 rows"):
        load(rows, "a.jsonl")


def test_unknown_sources_are_refused(tmp_path):
    with pytest.raises(InputError, match="no included data 'demo:chess'"):
        load("demo:chess")
    with pytest.raises(InputError, match="There is no file"):
        load(tmp_path / "nothing.jsonl")


def test_parts_of_a_data_set_are_joined(tmp_path):
    paths = []
    for number in range(2):
        paths.append(tmp_path / f"{number}.jsonl")
        paths[-1].write_bytes(
            lines({"anchor": f"{a} {number}", "positive": b} for a, b in zip(FIRST, SECOND, strict=True))
        )
    data = load(paths, "set")
    assert len(data) == 10
    assert data.name == "set"


def test_the_hash_is_of_texts_labels_and_order():
    columns = {"sentence1": FIRST, "sentence2": SECOND, "label": [0, 1, 0, 1, 1]}
    data = from_columns(columns, "one")
    assert data.sha256 == from_columns(columns, "another").sha256
    assert data.sha256 != data.take([1, 0, 2, 3, 4]).sha256
    assert data.sha256 != from_columns({**columns, "label": [0, 1, 0, 0, 1]}, "one").sha256
    assert data.sha256 != from_columns({**columns, "sentence1": [*FIRST[:-1], "Other."]}, "one").sha256
    assert data.take(range(5)).sha256 == data.sha256
    assert replace(data, held_out=(3, 4)).sha256 != data.sha256


def test_what_makes_texts_the_same():
    assert normalised("  The CAT, sat!") == normalised("the cat sat")
    assert normalised("ﬁle") == normalised("file")
    assert normalised("the cats") != normalised("the cat")
    assert normalised("!?") == "!?"


def chain(length: int, first: int = 0) -> list[tuple[str, str]]:
    """Rows that hang together: each shares a text with the next one."""
    return [(f"text {first + i}", f"Text {first + i + 1}!") for i in range(length)]


def pairs_of(rows) -> TrainingData:
    first, second = zip(*rows, strict=True)
    return TrainingData("pairs", "rows", {"anchor": first, "positive": second})


def test_a_chain_of_shared_texts_is_one_group():
    rows = [*chain(4), ("alone", "apart"), *chain(3, 100), ("APART.", "text 103")]
    groups = group_numbers(pairs_of(rows))
    assert len(set(groups[:4])) == 1
    assert len(set(groups[4:])) == 1  # "apart" and "text 103" tie the rest together
    assert groups[0] != groups[4]


@pytest.mark.parametrize("seed", range(60))
def test_no_text_is_on_both_sides(seed):
    """Random rows over few texts, with other case and punctuation: chains of every length."""
    random = np.random.default_rng(seed)
    count, texts = int(random.integers(4, 80)), int(random.integers(3, 200))
    spellings = ("text {}", "TEXT {}", " Text {}! ", "text, {}")

    def some() -> str:
        return spellings[random.integers(4)].format(random.integers(texts))

    data = pairs_of([(some(), some()) for _ in range(count)])
    share = float(random.uniform(0.05, 0.5))
    if len(set(group_numbers(data))) == 1:
        with pytest.raises(InputError, match="share texts with each other"):
            split(data, share, seed)
        return
    parts = split(data, share, seed)
    assert sorted([*parts.train, *parts.held_out]) == list(range(count))
    assert len(parts.train)
    assert len(parts.held_out)
    sides = [
        {normalised(text) for name in data.columns for text in data.take(rows).columns[name]}
        for rows in (parts.train, parts.held_out)
    ]
    assert sides[0].isdisjoint(sides[1])
    assert parts.overlap == 0
    assert parts.groups == len(set(group_numbers(data)))
    again = split(data, share, seed)
    assert again.train.tolist() == parts.train.tolist()
    assert not parts.train.flags.writeable


def test_the_share_is_met_and_limited():
    data = pairs_of((f"a {i}", f"b {i}") for i in range(50))
    assert len(split(data, 0.2, 1).held_out) == 10
    assert split(data, 0.2, 1).held_out.tolist() != split(data, 0.2, 2).held_out.tolist()
    many = pairs_of((f"a {i}", f"b {i}") for i in range(5 * MOST_HELD_OUT + 500))
    assert len(split(many, 0.5).held_out) == MOST_HELD_OUT
    assert len(split(replace(many, held_out=tuple(range(MOST_HELD_OUT + 1)))).held_out) == MOST_HELD_OUT


def test_fewer_rows_to_train_on_are_drawn_by_the_seed():
    data = pairs_of((f"a {i}", f"b {i}") for i in range(50))
    whole, part = split(data, 0.2, 1), split(data, 0.2, 1, max_train=7)
    assert part.held_out.tolist() == whole.held_out.tolist()
    assert len(part.train) == 7
    assert set(part.train) < set(whole.train)
    assert part.train.tolist() == sorted(part.train)


def test_token_lengths(embedded):
    lengths = token_lengths(load(DEMO["demo:pairs"]), embedded.tokenization)
    assert set(lengths) == {"anchor", "positive"}
    assert lengths["anchor"].shape == (310,)
    first = load("demo:pairs").columns["anchor"][0]
    assert lengths["anchor"][0] == len(embedded.tokenization.tokenize(first).tokens)
    assert 3 < lengths["anchor"].mean() < lengths["positive"].mean() < 40


def test_the_length_of_two_texts_is_that_of_both_read_together(embedded):
    data, tokenization = pairs_of(zip(FIRST, SECOND, strict=True)), embedded.tokenization
    (lengths,) = joint_lengths(token_lengths(data, tokenization), tokenization).values()
    assert lengths.tolist() == [len(tokenization.tokenize(*texts).tokens) for texts in zip(FIRST, SECOND, strict=True)]


def test_the_demos_are_files_of_this_project():
    assert all(isinstance(path, Path) and path.is_file() for path in DEMO.values())
