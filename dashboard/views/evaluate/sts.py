"""The Evaluate page's sentence similarity: do cosines agree with people, at which layer, and where not at all?"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st
from scipy import stats

from components.arrays import Float64
from components.charts import evaluation as charts
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.evaluation import sts
from components.retrieval.search.lexical import TITLES
from dashboard import caching
from dashboard.corpora import uploads
from dashboard.jobs import evaluation, rankers
from dashboard.jobs.evaluation import NoResult
from dashboard.jobs.rankers import WordRanking
from dashboard.ready_made import ASSETS
from dashboard.ui import controls, figures, messages
from dashboard.ui.wording import POOLING_NAMES
from dashboard.views.evaluate import choices, published

if TYPE_CHECKING:
    from components.jobs import IsCancelled, ReportProgress
    from components.model.backend import Backend
    from components.retrieval.evaluation.sts import ScoredPairs, SimilarityGrid

SOURCES = {"demo": "Ready-made pairs", "file": "Your pairs"}
CORRELATIONS = {"spearman": "Spearman", "pearson": "Pearson"}
MOST_PAIRS, MOST_POINTS, LARGEST = 50_000, 5_000, 12


@cache
def demo_pairs() -> ScoredPairs:
    """The graded pairs that come with the dashboard."""
    return sts.scored_pairs(read_corpus(ASSETS / "sts_pairs.jsonl", "sts_pairs.jsonl", "sentence1", limits=None))


def similarity(backend: Backend) -> None:
    """Correlations over layers, the scatter of one run, and its largest errors."""
    pairs = _pairs()
    if pairs is None:
        return
    grid = _grid(backend, pairs)
    kind = controls.choice(
        "correlation",
        "Agreement",
        CORRELATIONS,
        "Spearman compares the order of the pairs, Pearson asks for a straight line. 1 is full agreement, 0 none.",
    )
    words = _word_scores(backend, pairs)
    _curves(backend, grid, words, pairs, kind)
    _one_run(grid, words, pairs, backend)
    published.similarity()


def _pairs() -> ScoredPairs | None:
    if controls.choice("sts_source", "Pairs", SOURCES) == "demo":
        pairs: ScoredPairs | None = demo_pairs()
        st.caption(
            f"{len(demo_pairs().first)} pairs of our own, scored 0 (unrelated) to 5 (the same meaning) by who wrote them, with "
            "traps in them: a demonstration, no benchmark."
        )
        return pairs
    file = st.file_uploader(
        "A file with the columns sentence1, sentence2, score: .csv, .tsv, .jsonl, .parquet", key="sts_file"
    )
    pairs = uploads.kept(
        "sts",
        caching.scored_pairs(),
        file,
        lambda file: sts.scored_pairs(read_corpus(file.getvalue(), file.name, "sentence1"), MOST_PAIRS),
    )
    if pairs is None:
        st.caption("Scores may have any range: only agreement counts. The STS benchmark's files fit.")
        return None
    text = f"{len(pairs.first):,} pairs."
    if pairs.bad_rows:
        text += f" {pairs.bad_rows:,} rows without two sentences and a number are left out."
    st.caption(text)
    return pairs


def _grid(backend: Backend, pairs: ScoredPairs) -> SimilarityGrid:
    every = range(backend.facts.layers + 1)
    options = backend.embed_options(every, backend.poolings, controls.length_for(backend), precision="float32")
    grid: SimilarityGrid = evaluation.result(
        ("similarity", backend.spec.key, backend.revision, options, pairs.content_hash),
        f"Embedding {2 * len(pairs.first):,} sentences",
        lambda tell, cancelled: sts.similarity_grid(backend, pairs, options, tell, cancelled),
        "similarity",
    )
    return grid


def _word_scores(backend: Backend, pairs: ScoredPairs) -> dict[str, Float64]:
    """Scores of each word ranking, float64 [pair]; those that are there."""
    scores: dict[str, Float64] = {}
    for kind in TITLES:
        ranking = rankers.word_ranking(backend, kind)
        try:
            scores[kind] = evaluation.result(
                ("pair words", kind, ranking.source, pairs.content_hash),
                f"{TITLES[kind]}: comparing {len(pairs.first):,} pairs",
                partial(_words_work, ranking, pairs),
                f"similarity_{kind}",
            )
        except NoResult as missing:
            if missing.waiting:
                break
    return scores


def _words_work(ranking: WordRanking, pairs: ScoredPairs, tell: ReportProgress, cancelled: IsCancelled) -> Float64:
    return sts.ranker_pair_scores(ranking.make, pairs)


def _curves(backend: Backend, grid: SimilarityGrid, words: dict[str, Float64], pairs: ScoredPairs, kind: str) -> None:
    values = grid.spearman if kind == "spearman" else grid.pearson
    layer, pooling = values.best
    correlations = {name: sts.correlations(scores, pairs.scores)[kind != "spearman"] for name, scores in words.items()}
    flat = {name: value for name, value in correlations.items() if value is not None}
    title = CORRELATIONS[kind]
    if "own" in values.poolings:
        messages.head_note([backend], "own")
    figures.figure(
        charts.agreement_curves(
            values.values.T,
            [f"{POOLING_NAMES[name]} pooling" for name in values.poolings],
            [(TITLES[name], value) for name, value in flat.items()],
            f"{title} with people's scores",
            y_title=f"{title}'s correlation",
            scale=controls.scale(),
        ),
        key="sts_curves",
        alt=f"{title}'s correlation by layer for {len(values.poolings)} poolings, and of {len(flat)} word rankings",
        message=f"{messages.escape(backend.spec.title)} agrees best at **layer {layer}, "
        f"{POOLING_NAMES[pooling]}**: {values.of(layer, pooling):.3f}. " + _best_word(flat),
        read="A curve a pooling over the layers; dotted lines are word rankings, which have no layers. "
        "Higher is better agreement.",
        not_shown="Why. Pairs with many shared words and few shared meanings are the test; the largest errors below show "
        f"them. With {len(pairs.first):,} pairs, differences below about {1 / np.sqrt(len(pairs.first)):.2f} mean little. "
        "BM25 and Jelinek-Mercer are made to rank sentences for one query: their scores of different queries hardly compare.",
        table=lambda: pd.DataFrame(
            [
                {
                    "run": f"layer {layer}, {pooling}",
                    "spearman": grid.spearman.of(layer, pooling),
                    "pearson": grid.pearson.of(layer, pooling),
                }
                for layer, pooling in values.cells
            ]
            + [
                dict(zip(("run", *CORRELATIONS), (TITLES[name], *sts.correlations(each, pairs.scores)), strict=True))
                for name, each in words.items()
            ]
        ),
    )


def _best_word(flat: dict[str, float]) -> str:
    if not flat:
        return ""
    best = max(flat, key=lambda name: flat[name])
    return f"The best word ranking, {TITLES[best]}, has {flat[best]:.3f}."


def _one_run(grid: SimilarityGrid, words: dict[str, Float64], pairs: ScoredPairs, backend: Backend) -> None:
    """One layer and pooling, or word ranking: predicted against gold, and the largest errors."""
    cosines = grid.cosines
    codes = [f"m.{layer}.{pooling}" for layer in cosines.layers[::-1] for pooling in cosines.poolings] + list(words)
    names = {code: choices.name_of(code, backend, None) for code in codes}
    own = f"m.{cosines.layers[-1]}.{backend.own_pooling}"
    with st.container(key="sts_run_choice", width=340):
        chosen = controls.pick("sts_run", "Look at", names, default=own)
    wanted = choices.parsed(chosen)
    if wanted is None:
        predicted, unit = words[chosen], "score"
    else:
        predicted, unit = cosines.of(wanted.layer, wanted.pooling), "cosine"
    name = names[chosen]
    gold = np.array(pairs.scores)
    spearman, pearson = sts.correlations(predicted, pairs.scores)
    if spearman is None:
        st.info(f"**{name} gives every pair the same score:** there is no order to compare with people's.")
        return
    shown = np.linspace(0, len(gold) - 1, min(MOST_POINTS, len(gold))).astype(int)  # spread evenly over the file
    texts = [f"{_short(pairs.first[row])}<br>{_short(pairs.second[row])}" for row in shown]
    figures.figure(
        charts.predicted_against_people(
            predicted[shown], gold[shown], texts, f"{name} against people", unit=unit, scale=controls.scale()
        ),
        key="sts_scatter",
        alt=f"Scatter of {len(gold)} pairs: people's scores against the {unit} of {name}",
        message=f"{name}: Spearman {spearman:.3f}, Pearson {pearson:.3f}.",
        read="A point is a pair: to the right people find it more alike, further up the run does. Hover for its sentences."
        + (f" {len(shown):,} of the pairs are drawn." if len(shown) < len(gold) else ""),
        not_shown="A cosine of 0.5 is not “half alike”: only the order of pairs is compared with people's.",
        table=lambda: _errors(pairs, predicted, len(gold), unit),
    )
    st.markdown("**The largest errors**: pairs whose place among all pairs is furthest from where people put them")
    table = _errors(pairs, predicted, LARGEST, unit)
    for column in ("first", "second"):
        table[column] = table[column].map(messages.escape)
    table["people"], table[unit] = table["people"].map("{:.1f}".format), table[unit].map("{:.3f}".format)
    st.table(table.drop(columns=["number"]), hide_index=True)


def _short(text: str) -> str:
    from components.charts import theme

    return theme.plain(text, 90)


def _errors(pairs: ScoredPairs, predicted: Float64, count: int, unit: str) -> pd.DataFrame:
    """Pairs by how far their place among the run's scores is from their place among people's."""
    off = stats.rankdata(predicted) - stats.rankdata(pairs.scores)
    order = np.argsort(-np.abs(off), kind="stable")[:count]
    return pd.DataFrame(
        [
            {
                "number": int(row),
                "people": pairs.scores[row],
                unit: float(predicted[row]),
                "the run finds them": f"{abs(off[row]) / len(off):.0%} "
                + ("too alike" if off[row] > 0 else "too different"),
                "first": pairs.first[row],
                "second": pairs.second[row],
            }
            for row in order
        ]
    )
