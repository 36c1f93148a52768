"""Graded test collections: which file is which, what is read, what is left out and counted, and the demo's grades."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from components.errors import InputError
from components.retrieval.corpora.corpus import Limits, read_corpus
from components.retrieval.corpora.readers.limits import RAISED
from components.retrieval.evaluation.graded.collection import (
    demo_graded,
    read_fields,
    read_folder_fields,
    read_graded,
    read_graded_folder,
)
from components.retrieval.evaluation.graded.files import read_judgements
from components.retrieval.evaluation.graded.metrics import MEASURES
from components.retrieval.search.lexical import make_ranker
from tests.support.judged_collections import (
    BEIR,
    BEIR_QRELS,
    CORPUS,
    CORPUS_TSV,
    FIELDED,
    FIELDED_CORPUS,
    QUERIES,
    QUERIES_TSV,
    QUERY_LINES,
    TREC,
    TREC_QRELS,
    check,
    jsonl,
)
from tests.support.places import ASSETS

DEMO = ASSETS / "demo_corpus.jsonl"


def given_of(files, **options) -> str:
    with pytest.raises(InputError) as caught:
        read_graded(files, **options)
    return caught.value.problem


OTHER_FORMS = {
    "beir": BEIR,
    "trec": TREC,
    "judgements without their folder": {
        "corpus.jsonl": CORPUS, "queries.jsonl": QUERY_LINES, "test.tsv": BEIR["qrels/test.tsv"],
    },
    "without a header": BEIR | {"qrels/test.tsv": BEIR_QRELS.split("\n", 1)[1].encode()},
    "trec's judgements between tabs": TREC | {"qrels.301-450.txt": TREC_QRELS.replace(" ", "\t").encode()},
    "trec's judgements in columns": TREC | {"qrels.301-450.txt": TREC_QRELS.replace(" ", "   ").encode()},
    "byte order marks": {name: b"\xef\xbb\xbf" + content for name, content in BEIR.items()},
    "byte order marks in trec": {name: b"\xef\xbb\xbf" + content for name, content in TREC.items()},
    "utf-16": {name: content.decode().encode("utf-16") for name, content in TREC.items()},
    "windows' line ends": {name: content.replace(b"\n", b"\r\n") for name, content in BEIR.items()},
    "windows' line ends in trec": {name: content.replace(b"\n", b"\r\n") for name, content in TREC.items()},
    "blank lines": {name: content.replace(b"\n", b"\n\n") for name, content in TREC.items()},
    "packed": {f"{name}.gz": gzip.compress(content, mtime=0) for name, content in BEIR.items()},
    "mixed": {"docs.tsv": CORPUS_TSV, "queries.jsonl": QUERY_LINES, "a.qrels": TREC_QRELS.encode()},
    "whole numbers with a point": BEIR | {"qrels/test.tsv": BEIR_QRELS.replace("\t2\n", "\t2.0\n").encode()},
    "names of other tools": BEIR | {"qrels/test.tsv": BEIR_QRELS.replace("query-id\tcorpus-id", "qid\tdoc_id").encode()},
    "names above lines": TREC | {"collection.tsv": b"docid\ttext\n" + CORPUS_TSV, "topics.tsv": b"qid\tquery\n" + QUERIES_TSV},
    "judgements of the hub": {key: content for key, content in BEIR.items() if "qrels" not in key} | {"qrels/test.jsonl": jsonl(
        dict(zip(("query-id", "corpus-id", "score"), line.split("\t"), strict=True)) for line in BEIR_QRELS.splitlines()[1:]
    )},
    "a folder whose name misleads": {"queries of mine/" + name: content for name, content in TREC.items()},
}  # fmt: skip


@pytest.mark.parametrize("files", OTHER_FORMS.values(), ids=OTHER_FORMS)
def test_every_form_gives_the_same_collection(files):
    found = read_graded(files)
    check(found)
    assert found.content_hash == read_graded(BEIR).content_hash
    assert found.report.judgements == 4
    assert found.report.left_out == {"queries without a relevant document": 1}


@pytest.mark.parametrize(
    "names", [("query_id", "corpus_id", "score"), ("qid", "pid", "relevance"), ("Topic", "docno", "rel")]
)
def test_objects_of_judgements_can_have_other_names(names):
    rows = [dict(zip(names, values, strict=True)) for values in (("q1", "d1", 2), ("q1", "d2", 0))]
    assert read_judgements(jsonl(rows), "a.jsonl").grades == {("q1", "d1"): 2, ("q1", "d2"): 0}


def test_objects_without_a_judgement_are_counted():
    rows = [
        {"query-id": "q1", "corpus-id": "d1", "score": 1},
        {"query-id": "q1", "score": 1},
        {"corpus-id": None, "id": 3},
    ]
    found = read_judgements(jsonl(rows), "a.jsonl")
    assert found.grades == {("q1", "d1"): 1}
    assert dict(found.bad.reasons) == {"without query-id, corpus-id or score": 2}
    with pytest.raises(InputError, match="objects with these keys"):
        read_judgements(jsonl(rows[1:]), "a.jsonl")


def test_what_is_left_out_is_counted_and_adds_up():
    qrels = [
        "query-id\tcorpus-id\tscore",
        "q1\td1\t2",
        "q1\td1\t3",  # again: the later counts
        "q9\td1\t1",
        "q1\td9\t1",
        "q1\td2\t-1",
        "q2\td2\t0",
        "q2\td2",
        "q2\td2\tmuch",
        "q3\td3\t1",
    ]
    documents = [
        {"_id": "d1", "text": "One."},
        {"_id": "d2", "text": "Two."},
        {"_id": "d2", "text": "Two again."},
        {"_id": "", "text": "No id."},
        {"_id": "d4", "title": " ", "text": ""},
        {"_id": 3, "text": "An id\nthat is a number."},
        {"_id": "d3", "title": "Only a title", "text": None},
    ]
    found = read_graded(
        {
            "corpus.jsonl": jsonl(documents) + b"{broken\n",
            "queries.jsonl": QUERY_LINES,
            "qrels.tsv": "\n".join(qrels).encode(),
            "README.md": b"# Read me",
        }
    )
    assert found.documents == ("One.", "Two.", "An id that is a number.", "Only a title")
    assert [dict(grades) for grades in found.grades] == [{0: 3}, {3: 1}]
    assert found.queries == (QUERIES["q1"], QUERIES["q3"])
    report = found.report
    assert report.left_out == {
        "queries without a relevant document": 1,
        "judgements of unknown queries": 1,
        "judgements of unknown documents": 1,
        "judgements of a pair that is judged again": 1,
        "lines that are not judgements": 2,
        "documents without an id or text, or with a repeated id": 4,
    }
    assert report.not_relevant == 2
    assert report.judgements == len(qrels) - 1
    assert report.judgements == (
        report.relevant + report.not_relevant + report.unknown_queries + report.unknown_documents
        + report.duplicate_judgements + report.bad_lines
    )  # fmt: skip
    assert report.files == {"corpus": "corpus.jsonl", "queries": "queries.jsonl", "judgements": "qrels.tsv"}
    of_documents, of_judgements = found.notes[:2]
    assert "row 3 (repeated id), row 4 (no id), row 5 (no text), row 8 (broken JSON)" in of_documents
    assert of_documents.startswith("Left out of corpus.jsonl:")
    assert of_judgements.endswith("row 8 (2 fields instead of 3 or 4), row 9 ('much' is not a whole number).")


def test_texts_of_lines_are_taken_as_they_stand():
    lines = b'd1\t"Never again", he said\twith a tab\nd2\t"A quote that never ends\nd3\nd4\t\n'
    files = {"docs.tsv": lines, "queries.tsv": b"1\ta b\n", "qrels": b"1 0 d2 1\n1 0 d1 1\n"}
    found = read_graded(files)
    assert found.documents == ('"Never again", he said with a tab', '"A quote that never ends')
    assert found.report.bad_documents == 2


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "no files: the corpus cannot be found; the queries cannot be found; the judgements (qrels) cannot"),
        ({name: BEIR[name] for name in list(BEIR)[:2]}, "the judgements (qrels) cannot be found"),
        ({name: BEIR[name] for name in list(BEIR)[1:]}, "the corpus cannot be found"),
        (BEIR | {"qrels/train.tsv": b"q1\td1\t1\n"}, "could be qrels/test.tsv or qrels/train.tsv"),
        ({"a.jsonl": CORPUS, "b.jsonl": QUERY_LINES, "c.tsv": BEIR_QRELS.encode()}, "the queries cannot be found"),
        (BEIR | {"queries.jsonl": jsonl([{"number": 1, "words": "x"}])}, "has the columns number, words"),
        (
            {"docs.csv": CORPUS_TSV, **{name: TREC[name] for name in list(TREC)[1:]}},
            "docs.csv is neither a .jsonl file nor one of",
        ),
        ({"x": CORPUS, "y": QUERY_LINES, "z.tsv": BEIR_QRELS.encode()}, "the judgements (qrels) cannot be found"),
        (TREC | {"topics.tsv": b"what is a volcano?\n"}, "topics.tsv has no text with an id (line 1: no tab"),
        (BEIR | {"queries.jsonl": b""}, "queries.jsonl has no text with an id."),
        (TREC | {"topics.tsv": b""}, "topics.tsv has no text with an id"),
        (BEIR | {"qrels/test.tsv": b"query-id\tcorpus-id\tscore\n"}, "qrels/test.tsv has no judgement."),
        (BEIR | {"qrels/test.tsv": b"a,b,c\nq1,d1,2\n"}, "no judgement (line 1: 1 field instead of 3 or 4)"),
        (BEIR | {"qrels/test.tsv": b"q8\td1\t1\nq1\td8\t1\nq1\td1\t0\n"}, "1 name no query of queries.jsonl, 1 no document"),
        (BEIR | {"corpus.jsonl": b"PK\x03\x04"}, "a zip archive"),
        (BEIR | {"corpus.jsonl": gzip.compress(CORPUS, mtime=0)[:-9]}, "could not be read"),
    ],
)  # fmt: skip
def test_files_that_will_not_do_say_why(files, words):
    assert words in given_of(files)


def test_limits_are_the_browsers_and_name_the_command(monkeypatch):
    assert "queries.jsonl has more than 2 texts" in given_of(BEIR, limits=Limits(2, 1 << 20))
    monkeypatch.setenv("BERT_INTERNALS_CORPUS_BYTES", "100")
    with pytest.raises(InputError, match="100 bytes") as caught:
        read_graded({name + ".gz": gzip.compress(content * 50, mtime=0) for name, content in BEIR.items()})
    assert caught.value.fix.endswith(f"python -m components evaluate FOLDER {RAISED}")
    check(read_graded(BEIR, limits=None))


def write(folder: Path, files) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_bytes(content)
    return folder


def test_folders_of_both_forms_and_the_split(tmp_path):
    beir = write(tmp_path / "scifact", BEIR | {"README.md": b"x"})
    found = read_graded_folder(beir)
    check(found)
    assert found.name == "scifact"
    (beir / "qrels/test.tsv").rename(beir / "qrels/dev.tsv")
    dev = read_graded_folder(beir)  # the only one there is
    check(dev)
    assert dev.notes == ("There are no judgements of the part test: qrels/dev.tsv is read.",)
    assert read_graded_folder(beir, "dev").notes == ()
    (beir / "qrels/train.tsv").write_bytes(b"q3\td3\t1\n")
    with pytest.raises(InputError, match=r"\(qrels\) could be 2 files.*--split"):
        read_graded_folder(beir)
    check(read_graded_folder(beir, "dev"))
    assert read_graded_folder(beir, "train").queries == ("dogs",)
    trec = read_graded_folder(write(tmp_path / "trec", TREC))
    check(trec)
    assert trec.notes == ()  # its judgements are of no part
    marco = write(tmp_path / "marco", {"collection.tsv": CORPUS_TSV})
    write(marco, {f"queries.{split}.tsv": QUERIES_TSV for split in ("train", "test")})
    write(marco, {f"qrels.{split}.tsv": TREC_QRELS.replace(" ", "\t").encode() for split in ("train", "test")})
    check(read_graded_folder(marco))
    with pytest.raises(InputError, match="no folder"):
        read_graded_folder(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no files"):
        read_graded_folder(tmp_path / "empty")


def test_the_hash_is_of_texts_and_grades():
    one = read_graded(BEIR)
    assert read_graded(BEIR, name="other").content_hash == one.content_hash
    others = [
        BEIR | {"qrels/test.tsv": BEIR_QRELS.replace("\t2\n", "\t1\n").encode()},
        BEIR | {"corpus.jsonl": CORPUS.replace(b"Rates", b"Raten")},
        BEIR | {"queries.jsonl": QUERY_LINES.replace(b"volcano", b"volcanoes")},
    ]
    assert len({one.content_hash, *(read_graded(files).content_hash for files in others)}) == 4


def test_the_demo_grades_its_own_sentence_2_and_its_topic_1():
    corpus = read_corpus(DEMO, "demo", "sentence")
    found = demo_graded(corpus)
    assert found.documents == corpus.texts
    assert len(found.queries) == len(found.grades) == len(corpus)
    topics = corpus.columns["topic"]
    for own in (0, 17, len(corpus) - 1):
        grades = found.grades[own]
        assert grades[own] == 2
        assert set(grades) == {at for at in range(len(corpus)) if topics[at] == topics[own]}
        assert sorted(grades.values()) == [1] * 9 + [2]
    assert found.report.relevant == 10 * len(corpus)
    assert found.report.left_out == {}


def test_demo_rows_without_a_compressed_text_or_topic():
    rows = [
        {"sentence": "a b c", "compressed": "a", "topic": "x"},
        {"sentence": "d e f", "compressed": "", "topic": "x"},
        {"sentence": "g h i", "compressed": "g", "topic": ""},
        {"sentence": "j k l", "compressed": "j", "topic": ""},
    ]
    found = demo_graded(read_corpus(jsonl(rows), "x.jsonl", "sentence"))
    assert found.queries == ("a", "g", "j")
    assert [dict(grades) for grades in found.grades] == [{0: 2, 1: 1}, {2: 2}, {3: 2}]
    assert found.report.bad_queries == 1
    with pytest.raises(InputError, match="no column topic"):
        demo_graded(read_corpus(b"sentence,compressed\na b,c\n", "x.csv", "sentence"))
    with pytest.raises(InputError, match="no compressed text"):
        demo_graded(read_corpus(b"sentence,compressed,topic\na b,,t\n", "x.csv", "sentence"))


# --- Which fields are searched


def adds_up(report) -> bool:
    return report.judgements == (
        report.relevant + report.not_relevant + report.unknown_queries + report.unknown_documents
        + report.duplicate_judgements + report.bad_lines + report.own_judgements
    )  # fmt: skip


def test_only_fields_that_exist_are_offered_in_order():
    found = read_fields(FIELDED)
    assert {field: list(texts) for field, texts in found.documents.items()} == {
        "title": ["Java", "", "Cats"],
        "text": ["A volcano erupted.", "Rates rise.", ""],
    }
    assert list(found.queries) == ["text", "title", "narrative"]
    assert found.queries["title"] == ("volcano", "rates", "cats")
    plain = read_fields(TREC)
    assert (list(plain.documents), list(plain.queries)) == (["text"], ["text"])
    assert plain.chosen().documents is plain.documents["text"]  # not a second copy
    assert found.nbytes > plain.chosen().nbytes > 0


def test_the_default_is_the_queries_text_and_all_of_the_documents():
    found = read_graded(FIELDED)
    assert found.documents == ("Java A volcano erupted.", "Rates rise.", "Cats")
    assert found.queries == ("Which volcano erupted?", "Do rates rise?")
    assert [dict(grades) for grades in found.grades] == [{0: 2, 1: 1}, {1: 1}]
    assert (found.query_field, found.document_fields) == ("text", ("title", "text"))
    assert found.report.bad_queries == 1
    assert adds_up(found.report)


@pytest.mark.parametrize(
    ("query_field", "document_fields", "documents", "queries", "grades"),
    [
        ("title", ("title", "text"), ["Java A volcano erupted.", "Rates rise.", "Cats"], ["volcano", "rates", "cats"],
         [{0: 2, 1: 1}, {1: 1}, {2: 1}]),
        ("title", ("text",), ["A volcano erupted.", "Rates rise."], ["volcano", "rates"], [{0: 2, 1: 1}, {1: 1}]),
        ("title", ("title",), ["Java", "Cats"], ["volcano", "cats"], [{0: 2}, {1: 1}]),
        ("narrative", ("text", "title"), ["Java A volcano erupted.", "Rates rise.", "Cats"], ["Only volcanoes."],
         [{0: 2, 1: 1}]),
    ],
)  # fmt: skip
def test_chosen_fields_leave_out_and_count_what_lacks_them(query_field, document_fields, documents, queries, grades):
    found = read_fields(FIELDED).chosen(query_field, document_fields)
    assert list(found.documents) == documents
    assert list(found.queries) == queries
    assert [dict(each) for each in found.grades] == grades
    assert adds_up(found.report)
    assert found.report.bad_documents == 3 - len(documents)
    assert found.report.bad_queries + found.report.queries_without_relevant == 3 - len(queries)
    assert found.report.relevant == sum(map(len, grades))


def test_fields_that_do_not_exist_say_which_do():
    found = read_fields(FIELDED)
    with pytest.raises(InputError, match="description is not") as caught:
        found.chosen("description")
    assert "text and title and narrative" in caught.value.expected
    for fields in (("body",), ()):
        with pytest.raises(InputError, match="the documents can be searched by"):
            found.chosen("text", fields)
    only_title = {**FIELDED, "qrels.tsv": b"q2 0 d2 1\n"}
    with pytest.raises(InputError, match="No query has a text and a relevant document with a title"):
        read_fields(only_title).chosen("text", ("title",))


def topic(number: str) -> str:
    return f"<top>\n<num> Number: {number}\n<title> query {number}\n</top>\n"


@pytest.mark.parametrize(
    ("numbers", "judged", "expected"),
    [
        (["001"], ["001 0 d1 2"], [{0: 2}]),
        (["001"], ["1 0 d1 2"], [{0: 2}]),
        (["1"], ["001 0 d1 2"], [{0: 2}]),
        (["1", "01"], ["01 0 d1 2", "1 0 d2 1"], [{1: 1}, {0: 2}]),  # ids as written
        (["1", "01", "2"], ["001 0 d1 2", "2 0 d1 1"], [{0: 1}]),  # of two queries with the number, neither
        (["1"], ["01 0 d1 2", "1 0 d1 1"], [{0: 1}]),  # the exact id counts
        (["1"], ["1 0 d1 1", "01 0 d1 2"], [{0: 1}]),
        (["1"], ["01 0 d1 2", "001 0 d1 1"], [{0: 1}]),  # else the later
    ],
)
def test_topics_and_judgements_go_together_with_and_without_zeros(numbers, judged, expected):
    files = {
        "docs.tsv": b"d1\tone\nd2\ttwo\n",
        "topics.txt": "".join(map(topic, numbers)).encode(),
        "qrels.txt": "\n".join(judged).encode(),
    }
    found = read_graded(files)
    assert [dict(each) for each in found.grades] == expected
    assert adds_up(found.report)


def test_trec_topics_and_beir_documents_go_together(tmp_path):
    topics = b"<top>\n<num> Number: 01\n<title> volcano\n<desc> Description:\nWhich one erupted?\n</top>\n"
    write(tmp_path, {"corpus.jsonl": FIELDED_CORPUS, "topics.1-1": topics, "qrels.txt": b"1 0 d1 2\n"})
    found = read_folder_fields(tmp_path)
    assert list(found.queries) == ["title", "description"]
    assert found.chosen().queries == ("volcano",)
    assert found.chosen("description").queries == ("Which one erupted?",)


def own_documents(judged: str) -> tuple[list[int] | None, list[dict[int, int]]]:
    """The left out document of each query, and the grades, where the query d2 has the id and text of a document, d3 its id."""
    files = {
        "corpus.jsonl": jsonl([{"_id": f"d{number}", "text": f"text {number}"} for number in range(1, 4)]),
        "queries.jsonl": jsonl([{"_id": "d2", "text": "text 2"}, {"_id": "d3", "text": "another"}]),
        "qrels.tsv": judged.replace(" ", "\t").encode(),
    }
    found = read_graded(files)
    assert adds_up(found.report)
    return None if found.own is None else found.own.tolist(), [dict(each) for each in found.grades]


def test_a_query_is_the_document_with_its_id():
    assert own_documents("d2 d1 1\nd3 d1 1") == ([1, 2], [{0: 1}, {0: 1}])
    # Judged relevant: the query itself is no answer, but another text with its id is one.
    assert own_documents("d2 d2 1\nd2 d1 1\nd3 d3 2") == ([1, -1], [{0: 1}, {2: 2}])
    assert own_documents("d3 d3 2\nd3 d2 1") == (None, [{2: 2, 1: 1}])
    with pytest.raises(InputError, match=r"1 are of a query's own document\."):
        own_documents("d2 d2 1")


def test_a_document_that_a_chosen_field_leaves_out_is_nobodys_own():
    files = {
        "corpus.jsonl": jsonl([{"_id": "d1", "title": "", "text": "x"}, {"_id": "d2", "title": "A", "text": "a"}]),
        "queries.jsonl": jsonl([{"_id": "d1", "text": "x"}]),
        "qrels.tsv": b"d1\td2\t1\n",
    }
    found = read_fields(files)
    assert found.chosen().own.tolist() == [0]
    assert found.chosen(None, ["title"]).own is None


def test_a_query_whose_relevant_documents_are_all_missing_counts_as_missed():
    """As in trec_eval: its measures are 0, by vectors and by words; a query without a relevant document is left out."""
    files = {
        "corpus.jsonl": jsonl([{"_id": "d1", "text": "cats sleep"}, {"_id": "d2", "text": "dogs bark"}]),
        "queries.jsonl": jsonl(
            [{"_id": key, "text": text} for key, text in (("a", "fish"), ("b", "cats"), ("c", "x"))]
        ),
        "qrels.tsv": b"a\tgone\t2\na\td1\t0\nb\td1\t1\nc\td2\t0\n",
    }
    found = read_graded(files)
    assert found.queries == ("fish", "cats")
    assert ([dict(grades) for grades in found.grades], found.missing) == ([{}, {0: 1}], ((2,), ()))
    assert found.report.left_out == {"queries without a relevant document": 1, "judgements of unknown documents": 1}
    assert found.notes[1:] == ("1 query has no relevant document in the corpus: every measure of such a query is 0.",)
    by_vectors = found.ranks_by_vectors(np.eye(2, dtype=np.float32)[::-1], np.eye(2, dtype=np.float32))
    by_words = found.ranks_by_words(make_ranker("bm25", found.documents))
    for ranks in (by_vectors, by_words):
        for name, measure in MEASURES.items():
            assert measure(ranks).tolist() == pytest.approx([0, 0.1 if name == "P@10" else 1]), name
    lost = {**files, "qrels.tsv": b"a\tgone\t2\n"}
    with pytest.raises(InputError, match="1 no document of"):
        read_graded(lost)


def test_equal_texts_under_several_ids_and_what_is_missing_are_said():
    files = {
        "corpus.jsonl": jsonl([{"_id": f"d{number}", "text": "same"} for number in range(3)]),
        "queries.jsonl": jsonl([{"_id": "q", "text": "x"}]),
        "qrels.tsv": b"q\td1\t1\nq\tgone\t2\nq\talso gone\t0\n",
    }
    found = read_graded(files)
    assert found.missing == ((2,),)
    assert found.notes == (
        "1 relevant document of 1 query is not in the corpus, and counts as missed, as in trec_eval.",
        "2 documents have the text of an earlier one under another id: each id is a document of its own, and equal texts tie.",
    )
    assert read_graded(BEIR).notes == ()
