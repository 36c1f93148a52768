"""The smallest edits of a query that bring its right text to rank 1, each tried on the model and the whole corpus.

First every edit of one word: a word of the query is removed, or replaced by a word of the right text. Only if none of these
helps are two words edited: the single edits that came nearest are combined. If no edit of the query helps, the right text is
edited: one of its words is removed, or a word of the query is added to its end. A word is one as typed ("doesn't" is one word),
and an edited text reads as text: a removed word leaves no punctuation behind that belonged to it. Every edited text goes
through the model, and the whole corpus is ranked for it; an edit that brings the right text to rank 1 is embedded once more by
itself, because the others of a batch can change a vector by some 1e-6.

Such edits are counterfactual explanations (Wachter, Mittelstadt and Russell 2018): the smallest change of the input that
changes the result. They test a story about a failure, since they change the query and not the story.

What it does not show: that there is no other edit. Two edits are tried for a few combinations only, and words from elsewhere
never. A query without a word may also be a text that nobody would type.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np
import regex

from components.arrays import Float32, Float64, Int64, cosine
from components.jobs import IsStopped, ReportProgress, Stopped
from components.retrieval.failures.failed_queries import NEVER
from components.retrieval.search.exact import NEAR, SAME, ExactSearch
from components.words.function import is_function_word
from components.words.typed import CLOSING, is_open, typed_words
from components.words.unicode_words import folded, has_pairs, words

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.embedding.options import EmbedOptions
    from components.model.trace import Pooling

Kind = Literal["removed", "replaced", "added"]
Side = Literal["query", "text"]
MOST_SINGLE = 240  # edits of one word that are tried
MOST_DOUBLE = 160  # edits of two words
COMBINED = 24  # the single edits that came nearest, which are combined
MOST_LISTED = 20  # edits that help
_BATCH = 32  # edits between two looks at `is_stopped`


@dataclass(frozen=True)
class WordEdit:
    """One word of a text is removed or replaced, or a word is added to its end."""

    kind: Kind
    start: int  # characters of the text before any change
    end: int
    word: str  # the word that is removed or replaced; of an added word, the word itself
    by: str = ""  # the word in its place


@dataclass(frozen=True)
class Edit:
    """A text after one or two changes, and where the right text ranks then."""

    text: str
    changes: tuple[WordEdit, ...]
    rank: int  # from 1
    lead: float  # the cosine of the best other text minus that of the right one; negative at rank 1


@dataclass(frozen=True)
class EditSearch:
    """The edits that were tried on one side, and those that help."""

    side: Side
    helping: tuple[Edit, ...]  # the smallest first, as `_sorted` has them
    nearest: Edit | None  # of those that do not help, the one with the smallest lead of a rival; None without any
    tried: int
    possible: int  # edits of one word
    has_more: bool = False  # whether more edits had rank 1 than the MOST_LISTED that were looked at again by themselves

    @property
    def untried(self) -> int:
        """Edits of one word that were not tried, because there are too many."""
        return max(0, self.possible - MOST_SINGLE)

    @property
    def nbytes(self) -> int:
        """Memory the listed texts take, in bytes."""
        listed = (*self.helping, *(() if self.nearest is None else (self.nearest,)))
        return sum(sys.getsizeof(edit.text) for edit in listed)


# Edited texts, and whether each is embedded by itself -> the right text's ranks int64 [text], leads float64 [text]
Rank = Callable[[Sequence[str], bool], tuple[Int64, Float64]]


def edited(text: str, changes: Sequence[WordEdit]) -> str:
    """A text after some changes; neither two spaces nor stray punctuation stand where a word was."""
    for change in sorted(changes, key=lambda item: item.start, reverse=True):
        before, after = text[: change.start], text[change.end :]
        if change.kind == "removed":
            text = _without(before, after)
        elif change.kind == "replaced":
            text = before + change.by + after
        else:
            text = f"{before.rstrip()} {change.word}{after}"
    return text.strip()


def _without(before: str, after: str) -> str:
    """What is left of a text without the word between these two parts.

    Brackets and quotation marks around the word alone go with it; other punctuation moves to the word beside it, where that
    has none yet: "rain, hail, and snow" without "hail" is "rain, and snow". A mark that closes nothing goes as well: "top 2)
    second item" without "2" is "top second item". In a script without spaces the two parts are joined as they are.
    """
    if has_pairs(before[-1:]) or has_pairs(after[:1]):
        return before + after
    lead = "" if not before or before[-1].isspace() else before.rsplit(maxsplit=1)[-1]
    trail = "" if not after or after[0].isspace() else after.split(maxsplit=1)[0]
    left, right = before.removesuffix(lead), after[len(trail) :].lstrip()
    while lead and {lead[-1], CLOSING.get(lead[-1], lead[-1])}.intersection(trail):
        own = CLOSING.get(lead[-1], lead[-1])
        trail = trail.replace(own if own in trail else lead[-1], "", 1)
        lead = lead[:-1]
    if lead and lead[-1] in "'’" and not _CLOSED_LATER.search(right):
        lead = lead[:-1]  # of "'90s"
    closing = set(CLOSING.values()).intersection(trail)
    trail = "".join(mark for mark in trail if mark not in closing or is_open(left, mark))
    stem = left.rstrip()
    space = left[len(stem) :] or " "
    if not right:  # the last word: what opened or led on to it has nothing to stand before
        lead, stem = "", stem.rstrip(" ,;:–—")
    if not stem:
        return lead + _LEADING_DASH.sub("", right)
    if trail and stem[-1] in _MARKS:
        # Two marks in a row: the end of a sentence is the stronger one, and what closes a bracket or quotation stays.
        if (trail[0] in ".?!…" or trail[0] in closing) and stem[-1] not in ".?!…":
            stem = stem.rstrip(" ,;:–—") + trail
        else:
            stem += "".join(mark for mark in trail if mark in closing)
    else:
        stem += trail
    if _TRAILING_DASH.search(stem):
        right = _LEADING_DASH.sub("", right)
    return f"{stem}{space}{lead}{right}" if right else stem


_MARKS = ".,;:!?…–—"
_CLOSED_LATER = regex.compile(r"\S['’](?![\p{L}\p{M}\p{N}_])")
_LEADING_DASH, _TRAILING_DASH = re.compile(r"\A[-–—]+\s+"), re.compile(r"(?:\A|\s)[-–—]+\Z")


def removals(text: str) -> tuple[WordEdit, ...]:
    """Every removal of one word; none for a text of a single word."""
    spans = typed_words(text)
    return tuple(WordEdit("removed", start, end, text[start:end]) for start, end in spans) if len(spans) > 1 else ()


def replacements(text: str, start: int, end: int, source: str) -> tuple[WordEdit, ...]:
    """One word of a text replaced by each word of `source` that the text does not have, function words apart."""
    return tuple(WordEdit("replaced", start, end, text[start:end], word) for word in new_words(text, source))


def additions(text: str, source: str) -> tuple[WordEdit, ...]:
    """Each word of `source` that a text does not have, function words apart, added to the text's end."""
    return tuple(WordEdit("added", len(text), len(text), word) for word in new_words(text, source))


def new_words(text: str, source: str) -> tuple[str, ...]:
    """The words of `source`, as typed, that a text does not have in upper or lower case, function words apart.

    "doesn't" is a function word; a text with "lie" and "detector" has nothing new in "lie-detector".
    """
    known = {*words(text), *(folded(text[start:end]) for start, end in typed_words(text))}
    found: dict[str, str] = {}
    for start, end in typed_words(source):
        word = source[start:end]
        if not all(own in known or is_function_word(own) for own in words(word)):
            found.setdefault(folded(word), word)
    return tuple(found.values())


def query_edits(
    query: str,
    right_text: str,
    rank: Rank,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> EditSearch:
    """The edits of a query by one word; by two if no single one helps. `progress(done, total)` counts edits.

    Raises Stopped.
    """
    trials = _Trials(query, rank, progress, is_stopped)
    spans = typed_words(query)
    possible = len(removals(query)) + len(spans) * len(new_words(query, right_text))
    trials.expect(min(possible, MOST_SINGLE) + MOST_DOUBLE)
    removed = trials.run([(change,) for change in removals(query)][:MOST_SINGLE])
    # Words without which the right text stands best come first, in case not all replacements can be tried.
    leads = {edit.changes[0].start: edit.lead for edit in removed}
    ordered = sorted(spans, key=lambda span: (leads.get(span[0], 0.0), span))
    singles = [(change,) for span in ordered for change in replacements(query, *span, right_text)]
    edits = [*removed, *trials.run(singles[: MOST_SINGLE - len(removed)])]
    helping = trials.confirmed(edits)
    if not helping:
        nearest = sorted(edits, key=lambda edit: edit.lead)[:COMBINED]
        pairs = [
            (*first.changes, *second.changes)
            for first, second in combinations(nearest, 2)
            if first.changes[0].start != second.changes[0].start
        ]
        pairs = [pair for pair in pairs if typed_words(edited(query, pair))]  # something must be left to search for
        doubles = trials.run(pairs[:MOST_DOUBLE])
        edits += doubles
        helping = trials.confirmed(doubles)
    return trials.result("query", helping, edits, possible)


def text_edits(
    query: str,
    right_text: str,
    rank: Rank,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> EditSearch:
    """The edits of the right text by one word. `progress(done, total)` counts edits. Raises Stopped."""
    trials = _Trials(right_text, rank, progress, is_stopped)
    changes = [*additions(right_text, query), *removals(right_text)]
    trials.expect(min(len(changes), MOST_SINGLE))
    edits = trials.run([(change,) for change in changes][:MOST_SINGLE])
    return trials.result("text", trials.confirmed(edits), edits, len(changes))


class _Trials:
    """Edits of one text, tried in batches."""

    def __init__(self, text: str, rank: Rank, progress: ReportProgress, is_stopped: IsStopped) -> None:
        self._text, self._rank, self._progress, self._is_stopped = text, rank, progress, is_stopped
        self._tried: dict[str, Edit] = {}  # by edited text: two changes can give one text
        self._expected, self._has_more = 0, False

    def expect(self, count: int) -> None:
        """How many edits there are at most; only the progress depends on it."""
        self._expected = count

    def run(self, candidates: Sequence[tuple[WordEdit, ...]]) -> list[Edit]:
        """The edits of these changes that have not been tried before, ranked."""
        new: dict[str, tuple[WordEdit, ...]] = {}
        for changes in candidates:
            text = edited(self._text, changes)
            if text and text != self._text and text not in self._tried:
                new.setdefault(text, changes)
        done: list[Edit] = []
        texts = list(new)
        for start in range(0, len(texts), _BATCH):
            done += self._ranked(texts[start : start + _BATCH], new, by_itself=False)
            self._progress(len(self._tried) + len(done), max(self._expected, len(self._tried) + len(done)))
        self._tried |= {edit.text: edit for edit in done}
        return done

    def confirmed(self, edits: Sequence[Edit]) -> tuple[Edit, ...]:
        """Those that bring the right text to rank 1, also when each is embedded by itself."""
        ranked_first = _sorted([edit for edit in edits if edit.rank == 1])
        first, self._has_more = ranked_first[:MOST_LISTED], len(ranked_first) > MOST_LISTED
        again = self._ranked([edit.text for edit in first], {edit.text: edit.changes for edit in first}, by_itself=True)
        return _sorted([edit for edit in again if edit.rank == 1])

    def result(self, side: Side, helping: tuple[Edit, ...], edits: Sequence[Edit], possible: int) -> EditSearch:
        others = [edit for edit in edits if edit.rank > 1]
        nearest = min(others, key=lambda edit: (edit.lead, len(edit.changes)), default=None)
        return EditSearch(side, helping, nearest, len(self._tried), possible, self._has_more)

    def _ranked(self, texts: Sequence[str], changes: dict[str, tuple[WordEdit, ...]], by_itself: bool) -> list[Edit]:
        if self._is_stopped():
            raise Stopped
        if not texts:
            return []
        ranks, leads = self._rank(texts, by_itself)
        return [
            Edit(text, changes[text], rank, lead)
            for text, rank, lead in zip(texts, ranks.tolist(), leads.tolist(), strict=True)
        ]


def _sorted(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The fewest changes first, of these the fewest new words, then those after which the right text leads most."""

    def new_words_in(edit: Edit) -> int:
        return sum(change.kind != "removed" for change in edit.changes)

    return tuple(sorted(edits, key=lambda edit: (len(edit.changes), new_words_in(edit), edit.lead)))


@dataclass(frozen=True, eq=False)
class Embedding:
    """How edited texts are embedded: as those of the index, at one of its layers and poolings."""

    backend: Backend
    options: EmbedOptions  # with the prompt for queries, or that for documents
    layer: int
    pooling: Pooling

    def vectors(self, texts: Sequence[str], by_itself: bool) -> Float32:
        """The vectors of texts, float32 [text, dim], as long as those of the index."""
        options = self.options
        vectors = self.backend.embed(texts, options=options, token_budget=1 if by_itself else None)
        return np.asarray(vectors[options.layers.index(self.layer), options.poolings.index(self.pooling)])


def rank_queries(embedding: Embedding, engine: ExactSearch, row: int, no_rivals: Sequence[int] = ()) -> Rank:
    """Ranks edited queries: where the text of `row` stands in the whole corpus for each.

    The rows `no_rivals` are not counted before it (see failed_queries.SearchedCorpus).
    """
    return lambda texts, by_itself: ranks_and_leads(embedding.vectors(texts, by_itself), engine, row, no_rivals)


def rank_texts(
    embedding: Embedding, engine: ExactSearch, query: Float32, row: int, no_rivals: Sequence[int] = ()
) -> Rank:
    """Ranks edited versions of the text of `row` for one query [dim], each in the place of the original."""
    scores = engine.scores(query)
    others = np.ones(len(scores), bool)
    others[[row, *no_rivals]] = False
    hits = engine.hits_of(query, np.where(others, scores, np.float32(NEVER)).astype(np.float32), 1)
    best = float(hits.scores[0, 0])

    def rank(texts: Sequence[str], by_itself: bool) -> tuple[Int64, Float64]:
        own = cosine(query[None], embedding.vectors(texts, by_itself))  # float64 [text]
        return np.array([_before(query, engine, scores, others, score) + 1 for score in own.tolist()]), best - own

    return rank


def ranks_and_leads(
    queries: Float32, engine: ExactSearch, row: int, no_rivals: Sequence[int] = ()
) -> tuple[Int64, Float64]:
    """The rank of the text of `row` for each query [query, dim], and the lead of the best text that is a rival."""
    others = np.ones(len(engine.vectors), bool)
    others[[row, *no_rivals]] = False
    ranks, leads = np.empty(len(queries), np.int64), np.empty(len(queries))
    for number, query in enumerate(queries):
        scores, own = engine.scores(query), float(cosine(query, engine.vectors[row]))
        ranks[number] = _before(query, engine, scores, others, own) + 1
        best = engine.hits_of(query, np.where(others, scores, np.float32(NEVER)).astype(np.float32), 1)
        leads[number] = float(best.scores[0, 0]) - own
    return ranks, leads


def _before(query: Float32, engine: ExactSearch, scores: Float32, others: np.ndarray, own: float) -> int:
    """How many of the `others` [text] have a cosine of at least `own` with a query; near ones are compared in float64."""
    near = np.flatnonzero(others & (np.abs(scores - own) <= NEAR))
    above = np.count_nonzero(others & (scores > own + NEAR))
    return int(above + np.count_nonzero(cosine(query[None], engine.vectors[near]) >= own - SAME))
