"""Evaluate's runs in two stages: retrieve, then re-rank by the cross-encoder or by MaxSim."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ir_measures
import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.model.backend import Backend
from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY, spec_of
from components.retrieval.corpora.corpus import Corpus
from components.retrieval.evaluation import pair_runs
from components.retrieval.evaluation.run_record import Run
from components.retrieval.rankings.run_code import RunCode
from components.retrieval.search.rerank import late_interaction_scores
from dashboard import caching
from dashboard.corpora import current
from dashboard.jobs import second_stage
from dashboard.jobs.requests import NotReady
from dashboard.views.evaluate import choices
from tests.support.evaluate_page import ready, small_corpus, timed
from tests.support.pages import Open, backend, frame, texts
from tests.support.saved_models import save_cross_encoder

COUNT, K = 24, 5
CODES = ("m.6.mean", f"rr.{K}.m.6.mean", f"ms.{K}.m.6.mean")


@pytest.fixture(scope="module")
def small() -> Corpus:
    return small_corpus(COUNT)


def cross_encoder() -> Any:
    job = caching.models().request(spec_of(EMBEDDED_CROSS_ENCODER_KEY))
    assert job.finished.wait(100)
    return job.result


def first_cosines(documents: Any, queries: Any, max_length: int | None = None) -> np.ndarray:
    """[query, document], of the model's last layer in float32."""
    options = backend().embed_options(max_length=max_length, precision="float32")
    both = backend().embed([*documents, *queries], options=options)[0, 0].astype(np.float64)
    both /= np.linalg.norm(both, axis=1, keepdims=True)
    return both[len(documents) :] @ both[: len(documents)].T


@pytest.fixture(scope="module")
def expected_ranks(small: Corpus) -> dict[str, np.ndarray]:
    """Kind of second stage to the ranks of each query's own sentence."""
    return {kind: ranks_of(small, kind) for kind in ("rr", "ms")}


def ranks_of(corpus: Corpus, kind: str) -> np.ndarray:
    """Of each query's own sentence: among the first K by the second stage, beyond them by the first."""
    queries, cosines = corpus.columns["compressed"], first_cosines(corpus.texts, corpus.columns["compressed"])
    ranks = []
    for number, query in enumerate(queries):
        order = np.argsort(-cosines[number])
        candidates = order[:K].tolist()
        documents = [corpus.texts[row] for row in candidates]
        if kind == "rr":
            scores = cross_encoder().score_pairs([query] * K, documents)
        else:
            scores = late_interaction_scores(backend(), query, documents, 6, 256)
        if number in candidates:
            order = np.array(candidates)[np.argsort(-scores, kind="stable")]
        ranks.append(order.tolist().index(number) + 1)
    return np.array(ranks)


def test_two_stages_are_compared_with_one(
    open_page: Open, small: Corpus, expected_ranks: dict[str, np.ndarray]
) -> None:
    app = timed(open_page("evaluate", v="compare-runs", corpus=current.key_of(small), r=list(CODES), by="mrr", am="1"))
    assert not app.error
    table = frame(app, "p (Holm)")
    names = [
        f"all-MiniLM-L6-v2, layer 6, mean{end}" for end in ("", f", first {K} re-ranked", f", first {K} by MaxSim")
    ]
    assert len(table) == 3, names
    for row, kind in ((1, "rr"), (2, "ms")):
        ranks = expected_ranks[kind]
        assert table["MRR"].iloc[row] == pytest.approx(100 * (1 / ranks).mean(), abs=0.01)
        assert table["Recall@1"].iloc[row] == pytest.approx(100 * (ranks == 1).mean(), abs=0.01)
    assert table["Recall@5"].nunique() == 1  # the candidates stay the same
    assert (table["ms per query"] > 0).all()  # each measured by itself: which is longest depends on other work
    assert "changes the order of its candidates only" in texts(app)
    assert "STS-B" in texts(app)
    options = app.multiselect(key="w_runs").options
    assert "Layer 6, Mean, first 20 re-ranked · cross-encoder" in options
    assert f"Layer 6, Mean, first {K} re-ranked · cross-encoder" in options  # in the address
    assert "Layer 3, [CLS], first 20 by MaxSim · late interaction" in options
    app.number_input(key="w_candidates").set_value(50).run()
    options = ready(app).multiselect(key="w_runs").options
    assert "Layer 6, Mean, first 50 re-ranked · cross-encoder" in options
    assert f"Layer 6, Mean, first {K} re-ranked · cross-encoder" in options
    assert "Layer 6, Mean, first 20 re-ranked" not in options


def test_a_cross_encoder_gets_the_sessions_length_and_the_chosen_label(
    open_page: Open, small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save_cross_encoder(tmp_path, "bert", outputs=3)
    config = json.loads((folder / "config.json").read_text())
    names = {"0": "contradiction", "1": "entailment", "2": "neutral"}
    (folder / "config.json").write_text(json.dumps(config | {"id2label": names}))
    scorer = Backend.load(str(folder), device_name="cpu")
    runs: list[Run] = []
    record = second_stage.pair_run

    def recorded(*arguments: Any) -> Run:
        runs.append(record(*arguments))
        return runs[-1]

    monkeypatch.setattr(second_stage, "pair_run", recorded)
    queries, keys = small.columns["compressed"], set()
    for length, label in ((None, "entailment"), (12, "entailment"), (12, "neutral")):
        address = {"view": "compare", "corpus": current.key_of(small), "r": [CODES[1]], "ce": str(folder)}
        app = ready(open_page("evaluate", **address, **({} if length is None else {"len": str(length)})))
        assert not app.error, texts(app)
        assert app.selectbox(key="w_score_label").value == "entailment"
        if label != "entailment":
            app.selectbox(key="w_score_label").set_value(label).run()
            ready(app)
        run, expected, cosines = runs[-1], [], first_cosines(small.texts, queries, length)
        for number, query in enumerate(queries):
            order = np.argsort(-cosines[number])
            candidates, number_of = order[:K], list(names.values()).index(label)
            scores = scorer.score_pairs(
                [query] * K, [small.texts[row] for row in candidates], label=number_of, max_length=length
            )
            rank = order.tolist().index(number) + 1
            if rank <= K:  # ties count against the query: truncated texts may be equal
                rank = int((scores >= scores[candidates == number] - 1e-5).sum())
            expected.append(rank)
        np.testing.assert_array_equal(run.ranks, expected)
        assert run.settings["cross_encoder_max_length"] == (length or scorer.own_max_length)
        assert run.system["cross_encoder_label"] == label
        assert f"({label})" in run.name
        keys.add(run.key)
    assert len(keys) == 3


def test_an_opened_query_shows_the_hits_of_both_stages(
    open_page: Open, small: Corpus, expected_ranks: dict[str, np.ndarray]
) -> None:
    ranks = expected_ranks["rr"]
    beyond = int(np.argmax(ranks)) if ranks.max() > K else 0
    address = {"view": "compare", "corpus": current.key_of(small), "r": [CODES[1]], "n": str(beyond)}
    app = ready(open_page("evaluate", **address))
    shown = texts(app)
    assert f"rank {ranks[beyond]}" in shown
    assert ("is not a candidate" in shown) == (ranks[beyond] > K)


def test_graded_relevance_after_two_stages_equals_ir_measures(open_page: Open, tmp_path: Path) -> None:
    documents = [*current.demo().texts[:30]]
    queries = [*current.demo().columns["compressed"][:6]]
    judged = [(query, (query * step) % 30, grade) for query in range(6) for step, grade in ((1, 2), (7, 1), (11, 1))]
    qrels: dict[str, dict[str, int]] = {}
    for query, document, grade in judged:
        qrels.setdefault(str(query), {})[str(document)] = grade
    for name, rows in (("corpus.jsonl", documents), ("queries.jsonl", queries)):
        lines = [json.dumps({"_id": str(row), "text": text}) for row, text in enumerate(rows)]
        (tmp_path / name).write_text("\n".join(lines))
    lines = [f"{query}\t{document}\t{grade}" for query, own in qrels.items() for document, grade in own.items()]
    (tmp_path / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]))
    app = open_page("evaluate", v="graded-relevance", gs="path", r=["m.6.mean", "rr.10.m.6.mean", "ms.10.m.6.mean"])
    app.text_input(key="graded_path").set_value(str(tmp_path)).run()
    app.button(key="read_graded").click().run()
    ready(app)
    assert not app.error
    table = frame(app, "p to the best (Holm)").set_index("run")
    cosines = first_cosines(documents, queries)
    for name, kind in (("Layer 6, Mean, first 10 re-ranked", "rr"), ("Layer 6, Mean, first 10 by MaxSim", "ms")):
        ranking = {}
        for number, query in enumerate(queries):
            scores, first = cosines[number].copy(), np.argsort(-cosines[number])[:10]
            texts_of = [documents[row] for row in first]
            scores[first] = 100 + (
                cross_encoder().score_pairs([query] * 10, texts_of)
                if kind == "rr"
                else late_interaction_scores(backend(), query, texts_of, 6, 256)
            )
            ranking[str(number)] = {str(row): float(score) for row, score in enumerate(scores)}
        measures = {
            "MAP": ir_measures.AP,
            "MRR": ir_measures.RR,
            "nDCG@10": ir_measures.nDCG @ 10,
            "P@10": ir_measures.P @ 10,
        }
        theirs = ir_measures.calc_aggregate(list(measures.values()), qrels, ranking)
        for title, measure in measures.items():
            assert table.loc[name, title] == pytest.approx(100 * theirs[measure], abs=0.01), (name, title)


def test_scores_are_kept_under_all_that_they_depend_on() -> None:
    """Two runs whose first stages differ in one thing have candidates of their own."""
    scorer, other = (SimpleNamespace(key=key) for key in ("cross", "maxsim"))
    runs = [
        second_stage.TwoStages(SimpleNamespace(), layer, pooling, k, second)  # type: ignore[arg-type]
        for layer, pooling, k, second in (
            (6, "mean", 10, scorer),
            (5, "mean", 10, scorer),
            (6, "cls", 10, scorer),
            (6, "mean", 20, scorer),
            (6, "mean", 10, other),
        )
    ]
    assert len({run.key for run in runs}) == len(runs)


def test_names_of_two_stages() -> None:
    assert choices.name_of(RunCode.read("ms.20.m.6.mean")) == "Layer 6, Mean, first 20 by MaxSim"


def test_without_a_cross_encoder_its_runs_have_no_result() -> None:
    request = choices.RunRequest({}, (), {}, None)
    assert request.stages(RunCode("m", 6, "mean")) is None
    with pytest.raises(NotReady):
        request.stages(RunCode("m", 6, "mean", "rr", 10))


def test_a_page_can_wait_for_a_model_and_a_cross_encoder_in_one_run() -> None:
    def page() -> None:
        from dashboard.ui import model_gate

        model_gate._while_loading("main")
        model_gate._while_loading("cross_encoder")

    app = AppTest.from_function(page).run()
    assert not app.exception
    assert len(app.get("plotly_chart")) == 1


def test_the_time_of_a_query_is_that_of_both_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_runs, "vector_milliseconds", lambda *_: 3.0)
    monkeypatch.setattr(pair_runs, "second_milliseconds", lambda *_: 4.5)
    both = SimpleNamespace(texts=("a", "b"))
    index = SimpleNamespace(folder=Path("index"))
    timing = second_stage.timing(
        SimpleNamespace(backend=SimpleNamespace(spec=SimpleNamespace(title="model")), key=("k",), name="two"),
        SimpleNamespace(documents=both, queries=both),
        SimpleNamespace(documents=index, queries=index),
        SimpleNamespace(rows=np.zeros((2, 1), np.int64)),
    )
    assert timing.measure(lambda: False) == 7.5
