"""How good a best hit is by chance: what queries of random words find in a corpus that has nothing to say about them.

A cosine of 0.4 is a good hit for one model, layer and corpus and a bad one for another, and the more texts there are, the
higher the best of them is even for nonsense: no fixed threshold is right. So the corpus is searched with queries of two to
four of its own words, drawn by lot from its distinct words that carry meaning. The texts that have one of the drawn words do
not count, because finding the text of a word is a hit and no chance. What the best hit of 95 of 100 such queries stays under
is the level of chance; what 95 of 100 texts drawn by lot stay under is that of unrelated texts.

Why with the corpus's words and without their texts: on the 630 demonstration texts (last layer, mean, cosine) this gives 0.43,
and 0.44 with other draws, below which 5 to 6 in 100 headlines have their own text. With the texts of the words it is 0.49 and
hides 9 in 100; pieces of the model's vocabulary give 0.41 and 3, but are no words in many models, and of no language in those
of many. For 24 of the texts the three are 0.31, 0.49 and 0.28.

What it does not show: whether a hit is relevant. Texts on one subject lie above the level too, and a short or unusual query can
lie below it and be answered. One query in twenty lies above it by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from components.arrays import Float64, read_only
from components.jobs import IsStopped, ReportProgress, Stopped
from components.retrieval.search.words import content_words
from components.words.unicode_words import words

QUERIES = 200
FEWEST_WORDS, MOST_WORDS = 2, 4  # of a query
SHARE = 0.95  # of the queries whose best hit stays under the level
MOST_TEXTS = 500_000  # of a corpus; each query is compared with all of them
READ_TEXTS = 20_000  # from which words are drawn
UNRELATED_TEXTS = 50  # compared with each query
SEED = 0
Scores = Callable[[int], np.ndarray]  # the number of a query to the scores of all sentences


@dataclass(frozen=True, eq=False)
class ChanceLevel:
    """What queries of random words find."""

    best: Float64  # [query]: the score of the best text with none of the query's words, lowest first; empty without one
    others: Float64  # [query x text]: the scores of texts drawn by lot, lowest first

    @property
    def is_known(self) -> bool:
        """Whether any query had a text with none of its words."""
        return len(self.best) > 0

    @property
    def level(self) -> float:
        """What the best hit of 95 of 100 queries stays under; NaN if it is not known."""
        return float(np.quantile(self.best, SHARE)) if self.is_known else float("nan")

    @property
    def median(self) -> float:
        """What the best hit of half of the queries stays under; NaN if it is not known."""
        return float(np.quantile(self.best, 0.5)) if self.is_known else float("nan")

    @property
    def unrelated(self) -> float:
        """What 95 of 100 texts drawn by lot stay under; NaN if it is not known."""
        return float(np.quantile(self.others, SHARE)) if len(self.others) else float("nan")


def random_queries(texts: Sequence[str], count: int = QUERIES, seed: int = SEED) -> tuple[tuple[str, ...], ...]:
    """The words of `count` queries, drawn by lot from those of the corpus; none for a corpus of fewer than MOST_WORDS words.

    The same corpus gives the same queries. Of a large one, a seeded sample of the texts is read.
    """
    draw = np.random.default_rng(seed)
    read = range(len(texts))
    chosen = read if len(texts) <= READ_TEXTS else draw.choice(len(texts), READ_TEXTS, replace=False)
    known = sorted(frozenset().union(*(content_words(texts[int(row)]) for row in chosen)))
    if len(known) < MOST_WORDS:
        return ()
    sizes = draw.integers(FEWEST_WORDS, MOST_WORDS + 1, count)
    return tuple(tuple(known[row] for row in draw.choice(len(known), size, replace=False)) for size in sizes)


def chance_level(
    queries: Sequence[Sequence[str]],
    texts: Sequence[str],
    scores: Scores,
    report_progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
    seed: int = SEED,
) -> ChanceLevel:
    """The level of chance of a ranking. `queries` are the words of each, `scores(query)` those of all texts, [text].

    Equal texts are one text. Raises Stopped.
    """
    draw = np.random.default_rng(seed)
    best, others = [], []
    for number, query in enumerate(queries):
        if is_stopped():
            raise Stopped
        of_all = np.asarray(scores(number))
        found = next(_without(frozenset(query), of_all, texts), None)
        if found is not None:
            best.append(found)
        others.append(of_all[draw.integers(0, len(texts), min(UNRELATED_TEXTS, len(texts)))])
        report_progress(number + 1, len(queries))
    unrelated = np.concatenate(others) if others else np.empty(0)
    return ChanceLevel(read_only(np.sort(np.array(best, np.float64))), read_only(np.sort(unrelated.astype(np.float64))))


def _without(query: frozenset[str], scores: np.ndarray, texts: Sequence[str]) -> Iterator[float]:
    """The scores of the texts with none of a query's words, best first."""
    first = min(64, len(scores))
    near = np.argpartition(-scores, first - 1)[:first]
    yield from _scores_without(query, near[np.argsort(-scores[near], kind="stable")], scores, texts)
    # All of the nearest have one of the words: the others, one after the other.
    order = np.argsort(-scores, kind="stable")
    yield from _scores_without(query, order[first:], scores, texts)


def _scores_without(
    query: frozenset[str], rows: np.ndarray, scores: np.ndarray, texts: Sequence[str]
) -> Iterator[float]:
    for row in rows:
        if query.isdisjoint(words(texts[int(row)])):
            yield float(scores[row])
