"""Code for activation patching: what each place of a text's pass does to a cosine, with the values of another text in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.analysis.why.patching import measured
from components.shown_code.arrays import Input
from components.shown_code.code import AnyCode, Command
from components.shown_code.inside import Inside
from components.shown_code.written import literal

if TYPE_CHECKING:
    from components.analysis.why.patching import Alignment, MapKind
    from components.model.backend import Backend
    from components.model.trace import Pooling

# One vector for each of `states` [experiment, token, dim], of the tokens that `keep` [token] marks.
POOLED = {"mean": "states[:, keep].mean(axis=1)", "max": "states[:, keep].max(axis=1)", "cls": "states[:, 0]"}
DIRECTION = """
def direction(states, keep):
    pooled = {pooled}
    return pooled / np.linalg.norm(pooled, axis=-1, keepdims=True)
"""
PATCHED = """\
def patched(name, changed):  # the last layer of B, in a row for each of `changed`, with that in the place of its own
    with model.get_submodule(name).{hook}, torch.inference_mode():
        return model(
            **{{key: tensor[1:2].expand(len(changed), -1) for key, tensor in inputs.items()}}
        ).last_hidden_state.numpy()
"""
HOOK = "register_forward_hook(lambda *_: torch.tensor(changed))"
HOOK_BEFORE = "register_forward_pre_hook(lambda *_: (torch.tensor(changed).flatten(2),))"  # heads side by side
EACH = """\
for name, of in own.items():
    changed = np.repeat(of[1:2], {count}, axis=0)
    changed[{places}] = {values}
    values.append(direction(patched(name, changed), keep[1]) @ c)"""


def effects(
    backend: Backend,
    texts: tuple[str, str, str],
    alignment: Alignment,
    pooling: Pooling | None,
    kind: MapKind,
    as_share: bool,
) -> AnyCode:
    """How the cosine of B with C changes by each activation of A in B, for texts A, B and C; without a `pooling` no code."""
    inside = Inside(Input(backend, texts, backend.own_max_length))
    if pooling not in POOLED or backend.structure.shares_blocks:
        return Command(measured)
    modules, heads = backend.loaded.modules, backend.facts.heads
    if kind == "heads":
        names = inside.names(*(block.attention_dense for block in modules.blocks))
        own = f"{{name: values.reshape(*values.shape[:2], {heads}, -1) for name, values in given.items()}}"
        each = EACH.format(
            count=heads,
            places=f"np.arange({heads})[:, None], in_b, np.arange({heads})[:, None]",
            values="of[0, in_a].swapaxes(0, 1)",
        )
    elif kind == "parts":
        names = inside.names(*(place.module for block in modules.blocks for place in block.added.values()))
        own, each = "dict(found)", EACH.format(count=1, places=":, in_b", values="of[0, in_a]")
    else:
        places, names = inside.names(*(place.module for place in modules.layers)), []
        own = f"dict(zip({literal(places)}, hidden_states))"
        each = EACH.format(count="len(in_b)", places="range(len(in_b)), in_b", values="of[0, in_a]")
    return inside.read.states(
        (measured,),
        f"in_a, in_b = np.transpose({literal(list(alignment.pairs))})  # tokens that stand for each other",
        f"own, values = {own}, []  # of A, B and C without a change",
        DIRECTION.format(pooled=POOLED[pooling]),
        PATCHED.format(hook=HOOK_BEFORE if kind == "heads" else HOOK),
        "a, b, c = (direction(hidden_states[-1, row : row + 1], keep[row])[0] for row in range(3))",
        each,
        f"values = (np.array(values) - b @ c){' / ((a - b) @ c)' if as_share else ''}",
        f"print(values)  # {'the share of the way from B to A' if as_share else 'the change of the cosine of B with C'}",
        modules=names,
    )
