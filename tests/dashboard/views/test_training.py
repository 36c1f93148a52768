"""The Training page: what a run would be, how one goes, what it changed, and who may do it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from components.training import runs
from tests.dashboard.conftest import Open, figures, plain_table, setting, texts, traces
from tests.training_runs import EVALUATIONS, LOSSES, write_run


@pytest.fixture(autouse=True)
def _own_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERT_INTERNALS_CACHE", str(tmp_path))


def test_x(open_page: Open) -> None:
    for view in ("data", "objective", "run", "after"):
        app = open_page("training", view=view)
        print(view, [f.get("layout", {}).get("title") for f in figures(app)])
        print(texts(app))
        assert not app.exception
        assert not app.error
    write_run(runs.runs_folder())
    app = open_page("training", view="run")
    print(texts(app))
    assert not app.error
    assert 0
