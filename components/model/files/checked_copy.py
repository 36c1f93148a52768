"""A copy of a model's folder that holds nothing but what was checked: what a library is given instead of the folder itself.

Libraries open whatever a folder has under the names they know: an adapter that names another model, a list of modules with
classes to import, a template to run. The copy is a private folder with the allowed keys of the small files
(components.model.files.allowed, components.model.files.tokenizer_files), the vocabulary, and links to the weights.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from components.errors import ModelError
from components.folders import temporary_folder
from components.model.files import allowed, decisions, hub, tokenizer_files
from components.model.files.encoder.settings import read_encoder_settings
from components.model.files.published import (
    MOST_LINES,
    MOST_MODULES,
    MOST_TOKENIZER_BYTES,
    WEIGHT_INDEX,
    check_file,
    is_within,
    listed_modules,
    read_json,
    read_modules,
    replaced_modules,
)
from components.model.files.tokenizer_files import MOST_PIECE
from components.model.files.weight_sizes import WEIGHTS

_TEXT_ENCODERS = "Supported are encoders of texts, as sentence-transformers saves them, and static models."
CONFIG, TOKENIZER = "config.json", "tokenizer.json"
_TEXTS = ("vocab.txt", "merges.txt")  # a piece or a pair a line, for tokenizers without a tokenizer.json
# The classes of encoders, of today and of old versions.
ENCODERS = ("Transformer", "BERT", "RoBERTa", "DistilBERT", "ALBERT", "XLNet", "CamemBERT", "XLMRoBERTa")
_SENTENCEPIECE = re.compile(r"[\w.-]+\.model", re.ASCII)


@contextmanager
def checked_copy(folder: Path, name: str) -> Iterator[Path]:
    """A private folder to load a model from, gone at the end. Raises ModelError for what may not be read, OSError."""
    contents = _small_files(folder, name)
    links = {part: folder / part for part in _weights(folder)}
    if TOKENIZER not in contents:
        links.update({path.name: path for path in sorted(folder.iterdir()) if _SENTENCEPIECE.fullmatch(path.name)})
    for file, path in links.items():
        check_place(path, folder, name)
        if _SENTENCEPIECE.fullmatch(file):
            _check_sentencepiece(path, name)
    with temporary_folder() as copy:
        for file, content in contents.items():
            written = content if isinstance(content, str) else json.dumps(content)
            (copy / file).write_text(written, encoding="utf-8")
        for file, path in links.items():
            try:
                (copy / file).symlink_to(path.resolve())
            except OSError:  # a system without links, or one that forbids them
                shutil.copyfile(path, copy / file)
        yield copy


def read_config(folder: Path, name: str) -> dict[str, Any]:
    """All that a model's config.json says, with what its sentence encoder's settings put in place of it.

    Raises ModelError if that is not an object, or where it names other files.
    """
    values = _read(folder, CONFIG, name)
    if not isinstance(values, dict):
        raise ModelError(
            "damaged",
            f"{CONFIG} of {name} is missing, not JSON, or too large.",
            "A model's configuration is a small JSON object.",
            "Download or save the model again, or pick another one.",
        )
    if values.get("transformers_weights") is not None:
        raise ModelError(
            "unsupported",
            f"The configuration of {name} names the file of its weights (transformers_weights).",
            "Weights are read only from model.safetensors, or from the parts named by its index.",
            "Save the model again with save_pretrained, or pick another one.",
        )
    return values | dict(read_encoder_settings(folder, name).config)


def checked_config(values: dict[str, Any], name: str) -> dict[str, Any]:
    """What of a config.json is handed on. Raises ModelError for a value beyond its bounds."""
    allowed.checked(values, allowed.LAYERS_OF_CONFIG, CONFIG, name)
    return allowed.checked(values, allowed.CONFIG | {"tokenizer_class": tokenizer_files.tokenizer_class}, CONFIG, name)


def check_sentence_files(folder: Path, name: str) -> None:
    """Raise ModelError for a value beyond its bounds in the files that this program reads itself."""
    check_place(folder / "modules.json", folder, name)
    if (folder / "modules.json").exists() and not isinstance(read_json(folder / "modules.json"), list):
        raise ModelError(
            "damaged",
            f"modules.json of {name} cannot be read as a list of modules.",
            "It lists the parts that turn a text into a vector, one after another.",
            "Download or save the model again, or pick another one.",
        )
    if len(listed_modules(folder)) > MOST_MODULES:
        raise allowed.beyond(
            f"modules.json of {name} lists more than {MOST_MODULES} modules.", f"A model has at most {MOST_MODULES}."
        )
    for file, rules in allowed.SENTENCE_FILES.items():
        values = _read(folder, file, name)
        if isinstance(values, dict):
            allowed.checked(values, rules, file, name)
    read_encoder_settings(folder, name)


def check_modules(folder: Path, name: str) -> None:
    """Raise ModelError for a folder whose vectors are made by a part that this program does not have, named."""
    _check_names(folder, name)
    for number, module in enumerate(read_modules(folder)):
        row = decisions.decision(module.kind)
        if not module.kind:
            raise ModelError(
                "damaged",
                f"modules.json of {name} lists a module without a class.",
                "Each module has a type, the name of its class.",
                "Download or save the model again, or pick another one.",
            )
        if module.is_foreign and (number == 0 or decisions.is_applied(module.kind)):
            raise ModelError(
                "unsupported",
                f"{name} cannot be used. Its {module.kind[:40]} is a class of {module.library[:40]}, whose code would have to "
                "be run.",
                _TEXT_ENCODERS,
                "Save it with sentence-transformers' own classes, or pick another model.",
            )
        if number == 0 and module.path and module.kind in ENCODERS:
            raise ModelError(
                "unsupported",
                f"{name} cannot be used. Its encoder is in its folder {module.path[:40]}, as older models have it; only one "
                "beside modules.json is read.",
                _TEXT_ENCODERS,
                f"Load it with SentenceTransformer and save it again, or move the files of {module.path[:40]} beside "
                "modules.json and set the path of the first module to an empty text.",
            )
        said = (module.config or {}).get("activation_function", "")
        if module.kind == "Dense" and not module.is_foreign and not isinstance(said, str):
            raise allowed.beyond(
                f"The config.json of a Dense layer of {name} says activation_function = {json.dumps(said)[:60]}.",
                "It can be the name of a class; at anything else sentence-transformers fails.",
            )
        if row is not None and row.outcome == "refused":
            raise ModelError("unsupported", f"{name} cannot be used. {row.note}", _TEXT_ENCODERS, row.instead)


def _check_names(folder: Path, name: str) -> None:
    """Raise ModelError where a module took the place of the encoder or of the pooling by its name: the library fails there."""
    modules = read_modules(folder)
    for lost in replaced_modules(folder):
        is_encoder = lost.kind in ENCODERS and not any(module.kind in ENCODERS for module in modules[:1])
        if is_encoder or (lost.kind == "Pooling" and not any(module.kind == "Pooling" for module in modules)):
            raise ModelError(
                "unsupported",
                f"{name} cannot be used. Its modules.json gives two modules the name “{lost.name[:40]}”: the later one takes "
                f"the place of its {lost.kind}, without which it makes no vector.",
                "sentence-transformers keeps the modules under their names, and fails with this folder.",
                "Give each module of modules.json a name of its own, or pick another model.",
            )


def left_out(folder: Path | None, name: str) -> tuple[str, ...]:
    """Sentences about what a model's files ask for and the libraries are not told; none for a model without files."""
    if folder is None:
        return ()
    told = {CONFIG: allowed.TOLD_OF_CONFIG, "tokenizer_config.json": tokenizer_files.TOLD_OF_CONFIG}
    keys = []
    for file, names in told.items():
        values = _read(folder, file, name)
        keys += (
            [f"{key} in {file}" for key in sorted(names & values.keys()) if values[key]]
            if isinstance(values, dict)
            else []
        )
    sentences = []
    if keys:
        sentences.append(
            f"Its files set {', '.join(keys)}. This is not applied: it could read other files, run code, or load another model."
        )
    for module in replaced_modules(folder):
        sentences.append(
            f"Its modules.json gives the name “{module.name[:40]}” to two modules. As in sentence-transformers, the later one "
            f"takes the place of the earlier one: {module.path[:40] or module.kind[:40]} is not applied."
        )
    return tuple(sentences)


def _small_files(folder: Path, name: str) -> dict[str, Any]:
    """By name of file: the checked content of those that are not only linked."""
    contents: dict[str, Any] = {CONFIG: checked_config(read_config(folder, name), name)}
    for file, rules in (
        ("tokenizer_config.json", tokenizer_files.CONFIG),
        ("special_tokens_map.json", tokenizer_files.SPECIAL_TOKENS),
    ):
        values = _read(folder, file, name)
        if isinstance(values, dict):
            contents[file] = allowed.checked(values, rules, file, name)
    added = _read(folder, "added_tokens.json", name)
    if added is not None:
        contents["added_tokens.json"] = tokenizer_files.checked_added(added, name)
    if (folder / TOKENIZER).exists():
        contents[TOKENIZER] = read_tokenizer(folder, name)
    else:
        vocabulary = _read(folder, "vocab.json", name)
        if vocabulary is not None:
            contents["vocab.json"] = tokenizer_files.checked_vocabulary(vocabulary, name)
        contents.update({file: _lines(folder / file, name) for file in _TEXTS if (folder / file).exists()})
    if (folder / WEIGHT_INDEX).exists() and not (folder / WEIGHTS).is_file():
        index = _read(folder, WEIGHT_INDEX, name)
        contents[WEIGHT_INDEX] = {"metadata": {}, "weight_map": index["weight_map"]} if hub.weight_parts(folder) else {}
    return contents


def read_tokenizer(folder: Path, name: str, file: str = TOKENIZER) -> dict[str, Any]:
    """What of a tokenizer.json, in the folder or in one within it, is handed on. Raises ModelError."""
    content = _read(folder, file, name, MOST_TOKENIZER_BYTES)
    return tokenizer_files.checked_tokenizer(content, name)


def _weights(folder: Path) -> tuple[str, ...]:
    return (WEIGHTS,) if (folder / WEIGHTS).is_file() else hub.weight_parts(folder)


def _read(folder: Path, file: str, name: str, *most_bytes: int) -> Any:
    """The content of a JSON file of the folder; None where it is missing or not JSON. Raises ModelError."""
    check_place(folder / file, folder, name)
    return read_json(folder / file, *most_bytes)


def check_place(path: Path, folder: Path, name: str) -> None:
    """Raise ModelError for a file that a link leads to from out of the folder, may never end, or is too large."""
    if not is_within(path, folder):
        raise ModelError(
            "unsupported",
            f"{path.name} of {name} leads out of the model's folder by a link.",
            "The files of a model are in its own folder: a link could show any file of this machine.",
            "Copy the file into the folder, or pick another model.",
        )
    check_file(path, f"{path.name} of {name}")


def _lines(path: Path, name: str) -> str:
    check_place(path, path.parent, name)
    content = path.read_text(encoding="utf-8")
    if len(content) > MOST_TOKENIZER_BYTES or len(content.splitlines()) > MOST_LINES:
        raise allowed.beyond(f"{path.name} of {name} has too many lines.", f"It can have at most {MOST_LINES:,} lines.")
    return content


def _check_sentencepiece(path: Path, name: str) -> None:
    """Raise ModelError for a file of sentencepiece whose table of replacements could make gigabytes of a text."""
    from transformers.convert_slow_tokenizer import import_protobuf

    model: Any = import_protobuf().ModelProto()
    decoding: Callable[[bytes], Any] = model.ParseFromString
    try:
        decoding(path.read_bytes())
    except Exception as problem:  # the library's own error has no type
        raise ModelError(
            "damaged",
            f"{path.name} of {name} is not a file of sentencepiece.",
            "A tokenizer without tokenizer.json needs a vocabulary that can be read.",
            "Save the model again with a fast tokenizer, or pick another one.",
        ) from problem
    if len(model.pieces) > MOST_LINES or max(map(len, (part.piece for part in model.pieces)), default=0) > MOST_PIECE:
        raise allowed.beyond(
            f"{path.name} of {name} has {len(model.pieces):,} pieces, or one of more than {MOST_PIECE:,} characters.",
            f"It can have at most {MOST_LINES:,}, each of at most {MOST_PIECE:,} characters.",
        )
    growth = tokenizer_files.charsmap_growth(model.normalizer_spec.precompiled_charsmap)
    tokenizer_files.check_factor(growth)
