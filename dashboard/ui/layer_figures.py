"""Similarity of things over the layers, drawn as curves or as heatmaps, one column a model.

Home and Layers share it. The yardstick of unrelated tokens costs a second when a model is first asked for
it: the curves are drawn without it first, then again with it, in the same place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis import similarity
from components.charts import curves as curve_charts
from components.charts import heatmap
from dashboard import caching
from dashboard.ui import controls, figures, messages

if TYPE_CHECKING:
    from components.analysis.baseline import Baseline
    from components.analysis.similarity import LayerCurves
    from components.arrays import Float32
    from components.model.backend import Backend

MANY_THINGS = 8  # all with all: 28 curves; more are a matrix at one layer
MANY_CURVES = 28  # one against others: more are rows of a heatmap

READ = (
    "Each line is a pair; its triangles mark the lowest and the highest layer. High means: the two vectors point the "
    "same way."
)
NOT_SHOWN = (
    "Why a curve bends, or what the model “understands”. Cosines of any two tokens are high in many BERT models "
    "([Ethayarajh 2019](https://aclanthology.org/D19-1006/)): judge a curve by its distance from the grey band of "
    "unrelated ones, not by its height."
)
NO_BAND = (
    "Why two vectors are alike, or what the model “understands”. Cosines of any two tokens are high in many BERT models "
    "([Ethayarajh 2019](https://aclanthology.org/D19-1006/)): switch the baseline on where there is one, and compare."
)


@dataclass(frozen=True, eq=False)
class Compared:
    """One model's vectors [layer, thing, dim] and where its yardstick comes from."""

    backend: Backend
    vectors: Float32
    yardstick: Callable[[], Baseline]


def compare(
    models: Sequence[Compared],
    *,
    key: str,
    title: str,
    names: Sequence[str],
    descriptions: Sequence[str],
    pairs: Sequence[tuple[int, int]] | None,
    centred: bool,
    baseline: str | None,
) -> None:
    """Draw the things' similarities over the layers. `baseline` names the band, or leaves it out."""
    if pairs is None and len(names) > MANY_THINGS:
        _matrices(models, key, title, names, centred)
        return
    columns = st.columns(len(models))
    first = [column.empty() for column in columns]  # what is drawn before the yardstick is there
    slots = [column.container() for column in columns]
    if centred:
        _wait_for_baselines(models)
    centres = [item.yardstick().centre if centred else None for item in models]
    curves = [
        similarity.pair_curves(item.vectors, names, pairs, centre) for item, centre in zip(models, centres, strict=True)
    ]
    many = len(curves[0].pairs) > MANY_CURVES
    band_drawn = baseline is not None and not many

    def draw(sticks: Sequence[Baseline | None], last: bool) -> None:
        bands = [None if stick is None else _band(stick, centred, str(baseline)) for stick in sticks]
        limits = curve_charts.shared_range(
            *(item.values for item in curves),
            *(edge for band in bands if band for edge in (band.low, band.high)),
            np.array([0.0, 1.0]) if band_drawn else np.empty(0),  # so that the band's arrival moves nothing
        )
        for number, (slot, item, curve, band) in enumerate(
            zip(slots if last else first, models, curves, bands, strict=True)
        ):
            with slot.container():
                _one(item, curve, band, f"{key}_{number}", title, descriptions, limits, centred, len(models), last)

    if band_drawn and not all(caching.baseline_ready(item.backend) for item in models):
        draw([None] * len(models), last=False)
        _wait_for_baselines(models)
        for slot in first:
            slot.empty()
    draw([item.yardstick() if band_drawn else None for item in models], last=True)
    if many:
        figures.reading("Each row is a pair, each column a layer; bright means alike.", NO_BAND)
    else:
        figures.reading(READ, NOT_SHOWN if band_drawn else NO_BAND)


def _wait_for_baselines(models: Sequence[Compared]) -> None:
    """Wait while they are measured in the background; a click elsewhere ends the wait, not the measuring."""
    note = st.empty()
    while not all(caching.baseline_ready(item.backend) for item in models):
        if not caching.baseline_under_way([item.backend for item in models]):
            break  # nobody measures (a model that was loaded before): it is done in this thread
        note.caption("Measuring how similar unrelated tokens are …")
        time.sleep(0.1)
    note.empty()


def _one(
    item: Compared,
    curve: LayerCurves,
    band: curve_charts.BandData | None,
    key: str,
    title: str,
    descriptions: Sequence[str],
    limits: tuple[float, float],
    centred: bool,
    count: int,
    last: bool,
) -> None:
    model = item.backend.spec.title
    details = [f"{descriptions[a]} and {descriptions[b]}" for a, b in curve.pairs]
    message = summary(curve)
    many = len(curve.pairs) > MANY_CURVES
    full_title = f"{title} · {model}" if count > 1 else title
    if many:
        chart = heatmap.layer_heatmap(curve.values, curve.labels, full_title, limits=limits, scale=controls.scale())
    else:
        chart = curve_charts.layer_curves(
            curve.values,
            curve.labels,
            full_title,
            details=details,
            band=band,
            y_title="centred cosine" if centred else "cosine similarity",
            y_range=limits,
            scale=controls.scale(),
        )
    if not last:  # without the yardstick yet: the picture alone, replaced in a moment
        st.plotly_chart(chart, key=f"{key}_first", alt=f"{full_title}. {message}")
        return
    figures.figure(
        chart,
        key=key,
        alt=f"{full_title}. {message}",
        message=messages.escape(message),
        table=lambda: curve_table(curve, details, band),
    )


def summary(curves: LayerCurves) -> str:
    """The figure's message in a sentence, from its numbers."""
    last = curves.values[:, -1] if len(curves.pairs) else np.empty(0)
    if not len(last) or np.isnan(last).all():
        return "There is no value to show."
    near, far = int(np.nanargmax(last)), int(np.nanargmin(last))
    if len(last) > 1 and last[near] - last[far] < 0.0005:
        return f"After the last block all pairs are equally close ({last[near]:.3f})."
    if near == far:
        low, high = int(curves.lowest[near]), int(curves.highest[near])
        return (
            f"The two are most alike at layer {high} ({curves.values[near, high]:.3f}) and least at layer {low} "
            f"({curves.values[near, low]:.3f})."
        )
    return (
        f"After the last block, {curves.labels[near]} are closest ({last[near]:.3f}), {curves.labels[far]} furthest "
        f"apart ({last[far]:.3f})."
    )


def _band(stick: Baseline, centred: bool, name: str) -> curve_charts.BandData:
    band = stick.centred if centred else stick.raw
    return curve_charts.BandData(band.mean, band.low, band.high, name)


def curve_table(curves: LayerCurves, details: Sequence[str], band: curve_charts.BandData | None) -> pd.DataFrame:
    """Curves as rows: values at every layer, the lowest and the highest layer; the yardstick below."""
    layers = range(curves.values.shape[1])
    rows: list[dict[str, Any]] = []
    for index, detail in enumerate(details):
        row: dict[str, Any] = {"pair": curves.labels[index]}
        row |= {f"layer {layer}": round(float(curves.values[index, layer]), 4) for layer in layers}
        row |= {"lowest": int(curves.lowest[index]), "highest": int(curves.highest[index]), "what": detail}
        rows.append(row)
    if band is not None:
        for label, values in (("mean", band.mean), ("5 %", band.low), ("95 %", band.high)):
            rows.append(
                {"pair": f"{band.name}, {label}"}
                | {f"layer {layer}": round(float(values[layer]), 4) for layer in layers}
            )
    return pd.DataFrame(rows)


def _matrices(models: Sequence[Compared], key: str, title: str, names: Sequence[str], centred: bool) -> None:
    """All with all at one layer, on one colour scale for every layer and model."""
    vectors = [
        similarity.centred(item.vectors, item.yardstick().centre) if centred else item.vectors for item in models
    ]
    matrices = [similarity.cosine_matrix(item) for item in vectors]  # each [layer, n, n]
    outside = ~np.eye(len(names), dtype=bool)
    limits = (min(float(np.nanmin(matrix[:, outside])) for matrix in matrices), 1.0)
    layer = controls.layer(min(matrix.shape[0] for matrix in matrices) - 1)
    for number, (column, item, matrix) in enumerate(zip(st.columns(len(models)), models, matrices, strict=True)):
        full_title = f"{title}, layer {layer}" + (f" · {item.backend.spec.title}" if len(models) > 1 else "")
        with column:
            figures.figure(
                heatmap.similarity_heatmap(
                    matrix[layer],
                    names,
                    full_title,
                    limits=limits,
                    show_values=len(names) <= 12 and len(models) == 1,
                    scale=controls.scale(),
                ),
                key=f"{key}_matrix_{number}",
                alt=f"{full_title}: a heatmap of {len(names)} by {len(names)} cosines",
                table=partial(_pair_table, matrix, names),
            )
    figures.reading(
        f"More than {MANY_THINGS} have too many pairs for curves: each cell is a pair at this layer. Move the layer "
        "and watch groups form.",
        "Why two are alike, or what the model “understands”. Cosines of any two are high in many BERT models "
        "([Ethayarajh 2019](https://aclanthology.org/D19-1006/)). " + _unrelated(models, layer, centred),
    )


def _unrelated(models: Sequence[Compared], layer: int, centred: bool) -> str:
    """The yardstick in words, for figures that have no band."""
    said = []
    for item in models:
        stick = item.yardstick()
        mean = (stick.centred if centred else stick.raw).mean[layer]
        said.append(f"{mean:.2f}" + (f" in {messages.escape(item.backend.spec.title)}" if len(models) > 1 else ""))
    return f"Two unrelated ones have {' and '.join(said)} at this layer on average."


def _pair_table(matrix: np.ndarray, names: Sequence[str]) -> pd.DataFrame:
    first, second = np.triu_indices(len(names), 1)
    columns: dict[str, Any] = {
        "first": [names[a] for a in first.tolist()],
        "second": [names[b] for b in second.tolist()],
    }
    columns |= {f"layer {layer}": matrix[layer, first, second].round(4) for layer in range(matrix.shape[0])}
    return pd.DataFrame(columns)
