"""Known failures before and after training: how often the same meaning is nearer than a pair that differs in one thing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from components.analysis.why.contrasts import separations
from components.arrays import Float64, cosine
from components.charts import training as charts
from components.jobs import part_of
from components.numbers import enumerated, number
from components.retrieval.corpora.minimal_pairs import PARAPHRASE
from components.shown_code.vectors import kinds_before_after
from dashboard.jobs import evaluation
from dashboard.jobs.stored import pairs as stored
from dashboard.ui import controls, figures, messages

if TYPE_CHECKING:
    from components.analysis.why.contrasts import Separation
    from components.arrays import Float32
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.model.embedding.options import EmbedOptions
    from components.retrieval.corpora.minimal_pairs import MinimalPairs

    # A model's vectors of texts, float32 [text, dim].
    Vectors = Callable[[Backend, tuple[str, ...], str, ReportProgress, IsStopped], Float32]

KINDS_SHOWN = 8  # a phone shows so many groups of bars
GUESSING = 0.5
PAIRS = "These are the pairs of What it cannot see, not the run's held-out rows, which Watch measures."


@dataclass(frozen=True, eq=False)
class PairFailures:
    """How often each model finds the pair that means the same, by kind of difference, each 0..1 with its interval."""

    kinds: tuple[str, ...]
    base: tuple[Separation, ...]  # [kind]
    tuned: tuple[Separation, ...]
    untouched: tuple[Separation, ...] | None = None


def measured(cosines: Sequence[Float64], pairs: MinimalPairs) -> PairFailures:
    """The shares of two or three models, from each one's cosines [pair]."""
    kinds = pairs.changed_kinds
    same = pairs.rows_of(PARAPHRASE)
    of_models = [
        tuple(separations(values[None, same], values[None, pairs.rows_of(kind)])[0] for kind in kinds)
        for values in cosines
    ]
    return PairFailures(kinds, *of_models)


def cosines_of(
    models: Sequence[Backend],
    vectors: Vectors,
    sides: tuple[tuple[str, ...], tuple[str, ...]],
    report_progress: ReportProgress,
    is_stopped: IsStopped,
) -> list[Float64]:
    """The cosines [pair] of two lists of texts by each model. Raises Stopped."""
    count, total, found = len(sides[0]), 2 * len(models) * len(sides[0]), []
    for place, backend in enumerate(models):
        first, second = (
            vectors(backend, texts, "document", part_of(report_progress, (2 * place + side) * count, total), is_stopped)
            for side, texts in enumerate(sides)
        )
        found.append(cosine(first, second))
    return found


def finding(found: PairFailures, kind: str) -> str:
    """What training changed about one kind of difference, and how many others it made better and worse beyond chance."""
    place = found.kinds.index(kind)
    before, after = found.base[place], found.tuned[place]
    same = _percent(before.value) == _percent(after.value)
    rose = "a clear rise, to about what guessing gives" if after.low > before.high else "no more than guessing"
    said = (
        f"**{messages.escape(_capitalised(kind))}:** a paraphrase is nearer than a pair that differs by "
        f"{messages.escape(kind)} in "
        + (
            f"**{_percent(after.value)}** of comparisons before and after training"
            if same
            else f"{_percent(before.value)} of comparisons before training, **{_percent(after.value)}** after it"
        )
        + (
            " (guessing: 50 %)."
            if after.low > GUESSING
            else ", less than by guessing (50 %)."
            if after.high < GUESSING
            else f": {rose} (50 % within its interval)."
        )
    )
    others = [number for number in range(len(found.kinds)) if number != place]
    better = [found.kinds[other] for other in others if found.tuned[other].low > found.base[other].high]
    worse = [found.kinds[other] for other in others if found.tuned[other].high < found.base[other].low]
    if not others:
        return said
    return f"{said} Of the {len(others)} other kinds, {_named(better)} clearly rose and {_named(worse)} clearly fell."


def _named(kinds: Sequence[str]) -> str:
    """How many kinds, and which."""
    return f"{len(kinds)} ({messages.escape(enumerated(kinds))})" if kinds else "none"


def _capitalised(kind: str) -> str:
    """With a capital first letter; the others stay as they are written."""
    return kind[:1].upper() + kind[1:]


def _percent(share: float) -> str:
    return f"{number(100 * share, 0)} %"


def most_changed(found: PairFailures) -> str:
    """The kind whose share changed most."""
    changes = [abs(after.value - before.value) for before, after in zip(found.base, found.tuned, strict=True)]
    return found.kinds[int(np.argmax(changes))]


def draw(
    models: Sequence[Backend],
    vectors: Vectors,
    key: Callable[[str, str], tuple[object, ...]],
    names: Mapping[str, str],
    options_of: Callable[[Backend, str], EmbedOptions],
) -> None:
    """Bars for each kind of difference. `names` are those of the models before training and untouched."""
    pairs = stored.demo_pairs()

    def work(report_progress: ReportProgress, is_stopped: IsStopped) -> PairFailures:
        return measured(cosines_of(models, vectors, (pairs.first, pairs.second), report_progress, is_stopped), pairs)

    found = evaluation.result(
        key("known failures", pairs.content_hash),
        f"Embedding {2 * len(pairs):,} sentences before and after training",
        work,
        "after_failures",
    )
    sides = {"before": found.base, "after": found.tuned}
    if found.untouched is not None:
        sides["untouched"] = found.untouched
    values = {
        side: 100 * np.array([[share.value, share.low, share.high] for share in shares])[:KINDS_SHOWN]
        for side, shares in sides.items()
    }
    figures.figure(
        charts.before_after_bars(
            [_capitalised(kind) for kind in found.kinds[:KINDS_SHOWN]],
            values["before"],
            values["after"],
            "How often is the same meaning nearer?",
            quantity="% of cases",
            unit=" %",
            before_name=names["before"],
            untouched=values.get("untouched"),
            untouched_name=names["untouched"],
            guessing=100 * GUESSING,
            dark=controls.is_dark(),
        ),
        key="after_failures",
        code=kinds_before_after(
            models, [options_of(backend, "document") for backend in models], found.kinds[:KINDS_SHOWN]
        ),
        alt=f"How often the same meaning is nearer, for {len(found.kinds)} kinds of differences, before and after training",
        message=f"{finding(found, most_changed(found))} {PAIRS}",
        read="Each group is a kind of difference. A pair that means the same in other words is compared with a pair in which "
        "one thing differs: a “not”, a number, who does what. The bar says how often the pair with the same meaning has the "
        "higher cosine; by guessing it is 50 %. Lines on the bars are 95 % intervals. None of these sentences is in the "
        "included training data.",
        not_shown="Whether the model understands the difference: it may have learnt to look for the word “not”. What it lost "
        "elsewhere, “Measures” shows.",
        table=lambda: pd.DataFrame(
            {
                "kind": found.kinds,
                **{
                    f"{side}{end}": [round(100 * getattr(share, name), 3) for share in shares]
                    for side, shares in sides.items()
                    for name, end in (("value", ""), ("low", ", low"), ("high", ", high"))
                },
            }
        ),
    )
