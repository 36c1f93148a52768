"""What the Evaluate page works on: the pairs, the measure, and the runs that are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

import pandas as pd
import streamlit as st

from components.errors import InputError
from components.model.trace import Pooling
from components.retrieval.evaluation import pair_runs
from components.retrieval.evaluation.metrics import MEASURES
from components.retrieval.evaluation.pair_runs import QUERY_COLUMN
from components.retrieval.search.lexical import TITLES
from dashboard import caching, settings, state
from dashboard.corpora import chooser, current
from dashboard.jobs.evaluation import NoResult
from dashboard.ui import controls, messages, model_gate
from dashboard.ui.wording import POOLING_NAMES

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.evaluation.pair_runs import Pairs

MEASURE_HELP = (
    "Recall@k: the share of queries whose own sentence is among the first k. MRR: the mean of 1 / rank. nDCG@10: the mean of "
    "1 / log2(1 + rank), 0 beyond rank 10. All in per cent."
)
MANY_QUERIES, FEW_QUERIES = 50_000, 30
R = TypeVar("R")  # what a run came to
S = TypeVar("S")  # a model's documents and queries


def codes_of(measures: Iterable[str]) -> dict[str, str]:
    """The address's short codes of measures: "r10" for Recall@10, "p10" for P@10, "mrr", "ndcg"."""
    return {name.lower().replace("recall@", "r").replace("p@", "p").removesuffix("@10"): name for name in measures}


CODES = codes_of(MEASURES)


@dataclass(frozen=True)
class VectorCode:
    """A run of one of the session's models: `which` is "m" or "m2"."""

    which: str
    layer: int
    pooling: Pooling


@dataclass(frozen=True, eq=False)
class RunRequest:
    """The runs that a person asks for, with the models they are of."""

    backend: Backend
    second: Backend | None
    codes: tuple[str, ...]

    def name(self, code: str) -> str:
        return name_of(code, self.backend, self.second)

    def gather(
        self,
        by_words: Callable[[str], R],
        sides_of: Callable[[Backend, str], S],
        by_vectors: Callable[[Backend, S, VectorCode, str], R | None],
    ) -> tuple[list[tuple[str, str, R]], dict[str, S]]:
        """Code, name and outcome of each run that is there, in the order they were chosen; and each model's sides.

        by_words: a baseline's outcome. sides_of: a model's documents and queries. by_vectors: the outcome of a layer and
        pooling, None where it is not embedded. All raise NoResult for what is not there yet: it is waited for.
        """
        ready: list[tuple[str, str, R]] = []
        sides: dict[str, S | None] = {}  # None: not there in this run of the page, and why has been drawn
        for number, code in enumerate(self.codes):
            wanted, name = parsed(code), self.name(code)
            try:
                if wanted is None:
                    ready.append((code, name, by_words(code)))
                    continue
                model = self.backend if wanted.which == "m" else self.second
                assert model is not None  # offered only where there is one
                if wanted.which not in sides:
                    sides[wanted.which] = None
                    sides[wanted.which] = sides_of(model, wanted.which)
                both = sides[wanted.which]
                if both is None:
                    continue
                outcome = by_vectors(model, both, wanted, name)
                if outcome is None:
                    st.caption(f"Not embedded: {messages.escape(name)}.")
                else:
                    ready.append((code, name, outcome))
            except NoResult as missing:
                if missing.waiting:
                    rest = ", ".join(messages.escape(self.name(each)) for each in self.codes[number + 1 :])
                    if rest:
                        st.caption(f"Then: {rest}.")
                    break
        return ready, {which: both for which, both in sides.items() if both is not None}


def current_pairs() -> Pairs:
    """The pairs of the session's corpus. Raises InputError where it has no queries, or a single one."""
    corpus = current.corpus()
    column = query_column(corpus)
    if column is None:
        others = ", ".join(corpus.columns)
        raise InputError(
            f"{corpus.name} has sentences{' and the columns ' + others if others else ' only'}.",
            "A column with a query for each sentence was expected.",
            "Choose it, or another corpus, under “Data”.",
        )
    key = f"{state.get('corpus')} {column}"
    kept = caching.pair_sets().find(key)
    if kept is None:
        kept = pair_runs.pairs_of_corpus(corpus, column)
        caching.pair_sets().put(key, kept)
    if len(kept) < 2:
        raise InputError(
            f"{corpus.name} has one pair.",
            "At least two were expected: a single sentence is found by whatever one asks.",
            "Choose another corpus under “Data”.",
        )
    return kept


def query_column(corpus: Corpus) -> str | None:
    """The column that holds the queries: the chosen one, else "compressed", else the only one there is."""
    names = list(corpus.columns)
    chosen = state.get("query_column")
    if chosen and chosen not in names:
        st.warning(f"There is no column “{messages.escape(chosen)}” here.", icon=":material/link_off:")
        state.put("query_column", "")
    elif chosen:
        return str(chosen)
    return QUERY_COLUMN if QUERY_COLUMN in names else names[0] if len(names) == 1 else None


def about(pairs: Pairs, advice: str = " Change it under “Data”.") -> None:
    """One line on what is evaluated, with what was left out."""
    text = f"**{messages.escape(pairs.name)}**: {len(pairs):,} queries"
    text += " (headlines)" if not state.get("corpus") else ""
    text += ", each with one right answer among as many sentences."
    if pairs.left_out:
        text += f" {pairs.left_out:,} rows have no query and are left out."
    st.caption(text + advice)
    if pairs.repeated:
        st.warning(
            f"{pairs.repeated:,} rows have a sentence that another row has too. A tie counts against the query, so their "
            "queries never have rank 1."
        )
    if len(pairs) < FEW_QUERIES:
        st.info(
            f"With {len(pairs)} queries one of them is worth {100 / len(pairs):.0f} points: differences say little."
        )


def data(backend: Backend) -> None:
    """Choose the corpus, and the column that holds the queries."""
    chooser.choose()
    corpus = current.corpus()
    st.subheader(messages.escape(corpus.name), anchor=False)
    names = list(corpus.columns)
    if not names:
        st.warning(
            f"**{messages.escape(corpus.name)} has sentences only.** To measure retrieval, each needs a query: a file with two "
            f"columns (such as sentence and {QUERY_COLUMN}), or lists of two texts.",
            icon=":material/table:",
        )
        return
    column = query_column(corpus)
    controls.bind(
        "query_column",
        st.selectbox,
        "Column with the queries",
        options=names,
        to_widget=lambda _: column,
        after_change=lambda: state.put("opened", None),
        placeholder="Choose one",
        help=f"The text column “{messages.escape(corpus.report.text_column)}” holds the sentences that are ranked.",
    )
    if column is None:
        st.info("Choose the column that holds a query for each sentence.")
        return
    pairs = current_pairs()
    about(pairs, advice="")
    st.markdown("**The first pairs**")
    table = pd.DataFrame({"query": pairs.queries.texts[:8], "right answer": pairs.documents.texts[:8]})
    st.table(table.map(messages.escape), hide_index=True)


def measure() -> str:
    """The measure by which runs are judged: a key of `MEASURES`."""
    return CODES[controls.pick("measure", "Measure", CODES, MEASURE_HELP)]


def run_request(backend: Backend, queries: int) -> RunRequest:
    """The runs to compare, picked from every layer and pooling of the models and the word rankings."""
    second = model_gate.second_model()
    if second is not None:
        messages.cross_encoder_note([second], after=[backend])
    offered = [*TITLES]
    for model_key, model in (("m2", second), ("m", backend)):
        if model is not None:
            layers = range(model.facts.layers, -1, -1)
            offered[:0] = [f"{model_key}.{layer}.{pooling}" for layer in layers for pooling in model.poolings]
    asked = state.get("runs")
    chosen = [code for code in (default_runs(backend, second, queries) if asked is None else asked) if code in offered]
    if asked is not None and len(chosen) < len(asked):
        gone = ", ".join(code for code in asked if code not in offered)
        st.warning(
            f"These runs are not to be had with the models chosen: {messages.escape(gone)}.", icon=":material/link_off:"
        )
        state.put("runs", tuple(chosen))
    names = {code: name_of(code, backend, second) for code in offered}
    controls.bind(
        "runs",
        st.multiselect,
        "Runs",
        options=names,
        default=tuple(chosen),
        max_selections=settings.MOST_RUNS,
        placeholder="Add a run: a layer and pooling, or a word ranking",
        help="A run is one way to rank the sentences. Type to find a layer, a pooling or a word ranking.",
    )
    return RunRequest(backend, second, tuple(chosen))


def default_runs(backend: Backend, second: Backend | None, queries: int) -> tuple[str, ...]:
    """The model's own choice, its last [CLS], its input embeddings, and the word rankings people know.

    Counting words takes milliseconds a query: where there are very many, word rankings are run only when they are asked for.
    """
    last = backend.facts.layers
    codes = [f"m.{last}.{backend.own_pooling}", f"m.{last}.cls", "m.0.mean"]
    if queries <= MANY_QUERIES:
        codes += ["bow", "tfidf", "bm25", "static"]
    if second is not None:
        codes.insert(1, f"m2.{second.facts.layers}.{second.own_pooling}")
    return tuple(dict.fromkeys(codes))


def parsed(code: str) -> VectorCode | None:
    """What a run's code says; None for a word ranking's."""
    parts = code.split(".")
    if len(parts) != 3:
        return None
    return VectorCode(parts[0], int(parts[1]), cast(Pooling, parts[2]))


def name_of(code: str, backend: Backend, second: Backend | None) -> str:
    """A run's short name: the model is named only where there are two."""
    wanted = parsed(code)
    if wanted is None:
        return TITLES[code]
    name = f"ayer {wanted.layer}, {POOLING_NAMES[wanted.pooling]}"
    if second is None:
        return f"L{name}"
    return f"{(backend if wanted.which == 'm' else second).spec.title}, l{name}"
