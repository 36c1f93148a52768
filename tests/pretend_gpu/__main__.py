"""Run every check on the pretend machine, or those whose names are given: `python -m tests.pretend_gpu [NAME ...]`.

The last line counts the comparisons with the CPU. Exit status 1 names the first check that fails.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.pretend_gpu import accelerator  # first: before torch

import numpy as np  # isort: skip
import torch  # isort: skip

from components.errors import ModelError
from components.jobs import Lane, Queue
from components.model import device
from components.model.backend import Backend
from components.model.catalog import parse_model
from components.model.embedding import embedder
from components.model.loader import DEVICE_PART, LANE, ModelLoader
from components.model.store import TraceStore
from dashboard import readiness
from tests.support.tiny import ARCHITECTURES, save_tiny

DEVICE = "cuda:1"  # while cuda:0 is the current one
PLENTY = 1 << 40
TEXTS = ["the cat sat on the bank", "money", "a red hat, we will walk by the river!", "dog 你 é"]
compared = 0


def folder(architecture: str = "bert") -> Path:
    return save_tiny(Path(tempfile.mkdtemp()) / architecture, architecture)


def on(name: str, where: Path | str) -> Backend:
    return Backend.load(str(where), store=TraceStore(64 << 20), device_name=name)


def difference(left: Any, right: Any) -> float:
    """The largest difference of two results' numbers, relative to the largest number of each array; all else must be equal."""
    if isinstance(left, np.ndarray):
        assert left.shape == right.shape
        assert left.dtype == right.dtype
        if left.dtype.kind != "f":
            assert (left == right).all()
            return 0.0
        assert (np.isnan(left) == np.isnan(right)).all()
        scale = max(1.0, float(np.nanmax(np.abs(left), initial=0.0)))
        return float(np.nanmax(np.abs(left.astype(np.float64) - right), initial=0.0)) / scale
    if dataclasses.is_dataclass(left):
        names = [field.name for field in dataclasses.fields(left) if field.name not in ("head", "projection")]
        return max((difference(getattr(left, name), getattr(right, name)) for name in names), default=0.0)
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        return max((difference(left[key], right[key]) for key in left), default=0.0)
    if isinstance(left, list | tuple):
        assert len(left) == len(right)
        return max((difference(one, other) for one, other in zip(left, right, strict=True)), default=0.0)
    if isinstance(left, float):
        return abs(left - right)
    assert left == right
    return 0.0


def refusal(work: Callable[[], object]) -> ModelError:
    try:
        work()
    except ModelError as problem:
        return problem
    raise AssertionError("nothing was refused")


def every_family_gives_the_numbers_of_the_cpu() -> None:
    global compared
    for architecture in ARCHITECTURES:
        where = folder(architecture)
        cpu, gpu = on("cpu", where), on(DEVICE, where)
        layers = cpu.text_layers
        works: dict[str, Callable[[Backend], object]] = {
            "trace": lambda model: model.trace(TEXTS, attentions=True),
            "trace of pairs": lambda model: model.trace(TEXTS, TEXTS[::-1]),
            "inside": lambda model: model.inside(TEXTS[2]),
            "feed-forward": lambda model: model.feed_forward(TEXTS[2]),
            "embed": lambda model, layers=layers: model.embed(
                TEXTS * 5, options=model.embed_options(layers, model.poolings, precision="float32")
            ),
            "patched": lambda model: model.activations(model.tokenize([TEXTS[0]])[0]),
            "gradient": lambda model: model.gradient_times_input(
                model.tokenize([TEXTS[0]])[0],
                np.linspace(-1, 1, model.vector_size(()), dtype=np.float32),
                model.facts.layers,
                model.poolings[0],
            ),
        }
        for name, work in works.items():
            outcomes: list[object] = []
            for model in (cpu, gpu):
                try:
                    outcomes.append(work(model))
                except ModelError as problem:
                    outcomes.append(str(problem))
            found = difference(*outcomes)
            assert found <= 1e-5, (architecture, name, found)
            compared += 1


def a_pass_without_memory_says_so_and_the_next_one_works() -> None:
    model = on(DEVICE, folder())
    expected = model.trace(TEXTS)
    accelerator.set_capacity(accelerator.used(1) + 2_000)
    problem = refusal(lambda: model.trace([*TEXTS, "one more"]))
    assert problem.kind == "memory"
    assert "too little memory" in str(problem)
    accelerator.set_capacity(PLENTY)
    model.store.clear()
    assert difference(model.trace(TEXTS), expected) == 0
    assert device.lost() == ()


def a_model_that_does_not_fit_is_not_called_damaged() -> None:
    where = folder()
    accelerator.set_capacity(1_000)  # less than its embeddings take, wherever other tensors are
    problem = refusal(lambda: on(DEVICE, where))
    accelerator.set_capacity(PLENTY)
    assert problem.kind == "memory"
    assert "KiB" in problem.problem
    assert "Download" not in str(problem)


def room_is_made_before_a_model_goes_to_the_device() -> None:
    size = on(DEVICE, folder()).nbytes
    most = size * 5 // 2  # two of them
    queue = Queue({LANE: Lane()})
    loader = ModelLoader(queue, TraceStore(64 << 20), max_bytes=most)
    before = accelerator.used(0)
    accelerator.set_capacity(before + most)
    for _ in range(4):
        job = loader.request(parse_model(str(folder())))
        assert job.finished.wait(60)
        assert job.error is None, job.error
        del job
    kept = len(loader.jobs.finished())
    accelerator.set_capacity(PLENTY)
    queue.close(5)
    assert kept == 2


def the_default_room_is_a_part_of_the_devices_memory() -> None:
    capacity = accelerator.CONTEXT + (1 << 30)
    accelerator.set_capacity(capacity)
    device.free_at_start.cache_clear()
    free = capacity - accelerator.CONTEXT - accelerator.used(0)
    queue = Queue({LANE: Lane()})
    loader = ModelLoader(queue, TraceStore(64 << 20))
    job = loader.request(parse_model(str(folder())))
    assert job.finished.wait(60)
    assert job.error is None, job.error
    queue.close(5)
    accelerator.set_capacity(PLENTY)
    assert abs(loader.max_bytes - DEVICE_PART * free) < 1 << 20


def a_copy_in_half_precision_takes_half_as_much_and_no_more_while_it_is_made() -> None:
    model = on(DEVICE, folder())
    weights = sum(tensor.nbytes for tensor in model.encoder.parameters())
    before = accelerator.used(1)
    accelerator.set_capacity(before + weights * 6 // 10)
    half = embedder.loading.half_copy(model.encoder)
    accelerator.set_capacity(PLENTY)
    assert next(half.parameters()).dtype == torch.bfloat16
    assert accelerator.used(1) - before < weights * 6 // 10
    assert next(model.encoder.parameters()).dtype == torch.float32


def batches_grow_again_after_a_shortage() -> None:
    model = on(DEVICE, folder())
    options = model.embed_options(precision="float32")
    expected = model.embed(TEXTS * 64, options=options)
    bulk = model.embedder
    bulk._token_budget = 512  # as after seven shortages
    for _ in range(embedder.BATCHES_TO_GROW * 8):
        found = model.embed(TEXTS * 4, options=options)
    assert bulk._token_budget == bulk._most_tokens
    assert np.abs(found - expected[:, :, : len(TEXTS) * 4]).max() < 1e-5


def a_lost_device_is_not_ready_and_says_so() -> None:
    model = on(DEVICE, folder())
    with model.loaded.lock:
        model.encoder.get_input_embeddings().weight.data = model.encoder.get_input_embeddings().weight.data[:3]
    problem = refusal(lambda: model.trace(["the cat sat on the bank"]))
    assert problem.kind == "device"
    assert "starts again" in str(problem)
    assert device.lost() == (DEVICE,)
    assert device.memory(model.device).device_used is None  # and no error
    assert readiness.state() == "lost"
    accelerator.heal()
    device._lost.clear()


CHECKS = (
    every_family_gives_the_numbers_of_the_cpu,
    a_pass_without_memory_says_so_and_the_next_one_works,
    a_model_that_does_not_fit_is_not_called_damaged,
    room_is_made_before_a_model_goes_to_the_device,
    the_default_room_is_a_part_of_the_devices_memory,
    a_copy_in_half_precision_takes_half_as_much_and_no_more_while_it_is_made,
    batches_grow_again_after_a_shortage,
    a_lost_device_is_not_ready_and_says_so,
)


def main(names: list[str]) -> int:
    torch.set_num_threads(1)
    for check in CHECKS:
        if not names or check.__name__ in names:
            check()
            sys.stdout.write(f"passed: {check.__name__.replace('_', ' ')}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{compared} results of the pretend device equal those of the CPU\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
