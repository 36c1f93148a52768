"""The sections of the Attention page that summarise heads: patterns, flow, and masking a token."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis import mask_predictions
from components.analysis.attention import flow as attention_flow
from components.analysis.attention.head_patterns import MEANING, PATTERNS, Pattern, RankedHead
from components.analysis.attention.weights import second_text, select_pair, without_special
from components.analysis.tokens import default_positions
from components.charts import matrices
from components.model.catalog import CATALOG
from dashboard import navigation, state
from dashboard.ui import browser, controls, figures, messages
from dashboard.views.attention.head_choice import (
    BLOCK_HELP,
    FILTERS,
    AttentionInput,
    choose_block,
    choose_head,
    open_head,
    options,
    pattern_message,
    scores_of,
)
from dashboard.views.attention.head_tiles import head_tiles
from dashboard.views.attention.single_heads import NOT_SHOWN

if TYPE_CHECKING:
    from components.analysis.attention.head_patterns import HeadPatterns
    from components.model.backend import Backend
    from components.model.trace import Trace

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
FLOWS = {"rollout": "All blocks (rollout)", "norms": "One block (norms)"}
FLOW_HELP = (
    "Rollout follows attention from the input through all blocks up to the chosen one. Norms look at one block and weigh "
    "attention by how long the vectors are that it adds."
)


def patterns(model_input: AttentionInput, row: Any) -> None:
    """Every head's score on a pattern, as a map and a ranked table; a click opens the head."""
    with row:
        pattern = cast(
            "Pattern", controls.pick("pattern", "Heads that attend to", {key: NAMES[key] for key in PATTERNS})
        )
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
    n_blocks, n_heads = scores.shape
    head_tiles(
        np.nan_to_num(scores)[:, :, None, None],
        "patterns_map",
        [_hint(scored, block, head, pattern) for block in range(n_blocks) for head in range(n_heads)],
        open_head,
        label=f"A tile for each head (rows: blocks), coloured by its score on “{NAMES[pattern]}”; Enter opens a head",
        selected=(best[0].block, best[0].head),
        height=300,  # so that the ranking begins on the first screen
        limits=(0.0, max(best[0].score, 1e-6)),
        scale=controls.scale(),
    )
    st.markdown(f":material/insights: {pattern_message(scored, best[0], pattern)}")
    st.caption("Click a row to open its head.")
    st.dataframe(
        _ranking(scored, pattern),
        hide_index=True,
        key="patterns_table",
        on_select=partial(_open_ranked, best),
        selection_mode="single-cell",
    )
    figures.reading(
        "A score is the mean share of attention over the tokens of your text ([Clark et al. 2019](https://aclanthology.org/"
        "W19-4828/)); special tokens do not count as queries. Entropy 0 means that all attention goes to one token.",
        "A head's purpose: a few sentences are little evidence, and a pattern is not a function."
        + (
            ""
            if model_input.direction == "all"
            else f" Only {FILTERS[model_input.direction]} counts here; the entropy is that of whole rows."
        ),
    )
    figures.data("patterns", lambda: _all_scores(scored))


def _scored(model_input: AttentionInput) -> HeadPatterns:
    """The scores of the heads on the page's input, or on all sentences, because one sentence is little evidence."""
    texts, backend, trace = state.get("sentences"), model_input.backend, model_input.trace
    if len(texts) > 1 and model_input.pair.second is None:
        label = f"Use all {len(texts)} sentences"
        if controls.switch("pattern_over_all", label, "One sentence is little evidence."):
            trace = backend.trace(texts, attentions=True, max_length=controls.length_for(backend))
    elif model_input.pair.second is not None:
        options(model_input)
    return scores_of(trace, model_input.direction)


def _open_ranked(best: Sequence[RankedHead]) -> None:
    cells = st.session_state["patterns_table"].selection.cells
    if cells and browser.is_index(cells[0][0], len(best)):
        ranked = best[cells[0][0]]
        open_head(ranked.block, ranked.head)


def _hint(scored: HeadPatterns, block: int, head: int, pattern: Pattern) -> str:
    score = scored.scores[pattern][block, head]
    share = "–" if np.isnan(score) else f"{100 * score:.0f} %"
    of_what = "of the highest entropy" if pattern == "broad" else f"to {MEANING[pattern]}"
    return f"Block {block}, head {head}: {share} {of_what}. Click to open it."


def _ranking(scored: HeadPatterns, pattern: Pattern) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "block": ranked.block,
                "head": ranked.head,
                ("of the highest entropy" if pattern == "broad" else "share"): f"{100 * ranked.score:.1f} %",
                "entropy (nats)": round(float(scored.entropy[ranked.block, ranked.head]), 2),
                "mean distance (tokens)": round(float(scored.distance[ranked.block, ranked.head]), 2),
                "attends most to": NAMES[scored.best_pattern(ranked.block, ranked.head)[0]],
            }
            for ranked in scored.top(pattern, TOP)
        ]
    )


def _all_scores(scored: HeadPatterns) -> pd.DataFrame:
    blocks, heads = np.indices(scored.entropy.shape)
    columns: dict[str, Any] = {"block": blocks.ravel(), "head": heads.ravel()}
    columns |= {name: scored.scores[name].ravel().round(4) for name in PATTERNS}
    return pd.DataFrame(
        {**columns, "entropy": scored.entropy.ravel().round(4), "distance": scored.distance.ravel().round(3)}
    )


def flow(model_input: AttentionInput, row: Any) -> None:
    """Attention rollout, and norm-based attention."""
    last = model_input.attentions.shape[0] - 1
    with row:
        method = controls.choice("flow", "Estimate", FLOWS, FLOW_HELP)
        block = controls.stepped(
            "flow_block", "After block" if method == "rollout" else "Block", 0, last, last, BLOCK_HELP
        )
        panel = options(model_input)
    with panel:
        special = controls.switch(
            "flow_special",
            "Special tokens",
            "[CLS] and [SEP] often have so large a share that all other cells look equally dark.",
        )
    if method == "rollout":
        values = attention_flow.rollout(model_input.attentions)[block]
        title, unit = f"After block {block} (rollout)", "share"
        rows_title, columns_title = f"token after block {block}", "comes from the input token"
        read = (
            "**Rollout** multiplies the attentions of all blocks up to this one. Each row says what share of a token's vector "
            "comes from each input token, if attention were the only effect. Half of each vector stays with its own token in "
            "every block, for the residual connection "
            "([Abnar and Zuidema 2020](https://aclanthology.org/2020.acl-main.385/)). "
            + (
                "Whole rows sum to 1."
                if model_input.direction == "all"
                else f"Rows of the whole matrix sum to 1; this is the part {FILTERS[model_input.direction]}."
            )
        )
        not_shown = "Value vectors, feed-forward parts and LayerNorms: rollout uses nothing but the attentions."
    else:
        with panel:
            values, title = _norms(model_input, block)
        unit, rows_title, columns_title = "length", "token that receives", "token that contributes"
        read = (
            "**Norms** measure one block: the length (norm) of the vector that each token contributes to each other token: "
            "attention times the transformed value vector, in one head or summed over all heads "
            "([Kobayashi et al. 2020](https://aclanthology.org/2020.emnlp-main.574/)). [CLS] and [SEP] often contribute little "
            "although attention to them is high."
        )
        not_shown = (
            "What is left of a contribution: those of several tokens can point in opposite directions and cancel. The effect "
            "of the residual and the LayerNorm that follow is not included either."
        )
    message = _to_special(values, model_input, method) if not special and model_input.direction == "all" else ""
    second, positions = second_text(model_input.sentence), np.arange(len(values))
    if not special:
        values, second = without_special(values, model_input.special), second[~model_input.special]
        positions = positions[~model_input.special]
        not_shown += " Special tokens are left out (see Options), so rows sum to less than 1."
    part = select_pair(values, second, model_input.direction)
    if not part.matrix.size:
        st.info("There is nothing to show: one of the texts has no tokens of its own.")
        return
    rows = matrices.axis_labels(model_input.pieces, positions[list(part.queries)].tolist())
    columns = matrices.axis_labels(model_input.pieces, positions[list(part.keys)].tolist())
    figures.matrix(
        part.matrix,
        rows,
        columns,
        title,
        key="flow_matrix",
        alt=f"{title}: {len(rows)} by {len(columns)} tokens",
        rows=rows_title,
        columns=columns_title,
        value=unit,
        message=message,
        message_below=True,
        read=read,
        not_shown=not_shown,
    )


def _to_special(values: np.ndarray, model_input: AttentionInput, method: str) -> str:
    """What the special tokens, which the figure leaves out, contribute to the others; empty if there are none of either."""
    special = model_input.special
    if special.all() or not special.any():
        return ""
    of_others = values[~special]  # [token that is no special token, key]
    share = of_others[:, special].sum() / of_others.sum()
    names = " and ".join(
        dict.fromkeys(piece for piece, is_special in zip(model_input.pieces, special, strict=True) if is_special)
    )
    what = "of a token's vector comes from" if method == "rollout" else "of the contributions' lengths belongs to"
    return (
        f"By this estimate, **{100 * share:.0f} %** {what} {messages.escape(names)}, which the figure leaves out "
        "to show the rest."
    )


def _norms(model_input: AttentionInput, block: int) -> tuple[np.ndarray, str]:
    """Norm-based attention of a block, of all heads together or of one head, and its title."""
    inside = model_input.inside()
    if controls.choice("flow_heads", "Heads", {"together": "All together", "one": "One head"}) == "together":
        values = attention_flow.summed_norms(model_input.attentions[block], inside.value_contributions(block))
        return values, f"In block {block} (norms)"
    head = choose_head(model_input)
    norms = attention_flow.weighted_norms(
        model_input.attentions[block : block + 1, head : head + 1],
        inside.value_norms[block : block + 1, head : head + 1],
    )
    return norms[0, 0], f"In block {block}, head {head} (norms)"


def mask(model_input: AttentionInput, row: Any) -> None:
    """Hide a token behind the mask: what the model predicts there, and how vectors and attention change."""
    backend = model_input.backend
    has_head = backend.spec.masked_lm
    tokens, pair = model_input.sentence.tokens, model_input.pair
    target = state.get("masked")
    if target is None or not 0 <= target < len(tokens) or st.session_state.setdefault("_masked_of", pair) != pair:
        target = default_positions([model_input.sentence])[0]  # also if the choice was made for another text
    st.session_state["_masked_of"] = pair
    with row, controls.options():
        whole = controls.switch("mask_word", "Whole word", "A word of several pieces becomes as many masks.")
    controls.token_chips(
        [model_input.sentence],
        (target,),
        "chips_mask",
        whole_word=whole,
        unknown_id=backend.tokenization.unknown_id,
        on_pick=lambda _, position: state.put("masked", position),
    )
    if tokens[target].special:
        st.info("Special tokens cannot be masked: choose a token of the text.")
        return
    masked_text = mask_predictions.mask_token(backend.tokenization, model_input.sentence, target, whole_word=whole)
    masked = backend.trace(
        [masked_text.text],
        [masked_text.pair],
        attentions=True,
        mask_logits=has_head,
        max_length=controls.length_for(backend),
    )
    if has_head:
        for position in masked_text.positions:
            _predictions(backend.tokenization.vocabulary, masked, position, tokens[position].piece)
    _vector_change(model_input, masked, masked_text.positions)
    if not has_head:
        _no_predictions(backend)
    _attention_change(model_input, masked)


def _vector_change(model_input: AttentionInput, masked: Trace, hidden: Sequence[int]) -> None:
    """How far each token's last vector turns when the `hidden` tokens are masked."""
    kept = mask_predictions.kept_similarity(model_input.trace, masked)
    angles, mean = np.degrees(np.arccos(kept.tokens[-1])), float(np.degrees(np.arccos(kept.mean[-1])))
    is_hidden = np.isin(np.arange(len(angles)), hidden)
    pieces = model_input.pieces
    typed = "".join(model_input.sentence.surface(position) for position in hidden).strip()
    name = messages.escape(typed)
    others = np.flatnonzero(~is_hidden & ~model_input.special)
    first = messages.escape(pieces[0])  # [CLS], whose vector can stand for the whole text as the mean can
    message = f"Without “{name}” the mean of all tokens turns by {mean:.0f}°, and {first} by {angles[0]:.0f}°."
    if len(others):
        most = others[np.argmax(angles[others])]
        message = (
            f"Of the words, “{messages.escape(pieces[most])}” depends most on “{name}”: its vector turns by "
            f"{angles[most]:.0f}°. "
            f"{message}"
        )
    last = len(kept.tokens) - 1
    figures.part_bars(
        {"other tokens": np.where(is_hidden, np.nan, angles), "hidden token": np.where(is_hidden, angles, np.nan)},
        pieces,
        f"Which vectors depend on “{typed[:20]}”?",
        quantity="turn in degrees",
        digits=3,
        key="mask_vectors",
        alt=f"Bars: degrees by which the mask turns each token's vector at layer {last}",
        message=message,
        read=f"The model reads the text twice: as typed, and with the mask. Each bar is the angle between a token's two "
        f"vectors after the last block (layer {last}). 0° means that the token's vector does not depend on the hidden token.",
        not_shown="Why a vector changes. A vector that changes little may still use the hidden token, if the words around it "
        "give the same information.",
    )


def _no_predictions(backend: Backend) -> None:
    """In place of predictions: say that the model gives none, which models do, and lead to their list."""
    others = ", ".join(spec.title for spec in CATALOG if spec.masked_lm)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f":material/help: To guess the hidden token, a model needs a masked-LM head. {messages.escape(backend.spec.title)} "
            f"was published without one. These models from the hub have one: {others}."
        )
        if st.button("See all available models", key="see_models", icon=":material/layers:"):
            state.put("model_view", "catalog")
            st.switch_page(navigation.page_of("model"))


def _predictions(vocabulary: tuple[str, ...], masked: Trace, position: int, piece: str) -> None:
    predictions = mask_predictions.top_predictions(masked, vocabulary, 10)
    top = next(item.top for item in predictions if item.position == position)
    st.markdown(f"**Predictions for {messages.escape(piece)} (position {position}):**")
    st.dataframe(
        pd.DataFrame(
            [
                {"piece": item.piece, "probability": item.probability, "": "as typed" if item.piece == piece else ""}
                for item in top
            ]
        ),
        hide_index=True,
        key=f"predictions_{position}",
        column_config={"probability": st.column_config.ProgressColumn(format="%.3f", min_value=0.0, max_value=1.0)},
    )


def _attention_change(model_input: AttentionInput, masked: Trace) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        block, head = choose_block(model_input), choose_head(model_input)
    assert masked.attentions is not None  # the caller requested them
    change = masked.attentions[block, 0, head] - model_input.attentions[block, head]
    labels = matrices.axis_labels(model_input.pieces)
    limit = max(float(np.abs(change).max()), 1e-6)
    figures.matrix(
        change,
        labels,
        labels,
        f"Change of attention, block {block}, head {head}",
        key="mask_change",
        alt=f"Attention with the mask minus attention without it, block {block}, head {head}",
        rows="query",
        columns="key",
        value="change",
        limits=(-limit, limit),
        diverging=True,
        read="Orange means more attention than before the token was masked, blue means less.",
        not_shown=NOT_SHOWN,
    )


def caveat() -> None:
    """The note that attention is not explanation, with sources on both sides."""
    with st.container(border=True):
        st.markdown(
            ":material/balance: **Attention is not explanation.** High attention does not mean that a token mattered for the "
            "result: different attentions can give the same answer ([Jain and Wallace 2019](https://aclanthology.org/"
            "N19-1357/)), and heads often attend to [SEP] when nothing else fits ([Clark et al. 2019]"
            "(https://aclanthology.org/W19-4828/)). Others argue that attention can be one plausible explanation among "
            "several ([Wiegreffe and Pinter 2019](https://aclanthology.org/D19-1002/))."
        )
        st.caption(BLOCK_HELP)
