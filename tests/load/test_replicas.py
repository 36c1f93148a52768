"""Two dashboards that share a model server, beside one that computes in its own process: what a move takes."""

from __future__ import annotations

import statistics
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from components.distributed.serving import Served
from components.model.catalog import EMBEDDED_KEY
from tests.support.measurements import percentile_95, report
from tests.support.model_server import ENVIRONMENT, model_server, wait_until_connected
from tests.support.server import Server, start_server, stop_server
from tests.support.visits import visits_with_own_texts

PEOPLE, MOVES, SECONDS = 8, 20, 40.0


def started(folder: Path, name: str, **environment: str) -> Server:
    (folder / name).mkdir()
    return start_server(folder / name / "log.txt", BERT_INTERNALS_WARM_UP="0", **environment)


def passes_of(address: str) -> int:
    """How many passes the model server has computed."""
    served = Served(address)
    wait_until_connected(served)
    passes = served.ask("trace_passes", seconds=60)
    assert passes is not None
    return int(passes)


@pytest.mark.timeout(600)
def test_two_dashboards_with_one_model_server_are_about_as_fast_as_one_that_computes(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    local = started(tmp_path, "local")
    try:
        visits_with_own_texts(local, people=4, moves=3, seconds=3.0, seed=0)  # the first ones load the model
        alone = visits_with_own_texts(local, PEOPLE, MOVES, SECONDS, seed=1)
    finally:
        stop_server(local)
    with model_server(tmp_path_factory.mktemp("r"), EMBEDDED_KEY) as cluster:
        replicas = [
            started(tmp_path, name, **ENVIRONMENT, BERT_INTERNALS_BACKEND=cluster.address) for name in ("one", "two")
        ]
        try:
            with ThreadPoolExecutor(2) as both:

                def visits(number: int, people: int, moves: int, seconds: float) -> list[float]:
                    return visits_with_own_texts(replicas[number], people, moves, seconds, seed=2 + number)

                list(both.map(lambda number: visits(number, 2, 6, 15.0), range(2)))  # until both are connected
                taken = both.map(lambda number: visits(number, PEOPLE // 2, MOVES, SECONDS), range(2))
                shared = [seconds for of_one in taken for seconds in of_one]
            passes = passes_of(cluster.address)
        finally:
            logs = [replica.log.read_text(encoding="utf-8") for replica in replicas]
            for replica in replicas:
                stop_server(replica)
    ratio = statistics.median(shared) / statistics.median(alone)
    report(
        f"{PEOPLE} people, {len(shared)} moves in {SECONDS:.0f} s: two dashboards with a model server, median "
        f"{1000 * statistics.median(shared):.0f} ms, 95th percentile {1000 * percentile_95(shared):.0f} ms; one that computes, "
        f"{1000 * statistics.median(alone):.0f} and {1000 * percentile_95(alone):.0f} ms = {ratio:.2f} x"
    )
    for log in logs:
        assert "Traceback" not in log
        assert "does not answer" not in log
        assert "go through Ray" not in log
    assert passes > len(shared) / 4  # the server computed: some moves need no pass, and some share one
    assert ratio <= 1.5
