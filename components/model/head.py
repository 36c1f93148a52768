"""How a published encoder turns its tokens' vectors into one vector per text: "the model's own vector".

Most sentence encoders average the last layer, and nothing more is needed than `components.model.trace.POOLINGS`. Others were
published with more, which modules.json and config_sentence_transformers.json list, and their vectors are meant to be compared
only after all of it:

    tokens  = a weighted mean of layers (WeightedLayerPooling), then Dense layers that work on each token
    pooled  = one or several poolings, whose vectors are joined; perhaps without the tokens of a prompt (include_prompt)
    own     = Dense layers, LayerNorm and scaling to length 1 (Normalize), in their order, then the first `truncate_dim` numbers

The result equals `SentenceTransformer(folder).encode`. All of it was trained on the last layer. At other layers the same steps
are applied to that layer alone: that shows where the directions emerge, not the result of a model trained at that layer.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from components.arrays import Float32, Float64
from components.model.device import widest
from components.model.files.allowed import ACTIVATIONS, POOLING_MODES
from components.model.files.published import PublishedModule, is_inside, is_within
from components.model.files.static_files import MODULE
from components.model.files.weight_sizes import WEIGHTS
from components.model.trace import Pooling

# By the name of the class in the configuration: no class is looked up by a name from a file.
_ACTIVATIONS: dict[str, type[torch.nn.Module]] = {name: getattr(torch.nn, name) for name in ACTIVATIONS}
_UNCHANGED = {"Dropout"}  # has no effect after training
PICKLE = "pytorch_model.bin"
SENTENCE, TOKENS = "sentence_embedding", "token_embeddings"  # sentence-transformers' names of what modules work on
# The modes of Pooling that every view offers by themselves, under the names that they have there.
PLAIN: dict[str, Pooling] = {"mean": "mean", "cls": "cls", "max": "max", "lasttoken": "last"}
MODES: dict[str, str] = {pooling: mode for mode, pooling in PLAIN.items()}
MODE_NAMES = {  # for people
    "mean": "mean of all tokens",
    "cls": "vector of the first token",
    "max": "largest value of each number",
    "mean_sqrt_len_tokens": "sum of the tokens' vectors, divided by the square root of their number",
    "weightedmean": "mean in which later tokens count more",
    "lasttoken": "vector of the last token",
}


class HeadNotApplied(ValueError):
    """A published way to a vector that cannot be applied. The message is half a sentence: "... because MESSAGE"."""


@dataclass(frozen=True, eq=False)
class PublishedHead:
    """From hidden states to the model's own vectors, with fixed weights. Safe to share between threads."""

    modes: tuple[str, ...]  # of sentence-transformers' Pooling, in the order in which their vectors are joined
    size: int  # numbers in its result
    layers: torch.nn.Sequential  # after pooling; float64 on the CPU, may be empty
    token_layers: torch.nn.Sequential  # before pooling, on each token; float64 on the CPU, mostly empty
    layer_shares: tuple[float, ...] | None = None  # of each hidden state 0..L in the last layer's token vectors
    without_prompt: bool = False  # the tokens of a prompt are not pooled

    @property
    def pooling(self) -> Pooling | None:
        """The pooling that it begins with, if that is one that every view offers; else None."""
        is_plain = len(self.modes) == 1 and self.pools_states
        return PLAIN.get(self.modes[0]) if is_plain and not self.without_prompt else None

    @property
    def pools_states(self) -> bool:
        """Whether the hidden states of one layer are pooled as they are: no layers before, and no mean of several."""
        return not len(self.token_layers) and self.layer_shares is None

    @property
    def pooling_name(self) -> str:
        """How it pools, in plain words."""
        return " and ".join(MODE_NAMES[mode] for mode in self.modes)

    @property
    def steps_before(self) -> tuple[str, ...]:
        """What is done with the tokens' vectors before they are pooled, in plain words."""
        before = ["a weighted mean of layers for each token"] if self.layer_shares is not None else []
        return (*before, *(f"{layer.title!s} on each token, before the pooling" for layer in self.token_layers))

    @property
    def step_names(self) -> tuple[str, ...]:
        """What follows the pooling, in plain words."""
        return tuple(f"{str(layer.title)[0].lower()}{str(layer.title)[1:]}" for layer in self.layers)

    def apply(self, vectors: Float32) -> Float32:
        """Pooled vectors, float32 [.., pooled], to the model's own, float32 [.., size]; NaN stays NaN."""
        with torch.inference_mode():
            # In float64, so that equal vectors give equal results in every batch.
            result: Float32 = self.layers(torch.from_numpy(vectors).double()).float().numpy()
        return result

    def steps(self, vectors: Float32) -> tuple[tuple[str, Float32], ...]:
        """What each step makes of pooled vectors, float32 [.., pooled], by its name in plain words; the last is the result."""
        found: list[tuple[str, Float32]] = []
        with torch.inference_mode():
            result = torch.from_numpy(vectors).double()
            for layer in self.layers:
                result = layer(result)
                found.append((str(layer.title), result.float().numpy()))
        return tuple(found)

    def token_vectors(self, hidden: Float32, layer: int) -> Float32:
        """What is pooled at a layer, float32 [.., token, dim], of hidden states, float32 [layer, .., token, dim]."""
        with torch.inference_mode():
            states = [torch.from_numpy(np.array(state)) for state in hidden]
            return self.tokens(states[layer], states if layer in (len(states) - 1, -1) else None).numpy()

    def pooled(self, hidden: Float32, keep: np.ndarray, prompts: Sequence[int]) -> Float32:
        """Pooled vectors at every layer, float32 [layer, sentence, pooled].

        `hidden` is float32 [layer, sentence, token, dim], `keep` [sentence, token] is true for tokens, `prompts` are the
        leading tokens of each sentence that belong to a prompt.
        """
        with torch.inference_mode():
            states = [torch.from_numpy(np.array(state)) for state in hidden]
            last = len(states) - 1
            mask, first = torch.from_numpy(np.ascontiguousarray(keep)).bool(), torch.tensor(list(prompts))
            return np.stack(
                [
                    self.pool(self.tokens(state, states if layer == last else None), mask, first).numpy()
                    for layer, state in enumerate(states)
                ]
            )

    def weights(self, vectors: np.ndarray, prompt: int) -> Float64:
        """How much of each token's numbers the pooled vector takes, float64 [token, pooled].

        `vectors` are those of the tokens of one text [token, dim]. The pooled vector is the sum over the tokens of these
        weights times the vectors, which are repeated once for each mode.
        """
        mask, first = (
            torch.ones(1, len(vectors), dtype=torch.bool),
            torch.tensor([prompt if self.without_prompt else 0]),
        )
        parts = []
        for mode in self.modes:
            shares = _shares(mode, mask, first)
            part = np.zeros(vectors.shape)
            if shares is None:
                shown = np.where((mask & _counted(mask, first)).numpy()[0][:, None], vectors, -np.inf)
                part[shown.argmax(axis=0), np.arange(vectors.shape[1])] = 1
            else:
                part[:] = shares[0].double().numpy()[:, None]
            parts.append(part)
        return np.concatenate(parts, axis=1)

    def tokens(self, state: torch.Tensor, every: Sequence[torch.Tensor] | None = None) -> torch.Tensor:
        """What is pooled, float32 [.., token, dim], of the hidden states of a layer.

        `every` are those of all layers 0..L, of which the last layer may need several; None for another layer.
        """
        state = state.float()
        if self.layer_shares is not None and every is not None:
            used = [(share, each) for share, each in zip(self.layer_shares, every, strict=True) if share]
            state = torch.stack([share * each.float() for share, each in used]).sum(dim=0)
        if len(self.token_layers):
            state = self._on(state.device)[1](state.to(widest(state.device))).float()
        return state

    def pool(self, states: torch.Tensor, keep: torch.Tensor, first: torch.Tensor | None = None) -> torch.Tensor:
        """Token vectors [sentence, token, dim] to pooled ones [sentence, pooled]; `keep` [sentence, token] as in `pooled`.

        `first` [sentence] are the leading tokens that belong to a prompt.
        """
        begins = torch.zeros(len(keep), dtype=torch.long, device=keep.device)
        if self.without_prompt and first is not None:
            begins = first.to(keep.device)
        parts = []
        for mode in self.modes:
            shares = _shares(mode, keep, begins)
            if shares is None:
                counted = keep & _counted(keep, begins)
                parts.append(states.masked_fill(~counted[..., None], -torch.inf).amax(dim=1))
            else:
                parts.append((shares[:, None].to(states.dtype) @ states)[:, 0])
        return torch.cat(parts, dim=-1)

    def own(self, pooled: torch.Tensor) -> torch.Tensor:
        """Pooled vectors [.., pooled] to the model's own, float32 [.., size], on their device. It can be differentiated."""
        result: torch.Tensor = self._on(pooled.device)[0](pooled.to(widest(pooled.device)))
        return result.float()

    def vectors(
        self,
        state: torch.Tensor,
        keep: torch.Tensor,
        first: torch.Tensor | None = None,
        every: Sequence[torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """Hidden states of a layer [sentence, token, dim] to the model's own vectors, float32 [sentence, size].

        All of it can be differentiated. `keep` and `first` as in `pool`, `every` as in `tokens`.
        """
        return self.own(self.pool(self.tokens(state, every), keep, first))

    def _on(self, device: torch.device) -> tuple[torch.nn.Module, torch.nn.Module]:
        """The layers after pooling and before it on a device, in float64 if the device supports it."""
        if device not in self._copies:
            with torch.inference_mode(False):  # a copy that is made in it could not be differentiated later
                self._copies[device] = tuple(
                    copy.deepcopy(part).to(device, widest(device)) for part in (self.layers, self.token_layers)
                )
        return self._copies[device]

    @cached_property
    def _copies(self) -> dict[torch.device, Any]:
        return {torch.device("cpu"): (self.layers, self.token_layers)}


def _counted(keep: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
    return torch.arange(keep.shape[1], device=keep.device)[None] >= first[:, None]


def _shares(mode: str, keep: torch.Tensor, first: torch.Tensor) -> torch.Tensor | None:
    """The share of each token in a pooled vector, float32 [sentence, token]; None for a maximum.

    `keep` [sentence, token] is true for tokens and false for padding, which stands at the end; tokens before number `first`
    [sentence] do not count. A text of which none counts gets zeros, but for [CLS], which is then its first token.
    """
    if mode == "max":
        return None
    counted = keep & _counted(keep, first)
    places = torch.arange(keep.shape[1], device=keep.device)[None]
    shares = counted.float()
    if mode == "cls":
        return (places == counted.int().argmax(dim=1, keepdim=True)).float()
    if mode == "lasttoken":
        return (places == (counted * places).amax(dim=1, keepdim=True)).float() * shares
    if mode == "weightedmean":
        shares = shares * (places + 1)
    total = shares.sum(dim=1, keepdim=True).clamp(min=1e-9)
    return shares / (total.sqrt() if mode == "mean_sqrt_len_tokens" else total)


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


class _Norm(torch.nn.Module):
    """LayerNorm of sentence-transformers; [.., dim] to [.., dim]."""

    title = "LayerNorm"

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(len(weight))
        self.norm.weight = torch.nn.Parameter(weight.float(), requires_grad=False)
        self.norm.bias = torch.nn.Parameter(bias.float(), requires_grad=False)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.norm(vectors)
        return result


class _First(torch.nn.Module):
    """The first numbers of vectors; [.., dim] to [.., size]."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.title = f"The first {size:,} numbers"

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        return vectors[..., : self.size]


@dataclass(frozen=True)
class HeadSettings:
    """What besides the modules decides how a vector is made."""

    truncate_dim: int | None = None
    scales: bool = False  # lengths matter for the published similarity, so that Normalize changes it
    has_prompts: bool = False
    is_causal: bool = False
    takes_last_token: bool = False  # of a model without a list of modules, see `takes_last_token`
    layers: int | None = None  # L, if the encoder gives WeightedLayerPooling all of its layers; else None


def takes_last_token(config: Any) -> bool:
    """Whether sentence-transformers pools the last token of a model that has no list of modules: of those for the next word.

    `config` is the encoder's configuration (SentenceTransformer._load_default_modules of version 6.2).
    """
    architectures = getattr(config, "architectures", None) or [""]
    is_for_next_word = str(architectures[0]).endswith("ForCausalLM")
    return is_for_next_word and bool(getattr(config, "is_causal", True))


def read_head(
    folder: Path | None, modules: Sequence[PublishedModule], hidden_size: int, settings: HeadSettings = HeadSettings()
) -> PublishedHead | None:
    """How a model makes its own vectors, or None where that is one of the plain poolings and nothing more.

    Only safetensors are read. Raises HeadNotApplied with the reason if the published way cannot be applied.
    """
    if folder is None:
        return None
    kinds = [module.kind for module in modules]
    is_static = kinds[:1] == [MODULE]  # which pools by itself
    if is_static or "Pooling" not in kinds:
        pooling_index = 0
        modes: tuple[str, ...] = ("lasttoken" if settings.takes_last_token and not modules else "mean",)
        if not is_static and "Dense" in kinds:
            return None  # without Pooling, a Dense layer works on tokens: see components.model.not_applied
    else:
        if kinds.count("Pooling") > 1:
            raise HeadNotApplied("it pools twice")
        pooling_index = kinds.index("Pooling")
        if modules[pooling_index].config is None:
            raise HeadNotApplied("the configuration of its pooling is missing or cannot be read")
        modes = modules[pooling_index].pooling_modes
    unknown = [mode for mode in modes if mode not in POOLING_MODES]
    if unknown:
        raise HeadNotApplied(f"its pooling {unknown[0][:40]} is unknown")
    token_layers, shares, size = _token_layers(folder, modules[1:pooling_index], hidden_size, settings.layers)
    if is_static or "Pooling" in kinds:
        layers, size = _sentence_layers(folder, modules[pooling_index + 1 :], size * len(modes))
    else:
        layers = []
    if settings.truncate_dim is not None and settings.truncate_dim < size:
        size = settings.truncate_dim
        layers.append(_First(size))
    without_prompt = (
        not is_static
        and settings.has_prompts
        and any(not (module.config or {}).get("include_prompt", True) for module in modules if module.kind == "Pooling")
    )
    plain = ("last",) if settings.is_causal else ("mean", "cls", "max")
    is_plain = len(modes) == 1 and PLAIN.get(modes[0]) in plain and not without_prompt
    changes = [layer for layer in layers if settings.scales or not isinstance(layer, Normalise)]
    if is_plain and not changes and not token_layers and shares is None:
        return None
    return PublishedHead(modes, size, _fixed(layers), _fixed(token_layers), shares, without_prompt)


def _fixed(layers: Sequence[torch.nn.Module]) -> torch.nn.Sequential:
    return torch.nn.Sequential(*layers).double().eval().requires_grad_(False)


def _token_layers(
    folder: Path, modules: Sequence[PublishedModule], size: int, last: int | None
) -> tuple[list[torch.nn.Module], tuple[float, ...] | None, int]:
    """What works on each token before the pooling: layers, the shares of hidden states, and the size of a token's vector."""
    layers: list[torch.nn.Module] = []
    shares: tuple[float, ...] | None = None
    for module in modules:
        if module.kind == "Dense":
            layers.append(dense_layer(folder, module, size, TOKENS))
            size = int((module.config or {})["out_features"])
        elif module.kind == "Normalize":
            if _works_on(module) != TOKENS:
                raise HeadNotApplied("it scales a text's vector before there is one")
            layers.append(Normalise())
        elif module.kind == "WeightedLayerPooling":
            if last is not None:  # else sentence-transformers passes the tokens' vectors on as they are
                layers, shares = [], _layer_shares(folder, module, last)
        elif module.kind not in _UNCHANGED:
            raise HeadNotApplied(f"its module {module.kind[:40]} is not applied here")
    return layers, shares, size


def _sentence_layers(folder: Path, modules: Sequence[PublishedModule], size: int) -> tuple[list[torch.nn.Module], int]:
    """What follows the pooling, and the size of its result."""
    layers: list[torch.nn.Module] = []
    for module in modules:
        if module.kind == "Dense":
            layers.append(dense_layer(folder, module, size))
            size = int((module.config or {})["out_features"])
        elif module.kind == "Normalize":
            if _works_on(module) == SENTENCE:  # else it scales vectors of tokens, which are pooled already
                layers.append(Normalise())
        elif module.kind == "LayerNorm":
            layers.append(_layer_norm(folder, module, size))
        elif module.kind not in _UNCHANGED:
            raise HeadNotApplied(f"its module {module.kind[:40]} is not applied here")
    return layers, size


def _works_on(module: PublishedModule) -> str:
    config = module.config or {}
    source = config.get("module_input_name") or SENTENCE
    if (config.get("module_output_name") or source) != source:
        raise HeadNotApplied(f"its module {module.kind} writes something else than it reads")
    return str(source)


def _layer_norm(folder: Path, module: PublishedModule, size: int) -> torch.nn.Module:
    weights = _weights(folder, module)
    weight, bias = weights.get("norm.weight"), weights.get("norm.bias")
    if weight is None or bias is None or weight.shape != (size,) or bias.shape != (size,):
        raise HeadNotApplied(f"{module.path}/{WEIGHTS} has no LayerNorm for {size} numbers")
    return _Norm(weight, bias)


def _layer_shares(folder: Path, module: PublishedModule, last: int) -> tuple[float, ...]:
    """The share of each hidden state 0..L."""
    weights = _weights(folder, module).get("layer_weights")
    start = (module.config or {}).get("layer_start", 4)
    if weights is None or type(start) is not int or weights.dim() != 1 or not 0 <= start <= last:
        raise HeadNotApplied(f"{module.path} has no weights of layers")
    total = float(weights.double().sum())
    if start + len(weights) != last + 1 or total == 0:
        raise HeadNotApplied(
            f"{module.path} weighs {len(weights)} layers from {start} on, and the encoder's last is {last}"
        )
    return (*(0.0 for _ in range(start)), *(float(weight) / total for weight in weights.double()))


def _weights(folder: Path, module: PublishedModule) -> dict[str, torch.Tensor]:
    """The finite weights of a module. Raises HeadNotApplied."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    module_folder = folder / module.path
    if module.config is None or not is_inside(module.path) or not is_within(module_folder / WEIGHTS, folder):
        raise HeadNotApplied(f"its configuration ({module.path}/config.json) is not on this machine, or is damaged")
    if not (module_folder / WEIGHTS).exists():
        raise HeadNotApplied(
            f"{module.path} has no {WEIGHTS}: its weights are missing, or were published only as a pickle ({PICKLE}), which is "
            "never read because it can run code when it is opened"
        )
    try:
        weights = load_file(module_folder / WEIGHTS)
    except (OSError, SafetensorError, ValueError, RuntimeError) as problem:
        raise HeadNotApplied(f"{module.path}/{WEIGHTS} is damaged") from problem
    if not all(bool(torch.isfinite(values).all()) for values in weights.values()):
        raise HeadNotApplied(f"{module.path}/{WEIGHTS} has weights that are not finite numbers (NaN or infinity)")
    return weights


def dense_layer(folder: Path, module: PublishedModule, size: int, takes: str = SENTENCE) -> torch.nn.Module:
    """A published Dense layer on vectors of `size` numbers, in float32.

    `takes` is what it must work on: SENTENCE (the pooled vector) or TOKENS. Raises HeadNotApplied with the reason if it cannot
    be applied.
    """
    weights, config = _weights(folder, module), module.config or {}
    source = config.get("module_input_name", takes)
    if source != takes or (config.get("module_output_name") or source) != source:
        kind = "the pooled vector" if takes == SENTENCE else "the tokens' vectors"
        raise HeadNotApplied(f"its input is not {kind}")
    # The default of sentence-transformers if the configuration names none, or one that it does not trust.
    activation_name = str(config.get("activation_function") or "")
    if not activation_name.startswith("torch."):
        activation_name = "torch.nn.modules.activation.Tanh"
    activation = (
        _ACTIVATIONS.get(activation_name.rpartition(".")[2]) if activation_name.startswith("torch.nn.") else None
    )
    if activation is None:
        raise HeadNotApplied(f"its activation function {activation_name[:80]} is unknown")
    try:
        linear = _linear(weights, "linear", bool(config.get("bias", True)))
        residual: torch.nn.Module | None = None
        if config.get("use_residual"):
            square = linear.in_features == linear.out_features
            residual = torch.nn.Identity() if square else _linear(weights, "residual", False)
    except (KeyError, ValueError, RuntimeError) as problem:
        raise HeadNotApplied(f"{module.path}/{WEIGHTS} is damaged") from problem
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
