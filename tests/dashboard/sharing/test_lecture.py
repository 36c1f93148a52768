"""A lecture: pictures with a star come back with their settings, in a person's order, and as one page."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from components import packing
from components.charts import theme
from components.charts.stand_alone.page import PagePart
from components.shown_code.code import NoCode
from dashboard import caching, state
from dashboard.declared import table
from dashboard.settings import MOST_PICTURES, parse_lecture
from dashboard.sharing import lecture, session_file, walk
from dashboard.ui import controls, figures
from dashboard.views.lecture import pictures
from tests.support.pages import Open, at_rest, go_to, setting, texts

HARD = ("A & b = 50 %?", "Wer wohnt dort # 3?", "<b>fat</b>", "\u202eturned", "plus + and; semicolons")


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A session without a browser."""
    found: dict[str, Any] = {}
    monkeypatch.setattr("streamlit.session_state", found)
    return found


def test_a_star_comes_back_as_the_view_its_settings_and_the_figure(session: dict[str, Any]) -> None:
    session.update({"inside_view": "block", "sentences": HARD, "first_block": 3, "projector": True})
    star = lecture.star_of("inside", "change #1/ü")
    assert parse_lecture([star]) == (star,)
    picture = lecture.read(star)
    assert (picture.page, picture.view, picture.figure) == ("inside", "block", "change #1/ü")
    assert picture.sentences == HARD
    assert picture.title == table.VIEWS["block"].question
    assert table.SETTING["projector"].short not in picture.address  # how it is looked at is not the picture's
    session.clear()
    state.open_address(picture.page, dict(picture.address))
    assert state.peek("sentences") == HARD
    assert state.peek("first_block") == 3
    assert state.view_of("inside") == "block"


def test_long_sentences_are_packed_and_come_back(session: dict[str, Any]) -> None:
    long = tuple(f"Sentence {number} has some words that are repeated often. " * 4 for number in range(60))
    session.update({"inside_view": "block", "sentences": long})
    star = lecture.star_of("inside", "block_change")
    assert len(star) < 8_200
    assert lecture.read(parse_lecture([star])[0]).sentences == long


def test_what_a_star_unpacks_to_is_read_once_and_no_longer_than_a_page_takes(session: dict[str, Any]) -> None:
    """Forty stars with a model's name of 250,000 characters each sent 10 MB in every run."""
    packed = [packing.pack({"v": ["pieces"], "m": ["x" * size]}) for size in (250_000, 20_000)]
    stars = [f"text?zip={word}#pieces" for word in packed]
    assert parse_lecture(stars) == tuple(stars)
    session["lecture"] = tuple(stars)
    for star in stars:
        assert lecture.read(star).view == "pieces"
        assert len(pictures._card(star)["model"]) <= 101
    assert "m" not in lecture.read(stars[0]).address
    assert len(session[lecture._READ]) == 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "unpacked", lambda page, address: pytest.fail("it was unpacked again"))
        assert {lecture.title_of(star) for star in stars} == {table.VIEWS["pieces"].question}
    for number in range(2 * MOST_PICTURES):
        lecture.read(f"text?v=pieces#{number}")
    assert len(session[lecture._READ]) == MOST_PICTURES


@pytest.mark.parametrize(
    "values",
    [
        ["inside?v=block"],
        ["inside?v=block#"],
        ["../etc?x#y"],
        ["inside?v=a b#y"],
        ["#y"],
        [f"inside?v={'x' * 9_000}#y"],
        [f"inside?v=block#{number}" for number in range(MOST_PICTURES + 1)],
    ],
)
def test_what_names_no_picture_is_refused(values: list[str]) -> None:
    with pytest.raises(ValueError, match=r"names no figure|more than"):
        parse_lecture(values)


def test_a_view_that_is_gone_leads_to_its_page_and_an_unknown_page_to_the_first(session: dict[str, Any]) -> None:
    assert lecture.read("inside?v=removed#x").view == table.views_of("inside")[0].key
    assert lecture.read("nowhere?v=removed#x").page == table.PAGES[0].key
    assert lecture.read("search?v=block#x").page == "inside"  # where it stands now


@pytest.mark.parametrize(
    "order",
    [None, "a", ["a?#1", "b?#2"], ["a?#1", "a?#1", "b?#2"], ["a?#1", "b?#2", "d?#4"], [0, 1, 2], [["a?#1"]], {}],
)
def test_only_an_order_of_all_pictures_is_taken(session: dict[str, Any], order: object) -> None:
    stars = ("a?#1", "b?#2", "c?#3")
    session["lecture"] = stars
    lecture.reorder(order)
    assert lecture.listed() == stars
    lecture.reorder(["c?#3", "a?#1", "b?#2"])
    assert lecture.listed() == ("c?#3", "a?#1", "b?#2")


def test_what_was_taken_out_comes_back_to_its_place(session: dict[str, Any]) -> None:
    session["lecture"] = stars = ("a?#1", "b?#2", "c?#3")
    assert not lecture.can_bring_back()
    lecture.take_out("b?#2")
    assert lecture.listed() == ("a?#1", "c?#3")
    assert lecture.can_bring_back()
    lecture.bring_back()
    assert lecture.listed() == stars
    assert not lecture.can_bring_back()


def test_sentences_without_room_in_an_address_are_refused_with_the_reason(open_page: Open) -> None:
    random = np.random.default_rng(0)
    long = tuple(" ".join(map(str, random.integers(0, 10**9, 30))) for _ in range(60))
    app = at_rest(open_page("block", session={"sentences": long, "inside_view": "block"}))
    star_button(app, "block_change").click().run()
    assert setting(app, "lecture") in (None, ())
    assert "too long to be kept with a picture" in " ".join(toast.value for toast in app.toast)


def test_a_link_that_was_cut_can_be_opened_and_its_picture_taken_out(open_page: Open) -> None:
    app = at_rest(open_page("lecture", lecture=["text?v=%FF#x", "text?v=pieces&s=%ED%A0%80#y"]))
    assert not app.exception
    assert app.button(key="draw_lecture").label == "Draw 2 pictures"
    assert lecture.read("text?v=%FF#x").page == "text"


def test_back_and_a_reset_of_the_settings_leave_the_list(session: dict[str, Any]) -> None:
    session |= {"lecture": ("a?#1",), lecture.PLACE: 3}
    state.apply("lecture", {"s": ["Another sentence."]}, keep=state.KEPT)
    state.reset()
    state.apply_chosen({"sentences": ["A session file of before."]})
    assert lecture.listed() == ("a?#1",)
    assert lecture.is_given()
    state.apply_chosen({"lecture": ["b?#2"]})
    assert lecture.listed() == ("b?#2",)


def test_what_pictures_showed_is_kept_within_bounds(session: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    session.update({"lecture": ("inside?#1", "inside?#2"), "inside_view": "block"})
    figure = go.Figure(go.Bar(y=np.random.default_rng(0).normal(size=500)))
    table_of = lambda: pd.DataFrame({"value": [1]})  # noqa: E731
    lecture._keep("inside", "inside?#1", PagePart(figure=figure, message="One."), table_of)
    size = len(lecture.shown("inside?#1").figure)  # type: ignore[union-attr]
    monkeypatch.setattr(lecture, "_MOST_BYTES", size + 10)
    lecture._keep("inside", "inside?#2", PagePart(figure=figure, message="Two."), table_of)
    assert (lecture.is_drawn("inside?#1"), lecture.is_drawn("inside?#2")) == (True, False)  # numbers are no picture
    session[lecture._SENT] = frozenset({"inside?#2"})  # a picture was sent, and had no room either
    assert lecture.is_drawn("inside?#2")
    second = lecture.shown("inside?#2")
    assert second is not None
    assert (second.figure, second.part.table is None) == (b"", False)  # its numbers in its place
    session["lecture"] = ("inside?#2",)
    lecture._keep("inside", "inside?#2", PagePart(figure=figure, message="Two, drawn again."), table_of)
    assert lecture.shown("inside?#1") is None
    second = lecture.shown("inside?#2")
    assert second is not None
    assert second.figure
    assert second.part.message == "Two, drawn again."


def test_the_page_has_each_picture_with_its_sentences_and_says_which_is_lacking(
    session: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = go.Figure(go.Bar(x=["one", "two"], y=[1.25, 2.5]), {"title": {"text": "Bars"}})
    read = "Bars rise; a click opens one. Click a piece, or move with the arrow keys. So do others."
    part = PagePart(figure=figure, alt="two bars", message="It **rises**.", read=read)
    stars = ("inside?v=block#bars", "text?v=pieces#pieces", "inside?v=mask-token#gone")
    session["projector"] = True
    session.update({"lecture": stars, "inside_view": "block", "text_view": "pieces", "sentences": ("Is 3 < 4 & 5?",)})
    lecture._keep("inside", stars[0], part, lambda: pd.DataFrame({"of sentence": ["It <fell>."] * 300}))
    lecture._keep(
        "text", stars[1], PagePart(title="Pieces", message="Two."), lambda: pd.DataFrame({"piece": ["##ing"]})
    )
    assert zlib.decompress(lecture.shown(stars[0]).figure)  # type: ignore[union-attr]
    written = lecture.saver(stars)().decode()
    headings = [
        f"{number}. {table.VIEWS[key].question}"
        for number, key in enumerate(("block", "pieces", "mask-token"), start=1)
    ]
    first, second, third = map(written.index, headings)
    assert first < written.index("It <strong>rises</strong>.") < second < written.index("##ing") < third
    assert first < written.index('"y":[1.25,2.5]') < second
    assert written.count("It &lt;fell&gt;.") == 200  # the figure's numbers too, of which so many rows are kept
    assert written.count("Is 3 &lt; 4 &amp; 5?") == 2
    assert "has not been drawn" in written[third:]
    assert 'http-equiv="Content-Security-Policy"' in written
    assert "Projector" not in written  # how it was looked at is not the picture's
    assert "Bars rise. So do others." in written  # nothing can be clicked there
    monkeypatch.setattr(lecture, "_is_dark", lambda: True)  # all pictures of a page have the same colours
    assert not any(map(lecture.is_drawn, stars))
    lecture._keep("inside", stars[0], part, lambda: pd.DataFrame({"of sentence": ["It fell."]}))
    assert [lecture.is_drawn(star) for star in stars] == [True, False, False]
    dark = lecture.saver(stars)().decode()
    assert dark.count("has not been drawn") == 2
    assert "background: #12161c" in dark
    assert "background: #12161c" not in written


def star_button(app: AppTest, figure: str) -> Any:
    return next(button for button in app.button if button.key == f"star_{figure}")


def test_a_star_puts_the_picture_into_the_list_of_the_page_and_of_the_session_file(open_page: Open) -> None:
    app = at_rest(open_page("block", l="2", s=["A bank by the river.", "A bank in the city."]))
    star_button(app, "block_change").click().run()
    assert not app.exception
    (star,) = setting(app, "lecture")
    assert star.startswith("inside?v=block&")
    assert star_button(app, "block_change").label == "Take out of my lecture"
    page = at_rest(go_to(app, "lecture"))
    assert not page.exception
    assert "Each picture keeps its sentences and settings." in texts(page)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streamlit.session_state", dict(page.session_state._state.filtered_state))
        assert session_file.read(session_file.to_bytes(session_file.written("lecture"))).settings["lecture"] == [star]
        card = pictures._card(star)
    assert card["title"] == table.VIEWS["block"].question
    assert card["says"].startswith("Block")  # the finding, which has been drawn
    again = at_rest(go_to(page, "block"))
    star_button(again, "block_change").click().run()
    assert setting(again, "lecture") == ()


def test_what_has_not_been_drawn_is_shown_by_a_stored_example_of_its_view(session: dict[str, Any]) -> None:
    star = lecture.star_of("inside", "block_change")
    card = pictures._card(star)
    assert (card["small"], card["noPicture"]) == ("", "not drawn yet")
    stored = base64.b64decode(card["example"])
    assert (stored[:4], stored[8:12]) == (b"RIFF", b"WEBP")
    assert len({pictures._example(key) for key in table.VIEWS}) == len(table.VIEWS)  # each has its own
    assert pictures._example("no view") == ""


def test_of_a_single_picture_that_is_lacking_no_number_is_said(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    stars = ["inside?v=block&s=One%20bank.#block_change", "text?v=decoding&s=Two%20banks.#x"]
    monkeypatch.setattr(lecture, "is_drawn", lambda star: star == stars[0])
    said = texts(at_rest(open_page("lecture", lecture=stars)))
    assert "The pale picture is an example: “Draw” makes yours, which the export needs." in said


def test_a_lecture_from_a_link_names_its_pictures_and_is_walked_through(open_page: Open) -> None:
    stars = ["inside?v=block&s=One%20bank.#block_change", "text?v=decoding&s=Two%20banks.#x"]
    app = at_rest(open_page("lecture", lecture=stars))
    assert "Pale pictures are examples: “Draw” makes yours, which the export needs." in texts(app)
    export = app.get("download_button")[0].proto
    assert (export.label, export.disabled) == ("Export 0 of 2 pictures", True)
    app.button(key="begin_lecture").click()
    app.run()
    app = at_rest(go_to(app, "block"))
    assert setting(app, "projector") is True
    assert setting(app, "sentences") == ("One bank.",)
    app.session_state[walk._STEP] = 1
    app.run()
    assert setting(app, "sentences") == ("Two banks.",)
    assert setting(app, lecture.PLACE) == 1
    app.session_state[walk._STEP] = 1  # there is no further picture
    app.run()
    assert setting(app, lecture.PLACE) == 1
    app.session_state[walk._STEP] = walk.END
    app.run()
    assert setting(app, lecture.PLACE) is None
    assert setting(app, "projector") is False  # as before the lecture


def test_pictures_that_are_lacking_are_opened_one_after_the_other_once_each_is_sent(open_page: Open) -> None:
    stars = ["inside?v=block&s=One%20bank.#block_change", "text?v=decoding&s=Two%20banks.#x"]
    app = at_rest(open_page("lecture", lecture=stars))
    app.button(key="draw_lecture").click().run()
    app = at_rest(go_to(app, "block"))
    assert setting(app, lecture.DRAWING) == tuple(stars)
    assert not setting(app, "projector")
    app.session_state[lecture._SENT] = frozenset(stars[:1])
    app.run()
    assert setting(app, "sentences") == ("Two banks.",)
    app = at_rest(go_to(app, "decoding"))
    assert setting(app, lecture.DRAWING) == tuple(stars[1:])
    app.session_state[walk._STEP] = 1  # the browser waited in vain for what is no figure
    app.run()
    assert setting(app, lecture.DRAWING) is None


def test_own_sentences_and_titles_are_there_in_a_lecture_and_after_it(open_page: Open) -> None:
    star = "inside?v=block&s=One%20bank.#block_change#What%20*changes*%3F"
    app = at_rest(open_page("lecture", lecture=[star], s=["My own sentence."]))
    app.session_state["sentences"] = ("My own sentence.",)
    app.button(key="begin_lecture").click().run()
    app = at_rest(go_to(app, "block"))
    assert setting(app, "sentences") == ("One bank.",)
    assert "are now in place of" not in texts(app)  # a lecture begins with its first picture, and nothing else
    assert app.title[0].value == r"What \*changes\*?"  # a title of one's own, as it was typed
    app.session_state[walk._STEP] = walk.END
    app.run()
    assert setting(app, "sentences") == ("My own sentence.",)


def test_on_the_projector_the_keys_go_through_the_views_of_a_page(open_page: Open) -> None:
    app = at_rest(open_page("model-facts", proj="1"))
    keys = [view.key for view in table.views_of("inside")]
    app.session_state[walk._STEP] = 1
    app.run()
    assert setting(app, "inside_view") == keys[keys.index("model-facts") + 1]
    app.session_state[walk._STEP] = -1
    app.run()
    assert setting(app, "inside_view") == "model-facts"


def test_on_a_large_projector_type_and_figures_grow_and_the_picture_of_a_lecture_most(
    session: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def height(key: str) -> int:
        drawn: list[go.Figure] = []
        monkeypatch.setattr("streamlit.plotly_chart", lambda chart, **_: drawn.append(chart))
        figures.figure(theme.finish(go.Figure(), "t", 300), key=key, alt="", table=pd.DataFrame, code=NoCode("none"))
        return int(drawn[0].layout.height)

    figures.begin("inside")
    assert height("bars") == 300
    controls.take_screen_factor(1.5)
    assert (controls.scale(), height("bars")) == (1.0, 300)  # no projector
    session["projector"] = True
    assert (controls.scale(), height("bars")) == (1.35, round(1.175 * 300))  # beside the controls there is no room
    session |= {"lecture": ("inside?v=block#bars",), lecture.PLACE: 0}
    assert controls.scale() == pytest.approx(1.25 * 1.35)
    assert height("others") == round(1.5 * 1.175 * 300)
    for sent in (None, "2", True, 0.5, 100, [1.5], float("nan")):
        controls.take_screen_factor(sent)
        assert controls.screen_factor() == 1.5
    assert height("bars") == 780
    controls.take_screen_factor(0.8)  # in a small window all is smaller: what fits a laptop fits this one
    assert (controls.scale(), height("bars")) == (pytest.approx(0.8 * 1.35), round(0.8 * 520))


WEBP = b"RIFF\x04\0\0\0WEBPVP8 "


def test_a_picture_from_a_browser_is_taken_only_as_what_it_says_it_is() -> None:
    written = base64.b64encode(WEBP).decode()
    assert lecture.webp_of(f"data:image/webp;base64,{written}") == WEBP
    for sent in (
        None,
        7,
        written,
        f"data:image/svg+xml;base64,{written}",
        "data:image/webp;base64,%%%",
        "data:image/webp;base64," + base64.b64encode(b"<svg onload=alert(1)>").decode(),
        f"data:image/webp;base64,{written * 100_000}",
    ):
        assert lecture.webp_of(sent) == b""


def exported(app: AppTest) -> str:
    """The page of the lecture of one picture, which the view that is open has drawn."""
    for name in ("lecture", lecture._SHOWN):
        assert app.session_state[name]
    stars = app.session_state["lecture"]
    return lecture.to_bytes([("A title", app.session_state[lecture._SHOWN][noted]) for noted in stars]).decode()


@pytest.mark.parametrize(
    ("view", "figure", "more", "beside"),
    [
        ("known-failures", "clinic_cosines", 'class="bi-pairs"', []),
        ("word-senses", "senses_map", 'class="bi-nearest"', ["Same sense nearest"]),
        ("two-layers", "map_0", "", ["Layer 6, PCA"]),
        ("one-word", "", "", []),
    ],
)
def test_a_figure_takes_its_finding_its_examples_and_what_stands_beside_it_along(
    open_page: Open, view: str, figure: str, more: str, beside: list[str]
) -> None:
    app = open_page(view)
    if more:
        at_rest(app)  # the other view is there while the words beside it are still being read
    star = next(button for button in app.button if str(button.key).startswith(f"star_{figure}"))
    star.click().run()
    assert not app.exception
    (kept,) = app.session_state[lecture._SHOWN].values()
    assert kept.part.message
    assert kept.part.read
    assert kept.part.table is not None
    assert more in kept.part.markup
    assert list(kept.beside) == beside
    assert len([button for button in app.button if str(button.key).startswith("star_")]) == 1
    written = exported(app)
    assert written.count('class="plotly-graph-div"') == 1 + len(beside)
    assert "How to read this" in written
    assert more in written


def test_what_is_said_of_a_picture_later_is_kept_only_of_one_in_the_list(session: dict[str, Any]) -> None:
    session.update({"inside_view": "block"})
    star = lecture.star_of("inside", "bars")
    lecture.add_texts("inside", "bars", read="From left to right.")
    assert lecture.shown(star) is None
    session["lecture"] = (star,)
    lecture.add_texts("inside", "bars", read="From left to right.")
    assert lecture.shown(star) is None
    lecture._keep("inside", star, PagePart(title="Bars"), lambda: pd.DataFrame({"value": [1]}))
    lecture.add_texts("inside", "bars", read="From left to right.", markup="<p>pair</p>")
    found = lecture.shown(star)
    assert found is not None
    assert (found.part.read, found.part.markup) == ("From left to right.", "<p>pair</p>")


def test_a_title_of_ones_own_stays_with_its_picture(session: dict[str, Any]) -> None:
    stars = ("inside?v=block#bars", "text?v=pieces#pieces")
    session["lecture"] = stars
    lecture.retitle(stars[0], "  Blocks # & “more”,\n50 %  ")
    assert lecture.listed() == stars  # by which everything else knows the pictures
    assert [lecture.title_of(star) for star in stars] == ["Blocks # & “more”, 50 %", table.VIEWS["pieces"].question]
    assert parse_lecture(list(session["lecture"])) == session["lecture"]  # in an address and a session file
    lecture.reorder(list(stars[::-1]))
    lecture.take_out(stars[0])
    lecture.bring_back()
    assert (lecture.listed(), lecture.title_of(stars[0])) == (stars[::-1], "Blocks # & “more”, 50 %")
    assert "2. Blocks # &amp; “more”, 50 %" in lecture.saver(lecture.listed())().decode()
    lecture.retitle(stars[0], "x" * 500)
    assert len(lecture.title_of(stars[0])) == lecture.MOST_TITLE
    lecture.retitle(stars[0], " ")
    assert session["lecture"] == stars[::-1]
    assert parse_lecture([stars[0], f"{stars[0]}#twice", stars[1]]) == stars  # a picture stands once


@pytest.mark.parametrize(
    "sent", [None, "a", ["nowhere?#x", "title"], ["inside?v=block#bars", 7], ["inside?v=block#bars"]]
)
def test_a_title_that_no_page_sends_changes_nothing(session: dict[str, Any], sent: object) -> None:
    session.update({"lecture": ("inside?v=block#bars",), "lecture_list": {"titled": sent}})
    pictures._titled()
    assert session["lecture"] == ("inside?v=block#bars",)


def test_what_a_picture_showed_outlives_a_reload_of_its_tab_and_of_no_other(session: dict[str, Any]) -> None:
    star, tab, other = (
        "inside?v=block#bars",
        "11111111-1111-4111-8111-111111111111",
        "2" * 8 + "-2222-4222-8222-" + "2" * 12,
    )
    session.update({"lecture": (star,), "inside_view": "block"})
    lecture._keep("inside", star, PagePart(message="One."), lambda: pd.DataFrame({"value": [1]}))
    lecture.keep_for_tab()  # of a tab that is not known nothing is kept
    assert caching.know_visitor(tab)
    lecture.keep_for_tab()
    for mark, is_kept in ((other, False), (tab, True)):
        session.clear()
        session["lecture"] = (star,)
        assert lecture.shown(star) is None
        caching.know_visitor(mark)
        assert (lecture.shown(star) is not None) == is_kept


@pytest.mark.parametrize(("view", "figure"), [("whole-path", "whole_path"), ("score-split", "split_tokens_ribbons")])
def test_pictures_that_we_draw_ourselves_have_a_star(open_page: Open, view: str, figure: str) -> None:
    app = at_rest(open_page(view))
    star_button(app, figure).click().run()
    assert not app.exception
    (kept,) = app.session_state[lecture._SHOWN].values()
    assert kept.part.message
    assert len(kept.part.table)
    asked = [item.proto for item in app.get("bidi_component") if item.proto.component_name.endswith("keep_picture")]
    assert [f".st-key-{figure}" in proto.json for proto in asked] == [True]


def test_an_empty_list_begins_with_ready_made_pictures(open_page: Open) -> None:
    app = at_rest(open_page("lecture"))
    app.button(key="lecture_begin").click().run()
    assert app.session_state["lecture"] == pictures.READY_MADE
    assert all(
        lecture.read(star).view in star and table.VIEWS[lecture.read(star).view].is_framed
        for star in pictures.READY_MADE
    )
    assert app.caption[0].value.startswith("Each picture keeps its sentences")
    assert "lecture_begin" not in {button.key for button in app.button}
