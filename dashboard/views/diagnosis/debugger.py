"""The retrieval debugger: why a rival ranks before the right text, and which edit would change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from components.retrieval.corpora.rows import roles
from components.retrieval.failures import failed_queries, own_columns
from components.retrieval.failures.traits import TRAITS, compared
from dashboard import caching, navigation, state
from dashboard.corpora import chooser, current, own_queries
from dashboard.jobs import embedding, failures
from dashboard.jobs.embedding import EmbedRequest
from dashboard.jobs.failures import CorpusQueries
from dashboard.ui import controls, figures, messages
from dashboard.ui.waiting import before_work, frame
from dashboard.ui.wording import POOLING_NAMES
from dashboard.views.diagnosis import debugger_table, failed_case
from dashboard.views.diagnosis.debugger_table import QueryChoice
from dashboard.views.diagnosis.failed_case import Case

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from components.model.backend import Backend
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.failures.causes import Causes
    from components.retrieval.failures.failed_queries import FailedQueries, Placing

ORDERS = {"worst": "Worst first", "nearest": "Nearest misses first"}
MOST_LISTED = 500  # failed queries offered in the list
MOST_HITS = 50  # offered as the right text of a typed query


def draw(backend: Backend) -> None:
    """Draw the view."""
    messages.cross_encoder_note([backend])
    corpus = current.corpus()
    column = current.query_column(corpus)
    has_queries = len(failures.searched_corpus(corpus, column).queries) > 0
    parts = debugger_table.parts_of(corpus, column) if has_queries else {}
    only = ""
    with controls.row():
        if not has_queries:
            with st.container(width=round(320 * controls.scale())):
                typed = _typed_query("Query")
        key = f"own_queries_{state.get('corpus')}"[:24]
        with st.popover("Your queries", icon=":material/upload_file:", width="content", key=key):
            messages.guarded(lambda: own_queries.all_ways(corpus, key, navigation.go_to), "reading your queries")
        if has_queries:
            typed = _query_field()
            only = debugger_table.part_choice(parts)
        chooser = st.empty()
        panel = controls.options()
    with panel:
        order = controls.choice("failed_order", "Order of the failed queries", ORDERS)
        debugger_table.abbreviations_field(failures.searched_corpus(corpus, column).queries.texts)
    _how_read(corpus)
    searched = _searched(backend, corpus, panel)
    found = failures.failures(searched)
    if found is None or not len(found):
        with chooser if typed else panel:
            case = _typed(searched, typed) if typed else _listed(searched, found, [])
        if case is None:
            _nothing(corpus, searched, found)
            return
        failed_case.further(case, failed_case.begin(case))
    else:
        _failed(searched, found, order, only, typed, (chooser, panel), parts)
    debugger_table.of_pairs(searched.corpus.pairs, is_above=False)
    _caveats()
    if found is not None and len(found):
        current.say_regression_test(current.file_of_pairs(corpus))


def _how_read(corpus: Corpus) -> None:
    """Say which columns were taken as the queries and the texts, where that is a guess, and an encoding that is one."""
    report, column = corpus.report, current.query_column(corpus)
    said = []
    if report.text_is_guess and column is not None and not roles.is_named_query(column):
        said.append(
            f"Queries: column “{messages.escape(column)}”. Texts: column “{messages.escape(report.text_column)}” "
            f"({report.text_reason}). Other columns: “Corpus” for the texts, “Options” for the queries."
        )
    if report.encoding_guessed:
        encoding = messages.escape(report.encoding)
        said.append(f"The encoding {encoding} is a guess: if letters are wrong, type another one under “Corpus”.")
    if said:
        st.caption(" ".join(said))


def _failed(
    searched: CorpusQueries,
    found: FailedQueries,
    order: str,
    only: str,
    typed: str,
    places: tuple[DeltaGenerator, DeltaGenerator],
    parts: Mapping[str, str],
) -> None:
    """What the failed queries share and their list, one of them beside it, and below what else is known of it and of them.

    `places` are those of the right text of a typed query, and of the choice of a failed query; `parts` those of the file's
    columns.
    """
    cause = str(state.get("failure_cause")).replace("-", " ")
    search, below = st.container(key="failed_search"), st.container()
    with search:
        above = st.container()
        left, right = st.columns([5, 7], gap="medium")
        with left:
            place = st.container()
            traits = None
            with frame.figure("traits"):
                traits = failures.traits_of(searched)
    causes = None
    with below:
        by_value = st.container()
        figures.subheader("What the rivals of failed queries share")
    if cause != "all":  # the list is made by them
        with below, frame.figure("failed_queries"):
            causes = _of_rivals(searched, found)
    with search:
        trait = str(state.get("failed_trait"))
        if trait not in TRAITS or traits is None:
            trait = ""
        chosen = QueryChoice(searched, found, order, only, traits, trait, causes, "all" if causes is None else cause)
        shares, placings = chosen.shares(), chosen.placings()
        values = compared(debugger_table.values_of(searched.corpus, tuple(parts)), chosen.failed) if parts else ()
        with places[0 if typed else 1]:
            case = _typed(searched, typed) if typed else _listed(searched, found, placings or found.in_order(order))
        assert case is not None  # there are failed queries, and so at least two texts
        with above:
            of_values = "" if only else own_columns.named_in_words(values, parts)
            debugger_table.finding(chosen, shares, of_values)
        with place:
            debugger_table.listed(chosen, shares, placings, None if typed else case.placed.row)
        with right:
            words = failed_case.begin(replace(case, traits=chosen.traits_of(case.query)))
        if parts:
            with by_value:
                debugger_table.by_columns(chosen, parts, values)
        failed_case.further(case, words)
    if cause == "all":
        with below, frame.figure("failed_queries"):
            _of_rivals(searched, found)


def _of_rivals(searched: CorpusQueries, found: FailedQueries) -> tuple[Causes, Causes]:
    """Draw the traits of the rivals of the failed queries and of the others, which are returned. Raises NotReady."""
    both = failures.causes_of(searched, found, failures.occurrences(searched, "hubness_of_all"))
    debugger_table.of_rivals(searched, found, both)
    return both


def _query_field() -> str:
    """The field for a query that is not in the list, opened by a button; it closes once a query was typed."""
    typed = str(state.get("typed_query")).strip()
    with st.popover("Type a query", icon=":material/edit:", width="content", key=f"type_query_{hash(typed)}"):
        _typed_query("Query")
        st.caption("Then choose its right text from the list.")
        if typed:
            st.button(
                "Back to the failed queries",
                key="failed_list",
                icon=":material/list:",
                on_click=lambda: state.put("typed_query", ""),
            )
    return typed


def _typed_query(label: str) -> str:
    return str(
        controls.bind(
            "typed_query",
            st.text_input,
            label,
            after_change=lambda: state.put("right_row", None),
            max_chars=1_000,
            placeholder="Type a query",
        )
    ).strip()


def _searched(backend: Backend, corpus: Corpus, panel: DeltaGenerator) -> CorpusQueries:
    """The corpus and its queries at the chosen layer and pooling. Raises NotReady until both are embedded."""
    with panel:
        if len(corpus.columns) > 1:
            forget = partial(state.put, "failed_query", None)
            chooser.choose_query_column(corpus, current.query_column(corpus), after_change=forget)
    collection = failures.searched_corpus(corpus, current.query_column(corpus))
    # In float32, as Evaluate measures: a near miss can be smaller than what bfloat16 changes.
    request = EmbedRequest.of_session(backend, exact=True)
    index = embedding.index_of(request, collection.documents, "why_corpus")
    before_work.other_layers(request, collection.documents, "why_corpus")
    queries = None
    if len(collection.queries):
        queries = embedding.queries_of(request, collection.queries, index.info, "why_corpus")
    layers, poolings = index.info.options.layers, index.info.options.poolings
    layer = layers[-1]
    with panel:
        if len(layers) > 1:
            help_text = caching.glossary()["layer"]
            layer = controls.bind("layer", st.select_slider, "Layer", options=layers, default=layer, help=help_text)
        pooling = controls.pooling("pooling", "Sentence vector", POOLING_NAMES, poolings, backend.own_pooling)
    return CorpusQueries(request, collection, index, queries, int(layer), pooling)


def _listed(searched: CorpusQueries, found: FailedQueries | None, listed: Sequence[Placing]) -> Case | None:
    """The failed query that was chosen, by default the first of those that are `listed`; None if there is none."""
    chosen, corpus = state.get("failed_query"), searched.corpus
    rows = {item.row: item.rank for item in listed[:MOST_LISTED]}
    if chosen in corpus.number_of and chosen not in rows:  # a query that does not fail here, or far down the list
        rows[chosen] = _placed(searched, corpus.queries.texts[corpus.number_of[chosen]], chosen).placed.rank
    if not rows:
        controls.checked(st.selectbox, "Failed query", options=["none"], key="no_failed_query", disabled=True)
        return None
    names = {row: f"Rank {rank:,}: {corpus.queries.texts[corpus.number_of[row]][:90]}" for row, rank in rows.items()}
    row = int(
        controls.bind(
            "failed_query",
            st.selectbox,
            f"Failed query ({0 if found is None else len(found):,} of {0 if found is None else found.queries:,})",
            options=names,
            default=next(iter(names)),
            offers="Choose one of the list.",
        )
    )
    return _placed(searched, corpus.queries.texts[corpus.number_of[row]], row)


def _typed(searched: CorpusQueries, query: str) -> Case | None:
    """A typed query with the right text that a person picks from its first hits.

    Before a person picks, it is the query's own text if the corpus has this query, else the second hit.
    """
    corpus = searched.corpus
    own, texts = corpus.right_rows.get(query, ()), corpus.documents.texts
    if len(corpus.firsts) < 2:
        return None
    hits = searched.first_hits(query, MOST_HITS).tolist()
    names = {row: f"{rank}  {texts[row][:90]}" for rank, row in enumerate(hits, start=1)}
    chosen = state.get("right_row")
    for row in (*own, *(() if chosen is None else (chosen,))):
        if row < len(texts) and corpus.first_of[row] >= 0:
            names.setdefault(row, texts[row][:90])
    default = min(own, key=list(names).index) if own else list(names)[1]
    row = int(
        controls.bind(
            "right_row",
            st.selectbox,
            # One label for a choice and another before it: nobody should take the second hit for the page's opinion.
            "Right text (by rank)" if chosen is not None or own else "Right text: the second hit, until you choose one",
            options=names,
            default=default,
            describe=lambda row: f"number {row}",
            offers="Choose one of the list.",
        )
    )
    name = Case.name if chosen is not None or own else "second hit"
    return _placed(searched, query, row, own if row in own else (), name)


def _placed(
    searched: CorpusQueries, query: str, row: int, right_rows: tuple[int, ...] | None = None, name: str = Case.name
) -> Case:
    """A query with the text of a row as its right one; by default all texts with this query are right too."""
    corpus = searched.corpus
    right = corpus.right_rows.get(query.strip(), ()) if right_rows is None else right_rows
    rows = corpus.no_rivals((row, *right))
    if len(rows) >= len(corpus.documents):  # all texts have one query
        rows = corpus.no_rivals((row,))
    return Case(searched, query, rows, failed_queries.placing(searched.vector(query), row, rows, searched.engine), name)


def _nothing(corpus: Corpus, searched: CorpusQueries, found: FailedQueries | None) -> None:
    """Say why there is no failed query."""
    name, where = messages.escape(corpus.name), f"layer {searched.layer} with {POOLING_NAMES[searched.pooling]} pooling"
    if len(searched.corpus.firsts) < 2:
        st.info(f"**{name} has one text.** A search fails if another text ranks before the right one.")
    elif found is None:
        st.info(
            f"**{name} has no column with queries.** Give some under “Your queries”, or type one above and choose its right "
            "text from the hits"
            + (", or choose the column with the queries under “Options”." if corpus.columns else "."),
            icon=":material/table:",
        )
    else:
        st.info(
            f"**No failed query.** At {where}, each of the {found.queries:,} queries of {name} finds its own text first. "
            "Choose another layer under “Options”, or type a query above.",
            icon=":material/check_circle:",
        )


def _caveats() -> None:
    with st.expander("What this page does not say", icon=":material/help:"):
        st.markdown(
            "**A rank does not say how good a text is.** Only the query's own text counts as right. The rival may "
            "answer the query as well, or better: read both.  \n"
            "**A trait is a hint, not a cause.** A rival can be a hub and share more words with the query, and lead for a "
            "third reason. The edits are experiments, but they change the query: they show what the model reacts to.  \n"
            "**Hubs depend on the corpus and its queries.** With other queries another text may be found most often.  \n"
            "**Edits are sought among few.** Words that neither text has are never tried, two words together only for the "
            "single edits that came nearest."
        )
