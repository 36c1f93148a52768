"""The failed queries of a corpus: what they share, the list in which each can be opened, and the traits of their rivals.

A trait that most other queries have too is no cause of a failure, so its share among these stands beside it everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from components.errors import InputError
from components.numbers import signed
from components.retrieval.corpora.rows.roles import labels_of_pairs
from components.retrieval.evaluation.metrics import ALPHA
from components.retrieval.failures import own_columns, repair
from components.retrieval.failures.causes import CAUSES, causes_of, telling
from components.retrieval.failures.failed_queries import find_failures
from components.retrieval.failures.traits import LEAST, TRAITS, Traits, compared
from components.shown_code.code import Command
from components.shown_code.commands import measured
from dashboard import caching, state
from dashboard.corpora import current
from dashboard.ui import browser, controls, figures, messages
from dashboard.ui.wording import among, counted, rows_of_file, searched_texts
from dashboard.views.diagnosis import trait_shares

if TYPE_CHECKING:
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.failures.causes import Causes
    from components.retrieval.failures.failed_queries import FailedQueries, Placing, SearchedCorpus
    from components.retrieval.failures.traits import TraitShare
    from dashboard.jobs.failures import CorpusQueries

ON_PAGE = 100  # queries of the list
RECORD = "ranks.json"  # what a command writes the ranks into
MOST_CHARACTERS = 300  # of a query there; it is whole beside the list
FIRST_TRAITS = 8  # rows before a person asks for all
_RULES_OPEN = "_rules_of_rivals_open"  # session key: whether their panel opened with a trait chosen


@dataclass(frozen=True, eq=False)
class QueryChoice:
    """The queries that a person looks at: all, or those of one value of a column; the failed ones of one trait among them."""

    searched: CorpusQueries
    found: FailedQueries
    order: str
    only: str = ""  # a column, = and its value; "" for all queries
    traits: Traits | None = None  # of all queries, once they are known
    trait: str = ""  # the chosen one, where traits are known; "" for all
    causes: tuple[Causes, Causes] | None = None  # of the failed queries and of the others, once they are known
    cause: str = "all"  # the chosen one, where causes are known

    @cached_property
    def failed(self) -> np.ndarray:
        """[query]: whether it fails."""
        corpus = self.searched.corpus
        names = {corpus.queries.texts[corpus.number_of[item.row]].strip() for item in self.found.placings}
        return np.array([query.strip() in names for query in corpus.pairs.queries.texts], bool)

    @cached_property
    def kept(self) -> np.ndarray:
        """[query]: whether it is among those of the chosen value."""
        if not self.only:
            return np.ones(len(self.searched.corpus.pairs), bool)
        return values_of(self.searched.corpus, (self.only,)).of(self.only)

    def shares(self) -> tuple[TraitShare, ...]:
        """How many failed and found queries have each trait; none before the traits are known."""
        if self.traits is None:
            return ()
        kept = self.kept
        return compared(Traits(self.traits.names, self.traits.holds[:, kept]), self.failed[kept])

    def placings(self) -> list[Placing]:
        """The failed queries in the chosen order."""
        if not self.trait:
            return self.of_all_traits
        assert self.traits is not None
        has = self.traits.of(self.trait)
        return [item for item in self.of_all_traits if has[self._number(item)]]

    @cached_property
    def of_all_traits(self) -> list[Placing]:
        """As `placings`, whatever trait is chosen."""
        kept = self.kept
        listed = [item for item in self.found.in_order(self.order) if kept[self._number(item)]]
        if self.cause != "all":
            assert self.causes is not None
            of_cause = self.causes[0].of(self.cause)
            has = {item.row for item, held in zip(self.found.placings, of_cause, strict=True) if held}
            listed = [item for item in listed if item.row in has]
        return listed

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Each query, without spaces around it, to its number in `SearchedCorpus.pairs`."""
        return {query: number for number, query in enumerate(self.searched.corpus.right_rows)}

    def _number(self, item: Placing) -> int:
        return self.numbers[_query(self.searched.corpus, item).strip()]

    def traits_of(self, query: str) -> tuple[str, ...]:
        """The traits of one of the queries; none of another text, and before they are known."""
        number = self.numbers.get(query.strip())
        return () if self.traits is None or number is None else self.traits.of_query(number)


def _query(corpus: SearchedCorpus, item: Placing) -> str:
    return corpus.queries.texts[corpus.number_of[item.row]]


def parts_of(corpus: Corpus, column: str | None) -> dict[str, str]:
    """Parts of the queries by the value of a column, each with its name: "team=billing" is "team: billing"."""
    key = (current.key_of(corpus), column)
    own = current.own_ids(corpus)
    skipped = {name for name, values in corpus.columns.items() if name == column or values is own}
    return caching.query_parts().get(key, lambda: own_columns.parts_of(corpus.columns, skipped))


def part_choice(parts: Mapping[str, str]) -> str:
    """The choice of a part of the queries; "" for all, and without a control where there is none."""
    if not parts:
        return ""
    names, width = {"": "All queries"} | dict(parts), round(240 * controls.scale())
    return controls.pick("failed_only", "Queries", names, width=width, after_change=open_first)


def abbreviations_field(queries: Sequence[str]) -> dict[str, str]:
    """The field for abbreviations, which both views use, and below it those that stand in no query; none that are not valid."""
    typed = controls.bind(
        "abbreviations",
        st.text_input,
        "Your abbreviations",
        max_chars=1_000,
        placeholder="kb=knowledge base, pw=password",
        help="What abbreviations in queries stand for, one word or several: tried as a repair of a query. The view What helps "
        "measures it on all queries.",
    )
    try:
        found = repair.parsed_abbreviations(str(typed))
    except InputError as problem:
        st.caption(messages.escape(str(problem)))
        return {}
    if said := repair.in_no_query(found, queries):
        st.caption(messages.escape(said))
    return found


def values_of(corpus: SearchedCorpus, parts: Sequence[str]) -> Traits:
    """Which of some parts each query is of."""
    own = current.in_use()
    key = (current.key_of(own), current.query_column(own), tuple(parts), corpus.every_text)
    return caching.query_values().get(
        key, lambda: own_columns.values_of(own.columns, parts, list(corpus.right_rows.values()))
    )


def by_columns(chosen: QueryChoice, parts: Mapping[str, str], shares: Sequence[TraitShare]) -> None:
    """Draw how often queries fail by the value of each other column of the file; `parts` are those of `parts_of`."""
    figures.subheader("Which values of the file’s columns fail more often")
    st.markdown(f":material/insights: {messages.escape(own_columns.in_words(shares, parts))}")

    def table() -> pd.DataFrame:
        return pd.DataFrame(
            [
                {
                    "value": parts[share.name],
                    "queries": share.failed + share.found,
                    "fail": share.failed,
                    "of them": f"{100 * own_columns.share_that_fails(share):.0f} %",
                    "share of the failed": _percent(share.share_of_failed),
                    "of the found": _percent(share.share_of_found),
                    **_compared(share),
                }
                for share in shares
                if share.failed or share.found
            ]
        )

    figures.plain_table(table(), key="failures_by_value")
    st.caption(
        "Every query counts with the values of its rows. The difference is that of the two shares, in points, with its 95 % "
        "interval (Newcombe); “yes”: more often among the failed by more than chance (Fisher’s exact test, Holm’s correction "
        "over all values). A value is no cause: queries of one value may share a trait too. “Queries”, at the top, opens one."
    )
    of = chosen.searched
    command = trait_shares.command(of.backend, (of.layer, of.pooling), of.request.max_length)
    figures.data("failures_by_value", table, Command(own_columns.values_of, command), "Failures by value of a column")


def _compared(share: TraitShare) -> dict[str, str]:
    """The columns of the table that say whether a value is more than chance; none where nothing is compared."""
    if share.difference is None or share.adjusted_p is None:
        return {}
    low, high = (signed(100 * end, 0) for end in (share.difference.low, share.difference.high))
    clear = "yes" if share.is_named else "less often" if share.adjusted_p < ALPHA else "no"
    return {"difference, 95 %": f"{low} to {high}", "p (Holm)": f"{share.adjusted_p:.2g}", "more often": clear}


def count_in_words(found: FailedQueries) -> str:
    """How many queries fail, in a sentence."""
    return (
        f"{counted(len(found), 'query', 'queries')} of {found.queries:,} ({100 * len(found) / found.queries:.1f} %) "
        f"{'fails' if len(found) == 1 else 'fail'}: another text comes before the right one."
    )


def finding(chosen: QueryChoice, shares: Sequence[TraitShare], of_values: str) -> None:
    """Draw the line above both columns: how many queries fail, what they share once that is known, and the sentence
    `of_values` on the values of columns."""
    searched = chosen.searched
    texts = "" if of_pairs(searched.corpus.pairs, is_above=True) else among(searched.corpus.pairs)
    said = f"{messages.escape(of_values)}{'. ' * bool(of_values)}{texts}"
    if not shares:
        st.markdown(f":material/insights: {count_in_words(chosen.found)} {said}".rstrip())
        return
    length = searched.request.max_length
    told = trait_shares.told(searched.backend, shares, (searched.layer, searched.pooling), length, not chosen.only)
    around = told.texts | {"message": f"{told.texts['message']} {said}".rstrip()}
    figures.above(key="trait_shares", title=trait_shares.TITLE, chart=told.chart, **around)


def open_first() -> None:
    """Open the first query of another list: the one that was open may not be in it."""
    state.put("failed_query", None)


def of_pairs(pairs: Pairs, *, is_above: bool) -> bool:
    """Say which rows of a person's own file are used, and which texts are searched; returns whether it is said here.

    Above the figure where that is not each row with its text; else below it, where another call says so.
    """
    unread = current.in_use().report.bad_count
    labels = messages.escape(labels_of_pairs(current.in_use().columns, [pairs.column]))
    differs = bool(
        unread or pairs.others or pairs.unsearched or pairs.rows.repeated or pairs.rows.alone or pairs.rows.lost
    )
    if state.get("corpus") and differs is is_above:
        name = messages.escape(pairs.name)
        rows = rows_of_file(pairs, unread) if unread or pairs.rows.repeated or pairs.rows.lost else ""
        st.caption(" ".join(filter(None, (f"{name}: {searched_texts(pairs)}.", rows, labels))))
        return True
    return False


def listed(chosen: QueryChoice, shares: Sequence[TraitShare], placings: Sequence[Placing], opened: int | None) -> None:
    """Draw what failed queries share, and below it the queries; `opened` is the row of the one beside them."""
    corpus, ids = chosen.searched.corpus, current.own_ids(current.in_use())
    pages = -(-len(placings) // ON_PAGE)
    place = st.container()
    page = 1
    if pages > 1:
        page = min(max(1, st.pagination(pages, key="failed_page")), pages)  # a browser may send any number
    shown = placings[ON_PAGE * (page - 1) : ON_PAGE * page]
    drawn = frozenset(item.row for item in shown)

    def picked() -> None:
        row = browser.sent_by("failed_queries", "picked")
        if type(row) is int and row in drawn:
            state.put("failed_query", row)
            state.put("typed_query", "")

    def trait_picked() -> None:
        name = browser.sent_by("failed_queries", "trait")
        if name == "all" or browser.is_one_of(name, TRAITS):
            state.put("failed_trait", "" if name == "all" else name)
            if name != "all":  # all of them have the open one too
                open_first()

    def rival(item: Placing) -> str:
        text = corpus.documents.texts[item.rival][:MOST_CHARACTERS]
        return f"{ids[item.rival].strip()} · {text}" if ids else text

    said = f"with the trait “{chosen.trait}”" if chosen.trait else "by rank, and what came first instead"
    if chosen.cause != "all":
        said = f"{said}; rival: {chosen.cause}"
    component = browser.web_component("failed", '<div class="failed"></div>')
    with place:
        component(
            key="failed_queries",
            data={
                "scale": controls.scale(),
                **_traits(shares, chosen.trait),
                "head": counted(len(placings), "failed query", "failed queries"),
                "of": said,
                "all": f"all {len(chosen.of_all_traits):,}" if chosen.trait else "",
                "pickHint": "Why is its text not first?",
                "answer": ".bi-case",
                "rows": [
                    {
                        "index": item.row,
                        "rank": f"{item.rank:,}",
                        "query": _query(corpus, item)[:MOST_CHARACTERS],
                        "rival": rival(item),
                        "picked": item.row == opened,
                    }
                    for item in shown
                ],
            },
            on_picked_change=picked,
            on_trait_change=trait_picked,
        )
        all_of_them(chosen, placings)  # before the pages: its Share stands in the last line of the list


def _traits(shares: Sequence[TraitShare], picked: str) -> dict[str, Any]:
    """The rows of the traits for the browser."""
    held = trait_shares.held(shares)
    is_compared = bool(held) and held[0].difference is not None
    ends = [share.share_of_found + share.difference.high for share in held if share.difference is not None]
    reached = max([0.1, *ends, *(max(share.share_of_failed, share.share_of_found) for share in held)])
    most = next(end for end in (0.2, 0.4, 0.6, 0.8, 1.0) if end >= min(1.0, reached))

    def row(share: TraitShare) -> dict[str, Any]:
        between = share.difference
        hint = f"{share.failed:,} of {share.failures:,} failed, {share.found:,} of {share.successes:,} found"
        if between is not None:
            hint += f"; difference {100 * between.low:.0f} to {100 * between.high:.0f} points".replace("-", "−")
        return {
            "key": share.name,
            "label": trait_shares.label(share.name),
            "hint": f"{hint}. {TRAITS[share.name]}",
            "failed": round(share.share_of_failed, 4),
            "found": round(share.share_of_found, 4),
            "low": 0.0 if between is None else round(between.low, 4),
            "high": 0.0 if between is None else round(between.high, 4),
            "named": share.is_named,
            "picked": share.name == picked,
            "shares": (_percent(share.share_of_failed), _percent(share.share_of_found)),
        }

    return {
        "traits": [row(share) for share in held] if shares else None,
        "waiting": "What they share is being looked for.",
        "compared": is_compared,
        "first": FIRST_TRAITS,
        "most": most,
        "ticks": [(0, "0"), (most / 2, f"{50 * most:.0f}"), (most, f"{100 * most:.0f} %")],
    }


def _percent(share: float) -> str:
    """A share in a narrow column; a small one is not zero."""
    return "< 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def all_of_them(chosen: QueryChoice, placings: Sequence[Placing]) -> None:
    """Draw the line with the list as a table."""
    corpus = chosen.searched.corpus

    def table() -> pd.DataFrame:
        return pd.DataFrame(
            {
                "rank": [item.rank for item in placings],
                "lead of the rival": [round(item.lead, 4) for item in placings],
                "query": [_query(corpus, item) for item in placings],
                "right text": [corpus.documents.texts[item.row] for item in placings],
                "rival": [corpus.documents.texts[item.rival] for item in placings],
                "traits": [", ".join(chosen.traits_of(_query(corpus, item))) for item in placings],
            }
        )

    of = chosen.searched
    file = current.file_of_pairs(current.in_use())
    record = measured("evaluate", file, of.backend, [of.layer], [of.pooling], of.request.max_length, "--record", RECORD)
    figures.data("failed_queries_all", table, Command(find_failures, record, file=RECORD), "All failed queries")


def of_rivals(searched: CorpusQueries, found: FailedQueries, both: tuple[Causes, Causes]) -> None:
    """Draw the share of each trait of the rivals among the failed queries and among the others; `both` are their traits."""
    causes, of_others = both
    counts = {name: int(causes.of(name).sum()) for name in causes.names}
    st.markdown(f":material/insights: {traits_in_words(causes, of_others)}")
    names = {"all": f"All ({len(found):,})"} | {
        name.replace(" ", "-"): f"{_of_rival(name)[0].upper()}{_of_rival(name)[1:]} ({count:,})"
        for name, count in counts.items()
    }
    # Once open it stays so while the view does, also where all are chosen in it: its widget is there from the run before.
    was_open = "w_failure_cause" in st.session_state and st.session_state.get(_RULES_OPEN, False)
    st.session_state[_RULES_OPEN] = is_open = was_open or state.get("failure_cause") != "all"
    panel = st.expander("The traits of the rivals, with their rules", icon=":material/rule:", expanded=is_open)
    with panel:
        label = "Failed queries whose rival has the trait"
        controls.pick("failure_cause", label, names, after_change=open_first)
        table = pd.DataFrame(
            [
                {
                    "trait": _of_rival(name),
                    "failed queries": counts[name],
                    "share of the failures": f"{100 * counts[name] / len(found):.0f} %",
                    "of the queries that do not fail": _share(of_others, name),
                }
                for name in causes.names
            ]
        )
        figures.plain_table(table, key="failure_causes")
        st.caption(
            f"Of the {found.queries - len(found):,} queries that do not fail, {len(found.successes):,} are compared here. "
            "Their rival is the text after the right one. A query can have several traits, so that the shares can sum to more "
            "than 100 %."
        )
        st.markdown(
            "\n".join(
                f"- **{_of_rival(name)[0].upper()}{_of_rival(name)[1:]}**: {CAUSES[name]}" for name in causes.names
            )
        )
        figures.data("failure_causes", lambda: table, Command(causes_of), "Why queries fail")


def traits_in_words(failed: Causes, others: Causes) -> str:
    """Which trait sets failed queries apart from those that do not fail, or that none does, in a sentence."""
    found = telling(failed, others)
    if found is None:
        return "There is no trait to compare with queries that do not fail." if failed.holds.shape[1] else ""
    best, is_clear = found
    name = _of_rival(best.name)
    shares = f"{best.failed} of {best.failures} failed {'query has' if best.failures == 1 else 'queries have'} it"
    shares += f", and {100 * best.others:.0f} % of those found"
    if min(best.failures, others.holds.shape[1]) < LEAST:
        return (
            f"“{name[:1].upper()}{name[1:]}” is the trait with the largest difference: {shares}. Fewer than {LEAST} "
            "queries fail or are found: too few to be sure."
        )
    if is_clear:
        return f"The trait that sets them apart most is “{name}”: {shares}."
    return f"No trait sets them apart by more than chance; the nearest is “{name}”: {shares} too."


def _of_rival(name: str) -> str:
    """What a trait of the rival is called on screen: no trait of the query with another rule has this name."""
    return {"near duplicate": "near duplicate as rival", "words": "query word that only the rival has"}.get(name, name)


def _share(others: Causes, name: str) -> str:
    """The share of queries that do not fail and have a trait; "–" without such queries."""
    return f"{100 * float(others.of(name).mean()):.0f} %" if others.holds.shape[1] else "–"
