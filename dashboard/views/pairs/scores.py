"""One query against many documents: what the scores are, and what a threshold does."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
import streamlit as st

from components import numbers
from components.analysis import pair_scales
from components.arrays import read_only
from components.charts import histogram
from components.charts.retrieval import thresholds
from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY
from components.retrieval.evaluation import threshold
from components.retrieval.evaluation.threshold import ThresholdAnalysis
from components.retrieval.search.exact import top
from components.shown_code.arrays import of_table
from components.shown_code.written import literal
from dashboard import caching, state
from dashboard.corpora import current, marks
from dashboard.jobs import embedding, requests, reranking
from dashboard.jobs.embedding import EmbedRequest
from dashboard.ui import controls, figures, messages, model_gate
from dashboard.ui.waiting import before_work
from dashboard.ui.wording import counted

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from components.analysis.pair_scales import Scale
    from components.arrays import Float32, Int64
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.evaluation.threshold import Confusion
    from components.shown_code.arrays import Kind
    from dashboard.jobs.reranking import SecondStage

MOST_DOCUMENTS = 5_000
FEW_HITS = 10  # whose topics are counted to find the query's
MOST_TOPICS = 200  # with more different values a column is no list of topics
SCALE_NAMES = {"logit": "Raw logit", "sigmoid": "Sigmoid", "softmax": "Softmax"}
RELEVANT_BY = {"topic": "Same topic", "own": "Its own document", "marks": "Marks on Search"}
MEND = {
    "topic": "Choose another topic, or more documents, under “Options”.",
    "own": "Press “A query of the corpus” under “Options”: it takes a query whose document is known.",
    "marks": "Mark documents with ✓ on the Search page, or choose another answer to “Relevant is”.",
}  # what to do where no scored document is relevant


@dataclass(frozen=True, eq=False)
class _Scored:
    """The scored documents of a query."""

    rows: Int64  # [document] of the corpus
    cosines: Float32  # [document], by the vectors of the main model
    scores: np.ndarray  # float64 [document], on the chosen scale
    relevant: np.ndarray  # bool [document]
    unit: str  # what the score is


def scores(backend: Backend) -> None:
    """Draw what the threshold does: the histogram, the precision-recall curve, and the confusion matrix."""
    corpus = current.corpus()
    with controls.row():
        controls.bind(
            "query",
            st.text_input,
            "Query",
            max_chars=1_000,
            placeholder="Type a query and press Enter",
            after_change=_new_query,
        )
        relevant_by = _relevant_by(corpus)
        slot = st.container(width=round(270 * controls.scale()))  # for the threshold, when the scores are known
        panel = controls.options()
    with panel:
        _documents_options(corpus)
    query = str(state.get("query"))
    if not query.strip():
        st.info("**No query yet.** Type a few words.", icon=":material/edit:")
        return
    stage = model_gate.cross_encoder_stage()
    if stage is None:
        return
    scorer, label = stage.backend, stage.label or 0
    with panel:
        scale = _scale(stage)
    cosines = _cosines(backend, corpus, query)
    relevant, meaning = _relevant(corpus, query, relevant_by, cosines, panel)
    rows = _chosen_rows(cosines, min(int(state.get("scored_documents")), len(corpus)))
    logits = _logits(stage, corpus, query, rows)
    values = pair_scales.on_scale(logits, scale)[:, label]
    labels = scorer.pair_labels()
    unit = f"{SCALE_NAMES[scale].lower()}{'' if len(labels) == 1 else f' of {labels[label]}'}"
    if len(rows) < len(corpus):
        meaning += (
            f" {len(rows):,} of {len(corpus):,} documents are scored, as chosen under “Options”: half of them the first by the "
            "vectors, the others at random."
        )
    if left_out := int(relevant.sum() - relevant[rows].sum()):
        meaning += f" {counted(left_out, 'other relevant document')} {'was' if left_out == 1 else 'were'} not scored."
    scored = _Scored(rows, cosines[rows], values, relevant[rows], unit)
    if not scored.relevant.any():
        none = f"**None of the {counted(len(rows), 'scored document')} is relevant.** {meaning} {MEND[relevant_by]}"
        st.info(none, icon=":material/rule:")
        return
    analysis = threshold.analyse(scored.scores, scored.relevant)
    with slot:
        chosen = _threshold(scored, analysis, scale)
    by_vectors = threshold.analyse(scored.cosines, scored.relevant).average_precision
    _drawn(scored, corpus, analysis, chosen, scale, by_vectors)
    if state.get("threshold") is None:
        meaning += " Until you move the threshold, it is the one with the highest F1 on these documents."
    st.markdown(meaning)
    st.markdown(
        f"**Average precision**, over all thresholds: {_per_cent(analysis.average_precision)} by "
        f"{messages.escape(scorer.spec.title)}; {_per_cent(by_vectors)} by the cosine of "
        f"{messages.escape(backend.spec.title)}'s vectors on the same documents; about "
        f"{_per_cent(float(scored.relevant.mean()))} by chance."
    )
    if scale != "logit":
        st.warning(
            f"**The {scale} is not a calibrated probability.** Of documents with {scale} 0.8 not 80 % need be relevant: "
            "the numbers follow from the pairs that the model was trained on, and nothing makes them match your documents.",
            icon=":material/balance:",
        )
    figures.reading(
        "Orange bars count relevant documents, blue bars all others; each grid line means ten times as many. What lies right "
        "of the dashed line, the threshold, is accepted. The large point on the curve is the same threshold: a higher one "
        "accepts fewer documents, which lowers recall and usually raises precision. At recall 0 nothing is accepted, and the "
        "curve ends at a precision of 100 % by convention. The confusion matrix counts the same "
        "documents: right decisions are drawn stronger.",
        "How the threshold does on other queries: the best one here was chosen on the same documents, and is too good. "
        "Labels such as a topic are coarse. Recall counts only the scored documents.",
    )


def _new_threshold() -> None:
    state.put("threshold", None)


def _new_query() -> None:
    state.put("relevant_topic", None)
    _new_threshold()


def _documents_options(corpus: Corpus) -> None:
    most = min(len(corpus), MOST_DOCUMENTS)
    least = min(50, most)
    if least < most:
        controls.bind(
            "scored_documents",
            st.slider,
            "Documents",
            default=min(200, most),
            min_value=least,
            max_value=most,
            to_widget=lambda value: min(max(value, least), most),
            help="Half of them are the first by the model's vectors, the others a random sample of the rest. Each is read "
            "together with the query: one pass through the cross-encoder.",
        )
        controls.bind("sample_seed", st.number_input, "Seed of the sample", min_value=0, max_value=9_999, step=1)
    if current.query_column(corpus) is not None:
        st.button(
            "A query of the corpus",
            key="corpus_query",
            icon=":material/casino:",
            help="Takes one at random, with its own document as the relevant one",
            on_click=_take_query,
        )


def _take_query() -> None:
    corpus = current.in_use()
    column = current.query_column(corpus)
    queries = [] if column is None else sorted({text for text in corpus.columns[column] if text.strip()})
    if queries:
        number = st.session_state["_corpus_query"] = st.session_state.get("_corpus_query", -1) + 1
        state.put("query", str(np.random.default_rng(number).choice(queries))[:1_000])
        _new_query()


def _relevant_by(corpus: Corpus) -> str:
    offered = {
        key: name
        for key, name in RELEVANT_BY.items()
        if key == "marks"
        or (key == "topic" and current.topics(corpus, MOST_TOPICS) is not None)
        or (key == "own" and current.query_column(corpus) is not None)
    }
    return controls.pick(
        "relevant_by",
        "Relevant is",
        offered,
        "Which documents count as relevant to the query: those of one topic, the document that the query belongs to, or "
        "those that you marked with ✓ on the Search page",
        default=next(iter(offered)),
        after_change=_new_threshold,
    )


def _scale(stage: SecondStage) -> Scale:
    """The chosen scale; with it the label is chosen, where there are several."""
    labels = stage.backend.pair_labels()
    offered: dict[str, str] = {name: SCALE_NAMES[name] for name in pair_scales.scales_for(len(labels))}
    scale = controls.choice(
        "score_scale",
        "Scale",
        offered,
        "The head gives a logit, any real number. The sigmoid maps each to 0–1; the softmax maps those of all labels "
        "together. Neither is a calibrated probability.",
        default="logit",
        after_change=_new_threshold,
    )
    model_gate.label_choice(stage, after_change=_new_threshold)
    return cast("Scale", scale)


def _cosines(backend: Backend, corpus: Corpus, query: str) -> Float32:
    """The cosine of the query with each document, by the main model's vectors. Raises NotReady."""
    request = EmbedRequest.of_session(backend)
    index = embedding.index_of(request, corpus, "pairs")
    before_work.other_layers(request, corpus, "pairs")
    layer, pooling = reranking.cell_of(backend, index)
    vectors = caching.query_vectors(backend, (query,), index.info)
    return index.engine(layer, pooling).scores(vectors[layer, pooling][0], "cosine")


def _relevant(
    corpus: Corpus, query: str, relevant_by: str, cosines: Float32, panel: DeltaGenerator
) -> tuple[np.ndarray, str]:
    """Which documents of the corpus are relevant, bool [document], and a sentence that says what counts as relevant."""
    own = current.own_rows(corpus, query)
    flags = np.zeros(len(corpus), bool)
    if relevant_by == "own":
        flags[list(own)] = True
        column = current.query_column(corpus)
        meaning = f"The document whose query (column “{messages.escape(str(column))}”) is this one counts as relevant."
        return flags, meaning
    if relevant_by == "marks":
        judged = marks.judgements(corpus).of(query)
        marked = [row for row, is_relevant in judged.items() if is_relevant]
        flags[marked] = True
        return (
            flags,
            "The documents that you marked with ✓ for this query on the Search page count as relevant, all others as not "
            "relevant.",
        )
    topics = current.topics(corpus, MOST_TOPICS) or ()
    likely = Counter(topics[row] for row in (own or top(cosines, FEW_HITS).tolist()))
    names = sorted(set(topics))
    with panel:
        topic = controls.pick(
            "relevant_topic",
            "Topic",
            {name: name or "(none)" for name in names},
            "Until you choose, the topic of the query's own document, or of most of the first ten by the model's vectors",
            default=likely.most_common(1)[0][0],
            after_change=_new_threshold,
        )
    meaning = f"Documents with the topic “{messages.escape(topic)}” count as relevant."
    return np.array([name == topic for name in topics]), meaning


def _chosen_rows(cosines: Float32, count: int) -> Int64:
    """Half are the best rows by the vectors, half a seeded sample of the others; ascending, int64 [document]."""
    if count >= len(cosines):
        return np.arange(len(cosines))
    first = top(cosines, -(-count // 2))
    rest = np.setdiff1d(np.arange(len(cosines)), first)
    sample = np.random.default_rng(int(state.get("sample_seed"))).choice(rest, count - len(first), replace=False)
    return np.sort(np.concatenate([first, sample]))


def _logits(stage: SecondStage, corpus: Corpus, query: str, rows: Int64) -> Float32:
    """The logits of the query with each document, float32 [document, label]. Raises NotReady."""
    scorer, documents = stage.backend, [corpus.texts[row] for row in rows]
    chosen = hashlib.sha256(np.asarray(rows, np.int64).tobytes()).hexdigest()
    key = ("pair logits", scorer.spec.key, scorer.revision, corpus.content_hash, query, chosen, stage.max_length)

    def work(report_progress: ReportProgress, is_stopped: IsStopped) -> Float32:
        return read_only(
            scorer.pair_logits(
                [query] * len(documents),
                documents,
                max_length=stage.max_length,
                progress=report_progress,
                is_stopped=requests.unless_left(key, is_stopped),
            )
        )

    requests.stop_previous("scores", key)
    return requests.prepared(key, f"Reading the query with {counted(len(rows), 'document')}", work, "pair_scores")


def decision(confusion: Confusion, relevant: int, threshold_text: str) -> str:
    """What the threshold does, in a line."""
    accepted = confusion.true_positives + confusion.false_positives
    if not accepted:
        return f"**Nothing is accepted:** no score reaches {threshold_text}. Move the threshold to the left."
    others = counted(confusion.false_positives, "other") if confusion.false_positives else "no other"
    return (
        f"At {threshold_text} the cross-encoder accepts **{confusion.true_positives:,} of "
        f"{counted(relevant, 'relevant document')}** and **{others}**."
    )


def beside_cosine(joint: float, by_vectors: float) -> str:
    """How well reading together ranks the documents, and how well their vectors do, by average precision 0..1, in a line."""
    digits = 1 if f"{100 * joint:.0f}" == f"{100 * by_vectors:.0f}" else 0
    ours, theirs = (numbers.number(100 * value, digits) for value in (joint, by_vectors))
    said = "as is plain cosine's" if ours == theirs else f"plain cosine's {theirs} %"
    return f"Its average precision is {ours} %, {said}."


def _drawn(
    scored: _Scored,
    corpus: Corpus,
    analysis: ThresholdAnalysis,
    chosen: float,
    scale: Scale,
    by_vectors: float,
) -> None:
    """What the threshold does: its line, the histogram, the precision-recall curve, and the four numbers."""
    confusion = analysis.at(chosen)
    relevant = int(scored.relevant.sum())
    st.markdown(
        f":material/insights: {decision(confusion, relevant, _written(chosen, scale))} "
        f"{beside_cosine(analysis.average_precision, by_vectors)}"
    )
    left, right = st.columns([3, 2])
    of_all: dict[str, tuple[str, Kind]] = {"scores": (scored.unit, "numbers"), "relevant": ("relevant", "flags")}
    with left:
        figures.figure(
            histogram.two_histograms(
                scored.scores,
                scored.relevant,
                f"Scores of {counted(len(scored.rows), 'document')}",
                value=scored.unit,
                x_title=f"score ({scored.unit}, {'any number' if scale == 'logit' else 'from 0 to 1'})",
                threshold=chosen,
            ),
            key="pair_histogram",
            code=of_table(
                "pair_histogram",
                of_all,
                (),
                f"edges = np.histogram_bin_edges(np.append(scores, {literal(chosen)}), {histogram.BINS})",
                "values = [np.histogram(scores[group], edges)[0] for group in (~relevant, relevant)]",
                "print(values)  # [bin] of the others, and of the relevant documents",
            ),
            alt=f"Two histograms of scores: {counted(relevant, 'relevant document')} and "
            f"{counted(len(scored.rows) - relevant, 'other')}",
            table=lambda: _table(scored, corpus, chosen),
        )
    with right:
        recall, precision = 100 * analysis.recall, 100 * analysis.precision
        figures.figure(
            thresholds.threshold_curves(
                [("every threshold", recall, precision)],
                100 * relevant / len(scored.rows),
                "Precision and recall",
                thresholds=analysis.thresholds,
                chosen=(100 * confusion.recall, 100 * confusion.precision),
                height=300,
            ),
            key="pair_curve",
            code=of_table(
                "pair_histogram",
                of_all,
                (threshold.precision_and_recall,),
                "hits, others = np.sort(scores[relevant]), np.sort(scores[~relevant])",
                "thresholds, precision, recall = precision_and_recall(hits, others)",
                "values = 100 * np.array([recall, precision])",
                "print(values)  # [measure, threshold]",
            ),
            alt=f"Precision over recall at every threshold; now recall {_per_cent(confusion.recall)}, precision "
            f"{_per_cent(confusion.precision)}",
            table=lambda: pd.DataFrame(
                {
                    "threshold": np.append(analysis.thresholds, np.nan),
                    "precision (%)": precision.round(3),
                    "recall (%)": recall.round(3),
                }
            ),
        )
    if analysis.average_precision < by_vectors and state.get("cross_encoder") == EMBEDDED_CROSS_ENCODER_KEY:
        st.caption("Cosine ranks better here: the included cross-encoder was trained on similarity, not on relevance.")
    _matrix(confusion, scale, chosen)


def _digits(scale: Scale) -> int:
    return 2 if scale == "logit" else 3


def _written(value: float, scale: Scale) -> str:
    """A threshold with enough decimals that one near 0 or 1 does not look like 0 or 1."""
    digits = _digits(scale)
    while scale != "logit" and digits < 9 and 0 < abs(value - round(value)) < 10**-digits:
        digits += 1
    return numbers.number(value, digits)


def _threshold(scored: _Scored, analysis: ThresholdAnalysis, scale: Scale) -> float:
    """The slider's threshold; until a person moves it, the very score with the highest F1.

    Its step is too wide for that one: a sigmoid of 0.00061 would become 0.001, and reject what it should accept.
    """
    step, digits = 10 ** -_digits(scale), _digits(scale)
    low, high = 0.0, 1.0
    if scale == "logit":
        low = math.floor(10 * float(scored.scores.min())) / 10
        high = math.ceil(10 * float(scored.scores.max())) / 10 + 0.1
    low, high = round(low, digits), round(high, digits)
    best = analysis.best_f1()
    on_slider = controls.bind(
        "threshold",
        st.slider,
        f"Threshold ({scored.unit})",
        default=round(best, digits),
        min_value=low,
        max_value=high,
        step=step,
        format=f"%.{digits}f",
        to_widget=lambda thousandths: round(thousandths / 1_000, digits),
        from_widget=lambda value: round(1_000 * value),
        describe=lambda thousandths: f"{thousandths / 1_000:g}",
        help="A document is accepted if its score is at least this. Until you move the slider, the threshold is the score "
        f"with the highest F1 on these documents; the slider shows it in steps of {step:g}.",
    )
    return best if state.get("threshold") is None else float(on_slider)


def _matrix(confusion: Confusion, scale: Scale, chosen: float) -> None:
    """The confusion matrix and what follows from it."""
    found, missed = confusion.true_positives, confusion.false_negatives
    wrong, rejected = confusion.false_positives, confusion.true_negatives
    left, right = st.columns([3, 2])
    with left:
        figures.figure(
            thresholds.confusion_matrix(
                found,
                missed,
                wrong,
                rejected,
                "Confusion matrix",
                threshold=_written(chosen, scale),
                dark=controls.is_dark(),
            ),
            key="pair_confusion",
            code=of_table(
                "pair_histogram",
                {"accepted": ("accepted", "flags"), "relevant": ("relevant", "flags")},
                (),
                "values = [[(group & side).sum() for side in (accepted, ~accepted)] for group in (relevant, ~relevant)]",
                "print(values)  # [relevant or not, accepted or rejected]",
            ),
            alt=f"Confusion matrix: {found} relevant documents found, {missed} missed, {wrong} other documents accepted, "
            f"{rejected} rejected",
            table=lambda: pd.DataFrame(
                {"": ["relevant", "not relevant"], "accepted": [found, wrong], "rejected": [missed, rejected]}
            ),
        )
    larger = "relevant" if confusion.majority_is_relevant else "not relevant"
    of_relevant = (
        ("Precision", confusion.precision, "The share of the accepted documents that are relevant"),
        ("Recall", confusion.recall, "The share of the relevant documents that are accepted"),
        ("F1", confusion.f1, "The harmonic mean of precision and recall: high only if both are"),
    )
    of_all = (
        ("Accuracy", confusion.accuracy, "The share of all documents that are rightly accepted or rightly rejected"),
        (
            f"Always “{larger}”",
            confusion.majority,
            "The accuracy of one answer for all documents, which needs no score: the share of the larger class. An accuracy "
            "says something only if it is higher.",
        ),
    )
    with right:
        for measures, key, widths in (
            (of_relevant, "pair_measures", (135,) * 3),
            (of_all, "pair_accuracy", (135, 205)),
        ):
            with st.container(horizontal=True, key=key):
                for (name, value, meaning), width in zip(measures, widths, strict=True):
                    st.metric(name, _per_cent(value), help=meaning, width=round(width * controls.scale()))


def _per_cent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _table(scored: _Scored, corpus: Corpus, chosen: float) -> pd.DataFrame:
    order = np.argsort(-scored.scores, kind="stable")
    rows = scored.rows[order]
    own = {
        "number": rows,
        scored.unit: scored.scores[order],
        "relevant": scored.relevant[order],
        "accepted": scored.scores[order] >= chosen,
        "cosine of vectors": scored.cosines[order].round(6),
        "text": [corpus.texts[row] for row in rows],
    }
    return pd.DataFrame(own | figures.corpus_columns(own, corpus.columns, rows))
