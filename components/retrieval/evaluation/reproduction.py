"""Published figures measured again: the same models, data and measures, and the difference between ours and theirs.

The data come from local files if these are given, else from the hub. It is not known which 36,000 pairs the published
retrieval figures used: a seeded sample of that size replaces them. Recall falls as the corpus grows, so that a value of
ours over another number of pairs is shown but not compared.

The included model is run on all available data, with or without a published figure. A model or data set that is not
available is left out with the reason, and the rest is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from components.errors import InputError, UserError
from components.jobs import ReportProgress
from components.model.catalog import EMBEDDED_KEY, parse_model
from components.model.files import hub
from components.model.trace import Pooling
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.corpora.hub_datasets import fetch_dataset
from components.retrieval.corpora.readers.files import read_table
from components.retrieval.corpora.readers.limits import BROWSER_LIMITS, Limits
from components.retrieval.corpora.readers.table import SET_COLUMN
from components.retrieval.evaluation import grid, metrics
from components.retrieval.evaluation import sts as sts_module
from components.retrieval.evaluation.pair_runs import Pairs, pairs_of_corpus, some_pairs
from components.retrieval.evaluation.published_figures import (
    PAIRS_DATASET,
    PUBLISHED,
    STS_DATASET,
    TOLERANCE,
    PublishedResult,
    Task,
    hub_id_of,
    published_for,
)
from components.retrieval.evaluation.sts import ScoredPairs

if TYPE_CHECKING:
    from components.model.backend import Backend

MOST_PAIRS = 36_000  # the number of pairs of the published retrieval figures
STS_SPLITS = ("validation", "test")
NEEDS_TRAINING = "The figure is for a model that was fine-tuned on {} first."
HOW_TO_TRAIN = "Train it with `python -m components train FILE --preset nli-softmax --out DIR`, and add --trained DIR."
FAILURES = (UserError, OSError, RuntimeError, MemoryError)  # of one model; torch raises RuntimeErrors
BarMaker = Callable[[str, str], AbstractContextManager[ReportProgress]]  # label and unit to a progress callback


@dataclass(frozen=True)
class Sources:
    """Local files that replace the hub's data sets; None for the hub's."""

    pairs: Path | None = None
    sts: Path | None = None
    sts_split: str = "validation"  # the split of STS-B in the file
    seed: int = 0  # for the sample of pairs
    trained: str | None = None  # key of a model that was fine-tuned as those of the figures that need it
    limits: Limits = BROWSER_LIMITS  # of the files, those of the hub too


@dataclass(frozen=True, eq=False)
class Data:
    """A data set, as far as it is used."""

    task: Task
    split: str
    name: str  # the file, or the data set's hub id and split
    of: int  # usable rows, from which `n` are used
    bad_rows: int
    pairs: Pairs | None = None
    scored: ScoredPairs | None = None

    @property
    def n(self) -> int:
        return len(self.pairs or ()) if self.scored is None else len(self.scored.first)


@dataclass(frozen=True)
class ReproductionRow:
    """One measure of one model and pooling: our value, and the published one if there is one; points of a hundred."""

    theirs: PublishedResult | None
    task: Task
    split: str
    data: str
    model: str  # hub id
    revision: str  # of the weights used
    layer: int
    pooling: Pooling
    measure: str
    ours: float | None  # None where all similarities are equal
    n: int

    @property
    def published(self) -> float | None:
        return None if self.theirs is None else self.theirs.value(self.measure)

    @property
    def difference(self) -> float | None:
        """Ours minus theirs."""
        if self.published is None or self.ours is None:
            return None
        return round(self.ours - self.published, 2)

    @property
    def within(self) -> bool | None:
        """Whether ours is within 1.5 points of theirs; None without a published value or over another number of pairs."""
        if self.theirs is None or self.difference is None or not self.theirs.is_comparable(self.n):
            return None
        return abs(self.difference) <= TOLERANCE

    @property
    def note(self) -> str:
        if self.theirs is None or self.theirs.is_comparable(self.n):
            return ""
        return f"not comparable: over {self.n:,} pairs, theirs over {self.theirs.n:,}"


@dataclass(frozen=True)
class LeftOut:
    """A figure that was not measured."""

    figure: str
    why: str
    fix: str = ""
    needs_training: bool = False


@dataclass(frozen=True)
class Outcome:
    rows: tuple[ReproductionRow, ...]
    data: tuple[Data, ...]
    left_out: tuple[LeftOut, ...]


@contextmanager
def no_bar(label: str, unit: str) -> Iterator[ReportProgress]:
    """A progress bar that is not drawn."""
    yield lambda done, total: None


def reproduce(sources: Sources, bar: BarMaker = no_bar) -> Outcome:
    """Every published figure that can be measured here, and the included model's figures on the same data.

    Raises UserError for an unusable local file, seed or fine-tuned model. Everything else that fails is in `left_out`.
    """
    if sources.seed < 0:
        raise InputError(
            f"The seed {sources.seed} is negative.",
            "A seed is a whole number, 0 or more.",
            "Choose another seed, or leave it out to use 0.",
        )
    if sources.trained is not None:
        parse_model(sources.trained)  # before the other models, which take long
    data, missing = _all_data(sources, bar)
    rows: list[ReproductionRow] = []
    left_out: list[LeftOut] = []
    for model in dict.fromkeys([EMBEDDED_KEY, *(result.model for result in published_for())]):
        if model == hub_id_of(EMBEDDED_KEY):
            continue  # it is measured as the included model
        results = published_for(model=model)
        left_out += [
            _left_out(result.title, missing[result.task, result.split])
            for result in results
            if (result.task, result.split) in missing
        ]
        usable = [part for part in data if model == EMBEDDED_KEY or _theirs(results, part)]
        if not usable:
            continue
        try:
            backend = _load(model, bar)
        except FAILURES as problem:
            left_out += _failed(model, results, usable, problem)
            continue
        for part in usable:
            try:
                rows += _measure(backend, part, _theirs(results, part), bar)
            except FAILURES as problem:
                left_out += _failed(model, results, [part], problem)
    fine_tuned = published_for(trained=True)
    if sources.trained is None:
        left_out += [
            LeftOut(result.title, NEEDS_TRAINING.format(result.trained_on), HOW_TO_TRAIN, needs_training=True)
            for result in fine_tuned
        ]
    elif any(_theirs(fine_tuned, part) for part in data):
        backend = _load(sources.trained, bar)
        for part in data:
            if _theirs(fine_tuned, part):
                rows += _measure(backend, part, _theirs(fine_tuned, part), bar)
    order = {result: number for number, result in enumerate(PUBLISHED)}
    rows.sort(key=lambda row: len(order) if row.theirs is None else order[row.theirs])  # stable: theirs first
    return Outcome(tuple(rows), data, tuple(left_out))


def _theirs(results: Sequence[PublishedResult], data: Data) -> tuple[PublishedResult, ...]:
    return tuple(result for result in results if (result.task, result.split) == (data.task, data.split))


def _failed(
    model: str, results: Sequence[PublishedResult], data: Sequence[Data], problem: Exception
) -> Iterator[LeftOut]:
    for part in data:
        titles = [result.title for result in _theirs(results, part)]
        for title in titles or [f"{hub_id_of(model).rpartition('/')[2]} on {part.name}"]:
            yield _left_out(title, problem)


def _left_out(figure: str, problem: Exception) -> LeftOut:
    if isinstance(problem, UserError):
        return LeftOut(figure, " ".join(problem.problem.split()), " ".join(problem.fix.split()))
    return LeftOut(figure, " ".join(f"{type(problem).__name__}: {problem}".split())[:300])


def _load(model: str, bar: BarMaker) -> Backend:
    """The model, downloaded if needed. Raises UserError, at once if the hub cannot be reached."""
    from components.model.backend import Backend

    spec = parse_model(model)
    if spec.source == "hub" and hub.cached_folder(spec.key) is None and not hub.is_reachable():
        raise hub.offline(spec.key)
    with bar(f"Fetching {spec.title}", "B") as progress:
        return Backend.load(spec, progress=progress)


def _measure(backend: Backend, data: Data, results: Sequence[PublishedResult], bar: BarMaker) -> list[ReproductionRow]:
    """A row for each published pooling and measure of the task, from one embedding pass of the last layer in float32."""
    # Without a published figure, the poolings of the other models' figures.
    poolings = tuple(dict.fromkeys(result.pooling for result in results or published_for(data.task)))
    theirs = {result.pooling: result for result in results}

    def row(layer: int, pooling: Pooling, measure: str, ours: float | None) -> ReproductionRow:
        return ReproductionRow(
            theirs=theirs.get(pooling),
            task=data.task,
            split=data.split,
            data=data.name,
            model=hub_id_of(backend.spec.key),
            revision=backend.revision,
            layer=layer,
            pooling=pooling,
            measure=measure,
            ours=ours,
            n=data.n,
        )

    with bar(f"Embedding with {backend.spec.title}", " sentences") as progress:
        if data.scored is not None:
            options = backend.embed_options(None, poolings, precision="float32")
            similarities = sts_module.similarity_grid(backend, data.scored, options, progress)
            agreement = {cell: similarities.of(*cell)[0] for cell in similarities.cosines.cells}
            return [
                row(*cell, "spearman", None if spearman is None else round(100 * spearman, 2))
                for cell, spearman in agreement.items()
            ]
        assert data.pairs is not None
        documents = backend.embed_options(None, poolings, precision="float32", role="document")
        queries = backend.embed_options(None, poolings, precision="float32", role="query")
        return [
            row(layer, pooling, f"recall@{k}", round(100 * float(metrics.recall(ranks, k).mean()), 2))
            for layer, pooling, ranks in grid.retrieval_runs(
                backend,
                data.pairs.documents.texts,
                data.pairs.queries.texts,
                data.pairs.ranks_by_vectors,
                documents,
                queries,
                progress,
            )
            for k in metrics.CUTOFFS
        ]


def _all_data(sources: Sources, bar: BarMaker) -> tuple[tuple[Data, ...], dict[tuple[Task, str], UserError]]:
    """The available data, and the errors of the others. Local files come first: the error of one of them is raised."""
    files: dict[tuple[Task, str], Data] = {}
    if sources.pairs is not None:
        files["retrieval", "test"] = pairs_data([sources.pairs], str(sources.pairs), sources.seed, sources.limits)
    if sources.sts is not None:
        files["similarity", sources.sts_split] = sts_data(
            [sources.sts], str(sources.sts), sources.sts_split, sources.limits
        )
    usable: list[Data] = []
    missing: dict[tuple[Task, str], UserError] = {}
    parts: tuple[tuple[Task, str], ...] = (("retrieval", "test"), *(("similarity", split) for split in STS_SPLITS))
    for task, split in parts:
        try:
            usable.append(files[task, split] if (task, split) in files else _of_hub(task, split, sources, bar))
        except UserError as problem:
            missing[task, split] = problem
    return tuple(usable), missing


def _of_hub(task: Task, split: str, sources: Sources, bar: BarMaker) -> Data:
    dataset = PAIRS_DATASET if task == "retrieval" else STS_DATASET
    with bar(f"Fetching {dataset}", "B") as progress:
        # The pairs have no splits on the hub: the test split is a sample of all pairs.
        paths = fetch_dataset(dataset, None if task == "retrieval" else split, progress=progress)
    if task == "retrieval":
        return pairs_data(paths, dataset, sources.seed, sources.limits)
    return sts_data(paths, dataset, split, sources.limits)


def pairs_data(paths: Sequence[Path], name: str, seed: int = 0, limits: Limits = BROWSER_LIMITS) -> Data:
    """Pairs from columns sentence and compressed, or from a column "set" with lists of both; at most a sample of 36,000.

    Raises InputError.
    """
    columns = read_table(paths[0], name, limits=limits, max_rows=1).columns
    corpus = read_corpus(paths, name, SET_COLUMN if set(columns) == {SET_COLUMN} else "sentence", limits=limits)
    pairs = pairs_of_corpus(corpus)
    used = some_pairs(pairs, sample(len(pairs), MOST_PAIRS, seed))
    return Data(
        "retrieval",
        "test",
        name,
        len(pairs),
        pairs.left_out + corpus.report.bad_count,
        pairs=used,
    )


def sts_data(paths: Sequence[Path], name: str, split: str, limits: Limits = BROWSER_LIMITS) -> Data:
    """Scored pairs of columns sentence1, sentence2 and score. Raises InputError."""
    scored = sts_module.scored_pairs(read_corpus(paths, name, "sentence1", limits=limits))
    return Data("similarity", split, name, len(scored.first), scored.bad_rows, scored=scored)


def sample(total: int, most: int, seed: int) -> list[int]:
    """The numbers of the rows that are used, in order: all, or a seeded sample of `most`."""
    if total <= most:
        return list(range(total))
    return sorted(np.random.default_rng(seed).choice(total, most, replace=False).tolist())
