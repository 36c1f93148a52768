"""Binding widgets to settings: what was not offered is refused on the server, whatever comes over the websocket."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest

from components.retrieval.fusion.settings import FusionSettings
from dashboard import access, state
from dashboard.declared import table
from dashboard.ui import controls
from tests.dashboard.page_states import small_corpus
from tests.support.pages import Open, at_rest, choose_view, go_to, setting, texts


def forge(widget: Any, *values: str, text: str | None = None) -> None:
    """Make a widget send what no browser would: some values of its own, or a text."""
    sent = WidgetState(id=widget.id)
    if text is None:
        sent.string_array_value.data[:] = values
    else:
        sent.string_value = text
    widget.__class__ = type("Forged", (type(widget),), {"_widget_state": sent})


def test_an_empty_segmented_control_changes_nothing(open_page: Open) -> None:
    app = open_page("layers")
    forge(app.segmented_control(key="w_meaning_view"))
    app.run()
    assert not app.exception
    assert not app.error
    assert setting(app, "meaning_view") == "one-word"
    choose_view(app, "sentence-curves")
    assert app.query_params["v"] == "sentence-curves"


def test_a_choice_that_no_list_offers_changes_nothing(open_page: Open) -> None:
    app = open_page("model", v="output-vectors")
    forge(app.selectbox(key="w_sentence"), text="evil")
    app.run()
    assert not app.exception
    assert not app.error
    assert "sentence" not in app.session_state
    assert app.selectbox(key="w_sentence").value == 0
    app.selectbox(key="w_sentence").set_value(2).run()
    assert app.query_params["n"] == "2"


def test_numbers_that_a_multiselect_does_not_offer_change_nothing(open_page: Open) -> None:
    app = open_page("attention", v="attention-matrix", agg="mean", bs=["1", "4"])
    forge(app.multiselect(key="w_chosen_blocks"), "evil", "1")
    app.run()
    assert not app.exception
    assert not app.error
    assert app.session_state["chosen_blocks"] == (1, 4)
    app.multiselect(key="w_chosen_blocks").set_value([5, 0]).run()
    assert app.session_state["chosen_blocks"] == (0, 5)


def test_an_empty_choice_of_corpus_offers_no_path(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(access.FREE_MODELS.variable, "0")
    app = open_page("search", v="corpus", corpus=small_corpus())
    forge(app.segmented_control(key="corpus_way"))
    app.run()
    assert not app.exception
    assert "corpus_path" not in [item.key for item in app.text_input]


def test_a_choice_that_is_not_there_is_said_and_forgotten(open_page: Open) -> None:
    app = open_page("heatmaps", v="sentence-pairs", l="99", s=[f"sentence {number}" for number in range(9)])
    assert "Layer 99 is not available here. Choose from 0 to 6." in texts(app)
    assert app.session_state["layer"] is None
    app = open_page("heatmaps", sa="7")
    assert "Sentence 8 is not available here." in texts(app)
    assert "Sentence 8 is not available here." in texts(app.run())  # as after a job's progress
    app.selectbox(key="w_sentence_a").set_value(1).run()
    assert "is not available here" not in texts(app)


def test_a_refused_value_is_said_for_some_seconds(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_page("map", l="999", by="pca")
    assert "ayer 999 is not available" in texts(app)
    assert "ayer 999 is not available" in texts(app.run())
    monkeypatch.setattr(state, "NOTICE_SECONDS", 0.0)
    assert "ayer 999" not in texts(app.run())


def test_the_seconds_of_a_notice_count_from_when_its_view_is_drawn(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "NOTICE_SECONDS", 0.0)  # the drawing takes longer, as on a slow server
    app = open_page("map", l="999", by="pca")
    assert "ayer 999 is not available" in texts(app)
    assert "ayer 999" not in texts(app.run())


def test_a_notice_about_a_setting_stays_on_the_pages_that_use_it(open_page: Open) -> None:
    app = open_page("attention", h="99", v="attention-matrix")
    assert "Head 99 is not available" in texts(app)
    assert "Head 99" not in texts(go_to(app, "token-pairs"))


def bound() -> None:
    import streamlit as st

    from dashboard.ui import controls, messages

    st.session_state.setdefault("runs", ("bm25",))
    controls.bind("runs", st.multiselect, "Runs", options=["bm25", "jm", "lsa"], max_selections=2)
    controls.bind("k", st.number_input, "Hits", min_value=1, max_value=100)
    controls.bind("query", st.text_input, "Look for", max_chars=20)
    messages.notices("search")


def test_more_than_may_be_chosen_is_refused() -> None:
    app = AppTest.from_function(bound).run()
    forge(app.multiselect[0], "bm25", "jm", "lsa")
    app.run()
    assert app.session_state["runs"] == ("bm25",)
    app.multiselect[0].set_value(["lsa", "jm"]).run()
    assert app.session_state["runs"] == ("lsa", "jm")


def test_of_a_text_that_is_too_long_the_beginning_is_kept_and_that_is_said() -> None:
    app = AppTest.from_function(bound).run()
    app.text_input[0].set_value("a volcano erupted in the north").run()
    assert app.session_state["query"] == "a volcano erupted in"
    assert app.text_input[0].value == "a volcano erupted in"
    assert app.warning[0].value == "The text under “Look for” was too long\\: only its first 20 characters were kept."
    app.text_input[0].set_value("x" * 20).run()  # exactly as long as a text may be
    assert app.session_state["query"] == "x" * 20
    assert not app.warning


def unbound() -> None:
    import streamlit as st

    from dashboard.ui import controls

    chosen = st.session_state.setdefault("chosen", [])
    common = {"on_choice": chosen.append}
    values = [
        controls.checked(st.segmented_control, "One", options=["a", "b"], key="one", default="a", **common),
        controls.checked(st.selectbox, "Row", options=range(3), key="row", default=1, **common),
        controls.checked(st.multiselect, "Some", options=["x", "y"], key="some", default=["x"], **common),
        controls.checked(st.slider, "Count", min_value=1, max_value=9, key="count", default=5, **common),
    ]
    st.session_state["values"] = values


def test_widgets_without_a_setting_are_checked_too() -> None:
    app = AppTest.from_function(unbound).run()
    assert app.session_state["values"] == ["a", 1, ["x"], 5]
    forge(app.segmented_control[0])
    forge(app.selectbox[0], text="evil")
    forge(app.multiselect[0], "evil")
    too_many = WidgetState(id=app.slider[0].id)
    too_many.double_array_value.data[:] = [10_000.0]
    app.slider[0].__class__ = type("Forged", (type(app.slider[0]),), {"_widget_state": too_many})
    app.run()
    assert not app.exception
    one, row, some, count = app.session_state["values"]
    assert one == "a"
    assert row in range(3)
    assert set(some) <= {"x", "y"}
    assert 1 <= count <= 9
    assert all(
        value in {0, 1, 2} or value == [] for value in app.session_state["chosen"]
    )  # nothing that is not offered
    app.segmented_control[0].set_value("b")
    app.selectbox[0].set_value(2).run()
    assert app.session_state["values"][:2] == ["b", 2]
    assert app.session_state["chosen"][-2:] == ["b", 2]


def test_without_a_setting_too_what_was_only_on_display_is_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    session: dict[str, Any] = {"list": "a"}
    monkeypatch.setattr("streamlit.session_state", session)
    callbacks: list[Any] = []
    chosen: list[str] = []

    def widget(label: str, *, on_change: Any, key: str, **_: Any) -> Any:
        callbacks.append(on_change)
        return session[key]

    controls.checked(widget, "List", options=["a", "b"], key="list", on_choice=chosen.append)
    callbacks[0]()
    assert chosen == []
    session["list"] = "b"
    callbacks[0]()
    assert chosen == ["b"]


def test_a_browser_that_draws_the_second_run_first_begins_with_the_same_values() -> None:
    """What a run says once, in the run that sets a value, is lost on a browser that draws only the next run."""

    def script() -> None:
        import streamlit as st

        from dashboard.ui import controls

        controls.bind("query", st.text_input, "Query")

    app = AppTest.from_function(script)
    app.session_state["query"] = "volcano"
    for _ in range(2):
        app.run()
        assert not app.exception
        typed = app.text_input(key="w_query").proto
        assert (typed.value if typed.set_value else typed.default) == "volcano"
    app.text_input(key="w_query").set_value("storm").run()
    assert (app.text_input(key="w_query").value, setting(app, "query")) == ("storm", "storm")


def test_numbers_and_texts_are_bound_too() -> None:
    app = AppTest.from_function(bound).run()
    app.number_input[0].set_value(7)
    app.text_input[0].set_value("rain").run()
    assert (app.session_state["k"], app.session_state["query"]) == (7, "rain")
    app.session_state["query"] = "snow"  # by a button, say
    assert app.run().text_input[0].value == "snow"


@pytest.mark.parametrize("page", list(table.PAGE_BY_KEY))
def test_a_value_that_cannot_be_written_stays_out_of_the_address(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for bad in (None, "evil", 3.5, object(), ("evil", None)):
        session = {setting.name: bad for setting in table.SETTINGS}
        monkeypatch.setattr("streamlit.session_state", session)
        written, _ = state.address_of(page)
        assert all(isinstance(text, str) for values in written.values() for text in values)


def test_a_value_that_was_only_on_display_is_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """After fast clicks Streamlit reports what a widget displays as if it were new; it must not reach the address."""
    session: dict[str, Any] = {}
    monkeypatch.setattr("streamlit.session_state", session)
    callbacks = []

    def widget(label: str, *, on_change: Any, **_: Any) -> None:
        callbacks.append(on_change)

    controls.bind("second_block", widget, "Block", default=5, min_value=0, max_value=5)
    callbacks[0]()
    assert "second_block" not in session
    for chosen in (4, 5):  # back to the default is a choice too, also before the widget is drawn again
        session["w_second_block"] = chosen
        callbacks[0]()
        assert session["second_block"] == chosen


def test_playing_counts_what_was_drawn_and_ends_at_the_last_number(monkeypatch: pytest.MonkeyPatch) -> None:
    session: dict[str, Any] = {"_playing": "second_block", "second_block": 3}
    monkeypatch.setattr("streamlit.session_state", session)
    controls.play_next("second_block", 0, 5, 0, 2)  # a late answer to an earlier picture
    assert session["second_block"] == 3
    controls.play_next("second_block", 0, 5, 0, 3)
    assert (session["second_block"], controls.is_playing()) == (4, True)
    controls.play_next("second_block", 0, 5, 0, 4)
    assert (session["second_block"], controls.is_playing()) == (5, False)
    controls.play_next("second_block", 0, 5, 0, 5)
    assert session["second_block"] == 5


def test_a_sentence_that_is_not_there_says_how_many_there_are(open_page: Open) -> None:
    app = open_page("attention", sa="63", v="attention-matrix")
    assert "Sentence 64 is not available here. There are 3 sentences." in texts(app)


def test_what_a_display_of_before_sends_takes_no_later_choice_back(open_page: Open) -> None:
    app = at_rest(open_page("all-heads"))
    choices = app.segmented_control(key="w_inside_view")
    app.session_state["inside_view"] = "block"  # chosen since, among the names: the browser has not seen it
    choices.set_value("head-view").run()
    assert setting(app, "inside_view") == "block"
    app = at_rest(open_page("all-heads"))
    app.segmented_control(key="w_inside_view").set_value("head-view").run()
    assert setting(app, "inside_view") == "head-view"


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("rrf", FusionSettings(rank_constant=9, depth=7)),  # no weight
        ("weighted", FusionSettings(30, "rrf", 9, 7)),
        ("minmax", FusionSettings(30, "minmax", depth=7)),
        ("z", FusionSettings(30, "z", depth=7)),
    ],
)
def test_of_each_way_to_put_rankings_together_what_it_needs_is_read(
    monkeypatch: pytest.MonkeyPatch, by: str, expected: FusionSettings
) -> None:
    chosen = {"fusion_by": by, "fusion_k": 9, "fusion_weight": 30, "fusion_depth": 7}
    monkeypatch.setattr("streamlit.session_state", chosen)
    assert controls.fusion_settings() == expected
    chosen["fusion_depth"] = 0
    assert controls.fusion_settings().depth is None
