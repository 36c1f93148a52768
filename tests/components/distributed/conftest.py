"""One cluster at a time: Ray gives up when a node takes more than 30 seconds to start, as two do that start side by side."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from filelock import FileLock


@pytest.fixture(scope="module")
def no_other_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whoever starts a cluster waits for those of the run's other processes to end; other tests of a file wait for none."""
    # The folder that contains this process's own is shared by all processes of a run.
    with FileLock(tmp_path_factory.getbasetemp().parent / "ray.lock"):
        yield
