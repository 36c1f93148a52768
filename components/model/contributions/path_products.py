"""How much each word as typed adds to a text's vector: derivatives along a path, summed up (integrated Jacobians).

Every word vector of a text moves in a straight line from that of a reference, which says nothing, to its own; position and
token type stay where they are, and so do the special tokens. At each step the derivative of the text's vector f in the
direction in which one token moves says what this token adds there. Integrated over the path it is the token's contribution:

    contribution_i = integral over t from 0 to 1 of J_i(r + t (x - r)) (x_i - r_i) dt,   J_i = df / dx_i

They sum to f(x) - f(r). The idea is that of integrated gradients (Sundararajan, Taly and Yan 2017), carried over to vectors
by Moeller, Nikolaev and Pado 2023, "An Attribution Method for Siamese Encoders". They let the input of a block move; here
it is the word vector, before position and token type are added and before the LayerNorm of layer 0.

The steps of the sum are small where f is quick: along these paths it changes most in the middle and hardly at the ends. So f
is first looked at in SIGHTINGS + 1 places, from which t is made a smooth function of u that slows down there, and the
integral over u is Gauss's. From [UNK], [MASK] and the mean vector, the sum with 20 steps was as near as with some 30 equal
ones on the embedded model; from [PAD], where f is quick in other places, 30 equal ones were nearer (0.1 against 0.4 % of the
way). Each step is a product with the Jacobian in forward mode (`forward_mode`): all tokens of a text are a batch of
directions, beside which the text itself runs once. The backend's lock is held for a batch only, so that the passes of others
go in between.

What it does not show: the sum of the contributions depends on the reference, so look at its own vector too. The path leads
through vectors that are no word's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from scipy.special import ndtr

from components.arrays import ArrayRecord, Float64
from components.errors import InputError
from components.jobs import IsStopped, ReportProgress, Stopped
from components.model.architecture.record import first_blocks, position_ids
from components.model.contributions.forward_mode import directional_derivatives
from components.model.device import on_device
from components.model.loaded import LoadedModel
from components.model.trace import Pooling, TokenizedSentence

Reference = Literal["unknown", "mask", "padding", "mean"]
REFERENCES: tuple[Reference, ...] = ("unknown", "mask", "padding", "mean")
DEFAULT_STEPS = 20
_LEAST_SPEED, _WIDTH = 0.35, 0.05  # how evenly and smoothly the steps are spaced: tried on the embedded model
_FINE = 4_001  # places at which u(t) is computed to be inverted
SIGHTINGS = 32  # equal parts of the path in which it is measured how far the vector moves
MOST_STEPS = 100
MOST_TOKENS = 64  # of a text: the work grows with the square of their number
_BATCH_TOKENS = 256  # in one batch: as long as others wait for the lock


@dataclass(frozen=True, eq=False)
class PathProducts(ArrayRecord):
    """What each token of a text adds to the text's vector on the way from a reference. Special tokens add nothing."""

    sentence: TokenizedSentence
    reference: Reference
    layer: int
    pooling: Pooling
    steps: int
    vector: Float64  # [dim]: f(x)
    reference_vector: Float64  # [dim]: f(r)
    contributions: Float64  # [token, dim]: sum to vector - reference_vector, up to the error of the steps


def available_references(loaded: LoadedModel) -> tuple[Reference, ...]:
    """The references that this model has: some tokenizers lack a mask or an unknown piece."""
    ids = _reference_ids(loaded)
    return tuple(name for name in REFERENCES if name == "mean" or ids[name] is not None)


def reference_vectors(
    loaded: LoadedModel,
    sentence: TokenizedSentence,
    references: Sequence[Reference | None],
    layer: int,
    pooling: Pooling,
) -> Float64:
    """The vectors of a text's references, and for None its own, float64 [reference, dim]: one pass for each.

    Raises InputError as `path_products` does.
    """
    encode = _encoder(loaded, sentence, layer, pooling)
    return np.stack([encode(_word_vectors(loaded, sentence, name)) for name in references])


def path_products(
    loaded: LoadedModel,
    sentence: TokenizedSentence,
    reference: Reference,
    layer: int,
    pooling: Pooling,
    steps: int = DEFAULT_STEPS,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> PathProducts:
    """The contributions of a text's tokens to its vector at a layer. `progress(done, total)` counts steps.

    The vector is that of the pooling "own" too: its Dense layers are part of f. Raises InputError for a text that is too long
    and for a reference, layer, pooling or number of steps that does not exist, and Stopped.
    """
    if reference not in available_references(loaded):
        raise InputError(
            f"The reference {str(reference)[:40]!r} is not available.",
            f"{loaded.spec.title} has these: {', '.join(available_references(loaded))}.",
            "Choose one of them.",
        )
    if not 1 <= steps <= MOST_STEPS:
        raise InputError(
            f"{steps} steps are not possible.",
            f"There can be 1 to {MOST_STEPS}.",
            f"Choose {DEFAULT_STEPS}, for example.",
        )
    encode = _encoder(loaded, sentence, layer, pooling)
    own = _word_vectors(loaded, sentence, None)  # [1, token, dim of a word vector]
    start = _word_vectors(loaded, sentence, reference)
    moving = torch.tensor([token.position for token in sentence.tokens if not token.special], dtype=torch.long)
    with loaded.lock:
        difference = own - start
    vector, reference_vector = encode(own), encode(start)
    contributions = np.zeros((len(sentence), len(vector)))
    size = max(1, _BATCH_TOKENS // len(sentence))
    places, weights = steps_of_path(encode.along(start, difference, np.linspace(0, 1, SIGHTINGS + 1)), steps)
    for step in range(steps):
        for positions in moving.split(size) if len(moving) else ():
            if is_stopped():
                raise Stopped
            found = encode.derivatives(start, difference, float(places[step]), positions)
            contributions[positions.numpy()] += weights[step] * found
        progress(step + 1, steps)
    return PathProducts(sentence, reference, layer, pooling, steps, vector, reference_vector, contributions)


class _Encode:
    """f: word vectors [1, token, dim of a word vector] of a text to its vector, and its derivatives."""

    def __init__(self, loaded: LoadedModel, run: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self._loaded, self._run = loaded, run
        self._has_rules = True  # until an operation of the model is found that our forward mode does not know

    def __call__(self, words: torch.Tensor) -> Float64:
        """The text's vector, float64 [dim]."""
        with self._loaded.forward_pass():
            return _numpy(self._run(words)[0])

    def along(self, start: torch.Tensor, difference: torch.Tensor, shares: Float64) -> Float64:
        """The vectors at these shares of the path from `start`, float64 [share, dim]."""
        (all_shares,) = on_device([torch.tensor(shares, dtype=start.dtype)], start.device)
        vectors = []
        for some in all_shares.split(max(1, _BATCH_TOKENS // start.shape[1])):
            with self._loaded.forward_pass():
                # [share, token, dim of a word vector]
                vectors.append(_numpy(self._run(start + some[:, None, None] * difference)))
        return np.concatenate(vectors)

    def derivatives(
        self, start: torch.Tensor, difference: torch.Tensor, share: float, positions: torch.Tensor
    ) -> Float64:
        """At a share of the path, the derivative in each of these tokens' own directions, float64 [position, dim]."""
        # What has no rule of its own in forward mode needs what inference mode leaves out; no graph is needed.
        with self._loaded.forward_pass(), torch.inference_mode(False), torch.no_grad():
            return self._derivatives(start + share * difference, difference, positions)

    def _derivatives(self, place: torch.Tensor, difference: torch.Tensor, positions: torch.Tensor) -> Float64:
        rows = torch.arange(len(positions))
        directions = place.new_zeros(len(positions), *place.shape)  # [position, 1, token, dim of a word vector]
        directions[rows, 0, positions] = difference[0, positions]
        if self._has_rules:
            try:
                return _numpy(directional_derivatives(self._run, place, directions)[:, 0])
            except NotImplementedError:  # DeBERTa adds in place
                self._has_rules = False
        along = torch.func.vmap(lambda direction: torch.func.jvp(self._run, (place,), (direction,))[1])
        return _numpy(along(directions)[:, 0])


def steps_of_path(vectors: Float64, steps: int) -> tuple[Float64, Float64]:
    """Where along the path the derivatives are taken, 0..1, and the weight of each, both float64 [step].

    `vectors` [place, dim] are those at equal distances along it. The integral over t of any g(t) is that over u of
    g(t(u)) t'(u), where u grows as fast as the vector moves, and a little everywhere.
    """
    moved = np.linalg.norm(np.diff(vectors, axis=0), axis=1)
    shares = moved / moved.sum() if moved.any() else np.full(len(moved), 1 / len(moved))
    middles = (np.arange(len(moved)) + 0.5) / len(moved)
    # Each part of the path is a bell curve, so that t(u) has no corners; mirrored at both ends, where it would be cut off.
    centres, weights = np.concatenate([-middles, middles, 2 - middles]), np.tile(shares, 3) / (1 + _LEAST_SPEED)
    least = _LEAST_SPEED / (1 + _LEAST_SPEED)

    def u_of(t: Float64) -> Float64:
        risen: Float64 = ndtr((t[:, None] - centres) / _WIDTH) - ndtr(-centres / _WIDTH)
        return least * t + risen @ weights

    def slope_of_u(t: Float64) -> Float64:
        bells: Float64 = np.exp(-0.5 * ((t[:, None] - centres) / _WIDTH) ** 2) / (_WIDTH * math.sqrt(2 * math.pi))
        return least + bells @ weights

    fine = np.linspace(0, 1, _FINE)
    places, gauss = np.polynomial.legendre.leggauss(steps)
    chosen = np.interp((places + 1) / 2, u_of(fine), fine)
    return chosen, gauss / 2 / slope_of_u(chosen)


def _encoder(loaded: LoadedModel, sentence: TokenizedSentence, layer: int, pooling: Pooling) -> _Encode:
    """f for a text at a layer. Raises InputError for what does not exist, and for a text that is too long, ModelError."""
    loaded.need("blocks")
    if not 0 <= layer <= loaded.facts.layers or pooling not in loaded.poolings:
        raise InputError(
            f"Layer {layer} with pooling {str(pooling)[:20]!r} is not available.",
            f"{loaded.spec.title} has layers 0 to {loaded.facts.layers} and the poolings {', '.join(loaded.poolings)}.",
            "Choose one of them.",
        )
    if len(sentence) > MOST_TOKENS:
        raise InputError(
            f"A text has {len(sentence)} tokens.",
            f"At most {MOST_TOKENS} can be followed from the words as typed.",
            "Shorten the text, or lower the maximum length.",
        )
    ids, _, segments = loaded.tokenization.arrays([sentence])
    tensors = loaded.tensors(ids, None, segments)
    ids_on_device = tensors.pop("input_ids")
    with loaded.lock:
        # Of the text, also where the reference is padding.
        positions = position_ids(loaded.encoder.config, ids_on_device)
        blocks = first_blocks(loaded.eager(), layer)
    head = loaded.head if pooling == "own" else None
    every = head is not None and head.layer_shares is not None and layer == loaded.facts.layers

    def run(words: torch.Tensor) -> torch.Tensor:
        """Word vectors [text, token, dim of a word vector] to vectors [text, dim]."""
        count = words.shape[0]
        more = {name: values.expand(count, -1) for name, values in {**tensors, "position_ids": positions}.items()}
        output = blocks(inputs_embeds=words, **more, output_hidden_states=every)
        hidden: torch.Tensor = output.last_hidden_state
        if head is not None:
            keep = torch.ones(hidden.shape[:2], dtype=torch.bool, device=hidden.device)
            first = torch.full((count,), sentence.prompt_tokens, device=hidden.device)
            return head.vectors(hidden, keep, first, output.hidden_states if every else None)
        return hidden[:, 0] if pooling == "cls" else hidden.mean(dim=1) if pooling == "mean" else hidden.amax(dim=1)

    return _Encode(loaded, run)


def _word_vectors(loaded: LoadedModel, sentence: TokenizedSentence, reference: Reference | None) -> torch.Tensor:
    """The word vectors of a text, or of its reference: the same special tokens, the rest replaced; [1, token, dim]."""
    ids = torch.tensor([[token.id for token in sentence.tokens]])
    replaced = torch.tensor([not token.special for token in sentence.tokens])
    ids, replaced = on_device([ids, replaced], loaded.device)
    table: torch.Tensor = loaded.encoder.get_input_embeddings().weight.detach()
    with loaded.lock:
        vectors = table[ids]
        if reference is not None:
            number = _reference_ids(loaded)[reference]
            vectors[0, replaced] = table.mean(dim=0) if number is None else table[number]
    return vectors


def _reference_ids(loaded: LoadedModel) -> dict[Reference, int | None]:
    tokenization = loaded.tokenization
    return {
        "unknown": tokenization.unknown_id,
        "mask": tokenization.mask_id,
        "padding": tokenization.pad_id,
        "mean": None,
    }


def _numpy(tensor: torch.Tensor) -> Float64:
    result: Any = tensor.detach().cpu().double().numpy()
    return np.array(result, copy=True)
