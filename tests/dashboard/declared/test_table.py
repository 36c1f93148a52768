"""What follows from the declarations: a view that is added to them is everywhere, and a part that is forgotten is named."""

from __future__ import annotations

import inspect
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name

import pytest

from dashboard import settings
from dashboard.declared import document, table
from dashboard.declared.view import Declared
from dashboard.views import __main__ as listing
from tests.support.places import ROOT


def test_the_document_says_what_is_declared() -> None:
    assert document.PATH.read_text(encoding="utf-8") == document.written(), "run: python -m dashboard.declared.document"


def test_every_view_has_a_picture() -> None:
    pictures = {path.stem for path in document.PICTURES.glob("*.jpg")}
    assert pictures == table.VIEWS.keys(), "run: python -m tests.browser.screenshots KEY of the view"


@pytest.mark.parametrize("key", table.VIEWS)
def test_what_a_view_names_is_there(key: str) -> None:
    view = table.VIEWS[key]
    for name in filter(None, (view.draw, view.inside, view.foot, view.intro_by())):
        assert callable(resolve_name(name)), name
    count = len(inspect.signature(resolve_name(view.draw)).parameters)
    assert count == 0 if not view.is_framed else count == (2 if key in with_input() else 1)


def with_input() -> set[str]:
    """The views whose drawing gets the input of attention and its row of controls."""
    return {key for key, view in table.VIEWS.items() if view.inside.endswith((":with_input", ":with_words"))}


def test_declarations_are_read_without_what_draws() -> None:
    code = (
        "import sys, dashboard.declared.table;"
        "print(sorted(name for name in sys.modules if name.startswith('dashboard.') and name.split('.')[1] in"
        " ('ui', 'jobs', 'corpora', 'navigation', 'state') or name == 'torch'"
        " or name.startswith('dashboard.views.') and not name.endswith('.page') and name.count('.') > 2))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_doors_stand_above_the_other_pages() -> None:
    doors = [page.is_door for page in table.PAGES]
    assert doors == sorted(doors, reverse=True)
    assert doors.count(True) == 8


def test_a_view_without_an_example_or_with_one_that_its_address_loses_cannot_be_declared() -> None:
    view = table.VIEWS["one-word"]
    with pytest.raises(ValueError, match="no example state"):
        replace(view, examples=())
    with pytest.raises(ValueError, match=r"does not hold its example's \['query'\]"):
        replace(view, examples=({"query": "x"},))


def test_a_part_that_was_forgotten_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    new = replace(table.VIEWS["one-word"], key="new-view")
    monkeypatch.setattr(table, "_DECLARED", (*table._DECLARED, Declared((new,))))
    with pytest.raises(ValueError, match=r"without a line in PLACES.*new-view"):
        table._checked_views()
    monkeypatch.setattr(table, "PLACES", (*table.PLACES, ("nowhere", "", "new-view")))
    with pytest.raises(ValueError, match=r"views on no page.*nowhere"):
        table._checked_views()
    monkeypatch.setattr(table, "PLACES", (*table.PLACES[:-1], ("text", "", "new-view"), ("inside", "", "new-view")))
    with pytest.raises(ValueError, match="placed twice"):
        table._checked_views()


@pytest.mark.parametrize(
    ("names", "own", "words"),
    [
        (("no_such_setting",), (), "no SETTINGS declares"),
        ((), (settings.flag("unused_setting", "uu", False),), "no view has in its"),
        (("one", "two"), (settings.flag("one", "x", False), settings.flag("two", "x", False)), r"key \['x'\]"),
        (("one",), (settings.flag("one", "m2", False),), r"key \['m2'\]"),
        (("one",), (settings.flag("one", "pool", False),), "means pooling in all views"),
    ],
)
def test_settings_that_do_not_fit_are_named(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], own: tuple[settings.Setting, ...], words: str
) -> None:
    old = table.VIEWS["one-word"]
    new = replace(old, key="new-view", settings=(*old.settings, *names))
    monkeypatch.setattr(table, "VIEWS", {**table.VIEWS, "new-view": new})
    monkeypatch.setattr(table, "SETTINGS", (*table.SETTINGS, *own))
    monkeypatch.setattr(table, "SETTING", {**table.SETTING, **{item.name: item for item in own}})
    with pytest.raises(ValueError, match=words):
        table._checked_names()


def test_the_list_of_views_has_a_line_for_each() -> None:
    lines = list(listing.rows())
    assert len(lines) == len(table.VIEWS) + 1
    assert lines[1].split()[:3] == ["home", "Start", "home"]


NEW_VIEW = """    View(
        key="new-view",
        label="New",
        question="What is new?",
        intro="A view that a test declares.",
        draw="dashboard.views.layers.new:draw",
        settings=(*OF_PAIRS, "new_setting"),
        examples=({"sentences": RIVER, "new_setting": True},),
        figure="table",
    ),
"""
NEW_MODULE = """import streamlit as st

from dashboard import state


def draw(backend):
    st.table({"value": [str(backend.facts.layers), str(state.get("new_setting"))]})
"""
SEEN = """
import json, os, sys
from dashboard import pair_links
from dashboard.declared import document, table
from dashboard.views.__main__ import rows
from tests.dashboard.page_states import STATES
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash
from tests.support.pages import APP
from tests.browser.test_first_screen import ADDRESSES

app = AppTest.from_file(APP, default_timeout=600)  # it imports torch and loads the model
app.query_params.update(v="new-view", nw="1")
app._page_hash = calc_hash("meaning")
app.run()
json.dump(
    {
        "places": table.place_of("new-view"),
        "settings": [setting.short for setting in table.settings_in("new-view")],
        "choice": list(app.segmented_control(key="w_meaning_view").options),
        "title": app.title[0].value,
        "table": app.table[0].value["value"].tolist(),
        "address": dict(app.query_params),
        "document": "### New: What is new?" in document.written(),
        "list": any(" new-view " in row for row in rows()),
        "restored": STATES["new-view"]["new_setting"],
        "first screen": ADDRESSES["/meaning?v=new-view"][0],
        "pairs": pair_links._VIEWS["Words and sentences by layer"],
    },
    sys.stdout,
)
sys.stdout.flush()
os._exit(0)  # work in the background is of no interest
"""


@pytest.mark.rare
def test_a_view_that_is_added_to_the_declarations_is_everywhere(tmp_path: Path) -> None:
    """One declaration, what draws it, and a line in the table of places: nothing else is edited."""
    for folder in ("dashboard", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("components", "assets", "docs"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    declared = tmp_path / "dashboard" / "views" / "layers" / "page.py"
    text = declared.read_text(encoding="utf-8")
    text = text.replace("VIEWS = (\n", f"VIEWS = (\n{NEW_VIEW}").replace("OF_SENTENCES,", "OF_PAIRS, OF_SENTENCES,", 1)
    text = text.replace("SETTINGS = (\n", 'SETTINGS = (\n    flag("new_setting", "nw", False),\n')
    declared.write_text(text, encoding="utf-8")
    (declared.parent / "new.py").write_text(NEW_MODULE, encoding="utf-8")
    places = tmp_path / "dashboard" / "declared" / "table.py"
    line = '    ("meaning", "Words and sentences by layer", "sentence-pairs"),\n'
    text = places.read_text(encoding="utf-8")
    assert text.count(line) == 1
    places.write_text(
        text.replace(line, f'{line}    ("meaning", "Words and sentences by layer", "new-view"),\n'), encoding="utf-8"
    )
    done = subprocess.run([sys.executable, "-c", SEEN], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    assert json.loads(done.stdout) == {
        "places": "meaning",
        "settings": ["m", "s", "len", "proj", "lesson", "class", "sa", "sb", "nw"],
        "choice": ["One word", "One against all", "Whole sentences", "Pairs of sentences", "New"],
        "title": "What is new?",
        "table": ["6", "True"],
        "address": {"v": "new-view", "nw": "1"},
        "document": True,
        "list": True,
        "restored": True,
        "first screen": "new-view",
        "pairs": ["new-view"],
    }
