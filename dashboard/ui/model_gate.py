"""Getting a loaded model: consent to a download, progress, and what to do if the model cannot be loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from components import operator_settings
from components.errors import ModelError
from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY, EMBEDDED_KEY, catalog_spec, spec_of
from components.model.files import hub
from components.sizes import in_words
from dashboard import caching, state
from dashboard.jobs import requests, warm_up
from dashboard.jobs.requests import Awaited
from dashboard.jobs.reranking import SecondStage, likely_label
from dashboard.ui import controls
from dashboard.ui.messages import escape, model_notes
from dashboard.ui.waiting import progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from components.jobs import Job
    from components.model.architecture.structure import Offer
    from components.model.backend import Backend
    from components.model.catalog import ModelSpec


def request_model() -> None:
    """Let the chosen model be loaded, unless a person must first agree to the download."""
    if not needs_consent("model"):
        caching.models().request(spec_of(state.get("model")), caching.person())


def request_model_after_picture(is_drawn: bool) -> None:
    """The same for a page whose picture needs no model: see `warm_up.load_after_picture`, also for `is_drawn`."""
    if not needs_consent("model"):
        warm_up.load_after_picture(spec_of(state.get("model")), caching.person(), is_drawn)


def main_model() -> Backend:
    """The chosen model, loaded. Shows progress while it loads; if it is not available, says so and ends the page."""
    job = _loading_job("model", "main")
    if job is not None and job.result is None:
        _failure_screen(spec_of(state.get("model")), job)
    if job is None or job.result is None:
        st.stop()
    model_notes(job.result)
    return job.result


def second_model(needed: Offer = "texts") -> Backend | None:
    """The model to compare with, loaded; None if none is chosen, or if it is not available, which a message explains.

    `needed` is what of it is compared: a model that lacks it is left out, with the reason.
    """
    key = state.get("model2")
    if not key:
        return None
    if key == state.get("model"):
        st.info(
            "The second model is the same as the first: there is nothing to compare. Choose another one in the sidebar."
        )
        return None
    if not caching.models().fits(spec_of(key), [spec_of(state.get("model"))]):
        st.info(_too_large(key))
        return None
    job = _loading_job("model2", "second")
    if job is None:
        return None
    if job.result is None:
        with st.container(border=True):
            st.markdown(f"##### The second model, {escape(spec_of(key).title)}, could not be loaded")
            progress.explain_end(job, doing="loading the second model")
            _retry_buttons(job, "model2", "", "Continue with one model")
        return None
    reason = job.result.structure.why_not(needed)
    if reason:
        st.info(f"**{escape(job.result.spec.title)}** is not compared here. It {reason}.")
        return None
    model_notes(job.result)
    return job.result


def cross_encoder() -> Backend | None:
    """The chosen cross-encoder, loaded; None if it is not available or scores no pairs, which a message explains."""
    job = _loading_job("cross_encoder", "cross_encoder")
    if job is None:
        return None
    title = escape(spec_of(state.get("cross_encoder")).title)
    if job.result is None:
        with st.container(border=True):
            st.markdown(f"##### The cross-encoder, {title}, could not be loaded")
            progress.explain_end(job, doing="loading the cross-encoder")
            _retry_buttons(job, "cross_encoder", EMBEDDED_CROSS_ENCODER_KEY, "Continue with the included cross-encoder")
        return None
    backend: Backend = job.result
    try:
        backend.pair_labels()
    except ModelError as problem:
        st.info(f"{escape(problem.problem)} Choose a cross-encoder in the sidebar.")
        return None
    return backend


def second_stage(kind: str, backend: Backend, layer: int | None = None) -> SecondStage | None:
    """The second stage of a kind; None if its model is not available, which a message explains.

    MaxSim takes the vectors that `backend` was trained for, or else its hidden states at a layer, the last one by default.
    """
    if kind == "maxsim":
        last = backend.facts.layers
        return SecondStage("maxsim", backend, controls.length_for(backend), layer=last if layer is None else layer)
    return cross_encoder_stage()


def cross_encoder_stage() -> SecondStage | None:
    """The session's cross-encoder, with its maximum length and label; None if it is not available, as a message explains."""
    scorer = cross_encoder()
    if scorer is None:
        return None
    names = scorer.pair_labels()
    label = None
    if len(names) > 1:
        chosen = state.get("score_label")
        label = names.index(chosen if chosen in names else likely_label(names))
    return SecondStage("rerank", scorer, controls.length_for(scorer), label=label)


def label_choice(stage: SecondStage, after_change: Callable[[], None] | None = None) -> None:
    """The label that a cross-encoder with several is ranked by; draws nothing for others."""
    names = stage.backend.pair_labels() if stage.kind == "rerank" else ()
    if len(names) > 1:
        options = {name: name for name in names}
        controls.pick("score_label", "Label", options, default=likely_label(names), after_change=after_change)


def chosen_models() -> list[Backend]:
    """The main model, and the second one if it is chosen, available, and has blocks too."""
    main = main_model()
    second = None if main.structure.why_not("blocks") else second_model("blocks")  # else the page says why it is empty
    return [main] if second is None else [main, second]


def further_models(keys: Sequence[str], leave_out: Callable[[str], None]) -> dict[str, Backend]:
    """Models beside the main one, loaded, by key: those that are not available, or not yet, are missing, which is drawn.

    They are loaded at the same time. `leave_out(key)` is called when a person chooses to continue without a model. A link
    can name several: none of them is downloaded before somebody agrees.
    """
    models, person = caching.models(), caching.person()
    fitting = _fitting(keys)
    downloads = [key for key in fitting if _is_linked_download(key)]
    jobs = {key: models.request(spec_of(key), person) for key in fitting if key not in downloads}
    loaded = {}
    _consent_to_listed([key for key in downloads if not _is_unknown_link(key)], leave_out)
    with progress.one_bar():
        for key in keys:
            job = jobs.get(key)
            if key not in fitting:
                st.markdown(f":orange[:material/memory:] {_too_large(key)}")
            elif _is_unknown_link(key):
                _consent_to_further(key, leave_out)
            elif job is None:  # it is in the box above
                continue
            elif requests.is_awaited(job) and not requests.given_time(job):
                progress.draw(Awaited(models.jobs, job, "loading a model", "stop_further", f"again_{key}"))
            elif job.result is None:
                _missing(key, job, leave_out)
            else:
                loaded[key] = job.result
    for backend in loaded.values():
        model_notes(backend)
    return loaded


def _fitting(keys: Sequence[str]) -> list[str]:
    """Those of several models that can be in memory together with the main one, the first ones first.

    Without this, each that is loaded would push out another, and the page would load them in turn for ever.
    """
    main = spec_of(state.get("model"))
    kept: list[str] = []
    for key in keys:
        if caching.models().fits(spec_of(key), [main, *map(spec_of, kept)]):
            kept.append(key)
    return kept


def _too_large(key: str) -> str:
    """Why a model is left out."""
    models, spec = caching.models(), spec_of(key)
    return (
        f"**{escape(spec.title)} is left out:** it takes {in_words(models.size(spec), binary=True)} of memory, and all models "
        f"of this server together at most {in_words(models.max_bytes, binary=True)}. Compare fewer or smaller models; "
        "whoever runs the server can raise the "
        f"limit ({operator_settings.MODEL_BYTES.variable})."
    )


def _missing(key: str, job: Job, leave_out: Callable[[str], None]) -> None:
    """Say in a line that one of several models is not loaded, with the reason in a popover, and what can be done."""
    with st.container(horizontal=True, vertical_alignment="center", key=f"missing_{key}"):
        st.markdown(
            f":orange[:material/cloud_off:] **{escape(spec_of(key).title)} could not be loaded:** the others are compared.",
            width="content",
        )
        with st.popover("Why", width="content"):
            progress.explain_end(job, doing="loading a model")
        st.button("Leave it out", key=f"leave_{key}", on_click=leave_out, args=(key,))
        # No job as an argument: a widget keeps its arguments, and others may get the model.
        label, arguments = progress.again_label(job), (key, caching.person())
        progress.again(label, f"again_{key}", caching.models().forget, arguments, is_main=False)


def _consent_to_listed(keys: Sequence[str], leave_out: Callable[[str], None]) -> None:
    """Ask once about all models of the list that a link names and that must be downloaded; draws nothing without any."""
    if not keys:
        return

    def agree() -> None:
        st.session_state["_linked_models"].difference_update(keys)

    def refuse() -> None:
        for key in keys:
            leave_out(key)

    specs = [spec_of(key) for key in keys]
    named = [
        escape(spec.title) + ("" if spec.megabytes is None else f" ({in_words(1e6 * spec.megabytes, about=True)})")
        for spec in specs
    ]
    them = "it" if len(keys) == 1 else "them"
    with st.container(border=True):
        st.markdown(
            f":material/download: **This link compares with models that are not stored on this machine:** {', '.join(named)}. "
            f"You can download {them} from the Hugging Face hub."
        )
        with st.container(horizontal=True):
            st.button(f"Leave {them} out", key="leave_listed", type="primary", on_click=refuse)
            st.button(f"Download {them}", key="fetch_listed", on_click=agree)


def _consent_to_further(key: str, leave_out: Callable[[str], None]) -> None:
    with st.container(border=True):
        st.markdown(f":material/download: {_asked_for(key)}")
        with st.container(horizontal=True):
            st.button("Leave it out", key=f"leave_{key}", type="primary", on_click=leave_out, args=(key,))
            agree = st.session_state["_linked_models"].discard
            st.button("Download it", key=f"fetch_{key}", on_click=agree, args=(key,))


def _loading_job(setting: str, key: str) -> Job | None:
    """The finished job that loads a setting's model; None if a person must first agree to the download."""
    if needs_consent(setting):
        _consent_screen(setting)
        return None
    models = caching.models()
    job = models.request(spec_of(state.get(setting)), caching.person())
    progress.wait(
        models.jobs, job, stop_key=f"stop_{key}_load", unit=progress.BYTES, meanwhile=lambda: _while_loading(key)
    )
    return job


def needs_consent(setting: str) -> bool:
    """Whether a link names a model outside the catalog that must be downloaded: a person decides about that."""
    return _is_unknown_link(state.get(setting))


def _is_unknown_link(key: str) -> bool:
    """Whether this is such a model."""
    return catalog_spec(key) is None and _is_linked_download(key)


def _is_linked_download(key: str) -> bool:
    """Whether a link names this model, and it must be downloaded."""
    if key not in st.session_state.get("_linked_models", ()):
        return False
    return spec_of(key).source == "hub" and hub.cached_folder(key) is None


def _asked_for(key: str) -> str:
    return (
        f"**This link asks for {escape(key)}**, a model from the Hugging Face hub. It is not stored on this machine and "
        "not on this dashboard's list. Download it only if you trust the sender of the link."
    )


def _consent_screen(setting: str) -> None:
    key = state.get(setting)
    st.warning(_asked_for(key), icon=":material/download:")
    with st.container(horizontal=True):
        fallback = state.default(setting)
        st.button(
            "Continue without it", key=f"refuse_{setting}", type="primary", on_click=state.put, args=(setting, fallback)
        )
        st.button(
            "Download it", key=f"fetch_{setting}", on_click=st.session_state["_linked_models"].discard, args=(key,)
        )


def _while_loading(key: str) -> None:
    st.caption("Loading takes a moment the first time; after that the model stays in memory.")
    if key != "main":  # the first model's load has drawn it
        return
    with st.container(key="preload"):
        # Hidden: the browser loads plotly's code (5 MB) now, while it has nothing else to do.
        st.plotly_chart({"data": [{"type": "scatter"}]}, key="preload_figure", alt="An empty figure")


def _failure_screen(spec: ModelSpec, job: Job) -> None:
    st.subheader("This model could not be loaded", anchor=False)
    progress.explain_end(job, doing=f"loading {spec.title}")
    _retry_buttons(job, "model", EMBEDDED_KEY, "Continue with the included model")
    facts = spec.facts
    if facts is not None:
        st.caption(
            f"Facts about {escape(spec.title)} that are known without loading it: {facts.layers} blocks, {facts.heads} "
            f"attention heads, hidden size {facts.hidden_size:,}, feed-forward size {facts.feed_forward_size:,}, maximum "
            f"positions {facts.max_positions:,}, vocabulary size {facts.vocabulary_size:,}, {facts.parameters:,} parameters."
        )


def _retry_buttons(job: Job, setting: str, fallback: str, label: str) -> None:
    with st.container(horizontal=True):
        st.button(
            label,
            key=f"fallback_{setting}",
            type="primary",
            on_click=state.put,
            args=(setting, fallback),
            disabled=job.key == fallback,
        )
        progress.again(
            progress.again_label(job),
            f"retry_{setting}",
            caching.models().forget,
            (job.key, caching.person()),  # no job: a widget keeps its arguments, and others may get the model
            is_main=False,
        )
