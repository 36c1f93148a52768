"""What summarises heads: patterns, and masking a token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis import mask_predictions
from components.analysis.attention.head_patterns import MEANING, PATTERNS, Pattern, RankedHead
from components.charts import matrices
from components.errors import InputError
from components.model.catalog import CATALOG
from components.numbers import percent
from components.snippets import attention as snippets
from dashboard import navigation, state
from dashboard.ui import browser, controls, figures, messages
from dashboard.views.attention.head_choice import (
    BLOCK_HELP,
    FILTERS,
    NOT_SHOWN,
    AttentionInput,
    choose_block,
    choose_head,
    chosen_position,
    open_head,
    options,
    pattern_message,
    scores_of,
)
from dashboard.views.attention.head_tiles import head_tiles

if TYPE_CHECKING:
    from components.analysis.attention.head_patterns import HeadPatterns
    from components.model.backend import Backend
    from components.model.trace import Trace
    from components.snippets.code import Input, Snippet

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
TURNS = "0° is no change, 90° nothing in common"
MOST_MASKED = 32  # words that are masked to find the one to begin with
MASKED_TOKENS = 4_000  # of all masked texts together: a trace holds every layer of them


def patterns(model_input: AttentionInput, row: Any) -> None:
    """Every head's score on a pattern, as a map and a ranked table; a click opens the head."""
    with row:
        pattern = cast(
            "Pattern", controls.pick("pattern", "Heads that attend to", {key: NAMES[key] for key in PATTERNS})
        )
        panel = options(model_input)
    with panel:
        scored, read = _scored(model_input)
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
    figures.finding(
        messages.escape(pattern_message(scored, best[0], pattern)),
        key="best_head",
        read="A score is the mean share of attention over the tokens of your text ([Clark et al. 2019](https://aclanthology.org/"
        "W19-4828/)); special tokens do not count as queries. Entropy 0 means that all attention goes to one token.",
        not_shown="A head's purpose: a few sentences are little evidence, and a pattern is not a function."
        + (
            ""
            if model_input.direction == "all"
            else f" Only {FILTERS[model_input.direction]} counts here; the entropy is that of whole rows."
        ),
    )
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
        legend=_legend(pattern, best[0].score),
        numbers=["–" if np.isnan(score) else f"{100 * score:.0f}" for score in scores.ravel()],
    )
    st.caption("Click a row to open its head.")
    st.dataframe(
        _ranking(scored, pattern),
        hide_index=True,
        key="patterns_table",
        on_select=partial(_open_ranked, best),
        selection_mode="single-cell",
    )
    figures.data(
        "patterns",
        lambda: _all_scores(scored),
        snippets.patterns(read, model_input.direction),
        "The heads' scores on each pattern",
    )


def _scored(model_input: AttentionInput) -> tuple[HeadPatterns, Input]:
    """The scores of the heads on the page's input, or on all sentences, because one sentence is little evidence; and which."""
    read = model_input.pair.input(model_input.backend)
    texts, backend, trace = state.get("sentences"), model_input.backend, model_input.trace
    if len(texts) > 1 and model_input.pair.second is None:
        label = f"Use all {len(texts)} sentences"
        if controls.switch("pattern_over_all", label, "One sentence is little evidence."):
            read = controls.current_input(backend)
            trace = backend.trace(texts, attentions=True, max_length=controls.length_for(backend))
    return scores_of(trace, model_input.direction, model_input.backend.structure.windows), read


def _open_ranked(best: Sequence[RankedHead]) -> None:
    cells = st.session_state["patterns_table"].selection.cells
    if cells and browser.is_index(cells[0][0], len(best)):
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


def mask(model_input: AttentionInput, row: Any) -> None:
    """Hide a token behind the mask: what the model predicts there, and how vectors and attention change."""
    backend = model_input.backend
    has_head = backend.spec.masked_lm
    tokens = model_input.sentence.tokens
    with row, options(model_input):
        whole = controls.switch("mask_word", "Whole word", "A word of several pieces becomes as many masks.")
        block, head = choose_block(model_input), choose_head(model_input)
    target = chosen_position(model_input, "masked", lambda: _most_depended_on(model_input, whole))
    if tokens[target].special:
        _chips(model_input, target, whole)
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
    code = (model_input.pair.input(backend), target, whole)
    _vector_change(model_input, masked, masked_text.positions, snippets.masked_vectors(*code))
    _chips(model_input, target, whole)
    if has_head:
        for position in masked_text.positions:
            _predictions(backend.tokenization.vocabulary, masked, position, tokens[position].piece)
    else:
        _no_predictions(backend)
    _attention_change(model_input, masked, block, head, partial(snippets.masked_attention, *code))


def _chips(model_input: AttentionInput, target: int, whole: bool) -> None:
    """The tokens, of which a click hides one."""
    controls.token_chips(
        [model_input.sentence],
        (target,),
        "chips_mask",
        whole_word=whole,
        unknown_id=model_input.backend.tokenization.unknown_id,
        on_pick=lambda _, position: state.put("masked", position),
    )
    st.caption("Click a token to hide it.")


def _most_depended_on(model_input: AttentionInput, whole: bool) -> int:
    """The token to hide before somebody chooses: of the content words, the one without which the others' vectors turn most.

    They are read with a mask in one pass, of a long text only as many as stay within MASKED_TOKENS. Without a content word
    that can be masked, or where the model cannot read them at once, the first token that can.
    """
    tokenization, sentence = model_input.backend.tokenization, model_input.sentence
    content = [word.last for word in model_input.words if word.is_content]
    plain = [token.position for token in sentence.tokens if not token.special]
    most = min(MOST_MASKED, max(1, MASKED_TOKENS // len(sentence)))
    for candidates in (content[:most], plain[:most]):
        masked = {}
        for position in candidates:
            with suppress(InputError):
                masked[position] = mask_predictions.mask_token(tokenization, sentence, position, whole_word=whole)
        if masked:
            texts = list(masked.values())
            try:
                trace = model_input.backend.trace(
                    [text.text for text in texts],
                    [text.pair for text in texts],
                    max_length=controls.length_for(model_input.backend),
                )
            except InputError:  # too much at once for this model: which token comes first is no reason to show nothing
                return next(iter(masked))
            turns = mask_predictions.mean_turns(model_input.trace, trace, [text.positions for text in texts])
            return list(masked)[int(np.argmax(turns))]
    return plain[0] if plain else 0


def _vector_change(model_input: AttentionInput, masked: Trace, hidden: Sequence[int], code: Snippet) -> None:
    """How far each token's last vector turns when the `hidden` tokens are masked."""
    kept = mask_predictions.kept_similarity(model_input.trace, masked)
    angles, mean = np.degrees(np.arccos(kept.tokens[-1])), float(np.degrees(np.arccos(kept.mean[-1])))
    is_hidden = np.isin(np.arange(len(angles)), hidden)
    pieces = model_input.pieces
    typed = "".join(model_input.sentence.surface(position) for position in hidden).strip()
    name = messages.escape(typed)
    others = np.flatnonzero(~is_hidden & ~model_input.special)
    first = messages.escape(pieces[0])  # [CLS], whose vector can stand for the whole text as the mean can
    message = (
        f"Without “{name}” the sentence vector (the mean of all token vectors) turns by {mean:.0f}°, and {first} by "
        f"{angles[0]:.0f}°."
    )
    words = np.array([at for at in others if any(map(str.isalnum, pieces[at]))], int)
    if len(others):
        among, kind = (words, "words") if len(words) else (others, "tokens")
        most = among[np.argmax(angles[among])]
        message = (
            f"Of the {kind}, “{messages.escape(pieces[most])}” depends most on “{name}”: its vector turns by "
            f"{angles[most]:.0f}° ({TURNS}). "
            f"{message}"
        )
    last = len(kept.tokens) - 1
    figures.part_bars(
        {"other tokens": np.where(is_hidden, np.nan, angles), "hidden token": np.where(is_hidden, angles, np.nan)},
        pieces,
        f"Which vectors depend on “{typed[:20]}”?",
        quantity="turn in degrees",
        decimals=0,
        unit="°",
        mark=(90.0, "90°: nothing in common"),
        chosen=("hidden token", "hidden"),
        digits=3,
        key="mask_vectors",
        code=code,
        alt=f"Bars: degrees by which the mask turns each token's vector at layer {last}",
        message=message,
        read=f"The model reads the text twice: as typed, and with the mask. Each bar is the angle between a token's two "
        f"vectors after the last block (layer {last}). 0° means that the token's vector does not depend on the hidden token; "
        "90°, a quarter turn, that nothing of its direction is left: such vectors have nothing in common (their cosine is 0).",
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
            navigation.go_to("available-models")


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


def _attention_change(
    model_input: AttentionInput, masked: Trace, block: int, head: int, code: Callable[[int, int], Snippet]
) -> None:
    assert masked.attentions is not None  # the caller requested them
    change = masked.attentions[block, 0, head] - model_input.attentions[block, head]
    query, key = np.unravel_index(int(np.argmax(np.abs(change))), change.shape)
    before, after = (float(trace.attentions[block, 0, head][query, key]) for trace in (model_input.trace, masked))  # type: ignore[index]
    names = [f"“{messages.escape(model_input.pieces[int(position)])}”" for position in (query, key)]
    labels = matrices.axis_labels(model_input.pieces)
    limit = max(float(np.abs(change).max()), 1e-6)
    figures.matrix(
        change,
        labels,
        labels,
        f"Change of attention, block {block}, head {head}",
        key="mask_change",
        code=code(block, head),
        alt=f"Attention with the mask minus attention without it, block {block}, head {head}",
        rows="query",
        columns="key",
        value="change",
        limits=(-limit, limit),
        diverging=True,
        message=f"In block {block}, head {head}, what changes most is how much {names[0]} looks at the place of {names[1]}: "
        f"from {percent(before)} to {percent(after)}.",
        read="Orange means more attention than before the token was masked, blue means less.",
        not_shown=NOT_SHOWN,
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
