"""WordNet as sentences: what its synsets say, their examples and their relations; some synsets are held out to measure with.

Read are the plain files of Debian's wordnet-base, in the format that the manual pages wndb(5WN) and wninput(5WN) describe: a
line of `data.noun` is "offset file type count word id ... count pointer offset type numbers ... | gloss".
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
MASK = "[MASK]"
HELD_OUT_SYNSETS = 400
GLOSS_WORDS = range(6, 31)  # of a gloss that is measured with
GLOSSES, EXAMPLES, RELATIONS = "WordNet glosses", "WordNet examples", "WordNet relations"

# How an inflected form becomes the form in the dictionary (manual page morphy(7WN)); tried beside the list of exceptions.
ENDINGS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "n": (
        *(("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z")),
        *(("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y")),
    ),
    "v": (
        *(("s", ""), ("ies", "y"), ("es", "e"), ("es", "")),
        *(("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    ),
    "a": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "r": (),
}
# Words that a sentence has for its grammar: WordNet lists some of them ("a", "in", "will"), and none is measured with.
_FUNCTION_WORDS = """
    a about above across after again against all almost along already also although always am among an and another any
    anybody anyone anything are around as at away be because been before behind being below beneath beside besides between
    beyond both but by can could did do does doing done down during each either else enough even ever every everybody everyone
    everything except few for from further get gets getting got had has have having he her here hers herself him himself his how
    however i if in indeed inside instead into is it its itself just least less let like many may me might mine more moreover
    most much must my myself near neither never nevertheless no nobody none nor not nothing now of off often on once one only
    onto or other others otherwise ought our ours ourselves out outside over own per perhaps quite rather s same shall she
    should since so some somebody someone something still such t than that the their theirs them themselves then there thereby
    therefore these they this those though through throughout thus till to together too toward towards under unless until up
    upon us very was we were what whatever when where whereas whether which while who whoever whole whom whose why will with
    within without would yes yet you your yours yourself two three four five six seven eight nine ten mr mrs ms dr st vs etc de
    la le el don ll ve re m d o u"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())


@dataclass(frozen=True, order=True)
class SynsetKey:
    """Which synset: "n", "v", "a" or "r", and where its line begins in that file."""

    part_of_speech: str
    offset: str


@dataclass(frozen=True)
class Synset:
    """Words that share a meaning; `gloss` says which, with examples in quotation marks."""

    words: tuple[str, ...]
    gloss: str
    pointers: tuple[
        tuple[str, SynsetKey], ...
    ]  # symbol ("@": is a kind of, "#p": is part of, ...), and the other synset

    def pointed(self, symbol: str) -> list[SynsetKey]:
        """The synsets that a kind of pointer leads to."""
        return [key for kind, key in self.pointers if kind == symbol]


class MaskedSentence(TypedDict):
    """A sentence with one [MASK], and every word that counts as right there."""

    sentence: str
    answers: list[str]


@dataclass(frozen=True)
class WordNet:
    """The dictionary."""

    synsets: Mapping[SynsetKey, Synset]
    lemmas: Mapping[str, frozenset[str]]  # of each part of speech; several words are joined by "_"
    irregular: Mapping[str, frozenset[str]]  # inflected forms that no ending explains, of each part of speech

    def is_content_word(self, word: str) -> bool:
        """Whether a word in lower case is a noun, verb, adjective or adverb of three letters or more, in any form."""
        if word in FUNCTION_WORDS or not word.isalpha() or len(word) < 3:
            return False
        return any(
            word in self.lemmas[part]
            or word in self.irregular[part]
            or any(
                word.endswith(ending) and word.removesuffix(ending) + base in self.lemmas[part]
                for ending, base in ENDINGS[part]
            )
            for part in FILES
        )


def read_wordnet(folder: Path) -> WordNet:
    """The dictionary in a folder with index.*, data.* and *.exc. Raises OSError where a file is missing."""
    synsets: dict[SynsetKey, Synset] = {}
    lemmas: dict[str, frozenset[str]] = {}
    irregular: dict[str, frozenset[str]] = {}
    for part, name in FILES.items():
        lemmas[part] = frozenset(line.split(" ", 1)[0] for line in _lines(folder / f"index.{name}"))
        irregular[part] = frozenset(line.split(" ", 1)[0] for line in _lines(folder / f"{name}.exc"))
        for line in _lines(folder / f"data.{name}"):
            fields, gloss = line.split(" | ", 1)
            offset, synset = _synset(fields.split(" "), gloss.strip())
            synsets[SynsetKey(part, offset)] = synset
    return WordNet(synsets, lemmas, irregular)


def _lines(path: Path) -> Iterator[str]:
    """The lines that say something: those of the licence at the top begin with a space."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(" "):
            yield line


def _synset(fields: Sequence[str], gloss: str) -> tuple[str, Synset]:
    """The offset and the synset of a line; its number of words is hexadecimal, "s" is an adjective like another one."""
    word_count = int(fields[3], 16)
    after = 4 + 2 * word_count
    words = [re.sub(r"\((a|p|ip)\)$", "", word).replace("_", " ") for word in fields[4:after:2]]
    pointers = [
        (fields[start], SynsetKey(fields[start + 2].replace("s", "a"), fields[start + 1]))
        for start in range(after + 1, after + 1 + 4 * int(fields[after]), 4)
    ]
    return fields[0], Synset(tuple(words), gloss, tuple(pointers))


def split_gloss(gloss: str) -> tuple[str, list[str]]:
    """What a gloss says without its examples, and the examples."""
    examples = [example.strip() for example in re.findall(r'"([^"]{8,})"', gloss)]
    meaning = re.sub(r'(?:;|(?<![;\s]))\s*"[^"]*"(?:\s*-[^;"]*)?', "", gloss)  # an example, with "- who said it"
    return re.sub(r"^\([^)]*\)\s*", "", meaning).strip(" ;,"), examples


def hold_out(
    wordnet: WordNet, vocabulary: Collection[str], rng: random.Random, count: int = HELD_OUT_SYNSETS
) -> tuple[frozenset[SynsetKey], list[MaskedSentence]]:
    """Synsets of which nothing is trained on, drawn at random, and a sentence of each with one of its content words masked.

    The word is one piece of the `vocabulary`, is not the first, and is none of the synset's own.
    """
    candidates = [
        key
        for key in sorted(wordnet.synsets)
        if len(re.findall(r"[a-z0-9']+", split_gloss(wordnet.synsets[key].gloss)[0].lower())) in GLOSS_WORDS
    ]
    rng.shuffle(candidates)
    held_out: set[SynsetKey] = set()
    sentences: list[MaskedSentence] = []
    for key in candidates:
        if len(sentences) == count:
            break
        own = set(re.findall(r"[a-z0-9']+", " ".join(wordnet.synsets[key].words).lower()))
        masked = mask_a_word(_gloss_sentence(wordnet, key), wordnet, vocabulary, rng, own, first=1)
        if masked is not None:
            held_out.add(key)
            sentences.append(masked)
    return frozenset(held_out), sentences


def mask_a_word(
    sentence: str,
    wordnet: WordNet,
    vocabulary: Collection[str],
    rng: random.Random,
    without: Collection[str] = (),
    first: int = 0,
) -> MaskedSentence | None:
    """One content word of a sentence masked, drawn at random from those that are one piece; None if there is none.

    The word stands between spaces, or before punctuation; `first` is the least number of the part it may be, counting words,
    spaces and punctuation.
    """
    parts = re.findall(r"[A-Za-z]+|[^A-Za-z\s]+|\s+", sentence)
    able = [
        number
        for number, part in enumerate(parts)
        if number >= first
        and part.lower() in vocabulary
        and part.lower() not in without
        and wordnet.is_content_word(part.lower())
        and (number == 0 or parts[number - 1].isspace())
        and (number + 1 == len(parts) or parts[number + 1].isspace() or parts[number + 1][0] in ".,;:!?")
    ]
    if not able:
        return None
    chosen = rng.choice(able)
    return {"sentence": "".join([*parts[:chosen], MASK, *parts[chosen + 1 :]]), "answers": [parts[chosen].lower()]}


def sentences_of(wordnet: WordNet, held_out: Collection[SynsetKey], rng: random.Random) -> Iterator[tuple[str, str]]:
    """GLOSSES, EXAMPLES or RELATIONS, and a sentence, for all synsets but those held out."""
    kinds: defaultdict[SynsetKey, list[str]] = defaultdict(list)
    for key in sorted(wordnet.synsets):
        if key in held_out:
            continue
        synset = wordnet.synsets[key]
        is_sentence = rng.random() < 0.6
        meaning, examples = split_gloss(synset.gloss)
        if meaning:
            yield GLOSSES, _gloss_sentence(wordnet, key) if is_sentence else f"{synset.words[0]}: {meaning}."
        for example in examples:
            yield EXAMPLES, _capital(example) + ("" if example[-1] in ".!?" else ".")
        for sentence in _relations(wordnet, key, kinds, rng):
            yield RELATIONS, sentence
    for key, names in sorted(kinds.items()):
        rng.shuffle(names)
        for start in range(0, len(names) - 2, 5):
            several, kind = names[start : start + 5], wordnet.synsets[key].words[0]
            listed = f"{_capital(several[0])}, {', '.join(several[1:-1])} and {several[-1]}"
            yield RELATIONS, f"{listed} are kinds of {kind}."


def _relations(
    wordnet: WordNet, key: SynsetKey, kinds: defaultdict[SynsetKey, list[str]], rng: random.Random
) -> Iterator[str]:
    """Sentences of what a synset is a kind, an instance, a part, a member or the matter of, and of its second word.

    `kinds` gets the synset's first word at what it is a kind of.
    """
    synset = wordnet.synsets[key]
    word = synset.words[0]
    with_article = _with_article(word)
    if key.part_of_speech == "n":
        instance_of, part_of = synset.pointed("@i"), synset.pointed("#p")
        for other in synset.pointed("@")[:1]:
            kind = wordnet.synsets[other].words[0]
            kinds[other].append(word)
            yield rng.choice(
                [
                    f"{_capital(with_article)} is {_with_article(kind)}.",
                    f"{_capital(with_article)} is a kind of {kind}.",
                    f"{_capital(word)} is a type of {kind}.",
                ]
            )
        for other in instance_of[:1]:
            kind = wordnet.synsets[other].words[0]
            kinds[other].append(word)
            place = wordnet.synsets[part_of[0]].words[0] if part_of else ""
            where = f" in {place}" if place and _is_name(place) else ""
            verb = "is" if rng.random() < 0.6 else "was or is the name of"
            yield f"{word} {verb} {_with_a(kind)}{where}."
        for other in part_of[:1]:
            if not instance_of:
                whole = _with_article(wordnet.synsets[other].words[0])
                yield rng.choice(
                    [f"{_capital(with_article)} is part of {whole}.", f"{_capital(whole)} has {with_article}."]
                )
        for other in synset.pointed("#m")[:1]:
            if rng.random() < 0.3:
                yield f"{_capital(with_article)} belongs to the {wordnet.synsets[other].words[0]}."
        for other in synset.pointed("#s")[:1]:
            yield f"There is {word} in {wordnet.synsets[other].words[0]}."
    if len(synset.words) > 1 and rng.random() < 0.4:
        second = synset.words[1]
        is_verb = key.part_of_speech == "v"
        yield f"To {word} means to {second}." if is_verb else f"{_capital(word)} is another word for {second}."


def _gloss_sentence(wordnet: WordNet, key: SynsetKey) -> str:
    """What a synset's first word means, as a sentence."""
    word, meaning = wordnet.synsets[key].words[0], split_gloss(wordnet.synsets[key].gloss)[0]
    if key.part_of_speech == "n":
        is_phrase = re.match(r"(a|an|the|any|one|someone|something)\b", meaning)
        return f"{_capital(_with_article(word)) if is_phrase else _capital(word)} is {meaning}."
    return f"To {word} is to {meaning}." if key.part_of_speech == "v" else f"{_capital(word)} means {meaning}."


def _with_a(word: str) -> str:
    return f"{'an' if word[0].lower() in 'aeiou' else 'a'} {word}"


def _is_name(word: str) -> bool:
    return word[0].isupper() or word[0].isdigit()


def _with_article(word: str) -> str:
    return word if _is_name(word) else _with_a(word)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
