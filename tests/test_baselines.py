"""What tests share of a model's measurements is that model's own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from components.analysis.similarity import baseline
from components.model.backend import Backend
from dashboard.jobs.stored import included_words
from tests.support import baselines

SAMPLE = ("the cat sat on the bank", "a dog ran in", "we put money by the river", "a red hat")


@dataclass
class Counted:
    """What the code itself did, in place of the whole: each result is another object."""

    measured: list[Any] = field(default_factory=list)
    read: list[Any] = field(default_factory=list)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    count, measure = Counted(), baseline.measure_sample

    def measure_sample(run: Any, sample: Any) -> Any:
        count.measured.append(sample)
        return measure(run, sample)

    def read(model: Any, *_: Any) -> Any:
        count.read.append(model)
        return object()

    monkeypatch.setattr(baseline, "measure_sample", measure_sample)
    monkeypatch.setattr(included_words, "_read", read)
    with baselines.measured_once():
        yield count


def loaded(folder: Path) -> Backend:
    return Backend.load(str(folder), device_name="cpu")


@pytest.fixture
def copied(tiny_folder: Callable[[str], Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_folder("bert"), tmp_path / "copy", copy_function=shutil.copyfile))


def with_other_weights(folder: Path) -> Path:
    weights = load_file(folder / "model.safetensors")
    weights["encoder.layer.2.output.dense.bias"][0] += 1
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_a_copy_has_what_was_measured_of_its_model(
    counted: Counted, tiny_folder: Callable[[str], Path], copied: Path
) -> None:
    first, second = loaded(tiny_folder("bert")), loaded(copied)
    assert first.revision != second.revision  # by the times of their files
    found = baseline.measure_sample(first.run, SAMPLE)
    assert baseline.measure_sample(second.run, SAMPLE) is found
    assert included_words._read(second) is included_words._read(first)
    assert (len(counted.measured), len(counted.read)) == (1, 1)
    assert baseline.measure_sample(second.run, SAMPLE[:3]) is not found  # another sample


def test_another_weight_or_another_setting_is_another_model(
    counted: Counted, tiny_folder: Callable[[str], Path], copied: Path
) -> None:
    first, second = loaded(tiny_folder("bert")), loaded(with_other_weights(copied))
    found, other = (baseline.measure_sample(model.run, SAMPLE) for model in (first, second))
    assert not np.array_equal(found.tokens.raw.mean, other.tokens.raw.mean)
    assert included_words._read(first) is not included_words._read(second)
    (copied / "sentence_bert_config.json").write_text('{"max_seq_length": 5}')
    assert baseline.measure_sample(loaded(copied).run, SAMPLE) is not other


def test_what_fails_is_not_kept_and_a_changed_model_is_not_known(
    counted: Counted, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = loaded(copied)
    with pytest.raises(ValueError, match="two sentences"):
        baseline.measure_sample(model.run, SAMPLE[:1])
    with pytest.raises(ValueError, match="two sentences"):
        baseline.measure_sample(model.run, SAMPLE[:1])
    found = baseline.measure_sample(model.run, SAMPLE)
    assert baseline.measure_sample(lambda texts: model.run(texts), SAMPLE) is not found  # a test's own passes
    with monkeypatch.context() as patch:
        patch.setattr(Backend, "run", lambda *_: pytest.fail("a pass"))
        with pytest.raises(pytest.fail.Exception):
            baseline.measure_sample(model.run, SAMPLE)
    with_other_weights(copied)  # while the model is in memory as it was
    assert baseline.measure_sample(model.run, SAMPLE) is not found
    assert len(counted.measured) == 6


def test_the_default_model_is_measured_whenever_it_is_asked_to(counted: Counted, embedded: Backend) -> None:
    assert baseline.measure_sample(embedded.run, SAMPLE) is not baseline.measure_sample(embedded.run, SAMPLE)
    assert included_words._read(embedded) is included_words._read(embedded)
