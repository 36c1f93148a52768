"""`evaluate --fuse` and `search --fuse`: runs by vectors and words together, and the terms of each hit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from components.retrieval.fusion.settings import MOST_RRF_K
from components.retrieval.search.lexical import KINDS, make_ranker
from tests.components.command_line.in_process import run

pytestmark = pytest.mark.usefixtures("loaded_once")

TEXTS = [
    "A volcano erupted near the town.",
    "The bank raised its rates.",
    "Lava reached the sea.",
    "A cat slept near the bank.",
    "Three hundred flights were cancelled.",
    "Pilots walked out for three days.",
]
QUERIES = ["volcano eruption", "interest rates of a bank", "lava", "sleeping pet", "three hundred flights", "strike"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    where = tmp_path_factory.mktemp("fuse")
    rows = [{"sentence": text, "compressed": query} for text, query in zip(TEXTS, QUERIES, strict=True)]
    (where / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (where / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    beir = where / "beir"
    (beir / "qrels").mkdir(parents=True)
    for name, texts in (("corpus.jsonl", TEXTS), ("queries.jsonl", QUERIES)):
        lines = (json.dumps({"_id": f"{name[0]}{at}", "text": text}) + "\n" for at, text in enumerate(texts))
        (beir / name).write_text("".join(lines))
    judged = "".join(f"q{at}\tc{at}\t2\nq{at}\tc{(at + 1) % 5}\t1\n" for at in range(6))
    (beir / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged + "q0\tc99\t1\n")
    return where


@pytest.fixture(scope="module")
def index(folder) -> Path:
    done = run("index", str(folder / "texts.txt"), "--out", str(folder / "idx"), "--precision", "float32")
    assert done.returncode == 0, done.stderr
    return folder / "idx"


def measures(found: dict) -> dict:
    return {name: found[name] for name in ("recall", "mrr", "ndcg@10", "n")}


@pytest.mark.parametrize("file", ["pairs.jsonl", "beir"])
def test_evaluate_adds_fused_runs_whose_ends_are_the_single_runs(folder, embedded, file):
    done = run(
        "evaluate", str(folder / file), "--layers", "0,6", "--poolings", "mean", "--fuse", "bm25",
        "--weights", "0,0.5,1", "--json", "-",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    runs = result["runs"]
    single, fused = runs[:2], runs[2:]
    assert [(found["layer"], found["method"], found["weight"]) for found in fused] == [
        (layer, method, weight)
        for layer in (0, 6)
        for method, weight in (("rrf", None), ("weighted", 0), ("weighted", 0.5), ("weighted", 1))
    ]
    assert all(found["fused"] == ["bm25"] and found["depth"] is None for found in fused)
    assert fused[0]["k"] == 60
    assert fused[1]["normalised"] == "minmax"
    for of_layer, alone in zip((fused[:4], fused[4:]), single, strict=True):
        assert measures(of_layer[1]) == measures(alone)
    assert measures(fused[3]) == measures(fused[7])  # words alone do not depend on the layer
    assert [chosen["layer"] for chosen in result["chosen_weights"]] == [0, 6]
    assert "one half of the queries chooses the weight" in done.stderr
    if file == "pairs.jsonl":
        ranker = make_ranker("bm25", TEXTS)
        vectors = embedded.embed([*TEXTS, *QUERIES], options=embedded.embed_options(precision="float32"))[0, 0]
        unit = vectors.astype(np.float64) / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
        ranks = []
        for number, query in enumerate(QUERIES):
            cosines, words = unit[6 + number] @ unit[:6].T, ranker.scores(query)
            sums = [
                1 / (60 + sum(cosines >= cosines[text]))
                + (1 / (60 + sum(words >= words[text])) if words[text] > 0 else 0)
                for text in range(6)
            ]
            ranks.append(sum(value >= sums[number] - 1e-12 for value in sums))
        assert fused[4]["mrr"] == pytest.approx(100 * np.mean([1 / rank for rank in ranks]), abs=0.006)


def test_two_rankings_by_words_share_the_weight(folder):
    done = run(
        "evaluate", str(folder / "pairs.jsonl"), "--fuse", "bm25,jm", "--weights", "0.5", "--normalise", "z",
        "--depth", "3", "--rrf-k", "10", "--json", "-",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    _, by_ranks, weighted = json.loads(done.stdout)["runs"]
    assert (by_ranks["fused"], by_ranks["k"], by_ranks["depth"]) == (["bm25", "jm"], 10, 3)
    assert (weighted["weight"], weighted["normalised"]) == (0.5, "z")


def test_the_table_for_people_names_the_fusion(folder):
    done = run("evaluate", str(folder / "pairs.jsonl"), "--fuse", "tfidf", "--weights", "0.25")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[2].endswith("with tfidf, reciprocal ranks")
    assert lines[3].endswith("with tfidf, weight 0.25")


def test_search_gives_the_terms_of_each_hit(index):
    query = "three hundred flights"
    done = run("search", str(index), query, "--fuse", "bm25", "-k", "6", "--json", "-")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    alone = json.loads(run("search", str(index), query, "-k", "6", "--json", "-").stdout)["results"]
    assert (result["fused"], result["method"], result["k"]) == (["bm25"], "rrf", 60)
    rank_by_vectors = {hit["index"]: hit["rank"] for hit in alone}
    words = make_ranker("bm25", TEXTS).scores(query)
    assert [hit["score"] for hit in result["results"]] == sorted(
        (hit["score"] for hit in result["results"]), reverse=True
    )
    for hit in result["results"]:
        by_vectors, by_words = hit["terms"]
        assert by_vectors["rank"] == rank_by_vectors[hit["index"]]
        assert by_vectors["term"] == f"1/(60+{by_vectors['rank']})"
        score = float(words[hit["index"]])
        assert by_words["rank"] == (int((words >= score).sum()) if score > 0 else None)
        assert by_words["term"] == (f"1/(60+{by_words['rank']})" if score > 0 else "0")
        assert hit["score"] == pytest.approx(by_vectors["value"] + by_words["value"], abs=1e-8)
    assert result["results"][0]["text"] == TEXTS[4]


def test_search_by_a_weight(index):
    query = "a cat at the bank"
    how = ("--fuse", "bm25", "--weights", "0.4", "--depth", "6", "--json", "-", "-k", "3")
    done = run("search", str(index), query, *how)
    assert done.returncode == 0, done.stderr
    assert "together with bm25: weight 0.4 of the words, only the first 6 of each." in done.stderr
    result = json.loads(done.stdout)
    assert (result["method"], result["weight"], len(result["results"])) == ("weighted", 0.4, 3)
    single = [
        json.loads(run("search", str(index), query, "--fuse", "bm25", "--weights", end, "--json", "-").stdout)[
            "results"
        ]
        for end in ("0", "1")
    ]
    alone = json.loads(run("search", str(index), query, "--json", "-").stdout)["results"]
    assert [hit["index"] for hit in single[0]] == [hit["index"] for hit in alone]
    words = make_ranker("bm25", TEXTS).scores(query)
    assert [hit["index"] for hit in single[1]] == [
        text for text in np.argsort(-words, kind="stable") if words[text] > 0
    ]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--fuse", "bm26"], "bow, tfidf, lsa, bm25, jm"),
        (["--fuse", "bm25,bm25"], "two different"),
        (["--fuse", "bm25,jm,bow"], "one or two"),
        (["--fuse", ""], "one or two"),
        (["--weights", "0.5"], "--weights is given without --fuse"),
        (["--depth", "5"], "--depth is given without --fuse"),
        (["--rrf-k", "5"], "--rrf-k is given without --fuse"),
        (["--fuse", "bm25", "--weights", "0.5,2"], "'2'"),
        (["--fuse", "bm25", "--weights", "half"], "'half'"),
        (["--fuse", "bm25", "--weights", "nan"], "from 0 to 1"),
        (["--fuse", "bm25", "--weights", ""], "from 0 to 1"),
        (["--fuse", "bm25", "--depth", "0"], "--depth is 0"),
        (["--fuse", "bm25", "--rrf-k", "-1"], "--rrf-k is -1"),
        (["--fuse", "bm25", "--rrf-k", str(MOST_RRF_K + 1)], f"At most {MOST_RRF_K:,}"),
        (["--fuse", "bm25", "--normalise", "z"], "without --weights"),
        (["--fuse", "bm25", "--weights", "0.5", "--normalise", "softmax"], "minmax, z or rrf"),
    ],
)
def test_bad_values_are_one_line_and_status_2(folder, index, more, said):
    for command in (("evaluate", str(folder / "pairs.jsonl")), ("search", str(index), "a query")):
        done = run(*command, *more)
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
        assert said in done.stderr


def test_a_fused_search_is_exact_and_has_one_weight(index):
    for more in (["--engine", "usearch"], ["--weights", "0.2,0.4"]):
        done = run("search", str(index), "a query", "--fuse", "bm25", *more)
        assert done.returncode == 2
        assert f"--fuse bm25 does not go with {' '.join(more)}." in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_every_ranking_by_words_can_be_fused(index):
    for kind in KINDS:
        done = run("search", str(index), "the bank raised rates", "--fuse", kind, "--json", "-")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["results"][0]["text"] == TEXTS[1]
    query = "the bank raised rates"
    (hit,) = json.loads(run("search", str(index), query, "-k", "1", "--fuse", "bm25,jm", "--json", "-").stdout)[
        "results"
    ]
    for kind, term in zip(("bm25", "jm"), hit["terms"][1:], strict=True):  # each with the words of its own ranking
        parts = make_ranker(kind, TEXTS).split(query, hit["text"], hit["index"]).query
        assert term["run"] == kind
        assert term["words"] == [[part.text, pytest.approx(part.value, abs=1e-8)] for part in parts]
