"""Rows of texts: formats in use are read as their authors mean them, and every row that is not used has its reason."""

from __future__ import annotations

import json
import time
from decimal import Decimal

import pytest

from components.errors import InputError
from components.retrieval.corpora.columns import flattened
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.corpora.rows.parts import ALL, find_parts
from components.retrieval.corpora.rows.passages import opened
from components.retrieval.corpora.rows.roles import UnclearColumns, recognise
from components.retrieval.corpora.rows.scores import NO_NUMBER, NO_SCORE, read_scores
from components.retrieval.evaluation.sts import read_scored_pairs
from components.training.data import load, split
from tests.support.row_files import THINGS, answered, asked, lines, parts_file, scored, wrong

TRIPLES = {
    "anchor": tuple(map(asked, THINGS)),
    "positive": tuple(map(answered, THINGS)),
    **{
        name: tuple(wrong(thing)[place] for thing in THINGS)
        for place, name in enumerate(("negative", "negative_2", "negative_3"))
    },
}


def passages(texts: list[str]) -> list[dict[str, str]]:
    return [{"docid": str(number), "title": "", "text": text} for number, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (  # for training of BGE and E5
            [{"query": asked(thing), "pos": [answered(thing)], "neg": wrong(thing)} for thing in THINGS],
            {"anchor": "query", "positive": "pos", "negative": "neg"},
        ),
        (
            [{"query": asked(thing), "positive": answered(thing), "negatives": wrong(thing)} for thing in THINGS],
            {"anchor": "query", "positive": "positive", "negative": "negatives"},
        ),
        (  # lists that a spreadsheet kept as text, in JSON and in Python
            [
                {"query": asked(thing), "pos": json.dumps([answered(thing)]), "neg": str(wrong(thing))}
                for thing in THINGS
            ],
            {"anchor": "query", "positive": "pos", "negative": "neg"},
        ),
        (  # sentence-transformers' columns
            [
                {
                    "negative_3": wrong(thing)[2],
                    "negative_1": wrong(thing)[0],
                    "anchor": asked(thing),
                    "negative_2": wrong(thing)[1],
                    "positive": answered(thing),
                }
                for thing in THINGS
            ],
            {
                "anchor": "anchor",
                "positive": "positive",
                "negative": "negative_1",
                "negative_2": "negative_2",
                "negative_3": "negative_3",
            },
        ),
        (  # Tevatron's
            [
                {
                    "query_id": str(number),
                    "query": asked(thing),
                    "positive_passages": passages([answered(thing)]),
                    "negative_passages": passages(wrong(thing)),
                }
                for number, thing in enumerate(THINGS)
            ],
            {"anchor": "query", "positive": "positive_passages", "negative": "negative_passages"},
        ),
        (  # an object in each row
            [{"set": {"query": asked(thing), "pos": [answered(thing)], "neg": wrong(thing)}} for thing in THINGS],
            {"anchor": "set.query", "positive": "set.pos", "negative": "set.neg"},
        ),
    ],
    ids=["bge", "negatives", "written", "numbered", "tevatron", "object"],
)
def test_lists_of_right_and_wrong_answers(rows, columns):
    data = load(lines(rows), "rows.jsonl")
    assert data.kind == "triplets"
    assert dict(data.columns) == TRIPLES
    assert data.read_from == columns
    assert data.reading.columns == columns
    assert (data.reading.rows, data.reading.used, data.reading.lost) == (6, 6, 0)


def test_places_of_a_list_without_text_are_skipped_and_counted():
    rows = [
        {
            "anchor": asked(thing),
            "positive": [answered(thing), None],
            "negative_1": ["a b c", None],
            "negative_2": "d e",
        }
        for thing in THINGS
    ]
    data = load(lines(rows), "rows.jsonl")
    assert data.columns["positive"] == tuple(map(answered, THINGS))
    assert set(zip(data.columns["negative"], data.columns["negative_2"], strict=True)) == {("a b c", "d e")}
    assert "12 places in lists hold no text and are skipped." in data.reading.notes
    rows = [
        {
            "query": asked(thing),
            "pos": [answered(thing)],
            "neg": [*passages(["A wrong one"]), {"title": "", "text": None}],
        }
        for thing in THINGS
    ]
    data = load(lines(rows), "rows.jsonl")
    assert set(data.columns["negative"]) == {"A wrong one"}
    assert "6 places in lists hold no text and are skipped." in data.reading.notes
    rows = [{"query": asked(thing), "pos": [answered(thing)], "neg": ["A wrong one", None]} for thing in THINGS]
    rows[1]["neg"] = [None]
    data = load(lines(rows), "rows.jsonl")
    assert data.dropped == {"no wrong answer": 1}


def test_wrong_answers_that_are_right_ones_are_left_out_and_counted():
    rows = [
        {"query": asked(thing), "pos": [answered(thing)], "neg": [answered(thing).upper(), "A bad one."]}
        for thing in THINGS
    ]
    rows[3]["neg"] = [answered(THINGS[3])]
    data = load(lines(rows), "rows.jsonl")
    assert len(data) == 5
    assert set(data.columns["negative"]) == {"A bad one."}
    assert data.dropped == {"its wrong answers are its right ones": 1}
    assert "5 wrong answers that equal a right answer of the same row are left out." in data.reading.notes


def test_a_wrong_answer_that_another_row_of_its_query_calls_right_is_left_out_and_counted():
    rows = [{"query": asked(thing), "pos": [answered(thing)], "neg": ["A bad one."]} for thing in THINGS]
    other = "Use vinegar on the kettle."
    rows[0]["neg"] = [other.upper(), "A bad one.", *(f"Bad one {number}." for number in range(8))]
    rows.append({"query": asked(THINGS[0]).lower(), "pos": [other], "neg": [answered(THINGS[0])]})
    rows[1]["neg"] = [answered(THINGS[0]), "A bad one."]  # right of another query only
    data = load(lines(rows), "rows.jsonl")
    negatives = {anchor: set() for anchor in data.columns["anchor"]}
    for anchor, negative in zip(data.columns["anchor"], data.columns["negative"], strict=True):
        negatives[anchor].add(negative)
    assert negatives[asked(THINGS[0])] == {"A bad one.", *(f"Bad one {number}." for number in range(6))}
    assert negatives[asked(THINGS[1])] == {answered(THINGS[0]), "A bad one."}
    assert data.dropped == {"its wrong answers are right ones in other rows of its query": 1}
    assert "1 wrong answer that is a right one in another row of the same query is left out." in data.reading.notes
    assert [row.row for row in data.reading.refused] == [7]


def test_what_test_rows_call_right_is_not_looked_at_in_training():
    rows = [
        {"query": asked(thing), "positive": answered(thing), "negative": "A bad one.", "split": "train"}
        for thing in THINGS
    ]
    rows.append({"query": asked(THINGS[0]), "positive": "A bad one.", "negative": "Another.", "split": "test"})
    data = load(lines(rows), "rows.jsonl")
    assert len(data) == len(THINGS)
    assert load(lines(rows), "rows.jsonl", part="all").dropped == {
        "its wrong answers are right ones in other rows of its query": 1
    }


def test_objects_are_opened_by_one_rule_for_rows_and_corpora():
    numbers = {f"n{number}": number for number in range(22)}
    rows = [{"row": {**numbers, "query": asked(thing), "positive": answered(thing)}} for thing in THINGS]
    data = load(lines(rows), "rows.jsonl")
    assert data.read_from == {"anchor": "row.query", "positive": "row.positive"}
    deep = [{"data": {"row": {"query": asked(thing), "positive": answered(thing)}}} for thing in THINGS]
    data = load(lines(deep), "rows.jsonl")
    assert data.read_from == {"anchor": "data.row.query", "positive": "data.row.positive"}
    assert "The column data.row holds objects, which are read as the columns query, positive." in data.reading.notes
    late = [*({"query": asked(thing)} for thing in THINGS), {"query": "A last query", "late": 1}]
    columns = {"row": [*late, "no object"], "row.query": [1] * 8}
    assert opened(columns)[0] == flattened(columns)
    assert list(flattened(columns)) == ["row", "row.query (2)", "row.late", "row.query"]
    assert flattened(columns)["row"] == [None] * 7 + ["no object"]


def test_keys_beyond_the_most_columns_are_named_and_stay():
    numbers = {f"n{number}": number for number in range(300)}
    rows = [{"row": {**numbers, "query": asked(thing), "positive": answered(thing)}} for thing in THINGS]
    data = load(lines(rows), "rows.jsonl")
    assert data.columns == {"anchor": tuple(map(asked, THINGS)), "positive": tuple(map(answered, THINGS))}
    (note,) = data.reading.notes
    assert "Beyond 200 columns, these stay in the column row: n197, n198," in note
    columns = flattened({"row": [row["row"] for row in rows]})
    assert len(columns) == 200
    assert columns["row"][0] == {f"n{number}": number for number in range(197, 300)}


def test_the_time_for_a_list_that_is_written_as_text_grows_with_its_length():
    for hostile in ("['a'" + " " * 300_000 + "x]", "['a'," + " " * 300_000 + "x]", "[" + "'a'," * 100_000 + "'b]"):
        start = time.perf_counter()
        assert opened({"pos": [hostile]})[0]["pos"] == [hostile]
        assert time.perf_counter() - start < 5  # quadratic: minutes
    for no_list in (r"['\x']", "['a\nb']", "['a' 'b', 1]", "[1]", "[[", "[Applause]"):
        assert opened({"pos": [no_list]}) == ({"pos": [no_list]}, [])
    assert opened({"pos": ["['a', None ,\"b\" , ]", ' ["c", null] ', "[]"]})[0]["pos"] == [
        ["a", None, "b"],
        ["c", None],
        [],
    ]


def test_one_plain_cell_does_not_switch_written_lists_off():
    rows = [{"query": asked(thing), "pos": json.dumps([answered(thing)])} for thing in THINGS]
    rows[2]["pos"] = answered(THINGS[2])
    data = load(lines(rows), "rows.jsonl")
    assert data.columns["positive"] == tuple(map(answered, THINGS))
    assert (
        "The column pos holds lists that are written as text; they are read as lists. 1 other cell of it is read as it stands."
        in data.reading.notes
    )
    few = [{"query": asked(thing), "pos": answered(thing)} for thing in THINGS]
    few[2]["pos"] = json.dumps([answered(THINGS[2])])
    data = load(lines(few), "rows.jsonl")
    assert data.columns["positive"][2] == f'["{answered(THINGS[2])}"]'
    assert (
        "1 cell of the column pos looks like a list; since most others do not, all are read as they stand."
        in data.reading.notes
    )


def test_several_right_answers_make_a_row_each_and_stay_on_one_side():
    rows = [{"question": asked(thing), "answers": [answered(thing), f"Ask about the {thing}."]} for thing in THINGS]
    data = load(lines(rows), "rows.jsonl")
    assert data.kind == "pairs"
    expected = [(asked(thing), answer) for thing in THINGS for answer in (answered(thing), f"Ask about the {thing}.")]
    assert list(zip(data.columns["anchor"], data.columns["positive"], strict=True)) == expected
    assert "6 rows have several right answers, each of which makes a row: 12 in all." in data.reading.notes
    both = [
        {"query": asked(thing), "pos": [answered(thing), f"Ask about the {thing}."], "neg": wrong(thing)}
        for thing in THINGS
    ]
    data = load(lines(both), "rows.jsonl")
    assert len(data) == 12
    assert list(data.columns) == ["anchor", "positive", "negative", "negative_2", "negative_3"]
    assert set(zip(data.columns["anchor"], data.columns["positive"], strict=True)) == set(expected)


def test_different_numbers_of_wrong_answers_make_a_row_each_and_none_is_left_out_silently():
    rows = [
        {"query": asked(thing), "pos": [answered(thing)], "neg": wrong(thing, number)}
        for number, thing in enumerate(THINGS)
    ]
    data = load(lines(rows), "rows.jsonl")
    assert list(data.columns) == ["anchor", "positive", "negative"]
    assert len(data) == 1 + 2 + 3 + 4 + 5
    assert data.dropped == {"no wrong answer": 1}
    assert data.reading.refused[0].row == 1
    many = [{"query": asked(thing), "pos": [answered(thing)], "neg": wrong(thing, 12)} for thing in THINGS]
    data = load(lines(many), "rows.jsonl")
    assert len(data.columns) == 2 + 7
    assert "30 wrong answers beyond the first 7 of a row are left out." in data.reading.notes


def test_triples_of_texts_without_names_of_columns():
    """As ColBERT's and MS MARCO's: a query, a right and a wrong passage in each line."""
    rows = "\n".join("\t".join((asked(thing), answered(thing), wrong(thing)[0])) for thing in THINGS)
    data = load(rows.encode(), "triples.tsv")
    assert data.kind == "triplets"
    assert len(data) == 6
    assert data.columns["anchor"][0] == asked("kettle")
    assert data.columns["negative"][5] == wrong("heater")[0]
    assert data.reading.is_guess


def test_numbers_of_passages_are_refused_with_their_meaning():
    with pytest.raises(InputError) as caught:
        load(lines([[number, number + 1, number + 2] for number in range(9)]), "triples.jsonl")
    assert "[0, 1, 2]" in caught.value.problem
    assert "name queries and passages of other files" in caught.value.expected
    with pytest.raises(InputError, match="name queries and passages of other files"):
        load(b"12\t29\t38\n63\t40\t22\n92\t5\t9\n", "triples.tsv")


def test_what_is_left_out_is_named_with_examples_and_a_guess_is_said():
    rows = [
        {"id": number, "question": asked(thing), "context": answered(thing), "answer": f"With a cloth {number}."}
        for number, thing in enumerate(THINGS)
    ]
    reading = load(lines(rows), "rows.jsonl").reading
    assert reading.columns == {"anchor": "question", "positive": "answer"}
    assert reading.is_guess
    assert "the second text may also be context" in reading.choice()
    assert reading.left_out["id"] == ("0", "1")
    assert reading.left_out["context"] == (answered("kettle"), answered("lamp"))
    assert "Columns left out: id (such as '0', '1'); context (such as" in reading.columns_left_out()
    other = load(lines(rows), "rows.jsonl", {"anchor": "question", "positive": "context"})
    assert other.columns["positive"] == tuple(map(answered, THINGS))
    assert not other.reading.is_guess


@pytest.mark.parametrize(
    ("values", "numbers", "reasons"),
    [
        (["4,8", "2", "0,05"], [4.8, 2.0, 0.05], [None] * 3),
        (["4.8", "2", ".5"], [4.8, 2.0, 0.5], [None] * 3),
        (["−1", "0.5", "-0,25"], [-1.0, 0.5, -0.25], [None] * 3),
        (["1,234", "0.5"], [None, 0.5], [NO_NUMBER, None]),  # 1.234 or 1234
        (["1,234", "2"], [1.234, 2.0], [None, None]),
        (["900", "950", "1,200", "1,000"], [900.0, 950.0, None, None], [None, None, NO_NUMBER, NO_NUMBER]),
        (["900", "1,200", "2,5"], [900.0, 1.2, 2.5], [None] * 3),  # a comma that cannot divide thousands
        (["100", "0,125", "0,250"], [100.0, 0.125, 0.25], [None] * 3),
        (["0.5", "0,125"], [0.5, 0.125], [None] * 2),
        ([-1, 0, 1, 0, -1], [-1.0, 0.0, 1.0, 0.0, -1.0], [None] * 5),
        ([-1, 0], [-1.0, 0.0], [None] * 2),
        ([-1, -1], [None] * 2, [NO_SCORE] * 2),
        ([-1, 0, 1, 2], [None, 0.0, 1.0, 2.0], [NO_SCORE, None, None, None]),
        ([-1, 0.5, 1], [None, 0.5, 1.0], [NO_SCORE, None, None]),
        ([Decimal("sNaN"), Decimal("NaN"), Decimal("2.5")], [None, None, 2.5], [NO_SCORE, NO_SCORE, None]),
        ([-1, 0, 3, 5], [None, 0.0, 3.0, 5.0], [NO_SCORE, None, None, None]),
        (["-1.0", "0.2"], [None, 0.2], [NO_SCORE, None]),
        ([-1, 1, 1], [-1.0, 1.0, 1.0], [None] * 3),
        ([-1, -0.5, 1], [-1.0, -0.5, 1.0], [None] * 3),
        (["-", "n/a", "NaN", "", None, float("nan"), "?"], [None] * 7, [NO_SCORE] * 7),
        (["many", "1_000", "inf", "80 %", "4,8,1"], [None] * 5, [NO_NUMBER] * 5),
        ([True, 3, 2.5], [1.0, 3.0, 2.5], [None] * 3),
    ],
)
def test_one_rule_for_scores(values, numbers, reasons):
    scores = read_scores(values)
    assert (list(scores.values), list(scores.reasons)) == (numbers, reasons)


def test_minus_one_beside_0_and_1_is_a_score_and_said():
    pairs = read_scored_pairs(scored(("-1", "0", "1", "-1", "0", "1")), "scores.csv")
    assert pairs.scores == (-1, 0, 1, -1, 0, 1)
    assert "The score −1 of the column score is a score like the others, and not “unknown”." in pairs.reading.notes
    pairs = read_scored_pairs(scored(("-1", "0", "1", "-1", "0.5", "1")), "scores.csv")
    assert pairs.scores == (0, 1, 0.5, 1)
    assert not any("like the others" in note for note in pairs.reading.notes)
    rows = [
        {"sentence1": asked(thing), "sentence2": answered(thing), "label": number % 3 - 1}
        for number, thing in enumerate(THINGS)
    ]
    data = load(lines(rows), "rows.jsonl")
    assert data.label_names == ("0", "1")  # of classes −1 is none, as in published files
    assert data.dropped == {"no gold label": 2}
    assert "The class −1 of the column label stands for “no gold label”, as in SNLI and GLUE." in data.reading.notes
    data = load(lines([row for row in rows if row["label"]]), "rows.jsonl")
    assert data.label_names == ("-1", "1")
    assert "The class −1 of the column label is a class like the other." in data.reading.notes
    thousands = read_scored_pairs(scored(("900", "950", "1,200", "1,000", "800", "850")), "scores.csv")
    assert thousands.scores == (900, 950, 800, 850)
    assert thousands.reading.values == ("1,200", "1,000")


def test_scores_with_a_decimal_comma_are_the_same_for_training_and_for_agreement():
    numbers = (4.85, 4.25, 3.65, 2.0, 0.0, 4.0)
    pairs = read_scored_pairs(scored(), "scores.csv")
    assert pairs.scores == numbers
    assert pairs.reading.changed == 3
    assert "3 scores of the column score read with a decimal comma." in pairs.reading.notes
    data = load(scored(), "scores.csv")
    assert (data.kind, data.score_range) == ("scored", (0, 5))
    assert [round(float(value) * 5, 4) for value in data.labels] == list(numbers)


def test_a_refusal_shows_the_values_and_the_reasons_of_the_lost_rows():
    with pytest.raises(
        InputError, match=r"has 1 row with .* \(3 rows: no score \(unknown\); 2 rows: .*, such as 'high'"
    ):
        read_scored_pairs(scored(("-", "high", "low", "?", "n/a", "3")), "scores.csv")
    with pytest.raises(InputError) as caught:
        load(scored(("-", "high", "low", "?", "n/a", "3")), "scores.csv")
    assert "'high', 'low'" in caught.value.problem
    with pytest.raises(InputError, match="holds no numbers, but values such as 'high'"):
        read_scored_pairs(scored(("high",) * 6), "scores.csv")
    pairs = read_scored_pairs(scored(("-1", "0", "1", "2", "3", "4")), "scores.csv")
    assert pairs.scores == (0, 1, 2, 3, 4)
    assert any("stands for “unknown”" in note for note in pairs.reading.notes)


@pytest.mark.parametrize("column", ["split", "part", "usage"])
def test_agreement_is_measured_on_the_rows_that_a_file_calls_test(column):
    pairs = read_scored_pairs(parts_file(column), "all.tsv")
    assert pairs.scores == (3.5, 4.5, 5.5)
    assert pairs.reading.part.sentence() == (
        f"The column {column} names the part of each row (train 2, dev 1, test 3): only the test rows are used."
    )
    assert pairs.reading.reasons == {f"its {column} is train": 2, f"its {column} is dev": 1}
    assert len(read_scored_pairs(parts_file(column), "all.tsv", part=ALL).scores) == 6
    assert read_scored_pairs(parts_file(column), "all.tsv", part="train").scores == (0.5, 1.5)
    with pytest.raises(InputError, match="has no 'dev' rows"):
        read_scored_pairs(parts_file(column, ["train", "test"] * 3), "all.tsv", part="dev")


def test_training_never_sees_rows_that_a_file_calls_test():
    both = load(parts_file(parts=["train", "dev", "train", "dev", "train", "test"]), "all.tsv")
    assert (split(both).train.tolist(), split(both).held_out.tolist()) == ([0, 2, 4], [1, 3])
    assert both.dropped == {"its split is test": 1}
    assert "the train rows are trained on and the dev rows held out" in both.reading.part.sentence()
    parts = ["train", "train", "train", "train", "dev", "test"]  # too few dev rows to measure with
    data = load(parts_file(parts=parts), "all.tsv")
    assert data.columns["sentence1"] == tuple(map(asked, THINGS[:4]))
    assert data.dropped == {"its split is dev": 1, "its split is test": 1}
    assert "only the train rows are used" in data.reading.part.sentence()
    assert len(load(parts_file(parts=parts), "all.tsv", part=ALL)) == 6
    with pytest.raises(InputError, match="calls all rows test"):
        load(parts_file(parts=["test"] * 6), "all.tsv")


def test_a_column_of_other_words_names_no_parts():
    assert find_parts({"split": ["a", "b"], "text": ["x", "y"]}) is None
    assert find_parts({"topic": ["train", "train"]}) is None  # about railways, perhaps
    assert find_parts({"set": [["a", "b"]]}) is None
    assert find_parts({"split": ["train", None, "test"]}).of_rows == ("train", None, "test")


def test_one_other_value_does_not_switch_the_parts_of_a_file_off():
    parts = ["train", "train", "train", "train", "unlabeled", "test"]
    data = load(parts_file(parts=parts), "all.tsv")
    assert data.columns["sentence1"] == tuple(map(asked, THINGS[:4]))
    assert data.dropped == {"its split is unlabeled": 1, "its split is test": 1}
    assert data.reading.part.sentence() == (
        "The column split names the part of each row (train 4, test 1; no part: 'unlabeled' 1): only the train rows are used."
    )
    assert data.reading.as_json()["part"]["other_values"] == {"unlabeled": 1}
    assert read_scored_pairs(parts_file(parts=["x", *["test"] * 5]), "all.tsv").reading.used == 5
    assert len(load(parts_file(parts=parts), "all.tsv", part=ALL)) == 6
    with pytest.raises(InputError, match="calls all rows test; no part: 'x' 1"):
        load(parts_file(parts=["x", *["test"] * 5]), "all.tsv")


def test_a_file_with_test_rows_is_not_warned_of():
    parts = ["train", "train", "train", "train", "test", "test"]
    assert load(parts_file(parts=parts), "all.tsv").warnings == ()
    parts = ["train", "train", "train", "train", "what", "test"]
    assert load(parts_file(parts=parts), "all.tsv").warnings == (
        "Only 4 of 5 rows can be used (1 row: its split is what).",
    )


@pytest.mark.parametrize(
    ("column", "why", "is_guess"), [("foo", "the only column", False), ("text", "by its name", False)]
)
def test_why_the_only_column_is_the_text(column, why, is_guess):
    reading = load(lines([{column: answered(thing)} for thing in THINGS]), "rows.jsonl").reading
    assert (reading.columns, reading.why, reading.is_guess) == ({"sentence": column}, why, is_guess)


def test_parts_are_known_by_their_first_word():
    values = ["train-clean-100", "validation_matched", "test-other", "Train2", "trains", 3, ""]
    found = find_parts({"split": values})
    assert found.of_rows == ("train", "dev", "test", "train", None, None, None)
    assert found.others == {"trains": 1, "3": 1}
    assert find_parts({"part": ["test the brakes of the car", "train"]}) is None  # texts
    assert find_parts({"set": ["x", "train"], "split": ["train", "test"]}).column == "split"
    assert find_parts({"topic": ["train", "test", "bus"]}) is None  # without such a name


def test_sts_files_without_names_of_columns():
    rows = [
        f"main-news\tMSR\t2012test\t000{number}\t{number}.250\t{asked(thing)}\t{answered(thing)}"
        for number, thing in enumerate(THINGS)
    ]
    pairs = read_scored_pairs("\n".join(rows).encode(), "sts.tsv")
    assert pairs.scores == (0.25, 1.25, 2.25, 3.25, 4.25, 5.25)
    assert pairs.first == tuple(map(asked, THINGS))
    assert pairs.reading.is_guess
    plain = [f"{number}.5\t{asked(thing)}\t{answered(thing)}" for number, thing in enumerate(THINGS)]
    assert read_scored_pairs("\n".join(plain).encode(), "sts.tsv").scores == (0.5, 1.5, 2.5, 3.5, 4.5, 5.5)


@pytest.mark.parametrize(
    ("first", "second", "score"),
    [
        ("sentence_A", "sentence_B", "relatedness_score"),
        ("sentence1", "sentence2", "label"),
        ("text1", "text2", "similarity_score"),
        ("question1", "question2", "score"),
    ],
)
def test_scored_pairs_are_known_by_their_names(first, second, score):
    rows = [{first: asked(thing), second: answered(thing), score: number} for number, thing in enumerate(THINGS)]
    pairs = read_scored_pairs(lines(rows), "rows.jsonl")
    assert pairs.scores == (0, 1, 2, 3, 4, 5)
    assert pairs.first == tuple(map(asked, THINGS))
    assert not pairs.reading.is_guess


def test_the_preview_shows_rows_as_they_stand_in_the_file():
    content = scored(("4,85", "high", "3", "2", "1", "0"))
    reading = read_scored_pairs(content, "scores.csv").reading
    given = content.decode().splitlines()
    assert [(row.row, row.given) for row in reading.preview] == [(2, given[1]), (3, given[2]), (4, given[3])]
    assert reading.preview[0].read == {"sentence1": asked("kettle"), "sentence2": answered("kettle"), "label": "4.85"}
    assert (reading.preview[1].read, reading.preview[1].reason) == ({}, NO_NUMBER)
    assert [(row.row, row.reason) for row in reading.refused] == [(3, NO_NUMBER)]
    assert reading.as_json()["rows_left_out"] == 1


def test_columns_that_do_not_tell_are_shown_with_examples():
    columns = {name: [f"{name} text {number} of many" for number in range(6)] for name in ("one", "two", "three")}
    with pytest.raises(UnclearColumns) as caught:
        recognise(columns, "rows.csv")
    assert "one ('one text 0 of many'" in caught.value.expected


TURNS = [
    {
        "id": f"conv-{number}",
        "messages": [{"role": "user", "content": asked(thing)}, {"role": "assistant", "content": "Yes."}],
    }
    for number, thing in enumerate(THINGS)
]
SHARED = [{"conversations": [{"from": "human", "value": asked(thing)}]} for thing in THINGS]
PARTS = [{"messages": [{"role": "user", "content": [{"type": "text", "text": asked(thing)}]}]} for thing in THINGS]


@pytest.mark.parametrize(("rows", "column"), [(TURNS, "messages"), (SHARED, "conversations"), (PARTS, "messages")])
def test_a_list_of_turns_is_refused_with_what_to_write(rows, column):
    """It was called several first texts, an object instead of text, or an unclear column."""
    content = lines(rows)
    for read in (
        lambda: load(content, "chat.jsonl"),
        lambda: read_scored_pairs(content, "chat.jsonl"),
        lambda: read_corpus(content, "chat.jsonl"),
        lambda: read_corpus(content, "chat.jsonl", column),
    ):
        with pytest.raises(InputError, match=f"In chat.jsonl, {column} is a list of turns") as refused:
            read()
        assert refused.value.fix == "Write one row per message (conversation, role, text)."


def test_turns_beside_a_text_are_no_reason_to_refuse():
    rows = [{"text": asked(thing), "messages": row["messages"]} for thing, row in zip(THINGS, TURNS, strict=True)]
    assert read_corpus(lines(rows), "chat.jsonl").texts == tuple(map(asked, THINGS))
    assert load(lines(rows), "chat.jsonl").reading.columns == {"sentence": "text"}
