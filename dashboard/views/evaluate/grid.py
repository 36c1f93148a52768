"""Layers and poolings: a measure for every layer and pooling, and the recall curve of the chosen cell."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components import numbers
from components.charts.retrieval import evaluation as charts
from components.model.trace import Pooling
from components.retrieval.evaluation import metrics
from components.snippets import evaluate as snippets
from dashboard import caching, state
from dashboard.jobs import evaluation
from dashboard.jobs.embedding import EmbedRequest
from dashboard.ui import controls, figures, messages
from dashboard.ui.waiting import before_work
from dashboard.ui.wording import POOLING_NAMES
from dashboard.views.evaluate import choices, published

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.evaluation.layer_grid import LayerGrid
    from components.retrieval.evaluation.metrics import Ranks
    from components.retrieval.evaluation.pair_runs import Pairs

MOST_K = 100


def grid(backend: Backend) -> None:
    """The heatmap, and the chosen cell in detail."""
    pairs = choices.current_pairs()
    request = EmbedRequest.of_session(backend, exact=True)
    ranks = evaluation.pair_indexes(request, pairs, "grid").ranks
    before_work.other_layers(request, pairs.documents, "grid")
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="row_grid")
    left, middle = row.container(width=round(160 * controls.scale())), row.container(width=round(90 * controls.scale()))
    with left:
        measure = choices.measure()
    is_one = len(list(ranks.cells)) == 1  # without a choice of layer and pooling: nothing to compare in a heatmap
    values = ranks.each(lambda row: 100 * metrics.MEASURES[measure](row).mean())
    layer = ranks.layers[-1]
    if not is_one:
        with middle:  # a click on a cell of the heatmap sets it too
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
    _message(ranks, values, measure)
    if is_one:
        _curve(backend, ranks, pairs, layer, pooling, values.best)
    else:
        left, right = st.columns([1, 1], gap="large")
        with left:
            _heatmap(backend, ranks, values, measure, values.position(layer, pooling))
        with right:
            _curve(backend, ranks, pairs, layer, pooling, values.best)
    choices.about(pairs)
    if "own" in ranks.poolings:
        messages.head_note([backend], "own")
    if is_one:
        figures.reading(
            f"Every query ranks all {len(pairs.documents):,} sentences by cosine. The curve is the share of queries with a "
            "correct answer among the first k; the band is the 95 % interval: where the curve may lie for other queries.",
            "Whether another sentence would be an equally good answer: only the query's correct answers count, and ties count "
            "against it.",
        )
    else:
        _read_grid(pairs)
    figures.note(f"**All measures of layer {layer}, {POOLING_NAMES[pooling]}**, in per cent, with 95 % intervals")
    figures.plain_table(_measures_table(ranks.of(layer, pooling)))
    published.pairs()


def _read_grid(pairs: Pairs) -> None:
    """How to read the heatmap and the curve."""
    figures.reading(
        "One forward pass per text gives every layer and pooling. For each cell, every query ranks all "
        f"{len(pairs.documents):,} sentences by cosine. Click a cell for its curve. Layer 0 is the embeddings before the first "
        "block; the band is the 95 % interval: where the curve may lie for other queries.",
        "Whether another sentence would be an equally good answer: only the query's correct answers count, and ties count "
        "against it (at layer 0 all [CLS] vectors are the same, so [CLS] gets 0 there). The best cell here will "
        "usually do a little worse on new queries.",
    )


def _message(ranks: LayerGrid, values: LayerGrid, measure: str) -> None:
    layer, pooling = values.best
    estimate = metrics.interval(metrics.MEASURES[measure](ranks.of(layer, pooling)))
    text = (
        f":material/insights: Best {measure}: **{100 * estimate.value:.1f} %** at **layer {layer}, {POOLING_NAMES[pooling]}** "
        f"★ (95 % interval {100 * estimate.low:.1f}–{100 * estimate.high:.1f})."
    )
    if values.values.size == 1:
        text = (
            f":material/insights: {measure}: **{100 * estimate.value:.1f} %** "
            f"(95 % interval {100 * estimate.low:.1f}–{100 * estimate.high:.1f})."
        )
    within = int(np.count_nonzero(values.values >= 100 * estimate.low)) - 1
    if within:
        text += f" {within} other cell{' is' if within == 1 else 's are'} in this interval: the best may be luck."
    st.markdown(text)


def _heatmap(backend: Backend, ranks: LayerGrid, values: LayerGrid, measure: str, chosen: tuple[int, int]) -> None:
    figures.figure(
        charts.measure_grid(
            values.values,
            [str(number) for number in values.layers],
            [POOLING_NAMES[name] for name in ranks.poolings],
            f"{measure} (%) of {backend.spec.title}",
            unit=f"{measure} (%)",
            row_title="layer",
            column_title="pooling",
            chosen=chosen,
            starred=values.position(*values.best),
            limits=(0, 100),
        ),
        key="grid_figure",
        code=snippets.grid(
            backend,
            choices.code_of_pairs(),
            ranks.layers,
            ranks.poolings,
            controls.length_for(backend),
            measure,
        ),
        alt=f"Heatmap of {measure} for {len(ranks.layers)} layers and {len(ranks.poolings)} poolings",
        table=lambda: _grid_table(ranks),
        on_select=partial(_clicked, "grid_figure", ranks.layers, ranks.poolings),  # a callback must not keep the ranks
        select_many=False,
    )


def _clicked(key: str, layers: tuple[int, ...], poolings: tuple[Pooling, ...]) -> None:
    points = st.session_state[key].selection.points
    if points:
        row, column = points[0]["customdata"]
        state.put("layer", layers[int(row)])
        state.put("pooling", poolings[int(column)])


def _curve(
    backend: Backend, ranks: LayerGrid, pairs: Pairs, layer: int, pooling: Pooling, best: tuple[int, Pooling]
) -> None:
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
        code=snippets.curve(
            backend,
            choices.code_of_pairs(),
            list(dict.fromkeys([(layer, pooling), best])),
            controls.length_for(backend),
            most,
        ),
        alt=f"Recall at k from 1 to {most} of layer {layer} with {pooling} pooling, with its interval",
        table=lambda: pd.DataFrame(
            {"k": range(1, most + 1), **{curve.name: curve.values.round(3) for curve in curves}}
        ),
    )


def _measures_table(ranks: Ranks) -> pd.DataFrame:
    """Every measure of one cell with its interval, in one row."""
    cells = {}
    for name, measure in metrics.MEASURES.items():
        estimate = metrics.interval(measure(ranks))
        cells[name] = [
            f"{numbers.number(100 * estimate.value, 2)} ({100 * estimate.low:.1f} – {100 * estimate.high:.1f})"
        ]
    return pd.DataFrame(cells)


def _grid_table(ranks: LayerGrid) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "layer": layer,
                "pooling": pooling,
                **{
                    name: round(100 * float(measure(ranks.of(layer, pooling)).mean()), 2)
                    for name, measure in metrics.MEASURES.items()
                },
            }
            for layer, pooling in ranks.cells
        ]
    )
