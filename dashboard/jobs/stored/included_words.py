"""The words of the included sentences in a model: their vectors, and what its heads do in these sentences on average.

What the heads of the included model do is kept in a file, so that nobody waits for it: `python -m dashboard.views.home.stored`
writes it.
"""

from __future__ import annotations

import json
import logging
import tempfile
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from components.folders import private_folder
from components.model.catalog import EMBEDDED_KEY
from components.model.trace import TraceOptions
from components.retrieval.corpora.demo import demo_sentences
from components.retrieval.corpora.senses import read_senses
from dashboard import caching
from dashboard.jobs import requests
from dashboard.ready_made import ASSETS

if TYPE_CHECKING:
    from pathlib import Path

    from components.analysis.first_look.decisive import Habits
    from components.analysis.first_look.nearest import WordStore
    from components.jobs import IsStopped, Job, ReportProgress
    from components.model.backend import Backend

log = logging.getLogger(__name__)
BATCH = 16  # sentences of a pass
HABITS = ASSETS / "start_habits.json"  # [block, head, distance] in parts of a whole
WHOLE = 10_000
MOST_WORDS = 6_000  # of the included sentences, about
IN_MEMORY = 40 << 20  # bytes of vectors


@dataclass(frozen=True, eq=False)
class Included:
    """What was read of the included sentences."""

    words: WordStore
    habits: Habits | None  # None for a model without blocks, and for one whose habits are kept in a file

    @property
    def nbytes(self) -> int:
        """Its size in memory."""
        return self.words.nbytes + (0 if self.habits is None else self.habits.nbytes)


def included_words(backend: Backend) -> Included:
    """The words of a model. Raises NotReady while they are read."""
    job = request(backend, person=caching.person())
    result: Included = requests.result_of(
        caching.included_words(),
        job,
        doing="reading the included sentences",
        stop_key="stop_included",
        again_key="again_included",
        unit="sentences",
    )
    return result


def read_words(backend: Backend) -> Included | None:
    """The words of a model if they have been read; begins nothing."""
    job = caching.included_words().find((backend.spec.key, backend.revision))
    result: Included | None = None if job is None else job.result
    return result


def kept_habits(backend: Backend) -> Habits | None:
    """What the heads of a model do on average, if a file has it."""
    return _of_file() if backend.spec.key == EMBEDDED_KEY else None


@cache
def _of_file() -> Habits:
    from components.analysis.first_look.decisive import Habits

    return Habits(np.array(json.loads(HABITS.read_text(encoding="utf-8")), np.float32) / np.float32(WHOLE))


def measured_habits(backend: Backend) -> Habits:
    """The habits of a model with blocks over the included sentences, measured."""
    from components.analysis.first_look.decisive import habits_of

    texts = tuple(dict.fromkeys(demo_sentences()))
    batches = [texts[begin : begin + BATCH] for begin in range(0, len(texts), BATCH)]
    return habits_of(backend.run(batch, options=TraceOptions(attentions=True)) for batch in batches)


def request(backend: Backend, person: str | None = None, lane: str | None = None) -> Job:
    """The job that reads them; `person` is who waits for it."""

    def work(report_progress: ReportProgress, is_stopped: IsStopped) -> Included:
        return _read(backend, report_progress, is_stopped)

    key = (backend.spec.key, backend.revision)
    return caching.included_words().request(key, "Reading the included sentences", work, person=person, lane=lane)


def _is_small(backend: Backend) -> bool:
    """Whether the vectors of a model are kept in memory: the included one's need no disk, which may be full."""
    return (backend.facts.layers + 1) * backend.facts.hidden_size * 2 * MOST_WORDS <= IN_MEMORY


def _read(backend: Backend, report_progress: ReportProgress, is_stopped: IsStopped) -> Included:
    """Raises Stopped."""
    from components.analysis.first_look.decisive import HabitCount
    from components.analysis.first_look.nearest import WordCollection
    from components.jobs import Stopped

    rows = read_senses(ASSETS / "senses.jsonl", "senses.jsonl").rows
    senses: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        senses.setdefault(row.sentence, []).append((row.word, row.sense))
    plain = tuple(dict.fromkeys(demo_sentences()))
    labelled = tuple(text for text in senses if text not in set(plain))
    count = HabitCount()
    needs_habits = not backend.structure.why_not("blocks") and kept_habits(backend) is None
    total = len(plain) + len(labelled)
    done = 0
    with WordCollection(senses, None if _is_small(backend) else _folder()) as collection:
        for texts, for_habits in ((plain, needs_habits), (labelled, False)):
            by_length = sorted(texts, key=len)  # a batch is as long as its longest sentence
            for begin in range(0, len(by_length), BATCH):
                if is_stopped():
                    raise Stopped
                # Not a trace of the store, where it would push out those of people's sentences.
                trace = backend.run(by_length[begin : begin + BATCH], options=TraceOptions(attentions=for_habits))
                collection.add(trace)
                if for_habits:
                    count.add(trace)
                done += len(trace.sentences)
                report_progress(done, total)
        return Included(collection.store(), count.habits() if needs_habits else None)


def _folder() -> Path | None:
    """Where the vectors are kept: 31 MB for 7 layers of 384 dimensions. None, which is in memory, where no file can be made."""
    try:
        private_folder(caching.token_folder())
        with tempfile.TemporaryFile(dir=caching.token_folder()):
            return caching.token_folder()
    except OSError as problem:
        log.warning("no folder for the words of the included sentences, so they are kept in memory: %s", problem)
        return None
