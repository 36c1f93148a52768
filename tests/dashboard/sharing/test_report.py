"""A page as a report: its figures, tables and settings in one file, collected only while the panel is open."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.charts import matrices
from components.charts.stand_alone.page import title_of
from dashboard.corpora import current
from dashboard.sharing import report
from dashboard.views.attention import single_heads
from tests.dashboard.page_states import STATES, place_of, settings_of, small_corpus
from tests.support.pages import Open, at_rest, chips, figures, setting, whole_figures
from tests.support.static_models import save_model2vec

PANEL = {"session_panel_0": True}  # it is open


def collected(app: AppTest) -> report.Report:
    """What the page's panel has collected, which is opened if it is not yet."""
    if not setting(app, "session_panel_0"):
        app.session_state["session_panel_0"] = True
        app.run()
    app = at_rest(app)
    found = setting(app, "_report")
    assert found is not None
    return found  # type: ignore[no-any-return]


def values(spec: Any) -> list[str]:
    """The names of a figure's traces."""
    return [str(trace.get("name")) for trace in spec["data"]]


@pytest.mark.parametrize(
    ("page", "address"),
    [
        ("layers", {"view": "within"}),
        ("heatmaps", {"view": "blocks", "sa": "1"}),
        ("why", {"view": "split", "l": "3"}),
        ("training", {"view": "objective"}),
    ],
)
def test_it_has_the_figures_that_the_page_shows(open_page: Open, page: str, address: dict[str, str]) -> None:
    app = open_page(page, session=PANEL, **address)
    found = collected(app)
    drawn = [json.loads(part.figure.to_json()) for part, _ in found.parts.values() if part.figure is not None]
    shown = whole_figures(app)
    assert len(drawn) == len(shown) > 0
    assert [values(spec) for spec in drawn] == [values(spec) for spec in shown]
    assert all(part.alt for part, _ in found.parts.values() if part.figure is not None)
    text = report.to_bytes(found).decode()
    assert text.count("Plotly.newPlot(") - text.split("<body>")[0].count("Plotly.newPlot(") == len(drawn)
    app.run()
    assert len([part for part, _ in setting(app, "_report").parts.values() if part.figure is not None]) == len(
        drawn
    )  # not twice


def test_it_names_the_block_and_head_that_nobody_has_chosen(open_page: Open) -> None:
    facts = collected(open_page("attention", session=PANEL, v="attention-matrix")).facts
    assert {"Block: 0", "Head: 0"} <= set(facts)
    chosen = collected(open_page("attention", session=PANEL, v="attention-matrix", b="3", h="1")).facts
    assert {"Block: 3", "Head: 1"} <= set(chosen)
    assert "Block: 0" not in chosen


def test_sentences_are_named_as_on_the_page(open_page: Open) -> None:
    sentences = ["A bank.", "The river."]
    assert {"Sentence B: none: A alone"} <= set(
        collected(open_page("attention", session=PANEL, s=sentences, v="attention-matrix")).facts
    )
    chosen = collected(open_page("attention", session=PANEL, s=sentences, v="attention-matrix", sa="1", sb="1")).facts
    assert {"Sentence A: 2  The river.", "Sentence B: 1  A bank."} <= set(chosen)
    assert {"Sentence: 1  A bank."} <= set(
        collected(open_page("model", session=PANEL, s=sentences, v="layer-zero")).facts
    )


# Views that are drawn at once, and what they read besides the settings of their case in page_states.STATES.
ALSO = {
    "home": {"sentence", "tokens"},
    "pieces": {"max_length"},
    "vocabulary": {"max_length", "tokens", "sentence"},
    "output-vectors": set(),
    "two-tokens": {"whole_word", "centred", "show_baseline"},
    "token-pairs": {"include_special"},
    "two-layers": {"corpus", "map_source", "map_colour", "map_tokens", "map_seed"},
    "attention-matrix": {"texts_filter", "chosen_blocks", "special_tokens"},
    "similar-pairs": set(),
    "evaluated-data": set(),
    "one-input": set(),
    "training-objective": {"training_length", "held_out", "training_seed"},
    "known-failures": {"layer", "pooling"},
}


@pytest.mark.parametrize("case", ALSO)
def test_it_states_the_settings_that_its_view_uses_in_words_and_no_others(
    open_page: Open, tiny_folder: Callable[[str], Path], case: str
) -> None:
    """Every setting of every view of the page has a value of its own, as in a session that has been everywhere."""
    (page, _), tiny = place_of(case), str(tiny_folder("bert"))
    of_page = [settings_of(other, tiny) for other in STATES if place_of(other)[0] == page]
    everywhere = {name: value for values in of_page for name, value in values.items()}
    own = settings_of(case, tiny)
    app = open_page(page, session={**everywhere, **own, **PANEL, "_webgl": True})  # which Map asks for
    found = collected(app)
    stated = {fact.setting for fact in found.stated if fact.setting}
    assert stated <= {*own} | ALSO[case]
    assert stated & {*own} or case in {"home", "output-vectors"}
    for fact in found.facts:
        assert not re.search(r": ([0-9a-f]{12,}|True|False)$", fact), fact  # no key, and no value of the program
    assert not any("■" in item.title for item in app.session_state["_figures_drawn"].values())
    assert not any("■" in part.title for part, _ in found.parts.values())


def test_numbers_stand_in_their_units(open_page: Open) -> None:
    margin = {"train_view": "training-objective", "margin": 30, "warm_up": 10, "objective": "triplet", **PANEL}
    facts = collected(open_page("training", session=margin)).facts
    assert {"Margin: 0.3", "Warm up: 10 %"} <= set(facts)


def test_a_legend_under_a_title_is_no_part_of_it() -> None:
    values = np.array([[-0.022, 0.01], [0.0, 0.022]])
    figure = matrices.token_matrix(
        values, ["a", "b"], ["c", "d"], "layer 6", rows="a", columns="b", value="c", colour_bar="key", diverging=True
    )
    assert "■" in figure.layout.title.text
    assert title_of(figure) == "layer 6"


def test_a_page_that_cannot_show_the_model_says_so_in_it(open_page: Open, tmp_path: Path) -> None:
    found = collected(open_page("attention", session=PANEL, m=str(save_model2vec(tmp_path / "static"))))
    assert found.title == "Head view: another model is needed"
    ((part, _),) = found.parts.values()
    assert "has no blocks" in part.message


def test_it_names_the_model_the_sentences_and_the_settings(open_page: Open) -> None:
    app = open_page("layers", session=PANEL, v="sentence-curves", pool="max", s=["A <b>bank</b>.", "The river."])
    found = collected(app)
    assert found.title == app.title[0].value
    assert {"Model: all-MiniLM-L6-v2", "Sentence 1: A <b>bank</b>.", "Pooling: Max"} <= set(found.facts)
    body = report.to_bytes(found).decode().split("<body>")[1]
    assert "Sentence 1: A &lt;b&gt;bank&lt;/b&gt;." in body
    assert "<b>bank" not in body
    tables = re.findall(r"<td>([0-9.]+)</td>", body)
    curve = np.asarray(next(trace["y"] for trace in figures(app)[0]["data"] if "bank" in str(trace["name"])), float)
    assert {f"{value:.4f}".rstrip("0") for value in curve} <= {f"{float(text):.4f}".rstrip("0") for text in tables}


def test_what_was_clicked_is_named_in_it_and_not_numbered(open_page: Open) -> None:
    bank = ["The boat left the bank.", "She works at a bank."]
    facts = collected(open_page("layers", session=PANEL, v="one-word", s=bank, t=["2", "6"])).facts
    assert "Chosen tokens: “boat”, “.”" in facts
    facts = collected(open_page("attention", session=PANEL, v="mask-token", s=bank, mp="2")).facts
    assert "Masked token: “boat”" in facts
    key = small_corpus()
    facts = collected(open_page("search", session=PANEL, v="hits", corpus=key, q="storm", why="3")).facts
    assert f"Explained hit: “{current.demo().texts[3]}”" in facts
    assert "Corpus: first_24.jsonl" in facts


def test_a_word_of_another_value_names_none() -> None:
    def naming() -> None:
        import streamlit as st

        from dashboard import state
        from dashboard.sharing import report

        state.put("masked", 3)
        report.say_value("masked", 2, "“boat”")
        st.text([fact.values for fact in report.facts_of("inside", frozenset({"masked"})) if fact.setting == "masked"])

    app = AppTest.from_function(naming)
    app.session_state["inside_view"] = "mask-token"
    assert "('3',)" in app.run().text[0].value


def test_a_table_that_cannot_be_made_costs_only_itself() -> None:
    def fails() -> Any:
        raise KeyError("gone")

    found = report.Report("Title", parts={"one": (report.PagePart(message="It **falls**."), fails)})
    assert "It <strong>falls</strong>." in report.to_bytes(found).decode()


def test_what_is_drawn_again_in_its_place_stands_in_it_once() -> None:
    def drawing() -> None:
        import pandas as pd

        from dashboard.sharing import report
        from dashboard.ui import figures

        report.collect("meaning")
        for rows in (1, 2, 3):
            figures.plain_table(pd.DataFrame({"row": range(rows)}), key="facts")
        figures.plain_table(pd.DataFrame({"row": [9]}))
        for _ in range(3):  # as a part of a page that is drawn every few seconds
            report.add("votes", report.PagePart(), lambda: pd.DataFrame({"vote": [1]}))

    app = AppTest.from_function(drawing).run()
    assert not app.exception
    text = report.to_bytes(setting(app, "_report")).decode().split("<body>")[1]
    assert re.findall(r"<td>(\d+)</td>", text) == ["0", "1", "2", "9", "1"]


def test_nothing_is_kept_while_the_panel_is_closed(open_page: Open) -> None:
    app = open_page("layers")
    assert setting(app, "_report") is None
    collected(app)
    app.session_state["session_panel_0"] = False
    assert setting(app.run(), "_report") is None


@pytest.mark.parametrize("page", ["tokens", "pairs"])
def test_rows_of_tokens_are_in_it(open_page: Open, page: str) -> None:
    app = open_page(page, session=PANEL, **({"s": ["A dog <b>ran</b>."]} if page == "tokens" else {}))
    body = report.to_bytes(collected(app)).decode().split("<body>")[1]
    shown = [chip["piece"] for row in chips(app)["rows"] for word in row["words"] for chip in word["tokens"]]
    found = re.findall(r'<span class="chip[^>]*>([^<]*)<', body)
    assert found[: len(shown)] == [html.escape(piece) for piece in shown]
    assert len(found) > 5


@pytest.mark.parametrize("view", ["head", "model", "neuron"])
def test_the_views_of_bertviz_are_in_it_on_white(open_page: Open, view: str) -> None:
    app = open_page("attention", session=PANEL, view=view, s=["A dog ran."])
    found = collected(app).parts["bertviz"][0]
    assert found.frame is not None
    assert f'<body class="{view}">' in found.frame.document
    assert html.escape(found.frame.document) in report.to_bytes(collected(app)).decode()


def test_a_view_of_bertviz_that_is_too_large_is_a_matrix(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_heads, "MOST_IN_REPORT", 1_000)
    app = open_page("attention", session=PANEL, v="head-view", b="1", h="2", s=["A dog ran."])
    found = collected(app).parts["bertviz"][0]
    assert found.frame is None
    assert "left out of the report" in found.message
    assert found.figure is not None
    np.testing.assert_allclose(np.asarray(found.figure.data[0].z).sum(axis=1), 1, atol=1e-5)


def test_texts_that_a_failed_search_marks_are_in_it(open_page: Open) -> None:
    app = open_page("why", session=PANEL, v="failed-search", corpus=small_corpus(), dq="storm at sea", dr="17")
    body = report.to_bytes(collected(app)).decode().split("<body>")[1]
    assert body.count('<div class="bi-case">') == 1
    assert body.count("<h6>") == 3  # the query, the right text and its rival: nothing could be repaired


def test_a_table_that_stands_on_the_page_and_in_its_data_is_in_it_once() -> None:
    def drawing() -> None:
        import pandas as pd

        from dashboard.sharing import report
        from dashboard.ui import figures

        report.collect("laboratory")
        frame = pd.DataFrame({"row": [5, 6]})
        figures.whole_texts(frame, key="disagreement_list")
        report.add("disagreement", report.PagePart(), lambda: frame)
        report.add("other", report.PagePart(message="Equal numbers of something else."), lambda: frame)

    app = AppTest.from_function(drawing).run()
    assert not app.exception
    text = report.to_bytes(setting(app, "_report")).decode().split("<body>")[1]
    assert re.findall(r"<td>(\d+)</td>", text) == ["5", "6", "5", "6"]  # the second has words of its own


def test_tables_stand_below_the_titles_of_the_page_and_no_title_stands_alone() -> None:
    def drawing() -> None:
        import pandas as pd

        from dashboard.sharing import report
        from dashboard.ui import figures

        report.collect("laboratory")
        figures.subheader("Nothing follows")
        figures.subheader("Numbers <all>")
        figures.note("**Of the first row**")
        figures.plain_table(pd.DataFrame({"row": [5]}))
        figures.subheader("All rows")
        report.add("of data", report.PagePart(title="In a panel"), lambda: pd.DataFrame({"row": [6]}))
        for key in ("first", "second"):
            figures.note("**Again**", key=key)
        figures.subheader("Nothing follows this either")

    app = AppTest.from_function(drawing).run()
    assert not app.exception
    text = report.to_bytes(setting(app, "_report")).decode().split("<body>")[1]
    assert "Nothing" not in text
    found = re.findall(r'<h2 class="part">([^<]*)</h2>|<strong>([^<]*)</strong>|<td>(\d+)</td>', text)
    assert ["".join(each) for each in found] == [
        "Numbers &lt;all&gt;",
        "Of the first row",
        "5",
        "All rows",
        "In a panel",
        "6",
        "Again",
        "Again",
    ]


def test_the_hits_of_a_search_have_their_title(open_page: Open) -> None:
    app = open_page("search", session=PANEL, q="volcano", corpus=small_corpus())
    body = report.to_bytes(collected(app)).decode().split("<body>")[1]
    assert re.search(r'<h2 class="part">Hits: [^<]+</h2>', body)


def test_a_comparison_has_the_name_that_the_page_gives_it(open_page: Open) -> None:
    app = open_page("search", session=PANEL, q="volcano", vs="bm25", corpus=small_corpus())
    assert "Comparison: BM25" in collected(app).facts
