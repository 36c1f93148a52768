"""The page's input, and the one block and head that its views show: chosen by number, by a pattern, or by a click."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import streamlit as st

from components.analysis.attention.head_patterns import MEANING, Pattern, RankedHead
from components.analysis.attention.weights import of_sentence
from components.analysis.first_look.words import interest, words_of
from components.analysis.tokens import position_at
from components.charts import matrices, theme
from components.errors import InputError
from dashboard import caching, state
from dashboard.jobs.stored.included_words import kept_habits
from dashboard.sharing import report
from dashboard.ui import controls, messages, pair_choice
from dashboard.views.attention import findings

if TYPE_CHECKING:
    from collections.abc import Callable

    from components.analysis.attention.head_kinds import HeadKinds, Kind
    from components.analysis.attention.head_patterns import HeadPatterns
    from components.analysis.attention.telling import HeadLook
    from components.analysis.attention.weights import TextsFilter
    from components.analysis.first_look.words import Word
    from components.arrays import Float32
    from components.model.backend import Backend
    from components.model.inside import InsideBlocks
    from components.model.trace import TokenizedSentence, Trace
    from dashboard.ui.pair_choice import InputPair

FILTERS = {"all": "All", "aa": "A to A", "ab": "A to B", "ba": "B to A", "bb": "B to B"}
SHOW_ME: dict[Pattern, str] = {
    "previous": "token before",
    "next": "token after",
    "separators": "separator",
    "broad": "most even",
    "rarest": "rarest token",
}
KIND_COLOURS: dict[Kind, str] = {  # in all views: of the heads, and of the cells and lines of such a relation
    "special": theme.GREY,
    "spread": theme.VERMILION,
    "words": theme.GREEN,
    "before": theme.BLUE,
    "after": theme.ORANGE,
    "itself": theme.PURPLE,
}
BLOCK_HELP = (
    "Blocks and heads count from 0. Block b turns layer b into layer b + 1; transformers and bertviz call it layer b."
)
HEAD_HELP = (
    "Without a choice, the page opens with the head that tells most about this text: one word looks at another, two or more "
    "places away, much more than this head looks so far on average (over the included sentences, or in a model for which "
    "these averages are not known, over the words of this text)."
)
NOT_SHOWN = (
    "How much of another token's vector is added: that also depends on the value vectors (see Flow). Attention is not "
    "explanation: other weights can lead to the same answer."
)


@dataclass(frozen=True, eq=False)
class AttentionInput:
    """The input of the page, and its attentions without padding, which are computed where a view needs them."""

    backend: Backend
    pair: InputPair
    sentence: TokenizedSentence

    @cached_property
    def trace(self) -> Trace:
        """The record of this input alone, with its attentions."""
        return self.pair.trace(self.backend, attentions=True)

    @cached_property
    def attentions(self) -> Float32:
        """The attentions of all heads: [block, head, query, key]."""
        return of_sentence(self.trace, 0)

    @property
    def pieces(self) -> list[str]:
        return [token.piece for token in self.sentence.tokens]

    @property
    def special(self) -> np.ndarray:
        return np.array([token.special for token in self.sentence.tokens])

    @cached_property
    def patterns(self) -> HeadPatterns | None:
        """The heads' scores on this input; None if it has no tokens of its own."""
        try:
            return scores_of(self.trace, "all", self.backend.structure.windows)
        except InputError:
            return None

    @cached_property
    def kinds(self) -> HeadKinds | None:
        """The kinds of the heads on this input; None if it has no tokens of its own."""
        windows = self.backend.structure.windows
        return caching.head_kinds(_key_of(self.trace), windows, self.attentions, self.sentence)

    @cached_property
    def words(self) -> tuple[Word, ...]:
        return words_of([self.sentence])

    @cached_property
    def looks(self) -> tuple[HeadLook, ...]:
        """The look of each head between the texts that are shown, the most telling first; none without two words."""
        habits = kept_habits(self.backend)
        return caching.head_looks(
            _key_of(self.trace), self.direction, habits is not None, self.attentions, self.sentence, habits
        )

    @cached_property
    def opening(self) -> tuple[int, int]:
        """Block and head that the page opens with: the most telling ones, else those of the clearest pattern, else 0 and 0."""
        if self.looks:
            return self.looks[0].block, self.looks[0].head
        head = None if self.patterns is None else self.patterns.clearest()
        return (0, 0) if head is None else (head.block, head.head)

    @property
    def block(self) -> int:
        """The chosen block, or the one to open with if there is no choice or the model has fewer blocks."""
        chosen = state.get("block")
        return int(chosen) if chosen is not None and 0 <= chosen < self.attentions.shape[0] else self.opening[0]

    @property
    def head(self) -> int:
        chosen = state.get("head")
        return int(chosen) if chosen is not None and 0 <= chosen < self.attentions.shape[1] else self.opening[1]

    @property
    def is_chosen(self) -> bool:
        """Whether somebody has chosen the block or the head."""
        return state.get("block") is not None or state.get("head") is not None

    @property
    def look(self) -> HeadLook | None:
        """The look of the head on display."""
        at = (self.block, self.head)
        return next((look for look in self.looks if (look.block, look.head) == at), None)

    @property
    def telling_query(self) -> int | None:
        """The token that looks in the head on display, if its look stands out."""
        look = self.look
        return look.query if look is not None and findings.stands_out(look) else None

    @property
    def special_names(self) -> str:
        return findings.special_names(self.pieces, self.special.tolist())

    @property
    def head_in_words(self) -> str:
        """What the head on display does in this text; empty if it has no tokens of its own."""
        specials, has_habits = messages.escape(self.special_names), kept_habits(self.backend) is not None
        return findings.of_head((self.block, self.head), self.look, self.kinds, self.sentence, specials, has_habits)

    @property
    def direction(self) -> TextsFilter:
        """The texts of a pair that attention is shown from and to."""
        return cast("TextsFilter", state.get("texts_filter")) if self.sentence.pair is not None else "all"

    def inside(self) -> InsideBlocks:
        """Queries, keys and values of the same input, without its attentions, which are already here."""
        length = controls.length_for(self.backend)
        return self.backend.inside(self.pair.first, self.pair.second, max_length=length, attentions=False)


def scores_of(trace: Trace, direction: TextsFilter, windows: tuple[int | None, ...]) -> HeadPatterns:
    """The heads' scores over a trace, computed once per model and texts. Raises InputError."""
    return caching.head_patterns(_key_of(trace), direction, windows, trace)


def _key_of(trace: Trace) -> tuple[str, str, tuple[object, ...]]:
    """What identifies a trace: model, revision, texts and input ids."""
    inputs = tuple((item.text, item.pair) for item in trace.sentences)
    return trace.model, trace.revision, (inputs, trace.input_ids.tobytes())


def choose_block(model_input: AttentionInput) -> int:
    n_blocks = model_input.attentions.shape[0]
    return controls.stepped("block", "Block", 0, n_blocks - 1, model_input.opening[0], BLOCK_HELP)


def choose_head(model_input: AttentionInput) -> int:
    n_heads = model_input.attentions.shape[1]
    return controls.stepped("head", "Head", 0, n_heads - 1, model_input.opening[1], HEAD_HELP)


def chosen_position(model_input: AttentionInput, setting: str, default: Callable[[], int] | None = None) -> int:
    """The position of the token that a setting names; the default if it names none, or was chosen for another text.

    A position that is not of this text is forgotten, so that the address names what is shown. `default` is asked for it, unless
    the word was clicked on another page; without it, it is the word all sentences share.
    """
    forget_of_other_texts(setting, model_input.pair)
    position = state.get(setting)
    if position is not None and not 0 <= position < len(model_input.sentence):
        state.put(setting, position := None)
    if position is None:
        clicked = _clicked_position(model_input)
        position = clicked if clicked is not None else default() if default else word_to_begin_with(model_input)
    report.say_value(setting, position, f"“{model_input.pieces[int(position)]}”")
    return int(position)


def _clicked_position(model_input: AttentionInput) -> int | None:
    """The token of this text that was clicked on another page; None if none was, or it is not in this input."""
    row, anchors = model_input.pair.rows[0], st.session_state.get("_anchors")
    chosen: tuple[int, ...] = state.peek("tokens")
    if anchors is None or row >= len(chosen):
        return None
    found = anchors["spans"].get(model_input.pair.first)
    if found is None or found[1] == found[2]:  # a special token
        return None
    position = position_at(model_input.sentence, found[1], found[2])
    return None if position is None or model_input.sentence.tokens[position].in_pair else position


def word_to_begin_with(model_input: AttentionInput) -> int:
    """As on the other pages: the token of interest before a person chooses, which is at the same position in the pair."""
    sentences = controls.current_tokens(model_input.backend)
    offered = controls.default_interest(sentences, model_input.backend).positions
    position = offered[next(row for row, item in enumerate(sentences) if item.text == model_input.pair.first)]
    return position if position < len(model_input.sentence) else interest([model_input.sentence]).positions[0]


def position_choice(model_input: AttentionInput, setting: str, label: str, default: int | None = None) -> int:
    """A token of the input by its position, as a drop-down list; a choice is kept while the input stays.

    `default` before a person chooses: if there is none, the token of interest on all pages.
    """
    forget_of_other_texts(setting, model_input.pair)
    default = word_to_begin_with(model_input) if default is None else default
    names = dict(enumerate(matrices.axis_labels(model_input.pieces)))
    return int(controls.bind(setting, st.selectbox, label, options=names, default=default))


def forget_of_other_texts(setting: str, pair: InputPair) -> None:
    """Set a choice of a token back once the texts are others: the same position holds another word there."""
    remembered = state.texts_key(setting)
    if st.session_state.setdefault(remembered, pair) != pair:
        state.put(setting, None)
        st.session_state[remembered] = pair


def options(model_input: AttentionInput) -> Any:
    """The button with a view's further options, as a context; it begins with the second text, and for a pair what to show."""
    panel = controls.options()
    with panel:
        pair_choice.choose_second()
        if model_input.pair.second is not None:
            controls.choice("texts_filter", "Attention from", FILTERS)
    return panel


def open_head(block: int, head: int) -> None:
    """Show one head in the matrix view."""
    for setting, value in {"block": block, "head": head, "combination": "one"}.items():
        state.put(setting, value)
    state.open_view("attention-matrix")


def show_me(model_input: AttentionInput) -> None:
    """Ready-made choices: each is a pattern, and opens the head that follows it most. The one on display is marked."""
    patterns = model_input.patterns
    if patterns is None:
        return
    best = {pattern: patterns.top(pattern, 1)[0] for pattern in SHOW_ME if patterns.top(pattern, 1)}
    shown = [
        pattern for pattern, head in best.items() if (head.block, head.head) == (model_input.block, model_input.head)
    ]
    last = st.session_state.get("_show_me")
    st.session_state["w_show_me"] = last if last in shown else next(iter(shown), None)

    def choose(pattern: Pattern) -> None:
        controls.stop_playing()
        st.session_state["_show_me"] = pattern
        state.put("block", best[pattern].block)
        state.put("head", best[pattern].head)

    with st.container(horizontal=True, vertical_alignment="center", gap="small", wrap=False, key="show_me"):
        st.markdown("Show me", width="content")
        controls.checked(
            st.pills,
            "Show me the head that attends most to",
            options=best,
            format_func=SHOW_ME.__getitem__,
            key="w_show_me",
            on_choice=choose,
            label_visibility="collapsed",
            wrap=False,
        )


def said_of_head(model_input: AttentionInput) -> str:
    """What the head on display does in this text: the pattern for which it was chosen under “Show me”, else its look."""
    patterns, block, head = model_input.patterns, model_input.block, model_input.head
    chosen = st.session_state.get("w_show_me")
    if patterns is None or not chosen or not model_input.is_chosen:
        return model_input.head_in_words
    pattern = cast("Pattern", chosen)
    ranked = RankedHead(block, head, float(patterns.scores[pattern][block, head]))
    return messages.escape(pattern_message(patterns, ranked, pattern))


def pattern_message(scored: HeadPatterns, ranked: RankedHead, pattern: Pattern) -> str:
    """How much of its attention a head gives to a pattern."""
    name = f"Block {ranked.block}, head {ranked.head}"
    if pattern == "broad":
        return (
            f"{name} spreads its attention: its entropy is {100 * ranked.score:.0f} % of the highest possible entropy."
        )
    queries = scored.queries[pattern]
    few = f" This is the mean of only {queries} token{'' if queries == 1 else 's'}." if queries < 4 else ""
    return (
        f"{name} gives {100 * ranked.score:.0f} % of its attention to {MEANING[pattern]}; spread evenly, it would be "
        f"{100 * scored.chance[pattern][ranked.block]:.2g} %.{few}"
    )
