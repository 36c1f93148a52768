"""What each attention head attends to: previous token, next token, separators and other simple patterns.

A head's score on a pattern is the share of its attention that goes to the pattern's targets, averaged over the
query tokens that have a target ("previous" has none for the first token, "same_word" none for a word that occurs
once). Clark et al. 2019 ("What Does BERT Look At?", sections 3 and 4) classified heads by these shares; the entropy
of a row says whether a head is focused or broad (their section 3.3).

What it does not show: that the *purpose* of the head is the pattern. Scores overlap (the token before the first word
is also the first token; the one after the last word is a separator) and do not sum to 1; in a short sentence targets
receive much attention by chance, so compare a score with `chance`, the score of attention spread evenly over the tokens
that the block sees (a block with local attention sees only those of its window). Heads
that find no target tend to attend to separators (Clark et al., section 3.2). One sentence is not enough: use several.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from components.analysis.attention.weights import TextsFilter, entropies, pair_mask, sums_over_links
from components.arrays import Float64, read_only
from components.errors import InputError
from components.model.trace import TokenizedSentence
from components.words.unicode_words import folded

Pattern = Literal["previous", "next", "itself", "first", "separators", "same_word", "punctuation", "rarest", "broad"]
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)

# The definition of each pattern, for people.
MEANING: Mapping[Pattern, str] = MappingProxyType(
    {
        "previous": "the token before",
        "next": "the token after",
        "itself": "the token itself",
        "first": "the first token, [CLS] in BERT",
        "separators": "the [SEP] tokens",
        "same_word": "the same word at another position, ignoring case",
        "punctuation": "punctuation marks",
        "rarest": "the rarest token of the text, by its id in the vocabulary",
        "broad": "all tokens equally: entropy divided by the highest possible entropy",
    }
)


@dataclass(frozen=True)
class RankedHead:
    block: int
    head: int
    score: float


@dataclass(frozen=True, eq=False)
class HeadPatterns:
    """Scores of every head. Arrays are float64 [block, head]; NaN if no query has a target."""

    scores: Mapping[Pattern, Float64]  # shares of attention, 0..1
    chance: Mapping[
        Pattern, Float64
    ]  # [block]: the score of attention spread evenly over all tokens that the block sees
    queries: Mapping[Pattern, int]  # the number of query tokens that a score is the mean of
    entropy: Float64  # mean over queries, in nats: 0 for one key, log(tokens) for evenly spread attention
    distance: Float64  # mean of |query - key|, in tokens, weighted by attention

    def top(self, name: Pattern, k: int = 5) -> tuple[RankedHead, ...]:
        """The k heads with the highest score, highest first; on a tie the lower block, then the lower head, comes first.

        Heads without a score are left out.
        """
        values = self.scores[name]
        heads = values.shape[1]
        order = np.argsort(-values, axis=None, kind="stable")  # NaN comes last
        ranked = [
            RankedHead(int(cell) // heads, int(cell) % heads, float(values.flat[cell])) for cell in order[: max(0, k)]
        ]
        return tuple(head for head in ranked if not np.isnan(head.score))

    def clearest(self) -> RankedHead | None:
        """The head that follows a pattern most clearly: its score less what chance gives, in the pattern where it is largest.

        Attention to the first token and to separators does not count, because heads that find no target attend to
        them (Clark et al., section 3.2), and neither does evenly spread attention. None if nothing else has a score.
        """
        excess = {
            pattern: self.scores[pattern] - self.chance[pattern][:, None]  # [block, head]
            for pattern in PATTERNS
            if pattern not in {"first", "separators", "broad"}
        }
        heads = []
        for values in excess.values():
            if not np.isnan(values).all():
                block, head = divmod(int(np.nanargmax(values)), values.shape[1])
                heads.append(RankedHead(block, head, float(values[block, head])))
        return max(heads, key=lambda head: head.score, default=None)

    def best_pattern(self, block: int, head: int) -> tuple[Pattern, float]:
        """The pattern with the highest score, and the score; the first of PATTERNS on a tie.

        A head that spreads the rest of its attention evenly is "broad" until a pattern receives about six
        tenths of its attention: to find weaker heads, rank them by that pattern.
        """
        values = [self.scores[pattern][block, head] for pattern in PATTERNS]
        best = int(np.nanargmax(values))
        return PATTERNS[best], float(values[best])


def score_heads(
    attentions: Iterable[np.ndarray],
    sentences: Sequence[TokenizedSentence],
    include_special: bool = False,
    texts: TextsFilter = "all",
    windows: Sequence[int | None] = (),
) -> HeadPatterns:
    """Score every head on every pattern over one or more sentences.

    `attentions` has an array [block, head, query, key] for each sentence, without padding. All keys count.
    Special tokens are not queries unless `include_special`: the attention of [CLS] and [SEP] is hardly related
    to words, and in many heads they attend to themselves. A query's own position is a target of "itself"
    only. Over several sentences each score is the mean over all query tokens with a target, so that a sentence
    counts by the number of such tokens; "broad" is the entropy divided by the highest possible one, the mean logarithm of the
    number of tokens that a query sees. `windows` has the furthest distance at which the tokens of each block attend
    (`Structure.windows`), None for any; without it every token sees all.
    `texts` selects texts of a pair: with "ab" the tokens of A are the queries, and only attention to targets in B
    counts (shares still refer to all their attention; entropy and distance to whole rows).
    Raises InputError if no query token is left or there is no text B, ValueError if attentions and
    sentences do not fit.
    """
    sums: dict[str, Float64] = {}
    evenly_spread: dict[str, Float64] = {}
    queries: dict[str, int] = {}
    for attention, sentence in zip(attentions, sentences, strict=True):
        length = len(sentence)
        if attention.ndim != 4 or attention.shape[2:] != (length, length):
            raise ValueError(f"[block, head, {length}, {length}] was expected, not {attention.shape}")
        is_query = np.array([include_special or not token.special for token in sentence.tokens], bool)  # [query]
        links = pair_mask(sentence, texts)  # [query, key]
        is_query &= links.any(axis=1)
        weights = {name: weight if name == "distance" else weight * links for name, weight in targets(sentence).items()}
        stacked = np.stack([weight * is_query[:, None] for weight in weights.values()], axis=-1)  # [query, key, name]
        shares, entropy = _sums(attention, stacked, is_query)
        scores_of = dict(zip(weights, np.moveaxis(shares, -1, 0), strict=True))
        scores_of["entropy"] = entropy
        with_target = {name: int((weight.any(axis=1) & is_query).sum()) for name, weight in weights.items()}
        with_target["distance"] = with_target["entropy"] = int(is_query.sum())
        evenly = _evenly_spread(weights, is_query, windows or (None,) * len(attention))
        # In a sentence of one token the only key gets all attention: this is neither broad nor focused.
        with_target["broad"] = with_target["entropy"] if length > 1 else 0
        highest = evenly["entropy"] / max(1, with_target["broad"])  # [block], mean of the queries
        scale = np.where(highest > 0, highest, np.inf)
        scores_of["broad"], evenly["broad"] = entropy / scale[:, None], evenly["entropy"] / scale
        for name, values in scores_of.items():
            sums[name] = sums[name] + values if name in sums else values
            evenly_spread[name] = evenly_spread[name] + evenly[name] if name in evenly_spread else evenly[name]
            queries[name] = queries.get(name, 0) + with_target[name]
    if not queries.get("entropy"):
        raise InputError(
            "The sentences contain only special tokens.",
            "Heads are scored by the attention of the text's own tokens, so at least one such token is needed.",
            "Choose another sentence, or include special tokens.",
        )
    return HeadPatterns(
        scores=MappingProxyType({name: _mean(sums[name], queries[name]) for name in PATTERNS}),
        chance=MappingProxyType({name: _mean(evenly_spread[name], queries[name]) for name in PATTERNS}),
        queries=MappingProxyType({name: queries[name] for name in PATTERNS}),
        entropy=_mean(sums["entropy"], queries["entropy"]),
        distance=_mean(sums["distance"], queries["distance"]),
    )


def _evenly_spread(
    weights: Mapping[str, Float64], is_query: NDArray[np.bool_], windows: Sequence[int | None]
) -> dict[str, Float64]:
    """The sums over queries that attention spread evenly over what each block sees would have, float64 [block] each."""
    positions = np.arange(len(is_query))
    far = np.abs(positions[None, :] - positions[:, None])  # [query, key]
    by_window: dict[int | None, dict[str, float]] = {}
    for window in set(windows):
        sees = far <= (len(is_query) if window is None else window)
        each = is_query[:, None] * sees / sees.sum(axis=1, keepdims=True)  # [query, key]
        by_window[window] = {name: float((weight * each).sum()) for name, weight in weights.items()}
        by_window[window]["entropy"] = float(np.log(sees.sum(axis=1))[is_query].sum())
    return {name: np.array([by_window[window][name] for window in windows]) for name in (*weights, "entropy")}


def _sums(attention: np.ndarray, weights: Float64, is_query: NDArray[np.bool_]) -> tuple[Float64, Float64]:
    """Attention times weights [query, key, name], summed: [block, head, name]; entropies summed: [block, head].

    Block by block: in float64 all heads of a 512-token sentence at once would take 300 MB and more.
    """
    shares, of_heads = [], []
    for block in attention:
        shares.append(sums_over_links(block, weights))  # [head, name]
        of_heads.append(entropies(block)[:, is_query].sum(axis=-1))
    return np.array(shares), np.array(of_heads)


def targets(sentence: TokenizedSentence) -> dict[str, Float64]:
    """The weight of each link for a pattern (1 for a target) or for the distance, float64 [query, key]."""
    tokens = sentence.tokens
    positions = np.arange(len(tokens))
    ahead = positions[None, :] - positions[:, None]  # [query, key]
    ends = {token.id for token in tokens[1:] if token.special}
    # By id and not by flag: to the model a typed [SEP] is a separator as well.
    separator = np.array([token.position > 0 and token.id in ends for token in tokens], bool)
    mark = np.array([_is_punctuation(sentence.surface(token.position)) for token in tokens], bool)
    found = {
        "previous": ahead == -1,
        "next": ahead == 1,
        "itself": ahead == 0,
        "first": (positions == 0)[None, :] & (ahead != 0),
        "separators": separator[None, :] & (ahead != 0),
        "same_word": _same_word(sentence),
        "punctuation": mark[None, :] & (ahead != 0),
        "rarest": _rarest(sentence)[None, :] & (ahead != 0),
        "distance": np.abs(ahead),
    }
    return {name: target.astype(np.float64) for name, target in found.items()}


def _same_word(sentence: TokenizedSentence) -> NDArray[np.bool_]:
    """Whether query and key belong to the same word at two positions, bool [query, key]; not for punctuation."""
    forms: dict[str, int] = {}
    form, first = [], []  # for each token: the number of its word's form (-1 for none), and the word's first position
    for token in sentence.tokens:
        text = "" if token.word is None else folded(sentence.word_text(token.position))
        form.append(forms.setdefault(text, len(forms)) if any(char.isalnum() for char in text) else -1)
        first.append(sentence.word_positions(token.position)[0])
    number, word = np.array(form), np.array(first)
    return (number[:, None] == number) & (word[:, None] != word) & (number[:, None] >= 0)


def _rarest(sentence: TokenizedSentence) -> NDArray[np.bool_]:
    """Whether a token is the rarest one, bool [token], at all its positions: the one with the highest id in a word.

    The ids of BERT's vocabulary run from frequent to rare words, roughly; special tokens and punctuation do not count.
    """
    ids = np.array(
        [
            -1 if token.special or _is_punctuation(sentence.surface(token.position)) else token.id
            for token in sentence.tokens
        ]
    )
    return (ids == ids.max()) & (ids >= 0)


def _is_punctuation(text: str) -> bool:
    """Whether a text is not empty and only punctuation (Unicode's categories P): "," or "...", not "$"."""
    marks = text.strip()
    return bool(marks) and all(unicodedata.category(char).startswith("P") for char in marks)


def _mean(total: Float64, count: int) -> Float64:
    return read_only(total / count if count else np.full_like(total, np.nan))
