"""The Evaluate page's lab: five poolings by five treatments, and how few numbers a vector can do with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.charts import evaluation as charts
from components.retrieval import pair_runs, pooling_lab
from dashboard import caching, controls, evaluation_choices, evaluation_jobs, feedback, settings, state, sts_sections
from dashboard.few_kept import FewKept

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.evaluation import ScoredPairs
    from components.retrieval.evaluation_shelf import Cancelled, Tell
    from components.retrieval.pair_runs import Pairs
    from components.retrieval.pooling_lab import LabCell, LabPooling, LabVectors, Treatment

POOLINGS: dict[LabPooling, str] = {
    "mean": "Mean",
    "cls": "[CLS]",
    "max": "Max",
    "last4": "Last four layers",
    "idf": "Mean by idf",
}
TREATMENTS: dict[Treatment, str] = {
    "cosine": "Cosine",
    "dot": "Dot",
    "random": "Random",
    "pca": "PCA",
    "whitened": "White",
}
assert tuple(POOLINGS) == settings.LAB_POOLINGS == pooling_lab.POOLINGS
MOST_PAIRS = 5_000
EXPLAINED = """
**Poolings.** *Mean*, *[CLS]* and *Max* of the token vectors of one layer. *Last four layers*: the mean of the means of this
layer and the three below. *Mean by idf*: a mean in which pieces that few sentences have count for more.

**Treatments.** *Cosine*: vectors scaled to length 1 (L2 normalisation). *Dot* (product): not scaled, so long vectors win more
often. *Random*: a random projection to fewer numbers, drawn by the seed. *PCA*: the directions in which the corpus varies
most. *White*: whitened, the same, each divided by its spread, so that what all sentences share counts no more than the rest.
PCA and whitening are fitted on the sentences that are searched, never on the queries.
"""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a run of the lab came to."""

    cells: tuple[LabCell, ...]
    sweep: tuple[LabCell, ...]


def lab(backend: Backend) -> None:
    """Two heatmaps over poolings and treatments, and two curves over the number of dimensions."""
    every = evaluation_choices.current_pairs()
    pairs = pair_runs.first_pairs(every, MOST_PAIRS)
    evaluation_choices.about(pairs)
    if len(every) > len(pairs):
        st.info(f"The lab takes the first {len(pairs):,} of the {len(every):,} pairs, sentences and queries alike.")
    left, middle, right = st.columns([3, 3, 2])
    with left:
        layer = controls.layer(backend.facts.layers)
    with middle:
        most = min(backend.facts.hidden_size, len(pairs) - 1)
        dims = controls.number("lab_dims", "Dimensions after a projection", 2, max(2, most), min(128, max(2, most)))
    with right:
        seed = _seed()
    pooling: LabPooling = state.get("lab_pooling")
    found = _outcome(backend, pairs, sts_sections.demo_pairs(), layer, dims, seed, pooling)
    _grids(backend, found, layer, dims)
    with st.expander("What each pooling and treatment is", icon=":material/help:"):
        st.markdown(EXPLAINED)
    _sweep(found, pooling, layer)


def _seed() -> int:
    st.session_state["w_lab_seed"] = state.get("lab_seed")
    st.number_input(
        "Seed",
        0,
        9_999,
        key="w_lab_seed",
        on_change=lambda: state.put("lab_seed", st.session_state["w_lab_seed"] or 0),
        help="Decides the random projection: another seed shows how much of its result is luck.",
    )
    return int(state.get("lab_seed"))


def _outcome(
    backend: Backend, pairs: Pairs, scored: ScoredPairs, layer: int, dims: int, seed: int, pooling: LabPooling
) -> Outcome:
    vectors_key = f"{backend.spec.key} {backend.revision} {pairs.content_hash} {layer}"
    found: Outcome = evaluation_jobs.result(
        ("lab", vectors_key, dims, seed, pooling),
        f"Pooling {len(pairs):,} pairs in five ways",
        partial(_work, backend, pairs, scored, layer, dims, seed, pooling, vectors_key, caching.lab_vectors()),
        "lab",
    )
    return found


def _work(
    backend: Backend,
    pairs: Pairs,
    scored: ScoredPairs,
    layer: int,
    dims: int,
    seed: int,
    pooling: LabPooling,
    key: str,
    kept: FewKept[LabVectors],
    tell: Tell,
    cancelled: Cancelled,
) -> Outcome:
    vectors = kept.get(key)
    if vectors is None:
        vectors = pooling_lab.lab_vectors(
            backend, pairs.documents.texts, pairs.queries.texts, scored, layer, progress=tell, cancelled=cancelled
        )
        kept.put(key, vectors)
    cells = tuple(pooling_lab.lab_cells(vectors, scored.scores, dims, seed, tell, cancelled))
    sweep = tuple(pooling_lab.dimension_sweep(vectors, pooling, scored.scores, seed=seed, cancelled=cancelled))
    return Outcome(cells, sweep)


def _grids(backend: Backend, found: Outcome, layer: int, dims: int) -> None:
    by_place = {(cell.pooling, cell.treatment): cell for cell in found.cells}
    recall = np.array([[100 * by_place[p, t].recall_at_1 for t in TREATMENTS] for p in POOLINGS])
    spearman = np.array([[_number(by_place[p, t].spearman) for t in TREATMENTS] for p in POOLINGS])
    best = max(found.cells, key=lambda cell: cell.recall_at_1)
    st.markdown(
        f":material/insights: Best Recall@1 at layer {layer}: **{POOLINGS[best.pooling]}, {TREATMENTS[best.treatment]}**, "
        f"{100 * best.recall_at_1:.1f} %. Untreated mean: {100 * by_place['mean', 'cosine'].recall_at_1:.1f} %."
    )
    for column, values, unit, key, digits in zip(
        st.columns(2),
        (recall, spearman),
        ("Recall@1 (%)", "Spearman"),
        ("lab_recall", "lab_spearman"),
        (1, 3),
        strict=True,
    ):
        with column:
            feedback.figure(
                charts.measure_grid(
                    values[::-1],
                    list(POOLINGS.values())[::-1],
                    list(TREATMENTS.values()),
                    f"{unit}, layer {layer}, {dims} dimensions",
                    unit=unit,
                    row_title="",
                    column_title="treatment",
                    digits=digits,
                    scale=controls.scale(),
                ),
                key=key,
                alt=f"Heatmap of {unit} for five poolings and five treatments",
                table=partial(_table, found.cells),
                on_select=partial(_clicked, key),
                select_many=False,
            )
    feedback.reading(
        f"Each cell pools the same forward pass in one way (rows) and treats the vectors in one way (columns); the projections "
        f"keep {dims} of {backend.facts.hidden_size} numbers. Recall@1 is of the pairs above, Spearman of the ready-made pairs "
        "under “Sentence similarity”. Click a row for its curves below.",
        "What is best for other data: differences of a point or two are within chance (see the intervals of “Layers and "
        "poolings”). A whitening to nearly as many directions as there are sentences says more of them than of the model.",
    )


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def _clicked(key: str) -> None:
    points = st.session_state[key].selection.points
    if points:
        state.put("lab_pooling", list(POOLINGS)[::-1][int(points[0]["customdata"][0])])


def _sweep(found: Outcome, pooling: LabPooling, layer: int) -> None:
    st.subheader("How few numbers will do?", anchor=False)
    controls.choice("lab_pooling", "Pooling", {name: title for name, title in POOLINGS.items()})
    by_treatment = {name: [cell for cell in found.sweep if cell.treatment == name] for name in pooling_lab.PROJECTIONS}
    untreated = next(cell for cell in found.cells if (cell.pooling, cell.treatment) == (pooling, "cosine"))
    dims = sorted({cell.dims for cell in found.sweep if cell.dims})
    if not dims:
        st.info("The corpus is too small, or its vectors are all the same: there is no direction to project on.")
        return
    for column, unit, of, key in zip(
        st.columns(2),
        ("Recall@1 (%)", "Spearman"),
        (lambda cell: 100 * cell.recall_at_1, lambda cell: _number(cell.spearman)),
        ("sweep_recall", "sweep_spearman"),
        strict=True,
    ):
        lines = [
            charts.Curve(
                TREATMENTS[name], np.array([next((of(c) for c in cells if c.dims == d), np.nan) for d in dims])
            )
            for name, cells in by_treatment.items()
        ]
        lines.append(charts.Curve("all numbers, cosine", np.full(len(dims), of(untreated))))
        with column:
            feedback.figure(
                charts.curves_over(
                    lines,
                    dims,
                    f"{unit} by dimensions, {POOLINGS[pooling]}",
                    x_title="dimensions",
                    y_title=unit,
                    logarithmic=True,
                    ticks=[d for d in dims if d in pooling_lab.SWEEP],
                    scale=controls.scale(),
                ),
                key=key,
                alt=f"{unit} of {pooling} pooling at layer {layer} by the number of dimensions kept",
                table=partial(_table, found.sweep),
            )
    feedback.reading(
        "From left to right vectors keep more numbers (each mark doubles them); the flat line is the vector as it is. Where a "
        "curve meets it, the rest of the numbers is not needed for this task.",
        "Whether the numbers left out matter elsewhere. PCA and whitening stop at the directions in which the sentences really "
        "differ: the normalisation at a layer's end leaves fewer than the vector has numbers.",
    )


def _table(cells: tuple[LabCell, ...]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "pooling": POOLINGS[cell.pooling],
                "treatment": TREATMENTS[cell.treatment],
                "dimensions": cell.dims,
                "Recall@1": round(100 * cell.recall_at_1, 2),
                "Recall@10": round(100 * cell.recall_at_10, 2),
                "MRR": round(100 * cell.mrr, 2),
                "nDCG@10": round(100 * cell.ndcg_at_10, 2),
                "Spearman": cell.spearman,
                "Pearson": cell.pearson,
            }
            for cell in cells
        ]
    )
