"""The pages as drawn in a browser."""

from __future__ import annotations

import re
import struct
from urllib.parse import parse_qs, quote, urlparse

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import (
    NewPage,
    Visit,
    downloaded,
    figure,
    settle,
    wait_for_animations,
    wait_for_title,
    wait_until,
)
from tests.support.stage import Stage

BANK = {
    "bank (rob) – bank (river)": [0.966, 0.878, 0.841, 0.834, 0.836, 0.882, 0.773],
    "bank (rob) – bank (money)": [0.988, 0.964, 0.897, 0.883, 0.893, 0.913, 0.856],
    "bank (river) – bank (money)": [0.989, 0.921, 0.849, 0.818, 0.810, 0.835, 0.745],
}


def wait_for_trace(page: Page, name: str) -> None:
    wait_until(
        page,
        "(name) => [...document.querySelectorAll('.js-plotly-plot')].some("
        "(plot) => plot._fullData?.some((trace) => trace.name === name))",
        name,
    )


def has_bank_curves(page: Page) -> None:
    # The band arrives a moment after the curves, when it is measured for the first time; after Back other curves go first.
    for name in ("unrelated tokens", *BANK):
        wait_for_trace(page, name)
    drawn = figure(page)
    assert drawn["lines"] >= 4  # three pairs and the mean of the band
    for name, values in BANK.items():
        assert drawn["traces"][name] == pytest.approx(values, abs=0.002)


@pytest.mark.parametrize("dark", [False, True])
def test_layers_draws_the_bank_curves(look: Stage, dark: bool) -> None:
    page = look.at("/layers", dark=dark)
    has_bank_curves(page)
    background = page.locator(".stApp").evaluate("(app) => getComputedStyle(app).backgroundColor")
    assert (background == "rgb(255, 255, 255)") is not dark


def test_a_card_is_a_door_as_a_whole_and_its_view_begins_at_the_top(use: Stage) -> None:
    page = use.at("/laboratory", phone=True)
    page.locator(".st-key-view_card_neuron-view").get_by_text("How is an attention weight computed?").click(force=True)
    expect(page).to_have_url(re.compile("v=neuron-view"))
    expect(page.locator("h1")).to_contain_text("attention weight")
    assert page.evaluate("document.querySelector('.stMain').scrollTop") == 0


@pytest.mark.core
def test_choosing_a_word_changes_curve_and_address(use: Stage) -> None:
    page = use.at("/layers")
    has_bank_curves(page)
    page.get_by_role("radio", name="money", exact=True).click()
    expect(
        page.locator(".st-key-view_header ~ *, [data-testid=stMarkdown]").get_by_text("“money”").first
    ).to_be_visible()
    wait_until(page, "() => new URLSearchParams(location.search).getAll('t').join() === '5,7,3'")


def test_words_are_chosen_by_keyboard(use: Stage) -> None:
    page = use.at("/layers")
    has_bank_curves(page)
    page.get_by_role("radio", name="river", exact=True).focus()
    page.keyboard.press("Enter")
    wait_until(page, "() => new URLSearchParams(location.search).getAll('t')[1] === '10'")


@pytest.mark.core
def test_a_link_restores_the_view_in_another_browser(use: Stage, visit: Visit) -> None:
    first = use.at("/layers")
    has_bank_curves(first)
    first.get_by_role("radio", name="river", exact=True).click()
    first.get_by_text("Whole sentences", exact=True).click()
    first.get_by_role("radio", name="Max", exact=True).click()
    first.wait_for_url("**v=sentence-curves*pool=max*")
    settle(first)
    second = visit(first.url[first.url.index("/meaning") :])
    wait_for_title(second, "(Max)")
    first.get_by_role("radio", name="One word", exact=True).click()
    first.wait_for_url("**v=one-word*")
    settle(first)
    second.goto(first.url)
    settle(second)
    assert parse_qs(urlparse(second.url).query)["t"] == ["5", "10", "6"]


def test_the_back_button_restores_the_choice_before(use: Stage) -> None:
    page = use.at("/layers")
    has_bank_curves(page)
    page.get_by_role("radio", name="money", exact=True).click()
    page.wait_for_url("**t=5&t=7&t=3*")
    page.get_by_role("radio", name="river", exact=True).click()
    page.wait_for_url("**t=5&t=10&t=3*")
    page.go_back()
    page.wait_for_url("**t=5&t=7&t=3*")
    page.go_back()
    has_bank_curves(page)
    page.go_forward()
    page.wait_for_url("**t=5&t=7&t=3*")


@pytest.mark.core
def test_a_hostile_link_shows_its_text_and_fetches_nothing(look: Stage) -> None:
    page = look.at(
        "/tokens?v=pieces&m=" + quote("![x](http://evil.example/a.png)") + "&n=" + quote("[click](http://evil.example)")
    )
    expect(page.get_by_text(re.compile(r"!\[x\]\(http:\u2060?//evil.example/a.png\)")).first).to_be_visible()
    assert page.locator("a[href*=evil]").count() == 0


@pytest.mark.parametrize("dark", [False, True])
def test_row_numbers_of_the_grids_cover_what_scrolls_under_them(look: Stage, dark: bool) -> None:
    page = look.at("/tokens?v=input-tensors&s=" + quote("one two three four five " * 8), dark=dark)
    # As long as there are columns at the right, their number is seen.
    more, seen = page.locator(".bi-grids .more"), "(element) => +getComputedStyle(element).opacity"
    expect(more).to_have_text("42 columns →")
    assert more.evaluate(seen) > 0.9
    page.locator(".bi-grids").evaluate("(element) => { element.scrollLeft = element.scrollWidth; }")
    wait_until(page, "() => getComputedStyle(document.querySelector('.bi-grids .more')).opacity === '0'")
    cell = page.locator(".bi-grids tbody th[scope=row]").first
    colour = cell.evaluate("(element) => getComputedStyle(element).backgroundColor")
    assert colour == ("rgb(18, 22, 28)" if dark else "rgb(255, 255, 255)")


def test_a_chip_that_is_chosen_stays_marked_when_clicked_again(use: Stage) -> None:
    page = use.at("/layers?v=two-tokens")
    picked = page.locator("button.chip.picked")
    expect(picked).to_have_count(2)
    picked.first.click()
    settle(page)
    expect(picked).to_have_count(2)


@pytest.mark.core
def test_markup_in_sentences_is_inert_on_every_page(look: Stage) -> None:
    nasty = '<img src=x onerror="window.pwned=1"> <script>window.pwned=1</script> **bold** $x$ [a](javascript:1)'
    for path in ("/tokens", "/tokens?v=input-tensors", "/tokens?v=decoding", "/model?v=layer-zero", "/layers"):
        join = "&" if "?" in path else "?"
        page = look.at(f"{path}{join}s={quote(nasty)}&s={quote('the img tag')}")
        expect(page.locator(".st-key-sentence_bar summary")).to_contain_text("<img src=x")
        assert page.evaluate("window.pwned") is None
        assert page.locator(".stMain img[src=x]").count() == 0


@pytest.mark.parametrize(
    ("path", "tab"),
    [
        ("/inside?v=all-heads", "Architecture"),
        ("/train?v=training-objective", "Data"),
        ("/meaning?v=one-word", "What it cannot see"),
        ("/diagnose?v=failed-search", "Compare models and methods"),
        ("/diagnose?v=compare-runs", "Graded relevance"),
    ],
)
def test_a_view_that_names_its_data_opens_by_its_tab(use: Stage, path: str, tab: str) -> None:
    """Drawn without the rest of the page, a view may only write where the page wrote when it was opened."""
    page = use.at(path)
    page.get_by_role("radio", name=tab, exact=True).click()
    expect(page.get_by_role("radio", name=tab, exact=True)).to_be_checked()
    settle(page)
    expect(page.get_by_text("Something went wrong")).to_have_count(0)
    if tab != "Architecture":  # which names sentences
        # A view that uses the session's corpus has its bar there.
        expect(page.locator(".st-key-corpus_line, .st-key-corpus_bar")).not_to_be_empty()


def test_the_vector_and_parameter_bars_are_drawn(use: Stage) -> None:
    page = use.at("/model")
    assert set(figure(page)["types"]) == {"bar"}
    page = use.at("/laboratory?v=output-vectors")
    wait_for_title(page, "384 values")
    slider = page.get_by_role("slider")
    slider.focus()
    slider.press("ArrowLeft")
    wait_for_title(page, "layer 5")
    assert page.locator(".js-plotly-plot .barlayer .point").count() >= 384


@pytest.mark.core
def test_data_is_a_table_and_a_csv(use: Stage) -> None:
    page = use.at("/layers")
    has_bank_curves(page)
    page.get_by_role("button", name="Share").click()
    download = downloaded(page, page.get_by_role("button", name="Download as CSV"))
    page.get_by_role("tab", name="Table").click()
    expect(page.get_by_test_id("stPopoverBody").get_by_test_id("stDataFrame")).to_be_visible()
    page.get_by_role("tab", name="Link").click()
    expect(page.get_by_test_id("stPopoverBody").get_by_role("img", name="A code with the address")).to_be_visible()
    text = download.path().read_text(encoding="utf-8-sig")
    header, first = text.splitlines()[:2]
    assert header.startswith('"pair","layer 0","layer 1"')
    assert first.startswith('"bank (rob) – bank (river)",0.96')


@pytest.mark.core
def test_a_figure_is_taken_home_as_a_slide_and_as_a_page_without_a_network(use: Stage, new_page: NewPage) -> None:
    page = use.at("/layers?v=one-word&s=" + quote("A <script>alert(1)</script> bank.") + "&s=The+bank")
    page.get_by_role("button", name="Share").click()
    slide = downloaded(page, page.get_by_role("button", name="Slide (PNG)"))
    picture = slide.path().read_bytes()
    assert slide.suggested_filename.endswith("-slide.png")
    assert struct.unpack(">II", picture[16:24]) == (1920, 1080)
    saved = downloaded(page, page.get_by_role("button", name="Page (HTML)"))
    home, problems = new_page(), []
    for event in ("dialog", "pageerror", "request"):
        home.on(event, lambda found: problems.append(found))
    home.set_content(saved.path().read_text(encoding="utf-8"))
    expect(home.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    assert problems == []
    assert home.locator("footer").inner_text().startswith("BERT Internals")


# The contrast of an element's text to all that is painted behind it.
CONTRAST = """(element) => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const paint = (colour) => {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
  };
  const luminance = () => {
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const layers = [];
  for (let node = element; node; node = node.parentElement ?? node.getRootNode().host) {
    layers.unshift(getComputedStyle(node).backgroundColor);
  }
  layers.forEach(paint);
  const behind = luminance();
  paint(getComputedStyle(element).color);
  const [light, dark] = [luminance(), behind].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}"""


@pytest.mark.parametrize("dark", [False, True])
def test_a_chosen_chip_can_be_read_under_the_mouse(look: Stage, dark: bool) -> None:
    page = look.at("/tokens", dark=dark)
    chip = page.locator("button.chip.picked").first
    expect(chip.locator("small")).to_have_text("2924")
    assert chip.evaluate(CONTRAST) >= 4.5
    chip.hover()
    wait_for_animations(chip)
    assert chip.evaluate(CONTRAST) >= 4.5


@pytest.mark.parametrize("dark", [False, True])
def test_text_on_the_primary_colour_and_in_it_can_be_read(look: Stage, dark: bool) -> None:
    page = look.at("/tokens?v=pieces&s=", dark=dark)
    text = page.locator(".st-key-start_example button p")
    expect(text).to_be_visible()
    assert text.evaluate(CONTRAST) >= 4.5
    text.hover()
    wait_for_animations(page.locator(".st-key-start_example button"))
    assert text.evaluate(CONTRAST) >= 4.5
    assert page.get_by_role("radio", name="Pieces").first.evaluate(CONTRAST) >= 4.5
