"""What a training run is told: its model, data, objectives and numbers; and presets, which are settings with a name.

Settings are checked when they are made, so that a run never starts with a value it cannot use. They are saved as JSON
with the run; a file with an unknown field, or one of the wrong type, is refused.

The learning rate rises in a straight line during warm-up and then falls in a straight line, and is zero after the last
step. (Some published notebooks give their scheduler the number of steps minus those of warm-up, so that it reaches zero
too early and the last steps change nothing.)
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

from components import packing
from components.arrays import Float32, read_only
from components.errors import InputError, first_line
from components.model.catalog import is_run_name

DistanceName = Literal["cosine", "euclidean", "manhattan"]
SoftmaxPart = Literal["u, v", "|u-v|", "u*v"]
NegativesKind = Literal["none", "random", "bm25", "model"]
PoolingName = Literal["mean", "cls", "max"]
ScheduleName = Literal["linear", "constant"]
DISTANCES: tuple[DistanceName, ...] = get_args(DistanceName)
SOFTMAX_PARTS: tuple[SoftmaxPart, ...] = get_args(SoftmaxPart)
NEGATIVES: tuple[NegativesKind, ...] = get_args(NegativesKind)
POOLINGS: tuple[PoolingName, ...] = get_args(PoolingName)
SCHEDULES: tuple[ScheduleName, ...] = get_args(ScheduleName)

# An adapter starts at zero and is small: it needs a rate ten times that of all weights (Hu et al. 2021).
ADAPTER_LEARNING_RATE, FULL_LEARNING_RATE = 2e-4, 2e-5
# Sentences whose vectors are recorded while the model learns: three of money, three of rivers, two of seats.
WATCH_SENTENCES = (
    "The bank approved her loan on Thursday.",
    "He pays his wages into the bank every month.",
    "A clerk at the bank counted the coins twice.",
    "We had a picnic on the bank of the river.",
    "Willows grow along the muddy bank of the stream.",
    "The canoe drifted towards the far bank.",
    "They sat on a bench in the park until dark.",
    "An old wooden bench stands outside the chapel.",
)
MOST_STEPS, MOST_CHARACTERS, MOST_WATCHED = 10_000_000, 1_000, 64


@dataclass(frozen=True)
class TrainingSettings:
    """All settings of one run. Raises InputError for a value that no run can use.

    Steps are optimizer steps. With two objectives the batches come from each in turn.
    """

    name: str = ""  # of the run and its model; "" lets the run choose one
    model: str = "embedded"  # key of the model that training starts from
    # Where the rows come from: a key of data.DEMO such as "demo:pairs", or a file or set. Characters of a file's name that
    # cannot be printed become spaces: it is a name for people, from which nothing is read.
    data: str = "demo:pairs"
    objectives: tuple[str, ...] = ("mnrl",)  # keys of OBJECTIVES, one or two
    negatives: NegativesKind = "random"  # how a pair gets a wrong partner, for objectives that need one
    max_rows: int | None = None  # train on so many rows at most, chosen by the seed; None for all
    held_out_share: float = 0.2  # of the rows, for evaluation

    adapter: bool = True  # low-rank adapters (LoRA); False trains all weights
    adapter_rank: int = 8
    adapter_alpha: float = 16.0  # the adapter's product is scaled by alpha / rank
    adapter_dropout: float = 0.0
    pooling: PoolingName = "mean"
    projection: int | None = None  # output size of a Dense module behind the pooling; None for no such module
    max_length: int = 128  # tokens of a text, special tokens included

    epochs: int = 4
    max_steps: int | None = None  # ends the run earlier; None for all epochs
    batch_size: int = 16
    learning_rate: float = ADAPTER_LEARNING_RATE
    schedule: ScheduleName = "linear"
    warmup_share: float = 0.1  # of all steps
    warmup_steps: int | None = None  # in place of the share
    weight_decay: float = 0.0
    max_gradient_norm: float = 1.0
    dropout: float | None = None  # of the encoder while it trains; None keeps the model's own
    damage: float = (
        0.0  # noise added to the blocks' matrices before training, as a share of each one's standard deviation
    )
    seed: int = 10

    scale: float = 20.0  # of the cosines in multiple negatives ranking and SimCSE (the inverse of the temperature)
    margin: float = 0.5  # of the contrastive objectives and of triplets
    distance: DistanceName = "cosine"  # of the same objectives
    softmax_parts: tuple[SoftmaxPart, ...] = ("u, v", "|u-v|")  # what the classifier sees of the two vectors
    deleted_share: float = 0.6  # of each sentence's words, for TSDAE

    evaluate_every: int = 10  # steps
    watch_every: int = 5  # steps
    watch: tuple[str, ...] = WATCH_SENTENCES

    def __post_init__(self) -> None:
        if isinstance(self.data, str):
            object.__setattr__(self, "data", _printable(self.data))
        for field in fields(self):
            _check(field.name, getattr(self, field.name))
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise _wrong(name, getattr(self, name), f"one of {', '.join(allowed)}")
        if not 1 <= len(self.objectives) <= 2 or len(set(self.objectives)) < len(self.objectives):
            raise _wrong("objectives", ", ".join(self.objectives), "one objective, or two different ones")
        if self.name and not is_run_name(self.name):
            raise _wrong("name", self.name, "at most 60 letters, digits, dots, hyphens or underscores")
        if not set(self.softmax_parts) <= set(SOFTMAX_PARTS) or not self.softmax_parts:
            raise _wrong("softmax_parts", self.softmax_parts, f"at least one of {'; '.join(SOFTMAX_PARTS)}")
        if len(set(self.softmax_parts)) < len(self.softmax_parts):
            raise _wrong("softmax_parts", self.softmax_parts, "parts that are all different")
        if "tsdae" in self.objectives and self.adapter:
            raise InputError(
                "TSDAE cannot train an adapter, because its decoder shares all weights of the encoder.",
                "It can only train all weights.",
                "Switch the adapter off, or choose another objective.",
            )

    def to_json(self) -> str:
        """The settings as a JSON object with every field."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> TrainingSettings:
        """Settings out of JSON; fields that are missing have their defaults. Raises InputError for anything else."""
        try:
            values = packing.valid(json.loads(text))
        except (ValueError, RecursionError) as problem:
            raise InputError(
                f"The settings are not valid JSON: {first_line(problem)}.",
                "They must be a JSON object with the fields of the training settings.",
                "Correct the file, or save the settings again.",
            ) from problem
        if not isinstance(values, dict):
            raise _wrong("settings", values, "a JSON object")
        known = {field.name for field in fields(cls)}
        unknown = [name for name in values if name not in known]
        if unknown:
            raise InputError(
                f"The settings have an unknown field {unknown[0][:80]!r}.",
                f"The settings have only these fields: {', '.join(sorted(known))}.",
                "Correct its name, or remove it.",
            )
        fields_of: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
        }
        return cls(**fields_of)


# What each field may be: its type, and the lowest and highest number. None is allowed where the last value is True.
_WHOLE: dict[str, tuple[int, int, bool]] = {
    "max_rows": (4, 100_000_000, True),
    "adapter_rank": (1, 256, False),
    "projection": (2, 8_192, True),
    "max_length": (3, 8_192, False),
    "epochs": (1, 10_000, False),
    "max_steps": (1, MOST_STEPS, True),
    "batch_size": (2, 4_096, False),
    "warmup_steps": (0, MOST_STEPS, True),
    "seed": (0, 2**32 - 1, False),
    "evaluate_every": (1, MOST_STEPS, False),
    "watch_every": (1, MOST_STEPS, False),
}
_NUMBERS: dict[str, tuple[float, float, bool]] = {
    "held_out_share": (0.01, 0.9, False),
    "adapter_alpha": (1e-3, 1e4, False),
    "adapter_dropout": (0.0, 0.9, False),
    "learning_rate": (1e-9, 1.0, False),
    "warmup_share": (0.0, 1.0, False),
    "weight_decay": (0.0, 1.0, False),
    "max_gradient_norm": (1e-6, 1e6, False),
    "dropout": (0.0, 0.9, True),
    "damage": (0.0, 10.0, False),
    "scale": (0.01, 1_000.0, False),
    "margin": (0.0, 100.0, False),
    "deleted_share": (0.0, 0.95, False),
}
_TEXTS = {"name", "model", "data", "negatives", "pooling", "schedule", "distance"}
_LISTS = {"objectives", "softmax_parts", "watch"}
_CHOICES: dict[str, tuple[str, ...]] = {
    "negatives": NEGATIVES,
    "pooling": POOLINGS,
    "schedule": SCHEDULES,
    "distance": DISTANCES,
}


def _check(name: str, value: Any) -> None:
    """Raise InputError unless a field has its type and lies within its limits."""
    if name == "adapter":
        if not isinstance(value, bool):
            raise _wrong(name, value, "true or false")
    elif name in _WHOLE:
        lowest, highest, may_be_none = _WHOLE[name]
        if value is None and may_be_none:
            return
        if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
            raise _wrong(name, value, f"a whole number from {lowest:,} to {highest:,}")
    elif name in _NUMBERS:
        least, most, may_be_none = _NUMBERS[name]
        if value is None and may_be_none:
            return
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise _wrong(name, value, f"a number from {least:g} to {most:g}")
    elif name in _TEXTS:
        if not isinstance(value, str) or len(value) > MOST_CHARACTERS or not value.isprintable():
            raise _wrong(name, value, f"a text of at most {MOST_CHARACTERS:,} printable characters")
    else:
        texts = isinstance(value, tuple) and all(isinstance(part, str) for part in value)
        if not texts or len(value) > MOST_WATCHED or max(map(len, value), default=0) > MOST_CHARACTERS:
            raise _wrong(name, value, f"a list of at most {MOST_WATCHED} texts")


def _printable(text: str) -> str:
    """A text in one line of printable characters: each run of others, such as no-break spaces, becomes a space."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _wrong(name: str, value: object, expected: str) -> InputError:
    shown = ", ".join(map(str, value)) if isinstance(value, tuple) else value
    return InputError(
        f"The training setting {name} is {str(shown)[:80]!r}.",
        f"It must be {expected}.",
        f"Change {name}.",
    )


# Options of the command `train` that are settings, most of them under another name.
OPTIONS = {
    "model": "model",
    "epochs": "epochs",
    "max_steps": "max_steps",
    "batch": "batch_size",
    "learning_rate": "learning_rate",
    "max_length": "max_length",
    "pooling": "pooling",
    "projection": "projection",
    "negatives": "negatives",
    "max_rows": "max_rows",
    "held_out": "held_out_share",
    "rank": "adapter_rank",
    "evaluate_every": "evaluate_every",
    "damage": "damage",
    "seed": "seed",
}


def command_of(settings: TrainingSettings, out: str) -> tuple[str, ...]:
    """The arguments of the command that trains such a run into the folder `out`.

    Empty where it has no option for one of the settings, and for data that are not included: how they were read is not kept.
    """
    usual = TrainingSettings()
    said = {*OPTIONS.values(), "name", "data", "objectives", "adapter", "watch", "watch_every"}
    unsaid = [field.name for field in fields(settings) if field.name not in said]
    if not settings.data.startswith("demo:") or any(getattr(settings, n) != getattr(usual, n) for n in unsaid):
        return ()
    # The command's own pooling and rate depend on the model, and on what is trained.
    always = {"pooling", "learning_rate"}
    options = [
        part
        for name, field in OPTIONS.items()
        if (value := getattr(settings, field)) != getattr(usual, field) or field in always
        for part in (f"--{name.replace('_', '-')}", str(value))
    ]
    objective = ("--objective", ",".join(settings.objectives))
    full = () if settings.adapter else ("--full",)
    return ("train", *objective, *full, *options, "--out", out, "--json", "-", "--", settings.data)


def steps(settings: TrainingSettings, *rows: int) -> int:
    """Optimizer steps of a run whose objectives train on these numbers of rows; one number stands for all objectives.

    The last batch of an epoch may be smaller. With two objectives batches are taken in turn until one of them has no more,
    so that both have as many steps; the rest of the other's rows has to wait for the next epoch.
    """
    per_epoch = len(settings.objectives) * min(math.ceil(count / settings.batch_size) for count in rows)
    whole = per_epoch * settings.epochs
    return whole if settings.max_steps is None else min(whole, settings.max_steps)


def warmup_steps(settings: TrainingSettings, steps: int) -> int:
    """Steps of warm-up among all `steps`: the fixed number, or the share rounded up."""
    by_share = math.ceil(settings.warmup_share * steps)
    return min(by_share if settings.warmup_steps is None else settings.warmup_steps, steps)


def learning_rates(settings: TrainingSettings, steps: int) -> Float32:
    """The learning rate of each step and, as the last value, after the last step: float32 [step + 1], read-only.

    Equal to transformers' `get_linear_schedule_with_warmup` (or `get_constant_schedule_with_warmup`).
    """
    warm = warmup_steps(settings, steps)
    return read_only(scheduled_rates(settings.learning_rate, steps, warm, settings.schedule == "linear"))


def scheduled_rates(highest: float, steps: int, warm: int, is_linear: bool) -> Float32:
    """A rate that rises for `warm` steps, then falls to 0 in a line or stays: float32 [step + 1]."""
    step = np.arange(steps + 1, dtype=np.float64)
    factors = step / max(1, warm)
    after = step >= warm
    factors[after] = (steps - step[after]) / max(1, steps - warm) if is_linear else 1.0
    return (highest * factors).astype(np.float32)


@dataclass(frozen=True)
class Preset:
    """Settings with a name."""

    key: str
    name: str
    idea: str  # what it is for and what to expect, in two sentences
    settings: TrainingSettings
    published_rows: int | None = None  # training rows of the published recipe, to say what it would cost here
    lesson: Literal["", "collapse", "overfitting"] = ""  # what it provokes, to teach


DEFAULT_PRESET = "not"  # with which the page of training opens
_PRESETS = (
    Preset(
        "not",
        "Teach it “not”",
        "A sentence learns to be near its paraphrase and far from its negation. “Before and after” measures it on known "
        "failures that it has not seen, and whether search in the news gets worse.",
        TrainingSettings(data="demo:not", learning_rate=1e-3),
    ),
    Preset(
        "repair",
        "Repair a damaged model",
        "Noise is added to the weights of the model until it mixes up sentences. Then it learns again which sentence "
        "belongs to a headline: all that you see coming back comes from this training.",
        TrainingSettings(damage=0.4, learning_rate=1e-3),
    ),
    Preset(
        "quick",
        "Fine-tune the model as it is",
        "Headlines learn to find their sentences. A model that was published for sentence vectors has little to gain from "
        "some hundred rows: see what changes, and what does not.",
        TrainingSettings(),
    ),
    Preset(
        "nli-softmax",
        "NLI softmax",
        "The recipe of Sentence-BERT: a classifier sees two sentence vectors and their difference, and decides between "
        "entailment, neutral and contradiction. All weights are trained for one epoch.",
        TrainingSettings(
            model="google-bert/bert-base-uncased",
            data="demo:nli",
            objectives=("softmax",),
            adapter=False,
            epochs=1,
            learning_rate=FULL_LEARNING_RATE,
            warmup_share=0.1,
            weight_decay=0.01,
        ),
        published_rows=549_367,
    ),
    Preset(
        "compression-pairs",
        "Compression pairs",
        "Multiple negatives ranking and the contrastive objective take turns on short versions of sentences. All weights "
        "are trained for 50 epochs, which takes long on a large file.",
        TrainingSettings(
            model="sentence-transformers/all-distilroberta-v1",
            objectives=("mnrl", "contrastive"),
            adapter=False,
            epochs=50,
            learning_rate=FULL_LEARNING_RATE,
            warmup_steps=1_000,
            weight_decay=0.01,
            evaluate_every=100,
            watch_every=50,
        ),
    ),
    Preset(
        "collapse",
        "Provoke a collapse",
        "The contrastive objective gets correct pairs only, so that nothing keeps vectors apart. All sentences move to one "
        "point: the loss falls to zero, and the model becomes useless.",
        TrainingSettings(
            objectives=("contrastive",),
            negatives="none",
            epochs=2,
            learning_rate=2e-3,
            evaluate_every=2,
            watch_every=1,
        ),
        lesson="collapse",
    ),
    Preset(
        "overfitting",
        "Provoke overfitting",
        "Far too few rows for far too many epochs. The training loss falls to zero because the model learns the rows by "
        "heart, while the loss on held-out rows rises.",
        TrainingSettings(
            max_rows=16,
            epochs=24,
            batch_size=8,
            learning_rate=2e-3,
            schedule="constant",
            evaluate_every=4,
            watch_every=2,
        ),
        lesson="overfitting",
    ),
)
PRESETS: Mapping[str, Preset] = MappingProxyType({preset.key: preset for preset in _PRESETS})
