"""A state away from the defaults for each view of each page, and what a page shows, so that two sessions can be compared."""

from __future__ import annotations

import json
from typing import Any

from streamlit.testing.v1 import AppTest

from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY
from components.retrieval.corpora.corpus import read_corpus
from dashboard import caching
from dashboard.corpora import current

RIVER = ("The boat left the bank.", "She works at a <b>bank</b>.", "He sat on the river bank, and the bank was wet.")
PAIR = {"sentences": RIVER, "sentence_a": 2, "sentence_b": 1}
SMALL, TINY = "(a small corpus)", "(a tiny model)"  # stand for the key of a corpus and of a model
RUN = "mnrl-20261122-140233-ab12"  # of Training
PRESET = {"training_preset": "collapse", "training_data": "demo:nli", "most_rows": 100}

# Page and view, and a word for a second case of it, to settings by name; a view is the value of the page's setting whose
# name ends in "_view".
STATES: dict[str, dict[str, Any]] = {
    "home": {"sentences": RIVER, "max_length": 12, "model": TINY, "projector": True},
    "tokens pieces": {**PAIR, "tokens": (1, 2, 3), "reading": "together", "joint_token": 4},
    "tokens tensors": {"sentences": RIVER, "max_length": 7},
    "tokens decoding": {"sentences": RIVER, "sentence": 2},
    "tokens vocabulary": {"vocabulary_query": "bank", "vocabulary_mode": "contains"},
    "tokens compare": {"sentences": RIVER, "other_tokenizer": "model", "model2": TINY, "sentence": 1},
    "model facts": {"sentences": RIVER, "model": TINY},
    "model vectors": {"sentences": RIVER, "tokens": (2, 3, 1), "sentence": 1, "layer": 2},
    "model zero": {"sentences": RIVER, "tokens": (2, 3, 1), "sentence": 2},
    "model compare": {"sentences": RIVER, "model": TINY, "compared_models": (f"run:{RUN}", f"run:{RUN}:start"), "sentence": 1,
                      "depth_curve": "sentences", "depth_other_sentence": 2, "percentiles": True, "cka_pair": "1-2",
                      "compare_measured": True},
    "model compare words": {"sentences": RIVER, "model": TINY, "compared_models": (f"run:{RUN}",), "depth_curve": "words",
                            "sentence": 2, "depth_first_word": 4, "depth_second_word": 2},
    "model inner": {"sentences": RIVER, "tokens": (2, 3, 1), "sentence": 1, "inner_block": 3},
    "model catalog": {"sentences": RIVER, "model": EMBEDDED_CROSS_ENCODER_KEY},
    "layers across": {"sentences": RIVER, "tokens": (1, 2, 3), "whole_word": False, "centred": True,
                      "show_baseline": False, "layer": 2},
    "layers within": {"sentences": RIVER, "tokens": (2, 3, 1), "second_token": 4, "layers_sentence": 1, "percentiles": True},
    "layers against": {"sentences": RIVER, "tokens": (2, 3, 1), "layers_sentence": 2, "include_special": False},
    "layers sentences": {"sentences": RIVER, "pooling": "max", "include_special": False, "centred": True, "model2": TINY},
    "heatmaps blocks": {**PAIR, "first_block": 3, "second_block": 0, "own_scale": True, "one_side": "right"},
    "heatmaps inside": {"sentences": RIVER, "sentence_a": 1, "first_block": 2, "include_special": False},
    "heatmaps tokens": {"sentences": RIVER, "sentence_a": 1, "against": 0, "also_against": 3, "layer": 4,
                        "percentiles": True},
    "heatmaps pairs": {"sentences": RIVER, "sentence_a": 1, "partners": (2, 0), "layer": 3},
    "heatmaps layers": {"sentences": RIVER, "sentence_a": 2, "include_special": False},
    "heatmaps sentences": {"sentences": RIVER, "layer": 3, "pooling": "cls", "clustered": True},
    "attention head": {**PAIR, "block": 4, "head": 3, "texts_filter": "ab", "special_tokens": "hidden"},
    "attention model": {**PAIR, "chosen_blocks": (0, 2), "chosen_heads": (3, 4)},
    "attention neuron": {**PAIR, "block": 2, "head": 7},
    "attention scores": {**PAIR, "block": 2, "head": 7, "score_query": 3, "score_key": 2, "long_cells": "mean"},
    "attention matrix": {**PAIR, "block": 4, "head": 3, "queries": (1, 4), "merge_words": True, "combination": "max",
                         "chosen_heads": (3, 4)},
    "attention glance": {**PAIR, "merge_words": True, "special_tokens": "renormalised"},
    "attention patterns": {"sentences": RIVER, "pattern": "next", "pattern_over_all": True},
    "attention flow": {"sentences": RIVER, "sentence_a": 2, "flow": "norms", "flow_heads": "one", "flow_block": 4,
                       "flow_token": 3, "flow_figure": "all", "flow_special": True, "head": 2},
    "attention mask": {"sentences": RIVER, "sentence_a": 2, "mask_word": True, "masked": 3},
    "map ends": {**PAIR, "reading": "together", "map_method": "pca", "map_first": 2, "layer": 4, "map_joint": True,
                 "map_find": "bank", "include_special": False, "map_metric": "euclidean", "map_dims": "3"},
    "map through": {"corpus": SMALL, "map_source": "corpus", "map_method": "pca", "map_neighbors": 30,
                    "map_min_dist": 0, "map_seed": 7, "map_tokens": 100, "layer": 2, "model": TINY, "map_colour": "topic"},
    "map senses": {"map_method": "pca", "sense_word": "crane", "sense_layer": 3},
    "search results": {"corpus": SMALL, "model": TINY, "query": "actor wins <b>award</b>", "layer": 1, "pooling": "max",
                       "similarity": "dot", "k": 5, "compare_with": "setting", "layer2": 2, "pooling2": "cls",
                       "similarity2": "dot", "why": 17, "why_by": "second", "reranked_hits": 10, "percentiles": True},
    "search results blind": {"corpus": SMALL, "query": "storm", "k": 5, "compare_with": "tfidf", "blind": True,
                             "class_code": "7b"},
    "search results graph": {"corpus": SMALL, "query": "storm", "k": 5, "engine": "usearch"},
    "search queries": {"corpus": SMALL, "layer": 3, "k": 5, "typed_queries": ("storm & <b>sea</b>", "who won?")},
    "search pairs": {"corpus": SMALL, "layer": 3, "pooling": "max", "shown_pairs": 12},
    "search corpus": {"corpus": SMALL},
    "evaluate grid": {"corpus": SMALL, "model": TINY, "measure": "ndcg", "similarity": "dot", "layer": 1, "pooling": "max"},
    "evaluate compare": {"corpus": SMALL, "runs": ("m.3.mean", "bm25", "tfidf"), "reference": "bm25", "measure": "mrr",
                         "query_filter": "right", "opened": 5, "right_at": 5, "all_measures": True, "candidates": 10,
                         "compare_figure": "precision"},
    "evaluate kinds": {"model": TINY, "searched_kind": "paraphrases", "similarity": "dot"},
    "evaluate graded": {"model": TINY, "runs": ("m.2.mean", "bm25"), "graded_measure": "r100"},
    "evaluate similarity": {"model": TINY, "correlation": "pearson", "sts_run": "m.0.max"},
    "evaluate lab": {"corpus": SMALL, "model": TINY, "layer": 2, "lab_dims": 16, "lab_pooling": "max", "lab_seed": 7},
    "evaluate approximation": {"corpus": SMALL, "model": TINY, "layer": 1, "pooling": "max", "similarity": "dot",
                               "approximation": "first-4"},
    "evaluate pairs": {"corpus": SMALL, "query_column": "topic"},
    "pairs given": {"pair_query": "who <b>won</b>?", "pair_relevant": "She won.", "pair_other": "It rained.",
                    "pair_length": 12, "truncation": "only_second", "score_scale": "sigmoid"},
    "pairs scores": {"corpus": SMALL, "query": "storm", "scored_documents": 50, "relevant_by": "topic",
                     "relevant_topic": "storm", "sample_seed": 7, "threshold": 250, "score_scale": "sigmoid"},
    "pairs rerank": {"corpus": SMALL, "query": "storm", "k": 7, "second_stage": "maxsim"},
    "pairs disagree": {"corpus": SMALL, "disagreement_queries": 5, "disagreement": 1},
    "pairs learnt": {"corpus": SMALL, "model": TINY, "learnt_layer": 2, "learnt_pooling": "mean",
                     "learnt_features": "difference", "learnt_reading": "together", "learnt_c": "1",
                     "learnt_balanced": True, "learnt_measure": "ndcg",
                     "learnt_queries": 20, "learnt_first": 3, "learnt_others": 5, "learnt_seed": 7},
    "why split": {**PAIR, "score_split": "words", "split_reference": "mask", "split_steps": 4, "model": TINY,
                  "context_source": "corpus", "corpus": SMALL, "layer": 2, "pooling": "max"},
    "why methods": {**PAIR, "deletion_order": "last", "deletion_from": "both", "all_words": True},
    "why experiments": {**PAIR, "experiment_texts": "own", "experiment_map": "heads", "experiment_values": "resample",
                        "experiment_numbers": "change", "experiment_seed": 7, "patches": ("h3.5",),
                        "third_text": "a & b", "experiment_outcome": "rank", "corpus": SMALL},
    "why debugger": {"corpus": SMALL, "failed_order": "worst", "typed_query": "storm at sea", "right_row": 17,
                     "failure_cause": "no-shared-word", "query_column": "topic", "failed_query": 5},
    "why clinic": {"model": TINY, "clinic_figure": "layers", "clinic_kind": "swapped roles", "clinic_pair": 17},
    "training data": {**PRESET, "training_length": 16, "held_out": 30, "training_seed": 7},
    "training objective": {**PRESET, "objective": "softmax", "second_objective": "triplet", "training_pooling": "cls",
                           "learning_rate": "2e-05", "epochs": 3, "batch_size": 8, "warm_up": 0, "margin": 30,
                           "damage": 40, "trained_weights": "all", "negatives": "bm25"},
    "training run": {"training_run": RUN, "training_figure": "rate", "smoothing": 25, "training_step": 10},
    "training after": {"training_run": RUN, "after_part": "words", "training_layer": 2, "watch_word": "bank",
                       "after_data": "held-out"},
    "lessons": {"class_code": "7b"},  # with a lesson, the address opens its step on another page
    "about": {"lesson": ("two-banks", 1), "class_code": "7b"},
}  # fmt: skip


def small_corpus(count: int = 24) -> str:
    """The key of a kept corpus: the demo's first sentences with a headline and a topic each."""
    demo = current.demo()
    columns = zip(demo.texts, demo.columns["compressed"], demo.columns["topic"], strict=True)
    rows = [{"sentence": text, "compressed": query, "topic": topic} for text, query, topic in list(columns)[:count]]
    found = read_corpus("\n".join(map(json.dumps, rows)).encode(), f"first_{count}.jsonl", "sentence")
    caching.corpora().put(current.key_of(found), found)
    return current.key_of(found)


def settings_of(case: str, tiny_model: str) -> dict[str, Any]:
    """The settings of a case by name, with its view; `tiny_model` is the folder of the tiny model."""
    page, view, *_ = (*case.split(" "), "")
    keys = {SMALL: small_corpus, TINY: lambda: tiny_model}
    values = {
        name: keys[value]() if isinstance(value, str) and value in keys else value
        for name, value in STATES[case].items()
    }
    return values | ({f"{page}_view": view} if view else {})


def shown(app: AppTest) -> list[tuple[str, Any]]:
    """All that a page shows, in order, with its kind: figures, tables, texts, frames, and our own components."""
    return [item for item in _elements(app.main) if item is not None]


def _elements(element: Any) -> list[tuple[str, Any] | None]:
    children = getattr(element, "children", None)
    return [item for child in children.values() for item in _elements(child)] if children else [_element(element)]


def _element(element: Any) -> tuple[str, Any] | None:
    kind = element.type
    if kind == "plotly_chart":
        return kind, element.proto.spec
    if kind in {"arrow_data_frame", "arrow_table"}:
        return kind, element.value.to_json()
    if kind == "bidi_component":
        data = json.loads(element.proto.json) if element.proto.json else {}
        # The version counts how often something else than typing changed the sentences, the arrival how often an address
        # was read.
        return kind, {key: value for key, value in data.items() if key not in {"version", "arrival"}}
    if kind == "iframe":
        return kind, element.proto.srcdoc
    if kind in {"markdown", "caption", "metric", "warning", "error", "info", "success", "title", "subheader", "text"}:
        return kind, str(element.value)
    return (kind, str(element.proto)) if kind == "html" else None
