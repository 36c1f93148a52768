"""Map: where tokens lie in the model's space, and how a word's senses separate from layer to layer."""

from __future__ import annotations

from components.analysis.maps.projection import METHODS, METRICS, MapOptions
from components.model.embedding.options import MAX_TOKEN_VECTORS
from dashboard.declared.view import (
    OF_MODELS,
    OF_PAIRS,
    PAIR,
    SMALL_CORPUS,
    SMALL_MODEL,
    Declared,
    View,
)
from dashboard.settings import choice, flag, number, text

SETTINGS = (
    choice("map_source", "src", ("sentences", "corpus"), words="tokens of the map"),
    # "older": as in addresses of before that name no method, by UMAP from 21 points on
    choice("map_method", "by", ("auto", *METHODS, "older"), words="method of the map"),
    choice("map_dims", "d", ("2", "3"), words="dimensions"),
    number("map_neighbors", "nn", MapOptions.n_neighbors, 200, least=2, words="neighbours"),
    number("map_min_dist", "md", round(100 * MapOptions.min_dist), 99, words="minimum distance"),  # hundredths
    choice("map_metric", "met", METRICS, words="neighbours by"),
    number("map_seed", "seed", 0, 9_999, words="seed"),
    number("map_tokens", "nt", 2_000, MAX_TOKEN_VECTORS, least=100, words="number of tokens"),
    text("map_colour", "colour", words="colour"),
    flag("map_joint", "j", False, words="one map of both"),
    number("map_first", "l1", 0, 1_000, words="first layer"),
    text("map_find", "find", words="marked word"),
    text("sense_word", "w", words="word"),
    number("sense_layer", "sl", None, 1_000, words="layer of the map"),
    choice("sense_source", "ws", ("demo", "corpus", "file"), words="sentences"),
)

OF_MAPS = (
    "corpus",
    "map_method",
    "map_dims",
    "map_neighbors",
    "map_min_dist",
    "map_metric",
    "map_seed",
    "map_find",
)  # what a map shows, and how it is made

VIEWS = (
    View(
        key="two-layers",
        label="Two layers",
        stop="blocks",
        question="How do blocks rearrange the tokens?",
        asks=(
            "How do tokens lie as points on a map?",
            "What does UMAP show of the first and the last layer?",
        ),
        intro="Each point is a token, each map a layer.",
        draw="dashboard.views.map.pictures:ends",
        settings=(
            *OF_PAIRS,
            *OF_MAPS,
            "tokens",
            "include_special",
            "layer",
            "reading",
            "map_source",
            "map_tokens",
            "map_colour",
            "map_joint",
            "map_first",
        ),
        examples=(
            {
                **PAIR,
                "reading": "together",
                "map_method": "pca",
                "map_first": 2,
                "layer": 4,
                "map_joint": True,
                "map_find": "bank",
                "include_special": False,
                "map_metric": "euclidean",
                "map_dims": "3",
            },
        ),
        needs="tokens",
        without_blocks=(
            "Which tokens have similar vectors?",
            "Each point is a token; neighbours are usually similar in the model, which has only layer 0.",
        ),
    ),
    View(
        key="layer-by-layer",
        label="Through the layers",
        stop="blocks",
        question="How does each block move the tokens?",
        asks=("How do the points move through the layers?",),
        intro="Each token is a point. Play shows the map of one layer after the other.",
        draw="dashboard.views.map.pictures:through",
        settings=(
            *OF_PAIRS,
            *OF_MAPS,
            "tokens",
            "include_special",
            "layer",
            "reading",
            "map_source",
            "map_tokens",
            "map_colour",
        ),
        examples=(
            {
                "corpus": SMALL_CORPUS,
                "map_source": "corpus",
                "map_method": "pca",
                "map_neighbors": 30,
                "map_min_dist": 0,
                "map_seed": 7,
                "map_tokens": 100,
                "layer": 2,
                "model": SMALL_MODEL,
                "map_colour": "topic",
            },
        ),
        needs="blocks",
    ),
    View(
        key="word-senses",
        label="Word senses",
        stop="blocks",
        question="Does the model separate the senses of a word?",
        asks=(
            "Does the model know that a word has two meanings?",
            "Where do bank of a river and bank for money separate?",
        ),
        intro="dashboard.views.map.senses:intro",
        draw="dashboard.views.map.senses:senses",
        settings=(
            *OF_MODELS,
            *OF_MAPS,
            "sense_word",
            "sense_layer",
            "sense_source",
        ),
        examples=({"map_method": "pca", "sense_word": "crane", "sense_layer": 3},),
        needs="blocks",
        names_its_data=True,
    ),
)
DECLARED = Declared(VIEWS, SETTINGS)
