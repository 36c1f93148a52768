"""Folders of made-up models as people publish them: tiny encoders of eight families, each with some settings of its own.

The settings are drawn from the table of decisions: each row that is applied has a way to be drawn below, or a reason why it has
none (`NOT_DRAWN`), or else a value that its rule allows, so that a new row is covered without a new test. All rows that can be
drawn come in turn, so that 60 folders have each of them several times, in changing company.

`faults` says where a folder's numbers here are not those of sentence-transformers.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from components.model.backend import Backend
from components.model.embedding.options import EmbedOptions
from components.model.files import allowed, tokenizer_files
from components.model.files.decisions import CONFIG, ENCODER, ENCODER_FILES, MODULES, TABLE, TOKENIZER, TOP, Decision
from components.model.verification import comparison
from dashboard.jobs.embedding import EmbedRequest
from tests.components.command_line.in_process import run
from tests.support.reference import as_published
from tests.support.static_models import save_static_embedding
from tests.support.tiny import save_tiny

FAMILIES = ("bert", "distilbert", "roberta", "xlm-roberta", "mpnet", "albert", "modernbert", "static")
FOLDERS = 60
SAME = comparison.SAME
TEXTS = (
    "the cat sat on the bank",
    "The Cat SAT on the River BANK, é!",
    "money in the bank",
    " ".join(["the red dog ran by the river , we put money in the bank ."] * 8),
    "a dog",
    "we will put the hat on the dog by the river",
)
QUERIES = (
    "the river bank of the cat",
    "A dog ran",
    "Money, money in the bank by the river and the cat sat on the red hat.",
)


@dataclass
class Draft:
    """A folder before it is written. Sizes of modules follow from the order in which they are applied."""

    chance: random.Random
    family: str
    top: dict[str, Any] = field(default_factory=dict)
    encoder: dict[str, Any] = field(default_factory=dict)
    encoder_file: str = ENCODER
    config: dict[str, Any] = field(default_factory=dict)
    tokenizer: dict[str, Any] = field(default_factory=dict)
    pooling: dict[str, Any] = field(default_factory=lambda: {"pooling_mode": "mean"})
    before: list[tuple[str, dict[str, Any]]] = field(default_factory=list)  # modules before pooling
    after: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # of the settings, for people

    @property
    def is_static(self) -> bool:
        return self.family == "static"


@dataclass(frozen=True)
class Published:
    """A folder with the settings that it was given."""

    folder: Path
    family: str
    settings: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.family} with {', '.join(self.settings)}"


def _prompts(draft: Draft) -> None:
    draft.top["prompts"] = {"query": "the river ", "document": "Money in the bank: ", "other": "a red hat "}


def _default_prompt(draft: Draft) -> None:
    _prompts(draft)
    draft.top["default_prompt_name"] = draft.chance.choice(["other", "document"])


def _include_prompt(draft: Draft) -> None:
    _default_prompt(draft)
    draft.pooling["include_prompt"] = False


def _put(part: str, key: str, *values: Any) -> Callable[[Draft], None]:
    """One of these values for a key of a file."""

    def put(draft: Draft) -> None:
        getattr(draft, part)[key] = draft.chance.choice(values)

    return put


def _modes(draft: Draft) -> None:
    count = draft.chance.choice([1, 1, 2, 3])
    modes = draft.chance.sample(allowed.POOLING_MODES, count)
    draft.pooling = {**_without_modes(draft), "pooling_mode": modes[0] if count == 1 else modes}


def _flag(name: str) -> Callable[[Draft], None]:
    """An older folder's flag, alone or beside another one."""

    def put(draft: Draft) -> None:
        others = draft.chance.sample(list(allowed.POOLING_FLAGS), draft.chance.choice([0, 0, 1]))
        draft.pooling = {**_without_modes(draft), **dict.fromkeys([name, *others], True)}

    return put


def _without_modes(draft: Draft) -> dict[str, Any]:
    return {key: value for key, value in draft.pooling.items() if not key.startswith("pooling_mode")}


def _module(kind: str, **config: Any) -> Callable[[Draft], None]:
    def add(draft: Draft) -> None:
        draft.after.append((kind, dict(config)))

    return add


def _dense(key: str, *values: Any) -> Callable[[Draft], None]:
    """A Dense layer after pooling with one of these values."""

    def add(draft: Draft) -> None:
        draft.after.append(
            ("Dense", {"out_features": draft.chance.choice([8, 32, 48]), key: draft.chance.choice(values)})
        )

    return add


def _dense_on_tokens(draft: Draft) -> None:
    names = {"module_input_name": "token_embeddings", "module_output_name": "token_embeddings"}
    draft.before.append(("Dense", {"out_features": draft.chance.choice([16, 40]), **names}))


def _layers(draft: Draft) -> None:
    """Weighted layers, which need that the encoder gives all of them."""
    if any(kind == "WeightedLayerPooling" for kind, _ in draft.before):
        return
    key = "config_kwargs" if "config_kwargs" in draft.encoder else "config_args"
    draft.encoder.setdefault(key, {})["output_hidden_states"] = True
    start = draft.chance.choice([1, 2])
    draft.before.insert(0, ("WeightedLayerPooling", {"num_hidden_layers": 3, "layer_start": start}))


def _arguments(key: str) -> Callable[[Draft], None]:
    """Arguments of the tokenizer within the encoder's settings."""

    def put(draft: Draft) -> None:
        choices: list[dict[str, Any]] = [{"model_max_length": 9}, {"truncation_side": "left", "model_max_length": 12}]
        draft.encoder[key] = draft.chance.choice(choices)

    return put


def _configuration(key: str) -> Callable[[Draft], None]:
    """Another activation, by way of the encoder's settings; a family that calls it otherwise ignores it on both sides."""

    def put(draft: Draft) -> None:
        draft.encoder.setdefault(key, {})["hidden_act"] = "relu"

    return put


def _older_name(draft: Draft) -> None:
    """The first file that says something is read: one under an older name."""
    draft.encoder["max_seq_length"] = draft.chance.randint(6, 14)
    draft.encoder_file = draft.chance.choice(ENCODER_FILES[1:])


Key = tuple[str, str]
_ACTIVATIONS = tuple(
    f"torch.nn.modules.{'linear' if name == 'Identity' else 'activation'}.{name}" for name in allowed.ACTIVATIONS
)
DRAWN: dict[Key, Callable[[Draft], None]] = {
    (MODULES, "path"): _older_name,  # no setting of its own: the folders' names are these already
    (TOP, "prompts"): _prompts,
    (TOP, "default_prompt_name"): _default_prompt,
    (TOP, "similarity_fn_name"): _put("top", "similarity_fn_name", "cosine", "dot", "euclidean", "manhattan"),
    (TOP, "truncate_dim"): _put("top", "truncate_dim", 3, 8, 20),
    (TOP, "model_type"): _put("top", "model_type", "SentenceTransformer"),
    (ENCODER, "max_seq_length"): _put("encoder", "max_seq_length", 5, 9, 14, 40),
    (ENCODER, "query_length"): _put("encoder", "query_length", 4, 6),
    (ENCODER, "document_length"): _put("encoder", "document_length", 5, 7),
    (ENCODER, "do_lower_case"): _put("encoder", "do_lower_case", True),
    (ENCODER, "tokenizer_args"): _arguments("tokenizer_args"),
    (ENCODER, "processor_kwargs"): _arguments("processor_kwargs"),
    (ENCODER, "config_args"): _configuration("config_args"),
    (ENCODER, "config_kwargs"): _configuration("config_kwargs"),
    (ENCODER, "model_args"): _put("encoder", "model_args", {"torch_dtype": "float32"}),
    (ENCODER, "model_kwargs"): _put("encoder", "model_kwargs", {"dtype": "float32"}),
    (ENCODER, "processing_kwargs"): _put("encoder", "processing_kwargs", {"text": {"padding": "longest"}}),
    ("Pooling", "pooling_mode"): _modes,
    ("Pooling", "include_prompt"): _include_prompt,
    **{("Pooling", name): _flag(name) for name in allowed.POOLING_FLAGS},
    ("Normalize", ""): _module("Normalize"),
    ("Dense", ""): _dense("bias", True),
    ("Dense", "bias"): _dense("bias", False),
    ("Dense", "activation_function"): _dense("activation_function", *_ACTIVATIONS),
    ("Dense", "use_residual"): _dense("use_residual", True),
    ("Dense", "module_input_name"): _dense_on_tokens,
    ("LayerNorm", ""): _module("LayerNorm"),
    ("WeightedLayerPooling", ""): _layers,
    ("WeightedLayerPooling", "layer_start"): _layers,
    (TOKENIZER, "truncation_side"): _put("tokenizer", "truncation_side", "left"),
    (TOKENIZER, "padding_side"): _put("tokenizer", "padding_side", "left"),
    (TOKENIZER, "model_max_length"): _put("tokenizer", "model_max_length", 7, 16),
    (TOKENIZER, "do_lower_case"): _put("tokenizer", "do_lower_case", True, False),
}
_OF_ANOTHER_KIND = "models that give a text no vector, which have tests of their own"
_A_SIZE = "a size: another value contradicts the weights"
NOT_DRAWN: dict[Key, str] = {
    (MODULES, "type"): "every folder lists modules",
    (MODULES, "name"): "two of one name are drawn by hand in the tests of the head",
    **{(TOP, key): _OF_ANOTHER_KIND for key in ("activation_fn", "max_active_dims", "query_prefix", "document_prefix")},
    **{
        (TOP, key): _OF_ANOTHER_KIND for key in ("query_length", "document_length", "query_expansion", "skiplist_words")
    },
    **{
        (TOP, key): _OF_ANOTHER_KIND
        for key in ("do_query_expansion", "attend_to_expansion_tokens", "attend_to_mask_tokens")
    },
    (ENCODER, "query_expansion"): _OF_ANOTHER_KIND,
    **{(kind, ""): "the encoder, which every folder has" for kind in ("Transformer", "Pooling", "StaticEmbedding")},
    **{(kind, ""): "an older name of the encoder" for kind in ("BERT", "RoBERTa", "DistilBERT", "ALBERT", "XLNet")},
    **{
        (kind, key): _A_SIZE
        for kind in ("Pooling", "WeightedLayerPooling")
        for key in ("embedding_dimension", "word_embedding_dimension")
    },
    ("Dense", "in_features"): _A_SIZE,
    ("Dense", "out_features"): _A_SIZE,
    ("LayerNorm", "dimension"): _A_SIZE,
    ("WeightedLayerPooling", "num_hidden_layers"): _A_SIZE,
    (ENCODER, "modality_config"): "it says that texts are read, which is the default",
    ("Dense", "module_output_name"): "drawn with module_input_name",
    ("Normalize", "module_input_name"): "drawn by hand in the tests of the head",
    ("Normalize", "module_output_name"): "drawn by hand in the tests of the head",
}
_SOURCES_NOT_DRAWN = {
    CONFIG: "sizes and kinds of the encoder: the families differ in them",
    "MLMTransformer": _OF_ANOTHER_KIND,
    "SpladePooling": _OF_ANOTHER_KIND,
    "MultiVectorMask": _OF_ANOTHER_KIND,
}
_RULES = {TOP: allowed.SENTENCE_FILES[TOP], ENCODER: allowed.SENTENCE_FILES[ENCODER], TOKENIZER: tokenizer_files.CONFIG}
_PARTS = {TOP: "top", ENCODER: "encoder", TOKENIZER: "tokenizer"}
# What a rule may allow, for a row that has no way to be drawn of its own.
_TRIED = (True, False, 7, 1, 0.5, "left", "cls", "mean", "a")
_TOKENS = {"vocab_file", "tokenizer_class", "added_tokens_decoder", "model_input_names", "pad_token_type_id", "max_len"}


def drawn(row: Decision) -> Callable[[Draft], None] | None:
    """How a row of the table is drawn; None for one that has a reason not to be."""
    key = (row.source, row.key)
    if key in DRAWN:
        return DRAWN[key]
    of_tokens = row.source == TOKENIZER and (row.key in _TOKENS or row.key.endswith(("_token", "_tokens")))
    if key in NOT_DRAWN or row.source in _SOURCES_NOT_DRAWN or of_tokens or row.outcome != "applied":
        return None
    rule = _RULES.get(row.source, {}).get(row.key)
    fit = [value for value in _TRIED if rule is not None and not rule(value)]
    if not fit:
        raise LookupError(f"{row.source}, {row.key}: say in DRAWN how it is drawn, or in NOT_DRAWN why it is not")
    return _put(_PARTS[row.source], row.key, *fit)


def rows() -> tuple[Decision, ...]:
    """The rows that can be drawn. Raises LookupError for one that is applied and has neither a value nor a reason."""
    return tuple(row for row in TABLE if drawn(row) is not None)


def draft(seed: int) -> Draft:
    """The folder of a seed: its family, and two or three settings away from the default."""
    every = list(rows())
    chance, of_all = random.Random(seed), random.Random(seed * 3 // len(every))
    of_all.shuffle(every)  # all rows in turn, in another order each time
    result = Draft(chance, FAMILIES[seed % len(FAMILIES)])
    start = seed * 3 % len(every)
    chosen = (every + every)[start : start + 3]
    for row in chosen[: chance.choice([2, 3, 3])]:
        if result.is_static and row.source not in {TOP, "Normalize", "LayerNorm", "Dense"}:
            row = chance.choice([each for each in every if each.source in {TOP, "Normalize", "LayerNorm"}])
        if result.is_static and row.key == "module_input_name":
            continue
        draw = drawn(row)
        assert draw is not None
        draw(result)
        result.names.append(f"{row.source}{f' {row.key}' if row.key else ''}")
    return result


def write(folder: Path, seed: int) -> Published:
    """Write the folder of a seed."""
    made = draft(seed)
    numbers = torch.Generator().manual_seed(seed)
    if made.is_static:
        save_static_embedding(folder, seed)
        listed: list[tuple[str, dict[str, Any]]] = made.after
        modules = json.loads((folder / "modules.json").read_text())
    else:
        folder.mkdir(parents=True, exist_ok=True)
        save_tiny(folder, made.family, seed)
        listed = [*made.before, ("Pooling", made.pooling), *made.after]
        modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
        _merge(folder / made.encoder_file, made.encoder)
        _merge(folder / "tokenizer_config.json", made.tokenizer)
    size = 32 if not made.is_static else _static_size(folder)
    for at, (kind, config) in enumerate(listed, start=1):
        path = folder / f"{at}_{kind}"
        path.mkdir()
        modules.append({"idx": at, "name": str(at), "path": path.name, "type": f"sentence_transformers.models.{kind}"})
        size = _write_module(path, kind, config, size, numbers)
    (folder / "modules.json").write_text(json.dumps(modules))
    _merge(folder / TOP, made.top)
    return Published(folder, made.family, tuple(made.names))


def _static_size(folder: Path) -> int:
    from safetensors.torch import load_file

    (table,) = load_file(folder / "0_StaticEmbedding" / "model.safetensors").values()
    return int(table.shape[1])


def _write_module(path: Path, kind: str, config: dict[str, Any], size: int, numbers: torch.Generator) -> int:
    """Write a module that takes vectors of `size` numbers, and return how many it gives."""
    written, weights, gives = dict(config), {}, size
    if kind == "Pooling":
        flags = [name for name in allowed.POOLING_FLAGS if config.get(name)]
        modes = config.get("pooling_mode", flags)
        gives = size * (len(modes) if isinstance(modes, list) else 1)
        written["word_embedding_dimension" if flags else "embedding_dimension"] = size
    elif kind == "Dense":
        gives = config["out_features"]
        written = {"in_features": size, "bias": True, **config}
        weights["linear.weight"] = torch.randn((gives, size), generator=numbers) / 4
        if written["bias"]:
            weights["linear.bias"] = torch.randn((gives,), generator=numbers) / 4
        if config.get("use_residual") and gives != size:
            weights["residual.weight"] = torch.randn((gives, size), generator=numbers) / 4
    elif kind == "LayerNorm":
        written["dimension"] = size
        weights = {
            "norm.weight": torch.rand((size,), generator=numbers) + 0.5,
            "norm.bias": torch.randn((size,), generator=numbers) / 4,
        }
    elif kind == "WeightedLayerPooling":
        written["embedding_dimension"] = size
        layers = config["num_hidden_layers"] + 1 - config["layer_start"]
        weights["layer_weights"] = torch.rand((layers,), generator=numbers) + 0.1
    if kind != "Normalize":
        (path / "config.json").write_text(json.dumps(written))
    if weights:
        save_file(weights, path / "model.safetensors")
    return gives


def _merge(path: Path, values: dict[str, Any]) -> None:
    if values:
        said = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(said | values))


def faults(published: Published, place: Path) -> Iterator[str]:
    """Where this folder's numbers are not sentence-transformers': vectors by page, `index` and `search`, `why`, `evaluate`.

    `place` is an empty folder for files of the commands. The backend is loaded once, for the commands too.

    Where the tokenizer pads on the left, the library's vector of a text depends on the other texts of its batch (see
    `Loaded._told_of_padding`); that of the text alone is the right one, and the difference must be named.
    """
    backend = Backend.load(str(published.folder), device_name="cpu")
    alone = any("pads on the left" in sentence for sentence in backend.not_applied)
    with as_published(published.folder) as model:
        encode = {"": model.encode, "query": model.encode_query, "document": model.encode_document}
        right = {
            role: encode[role]([*TEXTS, *QUERIES], batch_size=1 if alone else 32, show_progress_bar=False)
            for role in encode
        }
        for role, vectors in right.items():
            yield from _apart(role, vectors, comparison.own_vectors(backend, (*TEXTS, *QUERIES), role))
        yield from _by_page(backend, right)
        queries, documents = right["query"][len(TEXTS) :], right["document"][: len(TEXTS)]
        similarities = model.similarity(queries, documents).double().numpy()
        yield from _by_search(published, place, similarities, documents)
        yield from _by_why(published, right[""])
        yield from _by_evaluate(published, place, similarities)


def _apart(name: str, expected: np.ndarray, found: np.ndarray) -> Iterator[str]:
    items = comparison.compared((*TEXTS, *QUERIES), name, expected, found)
    worst = max(items, key=lambda item: item.difference)
    if not worst.difference <= SAME:
        yield f"vectors ({name or 'no role'}): {worst.difference:.1e}, cosine {worst.cosine:.4f} at “{worst.text[:40]}”"


def _by_page(backend: Backend, right: dict[str, np.ndarray]) -> Iterator[str]:
    """What pages embed: every layer and pooling at once, as documents and as queries."""
    request = EmbedRequest(backend, exact=True)
    documents = request.document_options()
    for role, options in (("document", documents), ("query", request.query_options(documents))):
        vectors = backend.embed([*TEXTS, *QUERIES], options=options)
        yield from _apart(f"{role} by page", right[role], _own(backend, options, vectors))


def _own(backend: Backend, options: EmbedOptions, vectors: Any) -> np.ndarray:
    """The model's own vectors of all that were embedded, [text, dim]."""
    own = np.asarray(vectors[-1, options.poolings.index(backend.own_pooling)])
    return np.asarray(comparison.as_compared(backend, own))


def _by_search(published: Published, place: Path, right: np.ndarray, documents: np.ndarray) -> Iterator[str]:
    """`index` and `search`: the scores of all texts, and their order where scores are not almost equal (semantic_search)."""
    corpus = place / "corpus.txt"
    corpus.write_text("\n".join(TEXTS), encoding="utf-8")
    said = run(
        *("index", str(corpus), "--out", str(place / "index"), "--model", str(published.folder)),
        *("--precision", "float32", "--dtype", "float32"),
    )
    if said.returncode != 0:
        yield f"index: {said.stderr.strip()}"
        return
    for query, expected in zip(QUERIES, right, strict=True):
        said = run("search", str(place / "index"), query, "-k", "6", "--model", str(published.folder), "--json", "-")
        if said.returncode != 0:
            yield f"search: {said.stderr.strip()}"
            return
        found = {hit["text"]: hit["score"] for hit in json.loads(said.stdout)["results"]}
        scale = max(1.0, float(np.abs(expected).max()))
        # A search rounds its scores, and gives them with six digits.
        apart = max(
            (abs(found.get(text, np.inf) - score) for text, score in zip(TEXTS, expected, strict=True)), default=0
        )
        if not apart <= 2e-5 * scale:
            yield f"search: a score is {apart:.1e} apart, of at most {scale:.1f}"
        order = [TEXTS[row] for row in np.argsort(-expected, kind="stable")]
        clear = np.all(np.diff(np.sort(expected)) > 1e-4 * scale)
        if clear and list(found) != order:
            yield "search: another order"


def _by_why(published: Published, right: np.ndarray) -> Iterator[str]:
    """`why`: the cosine of two texts, as `encode` gives it."""
    first, second = right[0].astype(float), right[5].astype(float)
    cosine = first @ second / (np.linalg.norm(first) * np.linalg.norm(second))
    said = run("why", TEXTS[0], TEXTS[5], "--model", str(published.folder), "--json", "-")
    if said.returncode != 0:
        yield f"why: {said.stderr.strip()}"
        return
    result = json.loads(said.stdout)
    if not abs(result["cosine"] - cosine) <= SAME:
        yield f"why: {result['cosine']:.5f}, not {cosine:.5f}"
    total = float(np.sum(result["contributions"])) + result["left_over"]
    if not abs(total - result["cosine"]) <= SAME:
        yield f"why: its parts sum to {total:.5f}, not {result['cosine']:.5f}"


def _by_evaluate(published: Published, place: Path, right: np.ndarray) -> Iterator[str]:
    """`evaluate`: MRR of queries whose answers are the first texts, by the model's own similarity."""
    pairs = place / "pairs.jsonl"
    rows = [{"sentence": text, "compressed": query} for query, text in zip(QUERIES, TEXTS, strict=False)]
    pairs.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    scores = right[:, : len(QUERIES)]
    gold = np.diag(scores)[:, None]
    if np.any(np.abs(scores - gold)[~np.eye(len(QUERIES), dtype=bool)] < 1e-4 * max(1.0, float(np.abs(scores).max()))):
        return  # too close to call
    expected = 100 * float(np.mean(1 / (1 + (scores > gold).sum(axis=1))))
    said = run("evaluate", str(pairs), "--model", str(published.folder), "--json", "-")
    if said.returncode != 0:
        yield f"evaluate: {said.stderr.strip()}"
        return
    (measured,) = json.loads(said.stdout)["runs"]
    if not abs(measured["mrr"] - expected) < 0.01:
        yield f"evaluate: MRR {measured['mrr']:.2f}, not {expected:.2f}"
