"""The way to a loaded model: its progress, consent to a download, and what to do when it cannot be loaded."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import streamlit as st

from components.errors import UserError
from components.model.catalog import EMBEDDED_KEY, catalog_spec, spec_of
from components.model.files import hub
from components.model.loader import progress_message
from dashboard import caching, state
from dashboard.ui.messages import escape, explain, model_notes

if TYPE_CHECKING:
    from components.jobs import Job
    from components.model.backend import Backend
    from components.model.catalog import ModelSpec


def main_model() -> Backend:
    """The chosen model, loaded; shows progress while it loads, and one clear screen when it cannot be had."""
    if needs_consent("model"):
        _consent_screen("model")
        st.stop()
    spec = spec_of(state.get("model"))
    job = caching.models().request(spec, caching.person())
    _wait(spec, job, "main")
    if job.result is None:
        _model_screen(spec, job)
        st.stop()
    model_notes(job.result)
    return job.result


def second_model() -> Backend | None:
    """The model to compare with, if one is chosen and can be had; a message says why when it cannot."""
    key = state.get("model2")
    if not key:
        return None
    if key == state.get("model"):
        st.info("“Compare with” names the same model: there is nothing to compare. Choose another one in the sidebar.")
        return None
    if needs_consent("model2"):
        _consent_screen("model2")
        return None
    spec = spec_of(key)
    job = caching.models().request(spec, caching.person())
    _wait(spec, job, "second")
    if job.result is None:
        with st.container(border=True):
            st.markdown(f"##### The second model, {escape(spec.title)}, could not be loaded")
            _why_not(job, "loading the second model")
            _retry_buttons(key, "model2", "", "Go on with one model")
        return None
    model_notes(job.result)
    return job.result


def needs_consent(setting: str) -> bool:
    """Whether a link asks for a model outside the catalog that would have to be fetched: a person decides that."""
    key = state.get(setting)
    if key not in st.session_state.get("_linked_models", ()) or catalog_spec(key) is not None:
        return False
    return spec_of(key).source == "hub" and hub.cached_folder(key) is None


def _consent_screen(setting: str) -> None:
    key = state.get(setting)
    st.warning(
        f"**This link asks for {escape(key)}**, a model of the hub that is not on this machine and not on this "
        "dashboard's list. Fetch it only if you trust who sent the link.",
        icon=":material/download:",
    )
    with st.container(horizontal=True):
        fallback = EMBEDDED_KEY if setting == "model" else ""
        st.button(
            "Go on without it", key=f"refuse_{setting}", type="primary", on_click=lambda: state.put(setting, fallback)
        )
        st.button("Fetch it", key=f"fetch_{setting}", on_click=lambda: st.session_state["_linked_models"].discard(key))


def _wait(spec: ModelSpec, job: Job, key: str) -> None:
    """Block until the job is done, drawing its progress; any click elsewhere interrupts the wait, not the job."""
    person = caching.person()
    if job.is_stopped_for(person) or job.finished.wait(0.02):
        return
    slot = st.empty()
    with slot.container():
        bar = st.progress(0.0, text=progress_message(spec, job))
        st.caption("The first time takes a moment; after that the model stays in memory.")
        cancel_slot = st.empty()
        with st.container(key="preload"):
            # Hidden: the browser fetches and reads plotly's code (5 MB) now, while it has nothing else to do.
            st.plotly_chart({"data": [{"type": "scatter"}]}, key=f"preload_{key}", alt="Nothing yet")
    started, asked = time.monotonic(), False
    while not job.is_stopped_for(person) and not job.finished.wait(0.1):
        fraction = job.fraction
        # Nothing is known of the time left while weights are read: the bar nears, but never claims, the end.
        guess = 1 - 1 / (1 + (time.monotonic() - started) / 4)
        bar.progress(fraction if fraction is not None else min(guess, 0.95), text=progress_message(spec, job))
        if fraction is not None and not asked:
            asked = True
            cancel_slot.button(
                "Cancel the download",
                key=f"cancel_{key}_load",
                on_click=caching.models().jobs.stop,
                args=(job, person),
            )
    slot.empty()


def _model_screen(spec: ModelSpec, job: Job) -> None:
    st.subheader("This model is not there yet", anchor=False)
    _why_not(job, f"loading {spec.title}")
    _retry_buttons(spec.key, "model", EMBEDDED_KEY, "Go on with the embedded model")
    facts = spec.facts
    if facts is not None:
        st.caption(
            f"Known of {escape(spec.title)} all the same: {facts.layers} blocks, {facts.heads} attention heads, "
            f"hidden size {facts.hidden_size:,}, feed-forward size {facts.feed_forward_size:,}, maximum positions "
            f"{facts.max_positions:,}, vocabulary size {facts.vocabulary_size:,}, {facts.parameters:,} parameters."
        )


def _why_not(job: Job, doing: str) -> None:
    """Why a model is not there: an error, or that this person stopped it."""
    if job.is_stopped_for(caching.person()) and not isinstance(job.error, UserError):
        st.info("Loading this model was stopped.")
    else:
        explain(job.error or RuntimeError("the model did not load and gave no error"), doing)


def _retry_buttons(key: str, setting: str, fallback: str, label: str) -> None:
    with st.container(horizontal=True):
        st.button(
            label,
            key=f"fallback_{setting}",
            type="primary",
            on_click=lambda: state.put(setting, fallback),
            disabled=key == fallback,
        )
        st.button(
            "Try again",
            key=f"retry_{setting}",
            on_click=caching.models().forget,
            args=(key, caching.person()),
        )


def chosen_models() -> list[Backend]:
    """The main model, and the second where one is chosen and can be had."""
    main, second = main_model(), second_model()
    return [main] if second is None else [main, second]
