"""The sections of the Attention page that sum heads up: patterns, flow, and masking a token."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis import attention_flow, mask_predictions
from components.analysis.attention import select_pair
from components.analysis.head_patterns import MEANING, PATTERNS, Pattern, RankedHead
from components.analysis.tokens import default_positions
from components.charts import matrices
from components.model.catalog import CATALOG
from dashboard import caching, state
from dashboard.ui import controls, figures, messages
from dashboard.views.attention.head_tiles import head_tiles
from dashboard.views.attention.single_heads import BERTVIZ_NOT_SHOWN, FILTERS, Shown, open_head

if TYPE_CHECKING:
    from components.analysis.head_patterns import HeadPatterns
    from components.model.trace import Trace

NAMES: dict[str, str] = {
    "previous": "Token before",
    "next": "Token after",
    "itself": "Itself",
    "first": "First token",
    "separators": "Separators",
    "same_word": "Same word elsewhere",
    "punctuation": "Punctuation",
    "broad": "Spread out",
}
TOP = 8


def patterns(shown: Shown) -> None:
    """Every head's score on a pattern, as a map and a ranked table; a click opens the head."""
    scored = _scored(shown)
    name = controls.choice("pattern", "Heads that look at", {key: NAMES[key] for key in PATTERNS})
    pattern: Pattern = next(key for key in PATTERNS if key == name)
    scores = scored.of(pattern)
    if np.isnan(scores).all():
        texts = "" if shown.which == "all" else f" from {FILTERS[shown.which]}"
        st.info(
            f"Nothing here to look at{texts} for “{NAMES[pattern]}” ({MEANING[pattern]}). Choose another pattern"
            + (" or sentence." if shown.which == "all" else ", or attention from all to all.")
        )
        return
    best = scored.top(pattern, TOP)
    n_blocks, n_heads = scores.shape
    head_tiles(
        np.nan_to_num(scores)[:, :, None, None],
        "patterns_map",
        [_hint(scored, block, head, pattern) for block in range(n_blocks) for head in range(n_heads)],
        open_head,
        label=f"Blocks by heads, coloured by their score on “{NAMES[pattern]}”; Enter opens a head",
        selected=(best[0].block, best[0].head),
        limits=(0.0, max(best[0].score, 1e-6)),
        scale=controls.scale(),
    )
    st.markdown(f":material/insights: {_message(scored, best[0], pattern)}")
    st.caption("Click a line to open that head.")
    st.dataframe(
        _ranking(scored, pattern),
        hide_index=True,
        key="patterns_table",
        on_select=partial(_open_ranked, best),
        selection_mode="single-cell",
    )
    figures.reading(
        "Scores are mean shares of attention over the tokens of your text ([Clark et al. 2019](https://aclanthology.org/"
        "W19-4828/)); special tokens do not count as the ones that look. Entropy 0: all on one token.",
        "A head's purpose: a few sentences are little evidence, and a pattern is not a function."
        + ("" if shown.which == "all" else f" Only {FILTERS[shown.which]} counts here; entropy is of whole rows."),
    )
    figures.data("patterns", lambda: _all_scores(scored))


def _scored(shown: Shown) -> HeadPatterns:
    """The heads judged by the input shown, or by all sentences of the set: one sentence is an anecdote."""
    texts = state.get("sentences")
    trace = shown.trace
    if len(texts) > 1 and shown.pair.second is None:
        every = f"Judge by all {len(texts)} sentences"
        if controls.switch("pattern_over_all", every, "One sentence is little evidence."):
            trace = shown.backend.trace(texts, attentions=True, max_length=controls.length_for(shown.backend))
    inputs = tuple((item.text, item.pair) for item in trace.sentences)
    return caching.head_patterns((trace.model, trace.revision, (inputs, trace.input_ids.tobytes())), shown.which, trace)


def _open_ranked(best: Sequence[RankedHead]) -> None:
    cells = st.session_state["patterns_table"].selection.cells
    if cells:
        entry = best[cells[0][0]]
        open_head(entry.block, entry.head)


def _message(scored: HeadPatterns, best: RankedHead, pattern: Pattern) -> str:
    who = f"Block {best.block}, head {best.head}"
    if pattern == "broad":
        return f"{who} spreads its attention most: its entropy is {100 * best.score:.0f} % of the highest there can be."
    return (
        f"{who} gives {100 * best.score:.0f} % of its attention to {MEANING[pattern]}; attention spread evenly would give "
        f"{100 * scored.chance[pattern]:.2g} %." + _few(scored.queries[pattern])
    )


def _few(queries: int) -> str:
    """A warning where a share is the mean of hardly anything."""
    return f" That is the mean of {queries} token{'' if queries == 1 else 's'} only." if queries < 4 else ""


def _hint(scored: HeadPatterns, block: int, head: int, pattern: Pattern) -> str:
    score = scored.of(pattern)[block, head]
    share = "–" if np.isnan(score) else f"{100 * score:.0f} %"
    what = "of the highest entropy" if pattern == "broad" else f"to {MEANING[pattern]}"
    return f"Block {block}, head {head}: {share} {what}. Click to open it."


def _ranking(scored: HeadPatterns, pattern: Pattern) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "block": entry.block,
                "head": entry.head,
                ("of the highest entropy" if pattern == "broad" else "share"): f"{100 * entry.score:.1f} %",
                "entropy (nats)": round(float(scored.entropy[entry.block, entry.head]), 2),
                "mean distance (tokens)": round(float(scored.distance[entry.block, entry.head]), 2),
                "looks most at": NAMES[scored.best_pattern(entry.block, entry.head)[0]],
            }
            for entry in scored.top(pattern, TOP)
        ]
    )


def _all_scores(scored: HeadPatterns) -> pd.DataFrame:
    blocks, heads = np.indices(scored.entropy.shape)
    columns: dict[str, Any] = {"block": blocks.ravel(), "head": heads.ravel()}
    columns |= {name: scored.scores[name].ravel().round(4) for name in PATTERNS}
    return pd.DataFrame(
        {**columns, "entropy": scored.entropy.ravel().round(4), "distance": scored.distance.ravel().round(3)}
    )


def flow(shown: Shown) -> None:
    """Attention rollout, and norm-based attention."""
    kind = controls.choice("flow", "Method", {"rollout": "Attention rollout", "norms": "Norm-based attention"})
    n_blocks = shown.attentions.shape[0]
    block = controls.number(
        "flow_block", "After block" if kind == "rollout" else "Block", 0, n_blocks - 1, n_blocks - 1
    )
    if kind == "rollout":
        values = attention_flow.rollout(shown.attentions)[block]
        title, unit = f"Rollout up to block {block}", "share"
        read = (
            "Each row says where a token's vector after this block comes from, when attentions are multiplied through all "
            "blocks with half of each kept by the residual ([Abnar and Zuidema 2020](https://aclanthology.org/2020.acl-main."
            "385/)). "
            + (
                "Rows sum to 1."
                if shown.which == "all"
                else f"Rows of the whole sum to 1; this is the part {FILTERS[shown.which]}."
            )
        )
        not_shown = (
            "Value vectors, feed-forward parts and LayerNorms: rollout treats attention as if it were all there is."
        )
    else:
        values, title = _norms(shown, block)
        unit = "norm"
        read = (
            "How much each key really adds to each query: the norm of attention times the transformed value vector, in one "
            "head or with all heads summed ([Kobayashi et al. 2020](https://aclanthology.org/2020.emnlp-main.574/)). [CLS] "
            "and [SEP] often fade, though attention to them is high."
        )
        not_shown = "What the residual and the LayerNorm do to it afterwards."
    part = select_pair(values, shown.sentence, shown.which)
    if not part.matrix.size:
        st.info("Nothing is left to show: one of the texts has no tokens of its own.")
        return
    rows = matrices.axis_labels([shown.pieces[position] for position in part.queries], part.queries)
    columns = matrices.axis_labels([shown.pieces[position] for position in part.keys], part.keys)
    figures.figure(
        matrices.token_matrix(
            part.matrix, rows, columns, title, rows="query", columns="key", value=unit, scale=controls.scale()
        ),
        key="flow_matrix",
        alt=f"{title}: {len(rows)} by {len(columns)} tokens",
        read=read,
        not_shown=not_shown,
        table=lambda: pd.DataFrame(part.matrix.round(5), columns=columns).assign(query=rows)[["query", *columns]],
    )


def _norms(shown: Shown, block: int) -> tuple[np.ndarray, str]:
    """Norm-based attention of a block, of all heads together or of one."""
    inside = shown.inside()
    how = controls.choice("flow_heads", "Heads", {"together": "All together", "one": "One head"})
    if how == "together":
        values = attention_flow.summed_norms([shown.attentions[block]], [inside.value_contributions(block)])[0]
        return values, f"Norm-based attention, block {block}"
    head = controls.number("head", "Head", 0, shown.attentions.shape[1] - 1, 0)
    norms = attention_flow.weighted_norms(
        shown.attentions[block : block + 1, head : head + 1], inside.value_norms[block : block + 1, head : head + 1]
    )
    return norms[0, 0], f"Norm-based attention, block {block}, head {head}"


def mask(shown: Shown) -> None:
    """Hide a token behind the mask: what the model would put there, and how attention changes."""
    backend = shown.backend
    if not backend.spec.masked_lm:
        able = ", ".join(spec.title for spec in CATALOG if spec.masked_lm)
        st.info(
            f"**{messages.escape(backend.spec.title)} has no masked-LM head:** it was published without the part that "
            f"predicts masked tokens, so there is nothing true to show here. These models have it: {able}. Choose one "
            "in the sidebar.",
            icon=":material/block:",
        )
        return
    st.markdown("Click a token: it becomes the mask, and the model says what it expects there.")
    tokens = shown.sentence.tokens
    target = state.get("masked")
    if target is None or target >= len(tokens) or st.session_state.setdefault("_masked_of", shown.pair) != shown.pair:
        target = default_positions([shown.sentence])[0]  # also where the choice was made in another text
    st.session_state["_masked_of"] = shown.pair
    whole = controls.switch("mask_word", "Whole word", "A word of several pieces becomes as many masks.")
    controls.token_chips(
        [shown.sentence],
        [target],
        "chips_mask",
        whole_word=whole,
        unknown_id=backend.tokenization.unknown_id,
        on_pick=lambda _, position: state.put("masked", position),
    )
    if tokens[target].special:
        st.info("Special tokens cannot be masked: choose a token of the text.")
        return
    hidden = mask_predictions.mask_token(backend.tokenization, shown.sentence, target, whole_word=whole)
    masked = backend.trace(
        [hidden.text], [hidden.pair], attentions=True, mask_logits=True, max_length=controls.length_for(backend)
    )
    for position in hidden.positions:
        _predictions(backend.tokenization.vocabulary, masked, position, tokens[position].piece)
    _attention_change(shown, masked)


def _predictions(vocabulary: tuple[str, ...], masked: Trace, position: int, piece: str) -> None:
    prediction = next(
        one for one in mask_predictions.top_predictions(masked, vocabulary, 10) if one.position == position
    )
    st.markdown(f"**In place of {messages.escape(piece)} (position {position}) the model expects:**")
    st.dataframe(
        pd.DataFrame(
            [
                {"piece": one.piece, "probability": one.probability, "": "as typed" if one.piece == piece else ""}
                for one in prediction.top
            ]
        ),
        hide_index=True,
        key=f"predictions_{position}",
        column_config={"probability": st.column_config.ProgressColumn(format="%.3f", min_value=0.0, max_value=1.0)},
    )


def _attention_change(shown: Shown, masked: Trace) -> None:
    n_blocks, n_heads = shown.attentions.shape[:2]
    left, right = st.columns(2)
    with left:
        block = controls.number("block", "Block", 0, n_blocks - 1, 0)
    with right:
        head = controls.number("head", "Head", 0, n_heads - 1, 0)
    assert masked.attentions is not None  # asked for by the caller
    change = masked.attentions[block, 0, head] - shown.attentions[block, head]
    labels = matrices.axis_labels(shown.pieces)
    limit = max(float(np.abs(change).max()), 1e-6)
    figures.figure(
        matrices.token_matrix(
            change,
            labels,
            labels,
            f"Change of attention, block {block}, head {head}",
            rows="query",
            columns="key",
            value="change",
            limits=(-limit, limit),
            diverging=True,
            scale=controls.scale(),
        ),
        key="mask_change",
        alt=f"Attention with the mask less attention without, block {block}, head {head}",
        read="Orange: more attention than before the token was masked; blue: less.",
        not_shown=BERTVIZ_NOT_SHOWN,
        table=lambda: pd.DataFrame(change.round(5), columns=labels).assign(query=labels)[["query", *labels]],
    )


def caveat() -> None:
    """Attention is not explanation, with sources on both sides."""
    with st.container(border=True):
        st.markdown(
            ":material/balance: **Attention is not explanation.** High attention does not mean that a token mattered for the "
            "result: other attentions can give the same answer ([Jain and Wallace 2019](https://aclanthology.org/N19-1357/)), "
            "and much of it goes to [SEP] for want of anything better ([Clark et al. 2019](https://aclanthology.org/W19-4828/)"
            "). Others hold that it can be one plausible explanation among several ([Wiegreffe and Pinter 2019]"
            "(https://aclanthology.org/D19-1002/))."
        )
