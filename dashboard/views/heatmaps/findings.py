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
ALONG = 0.9  # the cosine from which a vector that is added points along the one that it is added to
PARTS = ("attention", "feed-forward")


def before_and_after(shown: Sequence[BlockMeans], means: Sequence[float], unrelated: Sequence[float]) -> str:
    """What the first shown block does to the tokens of a text, and what the second does differently.

    `means` [block] are the mean cosines of a token with itself at all blocks, `unrelated` [block] those of tokens of other
    sentences (NaN where not measured): only against these is a block said to mix.
    """
    first, last = shown[0], shown[-1]
    if little := _others_change_little(first, last, means, unrelated):
        return f"{little}; {_compared(first, last, means, unrelated)}."
    said = _alone(first) + (f" and mixes {_them(first)}" if mixes(first, unrelated) else "")
    return f"{said}; {_compared(first, last, means, unrelated)}." if last.block != first.block else f"{said}."


def _others_change_little(
    first: BlockMeans, last: BlockMeans, means: Sequence[float], unrelated: Sequence[float]
) -> str:
    """The usual story, where it is true: the second shown block changes the tokens most, and all others only little."""
    others = [mean for block, mean in enumerate(means) if block != last.block]
    least = min(others, default=0.0)
    if first.block == last.block or first.tokens == 1 or len(others) < 2 or not least > KEPT:
        return ""
    if least - last.itself < CHANGED or mixes(first, unrelated) or is_alike(first) or is_alike(last):
        return ""
    which = f"Blocks 0 to {last.block - 1}" if last.block == len(means) - 1 else "All other blocks"
    return f"{which} change the tokens little (cosine with itself {number(least, 2)} or more on average)"


def mixes(item: BlockMeans, unrelated: Sequence[float]) -> bool:
    """Whether tokens come out nearer to those beside them than tokens of other sentences do. Not of NaN."""
    return not is_alike(item) and item.another - float(unrelated[item.block]) >= MIXED


def is_alike(item: BlockMeans) -> bool:
    """Whether a token's cosine with itself says little, because that with any other is nearly as high."""
    return item.tokens > 1 and item.itself - item.another < TOLD_APART


def _them(item: BlockMeans) -> str:
    return "them" if item.tokens > 1 else "it"


def _alone(item: BlockMeans) -> str:
    itself, another = apart(item.itself, item.another)
    name = f"Block {item.block}"
    if is_alike(item):
        return f"In block {item.block} all tokens are alike ({itself} like itself, {another} like the others)"
    if item.itself <= KEPT:
        return f"{name} changes its token{'s' * (item.tokens > 1)} ({itself} like itself)"
    kept = "its only token" if item.tokens == 1 else "every token" if item.nearest == item.tokens else "its tokens"
    return f"{name} keeps {kept} ({itself} like itself)"


def _compared(first: BlockMeans, last: BlockMeans, means: Sequence[float], unrelated: Sequence[float]) -> str:
    """What the second block does, beside the first."""
    them, (itself, another) = _them(last), apart(last.itself, last.another)
    if is_alike(last):
        verb = "they stay so" if is_alike(first) else "all are alike"
        return f"in block {last.block} {verb} ({itself} and {another})"
    change = first.itself - last.itself
    # Whether the same was said of the first.
    is_same = not is_alike(first) and (first.itself > KEPT) == (last.itself > KEPT)
    if change >= CHANGED:
        verb = f"changes {them} most" if int(np.nanargmin(means)) == last.block else f"changes {them} more"
    elif -change >= CHANGED:
        verb = f"keeps {them} more"
    elif last.itself > KEPT:
        verb = f"keeps {them} too" if is_same else f"keeps {them}"
    else:
        verb = f"changes {them} as much" if is_same else f"changes {them}"
    said = f"block {last.block} {verb} ({itself})"
    if mixes(last, unrelated):
        return f"{said} and mixes {them}{' too' * mixes(first, unrelated)}"
    if mixes(first, unrelated):
        return f"{said} and does not mix {them}" if not np.isnan(unrelated[last.block]) else said
    # Other tokens came closer, but so did those of other sentences: no mixing.
    closer = (
        last.another - first.another >= MIXED and float(unrelated[last.block]) - float(unrelated[first.block]) >= MIXED
    )
    return f"{said}: all tokens are closer there, those of other sentences too" if closer else said


def changed_most(least: LeastLikeItself | None, item: BlockMeans, pieces: Sequence[str]) -> str:
    """The end of the finding: the token that the last shown block changes far more than its others; empty without any."""
    if least is None or is_alike(item) or item.itself - least.itself < CHANGED:
        return ""
    if least.other is not None and least.like_other > least.itself:
        return f" Of the text's own tokens, block {item.block} changes most {least_like_itself(least, pieces)}."
    token = wording.quoted(pieces[least.token])
    return f" Of the text's own tokens, block {item.block} changes {token} most ({number(least.itself, 2)})."


def least_like_itself(least: LeastLikeItself | None, pieces: Sequence[str]) -> str:
    """The token that comes out least like itself, and the one that it is most like instead; empty without any."""
    if least is None:
        return ""
    token = wording.quoted(pieces[least.token])
    if least.other is None:
        return f"{token}, **{number(least.itself, 2)}** like itself"
    itself, like = apart(least.itself, least.like_other)
    other = wording.quoted(pieces[least.other])
    if least.like_other > least.itself:
        return f"{token}, which comes out more like {other} (**{like}**) than like itself (**{itself}**)"
    return f"{token}, **{itself}** like itself and {like} like {other}"


def parts_add(
    added: Mapping[int, np.ndarray],
    pieces: Sequence[str],
    special: Sequence[bool],
    far: FarAbove | None,
    along: Mapping[int, np.ndarray] | None = None,
) -> str:
    """What attention and feed-forward add: lengths [part, token] of one block or two, by the block's number.

    The tokens `far` above all others, whose bars are broken, are named; else in how many tokens which part adds more. `along`
    are the cosines [part, token] of what is added with what it is added to: where they say why a long vector turns its token
    little, it is said.
    """
    said = [
        _added(block, lengths, pieces, special, number == 0, far)
        for number, (block, lengths) in enumerate(added.items())
    ]
    return "; ".join(said) + "." + _along(added, pieces, special, far, along or {})


def _along(
    added: Mapping[int, np.ndarray],
    pieces: Sequence[str],
    special: Sequence[bool],
    far: FarAbove | None,
    along: Mapping[int, np.ndarray],
) -> str:
    """Why the longest of the vectors that are far above all others turns its token little: it points along its vector."""
    if far is None or not along:
        return ""
    block = max(along, key=lambda number: float(added[number].max()))
    part, token = np.unravel_index(int(added[block].argmax()), added[block].shape)
    cosine = float(along[block][part, token])
    if token not in far.tokens or cosine < ALONG:
        return ""
    name = _token_name(int(token), pieces, special)
    return (
        f" What {PARTS[part]} adds to {name} is long, but points the same way as {name} itself (cosine {number(cosine, 2)}), "
        "so it hardly turns it."
    )


def _token_name(token: int, pieces: Sequence[str], special: Sequence[bool]) -> str:
    return messages.escape(pieces[token]) if special[token] else wording.quoted(pieces[token])


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
        return _token_name(token, pieces, special)

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


def parts_turn(turns: Mapping[int, np.ndarray]) -> str:
    """Which part turns the tokens more: degrees [part, token] of one block or two, by the block's number."""
    said = [_turned(block, values) for block, values in turns.items()]
    (part, words), *others = said
    begin = (
        "Both steps turn the tokens about as far"
        if part is None
        else f"{PARTS[part].capitalize()} turns the tokens more"
    )
    text = f"{begin} {words}"
    for other, more in others:
        if other == part:
            text += f" and {more}"
        elif other is None:
            text += f", both about as far {more}"
        else:
            text += f", {PARTS[other]} {'more ' * (part is None)}{more}"
    return f"{text}."


def _turned(block: int, turns: np.ndarray) -> tuple[int | None, str]:
    """The part that turns the tokens of a block more, None for neither, and where and by how much on average."""
    attention, feed_forward = (float(turn.mean()) for turn in turns)
    shown = apart(attention, feed_forward, digits=0, most=1)
    if abs(attention - feed_forward) < SAME_TURN:
        return None, f"in block {block} ({shown[0]}° and {shown[1]}°)"
    part = 0 if attention > feed_forward else 1
    return part, f"in block {block} ({shown[part]}° against {shown[1 - part]}°)"
