"""Which words carry the similarity of each hit, computed in the background: the hits come first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from components.jobs import Stopped
from components.model.trace import TraceOptions
from components.retrieval.search.score_split import shades, split_of_vectors
from dashboard import caching
from dashboard.jobs import requests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.jobs import IsStopped, Job, ReportProgress
    from components.model.trace import Pooling
    from components.retrieval.index.folder import VectorIndex
    from components.retrieval.search.score_split import Shade
    from dashboard.views.search.request import SearchRequest

AT_ONCE = 16  # hits in one pass, with the query
MOST_CHARACTERS = 2_000  # of a hit: a list shows fewer
WAITED = 0.1  # seconds that the hits wait for their words: with a small model they come within it


@dataclass(frozen=True)
class Shaded:
    """The words of a query and of one of its hits that carry their cosine, by the exact split over words."""

    query: tuple[Shade, ...]
    hit: tuple[Shade, ...]


def of_vectors(
    request: SearchRequest, index: VectorIndex, layer: int, pooling: Pooling, rows: Sequence[int], where: str
) -> Job | None:
    """The job that finds the words of the hits `rows`, a dict of row to Shaded; None where a cosine is no sum over words.

    `where` names the list: its words of before are no longer waited for.
    """
    backend, query, texts, options = request.backend, request.query, request.corpus.texts, index.info.options
    head = backend.loaded.head
    is_one_token = pooling == "cls" if head is None or pooling != "own" else head.modes == ("cls",)
    if backend.structure.why_not("tokens") or is_one_token or not len(rows):
        return None
    asked = backend.embed_options([layer], max_length=options.max_length, precision="float32", role="query")
    prompts = (len(asked.prompt), len(options.prompt))
    jobs, key = caching.explanations(), ("words of hits", index.info.identity, layer, pooling, query, tuple(rows))

    def work(report_progress: ReportProgress, is_stopped: IsStopped) -> dict[int, Shaded]:
        is_over = requests.unless_left(key, is_stopped, jobs)
        found: dict[int, Shaded] = {}
        for start in range(0, len(rows), AT_ONCE):
            if is_over():
                raise Stopped
            some = rows[start : start + AT_ONCE]
            # Not kept like the passes of sentences: these are of texts that a person has not chosen.
            trace = backend.run(
                [asked.prompt + query, *(options.prompt + texts[row][:MOST_CHARACTERS] for row in some)],
                options=TraceOptions(max_length=options.max_length, prompt=""),
            )
            for number, row in enumerate(some, start=1):
                split = split_of_vectors(trace, layer, pooling, "cosine", 0.0, prompts, hit=number)
                found[row] = Shaded(shades(split.query), shades(split.hit))
        return found

    requests.stop_previous(where, key, "search", jobs)
    job = jobs.request(key, "The words of hits", work, person=caching.person())
    job.finished.wait(WAITED)
    return job
