"""What the guesses of a masked-LM head say, in words: functions of the numbers that the picture shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from components import numbers
from components.model.guesses.names import ENDS, LEVEL
from components.numbers import LEAST, share_text
from dashboard.ui.wording import counted, quoted

if TYPE_CHECKING:
    from components.analysis.guesses.templates import TemplateGuesses

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
TIE = 1e-9  # probabilities this close, relative to each other, are equal
MOST_NAMED = 3  # masks of which each has its guess in the sentence


def ordinal(rank: int) -> str:
    """A rank in words: "first", "tenth", "57th", "1,203rd"."""
    if rank <= len(ORDINALS):
        return ORDINALS[rank - 1]
    return numbers.ordinal(rank)


@dataclass(frozen=True, eq=False)
class Guessed:
    """The guesses for one mask: what the picture of it shows."""

    pieces: tuple[str, ...]  # the first guesses, readable, the most probable first
    probabilities: np.ndarray  # [guess]: of these
    first_ranks: np.ndarray  # [layer]: of the first guess; 1 is first
    true: str | None  # the hidden piece, readable; None where nobody knows it, since the mask was typed
    true_ranks: np.ndarray  # [layer]; zeros without it
    true_share: float  # at the last layer; NaN without it
    n_pieces: int  # of the vocabulary
    only_left: bool  # whether these are the guesses of looking only left
    other_rank: int | None = None  # of the true piece with the other way of looking; None if it is not known
    other_first: str = ""  # the first guess with the other way of looking
    other_share: float = float("nan")  # its probability
    with_end: tuple[str, float] | None = (
        None  # the first guess and its probability once the text has an end; see `missing_end`
    )

    @property
    def missing_end(self) -> str:
        """The mark that ends a sentence, if that is the first guess in the place of a word or a hole; else empty.

        Looking only left, nothing that stands behind the mask changes a guess.
        """
        first, is_word = self.pieces[0], self.true is None or any(map(str.isalnum, self.true))
        return first if first in ENDS and is_word and self.tied == 1 and not self.only_left else ""

    @property
    def is_right(self) -> bool:
        return self.true is not None and int(self.true_ranks[-1]) == 1

    @property
    def tied(self) -> int:
        """How many of the guesses share the first place."""
        top = float(self.probabilities[0])
        return int(np.count_nonzero(self.probabilities >= top * (1 - TIE)))

    @property
    def is_nearly_level(self) -> bool:
        """Whether the second guess has nearly the probability of the first."""
        return len(self.probabilities) > 1 and float(self.probabilities[1]) >= (LEVEL - TIE) * float(
            self.probabilities[0]
        )


def since(ranks: np.ndarray) -> str:
    """From where on a piece is first without interruption up to the last layer: "since layer 5". `ranks`: [layer].

    "again since layer 5" where it was first before that too, and lost the place meanwhile.
    """
    last = len(ranks) - 1
    later = np.flatnonzero(np.asarray(ranks) != 1)
    begin = 0 if not len(later) else int(later[-1]) + 1  # a layer
    if begin > last:
        return ""
    if begin == 0:
        return "at every layer" if last else ""
    if last == 1:
        return "after its only block"
    if 1 in ranks[:begin]:
        return "again after the last block" if begin == last else f"again since layer {begin}"
    return "only after the last block" if begin == last else f"since layer {begin}"


def first_since(piece: str, share: str, ranks: np.ndarray) -> str:
    """That a piece is the first guess, and from which layer on: "“paris” is the first guess (42 %), since layer 5"."""
    where = since(ranks)
    if where.startswith("only"):
        return f"{piece} becomes the first guess ({share}) {where}"
    return f"{piece} is the first guess ({share}){f', {where}' if where else ''}"


def of_guess(guess: Guessed) -> str:
    """The finding for one mask; it begins with the way of looking where that is not the model's own."""
    return _looking(_of_guess(guess), guess.only_left)


def of_missing_end(guess: Guessed) -> str:
    """What is guessed once a text without an end has one, if that is another piece; else empty."""
    if guess.with_end is None or guess.with_end[0] == guess.missing_end:
        return ""
    piece, share = guess.with_end
    end = ENDS[guess.missing_end]
    return f"The sentence has no end: with {end} behind it, the first guess is {quoted(piece)} ({share_text(share)})."


def _looking(said: str, only_left: bool) -> str:
    return f"Looking only left, {said[0].lower()}{said[1:]}" if only_left else said


def _of_guess(guess: Guessed) -> str:
    first, share = quoted(guess.pieces[0]), share_text(float(guess.probabilities[0]))
    if guess.tied > 1:
        named = " and ".join(map(quoted, guess.pieces[: min(2, guess.tied)]))
        more = f" and {guess.tied - 2} more" if guess.tied > 2 else ""
        said = f"{named}{more} share the first place ({share} each)"
        if guess.true is not None:
            said += f"; {quoted(guess.true)} is {ordinal(int(guess.true_ranks[-1]))} of {guess.n_pieces:,}"
        return f"{said}{_other_way(guess)}."
    if guess.is_nearly_level:
        second, less = quoted(guess.pieces[1]), share_text(float(guess.probabilities[1]))
        said = f"{first} ({share}) and {second} ({less}) come first, nearly level"
        if guess.true is not None and guess.true not in guess.pieces[:2]:
            said += f"; {quoted(guess.true)} is {ordinal(int(guess.true_ranks[-1]))} of {guess.n_pieces:,}"
        return f"{said}{_other_way(guess)}."
    if guess.true is None:
        where = since(guess.first_ranks)
        where = f", but {where}" if where.startswith("only") else f", {where}" if where else ""
        return f"The first guess is {first} ({share}){where}{_other_way(guess)}."
    if guess.is_right:
        return f"{first_since(quoted(guess.true), share, guess.true_ranks)}{_other_way(guess)}."
    rank = ordinal(int(guess.true_ranks[-1]))
    return f"The first guess is {first} ({share}); {quoted(guess.true)} is {rank} of {guess.n_pieces:,}{_other_way(guess)}."


def _other_way(guess: Guessed) -> str:
    """What the other way of looking gives, as the end of a sentence."""
    way = "seeing both sides" if guess.only_left else "looking only left"
    if guess.true is not None and guess.other_rank is not None:
        same = " too" if guess.other_rank == int(guess.true_ranks[-1]) else ""
        return f"; {way}, {quoted(guess.true)} is {ordinal(guess.other_rank)}{same}"
    if guess.true is None and guess.other_first:
        it = "the first" if guess.is_nearly_level else "it"
        if guess.other_first == guess.pieces[0]:
            return f"; {way}, {it} is the same ({share_text(guess.other_share)})"
        return f"; {way}, {it} is {quoted(guess.other_first)} ({share_text(guess.other_share)})"
    return ""


def of_several(guesses: Sequence[Guessed], word: str = "") -> str:
    """The finding for several masks, each guessed without the others' guesses. `word`: the one whose pieces they are."""
    count = len(guesses)
    what = f"pieces of {quoted(word)}" if word else "masks"
    begin = _looking(f"Each of the {count} {what} is guessed by itself", guesses[0].only_left)
    named = [f"{quoted(guess.pieces[0])} ({share_text(float(guess.probabilities[0]))})" for guess in guesses]
    known = [guess for guess in guesses if guess.true is not None]
    if count <= MOST_NAMED:
        listed = f"{', '.join(named[:-1])} and {named[-1]} come first"
    else:
        listed = f"{', '.join(named[:MOST_NAMED])} … come first"
    if not known:
        return f"{begin}: {listed}."
    right = sum(guess.is_right for guess in known)
    how_many = "all" if right == len(known) else str(right or "none")
    counts = f"{how_many} of {len(known)} {'is' if how_many == '1' else 'are'} right"
    if len(known) == 1:
        counts = f"{quoted(str(known[0].true))} is {ordinal(int(known[0].true_ranks[-1]))}"
    return f"{begin}: {listed}; {counts}."


def of_surprise(words: Sequence[tuple[str, float, int]]) -> str:
    """By which word a model is surprised most, and what its bits say; empty without a word.

    `words`: each with its bits and the number of its pieces.
    """
    if not words:
        return ""
    place = max(range(len(words)), key=lambda row: words[row][1])
    _, bits, pieces = words[place]
    sums = "a word of several pieces has the sum of their bits, each hidden alone"
    if len(words) > 1 and all(abs(bits - other) < 0.05 for _, other, _ in words):
        said = "equally by each word"
    else:
        said = f"most by {which([text for text, _, _ in words], place)}"
        if pieces > 1:
            return f"{said}: {bits:.1f} bits, the sum of its {pieces} pieces, each hidden alone"
        share = share_text(2.0**-bits) if 2.0**-bits >= LEAST else f"one chance in {float(f'{2.0**bits:.2g}'):,.0f}"
        said = f"{said}: hidden, it gets {share}, which is {bits:.1f} bits"
    return f"{said}; {sums}" if any(pieces > 1 for _, _, pieces in words) else said


def which(texts: Sequence[str], place: int) -> str:
    """A word or piece of a text in quotation marks; of several that are the same also which: "the second “the”"."""
    same = [row for row, text in enumerate(texts) if text.casefold() == texts[place].casefold()]
    name = quoted(texts[place])
    return name if len(same) == 1 else f"the {ordinal(same.index(place) + 1)} {name}"


def of_two(first: Guessed, second: Guessed, k: int) -> str:
    """The finding for a mask in each of two sentences, of each of which `k` guesses are shown."""
    common = sum((Counter(first.pieces[:k]) & Counter(second.pieces[:k])).values())
    shown = min(k, len(first.pieces), len(second.pieces))
    changed = "all" if not common else f"{shown - common} of the" if common < shown else "none of the"
    point = f"context changes {changed} {shown} guesses"
    if common == shown and first.pieces[:k] != second.pieces[:k]:
        point = f"context changes only the order of the {shown} guesses"
    # A hidden word that stands below the guesses that are shown.
    below = [
        (guess.true, f"{ordinal(int(guess.true_ranks[-1]))} in {name}")
        for guess, name in ((first, "A"), (second, "B"))
        if guess.true is not None and guess.true_ranks[-1] > shown
    ]
    both = ""
    for number, (word, place) in enumerate(below):
        begin = " and " if number else "; "
        both += f"{begin}{place}" if number and word == below[0][0] else f"{begin}{quoted(word)} is {place}"
    shares = [share_text(float(guess.probabilities[0])) for guess in (first, second)]
    if first.pieces[0] == second.pieces[0]:
        return f"The {point}, and {quoted(first.pieces[0])} comes first in both ({shares[0]} and {shares[1]}){both}."
    firsts = f"first comes {quoted(first.pieces[0])} ({shares[0]}) in A, {quoted(second.pieces[0])} ({shares[1]}) in B"
    return f"The {point}: {firsts}{both}."


def of_template(found: TemplateGuesses) -> str:
    """The finding for templates. Of the words that are asked for it compares the first two that are one piece, with the two
    fillings between which their ratio changes most; the other words are named. Where both stand below 0.1 %, it compares none.
    """
    fillings = found.fillings[: len(found.fillings) - len(found.controls)]
    shares = found.mean_probabilities[: len(fillings)]
    known = [place for place, word in enumerate(found.words) if word not in found.unknown_words]
    foot = f"{_left_out(found, known)} {_anecdote(found)}".strip()
    if not known or not len(fillings):
        return f"None of the words is one piece of this model's vocabulary. {_anecdote(found)}"
    if len(known) == 1:
        values = shares[:, known[0]]
        most, least = int(values.argmax()), int(values.argmin())
        word = quoted(found.words[known[0]])
        if len(fillings) > 1 and values[most] < LEAST:
            return f"{word} has {share_text(float(values[most]))} with every filling. {foot}"
        if len(fillings) == 1 or np.isclose(values[most], values[least], rtol=1e-6):
            return f"{word} has {share_text(float(values[most]))} with {quoted(fillings[most])}. {foot}"
        return (
            f"{word} has {share_text(float(values[most]))} with {quoted(fillings[most])}, and "
            f"{share_text(float(values[least]))} with {quoted(fillings[least])}. {foot}"
        )
    one, two = known[:2]
    names = quoted(found.words[one]), quoted(found.words[two])
    comparable = np.flatnonzero(shares[:, [one, two]].max(axis=1) >= LEAST)
    if not len(comparable):
        where = f"with {quoted(fillings[0])}" if len(fillings) == 1 else "with every filling"
        return f"{names[0]} and {names[1]} both have {share_text(LEAST / 2)} {where}: too little to compare. {foot}"
    all_compared = len(comparable) == len(fillings)
    every = "every filling" if all_compared else "every filling that gives one of them 0.1 % or more"
    logs = np.log(np.maximum(shares[:, one], 1e-30)) - np.log(np.maximum(shares[:, two], 1e-30))
    logs[np.abs(logs) < TIE] = 0.0
    high, low = (int(comparable[place]) for place in (logs[comparable].argmax(), logs[comparable].argmin()))
    values_of = [
        f"{share_text(float(shares[row, one]))} and {share_text(float(shares[row, two]))}" for row in (high, low)
    ]
    if len(comparable) > 1 and logs[high] == logs[low] == 0:
        return f"{names[0]} and {names[1]} are equally likely with {every}. {foot}"
    if high == low:
        rest = "" if all_compared else f"; with the other fillings both have {share_text(LEAST / 2)}"
        return f"With {quoted(fillings[high])}, {names[0]} and {names[1]} have {values_of[0]}{rest}. {foot}"
    if logs[high] > 0 > logs[low]:
        return (
            f"{names[0]} is likelier than {names[1]} with {quoted(fillings[high])} ({values_of[0]}), and less likely with "
            f"{quoted(fillings[low])} ({values_of[1]}). {foot}"
        )
    likelier, other = names if logs[high] > 0 else names[::-1]
    least, most = (low, high) if logs[high] > 0 else (high, low)
    if logs[least] == 0:
        return (
            f"{likelier} is likelier than {other} with {quoted(fillings[most])}; the two are equal with "
            f"{quoted(fillings[least])}. {foot}"
        )
    return f"{likelier} is likelier than {other} with {every}: least so with {quoted(fillings[least])}. {foot}"


def _anecdote(found: TemplateGuesses) -> str:
    """How much a table of templates says in general."""
    count = len(found.templates)
    if not found.is_anecdote:
        return f"The mean of {count} templates, beside {counted(len(found.controls), 'control word')}."
    return "One template proves nothing." if count == 1 else f"{count} templates without control words prove nothing."


def _left_out(found: TemplateGuesses, known: Sequence[int]) -> str:
    """Which of the words the finding leaves out: those that are no single piece, and those behind the first two."""
    said = []
    if found.unknown_words:
        are = "is" if len(found.unknown_words) == 1 else "are"
        said.append(f"{', '.join(map(quoted, found.unknown_words))} {are} no single piece.")
    if further := [quoted(found.words[place]) for place in known[2:]]:
        said.append(f"{', '.join(further)}: only in the table.")
    return " ".join(said)


def as_many_pieces(perplexity: float, vocabulary: int) -> str:
    """What stands after the pseudo-perplexity; a vocabulary has so many pieces, and above that is worse than blind guessing."""
    said = "as unsure as with so many equal choices"
    return f"{said}: worse than guessing blindly among its {vocabulary:,} pieces" if perplexity > vocabulary else said
