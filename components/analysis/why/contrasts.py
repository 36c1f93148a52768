"""How similar a model finds pairs whose meaning differs, compared with paraphrases, at every layer and pooling.

A minimal pair differs in a word or a few, so that its meaning differs (such pairs are known from BLiMP, Warstadt et al.
2020, and from the contrast sets of Gardner et al. 2020). A paraphrase says the same in other words. A cosine that followed
meaning would put the paraphrases above the minimal pairs; one that follows words puts them below.

`separation` says which it is, in one number that does not depend on the scale of the cosines: draw a paraphrase and a
minimal pair, and ask how often the paraphrase has the higher cosine. That share is the area under the ROC curve, and
Mann and Whitney's statistic (Hanley and McNeil 1982): 1 if every paraphrase is above every minimal pair, 0.5 by chance.

What it does not show: that a model knows nothing of the difference. A sentence vector can hold what its cosine hardly
shows (see `probes`). And the comparison is a hard one on purpose: minimal pairs share nearly all their words,
paraphrases few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from components.analysis.why import common_runs
from components.arrays import Float32, Float64, Int64, cosine, read_only
from components.jobs import IsStopped, ReportProgress, Stopped, part_of
from components.words.exchanges import exchange
from components.words.unicode_words import joined, spans
from components.words.unicode_words import words as words_of

Embed = Callable[[Sequence[str], ReportProgress, IsStopped], Float32]  # texts to [layer, pooling, text, dim]
PAIRS_AT_ONCE = 1_024  # embedded together
RESAMPLES = 1_000
_RESAMPLES_AT_ONCE = 50  # of 10,000 pairs each: some megabytes
_DIGITS = 12  # cosines of equal vectors differ in their last digits: they must tie


@dataclass(frozen=True, eq=False)
class PairCosines:
    """Cosines of pairs, and of sentences that do not belong together."""

    of_pairs: Float64  # [layer, pooling, pair], read-only
    unrelated: Float64  # [layer, pooling, pair]: the pair's first sentence with the second one of its partner
    partners: Int64  # [pair]: the pair itself where there is no other one; its cosine is then NaN

    @property
    def nbytes(self) -> int:
        return self.of_pairs.nbytes + self.unrelated.nbytes + self.partners.nbytes


@dataclass(frozen=True)
class Separation:
    """How often a paraphrase has the higher cosine, 0..1, with its 95 % interval."""

    value: float
    low: float
    high: float


def pair_cosines(
    embed: Embed,
    first: Sequence[str],
    second: Sequence[str],
    seed: int = 0,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> PairCosines:
    """The cosines of the pairs (first[i], second[i]), embedded in blocks of which only the cosines are kept.

    Partners are drawn with the seed inside a block. Raises ValueError for no pair, and Stopped.
    """
    count = len(first)
    if not count:
        raise ValueError("no pair to embed")
    blocks = np.array_split(np.arange(count), -(-count // PAIRS_AT_ONCE))
    partners = np.arange(count)
    pair_parts, unrelated_parts = [], []
    for block in blocks:
        start, end = int(block[0]), int(block[-1]) + 1
        order = np.random.default_rng(seed + start).permutation(len(block))
        shifted = np.empty(len(block), np.int64)
        shifted[order] = np.roll(order, 1)  # no pair is its own partner, unless it is alone
        partners[start:end] = start + shifted
        texts = [*first[start:end], *second[start:end]]
        vectors = embed(texts, part_of(progress, 2 * start, 2 * count), is_stopped)
        one, other = vectors[:, :, : len(block)], vectors[:, :, len(block) :]
        pair_parts.append(cosine(one, other))
        unrelated = cosine(one, other[:, :, shifted])
        alone = [first[start + row] == first[start + partner] for row, partner in enumerate(shifted.tolist())]
        unrelated[:, :, np.array(alone)] = np.nan
        unrelated_parts.append(unrelated)
    return PairCosines(
        read_only(np.concatenate(pair_parts, axis=-1)),
        read_only(np.concatenate(unrelated_parts, axis=-1)),
        read_only(partners),
    )


def separation(paraphrases: Float64, changed: Float64, seed: int = 0, resamples: int = RESAMPLES) -> Separation:
    """How often a paraphrase's cosine is higher than a changed pair's, of all choices of one each; a tie counts half.

    The interval is a percentile bootstrap that draws both kinds of pairs anew (Efron 1979). Raises ValueError where there
    is none of a kind.
    """
    return separations(paraphrases[None], changed[None], seed, resamples)[0]


def separations(
    paraphrases: Float64,
    changed: Float64,
    seed: int = 0,
    resamples: int = RESAMPLES,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> tuple[Separation, ...]:
    """`separation` at each layer, from cosines [layer, pair]; all layers share the pairs that are drawn. Raises Stopped."""
    sizes = paraphrases.shape[-1], changed.shape[-1]
    if not all(sizes):
        raise ValueError(f"{sizes[0]} paraphrases and {sizes[1]} changed pairs: at least one each is needed")
    values = shares_above(paraphrases, changed)
    numbers = np.random.default_rng(seed)
    drawn = [numbers.multinomial(size, np.full(size, 1 / size), size=resamples) for size in sizes]
    found = []
    for layer, value in enumerate(values.tolist()):
        if is_stopped():
            raise Stopped
        order, below, up_to = _ranks(paraphrases[layer], changed[layer])
        shares = np.empty(resamples)
        for start in range(0, resamples, _RESAMPLES_AT_ONCE):
            block = slice(start, start + _RESAMPLES_AT_ONCE)
            # How many of the drawn changed pairs are among the k lowest, [resample, k].
            lowest = np.pad(np.cumsum(drawn[1][block][:, order], axis=1), ((0, 0), (1, 0)))
            wins = (lowest[:, below] + lowest[:, up_to]) / 2  # [resample, paraphrase]
            shares[block] = (drawn[0][block] * wins).sum(axis=1) / (sizes[0] * sizes[1])
        low, high = np.quantile(shares, (0.025, 0.975))
        found.append(Separation(value, float(low), float(high)))
        progress(layer + 1, len(values))
    return tuple(found)


def shares_above(paraphrases: Float64, changed: Float64) -> Float64:
    """How often a paraphrase's cosine is higher, float64 [layer], from cosines [layer, pair]; at least one pair of each."""
    one, other = np.round(paraphrases, _DIGITS)[..., None], np.round(changed, _DIGITS)[:, None]  # [layer, one, other]
    return np.asarray(((one > other).mean(axis=(1, 2)) + (one >= other).mean(axis=(1, 2))) / 2)


def _ranks(paraphrases: Float64, changed: Float64) -> tuple[Int64, Int64, Int64]:
    """The order of the changed pairs [changed], and how many lie below each paraphrase, and below or at it [paraphrase]."""
    one, other = np.round(paraphrases, _DIGITS), np.round(changed, _DIGITS)
    order = np.argsort(other, kind="stable")
    ordered = other[order]
    return order, np.searchsorted(ordered, one, side="left"), np.searchsorted(ordered, one, side="right")


def changed_spans(first: str, second: str) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """The words in which two texts differ: for each text the spans (first character, last + 1) of its own words.

    Words are those of components.words.unicode_words, however they are spelt; those that both texts share in the same order
    are equal, and where two runs of the same words have changed places, these two differ. In a script without spaces the
    pairs of characters that differ are one span where they overlap.
    """
    words = [list(spans(text)) for text in (first, second)]
    one, other = ([word for word, _, _ in own] for own in words)
    differences = _differing(exchange(one, other) or common_runs.steps(one, other))
    found = [
        joined(own[row][1:] for difference in differences for row in range(*difference[side]))
        for side, own in enumerate(words)
    ]
    return found[0], found[1]


def changed_forms(first: str, second: str) -> tuple[str, str]:
    """The words in which two texts differ, folded, as one form for each text.

    Where one text only adds words, the word before (or after, at the start) belongs to both forms: "is", "is not".
    """
    words = [words_of(text) for text in (first, second)]
    differences = _differing(common_runs.steps(*words))
    forms = [
        [own[row] for difference in differences for row in range(*difference[side])] for side, own in enumerate(words)
    ]
    if differences and not all(forms):
        (start, end), (other_start, other_end) = differences[0]
        if start > 0 and other_start > 0:
            forms = [[words[0][start - 1], *forms[0]], [words[1][other_start - 1], *forms[1]]]
        elif end < len(words[0]) and other_end < len(words[1]):
            forms = [[*forms[0], words[0][end]], [*forms[1], words[1][other_end]]]
    return " ".join(forms[0]), " ".join(forms[1])


def _differing(steps: Sequence[common_runs.Step]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where two lists of words differ: for each place its first word and its last + 1, in each of the two."""
    return [((a, b), (c, d)) for name, a, b, c, d in steps if name != "equal"]
