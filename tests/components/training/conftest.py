"""What the tests of training share: new runs of a tiny random BERT, and one run that has learned its task."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.concepts import concept_pairs


@pytest.fixture(scope="session")
def one_thread() -> Iterator[None]:
    """One thread, as in the training process on two cores: sums are then the same to the last bit."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def new_run(concept_model: Path, tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> Callable[..., Any]:
    """A new run on the concepts; `data` and any setting may be given."""
    from components.training import runs
    from components.training.data import split
    from components.training.settings import TrainingSettings

    def create(data: Any = None, **changes: Any) -> Any:
        options = {
            "model": str(concept_model),
            "batch_size": 32,
            "learning_rate": 6e-3,
            "adapter": False,
            "epochs": 4,
            "evaluate_every": 10,
            "watch_every": 15,
            "watch": ("ask1 ask2 ask3", "say1 say2", "say9"),
        }
        settings = TrainingSettings(**{**options, **changes})
        rows = concept_pairs() if data is None else data
        parts = split(rows, settings.held_out_share, settings.seed, settings.max_rows)
        return runs.create(settings, rows, parts, tmp_path_factory.mktemp("runs") / "run")

    return create


@pytest.fixture(scope="session")
def train_here(one_thread: None) -> Callable[..., Any]:
    """Runs `worker.main` in this process, without its low priority, and returns the run's state."""
    from components.training import worker

    def train(run: Any, checkpoint_seconds: float = 1e9) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(worker, "_give_way", lambda: None)
            gc.freeze()  # the trainer collects garbage often, and would look each time at all that is loaded here
            try:
                worker.main([str(run.path), "--checkpoint-seconds", str(checkpoint_seconds)])
            finally:
                gc.unfreeze()
        return run.state()

    return train


@pytest.fixture(scope="session")
def learned(new_run: Callable[..., Any], train_here: Callable[..., Any]) -> Any:
    """A run that is done. Shared: do not change its files."""
    run = new_run()
    state = train_here(run)
    assert state.error == ""
    return run
