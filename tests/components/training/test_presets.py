"""The presets that teach do what they promise on the included model, within their first steps; plain AdamW, no trainer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from components.training.data import load, split
from components.training.negatives import dataset_columns, training_rows
from components.training.objectives import build_loss
from components.training.settings import PRESETS, TrainingSettings, learning_rates, steps


class Learner:
    """The included model with the settings' adapter, and the batches of both sides of the split."""

    def __init__(self, settings: TrainingSettings, folder) -> None:
        from peft import LoraConfig, TaskType
        from sentence_transformers import SentenceTransformer

        self.settings = settings
        self.model = SentenceTransformer(str(folder), device="cpu")
        torch.manual_seed(settings.seed)
        options = {"r": settings.adapter_rank, "lora_alpha": settings.adapter_alpha, "lora_dropout": 0.0}
        targets = ["query", "key", "value", "dense"]
        self.model.add_adapter(LoraConfig(task_type=TaskType.FEATURE_EXTRACTION, target_modules=targets, **options))
        (self.key,) = settings.objectives
        data = load(settings.data)
        parts = split(data, settings.held_out_share, settings.seed, settings.max_rows)
        self.rows = [training_rows(settings, self.key, data.take(side)) for side in (parts.train, parts.held_out)]
        self.loss = build_loss(settings, self.key, self.model)

    def batches(self, side: int, random: np.random.Generator | None = None) -> Iterator[torch.Tensor]:
        """The loss of each batch, in the order of the file or in one drawn at random."""
        rows = self.rows[side]
        order = np.arange(len(rows)) if random is None else random.permutation(len(rows))
        columns = dataset_columns(self.settings, self.key, rows)
        for start in range(0, len(rows), self.settings.batch_size):
            numbers = order[start : start + self.settings.batch_size]
            batch = {name: [values[number] for number in numbers] for name, values in columns.items()}
            labels = torch.tensor(batch.pop("label")) if "label" in batch else None
            yield self.loss([self.model.preprocess(texts) for texts in batch.values()], labels)

    def train(self, most: int) -> float:
        """Train for at most so many steps; the mean loss of the last four."""
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        optimizer = torch.optim.AdamW(parameters, weight_decay=0.0)
        rates = learning_rates(self.settings, steps(self.settings, len(self.rows[0])))
        random = np.random.default_rng(self.settings.seed)
        values: list[float] = []
        self.model.train()
        while True:
            for value in self.batches(0, random):
                optimizer.param_groups[0]["lr"] = float(rates[len(values)])
                optimizer.zero_grad()
                value.backward()
                torch.nn.utils.clip_grad_norm_(parameters, self.settings.max_gradient_norm)
                optimizer.step()
                values.append(value.item())
                if len(values) == most:
                    return float(np.mean(values[-4:]))

    def held_out_loss(self) -> float:
        self.model.eval()
        with torch.inference_mode():
            return float(np.mean([value.item() for value in self.batches(1)]))

    def mean_cosine(self) -> float:
        """Of different watched sentences."""
        with torch.inference_mode():
            vectors = self.model.encode(list(self.settings.watch), normalize_embeddings=True)
        cosines = vectors @ vectors.T
        return float(cosines[~np.eye(len(cosines), dtype=bool)].mean())


@pytest.fixture
def learner(embedded_folder):
    return lambda key: Learner(PRESETS[key].settings, embedded_folder)


@pytest.fixture(scope="module")
def untouched(embedded_folder):
    """The loss of the included model on the held-out rows: the same in all presets that begin with it and its rows."""
    return Learner(PRESETS["quick"].settings, embedded_folder).held_out_loss()


def test_the_collapse_preset_moves_all_sentences_to_one_point(learner):
    collapsing = learner("collapse")
    assert collapsing.mean_cosine() < 0.5
    loss = collapsing.train(10)
    assert collapsing.mean_cosine() > 0.95
    assert loss < 0.05  # which looks perfect


@pytest.mark.rare
def test_the_overfitting_preset_learns_its_rows_by_heart(learner):
    overfitting = learner("overfitting")
    before = overfitting.held_out_loss()
    loss = overfitting.train(14)
    assert loss < 0.05
    assert overfitting.held_out_loss() > 1.1 * before


def test_half_an_epoch_as_the_model_is_helps_on_held_out_rows(learner, untouched):
    unchanged = learner("quick")
    unchanged.train(8)
    assert unchanged.held_out_loss() < untouched


@pytest.mark.rare
def test_a_damaged_model_mixes_up_sentences_and_recovers(learner, untouched):
    """The same noise on the included model: the loss rises much, and less than the first epoch takes half of that back."""
    from components.training.model import build

    repaired = learner("repair")
    assert replace(repaired.settings, damage=0.0, learning_rate=0.1) == replace(
        PRESETS["quick"].settings, learning_rate=0.1
    )
    damaged = build(repaired.settings, "encoder")
    repaired.model, repaired.loss = damaged, build_loss(repaired.settings, repaired.key, damaged)
    before = repaired.held_out_loss()
    assert before > 2 * untouched
    repaired.train(12)
    assert repaired.held_out_loss() < (before + untouched) / 2 + 0.1
