"""What is said above the pieces, computed from them. Markdown: texts of people are escaped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from components.analysis.tokens import statistics
from components.numbers import counted, enumerated
from components.words.unicode_words import has_pairs, has_spaced_words
from dashboard.ui import messages, wording

if TYPE_CHECKING:
    import numpy as np

    from components.analysis.lost_characters import LostCharacters
    from components.analysis.vocabulary import Kinds
    from components.model.trace import TokenizedSentence

NAMED = 3  # unknown texts that are named
LEAST_WORDS = 20  # function words in a vocabulary, of whose ids something is said
LOW = 0.15  # of a vocabulary: ids below are low


def of_pieces(sentences: Sequence[TokenizedSentence], lost: Sequence[LostCharacters], unknown_id: int | None) -> str:
    """What happened to the text, the worst first: cut off, not in the vocabulary, split; then what else is lost."""
    parts = [part for part in (_cut(sentences), _unknown(sentences, unknown_id)) if part]
    return " ".join([*parts, _split(sentences, lost, unknown_id)])


def _cut(sentences: Sequence[TokenizedSentence]) -> str:
    cut = [(row, item) for row, sentence in enumerate(sentences, 1) for item in sentence.dropped]
    if not cut:
        return ""
    row, tokens = cut[0][0], cut[0][1].tokens
    read = "end" if cut[0][1].is_beginning else "beginning"
    more = f", and of {counted(len(cut) - 1, 'other')} too" if len(cut) > 1 else ""
    verb = "is" if tokens == 1 else "are"
    return f"**Only the {read} is read:** {counted(tokens, 'piece')} of sentence {row} {verb} cut off{more}."


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
    elif counts.words and any(has_pairs(sentence.text) for sentence in sentences):
        are_mixed = any(has_pairs(sentence.text) and has_spaced_words(sentence.text) for sentence in sentences)
        where = ", partly in a script without spaces" if are_mixed else ", with no spaces"
        said = f"{counted(counts.word_pieces, 'piece')}{where} between words"
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


def of_tensors(mask: np.ndarray, tensors: int, second: int = 0, is_pair: bool = False) -> str:
    """How many numbers stand for each sentence, and how many of them are padding; `mask` is [sentence, position].

    `second` is how many pieces have the token type of a pair's second text.
    """
    rows, columns = mask.shape
    who = "The pair becomes" if is_pair else "Each sentence becomes" if rows > 1 else "The sentence becomes"
    said = f"{who} {counted(tensors, 'row')} of {counted(columns, 'number')}"
    empty = int((mask == 0).sum())
    if not empty:
        return f"{said}; {'token type 1 (orange) marks the second text' if second else 'nothing is padding'}."
    verb, side = "is" if empty == 1 else "are", "right" if (mask[:, -1] == 0).any() else "left"
    padded = [(row, int(count)) for row, count in enumerate((mask == 0).sum(axis=1), 1) if count]
    where = f"{counted(empty, 'place')}"
    if len(padded) <= NAMED and not is_pair:
        (row, count), *others = padded
        where = enumerated(
            [f"{counted(count, 'place')} of sentence {row}", *(f"{count} of sentence {row}" for row, count in others)]
        )
    return f"{said}; {where} {verb} padding (grey) at the {side}, which the model leaves out."


def of_lost(lost: Sequence[LostCharacters]) -> str:
    """How many characters do not come back, by kind: “3 capitals and 2 marks” (vowel signs, voicing); empty if none."""
    kinds = [
        (sum(len(each.capitals) for each in lost), "capital"),
        (sum(len(each.accents) for each in lost), "accent"),
        (sum(len(each.marks) for each in lost), "mark"),
        (sum(len(each.unknown) for each in lost), "unknown character"),
        (sum(len(each.others) for each in lost), "other character"),
    ]
    named = [counted(count, noun) for count, noun in kinds if count]
    return enumerated(named)


def of_decoding(
    lost: Sequence[LostCharacters], spaced: int, truncated: int, others: int = 0, added: Sequence[str] = ()
) -> str:
    """What does not come back of all texts: `spaced` sentences have other spaces, `truncated` pieces are cut off.

    `others` sentences differ although none of these says how; special tokens are `added`.
    """
    gone = of_lost(lost)
    more = (
        f" {messages.escape(enumerated(list(added)))} (grey) {'is' if len(added) == 1 else 'are'} added."
        if added
        else ""
    )
    parts = [f"{gone} (orange) {_verb(gone)} not come back"] if gone else []
    if spaced:
        parts.append(f"the spaces of {counted(spaced, 'sentence')} differ")
    if truncated:
        parts.append(f"{counted(truncated, 'piece')} {'is' if truncated == 1 else 'are'} cut off")
    if others and not parts:
        parts.append(f"{counted(others, 'sentence')} {'comes' if others == 1 else 'come'} back changed")
    said = f"Not exactly: {'; '.join(parts)}." if parts else "Yes: decoding returns every sentence as it was typed."
    return f"{said}{more}"


def _verb(gone: str) -> str:
    return "does" if gone.startswith("1 ") and ", " not in gone and " and " not in gone else "do"


def of_search(query: str, mode: str, found: int, size: int) -> str:
    """How many of a vocabulary's pieces a search has found; empty for ids."""
    if mode == "id" or not query.strip():
        return ""
    verb = {"begins with": ("begins with", "begin with"), "contains": ("contains", "contain")}[mode][found > 1]
    return f"{f'{found:,}' if found else 'None'} of the {size:,} pieces {verb} {_quoted([query.strip()])}."


def of_vocabulary(sentence: TokenizedSentence, name: str, unknown_id: int | None, size: int) -> str:
    """How many words of a sentence stand in a vocabulary of so many pieces whole, and the piece with the highest id."""
    words: dict[tuple[bool, int], tuple[str, list[int]]] = {}
    for token in sentence.tokens:
        text = sentence.word_text(token.position)
        if token.word is not None and not token.special and any(map(str.isalnum, text)):
            words.setdefault((token.in_pair, token.word), (text, []))[1].append(token.id)
    missing = list(
        dict.fromkeys(
            sentence.surface(token.position).strip()
            for token in sentence.tokens
            if token.id == unknown_id and not token.special
        )
    )
    if missing:
        return f"{_quoted(missing)} {'is' if len(missing) == 1 else 'are'} not among the {size:,} pieces of the vocabulary."
    if not words:
        return f"{name} has no word to look up among {size:,} pieces."
    split = [(text, len(ids)) for text, ids in words.values() if len(ids) > 1]
    of_sentence = f"of {name[0].lower()}{name[1:]}"
    if split:
        longest, pieces = max(split, key=lambda word: word[1])
        some = f"{len(split)} of the {len(words)} words" if len(words) > 1 else "The only word"
        return (
            f"{some} {of_sentence} {'is' if len(split) == 1 else 'are'} not in the vocabulary whole: {_quoted([longest])} is "
            f"built from {counted(pieces, 'piece')}."
        )
    last, number = max(((text, ids[0]) for text, ids in words.values()), key=lambda word: word[1])
    different = len({tuple(ids) for _, ids in words.values()})
    once = f" ({different} different)" if different < len(words) else ""
    if len(words) == 1:
        return f"{_quoted([last])} is in the vocabulary whole: id {number:,} of {size:,}."
    return (
        f"All {len(words)} words {of_sentence}{once} are in the vocabulary whole; {_quoted([last])} has the highest id, "
        f"{number:,} of {size:,}."
    )


def _quoted(texts: Sequence[str]) -> str:
    named = ", ".join(wording.quoted(text) for text in texts[:NAMED])
    return f"{named} and {len(texts) - NAMED} more" if len(texts) > NAMED else named


def of_kinds(kinds: Kinds | None, size: int) -> str:
    """How many of a vocabulary's pieces begin a word, and how many continue one."""
    if kinds is None:
        return f"The vocabulary has {size:,} pieces."
    marked = kinds.marked
    verb = "begin" if kinds.is_of_beginnings else "continue"
    mark = messages.escape(kinds.mark)
    said = f"{marked:,} of the {kinds.total:,} pieces begin with {mark}: they {verb} a word."
    if kinds.function_words < LEAST_WORDS or kinds.middle_id > LOW * size:
        return said
    return (
        f"{said} Frequent words have low ids here: half of the {kinds.function_words} function words, such as “the”, have "
        f"an id of {kinds.middle_id:,} or less."
    )
