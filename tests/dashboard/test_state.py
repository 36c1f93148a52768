"""The table of settings: what an address carries, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.errors import UserError
from components.model.contributions.path_products import MOST_STEPS
from dashboard import ready_made, settings, state
from dashboard.declared import table

EXAMPLES = {
    "model": "google-bert/bert-base-uncased",
    "model2": "distilbert/distilbert-base-uncased",
    "cross_encoder": "cross-encoder/qnli-electra-base",
    "pairs_view": "pair-scores",
    "why_view": "known-failures",
    "why_by": "maxsim",
    "context_source": "corpus",
    "score_split": "blocks",
    "split_reference": "mask",
    "split_steps": 40,
    "experiment_texts": "own",
    "third_text": "a & b = <c>?",
    "experiment_map": "heads",
    "experiment_values": "resample",
    "experiment_outcome": "rank",
    "experiment_numbers": "change",
    "experiment_seed": 7,
    "patches": ("h3.5", "t4.2", "a2", "f5"),
    "deletion_order": "last",
    "deletion_from": "both",
    "all_words": True,
    "clinic_figure": "probe",
    "clinic_kind": "swapped roles",
    "clinic_source": "file",
    "clinic_pair": 17,
    "failed_query": 95,
    "failed_order": "worst",
    "typed_query": "who <won>?",
    "right_row": 17,
    "failure_cause": "no-shared-word",
    "pair_query": "a & b = <c>?",
    "pair_relevant": "日本語 😀",
    "pair_other": 'quotes " and <b>',
    "truncation": "only_second",
    "pair_length": 24,
    "score_scale": "sigmoid",
    "score_label": "entailment",
    "scored_documents": 400,
    "relevant_by": "marks",
    "relevant_topic": "storm",
    "sample_seed": 7,
    "threshold": -1250,
    "second_stage": "maxsim",
    "disagreement_queries": 30,
    "disagreement": 4,
    "reranked_hits": 50,
    "learnt_layer": 3,
    "learnt_pooling": "mean",
    "learnt_reading": "together",
    "learnt_features": "difference",
    "learnt_c": "1",
    "learnt_balanced": True,
    "learnt_measure": "ndcg",
    "learnt_queries": 50,
    "learnt_first": 5,
    "learnt_others": 0,
    "learnt_seed": 7,
    "sentences": ("A & b = c?", "日本語 😀", 'quotes " and <b>'),
    "lesson": ("two-banks", 2),
    "class_code": "7b-monday",
    "max_length": 17,
    "projector": True,
    "tokens": (0, 3, 12),
    "tokens_view": "vocabulary",
    "sentence": 2,
    "vocabulary_query": "##ing",
    "vocabulary_mode": "contains",
    "other_tokenizer": "characters",
    "model_view": "layer-zero",
    "inner_block": 2,
    "compared_models": ("distilbert/distilbert-base-uncased", "embedded-cross-encoder"),
    "depth_curve": "words",
    "depth_first_word": 3,
    "depth_second_word": 0,
    "depth_other_sentence": 2,
    "cka_pair": "1-2",
    "compare_measured": True,
    "layer": 0,
    "layers_view": "sentence-curves",
    "comparison": "within",
    "second_token": 4,
    "layers_sentence": 1,
    "whole_word": False,
    "pooling": "max",
    "include_special": False,
    "centred": True,
    "show_baseline": False,
    "percentiles": True,
    "blind": True,
    "sentence_a": 1,
    "sentence_b": 0,
    "reading": "together",
    "joint_token": 4,
    "heatmaps_view": "sentence-pairs",
    "first_block": 3,
    "second_block": 0,
    "against": 0,
    "also_against": 2,
    "partners": (2, 0),
    "own_scale": True,
    "one_side": "right",
    "clustered": True,
    "attention_view": "head-patterns",
    "block": 5,
    "head": 11,
    "texts_filter": "ab",
    "combination": "max",
    "chosen_blocks": (0, 2),
    "chosen_heads": (3,),
    "queries": (1, 4),
    "merge_words": True,
    "special_tokens": "hidden",
    "pattern": "next",
    "pattern_over_all": True,
    "flow": "norms",
    "flow_heads": "one",
    "flow_block": 4,
    "flow_token": 3,
    "flow_figure": "all",
    "flow_special": True,
    "score_query": 3,
    "score_key": 5,
    "long_cells": "mean",
    "all_measures": True,
    "mask_word": True,
    "masked": 3,
    "map_view": "word-senses",
    "map_source": "corpus",
    "map_method": "pacmap",
    "map_dims": "3",
    "map_neighbors": 30,
    "map_min_dist": 0,
    "map_metric": "euclidean",
    "map_seed": 7,
    "map_tokens": 5_000,
    "map_colour": "topic",
    "map_joint": True,
    "map_first": 2,
    "map_find": "bank & <b>",
    "sense_word": "crane",
    "sense_layer": 3,
    "sense_source": "corpus",
    "corpus": "0123456789abcdef" * 2,
    "search_view": "similar-pairs",
    "query": "a & b = <c>?",
    "k": 25,
    "similarity": "dot",
    "compare_with": "bm25",
    "layer2": 2,
    "pooling2": "cls",
    "similarity2": "dot",
    "engine": "usearch",
    "why": 17,
    "typed_queries": ("a & b = <c>?", "日本語 😀"),
    "shown_pairs": 25,
    "evaluate_view": "pooling-lab",
    "query_column": "headline",
    "measure": "ndcg",
    "runs": ("m.6.mean", "m2.12.cls", "bm25", "rr.100.m.6.mean", "ms.20.m2.12.cls"),
    "candidates": 100,
    "reference": "bm25",
    "compare_figure": "cost",
    "right_at": 5,
    "query_filter": "disagree",
    "opened": 0,
    "searched_kind": "paraphrases",
    "graded_source": "file",
    "graded_query_field": "narrative",
    "graded_document_fields": "title",
    "graded_measure": "r100",
    "sts_source": "file",
    "correlation": "pearson",
    "sts_run": "m.0.max",
    "lab_dims": 64,
    "lab_seed": 7,
    "lab_pooling": "idf",
    "approximation": "hnsw-64",
    "training_view": "training-run",
    "training_preset": "collapse",
    "training_data": "demo:nli",
    "objective": "triplet",
    "second_objective": "contrastive",
    "negatives": "bm25",
    "trained_weights": "all",
    "training_pooling": "cls",
    "learning_rate": "2e-05",
    "epochs": 3,
    "batch_size": 8,
    "warm_up": 0,
    "training_length": 64,
    "margin": 30,
    "most_rows": 100,
    "damage": 40,
    "held_out": 30,
    "training_seed": 7,
    "training_run": "mnrl-20261122-140233-ab12",
    "training_figure": "rate",
    "smoothing": 25,
    "training_step": 0,
    "training_layer": 0,
    "watch_word": "bank",
    "after_part": "heads",
    "after_data": "held-out",
}
SETTINGS = {setting.name: setting for setting in table.SETTINGS}


def test_every_setting_has_an_example_that_is_not_its_default() -> None:
    assert EXAMPLES.keys() == SETTINGS.keys()
    assert all(EXAMPLES[name] != setting.default for name, setting in SETTINGS.items())


def test_labels_are_words_and_name_settings() -> None:
    assert all(re.fullmatch("[A-Za-z ]+", setting.label) for setting in table.SETTINGS)
    assert [SETTINGS[name].label for name in ("map_view", "sense_word", "chosen_heads")] == [
        "view",
        "word",
        "chosen heads",
    ]


@pytest.mark.parametrize("name", SETTINGS)
def test_a_value_survives_the_address(name: str) -> None:
    setting = SETTINGS[name]
    shown = setting.show(EXAMPLES[name])
    assert all(isinstance(text, str) for text in shown)
    assert setting.parse(shown) == EXAMPLES[name]


def test_short_keys_are_unique_in_every_view() -> None:
    for view in table.VIEWS:
        keys = [setting.short for setting in table.settings_in(view)]
        assert len(keys) == len(set(keys)), view
        assert not {state.PACKED, table.VIEW} & set(keys)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("model", ["../../etc/passwd"]),
        ("model", ["/no/such/folder"]),
        ("model", ["a b c"]),
        ("model", ["x", "y"]),
        ("sentences", ["word"] * 65),
        ("sentences", ["x" * 20_001]),
        ("tokens", ["-1"]),
        ("tokens", ["1.5"]),
        ("tokens", ["٣"]),  # a digit, but not one of ours
        ("tokens", ["9" * 40]),
        ("centred", ["yes"]),
        ("pooling", ["median"]),
        ("layer", ["__import__('os')"]),
        ("layers_view", ["facts"]),
    ],
)
def test_nonsense_is_refused(name: str, values: list[str]) -> None:
    with pytest.raises((ValueError, UserError)):
        SETTINGS[name].parse(values)


def test_sentences_keep_their_text_but_not_line_breaks_or_invalid_characters() -> None:
    parse = SETTINGS["sentences"].parse
    assert parse(["two\nlines", "  ", "tab\there"]) == ("two lines", "tab\there")
    assert parse(["half \ud83d emoji"]) == ("half \ufffd emoji",)
    assert parse([""]) == ()


def test_a_folder_that_exists_is_a_model(tmp_path: Path) -> None:
    assert SETTINGS["model"].parse([str(tmp_path)]) == str(tmp_path.resolve())


def test_the_ready_made_sets_are_complete() -> None:
    sets = ready_made.ready_made_sets()
    asked_for = {
        "bank": 3,
        "bank-accounts": 3,
        "weather": 3,
        "vehicles": 3,
        "idiom": 3,
        "outcome": 3,
        "pair": 2,
        "three-groups": 9,
        "five": 5,
        "nine-scenes": 9,
        "red-cat": 2,
        "cloze": 3,
    }
    assert {key: len(sets[key].sentences) for key in asked_for} == asked_for
    assert len(sets) >= len(asked_for) + 8
    assert sets["bank"].sentences == (
        "We will rob a bank next week!",
        "The children skipped stones by the bank of the river.",
        "I put money in the bank.",
    )
    for item in sets.values():
        assert len(item.look_for) > 30
        assert settings.clean_sentences(list(item.sentences)) == item.sentences


def test_one_bound_of_the_steps_and_of_the_seed() -> None:
    by_name = {setting.name: setting for setting in table.SETTINGS}
    for name, most in (("split_steps", MOST_STEPS), ("experiment_seed", settings.MOST_EXPERIMENT_SEED)):
        assert by_name[name].parse([str(most)]) == most
        with pytest.raises(ValueError, match=f"{most:,}"):
            by_name[name].parse([str(most + 1)])


def with_many_keys() -> None:
    import streamlit as st

    from dashboard import state

    state.apply("layers", {f"x{number}": ["1"] for number in range(12)} | {"l": ["?"], "pool": ["?"]})
    st.session_state["found"] = state.apply_chosen({f"y{number}": ["1"] for number in range(4)})


def test_of_many_unknown_keys_three_are_named() -> None:
    app = AppTest.from_function(with_many_keys).run()
    assert not app.exception
    kept = str(app.session_state["_notices"])
    assert "This page does not use the link's “x0”, “x1”, “x10” and 9 more." in kept
    assert kept.count("was ignored") == 2
    assert app.session_state["found"] == ["There is no setting “y0”, “y1”, “y2” and 1 more."]
