"""Evaluate's two kinds of search, its figure of cosine and dot product, and the fields of graded collections."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from transformers import AutoTokenizer

from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.evaluation.pair_runs import Pairs, first_pairs, pairs_of_corpus
from dashboard.corpora import current
from dashboard.views.evaluate import kinds, similarities
from tests.support.evaluate_page import corpus_of, ready
from tests.support.judged_collections import FIELDED
from tests.support.pages import Open, figures, frame, plain_table, texts, traces
from tests.support.places import ASSETS
from tests.support.plain_vectors import cosines, plain_vectors, ranks_by
from tests.support.tiny import save_tiny

EACH = 50  # pairs of each kind
COUNT = 60  # pairs of the demo in the figure of cosine and dot product
COLUMNS = {"questions": ("question", "passage"), "paraphrases": ("sentence", "paraphrase")}


@pytest.fixture(scope="module", autouse=True)
def _fewer_pairs() -> Iterator[None]:
    """The first pairs of both collections."""
    few = {kind: first_pairs(kinds.collection(kind), EACH) for kind in COLUMNS}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kinds, "collection", few.__getitem__)
        yield


@pytest.fixture(scope="module")
def scores(embedded_folder: Path) -> dict[tuple[str, str], np.ndarray]:
    """Cosines and dot products of both collections by plain transformers, [query, document]."""
    found = {}
    for kind, (query, document) in COLUMNS.items():
        lines = (ASSETS / "collections" / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines[:EACH]]
        texts_of_both = [row[query] for row in rows] + [row[document] for row in rows]
        vectors = plain_vectors(embedded_folder, texts_of_both, 256)[6, 0]
        found[kind, "cosine"] = cosines(vectors[:EACH], vectors[EACH:])
        found[kind, "dot"] = vectors[:EACH].astype(np.float64) @ vectors[EACH:].astype(np.float64).T
    return found


def check_bars(app: AppTest, scores: dict[tuple[str, str], np.ndarray], similarity: str) -> None:
    """The bars, their intervals and the message are those of plain vectors."""
    assert not app.error
    (drawn,) = figures(app)
    bars = drawn["data"]
    assert [trace["name"] for trace in bars] == ["all-MiniLM-L6-v2", "BM25"] * 2
    for trace, kind in ((bars[0], "questions"), (bars[2], "paraphrases")):
        ranks = ranks_by(scores[kind, similarity])
        assert trace["y"] == pytest.approx([100 * (ranks <= k).mean() for k in (1, 5, 10)], abs=100.1 / EACH)
    first = [bars[number]["y"][0] for number in range(4)]
    assert (
        f"**all-MiniLM-L6-v2** puts the correct passage first for {first[0]:.0f} % of the questions, and the correct "
        f"paraphrase for {first[2]:.0f} % of the sentences; **BM25** for {first[1]:.0f} % and {first[3]:.0f} %."
    ) in texts(app)
    assert first[1] > 5 * first[3]  # words find passages, but hardly any paraphrase
    high, low = bars[0]["error_y"]["array"][0], bars[0]["error_y"]["arrayminus"][0]
    share, n, z = first[0] / 100, EACH, 1.96
    centre, spread = (share + z**2 / (2 * n)) / (1 + z**2 / n), z / (1 + z**2 / n)
    half = spread * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    assert (high, low) == pytest.approx((100 * (centre + half) - first[0], first[0] - 100 * (centre - half)), abs=0.01)


def test_both_kinds_are_measured_with_the_same_runs_by_dot_product(
    open_page: Open, scores: dict[tuple[str, str], np.ndarray]
) -> None:
    check_bars(ready(open_page("evaluate", v="search-kinds", sim="dot")), scores, "dot")


def test_both_kinds_by_cosine_and_the_queries_that_the_model_misses(
    open_page: Open, scores: dict[tuple[str, str], np.ndarray]
) -> None:
    app = ready(open_page("evaluate", v="search-kinds"))
    check_bars(app, scores, "cosine")
    app.segmented_control(key="w_searched_kind").set_value("paraphrases")
    ready(app.run())
    assert app.query_params["kind"] == "paraphrases"
    pairs, by_cosine = kinds.collection("paraphrases"), scores["paraphrases", "cosine"]
    missed = np.flatnonzero(by_cosine.argmax(axis=1) != np.arange(EACH))
    table = plain_table(app)
    assert table["query"].tolist() == [pairs.queries.texts[row] for row in missed]
    assert table["first hit"].tolist() == [pairs.documents.texts[by_cosine[row].argmax()] for row in missed]
    assert f"**{len(missed)} queries** whose correct answer is not the first hit of" in texts(app)


def test_the_finding_says_how_many_words_the_two_kinds_share() -> None:
    def pairs(query: str, document: str) -> Pairs:
        both = [{"q": f"{query} {word}", "d": f"{document} {word}"} for word in ("cats", "dogs")]
        lines = "\n".join(map(json.dumps, both))
        return pairs_of_corpus(read_corpus(lines.encode(), "two.jsonl", "d"), "q")

    said = kinds.shared_in_words({"questions": pairs("grey", "old"), "paraphrases": pairs("grey", "grey")})
    assert said == (
        "BM25 finds by shared words alone: on average 50 % of the content words of a question appear in its passage and 100 % "
        "of the content words of a sentence appear in its paraphrase."
    )
    lines = "\n".join(json.dumps({"q": q, "d": d}) for q, d in (("grey cats", "old dogs"), ("red hats", "new bags")))
    nothing = pairs_of_corpus(read_corpus(lines.encode(), "none.jsonl", "d"), "q")
    said = kinds.shared_in_words({"questions": nothing, "paraphrases": nothing})
    assert said.endswith("paraphrase. Whatever it finds there, it finds by function words, or by chance.")


def test_a_second_model_has_bars_of_its_own(open_page: Open, tmp_path: Path) -> None:
    save_tiny(tmp_path / "tiny")
    app = ready(open_page("evaluate", v="search-kinds", m2=str(tmp_path / "tiny")))
    assert not app.error
    assert [trace["name"] for trace in figures(app)[0]["data"]][:3] == ["all-MiniLM-L6-v2", "tiny", "BM25"]
    assert "**tiny** for" in texts(app)


def test_cosine_and_dot_product_with_the_lengths_of_the_first_hits(open_page: Open, embedded_folder: Path) -> None:
    runs = ["m.6.mean", "m.3.max", "ms.5.m.6.mean", "bm25"]
    app = ready(open_page("evaluate", v="compare-runs", fig="similarities", r=runs, corpus=corpus_of(COUNT)))
    assert not app.error
    (drawn,) = figures(app)
    demo = current.demo()
    documents_and_queries = [*demo.texts[:COUNT], *demo.columns["compressed"][:COUNT]]
    vectors = plain_vectors(embedded_folder, documents_and_queries, 256)
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder)
    tokens = np.array([len(tokenizer(text)["input_ids"]) for text in demo.texts[:COUNT]])
    found = {(trace["name"], trace["yaxis"]): np.asarray(trace["y"], float) for trace in drawn["data"]}
    for number, (layer, pooling) in enumerate(((6, 0), (3, 2))):
        documents, queries = vectors[layer, pooling, :COUNT], vectors[layer, pooling, COUNT:]
        norms = np.linalg.norm(documents.astype(np.float64), axis=1)
        products = queries.astype(np.float64) @ documents.astype(np.float64).T
        for name, table in (("cosine", products / norms), ("dot product", products)):
            first = table.argmax(axis=1)
            assert found[name, "y"][number] == pytest.approx(100 * (ranks_by(table) == 1).mean(), abs=100.1 / COUNT)
            assert found[name, "y2"][number] == pytest.approx(100 * (norms[first].mean() / norms.mean() - 1), abs=0.1)
            assert found[name, "y3"][number] == pytest.approx(100 * (tokens[first].mean() / tokens.mean() - 1), abs=0.2)
    assert len(found["cosine", "y"]) == 2  # BM25 has no vectors
    assert "By dot product, the vectors of the first hits are on average" in texts(app)
    assert "Dot product favours long vectors most in **Layer 3, Max**" in texts(app)
    app.session_state["data_compare_similarities"] = True
    app.run()
    lengths = frame(app, "tokens of the first hits")
    assert lengths["tokens of the correct answers"].tolist() == pytest.approx([tokens.mean()] * 4, abs=0.01)
    assert lengths["queries with a single first hit"].max() <= COUNT


def test_without_vectors_the_figure_says_what_to_add(open_page: Open) -> None:
    app = ready(open_page("evaluate", v="compare-runs", fig="similarities", r=["bm25"], corpus=corpus_of(COUNT)))
    assert "No run with vectors" in texts(app)
    assert not figures(app)


def test_a_collections_fields_are_chosen_from_those_it_has(open_page: Open) -> None:
    app = open_page("evaluate", v="graded-relevance", gs="file", r=["bm25"], gm="mrr")
    assert "w_graded_query_field" not in app.session_state
    files = [(name, content, "text/plain") for name, content in FIELDED.items()]
    app.file_uploader(key="graded_files").set_value(files)
    ready(app.run())
    assert not app.error
    query, documents = app.selectbox(key="w_graded_query_field"), app.selectbox(key="w_graded_document_fields")
    assert (query.options, documents.options) == (["Text", "Title", "Narrative"], ["Title and text", "Title", "Text"])
    assert (query.value, documents.value) == ("text", "all")
    assert "2 queries, 3 documents" in texts(app)
    assert "Each query's text is searched for in the documents' title and text." in texts(app)
    query.set_value("title")
    ready(app.run())
    app.selectbox(key="w_graded_document_fields").set_value("title")
    ready(app.run())
    assert (app.query_params["gq"], app.query_params["gd"]) == ("title", "title")
    assert "2 queries, 2 documents, 2 relevant pairs" in texts(app)
    assert frame(app, "p to the best (Holm)")["MRR"].tolist() == [50]  # cats is found; no title has the word volcano
    bars, _ = figures(app)
    assert np.asarray(bars["data"][0]["x"], float).tolist() == [50]
    (curve,) = traces(app, 1).values()
    assert curve.tolist() == pytest.approx([50] * 11)  # the first hit of one query is right, none of the other


def test_a_field_of_a_link_that_the_files_lack_is_said(open_page: Open, tmp_path: Path) -> None:
    topics = b"<top>\n<num> Number: 01\n<title> volcano\n<desc> Description:\nWhich one erupted?\n</top>\n"
    corpus = b'{"_id": "d1", "text": "A volcano erupted."}\n{"_id": "d2", "text": "Rates rise."}\n'
    for name, content in (("corpus.jsonl", corpus), ("topics.1", topics), ("qrels", b"1 0 d1 1\n")):
        (tmp_path / name).write_bytes(content)
    app = open_page("evaluate", v="graded-relevance", gs="path", gq="narrative", gd="title", r=["bm25"])
    app.text_input(key="graded_path").set_value(str(tmp_path)).run()
    app.button(key="read_graded").click()
    ready(app.run())
    assert "Field of the queries narrative is not available here." in texts(app)
    assert "Fields of the documents title is not available here." in texts(app)
    assert app.selectbox(key="w_graded_query_field").options == ["Title", "Description"]
    assert app.selectbox(key="w_graded_document_fields").options == ["Text"]
    assert "Each query's title is searched for in the documents' text." in texts(app)


def test_the_lengths_of_first_hits_are_said_of_their_similarity_and_in_their_direction() -> None:
    excess = {("dot", "norms"): 12.34, ("cosine", "norms"): -0.5, ("dot", "tokens"): -7.0, ("cosine", "tokens"): 3.0}

    def row(name: str, recall: dict[str, float], more: float = 0.0) -> Any:
        return SimpleNamespace(
            name=name,
            is_scaled=False,
            norms="norms",
            tokens="tokens",
            recall=lambda similarity: SimpleNamespace(value=recall[similarity]),
            excess=lambda similarity, values: excess[similarity, values] + more,
        )

    first, second = row("One", {"cosine": 0.8, "dot": 0.7}), row("Two", {"cosine": 0.5, "dot": 0.25}, more=10.0)
    assert similarities._message(first) == (
        "**One**: Recall@1 is 80.0 % by cosine and 70.0 % by dot product. By dot product, the vectors of the first hits are "
        "on average 12.3 % longer than those of the correct answers (by cosine 0.5 % shorter), and their texts have 7.0 % "
        "fewer tokens (by cosine 3.0 % more)."
    )
    assert similarities._largest([first, second]) == (
        " Dot product favours long vectors most in **Two**: they are 22.3 % longer, and Recall@1 is 25.0 % instead of 50.0 % "
        "by cosine."
    )
    assert similarities._largest([second, first]) == similarities._largest([first]) == ""
