"""Attention matrices made readable: subwords as words, without special tokens, heads combined, texts of a pair.

attentions[block, head, query, key] is the share of its attention that the query token gives to the key token
in this head: each row (one query) is a distribution over keys and sums to 1.

Words: attention *to* a split word is the sum over its pieces, attention *from* it the mean over its pieces
(Clark et al. 2019, "What Does BERT Look At?", section 4.1). Both keep the row a distribution.

Steps follow one another in this order: combine heads, merge words, leave special tokens out, select texts.
Merged words carry the masks that the later steps ask for. After leaving tokens out without renormalising, and
after selecting texts, a row sums to what the query gives to the keys that are left.

What it does not show: what a head *does*. A high weight on a token with a short value vector changes next to
nothing (Kobayashi et al. 2020; see components.analysis.attention_flow), and whether weights explain a model's
answer is disputed (Jain and Wallace 2019 against, Wiegreffe and Pinter 2019 for a narrower sense of the word).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float32, Float64, read_only
from components.errors import InputError
from components.model.trace import TokenizedSentence, Trace

How = Literal["mean", "max"]
Which = Literal["all", "aa", "ab", "ba", "bb"]  # queries of text a or b, keys of text a or b
WHICH: tuple[Which, ...] = get_args(Which)
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class WordAttention:
    """Attention between words; special tokens count as words of their own."""

    matrix: np.ndarray  # [..., query, key] over words
    labels: tuple[str, ...]  # each word as typed; the piece of a special token
    groups: tuple[tuple[int, ...], ...]  # positions of each word's pieces
    special: Mask  # [word]
    second: Mask  # [word], of the second text of a pair


@dataclass(frozen=True, eq=False)
class PairAttention:
    """The part of an attention matrix that goes from one text to another."""

    matrix: np.ndarray  # [..., query, key]
    queries: tuple[int, ...]  # rows of the whole matrix that are kept
    keys: tuple[int, ...]  # and its columns


def of_sentence(trace: Trace, sentence: int) -> Float32:
    """Attentions of one sentence without padding, a view [block, head, query, key].

    Nothing is lost: padding gets no attention, so that the rows of real tokens still sum to 1.
    Raises ValueError for a trace without attentions.
    """
    if trace.attentions is None:
        raise ValueError("this trace has no attentions; ask for them with attentions=True")
    length = len(trace.sentences[sentence])
    return trace.attentions[:, sentence, :, :length, :length]


def merge_words(attention: np.ndarray, sentence: TokenizedSentence) -> WordAttention:
    """[..., query, key] over a sentence's tokens to the same over its words: sums over keys, means over queries.

    Raises ValueError when the last two axes are not the sentence's tokens.
    """
    _check_square(attention, len(sentence))
    groups = tuple(
        tuple(token.position for token in tokens)
        for _, tokens in groupby(
            sentence.tokens,
            key=lambda token: (token.in_pair, -1 - token.position if token.word is None else token.word),
        )
    )
    starts = [group[0] for group in groups]
    sizes = np.array([len(group) for group in groups], attention.dtype)
    matrix = np.add.reduceat(attention, starts, axis=-1)  # [..., query, word]
    matrix = np.add.reduceat(matrix, starts, axis=-2) / sizes[:, None]  # [..., word, word]
    first = [sentence.tokens[start] for start in starts]
    return WordAttention(
        matrix,
        tuple(sentence.word_text(token.position) for token in first),
        groups,
        read_only(np.array([token.special for token in first], bool)),
        read_only(second_text(sentence)[starts]),
    )


def without_special(attention: np.ndarray, special: Mask, renormalise: bool) -> np.ndarray:
    """Rows and columns of special tokens taken out of [..., query, key]; `special` [token] says which they are.

    With `renormalise` each row is divided by its sum, so that it says how attention is spread among the tokens
    left; a row with nothing left is NaN, for there is nothing to spread. Without it a row sums to the share
    that did not go to special tokens, which in many heads is small: a row with nothing left is all zeros.
    """
    _check_square(attention, len(special))
    keep = np.flatnonzero(~np.asarray(special, bool))
    kept = attention[..., keep[:, None], keep]  # [..., kept query, kept key]
    if not renormalise:
        return kept
    total = kept.sum(axis=-1, keepdims=True, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, kept / total, np.nan).astype(attention.dtype)


def combine(attentions: np.ndarray, blocks: Sequence[int], heads: Sequence[int], how: How = "mean") -> Float64:
    """One matrix [query, key] out of attentions [block, head, query, key]: the chosen heads of the chosen blocks.

    The mean's rows sum to 1. The maximum shows a link that any of the heads makes: its rows sum to 1 or more.
    Raises ValueError when nothing is chosen, or a block or head that is not there, or for another `how`.
    """
    if how not in get_args(How):
        raise ValueError(f"unknown way to combine {how!r}; expected one of {', '.join(get_args(How))}")
    chosen_blocks = _indices(blocks, attentions.shape[0], "blocks")
    chosen_heads = _indices(heads, attentions.shape[1], "heads")
    if not chosen_blocks or not chosen_heads:
        raise ValueError("at least one block and one head are needed")
    # One head at a time: a choice of all of them at 512 tokens would be a copy of 151 MB.
    result = np.zeros(attentions.shape[2:])
    for block in chosen_blocks:
        for head in chosen_heads:
            if how == "mean":
                result += attentions[block, head]
            else:
                np.maximum(result, attentions[block, head], out=result)
    return result / (len(chosen_blocks) * len(chosen_heads)) if how == "mean" else result


def received_from(attention: np.ndarray, queries: Sequence[int]) -> np.ndarray:
    """What each key token gets from the chosen query tokens: their rows of [..., query, key] summed, [..., key].

    Over all keys this sums to the number of queries chosen (each counts once); for none it is zero.
    Raises ValueError for a query that is not there.
    """
    return attention[..., _indices(queries, attention.shape[-2], "queries"), :].sum(axis=-2)


def second_text(sentence: TokenizedSentence) -> Mask:
    """Which tokens belong to the second text of a pair, bool [token]; none where there is no pair.

    [CLS] and the [SEP] between the texts belong to the first, the [SEP] at the end to the second, as BERT's
    segments have it (Devlin et al. 2019, figure 2). RoBERTa's kind of pair, <s> a </s></s> b </s>, has no
    segments: there both marks between the texts belong to the first.
    """
    second = np.zeros(len(sentence), bool)
    if sentence.pair is not None:
        start = next((token.position for token in sentence.tokens if token.in_pair), None)
        # A second text of which the tokenizer left nothing still has its mark at the end.
        second[len(sentence) - 1 if start is None else start :] = True
    return second


def select_pair(attention: np.ndarray, texts: TokenizedSentence | Mask, which: Which = "all") -> PairAttention:
    """The rows of one text and the columns of another: "ab" is from tokens of A to tokens of B.

    `texts` is the sentence, or a mask of what belongs to the second text where rows are no longer tokens
    (WordAttention.second, or a part of it). Rows are left as they are: with "ab" each sums to the share that
    the token gives to B. Raises InputError when text B is asked for and there is none, ValueError when the
    matrix does not fit the texts or for another `which`.
    """
    if which not in WHICH:
        raise ValueError(f"unknown selection {which!r}; expected one of {', '.join(WHICH)}")
    second = second_text(texts) if isinstance(texts, TokenizedSentence) else np.asarray(texts, bool)
    _check_square(attention, len(second))
    if "b" in which and not second.any():
        raise InputError(
            "Attention from or to a second text was asked for, but there is only one text.",
            "A pair of texts was expected.",
            "Choose a sentence B, or show the attention between all tokens.",
        )
    everything = np.arange(len(second))
    queries, keys = (
        (everything, everything) if which == "all" else (np.flatnonzero(second == (side == "b")) for side in which)
    )
    matrix = attention[..., queries[:, None], keys]  # [..., query of one text, key of the other]
    return PairAttention(matrix, tuple(map(int, queries)), tuple(map(int, keys)))


def pair_mask(sentence: TokenizedSentence, which: Which = "all") -> Mask:
    """Which links go from one text to another, bool [query, key]: the cells that `select_pair` keeps."""
    tokens = len(sentence)
    part = select_pair(np.zeros((tokens, tokens), bool), sentence, which)
    mask = np.zeros((tokens, tokens), bool)
    mask[np.ix_(part.queries, part.keys)] = True
    return mask


def _check_square(attention: np.ndarray, tokens: int) -> None:
    if attention.shape[-2:] != (tokens, tokens):
        raise ValueError(f"an attention of {tokens} x {tokens} tokens was expected, not of shape {attention.shape}")


def _indices(chosen: Sequence[int], count: int, name: str) -> list[int]:
    """The chosen indices in order, each once. Negative ones are refused: they would count from the end."""
    unique = sorted(set(chosen))
    if unique and not 0 <= unique[0] <= unique[-1] < count:
        raise ValueError(f"{name} {list(chosen)} are not all within 0..{count - 1}")
    return [int(index) for index in unique]
