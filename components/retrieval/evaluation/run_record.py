"""A run as a record: its way of ranking, its data, and the ranks of each query's correct answers; saved as JSON.

Where queries have several correct answers, the file has the ranks of all of them, query after query and best first, and
their number for each query ("answers"). A rank is null where a word ranking did not find the answer.

All measures, the curves, and the comparison query by query follow from the ranks, so that runs from other machines or
times can be compared with today's. Two runs are paired only if their data have the same hash: the same queries and
documents in the same order.

A file is parsed as JSON and every value is checked; nothing in it is evaluated. What its JSON would take in memory is limited
before it is parsed: `[],` is three characters, and 64 bytes once it is a list.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from components.arrays import Int64, read_only
from components.errors import InputError
from components.retrieval.corpora.texts import clean_text
from components.retrieval.evaluation import metrics
from components.retrieval.evaluation.graded.ranks import RelevantRanks
from components.retrieval.evaluation.metrics import Ranks
from components.retrieval.evaluation.ranks import NOT_FOUND
from components.retrieval.rankings.ranking import Ranking
from components.sizes import in_words

KIND, FORMAT = "BERT Internals runs", 2
EARLIER = 1  # it had one rank for each query, also for answers that were not found
MOST_RUNS, MOST_RANKS = 200, 1_000_000
MOST_BYTES = 8 << 20  # with MOST_RANKS, 200 runs of 5,000 queries or 27 of 36,000: such a rank takes 6 bytes
_MOST_BRACKETS = 50 * MOST_RUNS  # a run has 6, and those in its names
_MOST_COMMAS = 500 * MOST_RUNS  # beside those between ranks: a run has up to 150, and those in its names
_LONGEST = 300  # characters of a name
_MOST_WHOLE = 2**53  # whole numbers up to this are exact as float too


@dataclass(frozen=True)
class RunData:
    """The data of a run."""

    name: str
    documents: int
    queries: int
    content_hash: str


@dataclass(frozen=True, eq=False)
class Run(Ranking):
    """One way of ranking on one set of pairs: the ranks of its correct answers."""

    system: Mapping[str, str | int | float]  # kind, model, revision, layer, pooling ...
    data: RunData
    settings: Mapping[str, str | int | float]  # precision, max_length, similarity, seed ...
    versions: Mapping[str, str]
    _: KW_ONLY
    made: str = ""  # when, in UTC

    @property
    def key(self) -> str:
        """16 hexadecimal digits, equal for runs with equal ranking, settings, data and ranks."""
        text = json.dumps([dict(self.system), dict(self.settings), self.data.content_hash], sort_keys=True)
        own = _flat_ranks(self.ranks)
        return hashlib.sha256(text.encode() + b"".join(np.asarray(part, "<i8").tobytes() for part in own)).hexdigest()[
            :16
        ]


def now() -> str:
    """The time, as runs record it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_runs(runs: Sequence[Run]) -> bytes:
    """The runs as JSON, UTF-8; it includes their measures for use without this program."""
    content = {
        "kind": KIND,
        "format": FORMAT,
        "runs": [
            {
                "name": run.name,
                "made": run.made,
                "system": dict(run.system),
                "data": vars(run.data),
                "settings": dict(run.settings),
                "versions": dict(run.versions),
                "milliseconds": run.milliseconds,
                "index_bytes": run.index_bytes,
                "measures": metrics.summary(run.ranks),
                **_written(run.ranks),
            }
            for run in runs
        ],
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def _flat_ranks(ranks: Ranks) -> tuple[Int64, ...]:
    """The ranks one after the other, and with several answers of a query the number of each query's."""
    return (ranks.ranks, np.diff(ranks.starts)) if isinstance(ranks, RelevantRanks) else (ranks,)


def _written(ranks: Ranks) -> dict[str, list[int | None]]:
    flat, *counts = _flat_ranks(ranks)
    found = [None if rank == NOT_FOUND else rank for rank in flat.tolist()]
    return {"ranks": found, **({"answers": counts[0].tolist()} if counts else {})}


def read_runs(content: bytes, name: str) -> tuple[Run, ...]:
    """The runs of a file. Raises InputError with the reason for a file that cannot be used."""
    if len(content) > MOST_BYTES:
        raise _refused(
            name, f"has {in_words(len(content), binary=True)}; at most {in_words(MOST_BYTES, binary=True)} are read"
        )
    if content.count(b"[") + content.count(b"{") > _MOST_BRACKETS or content.count(b",") > MOST_RANKS + _MOST_COMMAS:
        raise _refused(name, f"has more values than {MOST_RUNS} runs with {MOST_RANKS:,} ranks")
    try:
        parsed = json.loads(content.decode("utf-8-sig"), parse_constant=_no_number)
        if not isinstance(parsed, dict) or parsed.get("kind") != KIND:
            raise _refused(name, "is not a file of runs")
        if parsed.get("format") not in (EARLIER, FORMAT):
            reads = f"this program reads the formats {EARLIER} and {FORMAT}"
            raise _refused(name, f"has format {str(parsed.get('format'))[:20]}; {reads}")
        rows = parsed["runs"]
        if not isinstance(rows, list) or not 0 < len(rows) <= MOST_RUNS:
            raise _refused(name, f"does not have between 1 and {MOST_RUNS} runs")
        if sum(len(row["ranks"]) + len(row.get("answers", ())) for row in rows) > MOST_RANKS:
            raise _refused(name, f"has more than {MOST_RANKS:,} ranks")
        return tuple(_run(row) for row in rows)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as problem:
        raise _refused(name, f"is damaged ({_reason(problem)})") from problem


def _run(row: Mapping[str, Any]) -> Run:
    data = RunData(
        _text(row["data"]["name"]),
        _whole(row["data"]["documents"]),
        _whole(row["data"]["queries"]),
        _text(row["data"]["content_hash"])[:64],
    )
    ranks = _read_ranks(row, data)
    milliseconds, size = row.get("milliseconds"), row.get("index_bytes")
    return Run(
        name=_text(row["name"]),
        system=_flat(row["system"]),
        data=data,
        settings=_flat(row["settings"]),
        versions={key: str(value) for key, value in _flat(row["versions"]).items()},
        ranks=ranks,
        milliseconds=None if milliseconds is None else _time(milliseconds),
        index_bytes=None if size is None else _whole(size),
        made=_text(row["made"])[:40],
    )


def _read_ranks(row: Mapping[str, Any], data: RunData) -> Ranks:
    ranks = np.array([NOT_FOUND if rank is None else _whole(rank) for rank in row["ranks"]], np.int64)
    found = ranks[ranks != NOT_FOUND]
    if len(found) and not 1 <= found.min() <= found.max() <= data.documents:
        raise ValueError(f"ranks outside 1 to {data.documents}")
    if "answers" not in row:
        if len(ranks) != data.queries or not len(ranks):
            raise ValueError(f"{len(ranks)} ranks of {data.queries} queries")
        return read_only(ranks)
    counts = np.array([_whole(count) for count in row["answers"]], np.int64)
    if len(counts) != data.queries or not len(counts) or counts.min() < 1 or counts.sum() != len(ranks):
        raise ValueError(f"{len(ranks)} ranks and {len(counts)} numbers of answers of {data.queries} queries")
    starts = np.concatenate([[0], counts.cumsum()])
    if (np.delete(np.diff(ranks), starts[1:-1] - 1) < 0).any():
        raise ValueError("the ranks of a query's answers do not rise")
    return RelevantRanks(read_only(ranks), read_only(np.ones(len(ranks), np.int64)), read_only(starts))


def _text(value: object) -> str:
    """Limited to 300 characters, without invalid characters, which could not be shown or saved."""
    return clean_text(str(value)[:_LONGEST])


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST_WHOLE:
        raise ValueError(f"{str(value)[:20]!r} is not a whole number, or too large")
    return value


def _time(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MOST_WHOLE:
        raise ValueError(f"{str(value)[:20]!r} is not a time")
    return float(value)


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number")


def _flat(values: Mapping[str, Any]) -> dict[str, str | int | float]:
    """Names with texts and numbers; nested values are refused."""
    if len(values) > 50:
        raise ValueError("more than 50 entries")
    pairs: dict[str, str | int | float] = {}
    for key, value in values.items():
        if not isinstance(value, str | int | float):
            raise TypeError(f"{key[:20]} is neither text nor number")
        if not isinstance(value, str) and not math.isfinite(value):
            raise ValueError(f"{key[:20]} is not a finite number")
        pairs[_text(key)] = _text(value) if isinstance(value, str) else value
    return pairs


def _reason(problem: Exception) -> str:
    if isinstance(problem, json.JSONDecodeError):
        return "it is not valid JSON"
    return (
        f"{problem} is missing" if isinstance(problem, KeyError) else f"{type(problem).__name__}: {str(problem)[:80]}"
    )


def _refused(name: str, reason: str) -> InputError:
    return InputError(
        f"{name} {reason}.",
        "Only files of runs saved by this dashboard can be loaded.",
        "Choose another file.",
    )
