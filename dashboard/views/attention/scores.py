"""Attention scores: what the score of a query and a key is summed from, and how positions enter it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.attention import rotation
from components.analysis.attention.scores import HeadScores, head_scores
from components.charts import matrices, theme
from components.charts.inside_blocks import rotation as rotation_charts
from components.charts.inside_blocks import scores as charts
from components.numbers import apart, percent
from components.shown_code.code import Code, Command
from components.shown_code.inside import Inside
from components.shown_code.written import literal
from dashboard.ui import controls, figures, messages, wording
from dashboard.views.attention.head_choice import (
    AttentionInput,
    choose_block,
    choose_head,
    options,
    position_choice,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.model.inside import InsideBlocks

MOST_KEYS = 32  # drawn: those that get most attention
MOST_ROWS = 300  # of one part's matrix: four of them are 360,000 cells, some 3 MB for the browser
LEAST_ABOVE = 0.005  # of two scores: below, both are written alike
PART_HEIGHT = 260  # pixels of the cells of one part's matrix
LEAST_POSITIONS, MOST_POSITIONS = 64, 256  # of the picture of the angles
PARTS = {
    "content to content": "**content to content**, the query times the key (what both tokens are)",
    "content to position": "**content to position**, the query times a vector of the distance (where this token looks)",
    "position to content": "**position to content**, a vector of the distance times the key (from where this key is seen)",
    "distance": "**distance**, one number for each distance, the same in all blocks and for all tokens",
}
NOT_SHOWN = (
    "What the score is good for. A score by itself means little: the same number added to all scores of a query changes "
    "nothing."
)


def scores(model_input: AttentionInput, row: Any) -> None:
    """One query's scores by key with the attention that they become, and how positions enter in this model."""
    backend, structure = model_input.backend, model_input.backend.structure
    with row:
        block, head = choose_block(model_input), choose_head(model_input)
        query = position_choice(model_input, "score_query", "Query", model_input.telling_query)
        panel = options(model_input)
    record = backend.inside(
        model_input.pair.first,
        model_input.pair.second,
        max_length=controls.length_for(backend),
        attentions=False,
        score_terms=True,
    )
    scored = head_scores(record, block, head, structure.windows[block])
    _bars(model_input, scored, block, head, query)
    if len(scored.parts) > 1:
        _parts(model_input, scored, block, head)
    if structure.rotates:
        _rotation(model_input, record, block, head, query, panel)


def _bars(model_input: AttentionInput, scored: HeadScores, block: int, head: int, query: int) -> None:
    """The scores of one query, stacked from their parts, above their softmax."""
    allowed, attention = scored.allowed[query], scored.attention[query]
    candidates = np.flatnonzero(allowed)
    keys = np.sort(candidates[np.argsort(-attention[candidates], kind="stable")[:MOST_KEYS]])
    labels = matrices.axis_labels(model_input.pieces, keys.tolist())
    parts = {name: values[query, keys] for name, values in scored.parts.items()}
    total = scored.total[query]
    first = candidates[np.argsort(-attention[candidates], kind="stable")].tolist()[:2]
    most, names = first[0], [_name(model_input, key) for key in first]
    message = said_of_most(_name(model_input, query), names, attention[first], total[first], len(parts) > 1)
    if len(parts) > 1:
        summed = " + ".join(f"{theme.number(values[query, most], 2)} ({name})" for name, values in scored.parts.items())
        message += f" = {summed.replace('+ −', '− ')}"
    notes = []
    if len(candidates) > len(keys):
        notes.append(f"the {len(keys)} keys with most attention of {len(candidates)} are drawn")
    if len(candidates) < len(allowed):
        notes.append(
            f"{wording.counted(len(allowed) - len(candidates), 'token')} outside this block's window cannot be attended to"
        )
    message += "".join(f". {note[0].upper()}{note[1:]}" for note in notes) + "."
    title = f"Scores of “{model_input.pieces[query][:20]}” in block {block}, head {head}"
    figures.figure(
        charts.score_bars(parts, attention[keys], labels, title),
        key="score_bars",
        code=Inside(model_input.pair.input(model_input.backend)).scores(block, head, query),
        alt=f"{title}: bars by key, above the attention that they become",
        message=message,
        read=_read(model_input, scored),
        not_shown=NOT_SHOWN,
        table=lambda: pd.DataFrame(
            {
                "key": labels,
                **{name: values.round(5) for name, values in parts.items()},
                "score": total[keys].round(5),
                "attention": attention[keys].round(5),
            }
        ),
    )


def said_of_most(query: str, keys: Sequence[str], shares: np.ndarray, scores: np.ndarray, is_sum: bool) -> str:
    """Which key gets most of a query's attention, and how far its score is above the next.

    `keys` are the names of that key and of the next, if there is one. `is_sum`: what the score is the sum of is said behind.
    """
    score, share = theme.number(scores[0], 2), percent(float(shares[0]))
    above = float(scores[0] - scores[1]) if len(keys) > 1 else np.inf
    if above < LEAST_ABOVE:
        return f"{query} attends as much to {keys[0]} as to {keys[1]} ({share}): the score of {keys[0]} is {score}"
    said = f"{query} attends most to {keys[0]} ({share}): its score is {score}"
    if is_sum or len(keys) == 1:
        return said
    times = "over 1,000" if above > np.log(1000) else f"{np.exp(above):.{1 if above >= 0.05 else 2}f}"
    return (
        f"{said}, {theme.number(above, 2)} above that of {keys[1]} ({percent(float(shares[1]))}), the attention {times} times "
        "as large"
    )


def _read(model_input: AttentionInput, scored: HeadScores) -> str:
    structure = model_input.backend.structure
    text = "Above: the score of the query with each key, already scaled. "
    if len(scored.parts) > 1:
        text += f"In {structure.title} it is a sum: {'; '.join(PARTS[name] for name in scored.parts)}. "
    elif structure.rotates:
        text += "It is the scaled product of query and key after both were rotated by their positions. "
    else:
        text += "It is the product of query and key, divided by the root of their length. "
    return text + (
        "Below: the attention of this head, which is the softmax of the scores. One point more of score makes a "
        "token's attention 2.7 times as large, compared with that of any other token."
    )


def _name(model_input: AttentionInput, position: int) -> str:
    return f"“{messages.escape(model_input.pieces[position][:20])}”"


def _parts(model_input: AttentionInput, scored: HeadScores, block: int, head: int) -> None:
    """Each part of the scores as a matrix of queries and keys, and their sum, on one scale."""
    drawn = {**scored.parts, "sum": scored.total}
    figures.subheader(f"All queries of block {block}, head {head}, part by part")
    tokens = len(model_input.pieces)
    factor = -(-tokens // MOST_ROWS)
    if factor > 1:
        drawn = {name: matrices.mean_cells(values, factor) for name, values in drawn.items()}
        labels = wording.cell_labels(tokens, factor)
        st.caption(
            f"{tokens:,} tokens are too many to draw one by one: each cell is the mean of {factor} × {factor} tokens, and its "
            "label has the positions of the first and the last."
        )
    else:
        labels = matrices.axis_labels(model_input.pieces)
    limit = max(float(np.abs(values).max()) for values in drawn.values())
    spreads = {name: float(values.std(axis=1).mean()) for name, values in scored.parts.items()}
    widest = max(spreads, key=lambda name: spreads[name])
    shown = dict(zip(spreads, apart(*spreads.values()), strict=True))
    others = ", ".join(f"{spread} ({name})" for name, spread in shown.items() if name != widest)
    from_distance = (
        "Stripes along the diagonal come from the distance: the same number wherever two tokens stand as far apart."
    )
    if model_input.backend.structure.has_disentangled_terms:
        from_distance = (
            "Position counts by distance, but not in the same way for every token: content to position depends on the query "
            "too, and position to content on the key. Equal values beside each other come from distances that share a vector."
        )
    figures.finding(
        f"In this head **{widest}** decides most: among the keys of a query it varies by {shown[widest]}, against {others} "
        "(standard deviation, mean of all queries).",
        key="score_parts",
        read=f"Rows are queries, columns are keys; all pictures have one colour scale. {from_distance} Columns come from keys "
        "that every query scores alike. The sum, after softmax by row, is the attention.",
        not_shown=NOT_SHOWN,
    )
    columns = [*st.columns(2), *st.columns(2)]
    for column, (name, values) in zip(columns, drawn.items(), strict=False):
        with column:
            figures.matrix(
                values,
                labels,
                labels,
                name.capitalize(),
                key=f"score_part_{name.replace(' ', '_')}",
                alt=f"{name.capitalize()}: scores of {len(labels)} queries with {len(labels)} keys",
                code=Command(head_scores),
                rows="query",
                columns="key",
                value="score",
                limits=(-limit, limit),
                diverging=True,
                colour_bar="key",
                plot_height=PART_HEIGHT,
            )


def _rotation(model_input: AttentionInput, record: InsideBlocks, block: int, head: int, query: int, panel: Any) -> None:
    """The angles by position, and the score of a query and a key at any distance."""
    speeds = model_input.backend.rotation_speeds(block)
    window = model_input.backend.structure.windows[block]
    tokens, pairs = len(record.sentence), len(speeds)
    attention = model_input.attentions[block, head, query]
    default = int(np.argmax(np.where(np.arange(tokens) == query, -1, attention)))
    with panel:
        key = position_choice(model_input, "score_key", "Key of the curve", default)
    figures.subheader(f"How positions enter block {block}: rotation")
    base = rotation.base_of(speeds)
    kinds = {item is None for item in model_input.backend.structure.windows}
    kind = "" if len(kinds) == 1 else " (global)" if window is None else " (local)"
    turning = (
        f"Before queries and keys are multiplied, each pair of their {2 * pairs} dimensions is turned like the hand of a "
        f"clock, by an angle that grows with the position. In block {block}{kind} the fastest pair turns by "
        f"{np.degrees(speeds[0]):.0f}° a token; the slowest needs {_turn(speeds[-1])} tokens for a full turn"
        + (f" (base {base:,.0f})." if np.isfinite(base) else ".")
    )
    offsets = _offsets(tokens, window, query, key)
    found = rotation.score_by_distance(
        record.queries[block, head, query],
        record.keys[block, head, key],
        query - key,
        speeds,
        -offsets,
        record.score_scale,
    )
    names = [_name(model_input, position) for position in (query, key)]
    score = float(found[list(offsets).index(key - query)])
    figures.finding(
        f"In this text {names[1]} stands {_where(key - query)} {names[0]}: score {theme.number(score, 2)}. "
        "Only the distance counts: if both stood ten tokens further on, both would be turned by the same angles more, "
        "and the score would be the same.",
        key="rotation",
        read=f"{turning} Left: each row is a position, each column a pair of dimensions, dark orange where it is not turned "
        "(or by whole turns) and blue where it is turned half way round. Fast pairs tell neighbours apart; slow ones hardly "
        "change. Right: the same query and key, as if the key stood elsewhere"
        + ("; dashed lines are the borders of this block's window." if window is not None else "."),
        not_shown="What other contents would do: the curve is that of this query and this key. In another place of the text, "
        "both would also have read other neighbours.",
    )
    left, right = st.columns(2)
    positions = min(max(LEAST_POSITIONS, tokens), MOST_POSITIONS)
    turned = rotation.angles(speeds, positions)
    with left:
        figures.figure(
            rotation_charts.rotation_heatmap(turned, f"Angles by position and pair, block {block}"),
            key="rotation_angles",
            code=_angles_code(speeds, positions),
            alt=f"Heatmap: cosine of the angle of {pairs} pairs of dimensions at {positions} positions",
            table=lambda: pd.DataFrame(
                np.degrees(turned).round(3), columns=[f"pair {pair}" for pair in range(pairs)]
            ).assign(position=range(positions)),
        )
    with right:
        figures.figure(
            rotation_charts.distance_curve(
                offsets,
                found,
                key - query,
                f"“{model_input.pieces[query][:16]}”, “{model_input.pieces[key][:16]}”: score by distance",
                window,
            ),
            key="rotation_distance",
            code=Inside(model_input.pair.input(model_input.backend)).by_distance(
                block,
                head,
                (query, key),
                _speeds_written(speeds),
                (int(offsets[0]), int(offsets[-1])),
                record.score_scale,
            ),
            alt="Curve: the score of one query and one key if the key stood at other distances from the query",
            table=lambda: pd.DataFrame({"key minus query": offsets, "score": found.round(5)}),
        )


def _angles_code(speeds: np.ndarray, positions: int) -> Code:
    """The code of the angles."""
    return Code(
        "# No model is needed: the angles depend on the positions and on the model's base alone.\nimport numpy as np",
        (rotation.angles,),
        (
            _speeds_written(speeds),
            f"values = np.cos(angles(speeds, {positions}))",
            "print(values)  # [position, pair]",
        ),
    )


def _speeds_written(speeds: np.ndarray) -> str:
    """The statement that gives the speeds: by the base, where they are its powers."""
    pairs, base = len(speeds), rotation.base_of(speeds)
    powers = f"{base!r} ** (-np.arange({pairs}) / {pairs})"
    is_of_base = np.allclose(speeds, base ** (-np.arange(pairs) / pairs), rtol=1e-6, atol=0)
    return f"speeds = {powers if is_of_base else f'np.array({literal(speeds.tolist())})'}  # radians a token, [pair]"


def _turn(speed: float) -> str:
    """The number of tokens of a full turn, rounded."""
    tokens = 2 * np.pi / speed
    digits = max(0, int(np.log10(tokens)) - 1)
    return f"{round(tokens, -digits):,.0f}"


def _where(offset: int) -> str:
    """Where a key stands, counted from the query."""
    if not offset:
        return "at the place of"
    return f"{wording.counted(abs(offset), 'token')} {'after' if offset > 0 else 'before'}"


def _offsets(tokens: int, window: int | None, query: int, key: int) -> np.ndarray:
    """The offsets of the curve: as far as this text reaches, or the window and a little more; the text's own included."""
    reach = max(16, tokens - 1) if window is None else max(16, min(tokens - 1, 2 * window), window + 4)
    reach = max(min(reach, 512), abs(query - key))
    return np.arange(-reach, reach + 1)
