"""Where a text may be cut so that a tokenizer gives the tokens of the whole text, piece by piece.

A tokenizer keeps a record of hundreds of bytes for each token, so that a corpus of long rows would take gigabytes, though
a model reads the first few hundred tokens of a row. In pieces it costs what is read. Pieces are exact only where nothing of
the tokenizer looks past the cut, which its normalizer, its pre-tokenizer and its added tokens decide; its vocabulary never
sees more than what these leave together. Three kinds are known:

- white space is thrown away (BERT): every white space is such a place; and what BERT's own pre-tokenizer isolates,
  punctuation marks and Chinese characters
- a space begins the piece that follows (GPT-2's pattern and those made from it, SentencePiece's "▁"): the first space of
  some, behind something that is no white space
- the same behind a normalizer that may change or remove what stands before the space: only behind a letter or a digit

Every other tokenizer gets its texts whole. So does a stretch without such a place, such as a word of a million letters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from components.model.files.splitting.patterns import GPT2, LLAMA3, QWEN2

PIECE_CHARACTERS = 1 << 14  # some 4,000 tokens: more than most models read, and read in some hundredths of a second
# They may join a space that follows to one grapheme (Unicode's Grapheme_Cluster_Break=Prepend, and CR), which
# SentencePiece's table is asked for as a whole.
_JOINING = (
    "\r\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e\U000110bd\U000110cd\U000111c2\U000111c3\U000113d1\U0001193f"
    "\U00011941\U00011a3a\U00011a84-\U00011a89\U00011d46\U00011f02"
)
_SPACE_FIRST = "\u037a\ufc5e-\ufc63\ufe70-\ufe7f"  # letters that compatibility forms turn into a space and a mark
_AT_WHITE_SPACE = re.compile(f"(?<![{_JOINING}])[ \\n\\t]")
_AT_ISOLATED = re.compile(f"(?<![{_JOINING}])[ \\n\\t.,;:!?\u3001\u3002\u4e00-\u9fff]")
_BEFORE_SPACE = re.compile(f"(?<=[^\\s{_JOINING}]) ")
_BEHIND_LETTER = re.compile(f"(?<=[^\\W_{_JOINING}{_SPACE_FIRST}]) ")
# Patterns that published tokenizers split by, all of which leave the first of some spaces to what follows.
_PATTERNS = {GPT2, LLAMA3, QWEN2}
_ONE_BY_ONE = {r"[\s\S]"}  # every character apart
_COMPOSING = {"NFC", "NFD"}  # change no character into white space, and remove none
_CHARACTER_WISE = _COMPOSING | {"NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "Precompiled"}


def place_to_cut(encoder: Any) -> re.Pattern[str] | None:
    """What matches at the first character of a piece, for a `tokenizers.Tokenizer`; None where no place is known."""
    added = list(encoder.get_added_tokens_decoder().values())
    if any(token.rstrip or any(map(str.isspace, token.content)) for token in added):
        return None
    normalizers = _steps(encoder.normalizer, "normalizers")
    splits = _steps(encoder.pre_tokenizer, "pretokenizers")
    if not splits or not all(map(_is_local, normalizers)):
        return None
    first, *others = splits
    kinds = {step["type"] for step in normalizers}
    if first["type"] in {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"} or _pattern(first) in _ONE_BY_ONE:
        if any(step.get("prepend_scheme") == "first" for step in others):  # the first piece of each would get a mark
            return None
        if _pattern(first) in _ONE_BY_ONE and normalizers:
            return None
        if any(step.get("content") == "▁" for step in normalizers):  # no white space any more
            return None
        is_plain = first["type"] == "BertPreTokenizer" and kinds == {"BertNormalizer"}
        is_plain = is_plain and normalizers[0]["handle_chinese_chars"]
        found_in_added = any(_AT_ISOLATED.search(token.content) for token in added)
        return _AT_ISOLATED if is_plain and not found_in_added else _AT_WHITE_SPACE
    leaves_spaces = (
        (first["type"] == "ByteLevel" and first.get("use_regex", True) and not others)
        or (first["type"] == "Metaspace" and first.get("split", True) and not others)
        or (_pattern(first) in _PATTERNS and [step["type"] for step in others] == ["ByteLevel"])
    )
    if not leaves_spaces or "BertNormalizer" in kinds:
        return None
    if any(step["type"] == "Strip" and step["strip_left"] for step in normalizers):
        return None
    return _BEFORE_SPACE if kinds <= _COMPOSING else _BEHIND_LETTER


def pieces(text: str, place: re.Pattern[str] | None) -> Iterator[str]:
    """The text in pieces of some PIECE_CHARACTERS characters, longer where there is no place to cut.

    The empty text is one empty piece.
    """
    start = 0
    while place is not None and len(text) - start > PIECE_CHARACTERS:
        found = place.search(text, start + PIECE_CHARACTERS)
        if found is None:
            break
        yield text[start : found.start()]
        start = found.start()
    yield text[start:]


def _steps(part: Any, nested: str) -> list[dict[str, Any]]:
    """What a normalizer or pre-tokenizer does, in order; a sequence of some is laid open."""
    if part is None:
        return []
    content = json.loads(part.__getstate__())

    def open_up(step: dict[str, Any]) -> list[dict[str, Any]]:
        return [inner for each in step[nested] for inner in open_up(each)] if nested in step else [step]

    return open_up(content)


def _pattern(step: dict[str, Any]) -> str | None:
    """The regular expression whose matches a step splits apart."""
    if step["type"] != "Split" or step["behavior"] != "Isolated" or step["invert"]:
        return None
    regex: str | None = step["pattern"].get("Regex")
    return regex


def _is_local(step: dict[str, Any]) -> bool:
    """Whether a step of a normalizer changes what is before a place to cut as if nothing followed, and the other way round."""
    if step["type"] != "Replace":
        return step["type"] in _CHARACTER_WISE | {"BertNormalizer", "Strip"}
    literal = step["pattern"].get("String")
    if literal:  # white space neither in what is replaced nor in what replaces it
        return not any(map(str.isspace, literal + step["content"]))
    return step["pattern"].get("Regex") == " {2,}" and step["content"] in {" ", "▁"}
