"""Plain pages beside the heaviest work there is: a training run, and a corpus of 36,000 sentences that is embedded."""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.exceptions import ConnectionClosed

from tests.support.corpus_paths import ask_for_path
from tests.support.measurements import percentile_95, report
from tests.support.places import ROOT
from tests.support.server import Server, start_server, stop_server
from tests.support.session import Session, opened
from tests.support.visits import WORDS, plain_visits

PEOPLE, VISITS, PAUSE = 30, 6, 8.0  # on plain pages, what each does, and the most seconds between two of these
SENTENCES, WORDS_EACH = 36_000, 20  # of the corpus: it takes longer than the visits


@contextmanager
def training(folder: Path) -> Iterator[Callable[[], int]]:
    """A training run that goes on for longer than the visits; yields a function that tells its step."""
    from components.training import runs
    from components.training.data import load, split
    from components.training.settings import TrainingSettings

    settings = TrainingSettings(epochs=100)
    data = load("demo:pairs")
    run = runs.create(settings, data, split(data, settings.held_out_share, settings.seed), folder)
    worker = subprocess.Popen([sys.executable, "-m", "components.training.worker", str(run.path)], cwd=ROOT)

    def step() -> int:
        assert worker.poll() is None
        return run.state().step

    try:
        end = time.monotonic() + 120
        while step() < 3:
            assert time.monotonic() < end
            time.sleep(0.2)
        yield step
    finally:
        worker.kill()
        worker.wait()


@contextmanager
def embedding(server: Server, cache: Path, file: Path) -> Iterator[Callable[[], bool]]:
    """One person who chose a large corpus and waits for it; yields a function that tells whether it is at work."""
    words = random.Random(0)
    file.write_text(
        "".join(" ".join(words.choices(WORDS, k=WORDS_EACH)) + f" {number}\n" for number in range(SENTENCES))
    )

    def at_work() -> bool:
        return bool(list(cache.glob("indexes/*.part")))

    def press(session: Session, label: str, query: str, states: tuple[WidgetState, ...] = ()) -> None:
        """Press a button once it is there: what it is about is prepared by a job."""
        end = time.monotonic() + 120
        while not session.labelled(label):
            assert time.monotonic() < end, label
            time.sleep(0.2)
            session.run("search", query, states=states)
        (button,) = session.labelled(label)
        pressed = WidgetState(id=button.id, trigger_value=True)  # type: ignore[attr-defined]
        session.run("search", query, states=(*states, pressed))

    with opened(server.url) as session:
        session.run("search", "q=river")
        session.wait_for_result("search", "q=river", seconds=120)  # the demo's corpus is embedded: what follows is ours
        states, _ = ask_for_path(session, ["File on this machine"], file)
        press(session, f"Use these {SENTENCES:,} sentences", "v=corpus", states)
        address = session.address.replace("v=corpus", "v=hits")
        session.run("search", address)
        press(session, "Embed the corpus", address)
        end = time.monotonic() + 60
        while not at_work():
            assert time.monotonic() < end
            time.sleep(0.1)
        with ThreadPoolExecutor(1) as waiting:  # as a browser, which asks for the progress every second
            waited = waiting.submit(session.wait_for_result, "search", address, seconds=600)
            try:
                yield at_work
            finally:
                session.socket.close()
            assert isinstance(waited.exception(60), ConnectionClosed)


@pytest.mark.timeout(900)
def test_plain_pages_stay_quick_beside_a_training_run_and_a_large_corpus(tmp_path: Path) -> None:
    """The idle server is measured before and after, since later rounds find more in the caches; the quicker one counts."""
    cache = tmp_path / "cache"
    server = start_server(tmp_path / "log.txt", BERT_INTERNALS_CACHE=str(cache), BERT_INTERNALS_WARM_UP="0")
    try:
        plain_visits(server, PEOPLE, VISITS, PAUSE)  # the first ones load the model
        idle = plain_visits(server, PEOPLE, VISITS, PAUSE)
        with training(tmp_path / "run") as step, embedding(server, cache, tmp_path / "corpus.txt") as at_work:
            before = step()
            beside = plain_visits(server, PEOPLE, VISITS, PAUSE)
            steps = step() - before
            assert at_work()
        idle_after = plain_visits(server, PEOPLE, VISITS, PAUSE)
    finally:
        stop_server(server)
    medians = min(statistics.median(idle), statistics.median(idle_after)), statistics.median(beside)
    ratio = medians[1] / medians[0]
    report(
        f"{PEOPLE} people on plain pages: median {1000 * medians[0]:.0f} ms, beside a training run ({steps} steps) and the "
        f"embedding of {SENTENCES:,} sentences {1000 * medians[1]:.0f} ms = {ratio:.2f} x "
        f"(95th percentile {1000 * percentile_95(beside):.0f} ms)"
    )
    assert steps > 0
    assert ratio <= 3
