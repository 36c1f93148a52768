"""A file that is made on a click is there when its browser asks for it, however many people use the server meanwhile."""

from __future__ import annotations

import time

import pytest
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.media_file_storage import MediaFileStorageError
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage

from dashboard import logs


def test_a_file_made_on_a_click_outlives_the_runs_of_others_and_is_deleted_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logs, "keep_texts_out", lambda: None)  # for the server's process, not for that of the tests
    from dashboard import app as server

    storage = MemoryMediaFileStorage("/media")
    files = MediaFileManager(storage)
    made = files.execute_deferred(files.add_deferred(lambda: b"a lecture", "text/html", "1", "lecture.html"))
    name = made.removeprefix("/media/")
    for _ in range(5):
        files.remove_orphaned_files()  # as at the end of each run of any session
    assert storage.get_file(name).content == b"a lecture"
    later = time.monotonic() + server.DOWNLOAD_WAIT
    monkeypatch.setattr(server.time, "monotonic", lambda: later)
    files.remove_orphaned_files()
    files.remove_orphaned_files()
    with pytest.raises(MediaFileStorageError):
        storage.get_file(name)
