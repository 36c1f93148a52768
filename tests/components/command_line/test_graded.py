"""`evaluate` on a folder with graded relevance."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ir_measures
import pytest
from ir_measures import AP, RR, P, R, nDCG

from components.command_line.commands import evaluate
from components.command_line.program import main
from tests.components.command_line.in_process import run

pytestmark = pytest.mark.usefixtures("loaded_once")

DOCUMENTS = ["A volcano erupted near the town.", "The bank raised its rates.", "Lava reached the sea.", "A cat slept."]
QUERIES = ["volcanoes", "interest rates", "pets", "what is lost", "nobody judged this"]
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
    assert "1 query has no relevant document in the corpus: every measure of such a query is 0." in done.stderr
    assert "8/8" in done.stderr  # the bar: four documents and the four queries that are kept
    result = json.loads(done.stdout)
    runs = result["runs"]
    assert [(found["layer"], found["pooling"]) for found in runs] == [(0, "mean"), (0, "cls"), (6, "mean"), (6, "cls")]
    assert (result["judgements"], result["documents"]) == ("qrels/test.tsv", 4)
    vectors = embedded.embed([*DOCUMENTS, *QUERIES], options=embedded.embed_options(precision="float32"))[0, 0]
    scores = vectors[4:] @ vectors[:4].T
    scores /= (vectors[4:] ** 2).sum(axis=1)[:, None] ** 0.5 * (vectors[:4] ** 2).sum(axis=1) ** 0.5
    qrels: dict[str, dict[str, int]] = {}
    for query, document, grade in JUDGED:
        qrels.setdefault(str(query), {})[str(document)] = grade
    asked = {str(q): {str(d): float(scores[q, d]) for d in range(4)} for q in range(4)}
    theirs = ir_measures.calc_aggregate([AP, RR, nDCG @ 10, P @ 10, R @ 10, R @ 100], qrels, asked)
    found = runs[2]
    for name, measure in (("map", AP), ("mrr", RR), ("ndcg@10", nDCG @ 10), ("p@10", P @ 10)):
        assert found[name] == pytest.approx(100 * theirs[measure], abs=0.01)
    assert found["recall"] == {"10": 75.0, "100": 75.0}
    assert (found["n"], found["model"]) == (4, "embedded")
    # Layer 0's [CLS] is the same for all: the worst ranks, 3 and 4 with the better one last, then 4 and 4, and what is lost.
    assert runs[1]["map"] == pytest.approx(100 * ((1 / 3 + 2 / 4) / 2 + 1 / 4 + 1 / 4 + 0) / 4, abs=0.01)


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
    notes = ("Left out", "1 relevant document of 1 query is not", "1 query has no relevant document")
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith(notes)]
    assert status == 2
    assert len(lines) == 1
    assert word in lines[0]


def test_the_help_tells_of_folders():
    done = run("evaluate", "--help")
    assert done.returncode == 0
    for word in ("--query-field", "--document-fields", "--split", "BEIR", "TREC", "qrels/test.tsv", "graded"):
        assert word in done.stdout


PAIRS_OF_SIDES = [
    ("Zoos protect animals that would die out.", "Zoos lock animals up and hardly save any."),
    ("School uniforms make pupils equal.", "School uniforms hide who a pupil is."),
    ("Homework teaches children to work alone.", "Homework keeps children from play."),
]


@pytest.mark.parametrize("stage", [(), ("--rerank", "3")], ids=["", "re-ranked"])
def test_a_query_that_is_a_document_does_not_find_itself(tmp_path, embedded, stage):
    """As in ArguAna, where each query stands in the corpus under its own id, and BEIR leaves it out."""
    documents = [
        (f"t{number}{side}", text)
        for number, pair in enumerate(PAIRS_OF_SIDES)
        for side, text in zip("ab", pair, strict=True)
    ]
    for name, rows in (("corpus", documents), ("queries", documents[::2])):
        lines = [json.dumps({"_id": key, "text": text}) + "\n" for key, text in rows]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    judged = [*(f"t{number}a\tt{number}b\t1" for number in range(3)), "t0a\tt0a\t1", "t1a\tgone\t1"]
    (tmp_path / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]))
    done = run("evaluate", str(tmp_path), *stage, "--json", "-")
    assert done.returncode == 0, done.stderr
    assert (
        "3 queries have the id of a document: a query's own document is left out of its ranking, as in BEIR."
        in done.stderr
    )
    assert "1 relevant document of 1 query is not in the corpus, and counts as missed, as in trec_eval." in done.stderr
    result = json.loads(done.stdout)
    assert (result["own_documents_left_out"], result["relevant_not_in_corpus"]) == (3, 1)
    assert result["left_out"] == {"judgements of unknown documents": 1, "judgements of a query's own document": 1}
    run_of = {key: {other: 0.0 for other, _ in documents if other != key} for key, _ in documents[::2]}
    for found, scores in zip(result["runs"], (_cosines(embedded, documents), None), strict=False):
        if scores is not None:
            run_of = {key: {other: scores[key][other] for other in own} for key, own in run_of.items()}
            qrels = {f"t{number}a": {f"t{number}b": 1} for number in range(3)}
            qrels["t1a"]["gone"] = 1
            theirs = ir_measures.calc_aggregate([RR, nDCG @ 10, AP, R @ 10], qrels, run_of)
            assert found["mrr"] == pytest.approx(100 * theirs[RR], abs=0.01)
            assert found["ndcg@10"] == pytest.approx(100 * theirs[nDCG @ 10], abs=0.01)
            assert found["map"] == pytest.approx(100 * theirs[AP], abs=0.01)
        assert found["recall"]["10"] == pytest.approx(100 * 2.5 / 3, abs=0.01)
        assert found["mrr"] == 100


def _cosines(embedded, documents) -> dict[str, dict[str, float]]:
    texts = [text for _, text in documents]
    vectors = embedded.embed(texts, options=embedded.embed_options(precision="float32"))[0, 0]
    vectors = vectors / (vectors**2).sum(axis=1, keepdims=True) ** 0.5
    keys = [key for key, _ in documents]
    return {key: dict(zip(keys, row.tolist(), strict=True)) for key, row in zip(keys, vectors @ vectors.T, strict=True)}


def test_a_preview_shows_a_document_of_the_highest_grade() -> None:
    graded: Any = SimpleNamespace(
        documents=["a", "b", "c"], queries=["nobody judged this", "q"], grades=[{}, {0: 1, 2: 3, 1: 2}],
        document_fields=("text",), query_field="text", report=SimpleNamespace(files={"judgements": "x"}, left_out={}),
    )  # fmt: skip
    said: list[str] = []
    found = evaluate._previewed(SimpleNamespace(pairs="folder"), graded, said.append)  # type: ignore[arg-type]
    assert found["preview"] == [{"query": "q", "document": "c"}]
    assert said[1:] == ["query: q", "  right document: c"]
