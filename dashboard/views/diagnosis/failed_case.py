"""One failed search: the query with both texts, the words that made the difference, the reason, and the smallest edit."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.why.token_ledger import token_ledger
from components.charts import matrices, theme
from components.charts.retrieval import failures as charts
from components.model.tokenization import MAX_CHARACTERS
from components.numbers import counted
from components.retrieval.failures import repair
from components.retrieval.search import words
from components.retrieval.search.exact import SAME
from components.shown_code.code import Command
from components.shown_code.commands import why
from components.words.forms import forms_in
from components.words.function import is_function_word
from components.words.unicode_words import words as words_of
from dashboard import pair_links, state
from dashboard.corpora import current
from dashboard.jobs import failures
from dashboard.ui import figures, messages
from dashboard.ui.waiting import frame
from dashboard.ui.wording import POOLING_NAMES
from dashboard.views.diagnosis import rivals

if TYPE_CHECKING:
    from components.analysis.why.ledger import Ledger
    from components.retrieval.failures.failed_queries import Placing
    from dashboard.jobs.failures import CorpusQueries

CLOSE = 1e-6  # cosines that differ by no more are shown as equal; they need not be tied
MOST_ROWS = 20  # rows of the figure; the last one sums up all other words
MOST_SHOWN = 20_000  # characters of a text: a row of a file may be a whole book


@dataclass(frozen=True, eq=False)
class Case:
    """The query that is looked into, and where its right text ranks."""

    searched: CorpusQueries
    query: str
    no_rivals: tuple[int, ...]  # rows that are not counted before its right text
    placed: Placing
    name: str = "right text"  # what it is called: the hit before a person has said which text is right is not that
    traits: tuple[str, ...] = ()  # of the query, in the corpus's own file

    @property
    def right(self) -> str:
        return self.searched.corpus.documents.texts[self.placed.row]

    @property
    def rival(self) -> str:
        return self.searched.corpus.documents.texts[self.placed.rival]

    def split(self, text: str) -> tuple[str, ...]:
        """The command that splits the cosine of the query with a text, by tokens."""
        of = self.searched
        return why(of.backend, (self.query, text), of.layer, of.pooling, of.max_length, of.prompts())


@dataclass(frozen=True, eq=False)
class QueryWords:
    """What each query word adds to the cosine with the right text and with the rival."""

    right: Ledger  # rows: the words of the query as typed, last the special tokens
    rival: Ledger
    prompt: int  # characters that the model puts before the query

    @property
    def names(self) -> list[str]:
        return [part.text for part in self.right.first]

    @property
    def differences(self) -> np.ndarray:
        """[word]: how much more a word adds to the cosine with the rival."""
        return np.asarray(self.rival.part_scores()[0] - self.right.part_scores()[0])

    def rows(self, most: int) -> tuple[list[str], np.ndarray, np.ndarray]:
        """At most so many rows of the figure: names, parts of the cosine with the right text and with the rival, both [row].

        The words with the largest differences and the special tokens, in the order of the query; the last row sums up all
        others.
        """
        names, parts = self.names, np.stack([self.right.part_scores()[0], self.rival.part_scores()[0]])  # [text, word]
        if len(names) <= most:
            return names, *parts
        sizes = np.where([part.kind == "special" for part in self.right.first], np.inf, np.abs(self.differences))
        order = np.argsort(-sizes, kind="stable")
        kept, others = np.sort(order[: most - 1]), order[most - 1 :]
        sums = parts[:, others].sum(axis=1, keepdims=True)
        return [*(names[row] for row in kept), f"{len(others)} others"], *np.hstack([parts[:, kept], sums])

    def strongest(self, sign: int) -> int | None:
        """The word that adds most to the lead of the rival (sign 1) or of the right text (-1); None if none adds to it."""
        # By the end, because some tokenizers count the space before a word to it.
        own = [n for n, part in enumerate(self.right.first) if part.kind == "word" and part.end > self.prompt]
        best = max(own, key=lambda number: sign * self.differences[number], default=None)
        return best if best is not None and sign * self.differences[best] > 0 else None

    def _sources(self, sign: int) -> dict[str, float]:
        """What besides the query's words adds to the lead of the rival (sign 1) or of the right text (-1), and how much."""
        sums = {"the special tokens": 0.0, "the model's prompt": 0.0, "punctuation": 0.0}
        for part, difference in zip(self.right.first, self.differences.tolist(), strict=True):
            if part.kind == "special":
                sums["the special tokens"] += sign * difference
            elif part.end <= self.prompt:
                sums["the model's prompt"] += sign * difference
            elif part.kind == "punctuation":
                sums["punctuation"] += sign * difference
        return {name: total for name, total in sums.items() if total > 0}

    def other_sources(self, sign: int) -> list[str]:
        """What besides the query's words adds to the lead of the rival (sign 1) or of the right text (-1)."""
        return list(self._sources(sign))

    def strongest_source(self, sign: int) -> tuple[str, float]:
        """The one of the `other_sources` that adds most, and how much; "" and 0 without any."""
        return max(self._sources(sign).items(), key=lambda item: item[1], default=("", 0.0))


def begin(case: Case) -> QueryWords | None:
    """Draw the query with both texts, the answer, other ways to write the query, and what each of its words adds.

    The last is returned; None for other poolings.
    """
    found = _query_words(case)
    _texts(case)
    st.markdown(f":material/insights: {_reason(case, found)}")
    messages.guarded(lambda: _repairs(case), "repairing the query")
    if found is not None:
        _word_dots(case, found)
    else:
        st.info(
            "The cosine is a sum over words with mean or maximum pooling only, and "
            f"{POOLING_NAMES[case.searched.pooling]} is chosen. Choose another one under “Options” to see what each word adds."
        )
    return found


def further(case: Case, found: QueryWords | None) -> None:
    """Draw the smallest edit, then what else is known about the two texts; `found` is what `begin` has returned."""
    with frame.figure("edits"):
        rivals.edits(case.searched, case.query, case.placed, case.no_rivals, case.name)
    if found is not None:
        _about_dots(case, found)
    _both_texts(case)


def _repairs(case: Case) -> None:
    """Other ways to write the query, each with the rank that it would give. Raises InputError for wrong abbreviations."""
    if not case.placed.is_failed:
        return
    abbreviations = repair.parsed_abbreviations(str(state.get("abbreviations")))
    with frame.figure("repairs"):
        found = failures.repairs_of(case.searched, case.query, case.placed, case.no_rivals, abbreviations)
        lines = []
        for each, rank in found:
            how = f"“{html.escape(each.text)}”"
            if len(each.words) == 1 and each.text == case.query.replace(*each.words[0], 1):
                how = "<s>{}</s> → <b>{}</b>".format(*map(html.escape, each.words[0]))
            kind = ' class="first"' if rank == 1 else ""
            lines.append(f"<li><span>{how}</span><span{kind}>rank {case.placed.rank:,} → <b>{rank:,}</b></span></li>")
        nothing = ""
        if len(case.query) > repair.LONGEST:
            nothing = f"<p>No other way is tried: the query is longer than {repair.LONGEST:,} characters.</p>"
        elif abbreviations:
            nothing = "<p>Nothing to repair: no word is likely to be misspelt, and none is in your list.</p>"
        if not lines and not nothing:
            return
        listed = f"<ul>{''.join(lines)}</ul>" if lines else nothing
        left_out = max((len(each.words) for each, _ in found), default=0) - repair.MOST_ALONE
        if left_out > 0:
            listed += f"<p>Replaced only together with the others: {counted(left_out, 'further word')}.</p>"
        figures.markup(f'<div class="bi-repairs"><h6>Another way to write it</h6>{listed}</div>', "repairs")


def _both_texts(case: Case) -> None:
    """The two texts in numbers, by other rankings, and how often each is found."""
    figures.subheader(f"{case.name.capitalize()} and rival, compared")
    said, sides = st.empty(), st.empty()
    rows = rivals.rows_of_words(case.searched, case.query, case.placed)
    rivals.side_by_side(sides, rows, case.name)
    by_words, jointly = None, None
    figures.subheader("Is the rival found by many queries?")
    with frame.figure("hubs"):
        hubs = rivals.hubs(case.searched, case.placed, case.name)
        rows |= rivals.rows_of_hubs(hubs, case.searched, case.placed)
        rivals.side_by_side(sides, rows, case.name)
    with frame.figure("by_words"):
        by_words = rivals.by_words(case.searched, case.query, case.placed)
        rows |= by_words.rows()
        rivals.side_by_side(sides, rows, case.name)
    # Last: the first time, its model is loaded, and the rest must not wait for it.
    with frame.figure("by_cross_encoder"):
        jointly = rivals.by_cross_encoder(case.searched, case.query, case.placed)
        if jointly is not None:
            rows |= jointly.rows()
            rivals.side_by_side(sides, rows, case.name)
    opinions = rivals.opinions([item for item in (by_words, jointly) if item is not None], case.name)
    if opinions:
        said.markdown(f":material/insights: {opinions}")


def _texts(case: Case) -> None:
    """The query and both texts, whole, with ranks and cosines; words that a text shares with the query are marked."""
    placed, count = case.placed, len(case.searched.corpus.firsts)
    cosines = told_apart(placed.right_cosine, placed.rival_cosine)
    ranks = (placed.rank, 2 if placed.rank == 1 else 1)
    limit = case.searched.max_length
    prompt = case.searched.prompts()[1]
    before, *tokens = case.searched.backend.tokenization.lengths(
        [prompt.rstrip(), *(prompt + text[:MOST_SHOWN] for text in (case.right, case.rival))]
    )  # special tokens included
    searched = case.searched
    setting = f"{searched.backend.spec.title} · layer {searched.layer} · {POOLING_NAMES[searched.pooling]}"
    parts = [
        f"<section><h6>Query <span>{html.escape(setting)}</span></h6>"
        f'<p class="query" dir="auto">{html.escape(case.query)}</p>'
        + (f"<p>Traits: {html.escape(', '.join(case.traits))}</p>" if case.traits else "")
        + "</section>"
    ]
    ids = current.own_ids(current.in_use())
    for name, kind, text, cosine, rank, length, row in zip(
        (case.name.capitalize(), "Its rival"),
        ("right", "rival"),
        (case.right, case.rival),
        cosines,
        ranks,
        tokens,
        (placed.row, placed.rival),
        strict=True,
    ):
        facts = f"{html.escape(ids[row].strip())} · " if ids else ""
        facts += f"rank <b>{rank:,}</b> of {count:,} · cosine <b>{cosine}</b> · "
        if length > limit:
            around = "the prompt and the special ones" if prompt else "the special ones"
            facts += f"the model read only its first {max(0, limit - before)} tokens ({limit} with {around})"
        else:
            facts = facts.removesuffix(" · ")
        parts.append(
            f'<section class="{kind}"><h6>{name} <span>{facts}</span></h6>'
            f'<p dir="auto">{_marked(case.query, text[:MOST_SHOWN])}{" …" if len(text) > MOST_SHOWN else ""}</p></section>'
        )
    figures.markup(f'<div class="bi-case">{"".join(parts)}</div>', "failed_case")


def _marked(query: str, text: str) -> str:
    """A text as HTML, with the words it shares with the query marked."""
    pieces, end = [], 0
    for start, stop in words.highlighted(query, text):
        pieces += [html.escape(text[end:start]), f"<mark>{html.escape(text[start:stop])}</mark>"]
        end = stop
    return "".join([*pieces, html.escape(text[end:])])


def told_apart(first: float, second: float) -> tuple[str, str]:
    """Two numbers with three digits, or with as many more (at most six) as it takes to tell them apart."""
    digits = (
        3
        if abs(first - second) <= CLOSE
        else next((n for n in range(3, 6) if f"{first:.{n}f}" != f"{second:.{n}f}"), 6)
    )
    return theme.number(first, digits), theme.number(second, digits)


def _reason(case: Case, found: QueryWords | None) -> str:
    """Why the search failed, in one sentence."""
    placed = case.placed
    if placed.is_failed and placed.lead <= SAME:
        return f"**Both texts have the same cosine**, and a tie counts against the {case.name}."
    if abs(placed.lead) < CLOSE:
        larger = "rival" if placed.is_failed else case.name
        return f"**The two cosines differ by less than {CLOSE:f}**, and that of the {larger} is the larger one."
    if found is None:
        names, cosines = (case.name, "rival"), told_apart(placed.right_cosine, placed.rival_cosine)
        nearer, further = (1, 0) if placed.is_failed else (0, 1)
        return (
            f"**The {names[nearer]} is nearer to the query than the {names[further]}**: its cosine is {cosines[nearer]}, "
            f"against {cosines[further]}."
        )
    sign = 1 if placed.is_failed else -1
    number = found.strongest(sign)
    if number is None:
        whose = "the rival" if placed.is_failed else f"the {case.name}"
        sources = " and ".join(found.other_sources(sign))
        return f"**No single word of the query speaks for {whose}**" + (
            f": its lead comes from {sources}." if sources else "."
        )
    word, more = found.names[number], abs(float(found.differences[number]))
    name = messages.escape(word)
    source, whole = found.strongest_source(sign)
    source += {"": "", "the special tokens": " speak"}.get(source, " speaks")
    if not placed.is_failed:
        if source and whole > more:
            return (
                f"**This search does not fail**: the {case.name} ranks first, and {source} most for it; of the words, “{name}” "
                "does."
            )
        return f"**This search does not fail**: the {case.name} ranks first, and “{name}” speaks most for it."
    which = _where_it_stands(word, case.right[:MOST_SHOWN], case.rival[:MOST_SHOWN], case.name)
    if source and whole > more:
        return (
            f"**{source[0].upper()}{source[1:]} most for the rival**: {theme.number(whole)} more there than for the "
            f"{case.name}; of the words, “{name}” adds most, {theme.number(more)} more{which}."
        )
    return f"**“{name}” speaks most for the rival**: it adds {theme.number(more)} more there than to the {case.name}{which}."


def _where_it_stands(word: str, right: str, rival: str, name: str) -> str:
    """Which of two texts have a word, or another form of it, as the end of a sentence; `name` is that of the first text."""
    has_right, has_rival = (_has(text, word) for text in (right, rival))
    other_right, other_rival = (
        "" if has else _form(text, word) for has, text in ((has_right, right), (has_rival, rival))
    )
    if has_right and has_rival:
        return ", though both texts have this word"
    if has_rival:
        return f"; the {name} has “{other_right}”" if other_right else ", and only the rival has this word"
    if has_right:
        return f", though the {name} has this very word" if other_rival else f", though only the {name} has this word"
    if other_right and other_rival:
        both = f"“{other_right}”" if other_right == other_rival else f"“{other_right}” and “{other_rival}”"
        return f", though both texts have a form of this word ({both})"
    if other_rival:
        return f", and only the rival has a form of this word (“{other_rival}”)"
    if other_right:
        return f", though only the {name} has a form of this word (“{other_right}”)"
    return ", though neither text has this word"


def _has(text: str, word: str) -> bool:
    """Whether a text has a word as typed, or its content: "Juror" for "Juror's", but not "couldn't" for "didn't"."""
    own, found = {one.removesuffix("'s") for one in words_of(word)}, {one.removesuffix("'s") for one in words_of(text)}
    return own <= found or not found.isdisjoint(word for word in own if not is_function_word(word))


def _form(text: str, word: str) -> str:
    """Another form of a word that a text has, escaped for Markdown: "vouchers" for "voucher"; empty if it has none."""
    for own in words_of(word):
        if not is_function_word(own) and (forms := forms_in(own, words_of(text))):
            return messages.escape(forms[0])
    return ""


def _query_words(case: Case) -> QueryWords | None:
    """What each query word adds to both cosines; None for a pooling without parts."""
    searched = case.searched
    if searched.pooling not in {"mean", "max"}:
        return None
    for_query, for_text = searched.prompts()
    texts = cut_together((for_query, case.query), (for_text, case.right), (for_text, case.rival))
    trace = searched.backend.trace(texts, max_length=searched.max_length, prompt="")
    query, right, rival = trace.sentences
    return QueryWords(
        token_ledger(trace, searched.layer, searched.pooling, 0, 1).by_typed_word(query, right),
        token_ledger(trace, searched.layer, searched.pooling, 0, 2).by_typed_word(query, rival),
        len(for_query),
    )


def cut_together(*texts: tuple[str, str]) -> list[str]:
    """Each prompt with its text, of which the longest are cut so that one trace holds them all.

    No text is cut to less than its share of the characters.
    """
    left = MAX_CHARACTERS - sum(len(prompt) for prompt, _ in texts)
    kept: dict[int, int] = {}  # the shortest first, so that what they leave is for the others
    for place in sorted(range(len(texts)), key=lambda place: len(texts[place][1])):
        kept[place] = min(len(texts[place][1]), max(0, left) // (len(texts) - len(kept)))
        left -= kept[place]
    return [prompt + text[: kept[place]] for place, (prompt, text) in enumerate(texts)]


def _word_dots(case: Case, found: QueryWords) -> None:
    names, by_right, by_rival = found.rows(MOST_ROWS)
    is_long = len(found.names) > MOST_ROWS

    def table() -> pd.DataFrame:
        names, by_right, by_rival = found.rows(len(found.names))  # all of them
        frame = pd.DataFrame(
            {
                "word": names,
                case.name: by_right,
                "rival": by_rival,
                f"rival minus {case.name}": by_rival - by_right,
            }
        )
        total = frame.drop(columns="word").sum()
        return pd.concat([frame, pd.DataFrame([{"word": "sum: the cosine", **total}])], ignore_index=True).round(5)

    figures.figure(
        charts.word_dots(
            names, by_right, by_rival, "What each query word adds", has_rest=is_long, right_name=case.name
        ),
        key="why_words",
        code=Command(token_ledger, case.split(case.right), case.split(case.rival)),
        alt=f"Parts of {len(found.names)} query words in the cosines with the {case.name} and the rival, and "
        "their differences",
        table=table,
    )
    if is_long:
        st.caption(
            ":material/info: A long query: the words with the largest differences have dots; the last row sums up the "
            f"{len(found.names) - MOST_ROWS + 1:,} others. The data have every word."
        )


def _about_dots(case: Case, found: QueryWords) -> None:
    """How to read the dots, links to the split by tokens, and both matrices of words."""
    figures.reading(
        f"Blue dot: what a query word adds to the cosine with the {case.name}; orange dot: to that with the rival. The line "
        "between them has the colour of the text for which the word speaks, and its number says how much more it adds to the "
        "rival. The sums, above, are the cosines: the parts are exact. In the texts, words of the query are marked.",
        "What would happen without a word: all other vectors change then as well. The edits test that. [CLS] and [SEP] "
        "hold what the model gathered from the whole query.",
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="row_split_links"):
        st.markdown("Split the score by pairs of tokens:", width="content")
        pair_links.button(f"Query and {case.name}", case.query, case.right, "score-split", key="split_right")
        pair_links.button("Query and rival", case.query, case.rival, "score-split", key="split_rival")
    with st.expander("Each query word with each word of both texts", icon=":material/grid_on:"):
        _matrices(case, found.right, found.rival)


def _matrices(case: Case, right: Ledger, rival: Ledger) -> None:
    """The query word by word with both texts, on one colour scale."""
    most = float(max(np.abs(right.contributions).max(), np.abs(rival.contributions).max()))
    for column, name, ledger in zip(st.columns(2), (case.name, "rival"), (right, rival), strict=True):
        rows, columns = (matrices.axis_labels([part.text for part in parts]) for parts in (ledger.first, ledger.second))
        with column:
            figures.matrix(
                ledger.contributions,
                rows,
                columns,
                f"Query and {name}: {theme.number(ledger.cosine)} in all",
                key=f"why_ledger_{name.split()[0]}",
                code=Command(token_ledger, case.split(case.right if ledger is right else case.rival)),
                alt=f"Parts of {len(rows)} query words with {len(columns)} words of the {name}",
                rows="query word",
                columns=f"word of the {name}",
                value="part of the cosine",
                limits=(-most, most),
                diverging=True,
            )
    figures.reading(
        "Each cell is what a pair of words adds to the cosine; the cells of a matrix add up to the number in its title. Both "
        "have one scale.",
        "Which pair a person would call the reason: vectors of words hold their neighbours too.",
    )
