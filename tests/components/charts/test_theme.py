"""The palette can be told from both backgrounds, and labels are text."""

from __future__ import annotations

import itertools
import re
import tomllib

import numpy as np
import plotly.graph_objects as go
import pytest

from components.charts import theme
from tests.support.colours import contrast
from tests.support.places import ROOT

CONFIG = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (-8.5e-06, "−0.0000085"),
        (0.022, "+0.022"),
        (-0.02, "−0.020"),
        (0.0, "0"),
        (1234.5, "+1,234"),
        (9.96e-3, "+0.0100"),
    ],
)
def test_small_numbers_are_written_without_an_exponent(value: float, written: str) -> None:
    assert theme.significant(value) == written


def test_the_hover_writes_a_minus_sign_as_in_print() -> None:
    """Plotly writes a hyphen by a format in the template, and a minus sign by the same format of the axis."""
    template = "%{x:.4f} and %{customdata[0]:.2f}: %{y}<extra></extra>"
    figure = theme.finish(go.Figure(go.Bar(x=[-1.0], y=["a"], hovertemplate=template)), "Title", 300)
    assert figure.data[0].hovertemplate == "%{x} and %{customdata[0]:.2f}: %{y}<extra></extra>"
    assert figure.data[0].xhoverformat == ".4f"
    assert figure.data[0].yhoverformat is None


@pytest.mark.parametrize("colour", [*theme.PALETTE, theme.GREY])
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_every_hue_stands_out_on_both_backgrounds(colour: str, mode: str) -> None:
    assert contrast(colour, CONFIG["theme"][mode]["backgroundColor"]) >= 3


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_and_buttons_are_readable(mode: str) -> None:
    colours = {**CONFIG["theme"], **CONFIG["theme"][mode]}
    assert contrast(colours["textColor"], colours["backgroundColor"]) >= 7
    assert contrast(colours["textColor"], colours["secondaryBackgroundColor"]) >= 7
    # The primary colour as text, and the background's colour as text on it (a chosen chip, a primary button).
    assert contrast(colours["backgroundColor"], colours["primaryColor"]) >= 4.5
    assert contrast(colours["secondaryBackgroundColor"], colours["primaryColor"]) >= 4.5


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_intervals_on_bars_stand_out_on_both_backgrounds(mode: str) -> None:
    assert contrast(theme.whiskers(mode == "dark"), CONFIG["theme"][mode]["backgroundColor"]) >= 7


def test_diverging_scales_have_blue_at_the_side_that_adds() -> None:
    for blue_adds, side in ((True, -1), (False, 0)):
        light, dark = theme.diverging(blue_adds), theme.diverging(blue_adds, dark=True)
        assert light[side][1] == dark[side][1] == theme.BLUE
        assert contrast(light[1][1], "#FFFFFF") < 2 < 7 < contrast(dark[1][1], "#FFFFFF")  # near the page's colour


def test_twenty_eight_curves_all_look_different() -> None:
    looks = {(style["color"], style["dash"]) for style in map(theme.line_style, range(28))}
    assert len(looks) == 28


def test_curves_of_similar_hues_differ_in_dash_or_marker() -> None:
    """For readers who cannot tell these pairs of hues apart."""
    similar = [
        {theme.ORANGE, theme.VERMILION},
        {theme.ORANGE, theme.OLIVE},
        {theme.VERMILION, theme.OLIVE},
        {theme.BLUE, theme.PURPLE},
        {theme.BLUE, theme.SKY},
        {theme.PURPLE, theme.SKY},
    ]
    looks = [(theme.line_style(index), theme.marker_style(index)["symbol"]) for index in range(28)]
    for (first, first_symbol), (second, second_symbol) in itertools.combinations(looks, 2):
        if {first["color"], second["color"]} in similar:
            assert (first["dash"], first_symbol) != (second["dash"], second_symbol)


def test_labels_show_markup_as_typed_and_are_cut() -> None:
    assert theme.plain("<b>a & b</b>") == "&lt;b&gt;a &amp; b&lt;/b&gt;"
    assert theme.plain("x" * 100, 10) == "x" * 9 + "…"


def test_the_lines_of_a_title_are_of_about_the_same_length() -> None:
    lines = theme.wrapped("Strongest inner dimensions of “cat”, block 0").split("<br>")
    assert " ".join(lines) == "Strongest inner dimensions of “cat”, block 0"
    assert len(lines) == 2
    assert min(map(len, lines)) > 15
    assert theme.wrapped("Short") == "Short"
    assert theme.wrapped("Model's own", 8) == "Model's<br>own"


def test_long_titles_wrap_and_get_room() -> None:
    short = theme.finish(go.Figure(), "Short", 300)
    long = theme.finish(go.Figure(), "word " * 20, 300)
    assert long.layout.title.text.count("<br>") == 2
    assert long.layout.margin.t > short.layout.margin.t


def test_a_projector_gets_larger_type() -> None:
    assert theme.enlarge(theme.finish(go.Figure(), "t", 300), 1.5).layout.font.size == 1.5 * theme.FONT_SIZE


def test_hues_that_look_alike_to_the_colour_blind_differ_in_dash():
    styles = {style["color"]: style["dash"] for style in map(theme.line_style, range(7))}
    for first, second in (
        (theme.ORANGE, theme.VERMILION),
        (theme.ORANGE, theme.OLIVE),
        (theme.VERMILION, theme.OLIVE),
        (theme.BLUE, theme.PURPLE),
        (theme.BLUE, theme.SKY),
    ):
        assert styles[first] != styles[second]
    assert [theme.line_style(index)["dash"] for index in range(3)] == ["solid"] * 3


def test_the_chips_of_a_pair_have_the_colours_of_the_figures():
    style = (ROOT / "assets" / "web" / "chips.css").read_text(encoding="utf-8")
    tints = dict(re.findall(r"\.tint(\w) { --tint: (#\w+);", style))
    assert (tints["0"], tints["1"]) == (theme.TEXT_COLOURS["query"], theme.TEXT_COLOURS["document"])


def test_numbers_are_written_as_in_print() -> None:
    assert [theme.signed(value) for value in (0.0241, -0.035, 0.0001, -0.0001)] == [
        "+0.024",
        "−0.035",
        "0.000",
        "0.000",
    ]
    assert [theme.number(value, 2) for value in (0.25, -1.5)] == ["0.25", "−1.50"]


def test_legend_and_colour_bar_grow_with_the_other_type() -> None:
    figure = go.Figure(theme.heatmap(np.eye(2), ["a", "b"], ["a", "b"], "cosine", None))
    assert theme.finish(figure, "t", 300).data[0].colorbar.title.font.size == theme.FONT_SIZE
    enlarged = theme.enlarge(figure, 1.5)
    assert enlarged.layout.legend.font.size == 1.5 * theme.FONT_SIZE
    assert enlarged.data[0].colorbar.title.font.size == 1.5 * theme.FONT_SIZE
