"""Pieces of two sentences that the model reads together, against plain transformers."""

from __future__ import annotations

import re

import pytest
from transformers import AutoTokenizer

from tests.support.pages import BANK, Open, backend, chips, choose_view, go_to, texts


@pytest.fixture(scope="module")
def tokenizer(embedded_folder):
    return AutoTokenizer.from_pretrained(embedded_folder)


def drawn(app) -> list[dict]:
    """All tokens of the chips, A's and then B's."""
    return [token for row in chips(app)["rows"] for word in row["words"] for token in word["tokens"]]


def test_the_chips_are_the_tokenizers_pieces_ids_and_token_types_of_the_pair(open_page: Open, tokenizer) -> None:
    app = open_page("tokens", rd="together", sb="3")
    expected = tokenizer(BANK[0], BANK[2])
    assert [token["piece"] for token in drawn(app)] == tokenizer.convert_ids_to_tokens(expected["input_ids"])
    numbers = zip(expected["input_ids"], expected["token_type_ids"], strict=True)
    assert [token["under"] for token in drawn(app)] == [[f"{number} · {kind}"] for number, kind in numbers]
    first, second = chips(app)["rows"]
    assert (first["number"], second["number"]) == ("A", "B")
    assert second["words"][0]["tokens"][0]["piece"] == "i"
    assert f"One input of {len(expected['input_ids'])} tokens" in texts(app)
    assert "Sentence 2 is not read." in texts(app)


def test_the_first_token_of_b_is_chosen_and_its_facts_are_those_of_the_pair(open_page: Open) -> None:
    app = open_page("tokens", rd="together")
    picked = [token for token in drawn(app) if token["picked"]]
    assert [token["piece"] for token in picked] == ["the"]
    facts = [item.value for item in app.text]
    assert "B (sentence 2)" in facts
    assert "1" in facts
    app = open_page("tokens", rd="together", jt="5")
    assert [token["piece"] for token in drawn(app) if token["picked"]] == ["bank"]
    assert "A (sentence 1)" in [item.value for item in app.text]


def test_the_tensors_are_one_row_for_both(open_page: Open, tokenizer) -> None:
    app = open_page("tokens", rd="together", v="input-tensors", sb="2")
    expected = tokenizer(BANK[0], BANK[1])
    html = next(item for item in app.get("html") if "bi-grids" in item.proto.body).proto.body
    for name in ("input_ids", "token_type_ids", "attention_mask"):
        assert f'<th scope="row">{name}</th>' in html
    assert f"3 tensors of 1 × {len(expected['input_ids'])} numbers" in html
    assert html.count('<th scope="rowgroup">sentences 1 + 2</th>') == 1
    types = html.split('<th scope="row">token_type_ids</th>')[1].split("</tr>")[0]
    assert types.count('class="second"') == sum(expected["token_type_ids"])
    assert "token type 1 (orange) marks the second text" in texts(app)
    assert [int(cell.split(">")[1].split("<")[0]) for cell in types.split("<td")[1:]] == expected["token_type_ids"]


def test_a_truncated_pair_says_which_sentence_lost_its_end(open_page: Open, tokenizer) -> None:
    app = open_page("tokens", rd="together", len="12", sb="2")
    expected = tokenizer(BANK[0], BANK[1], truncation="longest_first", max_length=12)["input_ids"]
    assert [int(token["under"][0].split()[0]) for token in drawn(app)] == expected
    assert "of sentence 2**" in texts(app).replace(" truncated** of sentence 2", " truncated of sentence 2**")
    assert "the second text" not in texts(app)


def test_decoding_gives_both_texts(open_page: Open, tokenizer) -> None:
    app = open_page("tokens", rd="together", v="decoding", sb="3")
    html = next(item.proto.body for item in app.get("html") if "bi-texts" in item.proto.body)
    assert "<h6>Sentences 1 + 3:<span>2 capitals lost</span></h6>" in html
    first, second = (f"<mark>{text[0]}</mark>{text[1:]}" for text in (BANK[0], BANK[2]))
    assert f"<p>{first}<br>{second}</p>" in html
    back = html.split("comes back</small>")[1]
    assert re.sub("<[^>]*>", "", back) == tokenizer.decode(tokenizer(BANK[0], BANK[2])["input_ids"])
    assert re.findall("<mark>(.*?)</mark>", back) == [BANK[0][0].lower(), BANK[2][0].lower()]
    assert back.count("<i>[SEP]</i>") == 2
    assert "2 capitals (orange) do not come back" in texts(app)


def test_in_a_long_text_the_letters_that_come_back_as_others_are_marked(open_page: Open) -> None:
    text = f"A 😀 day. {'so it went on and on ' * 20}then Zoe met Paul in Berlin."
    app = open_page("tokens", v="decoding", s=[text])
    html = next(item.proto.body for item in app.get("html") if "bi-texts" in item.proto.body)
    assert re.findall("<mark>(.*?)</mark>", html.split("comes back</small>")[1]) == ["a", "z", "p", "b"]


def test_the_pair_goes_from_page_to_page(open_page: Open) -> None:
    app = open_page("tokens")
    app.segmented_control(key="w_reading").set_value("together").run()
    app.selectbox(key="w_sentence_a").set_value(1).run()
    app.selectbox(key="w_sentence_b").set_value(3).run()
    for page in ("attention", "heatmaps"):
        go_to(app, page)
        assert (app.selectbox(key="w_sentence_a").value, app.selectbox(key="w_sentence_b").value) == (1, 3)
    go_to(app, "map")
    assert app.segmented_control(key="w_map_source").value == "pair"
    assert not app.exception
    go_to(app, "layers")
    go_to(app, "tokens")
    assert (app.query_params["sa"], app.query_params["sb"], app.query_params["rd"]) == ("1", "3", "together")


def test_it_costs_no_forward_pass(open_page: Open) -> None:
    open_page("tokens", rd="together")
    before = backend().forward_passes
    app = open_page("tokens", rd="together", sa="2", sb="1")
    choose_view(app, "input-tensors")
    assert backend().forward_passes == before


@pytest.mark.parametrize("sentences", [["only this"], ["\u200b", "after"], ["before", "\u200b"]])
@pytest.mark.parametrize("view", ["pieces", "tensors", "decoding"])
def test_single_and_empty_sentences_are_no_fault(open_page: Open, sentences: list[str], view: str) -> None:
    app = open_page("tokens", rd="together", s=sentences, view=view)
    assert not app.exception
    assert not app.error


def test_sentences_that_a_pair_no_longer_has_are_refused(open_page: Open) -> None:
    app = open_page("tokens", rd="together", sa="7", sb="9")
    assert not app.error
    assert (app.selectbox(key="w_sentence_a").value, app.selectbox(key="w_sentence_b").value) == (0, 2)
    assert "Sentence B 9 is not available here. There are 3 sentences." in texts(app)


def test_other_views_have_no_pair(open_page: Open) -> None:
    app = open_page("tokens", rd="together", v="two-tokenizers")
    assert "w_reading" not in [item.key for item in app.segmented_control]
