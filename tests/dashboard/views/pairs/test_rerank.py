"""Retrieve and re-rank: what is drawn is what the two models give, and the ready-made queries do what the page says."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.jobs import Stopped
from components.model.backend import Backend
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.rankings.ranking import Ranking
from components.retrieval.reranking.quality import SecondLook, rankings_of
from components.retrieval.search.rerank import late_interaction_scores
from dashboard import caching
from dashboard.corpora import current
from dashboard.jobs import reranking
from dashboard.jobs.reranking import PassCosts
from dashboard.jobs.stored import cross_looks
from dashboard.settings import DEFAULT_QUERY
from dashboard.ui.wording import escape, shortened
from dashboard.views.pairs import rerank as view
from dashboard.views.pairs import rerank_quality
from dashboard.views.pairs.rerank_quality import CollectionLook
from tests.dashboard.page_states import small_corpus
from tests.support.pages import Open, at_rest, backend, choose_view, figures, texts

FirstStage = Callable[[str, int], tuple[np.ndarray, np.ndarray]]


@pytest.fixture
def first_stage(demo_vectors: np.ndarray) -> FirstStage:
    """Rows and cosines of the first k sentences of a query by the vectors of the last layer."""

    def first(query: str, k: int) -> tuple[np.ndarray, np.ndarray]:
        vector = backend().embed([query], options=backend().embed_options(precision="float32"))[0, 0, 0]
        scores = demo_vectors @ (vector / np.linalg.norm(vector))
        rows = np.argsort(-scores, kind="stable")[:k]
        return rows, scores[rows]

    return first


def lists(app: AppTest) -> dict[str, Any]:
    """What both lists are drawn from."""
    (drawn,) = [item for item in app.get("bidi_component") if item.proto.component_name == "bert_internals_reranked"]
    found: dict[str, Any] = json.loads(drawn.proto.json)
    return found


def lines(app: AppTest) -> list[tuple[int, int]]:
    """Ranks before and after of each candidate's line."""
    return [(row["before"], row["rank"]) for row in lists(app)["after"]]


def shown_rows(app: AppTest) -> list[str]:
    return [row["text"] for row in lists(app)["after"]]


def test_lines_and_table_are_the_two_models_orders(scorer: Backend, read_page: Open, first_stage: FirstStage) -> None:
    query = view.REPAIRED[0]
    app = read_page("pairs", v="retrieve-rerank", q=query)
    assert not app.exception
    rows, _ = first_stage(query, 10)
    scores = scorer.score_pairs([query] * 10, [current.demo().texts[row] for row in rows])
    order = np.argsort(-scores, kind="stable")
    assert sorted(lines(app)) == sorted((int(before) + 1, after) for after, before in enumerate(order, start=1))
    assert shown_rows(app) == [current.demo().texts[row] for row in rows[order]]
    assert [row["row"] for row in lists(app)["before"]] == rows.tolist()


def test_the_candidates_are_different_texts(open_page: Open) -> None:
    rows = [
        "Rain fell all night.",
        "Rain fell all night.",
        "A dog slept.",
        "Snow lay on the hill.",
        "Rain fell all night.",
    ]
    corpus = read_corpus("\n".join(rows).encode(), "repeated.txt")
    caching.corpora().put(current.key_of(corpus), corpus)
    app = at_rest(open_page("pairs", v="retrieve-rerank", corpus=current.key_of(corpus), q="rain", by="maxsim"))
    assert not app.exception
    assert sorted(row["row"] for row in lists(app)["before"]) == [0, 2, 3]
    assert sorted(shown_rows(app)) == sorted(set(rows))


# What happens to each of them among 10 and among 20 candidates is worked out below, without the page.
@pytest.mark.parametrize(("query", "of"), [(view.REPAIRED[0], {}), (view.REPAIRED[1], {"k": "20"})])
def test_the_cross_encoder_repairs_these_queries(
    scorer: Backend, read_page: Open, query: str, of: dict[str, str]
) -> None:
    said = texts(read_page("pairs", v="retrieve-rerank", q=query, **of))
    assert re.search(r"Here the correct answer rises from rank [2-9] to 1\.", said)


@pytest.mark.parametrize(("query", "k"), [(view.HARMED[0], "20"), (view.HARMED[1], "10")])
def test_the_cross_encoder_harms_these_queries(open_page: Open, scorer: Backend, query: str, k: str) -> None:
    app = at_rest(open_page("pairs", v="retrieve-rerank", q=query, k=k))
    assert re.search(r"Here the correct answer falls from rank 1 to ([5-9]|10)\.", texts(app))
    assert cross_looks.finding() in texts(app)
    assert app.button(key="to_disagreement").label == "Where it disagrees with the vectors"


@pytest.mark.parametrize("kind", ["rerank", "maxsim"])
def test_the_ready_made_queries_say_what_happens_to_them(
    open_page: Open, scorer: Backend, first_stage: FirstStage, kind: str
) -> None:
    app = open_page("pairs", v="retrieve-rerank", by=kind, q="")
    row = app.button_group(key="w_ready_pair_query")
    shown = dict(zip(view.READY_QUERIES, row.options, strict=True))
    stage = reranking.SecondStage(kind, scorer if kind == "rerank" else backend(), None, layer=6)  # type: ignore[arg-type]
    for query, text in shown.items():
        (own,) = [row for row, title in enumerate(current.demo().columns["compressed"]) if title == query]
        effects = set()
        rows, _ = first_stage(query, 20)
        scores = stage.scores(query, [current.demo().texts[row] for row in rows])
        before = int(np.flatnonzero(rows == own)[0]) + 1
        for k in (10, 20):
            order = np.argsort(-scores[:k], kind="stable")
            after = int(np.flatnonzero(rows[order] == own)[0]) + 1
            effects.add("repaired" if after == 1 < before else "harmed" if before == 1 < after else "")
        (effect,) = effects
        assert text == (f"{effect}: {shortened(query, view.READY_CHARACTERS)}" if effect else query)


def test_without_the_included_models_no_effect_is_promised(open_page: Open, scorer: Backend) -> None:
    app = open_page("pairs", v="retrieve-rerank", ce="cross-encoder/ms-marco-MiniLM-L6-v2", q="")
    assert tuple(app.button_group(key="w_ready_pair_query").options) == view.READY_QUERIES


def test_max_sim_is_a_choice_and_repairs_the_last_query(
    open_page: Open, scorer: Backend, first_stage: FirstStage
) -> None:
    query = view.READY_QUERIES[-1]
    app = at_rest(open_page("pairs", v="retrieve-rerank", q=query, by="maxsim"))
    assert "Here the correct answer rises from rank 5 to 1." in texts(app)
    rows, _ = first_stage(query, 10)
    scores = late_interaction_scores(backend(), query, [current.demo().texts[row] for row in rows], 6)
    order = np.argsort(-scores, kind="stable")
    assert sorted(lines(app)) == sorted((int(before) + 1, after) for after, before in enumerate(order, start=1))
    assert "included cross-encoder" not in texts(app)


def test_it_opens_with_a_query_whose_answer_is_known_and_takes_another(open_page: Open, scorer: Backend) -> None:
    app = at_rest(open_page("pairs", v="retrieve-rerank"))
    assert app.text_input(key="w_query").value == view.READY_QUERIES[0]
    app.text_input(key="w_query").set_value(DEFAULT_QUERY)
    said = texts(at_rest(app.run()))
    assert "No correct answer of this query is known" in said
    app.text_input(key="w_query").set_value("  ")
    assert "No query yet" in texts(app.run())


def test_a_slider_of_candidates_costs_no_pass(open_page: Open, scorer: Backend) -> None:
    app = at_rest(open_page("pairs", v="retrieve-rerank", q=view.REPAIRED[0]))
    before = scorer.forward_passes, backend().forward_passes
    app.slider(key="w_k").set_value(5)
    app.run()
    assert len(lines(app)) == 5
    app.slider(key="w_k").set_value(20)
    app.run()
    assert len(lines(app)) == 20
    assert (scorer.forward_passes, backend().forward_passes) == before


def test_an_answer_outside_the_candidates_is_said(open_page: Open, scorer: Backend) -> None:
    app = at_rest(open_page("pairs", v="retrieve-rerank", q=view.REPAIRED[0], k="3"))
    assert "not among the first 3 hits" in texts(app)


def test_times_and_the_cost_curve(scorer: Backend, read_page: Open) -> None:
    app = read_page("pairs", v="retrieve-rerank", q=view.REPAIRED[0])
    assert [metric.label for metric in app.metric] == [
        "Embedding the query",
        "Searching 630 vectors",
        "Re-ranking 10 candidates",
    ]
    assert all(re.fullmatch(r"[\d,.]+ ms", metric.value) for metric in app.metric)
    published = [trace for trace in figures(app)[0]["data"] if trace["mode"] == "markers"]
    assert [(trace["x"][0], trace["y"][0]) for trace in published] == [(10_000, 234_000), (10_000, 5)]


def test_costs_are_passes_times_their_number() -> None:
    single, joint, late = view.cost_lines(PassCosts(single=0.002, joint=0.01, max_sim=1e-5, was_alone=True))
    at = {int(size): number for number, size in enumerate(view.SIZES)}
    ten, million = at[10], at[1_000_000]
    assert single.seconds[ten] == pytest.approx(0.02)
    assert joint.seconds[ten] == pytest.approx(45 * 0.01)
    assert joint.seconds[million] == pytest.approx(0.01 * 1e6 * (1e6 - 1) / 2)
    assert late.seconds[ten] == pytest.approx(0.02 + 45e-5)


def test_work_for_an_older_query_is_stopped_and_may_start_again(
    open_page: Open, scorer: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, score = threading.Event(), reranking.SecondStage.scores

    def slow(self: Any, query: str, documents: Any, report: Any, is_stopped: Any) -> Any:
        gate.wait(60)
        return score(self, query, documents, report, is_stopped)

    app = at_rest(open_page("pairs", v="retrieve-rerank", q=view.REPAIRED[0]))
    monkeypatch.setattr(reranking.SecondStage, "scores", slow)
    try:
        app.text_input(key="w_query").set_value("a first query")
        app.run()
        assert app.button(key="stop_rerank_pairs").label == "Stop"
        (first,) = [job for job in caching.preparations().under_way() if job.key[0] == "second stage"]
        app.text_input(key="w_query").set_value("a second query")
        app.run()
        assert first.told_to_stop.is_set()
    finally:
        gate.set()
    app = at_rest(app)
    app.text_input(key="w_query").set_value("a first query")
    assert len(lines(at_rest(app.run()))) == 10


@pytest.mark.rare
def test_one_job_is_left_of_many_quick_changes_and_none_of_a_view_that_was_left(
    open_page: Open, scorer: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = at_rest(open_page("pairs", v="retrieve-rerank", q=view.REPAIRED[0]))
    gate, score = threading.Event(), reranking.SecondStage.scores

    def slow(self: Any, query: str, documents: Any, report: Any, is_stopped: Any) -> Any:
        gate.wait(60)
        if is_stopped():
            raise Stopped
        return score(self, query, documents, report, is_stopped)

    def awaited() -> list[Any]:
        jobs = caching.preparations().under_way()
        return [job for job in jobs if job.key[0] in ("second stage", "disagreement") and not job.told_to_stop.is_set()]

    monkeypatch.setattr(reranking.SecondStage, "scores", slow)
    try:
        for count, query in ((30, "one"), (60, "two"), (100, "three"), (21, "four")):
            app.slider(key="w_k").set_value(count)
            app.text_input(key="w_query").set_value(query)
            app.run()
        assert all(job.key[3] == "four" for job in awaited())
    finally:
        gate.set()
    assert len(lines(at_rest(app))) == 21
    gate.clear()
    try:
        app.text_input(key="w_query").set_value("five")
        app.run()
        (last,) = awaited()
        assert "Re-ranking 21 candidates: 50 are scored at once" in last.title
        choose_view(app, "disagreement")
        assert last.told_to_stop.is_set()
        assert "second stage" not in [job.key[0] for job in awaited()]
    finally:
        gate.set()
        for job in caching.preparations().under_way():
            caching.preparations().stop(job)  # scores of a thousand pairs, which nobody reads


def test_times_are_written_with_the_digits_that_mean_something() -> None:
    assert [view._milliseconds(seconds) for seconds in (0.00123, 0.0099, 0.0123, 1.5)] == [
        "1.23 ms",
        "9.90 ms",
        "12 ms",
        "1,500 ms",
    ]
    assert view._long_duration(2 * 86_400 - 1) == "48 h 0 min"
    assert view._long_duration(2 * 86_400) == "2 days"


def first_ranking(scores: np.ndarray) -> Ranking:
    return Ranking.of_candidates("second", "logit", scores.astype(np.float32), np.arange(len(scores)), len(scores))


def test_of_two_correct_answers_the_best_before_and_the_best_after_are_compared() -> None:
    """1 goes to 5, and 3 to 2: the best is now 2, which is worse than before."""
    rows, unused = np.arange(5), cast("Any", None)
    first = reranking.FirstStage(Ranking.of_candidates("vectors", "cosine", -rows, rows, 5), 6, "mean", 0.0, 0.0, True)
    reranked = Ranking.of_candidates("second", "logit", np.array([0, 5, 4, 3, 2], np.float32), rows, 5)
    stage: Any = SimpleNamespace(unit="second")
    orders = view._TwoStages(current.demo(), "query", first, unused, reranked, stage, frozenset({0, 2}))
    assert orders.moves == [(3, 2), (1, 5)]
    assert view._message(orders) == "Here the best correct answer falls from rank 1 to 2."
    table = view._table(orders)
    assert table["number"].tolist() == [1, 2, 3, 4, 0]
    assert table["before"].tolist() == [2, 3, 4, 5, 1]
    assert table["cosine"].tolist() == [-1, -2, -3, -4, 0]  # each text's own
    assert table["second"].tolist() == [5, 4, 3, 2, 0]
    assert table["correct"].tolist() == ["", "yes", "", "", "yes"]
    unknown = replace(orders, correct=frozenset())
    first = shortened(current.demo().texts[0], 60)
    assert view._message(unknown).startswith(
        f"The largest change: “{escape(first)}” moves from rank 1 to 5. No correct"
    )
    same = replace(orders, reranked=first_ranking(-rows), correct=frozenset({1}))
    assert view._message(same) == "Here the correct answer stays at rank 2."
    assert view._message(replace(same, correct=frozenset())) == "Re-ranking changes no rank."


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ({"k": "9"}, "rerank"),
        ({"k": "21"}, "maxsim"),
        ({"len": "16"}, "rerank"),
        ({"len": "16"}, "maxsim"),
        ({"m": "google-bert/bert-base-uncased"}, "maxsim"),
    ],
    ids=["fewer", "more", "a shorter length", "a shorter length of MaxSim", "another model"],
)
def test_effects_are_promised_only_where_they_hold(
    open_page: Open, scorer: Backend, address: dict[str, str], kind: str
) -> None:
    app = open_page("pairs", v="retrieve-rerank", by=kind, q="", **address)
    rows = [row for row in app.button_group if row.key == "w_ready_pair_query"]
    assert all(tuple(row.options) == view.READY_QUERIES for row in rows)
    assert rows or "m" in address  # without the model the page ends above


def test_what_was_measured_is_said_only_of_what_it_was_measured_for(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"model": view.EMBEDDED_KEY, "cross_encoder": view.EMBEDDED_CROSS_ENCODER_KEY, "corpus": ""}
    chosen: dict[str, Any] = {}
    monkeypatch.setattr(view.state, "get", lambda name: (own | chosen).get(name))
    assert view._included_note("rerank", 10) == f"{view.EFFECTS_NOTE} {view.TRAINED_NOTE}"
    assert view._included_note("rerank", 21) == view.TRAINED_NOTE
    assert view._included_note("maxsim", 10) == ""
    assert view.is_included("maxsim")
    for name, value in {"model": "org/other", "corpus": "0" * 32, "max_length": 16}.items():
        chosen.clear()
        chosen[name] = value
        assert view._included_note("rerank", 10) == view.TRAINED_NOTE
        assert not view.is_included("maxsim")
    chosen.clear()
    chosen["cross_encoder"] = "org/other"
    assert view._included_note("rerank", 10) == ""
    assert not view.is_included("rerank")
    assert view.is_included("maxsim")


def looked(name: str, before: int, after: int, count: int = 100) -> CollectionLook:
    """A collection of which so many queries of `count` have their right text first, before and after."""
    first, second = (np.where(np.arange(count) < number, 1, 2) for number in (before, after))
    look = SecondLook(rankings_of({0: first, 5: second, 50: second}), {5: 0.1, 50: 1.0}, 9.0, 1536.0, 29_000.0)
    return CollectionLook(name, look)


def test_the_finding_names_the_data_for_which_it_holds() -> None:
    headlines, questions = looked("headlines", 96, 98), looked("questions", 88, 83)
    assert rerank_quality.finding([]) == ""
    said = rerank_quality.finding([headlines, questions])
    assert said == "**MaxSim on the first 50 makes no sure difference** for 100 headlines or 100 questions."
    # The usual story is false: it harms, or changes nothing, or helps everywhere.
    assert "for 98.0 → 50.0 % of 100 headlines, but 83.0 → 88.0 % of 100 questions" in rerank_quality.finding(
        [looked("headlines", 98, 50), looked("questions", 83, 88)]
    )
    assert rerank_quality.finding([looked("queries", 90, 90)]) == (
        "**MaxSim on the first 50 changes nothing**: correct answer first for 90.0 %, as before, of 100 queries."
    )
    assert ", and 83.0 → 88.0 % of 100 questions" in rerank_quality.finding(
        [looked("headlines", 50, 98), looked("questions", 83, 88)]
    )
    assert " makes no sure difference** for 100 headlines." in rerank_quality.finding([looked("headlines", 96, 98)])
    harms = rerank_quality.finding([headlines, looked("questions", 98, 50)])
    assert harms.startswith("**MaxSim on the first 50 harms**: correct answer")
    assert harms.endswith("of 100 questions: the change for the headlines may be chance.")
    both = rerank_quality.finding([looked("headlines", 50, 98), looked("questions", 98, 50)])
    assert both.startswith("**MaxSim on the first 50 helps some and harms others**: correct answer")
    assert "chance" not in both
    assert rerank_quality.finding([looked("headlines", 50, 98)]).startswith(
        "**MaxSim on the first 50 helps**: correct answer"
    )
    look = looked("headlines", 96, 98).look  # it repairs 2 and harms none
    assert rerank_quality.of_all("headlines", look, 50) == (
        "Headlines\n2 repaired, 0 harmed, may be chance",
        "96.0 → 98.0 %",
    )
    assert rerank_quality.of_all("headlines", looked("", 80, 98).look, 50)[0] == "Headlines\n18 repaired, 0 harmed"


def test_the_first_order_does_not_wait_for_the_second(
    open_page: Open, scorer: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, score = threading.Event(), reranking.SecondStage.scores

    def slow(self: Any, *given: Any) -> Any:
        gate.wait(60)
        return score(self, *given)

    monkeypatch.setattr(rerank_quality, "measured", lambda *_: [])
    at_rest(open_page("retrieve-rerank", q="a query that nobody has asked", by="maxsim"))
    monkeypatch.setattr(reranking.SecondStage, "scores", slow)
    app = open_page("retrieve-rerank", q="another query that nobody has asked", by="maxsim")
    try:
        assert len(lists(app)["before"]) == 10
        assert lists(app)["after"] is None
        assert "Looking at 10 candidates again" in lists(app)["waiting"]
        assert app.button(key="stop_rerank_pairs").label == "Stop"
    finally:
        gate.set()
    assert len(lines(at_rest(app))) == 10


def test_it_opens_with_max_sim_and_older_addresses_with_the_cross_encoder(
    open_page: Open, scorer: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rerank_quality, "measured", lambda *_: [])
    app = at_rest(open_page("retrieve-rerank"))
    assert app.segmented_control(key="w_second_stage").value == "maxsim"
    assert app.query_params["by"] == "maxsim"
    for page in ("pairs", "search"):
        app = at_rest(open_page(page, v="retrieve-rerank", q=view.REPAIRED[0]))
        assert app.segmented_control(key="w_second_stage").value == "rerank"
    assert "of 630 headlines and harms " in texts(app)


def test_the_pieces_sum_to_the_score_on_screen(
    open_page: Open, scorer: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rerank_quality, "measured", lambda *_: [])
    app = at_rest(open_page("retrieve-rerank", q=view.READY_QUERIES[-1], by="maxsim"))
    (drawn,) = [item.proto.body for item in app.get("html") if "bi-taken" in item.proto.body]
    cosines = [float(cosine) for cosine in re.findall(r"<i>([\d.]+)</i>", drawn)]
    (right,) = [row for row in lists(app)["after"] if row["row"] in lists(app)["correct"]]
    assert f"the sum is {right['score']}" in drawn
    assert sum(cosines) == pytest.approx(float(right["score"]), abs=0.005 * (1 + len(cosines)))


def test_an_address_keeps_its_query_and_so_does_one_that_is_typed(open_page: Open) -> None:
    own = read_corpus(b"Title slips away.\nRain fell.\nA dog ran.\n", "none.txt")  # without queries
    caching.corpora().put(current.key_of(own), own)
    query = view.READY_QUERIES[0]
    app = at_rest(open_page("retrieve-rerank", corpus=current.key_of(own), by="maxsim", q=query))
    assert app.text_input(key="w_query").value == query
    at_rest(app.text_input(key="w_query").set_value("rain").run())
    at_rest(app.text_input(key="w_query").set_value(query).run())
    assert app.text_input(key="w_query").value == query


def test_a_persons_own_corpus_opens_with_its_first_query_instead_of_one_of_the_demo(open_page: Open) -> None:
    found = caching.corpora().find(small_corpus())
    assert found is not None
    queries = list(dict.fromkeys(found.columns["compressed"]))
    for is_chosen in (False, True):
        app = at_rest(open_page("retrieve-rerank", by="maxsim", **({} if is_chosen else {"corpus": small_corpus()})))
        if is_chosen:  # as after an upload on this view
            assert app.text_input(key="w_query").value == view.READY_QUERIES[0]
            app.session_state["corpus"] = small_corpus()
            app = at_rest(app.run())
        assert app.text_input(key="w_query").value == queries[0]
        assert re.search(r"Here the correct answer (rises from|falls from|stays at) rank", texts(app))
        offered = [option.replace("\\", "") for option in app.button_group(key="w_ready_pair_query").options]
        assert offered == [shortened(query, view.OWN_CHARACTERS) for query in queries[: len(view.READY_QUERIES)]]
