"""The retrieval debugger: why a rival ranks before the right text, and which edit would change it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.why.token_ledger import token_ledger
from components.charts import matrices
from components.charts.retrieval import failures as charts
from components.model.tokenization import MAX_CHARACTERS
from components.retrieval.failures import failed_queries
from components.retrieval.failures.failed_queries import Failures, Placing
from dashboard import caching, pair_links, state
from dashboard.corpora import current
from dashboard.jobs import embedding, failures
from dashboard.jobs.embedding import EmbedRequest
from dashboard.jobs.failures import Searched
from dashboard.ui import controls, figures, messages
from dashboard.ui.wording import POOLING_NAMES
from dashboard.views.why import debugger_table, rivals

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from components.analysis.why.ledger import Ledger
    from components.model.backend import Backend
    from components.retrieval.corpora.corpus import Corpus

ORDERS = {"nearest": "Nearest misses first", "worst": "Worst first"}
MOST_LISTED = 500  # failed queries offered in the list
MOST_HITS = 50  # offered as the right text of a typed query


@dataclass(frozen=True, eq=False)
class Case:
    """The query that is looked into, and where its right text ranks."""

    searched: Searched
    query: str
    right_rows: tuple[int, ...]  # of its right texts
    placed: Placing

    @property
    def right(self) -> str:
        return self.searched.corpus.documents.texts[self.placed.row]

    @property
    def rival(self) -> str:
        return self.searched.corpus.documents.texts[self.placed.rival]


def draw(backend: Backend) -> None:
    """Draw the view."""
    messages.cross_encoder_note([backend])
    corpus = current.corpus()
    with controls.row():
        chooser = st.container(width=round(460 * controls.scale()))
        with st.container(width=round(290 * controls.scale())):
            typed = str(
                controls.bind(
                    "typed_query",
                    st.text_input,
                    "Or type a query",
                    after_change=lambda: state.put("right_row", None),
                    max_chars=1_000,
                    placeholder="Then choose its right text",
                )
            ).strip()
        panel = controls.options()
    with panel:
        order = controls.choice("failed_order", "Order of the failed queries", ORDERS)
    searched = _searched(backend, corpus, panel)
    if searched is None:
        return
    found = failures.failures(searched)
    if searched.queries is not None and found is None:
        return
    with chooser:
        case = _typed(searched, typed) if typed else _listed(searched, found, order)
    if case is None:
        _nothing(corpus, searched, found)
        return
    with st.container(key="failed_search"):
        _case(case)
    if found is not None and len(found):
        debugger_table.failed_queries(searched, found, order)
    _caveats()


def _searched(backend: Backend, corpus: Corpus, panel: DeltaGenerator) -> Searched | None:
    """The corpus and its queries at the chosen layer and pooling; None until both are embedded."""
    with panel:
        if len(corpus.columns) > 1:
            controls.bind(
                "query_column",
                st.selectbox,
                "Column with the queries",
                options=list(corpus.columns),
                to_widget=lambda _: current.query_column(corpus),
                after_change=lambda: state.put("failed_query", None),
                placeholder="Choose a column",
            )
    collection = failures.searched_corpus(corpus)
    # In float32, as Evaluate measures: a near miss can be smaller than what bfloat16 changes.
    request = EmbedRequest.of_session(backend, exact=True)
    index = embedding.index_of(request, collection.documents, "why_corpus")
    if index is None:
        return None
    queries = None
    if len(collection.queries):
        queries = embedding.queries_of(request, collection.queries, index.info, "why_corpus")
        if queries is None:
            return None
    layers, poolings = index.info.options.layers, index.info.options.poolings
    layer = layers[-1]
    with panel:
        if len(layers) > 1:
            help_text = caching.glossary()["layer"]
            layer = controls.bind("layer", st.select_slider, "Layer", options=layers, default=layer, help=help_text)
        pooling = controls.pooling("pooling", "Sentence vector", POOLING_NAMES, poolings, backend.own_pooling)
    return Searched(request, collection, index, queries, int(layer), pooling)


def _listed(searched: Searched, found: Failures | None, order: str) -> Case | None:
    """The failed query that was chosen from the list, by default the first; None if there is none."""
    chosen, corpus = state.get("failed_query"), searched.corpus
    listed = [] if found is None else list(found.in_order(order)[:MOST_LISTED])
    rows = {item.row: item.rank for item in listed}
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


def _typed(searched: Searched, query: str) -> Case | None:
    """A typed query with the right text that a person picks from its first hits.

    Before a person picks, it is the query's own text if the corpus has this query, else the second hit.
    """
    corpus, engine = searched.corpus, searched.engine
    own, texts = corpus.right_rows.get(query, ()), corpus.documents.texts
    if len(texts) < 2:
        return None
    hits = engine.search(searched.vector(query)[None], MOST_HITS)
    names = {row: f"{rank}  {texts[row][:90]}" for rank, row in enumerate(hits.indices[0].tolist(), start=1)}
    chosen = state.get("right_row")
    for row in (*own, *(() if chosen is None else (chosen,))):
        if row < len(texts):
            names.setdefault(row, texts[row][:90])
    default = min(own, key=list(names).index) if own else list(names)[1]
    row = int(
        controls.bind(
            "right_row",
            st.selectbox,
            "Right text (by rank)",
            options=names,
            default=default,
            describe=lambda row: f"number {row}",
            offers="Choose one of the list.",
        )
    )
    if chosen is None and not own:
        st.caption(
            ":material/touch_app: Choose under “Right text” which text should rank first; until then the second hit is taken."
        )
    return _placed(searched, query, row, own if row in own else ())


def _placed(searched: Searched, query: str, row: int, right_rows: tuple[int, ...] | None = None) -> Case:
    """A query with the text of a row as its right one; by default all texts with this query are right too."""
    rows = searched.corpus.right_rows.get(query.strip(), ()) if right_rows is None else right_rows
    if len({row, *rows}) >= len(searched.corpus.documents):  # all rows have one query
        rows = ()
    return Case(searched, query, rows, failed_queries.placing(searched.vector(query), row, rows, searched.engine))


def _nothing(corpus: Corpus, searched: Searched, found: Failures | None) -> None:
    """Say why there is no failed query."""
    name, where = messages.escape(corpus.name), f"layer {searched.layer} with {POOLING_NAMES[searched.pooling]} pooling"
    if len(searched.corpus.documents) < 2:
        st.info(f"**{name} has one text.** A search fails if another text ranks before the right one.")
    elif found is None:
        st.info(
            f"**{name} has no column with queries.** Type a query above and choose its right text from the hits"
            + (", or choose the column with the queries under “Options”." if corpus.columns else "."),
            icon=":material/table:",
        )
    else:
        st.info(
            f"**No failed query.** At {where}, each of the {found.queries:,} queries of {name} finds its own text first. "
            "Choose another layer under “Options”, or type a query above.",
            icon=":material/check_circle:",
        )


def _case(case: Case) -> None:
    """The headline, the ledgers, the two texts side by side, edits, and how often both texts are found."""
    headline = st.empty()
    ledgers = _ledgers(case)
    parts = [_ranks(case), "" if ledgers is None else _largest(case, *ledgers)]
    headline.markdown(f":material/insights: {' '.join(filter(None, parts))}")
    if ledgers is not None:
        _word_bars(case, *ledgers)
    else:
        st.info(
            "The cosine is a sum over words with mean or maximum pooling only, and "
            f"{POOLING_NAMES[case.searched.pooling]} is chosen. Choose another one under “Options” to see what each word adds."
        )
    sides = st.empty()
    if ledgers is not None:
        _about_bars(case, *ledgers)
    rivals.edits(case.searched, case.query, case.placed, case.right_rows)
    hubs = rivals.hubs(case.searched, case.placed)
    rows = rivals.rows_of_words(case.searched, case.query, case.placed)
    if hubs is not None:
        parts.append(rivals.hub_sentence(hubs, case.searched, case.placed))
        rows |= rivals.rows_of_hubs(hubs, case.placed)
        headline.markdown(f":material/insights: {' '.join(filter(None, parts))}")
    rivals.side_by_side(sides, case.placed, rows)
    by_words = rivals.by_words(case.searched, case.query, case.placed)
    if by_words is not None:
        rows |= by_words.rows()
        rivals.side_by_side(sides, case.placed, rows)
    # Last: the first time, its model is loaded, and the rest must not wait for it.
    jointly = rivals.by_cross_encoder(case.searched, case.query, case.placed)
    if jointly is not None:
        rows |= jointly.rows()
        rivals.side_by_side(sides, case.placed, rows)
    parts.append(rivals.opinions([item for item in (by_words, jointly) if item is not None]))
    headline.markdown(f":material/insights: {' '.join(filter(None, parts))}")


def _ranks(case: Case) -> str:
    placed = case.placed
    if placed.is_failed:
        return (
            f"The right text ranks **{ordinal(placed.rank)}**: its cosine is {placed.right_cosine:.3f}, against "
            f"{placed.rival_cosine:.3f} of the rival."
        )
    return (
        f"The right text ranks **first**: its cosine is {placed.right_cosine:.3f}, against {placed.rival_cosine:.3f} of the "
        "next text, which is called the rival here."
    )


def ordinal(number: int) -> str:
    """ "1st", "2nd", "3rd", "4th", "11th", ..."""
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def _ledgers(case: Case) -> tuple[Ledger, Ledger] | None:
    """What each query word adds to the cosine with the right text and with the rival; None for a pooling without parts."""
    searched = case.searched
    if searched.pooling not in {"mean", "max"}:
        return None
    for_query, for_text = searched.prompts()
    texts = cut_together((for_query, case.query), (for_text, case.right), (for_text, case.rival))
    trace = searched.backend.trace(texts, max_length=searched.max_length)
    query, right, rival = trace.sentences
    return (
        token_ledger(trace, searched.layer, searched.pooling, 0, 1).by_word(query, right),
        token_ledger(trace, searched.layer, searched.pooling, 0, 2).by_word(query, rival),
    )


def cut_together(*texts: tuple[str, str]) -> list[str]:
    """Each prompt with its text, of which the longest are cut so that one trace holds them all.

    No text is cut to less than its share of the characters.
    """
    left = MAX_CHARACTERS - sum(len(prompt) for prompt, _ in texts)
    kept: dict[int, int] = {}  # the shortest first, so that what they leave is for the others
    for place in sorted(range(len(texts)), key=lambda place: len(texts[place][1])):
        kept[place] = min(len(texts[place][1]), max(0, left) // (len(texts) - len(kept)))
        left -= kept[place]
    return [prompt + text[: kept[place]] for place, (prompt, text) in enumerate(texts)]


def _largest(case: Case, right: Ledger, rival: Ledger) -> str:
    """The query word that does most for the rival's lead, or against it where the right text leads."""
    differences = rival.part_scores()[0] - right.part_scores()[0]
    sign = 1 if case.placed.lead >= 0 else -1
    words = [number for number, part in enumerate(right.first) if part.kind == "word"]
    if not words:
        return ""
    number = max(words, key=lambda number: sign * differences[number])
    more, to = abs(float(differences[number])), ("the rival", "the right text")
    if sign * differences[number] <= 0:
        return "No single word adds more to the text that leads."
    return f"“{messages.escape(right.first[number].text)}” adds {more:.3f} more to {to[0] if sign > 0 else to[1]}."


def _word_bars(case: Case, right: Ledger, rival: Ledger) -> None:
    by_right, by_rival = right.part_scores()[0], rival.part_scores()[0]
    words = [part.text for part in right.first]

    def table() -> pd.DataFrame:
        frame = pd.DataFrame(
            {"word": words, "right text": by_right, "rival": by_rival, "rival minus right text": by_rival - by_right}
        )
        total = frame.drop(columns="word").sum()
        return pd.concat([frame, pd.DataFrame([{"word": "sum: the cosine", **total}])], ignore_index=True).round(5)

    figures.figure(
        charts.word_bars(words, by_right, by_rival, f"What each query word adds, layer {case.searched.layer}"),
        key="why_words",
        alt=f"Parts of {len(words)} query words in the cosines with the right text and the rival, and their differences",
        message=f"The bars sum to the cosines: {right.cosine:.3f} with the right text and {rival.cosine:.3f} with the rival. "
        f"The differences sum to {rival.cosine - right.cosine:+.3f}.",
        message_below=True,
        table=table,
    )


def _about_bars(case: Case, right: Ledger, rival: Ledger) -> None:
    """Links to the split by tokens, both ledgers, and how to read the bars."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown("Split the score by pairs of tokens:", width="content")
        pair_links.button("Query and right text", case.query, case.right, "why", key="split_right")
        pair_links.button("Query and rival", case.query, case.rival, "why", key="split_rival")
    figures.reading(
        "Blue: what a query word adds to the cosine with the right text; orange: to that with the rival. Purple is their "
        "difference: a bar upwards speaks for the rival. Each part is exact: the sum of what the word's pieces add in the "
        "split of the score by pairs of tokens.",
        "What would happen without a word: all other vectors change then as well. The edits below test that. [CLS] and [SEP] "
        "hold what the model gathered from the whole query.",
    )
    with st.expander("Both ledgers, word by word", icon=":material/grid_on:"):
        _matrices(right, rival)


def _matrices(right: Ledger, rival: Ledger) -> None:
    """Both ledgers word by word, on one colour scale."""
    most = float(max(np.abs(right.contributions).max(), np.abs(rival.contributions).max()))
    for column, name, ledger in zip(st.columns(2), ("right text", "rival"), (right, rival), strict=True):
        rows, columns = (matrices.axis_labels([part.text for part in parts]) for parts in (ledger.first, ledger.second))
        with column:
            figures.matrix(
                ledger.contributions,
                rows,
                columns,
                f"Query and {name}: {ledger.cosine:.3f} in all",
                key=f"why_ledger_{name.split()[0]}",
                alt=f"Parts of {len(rows)} query words with {len(columns)} words of the {name}",
                rows="query word",
                columns=f"word of the {name}",
                value="part of the cosine",
                limits=(-most, most),
                diverging=True,
            )


def _caveats() -> None:
    with st.expander("What this page does not say", icon=":material/help:"):
        st.markdown(
            "**A rank is not a quality.** Only the query's own text counts as right. The rival may answer the query as well, "
            "or better: read both.  \n"
            "**A cause by rule is a hint.** A rival can be a hub and share more words with the query, and lead for a third "
            "reason. The edits are experiments, but they change the query: they show what the model reacts to.  \n"
            "**Hubs depend on the corpus and its queries.** With other queries another text may be found most often.  \n"
            "**Edits are sought among few.** Words that neither text has are never tried, two words together only for the "
            "single edits that came nearest."
        )
