"""Heatmaps of pairs of layers and of pairs of sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis import matched_words
from components.analysis.first_look.telling import names_of, telling_words
from components.analysis.pooling import pool
from components.analysis.similarity import calibration, cka, cosines
from components.analysis.similarity.sentences import TIED, SentenceSimilarity, sentence_similarity
from components.charts import heatmap, matrices, theme
from components.numbers import apart
from components.shown_code import vectors as shown_vectors
from components.shown_code.cosines import layers_alike, models_alike
from dashboard import caching, pair_links
from dashboard.ui import browser, controls, figures, messages, wording

if TYPE_CHECKING:
    from components.analysis.similarity.baseline import Baseline
    from components.analysis.similarity.calibration import Calibration
    from components.model.backend import Backend

SIMILARITY_OF_LAYERS = "similarity of the two layers' geometry (linear CKA)"
PERCENTILES = "Each cell is the share of unrelated pairs of sentences that are less similar at this layer (0 to 100 %)."
ALIKE = 0.02  # of a cosine: less is no difference between pairs
FEW_BESIDE = 6  # pairs, those of four sentences, that stand beside their matrix
MANY_THINGS = 8  # sentences: more are called by their numbers
FEW_PAIRS = 15  # those of six sentences
SIDE = 340  # pixels of a square of layers
MOST_PERCENT = 99.99  # the highest percentile that a list shows


def layers(models: Sequence[Backend]) -> None:
    """Linear CKA of all pairs of layers, within a model and between two models."""
    traces = [controls.current_trace(model) for model in models]
    messages.truncations(models, traces)
    key = tuple((trace.model, trace.revision, trace.input_ids.tobytes()) for trace in traces)
    kept = traces[0].hidden_states[:, ~traces[0].special_mask]  # [layer, token, dim]
    panels = [(models[0].spec.title, models[0].spec.title, caching.layer_cka(key[:1], kept))]
    codes = [layers_alike(controls.current_input(models[0]), kept.shape)]
    if len(models) == 2:
        words = matched_words.matched_words(traces[0].sentences, traces[1].sentences)
        places = [(word.sentence, word.first) for word in words], [(word.sentence, word.second) for word in words]
        vectors = [matched_words.word_vectors(trace, each) for trace, each in zip(traces, places, strict=True)]
        codes.append(models_alike(controls.current_input(models[0]), controls.current_input(models[1]), places))
        panels.append((models[0].spec.title, models[1].spec.title, caching.layer_cka(key, vectors[0], vectors[1])))
    limits = _limits([compared for *_, compared in panels])
    if len(panels) > 1:
        figures.colour_bar(SIMILARITY_OF_LAYERS, limits, pale=True)
    above = st.container() if len(panels) == 1 else None
    columns = st.columns(len(panels)) if len(panels) > 1 else st.columns([2, 1], gap="medium")
    for number, (column, (first, second, compared)) in enumerate(zip(columns, panels, strict=False)):
        row_names, column_names = ([str(layer) for layer in range(count)] for count in compared.matrix.shape)
        chart = matrices.token_matrix(
            compared.matrix,
            row_names,
            column_names,
            f"Layers of {first}" + (f" and {second}" if first != second else ""),
            rows="layer" if first == second else f"layer of {first}",
            columns="layer" if first == second else f"layer of {second}",
            square=len(panels) > 1,
            plot_height=SIDE,
            value="similarity (CKA)",
            limits=limits,
            show_values=len(column_names) <= 13 and len(panels) == 1,
            colour_bar="above" if len(panels) == 1 else False,
            upright=False,
            pale=True,
            dark=controls.is_dark(),
        )
        if len(panels) == 1:
            chart.data[0].colorbar.len = 1  # as wide as the matrix, with room for half of the number at its right end
            chart.layout.margin.r = 24
        with column:
            figures.figure(
                chart,
                key=f"cka_{number}",
                code=codes[number],
                alt=f"CKA of the layers of {first} with those of {second}",
                message=_answer(compared) if first == second else "",
                line_in=above,
                is_shared=above is not None,
                table=partial(_cka_table, compared),
            )
    with columns[-1] if len(panels) == 1 else nullcontext():
        for _, _, compared in panels:
            _caution(compared)
    figures.reading(
        "Linear **CKA** (centred kernel alignment, [Kornblith et al. 2019](https://arxiv.org/abs/1905.00414)) measures "
        "whether two layers arrange the same tokens in the same way: 1 means the same arrangement apart from rotation and "
        "scale, 0 means that there is no linear relation. A corner with little blue means that the last layers arrange "
        "tokens differently from the first layers.",
        "A relation that is not linear: it can exist even where CKA is 0. Which layer is better for a task. With few tokens "
        "CKA is also high by chance alone: that is, with tokens paired at random.",
    )


def _limits(compared: Sequence[cka.LayerCKA]) -> tuple[float, float]:
    """The ends of one colour scale: it begins where unrelated layers are, or lower if a value is."""
    values = np.concatenate([np.append(item.matrix.ravel(), np.nanmax(item.chance)) for item in compared])
    return math.floor(20 * float(np.nanmin(values))) / 20, 1.0


def _answer(compared: cka.LayerCKA) -> str:
    """What the layers of one model say, from their numbers; empty where a value is not known."""
    steps, last = np.diagonal(compared.matrix, offset=1), len(compared.matrix) - 1  # each layer with the next
    if not len(steps) or np.isnan(compared.matrix).any():
        return ""
    block = int(np.argmin(steps))
    ends, least = apart(compared.matrix[0, last], steps[block])
    name = "The only block" if last == 1 else "The last block" if block == last - 1 else f"Block {block}"
    most = "" if last == 1 else " most"
    said = f"{name} changes the similarities of tokens{most}: CKA **{least}** from layer {block} to {block + 1}"
    if last > 1:
        said += f", {ends} from layer 0 to {last}"
    return f"{said}."


def _caution(compared: cka.LayerCKA) -> None:
    """In a line: how high layers would score by chance with so few tokens, and what can be done."""
    if compared.judgement == "enough":
        return
    st.markdown(
        f":orange[:material/straighten:] **With only {compared.tokens:,} tokens even unrelated layers reach about "
        f"{theme.number(np.nanmax(compared.chance), 2)}: only values above that count.** {_needed_tokens(compared)}"
    )


def _needed_tokens(compared: cka.LayerCKA) -> str:
    """What a person can do about too few tokens."""
    if compared.needed is None:
        return "Add sentences."
    needed = 100 * math.ceil(compared.needed / 100)  # an estimate
    if needed <= cka.MOST_TOKENS:
        return f"About {needed:,} tokens bring this below {cka.FEW:.1f}: add sentences."
    return (
        f"About {needed:,} tokens would bring this below {cka.FEW:.1f}, but at most {cka.MOST_TOKENS:,} are compared. Judge "
        "the values by their distance from this level, which “Share” has for each pair of layers."
    )


def _cka_table(compared: cka.LayerCKA) -> pd.DataFrame:
    first, second = np.indices(compared.matrix.shape)
    return pd.DataFrame(
        {
            "first layer": first.ravel(),
            "second layer": second.ravel(),
            "CKA": compared.matrix.ravel().round(4),
            "by chance": compared.chance.ravel().round(4),
        }
    )


def sentences(models: Sequence[Backend]) -> None:
    """Sentence similarities by pooling and layer, with two models side by side, and the list of pairs."""
    traces = [controls.current_trace(model) for model in models]
    texts = [sentence.text for sentence in traces[0].sentences]
    messages.truncations(models, traces)
    if messages.needs_second_sentence(texts):
        return
    messages.cross_encoder_note(models)
    with controls.row():
        pooling = controls.sentence_vector(models, names=wording.POOLING_NAMES)
        last = min(trace.n_layers for trace in traces)
        layer = controls.stepped("layer", "Layer", 0, last, last, caching.glossary()["layer"])
        with controls.options():
            special = controls.pooled_special_tokens(pooling)
            clustered = controls.switch(
                "clustered", "Clustered", "Put similar sentences next to each other (average linkage)."
            )
            as_percentiles = controls.percentiles()
    messages.head_note(models, pooling, layer)
    vectors = [pool(trace, pooling, special) for trace in traces]  # each [layer, sentence, dim]
    similarities = [sentence_similarity(item[layer]) for item in vectors]
    order = similarities[0].clustered_order() if clustered else tuple(range(len(texts)))
    baselines = [caching.sentence_baseline(model, pooling, special) for model in models]
    # Of all layers, as in the curves: a colour means the same at each of them.
    limits = (
        (0.0, 100.0)
        if as_percentiles
        else heatmap.off_diagonal_limits(*(cosines.cosine_matrix(item) for item in vectors))
    )
    calibrations = [item.calibration(layer) if as_percentiles else None for item in baselines]
    chosen = _chosen_pair(similarities[0])
    words = telling_words(traces[0]) if len(texts) <= MANY_THINGS else ("",) * len(texts)
    has_list = len(models) == 1 and len(similarities[0].pairs()) <= FEW_BESIDE  # beside the matrix
    read = (
        PERCENTILES if as_percentiles else "Each cell is the cosine of two sentence vectors."
    ) + " Groups of similar sentences are blue squares along the diagonal."
    not_shown = "Whether two sentences mean the same: shared words, length and pooling also have an effect."
    messages_of = [
        _finding(item, baseline, layer, as_percentiles, words)
        for item, baseline in zip(similarities, baselines, strict=True)
    ]
    above = st.container() if has_list else None
    places = st.columns([3, 2], gap="medium") if has_list else st.columns(len(models))
    for number, (column, model, item) in enumerate(zip(places, models, similarities, strict=False)):
        with column:
            figures.figure(
                heatmap.similarity_heatmap(
                    100 * baselines[number].calibration(layer).shares(item.ordered(order))
                    if as_percentiles
                    else item.ordered(order),
                    [texts[row] for row in order],
                    f"Sentences at layer {layer}" + (f" · {model.spec.title}" if len(models) > 1 else ""),
                    limits=limits,
                    show_values=len(texts) <= 12,
                    numbers=[row + 1 for row in order],
                    short=[words[row] for row in order],
                    value="percentile" if as_percentiles else "cosine",
                    clickable=True,
                    colour_bar=False,
                    dark=controls.is_dark(),
                    chosen=(order.index(chosen[0]), order.index(chosen[1])) if chosen else None,
                ),
                key=f"sentences_{number}",
                code=shown_vectors.of_sentences(controls.current_input(model), pooling, special).matrix(
                    layer, order, percentiles=as_percentiles
                ),
                message=messages_of[number],
                read=read,
                not_shown=not_shown,
                line_in=above,
                is_shared=above is not None,
                alt=f"Cosines of {len(texts)} sentences with each other at layer {layer}, {model.spec.title}",
                table=partial(_pair_table, item, texts, calibrations[number]),
                on_select=partial(_clicked, f"sentences_{number}", order),
                select_many=False,
            )
    with places[0] if has_list else st.container():
        is_marked = baselines[0].is_measured and not as_percentiles and len(models) == 1  # else each has its own
        high = float(baselines[0].raw.high[layer]) if is_marked else None
        figures.colour_bar(
            f"{'percentile' if as_percentiles else 'cosine'}, one scale for all layers", limits, pale=True, mark=high
        )
    if has_list:
        with places[1], st.container(key="pairs_beside"):
            _draw_pairs(0, _pair_table(similarities[0], texts, calibrations[0]))
    _why(similarities[0], texts, chosen)
    if not has_list:
        for number, (column, item) in enumerate(zip(st.columns(len(models)), similarities, strict=True)):
            with column:
                _draw_pairs(number, _pair_table(item, texts, calibrations[number]))
    baseline = baselines[0]
    st.caption(
        f"Two unrelated sentences have a cosine of {theme.number(baseline.raw.mean[layer], 2)} at this layer on average "
        f"({messages.escape(models[0].spec.title)})."
        if baseline.is_measured
        else messages.no_baseline(baseline)
    )


def _draw_pairs(number: int, pairs: pd.DataFrame) -> None:
    """The list of a model's pairs, under a title."""
    figures.note("**All pairs, most similar first**", key=f"pairs_{number}")
    _show_pairs(pairs, f"pairs_{number}")


_PAIR = "why_pair"  # session key of the pair in the box: "first-second", the smaller number first
_CHOSEN = "_chosen_pair"  # session key of the same, written only when a person chooses


def _finding(
    similarities: SentenceSimilarity, baseline: Baseline, layer: int, as_percentiles: bool, words: Sequence[str]
) -> str:
    """Which sentences are most and least similar at a layer, and how many pairs are below most unrelated ones.

    They are called by their telling `words` if each has one, else by their numbers.
    """
    names = [messages.escape(name) for name in names_of(words)]
    what = "the sentences with" if all(words) else "sentences"
    pairs = similarities.pairs()  # the most similar first
    unrelated = baseline.calibration(layer) if as_percentiles else None

    def written(value: float) -> str:
        return theme.number(value, 2) if unrelated is None else calibration.rounded(float(unrelated.shares([value])[0]))

    most, least = pairs[0], min(pairs, key=lambda pair: round(pair.similarity, TIED))
    if len(pairs) == 1:
        text = f"At layer {layer} the two sentences have {'a cosine' if unrelated is None else 'a percentile'} of "
        text += written(most.similarity)
    elif most.similarity - least.similarity < ALIKE:
        ends = f"{written(least.similarity)} to {written(most.similarity)}"
        text = f"At layer {layer} all pairs are about equally similar, {ends}"
    else:
        text = (
            f"At layer {layer} {what} {names[most.first]} and {names[most.second]} are most similar "
            f"({written(most.similarity)}), {names[least.first]} and {names[least.second]} least ({written(least.similarity)})"
        )
    if not baseline.is_measured or as_percentiles:
        return f"{text}."
    limit = float(baseline.raw.high[layer])
    below = sum(round(pair.similarity, 2) < round(limit, 2) for pair in pairs)  # as they are written
    who = "all" if below == len(pairs) else str(below)
    which = f"do{'es' * (below == 1)} {'this pair' if len(pairs) == 1 else f'{who} of these {len(pairs)}'}"
    return f"{text}; 95 % of unrelated pairs lie below {theme.number(limit, 2)}{f', as {which}' * bool(below)}."


def _pair_names(similarities: SentenceSimilarity) -> dict[str, str]:
    """All pairs of sentences, the most similar first, and how the list shows them."""
    return {
        f"{pair.first}-{pair.second}": f"{pair.first + 1} – {pair.second + 1}   cosine {theme.number(pair.similarity, 2)}"
        for pair in similarities.pairs()
    }


def _chosen_pair(similarities: SentenceSimilarity) -> tuple[int, int] | None:
    """The pair of sentences that a person chose, in the list or by a click on its cell."""
    chosen = st.session_state.get(_CHOSEN)
    if chosen not in _pair_names(similarities):
        return None
    first, second = map(int, chosen.split("-"))
    return first, second


def _clicked(key: str, order: Sequence[int]) -> None:
    """Choose the pair of the clicked cell; `order` is that of the matrix."""
    cell = browser.place_selected(key)
    if len(cell) == 2 and cell[0] != cell[1] and all(browser.is_index(item, len(order)) for item in cell):
        first, second = sorted(order[item] for item in cell)
        st.session_state[_PAIR] = f"{first}-{second}"
        _choose(st.session_state[_PAIR])


def _choose(pair: str) -> None:
    st.session_state[_CHOSEN] = pair


def _why(similarities: SentenceSimilarity, texts: Sequence[str], chosen_pair: tuple[int, int] | None) -> None:
    """A choice of one cell of the matrix, and the link to the page that splits its cosine."""
    pairs = _pair_names(similarities)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="why_pair_row"):
        chosen = controls.checked(
            st.selectbox,
            "Two sentences: click a cell above, or choose here",
            options=pairs,
            format_func=pairs.__getitem__,
            key=_PAIR,
            default="{}-{}".format(*chosen_pair) if chosen_pair else next(iter(pairs)),
            on_choice=_choose,
            width=420,
        )
        first, second = (texts[int(number)] for number in chosen.split("-"))
        pair_links.button("Why are these two similar?", first, second, "score-split", key="why_similar")


def _show_pairs(pairs: pd.DataFrame, key: str) -> None:
    """Draw the pairs so that both sentences can be read: a few whole, of many the first two lines."""
    if len(pairs) <= FEW_PAIRS:
        shown = pairs.assign(cosine=pairs["cosine"].map(partial(theme.number, digits=2)))
        shown["pair"] = pairs["pair"].str.replace(" ", "\u2060")  # no line ends at the dash of a narrow column
        if "percentile" in shown:
            shown["percentile"] = [calibration.rounded(value / 100) for value in pairs["percentile"]]
        figures.plain_table(shown)
        return
    narrow = {"cosine": st.column_config.NumberColumn(width=70), "pair": st.column_config.TextColumn(width=70)}
    if "percentile" in pairs:
        # Never 100, as in the table; the column stays one of numbers, so that it can be sorted.
        pairs = pairs.assign(percentile=np.minimum(pairs["percentile"].round(2), MOST_PERCENT))
    narrow["percentile"] = st.column_config.NumberColumn(width=90, format="%.2f %%")
    st.dataframe(pairs, hide_index=True, key=key, row_height=60, column_config=narrow)


def _pair_table(
    similarities: SentenceSimilarity, texts: Sequence[str], unrelated: Calibration | None = None
) -> pd.DataFrame:
    """All pairs, the most similar first; with their percentiles among `unrelated` pairs, if these are given."""
    pairs = similarities.pairs()
    frame = pd.DataFrame(
        [
            {
                "cosine": round(pair.similarity, 4),
                "pair": f"{pair.first + 1} – {pair.second + 1}",
                "first": texts[pair.first],
                "second": texts[pair.second],
            }
            for pair in pairs
        ]
    )
    if unrelated is not None:
        # Of the cosines as they are: near 1 the fourth decimal is worth many percentiles.
        frame.insert(0, "percentile", (100 * unrelated.shares([pair.similarity for pair in pairs])).round(4))
    return frame
