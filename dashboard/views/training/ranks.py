"""Where the models before and after training, and the untouched one, rank the right texts; those of the example are stored.

assets/training/example is what a real run of the preset “Repair a damaged model” left, without its rows and its model: the
settings, state, events and record, and the ranks of the demo headlines in its three models.
`python -m dashboard.views.training.ranks` trains it again and writes them.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from components.arrays import Float32, Int64, read_only
from components.folders import write_text
from components.jobs import part_of
from components.retrieval.evaluation.metrics import first_ranks
from components.training.run_folder import EVENTS, RECORD, SETTINGS, STATE
from dashboard.views.training import choice

if TYPE_CHECKING:
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.model.embedding.options import EmbedOptions
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.training.settings import TrainingSettings

RANKS = "ranks.json"  # of the example, beside the files of its run


@dataclass(frozen=True, eq=False)
class Models:
    """The model before and after training, loaded; and the untouched one, where it is a third."""

    base: Backend
    tuned: Backend
    untouched: Backend | None = None

    @property
    def all(self) -> tuple[Backend, ...]:
        return (self.base, self.tuned) if self.untouched is None else (self.base, self.tuned, self.untouched)


@dataclass(frozen=True, eq=False)
class Ranks:
    """The rank of each query's first correct answer, int64 [query], from 1."""

    base: Int64
    tuned: Int64
    untouched: Int64 | None = None


def read_length(backend: Backend, settings: TrainingSettings) -> int | None:
    """The number of tokens to which texts are truncated; None for the model's own."""
    return settings.max_length if settings.max_length < backend.own_max_length else None


def options(settings: TrainingSettings, backend: Backend, role: str) -> EmbedOptions:
    """Of the vectors as the model gives them to others: of the last layer, by its own pooling."""
    return backend.embed_options(
        [backend.facts.layers],
        [backend.own_pooling],
        read_length(backend, settings),
        "float32",
        role=role,  # type: ignore[arg-type]
    )


def vectors(
    settings: TrainingSettings,
    backend: Backend,
    texts: tuple[str, ...],
    role: str,
    report_progress: ReportProgress,
    is_stopped: IsStopped,
) -> Float32:
    """Those vectors, float32 [text, dim]. Raises Stopped."""
    of = options(settings, backend, role)
    return backend.embed(texts, options=of, progress=report_progress, is_stopped=is_stopped)[0, 0]


def ranks_of(
    models: Models, settings: TrainingSettings, pairs: Pairs, report_progress: ReportProgress, is_stopped: IsStopped
) -> Ranks:
    """The ranks in each model. Raises Stopped."""
    queries, answers = pairs.queries.texts, pairs.documents.texts
    each, ranks = len(queries) + len(answers), []
    for number, backend in enumerate(models.all):
        start, total = number * each, each * len(models.all)
        of_answers = part_of(report_progress, start, total)
        of_queries = part_of(report_progress, start + len(answers), total)
        documents = vectors(settings, backend, answers, "document", of_answers, is_stopped)
        asked = vectors(settings, backend, queries, "query", of_queries, is_stopped)
        ranks.append(first_ranks(pairs.ranks_by_vectors(asked, documents)))
    return Ranks(*ranks)


@cache
def stored_ranks() -> Ranks:
    """The ranks of the demo headlines in the models of the example run."""
    read = json.loads((choice.EXAMPLE.path / RANKS).read_text(encoding="utf-8"))
    return Ranks(*(read_only(np.array(read[model], np.int64)) for model in ("base", "tuned", "untouched")))


def write() -> None:
    """Train the example run with the included model, and write its files."""
    from components.model.backend import Backend
    from components.retrieval.corpora.demo import demo_corpus
    from components.retrieval.evaluation.pair_runs import pairs_of_corpus
    from components.training import data as training_data
    from components.training import runs
    from components.training.settings import PRESETS

    settings = PRESETS["repair"].settings
    rows = training_data.load(settings.data)
    split = training_data.split(rows, settings.held_out_share, settings.seed, settings.max_rows)
    with tempfile.TemporaryDirectory() as folder:
        run = runs.create(settings, rows, split, Path(folder) / choice.EXAMPLE.name)
        runs.follow(run, outlives=False)(lambda done, total: None, lambda: False)
        base, tuned = Backend.load(str(run.start_folder)), Backend.load(str(run.model_folder))
        models = Models(base, tuned, Backend.load())
        ranks = ranks_of(models, settings, pairs_of_corpus(demo_corpus()), lambda done, total: None, lambda: False)
        choice.EXAMPLE.path.mkdir(parents=True, exist_ok=True)
        for name in (SETTINGS, STATE, EVENTS, RECORD):
            shutil.copyfile(run.path / name, choice.EXAMPLE.path / name)
    kept = {name: values.tolist() for name, values in vars(ranks).items()}
    write_text(choice.EXAMPLE.path / RANKS, f"{json.dumps(kept, separators=(',', ':'))}\n")


if __name__ == "__main__":
    write()
