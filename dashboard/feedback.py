"""What people are told: guards, errors, how to read a figure, its data and downloads."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from components.errors import PeopleError
from components.model import hub
from components.model.catalog import EMBEDDED_KEY, catalog_spec, spec_of
from dashboard import caching, navigation, ready_made, state

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from components.model.backend import Backend
    from components.model.shelf import LoadJob
    from components.model.trace import TokenizedSentence

log = logging.getLogger(__name__)
LIGHT_PAPER, DARK_PAPER = "#FFFFFF", "#12161C"  # the page's own backgrounds, as in .streamlit/config.toml


def notices() -> None:
    """What was wrong with a link, for some seconds. It quotes the link, so nothing in it may count as markup."""
    for text in state.current_notices():
        st.warning(escape(text), icon=":material/link_off:")


def explain(problem: Exception, where: str) -> None:
    """An error as a message for people; whatever is not meant for them goes to the server's log only."""
    if isinstance(problem, PeopleError):
        st.error(f"**{escape(problem.given)}** {escape(problem.expected)}\n\n{escape(problem.mend)}")
        return
    log.error("%s failed", where, exc_info=problem)
    st.error(
        f"**Something went wrong while {where}.** This is a fault of the dashboard, not yours; the server's log "
        "tells more.\n\nChange the sentences or the model, or reset to the defaults in the sidebar."
    )


def escape(text: str) -> str:
    """Text with Markdown's and HTML's signs made plain, and addresses no links.

    Streamlit's Markdown turns bare addresses into links after it has read the escapes; a word joiner, which
    nobody sees, keeps it from it.
    """
    plain = "".join(f"\\{char}" if char in "\\`*_{}[]()<>#+!|$~:&" else char for char in text)
    return re.sub(r"(?i)(:(?=//)|www(?=\.)|@)", "\\1\u2060", plain)


def main_model() -> Backend:
    """The chosen model, loaded; shows progress while it loads, and one clear screen when it cannot be had."""
    if needs_consent("model"):
        _consent_screen("model")
        st.stop()
    spec = spec_of(state.get("model"))
    job = caching.shelf().request(spec)
    _wait(job, "main")
    if job.backend is None:
        _model_screen(job)
        st.stop()
    return job.backend


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
    job = caching.shelf().request(spec_of(key))
    _wait(job, "second")
    if job.backend is None:
        with st.container(border=True):
            st.markdown(f"##### The second model, {escape(job.spec.title)}, is not there")
            explain(job.error or RuntimeError("no error given"), "loading the second model")
            _retry_buttons(job, "model2", "", "Go on with one model")
    return job.backend


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


def _wait(job: LoadJob, which: str) -> None:
    """Block until the job is done, drawing its progress; any click elsewhere interrupts the wait, not the job."""
    if job.finished.wait(0.02):
        return
    place = st.empty()
    with place.container():
        bar = st.progress(0.0, text=job.message)
        st.caption("The first time takes a moment; after that the model stays in memory.")
        cancel_place = st.empty()
        with st.container(key="preload"):
            # Hidden: the browser fetches and reads plotly's code (5 MB) now, while it has nothing else to do.
            st.plotly_chart({"data": [{"type": "scatter"}]}, key=f"preload_{which}", alt="Nothing yet")
    started, asked = time.monotonic(), False
    while not job.finished.wait(0.1):
        fraction = job.fraction
        # Nothing is known of the time left while weights are read: the bar nears, but never claims, the end.
        guess = 1 - 1 / (1 + (time.monotonic() - started) / 4)
        bar.progress(fraction if fraction is not None else min(guess, 0.95), text=job.message)
        if fraction is not None and not asked:
            asked = True
            cancel_place.button("Cancel the download", key=f"cancel_{which}_load", on_click=job.cancel.set)
    place.empty()


def _model_screen(job: LoadJob) -> None:
    st.subheader("This model is not there yet", anchor=False)
    explain(job.error or RuntimeError("the model did not load and gave no error"), f"loading {job.spec.title}")
    _retry_buttons(job, "model", EMBEDDED_KEY, "Go on with the embedded model")
    facts = job.spec.facts
    if facts is not None:
        st.caption(
            f"Known of {escape(job.spec.title)} all the same: {facts.layers} blocks, {facts.heads} attention heads, "
            f"hidden size {facts.hidden_size:,}, feed-forward size {facts.feed_forward_size:,}, maximum positions "
            f"{facts.max_positions:,}, vocabulary size {facts.vocabulary_size:,}, {facts.parameters:,} parameters."
        )


def _retry_buttons(job: LoadJob, setting: str, fallback: str, label: str) -> None:
    with st.container(horizontal=True):
        st.button(
            label,
            key=f"fallback_{setting}",
            type="primary",
            on_click=lambda: state.put(setting, fallback),
            disabled=job.spec.key == fallback,
        )
        st.button("Try again", key=f"retry_{setting}", on_click=lambda: caching.shelf().forget(job.spec.key))


def guarded(draw: Callable[[], None], where: str) -> None:
    """Run a page's body; errors become messages, never tracebacks."""
    try:
        draw()
    except Exception as problem:  # noqa: BLE001 - the last place before Streamlit would show a traceback
        explain(problem, where)


def needs_sentences() -> bool:
    """Whether there is no sentence; if so, the empty state is drawn, and the page ends there."""
    if state.get("sentences"):
        return False
    st.info(
        "**No sentence yet.** Type one in the sidebar, one a line, or start with an example.",
        icon=":material/edit_note:",
    )
    if st.button("Start with the bank sentences", key="start_example", type="primary"):
        state.put("sentences", ready_made.ready_made_sets()["bank"].sentences)
        st.rerun()  # of the whole page: the sidebar shows them too
    return True


def figure(
    chart: go.Figure,
    *,
    key: str,
    alt: str,
    table: Callable[[], pd.DataFrame],
    read: str = "",
    not_shown: str = "",
    message: str = "",
    on_select: Callable[[], None] | None = None,
    select_many: bool = True,
) -> None:
    """A figure with what belongs beside it: its message, how to read it, what it does not show, its data.

    `table` is called only when somebody opens the data. The toolbar's camera saves PNG or SVG, as chosen in
    the sidebar. Figures that share one `reading` leave `read` empty and call it themselves. `on_select` is called
    before the next run when points were chosen by click, or with `select_many` by box or lasso; the choice is under `key` in
    session state.
    """
    if message:
        st.markdown(f":material/insights: {message}")
    # Not transparent: a picture saved in dark mode would carry light type on nothing.
    chart.update_layout(paper_bgcolor=DARK_PAPER if st.context.theme.type == "dark" else LIGHT_PAPER)
    st.plotly_chart(
        chart,
        key=key,
        alt=alt,
        on_select=on_select or "ignore",
        selection_mode=("points", "box", "lasso") if select_many else "points",
        config={
            "displaylogo": False,
            "modeBarButtonsToRemove": ["autoScale2d", *(() if on_select and select_many else ("select2d", "lasso2d"))],
            "toImageButtonOptions": {
                "format": st.session_state.get("picture_format", "png"),
                "filename": f"bert-internals-{key}",
                "scale": 2,
            },
        },
    )
    data(key, table)
    if read:
        reading(read, not_shown)


def reading(read: str, not_shown: str, stacked: bool = False) -> None:
    """How to read a figure, and what it does not show, side by side (or `stacked`)."""
    left, right = (st.container(), st.container()) if stacked else st.columns(2)
    left.markdown(f"**How to read this**  \n{read}")
    right.markdown(f"**What it does not show**  \n{not_shown}")


def data(key: str, table: Callable[[], pd.DataFrame]) -> None:
    """A figure's numbers as a table and a CSV, made when asked for."""
    panel = st.expander("Data of this figure", icon=":material/table:", key=f"data_{key}", on_change="rerun")
    if not panel.open:
        return
    with panel:
        frame = table()
        st.dataframe(frame, hide_index=True, key=f"table_{key}")
        download(frame, key)


def download(frame: pd.DataFrame, key: str) -> None:
    """A button that saves a table as CSV."""
    st.download_button(
        "Download as CSV",
        _csv(frame),
        file_name=f"bert-internals-{key}.csv",
        mime="text/csv",
        key=f"csv_{key}",
        icon=":material/download:",
        on_click="ignore",
    )


def truncation(sentences: Sequence[TokenizedSentence], model: str = "") -> None:
    """Say exactly which text did not reach the model; `model` names it where there are two."""
    whom = f"{escape(model)}'s" if model else "the chosen" if state.get("max_length") else "the model's"
    for number, sentence in enumerate(sentences, start=1):
        for item in sentence.dropped:
            with st.container(border=True):
                which = "The second text" if item.of_pair else f"Sentence {number}"
                st.markdown(
                    f":orange[:material/content_cut:] **{which} is longer than {whom} maximum length:** {item.tokens:,} "
                    f"token{' was' if item.tokens == 1 else 's were'} cut away, from character {item.start + 1} on. "
                    "It never saw:"
                )
                st.text(item.text if len(item.text) <= 1_500 else item.text[:1_500] + " …")


def chosen_models() -> list[Backend]:
    """The main model, and the second where one is chosen and can be had."""
    main, second = main_model(), second_model()
    return [main] if second is None else [main, second]


def beside(
    own: Mapping[str, object], columns: Mapping[str, Sequence[str]], rows: Iterable[int]
) -> dict[str, list[str]]:
    """A corpus's own columns at some rows, under names that hide none of a table's `own`."""
    picked = [int(row) for row in rows]
    return {
        f"{name} (column)" if name in own else name: [column[row] for row in picked] for name, column in columns.items()
    }


def _csv(frame: pd.DataFrame) -> bytes:
    """A CSV for spreadsheets: marked as UTF-8, and text that would count as a formula made plain text."""

    def plain(value: object) -> object:
        return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@")) else value

    return frame.map(plain).rename(columns=plain).to_csv(index=False).encode("utf-8-sig")


def next_step(page: str) -> None:
    """The link at a page's foot to the one after it on the path; to the start after the last."""
    keys = [key for key, *_ in navigation.PATH]
    after = navigation.PATH[(keys.index(page) + 1) % len(keys)]
    label = f"Next: {after[1]}. {after[3]}" if after[0] != "home" else "Back to the start"
    st.divider()
    st.page_link(navigation.page_of(after[0]), label=label, icon=":material/arrow_forward:")
