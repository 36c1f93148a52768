"""Home: what the dashboard is, one live figure of the session's sentences, and a link to every page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from components.analysis.similarity.courses import courses_of
from components.analysis.tokens import shared_word
from components.lessons.reader import LEVELS
from dashboard import navigation, ready_made, settings, state
from dashboard.lessons import steps
from dashboard.sharing import report
from dashboard.ui import controls, figures, layer_figures, messages, model_gate, word_choice, wording

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.analysis.similarity.cosines import LayerCurves
    from components.model.architecture.structure import Structure
    from components.model.trace import Pooling, TokenizedSentence

CARDS = 3  # per row: the titles of more would be truncated
SHOWN_CHARACTERS = 160  # of each sentence


def render() -> None:
    with st.container(key="view_header"):
        st.title("See what happens inside BERT", anchor=False)
        st.caption(
            "BERT turns every word into a vector and changes it block by block until it carries the word's context. "
            "Type your own sentences above, and look at every step in a real model."
        )
    messages.notices("home")
    figures.begin()
    state.watch()
    messages.guarded(_example, "drawing the example")
    report.end_view("home", state.stop_watching())
    st.subheader("A page for every step", anchor=False)
    _cards()
    st.subheader("Lessons", anchor=False)
    _lessons()


def _example() -> None:
    """The curves of a word that the sentences share, or of the sentences if they share none."""
    backend = model_gate.main_model()
    if not navigation.is_offered(backend, "blocks", "home"):
        return
    texts: tuple[str, ...] = state.get("sentences") or ready_made.ready_made_sets()[settings.DEFAULT_SET].sentences
    chosen_set = ready_made.set_of(texts)
    focus = () if chosen_set is None else chosen_set.focus
    shown = texts[: layer_figures.MANY_THINGS]
    trace = backend.trace(shown, max_length=controls.length_for(backend))
    sentences = trace.sentences
    if chosen_set is not None and chosen_set.view == "sentences":
        are_whole = True
    else:
        are_whole = len(shown) > 1 and not focus and shared_word(sentences) is None
    choice = word_choice.default_choice(sentences, focus)
    left, right = st.columns([5, 2], gap="large")
    with right:
        _list(sentences, None if are_whole else choice)
        if len(texts) > len(shown):
            st.caption(f"The first {len(shown)} of {len(texts)} sentences.")
        curves = (
            layer_figures.sentence_curves(trace, backend.own_pooling)
            if are_whole
            else layer_figures.word_curves(trace, choice, sentences)
        )
        shown_choice = None if are_whole else choice
        st.markdown(_explanation(sentences, shown_choice, curves, backend.own_pooling, backend.structure))
        messages.hint("sentences" if are_whole else "across")
        st.page_link(navigation.page_of("meaning"), label="More under Meaning", icon=":material/show_chart:")
    if are_whole:
        messages.cross_encoder_note([backend])
        layer_figures.compare_sentences(
            [backend], [trace], backend.own_pooling, True, key="home", scale=controls.CosineScale(), place=left
        )
    else:
        layer_figures.compare_words(
            [backend], [trace], choice, sentences, key="home", scale=controls.CosineScale(), place=left
        )


def _list(sentences: Sequence[TokenizedSentence], choice: word_choice.Choice | None) -> None:
    """The sentences, with the chosen words marked."""
    lines = []
    for row, sentence in enumerate(sentences):
        spans = sorted(
            {
                (sentence.tokens[pieces[0]].start, sentence.tokens[pieces[-1]].end)
                for picked_row, position in (choice.picks if choice is not None else ())
                if picked_row == row
                for pieces in [sentence.word_positions(position)]
                if not sentence.tokens[position].special
            }
        )
        text, line, end = sentence.text[:SHOWN_CHARACTERS], "", 0
        for start, stop in spans:
            if stop <= len(text):
                line += messages.escape(text[end:start])
                line += f":orange-background[**{messages.escape(text[start:stop])}**]"
                end = stop
        more = " …" if len(sentence.text) > SHOWN_CHARACTERS else ""
        lines.append(f"{row + 1}. {line}{messages.escape(text[end:])}{more}")
    st.markdown("\n".join(lines))


def _explanation(
    sentences: Sequence[TokenizedSentence],
    choice: word_choice.Choice | None,
    curves: LayerCurves,
    own_pooling: Pooling,
    structure: Structure,
) -> str:
    """What the figure compares, in words, and what its curves do."""
    finding = layer_figures.course_in_words(curves)
    if choice is None:
        vector = wording.POOLINGS_EXPLAINED[own_pooling]
        text = f"Each curve compares two whole sentences (sentence vector: {vector[0].lower()}{vector[1:]})."
        return f"{text} {messages.escape(finding)}".strip()
    if choice.mode == "within":
        return (
            f"With one sentence, the curve compares two of its words. {messages.escape(finding)} Add a second sentence to see "
            "how a word changes from sentence to sentence."
        )
    pieces = {
        tuple(sentences[row].tokens[piece].id for piece in sentences[row].word_positions(position))
        for row, position in choice.picks
    }
    if len(pieces) > 1:
        words = "forms of one word" if choice.are_forms(sentences) else "different words"
        return (
            f"Each curve compares two of the marked words, which are {words}. Each block mixes in the words around them. "
            f"{messages.escape(finding)}"
        )
    return (
        f"At layer 0 {_at_layer_zero(choice, structure)}. Then each block mixes in the words around it. "
        f"{messages.escape(finding)}{_same_meaning(sentences, choice, curves)}"
    )


def _at_layer_zero(choice: word_choice.Choice, structure: Structure) -> str:
    """What tells the vectors of a word in several sentences apart before the first block."""
    if not structure.has_position_vectors:
        return "the marked word has one vector, because positions do not enter there"
    if len({position for _, position in choice.picks}) == 1:
        return "the marked word has one vector, because it stands at the same position everywhere"
    return "the vectors of the marked word differ only by their positions"


def _same_meaning(sentences: Sequence[TokenizedSentence], choice: word_choice.Choice, curves: LayerCurves) -> str:
    """That a model hardly tells a word's sentences apart, where its curves say so."""
    found = courses_of(curves)
    if found is None or not found.are_alike:
        return ""
    row, position = choice.picks[0]
    where = "both sentences" if len(choice.picks) == 2 else "all sentences"
    return f" To this model “{messages.escape(sentences[row].word_text(position))}” is nearly the same in {where}."


def _lessons() -> None:
    """The lessons for a first visit, and a link to all."""
    lessons = [lesson for lesson in ready_made.lessons().values() if lesson.level == LEVELS[0]][:CARDS]
    st.markdown("Short texts beside the pages: they set what a page shows, and ask what you expect before you see it.")
    for column, lesson in zip(st.columns(CARDS), lessons, strict=False):
        with column.container(border=True, key=f"lesson_card_{lesson.key}", height="stretch"):
            if st.button(lesson.title, key=f"start_{lesson.key}", icon=":material/school:", type="tertiary"):
                steps.show(lesson, 1)
            st.caption(f"{lesson.question} About {lesson.minutes} minutes.")
    st.page_link(
        navigation.page_of("lessons"), label=f"All {len(ready_made.lessons())} lessons", icon=":material/school:"
    )


def _cards() -> None:
    pages = navigation.steps()
    columns = [column for _ in range(0, len(pages), CARDS) for column in st.columns(CARDS)]
    for column, page in zip(columns, pages, strict=False):
        with column.container(border=True, key=f"card_{page.key}"):
            st.page_link(navigation.page_of(page.key), label=f"**{page.title}**", icon=page.icon)
            st.caption(page.question)
