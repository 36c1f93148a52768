"""The similarity of two texts, in context and split into contributions that sum to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

import streamlit as st

from components.analysis.why import residual_split, token_ledger
from components.analysis.why.integrated_jacobians import split_to_words
from components.charts.theme import significant
from components.model.contributions.path_products import DEFAULT_STEPS, MOST_STEPS, MOST_TOKENS
from components.shown_code.code import Command
from components.shown_code.commands import of_model
from dashboard import caching
from dashboard.jobs import requests
from dashboard.ui import controls, figures, messages, pair_choice
from dashboard.ui.waiting import frame
from dashboard.ui.wording import counted
from dashboard.views.why import context, split_figures

if TYPE_CHECKING:
    from components.analysis.why.integrated_jacobians import IntegratedLedger
    from components.analysis.why.ledger import Ledger
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.model.contributions.path_products import Reference
    from components.model.trace import Pooling, TokenizedSentence

SPLITS = {"tokens": "Tokens at this layer", "words": "Words as typed", "blocks": "Blocks and heads"}
REFERENCES = {
    "unknown": "Unknown piece",
    "mask": "Mask token",
    "padding": "Padding",
    "mean": "Mean of all word vectors",
}
FEWEST_STEPS = 4
READ_RIBBONS = (
    "The number at a word is what it adds to the cosine, with all words of the other sentence: blue adds, orange takes away. A "
    "ribbon is a pair of words, as wide as what the pair adds; drawn are the strongest pairs, and all pairs of the word that "
    "you point at. All numbers of one sentence sum to 100 %. The hill below shows the pairs that the score is compared with."
)
NOT_IN_RIBBONS = (
    "Whether the sentences mean the same, and why the model gives this score: above layer 0 each vector holds something of its "
    "whole sentence. Below 0.1 the numbers are parts of the cosine itself, since shares of a small sum say nothing."
)


def draw(backend: Backend) -> None:
    """Draw the choice of a split, the two texts, and the split."""
    if messages.no_sentences():
        return
    context.choose_best_pair(backend)
    with controls.row():
        pair = pair_choice.choose(always=True)
        split_by = controls.pick(
            "score_split",
            "Split by",
            SPLITS,
            "The same score as three sums: pairs of tokens at the chosen layer; pairs of words as typed, through the whole "
            "model; what each block and head has added to text A.",
        )
        with st.container(width=round(110 * controls.scale())):
            layer = controls.layer(backend.facts.layers)
        with controls.options():
            pooling = controls.sentence_vector([backend])
            reference, steps = _integration(backend) if split_by == "words" else (None, DEFAULT_STEPS)
            context.choose_source()
            error = st.empty()
    trace = controls.current_trace(backend)
    rows = pair.rows
    texts = trace.sentences[rows[0]], trace.sentences[rows[1]]
    different = tuple(dict.fromkeys(rows))
    messages.truncation(
        [trace.sentences[row] for row in different], names=[(f"sentence {row + 1}", "") for row in different]
    )
    messages.unreadable(
        [trace.sentences[row] for row in different],
        backend.tokenization.unknown_id,
        [f"sentence {row + 1}" for row in different],
    )
    if pair.first == pair.second:
        st.caption(
            ":material/info: A and B are the same text: the cosine is 1, and the split shows what this text's vector is made "
            "of. Choose another B, or add a sentence at the top of the page."
        )
    cell = (
        "--layer",
        str(layer),
        "--pooling",
        pooling,
        *of_model(backend, controls.length_for(backend)),
        "--json",
        "-",
        "--",
    )
    asked = (*cell, pair.first, pair.second or pair.first)
    score = context.score_of(trace, rows, layer, pooling)
    finding_slot, picture, scale_slot, answer = st.empty(), st.container(), st.empty(), ""
    ledger: Ledger | None = None  # of the ribbons
    with finding_slot.container(key="line_split_first"):  # a lecture shows this line too
        st.markdown(f":material/insights: {context.in_words(score)}.")
    if split_by == "blocks":
        length = controls.length_for(backend)
        parts = residual_split.split_of_trace(backend, trace, layer, pooling, *rows, length)
        answer = split_figures.blocks(
            parts,
            layer,
            backend.structure,
            Command(residual_split.split_of_trace, ("why", "--to", "blocks", *asked)),
            picture,
        )
    elif split_by == "words":
        with frame.figure("score_split"):
            result = _down_to_words(backend, texts, layer, pooling, reference, steps)
            if result is not None:
                error.caption(
                    f"Error of the sum with {counted(result.steps, 'step')}: {significant(result.ledger.left_over)}"
                )
                ledger = result.ledger
                answer = split_figures.words_as_typed(
                    result, *texts, reference_names=REFERENCES, code=_code_of_words(result, asked), picture=picture
                )
    else:
        ledger = token_ledger.token_ledger(trace, layer, pooling, *rows)
        answer = split_figures.tokens(ledger, *texts, Command(token_ledger.token_ledger, ("why", *asked)), picture)
    found = None
    with frame.figure("context"):
        found = context.known(backend, layer, pooling)  # last: unrelated pairs are measured once, which takes a while
        if found is not None and pair.first != pair.second and not math.isnan(score):
            context.figure(backend, trace, rows, layer, pooling, found)
    if pair.first == pair.second or math.isnan(score):
        found = None
    with finding_slot.container():
        figures.finding(
            f"{context.in_words(score, found)}. {answer}".rstrip(),
            key="split",
            read=READ_RIBBONS,
            not_shown=NOT_IN_RIBBONS,
            picture=split_figures.picture_key(split_by),
            table=None if ledger is None or not answer else partial(split_figures.pairs_table, ledger),
        )
    if found is not None:
        with scale_slot.container():
            context.scale(score, found, split_figures.picture_key(split_by) if ledger is not None else "")
    messages.head_note([backend], pooling, layer)
    messages.cross_encoder_note([backend])


def _integration(backend: Backend) -> tuple[Reference | None, int]:
    """The chosen reference, None for the one with the smallest terms, and the number of steps."""
    offered: dict[str, str] = {"smallest": "The one that adds least by itself"}
    offered |= {name: REFERENCES[name] for name in backend.references}
    reference = controls.pick("split_reference", "Reference", offered, caching.glossary()["reference"])
    steps = controls.number(
        "split_steps",
        "Steps",
        FEWEST_STEPS,
        MOST_STEPS,
        DEFAULT_STEPS,
        "How many places between the reference and the text are looked at. More take longer and make the sum more exact.",
    )
    return (None if reference == "smallest" else cast("Reference", reference)), steps


def _code_of_words(result: IntegratedLedger, asked: Sequence[str]) -> Command:
    """The command of the split into words as typed."""
    integral = ("--reference", result.reference, "--steps", str(result.steps))
    return Command(split_to_words, ("why", "--to", "words", *integral, *asked))


def _down_to_words(
    backend: Backend,
    texts: tuple[TokenizedSentence, TokenizedSentence],
    layer: int,
    pooling: Pooling,
    reference: Reference | None,
    steps: int,
) -> IntegratedLedger | None:
    """The split of two texts, a job; None for texts that are too long, which is said. Raises NotReady."""
    longest = max(map(len, texts))
    if longest > MOST_TOKENS:
        st.info(
            f"**{longest} tokens are too many for this split.** It can follow {MOST_TOKENS} of a text. Choose shorter "
            "sentences or another split, or lower the maximum length under “More settings” in the sidebar.",
            icon=":material/straighten:",
        )
        return None
    first, second = texts
    length = controls.length_for(backend)
    chosen = (first.text, second.text, layer, pooling, reference, steps, length)
    key = ("score split", backend.spec.key, backend.revision, *chosen)
    return requests.latest(
        key,
        "Following both texts from the reference",
        partial(_work, backend, texts, layer, pooling, reference, steps),
        "score_split",
        doing="splitting the score",
        unit="steps",
        view="split",
    )


def _work(
    backend: Backend,
    texts: tuple[TokenizedSentence, TokenizedSentence],
    layer: int,
    pooling: Pooling,
    reference: Reference | None,
    steps: int,
    report_progress: ReportProgress,
    is_stopped: IsStopped,
) -> IntegratedLedger:
    return split_to_words(backend, *texts, layer, pooling, reference, steps, report_progress, is_stopped)
