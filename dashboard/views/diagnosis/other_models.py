"""A second model as a remedy: a cross-encoder, and another model for vectors.

Only models that are on this machine are offered, so that nothing is downloaded by looking at the view.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.errors import ModelError
from components.model.catalog import (
    CATALOG,
    RUN_PREFIX,
    catalog_spec,
    is_path,
    spec_of,
    trained_folder,
)
from components.model.files import hub
from components.model.files.published import read_json
from components.model.files.sentence_config import read_sentence_config
from components.model.not_applied import is_cross_encoder
from dashboard import access, state
from dashboard.jobs.reranking import likely_label
from dashboard.ui import controls, model_gate
from dashboard.ui.messages import escape
from dashboard.ui.models import catalogue

if TYPE_CHECKING:
    from collections.abc import Hashable

    from components.model.backend import Backend

# The setting of each remedy's model: its label, and what it is called where there is none.
SETTINGS = {
    "cross-encoder": (
        "tried_cross_encoder",
        "Also try a cross-encoder",
        "re-ranking by a cross-encoder",
    ),
    "model": ("tried_model", "Also try another model", "another model"),
}
NONE = "no"
READ = ("config.json", "modules.json", "config_sentence_transformers.json")  # what says that a model scores pairs
HELP = (
    "A model on this machine, as one more remedy; nothing is downloaded. The included cross-encoder takes minutes for a "
    "hundred queries on a laptop; it was trained on the similarity of two sentences, not to rank."
)


@dataclass(frozen=True, eq=False)
class OtherModels:
    """The second models that are measured, by the remedies' names, and what is said of the remedies without one."""

    loaded: dict[str, Backend] = field(default_factory=dict)
    left_out: str = ""

    @property
    def label(self) -> int | None:
        """The number of the cross-encoder's label that ranks; None for one with a single score."""
        names = self.loaded["cross-encoder"].pair_labels()
        return names.index(likely_label(names)) if len(names) > 1 else None

    def key_of(self, name: str) -> tuple[Hashable, ...]:
        """What determines a remedy, of its second model."""
        backend = self.loaded.get(name)
        return () if backend is None else (backend.spec.key, backend.revision, str(backend.device))

    @property
    def setting(self) -> dict[str, Any]:
        """The arguments of a `kinds.RemedyInput`."""
        scorer, model = self.loaded.get("cross-encoder"), self.loaded.get("model")
        return {
            "cross_encoder": scorer and partial(scorer.score_pairs, label=self.label, precision="float32"),
            "models": [model] if model else [],
        }

    @property
    def options(self) -> tuple[str, ...]:
        """The options of the command `diagnose`."""
        found: list[str] = []
        if "cross-encoder" in self.loaded:
            scorer, label = self.loaded["cross-encoder"], self.label
            found += ["--cross-encoder", scorer.spec.key]
            found += [] if label is None else ["--label", scorer.pair_labels()[label]]
        if "model" in self.loaded:
            found += ["--other-model", self.loaded["model"].spec.key]
        return tuple(found)


@dataclass(frozen=True)
class ModelChoice:
    """The keys of the second models that a person chose, by the remedies' names; and the remedies that have none here."""

    keys: dict[str, str]
    nowhere: tuple[str, ...]  # in words
    not_chosen: tuple[str, ...] = ()  # the remedies that have some here, of which none is chosen, in words


def choose(own: Backend) -> ModelChoice:
    """Draw the choice of a second model for each remedy that has one on this machine; `own` is the session's model."""
    offered, keys = offered_beside(own.spec.key), {}
    for name, (setting, label, _) in SETTINGS.items():
        if offered[name]:
            options = {"": NONE, **{key: spec_of(key).title for key in offered[name]}}
            keys[name] = controls.pick(setting, label, options, HELP)
    nowhere = [named for name, (_, _, named) in SETTINGS.items() if not offered[name]]
    not_chosen = [f"{SETTINGS[name][-1]} (“{SETTINGS[name][1]}” above)" for name, key in keys.items() if not key]
    return ModelChoice({name: key for name, key in keys.items() if key}, tuple(nowhere), tuple(not_chosen))


def loaded(chosen: ModelChoice) -> OtherModels:
    """The chosen models; what one waits for, or why it is not available, is drawn."""
    backends, fitting = model_gate.further_models(list(chosen.keys.values()), _leave_out), {}
    for name, key in chosen.keys.items():
        backend = backends.get(key)
        if backend is None:
            continue
        if reason := _why_not(name, backend):
            st.info(f"**{escape(backend.spec.title)}** is not measured. {escape(reason)}")
        else:
            fitting[name] = backend
    named = " and ".join(chosen.nowhere)
    said = f"Not measured: {named}, since no such model is on this machine. “See all models” in the sidebar has some."
    offered = f"Not measured until you choose a model: {' and '.join(chosen.not_chosen)}." if chosen.not_chosen else ""
    return OtherModels(fitting, " ".join(filter(None, (offered, said if named else ""))))


def offered_beside(own: str) -> dict[str, list[str]]:
    """The keys of the models on this machine that each remedy can take, without a session's `own`."""
    here = hub.repositories_here()
    known = [spec.key for spec in CATALOG if catalogue.where(spec, here) != "download"]
    further = sorted(here - {spec.key for spec in CATALOG}) if access.free_models_allowed() else []
    named = [state.peek(name) for name in ("model2", "cross_encoder", *(setting for setting, *_ in SETTINGS.values()))]
    complete = [key for key in further if hub.cached_folder(key) is not None]
    keys = dict.fromkeys((*known, *catalogue.trained_models(), *complete, *filter(is_path, named)))
    found: dict[str, list[str]] = {name: [] for name in SETTINGS}
    for key in keys:
        if key != own:
            spec = catalog_spec(key)
            if scores_pairs(key):
                found["cross-encoder"].append(key)
            elif spec is None or spec.pooling is not None:
                found["model"].append(key)
    return found


def scores_pairs(key: str) -> bool:
    """Whether a model on this machine scores pairs of texts, as the catalogue or its files say; it is not loaded."""
    spec = catalog_spec(key)
    if spec is not None:
        return spec.cross_encoder
    folder = Path(key) if is_path(key) else hub.cached_folder(key)
    if key.startswith(RUN_PREFIX):
        folder = trained_folder(key.removeprefix(RUN_PREFIX))
    return _files_score_pairs(key, folder, () if folder is None else tuple(_changed(folder / name) for name in READ))


def _changed(path: Path) -> tuple[int, int]:
    """When a file was changed, and its size; zeros where there is none."""
    try:
        of = path.stat()
    except (OSError, ValueError):  # a ValueError for a name that no file can have
        return 0, 0
    return of.st_mtime_ns, of.st_size


@lru_cache(maxsize=256)
def _files_score_pairs(key: str, folder: Path | None, changed: tuple[tuple[int, int], ...]) -> bool:
    """Whether a model scores pairs of texts, as its files say, which are read once for each state that `changed` tells."""
    config = None if folder is None else read_json(folder / "config.json")
    names = config.get("architectures") if isinstance(config, dict) else None
    published = read_sentence_config(folder)
    architectures = SimpleNamespace(architectures=names if isinstance(names, list) else [])
    return is_cross_encoder(key, architectures, published.published_as, published.modules)


def _why_not(name: str, backend: Backend) -> str:
    """Why a model cannot be the second one of a remedy; "" where it can."""
    if name == "model":
        return "It scores two texts together, and makes no vectors." if backend.is_cross_encoder else ""
    try:
        backend.pair_labels()
    except ModelError as problem:
        return problem.problem
    return ""


def _leave_out(key: str) -> None:
    for setting, *_ in SETTINGS.values():
        if state.get(setting) == key:
            state.put(setting, "")
