"""Where the texts come from: free texts in Debian's packages, how each is read, and the texts written for this project.

Each package is unpacked with `dpkg -x` into a folder of its own name. Licences are those of the texts; what a package adds for
its packaging is not read. Nothing under the GPL is read.
"""

from __future__ import annotations

import gzip
import html
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from components.folders import ASSETS
from components.training.masked_words import wordnet

LEAST_WORDS, MOST_WORDS = 24, 46  # of a unit: sentences are joined until the first, unless they pass the second
LONGEST_SENTENCE = 90  # words
LEAST_IN_A_UNIT = 3  # words of what is left at a paragraph's end
LEAST_BOOK = 2_000  # parts of a text in an R package, or characters of one part
LEAST_CHARACTERS = 12  # a unit of this project's own text has more
OWN_TEXTS = ASSETS / "guesses" / "plain_english.txt.gz"
WORDNET_PACKAGE = "wordnet-base"
PUBLIC_DOMAIN = "public domain"
_POINT = "<DOT>"  # stands for the point of an abbreviation while a paragraph is cut into sentences


@dataclass(frozen=True)
class WeightedText:
    """A text: `weight` is how often a unit of it is drawn in one pass, on average."""

    name: str
    package: str  # of Debian; "" for this project's own
    licence: str
    weight: float


@dataclass(frozen=True)
class TextSource(WeightedText):
    """A source with its reader, from the folder of the unpacked package to units, each of one to a few sentences."""

    read: Callable[[Path], Iterable[str]]


def clean(text: str) -> str:
    """A text in one line, with plain quotation marks, dashes between spaces, and without the underscores of emphasis."""
    text = text.translate(str.maketrans("‘’“”", "''\"\"")).replace("_", "").replace("--", " - ")
    return re.sub(r"\s+", " ", text).strip()


def sentences(paragraph: str) -> list[str]:
    """The sentences of a paragraph; the point of a common abbreviation ends none."""
    short = r"\b(Mr|Mrs|Ms|Dr|St|Capt|Col|Gen|Rev|e\.g|i\.e|etc|vs|No|Fig|Prop)\."
    parts = re.split(r"(?<=[.!?])[\"')]*\s+(?=[\"'(]*[A-Z0-9])", re.sub(short, rf"\1{_POINT}", clean(paragraph)))
    return [part.replace(_POINT, ".") for part in parts if part]


def paragraphs(text: str) -> list[str]:
    """What stands between empty lines."""
    return re.split(r"\n\s*\n", text.replace("\r", ""))


def units(texts: Iterable[str], most: int = MOST_WORDS) -> Iterator[str]:
    """Units of LEAST_WORDS to `most` words, as far as their sentences allow, none of them from two paragraphs."""
    for paragraph in texts:
        joined: list[str] = []
        for sentence in sentences(paragraph):
            words = len(sentence.split())
            if words > LONGEST_SENTENCE:
                continue
            if joined and _words(joined) + words > most:
                yield " ".join(joined)
                joined = []
            joined.append(sentence)
            if _words(joined) >= LEAST_WORDS:
                yield " ".join(joined)
                joined = []
        if joined and _words(joined) >= LEAST_IN_A_UNIT:
            yield " ".join(joined)


def _words(texts: Iterable[str]) -> int:
    return sum(len(text.split()) for text in texts)


def r_strings(path: Path) -> Iterator[list[str]]:
    """The character strings of each object in an R package's database of data (Rdata.rdb), as R's serialisation has them.

    The file holds one object after the other: four bytes of its size, then zlib's. A string is a CHARSXP (R Internals, 1.8):
    flags whose last byte is 9, its length, its bytes; both numbers have four bytes, the highest first.
    """
    content = path.read_bytes()
    start = 0
    while start + 4 < len(content):
        unpacker = zlib.decompressobj()
        try:
            object_bytes = unpacker.decompress(content[start + 4 :])
        except zlib.error:  # not one of these objects: look for the next
            start += 1
            continue
        yield list(_strings_in(object_bytes))
        start = len(content) - len(unpacker.unused_data) if unpacker.unused_data else len(content)


def _strings_in(object_bytes: bytes) -> Iterator[str]:
    string = re.compile(rb"\x00[\x00-\x0f].\x09(.{4})", re.DOTALL)
    start = 0
    while found := string.search(object_bytes, start):
        length = int.from_bytes(found[1], "big", signed=True)
        if length >= -1 and found.end() + max(length, 0) <= len(object_bytes):  # -1: a missing value
            start = found.end() + max(length, 0)
            if length >= 0:
                yield object_bytes[found.end() : start].decode("utf-8", "replace")
        else:
            start = found.start() + 1


def without_gutenberg(text: str) -> str:
    """A book of Project Gutenberg without the header and the licence around it, which are not part of the book."""
    start = re.search(r"\*\*\* ?START OF.*?\n", text)
    end = re.search(r"\*\*\* ?END OF|End of (the )?Project Gutenberg", text)
    return text[start.end() if start else 0 : end.start() if end else len(text)]


def sword_text(blocks: Path) -> str:
    """A text of the SWORD project (*.bzz, with its index *.bzs beside it) without notes, titles and marks."""
    packed, index = blocks.read_bytes(), blocks.with_suffix(".bzs").read_bytes()
    texts = [
        zlib.decompress(packed[offset : offset + size]).decode("utf-8", "replace")
        for offset, size, _ in struct.iter_unpack("<III", index[: len(index) // 12 * 12])
        if size
    ]
    text = re.sub(r"<note.*?</note>", "", " ".join(texts), flags=re.DOTALL)
    text = re.sub(r"<title.*?</title>", " ", text, flags=re.DOTALL)
    text = re.sub(r"<(chapter|div)[^>]*>", "\n\n", text)
    return re.sub(r"(?<!\s)\s+([,.;:!?])", r"\1", without_tags(text).replace("\0", " "))


def without_tags(text: str) -> str:
    """HTML or XML without its marks."""
    return html.unescape(re.sub(r"<[^<>]+>", "", text))


def _found(folder: Path, pattern: str) -> list[Path]:
    """The files below a folder with a name like that, in a fixed order. Raises FileNotFoundError where there is none."""
    found = sorted(path for path in folder.rglob(pattern) if path.is_file())
    if not found:
        raise FileNotFoundError(f"no {pattern} in {folder}")
    return found


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def read_novels(folder: Path) -> Iterator[str]:
    """Books of an R package whose text is a vector of lines."""
    for strings in r_strings(_found(folder, "Rdata.rdb")[0]):
        if len(strings) > LEAST_BOOK:
            yield from units(paragraphs("\n".join(strings)))


def read_whole_books(folder: Path) -> Iterator[str]:
    """Books of an R package whose text is a vector of long strings, or of lines."""
    for strings in r_strings(_found(folder, "Rdata.rdb")[0]):
        long = [text for text in strings if len(text) > LEAST_BOOK]
        if long:
            yield from units(paragraph for text in long for paragraph in paragraphs(text))
        elif len(strings) > LEAST_BOOK:
            yield from units(paragraphs("\n".join(strings)))


def book_reader(pattern: str) -> Callable[[Path], Iterator[str]]:
    """A reader for one plain book of Project Gutenberg: the largest file of that name, since others are parts of it."""

    def read(folder: Path) -> Iterator[str]:
        book = max(_found(folder, pattern), key=lambda path: path.stat().st_size)
        return units(paragraphs(without_gutenberg(_text(book))))

    return read


def read_bible(folder: Path) -> Iterator[str]:
    """Both parts of a Bible of the SWORD project."""
    for name in ("ot.bzz", "nt.bzz"):
        yield from units(paragraphs(sword_text(_found(folder, name)[0])), most=40)


def dictionary_reader(pattern: str) -> Callable[[Path], Iterator[str]]:
    """A reader for a dictionary of the DICT project (gzip); the braces mark references."""

    def read(folder: Path) -> Iterator[str]:
        text = gzip.decompress(_found(folder, pattern)[0].read_bytes()).decode("utf-8", "replace")
        return units(re.sub(r"[{}]", "", paragraph) for paragraph in paragraphs(text))

    return read


def read_user_guide(folder: Path) -> Iterator[str]:
    """The paragraphs of the English pages of GNOME's help (Mallard)."""
    for path in _found(folder / "usr/share/help/C", "*.page"):
        text = re.sub(r"<info>.*?</info>|<!--.*?-->", "", _text(path), flags=re.DOTALL)
        yield from units(without_tags(found) for found in re.findall(r"<p>(.*?)</p>", text, flags=re.DOTALL))


def read_office_help(folder: Path) -> Iterator[str]:
    """The paragraphs, tips and notes of those pages of LibreOffice's help that its programs share."""
    tag = r'<p [^>]*class="(?:paragraph|tip|note)"[^>]*>(.*?)</p>'
    for path in _found(folder, "*.html"):
        if "shared" in path.relative_to(folder).parent.parts:
            found = [without_tags(text) for text in re.findall(tag, _text(path), flags=re.DOTALL)]
            yield from units(text for text in found if len(text.split()) >= 6)


def read_own_texts(path: Path) -> Iterator[str]:
    """The texts written for this project, one unit a line (gzip). Raises OSError."""
    for line in gzip.decompress(path.read_bytes()).decode("utf-8").splitlines():
        if len(text := clean(line.replace("—", " - "))) > LEAST_CHARACTERS:
            yield text


WORDNET_LICENCE = "WordNet 3.0 licence (free for any use, with its notice)"
WORDNET_SOURCES = (
    WeightedText(wordnet.GLOSSES, WORDNET_PACKAGE, WORDNET_LICENCE, 0.5),
    WeightedText(wordnet.EXAMPLES, WORDNET_PACKAGE, WORDNET_LICENCE, 1.0),
    WeightedText(wordnet.RELATIONS, WORDNET_PACKAGE, WORDNET_LICENCE, 0.2),
)
TEXT_SOURCES = (
    TextSource("Jane Austen, six novels", "r-cran-janeaustenr", PUBLIC_DOMAIN, 0.7, read_novels),
    TextSource("Herman Melville, Moby Dick", "r-cran-tokenizers", PUBLIC_DOMAIN, 0.7, read_whole_books),
    TextSource(
        "Arthur Conan Doyle, The Adventures of Sherlock Holmes",
        "golang-github-jdkato-prose-dev",
        PUBLIC_DOMAIN,
        2.0,
        book_reader("sherlock.txt"),
    ),
    TextSource(
        "Mark Twain, The Adventures of Tom Sawyer",
        "golang-github-klauspost-compress-dev",
        PUBLIC_DOMAIN,
        2.0,
        book_reader("Mark.Twain-Tom.Sawyer.txt"),
    ),
    TextSource("Isaac Newton, Opticks", "golang-1.19-src", PUBLIC_DOMAIN, 0.3, book_reader("Isaac.Newton-Opticks.txt")),
    TextSource("World English Bible", "sword-text-web", PUBLIC_DOMAIN, 0.15, read_bible),
    TextSource(
        "Ambrose Bierce, The Devil's Dictionary", "dict-devil", PUBLIC_DOMAIN, 0.4, dictionary_reader("devil.dict.dz")
    ),
    TextSource("The Jargon File", "dict-jargon", PUBLIC_DOMAIN, 0.8, dictionary_reader("jargon.dict.dz")),
    TextSource("GNOME user guide", "gnome-user-docs", "CC-BY-SA-3.0", 0.7, read_user_guide),
    TextSource("LibreOffice help, shared pages", "libreoffice-help-en-us", "MPL-2.0", 0.3, read_office_help),
)
OWN = WeightedText("Plain English, written for this project", "", "this project's own", 9.0)
SOURCES: tuple[WeightedText, ...] = (*WORDNET_SOURCES, *TEXT_SOURCES, OWN)
