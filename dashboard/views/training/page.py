"""Training: fine-tune a model on data of one's own or the included rows, watch it learn, and see what changed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from components.training.data import DEMO
from components.training.objectives import OBJECTIVES
from components.training.settings import DEFAULT_PRESET, NEGATIVES, POOLINGS, PRESETS
from dashboard.declared.view import (
    A_RUN,
    OF_MODELS,
    Declared,
    View,
)
from dashboard.settings import LEARNING_RATES, LEAST_LENGTH, choice, number, preset_choice, text

PRESET = {"training_preset": "collapse", "training_data": "demo:nli", "most_rows": 100}

SETTINGS = (
    replace(choice("training_preset", "preset", tuple(PRESETS), words="preset"), default=DEFAULT_PRESET, always=True),
    preset_choice("training_data", "src", (*DEMO, "file", "corpus"), words="data"),
    preset_choice("objective", "obj", tuple(OBJECTIVES)),
    preset_choice("second_objective", "obj2", ("none", *OBJECTIVES)),
    preset_choice("negatives", "neg", NEGATIVES, words="wrong answers"),
    preset_choice("trained_weights", "weights", ("adapter", "all")),
    preset_choice("training_pooling", "tpool", POOLINGS, words="pooling"),
    preset_choice("learning_rate", "lr", LEARNING_RATES),
    number("epochs", "ep", None, 200, least=1),
    number("batch_size", "bs", None, 256, least=2),
    number("warm_up", "wu", None, 100, words="warm up"),  # per cent of all steps
    number("training_length", "tl", None, 512, least=LEAST_LENGTH, words="maximum length"),
    number("margin", "mg", None, 200),  # hundredths
    number("most_rows", "rows", None, 1_000_000, least=4, words="number of rows"),
    number("damage", "dmg", None, 200, words="noise added before training"),  # per cent
    number("held_out", "ho", None, 50, least=5, words="held out rows"),  # per cent
    number("training_seed", "seed", None, 9_999, words="seed"),
    text("training_run", "run", words="run"),  # "": the newest
    choice("training_figure", "fig", ("measures", "rate", "speed"), words="figure"),
    number("smoothing", "sm", 10, 200, least=1),
    number("training_step", "step", None, 10_000_000, words="step"),
    number("training_layer", "lt", None, 1_000, words="layer"),
    text("watch_word", "w", words="word"),
    replace(
        choice(
            "after_part", "part", ("measures", "failures", "sentences", "words", "layers", "heads"), words="comparison"
        ),
        default=None,  # what the run was for
    ),
    choice("after_queries", "list", ("repaired", "lost", "harmed"), words="list of queries"),
    replace(choice("after_data", "on", ("news", "held-out", "scored"), words="measured on"), default=None),
)

OF_PLAN = (
    *OF_MODELS,
    "training_preset",
    "training_data",
    "objective",
    "second_objective",
    "negatives",
    "trained_weights",
    "training_pooling",
    "learning_rate",
    "epochs",
    "batch_size",
    "warm_up",
    "training_length",
    "margin",
    "most_rows",
    "damage",
    "held_out",
    "training_seed",
)  # what a run would be

shared_view = partial(View, needs="blocks", inside="dashboard.views.training.plan:with_problem")

VIEWS = (
    shared_view(
        key="training-data",
        label="Data",
        question="What does the model learn from?",
        asks=("How do I fine-tune a model on my own data?",),
        intro="Rows to train on, and rows that are held out to measure what the model learnt.",
        draw="dashboard.views.training.data:data",
        settings=(
            *OF_PLAN,
            "corpus",
        ),
        examples=({**PRESET, "training_length": 16, "held_out": 30, "training_seed": 7},),
        figure="cards",
        names_its_data=True,
    ),
    shared_view(
        key="training-objective",
        label="Objective",
        question="What is the model asked to learn?",
        asks=("Which loss is used for training?",),
        intro="Which vectors are pulled together and which are pushed apart.",
        draw="dashboard.views.training.objective:objective",
        settings=OF_PLAN,
        examples=(
            {
                **PRESET,
                "objective": "softmax",
                "second_objective": "triplet",
                "training_pooling": "cls",
                "learning_rate": "2e-05",
                "epochs": 3,
                "batch_size": 8,
                "warm_up": 0,
                "margin": 30,
                "damage": 40,
                "trained_weights": "all",
                "negatives": "bm25",
            },
        ),
    ),
    shared_view(
        key="training-run",
        label="Watch",
        question="Is it learning, and should it stop?",
        asks=(
            "How is my training going?",
            "Does the model overfit or collapse?",
        ),
        intro="The loss of each step, and how good the model is on rows that are held out.",
        draw="dashboard.views.training.run:run",
        settings=(
            *OF_MODELS,
            "training_run",
            "training_figure",
            "smoothing",
            "training_step",
            "training_layer",
            "watch_word",
        ),
        examples=({"training_run": A_RUN, "training_figure": "rate", "smoothing": 25, "training_step": 10},),
        names_its_data=True,
    ),
    shared_view(
        key="before-after",
        label="Before and after",
        question="What did training change?",
        asks=("What has changed in the model after fine-tuning?",),
        intro="The model before and after training, on the same texts and on the same scale.",
        draw="dashboard.views.training.before_after:after",
        settings=(
            *OF_MODELS,
            "training_run",
            "training_layer",
            "watch_word",
            "after_part",
            "after_data",
            "after_queries",
        ),
        examples=(
            {
                "training_run": A_RUN,
                "after_part": "words",
                "training_layer": 2,
                "watch_word": "bank",
                "after_data": "held-out",
            },
            {"training_run": A_RUN, "after_part": "failures"},
            {"training_run": A_RUN, "after_part": "measures", "after_queries": "harmed"},
        ),
    ),
)
DECLARED = Declared(VIEWS, SETTINGS)
