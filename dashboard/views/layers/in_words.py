"""What a word means at a layer, in words: the nearest words of the included sentences, each in its sentence."""

from __future__ import annotations

import unicodedata
from collections import Counter
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from components.analysis.first_look.nearest import NEAREST
from components.analysis.matched_words import word_vectors
from components.charts.theme import number
from components.numbers import counted
from dashboard.jobs.stored.included_words import included_words
from dashboard.ui import browser, controls, figures
from dashboard.ui.waiting import frame
from dashboard.views.layers import word_choice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.analysis.first_look.nearest import Neighbour, WordStore
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence, Trace

FULL_PLACES, FEWER = 3, 3  # up to so many places have NEAREST words each, more have fewer
MOST_PLACES = 6
BEFORE, AFTER = 26, 24  # characters of a sentence that stand before and after a word
STEPPED_FROM = 13  # layers that stand side by side


def draw(
    backend: Backend, trace: Trace, choice: word_choice.WordChoice, sentences: Sequence[TokenizedSentence], layer: int
) -> None:
    """Draw the nearest words of each chosen place at a layer. They are read without a forward pass for another layer."""
    with frame.figure("in_words"):
        store = included_words(backend).words
        figures.markup(markup(store, trace, choice, sentences, layer), "in_words")


def choose_layer(last: int) -> int:
    """Draw the choice of the layer that the words are of."""
    label = "In words: the nearest at layer"
    if last < STEPPED_FROM:
        names = {layer: str(layer) for layer in range(last + 1)}
        return int(
            controls.bind(
                "layer", st.segmented_control, label, options=names, default=last, required=True, width="stretch"
            )
        )
    return controls.layer(last, label)


def markup(
    store: WordStore, trace: Trace, choice: word_choice.WordChoice, sentences: Sequence[TokenizedSentence], layer: int
) -> str:
    """The nearest words as HTML, in which all texts are escaped."""
    picks = choice.picks[:FULL_PLACES] if choice.mode == "beside" else choice.picks
    located = word_choice.positions_in(choice, sentences, trace)[: len(picks)]
    shown = [(number, places) for number, (_, places) in enumerate(located) if places][:MOST_PLACES]
    most = NEAREST if len(shown) <= FULL_PLACES else FEWER
    vectors = word_vectors(trace, [(picks[number][0], places) for number, places in shown])[layer]
    own = [trace.sentences[picks[number][0]].text for number, _ in shown]
    parts = []
    for (index, places), near in zip(shown, store.nearest(vectors, own, layer), strict=True):
        sentence = trace.sentences[picks[index][0]]
        tokens = [sentence.tokens[place] for place in places]
        start, end = tokens[0].start, tokens[-1].end
        head = _in_sentence(sentence.text, start, end) if end > start else f"<b>{escape(tokens[0].piece)}</b>"
        lines = "".join(map(_line, near[:most]))
        said = _far(near[:most], float(store.unrelated[layer])) or _senses(near[:most])
        parts.append(
            f'<section><p dir="auto"><span>{head}</span><small>{escape(said)}</small></p><ol>{lines}</ol></section>'
        )
    left = len(located) - len(shown)
    more = f"{counted(left, 'more place')} {'is' if left == 1 else 'are'} not shown. " if left > 0 else ""
    foot = f"{more}Searched: {len(store.sentences):,} included sentences, without the sentence itself."
    return f'<div class="bi-words">{"".join(parts)}<p class="foot">{escape(foot)}</p></div>'


def _far(near: Sequence[Neighbour], unrelated: float) -> str:
    """Which of the nearest words are no nearer than unrelated words may be by chance; empty where none is."""
    far = sum(item.cosine <= unrelated for item in near)
    if not far:
        return ""
    which = "all" if far == len(near) else f"the last {far}" if far > 1 else "the last"
    return f"{which} as far as unrelated words"


def _senses(near: Sequence[Neighbour]) -> str:
    """How many of the nearest words have which sense; the nearest one's where it is not the most frequent."""
    counts = Counter(item.place.sense for item in near if item.place.sense)
    unnamed = len(near) - counts.total() if counts else 0
    parts = [f"{sense} {count}" for sense, count in counts.most_common()] + [f"no label {unnamed}"] * (unnamed > 0)
    said = " · ".join(parts)
    first = near[0].place.sense if near else ""
    is_other = first and counts[first] < max(counts.values())
    return f"{said} · the nearest: {first}" if is_other else said


def _line(item: Neighbour) -> str:
    text, place = item.sentence, item.place
    before, after = text[: place.start], text[place.end :]
    own = f"{' ' * before.endswith(' ')}<b>{escape(text[place.start : place.end])}</b>"
    is_left = browser.direction(text) == "ltr"
    return (
        f'<li dir="{"ltr" if is_left else "rtl"}"><span>{number(item.cosine, 2)}</span>'
        f"<span><bdi>{escape(_ending(before.rstrip(), BEFORE))}</bdi></span>"
        f"<span>{own}{escape(_beginning(after, AFTER))}</span>"
        f"<small>{escape(place.sense)}</small></li>"
    )


def _in_sentence(text: str, start: int, end: int) -> str:
    before, after = _ending(text[:start], 2 * BEFORE), _beginning(text[end:], 2 * AFTER)
    return f"{escape(before)}<b>{escape(text[start:end])}</b>{escape(after)}"


def _ending(text: str, most: int) -> str:
    """The end of a text, in whole words where it has some."""
    if len(text) <= most:
        return text
    cut = text[len(text) - most :]
    _, space, rest = cut.partition(" ")
    return f"… {rest if space and rest.strip() else _whole(cut)}"


def _beginning(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    cut = text[:most]
    rest, space, _ = cut.rpartition(" ")
    return f"{rest if space and rest.strip() else cut} …"


def _whole(text: str) -> str:
    """The text without marks at its beginning, whose letter is cut off."""
    return text.lstrip("".join(char for char in text if unicodedata.combining(char)))
