"""A session of the dashboard without a browser: its own script runs under Streamlit's AppTest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from components.command_line.options import progress_bar
from components.errors import InputError
from dashboard import caching
from dashboard.declared import table

APP = str(Path(__file__).parents[1] / "main.py")
RUN_SECONDS, JOB_SECONDS = 300, 900  # the most that a run of the page, and a job that it waits for, may take
MOST_RUNS = 60


class Session:
    """A session with one view open."""

    def __init__(self, view: str, has_open: str = "", shows_progress: bool = False) -> None:
        """`has_open` is the key of a panel that is open; `shows_progress`: of what it waits for, on standard error."""
        self._view, self._has_open, self._shows_progress = view, has_open, shows_progress
        self._app: AppTest | None = None

    def at(self, settings: Mapping[str, Any]) -> AppTest:
        """The page with these settings, by name, once nothing is under way.

        Raises InputError for a view that takes other settings, or whose work does not end.
        """
        if self._app is None:
            self._app = self._opened(settings)
        # Also after the address: of a server, it may not name any model.
        for name, value in settings.items():
            self._app.session_state[name] = value
        app = self.at_rest()
        for name, value in settings.items():
            if app.session_state[name] != value:
                said = " ".join(str(item.value) for item in app.warning)
                raise not_drawn(self._view, f"It takes another value for {table.SETTING[name].label}. {said}")
        return app

    def at_rest(self) -> AppTest:
        """The page once nothing is under way, drawn at least once more. Raises InputError where its work does not end."""
        assert self._app is not None
        for _ in range(MOST_RUNS):
            self._app.run()
            jobs = caching.queue().under_way()
            if not jobs and not self._app.get("progress"):  # of what has ended since it was drawn
                break
            for job in jobs:
                with progress_bar(job.title, unit=" parts") as report:
                    for _ in range(JOB_SECONDS):
                        if job.finished.wait(1):
                            break
                        if self._shows_progress and job.total:
                            report(job.done, job.total)
        else:
            titles = ", ".join(job.title for job in jobs)
            raise not_drawn(self._view, f"after {MOST_RUNS} times of drawing it, work was still under way: {titles}")
        if self._app.exception:
            raise RuntimeError(f"the page failed: {self._app.exception[0].message}")
        return self._app

    def _opened(self, settings: Mapping[str, Any]) -> AppTest:
        """The session, after a first run by the address."""
        app = AppTest.from_file(APP, default_timeout=RUN_SECONDS)
        if self._has_open:
            app.session_state[self._has_open] = True
        app.query_params[table.VIEW] = [self._view]
        for name, value in settings.items():
            setting = table.SETTING[name]
            app.query_params[setting.short] = list(setting.show(value))
        return app.run()


def not_drawn(name: str, said: str) -> InputError:
    """The error of a page that did not draw what it is about, with what it says instead."""
    return InputError(
        f"The page “{name}” cannot be drawn.",
        said[:300] or "It says nothing.",
        "Choose other sentences, another model, or other settings.",
    )
