"""What a page shows while its model is loaded, and when that was stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components.jobs import Stopped
from components.model.backend import Backend
from dashboard import caching
from dashboard.ui.waiting import progress
from tests.support.pages import Open, figures, texts


def forget(*folders: str) -> None:
    """Let the models of these folders be loaded again."""
    jobs = caching.models().jobs
    jobs.drop(job for job in jobs.finished() if job.key in folders)


def test_loading_can_be_stopped_and_started_again(
    open_page: Open, monkeypatch: pytest.MonkeyPatch, tiny_folder: Callable[[str], Path]
) -> None:
    folder, lines, load = str(tiny_folder("bert")), [], Backend.load
    line = progress.line
    monkeypatch.setattr(caching, "person", lambda: "Ann")
    forget(folder)

    def held(
        spec: Any, store: Any, progress: Callable[[int, int], None], is_stopped: Callable[[], bool], **more: Any
    ) -> Backend:
        if spec.key != folder:
            return load(spec, store, progress=progress, is_stopped=is_stopped, **more)
        progress(1_000_000, 4_000_000)
        while not is_stopped():
            time.sleep(0.01)
        raise Stopped

    def watched(job: Any, unit: str = "") -> str:
        """The line under the bar; once it was drawn with the bytes, Ann presses Stop."""
        lines.append(line(job, unit))
        if job.key == folder and "MB" in lines[-1]:
            threading.Thread(target=caching.models().jobs.stop, args=(job, "Ann")).start()
        return lines[-1]

    monkeypatch.setattr(Backend, "load", held)
    monkeypatch.setattr(progress, "line", watched)
    app = open_page("layers", m=folder)
    assert any(text.endswith(" · 1.00 MB of 4.00 MB") for text in lines)
    assert "Stopped: Loading" in texts(app)
    assert not app.error
    assert not figures(app)
    monkeypatch.setattr(Backend, "load", load)
    assert app.button(key="retry_model").label == "Start again"
    app.button(key="retry_model").click().run()
    assert "Stopped" not in texts(app)
    assert len(figures(app)) == 1


def test_a_page_waits_for_two_models_in_one_run(
    open_page: Open, monkeypatch: pytest.MonkeyPatch, tiny_folder: Callable[[str], Path]
) -> None:
    load, folders = Backend.load, [str(tiny_folder(name)) for name in ("bert", "distilbert")]
    forget(*folders)

    def slow(spec: Any, store: Any, **arguments: Any) -> Backend:
        time.sleep(0.3)  # longer than a page waits before it shows the progress
        return load(spec, store, **arguments)

    monkeypatch.setattr(Backend, "load", slow)
    app = open_page("layers", m=folders[0], m2=folders[1])
    assert not app.exception
    assert "Something went wrong" not in texts(app)
    assert len(figures(app)) == 2
