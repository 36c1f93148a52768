"""A ranking learnt from [CLS] vectors by logistic regression, compared with other rankings: the answer, then the details."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
import streamlit as st

from components import numbers
from components.charts import curves as curve_charts
from components.charts import theme
from components.charts.retrieval import evaluation as charts
from components.charts.retrieval import thresholds
from components.jobs import Stopped
from components.retrieval.evaluation import metrics
from components.retrieval.evaluation.graded import metrics as graded_metrics
from components.retrieval.learnt.comparison import POOLING_SHORT, RANKING_MEASURES, LearningChoice
from components.shown_code.code import Command
from dashboard import caching, settings
from dashboard.corpora import graded_sets
from dashboard.jobs import requests
from dashboard.jobs.embedding import EmbedRequest
from dashboard.ui import controls, figures, messages, page_header
from dashboard.ui.waiting import before_work, frame
from dashboard.ui.wording import counted
from dashboard.views.pairs import learnt_rankers
from dashboard.views.pairs.learnt_rankers import LearntSource, MeasuredRanking

if TYPE_CHECKING:
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.model.trace import Pooling
    from components.retrieval.evaluation.graded.collection import GradedSet
    from components.retrieval.learnt.comparison import LearningSet
    from components.retrieval.learnt.learnt_ranking import (
        ClassFigures,
        Classification,
        LearntFunction,
        Part,
    )
    from components.retrieval.learnt.learnt_vectors import Reading

MEASURE = "MAP"
READING_HELP = (
    "One by one: query and document go through the model one at a time, and their two vectors are combined. Together: both are "
    "one input, [CLS] query [SEP] document [SEP], and the vector is that of the pair; each pair needs a pass of its own."
)
C_HELP = (
    "How closely the weights may follow the training pairs. A large C lets them fit those pairs by heart; a small one keeps "
    "the weights small, which usually does better on new queries. (The inverse strength of regularisation.)"
)
REPORT = ("pairs", "precision", "recall", "F1", "number")
PARTS: dict[Part, str] = {"test": "test", "train": "training"}
LABELS = {  # in the figure, by what is compared
    "Bi-encoder": "Bi-encoder: sentence vectors",
    "Cross-encoder": "Cross-encoder: reads both at once",
    "BM25": "BM25: words",
    "Jelinek-Mercer": "Jelinek-Mercer: words",
}
STRONGEST = 10  # weights that are listed


def learnt(backend: Backend) -> None:
    """The answer with a bar for each ranking, then what was learnt, all measures, single pairs, and every layer."""
    last = backend.facts.layers
    with controls.row():
        with st.container(width=round(120 * controls.scale())):
            layer = controls.number("learnt_layer", "Layer", 0, last, last, caching.glossary()["layer"])
        with st.container(width=round(140 * controls.scale())):
            reading = cast(
                "Reading",
                controls.pick("learnt_reading", "Texts are read", learnt_rankers.READING, READING_HELP),
            )
        with controls.options():
            source = graded_sets.choose_source()
            field_slot = st.container()
            c = float(controls.pick("learnt_c", "C", {text: text for text in settings.LEARNT_CS}, C_HELP))
            pooling = cast(
                "Pooling",
                controls.choice("learnt_pooling", "Vector", POOLING_SHORT, caching.glossary()["pooling"]),
            )
            most = controls.number("learnt_queries", "Queries at most", 20, 2_000, 200)
    page_header.measures("No collection yet")
    graded = graded_sets.collection_of(source, field_slot)
    if graded is None:
        return
    page_header.measures(graded.name, counted(len(graded.documents), "document"))
    choice = LearningChoice(layer, pooling, c)
    above, waiting, below = st.container(), st.container(), st.container()
    request = EmbedRequest.of_session(backend, exact=True)
    with waiting, frame.figure("learnt_rankings") as figure:
        candidates, key, indexes = learnt_rankers.candidates_of(request, graded, most)
        before_work.other_layers(request, graded.document_texts, "learnt")
        main = learnt_rankers.of_model(request, candidates, key, reading, choice, "m", indexes)
        rankers = [MeasuredRanking.of(main.learnt)]
        rankers += learnt_rankers.references(candidates, main)
        rankers += learnt_rankers.other_encoders(backend, candidates, key, reading, choice)
        rankers += learnt_rankers.cross_encoder(candidates, key)
    if figure.not_ready is not None:
        return
    with above:
        _ranking_figure(rankers, candidates, reading)
    with below:
        _what_is_learnt(graded, main, candidates, reading, choice)
        _ranking_table(rankers)
        _reports(main.learnt.function)
        _precision_figure(main.learnt.function)
        with frame.figure("learnt_layers"):
            _layers(main, candidates, choice)


@dataclass(frozen=True)
class _Standing:
    """How a ranking stands to the learnt one in a measure."""

    difference: float  # learnt minus this
    p: float  # adjusted for the number of rankings (Holm)

    @property
    def is_clear(self) -> bool:
        return self.p < metrics.ALPHA


def _standings(rankers: Sequence[MeasuredRanking]) -> dict[str, _Standing]:
    """Each ranking but the first, compared with the first over the same queries."""
    own, others = rankers[0].values[MEASURE], rankers[1:]
    p_values = [metrics.randomisation_test(own, other.values[MEASURE]) for other in others]
    return {
        other.name: _Standing(float((own - other.values[MEASURE]).mean()), p)
        for other, p in zip(others, metrics.holm(p_values), strict=True)
    }


def _answer(rankers: Sequence[MeasuredRanking]) -> str:
    """The answer to the page's question, in a line: the learnt ranking against the cosine, words, and chance."""
    standings = _standings(rankers)

    def written(ranker: MeasuredRanking, name: str) -> str:
        return f"{name} ({_mean(ranker, MEASURE):.1f})"

    by_name = {ranker.name: ranker for ranker in rankers}
    cosine = next((ranker for ranker in rankers if ranker.is_cosine), None)
    compared = {"BM25": "BM25", learnt_rankers.CHANCE: "chance"}
    if cosine is not None:
        compared = {cosine.name: "the cosine of the same vectors", **compared}
    named: dict[str, list[str]] = {
        "better than": [],
        "not clearly better than": [],
        "not better than": [],
        "worse than": [],
    }
    for name, shown in compared.items():
        standing = standings[name]
        if standing.is_clear:
            how = "better than" if standing.difference > 0 else "worse than"
        else:
            how = "not clearly better than" if standing.difference > 0 else "not better than"
        named[how].append(written(by_name[name], shown))
    verdict = "Yes" if len(named["better than"]) == len(compared) else "Partly"
    if cosine is not None and standings[cosine.name].is_clear and standings[cosine.name].difference < 0:
        verdict = "Yes, but worse than without learning"
    chance = standings[learnt_rankers.CHANCE]
    if not (chance.is_clear and chance.difference > 0):
        count = len(rankers[0].values[MEASURE])
        verdict = (
            "No" if chance.is_clear or chance.difference <= 0 else f"{counted(count, 'query', 'queries')} cannot tell"
        )
    parts = "; ".join(f"{how} {_listed(names)}" for how, names in named.items() if names)
    return f"**{verdict}.** Mean average precision ({MEASURE}) {_mean(rankers[0], MEASURE):.1f} %: {parts}."


def _listed(names: Sequence[str]) -> str:
    """Names as a sentence lists them: "a, b and c"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _mean(ranker: MeasuredRanking, measure: str) -> float:
    """In per cent."""
    return 100 * float(ranker.values[measure].mean())


def _ranking_figure(rankers: Sequence[MeasuredRanking], candidates: LearningSet, reading: Reading) -> None:
    """The first figure: a bar for each way of ranking."""
    bars = []
    for ranker in rankers:
        interval = metrics.interval(ranker.values[MEASURE])
        value, low, high = (100 * each for each in (interval.value, interval.low, interval.high))
        name = LABELS.get(ranker.name, ranker.name)
        bars.append(charts.RankedBar(name, value, low, high, ranker.is_learnt, ranker.is_cosine))
    pairs, split = candidates.pairs, candidates.split
    cosine = next((ranker.name for ranker in rankers if ranker.is_cosine), "")
    others = "blue is “Cosine”, which takes the same vectors and learns nothing, and grey are" if cosine else "blue are"
    figures.figure(
        charts.ranking_bars(
            bars,
            f"{MEASURE} of {counted(len(split.test), 'test query', 'test queries')}",
            measure=MEASURE,
            dark=controls.is_dark(),
        ),
        key="learnt_rankings",
        code=Command(LearningChoice.learnt),
        alt=f"{MEASURE} of {len(bars)} ways of ranking, with intervals",
        message=_answer(rankers),
        read=f"Each bar is a way of ranking {counted(len(pairs.documents), 'document')} for "
        f"{counted(len(split.test), 'query', 'queries')} that were not learnt from; orange is learnt, {others} other "
        "ways of ranking. MAP is 100 % if all relevant documents come first. The bi-encoder is the cosine of the model's "
        "vectors as it was published; BM25 and Jelinek-Mercer (a language model) only compare words. The thin line is the "
        "95 % interval. Better or worse means p < 0.05 in a randomisation test over the queries, adjusted for the number of "
        "rankings (Holm).",
        not_shown=(
            "The cross-encoder"
            + (", and the learnt ranking of pairs read together," if reading == "together" else "")
            + " would need a pass for each document. It sorts only the first documents of BM25 and of the bi-encoder; the "
            "others follow in the bi-encoder's order. The included cross-encoder was trained on similar sentences, not on "
            "search. Documents that nobody judged count as not relevant."
        ),
        table=lambda: _rankings(rankers).round(3),
    )
    of_cosine = f"“{messages.escape(cosine)}” compares the same vectors without learning. " if cosine else ""
    st.caption(
        f"MAP: 100 % if all relevant documents come first; thin lines: 95 % intervals. {of_cosine}The bi-encoder’s vectors are "
        "of the last layer, with the pooling that the model was published with. Jelinek-Mercer: how probable the query’s words "
        "are in the document."
    )


def _what_is_learnt(
    graded: GradedSet, main: LearntSource, candidates: LearningSet, reading: Reading, choice: LearningChoice
) -> None:
    """What is learnt and from what, in four sentences, and the weights themselves."""
    pairs, split, function = candidates.pairs, candidates.split, main.learnt.function
    figures.subheader("What is learnt, and from what")
    vector = "[CLS] vector" if choice.pooling == "cls" else "mean vector"
    count = len(function.coefficients)
    if reading == "together":
        made = (
            f"The model reads query and document as one input, and the pair's {vector} at layer {choice.layer} is kept"
        )
    else:
        made = (
            f"The model reads each text by itself. From the {vector} of the query (q) and that of the document (d), both of "
            f"layer {choice.layer}, come the numbers of the pair: q × d, number by number"
        )
    train, test = (len(pairs.rows_of(part)) for part in (split.train, split.test))
    ranked = f"all {counted(len(pairs.documents), 'document')} are then ranked by that sum"
    if reading == "together":
        ranked = "the first documents of BM25 and of the bi-encoder are then sorted by that sum, and the others follow"
    ranked += f"; their {counted(test, 'pair')} test it pair by pair below"
    st.markdown(
        f"{made}. Logistic regression finds one weight for each of these {count:,} numbers, so that their weighted sum is high "
        f"for relevant pairs and low for others. It learns from {counted(train, 'pair')} of "
        f"{counted(len(split.train), 'query', 'queries')} (training); the model itself stays as it is. For each of the "
        f"{counted(len(split.test), 'other query', 'other queries')} (test), {ranked}."
    )
    st.caption(
        f"**{messages.escape(graded.name)}**: {100 * pairs.is_relevant.mean():.0f} % of the "
        f"{counted(len(pairs), 'pair')} are relevant. No query is in both parts, but documents can be; both "
        "parts have about the same share of difficult queries (those where BM25's P@10 is low)."
        + (f" {graded_sets.DEMO_GRADES}" if not graded.report.files else "")
        + (
            f" Of {len(graded.documents):,} documents {len(pairs.documents):,} are ranked."
            if len(pairs.documents) < len(graded.documents)
            else ""
        )
        + (" Of pairs read together only the candidates have vectors." if reading == "together" else "")
        + "".join(f" Left out, {reason}: {count:,}." for reason, count in graded.report.left_out.items())
    )
    _weights(function, reading)


def _weights(function: LearntFunction, reading: Reading) -> None:
    with st.expander("The learnt weights", icon=":material/balance:", key="learnt_weights"):
        weights = function.coefficients
        names = [f"{'pair' if reading == 'together' else 'q × d'}, dimension {dim}" for dim in range(len(weights))]
        order = np.argsort(-np.abs(weights), kind="stable")
        share = 100 * float(np.abs(weights[order[:STRONGEST]]).sum() / max(1e-12, np.abs(weights).sum()))
        st.markdown(
            f"{int((weights > 0).sum()):,} of {len(weights):,} weights are positive: a higher number then means more relevant. "
            f"The {STRONGEST} strongest carry {share:.0f} % of the sum of all weights' sizes. Dimensions count from 0; each "
            "number is scaled to mean 0 and standard deviation 1 before it is weighed."
        )
        table = pd.DataFrame({"number": [names[row] for row in order], "weight": weights[order]})
        figures.plain_table(
            table.head(STRONGEST).assign(weight=[theme.signed(value, 4) for value in weights[order[:STRONGEST]]])
        )
        figures.download(table, "learnt-weights")


def _rankings(rankers: Sequence[MeasuredRanking]) -> pd.DataFrame:
    """The means of all measures, in per cent."""
    return pd.DataFrame(
        [{"ranking": ranker.name, **{name: _mean(ranker, name) for name in ranker.values}} for ranker in rankers]
    )


def _ranking_table(rankers: Sequence[MeasuredRanking]) -> None:
    figures.subheader("All rankings and measures")
    standings = _standings(rankers)
    difference = f"difference in {MEASURE}"
    table = _rankings(rankers)
    table[difference] = ["" if ranker is rankers[0] else _words(standings[ranker.name]) for ranker in rankers]
    shown = table.sort_values(MEASURE, ascending=False, kind="stable")
    measures = list(RANKING_MEASURES)
    with st.container(key="small_table_rankings"):
        figures.plain_table(shown.assign(**{name: [f"{value:.1f}" for value in shown[name]] for name in measures}))
    st.caption(
        "Means over the test queries, in per cent. P@10: the relevant of the first ten; nDCG@10: the same by grades, a "
        f"first place counting most. Last column: “{messages.escape(rankers[0].name)}” minus that of the row, with "
        "the p-value (randomisation test, adjusted by Holm's method, which can make two of them equal)."
    )
    figures.download(table.round(3), "learnt-rankings")


def _words(standing: _Standing) -> str:
    p = "p < 0.001" if standing.p < 0.001 else f"p = {theme.number(standing.p)}"
    return f"{theme.signed(100 * standing.difference, 1)}, {p}"


def _precision_figure(function: LearntFunction) -> None:
    test, train = function.curves["test"], function.curves["train"]
    levels = np.linspace(0, 100, graded_metrics.LEVELS)
    figures.figure(
        thresholds.threshold_curves(
            [
                ("test pairs", 100 * test.recall, 100 * test.precision),
                ("training pairs", 100 * train.recall, 100 * train.precision),
            ],
            100 * test.chance,
            "Precision and recall of single pairs",
            points=("test pairs, 11 points", levels, 100 * test.interpolated),
        ),
        key="learnt_precision",
        code=Command(LearningChoice.learnt),
        alt="Precision over recall of the pairs of the test and of the training queries",
        message=f"At every threshold: average precision is {100 * test.average_precision:.1f} % on test pairs and "
        f"{100 * train.average_precision:.1f} % on training pairs; by chance about {100 * test.chance:.1f} %.",
        read="All pairs, those of all queries, are sorted together by the weighted sum. From left to right the threshold "
        "falls: more relevant pairs are found (recall), and a smaller share of the pairs above the threshold is relevant "
        "(precision). The diamonds are the 11-point interpolated precision: the best at that recall or beyond. A training "
        "curve far above the test curve means that the training pairs were learnt by heart: try a smaller C, under “Options”.",
        not_shown="Rankings: a query has its own threshold there. The first figure shows how well each query's documents are "
        "ordered.",
        table=lambda: pd.DataFrame(
            {"recall (%)": levels, "interpolated precision, test (%)": (100 * test.interpolated).round(2)}
        ),
    )


def _reports(function: LearntFunction) -> None:
    """The classification of single pairs: accuracy beside that of one answer for all, then each class."""
    figures.subheader("Is a single pair relevant?")
    test = function.reports["test"]
    more = numbers.difference(100 * test.majority, 100 * test.accuracy)
    difference = f"{abs(more):.1f} points {'more' if more > 0 else 'less'}"
    st.markdown(
        f":material/insights: A weighted sum above 0 says “relevant”. That is right for "
        f"**{100 * test.accuracy:.1f} %** of the test pairs; always saying “{_larger(test)}” is right for "
        f"**{100 * test.majority:.1f} %**, {difference}. Of the relevant test "
        f"pairs {100 * test.relevant.recall:.0f} % are found."
    )
    accuracies = pd.DataFrame(
        [
            (
                PARTS[part],
                f"{100 * report.accuracy:.1f}",
                f"{100 * report.majority:.1f}",
                f"{report.not_relevant.support + report.relevant.support:,}",
            )
            for part in PARTS
            for report in (function.reports[part],)
        ],
        columns=["pairs", "accuracy", f"always “{_larger(test)}”", "number"],
    )
    figures.plain_table(accuracies)
    rows = [row for part in PARTS for row in _report_rows(part, function.reports[part])]
    table = pd.DataFrame(rows, columns=list(REPORT))
    figures.plain_table(table.map(_one_digit))
    st.caption(
        "In per cent. Precision: of the pairs that are called so, the share that is so. Recall: of the pairs that are so, the "
        "share that is called so. F1: their harmonic mean. Number: pairs of the class (support)."
    )
    figures.download(table, "learnt-classification")
    if not function.has_converged:
        st.warning(
            f"The search for the weights stopped after {counted(function.steps, 'step')}, before they had settled. Choose a "
            "smaller C under “Options”."
        )


def _larger(report: Classification) -> str:
    """The larger class, in words."""
    return "not relevant" if report.not_relevant.support >= report.relevant.support else "relevant"


def _report_rows(part: Part, report: Classification) -> list[tuple[object, ...]]:
    """The rows of the two classes, in per cent."""

    def row(name: str, figures: ClassFigures) -> tuple[object, ...]:
        shares = (100 * figures.precision, 100 * figures.recall, 100 * figures.f1)
        return f"{PARTS[part]}, {name}", *shares, figures.support

    return [row("not relevant", report.not_relevant), row("relevant", report.relevant)]


def _one_digit(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _layers(main: LearntSource, candidates: LearningSet, choice: LearningChoice) -> None:
    """Which layer's vectors carry most: the regression trained once for each layer, on request."""
    figures.subheader("Which layer carries most?")
    vectors = main.vectors
    key = (*main.key, "layers", replace(choice, layer=0))
    asked_for = st.session_state.setdefault("_learnt_layers", set())
    if key not in asked_for and caching.preparations().find(key) is None:
        st.caption(
            f"The same weights, learnt once for each of {counted(len(vectors.layers), 'layer')}. No text is read again."
        )
        st.button(
            "Learn at every layer",
            key="learnt_every_layer",
            icon=":material/layers:",
            on_click=asked_for.add,
            args=(key,),
        )
        return

    def work(report_progress: ReportProgress, is_stopped: IsStopped) -> dict[str, np.ndarray]:
        """MAP of the learnt ranking, and of the plain cosine, at each layer, in per cent: [layer]."""
        rows: dict[str, list[float]] = {"learnt": [], "cosine": []}
        for done, layer in enumerate(vectors.layers):
            report_progress(done, len(vectors.layers))
            if is_stopped():
                raise Stopped
            learnt = replace(choice, layer=layer).learnt(vectors, candidates, is_stopped)
            for name, ranking in (("learnt", learnt), ("cosine", learnt.unlearnt)):
                rows[name].append(
                    np.nan if ranking is None else _mean(learnt_rankers.MeasuredRanking.of(ranking), MEASURE)
                )
        return {name: np.array(values) for name, values in rows.items()}

    result = requests.prepared(key, f"Learning at {len(vectors.layers)} layers", work, "learnt_layers")
    curves = {
        f"learnt from {POOLING_SHORT[choice.pooling]}": result["learnt"],
        "cosine, nothing learnt": result["cosine"],
    }
    curves = {name: values for name, values in curves.items() if np.isfinite(values).all()}
    best = int(np.argmax(result["learnt"]))
    figures.figure(
        curve_charts.layer_curves(
            np.stack(list(curves.values())),
            list(curves),
            f"{MEASURE} of the test queries by layer",
            y_title=f"{MEASURE} (%)",
        ),
        key="learnt_by_layer",
        code=Command(LearningChoice.learnt),
        alt=f"{MEASURE} of the learnt ranking at each layer",
        message=f"Layer {vectors.layers[best]} carries most: {MEASURE} is {result['learnt'][best]:.1f} % there.",
        read="One point for each layer whose vectors were learnt from, with the same C and the same queries.",
        not_shown="Which C suits each layer best: here it is the same for all. At layer 0 the [CLS] vectors of texts "
        "read apart are all equal, so that there is nothing to learn from. The layer is the best on the test queries "
        "themselves, chosen after the fact: on other queries it can do worse, and another one can be better.",
        table=lambda: pd.DataFrame({"layer": vectors.layers, **{name: each.round(3) for name, each in curves.items()}}),
    )
