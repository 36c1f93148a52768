"""One ranking of the corpus as the Search page shows it, and how long the bars of its scores are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from components.analysis.similarity import calibration
from components.charts.theme import number
from components.retrieval.rankings.ranking import Ranking
from components.retrieval.search.exact import SAME, Hits
from components.shown_code.code import UNWRITTEN, NoCode

if TYPE_CHECKING:
    from components.analysis.similarity.calibration import Calibration
    from components.jobs import Job
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.search.chance import ChanceLevel
    from components.retrieval.search.score_split import ScoreSplit
    from components.shown_code.code import AnyCode


@dataclass(frozen=True)
class Scale:
    """Which scores have an empty bar and a full one; never the best of the list alone, which need not be good."""

    low: float
    high: float
    names: tuple[str, str]  # of both ends, as they stand above the bars; empty where no bar has a length
    note: str  # what they are, a sentence

    def length(self, score: float) -> float:
        """The length of a score's bar, 0 to 1."""
        return float(min(1.0, max(0.0, (score - self.low) / ((self.high - self.low) or 1.0))))


COSINES = Scale(0.0, 1.0, ("0", "1"), "Bars show the cosine from 0 to 1; below 0 there is none.")


def up_to(best: float, level: float | None) -> Scale:
    """Of scores without an end of their own: from 0 to the best one, or to the level of chance if that is higher."""
    if best <= 0 and (level is None or level <= 0):
        note = f"A bar would begin at 0, and no hit has more than that: the first one has {number(best, 2)}."
        return Scale(0.0, 1.0, ("", ""), note)
    is_level = level is not None and level >= best
    high = max(best, level or 0.0)
    what = "the level of chance" if is_level else "the best hit"
    return Scale(
        0.0, high, ("0", number(high, 2)), f"Bars show the score from 0 to {number(high, 2)}, which is that of {what}."
    )


TIMES_MORE = (1, 10, 100)  # the hits are asked of an engine that approximates, where texts are repeated


def different_hits(search: Callable[[int], Hits], corpus: Corpus, k: int) -> Hits:
    """The hits of a `search` for a number of rows as those of k different texts, each by its first row.

    Of an engine that approximates, which cannot be told to look at some rows alone; fewer than k where it finds no more.
    """
    if not corpus.report.duplicates:
        return search(k)
    for times in TIMES_MORE:
        found = search(times * k + 1)
        rows, places = np.unique(corpus.first_rows[found.indices[0]], return_index=True)
        if len(rows) > k:
            break
    order = np.argsort(places)
    rows, scores = rows[order], found.scores[0][places[order]]
    last = float(scores[:k][-1]) if len(scores) else 0.0
    is_tied = np.abs(scores - last) <= SAME * max(1.0, abs(last))
    tied, shown = (np.array([np.count_nonzero(part)]) for part in (is_tied, is_tied[:k]))
    return Hits(rows[None, :k], scores[None, :k], tied, shown)


def level_of(job: Job | None) -> ChanceLevel | None:
    """What a job has measured; None where that is not known, or not yet."""
    level: ChanceLevel | None = job.result if job is not None and job.finished.is_set() and job.error is None else None
    return level if level is not None and level.is_known else None


@dataclass(frozen=True)
class Explained:
    """How a ranking says why a sentence is a hit: one of these."""

    split: Callable[[int], ScoreSplit] | None = None  # the number of a sentence to its score as a sum
    code: Callable[[int], AnyCode | NoCode] | None = None  # of the split
    # The numbers of hits, and the name of their list, to the job that finds the words which carry each one's score: a dict
    # of number to shading.Shaded. None where the words are not weighed, or there is no job.
    shaded: Callable[[Sequence[int], str], Job | None] | None = None
    counts_words: bool = False  # whether it is a sum over words that both texts have, and nothing else
    is_max_sim: bool = False
    is_splade: bool = False
    said: str = ""  # what it is, where its score is no sum


@dataclass(frozen=True, eq=False)
class Ranked(Ranking):
    """A ranking of the corpus, and how it is shown and explained."""

    calibration: Calibration | None = None  # of its cosines, where they are shown as percentiles
    code: AnyCode | NoCode = UNWRITTEN
    code_of_all: AnyCode | NoCode = UNWRITTEN  # of the scores of all sentences
    hits_only: bool = False  # whether only the hits have scores, and not every sentence was compared
    note: str = ""  # what it is, where that is not the usual note; {count} stands for the sentences it ranks
    scale: Scale | None = None  # of its bars, where the score has two ends
    is_open_ended: bool = (
        False  # whether the score has a zero but no end: its bars reach as far as its hits and chance do
    )
    chance: Job | None = None  # measures what is found by chance; its result is a ChanceLevel
    explained: Explained = Explained()
    finding: str = ""  # its own, in place of whether its hits are better than chance
    # Of a score that is a sum: a sentence's terms as they are written, and the share of the first one; None where it has none.
    terms: Callable[[int], tuple[tuple[str, ...], float | None]] | None = None
    # As they were when this was made: the job may end while the page is drawn, and all of the page shall say the same.
    level: ChanceLevel | None = field(
        init=False
    )  # what is found by chance; None where that is not measured, or not yet
    is_measured_now: bool = field(init=False)  # whether the level was still being measured

    def __post_init__(self) -> None:
        is_measured_now = self.chance is not None and not self.chance.finished.is_set()
        object.__setattr__(self, "is_measured_now", is_measured_now)
        object.__setattr__(self, "level", None if is_measured_now else level_of(self.chance))

    def share(self, score: float) -> float | None:
        """The share of pairs that are less similar; None where the score is shown as it is."""
        if self.calibration is None or not self.calibration.is_known:
            return None
        return float(self.calibration.shares(score))

    def shown(self, score: float) -> str:
        """A score as the list writes it: a number, or a percentile."""
        share = self.share(score)
        digits = 3 if self.terms is None else 4  # two ranks of reciprocal ranks differ by less than 0.001
        return number(score, digits) if share is None else calibration.percentile(share)

    def bar(self, score: float) -> float | None:
        """The length of a score's bar, 0 to 1; None where there are no bars."""
        share = self.share(score)
        if share is not None:
            return share
        scale = self.bars
        return None if scale is None else scale.length(score)

    @property
    def bars(self) -> Scale | None:
        """The scale of the bars; None where the score has no zero to draw one from."""
        if not self.is_open_ended or not len(self.best):
            return self.scale
        return up_to(float(self.hit_scores[0]), None if self.level is None else self.level.level)
