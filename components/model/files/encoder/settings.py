"""The file in which sentence-transformers keeps the arguments of its encoder, and what of it is applied here.

The file is sentence_bert_config.json, or one of six older names, of which the first that says anything is read. Besides the
length of a text it can hold arguments for transformers' loaders of the tokenizer, the configuration and the weights. Nothing of
it reaches a library unless its key has a rule (components.model.files.allowed, components.model.files.tokenizer_files); what
would change a number and has none is named. The order of precedence is that of sentence-transformers 6.2
(Transformer.load_config and Transformer.__init__).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from components.model.files import allowed, tokenizer_files
from components.model.files.decisions import ENCODER, ENCODER_FILES, asked_for
from components.model.files.published import is_within, read_json
from components.model.files.static_files import static_folder

TOKENIZER, CONFIG, WEIGHTS = "processor_kwargs", "config_kwargs", "model_kwargs"
_OLDER = {"tokenizer_args": TOKENIZER, "config_args": CONFIG, "model_args": WEIGHTS}
PROCESSING = "processing_kwargs"  # arguments of each call of the tokenizer
# Arguments of the tokenizer that belong to its files, not to a caller.
_NOT_FOR_CALLERS = {"tokenizer_class", "added_tokens_decoder"}
_TOKENIZER_RULES = {key: rule for key, rule in tokenizer_files.CONFIG.items() if key not in _NOT_FOR_CALLERS}
# What changes no number: speed, memory, and what the loaders of this program decide for themselves.
_WITHOUT_EFFECT = {
    TOKENIZER: {"use_fast", "trust_remote_code"},
    CONFIG: {"trust_remote_code", "attn_implementation", "_attn_implementation"} | allowed.UNUSED_OF_CONFIG,
    WEIGHTS: {
        *(
            "trust_remote_code",
            "attn_implementation",
            "_attn_implementation",
            "low_cpu_mem_usage",
            "device_map",
            "use_safetensors",
        ),
        *("add_pooling_layer", "use_cache"),
    },
    PROCESSING: {"padding", "pad_to_multiple_of", "verbose"},
}
_PRECISIONS = {"torch_dtype", "dtype"}
# Arguments of a call with which it gives the same tokens, positions and masks.
_USUAL: dict[str, tuple[Any, ...]] = {
    "truncation": (True, "longest_first"),
    "padding_side": (None, "right"),
    "return_attention_mask": (None, True),
    "return_tensors": ("pt",),
}
# What encoders, rerankers and masked-LM models say: how each is called for texts.
_STATES = tuple({"method": "forward", "method_output_name": name} for name in ("last_hidden_state", "logits"))


@dataclass(frozen=True)
class EncoderSettings:
    """The published arguments of an encoder. Mappings hold checked values only."""

    file: str = ""  # where they stand; empty if there is none
    max_length: int | None = None  # tokens; None: the tokenizer's own
    is_for_every_call: bool = False  # this length stands above those of queries and documents
    is_lowered: bool = False  # each text is turned into small letters before the tokenizer's own steps
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    config: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    not_applied: tuple[str, ...] = ()  # keys, with the mapping they stand in
    precision: str = ""  # of the weights, if another than float32 is asked for
    is_float32: bool = False  # whether float32 is asked for, whatever the weights are stored in
    query_length: int | None = None  # tokens of a query, where it differs
    document_length: int | None = None  # tokens of a document, likewise
    gives_all_layers: bool = False  # the encoder is told to pass all of its layers on
    expands_queries: bool = False  # queries are filled with tokens up to a length, as a late-interaction model needs it
    told: tuple[str, ...] = ()  # sentences about keys that have a row "not applied" in the table of decisions


def read_encoder_settings(folder: Path | None, name: str = "") -> EncoderSettings:
    """The settings of a folder; none without modules.json or for static vectors: sentence-transformers looks for none there.

    Raises ModelError for a value beyond its bounds.
    """
    if folder is None or not (folder / "modules.json").is_file() or static_folder(folder) is not None:
        return EncoderSettings()
    file, content = _first(folder)
    if not content:
        return EncoderSettings()
    groups = {key: _group(content, key) for key in (TOKENIZER, CONFIG, WEIGHTS)}
    tokenizer = allowed.checked(groups[TOKENIZER], _TOKENIZER_RULES, f"{TOKENIZER} in {file}", name)
    if tokenizer.get("model_max_length", 0) is None:
        raise allowed.beyond(
            f"{TOKENIZER} in {file} of {name} says model_max_length = null.",
            "With it sentence-transformers has no limit, and fails at a text that is longer than the encoder's positions.",
        )
    config = allowed.checked(groups[CONFIG], allowed.CONFIG, f"{CONFIG} in {file}", name)
    allowed.checked(groups[CONFIG], allowed.LAYERS_OF_CONFIG, f"{CONFIG} in {file}", name)
    lengths = allowed.checked(content, allowed.SENTENCE_FILES[ENCODER], file, name)
    length = lengths.get("max_seq_length")
    call, others = _call(content, file, name)
    not_applied = [
        f"{group}.{key}"
        for group, known in ((TOKENIZER, tokenizer.keys()), (CONFIG, config.keys()), (WEIGHTS, _PRECISIONS))
        for key in groups[group]
        if key not in known | _WITHOUT_EFFECT[group]
    ]
    longest, older = tokenizer.pop("model_max_length", None), tokenizer.pop("max_len", None)
    if longest is None and length is None and not _has_length(folder):
        longest = older  # the tokenizer's older name of it, which counts where nothing else does
    length = length if longest is None else int(min(longest, allowed.MOST_ROWS))
    precision = next(
        (str(groups[part][key])[:40] for part in (WEIGHTS, CONFIG) for key in _PRECISIONS if groups[part].get(key)), ""
    )
    if groups[WEIGHTS].get("use_safetensors") not in (None, True):
        others.append(f"{WEIGHTS}.use_safetensors")
    return EncoderSettings(
        file,
        length if call is None else call,
        call is not None,
        bool(content.get("do_lower_case")),
        MappingProxyType({key: value for key, value in tokenizer.items() if value is not None}),
        MappingProxyType(config),
        tuple(key[:80] for key in [*not_applied, *others]),
        "" if precision.removeprefix("torch.") in {"auto", "float32", ""} else precision.removeprefix("torch."),
        precision.removeprefix("torch.") == "float32",
        lengths.get("query_length") if call is None else None,
        lengths.get("document_length") if call is None else None,
        groups[CONFIG].get("output_hidden_states") is True,
        content.get("query_expansion") is not None,
        tuple(row.note for row in asked_for(ENCODER, content, "not applied")),
    )


def sentences(settings: EncoderSettings) -> tuple[str, ...]:
    """What of the settings is not applied, in words."""
    found = list(settings.told)
    if settings.not_applied:
        keys = ", ".join(settings.not_applied[:10])
        found.append(f"Its {settings.file} sets {keys}. This is not applied: only settings that are known here are.")
    if settings.precision:
        found.append(f"Its {settings.file} asks for weights in {settings.precision}. They are used in float32.")
    return tuple(found)


def _has_length(folder: Path) -> bool:
    said = read_json(folder / "tokenizer_config.json")
    return isinstance(said, dict) and "model_max_length" in said  # null too, with which there is no limit


def _first(folder: Path) -> tuple[str, dict[str, Any]]:
    for file in ENCODER_FILES:
        content = read_json(folder / file) if is_within(folder / file, folder) else None
        if content and isinstance(content, dict):
            return file, content
    return "", {}


def _group(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    """One mapping of arguments; of a mapping under its older name, which sentence-transformers prefers, that one alone."""
    older = next(old for old, new in _OLDER.items() if new == key)
    values = content.get(older, content.get(key))
    return values if isinstance(values, dict) else {}


def _call(content: Mapping[str, Any], file: str, name: str) -> tuple[int | None, list[str]]:
    """The length that each call of the tokenizer is given, if there is one, and the keys that are not applied."""
    others = []
    length = None
    processing = content.get(PROCESSING)
    groups = processing if isinstance(processing, dict) else {}
    for part, values in sorted(groups.items(), key=lambda group: group[0] == "common"):  # which stands above the others
        if part not in {"text", "common"} or not isinstance(values, dict):
            if part == "chat_template":
                others.append(f"{PROCESSING}.{part}")
            continue
        rules = {"max_length": allowed.SENTENCE_LENGTH}
        length = allowed.checked(values, rules, f"{PROCESSING} in {file}", name).get("max_length") or length
        others += [
            f"{PROCESSING}.{part}.{key}"
            for key, value in values.items()
            if key not in _WITHOUT_EFFECT[PROCESSING] | {"max_length"}
            and not any(value is usual or (value == usual and isinstance(value, str)) for usual in _USUAL.get(key, ()))
        ]
    modalities = content.get("modality_config")
    if isinstance(modalities, dict) and ("message" in modalities or modalities.get("text", _STATES[0]) not in _STATES):
        others.append("modality_config")
    return length, others
