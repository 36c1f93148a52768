"""Start: a field for a sentence, two pictures that need no model until one is typed, and three ways into the dashboard."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from components.model.catalog import EMBEDDED_KEY, EMBEDDED_REVISION, spec_of
from components.model.guesses.masks import with_gaps
from components.model.tokenization import MAX_CHARACTERS, MAX_SENTENCES
from components.words.lines import JOINT, on_one_line, sentences_in
from dashboard import navigation, settings, state
from dashboard.declared import stops
from dashboard.sharing import report
from dashboard.ui import browser, figures, messages, model_gate, sentence_bar, wording
from dashboard.ui.waiting import progress
from dashboard.views.home import cards, examples, findings, pictures, whole
from dashboard.views.home.stored import stored

if TYPE_CHECKING:
    from dashboard.views.home.stored import StoredNumbers

TITLE = "See what BERT makes of your words"
OUTDATED = (
    "**The pictures of this page are not shown:** they were computed with other weights than those of the included model. "
    "Type a sentence to see what the model makes of it. Whoever runs this server can compute the pictures anew: "
    "`python -m dashboard.views.home.stored`"
)
_FIELD = "start_field"
_HTML = (
    '<div class="start drawing"><form class="field" autocomplete="off"><input type="text" spellcheck="false" enterkeyhint="go">'
    '<button type="button" class="clear" aria-label="Clear" hidden>×</button>'
    '<button class="look" aria-label="Look inside"><span>Look inside </span>↵</button></form>'
    '<div class="try" role="group"></div></div>'
)


def render() -> None:
    """Draw the page. What needs no model is sent first."""
    st.session_state[progress.DRAWING] = st.session_state.get(progress.DRAWING, 0) + 1
    st.session_state.pop(progress.IN_PAGE, None)
    if is_typed():
        model_gate.request_model()
    figures.begin("home")
    state.watch()
    with st.container(key="start_title"):
        st.title(TITLE, anchor=False)
    messages.notices("home")
    _field()
    with st.container(key="start_answer"):  # in every run, so that the elements below keep their positions
        if is_typed() and _is_current():
            _more(stored())
    block = st.container(key="start_block")
    if is_typed():
        with block:
            block = st.container(key="start_typed")
            st.empty()  # the second stored picture goes at once: it would stay, and hold its room, until the model is loaded
        if st.button("Follow a word through the whole path", key="start_to_path", icon=":material/route:"):
            navigation.go_to(stops.VIEW)
        _below(has_line=True)
        with block:
            messages.guarded(_typed, "looking into the sentence")
    else:
        with block:
            if _is_current():
                if state.get("model") != EMBEDDED_KEY:
                    st.caption(f"Drawn with {stored().model}, the included model, and not with the chosen one.")
                whole.draw(_take)
                pictures.draw(stored(), _take)
            else:
                st.info(OUTDATED, icon=":material/update:")
        _below(has_line=_is_current())
        model_gate.request_model_after_picture(whole.is_drawn())
    report.end_view("home", state.stop_watching())


def _below(has_line: bool) -> None:
    """The cards, and the line on what the numbers above come from."""
    cards.draw()
    if has_line:
        st.caption(_line(stored()))


def is_typed() -> bool:
    """Whether the session's sentences are shown, and not the stored pictures.

    Where nobody has said so here, they are if they are others than those a session begins with, as by a link or after
    another page. An address without any value is that of the stored pictures, to which Back leads.
    """
    looked = state.peek("looked")  # of what is shown the sentences say enough: no report has to state it
    if looked is not None:
        return bool(looked and state.get("sentences"))
    is_own = bool(state.get("sentences")) and state.get("sentences") != state.default("sentences")
    return is_own and bool(st.query_params)


def _is_current() -> bool:
    """Whether the stored pictures are of the weights that the included model has."""
    return stored().revision == whole.revision() == EMBEDDED_REVISION


def _typed() -> None:
    from dashboard.views.home import typed  # here: the pictures before it need none of what it computes with

    typed.draw()


def _more(of: StoredNumbers) -> None:
    """The pictures that stood here before, for the examples that ask what they answer."""
    sentences = state.peek("sentences")
    if sentences == examples.BANK:
        if st.button(f"{of.senses.word}: its meanings in {len(of.senses.labels)} sentences", key="start_to_senses"):
            pictures.open_senses(of.senses)
    elif sentences == examples.GOOD:
        said = f"{findings.of_blindness(of.blindness)} {findings.of_strips(of.blindness)}"
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="start_verdict"):
            st.markdown(f"**{messages.escape(of.model)} with ready-made sentences:** {said}", width="content")
            if st.button("What it cannot see", key="start_to_failures"):
                pictures.open_failures()


def _field() -> None:
    """The field with the examples below it."""
    sentences = state.get("sentences") if is_typed() else ()
    offered = examples.offered(() if sentences else state.peek("sentences"))

    def example() -> None:
        sent = browser.sent_by(_FIELD, "example")
        if not isinstance(sent, list | tuple) or len(sent) != 2 or not all(isinstance(part, str) for part in sent):
            return
        chosen = next((item for item in offered if item.key == sent[0]), None)
        if chosen is not None and chosen.sentences:
            sentence_bar.keep_own(chosen.sentences, "The example is now in place of")
            look_at(chosen.sentences)
        elif chosen is not None:
            st.session_state["_start_leads"] = (chosen.key, sent[1])

    def typed() -> None:
        text = browser.sent_by(_FIELD, "typed")
        if isinstance(text, str):
            _take(text)

    browser.web_component("start_field", _HTML, "drawing")(
        key=_FIELD,
        data={
            "text": on_one_line(sentences),
            "shown": bool(sentences),
            "label": "Your sentence",
            "placeholder": "Type a sentence, two that share a word, or one with a gap: ___",
            "short": "A sentence, or one with a ___",
            "joint": JOINT,
            "waits": state.peek(
                "projector"
            ),  # there the arrow keys lead through the picture until a person presses the field
            "most": sentence_bar.MOST_TYPED,
            "before": "Try",
            "examples": "Examples",
            "chips": [
                {
                    "key": item.key,
                    "label": item.label,
                    "hint": " ".join(item.sentences),
                    "pressed": bool(sentences) and item.sentences == sentences,
                    "leads": not item.sentences,
                }
                for item in offered
            ],
        },
        on_typed_change=typed,
        on_example_change=example,
        on_cleared_change=partial(state.put, "looked", False),
    )
    leads = st.session_state.pop("_start_leads", None)
    if leads is not None:  # not by the callback, which cannot go to another page
        navigation.go_to(examples.SEARCH_VIEW, **({"query": leads[1].strip()[:1_000]} if leads[1].strip() else {}))


def _take(text: str) -> bool:
    """Show the sentences that a person typed, if there are any; those shown already stay, with the word chosen in them."""
    shown = state.peek("sentences")
    if is_typed() and text.strip() == on_one_line(shown):
        return True
    sentences = settings.clean_sentences(list(sentences_in(text)))
    if len(sentences) > MAX_SENTENCES:
        sentences = sentences[:MAX_SENTENCES]
        state.notice(f"Only the first {MAX_SENTENCES} sentences were kept.", "home")
    if sum(map(len, sentences)) > MAX_CHARACTERS:
        state.notice(f"The text was too long: sentences may have {MAX_CHARACTERS:,} characters together.", "home")
        return False
    if (with_gap := _with_gap(text, sentences)) != sentences:
        state.notice_while("sentences", with_gap, "What stood alone in place of a word is a gap to guess now: ___.")
        sentences = with_gap
    if sentences:
        look_at(sentences)
    return bool(sentences)


def _with_gap(text: str, sentences: tuple[str, ...]) -> tuple[str, ...]:
    """The sentences of a text; the one with a gap that it is where dots stand in place of a word and end no sentence.

    Before "I", a name or a number they seem to end one: "The ... I saw was red." A model that cannot guess has no gaps.
    """
    if len(sentences) > 2 or not spec_of(state.peek("model")).can_guess:
        return sentences
    found = settings.clean_sentences(list(sentences_in(with_gaps(text.strip()))))
    return found if len(found) == 1 else sentences


def look_at(sentences: tuple[str, ...]) -> None:
    """Make these the session's sentences, and show them in place of the stored pictures."""
    examples.put(sentences)
    state.put("looked", True)


def _line(of: StoredNumbers) -> str:
    """What the numbers of the page come from."""
    if is_typed():
        title = messages.escape(spec_of(state.get("model")).title)
        return (
            f"The figures are by {title}; blocks and heads count from 0. What is usual, and the nearest words, come from the "
            "included sentences."
        )
    return (
        f"The numbers above are from {of.model}, the included model: {of.blocks} blocks of {of.heads} heads, "
        f"counted from 0, and {wording.millions(of.parameters)} parameters."
    )
