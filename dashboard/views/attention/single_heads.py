"""What shows the attentions themselves: bertviz's views, matrix, all heads."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.attention import weights as analysis
from components.charts import matrices
from components.charts.bertviz import views
from components.charts.stand_alone.page import Frame, PagePart
from components.numbers import apart, number, percent
from components.shown_code.attention import AttentionMatrix
from components.sizes import in_words
from dashboard import state
from dashboard.sharing import report
from dashboard.ui import controls, figures, messages, wording
from dashboard.views.attention import findings
from dashboard.views.attention.head_choice import (
    KIND_COLOURS,
    NOT_SHOWN,
    AttentionInput,
    choose_block,
    choose_head,
    options,
    said_of_head,
    show_me,
    word_to_begin_with,
)

if TYPE_CHECKING:
    from components.analysis.attention.head_kinds import HeadKinds
    from components.arrays import Float32
    from components.charts.bertviz.page import View
    from components.shown_code.code import AnyCode
    from dashboard.ui.pair_choice import InputPair

NUMBERED = 16  # tokens of a matrix whose cells have room for numbers
NUMBERED_ON_A_PHONE = 9  # with more, only the numbers from STRONG on
STRONG = 0.15
FRAME_HEIGHT = 560  # pixels of a bertviz view at most, unless that makes its type too small
STRONGEST = 11  # lines of a head that are named beside the head view
WEAK = 0.15  # of its token's attention: a weaker line is drawn only if it is the token's strongest
WEAK_HELP = (
    "Without them, the head view draws the lines of 15 % or more and the strongest line of each token; pointing at a token "
    "shows all of its lines."
)
MOST_IN_REPORT = 3 << 20  # characters of a bertviz view
HOW_TO = {
    "head": "Lines go from a token (left, the query) to the tokens that it attends to (right, the keys). A strong line "
    "means much attention. Each colour is a head: click a number to switch its head on or off; double-click it to "
    "show that head alone, or all heads again. Hover over a token to see its lines.",
    "model": "Each small picture is one head: rows are blocks, columns are heads, and its colour is what it does with most of "
    "its attention. Lines go from the token that looks, at the left, to what it looks at. Click a picture to enlarge it. Look "
    "for shapes: parallel lines go to the same or neighbouring tokens; many lines into one token often go to [CLS] or [SEP].",
    "neuron": "Point at a token on the left to see its query. The query times each key, dimension by dimension, sums to "
    "the score. Softmax turns the scaled scores into attention{exceptions}, which stands at the right. Blue is positive, "
    "orange is negative. Click − to see all tokens' attention as lines, and + to see the vectors again.",
}


def head_view(model_input: AttentionInput, row: Any) -> None:
    """bertviz's head view."""
    _bertviz(model_input, "head", row)


def model_view(model_input: AttentionInput, row: Any) -> None:
    """bertviz's model view."""
    _bertviz(model_input, "model", row)


def neuron_view(model_input: AttentionInput, row: Any) -> None:
    """bertviz's neuron view."""
    _bertviz(model_input, "neuron", row)


def _bertviz(model_input: AttentionInput, view: View, row: Any) -> None:
    """bertviz's head, model or neuron view in an iframe, with fewer blocks and heads if all would be too large."""
    sent = _sent(model_input, view)
    n_blocks, n_heads, n_tokens, _ = model_input.attentions.shape
    with row:
        if view != "model":
            choose_block(model_input)
            choose_head(model_input)
        elif sent is not None and sent[0] < n_blocks:
            most = n_blocks - sent[0]  # a later block chosen in another view stays chosen there
            controls.stepped(
                "block",
                "First block drawn",
                0,
                most,
                min(model_input.opening[0], most),
                to_widget=lambda block: min(block, most),
            )
        with options(model_input):
            if view != "model":
                show_me(model_input)
            if view == "head":
                controls.switch("weak_lines", "Weak lines too", WEAK_HELP)
    if sent is None:
        st.warning(
            f"{n_tokens} tokens are too many for this view: even one head would be more than 8 MiB. Use the matrix or the "
            "patterns, or lower the maximum length under “More settings”.",
            icon=":material/unfold_more:",
        )
        return
    blocks, heads = (
        range(min(first, total - count), min(first, total - count) + count)
        for first, count, total in zip((model_input.block, model_input.head), sent, (n_blocks, n_heads), strict=True)
    )
    scale = controls.scale()
    width = (640 if view == "head" else 1020) * scale
    height = FRAME_HEIGHT + (60 if view == "model" and scale > 1 else 0)  # on a projector, without the row of patterns
    zoom = views.fitting_zoom(view, n_tokens, len(blocks), n_heads, width, height)
    names = {"head": "Head view", "model": "Model view", "neuron": "Neuron view"}
    how_to = HOW_TO[view].format(exceptions=_exceptions(model_input)) if view == "neuron" else HOW_TO[view]
    if view == "head":
        _above_head_view(model_input, how_to)
    else:
        figures.finding(_message(model_input, view), key=f"{view}_view", read=how_to, not_shown=NOT_SHOWN)
    if view == "model" and model_input.kinds is not None:
        figures.markup(_key_of_kinds(model_input.kinds, html.escape(model_input.special_names)), "model_view_kinds")
    tall = views.frame_height(view, n_tokens, len(blocks), n_heads, zoom)
    alt = f"bertviz {names[view]}: attention between the tokens {' '.join(model_input.pieces[:40])}"
    is_dark = controls.is_dark()
    document = _document(model_input, view, blocks, heads, zoom, is_dark)
    place = st.container()
    if view == "head":
        with st.container(key="beside_head_view"):
            place, beside = st.columns([3, 2], gap="medium")
        with beside:
            _strongest(model_input)
    with place:
        st.iframe(document, height=tall, alt=alt)
    if report.is_collecting():
        of_report = _document(model_input, view, blocks, heads, zoom, False) if is_dark else document
        report.add("bertviz", _part_of_report(model_input, Frame(of_report, tall, alt), view))
    is_part = view == "model" and len(blocks) < n_blocks
    if is_part or (view != "neuron" and len(heads) < n_heads):
        st.info(
            f"{n_tokens} tokens are too many to draw everything at once. This view draws only "
            f"{_range('block', blocks)} with {_range('head', heads)}, because at most 8 MiB are sent to the browser.",
            icon=":material/unfold_more:",
        )


def _key_of_kinds(kinds: HeadKinds, specials: str) -> str:
    """The colours of the kinds that the heads of this text have, as HTML."""
    found = {name for row in kinds.names for name in row}
    marks = "".join(
        f'<span style="white-space: nowrap"><em style="background: {colour}; display: inline-block"></em> '
        f"{findings.does(kind, specials)}</span>"
        for kind, colour in KIND_COLOURS.items()
        if kind in found
    )
    return f'<div class="bi-kinds"><p class="key" style="flex-wrap: wrap; border: 0">{marks}</p></div>'


def _above_head_view(model_input: AttentionInput, how_to: str) -> None:
    """The line above the head view; what is shared is the head that it opens with, as a matrix."""
    block, head, part = model_input.block, model_input.head, _opened(model_input)
    labels = matrices.axis_labels(model_input.pieces)

    def table() -> pd.DataFrame:
        frame = pd.DataFrame(part.matrix.round(5), columns=[labels[key] for key in part.keys])
        frame.insert(0, "query", [labels[query] for query in part.queries])
        return frame

    figures.above(
        _message(model_input, "head"),
        key="head_view",
        place="iframe",
        table=table,
        code=AttentionMatrix(
            model_input.pair.input(model_input.backend), [block], [head], "one", part.queries, part.keys
        ).code(),
        title=f"Block {block}, head {head}",
        read=how_to,
        not_shown=NOT_SHOWN,
    )


def _opened(model_input: AttentionInput) -> analysis.PairAttention:
    """The attentions of the head with which a view opens."""
    second = analysis.second_text(model_input.sentence)
    return analysis.select_pair(
        model_input.attentions[model_input.block, model_input.head], second, model_input.direction
    )


def _strongest(model_input: AttentionInput) -> None:
    """The strongest lines that the head view draws of the head with which it opens, with their numbers."""
    part, lines = _opened(model_input), ""
    for query, key in strongest_drawn(part.matrix, _least_drawn()):
        names = [f"<bdi>{html.escape(model_input.pieces[of])}</bdi>" for of in (part.queries[query], part.keys[key])]
        share = float(part.matrix[query, key])
        lines += (
            f'<p><span>{" → ".join(names)}</span><i style="--share: {100 * share:.0f}%"></i><b>{percent(share)}</b></p>'
        )
    if lines:
        title = f"Strongest lines of block {model_input.block}, head {model_input.head}"
        figures.markup(f'<div class="bi-kinds"><h6>{title}</h6>{lines}</div>', "head_view_lines")


def strongest_drawn(matrix: Float32, least: float) -> list[tuple[int, int]]:
    """The places [query, key] of a head's strongest lines among those that page.js draws: of `least` or more, or a token's
    strongest."""
    if not matrix.size:
        return []
    is_drawn = (matrix > 0) & ((matrix >= least) | (matrix == matrix.max(axis=1, keepdims=True)))
    places = np.argwhere(is_drawn)
    order = np.argsort(-matrix[is_drawn], kind="stable")[:STRONGEST]
    return [(query, key) for query, key in places[order].tolist()]


def _least_drawn() -> float:
    """The share of its token's attention from which on the head view draws every line."""
    return 0.0 if state.get("weak_lines") else WEAK


def _message(model_input: AttentionInput, view: View) -> str:
    """What the view says of the text: of all heads, or of the one on display."""
    if view == "model":
        if model_input.kinds is None:
            return ""
        return findings.of_kinds(model_input.kinds, messages.escape(model_input.special_names))
    said = said_of_head(model_input)
    return said if view == "head" else f"{said} {_opened_product(model_input)}".strip()


def _exceptions(model_input: AttentionInput) -> str:
    """What else makes attention of queries and keys in this model and block, in brackets; empty if nothing does."""
    structure = model_input.backend.structure
    window = structure.windows[model_input.block]
    parts = []
    if structure.rotates:
        parts.append("queries and keys are shown after rotation by their positions")
    if structure.adds_to_scores:
        parts.append(
            f"{structure.title} also adds {'terms' if structure.has_disentangled_terms else 'a term'} for the distance"
        )
    if window is not None:
        parts.append(f"in this block only to tokens at most {window} positions away")
    return f" ({'; '.join(parts)})" if parts else ""


def _range(noun: str, numbers: range) -> str:
    """Numbers in words: block 0, or blocks 0 to 3."""
    return f"{noun} {numbers[0]}" if len(numbers) == 1 else f"{noun}s {numbers[0]} to {numbers[-1]}"


def _sent(model_input: AttentionInput, view: View) -> tuple[int, int] | None:
    """How many blocks and heads to send: of the head view one block, of the neuron view one head, of the model view all.

    Fewer if that would be too large; None if not even one head fits.
    """
    n_blocks, n_heads, n_tokens, _ = model_input.attentions.shape
    head_dim = model_input.backend.head_size

    def fits(blocks: int, heads: int) -> bool:
        return views.estimate_bytes(blocks, heads, n_tokens, view, head_dim) <= views.MAX_BYTES

    heads = next((count for count in range(1 if view == "neuron" else n_heads, 0, -1) if fits(1, count)), 0)
    if not heads:
        return None
    return (next(count for count in range(n_blocks, 0, -1) if fits(count, heads)) if view == "model" else 1), heads


def _opened_query(model_input: AttentionInput, queries: Sequence[int]) -> int:
    """The row of the token with which the neuron view opens: the one of which the finding speaks, else the word of interest."""
    telling = model_input.telling_query
    position = word_to_begin_with(model_input) if telling is None else telling
    return list(queries).index(position) if position in queries else min(1, len(queries) - 1)


def _opened_product(model_input: AttentionInput) -> str:
    """What the products of the query that the neuron view shows when it opens have to do with its attention."""
    block, head, part = model_input.block, model_input.head, _opened(model_input)
    if not part.matrix.size:
        return "One of the texts has no tokens of its own."
    row = _opened_query(model_input, part.queries)
    query, keys, inside = part.queries[row], list(part.keys), model_input.inside()
    products = inside.keys[block, head][keys] @ inside.queries[block, head][query]
    most, look = int(np.argmax(part.matrix[row])), model_input.look
    is_look = model_input.telling_query == query and look is not None and look.key == keys[most]
    return findings.of_products(
        model_input.pieces[query],
        model_input.pieces[keys[most]],
        float(part.matrix[row, most]),
        products.tolist(),
        most,
        is_said=is_look and said_of_head(model_input) == model_input.head_in_words,
    )


def _part_of_report(model_input: AttentionInput, frame: Frame, view: View) -> PagePart:
    """The drawing for a report, or the chosen head as a matrix where the drawing is too large for one."""
    if len(frame.document) <= MOST_IN_REPORT:
        return PagePart(frame=frame, message=f"**bertviz, {view} view**")
    block, head, part = model_input.block, model_input.head, _opened(model_input)
    labels = matrices.axis_labels(model_input.pieces)
    chart = matrices.token_matrix(
        part.matrix,
        [labels[row] for row in part.queries],
        [labels[column] for column in part.keys],
        f"Block {block}, head {head}",
        rows="query",
        columns="key",
        value="attention",
    )
    return PagePart(
        chart,
        alt=f"Attention of block {block}, head {head} as a matrix",
        message=f"The {view} view takes {in_words(len(frame.document))}, and is left out of the report. In its place stands "
        f"the matrix of the chosen head: block {block}, head {head}.",
    )


def _document(
    model_input: AttentionInput, view: View, blocks: Sequence[int], heads: Sequence[int], zoom: float, is_dark: bool
) -> str:
    """The view as an HTML document without controls of its own, which the page has."""
    second = next((token.position for token in model_input.sentence.tokens if token.in_pair), None)
    look = model_input.look if findings.stands_out(model_input.look) and model_input.direction == "all" else None
    vectors: dict[str, Any] = {}
    if view == "model" and model_input.kinds is not None:
        vectors = {"colours": [[KIND_COLOURS[kind] for kind in row] for row in model_input.kinds.names]}
    if view == "neuron":
        inside = model_input.inside()
        structure, queries = model_input.backend.structure, _opened(model_input).queries
        scaled = "scaled, +" if structure.adds_to_scores else f"÷ √{inside.queries.shape[-1]},"
        vectors = {
            "queries": inside.queries,
            "keys": inside.keys,
            "opened": _opened_query(model_input, queries) if queries else 0,
            "step": f"{scaled} softmax",
        }
    return views.attention_page(
        view,
        model_input.attentions,
        model_input.pieces,
        second_start=second,
        blocks=blocks,
        heads=heads,
        dark=is_dark,
        head=None if view == "model" else model_input.head,
        filter=model_input.direction,
        zoom=zoom,
        least=_least_drawn() if view == "head" else 0.0,
        told=(look.query, look.key) if view == "head" and look is not None else None,
        **vectors,
    )


def matrix(model_input: AttentionInput, row: Any) -> None:
    """One head, or several combined, as a matrix of exact values, and the sum of some of its rows."""
    is_one = state.get("combination") == "one"
    with row:
        if is_one:
            choose_block(model_input)
            choose_head(model_input)
        panel = options(model_input)
    with panel:
        if is_one:
            show_me(model_input)
        values, title, chosen = _chosen_matrix(model_input)
        words = controls.switch(
            "merge_words", "Whole words", "The pieces of a word are merged: the sum over keys, the mean over queries."
        )
        special = controls.choice(
            "special_tokens",
            "Special tokens",
            {"shown": "shown", "hidden": "hidden", "renormalised": "hidden, rows sum to 1"},
        )
    labels, special_mask, second = model_input.pieces, model_input.special, analysis.second_text(model_input.sentence)
    starts: Sequence[int] = ()
    if words:
        merged = analysis.merge_words(values, model_input.sentence)
        starts = merged.starts
        values, labels, special_mask, second = merged.matrix, list(merged.labels), merged.special, merged.second
    positions = np.arange(len(labels))
    if special != "shown":
        values = analysis.without_special(values, special_mask)
        positions, second = positions[~special_mask], second[~special_mask]
    part = analysis.select_pair(values, second, model_input.direction)
    # Last, so that the rows that are drawn sum to 1.
    shares = analysis.renormalised(part.matrix) if special == "renormalised" else part.matrix
    if not shares.size or np.isnan(shares).all():
        st.info(
            "There is nothing to show: this text has no tokens of its own. Show the special tokens, or type more text."
        )
        return
    # A word of many pieces can be as long as the text.
    rows = matrices.axis_labels(labels, positions[list(part.queries)].tolist())
    columns = matrices.axis_labels(labels, positions[list(part.keys)].tolist())
    sums = np.nansum(shares, axis=1)
    sum_of_rows = (
        "Rows sum to 1."
        if np.allclose(sums, 1, atol=1e-3)
        else "Rows sum to {} at least and {} at most.".format(*apart(sums.min(), sums.max()))
    )
    code = AttentionMatrix(
        model_input.pair.input(model_input.backend),
        *chosen,
        [int(place) for place in positions[list(part.queries)]],
        [int(place) for place in positions[list(part.keys)]],
        special == "renormalised",
        starts,
    ).code
    query, key = np.unravel_index(int(np.nanargmax(shares)), shares.shape)
    window = None if words else _window(model_input, chosen[0])
    queries, keys = ([int(positions[place]) for place in places] for places in (part.queries, part.keys))
    borders = [] if window is None else matrices.window_borders(queries, keys, window)
    is_whole = is_one and special == "shown" and not words
    message = said_of_head(model_input) if is_whole else ""
    if not message:
        most = number(shares[query, key], 2)
        message = messages.escape(f"“{rows[query]}” attends most to “{columns[key]}” ({most}).")
    seen = (
        wording.window_of(model_input.backend.structure, model_input.block, len(model_input.pieces)) if is_one else ""
    )
    is_wide = len(columns) > NUMBERED_ON_A_PHONE
    with st.container(key="wide_cells" if is_wide else "narrow_cells"):
        figures.matrix(
            shares,
            rows,
            columns,
            title,
            key="head_matrix",
            code=code(),
            alt=f"{title}: attention of {len(rows)} query tokens to {len(columns)} key tokens",
            rows="query",
            columns="key",
            value="attention",
            limits=(0.0, float(np.nanmax(shares))),
            pale=True,
            show_values=max(len(rows), len(columns)) <= NUMBERED,
            small_from=STRONG if is_wide and max(len(rows), len(columns)) <= NUMBERED else None,
            colour_bar="above" if is_wide else True,
            borders=borders,
            message=" ".join(filter(None, (message, seen))),
            read="Rows are the tokens that attend (queries). Columns are the tokens that they attend to (keys). Hover for "
            f"exact values. {sum_of_rows}"
            + (" Orange lines are the borders of the block's window: beyond them attention is 0." if borders else ""),
            not_shown=NOT_SHOWN,
        )
    _received(shares, rows, columns, [int(positions[query]) for query in part.queries], model_input.pair, code)


def _window(model_input: AttentionInput, blocks: Sequence[int]) -> int | None:
    """The furthest distance at which any of these blocks attends; None if one of them attends at any."""
    windows = [model_input.backend.structure.windows[block] for block in blocks]
    known = [window for window in windows if window is not None]
    return max(known) if len(known) == len(windows) else None


def _chosen_matrix(model_input: AttentionInput) -> tuple[np.ndarray, str, tuple[Sequence[int], Sequence[int], Any]]:
    """The attentions of the chosen head, or of several combined, their title, and blocks, heads and how they are combined."""
    n_blocks, n_heads = model_input.attentions.shape[:2]
    combination = controls.choice(
        "combination", "Heads", {"one": "One head", "mean": "Mean of several", "max": "Maximum of several"}
    )
    if combination == "one":
        block, head = model_input.block, model_input.head
        return model_input.attentions[block, head], f"Block {block}, head {head}", ([block], [head], "one")
    blocks = controls.several("chosen_blocks", "Blocks (none: all)", n_blocks)
    heads = controls.several("chosen_heads", "Heads (none: all)", n_heads)
    name = {"mean": "Mean", "max": "Maximum"}[combination]
    values = analysis.combine(model_input.attentions, blocks, heads, combination)  # type: ignore[arg-type]  # one of the options
    title = f"{name} of {_count(len(heads), 'head')} in {_count(len(blocks), 'block')}"
    return values, title, (blocks, heads, combination)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _received(
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    positions: Sequence[int],
    pair: InputPair,
    code: Callable[..., AnyCode],
) -> None:
    """The sum of chosen rows; `code` makes the code of the matrix.

    The choice names tokens by position: it is kept when rows are hidden, not for a new text.
    """
    texts_key = state.texts_key("queries")
    if st.session_state.setdefault(texts_key, pair) != pair:
        state.put("queries", ())
        st.session_state[texts_key] = pair
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
    numbers = [positions.index(query) for query in chosen]
    received = analysis.received_from(values, numbers)
    figures.figure(
        matrices.key_bars(received, columns, "What the chosen tokens attend to"),
        key="received",
        code=code(numbers),
        alt=f"Bars: attention from {', '.join(names[query] for query in chosen)} to each token",
        read="The sum of the chosen rows of the matrix above.",
        not_shown=NOT_SHOWN,
        table=lambda: pd.DataFrame({"key": list(columns), "attention": received}),
    )
