"""The view on approximation: the figures of plain vectors, the hits that are lost, and times only on request."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import numpy as np
import pytest

from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.engines import graph
from components.retrieval.engines.approximation import losses
from components.retrieval.engines.contract import StoredVectors
from dashboard import caching
from dashboard.corpora import current
from dashboard.jobs import search_engines
from dashboard.jobs.embedding import EmbedRequest
from dashboard.views.evaluate import approximation as view
from tests.support.evaluate_page import corpus_of
from tests.support.pages import Open, at_rest, backend, figures, texts

COUNT = 60


@pytest.fixture(scope="module", autouse=True)
def _no_times() -> Iterator[None]:
    """No times of another module; of this one, a single test has them measured."""
    caching.evaluations.clear()
    yield
    for job in caching.evaluations().under_way():
        assert job.finished.wait(60)
    caching.evaluations.clear()


def vectors_of(texts_of: list[str]) -> np.ndarray:
    """The last layer's vectors in float32, scaled to length 1."""
    model = backend()
    request = EmbedRequest(model, exact=True)
    found = model.embed(texts_of, options=request.document_options([6], ["mean"]))[0, 0].astype(np.float64)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def recall_of_first(documents: np.ndarray, queries: np.ndarray, dims: int) -> float:
    """Recall@10 in per cent of the first dimensions, by plain cosines."""
    exact = np.argsort(-(queries @ documents.T), axis=1)[:, :10]
    short, asked = documents[:, :dims], queries[:, :dims]
    cosines = asked @ (short / np.linalg.norm(short, axis=1, keepdims=True)).T
    found = np.argsort(-cosines, axis=1)[:, :10]
    return 100 * float(np.mean([len({*a} & {*b}) / 10 for a, b in zip(exact, found, strict=True)]))


def test_the_figure_and_the_table_are_those_of_plain_vectors(open_page: Open) -> None:
    app = at_rest(open_page("evaluate", v="approximation", corpus=corpus_of(COUNT), way="first-8"))
    assert not app.error
    demo = current.demo()
    documents, queries = vectors_of(list(demo.texts[:COUNT])), vectors_of(list(demo.columns["compressed"][:COUNT]))
    drawn = figures(app)[0]
    of_first = next(trace for trace in drawn["data"] if "first" in trace["name"])
    expected = [recall_of_first(documents, queries, dims) for dims in (192, 96, 48)]
    assert list(of_first["x"]) == [768, 384, 192]
    np.testing.assert_allclose(np.asarray(of_first["y"], float), expected, atol=0.2)
    table = app.table[0].value
    assert f"{expected[2]:.0f}" in {f"{float(value):.0f}" for value in table["Recall@10 (%)"]}
    (lost,) = [item.proto.body for item in app.get("html") if "bi-errors" in item.proto.body]
    ranks = [int(rank) for rank in re.findall(r"<small>rank</small> (\d+)", lost)]
    assert 1 <= len(ranks) <= view.SHOWN_HITS
    assert set(ranks) <= set(range(1, 11))
    assert lost.count("<small>cosine</small>") == len(ranks)
    asked = [html.unescape(query) for query in re.findall(r'<p dir="auto"><b>(.*?)</b></p>', lost)]
    assert len(asked) == len(ranks)
    assert set(asked) <= set(demo.columns["compressed"][:COUNT])
    assert f"of {COUNT} queries" in texts(app)
    assert "bits, best 40: the best 40 are compared again" in texts(app)
    assert ("HNSW: a graph" in texts(app)) == graph.is_installed()


def test_a_way_that_is_not_compared_is_not_explained(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "is_installed", lambda: False)
    app = at_rest(open_page("evaluate", v="approximation", corpus=corpus_of(30)))  # fewer than 40
    short = next(item.value for item in app.caption if item.value.startswith("float16"))
    assert short == "float16: two bytes per number. first numbers: the others are left out."
    assert "HNSW, a graph of neighbours, is not compared" in texts(app)


def test_another_way_shows_its_own_losses(open_page: Open) -> None:
    app = at_rest(open_page("evaluate", v="approximation", corpus=corpus_of(COUNT)))
    assert app.selectbox(key="w_approximation").value == "bits-4"
    app.selectbox(key="w_approximation").select("first-8").run()
    assert "**first numbers: 48** loses hits of " in texts(app).replace("\\", "")
    app.selectbox(key="w_approximation").select("float16").run()
    assert "float16 finds all 10 nearest sentences" in app.success[0].value
    said, shown = texts(app), {name.replace("\\", "") for name in app.table[0].value["way"]}
    if graph.is_installed():  # of 60 texts, 64 and 256 candidates are all
        assert "Left out are 3 ways to search (bits, best 100; HNSW 64; HNSW 256)" in said
        assert {"HNSW 16"} == {name for name in shown if "HNSW" in name}
    assert "exact by definition" in said
    assert "bits, best 100" not in shown
    assert {"bits, best 40", "first numbers: 48"} <= shown
    drawn = str(figures(app)[0]["data"])  # under the same names
    assert all(name in drawn for name in shown - {"exact (float32)"})
    assert "Nothing can be learnt from so few texts:** the 10 nearest are 17 % of all 60" in said.replace("\\", "")


def test_a_link_to_a_way_that_reads_all_texts_shows_another(open_page: Open) -> None:
    app = at_rest(open_page("evaluate", v="approximation", corpus=corpus_of(29), way="bits-4"))
    assert not app.exception
    assert app.selectbox(key="w_approximation").value == "int8"
    assert "if full vectors check the best 40" not in texts(app)
    assert "Left out" in texts(app)


def test_only_small_collections_are_said_to_teach_nothing_and_to_have_ways_left_out() -> None:
    vectors = np.random.default_rng(0).standard_normal((300, 16)).astype(np.float32)
    large = losses(StoredVectors.of_vectors(vectors), vectors[:5], ways=None)
    assert not large.left_out
    assert view._left_out(large, 300) == ""
    assert "Nothing can be learnt" not in view._message(large, 300)
    assert "if full vectors check the best 40" in view._message(large, 300)
    small = losses(StoredVectors.of_vectors(vectors[:29]), vectors[:5])
    assert {"bits-4", "bits-10"} <= {way.code for way in small.left_out}
    assert all(way.recall.mean() <= 1 for way in small.ways)
    assert "34 % of all 29" in view._message(small, 29)


def test_times_are_measured_only_on_request(open_page: Open) -> None:
    app = at_rest(open_page("evaluate", v="approximation", corpus=corpus_of(COUNT)))
    assert "ms per query (median)" not in app.table[0].value.columns
    at_rest(app.button(key="measure_approximation").click().run())
    times = app.table[0].value["ms per query (median)"].astype(float)
    assert (times > 0).all()
    assert "ms per query (median)" in str(figures(app)[0]["data"][0]["text"])
    assert "On a small corpus they say little" in texts(app)


def test_sentences_alone_are_their_own_queries(open_page: Open) -> None:
    lines = "\n".join(current.demo().texts[:40]).encode()
    corpus = read_corpus(lines, "lines.txt")
    caching.corpora().put(current.key_of(corpus), corpus)
    app = at_rest(open_page("evaluate", v="approximation", corpus=current.key_of(corpus), way="first-8"))
    assert not app.error
    assert "For 40 sentences of the corpus as queries" in texts(app)
    assert "A sentence is no hit of itself." in texts(app)
    model = backend()
    options = EmbedRequest(model, exact=True).document_options([6], ["mean"])
    vectors = model.embed(current.demo().texts[:40], options=options)[0, 0]
    alike = losses(StoredVectors.of_vectors(vectors), vectors, own=True)
    way = alike.of("first-8")
    assert way is not None
    assert f" of 40 queries, {sum(len(alike.lost(way, query)) for query in range(40))} in all." in texts(app)
    assert f"{100 * way.mean:.2f}" in set(app.table[0].value["Recall@10 (%)"])


def test_without_usearch_a_line_says_so(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "is_installed", lambda: False)
    app = at_rest(open_page("evaluate", v="approximation", corpus=corpus_of(COUNT), way="hnsw-16"))
    assert not app.exception
    assert "the package usearch is not installed" in texts(app)
    assert app.selectbox(key="w_approximation").value == "bits-4"
    assert "HNSW" not in str(figures(app)[0]["layout"]["annotations"])


def test_few_sentences_are_too_few(open_page: Open) -> None:
    app = at_rest(open_page("evaluate", v="approximation", corpus=corpus_of(12)))
    assert "12 sentences are too few" in app.info[0].value
    assert not app.get("plotly_chart")


def test_it_is_offered_from_some_thousand_texts() -> None:
    assert view.too_few_to_pay(630) == (
        " With 630 texts an exact search is fast enough: approximation pays from a few thousand texts on, and Search "
        "offers it from 5,000."
    )
    assert view.too_few_to_pay(search_engines.MANY) == ""
