"""The whole path: what is sent to the browser, that it is the model's, and that nothing else has an effect."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path as Folder
from typing import Any

import numpy as np
import pytest
from streamlit.delta_generator import DeltaGenerator

from dashboard import state
from dashboard.declared import table
from dashboard.declared.stops import STOPS, VIEW, WITHOUT_BLOCKS
from dashboard.ui import browser
from dashboard.ui.whole_path.packed import Path, arrays_of, facts_of, packed, tokens_of
from dashboard.views.home import whole as on_start
from dashboard.views.path import whole
from tests.support.packed import unpacked
from tests.support.pages import BANK, Open, at_rest, backend, setting, texts
from tests.support.static_models import save_model2vec

RIVER, MONEY = on_start.SENTENCES


def sent(app: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the page sent to its drawing."""
    element = next(item for item in app.get("bidi_component") if item.proto.component_name == "bert_internals_path")
    return unpacked(element.proto.bytes)


def test_it_opens_with_a_head_that_looks_from_the_chosen_word_at_another(open_page: Open) -> None:
    app = at_rest(open_page(VIEW, s=[RIVER, MONEY], t=["7", "6"]))
    facts, arrays = sent(app)
    stop, token, block, head, only_left = facts["place"]
    assert (stop, facts["tokens"][token]["piece"], only_left) == ("pieces", "bank", False)
    record = backend().inside(RIVER, attentions=True)
    assert record.attentions is not None
    assert facts["tokens"][int(record.attentions[block, head, token].argmax())]["piece"] == "river"
    first = facts["first"]  # why it opens: at a content word it goes furthest above its average
    assert (first["place"], first["target"], first["isContent"]) == ([token, block, head], 10, True)
    assert first["usual"] < record.attentions[block, head, token, 10]
    assert not facts["unknownLanguage"]
    np.testing.assert_array_equal(arrays["all.layers"], record.hidden_states)
    np.testing.assert_array_equal(arrays[f"all.{block}.queries"], record.queries[block])
    for text, which in ((RIVER, "first"), (MONEY, "second")):  # the included model's own vector is the mean
        mean = backend().inside(text).hidden_states[-1].mean(axis=0, dtype=np.float64)
        np.testing.assert_allclose(arrays[f"all.{which}.vector"], mean, atol=2e-5)
    assert {name.split(".")[1] for name in arrays if name.startswith("all.")} == {
        *("layers", "took", "first", "second", str(block)),
    }


def test_the_address_opens_a_stop_and_only_left_has_arrays_of_its_own(open_page: Open) -> None:
    app = at_rest(open_page(VIEW, s=[RIVER, MONEY], t=["7", "6"], stop="take", b="3", h="2", left="1"))
    facts, arrays = sent(app)
    assert facts["place"] == ["take", 7, 3, 2, True]
    record = backend().inside(RIVER, attentions=True, only_left=True)
    np.testing.assert_array_equal(arrays["left.layers"], record.hidden_states)
    assert "all.layers" not in arrays
    assert not np.triu(arrays["left.took"][3], 1).any()


def test_one_sentence_has_no_second_and_says_so(open_page: Open) -> None:
    facts, arrays = sent(at_rest(open_page(VIEW, s=["Здравствуйте, как у вас сегодня дела?"])))
    assert facts["unknownLanguage"]
    assert facts["second"] is None
    assert not [name for name in arrays if "second" in name]


def test_a_second_sentence_is_the_other_one_or_an_example(said: Callable[[str, Any], dict[str, Any]]) -> None:
    assert said("second", True) == {"sentence_b": 2}
    assert said("second", [True]) == {}
    alone = said("second alone", True)
    assert alone == {"sentences": (RIVER, whole.EXAMPLES[0]), "sentence_b": 2}


def test_a_static_model_has_the_stops_that_it_has(open_page: Open, tmp_path: Folder) -> None:
    folder = save_model2vec(tmp_path / "static")
    facts, arrays = sent(at_rest(open_page(VIEW, m=str(folder), s=["the cat", "a bank"], stop="look")))
    assert facts["stops"] == list(WITHOUT_BLOCKS)
    assert facts["place"][0] == "pieces"
    assert set(arrays) == {
        *("all.layers", "part.word", "all.first.pooled", "all.first.vector"),
        *("all.second.pooled", "all.second.vector", "all.second.layer"),
        *(name for name in arrays if ".step." in name),
    }


def test_a_text_that_is_too_long_to_send_is_refused_in_words(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "MOST_TOKENS", 12)
    app = open_page(VIEW, s=[RIVER])
    assert "A sentence has 13 tokens.** The whole path shows at most 12." in texts(app)


def test_while_the_path_of_a_long_text_is_computed_the_page_says_so(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "MOST_AT_ONCE", 12)
    seen: list[str] = []
    caption = DeltaGenerator.caption
    monkeypatch.setattr(
        DeltaGenerator, "caption", lambda slot, text, **more: (seen.append(text), caption(slot, text, **more))[1]
    )
    app = open_page(VIEW, s=[RIVER])
    assert "Drawing the path of 13 pieces …" in seen
    assert "Drawing the path" not in texts(app)  # it is there


def test_the_payload_of_48_tokens_is_small(embedded: Any) -> None:
    path = Path(embedded, [" ".join(["bank"] * 46), MONEY], None)
    assert len(path.sentence) == 48
    base, block = (len(packed(facts_of(path), arrays_of(path, [name]))) for name in ("all", "all.0"))
    assert base < 1_000_000
    assert block < 760_000


def test_only_names_of_arrays_are_answered(embedded: Any) -> None:
    path = Path(embedded, [RIVER], None)
    for name in ("", "all.6", "all.-1", "all.0.queries", "right", "left.x", "../all"):
        with pytest.raises(ValueError, match="names no arrays"):
            arrays_of(path, [name])


def test_the_rows_of_the_table_of_positions_are_those_that_the_model_reads(
    tiny_folder: Callable[[str], Folder],
) -> None:
    from components.model.backend import Backend

    roberta = Backend.load(str(tiny_folder("roberta")))
    path = Path(roberta, ["the cat"], None)
    rows = [token["row"] for token in tokens_of(path.sentence, True, roberta.first_position, None)]
    parts = path.trace.embedding_parts
    assert parts is not None
    assert parts.position is not None
    table_of = roberta.encoder.embeddings.position_embeddings.weight.detach().numpy()
    np.testing.assert_array_equal(parts.position[0, : len(rows)], table_of[rows])


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, embedded: Any) -> Callable[[str, Any], dict[str, Any]]:
    """Lets the browser report something, and returns what of the session it changed."""
    path = Path(embedded, [RIVER, MONEY], None)

    def send(trigger: str, value: Any) -> dict[str, Any]:
        texts = (RIVER,) if "alone" in trigger else (RIVER, MONEY)
        session: dict[str, Any] = {whole._KEY: {trigger.split()[0]: value}, "sentences": texts, "tokens": (7, 6)}
        for module in (browser, state, whole):
            monkeypatch.setattr(module.st, "session_state", session)
        before = dict(session)
        if trigger == "place":
            whole._take_place(0, embedded.tokenize([RIVER, MONEY]), (7, 6), whole._Sizes.of(path), (7, 0, 4))
        elif "second" in trigger:
            whole._add_second(texts, 0)
        elif trigger == "open":
            whole._open(path, 0, None, embedded.tokenize([RIVER, MONEY]), (7, 6))
        return {name: value for name, value in session.items() if before.get(name, ()) != value and name[0] != "_"}

    return send


def test_a_place_must_be_one_of_the_path(said: Callable[[str, Any], dict[str, Any]]) -> None:
    assert said("place", ["take", 3, 2, 5, True]) == {
        "path_stop": "take",
        "only_left": True,
        "tokens": (3, 6),
        "sentence": 0,
        "block": 2,
        "head": 5,
    }
    # What was open without a choice is none: another sentence may open with a word and a head of its own.
    assert said("place", ["take", 7, 0, 4, False]) == {"path_stop": "take", "only_left": False}
    for wrong in (
        None,
        "take",
        [],
        ["take", 3, 2, 5],
        ["nowhere", 3, 2, 5, False],
        [["take"], 3, 2, 5, False],
        [{}, 3, 2, 5, False],
        ["take", 99, 2, 5, False],
        ["take", "3", 2, 5, 0],
    ):
        assert said("place", wrong) == {}, wrong
    assert said("open", [["take"], 3, 2, 5]) == {}
    for wrong in (["take", 7, 6, 0, False], ["take", 7, 0, 12, False], ["take", 7, True, 0, False]):
        assert not {"block", "head"} & said("place", wrong).keys(), wrong


def test_what_start_has_of_the_path_is_what_the_included_model_gives(embedded: Any) -> None:
    kept, arrays = unpacked(on_start.PATH.read_bytes())
    measured, again = unpacked(on_start.measured(embedded))
    assert set(arrays) == set(again)
    for name, array in arrays.items():
        scale = max(1.0, float(np.abs(again[name]).max()))
        np.testing.assert_allclose(array, again[name], atol=1e-5 * scale, err_msg=name)
    changing = ("arrays", "unrelated", "id", "weights")
    assert {name: value for name, value in kept.items() if name not in changing} == {
        name: value for name, value in measured.items() if name not in changing
    }
    np.testing.assert_allclose(kept["unrelated"], measured["unrelated"], atol=1e-4)


def test_every_view_of_text_inside_and_meaning_says_which_stop_it_treats() -> None:
    for page in ("text", "inside", "meaning"):
        for view in table.views_of(page):
            assert (view.stop in STOPS) != (view.key == VIEW), view.key


def test_the_line_of_stops_leads_to_the_path(open_page: Open) -> None:
    app = open_page("all-heads", s=BANK[:2])
    line = next(item for item in app.get("bidi_component") if item.proto.component_name == "bert_internals_path_strip")
    assert json.loads(line.proto.json)["lit"] == "look"
    assert setting(app, "inside_view") == "all-heads"
    search = open_page("hits")
    assert not [
        item for item in search.get("bidi_component") if item.proto.component_name == "bert_internals_path_strip"
    ]
