"""Every st.cache_* function: singletons and small derived results, all bounded.

Keys are models, revisions, texts and options, never arrays: Streamlit only samples large arrays when it
hashes them, and two that differ can get one another's result.
"""

from __future__ import annotations

import gc
import json
from functools import cache
from typing import TYPE_CHECKING

import streamlit as st

from components.model.shelf import ModelShelf
from components.model.store import TraceStore
from dashboard.state import ASSETS

if TYPE_CHECKING:
    from components.analysis.baseline import Baseline, Yardstick
    from components.analysis.pooling import Pooling
    from components.model.backend import Backend


@st.cache_resource(max_entries=1, show_spinner=False)
def shelf() -> ModelShelf:
    """The models in memory and the traces of all sessions."""
    return ModelShelf(TraceStore(), after_load=freeze_garbage)


def freeze_garbage() -> None:
    """Keep the collector away from what a loaded model brought along.

    Streamlit collects garbage in full after every rerun. With torch and transformers loaded that walks some
    million objects, 200 ms a time, holding the interpreter's lock. They live as long as the server, so they
    are moved out of the collector's sight; unfreezing first lets it take a model that was dropped meanwhile.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@st.cache_resource(max_entries=8, show_spinner=False)
def _baseline(model: str, revision: str, _backend: Backend) -> Baseline:
    from components.analysis.baseline import measure

    sample = demo_sentences()
    # Uncached runs: the sample's traces are large and nobody looks at them again.
    return measure(_backend.run(sample[start : start + 50]) for start in range(0, len(sample), 50))


def token_yardstick(backend: Backend) -> Yardstick:
    """How similar unrelated tokens are in a model (a second or so when first asked)."""
    return baseline(backend).tokens


def sentence_yardstick(backend: Backend, pooling: Pooling, include_special: bool) -> Yardstick:
    """How similar unrelated sentences are, by pooling."""
    return baseline(backend).sentences[pooling, include_special]


def baseline(backend: Backend) -> Baseline:
    """The yardsticks of unrelated tokens and sentences of a model."""
    result = _baseline(backend.spec.key, backend.revision, backend)
    _measured.add((backend.spec.key, backend.revision))
    return result


_measured: set[tuple[str, str]] = set()


def baseline_ready(backend: Backend) -> bool:
    """Whether the yardstick is there without waiting."""
    return (backend.spec.key, backend.revision) in _measured


@cache
def demo_sentences() -> tuple[str, ...]:
    return tuple((ASSETS / "demo_sentences.txt").read_text(encoding="utf-8").splitlines())


@cache
def glossary() -> dict[str, str]:
    return json.loads((ASSETS / "glossary.json").read_text(encoding="utf-8"))
