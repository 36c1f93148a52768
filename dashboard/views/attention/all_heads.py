"""All heads in one picture, by what they look at or by block, and the open one beside them.

The matrices are sent as one byte 0..255 per cell, so that 144 heads at 128 tokens are 2.4 MB and are drawn in a fraction of a
second; the open head's weights are sent as they are.
"""

from __future__ import annotations

import json
import struct
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.attention.head_kinds import KINDS, RELATIONS, Kind, relations
from components.analysis.attention.weights import pair_mask
from components.analysis.first_look.decisive import DECIDED, Habits, most_decisive
from components.charts import matrices
from components.numbers import counted, percent
from components.shown_code.attention import kinds
from components.words.quotes import with_isolated_quotes
from dashboard import state
from dashboard.jobs.stored.included_words import kept_habits
from dashboard.lessons import steps
from dashboard.ui import browser, controls, figures, messages, wording
from dashboard.views.attention import findings
from dashboard.views.attention.head_choice import (
    FILTERS,
    KIND_COLOURS,
    NOT_SHOWN,
    AttentionInput,
    choose_block,
    choose_head,
    open_head,
    options,
    position_choice,
    show_me,
)
from dashboard.views.attention.head_tiles import MAX_CELLS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.analysis.attention.head_kinds import HeadKinds
    from components.analysis.attention.telling import HeadLook

KEY = "glance"  # of the component
ORDERS = {"kind": "By what they look at", "block": "By block"}
SHAPES = ("lines", "matrix")
OF_OWN = "the attention of the text's own tokens"  # of which the shares of kinds are
TELLING = 3  # heads that are numbered
MOST_TOKENS = 24  # of the open head: more lines and names have no room
HEIGHT, ON_PROJECTOR = 445, 400  # pixels of the tiles: below the finding, and whole on a laptop; there type is larger
_HTML = """<div class="drawing heads"><div class="left"><div class="keys"></div><div class="tiles" role="group"></div>
<p class="hint" aria-live="polite"></p></div><section class="one"><header><h3></h3>
<span class="seg" role="group" aria-label="How the open head is drawn"><button type="button" data-shape="lines">Lines</button>
<button type="button" data-shape="matrix">Matrix</button></span></header><p class="does"></p><p class="note"></p>
<div class="plot"></div><button type="button" class="link"></button></section><div class="pills"></div></div>"""


def all_heads(model_input: AttentionInput, row: Any) -> None:
    """Every head as a small matrix in one picture, and the open one as lines or as a matrix; a click opens another."""
    with row:
        order = controls.choice("head_order", "Heads", ORDERS, show_label=False)
        panel = options(model_input)
    with panel:
        choose_block(model_input)
        choose_head(model_input)
        query = position_choice(model_input, "score_query", "Token that looks", model_input.telling_query)
        show_me(model_input)
    links = pair_mask(model_input.sentence, model_input.direction)
    linked = model_input.attentions if links.all() else np.where(links, model_input.attentions, np.float32(0))
    message, has_habits = _message(model_input, linked, query), kept_habits(model_input.backend) is not None
    if model_input.kinds is None:
        figures.finding(message, key=KEY, read=_read(order, has_habits), not_shown=NOT_SHOWN)
    else:
        figures.above(
            message,
            key=f"{KEY}_kinds",
            place=f".st-key-{KEY}",
            table=partial(_table, model_input.kinds),
            code=kinds(model_input.pair.input(model_input.backend)),
            title="What the heads look at",
            read=_read(order, has_habits),
            not_shown=NOT_SHOWN,
        )
    for note in _draw(model_input, linked, order):
        st.caption(note)


def _table(kinds: HeadKinds) -> pd.DataFrame:
    blocks, heads = (places.ravel() for places in np.indices(kinds.evenness.shape))
    shares: dict[str, Any] = {name: kinds.shares[:, :, place].ravel().round(4) for place, name in enumerate(RELATIONS)}
    names = [kinds.names[block][head] for block, head in zip(blocks, heads, strict=True)]
    columns: dict[str, Any] = {"block": blocks, "head": heads, "kind": names}
    return pd.DataFrame({**columns, **shares, "evenness": kinds.evenness.ravel().round(4)})


def _read(order: str, has_habits: bool) -> str:
    sorted_by = (
        "Tiles stand in groups by where the largest share of their attention goes; what spreads widely stands apart. "
        if order == "kind"
        else "Each row of tiles is a block. "
    )
    return (
        "Each tile is one head: rows are the tokens that look, columns those that they look at. The stronger a cell's "
        f"colour, the larger its weight; the hue says which token it is, seen from the one that looks. {sorted_by}The "
        "numbered heads tell most about this text: in them one word looks at another, two or more places away, furthest above "
        f"what the head gives on average {'at that distance' if has_habits else 'between such words of this text'}. A higher "
        "share can be less far above it."
    )


def _message(model_input: AttentionInput, linked: np.ndarray, query: int) -> str:
    """How the heads divide, and what the open one does."""
    kinds = model_input.kinds
    first = _look(model_input, linked, query) if state.get("score_query") is not None else ""
    stands_out = findings.stands_out(next(iter(model_input.looks), None))
    # What the head does with which the view opens stands beside the tiles.
    is_beside = kinds is not None and stands_out and not model_input.is_chosen
    if not first and not is_beside:
        first = model_input.head_in_words
        best = next(iter(model_input.looks), None)
        if best is not None and not stands_out and not model_input.is_chosen:
            first = (
                f"No head looks from one word at another{findings.away(best)} much more than usual; most so "
                f"block {best.block}, head {best.head}: "
                f"{wording.named(model_input.sentence, best.query)} at "
                f"{wording.named(model_input.sentence, best.key)} with "
                f"{percent(best.weight)}."
            )
    counts = "" if kinds is None else findings.of_kinds(kinds, messages.escape(model_input.special_names))
    together = findings.READ_TOGETHER if model_input.pair.second is not None else ""
    return " ".join(filter(None, (counts, first, together)))


def _draw(model_input: AttentionInput, linked: np.ndarray, order: str) -> list[str]:
    """Draw the component; returns what has to be said below it."""
    n_blocks, n_heads, n_tokens, _ = linked.shape
    factor, notes = 1, []
    while n_blocks * n_heads * (-(-n_tokens // factor)) ** 2 > MAX_CELLS:
        factor += 1
    values, related = linked, relations(model_input.sentence)
    if factor > 1:
        values = matrices.shrink(linked, factor)
        # A cell of several tokens has several relations: only its diagonal is told apart.
        related = np.full(values.shape[2:], RELATIONS.index("words"), np.uint8)
        np.fill_diagonal(related, RELATIONS.index("itself"))
        notes.append(f"Because of the {n_tokens} tokens, each cell is the highest value of {factor} × {factor}.")
    if model_input.direction != "all":
        notes.append(f"Only attention from {FILTERS[model_input.direction]} is drawn; the rest of each tile is empty.")
    shown, weights, opened = _opened(model_input, linked)
    own = relations(model_input.sentence)[np.ix_(shown, shown)]
    layout = {
        "blocks": n_blocks,
        "heads": n_heads,
        "size": len(related),
        "order": order,
        "dark": controls.is_dark(),
        "hues": [KIND_COLOURS[name] for name in RELATIONS],
        "groups": _groups(model_input),
        "keys": [[_titles(model_input)[name], place] for place, name in enumerate(RELATIONS)],
        "hints": [_does(model_input, linked, block, head) for block in range(n_blocks) for head in range(n_heads)],
        "selected": [model_input.block, model_input.head],
        "telling": [
            {"at": look.block * n_heads + look.head, "text": _pill(model_input, look)}
            for look in model_input.looks[:TELLING]
            if look.excess >= DECIDED and not steps.is_asking()
        ],
        "label": f"{n_blocks} by {n_heads} heads, each a small attention matrix; arrow keys move, Enter opens",
        "height": HEIGHT if controls.scale() == 1 else round(ON_PROJECTOR * controls.screen_factor()),
        "opened": opened,
    }
    written = json.dumps(layout).encode()
    packed = b"".join(
        (
            struct.pack("<I", len(written)),
            written,
            related.tobytes(),
            matrices.as_cells(values, 0.0, 1.0),
            np.ascontiguousarray(weights, "<f4").tobytes(),
            own.tobytes(),
        )
    )
    browser.web_component("all_heads", _HTML, "focus", "drawing")(
        key=KEY,
        data=packed,
        on_clicked_change=partial(_clicked, n_blocks, n_heads),
        on_shape_change=_shaped,
        on_open_change=partial(open_head, model_input.block, model_input.head),
        on_whom_change=partial(_open_word, model_input, shown),
    )
    return notes


def _clicked(n_blocks: int, n_heads: int) -> None:
    sent = browser.two_numbers(browser.sent_by(KEY, "clicked"))
    if sent is not None and browser.is_index(sent[0], n_blocks) and browser.is_index(sent[1], n_heads):
        controls.stop_playing()
        state.put("block", sent[0])
        state.put("head", sent[1])


def _shaped() -> None:
    if browser.is_one_of(sent := browser.sent_by(KEY, "shape"), SHAPES):
        state.put("head_shape", sent)


def _open_word(model_input: AttentionInput, shown: Sequence[int]) -> None:
    """Show who looks at a word, in the head on display."""
    sent = browser.sent_by(KEY, "whom")
    if not browser.is_index(sent, len(shown)):
        return
    sentences, row = controls.current_tokens(model_input.backend), model_input.pair.rows[0]
    controls.choose_word(sentences, controls.interest(sentences, model_input.backend).positions, row, shown[sent])
    for setting, value in {"block": model_input.block, "head": model_input.head, "look_direction": "to"}.items():
        state.put(setting, value)
    state.open_view("one-word-attention")


def _titles(model_input: AttentionInput) -> dict[Kind, str]:
    return {
        "words": "other words",
        "spread": "spread widely",
        "before": "token before",
        "after": "token after",
        "itself": "itself",
        "special": model_input.special_names,
    }


def _groups(model_input: AttentionInput) -> dict[str, dict[str, Any]]:
    """The tiles of each kind in their order; without kinds all stand among the other words."""
    kinds, n_heads = model_input.kinds, model_input.attentions.shape[1]
    everything = list(range(model_input.attentions.shape[0] * n_heads))
    return {
        kind: {
            "title": title,
            "heads": (
                [block * n_heads + head for block, head in kinds.of(kind)]
                if kinds is not None
                else everything * (kind == KINDS[0])
            ),
            "hue": None if kind == "spread" else RELATIONS.index(kind),
        }
        for kind, title in _titles(model_input).items()
    }


def _pill(model_input: AttentionInput, look: HeadLook) -> str:
    pieces = model_input.pieces
    words = f"{pieces[look.query][: findings.NAMED]} → {pieces[look.key][: findings.NAMED]}"
    return f"block {look.block}, head {look.head}: {words} {percent(look.weight)}"


def _opened(model_input: AttentionInput, linked: np.ndarray) -> tuple[list[int], np.ndarray, dict[str, Any]]:
    """The tokens of the open head that are drawn, its weights between them, and what is written there."""
    block, head, kinds = model_input.block, model_input.head, model_input.kinds
    look = model_input.look if findings.stands_out(model_input.look) else None
    whole = linked[block, head]
    shown = drawn_tokens(whole, look)
    does = ""
    if kinds is not None:
        kind = kinds.names[block][head]
        does = f"On average it {findings.does(kind, model_input.special_names)}"
        does += "" if kind == "spread" else f": {percent(kinds.purity(block, head))} of {OF_OWN}"
        if look is not None:
            looking, looked_at = (f"“{model_input.pieces[at][: findings.NAMED]}”" for at in (look.query, look.key))
            does += with_isolated_quotes(f"; here {looking} gives {looked_at} {percent(look.weight)}")
        does += "."
    note = ""
    if len(shown) < len(whole):
        note = f"{len(shown)} of {counted(len(whole), 'token')} are drawn: those with the strongest weights."
    return (
        shown,
        whole[np.ix_(shown, shown)],
        {
            "title": f"Block {block}, head {head}",
            "does": does,
            "note": note,
            "said": f"Block {block}, head {head}: {does or 'its attention'}",
            "shape": state.get("head_shape"),
            "tokens": [
                {"piece": model_input.pieces[at][: findings.NAMED], "special": bool(model_input.special[at])}
                for at in shown
            ],
            "link": None if look is None else [shown.index(look.query), shown.index(look.key)],
            "share": "" if look is None else percent(look.weight),
            "link_text": "Exact values",
            "leads": model_input.pair.second is None,  # the view of one word shows single sentences
        },
    )


def drawn_tokens(weights: np.ndarray, look: HeadLook | None, most: int = MOST_TOKENS) -> list[int]:
    """The positions that are drawn of one head [query, key]: all, or those of the look and of the strongest weights."""
    if len(weights) <= most:
        return list(range(len(weights)))
    kept = {} if look is None else dict.fromkeys((look.query, look.key))
    for place in np.argsort(-weights, axis=None, kind="stable").tolist():
        for position in divmod(place, len(weights)):
            if len(kept) < most:
                kept[position] = None
        if len(kept) >= most:
            break
    return sorted(kept)


def _look(model_input: AttentionInput, attentions: np.ndarray, query: int) -> str:
    """Where a token that was chosen looks in the open head; empty where it looks at nothing of what is drawn.

    For a word it is the word at which it looks furthest above the head's habit, as on Start, where the habits are known.
    """
    block, head, sentence = model_input.block, model_input.head, model_input.sentence
    row = attentions[block, head, query]
    if not row.any():
        return ""
    most = int(row.argmax())
    begin = f"In block {block}, head {head}, {wording.named(sentence, query)} gives"
    plain = f"{begin} most of its attention to {wording.named(sentence, most)}: {percent(float(row[most]))}."
    habits = kept_habits(model_input.backend)
    word = next((word for word in model_input.words if word.last == query), None)
    if habits is None or word is None:
        return plain
    own = Habits(habits.weights[block : block + 1, head : head + 1])
    look = most_decisive(attentions[block : block + 1, head : head + 1], word, model_input.words, own)
    if look is None or look.weight - look.usual < DECIDED:
        return plain
    usual = findings.usually(look.usual, look.target - query)
    said = f"{begin} {wording.named(sentence, look.target)} {percent(look.weight)} of its attention; {usual}."
    if look.target == most:
        return said
    return f"{said} It gives most to {wording.named(sentence, most)}: {percent(float(row[most]))}."


def _does(model_input: AttentionInput, attentions: np.ndarray, block: int, head: int) -> str:
    """Where the attention of a head goes, by the shares that name its kind.

    Where they are not known, or only some of the links are drawn: the token that gets most of what is drawn.
    """
    kinds, title = model_input.kinds, f"Block {block}, head {head}"
    if kinds is not None and model_input.direction == "all":
        shares, names = kinds.shares[block, head], _titles(model_input)
        order = np.argsort(-shares, kind="stable").tolist()
        said = ", ".join(f"{names[RELATIONS[place]]} {percent(float(shares[place]))}" for place in order)
        return f"{title} divides {OF_OWN}: {said}."
    drawn = attentions[block, head]
    looking = drawn.any(axis=-1) & (~model_input.special | model_input.special.all())
    if not looking.any():
        return f"{title} has no attention of this direction."
    received = drawn[looking].mean(axis=0)
    key = int(received.argmax())
    piece = model_input.pieces[key]
    return f"{title} gives {piece} most of what is drawn, {percent(float(received[key]))} on average."
