"""Attention in texts whose attentions are too many to be kept: one head at a time, in cells of several tokens."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import streamlit as st

from components import numbers
from components.analysis.attention.overview import Reduction, attention_overview, attention_row
from components.charts import matrices
from components.jobs import Stopped
from components.shown_code.attention import of_one_head, of_one_query
from components.sizes import in_words
from dashboard import caching
from dashboard.jobs import requests
from dashboard.ui import controls, figures, messages, pair_choice, wording
from dashboard.views.attention.head_choice import BLOCK_HELP, forget_of_other_texts

if TYPE_CHECKING:
    from components.arrays import Float64
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.model.one_block.queries_and_keys import QueriesAndKeys
    from components.model.trace import TokenizedSentence
    from dashboard.ui.pair_choice import InputPair

CELLS = 256  # rows and columns of the overview at most: 65,536 numbers, some 0.5 MB for the browser
MOST_KEYS = 24  # drawn of one query's row
LEAST_REACH = 4  # cells of several tokens: the borders of a narrower window would hide what lies between them
HOW = {"max": "Largest", "mean": "Mean"}


def one_head(backend: Backend, pair: InputPair, sentence: TokenizedSentence, row: Any, *, are_two: bool) -> None:
    """One head's attention as an overview, and the exact attention of one query; the limit is said before the work starts.

    `are_two`: the view can show a second text too.
    """
    facts, tokens = backend.facts, len(sentence)
    factor = -(-tokens // CELLS)
    with row:
        block = controls.stepped("block", "Block", 0, facts.layers - 1, 0, BLOCK_HELP)
        head = controls.stepped("head", "Head", 0, facts.heads - 1, 0)
        with controls.options():
            if are_two:
                pair_choice.choose_second()
            how = cast(
                "Reduction",
                controls.choice(
                    "long_cells", "A cell shows", HOW, "The largest attention among the cell's tokens, or their mean."
                ),
            )
    st.info(
        f"**{tokens:,} tokens are too many for all heads at once:** hidden states and all attentions would take "
        f"{in_words(backend.bytes_with_attentions(tokens), binary=True)}, and this server keeps at most "
        f"{in_words(backend.store.limit, binary=True)}. "
        f"One head at a time is shown, in cells of {factor} × {factor} tokens; later blocks take longer. The other views need "
        "a shorter text, or a lower maximum length under “More settings”.",
        icon=":material/unfold_more:",
    )
    length = controls.length_for(backend)
    key = (backend.spec.key, backend.revision, pair.first, pair.second, length, block)

    def read(report: ReportProgress, is_stopped: IsStopped) -> QueriesAndKeys:
        return backend.queries_and_keys(pair.first, pair.second, block, length, report, is_stopped)

    vectors = requests.latest(
        ("queries and keys", *key),
        f"Reading {tokens:,} tokens up to block {block}",
        read,
        "long_text",
        "reading a long text",
        "blocks",
        view="long_text",
        jobs=caching.long_texts(),
    )
    found = requests.latest(
        ("overview", *key, head, how),
        f"Attention of block {block}, head {head}",
        partial(_overview, vectors, head, factor, how),
        "long_overview",
        "computing the attention of a head",
        view="long_text",
        jobs=caching.long_texts(),
    )
    _draw(pair, backend, vectors, found, head, factor, how)
    _row(pair, backend, vectors, head)


def _overview(
    vectors: QueriesAndKeys,
    head: int,
    factor: int,
    how: Reduction,
    report: ReportProgress,
    is_stopped: IsStopped,
) -> Float64:
    arrays = vectors.queries[head], vectors.keys[head]
    found = attention_overview(*arrays, vectors.score_scale, vectors.window, factor, how, is_stopped)
    if is_stopped():
        raise Stopped
    return found


def _draw(
    pair: InputPair,
    backend: Backend,
    vectors: QueriesAndKeys,
    found: Float64,
    head: int,
    factor: int,
    how: Reduction,
) -> None:
    tokens, block = len(vectors.sentence), vectors.block
    labels = wording.cell_labels(tokens, factor)
    window = tokens if vectors.window is None else vectors.window
    reach = (window + 0.5) / factor
    is_local = window < tokens - 1
    borders = matrices.coarse_borders(len(found), reach) if is_local and (factor == 1 or reach >= LEAST_REACH) else []
    seen = wording.window_of(backend.structure, block, tokens)
    if is_local and not borders:
        seen += f" Here that is the diagonal and {wording.counted(math.ceil(reach), 'cell')} on either side of it."
    title = f"Block {block}, head {head}: {tokens:,} × {tokens:,} tokens"
    shown = np.sqrt(found)
    figures.matrix(
        shown,
        labels,
        labels,
        title,
        key="long_attention",
        code=of_one_head(pair.input(backend), block, head, factor, how),
        alt=f"{title}, in cells of {factor} by {factor} tokens",
        message=seen,
        rows="query",
        columns="key",
        value=f"square root of the {HOW[how].lower()} attention",
        limits=(0.0, float(shown.max())),
        borders=borders,
        read=f"Rows are queries, columns are keys; a cell holds {factor} × {factor} tokens and shows the "
        f"{'largest' if how == 'max' else 'mean'} of their attentions. The square root makes small values visible."
        + (" Between the orange lines lies the window of this block." if borders else ""),
        not_shown="Which of a cell's tokens gets the attention: see the figure below for one query.",
    )


def _row(pair: InputPair, backend: Backend, vectors: QueriesAndKeys, head: int) -> None:
    """The exact attention of one query to the keys that get most of it."""
    tokens = vectors.sentence.tokens
    forget_of_other_texts("score_query", pair)
    query = int(
        controls.bind(
            "score_query",
            st.number_input,
            "Query: the position of a token",
            default=1,
            min_value=0,
            max_value=len(tokens) - 1,
            step=1,
            key="w_long_query",
            width=220,
        )
    )
    row = attention_row(vectors.queries[head], vectors.keys[head], vectors.score_scale, vectors.window, query)
    strongest = np.argsort(-row, kind="stable")[:MOST_KEYS]
    keys = np.sort(strongest[row[strongest] > 0])  # beyond a window there is none
    pieces = [token.piece for token in tokens]
    labels = matrices.axis_labels(pieces, keys.tolist())
    most = int(row.argmax())
    figures.figure(
        matrices.key_bars(row[keys], labels, f"What “{pieces[query][:20]}” (position {query}) attends to"),
        key="long_row",
        code=of_one_query(pair.input(backend), vectors.block, head, query, keys.tolist()),
        alt=f"Bars: the {len(keys)} keys that get most attention from the token at position {query}",
        message=f"“{messages.escape(pieces[query])}” attends most to “{messages.escape(pieces[most])}” at position {most} "
        f"({numbers.number(row[most])}). The {len(keys)} keys drawn get {100 * row[keys].sum():.0f} % of its attention.",
        read="The exact attention of one token, without cells: the keys that get most of it, in the order of the text.",
        not_shown="How much of a key's vector is added: that also depends on its value vector.",
        table=lambda: pd.DataFrame({"key": labels, "attention": row[keys].round(6)}),
    )
