"""The figures of a split score: pairs of tokens or words, bars by word, blocks and heads; each with its sum in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.why import in_words
from components.charts import bars, matrices
from components.charts.theme import number, signed
from components.numbers import apart, enumerated
from components.words.quotes import with_isolated_quotes
from dashboard.ui import browser, controls, figures, messages
from dashboard.ui.wording import counted

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from components.analysis.why.integrated_jacobians import IntegratedLedger
    from components.analysis.why.ledger import Ledger, LedgerPart, Term, TopPair
    from components.analysis.why.residual_split import ResidualSplit
    from components.model.architecture.structure import Structure
    from components.model.trace import TokenizedSentence
    from components.shown_code.code import Command

MOST_PIECES = 16  # tokens of a text whose pieces have rows of their own; longer texts are shown by word
MOST_ROWS = 20  # words of a text in the figures; the last row sums up all others
NUMBERED = 7  # rows and columns: with more, the numbers in the cells would be too small to read on a phone
NOT_A_CAUSE = (
    "Causes: without a word, all other tokens would have other vectors. Test a word by removing it (“Which words matter”). "
    "A split is one of many with the same sum. "
)
_PRODUCTS = {  # what a cell is, by pooling
    "mean": "the product of their vectors at this layer, divided by both numbers of tokens and both lengths.",
    "max": "the product of their vectors at this layer, only along the axes where both have the maximum of their text, divided "
    "by both lengths.",
    "own": "the product of what both add to the pooled vectors before the Dense layers, divided by both lengths.",
    "cls": "the product of their vectors at this layer, divided by both lengths, for the two first tokens; all others are 0.",
}
FEW_RIBBONS = "Ribbons: only the strongest pairs are drawn, so that some tokens have none."
STRONGEST, LEAST = 14, 0.01  # ribbons that are drawn, and the least share of the cosine, as in assets/web/ribbons.js
FALSE_ZERO = 5e-6  # a smaller error of the sum is 0.00000 in writing


def tokens(
    split: Ledger,
    first: TokenizedSentence,
    second: TokenizedSentence,
    code: Command,
    picture: DeltaGenerator,
) -> str:
    """Pairs of tokens at a layer, with their ribbons in `picture`; returns what they say, for the finding above them."""
    words = split.by_word(first, second)
    is_short = max(map(len, (first, second))) <= MOST_PIECES
    _drawn(
        picture,
        split if is_short else words,
        words,
        f"Contributions of token pairs, layer {split.layer}",
        "split_tokens",
        code,
        f"Each cell is a token of A with a token of B: {_PRODUCTS[split.pooling]} All cells together are the cosine. Blue "
        "raises it, orange lowers it. A bar is the sum of a word's row or column, in the same colours.",
        NOT_A_CAUSE
        + "What the word itself contributes: above layer 0, each token's vector has something of all other tokens "
        "in it, and special tokens have content only from them. “Words as typed” goes down to the input.",
        "" if split.pooling == "cls" else _start(words),
    )
    if split.pooling == "cls":
        st.markdown(
            "“Words as typed” and “Blocks and heads” split it further; mean pooling (under Options) splits it by token."
        )
    few = f"{FEW_RIBBONS} " * has_few_ribbons((split if is_short else words).bounded(MOST_ROWS))
    outside = "" if split.pooling == "cls" else f"{few}{in_words.of_outside(words)}"
    st.caption(f"{outside} {_rest(words)}".strip())
    if split.pooling == "cls":
        return "All of it belongs to one pair: with [CLS] pooling, a text's vector is that of its first token."
    return in_words.of_split(split if is_short else words.bounded(MOST_ROWS), messages.escape)


def has_few_ribbons(split: Ledger) -> bool:
    """Whether some row or column has none of the ribbons that are drawn before a word is pointed at."""
    sizes = np.abs(split.contributions)
    strongest = np.argsort(-sizes, axis=None, kind="stable")[:STRONGEST]
    drawn = strongest[sizes.ravel()[strongest] > LEAST * max(abs(split.cosine), 0.05)]
    rows, columns = np.unravel_index(drawn, sizes.shape)
    return len(set(rows.tolist())) < sizes.shape[0] or len(set(columns.tolist())) < sizes.shape[1]


def words_as_typed(
    result: IntegratedLedger,
    first: TokenizedSentence,
    second: TokenizedSentence,
    reference_names: Mapping[str, str],
    code: Command,
    picture: DeltaGenerator,
) -> str:
    """Pairs of words as typed, through the whole model, and the terms of the reference; returns what the pairs say."""
    split = result.ledger.without_special()
    words = result.ledger.by_word(first, second).without_special()
    name = reference_names[result.reference].lower()
    if not split.contributions.size:
        st.info("One of the texts has no token of its own: there is nothing to follow.")
        return ""
    is_short = max(len(split.first), len(split.second)) <= MOST_PIECES
    _drawn(
        picture,
        split if is_short else words,
        words,
        f"Words as typed, up to layer {split.layer}",
        "split_words",
        code,
        "Each word of A and of B moves from the reference to what was typed, and each cell is what this word of A and this "
        "word of B add to the score on the way: through all blocks up to this layer. With what the empty texts add, the cells "
        "sum to the cosine. Blue raises it, orange lowers it. Special tokens are the same in the reference, and add nothing. "
        "Integrated Jacobians: [Moeller, Nikolaev and Padó 2023](https://arxiv.org/abs/2310.05703), "
        "[2024](https://arxiv.org/abs/2402.02883).",
        NOT_A_CAUSE
        + "Anything apart from the reference: each number says how a word differs from it, and another reference "
        "(under Options) gives other numbers. Only the word vectors move; positions stay as they are.",
        _start(words),
    )
    st.caption(_rest(words))
    sizes = dict(zip(result.reference_sizes, apart(*result.reference_sizes.values()), strict=True))
    others = ", ".join(
        f"{reference_names[other].lower()} {size}" for other, size in sizes.items() if other != result.reference
    )
    st.markdown(
        f"The split compares both texts with texts that say nothing: here each word is replaced by the {name}. What these "
        f"empty texts add to the cosine by themselves is **{signed(sum(term.value for term in split.terms), 2)}**, and stands "
        "in no cell."
    )
    with st.expander("The reference in numbers", icon=":material/functions:", key="split_reference_numbers"):
        st.markdown(
            f"**Reference: {name}.** What it adds by itself: "
            + "; ".join(f"{term.name} {signed(term.value, 3)}" for term in split.terms)
            + f". Their sizes sum to {sizes[result.reference]}; with the other references: "
            f"{others}. "
            "The smaller the sum, the more of the score belongs to the words. Another reference can be chosen under Options."
        )
    return in_words.of_split(split if is_short else words.bounded(MOST_ROWS), messages.escape)


def blocks(split: ResidualSplit, layer: int, structure: Structure, code: Command, picture: DeltaGenerator) -> str:
    """What each block and head of the model adds, as a heatmap, and the sum of each block; returns what they say."""
    best, lowest = split.top(2), split.lowest()
    answer = "No part of A raises it"
    if best:
        answer = f"{best[0].name[0].upper()}{best[0].name[1:]} adds the most ({signed(best[0].contribution, 2)})"
    if lowest is not None and _is_named(lowest.contribution, [part.contribution for part in best]):
        answer += f"; {lowest.name} {_lowers(lowest.contribution, 2)}"
    answer += "."
    names = [f"block {block}" for block in range(layer)]
    left, right = picture.columns([3, 2])
    with left:
        if layer == 0:
            st.info(
                "Layer 0 comes before all blocks: the whole score belongs to the embeddings. Choose a higher layer."
            )
        else:
            columns = split.columns()
            limit = float(np.abs(split.matrix).max()) or 1.0
            figures.matrix(
                split.matrix,
                names,
                columns,
                f"What A's parts add, layer {layer}",
                rows="block",
                columns="part",
                value="contribution",
                limits=(-limit, limit),
                diverging=True,
                blue_adds=True,
                colour_bar="key",
                key="split_blocks",
                code=code,
                label_column="block",
                alt=f"Contributions of {len(columns)} parts of each of {layer} blocks to the cosine",
            )
    with right:
        labels = ["embeddings", *names]
        values = split.by_block()
        figures.figure(
            matrices.key_bars(
                values,
                labels,
                "Sum of each block",
                keys="part of the model",
                value="contribution",
                decimals=2,
                by_sign=True,
                blue_adds=True,
            ),
            key="split_block_sums",
            code=code,
            alt="Contributions of the embeddings and of each block to the cosine",
            table=lambda: pd.DataFrame({"part": labels, "contribution": values.round(6)}),
        )
    st.caption(
        f"In all: the embeddings {signed(split.embeddings, 2)}, heads {signed(split.heads.sum(), 2)}, feed-forward parts "
        f"{signed(split.feed_forward.sum(), 2)}, constants {signed(split.constants.sum(), 2)}.{_terms(split.terms)} "
        f"{_error_of_sum(split.left_over)}"
    )
    figures.reading(
        "A token's vector is its embedding plus all that heads and feed-forward parts have added. Each part's share of the "
        "score is its product with the direction of B's vector. Blue raises the score, orange lowers it. Constants are the "
        "bias after the heads and the shifts of the norms, which every token gets.",
        NOT_A_CAUSE
        + (
            ""  # what is added stays as it is up to this layer
            if structure.normalises_first and not (structure.has_final_norm and layer == len(structure.block_weights))
            else (
                "The norm after the last block scales all that was added; it is taken with the scale "
                if structure.normalises_first
                else "Each later LayerNorm scales what was added before it; it is taken with the scale "
            )
            + "that it has for this text, though every part has a say in that scale. "
        )
        + "What a head adds depends on what earlier "
        "blocks added. B is held fixed: swap A and B for its parts.",
    )
    return answer


def picture_key(split_by: str) -> str:
    """The key of the ribbons of a split."""
    return f"split_{split_by}_ribbons"


def pairs_table(split: Ledger) -> pd.DataFrame:
    """What each pair of a split adds: a row for each."""
    return pd.DataFrame(
        [
            {"A": one.text, "B": other.text, "adds to the cosine": round(float(split.contributions[row, column]), 5)}
            for row, one in enumerate(split.first)
            for column, other in enumerate(split.second)
        ]
    )


def _ribbons(split: Ledger, key: str) -> None:
    """Both texts as rows of words, ribbons between them, the strongest pairs and the small matrix, in the browser."""
    unit = "token" if any(part.kind == "special" for part in split.first) else "word"
    browser.web_component("ribbons", '<div class="ribbons"></div>', "focus")(
        key=f"{key}_ribbons",
        data={
            "first": [{"text": part.text, "kind": part.kind} for part in split.first],
            "second": [{"text": part.text, "kind": part.kind} for part in split.second],
            "values": split.contributions.round(7).tolist(),
            "whole": split.cosine,
            "parts": not in_words.is_in_percent(split.cosine),
            "names": ["first sentence", "second sentence"],
            "unit": unit,
            "all": f"All pairs of {unit}s",
            "label": f"Ribbons between {len(split.first)} and {len(split.second)} {unit}s",
            "scale": controls.scale(),
        },
    )


def _drawn(
    picture: DeltaGenerator,
    split: Ledger,
    words: Ledger,
    title: str,
    key: str,
    code: Command,
    read: str,
    not_shown: str,
    message: str,
) -> None:
    """The ribbons in `picture`; folded, the matrix of pairs and beside it the sums by word, by one `code`."""
    with picture:
        _ribbons(split.bounded(MOST_ROWS), key)
    more = st.expander("All pairs and words, with their numbers", icon=":material/grid_on:", key=f"{key}_more")
    is_whole = max(len(words.first), len(words.second)) <= MOST_ROWS
    split, bounded = split.bounded(MOST_ROWS), words.bounded(MOST_ROWS)
    rows, columns = _labels(split.first), _labels(split.second)
    # Of single words: the sums of all others would leave every other cell pale.
    single = [[part.kind != "rest" for part in parts] for parts in (split.first, split.second)]
    limit = float(np.abs(split.contributions[np.ix_(*single)]).max(initial=0.0)) or 1.0
    left, right = more.columns([3, 2])
    with left:
        figures.matrix(
            split.contributions,
            rows,
            columns,
            title,
            rows="A",
            columns="B",
            value="contribution",
            limits=(-limit, limit),
            diverging=True,
            blue_adds=True,
            show_values=max(len(rows), len(columns)) <= NUMBERED,
            decimals=3,
            colour_bar="key" if is_whole else False,
            key=key,
            code=code,
            message=message,
            read=read,
            not_shown=not_shown,
            label_column="A",
            alt=f"Contributions to the cosine of {len(rows)} tokens or words of A with {len(columns)} of B",
        )
    with right:
        sums = np.concatenate(bounded.part_scores())
        parts = (*bounded.first, *bounded.second)
        texts = ["Text A"] * len(bounded.first) + ["Text B"] * len(bounded.second)
        figures.figure(
            bars.word_bars(
                [part.text for part in parts],
                sums,
                texts,
                "By word",
                "sum of the contributions",
                rests=[row for row, part in enumerate(parts) if part.kind == "rest"],
                by_sign=True,
                blue_adds=True,
            ),
            key=f"{key}_words",
            code=code,
            alt=f"The sum of the contributions of each of {len(parts)} words of both texts",
            table=partial(_table, words),
        )
    if not is_whole:
        more.caption(
            f":material/info: Long texts: the {MOST_ROWS - 1} words of each text that contribute most have a row of their own. "
            "The last row and column sum up all others, so that all still sums; the colours reach as far as single words do, "
            f"{number(limit, 5)}. The data of “By word” has every word."
        )


def _labels(parts: Sequence[LedgerPart]) -> list[str]:
    """Labels that differ, for equal words too."""
    return [part.text if part.kind == "rest" else f"{part.positions[0]} {part.text[:24]}" for part in parts]


def _table(words: Ledger) -> pd.DataFrame:
    of_a, of_b = words.part_scores()
    return pd.DataFrame(
        {
            "text": ["A"] * len(of_a) + ["B"] * len(of_b),
            "word": [part.text for part in (*words.first, *words.second)],
            "kind": [part.kind for part in (*words.first, *words.second)],
            "contribution": np.concatenate([of_a, of_b]).round(6),
        }
    )


def _start(words: Ledger) -> str:
    """The largest pairs of words, in a sentence."""
    best, lowest = words.top(2), _named_lowest(words)
    cosine = f"the cosine **{number(words.cosine)}**"
    listed = " and ".join(f"{_pair(pair)} ({signed(pair.contribution, 2)})" for pair in best)
    terms = sum(term.value for term in words.terms)
    more = "" if lowest is None else f"; {_pair(lowest)} {_lowers(lowest.contribution, 2)}"
    more += f"; {_name_of(words.terms)}: {signed(terms, 2)}" if abs(terms) >= 0.005 else ""
    if not listed:
        return f"No pair of words raises {cosine}{more}."
    # Parts of both signs can cancel out, so that a part larger than the cosine itself need not be most of it.
    sizes = float(np.abs(words.contributions).sum()) + sum(abs(term.value) for term in words.terms)
    if sum(pair.contribution for pair in best) > sizes / 2:
        return f"T{cosine[1:]} is mostly {listed}{more}."
    return f"The largest of many parts of {cosine}: {listed}{more}."


def _pair(pair: TopPair) -> str:
    return f"“{messages.escape(pair.first.text)}” with “{messages.escape(pair.second.text)}”"


def _named_lowest(words: Ledger) -> TopPair | None:
    """The pair that takes most away, if it belongs to the largest pairs in size."""
    lowest = words.lowest()
    best = [pair.contribution for pair in words.top(2)]
    return lowest if lowest is not None and _is_named(lowest.contribution, best) else None


def _is_named(lowest: float, best: Sequence[float]) -> bool:
    """Whether the lowest contribution is larger in size than one of the `best` two."""
    return lowest < 0 and (len(best) < 2 or -lowest > min(best))


def _lowers(contribution: float, digits: int) -> str:
    return f"lowers it ({signed(contribution, digits)})"


def _rest(words: Ledger) -> str:
    """The sum of the pairs that the first sentence names, and all that it leaves out: the cosine; and the dot product."""
    named = [*words.top(2), *(pair for pair in (_named_lowest(words),) if pair is not None)]
    outside = words.outside_words()
    others = float(words.contributions.sum()) - outside - sum(pair.contribution for pair in named)
    in_a, in_b = (sum(part.kind == "word" for part in parts) for parts in (words.first, words.second))
    first, second = apart(*words.lengths)
    pairs = (
        f"{enumerated([_pair(pair) for pair in named])}: {signed(sum(pair.contribution for pair in named), 2)}; "
        if named
        else ""
    )
    return with_isolated_quotes(
        f"{pairs}{counted(in_a * in_b - len(named), 'other pair')} of words: {signed(others, 2)}; special tokens and "
        f"punctuation: {signed(outside, 2)}.{_terms(words.terms)} {_error_of_sum(words.left_over)} "
        f"Dot product {number(words.dot_product, 2)}: the cosine times the lengths {first} and {second}."
    )


def _terms(terms: Sequence[Term]) -> str:
    """What belongs to no pair, as one number with its name."""
    return f" What {_name_of(terms)} add: {signed(sum(term.value for term in terms), 2)}." if terms else ""


def _name_of(terms: Sequence[Term]) -> str:
    return "the empty texts that both are compared with" if len(terms) > 1 else terms[0].name


def _error_of_sum(value: float) -> str:
    if abs(value) < FALSE_ZERO:
        return "All this sums to the cosine, to within 0.00001."
    return f"All this sums to the cosine but for {signed(value, 5)}."
