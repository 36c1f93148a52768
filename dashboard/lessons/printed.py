"""The button that saves a lesson as a page to print."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

import streamlit as st

from components.lessons.handout import handout
from dashboard import ready_made
from dashboard.lessons import steps

if TYPE_CHECKING:
    from components.lessons.lesson import Lesson, Scene

PICTURES = ready_made.LESSONS / "pictures"


def picture_path(scene: Scene) -> Path:
    """Where the picture of a scene is. The name contains a hash of the address, so that no picture shows another one."""
    mark = hashlib.sha256(urlencode(scene.values).encode()).hexdigest()[:10]
    return PICTURES / f"{scene.page}-{mark}.png"


def button(lesson: Lesson, *, key: str) -> None:
    """A button that downloads the page, which is made on the click."""
    address = urlsplit(st.context.url or "")
    root = f"{address.scheme}://{address.netloc}{address.path.rsplit('/', 1)[0]}" if address.netloc else ""
    st.download_button(
        "Handout",
        partial(page, lesson, root),
        file_name=f"lesson-{lesson.key}.html",
        mime="text/html",
        key=key,
        icon=":material/print:",
        type="tertiary",
        on_click="ignore",
        help="The whole lesson as a page to print, with the answers at the end",
    )


def page(lesson: Lesson, root: str) -> bytes:
    """The lesson as one page of HTML, whose links begin with `root`."""
    links, pictures = {}, {}
    for number, step in enumerate(lesson.steps, 1):
        for place, scene in enumerate(step.scenes):
            links[number, place] = root + steps.short_link(lesson, number)
            path = picture_path(scene)
            if path.exists():
                pictures[number, place] = path.read_bytes()
    return handout(lesson, links, pictures).encode()
