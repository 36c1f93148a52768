"""What must hold on the pretend machine besides equal numbers: memory that ends, a device that fails, copies, waits, turns.

A check may leave the machine as it likes: whoever runs one, by `run`, makes it new again.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from tests.pretend_gpu import accelerator  # first: before torch

import numpy as np  # isort: skip
import torch  # isort: skip
from transformers import BertConfig, BertModel  # isort: skip

from components.errors import ModelError
from components.jobs import Lane, Queue, turns
from components.model import device
from components.model.architecture import memory
from components.model.backend import Backend
from components.model.catalog import EMBEDDED_KEY, parse_model
from components.model.embedding import batch_size, embedder
from components.model.embedding.options import SENTENCES_PER_BLOCK
from components.model.loader import DEVICE_PART, LANE, ModelLoader
from components.model.store import TraceStore
from components.operator_settings import CPU_AFTER_FAILURE
from components.retrieval.corpora.corpus import Corpus
from components.retrieval.index.build import build_index
from components.sizes import in_words
from dashboard import readiness
from tests.gpu.comparison import compared, difference, on, outcome
from tests.gpu.models import every_model
from tests.gpu.paths import TEXTS, paths_of
from tests.gpu.paths import Path as Computation
from tests.support.tiny import save_tiny, wordpiece_tokenizer

DEVICE = "cuda:1"  # while cuda:0 is the current one
# One model of each kind of path; where a copy, a wait or a shortage happens does not depend on the family.
OF_EACH_KIND = (
    *("bert", "deberta-v2", "qwen3", "bert, mean, Dense", "bert with next sentences", "guesses of bert"),
    *("sparse, max, relu", "several vectors", "scores of bert"),
)
SHORTAGES = (0, 1 << 10, 8 << 10, 64 << 10)  # bytes that are free: a pass ends at one place or another
MOST_WAITS = {  # of the CPU for the device
    "trace": 9,
    "vectors of the last layer": 3,  # one batch
    "vectors in float32, mean": 3,
    "inside": 26,
}


def folder(architecture: str = "bert") -> Path:
    return save_tiny(Path(tempfile.mkdtemp()) / architecture, architecture)


def refusal(work: Callable[[], object]) -> ModelError:
    try:
        work()
    except ModelError as problem:
        return problem
    raise AssertionError("nothing was refused")


def a_pass_without_memory_says_so_and_the_next_one_works() -> None:
    model = on(DEVICE, folder())
    expected = model.trace(TEXTS)
    accelerator.set_capacity(accelerator.used(1) + 2_000)
    problem = refusal(lambda: model.trace([*TEXTS, "one more"]))
    assert problem.kind == "memory"
    assert "too little memory" in str(problem)
    accelerator.set_capacity(accelerator.PLENTY)
    model.store.clear()
    assert difference(model.trace(TEXTS), expected) == 0
    assert device.lost() == ()


def a_model_that_does_not_fit_is_not_called_damaged() -> None:
    where = folder()
    accelerator.set_capacity(1_000)  # less than its embeddings take, wherever other tensors are
    problem = refusal(lambda: on(DEVICE, where))
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
    queue.close(5)
    assert kept == 2


def the_default_room_is_a_part_of_the_devices_memory() -> None:
    capacity = accelerator.CONTEXT + (1 << 30)
    accelerator.set_capacity(capacity)
    free = capacity - accelerator.CONTEXT - accelerator.used(0)
    queue = Queue({LANE: Lane()})
    loader = ModelLoader(queue, TraceStore(64 << 20))
    job = loader.request(parse_model(str(folder())))
    assert job.finished.wait(60)
    assert job.error is None, job.error
    queue.close(5)
    assert abs(loader.max_bytes - DEVICE_PART * free) < 1 << 20


def a_copy_in_half_precision_takes_half_as_much_and_no_more_while_it_is_made() -> None:
    model = on(DEVICE, folder())
    weights = sum(tensor.nbytes for tensor in model.encoder.parameters())
    before = accelerator.used(1)
    accelerator.set_capacity(before + weights * 6 // 10)
    half = embedder.loading.half_copy(model.encoder)
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


def the_size_of_batches_is_measured_once_and_in_the_record_of_an_index() -> None:
    place = folder()
    texts = TEXTS * 600
    assert len(texts) < SENTENCES_PER_BLOCK
    built = []
    for name in ("cpu", DEVICE, DEVICE):
        model = on(name, place)
        index = build_index(
            model,
            Corpus("a corpus", tuple(texts)),
            Path(tempfile.mkdtemp()) / "index",
            model.embed_options(precision="float32"),
        )
        built.append((model.forward_passes, dict(index.info.computed_on)))
    (_, of_cpu), (first, measured), (second, again) = built
    assert of_cpu == {}  # its batches have a fixed size
    assert measured["device"] == "Pretend GPU"
    assert batch_size.LEAST_TOKENS <= measured["tokens_per_batch"] <= batch_size.MOST_TOKENS
    assert again == measured
    assert second < first  # kept: not measured again


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


def models_of_each_kind() -> Iterator[tuple[str, Backend, Backend, list[Computation]]]:
    """A name, the model on the CPU and on the device, and its paths."""
    chosen = [model for model in every_model() if model.name in OF_EACH_KIND]
    assert len(chosen) == len(OF_EACH_KIND)
    for model in chosen:
        saved = model.save(Path(tempfile.mkdtemp()) / "model")
        cpu = on("cpu", saved)
        yield model.name, cpu, on(DEVICE, saved), list(model.paths(cpu))


def every_kind_computes_the_cpus_numbers() -> None:
    for name, cpu, other, paths in models_of_each_kind():
        for path in paths:
            with said(name, path):
                compared(path, cpu, other)


def copies_that_arrive_late_change_nothing() -> None:
    accelerator.late_copies(True)
    every_kind_computes_the_cpus_numbers()


def by_the_rules_of_mps_nothing_is_read_too_late_and_nothing_is_float64() -> None:
    accelerator.as_mps(True)
    with mock.patch.dict(device.RULES, cuda=device.RULES["mps"]):
        every_kind_computes_the_cpus_numbers()


def every_path_says_that_memory_ended_and_works_afterwards() -> None:
    refused = 0
    for name, _, model, paths in models_of_each_kind():
        for path in paths:
            with said(name, path):
                expected = outcome(path, model)
                for free in SHORTAGES:
                    accelerator.set_capacity(accelerator.used(1) + free)
                    found = outcome(path, model)
                    accelerator.set_capacity(accelerator.PLENTY)
                    if isinstance(found, ModelError) and found.kind == "memory":
                        refused += 1
                        assert "too little memory" in str(found)
                    else:
                        assert difference(expected, found) <= path.tolerance
                assert difference(expected, outcome(path, model)) <= path.tolerance
    assert refused > 500, refused  # so many paths need memory of the device
    assert device.lost() == ()


def the_cpu_waits_seldom_for_the_device() -> None:
    model = on(DEVICE, folder())
    paths = {path.name: path for path in paths_of(model)}
    for name, most in MOST_WAITS.items():
        outcome(paths[name], model)  # what is made at first use
        before = accelerator.waits()
        outcome(paths[name], model)
        waits = accelerator.waits() - before
        assert 0 < waits <= most, (name, waits)


def after_a_failure_the_server_goes_on_with_the_cpu_where_that_is_allowed() -> None:
    queue = Queue({LANE: Lane()})
    loader = ModelLoader(queue, TraceStore(64 << 20))
    spec = parse_model(str(folder()))
    job = loader.request(spec)
    assert job.finished.wait(60)
    model = job.result
    expected = model.trace(TEXTS).hidden_states
    with model.loaded.lock:
        model.encoder.get_input_embeddings().weight.data = model.encoder.get_input_embeddings().weight.data[:3]
    assert refusal(lambda: model.trace(["the cat sat on the bank"])).kind == "device"
    assert loader.request(spec) is job
    with mock.patch.dict(os.environ, {CPU_AFTER_FAILURE.variable: "1"}):
        again = loader.request(spec)
        assert again.finished.wait(60)
        assert again.error is None, again.error
        assert again.result.device.type == "cpu"
        found = again.result.trace(TEXTS).hidden_states
    queue.close(5)
    assert difference(expected, found) < 1e-5


def passes_of_two_models_never_meet_on_a_device_and_do_on_the_cpu() -> None:
    for name, most_seconds in (("cpu", 60.0), (DEVICE, 1.0)):
        models = [on(name, folder()) for _ in range(2)]
        meeting = threading.Barrier(2)
        met = []

        def meet(*_: object, meeting: threading.Barrier = meeting, seconds: float = most_seconds) -> None:
            try:
                meeting.wait(seconds)
                met.append(True)  # noqa: B023
            except threading.BrokenBarrierError:
                met.append(False)  # noqa: B023

        for model in models:
            model.encoder.register_forward_pre_hook(meet)
        threads = [threading.Thread(target=model.trace, args=(TEXTS,)) for model in models]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert met == [name == "cpu"] * 2, (name, met)


def who_waits_for_a_device_is_told_of_the_passes_of_all_its_models() -> None:
    first, second = (on(DEVICE, folder()) for _ in range(2))
    heard: list[int] = []
    two_come_first = threading.Event()

    def tell(count: int) -> None:
        heard.append(count)
        if count == 2:
            two_come_first.set()

    def visit() -> None:
        with turns.told(tell):
            second.trace(TEXTS)

    threads = [threading.Thread(target=first.trace, args=(TEXTS,)), threading.Thread(target=visit)]
    with mock.patch.object(turns, "TELL_SECONDS", 0.02):
        with first.loaded.forward_pass():
            for thread in threads:
                thread.start()
            assert two_come_first.wait(60), heard
        for thread in threads:
            thread.join(60)
    assert heard[-1] == 0


def whoever_computes_has_the_devices_turn_and_leaves_nothing_behind() -> None:
    lock = accelerator.WatchedLock(1)
    with mock.patch.dict(device._turns, {DEVICE: turns.Turns(lock)}), accelerator.outside_of_turns() as outside:
        for name, _, model, paths in models_of_each_kind():
            for path in paths:
                with said(name, path):
                    outcome(path, model)
    assert lock.left
    assert outside == [], outside
    many = [" ".join(["the cat sat on the bank"] * 10)] * 200
    with mock.patch.dict(device._turns, {DEVICE: turns.Turns(lock)}):
        model = on(DEVICE, folder())
    options = model.embed_options(range(4), ("mean",), precision="float32")
    computations: dict[str, Callable[[], object]] = {
        "trace": lambda: model.trace(many[:50], attentions=True),
        "vectors": lambda: model.embed(many, options=options, token_budget=50_000),
        "pairs": lambda: model.embed_pairs(many, many, token_budget=50_000),
        "tokens": lambda: model.own_token_vectors(many),
        "inside": lambda: model.inside(many[0]),
    }
    for name, compute in computations.items():
        lock.left.clear()
        before = accelerator.used(1)
        with accelerator.peak_of(1) as peak:
            compute()
        inputs, needed = max(lock.left) - before, peak[0] - before
        assert inputs < needed / 20, (name, inputs, needed)


@contextmanager
def said(name: str, path: Computation) -> Iterator[None]:
    """Within it an error says of which model's path it is."""
    try:
        yield
    except Exception as problem:
        problem.add_note(f"{name}: {path.name}")
        raise


def what_the_arithmetic_of_memory_says_is_what_the_allocator_gives() -> None:
    """Batches in float32 alone: in bfloat16 the pretend attention computes in float32, and no card's does."""
    said_of_memory(EMBEDDED_KEY, sentences=16, tokens=64)
    said_of_memory(seeded_bert(), sentences=64, tokens=16)


def said_of_memory(where: Path | str, sentences: int, tokens: int) -> None:
    gc.collect()
    before = accelerator.used(1)
    model = on(DEVICE, where)
    facts, plain = model.facts, model.embed_options(precision="float32")
    texts = [" ".join(["cat"] * (tokens - 2))] * sentences
    assert nearly(accelerator.used(1) - before, memory.weight_bytes(facts, with_half=False))
    start = accelerator.used(1)
    with accelerator.peak_of(1) as peak:
        model.trace(texts, attentions=True)
    assert nearly(peak[0] - start, memory.trace_bytes(facts, sentences, tokens))
    with accelerator.peak_of(1) as peak:
        model.embed(texts, options=plain, token_budget=sentences * tokens)
    assert nearly(peak[0] - start, memory.batch_bytes(facts, sentences * tokens, memory.FLOAT32))
    model.embed(texts, options=model.embed_options(precision="bfloat16"))
    assert nearly(accelerator.used(1) - before, memory.weight_bytes(facts, with_half=True))


def nearly(found: int, expected: int) -> bool:
    """Whether what was found is within a tenth of what was expected."""
    sys.stdout.write(f"{in_words(found, binary=True)} in tensors, {in_words(expected, binary=True)} by arithmetic\n")
    return abs(found - expected) <= expected / 10


def seeded_bert() -> Path:
    """A small BERT in the proportions of BERT base: heads of some numbers, four times as many inside the feed-forward part."""
    place = Path(tempfile.mkdtemp())
    torch.manual_seed(0)
    tokenizer = wordpiece_tokenizer()
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 256}
    BertModel(BertConfig(vocab_size=len(tokenizer), **sizes)).save_pretrained(place)
    tokenizer.save_pretrained(place)
    return place


def run(check: Callable[[], None]) -> None:
    """A check, after which the machine is as new, whatever came of it."""
    try:
        check()
    finally:
        accelerator.as_new()
        device._lost.clear()
        device.free_at_start.cache_clear()


CHECKS = (
    a_pass_without_memory_says_so_and_the_next_one_works,
    a_model_that_does_not_fit_is_not_called_damaged,
    room_is_made_before_a_model_goes_to_the_device,
    the_default_room_is_a_part_of_the_devices_memory,
    a_copy_in_half_precision_takes_half_as_much_and_no_more_while_it_is_made,
    batches_grow_again_after_a_shortage,
    the_size_of_batches_is_measured_once_and_in_the_record_of_an_index,
    the_cpu_waits_seldom_for_the_device,
    copies_that_arrive_late_change_nothing,
    by_the_rules_of_mps_nothing_is_read_too_late_and_nothing_is_float64,
    every_path_says_that_memory_ended_and_works_afterwards,
    a_lost_device_is_not_ready_and_says_so,
    after_a_failure_the_server_goes_on_with_the_cpu_where_that_is_allowed,
    passes_of_two_models_never_meet_on_a_device_and_do_on_the_cpu,
    who_waits_for_a_device_is_told_of_the_passes_of_all_its_models,
    whoever_computes_has_the_devices_turn_and_leaves_nothing_behind,
    what_the_arithmetic_of_memory_says_is_what_the_allocator_gives,
)
