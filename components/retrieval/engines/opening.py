"""Opens an engine by its name, and builds what it needs where that is not there yet."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING

from components.errors import InputError
from components.retrieval.engines import graph, milvus
from components.retrieval.engines.contract import ENGINES, Engine, ExactEngine, StoredVectors, missing_package
from components.retrieval.search.exact import checked_product, checked_similarity

if TYPE_CHECKING:
    from components.jobs import IsStopped, ReportProgress
    from components.retrieval.search.exact import Similarity


def check_engine(name: str, address: str | None = None) -> None:
    """Raises InputError for an engine that is not there, and for an address that it cannot have or lacks."""
    if name not in ENGINES:
        raise InputError(
            f"The engine {name[:80]!r} is not available.",
            f"The engines are {', '.join(ENGINES)}.",
            "Choose one of these.",
        )
    if address is not None and name != "milvus":
        raise InputError(
            f"The engine {name} has no address.", "Only Milvus has one.", "Leave the address out, or choose milvus."
        )
    if name == "milvus":
        if address is None:
            raise InputError(
                "The engine milvus needs an address.",
                f"It is the path of a file of Milvus Lite, which ends in {milvus.SUFFIX}, or a cluster's http://host:19530.",
                f"Write for example --address vectors{milvus.SUFFIX}",
            )
        milvus.Address.parse(address).check_file()
    if name != "exact" and not (graph if name == "usearch" else milvus).is_installed():
        raise missing_package("usearch" if name == "usearch" else "pymilvus", name)


def open_engine(
    name: str,
    stored: StoredVectors,
    similarity: Similarity = "cosine",
    address: str | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Engine:
    """The engine of a name over some vectors; `address` says where Milvus is.

    usearch's graph is built beside the index, and Milvus's collection filled, when they are first asked for: `progress`
    counts vectors. A graph that is refused is built anew: one that was not made on this machine, a damaged one, and one of
    other vectors, which an index that was written again leaves behind. In a folder that may only be read, the graph stays in
    memory. The engine's note says what of this happened, and the seconds.

    Raises Stopped, OSError where there is no room, and InputError for other names, addresses, and packages that are missing.
    """
    check_engine(name, address)
    if name == "exact":
        checked_similarity(similarity)
        return ExactEngine(stored)
    similarity = checked_product(similarity, name)
    if address is not None:
        return milvus.opened(stored, address, similarity, progress, is_stopped)
    refused = ""
    try:
        return graph.open_file(stored, similarity)
    except FileNotFoundError:
        pass
    except InputError as problem:
        refused = problem.problem
    is_writable = os.access(stored.folder, os.W_OK)
    build = graph.build_file if is_writable else partial(graph.build, threads=max(1, (os.cpu_count() or 2) // 2))
    started = time.perf_counter()
    engine = build(stored, similarity, progress=progress, is_stopped=is_stopped)
    notes = [f"{refused} It was built anew in {time.perf_counter() - started:.1f} s."] if refused else []
    if not is_writable:
        notes.append("The graph stays in memory: the folder of the index may only be read.")
    engine.note = " ".join([*notes, *([engine.note] if engine.note else [])])
    return engine
