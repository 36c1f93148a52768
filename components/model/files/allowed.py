"""What the small JSON files of a model may say: the keys that are read, and the values that each can have.

Whoever loads a model of somebody else hands these files to libraries, which take each key for an argument of theirs: the
path of another file, the name of a class to import, a size to allocate. So only the keys listed here are handed on, each
with values within its bounds. A value beyond them is refused. A key that is not listed is left out; if the library would
have done something with it (`TOLD_OF_CONFIG`), that is said.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from components.errors import ModelError, ModelErrorKind

# What a value must be, in words, if it is not that; empty if it is. null is always possible.
Rule = Callable[[Any], str]

MOST_LAYERS = 200  # whose modules are created before their weights are read; published encoders have up to 48
MOST_ROWS = 10_000_000  # of a vocabulary, or of positions
MOST_LABELS = 100_000
_SHORT = 1_000  # characters of a name or of a token
# The activations of sentence-transformers' modules, by the name of their class in torch.nn.
ACTIVATIONS = ("Tanh", "Identity", "ReLU", "GELU", "SiLU", "Sigmoid", "Mish", "ELU")
# The modes of Pooling by their flags in older folders, in the order in which sentence-transformers joins several of them.
POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
POOLING_MODES = tuple(POOLING_FLAGS.values())


def whole(least: int, most: int) -> Rule:
    def problem(value: Any) -> str:
        is_fit = type(value) is int and least <= value <= most
        return "" if is_fit else f"a whole number from {least:,} to {most:,}"

    return problem


def number(least: float, most: float) -> Rule:
    def problem(value: Any) -> str:
        # NaN is in no range; a whole number may be too large to be a float.
        is_fit = type(value) in (int, float) and least <= value <= most
        return "" if is_fit else f"a number from {least:,g} to {most:,g}"

    return problem


def flag(value: Any) -> str:
    return "" if isinstance(value, bool) else "true or false"


def truth(value: Any) -> str:
    """A yes or a no of a file from which the library asks for no more than truth."""
    return "" if isinstance(value, bool) or (type(value) is int and value in (0, 1)) else "true or false, or 1 or 0"


def text(most: int = _SHORT) -> Rule:
    def problem(value: Any) -> str:
        return "" if isinstance(value, str) and len(value) <= most else f"a text of at most {most:,} characters"

    return problem


def word(value: Any) -> str:
    """A name: of a function, a class, a type. No path has this form."""
    is_fit = isinstance(value, str) and re.fullmatch(r"[\w|+-]{0,100}", value, re.ASCII) is not None
    return "" if is_fit else "a name of at most 100 letters, digits and hyphens"


def one_of(choices: Collection[str]) -> Rule:
    def problem(value: Any) -> str:
        return "" if isinstance(value, str) and value in choices else f"one of {', '.join(sorted(choices))}"

    return problem


def listed(rule: Rule, most: int) -> Rule:
    """A list of values of one kind, or one such value alone."""

    def problem(value: Any) -> str:
        if not isinstance(value, list):
            return rule(value)
        if len(value) > most:
            return f"a list of at most {most:,} values"
        return next((f"a list of which each is {said}" for said in map(rule, value) if said), "")

    return problem


def _labels(is_by_number: bool) -> Rule:
    def problem(value: Any) -> str:
        expected = f"at most {MOST_LABELS:,} short names with their numbers"
        if not isinstance(value, dict) or len(value) > MOST_LABELS:
            return expected
        for key, said in value.items():
            label, at = (said, key) if is_by_number else (key, said)
            is_number = re.fullmatch("[0-9]{1,7}", at) is not None if isinstance(at, str) else type(at) is int
            if not is_number or len(str(label)) > _SHORT or isinstance(label, (list, dict)):
                return expected
        return ""

    return problem


def _rotation(value: Any, depth: int = 0) -> str:
    """The parameters of a rotation, which may be given apart for each kind of attention."""
    expected = "the names of a rotation's parameters with numbers from -1e12 to 1e12"
    if not isinstance(value, dict) or len(value) > 30 or any(word(key) for key in value):
        return expected
    is_fit = all(
        not word(said)
        if isinstance(said, str)
        else depth == 0 and not _rotation(said, 1)
        if isinstance(said, dict)
        else isinstance(said, bool | None) or not listed(number(-1e12, 1e12), 10_000)(said)
        for said in value.values()
    )
    return "" if is_fit else expected


def activation(value: Any) -> str:
    """The class of an activation: sentence-transformers imports and calls whatever in torch is named."""
    parts = value.split(".") if isinstance(value, str) else []
    is_fit = parts[:2] == ["torch", "nn"] and parts[-1] in ACTIVATIONS and len(parts) in (3, 5)
    return "" if is_fit else f"torch.nn.modules.activation and one of {', '.join(ACTIVATIONS)}"


def _scoring(value: Any) -> str:
    """What sentence-transformers writes into a cross-encoder's config.json."""
    if not isinstance(value, dict) or not value.keys() <= {"activation_fn", "version"}:
        return "activation_fn and version"
    return "" if "activation_fn" not in value else activation(value["activation_fn"])


_SIZE, _ROW, _SHARE = whole(1, 1_000_000), whole(-1, MOST_ROWS), number(0, 1)
_BASE = number(1e-6, 1e12)  # of a rotation

CONFIG: dict[str, Rule] = {
    "model_type": word,
    "tokenizer_class": word,  # see components.model.files.tokenizer_files
    "architectures": listed(word, 20),
    "vocab_size": whole(1, MOST_ROWS),
    **dict.fromkeys(("hidden_size", "dim", "embedding_size", "intermediate_size", "hidden_dim"), _SIZE),
    **dict.fromkeys(("pooler_hidden_size", "head_dim", "attention_head_size"), _SIZE),
    **dict.fromkeys(("num_hidden_layers", "n_layers", "num_hidden_groups", "inner_group_num"), whole(1, MOST_LAYERS)),
    **dict.fromkeys(("num_attention_heads", "n_heads", "num_key_value_heads"), whole(1, 10_000)),
    "max_position_embeddings": whole(1, MOST_ROWS),
    **dict.fromkeys(("type_vocab_size", "task_type_vocab_size"), whole(0, 10_000)),
    **dict.fromkeys(("position_buckets", "max_relative_positions"), _ROW),
    "relative_attention_num_buckets": whole(2, 100_000),
    "conv_kernel_size": whole(0, 0),  # see deberta.unsupported
    **dict.fromkeys(("pad_token_id", "cls_token_id", "sep_token_id", "mask_token_id", "bos_token_id"), _ROW),
    "eos_token_id": listed(_ROW, 100),
    "local_attention": whole(1, MOST_ROWS),
    "sliding_window": whole(0, MOST_ROWS),
    "global_attn_every_n_layers": whole(1, MOST_LAYERS),
    "max_window_layers": whole(0, MOST_LAYERS),
    "layer_types": listed(word, MOST_LAYERS),
    "num_labels": whole(0, MOST_LABELS),
    "id2label": _labels(is_by_number=True),
    "label2id": _labels(is_by_number=False),
    **dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"), _SHARE),
    **dict.fromkeys(("classifier_dropout_prob", "dropout", "attention_dropout", "qa_dropout"), _SHARE),
    **dict.fromkeys(("seq_classif_dropout", "summary_last_dropout", "summary_first_dropout"), _SHARE),
    **dict.fromkeys(("embedding_dropout", "mlp_dropout", "pooler_dropout", "cls_dropout"), _SHARE),
    **dict.fromkeys(("layer_norm_eps", "norm_eps", "rms_norm_eps"), _SHARE),
    **dict.fromkeys(("initializer_range", "initializer_cutoff_factor"), number(0, 1_000)),
    **dict.fromkeys(("rope_theta", "global_rope_theta", "local_rope_theta"), _BASE),
    "partial_rotary_factor": number(0.01, 1),
    **dict.fromkeys(("rope_parameters", "rope_scaling"), _rotation),
    **dict.fromkeys(("hidden_act", "hidden_activation", "activation", "pooler_hidden_act"), word),
    **dict.fromkeys(("classifier_activation", "summary_activation", "summary_type", "classifier_pooling"), word),
    **dict.fromkeys(("position_embedding_type", "norm_rel_ebd"), word),
    "pos_att_type": listed(word, 10),
    **dict.fromkeys(("is_decoder", "is_encoder_decoder", "add_cross_attention", "is_causal"), flag),
    **dict.fromkeys(("tie_word_embeddings", "use_task_id", "relative_attention", "position_biased_input"), flag),
    **dict.fromkeys(("share_att_key", "norm_bias", "attention_bias", "mlp_bias", "decoder_bias"), flag),
    **dict.fromkeys(("classifier_bias", "use_sliding_window", "legacy", "summary_use_proj"), flag),
    **dict.fromkeys(("summary_proj_to_labels", "use_cache"), flag),
    "sentence_transformers": _scoring,
    "sbert_ce_default_activation_function": activation,
}
# Whether the encoder gives all of its layers: read here and not handed on. The libraries fail at a 1 in its place.
LAYERS_OF_CONFIG: dict[str, Rule] = {"output_hidden_states": flag}
# What the libraries would do something with, and what is said to be left out.
TOLD_OF_CONFIG = frozenset({
    *("auto_map", "quantization_config", "attn_implementation", "_attn_implementation", "experts_implementation"),
    *("configuration_files", "per_layer_config", "adapter_config", "pruned_heads", "base_model_tp_plan"),
})  # fmt: skip
# What changes nothing that is computed here: settings of training, of the form of results, of speed; and what only starts
# weights that are then read.
UNUSED_OF_CONFIG = frozenset({
    *("transformers_version", "dtype", "torch_dtype", "return_dict", "output_attentions", "output_hidden_states"),
    *("chunk_size_feed_forward", "problem_type", "sinusoidal_pos_embds", "deterministic_flash_attn"),
    *("sparse_prediction", "sparse_pred_ignore_index", "pretraining_tp", "_name_or_path"),
    *("conv_groups", "conv_act"),  # without conv_kernel_size
})  # fmt: skip

_PROMPTS, _PROMPT = 1_000, 10_000  # their number, and the characters of each


def _prompts(value: Any) -> str:
    is_fit = (
        isinstance(value, dict)
        and len(value) <= _PROMPTS
        and all(isinstance(said, str | None) and len(key) + len(said or "") <= _PROMPT for key, said in value.items())
    )
    return "" if is_fit else f"at most {_PROMPTS:,} texts of at most {_PROMPT:,} characters"


SENTENCE_LENGTH = whole(1, MOST_ROWS)  # of a text, in tokens
# The keys of the files that this program reads itself, and never hands on. All others are not looked at, but for those of
# components.model.files.encoder.settings.
SENTENCE_FILES: dict[str, dict[str, Rule]] = {
    "sentence_bert_config.json": dict.fromkeys(("max_seq_length", "query_length", "document_length"), SENTENCE_LENGTH),
    "config_sentence_transformers.json": {
        "prompts": _prompts,
        **dict.fromkeys(("model_type", "similarity_fn_name", "query_prefix", "document_prefix"), text()),
        "default_prompt_name": text(),
        "truncate_dim": whole(1, 1_000_000),
        "activation_fn": activation,
    },
}


def checked(values: Mapping[str, Any], rules: Mapping[str, Rule], file: str, name: str) -> dict[str, Any]:
    """The values of the keys that have a rule; raises ModelError for the first that breaks its own."""
    kept = {}
    for key, rule in rules.items():
        if key not in values:
            continue
        value = values[key]
        expected = "" if value is None else rule(value)
        if expected:
            raise beyond(f"{file} of {name} says {key} = {shown(value)}.", f"{key} can be {expected}.")
        kept[key] = value
    return kept


def beyond(problem: str, expected: str, kind: ModelErrorKind = "unsupported") -> ModelError:
    """The error of a value beyond its bounds."""
    return ModelError(kind, problem, expected, "Save the model again, or pick another one.")


def shown(value: Any) -> str:
    """A value of a file in at most some 60 characters; one that is long is not written out to be cut."""
    if isinstance(value, (list, dict)):
        return f"a {'list' if isinstance(value, list) else 'mapping'} of {len(value):,} values"
    if isinstance(value, str):
        return repr(value[:60])
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**60:
        return f"a number of {math.floor(value.bit_length() * math.log10(2)) + 1:,} digits"
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
