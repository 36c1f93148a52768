"""The Dense layers that some sentence encoders were published with: from a pooled vector to "the model's own vector".

Such a model (LaBSE, distiluse and others) was trained as encoder -> pooling -> Dense, and its vectors are meant to be
compared only after the Dense layers:

    own = activation(W pooled + b)         for each Dense layer in turn

sentence-transformers saves each to a folder with config.json and model.safetensors, and lists them in modules.json;
modules among them that scale to length 1 (Normalize) are applied as well, so that the result equals
`SentenceTransformer(folder).encode`. The Dense layers were trained on the pooled vectors of the last layer. At other
layers the same Dense layers are applied: that shows where the head's directions emerge, not the result of a model
trained at that layer.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from components.arrays import Float32
from components.model.files.allowed import ACTIVATIONS
from components.model.files.published import PublishedModule, is_inside, is_within
from components.model.files.static_files import MODULE
from components.model.files.weight_sizes import WEIGHTS
from components.model.trace import POOLINGS, Pooling

# By the name of the class in the configuration: no class is looked up by a name from a file.
_ACTIVATIONS: dict[str, type[torch.nn.Module]] = {name: getattr(torch.nn, name) for name in ACTIVATIONS}
_UNCHANGED = {"Dropout"}  # has no effect after training
PICKLE = "pytorch_model.bin"


class HeadNotApplied(ValueError):
    """A Dense head that cannot be applied. The message is the second half of a sentence: "... because MESSAGE"."""


@dataclass(frozen=True, eq=False)
class DenseHead:
    """Dense layers with fixed weights. Safe to share between threads."""

    pooling: Pooling  # whose vectors it takes: mean, cls or max
    size: int  # numbers in its result
    layers: torch.nn.Sequential  # float64 on the CPU

    def apply(self, vectors: Float32) -> Float32:
        """Pooled vectors, float32 [.., hidden], to the model's own, float32 [.., size]; NaN stays NaN."""
        with torch.inference_mode():
            # In float64, so that equal vectors give equal results in every batch.
            result: Float32 = self.layers(torch.from_numpy(vectors).double()).float().numpy()
        return result

    def steps(self, vectors: Float32) -> tuple[tuple[str, Float32], ...]:
        """What each step makes of pooled vectors, float32 [.., hidden], by its name in plain words; the last is the result."""
        found: list[tuple[str, Float32]] = []
        with torch.inference_mode():
            result = torch.from_numpy(vectors).double()
            for layer in self.layers:
                result = layer(result)
                found.append((str(layer.title), result.float().numpy()))
        return tuple(found)

    def on(self, device: torch.device) -> torch.nn.Module:
        """The layers on a device, in float64 if the device supports it."""
        return copy.deepcopy(self.layers).to(device, torch.float32 if device.type == "mps" else torch.float64)


class _Dense(torch.nn.Module):
    """One Dense layer of sentence-transformers; [.., in] to [.., out]. `title` says what it does."""

    def __init__(self, linear: torch.nn.Linear, activation: torch.nn.Module, residual: torch.nn.Module | None) -> None:
        super().__init__()
        self.linear, self.activation, self.residual = linear, activation, residual
        has_function = not isinstance(activation, torch.nn.Identity)
        self.title = f"Dense layer, {type(activation).__name__}" if has_function else "Dense layer"

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.activation(self.linear(vectors))
        return result if self.residual is None else result + self.residual(vectors)


class Normalise(torch.nn.Module):
    """Scales vectors to length 1; [.., dim] to [.., dim]."""

    title = "Scaled to length 1"

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.normalize(vectors, dim=-1)


def read_head(folder: Path | None, modules: Sequence[PublishedModule], hidden_size: int) -> DenseHead | None:
    """The Dense layers that follow a model's pooling, or None.

    Only safetensors are read. Raises HeadNotApplied with the reason if there is a head that cannot be applied.
    """
    kinds = [module.kind for module in modules]
    is_static = kinds[:1] == [MODULE]  # which pools by itself
    pooling_index = 0 if is_static else kinds.index("Pooling") if "Pooling" in kinds else len(kinds)
    if folder is None or "Dense" not in kinds[pooling_index:]:
        return None  # a Dense layer before pooling, or without it, works on tokens: see components.model.not_applied
    if "Dense" in kinds[:pooling_index]:
        raise HeadNotApplied("it needs the result of a Dense layer before pooling, which is not applied here")
    modes = ("mean",) if is_static else modules[pooling_index].pooling_modes
    if len(modes) > 1 or modes[0] not in POOLINGS:
        raise HeadNotApplied("it needs a pooling that is not applied here")
    others = {*kinds[1:pooling_index], *kinds[pooling_index + 1 :]} - {"Dense", "Normalize", *_UNCHANGED}
    if others:
        raise HeadNotApplied(f"it needs modules that are not applied here ({', '.join(sorted(others))})")
    layers: list[torch.nn.Module] = []
    size = hidden_size
    for module in modules[pooling_index + 1 :]:
        if module.kind == "Dense":
            layers.append(dense_layer(folder, module, size))
            size = int((module.config or {})["out_features"])
        elif module.kind == "Normalize":
            layers.append(Normalise())
    return DenseHead(modes[0], size, torch.nn.Sequential(*layers).double().eval().requires_grad_(False))


def dense_layer(folder: Path, module: PublishedModule, size: int, takes: str = "sentence_embedding") -> torch.nn.Module:
    """A published Dense layer on vectors of `size` numbers, in float32.

    `takes` is what it must work on: "sentence_embedding" (the pooled vector) or "token_embeddings". Raises
    HeadNotApplied with the reason if it cannot be applied.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    config, module_folder = module.config, folder / module.path
    if config is None or not is_inside(module.path) or not is_within(module_folder / WEIGHTS, folder):
        raise HeadNotApplied(f"its configuration ({module.path}/config.json) is not on this machine, or is damaged")
    if not (module_folder / WEIGHTS).exists():
        raise HeadNotApplied(
            f"{module.path} has no {WEIGHTS}: its weights are missing, or were published only as a pickle ({PICKLE}), which is "
            "never read because it can run code when it is opened"
        )
    source = config.get("module_input_name", takes)
    if source != takes or (config.get("module_output_name") or source) != source:
        kind = "the pooled vector" if takes == "sentence_embedding" else "the tokens' vectors"
        raise HeadNotApplied(f"its input is not {kind}")
    # The default of sentence-transformers if the configuration names none.
    activation_name = str(config.get("activation_function") or "torch.nn.modules.activation.Tanh")
    activation = (
        _ACTIVATIONS.get(activation_name.rpartition(".")[2]) if activation_name.startswith("torch.nn.") else None
    )
    if activation is None:
        raise HeadNotApplied(f"its activation function {activation_name[:80]} is unknown")
    try:
        weights = load_file(module_folder / WEIGHTS)
        linear = _linear(weights, "linear", bool(config.get("bias", True)))
        residual: torch.nn.Module | None = None
        if config.get("use_residual"):
            square = linear.in_features == linear.out_features
            residual = torch.nn.Identity() if square else _linear(weights, "residual", False)
    except (OSError, SafetensorError, KeyError, ValueError, RuntimeError) as problem:
        raise HeadNotApplied(f"{module.path}/{WEIGHTS} is damaged") from problem
    if not all(bool(torch.isfinite(values).all()) for values in weights.values()):
        raise HeadNotApplied(f"{module.path}/{WEIGHTS} has weights that are not finite numbers (NaN or infinity)")
    if (linear.in_features, linear.out_features) != (size, config.get("out_features")):
        raise HeadNotApplied(
            f"{module.path} turns {linear.in_features} numbers into {linear.out_features}, but its configuration and the "
            f"{size} numbers before it require something else"
        )
    return _Dense(linear, activation(), residual)


def _linear(weights: dict[str, Any], name: str, bias: bool) -> torch.nn.Linear:
    """A linear layer with the weights of a file; raises KeyError or ValueError if they are missing or misshapen."""
    weight = weights[f"{name}.weight"]
    if weight.dim() != 2:
        raise ValueError("a matrix was expected")
    linear = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=bias)
    linear.weight = torch.nn.Parameter(weight.float(), requires_grad=False)
    if bias:
        values = weights[f"{name}.bias"]
        if values.shape != weight.shape[:1]:
            raise ValueError("one number for each row was expected")
        linear.bias = torch.nn.Parameter(values.float(), requires_grad=False)
    return linear
