"""Markdown as HTML: our own marks become HTML, and what a person typed stays text."""

from __future__ import annotations

import html
import re

import pytest

from components.markup import to_html, to_text
from dashboard.ui.messages import escape

HOSTILE = "<img src=x onerror=alert(1)> **bold** *it* [a](https://evil.example) :red[x] :material/home: `c` $x$ \\ & \"q\" 'q'"


def test_paragraphs_lists_and_marks() -> None:
    assert to_html("One **bold** and *italic* `a*b*c`.\nSame paragraph.\n\nTwo") == (
        "<p>One <strong>bold</strong> and <em>italic</em> <code>a*b*c</code>. Same paragraph.</p><p>Two</p>"
    )
    assert to_html("Before\n- one\n- two\n  goes on") == "<p>Before</p><ul><li>one</li><li>two goes on</li></ul>"
    assert to_html("") == ""


def test_icons_are_left_out_and_coloured_text_stays() -> None:
    assert to_html(":material/insights: Accepts :orange[**2 of 3**]") == "<p>Accepts <strong>2 of 3</strong></p>"


def test_only_links_of_the_web_become_links() -> None:
    assert to_html("([Ethayarajh 2019](https://a.example/x?a=1&b=2))") == (
        '<p>(<a href="https://a.example/x?a=1&amp;b=2">Ethayarajh 2019</a>)</p>'
    )
    assert "<a" not in to_html("[x](javascript:alert(1)) [y](/pages) [z](http://a.example)")


@pytest.mark.parametrize("around", ["{}", "**{}**", "“{}”: 0.5", "- {}"])
def test_an_escaped_text_reads_as_it_was_typed(around: str) -> None:
    made = to_html(around.format(escape(HOSTILE)))
    text = html.unescape(re.sub(r"</?(p|strong|ul|li)>", "", made))
    assert text == around.format(HOSTILE).replace("**" if around.startswith("**") else "\0", "").removeprefix("- ") or (
        around.startswith("**") and HOSTILE in text
    )
    assert set(re.findall(r"<(\w+)", made)) <= {"p", "strong", "ul", "li"}


def test_a_text_that_nobody_escaped_is_no_html_either() -> None:
    assert "<img" not in to_html(HOSTILE)
    assert "<script" not in to_html("`<script>alert(1)</script>` **<script>**")


@pytest.mark.parametrize("beginning", [":red[", ":material/", "[a](https://", "[", "**", "`", "*a", "\\", ":a"])
def test_many_beginnings_without_an_end_are_read_once(beginning: str) -> None:
    text = beginning * 40_000  # looked through from each of them it would take minutes
    assert to_html(text).startswith("<p>")


def test_as_text_no_space_comes_before_a_sign_that_follows_bold_type() -> None:
    assert (
        to_text("They **come apart**: at *layer* **4**, `x`.\n\n- one\n- two")
        == "They come apart: at layer 4, x. one two"
    )


def test_a_number_and_its_percent_sign_stay_in_one_line() -> None:
    assert to_html("**71 %** of it, *6 %*, **1** % and less than 1 %.") == (
        "<p><strong>71\u00a0%</strong> of it, <em>6\u00a0%</em>, <strong>1</strong>\u00a0% and less than 1\u00a0%.</p>"
    )
    assert to_text("**71 %** of it") == "71 % of it"
    assert to_html("a % b") == "<p>a % b</p>"
