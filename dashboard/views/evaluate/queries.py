"""The queries of a comparison: which runs answer each one, and what each run ranks first for one query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components import numbers
from components.arrays import Int64
from components.numbers import enumerated
from components.retrieval.evaluation.metrics import first_ranks
from components.retrieval.evaluation.pair_runs import rows_of_queries
from components.retrieval.evaluation.ranks import NOT_FOUND
from components.retrieval.rankings.ranking import Ranking
from components.retrieval.search.exact import top
from components.shown_code.code import Command
from dashboard import navigation, state
from dashboard.corpora import current, word_rankings
from dashboard.jobs import splade
from dashboard.jobs.evaluation import PairIndexes
from dashboard.sharing import report
from dashboard.ui import browser, controls, figures, messages
from dashboard.ui.waiting import frame
from dashboard.ui.wording import NUMBERS_EXPLAINED
from dashboard.views.evaluate import choices

if TYPE_CHECKING:
    from components.arrays import Int64
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.evaluation.run_record import Run
    from components.retrieval.fusion.scores import RunScores
    from components.retrieval.rankings.run_code import RunCode
    from components.retrieval.search.lexical import Ranker
    from dashboard.jobs.second_stage import Candidates
    from dashboard.views.evaluate.choices import RunRequest

FILTERS = {"all": "All", "wrong": "All wrong", "disagree": "Disagree", "right": "All right"}
MOST_ROWS, SHOWN_HITS = 2_000, 5


@dataclass(frozen=True, eq=False)
class RunEntry:
    """A run of the comparison."""

    run: Run
    short: str  # a short name
    code: RunCode | None = None  # None for a loaded run, which cannot rank anything here
    candidates: Candidates | None = None  # of a run in two stages

    @property
    def key(self) -> str:
        """What names it in an address."""
        return f"loaded.{self.run.key}" if self.code is None else str(self.code)

    @property
    def title(self) -> str:
        return self.short if self.code is None else self.run.name


def queries(
    entries: Sequence[RunEntry],
    pairs: Pairs,
    request: RunRequest,
    indexes: dict[str, PairIndexes],
    measured: Sequence[tuple[str, ...]],
) -> None:
    """The queries by the runs that answer them, and the opened one; `measured` are the commands that measure the runs."""
    if not entries:
        return
    figures.subheader("Where the runs fail")
    left, right = st.columns([3, 2])
    ranks = np.stack([first_ranks(entry.run.ranks) for entry in entries])  # [run, query]
    with right:
        k = controls.number("right_at", "Right if a correct answer is among the first", 1, 50, 1)
    right_runs = (ranks <= k).sum(axis=0)  # [query]
    masks = {
        "all": np.ones(len(pairs), bool),
        "wrong": right_runs == 0,
        "disagree": (right_runs > 0) & (right_runs < len(entries)),
        "right": right_runs == len(entries),
    }
    with left:
        names = {key: f"{title} ({int(masks[key].sum()):,})" for key, title in FILTERS.items()}
        kind = controls.choice("query_filter", "Queries", names)
    rows = np.flatnonzero(masks[kind])
    opened = state.get("opened")
    if not len(rows):
        st.info("There is no query of this kind.")
    else:
        _query_table(rows, entries, pairs, ranks, measured)
    if opened is not None and opened < len(pairs):
        report.say_value("opened", opened, f"“{pairs.queries.texts[opened]}”")
        _opened(int(opened), entries, pairs, request, indexes)
    elif len(rows):
        st.caption("The hardest queries come first. Click the box left of a query to see what each run ranks first.")


def _query_table(
    rows: Int64, entries: Sequence[RunEntry], pairs: Pairs, ranks: Int64, measured: Sequence[tuple[str, ...]]
) -> None:
    # The hardest first: those with the highest geometric mean of the runs' ranks. What is not found comes after the last.
    mean_ranks = np.exp(np.log(np.minimum(ranks, len(pairs.documents))).mean(axis=0))  # [query]
    ordered = rows[np.argsort(-mean_ranks[rows], kind="stable")]
    first = [int(row) for row in ordered[:MOST_ROWS]]

    def table(rows: Sequence[int] | Int64) -> pd.DataFrame:
        columns: dict[str, object] = {
            "number": rows,
            "query": [pairs.queries.texts[row] for row in rows],
            "correct answer": [_answers(pairs, row) for row in rows],
        }
        columns["geometric mean rank"] = mean_ranks[rows].round(1)
        for number, entry in enumerate(entries, start=1):
            columns[f"{number}  {entry.short}"] = _shown(ranks[number - 1, rows])
        return pd.DataFrame(columns)

    st.dataframe(
        table(first),
        hide_index=True,
        key="queries_by_rank",
        on_select=lambda: _open(first),
        selection_mode="single-row",
        height=320,
        column_config={
            "number": st.column_config.NumberColumn(width=70, help=NUMBERS_EXPLAINED),
            "query": st.column_config.TextColumn(width=340),
            "correct answer": st.column_config.TextColumn(width=340),
            "geometric mean rank": st.column_config.NumberColumn(
                width=180,
                format="%.1f",
                help="The geometric mean of the runs' ranks, by which the queries are ordered; what a run does not find "
                "counts as its last rank",
            ),
        },
        placeholder="not found",
    )
    if len(rows) > MOST_ROWS:
        st.caption(f"These are the {MOST_ROWS:,} hardest of {len(rows):,} queries; the download has all.")
    figures.data(
        "queries_all",
        lambda: table(ordered),
        Command(first_ranks, *measured, prints="each run's measures, not its ranks"),
        "The rank of each query's first correct answer",
    )


def _answers(pairs: Pairs, query: int) -> str:
    return " · ".join(pairs.documents.texts[number] for number in pairs.answers_of(query))


def _shown(ranks: Int64) -> pd.Series:
    """Ranks as a column; an empty cell for what is not found."""
    return pd.Series(ranks, dtype="Int64").mask(ranks == NOT_FOUND)


def _open(queries: Sequence[int]) -> None:
    rows = browser.selected("queries_by_rank", "rows")
    state.put("opened", queries[rows[0]] if rows and browser.is_index(rows[0], len(queries)) else None)


def _opened(
    row: int, entries: Sequence[RunEntry], pairs: Pairs, request: RunRequest, indexes: dict[str, PairIndexes]
) -> None:
    with st.container(border=True, key="opened_query"):
        left, right = st.columns([8, 1])
        left.markdown(f"**Query number {row}:** {messages.escape(pairs.queries.texts[row])}")
        right.button("Close", key="close_query", on_click=state.put, args=("opened", None))
        answers = [messages.escape(pairs.documents.texts[number]) for number in pairs.answers_of(row)]
        st.markdown(
            f"**Correct answer:** {answers[0]}"
            if len(answers) == 1
            else "\n".join([f"**{len(answers)} correct answers:**\n", *(f"- {answer}" for answer in answers)])
        )
        live = [(entry, entry.code) for entry in entries if entry.code is not None]
        for start in range(0, len(live), 2):
            for column, (entry, code) in zip(st.columns(2), live[start : start + 2], strict=False):
                with column, frame.figure(f"opened_{code}"):
                    alone = _alone(code, pairs, request, indexes, row)
                    _first_hits(entry, pairs, _ranking(entry, code, alone, pairs, request, indexes, row), row)
                    _ranks_alone(code, alone, pairs.answers_of(row), request.name_of)
                    _explained(entry, code, row)
        if len(live) < len(entries):
            names = ", ".join(messages.escape(entry.run.name) for entry in entries if entry.code is None)
            st.caption(f"Loaded runs contain only ranks: {names}.")


def _explained(entry: RunEntry, code: RunCode, row: int) -> None:
    """A button that opens “Failed queries” for a query that fails here, if the run is one of the first model's vectors."""
    if code.model != "m" or not code.is_vectors or first_ranks(entry.run.ranks)[row] <= 1:
        return
    if st.button("Why?", icon=":material/troubleshoot:", key=f"why_{code}", help="Why another text ranks first"):
        corpus = current.corpus()
        column = current.query_column(corpus)
        if column is None:
            return
        rows = rows_of_queries(corpus.columns[column])
        navigation.go_to(
            "failed-search", failed_query=rows[row], typed_query="", layer=code.layer, pooling=code.pooling
        )


def _ranking(
    entry: RunEntry,
    code: RunCode,
    alone: Sequence[RunScores],
    pairs: Pairs,
    request: RunRequest,
    indexes: dict[str, PairIndexes],
    row: int,
) -> Ranking:
    """A live run's ranking of all sentences for one query; `alone` are the parts of a fused one.

    Raises NotReady while a word ranking counts its words.
    """
    if code.parts:
        fused = code.fusion.of(alone)
        scores = np.where(fused.is_ranked[0], fused.scores[0], -np.inf)
        hits = top(scores, min(SHOWN_HITS, int(fused.is_ranked.sum())))
        return Ranking.of_scores(entry.short, "fused score", scores, SHOWN_HITS, hits)
    if not code.pooling:
        ranker: Ranker = (
            word_rankings.ranker(request.backend, pairs.documents, code.words)
            if code.words
            else splade.ranker(request.models[code.model], pairs.documents, f"opened_{code}")
        )
        scores = ranker.scores(pairs.queries.texts[row])
        # With a score of 0, nothing is in common with the query; a log-probability has no such end.
        every = top(scores, SHOWN_HITS) if code.words == "jm" else None
        return Ranking.of_scores(entry.short, "score", scores, SHOWN_HITS, every)
    if entry.candidates is not None:
        rows, scores = entry.candidates.rows[row], entry.candidates.scores[row]
        return Ranking.of_candidates(entry.short, "score", scores, rows, len(pairs.documents), k=SHOWN_HITS)
    vector = indexes[code.model].queries.engine(*code.cell).vectors[row]
    engine = indexes[code.model].documents.engine(*code.cell)
    scores = engine.scores(vector)
    hits = engine.hits_of(vector, scores, SHOWN_HITS).indices[0]
    return Ranking.of_scores(entry.short, "cosine", scores, SHOWN_HITS, hits)


def _alone(
    code: RunCode, pairs: Pairs, request: RunRequest, indexes: dict[str, PairIndexes], row: int
) -> list[RunScores]:
    """What each part of a fused run says of all sentences for one query. Raises NotReady."""
    parts = request.parts(
        code, {model: each.both for model, each in indexes.items()}, choices.search_texts(pairs), f"opened_{code}"
    )
    return [part.scores()(slice(row, row + 1)) for part in parts]


def _ranks_alone(
    code: RunCode, alone: Sequence[RunScores], answers: Sequence[int], name_of: Callable[[RunCode], str]
) -> None:
    """Of a fused run: which of its rankings alone would have found a correct answer first."""
    if not alone:
        return
    is_usual = code.parts[0].is_vectors and len(alone) == 2 and code.parts[1].words
    names = ["vectors" if is_usual and part.is_vectors else name_of(part) for part in code.parts]
    ranks = [int(run.ranks[0, list(answers)].min()) for run in alone]
    said = [
        f"by {messages.escape(name)} {'not found' if rank == NOT_FOUND else f'rank {rank:,}'}"
        for name, rank in zip(names, ranks, strict=True)
    ]
    first = [messages.escape(name) for name, rank in zip(names, ranks, strict=True) if rank == 1]
    every, none = ("either", "neither") if len(alone) == 2 else ("any", "none")
    verdict = f"{every} alone would find it first"
    if len(first) < len(alone):
        verdict = f"{enumerated(first)} alone would find it first" if first else f"{none} alone finds it first"
    st.caption(f"Each alone: {enumerated(said)}; {verdict}.")


def _first_hits(entry: RunEntry, pairs: Pairs, ranking: Ranking, row: int) -> None:
    rank, answers = int(first_ranks(entry.run.ranks)[row]), pairs.answers_of(row)
    is_found, hits = rank != NOT_FOUND, ranking.best
    st.markdown(f"**{messages.escape(ranking.name)}**: " + (f"rank {rank:,}" if is_found else "not found"))
    lines = []
    for number, hit in enumerate(hits, start=1):
        text = messages.escape(pairs.documents.texts[hit])
        lines.append(f"{number}. :green-background[{text}] ✓" if hit in answers else f"{number}. {text}")
    st.markdown("\n".join(lines))
    scores = np.where(np.isnan(ranking.scores), -np.inf, ranking.scores)
    own, best = float(scores[list(answers)].max()), float(scores.max())
    name = "The correct answer" if len(answers) == 1 else "The best correct answer"
    text = f"Score of {name[0].lower()}{name[1:]}: {numbers.number(own)}; of the first hit: {numbers.number(best)}."
    if not is_found:
        nothing = "The correct answer has" if len(answers) == 1 else "The correct answers have"
        text = f"{nothing} nothing in common with the query; score of the first hit: {numbers.number(best)}."
        text = text if len(hits) else "No sentence has anything in common with the query."
    elif not np.isfinite(own):
        nothing = "The correct answer is not a candidate and keeps its rank"
        if len(answers) > 1:
            nothing = "No correct answer is a candidate: they stand after the candidates"
        text = f"{nothing}; score of the first hit: {numbers.number(best)}."
    if set(answers) & set(hits[: max(0, rank - 1)].tolist()):
        text += " Other sentences have the same score as the correct answer; ties count against it."
    st.caption(text)
