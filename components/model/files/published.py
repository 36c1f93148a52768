"""What a folder of published files may hold, and the modules it lists, which turn a text into a vector one after another.

sentence-transformers lists them in modules.json (Reimers and Gurevych 2019, and the library's documentation): the
encoder, then Pooling, and sometimes more, each with a config.json in its own folder. None of it is executed:
a module is recognised by the name of its class, and an unknown module is reported as not applied.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from components.errors import ModelError
from components.model.files.allowed import POOLING_FLAGS
from components.model.files.weight_sizes import check_header

MOST_JSON_BYTES = 8 << 20  # read in a second whatever is in it; configurations have some thousand bytes
MOST_TOKENIZER_BYTES = 64 << 20  # of a file of the tokenizer; those of 250,000 pieces have 20 MB
MOST_PROTO_BYTES = 24 << 20  # of a file of sentencepiece; those of 900,000 pieces have 18 MB
MOST_MODULE_BYTES = 1 << 20  # of the configuration of a module
# Of the marks that begin a value in a JSON file: each takes some 100 bytes once it is read. Gemma's tokenizer has 2 million.
MOST_VALUES = 4_000_000
MOST_LINES = 2_000_000  # of a vocabulary
MOST_MODULES = 32
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model", "spm.model")
WEIGHT_INDEX = "model.safetensors.index.json"
_LIBRARIES = {"sentence_transformers", "pylate"}  # whose classes are known here
MOST_NAME = 1_000  # characters of the class and of the folder of a module
_LISTS = {
    "modules.json",
    "chat_template.jinja",
    "special_tokens_map.json",
    "added_tokens.json",
    WEIGHT_INDEX,
}  # besides the configurations


@dataclass(frozen=True)
class PublishedModule:
    """One entry of modules.json, with its configuration."""

    kind: str  # the name of the class: Transformer, Pooling, Dense, Normalize, ...
    library: str  # the package that has the class: sentence_transformers, pylate, ...
    path: str  # its folder, relative to the model's; empty for the model's own folder
    config: Mapping[str, Any] | None  # its config.json; None if there is none that can be read
    name: str = ""  # its key among the modules; empty if modules.json gives none

    @property
    def is_foreign(self) -> bool:
        """Whether its class is somebody's own, whatever its name: sentence-transformers would run code of the folder."""
        return self.library not in _LIBRARIES

    @property
    def pooling_modes(self) -> tuple[str, ...]:
        """The modes of a Pooling module; more than one if it joins several vectors."""
        config = self.config or {}
        mode = config.get("pooling_mode")
        if isinstance(mode, str):
            return (mode,)
        if isinstance(mode, list):
            return tuple(map(str, mode))
        # Truth as the library asks for it: 1 is a yes.
        return tuple(name for flag, name in POOLING_FLAGS.items() if config.get(flag)) or ("mean",)


def read_modules(folder: Path | None) -> tuple[PublishedModule, ...]:
    """The modules that a model's vectors are made with, in order; empty for a model that lists none.

    sentence-transformers keeps them under their names: a later one takes the place of an earlier one of the same name.
    """
    modules: dict[str | int, PublishedModule] = {}
    for number, module in enumerate(listed_modules(folder)):
        modules[module.name or number] = module
    return tuple(modules.values())


def replaced_modules(folder: Path | None) -> tuple[PublishedModule, ...]:
    """The modules that are listed and not used, because a later one has their name."""
    listed = listed_modules(folder)
    return tuple(
        module
        for number, module in enumerate(listed)
        if module.name and any(later.name == module.name for later in listed[number + 1 :])
    )


def listed_modules(folder: Path | None) -> tuple[PublishedModule, ...]:
    """All modules of the list, in its order, those that a later one replaces too.

    Entries that point outside the folder get no configuration. Of a list that is longer than MOST_MODULES, one more than that
    is read.
    """
    if folder is None:
        return ()
    listed = read_json(folder / "modules.json")
    if not isinstance(listed, list):
        return ()
    modules = []
    for entry in listed[: MOST_MODULES + 1]:  # one more: who loads the model sees that there are too many
        if not isinstance(entry, dict):
            continue
        names = str(entry.get("type", ""))[:MOST_NAME].split(".")
        path = str(entry.get("path", ""))[:MOST_NAME]
        place = folder / path / "config.json"
        is_ours = bool(path) and is_inside(path) and is_within(place, folder)
        config = read_json(place, MOST_MODULE_BYTES) if is_ours else None
        name = entry.get("name")
        modules.append(
            PublishedModule(
                names[-1],
                names[0],
                path,
                config if isinstance(config, dict) else None,
                name[:MOST_NAME] if isinstance(name, str) else "",
            )
        )
    return tuple(modules)


def check_file(path: Path, shown: str) -> None:
    """Raise ModelError for a file of a model, `shown` to people, that may never end or is too large to be read whole.

    Weights may have any size, within the shapes of their header, and so may files that no part of a model reads. A file that
    does not exist passes.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ModelError(
            "unsupported",
            f"{shown} is a pipe, a socket or a device, not a file.",
            "The folder of a model may hold only ordinary files: reading anything else may never end.",
            "Remove it, or pick another model.",
        )
    if path.is_file():
        check_size(path.name, path.stat().st_size, shown)
        if path.suffix == ".safetensors":
            check_header(path, shown)


def check_size(name: str, size: int, shown: str) -> None:
    """The same for a file of this name and size that is not here yet."""
    most = _most_bytes(name)
    if most is not None and size > most:
        raise ModelError(
            "unsupported",
            f"{shown} has {size:,} bytes.",
            f"This file of a model may have at most {most:,} bytes.",
            "Check that it belongs to the model, save the model again, or pick another one.",
        )


def _most_bytes(name: str) -> int | None:
    """How large a file may be that is read whole; None for weights and for files that no part of a model reads."""
    if name.endswith(".model"):
        return MOST_PROTO_BYTES
    if name in TOKENIZER_FILES or name == "merges.txt":
        return MOST_TOKENIZER_BYTES
    return MOST_JSON_BYTES if name in _LISTS or (name.endswith(".json") and "config" in name) else None


def is_inside(path: str) -> bool:
    """Whether a relative path stays below the folder it is relative to."""
    parts = PurePosixPath(path).parts
    return "\\" not in path and not path.startswith("/") and ".." not in parts and not Path(path).is_absolute()


def is_within(path: Path, folder: Path) -> bool:
    """Whether a file of a model's folder is there and not elsewhere, by way of a link.

    In the hub's cache the files of a model are links to the blobs beside its snapshots, which belong to it too.
    """
    try:
        place, around = path.resolve(), [folder.resolve()]
    except (OSError, ValueError, RuntimeError):  # a name that no file can have, or links in a circle
        return False
    if folder.parent.name == "snapshots" and folder.parent.parent.name.startswith("models--"):
        around.append(folder.parent.parent.resolve() / "blobs")
    return any(place.is_relative_to(one) for one in around)


def read_json(path: Path, most_bytes: int = MOST_JSON_BYTES) -> Any:
    """The content of a JSON file; None for a file that is missing, not JSON, or larger than `most_bytes` or MOST_VALUES."""
    try:
        # A pipe or a device under this name would keep its reader waiting for ever.
        if not path.is_file() or path.stat().st_size > most_bytes:
            return None
        content = path.read_text(encoding="utf-8")
        return None if sum(map(content.count, "[{,:")) > MOST_VALUES else json.loads(content)
    except (OSError, ValueError, RecursionError):
        return None
