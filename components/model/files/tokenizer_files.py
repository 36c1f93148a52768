"""What a tokenizer's files may say, checked from their JSON before the library builds the tokenizer and runs its steps.

tokenizer.json lists steps that a text goes through: a normalizer changes its characters, a pre-tokenizer cuts it, the model
makes pieces, a post-processor adds special tokens. Each is harmless by itself, but they can be repeated, and a template can
name a text twice: then a sentence becomes gigabytes, or the process ends. So each kind of step has bounds here, and a kind
that is not known is refused. What is written into the checked copy (components.model.files.checked_copy) was read here.
"""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from components.errors import ModelError
from components.model.files.allowed import (
    MOST_ROWS,
    Rule,
    beyond,
    checked,
    flag,
    listed,
    number,
    one_of,
    shown,
    text,
    whole,
)
from components.model.files.published import MOST_VALUES
from components.model.files.splitting import patterns

MOST_GROWTH = 16  # times that a tokenizer may lengthen a text before it splits it; published ones double it, or nearly
UNICODE_GROWTH = 18  # times that Unicode's own compatibility forms lengthen a character: U+FDFA becomes a sentence
MOST_STEPS = 64  # of one part, those within others included; published tokenizers have up to some twenty
MOST_DEPTH = 8  # of steps within steps
MOST_SPECIAL = 64  # special tokens that are added to a text or a pair
MOST_ADDED = 20_000  # tokens beside the vocabulary; Gemma's tokenizer has 6,400
MOST_ADDED_CHARACTERS = 2_000_000
MOST_PIECE = 1_000  # characters of a Unigram piece, each length of which is tried at each character of a text
MOST_WORD = 200  # characters of a word that WordPiece splits, in a time that grows with the square; published: 100
MOST_LISTED = 2_000  # special tokens without a role, each of which the library compares with all others
MOST_PATTERN = 5_000  # characters of a regular expression

ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
# The classes of tokenizers that are built from the checked files alone. Their names may end in "Fast".
CLASSES = frozenset({
    *("TokenizersBackend", "PreTrainedTokenizer", "BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"),
    *("RobertaTokenizer", "XLMRobertaTokenizer", "CamembertTokenizer", "MPNetTokenizer", "AlbertTokenizer"),
    *("DebertaTokenizer", "DebertaV2Tokenizer", "GPT2Tokenizer", "LlamaTokenizer", "Qwen2Tokenizer", "T5Tokenizer"),
    *("GemmaTokenizer", "HerbertTokenizer", "BarthezTokenizer", "BartTokenizer", "BigBirdTokenizer", "FNetTokenizer"),
    *("FunnelTokenizer", "GPTNeoXTokenizer", "LayoutLMTokenizer", "LxmertTokenizer", "MBartTokenizer"),
    *("MobileBertTokenizer", "ConvBertTokenizer", "SqueezeBertTokenizer", "RetriBertTokenizer", "LongformerTokenizer"),
    *("DPRContextEncoderTokenizer", "DPRQuestionEncoderTokenizer", "RemBertTokenizer", "SplinterTokenizer"),
    *("NllbTokenizer", "PegasusTokenizer", "CodeLlamaTokenizer", "CohereTokenizer", "XLNetTokenizer", "XGLMTokenizer"),
    *("EsmTokenizer", "RoFormerTokenizer", "MBart50Tokenizer", "CLIPTokenizer", "MvpTokenizer", "LEDTokenizer"),
})  # fmt: skip


def tokenizer_class(value: Any) -> str:
    is_fit = isinstance(value, str) and value.removesuffix("Fast") in CLASSES
    return "" if is_fit else "the name of a fast tokenizer's class, such as BertTokenizer or PreTrainedTokenizerFast"


_TOKEN: dict[str, Rule] = {
    "content": text(),
    **dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), flag),
    "__type": one_of(["AddedToken"]),
    "id": whole(0, MOST_ROWS),
}


def _token(value: Any) -> str:
    expected = "a text of at most 1,000 characters, alone or as the content of a token"
    if isinstance(value, dict):
        rest = value.keys() <= _TOKEN.keys() and isinstance(value.get("content"), str)
        return "" if rest and not any(_TOKEN[key](said) for key, said in value.items()) else expected
    return "" if isinstance(value, str) and not text()(value) else expected


def _role(value: Any) -> str:
    """A token with a role. The library writes it into the template of a text, whose parts a space divides and "$" begins."""
    content = value.get("content") if isinstance(value, dict) else value
    is_fit = not _token(value) and not (str(content).startswith("$") or re.search(r"\s", str(content)))
    return "" if is_fit else "a text of at most 1,000 characters without spaces that does not begin with $"


def _named(value: Any) -> str:
    """Tokens without a role: a list of them, or a mapping of names to them."""
    if isinstance(value, dict) and "content" not in value:
        is_fit = len(value) <= MOST_LISTED and all(
            re.fullmatch(r"[a-z0-9_]{1,100}_token", key) and not _role(said) for key, said in value.items()
        )
        return "" if is_fit else f"at most {MOST_LISTED:,} tokens, with names that end in _token"
    return listed(_token, MOST_LISTED)(value)


def _by_number(value: Any) -> str:
    is_fit = (
        isinstance(value, dict)
        and len(value) <= MOST_ADDED
        and all(
            re.fullmatch("[0-9]{1,8}", key) and int(key) <= MOST_ROWS and isinstance(said, dict) and not _token(said)
            for key, said in value.items()
        )
        and sum(len(said["content"]) for said in value.values()) <= MOST_ADDED_CHARACTERS
    )
    return "" if is_fit else f"at most {MOST_ADDED:,} tokens with ids up to {MOST_ROWS:,}"


SPECIAL_TOKENS: dict[str, Rule] = {
    **dict.fromkeys(ROLES, _role),
    **dict.fromkeys(("additional_special_tokens", "extra_special_tokens"), _named),
}
CONFIG: dict[str, Rule] = {
    "tokenizer_class": tokenizer_class,
    **SPECIAL_TOKENS,
    "added_tokens_decoder": _by_number,
    **dict.fromkeys(("model_max_length", "max_len"), number(0, 1e31)),  # 1e30 stands for none
    "pad_token_type_id": whole(0, 1),
    **dict.fromkeys(("padding_side", "truncation_side"), one_of(["left", "right"])),
    "model_input_names": listed(one_of(["input_ids", "token_type_ids", "attention_mask"]), 3),
    **dict.fromkeys(("do_lower_case", "tokenize_chinese_chars", "strip_accents", "keep_accents", "remove_space"), flag),
    **dict.fromkeys(("add_prefix_space", "trim_offsets", "clean_up_tokenization_spaces", "split_by_punct"), flag),
    **dict.fromkeys(("add_bos_token", "add_eos_token", "split_special_tokens", "legacy", "do_lower"), flag),
}
# What the library would do something with: open a file, import a class, build another tokenizer; see `allowed`.
TOLD_OF_CONFIG = frozenset({
    *("vocab", "merges", "auto_map", "init_inputs", "gguf_file", "tokenizer_object", "post_processor"),
    *("_spm_precompiled_charsmap", "_json_truncation", "_json_padding", "tokenizer_truncation", "tokenizer_padding"),
    *("fast_tokenizer_files", "fix_mistral_regex", "unk_id", "model_specific_special_tokens", "add_dummy_prefix_space"),
})  # fmt: skip
# What changes no token of a text: the forms of chats (but for the template itself, see
# components.model.files.encoder.chat_template), the languages of translations, special tokens that no encoder's frame
# has, the places of files (what is read has its usual name), and what is said or padded while a batch is built.
UNUSED_OF_CONFIG = frozenset({
    *("vocab_file", "merges_file", "tokenizer_file", "files_loaded", "name_or_path", "special_tokens_map_file"),
    *("chat_control_tokens", "sanitize_control_tokens", "add_generation_prompt", "response_schema"),
    *("response_template", "save_jinja_files", "use_default_system_prompt", "processor_class", "backend", "verbose"),
    *("src_lang", "tgt_lang", "legacy_behaviour", "prefix_token", "middle_token", "suffix_token", "eot_token"),
    *("fill_token", "question_token", "mask_token_sent", "offset", "extra_ids", "errors", "clean_text"),
    *("wordpieces_prefix", "max_length", "max_target_length", "pad_to_multiple_of", "padding", "truncation"),
    *("tokenizer", "use_source_tokenizer", "stride", "is_local", "truncation_strategy"),
})  # fmt: skip


def checked_added(values: Any, name: str) -> dict[str, int]:
    """added_tokens.json: the id of each token. Raises ModelError."""
    is_fit = (
        isinstance(values, dict)
        and len(values) <= MOST_ADDED
        and all(not text()(token) and not whole(0, MOST_ROWS)(at) for token, at in values.items())
        and sum(map(len, values)) <= MOST_ADDED_CHARACTERS
    )
    if not is_fit:
        raise beyond(
            f"added_tokens.json of {name} is {shown(values)}.",
            f"It can be at most {MOST_ADDED:,} tokens with ids up to {MOST_ROWS:,}.",
        )
    return dict(values)


def checked_vocabulary(values: Any, name: str) -> dict[str, int]:
    """vocab.json: the id of each piece. Raises ModelError."""
    if not isinstance(values, dict) or any(whole(0, MOST_ROWS)(at) for at in values.values()):
        raise beyond(f"vocab.json of {name} is {shown(values)}.", f"It can be pieces with ids up to {MOST_ROWS:,}.")
    return dict(values)


# --- tokenizer.json


def checked_tokenizer(content: Any, name: str) -> dict[str, Any]:
    """The parts of a tokenizer.json, each within its bounds; raises ModelError."""
    file = f"tokenizer.json of {name}"
    if not isinstance(content, dict):
        raise beyond(
            f"{file} cannot be read." if content is None else f"{file} is {shown(content)}.",
            f"It is a JSON object with the parts of a tokenizer, of at most {MOST_VALUES:,} values.",
            "damaged",
        )
    added = content.get("added_tokens") or []
    if (
        not isinstance(added, list)
        or len(added) > MOST_ADDED
        or any(not isinstance(token, dict) or type(token.get("id")) is not int or _token(token) for token in added)
        or sum(len(token["content"]) for token in added) > MOST_ADDED_CHARACTERS
    ):
        raise beyond(
            f"{file} has {shown(added)} as added_tokens.",
            f"A tokenizer can have at most {MOST_ADDED:,} of them, each with an id and a content of at most 1,000 characters.",
        )
    check_growth(content.get("normalizer"))
    check_growth(content.get("pre_tokenizer"))
    check_growth(content.get("decoder"))
    check_frame(content.get("post_processor"))
    return {
        "version": "1.0",
        "truncation": _bounded(content.get("truncation"), _TRUNCATION, {"strategy": "LongestFirst", "stride": 0}, name),
        "padding": _bounded(
            content.get("padding"), _PADDING, {"strategy": "BatchLongest", "pad_to_multiple_of": None}, name
        ),
        "added_tokens": added,
        **{part: content.get(part) for part in ("normalizer", "pre_tokenizer", "post_processor", "decoder")},
        "model": _model(content.get("model"), name),
    }


_SIDES = one_of(["Left", "Right"])
_TRUNCATION: dict[str, Rule] = {"direction": _SIDES, "max_length": whole(0, MOST_ROWS)}
_PADDING: dict[str, Rule] = {
    "direction": _SIDES,
    "pad_id": whole(0, MOST_ROWS),
    "pad_type_id": whole(0, 1),
    "pad_token": text(),
}


def _bounded(value: Any, rules: Mapping[str, Rule], fixed: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """The settings of truncation or padding. Every call sets them anew: how far they go is replaced by what costs nothing."""
    return {**checked(value, rules, "tokenizer.json", name), **fixed} if isinstance(value, dict) else None


def _model(model: Any, name: str) -> dict[str, Any]:
    """The model of a tokenizer.json. A vocabulary that is a text would be opened as a file."""
    file = "tokenizer.json"
    if not isinstance(model, dict):
        raise beyond(
            f"{file} of {name} has {shown(model)} as its model.",
            "A tokenizer has a model with a vocabulary.",
            "damaged",
        )
    vocab, merges = model.get("vocab"), model.get("merges")
    if isinstance(vocab, list):
        is_fit = all(
            isinstance(item, list)
            and len(item) == 2
            and isinstance(item[0], str)
            and len(item[0]) <= MOST_PIECE
            and type(item[1]) in (int, float)
            for item in vocab
        )
    else:
        is_fit = isinstance(vocab, dict) and all(type(at) is int for at in vocab.values())
    if not is_fit:
        raise beyond(
            f"{file} of {name} has {shown(vocab)} as its vocabulary.",
            f"A vocabulary gives the number of each piece; those of a Unigram model have at most {MOST_PIECE:,} characters.",
        )
    if merges is not None and not (
        isinstance(merges, list)
        and all(
            isinstance(pair, str)
            or (isinstance(pair, list) and len(pair) == 2 and all(isinstance(half, str) for half in pair))
            for pair in merges
        )
    ):
        raise beyond(f"{file} of {name} has {shown(merges)} as its merges.", "Merges are a list of pairs of pieces.")
    kept = checked(model, _MODEL, file, name) | {"vocab": vocab}
    if isinstance(vocab, list) and (kept.get("unk_id") or 0) >= len(vocab):
        raise beyond(
            f"{file} of {name} says unk_id = {shown(kept['unk_id'])}.", f"It has {len(vocab):,} pieces, counted from 0."
        )
    return kept if merges is None else kept | {"merges": merges}


_MODEL: dict[str, Rule] = {
    "type": one_of(["BPE", "WordPiece", "WordLevel", "Unigram"]),
    **dict.fromkeys(("unk_token", "continuing_subword_prefix", "end_of_word_suffix"), text(100)),
    "max_input_chars_per_word": whole(1, MOST_WORD),
    "dropout": number(0, 1),
    **dict.fromkeys(("fuse_unk", "byte_fallback", "ignore_merges"), flag),
    "unk_id": whole(0, MOST_ROWS),
}


def _steps(part: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """The steps of a normalizer, pre-tokenizer, decoder or post-processor, those within others included."""
    if part is None:
        return
    if not isinstance(part, dict) or depth > MOST_DEPTH:
        raise beyond(
            f"This tokenizer has {'steps within steps within steps' if depth > MOST_DEPTH else shown(part)} as a step.",
            f"A step is an object with a type, in at most {MOST_DEPTH} others.",
        )
    # All lists of steps, whichever of them this part reads.
    lists = [part[key] for key in ("normalizers", "pretokenizers", "decoders", "processors") if key in part]
    if part.get("type") != "Sequence" or not all(isinstance(inner, list) for inner in lists):
        yield part
        return
    for step in itertools.chain(*lists):
        yield from _steps(step, depth + 1)


def _few_steps(part: Any) -> list[dict[str, Any]]:
    steps = []
    for step in _steps(part):
        steps.append(step)
        if len(steps) > MOST_STEPS:
            raise beyond(
                f"This tokenizer takes more than {MOST_STEPS} steps one after another.", "So many are not needed."
            )
    return steps


def check_growth(part: Any) -> None:
    """Raise ModelError if a normalizer, pre-tokenizer or decoder could make gigabytes of a sentence, or is not known."""
    growth = 1.0
    for step in _few_steps(part):
        known = _GROWTH.get(str(step.get("type")))
        if known is None:
            raise beyond(
                f"This tokenizer has the step {shown(step.get('type'))}.", f"Known are {', '.join(sorted(_GROWTH))}."
            )
        growth *= known(step)
        check_factor(growth)


def check_factor(growth: float) -> None:
    """Raise ModelError for steps that make a text so many times as long."""
    if growth > MOST_GROWTH:
        raise ModelError(
            "unsupported",
            f"This tokenizer can make a text more than {MOST_GROWTH} times as long by replacing its characters.",
            "A replacement must be about as long as what it replaces: others can take gigabytes of memory.",
            "Save the model with its own tokenizer, or pick another model.",
        )


def _same(_: Mapping[str, Any]) -> float:
    return 1.0


def _twice(_: Mapping[str, Any]) -> float:
    """It writes other characters as several, or puts one before each part that the steps before it have cut."""
    return 2.0


def _prepended(step: Mapping[str, Any]) -> float:
    return 1.0 + len(str(step.get("prepend", "")))


def _replaced(step: Mapping[str, Any]) -> float:
    content, literal = str(step.get("content", "")), _pattern(step)
    # A regular expression, or an empty text, may match between any two characters.
    return max(1.0, len(content) / len(literal)) if literal else 1.0 + len(content)


def _cut(step: Mapping[str, Any]) -> float:
    _pattern(step)
    return 1.0


def _pattern(step: Mapping[str, Any]) -> str:
    """The text that a step looks for; empty for a regular expression. Raises ModelError for one that may not be used."""
    pattern = step.get("pattern")
    pattern = pattern if isinstance(pattern, dict) else {}
    literal, expression = pattern.get("String"), pattern.get("Regex")
    if isinstance(literal, str):
        return literal
    if isinstance(expression, str):
        check_pattern(expression)
    return ""


def check_pattern(expression: str) -> None:
    """Raise ModelError for a regular expression that could take minutes of a text, or memory when it is read."""
    if len(expression) > MOST_PATTERN or not patterns.is_quick(expression):
        raise beyond(
            f"This tokenizer looks for the pattern {shown(expression)}, which could take minutes for a sentence.",
            "Patterns of published tokenizers can be used, and those of single characters of which only the last repeats.",
        )


def _precompiled(step: Mapping[str, Any]) -> float:
    try:
        table = base64.b64decode(step["precompiled_charsmap"], validate=True)
    except (KeyError, TypeError, ValueError):  # the library refuses it too
        return 1.0
    return charsmap_growth(table)


def charsmap_growth(table: bytes) -> float:
    """The same of sentencepiece's table: its length (4 bytes), the table, and the replacements; an empty one changes nothing.

    Raises ModelError for a length beyond the table's own: the library allocates it first, and ends the process if it cannot.
    """
    length = int.from_bytes(table[:4], "little")
    if length > max(len(table) - 4, 0):
        raise beyond(
            f"This tokenizer has a table of replacements that announces {length:,} bytes and has {len(table):,}.",
            "The table must be whole.",
            "damaged",
        )
    replacements = table[4 + length :].decode("utf-8", "replace").split("\0")
    return max(1.0, max(map(len, replacements)) / UNICODE_GROWTH)


def _fixed(step: Mapping[str, Any]) -> float:
    checked(step, {"length": whole(1, MOST_ROWS)}, "A step", "this tokenizer")
    return 1.0


# How many times as long each kind of step can make a text, at most. Of one after another, the factors multiply.
_GROWTH: dict[str, Callable[[Mapping[str, Any]], float]] = {
    **dict.fromkeys(
        ("BertNormalizer", "Strip", "StripAccents", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Lowercase"), _same
    ),
    **dict.fromkeys(("BertPreTokenizer", "CharDelimiterSplit", "Whitespace", "WhitespaceSplit", "Punctuation"), _same),
    **dict.fromkeys(("Digits", "UnicodeScripts", "BPEDecoder", "WordPiece", "CTC", "Fuse", "ByteFallback"), _same),
    "Sequence": _same,  # of none
    **dict.fromkeys(("ByteLevel", "Metaspace"), _twice),
    "FixedLength": _fixed,
    "Split": _cut,
    "Prepend": _prepended,
    "Replace": _replaced,
    "Precompiled": _precompiled,
}


def check_frame(part: Any) -> None:
    """Raise ModelError unless a post-processor adds few special tokens, once, around a text or a pair whose texts it keeps."""
    frames = []
    for step in _few_steps(part):
        match step.get("type"):
            case "BertProcessing" | "RobertaProcessing":
                frames.append(step)
            case "TemplateProcessing":
                _check_template(step)
                frames.append(step)
            case "ByteLevel" | "Sequence":
                pass
            case other:
                raise beyond(
                    f"This tokenizer has the post-processor {shown(other)}.",
                    "Known are BertProcessing, RobertaProcessing, TemplateProcessing, ByteLevel and a Sequence of them.",
                )
    if len(frames) > 1:
        raise beyond(
            f"This tokenizer adds special tokens {len(frames)} times, one after another.",
            "Special tokens are added once: each more time can multiply the tokens of a text.",
        )


def _check_template(step: Mapping[str, Any]) -> None:
    special = step.get("special_tokens")
    special = special if isinstance(special, dict) else {}
    sizes = {
        key: len(said["ids"]) if isinstance(said, dict) and isinstance(said.get("ids"), list) else MOST_SPECIAL + 1
        for key, said in special.items()
    }
    for kind, texts in (("single", ["A"]), ("pair", ["A", "B"])):
        parts = step.get(kind)
        parts = parts if isinstance(parts, list) else []
        inner = [said for item in parts if isinstance(item, dict) for said in item.values() if isinstance(said, dict)]
        named = [
            item["Sequence"].get("id")
            for item in parts
            if isinstance(item, dict) and isinstance(item.get("Sequence"), dict)
        ]
        if (kind in step and named != texts) or len(inner) != len(parts):
            raise beyond(
                f"The template of this tokenizer for a {kind} names the texts {', '.join(map(str, named[:8]))}.",
                f"It must have {' and '.join(f'${each}' for each in texts)} exactly once, in this order.",
            )
        added = sum(
            sizes.get(str(item["SpecialToken"].get("id")), 0)
            for item in parts
            if isinstance(item.get("SpecialToken"), dict)
        )
        if added > MOST_SPECIAL or len(special) > MOST_SPECIAL:
            raise beyond(
                f"The template of this tokenizer for a {kind} adds {added:,} special tokens.",
                f"At most {MOST_SPECIAL} can be added.",
            )
        if any(said.get("type_id") not in (0, 1) for said in inner):
            raise beyond(
                f"The template of this tokenizer for a {kind} has other segments than 0 and 1.",
                "A pair has two segments.",
            )
