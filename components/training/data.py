"""What a model is trained on: rows of texts, with or without labels, and a held-out part that shares no text with the rest.

Kinds of rows, and the columns of each:
- sentences: sentence
- pairs: anchor (a query), positive (its correct answer)
- triplets: anchor, positive, negative (a wrong answer), and perhaps further wrong answers: negative_2 and so on
- scored: sentence1, sentence2, and a score as label
- labelled: sentence1, sentence2, and a class as label

The columns of a file are recognised by their names, and by their values where the names say nothing
(components.retrieval.corpora.rows). Nothing is dropped silently: rows that cannot be used are counted by reason, those with
"no gold label" among them (-1 in SNLI, where annotators did not agree), and those that a file calls test; rows that it calls
dev are held out.

Rows with a text that Diagnose's demo measures with are dropped too, and counted: what a model has learned by heart says
nothing about how well it searches.

What it cannot know: whether two rows mean the same in other words. Two texts are the same if their words are, whatever
their case, spaces and punctuation.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from components.arrays import Float32, Int64, read_only
from components.errors import InputError
from components.folders import ASSETS
from components.jobs import IsStopped
from components.retrieval.corpora.readers.encoding import clean
from components.retrieval.corpora.readers.limits import BROWSER_LIMITS, Count, Limits, browser_limits, never
from components.retrieval.corpora.readers.separated_rows import AS_FOUND, DialectChoice
from components.retrieval.corpora.readers.table import BadRows, Table
from components.retrieval.corpora.rows.parts import LEAST_HELD_OUT, TO_TRAIN
from components.retrieval.corpora.rows.read import Rows, TextRow, bad_of, reasons_in_brackets, rows_of, table_of
from components.retrieval.corpora.rows.reading import RowUse
from components.retrieval.corpora.rows.roles import DataKind, Recognised, plain_name
from components.retrieval.corpora.rows.same import normalised as normalised
from components.retrieval.corpora.rows.scores import read_scores
from components.retrieval.corpora.texts import hash_of
from components.sizes import in_words

DEMO: Mapping[str, Path] = {
    "demo:pairs": ASSETS / "training" / "pairs.jsonl",
    "demo:scored": ASSETS / "training" / "scored.jsonl",
    "demo:nli": ASSETS / "training" / "nli.jsonl",
    "demo:not": ASSETS / "training" / "not.jsonl",
}
DEMO_SCORED = ASSETS / "sts_pairs.jsonl"
COLLECTIONS = (ASSETS / "collections" / "questions.jsonl", ASSETS / "collections" / "paraphrases.jsonl")
MEASURED_WITH = (ASSETS / "demo_corpus.jsonl", DEMO_SCORED, *COLLECTIONS)  # by Diagnose's demo: never trained on
_MEASURED_COLUMNS = ("sentence", "compressed", "sentence1", "sentence2", "question", "passage", "paraphrase")

LEAST_ROWS = 4  # two to learn from and two to test
MOST_HELD_OUT = 2_000  # rows; more make each evaluation slow and its figure hardly more certain
MUCH_LONGER = 1.5  # times that queries are longer than their answers, for a warning
REPEATED, SAME = "repeated", "both texts are the same"
MEASURED = "a text that Diagnose's demo measures with"

_NLI_NAMES = ("entailment", "neutral", "contradiction")  # SNLI's and MultiNLI's 0, 1, 2


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Rows of one kind. columns[name][i] and labels[i] belong to row i."""

    kind: DataKind
    name: str
    columns: Mapping[str, tuple[str, ...]]  # those of COLUMNS[kind], in that order, and further wrong answers
    labels: Float32 | Int64 | None = None  # float32 [row] scores from 0 to 1, or int64 [row] numbers of classes
    label_names: tuple[str, ...] = ()  # of the classes
    dropped: Mapping[str, int] = field(default_factory=dict)  # rows that could not be used: reason to number
    read_from: Mapping[str, str] = field(default_factory=dict)  # our column, or "label", to the file's
    warnings: tuple[str, ...] = ()  # what looks wrong but may be meant, each a sentence
    score_range: tuple[float, float] = (0.0, 1.0)  # of the file's scores, which `labels` has as 0 and 1
    held_out: tuple[int, ...] = ()  # rows that the file calls dev, which `split` holds out
    reading: RowUse | None = None  # what became of every row of the file; a run does not keep it

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @cached_property
    def sha256(self) -> str:
        """Of kind, texts and labels, with their number and order."""
        digest = hashlib.sha256(f"{self.kind} {','.join(self.columns)} {','.join(self.label_names)}".encode())
        for texts in self.columns.values():
            digest.update(hash_of(texts).encode())
        if self.labels is not None:
            digest.update(np.ascontiguousarray(self.labels).tobytes())
        if self.held_out:
            digest.update(f"held out {self.held_out}".encode())
        return digest.hexdigest()

    @property
    def scores_in_words(self) -> str:
        """Which scores the file has, and on which scale they are taken to be, which it does not say; of scored rows."""
        assert self.labels is not None
        low, high = self.score_range
        least, most = (low + (high - low) * float(value) for value in (self.labels.min(), self.labels.max()))
        return (
            f"Scores from {least:.4g} to {most:.4g}, taken to be on a scale from {low:g} to {high:g}: "
            "the model learns them as 0 to 1."
        )

    def take(self, rows: Int64 | Sequence[int]) -> TrainingData:
        """These rows, in this order."""
        numbers = np.asarray(rows, np.int64)
        columns = {name: tuple(texts[number] for number in numbers) for name, texts in self.columns.items()}
        labels = None if self.labels is None else read_only(self.labels[numbers])
        return replace(self, columns=columns, labels=labels, held_out=())


@dataclass(frozen=True, eq=False)
class Split:
    """Which rows are trained on, and which are held out. No text is in both."""

    train: Int64  # numbers of rows, read-only
    held_out: Int64
    groups: int  # sets of rows that share texts, directly or through others: each is on one side as a whole
    overlap: int = 0  # texts that are on both sides, counted after the split


class CountsTokens(Protocol):
    """What knows how many tokens a text has, such as components.model.tokenization.Tokenization."""

    @property
    def frame_length(self) -> int:
        """Special tokens of one text."""
        ...

    @property
    def pair_frame_length(self) -> int:
        """Special tokens of two texts that are read together."""
        ...

    def lengths(self, texts: Sequence[str], is_stopped: IsStopped) -> list[int]:
        """Tokens of each text before truncation, special tokens included."""
        ...


@dataclass(frozen=True)
class TrainingLimits(Limits):
    """The largest data that is trained on; all of it is kept in memory."""

    command: str = "train {name} --out DIR"

    def exceeded(self, name: str, size: str) -> InputError:
        return InputError(
            f"{name} has {size}.",
            f"At most {self.sentences:,} rows and {in_words(self.bytes, binary=True)} can be used.",
            f"Use a part of it. {self.remedy(name)}",
        )


def load(
    source: str | Path | bytes | Sequence[Path],
    name: str | None = None,
    chosen: Mapping[str, str] | None = None,
    limits: Limits | None = BROWSER_LIMITS,
    is_stopped: IsStopped = never,
    part: str | None = None,
    dialect: DialectChoice = AS_FOUND,
    encoding: str | None = None,
) -> TrainingData:
    """The rows of a demo ("demo:pairs", "demo:scored", "demo:nli", "demo:not"), of a file, or of the parts of a data set.

    `name` is needed for bytes, where its ending gives the format. `chosen` names the file's columns by ours ("anchor",
    "positive", ..., "label") where a person knows better. `part` is train, dev, test or all, of a file that says to
    which of them each row belongs; without it the training rows are used, and never those that it calls test.
    `dialect` is what a person chose of how separated text is written, and `encoding` the file's, which is detected
    without it. With BROWSER_LIMITS the operator's limits apply. Raises InputError for a file that cannot be read or trained on,
    and Stopped.
    """
    if isinstance(source, str) and source.startswith("demo:"):
        if source not in DEMO:
            raise InputError(
                f"There is no included data {source[:80]!r}.",
                f"There is {', '.join(DEMO)}.",
                "Choose one of them, or a file.",
            )
        return load(DEMO[source], source, chosen, None, is_stopped, part, dialect, encoding)
    if limits is BROWSER_LIMITS:
        operator = browser_limits()
        limits = TrainingLimits(operator.sentences, operator.bytes)
    if isinstance(source, str):
        source = Path(source)
    parts: Sequence[Path | bytes] = [source] if isinstance(source, Path | bytes) else source
    if name is None:
        if not isinstance(parts[0], Path):
            raise ValueError("bytes need a name")
        name = parts[0].name
    count = Count(name, limits, is_stopped)
    table = table_of(parts, name, limits, count, dialect, encoding)
    rows = rows_of(table, name, chosen=chosen, part=part, preferred=TO_TRAIN, holds_out=True)
    return _usable(rows, name)


def from_columns(
    columns: Mapping[str, Sequence[Any]],
    name: str,
    chosen: Mapping[str, str] | None = None,
    dropped: Mapping[str, int] | None = None,
    check_bytes: bool = False,
    part: str | None = None,
) -> TrainingData:
    """The usable rows of a table. `dropped` counts those that could not be read before.

    Raises InputError where the columns are not recognised, and where too few rows, or rows with one label only, are left.
    """
    count = max(map(len, columns.values()), default=0)
    table = Table(dict(columns), range(1, count + 1), bad_of(dropped or {}), has_broken_bytes=check_bytes)
    return _usable(rows_of(table, name, chosen=chosen, part=part, preferred=TO_TRAIN, holds_out=True), name)


def _usable(rows: Rows, name: str) -> TrainingData:
    """The rows from which something can be learned: different ones, without the texts that the demo measures with."""
    name = clean(name).text  # a file's name may be invalid Unicode, which cannot be saved with a run
    recognised, numbers = rows.recognised, rows.table.numbers
    measured = _measured_texts()
    bad, joined = BadRows(), 0
    kept: dict[tuple[object, ...], TextRow] = {}  # by texts and label
    for row in rows.rows:
        plain = [normalised(text) for text in row.texts]
        key = (*row.texts, row.label)
        if not measured.isdisjoint(plain):
            bad.add(numbers[row.source], MEASURED)
        elif recognised.kind in {"pairs", "triplets"} and plain[0] == plain[1]:
            bad.add(numbers[row.source], SAME)
        elif key in kept:
            joined += 1
        else:
            kept[key] = row
    used = list(kept.values())
    reading = rows.reading(used, bad, joined)
    dropped = {**reading.reasons, **({REPEATED: joined} if joined else {})}
    if not used:
        raise _empty(name, dropped, reading.values)
    data = TrainingData(
        recognised.kind,
        name,
        dict(zip(rows.names, zip(*(row.texts for row in used), strict=True), strict=True)),
        dropped=dropped,
        read_from=recognised.columns,
        held_out=_held_out(used, reading),
        reading=reading,
    )
    if recognised.kind == "scored":
        scores, score_range = _scaled([float(row.label or 0) for row in used], name)
        data = replace(data, labels=scores, score_range=score_range)
    elif recognised.kind == "labelled":
        classes, names = _classes([str(row.label) for row in used], recognised)
        data = replace(data, labels=classes, label_names=names)
    data = replace(data, warnings=_warnings(data))
    check_rows(data)
    return data


def check_rows(data: TrainingData) -> None:
    """Raise InputError unless there are enough rows, and more than one label if there are labels."""
    if len(data) < LEAST_ROWS:
        raise InputError(
            f"{data.name} has {len(data)} usable {'row' if len(data) == 1 else 'rows'}"
            f"{reasons_in_brackets(data.dropped, _values(data))}.",
            f"At least {LEAST_ROWS} different rows are needed, since some of them are held out for evaluation.",
            "Add rows, or choose another file.",
        )
    if data.labels is not None and np.all(data.labels == data.labels[0]):
        lowest, highest = data.score_range
        shown = data.label_names[0] if data.label_names else f"{lowest + (highest - lowest) * float(data.labels[0]):g}"
        raise InputError(
            f"All {len(data):,} usable rows of {data.name} have the label {shown[:80]!r}.",
            "At least two different labels are needed, since nothing can be learnt from one.",
            "Add rows with another label, or choose an objective without labels and remove the column.",
        )


def group_numbers(data: TrainingData) -> Int64:
    """A number for each row, int64 [row]: rows with the same number share texts, directly or through other rows."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    numbers: dict[str, int] = {}
    texts = [numbers.setdefault(normalised(text), len(numbers)) for column in data.columns.values() for text in column]
    count = len(data)
    rows = np.tile(np.arange(count), len(data.columns))
    size = count + len(numbers)
    edges = coo_matrix((np.ones(len(texts), np.int8), (rows, count + np.array(texts))), shape=(size, size))
    _, labels = connected_components(edges, directed=False)
    return np.asarray(np.unique(labels[:count], return_inverse=True)[1], np.int64)


def split(data: TrainingData, held_out_share: float = 0.2, seed: int = 0, max_train: int | None = None) -> Split:
    """Rows to train on and rows to hold out, so that no text is in both (compared as in `normalised`).

    Whole groups of rows that share texts are held out, in an order given by the seed, until their share is reached or
    MOST_HELD_OUT rows. Of a file that calls some rows dev these are held out, if two or more share no text with the others;
    those that do are not used. With `max_train`, so many of the others are trained on, and the rest is not used. Raises
    InputError as `check_rows` does, and where shared texts connect all rows.
    """
    check_rows(data)
    numbers = group_numbers(data)
    sizes = np.bincount(numbers)
    if len(sizes) < 2:
        raise InputError(
            f"All {len(data):,} rows of {data.name} share texts with each other, directly or through other rows.",
            "Some rows must be held out whose texts are not trained on.",
            "Add rows with other texts, or remove the text that connects them all.",
        )
    random = np.random.default_rng(seed)
    is_dev = np.zeros(len(data), bool)
    is_dev[list(data.held_out)] = True
    apart = np.flatnonzero(is_dev & ~np.isin(numbers, numbers[~is_dev]))
    if len(apart) >= LEAST_HELD_OUT:
        return _split(data, np.flatnonzero(~is_dev), apart[:MOST_HELD_OUT], len(sizes), random, max_train)
    most = min(max(1, round(held_out_share * len(data))), MOST_HELD_OUT)
    is_held_out = np.zeros(len(sizes), bool)
    count = 0
    for group in random.permutation(len(sizes)):
        if count + sizes[group] <= most:
            is_held_out[group] = True
            count += sizes[group]
    if count == 0:  # every group is larger than the part to hold out
        is_held_out[np.argmin(sizes)] = True
    held_out = np.flatnonzero(is_held_out[numbers])
    return _split(data, np.flatnonzero(~is_held_out[numbers]), held_out, len(sizes), random, max_train)


def _split(
    data: TrainingData, train: Int64, held_out: Int64, groups: int, random: np.random.Generator, max_train: int | None
) -> Split:
    if max_train is not None and len(train) > max_train:
        train = np.sort(random.permutation(train)[:max_train])
    both = _texts_of(data, train) & _texts_of(data, held_out)
    return Split(read_only(train), read_only(held_out), groups, len(both))


def token_lengths(data: TrainingData, tokenization: CountsTokens, is_stopped: IsStopped = never) -> dict[str, Int64]:
    """Tokens of each text before truncation, special tokens included: column to int64 [row].

    Raises what the tokenizer raises: InputError for a text that it cannot read, and Stopped.
    """
    return {name: np.array(tokenization.lengths(texts, is_stopped), np.int64) for name, texts in data.columns.items()}


def joint_lengths(lengths: Mapping[str, Int64], tokenization: CountsTokens) -> dict[tuple[str, str], Int64]:
    """Tokens of two texts that a cross-encoder reads together, before truncation, special tokens included.

    `lengths` is what `token_lengths` gives. The first text of each row with each of the others, int64 [row] by both columns;
    empty for sentences, which have no other.
    """
    first, *others = lengths
    special = tokenization.pair_frame_length - 2 * tokenization.frame_length  # in place of those of two single texts
    return {(first, other): lengths[first] + lengths[other] + special for other in others}


@cache
def _measured_texts() -> frozenset[str]:
    """The texts of Diagnose's demo, normalised."""
    rows = [json.loads(line) for path in MEASURED_WITH for line in path.read_text(encoding="utf-8").splitlines()]
    return frozenset(normalised(row[name]) for row in rows for name in _MEASURED_COLUMNS if name in row)


def _texts_of(data: TrainingData, rows: Iterable[int]) -> set[str]:
    numbers = list(rows)
    return {normalised(texts[number]) for texts in data.columns.values() for number in numbers}


def _scaled(values: Sequence[float], name: str) -> tuple[Float32, tuple[float, float]]:
    """Scores from 0 to 1, float32 [row], and the scale that the file has.

    A file does not say its scale, so it is the narrowest of 0..1, 0..5, 0..10 and 0..100 (or -1..1, of cosines) that holds
    all scores. Raises InputError for other negative scores, and for larger ones.
    """
    scores = np.array(values)
    lowest, highest = float(scores.min()), float(scores.max())
    for least, most in ((0.0, 1.0), (-1.0, 1.0), (0.0, 5.0), (0.0, 10.0), (0.0, 100.0)):
        if least <= lowest and highest <= most:
            return read_only(((scores - least) / (most - least)).astype(np.float32)), (least, most)
    raise InputError(
        f"{name} has scores from {lowest:g} to {highest:g}.",
        "Scores must be from 0 to 1, 5, 10 or 100, or from -1 to 1.",
        "Scale the scores, or name a column of classes label.",
    )


def _classes(texts: Sequence[str], recognised: Recognised) -> tuple[Int64, tuple[str, ...]]:
    """The number of each row's class, int64 [row], and the names of the classes."""
    labels = set(texts)
    if labels <= set(_NLI_NAMES):
        names = tuple(label for label in _NLI_NAMES if label in labels)
    else:
        value_of = dict(zip(texts, read_scores(texts).values, strict=True))
        value_of |= {text: -1.0 for text in labels if text == "-1"}
        names = tuple(sorted(labels, key=lambda text: (value_of[text] is None, value_of[text] or 0.0, text)))
    numbers = {label: number for number, label in enumerate(names)}
    is_nli = {plain_name(column) for column in recognised.texts.values()} == {"premise", "hypothesis"}
    if is_nli and labels == {"0", "1", "2"}:
        names = _NLI_NAMES
    return read_only(np.array([numbers[text] for text in texts], np.int64)), names


def _warnings(data: TrainingData) -> tuple[str, ...]:
    """What looks wrong in these rows, a sentence each."""
    warnings = []
    if data.kind in {"pairs", "triplets"}:
        query, answer = (float(np.mean([len(text) for text in data.columns[side]])) for side in ("anchor", "positive"))
        if query > MUCH_LONGER * answer:
            warnings.append(
                f"The queries (column {data.read_from['anchor']}) have {query:.0f} characters on average, and their correct "
                f"answers (column {data.read_from['positive']}) {answer:.0f}: check whether the two columns are swapped."
            )
    part = None if data.reading is None else data.reading.part
    of_other_parts = (
        set() if part is None else part.refusals
    )  # whoever wrote the file meant these rows for something else
    dropped = {reason: count for reason, count in data.dropped.items() if reason not in of_other_parts}
    total = len(data) + sum(dropped.values())
    if 10 * len(data) < 9 * total:
        lost = reasons_in_brackets(dropped, _values(data))
        warnings.append(f"Only {len(data):,} of {total:,} rows can be used{lost}.")
    return tuple(warnings)


def _held_out(rows: Sequence[TextRow], reading: RowUse) -> tuple[int, ...]:
    """The rows of the part that is held out."""
    part = None if reading.part is None else reading.part.held_out
    return () if part is None else tuple(place for place, row in enumerate(rows) if row.part == part)


def _values(data: TrainingData) -> tuple[str, ...]:
    return () if data.reading is None else data.reading.values


def _empty(name: str, dropped: Mapping[str, int], values: Sequence[str] = ()) -> InputError:
    return InputError(
        f"{name} has no row to train on{reasons_in_brackets(dropped, values) or ': it is empty'}.",
        "Training needs rows of texts.",
        "Check the file and its columns.",
    )
