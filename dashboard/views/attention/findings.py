"""What the views of heads say in words, from the numbers that they show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from components.analysis.attention.head_kinds import HeadKinds, Kind
from components.analysis.attention.telling import APART, HeadLook
from components.analysis.first_look.decisive import DECIDED, REACH
from components.numbers import counted, number, ordinal, percent
from dashboard.ui import wording

if TYPE_CHECKING:
    from components.model.trace import TokenizedSentence

NAMED = 20  # characters of a token
PRODUCT = f"q{wording.NBSP}·{wording.NBSP}k"  # in one line
READ_TOGETHER = "Both sentences are read together here: numbers differ from those of one sentence."


def special_names(pieces: Sequence[str], special: Sequence[bool]) -> str:
    """What the special tokens of a text are called: "[CLS] or [SEP]"."""
    names = list(dict.fromkeys(piece for piece, is_special in zip(pieces, special, strict=True) if is_special))
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else "a special token"


def does(kind: Kind, specials: str) -> str:
    """What a head of a kind does; a sentence about the head goes on with it."""
    return {
        "words": "looks at other words",
        "spread": "spreads its attention over many tokens",
        "before": "looks at the token before",
        "after": "looks at the token after",
        "itself": "looks at the token itself",
        "special": f"looks mostly at {specials}",
    }[kind]


def of_kinds(kinds: HeadKinds, specials: str) -> str:
    """How the heads divide by kind, the most frequent kind first; kinds without a head are left out, but for the neighbours."""
    counts = {kind: len(kinds.of(kind)) for kind in ("special", "words", "spread")}
    near = {kind: len(kinds.of(kind)) for kind in ("before", "after", "itself")}
    total = sum(counts.values()) + sum(near.values())
    plural = {"special": f"look mostly at {specials}", "words": "look at other words", "spread": "spread widely"}
    singular = {"special": f"looks mostly at {specials}", "words": "looks at other words", "spread": "spreads widely"}
    to = (
        f"a neighbour{' or at the token itself' * bool(near['itself'])}"
        if near["before"] + near["after"]
        else "the token itself"
    )
    plural["near"], singular["near"] = f"look at {to}", f"looks at {to}"
    counts["near"] = sum(near.values())
    said = [(count, f"{count} {(singular if count == 1 else plural)[kind]}") for kind, count in counts.items() if count]
    parts = [text for _, text in sorted(said, key=lambda item: -item[0])]
    begin, _, rest = parts[0].partition(" ")
    first = f"{begin} of {total} heads {rest}" if begin != str(total) else f"All {total} heads {rest}"
    if total == 1:
        return f"The only head {rest}."
    parts = [first, *parts[1:]]
    return f"{' and '.join(filter(None, (', '.join(parts[:-1]), parts[-1])))}."


def stands_out(look: HeadLook | None) -> bool:
    """Whether a head looks at one word much more than it does anyway."""
    return look is not None and look.excess >= DECIDED


def of_look(look: HeadLook, sentence: TokenizedSentence, has_habits: bool) -> str:
    """Where a head looks, beside what is usual for it."""
    query, key = (wording.named(sentence, position) for position in (look.query, look.key))
    return (
        f"In block {look.block}, head {look.head}, {query} gives {key} "
        f"{percent(look.weight)} of its attention; {usually(look.usual, look.key - look.query if has_habits else None)}."
    )


def usually(share: float, distance: int | None) -> str:
    """What a head gives on average at a distance in tokens, key minus query; None: to such words of this text."""
    if distance is None:
        return f"between two such words of this text it is {percent(share)} on average"
    places = f"{REACH} or more places" if abs(distance) >= REACH else counted(abs(distance), "place")
    return f"on average this head gives {percent(share)} to a token {places} {'later' if distance > 0 else 'earlier'}"


def of_products(query: str, key: str, share: float, products: Sequence[float], at: int, is_said: bool) -> str:
    """Whether the key to which a query gives most attention, that `at` this place, has the largest of its products.

    `is_said`: the attention was named before. Where a model adds terms for the distance, another product can be the largest.
    """
    count, larger = len(products), sum(product > products[at] for product in products)
    query, key = wording.quoted(query), wording.quoted(key)
    place = f"only the {ordinal(larger + 1)} largest" if larger else "the largest"
    value = number(products[at], 1)
    if is_said and count > 1:
        return f"Of the {count} products {PRODUCT} of {query}, that with {key} is {place} ({value})."
    if is_said:
        return f"{key} is the only key of {query}."
    which = f"whose product {PRODUCT} is {place} of {count} ({value})" if count > 1 else "its only key"
    return f"{query} gives most attention to {key} ({percent(share)}), {which}."


def of_head(
    at: tuple[int, int],
    look: HeadLook | None,
    kinds: HeadKinds | None,
    sentence: TokenizedSentence,
    specials: str,
    has_habits: bool,
) -> str:
    """What one head does in this text: its look if it stands out, else its kind; empty for a text without tokens."""
    if look is not None and stands_out(look):
        return of_look(look, sentence, has_habits)
    if kinds is None:
        return ""
    block, head = at
    kind = kinds.names[block][head]
    share = "" if kind == "spread" else f" with {percent(kinds.purity(block, head))} of its attention"
    text = f"Block {block}, head {head} {does(kind, specials)}{share}"
    return f"{text}; no word looks at another{away(look)} much more than usual." if look is not None else f"{text}."


def away(look: HeadLook) -> str:
    """How far apart the words are that were examined, as an insertion: neighbours are not, unless there is nothing else."""
    return ", two or more places away," if abs(look.query - look.key) >= APART else ""
