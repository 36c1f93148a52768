"""The catalogue of models: what it says of each, and that it opens on every page and chooses a model."""

from __future__ import annotations

import pytest

from components.model.catalog import CATALOG, EMBEDDED_CROSS_ENCODER_KEY, EMBEDDED_KEY, catalog_spec
from dashboard.ui.models import catalogue
from tests.support.pages import Open


def test_what_a_model_can_do() -> None:
    can = {spec.key: catalogue.abilities(spec) for spec in CATALOG}
    assert can[EMBEDDED_KEY] == {"layers", "search", "guess"}
    assert can[EMBEDDED_CROSS_ENCODER_KEY] == {"layers", "pairs"}
    assert can["google-bert/bert-base-uncased"] == {"layers", "guess"}
    assert all(can.values())
    assert all("layers" not in can[spec.key] for spec in CATALOG if spec.group in ("static", "decoder"))


def test_where_its_files_are(monkeypatch: pytest.MonkeyPatch) -> None:
    bert = catalog_spec("google-bert/bert-base-uncased")
    assert bert is not None
    assert catalogue.where(bert, frozenset()) == "download"
    monkeypatch.setattr(catalogue.hub, "cached_folder", lambda key: key)
    assert catalogue.where(bert, frozenset({bert.key})) == "cached"


@pytest.mark.parametrize("page", ["home", "glossary", "search"])
def test_it_opens_on_every_page(open_page: Open, page: str) -> None:
    app = open_page(page)
    app.button(key="see_all_models").click().run()
    offered = {button.key.removeprefix("choose_") for button in app.button if str(button.key).startswith("choose_")}
    assert {spec.key for spec in CATALOG} - {EMBEDDED_KEY} <= offered
    label = app.button(key="choose_google-bert/bert-base-uncased").label
    assert label == "Download 440 MB"
    assert app.button(key=f"choose_{EMBEDDED_CROSS_ENCODER_KEY}").label == "Choose"
    assert not app.exception


def test_the_list_can_be_shortened() -> None:
    bert, own = catalog_spec("google-bert/bert-base-uncased"), catalog_spec(EMBEDDED_KEY)
    assert bert is not None
    assert own is not None
    shown = {name: catalogue.is_shown(bert, name, "download") for name in catalogue.SHOWN}
    assert shown == {"all": True, "here": False, "guess": True, "search": False, "pairs": False}
    assert catalogue.is_shown(own, "here", "included")
