"""Runs the code of a figure, with models that are loaded and samples that are measured once for all of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.analysis.similarity import baseline
from components.model.backend import Backend
from components.retrieval.corpora import demo
from components.retrieval.corpora.corpus import read_corpus
from components.snippets.code import Snippet
from components.snippets.notebook import TitledSnippet, notebook
from dashboard import caching
from dashboard.corpora import current
from tests.support import baselines
from tests.support.snippets import Run

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


@pytest.fixture
def sixty_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """As `corpus`: the demo's first sentences, with their queries."""
    whole, table = current.demo(), io.StringIO()
    rows = zip(whole.texts[:60], whole.columns["compressed"][:60], strict=True)
    csv.writer(table).writerows([("sentence", "compressed"), *rows])
    return _uploaded(table.getvalue(), tmp_path, monkeypatch)


def _uploaded(content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    file = tmp_path / "your-file.csv"
    file.write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    uploaded = read_corpus(file, "your-file.csv", "sentence")
    caching.corpora().put(current.key_of(uploaded), uploaded)
    return current.key_of(uploaded)


@pytest.fixture(scope="session")
def run(embedded: Backend) -> Run:
    """Runs a snippet and gives the names that it has set; models are loaded once for all snippets."""
    loaded = {"embedded": embedded}
    load, measure = Backend.load, baseline.measure_sample

    def load_once(model: Any, *arguments: Any, **options: Any) -> Backend:
        if arguments or options:  # the dashboard's own
            return load(model, *arguments, **options)
        if model not in loaded:
            loaded[model] = load(model, device_name="cpu")
        return loaded[model]

    measured: dict[Any, Any] = {}

    def measure_once(of: Any, sample: Any) -> Any:
        if caching.baseline_ready(of.__self__) and list(sample) == list(demo.demo_sentences()):
            return caching.baseline(of.__self__)  # the page has measured the same
        if of not in measured:
            measured[of] = measure(of, sample)
        return measured[of]

    embed, vectors = Backend.embed, {}

    def embed_once(self: Backend, texts: Any, *arguments: Any, **options: Any) -> Any:
        key = (self, tuple(texts), repr(arguments), repr(options))
        if key not in vectors:
            vectors[key] = embed(self, texts, *arguments, **options)
        return vectors[key]

    def execute(snippet: Snippet) -> dict[str, Any]:
        assert notebook("A page", {}, [TitledSnippet("A figure", snippet)])
        names: dict[str, Any] = {}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Backend, "load", load_once)
            patch.setattr(baseline, "measure_sample", measure_once)
            patch.setattr(Backend, "embed", embed_once)
            exec(compile(snippet.code, "snippet", "exec"), names)
        return names

    return execute
