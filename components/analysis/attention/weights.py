"""Attention matrices made readable: whole words, no special tokens, combined heads, one text of a pair.

attentions[block, head, query, key] is the share of its attention that the query token gives to the key token
in this head: each row (one query) is a distribution over keys and sums to 1.

Words: attention *to* a split word is the sum over its pieces, attention *from* it the mean over its pieces
(Clark et al. 2019, "What Does BERT Look At?", section 4.1). Both keep the row a distribution.

The order of the steps is: combine heads, merge words, leave out special tokens, select texts.
Merged words have the masks that the later steps need. After leaving out tokens, and
after selecting texts, a row sums to the share that the query gives to the remaining keys (`renormalised`: to 1).

What it does not show: what a head *does*. A high weight on a token with a short value vector changes almost
nothing (Kobayashi et al. 2020; see components.analysis.attention.flow), and whether weights explain a model's
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

Combination = Literal["mean", "max"]
TextsFilter = Literal["all", "aa", "ab", "ba", "bb"]  # queries of text a or b, keys of text a or b
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class WordAttention:
    """Attention between words; each special token counts as a word."""

    matrix: np.ndarray  # [..., query, key] over words
    starts: Sequence[int]  # the position of each word's first token
    labels: tuple[str, ...]  # each word as typed; the piece of a special token
    special: Mask  # [word]
    second: Mask  # [word], of the second text of a pair


@dataclass(frozen=True, eq=False)
class PairAttention:
    """The part of an attention matrix that goes from one text to another."""

    matrix: np.ndarray  # [..., query, key]
    queries: tuple[int, ...]  # kept rows of the whole matrix
    keys: tuple[int, ...]  # kept columns


def of_sentence(trace: Trace, sentence: int) -> Float32:
    """Attentions of one sentence without padding, a view [block, head, query, key].

    Nothing is lost: padding receives no attention, so that the rows of real tokens still sum to 1.
    Raises ValueError for a trace without attentions.
    """
    if trace.attentions is None:
        raise ValueError("this trace has no attentions; make it with attentions=True")
    length = len(trace.sentences[sentence])
    return trace.attentions[:, sentence, :, :length, :length]


def merge_words(attention: np.ndarray, sentence: TokenizedSentence) -> WordAttention:
    """[..., query, key] over a sentence's tokens to the same over its words: sums over keys, means over queries.

    Raises ValueError if the last two axes are not the sentence's tokens.
    """
    _check_square(attention, len(sentence))
    words = groupby(
        sentence.tokens,
        key=lambda token: (token.in_pair, -1 - token.position if token.word is None else token.word),
    )
    groups = [list(tokens) for _, tokens in words]
    first = [group[0] for group in groups]
    starts = [token.position for token in first]
    return WordAttention(
        merged(attention, starts),
        starts,
        tuple(sentence.word_text(token.position) for token in first),
        read_only(np.array([token.special for token in first], bool)),
        read_only(second_text(sentence)[starts]),
    )


def merged(attention: np.ndarray, starts: Sequence[int]) -> np.ndarray:
    """[..., query, key] over tokens to the same over words, which begin at `starts`: sums over keys, means over queries."""
    sizes = np.diff([*starts, attention.shape[-1]]).astype(attention.dtype)
    matrix = np.add.reduceat(attention, starts, axis=-1)  # [..., query, word]
    return np.asarray(np.add.reduceat(matrix, starts, axis=-2) / sizes[:, None])  # [..., word, word]


def without_special(attention: np.ndarray, special: Mask) -> np.ndarray:
    """[..., query, key] without the rows and columns of special tokens, which `special` [token] marks.

    A row then sums to the share that did not go to special tokens, which is small in many heads.
    """
    _check_square(attention, len(special))
    keep = np.flatnonzero(~np.asarray(special, bool))
    return attention[..., keep[:, None], keep]  # [..., kept query, kept key]


def combine(attentions: np.ndarray, blocks: Sequence[int], heads: Sequence[int], how: Combination = "mean") -> Float64:
    """One matrix [query, key] out of attentions [block, head, query, key]: the chosen heads of the chosen blocks.

    The mean's rows sum to 1. The maximum shows a link if any of the heads has it: its rows sum to 1 or more.
    Raises ValueError if nothing is chosen, for a block or head that does not exist, or for another `how`.
    """
    if how not in get_args(Combination):
        raise ValueError(f"unknown way to combine {how!r}; expected one of {', '.join(get_args(Combination))}")
    chosen_blocks = _indices(blocks, attentions.shape[0], "blocks")
    chosen_heads = _indices(heads, attentions.shape[1], "heads")
    if not chosen_blocks or not chosen_heads:
        raise ValueError("at least one block and one head are needed")
    return combined(attentions, chosen_blocks, chosen_heads, how)


def combined(attentions: np.ndarray, blocks: Sequence[int], heads: Sequence[int], how: str) -> Float64:
    """The mean, or with "max" the maximum, of some heads of some blocks: [block, head, query, key] to [query, key]."""
    result = np.zeros(attentions.shape[2:])  # one head at a time: a copy of all of them at 512 tokens would be 151 MB
    for block in blocks:
        for head in heads:
            if how == "mean":
                result += attentions[block, head]
            else:
                np.maximum(result, attentions[block, head], out=result)
    return result / (len(blocks) * len(heads)) if how == "mean" else result


def sums_over_links(heads: np.ndarray, links: np.ndarray) -> Float64:
    """Attention [head, query, key] summed over the links of each kind, [query, key, kind] (1 for a link): [head, kind]."""
    wide = np.asarray(heads, np.float64).reshape(len(heads), -1)
    return np.asarray(wide @ links.reshape(-1, links.shape[-1]).astype(np.float64, copy=False))


def entropies(heads: np.ndarray) -> Float64:
    """The entropy of each row of attention in nats, [..., query, key] to [..., query]; 0 log 0 counts as 0, its limit."""
    wide = np.asarray(heads, np.float64)
    return -(wide * np.log(np.maximum(wide, np.finfo(np.float64).tiny))).sum(axis=-1)


def renormalised(attention: np.ndarray) -> np.ndarray:
    """Each row of [..., query, key] divided by its sum: shares of the attention that goes to the keys that are left.

    A row whose sum is 0, which gives nothing to these keys, has no such shares and becomes NaN.
    """
    with np.errstate(invalid="ignore"):
        return attention / attention.sum(axis=-1, keepdims=True)


def received_from(attention: np.ndarray, queries: Sequence[int]) -> np.ndarray:
    """The attention each key token receives from the chosen queries: their rows of [..., query, key] summed, [..., key].

    Over all keys this sums to the number of chosen queries (each counts once).
    Raises ValueError for a query that does not exist.
    """
    return attention[..., _indices(queries, attention.shape[-2], "queries"), :].sum(axis=-2)


def second_text(sentence: TokenizedSentence) -> Mask:
    """True for tokens of the second text of a pair, bool [token]; all False if there is no pair.

    [CLS] and the [SEP] between the texts belong to the first, the [SEP] at the end to the second, as in BERT's
    segments (Devlin et al. 2019, figure 2). RoBERTa's pair, <s> a </s></s> b </s>, has no segments: both
    separators between the texts belong to the first.
    """
    second = np.zeros(len(sentence), bool)
    if sentence.pair is not None:
        start = next((token.position for token in sentence.tokens if token.in_pair), None)
        # A second text without any tokens still has its separator at the end.
        second[len(sentence) - 1 if start is None else start :] = True
    return second


def select_pair(attention: np.ndarray, sentence: TokenizedSentence | Mask, texts: TextsFilter = "all") -> PairAttention:
    """The rows of one text and the columns of another: "ab" is from tokens of A to tokens of B.

    If the rows are no longer tokens, `sentence` is instead a mask of those that belong to the second text
    (WordAttention.second, or a part of it). Rows are not renormalised: with "ab" each sums to the share that
    the token gives to B. Raises InputError if `texts` names a text B that does not exist, ValueError if the
    matrix does not fit the sentence or for another `texts`.
    """
    if texts not in get_args(TextsFilter):
        raise ValueError(f"unknown texts {texts!r}; expected one of {', '.join(get_args(TextsFilter))}")
    second = second_text(sentence) if isinstance(sentence, TokenizedSentence) else np.asarray(sentence, bool)
    _check_square(attention, len(second))
    if "b" in texts and not second.any():
        raise InputError(
            "Attention from or to a second text needs two texts, but there is only one text.",
            "This view needs a pair of texts.",
            "Choose a sentence B, or show the attention between all tokens.",
        )
    everything = np.arange(len(second))
    queries, keys = (
        (everything, everything) if texts == "all" else (np.flatnonzero(second == (side == "b")) for side in texts)
    )
    matrix = attention[..., queries[:, None], keys]  # [..., query of one text, key of the other]
    return PairAttention(matrix, tuple(map(int, queries)), tuple(map(int, keys)))


def pair_mask(sentence: TokenizedSentence, texts: TextsFilter = "all") -> Mask:
    """True for the cells that `select_pair` keeps, bool [query, key]."""
    tokens = len(sentence)
    part = select_pair(np.zeros((tokens, tokens), bool), sentence, texts)
    mask = np.zeros((tokens, tokens), bool)
    mask[np.ix_(part.queries, part.keys)] = True
    return mask


def _check_square(attention: np.ndarray, tokens: int) -> None:
    if attention.shape[-2:] != (tokens, tokens):
        raise ValueError(f"an attention of {tokens} x {tokens} tokens was expected, not of shape {attention.shape}")


def _indices(chosen: Sequence[int], count: int, name: str) -> list[int]:
    """The chosen indices in order, each once. Negative ones, which would count from the end, are refused."""
    unique = sorted(set(chosen))
    if unique and not 0 <= unique[0] <= unique[-1] < count:
        raise ValueError(f"{name} {list(chosen)} are not all within 0..{count - 1}")
    return [int(index) for index in unique]
