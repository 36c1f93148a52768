"""The sentence above each picture of Start, computed from what the picture shows. Plain text: the browser sets it as text."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from components.analysis.first_look.decisive import DECIDED
from components.analysis.first_look.nearest import NEAREST
from components.model.guesses.names import ENDS, LEVEL
from components.numbers import apart, number, ordinal, percent, share_text
from components.words.forms import are_forms

if TYPE_CHECKING:
    from components.analysis.first_look.course import WordCourse
    from components.analysis.first_look.decisive import Look
    from components.analysis.first_look.nearest import Neighbour
    from components.analysis.first_look.words import Word
    from dashboard.views.home.stored import Blindness, Senses

_COUNTS = ("none", "one", "two", "three", "four", "five")
APART, MIXED = 0.8, 0.6  # shares of right neighbours, from which senses are apart and up to which they are mixed
MOVED = 0.05  # a difference of cosines that is more than hardly any
SAME = 1e-4  # cosines that differ by less are one
ALIKE = 0.9  # a cosine from which two vectors of one word are nearly the same
CLEAR = 3  # of five neighbours in one sense


def of_senses(senses: Senses) -> str:
    """What the map of a word's senses shows."""
    start, end = senses.accuracy[0], senses.accuracy[senses.apart]
    about = f"“{senses.word}” in {len(senses.labels)} sentences"
    if end < APART:
        return f"{about}: its senses stay mixed."
    if start >= APART:
        return f"{about}: its senses are apart from the start."
    if start > MIXED:
        return f"{about}: half apart before the first block, apart at layer {senses.apart}."
    return f"{about}: mixed before the first block, apart at layer {senses.apart}."


def of_blindness(blindness: Blindness) -> str:
    """Which of the two pairs the model finds more similar."""
    opposite, paraphrase = blindness.opposite.cosine, blindness.paraphrase.cosine
    higher, lower = apart(max(opposite, paraphrase), min(opposite, paraphrase))
    if opposite == paraphrase:
        return f"To this model the opposite is as near as the paraphrase: {higher}."
    if opposite > paraphrase:
        return f"To this model the opposite is nearer than the paraphrase: {higher} against {lower}."
    return f"To this model the paraphrase is nearer than the opposite: {higher} against {lower}."


def of_strips(blindness: Blindness) -> str:
    """How often a pair with a negation is nearer than a paraphrase, over all pairs of both; a tie counts half."""
    others = blindness.paraphrases
    above = sum(bisect_left(others, cosine) + bisect_right(others, cosine) for cosine in blindness.negations) / 2
    share = above / (len(blindness.negations) * len(others))
    middles = apart(float(np.median(blindness.negations)), float(np.median(others)))
    said = f"Over all pairs, a negation is nearer in {percent(share)} of comparisons; the medians are {' and '.join(middles)}."
    place = sum(cosine < blindness.paraphrase.cosine - SAME for cosine in others) + 1  # of the pair that is shown
    if place > len(others) / 4:
        return said
    lowest = "the least similar" if place == 1 else f"the {ordinal(place)} least similar"
    return f"{said} The paraphrase shown is {lowest} of {len(others)}."


def of_look(look: Look | None, target: str, place: str = "") -> str:
    """Where a word looks; `target` is the piece that it looks at, `place` tells it from an equal one."""
    if look is None:
        return "There is no other word that it could look at."
    usual = percent(look.usual)
    if look.weight - look.usual < DECIDED:
        return (
            f"No head looks at one word much more than it does anyway: the clearest gives “{target}”{place} "
            f"{percent(look.weight)}, where {usual} is usual."
        )
    given = percent(look.weight)
    head = f"Head {look.head} of block {look.block}"
    return f"{head} gives “{target}”{place} {given} of its attention; {usual} is usual at this distance."


def of_course(course: WordCourse, word: Word, words: Sequence[Word]) -> str:
    """How a word changes: against its other occurrences, or else against its start and its sentence."""
    if course.to_twins:
        return _of_twins(course, word, words)
    start = number(float(course.to_start[-1]), 2)
    if course.to_others is None:
        return f"The blocks change it: its similarity to its own start falls to {start}."
    others = course.to_others
    nearer = others > course.to_start
    if not nearer[-1]:
        own, rest = apart(float(course.to_start[-1]), float(others[-1]))
        stays = "It stays" if not nearer.any() else "At the end it is"
        return f"{stays} nearer to its own start ({own}) than to the other words ({rest})."
    crossing = len(nearer) - 1
    while crossing and nearer[crossing - 1]:
        crossing -= 1
    rest, own = apart(float(others[-1]), float(course.to_start[-1]))
    when = f"From layer {crossing} on it is" if crossing else "From the start it is"
    if crossing == len(nearer) - 1:
        when = f"At layer {crossing}, the last, it is" if nearer[:-1].any() else f"Only at layer {crossing} is it"
    return f"{when} nearer to the other words ({rest} at the end) than to its start ({own})."


def _of_twins(course: WordCourse, word: Word, words: Sequence[Word]) -> str:
    """How a word changes against the one of its other occurrences that is least similar to it at the end."""
    twin, cosines = min(course.to_twins, key=lambda item: float(item[1][-1]))
    other = words[twin]
    is_elsewhere = other.sentence != word.sentence
    rank = rank_of(twin, word, words)
    name = f"{rank} “{other.text}”" if rank else f"“{other.text}”"
    if is_elsewhere:
        name += f" of sentence {other.sentence + 1}"
    elif not rank:
        name += " in its other place"
    start, end = float(cosines[0]), float(cosines[-1])
    first, last = apart(start, end)
    if abs(start - end) >= MOVED:
        moves = "moves away from" if end < start else "comes nearer to"
        return f"It {moves} the {name}: similarity {first} at first, {last} at the end."
    if end < ALIKE:
        return f"Its similarity to the {name} hardly changes: {first} at first, {last} at the end."
    moved = [item for item, cosines in course.to_twins if abs(float(cosines[0]) - float(cosines[-1])) >= MOVED]
    if moved:
        return (
            f"At the end “{word.text}” is nearly the same in all {len(course.to_twins) + 1} places that are compared."
        )
    where = f"in sentence {other.sentence + 1}" if is_elsewhere else "in its other place"
    where = f"in all {len(course.to_twins) + 1} places that are compared" if len(course.to_twins) > 1 else where
    return f"Hardly: to this model “{word.text}” is nearly the same {where} ({number(end, 2)} after the last block)."


def rank_of(twin: int, word: Word, words: Sequence[Word]) -> str:
    """Which of its occurrences in its sentence a word is, such as "3rd"; empty where it is the only one beside `word`."""
    other = words[twin]
    same = [
        number
        for number, item in enumerate(words)
        if item.sentence == other.sentence and are_forms(item.text, other.text)
    ]
    return ordinal(same.index(twin) + 1) if len(same) > (2 if other.sentence == word.sentence else 1) else ""


def of_guesses(pieces: Sequence[str], shares: Sequence[float], *, is_last: bool) -> str:
    """What is guessed for a mask, the most probable piece first; `is_last`: nothing stands behind it in the sentence."""
    first, share = f"“{pieces[0]}”", share_text(shares[0])
    if len(pieces) == 1:
        return f"The first guess is {first} ({share})."
    second = f"“{pieces[1]}” ({share_text(shares[1])})"
    if shares[1] >= LEVEL * shares[0]:
        return f"{first} ({share}) and {second} are nearly level."
    if is_last and pieces[0] in ENDS:
        return f"The first guess is {first} ({share}): the sentence has no end yet. Add {ENDS[pieces[0]]}."
    return f"The first guess is {first} ({share}), then {second}."


def of_nearest(
    word: str,
    nearest: Sequence[Neighbour],
    before: Sequence[Neighbour] | None,
    *,
    unrelated: float = -1,
    is_hole: bool = False,
) -> str:
    """What the nearest words are; `before` are those before the first block, None for a model without blocks.

    `unrelated`: up to this cosine a word is no nearer than unrelated words may be by chance. `is_hole`: the word is a mask.
    """
    found = nearest[:NEAREST]
    if not found:
        return "No other sentence has a word to compare it with."
    near = [item for item in found if not item.cosine <= unrelated]  # all of them where `unrelated` is not known
    if not near:
        far = f"“{found[0].place.text}”, the nearest, is as far as unrelated words"
        if is_hole:
            return f"A mask is near no word: {far}. Its guesses say more."
        return f"No included sentence has a word near it: {far}."
    own = [item for item in found if are_forms(item.place.text, word)]
    senses = Counter(item.place.sense for item in own if item.place.sense)
    sense, count = senses.most_common(1)[0] if senses else ("", 0)
    if count >= CLEAR:
        same = f"{_out_of(count, len(found))} “{word}” in the sense of {sense}"
        if before is None:
            return f"{same}."
        early = sum(item.place.sense == sense and are_forms(item.place.text, word) for item in before)
        return f"{same}; before the first block {_were(early, before)}."
    if len(own) == len(found) and len(senses) > 1:
        named = " and ".join(f"{name} ({times})" for name, times in senses.most_common())
        return f"All are “{word}” itself, in the senses of {named}."
    if len(own) == len(found):
        return f"All are “{word}” itself, in other sentences."
    others = "; the others are as far as unrelated words" if len(near) < len(found) else ""
    if others:
        return f"{_named(word, [item for item in own if item in near], near, len(found))}{others}."
    return f"{_named(word, own, found, len(found))}{'' if before is None else f'; {_kept(found, before)}'}."


def _named(word: str, own: Sequence[Neighbour], found: Sequence[Neighbour], count: int) -> str:
    """The different words among the nearest ones, of which there are `count` with those that are far."""
    others = list(dict.fromkeys(item.place.text.lower() for item in found if item not in own))
    named = ", ".join(f"“{text}”" for text in others[: 2 if own else 3])
    if not own and len(others) == 1 and len(found) == count:
        return f"All are {named}"
    if not own:
        return named
    return f"“{word}” itself ({len(own)} of {count}){f', then {named}' if named else ''}"


def _kept(found: Sequence[Neighbour], before: Sequence[Neighbour]) -> str:
    """How many of the nearest words were among the nearest before the first block."""
    kept = len({item.place for item in found} & {item.place for item in before})
    if kept == len(found):
        return "all were near before the first block, too"
    if not kept:
        return "none of them was near before the first block"
    return f"{_COUNTS[kept]} of them {'was' if kept == 1 else 'were'} near before the first block"


def _out_of(count: int, all_of_them: int) -> str:
    """ "All five are", "Four of five are"."""
    if count == all_of_them:
        return f"All {_COUNTS[all_of_them]} are"
    return f"{_COUNTS[count].capitalize()} of {_COUNTS[all_of_them]} are"


def _were(count: int, nearest: Sequence[Neighbour]) -> str:
    """ "three of five", "all, too"; "12 of 20, ties included" where more words than usual share a place."""
    if count == len(nearest):
        return "all, too"
    if len(nearest) < len(_COUNTS):
        return f"{_COUNTS[count]} of {_COUNTS[len(nearest)]}"
    return f"{count} of {len(nearest)}, ties included"
