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
from dashboard.views.heatmaps import pair_findings
from dashboard.views.heatmaps.blocks import (
    HIGHEST_NUMBERED,
    MOST_CELLS,
    NUMBERED,
    NUMBERS_FROM,
    cell_widths,
    coarse_labels,
    cosine_picture,
    label_room,
    no_tokens,
    tell_cells,
    tell_numbered,
    tokens_a_cell,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from components.analysis.block_change import TokenSimilarity
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence, Trace

MOST_PAIRS = 4
SAID_PAIRS = 2  # of which the finding tells the cosine of its words
ALIKE = 0.02  # of a cosine: less is no difference
READ = (
    "For each picture the model has read two sentences as one input. A row is a token of A, a column one of the other "
    "sentence. The stronger a cell's blue, the more alike the directions of the two vectors are (cosine)."
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
    called = [f"sentence {row + 1}" for row in kept]
    # Not all sentences, which may have more characters together than one trace may.
    alone = backend.trace([texts[row] for row in (first, *kept)], max_length=controls.length_for(backend))
    apart = [
        _read_apart(alone, layer, (0, place), sentence, between)
        for place, (sentence, between) in enumerate(zip(trace.sentences, own, strict=False), start=1)
    ]
    means = _means(own, apart, called)
    said = _most_alike(trace, own, apart, called, shown) or means
    figures.finding(
        " ".join(filter(None, (_without_tokens(own, f"sentence {first + 1}", called), said))),
        key="together",
        read=READ + f" {HIGHEST_NUMBERED}" * numbered,
        not_shown=NOT_SHOWN,
    )
    room = label_room(
        trace.sentences[row].tokens[position] for row, item in shown.items() for position in item.column_positions
    )
    with st.container(key="wide_cells"), figures.together(f"together_{min(shown)}"):
        columns = st.columns(cell_widths([picture.shape[1] for picture in cells.values()]))
        for (row, between), column in zip(shown.items(), columns, strict=True):
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
                    room=room,
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
    if means != said:
        st.caption(means)
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


def _read_apart(
    alone: Trace, layer: int, sentences: tuple[int, int], pair: TokenizedSentence, between: TokenSimilarity
) -> np.ndarray | None:
    """The cosines of the same tokens where the model reads each of two sentences alone; None where their pieces differ."""
    apart = block_change.token_similarity(alone, layer, *sentences, include_special=False)
    for number, together, own in zip(
        sentences,
        (between.positions, between.column_positions),
        (apart.positions, apart.column_positions),
        strict=True,
    ):
        read_alone = [alone.sentences[number].tokens[position].piece for position in own[: len(together)]]
        if read_alone != [pair.tokens[position].piece for position in together]:
            return None
    rows, columns = between.matrix.shape
    return apart.matrix[:rows, :columns]


def _without_tokens(between: Sequence[TokenSimilarity], first: str, names: Sequence[str]) -> str:
    without = [first] * (not between[0].positions)
    without += [name for pair, name in zip(between, names, strict=True) if not pair.column_positions and name != first]
    return f"A text without tokens has no cosine: {numbers.enumerated(without)}." if without else ""


def _most_alike(
    trace: Trace,
    between: Sequence[TokenSimilarity],
    apart: Sequence[np.ndarray | None],
    names: Sequence[str],
    shown: Mapping[int, TokenSimilarity],
) -> str:
    """The most similar words across the two texts, in at most two of the pairs, beside the same words read apart; or "".

    `names` are those of the second texts. Of the pictures `shown` the highest cell is named where it is higher.
    """
    found = [(*best, row) for row, pair in enumerate(between) if (best := _most_similar(trace, row, pair))]
    if not found:
        return ""
    found.sort(key=lambda item: -item[0])
    highest, _, first, second, _ = found[0]
    same = [item for item in found if item[2:4] == (first, second)][:SAID_PAIRS]
    cosines = [f"{numbers.number(cosine, 2)} with {names[row]}" for cosine, *_, row in same]
    text = f"the two {first}" if first == second else f"{first} and {second}"
    said = f"Of the words, {text} are most alike: **{cosines[0].replace(' ', '** ', 1)}{' and ' * (len(same) > 1)}"
    said += "".join(cosines[1:])
    read_apart = [float(matrix[place]) for _, place, *_, row in same if (matrix := apart[row]) is not None]
    if len(read_apart) == len(same):
        changes = [together - alone for (together, *_), alone in zip(same, read_apart, strict=True)]
        listed = " and ".join(numbers.number(alone, 2) for alone in read_apart)
        more = "more" if min(changes) > ALIKE else "less" if max(changes) < -ALIKE else ""
        said += f", {more} than when read apart ({listed})" if more else f" (read apart {listed})"
    row = max(shown, key=lambda number: float(shown[number].matrix.max()))
    cells = shown[row].matrix
    place = np.unravel_index(int(cells.argmax()), cells.shape)
    most = numbers.number(float(cells[place]), 2)
    if most == numbers.number(highest, 2):
        return f"{said}."
    tokens = trace.sentences[row].tokens
    pair = tokens[shown[row].positions[place[0]]], tokens[shown[row].column_positions[place[1]]]
    return f"{said}.{pair_findings.higher([(*pair, f'of {names[row]} ({most})')])}"


def _means(between: Sequence[TokenSimilarity], apart: Sequence[np.ndarray | None], names: Sequence[str]) -> str:
    """The mean cosine across the two texts of each pair, beside that of the same tokens read apart; "" without tokens."""
    known = [(pair, matrix, name) for pair, matrix, name in zip(between, apart, names, strict=True) if pair.matrix.size]
    means = numbers.apart(*(float(pair.matrix.mean()) for pair, *_ in known))
    listed = numbers.enumerated(
        [
            f"{mean} with {name}"
            + ("" if matrix is None else f" (read apart {numbers.number(float(matrix.mean()), 2)})")
            for mean, (_, matrix, name) in zip(means, known, strict=True)
        ]
    )
    return f"Mean of all cells but those of special tokens: {listed}." if known else ""


def _most_similar(trace: Trace, row: int, between: TokenSimilarity) -> tuple[float, tuple[int, int], str, str] | None:
    """The cosine of the most similar words across the two texts, their cell, and the words; None if a text has no words.

    Of a word of several pieces it is one piece, which is named with its word.
    """
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
    place = words_of[0][best[0]], words_of[1][best[1]]
    first, second = (
        wording.named(sentence, positions[number])
        for positions, number in zip((between.positions, between.column_positions), place, strict=True)
    )
    return float(of_words[best]), place, first, second
