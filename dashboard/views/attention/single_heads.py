"""The sections of the Attention page that show attentions as they are: bertviz's views, matrix, all heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

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
    from components.charts.bertviz.views import Filter
    from components.model.backend import Backend
    from components.model.inside import InsideBlocks
    from components.model.trace import TokenizedSentence, Trace
    from dashboard.ui.pair_choice import Pair

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
        """The chosen block, or the first where the model has fewer."""
        return int(state.get("block")) if state.get("block") < self.attentions.shape[0] else 0

    @property
    def head(self) -> int:
        return int(state.get("head")) if state.get("head") < self.attentions.shape[1] else 0

    @property
    def which(self) -> TextsFilter:
        """The texts of a pair that are looked at: from which to which."""
        return cast("TextsFilter", state.get("texts_filter")) if self.sentence.pair is not None else "all"

    def inside(self) -> InsideBlocks:
        """Queries, keys and values of the same input; its attentions are here already."""
        length = controls.length_for(self.backend)
        return self.backend.inside(self.pair.first, self.pair.second, max_length=length, attentions=False)


def open_head(block: int, head: int) -> None:
    """Show a head in the matrix view, alone."""
    state.put("block", block)
    state.put("head", head)
    state.put("combination", "one")
    state.put("attention_view", "matrix")


def bertviz(shown: Shown, view: View) -> None:
    """bertviz's head, model or neuron view in an iframe, or the offer of a smaller one where it is too large."""
    n_blocks, n_heads, n_tokens, _ = shown.attentions.shape
    blocks, heads = list(range(n_blocks)), list(range(n_heads))
    head_dim = shown.backend.facts.hidden_size // n_heads
    size = views.estimate_bytes(len(blocks), len(heads), n_tokens, view, head_dim)
    if size > views.MAX_BYTES:
        blocks, heads = _smaller(view, n_blocks, n_heads, n_tokens, head_dim)
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
            height=views.frame_height(view, n_tokens, len(blocks), n_heads),
            alt=f"bertviz {names[view]}: attention between the tokens {' '.join(shown.pieces[:40])}",
        )
    with right:
        figures.reading(HOW_TO[view], BERTVIZ_NOT_SHOWN, stacked=view == "head")


HOW_TO = {
    "head": "Lines go from a token (left, the query) to those it looks at (right, the keys); the stronger, the more "
    "attention. Each colour is a head: click a colour to switch it, double-click for that one alone, hover a token.",
    "model": "Each small picture is one head: rows are blocks, columns are heads. Click one to enlarge it. Look for "
    "shapes: parallel lines are neighbours or the tokens themselves, a fan into one token is mostly [CLS] or [SEP].",
    "neuron": "Click the + beside a token: its query vector times each key vector, dimension by dimension, sums to the "
    "score (scaled, it goes through softmax to become attention; MPNet also adds the distance). Blue is positive, orange "
    "negative.",
}


def _document(
    shown: Shown, view: str, blocks: Sequence[int], heads: Sequence[int], second: int | None, dark: bool
) -> str:
    if view == "head":
        return views.head_view(
            shown.attentions,
            shown.pieces,
            second_start=second,
            blocks=blocks,
            heads=heads,
            dark=dark,
            block=shown.block if shown.block in blocks else blocks[0],
            filter=_filter(second),
        )
    if view == "model":
        return views.model_view(
            shown.attentions,
            shown.pieces,
            second_start=second,
            blocks=blocks,
            heads=heads,
            dark=dark,
            filter=_filter(second),
        )
    inside = shown.inside()
    return views.neuron_view(
        shown.attentions,
        inside.queries,
        inside.keys,
        shown.pieces,
        second_start=second,
        blocks=blocks,
        heads=heads,
        dark=dark,
        block=shown.block if shown.block in blocks else blocks[0],
        head=shown.head if shown.head in heads else heads[0],
        filter=_filter(second),
    )


def _filter(second: int | None) -> Filter:
    return cast("Filter", state.get("texts_filter") if second is not None else "all")


def _smaller(view: View, n_blocks: int, n_heads: int, n_tokens: int, head_dim: int) -> tuple[list[int], list[int]]:
    """Ask which blocks to draw when all are too many; empty when not even one fits."""

    def fits(blocks: int, heads: int) -> bool:
        return views.estimate_bytes(blocks, heads, n_tokens, view, head_dim) <= views.MAX_BYTES

    heads = next((count for count in range(n_heads, 0, -1) if fits(1, count)), 0)
    if not heads:
        st.warning(
            f"{n_tokens} tokens are too many for this view: even one head would be more than 8 MB. The matrix and the "
            "patterns still work; or lower the maximum length in the sidebar.",
            icon=":material/unfold_more:",
        )
        return [], []
    count = next(number for number in range(n_blocks, 0, -1) if fits(number, heads))
    first = controls.number("block", "First block drawn", 0, n_blocks - count, 0)
    blocks = f"block {first}" if count == 1 else f"blocks {first} to {first + count - 1}"
    only = "" if heads == n_heads else f", heads 0 to {heads - 1},"
    st.info(
        f"{n_tokens} tokens are too many to draw all {n_blocks} blocks at once: {blocks}{only} are drawn. At most 8 MB "
        "are sent to the browser.".replace(
            f"{blocks} are", f"{blocks} is" if count == 1 and not only else f"{blocks} are"
        ),
        icon=":material/unfold_more:",
    )
    return list(range(first, first + count)), list(range(heads))


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
    positions = np.arange(len(labels))
    if special != "shown":
        values = analysis.without_special(values, special_mask, renormalise=False)
        positions, second = positions[~special_mask], second[~special_mask]
    part = analysis.select_pair(values, second, shown.which)
    shares = part.matrix
    if special == "renormalised":  # last, so that what is shown is a whole
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = shares / shares.sum(axis=1, keepdims=True)
    if not shares.size or np.isnan(shares).all():
        st.info("Nothing is left to show: this text has no tokens of its own. Show the special tokens, or type more.")
        return
    rows = [f"{positions[row]} {labels[positions[row]]}" for row in part.queries]
    columns = [f"{positions[row]} {labels[positions[row]]}" for row in part.keys]
    sums = np.nansum(shares, axis=1)
    note = (
        "Rows sum to 1." if np.allclose(sums, 1, atol=1e-3) else f"Rows sum to {sums.min():.2f} up to {sums.max():.2f}."
    )
    strongest = np.unravel_index(int(np.nanargmax(shares)), shares.shape)
    figures.figure(
        matrices.token_matrix(
            shares,
            rows,
            columns,
            title,
            rows="query",
            columns="key",
            value="attention",
            limits=(0.0, float(np.nanmax(shares))),
            show_values=len(rows) <= 9,
            scale=controls.scale(),
        ),
        key="head_matrix",
        alt=f"{title}: attention of {len(rows)} query tokens to {len(columns)} key tokens",
        message=messages.escape(
            f"{rows[strongest[0]]} looks most at {columns[strongest[1]]} ({shares[strongest]:.2f}). {note}"
        ),
        read="Rows are the tokens that look (queries), columns those that are looked at (keys). Hover for exact values.",
        not_shown=BERTVIZ_NOT_SHOWN,
        table=lambda: pd.DataFrame(shares.round(5), columns=columns).assign(query=rows)[["query", *columns]],
    )
    _received(shares, rows, columns, [int(positions[row]) for row in part.queries], shown.pair)


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
    return values, f"{name} of {_count(len(heads), 'head')} in {_count(len(blocks), 'block')}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _received(
    values: np.ndarray, rows: Sequence[str], columns: Sequence[str], positions: Sequence[int], pair: Pair
) -> None:
    """Chosen rows added up. The choice is of tokens, by position: it holds when rows are hidden, not for another text."""
    if st.session_state.setdefault("_queries_of", pair) != pair:
        state.put("queries", ())
        st.session_state["_queries_of"] = pair
    names = dict(zip(positions, rows, strict=True))
    picked = controls.bind(
        "queries",
        st.multiselect,
        "Add up the rows of some query tokens",
        options=names,
        shown=lambda queries: tuple(position for position in queries if position in names),  # others are hidden now
        placeholder="Choose tokens to see what they look at together",
    )
    if not picked:
        return
    chosen = [positions.index(query) for query in picked]
    received = analysis.received_from(values, chosen)
    said = ", ".join(names[query] for query in picked)
    figures.figure(
        matrices.key_bars(received, columns, "What the chosen tokens look at", controls.scale()),
        key="received",
        alt=f"Bars: attention from {said} to each token",
        read="The chosen rows of the matrix above, added up.",
        not_shown=BERTVIZ_NOT_SHOWN,
        table=lambda: pd.DataFrame({"key": list(columns), "attention": received}),
    )


def glance(shown: Shown) -> None:
    """Every head as a small matrix in one picture; a click opens it."""
    n_blocks, n_heads, n_tokens, _ = shown.attentions.shape
    links = analysis.pair_mask(shown.sentence, shown.which)
    linked = shown.attentions if links.all() else np.where(links, shown.attentions, np.float32(0))
    values, factor = linked, 1
    while n_blocks * n_heads * (-(-n_tokens // factor)) ** 2 > MAX_CELLS:
        factor += 1
    if factor > 1:
        values = matrices.shrink(values, factor)
        st.caption(f"{n_tokens} tokens are many: each cell is the strongest of {factor} × {factor}.")
    if shown.which != "all":
        st.caption(f"Only attention from {FILTERS[shown.which]} is drawn; the rest of each tile is empty.")
    hints = [
        f"Block {block}, head {head}: {_strongest(linked[block, head], shown.pieces)}. Click to open it."
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
    figures.reading(
        "Each tile is one head: queries down, keys across, brighter is more attention (square root). A diagonal line: the "
        "token before, itself or the next; a vertical line: everybody looks at one token.",
        BERTVIZ_NOT_SHOWN,
    )


def _strongest(values: np.ndarray, pieces: Sequence[str]) -> str:
    received = values.mean(axis=0)
    key = int(received.argmax())
    return f"looks most at {key} {pieces[key]} ({received[key]:.2f} on average)"
