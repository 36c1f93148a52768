"""Another corpus in place of the demo: nothing that asks for a headline of the demo stays."""

from __future__ import annotations

import re

from streamlit.testing.v1 import AppTest

from components.retrieval.corpora.corpus import Corpus
from dashboard import caching
from dashboard.corpora import current
from dashboard.ui.wording import shortened
from dashboard.views.search import results
from tests.dashboard.page_states import small_corpus
from tests.support.pages import Open, settled, texts


def changing() -> None:
    import streamlit as st

    from dashboard import state
    from dashboard.corpora import current

    found = []
    for query in (None, "my own words"):
        if query:
            state.put("query", query)
        for corpus in (current.demo(), None):
            current.choose(corpus)
            found.append(state.get("query"))
    st.session_state["found"] = found


def test_the_query_of_the_demo_goes_and_comes_back_and_a_persons_own_stays() -> None:
    app = AppTest.from_function(changing).run()
    assert not app.exception
    assert app.session_state["found"] == ["", "volcano erupted", "my own words", "my own words"]


def test_ready_made_queries_are_those_of_the_demo(open_page: Open) -> None:
    demo = open_page("hits")
    assert tuple(demo.button_group(key="w_ready_query").options) == results.READY_QUERIES
    own = settled(open_page("hits", corpus=small_corpus()))  # as of an upload whose link names no query
    assert own.text_input(key="w_query").value == ""
    found = caching.corpora().find(small_corpus())
    assert found is not None
    queries = list(dict.fromkeys(found.columns["compressed"]))
    offered = [option.replace("\\", "") for option in own.button_group(key="w_ready_query").options]
    assert offered == [shortened(query, results.MOST_OF_EXAMPLE) for query in queries[: results.OWN_EXAMPLES]]
    assert not {*offered} & {*results.READY_QUERIES}  # nothing of the demo corpus remains
    beginnings = results.own_beginnings(current.demo().texts[:9])  # as of a file without queries
    assert len(beginnings) == results.OWN_EXAMPLES
    assert all(text.startswith(begin) for text, begin in zip(current.demo().texts, beginnings, strict=False))
    assert "No query yet." in texts(own)
    assert "ready-made" not in texts(own)
    many = settled(open_page("many-queries", corpus=small_corpus()))
    assert many.text_area(key="w_typed_queries").value.splitlines() == queries  # those of the file
    assert not [button for button in many.button if button.key == "own_queries_used"]
    many.text_area(key="w_typed_queries").set_value("rain")
    settled(many.run())
    use = many.button(key="own_queries_used")
    assert use.label.replace("\\", "") == f"Use the {len(queries)} queries of {found.name}"
    settled(use.click().run())
    assert many.text_area(key="w_typed_queries").value.splitlines() == queries
    said = re.search(rf"By the file the best hit is right for (\d+) of {len(queries)} queries", texts(many))
    assert said is not None
    (drawn,) = [item.proto.body for item in many.get("html") if "bi-found" in item.proto.body]
    assert drawn.count("wrong text") == len(queries) - int(said[1])


def of_queries() -> None:
    import streamlit as st

    from dashboard import caching, state
    from dashboard.corpora import current

    corpus = caching.corpora().find(st.session_state["own"])
    assert corpus is not None
    state.put("corpus", st.session_state["own"])
    queries = current.own_queries(corpus, 5, named=False)
    st.session_state["found"] = [(query, current.own_rows(corpus, query)) for query in queries]


def test_a_query_of_the_file_has_its_right_texts_whatever_spaces_stand_in_it() -> None:
    """One without room in the field would be cut there, and is not offered."""
    asked = ("reset  password", "w" * 1_001, " reset password", "v" * 1_000)
    own = Corpus("spaces.csv", ("One.", "Two.", "Three.", "Four."), {"query": asked})
    caching.corpora().put(current.key_of(own), own)
    app = AppTest.from_function(of_queries)
    app.session_state["own"] = current.key_of(own)
    app.run()
    assert not app.exception
    assert app.session_state["found"] == [("reset password", (0, 2)), ("v" * 1_000, (3,))]
