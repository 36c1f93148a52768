"""The style sheet of the dashboard."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dashboard.views.attention.single_heads import STRONG
from tests.support.places import ROOT

# These stand in a style sheet of narrow windows alone.
ON_PHONES = {
    '.st-key-figure_controls:has(.st-key-stepped_flow_block) > [data-testid="stLayoutWrapper"]:has(.stPopover)',
    '.st-key-figure_controls:has([class*="st-key-stepped_"]) > [data-testid="stElementContainer"]'
    ':has([class*="st-key-w_pooling"])',
    '.st-key-figure_controls:has([class*="st-key-stepped_"]) [class*="st-key-w_pooling"] [data-testid="stWidgetLabel"]',
}


def selectors(sheet: str) -> Iterator[str]:
    """The selectors of a style sheet, each by itself."""
    for head in re.findall(r"([^{};]+)\{", re.sub(r"/\*.*?\*/", "", sheet, flags=re.S)):
        if not head.strip().startswith("@"):
            yield from split(head, ",")


def split(text: str, at: str) -> list[str]:
    """The parts of a selector between some characters, except in brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if depth == 0 and character in at:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def without_conditions(element: str) -> str:
    """One element of a selector without its :has(…), :not(…) and :first-child and the like."""
    nested = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
    return re.sub(rf":(?:has|not|first|last|only|nth)[\w-]*(?:{nested})?", "", element)


def restyles_everything(selector: str) -> bool:
    """Whether a condition on what an element has decides how nearly any element within or after it looks."""
    *before, subject = split(selector, " >+~")
    conditions = [element for element in before if ":has(" in element]
    if not conditions:
        return False
    if any(element.startswith(("body", "html")) for element in conditions):
        return True  # each change anywhere asks again what the page has
    kinds = re.findall(r"^[a-z]\w*|\.[\w-]+|\[data-testid|\[role|\[class|^:is\(", without_conditions(subject))
    return kinds[:1] in ([], ["[class"], [":is("], ["[data-testid"], ["[role"])


def test_what_changes_within_a_figure_does_not_restyle_the_whole_page() -> None:
    """Chromium keeps one list, for all rules together, of what may look otherwise once something :has something else.

    One rule of the kind `.a:has(.b) > *`, `.a:has(.b) > [class*=c]`, `.a:has(.b) > [data-testid=c]` or `body:has(.a) .b` makes
    that list hold every element, and each measurement of a text by plotly then styles the whole page again: 8 ms instead of
    1.5, dozens of times for a figure. And where the whole page is asked what it has, Chromium looks through all of it each
    time: rules for a page that has something are drawn with that (lesson.css).
    (`python -m pytest tests/benchmarks -m benchmark -k interactions` shows it.)
    """
    for name in ("style.css", "projector.css", "lesson.css"):
        sheet = (ROOT / "assets" / "web" / name).read_text(encoding="utf-8")
        found = [selector for selector in selectors(sheet) if restyles_everything(selector)]
        assert set(found) <= ON_PHONES, name
        assert [selector for selector in selectors(sheet) if re.search(r"\.stMain\w*:has\(", selector)] == [], name


def test_only_a_heads_matrix_says_that_its_strong_cells_have_numbers() -> None:
    sheet = (ROOT / "assets" / "web" / "style.css").read_text(encoding="utf-8")
    said = re.findall(r"([^{}]+){ content: \"Numbers stand in cells of ([\d.]+) or more", sheet)
    assert [(selector.strip(), float(least)) for selector, least in said] == [
        (".st-key-wide_cells:has(.st-key-head_matrix .heatmap-label)::after", STRONG)
    ]
