"""What a person asks of the Search page: read from the session here, and handed down one way.

request -> index or trace -> ranking -> list and figures; nothing further down reads the session.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dashboard import state
from dashboard.ui import controls

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.trace import Pooling
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.index.folder import IndexInfo, VectorIndex
    from components.retrieval.search.exact import Similarity


@dataclass(frozen=True, eq=False)
class SearchRequest:
    """One look at the page."""

    backend: Backend
    corpus: Corpus
    query: str
    k: int
    similarity: Similarity
    compare_with: str  # "none", "setting", "model", or a ranking by words
    layer: int | None  # None: the last one there is
    pooling: Pooling
    max_length: int  # of a text, in tokens
    explained: int | None  # the sentence whose rank is explained

    @classmethod
    def of_session(cls, backend: Backend, corpus: Corpus) -> SearchRequest:
        """As the session stands; asked for after the page's controls were drawn, which refuse what is not there."""
        return cls(
            backend,
            corpus,
            query=state.get("query"),
            k=state.get("k"),
            similarity=state.get("similarity"),
            compare_with=state.get("beside"),
            layer=state.get("layer"),
            pooling=state.get("pooling"),
            max_length=controls.length_for(backend) or backend.own_max_length,
            explained=state.get("why"),
        )

    def cell(self, index: VectorIndex) -> tuple[int, Pooling]:
        """Its layer and pooling; the last and the first of an index that does not have them."""
        layers, poolings = index.info.options.layers, index.info.options.poolings
        layer = self.layer if self.layer is not None and self.layer in layers else layers[-1]
        return layer, self.pooling if self.pooling in poolings else poolings[0]


def vectors_key(info: IndexInfo) -> tuple[str, str, tuple[int, ...], tuple[str, ...], int]:
    """What queries' vectors for an index depend on, beside the queries."""
    options = info.options
    return info.model, info.revision, options.layers, options.poolings, options.max_length
