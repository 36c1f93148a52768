"""The commands use a folder as it was published: equal to plain sentence-transformers, and what is not applied is said."""

from __future__ import annotations

import csv
import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import SimilarityFunction, semantic_search

from components.command_line import options as shared
from components.command_line.program import main
from components.errors import InputError
from components.model.backend import Backend
from components.model.catalog import AUTHORS, catalog_spec, parse_model, spec_of
from components.model.files.sentence_config import SentenceConfig, prompt_for, with_prompts
from components.retrieval.evaluation.second_stage import candidates
from components.retrieval.search.exact import EVERY_SIMILARITY, ExactSearch, for_cosines, pair_similarity
from tests.support.tiny import Module, dense_module, pooling_module, publish, save_masked_lm_of

CORPUS = [
    "the cat sat in the house by the river",
    "a dog ran to the bank",
    "we put money in the bank .",
    "the river bank was muddy",
    "walking cats walked , and dogs",
]
QUERY = "the river of the bank and the dog"
PROMPTS = {"query": "find the river : ", "document": "a text : ", "similarity": "the same ? "}
MEAN = pooling_module()
FOLDERS: dict[str, tuple[list[Module], dict[str, Any]]] = {
    "dot, scaled, shortened": ([MEAN, ("Normalize", {})], {"similarity_fn_name": "dot", "truncate_dim": 9}),
    "euclidean, joined": (
        [("Pooling", {"embedding_dimension": 32, "pooling_mode": ["weightedmean", "cls"]})],
        {"similarity_fn_name": "euclidean", "prompts": PROMPTS},
    ),
    "manhattan, LayerNorm": ([MEAN, ("LayerNorm", {"dimension": 32})], {"similarity_fn_name": "manhattan"}),
    "dot, Dense, no prompt in the vector": (
        [pooling_module(include_prompt=False), dense_module(32, 12)],
        {"similarity_fn_name": "dot", "prompts": PROMPTS, "default_prompt_name": "similarity"},
    ),
}


@pytest.fixture
def make(tiny_folder: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    def made(name: str) -> Path:
        modules, top = FOLDERS[name]
        folder = publish(shutil.copytree(tiny_folder("bert"), tmp_path / "model"), *modules)
        (folder / "config_sentence_transformers.json").write_text(json.dumps(top))
        (folder / "sentence_bert_config.json").write_text(json.dumps({"query_length": 8, "document_length": 11}))
        return Path(folder)

    return made


def result_of(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    """What a command writes as JSON."""
    target = tmp_path / "result.json"
    assert main([*arguments, "--json", str(target)]) == 0
    content: dict[str, Any] = json.loads(target.read_text())
    return content


@pytest.mark.parametrize("name", FOLDERS)
def test_index_and_search_are_semantic_search(
    name: str, make: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make(name)
    (tmp_path / "corpus.txt").write_text("\n".join(CORPUS))
    index = str(tmp_path / "index")
    written = result_of(tmp_path, "index", str(tmp_path / "corpus.txt"), "--model", str(folder), "--out", index)
    found = result_of(tmp_path, "search", index, QUERY, "--model", str(folder))
    library = SentenceTransformer(str(folder), device="cpu")
    documents, query = library.encode_document(CORPUS), library.encode_query([QUERY])
    (expected,) = semantic_search(query, documents, score_function=library.similarity)
    assert [hit["index"] for hit in found["results"]] == [hit["corpus_id"] for hit in expected]
    scale = max(1.0, float(np.linalg.norm(query) * np.linalg.norm(documents, axis=1).max()))
    scores = [hit["score"] for hit in found["results"]]
    np.testing.assert_allclose(scores, [hit["score"] for hit in expected], atol=1e-5 * scale)
    assert found["similarity"] == FOLDERS[name][1]["similarity_fn_name"]
    assert found["not_applied"] == written["not_applied"] == []
    assert "Ranked by" in capsys.readouterr().err


@pytest.mark.parametrize("name", FOLDERS)
def test_sts_is_the_correlation_of_the_models_own_similarity(
    name: str, make: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = make(name)
    pairs = [(CORPUS[at % 5], CORPUS[(at * 2 + 1) % 5], at) for at in (0, 1, 2, 3, 5)]
    with (tmp_path / "sts.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("sentence1", "sentence2", "score"), *pairs])
    found = result_of(tmp_path, "sts", str(tmp_path / "sts.csv"), "--model", str(folder), "--precision", "float32")
    library = SentenceTransformer(str(folder), device="cpu")
    first, second = (library.encode([pair[side] for pair in pairs]) for side in (0, 1))
    values = library.similarity_pairwise(first, second).numpy()
    assert found["runs"][0]["spearman"] == pytest.approx(
        spearmanr(values, [pair[2] for pair in pairs]).statistic, abs=1e-4
    )


@pytest.mark.parametrize("name", FOLDERS)
def test_evaluate_ranks_by_the_models_own_similarity(name: str, make: Callable[[str], Path], tmp_path: Path) -> None:
    folder = make(name)
    rows = [{"compressed": f"{text} and the dog", "sentence": text} for text in CORPUS]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = result_of(
        tmp_path, "evaluate", str(tmp_path / "pairs.jsonl"), "--model", str(folder), "--precision", "float32"
    )
    library = SentenceTransformer(str(folder), device="cpu")
    scores = library.similarity(
        library.encode_query([row["compressed"] for row in rows]), library.encode_document(CORPUS)
    ).numpy()
    ranks = [1 + int((row > row[at]).sum()) for at, row in enumerate(scores)]
    assert found["runs"][0]["mrr"] == pytest.approx(100 * float(np.mean([1 / rank for rank in ranks])), abs=1e-3)
    assert found["similarity"] == FOLDERS[name][1]["similarity_fn_name"]


def test_several_right_answers_and_candidates_by_the_manhattan_distance(
    make: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = make("manhattan, LayerNorm")
    rows = [{"query": f"{CORPUS[at % 3]} and the dog", "answer": text} for at, text in enumerate(CORPUS)]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    arguments = ("evaluate", str(tmp_path / "pairs.jsonl"), "--model", str(folder), "--precision", "float32")
    found = result_of(tmp_path, *arguments, "--max-sim", "3")
    library = SentenceTransformer(str(folder), device="cpu")
    asked, told = library.encode_query([row["query"] for row in rows[:3]]), library.encode_document(CORPUS)
    scores = -np.abs(asked[:, None] - told[None]).sum(-1)
    first = [min(1 + int((row > row[at]).sum()) for at in range(number, 5, 3)) for number, row in enumerate(scores)]
    assert found["runs"][0]["mrr"] == pytest.approx(100 * float(np.mean([1 / rank for rank in first])), abs=1e-3)
    assert found["similarity"] == "manhattan"
    best = candidates(asked, told, 3, similarity="manhattan")
    np.testing.assert_array_equal(best, np.argsort(-scores, axis=1, kind="stable")[:, :3])


def test_why_reads_texts_behind_the_prompt_of_every_text(make: Callable[[str], Path], tmp_path: Path) -> None:
    folder = make("dot, Dense, no prompt in the vector")
    found = result_of(tmp_path, "why", CORPUS[0], CORPUS[3], "--model", str(folder))
    first, second = SentenceTransformer(str(folder), device="cpu").encode([CORPUS[0], CORPUS[3]])
    expected = float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))
    assert found["cosine"] == pytest.approx(expected, abs=1e-5)
    without = result_of(tmp_path, "why", CORPUS[0], CORPUS[3], "--model", str(folder), "--prompt", "none")
    assert without["cosine"] != pytest.approx(expected, abs=1e-3)


def test_a_prompt_of_ones_own(make: Callable[[str], Path], tmp_path: Path) -> None:
    folder = make("manhattan, LayerNorm")
    found = result_of(tmp_path, "why", CORPUS[0], CORPUS[3], "--model", str(folder), "--prompt", "money : ")
    vectors = SentenceTransformer(str(folder), device="cpu").encode([CORPUS[0], CORPUS[3]], prompt="money : ")
    lengths = np.linalg.norm(vectors, axis=1)
    assert found["cosine"] == pytest.approx(float(vectors[0] @ vectors[1] / lengths.prod()), abs=1e-5)


def test_what_is_not_applied_is_said_by_every_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = save_masked_lm_of(tmp_path / "model", "bert")
    publish(folder, MEAN, ("SparseAutoEncoder", {"k": 2}))
    corpus, scored, pairs = tmp_path / "corpus.txt", tmp_path / "scored.csv", tmp_path / "pairs.csv"
    corpus.write_text("\n".join(CORPUS))
    texts = [*CORPUS, QUERY, "a red stone", "the north wind ran"]
    rows = list(itertools.combinations(texts, 2))
    with scored.open("w", newline="") as file:
        csv.writer(file).writerows(
            [("sentence1", "sentence2", "score"), *((*row, n % 6) for n, row in enumerate(rows))]
        )
    with pairs.open("w", newline="") as file:
        csv.writer(file).writerows(
            [("anchor", "positive"), *((f"query {n} {text}", f"{text} {n}") for n, text in enumerate(texts))]
        )
    index, model = str(tmp_path / "index"), ("--model", str(folder))
    for arguments in (
        ("why", CORPUS[0], CORPUS[3], *model),
        ("predict", "the [MASK] sat", *model),
        ("index", str(corpus), "--out", index, *model),
        ("search", index, QUERY, *model),
        ("sts", str(scored), *model),
        ("train", str(pairs), "--dry-run", *model),
    ):
        found = result_of(tmp_path, *arguments)
        assert "SparseAutoEncoder" in capsys.readouterr().err, arguments
        assert "SparseAutoEncoder" in found["not_applied"][0], arguments


def test_a_reranker_makes_no_vectors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "corpus.txt").write_text("\n".join(CORPUS))
    arguments = [
        "index",
        str(tmp_path / "corpus.txt"),
        "--model",
        "embedded-cross-encoder",
        "--out",
        str(tmp_path / "index"),
    ]
    assert main(arguments) != 0
    assert "is a reranker" in capsys.readouterr().err


# --- Prompts that authors describe and files do not have


def test_they_are_used_only_where_they_are_asked_for() -> None:
    plain = catalog_spec("intfloat/e5-small-v2")
    chosen = parse_model(f"intfloat/e5-small-v2{AUTHORS}")
    assert plain is not None
    assert not plain.with_prompts
    assert chosen.with_prompts
    assert chosen.hub_id == plain.hub_id == plain.key
    assert (plain.other_key, chosen.other_key) == (chosen.key, plain.key)
    assert spec_of(chosen.key) == chosen
    with pytest.raises(InputError):
        parse_model(f"embedded{AUTHORS}")
    with pytest.raises(InputError):
        parse_model(f"{chosen.key}{AUTHORS}")
    assert prompt_for(with_prompts(SentenceConfig(), plain.prompts if plain.with_prompts else ()), "query") == ""
    assert prompt_for(with_prompts(SentenceConfig(), chosen.prompts), "query") == "query: "


def test_a_model_without_any_says_so() -> None:
    with pytest.raises(InputError, match="No prompts of the authors"):
        shared.load_with_prompt("embedded", "authors")


def test_a_loaded_model_takes_its_own_text(embedded: Backend) -> None:
    chosen = Backend.load("embedded", prompt="query: ")
    texts = ["a river bank", "money"]
    for role in ("query", "document", None):
        options = chosen.embed_options(role=role, precision="float32")  # type: ignore[arg-type]
        assert options.prompt == "query: "
    plain = embedded.embed([f"query: {text}" for text in texts], options=embedded.embed_options(precision="float32"))
    np.testing.assert_allclose(chosen.embed(texts, options=options), plain, atol=1e-5)


# --- Similarities


@pytest.mark.parametrize("similarity", EVERY_SIMILARITY)
def test_each_similarity_is_that_of_the_library(similarity: Any) -> None:
    numbers = np.random.default_rng(0)
    documents, queries = (numbers.normal(size=(count, 7)).astype(np.float32) for count in (30, 4))
    expected = SimilarityFunction.to_similarity_fn(similarity)(queries, documents).numpy()  # type: ignore[operator]
    engine = ExactSearch(documents)
    hits = engine.search(queries, 30, similarity)
    order = np.argsort(-expected, axis=1, kind="stable")
    np.testing.assert_array_equal(hits.indices, order)
    np.testing.assert_allclose(hits.scores, np.take_along_axis(expected, order, axis=1), atol=1e-5)
    np.testing.assert_allclose(engine.scores(queries[0], similarity), expected[0], atol=1e-5)
    np.testing.assert_array_equal(engine.search(queries[:1], 5, similarity).indices[0], order[0, :5])
    of_pairs: Any = SimilarityFunction.to_similarity_pairwise_fn(similarity)
    pairs = pair_similarity(documents[:4].astype(np.float64), queries.astype(np.float64), similarity)
    np.testing.assert_allclose(pairs, of_pairs(documents[:4], queries).numpy(), atol=1e-5)
    if similarity != "manhattan":
        asked, told = for_cosines(queries, documents, similarity)
        cosines = (asked @ told.T) / np.linalg.norm(asked, axis=1)[:, None] / np.linalg.norm(told, axis=1)
        np.testing.assert_array_equal(np.argsort(-cosines, axis=1, kind="stable"), order)
    else:
        with pytest.raises(InputError, match="manhattan"):
            for_cosines(queries, documents, similarity)
