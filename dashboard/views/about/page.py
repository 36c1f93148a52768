"""About: what this is, its version and licences, and how to cite. Glossary: the words of the field."""

from __future__ import annotations

from dashboard.declared.view import EVERYWHERE, Declared, View

DECLARED = Declared(
    (
        View(
            key="glossary",
            label="Glossary",
            question="",
            intro="",
            draw="dashboard.views.about.text:glossary",
            settings=EVERYWHERE,
            examples=({"class_code": "7b"},),
            figure="text",
            is_framed=False,
        ),
        View(
            key="about",
            label="About",
            question="",
            intro="",
            draw="dashboard.views.about.text:render",
            settings=EVERYWHERE,
            examples=({"lesson": ("two-banks", 1), "class_code": "7b"},),
            figure="text",
            is_framed=False,
        ),
    )
)
