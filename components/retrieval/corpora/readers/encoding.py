"""From a file's bytes to text, and from any text to a cleaned one in a single line.

A file does not say which encoding it has, so the encoding is detected in this order: a byte order mark; UTF-16 without a
mark, recognised by its zero bytes; UTF-8, which text in another encoding satisfies only by a rare accident; UTF-8 with
some invalid bytes, where most characters beyond ASCII are valid; and then charset-normalizer's guess from the lines
with characters beyond ASCII.

What it cannot know: encodings with one byte per character are distinguished by which language a text looks like, so a
short text may be read in a related encoding. Encodings in wide use are tried first (otherwise three lines of French may
be read as Baltic), and among equally plausible ones Windows-1252 is taken, by far the most common. The result says
whether the encoding was guessed, and a person can name another.

A text is decoded a block at a time, each time it is read: as one string it can take four times the memory of its bytes.
"""

from __future__ import annotations

import codecs
import io
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from components.errors import InputError
from components.model.tokenization import clean_text
from components.retrieval.corpora.readers.limits import MOST_ROW_CHARACTERS

BLOCK_BYTES = 1 << 20  # decoded together
SAMPLE_BYTES = 200_000  # most bytes, of lines with characters beyond ASCII, from which an encoding is guessed
# Tried before all others; each with those it contains (Latin-1 in cp1252, Shift-JIS in cp932, GBK in gb18030, ...).
COMMON = ["cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp874", "iso8859_2", "iso8859_7"]
COMMON += ["koi8_r", "koi8_u", "cp932", "euc_jp", "gb18030", "big5", "cp949"]
CHAOS_MARGIN = 0.02  # guesses are equally plausible if their shares of unlikely characters differ by less

# The longer mark first: UTF-32's begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NOT_FOR_TEXTS = {"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"}  # for names or source code
# UTF-7 keeps an unfinished run of letters and decodes it again with each block, which takes hours for some files. HZ and
# ISO-2022, which also switch their meaning in mid-text, keep only their state and take a time in proportion to the size.
_NOT_IN_BLOCKS = {"utf-7"}
_BROKEN_BYTE = re.compile("[\udc80-\udcff]")  # what "surrogateescape" makes of a byte that is not UTF-8
_WHOLE_CHARACTERS = re.compile("[^\x00-\x7f\udc80-\udcff]+")
_BREAK = re.compile("\r\n?|\n")
_BREAKS = re.compile("[\t\n\v\f\r\x1c-\x1f\x85\u2028\u2029]+")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
# Bytes of İ, ı, Ğ, ğ, Ş and ş in Turkish, which are ý, ð and þ in Icelandic and other letters in Czech, Croatian or Latvian.
_TURKISH = frozenset(b"\xd0\xdd\xde\xf0\xfd\xfe")
_IN_TURKISH = _TURKISH | frozenset(b"\xc7\xd6\xdc\xe7\xf6\xfc")  # with Ç, Ö, Ü, ç, ö and ü
_LETTER = re.compile(rb"[\x8a\x8c-\x8f\x9a\x9c-\x9f\xc0-\xff]")  # beyond ASCII in the encodings of these languages
_FIRST_SOFT_G = re.compile(rb"(?<![A-Za-z\x80-\xff])[\xd0\xf0]")  # no word of Turkish begins with ğ
_TURKISH_SHARE = 0.9  # of the letters beyond ASCII: a Turkish text can have names of other languages
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Decoded:
    """Text with \\n at the ends of its lines. Invalid bytes appear in it as U+DC80..U+DCFF.

    A carriage return alone ends a line where it ends the first; else it stays in its line, as other control characters do.
    """

    content: bytes = field(repr=False)
    encoding: str  # Python's name for it
    guessed: bool = False  # True where another encoding is possible
    has_broken_bytes: bool = False

    def blocks(self, every_return: bool = False) -> Iterator[str]:
        """The text, a block at a time; with `every_return` each carriage return ends a line."""
        errors = "surrogateescape" if self.has_broken_bytes else "strict"
        # Without translation it still keeps both characters of \r\n in one block.
        decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(self.encoding)(errors), translate=False)
        with_returns = is_known = every_return  # whether a carriage return alone ends a line, as the first line says
        for start in range(0, len(self.content), BLOCK_BYTES):
            end = start + BLOCK_BYTES
            text = decoder.decode(self.content[start:end], final=end >= len(self.content))
            if not is_known and (first := _BREAK.search(text)) is not None:
                is_known, with_returns = True, first[0] == "\r"
            if "\r" in text:
                text = text.replace("\r\n", "\n")
                text = text.replace("\r", "\n") if with_returns else text
            yield text if start else text.removeprefix("\ufeff")

    def line_blocks(self, every_return: bool = False) -> Iterator[list[str]]:
        """The lines, those of a block together.

        They are separated by \\n alone: str.splitlines also splits at characters that occur inside sentences. Of a line with
        more than MOST_ROW_CHARACTERS only its beginning may be given, which still has more.
        """
        rest = ""
        for text in self.blocks(every_return):
            lines = (rest + text).split("\n")
            rest = lines.pop()[: MOST_ROW_CHARACTERS + 1]
            yield lines
        if rest:
            yield [rest]

    def lines(self) -> Iterator[str]:
        """The lines one after the other, as in `line_blocks`."""
        return chain.from_iterable(self.line_blocks())


class CleanedText(NamedTuple):  # not a dataclass: a corpus has one per row, and a dataclass takes three times as long
    text: str
    changed: bool  # True if control or invalid characters were removed


def decode(content: bytes, name: str, encoding: str | None = None) -> Decoded:
    """The text of a file's bytes. Raises InputError where neither `encoding` nor any guess fits them."""
    if encoding is not None:
        return _checked(content, name, encoding)
    for mark, marked in _MARKS:
        if content.startswith(mark):
            return _checked(content, name, marked)
    wide = _wide_without_mark(content)
    if wide is not None:
        return _checked(content, name, wide, guessed=True)
    if _first_invalid(content, "utf-8") is None:
        return Decoded(content, "utf-8")
    broken = whole = 0
    escaped = Decoded(content, "utf-8", guessed=True, has_broken_bytes=True)
    for text in escaped.blocks():
        broken += len(_BROKEN_BYTE.findall(text))
        whole += sum(map(len, _WHOLE_CHARACTERS.findall(text)))
    if whole > broken:
        return escaped
    return _guessed(content, name)


def has_broken_bytes(text: str) -> bool:
    """Whether a decoded text contains invalid bytes."""
    return _BROKEN_BYTE.search(text) is not None


def clean(text: str) -> CleanedText:
    """A text in one line.

    Each run of line breaks and tabs becomes one space, and spaces at the ends are removed. Control characters (such as
    NUL) are removed, as BERT's own tokenizer does, and invalid characters (lone surrogates) become U+FFFD.
    """
    if text.isprintable():  # a quick test that nearly all texts pass
        return CleanedText(text.strip(), False)
    line = _CONTROLS.sub("", _BREAKS.sub(" ", text))
    changed = _CONTROLS.search(text) is not None
    if _SURROGATES.search(line):
        line, changed = clean_text(line), True
    return CleanedText(line.strip(), changed)


def _first_invalid(content: bytes, encoding: str) -> int | None:
    """Where the first byte is that an encoding cannot contain; None if there is none."""
    decoder = codecs.getincrementaldecoder(encoding)()
    for start in range(0, len(content), BLOCK_BYTES):
        end = min(start + BLOCK_BYTES, len(content))
        try:
            decoder.decode(content[start:end], final=end == len(content))
        except UnicodeDecodeError as problem:  # in this block, and the bytes of an unfinished character before it
            return end - len(problem.object) + problem.start
        except UnicodeError:  # as UTF-16 without its mark is refused, at no byte
            return start
    return None


def _checked(content: bytes, name: str, encoding: str, guessed: bool = False) -> Decoded:
    """The text in this encoding. Raises InputError where it is not available, or a byte is invalid in it."""
    try:
        if codecs.lookup(encoding).name in _NOT_IN_BLOCKS:
            raise InputError(
                f"The encoding {encoding[:40]!r} is not available.",
                "Encodings have names such as utf-8, cp1252, latin-1, utf-16 or shift-jis.",
                "Save the file as UTF-8 with another program, or leave the encoding to be detected.",
            )
        if codecs.lookup(encoding).name in _NOT_FOR_TEXTS:
            raise LookupError(encoding)
        with suppress(UnicodeDecodeError):  # two bytes may be half a character
            b"  ".decode(encoding)  # which refuses codecs that are not for texts, such as zlib
        invalid = _first_invalid(content, encoding)
    except InputError:
        raise
    except (LookupError, ValueError) as problem:  # no such encoding, or one that is not for texts
        raise InputError(
            f"There is no text encoding {encoding[:40]!r}.",
            "Encodings have names such as utf-8, cp1252, latin-1, utf-16 or shift-jis.",
            "Correct the name, or leave the encoding to be detected.",
        ) from problem
    if invalid is not None:
        line = content.count(b"\n", 0, invalid) + 1
        raise InputError(
            f"{name} is not {encoding}: byte {invalid + 1:,}, about line {line:,}, is invalid.",
            f"The whole file must be text in {encoding}.",
            "Choose another encoding, or leave it to be detected.",
        )
    return Decoded(content, encoding, guessed)


def _wide_without_mark(content: bytes) -> str | None:
    """UTF-16 without a mark: text of any script has NUL bytes in it (those of its line ends), and no NUL characters."""
    sample = content[:4096]
    if b"\0" not in sample or len(content) % 2:
        return None
    half = len(sample) / 2
    first, second = sample[0::2].count(0) / half, sample[1::2].count(0) / half
    if second > 0.4 and first < 0.05:
        return "utf-16-le"
    if first > 0.4 and second < 0.05:
        return "utf-16-be"
    for encoding in ("utf-16-le", "utf-16-be"):
        text = sample.decode(encoding, "replace")
        is_line = "\n" in text or "\r" in text
        if is_line and all(character.isprintable() or character in "\t\r\n\u200c\u200d" for character in text[:-1]):
            return encoding
    return None


def _guessed(content: bytes, name: str) -> Decoded:
    from charset_normalizer import from_bytes

    sample = _beyond_ascii(content)
    matches = list(from_bytes(sample, cp_isolation=COMMON)) or list(from_bytes(sample))
    names = [match.encoding for match in matches]
    plausible = {
        name
        for match in matches
        if match.chaos <= matches[0].chaos + CHAOS_MARGIN
        for name in match.could_be_from_charset  # those that decode the sample to the same text
    }
    if "cp1254" in plausible and _may_be_turkish(sample):
        names.insert(0, "cp1254")
    elif "cp1252" in plausible:
        names.insert(0, "cp1252")
    elif "iso8859_2" in plausible and re.search(rb"[\x80-\x9f]", sample) is None:
        names.insert(0, "iso8859_2")  # text in the related cp1250 soon has letters among these bytes
    for encoding in names:
        if _first_invalid(content, encoding) is None:  # else only the sample is valid in it
            return Decoded(content, encoding, guessed=True)
    raise InputError(
        f"{name} could not be read as text in any known encoding.",
        "Only text files can be read.",
        "Check that it is a text file, save it as UTF-8, or choose its encoding.",
    )


def _may_be_turkish(sample: bytes) -> bool:
    """Whether nearly all letters beyond ASCII are of Turkish: two kinds or more, one of which Western languages lack."""
    letters = Counter(b"".join(_LETTER.findall(sample)))
    own = _IN_TURKISH & letters.keys()
    fit = sum(letters[letter] for letter in own) - len(_FIRST_SOFT_G.findall(sample))
    return len(own) > 1 and bool(own & _TURKISH) and fit >= _TURKISH_SHARE * letters.total()


def _beyond_ascii(content: bytes) -> bytes:
    """Lines with bytes beyond ASCII, up to 200,000 bytes: only these reveal the encoding."""
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
