"""Starting the process in which sentence-transformers embeds texts, and ending it when it takes too long."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from components import operator_settings
from components.arrays import Float32
from components.jobs import IsStopped, Stopped
from components.model.files.sources import ModelFiles
from components.model.verification.published_copy import not_compared, published_copy
from components.sizes import in_words

REFERENCE = "components.model.verification.reference"
MOST_SECONDS = 900.0  # of the process; for three texts it needs some ten, most of them to import the library
WATCH_SECONDS = 0.1
# Memory that it may take besides three times the weights (the file, and two copies): for threads, and for a batch.
WORKING_MEMORY = 4 << 30
_ROOT = Path(__file__).parents[3]


def reference_vectors(
    files: ModelFiles,
    name: str,
    nbytes: int,
    texts: Sequence[str],
    roles: Sequence[str],
    is_stopped: IsStopped = lambda: False,
    most_seconds: float = MOST_SECONDS,
    steps: dict[str, Float32] | None = None,
) -> tuple[str, Float32]:
    """The library's version, and its vectors of texts, float32 [role, text, dim]; a role is "", "query" or "document".

    `steps`, for one text in one role, is filled with what each module hands on: "input_ids 0", "token_embeddings 0",
    "sentence_embedding 1" and so on, by the number of the module.

    `nbytes` are those of the weights. Raises ModelError for a model that is not compared, with the reason, and Stopped.
    """
    with published_copy(files, name) as folder, tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as answered:
        vectors = folder / "vectors.npy"
        asked = {
            "folder": str(folder),
            "texts": list(texts),
            "roles": list(roles),
            "vectors": str(vectors),
            "memory": 3 * nbytes + WORKING_MEMORY,
            "steps": None if steps is None else str(folder / "steps.npz"),
        }
        process = subprocess.Popen(
            [sys.executable, "-m", REFERENCE],
            cwd=_ROOT,
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=answered,
            stderr=said,
        )
        try:
            _tell(process, asked)
            status = _ended(process, is_stopped, most_seconds)
        finally:
            process.kill()
            process.wait()
        if status is None:
            raise not_compared(name, f"the library took more than {most_seconds:,.0f} seconds")
        if status != 0:
            said.seek(0)
            raise not_compared(name, _reason(status, said.read().decode("utf-8", "replace"), int(str(asked["memory"]))))
        answered.seek(0)
        version = str(json.loads(answered.read())["version"])
        result: Float32 = np.load(vectors, allow_pickle=False)
        if steps is not None:
            with np.load(folder / "steps.npz", allow_pickle=False) as kept:
                steps.update(kept)
        return f"sentence-transformers {version}", result


def _environment() -> dict[str, str]:
    """No request leaves the machine, and no accelerator is taken."""
    return {
        **operator_settings.environment(),
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "CUDA_VISIBLE_DEVICES": "",
        "MALLOC_ARENA_MAX": "2",  # else each thread reserves addresses, which the limit counts
    }


def _tell(process: subprocess.Popen[bytes], asked: dict[str, Any]) -> None:
    """Write what is asked; a process that has ended already says why by its status."""
    assert process.stdin is not None
    try:
        with process.stdin as stream:
            stream.write(json.dumps(asked).encode())
    except BrokenPipeError:
        return


def _ended(process: subprocess.Popen[bytes], is_stopped: IsStopped, most_seconds: float) -> int | None:
    """The exit status; None for a process that is still running after its time. Raises Stopped."""
    end = time.monotonic() + most_seconds
    while (status := process.poll()) is None and time.monotonic() < end:
        if is_stopped():
            raise Stopped
        time.sleep(WATCH_SECONDS)
    return status


def _reason(status: int, said: str, memory: int) -> str:
    """Why the process failed, as the end of "because ..."."""
    lines = [line for line in said.strip().splitlines() if line.strip()]
    last = lines[-1][:300].rstrip(".") if lines else ""
    if status < 0 or "MemoryError" in last or "can't allocate" in last or "not enough memory" in last:
        return f"the library needs more memory than {in_words(memory, binary=True)}, or its process was ended"
    return f"sentence-transformers cannot load or run it: {last or f'exit status {status}'}"
