"""English words that carry grammar rather than content, such as "the", "of" and "would".

A page that chooses or names a word by itself passes over them. The list was written for this project; it leaves out
words that also have a content of their own ("will" is in it, "bank" or "fire" is not).
"""

from __future__ import annotations

from collections.abc import Iterable

TELLING = 2  # function words of another language that no other one has: as few tell it

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

# Of other languages the most frequent ones, for a page that chooses a word of a sentence in that language. Alone none of them
# tells the language: "die" and "hat" are words of English too.
_GERMAN = (
    "der die das den dem des ein eine einen einem einer eines kein keine keinen ich du er sie es wir ihr mich mir dich dir ihn "
    "ihm uns euch ihnen mein meine dein sein seine seinen ihre ihren unser und oder aber denn sondern dass weil wenn als ob "
    "wie wer was wo warum in im an am auf aus bei beim mit nach von vom vor zu zum zur über unter durch für gegen ohne um bis "
    "seit ist sind war waren bin bist wird werden wurde hat haben hatte habe kann können muss soll will nicht kein noch schon "
    "auch nur sehr so da dann hier dort man sich"
)
_FRENCH = (
    "le la les l un une des du de d et ou mais donc car que qu qui quoi dont où je j tu il elle on nous vous ils elles me m "
    "te t se s lui leur y en ce c cet cette ces mon ma mes ton ta tes son sa ses notre votre leurs à au aux dans par pour sur "
    "sous avec sans est sont était été être a ai as avons ont avait ne n pas plus très si comme"
)
_SPANISH = (
    "el la los las un una unos unas de del al a y e o u pero que quien cual donde cuando como yo tú él ella nosotros ellos "
    "ellas me te se le les lo nos mi mis tu tus su sus nuestro este esta estos estas ese esa en con por para sin sobre entre "
    "es son era fue ser está están estar ha han había no ni ya muy más si"
)
_OTHERS = tuple(frozenset(words.split()) for words in (_GERMAN, _FRENCH, _SPANISH))


def is_function_word(word: str) -> bool:
    """Whether a word (lower case) is one of them, or contracted of them: "don't", "it's"."""
    return word in FUNCTION_WORDS or ("'" in word and all(part in FUNCTION_WORDS for part in word.split("'")))


def function_words_of(words: Iterable[str]) -> frozenset[str]:
    """The function words of the language in which a sentence's words (lower case) are: the one of which it has the most.

    On a tie it is English. One word says nothing: another language needs two of its own that are none of English.
    """
    found = list(words)
    english = sum(word in FUNCTION_WORDS for word in found)
    counts = [(sum(word in own for word in found), own) for own in _OTHERS]
    most, best = max(counts, key=lambda item: item[0])
    telling = len({word for word in found if word in best and word not in FUNCTION_WORDS})
    return best if most > english and telling >= TELLING else FUNCTION_WORDS
