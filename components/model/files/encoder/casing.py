"""Capitals and accents: where a folder says what becomes of them, and whether its files agree with what the libraries build.

Three places may disagree: the normalizer in tokenizer.json, do_lower_case in tokenizer_config.json, and do_lower_case in
sentence_bert_config.json. sentence-transformers takes the tokenizer that transformers builds, which for a BERT model follows
tokenizer_config.json and lower-cases where that says nothing; and it lower-cases before everything if its own file says so.
Pieces here are the same. Where the folder's own tokenizer.json gives others, or where its vocabulary has capitals that can
never be found, that is said.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tokenizers import Tokenizer, normalizers

from components.errors import first_line

# Texts in which published tokenizers differ: capitals, accents, Chinese, spaces, punctuation, digits, compatibility forms.
PROBES = (
    "The Bank of Polish May cafés",
    "Äpfel ÉCOLE naïve Straße İstanbul",
    "the bank is in the river",
    "你好 world 東京",
    "  two  spaces\tand\na line ",
    "it's 3.14, (e-mail) £5 ﬁx ½ ① Ｆｕｌｌ",
)
_PARTS = ("normalizer", "pre_tokenizer", "post_processor")
_SECOND = "The pieces here are those of the second, as in the libraries."
_LEAST_SHARE = 0.01  # of a vocabulary with capitals: an uncased one has next to none


def lower_first(backend: Any) -> None:
    """Let a `tokenizers.Tokenizer` write texts in small letters before its own steps, as sentence-transformers does."""
    own: Any = backend.normalizer
    listed: Any = own if isinstance(own, normalizers.Sequence) else [] if own is None else [own]
    steps = list(listed)
    if not any(isinstance(step, normalizers.Lowercase) for step in steps):
        backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), *steps])


def difference(tokenizer: Any, content: Mapping[str, Any] | None, is_lowered: bool = False) -> str:
    """How the tokenizer that transformers built differs from the folder's own tokenizer.json: a sentence, or nothing.

    `content` is the checked content of tokenizer.json; without one, only the vocabulary can tell. `is_lowered` says that
    `lower_first` was applied. Tokenizers whose steps are the same are not compared text by text.
    """
    built = tokenizer.backend_tokenizer
    if content is None:
        return _unused_capitals(built)
    if all(_state(getattr(built, part)) == content.get(part) for part in _PARTS):
        return ""
    try:
        own = Tokenizer.from_str(json.dumps(content))
        if is_lowered:
            lower_first(own)
        own.no_truncation()
        own.no_padding()
        for text in PROBES:
            theirs, ours = own.encode(text).tokens, tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"])
            if theirs != ours:
                return _told(text, theirs, ours, _lowers(own) != _lowers(built))
    except Exception as problem:  # noqa: BLE001 - the library's own error has no type
        reason = first_line(problem)[:100]
        return f"Its tokenizer.json cannot be used by itself ({reason}): transformers builds another tokenizer."
    return ""


def _state(step: Any) -> Any:
    return None if step is None else json.loads(step.__getstate__())


def _told(text: str, theirs: list[str], ours: list[str], is_by_case: bool) -> str:
    differ = [place for place, (one, other) in enumerate(zip(theirs, ours, strict=False)) if one != other]
    place = differ[0] if differ else min(len(theirs), len(ours))
    said = (
        f"Its tokenizer.json splits “{text.strip()}” into other pieces ({_around(theirs, place)}) than the tokenizer that "
        f"transformers and sentence-transformers build from this folder ({_around(ours, place)}). {_SECOND}"
    )
    if is_by_case:
        said += " What decides is do_lower_case in tokenizer_config.json."
    return said


def _around(pieces: list[str], place: int) -> str:
    return " ".join(
        [*(["…"] if place else []), *pieces[place : place + 4], *(["…"] if place + 4 < len(pieces) else [])]
    )


def _lowers(backend: Any) -> bool:
    return backend.normalizer is not None and backend.normalizer.normalize_str("A") == "a"


def _is_special(piece: str) -> bool:
    return piece[:1] + piece[-1:] in {"[]", "<>"}


def _unused_capitals(built: Any) -> str:
    """Whether a tokenizer turns capitals into small letters although its vocabulary has many pieces with capitals."""
    if not _lowers(built):
        return ""
    vocabulary = [piece for piece in built.get_vocab(with_added_tokens=False) if not _is_special(piece)]
    unused = [piece for piece in vocabulary if piece != piece.lower()]
    if len(unused) < _LEAST_SHARE * len(vocabulary):
        return ""
    return (
        f"{len(unused):,} of its {len(vocabulary):,} pieces have capitals, such as {max(unused, key=len)}, and are never "
        "found: no file of it says that capitals are kept (do_lower_case in tokenizer_config.json), so that transformers and "
        "sentence-transformers turn them into small letters. The same is done here."
    )
