"""`rerank`, and `evaluate --rerank` on pairs and on a folder with graded relevance."""

from __future__ import annotations

import json

import ir_measures
import numpy as np
import pytest
from ir_measures import AP, RR, P, nDCG

from components.model.backend import Backend
from components.retrieval.search.rerank import late_interaction_scores
from tests.components.command_line.in_process import run
from tests.support.saved_models import save_cross_encoder, save_multi, save_sparse

pytestmark = pytest.mark.usefixtures("loaded_once")

DOCUMENTS = [
    "A volcano erupted near the town.",
    "The bank raised its rates.",
    "Lava reached the sea.",
    "A cat slept on the bank of a river.",
    "The mountain was quiet for years.",
]
QUERIES = ["volcano eruption", "interest rates of a bank", "sleeping pets"]
JUDGED = [(0, 0, 2), (0, 2, 1), (0, 4, 1), (1, 1, 2), (2, 3, 1)]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    where = tmp_path_factory.mktemp("index")
    (where / "corpus.txt").write_text("\n".join(DOCUMENTS))
    done = run("index", str(where / "corpus.txt"), "--out", str(where / "out"), "--precision", "float32")
    assert done.returncode == 0, done.stderr
    return where / "out"


@pytest.fixture(scope="module")
def three_labels(tmp_path_factory):
    folder = save_cross_encoder(tmp_path_factory.mktemp("labels"), "bert", outputs=3)
    config = json.loads((folder / "config.json").read_text())
    names = {"0": "contradiction", "1": "entailment", "2": "neutral"}
    (folder / "config.json").write_text(json.dumps(config | {"id2label": names}))
    return folder


@pytest.mark.parametrize("label", ["entailment", "1"])
def test_a_label_is_chosen_by_name_or_number(label, index, three_labels, tmp_path):
    (tmp_path / "queries.txt").write_text(QUERIES[0])
    arguments = ("--cross-encoder", str(three_labels), "--label", label, "--precision", "float32", "--json", "-")
    done = run("rerank", str(index), str(tmp_path / "queries.txt"), "-k", "4", *arguments)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["cross_encoder_label"] == "entailment"
    (item,) = result["queries"]
    texts = [hit["text"] for hit in item["results"]]
    expected = Backend.load(str(three_labels), device_name="cpu").pair_logits([QUERIES[0]] * 4, texts)[:, 1]
    assert [hit["score"] for hit in item["results"]] == pytest.approx(expected, abs=1e-4)
    assert expected.tolist() == sorted(expected, reverse=True)


def test_how_the_queries_are_written_can_be_chosen(index, three_labels, tmp_path):
    path = tmp_path / "fragen.csv"
    path.write_bytes("Nr;Frage\n1;Wo schläft der Bär?\n2;Wer lügt?\n".encode("mac_roman"))
    model = ("--cross-encoder", str(three_labels), "--label", "1", "-k", "1", "--json", "-")
    done = run("rerank", str(index), str(path), "--separator", "semicolon", "--encoding", "mac_roman", *model)
    assert done.returncode == 0, done.stderr
    assert [each["query"] for each in json.loads(done.stdout)["queries"]] == ["Wo schläft der Bär?", "Wer lügt?"]
    assert "The sentences are the column Frage (as asked); kept beside it: Nr." in done.stderr


def test_evaluate_ranks_by_the_chosen_label(graded, three_labels):
    arguments = ("evaluate", str(graded), "--rerank", "3", "--cross-encoder", str(three_labels))
    results = [json.loads(run(*arguments, "--label", name, "--json", "-").stdout) for name in ("neutral", "2")]
    assert [result["cross_encoder_label"] for result in results] == ["neutral", "neutral"]
    assert results[0]["runs"] == results[1]["runs"]
    for missing in ((), ("--label", "3"), ("--label", "relevant")):
        done = run(*arguments, *missing)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert "contradiction, entailment, neutral" in done.stderr


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    where = tmp_path_factory.mktemp("beir")
    for name, texts in (("corpus.jsonl", DOCUMENTS), ("queries.jsonl", QUERIES)):
        rows = [{"_id": f"{name[0]}{row}", "text": text} for row, text in enumerate(texts)]
        (where / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (where / "qrels").mkdir()
    lines = [f"q{query}\tc{document}\t{grade}\n" for query, document, grade in JUDGED]
    (where / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    return where


@pytest.mark.parametrize("name", ["queries.txt", "queries.jsonl", "queries.csv"])
def test_the_hits_of_each_query_are_in_the_cross_encoders_order(name, index, scorer, embedded, tmp_path):
    path = tmp_path / name
    if name.endswith("txt"):
        path.write_text("\n".join(QUERIES))
    elif name.endswith("jsonl"):
        path.write_text(
            "".join(json.dumps({"id": "a long text beside it", "query": query}) + "\n" for query in QUERIES)
        )
    else:
        path.write_text("\n".join(["number,query", *(f"{row},{query}" for row, query in enumerate(QUERIES))]))
    done = run("rerank", str(index), str(path), "-k", "4", "--precision", "float32", "--json", "-")
    assert done.returncode == 0, done.stderr
    assert "12/12" in done.stderr
    result = json.loads(done.stdout)
    assert [item["query"] for item in result["queries"]] == QUERIES
    assert (result["model"], result["cross_encoder"], result["k"]) == ("embedded", "embedded-cross-encoder", 4)
    assert set(result["seconds"]) == {"retrieve", "rerank"}
    vectors = embedded.embed([*DOCUMENTS, *QUERIES], options=embedded.embed_options(precision="float32"))[0, 0]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for number, item in enumerate(result["queries"]):
        retrieved = np.argsort(-(vectors[:5] @ vectors[5 + number]))[:4]
        scores = scorer.score_pairs([QUERIES[number]] * 4, [DOCUMENTS[row] for row in retrieved])
        order = np.argsort(-scores)
        hits = item["results"]
        assert [hit["index"] for hit in hits] == retrieved[order].tolist()
        assert [hit["retrieved_rank"] for hit in hits] == (order + 1).tolist()
        assert [hit["rank"] for hit in hits] == [1, 2, 3, 4]
        assert [hit["score"] for hit in hits] == pytest.approx(scores[order], abs=1e-4)
        assert [hit["text"] for hit in hits] == [DOCUMENTS[hit["index"]] for hit in hits]


def test_reranked_hits_for_people(index, tmp_path):
    (tmp_path / "queries.txt").write_text(QUERIES[0])
    done = run(
        "rerank", str(index), str(tmp_path / "queries.txt"), "-k", "2", "--cross-encoder", "embedded-cross-encoder"
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == QUERIES[0]
    assert len(lines) == 3
    assert "was    " in lines[1]
    assert "1 queries, 2 candidates" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("-k", "0"), "k is 0"),
        (("--cross-encoder", "embedded"), "no head"),
        (("--layer", "2"), "not in this index"),
        (("--precision", "float16"), "precision"),
        (("--max-length", "3"), "maximum length"),
        (("--query-column", "nothing"), "nothing"),
        (("--model", "another"), "another"),
    ],
)
def test_unusable_options_are_refused_in_one_line(arguments, says, index, tmp_path):
    (tmp_path / "queries.csv").write_text("number,query\n1,volcanoes\n")
    done = run("rerank", str(index), str(tmp_path / "queries.csv"), *arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert says in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("length", [None, 9])
def test_graded_relevance_is_measured_again_after_reranking(graded, scorer, embedded, length):
    """Also with a maximum length, which limits the pairs as it limits the sentences."""
    limit = () if length is None else ("--max-length", str(length))
    done = run("evaluate", str(graded), "--layers", "3,6", "--rerank", "3", "--json", "-", *limit)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    runs = result["runs"]
    assert [(item["layer"], item.get("reranked")) for item in runs] == [(3, None), (6, None), (3, 3), (6, 3)]
    assert runs[3]["cross_encoder"] == "embedded-cross-encoder"
    assert result["rerank_seconds"] > 0
    assert result["cross_encoder_max_length"] == (length or scorer.own_max_length)
    options = embedded.embed_options(precision="float32", max_length=length)
    vectors = embedded.embed([*DOCUMENTS, *QUERIES], options=options)[0, 0]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    qrels, ranking = {}, {}
    for query, document, grade in JUDGED:
        qrels.setdefault(str(query), {})[str(document)] = grade
    for number, query in enumerate(QUERIES):
        cosines = vectors[:5] @ vectors[5 + number]
        first = np.argsort(-cosines)[:3]
        scores = scorer.score_pairs([query] * 3, [DOCUMENTS[row] for row in first], max_length=length)
        if length is not None:
            assert not np.allclose(scores, scorer.score_pairs([query] * 3, [DOCUMENTS[row] for row in first]))
        cosines[first] = 100 + scores
        ranking[str(number)] = {str(row): float(value) for row, value in enumerate(cosines)}
    theirs = ir_measures.calc_aggregate([AP, RR, nDCG @ 10, P @ 10], qrels, ranking)
    for name, measure in (("map", AP), ("mrr", RR), ("ndcg@10", nDCG @ 10), ("p@10", P @ 10)):
        assert runs[3][name] == pytest.approx(100 * theirs[measure], abs=0.01)


def test_pairs_are_measured_again_after_reranking(tmp_path):
    path = tmp_path / "pairs.jsonl"
    rows = zip(DOCUMENTS[:4], ["a volcano erupted", "rates raised", "lava at the sea", "cat asleep"], strict=True)
    path.write_text("".join(json.dumps({"sentence": a, "compressed": b}) + "\n" for a, b in rows))
    done = run("evaluate", str(path), "--rerank", "2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert lines[2].endswith("first 2 re-ranked")
    assert "8/8" in done.stderr


PAIRS = (
    ("the cat sat on the red hat", "a cat"),
    ("money in the bank", "the bank"),
    ("we will walk by the river", "the river"),
    ("the dog ran on the bank", "a dog"),
)


def own_ranks(scores):
    return 1 + (scores > np.diag(scores)[:, None]).sum(axis=1)


def test_splade_and_max_sim_over_trained_vectors_are_runs(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps({"sentence": a, "compressed": b}) + "\n" for a, b in PAIRS))
    documents, queries = zip(*PAIRS, strict=True)
    sparse, multi = save_sparse(tmp_path / "sparse"), save_multi(tmp_path / "multi")
    done = run("evaluate", str(path), "--model", str(sparse), "--splade", "--json", "-")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    (of_vectors, of_weights) = result["runs"]
    assert (of_vectors["layer"], of_weights["layer"], of_weights["ranking"]) == (3, None, "SPLADE")
    model = Backend.load(str(sparse), device_name="cpu")
    weights = [model.sparse_vectors(texts, role=role) for texts, role in ((queries, "query"), (documents, "document"))]
    ranks = own_ranks(weights[0] @ weights[1].T)
    assert of_weights["mrr"] == pytest.approx(100 * (1 / ranks).mean(), abs=0.01)
    assert result["splade_weights"] == np.count_nonzero(weights[1])
    assert "SPLADE" in run("evaluate", str(path), "--model", str(sparse), "--splade").stdout.splitlines()[-1]

    done = run("evaluate", str(path), "--model", str(multi), "--max-sim", "4", "--json", "-")
    assert done.returncode == 0, done.stderr
    second = json.loads(done.stdout)["runs"][1]
    assert (second["max_sim"], second["trained_for_it"]) == (4, True)
    model = Backend.load(str(multi), device_name="cpu")
    ranks = own_ranks(np.array([late_interaction_scores(model, query, documents, 0) for query in queries]))
    assert second["mrr"] == pytest.approx(100 * (1 / ranks).mean(), abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--rerank", "1"), "nothing to re-rank"),
        (("--cross-encoder", "embedded-cross-encoder"), "without --rerank"),
        (("--label", "entailment"), "without --rerank"),
        (("--rerank", "3", "--cross-encoder", "embedded"), "no head"),
        (("--rerank", "3", "--max-length", "3"), "3 tokens"),
        (("--max-sim", "1"), "nothing to re-rank"),
        (("--splade",), "does not give weights"),
    ],
)
def test_unusable_reranking_is_refused_in_one_line(arguments, says, graded):
    done = run("evaluate", str(graded), *arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
