"""The button that saves a page's figures as a notebook."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.code.shown import SENTENCES, codes
from tests.support.pages import Open, at_rest, go_to

LABEL = "Open as a notebook"


def labels(app: AppTest) -> list[str]:
    return [item.proto.label for item in app.get("download_button")]


@pytest.mark.parametrize(("page", "address"), [("layers", {}), ("tokens", {"view": "tensors"}), ("model", {})])
def test_a_page_with_figures_has_it(open_page: Open, page: str, address: dict[str, str]) -> None:
    assert labels(open_page(page, s=SENTENCES, **address)).count(LABEL) == 1


@pytest.mark.parametrize(("page", "address"), [("tokens", {"view": "vocabulary"}), ("model", {"view": "catalog"})])
def test_a_page_without_figures_has_none(open_page: Open, page: str, address: dict[str, str]) -> None:
    assert LABEL not in labels(open_page(page, s=SENTENCES, **address))


def test_only_the_figures_of_the_open_view_are_in_it(open_page: Open) -> None:
    app = open_page("layers", s=SENTENCES)
    assert set(codes(app)) == {"words_0"}
    app.session_state["meaning_view"] = "sentence-curves"
    assert set(codes(app.run())) == {"sentences_0"}
    app = at_rest(go_to(app, "heatmaps"))
    assert set(codes(app)) == {"block_change", "diagonal"}


def changed_settings() -> None:
    import streamlit as st

    from dashboard import state
    from dashboard.sharing.report import facts_of

    state.put("layer", 3)
    state.put("include_special", False)
    state.put("sentences", ("A text of a person.",))
    state.put("head", 4)  # of another page
    state.put("own_scale", True)  # of another view
    state.open_view("token-pairs")
    st.session_state["found"] = facts_of("meaning", frozenset({"layer", "include_special", "sentences", "head"}))


def named(app: AppTest) -> dict[str, str]:
    return {fact.name: ", ".join(fact.values) for fact in app.session_state["found"] if fact.setting}


def test_the_settings_are_those_that_the_view_uses_and_a_person_changed() -> None:
    app = AppTest.from_function(changed_settings).run()
    assert not app.exception
    assert named(app) == {"Layer": "3", "Special tokens": "no"}


def settings_beside_long_texts() -> None:
    import streamlit as st

    from dashboard import state
    from dashboard.sharing.report import facts_of

    state.put("layer", 3)
    state.open_view("token-pairs")
    state.put("sentences", tuple(f"Sentence {number} " + "goes on and " * 20 for number in range(40)))
    st.session_state["packed"] = state.PACKED in state.address_of("meaning")[0]
    st.session_state["found"] = facts_of("meaning")


def test_texts_that_the_address_packs_leave_the_settings_as_they_are() -> None:
    app = AppTest.from_function(settings_beside_long_texts).run()
    assert not app.exception
    assert app.session_state["packed"]
    assert named(app) == {"Layer": "3"}
