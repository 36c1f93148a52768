"""Layers and poolings: a measure at every layer, which of them may be the best, and the recall curve of the chosen cell."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components import numbers
from components.charts.retrieval import evaluation as charts
from components.charts.retrieval.layer_lines import PoolingLine, layer_lines
from components.model.trace import Pooling
from components.retrieval.evaluation import metrics
from components.retrieval.evaluation.chance.best import best_of
from components.retrieval.search.lexical import TITLES
from components.shown_code.code import Command
from components.shown_code.commands import measured
from dashboard import caching, state
from dashboard.corpora import word_rankings
from dashboard.jobs import evaluation
from dashboard.jobs.embedding import EmbedRequest
from dashboard.ui import browser, controls, figures, messages
from dashboard.ui.waiting import before_work, frame
from dashboard.ui.wording import POOLING_NAMES, among
from dashboard.views.evaluate import choices, published
from dashboard.views.evaluate.rows import candidates
from dashboard.views.evaluate.rows.candidates import ComparedCells

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.evaluation.layer_grid import LayerGrid
    from components.retrieval.evaluation.metrics import Ranks
    from components.retrieval.evaluation.pair_runs import Pairs
    from dashboard.jobs.evaluation import PairIndexes

MOST_K = 100
WORDS_ALONE = ("tfidf", "bm25")  # what the vectors are compared with


def grid(backend: Backend) -> None:
    """The measure at every layer, which may be the best, and the chosen cell in detail."""
    pairs = choices.current_pairs()
    request = EmbedRequest.of_session(backend, exact=True)
    indexes = evaluation.pair_indexes(request, pairs, "grid")
    ranks = indexes.ranks
    before_work.other_layers(request, pairs.documents, "grid")
    with st.container(width=round(160 * controls.scale())):
        measure = choices.measure()
    above, about = st.container(), st.container()
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="row_grid")
    waiting = st.container()  # for the methods that use words alone: neither the lines nor what is chosen wait for them
    is_one = len(list(ranks.cells)) == 1  # without a choice of layer and pooling: no lines over layers
    layer = ranks.layers[-1]
    if not is_one:
        with row.container(width=round(90 * controls.scale())):  # a click on a point sets it too
            layer = controls.bind(
                "layer",
                st.selectbox,
                "Layer",
                options=ranks.layers[::-1],
                default=ranks.layers[-1],
                key="w_layer_cell",
                help=caching.glossary()["layer"],
            )
    with row:
        pooling = controls.pooling("pooling", "Pooling", POOLING_NAMES, ranks.poolings, backend.own_pooling)
    levels: list[tuple[str, float]] = []
    if len(pairs) <= choices.MANY_QUERIES:
        with waiting, frame.figure("grid_words"):
            for kind in WORDS_ALONE:
                run = evaluation.word_run(word_rankings.word_ranking(backend, kind), pairs)
                if metrics.finds_nothing(run.ranks):
                    st.info(f"{TITLES[kind]}: {choices.NO_SHARED_WORD}", icon=":material/search_off:")
                    continue
                levels.append((TITLES[kind], 100 * float(metrics.MEASURES[measure](run.ranks).mean())))
    with above:
        compared = _candidates(backend, indexes, pairs, measure)
        message = f"{candidates.finding(compared, measure, levels)} {among(pairs)}".rstrip()
        best = compared.cells[int(compared.order[0])]
        if is_one:
            _curve(backend, ranks, pairs, layer, pooling, best, message)
        else:
            _lines(backend, ranks, compared, measure, levels, ranks.position(layer, pooling), message, len(pairs))
    with about:
        choices.about(pairs)
        if "own" in ranks.poolings:
            messages.head_note([backend], "own")
    figures.note(f"**All measures of layer {layer}, {POOLING_NAMES[pooling]}**")
    figures.plain_table(_measures_table(ranks.of(layer, pooling)))
    if not is_one:
        _curve(backend, ranks, pairs, layer, pooling, best)
    published.pairs()


def _candidates(backend: Backend, indexes: PairIndexes, pairs: Pairs, measure: str) -> ComparedCells:
    """Every cell compared with the best one. Raises NotReady."""
    ranks = indexes.ranks
    judge, cells = metrics.MEASURES[measure], tuple(ranks.cells)
    judged = [judge(ranks.of(*cell)) for cell in cells]
    estimates = [metrics.interval(values) for values in judged]
    found = evaluation.result(
        ("best of", *cells, hashlib.sha256(np.array(judged).tobytes()).hexdigest(), measure),
        f"Comparing {len(cells)} vectors",
        lambda report_progress, is_stopped: best_of(np.array(judged)),
        "grid_best",
        short=True,
    )
    return ComparedCells(
        cells,
        np.array([100 * estimate.low for estimate in estimates]),
        np.array([100 * estimate.high for estimate in estimates]),
        found,
        (backend.facts.layers, backend.own_pooling),
    )


def _lines(
    backend: Backend,
    ranks: LayerGrid,
    compared: ComparedCells,
    measure: str,
    levels: list[tuple[str, float]],
    chosen: tuple[int, int],
    message: str,
    queries: int,
) -> None:
    """The measure over the layers, and beside it which cells may be the best."""
    shape = len(ranks.layers), len(ranks.poolings)
    means, low, high = (
        part.reshape(shape) for part in (100 * compared.found.means, compared.low, compared.high)
    )  # [layer, pooling]
    line = st.container(key="grid_line")
    left, right = st.columns([1.5, 1], gap="medium")
    with left:
        figures.figure(
            layer_lines(
                [
                    PoolingLine(POOLING_NAMES[name], means[:, column], low[:, column], high[:, column])
                    for column, name in enumerate(ranks.poolings)
                ],
                ranks.layers,
                f"{measure} of {len(ranks.layers)} layers",
                levels=levels,
                chosen=chosen,
                note="[CLS] of layer 0 is one vector for all texts"
                if ranks.layers[0] == 0 and "cls" in ranks.poolings and means[0, ranks.poolings.index("cls")] == 0
                else "",
            ),
            key="grid_figure",
            code=Command(
                metrics.interval, _measured(backend, ranks.layers, ranks.poolings), prints=choices.NO_INTERVALS
            ),
            alt=f"{measure} at {len(ranks.layers)} layers, a line for each of {len(ranks.poolings)} poolings",
            message=message,
            read="One forward pass per text gives every layer and pooling. At each, every query ranks all texts by cosine. "
            "Pale bars are 95 % intervals: where the value may lie for other queries. Dashed lines are methods that compare "
            "words and need no model. Click a point for its measures and its curve below.\n\n**May be the best**: queries are "
            "drawn anew 2,000 times, with replacement. A vector is behind if it is further below the best than such draws "
            "explain, in 95 of 100 of them. **First**: in how many of 100 draws it is first.",
            not_shown="Whether another text would be an equally good answer: only the query's correct answers count, and equal "
            "scores count against them (at layer 0 all [CLS] vectors are the same, so that [CLS] gets 0 there). The best "
            "vector here will usually do a little worse on new queries: by how much, the two halves say.",
            table=lambda: _grid_table(ranks, compared),
            on_select=partial(
                _clicked, "grid_figure", ranks.layers, ranks.poolings
            ),  # a callback must not keep the ranks
            select_many=False,
            line_in=line,
        )
    with right:
        figures.markup(
            candidates.rows(compared, measure, queries, candidates.colours(len(ranks.poolings))), key="grid_candidates"
        )


def _clicked(key: str, layers: tuple[int, ...], poolings: tuple[Pooling, ...]) -> None:
    place = browser.place_selected(key)[:2]  # the ring around the chosen one has none
    if len(place) == 2 and browser.is_index(place[0], len(layers)) and browser.is_index(place[1], len(poolings)):
        state.put("layer", layers[place[0]])
        state.put("pooling", poolings[place[1]])


def _curve(
    backend: Backend,
    ranks: LayerGrid,
    pairs: Pairs,
    layer: int,
    pooling: Pooling,
    best: tuple[int, Pooling],
    message: str = "",
) -> None:
    """Recall@k of the chosen cell, beside that of the best; the `message` where nothing else stands above it."""
    most = min(MOST_K, len(pairs.documents))
    chosen = ranks.of(layer, pooling)
    recall, (low, high) = metrics.recall_curve(chosen, most), metrics.recall_band(chosen, most)
    curves = [charts.Curve(f"layer {layer}, {POOLING_NAMES[pooling]}", 100 * recall, 100 * low, 100 * high)]
    if best != (layer, pooling):
        best_recall = metrics.recall_curve(ranks.of(*best), most)
        curves.append(charts.Curve(f"best: layer {best[0]}, {POOLING_NAMES[best[1]]}", 100 * best_recall))
    figures.figure(
        charts.curves_over(
            curves,
            range(1, most + 1),
            f"Recall@k at layer {layer}, {POOLING_NAMES[pooling]}",
            x_title="k",
            y_title="Recall@k (%)",
            logarithmic=True,
            height=charts.grid_height(len(ranks.layers)),
        ),
        key="grid_curve",
        code=Command(metrics.recall_curve, _measured(backend, [layer], [pooling]), prints=choices.AT_CUTOFFS),
        alt=f"Recall at k from 1 to {most} of layer {layer} with {pooling} pooling, with its interval",
        message=message,
        read=f"Every query ranks all {len(pairs.documents):,} texts by cosine. The curve is the share of queries with a "
        "correct answer among the first k; the band is the 95 % interval: where the curve may lie for other queries.",
        not_shown="Whether another text would be an equally good answer: only the query's correct answers count, and equal "
        "scores count against them.",
        table=lambda: pd.DataFrame(
            {"k": range(1, most + 1), **{curve.name: curve.values.round(3) for curve in curves}}
        ),
    )


def _measured(backend: Backend, layers: Sequence[int], poolings: Sequence[str]) -> tuple[str, ...]:
    """The command that measures some layers and poolings."""
    return measured("evaluate", choices.file_of_pairs(), backend, layers, poolings, controls.length_for(backend))


def _measures_table(ranks: Ranks) -> pd.DataFrame:
    """Every measure of one cell with its interval, a row each."""
    rows = []
    for name, measure in metrics.MEASURES.items():
        estimate = metrics.interval(measure(ranks))
        interval = f"{100 * estimate.low:.1f} – {100 * estimate.high:.1f}"
        rows.append({"measure": name, "%": numbers.number(100 * estimate.value, 2), "95 % interval": interval})
    return pd.DataFrame(rows)


def _grid_table(ranks: LayerGrid, compared: ComparedCells) -> pd.DataFrame:
    """Every measure of every cell, and what the rows beside the lines say of the chosen measure."""
    return pd.DataFrame(
        [
            {
                "layer": layer,
                "pooling": pooling,
                **{
                    name: round(100 * float(measure(ranks.of(layer, pooling)).mean()), 2)
                    for name, measure in metrics.MEASURES.items()
                },
                "first in 100 draws": round(100 * float(compared.found.first[place]), 2),
                "may be the best": bool(compared.found.may_be_best[place]),
            }
            for place, (layer, pooling) in enumerate(ranks.cells)
        ]
    )
