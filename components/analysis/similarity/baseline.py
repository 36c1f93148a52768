"""How similar two unrelated tokens are: the baseline for every cosine.

Hidden states of BERT-family encoders fill a narrow cone, so that any two tokens have a high cosine, in some layers
more than in others (Ethayarajh 2019). The baseline: seeded pairs of non-special tokens with different forms from
different sentences of a fixed sample, with mean and 5-95 % band at each layer. Subtracting the sample's mean vector
from all vectors removes their common direction (centred cosine).

It is an estimate from one small English sample: text in another language or field has another baseline. Its tokens have
different forms: the same word in two sentences may lie above the band only because its word vector is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from components.analysis.pooling import pool
from components.analysis.similarity import calibration
from components.analysis.similarity.calibration import Calibration
from components.analysis.similarity.cosines import centred
from components.arrays import Float32, Float64, Int64, cosines_of_directions, read_only, unit
from components.model.trace import Pooling, Trace

SEED = 20_240
PAIRS = 2_000
ALL_PAIRS_OF = 1_000  # vectors: of so many, the pairs are chosen from a list of all
MOST_DRAWS = 1_000  # attempts to find pairs among more vectors
WITHOUT_SPECIAL = ("mean", "max")  # the poolings that can leave special tokens out
CHUNK = 25  # sentences per pass: others wait for a pass to end, so it must be short


@dataclass(frozen=True, eq=False)
class Band:
    """Cosines of unrelated pairs: their mean and percentiles, float64 [layer 0..L] each, and the cosines themselves."""

    mean: Float64
    low: Float64  # 5th percentile
    high: Float64  # 95th percentile
    cosines: Float32  # [layer 0..L, pair], NaN where a vector is missing


@dataclass(frozen=True, eq=False)
class Baseline:
    """Bands and mean vectors of one kind of vector (tokens, or sentences by a pooling)."""

    raw: Band
    centred: Band
    centre: Float32  # mean vector of the sample, [layer, dim]
    pairs: int  # 0: there are no unrelated pairs, and the bands are NaN
    sample: int  # vectors in the sample
    first: Int64  # [pair]: the number of the sentence
    second: Int64  # [pair]
    # [block 0..L-1]: mean cosine of one of a pair before a block with the other after it, as the two stand in either order
    across: Float64
    has_failed: bool = False  # for another reason than the model: to measure it again may help

    @property
    def is_measured(self) -> bool:
        """Whether there is a baseline: a tokenizer may give the same form for every word of the sample."""
        return self.pairs > 0

    def calibration(self, layer: int, centred: bool = False) -> Calibration:
        """What a cosine at a layer means: the unrelated pairs it can be compared with."""
        return calibration.of_pairs((self.centred if centred else self.raw).cosines[layer], self.first, self.second)


@dataclass(frozen=True, eq=False)
class Baselines:
    """The baselines of one model."""

    tokens: Baseline
    sentences: dict[tuple[Pooling, bool], Baseline]  # (pooling, special tokens included)


def measure(
    traces: Iterable[Trace], pairs: int = PAIRS, seed: int = SEED, order: Sequence[int] | None = None
) -> Baselines:
    """The baselines over the sentences of some traces of one model. Raises ValueError for fewer than two sentences.

    Where all tokens have one form ([UNK], for example), that of the tokens is not measured. `order`: the places in the sample
    of the sentences, which the traces have in another order.

    The tokens' vectors are copied once, without padding: memory is tokens x layers x dim x 4 bytes.
    """
    vectors: list[Float32] = []  # of the non-special tokens of each sentence, [layer, token, dim]
    forms: list[list[str]] = []  # of each sentence
    pooled: dict[tuple[Pooling, bool], list[Float32]] = {}
    for trace in traces:
        keep = ~trace.special_mask  # [sentence, token]
        for row, sentence in enumerate(trace.sentences):
            vectors.append(trace.hidden_states[:, row, keep[row]])  # [layer, kept, dim]
            forms.append([token.piece.lower() for token in sentence.tokens if not token.special])
        for pooling in trace.poolings:
            for special in (True, False) if pooling in WITHOUT_SPECIAL else (True,):
                pooled.setdefault((pooling, special), []).append(pool(trace, pooling, special))
    count = len(forms)
    if count < 2:
        raise ValueError("a baseline needs at least two sentences")
    places = np.arange(count) if order is None else np.argsort(order)
    tokens = np.concatenate([vectors[place] for place in places], axis=1)  # [layer, token, dim]
    sentence_of = np.repeat(np.arange(count), [len(forms[place]) for place in places])
    try:
        first, second = draw_pairs([form for place in places for form in forms[place]], sentence_of, pairs, seed)
    except ValueError:
        first = second = np.empty(0, np.int64)
    sentence_first, sentence_second = draw_pairs([str(i) for i in range(count)], np.arange(count), pairs, seed)
    sentences = {
        key: _baseline(np.concatenate(parts, axis=1)[:, places], sentence_first, sentence_second, np.arange(count))
        for key, parts in pooled.items()
    }
    same = {(pooling, False): found for (pooling, _), found in sentences.items() if pooling not in WITHOUT_SPECIAL}
    return Baselines(_baseline(tokens, first, second, sentence_of), sentences | same)


def measure_sample(run: Callable[[Sequence[str]], Trace], sample: Sequence[str]) -> Baselines:
    """The baselines over a sample of sentences. Its traces are large and used only once, so `run` should keep none.

    Sentences of about one length share a pass: padded to the longest of any 25, a news sentence takes nearly twice its time.
    """
    order = sorted(range(len(sample)), key=lambda place: len(sample[place]))
    passes = ([sample[place] for place in order[start : start + CHUNK]] for start in range(0, len(order), CHUNK))
    return measure(map(run, passes), order=order)


def not_measured(layers: int, poolings: Iterable[Pooling], has_failed: bool = False) -> Baselines:
    """What stands for the baselines of a model of L `layers` that cannot read the sample: all values are NaN.

    `has_failed`: measuring them failed for another reason.

    `centre` is [layer, 1], since the vectors of some poolings are longer than others.
    """
    missing = read_only(np.full(layers + 1, np.nan))
    band = Band(missing, missing, missing, read_only(np.empty((layers + 1, 0), np.float32)))
    none = read_only(np.empty(0, np.int64))
    nothing = Baseline(
        band,
        band,
        read_only(np.full((layers + 1, 1), np.nan, np.float32)),
        0,
        0,
        none,
        none,
        read_only(np.full(layers, np.nan)),
        has_failed,
    )
    return Baselines(nothing, {(pooling, special): nothing for pooling in poolings for special in (True, False)})


def draw_pairs(
    forms: list[str], sentence_of: Sequence[int] | np.ndarray, pairs: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Indices of seeded pairs with different forms and from different sentences; int64 [pair] each.

    No pair is drawn twice, in either order: with few of them, they are all there are. Raises ValueError if there is none.
    """
    numbers = {form: number for number, form in enumerate(dict.fromkeys(forms))}
    form = np.array([numbers[name] for name in forms])
    sentence = np.array(sentence_of)
    random = np.random.default_rng(seed)

    def are_unrelated(both: np.ndarray) -> np.ndarray:
        first, second = both.T
        return np.asarray((form[first] != form[second]) & (sentence[first] != sentence[second]))

    if len(form) <= ALL_PAIRS_OF:
        both = np.column_stack(np.triu_indices(len(form), k=1))
        both = both[are_unrelated(both)]
        found = both[random.permutation(len(both))[:pairs]]
    else:
        found = np.empty((0, 2), np.int64)
        for _ in range(MOST_DRAWS if len(numbers) > 1 and len(np.unique(sentence)) > 1 else 0):
            drawn = np.concatenate([found, random.integers(0, len(form), size=(2 * (pairs - len(found)) + 16, 2))])
            drawn = drawn[are_unrelated(drawn)]
            _, places = np.unique(np.sort(drawn, axis=1), axis=0, return_index=True)
            found = drawn[np.sort(places)][:pairs]
            if len(found) == pairs:
                break
    if not len(found):
        raise ValueError("no two tokens with different forms in different sentences")
    return found[:, 0], found[:, 1]


def sample_of_rows(count: int, most: int, seed: int = SEED) -> Int64:
    """A seeded sample of at most `most` of `count` rows, int64 [row], in their order."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(seed).permutation(count)[:most])


def _baseline(vectors: Float32, first: np.ndarray, second: np.ndarray, sentence_of: np.ndarray) -> Baseline:
    centre = read_only(vectors.mean(axis=1, dtype=np.float64).astype(np.float32))  # [layer, dim]
    rows, places = np.unique(np.concatenate([first, second]), return_inverse=True)  # those that are in a pair
    at_first, at_second = places.reshape(2, -1)
    raw: list[Float64] = []
    centred_cosines: list[Float64] = []
    across: list[float] = []  # of each block
    before: Float64 | None = None  # the directions at the layer below
    for layer in range(vectors.shape[0]):  # one layer at a time: float64 copies stay small
        states = vectors[layer][rows]
        shifted = centred(states[None], centre[layer][None])[0]
        for found, own in ((raw, states), (centred_cosines, shifted)):
            directions = unit(np.asarray(own, np.float64))  # once for each vector, which is in several pairs
            found.append(cosines_of_directions(directions[at_first], directions[at_second]))
            if own is states:
                if before is not None:
                    across.append(_mean_across(before, directions, at_first, at_second))
                before = directions
    return Baseline(
        _band(np.array(raw)),
        _band(np.array(centred_cosines)),
        centre,
        len(first),
        vectors.shape[1],
        read_only(sentence_of[first]),
        read_only(sentence_of[second]),
        read_only(np.array(across)),
    )


def _mean_across(before: Float64, after: Float64, first: np.ndarray, second: np.ndarray) -> float:
    """The mean cosine of one of each pair with its direction `before` a block and the other with that `after` it."""
    both = [cosines_of_directions(before[one], after[other]) for one, other in ((first, second), (second, first))]
    known = np.concatenate(both)
    known = known[~np.isnan(known)]
    return float(known.mean()) if len(known) else float("nan")


def _band(values: Float64) -> Band:
    """Mean and percentiles over pairs, values [layer, pair]; pairs with a missing vector are left out.

    At layer 0 all [CLS] vectors are equal: centred vectors are then missing, and the band there is NaN.
    """
    kept = [row[~np.isnan(row)] for row in values]
    low, mean, high = (
        np.array([statistic(row) if len(row) else np.nan for row in kept])
        for statistic in (lambda row: np.percentile(row, 5), np.mean, lambda row: np.percentile(row, 95))
    )
    return Band(read_only(mean), read_only(low), read_only(high), read_only(values.astype(np.float32)))
