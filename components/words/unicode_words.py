"""The words of a text in any script: one definition for word rankings, highlights, training data and comparisons of texts.

A word is what stands between two word boundaries of Unicode (UAX 29) and has a letter or a digit: "don't", "3.5" and "über" are
one word each, and vowel signs, tone marks and joiners stay with their letters. Beside these

- "C++", "C#" and "E-23" are words (a letter or two, a hyphen, digits), and so is an emoji;
- scripts that are written without spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) give each pair of
  neighbouring characters, as the CJK analyser of Lucene does: the standard has no boundaries there.

Two words are the same if they are equal after `folded`. Words as a person typed them, to click on, are
components.words.typed; a tokenizer's pieces are components.model.tokenization.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

import regex

Span = tuple[int, int]  # first character, last + 1

WORDS_ARE = (
    "words by Unicode's boundaries (UAX 29) after NFC and case folding; pairs of neighbouring characters where a script has "
    "no spaces between words"
)  # for run records
# Scripts whose words only a dictionary could tell apart, with the marks that they share.
_UNSPACED_SCRIPTS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_NO_SPACES = rf"[[{_UNSPACED_SCRIPTS}\u30fc\u3005\u3006\uff70]--[\p{{Nd}}\p{{P}}\p{{S}}\p{{Z}}]]"
_JOINED = r"[\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]*+"  # what stays with the character before it (rule WB4)
_LETTER = rf"[[\p{{WB=ALetter}}\p{{WB=Hebrew_Letter}}]--{_NO_SPACES}]{_JOINED}"
_HEBREW = rf"\p{{WB=Hebrew_Letter}}{_JOINED}"
_QUOTE = rf"\"(?<={_HEBREW}\")"  # between two Hebrew letters; an apostrophe after one belongs to it (WB7a to WB7c)
_DIGIT = rf"\p{{WB=Numeric}}{_JOINED}"
_IN_WORD = rf"[\p{{WB=MidLetter}}\p{{WB=MidNumLet}}']{_JOINED}"  # between two letters (WB6, WB7)
_IN_NUMBER = rf"[\p{{WB=MidNum}}\p{{WB=MidNumLet}}']{_JOINED}"  # between two digits (WB11, WB12)
_LINE = rf"\p{{WB=ExtendNumLet}}{_JOINED}"  # as in snake_case (WB13a, WB13b)
# Each part is possessive: no text makes the pattern go back over what it has read.
_RUN = (
    rf"(?:{_LETTER}(?:(?:{_IN_WORD}|{_QUOTE}{_JOINED}(?={_HEBREW}))?{_LETTER})*+"
    rf"|{_DIGIT}(?:(?:{_IN_NUMBER})?{_DIGIT})*+|{_LINE})++(?:'(?<={_HEBREW}'){_JOINED})?+"
)
_NAMED = (
    r"(?<![\p{L}\p{N}])\p{L}{1,2}+-\p{N}++(?![\p{L}\p{N}])"
    r"|(?<![\p{L}\p{N}])\p{L}[\p{L}\p{N}]{0,30}+(?:\+\+|\#)(?![\p{L}\p{N}])"
)
_OTHERS = (
    r"(?P<emoji>\p{Regional_Indicator}{2}+|[0-9#*]\ufe0f?\u20e3|(?=[\p{Extended_Pictographic}--[©®™]])\X)"
    rf"|(?P<unspaced>(?:{_NO_SPACES}{_JOINED})++)"
)
_WORD = regex.compile(rf"{_OTHERS}|(?P<run>{_RUN})", regex.VERSION1)
_WORD_OR_NAMED = regex.compile(rf"{_OTHERS}|(?P<named>{_NAMED})|(?P<run>{_RUN})", regex.VERSION1)
# The same for texts of ASCII alone, which are most: several times as fast.
_ASCII_RUN = r"(?:[A-Za-z](?:[:.']?[A-Za-z])*+|[0-9](?:[.,;']?[0-9])*+|_)++"
_ASCII = re.compile(_ASCII_RUN)
_ASCII_OR_NAMED = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z]{1,2}+-[0-9]++(?![A-Za-z0-9])|(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9]{0,30}+(?:\+\+|\#)(?![A-Za-z0-9])|"
    + _ASCII_RUN
)
_MARKS_OF_NAMED = ("+", "#", "-")
_CLUSTER = regex.compile(rf"{_NO_SPACES}{_JOINED}", regex.VERSION1)
_RUN_OF_TEXT = re.compile(r"\S+")
_LETTER_OR_MARK = regex.compile(r"[\p{L}\p{M}\u200c\u200d]")
_STAYS = regex.compile(r"[\p{M}\u200c\u200d]")  # with the character before it
_HAS_SIGN = regex.compile(r"[\p{L}\p{N}]")
_SIGN = regex.compile(r"[\p{S}%‰]")
_NOT_SEEN = regex.compile(r"[\p{Cf}\ufe00-\ufe0f--[\u200c\u200d]]", regex.VERSION1)  # soft hyphens, marks of direction
# Letters of another width or position, as fonts of older standards had them; "²" and "½" are no such.
_FORMS = ("<wide>", "<narrow>", "<initial>", "<medial>", "<final>", "<isolated>")
_SAME_LETTER = {
    code: unicodedata.normalize("NFKC", chr(code))
    for first, last in ((0xFB50, 0xFEFF), (0xFF01, 0xFFEF))
    for code in range(first, last + 1)
    if unicodedata.decomposition(chr(code)).startswith(_FORMS)
} | dict.fromkeys(map(ord, "‘’ʻʼ"), "'")


@lru_cache(maxsize=100_000)
def folded(word: str) -> str:
    """What spellings of one word have in common: composed (NFC), case folded, "i" for "İ", without what is not seen."""
    if word.isascii():
        return word.lower()
    plain = _NOT_SEEN.sub("", unicodedata.normalize("NFC", word.translate(_SAME_LETTER))).casefold()
    return unicodedata.normalize("NFC", plain.replace("i\u0307", "i"))


def spans(text: str) -> Iterator[tuple[str, int, int]]:
    """Each word of a text, folded, with the span of characters where it stands, from left to right. Pairs overlap."""
    if text.isascii():
        for found in _pattern_of_ascii(text).finditer(text):
            if (word := found[0].lower()).strip("_"):
                yield word, *found.span()
        return
    for match in (_WORD_OR_NAMED if _may_have_named(text) else _WORD).finditer(text):
        if match["unspaced"] is not None:
            places = [cluster.span() for cluster in _CLUSTER.finditer(text, *match.span())]
            for first, last in zip(places, places[1:] or places, strict=False):
                yield folded(text[first[0] : last[1]]), first[0], last[1]
        elif match["run"] is None or _HAS_SIGN.search(match[0]):
            yield folded(match[0]), *match.span()


def words(text: str) -> list[str]:
    """The words of a text, folded, from left to right."""
    if text.isascii():
        return [word for word in _pattern_of_ascii(text).findall(text.lower()) if word.strip("_")]
    return [word for word, _, _ in spans(text)]


def joined(found: Iterable[Span]) -> tuple[Span, ...]:
    """Spans in their order from left to right; those that overlap, as pairs of characters do, are one."""
    whole: list[Span] = []
    for start, end in found:
        if whole and start < whole[-1][1]:
            whole[-1] = (whole[-1][0], max(end, whole[-1][1]))
        else:
            whole.append((start, end))
    return tuple(whole)


def words_and_signs(text: str) -> list[str]:
    """The words of a text, folded, and the signs between them that change what it says: "5 €" and "5 $", "-5" and "5".

    A minus sign is the hyphen of a keyboard; one behind a word, or behind a number and a space, is no sign.
    """
    text = text.replace("\N{MINUS SIGN}", "-")
    found: list[str] = []
    done = 0
    for word, start, end in spans(text):
        between = text[done:start]
        found += _SIGN.findall(between)
        is_hyphen = done and (between == "-" or (between.strip() == "-" and text[done - 1].isdigit()))
        if between.endswith("-") and text[start].isdigit() and not is_hyphen:
            found.append("-")
        found.append(word)
        done = max(done, end)
    return found + _SIGN.findall(text[done:])


def deletable(text: str) -> list[list[str]]:
    """The parts of a text of which each can be left out, for each run between spaces: the run, or in a script without spaces
    each character of it.
    """
    runs = (found.span() for found in _RUN_OF_TEXT.finditer(text))
    return [[text[first:last] for first, last in parts(text, start, end)] for start, end in runs]


def parts(text: str, start: int, end: int) -> list[Span]:
    """The spans of a run of characters: each letter of a script without spaces, with its marks, and what is between them."""
    found, done = [], start
    for cluster in _CLUSTER.finditer(text, start, end):
        found += [(done, cluster.start()), cluster.span()]
        done = cluster.end()
    return [(first, last) for first, last in (*found, (done, end)) if first < last]


def has_pairs(text: str) -> bool:
    """Whether a text has characters of a script without spaces, so that pairs of characters stand for its words."""
    return not text.isascii() and _CLUSTER.search(text) is not None


def has_spaced_words(text: str) -> bool:
    """Whether a text has letters of a script that is written with spaces between words."""
    return any(found.group("run") and _LETTER_OR_MARK.search(found.group()) for found in _WORD.finditer(text))


def is_within_word(text: str, place: int) -> bool:
    """Whether a text cannot be cut before the character at `place` without cutting a word, or a letter from its marks.

    Words are those of `spans`. In a script without spaces words are not known, and each letter can be cut from the next.
    """
    if not 0 < place < len(text):
        return False
    if _inner_places(text)[place]:
        return True
    return _STAYS.fullmatch(text[place]) is not None and _LETTER_OR_MARK.fullmatch(text[place - 1]) is not None


@lru_cache(maxsize=64)
def _inner_places(text: str) -> bytes:
    """1 for each place between two characters of one word, or of one letter in a script without spaces; else 0."""
    inner = bytearray(len(text) + 1)
    for match in (_WORD_OR_NAMED if _may_have_named(text) else _WORD).finditer(text):
        is_unspaced = match["unspaced"] is not None
        for found in _CLUSTER.finditer(text, *match.span()) if is_unspaced else (match,):
            length = found.end() - found.start() - 1
            inner[found.start() + 1 : found.end()] = b"\1" * length
    return bytes(inner)


def place_of_word(text: str, word: str) -> Span | None:
    """Where a word, written as in the text, stands first: not within another word. None if it stands nowhere."""
    start = text.find(word) if word else -1
    while start >= 0:
        end = start + len(word)
        if not is_within_word(text, start) and not is_within_word(text, end):
            return start, end
        start = text.find(word, start + 1)
    return None


def _may_have_named(text: str) -> bool:
    return any(mark in text for mark in _MARKS_OF_NAMED)


def _pattern_of_ascii(text: str) -> re.Pattern[str]:
    return _ASCII_OR_NAMED if _may_have_named(text) else _ASCII
