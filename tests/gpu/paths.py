"""Everything that is computed with a model, as data: tests on the CPU, on a pretend GPU and on real devices share it.

A path is one call of a Backend or of what it is built of. `paths_of` gives all of those that every kind of model has, in each
of the model's own settings: layers, poolings, blocks, references, precisions. Paths that a model does not offer are among
them: they must be refused in the same words everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from components.analysis.layer_zero import part_norms
from components.model.backend import Backend
from components.model.embedding.options import EmbedOptions, Precision
from components.model.interventions.patched import Experiment, Replacement
from components.model.one_block import feed_forward
from components.model.trace import TokenizedSentence

TEXTS = ["the cat sat on the bank", "money", "a red hat, we will walk by the river!", "dog 你 é"]
SECONDS = ["a dog ran", "put money in the bank!", "x", "we will run"]
FLOAT32 = 1e-5  # the largest difference, relative to the largest number of an array or to 1
SUMS_OF_FLOAT32 = 2e-5  # of many products, one after the other
FLOAT16 = 1e-3
BFLOAT16 = 0.05


@dataclass(frozen=True)
class Path:
    """One computation, and how far the numbers of two devices may differ.

    `in_float32` is the same in full precision, where it is computed in half: there two devices round at other places.
    """

    name: str
    run: Callable[[Backend], object]
    tolerance: float = FLOAT32
    in_float32: Callable[[Backend], object] | None = None


def first(model: Backend, pair: str | None = None) -> TokenizedSentence:
    return model.tokenize([TEXTS[0]], [pair])[0]


def paths_of(model: Backend) -> Iterator[Path]:
    """All paths of a model, by its own layers, poolings, blocks and references."""
    yield Path("facts", lambda b: (b.facts, b.weight_bytes, b.poolings, b.own_pooling, b.vector_size(b.poolings)))
    yield from _traces(model)
    yield from _inside(model)
    yield from _bulk(model)
    yield from _contributions(model)
    yield from _heads()


def _traces(model: Backend) -> Iterator[Path]:
    yield Path("trace", lambda b: b.trace(TEXTS))
    yield Path("trace of pairs", lambda b: b.trace(TEXTS, SECONDS))
    yield Path("trace with attentions", lambda b: b.trace(TEXTS, attentions=True))
    yield Path("trace of the first 4 tokens", lambda b: b.trace(TEXTS, max_length=4))
    yield Path("norms of the parts of layer 0", lambda b: part_norms(b.trace(TEXTS), 2))
    yield Path("word vectors", lambda b: b.word_embeddings())


def _inside(model: Backend) -> Iterator[Path]:
    yield Path("inside", lambda b: b.inside(TEXTS[2]))
    yield Path("inside of a pair", lambda b: b.inside(TEXTS[2], SECONDS[1]))
    yield Path("inside without attentions", lambda b: b.inside(TEXTS[2], attentions=False))
    yield Path("inside with the terms of scores", lambda b: b.inside(TEXTS[2], score_terms=True))
    yield Path("parts of scores", lambda b: b.inside(TEXTS[2], score_terms=True).score_parts(0))
    yield Path("feed-forward parts", lambda b: b.feed_forward(TEXTS[2], SECONDS[0]))
    yield Path("the second block's feed-forward part", _second_feed_forward)
    for block in range(model.facts.layers):
        yield Path(f"queries and keys of block {block}", lambda b, at=block: b.queries_and_keys(TEXTS[2], None, at))
    yield Path("speeds of rotation", lambda b: b.rotation_speeds(0))
    yield Path("norms of blocks", lambda b: b.block_norms())


def _second_feed_forward(model: Backend) -> object:
    (sentence,) = model.tokenize([TEXTS[2]])
    return feed_forward.feed_forward(model.loaded, sentence, range(1, 2))


def _bulk(model: Backend) -> Iterator[Path]:
    alone = tuple((name,) for name in model.poolings)
    for poolings in (*alone, model.poolings):
        names = " and ".join(poolings)
        exact, half = (partial(_vectors, poolings=poolings, precision=each) for each in ("float32", "bfloat16"))
        yield Path(f"vectors in float32, {names}", exact)
        yield Path(f"vectors in bfloat16, {names}", half, BFLOAT16, exact)
    yield Path("vectors of the last layer", lambda b: b.embed(TEXTS * 5, options=_float32(b)))
    yield Path("vectors in tiny batches", lambda b: b.embed(TEXTS * 5, options=_float32(b), token_budget=8))
    yield Path("report of bulk work", lambda b: b.embed_with_report(TEXTS * 5, _float32(b))[1])
    yield Path("vectors of empty texts", lambda b: b.embed(["", " "], options=_float32(b)))
    yield Path("weighted vectors", lambda b: b.embed_weighted(TEXTS, _weights(b), _float32(b)))
    yield Path("token vectors", lambda b: b.token_vectors(TEXTS, max_tokens=9), FLOAT16)
    yield Path("token vectors of a word", lambda b: b.token_vectors(TEXTS, word="the"), FLOAT16)
    yield Path("own token vectors", lambda b: b.own_token_vectors(TEXTS))
    yield Path("own token vectors of layer 1", lambda b: b.own_token_vectors(TEXTS, layer=min(1, b.facts.layers)))
    plain = [name for name in model.poolings if name != "own"]
    yield Path("vectors of pairs", lambda b: b.embed_pairs(TEXTS, SECONDS, b.text_layers, plain))


def _vectors(model: Backend, poolings: Sequence[str], precision: Precision) -> object:
    return model.embed(TEXTS * 5, options=model.embed_options(model.text_layers, poolings, precision=precision))


def _float32(model: Backend) -> EmbedOptions:
    return model.embed_options(precision="float32")


def _weights(model: Backend) -> np.ndarray:
    return np.linspace(0, 2, model.facts.vocabulary_size).astype(np.float32)


def _contributions(model: Backend) -> Iterator[Path]:
    last = model.facts.layers
    yield Path("references", lambda b: b.references)
    for pooling in model.poolings:
        yield Path(f"vectors after replacements, {pooling}", lambda b, pooling=pooling: patched(b, pooling))
        for layer in sorted({0, 1, last}):
            yield Path(
                f"products of paths from layer {layer}, {pooling}",
                lambda b, at=(layer, pooling): b.path_products(first(b), b.references[0], *at, steps=3),
                SUMS_OF_FLOAT32,
            )
            yield Path(
                f"gradient times input of layer {layer}, {pooling}",
                lambda b, at=(layer, pooling): b.gradient_times_input(first(b), _direction(b, at[1]), *at),
            )
    for reference in model.references:
        yield Path(
            f"products of paths from {reference}",
            lambda b, chosen=reference: b.path_products(first(b), chosen, last, b.poolings[0], steps=3),
            SUMS_OF_FLOAT32,
        )
    yield Path(
        "vectors of references", lambda b: b.reference_vectors(first(b), [None, *b.references], last, b.poolings[0])
    )
    yield Path("activations", lambda b: b.activations(first(b, SECONDS[0])))


def _direction(model: Backend, pooling: str) -> np.ndarray:
    return np.linspace(-1, 1, model.vector_size((pooling,) if pooling == "own" else ())).astype(np.float32)


def _heads() -> Iterator[Path]:
    yield Path("next sentences", lambda b: b.next_sentence_probabilities(TEXTS, SECONDS))
    yield Path("logits at a mask", lambda b: b.trace([f"the {mask(b)} sat"], mask_logits=True))
    yield Path("logits of pairs", lambda b: b.pair_logits(TEXTS, SECONDS))
    yield Path("logits after replacements", lambda b: patched(b, None))
    yield Path("sparse vectors", lambda b: b.sparse_vectors(TEXTS))
    yield Path("several vectors of a text", lambda b: b.multi_vectors(TEXTS, "document"))


def mask(model: Backend) -> str:
    """The model's mask, or a word where it has none."""
    number = model.tokenization.mask_id
    return "cat" if number is None else model.tokenization.vocabulary[number]


def patched(model: Backend, pooling: str | None) -> object:
    """The results after each kind of replacement at each layer, block and head, and after some at once.

    Vectors with a pooling, without one the logits of a pair.
    """
    sentence = first(model, SECONDS[0] if pooling is None else None)
    tokens, size, facts = len(sentence), model.facts.hidden_size, model.facts
    numbers = np.random.default_rng(0)

    def values(count: int, width: int) -> np.ndarray:
        return numbers.normal(size=(count, width)).astype(np.float32)

    single = [Replacement("layer", layer, (0, 2), values(2, size)) for layer in range(facts.layers + 1)]
    for block in range(facts.layers):
        single += [Replacement(site, block, (1,), values(1, size)) for site in ("attention", "feed_forward")]
        every = tuple(range(tokens))
        width = model.head_size
        single += [Replacement("head", block, every, values(tokens, width), head) for head in range(facts.heads)]
    experiments: list[Experiment] = [[], *([each] for each in single), single[:5]]
    if pooling is None:
        return model.patched_logits(sentence, experiments)
    return model.patched_vectors(sentence, experiments, pooling)


def guesses(model: Backend) -> Iterator[Path]:
    """What a masked-LM head guesses."""
    yield Path("guesses", lambda b: b.guesses(TEXTS[0], hidden=(2,), k=3))
    yield Path("guesses looking only left", lambda b: b.guesses(TEXTS[0], k=3, only_left=True))
    yield Path("guesses in turn", lambda b: b.guesses_in_turn(TEXTS[0], k=3))
    yield Path("guesses at masks", lambda b: b.guesses_at_masks([f"the {mask(b)} sat", f"a {mask(b)}"], k=3))
    yield Path("surprises", lambda b: b.surprises(TEXTS[0]))


def sparse(model: Backend) -> Iterator[Path]:
    """The weights of pieces of a model that was published for them."""
    yield Path("sparse vectors", lambda b: b.sparse_vectors(TEXTS))
    yield Path("sparse vectors of queries", lambda b: b.sparse_matrix(TEXTS, role="query"))
    yield Path("pieces that a text is expanded to", lambda b: b.expanded_pieces(TEXTS[2]))


def several(model: Backend) -> Iterator[Path]:
    """A model's several vectors of a text."""
    for role in ("query", "document"):
        yield Path(f"several vectors of a {role}", lambda b, role=role: b.multi_vectors(TEXTS, role))
        yield Path(f"pieces of a {role}", lambda b, role=role: b.multi_vector_pieces(TEXTS[2], role))


def scores(model: Backend) -> Iterator[Path]:
    """What a cross-encoder computes of pairs."""
    yield Path("logits of pairs", lambda b: b.pair_logits(TEXTS, SECONDS))
    yield Path(
        "logits of pairs in bfloat16",
        lambda b: b.pair_logits(TEXTS * 30, SECONDS * 30, precision="bfloat16"),
        2 * BFLOAT16,
        lambda b: b.pair_logits(TEXTS * 30, SECONDS * 30, precision="float32"),
    )
    for label in range(len(model.pair_labels())):
        yield Path(
            f"scores of label {label} in tiny batches",
            lambda b, label=label: b.score_pairs(TEXTS, SECONDS, token_budget=9, label=label),
        )
    yield Path("logits after replacements", lambda b: patched(b, None))
    yield Path("labels", lambda b: b.pair_labels())
    yield Path("vectors of pairs", lambda b: b.embed_pairs(TEXTS, SECONDS, b.text_layers, ("cls", "mean", "max")))


def of_the_included_model(model: Backend) -> Iterator[Path]:
    """Some paths in real sizes, where more numbers are added than in a tiny model."""
    yield Path("trace", lambda b: b.trace(TEXTS), 10 * FLOAT32)
    yield Path("trace with attentions", lambda b: b.trace(TEXTS, attentions=True), 10 * FLOAT32)
    yield Path("inside", lambda b: b.inside(TEXTS[2]), 10 * FLOAT32)
    yield Path(
        "vectors in float32",
        lambda b: b.embed(TEXTS * 40, options=b.embed_options(b.text_layers, precision="float32")),
        10 * FLOAT32,
    )
    yield Path(
        "vectors in bfloat16", lambda b: b.embed(TEXTS * 40, options=b.embed_options(precision="bfloat16")), BFLOAT16
    )
    yield Path("products of paths", lambda b: b.path_products(first(b), "unknown", 6, "mean", steps=2), 10 * FLOAT32)
    yield Path("vectors after replacements", lambda b: patched(b, "mean"), 10 * FLOAT32)
    yield Path("guesses", lambda b: b.guesses(TEXTS[0], hidden=(2,), k=3), 10 * FLOAT32)


def of_the_included_scorer(model: Backend) -> Iterator[Path]:
    """The same of the cross-encoder, which is an adapter of the included model."""
    yield Path("logits of pairs", lambda b: b.pair_logits(TEXTS, SECONDS), 10 * FLOAT32)
    one = Replacement("layer", 3, (0,), np.ones((1, 384), np.float32))
    yield Path("logits after a replacement", lambda b: b.patched_logits(first(b, SECONDS[0]), [[one]]), 10 * FLOAT32)
