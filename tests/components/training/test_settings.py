"""Settings: what is refused, the JSON round trip, and the learning rate of every step."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import numpy as np
import pytest

from components.errors import InputError
from components.training.objectives import check_objectives
from components.training.settings import (
    PRESETS,
    TrainingSettings,
    command_of,
    learning_rates,
    steps,
    warmup_steps,
)


@pytest.mark.parametrize("key", PRESETS)
def test_settings_survive_json(key):
    settings = PRESETS[key].settings
    assert TrainingSettings.from_json(settings.to_json()) == settings
    assert TrainingSettings.from_json(settings.to_json().encode()) == settings


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("meine\xa0Daten.csv", "meine Daten.csv"),
        ("soft\xadhyphen\u200f.csv", "soft hyphen .csv"),
        ("invalid \udcff\n.csv", "invalid .csv"),
        ("\u4e2d\u6587 \u00e9.csv", "\u4e2d\u6587 \u00e9.csv"),
    ],
)
def test_the_name_of_a_file_is_kept_in_printable_characters(given, kept):
    settings = TrainingSettings(data=given)
    assert settings.data == kept
    assert TrainingSettings.from_json(settings.to_json()) == settings


def test_missing_fields_have_their_defaults():
    assert TrainingSettings.from_json('{"epochs": 7}') == TrainingSettings(epochs=7)


def test_json_has_every_field():
    assert set(json.loads(TrainingSettings().to_json())) == {field.name for field in fields(TrainingSettings)}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", "3"),
        ("epochs", 2.5),
        ("epochs", True),
        ("epochs", 0),
        ("epochs", None),
        ("batch_size", 1),
        ("learning_rate", "fast"),
        ("learning_rate", float("nan")),
        ("learning_rate", float("inf")),
        ("learning_rate", 0),
        ("learning_rate", -1e-4),
        ("adapter", 1),
        ("adapter", "yes"),
        ("model", 5),
        ("model", "a\nb"),
        ("data", "x" * 1_001),
        ("name", "../elsewhere"),
        ("name", ".hidden"),
        ("name", "a" * 61),
        ("pooling", "sum"),
        ("distance", "hamming"),
        ("negatives", "all"),
        ("schedule", "cosine"),
        ("objectives", "mnrl"),
        ("objectives", []),
        ("objectives", ["mnrl", "mnrl"]),
        ("objectives", ["mnrl", "cosine", "triplet"]),
        ("objectives", [1]),
        ("softmax_parts", []),
        ("softmax_parts", ["u"]),
        ("softmax_parts", ["u, v", "u, v"]),
        ("watch", ["a"] * 65),
        ("watch", {"a": 1}),
        ("max_steps", 0),
        ("warmup_share", 1.1),
        ("deleted_share", 1.0),
        ("seed", -1),
        ("epoch", 3),
        ("objective", "mnrl"),
    ],
)
def test_wrong_fields_are_refused(name, value):
    with pytest.raises(InputError) as caught:
        TrainingSettings.from_json(json.dumps({name: value}))
    assert name in str(caught.value)
    for part in (caught.value.problem, caught.value.expected, caught.value.fix):
        assert part.endswith(".")
        assert part[0].isupper()


@pytest.mark.parametrize("text", ["", "[1]", "null", "{", "{'a': 1}", "[" * 100_000, b"\xff\xfe\x00"])
def test_what_is_no_json_object_is_refused(text):
    with pytest.raises(InputError):
        TrainingSettings.from_json(text)


def test_tsdae_trains_all_weights():
    with pytest.raises(InputError, match="adapter"):
        TrainingSettings(objectives=("tsdae",))
    assert TrainingSettings(objectives=("tsdae",), adapter=False).objectives == ("tsdae",)


@pytest.mark.parametrize("total", [1, 2, 3, 7, 64, 1_000])
@pytest.mark.parametrize(
    "warm", [{"warmup_share": 0.1}, {"warmup_share": 0.0}, {"warmup_steps": 5}, {"warmup_steps": 999}]
)
@pytest.mark.parametrize("schedule", ["linear", "constant"])
def test_the_learning_rate_is_that_of_transformers(total, warm, schedule):
    import torch
    from transformers import get_constant_schedule_with_warmup, get_linear_schedule_with_warmup

    settings = TrainingSettings(learning_rate=3e-4, schedule=schedule, **warm)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=settings.learning_rate)
    count = warmup_steps(settings, total)
    if schedule == "linear":
        scheduler = get_linear_schedule_with_warmup(optimizer, count, total)
    else:
        scheduler = get_constant_schedule_with_warmup(optimizer, count)
    expected = []
    for _ in range(total + 1):
        expected.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    rates = learning_rates(settings, total)
    assert rates.dtype == np.float32
    assert rates.shape == (total + 1,)
    np.testing.assert_allclose(rates, expected, rtol=1e-6, atol=1e-12)
    if schedule == "linear" and count < total:
        assert rates[-1] == 0
        assert (rates[max(count, 1) : -1] > 0).all()  # not a step earlier: the slip of published notebooks


def test_warm_up_is_rounded_up_as_in_transformers():
    from transformers import TrainingArguments

    for total in (1, 9, 10, 11, 64, 1_001):
        arguments = TrainingArguments(output_dir="unused", warmup_steps=0.1, use_cpu=True, report_to=[])
        assert warmup_steps(TrainingSettings(warmup_share=0.1), total) == arguments.get_warmup_steps(total)


def test_steps_count_the_last_smaller_batch_of_each_epoch():
    settings = TrainingSettings(epochs=3, batch_size=16)
    assert [steps(settings, rows) for rows in (15, 16, 17, 160)] == [3, 3, 6, 30]
    assert steps(replace(settings, max_steps=4), 160) == 4


def test_two_objectives_take_turns_until_the_first_has_no_more_batches():
    from datasets import Dataset
    from sentence_transformers.base.sampler import RoundRobinBatchSampler
    from torch.utils.data import BatchSampler, ConcatDataset, SequentialSampler

    settings = TrainingSettings(objectives=("mnrl", "contrastive"), epochs=1, batch_size=10)
    for counts in ((100, 200), (101, 95), (9, 300)):
        parts = [Dataset.from_dict({"row": list(range(count))}) for count in counts]
        samplers = [BatchSampler(SequentialSampler(range(count)), 10, drop_last=False) for count in counts]
        batches = list(RoundRobinBatchSampler(ConcatDataset(parts), samplers))
        assert steps(settings, *counts) == len(batches)
    assert steps(settings, 100) == 20


def test_the_recipes_are_those_of_the_course():
    softmax = PRESETS["nli-softmax"].settings
    assert (softmax.batch_size, softmax.learning_rate, softmax.epochs, softmax.max_length) == (16, 2e-5, 1, 128)
    assert (softmax.warmup_share, softmax.seed, softmax.pooling, softmax.adapter) == (0.1, 10, "mean", False)
    assert softmax.softmax_parts == ("u, v", "|u-v|")
    published = PRESETS["nli-softmax"].published_rows
    assert published == 549_367
    assert steps(softmax, published) == 34_336
    pairs = PRESETS["compression-pairs"].settings
    assert pairs.objectives == ("mnrl", "contrastive")
    assert (pairs.margin, pairs.distance, pairs.epochs, pairs.warmup_steps) == (0.5, "cosine", 50, 1_000)
    assert pairs.model == "sentence-transformers/all-distilroberta-v1"
    assert TrainingSettings().adapter
    assert (TrainingSettings().adapter_rank, TrainingSettings().learning_rate) == (8, 2e-4)
    for preset in PRESETS.values():
        check_objectives(preset.settings.objectives)
    assert {preset.lesson for preset in PRESETS.values()} == {"", "collapse", "overfitting"}


@pytest.mark.parametrize(("key", "most"), [("repair", 64), ("quick", 64), ("collapse", 32), ("overfitting", 48)])
def test_the_presets_for_the_included_model_end_soon(key, most):
    """On the included pairs, so that two cores need less than three minutes."""
    from components.training.data import load, split

    settings = PRESETS[key].settings
    assert settings.model == "embedded"
    assert settings.data == "demo:pairs"
    parts = split(load(settings.data), settings.held_out_share, settings.seed, settings.max_rows)
    total = steps(settings, len(parts.train))
    assert total <= most
    assert total > 5 * settings.evaluate_every


@pytest.mark.parametrize(
    "settings",
    [
        TrainingSettings(pooling="cls", batch_size=8, seed=3, negatives="bm25", max_rows=40),
        TrainingSettings(
            objectives=("mnrl", "contrastive"), adapter=False, learning_rate=1e-4, damage=0.5, name="mine"
        ),
        PRESETS["quick"].settings,
    ],
)
def test_the_command_of_a_run_means_the_same_settings(settings):
    from components.command_line import program
    from components.command_line.commands import train

    command = command_of(settings, "out")
    read = train._settings(program._parser().parse_args(command))
    assert replace(read, name=settings.name, watch=settings.watch, watch_every=settings.watch_every) == settings


@pytest.mark.parametrize("unsaid", [{"warmup_share": 0.3}, {"data": "mine.csv"}, {"margin": 0.2}, {"dropout": 0.0}])
def test_a_run_that_no_option_describes_has_no_command(unsaid):
    assert command_of(TrainingSettings(), "out")
    assert command_of(replace(TrainingSettings(), **unsaid), "out") == ()
