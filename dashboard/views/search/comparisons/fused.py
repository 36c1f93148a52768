"""Several rankings together (hybrid ranking): the corpus by the sum of 1 / (60 + rank) of each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from components.numbers import enumerated
from components.retrieval.evaluation.ranks import NOT_FOUND
from components.retrieval.fusion.hits import fused_ranking, query_scores, said
from components.retrieval.fusion.ranks import ranker_scores, reranked_scores
from components.retrieval.fusion.scores import RRF_K, Fusion, RunScores
from components.retrieval.rankings.ranking import TEN
from components.retrieval.rankings.run_code import MOST_FUSED, RunCode
from components.retrieval.search.exact import SAME
from components.retrieval.search.lexical import KINDS, TITLES
from components.shown_code.code import Command
from dashboard import caching, navigation, state
from dashboard.corpora import word_rankings
from dashboard.jobs import rankers, reranking
from dashboard.ui import controls, messages, model_gate
from dashboard.ui.wording import POOLING_NAMES
from dashboard.views.search.ranked import Explained, Ranked, Scale

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from components.model.backend import Backend
    from components.retrieval.fusion.hits import FusedRanking
    from components.retrieval.index.folder import VectorIndex
    from dashboard.views.search.request import SearchRequest

MOST_SHOWN = 22  # characters of a sentence in the finding
NOTE = (
    f"Several rankings together (reciprocal rank fusion): the score of a sentence is the sum of 1 / ({RRF_K} + its rank) in "
    "each, over all sentences; equal scores have the last of their ranks. A sentence without a word of the query has no rank "
    "by words, one that is not among MaxSim's candidates none by MaxSim, and gets nothing for it. Blue is what the vectors "
    "of the other list add, green what the rest adds. What is put together is chosen under “Options”."
)
NO_SUM_OVER_WORDS = "**{score}** is a sum over ranks, not over words: the lists alone say why."


def together(request: SearchRequest, index: VectorIndex, panel: DeltaGenerator, max_sim_by: Backend) -> Ranked | None:
    """The corpus by vectors and what is put together with them. Raises NotReady while words are counted or MaxSim computed.

    `panel` gets the choice, and `max_sim_by` gives the token vectors that MaxSim compares.
    """
    cell = request.cell(index)
    names = {**TITLES} if max_sim_by.structure.why_not("tokens") else {**TITLES, "maxsim": "MaxSim"}
    names |= {
        str(code): _name(str(code)) for code in (RunCode("m", *other) for other in index.engines if other != cell)
    }
    _refuse_missing(names)
    with panel:
        chosen: tuple[str, ...] = controls.bind(
            "hybrid_with",
            st.multiselect,
            "Hybrid: these vectors together with",
            options=names,
            max_selections=MOST_FUSED - 1,
            placeholder="One or two rankings",
        )
    if not chosen:
        st.info("**Nothing to put together yet.** Choose one or two rankings under “Options”.", icon=":material/join:")
        return None
    vectors = caching.query_vectors(request.backend, (request.query,), index.info)
    runs = [query_scores(vectors[cell][0], index.engine(*cell).vectors, request.similarity)]
    for name in chosen:
        if name == "maxsim":
            stage = model_gate.second_stage("maxsim", max_sim_by, cell[0])
            if stage is None:
                return None
            rows = index.engine(*cell).search(vectors[cell], request.candidates, request.similarity).indices
            scores = reranking.scored(stage, request.corpus, request.query, rows[0], "search").scores
            runs.append(reranked_scores(lambda _: runs[0], rows, scores[None])(slice(0, 1)))
            continue
        code = RunCode.read(name)
        if code.words:
            ranking = word_rankings.word_ranking(request.backend, code.words)
            ranker = rankers.word_ranker(ranking, request.corpus)
            runs.append(ranker_scores(ranker, [request.query])(slice(0, 1)))
        else:
            runs.append(query_scores(vectors[code.cell][0], index.engine(*code.cell).vectors, request.similarity))
    searched = request.code(index, *cell)
    # The command puts vectors and rankings by words together.
    code_of_ranking = Command(fused_ranking)
    if set(chosen) <= set(KINDS):
        asked = searched.search(request.query, request.k, request.similarity, "--fuse", ",".join(chosen))
        code_of_ranking = searched.command(fused_ranking, asked)
    return _ranked(request, runs, [names[name] for name in chosen], code_of_ranking)


def _name(value: str) -> str:
    """How one of the setting's values is called."""
    if value == "maxsim":
        return "MaxSim"
    code = RunCode.read(value)
    return TITLES[code.words] if code.words else f"layer {code.layer}, {POOLING_NAMES[code.cell[1]]}"


def _refuse_missing(offered: Collection[str]) -> None:
    """Take what cannot be put together here out of the choice, with its name, and keep the rest."""
    chosen: tuple[str, ...] = state.get("hybrid_with")
    if missing := [_name(name) for name in chosen if name not in offered]:
        left = tuple(name for name in chosen if name in offered)
        state.refuse("hybrid_with", left, f"These rankings cannot be put together here: {' · '.join(missing)}.")


def on_all_queries(request: SearchRequest, index: VectorIndex, max_sim_by: Backend) -> None:
    """A button that opens the comparison of both lists on all queries of the corpus."""
    if st.button(
        "Which of the two finds more? Compare them on all queries", icon=":material/query_stats:", type="tertiary"
    ):
        alone = RunCode("m", *request.cell(index))
        both = fused_code(alone, state.get("hybrid_with"), request.candidates, max_sim_by is request.backend)
        navigation.go_to("compare-runs", runs=(str(alone), str(both)))


def fused_code(alone: RunCode, others: Sequence[str], candidates: int, is_by_first: bool) -> RunCode:
    """The run of the hybrid list; `is_by_first`: the first model's token vectors give MaxSim, and not the second one's."""
    max_sim = replace(alone, second="ms" if is_by_first else "mx", k=candidates)
    return RunCode.fused((alone, *(max_sim if name == "maxsim" else RunCode.read(name) for name in others)))


def _ranked(request: SearchRequest, runs: Sequence[RunScores], names: Sequence[str], code: Command) -> Ranked:
    """The fused ranking; `names` are those of the other runs."""
    fusion = Fusion("rrf", (1.0,) * len(runs))
    ranking = fused_ranking(runs, fusion, max(request.k, TEN))
    places = {int(row): place for place, row in enumerate(ranking.best)}
    # Of one other ranking by words, people know which it is from the title.
    labels = ("words",) if len(names) == 1 and names[0] in TITLES.values() else names

    def terms(row: int) -> tuple[tuple[str, ...], float]:
        place = places[row]
        written = [
            f"{name} {said(float(term), int(rank), fusion)}" if rank != NOT_FOUND else f"{name} –"
            for name, term, rank in zip(
                ("vectors", *labels), ranking.terms[:, place], ranking.alone[:, place], strict=True
            )
        ]
        return tuple(written), float(ranking.terms[0, place] / ranking.hit_scores[place])

    most = len(runs) / (RRF_K + 1)
    return Ranked.of_scores(
        f"Hybrid: {' + '.join(('vectors', *names))}",
        ranking.unit,
        ranking.scores,
        request.k,
        ranking.best,
        equal=SAME,
        code=code,
        code_of_all=code,
        scale=Scale(
            0.0, most, ("0", f"{len(runs)}/{RRF_K + 1}"), f"A full bar is first by vectors and by {enumerated(labels)}."
        ),
        explained=Explained(said=NO_SUM_OVER_WORDS),
        finding=finding(
            ranking,
            request.corpus.texts[int(ranking.best[0])],
            any(bool(run.is_ranked.any()) for run in runs[1:]),
            int(runs[0].ranks.min()),
            labels,
        ),
        terms=terms,
    )


def finding(
    ranking: FusedRanking, first: str, has_others: bool, best: int = 1, names: Sequence[str] = ("words",)
) -> str:
    """Whether the other rankings change the first place of the one by vectors; `first` is the sentence that now has it.

    `best` is the rank that the first sentence by vectors has: of a tie all have its last rank. `names` are the others'.
    """
    is_by_words = all(name == "words" or name in TITLES.values() for name in names)
    by_none = "it has no word of the query"
    if not is_by_words:
        by_none = f"it has no rank by {messages.escape(enumerated(names))}"
    if not has_others:
        if is_by_words:
            return "No sentence has a word of the query: **words change nothing**."
        return f"No sentence has a rank by {messages.escape(enumerated(names))}: **this is the order by vectors**."
    by_vectors, *by_others = (int(rank) for rank in ranking.alone[:, 0])
    ranks = [
        f"rank {rank:,} by {messages.escape(name)}"
        for name, rank in zip(names, by_others, strict=True)
        if rank != NOT_FOUND
    ]
    if by_vectors == best or not ranks:
        others = "Words leave" if tuple(names) == ("words",) else "The other rankings leave"
        why = f"it has {enumerated(ranks)}" if ranks else by_none
        return f"**{others} the first place as it is**: {why}."
    text = first if len(first) <= MOST_SHOWN else f"{first[:MOST_SHOWN].rsplit(' ', 1)[0]} …"
    return f"**“{messages.escape(text)}” rises from {by_vectors:,} to 1**: it has {enumerated(ranks)}."
