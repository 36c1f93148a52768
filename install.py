"""Installs the packages of a requirements file with the Python that runs this, and says what it does and how long it takes.

`make run` and `make test` call it, so it needs only the standard library. On Linux, PyPI's PyTorch includes several GB of CUDA.
Without an NVIDIA driver nothing uses them: then PyTorch's own index is asked once, before, for the wheel without CUDA. Where it
does not answer within a few seconds, all goes on as if it had not been asked.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
ANSWER_SECONDS = 5.0  # for the index to name a file
PIP = (sys.executable, "-m", "pip", "install", "--disable-pip-version-check")
SIGN_SECONDS = 60.0  # between two lines of a step that is at work
FOUND = ("Downloading", "Using cached", "Processing", "Requirement already")  # how pip's lines begin once it has one


def main(arguments: Sequence[str] | None = None) -> int:
    """Install, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("requirements", type=Path, help="the file that names the packages")
    parser.add_argument(
        "--torch-index", default=CPU_INDEX, help="where PyTorch without CUDA is looked for; '' for nowhere"
    )
    parser.add_argument("--then", metavar="MODULE:FUNCTION", help="what is called with the installed packages")
    given = parser.parse_args(arguments)
    pin = torch_pin(given.requirements.read_text(encoding="utf-8"))
    if pin and given.torch_index and sys.platform == "linux" and not has_nvidia_driver() and not is_installed(pin):
        try_without_cuda(pin, given.torch_index)
    status = step(f"Installing the packages of {given.requirements}", [*PIP, "-r", str(given.requirements)])
    if status == 0 and given.then:
        code = "import pkgutil, sys; pkgutil.resolve_name(sys.argv[1])()"
        status = step("Compiling what draws maps, once a machine", [sys.executable, "-c", code, given.then])
    return status


def torch_pin(requirements: str) -> str | None:
    """The pinned PyTorch of a requirements file, as pip takes it; None where there is none."""
    found = re.search(r"^torch==[^\s;#]+", requirements, re.MULTILINE)
    return found.group() if found else None


def has_nvidia_driver() -> bool:
    """Whether CUDA could run here."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def is_installed(pin: str) -> bool:
    """Whether this version is here already, with CUDA or without."""
    try:
        return metadata.version("torch").partition("+")[0] == pin.partition("==")[2]
    except metadata.PackageNotFoundError:
        return False


def try_without_cuda(pin: str, index: str) -> bool:
    """Install PyTorch alone from an index of wheels without CUDA; False where that cannot be had."""
    say(f"Asking {index} for PyTorch without CUDA: there is no NVIDIA driver here …")
    started = time.monotonic()
    # Alone: what it needs has its pins in the requirements, and comes from the ordinary index.
    command = [*PIP, "--index-url", index, "--retries", "0", "--timeout", f"{ANSWER_SECONDS:.0f}", "--no-deps", pin]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as pip:
        assert pip.stdout is not None
        # Its own limit holds for each address of the host, and for each file.
        limit = threading.Timer(ANSWER_SECONDS, pip.terminate)
        limit.start()
        is_found = False  # before it, pip names what it could not find a conflict of the requirements
        for line in pip.stdout:
            if line.strip().startswith(FOUND):
                limit.cancel()
                is_found = True
            if is_found:
                say(line.rstrip(), mark="   ")
        limit.cancel()
    seconds = time.monotonic() - started
    if pip.returncode == 0:
        say(f"done in {in_words(seconds)}")
    else:
        reason = "did not send it whole" if is_found else "cannot be reached, or lacks it"
        say(
            f"{index} {reason} ({in_words(seconds)}): the one with CUDA comes instead, about 3.2 GB in "
            "all. Some minutes may pass between two lines."
        )
    return pip.returncode == 0


def step(title: str, command: Sequence[str]) -> int:
    """Run a command below a title, and say how long it took. Returns its exit status."""
    say(f"{title} …")
    started = time.monotonic()
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            try:
                process.wait(SIGN_SECONDS)
            except subprocess.TimeoutExpired:
                here = bytes_below(sys.prefix) / 1e9
                say(f"still at work after {in_words(time.monotonic() - started)}; {here:.1f} GB are in {sys.prefix}")
    status = process.returncode
    say(f"{'done' if status == 0 else 'failed'} in {in_words(time.monotonic() - started)}")
    return status


def bytes_below(folder: str) -> int:
    """The bytes of a folder's files; those that vanish while they are counted are none."""
    size = 0
    for below, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += os.lstat(os.path.join(below, name)).st_size
    return size


def in_words(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def say(text: str, mark: str = "==>") -> None:
    sys.stdout.write(f"{mark} {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        ended = main()
    except KeyboardInterrupt:
        say("Stopped. The same command goes on from here.")
        ended = 130
    sys.exit(ended)
