"""What a model is trained on: rows of texts, with or without labels, and a held-out part that shares no text with the rest.

Kinds of rows, and the columns of each:
- sentences: sentence
- pairs: anchor (a query), positive (its correct answer)
- triplets: anchor, positive, negative (a wrong answer)
- scored: sentence1, sentence2, and a score as label
- labelled: sentence1, sentence2, and a class as label

The columns of a file are recognised by their names, and by their values where the names say nothing. Nothing is dropped
silently: rows that cannot be used are counted by reason, those with "no gold label" among them (-1 in SNLI, where
annotators did not agree).

Rows with a text that Evaluate's demo measures with are dropped too, and counted: what a model has learned by heart says
nothing about how well it searches.

What it cannot know: whether two rows mean the same in other words. Two texts are the same if their words are, whatever
their case, spaces and punctuation.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np

from components.arrays import Float32, Int64, read_only
from components.errors import InputError
from components.folders import ASSETS
from components.jobs import IsCancelled
from components.retrieval.corpora.columns import ColumnPreview, preview_columns
from components.retrieval.corpora.corpus import BROKEN_BYTES, read_parts
from components.retrieval.corpora.readers.encoding import clean, has_broken_bytes
from components.retrieval.corpora.readers.limits import BROWSER_LIMITS, Count, Limits, browser_limits, never
from components.retrieval.corpora.texts import hash_of
from components.sizes import in_words
from components.words.unicode_words import words_and_signs

DataKind = Literal["sentences", "pairs", "triplets", "scored", "labelled"]
KINDS: tuple[DataKind, ...] = get_args(DataKind)
COLUMNS: Mapping[DataKind, tuple[str, ...]] = {
    "sentences": ("sentence",),
    "pairs": ("anchor", "positive"),
    "triplets": ("anchor", "positive", "negative"),
    "scored": ("sentence1", "sentence2"),
    "labelled": ("sentence1", "sentence2"),
}
LABEL = "label"  # the column of scores or classes
DEMO: Mapping[str, Path] = {
    "demo:pairs": ASSETS / "training" / "pairs.jsonl",
    "demo:scored": ASSETS / "training" / "scored.jsonl",
    "demo:nli": ASSETS / "training" / "nli.jsonl",
    "demo:not": ASSETS / "training" / "not.jsonl",
}
DEMO_SCORED = ASSETS / "sts_pairs.jsonl"
COLLECTIONS = (ASSETS / "collections" / "questions.jsonl", ASSETS / "collections" / "paraphrases.jsonl")
MEASURED_WITH = (ASSETS / "demo_corpus.jsonl", DEMO_SCORED, *COLLECTIONS)  # by Evaluate's demo: never trained on
_MEASURED_COLUMNS = ("sentence", "compressed", "sentence1", "sentence2", "question", "passage", "paraphrase")

LEAST_ROWS = 4  # two to learn from and two to test
MOST_CLASSES = 100
MOST_HELD_OUT = 2_000  # rows; more make each evaluation slow and its figure hardly more certain
MUCH_LONGER = 1.5  # times that queries are longer than their answers, for a warning
NO_GOLD_LABEL, NO_NUMBER, REPEATED = "no gold label", "the score is not a number", "repeated"
MEASURED = "a text that Evaluate's demo measures with"

# Names of columns without case, spaces and punctuation. Of two texts the first named is the query or the premise.
_TRIPLET_NAMES = (("anchor", "positive", "negative"), ("query", "positive", "negative"), ("query", "pos", "neg"))
_PAIR_NAMES = (
    ("sentence1", "sentence2"),
    ("sentencea", "sentenceb"),
    ("text1", "text2"),
    ("texta", "textb"),
    ("question1", "question2"),
    ("premise", "hypothesis"),
    ("anchor", "positive"),
    ("query", "positive"),
    ("query", "document"),
    ("query", "passage"),
    ("query", "text"),
    ("query", "answer"),
    ("query", "response"),
    ("question", "answer"),
    ("question", "context"),
    ("question", "passage"),
    ("compressed", "sentence"),
    ("compressed", "set"),
    ("headline", "sentence"),
    ("title", "text"),
    ("title", "body"),
    ("title", "abstract"),
    ("summary", "text"),
    ("summary", "document"),
)
_LABEL_NAMES = {"label", "labels", "goldlabel", "class", "isduplicate", "duplicate", "entailment", "relevant"}
_SCORE_NAMES = {"score", "scores", "similarity", "similarityscore", "relatedness", "relatednessscore", "rating"}
_NLI_NAMES = ("entailment", "neutral", "contradiction")  # SNLI's and MultiNLI's 0, 1, 2
_NO_LABELS = {"-1", "-1.0", "-", "", "nan", "none", "null"}


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Rows of one kind. columns[name][i] and labels[i] belong to row i."""

    kind: DataKind
    name: str
    columns: Mapping[str, tuple[str, ...]]  # those of COLUMNS[kind], in that order
    labels: Float32 | Int64 | None = None  # float32 [row] scores from 0 to 1, or int64 [row] numbers of classes
    label_names: tuple[str, ...] = ()  # of the classes
    dropped: Mapping[str, int] = field(default_factory=dict)  # rows that could not be used: reason to number
    read_from: Mapping[str, str] = field(default_factory=dict)  # our column, or "label", to the file's
    warnings: tuple[str, ...] = ()  # what looks wrong but may be meant, each a sentence
    score_range: tuple[float, float] = (0.0, 1.0)  # of the file's scores, which `labels` has as 0 and 1

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
        return digest.hexdigest()

    def take(self, rows: Int64 | Sequence[int]) -> TrainingData:
        """These rows, in this order."""
        numbers = np.asarray(rows, np.int64)
        columns = {name: tuple(texts[number] for number in numbers) for name, texts in self.columns.items()}
        labels = None if self.labels is None else read_only(self.labels[numbers])
        return replace(self, columns=columns, labels=labels)


@dataclass(frozen=True)
class Recognised:
    """Which columns of a file are what."""

    kind: DataKind
    texts: Mapping[str, str]  # our column to the file's
    label: str | None = None  # the file's column of scores or classes


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

    def lengths(self, texts: Sequence[str], is_cancelled: IsCancelled) -> list[int]:
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


class UnclearColumns(InputError):
    """It is not clear which columns of a table hold the texts: a person has to say it."""

    def __init__(self, name: str, columns: tuple[ColumnPreview, ...]) -> None:
        super().__init__(
            f"{name} has {len(columns)} columns, and it is not clear which hold the texts: "
            f"{', '.join(column.name for column in columns)[:500]}.",
            "It needs one column of sentences; or columns such as sentence1, sentence2 and score; premise, hypothesis and "
            "label; query and positive; anchor, positive and negative.",
            "Rename the columns, or choose them.",
        )
        self.columns = columns


def load(
    source: str | Path | bytes | Sequence[Path],
    name: str | None = None,
    chosen: Mapping[str, str] | None = None,
    limits: Limits | None = BROWSER_LIMITS,
    is_cancelled: IsCancelled = never,
) -> TrainingData:
    """The rows of a demo ("demo:pairs", "demo:scored", "demo:nli", "demo:not"), of a file, or of the parts of a data set.

    `name` is needed for bytes, where its ending gives the format. `chosen` names the file's columns by ours ("anchor",
    "positive", ..., "label") where a person knows better. With BROWSER_LIMITS the operator's limits apply. Raises
    InputError for a file that cannot be read or trained on, and Cancelled.
    """
    if isinstance(source, str) and source.startswith("demo:"):
        if source not in DEMO:
            raise InputError(
                f"There is no included data {source[:80]!r}.",
                f"There is {', '.join(DEMO)}.",
                "Choose one of them, or a file.",
            )
        return load(DEMO[source], source, chosen, None, is_cancelled)
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
    count = Count(name, limits, is_cancelled)
    table = read_parts(parts, name, None, limits, count)
    if limits is not None and len(table.numbers) > limits.sentences:
        raise limits.exceeded(name, f"{len(table.numbers):,} rows")
    return from_columns(table.columns, name, chosen, table.bad.reasons, table.has_broken_bytes)


def from_columns(
    columns: Mapping[str, Sequence[Any]],
    name: str,
    chosen: Mapping[str, str] | None = None,
    dropped: Mapping[str, int] | None = None,
    check_bytes: bool = False,
) -> TrainingData:
    """The usable rows of a table. `dropped` counts those that could not be read before.

    Raises InputError where the columns are not recognised, and where too few rows, or rows with one label only, are left.
    """
    name = clean(name).text  # a file's name may be invalid Unicode, which cannot be saved with a run
    reasons = Counter(dropped or {})
    columns = _unpacked(columns)
    if not columns or not any(len(values) for values in columns.values()):
        raise _empty(name, reasons)
    recognised = recognise(columns, name, chosen)
    texts = [columns[column] for column in recognised.texts.values()]
    labels = columns[recognised.label] if recognised.label is not None else [None] * len(texts[0])
    measured = _measured_texts()
    rows: dict[tuple[str, ...], None] = {}  # texts, and the label as text
    for *values, label in zip(*texts, labels, strict=True):
        row = _cleaned(values, check_bytes)
        if isinstance(row, str):
            reasons[row] += 1
            continue
        if recognised.label is not None:
            label_text = _label_text(label)
            if recognised.kind == "scored" and not _is_number(label_text):
                reasons[NO_NUMBER] += 1
                continue
            if recognised.kind == "labelled" and label_text.casefold() in _NO_LABELS:
                reasons[NO_GOLD_LABEL] += 1
                continue
            row = (*row, label_text)
        plain = [normalised(text) for text in row[: len(texts)]]
        if not measured.isdisjoint(plain):
            reasons[MEASURED] += 1
        elif recognised.kind in {"pairs", "triplets"} and plain[0] == plain[1]:
            reasons["both texts are the same"] += 1
        elif row in rows:
            reasons[REPEATED] += 1
        else:
            rows[row] = None
    if not rows:
        raise _empty(name, reasons)
    by_column = list(zip(*rows, strict=True))
    ours = COLUMNS[recognised.kind]
    data = TrainingData(
        recognised.kind,
        name,
        dict(zip(ours, by_column, strict=False)),
        dropped=dict(reasons),
        read_from={**recognised.texts, **({LABEL: recognised.label} if recognised.label is not None else {})},
    )
    if recognised.kind == "scored":
        scores, score_range = _scaled(by_column[-1], name)
        data = replace(data, labels=scores, score_range=score_range)
    elif recognised.kind == "labelled":
        numbers, names = _classes(by_column[-1], recognised)
        data = replace(data, labels=numbers, label_names=names)
    data = replace(data, warnings=_warnings(data))
    check_rows(data)
    return data


def check_rows(data: TrainingData) -> None:
    """Raise InputError unless there are enough rows, and more than one label if there are labels."""
    if len(data) < LEAST_ROWS:
        raise InputError(
            f"{data.name} has {len(data)} usable {'row' if len(data) == 1 else 'rows'}{_reasons(data.dropped)}.",
            f"At least {LEAST_ROWS} different rows are needed, since some of them are held out for evaluation.",
            "Add rows, or choose another file.",
        )
    if data.labels is not None and np.all(data.labels == data.labels[0]):
        lowest, highest = data.score_range
        shown = data.label_names[0] if data.label_names else f"{lowest + (highest - lowest) * float(data.labels[0]):g}"
        raise InputError(
            f"All {len(data):,} usable rows of {data.name} have the label {shown[:80]!r}.",
            "At least two different labels are needed, since nothing can be learned from one.",
            "Add rows with another label, or choose an objective without labels and remove the column.",
        )


def recognise(columns: Mapping[str, Sequence[Any]], name: str, chosen: Mapping[str, str] | None = None) -> Recognised:
    """Which columns hold the texts and the label, by their names and values.

    Raises UnclearColumns where these do not tell, and InputError for columns that cannot hold what they should.
    """
    if chosen:
        return _recognise_chosen(columns, name, chosen)
    plain = {_plain(column): column for column in reversed(list(columns))}  # of two similar names the first counts
    label = next((column for key, column in plain.items() if key in _LABEL_NAMES | _SCORE_NAMES), None)
    without_label = {key: column for key, column in plain.items() if column != label}
    for names in (*_TRIPLET_NAMES, *_PAIR_NAMES):
        if all(key in without_label for key in names):
            return _checked(columns, name, [without_label[key] for key in names], label)
    texts = [preview.name for preview in preview_columns(columns) if preview.is_text and preview.name != label]
    if 1 <= len(texts) <= 2:
        return _checked(columns, name, texts, label if len(texts) == 2 else None)
    raise UnclearColumns(name, preview_columns(columns))


def _recognise_chosen(columns: Mapping[str, Sequence[Any]], name: str, chosen: Mapping[str, str]) -> Recognised:
    missing = [column for column in chosen.values() if column not in columns]
    if missing:
        raise InputError(
            f"{name} has no column {missing[0][:80]!r}.",
            f"Its columns are: {', '.join(columns)[:500]}.",
            "Choose one of its columns.",
        )
    if len(set(chosen.values())) < len(chosen):
        raise InputError(
            "The same column is chosen twice.",
            "Each part needs a column of its own.",
            "Choose another column.",
        )
    texts = {ours: column for ours, column in chosen.items() if ours != LABEL}
    label = chosen.get(LABEL)
    if tuple(texts) not in COLUMNS.values():
        raise InputError(
            f"The columns {', '.join(texts)[:80]!r} are no kind of rows.",
            f"They must be, in this order: {'; or '.join(', '.join(names) for names in dict.fromkeys(COLUMNS.values()))}; and "
            f"{LABEL} may follow.",
            "Name the columns in one of these ways.",
        )
    return _checked(columns, name, list(texts.values()), label)


def _checked(columns: Mapping[str, Sequence[Any]], name: str, texts: list[str], label: str | None) -> Recognised:
    """The kind of these columns. Raises InputError where a column of texts has no texts, or the label no labels."""
    previews = {preview.name: preview for preview in preview_columns({column: columns[column] for column in texts})}
    for column in texts:
        if not previews[column].is_text:
            shown = ", ".join(repr(example[:40]) for example in previews[column].examples[:3])
            raise InputError(
                f"The column {column[:80]!r} of {name} holds no texts{f', but values such as {shown}' if shown else ''}.",
                "It must hold sentences.",
                "Check whether two columns are swapped or wrongly named.",
            )
    kind: DataKind = ("sentences", "pairs", "triplets")[len(texts) - 1]
    if label is None or kind != "pairs":
        return Recognised(kind, dict(zip(COLUMNS[kind], texts, strict=True)))
    values = {_label_text(value) for value in columns[label]} - {""}
    numbers = {float(value) for value in values if _is_number(value)}
    if _plain(label) in _SCORE_NAMES or any(not number.is_integer() for number in numbers):
        kind = "scored"
        if values and not numbers:
            raise InputError(
                f"The column {label[:80]!r} of {name} holds no numbers, but values such as {min(values)[:40]!r}.",
                "Each row needs a score, such as a number from 0 to 5.",
                "Check whether two columns are swapped, or name a column of classes label.",
            )
    else:
        kind = "labelled"
        if len(values) > MOST_CLASSES:
            raise InputError(
                f"The column {label[:80]!r} of {name} has {len(values):,} different values, such as {min(values)[:40]!r}.",
                f"It must hold classes, at most {MOST_CLASSES} different ones.",
                "Check whether two columns are swapped, or name a column of scores score.",
            )
    return Recognised(kind, dict(zip(COLUMNS[kind], texts, strict=True)), label)


def normalised(text: str) -> str:
    """The words of a text, folded, and signs such as €: texts are the same if this is equal. A text without both stays."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(words_and_signs(folded)) or folded.strip()


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
    MOST_HELD_OUT rows. With `max_train`, so many of the others are trained on, and the rest is not used. Raises InputError
    as `check_rows` does, and where shared texts connect all rows.
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
    train = np.flatnonzero(~is_held_out[numbers])
    if max_train is not None and len(train) > max_train:
        train = np.sort(random.permutation(train)[:max_train])
    both = _texts_of(data, train) & _texts_of(data, held_out)
    return Split(read_only(train), read_only(held_out), len(sizes), len(both))


def token_lengths(
    data: TrainingData, tokenization: CountsTokens, is_cancelled: IsCancelled = never
) -> dict[str, Int64]:
    """Tokens of each text before truncation, special tokens included: column to int64 [row].

    Raises what the tokenizer raises: InputError for a text that it cannot read, and Cancelled.
    """
    return {name: np.array(tokenization.lengths(texts, is_cancelled), np.int64) for name, texts in data.columns.items()}


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
    """The texts of Evaluate's demo, normalised."""
    rows = [json.loads(line) for path in MEASURED_WITH for line in path.read_text(encoding="utf-8").splitlines()]
    return frozenset(normalised(row[name]) for row in rows for name in _MEASURED_COLUMNS if name in row)


def _texts_of(data: TrainingData, rows: Iterable[int]) -> set[str]:
    numbers = list(rows)
    return {normalised(texts[number]) for texts in data.columns.values() for number in numbers}


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


def _unpacked(columns: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """The columns, where one of lists becomes two columns of texts.

    As in a corpus the first text of a list is the sentence, and the second is its short version, which is the query.
    """
    unpacked: dict[str, Sequence[Any]] = {}
    for name, values in columns.items():
        lists = [value for value in values if isinstance(value, list) and len(value) > 1]
        if not lists or 2 * len(lists) < sum(value is not None for value in values) or "compressed" in columns:
            unpacked[name] = values
            continue
        padded = [(*value, None, None)[:2] if isinstance(value, list) else (value, None) for value in values]
        unpacked["compressed"] = [second for _, second in padded]
        unpacked["sentence" if "sentence" not in columns else name] = [first for first, _ in padded]
    return unpacked


def _cleaned(values: Sequence[Any], check_bytes: bool) -> tuple[str, ...] | str:
    """The texts of a row, cleaned; or the reason why the row cannot be used."""
    for value in values:
        if value is None or value != value:  # NaN is not equal to itself
            return "no text"
        if isinstance(value, bytes) or (check_bytes and isinstance(value, str) and has_broken_bytes(value)):
            return BROKEN_BYTES
        if not isinstance(value, str):
            return "not text"
    texts = tuple(clean(value).text for value in values)
    return texts if all(texts) else "empty"


def _label_text(value: Any) -> str:
    """A label as text: "1" for 1, 1.0, "1" and True; "" where there is none."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    text = clean(str(value)).text
    return str(int(float(text))) if re.fullmatch(r"[+-]?\d{1,15}(\.0+)?", text) else text


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _scaled(texts: Sequence[str], name: str) -> tuple[Float32, tuple[float, float]]:
    """Scores from 0 to 1, float32 [row], and the scale that the file has.

    A file does not say its scale, so it is the narrowest of 0..1, 0..5, 0..10 and 0..100 (or -1..1, of cosines) that holds
    all scores. Raises InputError for other negative scores, and for larger ones.
    """
    scores = np.array([float(text) for text in texts])
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
        names = tuple(
            sorted(labels, key=lambda text: (not _is_number(text), float(text) if _is_number(text) else 0.0, text))
        )
    numbers = {label: number for number, label in enumerate(names)}
    is_nli = {_plain(column) for column in recognised.texts.values()} == {"premise", "hypothesis"}
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
    total = len(data) + sum(data.dropped.values())
    if 10 * len(data) < 9 * total:
        warnings.append(f"Only {len(data):,} of {total:,} rows can be used{_reasons(data.dropped)}.")
    return tuple(warnings)


def _reasons(dropped: Mapping[str, int]) -> str:
    """ " (3 rows: empty; ...)" or nothing."""
    reasons = "; ".join(f"{count:,} rows: {reason}" for reason, count in Counter(dropped).most_common(3))
    return f" ({reasons})" if reasons else ""


def _empty(name: str, dropped: Mapping[str, int]) -> InputError:
    return InputError(
        f"{name} has no row to train on{_reasons(dropped) or ': it is empty'}.",
        "Training needs rows of texts.",
        "Check the file and its columns.",
    )
