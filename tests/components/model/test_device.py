"""Which device is chosen, and what is said of memory."""

from __future__ import annotations

import re
import weakref

import psutil
import pytest
import torch

from components.errors import ModelError
from components.model import device
from components.model.backend import Backend
from components.model.device import choose_device, failure, memory, on_device
from components.model.loaded import LoadedModel
from components.operator_settings import CPU_AFTER_FAILURE, DEVICE
from tests.support.places import ROOT


@pytest.fixture
def only_a_cpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.delenv(DEVICE.variable, raising=False)


@pytest.fixture
def two_gpus(monkeypatch, only_a_cpu):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


def test_the_best_device_is_chosen(only_a_cpu, monkeypatch):
    assert choose_device() == torch.device("cpu")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device() == torch.device("mps")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device() == torch.device("cuda")


def test_the_environment_overrides_and_an_argument_overrides_it(two_gpus, monkeypatch):
    assert choose_device() == torch.device("cuda")
    monkeypatch.setenv(DEVICE.variable, " CPU ")
    assert choose_device() == torch.device("cpu")
    assert choose_device("cuda:1") == torch.device("cuda:1")


def test_a_model_is_loaded_onto_the_device_of_the_environment(two_gpus, monkeypatch, tiny_folder):
    monkeypatch.setenv(DEVICE.variable, "cpu")
    backend = Backend.load(str(tiny_folder("bert")))
    assert backend.device == torch.device("cpu")
    assert {parameter.device.type for parameter in backend.encoder.parameters()} == {"cpu"}


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "mps", "tpu", "gpu", "cpu:0:0", "\u0000"])
def test_a_device_this_machine_does_not_have(only_a_cpu, name):
    with pytest.raises(ModelError) as caught:
        choose_device(name)
    assert caught.value.kind == "device"
    assert repr(name) in caught.value.problem
    assert caught.value.expected == "It has: cpu."
    assert DEVICE.variable in caught.value.fix


def test_the_devices_there_are_named(two_gpus):
    with pytest.raises(ModelError) as caught:
        choose_device("cuda:2")
    assert caught.value.expected == "It has: cpu, cuda, cuda:0, cuda:1."


def test_a_missing_device_is_found_out_before_anything_is_loaded(only_a_cpu, monkeypatch):
    monkeypatch.setenv(DEVICE.variable, "cuda")
    with pytest.raises(ModelError) as caught:
        Backend.load("nobody/nothing")
    assert caught.value.kind == "device"


def test_memory_of_a_cpu():
    used = memory(torch.device("cpu"))
    assert 50e6 < used.process < psutil.virtual_memory().total  # torch alone takes more than 50 MB
    assert (used.device_used, used.device_total) == (None, None)


def test_memory_of_an_accelerator(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (30, 100))
    used = memory(torch.device("cuda"))
    assert (used.device_used, used.device_total) == (70, 100)


@pytest.mark.parametrize(("device", "waits"), [("cuda", False), ("mps", True), ("cpu", True), ("xpu", True)])
def test_only_copies_from_pinned_memory_to_cuda_are_not_waited_for(monkeypatch, device, waits):
    """From other memory they may read what was released since: silently wrong vectors."""
    pinned, copies = [], []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: pinned.append(id(tensor)) or tensor)

    def to(tensor, where, non_blocking=False):
        copies.append((id(tensor), where.type, non_blocking))
        return tensor

    monkeypatch.setattr(torch.Tensor, "to", to)
    tensors = [torch.arange(3), torch.ones(2)]
    assert on_device(tensors, torch.device(device)) == tensors
    assert copies == [(id(tensor), device, not waits) for tensor in tensors]
    assert pinned == ([] if waits else [id(tensor) for tensor in tensors])


def test_no_other_copy_goes_on_unwaited_for():
    files = [path for folder in ("components", "dashboard") for path in (ROOT / folder).rglob("*.py")]
    found = [path.name for path in files if "non_blocking" in path.read_text(encoding="utf-8")]
    assert found == ["device.py"]


def out_of_memory() -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def test_too_little_memory_says_what_to_shorten_and_lets_the_tensors_go():
    class Large:
        pass

    kept: list[weakref.ref[Large]] = []

    def work() -> None:
        large = Large()
        kept.append(weakref.ref(large))
        out_of_memory()

    with pytest.raises(torch.OutOfMemoryError) as raised:
        work()
    found = failure(raised.value, torch.device("cpu"), "for a trace")
    assert found is not None
    assert found.kind == "memory"
    assert found.problem == "The device cpu has too little memory for a trace."
    assert kept[0]() is None  # although the error, which knows the call, is still there


def test_an_error_of_the_device_is_told_from_one_of_the_program():
    for problem in (
        torch.AcceleratorError("CUDA error: device-side assert triggered"),
        RuntimeError("CUDA error: no kernel image is available for execution on the device"),
        RuntimeError("cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"),
    ):
        found = failure(problem)
        assert found is not None
        assert found.kind == "device"
        assert str(problem) in str(found)
    for problem in (
        RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)"),
        torch.AcceleratorError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried"
        ),
    ):
        found = failure(problem)
        assert found is not None
        assert found.kind == "memory", problem
    for problem in (RuntimeError("The size of tensor a (3) must match b (4)"), ValueError("CUDA error"), MemoryError()):
        assert failure(problem) is None


def test_a_pass_without_memory_is_said_in_words_and_the_next_one_runs(tiny_folder, monkeypatch):
    backend = Backend.load(str(tiny_folder("bert")), device_name="cpu")
    with pytest.raises(ModelError, match="too little memory") as raised, backend.loaded.forward_pass():
        out_of_memory()
    assert raised.value.kind == "memory"
    with pytest.raises(RuntimeError, match="of the program"), backend.loaded.forward_pass():
        raise RuntimeError("of the program")
    assert backend.trace(["the cat"]).hidden_states.shape[2] == 4


def test_a_full_device_is_not_called_a_damaged_model(tiny_folder, monkeypatch):
    monkeypatch.setattr(LoadedModel, "check_pass", lambda self: out_of_memory())
    with pytest.raises(ModelError) as raised:
        Backend.load(str(tiny_folder("bert")), device_name="cpu")
    assert raised.value.kind == "memory"
    assert "which takes" in raised.value.problem


def test_a_full_device_is_not_lost(monkeypatch):
    monkeypatch.setattr(device, "_lost", set())
    full = torch.AcceleratorError("CUDA error: out of memory")
    monkeypatch.setattr(torch, "ones", lambda *size, device: (_ for _ in ()).throw(full))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda asked: (_ for _ in ()).throw(full))
    assert (
        failure(torch.AcceleratorError("CUDA error: unspecified launch failure"), torch.device("cuda:0")).kind
        == "device"
    )
    assert device.lost() == ()


def test_a_lost_device_is_remembered_and_asked_nothing(monkeypatch):
    monkeypatch.setattr(device, "_lost", set())
    gone = torch.device("cuda", 1)
    monkeypatch.setattr(torch, "ones", lambda *size, device: (_ for _ in ()).throw(RuntimeError("CUDA error: gone")))
    assert "until the program starts again" in str(failure(torch.AcceleratorError("CUDA error: gone"), gone))
    assert device.lost() == ("cuda:1",)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda asked: pytest.fail("a lost device is asked"))
    assert memory(gone).device_used is None


def test_after_a_failure_models_run_on_the_cpu_where_the_operator_allows_it(monkeypatch, two_gpus):
    monkeypatch.setattr(device, "_lost", set())
    monkeypatch.setenv(CPU_AFTER_FAILURE.variable, "1")
    assert choose_device() == torch.device("cuda")
    monkeypatch.setattr(torch, "ones", lambda *size, device: (_ for _ in ()).throw(RuntimeError("CUDA error: gone")))
    found = failure(torch.AcceleratorError("CUDA error: gone"), torch.device("cuda"))
    assert "From now on models run on the CPU" in str(found)
    assert device.lost() == ("cuda:0",)
    assert choose_device() == torch.device("cpu")
    assert choose_device("cuda:1") == torch.device("cuda:1")  # who names one gets it
    monkeypatch.setenv(CPU_AFTER_FAILURE.variable, "0")
    assert choose_device() == torch.device("cuda")


def test_why_there_is_no_cuda_device_is_said(only_a_cpu, monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(ModelError, match="computes on the CPU only"):
        choose_device("cuda")
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with pytest.raises(ModelError, match="no driver, or one that is too old"):
        choose_device("cuda:0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(ModelError, match="CUDA_VISIBLE_DEVICES is '', which leaves PyTorch no GPU that it can use"):
        choose_device("cuda:0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    with pytest.raises(ModelError, match="CUDA_VISIBLE_DEVICES is '3', which leaves PyTorch 1 of this machine's GPUs"):
        choose_device("cuda:1")


def test_sums_of_bfloat16_products_are_whole_on_cuda(monkeypatch):
    flags = torch.backends.cuda.matmul
    before = flags.allow_bf16_reduced_precision_reduction
    try:
        flags.allow_bf16_reduced_precision_reduction = True
        device.with_whole_sums(torch.device("cpu"))
        assert flags.allow_bf16_reduced_precision_reduction is True
        assert device.with_whole_sums(torch.device("cuda:1")) == torch.device("cuda:1")
        assert flags.allow_bf16_reduced_precision_reduction is False
    finally:
        flags.allow_bf16_reduced_precision_reduction = before


def test_models_on_one_accelerator_share_its_turns_and_those_on_the_cpu_have_their_own(monkeypatch):
    monkeypatch.setattr(device, "_turns", {})
    first, second = (device.turns_at(torch.device(name)) for name in ("cuda", "cuda:1"))
    assert device.turns_at(torch.device("cuda:0")) is first  # "cuda" alone is the first one
    assert device.turns_at(torch.device("cuda:1")) is second is not first
    assert device.turns_at(torch.device("cpu")) is not device.turns_at(torch.device("cpu"))


def test_only_the_rules_of_a_device_ask_for_its_kind():
    """Embedding, tracing and scoring are one path on every device, and all inputs go there by one function."""
    asks = re.compile(r"\.type [=!]= |\.type in |is_cuda|is_available\(|non_blocking|pin_memory")
    copies = re.compile(r"from_numpy\(.*\)\.to\(|torch\.tensor\(.*device=|as_tensor\(.*device=")
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "components" / "model").rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if asks.search(line) or copies.search(line)
    }
    assert found == {"components/model/device.py"}
