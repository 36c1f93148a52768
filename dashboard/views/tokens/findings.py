"""What is said above the pieces, computed from them. Markdown: texts of people are escaped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from components.analysis.tokens import statistics
from components.numbers import counted
from dashboard.ui import messages, wording

if TYPE_CHECKING:
    import numpy as np

    from components.analysis.lost_characters import LostCharacters
    from components.model.trace import TokenizedSentence

NAMED = 3  # unknown texts that are named


def of_pieces(sentences: Sequence[TokenizedSentence], lost: Sequence[LostCharacters], unknown_id: int | None) -> str:
    """What happened to the text, the worst first: cut off, not in the vocabulary, split; then what else is lost."""
    parts = [part for part in (_cut(sentences), _unknown(sentences, unknown_id)) if part]
    return " ".join([*parts, _split(sentences, lost, unknown_id)])


def _cut(sentences: Sequence[TokenizedSentence]) -> str:
    cut = [(row, item.tokens) for row, sentence in enumerate(sentences, 1) for item in sentence.dropped]
    if not cut:
        return ""
    row, tokens = cut[0]
    more = f", and of {counted(len(cut) - 1, 'other')} too" if len(cut) > 1 else ""
    verb = "is" if tokens == 1 else "are"
    return f"**Only the beginning is read:** {counted(tokens, 'piece')} of sentence {row} {verb} cut off{more}."


def _unknown(sentences: Sequence[TokenizedSentence], unknown_id: int | None) -> str:
    texts = dict.fromkeys(
        sentence.surface(token.position)
        for sentence in sentences
        for token in sentence.tokens
        if token.id == unknown_id and not token.special
    )
    if not texts:
        return ""
    named = ", ".join(f"“{messages.escape(wording.shortened(text, 20))}”" for text in list(texts)[:NAMED])
    more = f" and {len(texts) - NAMED} more" if len(texts) > NAMED else ""
    verb = "is" if len(texts) == 1 else "are"
    return f"**{named}{more} {verb} not in the vocabulary:** one and the same piece stands for all that is unknown."


def _split(sentences: Sequence[TokenizedSentence], lost: Sequence[LostCharacters], unknown_id: int | None) -> str:
    counts = statistics(sentences, unknown_id)
    if counts.split_words:
        text, pieces = _most(sentences)
        said = (
            f"{counted(counts.words, 'word')} become {counted(counts.word_pieces, 'piece')}: {pieces} for "
            f"“{messages.escape(wording.shortened(text, 30))}”"
        )
    elif counts.words:
        said = (
            f"Each of the {counted(counts.words, 'word')} is one piece" if counts.words > 1 else "The word is one piece"
        )
    else:
        said = "There is no word here"
    gone = of_lost(lost)
    return (
        f"{said}; {gone} {'is' if gone.startswith('1 ') and ',' not in gone and ' and ' not in gone else 'are'} lost."
        if gone
        else f"{said}."
    )


def _most(sentences: Sequence[TokenizedSentence]) -> tuple[str, int]:
    """The word of most pieces, and how many it has."""
    words = {
        (row, token.in_pair, token.word): (
            sentence.word_text(token.position),
            len(sentence.word_positions(token.position)),
        )
        for row, sentence in enumerate(sentences)
        for token in sentence.tokens
        if token.word is not None and any(map(str.isalnum, sentence.word_text(token.position)))
    }
    return max(words.values(), key=lambda word: word[1])


def of_tensors(mask: np.ndarray, tensors: int, is_pair: bool = False) -> str:
    """How many numbers stand for each sentence, and how many of them are padding; `mask` is [sentence, position]."""
    rows, columns = mask.shape
    who = "The pair becomes" if is_pair else "Each sentence becomes" if rows > 1 else "The sentence becomes"
    said = f"{who} {counted(tensors, 'row')} of {counted(columns, 'number')}"
    empty = int((mask == 0).sum())
    if not empty:
        return f"{said}; nothing is padding."
    verb = "is" if empty == 1 else "are"
    return f"{said}; {counted(empty, 'place')} {verb} padding (grey), which the model leaves out."


def of_lost(lost: Sequence[LostCharacters]) -> str:
    """How many characters do not come back, by kind: “3 capitals and 1 accent”; empty if none."""
    kinds = [
        (sum(len(each.capitals) for each in lost), "capital"),
        (sum(len(each.accents) for each in lost), "accent"),
        (sum(len(each.unknown) for each in lost), "unknown character"),
        (sum(len(each.others) for each in lost), "other character"),
    ]
    named = [counted(count, noun) for count, noun in kinds if count]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}" if named else ""
