"""sentence-transformers in the process of the tests: the import takes seconds, and the real process does it each time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.arrays import Float32
from components.model.files.sources import ModelFiles
from components.model.verification import comparison, reference
from components.model.verification.published_copy import not_compared, published_copy


def compare_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `verify` load the library's model here, from the same checked copy, without limits of memory and time."""

    def vectors(
        files: ModelFiles,
        name: str,
        nbytes: int,
        texts: Sequence[str],
        roles: Sequence[str],
        *_: Any,
        steps: dict[str, Float32] | None = None,
    ) -> tuple[str, Float32]:
        with published_copy(files, name) as folder:
            asked = {"folder": str(folder), "texts": list(texts), "roles": list(roles), "memory": nbytes}
            try:
                version, result = reference.embedded(asked | ({} if steps is None else {"steps": folder / "steps.npz"}))
                if steps is not None:
                    steps.update(np.load(folder / "steps.npz"))
            except Exception as problem:
                raise not_compared(name, f"sentence-transformers cannot load or run it: {problem}") from problem
        return f"sentence-transformers {version}", np.asarray(result)

    monkeypatch.setattr(reference, "_limit", lambda memory: None)
    monkeypatch.setattr(comparison, "reference_vectors", vectors)


@contextmanager
def as_published(folder: Path) -> Iterator[Any]:
    """sentence-transformers' own model of a folder that a test wrote, loaded from the folder itself, in float32 on the CPU."""
    import torch
    from sentence_transformers import SentenceTransformer

    yield SentenceTransformer(str(folder), device="cpu", local_files_only=True, model_kwargs={"dtype": torch.float32})
