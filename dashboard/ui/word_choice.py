"""The tokens to compare: one in each sentence, two of one sentence, or one against all others of its sentence.

Layers lets a person choose them by clicking chips.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from components.analysis.tokens import neighbour_words, position_at, shared_word
from components.words.forms import are_forms
from components.words.function import FUNCTION_WORDS
from dashboard import ready_made, state
from dashboard.ui import controls

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence, Trace


NAMED = 4  # words in a title
_NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight")


@dataclass(frozen=True)
class Choice:
    """The tokens to compare, in the main model's tokenization."""

    mode: str  # "across", "within" or "against"
    picks: tuple[tuple[int, int], ...]  # (sentence, position)
    pairs: tuple[tuple[int, int], ...] | None  # indices into picks; None: all with all
    whole_word: bool

    def title(self, sentences: Sequence[TokenizedSentence]) -> str:
        words = self._words(sentences)
        if self.mode == "across":
            different = _different(words)
            if len(different) == 1:
                return f"“{words[0]}” across sentences"
            if self.are_forms(sentences):
                return f"{' and '.join(f'“{word}”' for word in different[:NAMED])} across sentences"
            return f"{_counted(different)} different words: {_listed(different)}"
        if self.mode == "within":
            return f"“{words[0]}” and “{words[1]}” in one sentence"
        return f"“{words[0]}” against all others"

    def are_forms(self, sentences: Sequence[TokenizedSentence]) -> bool:
        """Whether all chosen words are one word, in the same form or in others ("bat", "bats")."""
        words = self._words(sentences)
        return all(are_forms(words[0], word) for word in words[1:])

    def warning(self, sentences: Sequence[TokenizedSentence]) -> str:
        """What to say before a comparison across sentences that is not one of a word with itself; else empty."""
        words = self._words(sentences)
        different = _different(words)
        if self.mode != "across" or self.are_forms(sentences):
            return ""
        few = f" ({_listed(different)})" if len(different) <= NAMED else ""
        only = "no curve shows" if len(different) == len(words) else "only a curve of equal words shows"
        return f"These are {_counted(different).lower()} different words{few}: {only} how one word changes."

    def names(self, sentences: Sequence[TokenizedSentence]) -> list[str]:
        """A short name for each pick, all different: its word, and what tells equal words apart.

        Across sentences that is a word near it ("bank (river)"), or else the sentence's number; within a sentence it is
        the position.
        """
        words = self._words(sentences)
        if self.mode != "across":
            return _told_apart(words, [f"position {position}" for _, position in self.picks])
        near = neighbour_words([sentences[row] for row, _ in self.picks], [position for _, position in self.picks])
        counts = Counter(word.lower() for word in words)
        names = [
            f"{word} ({_isolated(neighbour)})" if counts[word.lower()] > 1 and neighbour else word
            for word, neighbour in zip(words, near, strict=True)
        ]
        return _told_apart(names, [f"sentence {row + 1}" for row, _ in self.picks])

    def descriptions(self, sentences: Sequence[TokenizedSentence]) -> list[str]:
        """A longer name for each pick, with its sentence or its position."""
        return [
            f"“{word}” ({f'{row + 1}: {_short(sentences[row].text)}' if self.mode == 'across' else f'position {position}'})"
            for (row, position), word in zip(self.picks, self._words(sentences), strict=True)
        ]

    def _words(self, sentences: Sequence[TokenizedSentence]) -> list[str]:
        return [_name(sentences[row], position, self.whole_word) for row, position in self.picks]


def _different(words: Sequence[str]) -> list[str]:
    """The words that are not equal except for their case, each as it stands first."""
    first: dict[str, str] = {}
    for word in words:
        first.setdefault(word.lower(), word)
    return list(first.values())


def _counted(words: Sequence[str]) -> str:
    count = len(words)
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:NAMED]) + (" …" if len(words) > NAMED else "")


def _told_apart(names: Sequence[str], details: Sequence[str]) -> list[str]:
    """The names, with a detail after those that occur more than once."""
    counts = Counter(name.lower() for name in names)
    return [
        f"{name}, {detail}" if counts[name.lower()] > 1 else name for name, detail in zip(names, details, strict=True)
    ]


def _name(sentence: TokenizedSentence, position: int, whole_word: bool) -> str:
    return _isolated(sentence.word_text(position) if whole_word else sentence.tokens[position].piece)


def _isolated(name: str) -> str:
    """The name; isolated if it is written from right to left, so that it does not reverse what is next to it."""
    if any(unicodedata.bidirectional(char) in {"R", "AL"} for char in name):
        return f"\u2068{name}\u2069"
    return name


def _short(text: str, limit: int = 28) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def choose(backend: Backend, sentences: Sequence[TokenizedSentence], mode: str, row: int) -> Choice:
    """Draw the chips of a mode, and return the choice; within a sentence, the sentence is the one at `row`."""
    whole = bool(state.get("whole_word"))
    chosen = controls.positions(sentences, backend)
    chips = partial(
        controls.token_chips, sentences, chosen, whole_word=whole, unknown_id=backend.tokenization.unknown_id
    )
    if mode == "across" and len(sentences) == 1:
        st.info(
            "One sentence has no other to compare with, so two of its tokens are compared. Add a sentence for more."
        )
        mode = "within"
    if mode == "across":
        chips("chips_across")
        focus = ready_made.focus_of(tuple(item.text for item in sentences))
        if not state.get("tokens") and not focus and shared_word(sentences) is None:
            st.caption("No content word is in all of the sentences. Click a word in each to compare others.")
        return Choice(mode, tuple(enumerate(chosen)), None, whole)
    first = chosen[row]
    if mode == "against":
        chips("chips_against", rows=[row])
        picks = ((row, first), *((row, other) for other in _others(sentences[row], first, whole)))
        return Choice(mode, picks, tuple((0, index) for index in range(1, len(picks))), whole)
    second = _second(sentences[row], first, whole)

    def pick(_: int, position: int) -> None:
        # The clicked token replaces the one that was chosen earlier.
        if position in (*_same_word(sentences[row], first, whole), *_same_word(sentences[row], second, whole)):
            return
        state.put("tokens", (*chosen[:row], second, *chosen[row + 1 :]))
        state.put("second_token", position)

    chips("chips_within", rows=[row], on_pick=pick, also=second)
    return Choice(mode, ((row, first), (row, second)), None, whole)


def _same_word(sentence: TokenizedSentence, position: int, whole: bool) -> tuple[int, ...]:
    return sentence.word_positions(position) if whole else (position,)


def _others(sentence: TokenizedSentence, first: int, whole: bool) -> list[int]:
    """The positions of every other token, or of the first piece of every other word."""
    others: list[int] = []
    skip = set(_same_word(sentence, first, whole))
    for position in range(len(sentence)):
        if position not in skip:
            others.append(position)
            skip |= set(_same_word(sentence, position, whole))
    return others


def _second(sentence: TokenizedSentence, first: int, whole: bool) -> int:
    """The position of the second token: the chosen one, else `_default_other`."""
    chosen = state.get("second_token")
    if chosen is not None and 0 <= chosen < len(sentence) and chosen not in _same_word(sentence, first, whole):
        return int(chosen)
    return _default_other(sentence, first, whole)


def _default_other(sentence: TokenizedSentence, first: int, whole: bool) -> int:
    """The position of the content word before the first token, or after it; else the longest word, or a special token."""
    others = _others(sentence, first, whole)
    words = [position for position in others if not sentence.tokens[position].special] or others
    texts = {position: sentence.word_text(position).lower() for position in words}
    content = [
        position for position, text in texts.items() if text not in FUNCTION_WORDS and any(map(str.isalnum, text))
    ]
    before = [position for position in content if position < first]
    if content:
        return before[-1] if before else content[0]
    return max(words, key=lambda position: len(sentence.word_text(position)), default=first)


def missing(choice: Choice, sentences: Sequence[TokenizedSentence], trace: Trace) -> list[str]:
    """Descriptions of the chosen words that have no token in a model's trace."""
    located = positions_in(choice, sentences, trace)
    return [name for name, (_, positions) in zip(choice.descriptions(sentences), located, strict=True) if not positions]


def positions_in(
    choice: Choice, sentences: Sequence[TokenizedSentence], trace: Trace
) -> list[tuple[int, tuple[int, ...]]]:
    """The sentence of each pick and the positions of its tokens in a trace; no positions if it has no token there."""
    located = []
    for row, position in choice.picks:
        sentence, traced = sentences[row], trace.sentences[row]
        token = sentence.tokens[position]
        traced_position: int | None = position
        if traced is not sentence and traced.tokens != sentence.tokens:
            if token.special:
                traced_position = 0 if position == 0 else len(traced) - 1
            else:
                traced_position = position_at(traced, token.start, token.end, token.in_pair)
        positions = () if traced_position is None else _same_word(traced, traced_position, choice.whole_word)
        located.append((row, positions))
    return located
