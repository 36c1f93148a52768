"""Pairs, "One input": what is drawn is what the cross-encoder is given."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.errors import ModelError
from components.model.backend import Backend
from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY
from dashboard import caching
from dashboard.corpora import current
from dashboard.settings import DEFAULT_TRIPLE
from dashboard.views.pairs import given
from tests.support.pages import Open, plain_table, setting, texts
from tests.support.saved_models import save_cross_encoder, save_with_head


def rows_of(app: AppTest) -> list[dict[str, Any]]:
    """Both pairs' chips: each token's piece, lines below it, and colour."""
    components = [item for item in app.get("bidi_component") if item.proto.component_name == "bert_internals_chips"]
    (rows,) = zip(*(json.loads(item.proto.json)["rows"] for item in components), strict=True)
    return [
        [(token["piece"], token["under"], word["tint"]) for word in row["words"] for token in word["tokens"]]
        for row in rows
    ]


def test_both_pairs_are_shown_as_transformers_tokenizes_them(read_page: Open, embedded_folder: Any) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(embedded_folder)
    app = read_page("pairs")
    assert not app.exception
    rows = rows_of(app)
    assert len(rows) == 2
    query, *documents = DEFAULT_TRIPLE
    for row, document in zip(rows, documents, strict=True):
        encoding = tokenizer(query, document, truncation=False)
        assert [piece for piece, _, _ in row] == tokenizer.convert_ids_to_tokens(encoding["input_ids"])
        expected = [
            [str(position), str(number), f"{kind} {'AB'[kind]}"]
            for position, (number, kind) in enumerate(
                zip(encoding["input_ids"], encoding["token_type_ids"], strict=True)
            )
        ]
        if row is rows[0]:  # its first piece names the three lines of all
            expected[0] = [f"{name} {text}" for name, text in zip(("position", "id", "type"), expected[0], strict=True)]
        assert [under for _, under, _ in row] == expected
        sides = [{None: "x", 0: "0", 1: "1"}[side] for side in encoding.sequence_ids()]
        assert [tint for _, _, tint in row] == sides


def test_where_the_first_pair_cannot_be_read_the_other_names_what_stands_under_its_pieces(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = given._read

    def read_one(scorer: Any, query: str, document: str, role: str, *others: Any) -> Any:
        is_read = role == "other"
        return read(scorer, query, document, role, *others) if is_read else given._Reading(role, document, None, "No.")

    monkeypatch.setattr(given, "_read", read_one)
    app = open_page("pairs")
    assert not app.exception
    (row,) = rows_of(app)
    assert [name.split()[0] for name in row[0][1]] == ["position", "id", "type"]
    assert row[1][1][0] == "1"


def in_print(value: float) -> str:
    """Two decimals, and the minus sign of print."""
    return f"{value:.2f}".replace("-", "−")


def test_the_scores_are_those_of_score_pairs(scorer: Backend, read_page: Open) -> None:
    app = read_page("pairs")
    query, *documents = DEFAULT_TRIPLE
    logits = scorer.score_pairs([query] * 2, documents)
    shown = texts(app)
    for logit in logits:
        assert f"logit **{in_print(logit)}**, sigmoid **{1 / (1 + np.exp(-logit)):.2f}**" in shown
    relevant, other = logits
    assert (
        f"The relevant document scores **{in_print(relevant)}**, the other **{in_print(other)}**: "
        "the **relevant document** is higher by" in shown
    )
    assert "was trained to score how similar two sentences are" in shown


def test_a_wrong_score_is_called_wrong(open_page: Open) -> None:
    app = open_page("pairs")
    app.button_group(key="w_triple").set_value("A negation").run()
    assert tuple(setting(app, name) for name in given.TEXTS) == given.TRIPLES["A negation"]
    assert "Here the model is wrong" in texts(app)
    assert app.query_params["pq"] in ("The bottle is not empty.", ["The bottle is not empty."])


def test_equal_scores_are_not_called_wrong(open_page: Open) -> None:
    app = open_page("pairs", pr="Bees find their way by the sun.", po="Bees find their way by the sun.")
    assert "**the same score**, to two decimals" in texts(app)
    assert "the model is wrong" not in texts(app)
    assert "higher score" not in texts(app)
    assert re.search(r"Each pair is one input of \d+ tokens", texts(app))  # inputs of one size, which is said once


def test_the_model_fails_clearly_on_the_example_of_shared_words(open_page: Open, scorer: Backend) -> None:
    query, *documents = given.TRIPLES["Shared words"]
    relevant, other = scorer.score_pairs([query] * 2, documents)
    assert other - relevant > 2
    app = open_page("pairs", pq=query, pr=documents[0], po=documents[1])
    assert app.button_group(key="w_triple").value == "Shared words"
    assert f"the **other document** is higher by {other - relevant:.2f}. Here the model is wrong" in texts(app)


def test_a_text_without_a_known_piece_is_named(open_page: Open) -> None:
    app = open_page("pairs", pq="\U0001f600 \U0001f41d")
    assert "**The query is only \\[UNK\\] to the model:**" in app.warning[0].value
    assert {piece for piece, _, tint in rows_of(app)[0] if tint == "0"} == {"[UNK]"}
    app = open_page("pairs", pr="\U0001f600", po="\U0001f600")
    assert "The relevant document and the other document are only" in app.warning[0].value
    assert not open_page("pairs", pq="a \U0001f600").warning


def test_truncation_removes_from_the_chosen_side(open_page: Open, scorer: Backend) -> None:
    query, *documents = given.TRIPLES["A long document"]
    address = {"pq": query, "pr": documents[0], "po": documents[1], "pl": "14"}
    for cut in ("longest_first", "only_second"):
        app = open_page("pairs", **address, cut=cut)
        for row, document in zip(rows_of(app), documents, strict=True):
            (expected,) = scorer.tokenize([query], [document], 14, cut)
            assert [piece for piece, _, _ in row] == [token.piece for token in expected.tokens]
            assert len(row) == 14
        logits = scorer.pair_logits([query] * 2, documents, max_length=14, truncation=cut)[:, 0]
        assert all(f"logit **{in_print(logit)}**" in texts(app) for logit in logits)
        table = plain_table(app)
        assert list(table["from the query"]) == ["3: way home?", "3: way home?", "nothing", "nothing"]
        assert all(text.split(":")[0].isdigit() for text in table["from the document"])


def test_a_query_that_leaves_no_room_is_explained_and_the_page_goes_on(open_page: Open) -> None:
    app = open_page("pairs", pl="7", cut="only_second")
    assert not app.exception
    assert not app.error
    assert sum("room for" in item.value for item in app.warning) == 2
    assert list(plain_table(app)["from the query"])[2:] == ["not possible"] * 2


def test_the_length_control_ends_where_nothing_is_truncated(open_page: Open) -> None:
    app = open_page("pairs", pl="4000")
    slider = app.slider(key="w_pair_length")
    assert (slider.min, slider.max, slider.value) == (5, 24, 24)
    assert "Nothing is truncated: the longer pair has 24 tokens" in texts(app)
    slider.set_value(12).run()
    assert setting(app, "pair_length") == 12
    app.slider(key="w_pair_length").set_value(24).run()
    assert setting(app, "pair_length") is None


def test_a_missing_text_is_asked_for(open_page: Open) -> None:
    app = open_page("pairs", pr=" ")
    assert "A text is missing" in texts(app)
    app.session_state["own_texts"] = True
    app.run()
    app.text_area(key="w_pair_relevant").set_value("The hive is near.").run()
    assert len(rows_of(app)) == 2


def test_texts_of_the_corpus_are_a_query_its_sentence_and_another_of_its_topic(open_page: Open) -> None:
    app = open_page("pairs")
    seen = set()
    for _ in range(3):
        app.button_group(key="w_triple").set_value(given.FROM_CORPUS).run()
        query, relevant, other = (setting(app, name) for name in given.TEXTS)
        corpus = current.demo()
        row = corpus.texts.index(relevant)
        assert corpus.columns["compressed"][row] == query
        assert other != relevant
        assert corpus.columns["topic"][corpus.texts.index(other)] == corpus.columns["topic"][row]
        seen.add(query)
    assert len(seen) == 3


def test_labels_are_shown_by_name(open_page: Open, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save_cross_encoder(tmp_path, "bert", outputs=3)
    path = folder / "config.json"
    names = {"0": "contradiction", "1": "entailment", "2": "neutral"}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"id2label": names}))
    app = open_page("pairs", ce=str(folder))
    assert not app.exception
    assert "neutral: logit" in texts(app)
    assert "softmax" in texts(app)
    # This tokenizer gives no token types, so the model reads none.
    assert "published without token types" in texts(app)


def test_next_sentence_prediction_is_shown_for_a_model_that_has_it(
    open_page: Open, read_page: Open, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "BERT's own checkpoints have it" in texts(read_page("pairs"))
    folder = save_with_head(tmp_path)
    app = open_page("pairs", m=str(folder))
    model = Backend.load(str(folder), device_name="cpu")
    query, *documents = DEFAULT_TRIPLE
    expected = model.next_sentence_probabilities([query] * 2, documents)
    assert [item.value for item in app.metric] == [f"{100 * value:.1f} %" for value in expected]

    def never(*arguments: Any) -> None:
        raise AssertionError("a rerun computed it again")

    monkeypatch.setattr(Backend, "next_sentence_probabilities", never)
    assert [item.value for item in app.run().metric] == [f"{100 * value:.1f} %" for value in expected]
    caching._next_sentence_probabilities.clear()

    def damaged(*arguments: Any) -> None:
        raise ModelError("damaged", "The head is damaged.", "A shape is wrong.", "Download it again.")

    monkeypatch.setattr(Backend, "next_sentence_probabilities", damaged)
    assert "The head is damaged" in app.run().error[0].value
    assert "published without a head" not in texts(app)


def test_a_pair_is_opened_in_the_pages_that_show_it(open_page: Open) -> None:
    app = open_page("pairs")
    app.button(key="pair_in_all-heads_other").click().run()
    assert not app.exception
    assert app.session_state["sentences"] == (DEFAULT_TRIPLE[0], DEFAULT_TRIPLE[2])
    assert app.session_state["model"] == EMBEDDED_CROSS_ENCODER_KEY
    assert app.session_state["reading"] == "together"
