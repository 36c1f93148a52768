"""My lecture: the figures that a star was given, in an order of one's own."""

from __future__ import annotations

import re

from dashboard.declared.view import EVERYWHERE, Declared, View
from dashboard.settings import Setting

MOST_PICTURES = 40
# A page, the values of its address, and the key of a figure.
_STAR = re.compile(r"[a-z]{1,20}\?[^#\s]{0,8000}#[^#\s]{1,200}")


def parse_lecture(values: list[str]) -> tuple[str, ...]:
    """The pictures of a lecture, each as `dashboard.sharing.lecture.star_of` writes it. Raises ValueError."""
    if len(values) > MOST_PICTURES:
        raise ValueError(f"there are more than {MOST_PICTURES} pictures")
    if not all(map(_STAR.fullmatch, values)):
        raise ValueError("it names no figure of a view")
    return tuple(dict.fromkeys(values))


DECLARED = Declared(
    settings=(Setting("lecture", "lecture", (), parse_lecture, list),),
    views=(
        View(
            key="lecture",
            label="My lecture",
            question="",
            intro="",
            draw="dashboard.views.lecture.pictures:draw",
            settings=("projector", *EVERYWHERE, "lecture"),
            examples=({"lecture": ("text?v=pieces#pieces", "meaning?v=two-layers&l=3#map_first")},),
            asks=("How do I put my pictures in order for a lecture?",),
            figure="text",
            is_framed=False,
        ),
    ),
)
