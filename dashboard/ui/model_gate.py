"""Getting a loaded model: consent to a download, progress, and what to do if the model cannot be loaded."""

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
    """The chosen model, loaded. Shows progress while it loads; if it is not available, says so and ends the page."""
    job = _loading_job("model", "main")
    if job is not None and job.result is None:
        _failure_screen(spec_of(state.get("model")), job)
    if job is None or job.result is None:
        st.stop()
    model_notes(job.result)
    return job.result


def second_model() -> Backend | None:
    """The model to compare with, loaded; None if none is chosen, or if it is not available, which a message explains."""
    key = state.get("model2")
    if not key:
        return None
    if key == state.get("model"):
        st.info(
            "The second model is the same as the first: there is nothing to compare. Choose another one in the sidebar."
        )
        return None
    job = _loading_job("model2", "second")
    if job is None:
        return None
    if job.result is None:
        with st.container(border=True):
            st.markdown(f"##### The second model, {escape(spec_of(key).title)}, could not be loaded")
            _explain_failure(job, "loading the second model")
            _retry_buttons(key, "model2", "", "Continue with one model")
        return None
    model_notes(job.result)
    return job.result


def chosen_models() -> list[Backend]:
    """The main model, and the second one if it is chosen and available."""
    main, second = main_model(), second_model()
    return [main] if second is None else [main, second]


def _loading_job(setting: str, key: str) -> Job | None:
    """The finished job that loads a setting's model; None if a person must first agree to the download."""
    if needs_consent(setting):
        _consent_screen(setting)
        return None
    spec = spec_of(state.get(setting))
    job = caching.models().request(spec, caching.person())
    _wait(spec, job, key)
    return job


def needs_consent(setting: str) -> bool:
    """Whether a link names a model outside the catalog that must be downloaded: a person decides about that."""
    key = state.get(setting)
    if key not in st.session_state.get("_linked_models", ()) or catalog_spec(key) is not None:
        return False
    return spec_of(key).source == "hub" and hub.cached_folder(key) is None


def _consent_screen(setting: str) -> None:
    key = state.get(setting)
    st.warning(
        f"**This link asks for {escape(key)}**, a model from the Hugging Face hub. It is not stored on this machine and "
        "not on this dashboard's list. Download it only if you trust the sender of the link.",
        icon=":material/download:",
    )
    with st.container(horizontal=True):
        fallback = EMBEDDED_KEY if setting == "model" else ""
        st.button(
            "Continue without it", key=f"refuse_{setting}", type="primary", on_click=state.put, args=(setting, fallback)
        )
        st.button(
            "Download it", key=f"fetch_{setting}", on_click=st.session_state["_linked_models"].discard, args=(key,)
        )


def _wait(spec: ModelSpec, job: Job, key: str) -> None:
    """Wait until the job is done, and draw its progress; a click elsewhere ends the wait, not the job."""
    person = caching.person()
    if job.is_stopped_for(person) or job.finished.wait(0.02):
        return
    slot = st.empty()
    with slot.container():
        bar = st.progress(0.0, text=progress_message(spec, job))
        st.caption("Loading takes a moment the first time; after that the model stays in memory.")
        cancel_slot = st.empty()
        with st.container(key="preload"):
            # Hidden: the browser loads plotly's code (5 MB) now, while it has nothing else to do.
            st.plotly_chart({"data": [{"type": "scatter"}]}, key=f"preload_{key}", alt="An empty figure")
    started, has_cancel_button = time.monotonic(), False
    while not job.is_stopped_for(person) and not job.finished.wait(0.1):
        fraction = job.fraction
        # The time to read the weights is not known: the bar approaches the end and does not reach it.
        guess = 1 - 1 / (1 + (time.monotonic() - started) / 4)
        bar.progress(fraction if fraction is not None else min(guess, 0.95), text=progress_message(spec, job))
        if fraction is not None and not has_cancel_button:
            has_cancel_button = True
            cancel_slot.button(
                "Cancel the download",
                key=f"cancel_{key}_load",
                on_click=caching.models().jobs.stop,
                args=(job, person),
            )
    slot.empty()


def _failure_screen(spec: ModelSpec, job: Job) -> None:
    st.subheader("This model could not be loaded", anchor=False)
    _explain_failure(job, f"loading {spec.title}")
    _retry_buttons(spec.key, "model", EMBEDDED_KEY, "Continue with the included model")
    facts = spec.facts
    if facts is not None:
        st.caption(
            f"Facts about {escape(spec.title)} that are known without loading it: {facts.layers} blocks, {facts.heads} "
            f"attention heads, hidden size {facts.hidden_size:,}, feed-forward size {facts.feed_forward_size:,}, maximum "
            f"positions {facts.max_positions:,}, vocabulary size {facts.vocabulary_size:,}, {facts.parameters:,} parameters."
        )


def _explain_failure(job: Job, doing: str) -> None:
    """Say why a model is not available: an error occurred, or this person stopped the loading."""
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
            on_click=state.put,
            args=(setting, fallback),
            disabled=key == fallback,
        )
        retry = caching.models().forget
        st.button("Try again", key=f"retry_{setting}", on_click=retry, args=(key, caching.person()))
