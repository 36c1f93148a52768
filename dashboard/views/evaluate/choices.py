"""What evaluation works on: the pairs, the measure, and the runs that are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeVar, cast

import pandas as pd
import streamlit as st

from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY
from components.model.trace import Pooling
from components.numbers import enumerated
from components.retrieval.evaluation import pair_runs
from components.retrieval.evaluation.metrics import MEASURES, finds_nothing
from components.retrieval.evaluation.pair_runs import QUERY_COLUMN
from components.retrieval.fusion.scores import Fusion, weighted
from components.retrieval.search.lexical import TITLES
from components.retrieval.search.splade import TITLE as SPLADE
from components.shown_code.commands import measured
from components.words.unicode_words import has_pairs
from dashboard import caching, settings, state
from dashboard.corpora import current
from dashboard.jobs import evaluation
from dashboard.jobs.embedding import EmbedRequest
from dashboard.jobs.reranking import SecondStage
from dashboard.jobs.second_stage import Kind, TwoStages
from dashboard.ui import controls, figures, messages, model_gate
from dashboard.ui.waiting import frame
from dashboard.ui.wording import POOLING_NAMES, counted

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from components.model.backend import Backend
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.evaluation.metrics import Ranks
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.search.lexical import Kind as WordKind

MEASURE_HELP = (
    "Recall@k: the share of queries with a correct answer among the first k sentences. MRR: the mean of 1 / rank of the first "
    "correct answer. nDCG@10: the mean of 1 / log2(1 + rank), 0 beyond rank 10; of a query with several correct answers, their "
    "sum by that of the best order. All are in per cent."
)
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
SECOND_STAGES: dict[Kind, str] = {"rr": "re-ranked", "ms": "by MaxSim", "mx": "by the second model's MaxSim"}
SPLADE_CODES = {"sp.m": "m", "sp.m2": "m2"}  # runs by SPLADE's weights, and the model that gives them
_NAMED = {"dot": "dot product", "euclidean": "Euclidean distance", "manhattan": "Manhattan distance"}
WORDS: WordKind = "bm25"  # with which runs by vectors are offered fused
ABOUT_FUSION = (
    "A fused run ranks all sentences by a sum. By ranks: 1 / (60 + rank) by vectors plus the same by words (reciprocal rank "
    "fusion). With a share of words: both scores from 0 to 1 for each query, weighted. A sentence without a word of the query "
    "has no rank by words, and a word score of 0."
)
NO_SHARED_WORD = "no query shares a word with a correct answer, so that there is nothing to measure."
NO_RUN = "**No run yet.** Add a layer and pooling, or a word ranking."
Outcome = TypeVar("Outcome")  # of a run
Sides = TypeVar("Sides")  # a model's documents and queries


def measuring(draw: Callable[[Backend], None], backend: Backend) -> None:
    """Draw a view that measures a model, below a note on models that are not made for what is measured."""
    messages.cross_encoder_note([backend])
    draw(backend)


def measuring_by_cosine(draw: Callable[[Backend], None], backend: Backend) -> None:
    """The same for a view that ranks by the cosine, with a note on models that were published for another similarity."""
    own = backend.sentence_config.similarity
    if own != "cosine":
        st.caption(
            f":material/straighten: **{messages.escape(backend.spec.title)}** was published for the {_NAMED[own]}. This view "
            "ranks by the cosine; Search and Sentence similarity use what the model was published for."
        )
    measuring(draw, backend)


def codes_of(measures: Iterable[str]) -> dict[str, str]:
    """The address's short codes of measures: "r10" for Recall@10, "p10" for P@10, "mrr", "ndcg"."""
    return {name.lower().replace("recall@", "r").replace("p@", "p").removesuffix("@10"): name for name in measures}


CODES = codes_of(MEASURES)


@dataclass(frozen=True)
class VectorCode:
    """A run by vectors; `model` is "m" for the session's first model, "m2" for the second.

    `second` says how its first `k` hits are re-ranked; "" where they are not. `words` is the ranking by words with which it is
    fused, "" without one, and `weight` that of the words in per cent, None for reciprocal rank fusion.
    """

    model: str
    layer: int
    pooling: Pooling
    second: Kind | Literal[""] = ""
    k: int = 0
    words: WordKind | Literal[""] = ""
    weight: int | None = None

    @property
    def is_single(self) -> bool:
        """Whether vectors alone rank."""
        return not self.second and not self.words

    @property
    def fusion(self) -> Fusion:
        """How it is fused with the words."""
        return Fusion() if self.weight is None else weighted(self.weight / 100)


@dataclass(frozen=True, eq=False)
class RunRequest:
    """The chosen runs, with the models they use: "m", and "m2" where a second one is chosen."""

    models: Mapping[str, EmbedRequest]
    codes: tuple[str, ...]
    names: Mapping[str, str]  # by code
    cross_encoder: SecondStage | None = None  # only where a run needs it

    def stages(self, code: VectorCode) -> TwoStages | None:
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
        return TwoStages(first.backend, code.layer, code.pooling, code.k, second)

    def commands(self, file: Sequence[str], codes: Iterable[str]) -> list[tuple[str, ...]]:
        """The command that measures each of some runs on the pairs of a file, given with how it is read."""
        return [self._command(file, code) for code in codes]

    def _command(self, file: Sequence[str], code: str) -> tuple[str, ...]:
        vector_code = parsed(code)
        model = self.models[SPLADE_CODES.get(code, "m") if vector_code is None else vector_code.model]
        backend, length = model.backend, model.max_length
        if vector_code is None:
            if code == "static":
                return ()
            alone = ("--splade",) if code in SPLADE_CODES else ("--fuse", code, "--weights", "1")
            return measured("evaluate", file, backend, [backend.facts.layers], [backend.own_pooling], length, *alone)
        options: tuple[str, ...] = ()
        stages = self.stages(vector_code)
        if stages is not None:
            if stages.second.kind == "maxsim" and stages.second.backend is not backend:
                return ()  # the command compares the token vectors of its own model
            way = "--max-sim" if stages.second.kind == "maxsim" else "--rerank"
            of = () if way == "--max-sim" else ("--cross-encoder", stages.second.backend.spec.key)
            options = (way, str(vector_code.k), *of)
        if vector_code.words:
            weight = () if vector_code.weight is None else ("--weights", f"{vector_code.weight / 100:g}")
            options = ("--fuse", vector_code.words, *weight)
        cell = [vector_code.layer], [vector_code.pooling]
        return measured("evaluate", file, backend, *cell, length, *options)

    @property
    def backend(self) -> Backend:
        """The first model."""
        return self.models["m"].backend

    def gather(
        self,
        by_words: Callable[[str], Outcome],
        by_splade: Callable[[EmbedRequest, str], Outcome],
        sides_of: Callable[[EmbedRequest, str], Sides],
        by_vectors: Callable[[Backend, Sides, VectorCode, str], Outcome | None],
    ) -> tuple[list[tuple[str, str, Outcome]], dict[str, Sides]]:
        """Code, name and outcome of each finished run, in the chosen order; and each model's sides.

        by_words: the outcome of a word ranking. by_splade: that of a SPLADE model, by its request and code. sides_of: a
        model's documents and queries. by_vectors: the outcome of a layer and pooling, None if it is not embedded. All
        raise NotReady for what is not finished: why is drawn.
        """
        ready: list[tuple[str, str, Outcome]] = []
        sides: dict[str, Sides | None] = {}  # None: not ready, and why has been drawn
        for number, code in enumerate(self.codes):
            vector_code, name = parsed(code), self.names[code]
            outcome: Outcome | None = None
            with frame.figure(f"run_{number}") as figure:
                if code in SPLADE_CODES:
                    outcome = by_splade(self.models[SPLADE_CODES[code]], code)
                elif vector_code is None:
                    outcome = by_words(code)
                else:
                    model = vector_code.model
                    if model not in sides:
                        sides[model] = None
                        sides[model] = sides_of(self.models[model], model)
                    model_sides = sides[model]
                    if model_sides is None:
                        continue
                    outcome = by_vectors(self.models[model].backend, model_sides, vector_code, name)
                    if outcome is None:
                        st.caption(f"Not embedded: {messages.escape(name)}.")
            if outcome is not None:
                ready.append((code, name, outcome))
            if figure.not_ready is not None and evaluation.is_under_way(figure.not_ready):
                # Not joined by commas, which the names have too.
                rest = " · ".join(f"“{messages.escape(self.names[later])}”" for later in self.codes[number + 1 :])
                if rest:
                    st.caption(f"The next runs: {rest}")
                break
        return ready, {model: model_sides for model, model_sides in sides.items() if model_sides is not None}


def that_find(
    ready: Sequence[tuple[str, str, Outcome]], ranks_of: Callable[[Outcome], Ranks]
) -> list[tuple[str, str, Outcome]]:
    """The finished runs without those by words that find no correct answer of any query, of which that is said."""
    silent = [name for code, name, outcome in ready if parsed(code) is None and finds_nothing(ranks_of(outcome))]
    if silent:
        st.info(f"{messages.escape(enumerated(silent))}: {NO_SHARED_WORD}", icon=":material/search_off:")
    return [run for run in ready if run[1] not in silent]


def current_pairs() -> Pairs:
    """The pairs of the session's corpus.

    Raises NotReady, which asks for the column with the queries, if that is not clear; InputError for a single pair.
    """
    corpus = current.corpus()
    column = current.query_column(corpus)
    if column is None:
        raise frame.Instead(partial(_ask_for_queries, corpus))
    key = f"{state.get('corpus')} {column}"
    pairs = caching.pair_sets().get(key, lambda: pair_runs.pairs_of_corpus(corpus, column))
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


def about(pairs: Pairs, advice: str = " Change it at the top of the page.") -> None:
    """What is evaluated, and what was left out."""
    text = f"**{messages.escape(pairs.name)}**: {counted(len(pairs), 'query', 'queries')}"
    text += " (headlines)" if not state.get("corpus") else ""
    if pairs.has_several:
        text += (
            f" with {pairs.right_texts:,} correct answers among {len(pairs.documents):,} sentences. Recall@k is the share of "
            "queries with a correct answer among the first k, MRR is of the first correct answer, nDCG@10 of all."
        )
    else:
        many = len(pairs.documents)
        text += f", each with one correct answer among {'as many' if many == len(pairs) else f'{many:,}'} sentences."
    if pairs.left_out:
        have, are = ("has", "is") if pairs.left_out == 1 else ("have", "are")
        text += f" {counted(pairs.left_out, 'row')} {have} no query and {are} left out."
    if pairs.repeated:
        have = "has" if pairs.repeated == 1 else "have"
        text += f" {counted(pairs.repeated, 'row')} {have} the sentence of an earlier row, which is searched once."
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
    """The choice of the column with the queries, and the first pairs."""
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
        _column_choice(corpus, column)
    pairs = current_pairs()
    figures.note("**The first pairs**")
    shown = [(query, number) for query in range(min(8, len(pairs))) for number in pairs.answers_of(query)][:8]
    table = pd.DataFrame(
        {
            "query": [pairs.queries.texts[query] for query, _ in shown],
            "correct answer": [pairs.documents.texts[number] for _, number in shown],
        }
    )
    figures.whole_texts(table, key="first_pairs")
    about(pairs, advice="")


def _column_choice(corpus: Corpus, column: str | None) -> None:
    """Choose the column with the queries; `column` is the current one."""
    controls.bind(
        "query_column",
        st.selectbox,
        "Column with the queries",
        options=list(corpus.columns),
        to_widget=lambda _: column,
        after_change=lambda: state.put("opened", None),
        placeholder="Choose a column",
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
    names = {
        code: name_of(code, titles)
        for key, request in models.items()
        for code in vector_codes(key, request.backend.text_layers, request.backend.poolings)
    } | TITLES
    names |= {
        code: name_of(code, titles)
        for code, key in SPLADE_CODES.items()
        if key in models and models[key].backend.splade is not None
    }
    chosen = state.get("runs")
    with place:
        k = _candidates()
    first_codes = [code for code in names if parsed(code) is not None]
    second_codes = [
        f"{kind}.{k}.{code}" for kind in SECOND_STAGES for code in first_codes if _is_offered(kind, code, models)
    ]
    own = f"m.{backend.facts.layers}.{backend.own_pooling}"
    fused_codes = [f"fr.{WORDS}.{code}" for code in first_codes] + [
        f"f{weight}.{WORDS}.{own}" for weight in (25, 50, 75)
    ]
    names |= {code: name_of(code, titles) for code in (*second_codes, *fused_codes)}
    # Chosen before with another number of candidates, or in an address with other words or another weight.
    names |= {
        code: name_of(code, titles)
        for code in chosen or ()
        if (earlier := parsed(code)) is not None
        and first_stage(code) in names
        and (not earlier.second or _is_offered(earlier.second, first_stage(code), models))
    }
    codes = tuple(
        code for code in (default_runs(backend, second, queries) if chosen is None else chosen) if code in names
    )
    if chosen is not None and len(codes) < len(chosen):
        missing = ", ".join(code for code in chosen if code not in names)
        state.refuse("runs", codes, f"These runs are not available for these models: {missing}.")
    controls.bind(
        "runs",
        place.multiselect,
        "Runs",
        options=names,
        default=codes,
        max_selections=settings.MOST_RUNS,
        placeholder="Add a run: a layer and pooling, or a word ranking",
        help="A run is one way to rank the sentences. Type to find a layer, a pooling, a word ranking, “BM25”, “re-ranked” or "
        "“MaxSim”. “SPLADE” is offered with a SPLADE model as the model or the second model.",
    )
    cross_encoder = model_gate.cross_encoder_stage() if any(code.startswith("rr.") for code in codes) else None
    if cross_encoder is not None:
        with place:
            model_gate.label_choice(cross_encoder)
    return RunRequest(models, codes, names, cross_encoder)


def _is_offered(kind: Kind, first: str, models: Mapping[str, EmbedRequest]) -> bool:
    """Whether the hits of a run by vectors can be re-ranked in this way: the second model only if it was trained for it."""
    if kind == "ms":
        code = parsed(first)
        return code is not None and not models[code.model].backend.structure.why_not("tokens")
    if kind != "mx":
        return True
    return first.startswith("m.") and "m2" in models and models["m2"].backend.late_interaction is not None


def _candidates() -> int:
    """How many first hits are re-ranked in the runs that are added next."""
    return int(
        controls.bind(
            "candidates",
            st.number_input,
            "Candidates of the re-ranked runs you add",
            min_value=settings.LEAST_RUN_CANDIDATES,
            max_value=settings.MOST_RUN_CANDIDATES,
            help="So many first hits of a layer and pooling are re-ranked, by the sidebar's cross-encoder or by MaxSim. Other "
            "sentences keep their ranks. Runs that are in the list keep their number.",
        )
    )


def about_second_stage(request: RunRequest) -> None:
    """What a fused run is, and what a re-ranked run can and cannot change, where there is any."""
    chosen = [code for code in map(parsed, request.codes) if code is not None]
    if any(code.words for code in chosen):
        st.caption(ABOUT_FUSION)
    two_stages = [code for code in chosen if code.second]
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


def default_runs(backend: Backend, second: Backend | None, queries: int) -> tuple[str, ...]:
    """The model's last layer with its own pooling and with [CLS], its input embeddings, and well-known word rankings.

    A word ranking takes milliseconds per query: with very many queries, it is run only if somebody chooses it.
    """
    last = backend.facts.layers
    codes = [f"m.{last}.{backend.own_pooling}", f"m.{last}.cls", "m.0.mean"]
    if backend.late_interaction is not None:  # what the model was trained for
        codes.insert(0, f"ms.{state.default('candidates')}.{codes[0]}")
    if backend.splade is not None:
        codes.insert(0, "sp.m")
    if queries <= MANY_QUERIES:
        codes += ["bow", "tfidf", "bm25", "static"]
    if second is not None:
        codes.insert(1, f"m2.{second.facts.layers}.{second.own_pooling}")
    return tuple(dict.fromkeys(codes))


def parsed(code: str) -> VectorCode | None:
    """A code such as "m.6.mean", "rr.100.m.6.mean" or "fr.bm25.m.6.mean", parsed; None for a word ranking's and SPLADE's."""
    parts = code.split(".")
    if len(parts) not in {3, 5}:
        return None
    model, layer, pooling = parts[-3:]
    first = VectorCode(model, int(layer), cast("Pooling", pooling))
    if len(parts) == 3:
        return first
    if parts[0] not in SECOND_STAGES:
        weight = None if parts[0] == "fr" else int(parts[0].removeprefix("f"))
        return replace(first, words=cast("WordKind", parts[1]), weight=weight)
    return replace(first, second=parts[0], k=int(parts[1]))


def first_stage(code: str) -> str:
    """The code of the run by vectors with which a re-ranked or fused run begins; of another run, its own."""
    return ".".join(code.split(".")[-3:])


def vector_codes(model: str, layers: Sequence[int], poolings: Sequence[str]) -> list[str]:
    """The codes of a model's runs, the last layer first."""
    return [f"{model}.{layer}.{pooling}" for layer in layers[::-1] for pooling in poolings]


def name_of(code: str, models: Mapping[str, str] = MappingProxyType({})) -> str:
    """A run's short name. `models` are the models' titles, where there are two to be told apart."""
    if code in SPLADE_CODES:
        return f"{models[SPLADE_CODES[code]]}, {SPLADE}" if models else SPLADE
    vector_code = parsed(code)
    if vector_code is None:
        return TITLES[code]
    name = f"layer {vector_code.layer}, {POOLING_NAMES[vector_code.pooling]}"
    if vector_code.second:
        name += f", first {vector_code.k} {SECOND_STAGES[vector_code.second]}"
    if vector_code.words:
        name += f" + {TITLES[vector_code.words]}, " + (
            "by ranks" if vector_code.weight is None else f"{vector_code.weight} % words"
        )
    return f"{models[vector_code.model]}, {name}" if models else name[0].upper() + name[1:]
