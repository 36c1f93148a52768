"""The frame of a figure: what is not ready is drawn in its place, the rest of the view too, and nothing half drawn stays."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from components.jobs import Stopped
from dashboard import caching
from tests.support.pages import texts


class Held:
    """A job at work until it is released."""

    def __init__(self) -> None:
        self.release, self._entered = threading.Event(), threading.Event()
        self.job = caching.evaluations().request("held", "Ranking queries", self._work, person="Ann")
        assert self._entered.wait(10)

    def _work(self, report_progress: Any, is_stopped: Any) -> str:
        self._entered.set()
        while not self.release.wait(0.01):
            if is_stopped():
                raise Stopped
        return "done"


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    monkeypatch.setattr(caching, "person", lambda: "Ann")
    caching.evaluations.clear()
    found = Held()
    yield found
    found.release.set()
    for job in caching.evaluations().under_way():
        assert job.finished.wait(10)
    caching.evaluations.clear()


def two_figures() -> None:
    """A view with two figures, of which the first waits for a job after it has drawn a part."""
    import streamlit as st

    from dashboard import caching
    from dashboard.jobs import requests
    from dashboard.ui.waiting import frame

    def first() -> None:
        st.markdown("half of the first figure")
        left, right = st.columns(2)
        with left, st.form("form"):
            st.text_input("Half of a form", key="in_form")
            with right, st.container(border=True):
                st.caption("deep inside")
                jobs = caching.evaluations()
                job = jobs.request("held", "Ranking queries", lambda *_: "again", person=caching.person())
                result = requests.result_of(jobs, job, doing="testing", stop_key="stop", again_key="again")
            st.form_submit_button("Send")
        st.markdown(f"Result: {result}")

    def view() -> None:
        st.toggle("A control", key="control")
        with frame.figure("first"):
            first()
        with frame.figure("second"):
            st.markdown("the second figure")

    frame.view(view)


def test_the_second_figure_is_drawn_while_the_first_is_not_ready(held: Held) -> None:
    app = AppTest.from_function(two_figures, default_timeout=30).run()
    assert "the second figure" in texts(app)
    (bar,) = app.get("progress")
    assert bar.proto.text.startswith("Ranking queries")
    assert [button.key for button in app.button] == ["stop"]
    held.release.set()
    assert held.job.finished.wait(10)
    app.run()
    assert "Result: done" in texts(app)
    assert "half of the first figure" in texts(app)
    assert "the second figure" in texts(app)
    assert not app.get("progress")


def test_nothing_half_drawn_stays_of_a_figure_and_its_controls_do(held: Held) -> None:
    app = AppTest.from_function(two_figures, default_timeout=30).run()
    app.toggle(key="control").set_value(True).run()
    assert "half of the first figure" not in texts(app)
    assert "deep inside" not in texts(app)
    assert not app.text_input
    assert app.toggle(key="control").value is True


def test_stop_and_again_stand_in_the_figure(held: Held) -> None:
    app = AppTest.from_function(two_figures, default_timeout=30).run()
    app.button(key="stop").click().run()
    assert held.job.finished.wait(10)
    app.run()
    assert "Stopped: Ranking queries" in texts(app)
    assert "the second figure" in texts(app)
    app.button(key="again").click().run()
    started = caching.evaluations().find("held")
    assert started is not None
    assert started.finished.wait(10)
    assert "Result: again" in texts(app.run())


def test_a_failure_stands_in_the_figure_and_the_view_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "person", lambda: "Ann")
    caching.evaluations.clear()

    def fail(report_progress: Any, is_stopped: Any) -> None:
        raise ZeroDivisionError("a fault of ours")

    job = caching.evaluations().request("held", "Ranking queries", fail, person="Ann")
    assert job.finished.wait(10)
    app = AppTest.from_function(two_figures, default_timeout=30).run()
    assert "Something went wrong while testing." in texts(app)
    assert [button.key for button in app.button] == ["again"]
    assert "half of the first figure" not in texts(app)
    assert "the second figure" in texts(app)
    caching.evaluations.clear()


def outside() -> None:
    """A view that waits for a job outside of any figure, within a container and a form that it is filling."""
    import streamlit as st

    from dashboard import caching
    from dashboard.jobs import requests
    from dashboard.ui.waiting import frame

    def view() -> None:
        st.toggle("A control", key="control")
        st.markdown("drawn before")
        with st.container(border=True):
            st.markdown("half of a container")
            with st.form("form"):
                st.text_input("Half of a form", key="in_form")
                jobs = caching.evaluations()
                job = jobs.request("held", "Ranking queries", lambda *_: "again", person=caching.person())
                result = requests.result_of(jobs, job, doing="testing", stop_key="stop", again_key="again")
                st.form_submit_button("Send")
        st.markdown(f"Result: {result}")

    frame.view(view)
    st.markdown("the foot of the page")


def test_outside_of_a_figure_the_view_ends_and_what_was_being_filled_is_removed(held: Held) -> None:
    app = AppTest.from_function(outside, default_timeout=30).run()
    (bar,) = app.get("progress")
    assert bar.proto.text.startswith("Ranking queries")
    assert "drawn before" in texts(app)
    assert "the foot of the page" in texts(app)
    assert "half of a container" not in texts(app)
    assert not app.text_input
    assert app.toggle(key="control").value is False
    held.release.set()
    assert held.job.finished.wait(10)
    app.run()
    assert "Result: done" in texts(app)
    assert "half of a container" in texts(app)


def test_a_bar_in_a_figure_that_is_removed_is_drawn_below(held: Held) -> None:
    """The bar of all that a view waits for is drawn where the first was awaited, unless that is gone."""

    def nested() -> None:
        import streamlit as st

        from dashboard import caching
        from dashboard.jobs import requests
        from dashboard.ui.waiting import frame

        def wait_for(name: str) -> None:
            jobs = caching.evaluations()
            job = jobs.request(name, name, lambda *_: "again", person=caching.person())
            requests.result_of(jobs, job, doing="testing", stop_key=f"stop_{name}", again_key=f"again_{name}")

        def view() -> None:
            with frame.figure("outer"):
                st.markdown("half drawn")
                with frame.figure("inner"):
                    wait_for("held")
                wait_for("second")

        frame.view(view)

    app = AppTest.from_function(nested, default_timeout=30).run()
    (bar,) = app.get("progress")
    assert bar.proto.text.startswith("Ranking queries")
    assert bar.proto.text.endswith("· 1 more job")
    assert "half drawn" not in texts(app)


def test_what_must_be_chosen_first_is_asked_in_the_figures_place() -> None:
    def asking() -> None:
        import streamlit as st

        from dashboard.ui.waiting import frame

        def view() -> None:
            with frame.figure("first"):
                st.markdown("half drawn")
                raise frame.Instead(lambda: st.button("Choose other data", key="choose_data"))
            st.markdown("the view goes on")

        frame.view(view)

    app = AppTest.from_function(asking, default_timeout=30).run()
    assert [button.key for button in app.button] == ["choose_data"]
    assert "half drawn" not in texts(app)
    assert "the view goes on" in texts(app)


def test_other_errors_and_reruns_pass_through_a_figure() -> None:
    def rerunning() -> None:
        import streamlit as st

        from dashboard.ui.waiting import frame

        with frame.figure("first"):
            if not st.session_state.get("again"):
                st.session_state["again"] = True
                st.rerun()
            st.markdown("drawn in the second run")
        try:
            with frame.figure("second"):
                raise ZeroDivisionError
        except ZeroDivisionError:
            st.markdown("the fault has passed")

    app = AppTest.from_function(rerunning, default_timeout=30).run()
    assert "drawn in the second run" in texts(app)
    assert "the fault has passed" in texts(app)


def test_what_is_removed_is_in_no_report_and_no_notebook(held: Held) -> None:
    def reported() -> None:
        import pandas as pd
        import streamlit as st

        from components.shown_code.code import Code
        from dashboard import caching
        from dashboard.jobs import requests
        from dashboard.sharing import report
        from dashboard.ui import figures
        from dashboard.ui.waiting import frame

        def table() -> pd.DataFrame:
            return pd.DataFrame({"number": [1]})

        collected = report.collect("search")
        figures.begin("home")
        with frame.figure("first"):
            figures.note("half drawn")
            figures.data("removed", table, Code("a = 1", (), ("print(a)",)), "Removed")
            jobs = caching.evaluations()
            job = jobs.request("held", "Ranking queries", lambda *_: "again", person=caching.person())
            requests.result_of(jobs, job, doing="testing", stop_key="stop", again_key="again")
        with frame.figure("second"):
            figures.note("whole")
            figures.data("kept", table, Code("a = 1", (), ("print(a)",)), "Kept")
        st.caption(f"{list(collected.parts)} {list(figures.drawn())}")

    app = AppTest.from_function(reported, default_timeout=30).run()
    assert "['note whole', 'kept'] ['kept']" in [item.value for item in app.caption]


def test_a_figure_that_is_not_ready_keeps_nothing_alive(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception holds the frames that it passed, and these the models that they used: garbage that is seldom collected."""

    class Model:
        pass

    found: list[weakref.ref[Model]] = []

    def draw() -> None:
        from dashboard.jobs import requests
        from dashboard.ui.waiting import frame

        model = Model()
        found.append(weakref.ref(model))
        with frame.figure("first") as figure:
            jobs = caching.evaluations()
            requests.result_of(jobs, held.job, doing="testing", stop_key="stop", again_key="again")
        assert figure.not_ready is not None

    monkeypatch.setattr("dashboard.ui.waiting.frame.draw", lambda problem: None)  # there is no page here
    gc.collect()
    gc.disable()
    try:
        draw()
        assert found[0]() is None
    finally:
        gc.enable()
