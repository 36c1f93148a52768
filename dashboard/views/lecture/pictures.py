"""Draws the list of the lecture's pictures: their order, what each shows, giving it, and taking it along."""

from __future__ import annotations

import base64
from functools import cache

import streamlit as st

from components.folders import ASSETS
from components.markup import to_text
from components.model.catalog import spec_of
from dashboard import state
from dashboard.corpora import remembered, usage
from dashboard.declared import table
from dashboard.sharing import lecture, walk
from dashboard.ui import browser
from dashboard.ui.wording import counted, shortened

_KEY = "lecture_list"
_MOST_OF_A_SENTENCE = 60  # characters
_MOST_OF_A_MODEL = 100  # characters of its name
READY_MADE = (  # a list to begin with, as stars note it
    "inside?v=whole-path#whole_path",
    "inside?v=one-word-attention#word_looks",
    "meaning?v=word-senses#senses_map",
    "meaning?v=known-failures#clinic_cosines",
    "inside?v=mask-token#guess",
)


def draw() -> None:
    """The page."""
    with st.container(key="lecture_tab"):
        browser.know_visitor("lecture_visitor")
    lecture.keep_for_tab()
    stars = lecture.listed()
    lacking = sum(not lecture.is_drawn(star) for star in stars)
    with st.container(key="lecture_title", horizontal=True, vertical_alignment="center"):
        st.title("My lecture", anchor=False)
        if stars:
            _tools(stars, lacking)
    offer = st.empty()
    usage.watch()
    usage.note(usage.LECTURE)
    _list(stars, lacking)
    remembered.draw("lecture", offer)


def _list(stars: tuple[str, ...], lacking: int) -> None:
    """The pictures, of which some are lacking in the exported page; or how to begin."""
    if not stars:
        st.info(
            "The star (:material/star:) above a picture, beside Share, puts it here with its sentences and settings. A phone "
            "has room for stars when it lies on its side. Or begin with the pictures below: here you put them in order, show "
            "them one after another, and take them home as one page.",
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                f"Begin with {len(READY_MADE)} pictures",
                icon=":material/playlist_add:",
                key="lecture_begin",
                type="primary",
                on_click=state.put,
                args=("lecture", READY_MADE),
                help="Puts these pictures into your lecture; take out, add and move what you like",
            )
            named = " · ".join(table.name_of(lecture.read(star).view) for star in READY_MADE)
            st.caption(named)
            _undo()
        return
    line = "Each picture keeps its sentences and settings."
    if lacking:
        pale = "The pale picture is an example" if lacking == 1 else "Pale pictures are examples"
        which = "yours" if lacking in (1, len(stars)) else f"the {lacking} pictures of yours"
        line += f" {pale}: “Draw” makes {which}, which the export needs."
    st.caption(line)
    browser.web_component("lecture", '<ol class="lecture"></ol>')(
        key=_KEY,
        # By their stars, not by their numbers: what a person does may be of a list that has changed since.
        data={
            "pictures": [{"star": star, **_card(star)} for star in stars],
            "now": st.session_state.get(lecture.PLACE),
            "most": lecture.MOST_TITLE,
        },
        on_ordered_change=_ordered,
        on_opened_change=_opened,
        on_removed_change=_removed,
        on_titled_change=_titled,
    )
    _undo()
    for hand, how in (("mouse", "drag the dots, or press ↑ and ↓ there"), ("finger", "tap the arrows")):  # one is shown
        with st.container(key=f"lecture_by_{hand}"):
            st.caption(f"To change the order, {how}.")
    st.caption(
        "On the projector, → and ← show the next picture and the one before, as do the two buttons of a remote control."
        + " “The whole path” is shown stop by stop." * any(lecture.read(star).view == "whole-path" for star in stars)
    )


def _tools(stars: tuple[str, ...], lacking: int) -> None:
    if lacking:
        st.button(
            f"Draw {counted(lacking, 'picture')}",
            icon=":material/brush:",
            key="draw_lecture",
            type="primary",
            on_click=lecture.begin_drawing,
            help="Opens the pictures that have not been drawn, one after the other, and comes back here",
        )
    st.download_button(
        f"Export {len(stars) - lacking} of {counted(len(stars), 'picture')}" if lacking else "Export as one page",
        lecture.saver(stars),
        file_name="bert-internals-lecture.html",
        mime="text/html",
        key="save_lecture",
        icon=":material/download:",
        type="secondary" if lacking else "primary",
        on_click="ignore",
        disabled=lacking == len(stars),
        help="One HTML file with the pictures and sentences, which opens without a network",
    )
    st.button(
        "Begin the lecture",
        icon=":material/slideshow:",
        key="begin_lecture",
        on_click=walk.begin,
        help="Shows the pictures one after the other in large type, for a projector",
    )


def _undo() -> None:
    if lecture.can_bring_back():
        st.button(
            "Bring back what was taken out",
            icon=":material/undo:",
            key="lecture_undo",
            on_click=lecture.bring_back,
            type="tertiary",
        )


def _card(star: str) -> dict[str, str]:
    """What the list says of a picture: its question, its place, and its finding, or else the sentences that it is about."""
    picture, shown = lecture.read(star), lecture.shown(star)
    sentences = picture.sentences or state.default("sentences")
    about = f"“{shortened(sentences[0], _MOST_OF_A_SENTENCE)}”"
    if len(sentences) > 1:
        about += f" and {counted(len(sentences) - 1, 'further sentence')}"
    said, is_drawn = "" if shown is None else to_text(shown.part.message), lecture.is_drawn(star)
    model = picture.address.get("m")
    return {
        "title": lecture.title_of(star),
        "icon": table.PAGE_BY_KEY[picture.page].icon.removeprefix(":material/").removesuffix(":"),
        "place": f"{table.PAGE_BY_KEY[picture.page].title} · {table.name_of(picture.view)}",
        "says": said or (about if table.VIEWS[picture.view].uses_sentences else ""),
        "model": shortened(spec_of(model[0]).title, _MOST_OF_A_MODEL) if model and len(model) == 1 else "",
        "noPicture": "no small picture yet" if is_drawn else "not drawn yet",
        "small": base64.b64encode(shown.small).decode() if shown is not None else "",
        "example": "" if is_drawn else _example(picture.view),
    }


@cache
def _example(view: str) -> str:
    """A small picture of what a view shows of the included sentences, as base64 of WebP; empty where none is stored."""
    stored = ASSETS / "screenshots" / "small" / f"{view}.webp"
    return base64.b64encode(stored.read_bytes()).decode() if stored.is_file() else ""


def _ordered() -> None:
    lecture.reorder(browser.sent_by(_KEY, "ordered"))


def _opened() -> None:
    star = browser.sent_by(_KEY, "opened")
    if star in lecture.listed():
        walk.show(lecture.listed().index(star))


def _titled() -> None:
    sent = browser.sent_by(_KEY, "titled")
    if isinstance(sent, list | tuple) and len(sent) == 2 and sent[0] in lecture.listed() and isinstance(sent[1], str):
        lecture.retitle(sent[0], sent[1])


def _removed() -> None:
    star = browser.sent_by(_KEY, "removed")
    if star in lecture.listed():
        lecture.take_out(star)
