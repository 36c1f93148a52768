"""A ranking learnt from [CLS] vectors by logistic regression, beside word rankings, bi-encoder and cross-encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
import streamlit as st

from components.charts import curves as curve_charts
from components.charts.retrieval import evaluation as charts
from components.errors import InputError
from components.jobs import Cancelled
from components.retrieval.evaluation import metrics
from components.retrieval.evaluation.graded import metrics as graded_metrics
from components.retrieval.learnt import learnt_ranking, learnt_vectors
from dashboard import caching, settings
from dashboard.corpora import graded_sets, uploads
from dashboard.jobs import progress
from dashboard.jobs.embedding import EmbedRequest
from dashboard.jobs.evaluation import NoResult
from dashboard.ui import controls, figures, messages, page_header
from dashboard.ui.wording import counted, size
from dashboard.views.pairs import learnt_rankers
from dashboard.views.pairs.learnt_rankers import Candidates, Choice, Ranker, Source

if TYPE_CHECKING:
    from components.jobs import IsCancelled, ReportProgress
    from components.model.backend import Backend
    from components.model.trace import Pooling
    from components.retrieval.evaluation.graded.collection import GradedSet
    from components.retrieval.learnt.learnt_ranking import (
        ClassFigures,
        Combination,
        LearntRanking,
        Part,
        Report,
    )
    from components.retrieval.learnt.learnt_vectors import LearntVectors, Reading

MEASURE_HELP = (
    "MAP: the mean precision at the ranks of the relevant documents, over the whole ranking. P@10: the share of the first ten "
    "that is relevant. nDCG@10: the grades of the first ten, weighted by rank, relative to the best possible order."
)
READING_HELP = (
    "Apart: query and document go through the model one at a time, and their two vectors are combined. Together: both are "
    "one input, [CLS] query [SEP] document [SEP], and the vector is that of the pair; each pair needs a pass of its own."
)
FEATURES: dict[str, str] = {
    "product": "q × d, number by number",
    "difference": "|q − d|, number by number",
    "both": "|q − d| and q × d",
    "concatenation": "q and d, side by side",
    "all": "q, d, |q − d| and q × d",
}
C_HELP = "The inverse strength of regularisation: a small C keeps the coefficients small, a large one fits the training pairs."
SAME_ORDER = (
    "With q and d side by side, a linear function is a sum of one number for the query and one for the document: **every query "
    "gets the same order of documents**. It cannot learn how a document fits its query. Choose other features under “Options”."
)
ELSEWHERE = """\
from pathlib import Path
from components.model.backend import Backend
from components.retrieval.learnt import learnt_ranking, learnt_vectors

pairs = learnt_ranking.read_pairs(Path("bert-internals-pairs.json").read_bytes())
model = Backend.load("google-bert/bert-base-uncased")
vectors = learnt_vectors.vectors_of(model, pairs, "apart")  # or "together"
Path("vectors.npz").write_bytes(learnt_vectors.write_vectors(vectors))
"""
# (part, class, precision, recall, F1, support): another collection, model and way of choosing the pairs.
PUBLISHED = (
    ("test", "not relevant", 0.78, 0.88, 0.83, 1748),
    ("test", "relevant", 0.36, 0.21, 0.27, 556),
    ("train", "not relevant", 0.79, 0.97, 0.87, 4765),
    ("train", "relevant", 0.84, 0.34, 0.49, 1908),
)


def learnt(backend: Backend) -> None:
    """The measures of the learnt ranking beside others, its classification of pairs, and the same at every layer."""
    last = backend.facts.layers
    with controls.row():
        with st.container(width=round(170 * controls.scale())):
            layer = controls.number("learnt_layer", "Layer", 0, last, last, caching.glossary()["layer"])
        with st.container(width=round(110 * controls.scale())):
            c = float(controls.pick("learnt_c", "C", {text: text for text in settings.LEARNT_CS}, C_HELP))
        reading = cast(
            "Reading", controls.choice("learnt_reading", "Texts are read", learnt_rankers.READING, READING_HELP)
        )
        with controls.options():
            source = graded_sets.choose_source()
            field_slot = st.container()
            measure = learnt_rankers.MEASURES[
                controls.pick("learnt_measure", "Measure", learnt_rankers.MEASURES, MEASURE_HELP)
            ]
            pooling = cast(
                "Pooling",
                controls.choice(
                    "learnt_pooling", "Vector", learnt_rankers.POOLING_SHORT, caching.glossary()["pooling"]
                ),
            )
            features = cast(
                "Combination", controls.pick("learnt_features", "Features of two vectors read apart", FEATURES)
            )
            balanced = controls.switch(
                "learnt_balanced", "Balanced classes", "Relevant and other pairs get the same weight in all."
            )
            most = controls.number("learnt_queries", "Queries at most", 20, 2_000, 200)
            first = controls.number("learnt_first", "Candidates: the first … of BM25 and of the bi-encoder", 1, 50, 10)
            others = controls.number("learnt_others", "Candidates: random documents per query", 0, 100, 20)
            seed = controls.number("learnt_seed", "Seed of queries and split", 0, 9_999, 0)
            file = _uploaded()
    page_header.measures("No collection yet")
    graded = graded_sets.collection_of(source, field_slot)
    if graded is None:
        return
    page_header.measures(graded.name, counted(len(graded.documents), "document"))
    choice = Choice(layer, pooling, features, c, balanced, seed)
    above, waiting, below = st.container(), st.container(), st.container()
    with waiting, progress.one_bar():
        request = EmbedRequest.of_session(backend, exact=True)
        try:
            candidates, key, indexes = learnt_rankers.candidates_of(request, graded, most, first, others, seed)
        except NoResult:
            return
        file = _fitting(file, candidates)
        main = learnt_rankers.of_model(request, candidates, key, reading, choice, file, "m", indexes)
        if main is None:
            return
        rankers = [Ranker.of(learnt_rankers.name_of(choice, is_file=main.is_file), main.learnt.ranks, is_learnt=True)]
        rankers += learnt_rankers.references(candidates, main, choice)
        rankers += learnt_rankers.other_encoders(backend, candidates, key, reading, choice, file)
        rankers += learnt_rankers.cross_encoder(candidates, key)
    with above:
        _ranking_figure(rankers, measure, candidates, reading, choice)
    with below:
        _precision_figure(main.learnt.ranking)
        _reports(main.learnt.ranking)
        _ranking_table(rankers, measure)
        _layers(main, candidates, choice, measure)
        _files(candidates, main)
        _about(graded, candidates, reading)


@dataclass(frozen=True)
class _Standing:
    """How a ranking stands to the learnt one in a measure."""

    difference: float  # learnt minus this
    p: float  # adjusted for the number of rankings (Holm)

    @property
    def is_clear(self) -> bool:
        return self.p < metrics.ALPHA


def _standings(rankers: Sequence[Ranker], measure: str) -> dict[str, _Standing]:
    """Each ranking but the first, compared with the first over the same queries."""
    own, others = rankers[0].values[measure], rankers[1:]
    p_values = [metrics.randomisation_test(own, other.values[measure]) for other in others]
    return {
        other.name: _Standing(float((own - other.values[measure]).mean()), p)
        for other, p in zip(others, metrics.holm(p_values), strict=True)
    }


def _answer(rankers: Sequence[Ranker], measure: str) -> str:
    """The answer to the page's question, in a line."""
    standings = _standings(rankers, measure)
    value = 100 * rankers[0].values[measure].mean()
    best_words = max(("BM25", "Jelinek-Mercer"), key=lambda name: -standings[name].difference)

    def is_better(name: str) -> bool:
        return standings[name].is_clear and standings[name].difference > 0

    cosine = next((other for other in rankers if other.name.startswith("Cosine")), None)
    adds_nothing = cosine is not None and not is_better(cosine.name)
    verdict = "Partly" if adds_nothing or not is_better(best_words) else "Yes"
    if not is_better("Random order"):
        verdict = "No"
    named = {
        words: [
            messages.escape(other.name)
            for other in rankers[1:]
            if not other.is_learnt and other.name != "Random order" and other is not cosine
            if (standings[other.name].is_clear, standings[other.name].difference > 0) == (True, is_above)
        ]
        for words, is_above in (("better than", True), ("worse than", False))
    }
    if not is_better(best_words) and best_words not in named["worse than"]:
        named["not better than"] = [best_words]
    if cosine is not None and adds_nothing:
        named["worse than"] = []  # the bars show it, and the line stays short enough for a phone
        named["not better than"] = [f"plain cosine ({100 * cosine.values[measure].mean():.1f} %)"]
    parts = [f"{words} {', '.join(names)}" for words, names in named.items() if names]
    if verdict == "No":
        parts.insert(0, "not better than a random order")
    return f"**{verdict}.** Learnt {measure} {value:.1f} %: {'; '.join(parts) or 'no clear difference'}."


def _ranking_figure(
    rankers: Sequence[Ranker], measure: str, candidates: Candidates, reading: Reading, choice: Choice
) -> None:
    """The first figure: a bar for each way of ranking."""
    bars = []
    for ranker in rankers:
        interval = metrics.interval(ranker.values[measure])
        value, low, high = (100 * each for each in (interval.value, interval.low, interval.high))
        bars.append(charts.RankedBar(ranker.name, value, low, high, ranker.is_learnt))
    pairs, split = candidates.pairs, candidates.split
    figures.figure(
        charts.ranking_bars(
            bars, f"{measure} of {counted(len(split.test), 'test query', 'test queries')}", measure=measure
        ),
        key="learnt_rankings",
        alt=f"{measure} of {len(bars)} ways of ranking, with intervals",
        message=_answer(rankers, measure),
        read=f"Each bar is a way of ranking all {len(pairs.documents):,} documents for {len(split.test)} queries that "
        f"the regression has not seen; orange is learnt, from {counted(len(split.train), 'other query', 'other queries')}. The "
        "thin line is the 95 % interval. “Cosine” takes the same vectors and learns nothing. Better or worse means "
        "p < 0.05 in a randomisation test over the queries, adjusted for the number of rankings (Holm).",
        not_shown=(
            "The cross-encoder"
            + (", and the learnt ranking of pairs read together," if reading == "together" else "")
            + " would need a pass for each document. It sorts only the first documents of BM25 and of the bi-encoder; the "
            "others follow in the bi-encoder's order. The included cross-encoder was trained on similar sentences, not on "
            "search, and is no better at ranking than the bi-encoder. Documents that nobody judged count as not relevant."
        ),
        table=lambda: _rankings(rankers),
    )
    if reading == "apart" and choice.features == "concatenation":
        st.info(SAME_ORDER, icon=":material/info:")


def _rankings(rankers: Sequence[Ranker]) -> pd.DataFrame:
    """The means of all measures, in per cent."""
    return pd.DataFrame(
        [
            {
                "ranking": ranker.name,
                **{name: round(100 * float(ranker.values[name].mean()), 2) for name in ranker.values},
            }
            for ranker in rankers
        ]
    )


def _ranking_table(rankers: Sequence[Ranker], measure: str) -> None:
    st.subheader("All measures", anchor=False)
    standings = _standings(rankers, measure)
    table = _rankings(rankers)
    table[f"learnt differs ({measure})"] = [
        "the learnt ranking" if ranker is rankers[0] else _words(standings[ranker.name]) for ranker in rankers
    ]
    digits = {name: st.column_config.NumberColumn(format="%.1f") for name in learnt_rankers.MEASURES.values()}
    st.dataframe(table, hide_index=True, key="learnt_table", column_config=digits)
    st.caption(
        "Means over the test queries, in per cent. The last column: the first row's lead over each other one, with its p-value "
        "(randomisation test, adjusted by Holm's method)."
    )
    figures.download(table, "learnt-rankings")


def _words(standing: _Standing) -> str:
    p = "p < 0.001" if standing.p < 0.001 else f"p = {standing.p:.3f}"
    return f"{100 * standing.difference:+.1f}, {p}"


def _precision_figure(ranking: LearntRanking) -> None:
    test, train = ranking.curves["test"], ranking.curves["train"]
    levels = np.linspace(0, 100, graded_metrics.LEVELS)
    figures.figure(
        charts.pair_precision(
            [
                ("test pairs", 100 * test.recall, 100 * test.precision),
                ("training pairs", 100 * train.recall, 100 * train.precision),
            ],
            100 * test.chance,
            "Precision and recall of single pairs",
            points=("test pairs, 11 points", levels, 100 * test.interpolated),
        ),
        key="learnt_precision",
        alt="Precision over recall of the pairs of the test and of the training queries",
        message=f"Average precision is {100 * test.average_precision:.1f} % on test pairs and "
        f"{100 * train.average_precision:.1f} % on training pairs; by chance {100 * test.chance:.1f} %.",
        read="All pairs are sorted together by the learnt function, those of all queries. From left to right the threshold "
        "falls: more relevant pairs are found (recall), and a smaller share of the pairs above the threshold is relevant "
        "(precision). The diamonds are the best precision at that recall or beyond. A training curve far above the test curve "
        "means that the regression has learnt its own pairs by heart: try a smaller C.",
        not_shown="Rankings: a query has its own threshold there. The figure above shows how well each query's documents are "
        "ordered.",
        table=lambda: pd.DataFrame(
            {"recall": levels / 100, "interpolated precision, test": test.interpolated.round(4)}
        ),
    )


def _reports(ranking: LearntRanking) -> None:
    st.subheader("Relevant or not: the classification", anchor=False)
    rows = [row for part in ("test", "train") for row in _report_rows(part, ranking.reports[part])]
    table = pd.DataFrame(rows, columns=["part", "class", "precision", "recall", "F1", "pairs", "accuracy"])
    figures.plain_table(table.map(_two_digits))
    figures.download(table, "learnt-classification")
    if not ranking.has_converged:
        st.warning(f"The solver stopped after {ranking.steps:,} steps, before it had converged. Choose a smaller C.")
    with st.expander("Published figures, for orientation", icon=":material/menu_book:", key="learnt_published"):
        published = pd.DataFrame(PUBLISHED, columns=["part", "class", "precision", "recall", "F1", "pairs"])
        figures.plain_table(published.map(_two_digits))
        st.caption(
            "Logistic regression on [CLS] vectors of **another collection**: on test pairs an accuracy of 0.72, where always "
            "answering “not relevant” gives 0.76. They are for orientation only and cannot be compared with the table above: "
            "the texts, the model and the choice of pairs differ. There the training pairs were classified better than the "
            "test pairs, and few of the relevant pairs were found."
        )


def _report_rows(part: Part, report: Report) -> list[tuple[object, ...]]:
    """The rows of the two classes, of all pairs, and of a classifier that always gives the larger class."""

    def row(name: str, figures: ClassFigures) -> tuple[object, ...]:
        return part, name, figures.precision, figures.recall, figures.f1, figures.support, None

    total = report.not_relevant.support + report.relevant.support
    larger = "not relevant" if report.not_relevant.support >= report.relevant.support else "relevant"
    return [
        row("not relevant", report.not_relevant),
        row("relevant", report.relevant),
        (part, "all pairs", None, None, None, total, report.accuracy),
        (part, f"always “{larger}”", None, None, None, total, report.majority),
    ]


def _two_digits(value: object) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    return f"{value:.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _layers(main: Source, candidates: Candidates, choice: Choice, measure: str) -> None:
    """Which layer's vectors carry most: the regression trained once for each layer, on request."""
    st.subheader("Which layer carries most?", anchor=False)
    vectors = main.vectors
    key = (*main.key, "layers", replace(choice, layer=0))
    asked_for = st.session_state.setdefault("_learnt_layers", set())
    if key not in asked_for and caching.preparations().find(key) is None:
        st.caption(
            f"The same regression, trained once for each of {len(vectors.layers)} layers. No text is read again."
        )
        st.button(
            "Train for every layer",
            key="learnt_every_layer",
            icon=":material/layers:",
            on_click=asked_for.add,
            args=(key,),
        )
        return

    def work(report_progress: ReportProgress, is_cancelled: IsCancelled) -> dict[str, np.ndarray]:
        """The measures of the learnt ranking, and of the plain cosine, at each layer: [measure, layer]."""
        rows: dict[str, list[list[float]]] = {"learnt": [], "cosine": []}
        for done, layer in enumerate(vectors.layers):
            report_progress(done, len(vectors.layers))
            if is_cancelled():
                raise Cancelled
            learnt = replace(choice, layer=layer).learnt(vectors, candidates, is_cancelled)
            for name, ranks in (("learnt", learnt.ranks), ("cosine", learnt.unlearnt)):
                rows[name].append(
                    [
                        np.nan if ranks is None else 100 * float(graded_metrics.MEASURES[each](ranks).mean())
                        for each in learnt_rankers.MEASURES.values()
                    ]
                )
        return {name: np.array(values).T for name, values in rows.items()}

    result = progress.prepared(key, f"Learning at {len(vectors.layers)} layers", work, "learnt_layers")
    if result is None:
        return
    row = list(learnt_rankers.MEASURES.values()).index(measure)
    curves = {
        f"learnt from {learnt_rankers.POOLING_SHORT[choice.pooling]}": result["learnt"][row],
        "cosine, nothing learnt": result["cosine"][row],
    }
    curves = {name: values for name, values in curves.items() if np.isfinite(values).all()}
    best = int(np.argmax(result["learnt"][row]))
    figures.figure(
        curve_charts.layer_curves(
            np.stack(list(curves.values())),
            list(curves),
            f"{measure} of the test queries by layer",
            y_title=f"{measure} (%)",
        ),
        key="learnt_by_layer",
        alt=f"{measure} of the learnt ranking at each layer",
        message=f"Layer {vectors.layers[best]} carries most: {measure} is {result['learnt'][row][best]:.1f} % there.",
        read="One point for each layer whose vectors the regression was trained on, with the same C, features and split.",
        not_shown="Which C suits each layer best: here it is the same at all of them. At layer 0 the [CLS] vectors of texts "
        "read apart are all equal, so that there is nothing to learn from. The layer is the best on the test queries "
        "themselves, chosen after the fact: on other queries it can do worse, and another one can be better.",
        table=lambda: pd.DataFrame({"layer": vectors.layers, **{name: each.round(3) for name, each in curves.items()}}),
    )


def _uploaded() -> LearntVectors | None:
    file = uploads.uploader("pair_vectors", "Vectors made elsewhere (.npz)", key="learnt_file", type=["npz"])
    return uploads.kept(
        "pair_vectors",
        caching.pair_vectors(),
        file,
        lambda file, is_cancelled: learnt_vectors.read_vectors(file.getvalue(), file.name),
    )


def _fitting(file: LearntVectors | None, candidates: Candidates) -> LearntVectors | None:
    """The uploaded vectors, unless they are of other texts, which a message explains."""
    if file is None:
        return None
    try:
        learnt_vectors.check_fit(file, candidates.pairs, "the uploaded file")
    except InputError as problem:
        messages.explain(problem, "using the uploaded vectors")
        return None
    return file


def _files(candidates: Candidates, main: Source) -> None:
    """Saving the pairs and the vectors."""
    with st.expander("Vectors as a file", icon=":material/save:", key="learnt_files"):
        st.markdown(
            "Save the pairs, make their vectors on another machine (with a GPU, or with a larger model), and upload the file "
            "under “Options”. The model's name, its revision and a hash of the texts are in the file; it is refused if the "
            "texts are others. Vectors of a model that is not chosen here become one more ranking."
        )
        with st.container(horizontal=True):
            st.download_button(
                "Save the pairs (JSON)",
                partial(learnt_ranking.write_pairs, candidates.pairs),
                file_name="bert-internals-pairs.json",
                mime="application/json",
                key="learnt_save_pairs",
                icon=":material/download:",
                on_click="ignore",
            )
            st.download_button(
                f"Save the vectors (.npz, {size(main.vectors.nbytes)})",
                partial(learnt_vectors.write_vectors, main.vectors),
                file_name="bert-internals-vectors.npz",
                mime="application/octet-stream",
                key="learnt_save_vectors",
                icon=":material/download:",
                on_click="ignore",
            )
        st.code(ELSEWHERE, language="python")


def _about(graded: GradedSet, candidates: Candidates, reading: Reading) -> None:
    pairs, split = candidates.pairs, candidates.split
    st.caption(
        f"**{messages.escape(graded.name)}**: {len(pairs):,} pairs of {counted(len(pairs.queries), 'query', 'queries')}, of "
        f"which {100 * pairs.is_relevant.mean():.0f} % are relevant. {len(split.train)} queries are for training and "
        f"{len(split.test)} for the test, stratified by BM25's P@10; no query is in both, but documents can be."
        + (f" {graded_sets.DEMO_GRADES}" if not graded.report.files else "")
        + (
            f" Of {len(graded.documents):,} documents {len(pairs.documents):,} are ranked."
            if len(pairs.documents) < len(graded.documents)
            else ""
        )
        + (" Of pairs read together only the candidates have vectors." if reading == "together" else "")
    )
