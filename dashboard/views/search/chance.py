"""How good the best hit is: the level of chance of a ranking, measured in the background, and what it says of the hits."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from components.charts.theme import number
from components.numbers import apart
from components.retrieval.search import chance, words
from components.retrieval.search.exact import NEAR
from components.words.unicode_words import words as words_of
from dashboard import caching
from dashboard.ui import messages
from dashboard.ui.wording import counted

if TYPE_CHECKING:
    from components.jobs import IsStopped, Job, ReportProgress
    from components.model.trace import Pooling
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.index.folder import VectorIndex
    from components.retrieval.search.chance import ChanceLevel, Scores
    from components.retrieval.search.exact import Similarity
    from components.retrieval.search.lexical import Ranker
    from components.retrieval.search.splade import SpladeRanker
    from dashboard.views.search.ranked import Ranked
    from dashboard.views.search.request import SearchRequest

TIE = 1e-6  # scores that differ by less are equal: some are in float32
FEW_TEXTS = 50_000  # a level of more texts takes a minute or more, and waits until nobody else works
WHAT_IS_CHANCE = (
    "The level of chance: 95 of 100 queries of two to four words of the corpus, drawn at random, find nothing above it among "
    "the sentences that have none of their words."
)
WHAT_BARS_SHOW = (
    "Bars that do not reach it are grey, though such texts may fit too; the grey band is what 95 of 100 "
    "sentences drawn at random have."
)


def of_vectors(
    request: SearchRequest, index: VectorIndex, layer: int, pooling: Pooling, similarity: Similarity
) -> Job | None:
    """Measures what is found by chance with the vectors of a layer and pooling; None for a corpus that is too large."""
    backend, info = request.backend, index.info

    def scores(queries: Sequence[Sequence[str]], is_stopped: IsStopped) -> Scores:
        typed = tuple(map(" ".join, queries))
        vectors = caching.random_query_vectors(backend, typed, info, is_stopped)[layer, pooling]
        return lambda query: index.engine(layer, pooling).scores(vectors[query], similarity)

    return _measured((info.identity, layer, pooling, similarity), request.corpus, scores)


def of_words(corpus: Corpus, ranker: Ranker, source: str) -> Job | None:
    """The same with a ranking by words that has vectors; `source` names it."""

    def scores(queries: Sequence[Sequence[str]], is_stopped: IsStopped) -> Scores:
        return lambda query: ranker.scores(" ".join(queries[query]))

    return _measured((corpus.content_hash, ranker.title, source), corpus, scores)


def of_splade(corpus: Corpus, ranker: SpladeRanker) -> Job | None:
    """The same with SPLADE."""

    def scores(queries: Sequence[Sequence[str]], is_stopped: IsStopped) -> Scores:
        typed = [" ".join(query) for query in queries]
        of_queries = ranker.for_queries(typed, is_stopped=is_stopped)
        return lambda query: of_queries.scores(typed[query])

    model = (ranker.backend.spec.key, ranker.backend.revision, ranker.max_length)
    return _measured((corpus.content_hash, ranker.title, *model), corpus, scores)


def _measured(
    key: Hashable, corpus: Corpus, scores: Callable[[Sequence[Sequence[str]], IsStopped], Scores]
) -> Job | None:
    texts = corpus.texts
    if len(texts) > chance.MOST_TEXTS:
        return None

    def measure(report_progress: ReportProgress, is_stopped: IsStopped) -> ChanceLevel:
        queries = chance.random_queries(texts)
        of_queries = scores(queries, is_stopped) if queries else (lambda query: np.empty(0))
        return chance.chance_level(queries, texts, of_queries, report_progress, is_stopped)

    return caching.chance_levels().request(
        key,
        f"Measuring chance in {corpus.name}",
        measure,
        lane="statistics" if len(texts) <= FEW_TEXTS else "background",
    )


def finding(ranked: Ranked, corpus: Corpus, query: str, has_half: bool = False) -> str:
    """Whether the hits of a ranking are better than chance, or that this is being measured; empty where nobody can say.

    Nothing below may move with it: a list that `has_half` of the page has a shorter one.
    """
    row = int(ranked.best[0])
    shared = words.common(words.highlighted(query, corpus.texts[row]), corpus.texts[row])
    if ranked.explained.counts_words:
        return shared_words_finding(query, corpus.texts[row])
    if ranked.level is not None:
        known, tied = ranked.scores[np.isfinite(ranked.scores)], _is_tied(ranked.scores, row)
        return finding_of(
            float(ranked.scores[row]),
            _different(corpus, is_above(ranked.scores, ranked.level.level)),
            None if ranked.hits_only else len(corpus) - corpus.report.duplicates,
            ranked.level.level,
            () if has_half else shared,
            not has_half and set(words_of(query)).isdisjoint(words_of(corpus.texts[row])),
            _different(corpus, tied),
            _nearest(known, ranked.level.level),
            sum(corpus.texts[other] == corpus.texts[row] for other in np.flatnonzero(tied)),
        )
    if ranked.is_measured_now:
        best = number(float(ranked.scores[row]), 2)
        return f"The first hit has {best}. Whether that is more than chance is being measured …"
    return ""


def _different(corpus: Corpus, is_counted: Any) -> int:
    """How many different texts stand on the sentences that are counted."""
    rows = np.flatnonzero(is_counted)
    return len({corpus.texts[row] for row in rows}) if corpus.report.duplicates else len(rows)


def _nearest(scores: Any, level: float) -> list[float]:
    """The lowest score above the level of chance and the highest one below it, where there is one."""
    is_higher = is_above(scores, level)
    higher, lower = scores[is_higher], scores[~is_higher]
    return [*([float(higher.min())] if len(higher) else []), *([float(lower.max())] if len(lower) else [])]


def tied_first(scores: Any, row: int) -> int:
    """How many sentences share the score of the first hit, sentence `row`, itself included."""
    return int(np.count_nonzero(_is_tied(scores, row)))


def _is_tied(scores: Any, row: int) -> Any:
    best = float(scores[row])
    return np.isfinite(scores) & (np.abs(np.where(np.isfinite(scores), scores, 0) - best) <= TIE * max(1.0, abs(best)))


def unknown_finding(scores: Any, row: int) -> str:
    """In place of whether hits are better than chance, where the model does not know the query's language."""
    tied = tied_first(scores, row)
    shown = number(float(scores[row]), 2)
    first = f"The first {tied:,} tie at {shown}." if tied > 1 else f"The first has {shown}."
    return f"**These scores say nothing:** the model does not know the language of the query. {first}"


def is_above(scores: Any, level: float) -> Any:
    """Whether a score, or each of many, is more than a level by more than float32 scores of equal vectors differ."""
    return scores > level + NEAR * max(1.0, abs(level))


def finding_of(
    best: float,
    above: int,
    total: int | None,
    level: float,
    shared: Sequence[str] = (),
    has_none: bool = False,
    tied: int = 1,
    near: Sequence[float] = (),
    rows: int = 1,
) -> str:
    """What the best hit's score says, beside what random words find: short enough for one line with the ranking's name.

    `above` sentences of `total` (None: only the hits have scores) are above the `level` of chance; `shared` are the words
    with a meaning of their own that the best hit and the query share, and `has_none` says that they share no word at all.
    `tied` sentences share the first place. Equal sentences count once, and the first stands on `rows`. The level is written
    so that it reads otherwise than the scores `near` it.
    """
    first, limit, *_ = apart(best, level, *near)
    first += f" ({rows:,} rows)" if rows > 1 and tied == 1 else ""
    at_first = f"the first {tied:,} hits tie at" if tied > 1 else "the first hit has"
    if not is_above(best, level):
        but = f" It has the query's {_quoted(shared)}, though." if shared else ""
        return f"**Nothing close:** {at_first} {first}, and random words reach {limit}.{but}"
    count = f"At least {counted(above, 'sentence')}" if total is None else f"{above:,} of {counted(total, 'sentence')}"
    verb = "is" if above == 1 else "are"
    has = f", has {_quoted(shared)}" if shared else ", has no word of the query" if has_none else ""
    if tied > 1:
        return (
            f"**{count} {verb} closer than chance:** the first {tied:,} tie at {first}, and random words reach {limit}."
        )
    if not has:
        return f"**{count} {verb} closer than chance:** the first has {first}, and random words reach {limit}."
    return f"**{count} {verb} closer than chance:** the first, at {first}{has}; random words reach {limit}."


def _quoted(shared: Sequence[str]) -> str:
    """The first two words, as they stand in a sentence."""
    return " and ".join(f"“{messages.escape(word)}”" for word in shared[:2])


def shared_words_finding(query: str, text: str) -> str:
    """How many of the query's words the first hit of a ranking by words has."""
    asked = list(dict.fromkeys(words_of(query)))
    found = set(asked) & set(words_of(text))
    if len(found) == len(asked):
        what = "the query's word" if len(asked) == 1 else f"all {len(asked)} words of the query"
        return f"**The first hit has {what}.**"
    missing = [f"“{messages.escape(word)}”" for word in asked if word not in found]
    more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
    first = f"**The first hit has {len(found)} of the query's {counted(len(asked), 'word')}:**"
    return f"{first} not {', '.join(missing[:3])}{more}."
