"""What is said of where one word looks, computed from what the picture shows. Markdown: texts of people are escaped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from components.analysis.first_look.decisive import DECIDED
from components.numbers import counted, enumerated, percent
from dashboard.ui import messages, wording

if TYPE_CHECKING:
    from components.analysis.first_look.decisive import Habits, Look
    from components.analysis.first_look.first_looks import FirstLooks
    from components.analysis.first_look.looked_at import LookedAt
    from components.analysis.first_look.words import Word
    from components.model.trace import TokenizedSentence

NAMED = 3  # words of which the counts are given


def of_word(
    word: Word, looks: FirstLooks, decisive: Look | None, sentence: TokenizedSentence, is_usual_known: bool = True
) -> str:
    """The look of a word that is furthest above what the head usually gives, and at what the heads look first from it.

    `is_usual_known`: what the heads do in other sentences has been measured.
    """
    of_decisive = _decisive(word, decisive, sentence, is_usual_known)
    is_clear = decisive is not None and (not is_usual_known or decisive.weight - decisive.usual >= DECIDED)
    said = _counts(word, looks, sentence, None if decisive is None else decisive.target, is_named=is_clear)
    return f"{of_decisive} {said}" if is_clear else f"{said} {of_decisive}"


def of_head(
    word: Word,
    at: tuple[int, int],
    weights: np.ndarray,
    looks: FirstLooks,
    sentence: TokenizedSentence,
    habits: Habits | None,
) -> str:
    """Where a word looks in one head, `at` a block and head, and then what `of_word` says of all heads.

    `weights` are those of the word's last token in this head, [key]; the two tokens with most of them are named.
    """
    block, head = at
    tokens = sentence.tokens

    def name(position: int) -> str:
        if position in word.positions:
            return "itself"
        if tokens[position].special:
            return messages.escape(tokens[position].piece)
        return wording.named(sentence, position)

    first, *second = np.argsort(-weights, kind="stable")[:2].tolist()
    said = f"In block {block}, head {head}, {wording.quoted(word.text)} looks most at {name(first)}: {percent(weights[first])}"
    if habits is not None and not tokens[first].special and first not in word.positions:
        usual = float(habits.at(np.array([first - word.last]))[block, head, 0])
        said += f" ({percent(usual)} is usual at that distance)"
    said += "".join(f", then at {name(position)}: {percent(weights[position])}" for position in second)
    return f"{said}. {_counts(word, looks, sentence, is_named=True)}"


def of_looked_at(
    word: Word, looks: LookedAt, decisive: Look | None, sentence: TokenizedSentence, is_usual_known: bool
) -> str:
    """In how many heads other words look first at a word, and the most decisive look at it."""
    said = _counts_at(word, looks)
    if decisive is None:
        return said
    where = f"{percent(decisive.weight)} in block {decisive.block}, head {decisive.head}"
    who = wording.quoted(sentence.word_text(decisive.target))
    if not is_usual_known:
        return f"{said} The largest share comes from {who}: {where}."
    if decisive.weight - decisive.usual < DECIDED:
        return f"{said} In no head does another word give it much more than is usual at that distance."
    return f"{said} {who} gives it {where}; this head usually gives {percent(decisive.usual)} at that distance."


def of_head_looked_at(
    word: Word,
    at: tuple[int, int],
    weights: np.ndarray,
    words: Sequence[Word],
    looks: LookedAt,
    sentence: TokenizedSentence,
) -> str:
    """Which words give most of their attention to a word in one head, and then what is said of all heads.

    `weights`: what each token gives to the word in this head, [query].
    """
    others = [other for other in words if other.positions != word.positions]
    block, head = at
    if not others:
        return _counts_at(word, looks)
    first, *second = sorted(others, key=lambda other: (-weights[other.last], other.last))[:2]
    name = [wording.quoted(sentence.word_text(other.last)) for other in (first, *second)]
    given = f"{wording.quoted(word.text)} {percent(weights[first.last])} of its attention"
    said = f"In block {block}, head {head}, {name[0]} gives {given}"
    said += "".join(f", {name[1]} {percent(weights[other.last])}" for other in second)
    return f"{said}. {_counts_at(word, looks)}"


def _counts_at(word: Word, looks: LookedAt) -> str:
    if not looks.from_words:
        return f"In none of {counted(looks.heads, 'head')} does another word look first at {wording.quoted(word.text)}."
    said = [f"{wording.quoted(other.text)} in {count}" for other, count in looks.from_words[:NAMED]]
    others = len(looks.from_words) - len(said)
    said += [counted(others, "more word")] if others else []
    begin = (
        f"In {looks.looking} of {counted(looks.heads, 'head')} another word looks first at {wording.quoted(word.text)}"
    )
    is_shared = sum(count for _, count in looks.from_words) > looks.looking
    return f"{begin}: {enumerated(said)}.{' A head can count for several words.' * is_shared}"


def _counts(
    word: Word, looks: FirstLooks, sentence: TokenizedSentence, target: int | None = None, is_named: bool = False
) -> str:
    """What most heads look first at from a word. Of the other words the first one is named, and that with the `target`.

    `is_named`: a sentence before this one has named the word.
    """
    special = " or ".join(dict.fromkeys(messages.escape(token.piece) for token in sentence.tokens if token.special))
    at_words = sum(count for _, count in looks.at_words)
    known = [
        f"{wording.quoted(other.text)} {count}"
        for place, (other, count) in enumerate(looks.at_words)
        if not place or target in other.positions
    ]
    words = f"words ({', '.join(known)})"
    if len(looks.at_words) == 1:
        words = wording.quoted(looks.at_words[0][0].text)
    at = [(at_words, f"at {words}"), (looks.itself, "at itself"), (looks.special, f"at {special}")]
    at = sorted((item for item in at if item[0]), key=lambda item: -item[0])
    itself = looks.itself if at and at[0][1] != "at itself" else 0  # else it counts with marks and signs
    at = [item for item in at if item[1] != "at itself" or item == at[0]]
    others = looks.heads - sum(count for count, _ in at)
    left = "itself or punctuation" if itself and looks.rest else "itself" if itself else "punctuation and signs"
    at += [(others, f"at {left}")] if others else []
    (count, first), *further = at
    verb = "looks" if count == 1 else "look"
    begin = f"{count} of {counted(looks.heads, 'head')} {verb} first {first}"
    begin = begin if is_named else f"From {wording.quoted(word.text)}, {begin}"
    return f"{enumerated([begin, *(f'{count} {what}' for count, what in further)])}."


def _decisive(word: Word, look: Look | None, sentence: TokenizedSentence, is_usual_known: bool) -> str:
    if look is None:
        return "There is no other word to look at."
    where = f"{percent(look.weight)} in block {look.block}, head {look.head}"
    if not is_usual_known:
        gives = f"The largest share that {wording.quoted(word.text)} gives to another word goes to"
        return f"{gives} {wording.named(sentence, look.target)}: {where}."
    if look.weight - look.usual < DECIDED:
        return "No head gives another word much more than is usual for it at that distance."
    return (
        f"{wording.quoted(word.text)} gives {wording.named(sentence, look.target)} {where}; this head usually gives "
        f"{percent(look.usual)} at that distance."
    )


def of_other_answer(old: str, new: str, candidates: Sequence[tuple[str, int, int]], heads: int) -> str:
    """What changes for the candidates of a pronoun when a word is replaced by its opposite.

    `candidates`: each with the heads that look first at it, before and after.
    """
    named = enumerated([f"{before} → {after} for {wording.quoted(text)}" for text, before, after in candidates])
    moved = sum(abs(after - before) for _, before, after in candidates)
    verdict = "hardly anything changes" if moved <= heads / 36 else "the heads look elsewhere"
    return (
        f"With {wording.quoted(new)} for {wording.quoted(old)} the sentence says the opposite, and {verdict}. Heads that look "
        f"first at a word before it: {named}."
    )
