"""In which order runs are measured and shown, where one of them takes long."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from streamlit.testing.v1 import AppTest

from components.retrieval.rankings.run_code import RunCode
from dashboard import caching
from tests.support.pages import texts

VECTORS = RunCode("m", 6, "mean")
SLOW = replace(VECTORS, second="rr", k=20)
CODES = (SLOW, RunCode(words="bm25"), RunCode.fused((VECTORS, RunCode(words="bm25"))), replace(SLOW, k=50))
release = threading.Event()


def outcome_of(code: RunCode, sides: Any) -> str:
    from dashboard.jobs import evaluation

    def work(report_progress: Any, is_stopped: Any) -> str:
        if code == SLOW:
            release.wait(60)
        return str(code)

    return evaluation.result(("gathered", str(code)), f"Measuring {code}", work, f"of_{code}", short=code != SLOW)


def page() -> None:
    import streamlit as st

    from dashboard.views.evaluate.choices import RunRequest
    from tests.dashboard.views.evaluate import test_gather as here

    request = RunRequest({"m": object()}, here.CODES, {str(code): str(code) for code in here.CODES})  # type: ignore[dict-item]
    ready, _ = request.gather(here.outcome_of, lambda request, model: None)
    st.markdown(f"Ready: {[str(code) for code, *_ in ready]}")


def test_measured_rows_do_not_wait_for_a_long_one_and_keep_their_places() -> None:
    slow, words, fused, later = map(str, CODES)
    try:
        app = AppTest.from_function(page, default_timeout=30).run()
        assert f"Ready: {[words, fused]}" in texts(app)
        assert f"The next runs: “{later}”" in texts(app).replace("\\", "")
        assert caching.evaluations().find(("gathered", later)) is None
        caching.evaluations().add(("gathered", later), "measured before", later)
        assert f"Ready: {[words, fused, later]}" in texts(app.run())  # after a reload it does not wait either
    finally:
        release.set()
    job = caching.evaluations().find(("gathered", slow))
    assert job is not None
    assert job.finished.wait(30)
    assert f"Ready: {[slow, words, fused, later]}" in texts(app.run())
