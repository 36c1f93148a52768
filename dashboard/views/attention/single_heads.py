"""The sections of the Attention page that show the attentions themselves: bertviz's views, matrix, all heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis import attention as analysis
from components.charts import matrices
from components.charts.bertviz import views
from dashboard import state
from dashboard.ui import controls, figures, messages
from dashboard.views.attention.head_tiles import MAX_CELLS, head_tiles

if TYPE_CHECKING:
    from components.analysis.attention import TextsFilter
    from components.arrays import Float32
    from components.charts.bertviz.page import View
    from components.model.backend import Backend
    from components.model.inside import InsideBlocks
    from components.model.trace import TokenizedSentence, Trace
    from dashboard.ui.pair_choice import Pair

FILTERS = {"all": "All", "aa": "A to A", "ab": "A to B", "ba": "B to A", "bb": "B to B"}
NOT_SHOWN = (
    "How much of another token's vector is added: that also depends on the value vectors (see Flow). Attention is not "
    "explanation; see the note at the foot of this page."
)
HOW_TO = {
    "head": "Lines go from a token (left, the query) to the tokens that it attends to (right, the keys). A strong line "
    "means much attention. Each colour is a head: click a colour to switch it on or off, double-click it to show that "
    "head alone, and hover over a token to see its lines.",
    "model": "Each small picture is one head: rows are blocks, columns are heads. Click a picture to enlarge it. Look for "
    "shapes: parallel lines go to the same or neighbouring tokens; many lines into one token often go to [CLS] or [SEP].",
    "neuron": "Click the + next to a token. Its query vector times each key vector, dimension by dimension, sums to the "
    "score. Softmax turns the scaled scores into attention (MPNet also adds a term for the distance). Blue is positive, "
    "orange is negative.",
}


@dataclass(frozen=True, eq=False)
class AttentionInput:
    """The input of the page, and its attentions without padding."""

    backend: Backend
    pair: Pair
    trace: Trace  # of this input alone
    sentence: TokenizedSentence
    attentions: Float32  # [block, head, query, key]

    @property
    def pieces(self) -> list[str]:
        return [token.piece for token in self.sentence.tokens]

    @property
    def special(self) -> np.ndarray:
        return np.array([token.special for token in self.sentence.tokens])

    @property
    def block(self) -> int:
        """The chosen block, or block 0 if the model has fewer."""
        return int(state.get("block")) if state.get("block") < self.attentions.shape[0] else 0

    @property
    def head(self) -> int:
        return int(state.get("head")) if state.get("head") < self.attentions.shape[1] else 0

    @property
    def direction(self) -> TextsFilter:
        """The texts of a pair that attention is shown from and to."""
        return cast("TextsFilter", state.get("texts_filter")) if self.sentence.pair is not None else "all"

    def inside(self) -> InsideBlocks:
        """Queries, keys and values of the same input, without its attentions, which are already here."""
        length = controls.length_for(self.backend)
        return self.backend.inside(self.pair.first, self.pair.second, max_length=length, attentions=False)


def open_head(block: int, head: int) -> None:
    """Show one head in the matrix view."""
    choices = {"block": block, "head": head, "combination": "one", "attention_view": "matrix"}
    for setting, value in choices.items():
        state.put(setting, value)


def block_and_head(model_input: AttentionInput) -> tuple[int, int]:
    """Sliders for a block and a head."""
    n_blocks, n_heads = model_input.attentions.shape[:2]
    left, right = st.columns(2)
    with left:
        block = controls.number("block", "Block", 0, n_blocks - 1, 0)
    with right:
        head = controls.number("head", "Head", 0, n_heads - 1, 0)
    return block, head


def bertviz(model_input: AttentionInput, view: View) -> None:
    """bertviz's head, model or neuron view in an iframe, with fewer blocks and heads if all would be too large."""
    n_blocks, n_heads, n_tokens, _ = model_input.attentions.shape
    blocks, heads = list(range(n_blocks)), list(range(n_heads))
    head_dim = model_input.backend.facts.hidden_size // n_heads
    size = views.estimate_bytes(len(blocks), len(heads), n_tokens, view, head_dim)
    if size > views.MAX_BYTES:
        blocks, heads = _smaller(view, n_blocks, n_heads, n_tokens, head_dim)
        if not blocks:
            return
    page = _document(model_input, view, blocks, heads)
    names = {"head": "Head view", "model": "Model view", "neuron": "Neuron view"}
    left, right = st.columns([3, 2]) if view == "head" else (st.container(), st.container())
    with left:
        st.iframe(
            page,
            height=views.frame_height(view, n_tokens, len(blocks), n_heads),
            alt=f"bertviz {names[view]}: attention between the tokens {' '.join(model_input.pieces[:40])}",
        )
    with right:
        figures.reading(HOW_TO[view], NOT_SHOWN, stacked=view == "head")


def _document(model_input: AttentionInput, view: View, blocks: Sequence[int], heads: Sequence[int]) -> str:
    """The view as an HTML document."""
    second = next((token.position for token in model_input.sentence.tokens if token.in_pair), None)
    options: dict[str, Any] = {
        "second_start": second,
        "blocks": blocks,
        "heads": heads,
        "dark": st.context.theme.type == "dark",
        "filter": "all" if second is None else state.get("texts_filter"),
    }
    if view != "model":
        options["block"] = model_input.block if model_input.block in blocks else blocks[0]
    if view == "neuron":
        inside = model_input.inside()
        options |= {"queries": inside.queries, "keys": inside.keys}
        options["head"] = model_input.head if model_input.head in heads else heads[0]
    return views.attention_page(view, model_input.attentions, model_input.pieces, **options)


def _smaller(view: View, n_blocks: int, n_heads: int, n_tokens: int, head_dim: int) -> tuple[list[int], list[int]]:
    """The blocks and heads to draw when all are too many: a person chooses the first block. Empty if not even one fits."""

    def fits(blocks: int, heads: int) -> bool:
        return views.estimate_bytes(blocks, heads, n_tokens, view, head_dim) <= views.MAX_BYTES

    heads = next((count for count in range(n_heads, 0, -1) if fits(1, count)), 0)
    if not heads:
        st.warning(
            f"{n_tokens} tokens are too many for this view: even one head would be more than 8 MB. Use the matrix or the "
            "patterns, or lower the maximum length under “More settings”.",
            icon=":material/unfold_more:",
        )
        return [], []
    count = next(number for number in range(n_blocks, 0, -1) if fits(number, heads))
    first = controls.number("block", "First block drawn", 0, n_blocks - count, 0)
    drawn = f"block {first}" if count == 1 else f"blocks {first} to {first + count - 1}"
    drawn += "" if heads == n_heads else f" with heads 0 to {heads - 1}"
    st.info(
        f"{n_tokens} tokens are too many to draw all {n_blocks} blocks at once. This view draws only {drawn}, because at "
        "most 8 MB are sent to the browser.",
        icon=":material/unfold_more:",
    )
    return list(range(first, first + count)), list(range(heads))


def matrix(model_input: AttentionInput) -> None:
    """One head, or several combined, as a matrix of exact values, and the sum of some of its rows."""
    values, title = _chosen_matrix(model_input)
    with st.container(horizontal=True):
        words = controls.switch(
            "merge_words", "Whole words", "The pieces of a word are merged: the sum over keys, the mean over queries."
        )
        special = controls.choice(
            "special_tokens",
            "Special tokens",
            {"shown": "shown", "hidden": "hidden", "renormalised": "hidden, rows sum to 1"},
        )
    labels, special_mask, second = model_input.pieces, model_input.special, analysis.second_text(model_input.sentence)
    if words:
        merged = analysis.merge_words(values, model_input.sentence)
        values, labels, special_mask, second = merged.matrix, list(merged.labels), merged.special, merged.second
    positions = np.arange(len(labels))
    if special != "shown":
        values = analysis.without_special(values, special_mask)
        positions, second = positions[~special_mask], second[~special_mask]
    part = analysis.select_pair(values, second, model_input.direction)
    shares = part.matrix
    if special == "renormalised":  # last, so that the rows that are drawn sum to 1
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = shares / shares.sum(axis=1, keepdims=True)
    if not shares.size or np.isnan(shares).all():
        st.info(
            "There is nothing to show: this text has no tokens of its own. Show the special tokens, or type more text."
        )
        return
    rows = [f"{positions[query]} {labels[positions[query]]}" for query in part.queries]
    columns = [f"{positions[key]} {labels[positions[key]]}" for key in part.keys]
    sums = np.nansum(shares, axis=1)
    note = (
        "Rows sum to 1."
        if np.allclose(sums, 1, atol=1e-3)
        else f"Rows sum to {sums.min():.2f} at least and {sums.max():.2f} at most."
    )
    query, key = np.unravel_index(int(np.nanargmax(shares)), shares.shape)
    figures.matrix(
        shares,
        rows,
        columns,
        title,
        key="head_matrix",
        alt=f"{title}: attention of {len(rows)} query tokens to {len(columns)} key tokens",
        rows="query",
        columns="key",
        value="attention",
        limits=(0.0, float(np.nanmax(shares))),
        show_values=len(rows) <= 9,
        message=messages.escape(f"{rows[query]} attends most to {columns[key]} ({shares[query, key]:.2f}). {note}"),
        read="Rows are the tokens that attend (queries). Columns are the tokens that they attend to (keys). Hover for exact "
        "values.",
        not_shown=NOT_SHOWN,
    )
    _received(shares, rows, columns, [int(positions[query]) for query in part.queries], model_input.pair)


def _chosen_matrix(model_input: AttentionInput) -> tuple[np.ndarray, str]:
    """The attentions of the chosen head, or of several combined, and their title."""
    n_blocks, n_heads = model_input.attentions.shape[:2]
    combination = controls.choice(
        "combination", "Heads", {"one": "One head", "mean": "Mean of several", "max": "Maximum of several"}
    )
    if combination == "one":
        block, head = block_and_head(model_input)
        return model_input.attentions[block, head], f"Block {block}, head {head}"
    left, right = st.columns(2)
    with left:
        blocks = controls.several("chosen_blocks", "Blocks (none: all)", n_blocks)
    with right:
        heads = controls.several("chosen_heads", "Heads (none: all)", n_heads)
    name = {"mean": "Mean", "max": "Maximum"}[combination]
    values = analysis.combine(model_input.attentions, blocks, heads, combination)  # type: ignore[arg-type]  # one of the options
    return values, f"{name} of {_count(len(heads), 'head')} in {_count(len(blocks), 'block')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _received(
    values: np.ndarray, rows: Sequence[str], columns: Sequence[str], positions: Sequence[int], pair: Pair
) -> None:
    """The sum of chosen rows. The choice names tokens by position: it is kept when rows are hidden, not for a new text."""
    if st.session_state.setdefault("_queries_of", pair) != pair:
        state.put("queries", ())
        st.session_state["_queries_of"] = pair
    names = dict(zip(positions, rows, strict=True))
    chosen = controls.bind(
        "queries",
        st.multiselect,
        "Add up the rows of some query tokens",
        options=names,
        to_widget=lambda queries: tuple(position for position in queries if position in names),  # without hidden ones
        placeholder="Choose tokens to see what they attend to together",
    )
    if not chosen:
        return
    received = analysis.received_from(values, [positions.index(query) for query in chosen])
    figures.figure(
        matrices.key_bars(received, columns, "What the chosen tokens attend to"),
        key="received",
        alt=f"Bars: attention from {', '.join(names[query] for query in chosen)} to each token",
        read="The sum of the chosen rows of the matrix above.",
        not_shown=NOT_SHOWN,
        table=lambda: pd.DataFrame({"key": list(columns), "attention": received}),
    )


def glance(model_input: AttentionInput) -> None:
    """Every head as a small matrix in one picture; a click opens it."""
    n_blocks, n_heads, n_tokens, _ = model_input.attentions.shape
    links = analysis.pair_mask(model_input.sentence, model_input.direction)
    linked = model_input.attentions if links.all() else np.where(links, model_input.attentions, np.float32(0))
    values, factor = linked, 1
    while n_blocks * n_heads * (-(-n_tokens // factor)) ** 2 > MAX_CELLS:
        factor += 1
    if factor > 1:
        values = matrices.shrink(values, factor)
        st.caption(f"Because of the {n_tokens} tokens, each cell is the highest value of {factor} × {factor}.")
    if model_input.direction != "all":
        st.caption(f"Only attention from {FILTERS[model_input.direction]} is drawn; the rest of each tile is empty.")
    hints = [
        f"Block {block}, head {head}: {_strongest(linked[block, head], model_input.pieces)}. Click to open it."
        for block in range(n_blocks)
        for head in range(n_heads)
    ]
    # The square root makes the many small values visible.
    head_tiles(
        np.sqrt(values),
        "glance",
        hints,
        open_head,
        label=f"{n_blocks} by {n_heads} heads, each a small attention matrix; arrow keys move, Enter opens",
        selected=(model_input.block, model_input.head),
        scale=controls.scale(),
    )
    figures.reading(
        "Each tile is one head: rows are queries, columns are keys, and brightness is the square root of attention. On a "
        "diagonal line, tokens attend to the previous token, to themselves or to the next token. On a vertical line, all "
        "tokens attend to the same token.",
        NOT_SHOWN,
    )


def _strongest(values: np.ndarray, pieces: Sequence[str]) -> str:
    received = values.mean(axis=0)
    key = int(received.argmax())
    return f"attends most to {key} {pieces[key]} ({received[key]:.2f} on average)"
