"""The models with which every path is computed: tiny ones of each family and with each kind of head, and the included ones."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path as File

from components.model.backend import Backend
from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY, EMBEDDED_KEY
from tests.gpu import paths
from tests.gpu.paths import Path, paths_of
from tests.support import saved_models, tiny
from tests.support.decoder_models import save_qwen3
from tests.support.static_models import save_model2vec, save_static_embedding

CROSS_ENCODERS = (
    *("bert", "bert with segments", "electra", "roberta", "distilbert", "mpnet", "albert", "deberta-v2"),
    *("modernbert", "eurobert", "xlm-roberta", "camembert"),
)
PROMPTS = {"query": "the ", "document": ""}


@dataclass(frozen=True)
class Model:
    """A model that is saved into a new folder, or the key of one that is there, and what is computed with it."""

    name: str
    save: Callable[[File], File | str]
    paths: Callable[[Backend], Iterator[Path]] = paths_of


def families() -> Iterator[Model]:
    """One tiny model of each family, and of each kind of model without blocks or that looks only left."""
    for name in tiny.ARCHITECTURES:
        yield Model(name, lambda folder, name=name: tiny.save_tiny(folder, name))
    yield Model("qwen3", save_qwen3)
    yield Model("model2vec", save_model2vec)
    yield Model("static embedding", save_static_embedding)


def with_heads() -> Iterator[Model]:
    """One tiny model with each kind of head."""
    yield Model("bert, mean, Dense", lambda folder: _published(folder, "mean_tokens", tiny.dense_module(32, 48)))
    yield Model(
        "bert, [CLS], Dense, Normalize",
        lambda folder: _published(folder, "cls_token", tiny.dense_module(32, 16), ("Normalize", {})),
    )
    yield Model("bert with next sentences", saved_models.save_with_head)
    yield Model("bert with guesses", tiny.save_tiny_masked_lm)
    for name in tiny.DISTINCT:
        yield Model(f"guesses of {name}", lambda folder, name=name: tiny.save_masked_lm_of(folder, name), paths.guesses)
    for pooling in ("max", "sum"):
        for activation in ("relu", "log1p_relu"):
            yield _sparse(f"sparse, {pooling}, {activation}", pooling, activation)
    yield _sparse("sparse, 4 weights at most", "max", "relu", max_active_dims=4)
    yield Model("several vectors", saved_models.save_multi, paths.several)
    yield Model(
        "several vectors, without signs",
        lambda folder: saved_models.save_multi(folder, skiplist_words=list(string.punctuation)),
        paths.several,
    )
    for kind in CROSS_ENCODERS:
        yield Model(
            f"scores of {kind}", lambda folder, kind=kind: saved_models.save_cross_encoder(folder, kind), paths.scores
        )
    yield Model(
        "scores of bert, 3 labels", lambda folder: saved_models.save_cross_encoder(folder, "bert", 3), paths.scores
    )


def _published(folder: File, pooling: str, *modules: tiny.Module) -> File:
    return tiny.publish(tiny.save_tiny(folder), tiny.pooling_module(pooling), *modules)


def _sparse(name: str, pooling: str, activation: str, **settings: int) -> Model:
    return Model(
        name, lambda folder: saved_models.save_sparse(folder, pooling, activation, PROMPTS, **settings), paths.sparse
    )


def included() -> Iterator[Model]:
    """The models that come with the project, of real sizes."""
    yield Model("the included model", lambda folder: EMBEDDED_KEY, paths.of_the_included_model)
    yield Model("the included cross-encoder", lambda folder: EMBEDDED_CROSS_ENCODER_KEY, paths.of_the_included_scorer)


def every_model() -> Iterator[Model]:
    yield from families()
    yield from with_heads()
    yield from included()
