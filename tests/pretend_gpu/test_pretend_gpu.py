"""The pretend CUDA machine, in a process of its own: its library must be there before torch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.support.places import ROOT

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("g++") is None, reason="g++ on Linux is needed for the pretend GPU"
)


def _counted(*names: str) -> dict[str, int]:
    """What `python -m tests.pretend_gpu` says in its last lines; it must end well."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.pretend_gpu", *names]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{ran.stdout[-4000:]}\n{ran.stderr[-4000:]}"
    lines = [line.split(": ") for line in ran.stdout.splitlines()[-3:]]
    return {kind: int(count) for kind, count in lines}


def test_one_family_on_a_pretend_cuda_machine() -> None:
    counts = _counted(
        "bert",
        "a_pass_without_memory_says_so_and_the_next_one_works",
        "a_lost_device_is_not_ready_and_says_so",
        "passes_of_two_models_never_meet_on_a_device_and_do_on_the_cpu",
    )
    assert counts["equal"] > 60
    assert counts["refused"] > 0
    assert counts["explained"] == 0


@pytest.mark.rare
@pytest.mark.timeout(3600)
def test_the_project_on_a_pretend_cuda_machine() -> None:
    counts = _counted()
    assert counts["equal"] > 1_500
    assert counts["refused"] > 200
    assert counts["explained"] < 20
