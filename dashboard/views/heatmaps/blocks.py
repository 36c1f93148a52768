"""Heatmaps of tokens: what blocks do to them, and how similar pairs of them are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis import block_change
from components.analysis.attention import weights
from components.analysis.similarity import cosines
from components.charts import curves, matrices, theme
from components.numbers import apart
from components.snippets import heatmaps as snippets
from dashboard import caching, state
from dashboard.ui import controls, figures, messages, pair_choice, wording
from dashboard.views.heatmaps import pair_findings

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence, Trace
    from components.snippets.code import Input

NOT_SHOWN = (
    "Why two vectors are similar, or whether this matters for what the model does. Cosines of unrelated tokens are not "
    "0: compare with the average of two unrelated tokens."
)

MOST_CELLS = 360_000  # in all pictures together: a cell is sent as 7 to 8 bytes, and the limit is 3 MB
COARSE = 424  # rows and columns of a picture of more tokens than that, so that two fit


def input_and_output(backend: Backend) -> None:
    """A block's input tokens against its output tokens, for two blocks; then the diagonals of all blocks."""
    with controls.row():
        pair = pair_choice.choose()
        trace = pair.trace(backend)
        last = trace.n_layers - 1
        first = controls.stepped("first_block", "Left: block", 0, last, 0, caching.glossary()["block"])
        second = controls.stepped("second_block", "Right: block", 0, last, last, caching.glossary()["block"])
        with controls.options():
            special = controls.switch("include_special", "Special tokens", caching.glossary()["special token"])
            own = controls.switch(
                "own_scale", "Separate colour scales", "Each picture uses its own range instead of a shared one."
            )
    pair.tell_truncation(trace.sentences[0])
    positions = block_change.positions_of(trace, 0, special)
    if not positions:
        no_tokens()
        return
    factor = tokens_a_cell(len(positions))

    def picture(block: int) -> np.ndarray:
        return matrices.mean_cells(block_change.block_change(trace, 0, block, include_special=special).matrix, factor)

    # One scale for all blocks, not only the two that are drawn: another block must not change a colour's meaning. One block
    # at a time: those of a long text do not fit into memory together.
    ends = [] if own else [matrices.side_by_side_limits(picture(block)) for block in range(last + 1)]
    limits = (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None
    if limits is not None:
        figures.colour_bar("cosine", limits)
    notes = []
    pictures = [picture(block) for block in (first, second)]
    drawn = _pictures_that_fit(pictures)
    labels = coarse_labels(trace.sentences[0], positions, factor)
    tell_cells(factor, len(positions))
    for index, column in zip(drawn, st.columns(len(drawn)), strict=True):
        side, block = ("left", "right")[index], (first, second)[index]
        with column:
            cosine_picture(
                pictures[index],
                labels,
                labels,
                f"Block {block}: layer {block} to layer {block + 1}",
                rows=f"token at layer {block}",
                columns=f"token at layer {block + 1}",
                limits=limits,
                colour_bar=own,
                second_text=second_text(trace.sentences[0], positions) if factor == 1 else None,
                key=f"block_{side}",
                code=snippets.block_change(pair.input(backend), block, special),
            )
            notes.append((st.empty(), block))
    figures.reading(
        "Rows are the tokens that go into a block, columns the tokens that come out. A bright diagonal means that the "
        "block changes the tokens little. A bright column means that the block's output for this token is similar to "
        "the input of every token.",
        NOT_SHOWN,
    )
    _diagonal(trace, special, pair.input(backend))
    baseline = caching.token_baseline(backend)  # last: the figures stand while it is measured
    mean = baseline.raw.mean
    for note, block in notes:
        if baseline.is_measured:
            before, after = apart(mean[block], mean[block + 1])
            note.caption(f"Two unrelated tokens: {before} at layer {block}, {after} at layer {block + 1} on average.")
        else:
            note.caption(messages.no_baseline(baseline))


def _pictures_that_fit(pictures: Sequence[np.ndarray]) -> list[int]:
    """The indices of the pictures to draw: all, or the one that a person chooses if two have too many cells."""
    if sum(picture.size for picture in pictures) <= MOST_CELLS:
        return list(range(len(pictures)))
    sides = {"left": "the left", "right": "the right"}
    chosen = controls.choice("one_side", "Too many tokens for two pictures at once: show", sides)
    return [list(sides).index(chosen)]


def tokens_a_cell(tokens: int) -> int:
    """How many tokens a row or column of a picture stands for: 1 up to 600 tokens."""
    return 1 if tokens**2 <= MOST_CELLS else -(-tokens // COARSE)


def coarse_labels(sentence: TokenizedSentence, positions: Sequence[int], factor: int) -> list[str]:
    """The labels of rows or columns that each stand for so many tokens."""
    if factor == 1:
        return token_labels(sentence, positions)
    groups = [positions[first : first + factor] for first in range(0, len(positions), factor)]
    return [wording.first_to_last(group) for group in groups]


def tell_cells(factor: int, tokens: int) -> None:
    if factor > 1:
        st.caption(
            f"{tokens:,} tokens are too many to draw one by one: each cell is the mean of {factor} × {factor}, and its row and "
            "column are named by their positions. The code gives the cosines of single tokens."
        )


def no_tokens() -> None:
    """Say that there is nothing to draw without special tokens."""
    st.info("This text has no tokens of its own. Switch the special tokens on, or type more text.")


def token_labels(sentence: TokenizedSentence, positions: Sequence[int]) -> list[str]:
    """The labels of some of a sentence's tokens on an axis."""
    return matrices.axis_labels([token.piece for token in sentence.tokens], positions)


def second_text(sentence: TokenizedSentence, positions: Sequence[int]) -> int | None:
    """The number of the first of these tokens that belongs to the second text of a pair; None without one."""
    in_second = weights.second_text(sentence)  # [token]
    return next((number for number, position in enumerate(positions) if in_second[position]), None)


def cosine_picture(
    cosines: np.ndarray, row_labels: Sequence[str], column_labels: Sequence[str], title: str, **options: Any
) -> None:
    """A figure of tokens against tokens; the `options` are those of `figures.matrix`."""
    figures.matrix(
        cosines,
        row_labels,
        column_labels,
        title,
        alt=f"{title}: similarities of {len(row_labels)} by {len(column_labels)} tokens",
        label_column="token",
        digits=4,
        **{"value": "cosine"} | options,
    )


def _diagonal(trace: Trace, special: bool, read: Input) -> None:
    diagonal = block_change.diagonal(trace, 0, include_special=special)
    labels = token_labels(trace.sentences[0], diagonal.positions)
    values = diagonal.values.T  # [token, block]
    names = [f"block {block}" for block in range(values.shape[1])]
    means = np.nanmean(values, axis=0)
    block = int(np.nanargmin(means))
    figures.figure(
        curves.block_curves(values, labels, "Similarity of each token before and after a block"),
        key="diagonal",
        code=snippets.kept_by_blocks(read, special),
        alt=f"Cosine of each token before and after every block; block {block} changes tokens most",
        message=f"Block {block} changes the tokens most: their mean cosine before and after it is "
        f"{theme.number(means[block])}.",
        read="The diagonals of all blocks, with one line per token. 1 means that the direction is unchanged. The thick "
        "line is the mean.",
        not_shown="What a token loses or gains: a cosine measures only how far its direction turns. Its length may change "
        "too.",
        table=lambda: pd.DataFrame(values.round(4), columns=names).assign(token=labels),
    )


def inside(backend: Backend) -> None:
    """The norms of what attention and feed-forward add to each token, and how far each step turns it."""
    with controls.row():
        pair = pair_choice.choose()
        record = backend.inside(pair.first, pair.second, max_length=controls.length_for(backend), attentions=False)
        block = controls.stepped("first_block", "Block", 0, record.n_blocks - 1, 0, caching.glossary()["block"])
    pair.tell_truncation(record.sentence)
    before, after = record.hidden_states[block], record.after_attention[block]
    pieces = [token.piece for token in record.sentence.tokens]
    turns = {
        "attention step": cosines.turn(before, after),
        "feed-forward step": cosines.turn(after, record.hidden_states[block + 1]),
    }
    attention, feed_forward = (float(turn.mean()) for turn in turns.values())
    larger = "the attention step" if attention > feed_forward else "the feed-forward step"
    figures.part_bars(
        turns,
        pieces,
        f"How far block {block} turns each token",
        quantity="turn in degrees",
        digits=3,
        key="inside_turns",
        code=snippets.turns(pair.input(backend), block),
        alt=f"Bars: degrees by which attention and feed-forward turn each token in block {block}",
        message=f"In block {block} {larger} changes the tokens more: on average attention turns their vectors by "
        f"{attention:.0f}°, feed-forward by {feed_forward:.0f}°.",
        read="A token's vector is a direction with a length. Each bar is the angle between the vector before and after one "
        "step: 0° means that the direction is unchanged, and at 90° the two have nothing in common. "
        + _step_in_words(backend, block),
        not_shown="Which of the two steps matters more for the model's answer.",
    )
    parts = {
        "before the block": before,
        "added by attention": record.attention_output[block],
        "added by feed-forward": record.feed_forward_output[block],
    }
    figures.part_bars(
        {name: np.linalg.norm(part.astype(np.float64), axis=-1) for name, part in parts.items()},
        pieces,
        f"How long the vectors are that block {block} adds",
        quantity="length (each grid line: × 10)",
        logarithmic=True,  # the norm of [CLS] is often twenty times that of the others
        key="inside_norms",
        code=snippets.lengths(pair.input(backend), block),
        alt=f"Points: lengths of each token's vector before block {block}, and of what attention and feed-forward add",
        read="Grey is the token's vector before the block. "
        + (
            "Attention reads a normalised copy and adds its vector to the token's; then feed-forward does the same. "
            if backend.structure.normalises_first
            else "Attention adds its vector to it, and the sum goes through a first LayerNorm. The vector of feed-forward is "
            "added to what that LayerNorm gives, and the sum goes through a second one. "
        )
        + "Each grid line is ten times the one below (a logarithmic scale). A length is also called a norm.",
        not_shown="Whether the added vector points along the token's vector or across it: see the figure above.",
    )


def _step_in_words(backend: Backend, block: int) -> str:
    """What a step does to a token's vector."""
    structure = backend.structure
    if not structure.normalises_first:
        return "A step adds a vector to the token's vector and brings the sum to one scale (LayerNorm)."
    text = f"A step adds a vector to the token's vector. In {structure.title} nothing scales the sum"
    if structure.has_final_norm and block == len(structure.windows) - 1:
        return f"{text} but a {structure.norm} after the last block, which belongs to the feed-forward step here."
    return f"{text} inside the block."


def tokens(backend: Backend) -> None:
    """Pairs of tokens at a layer: within a sentence, or of a sentence and one or two others."""
    texts = state.get("sentences")
    with controls.row():
        query = controls.sentence_of(texts, "sentence_a", "Sentence", 0)
        first = controls.sentence_of(texts, "against", "Compare with", min(1, len(texts) - 1) + 1, none="itself")
        trace = controls.current_trace(backend)
        last = trace.n_layers
        layer = controls.stepped("layer", "Layer", 0, last, last, caching.glossary()["layer"])
        with controls.options():
            default = 3 if len(texts) > 2 else 0
            second = controls.sentence_of(texts, "also_against", "Also compare with", default, none="no other")
            special = controls.switch("include_special", "Special tokens", caching.glossary()["special token"])
            as_percentiles = controls.percentiles()
    messages.truncation(trace.sentences)
    if not block_change.positions_of(trace, query, special):
        no_tokens()
        return
    others = [query if first == 0 else first - 1] + ([second - 1] if second else [])
    similarities = [
        block_change.token_similarity(trace, layer, query, other, include_special=special) for other in others
    ]
    baseline = caching.token_baseline(backend)
    calibration = baseline.calibration(layer)
    factor = max(tokens_a_cell(max(item.matrix.shape)) for item in similarities)
    shown = [
        matrices.mean_cells(100 * calibration.shares(item.matrix) if as_percentiles else item.matrix, factor)
        for item in similarities
    ]
    limits = (0.0, 100.0) if as_percentiles else matrices.side_by_side_limits(*shown)
    drawn = _pictures_that_fit(shown)
    figures.finding(
        pair_findings.of_pictures([(similarities[index], others[index]) for index in drawn], query, trace.sentences),
        key="token_pairs",
        read="Bright cells are tokens whose vectors point in similar directions. Compare one sentence with two "
        "others: which of them has a bright cell for each word of the first?"
        + (" A percentile is the share of unrelated tokens that are less similar at this layer." * as_percentiles),
        not_shown=NOT_SHOWN,
    )
    figures.colour_bar("percentile" if as_percentiles else "cosine", limits)
    tell_cells(factor, max(max(item.matrix.shape) for item in similarities))
    for index, column in zip(drawn, st.columns(len(drawn)), strict=True):
        item, other = similarities[index], others[index]
        with column:
            cosine_picture(
                shown[index],
                coarse_labels(trace.sentences[query], item.positions, factor),
                coarse_labels(trace.sentences[other], item.column_positions, factor),
                f"Sentence {query + 1} with {'itself' if other == query else f'sentence {other + 1}'}, layer {layer}",
                rows=f"sentence {query + 1}",
                columns=f"sentence {other + 1}",
                limits=limits,
                colour_bar=False,
                key=f"tokens_{index}",
                code=snippets.tokens(
                    controls.current_input(backend),
                    layer,
                    query,
                    other,
                    include_special=special,
                    percentiles=as_percentiles,
                ),
                value="percentile" if as_percentiles else "cosine",
            )
    st.caption(
        f"Two unrelated tokens have a cosine of {theme.number(baseline.raw.mean[layer], 2)} at layer {layer} on average."
        if baseline.is_measured
        else messages.no_baseline(baseline)
    )
