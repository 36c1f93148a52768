"""What can go wrong while a model learns, recognised from its numbers.

Collapse: all texts get nearly the same vector. The loss may look perfect (a contrastive loss without wrong answers is then
zero), but nothing can be told apart. Its sign is the mean cosine of texts that have nothing to do with each other.

Overfitting: the training rows are learned by heart. The loss on them falls while the loss on held-out rows rises.

Divergence: the loss is no longer a finite number, mostly because the learning rate is too high.

What the signs do not show: a model whose vectors were all similar before training, as those of a plain BERT are, is not
said to collapse; and a validation loss that rises may go with better vectors, so look at the measures too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from components.errors import UserError

Code = Literal["collapse", "overfitting", "diverged"]
COLLAPSED_COSINE = 0.95  # of unrelated texts, on average
LEAST_RISE = 0.05  # above the cosine before training
PATIENCE = 3  # evaluations in a row
TOLERANCE = 0.01  # a validation loss counts as higher when it is by this share


class Diverged(UserError):
    """The loss, or what the model gives, is no longer a finite number."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            problem,
            "The usual cause is a learning rate that is too high.",
            "Lower the learning rate, and start again.",
        )


def is_collapsed(cosines: Sequence[float]) -> bool:
    """Whether unrelated texts have become nearly equal: their mean cosine at each evaluation, the first before training."""
    return len(cosines) > 1 and cosines[-1] >= COLLAPSED_COSINE and cosines[-1] - cosines[0] >= LEAST_RISE


def is_overfitting(validation_losses: Sequence[float], training_losses: Sequence[float]) -> bool:
    """Whether held-out rows get worse while training rows get better.

    Both hold one number for each evaluation in training: the loss on held-out rows, and the mean loss of the training
    steps since the evaluation before. The lowest validation loss must be at least PATIENCE evaluations old, all later ones
    higher, the last one above the first of the last PATIENCE, and the training loss lower now. Raises ValueError if the
    numbers of losses differ.
    """
    if len(validation_losses) != len(training_losses):
        raise ValueError(f"{len(validation_losses)} validation losses and {len(training_losses)} training losses")
    if not all(map(math.isfinite, (*validation_losses, *training_losses))):
        return False
    lowest = min(range(len(validation_losses)), key=validation_losses.__getitem__, default=0)
    later = validation_losses[lowest + 1 :]
    if len(later) < PATIENCE:
        return False
    bound = validation_losses[lowest] + TOLERANCE * abs(validation_losses[lowest])
    recent = later[-PATIENCE:]
    is_rising = recent[-1] > recent[0]
    return all(loss > bound for loss in recent) and is_rising and training_losses[-1] < training_losses[lowest]


def is_diverged(loss: float) -> bool:
    """Whether a loss is not a finite number."""
    return not math.isfinite(loss)
