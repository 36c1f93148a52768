"""All checks on the pretend CUDA machine, in a process of their own: its library must be there before torch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import ROOT

pytestmark = [
    pytest.mark.rare,
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform != "linux" or shutil.which("g++") is None, reason="g++ on Linux is needed"),
]


def test_the_project_on_a_pretend_cuda_machine(tmp_path: Path) -> None:
    environment = {**os.environ, "BERT_INTERNALS_CACHE": str(tmp_path), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.pretend_gpu"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr[-4000:]}"
    assert ran.stdout.splitlines()[-1].startswith("119 results"), ran.stdout
