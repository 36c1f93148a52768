"""English words that carry grammar rather than content, such as "the", "of" and "would".

A page that chooses or names a word by itself passes over them. The list was written for this project; it leaves out
words that also have a content of their own ("will" is in it, "bank" or "fire" is not).
"""

from __future__ import annotations

_ARTICLES = "a an the this that these those each every either neither another other others such same own"
_PRONOUNS = (
    "i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself "
    "we us our ours ourselves they them their theirs themselves one who whom whose which what someone somebody "
    "something anyone anybody anything everyone everybody everything nobody nothing none"
)
_VERBS = (
    "am is are was were be been being do does did doing done have has had having can could will would shall should "
    "may might must ought let lets don doesn didn isn aren wasn weren won wouldn couldn shouldn haven hasn hadn ll ve re"
)
_PREPOSITIONS = (
    "of in on at by for with from to into onto upon over under about above below between among through during before "
    "after against within without along across behind beside besides beyond near off out up down around toward towards "
    "until till since despite via per"
)
_CONJUNCTIONS = "and or but nor so yet if then than as because while when where why how whether though although unless"
_ADVERBS = (
    "not no yes too very also just only even still again ever never here there now once more most less least much many "
    "some any all both few several next last already almost quite rather really"
)

FUNCTION_WORDS = frozenset(
    " ".join((_ARTICLES, _PRONOUNS, _VERBS, _PREPOSITIONS, _CONJUNCTIONS, _ADVERBS, "s t d m")).split()
)
# Those that stand for somebody or something named before.
PERSONAL = frozenset(("it", "he", "she", "they", "him", "her", "them"))
