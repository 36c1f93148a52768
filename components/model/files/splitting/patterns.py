r"""Which regular expressions a tokenizer may look for: those whose time grows with the text, and not with its square or worse.

The library looks for a pattern by trying: it takes as much as it can for each part, and where a later part does not match, it
tries shorter ones for all parts before. Nine times `[^ ]*` and something that never matches take minutes for a sentence, and no
limit of time can be given. So two kinds are allowed and all others are refused before the library sees them:

- patterns of published tokenizers, letter by letter (a test measures that each is quick on texts that are hard for it)
- alternatives of single characters one after another, of which only the last may repeat without a known end: nothing follows
  that could fail, so nothing that was taken is tried again
"""

from __future__ import annotations

import re

MOST_TRIES = 500  # of characters at each place of a text, for a pattern that is not a published one

_ENGLISH = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"  # endings after an apostrophe
_BREAKS = r"|\s*[\r\n]+|\s+(?!\S)|\s+"  # line breaks; white space, whose last character goes to what follows
_OTHERS = r"| ?[^\s\p{L}\p{N}]+[\r\n]*" + _BREAKS
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_BEFORE = r"[^\r\n\p{L}\p{N}]?"  # a mark or a space that belongs to the word behind it


def _by_case(ending: str, digits: str) -> str:
    words = f"{_BEFORE}{_UPPER}*{_LOWER}+{ending}|{_BEFORE}{_UPPER}+{_LOWER}*{ending}"
    return rf"{words}|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*" + _BREAKS


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = rf"{_ENGLISH}|{_BEFORE}\p{{L}}+|\p{{N}}{{1,3}}{_OTHERS}"
QWEN2 = rf"{_ENGLISH}|{_BEFORE}\p{{L}}+|\p{{N}}{_OTHERS}"
PUBLISHED = frozenset({
    GPT2,
    GPT2.removesuffix(r"|\s+"),
    # GPT-2 and RoBERTa as tiktoken writes them, of now and of before
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    LLAMA3,  # and GPT-4, as most write it
    QWEN2,
    QWEN2.removeprefix(f"{_ENGLISH}|"),
    QWEN2.replace(r"\p{N}|", r"\p{N}{1}|").replace(r"\p{N}]+[\r\n]*", r"\p{N}\r\n]+"),  # Seed-Coder
    # Qwen3.5
    rf"{_ENGLISH}|{_BEFORE}[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*" + _BREAKS,
    _by_case(f"{_ENGLISH}?", r"\p{N}{1,3}"),  # GPT-4o, Granite's multilingual encoder
    _by_case("", r"\p{N}"),  # Mistral's Tekken
    # GPT-4's own form
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    # DeepSeek, of whose file the characters of line breaks are a part
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
    "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
})  # fmt: skip

_ESCAPED = r"\\(?:[pP]\{\^?[\w ]+\}|x[0-9a-fA-F]{2}|x\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|[sSdDwWhHnrtfv]|[^\w\s])"
_MEMBER = rf"(?:[^\[\]\\]|{_ESCAPED})"  # of a set of characters
_CHARACTER = rf"(?:[^\\\[\](){{}}|*+?^$]|{_ESCAPED}|\[{_MEMBER}*(?:\[{_MEMBER}*\]{_MEMBER}*)*\])"
_PART = re.compile(rf"{_CHARACTER}(?P<times>[*+?]|\{{(?P<least>[0-9]{{1,3}})(?P<most>,[0-9]{{0,3}})?\}})?", re.ASCII)


def is_quick(pattern: str) -> bool:
    """Whether a regular expression is one that a tokenizer may look for."""
    return pattern in PUBLISHED or pattern == "" or _tries(pattern) <= MOST_TRIES


def _tries(pattern: str) -> float:
    """How many characters a pattern of the second kind looks at, at most, before it fails at a place; infinite for others."""
    tries = looked_at = 0
    ways, was_open, place = 1, False, 0  # `was_open`: the part before may take some characters more or less
    while place < len(pattern):
        if pattern[place] == "|":
            looked_at, ways, was_open, place = 0, 1, False, place + 1
            continue
        part = _PART.match(pattern, place)
        if part is None or was_open:
            return float("inf")
        times, least, most = part["times"], part["least"], part["most"]
        was_open = times in ("*", "+") or most is not None
        ways *= 2 if times == "?" else 1
        cost = int(least) + 1 if least else 1
        looked_at += cost
        tries += cost * ways
        place = part.end()
    return tries
