"""`evaluate` on a folder with graded relevance."""

from __future__ import annotations

import json
from pathlib import Path

import ir_measures
import pytest
from ir_measures import AP, RR, P, R, nDCG

from components.command_line.program import main
from tests.components.command_line.in_process import run

pytestmark = pytest.mark.usefixtures("loaded_once")

DOCUMENTS = ["A volcano erupted near the town.", "The bank raised its rates.", "Lava reached the sea.", "A cat slept."]
QUERIES = ["volcanoes", "interest rates", "pets", "nobody judged this"]
JUDGED = [(0, 0, 2), (0, 2, 1), (1, 1, 2), (2, 3, 1), (2, 0, 0), (3, 9, 1)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    where = tmp_path_factory.mktemp("beir")
    for name, texts in (("corpus.jsonl", DOCUMENTS), ("queries.jsonl", QUERIES)):
        rows = [{"_id": f"{name[0]}{at}", "text": text} for at, text in enumerate(texts)]
        (where / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (where / "qrels").mkdir()
    lines = [f"q{query}\tc{document}\t{grade}\n" for query, document, grade in JUDGED]
    (where / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    (where / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tc3\t1\n")
    return where


def test_a_folder_is_evaluated_by_its_judgements(folder, embedded):
    done = run("evaluate", str(folder), "--layers", "0,6", "--poolings", "mean,cls", "--json", "-")
    assert done.returncode == 0, done.stderr
    assert "1 queries without a relevant document, 1 judgements of unknown documents" in done.stderr
    assert "7/7" in done.stderr  # the bar: four documents and the three queries that are kept
    result = json.loads(done.stdout)
    runs = result["runs"]
    assert [(found["layer"], found["pooling"]) for found in runs] == [(0, "mean"), (0, "cls"), (6, "mean"), (6, "cls")]
    assert (result["judgements"], result["documents"]) == ("qrels/test.tsv", 4)
    vectors = embedded.embed([*DOCUMENTS, *QUERIES], options=embedded.embed_options(precision="float32"))[0, 0]
    scores = vectors[4:] @ vectors[:4].T
    scores /= (vectors[4:] ** 2).sum(axis=1)[:, None] ** 0.5 * (vectors[:4] ** 2).sum(axis=1) ** 0.5
    qrels: dict[str, dict[str, int]] = {}
    for query, document, grade in JUDGED[:-1]:
        qrels.setdefault(str(query), {})[str(document)] = grade
    asked = {str(q): {str(d): float(scores[q, d]) for d in range(4)} for q in range(3)}
    theirs = ir_measures.calc_aggregate([AP, RR, nDCG @ 10, P @ 10, R @ 10, R @ 100], qrels, asked)
    found = runs[2]
    for name, measure in (("map", AP), ("mrr", RR), ("ndcg@10", nDCG @ 10), ("p@10", P @ 10)):
        assert found[name] == pytest.approx(100 * theirs[measure], abs=0.01)
    assert found["recall"] == {"10": 100.0, "100": 100.0}
    assert (found["n"], found["model"]) == (3, "embedded")
    # Layer 0's [CLS] is the same for all: the worst ranks, 3 and 4 with the better one last, then 4 and 4.
    assert runs[1]["map"] == pytest.approx(100 * ((1 / 3 + 2 / 4) / 2 + 1 / 4 + 1 / 4) / 3, abs=0.01)


def test_another_split_as_a_table_for_people(folder):
    done = run("evaluate", str(folder), "--split", "train")
    assert done.returncode == 0, done.stderr
    header, line = done.stdout.splitlines()
    assert header.split() == ["layer", "pooling", "MAP", "MRR", "nDCG@10", "P@10", "R@10", "R@100"]
    assert line.split()[:2] == ["6", "mean"]
    assert line.split()[-1] == "100.00"


def test_the_fields_of_queries_and_documents_are_chosen(tmp_path):
    rows = [
        {"_id": "a", "title": "volcano", "text": "Rates rise."},
        {"_id": "b", "title": "rates", "text": "A volcano erupted."},
    ]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    topics = "<top>\n<num> Number: {}\n<title> {}\n<desc> Description:\n{}\n</top>\n"
    both = topics.format(1, "volcano", "interest rates") + topics.format(2, "interest rates", "volcano")
    (tmp_path / "topics.1-2").write_text(both)
    (tmp_path / "qrels.txt").write_text("1 0 a 1\n2 0 b 1\n")
    right = {("title", "title"), ("description", "text")}
    for query, document in [("title", "title"), ("title", "text"), ("description", "title"), ("description", "text")]:
        done = run("evaluate", str(tmp_path), "--query-field", query, "--document-fields", document, "--json", "-")
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        assert (result["query_field"], result["document_fields"]) == (query, [document])
        assert result["runs"][0]["mrr"] == (100.0 if (query, document) in right else 50.0)
    done = run("evaluate", str(tmp_path), "--document-fields", "text, title", "--json", "-")
    assert json.loads(done.stdout)["document_fields"] == ["title", "text"]
    assert json.loads(done.stdout)["query_field"] == "title"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("{}", "--query-field", "narrative"), "queries of these files have text"),
        (("{}", "--document-fields", "title,text"), "documents of these files have text"),
        (("{}/corpus.jsonl", "--query-field", "text"), "given with a file of pairs"),
        (("{}/qrels",), "the corpus cannot be found"),
        (("{}", "--split", "dev"), "another split than dev"),
        (("{}", "--layers", "8"), "layers 0 to 6"),
    ],
)
def test_bad_input_is_one_line_and_status_2(folder, arguments, word, capsys):
    status = main(["evaluate", *(argument.format(folder) for argument in arguments)])
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("Left out")]
    assert status == 2
    assert len(lines) == 1
    assert word in lines[0]


def test_the_help_tells_of_folders():
    done = run("evaluate", "--help")
    assert done.returncode == 0
    for word in ("--query-field", "--document-fields", "--split", "BEIR", "TREC", "qrels/test.tsv", "graded"):
        assert word in done.stdout
