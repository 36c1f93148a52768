"""Speed is measured as ratios within one run; everything here is marked and left out of the timed tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support.browser import started_browser
from tests.support.server import Server, start_server, stop_server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.benchmark)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all benchmarks."""
    with started_browser() as started:
        yield started


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts dashboards, or other scripts, for one benchmark."""
    started: list[Server] = []

    def start(script: str = "dashboard/app.py") -> Server:
        started.append(start_server(tmp_path / f"log{len(started)}.txt", script))
        return started[-1]

    yield start
    for one in started:
        stop_server(one)
