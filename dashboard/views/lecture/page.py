"""My lecture: the figures that a star was given, in an order of one's own."""

from __future__ import annotations

from dataclasses import replace

from dashboard.declared.view import EVERYWHERE, Declared, View
from dashboard.settings import MOST_PICTURES, Setting, number, parse_lecture

DECLARED = Declared(
    settings=(
        Setting("lecture", "lecture", (), parse_lecture, list, shared=True),
        # The picture that is shown while a lecture is given, from 0: kept when the colours change, which loads the page again
        replace(number("lecture_place", "slide", None, MOST_PICTURES - 1, words="picture of the lecture"), shared=True),
    ),
    views=(
        View(
            key="lecture",
            label="My lecture",
            question="",
            intro="",
            draw="dashboard.views.lecture.pictures:draw",
            settings=("projector", *EVERYWHERE, "lecture", "lecture_place"),
            examples=({"lecture": ("text?v=pieces#pieces", "meaning?v=two-layers&l=3#map_first"), "lecture_place": 1},),
            asks=("How do I put my pictures in order for a lecture?",),
            figure="text",
            is_framed=False,
        ),
    ),
)
