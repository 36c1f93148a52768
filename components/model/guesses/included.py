"""The head with which the included model guesses hidden words.

The included model was published as a sentence encoder, without a head for what its ancestors were trained for. This project
trained one (components/training/masked_words, docs/guesses.md): a dense layer, a norm and a bias before the model's own word
vectors, and a change of rank r of the matrices of attention and feed-forward, W + B A (LoRA; Hu et al. 2021). Whatever guesses
is so an adapted encoder: its layers and attention are not those that the other pages show.

assets/guesses/head.safetensors holds A, B and the head in float16, card.json what it was trained on and how well it guesses.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from components.errors import ModelError
from components.folders import ASSETS, read_plain
from components.model.loading import BUILDING

FOLDER = ASSETS / "guesses"
HEAD, CARD = FOLDER / "head.safetensors", FOLDER / "card.json"
CLASSROOM = "class c"  # sentences as a teacher would type them, looked at when all was done and never before
_MOST_BYTES = 8 << 20


@dataclass(frozen=True)
class GuessQuality:
    """How well the head guesses on one set of sentences with one hidden word each."""

    sentences: int
    first: int  # of them have an acceptable word as the first guess
    in_first_five: int  # or among the first five


@cache
def card() -> dict[str, Any]:
    """What the head was trained on and how well it guesses; {} where the file is not there."""
    try:
        return dict(json.loads(read_plain(CARD, _MOST_BYTES)))
    except FileNotFoundError:
        return {}


def measured(name: str) -> GuessQuality:
    """How well it guesses on one of the sets of its card. Raises KeyError for another name."""
    found = card()["measured"][name]["model"]
    return GuessQuality(found["n"], *(round(found["n"] * found[share]) for share in ("top1", "top5")))


IN_SHORT = "The part that guesses was trained by this project."


def said() -> str:
    """What stands wherever it guesses: how well, and that its encoder is an adapted one."""
    found = measured(CLASSROOM)
    return (
        "The included model was published without the part that guesses words. This project trained one, and "
        "changed the model a little for it, so its vectors here differ from those on the other pages. "
        f"In {found.in_first_five} of {found.sentences} classroom sentences a word "
        "that fits is among its first five guesses. BERT base guesses better."
    )


def masked_lm(encoder: Any) -> Any:
    """The masked-LM model of the included encoder, which is given with eager attention and tensors that it shares.

    The tensors that are adapted are replaced, not changed. Raises ModelError for a file that is missing or damaged.
    """
    with BUILDING:
        from transformers import BertForMaskedLM
    weights = _weights()
    head = {name.removeprefix("cls."): values for name, values in weights.items() if name.startswith("cls.")}
    for name in [name.removesuffix(".lora_A") for name in weights if name.endswith(".lora_A")]:
        module = encoder.get_submodule(name)
        change = weights[f"{name}.lora_B"] @ weights[f"{name}.lora_A"]
        module.weight = torch.nn.Parameter(module.weight.cpu() + change, requires_grad=False)
    with BUILDING, torch.device("meta"):
        model = BertForMaskedLM(encoder.config)
    model.bert = encoder
    model.cls.load_state_dict(head, strict=False, assign=True)
    with BUILDING:
        model.tie_weights()
    left = [name for name, values in (*model.named_parameters(), *model.named_buffers()) if values.is_meta]
    if left:
        raise _damaged(f"{left[0]} is missing in it")
    return model


def _weights() -> dict[str, torch.Tensor]:
    """By name: the matrices A and B and the head, in float32."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        content = read_plain(HEAD, _MOST_BYTES)
        if hashlib.sha256(content).hexdigest() != card().get("head_sha256"):
            raise _damaged("its checksum is not that of its card")
        return {name: values.float() for name, values in load(content).items()}
    except (OSError, SafetensorError) as problem:
        raise _damaged(str(problem)) from problem


def _damaged(why: str) -> ModelError:
    return ModelError(
        "damaged",
        f"The head with which the included model guesses cannot be read: {why}.",
        "The files in assets/guesses must be those that are published with the dashboard.",
        "Restore this folder, or pick another model.",
    )
