"""What summarises heads: the patterns that they follow; and the note below all views of attention."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.attention.head_patterns import MEANING, PATTERNS, Pattern, RankedHead, score_heads
from components.shown_code.attention import patterns as patterns_code
from components.shown_code.code import AnyCode, Command
from dashboard import state
from dashboard.ui import browser, controls, figures, messages
from dashboard.views.attention.head_choice import (
    BLOCK_HELP,
    FILTERS,
    AttentionInput,
    open_head,
    options,
    pattern_message,
    scores_of,
)
from dashboard.views.attention.head_tiles import head_tiles

if TYPE_CHECKING:
    from components.analysis.attention.head_patterns import HeadPatterns

NAMES: dict[str, str] = {
    "previous": "Token before",
    "next": "Token after",
    "itself": "Itself",
    "first": "First token",
    "separators": "Separators",
    "same_word": "Same word elsewhere",
    "punctuation": "Punctuation",
    "rarest": "Rarest token",
    "broad": "Spread out",
}
TOP = 8


def patterns(model_input: AttentionInput, row: Any) -> None:
    """Every head's score on a pattern, as a map and a ranked table; a click opens the head."""
    with row:
        pattern = cast(
            "Pattern", controls.pick("pattern", "Heads that attend to", {key: NAMES[key] for key in PATTERNS})
        )
        panel = options(model_input)
    with panel:
        scored = _scored(model_input)
    scores = scored.scores[pattern]
    if np.isnan(scores).all():
        everything = model_input.direction == "all"
        texts = "" if everything else f" from {FILTERS[model_input.direction]}"
        st.info(
            f"There is no attention{texts} to score for “{NAMES[pattern]}” ({MEANING[pattern]}). Choose another pattern"
            + (" or sentence." if everything else ", or attention from all to all.")
        )
        return
    best = scored.top(pattern, TOP)
    figures.above(
        messages.escape(pattern_message(scored, best[0], pattern)),
        key="patterns",
        place=".st-key-patterns_map",
        table=lambda: _all_scores(scored),
        code=_code(model_input),
        title="The heads' scores on each pattern",
        read="A score is the mean share of attention over the tokens of your text ([Clark et al. 2019](https://aclanthology.org/"
        "W19-4828/)); special tokens do not count as queries."
        + " Entropy says how evenly attention is spread: 0 means that all of it goes to one token."
        * (pattern == "broad"),
        not_shown="A head's purpose: a few sentences are little evidence, and a pattern is not a function."
        + (
            ""
            if model_input.direction == "all"
            else f" Only {FILTERS[model_input.direction]} counts here; the entropy is that of whole rows."
        ),
    )
    n_blocks, n_heads = scores.shape
    tiles, ranking = st.columns([8, 5], gap="medium")
    with tiles:
        head_tiles(
            np.nan_to_num(scores)[:, :, None, None],
            "patterns_map",
            [_hint(scored, block, head, pattern) for block in range(n_blocks) for head in range(n_heads)],
            open_head,
            label=f"A tile for each head (rows: blocks), coloured by its score on “{NAMES[pattern]}”; Enter opens a head",
            selected=(best[0].block, best[0].head),
            height=300,  # so that on a phone the ranking begins on the first screen
            limits=(0.0, max(best[0].score, 1e-6)),
            scale=controls.scale(),
            legend=_legend(pattern, best[0].score),
            numbers=["–" if np.isnan(score) else f"{100 * score:.0f}" for score in scores.ravel()],
        )
    with ranking:
        st.caption(f"Click a row to open its head. {messages.escape(_counted_over(model_input, pattern))}")
        st.dataframe(
            _ranking(scored, pattern),
            hide_index=True,
            key="patterns_table",
            on_select=partial(_open_ranked, best),
            selection_mode="single-cell",
        )


def _counted_over(model_input: AttentionInput, pattern: Pattern) -> str:
    """Which rows and columns count here: the view of all heads has one sentence, and special tokens are no neighbours there."""
    count = len(state.get("sentences"))
    are_all = count > 1 and model_input.pair.second is None and state.get("pattern_over_all")
    said = f"Each score is a mean over the words of {f'all {count} sentences' if are_all else 'this text'}"
    first, last = model_input.pieces[0], model_input.pieces[-1]
    neighbour = {
        "previous": f"for the first word, {first} is both the token before and the first token, so that its shares can add up "
        "to more than 100 %",
        "next": f"for the last token of the text, {last} is the token after",
    }
    has_neighbour = model_input.special[0 if pattern == "previous" else -1]
    special = f"; {neighbour[pattern]}" if pattern in neighbour and has_neighbour else ""
    return f"{said}{special}."


def _code(model_input: AttentionInput) -> AnyCode:
    """Of the page's input; of all sentences, and from one text to another, 30 lines are not enough."""
    is_one = len(state.get("sentences")) < 2 or not state.get("pattern_over_all") or model_input.pair.second is not None
    if model_input.direction != "all" or not is_one:
        return Command(score_heads)
    return patterns_code(model_input.pair.input(model_input.backend), model_input.sentence)


def _scored(model_input: AttentionInput) -> HeadPatterns:
    """The scores of the heads on the page's input, or on all sentences, because one sentence is little evidence."""
    texts, backend, trace = state.get("sentences"), model_input.backend, model_input.trace
    if len(texts) > 1 and model_input.pair.second is None:
        label = f"Use all {len(texts)} sentences"
        if controls.switch("pattern_over_all", label, "One sentence is little evidence."):
            trace = backend.trace(texts, attentions=True, max_length=controls.length_for(backend))
    return scores_of(trace, model_input.direction, model_input.backend.structure.windows)


def _open_ranked(best: Sequence[RankedHead]) -> None:
    cells = browser.selected("patterns_table", "cells")
    if cells and cells[0] and browser.is_index(cells[0][0], len(best)):
        ranked = best[cells[0][0]]
        open_head(ranked.block, ranked.head)


def _legend(pattern: Pattern, best: float) -> tuple[str, str, str]:
    """What the colours and numbers of the tiles stand for, and the ends of the colours."""
    of_what = "entropy in % of the highest" if pattern == "broad" else f"% of attention to {MEANING[pattern]}"
    return of_what, "0", f"{100 * best:.0f}"


def _hint(scored: HeadPatterns, block: int, head: int, pattern: Pattern) -> str:
    score = scored.scores[pattern][block, head]
    share = "–" if np.isnan(score) else f"{100 * score:.0f} %"
    of_what = "of the highest entropy" if pattern == "broad" else f"to {MEANING[pattern]}"
    return f"Block {block}, head {head}: {share} {of_what}. Click to open it."


def _ranking(scored: HeadPatterns, pattern: Pattern) -> pd.DataFrame:
    share = "of the highest entropy" if pattern == "broad" else "score"
    return pd.DataFrame(
        [
            {
                "block, head": f"{ranked.block}, {ranked.head}",
                share: f"{100 * ranked.score:.0f} %",
                "mostly to": _mostly(scored, ranked),
            }
            for ranked in scored.top(pattern, TOP)
        ]
    )


def _mostly(scored: HeadPatterns, ranked: RankedHead) -> str:
    """The pattern with a head's highest score, and its share: another one than that of the ranking can be above it."""
    best, share = scored.best_pattern(ranked.block, ranked.head)
    return "no single place" if best == "broad" else f"{NAMES[best].lower()} {100 * share:.0f} %"


def _all_scores(scored: HeadPatterns) -> pd.DataFrame:
    blocks, heads = np.indices(scored.entropy.shape)
    columns: dict[str, Any] = {"block": blocks.ravel(), "head": heads.ravel()}
    columns |= {name: scored.scores[name].ravel().round(4) for name in PATTERNS}
    return pd.DataFrame(
        {**columns, "entropy": scored.entropy.ravel().round(4), "distance": scored.distance.ravel().round(3)}
    )


def caveat() -> None:
    """The note that attention is not explanation, with sources on both sides."""
    with st.container(border=True):
        figures.note(
            ":material/balance: **Attention is not explanation.** High attention does not mean that a token mattered for the "
            "result: different attentions can give the same answer ([Jain and Wallace 2019](https://aclanthology.org/"
            "N19-1357/)), and heads often attend to [SEP] when nothing else fits ([Clark et al. 2019]"
            "(https://aclanthology.org/W19-4828/)). Others argue that attention can be one plausible explanation among "
            "several ([Wiegreffe and Pinter 2019](https://aclanthology.org/D19-1002/))."
        )
        st.caption(BLOCK_HELP)
