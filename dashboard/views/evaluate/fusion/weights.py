"""Vectors and words together: how good each weight is, and the weight that one half of the queries chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.charts.retrieval import evaluation as charts
from components.numbers import number, signed
from components.retrieval.evaluation import metrics
from components.retrieval.fusion.weights import ChosenWeight, chosen_weight
from components.retrieval.rankings.run_code import RunCode
from components.shown_code.code import Command
from dashboard.jobs.runs import fusion
from dashboard.ui import figures, messages
from dashboard.ui.wording import counted
from dashboard.views.evaluate import choices

if TYPE_CHECKING:
    from components.retrieval.evaluation.pair_runs import Pairs
    from dashboard.jobs.evaluation import PairIndexes
    from dashboard.views.evaluate.choices import RunRequest
    from dashboard.views.evaluate.queries import RunEntry

STEPS = 10  # weights 0, 0.1, ... 1 of the words


def weights(
    request: RunRequest, entries: Sequence[RunEntry], pairs: Pairs, indexes: Mapping[str, PairIndexes], measure: str
) -> None:
    """The quality of a layer and pooling with a ranking by words, by weight: of the first fused run, or else with BM25.

    Raises NotReady.
    """
    codes = [entry.code for entry in entries if entry.code is not None]
    usable = [code for code in codes if len(code.parts) == 2]
    usable += [RunCode.fused((code, choices.WORDS)) for code in codes if code.is_vectors]
    if not usable:
        st.info(
            "**No run with vectors.** Words are put together with vectors: add a layer and pooling under “Choose runs”.",
            icon=":material/add:",
        )
        return
    code, settings = usable[0], usable[0].settings
    name, last = map(request.name_of, code.parts)
    shares = [100 * step // STEPS for step in range(STEPS + 1)]
    # The last by ranks.
    every = [RunCode.fused(code.parts, replace(settings, weight=weight)) for weight in (*shares, None)]
    fusions = [each.fusion for each in every]
    parts = request.parts(
        code, {model: each.both for model, each in indexes.items()}, choices.search_texts(pairs), "weights"
    )
    ranks_of_fusions = fusion.fused_ranks(pairs, parts, fusions, f"{name} + {last}", "weights")
    values = [metrics.MEASURES[measure](ranks) for ranks in ranks_of_fusions]
    intervals = [metrics.interval(each) for each in values]
    of_weights, by_ranks = intervals[:-1], intervals[-1]
    commands = request.commands(choices.file_of_pairs(), every)
    scaled = {
        "z": "given as standard deviations from their mean",
        "minmax": "put on a scale of 0 to 1",
        "rrf": f"replaced by 1 / ({settings.rank_constant} + rank)",
    }[settings.normalised]
    depth = (
        ""
        if settings.depth is None
        else f" Of each ranking only the first {counted(settings.depth, 'sentence')} of a query count."
    )
    words, left_out = ("the words", "no words") if code.parts[1].words else (last, f"nothing of {last}")
    weight = f"weight of {words} (%)"
    value, low, high = 100 * np.array([[each.value, each.low, each.high] for each in of_weights]).T
    figures.figure(
        charts.curves_over(
            [
                charts.Curve(f"by {'ranks' if settings.normalised == 'rrf' else 'scores'}, weighted", value, low, high),
                charts.Curve("by ranks (reciprocal rank fusion)", np.full(len(shares), 100 * by_ranks.value)),
            ],
            shares,
            f"{name} with {last}",
            x_title=weight,
            y_title=f"{measure} (%)",
        ),
        key="compare_weights",
        code=Command(fusion.fused_ranks, *filter(None, commands)),
        alt=f"{measure} of {name} together with {last}, by its weight from 0 to 100 %",
        message=f"{of_all([each.value for each in of_weights], by_ranks.value, name, last, measure)} "
        f"{finding(chosen_weight(values[:-1]), name, last, measure, left_out)}",
        read=f"At 0 % {name} ranks alone, at 100 % {last}. Between, both scores of a query are {scaled} "
        f"over all sentences, and added with their weights.{depth} The pale band is the 95 % interval: where the values may "
        f"lie for other queries. The flat line adds 1 / ({settings.rank_constant} + rank) of each ranking and needs no weight. "
        "The weight is chosen on one half of the queries, drawn by lot, and measured on the other, since the best of several "
        "flatters itself. “What helps” measures both halves, each with what the other chose, among other weights too: its "
        "number is of all queries.",
        not_shown="Whether the weight suits other texts"
        + (
            ": queries that use other words than their answers want less of the words, queries with names and numbers more."
            if code.parts[1].words
            else "."
        ),
        table=lambda: pd.DataFrame(
            {
                weight: [*shares, np.nan],
                "run": ["by scores"] * len(shares) + ["by ranks"],
                **{
                    title: [round(100 * getattr(each, part), 3) for each in intervals]
                    for title, part in ((measure, "value"), ("low", "low"), ("high", "high"))
                },
            }
        ),
    )


def of_all(weighted: Sequence[float], by_ranks: float, name: str, last: str, measure: str) -> str:
    """What the first run alone, the best weight and a fusion by ranks give for all queries; values from 0 to 1."""
    best = max(range(len(weighted)), key=weighted.__getitem__)
    alone, most, ranks = (number(100 * value, 1) for value in (weighted[0], weighted[best], by_ranks))
    vectors, last = f"**{messages.escape(name)}**", messages.escape(last)
    start = f"Over all queries {vectors} alone has {measure} {alone} %"
    if not best:
        return f"{start}, and no weight of {last} is better; by ranks it is {ranks} %."
    return f"{start}; with the best weight, {number(100 * best / STEPS, 0)} % {last}, it is {most} %, and by ranks {ranks} %."


def finding(choice: ChosenWeight | None, name: str, last: str, measure: str, left_out: str = "no words") -> str:
    """Which weight one half of the queries chooses, and what it does on the other half, beside the first run alone.

    `last` is the name of the other run; `left_out` says what queries choose that give it a weight of 0.
    """
    vectors, last = f"**{messages.escape(name)}**", messages.escape(last)
    if choice is None:
        return "There are too few queries to choose a weight on one half of them and measure it on the other."
    value, low, high = (number(100 * each, 1) for each in vars(choice.measured).values())
    if choice.place == 0:
        left_out = messages.escape(left_out)
        return (
            f"One half of the queries, by itself, chooses {left_out}, so that nothing is gained on the other half, where "
            f"{vectors} has {value} % ({low} to {high})."
        )
    share = 100 * choice.place / STEPS
    gain = signed(100 * (choice.measured.value - choice.first_alone.value), 1)
    return (
        f"One half of the queries, by itself, chooses **{number(share, 0)} % {last}**. On the other half {measure} is "
        f"then {value} % ({low} to {high}), {gain} points against {vectors} alone."
    )
