"""The tokens of a map: their positions, their properties, and their vectors at every layer.

One record for the tokens of a few sentences (from a Trace) and for those of a corpus (from
`Backend.token_vectors`), so that maps, neighbours and lists work with both.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from components.analysis.attention.weights import second_text
from components.arrays import Float32, read_only

if TYPE_CHECKING:
    from components.model.embedding.token_vectors import TokenVectors
    from components.model.trace import Trace
from components.words.unicode_words import folded, is_within_word

PAIR_LABEL = "Text A or B"  # the label of a jointly read pair's tokens, and its values
PAIR_GROUPS = ("A", "B", "special tokens")
MOST_AROUND = 100  # characters of a word on each side of one of its pieces
NUMBERS = ("position", "frequency")  # colourings by a number; all others are by category


@dataclass(frozen=True)
class MapToken:
    """One point of a map."""

    sentence: int  # from 0
    position: int  # in the model's input, [CLS] at 0; for a whole word that of its first piece
    text: str  # as typed; a special token's own spelling
    word: str  # the whole word that it belongs to, as typed
    start: int  # characters of the sentence; both 0 for a special token
    end: int
    special: bool


@dataclass(frozen=True)
class InContext:
    """A token in its sentence, for a keyword-in-context list."""

    before: str
    text: str
    after: str


@dataclass(frozen=True, eq=False)
class TokenSet:
    """Tokens and their vectors. `key` identifies them, so that results can be cached under it."""

    key: tuple[str, ...]
    texts: Sequence[str]
    tokens: tuple[MapToken, ...]
    layers: tuple[int, ...]
    vectors: NDArray[Any]  # [layer, token, dim], float32 or float16; may be a memory map
    candidates: int  # the number of tokens they were selected from
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)  # column to each token's label

    def __len__(self) -> int:
        return len(self.tokens)

    def at(self, layer: int) -> NDArray[Any]:
        """The vectors at one layer, [token, dim]."""
        return self.vectors[self.layers.index(layer)]

    def category(self, by: str) -> list[str]:
        """Each token's category for a colouring: "sentence", "token", "word", "special", or a label column."""
        if by in self.labels:
            return list(self.labels[by])
        spelled: dict[str, str] = {}  # what counts as one word is shown as it is spelled first: "straße", not "strasse"
        category_of = {
            "sentence": lambda token: str(token.sentence + 1),
            "token": lambda token: spelled.setdefault(folded(token.text), token.text.lower()),
            "word": lambda token: spelled.setdefault(folded(token.word), token.word.lower()),
            "special": lambda token: "special token" if token.special else "text",
        }
        return [category_of[by](token) for token in self.tokens]

    def number(self, by: str) -> Float32:
        """Each token's number for a colouring: "position", or "frequency" of its text among these tokens."""
        if by == "position":
            return np.array([token.position for token in self.tokens], np.float32)
        counts = Counter(folded(token.text) for token in self.tokens)
        return np.array([counts[folded(token.text)] for token in self.tokens], np.float32)

    def in_context(self, row: int, width: int = 60) -> InContext:
        """A token with up to `width` characters of its sentence on each side."""
        token, text = self.tokens[row], self.texts[self.tokens[row].sentence]
        if token.special:
            return InContext("", token.text, _cut(text, width))
        before, after = text[: token.start], text[token.end :]
        return InContext(before if len(before) <= width else "…" + before[-width:], token.text, _cut(after, width))

    def matching(self, text: str) -> tuple[int, ...]:
        """The rows of tokens whose text or word equals this text, however it is spelt."""
        word = folded(text.strip())
        return tuple(row for row, token in enumerate(self.tokens) if word in (folded(token.text), folded(token.word)))


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[:width] + "…"


def of_trace(trace: Trace, special: bool = True) -> TokenSet:
    """The tokens of a trace's sentences, with special tokens or without."""
    tokens, rows, positions = [], [], []
    for row, sentence in enumerate(trace.sentences):
        for token in sentence.tokens:
            if token.special and not special:
                continue
            text = token.piece if token.special else sentence.surface(token.position)
            word = sentence.word_text(token.position)
            tokens.append(MapToken(row, token.position, text, word, token.start, token.end, token.special))
            rows.append(row)
            positions.append(token.position)
    vectors = np.ascontiguousarray(trace.hidden_states[:, rows, positions])
    texts = tuple(sentence.text for sentence in trace.sentences)
    content = hashlib.sha256("\n".join(texts).encode() + trace.input_ids.tobytes()).hexdigest()
    key = (trace.model, trace.revision, "sentences", str(special), content)
    return TokenSet(key, texts, tuple(tokens), tuple(range(trace.n_layers + 1)), read_only(vectors), len(tokens))


def of_pair(trace: Trace, texts: Sequence[str], rows: tuple[int, int], special: bool = True) -> TokenSet:
    """The tokens of two texts that the model read as one input: the first sentence of a trace.

    `texts` are the session's sentences, and `rows` those of the two texts in it. A token belongs to the sentence of its
    text, and its position is that in the common input. The label PAIR_LABEL says which of the two texts it belongs to;
    [CLS] and both [SEP] belong to neither. With `special` False they are left out.
    """
    sentence = trace.sentences[0]
    in_second = second_text(sentence)  # [token]; the last [SEP] belongs to the second text there
    kept = [token for token in sentence.tokens if special or not token.special]
    tokens = tuple(
        MapToken(
            rows[int(in_second[token.position])],
            token.position,
            token.piece if token.special else sentence.surface(token.position),
            sentence.word_text(token.position),
            token.start,
            token.end,
            token.special,
        )
        for token in kept
    )
    labels = tuple(PAIR_GROUPS[2 if token.special else int(token.in_pair)] for token in kept)
    vectors = np.ascontiguousarray(trace.hidden_states[:, 0, [token.position for token in kept]])
    written = "\n".join((*texts, str(rows), sentence.text, sentence.pair or ""))
    content = hashlib.sha256(written.encode() + trace.input_ids.tobytes()).hexdigest()
    return TokenSet(
        (trace.model, trace.revision, "pair", str(special), content),
        tuple(texts),
        tokens,
        tuple(range(trace.n_layers + 1)),
        read_only(vectors),
        len(tokens),
        {PAIR_LABEL: labels},
    )


def of_corpus(
    key: tuple[str, ...], chosen: TokenVectors, texts: Sequence[str], columns: Mapping[str, Sequence[str]]
) -> TokenSet:
    """The chosen tokens of a corpus; each has the labels of its sentence."""
    tokens = tuple(
        MapToken(
            token.sentence,
            token.positions[0],
            token.text,
            word_around(texts[token.sentence], token.start, token.end),
            token.start,
            token.end,
            special=False,
        )
        for token in chosen.tokens
    )
    labels = {name: tuple(column[token.sentence] for token in tokens) for name, column in columns.items()}
    return TokenSet(key, texts, tokens, chosen.layers, chosen.vectors, chosen.candidates, labels)


def word_around(text: str, start: int, end: int) -> str:
    """The characters from `start` to `end` with the letters, digits and marks directly before and after them.

    In a script without spaces between words it is these characters alone, with their marks.
    At most MOST_AROUND on each side: a row may be one word of a million letters, and each of its pieces has this word.
    """
    first, last = start, end
    while first < end and first > max(0, start - MOST_AROUND) and is_within_word(text, first):
        first -= 1
    while start < last < min(len(text), end + MOST_AROUND) and is_within_word(text, last):
        last += 1
    return text[first:last]


def choose(tokens: TokenSet, rows: Sequence[int], labels: Mapping[str, Sequence[str]]) -> TokenSet:
    """Some of the tokens, with other labels."""
    key = hashlib.sha256(np.asarray(rows, np.int64).tobytes()).hexdigest()
    picked = [tokens.tokens[row] for row in rows]
    vectors = read_only(np.ascontiguousarray(tokens.vectors[:, list(rows)]))
    return TokenSet((*tokens.key, key), tokens.texts, tuple(picked), tokens.layers, vectors, len(picked), dict(labels))
