"""Sentence similarity: do cosines agree with people, at which layer, and where not?"""

from __future__ import annotations

from functools import cache, partial
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st
from scipy import stats

from components.arrays import Float64
from components.charts import theme
from components.charts.retrieval import evaluation as charts
from components.numbers import as_read
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.corpora.rows.roles import AS_CHOSEN, LABEL
from components.retrieval.evaluation import sts
from components.retrieval.rankings.run_code import RunCode
from components.retrieval.search.lexical import TITLES
from components.shown_code.arrays import of_table
from components.shown_code.code import Command
from components.shown_code.commands import measured
from dashboard import caching
from dashboard.corpora import current, dialect_menu, row_readings, uploads, word_rankings
from dashboard.corpora.row_readings import ReadingChoice
from dashboard.jobs import evaluation
from dashboard.jobs.embedding import EmbedRequest
from dashboard.jobs.rankers import WordRanking
from dashboard.ready_made import ASSETS
from dashboard.ui import controls, figures, messages, page_header
from dashboard.ui.waiting import frame
from dashboard.ui.wording import POOLING_NAMES, counted
from dashboard.views.evaluate import choices, published

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from components.jobs import IsStopped
    from components.model.backend import Backend
    from components.retrieval.evaluation.layer_grid import LayerGrid
    from components.retrieval.evaluation.sts import ScoredPairs, SimilarityGrid

DEMO_FILE = "assets/sts_pairs.jsonl"  # as a command in the folder of this project reads it
SOURCES = {"demo": "Ready-made pairs", "file": "Your pairs"}
ROLES = {"sentence1": "First text", "sentence2": "Second text", LABEL: "Score"}
CORRELATIONS = {"spearman": "Spearman", "pearson": "Pearson"}
MOST_PAIRS, MOST_POINTS, LARGEST = 50_000, 5_000, 12


@cache
def demo_pairs() -> ScoredPairs:
    """The graded pairs that come with the dashboard."""
    return sts.scored_pairs(read_corpus(ASSETS / "sts_pairs.jsonl", "sts_pairs.jsonl", "sentence1", limits=None))


def similarity(backend: Backend) -> None:
    """Correlations over the layers, the scatter plot of one run, and its largest errors."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="row_similarity"):
        source = controls.choice("sts_source", "Pairs", SOURCES)
        kind = controls.choice(
            "correlation",
            "Agreement",
            CORRELATIONS,
            "Spearman compares the order of the pairs; Pearson measures how well a straight line fits. 1: full agreement, "
            "0: none.",
        )
    page_header.measures(SOURCES[source])
    pairs = demo_pairs() if source == "demo" else _upload()
    if pairs is None:
        return
    page_header.measures(SOURCES[source], counted(len(pairs.first), "pair"))
    of = (DEMO_FILE,) if source == "demo" else _file_of(pairs)
    grid = _grid(backend, pairs)
    figure_slot = st.container()  # above the progress of the word rankings
    words = _word_scores(backend, pairs)
    with figure_slot:
        _curves(backend, grid, words, pairs, kind, of)
    if "own" in grid.spearman.poolings:
        messages.head_note([backend], "own")
    _about(pairs, source)
    _one_run(grid, words, pairs, backend, of)
    published.similarity()


def _file_of(pairs: ScoredPairs) -> tuple[str, ...]:
    """The session's file of pairs, and how a command is told to read it as was chosen."""
    reading = pairs.reading
    name = uploads.file_names(str(st.session_state["_sts"]))
    if reading is None:
        return (name,)
    chosen = reading.columns if reading.why == AS_CHOSEN else {}
    columns = ("--columns", ",".join(f"{ours}={theirs}" for ours, theirs in chosen.items())) if chosen else ()
    part = () if reading.part is None or reading.part.is_default else ("--part", reading.part.used)
    return name, *columns, *part, *current.reading_options(reading.dialect, reading.encoding)


def _about(pairs: ScoredPairs, source: str) -> None:
    text = f"{counted(len(pairs.first), 'pair')}"
    if source == "demo":
        text += (
            ", scored from 0 (unrelated) to 5 (the same meaning) by those who wrote them. Some are difficult on purpose: this "
            "is a demonstration, not a benchmark"
        )
    st.caption(
        f"{text}. LSA: words that share texts count as alike. Jelinek-Mercer: smoothed probabilities of words, "
        "which can hardly be compared between queries."
    )


def _upload() -> ScoredPairs | None:
    file = uploads.uploader(
        "sts", "A file with the columns sentence1, sentence2, score: .csv, .tsv, .jsonl, .parquet", key="sts_file"
    )
    written = dialect_menu.of_upload("sts", file)
    found = uploads.kept(
        "sts",
        caching.scored_pairs(),
        file,
        lambda file, stop: _read(file, ReadingChoice(), written, stop),
        variant=written.as_text,
    )
    if found is None:
        st.caption("Scores may have any range: only agreement counts. Files of the STS benchmark work.")
        return None
    upload = str(st.session_state["_sts"])
    key = uploads.varied(upload, written.as_text)

    def read(choice: ReadingChoice) -> ScoredPairs | None:
        stored = uploads.stored(upload)[0]
        name = f"{key} {sorted((choice.columns or {}).items())} {choice.part}"
        pairs = None
        with frame.figure("read_pairs"):
            pairs = uploads.read_once(
                caching.scored_pairs(), name, lambda is_stopped: _read(stored, choice, written, is_stopped)
            )
        return pairs

    return row_readings.shown(found, lambda pairs: pairs.reading, key, ROLES, dict, read)


def _read(
    file: UploadedFile | uploads.StoredFile,
    choice: ReadingChoice,
    written: dialect_menu.FormChoice,
    is_stopped: IsStopped,
) -> ScoredPairs:
    return sts.read_scored_pairs(
        file.getvalue(),
        file.name,
        chosen=choice.columns,
        part=choice.part,
        most=MOST_PAIRS,
        is_stopped=is_stopped,
        dialect=written.dialect,
        encoding=written.encoding,
    )


def _grid(backend: Backend, pairs: ScoredPairs) -> SimilarityGrid:
    options = EmbedRequest.of_session(backend).pair_options()
    return evaluation.result(
        ("similarity", backend.spec.key, backend.revision, options, pairs.content_hash),
        f"Embedding {2 * len(pairs.first):,} sentences",
        lambda report_progress, is_stopped: sts.similarity_grid(backend, pairs, options, report_progress, is_stopped),
        "similarity",
    )


def _word_scores(backend: Backend, pairs: ScoredPairs) -> dict[str, Float64]:
    """The scores of each word ranking that is finished, float64 [pair]."""
    scores: dict[str, Float64] = {}
    for kind in TITLES:
        ranking = word_rankings.word_ranking(backend, kind)
        with frame.figure(f"words_{kind}") as figure:
            scores[kind] = evaluation.result(
                ("pair words", kind, ranking.source, pairs.content_hash),
                f"{TITLES[kind]}: comparing {len(pairs.first):,} pairs",
                partial(_pair_scores, ranking, pairs),
                f"similarity_{kind}",
            )
        if figure.not_ready is not None and evaluation.is_under_way(figure.not_ready):
            break
    return scores


def _pair_scores(ranking: WordRanking, pairs: ScoredPairs, *_: object) -> Float64:
    """The work of a job."""
    return sts.ranker_pair_scores(ranking.make, pairs)


def _curves(
    backend: Backend,
    grid: SimilarityGrid,
    words: dict[str, Float64],
    pairs: ScoredPairs,
    kind: str,
    of: Sequence[str],
) -> None:
    values = grid.spearman if kind == "spearman" else grid.pearson
    layer, pooling = values.best
    correlations = {name: sts.correlations(scores, pairs.scores)[kind != "spearman"] for name, scores in words.items()}
    of_words = {name: value for name, value in correlations.items() if value is not None}
    title = CORRELATIONS[kind]
    code = Command(
        sts.correlations, measured("sts", of, backend, values.layers, values.poolings, controls.length_for(backend))
    )
    named = [(TITLES[name], value) for name, value in of_words.items()]
    is_one = values.values.size == 1  # without layers or poolings to compare
    if is_one:
        own = (backend.spec.title, float(values.values[0, 0]))
        figure = charts.agreement_bars([own, *named], f"{title} with people's scores", unit=f"{title}’s correlation")
    else:
        figure = charts.agreement_curves(
            values.values.T,
            [POOLING_NAMES[name] for name in values.poolings],
            named,
            f"{title} with people's scores",
            y_title="",
        )
    figures.figure(
        figure,
        key="sts_curves",
        code=code,
        alt=f"{title}'s correlation by layer for {len(values.poolings)} poolings, and of {len(of_words)} word rankings",
        message=f"{messages.escape(backend.spec.title)} agrees best at **layer {layer}, "
        f"{POOLING_NAMES[pooling]}**: {title} {theme.number(values.of(layer, pooling))}"
        f"{_interval(values.of(layer, pooling), pairs) if title == 'Spearman' else ''}. "
        + _best_word(of_words)
        + _why_no_start(values),
        read="The first bar is the model, the others are word rankings and static vectors. Higher means better agreement."
        if is_one
        else "Each curve is a pooling over the layers; dashed level lines are word rankings and static "
        "vectors, which have no layers. Higher means better agreement. Jelinek-Mercer: smoothed probabilities of words. LSA: "
        "words by shared texts.",
        not_shown="Why runs agree or disagree with people: look at the largest errors below. "
        f"With {len(pairs.first):,} pairs, differences below about "
        f"{theme.number(1 / np.sqrt(len(pairs.first)), 2)} may be chance. BM25 and Jelinek-Mercer are made to rank "
        "sentences for one query: their scores for different queries can hardly be compared.",
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
                dict(zip(("run", *CORRELATIONS), (TITLES[name], *sts.correlations(scores, pairs.scores)), strict=True))
                for name, scores in words.items()
            ]
        ),
    )


def _unit(backend: Backend) -> str:
    """What the numbers of pairs are: the similarity that the model was published for."""
    own = backend.sentence_config.similarity
    return {"cosine": "cosine", "dot": "dot product"}.get(own, f"negative {own.title()} distance")


def _why_no_start(values: LayerGrid) -> str:
    """Why the curve of [CLS] has no point at layer 0, where all its cosines are 1; empty if it has one."""
    if (0, "cls") not in values or not np.isnan(values.of(0, "cls")):
        return ""
    return " The [CLS] curve begins at layer 1: at layer 0 the [CLS] vector is the same for every sentence."


def _interval(value: float, pairs: ScoredPairs) -> str:
    """How sure a Spearman correlation is."""
    low, high = sts.spearman_interval(float(value), len(pairs.first))
    return (
        f" (1: the same order as people’s; 95 % interval {theme.number(low, 2)} to {theme.number(high, 2)})"
        if np.isfinite(low)
        else ""
    )


def _best_word(correlations: dict[str, float]) -> str:
    if not correlations:
        return ""
    best = max(correlations, key=correlations.__getitem__)
    return f"Best of the other methods: {TITLES[best]}, {theme.number(correlations[best])}."


def _one_run(
    grid: SimilarityGrid, words: dict[str, Float64], pairs: ScoredPairs, backend: Backend, of: Sequence[str]
) -> None:
    """One layer and pooling, or word ranking: its scores against people's, and the largest errors."""
    cosines = grid.cosines
    # All word rankings, also those that are not finished: else a link's choice would be lost while it is waited for.
    codes = [
        *choices.vector_codes("m", cosines.layers, cosines.poolings),
        *(RunCode(words=kind) for kind in TITLES),
    ]
    names = {str(code): choices.name_of(code) for code in codes}
    own = str(RunCode("m", cosines.layers[-1], backend.own_pooling))
    with st.container(key="sts_run_choice", width=340):
        chosen = controls.pick("sts_run", "Pairs as scored by", names, default=own)
    code = RunCode.read(chosen)
    if code.words and chosen not in words:
        st.caption(f"{names[chosen]} has no scores yet: its progress, or the reason, stands above.")
        return
    predicted, unit = (words[chosen], "score") if code.words else (cosines.of(*code.cell), _unit(backend))
    name = names[chosen]
    people = np.array(pairs.scores)
    spearman, pearson = sts.correlations(predicted, pairs.scores)
    if spearman is None:
        st.info(f"**{name} gives every pair the same score:** there is no order to compare with people's.")
        return
    drawn = np.linspace(0, len(people) - 1, min(MOST_POINTS, len(people))).astype(int)  # spread evenly over the file
    texts = [f"{theme.plain(pairs.first[row], 90)}<br>{theme.plain(pairs.second[row], 90)}" for row in drawn]
    figures.figure(
        charts.predicted_against_people(predicted[drawn], people[drawn], texts, f"{name} against people", unit=unit),
        key="sts_scatter",
        code=of_table(
            "sts_scatter",
            {"people": ("people", "numbers"), "scores": (unit, "numbers")},
            (),
            "from scipy.stats import pearsonr, spearmanr\n",
            "values = [spearmanr(people, scores)[0], pearsonr(people, scores)[0]]",
            "print(values)  # Spearman, Pearson",
        )
        if code.words
        else Command(
            sts.similarity_grid,
            measured("sts", of, backend, [code.cell[0]], [code.cell[1]], controls.length_for(backend)),
            prints="both correlations of the run, not the points",
        ),
        alt=f"Scatter plot of {len(people)} pairs: people's scores against the {unit} of {name}",
        message=f"{name}: Spearman {theme.number(spearman)}, Pearson {theme.number(np.nan if pearson is None else pearson)}.",
        read="Each point is a pair. Further right, people find it more similar; further up, the run does. Hover over a point "
        "to read its sentences." + (f" {len(drawn):,} of the pairs are drawn." if len(drawn) < len(people) else ""),
        not_shown="What a single cosine means: 0.5 is not “half similar”. Spearman's correlation compares only the order.",
        table=lambda: _errors(pairs, predicted, len(people), unit),
    )
    figures.note(
        f"**The largest errors**: pairs that stand furthest from their place in people's order of the {len(people):,} pairs"
    )
    figures.markup(_drawn(_errors(pairs, predicted, LARGEST, unit), unit), "sts_errors")


def _drawn(errors: pd.DataFrame, unit: str) -> str:
    """The pairs, each with people's score, the run's, and how far it is off."""
    rows = "".join(
        f"<section><b><span><small>people</small> {as_read(row['people'])}</span>"
        f"<span>{theme.number(row[unit])} <small>{unit}</small></span></b>"
        f'<div><p dir="auto">{escape(row["first"])}</p><p dir="auto">{escape(row["second"])}</p></div>'
        f"<i>{row['error of the run']}</i></section>"
        for row in errors.to_dict("records")
    )
    return f'<div class="bi-near bi-errors">{rows}</div>'


def _errors(pairs: ScoredPairs, predicted: Float64, count: int, unit: str) -> pd.DataFrame:
    """The pairs whose rank among the run's scores differs most from their rank among people's scores."""
    off = stats.rankdata(predicted) - stats.rankdata(pairs.scores)
    order = np.argsort(-np.abs(off), kind="stable")[:count]
    return pd.DataFrame(
        [
            {
                "number": int(row),
                "people": pairs.scores[row],
                unit: float(predicted[row]),
                "error of the run": f"{abs(off[row]):.0f} places too {'high' if off[row] > 0 else 'low'}",
                "first": pairs.first[row],
                "second": pairs.second[row],
            }
            for row in order
        ]
    )
