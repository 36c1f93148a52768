"""The pages as Streamlit knows them, and the frame of a view: its question, the choice of views, and the next step."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.charts.stand_alone.page import PagePart
from components.model.catalog import EMBEDDED_KEY
from dashboard import caching, state
from dashboard.corpora import current, remembered, usage
from dashboard.declared import stops, table
from dashboard.sharing import lecture, report
from dashboard.ui import controls, figures, languages, messages, model_gate, page_header
from dashboard.ui.waiting import frame, progress
from dashboard.ui.whole_path import strip

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from components.model.architecture.structure import Offer
    from components.model.backend import Backend
    from dashboard.declared.view import View

HOME, PRODUCT = "home", "BERT Internals"
MOST_BESIDE = 8  # names of views that stand beside each other: of more there is a drop-down list
# Settings of views in which words are chosen, joined or left out.
WITH_WORDS = frozenset(
    ("tokens", "whole_word", "merge_words", "mask_word", "depth_first_word", "split_steps", "all_words")
)
SHOWN = {  # what the pages and views that need it are about
    "blocks": "What is shown here needs an encoder, whose blocks change the vectors of tokens.",
    "tokens": "What is shown here needs the vectors of single tokens.",
    "texts": "What is shown here needs the vectors of whole texts.",
}


def pages() -> dict[str, Any]:
    """The pages by key. Streamlit requires new page objects in every run."""
    by_key = {
        page.key: st.Page(
            partial(show, page.key),
            title=page.title,
            icon=page.icon,
            url_path=page.key,
            default=page.key == HOME,
        )
        for page in table.PAGES
    }
    st.session_state["_pages"] = by_key
    return by_key


def page_of(key: str) -> Any:
    """The page with this key, to link to."""
    return st.session_state["_pages"][key]


def go_to(view: str, **values: Any) -> None:
    """Open a view where it stands, with these settings. Not from a callback, which cannot go to another page."""
    for name, value in values.items():
        state.put(name, value)
        state.forget_texts(name)
    state.open_view(view)
    st.switch_page(page_of(table.place_of(view)))


def steps() -> tuple[table.Page, ...]:
    """The pages that are steps on the way from text to use."""
    return tuple(page for page in table.PAGES if page.is_step)


def hints() -> str:
    """A style sheet that writes the hint of each page below its title in the sidebar, and a line above what is no door."""
    rules = [
        '[data-testid="stSidebarNavLink"] { flex-wrap: wrap; row-gap: 0; padding-bottom: 0.3rem; } '
        '[data-testid="stSidebarNavLink"]::after '
        "{ flex-basis: 100%; padding-left: 1.55rem; font-size: 0.75rem; line-height: 1.1; font-weight: 400; opacity: 0.75; }"
    ]
    rules += [
        f'[data-testid="stSidebarNavLink"][href$="/{"" if page.key == HOME else page.key}"]::after '
        f'{{ content: "{page.hint}"; }}'
        for page in table.PAGES
    ]
    first = next(page for page in table.PAGES if not page.is_door)
    rules.append(
        f'[data-testid="stSidebarNavItems"] > li:has([href$="/{first.key}"]) '
        "{ border-top: 1px solid rgba(133, 139, 149, 0.3); margin-top: 0.5rem; padding-top: 0.5rem; }"
    )
    return f"<style>{' '.join(rules)}</style>"


def name_tab(page: str) -> None:
    """Give the browser's tab the question of the open view, by which people find it among others and in their history."""
    view = table.VIEWS[state.view_of(page)]
    name = _question(view) or table.PAGE_BY_KEY[page].title
    st.set_page_config(page_title=PRODUCT if page == HOME else f"{name} · {PRODUCT}")


def _question(view: View) -> str:
    """The title while a view is open."""
    return str(resolve_name(view.asked_by)()) if view.asked_by else view.question


def show(page: str) -> None:
    """Draw the open view of a page."""
    view = table.VIEWS[state.view_of(page)]
    if view.is_framed:
        _framed(page)
    else:
        resolve_name(view.draw)()


def _framed(page: str) -> None:
    """Draw a page: the question of the open view, the choice of views, the view, and a link to the next page.

    Of a model that lacks what a view shows, only the reason is said and what to do. Where no view of a page shows anything
    without a sentence, a session without sentences gets the empty state instead.
    """
    views = {view.key: view for view in table.views_of(page)}
    if all(view.needs_sentences for view in views.values()) and not state.get("sentences"):
        st.title(table.PAGE_BY_KEY[page].question, anchor=False)
        messages.no_sentences()
        return

    is_refused = False
    offered: Collection[Offer] = ()

    @st.fragment
    def body() -> None:
        nonlocal is_refused, offered
        st.session_state[progress.DRAWING] = st.session_state.get(progress.DRAWING, 0) + 1
        st.session_state.pop(progress.IN_PAGE, None)  # each view that waits for jobs names them anew
        with st.container(key="view_names", horizontal=True, vertical_alignment="bottom"):
            names, offer = st.container(), st.empty()  # beside the names an offer covers nothing and moves nothing
        above = st.container(key="path_line")
        with st.container(key="view_header"):
            with st.container(key="view_title", horizontal=True, vertical_alignment="center"):
                title, choices = st.empty(), st.container(key="view_choices", width="content")
            line = st.empty()
        key = _choose_view(page, names, choices)
        view = views[key]
        if page_header.is_outdated(page):
            state.postpone_address()
            st.rerun()  # the whole page: what stands around the view, as its models and its first line, belongs to another one
        with above:
            _path_strip(view)
        question = _question(view)
        report.begin_view(page, question)
        name_tab(page)  # also where the view alone is drawn
        title.title(messages.escape(lecture.title_above(view.key)) or question, anchor=False)
        line.caption(str(resolve_name(view.intro)()) if view.intro_by() else view.intro)
        page_header.begin_view(page)
        refused = st.empty()
        state.watch()
        usage.watch()
        loaded = _models(view)  # requested here because Streamlit keeps the fragment, which must not keep a model alive
        _say_unknown_language(view, loaded if isinstance(loaded, list) else [loaded])
        # The figures of the view before go at once; else they would stay, greyed, below the new title until all is drawn.
        is_new = st.session_state.get(state.SHOWN_VIEW) != (page, key)
        st.session_state[state.SHOWN_VIEW] = (page, key)
        figures.begin(page)
        main = loaded[0] if isinstance(loaded, list) else loaded
        offered = main.structure.offered
        instead = view.without_blocks
        if instead is not None and main.structure.why_not("blocks"):
            question, said = instead
            title.title(question, anchor=False)
            line.caption(said)
            report.begin_view(page, question)
        try:
            with st.empty().container() if is_new else st.container():
                is_refused = bool(main.structure.why_not(view.needs))
                if is_refused:  # the view's question and its line would speak of what is not drawn
                    has_others = any(other.needs in offered for other in views.values())
                    named = view.label if has_others else table.PAGE_BY_KEY[page].title
                    question = f"{named}: another model is needed"
                    title.title(question, anchor=False)
                    line.empty()
                    report.begin_view(page, question)
                if is_offered(main, view.needs, page):
                    with caching.drawing().under_way():
                        messages.guarded(partial(frame.view, partial(_draw, view, loaded)), f"drawing “{view.label}”")
        finally:
            used = state.stop_watching()
            report.end_view(page, used)
        figures.notebook(question, page, used)
        controls.refuse_unavailable(page, loaded)
        remembered.draw(page, offer)  # with the view: a mark of a hit draws nothing else anew
        with refused:
            messages.notices(page)
        if not controls.is_playing():  # one step in the browser's history for all that is played, not one for each
            state.write_address(page)

    controls.stop_playing()  # of a page visited before
    body()
    foot = table.VIEWS[state.view_of(page)].foot
    if foot and not is_refused:
        resolve_name(foot)()
    next_step(page, offered)


def _path_strip(view: View) -> None:
    """The stops of the whole path above a view that treats one of them."""
    if view.stop is None:
        return
    opened = strip.strip(view.stop)
    if opened is not None:
        go_to(stops.VIEW, path_stop=opened)


def _choose_view(page: str, place: DeltaGenerator, beside: DeltaGenerator) -> str:
    """Draw the names of a page's views in a place, and `beside` the title the choice where a name stands for several.

    Returns the key of the view.
    """
    named, setting = table.choices_of(page), table.view_setting(page)
    # Of each name the view that was opened last: it is opened again.
    last: dict[tuple[str, str], str] = st.session_state.setdefault("_last_views", {})
    if len(table.views_of(page)) == 1:
        return state.view_of(page)
    bind = partial(
        controls.bind,
        setting,
        label="View",
        options={name: name for name in named},
        to_widget=table.name_of,
        from_widget=lambda chosen: last.get((page, chosen), named[chosen][0].key),
        key=f"w_{page}_name",
        label_visibility="collapsed",
    )
    with place:
        name = str(bind(st.selectbox) if len(named) > MOST_BESIDE else bind(st.segmented_control, required=True))
    views = named[name]
    if len(views) == 1:
        return views[0].key
    with beside:
        key = controls.choice(setting, name, {view.key: view.label for view in views}, show_label=False)
    last[page, name] = key
    return key


def _models(view: View) -> Any:
    """The model of a view; a list of one or two where it compares them."""
    return model_gate.chosen_models() if view.has_two_models else model_gate.main_model()


def _say_unknown_language(view: View, models: list[Backend]) -> None:
    """Say whether a model does not know the language of what a view shows: the sentences, or the corpus and the query."""
    if view.uses_sentences:
        languages.say_of_sentences(models, state.get("sentences"))
        if WITH_WORDS & set(view.settings):
            languages.say_pieces_are_words(state.get("sentences"))
    elif view.uses_corpus:
        corpus = current.at_hand(state.peek)
        if corpus is not None:
            has_query = "query" in view.settings and "typed_queries" not in view.settings
            languages.say_of_corpus(models, corpus, state.get("query") if has_query else "")


def _draw(view: View, models: Any) -> None:
    """Draw a view, or the empty state where it shows nothing without a sentence."""
    if view.needs_sentences and messages.no_sentences():
        return
    draw = resolve_name(view.draw)
    if view.inside:
        resolve_name(view.inside)(draw, models)
    else:
        draw(models)


def is_page_offered(page: str, offered: Collection[Offer]) -> bool:
    """Whether a model that has this can show a page: its first view, which opens it, or another one."""
    return any(view.needs in offered for view in table.views_of(page))


def is_offered(backend: Backend, needed: Offer, page: str) -> bool:
    """Whether a model has what a page or view shows; if not, the reason is drawn, and which other pages work."""
    reason = backend.structure.why_not(needed)
    if not reason:
        return True
    said = f"**{messages.escape(backend.spec.title)} {reason}.** {SHOWN[needed]}"
    st.info(said, icon=":material/block:")
    report.add("refused", PagePart(message=said))
    st.markdown("These pages work with it:" if page == "home" else "These other pages work with it:")
    offered = backend.structure.offered
    with st.container(horizontal=True, gap="small"):
        for other in steps():
            if other.key != page and is_page_offered(other.key, offered):
                st.page_link(page_of(other.key), label=other.title, icon=other.icon)
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
    """The link at a page's foot: to the next page that shows what the model has (`offered`), or after the last one to Start."""
    keys = [each.key for each in table.PAGES]
    further = [
        other
        for other in table.PAGES[keys.index(page) + 1 :]
        if other in steps() and is_page_offered(other.key, offered)
    ]
    following = further[0] if further else table.PAGES[0]
    label = f"Next: {following.title}. {following.question}" if further else "Back to the start"
    st.divider()
    st.page_link(page_of(following.key), label=label, icon=f":material/arrow_{'forward' if further else 'back'}:")
