"""Passes of a masked-LM model in which chosen tokens are hidden, and what its head guesses from the vectors of every layer.

A token is hidden by its id: the mask's takes its place in the model's input, so that any piece of a word can be hidden, also
one that no text with a mask in it would be split into. Inputs of one length make a batch, without padding, so that nothing has
to be masked but what `only_left` hides.

Memory is bounded: of a pass, the vectors of the tokens that are read and the scores of PASS_PAIRS pairs of tokens (a longer
text is refused by the backend where they do not fit); and of the head's scores, [row, vocabulary] of SCORES
numbers at a time, of which only the best and the place of what is typed are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from components.arrays import Int64
from components.jobs import IsStopped, ReportProgress, Stopped
from components.model import loading
from components.model.architecture.record import modules_of, replaced
from components.model.device import on_device
from components.model.guesses.masks import check_hidden, typed_masks
from components.model.guesses.record import LayerGuesses, Surprises
from components.model.guesses.vocabulary import Kept, kept
from components.model.interventions.only_left import looking_left
from components.model.loaded import LoadedModel
from components.model.trace import TokenizedSentence

PASS_TOKENS = 2_048  # of one pass, all rows together
PASS_PAIRS = 1 << 20  # of tokens in one pass: 50 MB of scores in each of 12 heads' block in float32
ATTENTIONS = 3  # copies of a block's scores that eager attention holds at once
MANY_TOKENS = 150  # of an input that is read once for each of them: some seconds on two cores
SCORES = 1 << 23  # numbers of the head's scores at a time: 32 MB in float32


@dataclass(frozen=True)
class GuessInput:
    """One input of a pass: a sentence, the positions that are hidden in it, and those at which the head reads."""

    sentence: TokenizedSentence
    hidden: tuple[int, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True)
class Wanted:
    """What is read at each position, in every input alike."""

    layers: tuple[int, ...]
    k: int = 10
    asked: tuple[int, ...] = ()  # ids whose place is wanted besides that of what is typed; -1 for none
    only_left: bool = False

    def size_in_bytes(self, positions: int) -> int:
        """The size of the record of so many positions, before anything is computed."""
        return 8 * positions * (len(self.layers) * (2 * self.k + 3 + 2 * len(self.asked)) + 1)


def layer_guesses(
    model: LoadedModel,
    sentence: TokenizedSentence,
    hidden: tuple[int, ...],
    positions: tuple[int, ...],
    wanted: Wanted,
) -> LayerGuesses:
    """The guesses at `positions` of one sentence in which all `hidden` tokens are hidden at once.

    Raises ModelError for a model without a masked-LM head or with vectors that are not finite, InputError for a token that
    cannot be hidden, and IndexError for a position or a layer that does not exist.
    """
    readings = [GuessInput(sentence, hidden, positions)]
    return _record(model, sentence, hidden, positions, wanted, _read(model, readings, wanted))


def guesses_in_turn(
    model: LoadedModel,
    sentence: TokenizedSentence,
    positions: tuple[int, ...],
    wanted: Wanted,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> LayerGuesses:
    """The same where each of the `positions` is hidden alone, in an input of its own; a batch of them is one pass.

    `progress(done, total)` counts positions. Raises as `layer_guesses`, and Stopped.
    """
    readings = [GuessInput(sentence, (position,), (position,)) for position in positions]
    result = _read(model, readings, wanted, progress, is_stopped)
    return _record(model, sentence, positions, positions, wanted, result, in_turn=True)


def guesses_at_masks(
    model: LoadedModel,
    sentences: Sequence[TokenizedSentence],
    wanted: Wanted,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> tuple[LayerGuesses, ...]:
    """The guesses at the masks of many sentences; sentences of one length are read in one pass.

    `progress(done, total)` counts sentences. Raises as `layer_guesses`, and Stopped.
    """
    readings = [GuessInput(sentence, (), typed_masks(sentence, model.tokenization)) for sentence in sentences]
    result = _read(model, readings, wanted, progress, is_stopped)
    ends = np.cumsum([len(reading.positions) for reading in readings])
    return tuple(
        _record(
            model,
            reading.sentence,
            (),
            reading.positions,
            wanted,
            [_part(of_layer, slice(end - len(reading.positions), end)) for of_layer in result],
        )
        for reading, end in zip(readings, ends.tolist(), strict=True)
    )


def surprises_of(guesses: LayerGuesses) -> Surprises:
    """What the guesses in turn at the last layer say of a model's surprise. Raises ValueError for other guesses."""
    sentence = guesses.sentence
    if not guesses.in_turn or len(guesses.layers) != 1:
        raise ValueError("surprise is read from guesses in turn, at one layer")
    unknown = np.full(len(sentence), np.nan)
    bits, probabilities, first_probabilities = unknown.copy(), unknown.copy(), unknown.copy()
    ranks, first_ids = np.zeros(len(sentence), np.int64), np.full(len(sentence), -1, np.int64)
    where = list(guesses.positions)
    bits[where], probabilities[where] = guesses.true_bits[0], guesses.true_probabilities[0]
    ranks[where] = guesses.true_ranks[0]
    first_ids[where], first_probabilities[where] = guesses.ids[0, :, 0], guesses.probabilities[0, :, 0]
    return Surprises(sentence, bits, probabilities, ranks, first_ids, first_probabilities, guesses.only_left)


def text_positions(sentence: TokenizedSentence) -> tuple[int, ...]:
    """The positions of a text's own tokens, without special ones."""
    return tuple(token.position for token in sentence.tokens if not token.special)


def _record(
    model: LoadedModel,
    sentence: TokenizedSentence,
    hidden: tuple[int, ...],
    positions: tuple[int, ...],
    wanted: Wanted,
    of_layers: Sequence[Kept],
    in_turn: bool = False,
) -> LayerGuesses:
    """The record of one sentence; the first thing asked of each row was the piece that is typed there."""
    masks = typed_masks(sentence, model.tokenization)
    return LayerGuesses(
        sentence=sentence,
        hidden=hidden,
        masks=masks,
        layers=wanted.layers,
        positions=positions,
        ids=np.stack([one.ids for one in of_layers]),
        probabilities=np.stack([one.probabilities for one in of_layers]),
        true_ids=_true_ids(model, GuessInput(sentence, hidden, positions)),
        true_ranks=np.stack([one.asked_ranks[:, 0] for one in of_layers]),
        true_probabilities=np.stack([one.asked_probabilities[:, 0] for one in of_layers]),
        true_bits=np.stack([one.asked_bits[:, 0] for one in of_layers]),
        asked=wanted.asked,
        asked_ranks=np.stack([one.asked_ranks[:, 1:] for one in of_layers]),
        asked_probabilities=np.stack([one.asked_probabilities[:, 1:] for one in of_layers]),
        only_left=wanted.only_left,
        in_turn=in_turn,
    )


def _true_ids(model: LoadedModel, reading: GuessInput) -> Int64:
    """What is typed at the positions that are read, int64 [position]; -1 for a mask."""
    masks = typed_masks(reading.sentence, model.tokenization)
    tokens = reading.sentence.tokens
    return np.array([-1 if position in masks else tokens[position].id for position in reading.positions], np.int64)


def _read(
    model: LoadedModel,
    readings: Sequence[GuessInput],
    wanted: Wanted,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> list[Kept]:
    """What is kept of the head's scores by layer, one row for each position of each reading, in their order."""
    module = model.masked_lm()
    for reading in readings:
        check_hidden(reading.sentence, reading.hidden, model.tokenization)
        for position in reading.positions:
            if not 0 <= position < len(reading.sentence):
                raise IndexError(f"position {position} is not within 0..{len(reading.sentence) - 1}")
    if not all(0 <= layer <= model.facts.layers for layer in wanted.layers):
        raise IndexError(f"layers {wanted.layers} are not all within 0..{model.facts.layers}")
    rows = sum(len(reading.positions) for reading in readings)
    starts = np.cumsum([0, *(len(reading.positions) for reading in readings)])
    head = _Head(model, module)
    k = min(wanted.k, head.pieces)
    results = [_empty(rows, k, 1 + len(wanted.asked)) for _ in wanted.layers]
    done = 0
    for batch in _batches(readings):
        if is_stopped():
            raise Stopped
        chosen = [readings[number] for number in batch]
        places = np.concatenate([np.arange(starts[number], starts[number + 1]) for number in batch])
        asked = np.array(
            [[true, *wanted.asked] for reading in chosen for true in _true_ids(model, reading)], np.int64
        ).reshape(len(places), 1 + len(wanted.asked))
        # All layers in one go: each call of the head reads the whole table of pieces.
        vectors = _states(model, module, chosen, wanted)  # [layer * row, dim]
        layers, rows_of = np.divmod(np.arange(len(vectors)), max(1, len(places)))
        for first in range(0, len(vectors), head.rows_at_once):
            if is_stopped():
                raise Stopped
            part = slice(first, first + head.rows_at_once)
            with model.turn():
                best = kept(head.scores(vectors[part]), k, asked[rows_of[part]])
            for layer in np.unique(layers[part]).tolist():
                own = layers[part] == layer
                _put(results[layer], places[rows_of[part][own]], _rows(best, own))
        done += len(batch)
        progress(done, len(readings))
    return results


def _batches(readings: Sequence[GuessInput]) -> Iterator[list[int]]:
    """The numbers of the readings of each pass: of one length, of PASS_TOKENS and PASS_PAIRS unless one alone has more."""
    by_length: dict[int, list[int]] = {}
    for number, reading in enumerate(readings):
        by_length.setdefault(len(reading.sentence), []).append(number)
    for length, numbers in by_length.items():
        count = max(1, min(PASS_TOKENS // length, PASS_PAIRS // length**2))
        for first in range(0, len(numbers), count):
            yield numbers[first : first + count]


def _states(model: LoadedModel, module: Any, readings: Sequence[GuessInput], wanted: Wanted) -> torch.Tensor:
    """One pass: for each layer, what the head reads at the readings' positions, [layer * row, dim], on the model's device.

    The encoder is the one that belongs to the head. All readings have one length.
    """
    encoder = getattr(module, module.base_model_prefix)
    ids, _, segments = model.tokenization.arrays([reading.sentence for reading in readings])
    for row, reading in enumerate(readings):
        ids[row, list(reading.hidden)] = model.tokenization.mask_id or 0
    tensors = model.tensors(ids, None, segments)
    cells = [(row, position) for row, reading in enumerate(readings) for position in reading.positions]
    (places,) = on_device([torch.tensor(cells, dtype=torch.int64).reshape(-1, 2)], model.device)
    rows, columns = places.T
    final_norm = modules_of(encoder).final_norm
    last = model.facts.layers
    below = any(layer < last for layer in wanted.layers)

    def compute() -> torch.Tensor:
        masked = looking_left(encoder, tensors) if wanted.only_left else nullcontext(tensors)
        with masked as arguments:
            output = encoder(**arguments, output_hidden_states=below)
        states = []
        for layer in wanted.layers:
            whole = output.last_hidden_state if layer == last else output.hidden_states[layer]
            vectors = whole[rows, columns].float()
            states.append(vectors if layer == last or final_norm is None else final_norm(vectors))
        # A state that is not finite stays so up to the last layer: each block adds to what it gets.
        if not bool(torch.isfinite(output.last_hidden_state).all()):
            raise loading.not_finite(model.spec.title)
        return torch.cat(states)

    with model.forward_pass():
        return compute()


class _Head:
    """A masked-LM model's head: all of its own forward pass but the encoder, in whose place stand given vectors.

    So each family's head is computed by the library's own code. It changes nothing that other threads could see.
    """

    def __init__(self, model: LoadedModel, module: Any) -> None:
        self._model, self._module = model, module
        self._encoder = getattr(module, module.base_model_prefix)
        dim = model.facts.hidden_size
        with model.turn():
            self.pieces = int(self.scores(torch.zeros((1, dim), device=model.device)).shape[1])
        self.rows_at_once = max(1, SCORES // self.pieces)

    def scores(self, vectors: torch.Tensor) -> torch.Tensor:
        """The score of each piece, [row, vocabulary], from vectors [row, dim]. Raises ModelError unless they are finite."""
        states = vectors[None]
        given = replaced(self._module, self._module.base_model_prefix, lambda _: _GivenVectors(self._encoder, states))
        logits: torch.Tensor = given(inputs_embeds=states).logits[0].float()
        if not bool(torch.isfinite(logits).all()):
            raise loading.not_finite(self._model.spec.title)
        return logits


class _GivenVectors(torch.nn.Module):
    """Stands in an encoder's place, with its modules, and gives the same vectors whatever it is called with."""

    def __init__(self, encoder: Any, states: torch.Tensor) -> None:
        super().__init__()
        self.config = encoder.config
        for name, child in encoder.named_children():  # a head may read the word vectors
            self.add_module(name, child)
        self._states = states

    def forward(self, *_: Any, **__: Any) -> Any:
        from transformers.modeling_outputs import BaseModelOutput

        return BaseModelOutput(last_hidden_state=self._states)


def _empty(rows: int, k: int, asked: int) -> Kept:
    return Kept(
        np.zeros((rows, k), np.int64),
        np.zeros((rows, k)),
        np.zeros((rows, asked), np.int64),
        np.zeros((rows, asked)),
        np.zeros((rows, asked)),
    )


def _put(result: Kept, rows: Int64, part: Kept) -> None:
    for name, values in vars(part).items():
        getattr(result, name)[rows] = values


def _rows(of: Kept, chosen: np.ndarray) -> Kept:
    """The rows for which `chosen` is true."""
    return Kept(**{name: values[chosen] for name, values in vars(of).items()})


def _part(of: Kept, rows: slice) -> Kept:
    return Kept(**{name: values[rows].copy() for name, values in vars(of).items()})
