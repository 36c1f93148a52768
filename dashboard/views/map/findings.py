"""The sentence above the maps, counted in all dimensions, and the line below on how far the maps can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from components.analysis.maps.company import Company, company, shares_alike
from components.analysis.maps.surroundings import Surroundings, surroundings
from components.analysis.similarity.courses import FAINT
from components.numbers import counted, enumerated, number, percent
from components.words.forms import are_forms
from components.words.function import FUNCTION_WORDS
from components.words.unicode_words import folded
from dashboard.ui.wording import quoted

if TYPE_CHECKING:
    from components.analysis.maps.drawing import LayerMap
    from components.analysis.maps.token_set import MapToken, TokenSet

MOST_JOINED = 8  # occurrences with lines to their nearest tokens: more lines would hide the map
TOGETHER, APART = 2 / 3, 1 / 3  # shares of the nearest tokens: from the first on, and up to the second
FEW_KEPT = 2.5  # of five: fewer is said with "only"
MOST_WORD = 24  # characters of a word in a sentence


@dataclass(frozen=True)
class MarkedWord:
    """The word that is marked in the maps: its name, and the rows of its tokens."""

    word: str
    rows: tuple[int, ...]


def word_of(token_set: TokenSet, places: Sequence[tuple[int, int]] = ()) -> MarkedWord | None:
    """The word to mark before a person marks one. `places` are those of the word that all pages look at, in each sentence.

    Without them, as for two sentences that are read together, the content word that occurs most often, if it occurs twice.
    None where there is no word.
    """
    at = {(token.sentence, token.position): row for row, token in enumerate(token_set.tokens)}
    if rows := tuple(at[place] for place in places if place in at):
        token = token_set.tokens[rows[0]]
        return MarkedWord(token.text if token.special else token.word, rows)
    times: dict[str, int] = {}
    for token in token_set.tokens:
        word = folded(token.word)
        if not token.special and any(map(str.isalnum, word)) and word not in FUNCTION_WORDS:
            times[word] = times.get(word, 0) + word.startswith(folded(token.text))
    repeated = max(times, key=lambda word: times[word], default="")
    if times.get(repeated, 0) < 2:
        return None
    rows = first_pieces(
        token_set,
        [row for row, token in enumerate(token_set.tokens) if not token.special and are_forms(repeated, token.word)],
    )
    return MarkedWord(token_set.tokens[rows[0]].word, rows)


def first_pieces(token_set: TokenSet, rows: Sequence[int]) -> tuple[int, ...]:
    """Of the rows of a word's pieces the first of every occurrence; special tokens stand for themselves."""
    found: list[int] = []
    before = (-1, -1)  # the piece that another of the same occurrence would follow
    for row in rows:
        token = token_set.tokens[row]
        # Pieces that follow each other are one occurrence; a piece that begins like the word begins another.
        begins = token.special or folded(token.word).startswith(folded(token.text))
        if begins or before != (token.sentence, token.position - 1):
            found.append(row)
        before = (token.sentence, token.position)
    return tuple(found)


def around_of(token_set: TokenSet, marked: MarkedWord | None, layers: Sequence[int]) -> dict[int, Surroundings]:
    """The tokens nearest to the marked word at each of some layers; none where no lines lead to them."""
    if marked is None or not marked.rows or not _is_drawn(token_set, marked):
        return {}
    return {layer: surroundings_of(token_set, marked, layer) for layer in layers}


def of_layers(
    token_set: TokenSet, marked: MarkedWord | None, layers: Sequence[int], around_by_layer: Mapping[int, Surroundings]
) -> str:
    """What the maps of some layers show of the marked word; without one, of all tokens' nearest.

    `around_by_layer` is what `around_of` gives for these layers.
    """
    layers = list(dict.fromkeys(layers))
    if marked is None or not marked.rows:
        return of_sets(token_set, layers)
    tokens = [token_set.tokens[row] for row in marked.rows]
    are_pieces = any(_is_piece(token) and folded(token.text) != folded(marked.word) for token in tokens)
    if not around_by_layer:
        found = [company(token_set.at(layer), marked.rows) for layer in layers]
        return of_company(marked.word, len(marked.rows), layers, found, are_pieces)
    around = [around_by_layer[layer] for layer in layers]
    if len(marked.rows) == 1:
        names = [[_named(token_set.tokens[row]) for row in each.nearest[0].tolist()] for each in around]
        return of_one(f"The piece {_named(tokens[0])}" if are_pieces else quoted(marked.word, MOST_WORD), layers, names)
    has_others = len({token.sentence for token in token_set.tokens}) > 1
    return of_surroundings(marked.word, len(marked.rows), layers, around, has_others, are_pieces)


def _is_piece(token: MapToken) -> bool:
    return not token.special and folded(token.text) != folded(token.word)


def _named(token: MapToken) -> str:
    """A token in quotation marks; a piece with the word that it belongs to."""
    name = quoted(token.text, MOST_WORD)
    return f"{name} of {quoted(token.word, MOST_WORD)}" if _is_piece(token) else name


def _occurrences(word: str, count: int, are_pieces: bool) -> str:
    """The marked occurrences; a point stands for the first piece of a split word alone."""
    return f"the {'first pieces of the ' if are_pieces else ''}{count} uses of {quoted(word, MOST_WORD)}"


def _is_drawn(token_set: TokenSet, marked: MarkedWord) -> bool:
    """Whether lines lead from the marked word to the tokens nearest to it: of a few sentences, whose tokens are all there."""
    sentences = {token.sentence for token in token_set.tokens}
    is_sample = len(sentences) > 1 and len(sentences) > len(token_set) / 2
    return len(marked.rows) <= MOST_JOINED and not is_sample


def surroundings_of(token_set: TokenSet, marked: MarkedWord, layer: int) -> Surroundings:
    """The tokens nearest to the marked word at a layer that are not that word."""
    words = {folded(token_set.tokens[row].word) for row in marked.rows}
    same = [row for row, token in enumerate(token_set.tokens) if not token.special and folded(token.word) in words]
    sentences = [token.sentence for token in token_set.tokens]
    return surroundings(token_set.at(layer), marked.rows, sentences, same)


def nearest_pairs(
    token_set: TokenSet, marked: MarkedWord | None, around: Surroundings | None
) -> list[tuple[int, int, bool]]:
    """The lines from the marked word to the tokens `around` it: both rows, and whether the second is of another sentence.

    Those of the same sentence come last, so that they are drawn above the others.
    """
    if marked is None or around is None:
        return []
    tokens = token_set.tokens
    pairs = [
        (row, other, tokens[row].sentence != tokens[other].sentence)
        for row, others in zip(marked.rows, around.nearest.tolist(), strict=True)
        for other in others
    ]
    return sorted(pairs, key=lambda pair: not pair[2])


def of_surroundings(
    word: str,
    occurrences: int,
    layers: Sequence[int],
    around: Sequence[Surroundings],
    has_others: bool,
    are_pieces: bool = False,
) -> str:
    """Whether a word's occurrences move apart from the first to the last of some layers, and what they come to stand among.

    `has_others`: there is more than one sentence. Of more than two layers the block that moves them most is named.
    `are_pieces`: the tokens are first pieces of split words.
    """
    name = _occurrences(word, occurrences, are_pieces)
    own, asked, cosines = [each.own for each in around], around[0].asked, [each.cosine for each in around]
    ends = list(dict.fromkeys((0, len(layers) - 1)))
    change = cosines[-1] - cosines[0]
    if len(layers) == 1:
        text = f"At layer {layers[0]} {name} have a mean cosine of {number(cosines[0], 2)}."
    elif abs(change) < FAINT:
        text = f"From layer {layers[0]} to {layers[-1]} {name} **stay as near to each other** ({_ends(cosines)})."
    else:
        steps = np.diff(cosines) * np.sign(change)
        most = f", most in block {layers[int(np.argmax(steps))]}" if len(layers) > 2 else ""
        way = "come closer" if change > 0 else "move apart"
        text = f"From layer {layers[0]} to {layers[-1]} {name} **{way}** ({_ends(cosines)}{most})."
    if not has_others or not asked:
        return text
    each = around[0].nearest.shape[1]
    are = f"{own[0] or 'none'} {'is' if own[0] == 1 else 'are'} from its own sentence"
    if len(ends) == 2 and own[0] == own[-1]:
        where = "at both layers"
    else:
        where = f"at layer {layers[0]}" + "".join(
            f" and {own[end] or 'none'} at layer {layers[end]}" for end in ends[1:]
        )
    return f"{text} Each has {counted(each, 'nearest other token')}; of these {asked}, {are} {where}."


def _ends(cosines: Sequence[float]) -> str:
    return f"mean cosine {number(cosines[0], 2)} to {number(cosines[-1], 2)}"


def of_one(name: str, layers: Sequence[int], names: Sequence[Sequence[str]]) -> str:
    """The nearest tokens `names` of a word that occurs once, at the first and the last of some layers. All stand in quotes."""
    ends = [0] if len(layers) == 1 else [0, -1]
    parts = [f"{_listed(names[end])} at layer {layers[end]}" for end in ends if names[end]]
    if not parts:
        return f"{name} occurs once, alone."
    nearest = "nearest to it are" if len(names[0]) > 1 else "nearest to it is"
    return f"{name} occurs once; {nearest} {', and '.join(parts)}."


def _listed(names: Sequence[str]) -> str:
    """Some tokens in their order; one that is there several times with its number."""
    return enumerated([f"{name}{f' ×{times}' if times > 1 else ''}" for name, times in Counter(names).items()])


def of_company(
    word: str, occurrences: int, layers: Sequence[int], found: Sequence[Company], are_pieces: bool = False
) -> str:
    """Whether a word's occurrences stand together or apart, at one layer or from one to another."""
    name = f"T{_occurrences(word, occurrences, are_pieces)[1:]}"
    asked = found[0].asked
    counts = [round(each.own) for each in found]
    whose = "their" if found[0].sampled is None else "the"
    sample = "" if found[0].sampled is None else f" of {found[0].sampled:,} of them, drawn at random,"
    how = [_how(each) for each in found]
    if len(layers) == 1:
        return (
            f"{name} are **{how[0]}** at layer {layers[0]}: {counts[0]} of {whose} {asked} nearest "
            f"tokens{sample} are the same word."
        )
    first, last = (f"layer {layer}" for layer in layers)
    if how[0] == how[1]:
        still = "at both layers" if how[0] != "apart" else "at both layers already"
        return (
            f"{name} are **{how[0]} {still}**: {counts[0]} and {counts[1]} of {whose} {asked} nearest tokens{sample} are "
            "the same word."
        )
    return (
        f"{name} are **{how[0]} at {first}** ({counts[0]} of {whose} {asked} nearest tokens{sample} are the same word) and "
        f"**{how[1]} at {last}** ({counts[1]})."
    )


def _how(each: Company) -> str:
    if each.share >= TOGETHER - 1e-9:
        return "each other's nearest"
    return "apart" if each.share <= APART + 1e-9 else "partly each other's nearest"


def of_sets(token_set: TokenSet, layers: Sequence[int]) -> str:
    """What tokens stand among: those of their own sentence, or of a corpus the same word. Empty for a single sentence."""
    sentences = [token.sentence for token in token_set.tokens]
    if len(set(sentences)) < 2:
        return ""
    is_corpus = len(set(sentences)) > len(sentences) / 2  # a sample has few tokens of each sentence
    labels: Sequence[object] = [folded(token.word) for token in token_set.tokens] if is_corpus else sentences
    shares = [shares_alike(token_set.at(layer), labels) for layer in layers]
    what = "are the same word" if is_corpus else "are from its own sentence"
    if any(np.isnan(share) for share in shares):
        return ""
    listed = " and ".join(f"{percent(share)} at layer {layer}" for layer, share in zip(layers, shares, strict=True))
    return f"Of a token’s three nearest, {listed} {what}."


def trust(maps: dict[int, LayerMap], method: str, dims: int, shown: int) -> str:
    """How many of the nearest on the maps are among the nearest in all dimensions, in a line."""
    first = next(iter(maps.values())).trust
    kept = [each.trust.kept for each in maps.values()]
    only = "only " * _is_little(min(kept), first.seen)
    listed = ", ".join(f"{number(value, 1)} at layer {layer}" for layer, value in zip(maps, kept, strict=True))
    return (
        f"Read groups, not distances: of a point's {first.seen} neighbours on this flat map, on average {only}{listed} are "
        f"also among its {first.seen} nearest in all {dims:,} dimensions ({method}; {counted(shown, 'token')})."
    )


def kept(layer_map: LayerMap) -> str:
    """The same of one map in a few words."""
    trust = layer_map.trust
    only = "only " * _is_little(trust.kept, trust.seen)
    return f"Read groups, not distances: the map keeps {only}{number(trust.kept, 1)} of {trust.seen} neighbours on average."


def _is_little(kept: float, seen: int) -> bool:
    return kept < FEW_KEPT * seen / 5
