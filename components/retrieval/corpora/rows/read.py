"""The rows of a table: pairs, triplets, scored or labelled texts, with an account of every row of the file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.numbers import counted, enumerated
from components.retrieval.corpora.column_names import plain
from components.retrieval.corpora.columns import TEXT_NAMES, are_turns, as_text, called, is_missing, list_of_turns
from components.retrieval.corpora.corpus import BROKEN_BYTES, read_parts
from components.retrieval.corpora.readers.encoding import clean, has_broken_bytes
from components.retrieval.corpora.readers.limits import Count, Limits
from components.retrieval.corpora.readers.separated_rows import AS_FOUND, DialectChoice
from components.retrieval.corpora.readers.table import BadRows, Table
from components.retrieval.corpora.rows import passages, roles
from components.retrieval.corpora.rows.parts import ChosenPart, Part, check_no_part, choose_part, find_parts
from components.retrieval.corpora.rows.reading import (
    EMPTY,
    NO_TEXT,
    PREVIEWED,
    VALUES_SHOWN,
    PreviewedRow,
    RowUse,
    given_rows,
    may_be_none,
)
from components.retrieval.corpora.rows.roles import LABEL, MOST_NEGATIVES, Recognised, Wanted
from components.retrieval.corpora.rows.same import normalised
from components.retrieval.corpora.rows.scores import (
    NO_NUMBER,
    UNKNOWN,
    Scores,
    minus_one_is_no_class,
    read_scores,
    score_text,
)

NO_GOLD_LABEL = "no gold label"
POSITIVE = roles.COLUMNS["pairs"][1]
RIGHT_IS_WRONG = "its wrong answers are its right ones"
RIGHT_ELSEWHERE = "its wrong answers are right ones in other rows of its query"


@dataclass(frozen=True, eq=False)
class TextRow:
    """Texts that belong together, and the row of the table from which they come."""

    texts: tuple[str, ...]
    label: str | float | None
    source: int  # [row] of the table
    part: Part | None = None  # to which the file says that it belongs


@dataclass(frozen=True, eq=False)
class Rows:
    """The usable rows of a table, in its order. A row with several right answers has become several."""

    recognised: Recognised
    names: tuple[str, ...]  # of the texts of a row: our columns, with one for each wrong answer
    rows: tuple[TextRow, ...]
    table: Table
    bad: BadRows  # rows that are not used, those that could not be read among them
    values: tuple[str, ...]  # that should be scores
    changed: frozenset[int]  # rows of the table with a text or a score that was changed
    part: ChosenPart | None
    notes: tuple[str, ...]
    left_out: Mapping[str, tuple[str, ...]]
    known: Mapping[str, tuple[str, ...]]
    given: tuple[tuple[int, str], ...]  # the first rows as they stand in the file, by their numbers
    # The second texts of rows that are not used, with these rows of the table and why they are not used: right texts of no
    # query, which can be searched.
    unused: tuple[tuple[int, str, str], ...]

    def reading(self, used: Sequence[TextRow], bad: BadRows, repeated: int = 0, with_unused: bool = False) -> RowUse:
        """The account of all rows, when `used` are left and `bad` are refused since. `with_unused`: these are searched."""
        sources = {row.source for row in used}
        first: dict[int, TextRow] = {}
        for row in used:
            first.setdefault(row.source, row)
        both = self.bad.joined(bad)
        alone = {self.table.numbers[row]: reason for row, _, reason in self.unused} if with_unused else {}
        reasons = {row.row: row.reason for row in both.first}
        places = {number: place for place, number in enumerate(self.table.numbers[: 2 * PREVIEWED])}
        preview = []
        for number, given in self.given:
            own = first.get(places.get(number, -1))
            read = {} if own is None else dict(zip(self.names, own.texts, strict=True))
            if own is not None and own.label is not None:
                read[LABEL] = f"{own.label:.12g}" if isinstance(own.label, float) else own.label
            preview.append(
                PreviewedRow(number, given, read, "" if read else reasons.get(number, "equal to an earlier one"))
            )
        return RowUse(
            rows=len(self.table.numbers) + len(self.table.bad),
            used=len(sources),
            reasons=dict(both.reasons - Counter(alone.values())),
            refused=tuple(row for row in both.first if row.row not in alone),
            text_alone=Counter(alone.values()),
            values=self.values,
            repeated=repeated,
            joined=self.table.joined,
            changed=len(sources & self.changed),
            columns=self.recognised.columns,
            why=self.recognised.why,
            is_guess=self.recognised.is_guess,
            left_out=self.left_out,
            part=self.part,
            notes=self.notes,
            preview=tuple(preview),
            known=self.known,
            dialect=self.table.chosen,
            otherwise=self.table.otherwise,
            encoding=self.table.encoding,
            encoding_is_guess=self.table.encoding_guessed,
        )


def table_of(
    sources: Sequence[Path | bytes],
    name: str,
    limits: Limits | None,
    count: Count,
    dialect: DialectChoice = AS_FOUND,
    encoding: str | None = None,
) -> Table:
    """The table of a file, or of the parts of a data set, for `rows_of`.

    `dialect` is what a person chose of how separated text is written, and `encoding` the file's, which is detected without it.

    Raises InputError for a file that cannot be read or is beyond its limits, and Stopped.
    """
    table = read_parts(sources, name, encoding, limits, count, dialect)
    if limits is not None and len(table.numbers) > limits.sentences:
        raise limits.exceeded(name, f"{len(table.numbers):,} rows")
    return table


def rows_of(
    table: Table,
    name: str,
    *,
    chosen: Mapping[str, str] | None = None,
    part: str | None = None,
    preferred: Sequence[Part] = (),
    wanted: Wanted = "any",
    holds_out: bool = False,
) -> Rows:
    """The rows of a table.

    `chosen` names the file's columns by ours where a person knows better. `part` is the part of a file that names parts, or
    "all"; without it the first of `preferred` is used, and with `holds_out` the dev rows beside the train rows, to measure what
    is learned. `wanted` is the kind of rows that is needed. Raises InputError where the columns are not recognised.
    """
    if not table.columns or not len(table.numbers):
        raise InputError(
            f"{clean(name).text} has no row{reasons_in_brackets(table.bad.reasons) or ': it is empty'}.",
            "Rows of texts are needed.",
            "Check the file and its format.",
        )
    columns, notes = passages.opened(table.columns)
    notes += [*filter(None, [table.title_sentence]), *table.notes]
    if table.chosen.header is not None:
        notes.append(f"As chosen, {DialectChoice(header=table.is_named).in_words}.")
    elif not table.is_named:
        notes.append("The first row is read as a row, since it does not name columns: they are numbered.")
    if table.dialect:
        other = f"; it could also be read as {table.other_dialect}" if table.other_dialect else ""
        notes.append(f"The file is {table.dialect}{other}.")
    if table.encoding_guessed:
        notes.append(f"The encoding {table.encoding} is a guess.")
    parts = find_parts(columns)
    chosen_part = None if parts is None else choose_part(parts, name, part, preferred, holds_out)
    if parts is None:
        check_no_part(name, part)
    told = {key: values for key, values in columns.items() if parts is None or key != parts.column}
    told, recognised, said = roles.with_sets(told)
    notes += said
    if recognised is None or chosen or wanted == "scored":
        with _guesses_told(table):
            recognised = _recognised(told, name, chosen, wanted)
    scores = None
    if recognised.label is not None and recognised.kind == "scored":
        scores = read_scores(told[recognised.label])
        notes += _notes_on(scores, recognised.label)
    if recognised.label is not None:
        numbers = _classes(told[recognised.label]) if scores is None else scores.values
        notes += _note_on_minus_one([number for number in numbers if number is not None], recognised)
    if wanted == "pairs":
        notes += filter(None, [roles.labels_of_pairs(told, recognised.columns.values())])
    if POSITIVE in recognised.texts:
        notes += _note_on_bars(told[recognised.texts[POSITIVE]], recognised.texts[POSITIVE])
    made = _Made(table, told, recognised, scores)
    refused: dict[int, str] = {}
    if parts is not None and chosen_part is not None:
        refused = {
            row: chosen_part.refusal(own or as_text(columns[parts.column][row]).strip())
            for row, own in enumerate(parts.of_rows)
            if not chosen_part.has(own)
        }
    made.learn_right_answers(row for row in range(len(table.numbers)) if row not in refused)
    for row in range(len(table.numbers)):
        if row in refused:
            made.refuse(row, refused[row])
        else:
            made.add(row)
    rows, names = made.finished()
    if parts is not None:
        rows = [replace(row, part=parts.of_rows[row.source]) for row in rows]
    known = roles.left_out(told, Recognised(recognised.kind, {}))
    return Rows(
        recognised,
        names,
        tuple(rows),
        table,
        table.bad.joined(made.bad),
        tuple(made.values),
        frozenset(made.changed),
        chosen_part,
        (*notes, *made.notes),
        {key: values for key, values in known.items() if key not in recognised.columns.values()}
        | {key: () for key in table.left_out},
        known,
        tuple(table.samples[:PREVIEWED]) or given_rows(table, PREVIEWED),
        made.unused() if wanted == "pairs" else (),
    )


def _recognised(
    columns: Mapping[str, Sequence[Any]], name: str, chosen: Mapping[str, str] | None, wanted: Wanted
) -> Recognised:
    """Which columns are what. Raises InputError where it is not clear, and where a list of turns is all there is."""
    turns = [column for column, values in columns.items() if are_turns(values)]
    if not turns:
        return roles.recognise(columns, name, chosen, wanted)
    for column in (chosen or {}).values():
        if column in turns:
            raise list_of_turns(name, column)
    others = {column: values for column, values in columns.items() if column not in turns}
    try:
        recognised = roles.recognise(others, name, chosen, wanted)
    except InputError as problem:
        if chosen:
            raise
        raise list_of_turns(name, turns[0]) from problem
    if recognised.is_guess or (len(others) == 1 and plain(next(iter(others))) not in TEXT_NAMES):
        raise list_of_turns(name, turns[0])
    return recognised


@contextmanager
def _guesses_told(table: Table) -> Iterator[None]:
    """A refusal of columns says where a guess about how the file is written may be the reason."""
    try:
        yield
    except roles.UnclearColumns:  # a page asks which column is which, beside the menus of how the file is written
        raise
    except InputError as problem:
        if not table.otherwise and not table.notes:
            raise
        ways = ", or ".join(f"if {choice.in_words}: {choice.as_options}" for choice in table.otherwise)
        fix = " ".join([problem.fix, *table.notes, *([f"How the file is written is a guess: {ways}."] if ways else [])])
        raise InputError(problem.problem, problem.expected, fix) from problem


class _Made:
    """The usable rows of a table, row by row."""

    def __init__(
        self, table: Table, columns: Mapping[str, Sequence[Any]], recognised: Recognised, scores: Scores | None
    ) -> None:
        self.bad = BadRows()
        self.values: list[str] = []
        self.changed: set[int] = set()
        self._reasons: dict[int, str] = {}  # why a row is not used
        self.notes: list[str] = []
        self._table, self._scores, self._recognised = table, scores, recognised
        self._label = None if recognised.label is None else columns[recognised.label]
        self._rights = [columns[column] for ours, column in recognised.texts.items() if not _is_wrong(ours)]
        self._wrongs = [columns[column] for ours, column in recognised.texts.items() if _is_wrong(ours)]
        self._unknown = set(UNKNOWN)
        if self._label is not None and recognised.kind == "labelled" and minus_one_is_no_class(_classes(self._label)):
            self._unknown.add("-1")
        self._rows: list[tuple[int, tuple[str, ...], tuple[str, ...], str | float | None]] = []
        self._several = 0  # rows with several right answers
        self._cut = 0  # wrong answers beyond the most
        self._equal = 0  # wrong answers that are right ones of their row
        self._right_elsewhere = 0  # wrong answers that are right ones in another row of their query
        self._right_of: dict[str, set[str]] = {}  # query to its right answers in all rows, both normalised
        self._no_texts = 0  # places in lists that hold no text
        self._spelt: dict[str, str] = {}  # classes without case, as each is written first
        self._respelt: Counter[str] = Counter()  # rows whose class is written in another case

    def refuse(self, row: int, reason: str) -> None:
        self.bad.add(self._table.numbers[row], reason)
        self._reasons[row] = reason

    def learn_right_answers(self, rows: Iterable[int]) -> None:
        """Note the right answers of each query in rows that are used, where rows have wrong ones."""
        for row in rows if self._wrongs else ():
            query, answers = (self._cleaned(column[row]) for column in self._rights[:2])
            if not isinstance(query, str) and not isinstance(answers, str) and len(query.texts) == 1:
                self._right_of.setdefault(normalised(query.texts[0]), set()).update(map(normalised, answers.texts))

    def add(self, row: int) -> None:
        """Use a row of the table, or refuse it with the reason."""
        texts: list[list[str]] = []
        is_changed = False
        no_texts = 0
        for place, column in enumerate((*self._rights, *self._wrongs)):
            found = self._cleaned(column[row])
            if isinstance(found, str):
                if place >= len(self._rights) and found in (NO_TEXT, EMPTY):
                    found = _Cell([])  # a row may have fewer wrong answers than another
                else:
                    self.refuse(row, found)
                    return
            texts.append(found.texts)
            is_changed |= found.is_changed
            no_texts += found.no_texts
        rights, wrongs = texts[: len(self._rights)], [text for part in texts[len(self._rights) :] for text in part]
        if len(rights[0]) > 1:
            self.refuse(row, "several first texts")
            return
        if len(rights) > 1 and len(rights[1]) > 1 and self._recognised.kind in ("scored", "labelled"):
            self.refuse(row, "several second texts")
            return
        label = self._label_of(row)
        if isinstance(label, _Refused):
            self.refuse(row, label.reason)
            return
        wrongs = list(dict.fromkeys(wrongs))
        right = {normalised(answer) for answer in rights[1]} if wrongs else set()
        different = [answer for answer in wrongs if normalised(answer) not in right]
        if self._wrongs and not different:
            self.refuse(row, RIGHT_IS_WRONG if wrongs else "no wrong answer")
            return
        of_query = self._right_of.get(normalised(rights[0][0]), right) if different else right
        wrong = [answer for answer in different if normalised(answer) not in of_query]
        if self._wrongs and not wrong:
            self.refuse(row, RIGHT_ELSEWHERE)
            return
        self._equal += len(wrongs) - len(different)
        self._right_elsewhere += len(different) - len(wrong)
        self._no_texts += no_texts
        self._cut += max(0, len(wrong) - MOST_NEGATIVES)
        if is_changed or self._has_comma(row):
            self.changed.add(row)
        answers = list(dict.fromkeys(rights[1])) if len(rights) > 1 else [None]
        self._several += len(answers) > 1
        for answer in answers:
            own = (rights[0][0],) if answer is None else (rights[0][0], answer)
            self._rows.append((row, own, tuple(wrong[:MOST_NEGATIVES]), label))

    def finished(self) -> tuple[list[TextRow], tuple[str, ...]]:
        """All rows, and the names of their texts: as many wrong answers in each row, or else a row for each."""
        if self._several:
            self.notes.append(
                f"{counted(self._several, 'row')} {'has' if self._several == 1 else 'have'} several right answers, each of "
                f"which makes a row: {len(self._rows):,} in all."
            )
        if self._cut:
            self.notes.append(
                f"{counted(self._cut, 'wrong answer')} beyond the first {MOST_NEGATIVES} of a row "
                f"{'is' if self._cut == 1 else 'are'} left out."
            )
        if self._equal:
            self.notes.append(
                f"{counted(self._equal, 'wrong answer')} that {'equals' if self._equal == 1 else 'equal'} a right answer of "
                f"the same row {'is' if self._equal == 1 else 'are'} left out."
            )
        if self._right_elsewhere:
            is_one = self._right_elsewhere == 1
            self.notes.append(
                f"{counted(self._right_elsewhere, 'wrong answer')} that {'is a right one' if is_one else 'are right ones'} in "
                f"another row of the same query {'is' if is_one else 'are'} left out."
            )
        if self._no_texts:
            self.notes.append(
                f"{counted(self._no_texts, 'place')} in lists {'holds' if self._no_texts == 1 else 'hold'} no text and "
                f"{'is' if self._no_texts == 1 else 'are'} skipped."
            )
        if several := +self._respelt:
            count = f"count{'s' if several.total() == 1 else ''} as {'this' if len(several) == 1 else 'these'}"
            self.notes.append(
                f"{counted(several.total(), 'label')} in another case than {enumerated(list(several))} {count}."
            )
        self.notes += may_be_none([text for _, own, wrongs, _ in self._rows for text in (*own, *wrongs)])
        if not self._wrongs:
            return [TextRow(own, told, row) for row, own, _, told in self._rows], tuple(self._recognised.texts)
        widths = {len(wrongs) for _, _, wrongs, _ in self._rows}
        wrong = [column for ours, column in self._recognised.texts.items() if _is_wrong(ours)]
        if len(widths) <= 1:
            width = max(widths, default=1)
            rows = [TextRow((*own, *wrongs), None, row) for row, own, wrongs, _ in self._rows]
        else:
            width = 1
            rows = [TextRow((*own, one), None, row) for row, own, wrongs, _ in self._rows for one in wrongs]
            self.notes.append(
                f"Rows have {min(widths)} to {max(widths)} wrong answers, each of which makes a row: {len(rows):,} in all."
            )
        if width > 1 and len(wrong) == 1:
            self.notes.append(f"Each row has {width} wrong answers, from lists in {wrong[0]}.")
        return rows, (*roles.COLUMNS["pairs"], *(roles.negative_name(place) for place in range(width)))

    def unused(self) -> tuple[tuple[int, str, str], ...]:
        """The second texts of rows that are not used, each with its row and why this is not used."""
        used = {row for row, *_ in self._rows}
        cells = enumerate(self._rights[1] if len(self._rights) > 1 else ())
        found = ((row, self._cleaned(value)) for row, value in cells if row not in used)
        return tuple(
            (row, text, self._reasons[row]) for row, cell in found if not isinstance(cell, str) for text in cell.texts
        )

    def _cleaned(self, value: Any) -> _Cell | str:
        """What a cell holds, cleaned; or the reason why the row cannot be used. Places of a list without text are skipped."""
        given = passages.texts_of(value)
        present = [text for text in given if not is_missing(text)]
        if not present:
            return NO_TEXT
        texts: list[str] = []
        is_changed = False
        for text in present:
            is_broken = self._table.has_broken_bytes and isinstance(text, str) and has_broken_bytes(text)
            if isinstance(text, bytes) or is_broken:
                return BROKEN_BYTES
            if not isinstance(text, str):
                return "not text"
            cleaned = clean(text)
            is_changed |= cleaned.changed
            if cleaned.text:
                texts.append(cleaned.text)
        return _Cell(texts, is_changed, len(given) - len(texts)) if texts else EMPTY

    def _label_of(self, row: int) -> str | float | _Refused | None:
        if self._label is None:
            return None
        if self._scores is not None:
            reason = self._scores.reasons[row]
            if reason == NO_NUMBER:
                shown = as_text(self._label[row])[:40]
                if len(self.values) < VALUES_SHOWN and shown not in self.values:
                    self.values.append(shown)
            return self._scores.values[row] if reason is None else _Refused(reason)
        text = score_text(self._label[row])
        if text.casefold() in self._unknown:
            return _Refused(NO_GOLD_LABEL)
        spelt = self._spelt.setdefault(text.casefold(), text)
        self._respelt[spelt] += spelt != text
        return spelt

    def _has_comma(self, row: int) -> bool:
        return self._scores is not None and self._label is not None and "," in str(self._label[row])


@dataclass(frozen=True)
class _Cell:
    """The texts of a cell."""

    texts: list[str]
    is_changed: bool = False  # one of them was
    no_texts: int = 0  # further places of a list that hold none


@dataclass(frozen=True)
class _Refused:
    reason: str


def reasons_in_brackets(reasons: Mapping[str, int], values: Sequence[str] = ()) -> str:
    """ " (3 rows: empty; ...)" or nothing; with values that are no scores."""

    def said(reason: str, count: int) -> str:
        shown = f", such as {', '.join(map(repr, values))}" if reason == NO_NUMBER and values else ""
        return f"{counted(count, 'row')}: {reason}{shown}"

    parts = "; ".join(said(reason, count) for reason, count in Counter(reasons).most_common(3))
    return f" ({parts})" if parts else ""


def _is_wrong(ours: str) -> bool:
    return ours.startswith(roles.NEGATIVE)


def _notes_on(scores: Scores, label: str) -> list[str]:
    notes = []
    if scores.with_comma:
        notes.append(f"{counted(scores.with_comma, 'score')} of the {called(label)} read with a decimal comma.")
    if scores.minus_ones:
        notes.append(f"The score −1 stands for “unknown”, since no other score of the {called(label)} is negative.")
    return notes


def _note_on_minus_one(numbers: Iterable[float], recognised: Recognised) -> list[str]:
    """How −1 is read beside 0 and 1 alone, where it may be a value or stand for "unknown"."""
    different = set(numbers)
    if -1 not in different or not {-1} < different <= {-1, 0, 1}:
        return []
    if recognised.kind == "scored":
        return [f"The score −1 of the {called(str(recognised.label))} is a score like the others, and not “unknown”."]
    if minus_one_is_no_class(different):
        return [f"The class −1 of the {called(str(recognised.label))} stands for “no gold label”, as in SNLI and GLUE."]
    return [f"The class −1 of the {called(str(recognised.label))} is a class like the other."]


def _note_on_bars(values: Sequence[Any], column: str) -> list[str]:
    """That right answers between bars are one text, where most cells have a bar."""
    cells = [value for value in values[: passages.SAMPLE_ROWS] if isinstance(value, str) and value]
    if 2 * sum("|" in cell for cell in cells) <= len(cells):
        return []
    return [
        f"Most cells of the {called(column)} have a bar (|), and each is one text: write several as a list, or a row for each."
    ]


def _classes(values: Sequence[Any]) -> list[float]:
    """The whole numbers among values."""
    return [float(text) for value in values if re.fullmatch(r"-?\d{1,15}", text := score_text(value))]


def bad_of(reasons: Mapping[str, int]) -> BadRows:
    """Rows that could not be read before, of which only the reasons are known."""
    bad = BadRows()
    bad.reasons.update(reasons)
    return bad
