"""Similarity over the layers, drawn as curves or as heatmaps, with one column per model.

Measuring the baseline of unrelated tokens takes a second
the first time that a model needs it: the curves are first drawn without the baseline, and then again with it in the same
position.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.matched_words import word_vectors
from components.analysis.pooling import pool
from components.analysis.similarity import calibration, cosines, courses
from components.charts import curves as curve_charts
from components.charts import heatmap, theme
from components.model.trace import POOLING_NAMES
from components.snippets import layers as snippets
from components.snippets.code import Input
from dashboard import caching
from dashboard.ui import controls, figures, messages, word_choice

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from components.analysis.similarity.baseline import Band, Baseline
    from components.analysis.similarity.cosines import LayerCurves
    from components.arrays import Float32, Float64
    from components.charts.curves import BandData
    from components.model.backend import Backend
    from components.model.trace import Pooling, TokenizedSentence, Trace
    from components.snippets.code import Snippet

ALMOST_ALL = 99.9  # per cent of unrelated pairs: the sample cannot tell higher ones apart
AS_COSINES = controls.CosineScale()
MANY_THINGS = 8  # up to 8 give 28 pairs, drawn as curves; more are drawn as a matrix at one layer
MANY_CURVES = 28  # more pairs are drawn as rows of a heatmap

READ = (
    "Each line is a pair. Triangles mark the layers where the pair is least and most similar. A high value means that the "
    "two vectors point in similar directions."
)
HIGH_COSINES = (
    "In many BERT models the cosine of any two tokens is high ([Ethayarajh 2019](https://aclanthology.org/D19-1006/))"
)
NOT_SHOWN = (
    f"Why a curve bends, or what the model “understands”. {HIGH_COSINES}: judge a curve by its distance from the grey "
    "baseline, not by its height."
)
NOT_SHOWN_BY_PERCENTILES = (
    "How large the cosine itself is: a percentile has the same meaning at every layer, a cosine has not. The unrelated pairs "
    "come from a small English sample; near 100 % the percentile cannot tell two pairs apart."
)
WHY_SIMILAR = "Why two vectors are similar, or what the model “understands”. "


@dataclass(frozen=True, eq=False)
class Compared:
    """One model's vectors [layer, thing, dim], a function that returns its baseline, and the code of both."""

    backend: Backend
    vectors: Float32
    baseline: Callable[[], Baseline]
    code: snippets.Vectors


@dataclass(frozen=True, eq=False)
class _Panel:
    """One model's figure of curves, or of a heatmap with a row per pair if there are many."""

    key: str
    title: str
    curves: LayerCurves
    labels: Sequence[str]  # of the pairs in the figure, without what all share
    details: Sequence[str]  # a description of each pair
    scale: controls.CosineScale
    code: Callable[[bool], Snippet]  # with the band of the baseline, or without it
    note: str  # what is compared, where the question above would lead a reader to expect something else; else empty

    def message(self, band: BandData | None) -> str:
        return f"{self.note} {summary(self.curves, band, self.scale)}".strip()

    def chart(self, band: BandData | None, limits: tuple[float, float]) -> go.Figure:
        values, labels = self.curves.values, self.labels
        if len(labels) > MANY_CURVES:
            return heatmap.layer_heatmap(
                values, labels, self.title, limits=limits, value="percentile" if self.scale.percentiles else "cosine"
            )
        return curve_charts.layer_curves(
            values,
            labels,
            self.title,
            details=self.details,
            band=band,
            y_title=_quantity(self.scale),
            y_range=limits,
        )

    def draw_first(self, limits: tuple[float, float]) -> None:
        """The chart alone, without a baseline: it is replaced in a moment."""
        alt = f"{self.title}. {self.message(None)}"
        st.plotly_chart(figures.sized(self.chart(None, limits)), key=f"{self.key}_first", alt=alt)

    def draw(self, band: BandData | None, limits: tuple[float, float]) -> None:
        message = self.message(band)
        figures.figure(
            self.chart(band, limits),
            key=self.key,
            alt=f"{self.title}. {message}",
            message=messages.escape(message),
            message_below=True,
            table=lambda: curve_table(self.curves, self.details, band),
            code=self.code(band is not None and len(self.labels) <= MANY_CURVES),
        )


def compare_words(
    models: Sequence[Backend],
    traces: Sequence[Trace],
    choice: word_choice.Choice,
    sentences: Sequence[TokenizedSentence],
    *,
    key: str,
    scale: controls.CosineScale,
    place: Any,
) -> None:
    """Draw the similarities of the chosen words; `sentences` are the first model's tokens. See `_compare`."""
    _compare(
        [
            Compared(
                model,
                word_vectors(trace, words),
                partial(caching.token_baseline, model),
                snippets.of_words(
                    Input(model, [sentence.text for sentence in sentences], controls.length_for(model)), words
                ),
            )
            for model, trace in zip(models, traces, strict=True)
            for words in [word_choice.positions_in(choice, sentences, trace)]
        ],
        key=key,
        title=choice.title(sentences),
        names=choice.names(sentences),
        descriptions=choice.descriptions(sentences),
        pairs=choice.pairs,
        scale=scale,
        unrelated="two unrelated tokens",
        place=place,
        note=choice.warning(sentences),
    )


def compare_sentences(
    models: Sequence[Backend],
    traces: Sequence[Trace],
    pooling: Pooling,
    include_special: bool,
    *,
    key: str,
    scale: controls.CosineScale,
    place: Any,
) -> None:
    """Draw the similarities of sentence vectors. See `_compare`."""
    texts = [sentence.text for sentence in traces[0].sentences]
    few = len(texts) <= MANY_THINGS
    _compare(
        [
            Compared(
                model,
                pool(trace, pooling, include_special),
                partial(caching.sentence_baseline, model, pooling, include_special),
                snippets.of_sentences(Input(model, texts, controls.length_for(model)), pooling, include_special),
            )
            for model, trace in zip(models, traces, strict=True)
        ],
        key=key,
        title=f"Sentence vectors ({POOLING_NAMES[pooling]})",
        names=short_names(texts) if few else texts,
        descriptions=[f"{number}: {text[:40]}" for number, text in enumerate(texts, start=1)],
        pairs=None,
        scale=scale,
        unrelated="two unrelated sentences",
        place=place,
    )


def short_names(texts: Sequence[str]) -> list[str]:
    """A short name for each of a few sentences, all different: their first words that are not the same in all."""
    split = [text.split() for text in texts]
    shortest = min(map(len, split))
    shared = next((index for index in range(shortest) if len({words[index].lower() for words in split}) > 1), shortest)
    shared = 0 if shared == shortest else shared  # a sentence that begins like the others, and then ends
    limit = 22 if len(texts) <= 4 else 14
    names = ["… " * bool(shared) + _begin(" ".join(words[shared:]), limit) for words in split]
    return [f"{row} {name}" if names.count(name) > 1 else name for row, name in enumerate(names, start=1)]


def _begin(text: str, limit: int) -> str:
    """The first words of a text that fit, or the first characters of a long word."""
    if len(text) <= limit:
        return text
    whole, _, _ = text[: limit + 1].rpartition(" ")
    return (whole or text[:limit]) + " …"


def _compare(
    models: Sequence[Compared],
    *,
    key: str,
    title: str,
    names: Sequence[str],
    descriptions: Sequence[str],
    pairs: Sequence[tuple[int, int]] | None,
    scale: controls.CosineScale,
    unrelated: str,
    place: Any,
    note: str = "",
) -> None:
    """Draw the similarities over the layers into the container `place`, and how to read them at the current position.

    `unrelated` is the name of the baseline's pairs; `note` stands before what the curves show.
    """
    if pairs is None and len(names) > MANY_THINGS:
        _matrices(models, key, title, names, scale, place)
        return
    centred, needs_baseline = scale.centred, scale.centred or scale.percentiles
    with place:
        columns = st.columns(len(models))
    first_slots = [column.empty() for column in columns]  # for the figures without a baseline
    slots = [column.container() for column in columns]
    if needs_baseline:
        with place:
            _wait_for_baselines(models)
    panels = []
    for number, item in enumerate(models):
        curves = cosines.pair_curves(item.vectors, names, pairs, item.baseline().centre if centred else None)
        if scale.percentiles:
            curves = replace(curves, values=_percentiles(item, curves.values, scale))
        details = [f"{descriptions[a]} and {descriptions[b]}" for a, b in curves.pairs]
        labels = curves.labels if pairs is None else [names[b] for _, b in curves.pairs]  # the title names the first
        code = partial(_code_of_curves, item.code, names, None if pairs is None else curves.pairs, scale=scale)
        full_title = _full_title(title, item, models)
        panels.append(_Panel(f"{key}_{number}", full_title, curves, labels, details, scale, code, note))
    values = [panel.curves.values for panel in panels]
    many = len(panels[0].curves.pairs) > MANY_CURVES
    if scale.percentiles:
        _draw_panels(panels, slots, [None] * len(models), (-3.0, 103.0))
        missing = messages.no_baseline(*(item.baseline() for item in models))
        rows = "Each row is a pair and each column a layer. " if many else "Each line is a pair. "
        figures.reading(
            f"{rows}The value is the share of {unrelated.removeprefix('two ')} that are less similar at the same layer: "
            f"at 50 % a pair is as similar as any two, at 99 % only one unrelated pair in a hundred is more similar. {missing}",
            NOT_SHOWN_BY_PERCENTILES,
        )
        return
    if many or not scale.baseline:
        _draw_panels(panels, slots, [None] * len(models), curve_charts.shared_range(*values))
        if many:
            read = "Each row is a pair and each column a layer. Bright cells mean similar vectors."
            figures.reading(read, f"{WHY_SIMILAR}{HIGH_COSINES}.")
        else:
            figures.reading(READ, f"{WHY_SIMILAR}{HIGH_COSINES}: switch the baseline on to compare with it.")
        return
    values.append(np.array([0.0, 1.0]))  # so that nothing moves when the baseline is added
    if not all(caching.baseline_ready(item.backend) for item in models):
        limits = curve_charts.shared_range(*values)
        for slot, panel in zip(first_slots, panels, strict=True):
            with slot.container():
                panel.draw_first(limits)
        with place:
            _wait_for_baselines(models)
        for slot in first_slots:
            slot.empty()
    bands = [
        curve_charts.BandData(band.mean, band.low, band.high, unrelated) if item.baseline().is_measured else None
        for item, band in zip(models, _bands(models, centred), strict=True)
    ]
    edges = [edge for band in bands if band is not None for edge in (band.low, band.high)]
    _draw_panels(panels, slots, bands, curve_charts.shared_range(*values, *edges))
    band = f"The grey band holds 90 % of the pairs of {unrelated.removeprefix('two ')}; the dotted line is their mean."
    missing = messages.no_baseline(*(item.baseline() for item in models))
    figures.reading(f"{READ} {band if edges else missing}", NOT_SHOWN)


def _code_of_curves(
    vectors: snippets.Vectors,
    names: Sequence[str],
    pairs: Sequence[tuple[int, int]] | None,
    band: bool,
    scale: controls.CosineScale,
) -> Snippet:
    return snippets.curves(vectors, names, pairs, centred=scale.centred, percentiles=scale.percentiles, band=band)


def _quantity(scale: controls.CosineScale) -> str:
    cosine = "centred cosine" if scale.centred else "cosine similarity"
    return "% of unrelated pairs that are less similar" if scale.percentiles else cosine


def _percentiles(item: Compared, values: Float64, scale: controls.CosineScale) -> Float64:
    """The per cent of unrelated pairs that are less similar; cosines [pair, layer] to [pair, layer], NaN if not known."""
    baseline = item.baseline()
    by_layer = [baseline.calibration(layer, scale.centred).shares(column) for layer, column in enumerate(values.T)]
    return 100 * np.array(by_layer).T.reshape(values.shape)


def _draw_panels(
    panels: Sequence[_Panel], slots: Sequence[Any], bands: Sequence[BandData | None], limits: tuple[float, float]
) -> None:
    for panel, slot, band in zip(panels, slots, bands, strict=True):
        with slot:
            panel.draw(band, limits)


def _full_title(title: str, item: Compared, models: Sequence[Compared]) -> str:
    return f"{title} · {item.backend.spec.title}" if len(models) > 1 else title


def _bands(models: Sequence[Compared], centred: bool) -> list[Band]:
    """Each model's baseline, of centred or of raw vectors."""
    return [item.baseline().centred if centred else item.baseline().raw for item in models]


def _wait_for_baselines(models: Sequence[Compared]) -> None:
    """Wait while they are measured in the background; a click elsewhere ends the wait, not the measurement."""
    note = st.empty()
    while not all(caching.baseline_ready(item.backend) for item in models):
        if not caching.baseline_under_way([item.backend for item in models]):
            break  # no thread measures them (the model was loaded earlier), so this thread will
        note.caption("Measuring how similar unrelated tokens are …")
        time.sleep(0.1)
    note.empty()


def summary(curves: LayerCurves, band: BandData | None = None, scale: controls.CosineScale = AS_COSINES) -> str:
    """The figure's message from its numbers; of a single pair, whether the baseline `band` reaches its highest value."""
    last = curves.values[:, -1] if len(curves.pairs) else np.empty(0)
    if not len(last) or np.isnan(last).all():
        return "There is no value to show."

    def shown(value: float) -> str:
        return calibration.rounded(value / 100) if scale.percentiles else theme.number(value)

    most, least = int(np.nanargmax(last)), int(np.nanargmin(last))
    if len(last) == 1 and not scale.percentiles and np.nanmax(curves.values) - np.nanmin(curves.values) < courses.FAINT:
        lowest, highest = shown(float(np.nanmin(curves.values))), shown(float(np.nanmax(curves.values)))
        return f"How similar the two are hardly changes: {lowest} to {highest} over all layers."
    if scale.percentiles and last[least] > ALMOST_ALL:
        every = "every pair is" if len(last) > 1 else "the two are"
        return f"After the last block {every} more similar than almost all unrelated pairs."
    if len(last) > 1 and last[most] - last[least] < 0.0005:
        return f"After the last block all pairs are equally similar ({shown(last[most])})."
    if most == least:
        low, high = int(curves.lowest[most]), int(curves.highest[most])
        text = (
            f"The two are most similar at layer {high} ({shown(curves.values[most, high])}) and least similar at layer "
            f"{low} ({shown(curves.values[most, low])})."
        )
        if band is not None and curves.values[most, high] <= band.high[high]:
            text += f" That is no more than {band.name} can be."
        return text
    return (
        f"Most similar after the last block: {curves.labels[most]} ({shown(last[most])}); least similar: "
        f"{curves.labels[least]} ({shown(last[least])})."
    )


def course_in_words(curves: LayerCurves) -> str:
    """What curves of cosines do from the first layer to the last; empty without a curve."""
    found = courses.courses_of(curves)
    if found is None:
        return ""
    number, one = theme.number, len(found.courses) == 1
    course = found.courses[found.largest]
    if found.are_alike:
        if one:
            return f"The two hardly differ at any layer: {number(course.last)} after the last block."
        return f"No pair differs much at any layer: the lowest cosine is {number(found.lowest)}."
    if course.kind == "unchanged":
        whose = "the two are" if one else "the pairs are"
        ends = f": {number(course.first)} at layer 0, {number(course.last)} after the last block" if one else ""
        return f"How similar {whose} hardly changes from layer to layer{ends}."
    way = _way_in_words(course)
    if one:
        return f"The two {way}."
    return f"{_counts_in_words(found)}. The largest change is that of {found.labels[found.largest]}: they {way}."


def _way_in_words(course: courses.Course) -> str:
    first, last = theme.number(course.first), theme.number(course.last)
    if course.turn is None:
        verb = "move apart" if course.kind == "apart" else "come together"
        place = f", most between layers {course.step[0]} and {course.step[1]}" if course.turn_layer > 1 else ""
        return f"{verb}, from {first} at layer 0 to {last} after the last block{place}"
    there, back = ("move apart", "come closer") if course.turn < course.first else ("come together", "move apart")
    return (
        f"{there}, from {first} at layer 0 to {theme.number(course.turn)} at layer {course.turn_layer}, and then {back} again: "
        f"{last} after the last block"
    )


def _counts_in_words(found: courses.Courses) -> str:
    """How many pairs end lower, higher, or about where they began."""
    total = len(found.courses)
    parts: list[str] = []
    steady = found.count("unchanged") + found.count("back")
    counts = ((found.count("apart"), "apart"), (found.count("together"), "together"), (steady, ""))
    for count, where in counts:
        if not count:
            continue
        verbs = ("ends", "end") if not where else ("moves", "move") if where == "apart" else ("comes", "come")
        who = f"All {total} pairs" if count == total else f"{count} of {total} pairs" if not parts else f"{count}"
        parts.append(f"{who} {verbs[count > 1]} {where or 'about as similar as at layer 0'}")
    return ", ".join(parts)


def curve_table(curves: LayerCurves, details: Sequence[str], band: BandData | None) -> pd.DataFrame:
    """Curves as rows: the value at every layer, the lowest and the highest layer; the baseline comes last."""

    def by_layer(values: np.ndarray) -> dict[str, Any]:
        return {f"layer {layer}": round(float(value), 4) for layer, value in enumerate(values)}

    rows: list[dict[str, Any]] = [
        {"pair": curves.labels[index]}
        | by_layer(curves.values[index])
        | {"lowest": int(curves.lowest[index]), "highest": int(curves.highest[index]), "what": detail}
        for index, detail in enumerate(details)
    ]
    if band is not None:
        for label, values in (("mean", band.mean), ("5 %", band.low), ("95 %", band.high)):
            rows.append({"pair": f"{band.name}, {label}"} | by_layer(values))
    return pd.DataFrame(rows)


def _matrices(
    models: Sequence[Compared], key: str, title: str, names: Sequence[str], scale: controls.CosineScale, place: Any
) -> None:
    """All with all at one layer, on one colour scale for every layer and model."""
    centred = scale.centred
    vectors = [cosines.centred(item.vectors, item.baseline().centre) if centred else item.vectors for item in models]
    matrices = [cosines.cosine_matrix(item) for item in vectors]  # each [layer, n, n]
    if scale.percentiles:
        matrices = [
            _percentiles(item, matrix.reshape(len(matrix), -1).T, scale).T.reshape(matrix.shape)
            for item, matrix in zip(models, matrices, strict=True)
        ]
    limits = (0.0, 100.0) if scale.percentiles else heatmap.off_diagonal_limits(*matrices)
    with place:
        layer = controls.layer(min(matrix.shape[0] for matrix in matrices) - 1)
        columns = st.columns(len(models))
    for number, (column, item, matrix) in enumerate(zip(columns, models, matrices, strict=True)):
        full_title = _full_title(f"{title}, layer {layer}", item, models)
        with column:
            figures.figure(
                heatmap.similarity_heatmap(
                    matrix[layer],
                    names,
                    full_title,
                    limits=limits,
                    show_values=len(names) <= 12 and len(models) == 1,
                    value="percentile" if scale.percentiles else "cosine",
                ),
                key=f"{key}_matrix_{number}",
                alt=f"{full_title}: a heatmap of {len(names)} by {len(names)} pairs",
                table=partial(_pair_table, matrix, names),
                code=snippets.matrix(item.code, layer, centred=centred, percentiles=scale.percentiles),
            )
    baselines = [
        theme.number(band.mean[layer], 2)
        + (f" in {messages.escape(item.backend.spec.title)}" if len(models) > 1 else "")
        for item, band in zip(models, _bands(models, centred), strict=True)
        if item.baseline().is_measured
    ]
    unrelated = f": an unrelated pair has {' and '.join(baselines)} at this layer on average." if baselines else "."
    figures.reading(
        f"More than {MANY_THINGS} have too many pairs for curves. Each cell is a pair at this layer. Move the layer and "
        "watch groups form.",
        f"{WHY_SIMILAR}{HIGH_COSINES}{unrelated}",
    )


def _pair_table(matrix: np.ndarray, names: Sequence[str]) -> pd.DataFrame:
    first, second = np.triu_indices(len(names), 1)
    columns: dict[str, Any] = {
        "first": [names[a] for a in first.tolist()],
        "second": [names[b] for b in second.tolist()],
    }
    columns |= {f"layer {layer}": matrix[layer, first, second].round(4) for layer in range(matrix.shape[0])}
    return pd.DataFrame(columns)
