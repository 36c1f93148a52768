"""Keeping uploads: read once by content, shared by its hash, remembered by the session, explained when bad."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from components.errors import InputError
from components.jobs import Cache
from dashboard import caching
from dashboard.corpora import uploads


@dataclass
class Upload:
    name: str
    content: bytes
    file_id: str

    def getbuffer(self) -> bytes:
        return self.content


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr("streamlit.session_state", {})
    import streamlit as st

    return st.session_state  # type: ignore[return-value]


def test_a_file_is_read_once_and_remembered(session: dict[str, Any]) -> None:
    cache: Cache[int] = Cache(6)
    reads: list[str] = []

    def read(file: Upload, is_cancelled: Any) -> int:
        reads.append(file.name)
        return len(file.content)

    for file in (Upload("a.txt", b"12345", "1"), Upload("a.txt", b"12345", "1"), Upload("a.txt", b"12345", "2")):
        assert uploads.kept("things", cache, file, read) == 5
    assert reads == ["a.txt"]  # the same content, uploaded again by whomever
    assert uploads.kept("things", cache, None, read) == 5  # the uploader is on another page
    assert uploads.kept("others", cache, None, read) is None
    assert uploads.kept("things", cache, Upload("a.txt", b"123", "3"), read) == 3
    uploads.forget("things")
    assert uploads.kept("things", cache, None, read) is None


def test_what_made_room_for_others_is_read_again_while_its_file_is_there(session: dict[str, Any]) -> None:
    cache: Cache[str] = Cache(1)
    file = Upload("a.txt", b"1", "1")
    assert uploads.kept("things", cache, file, lambda file, is_cancelled: "first") == "first"
    cache.put("another", "x")
    assert uploads.kept("things", cache, None, lambda file, is_cancelled: "never") is None
    assert uploads.kept("things", cache, file, lambda file, is_cancelled: "again") == "again"


def test_several_files_are_one_thing_in_any_order(session: dict[str, Any]) -> None:
    cache: Cache[int] = Cache(6)
    first, second = Upload("a", b"1", "1"), Upload("b", b"2", "2")

    def count(files: list[Upload], is_cancelled: Any) -> int:
        return len(files)

    key = uploads.added(cache, [first, second], count)
    assert key is not None
    assert uploads.added(cache, [second, first], count) == key
    assert cache.find(key) == 2


def test_a_bad_file_is_explained_and_the_last_good_one_stays(
    session: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[Exception] = []
    monkeypatch.setattr("dashboard.ui.messages.explain", lambda problem, where: said.append(problem))
    cache: Cache[str] = Cache(6)

    def refuse(file: Upload, is_cancelled: Any) -> str:
        raise InputError("Bad.", "Good was expected.", "Choose another file.")

    assert uploads.kept("things", cache, Upload("a", b"1", "1"), lambda file, is_cancelled: "good") == "good"
    assert uploads.kept("things", cache, Upload("b", b"2", "2"), refuse) == "good"
    assert [type(problem) for problem in said] == [InputError]


def test_two_sessions_with_one_file_read_it_once(session: dict[str, Any]) -> None:
    cache: Cache[int] = Cache(6)
    begun, go_on, reads = threading.Event(), threading.Event(), []

    def read(file: Upload, is_cancelled: Any) -> int:
        reads.append(file.name)
        begun.set()
        assert go_on.wait(10)
        return len(file.content)

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(uploads.added, cache, Upload("a.txt", b"123", "1"), read)
        assert begun.wait(10)
        second = threads.submit(uploads.added, cache, Upload("a.txt", b"123", "2"), read)
        time.sleep(0.2)  # time enough to read it a second time
        go_on.set()
        assert first.result(10) == second.result(10)
    assert reads == ["a.txt"]


def test_a_refused_file_is_not_read_again_however_late(
    session: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[Exception] = []
    monkeypatch.setattr("dashboard.ui.messages.explain", lambda problem, where: said.append(problem))
    cache: Cache[str] = Cache(6)
    reads: list[str] = []

    def refuse(is_cancelled: Any) -> str:
        reads.append("read")
        raise InputError("Bad.", "Good was expected.", "Choose another file.")

    assert uploads.read_once(cache, "refused", refuse) is None
    moment = time.monotonic()
    monkeypatch.setattr("components.jobs.time.monotonic", lambda: moment + 3_600)
    assert uploads.read_once(cache, "refused", refuse) is None
    assert len(reads) == 1
    assert len(said) == 2
    assert uploads.read_once(cache, "refused", refuse, anew=True) is None  # where a person asks for it
    assert len(reads) == 2


def test_what_was_read_is_kept_in_the_cache_alone(session: dict[str, Any]) -> None:
    cache: Cache[bytearray] = Cache(6)
    assert uploads.read_once(cache, "kept", lambda is_cancelled: bytearray(5)) == bytearray(5)
    deadline = time.monotonic() + 10
    for jobs in (caching.readings(), caching.preparations()):
        while any(isinstance(job.result, bytearray) for job in jobs.finished()):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_stop_ends_reading_and_nothing_waits_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def page() -> None:
        import threading

        import streamlit as st

        from components.jobs import Cache, Cancelled
        from dashboard.corpora import uploads

        kept = st.cache_resource(lambda: (Cache(6), threading.Event()), show_spinner=False)

        def read(is_cancelled):  # type: ignore[no-untyped-def]
            while not is_cancelled():
                stopped.wait(0.01)
            stopped.set()
            raise Cancelled

        cache, stopped = kept()
        st.text(f"read: {uploads.read_once(cache, 'long', read)}, ended: {stopped.is_set()}")

    app = AppTest.from_function(page, default_timeout=30).run()
    (stop,) = [button for button in app.button if str(button.key).startswith("stop_read_")]
    stop.click().run()
    deadline = time.monotonic() + 10
    while not [job for job in caching.readings().finished() if job.key[2] == "long"]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    monkeypatch.setattr("dashboard.jobs.progress.SHOWN_AFTER", 20.0)
    started = time.monotonic()
    app.run()
    assert app.text[0].value == "read: None, ended: True"
    assert "Stopped" in app.info[0].value
    assert time.monotonic() - started < 10  # a drawing after Stop does not wait


def page() -> None:
    """Two views with an uploader each, and the bytes that Streamlit keeps for this session."""
    import streamlit as st
    from streamlit.runtime.scriptrunner import get_script_run_ctx

    from dashboard.corpora import uploads

    for kind in ("one", "two"):
        if st.toggle(kind, value=True, key=f"open_{kind}"):
            file = uploads.uploader(kind, kind, key=kind)
            st.text(f"{kind}: {None if file is None else file.name}")
    context = get_script_run_ctx()
    assert context is not None
    kept = context.uploaded_file_mgr.file_storage.get(context.session_id, {})
    st.text(f"kept: {sum(len(file.data) for file in kept.values())}")


def test_the_bytes_of_a_view_that_was_left_are_freed() -> None:
    app = AppTest.from_function(page, default_timeout=30).run()
    app.file_uploader(key="one").upload("first.txt", b"x" * 900).run()
    app.file_uploader(key="two").upload("second.txt", b"y" * 800).run()
    assert [text.value for text in app.text] == ["one: first.txt", "two: second.txt", "kept: 1700"]
    app.toggle(key="open_one").set_value(False).run()
    app.run()  # the other's uploader is drawn once more
    assert [text.value for text in app.text] == ["two: second.txt", "kept: 800"]
    app.toggle(key="open_one").set_value(True).run()
    assert [text.value for text in app.text] == ["one: None", "two: second.txt", "kept: 800"]
