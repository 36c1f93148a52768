"""The choice of models: groups, and labels by which typing finds them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from components.model.catalog import CATALOG, GROUPS, catalog_spec
from dashboard.ui import sidebar
from dashboard.ui.wording import model_in_words
from tests.dashboard.page_states import small_corpus
from tests.support.pages import Open


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def test_what_a_model_is_in_words() -> None:
    bge = catalog_spec("BAAI/bge-small-en-v1.5")
    assert bge is not None
    assert model_in_words(bge, "download") == "sentence encoder · 33 M parameters · MIT · 133 MB download"
    assert plain(model_in_words(bge, "download", is_short=True)) == "sentence encoder · 33 M · MIT · 133 MB"
    assert model_in_words(bge, "cached") == "sentence encoder · 33 M parameters · MIT · cached"
    biobert = catalog_spec("dmis-lab/biobert-v1.1")
    assert biobert is not None
    assert model_in_words(biobert, "download") == "classic encoder · 108 M parameters · 433 MB download"


def test_the_list_is_grouped_and_says_kind_size_and_licence(open_page: Open) -> None:
    app = open_page("search", corpus=small_corpus())
    labels = [plain(label) for label in app.selectbox(key="w_model").options]
    assert labels[:2] == [
        "all-MiniLM-L6-v2 · sentence encoder · 23 M · Apache-2.0 · included",
        "MiniLM cross-encoder · 23 M · Apache-2.0 · included",
    ]
    assert len(labels) == len(CATALOG)
    kinds = [label.split(" · ")[1] for label in labels[2:]]
    assert list(dict.fromkeys(kinds)) == list(GROUPS.values())
    assert kinds == sorted(kinds, key=list(GROUPS.values()).index)
    assert "potion base 8M · static vectors · 8 M · MIT · 30 MB" in labels
    scorers = [plain(label) for label in app.selectbox(key="w_cross_encoder").options]
    assert all("cross-encoder · " in label for label in scorers)
    assert "Sentence encoder · 23 M parameters · Apache-2.0 · included" in [item.value for item in app.sidebar.caption]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("modernbert", "answerdotai/ModernBERT-base"),
        ("BERT base", "google-bert/bert-base-uncased"),  # also a part of other names
        (" bert  Base ", "google-bert/bert-base-uncased"),
        ("bert", None),
        ("mod", None),
        ("gpt2-xl-something", None),
    ],
)
def test_a_part_of_one_name_stands_for_that_model(typed: str, expected: str | None) -> None:
    assert sidebar._only_match(typed, sidebar._offered("model")) == expected


def test_a_folder_has_its_name_in_the_list_and_a_line_of_facts(
    open_page: Open, tiny_folder: Callable[[str], Path]
) -> None:
    folder = tiny_folder("modernbert").resolve()
    app = open_page("tokens", m=str(folder)).run()
    assert folder.name in app.selectbox(key="w_model").options
    assert str(folder) not in app.selectbox(key="w_model").options
    said = [item.value.replace("\\", "") for item in app.sidebar.caption]
    (line,) = [text for text in said if text.startswith(f"Folder {folder}")]
    assert line.endswith(" · 3 blocks")
    assert "ModernBERT" in line


def test_a_name_that_has_its_kind_is_not_told_it_twice() -> None:
    assert sidebar._label("embedded-cross-encoder", frozenset()).count("cross-encoder") == 1


def test_a_model_is_cached_once_it_is_complete_on_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    key = next(spec.key for spec in CATALOG if spec.source == "hub")

    def says(here: set[str], folder: Path | None) -> bool:
        monkeypatch.setattr(sidebar.hub, "cached_folder", lambda _: folder)
        return "cached" in sidebar._label(key, here)

    assert says({key}, tmp_path)
    assert not says({key}, None)  # a part of it
    assert not says(set(), None)
