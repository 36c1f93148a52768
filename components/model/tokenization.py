"""Text to tokens, with the same result from any number of threads.

A fast tokenizer shared by threads gives silently wrong truncation or padding when calls differ in these
settings, because the settings are stored in the tokenizer. So ours is a private copy with both switched
off permanently: nothing changes it after construction, and truncation and padding are done here, by the rules
of transformers (at the tokenizer's own side, the end or the beginning; of a pair the longer text first, or only the second;
tests compare the two). Padding is always on the right, where it changes no text's positions.

A text is read to the published length, `own_length`, unless another is asked for.

Long texts are tokenized in pieces (components.model.files.splitting.text_cuts), and no further than they are read: what is
cut off is counted only where its number is asked for. `is_stopped` is asked before each call of the library, which gets texts
or pieces of BATCH_CHARACTERS at most, or one piece in which there is no place to cut.
"""

from __future__ import annotations

import copy
import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Literal, TypeVar

import numpy as np
from tokenizers import Encoding

from components import operator_settings
from components.arrays import Int64
from components.errors import InputError, ModelError, first_line
from components.jobs import IsStopped, Stopped
from components.model.files.splitting import text_cuts
from components.model.files.tokenizer_files import check_frame, check_growth
from components.model.trace import Dropped, Token, TokenizedSentence
from components.numbers import counted
from components.words.unicode_words import has_pairs

Truncation = Literal["longest_first", "only_second"]  # which text of a pair is truncated, as transformers names it
TRUNCATIONS: tuple[Truncation, ...] = ("longest_first", "only_second")
# Of a trace; read once, because the addresses that the pages accept are described with them.
MAX_SENTENCES = operator_settings.SENTENCES.value()
MAX_CHARACTERS = operator_settings.CHARACTERS.value()  # all sentences together
BATCH_CHARACTERS = 1 << 17  # at most 512 kB: a call takes some tenths of a second, and below 300 MB for its records
_CHARACTERS_OF_AN_ITEM = 32  # whose memory is that of the record of a text without tokens
Item = TypeVar("Item")


def check_texts(texts: Sequence[str], pairs: Sequence[str | None] | None = None) -> None:
    """Raise InputError unless these are 1..64 non-empty texts of at most 20,000 characters together."""
    if isinstance(texts, str):
        raise TypeError("texts is a sequence of sentences, not one string")
    if not texts:
        raise InputError(
            "There is no sentence.", "At least one sentence is needed.", "Type a sentence, or pick a ready-made set."
        )
    if len(texts) > MAX_SENTENCES:
        raise InputError(
            f"There are {len(texts)} sentences.", f"At most {MAX_SENTENCES} can be shown at once.", "Remove some lines."
        )
    if pairs is not None and len(pairs) != len(texts):
        raise ValueError(f"{len(texts)} texts but {len(pairs)} pairs")
    everything = [*texts, *(pair for pair in pairs or () if pair is not None)]
    for number, text in enumerate(everything, start=1):
        if not text.strip():
            raise InputError(
                f"Sentence {number} is empty or contains only spaces.",
                "Every sentence needs some text.",
                "Type a word, or remove the line.",
            )
        invalid = next((position for position, char in enumerate(text) if "\ud800" <= char <= "\udfff"), None)
        if invalid is not None:
            raise InputError(
                f"Sentence {number} has an invalid character (U+{ord(text[invalid]):04X}) at position {invalid + 1}.",
                "It is half of an emoji or of another rare character, and not valid Unicode.",
                "Delete the invalid character, then type or paste the whole one again.",
            )
    total = sum(len(text) for text in everything)
    if total > MAX_CHARACTERS:
        raise InputError(
            f"The sentences have {total:,} characters in total.",
            f"At most {MAX_CHARACTERS:,} characters can be shown at once.",
            "Shorten the sentences, or remove some.",
        )


def clean_text(text: str) -> str:
    """Text with valid Unicode only: invalid characters become U+FFFD, the rest stays as typed."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def invisible_characters(text: str) -> list[str]:
    """Names of control and format characters in a text, which most tokenizers drop silently."""
    return [
        f"U+{ord(char):04X}"
        for char in text
        if unicodedata.category(char) in {"Cc", "Cf"} and char not in "\t\n\r" and char != "\u200d"
    ]


class Tokenization:
    """A model's tokenizer, frozen. All methods are safe to call from any thread."""

    def __init__(
        self,
        tokenizer: Any,
        max_positions: int,
        has_segments: bool,
        rows: int | None = None,
        published_length: int | None = None,
        longest_role: int = 0,
    ) -> None:
        """`rows` is the number of the model's word embeddings, below which every id must be; None: not checked.

        `published_length` is the length of a text that the model's other files give, which then counts and not the
        tokenizer's. `longest_role` is the longest length that they give for queries or documents; 0: none.

        Raises ModelError for a tokenizer that cannot be used with the model, InputError if it fails on a simple text.
        """
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise ModelError(
                "unsupported",
                f"{type(tokenizer).__name__} is not a fast tokenizer.",
                "The dashboard needs a tokenizer that maps each piece to its characters (tokenizer.json).",
                "Save the model again with a fast tokenizer, or pick another one.",
            )
        # What the library built, partly from names in other files than the one that was checked before it did.
        for part, check in (
            (backend.normalizer, check_growth),
            (backend.pre_tokenizer, check_growth),
            (backend.post_processor, check_frame),
        ):
            if part is not None:
                check(json.loads(part.__getstate__()))
        self.special_tokens = _roles(tokenizer)
        if rows is not None:  # before the copy, which goes through all numbers up to the largest id
            _check_ids(backend, self.special_tokens, rows)
        self._encoder = copy.deepcopy(backend)
        self._encoder.no_truncation()
        self._encoder.no_padding()
        if getattr(self._encoder.model, "dropout", None):
            self._encoder.model.dropout = None  # pieces by chance are for training
        # As published; a text that spells a special token then has pieces of it. transformers sets this in each call.
        self._encoder.encode_special_tokens = bool(getattr(tokenizer, "split_special_tokens", False))
        # Kept apart, to run once, after truncation: `encode` would run it too, and a byte-level one would move
        # the start of each span past its space twice.
        self._processor = self._encoder.post_processor
        self._encoder.post_processor = None
        self.place_to_cut = text_cuts.place_to_cut(self._encoder)
        self.has_segments = has_segments
        self._gives_segments = "token_type_ids" in tokenizer.model_input_names
        # The tokenizer's own limit applies if it is lower than the model's number of positions.
        own_limit = int(tokenizer.model_max_length)
        limit = min(max_positions, own_limit) if 0 < own_limit < 1_000_000 else max_positions
        self.own_length = min(published_length or limit, max_positions)  # as published; tokens, special ones included
        self.max_length = max(limit, self.own_length, min(longest_role, max_positions))  # that can be asked for
        self.keeps_end = getattr(tokenizer, "truncation_side", "right") == "left"  # of a text that is too long
        self.pad_id = int(tokenizer.pad_token_id or 0)
        self.pad_segment = int(getattr(tokenizer, "pad_token_type_id", 0) or 0)
        self.unknown_id: int | None = tokenizer.unk_token_id
        self.mask_id: int | None = tokenizer.mask_token_id
        self.special_ids = frozenset(getattr(tokenizer, "all_special_ids", ()))
        self.vocabulary: tuple[str, ...] = _pieces(self._encoder)
        self._extra = {
            pair: 0 if self._processor is None else self._processor.num_special_tokens_to_add(pair)
            for pair in (False, True)
        }
        # Of the special tokens before a single text, of each of its own, and of those after it.
        self._single_segments: tuple[list[int], list[int], list[int]] = ([], [0], [])
        self.frame = self._special_frame()  # the ids of the special tokens before and after a single text
        if self.own_length <= self.frame_length:
            raise ModelError(
                "unsupported",
                f"This model reads at most {self.own_length} tokens, of which {self.frame_length} are special.",
                "There must be room for at least one token of a text.",
                "Pick another model.",
            )

    def tokenize(
        self,
        text: str,
        pair: str | None = None,
        max_length: int | None = None,
        truncation: Truncation = "longest_first",
    ) -> TokenizedSentence:
        """Tokens of a text, or of a pair of texts, truncated to `max_length` tokens (by default the published length).

        `truncation` says which text of a pair gives way. Raises InputError for an impossible length, and where only the
        second text may be truncated but the first leaves it no room.
        """
        limit = self.check_length(max_length, pair is not None)
        room = limit - self._extra[pair is not None]
        first = _ReadPart(self, text, room, with_spans=True)
        second = None if pair is None else _ReadPart(self, pair, room, with_spans=True)
        keep_first, keep_second = _kept(
            first.length,
            0 if second is None else second.length,
            room,
            truncation if pair is not None else "longest_first",
        )
        dropped = [first.dropped(keep_first, of_pair=False)]
        if second is not None:
            dropped.append(second.dropped(keep_second, of_pair=True))
        full = self._joined(first.kept(keep_first), None if second is None else second.kept(keep_second))
        # Each attribute of an encoding is a new list, so that it is asked for once and not for every token.
        columns = zip(
            full.tokens,
            full.ids,
            full.type_ids,
            full.sequence_ids,
            full.special_tokens_mask,
            full.word_ids,
            full.offsets,
            strict=True,
        )
        tokens = tuple(
            Token(
                position=position,
                piece=piece,
                id=number,
                segment=segment if self.has_segments and (self._gives_segments or pair is not None) else 0,
                in_pair=sequence == 1,
                special=bool(special),
                word=word,
                start=start,
                end=end,
            )
            for position, (piece, number, segment, sequence, special, word, (start, end)) in enumerate(columns)
        )
        tokens = _with_pieces_as_words(tokens, text, pair)
        return TokenizedSentence(text, pair, tokens, tuple(item for item in dropped if item is not None))

    @property
    def frame_length(self) -> int:
        """The number of special tokens of a single text."""
        return self._extra[False]

    @property
    def pair_frame_length(self) -> int:
        """The number of special tokens of two texts that are read together."""
        return self._extra[True]

    def lengths(self, texts: Sequence[str], is_stopped: IsStopped = lambda: False) -> list[int]:
        """The number of tokens of each text before truncation, special tokens included. Raises Stopped."""
        counts = [self._extra[False]] * len(texts)
        numbered = ((row, piece) for row, text in enumerate(texts) for piece in self._pieces(text))
        for batch in _batches(numbered, lambda item: len(item[1])):
            encoded = self.encoded([piece for _, piece in batch], is_stopped)
            for (row, _), tokens in zip(batch, encoded, strict=True):
                counts[row] += len(tokens)
        return counts

    def beginning(self, text: str, max_length: int | None = None) -> str:
        """The text, or so much of a long one that it has more tokens than are read: the first `max_length` are the same.

        Always the text itself where the end of a long text is read, so that places in it stay what they are.
        """
        limit = self.check_length(max_length)
        return text if self.keeps_end else _ReadPart(self, text, limit - self._extra[False]).text

    def encode_many(
        self, texts: Iterable[str], max_length: int | None = None, is_stopped: IsStopped = lambda: False
    ) -> tuple[list[list[int]], list[bool]]:
        """The ids of many single texts, and whether each was truncated: the same as `tokenize`, without its records.

        The tokenizer runs in its own threads, without Python's lock. Invalid characters become U+FFFD; an empty
        text gives only its special tokens. Raises Stopped.
        """
        room = self.check_length(max_length) - self._extra[False]
        before, after = self.frame
        rows, truncated = [], []
        divided = (self.in_reading_order(clean_text(text)) for text in texts)
        begun = ((next(others), others) for others in divided)  # its first piece is enough of nearly every text
        for batch in _batches(begun, lambda item: len(item[0])):
            encoded = self.encoded([piece for piece, _ in batch], is_stopped)
            for (_, others), tokens in zip(batch, encoded, strict=True):
                ids = tokens.ids
                while len(ids) <= room and (piece := next(others, None)) is not None:
                    more = self.encoded([piece], is_stopped)[0].ids
                    ids = more + ids if self.keeps_end else ids + more
                truncated.append(len(ids) > room)
                rows.append([*before, *(ids[-room:] if self.keeps_end else ids[:room]), *after])
        return rows, truncated

    @property
    def gives_segments(self) -> bool:
        """Whether the tokenizer, as published, gives token types, and the model has them."""
        return self.has_segments and self._gives_segments

    def encode_pairs(
        self,
        texts: Sequence[str],
        pairs: Sequence[str],
        max_length: int | None = None,
        truncation: Truncation = "longest_first",
        is_stopped: IsStopped = lambda: False,
    ) -> list[tuple[list[int], list[int]]]:
        """The ids and segments of many pairs of texts: the same as `tokenize`, without its records.

        Segments are 0 where the tokenizer, as published, gives none: libraries train the model without them then. Raises
        Stopped.
        """
        room = self.check_length(max_length, is_pair=True) - self._extra[True]
        rows = []
        both = zip(map(self._divided, texts), map(self._divided, pairs), strict=True)
        for batch in _batches(both, lambda item: len(item[0][1]) + len(item[1][1])):
            encoded = self.encoded([piece for pair in batch for _, piece in pair], is_stopped)
            for row, sides in enumerate(batch):
                first, second = (
                    _ReadPart(self, text, room, encoded[2 * row + side], is_stopped=is_stopped)
                    for side, (text, _) in enumerate(sides)
                )
                # How much longer than the room a text is makes no difference; which is longer does, and is said in an error.
                is_enough = first.read < room if truncation == "only_second" else min(first.read, second.read) <= room
                keep_first, keep_second = _kept(
                    first.read if is_enough else first.length,
                    second.read if is_enough else second.length,
                    room,
                    truncation,
                )
                joined = self._joined(first.kept(keep_first), second.kept(keep_second))
                rows.append((joined.ids, joined.type_ids if self._gives_segments else [0] * len(joined)))
        return rows

    def _pieces(self, text: str) -> Iterator[str]:
        """A text with valid characters only, in the pieces that are tokenized each."""
        return text_cuts.pieces(clean_text(text), self.place_to_cut)

    def in_reading_order(self, text: str) -> Iterator[str]:
        """The pieces of a text, from its end where that is what is kept of a long one."""
        pieces = text_cuts.pieces(text, self.place_to_cut)
        return reversed(list(pieces)) if self.keeps_end else pieces

    def _divided(self, text: str) -> tuple[str, str]:
        """A text with valid characters only, and the piece of it that is read first."""
        cleaned = clean_text(text)
        return cleaned, next(self.in_reading_order(cleaned))

    def _joined(self, first: Any, second: Any | None) -> Any:
        """The library's encoding of one or two texts, with special tokens."""
        post_process = self._encoder.post_process if self._processor is None else self._processor.process
        with _explained():
            return post_process(first, second, True)

    def encoded(
        self, texts: Sequence[str], is_stopped: IsStopped = lambda: False, with_spans: bool = False
    ) -> list[Any]:
        """The library's encoding of each text, without special tokens, and without offsets unless `with_spans`.

        Never by `encode`, which holds Python's lock: a tokenizer with a slow pattern would stop every session. Raises
        InputError and Stopped.
        """
        if is_stopped():
            raise Stopped
        encode = self._encoder.encode_batch if with_spans else self._encoder.encode_batch_fast
        with _explained():
            result: list[Any] = encode(list(texts), add_special_tokens=False)
            return result

    def _special_frame(self) -> tuple[list[int], list[int]]:
        """The special tokens before and after a single text. Raises ModelError if some stand in between."""
        with _explained():
            inner = self._encoder.encode("a b", add_special_tokens=False)
            bare = list(inner.ids)
            full = inner if self._processor is None else self._processor.process(inner, None, True)
            whole, segments = list(full.ids), list(full.type_ids)
        for start in range(len(whole) - len(bare) + 1):
            if whole[start : start + len(bare)] == bare and len(whole) - len(bare) == self._extra[False]:
                if self.gives_segments:
                    own = segments[start : start + 1] or [0]
                    self._single_segments = segments[:start], own, segments[start + len(bare) :]
                return whole[:start], whole[start + len(bare) :]
        raise ModelError(
            "unsupported",
            "This tokenizer changes the tokens of a text when it adds special tokens.",
            "A tokenizer may add special tokens only before and after a text.",
            "Pick another model.",
        )

    def check_length(self, max_length: int | None, is_pair: bool = False) -> int:
        """The length to which a text (or a pair) is truncated; None: as published. Raises InputError for an impossible one."""
        limit = self.own_length if max_length is None else max_length
        least = self._extra[is_pair] + 1
        if not least <= limit <= self.max_length:
            raise InputError(
                f"The maximum length of {limit} tokens is outside this model's range.",
                f"The range is {least} to {self.max_length} tokens, special tokens included.",
                "Choose a length in this range.",
            )
        return limit

    def arrays(self, sentences: Sequence[TokenizedSentence]) -> tuple[Int64, Int64, Int64 | None]:
        """input_ids, attention_mask and token_type_ids, each int64 [sentence, token], padded on the right."""
        return self.padded(
            [[token.id for token in sentence.tokens] for sentence in sentences],
            [[token.segment for token in sentence.tokens] for sentence in sentences],
        )

    @property
    def has_other_segments(self) -> bool:
        """Whether a token of a single text has another segment than 0, as in XLNet's frame."""
        return any(map(any, self._single_segments))

    def single_segments(self, length: int) -> list[int]:
        """The segments of a single text of so many tokens, special ones included; in nearly all tokenizers they are 0."""
        before, own, after = self._single_segments
        return [*before, *own * (length - len(before) - len(after)), *after][:length]

    def padded(
        self, ids_of: Sequence[Sequence[int]], segments_of: Sequence[Sequence[int]] | None = None
    ) -> tuple[Int64, Int64, Int64 | None]:
        """The same from the ids and segments of each row; without segments, of single texts."""
        if segments_of is None and self.has_other_segments:
            segments_of = [self.single_segments(len(ids)) for ids in ids_of]
        width = max(1, *map(len, ids_of))
        ids = np.full((len(ids_of), width), self.pad_id, dtype=np.int64)
        mask = np.zeros_like(ids)
        segments = np.full_like(ids, self.pad_segment)
        for row, numbers in enumerate(ids_of):
            ids[row, : len(numbers)] = numbers
            mask[row, : len(numbers)] = 1
            segments[row, : len(numbers)] = 0 if segments_of is None else segments_of[row]
        return ids, mask, segments if self.has_segments else None

    def decode(self, ids: Sequence[int], skip_special: bool = False) -> str:
        """Text from ids, as the tokenizer decodes it. Raises InputError where its decoder fails."""
        with _explained():
            return str(self._encoder.decode(list(ids), skip_special_tokens=skip_special))


def _with_pieces_as_words(tokens: tuple[Token, ...], text: str, pair: str | None) -> tuple[Token, ...]:
    """The tokens, with each piece of a script without spaces as a word of its own, where a tokenizer takes a run for one word.

    Pieces that share a character, as those of bytes do, stay together, and so do one of a space and the next, and one that
    begins with a vowel sign or another mark and the piece before it.
    """
    texts = {False: text, True: pair or ""}
    if not any(map(has_pairs, texts.values())):
        return tokens
    found = []
    before: dict[
        bool, tuple[Token, int]
    ] = {}  # of each text: its last token as the tokenizer has it, and the word's number
    for token in tokens:
        if token.word is None:
            found.append(token)
            continue
        last, number = before.get(token.in_pair, (None, -1))
        number += last is None or last.word != token.word or _begins_word(last, token, texts[token.in_pair])
        before[token.in_pair] = token, number
        found.append(replace(token, word=number))
    return tuple(found)


def _begins_word(last: Token, token: Token, text: str) -> bool:
    """Whether a piece within a tokenizer's word is a word of its own: see `_with_pieces_as_words`."""
    first = text[token.start : token.start + 1]  # nothing, of a piece for a space at the end
    if (
        token.start < last.end
        or not text[last.start : last.end].strip()
        or (first and unicodedata.category(first)[0] == "M")
    ):
        return False
    return has_pairs(text[last.start : last.end]) or has_pairs(text[token.start : token.end])


@contextmanager
def _explained() -> Iterator[None]:
    """Within it, a failure of the library becomes an InputError.

    Its regular expressions give up after ten million steps with a panic, which Python sees as a BaseException: it would
    end the thread of a session without a word.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as problem:
        raise InputError(
            f"The model's tokenizer failed on a text: {first_line(problem)}.",
            "A tokenizer should be able to split every text.",
            "Change the text, or pick another model.",
        ) from problem


def _kept(first: int, second: int, room: int, truncation: Truncation) -> tuple[int, int]:
    """The number of tokens kept of two texts that share some room. Raises InputError as `Tokenization.tokenize` does."""
    if truncation == "longest_first":
        return _longest_first(first, second, room)
    if first + second <= room:
        return first, second
    if first >= room:
        raise InputError(
            f"The first text has {first} tokens, and the pair has room for {room}.",
            "If only the second text is truncated, at least one of its tokens must remain.",
            "Raise the maximum length, shorten the first text, or truncate the longer text first.",
        )
    return first, room - first


def _longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """The number of tokens kept of two texts: the longer one is truncated until both fit (transformers' default)."""
    excess = first + second - room
    if excess <= 0:
        return first, second
    short, long = min(first, second), max(first, second)
    removed = min(excess, long - short)
    long -= removed
    excess -= removed
    if excess:  # both are now equally long and share the room; the longer text (else the second) gets the odd token
        short, long = room // 2, room - room // 2
    return (short, long) if first <= second else (long, short)


class _ReadPart:
    """A text as far as it has more than `room` tokens, or all of it; the rest is counted only where somebody asks.

    It is the text's beginning, or its end where the tokenizer keeps that.
    """

    def __init__(
        self,
        tokenization: Tokenization,
        text: str,
        room: int,
        first: Any = None,
        *,
        with_spans: bool = False,
        is_stopped: IsStopped = lambda: False,
    ) -> None:
        """`first` is the encoding of the piece that is read first, if it is known. Raises InputError and Stopped."""
        encode = partial(tokenization.encoded, with_spans=with_spans, is_stopped=is_stopped)
        size = count = pieces = 0
        for pieces, piece in enumerate(tokenization.in_reading_order(text), start=1):
            encoding = first if first is not None and pieces == 1 else encode([piece])[0]
            size, count = size + len(piece), count + len(encoding)
            if count > room:
                break
        self._keeps_end, self._whole = tokenization.keeps_end, text
        self._start = len(text) - size if self._keeps_end else 0  # in characters
        self.text = text[self._start : self._start + size]
        rest = text[: self._start] if self._keeps_end else text[size:]
        self._encoding = encoding if pieces == 1 else encode([self.text])[0]
        self._count_rest = partial(tokenization.lengths, [rest], is_stopped) if rest else None
        self._special = tokenization.frame_length

    @property
    def read(self) -> int:
        """The number of tokens of this part: more than `room`, or all."""
        return len(self._encoding)

    @cached_property
    def length(self) -> int:
        """The number of tokens of the whole text, special tokens not included."""
        return self.read if self._count_rest is None else self.read + self._count_rest()[0] - self._special

    def kept(self, keep: int) -> Any:
        """The library's encoding of the `keep` tokens, of `read` at most, that stay when the rest is cut off.

        Not by its own `truncate`: that keeps the rest too, in parts as long as the first, and every part of a text would
        be joined with every part of its pair.
        """
        encoding = self._encoding
        if keep >= self.read and not self._start:
            return encoding
        kept = self._kept(keep)
        state = {
            "ids": encoding.ids[kept],
            "type_ids": encoding.type_ids[kept],
            "tokens": encoding.tokens[kept],
            "words": encoding.word_ids[kept],
            "offsets": [(self._start + start, self._start + end) for start, end in encoding.offsets[kept]],
            "special_tokens_mask": encoding.special_tokens_mask[kept],
            "attention_mask": encoding.attention_mask[kept],
            "overflowing": [],
            "sequence_ranges": {},
        }
        result = Encoding()
        result.__setstate__(json.dumps(state).encode())
        return result

    def dropped(self, keep: int, of_pair: bool) -> Dropped | None:
        """What of the whole text is cut off when `keep` tokens stay, or None."""
        if keep >= self.read:
            return None
        left_out = self.length - keep
        if self._keeps_end:
            end = self._start + self._encoding.offsets[self.read - keep - 1][1]
            return Dropped(self._whole[:end], 0, left_out, of_pair, is_beginning=True)
        start = self._encoding.offsets[keep][0]
        return Dropped(self._whole[start:], start, left_out, of_pair)

    def _kept(self, keep: int) -> slice:
        return slice(max(0, self.read - keep), self.read) if self._keeps_end else slice(0, keep)


def _batches(items: Iterable[Item], characters: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Items in batches of at most BATCH_CHARACTERS characters, which includes some for every item, or of one."""
    batch: list[Item] = []
    size = 0
    for item in items:
        more = characters(item) + _CHARACTERS_OF_AN_ITEM
        if batch and size + more > BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += more
    if batch:
        yield batch


def _roles(tokenizer: Any) -> dict[str, tuple[str, int]]:
    """Role (cls, sep, pad, unk, mask, bos, eos) to piece and id, for the roles that this tokenizer has."""
    roles = {}
    for role in ("cls", "sep", "pad", "unk", "mask", "bos", "eos"):
        piece = getattr(tokenizer, f"{role}_token", None)
        if piece is not None:
            roles[role] = (str(piece), int(getattr(tokenizer, f"{role}_token_id")))
    return roles


def _check_ids(encoder: Any, special_tokens: Mapping[str, tuple[str, int]], rows: int) -> None:
    """Raise ModelError if an id that the tokenizer can give has no row in the model's word embeddings."""
    by_id = {number: piece for piece, number in encoder.get_vocab(with_added_tokens=True).items()}
    by_id.update((number, piece) for piece, number in special_tokens.values())
    beyond = [number for number in by_id if number >= rows]
    if beyond or not by_id:
        raise ModelError(
            "unsupported",
            f"This tokenizer has {counted(len(beyond), 'piece')} that the model does not know, for example "
            f"{by_id[min(beyond)][:40]!r} (id {min(beyond):,})."
            if beyond
            else "This tokenizer has no pieces.",
            f"The model has {rows:,} word embeddings, for pieces with ids from 0 to {rows - 1:,}.",
            "Save the model with its own tokenizer, or pick another model.",
        )


def _pieces(encoder: Any) -> tuple[str, ...]:
    """The vocabulary in order of id; a gap (an id without a piece) is an empty string."""
    by_piece = encoder.get_vocab(with_added_tokens=True)
    pieces = [""] * (max(by_piece.values()) + 1)
    for piece, number in by_piece.items():
        pieces[number] = piece
    return tuple(pieces)
