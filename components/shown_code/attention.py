"""Code for attention: one head or several as a matrix, one word's weights, rollout, and what a mask changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from components.analysis.attention.flow import rollout
from components.analysis.attention.head_kinds import head_kinds, related
from components.analysis.attention.head_patterns import score_heads, targets
from components.analysis.attention.overview import attention_overview, attention_row
from components.analysis.attention.weights import (
    combined,
    entropies,
    merged,
    of_sentence,
    renormalised,
    sums_over_links,
)
from components.analysis.mask_predictions import kept_similarity
from components.arrays import cosine
from components.shown_code.arrays import Input, both
from components.shown_code.code import AnyCode
from components.shown_code.written import literal, places
from components.training.before_after import attention_moved

if TYPE_CHECKING:
    from components.analysis.mask_predictions import MaskedText
    from components.model.trace import TokenizedSentence

HEADS = "heads = attentions[:, 0]  # [block, head, query, key]"


@dataclass(frozen=True)
class AttentionMatrix:
    """A head, or several combined, as a matrix of the tokens or words `queries` and `keys`."""

    read: Input
    blocks: Sequence[int]
    heads: Sequence[int]
    how: str  # "one", "mean" or "max"
    queries: Sequence[int]
    keys: Sequence[int]
    is_renormalised: bool = False  # rows sum to 1
    starts: Sequence[int] = ()  # where each word begins, if pieces are merged

    def code(self, rows: Sequence[int] = ()) -> AnyCode:
        """The matrix; with `rows` also what these of its rows add up to."""
        body = [HEADS]
        if self.how == "one":
            body.append(f"values = heads[{self.blocks[0]}, {self.heads[0]}]")
        else:
            chosen = ", ".join(literal(list(numbers)) for numbers in (self.blocks, self.heads))
            body.append(f"values = combined(heads, {chosen}, {literal(self.how)})  # blocks, heads")
        if self.starts:
            body.append(
                f"values = merged(values, {literal([int(start) for start in self.starts])})  # where words begin"
            )
        body.append(f"values = {part('values', self.queries, self.keys)}")
        if self.is_renormalised:
            body.append("values = renormalised(values)")
        body.append("print(values)  # [query, key]")
        if rows:
            body += [f"received = values[{literal(list(rows))}].sum(axis=0)", "print(received)  # [key]"]
        return self.read.attentions((combined, merged, renormalised, of_sentence), *body)


def part(name: str, queries: Sequence[int], keys: Sequence[int]) -> str:
    """Some rows and columns of a matrix."""
    rows, columns = places(queries), places(keys)
    if rows.startswith("[") and columns.startswith("["):
        return f"{name}[np.ix_({rows}, {columns})]"
    return f"{name}[{rows}][:, {columns}]"


def one_word(read: Input, position: int | Sequence[int]) -> AnyCode:
    """Where one token looks, in every head; for several positions, what each token gives to them together."""
    if isinstance(position, int):
        taken, axes = f"heads[:, :, {position}]", "key"
    else:
        taken, axes = f"heads[..., {literal(list(position))}].sum(axis=-1)", "query"
    return read.attentions((of_sentence,), HEADS, f"values = {taken}", f"print(values)  # [block, head, {axes}]")


def _most_even(read: Input) -> str:
    """The entropy of attention that is even over the tokens that each one sees; of blocks with windows [block, 1]."""
    windows = read.backend.structure.windows
    if not any(windows):
        return "np.log(len(looking))"
    reaches = [100_000 if window is None else window for window in windows]
    sees = f"(abs(ahead) <= np.array({literal(reaches)})[:, None, None]).sum(axis=-1)"
    return f"np.log({sees})[:, looking].mean(axis=-1)[:, None]"


def kinds(read: Input) -> AnyCode:
    """To which tokens each head's attention goes, by their relation to the token that looks, and how evenly."""
    return read.attentions(
        (related, sums_over_links, entropies, head_kinds),
        "looking, links = ~special[0], related(special[0])[~special[0]]",
        "heads = attentions[:, 0][:, :, looking]  # [block, head, looking, key]",
        "sums = np.array([sums_over_links(block, links) for block in heads])",
        "values = sums / sums.sum(axis=-1, keepdims=True)",
        "ahead = np.arange(len(looking)) - np.arange(len(looking))[:, None]  # [query, key]",
        f"evenness = entropies(heads).mean(axis=-1) / {_most_even(read)}",
        "print(values, evenness)  # [block, head, relation]: other words, before, after, itself, special; [block, head]",
    )


def patterns(read: Input, sentence: TokenizedSentence) -> AnyCode:
    """The share of each head's attention that goes to the targets of each pattern; of one text, in which all tokens count."""
    found = targets(sentence)
    places = {
        name: np.flatnonzero(found[name].any(axis=0)).tolist() for name in ("separators", "punctuation", "rarest")
    }
    same = np.argwhere(found["same_word"]).tolist()
    return read.attentions(
        (sums_over_links, entropies, score_heads),
        "heads, looking, places = attentions[:, 0], ~special[0], np.arange(len(special[0]))",
        "ahead = places - places[:, None]  # [query, key]",
        f"keys, same = {literal({'first': [0], **places})}, {literal(same)}  # same: query and key",
        'links = {"previous": ahead == -1, "next": ahead == 1, "itself": ahead == 0}',
        "links |= {name: np.isin(places, at) & (ahead != 0) for name, at in keys.items()}",
        'links["same_word"] = np.array([[[query, key] in same for key in places] for query in places])',
        "links = {name: link & looking[:, None] for name, link in links.items()}",
        "sums = np.array([sums_over_links(block, np.stack(list(links.values()), axis=-1)) for block in heads])",
        "values = sums / [link.any(axis=1).sum() for link in links.values()]  # [block, head, pattern]",
        f"broad = entropies(heads)[:, :, looking].mean(axis=-1) / {_most_even(read)}",
        "print(dict(zip(links, np.moveaxis(values, -1, 0))), broad)",
    )


def rolled_out(read: Input, block: int, queries: Sequence[int], keys: Sequence[int]) -> AnyCode:
    """The share of tokens' vectors after a block that comes from each token of the input, by rollout."""
    return read.attentions(
        (rollout,),
        HEADS,
        f"shares = 100 * rollout(heads)[{block}]  # [token after block {block}, token of the input]",
        f"values = {part('shares', queries, keys)}",
        "print(values)  # per cent",
    )


def masked_vectors(read: Input, masked: MaskedText) -> AnyCode:
    """The angle by which each token's last vector turns when a token is masked."""
    return _both(read, masked).states(
        (kept_similarity, cosine),
        "before, after = hidden_states[-1]  # [token, dim] each",
        "values = np.degrees(np.arccos(cosine(before, after)))",
        "print(values)  # [token], in degrees",
    )


def masked_attention(read: Input, masked: MaskedText, block: int, head: int) -> AnyCode:
    """The change of one head's attention when a token is masked."""
    return _both(read, masked).attentions(
        (of_sentence,),
        f"before, after = attentions[{block}, :, {head}]",
        "values = after - before",
        "print(values)  # [query, key]",
    )


def _both(read: Input, masked: MaskedText) -> Input:
    """A text and the same with a mask."""
    pairs = None if masked.pair is None else [*(read.pairs or ()), masked.pair]
    return Input(read.backend, [read.texts[0], masked.text], read.max_length, pairs)


def heads_changed(base: Input, tuned: Input) -> AnyCode:
    """The share of its attention that each head moved to other tokens by training."""
    return both(
        base.attentions((attention_moved,)),
        tuned.attentions(
            (attention_moved,),
            "values = 100 * attention_moved(before, attentions, keep)",
            "print(values)  # [block, head], in per cent",
        ),
        "before = attentions",
    )


def of_one_head(read: Input, block: int, head: int, factor: int, how: str) -> AnyCode:
    """The attention of one head in cells of `factor` tokens, drawn as square roots."""
    reduce = "np.maximum" if how == "max" else "np.add"
    lines = [
        f"shares = attentions[{block}, 0, {head}].astype(float)  # [query, key]",
        f"starts = np.arange(0, len(shares), {factor})",
        f"cells = {reduce}.reduceat({reduce}.reduceat(shares, starts, axis=0), starts, axis=1)",
    ]
    if how != "max":
        lines += ["sizes = np.diff(np.append(starts, len(shares)))", "cells /= np.outer(sizes, sizes)"]
    return read.attentions((attention_overview,), *lines, "values = np.sqrt(cells)", "print(values)  # [cell, cell]")


def of_one_query(read: Input, block: int, head: int, query: int, keys: Sequence[int]) -> AnyCode:
    """The attention of one query to some keys."""
    row = f"values = attentions[{block}, 0, {head}, {query}][{places(keys)}]"
    return read.attentions((attention_row,), row, "print(values)  # [key]")
