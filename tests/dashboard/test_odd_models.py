"""Pages with a model that cannot be used show one message, and with one that lacks a baseline all the rest."""

from __future__ import annotations

import shutil

import pytest

from components.analysis.similarity import baseline
from components.errors import InputError
from components.model.backend import Backend
from tests.dashboard.page_states import small_corpus
from tests.support import odd_models
from tests.support.pages import figures, texts
from tests.support.views import ONE_OF_EACH

BANK = ["We will rob a bank next week!", "I put money in the bank.", "He sat on the bank of the river."]


@pytest.mark.parametrize(
    ("name", "pages"),
    [
        ("nan", ("home", "layers", "search")),
        ("overflow", ("home",)),
        ("no layers", ("search",)),
        ("ids beyond the rows", ("layers",)),
        ("pipe as configuration", ("home",)),
    ],
)
def test_home_and_others_show_one_message(name, pages, open_page, tmp_path):
    save, word = odd_models.REFUSED[name]
    folder = str(save(tmp_path / "odd"))
    for page in pages:
        app = open_page(page, m=folder, s=BANK)
        assert not app.exception
        messages = [item.value for item in app.error]
        assert len(messages) == 1, (page, messages)
        assert word.split()[0] in messages[0].replace("\\", "")
        assert "Something went wrong" not in messages[0]
        assert any(button.key == "fallback_model" for button in app.button), page


@pytest.fixture(scope="module")
def all_unknown(tmp_path_factory):
    return str(odd_models.all_unknown(tmp_path_factory.mktemp("odd") / "all-unknown"))


WITH_BASELINE = [
    ("one-word", {}),
    ("layers", {"view": "sentences", "c": "1"}),
    ("heatmaps", {"view": "blocks"}),
    ("heatmaps", {"view": "tokens"}),
]


@pytest.mark.parametrize(
    ("page", "address"), [*((view, {}) for view in ONE_OF_EACH if (view, {}) not in WITH_BASELINE), *WITH_BASELINE]
)
def test_without_a_baseline_the_rest_of_a_page_goes_on(page, address, open_page, all_unknown):
    few = {"corpus": small_corpus()} if page in {"hits", "layer-grid"} else {}
    quick = {"by": "pca"} if page == "two-layers" else {}  # UMAP would be compiled first
    app = open_page(page, m=all_unknown, s=BANK, **address, **few, **quick)
    assert not app.exception
    assert [item.value for item in app.error] == []
    if (page, address) in WITH_BASELINE:
        assert figures(app)
        # Whole sentences differ by their lengths, even if all of their tokens are unknown.
        assert ("no baseline for this model" in texts(app)) != (address.get("view") == "sentences")


def test_a_baseline_that_cannot_be_measured_is_said(open_page, monkeypatch, tiny_folder):
    """As where the sample overflows, or the tokenizer fails on it."""

    def fails(run, sample):
        raise InputError("The sample cannot be read.", "Another was expected.", "Choose another model.")

    monkeypatch.setattr(baseline, "measure_sample", fails)
    folder = str(shutil.copytree(tiny_folder("bert"), tiny_folder("bert").parent / "copy", dirs_exist_ok=True))
    for page, address in (*WITH_BASELINE, ("layers", {"c": "1"}), ("heatmaps", {"view": "sentences"})):
        app = open_page(page, m=folder, s=BANK, **address)
        assert not app.exception
        assert [item.value for item in app.error] == []
        assert "no baseline for this model" in texts(app), (page, address)


def test_a_baseline_that_failed_for_another_reason_is_measured_later(open_page, monkeypatch, tiny_folder):
    """As where memory was short for a moment: the model is not to blame, and the failure is not kept."""

    def fails(run, sample):
        raise RuntimeError("out of memory")

    folder = str(shutil.copytree(tiny_folder("bert"), tiny_folder("bert").parent / "another", dirs_exist_ok=True))
    with monkeypatch.context() as patch:
        patch.setattr(baseline, "measure_sample", fails)
        for page, address in (("layers", {}), ("heatmaps", {"view": "tokens"})):
            app = open_page(page, m=folder, s=BANK, **address)
            assert not app.exception
            assert "could not be measured" in texts(app)
            assert "no baseline for this model" not in texts(app)
    monkeypatch.setattr("dashboard.caching.RETRY_SECONDS", 0.0)
    assert "could not be measured" not in texts(app.run())
    assert "cosine of" in texts(app)


def test_a_pattern_without_end_is_one_message(open_page, tmp_path, monkeypatch):
    """Such a pattern is refused; a library that gives up in another way ends in the same message."""
    monkeypatch.setattr("components.model.files.tokenizer_files.check_pattern", lambda expression: None)
    folder = str(odd_models.backtracking(tmp_path / "backtracking"))
    for page in ("home", "tokens", "layers"):
        app = open_page(page, m=folder, s=["the cat", "a" * 40 + "x"])
        assert not app.exception
        assert ["tokenizer failed" in item.value for item in app.error] == [True], page


@pytest.mark.parametrize("panic", [BaseException, GeneratorExit])
def test_what_is_no_exception_ends_as_a_message_too(panic, open_page, monkeypatch, tiny_folder):
    def fails(*_, **__):
        raise panic("the library gave up")

    monkeypatch.setattr(Backend, "trace", fails)
    app = open_page("layers", m=str(tiny_folder("bert")), s=BANK)
    assert not app.exception
    assert ["Something went wrong" in item.value for item in app.error] == [True]
