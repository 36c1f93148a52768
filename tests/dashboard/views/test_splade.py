"""SPLADE and late-interaction models as rankings of Search and Evaluate, equal to sentence-transformers' own classes."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.model.backend import Backend
from components.retrieval.corpora.corpus import Corpus, read_corpus
from components.retrieval.search.splade import SpladeIndex
from dashboard import caching
from dashboard.corpora import current
from dashboard.jobs import embedding, reranking
from dashboard.views.search import splade, why
from tests.support import baselines
from tests.support.evaluate_page import timed
from tests.support.pages import Open, at_rest, figures, frame, hits, texts
from tests.support.saved_models import save_cross_encoder, save_multi, save_pylate, save_sparse

PAIRS = (
    ("the cat sat on the red hat", "a cat"),
    ("money in the bank", "the bank"),
    ("we will walk by the river", "the river"),
    ("the dog ran on the bank", "a dog"),
    ("a red hat will put money on the cat", "red"),
    ("the river ran by the dog", "we ran"),
)
QUERY = "the dog in a hat"


@pytest.fixture(scope="module")
def small() -> Corpus:
    lines = [json.dumps({"sentence": text, "compressed": query}) for text, query in PAIRS]
    corpus = read_corpus("\n".join(lines).encode(), "tiny.jsonl", "sentence")
    caching.corpora().put(current.key_of(corpus), corpus)
    return corpus


@pytest.fixture(scope="module", autouse=True)
def _short_baselines(_included_model: None) -> Iterator[None]:
    with baselines.of_few_sentences():
        yield


@pytest.fixture(scope="module")
def sparse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_sparse(tmp_path_factory.mktemp("splade"))


@pytest.fixture(scope="module")
def multi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_pylate(tmp_path_factory.mktemp("colbert") / "pylate", document_length=12)


@pytest.fixture(autouse=True)
def _little_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The times of a cost curve are of few texts or known before."""
    monkeypatch.setattr(embedding, "speed", lambda *_: (150.0, True))
    monkeypatch.setattr(reranking, "_TRIAL_PAIRS", 8)


@pytest.fixture(autouse=True)
def _no_other_models() -> Iterator[None]:
    """Folders of a test are models of no other one."""
    yield
    caching.splade_indexes.clear()


@functools.cache
def sparse_encoder(folder: Path) -> Any:
    from sentence_transformers import SparseEncoder

    return SparseEncoder(str(folder), device="cpu", local_files_only=True)


def sparse_scores(folder: Path, queries: tuple[str, ...], documents: tuple[str, ...]) -> np.ndarray:
    """[query, document], by SparseEncoder."""
    model = sparse_encoder(folder)
    return model.similarity(model.encode_query(list(queries)), model.encode_document(list(documents))).numpy()


@functools.cache
def multi_vector_encoder(folder: Path) -> Any:
    from sentence_transformers import MultiVectorEncoder

    return MultiVectorEncoder(str(folder), device="cpu", local_files_only=True)


def multi_scores(folder: Path, queries: tuple[str, ...], documents: tuple[str, ...]) -> np.ndarray:
    """[query, document], by MultiVectorEncoder."""
    model = multi_vector_encoder(folder)
    return model.similarity(model.encode_query(list(queries)), model.encode_document(list(documents))).numpy()


def mrr(scores: np.ndarray) -> float:
    """Of the documents with the queries' numbers; in per cent."""
    ranks = 1 + (scores > np.diag(scores)[:, None] + 1e-6).sum(axis=1)
    return float(100 * (1 / ranks).mean())


def assert_hits(app: Any, scores: np.ndarray, number: int = 1) -> None:
    """The list's hits and scores are those of `scores` [sentence]."""
    order = np.argsort(-scores, kind="stable")
    found = hits(app, number)
    assert [row["index"] for row in found] == order.tolist()[: len(found)]
    np.testing.assert_allclose([float(row["score"]) for row in found], scores[order][: len(found)], atol=1e-3)


@pytest.mark.parametrize("as_second", [False, True])
def test_search_by_splade_shows_the_pieces_and_what_each_adds(
    open_page: Open, small: Corpus, sparse: Path, as_second: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splade, "SHOWN_PIECES", 40)  # all of them
    model = {"m2": str(sparse)} if as_second else {"m": str(sparse)}
    app = at_rest(
        open_page("search", vs="splade", q=QUERY, why="3", wb="second", corpus=current.key_of(small), **model)
    )
    assert not app.error, texts(app)
    scores = sparse_scores(sparse, (QUERY,), small.texts)[0]
    assert_hits(app, scores[: len(small)])
    of_pieces = {figure["layout"]["title"]["text"]: figure for figure in figures(app) if "title" in figure["layout"]}
    added = of_pieces["What each piece adds to the score"]
    total = sum(float(np.sum(trace["x"])) for trace in added["data"])
    assert total == pytest.approx(scores[3], abs=1e-4)
    expected = Backend.load(str(sparse), device_name="cpu").expanded_pieces(QUERY, role="query")
    bars = {
        piece: float(weight)
        for trace in of_pieces["The heaviest pieces of the query"]["data"]
        for piece, weight in zip(trace["customdata"], trace["x"], strict=True)
    }
    assert bars == pytest.approx(dict(zip(expected.pieces, expected.weights.tolist(), strict=True)))
    assert "The heaviest pieces of the sentence" in of_pieces
    assert "uses these weights" in texts(app)


def test_search_without_a_splade_model_says_which_have_it(open_page: Open, small: Corpus) -> None:
    app = at_rest(open_page("search", vs="splade", q=QUERY, corpus=current.key_of(small)))
    assert "SPLADE needs a model that was published as one" in texts(app)
    assert len([item for item in app.get("bidi_component") if item.proto.component_name == "bert_internals_hits"]) == 1


def test_a_large_corpus_is_weighed_only_on_a_click(
    open_page: Open, small: Corpus, sparse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "EXACT_AT_ONCE", 3)
    made: list[int] = []
    build = SpladeIndex.of_texts
    monkeypatch.setattr(SpladeIndex, "of_texts", lambda *arguments: made.append(1) or build(*arguments))
    app = at_rest(open_page("search", vs="splade", q=QUERY, corpus=current.key_of(small), m=str(sparse)))
    assert not made
    at_rest(app.button(key="splade_search").click().run())
    assert made == [1]
    assert_hits(app, sparse_scores(sparse, (QUERY,), small.texts)[0])


@pytest.mark.parametrize("as_second", [False, True])
def test_search_by_trained_token_vectors(open_page: Open, small: Corpus, multi: Path, as_second: bool) -> None:
    model = {"m2": str(multi)} if as_second else {"m": str(multi)}
    app = at_rest(
        open_page("search", vs="maxsim", q=QUERY, why="3", wb="second", corpus=current.key_of(small), **model)
    )
    assert not app.error, texts(app)
    scores = multi_scores(multi, (QUERY,), small.texts)[0]
    shown = next(figure for figure in figures(app) if "Token vectors of" in figure["layout"]["title"]["text"])
    products = next(np.asarray(trace["z"], float) for trace in shown["data"] if trace["type"] == "heatmap")
    assert products.shape[0] == 16  # the query is filled up with [MASK]
    assert products.max(axis=1).sum() == pytest.approx(scores[3], abs=1e-3)
    assert "fills the query up with" in texts(app)
    assert_hits(app, scores)
    assert "was trained for it: these are its own token vectors" in texts(app)
    assert any("trained for late interaction" in item.value for item in app.markdown)


def test_search_explains_a_late_interaction_model_by_its_trained_vectors_and_says_what_was_cut(
    open_page: Open, small: Corpus, multi: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = {"q": QUERY, "why": "3", "wb": "maxsim", "corpus": current.key_of(small), "m": str(multi)}
    app = at_rest(open_page("search", **address))
    assert not app.error, texts(app)
    assert any("Token vectors of" in figure["layout"]["title"]["text"] for figure in figures(app))
    assert "MaxSim of the hidden states, the sum" in texts(app)
    assert "are explained here" not in texts(app)
    monkeypatch.setattr(why, "MOST_CHARACTERS", 9)
    assert "only the first 9 are explained here" in texts(at_rest(app.run()))


def test_search_offers_the_label_of_a_cross_encoder_with_several(
    open_page: Open, small: Corpus, tmp_path: Path
) -> None:
    folder = save_cross_encoder(tmp_path, "bert", outputs=3)
    config = json.loads((folder / "config.json").read_text())
    names = {"0": "contradiction", "1": "entailment", "2": "neutral"}
    (folder / "config.json").write_text(json.dumps(config | {"id2label": names}))
    scorer = Backend.load(str(folder), device_name="cpu")
    app = at_rest(open_page("search", vs="rerank", q=QUERY, corpus=current.key_of(small), ce=str(folder)))
    assert app.selectbox(key="w_score_label").value == "entailment"
    for label, number in (("entailment", 1), ("neutral", 2)):
        app.selectbox(key="w_score_label").set_value(label).run()
        at_rest(app)
        scores = scorer.score_pairs([QUERY] * len(small), small.texts, label=number)
        assert sorted(row["index"] for row in hits(app, 1)) == list(range(len(small)))
        assert [row["index"] for row in hits(app, 1)] == np.argsort(-scores, kind="stable").tolist()


def test_evaluate_runs_of_a_splade_model(open_page: Open, small: Corpus, sparse: Path) -> None:
    runs = ["sp.m", "m.3.mean"]
    address = {"view": "compare", "corpus": current.key_of(small), "by": "mrr", "am": "1", "n": "2", "m": str(sparse)}
    app = timed(open_page("evaluate", r=runs, **address))
    assert not app.error, texts(app)
    table = frame(app, "p (Holm)")
    documents, queries = zip(*PAIRS, strict=True)
    scores = sparse_scores(sparse, queries, documents)
    assert table["MRR"].iloc[0] == pytest.approx(mrr(scores), abs=0.01)
    assert table["ms per query"].iloc[0] > 0
    weights = Backend.load(str(sparse), device_name="cpu").sparse_matrix(documents, role="document")
    assert table["index MB"].iloc[0] == pytest.approx((8 * weights.nnz + 4 * (weights.shape[1] + 1)) / 1e6)
    rank = 1 + int((scores[2] > scores[2, 2] + 1e-6).sum())
    assert f"**SPLADE**: rank {rank}" in texts(app)
    assert "SPLADE" in app.multiselect(key="w_runs").options
    app = at_rest(open_page("evaluate", r=runs, v="compare-runs", corpus=current.key_of(small)))
    assert "not available for these models" in texts(app)


def test_evaluate_runs_by_trained_token_vectors(open_page: Open, small: Corpus, multi: Path) -> None:
    count = len(PAIRS)
    address = {"view": "compare", "corpus": current.key_of(small), "by": "mrr", "am": "1"}
    documents, queries = zip(*PAIRS, strict=True)
    expected = mrr(multi_scores(multi, queries, documents))
    for model, code in (({"m": str(multi)}, f"ms.{count}.m.3.mean"), ({"m2": str(multi)}, f"mx.{count}.m.6.mean")):
        app = timed(open_page("evaluate", r=[code], **address, **model))
        assert not app.error, texts(app)
        assert frame(app, "p (Holm)")["MRR"].iloc[0] == pytest.approx(expected, abs=0.01)
        assert "were trained for it (late interaction)" in texts(app)
        assert "not trained for it" not in texts(app).replace("the model was not trained", "")


def test_graded_relevance_by_splade(open_page: Open, sparse: Path) -> None:
    app = at_rest(open_page("evaluate", v="graded-relevance", r=["sp.m"], m=str(sparse)))
    assert not app.error, texts(app)
    assert "**SPLADE** has the best" in texts(app)


def test_pairs_rerank_says_which_vectors_it_uses(open_page: Open, small: Corpus, multi: Path) -> None:
    app = at_rest(
        open_page("pairs", v="retrieve-rerank", by="maxsim", q=QUERY, corpus=current.key_of(small), m=str(multi))
    )
    assert not app.error, texts(app)
    assert "trained for late interaction" in texts(app)


def test_a_native_folder_is_read_like_pylates(small: Corpus, tmp_path: Path) -> None:
    backend = Backend.load(str(save_multi(tmp_path)), device_name="cpu")
    assert backend.late_interaction is not None
    assert backend.splade is None
