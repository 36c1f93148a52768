"""What happens to the disk under a server: it is killed while it writes, shared with a second server, emptied, full."""

from __future__ import annotations

import resource
import shutil
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.exceptions import ConnectionClosed

from tests.support.server import Server, start_server, stop_server
from tests.support.session import Session, opened

QUERY = urlencode([("q", "a storm at sea")])
LIST = "bert_internals_hits"


@contextmanager
def running(folder: Path, name: str, cache: Path) -> Iterator[Server]:
    server = start_server(folder / f"{name}.txt", BERT_INTERNALS_CACHE=str(cache), BERT_INTERNALS_WARM_UP="0")
    try:
        yield server
    finally:
        stop_server(server)


def drawn(session: Session, kind: str) -> list[object]:
    return [element for element in session.elements if type(element).__name__ == kind]


def alerts(session: Session) -> str:
    return "\n".join(element.body for element in drawn(session, "Alert"))  # type: ignore[attr-defined]


def hits(session: Session, query: str) -> tuple[str, list[str]]:
    """The list of hits and the figures that Search draws once its corpus is embedded."""
    session.run("search", query)
    session.wait_for_result("search", query, seconds=120)
    assert not alerts(session)
    lists = [element for element in drawn(session, "BidiComponent") if element.component_name == LIST]  # type: ignore[attr-defined]
    assert len(lists) == 1
    return lists[0].json, [figure.spec for figure in drawn(session, "PlotlyChart")]  # type: ignore[attr-defined]


def searched(server: Server, query: str = QUERY) -> tuple[str, list[str]]:
    with opened(server.url) as session:
        return hits(session, query)


def unfinished(cache: Path) -> list[Path]:
    return list(cache.glob("indexes/*.part/done.json"))


@pytest.mark.rare
def test_a_server_killed_while_it_embeds_leaves_what_two_others_finish_once(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with running(tmp_path, "killed", cache) as server, ThreadPoolExecutor(1) as people:
        asked = people.submit(searched, server)
        end = time.monotonic() + 120
        while not unfinished(cache):
            assert time.monotonic() < end
            time.sleep(0.005)
        server.process.kill()
        assert isinstance(asked.exception(120), (OSError, ConnectionClosed))
    assert unfinished(cache)
    with running(tmp_path, "first", cache) as first, running(tmp_path, "second", cache) as second:
        with ThreadPoolExecutor(2) as people:
            found = list(people.map(searched, (first, second)))
        assert "storm" in found[0][0]
        assert found[0] == found[1]
        assert not unfinished(cache)
        assert len(list(cache.glob("indexes/*/manifest.json"))) == 1


@pytest.mark.rare
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_server_asked_to_end_while_it_embeds_ends_without_a_crash(tmp_path: Path, how: signal.Signals) -> None:
    """Python ended the threads of the jobs in the middle of torch's code, which aborted the process."""
    cache = tmp_path / "cache"
    with running(tmp_path, "ended", cache) as server, ThreadPoolExecutor(1) as people:
        asked = people.submit(searched, server)
        end = time.monotonic() + 120
        while not unfinished(cache):
            assert time.monotonic() < end
            time.sleep(0.005)
        server.process.send_signal(how)
        # Streamlit says "Aborted!" on Ctrl-C, and sends itself SIGTERM again where that came.
        assert server.process.wait(120) == (1 if how == signal.SIGINT else -how)
        assert isinstance(asked.exception(120), (OSError, ConnectionClosed, AssertionError))
        said = server.log.read_text()
        assert "terminate called" not in said
        assert "Traceback" not in said
        assert "Fatal" not in said
    assert unfinished(cache)
    with running(tmp_path, "next", cache) as server:
        assert "storm" in searched(server)[0]
    assert not unfinished(cache)


@pytest.mark.rare
def test_a_server_whose_cache_is_removed_and_full_says_so_and_recovers(tmp_path: Path) -> None:
    cache, query = tmp_path / "cache", QUERY
    with running(tmp_path, "server", cache) as server:
        before = searched(server, query)
        shutil.rmtree(cache)
        limits = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (100_000, limits[1]))
        with opened(server.url) as session:
            session.run("search", query)
            session.wait_for_result("search", query)
            said = alerts(session)
            assert "could not write a file while embedding the corpus" in said
            assert "File too large" in said
            assert str(cache) not in said
            button = next(button for button in drawn(session, "Button") if button.label == "Continue")  # type: ignore[attr-defined]
            session.run("layers")  # what needs no disk goes on
            session.wait_for_result("layers")
            assert drawn(session, "PlotlyChart")
            assert not alerts(session)
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)
            session.run("search", query)
            session.run("search", query, states=(WidgetState(id=button.id, trigger_value=True),))  # type: ignore[attr-defined]
            session.wait_for_result("search", query, seconds=120)
            assert not alerts(session)
        assert searched(server, query) == before  # built again
        assert server.process.poll() is None
