"""What people see of jobs: their own with Stop, those of others without a name."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from components.jobs import Job, Stopped
from dashboard import caching
from dashboard.ui.waiting import progress
from tests.support.pages import Open, await_jobs, backend, texts


def page() -> None:
    """One page that waits for one job, with the sidebar's list, as main.py draws it."""
    import streamlit as st

    from dashboard import caching
    from dashboard.jobs import requests
    from dashboard.ui.waiting import frame, listing

    listing.expect()
    jobs_place = st.sidebar.container()
    jobs = caching.evaluations()
    job = jobs.request(
        "shared", "Ranking secret.csv", lambda report_progress, is_stopped: "again", person=caching.person()
    )
    with frame.figure("result"):
        result = requests.result_of(jobs, job, doing="testing", stop_key="stop", again_key="again", unit="queries")
        st.markdown(f"Result: {result}")
    listing.draw(jobs_place)


class Held:
    """A job at work until it is released."""

    def __init__(self) -> None:
        self.release, self._entered = threading.Event(), threading.Event()
        self.job = caching.evaluations().request("shared", "Ranking secret.csv", self._work, person="Ann")
        assert self._entered.wait(10)

    def _work(self, report_progress: Any, is_stopped: Any) -> str:
        report_progress(0, 8)
        report_progress(2, 8)
        self._entered.set()
        while not self.release.wait(0.01):
            if is_stopped():
                raise Stopped
        return "done"


@pytest.fixture
def held() -> Iterator[Held]:
    backend()
    await_jobs()  # what a first page begins is not among the jobs that are listed here
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
    app.button(key="stop").click().run()
    assert held.job.finished.wait(10)
    assert held.job.is_stopped
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
    assert "Also under way: 1 job of other people." in texts(app)
    assert "secret" not in texts(app)
    monkeypatch.setattr(caching, "is_connected", lambda person: person == "Cem")
    # Ann has left, or loaded her page anew and is somebody else to the server: her work is nobody's now.
    assert "of other people" not in texts(open_page())
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
    assert "Also under way: 3 more jobs of yours." in texts(app)
    held.release.set()
    assert all(job.finished.wait(10) for job in rest)


def test_who_waits_for_nothing_has_no_list(open_page: Open, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    as_person(monkeypatch, "Cem")
    assert held.job in caching.queue().under_way()
    assert len(open_page().sidebar.get("progress")) == 0


def test_what_nobody_asked_for_is_not_listed(open_page: Open, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    quiet = Job("Embedding Demo news")
    caching.queue().put(quiet, lambda report_progress, is_stopped: gate.wait(20), "tokens")
    as_person(monkeypatch, "Ann")
    try:
        (shown,) = open_page().sidebar.get("progress")
        assert shown.proto.text.startswith("Ranking secret.csv")
    finally:
        gate.set()
        assert quiet.finished.wait(10)


def test_a_failure_is_explained_on_each_redraw_and_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caching.evaluations.clear()
    as_person(monkeypatch, "Ann")

    def fail(report_progress: Any, is_stopped: Any) -> None:
        raise ZeroDivisionError("a fault of ours")

    failed = caching.evaluations().request("shared", "Ranking secret.csv", fail, person="Ann")
    assert failed.finished.wait(10)
    app = AppTest.from_function(page, default_timeout=30).run().run().run()
    assert "Something went wrong while testing." in texts(app)
    faults = [record for record in caplog.records if record.exc_info and record.exc_info[1] is failed.error]
    assert [record.getMessage() for record in faults] == ["a job of the lane 'evaluation' failed"]
    assert "secret.csv" not in caplog.text
    app.button(key="again").click().run()
    again = caching.evaluations().find("shared")
    assert again is not None
    assert again.finished.wait(10)
    assert "Result: again" in texts(app.run())


def test_a_fault_of_a_page_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def faulty() -> None:
        from dashboard.ui import messages

        messages.guarded(lambda: [][0], "testing")

    assert "Something went wrong while testing." in texts(AppTest.from_function(faulty).run())
    assert [record.getMessage() for record in caplog.records if record.exc_info] == ["testing failed"]


def test_a_job_that_the_page_shows_is_not_listed_too(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    as_person(monkeypatch, "Ann")
    app = AppTest.from_function(page, default_timeout=30).run()
    assert len(app.get("progress")) == 1
    assert [button.label for button in app.button if button.label == "Stop"] == ["Stop"]
    assert "Jobs under way" not in texts(app)


def test_jobs_awaited_together_have_one_bar_and_one_stop(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    def together() -> None:
        import streamlit as st

        from dashboard import caching
        from dashboard.jobs import requests
        from dashboard.ui.waiting import frame

        def view() -> None:
            jobs, is_ready = caching.evaluations(), {}
            for name in ("shared", "second", "third"):
                with frame.figure(name) as figure:
                    job = jobs.request(name, name, lambda *_: "done", person=caching.person())
                    requests.result_of(jobs, job, doing="testing", stop_key=f"stop_{name}", again_key=f"again_{name}")
                is_ready[name] = figure.not_ready is None
            st.caption("after the jobs")
            st.caption(f"Ready: {[name for name, is_done in is_ready.items() if is_done]}")

        frame.view(view)

    as_person(monkeypatch, "Ann")
    app = AppTest.from_function(together, default_timeout=30).run()
    (bar,) = app.get("progress")
    assert bar.proto.text.startswith("Ranking secret.csv")
    assert bar.proto.text.endswith("· 2 more jobs")
    assert [button.key for button in app.button] == ["stop_shared"]
    app.button(key="stop_shared").click().run()
    assert "Ready: []" in texts(app)
    assert caching.evaluations().find("second").is_stopped_for("Ann")
    assert not app.get("progress")


def test_a_stopped_job_that_two_figures_need_has_one_button(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    def two() -> None:
        from dashboard import caching
        from dashboard.jobs import requests
        from dashboard.jobs.splade import NeedsStart
        from dashboard.ui.waiting import frame

        def view() -> None:
            jobs = caching.evaluations()
            for number in range(2):
                with frame.figure(f"splade_{number}"):
                    raise NeedsStart(("splade",), 5_000, "same")
            for name in ("first", "second"):
                with frame.figure(name):
                    job = jobs.request("shared", name, lambda *_: "done", person=caching.person())
                    requests.result_of(jobs, job, doing="testing", stop_key="stop", again_key="again")

        frame.view(view)

    as_person(monkeypatch, "Ann")
    caching.evaluations().stop(held.job, "Ann")
    app = AppTest.from_function(two, default_timeout=30).run()
    assert not app.exception
    assert [button.key for button in app.button] == ["splade_same", "again"]
    assert "Needed here too: SPLADE's weights." in texts(app)
    assert "Needed here too: Ranking secret.csv." in texts(app)


def test_stop_has_a_key_that_no_other_job_gets(open_page: Open, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    as_person(monkeypatch, "Ann")
    app = open_page()
    assert [button.key for button in stops_listed(app)] == [f"stop_listed_{held.job.number}"]


def test_what_a_person_may_not_stop_is_listed_without_stop(
    open_page: Open, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_person(monkeypatch, "Ann")
    monkeypatch.setattr("components.jobs.Jobs.can_be_stopped", False)
    app = open_page()
    assert "Ranking secret.csv" in "".join(bar.proto.text for bar in app.sidebar.get("progress"))
    assert stops_listed(app) == []


def test_a_download_is_shown_in_megabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr("components.jobs.job.time", SimpleNamespace(monotonic=lambda: clock.now))
    job = Job("Downloading a_model", started=100.0)
    job.report_progress(0, 3_000_000)
    clock.now += 10
    job.report_progress(1_200_000, 3_000_000)
    assert progress.line(job, progress.BYTES) == "Downloading a\\_model · 1.20 MB of 3.00 MB · 15 s left"


def test_a_bar_without_a_total_moves_and_does_not_reach_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr("dashboard.ui.waiting.progress.time", SimpleNamespace(monotonic=lambda: clock.now))
    job = Job("Timing")
    assert progress.share(job) == 0.0
    job.started = 100.0
    shares = []
    for clock.now in (100.0, 104.0, 112.0, 10_000.0):
        shares.append(progress.share(job))
    assert shares == [0.0, 0.5, 0.75, 0.95]
    job.report_progress(1, 4)
    assert progress.share(job) == 0.25


def blocked_page() -> None:
    """A page that cannot be drawn without the result of a job."""
    import streamlit as st

    from dashboard import caching
    from dashboard.ui.waiting import progress

    jobs = caching.evaluations()
    job = jobs.find("shared") or jobs.request("shared", "Anew", lambda *_: "anew", person=caching.person())
    job.people.add("Ann")
    progress.wait(jobs, job, stop_key="stop_wait", meanwhile=lambda: st.caption("Meanwhile"))
    if job.result is None:
        progress.explain_end(job, doing="testing")
        progress.again(progress.again_label(job), "again_wait", jobs.forget, (job, caching.person()))
    else:
        st.markdown(f"Result: {job.result}")


def test_a_page_that_waits_in_its_run_is_drawn_once_the_job_is_done(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_person(monkeypatch, "Ann")
    drawn: list[str] = []
    line = progress.line

    def watched(job: Job, unit: str = "") -> str:
        drawn.append(line(job, unit))
        if len(drawn) == 3:
            held.release.set()
        return drawn[-1]

    monkeypatch.setattr(progress, "line", watched)
    app = AppTest.from_function(blocked_page, default_timeout=30).run()
    assert "Result: done" in texts(app)
    assert "Meanwhile" not in texts(app)
    assert len(app.get("progress")) == 0
    assert len(drawn) >= 3
    assert drawn[0].startswith("Ranking secret.csv · 25 %")
    # What follows keeps its place when the page is drawn again: it does not begin anew in the browser.
    places = [place for place, element in app.main.children.items() if element.type == "markdown"]
    app.run()
    assert [place for place, element in app.main.children.items() if element.type == "markdown"] == places == [1]


def test_who_stops_a_wait_in_the_run_reads_so_and_can_start_again(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    as_person(monkeypatch, "Ann")
    threading.Timer(0.3, lambda: caching.evaluations().stop(held.job, "Ann")).start()
    app = AppTest.from_function(blocked_page, default_timeout=30).run()
    assert "Stopped: Ranking secret" in texts(app)
    assert held.job.finished.wait(10)
    app.button(key="again_wait").click().run()
    assert "Result: anew" in texts(app)


def test_a_bar_of_a_view_that_was_left_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The browser goes on asking for it until it learns that the view is gone."""
    session: dict[str, object] = {progress.DRAWING: 1}
    fragments: list[Callable[[], None]] = []
    drawn: list[str] = []
    monkeypatch.setattr("streamlit.session_state", session)
    monkeypatch.setattr("streamlit.fragment", lambda **_: lambda draw: fragments.append(draw) or draw)
    monkeypatch.setattr("streamlit.progress", lambda _, text: drawn.append(text))
    monkeypatch.setattr("streamlit.button", lambda *_, **__: None)
    progress.bar(lambda: "Ranking", lambda: 0.5, lambda: False, stop_key="stop", stop=print, arguments=())
    fragments[0]()
    assert drawn == ["Ranking", "Ranking"]
    session[progress.DRAWING] = 2
    fragments[0]()
    assert len(drawn) == 2
