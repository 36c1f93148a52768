"""Guess the word: what is drawn equals plain transformers and torch; masks as people type them; models without a head."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest
from transformers import AutoModelForMaskedLM, AutoTokenizer

from components.model.guesses import passes
from dashboard import caching
from dashboard.views.attention.guess import changes, contexts, picture
from dashboard.views.attention.guess.view import with_hidden
from tests.support import tiny
from tests.support.pages import Open, chips, figures, plain_table, texts, type_sentences
from tests.support.tiny import save_tiny_masked_lm

CAT = "the cat sat on the red hat"
FIRST, SHOWN = 5, 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny BERT with a masked-LM head."""
    return str(save_tiny_masked_lm(tmp_path_factory.mktemp("guesses") / "tiny"))


class Plain:
    """The same by transformers alone, in float64."""

    def __init__(self, folder: str) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForMaskedLM.from_pretrained(folder, attn_implementation="eager").eval().double()

    def ids(self, text: str) -> list[int]:
        found: list[int] = self.tokenizer(text)["input_ids"]
        return found

    def probabilities(self, ids: list[int], only_left: bool = False) -> np.ndarray:
        """[layer, token, piece]: the head on the vectors of each layer."""
        seen = torch.ones(len(ids), len(ids), dtype=torch.bool)
        if only_left:
            seen = seen.tril()
        mask = torch.zeros(len(ids), len(ids), dtype=torch.float64).masked_fill(~seen, -1e300)[None, None]
        with torch.inference_mode():
            hidden = self.model.bert(
                input_ids=torch.tensor([ids]), attention_mask=mask, output_hidden_states=True
            ).hidden_states
            return torch.stack([self.model.cls(states)[0] for states in hidden]).softmax(-1).numpy()

    def hidden(self, text: str, *positions: int, only_left: bool = False) -> np.ndarray:
        ids = self.ids(text)
        for position in positions:
            ids[position] = self.tokenizer.mask_token_id
        return self.probabilities(ids, only_left)

    def piece(self, number: int) -> str:
        piece: str = self.tokenizer.convert_ids_to_tokens(int(number))
        return f"…{piece[2:]}" if piece.startswith("##") else piece


@pytest.fixture(scope="module")
def plain(folder: str) -> Plain:
    return Plain(folder)


def drawn(app: AppTest) -> dict[str, Any]:
    assert not app.exception
    assert not app.error
    (element,) = [item for item in app.get("bidi_component") if item.proto.component_name == "bert_internals_guess"]
    found: dict[str, Any] = json.loads(element.proto.json)
    return found


def share(text: str) -> float:
    return float(text.split(" %")[0].removeprefix("less than "))


@pytest.mark.parametrize("only_left", [False, True])
def test_the_picture_is_that_of_plain_transformers(open_page: Open, folder: str, plain: Plain, only_left: bool) -> None:
    app = open_page("inside", m=folder, s=[CAT], v="mask-token", mp="2", **({"left": "1"} if only_left else {}))
    shown, position, true = drawn(app), 2, plain.ids(CAT)[2]
    own, other = (plain.hidden(CAT, position, only_left=left)[:, position] for left in (only_left, not only_left))
    best = np.argsort(-own[-1], kind="stable")[:SHOWN]
    (panel,) = shown["panels"]
    assert [row["piece"] for row in panel["rows"][:SHOWN]] == [plain.piece(number) for number in best]
    np.testing.assert_allclose([row["share"] for row in panel["rows"][:SHOWN]], own[-1, best], atol=1e-5)
    assert [row["own"] for row in panel["rows"][:SHOWN]] == [number == true for number in best]
    assert [row["piece"] for row in panel["rows"][SHOWN:]] == [plain.piece(true)] * (true not in best)
    for layer, found in enumerate(shown["lens"]["layers"]):
        first = np.argsort(-own[layer], kind="stable")[:FIRST]
        assert [chip["piece"] for chip in found["guesses"]] == [plain.piece(number) for number in first]
    ranks = [[1 + int((row > row[true] * (1 + 1e-9)).sum()) for row in each] for each in (own, other)]
    assert shown["lens"]["rank"]["ranks"] == ranks[0]
    assert shown["lens"]["rank"]["other"] == {
        "ranks": ranks[1],
        "name": "both sides" if only_left else "only left",
    }
    assert len(shown["lens"]["layers"]) == len(own) == 4
    assert ("seeing both sides" if only_left else "looking only left") in texts(app)


def test_the_line_of_text_is_a_plain_loop(open_page: Open, folder: str, plain: Plain) -> None:
    shown = drawn(open_page("inside", m=folder, s=[CAT], v="mask-token", mp="2"))["surprise"]
    ids = plain.ids(CAT)
    bits = [-np.log2(plain.hidden(CAT, at)[-1, at, ids[at]]) for at in range(1, len(ids) - 1)]
    assert [word["text"] for word in shown["words"]] == CAT.split()
    np.testing.assert_allclose([float(word["bits"]) for word in shown["words"]], bits, atol=0.0501)
    assert float(shown["total"]) == pytest.approx(2 ** np.mean(bits), abs=0.0501)
    assert CAT.split()[int(np.argmax(bits))] in shown["most"]
    assert [word["position"] for word in shown["words"] if word["pressed"]] == [2]


def test_it_opens_on_the_last_content_word(open_page: Open, folder: str) -> None:
    app = open_page("inside", m=folder, s=[CAT], v="mask-token")
    assert [word["text"] for word in drawn(app)["surprise"]["words"] if word["pressed"]] == ["hat"]
    assert "“hat”" in texts(app)


@pytest.mark.parametrize("mask", ["[MASK]", "[mask]", "<mask>", "<MASK>"])
def test_a_typed_mask_is_understood_and_its_true_word_is_not_known(
    open_page: Open, folder: str, plain: Plain, mask: str
) -> None:
    app = open_page("inside", m=folder, s=[f"the {mask} sat on the hat"], v="mask-token")
    shown, probabilities = drawn(app), plain.probabilities(plain.ids("the [MASK] sat on the hat"))[:, 2]
    best = int(np.argmax(probabilities[-1]))
    assert f"The first guess is “{plain.piece(best)}”" in texts(app)
    assert shown["panels"][0]["rows"][0]["own"]
    assert len(shown["panels"][0]["rows"]) == SHOWN
    assert shown["lens"]["rank"]["ranks"] == [1 + int((row > row[best]).sum()) for row in probabilities]
    assert not figures(app)  # nothing was hidden, so that nothing changes
    assert shown["surprise"]["words"][1]["bits"] == ""


def test_several_masks_are_guessed_one_by_one_and_one_of_them_is_shown(
    open_page: Open, folder: str, plain: Plain
) -> None:
    text = "the [mask] sat on the <mask>"
    app = open_page("inside", m=folder, s=[text], v="mask-token", mp="6")
    assert "Each of the 2 masks is guessed by itself" in texts(app)
    probabilities = plain.probabilities(plain.ids("the [MASK] sat on the [MASK]"))[-1]
    shown = drawn(app)
    assert [mask["guess"] for mask in shown["masks"]] == [
        plain.piece(int(np.argmax(probabilities[at]))) for at in (2, 6)
    ]
    assert [mask["pressed"] for mask in shown["masks"]] == [False, True]
    np.testing.assert_allclose(
        [row["share"] for row in shown["panels"][0]["rows"]], np.sort(probabilities[6])[::-1][:SHOWN], atol=1e-5
    )


def test_a_word_of_several_pieces_is_hidden_whole_or_by_the_piece(open_page: Open, folder: str, plain: Plain) -> None:
    text = "the cat walking on the hat"
    assert plain.tokenizer.convert_ids_to_tokens(plain.ids(text))[3:5] == ["walk", "##ing"]
    whole = open_page("inside", m=folder, s=[text], v="mask-token", mp="4", mw="1")
    assert "Each of the 2 pieces of “walking” is guessed by itself" in texts(whole)
    expected = plain.hidden(text, 3, 4)[-1, 4]
    np.testing.assert_allclose(
        [row["share"] for row in drawn(whole)["panels"][0]["rows"][:SHOWN]], np.sort(expected)[::-1][:SHOWN], atol=1e-5
    )
    piece = open_page("inside", m=folder, s=[text], v="mask-token", mp="4")
    expected = plain.hidden(text, 4)[-1, 4]
    np.testing.assert_allclose(
        [row["share"] for row in drawn(piece)["panels"][0]["rows"][:SHOWN]], np.sort(expected)[::-1][:SHOWN], atol=1e-5
    )
    assert "…ing" in [row["piece"] for row in drawn(piece)["panels"][0]["rows"]]
    assert "Whole word" in [toggle.label for toggle in piece.toggle]
    assert [number.label for number in piece.number_input] == [
        "Block",
        "Head",
    ]  # of the change of attention, at its figure


def test_a_split_word_opens_whole_on_its_first_piece(open_page: Open, folder: str) -> None:
    app = open_page("inside", m=folder, s=["walking"], v="mask-token")
    assert "Each of the 2 pieces of “walking” is guessed by itself" in texts(app)
    assert [mask["pressed"] for mask in drawn(app)["masks"]] == [True, False]
    assert "mw" not in app.query_params


def test_what_is_hidden_has_the_mask_in_its_place_among_the_words(open_page: Open, folder: str) -> None:
    app = open_page("inside", m=folder, s=[CAT], v="mask-token", mp="2")
    (row,) = chips(app)["rows"]
    pieces = [token["piece"] for word in row["words"] for token in word["tokens"]]
    assert pieces == ["the", "[MASK]", *CAT.split()[2:]]
    model = caching.models().find(folder)
    sentence = model.tokenize([CAT])[0]
    assert with_hidden(sentence, (), model.tokenization) == sentence


def test_a_model_that_cannot_look_only_left_says_why(
    open_page: Open, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_page("inside", m=folder, s=[CAT], v="mask-token", mp="2")
    monkeypatch.setattr(type(caching.models().find(folder)), "why_not_only_left", lambda _: "It takes no such mask.")
    app = open_page("inside", m=folder, s=[CAT], v="mask-token", mp="2", left="1")
    switch = app.toggle(key="w_only_left")
    assert switch.disabled
    assert switch.help == "It takes no such mask."
    shown = drawn(app)
    assert shown["lens"]["rank"]["other"] is None
    assert shown["panels"][0]["soft"] == ""
    assert "only left" not in texts(app).replace("Looking only left is", "")


def test_a_text_too_long_for_the_line_of_surprise_has_its_guesses(open_page: Open, folder: str) -> None:
    shown = drawn(open_page("inside", m=folder, s=["the cat sat on the red hat " * 8], v="mask-token"))
    assert shown["surprise"]["total"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "MANY_TOKENS", 20)
        shown = drawn(open_page("inside", m=folder, s=["the cat sat on the red hat " * 8], v="mask-token"))
    assert shown["surprise"]["total"] == ""
    assert {word["bits"] for word in shown["surprise"]["words"]} == {""}
    assert len(shown["panels"][0]["rows"]) >= SHOWN


def test_a_model_without_the_head_says_so_first(open_page: Open, tmp_path: Path) -> None:
    app = open_page("inside", m=str(tiny.save_tiny(tmp_path / "headless")), v="mask-token", mp="5")
    first = next(str(item.value) for item in app.markdown if ":material/insights:" in str(item.value))
    assert first.startswith(":material/insights: This model has no masked-LM head: it cannot guess. Of the words, ")
    assert not [item for item in app.toggle if item.key == "w_only_left"]


def test_the_same_word_is_hidden_in_two_sentences(open_page: Open, folder: str, plain: Plain) -> None:
    both = ["the bank by the river", "we put money in the bank"]
    app = open_page("inside", m=folder, s=both, v="two-contexts", t=["2", "6"])
    panels = drawn(app)["panels"]
    for text, position, panel in zip(both, (2, 6), panels, strict=True):
        expected = plain.hidden(text, position)[-1, position]
        np.testing.assert_allclose(
            [row["share"] for row in panel["rows"][:SHOWN]], np.sort(expected)[::-1][:SHOWN], atol=1e-5
        )
    assert [panel["title"] for panel in panels] == ["A  the [MASK] by the river", "B  we put money in the [MASK]"]
    assert not drawn(app)["lens"]


def test_masks_that_were_typed_are_compared_too(open_page: Open, folder: str, plain: Plain) -> None:
    app = open_page("inside", m=folder, s=["the [mask] ran", "a <mask> ran"], v="two-contexts")
    for text, panel in zip(("the [MASK] ran", "a [MASK] ran"), drawn(app)["panels"], strict=True):
        expected = plain.probabilities(plain.ids(text))[-1, 2]
        np.testing.assert_allclose([row["share"] for row in panel["rows"]], np.sort(expected)[::-1][:SHOWN], atol=1e-5)


def test_a_word_is_hidden_beside_a_hole_in_two_sentences(open_page: Open, folder: str, plain: Plain) -> None:
    both = ["the cat sat on the ___", "we put ___ in the bank"]
    app = open_page("inside", m=folder, s=both, v="two-contexts")
    assert [panel["title"] for panel in drawn(app)["panels"]] == [
        "A  the cat sat on the [MASK]",
        "B  we put [MASK] in the bank",
    ]
    app = open_page("inside", m=folder, s=both, v="two-contexts", t=["2", "3"])  # a word, and the hole
    panels = drawn(app)["panels"]
    assert [panel["title"] for panel in panels] == ["A  the [MASK] sat on the ___", "B  we put [MASK] in the bank"]
    assert [panel["known"] for panel in panels] == [True, False]
    for text, position, panel in zip(
        ("the [MASK] sat on the [MASK]", "we put [MASK] in the bank"), (2, 3), panels, strict=True
    ):
        expected = plain.probabilities(plain.ids(text))[-1, position]
        np.testing.assert_allclose(
            [row["share"] for row in panel["rows"][:SHOWN]], np.sort(expected)[::-1][:SHOWN], atol=1e-5
        )
    assert "Click a word to hide it. Click \\[MASK\\] to have it guessed again." in texts(app)


def test_a_click_behind_a_hole_means_the_word_that_was_clicked(
    open_page: Open, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = ["the ___ sat on the hat", "we put it in the bank"]
    open_page("inside", m=folder, s=both, v="two-contexts")
    model = caching.models().find(folder)
    sentences, asked = model.tokenize(both), []
    monkeypatch.setattr(contexts.controls, "length_for", lambda _: None)
    monkeypatch.setattr(contexts.controls, "choose_word", lambda *words: asked.append(words[2:]))
    chosen = contexts._at_holes(model, sentences, (1, 1))
    assert [sentences[0].tokens[chosen[0]].start, chosen[1]] == [both[0].index("___"), 1]
    for position in (2, 3, 6, 99):  # of the text with the mask: the hole, “sat”, “hat”
        contexts._choose(model, sentences, chosen, 0, position)
    starts = [sentences[row].tokens[position].start for row, position in asked]
    assert starts == [both[0].index(word) for word in ("___", "sat", "hat")]


def test_a_sign_that_turns_further_than_every_word_is_said() -> None:
    hidden = np.array([False, True, False, False, False])
    pieces, angles = ["[CLS]", "cat", "sat", ".", "[SEP]"], np.array([20.0, 80.0, 44.0, 45.0, 46.4])
    assert changes._further(pieces, angles, hidden, 2, "words") == "; “\\[SEP\\]”, which is no word, turns by 46°"
    assert changes._further(pieces, angles, hidden, 2, "tokens") == ""
    assert changes._further(pieces, np.minimum(angles, 44.4), hidden, 2, "words") == ""


def test_a_template_compares_words_over_its_fillings(open_page: Open, folder: str, plain: Plain) -> None:
    template = "the [cat, dog] sat on the [mask]"
    app = open_page("inside", m=folder, v="two-contexts", gc="template", gt=template, gw="hat, bank, xyzzy")
    assert not app.exception
    table = plain_table(app)
    assert list(table["filling"]) == ["cat", "dog"]
    for filling, row in zip(("cat", "dog"), table.to_dict("records"), strict=True):
        probabilities = plain.probabilities(plain.ids(f"the {filling} sat on the [MASK]"))[-1, 6]
        for word in ("hat", "bank"):
            expected = 100 * probabilities[plain.tokenizer.convert_tokens_to_ids(word)]
            assert share(row[word]) == pytest.approx(
                expected, abs=0.501 if expected >= 9.95 else 0.0501 if expected >= 0.05 else 0.1
            )
        assert row["xyzzy"] == "no single piece"
    assert "One template proves nothing." in texts(app)


def test_what_a_template_lacks_is_said(open_page: Open, folder: str) -> None:
    app = open_page("inside", m=folder, v="two-contexts", gc="template", gt="no mask", gw="he")
    assert not app.exception
    assert "The template has no list of words in square brackets" in str([item.value for item in app.error])
    app = open_page("inside", m=folder, v="two-contexts", gc="template", gt="the [cat, dog] [MASK]", gw=" ")
    assert "Type the words to compare" in str([item.value for item in app.info])


@pytest.mark.parametrize("text", ["cat", "!", "das Haus bank", " ".join(["cat"] * 60)])
def test_odd_sentences(open_page: Open, folder: str, text: str) -> None:
    for view in ("mask-token", "two-contexts"):
        app = open_page("inside", m=folder, s=[text, text], v=view)
        assert not app.exception
        assert not app.error


def test_a_word_that_was_hidden_before_needs_no_pass(open_page: Open, folder: str) -> None:
    app = open_page("inside", m=folder, s=[CAT], v="mask-token", mp="2")
    model, before = caching.models().find(folder), drawn(app)
    app.session_state["masked"] = 3
    after = drawn(app.run())
    assert after["surprise"]["total"] == before["surprise"]["total"]
    assert after["panels"] != before["panels"]
    passes = model.forward_passes
    app.session_state["masked"] = 2
    assert drawn(app.run()) == before
    assert model.forward_passes == passes


def hidden_words(app: AppTest) -> list[str]:
    """The words that are marked as hidden in the line of text."""
    return [word["text"] for word in drawn(app)["surprise"]["words"] if word["pressed"]]


@pytest.mark.parametrize(
    ("typed", "hidden"), [("the dog [MASK] to the bank", []), ("the dog ran to the bank", ["bank"])]
)
def test_a_hidden_word_belongs_to_its_sentence(open_page: Open, folder: str, typed: str, hidden: list[str]) -> None:
    app = open_page("inside", m=folder, s=[CAT], v="mask-token", mp="3")
    assert hidden_words(app) == ["sat"]
    type_sentences(app, typed)
    assert hidden_words(app) == hidden
    assert "mp" not in app.query_params
    assert hidden_words(app.run()) == hidden  # as when the page is drawn again for whatever reason
    assert hidden_words(open_page("inside", **app.query_params)) == hidden


def test_a_position_beyond_the_sentence_is_forgotten(open_page: Open, folder: str) -> None:
    app = open_page("inside", m=folder, s=[CAT], v="mask-token", mp="30")
    assert hidden_words(app) == ["hat"]
    assert "mp" not in app.query_params


def test_an_address_hides_a_word_of_its_own_sentence(open_page: Open, folder: str) -> None:
    """As in a lesson, of which each step brings another sentence and another hidden word."""
    app = open_page("inside", m=folder, s=["the dog [MASK]"], v="mask-token")
    app.session_state["_address"] = None  # the next run reads the address, as after Back
    app.query_params.clear()
    app.query_params.update({"m": folder, "s": CAT, "v": "mask-token", "mp": "3"})
    assert hidden_words(app.run()) == ["sat"]
    assert "".join(app.query_params["mp"]) == "3"


def test_blue_is_the_hidden_word_alone(open_page: Open, folder: str) -> None:
    hidden = drawn(open_page("inside", m=folder, s=[CAT], v="mask-token", mp="2"))
    typed = drawn(open_page("inside", m=folder, s=["the ___ sat"], v="mask-token"))
    assert [(shown["panels"][0]["known"], shown["lens"]["known"]) for shown in (hidden, typed)] == [
        (True, True),
        (False, False),
    ]
    assert [layer["short"] for layer in hidden["lens"]["layers"]] == ["0", "1", "2", "3"]
    assert [layer["name"] for layer in hidden["lens"]["layers"]] == ["layer 0", "layer 1", "layer 2", "layer 3"]
    assert all("layer 0" in note for note in hidden["lens"]["notes"])


def test_more_surprise_is_more_colour_and_has_a_legend(open_page: Open, folder: str) -> None:
    assert picture.shade_of(11.6) - picture.shade_of(9.0) > 0.1
    scale = drawn(open_page("inside", m=folder, s=[CAT], v="mask-token", mp="2"))["surprise"]["scale"]
    assert [item["shade"] for item in scale] == [picture.shade_of(float(item["bits"])) for item in scale]


def test_one_sentence_has_an_example_with_two(open_page: Open, folder: str) -> None:
    app = open_page("inside", m=folder, s=["the dog ran"], v="two-contexts")
    app.button(key="contexts_example").click().run()
    assert app.session_state["sentences"] == contexts.EXAMPLE
    assert [panel["known"] for panel in drawn(app)["panels"]] == [False, False]
    assert "To get it back" in texts(app)


def test_a_hidden_word_beside_a_typed_mask_is_named_as_hidden(open_page: Open, folder: str) -> None:
    shown = drawn(open_page("inside", m=folder, s=["the cat sat on [MASK]"], v="mask-token", mp="2"))
    assert [mask["name"] for mask in shown["masks"]] == ["hidden “cat”:", "mask 2:"]


def test_the_line_of_a_cut_text_goes_on(open_page: Open, folder: str) -> None:
    shown = drawn(open_page("inside", m=folder, s=["the cat sat on the red hat " * 60], v="mask-token", mp="2"))
    assert shown["surprise"]["words"][-1]["text"] == "…"


def test_a_sentence_without_an_end_gets_one(open_page: Open) -> None:
    text = "The capital of France is [MASK]"
    app = open_page("inside", v="mask-token", s=[text])
    assert "The first guess is “.”" in texts(app)
    first = drawn(open_page("inside", v="mask-token", s=[f"{text}."]))["panels"][0]["rows"][0]
    assert f"with a full stop behind it, the first guess is “{first['piece']}” ({first['said']})" in texts(app)
    app.button(key="add_end").click().run()
    assert app.session_state["sentences"] == (f"{text}.",)
    assert drawn(app)["panels"][0]["rows"][0] == first
    assert "no end" not in texts(app)
    assert not [button for button in app.button if button.key == "add_end"]


def test_one_sentence_is_read_alone_and_a_second_that_is_gone_is_forgotten(open_page: Open) -> None:
    three = ["The cat sat on the hat.", "A dog barked.", "I put money in the bank."]
    app = open_page("inside", v="mask-token", s=three, sb="3")
    alone = open_page("inside", v="mask-token", s=three[:1])
    assert drawn(app)["panels"] == drawn(alone)["panels"]
    assert "Sentence B" not in texts(app)
    together = open_page("inside", v="all-heads", s=three, sb="3")
    assert "Sentence B: 3" in texts(together)
    type_sentences(together, three[0])
    assert "is not available here" not in texts(together)
    # A link names it, and nobody has typed since.
    assert "Sentence B 3 is not available here" in texts(open_page("inside", v="all-heads", s=three[:1], sb="3"))
