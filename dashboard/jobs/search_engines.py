"""The engines that Search may use, and what they need before they can answer: a graph, or a filled collection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components import operator_settings
from components.retrieval.engines import graph, milvus
from components.retrieval.engines.contract import StoredVectors
from components.retrieval.engines.opening import open_engine
from dashboard import caching
from dashboard.jobs import requests

if TYPE_CHECKING:
    from components.jobs import IsStopped, ReportProgress
    from components.model.trace import Pooling
    from components.retrieval.engines.contract import Engine
    from components.retrieval.index.folder import VectorIndex
    from components.retrieval.search.exact import Similarity

NAMES = {"exact": "Exact", "usearch": "HNSW graph (usearch)", "milvus": "Milvus"}


MANY = 5_000  # texts: below, comparing a query with all of them takes milliseconds, and an approximate engine is not offered


def offered() -> dict[str, str]:
    """Engine to its name: exact always, usearch where it is installed, Milvus where the operator names its address."""
    names = ["exact"]
    if graph.is_installed():
        names.append("usearch")
    if operator_settings.MILVUS.chosen() is not None and milvus.is_installed():
        names.append("milvus")
    return {name: NAMES[name] for name in names}


def ready(index: VectorIndex, layer: int, pooling: Pooling, similarity: Similarity, name: str) -> Engine:
    """An approximate engine over a layer and pooling. Raises NotReady while it is built."""
    address = operator_settings.MILVUS.chosen() if name == "milvus" else None

    def prepare(report_progress: ReportProgress, is_stopped: IsStopped) -> Engine:
        stored = StoredVectors.of_index(index, layer, pooling)
        return open_engine(name, stored, similarity, address, report_progress, is_stopped)

    return requests.prepared(
        ("engine", name, address, str(index.folder), layer, pooling, similarity),
        f"{NAMES[name]}: {index.info.sentences:,} vectors",
        prepare,
        "engine",
        "preparing the engine",
        "vectors",
        caching.search_engines(),
    )
