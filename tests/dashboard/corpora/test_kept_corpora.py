"""A corpus of one's own stays: for many people at once, after a restart, and for whoever has a link to it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.jobs import Stopped
from components.sizes import memory_of
from dashboard import caching, state
from dashboard.corpora import current
from tests.support.pages import Open, at_rest, texts


def page() -> None:
    """The chooser by itself, behind what main.py asks first."""
    import streamlit as st

    from dashboard.corpora import chooser, current
    from dashboard.jobs.requests import NotReady
    from dashboard.ui import messages
    from dashboard.ui.waiting import frame

    def view() -> None:
        try:
            current.make_ready()
        except NotReady as problem:  # as in main.py
            frame.draw(problem)
            current.offer_demo(problem)
            return
        chooser.choose()
        st.markdown(f"In use: {current.corpus().name}: {current.corpus().texts[0]}")

    messages.guarded(lambda: frame.view(view), "testing")


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("BERT_INTERNALS_CACHE", str(tmp_path))
    caching.kept_files.clear()
    yield
    caching.kept_files.clear()
    caching.parsed().clear()


def restart() -> None:
    """What a new process knows: the files alone."""
    caching.kept_files.clear()
    caching.parsed().clear()


def with_corpus(number: int) -> AppTest:
    app = AppTest.from_function(page, default_timeout=30).run()
    app.segmented_control(key="corpus_way").set_value("upload").run()
    content = f"Sentence of person {number}.\nAnother one.\n".encode()
    app.file_uploader(key="corpus_file").upload(f"of {number}.txt", content).run()
    return app.button(key="use_corpus").click().run()


@pytest.mark.parametrize("people", [pytest.param(12, id="12"), pytest.param(60, id="60", marks=pytest.mark.rare)])
def test_each_of_many_people_keeps_a_corpus_though_memory_has_room_for_few(
    people: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = 0
    monkeypatch.setattr(caching, "person", lambda: f"person {person}")  # all sessions of AppTest have one id
    sessions = [with_corpus(0)]
    one = caching.corpora().find(sessions[0].session_state["corpus"])
    assert one is not None
    monkeypatch.setattr(caching.parsed()._kept, "limit", 6 * memory_of(one))
    monkeypatch.setattr(caching.parsed()._kept._entries, "_Cache__maxsize", 6 * memory_of(one))
    monkeypatch.setattr(caching.parsed(), "limit", 6 * memory_of(one))
    for person in range(1, people):
        sessions.append(with_corpus(person))
    kept = sum(caching.corpora().find(app.session_state["corpus"]) is not None for app in sessions)
    assert kept < people / 2  # else the test shows nothing
    for person, app in enumerate(sessions):
        assert f"In use: of {person}.txt: Sentence of person {person}." in texts(at_rest(app.run()))


def test_a_link_finds_a_corpus_after_a_restart(open_page: Open) -> None:
    key = with_corpus(7).session_state["corpus"]
    restart()
    app = at_rest(open_page("search", v="corpus", corpus=key))
    assert "**of 7.txt**" in texts(app)
    found = caching.corpora().find(key)
    assert found is not None
    assert found.texts == ("Sentence of person 7.", "Another one.")


def test_whoever_stops_the_reading_can_use_the_demo_corpus_or_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    app = with_corpus(8)
    key = app.session_state["corpus"]
    restart()
    release = threading.Event()

    def slow(_key: str, _source: object, _: object, is_stopped: Callable[[], bool]) -> None:
        while not release.wait(0.02):
            if is_stopped():
                raise Stopped

    try:
        with monkeypatch.context() as patch:
            patch.setattr(current, "_read_again", slow)
            app.run()
            app.button(key="stop_corpus").click().run()
            assert app.button(key="again_corpus")
            assert "In use:" not in texts(app)
            app.button(key="demo_instead").click().run()
            assert "In use: Demo news" in texts(at_rest(app))
            assert app.session_state["corpus"] == ""
    finally:
        release.set()
    assert key  # it is still kept: a link to it opens it
    app.session_state["corpus"] = key
    app.run()
    if "In use: of 8.txt" not in texts(at_rest(app)):
        app.button(key="again_corpus").click().run()
    assert "In use: of 8.txt" in texts(at_rest(app))


def test_a_corpus_whose_file_is_gone_is_said_and_the_demo_is_used(
    open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = with_corpus(7).session_state["corpus"]
    restart()
    for path in (tmp_path / "uploads").iterdir():
        if path.suffix != ".json":
            path.unlink()
    monkeypatch.setattr(state, "NOTICE_SECONDS", 120.0)  # the included model may have to be loaded first
    app = at_rest(open_page("search", v="corpus", corpus=key))
    assert "is no longer kept on this server" in texts(app)
    assert app.session_state["corpus"] == state.default("corpus")


@pytest.mark.parametrize("is_restarted", [True, False])
@pytest.mark.parametrize("change", ["changed", "forbidden", "same"])
def test_a_file_of_the_machine_is_read_again_only_unchanged_and_where_it_may_be(
    change: str, is_restarted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("One.\nTwo.\n")
    app = AppTest.from_function(page, default_timeout=30).run()
    app.segmented_control(key="corpus_way").set_value("path").run()
    app.text_input(key="corpus_path").set_value(str(path)).run()
    app.button(key="use_corpus").click().run()
    key = app.session_state["corpus"]
    if is_restarted:
        restart()
    else:  # somebody present has used it: what no longer holds goes all the same
        caching.parsed().clear()
    if change == "changed":
        path.write_text("Three.\nFour.\n")
    if change == "forbidden":
        monkeypatch.setenv("BERT_INTERNALS_SERVER_FILES", "0")
    app = AppTest.from_function(page, default_timeout=30)
    app.session_state["corpus"] = key
    app = at_rest(app.run())
    assert f"In use: {'mine.txt: One.' if change == 'same' else 'Demo news'}" in texts(app)
    if change == "same":  # a session that has it by a link shows how it was chosen
        assert app.segmented_control(key="corpus_way").value == "path"
        assert "**mine.txt** is in use." in texts(app)


def test_a_session_that_ended_finds_its_upload_again_and_its_corpus_keeps_the_file(tmp_path: Path) -> None:
    app = with_corpus(3)
    uploaded = app.session_state["_corpus_upload"]
    restart()
    later = AppTest.from_function(page, default_timeout=30)
    later.session_state["_corpus_upload"] = uploaded
    later.session_state["_corpus_way"] = "upload"
    later = at_rest(later.run())
    assert "of 3.txt" in texts(later)
    later.button(key="use_corpus").click().run()
    assert "In use: of 3.txt" in texts(later)
    (note,) = (name for name in os.listdir(tmp_path / "uploads") if name.endswith(".json"))
    assert note == f"{later.session_state['corpus']}.json"
    later.button(key="remove_corpus_upload").click().run()
    assert len(os.listdir(tmp_path / "uploads")) == 2  # the corpus in use was read from it
    assert "In use: of 3.txt" in texts(later)


def test_who_comes_by_a_link_uses_the_file_of_the_corpus(open_page: Open, tmp_path: Path) -> None:
    key = with_corpus(7).session_state["corpus"]
    restart()
    (file,) = (path for path in (tmp_path / "uploads").iterdir() if path.suffix != ".json")
    os.utime(file, (1, 1))
    at_rest(open_page("search", v="corpus", corpus=key))
    assert file.stat().st_mtime > 1
