"""The right text and its rival side by side: words, edits that help, how often each is found, and other rankings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.charts import theme
from components.charts.retrieval import failures as charts
from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY
from components.retrieval.evaluation.ranks import TIED
from components.retrieval.failures.edits import Edit, EditSearch, WordEdit
from components.retrieval.failures.hubness import k_occurrence
from components.retrieval.rankings.ranking import Ranking
from components.shown_code.code import Command, NoCode
from components.words.forms import forms_in
from components.words.function import is_function_word
from components.words.unicode_words import words as words_of
from dashboard import state
from dashboard.corpora import word_rankings
from dashboard.jobs import failures, reranking
from dashboard.jobs.stored import cross_looks
from dashboard.ui import figures, messages, model_gate
from dashboard.ui.wording import counted, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlit.delta_generator import DeltaGenerator

    from components.arrays import Float32, Int64
    from components.retrieval.failures.failed_queries import Placing
    from components.retrieval.failures.hubness import Hubness
    from dashboard.jobs.failures import CorpusQueries

Row = tuple[str, str]  # what a line of the table says of the right text and of the rival
MOST_CHARACTERS = 600  # of an edited text
SHOWN_EDITS = 10  # the data of the list have all
NO_CODE = NoCode(
    "There is no code for it: the edits depend on searches that are stopped as soon as enough of them help."
)
SCORED = 10  # first hits that a cross-encoder reads, besides the right text


@dataclass(frozen=True, eq=False)
class Opinion:
    """What another ranking says of both texts."""

    ranking: Ranking
    right: int  # the number of the text among those that are ranked
    rival: int
    among: str  # what the ranks count

    @property
    def scores(self) -> tuple[float, float]:
        """Of the right text and of the rival; 0 where the ranking does not find it."""
        right, rival = np.nan_to_num(self.ranking.scores[[self.right, self.rival]]).tolist()
        return right, rival

    @property
    def ranks(self) -> tuple[int | None, int | None]:
        """Of the right text and of the rival; None where the ranking does not find it."""
        return self.ranking.rank_of(self.right), self.ranking.rank_of(self.rival)

    @property
    def prefers_right(self) -> bool:
        return self.scores[0] > self.scores[1]

    @property
    def is_tied(self) -> bool:
        return abs(self.scores[0] - self.scores[1]) <= TIED

    def rows(self) -> dict[str, Row]:
        """The line of the table."""
        right, rival = (
            f"{self.ranking.unit} {theme.number(score)}, "
            + ("not found" if rank is None else f"rank {rank:,} {self.among}")
            for score, rank in zip(self.scores, self.ranks, strict=True)
        )
        return {self.ranking.name: (right, rival)}


def rows_of_words(searched: CorpusQueries, query: str, placed: Placing) -> dict[str, Row]:
    """Lengths and shared words of both."""
    texts = searched.corpus.documents.texts
    both = (texts[placed.row], texts[placed.rival])
    prompt = searched.prompts()[1]
    tokens = searched.backend.tokenization.lengths([prompt + text[:100_000] for text in both])
    with_prompt = " with the model's prompt" if prompt else ""
    query_words = list(dict.fromkeys(words_of(query)))

    def rows(number: int) -> dict[str, str]:
        text, found = both[number], set(words_of(both[number]))
        shared = [word for word in query_words if word in found]
        cut = f", truncated to {searched.max_length}" if tokens[number] > searched.max_length else ""
        return {
            "length": f"{counted(len(words_of(text)), 'word')}, {counted(tokens[number], 'token')}{with_prompt}{cut}",
            "shared words": ", ".join(word for word in shared if not is_function_word(word)) or "none",
            "other forms of its words": ", ".join(_forms(query_words, found)) or "none",
            "shared function words": ", ".join(word for word in shared if is_function_word(word)) or "none",
        }

    right, rival = rows(0), rows(1)
    return {name: (right[name], rival[name]) for name in right}


def _forms(query_words: Sequence[str], found: Iterable[str]) -> list[str]:
    """The words of a text that are another form of a word of the query, such as "vouchers" for "voucher"."""
    content = [word for word in query_words if not is_function_word(word)]
    forms = (form for word in content for form in forms_in(word, sorted(found)))
    return [form for form in dict.fromkeys(forms) if form not in content]


def rows_of_hubs(hubs: Hubness, searched: CorpusQueries, placed: Placing) -> dict[str, Row]:
    """How often both texts are found."""
    places = searched.corpus.place_of[[placed.row, placed.rival]]
    right, rival = (f"{count:,} of {hubs.queries:,} queries" for count in hubs.counts[places].tolist())
    return {f"among the first {hubs.k} hits of": (right, rival)}


def side_by_side(slot: DeltaGenerator, rows: Mapping[str, Row], right_name: str) -> None:
    """Draw the table in its place, again whenever a line is added."""
    with slot.container():
        frame = pd.DataFrame(
            {
                "": list(rows),
                right_name: [right for right, _ in rows.values()],
                "rival": [rival for _, rival in rows.values()],
            }
        )
        figures.plain_table(frame, key="failed_search_facts")


def edits(searched: CorpusQueries, query: str, placed: Placing, no_rivals: Sequence[int], right_name: str) -> None:
    """The smallest edit that brings the right text to rank 1, and a panel with all that were found."""
    if not placed.is_failed:
        return
    searches = failures.edits_of(searched, query, placed, no_rivals)
    sides = [side for side in searches if side is not None]
    for side in sides:
        st.markdown(f":material/edit: {_smallest(side, right_name)}")
    with st.expander("The edits that were tried", icon=":material/list:"):
        for side in sides:
            _edit_list(side, right_name, "edits" if side.side == "query" else "text_edits")
        st.caption(
            "Each edited text went through the model, and the whole corpus was ranked for it. Two words are edited only if no "
            "single word helps."
        )


def _smallest(found: EditSearch, right_name: str) -> str:
    """The smallest edit that helps, or that none does, in a sentence."""
    name = _side_name(found, right_name)
    if found.helping:
        best = found.helping[0]
        then = messages.escape(shortened(best.text, MOST_CHARACTERS))
        return (
            f"**Smallest edit of the {name}**: {_sentence(best)}, and the {right_name} ranks first. The {name} then reads "
            f"“{then}”. It shows what the model reacts to, and is no advice for writing."
        )
    near = found.nearest
    if near is None:
        return f"**No edit of the {name} brings the {right_name} to rank 1.**"
    return (
        f"**No edit of the {name} brings the {right_name} to rank 1.** The nearest, {_in_words(near)}, leaves it at rank "
        f"{near.rank:,}."
    )


def _side_name(found: EditSearch, right_name: str) -> str:
    return "query" if found.side == "query" else right_name


def _edit_list(found: EditSearch, right_name: str, key: str) -> None:
    name = _side_name(found, right_name)
    more = f"at least {len(found.helping)}" if found.has_more else str(len(found.helping))
    tried = f"{counted(found.tried, 'edit')} of the {name} {'was' if found.tried == 1 else 'were'} tried"
    if found.untried:
        tried += f", {found.untried:,} edits of one word were not"
    st.markdown(f"{tried}; {more if found.helping else 'none'} of them {'help' if more != '1' else 'helps'}.")
    if not found.helping:
        return
    frame = pd.DataFrame(
        [
            {
                "words": len(edit.changes),
                "edit": _plain(edit.changes),
                f"{name} then": edit.text[:MOST_CHARACTERS],
                "rank": edit.rank,
                f"lead of the {right_name}": theme.number(-edit.lead, 4),
            }
            for edit in found.helping
        ]
    )
    # The rank is 1 in all rows, and the edit says how many words it has: the data have both.
    figures.whole_texts(frame.head(SHOWN_EDITS).drop(columns=["words", "rank"]), key=key)
    figures.data(key, lambda: frame, NO_CODE)


def _plain(changes: Sequence[WordEdit]) -> str:
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
    """What to do for an edit, as the beginning of a sentence that goes on."""
    said = []
    for change in edit.changes:
        if change.kind == "removed":
            said.append(f"remove “{change.word}”")
        elif change.kind == "replaced":
            said.append(f"replace “{change.word}” by “{change.by}”")
        else:
            said.append(f"add “{change.word}” to the end")
    return messages.escape(" and ".join(said))


def hubs(searched: CorpusQueries, placed: Placing, right_name: str) -> Hubness:
    """How often both texts are found, beside all others. Raises NotReady until it is counted."""
    hubness = failures.occurrences(searched)
    corpus = searched.corpus
    own_place, rival_place = corpus.place_of[[placed.row, placed.rival]].tolist()
    right, rival = int(hubness.counts[own_place]), int(hubness.counts[rival_place])
    source = "queries" if searched.queries is not None else "texts of the corpus, each as a query"
    verdict = "the rival is one" if hubness.is_hub(rival_place) else "the rival is not one"
    figures.figure(
        charts.occurrence_histogram(
            hubness.counts,
            {right_name: right, "rival": rival},
            hubness.mean,
            "Texts by how many queries find them",
        ),
        key="hubness",
        code=Command(k_occurrence),
        alt=f"Histogram over {len(hubness.counts):,} texts of the number of queries that find each among the first {hubness.k}",
        message=f"The rival is among the first {hubness.k} of **{rival:,}** of {hubness.queries:,} {source}, the {right_name} "
        f"of {right:,}; the mean is {hubness.mean:.1f} and the largest count {int(hubness.counts.max()):,}. A text that "
        f"{int(hubness.hub_from) + 1} or more queries find counts as a hub: {verdict}.",
        read="Each bar counts texts by the number of queries that have them among their first hits, the **k-occurrence** "
        "([Radovanović et al. 2010](https://www.jmlr.org/papers/v11/radovanovic10a.html)). A long tail to the right means "
        f"hubs: texts that many different queries find. The skewness is {theme.number(hubness.skewness, 2)}; 0 is "
        "symmetric. A hub lies more than two standard deviations above the mean.",
        not_shown="Whether a hub is found wrongly: a text on a subject of many queries is found often with good reason. Other "
        "queries give other counts.",
        table=lambda: pd.DataFrame(
            {
                "number": corpus.firsts,
                "k-occurrence": hubness.counts,
                "text": [corpus.documents.texts[row] for row in corpus.firsts],
            }
        ).sort_values("k-occurrence", ascending=False, kind="stable"),
    )
    return hubness


def by_words(searched: CorpusQueries, query: str, placed: Placing) -> Opinion:
    """BM25's scores and ranks of both texts. Raises NotReady while words are counted."""
    ranker = word_rankings.ranker(searched.backend, searched.corpus.documents, "bm25")
    return of_words(ranker.scores(query), searched.corpus.first_of, placed)


def of_words(scores: Float32, first_of: Int64, placed: Placing) -> Opinion:
    """BM25's opinion by its scores [text]; a text without a word of the query has the score 0, and no rank.

    Equal texts are one text: `first_of` [text] is the first one that is equal.
    """
    is_first = first_of == np.arange(len(scores))
    ranking = Ranking.of_scores("BM25", "score", np.where(is_first & (scores > 0), scores, np.float32(np.nan)), SCORED)
    right, rival = first_of[[placed.row, placed.rival]].tolist()
    return Opinion(ranking, right, rival, f"of {np.count_nonzero(is_first):,}")


def by_cross_encoder(searched: CorpusQueries, query: str, placed: Placing) -> Opinion | None:
    """The cross-encoder's scores of both texts, with their ranks among the first hits; None without one. Raises NotReady."""
    stage = model_gate.cross_encoder_stage()
    if stage is None:
        return None
    corpus = searched.corpus.documents
    hits = searched.first_hits(query, SCORED)
    rows = np.array(list(dict.fromkeys([*hits.tolist(), placed.row, placed.rival])), np.int64)
    scores = reranking.scored(stage, corpus, query, rows, "why", view="debugger").scores
    ranking = Ranking.of_candidates(f"cross-encoder, {stage.title}", stage.unit, scores, rows, len(corpus))
    if state.get("cross_encoder") == EMBEDDED_CROSS_ENCODER_KEY and not state.get("corpus"):  # measured on the demo
        st.caption(cross_looks.finding())
    return Opinion(ranking, placed.row, placed.rival, f"of {len(rows)} read")


def opinions(found: Sequence[Opinion], right_name: str) -> str:
    """The headline's sentence on which text the other rankings put first."""
    names: dict[bool, list[str]] = {True: [], False: []}
    for item in found:
        if not item.is_tied:
            names[item.prefers_right].append("BM25" if item.ranking.name == "BM25" else "the cross-encoder")
    said = []
    for is_right, text in ((True, f"{right_name} before the rival"), (False, f"rival before the {right_name}")):
        if names[is_right]:
            verb = "puts" if len(names[is_right]) == 1 else "put"
            said.append(f"{' and '.join(names[is_right])} {verb} the {text}")
    said += ["BM25 finds neither of them" for item in found if item.ranks == (None, None)]
    tied = [
        "BM25" if item.ranking.name == "BM25" else "the cross-encoder"
        for item in found
        if item.is_tied and item.ranks != (None, None)
    ]
    if tied:
        said.append(f"{' and '.join(tied)} {'gives' if len(tied) == 1 else 'give'} both the same score")
    text = ", ".join(said)
    return f"{text[0].upper()}{text[1:]}." if text else ""
