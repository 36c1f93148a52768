"""The three ways from Start into the dashboard: for who teaches, who is curious, and whose search is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from components.model.guesses.masks import has_hole
from dashboard import access, navigation, ready_made
from dashboard.corpora import own_queries, uploads
from dashboard.lessons import steps
from dashboard.ui import messages, sentence_bar
from dashboard.views.home import examples

CARDS = 3
GUESS_VIEW = "mask-token"
NEW_GUESS = {"masked": None, "mask_word": None, "only_left": False}  # nothing stays of the guess before
# What a person may be curious about: a question, the view that answers it, its sentences, and what else is set.
QUESTIONS: tuple[tuple[str, str, tuple[str, ...], Mapping[str, Any]], ...] = (
    (
        "What does “it” look at?",
        "one-word-attention",
        examples.TROPHY,
        {"sentence": None, "tokens": (), "block": None, "head": None, "look_direction": "from"},
    ),
    ("Can it guess a hidden word?", GUESS_VIEW, ("Paris is the [MASK] of France.",), NEW_GUESS),
    # A ready-made pair stands in place of the sentences with which a session begins, and of no others.
    ("Rome or Paris: where does it keep a fact?", "experiments", examples.BANK, {"experiment_texts": "ready"}),
)


def draw() -> None:
    """Draw the cards beside each other; on a phone below each other."""
    with st.container(key="start_cards"):
        drawn = (("I teach", _teach), ("I am curious", _curious), ("My search is wrong", _own_search))
        for column, (title, card) in zip(st.columns(CARDS, gap="medium"), drawn, strict=True):
            with column.container(border=True, height="stretch", gap="small"):
                st.header(title, anchor=False)
                card()


def _teach() -> None:
    lessons = list(ready_made.lessons().values())
    minutes = [lesson.minutes for lesson in lessons]
    st.caption(
        f"{len(lessons)} lessons of {min(minutes)} to {max(minutes)} minutes beside the pages; a mode for the projector."
    )
    with st.container(horizontal=True, gap="small"):
        first = lessons[0]
        if st.button("Begin", key=f"start_{first.key}", icon=":material/play_arrow:", help=first.title):
            steps.show(first, 1)
        if st.button("All lessons", key="start_lessons", icon=":material/list:"):
            navigation.go_to("lessons")


def _own_search() -> None:
    how = (
        "Drop a table (CSV) with queries and their right texts, or paste rows."
        if access.uploads_allowed()
        else "This server takes no files: its operator can allow them."
    )
    st.caption(
        f"Which queries fail, why, and what helps. {how}",
        help=uploads.how_long_kept() if access.uploads_allowed() else None,
    )
    messages.guarded(lambda: own_queries.file_and_rows("start", navigation.go_to), "reading your queries")


def _curious() -> None:
    st.caption("Three questions, one picture each; or all of it in ten minutes.")
    with st.container(gap=None, key="start_questions"):
        for question, view, sentences, values in QUESTIONS:
            if st.button(messages.escape(question), key=f"ask_{view}", type="tertiary"):
                sentence_bar.take_edits()  # what was typed just before
                if view == GUESS_VIEW and (own := examples.own()):
                    navigation.go_to(view, **first_with_a_hole(own))
                sentence_bar.keep_own(sentences, "The example is now in place of")
                examples.put(sentences)
                navigation.go_to(view, **values)
        first = next(iter(ready_made.lessons().values()))
        if st.button(messages.escape(first.title), key="curious_lesson", type="tertiary"):
            steps.show(first, 1)


def first_with_a_hole(sentences: tuple[str, ...]) -> dict[str, Any]:
    """What else is set where words of a person's own sentences are guessed: the first sentence that has a hole, alone.

    Without a hole, the first sentence, of which the view hides a word.
    """
    with_hole = [row for row, text in enumerate(sentences) if has_hole(text)]
    return {**NEW_GUESS, "sentence_a": with_hole[0] if with_hole else 0}
