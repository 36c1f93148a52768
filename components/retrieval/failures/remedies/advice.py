"""One sentence of advice: the cheapest remedy that is not worse than the best one, if the data decide.

Each half of the queries advises by itself, and has never seen the other. Within it the options of every remedy are chosen once
more on one half and measured on the other, so that no remedy looks better for having many options. The best remedy is that with
the highest Recall@1. If the interval of its change does not lie above zero, the half advises nothing. Else it advises the
cheapest remedy whose own change lies above zero and than which the best one is not better: the paired interval of their
difference does not lie above zero.

Where both halves advise the same, it is the advice. Where they differ, the data do not decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components.arrays import Int64
from components.numbers import apart, counted, enumerated
from components.retrieval.evaluation.chance import paired
from components.retrieval.failures.remedies.folds import Options, RemedyRanking, halves, measured
from components.retrieval.failures.traits import LEAST, TraitShare, named_together, too_few


@dataclass(frozen=True)
class Advice:
    """What the data advise; see the module."""

    halves: tuple[str | None, str | None]  # the remedy that each half advises, None for none
    sentence: str
    remedy: str | None = None  # that the sentence advises


def advised(now: Int64, remedies: Mapping[str, Options], queries: Sequence[str], seed: int = 0) -> str | None:
    """The remedy that these queries advise, by themselves; None where none helps.

    `remedies` are in the order of their costs, the cheapest first, with the ranks [query] of their options.
    """
    if len(now) < 2 or not remedies:
        return None
    first = halves(queries, seed)
    results = {name: measured(now, options, first) for name, options in remedies.items()}
    best = max(results.values(), key=lambda result: result.recall)
    if not best.helps:
        return None
    return next(name for name, result in results.items() if result.helps and not _is_better(best, result))


def _is_better(best: RemedyRanking, other: RemedyRanking) -> bool:
    gained = int(((best.ranks == 1) & (other.ranks > 1)).sum())
    lost = int(((best.ranks > 1) & (other.ranks == 1)).sum())
    return paired.difference(gained, lost, len(best.now)).low > 0


def advice(
    now: Int64,
    remedies: Mapping[str, Options],
    results: Mapping[str, RemedyRanking],
    titles: Mapping[str, str],
    shares: Sequence[TraitShare],
    queries: Sequence[str],
    first: NDArray[np.bool_],
    seed: int = 0,
) -> Advice:
    """The advice of both halves, `first` [query] and the others, in one sentence.

    `results` are the remedies as measured over both halves, `titles` their names in a sentence, `shares` what failed queries
    share, and `queries` the texts of all.
    """
    both = []
    for half in (first, ~first):
        own = {name: {option: ranks[half] for option, ranks in options.items()} for name, options in remedies.items()}
        texts = [query for query, is_in in zip(queries, half, strict=True) if is_in]
        both.append(advised(now[half], own, texts, seed))
    pair = (both[0], both[1])
    agreed = both[0] if both[0] == both[1] and int((now == 1).sum()) >= LEAST else None
    return Advice(pair, _sentence(pair, now, results, titles, shares), agreed)


def _sentence(
    pair: tuple[str | None, str | None],
    now: Int64,
    results: Mapping[str, RemedyRanking],
    titles: Mapping[str, str],
    shares: Sequence[TraitShare],
) -> str:
    failures, found = int((now > 1).sum()), int((now == 1).sum())
    if not failures:
        return "No query fails: there is nothing to repair."
    if found < LEAST:
        return too_few(failures, found)
    if not results:
        return "No remedy was measured."
    one, other = pair
    if one is not None and one == other:
        return (
            f"{_capital(titles[one])}: it repaired {results[one].repaired} of {counted(failures, 'failure')} and harmed "
            f"{results[one].harmed or 'none'} of {counted(found, 'found query', 'found queries')}; both halves of the queries "
            f"advise it.{_by_trait(results[one], shares)}{_beaten((one,), results, titles)}"
        )
    if one is None and other is None:
        helping = [name for name, result in results.items() if result.helps]
        if helping:
            best = max(helping, key=lambda name: results[name].recall)
            return (
                f"Your data do not decide whether {titles[best]} helps: it repaired {results[best].repaired} and harmed "
                f"{results[best].harmed or 'none'}, but neither half of the queries shows it by itself."
            )
        best = max(results, key=lambda name: results[name].recall)
        before, after = apart(100 * found / len(now), 100 * results[best].recall, digits=1)
        more = _harming(results, titles) or _shared(shares)
        if results[best].recall <= found / len(now):
            return f"No remedy is better: the right text is first for {before} % of the queries, and none raises that{more}."
        return (
            f"No remedy is clearly better: the right text is first for {before} % of the queries now and {after} % with the "
            f"best one, {titles[best]}{more}."
        )
    names = ["leaving it as it is" if name is None else titles[name] for name in (one, other)]
    return (
        f"Your data do not decide between {names[0]} and {names[1]}: each half of the queries advises one of "
        f"them{_beaten(pair, results, titles) or '.'}"
    )


def repaired_by_trait(result: RemedyRanking, shares: Sequence[TraitShare]) -> dict[str, int]:
    """Of the failures that have each named trait, how many a remedy repaired."""
    is_repaired = (result.now > 1) & (result.ranks == 1)
    return {
        share.name: int((is_repaired & share.held).sum())
        for share in shares
        if share.is_named and share.held is not None
    }


def _by_trait(result: RemedyRanking, shares: Sequence[TraitShare]) -> str:
    """The same in a sentence; "" where no trait is named."""
    counts, named = repaired_by_trait(result, shares), named_together(shares)
    parts = [
        f"of the {share.failed:,} {'failures ' * (not number)}with {name} {'it repaired ' * (not number)}"
        f"{counts[share.name] or 'none'}"
        for number, (name, share) in enumerate(named)
        if share.name in counts
    ]
    return f" {_capital('; '.join(parts))}." if parts else ""


def _beaten(chosen: Sequence[str | None], results: Mapping[str, RemedyRanking], titles: Mapping[str, str]) -> str:
    """That another remedy helps and is better than the `chosen` ones over both halves, which no half shows by itself.

    "" where none is. None is to leave everything as it is.
    """
    advised = [results[name] for name in chosen if name is not None]
    better = [
        name
        for name, result in results.items()
        if name not in chosen and result.helps and all(_is_better(result, other) for other in advised)
    ]
    if not better:
        return ""
    best = max(better, key=lambda name: results[name].recall)
    if len(chosen) > 1:
        return f"; over both, {titles[best]} is better than either."
    return f" Over both, {titles[best]}, which costs more, is better."


def _harming(results: Mapping[str, RemedyRanking], titles: Mapping[str, str]) -> str:
    """Which remedies do harm for sure, as the end of a sentence; "" where none does."""
    harming = [titles[name] for name, result in results.items() if result.harms]
    return f"; {enumerated(harming)} {'does' if len(harming) == 1 else 'do'} harm" if harming else ""


def _shared(shares: Sequence[TraitShare]) -> str:
    """What failed queries share, as the end of a sentence; "" where they are too few to be compared."""
    if not shares or shares[0].difference is None:
        return ""
    named = [name for name, _ in named_together(shares)]
    if not named:
        return "; your failures share no trait more often than found queries by more than chance"
    return f"; your failures share {enumerated(named)}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
