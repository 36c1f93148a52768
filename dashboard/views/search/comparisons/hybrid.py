"""Several rankings together (hybrid ranking): the corpus by a sum over them, of ranks or of scores."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from components.numbers import enumerated, number
from components.retrieval.evaluation.ranks import NOT_FOUND
from components.retrieval.fusion.hits import fused_ranking, query_scores, term_text
from components.retrieval.fusion.ranks import ranker_scores, reranked_scores
from components.retrieval.fusion.scores import RunScores
from components.retrieval.fusion.settings import USUAL, FusionSettings
from components.retrieval.rankings.ranking import TEN
from components.retrieval.rankings.run_code import MOST_FUSED, RunCode
from components.retrieval.search.exact import SAME
from components.retrieval.search.lexical import KINDS, TITLES
from components.shown_code.code import Command
from components.shown_code.commands import of_fusion
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
    from components.retrieval.fusion.scores import Fusion
    from components.retrieval.index.folder import VectorIndex
    from dashboard.views.search.request import SearchRequest

MOST_SHOWN = 22  # characters of a sentence in the finding
BY_RANKS = (
    "Several rankings together (reciprocal rank fusion): the score of a sentence is the sum of 1 / ({k} + its rank) in "
    "each, over all sentences; equal scores have the last of their ranks. A sentence without a word of the query has no rank "
    "by words, one that is not among MaxSim's candidates none by MaxSim, and gets nothing for it."
)
BY_SCORES = (
    "Several rankings together (a weighted sum): the scores of each ranking are {scaled}, over all sentences, and added, each "
    "{weights}. A sentence without a word of the query has no score by words, one that is not among MaxSim's candidates none "
    "by MaxSim: it counts as having the lowest there."
)
WEIGHTS = "with its weight: {vectors} % for the vectors, {others} % for the rest{shared}"
SCALED = {"minmax": "put on a scale from 0 to 1", "z": "given as standard deviations from their mean (z scores)"}
COLOURS = (
    "Blue is what the vectors of the other list add, green what the rest adds. What is put together, and how, is chosen under "
    "“Options”."
)
NO_SUM_OVER_WORDS = "**{score}** is a sum over rankings, not over words: the lists alone say why."


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
        others: tuple[str, ...] = controls.bind(
            "hybrid_with",
            st.multiselect,
            "Hybrid: these vectors together with",
            options=names,
            max_selections=MOST_FUSED - 1,
            placeholder="One or two rankings",
        )
        settings = controls.fusion()
    if not others:
        st.info("**Nothing to put together yet.** Choose one or two rankings under “Options”.", icon=":material/join:")
        return None
    vectors = caching.query_vectors(request.backend, (request.query,), index.info)
    runs = [query_scores(vectors[cell][0], index.engine(*cell).vectors, request.similarity)]
    for name in others:
        if name == "maxsim":
            stage = model_gate.second_stage("maxsim", max_sim_by, cell[0])
            if stage is None:
                return None
            rows = (
                index.engine(*cell)
                .search(vectors[cell], request.candidates, request.similarity, request.corpus.different)
                .indices
            )
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
    search_code = request.code(index, *cell)
    # The command puts vectors and rankings by words together, by the ranks of rows: a repeated text has several there.
    code_of_ranking = Command(fused_ranking)
    if all(name in KINDS for name in others) and not request.corpus.report.duplicates:
        search = search_code.search(request.query, request.k, request.similarity, *of_fusion(others, settings))
        code_of_ranking = search_code.command(fused_ranking, search)
    return _ranked(request, runs, [names[name] for name in others], settings, code_of_ranking)


def _name(value: str) -> str:
    """How one of the setting's values is called."""
    if value == "maxsim":
        return "MaxSim"
    code = RunCode.read(value)
    return TITLES[code.words] if code.words else f"layer {code.layer}, {POOLING_NAMES[code.cell[1]]}"


def _refuse_missing(names: Collection[str]) -> None:
    """Take what cannot be put together here out of the choice, with its name, and keep the rest."""
    others: tuple[str, ...] = state.get("hybrid_with")
    if missing := [_name(name) for name in others if name not in names]:
        available = tuple(name for name in others if name in names)
        state.refuse("hybrid_with", available, f"These rankings cannot be put together here: {' · '.join(missing)}.")


def on_all_queries(request: SearchRequest, index: VectorIndex, max_sim_by: Backend) -> None:
    """A button that opens the comparison of both lists on all queries of the corpus."""
    if st.button(
        "Which of the two finds more? Compare them on all queries", icon=":material/query_stats:", type="tertiary"
    ):
        alone = RunCode("m", *request.cell(index))
        both = fused_code(
            alone,
            state.get("hybrid_with"),
            request.candidates,
            max_sim_by is request.backend,
            controls.fusion_settings(),
        )
        navigation.go_to("compare-runs", runs=(str(alone), str(both)))


def fused_code(
    alone: RunCode,
    others: Sequence[str],
    candidates: int,
    is_by_first: bool,
    settings: FusionSettings = USUAL,
) -> RunCode:
    """The run of the hybrid list; `is_by_first`: the first model's token vectors give MaxSim, and not the second one's."""
    max_sim = replace(alone, second="ms" if is_by_first else "mx", k=candidates)
    parts = (alone, *(max_sim if name == "maxsim" else RunCode.read(name) for name in others))
    return RunCode.fused(parts, settings)


def _ranked(
    request: SearchRequest, runs: Sequence[RunScores], names: Sequence[str], settings: FusionSettings, code: Command
) -> Ranked:
    """The fused ranking; `names` are those of the other runs."""
    fusion = settings.of(len(runs))
    different = request.corpus.different
    runs = [RunScores(run.scores[:, different], run.is_ranked[:, different], run.tied) for run in runs]
    ranking = fused_ranking(runs, fusion, max(request.k, TEN))
    scores = np.full(len(request.corpus), np.nan)
    scores[different] = ranking.scores
    ranking = replace(ranking, scores=scores, best=different[ranking.best])
    places = {int(row): place for place, row in enumerate(ranking.best)}
    # Of one other ranking by words, people know which it is from the title.
    labels = ("words",) if len(names) == 1 and names[0] in TITLES.values() else tuple(names)

    def terms(row: int) -> tuple[tuple[str, ...], float | None]:
        place = places[row]
        texts = [
            f"{name} {_term_or_no_rank(float(term), int(rank), fusion)}"
            for name, term, rank in zip(
                ("vectors", *labels), ranking.terms[:, place], ranking.alone[:, place], strict=True
            )
        ]
        # Terms below 0 are no shares of a sum.
        has_shares = ranking.terms[:, place].min() >= 0 and ranking.hit_scores[place] > 0
        return tuple(texts), float(ranking.terms[0, place] / ranking.hit_scores[place]) if has_shares else None

    is_usual = settings == USUAL
    others = "words" if all(name in TITLES.values() for name in names) else "of the others"
    return Ranked.of_scores(
        f"Hybrid: {' + '.join(('vectors', *names))}{'' if is_usual else f', {settings.name(others)}'}",
        ranking.unit,
        ranking.scores,
        request.k,
        ranking.best,
        equal=SAME,
        code=code,
        code_of_all=code,
        note=note(settings, len(names)),
        scale=_scale(fusion, ("vectors", *labels)),
        is_open_ended=fusion.method == "z",
        explained=Explained(said=NO_SUM_OVER_WORDS),
        finding=" ".join(
            (_finding(request, ranking, runs, fusion, labels), *_silent(runs, fusion, ("vectors", *labels)))
        ),
        terms=terms,
    )


def _term_or_no_rank(term: float, rank: int, fusion: Fusion) -> str:
    """What a run adds to a sentence, and that it does not rank it."""
    if rank != NOT_FOUND:
        return term_text(term, rank, fusion) if fusion.method == "rrf" else number(term, 4)
    return f"{number(term, 4)} (no rank)" if term else "–"


def note(settings: FusionSettings, others: int) -> str:
    """What the list is; so many rankings stand beside the vectors."""
    if settings.weight is None:
        text = BY_RANKS.format(k=settings.rank_constant)
    else:
        weights = WEIGHTS.format(
            vectors=100 - settings.weight,
            others=settings.weight,
            shared="" if others == 1 else " in equal shares",
        )
        if settings.normalised == "rrf":
            text = f"{BY_RANKS.format(k=settings.rank_constant)} Each counts {weights}."
        else:
            text = BY_SCORES.format(scaled=SCALED[settings.normalised], weights=weights)
    depth = "" if settings.depth is None else f" Only the first {settings.depth:,} of each ranking count."
    return f"{text}{depth} {COLOURS}"


def _scale(fusion: Fusion, names: Sequence[str]) -> Scale | None:
    """From 0 to a sentence that is first by all; z scores have no ends."""
    counting = [name for name, weight in zip(names, fusion.weights, strict=True) if weight]
    full = f"A full bar is first by {enumerated(counting)}."
    if fusion.method == "rrf":
        ends = ("0", f"{sum(fusion.weights):g}/{fusion.rank_constant + 1}")
        return Scale(0.0, sum(fusion.weights) / (fusion.rank_constant + 1), ends, full)
    return Scale(0.0, 1.0, ("0", "1"), full) if fusion.method == "minmax" else None


def _silent(runs: Sequence[RunScores], fusion: Fusion, names: Sequence[str]) -> Iterator[str]:
    """A sentence for each run that prefers no sentence: all have one score, or more than count share the first place."""
    for run, name, weight in zip(runs, names, fusion.weights, strict=True):
        if not weight or not run.is_ranked.any():
            continue
        by = messages.escape(name)
        if not run.first(fusion.depth).is_ranked.any():
            yield f"By {by} more than {fusion.depth:,} sentences share the first place, so that none of them counts."
        elif run.is_flat[0]:
            added = "the same" if fusion.method == "rrf" else "0"
            yield f"By {by} all sentences have the same score, which adds {added} to each."


def _finding(
    request: SearchRequest,
    ranking: FusedRanking,
    runs: Sequence[RunScores],
    fusion: Fusion,
    names: Sequence[str],
) -> str:
    """What the sum changes, where both sides of it count; `names` are the other runs'."""
    others = messages.escape(enumerated(names))
    if not any(fusion.weights[1:]):
        return f"The weight of {others} is 0: **this is the order by vectors**."
    if not fusion.weights[0]:
        return f"The weight of the vectors is 0: **this is the order by {others}**."
    if not len(ranking.best):
        return "**No sentence is left.**"
    first_sentences = [run.first(fusion.depth) for run in runs]
    has_others = any(bool(run.is_ranked.any()) for run in first_sentences[1:])
    if not has_others and any(bool(run.is_ranked.any()) for run in runs[1:]):
        return "**This is the order by vectors.**"
    return finding(
        ranking, request.corpus.texts[int(ranking.best[0])], has_others, int(runs[0].ranks.min()), names, fusion.depth
    )


def finding(
    ranking: FusedRanking,
    first: str,
    has_others: bool,
    best: int = 1,
    names: Sequence[str] = ("words",),
    depth: int | None = None,
) -> str:
    """Whether the other rankings change the first place of the one by vectors; `first` is the sentence that now has it.

    `best` is the rank that the first sentence by vectors has: of a tie all have its last rank. `names` are the others'. With a
    `depth` only so many first sentences of each ranking have a rank.
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
    if by_vectors == NOT_FOUND:
        change = f"“{messages.escape(text)}” is first, and not among the first {depth:,} by vectors"
    else:
        change = f"“{messages.escape(text)}” rises from {by_vectors:,} to 1"
    return f"**{change}**: it has {enumerated(ranks)}."
