"""The pooling lab: five poolings by five treatments, and how few numbers per vector are enough."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
import streamlit as st

from components.charts.retrieval import evaluation as charts
from components.jobs import Cache, CachePart
from components.numbers import enumerated, number
from components.retrieval.evaluation import metrics, pair_runs, pooling_lab
from components.retrieval.evaluation import sts as sts_pairs
from components.retrieval.evaluation.chance import paired
from components.shown_code.code import Command
from dashboard import caching, state
from dashboard.jobs import evaluation
from dashboard.jobs.embedding import EmbedRequest
from dashboard.jobs.requests import NotReady
from dashboard.ui import browser, controls, figures
from dashboard.ui.waiting import frame
from dashboard.ui.wording import POOLING_NAMES, counted
from dashboard.views.evaluate import choices, sts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import plotly.graph_objects as go

    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.model.trace import Pooling
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.evaluation.pooling_lab import (
        LabCell,
        LabLayers,
        LabPooling,
        LabVectors,
        Pooled,
        Treatment,
    )
    from components.retrieval.evaluation.sts import ScoredPairs

POOLINGS: dict[LabPooling, str] = {
    name: (POOLING_NAMES | {"last4": "Last 4 layers", "idf": "By rarity"})[name] for name in pooling_lab.POOLINGS
}
TREATMENTS: dict[Treatment, str] = {
    "cosine": "Cosine",
    "dot": "Dot product",
    "random": "Random projection",
    "pca": "PCA projection",
    "whitened": "PCA, whitened",
}
EXPLAINED = """
**Columns: poolings.** *Mean*, *[CLS]* and *Max* pool the token vectors of one layer. *Last 4 layers* is the mean of the means
of this layer and the three layers below. *By rarity* is a mean in which pieces that occur in few sentences count more
(weights by idf, the inverse document frequency).

**Rows: comparisons.** *Cosine*: vectors are scaled to length 1 (L2 normalisation). *Dot product*: vectors are not scaled, so
long vectors win more often. The others are cosines of fewer numbers. *Random projection*: determined by the seed. *PCA
projection*: on the directions in which the corpus varies most. *PCA, whitened*: the same, each divided by its deviation,
so that the sentences vary equally in all of them. Both PCA rows first subtract the sentences' mean vector (centring), which
removes what all sentences share. PCA and whitening are fitted on the sentences that are searched, never on the queries.
"""


IN_SHORT = "By rarity: rare pieces count more. PCA keeps the directions of most variation; whitened, all vary equally."
DIMENSIONS, FEWEST_PAIRS = 128, 3
OTHERS = len(POOLINGS) * len(TREATMENTS) - 1  # with which the usual way is compared at once
USUAL = list(POOLINGS).index("mean"), list(TREATMENTS).index("cosine")
ALMOST = 1.0  # per cent that fewer numbers may lose and still be called enough
MOST_NAMED = 2  # of the best ways that are equally good; of more the first, so that the line stays short
DIMENSIONS_HELP = "How many numbers (dimensions) of each vector the three projections keep."
UNITS = 10_000  # in which a job of several phases reports its progress
GPU_SPEED = 20  # a guess: how many times faster than a CPU a GPU embeds; numpy compares the vectors in both cases


@dataclass(frozen=True, eq=False)
class LabGrid:
    """The cells of all ways, and whether the one that agrees most with people does so by more than chance."""

    cells: tuple[LabCell, ...]
    agrees_more: bool

    def values(self, value_of: Callable[[LabCell], float]) -> np.ndarray:
        """A value of each cell [pooling, treatment]."""
        by_name = {(cell.pooling, cell.treatment): value_of(cell) for cell in self.cells}
        return np.array([[by_name[p, t] for t in TREATMENTS] for p in POOLINGS])

    def of(self, cell: tuple[int, int]) -> LabCell:
        """The cell in a row and column of `values`."""
        return next(each for each in self.cells if (each.pooling, each.treatment) == _way(cell))


@dataclass(frozen=True, eq=False)
class Lab:
    """The input of every job of the lab."""

    backend: Backend
    pairs: Pairs
    scored: ScoredPairs
    kept: Cache[LabLayers]
    kept_pairs: Cache[Pooled] | CachePart[Pooled] = field(default_factory=lambda: Cache(1))  # of the scored pairs

    @property
    def key(self) -> str:
        """Names the vectors of all layers."""
        return f"{self.backend.spec.key} {self.backend.revision} {self.pairs.content_hash}"

    @property
    def embedding_share(self) -> float:
        """The share of a job's time that new vectors take: about 0.8 for 630 pairs of the default model, 0.7 for 3,150.

        The time of two passes grows with texts, layers and dim squared, that of comparing with dim and pairs squared; the
        common factor dim is left out. The other two constants are fitted to these two measurements.
        """
        facts, texts = self.backend.facts, 2 * len(self.pairs)
        embedding = texts * facts.layers * facts.hidden_size
        if self.backend.device.type == "cuda":
            embedding //= GPU_SPEED
        return embedding / (embedding + 0.7 * len(self.pairs) ** 2 + 500_000)

    def vectors(
        self, layer: int, report_progress: ReportProgress, is_stopped: IsStopped
    ) -> tuple[LabVectors, ReportProgress]:
        """A layer's vectors, kept or new; and how the rest of the job reports its progress."""
        layers = self.kept.find(self.key)
        if layers is not None:
            return layers.of(layer), report_progress
        share = self.embedding_share
        layers = pooling_lab.lab_layers(
            self.backend,
            self.pairs.documents.texts,
            self.pairs.queries.texts,
            self.scored,
            progress=_phase(report_progress, 0, share),
            is_stopped=is_stopped,
            embedded_pairs=self.kept_pairs.find(self.key),
        )
        self.kept.put(self.key, layers)
        return layers.of(layer), _phase(report_progress, share, 1)

    def agreement(
        self, layer: int, dims: int, seed: int, report_progress: ReportProgress, is_stopped: IsStopped
    ) -> np.ndarray:
        """Spearman's correlations [pooling, treatment] that need the scored pairs alone; NaN for the others."""
        vectors = self.kept_pairs.find(self.key)
        if vectors is None:
            vectors = pooling_lab.scored_vectors(
                self.backend, self.pairs.documents.texts, self.scored, report_progress, is_stopped
            )
            self.kept_pairs.put(self.key, vectors)
        layers = range(self.backend.facts.layers + 1)
        values = pooling_lab.pair_correlations(vectors, layers, layer, self.scored.scores, dims, seed)
        return np.array([[_number(values.get((p, t))) for t in TREATMENTS] for p in POOLINGS])


def lab(backend: Backend) -> None:
    """Two heatmaps over poolings and treatments, and two curves over the number of dimensions."""
    all_pairs, scored = choices.current_pairs(), sts.demo_pairs()
    pairs = pair_runs.first_pairs(all_pairs, pooling_lab.most_pairs(backend, scored))
    if min(len(pairs), len(pairs.documents)) < FEWEST_PAIRS:
        st.info(
            f"**{counted(len(pairs), 'pair')} {'is' if len(pairs) == 1 else 'are'} too few for the lab.** It needs at least "
            f"{FEWEST_PAIRS}: two sentences differ in only one direction, so there are no projections to compare. Choose "
            "another file at the top of the page, under “Corpus”.",
            icon=":material/science:",
        )
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="row_lab"):
        with st.container(width=round(200 * controls.scale())):
            layer = controls.layer(backend.facts.layers)
        panel = controls.options()
    with panel:
        most = min(backend.facts.hidden_size, len(pairs.documents) - 1)
        dims = controls.number(
            "lab_dims", "Numbers kept by a projection", 2, most, min(DIMENSIONS, most), DIMENSIONS_HELP
        )
        help_text = "Determines the random projection. Another seed shows how much of its result is chance."
        seed = int(controls.bind("lab_seed", st.number_input, "Seed", min_value=0, max_value=9_999, help=help_text))
    work = Lab(backend, pairs, scored, caching.lab_vectors(), caching.lab_pairs())
    most_pairs = len(pairs) if len(all_pairs) > len(pairs) else None
    above = st.container()  # what is known while the rest is computed, above its progress
    spearman = np.full((len(POOLINGS), len(TREATMENTS)), np.nan)
    try:
        done = caching.evaluations().find(_cells_key(work, layer, dims, seed))
        if done is None or done.result is None:
            spearman = _agreement(work, layer, dims, seed)
        grid = _cells(work, layer, dims, seed)
    except NotReady:
        with above:
            recall = (
                _known_recall(backend, pairs, layer) if len(all_pairs) == len(pairs) else np.full_like(spearman, np.nan)
            )
            if not np.isnan([recall, spearman]).all():
                _heatmaps(layer, recall, spearman, ())
        raise
    _grids(work, grid, layer, dims)
    choices.about(pairs)
    if len(all_pairs) > len(pairs):
        st.info(
            f"The lab uses only the first {len(pairs):,} of the {len(all_pairs):,} pairs, both as queries and as sentences: it "
            "keeps the vectors of all layers in memory."
        )
    with st.expander("What the poolings and comparisons mean", icon=":material/help:"):
        st.markdown(EXPLAINED)
    _few_dimensions(work, grid.cells, layer, seed, most_pairs)


def _phase(report_progress: ReportProgress, begin: float, end: float) -> ReportProgress:
    """Reports the progress of a phase as the part from `begin` to `end` (0..1) of the whole job, which never goes back."""
    return lambda done, total: report_progress(round(UNITS * (begin + (end - begin) * done / max(1, total))), UNITS)


def _cells_key(work: Lab, layer: int, dims: int, seed: int) -> tuple[object, ...]:
    return "lab cells", work.key, layer, dims, seed


def _agreement(work: Lab, layer: int, dims: int, seed: int) -> np.ndarray:
    """The first correlations [pooling, treatment], from few texts. Raises NotReady while these are embedded."""
    return evaluation.result(
        ("lab agreement", work.key, layer, dims, seed),
        f"Embedding {2 * len(work.scored.first):,} sentences that people compared",
        partial(work.agreement, layer, dims, seed),
        "lab_agreement",
    )


def _cells(work: Lab, layer: int, dims: int, seed: int) -> LabGrid:
    """A cell for each pooling and treatment. Raises NotReady while they are computed."""

    def run(report_progress: ReportProgress, is_stopped: IsStopped) -> LabGrid:
        vectors, report_rest = work.vectors(layer, report_progress, is_stopped)
        rank = work.pairs.ranks_by_vectors
        cells = pooling_lab.lab_cells(vectors, work.scored.scores, dims, seed, report_rest, is_stopped, rank)
        grid = LabGrid(tuple(cells), False)
        best = [grid.of(cell).similarities for cell in best_of(grid.values(_spearman), 3)[:1]]
        usual = grid.of(USUAL).similarities
        return replace(
            grid, agrees_more=any(sts_pairs.agrees_more(each, usual, work.scored.scores, OTHERS) for each in best)
        )

    return evaluation.result(
        _cells_key(work, layer, dims, seed), f"Pooling and comparing {len(work.pairs):,} pairs", run, "lab"
    )


def _sweep(work: Lab, pooling: LabPooling, layer: int, seed: int) -> tuple[LabCell, ...]:
    """One pooling's cells at several numbers of dimensions. Raises NotReady while they are computed."""

    def run(report_progress: ReportProgress, is_stopped: IsStopped) -> tuple[LabCell, ...]:
        vectors, report_rest = work.vectors(layer, report_progress, is_stopped)
        cells = pooling_lab.dimension_sweep(
            vectors,
            pooling,
            work.scored.scores,
            seed=seed,
            progress=report_rest,
            is_stopped=is_stopped,
            rank=work.pairs.ranks_by_vectors,
        )
        return tuple(cells)

    return evaluation.result(
        ("lab sweep", work.key, layer, seed, pooling),
        f"{POOLINGS[pooling]}: comparing numbers of dimensions",
        run,
        "lab_sweep",
    )


def _known_recall(backend: Backend, pairs: Pairs, layer: int) -> np.ndarray:
    """Recall@1 [pooling, treatment] in per cent that "Layers and poolings" has computed; NaN where it is not known."""
    values = np.full((len(POOLINGS), len(TREATMENTS)), np.nan)
    request = EmbedRequest.of_session(backend, exact=True)
    documents = request.document_options()
    sides = ((pairs.documents, documents), (pairs.queries, request.query_options(documents)))
    jobs = [caching.indexes().find(backend, texts, options, request.dtype) for texts, options in sides]
    if any(job is None or job.result is None for job in jobs):
        return values
    with frame.figure("lab_first"):
        ranks = evaluation.pair_indexes(request, pairs, "lab_first").ranks
        for row, pooling in enumerate(POOLINGS):
            if (layer, pooling) in ranks:
                values[row, 0] = 100 * metrics.MEASURES["Recall@1"](ranks.of(layer, cast("Pooling", pooling))).mean()
    return values


def best_of(values: np.ndarray, digits: int) -> list[tuple[int, int]]:
    """The cells [pooling, treatment] with the highest value as it is written; none where a value is missing."""
    if np.isnan(values).any():
        return []
    written = values.round(digits)
    return [(int(p), int(t)) for p, t in np.argwhere(written == written.max())]


def _way(cell: tuple[int, int]) -> tuple[LabPooling, Treatment]:
    return list(POOLINGS)[cell[0]], list(TREATMENTS)[cell[1]]


def _lower(treatment: str) -> str:
    return treatment.lower().replace("pca", "PCA")


def is_surely_better(better: LabCell, usual: LabCell) -> bool:
    """Whether the way that was chosen as the best of all puts more correct answers first than another by more than chance."""
    first, before = (np.asarray(cell.ranks) == 1 for cell in (better, usual))
    gained, lost = int((first & ~before).sum()), int((before & ~first).sum())
    return gained > lost and OTHERS * paired.mcnemar(gained, lost) < 0.05


def best_in_words(
    recall: np.ndarray,
    spearman: np.ndarray,
    queries: int,
    pairs: int,
    is_sure: bool = False,
    agrees_more: bool = False,
) -> str:
    """Which ways are best, Recall@1 [pooling, treatment] in per cent, and which agree most with people; ties are named.

    Of so many queries, and so many pairs that people scored; `is_sure`: whether the first of the best ways finds more than
    the mean with cosine by more than chance; `agrees_more`: the same of the first that agrees most with people.
    """
    poolings, treatments = list(POOLINGS.values()), list(TREATMENTS.values())

    def named(cells: list[tuple[int, int]]) -> str:
        some = cells if len(cells) <= MOST_NAMED else cells[:1]
        by_treatment = {t: enumerated([f"**{poolings[p]}**" for p, other in some if other == t]) for _, t in some}
        ways = [f"{of} with **{_lower(treatments[t])}**" for t, of in by_treatment.items()]
        more = len(cells) - len(some)
        return enumerated([*ways, *([counted(more, "other way")] if more else [])])

    finding = best_of(recall, 1)
    share = f"{number(recall[finding[0]], 1)} % of {counted(queries, 'query', 'queries')}"
    if USUAL in finding:
        usually = ""
    else:
        chance = "" if is_sure else ", which may be chance"
        usually = f" (mean with cosine: {number(recall[USUAL], 1)} %{chance})"
    said = f"{named(finding)} put{'s' * (len(finding) == 1)} the most correct answers first: {share}{usually}."
    agreeing = best_of(spearman, 3)
    if not agreeing:
        return said
    best, before = float(spearman[agreeing[0]]), number(spearman[USUAL])
    if USUAL in agreeing:
        return f"{said} No way agrees more with people than mean with cosine: Spearman {before}."
    if not agrees_more:
        return (
            f"{said} No way agrees clearly more with people than mean with cosine (Spearman {before}): in these maps at most "
            f"{number(best)} ({named(agreeing)}), on {counted(pairs, 'pair')}."
        )
    return f"{said} Rank correlation with people (Spearman) rises from {before} to {number(best)}: {named(agreeing)}."


def enough_in_words(sweep: Sequence[LabCell], whole: LabCell, size: int) -> str:
    """With how few numbers a projection does about as well as the whole vector of `size`, and agrees about as well."""

    def fewest(value_of: Callable[[LabCell], float], lost: float) -> LabCell | None:
        enough = [cell for cell in sweep if value_of(cell) >= value_of(whole) - lost]
        return min(enough, key=lambda cell: (cell.dims, -value_of(cell)), default=None)

    found, agreeing = fewest(_recall, ALMOST), fewest(_spearman, ALMOST / 100)
    all_numbers = f"all {size} for {number(_recall(whole), 1)} %"
    said = (
        f"No projection puts the correct answer first nearly as often as the whole vector: {all_numbers}."
        if found is None
        else f"**{found.dims} of {size} numbers** ({_lower(TREATMENTS[found.treatment])}) are enough to put the correct "
        "answer first for "
        f"{number(_recall(found), 1)} % of the queries, {all_numbers}."
    )
    if agreeing is None:
        return said
    return (
        f"{said} **{agreeing.dims} numbers** ({_lower(TREATMENTS[agreeing.treatment])}) are enough to agree with people "
        "about as "
        f"well as all do: Spearman {number(_spearman(agreeing))} and {number(_spearman(whole))}."
    )


def _grid_figure(values: np.ndarray, title: str, unit: str, digits: int) -> go.Figure:
    """Values [pooling, treatment]: a column for each pooling, a row for each treatment, the first at the top.

    The highest have frames.
    """
    return charts.measure_grid(
        values.T[::-1],
        list(TREATMENTS.values())[::-1],
        list(POOLINGS.values()),
        title,
        unit=unit,
        row_title="comparison",
        column_title="pooling",
        framed=[(len(TREATMENTS) - 1 - treatment, pooling) for pooling, treatment in best_of(values, digits)],
        digits=digits,
    )


def _heatmaps(layer: int, recall: np.ndarray, spearman: np.ndarray, cells: tuple[LabCell, ...]) -> None:
    """Recall@1 and agreement with people, each [pooling, treatment]; NaN, an empty cell, for what is not known yet."""

    def table(values: np.ndarray) -> pd.DataFrame:
        known = pd.DataFrame(values.round(3), columns=list(TREATMENTS.values()))
        return _table(cells) if cells else known.assign(pooling=list(POOLINGS.values()))

    for column, values, title, unit, key, digits in zip(
        st.columns(2),
        (recall, spearman),
        ("Correct answer first (%)", "Agreement with people"),
        ("Recall@1 (%)", "Spearman"),
        ("lab_recall", "lab_spearman"),
        (1, 3),
        strict=True,
    ):
        with column:
            figures.figure(
                _grid_figure(values, f"{title}, layer {layer}", unit, digits),
                key=key,
                code=Command(pooling_lab.lab_cells),
                alt=f"Heatmap of {unit} for five poolings and five comparisons",
                table=partial(table, values),
                on_select=partial(_clicked, key),
                select_many=False,
            )
    if not cells:
        st.caption("The empty cells follow when all sentences are embedded.")


def _grids(work: Lab, grid: LabGrid, layer: int, dims: int) -> None:
    recall, spearman = grid.values(_recall), grid.values(_spearman)
    fewer = {POOLINGS[cell.pooling]: cell.dims for cell in grid.cells if cell.treatment == "pca" and cell.dims < dims}
    kept = f"{min(fewer.values())}–{dims}" if fewer else str(dims)
    size = work.backend.facts.hidden_size
    pairs = len(work.scored.first)
    is_sure = is_surely_better(grid.of(best_of(recall, 1)[0]), grid.of(USUAL))
    said = best_in_words(recall, spearman, len(work.pairs.queries), pairs, is_sure, grid.agrees_more)
    st.markdown(f":material/insights: {said}")
    _heatmaps(layer, recall, spearman, grid.cells)
    low, high = sts_pairs.spearman_interval(float(spearman[USUAL]), pairs)
    interval = f"{number(low, 2)} to {number(high, 2)} is the 95 % interval of {number(spearman[USUAL])}."
    told = f" Spearman: 1 is people’s order; on {counted(pairs, 'pair')}, {interval}" if np.isfinite(low) else ""
    st.caption(f"{IN_SHORT} Projections keep {kept} of {size} numbers.{told}")
    if fewer:
        counts = ", ".join(f"{name} {count}" for name, count in fewer.items())
        st.caption(
            f"The two PCA rows kept fewer than {dims} dimensions: {counts}. The sentences differ in no more directions."
        )
    figures.reading(
        "Each cell pools the same token vectors (columns) and compares the results (rows) in one way; the highest have frames. "
        "The brighter a cell, the higher, from the lowest to the highest of its figure. The projections "
        f"keep {kept} of {size} numbers. The left figure is Recall@1 on these pairs, the right one "
        "Spearman's correlation with people's scores (1: the same order, 0: none) on the ready-made pairs of “Similarity” "
        "under Diagnose. Two forward passes over all texts (one of them for the idf "
        "weights) give every pooling of every layer; no slider needs another pass. Click a column for its curves below.",
        "What is best for other data. Differences of one or two points may be chance (see the intervals of “Layers and "
        "poolings”). Whitening to nearly as many directions as there are sentences describes these more than the model.",
    )


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def _recall(cell: LabCell) -> float:
    return 100 * cell.mean("Recall@1")


def _spearman(cell: LabCell) -> float:
    return _number(cell.spearman)


def _clicked(key: str) -> None:
    cell = browser.place_selected(key)
    if len(cell) == 2 and browser.is_index(cell[1], len(POOLINGS)):
        state.put("lab_pooling", list(POOLINGS)[cell[1]])


def _few_dimensions(work: Lab, cells: tuple[LabCell, ...], layer: int, seed: int, most_pairs: int | None) -> None:
    figures.subheader("How few numbers are enough?")
    fewest = pooling_lab.SWEEP[0]
    if min(work.backend.facts.hidden_size, len(work.pairs) - 1) < fewest:
        st.info(f"The curves begin at {fewest} dimensions, for which at least {fewest + 1} pairs are needed.")
        return
    pooling = cast(
        "LabPooling", controls.choice("lab_pooling", "Pooling", {name: title for name, title in POOLINGS.items()})
    )
    sweep = _sweep(work, pooling, layer, seed)
    by_treatment = {name: [cell for cell in sweep if cell.treatment == name] for name in pooling_lab.PROJECTIONS}
    untreated = next(cell for cell in cells if (cell.pooling, cell.treatment) == (pooling, "cosine"))
    dims = sorted({cell.dims for cell in sweep})
    st.markdown(f":material/insights: {enough_in_words(sweep, untreated, work.backend.facts.hidden_size)}")
    for column, unit, value_of, key in zip(
        st.columns(2),
        ("Correct answer first (%)", "Agreement with people"),
        (_recall, _spearman),
        ("sweep_recall", "sweep_spearman"),
        strict=True,
    ):
        lines = [
            charts.Curve(
                TREATMENTS[name], np.array([next((value_of(c) for c in treated if c.dims == d), np.nan) for d in dims])
            )
            for name, treated in by_treatment.items()
        ]
        lines.append(charts.Curve("all numbers, cosine", np.full(len(dims), value_of(untreated))))
        with column:
            figures.figure(
                charts.curves_over(
                    lines,
                    dims,
                    f"{unit}, {POOLINGS[pooling]}",
                    x_title="dimensions",
                    y_title=unit,
                    logarithmic=True,
                    ticks=[d for d in dims if d in pooling_lab.SWEEP],
                ),
                key=key,
                code=Command(pooling_lab.dimension_sweep),
                alt=f"{unit} of {pooling} pooling at layer {layer} by the number of dimensions kept",
                table=partial(_table, sweep),
            )
    figures.reading(
        "From left to right vectors keep more numbers (on a logarithmic scale); the flat line is the whole vector. Where a "
        "curve meets this line, the remaining numbers are not needed for this task. The sentence above says where a projection "
        f"first loses at most {number(ALMOST, 0)} point, or {number(ALMOST / 100, 2)} of Spearman's correlation.",
        "Whether the remaining numbers matter for other tasks. PCA and whitening end at the number of directions in which the "
        "sentences differ: because of the normalisation at the end of a layer, it is smaller than the vector's size.",
    )


def _table(cells: tuple[LabCell, ...]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "pooling": POOLINGS[cell.pooling],
                "treatment": TREATMENTS[cell.treatment],
                "dimensions": cell.dims,
                **{name: round(100 * cell.mean(name), 2) for name in ("Recall@1", "Recall@10", "MRR", "nDCG@10")},
                "Spearman": cell.spearman,
                "Pearson": cell.pearson,
            }
            for cell in cells
        ]
    )
