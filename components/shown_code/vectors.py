"""Code for figures of vectors of words and of sentences: their cosines at every layer or at one, and their maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from components.analysis.pooling import max_of, mean_of, pool
from components.analysis.similarity.baseline import measure
from components.analysis.similarity.calibration import Calibration
from components.analysis.similarity.cosines import cosine_matrix
from components.analysis.why.contrasts import shares_above
from components.analysis.word_senses import nearest_neighbour_accuracy, sense_curve
from components.arrays import cosine, unit
from components.retrieval.corpora.minimal_pairs import PARAPHRASE
from components.shown_code.arrays import FLOAT32, SENTENCE_TRANSFORMERS, columns, model_name
from components.shown_code.code import AnyCode, Code, Command
from components.shown_code.written import literal

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.embedding.options import EmbedOptions
    from components.model.trace import Pooling
    from components.shown_code.arrays import Functions, Input


MOST_TEXTS = 64  # in the text of a code, and in one pass
# The statements that read the pairs of sentences that differ in one thing, whose table is that of their cosines.
PAIRS_READ = (
    *columns(
        "clinic_cosines", {"first": ("first", "texts"), "second": ("second", "texts"), "kinds": ("kind", "texts")}
    ),
    "texts = [*first, *second]",
)


@dataclass(frozen=True)
class Vectors:
    """How to get `vectors` [layer, thing, dim] from hidden states: the statements, and the functions that they call."""

    read: Input
    count: int  # of things
    functions: Functions
    statements: Sequence[str]  # none where 30 lines do not give the vectors

    def code(self, functions: Functions, *statements: str) -> AnyCode:
        """What `functions` and `statements` make of the vectors."""
        if not self.statements:
            return Command(self.functions[-1])
        return self.read.states((*self.functions, *functions), *self.statements, *statements)

    def curves(
        self,
        pairs: Sequence[tuple[int, int]] | None,
        band: bool,
        *,
        centred: bool = False,
        percentiles: bool = False,
    ) -> AnyCode:
        """A curve of cosines for each pair, for None of all; `band`: there is also one of unrelated pairs."""
        if centred or percentiles:
            return unrelated(percentiles)
        chosen = list(combinations(range(self.count), 2)) if pairs is None else list(pairs)
        beside = ["# The grey band is of pairs of other sentences: components/analysis/similarity/baseline.py"] * band
        return self.code(
            (cosine,),
            f"pairs = {literal(chosen)}",
            "first, second = np.reshape(pairs, (-1, 2)).T",
            "values = cosine(vectors[:, first], vectors[:, second]).T",
            "print(values)  # [pair, layer]",
            *beside,
        )

    def matrix(
        self, layer: int, order: Sequence[int] = (), *, centred: bool = False, percentiles: bool = False
    ) -> AnyCode:
        """Cosines of all things with all at one layer, in an order if one is given."""
        if centred or percentiles:
            return unrelated(percentiles)
        is_other = list(order) != sorted(order)
        return self.code(
            (cosine_matrix,),
            f"values = cosine_matrix(vectors)[{layer}]",
            *([f"values = values[np.ix_(order := {literal(list(order))}, order)]"] if is_other else []),
            f"print(values)  # [row, column], at layer {layer}",
        )


def unrelated(percentiles: bool) -> Command:
    """What compares with pairs of many other sentences: their percentiles, or the mean vector that is subtracted."""
    return Command(Calibration.shares if percentiles else measure)


def pairs_apart(read: Input, layer: int, pooling: Pooling) -> AnyCode:
    """The cosines of the pairs of texts in the table of kinds of differences."""
    return of_sentences(read, pooling, include_special=True).code(
        (cosine,), f"values = cosine(*np.split(vectors[{layer}], 2))", "print(values)  # [pair]"
    )


def kinds_apart(read: Input, kinds: Sequence[str], pooling: Pooling) -> AnyCode:
    """How often the paraphrase is the more similar one, by kind of difference and layer."""
    return of_sentences(read, pooling, include_special=True).code(
        (unit, shares_above),
        "first, second = np.split(unit(vectors.astype(float)), 2, axis=1)",
        "same, *changed = (",
        "    (first * second).sum(axis=-1)[:, np.array(kinds) == kind]  # cosines [layer, pair]",
        f"    for kind in {literal([PARAPHRASE, *kinds])}",
        ")",
        "values = [100 * shares_above(same, of_kind) for of_kind in changed]",
        "print(values)  # [kind, layer], in per cent",
    )


def kinds_before_after(backends: Sequence[Backend], options: Sequence[EmbedOptions], kinds: Sequence[str]) -> Code:
    """The same of the own vectors of some models, each embedded with its options."""
    read = [(model_name(backend), of.max_length, of.prompt) for backend, of in zip(backends, options, strict=True)]
    start = PAIRS_READ.index("")
    lines = [
        SENTENCE_TRANSFORMERS,
        *PAIRS_READ[:start],
        "import numpy as np",
        "import torch",
        "from sentence_transformers import SentenceTransformer",
        *PAIRS_READ[start:],
        f"models = {literal(read)}  # each with its length in tokens and its prompt",
        "vectors = []  # [model][text, dim]",
        "for name, length, prompt in models:",
        f"    model = SentenceTransformer(name, {FLOAT32})",
        "    model.max_seq_length = length",
        "    vectors.append(model.encode(texts, prompt=prompt))",
    ]
    statements = (
        "first, second = np.split(unit(np.array(vectors, float)), 2, axis=1)",
        "cosines, kinds = (first * second).sum(axis=-1), np.array(kinds)  # [model, pair]; [pair]",
        f"same = cosines[:, kinds == {literal(PARAPHRASE)}]",
        f"values = [100 * shares_above(same, cosines[:, kinds == kind]) for kind in {literal(list(kinds))}]",
        "print(values)  # [kind, model], in per cent",
    )
    return Code("\n".join(lines), (unit, shares_above), statements)


def falls(read: Input, layer: int, pooling: Pooling) -> AnyCode:
    """How far the cosine of two texts falls without each word; the texts are the first ones, then the second ones."""
    return of_sentences(read, pooling, include_special=True).code(
        (cosine,),
        f"cosines = cosine(*np.split(vectors[{layer}], 2))  # of both texts as they are, then without each word",
        "values = cosines[0] - cosines[1:]",
        "print(values)  # [word]",
    )


def of_words(read: Input, words: Sequence[tuple[int, Sequence[int]]]) -> Vectors:
    """Vectors of words, each given by its sentence and the positions of its tokens."""
    places = [(sentence, list(positions)) for sentence, positions in words]
    return Vectors(
        read,
        len(places),
        (),
        (
            f"words = {literal(places)}  # of each its sentence, and its tokens",
            "vectors = np.stack([hidden_states[:, row, tokens].mean(axis=1) for row, tokens in words], axis=1)",
        ),
    )


def of_tokens(read: Input, include_special: bool, count: int) -> Vectors:
    """Vectors of all tokens, `count` of them."""
    mask = "keep" if include_special else "~special"
    return Vectors(read, count, (), (f"vectors = hidden_states[:, {mask}]  # [layer, token, dim]",))


def of_senses(occurrences: Vectors, senses: Sequence[str]) -> AnyCode:
    """How often the nearest other occurrence of a word has the same sense, and how well the senses are apart, by layer."""
    return occurrences.code(
        (unit, nearest_neighbour_accuracy, sense_curve),
        "from sklearn.metrics import silhouette_score\n",
        f"_, labels = np.unique({literal(list(senses))}, return_inverse=True)",
        "layers = [unit(layer) for layer in vectors]",
        "shares = [nearest_neighbour_accuracy(layer, labels) for layer in layers]",
        'values = np.array([shares, [silhouette_score(layer, labels, metric="cosine") for layer in layers]])',
        "print(values)  # [measure, layer]: nearest one of the same sense, silhouette",
    )


def of_sentences(read: Input, pooling: Pooling, include_special: bool) -> Vectors:
    """Vectors of whole sentences."""
    mask = "keep" if include_special else "~special"
    ways = {
        "mean": ((mean_of,), f"mean_of(hidden_states, {mask})"),
        "max": ((max_of,), f"max_of(hidden_states, {mask})"),
        "cls": ((), "hidden_states[:, :, 0]"),
    }
    if pooling not in ways:
        return Vectors(read, len(read.texts), (pool,), ())
    functions, vectors = ways[pooling]
    return Vectors(read, len(read.texts), functions, (f"vectors = {vectors}  # [layer, sentence, dim]",))
