"""A light installation: without an NVIDIA driver PyTorch's wheels without CUDA are tried first, once and for a few seconds."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
import venv
import zipfile
from collections.abc import Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import install
from tests.support import interrupts
from tests.support.places import ROOT

# `install.py` where there is no driver; after it which PyTorch is there.
WITHOUT_DRIVER = """
import sys, install
install.has_nvidia_driver = lambda: False
sys.exit(install.main(sys.argv[1:]))
"""


class Index(ThreadingHTTPServer):
    """A package index of files, which keeps what it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        assert isinstance(self.server, Index)
        self.server.asked.append(self.path)


def put_wheel(folder: Path, version: str) -> None:
    """A wheel named torch that holds nothing, where pip looks for it in an index."""
    info = f"torch-{version}.dist-info"
    files = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    (folder / "torch").mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / "torch" / f"torch-{version}-py3-none-any.whl", "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(name, text)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True, symlinks=True)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Index, Index]]:
    """The ordinary index, and one of wheels without CUDA, which has the first version only."""
    ordinary, light = tmp_path_factory.mktemp("ordinary"), tmp_path_factory.mktemp("light")
    for version in ("1.0", "2.0", "3.0"):
        put_wheel(ordinary, version)
    put_wheel(light, "1.0+cpu")
    served = Index(ordinary), Index(light)
    yield served
    for index in served:
        index.shutdown()
        index.server_close()


def installed(python: Path, ordinary: Index, version: str, light: str, tmp_path: Path) -> tuple[str, str]:
    """Install a version; which one is there then, and what was said."""
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"torch=={version}   # as ours\n")
    own = {
        "PIP_INDEX_URL": ordinary.url,
        "PIP_CONFIG_FILE": os.devnull,
        "NO_PROXY": "127.0.0.1",
        "PYTHONPATH": str(ROOT),
    }
    command = [str(python), "-c", WITHOUT_DRIVER, str(requirements), "--torch-index", light]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    done = subprocess.run(command, env={**kept, **own}, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    asked = [str(python), "-c", "from importlib import metadata; print(metadata.version('torch'))"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip(), done.stdout


def test_without_a_driver_pytorch_is_taken_without_cuda(
    python: Path, indexes: tuple[Index, Index], tmp_path: Path
) -> None:
    ordinary, light = indexes
    version, said = installed(python, ordinary, "1.0", light.url, tmp_path)
    assert version == "1.0+cpu"
    assert not [path for path in ordinary.asked if path.endswith(".whl")]
    assert re.findall(r"^==> .+", said, re.MULTILINE)[0].startswith(f"==> Asking {light.url} for PyTorch without CUDA")
    assert len(re.findall(r"^==> done in \d+ s$", said, re.MULTILINE)) == 2
    before = len(light.asked)
    assert "Asking" not in installed(python, ordinary, "1.0", light.url, tmp_path)[1]  # it is there
    assert len(light.asked) == before


@pytest.mark.parametrize(
    ("version", "is_silent"),
    [("2.0", False), pytest.param("3.0", True, marks=pytest.mark.rare)],
    ids=["nobody", "no answer"],
)
def test_where_no_index_answers_the_ordinary_one_is_taken_soon(
    python: Path, indexes: tuple[Index, Index], tmp_path: Path, version: str, is_silent: bool
) -> None:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        if is_silent:
            place.listen()
        there, said = installed(python, indexes[0], version, f"http://127.0.0.1:{place.getsockname()[1]}", tmp_path)
    assert there == version
    told = re.findall(
        r"^==> http://127\.0\.0\.1:\d+ cannot be reached, or lacks it \((\d+) s\): the one with CUDA comes instead, about",
        said,
        re.MULTILINE,
    )
    assert len(told) == 1
    assert int(told[0]) <= 6
    assert "conflict" not in said  # pip's word for it


@pytest.mark.parametrize("reason", ["a driver", "no index", "no PyTorch", "another system"])
def test_nothing_is_asked_without_need(reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("numpy==1.0\n" if reason == "no PyTorch" else "torch==0.1\n")
    asked: list[str] = []
    steps: list[Sequence[str]] = []
    monkeypatch.setattr(install, "has_nvidia_driver", lambda: reason == "a driver")
    monkeypatch.setattr(install, "try_without_cuda", lambda pin, index: asked.append(pin))
    monkeypatch.setattr(install, "step", lambda title, command: steps.append(command) or 0)
    monkeypatch.setattr(sys, "platform", "darwin" if reason == "another system" else "linux")
    assert install.main([str(requirements), "--torch-index", "" if reason == "no index" else "http://127.0.0.1"]) == 0
    assert asked == []
    assert [command[-2:] for command in steps] == [["-r", str(requirements)]]


def test_a_step_that_says_nothing_gives_a_sign_of_life(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(install, "SIGN_SECONDS", 0.05)
    assert install.step("Waiting", [sys.executable, "-c", "import time; time.sleep(0.4)"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert re.fullmatch(rf"==> still at work after 0 s; 0\.0 GB are in {re.escape(str(tmp_path))}", said[1])


def test_a_failed_step_ends_the_installation_with_its_status(capsys: pytest.CaptureFixture[str]) -> None:
    started = time.monotonic()
    assert install.step("Trying", [sys.executable, "-c", "import sys; sys.exit(3)"]) == 3
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "==> Trying …"
    assert re.fullmatch(r"==> failed in \d+ s", said[1])
    assert time.monotonic() - started < 60


OF_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")


def test_ctrl_c_is_no_failure_of_make(tmp_path: Path) -> None:
    """A server that ends by it, and one whose port is taken."""
    said = []
    for ending in ("kill -INT 0; sleep 0.2; exit 1", "exit 1"):
        (tmp_path / "python").write_text(f"#!/bin/sh\ntrap : INT\n{ending}\n")
        (tmp_path / "python").chmod(0o755)
        command = ["make", "-o", ".venv/.run-ready", "run", f"BIN={tmp_path}"]
        done = subprocess.run(
            command,
            cwd=ROOT,
            capture_output=True,
            text=True,
            start_new_session=True,
            preexec_fn=interrupts.TAKEN,
            check=False,
            env={
                name: value for name, value in os.environ.items() if name not in OF_MAKE
            },  # `make test` runs this test
        )
        said.append((done.stdout, done.stderr))
    assert said[0] == ("==> Stopped. The same command starts it again.\n", "")
    assert "make run PORT=" in said[1][0]
    assert "Error 1" in said[1][1]


def test_make_uses_it_for_both_files_of_requirements() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.findall(r"install\.py (\S+)", makefile) == ["requirements.txt", "tests/requirements.txt"]
    assert install.torch_pin((ROOT / "requirements.txt").read_text(encoding="utf-8"))
    index = re.search(r"^TORCH_INDEX \?= (\S+)$", makefile, re.MULTILINE)
    assert index is not None
    assert index.group(1) == install.CPU_INDEX
    assert f"ARG TORCH_INDEX={install.CPU_INDEX}\n" in (ROOT / "Dockerfile").read_text(encoding="utf-8")
