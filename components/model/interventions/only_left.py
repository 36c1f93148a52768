"""Passes in which a token attends only to itself and to those before it, as in GPT (Radford et al. 2018): a causal mask.

An encoder was trained without it. With it, the vectors of a token do not change when the text after it does: the result of a
decoder's attention with an encoder's weights. What it does not show is how a model would be that was trained so.

Whether a model's code takes the mask is seen from its result alone: in the attentions, or, where none are computed, in vectors
that do not depend on what follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from components.arrays import Float32
from components.errors import ModelError
from components.model.architecture.record import modules_of
from components.model.loaded import LoadedModel, stacked

CLOSE = 1e-5  # of the largest number: two passes over inputs of one length differ by rounding alone


@contextmanager
def looking_left(model: Any, tensors: dict[str, torch.Tensor]) -> Iterator[dict[str, Any]]:
    """The arguments of one pass of an encoder over one sentence in which no token sees those after it.

    They are valid within the context. Windows of blocks stay as they are.
    """
    modules, ids = modules_of(model), tensors["input_ids"]
    positions = torch.arange(ids.shape[1], device=ids.device)
    distances = positions[:, None] - positions  # [query, key], negative to the right
    precision = next(model.parameters()).dtype

    def mask(window: int | None) -> torch.Tensor:
        """What is added to the scores, [sentence, head, query, key] with one of the first two: 0, or the lowest number."""
        allowed = distances >= 0 if window is None else (distances >= 0) & (distances <= window)
        hidden = torch.zeros(allowed.shape, dtype=precision, device=ids.device)
        return hidden.masked_fill(~allowed, torch.finfo(precision).min)[None, None]

    if modules.mask_names:
        windows = dict(zip(modules.mask_names, modules.structure.windows, strict=True))
        yield tensors | {"attention_mask": {name: mask(window) for name, window in windows.items()}}
    elif modules.mask_reader is None:
        yield tensors | {"attention_mask": mask(None)}
    else:
        with _mask_of(modules.mask_reader, (distances >= 0)[None, None]):
            yield dict(tensors)


@contextmanager
def _mask_of(module: torch.nn.Module, allowed: torch.Tensor) -> Iterator[None]:
    """Until its next call, which takes `allowed`, bool [sentence, head, query, key], for its second argument, the mask.

    Passes of other threads, which may go in between the blocks of this one, do not meet the hook: it is gone by then.
    """

    def replace(_: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        hook.remove()
        return (arguments[0], allowed, *arguments[2:])

    hook = module.register_forward_pre_hook(replace)
    try:
        yield
    finally:
        hook.remove()


def check_attentions(attentions: Float32, title: str) -> None:
    """Raise ModelError unless no token attends to those after it, in attentions [block, head, query, key]."""
    if not (np.triu(attentions, k=1) == 0).all():  # NaN is not 0
        raise not_taken(title)


def reason_against(model: LoadedModel) -> str:
    """Why a model cannot look only left, as a sentence; empty if it can.

    It can if the vectors of the tokens before the last stay when the last token is another one. Two passes over a short text,
    which are not counted.
    """
    ids, mask, segments = model.tokenization.arrays([model.tokenization.tokenize("a b")])
    other = ids.copy()
    other[0, -1] = ids[0, 0] if ids[0, 0] != ids[0, -1] else (ids[0, -1] + 1) % model.facts.vocabulary_size
    found = []
    with model.turn():
        for each in (ids, other):
            with looking_left(model.encoder, model.tensors(each, mask, segments)) as arguments:
                found.append(stacked(model.encoder(**arguments, output_hidden_states=True).hidden_states))
    first, second = (states[:, 0, :-1] for states in found)  # [layer, token, dim]
    if not (np.abs(first - second) <= CLOSE * max(1.0, float(np.abs(first).max(initial=0)))).all():
        return not_taken(model.spec.title).problem
    return ""


def not_taken(title: str) -> ModelError:
    """The refusal of a model whose code does not take such a mask."""
    return ModelError(
        "unsupported",
        f"The code of {title} takes no mask that hides later tokens.",
        "Looking only left needs a mask for each token.",
        "Show it with all tokens, or pick another model, such as the included one.",
    )
