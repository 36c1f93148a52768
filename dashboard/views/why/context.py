"""What a similarity means: its place among unrelated pairs of texts, at every layer and pooling."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.pooling import pool
from components.analysis.similarity import calibration
from components.analysis.similarity.calibration import Calibration
from components.analysis.why.best_pair import best_pair
from components.arrays import cosine
from components.charts import histogram, theme
from components.shown_code.arrays import of_table
from components.shown_code.code import Command
from components.shown_code.written import literal
from dashboard import caching, state
from dashboard.corpora import current
from dashboard.jobs import embedding, requests
from dashboard.jobs.embedding import EmbedRequest
from dashboard.ui import controls, figures, messages
from dashboard.ui.waiting import before_work
from dashboard.ui.wording import POOLING_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable

    from components.model.backend import Backend
    from components.model.trace import Pooling, Trace

FEW_ABOVE = 20  # pairs with a higher cosine, up to which they are counted
BINS = 60  # of the hill
_SHOWN = "_why_shown"  # session key: the view that was drawn last
_BEST = "_why_best_pair"  # session key: sentences, and which two of them were chosen by `choose_best_pair`
SOURCES = {"sample": "unrelated English sentences", "corpus": "sentences of the corpus"}


def one_at_a_time(draw: Callable[[Backend], None], backend: Backend) -> None:
    """Draw a view, and stop what the view before it waited for: the new one would wait behind it."""
    view = state.shown_view()
    if st.session_state.get(_SHOWN, view) != view:
        requests.stop_requested()
    st.session_state[_SHOWN] = view
    draw(backend)


def choose_best_pair(backend: Backend) -> None:
    """Let A and B be the two sentences that are worth comparing, where nobody has chosen any: see `best_pair`.

    What was chosen so is no person's choice: it is made anew once the sentences are others.
    """
    texts: tuple[str, ...] = state.get("sentences")
    shown = (state.get("sentence_a"), state.get("sentence_b"))
    of_texts, own = st.session_state.get(_BEST, ((), None))
    if shown == own:
        if texts == of_texts:
            return
        for setting in ("sentence_a", "sentence_b"):
            state.put(setting, state.default(setting))
    elif any(shown):
        return
    st.session_state.pop(_BEST, None)
    if len(texts) < 3:
        return
    first, second = best_pair(texts, pool(controls.current_trace(backend), backend.own_pooling)[-1])
    state.put("sentence_a", first)
    state.put("sentence_b", second + 1)
    st.session_state[_BEST] = (texts, (first, second + 1))


def choose_source() -> None:
    """Draw the choice of the pairs that a similarity is compared with."""
    controls.choice(
        "context_source",
        "Compare the score with pairs of",
        SOURCES,
        "The share of such pairs that are less similar says what a score means: the same cosine can be high at one layer "
        "and low at another.",
    )


def known(backend: Backend, layer: int, pooling: Pooling) -> Calibration | None:
    """The pairs to compare with; None where there are none, which is said. Raises NotReady while they are measured."""
    if _is_constant(backend, layer, pooling):
        st.caption(
            ":material/info: At layer 0 [CLS] has one vector for all texts, so that nothing can be compared there."
        )
        return None
    if state.get("context_source") == "sample":
        baseline = caching.sentence_baseline(backend, pooling, True)
        if not baseline.is_measured:
            st.caption(messages.no_baseline(baseline))
            return None
        return baseline.calibration(layer)
    corpus = current.corpus()
    request = EmbedRequest.of_session(backend)
    index = embedding.index_of(request, corpus, "context")
    before_work.other_layers(request, corpus, "context")
    options = index.info.options
    if layer not in options.layers or pooling not in options.poolings:
        st.caption(
            f":material/info: The corpus is not embedded at layer {layer} with this pooling: choose another, or compare with "
            f"{SOURCES['sample']}."
        )
        return None
    found = caching.corpus_calibration(index, layer, pooling)
    if not found.is_known:
        st.caption(
            ":material/info: The corpus has fewer than two different sentences: there is no pair to compare with."
        )
        return None
    return found


def in_words(score: float, found: Calibration | None = None) -> str:
    """The score and, once the pairs are known, its place among them: the beginning of a finding, without its full stop."""
    text = f"The cosine is **{theme.number(score, 2)}**"
    if found is None or not found.is_known or math.isnan(score):
        return text
    pairs = "unrelated pairs" if state.get("context_source") == "sample" else "pairs of the corpus"
    count, above = len(found.cosines), int(np.count_nonzero(found.cosines >= score))  # a tie counts against the score
    low, high = found.quantiles((5, 95))
    if above == 0:
        return f"{text}, higher than for any of {count:,} {pairs}"
    if above <= FEW_ABOVE and above < count / 20:
        return f"{text}, higher than for all but {above} of {count:,} {pairs}"
    if score > high:
        # Rounded down: what is above 99.7 % of the pairs is not above all.
        return f"{text}, higher than for {int(100 * (1 - above / count))} % of {pairs}"
    if score < low:
        return f"{text}, lower than for {int(100 * above / count)} % of {pairs}"
    return f"{text}, {calibration.beside(score, pairs, float(found.cosines.mean()), float(high))}"


def _place(percent: float) -> str:
    """A place on the scale, for a style sheet."""
    return theme.number(percent, 2)


def scale(score: float, found: Calibration, of: str = "") -> None:
    """Draw the score on a scale that ends with 1, with the other pairs as a hill. It begins with 0, or below all that is shown.

    `of` is the key of the picture to which it belongs, if any.
    """
    fifths = max(0, math.ceil(-5 * min(score, float(found.cosines.min())) - 1e-9))  # below 0
    least = -fifths / 5

    def along(value: float) -> float:
        return min(max((value - least) / (1 - least), 0.0), 1.0)

    counts, edges = np.histogram(found.cosines, bins=BINS, range=(least, 1))
    most = int(counts.max()) or 1
    points = ", ".join(
        f"{_place(100 * along((edges[number] + edges[number + 1]) / 2))}% {_place(100 - 94 * int(count) / most)}%"
        for number, count in enumerate(counts)
    )
    limit = float(found.quantiles((95,))[0])
    high, at = along(limit), along(score)
    name = "unrelated" if state.get("context_source") == "sample" else "pairs of the corpus"
    # The text stands beside its line on the side that has room, and not on the score's.
    is_in_way = 0 <= at - high < 0.16
    side = "right" if high > 0.7 or (is_in_way and high > 0.25) else "left"
    shift = f"{_place(100 * high)}%" if side == "left" else f"{_place(100 * (1 - high))}%"
    of_score = "right" if at > 0.8 else "left"
    score_shift = f"{_place(100 * at)}%" if of_score == "left" else f"{_place(100 * (1 - at))}%"
    ticks = "".join(
        f'<i style="left:{_place(100 * along(tenths / 10))}%">{theme.number(tenths / 10, int(tenths % 10 > 0))}</i>'
        for tenths in range(-2 * fifths, 11)
    )
    note = f"{name}: 95 % below {theme.number(limit, 2)}"
    figures.markup(
        f'<div class="bi-standing" role="img" aria-label="Cosine {theme.number(score, 2)}; {note}">'
        f'<u style="clip-path: polygon(0% 100%, {points}, 100% 100%)"></u>'
        f'<b class="limit" style="left:{_place(100 * high)}%"></b>'
        f'<span class="limit" style="{side}:{shift}">{name}: 95 % &lt; {theme.number(limit, 2)}</span>'
        f'<b class="score" style="left:{_place(100 * at)}%"></b>'
        f'<span class="score" style="{of_score}:{score_shift}"><em>these two </em>{theme.number(score, 2)}</span>'
        f"<div>{ticks}</div></div>",
        "score_scale",
        of=of,
    )


def _with_interval(found: Calibration, score: float) -> str:
    """The same with the interval and the number of pairs, as a sentence."""
    standing = found.standing(score)
    low = calibration.rounded(standing.low).removesuffix(" %")
    high = "100 %" if np.isclose(standing.high, 1, rtol=0, atol=1e-9) else calibration.rounded(standing.high)
    share = "**all**" if standing.share == 1 else f"**{calibration.rounded(standing.share)}** of"
    return (
        f"The cosine **{theme.number(score, 3)}** is higher than that of {share} {standing.pairs:,} pairs of "
        f"{SOURCES[state.get('context_source')]}. The pairs are made of {standing.sentences:,} sentences; with other sentences "
        f"it would be higher than {low} to {high} of the pairs (95 % interval)."
    )


def score_of(trace: Trace, rows: tuple[int, int], layer: int, pooling: Pooling) -> float:
    """The cosine of two of a trace's texts."""
    return float(cosine(*pool(trace, pooling)[layer, list(rows)]))


def figure(
    backend: Backend,
    trace: Trace,
    rows: tuple[int, int],
    layer: int,
    pooling: Pooling,
    found: Calibration,
) -> None:
    """Draw the score among the other pairs, and its percentile at every layer and pooling."""
    score = score_of(trace, rows, layer, pooling)
    figures.subheader("How high is this score?")
    st.markdown(_with_interval(found, score))
    left, right = st.columns([3, 2], gap="medium")
    things = f"pairs of {SOURCES[state.get('context_source')]}"
    with left:
        figures.figure(
            histogram.with_mark(
                found.cosines,
                score,
                "The score among other pairs",
                value="cosine",
                things="pairs",
                name="these two texts",
            ),
            key="context",
            code=of_table(
                "context",
                {"cosines": ("cosine", "numbers")},
                (),
                f"score = {literal(score)}  # of these two texts",
                "values = [((cosines < score).sum() + (cosines == score).sum() / 2) / len(cosines)]",
                "print(values)  # the share of the other pairs below it; an equal cosine counts half",
            ),
            alt=f"Histogram of {len(found.cosines):,} cosines of {things}; these two texts have {theme.number(score)}",
            table=lambda: pd.DataFrame({"cosine": np.sort(found.cosines)[::-1]}),
        )
    names = {name: POOLING_NAMES[name] for name in backend.poolings}
    with right:
        shares = _by_layer_and_pooling(backend, trace, rows)
        figures.matrix(
            100 * shares,
            [str(number) for number in range(len(shares))],
            list(names.values()),
            "Percentile by layer",
            rows="layer",
            columns="pooling",
            value="percentile",
            limits=(0.0, 100.0),
            pale=True,
            show_values=True,
            colour_bar=False,
            upright=False,
            decimals=0,
            label_column="layer",
            key="context_layers",
            code=Command(Calibration.shares),
            alt="Percentiles of the two texts among unrelated English sentences, at each layer and pooling",
            digits=2,
        )
        if np.isnan(shares).any():
            st.caption("Empty: there all texts have one vector.")
    figures.reading(
        f"Left: all {things}, and these two texts. Right: the share of unrelated English sentences that are less similar, "
        "in per cent. [CLS] has one vector for all texts at layer 0, so that nothing can be compared "
        "there.",
        "Whether the texts mean the same: texts on one subject, or with the same words, are above most unrelated pairs too. "
        "The interval takes into account that the pairs have sentences in common. It does not cover texts of another kind "
        "than the sample.",
    )


def _is_constant(backend: Backend, layer: int, pooling: Pooling) -> bool:
    """Whether all texts have one vector there: that of [CLS] before the first block."""
    head = backend.loaded.head
    return layer == 0 and (pooling == "cls" or (pooling == "own" and head is not None and head.modes == ("cls",)))


def _by_layer_and_pooling(backend: Backend, trace: Trace, rows: tuple[int, int]) -> np.ndarray:
    """The share of unrelated sentences that are less similar, [layer, pooling]; NaN where nothing can be compared."""
    columns = []
    for pooling in backend.poolings:
        cosines = cosine(*np.swapaxes(pool(trace, pooling)[:, list(rows)], 0, 1))  # [layer]
        baseline = caching.sentence_baseline(backend, pooling, True)
        columns.append(
            [
                float(baseline.calibration(layer).shares(value))
                if baseline.is_measured and not _is_constant(backend, layer, pooling)
                else np.nan
                for layer, value in enumerate(cosines)
            ]
        )
    return np.array(columns).T
