"""One run, one record: the results of one forward pass of an encoder over a set of sentences.

Axis names used everywhere: layer, block, sentence, head, query, key, token, dim.

"Layer" counts hidden states, 0..L: layer 0 is the embedding output, before any encoder block.
"Block" b in 0..L-1 turns layer b into layer b+1 and owns attentions[b] (transformers and bertviz call it
layer b). Heads count from 0.

Records are frozen, live on the CPU, and their arrays are read-only, so that sessions can share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float32, Float64, Int64, arrays_of, read_only

Pooling = Literal[
    "mean", "cls", "max", "own", "last"
]  # how token vectors become one vector: see components.analysis.pooling
POOLINGS: tuple[Pooling, ...] = ("mean", "cls", "max")  # available for every model
# "own" is the model's own vector, where it was published with more than one of these poolings (components.model.head).
# "last" is the vector of the last token, for decoders that were trained so.
EVERY_POOLING: tuple[Pooling, ...] = (*POOLINGS, "own", "last")
POOLING_NAMES = {"mean": "Mean", "cls": "[CLS]", "max": "Max", "own": "Model's own", "last": "Last token"}  # for people


class SentenceHead(Protocol):
    """How a model makes its own vectors, where that is more than a plain pooling; see components.model.head."""

    @property
    def pooling(self) -> Pooling | None: ...  # the plain pooling that it begins with; None for another
    @property
    def pooling_name(self) -> str: ...  # in plain words
    @property
    def modes(self) -> tuple[str, ...]: ...  # several, if their vectors are joined
    @property
    def pools_states(self) -> bool: ...  # the hidden states of one layer, unchanged
    @property
    def size(self) -> int: ...  # length of its result
    def token_vectors(self, hidden: Float32, layer: int) -> Float32: ...  # [layer, .., token, dim] to [.., token, dim]
    def pooled(
        self, hidden: Float32, keep: NDArray[np.bool_], prompts: Sequence[int]
    ) -> Float32: ...  # [layer, sentence, token, dim] to [layer, sentence, pooled]
    def weights(self, vectors: np.ndarray, prompt: int) -> Float64: ...  # [token, dim] to [token, pooled]
    def apply(self, vectors: Float32) -> Float32: ...  # [.., pooled] to [.., size]
    def steps(
        self, vectors: Float32
    ) -> tuple[tuple[str, Float32], ...]: ...  # each with its name; the last is the result


@dataclass(frozen=True)
class Token:
    """One piece of a sentence, as the model reads it."""

    position: int  # in the model's input, [CLS] at 0
    piece: str  # the vocabulary's own spelling, e.g. "##ing" or "Ġbank"
    id: int
    segment: int  # token type in the model's input: in BERT 1 for the second text of a pair and its [SEP], else 0
    in_pair: bool  # belongs to the second text of a pair
    special: bool  # added by the tokenizer ([CLS], [SEP], <s>, ...), not part of the text
    # Index of the word it belongs to, counted within its text; None for special tokens. Words are those of the tokenizer, but
    # in a script without spaces between words, where it would take a whole sentence for one, each piece is a word.
    word: int | None
    start: int  # character span in its own text (first text or pair); (0, 0) for special tokens
    end: int


@dataclass(frozen=True)
class Dropped:
    """Text that exceeded the maximum length."""

    text: str  # the truncated characters, as typed
    start: int  # where it begins, in characters
    tokens: int  # the number of truncated pieces
    of_pair: bool  # True if it belongs to the second text of a pair
    is_beginning: bool = False  # True where the end of a long text is read, and its beginning is cut off

    @property
    def end(self) -> int:
        """Where it ends, in characters: at the end of the text, or where what is read begins."""
        return self.start + len(self.text)


@dataclass(frozen=True)
class TokenizedSentence:
    """A text (or a pair of texts) and its tokens."""

    text: str
    pair: str | None
    tokens: tuple[Token, ...]
    dropped: tuple[Dropped, ...] = ()
    prompt: str = ""  # what the model's files put before the text; its tokens are special
    prompt_tokens: int = 0  # leading tokens that belong to the prompt, with the special token before it

    def __len__(self) -> int:
        return len(self.tokens)

    def read_span(self, of_pair: bool = False) -> tuple[int, int]:
        """Where what the model reads of the text, or of its pair, begins and ends, in characters."""
        begin, end = 0, len((self.pair or "") if of_pair else self.text)
        for cut in self.dropped:
            if cut.of_pair == of_pair:
                begin, end = (cut.end, end) if cut.is_beginning else (begin, cut.start)
        return begin, end

    def surface(self, position: int) -> str:
        """The characters a token stands for, as typed; empty for a special token."""
        token = self.tokens[position]
        return self._source(token)[token.start : token.end]

    def _source(self, token: Token) -> str:
        return self.pair if token.in_pair and self.pair is not None else self.text

    def word_positions(self, position: int) -> tuple[int, ...]:
        """All positions of the word that the token at `position` belongs to; only its own if it is special."""
        token = self.tokens[position]
        if token.word is None:
            return (position,)
        return self._positions_of_words[token.in_pair, token.word]

    @cached_property
    def _positions_of_words(self) -> dict[tuple[bool, int], tuple[int, ...]]:
        """The positions of each word's tokens, by its text and number. Kept: a page asks for those of every token."""
        found: dict[tuple[bool, int], list[int]] = {}
        for token in self.tokens:
            if token.word is not None:
                found.setdefault((token.in_pair, token.word), []).append(token.position)
        return {word: tuple(positions) for word, positions in found.items()}

    def word_text(self, position: int) -> str:
        """The whole word around a position, as typed; the piece itself for a special token."""
        token = self.tokens[position]
        if token.word is None:
            return token.piece
        positions = self.word_positions(position)
        return self._source(token)[self.tokens[positions[0]].start : self.tokens[positions[-1]].end]


@dataclass(frozen=True, eq=False)
class EmbeddingParts:
    """The parts of layer 0. In BERT, layer 0 = LayerNorm(word + position + segment).

    Each array is float32 [sentence, token, dim]. A part that the architecture does not have is None (`Structure.
    layer_zero_parts`): DistilBERT and MPNet have no token types, ModernBERT and DeBERTa no position vectors. What happens to
    the sum is in `Structure.layer_zero_steps`; where a projection is among it, the parts may have a size of their own.
    """

    word: Float32
    position: Float32 | None = None
    segment: Float32 | None = None
    task: Float32 | None = None

    @property
    def named(self) -> dict[str, Float32]:
        """The parts that exist, by name."""
        parts = {"word": self.word, "position": self.position, "segment": self.segment, "task": self.task}
        return {name: part for name, part in parts.items() if part is not None}

    @property
    def total(self) -> Float32:
        """Their sum, float32 [sentence, token, dim]."""
        first, *others = self.named.values()
        total = first.copy()
        for part in others:
            total += part
        return total


@dataclass(frozen=True, eq=False)
class MaskLogits:
    """Vocabulary scores at the mask tokens, from the model's masked-LM head."""

    positions: tuple[tuple[int, int], ...]  # (sentence, token) of each mask token
    logits: Float32  # [mask, vocabulary]


@dataclass(frozen=True)
class TraceOptions:
    """What a trace contains besides hidden states; part of its key in the store."""

    attentions: bool = False
    max_length: int | None = None  # tokens; None: the model's maximum
    mask_logits: bool = False
    prompt: str | None = None  # put before each text; None: what the model's files put before every text


@dataclass(frozen=True, eq=False)
class Trace:
    """A forward pass of `model` at `revision` over `sentences`.

    Padding: sentences shorter than the longest are padded on the right, where `attention_mask` is 0. The
    values there are the model's output for padding: never use them as those of a token.
    """

    model: str
    revision: str
    sentences: tuple[TokenizedSentence, ...]
    input_ids: Int64  # [sentence, token]
    attention_mask: Int64  # [sentence, token], 1 for a token, 0 for padding
    token_type_ids: Int64 | None  # [sentence, token], None if the architecture has no segments
    hidden_states: Float32  # [layer, sentence, token, dim]
    attentions: Float32 | None = None  # [block, sentence, head, query, key], only on request
    embedding_parts: EmbeddingParts | None = None  # in every trace of a model
    pooler_output: Float32 | None = None  # [sentence, dim], None if there is no pooler
    mask_logits: MaskLogits | None = None  # only on request
    head: SentenceHead | None = None  # shared by all traces of the model, so not part of nbytes
    special_mask: NDArray[np.bool_] = field(init=False)  # [sentence, token], True for special and padding

    def __post_init__(self) -> None:
        special = np.ones(self.input_ids.shape, dtype=bool)
        for row, sentence in enumerate(self.sentences):
            special[row, : len(sentence)] = [token.special for token in sentence.tokens]
        object.__setattr__(self, "special_mask", special)
        for array in self._arrays():
            read_only(array)

    def _arrays(self) -> list[np.ndarray]:
        return arrays_of(self, self.embedding_parts, self.mask_logits)

    @property
    def n_layers(self) -> int:
        """L: the number of encoder blocks; hidden states are counted 0..L."""
        return self.hidden_states.shape[0] - 1

    @property
    def poolings(self) -> tuple[Pooling, ...]:
        """The poolings available: "own" only for a model with its own head."""
        return POOLINGS if self.head is None else (*POOLINGS, "own")

    @property
    def nbytes(self) -> int:
        """Memory the arrays take, in bytes."""
        return sum(array.nbytes for array in self._arrays())

    def token_vectors(self, sentence: int, positions: tuple[int, ...] | list[int]) -> Float32:
        """Hidden states of some tokens of a sentence, float32 [layer, token, dim]. Raises IndexError for padding."""
        length = len(self.sentences[sentence])
        if not positions or not all(0 <= position < length for position in positions):
            raise IndexError(f"positions {positions} are not all within 0..{length - 1} of sentence {sentence}")
        return self.hidden_states[:, sentence, list(positions)]
