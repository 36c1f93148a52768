"""Model: the inner dimensions of a block's feed-forward part for one token, and the gates where the model has some."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis import inner_dimensions as analysis
from components.charts import theme
from components.charts.inside_blocks import inner_dimensions as charts
from components.model.one_block import nearly_closed
from components.shown_code.arrays import Input
from components.shown_code.inside import Inside
from dashboard import caching
from dashboard.jobs import requests
from dashboard.ui import controls, figures, messages
from dashboard.ui.waiting import frame

if TYPE_CHECKING:
    from components.model.architecture.structure import Structure
    from components.model.backend import Backend
    from components.model.one_block.feed_forward import FeedForward
    from components.model.trace import TokenizedSentence

MOST_DIMENSIONS = 24  # drawn: the strongest
GELU_LEAST = -0.17  # the lowest value that GELU gives


def feed_forward(backend: Backend, sentences: tuple[TokenizedSentence, ...]) -> None:
    """The distribution of one token's activations, the strongest dimensions, and the share that is closed by block."""
    with controls.row():
        with st.container(key="looks_sentence"):
            row = controls.sentence(sentences)
        words = st.container(key="looks_tokens")  # as where one word looks
        block = controls.stepped("inner_block", "Block", 0, backend.facts.layers - 1, 0, caching.glossary()["block"])
    chosen = controls.positions(sentences, backend)
    with words:
        controls.token_chips(sentences, chosen, "chips_inner", rows=[row], unknown_id=backend.tokenization.unknown_id)
    record = None
    with frame.figure("inner_dimensions"):
        record = _record(backend, sentences[row], block)
    if record is None:
        return
    code = Inside(Input(backend, [sentences[row].text], controls.length_for(backend)))
    _distribution(backend, record, block, chosen[row], code)
    gated = backend.structure.has_gated_feed_forward
    figures.reading(
        f"{_computed(backend.structure)} The bars count the dimensions by "
        f"{'their gate' if gated else 'what the function gives'}; grey are those that are negative or near 0: "
        f"{'nearly closed' if gated else 'they too are added, but little each'}.",
        "What a dimension stands for. Where grey ends is a convention, and the share depends on it.",
    )
    _strongest(backend, record, block, chosen[row], code)
    _by_block(backend, record, chosen[row], code)


def _record(backend: Backend, sentence: TokenizedSentence, block: int) -> FeedForward:
    """The inner dimensions of a sentence; of a long one they are a job. Raises NotReady."""
    text, length = sentence.text, controls.length_for(backend)
    if not backend.feed_forward_takes_long(len(sentence)):
        return backend.feed_forward(text, max_length=length, block=block)
    return requests.latest(
        ("feed forward", backend.spec.key, backend.revision, text, length, block),
        f"Reading {len(sentence):,} tokens",
        lambda report, is_stopped: backend.feed_forward(text, None, length, block, report, is_stopped),
        "inner_dimensions",
        "reading a long text",
        "blocks",
        view="inner_dimensions",
        jobs=caching.long_texts(),
    )


def _distribution(backend: Backend, record: FeedForward, block: int, token: int, code: Inside) -> None:
    # Copies: a report keeps what the tables read, and a part of an array would keep all of it.
    activations, values = record.activations_of(block)[token].copy(), record.values_of(block)
    others = None if values is None else values[token].copy()
    structure = backend.structure
    piece, gated = record.sentence.tokens[token].piece, structure.has_gated_feed_forward
    limit = float(nearly_closed.closed_limit(activations))
    share, most = float(nearly_closed.closed_share(activations)), int(activations.argmax())
    value = "gate (after the activation function)" if gated else "activation"
    figures.figure(
        charts.activation_histogram(
            activations,
            limit,
            f"{'Gates' if gated else 'Activations'} of “{piece[:20]}” in block {block}",
            value=value,
        ),
        key="inner_distribution",
        code=code.inner(
            [block],
            f"values = inner[0, {token}]",
            "print(values, closed_share(values))  # [inner dimension], and the share that is nearly closed",
        ),
        alt=f"Histogram of the {len(activations)} {'gates' if gated else 'activations'} of {piece} in block {block}",
        message=f"To “{messages.escape(piece)}”, dimension {most} responds most ({theme.number(float(activations[most]), 2)}); "
        f"**{100 * (1 - share):.0f} %** of the {len(activations):,} {'gates are open' if gated else 'are clearly positive'}; "
        f"the other {100 * share:.0f} % are negative or near 0 (at most {100 * nearly_closed.NEARLY_CLOSED:.0f} % of the "
        f"largest).{_lowest_in_words(activations)}",
        table=lambda: pd.DataFrame(
            {"dimension": np.arange(len(activations)), "gate" if gated else "activation": activations.round(5)}
            | ({} if others is None else {"value": others.round(5)})
        ),
    )


def _lowest_in_words(activations: np.ndarray) -> str:
    """Why the highest bar is below 0: GELU, and functions like it, bring negative inputs there; empty if it is not so."""
    counts, edges = charts.bins(activations, float(nearly_closed.closed_limit(activations)))
    if edges[np.argmax(counts) + 1] > 0 or not GELU_LEAST - 0.001 <= activations.min() <= GELU_LEAST + 0.01:
        return ""
    return (
        " The highest bar is below 0: the activation function (GELU) turns every negative input into a value "
        f"between {theme.number(GELU_LEAST, 2)} and 0."
    )


def _computed(structure: Structure) -> str:
    """How this model's feed-forward part computes its inner dimensions, and how the other kind differs."""
    if structure.has_gated_feed_forward:
        return (
            f"{structure.title}'s feed-forward part is gated: of each inner dimension one matrix gives a gate, another a "
            "value. The gate goes through the activation function and multiplies the value, so that a gate near 0 lets "
            "nothing through. A plain feed-forward part, as in BERT, has no values: what the function gives is "
            "passed on as it is."
        )
    return (
        "The feed-forward part is plain: one matrix gives the inner dimensions, the activation function pushes negative ones "
        "towards 0, and a second matrix adds one vector for each of them. A gated one, as in ModernBERT, has a third matrix, "
        "whose values are multiplied by what the function gives."
    )


def _strongest(backend: Backend, record: FeedForward, block: int, token: int, code: Inside) -> None:
    products, gated = record.products(block)[token], backend.structure.has_gated_feed_forward
    dimensions = list(analysis.strongest(products, MOST_DIMENSIONS))
    # Copies, as the choice of some columns makes one: see `_distribution`.
    drawn, gates = products[dimensions], record.activations_of(block)[token, dimensions]
    all_values = record.values_of(block)
    values = None if all_values is None else all_values[token, dimensions]
    half = analysis.half_from(products)
    name = "gate × value" if gated else "activation"
    piece = record.sentence.tokens[token].piece
    figures.figure(
        charts.strongest_bars(
            dimensions,
            drawn,
            gates,
            values,
            f"Strongest dimensions: “{piece[:20]}”, block {block}",
        ),
        key="inner_strongest",
        code=code.inner(
            [block],
            f"dimensions = list(strongest(inner[0, {token}], {MOST_DIMENSIONS}))",
            f"values = inner[0, {token}, dimensions]",
            "print(dimensions, values)",
        ),
        alt=f"Bars: the {len(dimensions)} inner dimensions with the largest absolute {name}",
        message=f"Dimension {dimensions[0]} gives the most ({theme.number(float(drawn[0]), 2)}). "
        f"{half:,} of {len(products):,} dimensions carry half of the total strength (the sum of squares).",
        read=f"The {len(dimensions)} dimensions with the largest absolute {name}, which is what the last matrix reads. "
        + ("Hover for the gate and the value: a large value counts only where its gate is open. " if gated else "")
        + "The last matrix adds one vector of the hidden size for each dimension, as many times as its bar is high.",
        not_shown="How long the vector of a dimension is, and whether those of several dimensions cancel each other.",
        table=lambda: pd.DataFrame(
            {"dimension": dimensions}
            | ({} if values is None else {"gate": gates.round(5), "value": values.round(5)})
            | {name: drawn.round(5)}
        ),
    )


def _by_block(backend: Backend, record: FeedForward, token: int, code: Inside) -> None:
    shares = record.closed_shares.copy()  # [block, token]
    labels = [f"{item.position} {item.piece}" for item in record.sentence.tokens]
    piece = record.sentence.tokens[token].piece
    gated = backend.structure.has_gated_feed_forward
    kind = "Nearly closed gates" if gated else "Dimensions near or below 0"
    means = shares.mean(axis=1)
    most, least = int(means.argmax()), int(means.argmin())
    figures.figure(
        charts.closed_by_block(shares, token, piece, f"{kind} by block", "of all dimensions"),
        key="inner_closed",
        code=code.inner(
            range(len(shares)),
            "values = 100 * closed_share(inner)",
            "print(values)  # [block, token], in per cent",
        ),
        alt=f"Curves: {kind.lower()} by block, for {piece} and for all tokens",
        message=f"On average over this sentence's tokens, block {most} has the most {kind[0].lower()}{kind[1:]} "
        f"({100 * means[most]:.0f} %)"
        + (f", block {least} the fewest ({100 * means[least]:.0f} %)." if least != most else "."),
        read="Each point is a block. The higher it is, the fewer dimensions are clearly positive.",
        not_shown="Whether those few matter more for the model's answer than the many near 0.",
        table=lambda: pd.DataFrame((100 * shares).round(2), columns=labels).assign(block=range(len(shares))),
    )
