"""Code for the similarity of words and sentences over the layers, as curves and as a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from components.snippets import code
from components.snippets.code import Input, Snippet

if TYPE_CHECKING:
    from components.model.trace import Pooling


@dataclass(frozen=True)
class Vectors:
    """What gives vectors [layer, thing, dim]: statements, and the expression of the vectors."""

    setup: tuple[str, ...]
    body: tuple[str, ...]
    vectors: str
    unrelated: str  # the expression of the baseline: the unrelated pairs that they are compared with


def of_words(read: Input, words: Sequence[tuple[int, Sequence[int]]]) -> Vectors:
    """Vectors of words, each given by its sentence and the positions of its tokens."""
    places = [(sentence, tuple(positions)) for sentence, positions in words]
    return Vectors(
        read.setup,
        (
            read.trace(),
            "# Of each word: its sentence, and the positions of its tokens.",
            f"words = {code.literal(places)}",
        ),
        "word_vectors(trace, words)",
        UNRELATED_TOKENS,
    )


def of_sentences(read: Input, pooling: Pooling, include_special: bool) -> Vectors:
    """Vectors of whole sentences."""
    return Vectors(
        read.setup, (read.trace(),), pooled(pooling, include_special), unrelated_sentences(pooling, include_special)
    )


def pooled(pooling: Pooling, include_special: bool, trace: str = "trace") -> str:
    """The expression of a trace's sentence vectors [layer, sentence, dim]."""
    return code.call("pool", trace, code.literal(pooling), include_special=None if include_special else False)


UNRELATED_TOKENS = "measure_sample(backend.run, demo_sentences()).tokens"


def unrelated_sentences(pooling: Pooling, include_special: bool) -> str:
    """The expression of the baseline of sentences."""
    return f"measure_sample(backend.run, demo_sentences()).sentences[{code.literal(pooling)}, {include_special}]"


def curves(
    vectors: Vectors,
    names: Sequence[str],
    pairs: Sequence[tuple[int, int]] | None = None,
    *,
    centred: bool = False,
    percentiles: bool = False,
    band: bool = False,
) -> Snippet:
    """A curve of cosines, or of their percentiles, for each pair; with `band` also those of unrelated pairs."""
    body = [*vectors.body]
    options = [] if pairs is None else [f"pairs={code.literal(list(pairs))}"]
    if centred or percentiles or band:
        body.append(f"unrelated = {vectors.unrelated}")
        options += ["centre=unrelated.centre"] * centred
    body.append(f"curves = {code.call('pair_curves', vectors.vectors, code.literal(list(names)), *options)}")
    if percentiles:
        calibration = code.call("unrelated.calibration", "layer", centred=centred or None)
        body += [
            f"shares = [{calibration}.shares(cosines) for layer, cosines in enumerate(curves.values.T)]",
            "values = 100 * np.array(shares).T",
        ]
    else:
        body.append("values = curves.values")
    body.append("print(curves.labels, values)  # [pair, layer]")
    if band:
        kind = "centred" if centred else "raw"
        body.append(f"band = unrelated.{kind}  # 90 % of the unrelated pairs, and their mean")
        body.append("print(band.low, band.high, band.mean)")
    return Snippet(vectors.setup, tuple(body))


def matrix(vectors: Vectors, layer: int, *, centred: bool = False, percentiles: bool = False) -> Snippet:
    """Cosines, or their percentiles, of all things with all at one layer."""
    body = [*vectors.body, f"vectors = {vectors.vectors}"]
    if centred or percentiles:
        body.append(f"unrelated = {vectors.unrelated}")
    shifted = "centred(vectors, unrelated.centre)" if centred else "vectors"
    body.append(f"values = cosine_matrix({shifted})[{layer}]")
    if percentiles:
        body.append(
            f"values = 100 * {code.call('unrelated.calibration', str(layer), centred=centred or None)}.shares(values)"
        )
    return Snippet(vectors.setup, (*body, f"print(values)  # [row, column], at layer {layer}"))


DepthCurve = Literal["tokens", "words", "sentences", "steps"]


@dataclass(frozen=True)
class OfOneSentence:
    """What a curve over relative depth is of: a sentence of `texts`, two of its words, or another sentence."""

    kind: DepthCurve
    sentence: int
    words: Sequence[tuple[int, int]] = ()  # the characters of two words
    other: int | None = None

    def values(self, trace: str, pooling: Pooling) -> str:
        """The expression of the values [layer] from that of a trace."""
        if self.kind == "sentences":
            return f"two_vectors({pooled(pooling, True, trace)}, {self.sentence}, {self.other})"
        if self.kind == "words":
            return f"two_words({trace}, {self.sentence}, {code.literal(list(self.words))})"
        return f"{'token_pairs' if self.kind == 'tokens' else 'layer_steps'}({trace}, {self.sentence})"


def over_depth(of: OfOneSentence, reads: Mapping[str, Input], percentiles: bool = False) -> Snippet:
    """A curve of each model, by the name that the figure gives it; all models read the same texts."""
    loaded, names = code.models([read.backend for read in reads.values()])
    body = ["values = {}"]
    for (title, read), name in zip(reads.items(), names, strict=True):
        pooling = read.backend.own_pooling
        values = of.values(code.call(f"{name}.trace", "texts", max_length=read.max_length), pooling)
        if percentiles:
            unrelated = UNRELATED_TOKENS if of.kind == "words" else unrelated_sentences(pooling, True)
            body.append(f"unrelated = {unrelated.replace('backend', name, 1)}")
            shares = "unrelated.calibration(layer).shares([value])[0]"
            values = f"[100 * {shares} for layer, value in enumerate({values})]"
        body.append(f"values[{code.literal(title)}] = {values}")
    texts = next(iter(reads.values())).texts
    return Snippet(
        (*loaded, code.texts(texts)), (*body, "print(values)  # [layer] each; layer l of L is at depth l / L")
    )
