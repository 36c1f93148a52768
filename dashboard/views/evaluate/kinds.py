"""Two kinds of search: the same runs on questions with passages, and on sentences with paraphrases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pandas as pd
import streamlit as st

from components.charts.retrieval import run_bars
from components.numbers import enumerated, percent
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.evaluation import metrics
from components.retrieval.evaluation.pair_runs import pairs_of_corpus
from components.retrieval.search.lexical import TITLES
from components.retrieval.search.words import shared_share
from components.shown_code.code import Command
from components.shown_code.commands import measured
from dashboard import caching
from dashboard.corpora import word_rankings
from dashboard.jobs import evaluation
from dashboard.jobs.embedding import EmbedRequest
from dashboard.ready_made import ASSETS
from dashboard.ui import controls, figures, messages, model_gate, page_header
from dashboard.ui.waiting import frame
from dashboard.ui.wording import SIMILARITY_NAMES, counted

if TYPE_CHECKING:
    from components.arrays import Int64
    from components.model.backend import Backend
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.evaluation.similarities import Retrieval
    from components.retrieval.rankings.ranking import Ranking
    from components.retrieval.search.exact import Similarity

CUTOFFS = (1, 5, 10)
WORDS = "bm25"
LEAST_SHARED = 0.005  # a share that is written as 0 %


@dataclass(frozen=True)
class SearchKind:
    """One kind of search, with the names of its collection's columns."""

    title: str  # of its panel
    query: str
    document: str


KINDS = {
    "questions": SearchKind("Questions → passages (asymmetric)", "question", "passage"),
    "paraphrases": SearchKind("Sentences → paraphrases (symmetric)", "sentence", "paraphrase"),
}


@dataclass(frozen=True, eq=False)
class KindRun:
    """A run on both collections."""

    name: str
    rankings: Mapping[str, Ranking]  # by kind

    def ranks(self, kind: str) -> Int64:
        """The rank of each query's correct answer, [query]."""
        return metrics.first_ranks(self.rankings[kind].ranks)


def collection(kind: str) -> Pairs:
    """One of the two collections that come with the dashboard."""
    columns = KINDS[kind]
    name = f"{kind}.jsonl"
    return caching.pair_sets().get(
        name,
        lambda: pairs_of_corpus(
            read_corpus(ASSETS / "collections" / name, name, columns.document, limits=None), columns.query
        ),
    )


def kinds(backend: Backend) -> None:
    """Recall of the models and of a word ranking on both collections, and the queries that a model misses."""
    pairs = {kind: collection(kind) for kind in KINDS}
    page_header.measures("Questions and paraphrases", counted(sum(map(len, pairs.values())), "pair"))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="row_kinds"):
        similarity = cast("Similarity", controls.product(backend))
    second = model_gate.second_model()
    if second is not None:
        messages.cross_encoder_note([second], after=[backend])
    above = st.container()  # the progress of later runs is drawn below the finished ones
    runs = _runs([backend] if second is None else [backend, second], pairs, similarity)
    if not runs:
        return
    with above:
        models = [backend] if second is None else [backend, second]
        _figure(runs, similarity, _code(models, similarity), pairs)
        _about(pairs)
        kind = controls.choice("searched_kind", "Queries in the table", {key: key.capitalize() for key in KINDS})
    _missed(runs[0], kind, pairs[kind])


def _code(models: Sequence[Backend], similarity: Similarity) -> Command:
    """The commands that measure the models on both collections, which is by cosine alone."""
    return Command(
        metrics.recall,
        *(
            measured(
                "evaluate",
                (f"assets/collections/{kind}.jsonl", "--columns", f"anchor={of.query},positive={of.document}"),
                model,
                [model.facts.layers],
                [model.own_pooling],
                controls.length_for(model),
            )
            for kind, of in KINDS.items()
            for model in models
            if similarity == "cosine"
        ),
    )


def _runs(models: Sequence[Backend], pairs: Mapping[str, Pairs], similarity: Similarity) -> list[KindRun]:
    """The finished runs: each model's last layer with its own pooling, then BM25. Why one is not finished is drawn."""
    runs = []
    with frame.figure("kinds_runs"):
        for number, model in enumerate(models):
            runs.append(_model_run(model, pairs, similarity, f"kinds_{number}"))
        words = word_rankings.word_ranking(models[0], WORDS)
        by_words = {kind: evaluation.word_run(words, of_kind) for kind, of_kind in pairs.items()}
        runs.append(KindRun(TITLES[WORDS], by_words))
    return runs


def _model_run(model: Backend, pairs: Mapping[str, Pairs], similarity: Similarity, where: str) -> KindRun:
    """A model's run. Raises NotReady."""
    layer, pooling = model.facts.layers, model.own_pooling
    request, retrieved = EmbedRequest.of_session(model, exact=True), {}
    for kind, of_kind in pairs.items():
        place = f"{where}_{kind}"
        documents, queries = evaluation.both_indexes(request, of_kind.documents, of_kind.queries, place)
        by_similarity = evaluation.retrieved(of_kind, documents, queries, layer, pooling, model.spec.title, place)
        retrieved[kind] = by_similarity[similarity]
    return KindRun(model.spec.title, retrieved)


def _bar(ranks: Int64, k: int) -> run_bars.Bar:
    estimate = metrics.interval(metrics.recall(ranks, k))
    return run_bars.Bar(100 * estimate.value, 100 * estimate.low, 100 * estimate.high)


def _figure(runs: Sequence[KindRun], similarity: Similarity, code: Command, pairs: Mapping[str, Pairs]) -> None:
    bars = [[[_bar(run.ranks(kind), k) for k in CUTOFFS] for run in runs] for kind in KINDS]
    figures.figure(
        run_bars.recall_panels(
            bars,
            [kind.title for kind in KINDS.values()],
            CUTOFFS,
            [run.name for run in runs],
            f"Recall by kind of search, {SIMILARITY_NAMES[similarity].lower()}",
        ),
        key="kinds_figure",
        code=code,
        alt=f"Recall@1, Recall@5 and Recall@10 of {len(runs)} runs on questions and on paraphrases",
        message=f"{_message(runs)} {shared_in_words(pairs)}",
        read="Each bar is the share of queries whose correct answer is among the first k hits, with its 95 % interval "
        "(Wilson): where it may lie for other queries. A question and its passage differ: the one is short and asks, the "
        "other is long and states (asymmetric). A sentence and its paraphrase could change places (symmetric). A model "
        "learns from its training pairs which texts should have similar vectors. If these are questions with passages, the "
        "vector of a question becomes similar to that of its answer. If they are sentences with the same meaning, it becomes "
        "similar to that of the same question in other words. So a model trained on one kind is weaker at the other. The "
        "included model was trained on pairs of both kinds.",
        not_shown="How well a run does on other texts. These 200 pairs were written for this dashboard, and many texts are "
        "near misses of others. The paraphrases share few words with their sentences on purpose, which is hard for BM25; in "
        "other collections they share more. The two collections are not equally difficult: compare the runs within each, and "
        "whether their order changes.",
        table=lambda: _table(runs),
    )


def _message(runs: Sequence[KindRun]) -> str:
    """Recall@1 of each run on both kinds, in words."""
    parts: list[str] = []
    for run in runs:
        questions, sentences = (
            f"{_first(run, kind)} of the {columns.query}s" if not parts else _first(run, kind)
            for kind, columns in KINDS.items()
        )
        if parts:
            parts.append(f"**{messages.escape(run.name)}** for {questions} and {sentences}")
        else:
            parts.append(
                f"**{messages.escape(run.name)}** puts the correct passage first for {questions}, and the correct paraphrase "
                f"for {sentences}"
            )
    return "; ".join(parts) + "."


def shared_in_words(pairs: Mapping[str, Pairs]) -> str:
    """How many of a query's words stand in its correct answer, on average: what a ranking by words can find."""
    shares = {
        kind: sum(map(shared_share, of.queries.texts, ([text] for text in of.documents.texts))) / len(of)
        for kind, of in pairs.items()
    }
    each = [
        f"{percent(share)} of the content words of a {KINDS[kind].query} appear in its {KINDS[kind].document}"
        for kind, share in shares.items()
    ]
    rest = (
        " Whatever it finds there, it finds by function words, or by chance."
        if min(shares.values()) < LEAST_SHARED
        else ""
    )
    return f"{TITLES[WORDS]} finds by shared words alone: on average {enumerated(each)}.{rest}"


def _first(run: KindRun, kind: str) -> str:
    return f"{100 * float(metrics.recall(run.ranks(kind), 1).mean()):.0f} %"


def _about(pairs: Mapping[str, Pairs]) -> None:
    sizes = " and ".join(f"{len(of_kind)} {kind}" for kind, of_kind in pairs.items())
    st.caption(
        f"{sizes}, each with one correct answer among as many texts. A model's last layer with its own pooling is used; "
        "choose a second model in the sidebar to compare two."
    )


def _missed(run: KindRun, kind: str, pairs: Pairs) -> None:
    """The queries whose correct answer the model does not put first."""
    ranks, first_hits = run.ranks(kind), cast("Retrieval", run.rankings[kind]).first_hits
    rows = [row for row in range(len(pairs)) if ranks[row] > 1]
    if not rows:
        st.caption(f"{messages.escape(run.name)} finds the correct answer of every query first.")
        return
    st.markdown(
        f"**{counted(len(rows), 'query', 'queries')}** whose correct answer is not the first hit of "
        f"{messages.escape(run.name)}"
    )
    table = pd.DataFrame(
        [
            {
                "query": pairs.queries.texts[row],
                "rank": int(ranks[row]),
                "correct answer": pairs.documents.texts[row],
                "first hit": pairs.documents.texts[first_hits[row]],
            }
            for row in rows
        ]
    )
    figures.whole_texts(table, key="missed_queries")


def _table(runs: Sequence[KindRun]) -> pd.DataFrame:
    """Recall with its interval, a line per run, kind and cut-off."""
    lines = []
    for run in runs:
        for kind in run.rankings:
            for k in CUTOFFS:
                bar = _bar(run.ranks(kind), k)
                lines.append(
                    {
                        "run": run.name,
                        "queries": kind,
                        "measure": f"Recall@{k}",
                        "per cent": round(bar.value, 2),
                        "low": round(bar.low, 2),
                        "high": round(bar.high, 2),
                    }
                )
    return pd.DataFrame(lines)
