"""What people see of jobs: their own with Stop, those of others without a name."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from components.jobs import Cancelled, Job
from dashboard import caching
from tests.dashboard.conftest import Open, texts


def page() -> None:
    """One page that waits for one job, with the sidebar's list, as app.py draws it."""
    import streamlit as st

    from dashboard import caching
    from dashboard.jobs import listing, progress

    listing.expect()
    jobs_place = st.sidebar.container()
    jobs = caching.evaluations()
    job = jobs.request(
        "shared", "Ranking secret.csv", lambda report_progress, is_cancelled: "again", person=caching.person()
    )
    if progress.ready(jobs, job, doing="testing", stop_key="stop", again_key="again", unit="queries"):
        st.markdown(f"Result: {job.result}")
    listing.draw(jobs_place)


class Held:
    """A job at work until it is released."""

    def __init__(self) -> None:
        self.release, self._entered = threading.Event(), threading.Event()
        self.job = caching.evaluations().request("shared", "Ranking secret.csv", self._work, person="Ann")
        assert self._entered.wait(10)

    def _work(self, report_progress: Any, is_cancelled: Any) -> str:
        report_progress(0, 8)
        report_progress(2, 8)
        self._entered.set()
        while not self.release.wait(0.01):
            if is_cancelled():
                raise Cancelled
        return "done"


@pytest.fixture
def held() -> Iterator[Held]:
    caching.evaluations.clear()
    found = Held()
    yield found
    found.release.set()
    for job in caching.evaluations().under_way():
        assert job.finished.wait(10)
    caching.evaluations.clear()


def as_person(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(caching, "person", lambda: name)


def stops_listed(app: AppTest) -> list[Any]:
    return [button for button in app.sidebar.button if str(button.key).startswith("stop_listed_")]


def test_who_stops_leaves_and_others_go_on(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    as_person(monkeypatch, "Ben")
    app = AppTest.from_function(page, default_timeout=30).run()
    assert held.job.people == {"Ann", "Ben"}
    (bar,) = app.main.get("progress")
    assert bar.proto.text.startswith("Ranking secret.csv · 2 of 8 queries · ")
    app.button(key="stop").click().run()
    app.run()
    assert "Stopped for you; other people still wait for it:" in texts(app)
    assert held.job.people == {"Ann"}
    assert not held.job.finished.is_set()
    assert stops_listed(app) == []
    app.button(key="again").click().run()  # waits again
    assert held.job.people == {"Ann", "Ben"}
    assert len(app.main.get("progress")) == 1
    held.release.set()
    assert held.job.finished.wait(10)
    assert "Result: done" in texts(app.run())
    assert len(app.get("progress")) == 0


def test_the_last_one_who_stops_ends_it(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    as_person(monkeypatch, "Ann")
    app = AppTest.from_function(page, default_timeout=30).run()
    (stop,) = stops_listed(app)
    stop.click().run()
    assert held.job.finished.wait(10)
    assert held.job.is_cancelled
    app.run()
    assert "Stopped: Ranking secret" in texts(app)
    app.button(key="again").click().run()
    started = caching.evaluations().find("shared")
    assert started is not None
    assert started.finished.wait(10)
    assert "Result: again" in texts(app.run())


def test_jobs_of_others_have_no_name_and_no_stop(open_page: Open, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    as_person(monkeypatch, "Cem")
    own = caching.evaluations().request("own", "Ranking own.csv", lambda *_: "own", person="Cem")
    app = open_page()
    (mine,) = app.sidebar.get("progress")
    assert mine.proto.text == "Ranking own.csv · waiting: next, after another person's job"
    assert len(stops_listed(app)) == 1
    assert "Also under way: 1 of other people." in texts(app)
    assert "secret" not in texts(app)
    as_person(monkeypatch, "Ann")
    app = open_page()
    (mine,) = app.sidebar.get("progress")
    assert mine.proto.text.startswith("Ranking secret.csv · 25 %")
    assert mine.proto.value == 25
    held.release.set()
    assert held.job.finished.wait(10)
    assert own.finished.wait(10)
    app.run()
    assert len(app.sidebar.get("progress")) == 0
    assert "Jobs under way" not in texts(app)


def test_many_jobs_of_one_person_are_three_rows(open_page: Open, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    as_person(monkeypatch, "Ann")
    jobs = caching.evaluations()
    rest = [jobs.request(f"more {number}", f"More {number}", lambda *_: 1, person="Ann") for number in range(5)]
    app = open_page()
    assert len(app.sidebar.get("progress")) == 3
    assert "Also under way: 3 more of yours." in texts(app)
    held.release.set()
    assert all(job.finished.wait(10) for job in rest)


def test_who_waits_for_nothing_has_no_list(open_page: Open, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    as_person(monkeypatch, "Cem")
    assert held.job in caching.queue().under_way()
    assert len(open_page().sidebar.get("progress")) == 0


def test_what_nobody_asked_for_is_not_listed(open_page: Open, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    quiet = Job("Embedding Demo news")
    caching.queue().put(quiet, lambda report_progress, is_cancelled: gate.wait(20), "tokens")
    as_person(monkeypatch, "Ann")
    try:
        (shown,) = open_page().sidebar.get("progress")
        assert shown.proto.text.startswith("Ranking secret.csv")
    finally:
        gate.set()
        assert quiet.finished.wait(10)
