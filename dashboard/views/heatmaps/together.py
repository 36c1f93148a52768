"""The view on pairs that the model reads as one input: up to four side by side on one scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from components import numbers
from components.analysis import block_change
from components.charts import matrices
from components.model.tokenization import MAX_CHARACTERS
from components.shown_code.arrays import Input
from components.shown_code.cosines import tokens_with_tokens
from dashboard import caching, state
from dashboard.ui import controls, figures, messages, wording
from dashboard.views.heatmaps.blocks import (
    HIGHEST_NUMBERED,
    MOST_CELLS,
    NUMBERED,
    NUMBERS_FROM,
    coarse_labels,
    cosine_picture,
    no_tokens,
    tell_cells,
    tell_numbered,
    tokens_a_cell,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.analysis.block_change import TokenSimilarity
    from components.model.backend import Backend
    from components.model.trace import Trace

MOST_PAIRS = 4
READ = (
    "For each picture the model has read two sentences as one input. A row is a token of A, a column one of the other "
    "sentence. The bluer a cell, the more alike the directions of the two vectors are (cosine)."
)
NOT_SHOWN = (
    "Whether the second sentence answers or repeats the first: a cross-encoder reads this from [CLS]. Tokens of one input "
    "are often more similar to each other than tokens of two inputs, because each has attended to the others."
)


def pairs(backend: Backend) -> None:
    """Sentence A read together with each of up to four others: the tokens of each input against each other, at a layer."""
    texts: tuple[str, ...] = state.get("sentences")
    with controls.row():
        first = controls.sentence_of(texts, "sentence_a", "Sentence A", 0)
        last = backend.facts.layers
        layer = controls.stepped("layer", "Layer", 0, last, last, caching.glossary()["layer"])
        with controls.options():
            partners = _partners(texts, first)
            special = controls.switch("include_special", "Special tokens", caching.glossary()["special token"])
    kept = _that_can_be_read(texts, first, partners)
    trace = backend.trace(
        [texts[first]] * len(kept), [texts[row] for row in kept], max_length=controls.length_for(backend)
    )
    names = [(f"sentence {first + 1}", f"sentence {row + 1}") for row in kept]
    kept = kept[: _that_can_be_drawn(trace)]
    shown = {
        row: between
        for row in range(len(kept))
        if (between := block_change.between_texts(trace, layer, row, special)).matrix.size
    }
    if not shown:
        no_tokens()
        return
    factor = max(tokens_a_cell(max(between.matrix.shape)) for between in shown.values())

    def picture(number: int, row: int) -> np.ndarray:
        return matrices.mean_cells(block_change.between_texts(trace, number, row, special).matrix, factor)

    # One scale for all layers, so that another layer does not change a colour's meaning. One at a time: those of long texts
    # do not fit into memory together.
    ends = [matrices.side_by_side_limits(picture(number, row)) for number in range(last + 1) for row in shown]
    limits = min(low for low, _ in ends), max(high for _, high in ends)
    cells = {row: picture(layer, row) for row in shown}
    is_short = len(shown) > 2
    numbered = not is_short and max(max(picture.shape) for picture in cells.values()) <= NUMBERED
    values = np.concatenate([picture.ravel() for picture in cells.values()])
    numbers_from, small_from = (float(np.quantile(values, share)) for share in NUMBERS_FROM)
    own = [block_change.between_texts(trace, layer, row) for row in range(len(kept))]
    figures.finding(
        _across(trace, own, [f"sentence {row + 1}" for row in kept], special),
        key="together",
        read=READ + f" {HIGHEST_NUMBERED}" * numbered,
        not_shown=NOT_SHOWN,
    )
    with st.container(key="wide_cells"), figures.together(f"together_{min(shown)}"):
        for (row, between), column in zip(shown.items(), st.columns(len(shown)), strict=True):
            sentence, other = trace.sentences[row], kept[row] + 1
            with column:
                cosine_picture(
                    cells[row],
                    coarse_labels(sentence, between.positions, factor),
                    coarse_labels(sentence, between.column_positions, factor),
                    f"{first + 1} + {other}, layer {layer}"
                    if is_short
                    else f"Sentences {first + 1} and {other}, layer {layer}",
                    rows=f"sentence {first + 1}",
                    columns=f"sentence {other}",
                    limits=limits,
                    pale=True,
                    show_values=numbered,
                    numbers_from=numbers_from,
                    small_from=small_from if numbered else None,
                    upright="always" if len(shown) > 1 else True,  # so that the rows of all are as high
                    colour_bar=False,
                    narrow=is_short,
                    plot_height=25 * len(between.positions)
                    if not is_short and controls.scale() > 1 and len(between.positions) <= 10
                    else None,
                    key=f"together_{row}",
                    code=tokens_with_tokens(
                        Input(backend, [texts[first]], controls.length_for(backend), [texts[kept[row]]]),
                        (layer, 0, between.positions),
                        (layer, 0, between.column_positions),
                    ),
                )
    figures.colour_bar("cosine", limits, pale=True)
    if numbered:
        tell_numbered()
    tell_cells(factor, max(max(between.matrix.shape) for between in shown.values()))
    if len(kept) < len(partners):
        st.caption(
            f":material/info: Only {wording.counted(len(kept), 'pair')} of {len(partners)} fit here: the texts are long."
        )
    messages.truncation(trace.sentences[: len(kept)], names=names)


def _partners(texts: Sequence[str], first: int) -> tuple[int, ...]:
    """Draw the choice of the sentences that A is read with; by default the next four, and sentence B if one was chosen."""
    following = [(first + step) % len(texts) for step in range(1, len(texts))] or [first]
    chosen_b = state.get("sentence_b")
    if chosen_b and chosen_b - 1 in following[MOST_PAIRS:]:
        following.insert(0, chosen_b - 1)
    default = tuple(following[:MOST_PAIRS])
    partners: tuple[int, ...] = controls.bind(
        "partners",
        st.multiselect,
        "Read together with",
        options={row: f"{row + 1}  {text[:40]}" for row, text in enumerate(texts)},
        to_widget=lambda rows: rows or default,
        max_selections=MOST_PAIRS,
        describe=lambda rows: ", ".join(str(row + 1) for row in rows),
        offers=f"Choose up to {MOST_PAIRS} of the {len(texts)} sentences.",
    )
    return partners


def _that_can_be_read(texts: Sequence[str], first: int, partners: Sequence[int]) -> list[int]:
    """The first of these sentences whose pairs with A have no more characters together than one trace may have."""
    sizes = np.cumsum([len(texts[first]) + len(texts[row]) for row in partners])
    return list(partners[: max(1, int(np.searchsorted(sizes, MAX_CHARACTERS, side="right")))])


def _that_can_be_drawn(trace: Trace) -> int:
    """The number of first pairs whose pictures have no more cells together than a page may have; at least 1."""
    cells = np.cumsum([block_change.between_texts(trace, 0, row).matrix.size for row in range(len(trace.sentences))])
    return max(1, int(np.searchsorted(cells, MOST_CELLS, side="right")))


def _across(trace: Trace, between: Sequence[TokenSimilarity], names: Sequence[str], special: bool) -> str:
    """The most similar words of all pairs, and the mean cosine across the two texts of each; without words the means alone.

    `names` are those of the second texts. `special`: the pictures show special tokens, of which this says nothing.
    """
    without = [name for pair, name in zip(between, names, strict=True) if not pair.matrix.size]
    nothing = f"A text without tokens has no cosine: {numbers.enumerated(without)}" if without else ""
    if len(without) == len(between):
        return f"{nothing}."
    means = numbers.apart(*(float(pair.matrix.mean()) for pair in between if pair.matrix.size))
    having = [name for name in names if name not in without]
    listed = numbers.enumerated([f"{mean} with {name}" for mean, name in zip(means, having, strict=True)])
    left_out = ", without special tokens" if special else ""
    said = f"On average{left_out}: {listed}."
    pairs = [(*found, name) for row, name in enumerate(names) if (found := _most_similar(trace, row, between[row]))]
    if pairs:
        cosine, first, second, name = max(pairs)
        words = f"The two tokens {first}" if first == second else f"The tokens {first} and {second}"
        said = f"{words} are the most alike: **{numbers.number(cosine, 2)}** with {name}. {said}"
    return f"{nothing and nothing + '. '}{said}"


def _most_similar(trace: Trace, row: int, between: TokenSimilarity) -> tuple[float, str, str] | None:
    """The cosine of the most similar words across the two texts, and the words; None if a text has no words."""
    sentence = trace.sentences[row]
    # Not punctuation marks, which are similar to each other in most pairs.
    words_of = [
        [number for number, position in enumerate(positions) if any(map(str.isalnum, sentence.surface(position)))]
        for positions in (between.positions, between.column_positions)
    ]
    if not all(words_of):
        return None
    of_words = between.matrix[np.ix_(*words_of)]
    best = np.unravel_index(int(of_words.argmax()), of_words.shape)
    first, second = (
        wording.quoted(sentence.word_text(positions[numbers_of[number]]))
        for positions, numbers_of, number in zip(
            (between.positions, between.column_positions), words_of, best, strict=True
        )
    )
    return float(of_words[best]), first, second
