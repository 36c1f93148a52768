"""What the view waits for: the traits of all queries, and each remedy as a job of its own. It draws nothing."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from components.arrays import Int64
from components.model.trace import Pooling
from components.retrieval.evaluation.metrics import first_ranks
from components.retrieval.failures.remedies import USUAL, diagnosis, folds, kinds
from components.retrieval.failures.remedies.costs import SearchCost, cost_now
from components.retrieval.failures.remedies.kinds import RemedyInput
from components.retrieval.failures.remedies.present import Present
from components.retrieval.failures.traits import TraitShare, compared, traits_of
from components.retrieval.failures.vocabulary import CorpusWords
from components.retrieval.rankings.ranking import Ranking
from dashboard.jobs import evaluation
from dashboard.views.diagnosis.other_models import OtherModels

if TYPE_CHECKING:
    from components.jobs import IsStopped, ReportProgress
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.failures.remedies.diagnosis import RemedyRow
    from dashboard.jobs.embedding import EmbedRequest
    from dashboard.jobs.evaluation import PairIndexes


@dataclass(frozen=True, eq=False)
class Diagnosed:
    """The session's pairs at one layer and pooling."""

    request: EmbedRequest
    pairs: Pairs
    indexes: PairIndexes
    layer: int
    pooling: Pooling
    seed: int
    others: OtherModels = field(default_factory=OtherModels)
    abbreviations: Mapping[str, str] = field(default_factory=dict)
    part: str = ""  # of the queries, by the value of a column; "" for all

    @property
    def key(self) -> tuple[Hashable, ...]:
        """What determines all results."""
        folders = self.indexes.documents.folder.name, self.indexes.queries.folder.name
        return (*folders, self.pairs.content_hash, self.layer, self.pooling)

    @cached_property
    def now(self) -> Int64:
        """[query]: the rank of the first right text."""
        return first_ranks(self.indexes.ranks_of(self.layer, self.pooling))

    @cached_property
    def first(self) -> np.ndarray:
        """[query]: whether it is in the first half."""
        return folds.halves(self.pairs.queries.texts, self.seed)

    @property
    def names(self) -> tuple[str, ...]:
        """The remedies that can be measured, from the cheapest to the dearest."""
        is_large = len(self.pairs.documents) > kinds.MOST_TEXTS
        has_others = len(list(self.indexes.ranks.cells)) > 1
        backend = self.request.backend
        has_tokens = not backend.structure.why_not("tokens") or backend.late_interaction is not None
        left_out = {name for name, out in (("maxsim", is_large or not has_tokens), ("layer", not has_others)) if out}
        return tuple(name for name in kinds.in_order((*USUAL, *self.others.loaded)) if name not in left_out)

    def _setting(self) -> RemedyInput:
        documents, queries = self.indexes.documents, self.indexes.queries
        cells = list(self.indexes.ranks.cells)
        vectors = {cell: (queries.engine(*cell).vectors, documents.engine(*cell).vectors) for cell in cells}
        of_documents = documents.info.options
        options = [
            replace(each, layers=(self.layer,), poolings=(self.pooling,))
            for each in (self.request.query_options(of_documents), of_documents)
        ]
        backend, cell = self.request.backend, (self.layer, self.pooling)
        ranking = Ranking("as it is now", ranks=self.indexes.ranks_of(*cell))
        present = Present(backend, self.pairs, options[0], options[1], cell, vectors, ranking, "cosine")
        known = CorpusWords(self.pairs.documents.texts, backend.tokenization.vocabulary)
        return RemedyInput(present, self.first, known, self.abbreviations, **self.others.setting)

    def row(self, name: str) -> RemedyRow:
        """A remedy, measured. Raises NotReady."""

        def work(report_progress: ReportProgress, is_stopped: IsStopped) -> RemedyRow:
            return next(diagnosis.rows_of([name], self._setting(), self.seed, lambda _: report_progress, is_stopped))

        own = tuple(self.abbreviations.items()) if name == "repair" else self.others.key_of(name)
        title, key = kinds.TITLES[name], ("remedy", name, self.seed, *self.key, *own)
        return evaluation.result(key, f"Measuring {title}", work, f"remedy_{name}")

    def cost(self) -> SearchCost:
        """What a search costs as it is now. Raises NotReady."""

        def work(report_progress: ReportProgress, is_stopped: IsStopped) -> SearchCost:
            return cost_now(self._setting().present, is_stopped)

        return evaluation.result(("cost", *self.key), "Measuring the time per query", work, "cost_now")

    def shares(self) -> tuple[TraitShare, ...]:
        """What failed queries share. Raises NotReady."""

        def work(report_progress: ReportProgress, is_stopped: IsStopped) -> tuple[TraitShare, ...]:
            present = self._setting().present
            vectors = np.asarray(present.query_vectors), np.asarray(present.document_vectors)
            prompts = present.query_options.prompt, present.document_options.prompt
            tokenization, length = present.backend.tokenization, present.document_options.max_length
            found = traits_of(self.pairs, *vectors, tokenization, length, prompts, None, report_progress, is_stopped)
            return compared(found, self.now > 1)

        return evaluation.result(("traits", *self.key), "Looking for traits of the queries", work, "traits")
