"""Keeping uploads: read once by content, shared by its hash, remembered by the session, explained when bad."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from components.errors import InputError
from components.jobs import Cache, CachePart
from components.kept_files import KeptFiles, Room
from dashboard import caching
from dashboard.corpora import uploads
from dashboard.jobs.requests import NotReady

ROOT = Path(__file__).parents[3]


@dataclass
class Upload:
    name: str
    content: bytes
    file_id: str

    def getbuffer(self) -> bytes:
        return self.content

    def getvalue(self) -> bytes:
        return self.content


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr("streamlit.session_state", {})
    import streamlit as st

    return st.session_state  # type: ignore[return-value]


def test_a_file_is_read_once_and_remembered(session: dict[str, Any]) -> None:
    cache: CachePart[int] = CachePart(Cache(6), "things")
    reads: list[str] = []

    def read(file: Upload, is_stopped: Any) -> int:
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


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> KeptFiles:
    """The server's kept files, in a folder of their own."""
    kept = KeptFiles(tmp_path / "uploads", Room(1 << 20, 100), Room(1 << 19, 100), 7)
    monkeypatch.setattr(caching, "kept_files", lambda: kept)
    return kept


def read_text(file: Any, is_stopped: Any) -> str:
    return str(file.getvalue().decode())


def test_what_made_room_for_others_is_read_again_without_a_new_upload(
    session: dict[str, Any], files: KeptFiles
) -> None:
    cache: CachePart[str] = CachePart(Cache(1), "things")
    assert uploads.kept("things", cache, Upload("a b.txt", b"first", "1"), read_text) == "first"
    for _ in range(2):
        cache.put("another", "x")
        assert uploads.kept("things", cache, None, read_text) == "first"


def test_several_files_are_read_again_together(session: dict[str, Any], files: KeptFiles) -> None:
    cache: CachePart[dict[str, bytes]] = CachePart(Cache(1), "things")

    def read(given: list[Any], is_stopped: Any) -> dict[str, bytes]:
        return {file.name: file.getvalue() for file in given}

    given = [Upload("a.txt", b"1", "1"), Upload("b.txt", b"2", "2")]
    assert uploads.kept("things", cache, given, read, several=True) == {"a.txt": b"1", "b.txt": b"2"}
    cache.clear()
    assert uploads.kept("things", cache, None, read, several=True) == {"a.txt": b"1", "b.txt": b"2"}


def test_what_is_no_longer_kept_is_said_until_it_is_removed(
    session: dict[str, Any], files: KeptFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("streamlit.warning", lambda text, **_: said.append(text))
    cache: CachePart[str] = CachePart(Cache(1), "things")
    uploads.kept("things", cache, Upload("mine_.txt", b"first", "1"), read_text)
    files.leave(uploads.stored(session["_things"])[0].digest, caching.person())
    cache.clear()
    assert uploads.kept("things", cache, None, read_text) is None
    assert said == ["**mine\\_.txt** is no longer kept on this server: upload it again."]
    uploads.forget("things")
    assert uploads.kept("things", cache, None, read_text) is None
    assert len(said) == 1


def test_a_file_that_cannot_be_read_is_not_kept(
    session: dict[str, Any], files: KeptFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.ui.messages.explain", lambda problem, where: None)

    def refuse(file: Upload, is_stopped: Any) -> str:
        raise InputError("Bad.", "Good was expected.", "Choose another file.")

    file = Upload("a", b"bad", "1")
    assert uploads.kept("things", CachePart(Cache(1), "things"), file, refuse) is None
    assert not files.use(hashlib.sha256(b"bad").hexdigest(), "")


def test_a_file_too_large_to_be_kept_is_used_and_said(
    session: dict[str, Any], files: KeptFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("streamlit.caption", lambda text, **_: said.append(text))
    cache: CachePart[str] = CachePart(Cache(1), "things")
    large = Upload("large.txt", b"x" * ((1 << 19) + 1), "1")
    for _ in range(2):
        assert uploads.kept("things", cache, large, read_text) == large.content.decode()
    assert ["too large to be kept on this server" in text for text in said] == [True, True]


def test_removing_deletes_the_file_unless_another_use_of_it_is_left(session: dict[str, Any], files: KeptFiles) -> None:
    cache: CachePart[str] = CachePart(Cache(9), "things")
    file = Upload("a.txt", b"first", "1")
    digest = hashlib.sha256(b"first").hexdigest()
    for kind in ("queries", "sts"):
        uploads.kept(kind, cache, file, read_text)
    session[uploads.IN_CORPUS] = {digest}
    uploads.forget("sts")
    assert files.use(digest, "")
    uploads.forget("queries")
    assert files.use(digest, "")  # the session's corpus is from it
    session.pop(uploads.IN_CORPUS)
    uploads.kept("queries", cache, file, read_text)
    uploads.forget("queries")
    assert not files.use(digest, "")


def test_a_long_name_is_cut_in_its_middle_and_keeps_its_end(session: dict[str, Any], files: KeptFiles) -> None:
    cache: CachePart[str] = CachePart(Cache(9), "things")
    key = uploads.added(cache, Upload("x" * 5_000 + ".csv.gz", b"1", "1"), read_text)
    assert key is not None
    (name,) = uploads.names_of(key)
    assert len(name) == uploads.MOST_NAME
    assert name.endswith("x.csv.gz")


@pytest.mark.parametrize("name", [f"copy {'a' * 64} b.csv", "a  b.csv", f"{'0' * 64}", " ", "a\nb.txt"])
def test_a_name_like_a_key_is_one_file(session: dict[str, Any], files: KeptFiles, name: str) -> None:
    cache: CachePart[str] = CachePart(Cache(9), "things")
    key = uploads.added(cache, Upload(name, b"content", "1"), read_text)
    assert key is not None
    (file,) = uploads.stored(key)
    assert file.getvalue() == b"content"
    cache.clear()
    assert uploads.again(cache, key, read_text) == "content"


def test_every_kind_of_upload_is_one_that_is_remembered() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "dashboard").rglob("*.py"))
    named = set(re.findall(r'uploads\.kept\(\s*"(\w+)"', source))
    assert named
    assert named <= set(uploads.KINDS)


def test_several_files_are_one_thing_in_any_order(session: dict[str, Any]) -> None:
    cache: CachePart[int] = CachePart(Cache(6), "things")
    first, second = Upload("a", b"1", "1"), Upload("b", b"2", "2")

    def count(files: list[Upload], is_stopped: Any) -> int:
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
    cache: CachePart[str] = CachePart(Cache(6), "things")

    def refuse(file: Upload, is_stopped: Any) -> str:
        raise InputError("Bad.", "Good was expected.", "Choose another file.")

    assert uploads.kept("things", cache, Upload("a", b"1", "1"), lambda file, is_stopped: "good") == "good"
    assert uploads.kept("things", cache, Upload("b", b"2", "2"), refuse) == "good"
    assert [type(problem) for problem in said] == [InputError]


def test_two_sessions_with_one_file_read_it_once(session: dict[str, Any]) -> None:
    cache: CachePart[int] = CachePart(Cache(6), "things")
    begun, go_on, reads = threading.Event(), threading.Event(), []

    def read(file: Upload, is_stopped: Any) -> int:
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
    cache: CachePart[str] = CachePart(Cache(6), "things")
    reads: list[str] = []

    def refuse(is_stopped: Any) -> str:
        reads.append("read")
        raise InputError("Bad.", "Good was expected.", "Choose another file.")

    def refused(anew: bool = False) -> Exception | None:
        with pytest.raises(NotReady) as raised:
            uploads.read_once(cache, "refused", refuse, anew=anew)
        assert raised.value.awaited is not None
        assert isinstance(raised.value.awaited.job.error, raised.value.awaited.final)  # no button offers it again
        return raised.value.awaited.job.error

    assert isinstance(refused(), InputError)
    moment = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: moment + 3_600)
    assert isinstance(refused(), InputError)
    assert len(reads) == 1
    assert isinstance(refused(anew=True), InputError)  # where a person asks for it
    assert len(reads) == 2


def test_what_was_read_is_kept_in_the_cache_alone(session: dict[str, Any]) -> None:
    cache: CachePart[bytearray] = CachePart(Cache(6), "things")
    assert uploads.read_once(cache, "kept", lambda is_stopped: bytearray(5)) == bytearray(5)
    deadline = time.monotonic() + 10
    for jobs in (caching.readings(), caching.preparations()):
        while any(isinstance(job.result, bytearray) for job in jobs.finished()):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_stop_ends_reading_and_nothing_waits_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def page() -> None:
        import threading

        import streamlit as st

        from components.jobs import Cache, CachePart, Stopped
        from dashboard.corpora import uploads
        from dashboard.ui.waiting import frame

        kept = st.cache_resource(lambda: (CachePart(Cache(6), "things"), threading.Event()), show_spinner=False)

        def read(is_stopped):  # type: ignore[no-untyped-def]
            while not is_stopped():
                stopped.wait(0.01)
            stopped.set()
            raise Stopped

        cache, stopped = kept()
        with frame.figure("read"):
            uploads.read_once(cache, "long", read)
        st.text(f"ended: {stopped.is_set()}")

    app = AppTest.from_function(page, default_timeout=30).run()
    (stop,) = [button for button in app.button if str(button.key).startswith("stop_read_")]
    stop.click().run()
    deadline = time.monotonic() + 10
    while not [job for job in caching.readings().finished() if job.key[2] == "long"]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    monkeypatch.setattr("dashboard.jobs.requests.SHOWN_AFTER", 20.0)
    started = time.monotonic()
    app.run()
    assert app.text[0].value == "ended: True"
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


def test_the_box_says_how_long_files_stay_where_they_do(
    files: KeptFiles, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert uploads.how_long_kept() == (
        "Files stay on this server until 7 days after their last use. × beside a file, or “Remove”, deletes it, "
        "unless a corpus in use was read from it."
    )
    files.problem = "Read-only file system"
    assert "cannot write to its disk: it keeps files in memory only" in uploads.how_long_kept()
    none = KeptFiles(tmp_path, Room(9, 9), Room(9, 9), 0)
    monkeypatch.setattr(caching, "kept_files", lambda: none)
    assert uploads.how_long_kept().startswith("This server keeps files in memory only")

    def page() -> None:
        from dashboard.corpora import uploads

        uploads.uploader("queries", "Kept", key="kept")
        uploads.uploader("session", "Not kept", key="not_kept", is_kept=False)

    app = AppTest.from_function(page, default_timeout=30).run()
    assert sum("in memory only" in caption.value for caption in app.caption) == 1
