"""What evaluation works on: the pairs, the measure, and the runs that are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

import streamlit as st

from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY
from components.numbers import enumerated
from components.retrieval.corpora.rows.roles import labels_of_pairs
from components.retrieval.evaluation.metrics import CUTOFFS, MEASURES, finds_nothing
from components.retrieval.evaluation.pair_runs import QUERY_COLUMN
from components.retrieval.fusion.ranks import ranker_scores, reranked_scores, vector_scores
from components.retrieval.fusion.settings import FusionSettings
from components.retrieval.rankings.run_code import LEAST_CANDIDATES, MOST_CANDIDATES, MOST_FUSED, RunCode
from components.retrieval.search.lexical import KINDS, TITLES
from components.retrieval.search.splade import TITLE as SPLADE
from components.shown_code.commands import measured, of_fusion
from components.words.unicode_words import has_pairs
from dashboard import settings, state
from dashboard.corpora import chooser, current, word_rankings
from dashboard.jobs import evaluation, rankers, second_stage, splade
from dashboard.jobs.embedding import EmbedRequest
from dashboard.jobs.reranking import SecondStage
from dashboard.jobs.runs.fusion import FusionPart
from dashboard.jobs.second_stage import SearchTexts, TwoStages
from dashboard.ui import controls, messages, model_gate
from dashboard.ui.waiting import frame
from dashboard.ui.wording import POOLING_NAMES, counted, rows_of_file, searched_texts
from dashboard.views.evaluate.rows import shared

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from components.model.backend import Backend
    from components.model.trace import Pooling
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.evaluation.metrics import Ranks
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.index.folder import VectorIndex
    from components.retrieval.rankings.run_code import Second

MEASURE_HELP = (
    "Recall@k: the share of queries with a correct answer among the first k sentences. MRR: the mean of 1 / rank of the first "
    "correct answer. nDCG@10: the mean of 1 / log2(1 + rank), 0 beyond rank 10; of a query with several correct answers, their "
    "sum by that of the best order. All are in per cent."
)
# What `evaluate` prints of a figure.
AT_CUTOFFS = f"the points at k = {enumerated([str(k) for k in CUTOFFS])}"
NO_INTERVALS = "the measures, without their intervals"
# What each measure says, in words that need no others.
MEANINGS: dict[str, str] = {
    "Recall@1": "how many queries have a correct answer as the first hit",
    **{f"Recall@{k}": f"how many queries have a correct answer among the first {k} hits" for k in (5, 10, 20, 50)},
    "MRR": "how high the first correct answer stands; 100 % is always first, 50 % second",
    "nDCG@10": "how high the correct answers stand among the first 10 hits, the best ones on top; 100 % is perfect",
    "P@10": "how many of the first 10 hits are correct answers",
    "MAP": "how high all the correct answers stand in the whole ranking; 100 % is all of them on top",
}
# The same of graded relevance, where recall counts all correct answers.
GRADED_MEANINGS = MEANINGS | {
    f"Recall@{k}": f"how many of the correct answers are among the first {k} hits" for k in (10, 100)
}
MANY_QUERIES, FEW_QUERIES = 50_000, 30
LOOKED_AT = 200  # queries, to see whether they have spaces between words
SECOND_STAGES: dict[Second, str] = {"rr": "re-ranked", "ms": "by MaxSim", "mx": "by the second model's MaxSim"}
_NAMED = {"dot": "dot product", "euclidean": "Euclidean distance", "manhattan": "Manhattan distance"}
WORDS = RunCode(words="bm25")  # with which runs by vectors are offered fused
ABOUT_FUSION = (
    "A fused run ranks all sentences by a sum. By ranks: 1 / (k + rank) of each of its rankings (reciprocal rank fusion); k is "
    "60 unless the name has another. With a share of words: the scores from 0 to 1 for each query, weighted; by z scores: "
    "as standard deviations from their mean. A sentence without a word of the query has no rank by words, and their lowest "
    "score; where a ranking gives all sentences the same score, it adds 0."
)
NO_SHARED_WORD = "no query shares a word with a correct answer, so that there is nothing to measure."
NO_RUN = "**No run yet.** Add a layer and pooling, or a word ranking."
Outcome = TypeVar("Outcome")  # of a run
Sides = TypeVar("Sides")  # a model's documents and queries
Both = tuple["VectorIndex", "VectorIndex"]  # of documents and queries


def measuring(draw: Callable[[Backend], None], backend: Backend) -> None:
    """Draw a view that measures a model, below a note on models that are not made for what is measured."""
    messages.cross_encoder_note([backend])
    draw(backend)


def measuring_by_cosine(draw: Callable[[Backend], None], backend: Backend) -> None:
    """The same for a view that ranks by the cosine, with a note on models that were published for another similarity."""
    similarity = backend.sentence_config.similarity
    if similarity != "cosine":
        st.caption(
            f":material/straighten: **{messages.escape(backend.spec.title)}** was published for the {_NAMED[similarity]}. This "
            "view ranks by the cosine; Search and Sentence similarity use what the model was published for."
        )
    measuring(draw, backend)


def codes_of(measures: Iterable[str]) -> dict[str, str]:
    """The address's short codes of measures: "r10" for Recall@10, "p10" for P@10, "mrr", "ndcg"."""
    return {name.lower().replace("recall@", "r").replace("p@", "p").removesuffix("@10"): name for name in measures}


CODES = codes_of(MEASURES)


@dataclass(frozen=True, eq=False)
class RunRequest:
    """The chosen runs, with the models they use: "m", and "m2" where a second one is chosen."""

    models: Mapping[str, EmbedRequest]
    codes: tuple[RunCode, ...]
    names: Mapping[str, str]  # by code
    cross_encoder: SecondStage | None = None  # only where a run needs it

    def name_of(self, code: RunCode) -> str:
        """The name of a run or of a part of one, with its model's title where there are two models."""
        return name_of(
            code, {key: each.backend.spec.title for key, each in self.models.items() if len(self.models) > 1}
        )

    def stages(self, code: RunCode) -> TwoStages | None:
        """Both stages of a run that has two, else None. Raises NotReady where the cross-encoder is not available."""
        if not code.second:
            return None
        if code.second == "rr" and self.cross_encoder is None:
            raise frame.Instead(lambda: None)  # the reason has been drawn
        first = self.models[code.model]
        second = self.cross_encoder if code.second == "rr" else None
        if second is None:
            by = self.models["m2"] if code.second == "mx" else first
            layer = (
                0 if by.backend.late_interaction is not None else code.layer
            )  # a trained model has no choice of layers
            second = SecondStage("maxsim", by.backend, by.max_length, layer=layer)
        return TwoStages(first.backend, *code.cell, code.k, second)

    def parts(self, code: RunCode, sides: Mapping[str, Both], texts: SearchTexts, where: str) -> list[FusionPart]:
        """What each run of a fused one says of all documents. Raises NotReady."""
        return [self._part(part, sides, texts, where) for part in code.parts]

    def _part(self, code: RunCode, sides: Mapping[str, Both], texts: SearchTexts, where: str) -> FusionPart:
        queries = texts.queries
        if code.words:
            ranking = word_rankings.word_ranking(self.backend, code.words)
            ranker = rankers.word_ranker(ranking, texts.documents)
            return FusionPart((code.words, ranking.source), lambda: ranker_scores(ranker, queries))
        if code.is_splade:
            request = self.models[code.model]
            of_corpus = splade.ranker(request, texts.documents, where)
            return FusionPart(
                ("splade", *splade.model_of(request)),
                lambda: lambda block: ranker_scores(of_corpus.for_queries(queries[block]), queries)(block),
            )
        indexes = sides[code.model]
        of_documents, of_queries = (index.engine(*code.cell).vectors for index in indexes)
        key = (*(index.folder.name for index in indexes), *code.cell)
        stages = self.stages(code)
        if stages is None:
            return FusionPart(key, lambda: vector_scores(of_queries, of_documents))
        candidates = second_stage.candidates(stages, indexes, texts, where)
        return FusionPart(
            (*key, *stages.key),
            lambda: reranked_scores(
                vector_scores(of_queries, of_documents), candidates.rows, candidates.scores, texts.own
            ),
        )

    def commands(self, file: Sequence[str], codes: Iterable[RunCode]) -> list[tuple[str, ...]]:
        """The command that measures each of some runs on the pairs of a file, given with how it is read; () for none."""
        return [self._command(file, code) for code in codes]

    def _command(self, file: Sequence[str], code: RunCode) -> tuple[str, ...]:
        options: tuple[str, ...] = ()
        by_vectors = code
        if code.parts:
            by_vectors, *others = code.parts
            if not by_vectors.is_vectors or any(part.words not in KINDS for part in others):
                return ()  # the command puts vectors and rankings by words together
            options = of_fusion([part.words for part in others], code.settings)
        if code.words == "static":
            return ()
        model = self.models[by_vectors.model or "m"]
        backend, length = model.backend, model.max_length
        if code.words or code.is_splade:
            alone = ("--splade",) if code.is_splade else ("--fuse", code.words, "--weights", "1")
            return measured("evaluate", file, backend, [backend.facts.layers], [backend.own_pooling], length, *alone)
        stages = self.stages(code)
        if stages is not None:
            if stages.second.kind == "maxsim" and stages.second.backend is not backend:
                return ()  # the command compares the token vectors of its own model
            way = "--max-sim" if stages.second.kind == "maxsim" else "--rerank"
            second = stages.second
            of = () if way == "--max-sim" else ("--cross-encoder", second.backend.spec.key)
            if second.label is not None:
                of = (*of, "--label", second.backend.pair_labels()[second.label])
            options = (way, str(code.k), *of)
        layer, pooling = by_vectors.cell
        return measured("evaluate", file, backend, [layer], [pooling], length, *options)

    @property
    def backend(self) -> Backend:
        """The first model."""
        return self.models["m"].backend

    def gather(
        self,
        outcome_of: Callable[[RunCode, Mapping[str, Sides]], Outcome | None],
        sides_of: Callable[[EmbedRequest, str], Sides],
    ) -> tuple[list[tuple[RunCode, str, Outcome]], dict[str, Sides]]:
        """Code, name and outcome of each finished run, in the chosen order; and each model's sides.

        outcome_of: the outcome of a run, None if its layer and pooling are not embedded. sides_of: a model's documents and
        queries. Both raise NotReady for what is not finished: why is drawn.
        """
        outcomes: dict[int, tuple[RunCode, str, Outcome]] = {}
        sides: dict[str, Sides] = {}
        requested_models: set[str] = set()  # of these the sides are there, or why they are not has been drawn
        waiting: list[str] | None = None  # the runs that come after the one that is measured now; None where none is
        for number in sorted(range(len(self.codes)), key=lambda place: _work_of(self.codes[place])):
            code = self.codes[number]
            name, outcome = self.names[str(code)], None
            needed = {part.model for part in code.each if part.pooling}
            only_kept = nullcontext() if waiting is None else evaluation.only_known()
            with frame.figure(f"run_{number}") as figure, only_kept:
                for model in sorted(needed - requested_models) if waiting is None else ():
                    requested_models.add(model)
                    sides[model] = sides_of(self.models[model], model)
                if needed <= sides.keys() and (waiting is None or not any(part.is_splade for part in code.each)):
                    outcome = outcome_of(code, sides)
                    if outcome is None:
                        st.caption(f"Not embedded: {messages.escape(name)}.")
            if outcome is not None:
                outcomes[number] = (code, name, outcome)
            elif waiting is not None:
                waiting.append(name)
            elif figure.not_ready is not None and evaluation.is_under_way(figure.not_ready):
                waiting = []
        if waiting:
            # Not joined by commas, which the names have too.
            st.caption(f"The next runs: {' · '.join(f'“{messages.escape(name)}”' for name in waiting)}")
        return [outcomes[number] for number in sorted(outcomes)], sides


def _work_of(code: RunCode) -> int:
    """The place of a run by its work: what takes moments is not measured behind what may take an hour."""
    if any(part.second for part in code.each):
        return 3
    return 2 if any(part.is_splade for part in code.each) else 1 if code.parts else 0


def search_texts(pairs: Pairs) -> SearchTexts:
    """The documents and queries of pairs."""
    return SearchTexts(pairs.documents, pairs.queries.texts, pairs.content_hash)


def that_find(
    outcomes: Sequence[tuple[RunCode, str, Outcome]], ranks_of: Callable[[Outcome], Ranks]
) -> list[tuple[RunCode, str, Outcome]]:
    """The finished runs without those by words that find no correct answer of any query, of which that is said."""
    silent = [name for code, name, outcome in outcomes if is_by_words(code) and finds_nothing(ranks_of(outcome))]
    if silent:
        st.info(f"{messages.escape(enumerated(silent))}: {NO_SHARED_WORD}", icon=":material/search_off:")
    return [run for run in outcomes if run[1] not in silent]


def current_pairs() -> Pairs:
    """The pairs of the session's corpus.

    Raises NotReady, which asks for the column with the queries, if that is not clear; InputError for a single pair.
    """
    corpus = current.corpus()
    column = current.query_column(corpus)
    if column is None:
        raise frame.Instead(partial(_ask_for_queries, corpus))
    pairs = current.pairs(corpus, column)
    pairs.check_measurable()
    return pairs


def _ask_for_queries(corpus: Corpus) -> None:
    """What a person has to choose before a corpus has queries."""
    if not corpus.columns:
        st.info(
            f"**{messages.escape(corpus.name)} has only sentences.** To measure retrieval, each sentence needs a query: "
            f"choose a file with two columns, such as sentence and {QUERY_COLUMN}, at the top of the page, under “Corpus”.",
            icon=":material/table:",
        )
        return
    _column_choice(corpus, None)
    st.info("Choose the column that holds a query for each sentence.", icon=":material/table:")


def file_of_pairs() -> tuple[str, ...]:
    """The file of `current_pairs` for a command."""
    return current.file_of_pairs(current.in_use())


def about(pairs: Pairs, advice: str = " “Corpus”, at the top of the page, has others.") -> None:
    """What is evaluated, and what was left out."""
    text = f"**{messages.escape(pairs.name)}**: {searched_texts(pairs)}. "
    text += "The queries are headlines. " if not state.get("corpus") else ""
    if pairs.has_several:
        text += (
            f"They have {pairs.right_texts:,} correct answers: Recall@k is the share of queries with a correct answer among "
            "the first k, MRR is of the first correct answer, nDCG@10 of all."
        )
    else:
        text += "Each query has one correct answer."
    if state.get("corpus"):
        text += f" {rows_of_file(pairs, current.in_use().report.bad_count)}"
        text += f" {messages.escape(labels_of_pairs(current.in_use().columns, [pairs.column]))}"
    if pairs.shared:
        have = "has" if pairs.shared == 1 else "have"
        rows = counted(pairs.shared, "other row" if pairs.rows.repeated else "row")
        text += f" {rows} {have} the sentence of an earlier row, which is searched once."
    if any(has_pairs(query) for query in pairs.queries.texts[:LOOKED_AT]):
        text += " Word rankings divide texts without spaces between words into pairs of neighbouring characters."
    st.caption(text + advice)
    if pairs.warning:
        st.warning(messages.escape(pairs.warning))
    if len(pairs) < FEW_QUERIES:
        st.info(
            f"With {len(pairs)} queries, a single query changes a measure by up to {100 / len(pairs):.0f} points: small "
            "differences mean nothing."
        )


def data(backend: Backend) -> None:
    """The choice of the column with the queries, and what the queries share with their answers."""
    corpus = current.corpus()
    if not corpus.columns:
        st.warning(
            f"**{messages.escape(corpus.name)} has only sentences.** To measure retrieval, each sentence needs a query. Choose "
            f"a file with two columns (such as sentence and {QUERY_COLUMN}), or with lists of two texts.",
            icon=":material/table:",
        )
        return
    column = current.query_column(corpus)
    if column is not None:
        with controls.row():
            _column_choice(corpus, column)
    pairs = current_pairs()
    with shared.draw(pairs):
        about(pairs, advice="")


def _column_choice(corpus: Corpus, column: str | None) -> None:
    """Choose the column with the queries; `column` is the current one."""
    chooser.choose_query_column(
        corpus,
        column,
        after_change=lambda: state.put("opened", None),
        help=f"The text column “{messages.escape(corpus.report.text_column)}” holds the sentences that are ranked.",
        width=320,
    )


def runs_panel() -> DeltaGenerator:
    """A button that opens the choice of runs."""
    return st.popover("Choose runs", icon=":material/playlist_add:", width="content")


def measure() -> str:
    """The chosen measure: a key of `MEASURES`."""
    return CODES[controls.pick("measure", "Measure", CODES, MEASURE_HELP)]


def run_request(backend: Backend, queries: int, place: DeltaGenerator) -> RunRequest:
    """The runs to compare, chosen from every layer and pooling of the models and from the word rankings.

    The choice is drawn in `place`.
    """
    second = model_gate.second_model()
    models = {"m": EmbedRequest.of_session(backend, exact=True)}
    if second is not None:
        messages.cross_encoder_note([second], after=[backend])
        models["m2"] = EmbedRequest.of_session(second, exact=True)
    titles = {key: request.backend.spec.title for key, request in models.items()} if second is not None else {}
    first_codes = [
        code
        for key, request in models.items()
        for code in vector_codes(key, request.backend.text_layers, request.backend.poolings)
    ]
    by_words = [RunCode(words=kind) for kind in TITLES]
    by_splade = [RunCode(key) for key, request in models.items() if request.backend.splade is not None]
    chosen_runs = state.get("runs")
    with place:
        place, below = st.container(), st.container()
    with below:  # what only some runs need stands last
        k = _candidates()
    single = [*first_codes, *by_words, *by_splade]
    single += [
        replace(code, second=second_stage, k=k)
        for second_stage in SECOND_STAGES
        for code in first_codes
        if _is_offered(second_stage, code, models)
    ]
    own_vectors = RunCode("m", backend.facts.layers, backend.own_pooling)
    offered_runs = single + [RunCode.fused((code, WORDS)) for code in first_codes]
    offered_runs += [RunCode.fused((own_vectors, WORDS), FusionSettings(weight)) for weight in (25, 50, 75)]
    # Chosen before with another number of candidates, or in an address with other words or another weight.
    offered_runs += [
        code
        for code in map(RunCode.read, chosen_runs or ())
        if all(
            part.first in single and (not part.second or _is_offered(part.second, part.first, models))
            for part in code.each
        )
    ]
    names = {str(code): name_of(code, titles) for code in offered_runs}
    wanted_runs = tuple(map(str, default_runs(backend, second, queries))) if chosen_runs is None else chosen_runs
    codes = tuple(code for code in wanted_runs if code in names)
    if chosen_runs is not None and len(codes) < len(chosen_runs):
        missing = ", ".join(code for code in chosen_runs if code not in names)
        state.refuse("runs", codes, f"These runs are not available for these models: {missing}.")
    controls.bind(
        "runs",
        place.multiselect,
        "Runs",
        options={code: f"{name}{_searched_as(RunCode.read(code))}" for code, name in names.items()},
        default=codes,
        max_selections=settings.MOST_RUNS,
        placeholder="Add a run: a layer and pooling, or a word ranking",
        help="A run is one way to rank the sentences. Type to find a layer, a pooling, a word ranking, “BM25”, “hybrid”, "
        "“cross-encoder” or “MaxSim”. “SPLADE” is offered with a SPLADE model as the model or the second model.",
    )
    _fuse({str(code): names[str(code)] for code in single}, codes, place)
    chosen_codes = tuple(map(RunCode.read, codes))
    is_reranked = any(part.second == "rr" for code in chosen_codes for part in code.each)
    cross_encoder = model_gate.cross_encoder_stage() if is_reranked else None
    if cross_encoder is not None:
        with place:
            model_gate.label_choice(cross_encoder)
    return RunRequest(models, chosen_codes, names, cross_encoder)


def _searched_as(code: RunCode) -> str:
    """The words by which people look for a kind of run, behind its name in the choice."""
    if code.parts:
        return f" · hybrid, {'reciprocal rank fusion' if code.settings.weight is None else 'weighted fusion'}"
    return {"rr": " · cross-encoder", "ms": " · late interaction", "mx": " · late interaction"}.get(
        code.second or "", ""
    )


def _fuse(names: Mapping[str, str], codes: Sequence[str], place: DeltaGenerator) -> None:
    """The choice of two or three runs that are put together as one more run."""
    parts = controls.checked(
        place.multiselect,
        "Put two or three together",
        key="w_fused_parts",
        default=[],
        options=names,
        format_func=lambda code: names.get(code, code),
        max_selections=MOST_FUSED,
        placeholder="Layers and poolings, word rankings, MaxSim …",
        help="The new run ranks all sentences by a sum over these rankings, as chosen below.",
    )
    with place:
        how = controls.fusion()
    code = str(RunCode.fused(tuple(map(RunCode.read, parts)), how)) if len(parts) > 1 else ""
    why_not = (
        "Choose two or three above to add a run."
        if not code
        else "This run is there already."
        if code in codes
        else f"There are {settings.MOST_RUNS} runs already: remove one first."
        if len(codes) >= settings.MOST_RUNS
        else ""
    )
    place.button("Add this run", icon=":material/join:", disabled=bool(why_not), on_click=_add, args=((*codes, code),))
    if why_not:
        place.caption(why_not)


def _add(codes: tuple[str, ...]) -> None:
    state.put("runs", codes)
    st.session_state["w_fused_parts"] = []


def _is_offered(kind: Second, first: RunCode, models: Mapping[str, EmbedRequest]) -> bool:
    """Whether the hits of a run by vectors can be re-ranked in this way: the second model only if it was trained for it."""
    if kind == "ms":
        return first.model in models and not models[first.model].backend.structure.why_not("tokens")
    if kind != "mx":
        return True
    return first.model == "m" and "m2" in models and models["m2"].backend.late_interaction is not None


def _candidates() -> int:
    """How many first hits are re-ranked in the runs that are added next."""
    return int(
        controls.bind(
            "candidates",
            st.number_input,
            "Candidates of the re-ranked runs you add",
            min_value=LEAST_CANDIDATES,
            max_value=MOST_CANDIDATES,
            help="So many first hits of a layer and pooling are re-ranked, by the sidebar's cross-encoder or by MaxSim. Other "
            "sentences keep their ranks. Runs that are in the list keep their number.",
        )
    )


def about_second_stage(request: RunRequest) -> None:
    """What a fused run is, and what a re-ranked run can and cannot change, where there is any."""
    if any(code.parts for code in request.codes):
        st.caption(ABOUT_FUSION)
    two_stages = [part for code in request.codes for part in code.each if part.second]
    seconds = {code.second for code in two_stages}
    if not seconds:
        return
    text = "A re-ranked run changes the order of its candidates only: other sentences keep the rank of the first stage."
    if "rr" in seconds and request.cross_encoder is not None:
        text += f" Cross-encoder: {messages.escape(request.cross_encoder.title)}."
        if request.cross_encoder.backend.spec.key == EMBEDDED_CROSS_ENCODER_KEY:
            text += (
                " It was trained on similarity scores of sentence pairs (STS-B), not on rankings, and often ranks worse than "
                "the vectors do. The sidebar offers cross-encoders that were trained to rank."
            )
    if seconds & {"ms", "mx"}:
        text += _about_max_sim(
            [
                request.models["m2" if code.second == "mx" else code.model].backend
                for code in two_stages
                if code.second in {"ms", "mx"}
            ]
        )
    st.caption(text)


def _about_max_sim(backends: Sequence[Backend]) -> str:
    """Which vectors MaxSim compares."""
    names = {model.spec.title: model.late_interaction is not None for model in backends}
    trained = [messages.escape(name) for name, is_trained in names.items() if is_trained]
    others = [messages.escape(name) for name, is_trained in names.items() if not is_trained]
    text = " MaxSim compares token vectors."
    if trained:
        text += f" Those of {' and '.join(trained)} were trained for it (late interaction)."
    if others:
        text += f" {' and '.join(others)} gives hidden states, which were not trained for it."
    return text


def default_runs(backend: Backend, second: Backend | None, queries: int) -> tuple[RunCode, ...]:
    """The model's last layer with its own pooling and with [CLS], its input embeddings, and well-known word rankings.

    A word ranking takes milliseconds per query: with very many queries, it is run only if somebody chooses it.
    """
    last = backend.facts.layers
    codes = [RunCode("m", last, backend.own_pooling), RunCode("m", last, "cls"), RunCode("m", 0, "mean")]
    if backend.late_interaction is not None:  # what the model was trained for
        codes.insert(0, replace(codes[0], second="ms", k=state.default("candidates")))
    if backend.splade is not None:
        codes.insert(0, RunCode("m"))
    if queries <= MANY_QUERIES:
        codes += [RunCode(words=kind) for kind in ("bow", "tfidf", "bm25", "static")]
    if second is not None:
        codes.insert(1, RunCode("m2", second.facts.layers, second.own_pooling))
    return tuple(dict.fromkeys(codes))


def vector_codes(model: str, layers: Sequence[int], poolings: Sequence[Pooling]) -> list[RunCode]:
    """A model's runs by vectors, the last layer first."""
    return [RunCode(model, layer, pooling) for layer in layers[::-1] for pooling in poolings]


def is_by_words(code: RunCode) -> bool:
    """Whether only words or SPLADE's pieces rank, so that a sentence may have nothing in common with a query."""
    return all(part.words or part.is_splade for part in code.each)


def name_of(code: RunCode, models: Mapping[str, str] = MappingProxyType({})) -> str:
    """A run's short name. `models` are the models' titles, where there are two to be told apart."""
    name = _name_of(code, models)
    return name if models or not code.each[0].pooling else name[0].upper() + name[1:]


def _name_of(code: RunCode, models: Mapping[str, str]) -> str:
    if code.parts:
        return f"{' + '.join(_name_of(part, models) for part in code.parts)}, {code.fusion_name}"
    if code.words:
        return TITLES[code.words]
    name = SPLADE if code.is_splade else f"layer {code.layer}, {POOLING_NAMES[code.cell[1]]}"
    if code.second:
        name += f", first {code.k} {SECOND_STAGES[code.second]}"
    return f"{models[code.model]}, {name}" if models else name
