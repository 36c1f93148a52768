"""Whether two English words are forms of one word, by their endings: "voucher" and "vouchers", "swim" and "swimming".

The regular endings -s, -es, -ed, -ing and 's are compared, with the spelling changes that they bring (a doubled consonant, a
lost e, y for i). That is enough to tell a person that a text has nearly the same word. It knows no irregular forms ("ran",
"mice") and no words that are derived from another ("swimmer"), and chance can fool it: "even" and "evening" meet.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from components.words.unicode_words import folded

SHORTEST_STEM = 3  # letters: below that endings mean nothing ("is", "red", "thing")
_ENDINGS = ("s", "es", "ed", "ing")
_VOWELS = frozenset("aeiou")


def are_forms(first: str, second: str) -> bool:
    """Whether two words are equal, or forms of one word; case does not matter."""
    return not stems_of(first).isdisjoint(stems_of(second))


def stems_of(word: str) -> frozenset[str]:
    """What a word can be a form of: two words are forms of one exactly if these share a stem."""
    return _stems(_plain(word))


def forms_in(word: str, others: Iterable[str]) -> tuple[str, ...]:
    """Those of some words that are forms of a word, without itself, each once and in their order; folded."""
    own = _plain(word)
    found = (_plain(other) for other in others if are_forms(own, other))
    return tuple(dict.fromkeys(form for form in found if form != own))


def _plain(word: str) -> str:
    """Folded, without the ending of a possessive."""
    plain = folded(word)
    return plain.removesuffix("'s") if plain.endswith("'s") else plain.removesuffix("'")


@lru_cache(maxsize=10_000)
def _stems(word: str) -> frozenset[str]:
    """What a word can be a form of: itself, and itself without each ending, spelt in the possible ways."""
    stems = {word}
    for ending in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem == word or len(stem) < SHORTEST_STEM or _VOWELS.isdisjoint(stem.replace("y", "i")):
            continue
        if ending == "s" and stem[-1] in "su":  # "glass" and "bus" end so without being plurals
            continue
        stems.add(stem)
        if ending != "s":
            stems.add(stem + "e")  # "mak-ing"
        if stem[-1] == "i":
            stems.add(stem[:-1] + "y")  # "countri-es"
        if len(stem) > SHORTEST_STEM and stem[-1] == stem[-2] and stem[-1] not in _VOWELS:
            stems.add(stem[:-1])  # "swimm-ing"
    return frozenset(stems)
