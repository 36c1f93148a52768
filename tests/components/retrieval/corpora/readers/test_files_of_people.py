"""Small files as programs and people write them: each is read as one would by hand, or a sentence says what not."""

from __future__ import annotations

import json

import pytest

from components.errors import InputError
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.corpora.readers.files import read_table
from components.retrieval.corpora.readers.limits import Count
from components.retrieval.corpora.readers.separated_rows import DialectChoice
from components.retrieval.corpora.rows.read import Rows, rows_of, table_of
from components.retrieval.corpora.rows.roles import Wanted

TWO = ("The river rises.", "The bank opens.")
OBJECTS = [{"text": text} for text in TWO]


def rows_in(content: str, name: str = "a.csv", wanted: Wanted = "any") -> Rows:
    return rows_of(table_of([content.encode()], name, None, Count(name, None)), name, wanted=wanted)


@pytest.mark.parametrize(
    "content",
    [
        "id,text,\n1,The river rises.,\n2,The bank opens.,\n",
        "id,text\n1,The river rises.,\n2,The bank opens.,\n",
        "id,text,,\n1,The river rises.\n2,The bank opens.,\n",
        'id,text\n1,The river rises.\n2,"The bank opens.",,,,\n',
    ],
)
def test_separators_at_the_end_of_a_row_are_no_fields(content: str) -> None:
    corpus = read_corpus(content.encode(), "a.csv")
    assert corpus.texts == TWO
    assert corpus.columns["id"] == ("1", "2")
    assert not any(map("".join, list(corpus.columns.values())[1:]))


def test_a_field_that_is_missing_in_the_middle_is_still_refused() -> None:
    report = read_corpus(b"id,text,note,\n1,The river rises.,x\n2,The bank opens.\n3,Money.,y,z\n", "a.csv").report
    assert [(row.row, row.reason) for row in report.bad_rows] == [(3, "2 fields instead of 4")]


def test_names_that_stand_in_the_middle_again_are_no_row() -> None:
    report = read_corpus(b"id,text\n1,The river rises.\nid,text\n2,The bank opens.\n", "a.csv").report
    assert "row 3 (the names of the columns once more)" in report.refused
    assert read_corpus(b"text\nThe river\ntext\n", "a.csv").texts == ("The river",)
    assert read_corpus(b"Hello\nThe river\nHello\n", "a.csv").texts == ("The river", "Hello")


def test_names_that_stand_again_in_part_are_said() -> None:
    content = "id,text,label\n1,The river rises.,a\nid,text,grade\n2,The bank opens.,b\n"
    said = read_corpus(content.encode(), "a.csv").report.notes
    assert said == ("Most names of the columns stand again in line 3, which is read as a row.",)
    assert not read_corpus(content.replace("id,text,grade", "id,Text of it,x").encode(), "a.csv").report.notes
    assert not read_corpus(b"id,text,,\n1,The river rises.,,\n2,The bank opens.,,\n", "a.csv").report.notes


def test_short_texts_that_are_taken_for_names_are_said_to_be_a_guess() -> None:
    content = "hello,good morning\nbye,see you\nthanks,you are welcome\n"
    report = read_corpus(content.encode(), "a.csv").report
    assert "That the first row names the columns is a guess: “hello”, “good morning” could be a row." in report.notes
    assert report.otherwise == (DialectChoice(header=False),)
    assert read_corpus(content.encode(), "a.csv", "column 2", dialect=report.otherwise[0]).texts[0] == "good morning"
    with pytest.raises(InputError, match=r"“What is it\?”, “A dog” could be a row\..* --no-header"):
        rows_in("What is it?,A dog\nWho is he?,My friend\nWhere is it?,At home\n", wanted="pairs")
    for named in (
        "my id,my text\n1,The river rises.\n",
        "text,my note\nThe river,good\n",
        "premise,hypothesis\nA b,C d\n",
    ):
        assert not read_table(named.encode(), "a.csv").otherwise


def test_a_quote_can_stand_behind_a_space() -> None:
    corpus = read_corpus(b'id, text\n1, "The river, it rises."\n2, "He said ""no"" to it."\n', "a.csv")
    assert corpus.texts == ("The river, it rises.", 'He said "no" to it.')
    assert corpus.report.dialect == "separated by commas and spaces"
    assert read_corpus(b'id,text\n1, "Well" he said\n', "a.csv").texts == ('"Well" he said',)


def test_between_quotes_a_backslash_before_a_separator_stays() -> None:
    corpus = read_corpus(b'id,text\n1,"The $x\\,y$ river"\n2,"The $a\\,b$ bank"\n', "a.csv")
    assert corpus.texts == ("The $x\\,y$ river", "The $a\\,b$ bank")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", json.dumps(OBJECTS)),  # an array in spite of the name
        ("a.jsonl", json.dumps(OBJECTS, indent=2)),
        ("a.ndjson", "[\n" + ",\n".join(map(json.dumps, OBJECTS)) + "\n]\n"),
        ("a.jsonl", "".join(json.dumps(row) + ",\n" for row in OBJECTS)),
        ("a.tsv", "id,text\n1,The river rises.\n2,The bank opens.\n"),  # no tab in it
        ("a.tsv", "id;text\n1;The river rises.\n2;The bank opens.\n"),
        ("a.csv", "# of 2024\n# by hand\ntext\nThe river rises.\nThe bank opens.\n"),
        (
            "a.csv",
            "texts,id\n\"['The river rises.' 'A river.']\",1\n\"['The bank opens.'\n 'A bank.']\",2\n",
        ),  # numpy's lists
        ("a.csv", "texts,id\n\"['The river rises.', 'A river.']\",1\n\"['The bank opens.', 'A bank.']\",2\n"),
    ],
)
def test_what_a_file_holds_stands_above_its_name(name: str, content: str) -> None:
    assert read_corpus(content.encode(), name).texts == TWO


@pytest.mark.parametrize("mark", [",", ";", "|"])
def test_texts_on_lines_of_a_tsv_are_not_divided(mark: str) -> None:
    lines = [f"I like tea{mark} but not coffee at all in the morning.", f"He came{mark} he saw{mark} he left again."]
    lines += ["She sang to all of us.", f"No{mark} I will not go there."]
    assert read_corpus("\n".join(lines).encode(), "a.tsv").texts == tuple(lines)
    assert read_corpus("\n".join(["text", *lines]).encode(), "a.tsv").texts == tuple(lines)
    # As many of them in each line, which are no table without a known name; and one name, which not every line bears out.
    turns = [f"Hello{mark} I need help with my order{place}." for place in range(60)]
    assert read_corpus("\n".join(turns).encode(), "a.tsv").texts == tuple(turns)
    assert read_corpus("\n".join([f"Text{mark} not voice at all.", *lines]).encode(), "a.tsv").texts[-4:] == tuple(
        lines
    )
    many = [f'{place}{mark}"The river{mark} rises\nhere."' for place in range(300)]
    assert len(read_corpus("\n".join([f"id{mark}text", *many]).encode(), "a.tsv").texts) == 300


def test_lists_as_text_are_read_only_where_they_can_be_sets() -> None:
    cells = [f"['a cat number {place} sat here']" for place in range(9)]
    same = read_corpus("\n".join(["text", *(f'"{cell}"' for cell in cells)]).encode(), "a.csv")
    assert same.texts == tuple(cell[2:-2] for cell in cells)
    cells.append("['one more', 'and two']")
    uneven = read_corpus("\n".join(["text", *(f'"{cell}"' for cell in cells)]).encode(), "a.csv")
    assert uneven.texts == tuple(cells)
    assert not uneven.columns
    assert uneven.report.notes == (
        "The column text holds lists that are written as text, not as many texts in each: they are read as they stand.",
    )
    turns = json.dumps([{"role": "user", "content": "Hi, is it open?"}])
    chat = "text\n" + 2 * ('"' + turns.replace('"', '""') + '"\n')
    assert read_corpus(chat.encode(), "a.csv").texts == (turns, turns)


@pytest.mark.parametrize("form", ["%s\n%s\n", "[%s,\n%s]", "%s,\n%s ,\n"])
def test_a_key_that_stands_twice_is_said(form: str) -> None:
    corpus = read_corpus(
        (form % ('{"text": "a: b", "n": {"a": 1}}', '{"text": "One.", "text" : "Two."}')).encode(), "a.jsonl"
    )
    assert corpus.texts == ("a: b", "Two.")
    assert corpus.report.notes == ("1 row has a key twice: its last value counts.",)


def test_lists_on_lines_are_still_sets_of_sentences() -> None:
    turns = [{"role": "user", "content": "Hi"}]
    assert read_corpus(b'["A river", "River"]\n["A bank", "Bank"]\n', "a.jsonl").columns["compressed"] == (
        "River",
        "Bank",
    )
    with pytest.raises(InputError, match="list of turns"):
        read_corpus("".join(json.dumps(turns) + "\n" for _ in range(3)).encode(), "a.jsonl")


def test_an_answer_of_the_hub_has_its_rows_beside_the_features() -> None:
    rows = [{"row_idx": place, "row": row, "truncated_cells": []} for place, row in enumerate(OBJECTS)]
    answer = {"features": [{"feature_idx": 0, "name": "text"}], "rows": rows, "num_rows_total": 2, "partial": False}
    corpus = read_corpus(json.dumps(answer).encode(), "rows.json")
    assert corpus.texts == TWO
    assert corpus.report.left_out == ("features", "num_rows_total", "partial")


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.csv.bz2", "a.jsonl.zst"])
def test_packed_files_are_named(name: str) -> None:
    with pytest.raises(InputError, match="is packed in a way that is not read here"):
        read_corpus(b"x", name)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json", "a.txt"])
@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "git lfs pull"),
        ("\ufeff\n<!DOCTYPE HTML>\n<html><title>Sign in</title></html>\n", "a web page"),
        ('<table border="1">\n<tr><td>The river rises.</td></tr>\n</table>\n', "a web page"),
    ],
)
def test_what_was_fetched_in_place_of_a_file_is_named(name: str, content: str, kind: str) -> None:
    with pytest.raises(InputError, match=kind):
        read_corpus(content.encode(), name)


@pytest.mark.parametrize("first", ["<table> tags lay out rows.", "<html> begins a page.", "<table class='x'>, it says"])
def test_a_text_about_tags_is_no_web_page(first: str) -> None:
    assert read_corpus(f"{first}\nOther sentences.\n".encode(), "a.txt").texts == (first, "Other sentences.")


@pytest.mark.parametrize(
    ("content", "ending"),
    [("1\tThe river rises.\n2\tThe bank opens.\n", ".tsv"), ('{"text": "A river"}\n\n', ".jsonl")],
)
def test_lines_of_a_table_in_a_text_file_are_named(content: str, ending: str) -> None:
    said = " ".join(read_corpus(content.encode(), "a.txt").report.sentences((), ""))
    assert f"give the file the ending {ending}." in said
    with pytest.raises(InputError, match=rf"give the file the ending {ending}\."):
        rows_in(content, "a.txt", "scored")
    plain = " ".join(read_corpus(f"{content}A sentence.\n".encode(), "a.txt").report.sentences((), ""))
    assert "ending" not in plain


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("İstanbul büyük bir şehir.\nIğdır küçük bir il.\n", "cp1254"),
        ("Öğrenci okula gidiyor.\n", "cp1254"),
        ("Kız kardeş.\n", "cp1254"),
        ("Öğretmen José bugün geldi.\nBütün ağaçlar yeşildi.\nÇocuklar gidiyor.\nYağmur yağıyor.\n", "cp1254"),
        ("Það er gott veður í dag.\nÁin hækkar.\n", "cp1252"),
        ("The word þe is old. The letter ð is eth in Old English, and þorn.\n", "cp1252"),
    ],
)
def test_turkish_is_told_from_icelandic(text: str, encoding: str) -> None:
    corpus = read_corpus(text.encode(encoding), "a.txt")
    assert corpus.texts == tuple(text.splitlines())
    assert corpus.report.encoding == encoding


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Gdje je đak i vođa?", "cp1250"),  # Croatian
        ("Vrijeme je vruće, đak čita.", "cp1250"),
        ("Bude nový den.", "cp1250"),  # Czech
        ("Dobrý den, je tu nový rok a příliš žluťoučký kůň.", "cp1250"),
        ("Rīgā ir ļoti skaista diena šodien.", "cp1257"),  # Latvian
        ("Täna on žürii šokis õhtul.", "cp1257"),  # Estonian
        ("Aceasta este o zi frumoasă şi ţara.", "cp1250"),  # Romanian
    ],
)
def test_other_languages_are_not_turkish(text: str, encoding: str) -> None:
    assert read_corpus(text.encode(encoding), "a.txt").report.encoding != "cp1254"


def test_texts_that_may_stand_for_none_are_said() -> None:
    said = read_corpus(b"id,text\n1,The river rises.\n2,NULL\n3,nan\n4,\\N\n", "a.csv").report.notes
    assert said == ("3 texts that may stand for no text (“NULL”, “nan”, “\\N”) are used as they stand.",)
    rows = rows_in("question,answer\nWhere is it?,At home.\nWhat is it?,nan\n", wanted="pairs")
    assert "1 text that may stand for no text (“nan”) is used as it stands." in rows.notes


def test_answers_between_bars_are_said_to_be_one_text() -> None:
    rows = rows_in(
        "question,answers\nWhere is it?,At home.|In the house.\nWhat is it?,A dog. | A pet.\n", wanted="pairs"
    )
    assert [row.texts[1] for row in rows.rows] == ["At home.|In the house.", "A dog. | A pet."]
    assert any("have a bar (|), and each is one text" in note for note in rows.notes)
    assert not any("bar" in note for note in rows_in("question,answers\nWhere is it?,At home.\nWhat?,A | B\n").notes)


def test_labels_beside_pairs_are_said_not_to_be_looked_at() -> None:
    rows = rows_in("question1,question2,is_duplicate\nHow is it?,How is this?,1\nWhere?,Who is it?,0\n", wanted="pairs")
    assert (
        "Each row counts as a right pair, whether its is_duplicate is 1 or 0: leave out the rows that are not."
        in rows.notes
    )
    assert not any("right pair" in note for note in rows_in("query,answer,id\nWhere?,Here.,1\n", wanted="pairs").notes)


@pytest.mark.parametrize(
    ("labels", "is_said"),
    [
        (("billing", "shipping"), False),
        (("Not entailment", "entailment"), True),
        (("neutral", "contradiction"), True),
        (("4.5", "\u22121"), True),
    ],
)
def test_topics_beside_pairs_are_no_judgements(labels: tuple[str, str], is_said: bool) -> None:
    rows = rows_in(
        f"query,answer,label\nWhere is it?,It is here.,{labels[0]}\nWho is it?,A dog.,{labels[1]}\n", wanted="pairs"
    )
    assert any("Each row counts as a right pair" in note for note in rows.notes) == is_said


def test_classes_in_another_case_are_one_class() -> None:
    rows = rows_in("sentence1,sentence2,label\nA b,C d,yes\nE f,G h,no\nI j,K l,YES\nM n,O p,No\n")
    assert [row.label for row in rows.rows] == ["yes", "no", "yes", "no"]
    assert "2 labels in another case than yes and no count as these." in rows.notes
    one = rows_in("sentence1,sentence2,label\nA b,C d,US\nE f,G h,UK\nI j,K l,Us\n")
    assert "1 label in another case than US counts as this." in one.notes


def test_scores_in_arabic_digits_are_numbers() -> None:
    rows = rows_in(
        "sentence1,sentence2,score\nالنهر يرتفع,يرتفع النهر,٤٫٥\nالبنك مفتوح,تسقط الأوراق,١\n", wanted="scored"
    )
    assert [row.label for row in rows.rows] == [4.5, 1.0]
