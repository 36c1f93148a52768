"""The sections of the Attention page that show attentions as they are: bertviz's views, matrix, all heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis import attention as analysis
from components.charts import bertviz_views, matrices
from dashboard import controls, feedback, state
from dashboard.head_tiles import MAX_BYTES, head_tiles

if TYPE_CHECKING:
    from components.analysis.attention import Which
    from components.charts.bertviz_views import View
    from components.model.backend import Backend
    from components.model.trace import Float32, TokenizedSentence
    from dashboard.pair_choice import Pair

FILTERS = {"all": "All", "aa": "A to A", "ab": "A to B", "ba": "B to A", "bb": "B to B"}
BERTVIZ_NOT_SHOWN = (
    "What a token's vector takes over from another: that depends on the value vectors too (see Flow). Attention is not "
    "explanation; the caveat is at the foot of this page."
)


@dataclass(frozen=True, eq=False)
class Shown:
    """The input the page looks at, and its attentions without padding."""

    backend: Backend
    pair: Pair
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
        """The chosen block, or the last where the model has fewer."""
        return min(state.get("block"), self.attentions.shape[0] - 1)

    @property
    def head(self) -> int:
        return min(state.get("head"), self.attentions.shape[1] - 1)


def open_head(block: int, head: int) -> None:
    """Show a head in the matrix view."""
    state.put("block", block)
    state.put("head", head)
    state.put("attention_view", "matrix")


def bertviz(shown: Shown, view: View) -> None:
    """bertviz's head, model or neuron view in an iframe, or the offer of a smaller one where it is too large."""
    n_blocks, n_heads, n_tokens, _ = shown.attentions.shape
    blocks, heads = list(range(n_blocks)), list(range(n_heads))
    size = bertviz_views.estimate_bytes(len(blocks), len(heads), n_tokens, view)
    if size > bertviz_views.MAX_BYTES:
        blocks, heads = _smaller(view, n_blocks, n_heads, n_tokens)
        if not blocks:
            return
    second = next((token.position for token in shown.sentence.tokens if token.in_pair), None)
    dark = st.context.theme.type == "dark"
    page = _document(shown, view, blocks, heads, second, dark)
    names = {"head": "Head view", "model": "Model view", "neuron": "Neuron view"}
    left, right = st.columns([3, 2]) if view == "head" else (st.container(), st.container())
    with left:
        st.iframe(
            page,
            height=bertviz_views.frame_height(view, n_tokens, len(blocks), n_heads),
            alt=f"bertviz {names[view]}: attention between the tokens {' '.join(shown.pieces[:40])}",
        )
    with right:
        feedback.reading(HOW_TO[view], BERTVIZ_NOT_SHOWN, stacked=view == "head")


HOW_TO = {
    "head": "Lines go from a token (left, the query) to those it looks at (right, the keys); the stronger, the more "
    "attention. Each colour is a head: click a colour to switch it, double-click for that one alone, hover a token.",
    "model": "Each small picture is one head: rows are blocks, columns are heads. Click one to enlarge it. Look for "
    "shapes: straight lines down are neighbours, a fan into one token is [CLS] or [SEP].",
    "neuron": "Click the + beside a token: its query vector times each key vector, dimension by dimension, sums to the "
    "score that softmax turns into attention. Blue is positive, orange negative.",
}


def _document(
    shown: Shown, view: str, blocks: Sequence[int], heads: Sequence[int], second: int | None, dark: bool
) -> str:
    if view == "head":
        return bertviz_views.head_view(
            shown.attentions,
            shown.pieces,
            second_start=second,
            blocks=blocks,
            heads=heads,
            dark=dark,
            block=shown.block if shown.block in blocks else blocks[0],
        )
    if view == "model":
        return bertviz_views.model_view(
            shown.attentions, shown.pieces, second_start=second, blocks=blocks, heads=heads, dark=dark
        )
    inside = shown.backend.inside(shown.pair.first, shown.pair.second, max_length=controls.length_for(shown.backend))
    return bertviz_views.neuron_view(
        inside.attentions,
        inside.queries,
        inside.keys,
        shown.pieces,
        second_start=second,
        blocks=blocks,
        heads=heads,
        dark=dark,
        block=shown.block if shown.block in blocks else blocks[0],
        head=shown.head if shown.head in heads else heads[0],
    )


def _smaller(view: View, n_blocks: int, n_heads: int, n_tokens: int) -> tuple[list[int], list[int]]:
    """Ask which blocks to draw when all are too many; empty when not even one fits."""
    room = bertviz_views.MAX_BYTES
    one = bertviz_views.estimate_bytes(1, n_heads, n_tokens, view)
    fit = max(1, int(room // max(one, 1)))
    heads = list(range(n_heads))
    if one > room:
        while heads and bertviz_views.estimate_bytes(1, len(heads), n_tokens, view) > room:
            heads.pop()
        fit = 1
    if not heads:
        st.warning(
            f"{n_tokens} tokens are too many for this view: even one head would be over {room / 2**20:.0f} MB. The matrix "
            "and the patterns still work; or lower the maximum length in the sidebar.",
            icon=":material/unfold_more:",
        )
        return [], []
    first = controls.number("block", "First block shown", 0, n_blocks - fit, min(state.get("block"), n_blocks - fit))
    st.info(
        f"With {n_tokens} tokens, all {n_blocks} × {n_heads} heads would be "
        f"{bertviz_views.estimate_bytes(n_blocks, n_heads, n_tokens, view) / 2**20:.0f} MB. Blocks {first} to "
        f"{first + fit - 1}" + (f", heads 0 to {len(heads) - 1}" if len(heads) < n_heads else "") + " are drawn.",
        icon=":material/unfold_more:",
    )
    return list(range(first, first + fit)), heads


def matrix(shown: Shown) -> None:
    """One head, or several combined, as a matrix of exact values; what chosen query tokens look at together."""
    values, title = _chosen_matrix(shown)
    with st.container(horizontal=True):
        words = controls.switch("merge_words", "Whole words", "Subwords merged: sums over keys, means over queries.")
        special = controls.choice(
            "special_tokens",
            "Special tokens",
            {"shown": "shown", "hidden": "hidden", "renormalised": "hidden, rows to 1"},
        )
    labels, special_mask, second = shown.pieces, shown.special, analysis.second_text(shown.sentence)
    if words:
        merged = analysis.merge_words(values, shown.sentence)
        values, labels, special_mask, second = merged.matrix, list(merged.labels), merged.special, merged.second
    places = np.arange(len(labels))
    if special != "shown":
        values = analysis.without_special(values, special_mask, special == "renormalised")
        places, second = places[~special_mask], second[~special_mask]
    which = cast("Which", state.get("texts_filter")) if shown.sentence.pair is not None else "all"
    part = analysis.select_pair(values, second, which)
    rows = matrices.axis_labels([labels[places[at]] for at in part.queries], places[list(part.queries)].tolist())
    columns = matrices.axis_labels([labels[places[at]] for at in part.keys], places[list(part.keys)].tolist())
    sums = np.nansum(part.matrix, axis=1)
    note = (
        "Rows sum to 1." if np.allclose(sums, 1, atol=1e-3) else f"Rows sum to {sums.min():.2f} up to {sums.max():.2f}."
    )
    strongest = np.unravel_index(int(np.nanargmax(part.matrix)), part.matrix.shape)
    feedback.figure(
        matrices.token_matrix(
            part.matrix,
            rows,
            columns,
            title,
            rows="query",
            columns="key",
            value="attention",
            limits=(0.0, float(np.nanmax(part.matrix))),
            show_values=len(rows) <= 9,
            scale=controls.scale(),
        ),
        key="head_matrix",
        alt=f"{title}: attention of {len(rows)} query tokens to {len(columns)} key tokens",
        message=feedback.escape(
            f"{rows[strongest[0]]} looks most at {columns[strongest[1]]} ({part.matrix[strongest]:.2f}). {note}"
        ),
        read="Rows are the tokens that look (queries), columns those that are looked at (keys). Hover for exact values.",
        not_shown=BERTVIZ_NOT_SHOWN,
        table=lambda: pd.DataFrame(part.matrix.round(5), columns=columns).assign(query=rows)[["query", *columns]],
    )
    _received(part.matrix, rows, columns)


def _chosen_matrix(shown: Shown) -> tuple[np.ndarray, str]:
    n_blocks, n_heads = shown.attentions.shape[:2]
    how = controls.choice(
        "combination", "Heads", {"one": "One head", "mean": "Mean of several", "max": "Maximum of several"}
    )
    if how == "one":
        left, right = st.columns(2)
        with left:
            block = controls.number("block", "Block", 0, n_blocks - 1, 0)
        with right:
            head = controls.number("head", "Head", 0, n_heads - 1, 0)
        return shown.attentions[block, head], f"Block {block}, head {head}"
    left, right = st.columns(2)
    with left:
        blocks = controls.several("chosen_blocks", "Blocks (none: all)", n_blocks)
    with right:
        heads = controls.several("chosen_heads", "Heads (none: all)", n_heads)
    name = {"mean": "Mean", "max": "Maximum"}[how]
    values = analysis.combine(shown.attentions, blocks, heads, how)  # type: ignore[arg-type]  # the control's own options
    return values, f"{name} of {len(heads)} heads in {len(blocks)} blocks"


def _received(values: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> None:
    chosen = [place for place in state.get("queries") if place < len(rows)]
    st.session_state["w_queries"] = chosen
    st.multiselect(
        "Sum the rows of some query tokens",
        range(len(rows)),
        format_func=lambda place: rows[place],
        key="w_queries",
        on_change=lambda: state.put("queries", tuple(st.session_state["w_queries"])),
        placeholder="Choose tokens to see what they look at together",
    )
    if not chosen:
        return
    received = analysis.received_from(values, chosen)
    names = ", ".join(rows[place] for place in chosen)
    feedback.figure(
        matrices.key_bars(received, columns, f"What {len(chosen)} query tokens look at", controls.scale()),
        key="received",
        alt=f"Bars: attention from {names} to each token",
        read="The chosen rows of the matrix above, added up.",
        not_shown=BERTVIZ_NOT_SHOWN,
        table=lambda: pd.DataFrame({"key": list(columns), "attention": received}),
    )


def glance(shown: Shown) -> None:
    """Every head as a small matrix in one picture; a click opens it."""
    n_blocks, n_heads, n_tokens, _ = shown.attentions.shape
    values = shown.attentions
    if values.size > MAX_BYTES:
        factor = int(np.ceil(np.sqrt(values.size / MAX_BYTES)))
        values = matrices.shrink(values, factor)
        st.caption(f"{n_tokens} tokens are many: each cell is the strongest of {factor} × {factor}.")
    hints = [
        f"Block {block}, head {head}: {_strongest(shown.attentions[block, head], shown.pieces)}. Click to open it."
        for block in range(n_blocks)
        for head in range(n_heads)
    ]
    # The square root lifts the many small values out of the dark.
    head_tiles(
        np.sqrt(values),
        "glance",
        hints,
        open_head,
        label=f"{n_blocks} by {n_heads} heads, each a small attention matrix; arrow keys move, Enter opens",
        selected=(shown.block, shown.head),
        scale=controls.scale(),
    )
    feedback.reading(
        "Each tile is one head: queries down, keys across, brighter is more attention (square root). A diagonal line: the "
        "token before, itself or the next; a vertical line: everybody looks at one token.",
        BERTVIZ_NOT_SHOWN,
    )


def _strongest(values: np.ndarray, pieces: Sequence[str]) -> str:
    key = int(values.mean(axis=0).argmax())
    return f"looks most at {pieces[key]} ({values.mean(axis=0)[key]:.2f} on average)"
