"""Runs of Evaluate that put two or three rankings together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from components.retrieval.evaluation import run_record
from dashboard.jobs import evaluation

if TYPE_CHECKING:
    from components.retrieval.evaluation.graded.collection import GradedSet
    from components.retrieval.evaluation.metrics import Ranks
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.evaluation.run_record import Run
    from components.retrieval.fusion.ranks import ScoresOf
    from components.retrieval.fusion.scores import Fusion
    from components.retrieval.rankings.run_code import RunCode

SHORT = 10_000_000  # scores of queries by texts that are put together in about a second: they wait for no longer work


@dataclass(frozen=True, eq=False)
class FusionPart:
    """One of the rankings that are put together."""

    key: tuple[object, ...]  # what its scores depend on, beside the queries
    scores: Callable[[], ScoresOf]  # takes the time of making directions of all vectors


def fused_ranks(
    answers: Pairs | GradedSet, parts: Sequence[FusionPart], fusions: Sequence[Fusion], name: str, where: str
) -> Sequence[Ranks]:
    """The ranks of the correct answers by each fusion of the parts; `name` is the run's. Raises NotReady."""
    return evaluation.result(
        ("fused", answers.content_hash, tuple(part.key for part in parts), tuple(fusions)),
        f"{name}: ranking the queries",
        lambda report_progress, is_stopped: answers.ranks_by_fusions(
            [part.scores() for part in parts], fusions, report_progress, is_stopped
        ),
        where,
        short=len(answers.queries) * len(answers.documents) <= SHORT,
    )


def record(code: RunCode, singles: Sequence[Run], ranks: Ranks) -> Run:
    """The record of a fused run, out of those of its parts."""
    settings, first = code.settings, singles[0]
    method: dict[str, str | int | float] = {"method": "rrf", "k": settings.rank_constant}
    if settings.weight is not None:
        constant = {"k": settings.rank_constant} if settings.normalised == "rrf" else {}
        method = {"method": "weighted", "normalised": settings.normalised, "weight": settings.weight / 100, **constant}
    if settings.depth is not None:
        method["depth"] = settings.depth
    named = [part.words or run.name for part, run in zip(code.parts, singles, strict=True)]
    # Vectors of one layer and pooling are stored once.
    sizes = {part.first: run.index_bytes for part, run in zip(code.parts, singles, strict=True)}.values()
    times = [run.milliseconds for run in singles]
    return replace(
        first,
        name=f"{' + '.join(run.name for run in singles)}, {code.fusion_name}",
        system={**first.system, "kind": "fused", "fused": ", ".join(named[code.parts[0].is_vectors :]), **method},
        versions={name: version for run in singles for name, version in run.versions.items()},
        ranks=ranks,
        milliseconds=None if None in times else sum(time for time in times if time is not None),
        index_bytes=None if None in sizes else sum(size for size in sizes if size is not None),
        made=run_record.now() if None in times else max(run.made for run in singles),
    )
