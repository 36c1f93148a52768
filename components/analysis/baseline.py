"""How similar two unrelated tokens are: the yardstick beside every cosine.

Hidden states of BERT-family encoders fill a narrow cone, so that any two tokens have a high cosine, more so
in some layers than in others (Ethayarajh 2019). The yardstick: seeded pairs of non-special tokens with
different forms from different sentences of a fixed sample, with mean and 5-95 % band at each layer. The
sample's mean vector, subtracted from all vectors, takes the common direction out (centred cosine).

It is an estimate from one small English sample: text of another language or field has another baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from components.analysis.pooling import Pooling, pool
from components.analysis.similarity import centred
from components.arrays import Float32, Float64, cosine, read_only
from components.model.trace import Trace

SEED = 20_240
PAIRS = 2_000
CHUNK = 25  # sentences a pass: others wait for a pass to end, and this one is short


@dataclass(frozen=True, eq=False)
class Band:
    """Cosines of unrelated pairs: float64 [layer 0..L] each."""

    mean: Float64
    low: Float64  # 5th percentile
    high: Float64  # 95th percentile


@dataclass(frozen=True, eq=False)
class Yardstick:
    """Bands and mean vectors of one kind of vector (tokens, or sentences by a pooling)."""

    raw: Band
    centred: Band
    centre: Float32  # mean vector of the sample, [layer, dim]
    pairs: int
    sample: int  # vectors in the sample


@dataclass(frozen=True, eq=False)
class Baseline:
    """The yardsticks of one model."""

    tokens: Yardstick
    sentences: dict[tuple[Pooling, bool], Yardstick]  # (pooling, special tokens included)


def measure(traces: Iterable[Trace], pairs: int = PAIRS, seed: int = SEED) -> Baseline:
    """The baseline over the sentences of some traces of one model. Raises ValueError for fewer than two sentences.

    The tokens' vectors are copied once, without padding: memory is tokens x layers x dim x 4 bytes.
    """
    vectors: list[Float32] = []  # of non-special tokens, [layer, token, dim] for each trace
    forms: list[str] = []
    owner: list[int] = []
    pooled: dict[tuple[Pooling, bool], list[Float32]] = {}
    count = 0
    for trace in traces:
        keep = ~trace.special_mask  # [sentence, token]
        vectors.append(trace.hidden_states[:, keep])  # [layer, kept, dim]
        for row, sentence in enumerate(trace.sentences):
            forms += [token.piece.lower() for token in sentence.tokens if not token.special]
            owner += [count + row] * int(keep[row].sum())
        count += len(trace.sentences)
        for pooling in trace.poolings:
            for special in (True, False):
                pooled.setdefault((pooling, special), []).append(pool(trace, pooling, special))
    if count < 2:
        raise ValueError("a baseline needs at least two sentences")
    tokens = np.concatenate(vectors, axis=1)  # [layer, token, dim]
    first, second = draw_pairs(forms, owner, pairs, seed)
    sentence_first, sentence_second = draw_pairs([str(i) for i in range(count)], list(range(count)), pairs, seed)
    return Baseline(
        _yardstick(tokens, first, second),
        {
            key: _yardstick(np.concatenate(parts, axis=1), sentence_first, sentence_second)
            for key, parts in pooled.items()
        },
    )


def measure_sample(run: Callable[[Sequence[str]], Trace], sample: Sequence[str]) -> Baseline:
    """The baseline over a sample of sentences. Its traces are large, and nobody looks at them again: `run` keeps none."""
    return measure(run(sample[start : start + CHUNK]) for start in range(0, len(sample), CHUNK))


def draw_pairs(forms: list[str], owner: list[int], pairs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of seeded pairs with different forms and different owners; int64 [pair] each.

    Raises ValueError when no such pair exists. Pairs are drawn with replacement.
    """
    numbers = {form: number for number, form in enumerate(dict.fromkeys(forms))}
    form = np.array([numbers[name] for name in forms])
    home = np.array(owner)
    if len(numbers) < 2 or len(set(owner)) < 2:
        raise ValueError("no two tokens with different forms in different sentences")
    random = np.random.default_rng(seed)
    parts: list[np.ndarray] = []
    missing = pairs
    for _ in range(1_000):
        drawn = random.integers(0, len(form), size=(2 * missing + 16, 2))
        good = (form[drawn[:, 0]] != form[drawn[:, 1]]) & (home[drawn[:, 0]] != home[drawn[:, 1]])
        parts.append(drawn[good][:missing])
        missing -= len(parts[-1])
        if missing == 0:
            both = np.concatenate(parts)
            return both[:, 0], both[:, 1]
    raise ValueError("no two tokens with different forms in different sentences")


def _yardstick(vectors: Float32, first: np.ndarray, second: np.ndarray) -> Yardstick:
    centre = read_only(vectors.mean(axis=1, dtype=np.float64).astype(np.float32))  # [layer, dim]
    raw, moved = [], []
    for layer in range(vectors.shape[0]):  # one layer at a time: float64 copies stay small
        states = vectors[layer]
        shifted = centred(states[None], centre[layer][None])[0]
        raw.append(cosine(states[first], states[second]))
        moved.append(cosine(shifted[first], shifted[second]))
    return Yardstick(_band(np.array(raw)), _band(np.array(moved)), centre, len(first), vectors.shape[1])


def _band(values: Float64) -> Band:
    """Mean and percentiles over pairs, values [layer, pair]; pairs with a missing vector are left out.

    At layer 0 all [CLS] vectors are the same: centred, they are missing, and the band there is NaN.
    """
    kept = [row[~np.isnan(row)] for row in values]
    low, mean, high = (
        np.array([statistic(row) if len(row) else np.nan for row in kept])
        for statistic in (
            lambda row: np.percentile(row, 5),
            np.mean,
            lambda row: np.percentile(row, 95),
        )
    )
    return Band(read_only(mean), read_only(low), read_only(high))
