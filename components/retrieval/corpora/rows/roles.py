"""Which columns of a table hold the texts of a row, the wrong answers and the score.

In this order of precedence: what a person chose; names that formats in use have (see the tables below); and what the columns
look like, where one or two hold sentences. What was chosen, why, and which columns are left out is always said. Where another
choice is as plausible, it is a guess, which a person is asked to confirm.

Lists of right answers become a row each. Lists of wrong answers stay beside their right one.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, Literal, get_args

import numpy as np

from components.errors import InputError
from components.retrieval.corpora.column_names import ANSWERS, BODIES, QUESTIONS, TEXTS, TITLES, is_question, plain
from components.retrieval.corpora.columns import (
    TEXT_NAMES,
    ColumnPreview,
    are_roles,
    as_text,
    called,
    is_missing,
    preview_columns,
)
from components.retrieval.corpora.corpus import PAIR_COLUMN
from components.retrieval.corpora.readers.dialects import is_number
from components.retrieval.corpora.readers.table import SET_COLUMN
from components.retrieval.corpora.rows import passages
from components.retrieval.corpora.rows.scores import NO_NUMBER, UNKNOWN, is_judgement, read_scores, score_text

DataKind = Literal["sentences", "pairs", "triplets", "scored", "labelled"]
Wanted = Literal["any", "scored", "pairs"]  # what rows are read for: to train, to compare with scores, or to search
KINDS: tuple[DataKind, ...] = get_args(DataKind)
COLUMNS: Mapping[DataKind, tuple[str, ...]] = {
    "sentences": ("sentence",),
    "pairs": ("anchor", "positive"),
    "triplets": ("anchor", "positive", "negative"),
    "scored": ("sentence1", "sentence2"),
    "labelled": ("sentence1", "sentence2"),
}
LABEL = "label"  # the column of scores or classes
NEGATIVE = "negative"  # the first column of wrong answers; others are "negative_2" and so on
MOST_NEGATIVES = 7  # wrong answers of a row: with the right one 8, the usual group of such trainings
MOST_CLASSES = 100
AS_CHOSEN = "as chosen"
SENTENCE_WORDS = 2.5  # a column of so many words on average holds sentences
TRIPLE = 3  # a query, a right and a wrong passage
LEAST_IDS = 5  # running numbers; fewer may be scores in order
EXAMPLES, EXAMPLE_CHARACTERS = 2, 60  # of a column that is left out

# Names of columns without case, spaces and punctuation. Of two texts the first named is the query or the premise.
_FIRST = ("anchor", "query", "question", "querytext", "questiontext", "sent0")
_RIGHT = ("positive", "pos", "positives", "positivepassages", "positivectxs", "positivetext", "positiveanswer", "sent1")
_WRONG = (
    *(
        "negative",
        "neg",
        "negatives",
        "negs",
        "hardnegative",
        "hardnegatives",
        "hardneg",
        "hardnegs",
        "negativepassages",
    ),
    *(
        "hardnegativectxs",
        "negativectxs",
        "negativetext",
        "negativeanswer",
        "negativeanswers",
        "wronganswer",
        "wronganswers",
    ),
)
_WRONG_NUMBERED = re.compile(r"(?:hard)?neg(?:ative)?s?(\d+)")
_PAIRS_IN_USE = (
    ("sentence1", "sentence2"),
    ("sentencea", "sentenceb"),
    ("text1", "text2"),
    ("texta", "textb"),
    ("question1", "question2"),
    ("sent1", "sent2"),
    ("premise", "hypothesis"),
    *((first, right) for first in _FIRST for right in _RIGHT),
    ("query", "document"),
    ("query", "passage"),
    ("query", "text"),
    ("query", "answer"),
    ("query", "response"),
    ("question", "answer"),
    ("question", "context"),
    ("question", "passage"),
    ("query", "answers"),
    ("question", "answers"),
    ("query", "passages"),
    ("query", "documents"),
    ("compressed", "sentence"),
    ("compressed", "set"),
    ("headline", "sentence"),
    ("title", "text"),
    ("title", "body"),
    ("title", "abstract"),
    ("summary", "text"),
    ("summary", "document"),
)
_ASKING = {*_FIRST}  # names of first texts that may have wrong answers
_LABEL_NAMES = {"label", "labels", "goldlabel", "class", "isduplicate", "duplicate", "entailment", "relevant"}
_SCORE_NAMES = {"score", "scores", "similarity", "similarityscore", "relatedness", "relatednessscore", "rating"}
_SCORE_NAMES |= {"goldscore", "simscore", "cosine"}


@dataclass(frozen=True)
class Recognised:
    """Which columns of a file are what."""

    kind: DataKind
    texts: Mapping[str, str]  # our column to the file's
    label: str | None = None  # the file's column of scores or classes
    why: str = "by their names"
    is_guess: bool = False  # another choice is as plausible

    @property
    def columns(self) -> dict[str, str]:
        """Our columns, with the label, to the file's."""
        return {**self.texts, **({} if self.label is None else {LABEL: self.label})}


class UnclearColumns(InputError):
    """It is not clear which columns of a table hold the texts: a person has to say it."""

    def __init__(self, name: str, columns: tuple[ColumnPreview, ...]) -> None:
        shown = "; ".join(
            f"{column.name} ({', '.join(repr(text[:30]) for text in column.examples[:EXAMPLES])})" for column in columns
        )
        super().__init__(
            f"{name} has {len(columns)} columns, and it is not clear which hold the texts: "
            f"{', '.join(column.name for column in columns)[:500]}.",
            "It needs one column of sentences; or columns such as sentence1, sentence2 and score; premise, hypothesis and "
            f"label; query and positive; anchor, positive and negative. It has {shown[:600]}.",
            "Rename the columns, or choose them (--columns anchor=...,positive=...).",
        )
        self.columns = columns


def plain_name(name: str) -> str:
    """A column's name without case, spaces and punctuation; of an object's key that of the key."""
    return re.sub(r"[\W_]+", "", plain(name.rpartition(".")[2]))


def _named(names: Iterable[str]) -> list[str]:
    return [plain_name(name) for name in names]


_PAIR_NAMES = (
    *dict.fromkeys(
        (
            *_PAIRS_IN_USE,
            *product(_named(QUESTIONS), _named(ANSWERS)),
            *product(_named(TITLES), _named((*TEXTS, *BODIES))),
        )
    ),
)


def recognise(
    columns: Mapping[str, Sequence[Any]],
    name: str,
    chosen: Mapping[str, str] | None = None,
    wanted: Wanted = "any",
) -> Recognised:
    """Which columns hold the texts and the label, by their names and values. `wanted`: a score, or none, is needed.

    Raises UnclearColumns where these do not tell, and InputError for columns that cannot hold what they should.
    """
    if chosen:
        return _chosen(columns, name, chosen, wanted)
    plain = {plain_name(column): column for column in reversed(list(columns))}  # of two similar names the first counts
    told = [column for key, column in reversed(plain.items()) if key in _SCORE_NAMES]
    told += [column for key, column in reversed(plain.items()) if key in _LABEL_NAMES]
    if wanted != "scored":
        told.sort(key=list(columns).index)
    if wanted == "pairs":
        told = []
    label = told[0] if told else None
    without_label = {key: column for key, column in plain.items() if column != label}
    found = [names for names in _PAIR_NAMES if all(key in without_label for key in names)]
    if wanted == "pairs":  # what a corpus calls its sentences and their queries
        found.sort(key=lambda names: names != ("compressed", "sentence"))
    if found:
        texts = [without_label[key] for key in found[0]]
        wrong = [] if wanted != "any" or found[0][0] not in _ASKING else _wrong_answers(without_label)
        others = [pair for pair in found[1:] if pair[0] == found[0][0] and pair[1] not in _RIGHT]
        if found[0][1] in _RIGHT:
            others = []
        why = "by their names"
        if others:
            why += f"; the second text may also be {' or '.join(without_label[pair[1]] for pair in others)}"
        if len(told) > 1:
            why += f"; the score may also be {' or '.join(column for column in told if column != label)}"
        is_guess = bool(others) or len(told) > 1
        return _checked(columns, name, texts, label, wrong, why, is_guess, wanted)
    return _by_look(columns, name, label, wanted)


def guessed_pair(columns: Sequence[ColumnPreview]) -> tuple[str, str]:
    """The columns of the right texts and of the queries, each empty where it is not clear."""
    text = next((column.name for column in columns if column.is_guess), "")
    others = [
        column.name
        for column in columns
        if column.is_text and column.name != text and (is_named_query(column.name) or not column.has_roles)
    ]
    named = [name for name in others if is_named_query(name)]
    query = named[0] if len(named) == 1 else others[0] if len(others) == 1 and text else ""
    if not text and query and len(others) == 2:  # of two columns the other one
        text = next(name for name in others if name != query)
    return text, query


def is_named_query(name: str) -> bool:
    """Whether a column has the name of one of queries."""
    return is_question(name) or name.casefold() == PAIR_COLUMN


def offered_pair(names: Sequence[str], text: str, query: str) -> tuple[str, str]:
    """The columns of right texts and of queries that a person is asked to confirm, of two or more `names` of columns of texts.

    `text` and `query` are what `guessed_pair` found.
    """
    text = text or next(name for name in reversed(names) if name != query)
    return text, query or next(name for name in names if name != text)


def _may_be_queries(columns: Mapping[str, Sequence[Any]], name: str) -> bool:
    """Whether a column may be guessed to hold queries: by its name, or since some value has several words; ids have none."""
    return is_named_query(name) or any(
        len(as_text(value).split()) > 1 for value in columns[name][: passages.SAMPLE_ROWS]
    )


def why_guessed(text: str, query: str) -> str:
    """Why `guessed_pair` takes these two columns for the right texts and the queries."""
    if is_named_query(query):
        return f"{query} by its name, {text} as the longest or only other column of texts"
    if plain(text) in TEXT_NAMES:
        return f"{text} by its name, {query} as the only other column of texts"
    return f"the texts of {text} are by far the longest, and {query} is the only other column of texts"


def left_out(columns: Mapping[str, Sequence[Any]], recognised: Recognised) -> dict[str, tuple[str, ...]]:
    """The columns that are not used, each with a few of its values."""
    used = set(recognised.columns.values())
    rest: dict[str, tuple[str, ...]] = {}
    for column, values in columns.items():
        if column not in used:
            texts = dict.fromkeys(as_text(value)[:EXAMPLE_CHARACTERS] for value in values[: passages.SAMPLE_ROWS])
            rest[column] = tuple(text for text in texts if text)[:EXAMPLES]
    return rest


def labels_of_pairs(columns: Mapping[str, Sequence[Any]], used: Iterable[str]) -> str:
    """That a column of judgements does not say here which pairs are right; "" where there is none."""
    known = set(used)
    for column in [name for name in columns if name not in known and plain_name(name) in _LABEL_NAMES | _SCORE_NAMES]:
        given = list(dict.fromkeys(filter(None, map(as_text, columns[column][: passages.SAMPLE_ROWS]))))
        if len(given) > 1 and all(is_judgement(text) for text in given if text.casefold() not in UNKNOWN):
            shown = " or ".join(text[:EXAMPLE_CHARACTERS] for text in given[:EXAMPLES])
            return f"Each row counts as a right pair, whether its {column} is {shown}: leave out the rows that are not."
    return ""


def _wrong_answers(plain: Mapping[str, str]) -> list[str]:
    """The columns of wrong answers: one with such a name, or those that are numbered."""
    numbered = sorted(
        (int(found[1]), column)
        for key, column in plain.items()
        if (found := _WRONG_NUMBERED.fullmatch(key)) is not None
    )
    own = next((plain[key] for key in _WRONG if key in plain), None)
    if own is not None and not numbered:
        return [own]
    return [*([] if own is None else [own]), *(column for _, column in numbered)][:MOST_NEGATIVES]


def _by_look(columns: Mapping[str, Sequence[Any]], name: str, label: str | None, wanted: Wanted) -> Recognised:
    """One or two columns that hold texts; in a file without names also a column of numbers beside two of sentences."""
    judged = {column: passages.first_texts(values) for column, values in columns.items()}
    previews = preview_columns(judged)
    texts = [
        preview.name
        for preview in previews
        if preview.is_text
        and preview.name != label
        and (len(columns) == 1 or not are_roles(judged[preview.name][: passages.SAMPLE_ROWS]))
    ]
    has_names = not all(re.fullmatch(r"column \d+", column) for column in columns)
    if wanted == "pairs" and has_names:
        asked = preview_columns(columns)
        right, query = guessed_pair(asked)
        if right and query and not is_named_query(right) and _may_be_queries(columns, query):
            return _checked(columns, name, [query, right], None, [], why_guessed(right, query), True, wanted)
        named = [column.name for column in asked if column.is_text and not column.has_roles]
        fix = "Choose the columns (--columns anchor=...,positive=...), rename them, or choose another file."
        if len(named) > 1:
            right, query = offered_pair(named, right, query)
            if not any(sign in query + right for sign in ",="):
                option = shlex.quote(f"anchor={query},positive={right}")
                fix = f"If {query} holds the queries and {right} their right texts: --columns {option}"
        missing = " and ".join(repr(column) for column in ("sentence", "compressed") if column not in columns)
        raise InputError(
            f"{name} has no column {missing}; it has {', '.join(columns)[:500]}.",
            "The columns sentence and compressed (a query for each sentence) are needed, or others with known names, such as "
            "query and answer.",
            fix,
        )
    if wanted == "scored" or not has_names:
        sentences = [column for column in texts if _mean_words(judged[column]) >= SENTENCE_WORDS]
        texts = sentences if len(texts) > 2 and len(sentences) in (2, 3) else texts
        if label is None and len(texts) == 2:
            label = _score_by_look({column: values for column, values in columns.items() if column not in texts})
    if len(texts) == 3 and not has_names and wanted == "any" and label is None:
        why = "the file has no names of columns, and three hold sentences"
        return _checked(columns, name, texts[:2], None, texts[2:], why, True, wanted)
    if 1 <= len(texts) <= 2 and not (wanted != "any" and len(texts) == 1):
        is_guess = len(columns) > 1 and not (len(texts) == 1 and plain(texts[0]) in TEXT_NAMES)
        if is_guess:
            why = f"only {'this column holds' if len(texts) == 1 else 'these two hold'} sentences"
        else:
            why = "by its name" if plain(texts[0]) in TEXT_NAMES else "the only column"
        return _checked(columns, name, texts, label if len(texts) == 2 else None, [], why, is_guess, wanted)
    if wanted == "scored" and len(texts) < 2:
        raise _not_scored(columns, name)
    if not texts and (len(columns) == 1 or _are_ids_alone(columns)):
        raise _no_texts(columns, name, next(iter(columns)))
    raise UnclearColumns(name, previews)


def _are_ids_alone(columns: Mapping[str, Sequence[Any]]) -> bool:
    """Whether the columns hold nothing but numbers, three in a row or more, as ColBERT's triples do."""
    return len(columns) >= TRIPLE and all(
        is_number(as_text(value)) for values in columns.values() for value in values[: passages.SAMPLE_ROWS]
    )


def _score_by_look(columns: Mapping[str, Sequence[Any]]) -> str | None:
    """The only column of numbers, or the only one of those with fractions; None where there are several or none.

    Running numbers and numbers with leading zeros are ids, and never scores.
    """
    numbers = {}
    for column, values in columns.items():
        first = values[: passages.SAMPLE_ROWS]
        scores = read_scores(first)
        known = [value for value in scores.values if value is not None]
        given = len(known) + sum(reason == NO_NUMBER for reason in scores.reasons)  # others have no score
        if 2 * len(known) >= len(first) and 10 * len(known) >= 9 * given > 0 and not _are_ids(first):
            numbers[column] = any(not value.is_integer() for value in known)
    fractions = [column for column, has_fractions in numbers.items() if has_fractions]
    if len(fractions) == 1:
        return fractions[0]
    return next(iter(numbers)) if len(numbers) == 1 and not fractions else None


def _are_ids(values: Sequence[Any]) -> bool:
    """Whether numbers are ids: with leading zeros ("007"), or running up by one from row to row."""
    texts = [str(value).strip() for value in values if not is_missing(value) and str(value).strip()]
    if any(re.fullmatch(r"0\d+", text) for text in texts):
        return True
    numbers = [int(text) for text in map(score_text, texts) if re.fullmatch(r"-?\d{1,15}", text)]
    steps = [later - earlier for earlier, later in pairwise(numbers)]
    return len(numbers) >= LEAST_IDS and 10 * steps.count(1) >= 9 * len(steps)


def _mean_words(values: Sequence[Any]) -> float:
    texts = [value for value in values[: passages.SAMPLE_ROWS] if isinstance(value, str)]
    return float(np.mean([len(text.split()) for text in texts])) if texts else 0.0


def _chosen(columns: Mapping[str, Sequence[Any]], name: str, chosen: Mapping[str, str], wanted: Wanted) -> Recognised:
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
    texts = {ours: column for ours, column in chosen.items() if ours not in (LABEL, "score")}
    label = chosen.get(LABEL, chosen.get("score"))
    wrong = [ours for ours in texts if re.fullmatch(rf"{NEGATIVE}(_\d+)?", ours)]
    rights = tuple(ours for ours in texts if ours not in wrong)
    kinds = [names for names in COLUMNS.values() if names == (rights + ((NEGATIVE,) if wrong else ()))]
    if not kinds or (wanted == "scored" and (rights != COLUMNS["scored"] or label is None)):
        known = (
            "sentence1, sentence2, label"
            if wanted == "scored"
            else "; or ".join(", ".join(names) for names in dict.fromkeys(COLUMNS.values()))
        )
        raise InputError(
            f"The columns {', '.join(chosen)[:80]!r} are no kind of rows.",
            f"They must be, in this order: {known}"
            + ("." if wanted == "scored" else f"; and {LABEL} may follow, or further wrong answers ({NEGATIVE}_2)."),
            "Name the columns in one of these ways.",
        )
    wrong_columns = [texts[ours] for ours in wrong]
    return _checked(columns, name, [texts[ours] for ours in rights], label, wrong_columns, AS_CHOSEN, False, wanted)


def _checked(
    columns: Mapping[str, Sequence[Any]],
    name: str,
    texts: list[str],
    label: str | None,
    wrong: list[str],
    why: str,
    is_guess: bool,
    wanted: Wanted,
) -> Recognised:
    """The kind of these columns. Raises InputError where a column of texts has no texts, or the label no labels."""
    wrong = [column for column in wrong if column not in texts]
    judged = {column: passages.first_texts(columns[column]) for column in (*texts, *wrong)}
    if wanted == "pairs":  # few rows of many texts may have a query
        judged = {column: [value for value in values if value] for column, values in judged.items()}
    previews = {preview.name: preview for preview in preview_columns(judged)}
    for column in texts:
        if not previews[column].is_text:
            raise _no_texts(columns, name, column)
    if why.startswith("by their names"):  # a column of wrong answers that is empty in most rows is none
        wrong = [column for column in wrong if previews[column].is_text or passages.has_lists(columns[column])]
    elif any(not previews[column].is_text for column in wrong):
        raise _no_texts(columns, name, next(column for column in wrong if not previews[column].is_text))
    if wrong:
        ours = (*COLUMNS["pairs"], *(negative_name(place) for place in range(len(wrong))))
        return Recognised("triplets", dict(zip(ours, (*texts, *wrong), strict=True)), None, why, is_guess)
    kind: DataKind = ("sentences", "pairs")[len(texts) - 1]
    if label is None and wanted == "scored":
        raise _not_scored(columns, name, *(("score",) if why.startswith("by their names") else ()))
    if label is None or kind != "pairs":
        return Recognised(kind, dict(zip(COLUMNS[kind], texts, strict=True)), None, why, is_guess)
    kind = "scored" if wanted == "scored" else _kind_of_label(columns[label], name, label)
    if wanted == "scored":
        _check_numbers(columns[label], name, label)
    return Recognised(kind, dict(zip(COLUMNS[kind], texts, strict=True)), label, why, is_guess)


def negative_name(place: int) -> str:
    """The name of a column of wrong answers: "negative", "negative_2", and so on."""
    return NEGATIVE if place == 0 else f"{NEGATIVE}_{place + 1}"


def _kind_of_label(values: Sequence[Any], name: str, label: str) -> DataKind:
    """Whether a column holds scores or classes, by its name and numbers. Raises InputError where it holds neither."""
    numbers = [value for value in read_scores(values).values if value is not None]
    if plain_name(label) in _SCORE_NAMES or any(not number.is_integer() for number in numbers):
        _check_numbers(values, name, label)
        return "scored"
    classes = {score_text(value) for value in values} - UNKNOWN
    if len(classes) > MOST_CLASSES:
        raise InputError(
            f"The column {label[:80]!r} of {name} has {len(classes):,} different values, such as {min(classes)[:40]!r}.",
            f"It must hold classes, at most {MOST_CLASSES} different ones.",
            "Check whether two columns are swapped, or name a column of scores score.",
        )
    return "labelled"


def _check_numbers(values: Sequence[Any], name: str, label: str) -> None:
    """Raise InputError for a column of texts in which there is no number."""
    given = {score_text(value) for value in values} - {""}
    if given and not any(value is not None for value in read_scores(values).values):
        shown = min(given)[:40]
        raise InputError(
            f"The column {label[:80]!r} of {name} holds no numbers, but values such as {shown!r}.",
            "Each row needs a score, such as a number from 0 to 5.",
            "Check whether two columns are swapped, or name a column of classes label.",
        )


def _not_scored(columns: Mapping[str, Sequence[Any]], name: str, *missing: str) -> InputError:
    plain = {plain_name(column) for column in columns}
    missing = missing or tuple(column for column in ("sentence1", "sentence2", "score") if column not in plain)
    return InputError(
        f"{name} has no column {' and no column '.join(missing)}.",
        f"The columns sentence1, sentence2 and score are needed; it has {', '.join(columns)[:500]}.",
        "Rename its columns, choose them (--columns sentence1=...,sentence2=...,label=...), or choose another file.",
    )


def _no_texts(columns: Mapping[str, Sequence[Any]], name: str, column: str) -> InputError:
    values = [value for value in columns[column][: passages.SAMPLE_ROWS] if value is not None and value != ""]
    shown = ", ".join(repr(as_text(value)[:40]) for value in values[:3])
    ids = any(isinstance(text, int) for value in values[:3] if isinstance(value, list) for text in value)
    ids |= _are_ids_alone(columns)
    return InputError(
        f"The column {column[:80]!r} of {name} holds no texts{f', but values such as {shown}' if shown else ''}.",
        "It must hold sentences."
        + (" Numbers, as in ColBERT's triples, name queries and passages of other files." if ids else ""),
        "Write the texts themselves into the file."
        if ids
        else "Check whether two columns are swapped or wrongly named.",
    )


def with_sets(columns: Mapping[str, Sequence[Any]]) -> tuple[dict[str, Sequence[Any]], Recognised | None, list[str]]:
    """The columns, where the only column with texts holds lists of texts that belong together, as one column for each place.

    As in a corpus the first text of a list is the sentence, and the second is its short version, which is the query.
    """
    judged = preview_columns({column: passages.first_texts(values) for column, values in columns.items()})
    texts = [preview.name for preview in judged if preview.is_text]
    lists = [column for column in texts if _is_set(columns[column])]
    if len(lists) != 1 or (len(texts) != 1 and plain_name(lists[0]) != SET_COLUMN):
        return dict(columns), None, []
    name = lists[0]
    parts = passages.items(columns, name)
    first, second, *others = parts
    said = [
        f"The {called(name)} holds lists of texts: their second text is taken as the query, and their first as its answer."
    ]
    opened: dict[str, Sequence[Any]] = {}
    for column, values in columns.items():
        opened |= parts if column == name else {column: values}
    if others:
        said.append("The third and further texts of the lists are left out.")
    why = "a list holds texts that belong together"
    return opened, Recognised("pairs", {"anchor": second, "positive": first}, None, why, is_guess=True), said


def _is_set(values: Sequence[Any]) -> bool:
    """Whether at least half of a column's values are lists of two texts or more."""
    given = [value for value in values if value is not None]
    return (
        2 * sum(isinstance(value, list) and len(value) > 1 and isinstance(value[0], str) for value in given)
        >= len(given)
        > 0
    )
