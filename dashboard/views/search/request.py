"""What a person asks of the Search page, read from the session in one place and handed down in one direction.

request -> index or trace -> ranking -> list and figures
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from components.shown_code.search import SearchCode
from dashboard import state
from dashboard.corpora import current
from dashboard.jobs import embedding
from dashboard.jobs.embedding import EmbedRequest
from dashboard.sharing import report
from dashboard.ui.waiting import before_work

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.trace import Pooling
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.index.folder import VectorIndex
    from components.retrieval.search.exact import Similarity


@dataclass(frozen=True, eq=False)
class SearchRequest:
    """The settings of one run of the page."""

    embed: EmbedRequest  # the model, and how it embeds texts
    corpus: Corpus
    query: str
    k: int
    similarity: Similarity
    compare_with: str  # "none", "setting", "model", a kind of second stage, or a kind of word ranking
    candidates: int  # of the left ranking that a second stage ranks
    layer: int | None  # None: the last one
    pooling: Pooling | None  # None: the model's own
    explained: int | None  # the number of the sentence that is explained
    engine: str = "exact"  # of the first ranking

    @classmethod
    def of_session(cls, backend: Backend, corpus: Corpus) -> SearchRequest:
        """The session's settings. Call it after the page's controls were drawn: they refuse invalid values."""
        return cls(
            EmbedRequest.of_session(backend),
            corpus,
            query=state.get("query"),
            k=state.get("k"),
            similarity=state.get("similarity") or backend.sentence_config.similarity,
            compare_with=state.get("compare_with"),
            candidates=state.get("reranked_hits"),
            layer=state.get("layer"),
            pooling=state.get("pooling"),
            explained=_explained(corpus),
            engine=state.get("engine"),
        )

    @classmethod
    def of_vectors(cls, backend: Backend, corpus: Corpus, is_search: bool) -> SearchRequest:
        """The settings of a view that has no query of its own: those of the vectors and, if it searches, of the hits.

        Nothing else is read, so that a report of the view states no setting that it does not use.
        """
        return cls(
            EmbedRequest.of_session(backend),
            corpus,
            query="",
            k=state.get("k") if is_search else state.default("k"),
            similarity=(state.get("similarity") or backend.sentence_config.similarity) if is_search else "cosine",
            compare_with="none",
            candidates=state.default("reranked_hits"),
            layer=state.get("layer"),
            pooling=state.get("pooling"),
            explained=None,
        )

    def by(self, backend: Backend) -> SearchRequest:
        """The same with another model."""
        return replace(self, embed=EmbedRequest.of_session(backend))

    @property
    def backend(self) -> Backend:
        return self.embed.backend

    @property
    def max_length(self) -> int:
        """The number of tokens to which a text is truncated."""
        return self.embed.max_length or self.backend.own_max_length

    def index(self, where: str) -> VectorIndex:
        """The corpus's index, with the choice of other layers if it has not all. Raises NotReady. `where` keys the widgets."""
        index = embedding.index_of(self.embed, self.corpus, where)
        before_work.other_layers(self.embed, self.corpus, where)
        return index

    def code(self, index: VectorIndex, layer: int, pooling: Pooling) -> SearchCode:
        """The code of the corpus as the index has it."""
        return SearchCode(self.backend, current.file_of(self.corpus), index.info.options, layer, pooling)

    def cell(self, index: VectorIndex) -> tuple[int, Pooling]:
        """The layer and pooling; for an index without them, its last layer and the model's own or its first pooling."""
        layers, poolings = index.info.options.layers, index.info.options.poolings
        layer = self.layer if self.layer is not None and self.layer in layers else layers[-1]
        candidates = (self.pooling, self.backend.own_pooling)
        return layer, next((name for name in candidates if name is not None and name in poolings), poolings[0])


def _explained(corpus: Corpus) -> int | None:
    """The number of the sentence that is explained; a report names the sentence."""
    row: int | None = state.get("why")
    if row is not None and row < len(corpus):
        report.say_value("why", row, f"“{corpus.texts[row]}”")
    return row
