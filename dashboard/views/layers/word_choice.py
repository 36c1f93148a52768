"""The tokens to compare: a word's occurrences, two tokens of one sentence, or one against all others of its sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from components.analysis.first_look.words import Interest, places_of, words_of
from components.analysis.matched_words import word_vectors
from components.analysis.tokens import neighbour_words, position_at
from components.arrays import cosine
from components.words.forms import are_forms
from components.words.function import FUNCTION_WORDS
from dashboard import ready_made, state
from dashboard.ui import controls, word_chips, wording

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence, Trace


NAMED = 4  # words in a title
MOST_OF_SENTENCE = 70  # characters of a sentence in a title
MANY_THINGS = 8  # up to 8 give 28 pairs, drawn as curves; more are drawn as a matrix at one layer
MOST_BESIDE = 4  # sentences with a word that stand beside the words
NEAREST = 3  # words of its sentence with which a word that stands once is compared
_NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight")


@dataclass(frozen=True)
class WordChoice:
    """The tokens to compare, in the main model's tokenization."""

    mode: str  # "across", "beside" (a word with some of its sentence), "within" or "against"
    picks: tuple[tuple[int, int], ...]  # (sentence, position)
    pairs: tuple[tuple[int, int], ...] | None  # indices into picks; None: all with all
    whole_word: bool
    total: int = 0  # occurrences of the word, where these are fewer
    kind: str = "tokens"  # what a word is shown beside: "content words", "words" or "tokens" of its sentence

    def title(self, sentences: Sequence[TokenizedSentence]) -> str:
        words = self._words(sentences)
        if self.mode == "across":
            different = _different(words)
            if self.are_forms(sentences):
                near = self._near(sentences)
                if near and len(different) == 1 and len(near) <= NAMED:
                    return f"Pairs of “{words[0]}” (near {', '.join(near)})"
                where = "across sentences" if len({row for row, _ in self.picks}) > 1 else "within its sentence"
                return f"{' and '.join(f'“{word}”' for word in different[:NAMED])} {where}"
            return f"{_counted(different)} different words: {_listed(different)}"
        if self.mode == "within":
            return f"“{words[0]}” and “{words[1]}” in one sentence"
        if self.mode == "beside":
            return f"“{words[0]}” and words of its sentence"
        return f"“{words[0]}” against all others"

    def title_with_sentence(self, sentences: Sequence[TokenizedSentence]) -> str:
        """The first word, and the sentence that it stands in with the others."""
        row, _ = self.picks[0]
        return f"“{self._words(sentences)[0]}” in “{_short(sentences[row].text, MOST_OF_SENTENCE)}”"

    def one_word(self, sentences: Sequence[TokenizedSentence]) -> str:
        """The word that all picks are, in one form; empty where they are several, or not all of its occurrences."""
        different = _different(self._words(sentences))
        return different[0] if len(different) == 1 and self.total <= len(self.picks) else ""

    def are_forms(self, sentences: Sequence[TokenizedSentence]) -> bool:
        """Whether all chosen words are one word, in the same form or in others ("bat", "bats")."""
        words = self._words(sentences)
        return all(are_forms(words[0], word) for word in words[1:])

    def subject(self, sentences: Sequence[TokenizedSentence]) -> str:
        """The occurrences of a word as the subject of a sentence in the plural."""
        words = self._words(sentences)
        different = _different(words)
        if self.total > len(words):
            return f"{len(words)} of the {self.total} “{words[0]}”"
        if len(different) == 1:
            return f"The {'two' if len(words) == 2 else len(words)} “{words[0]}”"
        if len(words) == len(different):
            return " and ".join(f"“{word}”" for word in different[:NAMED])
        return f"The {len(words)} places of {' and '.join(f'“{word}”' for word in different[:NAMED])}"

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
        the position ("the (9)").
        """
        words = self._words(sentences)
        if self.mode != "across":
            return _at_positions(words, self.picks)
        counts = Counter(word.lower() for word in words)
        names = [
            f"{word} ({wording.isolated(neighbour)})" if counts[word.lower()] > 1 and neighbour else word
            for word, neighbour in zip(words, self.neighbours(sentences), strict=True)
        ]
        return _at_positions(_told_apart(names, [f"sentence {row + 1}" for row, _ in self.picks]), self.picks)

    def quoted_names(self, sentences: Sequence[TokenizedSentence]) -> list[str]:
        """As `names` of tokens of one sentence, for a sentence of text: “the” at position 9."""
        return _at_positions([f"“{word}”" for word in self._words(sentences)], self.picks, "{} at position {}")

    def neighbours(self, sentences: Sequence[TokenizedSentence]) -> list[str]:
        """For each pick a word that tells it from the others: one that only its sentence has, or the next word of those that
        stand in one sentence; empty without such a word."""
        rows = Counter(row for row, _ in self.picks)
        once = list(rows)  # each sentence once, in its order
        position_of = dict(reversed(self.picks))  # of its first pick
        telling = dict(
            zip(
                once, neighbour_words([sentences[row] for row in once], [position_of[row] for row in once]), strict=True
            )
        )
        return [
            telling[row] if rows[row] == 1 else _next_word(sentences[row], position) for row, position in self.picks
        ]

    def short_names(self, sentences: Sequence[TokenizedSentence]) -> list[str]:
        """Names for labels in a figure whose title has the word: of occurrences only what tells them apart."""
        if self.mode != "across" or not self.are_forms(sentences):
            return self.names(sentences)
        if near := self._near(sentences):
            return near
        if len({row for row, _ in self.picks}) == len(self.picks):
            return [f"sentence {row + 1}" for row, _ in self.picks]
        return self.names(sentences)

    def _near(self, sentences: Sequence[TokenizedSentence]) -> list[str]:
        """A word beside each pick, where these tell them all apart."""
        near = [wording.isolated(word) for word in self.neighbours(sentences)]
        return near if all(near) and len({word.lower() for word in near}) == len(near) else []

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


def _next_word(sentence: TokenizedSentence, position: int) -> str:
    """The word after that at a position, or else before it; marks are passed over."""
    words = words_of([sentence])
    here = next((number for number, word in enumerate(words) if position in word.positions), None)
    if here is None or len(words) < 2:
        return ""
    return words[here + 1].text if here + 1 < len(words) else words[here - 1].text


def _told_apart(names: Sequence[str], details: Sequence[str]) -> list[str]:
    """The names, with a detail after those that occur more than once."""
    counts = Counter(name.lower() for name in names)
    return [
        f"{name}, {detail}" if counts[name.lower()] > 1 else name for name, detail in zip(names, details, strict=True)
    ]


def _at_positions(names: Sequence[str], picks: Sequence[tuple[int, int]], form: str = "{} ({})") -> list[str]:
    """The names, with their positions, in this form, after those that occur more than once: "the (9)"."""
    counts = Counter(name.lower() for name in names)
    return [
        form.format(name, position) if counts[name.lower()] > 1 else name
        for name, (_, position) in zip(names, picks, strict=True)
    ]


def _name(sentence: TokenizedSentence, position: int, whole_word: bool) -> str:
    return wording.isolated(sentence.word_text(position) if whole_word else sentence.tokens[position].piece)


def _short(text: str, limit: int = 28) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def across(
    trace: Trace, sentences: Sequence[TokenizedSentence], backend: Backend
) -> tuple[WordChoice, controls.CosineScale]:
    """Draw the choice of a word, and return what is compared and its scale: its occurrences, or it and the nearest words
    of its sentence.

    Different words are compared only where a person chose them, one in each sentence, or where a ready-made set names them.
    `trace` is that of the sentences in `backend`.
    """
    whole = bool(state.get("whole_word"))
    interest = controls.interest(sentences, backend)
    choice = _across(trace, sentences, interest, whole)
    word_chips.offer(sentences, interest, is_one=choice.mode != "across" or choice.are_forms(sentences))
    with controls.options():
        st.markdown("One token in each sentence")

        def pick(row: int, position: int) -> None:
            state.put("tokens", (*interest.positions[:row], position, *interest.positions[row + 1 :]))
            state.put("sentence", None)  # no longer one word in all sentences

        controls.token_chips(
            sentences,
            interest.positions,
            "chips_across",
            whole_word=whole,
            unknown_id=backend.tokenization.unknown_id,
            on_pick=pick,
        )
        controls.chip_legend()
        scale = _scale()
    return choice, scale


def _across(trace: Trace, sentences: Sequence[TokenizedSentence], interest: Interest, whole: bool) -> WordChoice:
    positions = interest.positions
    by_hand = WordChoice("across", tuple(enumerate(positions)), None, whole)
    names_words = bool(state.get("tokens") or ready_made.focus_of(tuple(item.text for item in sentences)))
    if names_words and state.get("sentence") is None and len(sentences) > 1 and not by_hand.are_forms(sentences):
        return by_hand
    row = interest.row
    places = places_of(sentences, row, positions[row])
    total = len(places)
    if total > MANY_THINGS:  # one of each sentence, or the chosen one and the first others of one sentence
        one_each = tuple((other, place) for other, place in enumerate(positions) if (other, place) in places)
        own = (row, positions[row])
        some = sorted([own, *[place for place in places if place != own][: MANY_THINGS - 1]])
        places = one_each if len(one_each) > 1 else tuple(some)
    if total > 1:
        return WordChoice("across", places, None, whole, total)
    return _beside(trace, sentences[row], row, positions[row], whole)


def _beside(trace: Trace, sentence: TokenizedSentence, row: int, position: int, whole: bool) -> WordChoice:
    """A word with the content words of its sentence that are nearest after the last block; else with other words or tokens."""
    own = set(_same_word(sentence, position, whole))
    others = [place for place in _others(sentence, position, whole) if place not in own]
    words = {word.positions[0]: word for word in words_of([sentence])}
    for kind, candidates in (
        ("content words", [place for place in others if place in words and words[place].is_content]),
        ("words", [place for place in others if place in words]),
        ("tokens", others),
    ):
        if candidates:
            places = [position, *candidates]
            vectors = word_vectors(trace, [(row, _same_word(sentence, place, whole)) for place in places])[-1]
            near = cosine(vectors[:1], vectors[1:])
            best = [candidates[number] for number in np.argsort(-near, kind="stable")[:NEAREST]]
            picks = tuple((row, place) for place in [position, *best])
            return WordChoice("beside", picks, tuple((0, number) for number in range(1, len(picks))), whole, kind=kind)
    return WordChoice("beside", ((row, position),), (), whole)


def _scale() -> controls.CosineScale:
    """Draw the switches of what is compared, and how it is shown."""
    controls.switch("whole_word", "Whole words", "The vector of a word is the mean of the vectors of its pieces.")
    return controls.cosine_scale()


def against(sentences: Sequence[TokenizedSentence], backend: Backend) -> tuple[WordChoice, controls.CosineScale]:
    """Draw the choice of a token, and return it with all others of its sentence, and the scale."""
    whole = bool(state.get("whole_word"))
    interest = controls.interest(sentences, backend)
    chosen = state.get("layers_sentence")
    row = interest.row if chosen is None or not 0 <= chosen < len(sentences) else int(chosen)
    word_chips.offer(sentences, Interest(row, interest.positions))
    rows = sorted({other for other, _ in places_of(sentences, row, interest.positions[row])})
    if is_beside := 1 < len(rows) <= MOST_BESIDE:
        controls.bind(
            "layers_sentence",
            st.segmented_control,
            "Sentence",
            options={other: f"{'Sentence ' * (other == rows[0])}{other + 1}" for other in rows},
            default=row,
            required=True,
            label_visibility="collapsed",
        )
    with controls.options():
        if not is_beside:
            controls.sentence(sentences, "layers_sentence", row)
        controls.token_chips(
            sentences,
            interest.positions,
            "chips_against",
            rows=[row],
            whole_word=whole,
            unknown_id=backend.tokenization.unknown_id,
        )
        controls.chip_legend()
        scale = _scale()
    first = interest.positions[row]
    picks = ((row, first), *((row, other) for other in _others(sentences[row], first, whole)))
    return WordChoice("against", picks, tuple((0, index) for index in range(1, len(picks))), whole), scale


def within(sentences: Sequence[TokenizedSentence], backend: Backend) -> tuple[WordChoice, controls.CosineScale]:
    """Draw the choice of two tokens of a sentence, and return it with the scale."""
    whole = bool(state.get("whole_word"))
    interest = controls.interest(sentences, backend)
    chosen = interest.positions
    picked = state.get("layers_sentence")
    row = interest.row if picked is None or not 0 <= picked < len(sentences) else int(picked)
    first = chosen[row]
    second = _second(sentences[row], first, whole)

    def pick(_: int, position: int) -> None:
        # The clicked token replaces the one that was chosen earlier.
        if position in (*_same_word(sentences[row], first, whole), *_same_word(sentences[row], second, whole)):
            return
        state.put("tokens", (*chosen[:row], second, *chosen[row + 1 :]))
        state.put("layers_sentence", row)
        state.put("second_token", position)

    controls.token_chips(
        sentences,
        chosen,
        "chips_within",
        rows=[row],
        whole_word=whole,
        unknown_id=backend.tokenization.unknown_id,
        on_pick=pick,
        also=second,
    )
    with controls.options():
        controls.sentence(sentences, "layers_sentence", row)
        controls.chip_legend()
        scale = _scale()
    return WordChoice("within", ((row, first), (row, second)), None, whole), scale


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


def missing(choice: WordChoice, sentences: Sequence[TokenizedSentence], trace: Trace) -> list[str]:
    """Descriptions of the chosen words that have no token in a model's trace."""
    located = positions_in(choice, sentences, trace)
    return [name for name, (_, positions) in zip(choice.descriptions(sentences), located, strict=True) if not positions]


def positions_in(
    choice: WordChoice, sentences: Sequence[TokenizedSentence], trace: Trace
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
