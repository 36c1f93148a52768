"""A server in operation: settings from a file, readiness, figures for Prometheus, and a log without people's texts."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState

from tests.support.places import ROOT
from tests.support.server import Server, start_server, stop_server
from tests.support.session import Session, opened

SECRET = "Zanzibar quokka marmalade"
SETTINGS = """
[uploads]
uploads = false
[server]
metrics = true
warm_up = false
"""
LINE = re.compile(r'(bert_internals_\w+)(?:\{(\w+)="((?:[^"\\]|\\.)*)"\})? (\S+)')


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("operation")
    (folder / "settings.toml").write_text(SETTINGS)
    running = start_server(
        folder / "log.txt",
        BERT_INTERNALS_SETTINGS=str(folder / "settings.toml"),
        BERT_INTERNALS_WARM_UP="",  # empty is unset: the file decides
        BERT_INTERNALS_METRIC="1",
    )
    yield running
    stop_server(running)


def answer(server: Server, path: str, method: str = "GET", host: str | None = None) -> tuple[int, str, str]:
    """Status, type and text of an answer."""
    headers = {"Host": host} if host else {}
    request = urllib.request.Request(server.url + path, b"x" if method == "PUT" else None, headers, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=30) as received:
            return received.status, received.headers["content-type"], received.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers["content-type"], refused.read().decode()


def figures(server: Server) -> dict[tuple[str, str], float]:
    """(name, label's value) to number: what a reader of Prometheus' format finds, each line checked."""
    status, kind, text = answer(server, "/metrics")
    assert status == 200
    assert kind.startswith("text/plain; version=0.0.4")
    assert text.endswith("\n")
    declared: dict[str, str] = {}
    found: dict[tuple[str, str], float] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name, declared_as = line.removeprefix("# TYPE ").split(" ")
            assert name not in declared
            declared[name] = declared_as
        elif not line.startswith("# HELP "):
            name, _, label, number = LINE.fullmatch(line).groups("")  # type: ignore[union-attr]
            assert declared[name] in {"gauge", "counter"}
            assert (declared[name] == "counter") == name.endswith("_total")
            assert (name, label) not in found
            found[name, label] = float(number)
    return found


def test_a_server_becomes_ready_by_being_asked(server: Server) -> None:
    """Under any name, and with no session: an orchestrator sends nobody to a server that is not ready."""
    assert figures(server)["bert_internals_models_loaded", ""] == 0
    seen = set()
    for _ in range(300):
        status, _, text = answer(server, "/ready", host="10.0.0.7.probe.internal")
        seen.add((status, text))
        if status == 200:
            break
        time.sleep(0.2)
    assert seen == {(503, "loading\n"), (200, "ready\n")}
    assert figures(server)["bert_internals_models_loaded", ""] == 1
    assert answer(server, "/tokens/ready", host="probe.internal")[0] == 403  # this address only


def test_the_figures_follow_what_the_server_does(server: Server) -> None:
    def until(condition: str) -> dict[tuple[str, str], float]:
        for _ in range(600):
            now = figures(server)
            if now["bert_internals_sessions", ""] == (1 if condition == "open" else 0):
                return now
            time.sleep(0.1)
        raise AssertionError(condition)

    before = until("closed")
    with opened(server.url) as session:
        for _ in range(300):
            session.run("layers", "s=One+sentence&s=another+sentence")
            if figures(server)["bert_internals_cache_bytes", "traces"] > 0:
                break
            time.sleep(0.2)
        during = until("open")
    assert during["bert_internals_forward_passes_total", ""] > before["bert_internals_forward_passes_total", ""]
    assert 0 < during["bert_internals_cache_bytes", "traces"] <= during["bert_internals_cache_limit_bytes", "traces"]
    assert during["bert_internals_memory_bytes", ""] > 100e6
    assert {label for name, label in during if name == "bert_internals_jobs_waiting"} >= {"models", "maps", "training"}
    until("closed")


@pytest.mark.rare
def test_long_work_ends_with_the_session_that_waits_for_it(server: Server) -> None:
    """What this session requests takes minutes, and nobody else waits for it."""

    def running() -> float:
        return figures(server)["bert_internals_jobs_running", "explanations"]

    def wait_until(number: int) -> None:
        end = time.monotonic() + 120
        while running() != number:
            assert time.monotonic() < end
            time.sleep(0.1)

    long = "+".join(f"word{number}" for number in range(28))
    with opened(server.url) as session:
        session.run("layers")
        session.wait_for_result("layers")  # the model is loaded
        session.run("why", f"v=score-split&by=words&steps=100&s=One+{long}&s=Another+{long}")
        wait_until(1)
        session.socket.socket.close()  # without a word, as a computer that is switched off
    wait_until(0)
    with opened(server.url) as other:
        other.run("why", "v=score-split&by=tokens")
        assert not any(type(element).__name__ == "Exception" for element in other.elements)
    assert "Traceback" not in server.log.read_text()


def test_the_figures_are_told_to_known_hosts_only(server: Server) -> None:
    assert answer(server, "/metrics", host="evil.example")[0] == 403


def test_the_files_settings_hold_and_misspelt_variables_are_named(server: Server) -> None:
    assert answer(server, "/_stcore/upload_file/a/b", "PUT")[:1] == (403,)
    log = server.log.read_text()
    assert "uploads are not offered (BERT_INTERNALS_UPLOADS=1 allows them)" in log
    assert "BERT_INTERNALS_METRIC is not a setting and does nothing. Perhaps BERT_INTERNALS_METRICS is meant." in log


def test_the_log_holds_nothing_that_people_wrote(server: Server) -> None:
    """Sentences, queries, names of models, values that no control has, in addresses and as widgets' values."""
    text, name = quote(SECRET), quote("secret-" + SECRET.replace(" ", "-"))
    queries = {
        "tokens": f"s={text}&t={text}&l={text}",
        "layers": f"s={text}&s={text}+two&pool={text}",
        "why": f"s={text}&s=A+{text}&view={text}",
        "heatmaps": f"s={text}&m2={name}",
        "search": f"q={text}&k={text}",
        "model": f"m=/{name}/{name}",
        "evaluate": f"m={name}/{name}&l=99",
    }
    with opened(server.url) as session:
        for page, query in queries.items():
            session.run(page, query)
            send_everywhere(session, page, query)
        session.run(f"no-such-{SECRET}", f"s={text}")
        session.socket.send(SECRET.encode())
        session.run("about")
        assert session.elements
    with pytest.raises(Exception, match="403"), opened(server.url, origin="http://evil.example") as session:
        session.run("tokens", f"s={text}")
    log = server.log.read_text()
    assert "refused: host" in log  # the log is written
    for word in (*SECRET.split(), text, name):
        assert word not in log


FAILING = f"""
import streamlit as st
try:
    int({SECRET!r})
except ValueError as problem:
    raise KeyError({SECRET!r}) from problem
"""
SERVING = """
from pathlib import Path
import streamlit as st
from dashboard import logs
logs.keep_texts_out()
app = st.App(Path(__file__).parent / "failing.py")
"""


@pytest.mark.rare
def test_an_error_that_nobody_caught_is_logged_without_its_message(tmp_path: Path) -> None:
    """Streamlit logs it itself, and it has a way of its own to print tracebacks, which our configuration switches off."""
    (tmp_path / "failing.py").write_text(FAILING)
    (tmp_path / "serving.py").write_text(SERVING)
    running = start_server(tmp_path / "log.txt", str(tmp_path / "serving.py"), PYTHONPATH=str(ROOT))
    try:
        with opened(running.url) as session:
            session.run()
    finally:
        stop_server(running)
    log = running.log.read_text()
    assert "failing.py" in log
    assert "builtins.KeyError (message left out)" in log
    assert SECRET not in log


def send_everywhere(session: Session, page: str, query: str) -> None:
    """Send the secret as the value of every widget of the page, as a text and as JSON."""
    widgets = [str(element.id) for element in session.elements if getattr(element, "id", "")]  # type: ignore[attr-defined]
    session.run(page, query, states=tuple(WidgetState(id=widget, string_value=SECRET) for widget in widgets))
    session.run(page, query, states=tuple(WidgetState(id=widget, json_value=f'{{"{SECRET}') for widget in widgets))
    session.run(page, query)


def test_a_setting_that_cannot_be_read_is_one_line_and_no_server() -> None:
    command = [sys.executable, "-m", "streamlit", "run", "dashboard/app.py", "--server.port", "0"]
    settings = {"BERT_INTERNALS_TRAINING": "flase", "PATH": "/usr/bin:/bin", "HOME": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode != 0
    assert done.stderr.splitlines() == [
        "The server does not start. BERT_INTERNALS_TRAINING is 'flase'. It must be 1 (yes) or 0 (no). Set "
        "BERT_INTERNALS_TRAINING to 0, or leave it unset."
    ]
