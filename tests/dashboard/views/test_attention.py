"""The views of attention: parity of what they show, their costs, its messages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from components.analysis.attention import flow as attention_flow
from components.analysis.attention import head_kinds, telling
from components.analysis.attention.weights import merge_words
from components.arrays import cosine
from components.charts import theme
from components.errors import InputError
from components.model.backend import Backend
from components.model.catalog import ModelSpec
from components.numbers import percent
from components.words.function import FUNCTION_WORDS, PERSONAL
from dashboard import caching, ready_made
from dashboard.jobs.stored.included_words import HABITS, WHOLE
from dashboard.views.attention import findings, flow, head_choice, scores, single_heads, summaries
from dashboard.views.attention.guess import changes
from tests.support.closeness import assert_close
from tests.support.pages import BANK, Open, backend, choose_view, figures, texts
from tests.support.saved_models import twelve_by_twelve
from tests.support.tiny import save_tiny, save_tiny_masked_lm

PAIR = ready_made.ready_made_sets()["pair"].sentences


def attentions(text: str = BANK[0], second: str | None = None) -> np.ndarray:
    trace = backend().trace([text], [second], attentions=True)
    return trace.attentions[:, 0]


def iframe(app: Any) -> str:
    return str(app.get("iframe")[0].proto.srcdoc)


def sent(app: Any) -> dict[str, Any]:
    """What a bertviz view was told, besides the weights."""
    page = iframe(app)
    start = page.index('id="page">') + len('id="page">')
    facts: dict[str, Any] = json.loads(page[start : page.index("</script>", start)])
    return facts


def tiles(app: Any) -> tuple[dict[str, Any], np.ndarray]:
    """Layout and cells of the component of all heads, decoded as its script does."""
    layout, _, cells, _, _ = overview(app)
    return layout, cells


def overview(app: Any) -> tuple[dict[str, Any], np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """All that the component of all heads gets: layout, relations, cells, and weights and relations of the open head."""
    element = next(
        item for item in app.get("bidi_component") if item.proto.component_name == "bert_internals_all_heads"
    )
    packed = element.proto.bytes
    length = int.from_bytes(packed[:4], "little")
    layout = json.loads(packed[4 : 4 + length])
    size, shown = layout["size"], len(layout["opened"]["tokens"])
    area, count = size * size, layout["blocks"] * layout["heads"] * size * size
    rest = packed[4 + length :]
    assert len(rest) == area + count + 5 * shown * shown
    related, cells = (np.frombuffer(rest[begin : begin + long], np.uint8) for begin, long in ((0, area), (area, count)))
    weights = np.frombuffer(rest[area + count : area + count + 4 * shown * shown], "<f4")
    own = np.frombuffer(rest[area + count + 4 * shown * shown :], np.uint8)
    return (
        layout,
        related.reshape(size, size),
        cells.reshape(layout["blocks"], layout["heads"], size, size),
        weights.reshape(shown, shown),
        own.reshape(shown, shown),
    )


def test_a_kind_of_heads_has_one_colour_in_both_views(open_page: Open) -> None:
    layout, _ = tiles(open_page("attention", v="all-heads"))
    of_heads = sent(open_page("attention", v="model-view"))["colours"]
    for kind, group in layout["groups"].items():
        own = None if kind == "spread" else layout["hues"][group["hue"]]  # in all heads, one that spreads has all hues
        found = {of_heads[at // layout["heads"]][at % layout["heads"]] for at in group["heads"]}
        assert found <= {own or head_choice.KIND_COLOURS["spread"]}, kind
    colours = list(head_choice.KIND_COLOURS.values())
    assert len(set(colours)) == len(head_kinds.KINDS)
    assert set(colours) <= {*theme.PALETTE, theme.GREY}  # which stand out on light and dark
    assert layout["hues"] == [head_choice.KIND_COLOURS[relation] for relation in head_kinds.RELATIONS]


def most_telling(text: str = BANK[0]) -> tuple[int, int, int, int]:
    """Block, head, who looks and at whom: by a loop, minus the habits that are kept for the included model."""
    sentence = backend().tokenize([text])[0]
    pieces = [token.piece for token in sentence.tokens]
    content = [piece not in FUNCTION_WORDS and any(map(str.isalpha, piece)) for piece in pieces]
    habits = np.array(json.loads(HABITS.read_text("utf-8"))) / WHOLE
    found = [
        (float(weights[query, key]) - habits[block, head, key - query + 24], -block, -head, query, key)
        for block, heads in enumerate(attentions(text))
        for head, weights in enumerate(heads)
        for query in range(1, len(pieces) - 1)
        for key in range(1, len(pieces) - 1)
        if abs(query - key) > 1 and content[key] and (content[query] or pieces[query] in PERSONAL)
    ]
    _, block, head, query, key = max(found)
    return -block, -head, query, key


def test_all_views_of_heads_open_with_the_most_telling_head(open_page: Open) -> None:
    block, head, query, key = most_telling()
    assert (block, head) != (0, 2)  # which looks at the token before
    app = open_page("attention")
    assert not app.error
    page = iframe(app)
    assert len(page) < 8 * 2**20
    assert "Attention is not explanation" in texts(app)
    assert (sent(app)["block"], sent(app)["head"]) == (block, head)
    share = f"{100 * attentions()[block, head, query, key]:.0f} %"
    pieces = [token.piece for token in backend().tokenize([BANK[0]])[0].tokens]
    said = (
        f"In block {block}, head {head}, “{pieces[query]}” gives “{pieces[key]}” {share} of its attention; "
        "on average this head gives 5 % to a token 2 places later."
    )
    assert said in texts(app)
    assert "b" not in app.query_params
    assert "h" not in app.query_params
    app = open_page("attention", v="attention-matrix")
    assert figures(app)[0]["layout"]["title"]["text"] == f"Block {block}, head {head}"
    assert said in texts(app)
    app = open_page("attention", v="attention-scores")
    assert f"Scores of “{pieces[query]}” in block {block}, head {head}" in figures(app)[0]["layout"]["title"]["text"]
    app = open_page("attention", v="all-heads")
    layout, _, _, weights, _ = overview(app)
    assert layout["selected"] == [block, head]
    assert layout["opened"]["link"] == [query, key]
    assert layout["opened"]["share"] == share
    assert layout["telling"][0]["at"] == 12 * block + head
    np.testing.assert_array_equal(weights, attentions()[block, head].astype(np.float32))
    assert (
        f"; here “{pieces[query]}” gives “{pieces[key]}” {share}" in layout["opened"]["does"]
    )  # beside the tiles, and
    assert said not in texts(app)  # not above them too, before a head is chosen
    assert "of 72 heads look mostly at \\[CLS\\] or \\[SEP\\]" in texts(app)
    assert "what the head gives on average at that distance" in texts(app)
    assert said in texts(open_page("attention", v="all-heads", b=str(block), h=str(head)))


def test_while_a_lesson_asks_no_chip_gives_the_answer(open_page: Open) -> None:
    app = open_page("attention", v="all-heads", lesson="ten-minutes.3")
    assert app.button(key="lesson_choice_ten-minutes_3_0")
    assert overview(app)[0]["telling"] == []


def test_a_head_that_was_chosen_stays_and_is_said_as_it_is(open_page: Open) -> None:
    app = open_page("attention", v="all-heads", b="0", h="2")
    assert tiles(app)[0]["selected"] == [0, 2]
    assert "Block 0, head 2 looks at the token before with" in texts(app)
    assert "no word looks at another, two or more places away, much more than usual" in texts(app)
    app.segmented_control(key="w_head_order").set_value("block").run()
    assert tiles(app)[0]["order"] == "block"
    assert app.query_params["tiles"] == "block"
    assert (app.query_params["b"], app.query_params["h"]) == ("0", "2")


def test_where_no_head_stands_out_it_is_said(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "DECIDED", 2.0)  # no weight can be so far above another
    block, head, query, key = most_telling()
    pieces = [token.piece for token in backend().tokenize([BANK[0]])[0].tokens]
    app = open_page("attention", v="all-heads")
    said = (
        f"two or more places away, much more than usual; most so block {block}, head {head}: “{pieces[query]}” at "
        f"“{pieces[key]}” with"
    )
    assert f"No head looks from one word at another, {said}" in texts(app)
    assert tiles(app)[0]["opened"]["link"] is None


def test_small_texts_of_another_model_are_answered(open_page: Open, tmp_path: Path) -> None:
    folder = str(save_tiny_masked_lm(tmp_path / "tiny"))
    for text in ("cat", "the", "the cat", "the red cat sat by the bank", "!"):
        for view in ("all-heads", "attention-flow", "mask-token", "attention-matrix"):
            app = open_page("attention", v=view, m=folder, s=[text])
            assert not app.error, (view, text)
            assert not app.exception, (view, text)
    # No habits are known: the comparison is with the words of this text, and the finding says so.
    app = open_page("attention", v="all-heads", m=folder, s=["the red cat sat by the bank"])
    assert "what the head gives on average between such words of this text" in texts(app)
    block, head = overview(app)[0]["selected"]
    app = open_page("attention", v="all-heads", m=folder, s=["the red cat sat by the bank"], b=str(block), h=str(head))
    assert "; between two such words of this text it is " in texts(app)


def test_of_a_long_text_the_open_head_shows_its_strongest_tokens(open_page: Open) -> None:
    text = " ".join(f"{word} {number}" for number, word in enumerate(["bank", "river", "money", "boat"] * 8))
    app = open_page("attention", v="all-heads", s=[text])
    layout, _, _, weights, own = overview(app)
    assert len(layout["opened"]["tokens"]) == 24
    assert f"24 of {layout['size']} tokens are drawn" in layout["opened"]["note"]
    query, key = layout["opened"]["link"]
    assert layout["opened"]["share"] == f"{100 * weights[query, key]:.0f} %"
    assert weights.shape == own.shape == (24, 24)


@pytest.mark.parametrize("view", ["head", "model", "neuron"])
def test_bertviz_views_are_drawn_without_an_address_of_another_host_and_markup_cannot_leave_them(
    open_page: Open, view: str
) -> None:
    page = iframe(open_page("attention", view=view))
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    nasty = iframe(open_page("attention", s=["</script><img src=x onerror=alert(1)> <!-- x"], view=view))
    for sign in ("<img", "</script", "<!--"):
        assert nasty.count(sign) == page.count(sign)


def test_a_pair_starts_with_both_texts(open_page: Open) -> None:
    app = open_page("attention", s=list(PAIR), v="attention-matrix", b="0", h="0")
    tokens = backend().tokenize([PAIR[0]], [PAIR[1]])[0].tokens
    heat = figures(app)[0]["data"][0]
    assert len(heat["y"]) == len(tokens)
    app.segmented_control(key="w_texts_filter").set_value("ab").run()
    heat = figures(app)[0]["data"][0]
    first_of_b = next(token.position for token in tokens if token.in_pair)
    assert_close(heat["z"], attentions(*PAIR)[0, 0, :first_of_b, first_of_b:])


def test_the_matrix_is_transformers_attention(open_page: Open) -> None:
    app = open_page("attention", v="attention-matrix", b="3", h="7")
    figure = figures(app)[0]
    np.testing.assert_array_equal(figure["data"][0]["z"], attentions()[3, 7].astype(np.float32))
    np.testing.assert_allclose(figure["data"][0]["z"].sum(axis=1), 1, atol=1e-5)
    assert figure["layout"]["title"]["text"] == "Block 3, head 7"
    assert "Rows sum to 1" in texts(app)


def test_heads_combined_words_merged_special_tokens_hidden(open_page: Open) -> None:
    text = "An unputdownable book"
    app = open_page("attention", v="attention-matrix", s=[text], agg="mean", bs=["1", "2"], hs=["0", "5"], b="0", h="0")
    expected = attentions(text)[1:3][:, [0, 5]].mean(axis=(0, 1))
    assert_close(figures(app)[0]["data"][0]["z"], expected)
    app.segmented_control(key="w_combination").set_value("max").run()
    expected = attentions(text)[1:3][:, [0, 5]].max(axis=(0, 1))
    assert_close(figures(app)[0]["data"][0]["z"], expected)
    app.segmented_control(key="w_combination").set_value("one").run()
    app.toggle(key="w_merge_words").set_value(True).run()
    sentence = backend().tokenize([text])[0]
    merged = merge_words(attentions(text)[0, 0], sentence).matrix
    assert_close(figures(app)[0]["data"][0]["z"], merged)
    app.segmented_control(key="w_special_tokens").set_value("renormalised").run()
    kept = merged[1:-1, 1:-1]
    assert_close(figures(app)[0]["data"][0]["z"], kept / kept.sum(axis=1, keepdims=True))
    app.segmented_control(key="w_special_tokens").set_value("hidden").run()
    assert_close(figures(app)[0]["data"][0]["z"], kept)
    assert "Rows sum to 0." in texts(app)


def test_chosen_queries_are_summed(open_page: Open) -> None:
    app = open_page("attention", v="attention-matrix", qt=["5", "7"], b="0", h="0")
    assert_close(figures(app)[1]["data"][0]["y"], attentions()[0, 0, [5, 7]].sum(axis=0))


def test_all_heads_travel_as_bytes(open_page: Open) -> None:
    layout, cells = tiles(open_page("attention", v="all-heads"))
    assert (layout["blocks"], layout["heads"], layout["size"]) == (6, 12, 10)
    np.testing.assert_allclose(cells / 255, attentions(), atol=0.002)
    assert len(layout["hints"]) == 72
    assert sorted(at for group in layout["groups"].values() for at in group["heads"]) == list(range(72))
    # What is said of a head is where the attention of the text's own tokens goes, as what stands beside the open head.
    block, head = layout["selected"]
    own = attentions()[block, head, 1:-1]  # [token of the text, key]
    special = f"[CLS] or [SEP] {percent(own[:, [0, -1]].sum(axis=1).mean())}"
    hints = layout["hints"]
    assert hints[12 * block + head].startswith(
        f"Block {block}, head {head} divides the attention of the text's own tokens: "
    )
    assert special in hints[12 * block + head]
    before = np.diagonal(attentions()[:, :, 2:-1, 1:], axis1=2, axis2=3).sum(axis=2) / 8  # query i+2 at key i+1
    block, head = np.unravel_index(before.argmax(), before.shape)
    assert f": token before {percent(before.max())}, " in hints[12 * block + head]
    resting = layout["groups"]["special"]["heads"][0]
    opened, _ = tiles(open_page("attention", v="all-heads", b=str(resting // 12), h=str(resting % 12)))
    share = opened["opened"]["does"].split(": ")[1].split(" of ")[0]
    assert f"[CLS] or [SEP] {share}" in opened["hints"][resting]


def test_a_head_that_looks_at_the_token_before_is_found(open_page: Open) -> None:
    app = open_page("attention", v="head-patterns", p="previous")
    before = np.diagonal(attentions()[:, :, 1:-1], offset=0, axis1=2, axis2=3)  # query i+1 at key i
    block, head = np.unravel_index(before.mean(axis=2).argmax(), (6, 12))
    table = app.dataframe[0].value
    assert table["block, head"][0] == f"{block}, {head}"
    assert f"Block {block}, head {head} gives" in texts(app)
    assert list(table.columns) == ["block, head", "score", "mostly to"]
    assert (
        "Each score is a mean over the words of this text; for the first word, [CLS] is both the token before and the first "
        "token, so that its shares can add up to more than 100 %."
    ) in texts(app).replace("\\", "")


def test_only_special_tokens_are_said_to_be_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    texts_of: dict[str, Any] = {"sentences": ["a b"] * 3, "pattern_over_all": False}
    monkeypatch.setattr(summaries.state, "get", texts_of.get)

    def said(pattern: Any, *special: bool) -> str:
        pieces = ["[CLS]" if is_special else "a" for is_special in special]
        model_input: Any = SimpleNamespace(pair=SimpleNamespace(second=None), special=np.array(special), pieces=pieces)
        return summaries._counted_over(model_input, pattern)

    assert (
        said("previous", False, False)
        == said("itself", True, True)
        == "Each score is a mean over the words of this text."
    )
    assert said("next", False, False, True).endswith("; for the last token of the text, [CLS] is the token after.")
    texts_of["pattern_over_all"] = True
    assert said("previous", True, False, True) == (
        "Each score is a mean over the words of all 3 sentences; for the first word, [CLS] is both the token before and the "
        "first token, so that its shares can add up to more than 100 %."
    )


def test_rollout_and_norms(open_page: Open) -> None:
    app = open_page("attention", v="attention-flow", fb="2", fs="1", ff="all")
    np.testing.assert_allclose(
        figures(app)[0]["data"][0]["z"], 100 * attention_flow.rollout(attentions())[2], rtol=1e-5
    )
    app.segmented_control(key="w_flow").set_value("norms").run()
    record = backend().inside(BANK[0])
    expected = np.linalg.norm(np.einsum("hqk,hkd->qkd", record.attentions[2], record.value_contributions(2)), axis=-1)
    np.testing.assert_allclose(figures(app)[0]["data"][0]["z"], expected, rtol=1e-4, atol=1e-5)


def shares_by_norms(text: str = BANK[0]) -> np.ndarray:
    """[block, query, key], per cent; held to plain torch in tests/components/analysis/attention/test_flow.py."""
    return 100 * attention_flow.norm_flow(attentions(text), backend().inside(text), backend().block_norms())


def test_flow_opens_after_the_last_block_with_the_shares_of_one_token(open_page: Open) -> None:
    app = open_page("attention", v="attention-flow")
    shares = shares_by_norms()[5]
    tokens = backend().tokenize([BANK[0]])[0].tokens
    bank = next(token.position for token in tokens if token.piece == "bank")

    def number(value: float) -> str:
        return f"{value:.0f} %"

    others, itself, medians, written = figures(app)[0]["data"]
    words = range(1, len(tokens) - 1)  # without [CLS] and [SEP]
    np.testing.assert_allclose(others["y"], [shares[bank, key] for key in words if key != bank], rtol=1e-5)
    np.testing.assert_allclose(itself["y"], [shares[bank, bank]], rtol=1e-5)
    assert list(itself["x"]) == [f"{bank} bank"]
    assert written["text"][bank - 1] == number(shares[bank, bank]).removesuffix(" %")
    expected = [np.median([shares[other, key] for other in words if other not in (bank, key)]) for key in words]
    np.testing.assert_allclose(medians["y"], expected, rtol=1e-5)
    assert list(figures(app)[0]["layout"]["xaxis"]["categoryarray"]) == [f"{key} {tokens[key].piece}" for key in words]
    assert figures(app)[0]["layout"]["title"]["text"].startswith("Sources of “bank” after block 5")
    # What the bars say, in a sentence.
    first = max((key for key in words if key != bank), key=lambda key: shares[bank, key])
    said = texts(app).replace("\\", "")
    median = np.median([shares[other, first] for other in words if other not in (bank, first)])
    assert (
        f"**{shares[bank, bank]:.0f} %** of “bank” after block 5 comes from itself; of the others, “{tokens[first].piece}” "
        f"gives it most: {number(shares[bank, first])}, hardly more than it gives to other words (median {number(median)})."
        in said
    )
    assert f"**{shares[bank, [0, -1]].sum():.0f} %** of its vector comes from [CLS] and [SEP], left out" in said
    assert app.query_params["fl"] == "through"
    assert "fb" not in app.query_params
    app.number_input(key="w_flow_block").set_value(0).run()
    np.testing.assert_allclose(figures(app)[0]["data"][1]["y"], [shares_by_norms()[0, bank, bank]], rtol=1e-5)
    assert (app.query_params["fl"], app.query_params["fb"]) == ("through", "0")
    app.segmented_control(key="w_flow").set_value("norms").run()
    assert figures(app)[0]["layout"]["title"]["text"] == "Added to “bank” in block 0"
    assert "adds most to “bank” (a vector of length" in texts(app)


def ribbons(app: Any) -> dict[str, Any]:
    """What the page sent to the picture of the flow."""
    element = next(item for item in app.get("bidi_component") if item.proto.component_name == "bert_internals_ribbons")
    sent: dict[str, Any] = json.loads(element.proto.json)
    return sent


def test_ribbons_are_as_thick_as_the_shares(open_page: Open) -> None:
    app = open_page("attention", v="attention-flow", fs="1", fb="5", fl="through")
    sent, shares = ribbons(app), shares_by_norms()[5]
    np.testing.assert_allclose(np.array(sent["values"]).T, shares / 100, atol=1e-6)  # [taker, origin]
    np.testing.assert_allclose(np.sum(sent["values"], axis=0), 1, atol=1e-5)  # a token takes all from somewhere
    assert [part["text"] for part in sent["first"]] == [part["text"] for part in sent["second"]]
    assert (sent["second"][sent["chosen"]]["text"], sent["parts"]) == ("bank", False)
    app.session_state["flow_picture"] = {"chosen": 99}
    app.run()
    assert not app.exception
    # The lengths of one block are no shares.
    lengths = ribbons(open_page("attention", v="attention-flow", fs="1", fl="norms"))
    inside = backend().inside(BANK[0])
    norms = attention_flow.summed_norms(attentions()[0], inside.value_contributions(0))
    np.testing.assert_allclose(np.array(lengths["values"]).T, norms, rtol=1e-4, atol=1e-6)
    assert lengths["parts"]


def test_of_many_tokens_the_others_share_a_ribbon() -> None:
    values = np.random.default_rng(3).dirichlet(np.ones(40), size=40)  # [query, key]
    everything = list(range(40))
    origins, takers, taken = flow.shown_tokens(values, 7, everything, everything)
    assert taken.shape == (len(origins) + 1, len(takers))
    assert len(origins) == flow.WORDS_OF_MANY
    assert 7 in origins
    assert 7 in takers
    np.testing.assert_allclose(taken.sum(axis=0), 1)
    kept = np.delete(values[7], 7)
    assert sorted(values[7, [key for key in origins if key != 7]]) == pytest.approx(sorted(kept)[-19:])
    few = flow.shown_tokens(values[:5, :5], 2, range(5), range(5))
    np.testing.assert_array_equal(few[2], values[:5, :5].T)
    # Tokens of one text that take from another: the chosen one is always among them.
    origins, takers, taken = flow.shown_tokens(values, 2, range(10), range(10, 40))
    assert takers == list(range(10))
    np.testing.assert_allclose(taken.sum(axis=0), values[:10, 10:].sum(axis=1))
    # One token has one ribbon, from itself.
    np.testing.assert_array_equal(flow.shown_tokens(np.ones((1, 1)), 0, [0], [0])[2], [[1]])


def test_it_does_not_read_like_a_resolved_pronoun_where_others_take_as_much(open_page: Open) -> None:
    text = "The trophy does not fit in the suitcase because it is too big."
    app = open_page("attention", v="attention-flow", s=[text])
    said = texts(app)
    assert "5 %** of “it” after block 5 comes from itself; of the others, “trophy” gives it most: 15 %, hardly " in said
    shares = shares_by_norms(text)[5]
    others = np.delete(shares[1:-1, 2], [1, 9])  # of the words but “it” and “trophy” itself
    than = "more" if shares[10, 2] >= np.median(others) else "less"
    assert f"hardly {than} than it gives to other words (median {np.median(others):.0f} %)." in said


@pytest.mark.parametrize(
    ("share", "usual", "expected"),
    [
        (14.3, 13.1, "hardly more than it gives to other words"),
        (13.1, 14.3, "hardly less than it gives to other words"),
        (20.0, 13.1, "more than it gives to other words"),
        (5.0, 13.1, "less than it gives to other words"),
    ],
)
def test_a_share_stands_beside_what_other_words_get(share: float, usual: float, expected: str) -> None:
    assert flow.beside(share, usual) == expected


def test_an_address_of_before_shows_rollout(open_page: Open) -> None:
    app = open_page("attention", v="attention-flow", ft="5")
    shares = 100 * attention_flow.rollout(attentions())
    np.testing.assert_allclose(figures(app)[0]["data"][1]["y"], [shares[0, 5, 5]], rtol=1e-5)
    assert app.query_params["fl"] == "rollout"
    assert "Abnar and Zuidema 2020" in texts(app)


def test_the_token_of_the_flow_is_a_choice_in_the_address(open_page: Open) -> None:
    app = open_page("attention", v="attention-flow", ft="3")
    shares = 100 * attention_flow.rollout(attentions())[0, 3]
    np.testing.assert_allclose(figures(app)[0]["data"][1]["y"], shares[[3]], rtol=1e-5)
    app.toggle(key="w_flow_special").set_value(True).run()
    others = figures(app)[0]["data"][0]
    np.testing.assert_allclose(others["y"], np.delete(shares, 3), rtol=1e-5)
    assert "left out here" not in texts(app)
    # Of a special token there is a figure only with special tokens; else the first token of the text takes its place.
    app = open_page("attention", v="attention-flow", ft="0")
    assert figures(app)[0]["data"][1]["x"][0] == "1 we"
    # A token that is not in the text any more is not kept.
    app.selectbox(key="w_sentence_a").set_value(1).run()
    assert not app.error
    assert figures(app)[0]["data"][1]["x"][0].endswith(" bank")


def test_flow_of_all_tokens_has_the_colours_of_what_it_draws(open_page: Open) -> None:
    app = open_page("attention", v="attention-flow", ff="all", fb="5")
    # On a light and a dark page.
    assert "The stronger a cell's blue, the more of the row's vector comes from there" in texts(app)
    drawn, whole = figures(app)[0]["data"][0], 100 * attention_flow.rollout(attentions())[5]
    expected = whole[1:-1, 1:-1]  # without [CLS] and [SEP]
    np.testing.assert_allclose(drawn["z"], expected, rtol=1e-5)
    others = expected[~np.eye(len(expected), dtype=bool)]  # a token's own share would leave the rest dark
    assert (drawn["zmin"], drawn["zmax"]) == pytest.approx((others.min(), others.max()), rel=1e-5)
    # What was left out is said, with both methods and their sources.
    share = whole[1:-1, [0, -1]].sum() / whole[1:-1].sum()
    assert f"**{100 * share:.0f} %** of a token's vector comes from \\[CLS\\] and \\[SEP\\]" in texts(app)
    assert "Abnar and Zuidema 2020" in texts(app)
    app.segmented_control(key="w_flow").set_value("norms").run()
    assert "Kobayashi et al. 2020" in texts(app)
    assert "of all the lengths belongs to" in texts(app)
    app.toggle(key="w_flow_special").set_value(True).run()
    assert "left out here" not in texts(app)


def test_a_head_opened_is_shown_alone(open_page: Open) -> None:
    app = open_page("attention", agg="mean", v="head-patterns")
    app.dataframe[0]  # the ranking is there
    from dashboard.views.attention import head_choice

    app.session_state["combination"] = "mean"
    for key, value in (("block", 1), ("head", 8)):
        app.session_state[key] = value
    session: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streamlit.session_state", session)
        head_choice.open_head(1, 8)
    assert session == {"block": 1, "head": 8, "combination": "one", "inside_view": "attention-matrix"}


def test_chosen_queries_hold_when_rows_are_hidden_and_not_for_another_text(open_page: Open) -> None:
    app = open_page("attention", v="attention-matrix", qt="5", b="0", h="0")
    assert app.multiselect(key="w_queries").value == [5]
    app.segmented_control(key="w_special_tokens").set_value("hidden").run()
    assert_close(figures(app)[1]["data"][0]["y"], attentions()[0, 0, 5, 1:-1])
    app.selectbox(key="w_sentence_a").set_value(1).run()
    assert app.multiselect(key="w_queries").value == []


def test_rows_sum_to_one_after_the_filter(open_page: Open) -> None:
    app = open_page("attention", s=list(PAIR), v="attention-matrix", f="ab", spt="renormalised")
    np.testing.assert_allclose(figures(app)[0]["data"][0]["z"].sum(axis=1), 1, atol=1e-5)
    assert "Rows sum to 1" in texts(app)


@pytest.mark.parametrize("special", ["shown", "hidden", "renormalised"])
def test_a_text_without_tokens_is_no_fault(open_page: Open, special: str) -> None:
    app = open_page("attention", s=["\u200b"], v="attention-matrix", spt=special)
    assert not app.error


def test_spread_out_heads_are_said_to_have_entropy_not_shares(open_page: Open) -> None:
    app = open_page("attention", v="head-patterns", p="broad")
    assert "its entropy is" in texts(app)
    assert "of the highest entropy" in app.dataframe[0].value.columns


def test_what_a_link_asks_for_in_vain_is_said_and_forgotten(open_page: Open) -> None:
    app = open_page("attention", v="attention-matrix", b="99", h="99")
    assert "Block 99 is not available here" in texts(app)
    assert "Head 99 is not available here" in texts(app)
    assert "l" not in app.query_params
    assert "h" not in app.query_params


@pytest.mark.rare
def test_every_head_of_a_large_model_fits_at_512_tokens(open_page: Open, tmp_path: Path) -> None:
    folder = str(twelve_by_twelve(tmp_path / "wide"))
    app = open_page("attention", m=folder, s=["cat dog " * 300], v="all-heads")
    assert not app.error
    layout, cells = tiles(app)
    assert (layout["blocks"], layout["heads"]) == (12, 12)
    assert cells.size < 4 * 2**20


def test_kinds_and_looks_of_the_heads_are_computed_once_for_all_clicks(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[str] = []

    def count(module: Any, name: str) -> None:
        compute = getattr(module, name)

        def counted(*given: Any) -> Any:
            computed.append(name)
            return compute(*given)

        monkeypatch.setattr(module, name, counted)

    count(head_kinds, "head_kinds")
    count(telling, "telling_looks")
    app = open_page("attention", v="all-heads", s=["A sentence that is only read where clicks are counted."])
    for block in (1, 2):
        app.session_state["block"] = block
        app.run()
    assert not app.exception
    assert sorted(computed) == ["head_kinds", "telling_looks"]


def test_neighbours_are_said_not_to_count_where_they_do_not() -> None:
    far, near = (telling.HeadLook(0, 0, 1, key, 0.1, 0.1) for key in (3, 2))
    assert findings.away(far) == ", two or more places away,"
    assert findings.away(near) == ""


def test_switching_head_or_block_costs_no_forward_pass(open_page: Open) -> None:
    app = open_page("attention", v="attention-matrix")
    model = backend()
    model.inside(BANK[0], attentions=False)
    before = model.forward_passes
    app.number_input(key="w_head").set_value(4).run()
    app.number_input(key="w_block").set_value(2).run()
    for view in ("head-view", "model-view", "neuron-view", "all-heads", "head-patterns", "attention-flow"):
        choose_view(app, view)
        assert not app.error, view
    assert model.forward_passes == before


def test_other_pages_ask_for_no_attentions(open_page: Open) -> None:
    for page in ("layers", "heatmaps", "tokens", "model"):
        open_page(page, s=["A sentence that only this test uses."])
    kept = [key for key in backend().store._kept if "A sentence that only this test uses." in str(key)]
    assert kept
    assert not any("attentions=True" in str(key) for key in kept)


def test_a_model_without_the_head_shows_what_depends_on_a_token_and_names_other_models(
    open_page: Open, tmp_path: Path
) -> None:
    folder = str(save_tiny(tmp_path / "headless"))
    text = "the cat will bank on red hat"
    app = open_page("attention", m=folder, s=[text], v="mask-token", mp="4")
    model = Backend.load(folder)
    before, after = (model.trace([one]).hidden_states[-1, 0] for one in (text, text.replace("bank", "[MASK]")))
    angles = np.degrees(np.arccos(cosine(before, after)))
    others, hidden = figures(app)[0]["data"]
    np.testing.assert_allclose(np.delete(others["y"], 4), np.delete(angles, 4), atol=0.1)
    np.testing.assert_allclose(hidden["y"][4], angles[4], atol=0.1)
    assert np.isnan(others["y"][4])
    assert np.isnan(np.delete(hidden["y"], 4)).all()
    most = 1 + int(np.argmax(np.delete(angles, 4)[1:-1]))
    piece = model.tokenize([text])[0].tokens[most + (most >= 4)].piece
    assert f"Of the words, “{piece}” depends most on “bank”" in texts(app)
    assert "was published without one" in texts(app)
    app.button(key="see_models").click().run()
    assert app.session_state["laboratory_view"] == "available-models"
    (table,) = (table.value for table in app.table if "licence" in table.value.columns)
    assert "BERT base" in table.to_string()
    assert not figures(app)


@pytest.mark.parametrize("refuses", [pytest.param(False, marks=pytest.mark.rare), True])
def test_the_word_to_mask_is_found_with_few_masked_texts_of_a_long_one(
    open_page: Open, monkeypatch: pytest.MonkeyPatch, refuses: bool
) -> None:
    read, trace = [], backend().trace

    def counted(texts: Any, *more: Any, **named: Any) -> Any:
        if any("[MASK]" in text for text in texts):
            read.append(len(texts))
            if refuses and len(texts) > 1:
                raise InputError("Too much.", "The store is full.", "Shorten it.")
        return trace(texts, *more, **named)

    monkeypatch.setattr(backend(), "trace", counted)
    monkeypatch.setattr(ModelSpec, "can_guess", False)  # with a head the word is not looked for
    app = open_page("attention", v="mask-token", s=["bank river money tree stone water " * 80], len="512")
    assert not app.error
    assert not app.exception
    assert figures(app)
    length = len(figures(app)[0]["data"][0]["y"])
    assert length > 400
    assert max(read) == changes.MASKED_TOKENS // length > 1


def test_an_angle_is_said_in_words(open_page: Open) -> None:
    app = open_page("attention", v="mask-token", mp="5")
    assert "° (0° is no change, 90° nothing in common)" in texts(app)
    lines = figures(app)[0]["layout"]["shapes"]
    assert [line["y0"] for line in lines] == [90]


def test_the_head_view_hides_weak_lines_unless_they_are_wanted(open_page: Open) -> None:
    app = open_page("attention", v="head-view")
    assert '"least":0.15' in app.get("iframe")[0].proto.srcdoc
    app.toggle(key="w_weak_lines").set_value(True).run()
    assert '"least":0.0' in app.get("iframe")[0].proto.srcdoc
    assert '"least":0.0' in open_page("attention", v="model-view").get("iframe")[0].proto.srcdoc


def listed_lines(app: Any) -> list[tuple[str, str, str]]:
    """The strongest lines beside the head view: query, key, share."""
    drawn = "".join(item.proto.body for item in app.get("html") if "Strongest lines" in item.proto.body)
    return re.findall(r"<bdi>(.*?)</bdi> → <bdi>(.*?)</bdi></span>.*?<b>(.*?)</b>", drawn)


def test_the_strongest_lines_are_among_those_that_the_head_view_draws(open_page: Open) -> None:
    app = open_page("attention", v="head-view", b="2", h="5")
    weights = attentions()[2, 5]
    drawn = [
        (query, key)
        for query, row in enumerate(weights)
        for key, share in enumerate(row)
        if share >= 0.15 or share == row.max()
    ]
    pieces = [token.piece for token in backend().tokenize([BANK[0]])[0].tokens]
    expected = sorted(drawn, key=lambda place: -weights[place])[: single_heads.STRONGEST]
    assert listed_lines(app) == [
        (pieces[query], pieces[key], percent(float(weights[query, key]))) for query, key in expected
    ]
    app.toggle(key="w_weak_lines").set_value(True).run()
    assert len(listed_lines(app)) == single_heads.STRONGEST


def test_of_a_diffuse_head_only_drawn_lines_are_named_and_of_no_tokens_none() -> None:
    diffuse = np.full((3, 20), 0.05, np.float32)
    diffuse[:, 4] += (0.01, 0.02, 0.03)
    assert single_heads.strongest_drawn(diffuse, 0.15) == [(2, 4), (1, 4), (0, 4)]
    assert len(single_heads.strongest_drawn(diffuse, 0.0)) == single_heads.STRONGEST
    assert single_heads.strongest_drawn(np.array([[1, 0], [0, 0]], np.float32), 0.0) == [(0, 0)]
    assert single_heads.strongest_drawn(np.zeros((0, 3), np.float32), 0.15) == []


def test_a_mark_is_not_said_to_be_a_word(open_page: Open) -> None:
    alone = texts(open_page("attention", v="mask-token", s=["Hello!"], mp="1")).replace("\\", "")
    assert "Of the tokens, “!” depends most" in alone
    one = texts(open_page("attention", v="mask-token", s=["Hello you!"], mp="1"))
    assert "Of the words, “you” depends most" in one


def test_a_masked_token_is_predicted(open_page: Open, tmp_path: Path) -> None:
    import torch

    folder = str(save_tiny_masked_lm(tmp_path / "mlm"))
    app = open_page("attention", m=folder, s=["the cat sat"], v="mask-token", mp="2", b="0", h="0")
    assert not app.error
    (drawn,) = [item for item in app.get("bidi_component") if item.proto.component_name == "bert_internals_guess"]
    rows = json.loads(drawn.proto.json)["panels"][0]["rows"][:10]
    model = caching.models().find(folder)
    masked = model.trace(["the [MASK] sat"], mask_logits=True)
    probabilities = torch.softmax(torch.tensor(masked.mask_logits.logits[0], dtype=torch.float64), dim=0)
    best = torch.topk(probabilities, 10)
    np.testing.assert_allclose([row["share"] for row in rows], best.values.numpy(), rtol=1e-5)
    assert [row["piece"].replace("…", "##") for row in rows] == [
        model.tokenization.vocabulary[at] for at in best.indices
    ]
    change = figures(app)[1]["data"][0]["z"]
    expected = (
        model.trace(["the [MASK] sat"], attentions=True).attentions[0, 0, 0]
        - model.trace(["the cat sat"], attentions=True).attentions[0, 0, 0]
    )
    np.testing.assert_allclose(change, expected, atol=1e-5)


@pytest.mark.parametrize("view", ["head", "model", "neuron", "matrix", "glance", "patterns", "flow"])
def test_five_hundred_tokens_are_answered(open_page: Open, view: str) -> None:
    app = open_page("attention", s=["bank river money " * 200], view=view)
    assert not app.error
    assert not app.exception
    for element in app.get("iframe"):
        assert len(element.proto.srcdoc) <= 8 * 2**20


def test_the_filter_of_texts_acts_on_all_heads_patterns_and_flow(open_page: Open) -> None:
    tokens = backend().tokenize([PAIR[0]], [PAIR[1]])[0].tokens
    second = next(token.position for token in tokens if token.in_pair)
    values = attentions(*PAIR)
    _, cells = tiles(open_page("attention", s=list(PAIR), v="all-heads", f="ba"))
    expected = np.zeros_like(values)
    expected[:, :, second:, :second] = values[:, :, second:, :second]
    np.testing.assert_allclose(cells / 255, expected, atol=0.002)
    flow = figures(open_page("attention", s=list(PAIR), v="attention-flow", fb="1", f="ab", fs="1", ff="all"))[0][
        "data"
    ][0]
    np.testing.assert_allclose(flow["z"], 100 * attention_flow.rollout(values)[1, :second, second:], rtol=1e-5)
    bars = figures(open_page("attention", s=list(PAIR), v="attention-flow", fb="1", f="ab", fs="1"))[0]["data"]
    assert [bar["name"] for bar in bars if bar["type"] == "bar"] == [
        "other tokens"
    ]  # a token of A is not among those of B
    assert len(bars[0]["y"]) == len(tokens) - second
    app = open_page("attention", s=list(PAIR), v="head-patterns", p="separators", f="ab")
    # The last [SEP] is the only separator of text B; special tokens do not count as queries.
    shares = values[:, :, 1 : second - 1, -1].mean(axis=2)
    block, head = np.unravel_index(shares.argmax(), shares.shape)
    table = app.dataframe[0].value
    assert table["block, head"][0] == f"{block}, {head}"
    assert table["score"][0] == f"{100 * shares.max():.0f} %"


def test_patterns_can_be_judged_by_all_sentences(open_page: Open) -> None:
    app = open_page("attention", v="head-patterns", p="previous", pa="1")
    trace = backend().trace(BANK, attentions=True)
    sums, count = np.zeros((6, 12)), 0
    for row, sentence in enumerate(trace.sentences):
        last = len(sentence) - 1
        sums += sum(trace.attentions[:, row, :, place, place - 1].astype(float) for place in range(1, last))
        count += last - 1
    shares = sums / count
    block, head = np.unravel_index(shares.argmax(), shares.shape)
    table = app.dataframe[0].value
    share = table["score"][0]
    assert (table["block, head"][0], share) == (f"{block}, {head}", f"{100 * shares.max():.0f} %")


def test_norms_of_one_head(open_page: Open) -> None:
    app = open_page("attention", v="attention-flow", fl="norms", fb="2", fh="one", h="4", fs="1", ff="all")
    record = backend().inside(BANK[0])
    expected = record.attentions[2, 4] * np.linalg.norm(record.value_contributions(2)[4], axis=-1)
    np.testing.assert_allclose(figures(app)[0]["data"][0]["z"], expected, rtol=1e-4, atol=1e-5)


def test_block_and_head_are_one_choice_of_all_views(open_page: Open) -> None:
    app = open_page("attention")
    app.number_input(key="w_block").set_value(3).run()
    app.number_input(key="w_head").set_value(7).run()
    assert (app.query_params["b"], app.query_params["h"]) == ("3", "7")
    assert (sent(app)["block"], sent(app)["head"], sent(app)["blocks"]) == (3, 7, [3])
    choose_view(app, "attention-matrix")
    assert figures(app)[0]["layout"]["title"]["text"] == "Block 3, head 7"
    choose_view(app, "all-heads")
    assert tiles(app)[0]["selected"] == [3, 7]
    choose_view(app, "neuron-view")
    assert (sent(app)["block"], sent(app)["head"]) == (3, 7)


def test_show_me_opens_the_best_head_of_a_pattern(open_page: Open) -> None:
    app = open_page("attention", v="attention-matrix", b="0", h="2")
    pills = app.get("button_group")
    assert app.session_state["w_show_me"] == "previous"
    assert "gives 100 % of its attention to the token before" in texts(app)
    next_token = np.diagonal(attentions(), offset=1, axis1=2, axis2=3)[:, :, 1:].mean(axis=2)
    block, head = np.unravel_index(next_token.argmax(), next_token.shape)
    pill = next(item for item in pills if item.key == "w_show_me")
    pill.set_value("next").run()
    assert figures(app)[0]["layout"]["title"]["text"] == f"Block {block}, head {head}"
    assert (app.query_params["b"], app.query_params["h"]) == (str(block), str(head))
    assert app.session_state["w_show_me"] == "next"
    app.number_input(key="w_head").set_value(11 - int(head)).run()
    assert app.session_state["w_show_me"] != "next"


def test_flow_without_special_tokens(open_page: Open) -> None:
    app = open_page("attention", v="attention-flow", fb="2", fs="1", ff="all")
    assert app.query_params["fs"] == "1"
    app.toggle(key="w_flow_special").set_value(False).run()
    expected = 100 * attention_flow.rollout(attentions())[2, 1:-1, 1:-1]
    np.testing.assert_allclose(figures(app)[0]["data"][0]["z"], expected, rtol=1e-5)
    assert "fs" not in app.query_params
    assert figures(app)[0]["data"][0]["y"][0] == "1 we"


def test_long_words_are_truncated_in_messages_and_on_axes(open_page: Open) -> None:
    word = "Donaudampfschifffahrtselektrizitaetenhauptbetriebswerkbauunterbeamtengesellschaft"
    app = open_page("attention", v="attention-matrix", s=[f"the {word} met"], word="1")
    assert word.lower() not in texts(app).lower()
    assert max(map(len, figures(app)[0]["layout"]["xaxis"]["ticktext"])) <= 14


@pytest.mark.parametrize(
    ("totals", "shares", "said"),
    [
        ([1.2, 1.2], [0.1, 0.1], "A attends as much to B as to C (10 %): the score of B is 1.20"),
        ([1.2, 1.18], [0.1, 0.098], "0.02 above that of C (10 %), the attention 1.02 times as large"),
        (
            [2.0, 1.0],
            [0.4, 0.15],
            "A attends most to B (40 %): its score is 2.00, 1.00 above that of C (15 %), the attention 2.7 t",
        ),
        ([900.0, 1.0], [1.0, 0.0], "the attention over 1,000 times as large"),
        ([2.0], [1.0], "A attends most to B (100 %): its score is 2.00"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_the_best_key_is_told_beside_the_next(totals: list[float], shares: list[float], said: str) -> None:
    names = ["B", "C"][: len(totals)]
    assert said in scores.said_of_most("A", names, np.array(shares), np.array(totals), False)
    of_sum = scores.said_of_most("A", names, np.array(shares), np.array(totals), True)
    assert of_sum.endswith(f"{totals[0]:.2f}")  # and behind it what it is the sum of


def test_the_neuron_view_says_what_the_opened_pair_means(open_page: Open) -> None:
    app = open_page("attention", v="neuron-view", b="2", h="3")
    model = backend()
    query, pieces = sent(app)["opened"], [token.piece for token in model.tokenize([BANK[0]])[0].tokens]
    assert pieces[query] == "bank"  # the word of interest, since no word looks at another much more than usual
    weights = model.trace([BANK[0]], attentions=True).attentions[2, 0, 3, query]
    inside = model.inside(BANK[0], None)
    products = inside.keys[2, 3] @ inside.queries[2, 3, query]
    most = int(np.argmax(weights))
    assert most == np.argmax(products)
    said = texts(app).replace("\\", "")
    assert f"“bank” gives most attention to “{pieces[most]}” ({weights[most]:.0%})".replace("%", " %") in said
    assert f", whose product q\u00a0·\u00a0k is the largest of {len(weights)} (" in said
    # In the head that the view opens with, a word looks at another much more than usual: it is that word whose query is open.
    app = open_page("attention", v="neuron-view")
    said = texts(app).replace("\\", "")
    usual = "on average this head gives 5 % to a token 2 places later"
    assert (
        f"“bank” gives “week” 49 % of its attention; {usual}. Of the 10 products q\u00a0·\u00a0k of “bank”, that with"
        in said
    )
    block, head = (int(found) for found in re.findall(r"In block (\d), head (\d+)", said)[0])
    inside = backend().inside(BANK[0])
    largest = float((inside.keys[block, head] @ inside.queries[block, head][5]).max())
    assert f"that with “week” is the largest ({largest:.1f})." in said
    assert pieces[sent(app)["opened"]] == "bank"
    assert sent(app)["step"] == "÷ √32, softmax"


def test_a_product_that_is_not_the_largest_is_said_to_be_none() -> None:
    """Where a model adds terms for the distance to the products, another key can get most attention."""
    assert findings.of_products("we", "a", 0.35, [1.0, 4.0, 3.0, -2.25], 0, False) == (
        "“we” gives most attention to “a” (35 %), whose product q\u00a0·\u00a0k is only the 3rd largest of 4 (1.0)."
    )
    assert findings.of_products("we", "a", 0.35, [1.0, 4.0, 3.0, -2.25], 2, True) == (
        "Of the 4 products q\u00a0·\u00a0k of “we”, that with “a” is only the 2nd largest (3.0)."
    )
    only = findings.of_products("we", "a", 1.0, [0.5], 0, False)
    assert only == "“we” gives most attention to “a” (100 %), its only key."
    assert findings.of_products("we", "a", 1.0, [0.5], 0, True) == "“a” is the only key of “we”."


def test_few_blocks_are_named_in_plain_words() -> None:
    assert single_heads._range("block", range(1)) == "block 0"
    assert single_heads._range("head", range(12)) == "heads 0 to 11"
