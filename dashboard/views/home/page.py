"""Home: what the dashboard is, one live figure, and a link to every page."""

from __future__ import annotations

from functools import partial

import streamlit as st

from components.analysis.tokens import default_positions
from dashboard import caching, navigation, ready_made
from dashboard.ui import messages, model_gate
from dashboard.ui.layer_figures import Compared, compare
from dashboard.ui.word_choice import Choice, vectors

CARDS = 3  # per row: the titles of more would be truncated


def render() -> None:
    st.title("See what happens inside BERT")
    st.markdown(
        "BERT turns every word of a sentence into a vector and changes this vector block by block until it carries the "
        "word's context. Type your own sentences in the line above, open a page, and look at every step in a real model."
    )
    st.subheader("One word in three sentences", anchor=False)
    messages.guarded(_bank, "drawing the example")
    st.subheader("A page for every step", anchor=False)
    _cards()


def _bank() -> None:
    backend = model_gate.main_model()
    texts = ready_made.ready_made_sets()["bank"].sentences
    trace = backend.trace(texts)
    sentences = trace.sentences
    # The word that all sentences of this set share is "bank".
    choice = Choice("across", tuple(enumerate(default_positions(sentences))), None, whole_word=True)
    left, right = st.columns([2, 5], gap="large")
    with left:
        for number, text in enumerate(texts, start=1):
            st.markdown(f"{number}.  " + text.replace("bank", ":orange-background[**bank**]"))
        st.markdown(
            "At layer 0 the three vectors of “bank” are almost the same: only their positions differ. Then each block mixes "
            "in the surrounding words. Does the river's bank move away from the two banks that hold money?"
        )
        st.page_link(navigation.page_of("layers"), label="Try it with your own words", icon=":material/show_chart:")
    with right:
        compare(
            [
                Compared(
                    backend,
                    vectors(choice, sentences, trace),
                    partial(caching.token_baseline, backend),
                )
            ],
            key="home_bank",
            title="How similar “bank” stays",
            names=choice.names(sentences),
            descriptions=choice.descriptions(sentences),
            pairs=None,
            centred=False,
            baseline="two unrelated tokens",
        )


def _cards() -> None:
    pages = [page for page in navigation.PATH if page[0] != "home"]
    columns = [column for _ in range(0, len(pages), CARDS) for column in st.columns(CARDS)]
    for column, (key, title, icon, question) in zip(columns, pages, strict=False):
        with column.container(border=True, key=f"card_{key}"):
            st.image(
                ready_made.ASSETS / "cards" / f"{key}.svg", width="stretch", alt=f"Small picture of the {title} page"
            )
            st.page_link(navigation.page_of(key), label=f"**{title}**", icon=icon)
            st.caption(question)


render()
