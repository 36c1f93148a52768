"""A model's folder for sentence-transformers: the encoder's checked copy, with the modules and settings that the library reads.

Whatever these files name, the library does: it imports classes, opens other folders, calls methods. So each key is handed on
only if it is listed here, with a value within its bounds (components.model.files.allowed). A key that is not listed is never
left out in silence, because the two sides would then agree about a model that is not the published one: the folder is not
compared.

The lists are not those of what this program applies (components.model.files.decisions): they are what is safe to hand on, so
that a setting which this program overlooks shows as a difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from components.errors import ModelError
from components.folders import temporary_folder, write_json, write_text
from components.model.files import allowed, tokenizer_files
from components.model.files.allowed import Rule, flag, listed, number, one_of, truth, whole, word
from components.model.files.checked_copy import ENCODERS, check_place, checked_copy, read_tokenizer
from components.model.files.decisions import ENCODER, ENCODER_FILES, MODULES, TOP
from components.model.files.encoder.chat_template import FILE, only_template, place_of_template
from components.model.files.published import (
    PublishedModule,
    is_inside,
    is_within,
    listed_modules,
    read_json,
    read_modules,
)
from components.model.files.sources import ModelFiles
from components.model.files.static_files import MODULE as STATIC
from components.model.files.static_files import TOKENIZER
from components.model.files.weight_sizes import WEIGHTS, check_header

_SIZE = whole(1, 1_000_000)
_NAMED: dict[str, Rule] = {"module_input_name": word, "module_output_name": word}

# By class: the keys of its config.json. Sizes are compared with the weights, see `_check_sizes`.
MODULE_KEYS: dict[str, dict[str, Rule]] = {
    "Pooling": {
        **dict.fromkeys(("embedding_dimension", "word_embedding_dimension"), _SIZE),
        **dict.fromkeys((*allowed.POOLING_FLAGS, "include_prompt"), truth),
        "pooling_mode": listed(one_of(allowed.POOLING_MODES), len(allowed.POOLING_MODES)),
    },
    "Dense": {
        **dict.fromkeys(("in_features", "out_features"), _SIZE),
        **dict.fromkeys(("bias", "use_residual"), flag),
        "activation_function": allowed.activation,
        **_NAMED,
    },
    "LayerNorm": {"dimension": _SIZE},
    "WeightedLayerPooling": {
        **dict.fromkeys(("embedding_dimension", "word_embedding_dimension"), _SIZE),
        **dict.fromkeys(("num_hidden_layers", "layer_start"), whole(0, allowed.MOST_LAYERS)),
    },
    "Normalize": _NAMED,
    "Dropout": {"dropout": number(0, 1)},
}
_NAMES_OF_TYPES = one_of(("auto", "float32", "float16", "bfloat16"))


def _modalities(value: Any) -> str:
    """What kinds of input call which method: text, and the usual one."""
    is_fit = isinstance(value, dict) and all(
        key in ("text", "message")
        and isinstance(said, dict)
        and said.get("method") == "forward"
        and set(said) <= {"method", "method_output_name", "format"}
        and all(isinstance(name, str) and not word(name) for name in said.values())
        for key, said in value.items()
    )
    return "" if is_fit else "text, read by forward"


def _expansion(value: Any) -> str:
    """How queries are filled with tokens."""
    rules: dict[str, Rule] = {
        "strategy": one_of(("fixed", "min")),
        "length": whole(1, 10_000),
        "attend": flag,
        "token": allowed.text(100),
    }
    is_fit = isinstance(value, dict) and value.keys() <= rules.keys()
    is_fit = is_fit and not any(said is not None and rules[key](said) for key, said in value.items())
    return "" if is_fit else "strategy, length, attend and token of an expansion"


_ENCODER_KEYS: dict[str, Rule] = {
    **allowed.SENTENCE_FILES[ENCODER],
    "do_lower_case": truth,
    "unpad_inputs": flag,
    "transformer_task": one_of(("feature-extraction",)),
    "modality_config": _modalities,
    "query_expansion": _expansion,
    "module_output_name": one_of(("token_embeddings",)),
}
# Arguments within the encoder's settings: of the tokenizer, the model and its configuration, under their old and new names.
_OF_MODEL: dict[str, Rule] = {"dtype": _NAMES_OF_TYPES, "torch_dtype": _NAMES_OF_TYPES, "add_pooling_layer": flag}
_ARGUMENTS: dict[str, dict[str, Rule]] = {
    "tokenizer_args": tokenizer_files.CONFIG,
    "processor_kwargs": tokenizer_files.CONFIG,
    "model_args": _OF_MODEL,
    "model_kwargs": _OF_MODEL,
    "config_args": allowed.CONFIG,
    "config_kwargs": allowed.CONFIG,
}


@contextmanager
def published_copy(files: ModelFiles, name: str) -> Iterator[Path]:
    """A private folder that sentence-transformers may load, gone at the end.

    Raises ModelError for a folder that is not compared, with the reason, and for what may not be read.
    """
    if files.adapter is not None:
        raise not_compared(name, "its weights are made of a model and an adapter that stand in two folders")
    folder = files.folder
    modules = read_modules(folder)
    is_listed = (folder / MODULES).exists()  # else the library takes the encoder and the mean, whatever else is there
    with ExitStack() as stack:
        if modules and modules[0].kind == STATIC:
            copy = stack.enter_context(temporary_folder())
        else:
            place = modules[0].path if is_listed and modules else ""
            if not is_inside(place) or not is_within(folder / place, folder):
                raise not_compared(name, f"{MODULES} leads out of its folder")
            if (folder / place / "adapter_config.json").exists():
                raise not_compared(name, "it has an adapter beside its weights")
            copy = stack.enter_context(checked_copy(folder / place, name))
            settings = _encoder_settings(folder / place, folder, name)
            write_json(copy / ENCODER_FILES[0], settings)
            if not is_listed or "message" in (settings.get("modality_config") or {}):
                _hand_on_template(folder / place, copy, name)
        if is_listed:
            # All of them, and those of one name under one name again: the library decides which it uses.
            listed = listed_modules(folder)
            numbers = {module.name: at for at, module in reversed(list(enumerate(listed))) if module.name}
            write_json(
                copy / MODULES,
                [
                    {**_module(module, at, folder, copy, name), "name": str(numbers.get(module.name, at))}
                    for at, module in enumerate(listed)
                ],
            )
        check_place(folder / TOP, folder, name)
        said = read_json(folder / TOP)
        if isinstance(said, dict):
            rules = allowed.SENTENCE_FILES[TOP]  # of the other keys the library reads nothing
            write_json(copy / TOP, allowed.checked(said, rules, TOP, name))
        yield copy


def not_compared(name: str, reason: str) -> ModelError:
    """The error of a model that is not compared. `reason` ends a sentence: "... because REASON"."""
    return ModelError(
        "unsupported",
        f"{name} is not compared with sentence-transformers, because {reason}.",
        "Only what is safe to hand to the library, and what it can load, is compared.",
        "Compare its numbers in an environment of your own.",
    )


def _hand_on_template(folder: Path, copy: Path, name: str) -> None:
    """Write the template of chats, by which the library renders each text: in a sandbox, within its process's limits."""
    if not place_of_template(folder):
        return
    check_place(folder / FILE, folder, name)
    template = only_template(folder)
    if template is None:
        raise not_compared(name, "its texts are written with a template of chats that is too long, or one of several")
    write_text(copy / FILE, template)


def _encoder_settings(place: Path, folder: Path, name: str) -> dict[str, Any]:
    for file in ENCODER_FILES:
        check_place(place / file, folder, name)
        said = read_json(place / file)
        if isinstance(said, dict) and said:
            break
    else:
        return {}
    kept = _only(said, _ENCODER_KEYS, file, name, besides=tuple(_ARGUMENTS))
    for key in _ARGUMENTS.keys() & said.keys():
        if isinstance(said[key], dict):
            arguments = {argument: value for argument, value in said[key].items() if argument != "trust_remote_code"}
            kept[key] = _only(arguments, _ARGUMENTS[key], f"{key} in {file}", name)
    return kept


def _module(module: PublishedModule, at: int, folder: Path, copy: Path, name: str) -> dict[str, Any]:
    """An entry of the list of modules, whose folder is written into the copy."""
    kind = module.kind
    if module.library != "sentence_transformers":
        raise not_compared(name, f"its module {kind[:40]} is not one of sentence-transformers")
    entry = {"idx": at, "path": "", "type": f"sentence_transformers.models.{kind}"}
    if kind in ENCODERS and at == 0:
        return entry
    if kind not in {*MODULE_KEYS, STATIC}:
        raise not_compared(name, f"its module {kind[:40]} is not one of those that are handed on")
    if not is_inside(module.path) or not is_within(folder / module.path, folder):
        raise not_compared(name, f"{MODULES} leads out of its folder")
    place, written = folder / module.path, copy / f"{at}_{kind}"
    written.mkdir()
    if kind == STATIC:
        file = (place / TOKENIZER).relative_to(folder).as_posix()
        write_json(written / TOKENIZER, read_tokenizer(folder, name, file))
    weights = place / WEIGHTS
    check_place(weights, folder, name)
    if weights.is_file():
        (written / WEIGHTS).symlink_to(weights.resolve())
    if module.config is not None and kind != STATIC:
        said = dict(module.config)
        if not str(said.get("activation_function") or "torch.").startswith("torch."):
            del said["activation_function"]  # the library does so itself; no name of other code is handed on
        config = _only(said, MODULE_KEYS[kind], f"{kind}'s config.json", name)
        _check_sizes(config, weights, kind, name)
        write_json(written / "config.json", config)
    return {**entry, "path": written.name}


def _check_sizes(config: Mapping[str, Any], weights: Path, kind: str, name: str) -> None:
    """Raise ModelError for sizes that ask for more numbers than the file of weights has."""
    needed = (config.get("in_features") or 0) * (config.get("out_features") or 0) + (config.get("dimension") or 0)
    if needed and (not weights.is_file() or needed > 2 * check_header(weights, f"{WEIGHTS} of {kind}")):
        raise not_compared(
            name, f"the sizes of its module {kind} are not those of its weights, or it has none as safetensors"
        )


def _only(
    said: Mapping[str, Any], rules: Mapping[str, Rule], file: str, name: str, besides: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The values of a file. Raises ModelError for a key without a rule, and for a value beyond its own."""
    unknown = sorted(
        key for key, value in said.items() if key not in rules and key not in besides and value is not None
    )
    if unknown:
        raise not_compared(name, f"{file} says {unknown[0][:60]}, which is not handed on")
    return allowed.checked(said, rules, file, name)
