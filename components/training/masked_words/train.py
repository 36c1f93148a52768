"""The training run: its schedule, its steps, and a checkpoint from which it goes on as if it had not been interrupted.

The learning rate rises for 200 steps, stays, and falls in a straight line over the last two fifths. To the usual loss is added
one against copying: an encoder of sentences tends to guess words that stand in the sentence already. A checkpoint is one
safetensors file: what is trained, the optimizer's two moments of it, and the state as JSON in the file's metadata.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor
from torch.nn import functional

from components.errors import InputError
from components.folders import whole_file
from components.numbers import counted, number, percent
from components.training.masked_words.adapter import HEAD, FrozenEncoder, MaskedWordModel, first_values
from components.training.masked_words.batches import Batch, Pieces, draw
from components.training.masked_words.measure import Bools, Hole, model_ranks, summary
from components.training.masked_words.units import Units

LEARNING_RATE, HEAD_RATE = 1e-3, 2e-3  # of the change of the encoder; of the head
BETAS, WEIGHT_DECAY, LONGEST_GRADIENT = (0.9, 0.98), 0.01, 1.0
WARM_UP_STEPS = 200
FALLING_SHARE = 0.4  # of the run, at its end
LEAST_PACE = 0.02
COPY_WEIGHT, MOST_COPIED = 0.3, 0.98  # of the loss against copying; the probability at which it stops rising
LOOKS = 34  # during the run: every seven minutes of four hours
SENTENCES_OF_A_LOOK = 600  # of each set
MEAN_LOSS_STEPS = 300
COMPUTES_IN = torch.bfloat16
_MEAN, _SQUARE = ":mean", ":square"  # behind a tensor's name: Adam's moments of its gradient
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """What is chosen for a run."""

    rank: int = 40
    seed: int = 1
    minutes: float = 240.0  # of training, measuring not counted
    tokens: int | None = None  # to train on instead of so many minutes: the same run on every machine

    def done(self, state: TrainingState) -> float:
        """Which share of the run is behind it."""
        return state.tokens / self.tokens if self.tokens else state.seconds / (60 * self.minutes)


@dataclass
class TrainingState:
    """How far a run has come."""

    rank: int
    seed: int
    texts: str  # the digest of its units
    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    pass_number: int = 0
    batch_number: int = 0  # the next one of this pass
    losses: list[float] = field(default_factory=list)  # of the last steps
    curve: list[dict[str, Any]] = field(default_factory=list)  # {"tokens", "loss", set: {"top1", "top5"}}

    @property
    def loss(self) -> float:
        """The mean of the last steps."""
        return float(np.mean(self.losses)) if self.losses else math.nan


def pace(steps: int, done: float) -> float:
    """The learning rate as a share of its highest, after so many steps and such a share of the run."""
    rising = min(1.0, steps / WARM_UP_STEPS + 1 / WARM_UP_STEPS)
    return rising * min(1.0, max(LEAST_PACE, (1 - done) / FALLING_SHARE))


class HeadTraining:
    """A run that can be continued. `trained` has what it trains, by the names in the file of the head."""

    def __init__(self, encoder: FrozenEncoder, units: Units, pieces: Pieces, settings: Settings) -> None:
        shares = units.counts(len(pieces.begins_word)) + 0.5
        log_shares = torch.tensor(np.log(shares / shares.sum()), dtype=torch.float32)
        values = first_values(encoder, settings.rank, log_shares, settings.seed)
        self.trained: dict[str, Tensor] = {name: value.requires_grad_() for name, value in values.items()}
        self.model = MaskedWordModel(encoder, self.trained)
        self.state = TrainingState(settings.rank, settings.seed, units.digest())
        self._settings, self._units, self._pieces = settings, units, pieces
        self._may_be_copied = torch.from_numpy(~pieces.is_special & ~pieces.is_common)
        self._optimizer = _optimizer(self.trained)

    def train(self, look: Callable[[], None]) -> None:
        """Train to the end of the run; `look` is called LOOKS times on the way. Raises ArithmeticError for a loss of NaN."""
        while self._settings.done(self.state) < 1:
            drawn = draw(self._units, self._pieces, self.state.seed, self.state.pass_number)
            while self.state.batch_number < len(drawn):
                done = self._settings.done(self.state)
                if done >= 1:
                    return
                start = time.monotonic()
                self._step(drawn.batch(self.state.batch_number), pace(self.state.steps, done))
                self.state.batch_number += 1
                self.state.seconds += time.monotonic() - start
                if int(LOOKS * self._settings.done(self.state)) > int(LOOKS * done):
                    look()
            self.state.pass_number, self.state.batch_number = self.state.pass_number + 1, 0

    def _step(self, batch: Batch, share: float) -> None:
        """Learn from a batch."""
        if not len(batch.answers):
            return
        for group in self._optimizer.param_groups:
            group["lr"] = group["highest"] * share
        states = self.model.last_layer(batch.pieces, batch.is_text, COMPUTES_IN)
        scores = self.model.scores(states.flatten(0, 1)[batch.places])  # of what is to be guessed only
        log_probabilities = scores.float().log_softmax(-1)
        loss = functional.nll_loss(log_probabilities, batch.answers)
        copied = copied_share(log_probabilities, batch, self._may_be_copied).clamp(max=MOST_COPIED)
        (loss - COPY_WEIGHT * torch.log1p(-copied).mean()).backward()
        torch.nn.utils.clip_grad_norm_(self.trained.values(), LONGEST_GRADIENT)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        if not math.isfinite(value := loss.item()):
            raise ArithmeticError(f"the loss is {value} after {self.state.steps} steps")
        self.state.steps += 1
        self.state.tokens += batch.tokens
        self.state.losses = [*self.state.losses[1 - MEAN_LOSS_STEPS :], value]

    def write_checkpoint(self, path: Path) -> None:
        """Write the checkpoint, completely or not at all. Raises OSError."""
        tensors = {name: value.detach() for name, value in self.trained.items()}
        for name, value in self.trained.items():
            moments = self._optimizer.state.get(value, {})
            tensors[name + _MEAN] = moments.get("exp_avg", torch.zeros_like(value))
            tensors[name + _SQUARE] = moments.get("exp_avg_sq", torch.zeros_like(value))
        with whole_file(path) as file:
            file.write(save(tensors, {"state": json.dumps(asdict(self.state))}))

    def go_on(self, path: Path) -> None:
        """Take up a checkpoint. Raises InputError for one that is damaged, or of another rank, seed or text."""
        try:
            with safe_open(path, framework="pt") as file:
                state = TrainingState(**json.loads(file.metadata()["state"]))
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dict
            self._check(state, path)
            for name, value in self.trained.items():
                value.data.copy_(tensors[name])
                moments = {"exp_avg": tensors[name + _MEAN], "exp_avg_sq": tensors[name + _SQUARE]}
                self._optimizer.state[value] = {"step": torch.tensor(float(state.steps)), **moments}
        except (SafetensorError, OSError, KeyError, TypeError, json.JSONDecodeError, RuntimeError) as problem:
            raise InputError(
                f"{path} cannot be used: {problem}.",
                "It must be a checkpoint of this program.",
                "Begin in another folder.",
            ) from problem
        self.state = state

    def _check(self, state: TrainingState, path: Path) -> None:
        for name in ("rank", "seed", "texts"):
            theirs, ours = getattr(state, name), getattr(self.state, name)
            if theirs != ours:
                raise InputError(
                    f"{path} has another {name} ({theirs}, not {ours}).",
                    "A run goes on with the same rank, seed and texts.",
                    "Give the same options and packages, or begin in another folder.",
                )


def copied_share(log_probabilities: Tensor, batch: Batch, may_be_copied: Tensor) -> Tensor:
    """The probability of guessing another word that stands in the text, float32 [guess] (unlikelihood, Welleck et al. 2019).

    log_probabilities: float32 [guess, piece]; may_be_copied: bool [piece], false for special and common pieces. Each piece of
    a text counts once.
    """
    pieces = batch.pieces
    is_repeated = torch.tril(pieces[:, :, None] == pieces[:, None, :], -1).any(-1)  # [text, token]
    texts = batch.places // pieces.shape[1]
    seen = pieces[texts]  # [guess, token]
    counts = may_be_copied[seen] & ~is_repeated[texts] & (seen != batch.answers[:, None])
    return (log_probabilities.gather(1, seen).exp() * counts).sum(1)


def _optimizer(trained: Mapping[str, Tensor]) -> torch.optim.AdamW:
    head = [value for name, value in trained.items() if name.startswith(HEAD)]
    body = [value for name, value in trained.items() if not name.startswith(HEAD)]
    groups = [{"params": head, "highest": HEAD_RATE}, {"params": body, "highest": LEARNING_RATE}]
    return torch.optim.AdamW(groups, lr=LEARNING_RATE, betas=BETAS, weight_decay=WEIGHT_DECAY, fused=True)


def look_at(run: HeadTraining, sets: Mapping[str, Sequence[Hole]], may_be_guessed: Bools) -> None:
    """Add a point to the run's curve, in the type that it computes in, and say it in one line of the log."""
    state = run.state
    point: dict[str, Any] = {"tokens": state.tokens, "loss": round(state.loss, 4)}
    for name, asked in sets.items():
        found = summary(model_ranks(run.model, asked[:SENTENCES_OF_A_LOOK], may_be_guessed, COMPUTES_IN))
        point[name] = {"top1": found["top1"], "top5": found["top5"]}
    state.curve.append(point)
    shares = ", ".join(f"{name} {percent(point[name]['top5'])} in the first five" for name in sets)
    log.info(
        "%s minutes, %s, loss %s: %s",
        number(state.seconds / 60, 1),
        counted(state.tokens, "token"),
        number(state.loss, 2),
        shares or "nothing is measured",
    )
