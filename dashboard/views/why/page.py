"""Why: what makes two texts similar, with sums that add up and experiments that test every story."""

from __future__ import annotations

from functools import partial

from dashboard.declared.view import (
    OF_MODELS,
    OF_PAIRS,
    PAIR,
    SMALL_CORPUS,
    SMALL_MODEL,
    Declared,
    View,
)
from dashboard.settings import MOST_EXPERIMENT_SEED, Setting, choice, flag, number, parse_patches, text

SETTINGS = (
    choice("context_source", "cx", ("sample", "corpus"), words="pairs that the score is compared with"),
    choice("score_split", "by", ("tokens", "words", "blocks"), words="split of the score"),
    choice("split_reference", "ref", ("smallest", "unknown", "mask", "padding", "mean"), words="reference"),
    number("split_steps", "steps", 20, 100, least=4, words="number of steps"),
    # "ready": a ready-made pair in place of the sentences that a session starts with, or of one alone; two of a person's own
    # are always shown
    # A number is that of a ready-made pair, from 1, which a person has begun to work with.
    choice("experiment_texts", "xt", ("ready", "own", *"1234567"), words="sentences of the experiment"),
    text("third_text", "xc", most=1_000, words="text C"),
    choice("experiment_map", "xm", ("tokens", "heads", "parts"), words="map of experiments"),
    choice("experiment_values", "xa", ("patch", "zero", "mean", "resample"), words="values put into B"),
    choice("experiment_outcome", "xo", ("cosine", "score", "rank"), words="outcome"),
    choice("experiment_numbers", "xv", ("share", "change"), words="numbers of the map"),
    number("experiment_seed", "xs", 0, MOST_EXPERIMENT_SEED, words="seed"),
    Setting("patches", "xp", (), parse_patches, lambda value: list(value)),
    choice("deletion_order", "del", ("first", "last"), words="order of removal"),
    choice("deletion_from", "from", ("one", "both"), words="texts that lose words"),
    flag("all_words", "aw", False, words="words of long texts"),
    choice("clinic_figure", "cf", ("cosines", "layers", "probe"), words="figure"),
    text("clinic_kind", "ck", "negation", words="kind of difference"),
    choice("clinic_source", "cs", ("demo", "file"), words="pairs"),
    number("clinic_pair", "cp", None, 10_000, words="opened pair"),  # by its place in the file, from 0
)

shared_view = partial(View, needs="blocks", inside="dashboard.views.why.context:one_at_a_time")

VIEWS = (
    shared_view(
        key="score-split",
        label="The score, split",
        stop="compare",
        question="What makes these two texts similar?",
        asks=(
            "Which tokens make up the similarity?",
            "Why do these sentences get this score?",
        ),
        intro="The score is a sum: each part of the two texts, or of the model, adds its share.",
        draw="dashboard.views.why.split:draw",
        settings=(
            *OF_PAIRS,
            "corpus",
            "layer",
            "pooling",
            "context_source",
            "score_split",
            "split_reference",
            "split_steps",
        ),
        examples=(
            {
                **PAIR,
                "score_split": "words",
                "split_reference": "mask",
                "split_steps": 4,
                "model": SMALL_MODEL,
                "context_source": "corpus",
                "corpus": SMALL_CORPUS,
                "layer": 2,
                "pooling": "max",
            },
        ),
    ),
    shared_view(
        key="important-words",
        label="Which words matter",
        stop="compare",
        question="Which words decide the similarity?",
        asks=(
            "Which words matter most for the similarity?",
            "Which words made this text a hit?",
        ),
        intro="Leave out one word: how far does the cosine fall?",
        draw="dashboard.views.why.methods:draw",
        settings=(
            *OF_PAIRS,
            "corpus",
            "layer",
            "pooling",
            "context_source",
            "deletion_order",
            "deletion_from",
            "all_words",
        ),
        examples=({**PAIR, "deletion_order": "last", "deletion_from": "both", "all_words": True},),
    ),
    shared_view(
        key="experiments",
        label="Patch a sentence",
        stop="blocks",
        question="Where does the difference between two sentences lie?",
        asks=(
            "What happens if activations are patched from one sentence into another?",
            "Which part of the model causes the difference?",
        ),
        intro="A patch puts one vector of A into B: how far does B's cosine with a text C move towards A's?",
        draw="dashboard.views.why.experiments:draw",
        settings=(
            *OF_PAIRS,
            "corpus",
            "cross_encoder",
            "layer",
            "pooling",
            "query_column",
            "experiment_texts",
            "third_text",
            "experiment_map",
            "experiment_values",
            "experiment_outcome",
            "experiment_numbers",
            "experiment_seed",
            "patches",
        ),
        examples=(
            {
                **PAIR,
                "experiment_texts": "own",
                "experiment_map": "heads",
                "experiment_values": "resample",
                "experiment_numbers": "change",
                "experiment_seed": 7,
                "patches": ("h3.5",),
                "third_text": "a & b",
                "experiment_outcome": "rank",
                "corpus": SMALL_CORPUS,
            },
        ),
    ),
    shared_view(
        key="known-failures",
        label="What it cannot see",
        stop="compare",
        question="What can the model not see?",
        asked_by="dashboard.views.why.clinic:question",
        asks=(
            "Does the model see negation, numbers and swapped roles?",
            "Is the opposite of a sentence seen as different?",
            "What does the model get wrong?",
            "Which mistakes does the model make, and what does it confuse?",
        ),
        intro="A word or two changes, and the meaning with it.",
        draw="dashboard.views.why.clinic:draw",
        settings=(
            *OF_MODELS,
            "layer",
            "pooling",
            "clinic_figure",
            "clinic_kind",
            "clinic_source",
            "clinic_pair",
        ),
        examples=(
            {"model": SMALL_MODEL, "clinic_figure": "layers", "clinic_kind": "swapped roles", "clinic_pair": 17},
        ),
    ),
)
DECLARED = Declared(VIEWS, SETTINGS)
