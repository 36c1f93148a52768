"""The pooling lab: what a control costs, what small and large corpora are told, what progress says."""

from __future__ import annotations

import functools
import gc
import threading
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.jobs import Cache, Stopped
from components.retrieval.evaluation import pair_runs, pooling_lab
from components.retrieval.evaluation import sts as sts_pairs
from components.retrieval.evaluation.chance import paired
from components.retrieval.evaluation.pooling_lab import LabLayers, lab_cells, lab_layers
from components.retrieval.evaluation.sts import ScoredPairs
from dashboard import caching, state
from dashboard.corpora import current
from dashboard.views.evaluate import lab as lab_sections
from dashboard.views.evaluate import sts
from tests.support.evaluate_page import corpus_of
from tests.support.pages import Open, at_rest, backend, figures, texts

COUNT = 16
POOLINGS, TREATMENTS = list(lab_sections.POOLINGS), list(lab_sections.TREATMENTS)


@pytest.fixture(scope="module", autouse=True)
def _measured() -> None:
    """The yardsticks, which are measured in the background once a model is loaded: their passes are none of the lab's."""
    caching.baseline(backend())


@pytest.fixture(scope="module", autouse=True)
def _few_scored_pairs() -> Iterator[None]:
    """Most of the texts would be those of the ready-made pairs. Nothing that was worked out with those is left."""
    found = sts.demo_pairs()
    few = ScoredPairs(found.first[:10], found.second[:10], found.scores[:10])
    forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sts, "demo_pairs", lambda: few)
        yield
    forget()


def forget() -> None:
    """All results and vectors of the lab."""
    caching.evaluations.clear()
    caching.lab_vectors.clear()
    caching.lab_pairs().clear()


@pytest.fixture
def nothing_worked_out() -> None:
    """Neither results nor vectors of another test."""
    forget()


@pytest.fixture(autouse=True)
def _nothing_left_running() -> Iterator[None]:
    yield
    for job in caching.evaluations().under_way():
        assert job.finished.wait(60)


@pytest.fixture
def lab(open_page: Open) -> AppTest:
    return at_rest(open_page("evaluate", v="pooling-lab", corpus=corpus_of(COUNT)))


@pytest.fixture
def counted(nothing_worked_out: None, lab: AppTest, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often cells and sweeps are worked out once the page is there."""
    counts = {"lab_cells": 0, "dimension_sweep": 0}

    def counting(name: str) -> Any:
        original = getattr(pooling_lab, name)

        def call(*values: Any, **options: Any) -> Any:
            counts[name] += 1
            return original(*values, **options)

        return call

    for name in counts:
        monkeypatch.setattr(pooling_lab, name, counting(name))
    return counts


def heatmap(app: AppTest, number: int = 0) -> np.ndarray:
    """A heatmap's values, whose first treatment is in the top row, [pooling, treatment]."""
    return np.asarray(figures(app)[number]["data"][0]["z"], float)[::-1].T


def titles(app: AppTest) -> list[str]:
    """The figures' titles in one line each."""
    return [figure["layout"]["title"]["text"].replace("<br>", " ") for figure in figures(app)]


@functools.cache
def layers_of(count: int) -> LabLayers:
    """The vectors of the demo's first pairs by the lab's own functions."""
    demo = current.demo()
    return lab_layers(backend(), demo.texts[:count], demo.columns["compressed"][:count], sts.demo_pairs())


def expected(layer: int, dims: int, seed: int = 0, count: int = COUNT) -> np.ndarray:
    """Recall@1 by the lab's own functions, [pooling, treatment] in per cent."""
    scored = sts.demo_pairs()
    of_cells = lab_cells(layers_of(count).of(layer), scored.scores, dims, seed)
    cells = {(cell.pooling, cell.treatment): cell for cell in of_cells}
    return np.array([[100 * cells[p, t].mean("Recall@1") for t in TREATMENTS] for p in POOLINGS])


def test_it_shows_what_the_lab_gives(nothing_worked_out: None, lab: AppTest) -> None:
    assert not lab.exception
    assert not lab.error
    assert not lab.warning
    np.testing.assert_allclose(heatmap(lab), expected(6, COUNT - 1), atol=1e-4)
    assert titles(lab) == [
        "Correct answer first (%), layer 6",
        "Agreement with people, layer 6",
        "Correct answer first (%), Mean",
        "Agreement with people, Mean",
    ]
    assert "few dimensions" not in texts(lab)
    assert "By rarity: rare pieces count more." in texts(lab)


def test_no_control_costs_a_forward_pass(lab: AppTest) -> None:
    before = backend().forward_passes
    for layer in (5, 0, 2):
        lab.slider(key="w_layer").set_value(layer).run()
        at_rest(lab)
        assert titles(lab)[0] == f"Correct answer first (%), layer {layer}"
    lab.slider(key="w_lab_dims").set_value(9).run()
    at_rest(lab)
    lab.number_input(key="w_lab_seed").set_value(5).run()
    at_rest(lab)
    for pooling in ("max", "idf"):
        lab.segmented_control(key="w_lab_pooling").set_value(pooling).run()
        at_rest(lab)
        name = lab_sections.POOLINGS[pooling]
        assert titles(lab)[2] == f"Correct answer first (%), {name}"
    assert not lab.error
    shown = heatmap(lab)
    assert backend().forward_passes == before
    np.testing.assert_allclose(shown, expected(2, 9, 5), atol=1e-4)


def test_a_click_on_a_row_works_out_its_curves_and_no_cell(
    counted: dict[str, int], lab: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    clicked: dict[str, Any] = {"points": [{"customdata": [1, 3]}]}  # the fourth column
    with monkeypatch.context() as patch:
        patch.setattr(lab_sections.st, "session_state", {"lab_recall": {"selection": clicked}})
        lab_sections._clicked("lab_recall")
        assert lab_sections.st.session_state["lab_pooling"] == "last4"
        lab_sections.st.session_state["lab_pooling"] = "mean"
        # Beside the cells, and what no click sends.
        nowhere = [
            [],
            *([{"customdata": cell}] for cell in ([0, -1], [0, 5], [0, "0"], [0, True], [0], [], None)),
            [{}],
        ]
        for clicked["points"] in nowhere:
            lab_sections._clicked("lab_recall")
            assert lab_sections.st.session_state["lab_pooling"] == "mean"
    lab.session_state["lab_pooling"] = "last4"
    lab.run()
    at_rest(lab)
    assert titles(lab)[2].endswith("Last 4 layers")
    assert counted == {"lab_cells": 0, "dimension_sweep": 1}
    lab.slider(key="w_lab_dims").set_value(9).run()
    at_rest(lab)
    assert counted == {"lab_cells": 1, "dimension_sweep": 1}  # the curves have all numbers of dimensions


def test_whether_a_way_agrees_more_with_people_is_computed_once_with_the_cells(
    lab: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn_again(*_: Any) -> bool:
        raise AssertionError("hundreds of draws on a run that changes nothing")

    monkeypatch.setattr(sts_pairs, "agrees_more", drawn_again)
    lab.run()
    assert len(figures(lab)) == 4
    assert not lab.exception


def test_what_pca_and_whitening_really_kept_is_said(open_page: Open) -> None:
    app = at_rest(open_page("evaluate", v="pooling-lab", corpus=corpus_of(COUNT), l="0", d="12"))
    assert "The two PCA rows kept fewer than 12 dimensions: [CLS] 0. " in texts(app)
    assert "keep 0–12 of 384 numbers" in texts(app)
    assert not app.warning


def test_the_first_correlations_are_drawn_while_the_rest_is_embedded(
    open_page: Open, nothing_worked_out: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first visit: few texts are soon embedded, and their columns are those of the whole lab."""
    embedding, may_go_on = pooling_lab.lab_layers, threading.Event()

    def held(*values: Any, **options: Any) -> Any:
        assert may_go_on.wait(60)
        return embedding(*values, **options)

    monkeypatch.setattr(pooling_lab, "lab_layers", held)
    app = open_page("evaluate", v="pooling-lab", corpus=corpus_of(COUNT))
    first = next(job for job in (*caching.evaluations().finished(), *caching.evaluations().under_way()))
    assert first.finished.wait(60)
    app.run()
    try:
        early = heatmap(app, 1)
        assert titles(app) == ["Correct answer first (%), layer 6", "Agreement with people, layer 6"]
        assert np.isfinite(early).sum(axis=0).tolist() == [5, 5, 5, 0, 0]
        assert len(app.get("progress")) == 1
        assert [button.label for button in app.button if button.label == "Stop"] == ["Stop"]
    finally:
        may_go_on.set()
    whole = heatmap(at_rest(app), 1)
    assert np.isfinite(whole).all()
    np.testing.assert_allclose(early[:, :3], whole[:, :3], atol=1e-4)


def test_two_pairs_are_too_few(open_page: Open) -> None:
    before = backend().forward_passes
    app = open_page("evaluate", v="pooling-lab", corpus=corpus_of(2))
    assert "2 pairs are too few" in texts(app)
    assert not figures(app)
    assert not [*app.exception, *app.error, *app.warning]
    assert backend().forward_passes == before


def test_one_pair_is_refused_as_on_the_whole_page(open_page: Open) -> None:
    app = open_page("evaluate", v="pooling-lab", corpus=corpus_of(1))
    (message,) = app.error
    assert "At least two different ones are needed" in message.value
    assert "Something went wrong" not in texts(app)
    assert not figures(app)


@pytest.mark.parametrize(("count", "drawn"), [(3, 2), (8, 2), (9, 4)])
def test_small_corpora_are_drawn_without_a_notice(open_page: Open, count: int, drawn: int) -> None:
    app = at_rest(open_page("evaluate", v="pooling-lab", corpus=corpus_of(count)))
    assert not [*app.exception, *app.error, *app.warning]
    assert len(figures(app)) == drawn
    np.testing.assert_allclose(heatmap(app), expected(6, count - 1, count=count), atol=1e-4)
    assert ("The curves begin at 8 dimensions" in texts(app)) == (drawn == 2)


def test_the_default_number_of_dimensions_fits_what_there_is(
    open_page: Open, lab: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert state.default("lab_dims") is None
    assert lab_sections.DIMENSIONS == 128
    assert lab.slider(key="w_lab_dims").value == lab.slider(key="w_lab_dims").max == COUNT - 1
    assert "d" not in lab.query_params
    monkeypatch.setattr(lab_sections, "DIMENSIONS", 11)  # fewer than there are
    app = at_rest(open_page("evaluate", v="pooling-lab", corpus=corpus_of(COUNT)))
    assert app.slider(key="w_lab_dims").value == 11
    assert app.slider(key="w_lab_dims").max == COUNT - 1
    assert "d" not in app.query_params


def test_of_large_corpora_as_many_pairs_are_taken_as_fit(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    scored = 2 * len(sts.demo_pairs().first)
    monkeypatch.setattr(pooling_lab, "MOST_BYTES", (scored + 2 * 12) * 4 * 4 * 7 * 384)
    app = at_rest(open_page("evaluate", v="pooling-lab", corpus=corpus_of(COUNT)))
    assert f"The lab uses only the first 12 of the {COUNT} pairs" in texts(app)
    np.testing.assert_allclose(heatmap(app), expected(6, 11, count=12), atol=1e-4)


# The jobs


@pytest.fixture
def work() -> lab_sections.Lab:
    demo, scored = current.demo(), sts.demo_pairs()
    pairs = pair_runs.first_pairs(pair_runs.pairs_of_corpus(demo), 24)
    return lab_sections.Lab(backend(), pairs, scored, Cache(2))


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Jobs are handed out instead of run; their keys come along."""
    handed: list[Any] = []
    monkeypatch.setattr(lab_sections.evaluation, "result", lambda key, title, run, where: handed.append((key, run)))
    return handed


def told_by(run: Any) -> list[float]:
    """The shares of a job's work that it told, in order; its total stays the same."""
    told: list[tuple[int, int]] = []
    run(lambda *counts: told.append(counts), lambda: False)
    assert len({total for _, total in told}) == 1
    return [done / total for done, total in told]


def test_progress_is_one_that_never_goes_back(work: lab_sections.Lab, by_hand: list[Any]) -> None:
    lab_sections._cells(work, 6, 8, 0)
    lab_sections._sweep(work, "mean", 6, 0)
    (_, cells), (_, sweep) = by_hand
    first, again, curves = told_by(cells), told_by(cells), told_by(sweep)
    for told in (first, again, curves):
        assert told == sorted(told)
        assert 0 < told[0] < 0.3
        assert told[-1] == 1
    assert len(again) == 25
    assert len(first) > 25 + 4  # batches of the two passes too
    share = work.embedding_share
    assert [told for told in first if told > share + 1e-4] == pytest.approx(
        [share + (1 - share) * cell / 25 for cell in range(1, 26)], abs=1e-4
    )
    fresh = lab_sections.Lab(work.backend, work.pairs, work.scored, Cache(2))
    lab_sections._sweep(fresh, "mean", 6, 0)  # its vectors were let go meanwhile
    told = told_by(by_hand[-1][1])
    assert told == sorted(told)
    assert told[-1] == 1


def test_many_pairs_take_longer_to_compare_than_to_embed(work: lab_sections.Lab) -> None:
    def share(count: int, device: str = "cpu") -> float:
        facts = SimpleNamespace(layers=6, hidden_size=384)
        model: Any = SimpleNamespace(facts=facts, device=SimpleNamespace(type=device))
        pairs: Any = range(count)
        return lab_sections.Lab(model, pairs, work.scored, work.kept).embedding_share

    assert 0.5 < share(5_000) < share(3_150) < share(630) < 1
    assert share(3_150, "cuda") < 0.5


def test_keys_name_what_a_result_depends_on_and_nothing_else(work: lab_sections.Lab, by_hand: list[Any]) -> None:
    for layer, dims, seed in ((6, 8, 0), (5, 8, 0), (6, 9, 0), (6, 8, 1)):
        lab_sections._cells(work, layer, dims, seed)
    for pooling, layer, seed in (("mean", 6, 0), ("max", 6, 0), ("mean", 5, 0), ("mean", 6, 1)):
        lab_sections._sweep(work, pooling, layer, seed)
    keys = [key for key, _ in by_hand]
    assert len(set(keys)) == 8
    assert not any(pooling in key for key in keys[:4] for pooling in POOLINGS)
    assert {type(part) for key in keys for part in key} == {str, int}


def test_a_stop_is_heard_in_every_phase(work: lab_sections.Lab, by_hand: list[Any]) -> None:
    lab_sections._cells(work, 6, 8, 0)
    ((_, run),) = by_hand
    told: list[tuple[int, int]] = []
    with pytest.raises(Stopped):
        run(lambda *counts: told.append(counts), lambda: bool(told))
    assert len(told) == 1
    assert work.kept.find(work.key) is None
    told.clear()
    with pytest.raises(Stopped):
        run(lambda *counts: told.append(counts), lambda: bool(told) and told[-1][0] > 10_000 * work.embedding_share + 1)
    assert work.kept.find(work.key) is not None  # what took long is not lost


def test_nothing_but_the_cache_holds_the_vectors(nothing_worked_out: None, lab: AppTest) -> None:
    (kept,) = caching.lab_vectors()._kept.values()
    gone = weakref.ref(kept)
    del kept
    caching.lab_vectors()._kept.clear()
    gc.collect()
    assert gone() is None
    assert figures(lab)


def test_the_finding_names_ties_and_what_people_agree_with() -> None:
    recall = np.full((len(lab_sections.POOLINGS), len(lab_sections.TREATMENTS)), 50.0)
    recall[0, 0], recall[4, 0] = 96.71, 96.69  # both are written as 96.7
    spearman = np.full_like(recall, 0.5)
    spearman[0, 3] = 0.777
    said = functools.partial(lab_sections.best_in_words, queries=630, pairs=150)
    first = "**Mean** and **By rarity** with **cosine** put the most correct answers first: 96.7 % of 630 queries."
    way = "**Mean** with **PCA projection**"
    assert said(recall, spearman, agrees_more=True) == (
        f"{first} Rank correlation with people (Spearman) rises from 0.500 to 0.777: {way}."
    )
    spearman[0, 0] = 0.765
    assert said(recall, spearman) == (
        f"{first} No way agrees clearly more with people than mean with cosine (Spearman 0.765): in these maps at most 0.777 "
        f"({way}), on 150 pairs."
    )
    spearman[0, 0] = 0.8
    assert said(recall, spearman) == (f"{first} No way agrees more with people than mean with cosine: Spearman 0.800.")
    recall[0, 0], recall[1] = 90.0, 50.0
    spearman[0, 0] = np.nan
    assert said(recall, spearman) == (
        "**By rarity** with **cosine** puts the most correct answers first: 96.7 % of 630 queries "
        "(mean with cosine: 90.0 %, which may be chance)."
    )
    recall[1, :2] = 96.7
    assert said(recall, spearman).startswith(
        "**[CLS]** with **cosine** and 2 other ways put the most correct answers first"
    )
    assert said(recall, spearman, is_sure=True).endswith("(mean with cosine: 90.0 %).")


def test_the_best_of_25_ways_is_sure_only_after_correcting_for_them() -> None:
    def cell(first: int) -> Any:
        return SimpleNamespace(ranks=np.where(np.arange(100) < first, 1, 2))

    assert paired.difference(8, 0, 100).low > 0  # sure of two runs, but not of the best of many
    assert not lab_sections.is_surely_better(cell(88), cell(80))
    assert lab_sections.is_surely_better(cell(92), cell(80))
    assert not lab_sections.is_surely_better(cell(80), cell(92))


def test_the_finding_says_how_few_numbers_are_enough() -> None:
    def cell(dims: int, treatment: str, first: int, spearman: float | None) -> Any:
        return SimpleNamespace(dims=dims, treatment=treatment, mean=lambda _: first / 1000, spearman=spearman)

    sweep = [cell(8, "pca", 300, 0.71), cell(16, "random", 370, 0.65), cell(16, "pca", 640, 0.764)]
    sweep += [cell(64, "pca", 945, 0.793), cell(128, "pca", 963, 0.777), cell(128, "random", 958, 0.735)]
    assert lab_sections.enough_in_words(sweep, cell(384, "cosine", 967, 0.765), 384) == (
        "**128 of 384 numbers** (PCA projection) are enough to put the correct answer first for 96.3 % of the queries, all 384 "
        "for 96.7 %. **16 numbers** (PCA projection) are enough to agree with people about as well as all do: Spearman 0.764 "
        "and 0.765."
    )
    assert lab_sections.enough_in_words(sweep, cell(384, "cosine", 990, None), 384) == (
        "No projection puts the correct answer first nearly as often as the whole vector: all 384 for 99.0 %."
    )
