"""My lecture: the figures that a star was given, in an order of one's own."""

from __future__ import annotations

from dashboard.declared.view import EVERYWHERE, Declared, View
from dashboard.settings import Setting, parse_lecture

DECLARED = Declared(
    settings=(Setting("lecture", "lecture", (), parse_lecture, list, shared=True),),
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
