"""The list of pages, in the order in which a person visits them, and the frame that all but Home share."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import streamlit as st

from components.charts.stand_alone.page import Part
from components.model.catalog import EMBEDDED_KEY
from dashboard import state
from dashboard.corpora import current, remembered
from dashboard.jobs import progress
from dashboard.sharing import report
from dashboard.ui import controls, figures, messages, model_gate, page_header

if TYPE_CHECKING:
    from components.model.architecture.structure import Offer
    from components.model.backend import Backend

# key (also the address), title, icon, the question the page answers
PATH: tuple[tuple[str, str, str, str], ...] = (
    ("home", "Home", ":material/home:", ""),
    ("lessons", "Lessons", ":material/school:", "What can be learnt here?"),
    ("tokens", "Tokens", ":material/match_word:", "How does text become numbers?"),
    ("model", "Model", ":material/layers:", "What is inside the model?"),
    ("layers", "Layers", ":material/show_chart:", "How does a word's vector change?"),
    ("heatmaps", "Heatmaps", ":material/grid_on:", "What does a block do to each token?"),
    ("attention", "Attention", ":material/visibility:", "Which token attends to which?"),
    ("map", "Map", ":material/scatter_plot:", "How do blocks rearrange the tokens?"),
    ("search", "Search", ":material/search:", "Which sentences come closest?"),
    ("evaluate", "Evaluate", ":material/leaderboard:", "Which layer and pooling retrieve best?"),
    ("pairs", "Pairs", ":material/compare_arrows:", "How does a model read two texts together?"),
    ("why", "Why", ":material/troubleshoot:", "What makes two texts similar?"),
    ("training", "Training", ":material/model_training:", "What does fine-tuning change?"),
    ("about", "About", ":material/info:", ""),
)
# What each page, and each view that differs from its page, shows of a model. What a model lacks is not drawn, and said.
NEEDS: dict[str, Offer] = {
    "tokens": "tokens",
    "model": "texts",
    "layers": "blocks",
    "heatmaps": "blocks",
    "attention": "blocks",
    "map": "tokens",
    "search": "texts",
    "evaluate": "texts",
    "pairs": "blocks",
    "why": "blocks",
    "training": "blocks",
}
SHOWN = {  # what the pages and views that need it are about
    "blocks": "What is shown here needs an encoder, whose blocks change the vectors of tokens.",
    "tokens": "What is shown here needs the vectors of single tokens.",
    "texts": "What is shown here needs the vectors of whole texts.",
}
NOT_STEPS = {"home", "lessons", "about"}  # pages that are no step on the way from text to use


def pages() -> dict[str, Any]:
    """The pages by key. Streamlit requires new page objects in every run."""
    by_key = {
        key: st.Page(f"views/{key}/page.py", title=title, icon=icon, url_path=key, default=key == "home")
        for key, title, icon, _ in PATH
    }
    st.session_state["_pages"] = by_key
    return by_key


def page_of(key: str) -> Any:
    """The page with this key, to link to."""
    return st.session_state["_pages"][key]


class View(NamedTuple):
    """One view of a page."""

    label: str  # in the choice of views
    question: str  # the page's title while this view is open
    intro: str | Callable[[], str]  # one line on what the first figure shows; a function if it depends on settings
    needs: Offer | None = None  # what it shows of a model; None: what its page does
    without_blocks: tuple[str, str] | None = (
        None  # question and line for a model whose blocks are not shown, where they differ
    )


def show(
    page: str,
    views: dict[str, View],
    draw: Callable[[Any, str], None],
    doing: str,
    *,
    models: Callable[[], Any] = model_gate.main_model,
    needs_sentences: bool = False,
    foot: Callable[[], None] | None = None,
) -> None:
    """Draw a page: the question of the chosen view, the choice of views, the view, and a link to the next page.

    `draw(models(), view)` draws a view; an error message uses `doing` to name what failed. Of a model that lacks what a view
    shows, only the reason is said and what to do. With `needs_sentences`,
    a session without sentences gets the empty state instead. `foot` draws below every view.
    """
    if needs_sentences and not state.get("sentences"):
        st.title(next(question for key, _, _, question in PATH if key == page), anchor=False)
        messages.no_sentences()
        return

    is_refused = False
    offered: Collection[Offer] = ()

    @st.fragment
    def body() -> None:
        nonlocal is_refused, offered
        st.session_state[progress.DRAWING] = st.session_state.get(progress.DRAWING, 0) + 1
        st.session_state.pop(progress.IN_PAGE, None)  # each view that waits for jobs names them anew
        header = st.container(key="view_header")
        view = controls.choice(
            f"{page}_view", "View", {key: item.label for key, item in views.items()}, show_label=False
        )
        if page_header.is_outdated(page):
            state.postpone_address()
            st.rerun()  # the whole page: the line above, which is not drawn with the fragment, shows other sentences
        report.begin_view(page, views[view].question)
        with header:
            title, line = st.empty(), st.empty()
            title.title(views[view].question, anchor=False)
            intro = views[view].intro
            line.caption(intro if isinstance(intro, str) else intro())
        page_header.begin_view(page, current.in_use())
        refused = st.empty()
        state.watch()
        loaded = models()  # requested here because Streamlit keeps the fragment, which must not keep a model alive
        # The figures of the view before go at once; else they would stay, greyed, below the new title until all is drawn.
        is_new = st.session_state.get("_view") != (page, view)
        st.session_state["_view"] = (page, view)
        figures.begin()
        main = loaded[0] if isinstance(loaded, list) else loaded
        offered = main.structure.offered
        question = views[view].question
        instead = views[view].without_blocks
        if instead is not None and main.structure.why_not("blocks"):
            question, said = instead
            title.title(question, anchor=False)
            line.caption(said)
            report.begin_view(page, question)
        try:
            with st.empty().container() if is_new else st.container():
                needed = views[view].needs or NEEDS[page]
                is_refused = bool(main.structure.why_not(needed))
                if is_refused:  # the view's question and its line would speak of what is not drawn
                    named = views[view].label if views[view].needs else _title(page)
                    question = f"{named}: another model is needed"
                    title.title(question, anchor=False)
                    line.empty()
                    report.begin_view(page, question)
                if is_offered(main, needed, page):
                    messages.guarded(partial(draw, loaded, view), doing)
        finally:
            used = state.stop_watching()
            report.end_view(page, used)
        figures.notebook(question, page, used)
        controls.refuse_unavailable(page, loaded)
        remembered.draw(page)  # with the view: a mark of a hit draws nothing else anew
        with refused:
            messages.notices(page)
        if not controls.is_playing():  # one step in the browser's history for all that is played, not one for each
            state.write_address(page)

    controls.stop_playing()  # of a page visited before
    body()
    if foot is not None and not is_refused:
        foot()
    next_step(page, offered)


def _title(page: str) -> str:
    """What the list of pages calls a page."""
    return next(title for key, title, _, _ in PATH if key == page)


def is_offered(backend: Backend, needed: Offer, page: str) -> bool:
    """Whether a model has what a page or view shows; if not, the reason is drawn, and which other pages work."""
    reason = backend.structure.why_not(needed)
    if not reason:
        return True
    said = f"**{messages.escape(backend.spec.title)} {reason}.** {SHOWN[needed]}"
    st.info(said, icon=":material/block:")
    report.add("refused", Part(message=said))
    st.markdown("These pages work with it:" if page == "home" else "These other pages work with it:")
    offered = backend.structure.offered
    with st.container(horizontal=True, gap="small"):
        for key, title, icon, _ in PATH:
            if key in NEEDS and key != page and NEEDS[key] in offered:
                st.page_link(page_of(key), label=title, icon=icon)
    if state.get("model") == backend.spec.key:
        st.button(
            "Use the included model",
            key="use_included",
            type="primary",
            on_click=state.put,
            args=("model", EMBEDDED_KEY),
        )
    return False


def next_step(page: str, offered: Collection[Offer]) -> None:
    """The link at a page's foot: to the next page that shows what the model has (`offered`), or after the last one to Home."""
    keys = [key for key, *_ in PATH]
    further = [
        entry for entry in PATH[keys.index(page) + 1 :] if entry[0] not in NOT_STEPS and NEEDS[entry[0]] in offered
    ]
    key, title, _, question = further[0] if further else PATH[0]
    label = f"Next: {title}. {question}" if further else "Back to the start"
    st.divider()
    st.page_link(page_of(key), label=label, icon=":material/arrow_forward:")
