"""The hooks of a model's modules."""

from __future__ import annotations


def hooks_of(module):
    """Every hook of a module tree by the module's name and the hook's number; transformers leaves some there itself."""
    return {
        (name, number): hook
        for name, part in module.named_modules()
        for hooks in (part._forward_hooks, part._forward_pre_hooks, part._backward_hooks)
        for number, hook in hooks.items()
    }
