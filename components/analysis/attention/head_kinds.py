"""What kind of head each one is in a text: where most of its attention goes.

Over the tokens of the text that look, a head's attention is divided among the token before, the token after, the token itself,
special tokens ([CLS], [SEP] and their like) and all other tokens of the text; the largest share names the kind. A neighbour
that is a special token counts as special. Before that, a head whose attention is nearly even, with an entropy above
`EVEN` of the highest possible one, is one that spreads: its shares say little. After Clark et al. 2019 ("What Does BERT Look
At?", sections 3 and 4), who classified heads by these shares and by their entropy.

What it does not show: what a head is for. The largest share can be small, and a head that rests on [CLS] or [SEP] in most of
its rows can look at one word in another, which its kind hides. One text is little evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from components.analysis.attention.weights import entropies, sums_over_links
from components.arrays import Float64, read_only
from components.model.trace import TokenizedSentence

Relation = Literal["words", "before", "after", "itself", "special"]  # of a key to a query
Kind = Literal["words", "spread", "before", "after", "itself", "special"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)
KINDS: tuple[Kind, ...] = get_args(Kind)
EVEN = 0.75  # of the highest possible entropy: above it a head spreads its attention


@dataclass(frozen=True, eq=False)
class HeadKinds:
    """The kind of each head in one text."""

    names: tuple[tuple[Kind, ...], ...]  # [block][head]
    shares: Float64  # [block, head, relation], mean over the tokens that look; the last axis sums to 1
    evenness: Float64  # [block, head]: entropy divided by the highest possible one, 0..1

    def of(self, kind: Kind) -> tuple[tuple[int, int], ...]:
        """The heads of a kind as block and head, the purest first; on a tie the lower block, then the lower head."""
        found = [(block, head) for block, row in enumerate(self.names) for head, name in enumerate(row) if name == kind]
        return tuple(sorted(found, key=lambda at: (-self.purity(*at), at)))

    def purity(self, block: int, head: int) -> float:
        """How clearly a head is of its kind, 0..1: the share that its kind gets, or the evenness of one that spreads."""
        name = self.names[block][head]
        if name == "spread":
            return float(self.evenness[block, head])
        return float(self.shares[block, head, RELATIONS.index(name)])


def relations(sentence: TokenizedSentence) -> np.ndarray:
    """The relation of each key to each query as its number in RELATIONS, uint8 [query, key]."""
    special = np.array([token.special for token in sentence.tokens], bool)
    return related(special).argmax(axis=-1).astype(np.uint8)


def related(special: np.ndarray) -> np.ndarray:
    """Which relation each key has to each query, bool [query, key, relation], by which tokens are `special` [token]."""
    ahead = np.arange(len(special)) - np.arange(len(special))[:, None]  # [query, key]
    near = [(ahead == distance) & ~special for distance in (-1, 1, 0)]  # before, after, itself
    to_special = np.broadcast_to(special, ahead.shape)
    return np.stack([~(sum(near) + to_special).astype(bool), *near, to_special], axis=-1)


def head_kinds(
    attentions: np.ndarray, sentence: TokenizedSentence, windows: Sequence[int | None] = ()
) -> HeadKinds | None:
    """The kinds of all heads, from attentions [block, head, query, key]; None for a text without tokens of its own.

    Special tokens do not look. `windows` has the furthest distance at which the tokens of each block attend, None for any:
    attention can be no more even than over what a token sees. Raises ValueError if attentions and sentence do not fit.
    """
    length = len(sentence)
    if attentions.ndim != 4 or attentions.shape[2:] != (length, length):
        raise ValueError(f"[block, head, {length}, {length}] was expected, not {attentions.shape}")
    looking = np.array([not token.special for token in sentence.tokens], bool)
    if not looking.any():
        return None
    links = related(~looking)[looking]  # [looking, key, relation]
    shares, evenness = [], []
    for block, heads in enumerate(attentions):
        rows = heads[:, looking]  # [head, looking, key]
        found = sums_over_links(rows, links)
        shares.append(found / found.sum(axis=-1, keepdims=True))
        highest = _highest_entropy(looking, windows[block] if windows else None)
        evenness.append(entropies(rows).mean(axis=-1) / highest if highest else np.zeros(len(rows)))
    all_shares, all_evenness = np.array(shares), np.array(evenness)
    names: tuple[tuple[Kind, ...], ...] = tuple(
        tuple("spread" if even > EVEN else RELATIONS[int(share.argmax())] for share, even in zip(*block, strict=True))
        for block in zip(all_shares, all_evenness, strict=True)
    )
    return HeadKinds(names, read_only(all_shares), read_only(all_evenness))


def _highest_entropy(looking: np.ndarray, window: int | None) -> float:
    """The mean entropy of attention that is even over what each token sees."""
    positions = np.arange(len(looking))
    reach = len(looking) if window is None else window
    sees = (np.abs(positions[None, :] - positions[:, None]) <= reach).sum(axis=1)
    return float(np.log(sees)[looking].mean())
