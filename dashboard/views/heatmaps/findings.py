"""What the views of a block say about it, as functions of the numbers that they draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from components.numbers import apart, counted, number
from dashboard.ui import messages, wording

if TYPE_CHECKING:
    from components.analysis.block_change import BlockMeans, FarAbove, LeastLikeItself

KEPT = 0.8  # the mean cosine with itself from which a block keeps its tokens
CHANGED = 0.1  # how much lower that of another block is if it changes them
MIXED = 0.05  # how much nearer other tokens come than those of other sentences if a block mixes
TOLD_APART = 0.2  # how much nearer a token is to itself than to others, or all of them are alike
SAME_TURN = 1  # degree: two steps that differ by less turn the tokens about as far
NAMED = 2  # tokens with bars far above all others
PARTS = ("attention", "feed-forward")


def before_and_after(
    shown: Sequence[BlockMeans],
    means: Sequence[float],
    unrelated: Sequence[float],
    least: LeastLikeItself | None,
    pieces: Sequence[str],
) -> str:
    """What one block or two do to the tokens of a text.

    `means` [block] are the mean cosines of a token with itself at all blocks, `unrelated` [block] those of tokens of other
    sentences (NaN where not measured). `least` is a token of the last shown block; `pieces` are the texts of its rows.
    """
    first, last = shown[0], shown[-1]
    said = _alone(first)
    if last.block != first.block:
        said += f". {_compared(first, last, means, unrelated)}"
    # Of one token it is said already; where all are alike it says nothing.
    return f"{said}{_least(least, pieces) if last.tokens > 1 and not _is_alike(last) else ''}."


def _is_alike(item: BlockMeans) -> bool:
    """Whether a token's cosine with itself says little, because that with any other is nearly as high."""
    return item.tokens > 1 and item.itself - item.another < TOLD_APART


def _alone(item: BlockMeans) -> str:
    itself, another = apart(item.itself, item.another)
    numbers = f"{itself} like itself" + (f", {another} like the others" if item.tokens > 1 else "")
    name = f"Block {item.block}"
    if _is_alike(item):
        return f"In block {item.block} all tokens are alike: {numbers}"
    if item.itself <= KEPT:
        return f"{name} changes its token{'s' * (item.tokens > 1)}: {numbers}"
    if item.tokens == 1:
        return f"{name} keeps its only token: {numbers}"
    return f"{name} keeps {'every token' if item.nearest == item.tokens else 'its tokens'}: {numbers}"


def _compared(first: BlockMeans, last: BlockMeans, means: Sequence[float], unrelated: Sequence[float]) -> str:
    """What the second block does, beside the first."""
    name, other = f"Block {last.block}", float(unrelated[last.block])
    itself, another = apart(last.itself, last.another)
    numbers = f"{itself} and {another}" if last.tokens > 1 else itself
    is_known = last.tokens > 1 and not np.isnan(other)
    if _is_alike(last):
        sentences = f" (other sentences {number(other, 2)})" if is_known else ""
        verb = "they stay so" if _is_alike(first) else "all are alike"
        return f"In block {last.block} {verb}: {numbers}{sentences}"
    change = first.itself - last.itself
    them = "them" if last.tokens > 1 else "it"
    # Whether the same was said of the first.
    is_same = not _is_alike(first) and (first.itself > KEPT) == (last.itself > KEPT)
    if change >= CHANGED:
        verb = "changes most" if int(np.nanargmin(means)) == last.block else "changes more"
    elif -change >= CHANGED:
        verb = "keeps more"
    elif last.itself > KEPT:
        verb = f"keeps {them} too" if is_same else f"keeps {them}"
    else:
        verb = "changes as much" if is_same else f"changes {them}"
    if not is_known:
        return f"{name} {verb}: {numbers}"
    if last.another - other >= MIXED:
        return f"{name} {verb} and mixes: {numbers} (other sentences {number(other, 2)})"
    # Other tokens came closer, but so did those of other sentences: no mixing.
    before = float(unrelated[first.block])
    closer = last.another - first.another >= MIXED and other - before >= MIXED
    return f"{name} {verb}: {numbers} (other sentences {number(other, 2)}{': all came closer' if closer else ''})"


def _least(least: LeastLikeItself | None, pieces: Sequence[str]) -> str:
    if least is None:
        return ""
    token = wording.quoted(pieces[least.token])
    if least.other is None:
        return f"; {token} comes out {number(least.itself, 2)} like itself"
    itself, like = apart(least.itself, least.like_other)
    other = wording.quoted(pieces[least.other])
    if least.like_other > least.itself:
        return f"; {token} comes out more like {other} ({like}) than like itself ({itself})"
    return f"; {token} comes out {itself} like itself, {like} like {other}"


def parts_add(
    added: Mapping[int, np.ndarray], pieces: Sequence[str], special: Sequence[bool], far: FarAbove | None
) -> str:
    """What attention and feed-forward add: lengths [part, token] of one block or two, by the block's number.

    The tokens `far` above all others, whose bars are broken, are named; else in how many tokens which part adds more.
    """
    said = [
        _added(block, lengths, pieces, special, number == 0, far)
        for number, (block, lengths) in enumerate(added.items())
    ]
    return "; ".join(said) + "."


def _added(
    block: int,
    lengths: np.ndarray,
    pieces: Sequence[str],
    special: Sequence[bool],
    is_first: bool,
    far: FarAbove | None,
) -> str:
    start = f"{'In' if is_first else 'in'} block {block}"

    def name(token: int) -> str:
        return messages.escape(pieces[token]) if special[token] else wording.quoted(pieces[token])

    part = int(lengths.max(axis=1).argmax())
    long = [] if far is None else [token for token in far.tokens if lengths[part, token] > far.limit]
    if long:
        others = np.delete(lengths[part], long)
        low, high = number(float(others.min()), 0), number(float(others.max()), 0)
        between = f"{low} to {high}" if low != high else low
        named = [f"{number(float(lengths[part, token]), 0)} to {name(token)}" for token in long[:NAMED]]
        more = len(long) - len(named)
        vectors = "a vector" if len(long) == 1 else "vectors"
        rest = f", such long ones to {counted(more, 'more token')}," if more else ","
        return (
            f"{start} {PARTS[part]} adds {vectors} of length {' and '.join(named)}{rest} and of {between} to every other "
            "token"
        )
    count, more = lengths.shape[1], int((lengths[1] > lengths[0]).sum())
    words = [token for token in range(count) if not special[token] and any(map(str.isalnum, pieces[token]))]
    more_part = 1 if 2 * more >= count else 0
    larger = more if more_part else count - more
    which = (
        "the only token" if count == 1 else f"all {count} tokens" if larger == count else f"{larger} of {count} tokens"
    )
    said = f"{start} {PARTS[more_part]} adds more than {PARTS[1 - more_part]} to {which}"
    if count == 1:
        return said
    drawn = lengths[more_part]
    most = max(words or range(count), key=lambda token: float(drawn[token]))
    # A special token or a mark may have a longer bar: that is said of no word.
    among = "of the words most" if drawn[most] < drawn.max() else "most"
    return f"{said}, {among} to {name(most)} ({number(float(drawn[most]), 0)})"


def parts_turn(block: int, turns: np.ndarray) -> str:
    """Which part turns the tokens more: degrees [part, token]."""
    attention, feed_forward = (float(turn.mean()) for turn in turns)
    by_attention, by_feed_forward = apart(attention, feed_forward, digits=0, most=1)
    if abs(attention - feed_forward) < SAME_TURN:
        return (
            f"In block {block} both steps turn the tokens about as far: on average attention turns their vectors by "
            f"{by_attention}°, feed-forward by {by_feed_forward}°."
        )
    larger = "the attention step" if attention > feed_forward else "the feed-forward step"
    return (
        f"In block {block} {larger} turns the tokens more: on average attention turns their vectors by {by_attention}°, "
        f"feed-forward by {by_feed_forward}°."
    )
