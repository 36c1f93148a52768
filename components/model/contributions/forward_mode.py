"""Derivatives of a text's vector in many directions at once, in forward mode.

Every tensor on the way carries its derivatives in n directions. What becomes of a derivative x' in an operation is known in
closed form (Griewank and Walther 2008, "Evaluating Derivatives", chapter 3):

    linear in one tensor     f(x)' = f(x')                     a matrix, a mean, a view
    a product                (x y)' = x' y + x y'
    element by element       f(x)' = f'(x) x'                  GELU, SiLU, tanh, a power
    softmax p of x           p' = p (x' - sum(p x'))
    LayerNorm                y' = (x' - mean(x') - y mean(y x')) / deviation,   y = (x - mean) / deviation

The numbers are those of `torch.func.jvp` under `torch.func.vmap`, with which the tests compare. That takes LayerNorm, GELU
and each Linear apart into many small steps in Python, and spends more time on these than on the matrices. An operation
without a rule here goes through it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.nn import functional

Function = Callable[..., Any]
Arguments = tuple[Any, ...]


def directional_derivatives(
    function: Callable[[torch.Tensor], torch.Tensor], place: torch.Tensor, directions: torch.Tensor
) -> torch.Tensor:
    """The derivatives of a function at a place in several directions, [direction, *shape of the result].

    `directions` is [direction, *shape of the place]. Call it without gradients, and outside inference mode.
    """
    result = function(_moving(place, directions))
    if isinstance(result, _Moving):
        return result.derivatives
    return result.new_zeros(len(directions), *result.shape)  # it does not depend on the place


class _Moving(torch.Tensor):
    """A tensor with its derivatives. Functions of torch that are called with it also give one that has them."""

    derivatives: torch.Tensor  # [direction, *shape]

    @classmethod
    def __torch_function__(
        cls, function: Function, types: Any, arguments: Arguments = (), options: Mapping[str, Any] | None = None
    ) -> Any:
        options = options or {}
        alone = not any(isinstance(value, _Moving) for value in (*arguments[1:], *options.values()))
        with torch._C.DisableTorchFunctionSubclass():
            if function is functional.linear and alone:
                return _linear_layer(*arguments, **options)
            if function is torch.cat:
                return _joined(*arguments, **options)
            result = function(*map(_still, arguments), **{name: _still(value) for name, value in options.items()})
            if function in _PARTS and alone:
                along = torch.func.vmap(lambda direction: function(direction, *arguments[1:], **options))
                return tuple(map(_moving, result, along(arguments[0].derivatives)))
            if function is torch.Tensor.__setitem__:  # it gives nothing, and one of its arguments has other derivatives
                raise _no_rule(function)
            if not _has_numbers(result):
                return result  # a shape, a type, a comparison
            if not isinstance(result, torch.Tensor):
                raise _no_rule(function)
            rule = _RULES_OF_TWO.get(function) or (_RULES_OF_ONE.get(function) if alone else None) or _by_jvp
            return _moving(result, rule(function, result, arguments, options))


def _has_numbers(result: Any) -> bool:
    """Whether a result has floating-point numbers, whose derivatives matter."""
    if isinstance(result, (tuple, list)):
        return any(map(_has_numbers, result))
    return isinstance(result, torch.Tensor) and result.is_floating_point()


def _no_rule(function: Function) -> NotImplementedError:
    return NotImplementedError(f"There is no rule for the derivatives of {function}.")


def _moving(tensor: torch.Tensor, derivatives: torch.Tensor) -> _Moving:
    moving = tensor.detach().as_subclass(_Moving)
    moving.derivatives = derivatives
    return moving


def _still(value: Any) -> Any:
    """A tensor without its derivatives; anything else as it is."""
    return value.as_subclass(torch.Tensor) if isinstance(value, _Moving) else value


def _of_linear_function(function: Function, result: torch.Tensor, arguments: Arguments, options: Any) -> torch.Tensor:
    moving, *others = arguments
    mapped: torch.Tensor = torch.func.vmap(lambda direction: function(direction, *others, **options))(
        moving.derivatives
    )
    return mapped


def _linear_layer(moving: _Moving, weight: torch.Tensor, bias: torch.Tensor | None = None) -> _Moving:
    """A Linear layer of a tensor and its derivatives in one pass: the weights, which take longest to read, are read once."""
    both = functional.linear(torch.cat([_still(moving)[None], moving.derivatives]), weight)
    result = both[0] if bias is None else both[0] + bias
    return _moving(result, both[1:])


def _joined(tensors: Sequence[torch.Tensor], dim: int = 0) -> _Moving:
    """Tensors joined, of which one at least moves."""
    result = torch.cat([_still(tensor) for tensor in tensors], dim)
    (directions,) = {len(tensor.derivatives) for tensor in tensors if isinstance(tensor, _Moving)}
    along = [
        tensor.derivatives if isinstance(tensor, _Moving) else tensor.new_zeros(directions, *tensor.shape)
        for tensor in tensors
    ]
    return _moving(result, torch.cat(along, dim + 1 if dim >= 0 else dim))


def _of_dropout(function: Function, result: torch.Tensor, arguments: Arguments, options: Any) -> torch.Tensor:
    if options["training"] and options["p"]:
        raise ValueError("Dropout is random: derivatives are those of a model in evaluation mode.")
    derivatives: torch.Tensor = arguments[0].derivatives
    return derivatives


def _of_sum(function: Function, result: torch.Tensor, arguments: Arguments, options: Any) -> torch.Tensor:
    a, b = arguments
    if options or (_changes_its_argument(function) and isinstance(b, _Moving)):
        return _by_jvp(function, result, arguments, options)
    if isinstance(a, _Moving) and isinstance(b, _Moving):
        return _aligned(a, result) + _aligned(b, result)
    moving = a if isinstance(a, _Moving) else b
    return _aligned(moving, result).expand(-1, *result.shape)


def _of_product(function: Function, result: torch.Tensor, arguments: Arguments, options: Any) -> torch.Tensor:
    a, b = arguments
    if isinstance(a, _Moving) and isinstance(b, _Moving):
        return _aligned(a, result) * _still(b) + _still(a) * _aligned(b, result)
    moving, other = (a, b) if isinstance(a, _Moving) else (b, a)
    return _aligned(moving, result) * other


def _of_matrix_product(function: Function, result: torch.Tensor, arguments: Arguments, options: Any) -> torch.Tensor:
    a, b = arguments
    if min(a.dim(), b.dim()) < 2:
        return _by_jvp(function, result, arguments, options)
    terms = []
    if isinstance(a, _Moving):
        terms.append(_aligned(a, result) @ _still(b))
    if isinstance(b, _Moving):
        terms.append(_still(a) @ _aligned(b, result))
    return terms[0] if len(terms) == 1 else terms[0].add_(terms[1])


def _of_gelu(function: Function, result: torch.Tensor, arguments: Arguments, options: Any) -> torch.Tensor:
    own = _still(arguments[0])
    slope: torch.Tensor = torch.ops.aten.gelu_backward(torch.ones_like(own), own, **options)
    return slope * arguments[0].derivatives


def _of_silu(function: Function, result: torch.Tensor, arguments: Arguments, options: Any) -> torch.Tensor:
    share = torch.sigmoid(_still(arguments[0]))
    slope: torch.Tensor = share + result * (1 - share)
    return slope * arguments[0].derivatives


def _of_tanh(function: Function, result: torch.Tensor, arguments: Arguments, options: Any) -> torch.Tensor:
    slope: torch.Tensor = 1 - result * result
    return slope * arguments[0].derivatives


def _of_power(function: Function, result: torch.Tensor, arguments: Arguments, options: Any) -> torch.Tensor:
    moving, exponent = arguments
    slope: torch.Tensor = exponent * _still(moving) ** (exponent - 1)
    return slope * moving.derivatives


def _of_inverse_root(function: Function, result: torch.Tensor, arguments: Arguments, options: Any) -> torch.Tensor:
    slope: torch.Tensor = -0.5 * result**3
    return slope * arguments[0].derivatives


def _of_softmax(function: Function, result: torch.Tensor, arguments: Arguments, options: Any) -> torch.Tensor:
    axis = options["dim"] - result.dim() if options["dim"] >= 0 else options["dim"]  # from the end: the same for both
    weighted = arguments[0].derivatives.to(result.dtype) * result
    return weighted.sub_(weighted.sum(axis, keepdim=True) * result)


def _of_layer_norm(function: Function, result: torch.Tensor, arguments: Arguments, options: Any) -> torch.Tensor:
    (moving, shape), weight = arguments, options["weight"]
    if len(shape) != 1 or weight is None:
        return _by_jvp(function, result, arguments, options)
    own = _still(moving)
    variance, mean = torch.var_mean(own, dim=-1, correction=0, keepdim=True)
    rate = torch.rsqrt(variance + options["eps"])
    normal = (own - mean) * rate
    along = moving.derivatives
    centred = along - along.mean(-1, keepdim=True)
    return centred.sub_(normal * (normal * along).mean(-1, keepdim=True)).mul_(rate * weight)


def _by_jvp(function: Function, result: torch.Tensor, arguments: Arguments, options: Any) -> torch.Tensor:
    """Any function of tensors that stand among its arguments, and not in a list: by torch's own forward mode."""
    positions = [number for number, value in enumerate(arguments) if isinstance(value, _Moving)]
    if not positions or _changes_its_argument(function):
        raise _no_rule(function)

    def of_moving(*moving: torch.Tensor) -> Any:
        replaced = dict(zip(positions, moving, strict=True))
        return function(*(replaced.get(number, value) for number, value in enumerate(arguments)), **options)

    own = tuple(_still(arguments[position]) for position in positions)

    def derivative(*directions: torch.Tensor) -> Any:
        return torch.func.jvp(of_moving, own, directions)[1]

    mapped: torch.Tensor = torch.func.vmap(derivative)(*(arguments[position].derivatives for position in positions))
    return mapped


def _changes_its_argument(function: Function) -> bool:
    """Whether a function is one of torch's that work in place, such as `add_` and `__iadd__`."""
    name = function.__name__
    return name.startswith("__i") if name.endswith("__") else name.endswith("_")


def _aligned(moving: _Moving, result: torch.Tensor) -> torch.Tensor:
    """Derivatives [direction, *shape] with as many axes after the first as the result has, so that they broadcast."""
    missing = result.dim() - moving.dim()
    shape = moving.derivatives.shape
    return moving.derivatives.reshape(shape[0], *[1] * missing, *shape[1:]) if missing else moving.derivatives


_Rule = Callable[[Function, torch.Tensor, Arguments, Any], torch.Tensor]
_LINEAR = (
    *(torch.Tensor.view, torch.Tensor.reshape, torch.Tensor.contiguous, torch.Tensor.expand, torch.Tensor.to),
    *(torch.Tensor.transpose, torch.Tensor.permute, torch.Tensor.__getitem__, torch.Tensor.mean, torch.Tensor.div),
    *(torch.Tensor.neg, torch.Tensor.__neg__, torch.Tensor.float),
)
# Where only the first argument moves. `torch.nn.functional` hands what follows the first over by name.
_RULES_OF_ONE: dict[Function, _Rule] = {
    **dict.fromkeys(_LINEAR, _of_linear_function),
    functional.dropout: _of_dropout,
    functional.gelu: _of_gelu,
    functional.silu: _of_silu,
    torch.tanh: _of_tanh,
    torch.pow: _of_power,
    torch.Tensor.pow: _of_power,
    torch.rsqrt: _of_inverse_root,
    functional.softmax: _of_softmax,
    functional.layer_norm: _of_layer_norm,
}
_PARTS = (torch.chunk, torch.Tensor.chunk, torch.split, torch.Tensor.split, torch.unbind, torch.Tensor.unbind)  # linear
_RULES_OF_TWO: dict[Function, _Rule] = {  # where either moves, or both
    **dict.fromkeys([torch.Tensor.add, torch.Tensor.__radd__, torch.Tensor.add_], _of_sum),
    **dict.fromkeys([torch.Tensor.mul, torch.Tensor.__rmul__], _of_product),
    torch.matmul: _of_matrix_product,
}
