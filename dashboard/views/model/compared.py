"""The models that are compared: which ones, and what the view calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from components.model.catalog import CATALOG, EMBEDDED_CROSS_ENCODER_KEY, EMBEDDED_KEY, spec_of
from components.model.files import hub
from dashboard import state
from dashboard.settings import MOST_COMPARED
from dashboard.ui import controls, model_gate
from dashboard.ui.models import catalogue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.model.backend import Backend


def choose() -> tuple[str, ...]:
    """Draw the choice of the models beside the session's own, and return their keys."""
    own = state.get("model")
    chosen = state.get("compared_models") or ()
    offered = [*(spec.key for spec in CATALOG), *catalogue.trained_models(), state.peek("model2"), *chosen]
    keys = [key for key in dict.fromkeys(offered) if key and key != own]

    def without_own(models: Any) -> tuple[str, ...]:
        return tuple(key for key in models if key != own)

    found = controls.bind(
        "compared_models",
        st.multiselect,
        "Compared with",
        options={key: _label(key) for key in keys},
        default=default(),
        to_widget=without_own,
        max_selections=MOST_COMPARED - 1,
        placeholder="Choose up to three models",
        help="The first of the compared models is the one in the sidebar. A model that is not on the list can be chosen as "
        "the second model of another page; then it is offered here too.",
    )
    return tuple(found)


def _label(key: str) -> str:
    """A model's title, with a word where it would first be downloaded."""
    spec = spec_of(key)
    is_download = spec.source == "hub" and hub.cached_folder(key) is None
    return f"{spec.title} · download" if is_download else spec.title


def default() -> tuple[str, ...]:
    """The models to begin with: the session's second model, or else an included one."""
    own, second = state.get("model"), state.peek("model2")
    included = EMBEDDED_CROSS_ENCODER_KEY if own == EMBEDDED_KEY else EMBEDDED_KEY
    return (second,) if second and second != own else (included,)


def leave_out(key: str) -> None:
    """Compare without a model."""
    chosen = state.get("compared_models")
    state.put("compared_models", tuple(other for other in (default() if chosen is None else chosen) if other != key))


def names(keys: Sequence[str]) -> dict[str, str]:
    """What the page calls the session's own model and the others, all different, by their keys."""
    found: dict[str, str] = {}
    for key in (state.get("model"), *keys):
        title, number = spec_of(key).title, 2
        while title in found.values():
            title, number = f"{spec_of(key).title} ({number})", number + 1
        found[key] = title
    return found


def available(main: Backend, keys: Sequence[str]) -> dict[str, Backend]:
    """The main model and those of the others that are available, by name.

    What the others wait for, or why they are not available, is drawn.
    """
    called = names(keys)
    models = {state.get("model"): main, **model_gate.further_models(keys, leave_out)}
    return {called[key]: model for key, model in models.items()}
