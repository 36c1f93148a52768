"""What failed queries have in common: traits by simple rules that anyone can check.

A trait is no cause by itself. It gives a hint, not a proof: a rival that shares more words with the query may lead for another
reason, and a query can have several traits or none. How often a trait holds for queries that do not fail, with the second
text as the rival, says how much the hint is worth: `telling` compares the two. The edits of a query
(components.retrieval.failures.edits) are the test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components.arrays import cosine, read_only
from components.jobs import IsStopped, ReportProgress, Stopped
from components.retrieval.failures.failed_queries import Placing, SearchedCorpus
from components.retrieval.failures.hubness import Hubness
from components.retrieval.search.exact import ExactSearch
from components.retrieval.search.words import content_words
from components.words.forms import forms_in
from components.words.unicode_words import words

DUPLICATE_COSINE, DUPLICATE_WORDS = 0.95, 0.8
OFTEN = 0.9  # of all texts are found less often
# Each trait, with its rule.
CAUSES: dict[str, str] = {
    "near duplicate": f"The rival nearly equals the right text: their cosine is at least {DUPLICATE_COSINE}, or at least "
    f"{100 * DUPLICATE_WORDS:.0f} % of the words of both are in both.",
    "hub": "The rival is a hub: so many queries find it among their first 10 hits that their number lies more than two "
    "standard deviations above the mean.",
    "often found": "More queries find the rival among their first 10 hits than nine tenths of all texts.",
    "words": "The rival has a word of the query, in any of its regular forms, that the right text does not have, function "
    "words apart.",
    "no shared word": "The right text shares no word with the query, also in no other regular form, function words apart.",
    "truncated": "The query or the right text is longer than the maximum length, so that the model did not read its end.",
    "other": "None of these rules holds.",
}
_CHECKED = 256  # failures between two looks at `is_stopped`


@dataclass(frozen=True, eq=False)
class Causes:
    """Which traits each query has."""

    names: tuple[str, ...]  # the keys of CAUSES
    holds: NDArray[np.bool_]  # [cause, failure]

    def of(self, name: str) -> NDArray[np.bool_]:
        """[failure]: whether a trait holds."""
        return np.asarray(self.holds[self.names.index(name)])

    def of_failure(self, number: int) -> tuple[str, ...]:
        """The traits of one failure."""
        return tuple(name for name, held in zip(self.names, self.holds[:, number], strict=True) if held)


def shared_content(query: str, text: str) -> frozenset[str]:
    """The words of a query, other than function words, that a text has in some regular form, in lower case."""
    own = content_words(text)
    return frozenset(word for word in content_words(query) if word in own or forms_in(word, own))


def are_near_duplicates(first: str, second: str, similarity: float) -> bool:
    """Whether two texts with this cosine nearly equal each other."""
    a, b = set(words(first)), set(words(second))
    return similarity >= DUPLICATE_COSINE or (bool(a | b) and len(a & b) >= DUPLICATE_WORDS * len(a | b))


@dataclass(frozen=True)
class Share:
    """How often one trait holds."""

    name: str
    failed: int  # queries that fail and have it
    failures: int  # queries that fail
    others: float  # its share of the queries that do not fail, 0 to 1

    @property
    def difference(self) -> float:
        """How much more often it holds for failures, as a share."""
        return self.failed / self.failures - self.others


def telling(failed: Causes, others: Causes) -> tuple[Share, bool] | None:
    """The trait that failures have most often beyond the queries that do not fail, and whether by more than chance.

    More than chance: the difference of the two shares is larger than twice its standard error. None without failures or
    without queries to compare with, and where no rule holds for any failure.
    """
    failures, found = failed.holds.shape[1], others.holds.shape[1]
    if not failures or not found:
        return None
    shares = [
        Share(name, int(failed.of(name).sum()), failures, float(others.of(name).mean()))
        for name in failed.names
        if name != "other" and failed.of(name).any()
    ]
    if not shares:
        return None
    best = max(shares, key=lambda share: share.difference)
    both = (best.failed + best.others * found) / (failures + found)
    error = float(np.sqrt(both * (1 - both) * (1 / failures + 1 / found)))
    return best, best.difference > 2 * error


def causes_of(
    placings: Sequence[Placing],
    corpus: SearchedCorpus,
    engine: ExactSearch,
    hubness: Hubness,
    is_truncated: tuple[Sequence[bool], Sequence[bool]],
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Causes:
    """The traits of each failure, or those of queries that do not fail.

    `hubness` is of the different texts, as `corpus.firsts` has them.
    `is_truncated` says for each query, and for each text, whether it is truncated.

    `progress(done, total)` counts queries. Raises Stopped.
    """
    truncated_queries, truncated_texts = is_truncated
    names, often = tuple(CAUSES), float(np.quantile(hubness.counts, OFTEN))
    holds = np.zeros((len(names), len(placings)), bool)
    for number, item in enumerate(placings):
        if number % _CHECKED == 0:
            progress(number, len(placings))
            if is_stopped():
                raise Stopped
        of_query = corpus.number_of[item.row]
        query = corpus.queries.texts[of_query]
        right, rival = corpus.documents.texts[item.row], corpus.documents.texts[item.rival]
        rival_place = int(corpus.place_of[item.rival])
        with_right, with_rival = shared_content(query, right), shared_content(query, rival)
        between = float(cosine(engine.vectors[item.row], engine.vectors[item.rival]))
        found = {
            "near duplicate": are_near_duplicates(right, rival, between),
            "hub": hubness.is_hub(rival_place),
            "often found": bool(hubness.counts[rival_place] > often),
            "words": not with_rival <= with_right,
            "no shared word": not with_right,
            "truncated": bool(truncated_queries[of_query] or truncated_texts[item.row]),
        }
        holds[:, number] = [found.get(name, not any(found.values())) for name in names]
    return Causes(names, read_only(holds))
