"""Speed is measured as ratios within one run; everything here is marked and left out of the timed tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import browser  # noqa: F401 - one browser for all benchmarks


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.benchmark)
