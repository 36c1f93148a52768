"""The right text and its rival side by side: words, edits that help, how often each is found, and other rankings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.charts.retrieval import failures as charts
from components.function_words import FUNCTION_WORDS
from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY
from components.retrieval.evaluation.ranks import TIED
from components.retrieval.failures.edits import Change, Edit, EditSearch
from components.retrieval.search import words
from dashboard import state
from dashboard.jobs import failures, rankers, reranking
from dashboard.ui import figures, messages
from dashboard.ui.wording import INCLUDED_CROSS_ENCODER, counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlit.delta_generator import DeltaGenerator

    from components.retrieval.failures.failed_queries import Placing
    from components.retrieval.failures.hubness import Hubness
    from dashboard.jobs.failures import Searched

Row = tuple[str, str]  # what a line of the table says of the right text and of the rival
MOST_CHARACTERS = 600  # of a text in the table
SHOWN_EDITS = 10  # the data of the list have all
SCORED = 10  # first hits that a cross-encoder reads, besides the right text


@dataclass(frozen=True)
class Opinion:
    """The scores and ranks that another ranking gives to both texts."""

    name: str
    unit: str
    scores: tuple[float, float]  # of the right text and of the rival
    ranks: tuple[int, int]
    among: str  # what the ranks count

    @property
    def prefers_right(self) -> bool:
        return self.scores[0] > self.scores[1]

    @property
    def is_tied(self) -> bool:
        return abs(self.scores[0] - self.scores[1]) <= TIED

    def rows(self) -> dict[str, Row]:
        """The line of the table."""
        right, rival = (
            f"{self.unit} {score:.3f}, rank {rank:,} {self.among}"
            for score, rank in zip(self.scores, self.ranks, strict=True)
        )
        return {self.name: (right, rival)}


def rows_of_words(searched: Searched, query: str, placed: Placing) -> dict[str, Row]:
    """Texts, ranks, lengths and shared words of both."""
    texts = searched.corpus.documents.texts
    both = (texts[placed.row], texts[placed.rival])
    tokens = searched.backend.tokenization.lengths([text[:100_000] for text in both])
    query_words = list(dict.fromkeys(words.words(query)))
    ranks = (placed.rank, 2 if placed.rank == 1 else 1)
    cosines = (placed.right_cosine, placed.rival_cosine)

    def rows(number: int) -> dict[str, str]:
        text, found = both[number], set(words.words(both[number]))
        shared = [word for word in query_words if word in found]
        cut = f", truncated to {searched.max_length}" if tokens[number] > searched.max_length else ""
        return {
            "text": text[:MOST_CHARACTERS] + (" …" if len(text) > MOST_CHARACTERS else ""),
            "cosine and rank": f"{cosines[number]:.4f}, rank {ranks[number]:,}",
            "length": f"{counted(len(words.words(text)), 'word')}, {counted(tokens[number], 'token')}{cut}",
            "shared words": ", ".join(word for word in shared if word not in FUNCTION_WORDS) or "none",
            "shared function words": ", ".join(word for word in shared if word in FUNCTION_WORDS) or "none",
        }

    right, rival = rows(0), rows(1)
    return {name: (right[name], rival[name]) for name in right}


def rows_of_hubs(hubs: Hubness, placed: Placing) -> dict[str, Row]:
    """How often both texts are found."""
    right, rival = (f"{int(hubs.counts[row]):,} of {hubs.queries:,} queries" for row in (placed.row, placed.rival))
    return {f"among the first {hubs.k} hits of": (right, rival)}


def side_by_side(slot: DeltaGenerator, placed: Placing, rows: Mapping[str, Row]) -> None:
    """Draw the table in its place, again whenever a line is added."""
    with slot.container():
        frame = pd.DataFrame(
            {
                "": list(rows),
                "right text": [right for right, _ in rows.values()],
                "rival": [rival for _, rival in rows.values()],
            }
        )
        figures.plain_table(frame)


def edits(searched: Searched, query: str, placed: Placing, right_rows: Sequence[int]) -> None:
    """The smallest edits that bring the right text to rank 1."""
    if not placed.is_failed:
        return
    st.subheader("Which edit would bring the right text to rank 1?", anchor=False)
    found = failures.edits_of(searched, query, placed, right_rows)
    if found is None:
        return
    by_query, by_text = found
    _edit_list(by_query, "edits")
    if by_text is not None:
        _edit_list(by_text, "text_edits")
    st.caption(
        "Each edited text went through the model, and the whole corpus was ranked for it. Two words are edited only if no "
        "single word helps."
    )


def _edit_list(found: EditSearch, key: str) -> None:
    name = "query" if found.side == "query" else "right text"
    tried = f"{counted(found.tried, 'edit')} of the {name} that {'was' if found.tried == 1 else 'were'} tried"
    if found.untried:
        tried += f"; {found.untried:,} edits of one word were not"
    if not found.helping:
        nearest = found.nearest
        near = (
            f" The nearest one, {_in_words(nearest)}, leaves the right text at rank {nearest.rank:,}."
            if nearest is not None
            else ""
        )
        st.markdown(f":material/insights: **No edit of the {name} helps** (of {tried}).{near}")
        return
    best = found.helping[0]
    more = f"at least {len(found.helping)}" if found.has_more else str(len(found.helping))
    st.markdown(
        f":material/insights: **{_sentence(best)}** and the right text ranks first ({more} of {tried} do this)."
    )
    frame = pd.DataFrame(
        [
            {
                "words": len(edit.changes),
                "edit": _plain(edit.changes),
                f"{name} then": edit.text[:MOST_CHARACTERS],
                "rank": edit.rank,
                "lead of the right text": f"{-edit.lead:.4f}",
            }
            for edit in found.helping
        ]
    )
    figures.whole_texts(frame.head(SHOWN_EDITS), key=key)
    figures.data(key, lambda: frame)


def _plain(changes: Sequence[Change]) -> str:
    """What an edit does, as text that is not escaped."""
    said = []
    for change in changes:
        if change.kind == "removed":
            said.append(f"without “{change.word}”")
        elif change.kind == "replaced":
            said.append(f"“{change.by}” in place of “{change.word}”")
        else:
            said.append(f"with “{change.word}” at the end")
    return ", ".join(said)


def _in_words(edit: Edit) -> str:
    return messages.escape(_plain(edit.changes))


def _sentence(edit: Edit) -> str:
    """An edit as the beginning of a sentence that goes on with "and"."""
    said = []
    for change in edit.changes:
        if change.kind == "removed":
            said.append(f"remove “{change.word}”")
        elif change.kind == "replaced":
            said.append(f"write “{change.by}” in place of “{change.word}”")
        else:
            said.append(f"add “{change.word}” to the end")
    text = messages.escape(", ".join(said))
    return text[0].upper() + text[1:] + ","


def hubs(searched: Searched, placed: Placing) -> Hubness | None:
    """How often both texts are found, beside all others; None until it is counted."""
    st.subheader("Is the rival found by many queries?", anchor=False)
    found = failures.occurrences(searched)
    if found is None:
        return None
    right, rival = int(found.counts[placed.row]), int(found.counts[placed.rival])
    source = "queries" if searched.queries is not None else "texts of the corpus, each as a query"
    verdict = "so it counts as a hub" if found.is_hub(placed.rival) else "so it is no hub by this rule"
    figures.figure(
        charts.occurrence_histogram(
            found.counts,
            {"right text": right, "rival": rival},
            found.mean,
            "Texts by how many queries find them",
        ),
        key="hubness",
        alt=f"Histogram over {len(found.counts):,} texts of the number of queries that find each among the first {found.k}",
        message=f"The rival is among the first {found.k} of **{rival:,}** of {found.queries:,} {source}, the right text of "
        f"{right:,}; the mean is {found.mean:.1f} and the largest count {int(found.counts.max()):,}. A hub has more than "
        f"{found.hub_from:.1f}, {verdict}.",
        read="Each bar counts texts by the number of queries that have them among their first hits, the **k-occurrence** "
        "([Radovanović et al. 2010](https://www.jmlr.org/papers/v11/radovanovic10a.html)). A long tail to the right means "
        f"hubs: texts that many different queries find. The skewness is {found.skewness:.2f}; 0 is symmetric. A hub lies more "
        "than two standard deviations above the mean.",
        not_shown="Whether a hub is found wrongly: a text on a subject of many queries is found often with good reason. Other "
        "queries give other counts.",
        table=lambda: pd.DataFrame(
            {
                "number": np.arange(len(found.counts)),
                "k-occurrence": found.counts,
                "text": searched.corpus.documents.texts,
            }
        ).sort_values("k-occurrence", ascending=False, kind="stable"),
    )
    return found


def hub_sentence(hubs: Hubness, searched: Searched, placed: Placing) -> str:
    """The headline's sentence on how often the rival is found."""
    of = "queries" if searched.queries is not None else "texts, each as a query,"
    return (
        f"Of {hubs.queries:,} {of} {int(hubs.counts[placed.rival]):,} find the rival among their first {hubs.k} hits (the mean "
        f"is {hubs.mean:.1f})."
    )


def by_words(searched: Searched, query: str, placed: Placing) -> Opinion | None:
    """BM25's scores and ranks of both texts; None while words are counted."""
    ranker = rankers.word_ranker(searched.backend, searched.corpus.documents, "bm25")
    if ranker is None:
        return None
    scores = ranker.scores(query)
    right, rival = (float(scores[row]) for row in (placed.row, placed.rival))
    first, second = (int(np.count_nonzero(scores >= score - TIED * max(1.0, abs(score)))) for score in (right, rival))
    return Opinion("BM25", "score", (right, rival), (first, second), f"of {len(scores):,}")


def by_cross_encoder(searched: Searched, query: str, placed: Placing) -> Opinion | None:
    """The cross-encoder's scores of both texts, with their ranks among the first hits; None if it is not available."""
    stage = reranking.cross_encoder()
    if stage is None:
        return None
    corpus = searched.corpus.documents
    hits = searched.engine.search(searched.vector(query)[None], SCORED).indices[0]
    rows = np.array(list(dict.fromkeys([*hits.tolist(), placed.row, placed.rival])), np.int64)
    scored = reranking.scored(stage, corpus, query, rows, "why", view="debugger")
    if scored is None:
        return None
    both = [float(scored.scores[rows.tolist().index(row)]) for row in (placed.row, placed.rival)]
    ranks = [int(np.count_nonzero(scored.scores >= score)) for score in both]
    if state.get("cross_encoder") == EMBEDDED_CROSS_ENCODER_KEY:
        st.caption(INCLUDED_CROSS_ENCODER)
    name = f"cross-encoder, {stage.title}"
    return Opinion(name, stage.unit, (both[0], both[1]), (ranks[0], ranks[1]), f"of {len(rows)} read")


def opinions(found: Sequence[Opinion]) -> str:
    """The headline's sentence on which text the other rankings put first."""
    names: dict[bool, list[str]] = {True: [], False: []}
    for item in found:
        if not item.is_tied:
            names[item.prefers_right].append("BM25" if item.name == "BM25" else "the cross-encoder")
    said = []
    for is_right, text in ((True, "right text before the rival"), (False, "rival before the right text")):
        if names[is_right]:
            verb = "puts" if len(names[is_right]) == 1 else "put"
            said.append(f"{' and '.join(names[is_right])} {verb} the {text}")
    tied = ["BM25" if item.name == "BM25" else "the cross-encoder" for item in found if item.is_tied]
    if tied:
        said.append(f"{' and '.join(tied)} {'gives' if len(tied) == 1 else 'give'} both the same score")
    text = ", ".join(said)
    return f"{text[0].upper()}{text[1:]}." if text else ""
