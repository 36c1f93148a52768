"""Similarity over the layers, drawn as curves, strips or matrices, with one column per model.

Measuring the baseline of unrelated tokens takes a second
the first time that a model needs it: the curves are first drawn without the baseline, and then again with it in the same
position.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.first_look.telling import names_of, telling_words
from components.analysis.matched_words import word_vectors
from components.analysis.pooling import pool
from components.analysis.similarity import calibration, cosines, courses
from components.charts import curves as curve_charts
from components.charts import heatmap, theme
from components.model.trace import POOLING_NAMES
from components.numbers import enumerated
from components.shown_code import vectors as shown_vectors
from components.shown_code.arrays import Input
from dashboard import caching
from dashboard.ui import controls, figures, messages
from dashboard.ui.wording import shortened
from dashboard.views.layers import findings, word_choice
from dashboard.views.layers.word_choice import MANY_THINGS

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from components.analysis.similarity.baseline import Band, Baseline
    from components.analysis.similarity.cosines import LayerCurves
    from components.arrays import Float32, Float64
    from components.charts.curves import BandData
    from components.model.backend import Backend
    from components.model.trace import Pooling, TokenizedSentence, Trace
    from components.shown_code.code import AnyCode

ALMOST_ALL = 99.9  # per cent of unrelated pairs: the sample cannot tell higher ones apart
AS_COSINES = controls.CosineScale()
MOST_OF_WORD = 12  # characters of a word in the name of a pair
FEW_CURVES = 6  # so many have labels at their ends; of more the lowest and the highest
LOWEST = -0.1  # of the scale of cosines, unless a curve goes below
HIGH_FROM = 0.3  # where no cosine is lower, the colours begin at the lowest: all would be deep blue
SPOKEN: Mapping[Pooling, str] = {
    "mean": "the mean",
    "cls": "[CLS]",
    "max": "the maximum",
    "own": "the model's own vector",
    "last": "the last token",
}

READ = (
    "Each line is a pair, with its value at the last layer at its end. A high value means that the two vectors point in "
    "similar directions."
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
UNRELATED_SENTENCES = "unrelated sentences"
WHY_SIMILAR = "Why two vectors are similar, or what the model “understands”. "


@dataclass(frozen=True, eq=False)
class LayerVectors:
    """One model's vectors [layer, thing, dim], a function that returns its baseline, and the code of both."""

    backend: Backend
    vectors: Float32
    baseline: Callable[[], Baseline]
    code: shown_vectors.Vectors


@dataclass(frozen=True, eq=False)
class _Panel:
    """One model's figure of curves."""

    key: str
    title: str
    curves: LayerCurves
    labels: Sequence[str]  # of the pairs in the figure, without what all share
    ends: Sequence[str]  # shorter ones, at the curves' ends
    details: Sequence[str]  # a description of each pair
    scale: controls.CosineScale
    code: Callable[[bool], AnyCode]  # with the band of the baseline, or without it
    say: Callable[[LayerCurves, BandData | None], str]
    layer: int | None = None  # to mark

    def chart(self, band: BandData | None, limits: tuple[float, float]) -> go.Figure:
        values = self.curves.values
        ends = [
            curve_charts.EndLabel(name, _written(float(row[-1]), self.scale)) if is_named else None
            for name, row, is_named in zip(self.ends, values, _are_named(values), strict=True)
        ]
        return curve_charts.layer_curves(
            values,
            self.labels,
            self.title,
            details=self.details,
            band=band,
            y_title=_quantity(self.scale),
            y_range=limits,
            ends=ends,
            layer=self.layer,
            # Beside the words it is as high as they are, unless it has to fit a projector.
            height=440 if self.layer is None or controls.scale() > 1 else 520,
        )

    def draw_first(self, limits: tuple[float, float]) -> None:
        """The chart alone, without a baseline: it is replaced in a moment."""
        alt = f"{self.title}. {self.say(self.curves, None)}"
        st.plotly_chart(figures.sized(self.chart(None, limits)), key=f"{self.key}_first", alt=alt)

    def draw(
        self, band: BandData | None, limits: tuple[float, float], read: tuple[str, str], above: Any = None
    ) -> None:
        """Draw the figure with its finding, and `read`; in the place `above` where they stand above a wider row of figures."""
        message = self.say(self.curves, band)
        figures.figure(
            self.chart(band, limits),
            key=self.key,
            alt=f"{self.title}. {message}",
            message=messages.escape(message),
            read=read[0],
            not_shown=read[1],
            most_above=figures.MOST_ABOVE if above is None else 2 * len(message),
            line_in=above,
            is_shared=above is not None,
            table=lambda: curve_table(self.curves, self.details, band),
            code=self.code(band is not None),
        )


def _are_named(values: Float64) -> list[bool]:
    """Which curves [curve, layer] have a name and a colour of their own: few all, of many the lowest and the highest."""
    is_known = ~np.isnan(values).any(axis=1)
    if len(values) <= FEW_CURVES or not is_known.any():
        return [True] * len(values) if len(values) <= FEW_CURVES else [False] * len(values)
    return [row in findings.extremes(values) for row in range(len(values))]


def _written(value: float, scale: controls.CosineScale) -> str:
    return "" if np.isnan(value) else calibration.rounded(value / 100) if scale.percentiles else theme.number(value)


@dataclass(frozen=True)
class Words:
    """The chosen words in the models that are compared; `sentences` are the first model's tokens."""

    models: Sequence[Backend]
    traces: Sequence[Trace]
    choice: word_choice.WordChoice
    sentences: Sequence[TokenizedSentence]

    def compared(self) -> list[LayerVectors]:
        return [
            LayerVectors(
                model,
                word_vectors(trace, words),
                partial(caching.token_baseline, model),
                shown_vectors.of_words(
                    Input(model, [sentence.text for sentence in self.sentences], controls.length_for(model)), words
                ),
            )
            for model, trace in zip(self.models, self.traces, strict=True)
            for words in [word_choice.positions_in(self.choice, self.sentences, trace)]
        ]

    def say(self, curves: LayerCurves, band: BandData | None, scale: controls.CosineScale) -> str:
        """The finding: what the curves of the chosen words show."""
        choice, sentences = self.choice, self.sentences
        if scale.percentiles or choice.mode == "within" or choice.warning(sentences):
            pair = " and ".join(choice.quoted_names(sentences)) if choice.mode == "within" else "the two"
            return f"{choice.warning(sentences)} {summary(curves, band, scale, pair)}".strip()
        if choice.mode == "beside":
            names = choice.names(sentences)
            return findings.of_one_occurrence(
                f"“{names[0]}”",
                choice.kind,
                [names[b] for _, b in curves.pairs],
                curves,
                band,
                # They are the nearest by the plain cosines of the first model.
                are_nearest=len(self.models) == 1 and not scale.centred,
            )
        names = choice.short_names(sentences)
        word = choice.one_word(sentences)
        alone = findings.of_one_that_moves_away(word, names, curves, band) if word else ""
        return alone or findings.of_occurrences(
            choice.subject(sentences), pair_names(names, curves.pairs), curves, band
        )


def pair_names(names: Sequence[str], pairs: Sequence[tuple[int, int]], joint: str = " and ") -> list[str]:
    return [f"{names[a]}{joint}{names[b]}" for a, b in pairs]


def compare_words(
    words: Words, *, key: str, scale: controls.CosineScale, place: Any, layer: int | None = None, beside: Any = None
) -> None:
    """Draw the similarities of the chosen words. See `_compare`."""
    choice, sentences = words.choice, words.sentences
    _compare(
        words.compared(),
        key=key,
        title=choice.title(sentences),
        names=choice.names(sentences),
        short_names=choice.short_names(sentences),
        descriptions=choice.descriptions(sentences),
        pairs=choice.pairs,
        scale=scale,
        unrelated="unrelated tokens",
        place=place,
        say=partial(words.say, scale=scale),
        layer=layer,
        beside=beside,
    )


def compare_with_all(words: Words, *, key: str, scale: controls.CosineScale, place: Any, called: str = "") -> None:
    """Draw a token and all others of its sentence as rows of cells, the most similar after the last block first.

    `called` is the token in the finding, where its word alone does not say which of several it is.
    """
    choice, sentences = words.choice, words.sentences
    names, descriptions = choice.names(sentences), choice.descriptions(sentences)
    quoted = choice.quoted_names(sentences)
    compared = words.compared()
    with place:
        needs_baseline = scale.centred or scale.percentiles
        if needs_baseline or scale.baseline:
            _wait_for_baselines(compared)
        columns = st.columns(len(compared))
    for number, (column, item) in enumerate(zip(columns, compared, strict=True)):
        curves = cosines.pair_curves(
            item.vectors, names, choice.pairs, item.baseline().centre if scale.centred else None
        )
        if scale.percentiles:
            curves = replace(curves, values=_percentiles(item, curves.values, scale))
        last = np.nan_to_num(curves.values[:, -1], nan=-np.inf)
        order = np.argsort(-last, kind="stable").tolist()
        curves = cosines.LayerCurves(
            tuple(curves.labels[row] for row in order), tuple(curves.pairs[row] for row in order), curves.values[order]
        )
        is_measured = (needs_baseline or scale.baseline) and item.baseline().is_measured
        bands = _bands([item], scale.centred)[0] if is_measured and not scale.percentiles else None
        band = None if bands is None else curve_charts.BandData(bands.mean, bands.low, bands.high, "unrelated tokens")
        with column:
            _strip(
                curves,
                names,
                quoted,
                [f"{descriptions[a]} and {descriptions[b]}" for a, b in curves.pairs],
                band,
                _full_title(choice.title_with_sentence(sentences), item, compared),
                key=f"{key}_{number}",
                scale=scale,
                code=item.code.curves(
                    curves.pairs, band is not None, centred=scale.centred, percentiles=scale.percentiles
                ),
                called=called,
            )


def _strip(
    curves: LayerCurves,
    names: Sequence[str],
    quoted: Sequence[str],
    details: Sequence[str],
    band: BandData | None,
    title: str,
    *,
    key: str,
    scale: controls.CosineScale,
    code: AnyCode,
    called: str = "",
) -> None:
    others, values = [names[b] for _, b in curves.pairs], curves.values
    reach = np.inf if band is None else band.high[-1]
    if scale.percentiles:
        message = (
            f"{quoted[0]} and the others of its sentence. {summary(replace(curves, labels=tuple(others)), band, scale)}"
        )
        reach = 95.0
    else:
        message = findings.of_all_tokens(called or quoted[0], [quoted[b] for _, b in curves.pairs], values)
    if np.isnan(values).all():
        st.info(message)
        return
    lowest = float(np.nanmin(values))
    highest = math.ceil(10 * float(np.nanmax(values))) / 10
    limits = (0.0, 100.0) if scale.percentiles else (lowest if lowest > HIGH_FROM else 0.0, max(0.1, highest))
    are_strong = values[:, -1] > reach
    ends = ["" if np.isnan(row[-1]) else _cell(float(row[-1]), scale) for row in values]
    reached = "" if band is None else f" ({theme.number(reach, 2)})"
    level = (
        f" In bold: those that are more similar there than 95 % of unrelated tokens{reached}."
        if np.isfinite(reach)
        else ""
    )
    figures.figure(
        heatmap.layer_strip(
            values,
            others,
            title,
            ends=ends,
            strong=are_strong.tolist(),
            dark=controls.is_dark(),
            layer=values.shape[1] - 1,
            limits=limits,
            value="percentile" if scale.percentiles else "cosine",
            low_rows=controls.scale() > 1,
            bold=f"bold: {are_strong.sum()} of {len(values)}, above 95\u00a0% of unrelated tokens"
            if are_strong.any()
            else "",
        ),
        key=key,
        alt=f"{title}. {message}",
        message=messages.escape(message),
        read=f"Each row is a token of the sentence and each column a layer; the deeper the blue, the more similar it is "
        f"to {messages.escape(quoted[0])}. The rows are sorted by the last layer, whose values stand at the right.{level}",
        not_shown=NOT_SHOWN_BY_PERCENTILES
        if scale.percentiles
        else f"{WHY_SIMILAR}{HIGH_COSINES}. Tokens take over the "
        "meaning of their sentence: function words and special tokens can come near to any word of it.",
        table=lambda: curve_table(curves, details, band),
        code=code,
    )


def _cell(value: float, scale: controls.CosineScale) -> str:
    return calibration.rounded(value / 100) if scale.percentiles else theme.number(value, 2)


def compare_sentences(
    models: Sequence[Backend],
    traces: Sequence[Trace],
    pooling: Pooling,
    include_special: bool,
    *,
    key: str,
    scale: controls.CosineScale,
    place: Any,
    others: Sequence[Pooling] = (),
) -> None:
    """Draw the similarities of sentence vectors, and small the same of `others`, further poolings. See `_compare`."""
    texts = [sentence.text for sentence in traces[0].sentences]
    few = len(texts) <= MANY_THINGS
    numbered = [str(number) for number in range(1, len(texts) + 1)]
    words = telling_words(traces[0]) if few else ("",) * len(texts)
    called, of_words = names_of(words), all(words)

    def say(curves: LayerCurves, band: BandData | None) -> str:
        if scale.percentiles:
            return summary(curves, band, scale)
        return findings.of_sentences(pair_names(called, curves.pairs), curves, band, SPOKEN[pooling], of_words)

    def small(large: LayerCurves, columns: Sequence[Any]) -> None:
        styles = curve_charts.styles_of(_are_named(large.values))
        needs_baseline = scale.baseline or scale.centred
        for other, column in zip(others, columns, strict=True):
            baseline = caching.sentence_baseline(models[0], other, include_special) if needs_baseline else None
            centre = baseline.centre if baseline is not None and scale.centred else None
            curves = cosines.pair_curves(pool(traces[0], other, include_special), numbered, None, centre)
            band, edges = None, []
            if baseline is not None and baseline.is_measured and scale.baseline:
                levels = baseline.centred if scale.centred else baseline.raw
                band = curve_charts.BandData(levels.mean, levels.low, levels.high, UNRELATED_SENTENCES)
                edges = [band.low, band.high]
            # A scale of its own: on that of the large figure they may all lie in its highest quarter.
            limits = curve_charts.shared_range(curves.values, *edges)
            title = POOLING_NAMES[other]
            message = findings.of_sentences(pair_names(called, curves.pairs), curves, None, SPOKEN[other], of_words)
            with column:
                st.plotly_chart(
                    figures.sized(
                        curve_charts.small_curves(
                            curves.values, pair_names(texts, curves.pairs), title, limits, styles, band
                        )
                    ),
                    key=f"{key}_{other}",
                    alt=f"{title}. {message}",
                )

    _compare(
        [
            LayerVectors(
                model,
                pool(trace, pooling, include_special),
                partial(caching.sentence_baseline, model, pooling, include_special),
                shown_vectors.of_sentences(Input(model, texts, controls.length_for(model)), pooling, include_special),
            )
            for model, trace in zip(models, traces, strict=True)
        ],
        key=key,
        title=f"Sentence vectors ({POOLING_NAMES[pooling]})",
        names=short_names(texts) if few else texts,
        short_names=[shortened(word, MOST_OF_WORD) for word in words] if of_words else numbered,
        descriptions=[f"{number}: {text[:40]}" for number, text in enumerate(texts, start=1)],
        pairs=None,
        scale=scale,
        unrelated=UNRELATED_SENTENCES,
        place=place,
        say=say,
        small=(len(others), small) if others and few and not scale.percentiles and len(models) == 1 else None,
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
    models: Sequence[LayerVectors],
    *,
    key: str,
    title: str,
    names: Sequence[str],
    short_names: Sequence[str],
    descriptions: Sequence[str],
    pairs: Sequence[tuple[int, int]] | None,
    scale: controls.CosineScale,
    unrelated: str,
    place: Any,
    say: Callable[[LayerCurves, BandData | None], str],
    layer: int | None = None,
    beside: Callable[[], None] | None = None,
    small: tuple[int, Callable[[LayerCurves, Sequence[Any]], None]] | None = None,
) -> None:
    """Draw the similarities over the layers into the container `place`, and how to read them.

    `unrelated` is the name of the baseline's pairs, `say` the finding. Of one model, `beside` draws what stands at the right
    of the figure, and `small` so many small figures there, given the figure's curves and the places; the finding is then above
    all.
    """
    if pairs is None and len(names) > MANY_THINGS:
        _matrices(models, key, title, names, scale, place)
        if beside is not None:
            with place:
                beside()
        return
    centred, needs_baseline = scale.centred, scale.centred or scale.percentiles
    is_wide = len(models) == 1 and (beside is not None or small is not None)
    right: Sequence[Any] = ()
    with place:
        above = st.empty()
        if is_wide:
            first, *right = st.columns([2, *[1] * small[0]] if small else 2, gap="medium")
            columns = [first]
        else:
            columns = st.columns(len(models))
    is_late = scale.baseline and not needs_baseline and not all(caching.baseline_ready(item.backend) for item in models)
    first_slots = [column.empty() for column in columns] if is_late else []  # for the figures without a baseline
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
        ends = (
            pair_names(short_names, curves.pairs, " – ") if pairs is None else [short_names[b] for _, b in curves.pairs]
        )
        code = partial(item.code.curves, pairs, centred=scale.centred, percentiles=scale.percentiles)
        full_title = _full_title(title, item, models)
        panels.append(_Panel(f"{key}_{number}", full_title, curves, labels, ends, details, scale, code, say, layer))

    def draw_right() -> None:
        """Draw what stands at the right of a figure, or below the figures of two models."""
        if small is not None and right:
            small[1](panels[0].curves, right)
        if beside is not None:
            with right[0] if right else place:
                beside()

    values = [panel.curves.values for panel in panels]
    drawing = _Drawing(panels, slots, above, is_wide)
    if scale.percentiles:
        missing = messages.no_baseline(*(item.baseline() for item in models))
        drawing.draw(
            [None] * len(models),
            (-3.0, 103.0),
            f"Each line is a pair. The value is the share of pairs of {unrelated} that are less similar at the same layer: "
            f"at 50 % a pair is as similar as any two, at 99 % only one unrelated pair in a hundred is more similar. {missing}",
            NOT_SHOWN_BY_PERCENTILES,
        )
        draw_right()
        return
    values.append(
        np.array([LOWEST, 1.0])
    )  # the same scale for all sentences, and nothing moves when the baseline is added
    limits = curve_charts.shared_range(*values)
    if not scale.baseline:
        drawing.draw(
            [None] * len(models),
            limits,
            READ,
            f"{WHY_SIMILAR}{HIGH_COSINES}: switch the baseline on to compare with it.",
        )
        draw_right()
        return
    if is_late:
        if is_wide:
            above.markdown(f":material/insights: {messages.escape(panels[0].say(panels[0].curves, None))}")
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
    limits = curve_charts.shared_range(*values, *edges)
    band = f"The grey band holds 90 % of the pairs of {unrelated}; the dotted line is their mean."
    missing = messages.no_baseline(*(item.baseline() for item in models))
    drawing.draw(bands, limits, f"{READ} {band if edges else missing}", NOT_SHOWN)
    draw_right()


@dataclass(frozen=True)
class _Drawing:
    """The panels with their places; the finding is above all where something else stands beside the one panel."""

    panels: Sequence[_Panel]
    slots: Sequence[Any]
    above: Any
    is_wide: bool

    def draw(self, bands: Sequence[BandData | None], limits: tuple[float, float], read: str, not_shown: str) -> None:
        for panel, slot, band in zip(self.panels, self.slots, bands, strict=True):
            with slot:
                panel.draw(band, limits, (read, not_shown), self.above.container() if self.is_wide else None)


def _quantity(scale: controls.CosineScale) -> str:
    cosine = "centred cosine" if scale.centred else "cosine similarity"
    return "% of unrelated pairs that are less similar" if scale.percentiles else cosine


def _percentiles(item: LayerVectors, values: Float64, scale: controls.CosineScale) -> Float64:
    """The per cent of unrelated pairs that are less similar; cosines [pair, layer] to [pair, layer], NaN if not known."""
    baseline = item.baseline()
    by_layer = [baseline.calibration(layer, scale.centred).shares(column) for layer, column in enumerate(values.T)]
    return 100 * np.array(by_layer).T.reshape(values.shape)


def _full_title(title: str, item: LayerVectors, models: Sequence[LayerVectors]) -> str:
    return f"{title} · {item.backend.spec.title}" if len(models) > 1 else title


def _bands(models: Sequence[LayerVectors], centred: bool) -> list[Band]:
    """Each model's baseline, of centred or of raw vectors."""
    return [item.baseline().centred if centred else item.baseline().raw for item in models]


def _wait_for_baselines(models: Sequence[LayerVectors]) -> None:
    """Wait while they are measured in the background; a click elsewhere ends the wait, not the measurement."""
    note = st.empty()
    while not all(caching.baseline_ready(item.backend) for item in models):
        if not caching.baseline_under_way([item.backend for item in models]):
            break  # no thread measures them (the model was loaded earlier), so this thread will
        note.caption("Measuring how similar unrelated tokens are …")
        time.sleep(0.1)
    note.empty()


def summary(
    curves: LayerCurves, band: BandData | None = None, scale: controls.CosineScale = AS_COSINES, pair: str = "the two"
) -> str:
    """The figure's message from its numbers; of a single `pair`, whether the baseline `band` reaches its highest value."""
    last = curves.values[:, -1] if len(curves.pairs) else np.empty(0)
    if not len(last) or np.isnan(last).all():
        return "There is no value to show."

    def shown(value: float) -> str:
        return calibration.rounded(value / 100) if scale.percentiles else theme.number(value)

    most, least = int(np.nanargmax(last)), int(np.nanargmin(last))
    if len(last) == 1 and not scale.percentiles and np.nanmax(curves.values) - np.nanmin(curves.values) < courses.FAINT:
        lowest, highest = shown(float(np.nanmin(curves.values))), shown(float(np.nanmax(curves.values)))
        return f"How similar {pair} are hardly changes: {lowest} to {highest} over all layers."
    if scale.percentiles and last[least] > ALMOST_ALL:
        every = "every pair is" if len(last) > 1 else f"{pair} are"
        return f"After the last block {every} more similar than almost all unrelated pairs."
    if len(last) > 1 and last[most] - last[least] < 0.0005:
        return f"After the last block all pairs are equally similar ({shown(last[most])})."
    if most == least:
        low, high = int(curves.lowest[most]), int(curves.highest[most])
        subject = pair if pair.startswith("“") else pair.capitalize()
        text = (
            f"{subject} are most similar at layer {high} ({shown(curves.values[most, high])}), least at layer "
            f"{low} ({shown(curves.values[most, low])})"
        )
        return f"{text}." if band is None else f"{text}; {_beside_unrelated(curves.values[most], band)}."
    return (
        f"Most similar after the last block: {curves.labels[most]} ({shown(last[most])}); least similar: "
        f"{curves.labels[least]} ({shown(last[least])})."
    )


def _beside_unrelated(values: np.ndarray, band: BandData) -> str:
    """At which layers a curve [layer] is above 95 % of unrelated pairs, the upper end of the band."""
    above = np.flatnonzero(values > band.high)
    if not len(above):
        return f"at no layer above 95 % of {band.name}"
    if len(above) == np.isfinite(values).sum():
        return f"above 95 % of {band.name} at every layer"
    return f"above 95 % of {band.name} only at layer{'s' * (len(above) > 1)} {_layers_in_words(above.tolist())}"


def _layers_in_words(layers: Sequence[int]) -> str:
    """Layers that follow each other from the first to the last: "1 to 3 and 6"."""
    runs: list[list[int]] = []
    for layer in layers:
        if runs and layer == runs[-1][-1] + 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    named = [str(run[0]) if len(run) == 1 else f"{run[0]} {'and' if len(run) == 2 else 'to'} {run[-1]}" for run in runs]
    return enumerated(named)


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
    models: Sequence[LayerVectors], key: str, title: str, names: Sequence[str], scale: controls.CosineScale, place: Any
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
                    dark=controls.is_dark(),
                    limits=limits,
                    show_values=len(names) <= 12 and len(models) == 1,
                    value="percentile" if scale.percentiles else "cosine",
                ),
                key=f"{key}_matrix_{number}",
                alt=f"{full_title}: a heatmap of {len(names)} by {len(names)} pairs",
                table=partial(_pair_table, matrix, names),
                code=item.code.matrix(layer, centred=centred, percentiles=scale.percentiles),
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
