"""Laboratory: its views, each with its question, and those of the whole dashboard that answer what a person asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from components.model.catalog import EMBEDDED_KEY
from components.retrieval.search import questions
from dashboard import navigation, state
from dashboard.declared import table
from dashboard.jobs import requests
from dashboard.ui import controls, messages, model_gate

if TYPE_CHECKING:
    from components.arrays import Float32
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from dashboard.declared.view import View

CARDS = 3  # per row
MOST_FOUND = 5
# Titles of the cards, and the folders of dashboard/views whose views stand below each.
GROUPS = {
    "Models and what they return": ("model",),
    "Tokens and layers": ("tokens", "layers", "heatmaps", "map"),
    "Attention": ("attention", "word_attention"),
    "Search": ("search", "evaluate", "diagnosis"),
    "Cross-encoders and learnt rankings": ("pairs",),
}
ICONS = {  # by the same folders: all cards of the Laboratory would have its flask
    "model": ":material/deployed_code:",
    "tokens": ":material/text_fields:",
    "layers": ":material/show_chart:",
    "heatmaps": ":material/grid_on:",
    "map": ":material/scatter_plot:",
    "attention": ":material/visibility:",
    "pairs": ":material/compare_arrows:",
    "search": ":material/search:",
    "evaluate": ":material/bar_chart:",
}
EXAMPLES = (
    "Does [CLS] attend to itself?",
    "Where does the meaning of a word appear?",
    "Do smaller vectors lose much?",
    "How is my word split?",
)


def draw(backend: Backend) -> None:
    controls.bind(
        "asked",
        st.text_input,
        "Your question",
        placeholder="Ask, or choose a question below",
        label_visibility="collapsed",
        max_chars=200,
    )
    with st.container(horizontal=True, gap="xsmall", key="asked_examples"):
        for number, example in enumerate(EXAMPLES):
            st.button(example, key=f"ask_{number}", on_click=state.put, args=("asked", example))
    asked = str(state.get("asked")).strip()
    if asked:
        _found(asked, backend)
        return
    for title, views in groups().items():
        st.markdown(f"**{title}**")
        _cards(views)


def groups() -> dict[str, list[View]]:
    """The views of the Laboratory by what they are about, which the subject that declares them says."""
    found: dict[str, list[View]] = {title: [] for title in GROUPS}
    for view in table.views_of("laboratory"):
        if view.key != "laboratory":
            title = next((title for title, subjects in GROUPS.items() if _subject(view) in subjects), "Else")
            found.setdefault(title, []).append(view)
    return {title: views for title, views in found.items() if views}


def _subject(view: View) -> str:
    """The folder of dashboard/views that declares a view."""
    return view.draw.removeprefix("dashboard.views.").partition(".")[0]


def _found(asked: str, backend: Backend) -> None:
    """The views that answer a question, or that none does."""
    views = [view for view in table.VIEWS.values() if view.is_framed and view.key != "laboratory"]
    reader = _reader(backend)
    if reader is None:
        return
    asks = [(view, text) for view in views for text in (f"{view.label}. {view.question}", *view.asks)]
    texts = [text for _, text in asks]

    def embed(report_progress: ReportProgress, is_stopped: IsStopped) -> Float32:
        return _vectors(reader, texts, report_progress, is_stopped)

    vectors = requests.prepared(
        ("questions of views", reader.revision),
        "Reading the questions of the views",
        embed,
        "questions",
        "reading the questions of the views",
    )
    found = questions.scores(asked, texts, _vectors(reader, [asked])[0], vectors)
    of_views = np.array([max(found[row] for row, (other, _) in enumerate(asks) if other is view) for view in views])
    rows = questions.best(of_views, MOST_FOUND)
    if not rows:
        st.info(
            "No view's question comes close to this. Try other words, or one of the questions above.",
            icon=":material/search_off:",
        )
        return
    st.caption(
        f"The {len(rows)} that come closest of {len(views)} views, by the included encoder's vectors of the questions and by "
        "shared words."
        if len(rows) > 1
        else f"The one that comes closest of {len(views)} views."
    )
    _cards([views[row] for row in rows])


def _reader(backend: Backend) -> Backend | None:
    """The included encoder, once it is loaded: what is found must not depend on the model that is looked at."""
    if backend.spec.key == EMBEDDED_KEY:
        return backend
    return model_gate.further_models([EMBEDDED_KEY], lambda key: state.put("asked", "")).get(EMBEDDED_KEY)


def _vectors(
    reader: Backend,
    texts: list[str],
    report_progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Float32:
    """The model's own sentence vectors, float32 [text, dim]."""
    options = reader.embed_options([reader.facts.layers], [reader.own_pooling], None, precision="float32")
    return reader.embed(texts, options=options, progress=report_progress, is_stopped=is_stopped)[0, 0]


def _cards(views: list[View]) -> None:
    columns = [column for _ in range(0, len(views), CARDS) for column in st.columns(CARDS)]
    for column, view in zip(columns, views, strict=False):
        page = table.PAGE_BY_KEY[table.place_of(view.key)]
        icon = ICONS.get(_subject(view), page.icon) if page.key == "laboratory" else page.icon
        with column.container(border=True, key=f"view_card_{view.key}", height="stretch"):
            if st.button(messages.escape(view.label), key=f"open_{view.key}", icon=icon, type="tertiary"):
                navigation.go_to(view.key)
            st.markdown(view.question)
            if page.key != "laboratory":  # where a found one stands
                st.caption(f"{page.title} · {table.name_of(view.key)}")
