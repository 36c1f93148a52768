"""`index` ended at random moments (`make fuzz`): the next run ends as an uninterrupted one did, bit for bit."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.killed_commands import (
    STATUS,
    End,
    Stage,
    contents,
    index_command,
    new_folder,
    stage,
    without_killed_results,
)
from tests.support.tiny import save_tiny

pytestmark = [
    pytest.mark.fuzz,
    pytest.mark.timeout(3_600),
    pytest.mark.skipif(sys.platform == "win32", reason="processes are not forked there"),
]
MOMENTS = int(os.environ.get("FUZZ_MOMENTS", "100"))
MOST_ENDS = 3  # of one index, one after the other, before it is left in peace
SEED = 20_261_125
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def commands(model: Path) -> Iterator[Stage]:
    with stage(model) as running:
        yield running


def test_an_index_ended_at_random_moments_is_finished_by_the_same_command(
    commands: Stage, model: Path, tmp_path: Path
) -> None:
    """FUZZ_MOMENTS=10 runs fewer. Moments are drawn over the time that an uninterrupted command takes."""
    numbers, command = random.Random(SEED), index_command(model)
    whole = new_folder(tmp_path / "whole")
    assert commands.run(whole, *command).status == 0
    expected = contents(whole)
    timed = [commands.run(new_folder(tmp_path / "timed"), *command).seconds]  # the first takes longer
    assert {"idx/layer-02-mean.npy", "idx/manifest.json", "made.json"} <= set(expected)
    moments, hit = 0, 0
    while moments < MOMENTS:
        folder = new_folder(tmp_path / f"moment-{moments}")
        if (
            moments and len(timed) < 1 + moments // 10
        ):  # as long as it takes now: other work on the machine begins and ends
            timed.append(commands.run(new_folder(tmp_path / f"timed-{moments}"), *command).seconds)
        ends = []
        for _ in range(min(numbers.randint(1, MOST_ENDS), MOMENTS - moments)):
            end = End(numbers.choice(SIGNALS), seconds=numbers.uniform(0, 1.1 * timed[-1]))
            ended = commands.run(folder, *command, end=end)
            ends.append((signal.Signals(end.signal).name, end.seconds))
            moments += 1
            # Before it takes them, a signal ends the process itself; and it may have ended before.
            assert ended.status in (0, STATUS[signal.Signals(end.signal)], -end.signal), (ends, ended.stderr)
            assert "Traceback" not in ended.stderr, (ends, ended.stderr)
            hit += ended.status != 0
        again = commands.run(folder, *command)
        assert again.status == 0, (ends, again.stderr)
        assert without_killed_results(contents(folder)) == expected, ends
        shutil.rmtree(folder)
    assert hit >= MOMENTS // 2, f"{hit} of {MOMENTS} ended a command: the others came after its end"
