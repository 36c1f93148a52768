"""Going through pictures with the arrow keys: a lecture's in its order, and on the projector the views of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import streamlit as st

from dashboard import navigation, state
from dashboard.declared import table
from dashboard.sharing import lecture
from dashboard.ui import browser, sentence_bar
from dashboard.ui.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

END = "end"
_WAS_PROJECTED = "_walk_was_projected"  # session key: whether the projector was on before the lecture
_BEGUN = "_walk_begun"  # session key: how many lectures have begun, each of which shows its pictures alone at first
_KEY = "walk"
_STEP = "_walk_step"  # session key: where the person wants to go: 1, -1, or 0 to end the lecture


def begin() -> None:
    """Let the next run show the first picture of the lecture, on the projector."""
    st.session_state[_WAS_PROJECTED] = state.peek("projector")
    st.session_state[_BEGUN] = st.session_state.get(_BEGUN, 0) + 1
    state.put("projector", True)
    show(0)


def show(number: int) -> None:
    """Let the next run show the picture with this number, from 0."""
    st.session_state[_STEP] = number - int(st.session_state.get(lecture.PLACE, 0))
    st.session_state.setdefault(lecture.PLACE, 0)


def take(page: str) -> None:
    """Go where a key, a button or the list has asked for: before the page is drawn, which goes to another one then."""
    step = st.session_state.pop(_STEP, None)
    if lecture.DRAWING in st.session_state:
        _go_on_drawing(page, step)
        return
    if step is None:
        return
    place = st.session_state.get(lecture.PLACE)
    if place is None:
        _go_beside(page, step)
        return
    stars = lecture.listed()
    if step == END:
        st.session_state.pop(lecture.PLACE)
        state.put("projector", st.session_state.pop(_WAS_PROJECTED, False))
        sentence_bar.bring_back(sentence_bar.BY_LECTURE)
        st.switch_page(navigation.page_of("lecture"))
    if not 0 <= place + step < len(stars):
        return
    st.session_state[lecture.PLACE] = place + step
    _open(lecture.read(stars[place + step]))


def _go_on_drawing(page: str, step: object) -> None:
    """Open the next picture once the open one is drawn, or takes too long; the lecture after the last one."""
    first, *left = st.session_state[lecture.DRAWING]
    if first:
        picture = lecture.read(first)
        if (page, state.view_of(page)) != (picture.page, picture.view):  # a person has gone elsewhere
            st.session_state.pop(lecture.DRAWING)
            return
        if step is None and not lecture.was_sent(first):
            return
    if step == END or not left:
        st.session_state.pop(lecture.DRAWING)
        sentence_bar.bring_back(sentence_bar.BY_LECTURE)
        st.switch_page(navigation.page_of("lecture"))
    st.session_state[lecture.DRAWING] = tuple(left)
    _open(lecture.read(left[0]))


def _open(picture: lecture.LecturePicture) -> NoReturn:
    sentences = picture.sentences or (
        state.default("sentences") if table.VIEWS[picture.view].uses_sentences else state.peek("sentences")
    )
    sentence_bar.keep_own(sentences, sentence_bar.BY_LECTURE)
    state.open_address(picture.page, dict(picture.address), keep=("projector", "lesson", "class_code", *state.KEPT))
    state.open_view(picture.view)
    st.switch_page(navigation.page_of(picture.page))


def _go_beside(page: str, step: object) -> None:
    """Open the view after or before the open one on its page; at the ends nothing changes."""
    keys: Sequence[str] = [view.key for view in table.views_of(page)]
    number = keys.index(state.view_of(page)) + (step if isinstance(step, int) else 0)
    if 0 <= number < len(keys):
        state.open_view(keys[number])


def draw(page: str) -> None:
    """Draw the buttons, which the arrow keys press: while a lecture is given, and on the projector."""
    place = st.session_state.get(lecture.PLACE)
    stars = lecture.listed()
    left = st.session_state.get(lecture.DRAWING, ())
    if left and left[0]:
        said = f"Drawing for the export: {counted(len(left), 'picture')} left"
        data = {
            "of": "drawing",
            "place": said,
            "next": "",
            "figure": lecture.read(left[0]).figure,
            "ends": [True, False],
        }
        _bar(data)
        return
    if place is not None and place >= len(stars):  # what was shown has been taken out
        st.session_state.pop(lecture.PLACE)
        place = None
    has_others = len(table.views_of(page)) > 1
    has_steps = has_others or page == navigation.HOME  # whose picture has stops
    if page == "lecture" or (place is None and not (state.peek("projector") and has_steps)):
        return
    if place is None:
        data = {"of": "view", "place": "", "next": "", "figure": "", "ends": [not has_others, not has_others]}
    else:
        following = lecture.title_of(stars[place + 1]) if place + 1 < len(stars) else ""
        ends = [place == 0, place + 1 == len(stars)]
        data = {
            "of": "picture",
            "place": f"{place + 1} of {len(stars)}",
            "next": following,
            "figure": (figure := lecture.read(stars[place]).figure),
            "where": lecture.place_of(figure),
            "ends": ends,
            "begun": st.session_state.get(_BEGUN, 0),
        }
    _bar(data)


def _bar(data: dict[str, Any]) -> None:
    st.html("<style>.stMain.stMain { max-height: calc(100dvh - 3.4rem); }</style>")  # the page ends above it
    with st.container(key="walk_bar"):
        browser.web_component("walk", '<nav class="walk"></nav>')(key=_KEY, data=data, on_step_change=_stepped)


def _stepped() -> None:
    sent = browser.sent_by(_KEY, "step")
    if sent == END or (type(sent) is int and sent in (1, -1)):
        st.session_state[_STEP] = sent
