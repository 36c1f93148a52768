"""bertviz's pages as drawn in a browser: what is drawn are the weights, and it answers hand and keyboard."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import FrameLocator, Locator, Page, expect

from components.charts.bertviz.views import attention_page, frame_height
from tests.support import tiny
from tests.support.browser import wait_until_still
from tests.support.closeness import assert_close
from tests.support.stage import Stage

STEP = 1 / 510 + 1e-6  # half a step of a byte
NASTY = [
    "[CLS]",
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "<!--",
    "<b>bold</b>",
    "&amp;",
    "[SEP]",
]
# As the data of each line of the head view: [head, query, key, weight, opacity].
LINES = """() => JSON.stringify([...document.querySelectorAll('#attention line')].map((line) => [
    +line.parentNode.parentNode.getAttribute('head-index'), +line.getAttribute('left-token-index'),
    +line.getAttribute('right-token-index'), line.__data__, +line.getAttribute('stroke-opacity')]))"""

Draw = Callable[..., Page]


head_view, model_view = partial(attention_page, "head"), partial(attention_page, "model")


def neuron_view(
    attentions: np.ndarray, queries: np.ndarray, keys: np.ndarray, tokens: list[str], **options: Any
) -> str:
    return attention_page("neuron", attentions, tokens, queries=queries, keys=keys, **options)


@pytest.fixture
def draw(look: Stage) -> Draw:
    """Draws a document, in the place of the one before."""

    def drawn(document: str, dark: bool = False, width: int = 1040, height: int = 800) -> Page:
        page = look.sheet(width, height, dark)
        page.set_content(document)
        return page

    return drawn


@pytest.fixture(scope="module")
def pair(embedded: Any) -> dict[str, Any]:
    """A pair of sentences through the embedded model: tokens, where B starts, attentions of 6 x 12 heads."""
    trace = embedded.trace(["We will rob a bank."], pairs=["They sat by the river bank."], attentions=True)
    tokens = trace.sentences[0].tokens
    return {
        "attentions": trace.attentions[:, 0],
        "tokens": [token.piece for token in tokens],
        "second_start": next(token.position for token in tokens if token.in_pair),
    }


def vectors(weights: np.ndarray, dim: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=2, size=(*weights.shape[:3], dim)).astype(np.float32)


def drawn_weights(page: Page, shape: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Weights and opacities [head, query, key] of the head view's lines; 0 where there is no line."""
    weights, opacities = np.zeros(shape), np.zeros(shape)
    for head, query, key, weight, opacity in json.loads(page.evaluate(LINES)):
        weights[int(head), int(query), int(key)] = weight
        opacities[int(head), int(query), int(key)] = opacity
    return weights, opacities


def tokens_of(page: Page | FrameLocator, side: str) -> Locator:
    return page.locator(f"#{side} > g:nth-child(2) > g")


@pytest.mark.core
def test_head_view_draws_every_weight_of_a_block(draw: Draw, pair: dict[str, Any]) -> None:
    page = draw(head_view(**pair, block=2))
    for side in ("left", "right"):
        assert tokens_of(page, side).locator("text").all_text_contents() == pair["tokens"]
    weights, opacities = drawn_weights(page, pair["attentions"].shape[1:])
    assert np.abs(weights - pair["attentions"][2]).max() <= STEP
    np.testing.assert_allclose(opacities, weights / 12)
    assert page.locator("#attention line").count() == np.count_nonzero(np.rint(pair["attentions"][2] * 255))
    hues = page.get_by_role("checkbox").evaluate_all("(all) => all.map((each) => each.getAttribute('fill'))")
    assert len(hues) == 12 == len(set(hues))  # a hue for each head
    assert page.locator("#note").text_content() == ""  # no line that could be seen is left out


def test_the_line_that_the_page_speaks_of_is_drawn_at_full_strength_while_its_head_is_on(
    draw: Draw, pair: dict[str, Any]
) -> None:
    page = draw(head_view(**pair, block=2, head=1, least=0.15, told=(3, 1)))
    told = page.locator("#attention .told")
    expect(told).to_have_count(1)
    opacity = "(line) => getComputedStyle(line).strokeOpacity"
    assert told.evaluate(opacity) == "1"
    assert told.evaluate("(line) => line.__data__") == pytest.approx(pair["attentions"][2, 1, 3, 1], abs=STEP)
    # The other lines of a head alone are as strong as their weight beside the largest.
    lines = page.locator('#attention .tokenAttention line:not(.told):not([stroke-opacity="0"])')
    drawn = lines.evaluate_all("(all) => all.map((one) => [+getComputedStyle(one).strokeOpacity, one.__data__])")
    most = pair["attentions"][2, 1].max()
    np.testing.assert_allclose([shown for shown, _ in drawn], [weight / most for _, weight in drawn], atol=0.01)
    assert page.locator(".squares").text_content() == "heads: press to add"
    page.get_by_role("checkbox", name="Head 1", exact=True).dblclick()
    page.get_by_role("checkbox", name="Head 4", exact=True).dblclick()  # alone
    assert told.evaluate(opacity) == "0"


def test_weak_lines_are_hidden_and_counted_until_a_token_is_pointed_at(draw: Draw, pair: dict[str, Any]) -> None:
    page = draw(head_view(**pair, block=2, head=1, least=0.15))
    _, opacities = drawn_weights(page, pair["attentions"].shape[1:])
    # Every line is there, and those of the one head that is switched on are seen if they are strong.
    levels = np.rint(pair["attentions"][2, 1] * 255) / 255
    strong = (levels >= 0.15) | ((levels == levels.max(axis=1, keepdims=True)) & (levels > 0))
    shown = (
        "(all) => all.filter((line) => getComputedStyle(line).display !== 'none' "
        "&& +line.getAttribute('stroke-opacity')).length"
    )
    assert np.count_nonzero(opacities) == np.count_nonzero(levels)
    lines = page.locator("#attention line")
    assert lines.evaluate_all(shown) == np.count_nonzero(strong) < np.count_nonzero(levels)
    said = f"{np.count_nonzero(strong)} of {np.count_nonzero(levels)} lines are drawn: those of 15 % or more and "
    assert page.locator("#note").text_content() == f"{said}each token's strongest."
    # Of two heads, both are counted.
    page.get_by_role("checkbox", name="Head 4", exact=True).click()
    levels = np.rint(pair["attentions"][2, [1, 4]] * 255) / 255
    strong = (levels >= 0.15) | ((levels == levels.max(axis=2, keepdims=True)) & (levels > 0))
    expect(page.locator("#note")).to_contain_text(f"{np.count_nonzero(strong)} of {np.count_nonzero(levels)} lines")
    tokens_of(page, "left").nth(3).hover()
    seen = page.locator("#attention line[visibility=visible]")
    assert seen.evaluate_all(shown) == np.count_nonzero(levels[:, 3])


def test_a_filter_draws_the_lines_between_its_texts(draw: Draw, pair: dict[str, Any]) -> None:
    weights, first = pair["attentions"], pair["second_start"]
    parts = {"a": slice(0, first), "b": slice(first, None)}
    for name in ("aa", "ab", "ba", "bb"):
        page = draw(head_view(**pair, block=5, filter=name))
        wanted = weights[5][:, parts[name[0]], parts[name[1]]]
        drawn, _ = drawn_weights(page, wanted.shape)
        assert np.abs(drawn - wanted).max() <= STEP
        assert tokens_of(page, "left").count() == wanted.shape[1]
        assert tokens_of(page, "right").locator("text").all_text_contents() == pair["tokens"][parts[name[1]]]


@pytest.mark.parametrize("by_keyboard", [False, True])
def test_a_token_shows_its_own_lines_only(draw: Draw, pair: dict[str, Any], by_keyboard: bool) -> None:
    page = draw(head_view(**pair, block=1))
    token = tokens_of(page, "left").nth(3)
    if by_keyboard:
        tokens_of(page, "left").first.focus()
        for _ in range(3):
            page.keyboard.press("ArrowDown")
    else:
        token.hover()
    expect(page.locator("#attention")).to_have_attribute("visibility", "hidden")
    seen = page.locator("#attention line[visibility=visible]")
    assert set(seen.evaluate_all("(all) => all.map((line) => line.getAttribute('left-token-index'))")) == {"3"}
    # Coloured boxes over the other side: head by key, as opaque as the weight.
    boxes = page.evaluate(
        "[...document.querySelectorAll('#right .attentionBoxes g')].map((head) => "
        "[...head.querySelectorAll('rect')].map((box) => +box.style.opacity))"
    )
    assert np.abs(np.array(boxes) - pair["attentions"][1][:, 3]).max() <= STEP
    if by_keyboard:
        token.evaluate("(item) => item.blur()")
    else:
        page.mouse.move(700, 500)
    expect(page.locator("#attention")).to_have_attribute("visibility", "visible")


@pytest.mark.core
def test_a_square_switches_its_head(draw: Draw, pair: dict[str, Any]) -> None:
    page, shape = draw(head_view(**pair)), pair["attentions"].shape[1:]
    square = page.get_by_role("checkbox", name="Head 3", exact=True)
    expect(page.get_by_role("checkbox", checked=True)).to_have_count(12)
    square.click()
    expect(square).not_to_be_checked()
    weights, opacities = drawn_weights(page, shape)
    on = [head for head in range(12) if head != 3]
    assert not opacities[3].any()
    np.testing.assert_allclose(opacities[on], weights[on] / 11)
    square.press("Enter")
    expect(square).to_be_checked()
    square.dblclick()
    expect(page.get_by_role("checkbox", checked=True)).to_have_count(1)
    weights, opacities = drawn_weights(page, shape)
    np.testing.assert_allclose(opacities[3], weights[3])


def test_numbers_and_colours_stay_with_blocks_and_heads(draw: Draw, pair: dict[str, Any]) -> None:
    colours = "(squares) => squares.map((square) => square.getAttribute('fill'))"
    whole = draw(head_view(**pair)).get_by_role("checkbox").evaluate_all(colours)
    page = draw(head_view(**pair, blocks=[4, 5], heads=[2, 7, 11], block=5, head=7))
    squares = page.get_by_role("checkbox")
    assert squares.evaluate_all("(all) => all.map((one) => one.ariaLabel)") == ["Head 2", "Head 7", "Head 11"]
    assert page.locator(".number").all_text_contents() == ["2", "7", "11"]
    expect(page.get_by_role("checkbox", checked=True)).to_have_accessible_name("Head 7")
    squares.first.click()
    squares.last.click()
    assert squares.evaluate_all(colours) == [whole[2], whole[7], whole[11]]
    weights, _ = drawn_weights(page, (3, *pair["attentions"].shape[2:]))
    assert np.abs(weights - pair["attentions"][5, [2, 7, 11]]).max() <= STEP


@pytest.mark.core
def test_model_view_draws_all_heads_and_opens_one(draw: Draw, pair: dict[str, Any]) -> None:
    page = draw(model_view(**pair), height=1500)
    expect(page.locator(".attn_background")).to_have_count(72)
    expect(page.locator("canvas")).to_have_count(72)
    # Each cell holds ink of its own: no two pictures are the same, none is empty.
    pictures = page.locator("canvas").evaluate_all("(all) => all.map((one) => one.toDataURL())")
    assert len(set(pictures)) == 72
    cell = page.get_by_role("button", name="Block 2, head 3", exact=True)
    cell.click()
    heading = page.locator("text.detail")
    expect(heading).to_have_text("Block 2, Head 3")
    assert page.locator("g.detail text.token").all_text_contents() == pair["tokens"] * 2
    lines = page.evaluate(
        "[...document.querySelectorAll('.attn-line-group line')].map((line) => "
        "[+line.parentNode.getAttribute('source-index'), +line.getAttribute('y2'), line.__data__])"
    )
    wanted = np.rint(pair["attentions"][2, 3] * 255) / 255
    assert len(lines) == np.count_nonzero(wanted)
    assert sum(weight for _, _, weight in lines) == pytest.approx(wanted.sum())
    cell.click()
    expect(heading).to_have_count(0)


def test_model_view_has_the_colours_of_its_heads(draw: Draw, pair: dict[str, Any]) -> None:
    colours = [[f"#{block}{block}{head:02}00" for head in range(12)] for block in range(6)]
    page = draw(model_view(**pair, blocks=[1, 4], heads=[0, 5, 9], colours=colours), height=1500)
    expect(page.locator("canvas")).to_have_count(6)
    page.get_by_role("button", name="Block 4, head 5", exact=True).click()
    lines = page.locator(".detail .attn-line-group line, rect.detail")
    expect(lines.first).to_be_attached()
    expect(lines.first).to_have_attribute("stroke", "#440500")
    assert set(lines.evaluate_all("(all) => all.map((line) => line.getAttribute('stroke'))")) == {"#440500"}
    assert page.locator(".attn_background").last.get_attribute("stroke") == "#440900"


def test_model_view_is_worked_by_keyboard(draw: Draw, pair: dict[str, Any]) -> None:
    page = draw(model_view(**pair, blocks=[1, 4], heads=[0, 5, 9]), height=1500)
    for key in ("Tab", "ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("text.detail")).to_have_text("Block 4, Head 5")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator("text.detail")).to_have_text("Block 4, Head 0")


def test_a_cell_of_the_model_view_shows_its_weights(draw: Draw) -> None:
    """One head that looks at itself, one at the next token: the ink lies where bertviz would draw."""
    same, following = np.eye(8), np.roll(np.eye(8), 1, axis=1)
    page = draw(model_view(np.stack([same, following])[None], [str(place) for place in range(8)]))
    expect(page.locator("canvas")).to_have_count(2)
    ink = page.locator("canvas").evaluate_all(
        """(all) => all.map((canvas) => {
            const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            return Array.from({length: canvas.height}, (_, y) => {  // dark pixels of a row
                let count = 0;
                for (let x = 0; x < canvas.width; x++) count += pixels[4 * (y * canvas.width + x)] < 128;
                return count / canvas.width;
            });
        })"""
    )
    rows = np.array(ink[0])
    high = rows.reshape(-1).max()
    assert high > 0.9  # a straight line from side to side
    assert np.count_nonzero(np.diff((rows > 0.5).astype(int)) == 1) == 8
    assert max(ink[1]) < 0.5  # slanted, so no row is full


def test_only_cells_in_sight_are_drawn(draw: Draw, pair: dict[str, Any]) -> None:
    page = draw(model_view(**pair), height=300)
    # Not wait_for_function: the page's policy forbids the evaluation that it polls with.
    expect(page.locator("canvas").nth(23)).to_be_attached()
    drawn = page.locator("canvas").count()
    assert drawn < 72
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    cell = page.locator(":has(> .attn_background)")
    expect(cell.last.locator("canvas")).to_have_count(1)
    expect(cell.first.locator("canvas")).to_have_count(0)


@pytest.fixture(scope="module")
def tiny_head() -> dict[str, Any]:
    """A tiny seeded BERT's attentions, and the queries and keys of its own Linear layers."""
    model, tokenizer = tiny.tiny_model("bert")
    model.set_attn_implementation("eager")
    inputs = tokenizer("the cat sat by the river bank .", return_tensors="pt")
    with torch.inference_mode():
        outputs = model(**inputs, output_attentions=True, output_hidden_states=True)
        parts: dict[str, list[np.ndarray]] = {"query": [], "key": []}
        for block, layer in enumerate(model.encoder.layer):
            for name, rows in parts.items():
                flat = getattr(layer.attention.self, name)(outputs.hidden_states[block])[0]
                rows.append(flat.view(len(flat), 4, 8).transpose(0, 1).numpy())
    return {
        "attentions": torch.stack(outputs.attentions)[:, 0].numpy(),
        "queries": np.stack(parts["query"]),
        "keys": np.stack(parts["key"]),
        "tokens": tokenizer.convert_ids_to_tokens(inputs["input_ids"][0]),
    }


@pytest.mark.core
def test_neuron_view_opens_a_token_and_its_product_gives_its_attention(draw: Draw, tiny_head: dict[str, Any]) -> None:
    page = draw(neuron_view(**tiny_head, block=1, head=2, opened=2, step="softmax"))
    expanded, token = page.locator("#expanded"), page.locator("#collapsed #leftText > g").nth(3)
    expect(expanded).to_have_attribute("visibility", "visible")
    assert page.locator("#expanded .step").text_content() == "softmax →"
    products = tiny_head["queries"][1, 2, 2] @ tiny_head["keys"][1, 2].T
    written = page.locator("#expanded #rightText .score").all_text_contents()
    np.testing.assert_allclose([float(text.replace("−", "-")) for text in written], products, atol=0.05 + 1e-6)
    minus = page.locator("#expanded .minus-sign").nth(2)
    expect(minus).not_to_be_visible()
    shares = page.locator("#expanded #rightText .share")
    assert shares.all_text_contents() == [f"{100 * float(weight):.0f} %" for weight in tiny_head["attentions"][1, 2, 2]]
    groups = page.locator("#expanded .qk-line-group").evaluate_all("(all) => all.map((one) => +one.style.opacity)")
    assert np.flatnonzero(groups).tolist() == [2]
    first = page.locator("#expanded #leftText > g").nth(2)
    first.hover()
    expect(minus).to_be_visible()
    first.locator("rect").last.click()  # the minus sign
    expect(expanded).to_have_attribute("visibility", "hidden")
    token.hover()
    token.locator("rect").last.click()  # the plus sign
    expect(expanded).to_have_attribute("visibility", "visible")
    page.mouse.move(700, 790)
    page.locator("#expanded #leftText > g").nth(3).hover()
    shown = page.locator("#expanded .qk-line-group").nth(3)
    assert shown.evaluate("(group) => group.style.opacity") == "1"
    opacities = shown.locator("path").evaluate_all("(all) => all.map((one) => +one.getAttribute('stroke-opacity'))")
    weights = tiny_head["attentions"][1, 2, 3]
    wanted = np.tanh(1.8 * np.rint(weights * 255) / 255)
    assert shares.all_text_contents() == [f"{100 * float(weight):.0f} %" for weight in weights]
    np.testing.assert_allclose(opacities, wanted[wanted > 0], atol=1e-6)
    # bertviz multiplies the query and the keys that were sent, and divides by the root of their length: the
    # softmax of that must be the attention that the model gave.
    values = "(all) => all.map((one) => +one.getAttribute('data-value'))"
    scores = np.array(page.locator("#expanded .dotproduct").evaluate_all(values))
    softmax = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    np.testing.assert_allclose(softmax, weights, atol=0.02)
    product = page.locator("#expanded #product .element").evaluate_all(values)
    exact = tiny_head["queries"][1, 2, 3] * tiny_head["keys"][1, 2]
    np.testing.assert_allclose(np.reshape(product, exact.shape), exact, atol=0.02 * np.abs(exact).max())


def test_neuron_view_draws_the_chosen_head_and_is_worked_by_keyboard(draw: Draw, pair: dict[str, Any]) -> None:
    queries, keys = vectors(pair["attentions"]), vectors(pair["attentions"], seed=1)
    page = draw(neuron_view(queries=queries, keys=keys, **pair, blocks=[2, 5], heads=[1, 8], block=5, head=8))
    lines = page.locator("#collapsed line").evaluate_all("(all) => all.map((line) => line.__data__)")
    assert sum(lines) == pytest.approx((np.rint(pair["attentions"][5, 8] * 255) / 255).sum())
    page.locator("#expanded #leftText > g").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#expanded")).to_have_attribute("visibility", "hidden")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#expanded")).to_have_attribute("visibility", "visible")
    focused = page.evaluate("[document.activeElement.ariaLabel, document.activeElement.closest('#expanded') !== null]")
    assert focused == [f"token 1: {pair['tokens'][1]}", True]
    shown = page.locator("#expanded #queries .element").evaluate_all("(all) => all.map((one) => one.__data__)")
    bound = np.abs(queries[5, 8]).max() / 254 + 1e-6
    np.testing.assert_allclose(np.reshape(shown, queries[5, 8].shape), queries[5, 8], atol=bound)


@pytest.mark.parametrize(("name", "is_left_first"), [("ab", True), pytest.param("ba", False, marks=pytest.mark.core)])
def test_neuron_view_between_two_texts_has_the_vectors_of_each(
    draw: Draw, pair: dict[str, Any], name: str, is_left_first: bool
) -> None:
    queries, keys, start = vectors(pair["attentions"]), vectors(pair["attentions"], seed=1), pair["second_start"]
    first, second = slice(0, start), slice(start, None)
    left, right = (first, second) if is_left_first else (second, first)
    page = draw(neuron_view(queries=queries, keys=keys, **pair, blocks=[5], heads=[8], block=5, head=8, filter=name))
    for part, wanted in (("queries", queries[5, 8][left]), ("keys", keys[5, 8][right])):
        shown = page.locator(f"#expanded #{part} .element").evaluate_all("(all) => all.map((one) => one.__data__)")
        assert_close(np.reshape(shown, wanted.shape), wanted, tolerance=1 / 254)
    shares = page.locator("#expanded #rightText .share").all_text_contents()
    assert shares == [f"{100 * float(weight):.0f} %" for weight in pair["attentions"][5, 8][left][1][right]]


def lit(page: Page) -> list[int]:
    """The tokens whose query is shown with all keys."""
    groups = page.locator("#expanded .qk-line-group").evaluate_all("(all) => all.map((one) => +one.style.opacity)")
    return np.flatnonzero(groups).tolist()


@pytest.mark.parametrize("count", [4, 18])
def test_neuron_view_shows_the_whole_computation_on_a_phone(draw: Draw, count: int) -> None:
    weights = np.full((1, 1, count, count), 1 / count, np.float32)
    tokens = ["[CLS]", "unaffordableness", *["word"] * (count - 3), "[SEP]"]
    page = draw(neuron_view(weights, vectors(weights, 32), vectors(weights, 32, 1), tokens), width=374, height=100)
    assert page.evaluate("document.documentElement.scrollWidth") <= 374
    assert page.locator("#note").text_content() == ""
    spans = page.evaluate(
        """() => ['#leftText .token', '#keys', '#product', '#dotproducts', '.score', '#rightText .token'].map((part) => {
            const boxes = [...document.querySelectorAll(`#expanded ${part}`)].map((item) => item.getBoundingClientRect());
            return [Math.min(...boxes.map((box) => box.left)), Math.max(...boxes.map((box) => box.right))];
        })"""
    )
    assert spans[0][0] >= 0
    assert spans[-1][1] <= 374
    assert all(before[1] <= after[0] + 1 for before, after in pairwise(spans)), spans
    assert min(right - left for left, right in spans[1:3]) >= 60  # the vectors
    headings = page.locator("#heading > text:not(#placeholder)").evaluate_all(
        "(all) => all.map((one) => [one.getBoundingClientRect().left, one.getBoundingClientRect().right])"
    )
    assert all(before[1] <= after[0] for before, after in pairwise(headings)), headings
    assert headings[-1][1] <= 374
    size = page.locator("#expanded .token").first.evaluate("(one) => one.getBoundingClientRect().height")
    assert size >= 12
    assert page.evaluate("document.documentElement.scrollHeight") <= frame_height("neuron", count, zoom=0.99)
    assert lit(page) == [1]
    # Of the queries the one on display stands above the keys, in their column.
    shown = page.locator("#queries .vector").filter(visible=True)
    for token in (1, 2):
        page.locator("#expanded #leftText > g").nth(token).hover()
        expect(shown).to_have_count(1)
        expect(shown).to_have_attribute("data-index", str(token))
        query, keys = shown.bounding_box(), page.locator("#expanded #keys").bounding_box()
        assert query is not None
        assert keys is not None
        assert query["y"] + query["height"] <= keys["y"]
        assert abs(query["x"] - keys["x"]) < 2


def test_in_the_neuron_view_the_focused_token_wins_over_a_mouse_that_rests(draw: Draw, pair: dict[str, Any]) -> None:
    queries, keys = vectors(pair["attentions"]), vectors(pair["attentions"], seed=1)
    page = draw(neuron_view(queries=queries, keys=keys, **pair, blocks=[0], heads=[0]))
    tokens = page.locator("#expanded #leftText > g")
    tokens.nth(6).hover()
    assert lit(page) == [6]
    tokens.first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert lit(page) == [2]
    page.keyboard.press("Enter")  # closes the vectors: other tokens now lie under the mouse
    expect(page.locator("#expanded")).to_have_attribute("visibility", "hidden")
    wait_until_still(page, "#vis svg *")
    page.keyboard.press("Enter")
    expect(page.locator("#expanded")).to_have_attribute("visibility", "visible")
    wait_until_still(page, "#vis svg *")
    assert lit(page) == [2]
    box = tokens.nth(6).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 30, box["y"] + box["height"] / 2)
    page.mouse.move(box["x"] + 34, box["y"] + box["height"] / 2)
    assert lit(page) == [6]


def test_the_neuron_view_keeps_the_last_token_and_says_how_to_open_it_again(draw: Draw, pair: dict[str, Any]) -> None:
    queries, keys = vectors(pair["attentions"]), vectors(pair["attentions"], seed=1)
    page = draw(neuron_view(queries=queries, keys=keys, **pair, blocks=[0], heads=[0]))
    token, hint = page.locator("#expanded #leftText > g").nth(4), page.locator("#collapsed .hint").first
    token.hover()
    page.mouse.move(700, 300)  # to look at the product
    assert lit(page) == [4]
    assert page.locator("#product").evaluate("(one) => one.style.opacity") == "1"
    expect(hint).not_to_be_visible()
    token.hover()
    token.locator("rect").last.click()  # the minus sign
    expect(hint).to_be_visible()
    expect(hint).to_have_text("Point at a token and click +")


@pytest.mark.parametrize("view", [pytest.param("head", marks=pytest.mark.core), "model", "neuron"])
def test_markup_in_tokens_is_text(draw: Draw, view: str) -> None:
    n = len(NASTY)
    weights = np.full((1, 2, n, n), 1 / n, np.float32)
    if view == "neuron":
        page = draw(neuron_view(weights, vectors(weights), vectors(weights), NASTY, second_start=4))
    else:
        page = draw({"head": head_view, "model": model_view}[view](weights, NASTY, second_start=4))
    if view == "model":
        page.get_by_role("button", name="Block 0, head 1").click()
    assert page.evaluate("window.pwned") is None
    assert page.locator("img, b").count() == 0
    # Long ones are cut for the eye; the whole text is in their title, which shows on hover.
    texts = page.locator("text").evaluate_all(
        "(all) => all.map((one) => (one.querySelector('title') ?? one).textContent)"
    )
    assert set(NASTY) <= set(texts)


def test_very_many_lines_are_thinned_and_the_page_says_so(draw: Draw) -> None:
    weights = np.full((1, 12, 90, 90), 1 / 90, np.float32)  # all alike: the hardest to choose from
    weights[0, :, :, 7] = 0.5
    page = draw(head_view(weights, ["a"] * 90))
    drawn, _ = drawn_weights(page, (12, 90, 90))
    lines = np.count_nonzero(drawn)
    expect(page.locator("#note")).to_have_text(f"The {lines:,} strongest of 97,200 lines are drawn.")
    assert 20_000 < lines <= 40_000
    assert (drawn[:, :, 7] > 0.49).all()  # the strong ones all
    rest = np.count_nonzero(np.delete(drawn, 7, axis=2), axis=(1, 2))
    assert rest.min() > 0.8 * rest.max()  # the haze is thinned evenly
    page.mouse.move(60, 300)  # the boxes on hover still show every weight
    boxes = page.locator("#right .attentionBoxes rect").evaluate_all("(all) => all.map((box) => +box.style.opacity)")
    assert min(boxes) > 0


def test_pictures_are_thinned_too_and_an_opened_cell_says_so(draw: Draw) -> None:
    page = draw(model_view(np.full((1, 1, 160, 160), 1 / 160, np.float32), ["a"] * 160, second_start=20))
    expect(page.locator("#note")).to_have_text("Of each cell, the 20,000 strongest lines are drawn.")
    page.get_by_role("button", name="Block 0, head 0").click()
    lines = page.locator(".attn-line-group line").count()
    expect(page.locator("#note")).to_contain_text(f"drawn. The {lines:,} strongest of 25,600 lines are drawn.")


def test_a_picture_whose_lines_all_fit_says_nothing(draw: Draw) -> None:
    weights = np.full((1, 1, 160, 160), 1 / 160, np.float32)
    page = draw(model_view(weights, ["a"] * 160, second_start=20, filter="aa"))
    expect(page.locator("canvas")).to_have_count(1)
    expect(page.locator("#note")).to_be_empty()


@pytest.mark.parametrize("view", ["head", "model", "neuron"])
@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read_on_light_and_dark(draw: Draw, pair: dict[str, Any], view: str, dark: bool) -> None:
    weights = pair["attentions"]
    if view == "neuron":
        page = draw(neuron_view(queries=vectors(weights), keys=vectors(weights), **pair, dark=dark), dark)
        page.mouse.move(1030, 790)  # "No token selected" comes
    else:
        page = draw({"head": head_view, "model": model_view}[view](**pair, dark=dark), dark)
    if view == "model":
        page.get_by_role("button", name="Block 0, head 1").first.click()
    colours = page.evaluate(
        """() => {
            const seen = (text) => !text.classList.contains('number') && text.textContent;
            const texts = [...document.querySelectorAll('svg text')].filter(seen);
            return {
                page: getComputedStyle(document.body).backgroundColor,
                main: getComputedStyle(document.getElementById('bertviz')).backgroundColor,
                texts: texts.map((text) => getComputedStyle(text).fill),
            };
        }"""
    )
    assert colours["page"] == ("rgb(18, 22, 28)" if dark else "rgb(255, 255, 255)")
    assert colours["main"] == "rgba(0, 0, 0, 0)"
    assert len(colours["texts"]) > 20
    for colour in set(colours["texts"]):
        assert contrast(colour, colours["page"]) >= 4.5


def contrast(one: str, other: str) -> float:
    """WCAG's contrast ratio of two CSS colours rgb(...)."""

    def luminance(colour: str) -> float:
        parts = np.array([int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("view", ["head", "model", "neuron"])
def test_the_height_is_known_and_long_tokens_are_not_clipped(draw: Draw, view: str) -> None:
    tokens = ["[CLS]", "Donaudampfschifffahrtsgesellschaft", "W" * 30, "unaffordableness", "iiiiiiiiii", "[SEP]"] * 3
    weights = np.full((3, 12, 18, 18), 1 / 18, np.float32)
    if view == "neuron":
        page = draw(neuron_view(weights, vectors(weights), vectors(weights), tokens, second_start=6), height=200)
    else:
        page = draw({"head": head_view, "model": model_view}[view](weights, tokens, second_start=6), height=200)
    real = page.evaluate("document.documentElement.scrollHeight")
    assert 0 <= frame_height(view, 18, 3, 12) - real <= 40  # type: ignore[arg-type]
    if view == "model":
        page.get_by_role("button", name="Block 1, head 11").click()
    boxes = page.locator("text").evaluate_all(
        "(all) => all.map((one) => [one.getBoundingClientRect().left, one.getComputedTextLength()])"
    )
    assert min(left for left, _ in boxes) >= 0
    widest = {"head": 110, "model": 80, "neuron": 120}[view]
    tokens_only = page.locator("text.token, #left text, #right text")
    assert max(tokens_only.evaluate_all("(all) => all.map((one) => one.getComputedTextLength())")) <= widest


@pytest.mark.parametrize("view", ["head", "model", "neuron"])
def test_a_view_fits_the_column_of_a_page(draw: Draw, pair: dict[str, Any], view: str) -> None:
    weights = pair["attentions"]
    if view == "neuron":
        page = draw(neuron_view(queries=vectors(weights), keys=vectors(weights), **pair), width=700)
    else:
        page = draw({"head": head_view, "model": model_view}[view](**pair), width=700)
    if view == "model":
        page.get_by_role("button", name="Block 5, head 11").click()
    right = page.locator("svg rect, svg text").evaluate_all(
        "(all) => Math.max(...all.map((one) => one.getBoundingClientRect().right))"
    )
    assert 300 < right <= 700
    assert page.evaluate("document.documentElement.scrollWidth") <= 700


@pytest.mark.core
def test_it_works_inside_a_sandboxed_frame_without_a_network(draw: Draw, pair: dict[str, Any]) -> None:
    """As st.iframe shows it: the document in srcdoc, a sandbox, and below the fold at first."""
    sandbox = "allow-forms allow-modals allow-popups allow-same-origin allow-scripts allow-downloads"
    frames = "".join(
        f'<iframe id="{name}" sandbox="{sandbox}" width="1040" height="500" srcdoc="{html.escape(document)}"></iframe>'
        for name, document in (("head", head_view(**pair)), ("model", model_view(**pair, dark=True)))
    )
    page = draw(f"<!DOCTYPE html><title>frames</title><p style='height: 900px'>above</p>{frames}")
    head, model = page.frame_locator("#head"), page.frame_locator("#model")
    tokens_of(head, "left").nth(2).hover()
    expect(head.locator("#attention")).to_have_attribute("visibility", "hidden")
    model.get_by_role("button", name="Block 0, head 2", exact=True).click()
    expect(model.locator("text.detail")).to_have_text("Block 0, Head 2")
    expect(model.locator("canvas").first).to_be_visible()


def test_model_view_names_each_block_above_its_rows_of_heads_on_a_phone(draw: Draw) -> None:
    page = draw(model_view(np.full((2, 12, 4, 4), 0.25, np.float32), ["[CLS]", "a", "word", "[SEP]"]), width=374)
    texts = page.locator("#vis svg > text").evaluate_all(
        "(all) => all.map((one) => [one.textContent, one.getBoundingClientRect()])"
        ".map(([text, box]) => [text, box.top, box.bottom, box.left])"
    )
    named = [(top, bottom) for text, top, bottom, _ in texts if text.startswith("block ")]
    assert [text for text, *_ in texts if text.startswith("block ")] == ["block 0", "block 1"]
    numbers = [(top, bottom) for text, top, bottom, _ in texts if text.isdigit()]
    assert len(numbers) == 24
    assert all(one[1] <= other[0] + 1 or other[1] <= one[0] + 1 for one in named for other in numbers)
    assert min(left for *_, left in texts) >= 0


@pytest.mark.parametrize("width", [374, 1200])
def test_model_view_names_the_first_and_the_last_token_at_one_heads_lines(draw: Draw, width: int) -> None:
    tokens = ["[CLS]", *["a"] * 6, "[SEP]"]
    page = draw(model_view(np.full((2, 12, 8, 8), 0.125, np.float32), tokens), width=width)
    ends = page.locator(".ends text")
    assert ends.all_text_contents() == ["[CLS]", "[SEP]"]
    tile = page.get_by_role("button", name=f"Block 0, head {5 if width < 640 else 11}", exact=True).bounding_box()
    first, last = ends.first.bounding_box(), ends.last.bounding_box()
    assert tile is not None
    assert first is not None
    assert last is not None
    assert tile["y"] - 1 <= first["y"] < first["y"] + first["height"] <= last["y"] + 1
    assert last["y"] + last["height"] <= tile["y"] + tile["height"] + 1
    assert tile["x"] + tile["width"] - 8 <= first["x"] < first["x"] + first["width"] <= width
