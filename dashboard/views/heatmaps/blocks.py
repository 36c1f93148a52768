"""The sections of the Heatmaps page: what blocks do to tokens, tokens against tokens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis import block_change, similarity
from components.charts import bars, curves, matrices
from dashboard import caching, state
from dashboard.ui import controls, figures, messages, pair_choice

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence, Trace

NOT_SHOWN = (
    "Why two vectors are close, or whether that matters for what the model does. Cosines of unrelated tokens are not 0: "
    "compare with the baseline."
)

MOST_CELLS = 360_000  # of all pictures together: a cell takes 7 to 8 bytes on its way, and 3 MB are the most to send


def blocks(backend: Backend) -> None:
    """A block's input tokens against its output tokens, for two blocks; then the diagonal over all blocks."""
    trace = pair_choice.choose().trace(backend)
    messages.truncation(trace.sentences)
    last = trace.n_layers - 1
    with st.container(horizontal=True):
        special = controls.switch("include_special", "Special tokens", caching.glossary()["special token"])
        own = controls.switch("own_scale", "Own colours", "Each picture uses its own range instead of a shared one.")
    left, right = st.columns(2)
    with left:
        first = controls.number("first_block", "Left: block", 0, last, 0, caching.glossary()["block"])
    with right:
        second = controls.number("second_block", "Right: block", 0, last, last, caching.glossary()["block"])
    changes = [block_change.block_change(trace, 0, block, include_special=special) for block in (first, second)]
    if not changes[0].positions:
        _nothing_left()
        return
    # One scale for all blocks, not only the two that are drawn: moving a slider must not change a colour's meaning.
    every = (block_change.block_change(trace, 0, block, include_special=special).matrix for block in range(last + 1))
    shared = None if own else matrices.side_by_side_limits(*every)
    notes = []
    shown = _that_fit([change.matrix for change in changes])
    for number, column in zip(shown, st.columns(len(shown)), strict=True):
        change, side = changes[number], ("left", "right")[number]
        labels = _labels(trace.sentences[0], change.positions)
        block = change.block
        with column:
            _matrix(
                change.matrix,
                labels,
                labels,
                f"Block {block}: layer {block} to layer {block + 1}",
                rows=f"token at layer {block}",
                columns=f"token at layer {block + 1}",
                limits=shared,
                key=f"block_{side}",
            )
            notes.append((st.empty(), block))
    figures.reading(
        "Rows are the tokens that go into a block, columns those that come out. A bright diagonal: tokens stay what "
        "they were. A bright column: every token is like what that one became.",
        NOT_SHOWN,
    )
    _diagonal(trace, special)
    mean = caching.token_baseline(backend).raw.mean  # last: the figures stand while it is measured
    for note, block in notes:
        note.caption(
            f"Two unrelated tokens: {mean[block]:.2f} at layer {block}, {mean[block + 1]:.2f} at layer {block + 1} on "
            "average."
        )


def _that_fit(pictures: Sequence[np.ndarray]) -> list[int]:
    """Which of two pictures side by side to draw: both, or the chosen one where both have too many cells."""
    if sum(picture.size for picture in pictures) <= MOST_CELLS:
        return list(range(len(pictures)))
    sides = {"left": "the left", "right": "the right"}
    chosen = controls.choice("one_side", "Too many tokens for two pictures at once: show", sides)
    return [list(sides).index(chosen)]


def _nothing_left() -> None:
    st.info("This text has no tokens of its own. Switch the special tokens on, or type more.")


def _labels(sentence: TokenizedSentence, positions: Sequence[int]) -> list[str]:
    return matrices.axis_labels([sentence.tokens[position].piece for position in positions], positions)


def _matrix(
    matrix: np.ndarray,
    rows_labels: Sequence[str],
    columns_labels: Sequence[str],
    title: str,
    *,
    rows: str,
    columns: str,
    limits: tuple[float, float] | None,
    key: str,
) -> None:
    figures.figure(
        matrices.token_matrix(
            matrix,
            rows_labels,
            columns_labels,
            title,
            rows=rows,
            columns=columns,
            value="cosine",
            limits=limits,
            scale=controls.scale(),
        ),
        key=key,
        alt=f"{title}: cosines of {len(rows_labels)} by {len(columns_labels)} tokens",
        table=partial(_matrix_table, matrix, rows_labels, columns_labels),
    )


def _matrix_table(matrix: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    return pd.DataFrame(matrix.round(4), columns=list(columns)).assign(token=list(rows))[["token", *columns]]


def _diagonal(trace: Trace, special: bool) -> None:
    diagonal = block_change.diagonal(trace, 0, include_special=special)
    labels = _labels(trace.sentences[0], diagonal.positions)
    values = diagonal.values.T  # [token, block]
    most = int(np.nanargmin(np.nanmean(values, axis=0)))
    figures.figure(
        curves.block_curves(values, labels, "How much of itself each token keeps", scale=controls.scale()),
        key="diagonal",
        alt=f"Cosine of each token before and after every block; block {most} changes tokens most",
        message=f"Block {most} changes the tokens most: their mean cosine before and after it is "
        f"{np.nanmean(values, axis=0)[most]:.3f}.",
        read="The diagonals of all blocks: one line a token, 1 means unchanged. The thick line is the mean.",
        not_shown="What a token loses or gains, only how far its direction turns; its length may change too.",
        table=lambda: pd.DataFrame(
            values.round(4), columns=[f"block {block}" for block in range(values.shape[1])]
        ).assign(token=labels),
    )


def inside(backend: Backend) -> None:
    """Norms of what attention and feed-forward add to each token, and how far each turns it."""
    pair = pair_choice.choose()
    record = backend.inside(pair.first, pair.second, max_length=controls.length_for(backend), attentions=False)
    messages.truncation([record.sentence])
    block = controls.number("first_block", "Block", 0, record.n_blocks - 1, 0, caching.glossary()["block"])
    before, after = record.hidden_states[block], record.after_attention[block]
    parts = {
        "residual": before,
        "attention out": record.attention_output[block],
        "feed-forward out": record.feed_forward_output[block],
    }
    norms = np.array([np.linalg.norm(part.astype(np.float64), axis=-1) for part in parts.values()])  # [part, token]
    turned = np.array(
        [similarity.turn(before, after), similarity.turn(after, record.hidden_states[block + 1])]
    )  # [step, token]
    pieces = pair_choice.labels(record.sentence)
    figures.figure(
        bars.part_norm_bars(
            list(parts),
            pieces,
            norms,
            f"What block {block} adds to each token",
            controls.scale(),
            "norm (logarithmic)",
            logarithmic=True,  # [CLS] is often twenty times the rest
        ),
        key="inside_norms",
        alt=f"Bars: norms of residual, attention output and feed-forward output of block {block} for each token",
        read="The residual is the token as it comes in; the other two are added to it, each followed by a LayerNorm. The "
        "axis is logarithmic: each line up is ten times as long.",
        not_shown="Whether what is added points along the token or across it: see the turn below.",
        table=lambda: pd.DataFrame({"token": pieces, **dict(zip(parts, norms.round(4), strict=True))}),
    )
    steps = ["attention step", "feed-forward step"]
    figures.figure(
        bars.part_norm_bars(
            steps, pieces, turned, f"How far block {block} turns each token", controls.scale(), "turn in degrees"
        ),
        key="inside_turns",
        alt=f"Bars: degrees by which attention and feed-forward turn each token in block {block}",
        read="Degrees between a token's vector before and after each step (with its residual and LayerNorm). 0: unchanged.",
        not_shown="Which of the two steps matters more for the model's answer.",
        table=lambda: pd.DataFrame({"token": pieces, **dict(zip(steps, turned.round(3), strict=True))}),
    )


def tokens(backend: Backend) -> None:
    """Tokens against tokens at a layer: within a sentence, or a sentence against one or two others."""
    texts = state.get("sentences")
    query = controls.sentence_of(texts, "sentence_a", "Sentence", 0)
    left, right = st.columns(2)
    with left:
        first = controls.sentence_of(texts, "against", "against", min(1, len(texts) - 1) + 1, none="itself")
    with right:
        second = controls.sentence_of(texts, "also_against", "and against", 3 if len(texts) > 2 else 0, none="no other")
    trace = controls.current_trace(backend)
    messages.truncation(trace.sentences)
    layer = controls.layer(trace.n_layers)
    special = controls.switch("include_special", "Special tokens", caching.glossary()["special token"])
    if not block_change.positions_of(trace, query, special):
        _nothing_left()
        return
    others = [query if first == 0 else first - 1] + ([second - 1] if second else [])
    similarities = [
        block_change.token_similarity(trace, layer, query, other, include_special=special) for other in others
    ]
    limits = matrices.side_by_side_limits(*(item.matrix for item in similarities))
    shown = _that_fit([item.matrix for item in similarities])
    for number, column in zip(shown, st.columns(len(shown)), strict=True):
        item, other = similarities[number], others[number]
        with column:
            _matrix(
                item.matrix,
                _labels(trace.sentences[query], item.positions),
                _labels(trace.sentences[other], item.column_positions),
                f"Sentence {query + 1} with {'itself' if other == query else f'sentence {other + 1}'}, layer {layer}",
                rows=f"sentence {query + 1}",
                columns=f"sentence {other + 1}",
                limits=limits,
                key=f"tokens_{number}",
            )
    mean = caching.token_baseline(backend).raw.mean[layer]
    st.caption(f"Two unrelated tokens have a cosine of {mean:.2f} at layer {layer} on average.")
    figures.reading(
        "Bright cells are tokens whose vectors point the same way. Put a question first and two answers beside it: which "
        "answer has a bright cell for each of its words?",
        NOT_SHOWN,
    )
