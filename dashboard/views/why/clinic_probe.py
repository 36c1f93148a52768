"""Known failures, "Is it in the vector?": a linear probe for each layer beside its control task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.similarity.baseline import sample_of_rows
from components.analysis.why import probes
from components.charts import minimal_pairs as charts
from components.charts import theme
from components.charts.retrieval.evaluation import Curve
from components.retrieval.evaluation import metrics
from components.shown_code.code import Command
from dashboard import caching
from dashboard.jobs import requests
from dashboard.jobs.stored import pairs as stored
from dashboard.ui import controls, figures, messages
from dashboard.ui.wording import POOLING_NAMES, counted

if TYPE_CHECKING:
    from components.analysis.why.probes import ProbeResult
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.model.embedding.options import EmbedOptions
    from components.model.trace import Pooling
    from components.retrieval.corpora.minimal_pairs import MinimalPairs

ENDS = ("the vector", "by heart")  # the curves of the probe and of the control task, where they end
# What the second sentences of the ready-made pairs have in common; the order of the other kinds has no meaning.
QUESTIONS = {
    "negation": "whether a sentence is negated",
    "numbers": "whether a sentence has the larger number of its pair",
    "time": "whether a sentence names the later time of its pair",
    "quantity": "whether a sentence names the smaller quantity of its pair",
}


def draw(
    backend: Backend,
    pairs: MinimalPairs,
    kind: str,
    layer: int,
    pooling: Pooling,
    is_ready_made: bool,
) -> None:
    """Draw the probe's accuracy by layer, and that of the control task."""
    question = QUESTIONS.get(kind) if is_ready_made else "whether a sentence is the second of its pair"
    if question is None:
        st.info(
            f"**{kind.capitalize()}:** neither sentence of such a pair has a property that the other lacks, so that there is "
            f"nothing to read from one sentence alone. Choose another difference: {', '.join(QUESTIONS)}."
        )
        return
    all_rows = pairs.rows_of(kind)
    rows = all_rows[sample_of_rows(len(all_rows), probes.MOST_PAIRS)]
    if len(rows) < probes.FEWEST_PAIRS:
        st.info(
            f"**{counted(len(rows), 'pair')} of this kind are too few to learn from.** A probe needs at least "
            f"{probes.FEWEST_PAIRS}."
        )
        return
    if len(rows) < len(all_rows):
        st.caption(f"The probe learns from a random sample of {len(rows)} of the {len(all_rows):,} pairs.")
    first, second = ([texts[row] for row in rows.tolist()] for texts in (pairs.first, pairs.second))
    options = backend.embed_options(
        range(backend.facts.layers + 1), [pooling], controls.length_for(backend), precision="float32"
    )
    result = stored.probe(backend, pairs, kind, options)
    if result is None:
        result = _probed(backend, first, second, options, kind)
    _figure(result, kind, question, layer, pooling)


def _probed(backend: Backend, first: list[str], second: list[str], options: EmbedOptions, kind: str) -> ProbeResult:
    """The probe of every layer. Raises NotReady while it is trained."""

    def work(report_progress: ReportProgress, is_stopped: IsStopped) -> ProbeResult:
        vectors = backend.embed([*first, *second], options=options, is_stopped=is_stopped)[:, 0]
        return probes.probe_pairs(vectors, first, second, report_progress, is_stopped)

    return requests.latest(
        ("probe", backend.spec.key, backend.revision, options, tuple(first), tuple(second)),
        f"Training a probe for each layer: {kind}",
        work,
        "clinic_probe",
        "training the probes",
        "layers",
        view="clinic",
    )


def _figure(result: ProbeResult, kind: str, question: str, layer: int, pooling: Pooling) -> None:
    layers = range(len(result.right))
    intervals = {
        "probe": [metrics.interval(values) for values in result.right],
        "control task": [metrics.interval(values) for values in result.control],
    }
    curves = [
        Curve(
            name,
            100 * np.array([each.value for each in own]),
            100 * np.array([each.low for each in own]),
            100 * np.array([each.high for each in own]),
        )
        for name, own in intervals.items()
    ]
    terms, count = caching.glossary(), result.right.shape[1]
    ends = [f"{name} {100 * own[-1].value:.0f} %" for name, own in zip(ENDS, intervals.values(), strict=True)]
    figures.figure(
        charts.shares_by_layer(
            curves,
            list(layers),
            f"How often the guess is right: {POOLING_NAMES[pooling]}",
            y_title="right (%)",
            colours=[theme.BLUE, theme.ORANGE],
            names=ends,
            chosen=layer,
        ),
        key="clinic_probe",
        code=Command(probes.probe_layers),
        alt=f"Accuracy of a probe and of its control task at {len(layers)} layers",
        message=_answer(result, intervals["probe"][layer], question, layer),
        read="At each layer a simple classifier (a **probe**) gets the vectors of sentences, one at a time, with the answer, "
        f"and learns. Then it is asked about pairs that it has not seen: {probes.FOLDS} parts, each left out once; both "
        "sentences of a pair are in one part. Blue: how often it is right. Orange is the same with answers given at random, "
        "one for each changed word (the **control task**): there is nothing to understand, so that only learning words by "
        "heart helps. The distance between the two curves is the **selectivity**. Bands are 95 % intervals over the pairs.",
        not_shown="That the model uses what can be read, or understands it: the cosine can ignore it all the same. The "
        "changed word is in the input, so that the mean of the token vectors holds it from layer 0 on. "
        + (
            f"Of {2 * count} sentences {result.repeated} have a changed word that another pair has too; the control task can "
            "be right only about those."
        ),
        table=lambda: pd.DataFrame(
            {
                "layer": list(layers),
                "accuracy": result.accuracy.round(4),
                "low": [round(each.low, 4) for each in intervals["probe"]],
                "high": [round(each.high, 4) for each in intervals["probe"]],
                "control task": result.control_accuracy.round(4),
                "selectivity": result.selectivity.round(4),
            }
        ),
    )
    with st.expander("Probe, control task, selectivity", icon=":material/school:", key="clinic_terms"):
        for term in ("probe", "control task", "selectivity"):
            st.markdown(f"**{term.capitalize()}:** {terms[term]}")


def _answer(result: ProbeResult, interval: metrics.Interval, question: str, layer: int) -> str:
    """Whether a vector tells what is asked, beside guessing and learning by heart."""
    right, by_heart = 100 * interval.value, 100 * result.control_accuracy[layer]
    if interval.low <= 0.5:
        verb = "does not clearly tell"
    elif interval.low <= result.control_accuracy[layer]:
        verb = "may tell"
    else:
        verb = "tells"
    return (
        f"The vector of layer {layer} {verb} {messages.escape(question)}: **{right:.0f} %** right (guessing 50 %, "
        f"by heart {by_heart:.0f} %)."
    )
