"""What the code of figures is tested with: a small corpus, and a process without this project."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from components.retrieval.corpora.corpus import read_corpus
from dashboard import caching
from dashboard.corpora import current
from tests.support import baselines
from tests.support.elsewhere import Elsewhere

# Seven rows with two topics, and a repeated sentence.
CORPUS = """sentence,compressed,topic
A volcano erupted on the island and lava reached the harbour.,volcano erupts,volcano
Ash from the volcano closed three airports for a week.,ash closes airports,volcano
Lava stopped before it reached the last village.,lava stops,volcano
The dog saved a child who had fallen into the river.,dog saves child,animals
A cat found its way home after two years.,cat comes home,animals
"Wolves, it is said, came back to the forest.",wolves return,animals
A cat found its way home after two years.,cat returns home,animals
"""


@pytest.fixture(scope="module", autouse=True)
def _short_baselines(_included_model: None) -> Iterator[None]:
    with baselines.of_few_sentences():
        yield


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The key of a small corpus in addresses; its file is where the code of a person's own corpus reads it."""
    return _uploaded(CORPUS, tmp_path, monkeypatch)


def _uploaded(content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    file = tmp_path / "your-file.csv"
    file.write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    uploaded = read_corpus(file, "your-file.csv", "sentence")
    caching.corpora().put(current.key_of(uploaded), uploaded)
    return current.key_of(uploaded)


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    """A process that runs the code of figures without this project."""
    with Elsewhere(tmp_path_factory.mktemp("elsewhere")) as process:
        yield process
