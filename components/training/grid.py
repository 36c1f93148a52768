"""Ablation: which pooling, and which inputs of the softmax classifier, give the best sentence vectors.

Reimers and Gurevych (2019, table 6) train on NLI with each pooling and each combination of u, v, |u - v| and u * v before the
classifier, and compare Spearman's correlation on scored pairs: the mean pooling with (u, v, |u - v|) is best there. The same
is repeated here on small data. Every combination is trained with several seeds, on the same rows; a seed determines the start
of the classifier and the order of the rows.

What it does not show: the order on other data or after longer training. A difference is not meaningful where it is no larger
than the spread over seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from components.arrays import Float64, read_only
from components.jobs import IsStopped, ReportProgress, Stopped
from components.retrieval.evaluation.sts import ScoredPairs, similarity_grid
from components.training.run_folder import RunFolder
from components.training.settings import MOST_STEPS, PoolingName, SoftmaxPart, TrainingSettings

if TYPE_CHECKING:
    from components.training.data import Split, TrainingData

Parts = tuple[SoftmaxPart, ...]
GRID_POOLINGS: tuple[PoolingName, ...] = ("mean", "max", "cls")
COMBINATIONS: tuple[Parts, ...] = (
    ("u, v",),
    ("|u-v|",),
    ("u*v",),
    ("|u-v|", "u*v"),
    ("u, v", "u*v"),
    ("u, v", "|u-v|"),
    ("u, v", "|u-v|", "u*v"),
)
Train = Callable[[TrainingSettings, "TrainingData", "Split", Path], RunFolder]


@dataclass(frozen=True, eq=False)
class AblationGrid:
    """Spearman's correlation on the scored pairs after each run; NaN for a model whose cosines are all equal."""

    poolings: tuple[PoolingName, ...]
    combinations: tuple[Parts, ...]
    seeds: tuple[int, ...]
    spearman: Float64  # [pooling, combination, seed]
    before: Float64  # [pooling], of the model that training starts from
    pairs: int  # scored pairs that it is measured on

    @property
    def mean(self) -> Float64:
        """Over the seeds, [pooling, combination]."""
        return np.asarray(self.spearman.mean(axis=-1))

    @property
    def spread(self) -> Float64:
        """Standard deviation over the seeds, [pooling, combination]; NaN for one seed."""
        if len(self.seeds) < 2:
            return np.full(self.spearman.shape[:2], np.nan)
        return np.asarray(self.spearman.std(axis=-1, ddof=1))

    def rows(self) -> list[Mapping[str, object]]:
        """One row for each cell: pooling, combination, mean, spread and the values of all seeds; None for NaN."""
        mean, spread = self.mean, self.spread
        return [
            {
                "pooling": pooling,
                "combination": ", ".join(parts),
                "before": _rounded(self.before[row]),
                "spearman": _rounded(mean[row, column]),
                "spread": _rounded(spread[row, column]),
                "by_seed": {
                    str(seed): _rounded(value)
                    for seed, value in zip(self.seeds, self.spearman[row, column], strict=True)
                },
            }
            for row, pooling in enumerate(self.poolings)
            for column, parts in enumerate(self.combinations)
        ]


def train_here(settings: TrainingSettings, data: TrainingData, split: Split, folder: Path) -> RunFolder:
    """Train in this process when no other one trains, with the threads of a run's own process, and return the run.

    Raises as components.training.worker.train and runs.turn do.
    """
    import torch

    from components.training import runs, worker

    run = runs.create(settings, data, split, folder=folder)
    before = torch.get_num_threads()
    with runs.turn():
        torch.set_num_threads(worker.threads())
        try:
            worker.train(run)
        finally:
            torch.set_num_threads(before)
    return run


def run_grid(
    settings: TrainingSettings,
    data: TrainingData,
    split: Split,
    scored: ScoredPairs,
    folder: Path,
    train: Train = train_here,
    poolings: Sequence[PoolingName] = GRID_POOLINGS,
    combinations: Sequence[Parts] = COMBINATIONS,
    seeds: Sequence[int] = (10, 11, 12),
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> AblationGrid:
    """Train the softmax objective with each pooling, combination and seed, and measure each model on `scored`.

    `train(settings, data, split, run_folder)` returns the finished run. Each run's files, which have the size of the model,
    are removed once it is measured. `progress(done, total)` counts runs. Raises what `train` raises, ModelError for a model
    that cannot be loaded, and Stopped.
    """
    from components.training import runs

    results = np.full((len(poolings), len(combinations), len(seeds)), np.nan)
    cells = list(np.ndindex(results.shape))
    before = np.array([_spearman(settings.model, scored, pooling) for pooling in poolings])
    for done, (row, column, number) in enumerate(cells):
        if is_stopped():
            raise Stopped
        cell = replace(
            settings,
            name="",
            objectives=("softmax",),
            pooling=poolings[row],
            softmax_parts=combinations[column],
            damage=0.0,
            projection=None,  # the poolings are compared, without a layer behind them
            seed=seeds[number],
            watch=(),
            evaluate_every=MOST_STEPS,  # only the last weights are compared
        )
        run = train(cell, data, split, folder / f"cell-{done}")
        results[row, column, number] = _spearman(str(run.model_folder), scored, poolings[row])
        runs.delete(run)
        progress(done + 1, len(cells))
    return AblationGrid(
        tuple(poolings), tuple(combinations), tuple(seeds), read_only(results), read_only(before), len(scored.first)
    )


def _spearman(model: str, scored: ScoredPairs, pooling: PoolingName) -> float:
    from components.model.backend import Backend

    backend = Backend.load(model)
    options = backend.embed_options(poolings=(pooling,), precision="float32")
    (layer,) = options.layers
    return float(similarity_grid(backend, scored, options).spearman.of(layer, pooling))


def _rounded(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 4)
