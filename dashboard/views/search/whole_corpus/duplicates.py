"""The most similar pairs of a corpus: in what they differ, how near each sentence's nearest other one is, and the pairs."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from components.arrays import cosine
from components.charts import histogram, theme
from components.numbers import counted
from components.retrieval.corpora.demo import sentences_that_differ
from components.retrieval.search.paraphrases import SimilarPair, most_similar_pairs, nearest_cosines
from components.shown_code.arrays import columns
from components.words.differences import KINDS, OPPOSED, TextDifference, difference, shared
from dashboard import caching, settings, state
from dashboard.corpora import current
from dashboard.jobs import requests
from dashboard.ui import controls, figures, messages, wording
from dashboard.ui.waiting import frame
from dashboard.views.search.chance import TIE
from dashboard.views.search.request import SearchRequest

if TYPE_CHECKING:
    import numpy as np

    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.model.trace import Pooling
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.index.folder import VectorIndex
    from components.words.differences import Kind, Piece

PAIRS_AT_ONCE = 5_000  # sentences whose pairs are all compared without asking
OF_EACH_KIND = 2  # pairs that stand first, so that the first screen has all kinds
SHOWN_CHARACTERS = 300  # of a text
BEFORE_DIFFERENCE = 100  # characters that are shown before the first difference of long texts
IN_BOX = 9  # pairs; more are scrolled
BOTH = "both"  # the side of a text of which most differs
SOURCES = {"included": "Pairs that differ in one thing", "corpus": "Demo news"}


def similar_pairs(backend: Backend) -> None:
    """The most similar pairs of the corpus, or of the included sentences that differ in one thing."""
    messages.cross_encoder_note([backend])
    with controls.row():
        corpus = _compared()
        level = controls.bind(
            "least_cosine",
            st.slider,
            "Cosine of at least",
            to_widget=lambda hundredths: hundredths / 100,
            from_widget=lambda cosine: round(100 * cosine),
            min_value=settings.LEAST_COSINE / 100,
            max_value=1.0,
            step=0.01,
        )
        panel = controls.options()
    request = SearchRequest.of_vectors(backend, corpus, is_search=False)
    index = request.index("pairs")
    if len(corpus) < 2:
        st.info("The corpus has one sentence: there is no pair to compare.")
        return
    layer, pooling = request.cell(index)
    most = min(settings.MOST_PAIRS, _possible_pairs(request))
    count = most
    if most > settings.LEAST_PAIRS:
        with panel:
            count = controls.number("shown_pairs", "Pairs", settings.LEAST_PAIRS, most, min(100, most))
    found = _most_similar(request, index, layer, pooling)
    repeats = repeated(corpus.texts)
    above = sum(pair.cosine >= level for pair in found)
    differences = {
        pair: difference(corpus.texts[pair.first], corpus.texts[pair.second]) for pair in found[: above or count]
    }
    kinds: Counter[Kind] = Counter(differences[pair].kind for pair in found[:above])
    similar = found[: min(count, above) or count]
    figures.above(
        duplicates_in_words(found, above, level, repeats, kinds),
        key="pairs",
        table=lambda: _table(similar, differences, corpus),
        code=request.code(index, layer, pooling).of_texts(
            [
                *columns("pairs", {"first": ("first", "texts"), "second": ("second", "texts")}),
                "texts = [*first, *second]",
            ],
            (cosine,),
            "values = cosine(*np.split({vectors}, 2))",
            "print(values)  # [pair]",
        ),
        title="The most similar pairs",
        read=f"Pairs of sentences by the cosine of their vectors (layer {layer}, {wording.POOLING_NAMES[pooling]}), "
        f"{OF_EACH_KIND} of each kind of difference first. What the other text has not, or has in another place, is "
        f"marked; where that is most of the text, the words that both have, in whatever place. "
        f"The kind comes from the words alone, not from the model. Identical sentences are left out. "
        f"{wording.NUMBERS_EXPLAINED} Layer and pooling are changed under “Hits”.",
        not_shown="Whether two sentences mean the same: shared names, a similar length and the same topic raise it too.",
    )
    if len(similar) > 1 and similar[0].cosine - similar[-1].cosine < TIE:
        st.warning("All of these pairs have the same cosine: the choice of these pairs and their order mean nothing.")
    # Without a pair above the level there is nothing to count: the nearest pairs come first, on a phone too.
    left, right = st.columns([3, 7], gap="medium") if kinds else st.columns([7, 3], gap="medium")[::-1]
    with right:
        if similar:
            title = (
                "The nearest pairs" if not above else "Pairs, two of each kind first" if len(kinds) > 1 else "By cosine"
            )
            if len(similar) > IN_BOX:
                of = f" of {above:,}" if above > len(similar) else ""
                title += f": {len(similar)}{of}"
            with st.container(key="pairs_box", height=620 if len(similar) > IN_BOX else "content", border=False):
                unread = _unread(request, index, differences)
                figures.markup(_marked(title, ordered(similar, differences), differences, unread), "pairs_marked")
    with left:
        if kinds:
            figures.markup(_bars(kinds), "pairs_kinds")
        if len(corpus) <= PAIRS_AT_ONCE:
            with frame.figure("nearest"):
                _distribution(request, index, layer, pooling, level)
    if repeats:
        figures.subheader("Exact repeats")
        figures.whole_texts(
            pd.DataFrame(
                {
                    "times": [len(rows) for rows in repeats.values()],
                    "numbers": [", ".join(map(str, rows)) for rows in repeats.values()],
                    "text": list(repeats),
                }
            ),
            key="repeats_box",
        )


def _compared() -> Corpus:
    """The sentences that are compared; a person's own corpus has no choice."""
    searched = current.corpus()
    if state.get("corpus"):
        return searched
    is_included = controls.choice("compared_texts", "Sentences", SOURCES, show_label=False) == "included"
    return sentences_that_differ() if is_included else searched


def repeated(texts: Sequence[str]) -> dict[str, list[int]]:
    """Each text that a corpus has more than once, to its numbers there; the most frequent first."""
    rows: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        rows.setdefault(text, []).append(number)
    repeats = {text: numbers for text, numbers in rows.items() if len(numbers) > 1}
    return dict(sorted(repeats.items(), key=lambda item: -len(item[1])))


def duplicates_in_words(
    found: Sequence[SimilarPair],
    above: int,
    level: float,
    repeats: Mapping[str, Sequence[int]],
    kinds: Mapping[Kind, int] | None = None,
) -> str:
    """How many of the most similar pairs are `above` the level and do not say the same, and how many texts repeat another one.

    `kinds` counts the pairs above the level by the kind of their difference.
    """
    again = sum(len(rows) - 1 for rows in repeats.values())
    limit = theme.number(level, 2)
    if above:
        is_more = above == settings.MOST_PAIRS  # which is as many as are kept
        pairs = f"{'At least ' if is_more else ''}{counted(above, 'pair')}"
        opposed = sum((kinds or {}).get(kind, 0) for kind in OPPOSED)
        if opposed:
            said = f"**{opposed:,} of {pairs[:1].lower()}{pairs[1:]}** with a cosine of {limit} or more "
            said += "means something different" if opposed == 1 else "mean something different"
            said += ": deleting duplicates by a threshold alone would lose " + ("it" if opposed == 1 else "them")
        else:
            none = ", and none differs in a number, a day, a “not” or their order" if kinds else ""
            said = f"**{pairs}** {'has' if above == 1 else 'have'} a cosine of {limit} or more{none}"
    elif found:
        nearest = theme.number(found[0].cosine)
        said = f"**No pair** has a cosine of {limit} or more; the nearest has {nearest}"
    else:
        said = "**No pair** of different sentences is left"
    if not again:
        return f"{said}." if above else f"{said}. No sentence is repeated exactly."
    repeat, stand = ("repeats", "stands") if again == 1 else ("repeat", "stand")
    return f"{said}. **{counted(again, 'sentence')}** {repeat} an earlier one exactly, and {stand} below."


def ordered(similar: Sequence[SimilarPair], differences: Mapping[SimilarPair, TextDifference]) -> list[SimilarPair]:
    """Pairs, which are the best first, with OF_EACH_KIND of each kind before all others."""
    seen: Counter[Kind] = Counter()
    first: list[SimilarPair] = []
    rest: list[SimilarPair] = []
    for pair in similar:
        kind = differences[pair].kind
        seen[kind] += 1
        (first if seen[kind] <= OF_EACH_KIND else rest).append(pair)
    order = list(dict.fromkeys(differences[pair].kind for pair in first))
    return [*sorted(first, key=lambda pair: order.index(differences[pair].kind)), *rest]


def _marked(
    title: str,
    pairs: Sequence[SimilarPair],
    differences: Mapping[SimilarPair, TextDifference],
    unread: Mapping[SimilarPair, int],
) -> str:
    """The pairs with what differs in each marked; `unread` has, of pairs that are equal as far as the model reads them, the
    number of tokens that it reads."""
    parts = []
    for pair in pairs:
        item = differences[pair]
        alike = len(_alike(item))
        both = shared(item)
        is_of_both = _same(item) < 0.5 and _same(both) > 0
        shown, sides = (both, (BOTH, BOTH)) if is_of_both else (item, ("one", "other"))
        first, second = (_with_marks(*of, alike) for of in zip((shown.first, shown.second), sides, strict=True))
        said = "<br>marked: what both have" if is_of_both and "<mark" in first + second else ""
        cut = f", behind the {unread[pair]} tokens that the model reads" if pair in unread else ""
        numbers = f'data-first="{pair.first}" data-second="{pair.second}"'
        parts.append(
            f'<section {numbers} title="numbers {pair.first} and {pair.second}"><b>{theme.number(pair.cosine)}</b><div>'
            f'<p dir="auto">{first}</p><p dir="auto">{second}</p></div>'
            f"<i>{KINDS[item.kind]}{cut}{said}</i></section>"
        )
    return f'<div class="bi-near"><h6>{title}</h6>{"".join(parts)}</div>'


def _same(item: TextDifference) -> float:
    """The share of the letters of two texts in runs that do not differ."""
    letters = [(len(piece.text), piece.differs) for piece in (*item.first, *item.second)]
    return sum(count for count, differs in letters if not differs) / max(1, sum(count for count, _ in letters))


def _alike(item: TextDifference) -> str:
    """The beginning that two texts share."""
    begins = [side[0] for side in (item.first, item.second) if side]
    return "" if len(begins) < 2 or any(piece.differs for piece in begins) else begins[0].text


def _unread(
    request: SearchRequest, index: VectorIndex, differences: Mapping[SimilarPair, TextDifference]
) -> dict[SimilarPair, int]:
    """The pairs whose texts differ only behind what the model reads of them, each with the number of tokens that it reads."""
    options = index.info.options
    limit = options.max_length
    long = [(pair, alike) for pair, item in differences.items() if len(alike := _alike(item)) >= limit]
    lengths = request.backend.tokenization.lengths([options.prompt + alike for _, alike in long]) if long else []
    return {pair: limit for (pair, _), length in zip(long, lengths, strict=True) if length >= limit}


def _with_marks(pieces: Sequence[Piece], side: str, alike: int = 0) -> str:
    """A text in which what differs is marked, or what does not where the side is BOTH.

    A very long one is cut: `alike` characters before the first difference are shown as far as there is room for them and for
    the difference.
    """
    shown, left = [], SHOWN_CHARACTERS
    skipped = alike - BEFORE_DIFFERENCE if alike > SHOWN_CHARACTERS - BEFORE_DIFFERENCE else 0
    for number, piece in enumerate(pieces):
        told = piece.text
        if number == 0 and skipped:
            shown.append("…")
            told = told[skipped:]
        text = html.escape(told[:left])
        shown.append(f'<mark class="{side}">{text}</mark>' if piece.differs != (side == BOTH) else text)
        left -= len(told) + 1
        if left <= 0:
            shown.append("…")
            break
    return " ".join(shown)


def _bars(kinds: Mapping[Kind, int]) -> str:
    """How many pairs differ in what: orange where they certainly do not say the same, else grey."""
    most = max(kinds.values())
    lines = "".join(
        f'<p class="{"opposed" if kind in OPPOSED else "open"}"><span>{KINDS[kind]}</span>'
        f'<i style="--share: {100 * number / most:.1f}%"></i><b>{number:,}</b></p>'
        for kind, number in sorted(kinds.items(), key=lambda item: -item[1])
    )
    return (
        f'<div class="bi-kinds"><h6>What differs <span>{counted(sum(kinds.values()), "pair")}</span></h6>{lines}'
        '<p class="key"><em class="opposed"></em>no duplicates<em class="open"></em>read and decide</p></div>'
    )


def _table(
    similar: Sequence[SimilarPair], differences: Mapping[SimilarPair, TextDifference], corpus: Corpus
) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "cosine": theme.number(pair.cosine, 4),
                "numbers": f"{pair.first} – {pair.second}",
                "difference": KINDS[differences[pair].kind],
                "first": corpus.texts[pair.first],
                "second": corpus.texts[pair.second],
            }
            for pair in similar
        ]
    )


def _distribution(request: SearchRequest, index: VectorIndex, layer: int, pooling: Pooling, level: float) -> None:
    """How near each sentence's nearest other one is."""
    vectors, texts = index.engine(layer, pooling).vectors, request.corpus.texts
    cosines: np.ndarray = requests.prepared(
        ("nearest", index.folder.name, layer, pooling),
        f"The nearest sentences of {request.corpus.name}",
        lambda report_progress, is_stopped: nearest_cosines(vectors, texts),
        "nearest",
        "comparing the sentences",
    )
    figures.figure(
        histogram.nearest_histogram(cosines, level, "Nearest other sentence"),
        key="nearest",
        code=request.code(index, layer, pooling).of_texts(
            columns("nearest", {"texts": ("sentence", "texts")}),
            (nearest_cosines,),
            "print(values := nearest_cosines({vectors}, texts))  # [sentence]",
        ),
        alt=f"Histogram of the cosine of each of {len(texts):,} sentences with its nearest other one",
        read="A bar counts the sentences whose nearest other one has this cosine; those above the threshold are blue.",
        not_shown="Whether the two say the same.",
        table=lambda: pd.DataFrame(
            {"number": range(len(texts)), "cosine with the nearest": cosines, "sentence": texts}
        ),
    )


def _most_similar(request: SearchRequest, index: VectorIndex, layer: int, pooling: Pooling) -> tuple[SimilarPair, ...]:
    """The settings.MOST_PAIRS most similar pairs, best first. Raises NotReady, which asks first for a large corpus.

    The number of pairs that are shown is no part of the request: fewer pairs are the first of these.
    """
    corpus, jobs = request.corpus, caching.evaluations()
    key = ("similar pairs", index.folder.name, layer, pooling)
    is_short, done_before = len(corpus) <= PAIRS_AT_ONCE, jobs.find(key)
    if not is_short and (done_before is None or done_before.result is None) and st.session_state.get("_pairs") != key:
        label = f"Compare all {_possible_pairs(request):,} pairs"
        raise frame.Instead(partial(_ask_for_pairs, label, key))
    vectors, texts = index.engine(layer, pooling).vectors, corpus.texts

    def compare(report_progress: ReportProgress, is_stopped: IsStopped) -> tuple[SimilarPair, ...]:
        return most_similar_pairs(vectors, settings.MOST_PAIRS, texts, report_progress, is_stopped)

    job = jobs.request(
        key,
        f"Comparing all pairs of {corpus.name}",
        compare,
        person=caching.person(),
        lane="statistics" if is_short else None,
    )
    similar: tuple[SimilarPair, ...] = requests.result_of(
        jobs,
        job,
        doing="comparing the sentences",
        stop_key="stop_pairs",
        again_key="again_pairs",
        unit="blocks of pairs",
    )
    return similar


def _ask_for_pairs(label: str, key: tuple[object, ...]) -> None:
    """The button that begins to compare all pairs of a large corpus: that takes a while."""
    st.button(label, key="find_pairs", type="primary", on_click=lambda: st.session_state.update(_pairs=key))


def _possible_pairs(request: SearchRequest) -> int:
    return len(request.corpus) * (len(request.corpus) - 1) // 2
