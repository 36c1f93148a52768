"""Vectors of selected tokens of a corpus at every layer, for maps of tokens and of word senses.

A Trace holds all tokens of at most 64 sentences; this holds some tokens of any number of sentences. The whole corpus
is tokenized first, so that the selection is fair (a seeded sample) or complete (every occurrence of a word); then only
sentences with a selected token go through the model. `own_token_vectors` gives all tokens of some hundred texts instead,
at one layer, for late interaction. Vectors of a selection are float16: 50,000 tokens at 7 layers of 384 are 269 MB,
in memory or in a mapped file. Rounding to float16 changes a cosine by less than 0.001. Models with vectors that float16
cannot hold, as some have between their blocks, get float32 for all of them.

A word is what the tokenizer treats as one, compared in lower case; its vector is the mean of its pieces' vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from components.arrays import Float32
from components.errors import InputError
from components.folders import private_folder
from components.jobs import IsStopped, ReportProgress, Stopped
from components.model import loading
from components.model.embedding.disk import unnamed_array
from components.model.embedding.embedder import Embedder
from components.model.embedding.options import MAX_TOKEN_VECTORS, SENTENCES_PER_BLOCK
from components.model.files.sentence_config import Role
from components.model.loaded import LoadedModel, stacked
from components.model.trace import TokenizedSentence
from components.sizes import in_words

_BATCH_TOKENS = 3072
_LARGEST_HALF = 65_504.0  # the largest number of float16
_LEAST_HALF = 1e-4  # a vector whose largest number is smaller would lose more than three digits in float16


@dataclass(frozen=True)
class ChosenToken:
    """A selected token, or word."""

    sentence: int  # index in the corpus
    positions: tuple[int, ...]  # in the model's input, [CLS] at 0; several for a word of several pieces
    text: str  # as typed
    start: int  # characters of the sentence
    end: int


@dataclass(frozen=True, eq=False)
class TokenVectors:
    """Vectors of tokens at some layers; the array is read-only and may be a memory map."""

    layers: tuple[int, ...]
    tokens: tuple[ChosenToken, ...]
    vectors: NDArray[Any]  # [layer, token, dim], float16, or float32 if one of them does not fit
    candidates: int  # the number of tokens it was selected from


def token_vectors(
    embedder: Embedder,
    texts: Sequence[str],
    layers: Sequence[int] | None = None,
    word: str | None = None,
    max_tokens: int = MAX_TOKEN_VECTORS,
    seed: int = 0,
    folder: Path | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> TokenVectors:
    """The vectors of a seeded sample of the corpus's tokens, or of the occurrences of `word`.

    At most `max_tokens`; special tokens are never selected. With `folder` the array is a nameless file on that
    disk, mapped into memory. `progress(done, total)` counts sentences that go through the model. Raises InputError
    if there is no such token, Stopped once `is_stopped()` is true.
    """
    model = embedder.model
    model.need("tokens")
    chosen_layers = embedder.options(layers if layers is not None else range(model.facts.layers + 1)).layers
    candidates: Sequence[tuple[int, int]] = (
        _CorpusTokens.of(model, texts, is_stopped) if word is None else _occurrences(model, texts, word, is_stopped)
    )
    if not len(candidates):
        count = f"{len(texts):,} sentence{'s' * (len(texts) != 1)}"
        raise InputError(
            f"“{word}” does not occur in the {count}." if word else f"There is no token in the {count}.",
            "At least one occurrence is needed, in the same form of the word." if word else "At least one is needed.",
            "Type another word or choose another corpus." if word else "Choose another corpus.",
        )
    order = np.arange(len(candidates))
    if len(candidates) > max_tokens:
        order = np.sort(np.random.default_rng(seed).choice(len(candidates), max_tokens, replace=False))
    chosen = [candidates[index] for index in order.tolist()]  # (sentence, number of the token or word in it)
    kept = _Kept((len(chosen_layers), len(chosen), model.facts.hidden_size), folder)
    tokens = _fill(embedder, texts, chosen, word is not None, chosen_layers, kept, progress, is_stopped)
    vectors = kept.vectors
    if isinstance(vectors, np.memmap):
        vectors.flush()
    vectors.flags.writeable = False
    return TokenVectors(chosen_layers, tuple(tokens), vectors, len(candidates))


def own_token_vectors(
    embedder: Embedder,
    texts: Sequence[str],
    layer: int | None = None,
    max_length: int | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
    role: Role | None = None,
) -> tuple[Float32, ...]:
    """The vectors of all tokens of each text at one layer (the last by default), each float32 [token, dim].

    Special tokens are left out: a text without tokens of its own gives [0, dim]. Texts are truncated to `max_length`
    tokens (the model's own maximum by default). For some hundred texts, since every vector stays in memory.

    `role` puts the model's own prompt for queries or documents in front, if it has one. Its tokens have vectors like all
    others, as in the pooled vectors (Embedder.options) and in late interaction (multi_vectors).
    `progress(done, total)` counts texts. Raises InputError for an impossible layer or length, Stopped.
    """
    model = embedder.model
    model.need("tokens")
    options = embedder.options(
        None if layer is None else [layer], max_length=max_length, precision="float32", role=role
    )
    before, after = model.tokenization.frame
    ids, _ = model.tokenization.encode_many((options.prompt + text for text in texts), options.max_length, is_stopped)
    lengths = [len(row) for row in ids]
    vectors: list[Float32] = [np.empty((0, model.facts.hidden_size), np.float32)] * len(texts)
    done = 0
    for rows, states in embedder.in_batches(
        ids, lengths, lambda batch: _states(embedder, batch, options.layers)[0], None, is_stopped
    ):
        for row, state in zip(rows, states, strict=True):
            vectors[row] = state[len(before) : lengths[row] - len(after)].copy()  # a view would keep the whole batch
        done += len(rows)
        progress(done, len(texts))
    return tuple(vectors)


class _Kept:
    """Vectors [layer, token, dim] that are stored one token at a time, in float16 for as long as that can hold them."""

    def __init__(self, shape: tuple[int, ...], folder: Path | None) -> None:
        """Raises InputError where the disk has no room."""
        self._folder = folder
        self.vectors = _array(shape, folder, np.float16)

    def put(self, row: int, vectors: Float32) -> None:
        """The vectors of one token at each layer, [layer, dim]. Raises InputError where the disk has no room."""
        if self.vectors.dtype == np.float16:
            largest = np.abs(vectors).max(axis=-1)
            if ((largest > _LARGEST_HALF) | ((largest < _LEAST_HALF) & (largest > 0))).any():
                wider = _array(self.vectors.shape, self._folder, np.float32)
                wider[:] = self.vectors  # rows that are not there yet are written later
                self.vectors = wider
        self.vectors[:, row] = vectors


def _array(shape: tuple[int, ...], folder: Path | None, dtype: type[np.floating[Any]]) -> NDArray[Any]:
    if folder is None:
        return np.zeros(shape, dtype)
    try:
        private_folder(folder)
        return unnamed_array(folder, shape, dtype)
    except OSError as problem:
        size = in_words(np.dtype(dtype).itemsize * int(np.prod(shape)))
        raise InputError(
            f"{size} of token vectors could not be stored in {folder}: {problem.strerror or problem}.",
            "That much free disk space is needed.",
            "Choose fewer tokens, or free some space.",
        ) from problem


def _tokenize(model: LoadedModel, text: str) -> TokenizedSentence:
    """The tokens that the model reads of a text; what follows them is not counted."""
    tokenization = model.tokenization
    return tokenization.tokenize(tokenization.beginning(text, model.own_max_length), None, model.own_max_length)


def _words(sentence: TokenizedSentence) -> list[tuple[int, ...]]:
    """The positions of each word's pieces, left to right."""
    words: dict[int, list[int]] = {}
    for token in sentence.tokens:
        if token.word is not None:
            words.setdefault(token.word, []).append(token.position)
    return [tuple(positions) for positions in words.values()]


class _CorpusTokens(Sequence[tuple[int, int]]):
    """(sentence, number of the token in it) for every token of a corpus, stored as one count per sentence."""

    def __init__(self, counts: Sequence[int]) -> None:
        self._ends = np.cumsum(np.asarray(counts, np.int64)) if len(counts) else np.zeros(1, np.int64)

    @classmethod
    def of(cls, model: LoadedModel, texts: Sequence[str], is_stopped: IsStopped) -> _CorpusTokens:
        counts: list[int] = []
        for start in range(0, len(texts), SENTENCES_PER_BLOCK):
            block = texts[start : start + SENTENCES_PER_BLOCK]
            ids, _ = model.tokenization.encode_many(block, model.own_max_length, is_stopped)
            counts += [len(item) - model.tokenization.frame_length for item in ids]
        return cls(counts)

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, index: Any) -> Any:
        sentence = int(np.searchsorted(self._ends, index, side="right"))
        return sentence, int(index) - (int(self._ends[sentence - 1]) if sentence else 0)


def _occurrences(model: LoadedModel, texts: Sequence[str], word: str, is_stopped: IsStopped) -> list[tuple[int, int]]:
    """(sentence, number of the word in it) for every occurrence of the word."""
    occurrences: list[tuple[int, int]] = []
    folded = word.strip().casefold()
    for row, text in enumerate(texts):
        if row % SENTENCES_PER_BLOCK == 0 and is_stopped():
            raise Stopped
        if folded not in text.casefold():  # cheap, and avoids tokenizing most sentences
            continue
        if is_stopped():
            raise Stopped
        sentence = _tokenize(model, text)
        occurrences += [
            (row, number)
            for number, positions in enumerate(_words(sentence))
            if sentence.word_text(positions[0]).casefold() == folded
        ]
    return occurrences


def _fill(
    embedder: Embedder,
    texts: Sequence[str],
    chosen: Sequence[tuple[int, int]],
    whole_words: bool,
    layers: Sequence[int],
    kept: _Kept,
    progress: ReportProgress,
    is_stopped: IsStopped,
) -> list[ChosenToken]:
    by_sentence: dict[int, list[tuple[int, int]]] = {}
    for row, (index, number) in enumerate(chosen):
        by_sentence.setdefault(index, []).append((row, number))
    tokens: list[ChosenToken | None] = [None] * len(chosen)
    # Sentences of similar length share a batch; the number of characters is a good enough estimate.
    queue = sorted(by_sentence, key=lambda index: len(texts[index]))  # processed from its end, the longest first
    done = 0
    while queue:
        if is_stopped():
            raise Stopped
        batch: list[int] = []
        sentences: list[TokenizedSentence] = []
        width = 0
        while queue:
            sentence = _tokenize(embedder.model, texts[queue[-1]])
            width = max(width, len(sentence))
            if batch and width * (len(batch) + 1) > _BATCH_TOKENS:
                break
            batch.append(queue.pop())
            sentences.append(sentence)
        hidden = _hidden(embedder, sentences, layers)  # [layer, sentence, token, dim]
        for row_in_batch, (index, sentence) in enumerate(zip(batch, sentences, strict=True)):
            words = _words(sentence) if whole_words else None
            content = [token.position for token in sentence.tokens if not token.special]
            for row, number in by_sentence[index]:
                positions = (content[number],) if words is None else words[number]
                first, last = sentence.tokens[positions[0]], sentence.tokens[positions[-1]]
                text = sentence.text[first.start : last.end]
                tokens[row] = ChosenToken(index, positions, text, first.start, last.end)
                kept.put(row, hidden[:, row_in_batch, list(positions)].mean(axis=1))
        done += len(batch)
        progress(done, len(by_sentence))
    return [token for token in tokens if token is not None]


def _hidden(embedder: Embedder, sentences: Sequence[TokenizedSentence], layers: Sequence[int]) -> Float32:
    """Hidden states of one batch in float32, [layer, sentence, token, dim]."""
    vectors = _states(embedder, [[token.id for token in sentence.tokens] for sentence in sentences], layers)
    if not np.isfinite(vectors).all():
        raise loading.not_finite(embedder.model.spec.title)
    return vectors


def _states(embedder: Embedder, ids: Sequence[Sequence[int]], layers: Sequence[int]) -> Float32:
    """Hidden states of a batch of single texts from their ids, float32 [layer, text, token, dim]; padding included."""
    model = embedder.model
    tokens, mask, segments = model.tokenization.padded(ids)
    tensors = model.tensors(tokens, mask, segments)
    with model.forward_pass():
        return _stacked(embedder.module("float32", tokens.shape[1], tokens.size), tensors, layers)


def _stacked(module: Any, tensors: dict[str, torch.Tensor], layers: Sequence[int]) -> Float32:
    states = module(**tensors, output_hidden_states=True).hidden_states
    return stacked([states[layer] for layer in layers])
