"""From a file's bytes to text, and from a text as it stands in a file to one that every part can carry.

Which encoding a file has is written nowhere in it, so it is found out in this order: a byte order mark; UTF-8,
which text in another encoding satisfies only by a rare accident; UTF-16 without a mark, which betrays itself by
its zero bytes; UTF-8 with some broken places, where most characters beyond ASCII are whole; and then
charset-normalizer's guess from the lines that have anything beyond ASCII.

What it cannot know: encodings of one byte a character are told apart by what looks like a language, so a short
text may be taken for a sister encoding. Encodings in wide use are tried first (or three lines of French pass for
Baltic), and among equally plausible ones Windows-1252 is taken, by far the most common. That the encoding is a
guess, and which, is part of the result, and a person can name another.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import NamedTuple

from components.errors import InputError
from components.model.tokenization import clean_text

SAMPLE_BYTES = 200_000  # what a guess is made from: lines with anything beyond ASCII, up to this much
# Tried before all others; each with those it contains (Latin-1 in cp1252, Shift-JIS in cp932, GBK in gb18030, ...).
COMMON = ["cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp874", "iso8859_2", "iso8859_7"]
COMMON += ["koi8_r", "koi8_u", "cp932", "euc_jp", "gb18030", "big5", "cp949"]
CHAOS_MARGIN = 0.02  # guesses whose share of odd characters differs by less are equally plausible

# The longer mark first: UTF-32's begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NO_TEXTS = {"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"}  # of names, of programs
_BROKEN_BYTE = re.compile("[\udc80-\udcff]")  # what "surrogateescape" makes of a byte that is not UTF-8
_BREAKS = re.compile("[\t\n\v\f\r\x1c-\x1f\x85\u2028\u2029]+")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_HALVES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Decoded:
    """Text with \\n at the ends of its lines. Bytes that could not be read stand in it as U+DC80..U+DCFF."""

    text: str
    encoding: str  # Python's name of it, to be given back as it is
    guessed: bool  # True where another encoding is possible
    has_broken_bytes: bool


class CleanedText(NamedTuple):  # one a row of a corpus: a dataclass takes three times as long to make
    text: str
    changed: bool  # True when control or half characters were taken out


def decode(content: bytes, name: str, encoding: str | None = None) -> Decoded:
    """The text of a file's bytes. Raises InputError where `encoding`, or every guess, does not fit them."""
    if encoding is not None:
        return _found(_decode_as(content, name, encoding), encoding)
    for mark, marked in _MARKS:
        if content.startswith(mark):
            return _found(_decode_as(content, name, marked), marked)
    wide = _wide_without_mark(content)
    if wide is not None:
        return _found(_decode_as(content, name, wide), wide, guessed=True)
    try:
        return _found(content.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        escaped = content.decode("utf-8", "surrogateescape")
    broken = len(_BROKEN_BYTE.findall(escaped))
    whole = sum(map(len, re.findall("[^\x00-\x7f\udc80-\udcff]+", escaped)))
    if whole > broken:
        return _found(escaped, "utf-8", guessed=True, has_broken_bytes=True)
    return _guessed(content, name)


def has_broken_bytes(text: str) -> bool:
    """Whether a text of a `Decoded` has bytes that could not be read."""
    return _BROKEN_BYTE.search(text) is not None


def clean(text: str) -> CleanedText:
    """A text in one line that every part can carry.

    Line breaks and tabs become one space each run, spaces at the ends go. Control characters (NUL among them) are
    taken out, as BERT's own tokenizer does, and half characters (lone surrogates) become U+FFFD.
    """
    if text.isprintable():  # one quick look settles nearly all
        return CleanedText(text.strip(), False)
    line = _CONTROLS.sub("", _BREAKS.sub(" ", text))
    changed = _CONTROLS.search(text) is not None
    if _HALVES.search(line):
        line, changed = clean_text(line), True
    return CleanedText(line.strip(), changed)


def _found(text: str, encoding: str, guessed: bool = False, has_broken_bytes: bool = False) -> Decoded:
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return Decoded(text, encoding, guessed, has_broken_bytes)


def _decode_as(content: bytes, name: str, encoding: str) -> str:
    try:
        if codecs.lookup(encoding).name in _NO_TEXTS:
            raise LookupError(encoding)
        return content.decode(encoding)
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        raise InputError(
            f"{name} is not {encoding}: byte {problem.start + 1:,}, about line {line:,}, does not fit.",
            f"A text in {encoding} was expected.",
            "Name another encoding, or let it be found out.",
        ) from problem
    except (LookupError, ValueError) as problem:  # no such encoding, or one that is not about text
        raise InputError(
            f"There is no text encoding {encoding[:40]!r}.",
            "A name such as utf-8, cp1252, latin-1, utf-16 or shift-jis was expected.",
            "Correct it, or let the encoding be found out.",
        ) from problem


def _wide_without_mark(content: bytes) -> str | None:
    """UTF-16 without a mark, told by zero bytes at every other place, as Latin letters have them."""
    sample = content[:4096]
    if b"\0" not in sample or len(content) % 2:
        return None
    half = len(sample) / 2
    first, second = sample[0::2].count(0) / half, sample[1::2].count(0) / half
    if second > 0.4 and first < 0.05:
        return "utf-16-le"
    return "utf-16-be" if first > 0.4 and second < 0.05 else None


def _guessed(content: bytes, name: str) -> Decoded:
    from charset_normalizer import from_bytes

    sample = _telling_sample(content)
    matches = list(from_bytes(sample, cp_isolation=COMMON)) or list(from_bytes(sample))
    names = [match.encoding for match in matches]
    plausible = {
        name
        for match in matches
        if match.chaos <= matches[0].chaos + CHAOS_MARGIN
        for name in match.could_be_from_charset  # those that read the sample alike
    }
    if "cp1252" in plausible:
        names.insert(0, "cp1252")
    elif "iso8859_2" in plausible and re.search(rb"[\x80-\x9f]", sample) is None:
        names.insert(0, "iso8859_2")  # text in its sister cp1250 soon has letters among these bytes
    for name_of_encoding in names:
        try:
            return _found(content.decode(name_of_encoding), name_of_encoding, guessed=True)
        except UnicodeDecodeError:  # the sample was, but the whole is not
            continue
    raise InputError(
        f"{name} could not be read as text in any known encoding.",
        "A text file was expected.",
        "Check that it is one, save it as UTF-8, or name its encoding.",
    )


def _telling_sample(content: bytes) -> bytes:
    """Lines with bytes beyond ASCII, up to 200,000 bytes: only these say anything about the encoding."""
    lines: list[bytes] = []
    size = position = 0
    beyond = re.compile(rb"[\x80-\xff]")
    while size < SAMPLE_BYTES and (hit := beyond.search(content, position)) is not None:
        start = content.rfind(b"\n", position, hit.start()) + 1 or position
        end = content.find(b"\n", hit.start()) + 1 or len(content)
        lines.append(content[max(start, hit.start() - 1000) : min(end, hit.start() + SAMPLE_BYTES)])
        size += len(lines[-1])
        position = end
    return b"".join(lines)
