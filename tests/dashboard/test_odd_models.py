"""Pages with a model that cannot be used show one message, and with one that lacks a baseline all the rest."""

from __future__ import annotations

import pytest

from dashboard import caching
from dashboard.navigation import PATH
from tests import odd_models
from tests.dashboard.conftest import figures, texts

PAGES = [page[0] for page in PATH]
BANK = ["We will rob a bank next week!", "I put money in the bank.", "He sat on the bank of the river."]


@pytest.fixture(autouse=True)
def _no_endless_wait(monkeypatch):
    """A load that hangs would keep the page waiting: the page's own limit of 60 s is long for this."""
    yield
    caching.models().jobs.drop(caching.models().jobs.finished())


@pytest.mark.parametrize("name", ["nan", "overflow", "no layers", "ids beyond the rows", "pipe as configuration"])
def test_home_and_others_show_one_message(name, open_page, tmp_path):
    save, word = odd_models.REFUSED[name]
    folder = str(save(tmp_path / "odd"))
    for page in ("home", "layers", "search"):
        app = open_page(page, m=folder, s=BANK)
        assert not app.exception
        messages = [item.value for item in app.error]
        assert len(messages) == 1, (page, messages)
        assert word.split()[0] in messages[0].replace("\\", "")
        assert "Something went wrong" not in messages[0]
        assert any(button.key == "fallback_model" for button in app.button), page


@pytest.mark.parametrize("page", PAGES)
def test_without_a_baseline_the_rest_of_a_page_goes_on(page, open_page, tmp_path_factory, request):
    folder = request.config.cache  # one folder for all pages, so that the model is loaded once
    del folder
    where = tmp_path_factory.getbasetemp() / "all-unknown"
    if not where.exists():
        odd_models.all_unknown(where)
    app = open_page(page, m=str(where), s=BANK)
    assert not app.exception
    assert [item.value for item in app.error] == []
    if page in ("home", "layers"):
        assert figures(app)
        assert "no baseline for this model" in texts(app)
