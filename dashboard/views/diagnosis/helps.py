"""What helps with the failed queries: the remedies row by row as they are measured, the advice, and what the failures share."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from components.charts.retrieval import diagnosis as charts
from components.numbers import counted, signed
from components.retrieval.evaluation import pair_runs
from components.retrieval.evaluation.ranks import inverse
from components.retrieval.failures.remedies import USUAL, diagnosis, kinds
from components.retrieval.failures.remedies.costs import COSTS
from components.retrieval.failures.repair import every_way, repaired
from components.retrieval.failures.vocabulary import CorpusWords
from components.shown_code.code import Command
from components.shown_code.commands import measured
from dashboard import caching, navigation, state
from dashboard.corpora import current
from dashboard.jobs import evaluation, failures
from dashboard.jobs.embedding import EmbedRequest
from dashboard.ui import controls, figures, messages
from dashboard.ui.waiting import before_work, frame
from dashboard.ui.wording import POOLING_NAMES, among
from dashboard.views.diagnosis import debugger_table, other_models, trait_shares
from dashboard.views.diagnosis.measured import Diagnosed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from components.model.backend import Backend
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.evaluation.metrics import Interval
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.failures.remedies.costs import SearchCost
    from components.retrieval.failures.remedies.diagnosis import Diagnosis, RemedyRow
    from components.retrieval.failures.traits import TraitShare

MRR = "MRR is the mean over the queries of 1 ÷ the rank of the right text, in per cent: 100 is always first, 50 second."
SHORT_MRR = "MRR: the mean of 1 ÷ the rank of the right text."
GREY = "grey may be chance"
SHAM = "a sham of the same kind takes its second signal from another query, so that what it repairs and harms is chance"
SHORT_TIMES = (
    "Ms per query: the median of several searches on this machine, with a difference only where it is no chance."
)
MIXED_HERE = (
    "MaxSim is mixed with the cosine here; on “Re-ranking and its cost” MaxSim alone decides, with another Recall@1."
)
MIXED = (
    f"A re-ranker (MaxSim, a cross-encoder) orders the first {kinds.CANDIDATES} hits by its own score mixed with the cosine: "
    f"its “share” is the weight of its own, and at “{kinds.ALONE}” that decides alone, as in Search and its view of "
    "re-ranking. "
    "Words and vectors are mixed by their ranks, or by z scores: scores in standard deviations from their mean. Another "
    "pooling is the mean, [CLS] or the maximum."
)
READ = (
    "A query is repaired where its right text was not first and is then, and harmed where it was first and is no longer. "
    "Each remedy’s options (the table below has what each half chose) are chosen on one half of the queries and "
    "measured on the other; to leave everything as it is, is always one of them. "
    f"{SHAM[:1].upper()}{SHAM[1:]}: a remedy should do clearly better. On the right, the dot is Recall@1 and the bar the 95 % "
    "interval of its change (Tango); a remedy helps (blue) if the whole bar lies right of the dashed line, harms (orange) if "
    f"it lies left of it, and its change may be chance (grey) if the line crosses it. {MRR} {MIXED} {COSTS}"
)


def not_shown(second_models: Collection[str]) -> str:
    """What the figure does not show, where remedies with these names have a second model that is measured."""
    others = [named for name, (*_, named) in other_models.SETTINGS.items() if name not in second_models]
    return (
        f"What other kinds of queries would give, and what {', '.join([*others, 'shorter texts'])} or training would do. "
        "To beat the sham is not to help: only the interval decides."
    )


def draw(backend: Backend) -> None:
    """Draw the view."""
    found = _chosen(backend)
    above = st.container()  # the rows that are there do not wait for the others
    cost: SearchCost | None = None
    rows: list[RemedyRow] = []
    with frame.figure("cost_now"):
        cost = found.cost()
    for name in found.names:
        with frame.figure(f"remedy_{name}"):
            rows.append(found.row(name))
    below = st.container()
    shares: Sequence[TraitShare] = ()
    with frame.figure("traits"):
        shares = found.shares()
        if len(rows) == len(found.names):  # what stands below does not move while the rows come
            with below:
                _traits(backend, found, shares)
    with above:
        is_whole = len(rows) == len(found.names) and bool(shares)
        _remedies(backend, found, rows, shares, is_whole, cost)


def _pairs() -> tuple[Corpus, str, Pairs]:
    """The session's corpus, its column of queries, and its pairs. Raises NotReady where it has none, or that is not clear."""
    corpus = current.corpus()
    column = current.query_column(corpus)
    if column is None:
        raise frame.Instead(
            lambda: st.info(
                f"**{messages.escape(corpus.name)} has no column that is known to hold queries.** Choose a file with two "
                "columns, a query and its right text, at the top of the page, under “Corpus”.",
                icon=":material/table:",
            )
        )
    pairs = current.pairs(corpus, column)
    pairs.check_measurable()
    return corpus, column, pairs


def _chosen(backend: Backend) -> Diagnosed:
    """The pairs at the chosen layer and pooling. Raises NotReady."""
    corpus, column, pairs = _pairs()
    row = controls.row()
    with row:
        part = debugger_table.part_choice(debugger_table.parts_of(corpus, column))
    if part:
        kept = debugger_table.values_of(failures.searched_corpus(corpus, column), (part,)).of(part)
        if kept.sum() < 2:  # one for each half
            raise frame.Instead(
                lambda: st.info(f"{counted(int(kept.sum()), 'query', 'queries')} of this part: too few.")
            )
        pairs = pair_runs.asked_of(pairs, np.flatnonzero(kept).tolist())
    request = EmbedRequest.of_session(backend, exact=True)
    indexes = evaluation.pair_indexes(request, pairs, "diagnosis")
    before_work.other_layers(request, pairs.documents, "diagnosis")
    ranks = indexes.ranks
    layer = ranks.layers[-1]
    with row:
        chosen = other_models.choose(backend)
        panel = controls.options()
    with panel:
        if len(ranks.layers) > 1:
            help_text = caching.glossary()["layer"]
            layer = controls.bind(
                "layer",
                st.select_slider,
                "Layer",
                options=ranks.layers,
                default=ranks.layers[-1],
                key="w_layer_diagnosis",
                help=help_text,
            )
        pooling = controls.pooling("pooling", "Sentence vector", POOLING_NAMES, ranks.poolings, backend.own_pooling)
        seed = controls.bind("halves_seed", st.number_input, "Seed of the halves", min_value=0, max_value=9_999, step=1)
        abbreviations = debugger_table.abbreviations_field(pairs.queries.texts)
    others = other_models.loaded(chosen)
    return Diagnosed(request, pairs, indexes, int(layer), pooling, int(seed), others, abbreviations, part)


def _remedies(
    backend: Backend,
    found: Diagnosed,
    rows: Sequence[RemedyRow],
    shares: Sequence[TraitShare],
    is_whole: bool,
    cost: SearchCost | None,
) -> None:
    """The rows that are measured, and above them the advice once all are; `cost` is that of a search as it is now."""
    if not rows:
        return
    now = found.now
    texts = "" if debugger_table.of_pairs(found.pairs, is_above=True) else among(found.pairs)
    told = diagnosis.diagnosed(now, shares, rows, found.pairs.queries.texts, found.first, found.seed, cost)
    failed, all_queries = told.failed, len(now)
    count = f"{failed:,} of {counted(all_queries, 'query', 'queries')} {'fails' if failed == 1 else 'fail'}."
    message = f"{count} {len(rows)} of {len(found.names)} remedies are measured."
    if is_whole:  # while they come, those that are there keep their places
        told = replace(told, rows=tuple(sorted(told.rows, key=lambda row: -row.result.recall)))
        message = named_in_bold(told.advice.sentence, [row.title for row in rows])
    message = f"{message} {texts}".rstrip()
    figures.figure(
        charts.remedy_bars(
            [
                charts.RemedyBar(
                    row.title[:1].upper() + row.title[1:],
                    not any(row.result.chosen),
                    row.result.repaired,
                    row.result.harmed,
                    row.control,
                    100 * row.result.recall,
                    100 * row.result.change.low,
                    100 * row.result.change.high,
                    is_whole and row.name == told.advice.remedy,
                )
                for row in told.rows
            ],
            100 * (all_queries - failed) / all_queries,
            "What each remedy repairs and harms",
        ),
        key="remedies",
        alt=f"Of {len(rows)} remedies the failed queries that they repair and the found ones that they harm, and Recall@1",
        message=message,
        read=READ,
        not_shown=not_shown(found.others.loaded),
        table=lambda: _table(told),
        # No command measures a part of the queries.
        code=Command(diagnosis.rows_of)
        if found.part
        else Command(
            diagnosis.rows_of,
            measured(
                "diagnose",
                current.file_of_pairs(current.in_use()),
                backend,
                [found.layer],
                [found.pooling],
                found.request.max_length,
                *("--seed", str(found.seed)),
                # Where this corpus has too many texts for one of them, or vectors of one layer alone.
                *(() if set(USUAL) <= set(found.names) else ("--remedies", ",".join(found.names))),
                *(
                    ("--abbreviations", ",".join(map("=".join, found.abbreviations.items())))
                    if found.abbreviations
                    else ()
                ),
                *found.others.options,
            ),
        ),
    )
    if is_whole:
        _further(found, told)


def of_colours(rows: Sequence[RemedyRow]) -> str:
    """What the colours on the right mean, of those that are there."""
    results = [row.result for row in rows]
    helps, harms = any(each.helps for each in results), any(each.harms for each in results)
    drawn = (
        (helps, "blue helps"),
        (harms, "orange harms"),
        (any(not each.helps and not each.harms for each in results), GREY),
    )
    return f"Right: Recall@1 and the 95 % interval of its change; {', '.join(name for is_there, name in drawn if is_there)}."


def of_shams(rows: Sequence[RemedyRow]) -> str:
    """What the narrow bars are; "" where none is drawn."""
    return (
        " A narrow grey bar is a check: the remedy with the signal of a wrong query."
        if any(any(row.control) for row in rows)
        else ""
    )


def of_maxsim(rows: Sequence[RemedyRow]) -> str:
    """Why the view of re-ranking gives another number of MaxSim; "" where it decides alone here too, or no half chose it."""
    chosen = next((row.result.chosen for row in rows if row.name == "maxsim"), ())
    return MIXED_HERE if any(chosen) and set(chosen) != {kinds.ALONE} else ""


def named_in_bold(sentence: str, titles: Sequence[str]) -> str:
    """A sentence with the remedies that it names in bold."""
    return re.sub("|".join(map(re.escape, sorted(titles, key=len, reverse=True))), r"**\g<0>**", sentence, flags=re.I)


def _further(found: Diagnosed, told: Diagnosis) -> None:
    """What each remedy gives beyond the first place, what it costs and needs, a search that tries it, and training."""
    st.caption(of_colours(told.rows) + of_shams(told.rows))
    shown = [
        "remedy",
        "chosen by each half",
        "change of Recall@1, 95 %",
        "MRR",
        "change of MRR, 95 %",
        "ms per query (median)",
        "bytes per text",
        "needs",
    ]
    with st.container(key="remedy_needs"):  # of which a phone has room for four columns
        figures.plain_table(_in_words(_table(told))[shown], key="remedy_needs")
    st.caption(" ".join(filter(None, (SHORT_MRR, SHORT_TIMES, of_maxsim(told.rows), found.others.left_out))))
    debugger_table.of_pairs(found.pairs, is_above=False)
    failed, rows = np.flatnonzero(found.now > 1), told.rows
    if not len(failed):
        return
    # Search has all texts: where the right ones alone were searched, it cannot show what was measured.
    tried = [row for row in rows if _has_search(found, row) and not found.pairs.unsearched]
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="row_try_remedies"):
        if tried:
            st.markdown("Try in Search:", width="content")
        for row in tried:
            if st.button(_tried(row), key=f"try_{row.name}"):
                navigation.go_to("hits", **_in_search(found, row, failed))
    if (
        state.get("corpus")
        and not found.part
        and st.button(
            "Train on one half of these queries, and keep the other for measuring",
            key="train_half",
            icon=":material/tune:",
        )
    ):
        navigation.go_to("training-data", training_data="corpus", held_out=50)


def _tried(row: RemedyRow) -> str:
    """What Search shows of a remedy: a re-ranker's score there is never mixed with the cosine."""
    alone = {"maxsim": "MaxSim", "cross-encoder": "A cross-encoder"}.get(row.name)
    is_mixed = kinds.ALONE not in row.result.chosen
    return row.title[:1].upper() + row.title[1:] if alone is None else f"{alone} alone{', not mixed' * is_mixed}"


def _has_search(found: Diagnosed, row: RemedyRow) -> bool:
    """Whether Search can show a remedy that a half chose; of prompts it shows none but the model's own."""
    if row.name == "prompt" and found.request.query_options(found.indexes.documents.info.options).prompt:
        return False
    return any(row.result.chosen)


def _in_search(found: Diagnosed, row: RemedyRow, failed: NDArray[np.intp]) -> dict[str, Any]:
    """The settings of Search that show an option of a remedy, by the first `failed` query that it repairs, if any."""
    option = next(filter(None, row.result.chosen))
    query = found.pairs.queries.texts[int(failed[int(np.argmax(row.options[option][failed] == 1))])]
    values: dict[str, Any] = {"layer": found.layer, "pooling": found.pooling, "compare_with": "none"}
    # As it was measured: by cosines, of every text, and whatever was chosen in Search before.
    values |= {"similarity": "cosine", "similarity2": "cosine", "layer2": None, "pooling2": None}
    values |= {"engine": "exact", "blind": False, "reranked_hits": kinds.CANDIDATES}
    if row.name == "layer":
        layer, pooling = option.removeprefix("layer ").split(", ")
        values |= {"compare_with": "setting", "layer2": int(layer), "pooling2": pooling}
    elif row.name == "prompt":
        query = option.strip("“”") + query if option != "no prompt" else query
    elif row.name == "repair":
        known = CorpusWords(found.pairs.documents.texts, found.request.backend.tokenization.vocabulary)
        ways = every_way(found.abbreviations)[option]
        query = repaired(query, known, ways, found.abbreviations).text
    else:
        compared = {"hybrid": "fused", "maxsim": "maxsim", "cross-encoder": "rerank", "model": "model"}
        values["compare_with"] = compared[row.name]
        if row.name == "hybrid":
            fusion = kinds.FUSIONS[option]
            weight = round(100 * fusion.weights[1])
            by = "weighted" if fusion.method == "rrf" and weight != 50 else fusion.method
            values |= {"hybrid_with": ("bm25",), "fusion_by": by, "fusion_k": fusion.rank_constant}
            values |= {"fusion_weight": weight, "fusion_depth": 0}
        setting = {"cross-encoder": "cross_encoder", "model": "model2"}.get(row.name)
        values |= {} if setting is None else {setting: found.others.loaded[row.name].spec.key}
    return values | {"query": query}


def _table(told: Diagnosis) -> pd.DataFrame:
    """A row for a search as it is now, and one for each remedy; NaN for numbers that are not known."""
    now = {
        "remedy": "as it is now",
        "Recall@1": 100 * (1 - told.failed / len(told.now)),
        "MRR": 100 * float(inverse(told.now).mean()),
        **_costs(told.cost),
    }
    rows = [
        {
            "remedy": row.title,
            "chosen by each half": row.chosen + ("" if any(row.result.chosen) else _best_left(row)),
            "repaired": row.result.repaired,
            "harmed": row.result.harmed,
            "sham repaired": row.control[0],
            "sham harmed": row.control[1],
            "Recall@1": 100 * row.result.recall,
            **_ends("change", row, row.result.change),
            "MRR": 100 * row.result.mrr,
            **_ends("change of MRR", row, row.result.mrr_change),
            **_costs(row.cost),
            "needs": row.needs_with_size,
        }
        for row in told.rows
    ]
    counts = dict.fromkeys(("repaired", "harmed", "sham repaired", "sham harmed"), "Int64")
    texts = dict.fromkeys(("chosen by each half", "needs"), "")
    return pd.DataFrame([now, *rows], columns=list(rows[0])).fillna(texts).astype(counts)


def _best_left(row: RemedyRow) -> str:
    """What the best option of a remedy that both halves left gives on all queries; "" for one without any."""
    best = max(row.options, key=lambda name: float((row.options[name] == 1).mean()), default=None)
    if best is None:
        return ""
    return f"; the best option ({best}) has Recall@1 {100 * float((row.options[best] == 1).mean()):.1f} %"


def _ends(name: str, row: RemedyRow, change: Interval) -> dict[str, float]:
    """The interval of a change in per cent: NaN where both halves left everything as it is."""
    low, high = (100 * change.low, 100 * change.high) if any(row.result.chosen) else (np.nan, np.nan)
    return {f"{name}, 95 % from": low, f"{name}, 95 % to": high}


def _in_words(table: pd.DataFrame) -> pd.DataFrame:
    """The table for the screen: numbers rounded, "" for those that are not known."""

    def written(name: str, form: Callable[[float], str]) -> list[str]:
        return ["" if pd.isna(value) else form(value) for value in table[name]]

    def interval(name: str) -> list[str]:
        ends = [written(f"{name} {end}", lambda value: signed(value, 1)) for end in ("from", "to")]
        return [f"{low} to {high}" if low else "" for low, high in zip(*ends, strict=True)]

    return table.assign(
        **{
            "MRR": written("MRR", "{:.1f}".format),
            "change of Recall@1, 95 %": interval("change, 95 %"),
            "change of MRR, 95 %": interval("change of MRR, 95 %"),
            "ms per query (median)": written("ms per query (median)", "{:.0f}".format),
            "bytes per text": written("bytes per text", "{:,.0f}".format),
        }
    )


def _costs(cost: SearchCost | None) -> dict[str, float]:
    milliseconds, size = (np.nan, np.nan) if cost is None else (cost.milliseconds, cost.bytes_per_text)
    return {"ms per query (median)": milliseconds, "bytes per text": size}


def _traits(backend: Backend, found: Diagnosed, shares: Sequence[TraitShare]) -> None:
    """The shares of the traits among failed and found queries."""
    if not (found.now > 1).any():
        return  # the advice says it
    if not trait_shares.held(shares):
        st.info("No query has any of the traits.")
        return
    told = trait_shares.told(backend, shares, (found.layer, found.pooling), found.request.max_length, not found.part)
    figures.figure(told.chart, key="trait_shares", **told.texts)
