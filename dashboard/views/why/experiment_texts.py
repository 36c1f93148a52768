"""The texts of an experiment: two of the session's sentences, or a ready-made pair with its text C."""

from __future__ import annotations

import json
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

from components.analysis.why import patching
from dashboard import state
from dashboard.jobs import interventions
from dashboard.jobs.stored.pairs import EXPERIMENTS, texts_of_experiments
from dashboard.ui import controls, messages, pair_choice, sentence_bar
from dashboard.ui.wording import shortened

if TYPE_CHECKING:
    from components.analysis.why.patching import PairEffect
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence

FEWEST_DIFFERENT = 3  # tokens of B that are not in A: from here on, and if they are most of them, the view gives advice
MEASURED = {"cosine": "the cosine with C", "score": "the cross-encoder's score with C", "rank": "the rank for C"}
MOST_THIRD = 1_000  # characters of text C
MOST_CHARACTERS = 500  # of each text: as many as the tokens that an experiment can read
# Session keys: the title that the list of pairs shows, and how often something other than the list has changed it.
_LISTED, _LIST_VERSION = "_listed_pair", "_list_version"
_EXAMPLE = "_example_pair"  # session key: the number of the pair that stands in for the sentences
_WHOLE = "_whole_page"  # session key: the sentences changed, so that the bar above has to be drawn again


class MinimalPair(NamedTuple):
    """A ready-made experiment: two sentences that differ in a word or two, and a text to compare them with."""

    title: str
    a: str
    b: str
    c: str
    look_for: str


@cache
def minimal_pairs() -> tuple[MinimalPair, ...]:
    """The pairs of assets/patching_pairs.json."""
    rows = json.loads(EXPERIMENTS.read_text(encoding="utf-8"))
    return tuple(MinimalPair(**row) for row in rows)


def shows_example() -> bool:
    """Whether a ready-made pair stands in for one sentence alone, or for those of a new session, which differ in many words.

    One sentence of a person's own is enough where no activation comes from A: for zeros, means and another sentence's.
    """
    sentences = state.get("sentences")
    is_enough = len(sentences) > 1 or state.get("experiment_values") != "patch"
    is_other = is_enough and sentences != state.default("sentences")
    return not is_other and state.get("experiment_texts") != "own"


def example(backend: Backend) -> MinimalPair:
    """The ready-made pair that stands in for the sentences. Raises NotReady while the pairs are tried with this model.

    The one that a person works with, else the one that shows most. Patches of an address that names no pair were made in the
    first pair of the list, with which the view began before.
    """
    chosen = state.get("experiment_texts")
    if chosen.isdecimal() and int(chosen) <= len(minimal_pairs()):
        number = int(chosen) - 1
    elif state.get("patches"):
        number = 0
    else:
        number = patching.best_of(interventions.pair_effects(backend, texts_of_experiments()))
    st.session_state[_EXAMPLE] = number
    return minimal_pairs()[number]


def work_with_example() -> None:
    """Remember which ready-made pair is shown in place of the sentences: what is chosen next belongs to it."""
    if shows_example() and state.get("experiment_texts") == "ready" and _EXAMPLE in st.session_state:
        state.put("experiment_texts", str(st.session_state[_EXAMPLE] + 1))


def names_of_pairs(backend: Backend) -> dict[str, str]:
    """The titles of the ready-made pairs, and how the list shows them: those in which something can move come first."""
    effects = interventions.known_effects(backend, texts_of_experiments())
    named: dict[str, str] = {}
    if effects is None:
        return {pair.title: pair.title for pair in minimal_pairs()}
    for is_suitable in (True, False):
        for pair, effect in zip(minimal_pairs(), effects, strict=True):
            if effect.is_suitable == is_suitable:
                why = "" if is_suitable else f" ({unsuitable(effect)})"
                named[pair.title] = pair.title + why
    return named


def unsuitable(effect: PairEffect) -> str:
    """Why little can be seen in a pair, in a few words."""
    return "hardly any difference" if effect.has_same_count else "not the same number of tokens"


def is_page_outdated() -> bool:
    """Whether a pair was just chosen, so that the line above the view, which is not drawn with it, shows other sentences."""
    return bool(st.session_state.pop(_WHOLE, False))


def two_sentences() -> tuple[str, str]:
    """Draw the choice of two of the session's sentences."""
    pair = pair_choice.choose(always=True)
    return pair.first, pair.second or pair.first


def leave_example(example: MinimalPair) -> None:
    """Buttons to use the sentences at the top, or to put the ready-made pair in their place."""
    with st.container(horizontal=True, gap="small", key="row_example"):
        st.button(
            "Compare my own sentences",
            key="experiment_own",
            icon=":material/edit_note:",
            on_click=state.put,
            args=("experiment_texts", "own"),
        )
        st.button(
            "Take this pair as my sentences",
            key="experiment_keep",
            icon=":material/check:",
            help="All pages then show this pair in the place of your sentences",
            on_click=_choose_pair,
            args=(example,),
        )


def on_display() -> MinimalPair | None:
    """The ready-made pair that is shown, if C is its text too."""
    if shows_example():
        number = st.session_state.get(_EXAMPLE, 0)
        shown = (minimal_pairs()[number].a, minimal_pairs()[number].b)
    else:
        shown = state.get("sentences")
    pair = next((pair for pair in minimal_pairs() if shown == (pair.a, pair.b)), None)
    return None if pair is None or state.get("third_text") not in ("", pair.c) else pair


def choose_ready_made(shown: MinimalPair | None, backend: Backend) -> None:
    """The list of ready-made pairs, and which of them is on display.

    The list is a new widget whenever something else changed what it shows, such as a typed sentence: a browser that has not
    drawn that yet sends the title it still shows, as if a person had chosen it, and the pair would replace the sentences.
    """
    title = None if shown is None else shown.title
    version = int(st.session_state.get(_LIST_VERSION, 0)) + (title != st.session_state.get(_LISTED, title))
    st.session_state.update({_LISTED: title, _LIST_VERSION: version})
    key = f"w_minimal_pair_{version}" if version else "w_minimal_pair"
    st.session_state[key] = title
    names = names_of_pairs(backend)
    controls.checked(
        st.selectbox,
        "Ready-made pair",
        options=list(names),
        format_func=lambda title: names.get(title, title),
        key=key,
        placeholder="Your own sentences",
        on_choice=partial(_choose_listed, version),
    )


def _choose_listed(version: int, title: str) -> None:
    if version == st.session_state.get(_LIST_VERSION):
        st.session_state[_LISTED] = title
        _choose_titled(title)


def show(texts: tuple[str, str, str], ready_made: MinimalPair | None) -> None:
    """The texts A, B and C, beside each other where there is room, and which text C is, with a button to choose another."""
    is_chosen = bool(state.get("third_text").strip())
    if shows_example():
        origin = "A and B are not the sentences at the top." if is_chosen else "Compared with C."
    elif is_chosen:
        origin = "C is your choice."
    elif ready_made is not None:
        origin = "C belongs to the pair."
    else:
        origin = "C, with which both are compared, is A until you choose another text."
    if not shows_example():  # of an example the numbers below the map say it
        origin += f" Measured by {MEASURED[state.get('experiment_outcome')]}."
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="row_experiment_texts"):
        for name, text in zip("ABC", texts, strict=True):
            st.markdown(f"**{name}** {messages.escape(shortened(text, MOST_CHARACTERS))}", width="content")
        st.caption(origin, width="content")
        with st.popover("Change C", icon=":material/edit:", width="content", type="tertiary"):
            _choose_third("sentence A itself" if ready_made is None else ready_made.c)


def _choose_third(otherwise: str) -> None:
    """The field for text C, and the session's sentences to choose from; `otherwise` is C if the field is empty."""
    typed = str(
        controls.bind(
            "third_text",
            st.text_input,
            "Text C",
            max_chars=MOST_THIRD,
            placeholder=otherwise,
            help="The text that A and B are compared with. Empty: the one of the ready-made pair, or sentence A itself.",
        )
    )
    sentences = [text for text in dict.fromkeys(state.get("sentences")) if len(text) <= MOST_THIRD]
    if len(sentences) > 2:
        st.session_state["w_third_sentence"] = typed if typed in sentences else None
        controls.checked(
            st.selectbox,
            "Or one of the sentences",
            options=sentences,
            key="w_third_sentence",
            placeholder="none",
            on_choice=partial(state.put, "third_text"),
        )


def advice(a: TokenizedSentence, b: TokenizedSentence) -> None:
    """Of two sentences with few tokens in common: that their map says little, with the ready-made pairs to choose."""
    own = {token.position for token in b.tokens if not (token.special or token.in_pair)}
    different = own.intersection(patching.align_tokens(a, b).differing)
    if len(different) < FEWEST_DIFFERENT or 2 * len(different) <= len(own):
        return
    same = len(own) - len(different)
    st.info(
        "**A and B differ in most of their words: the map can be drawn, but it says little.** An activation of A goes to the "
        f"same token of B. Of B's {len(own)} tokens, A has {f'only {same}' if same else 'none'} at the same place. Take one "
        "sentence as A, and as B the same with one word exchanged for another. Or choose a ready-made pair:"
    )
    st.session_state["w_advised_pair"] = None
    with st.container(key="row_advised"):
        controls.checked(
            st.pills,
            "Ready-made pairs",
            options=[pair.title for pair in minimal_pairs()],
            key="w_advised_pair",
            label_visibility="collapsed",
            wrap=True,
            on_choice=_choose_titled,
        )


def _choose_titled(title: str) -> None:
    _choose_pair(next(pair for pair in minimal_pairs() if pair.title == title))


def _choose_pair(pair: MinimalPair) -> None:
    sentence_bar.replace((pair.a, pair.b))
    for name, value in {"sentence_a": 0, "sentence_b": 2, "third_text": "", "patches": ()}.items():
        state.put(name, value)
    if state.get("experiment_texts") != "own":
        state.put("experiment_texts", state.default("experiment_texts"))
    st.session_state[_WHOLE] = True
