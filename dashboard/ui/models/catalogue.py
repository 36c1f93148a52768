"""The catalogue of models, which opens above every page: where the files of each are, and what it can do."""

from __future__ import annotations

from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from components.errors import UserError
from components.model.catalog import CATALOG, GROUPS, RUN_PREFIX, catalog_spec, run_title
from components.model.files import hub
from components.sizes import in_words
from components.training import runs
from dashboard import caching, state
from dashboard.ui import controls, messages, wording

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from components.model.catalog import ModelSpec

# Where the files of a model are: the title of its part of the list, and what stands beside that.
PLACES = {
    "included": ("Included", "always there, without a network"),
    "cached": ("On this machine", "ready at once"),
    "download": ("To download", "once, from the hub"),
}
# What a model can do: the head of its column, and what it needs.
ABILITIES = {
    "layers": "Layers and heads",
    "guess": "Guess a word",
    "search": "Search",
    "pairs": "Score pairs",
}
SHOWN = {"all": "All", "here": "On this machine", "guess": "Guess a word", "search": "Search", "pairs": "Score pairs"}
_ENCODERS = ("classic", "modern", "sentence", "pairs")  # groups of models whose blocks are shown


def where(spec: ModelSpec, here: Set[str]) -> str:
    """Where the files of a model of the catalog are. `here`: the repositories that are on this machine at least in part."""
    if spec.source == "embedded":
        return "included"
    return "cached" if spec.key in here and hub.cached_folder(spec.key) is not None else "download"


def abilities(spec: ModelSpec) -> frozenset[str]:
    """What a model of the catalog can do, by the keys of `ABILITIES`."""
    can = {
        "layers": spec.group in _ENCODERS,
        "guess": spec.can_guess,
        "search": spec.pooling is not None,
        "pairs": spec.cross_encoder,
    }
    return frozenset(name for name, holds in can.items() if holds)


def trained_models() -> list[str]:
    """The models that were trained here, the newest first; none where the folder of runs cannot be used."""
    with suppress(UserError):
        return [RUN_PREFIX + run.name for run in runs.list_runs() if run.has_model]
    return []


def button() -> None:
    """The button that opens the catalogue."""
    if st.button("See all models", key="see_all_models", icon=":material/list:", type="tertiary"):
        _sheet()


@st.dialog("Which model speaks?", width="large")
def _sheet() -> None:
    here = hub.repositories_here()
    shown = controls.checked(
        st.segmented_control,
        "Which models",
        options=SHOWN,
        format_func=SHOWN.__getitem__,
        key="catalogue_shown",
        default="all",
        required=True,
        label_visibility="collapsed",
    )
    found = {spec.key: where(spec, here) for spec in CATALOG}
    _heads()
    for place, (title, line) in PLACES.items():
        specs = [spec for spec in CATALOG if found[spec.key] == place and is_shown(spec, shown, place)]
        if specs:
            st.markdown(f"**{title}** :small[{line}]")
            for spec in specs:
                _row(spec, place)
    trained = trained_models() if shown in ("all", "here") else []
    if trained:
        st.markdown("**Trained here** :small[on this server]")
    for key in trained:
        _line(key, f"<b>{escape(run_title(key.removeprefix(RUN_PREFIX)))}</b>", {}, "Choose")
    st.caption(
        "Parameters and sizes are those of the published files. Only safetensors are read; no code of a model is run. "
        "A download begins when you choose the model, and can be stopped."
    )


def is_shown(spec: ModelSpec, shown: str, place: str) -> bool:
    """Whether a model is in the list that a person has chosen, by the keys of `SHOWN`."""
    return shown == "all" or (shown == "here" and place != "download") or shown in abilities(spec)


def _heads() -> None:
    cells = "".join(f"<span>{name}</span>" for name in ABILITIES.values())
    with st.container(key="catalogue_heads"):
        left, _ = st.columns([7, 1.4])
        left.html(f'<div class="bi-model bi-heads" aria-hidden="true"><span></span>{cells}</div>')


def _row(spec: ModelSpec, place: str) -> None:
    parts = [GROUPS[spec.group]] if spec.group else []
    if spec.facts is not None:
        parts.append(f"{wording.whole_millions(spec.facts.parameters)} parameters")
    parts.append(spec.licence or "licence not stated")
    name = f"<b>{escape(spec.title)}</b><small>{escape(' · '.join(parts))}</small><small>{escape(spec.note)}</small>"
    size = in_words(1e6 * (spec.megabytes or 0), about=True)
    can = {label: key in abilities(spec) for key, label in ABILITIES.items()}
    _line(spec.key, name, can, f"Download {size}" if place == "download" else "Choose")


def _line(key: str, name: str, can: Mapping[str, bool], label: str) -> None:
    """A model: its name as HTML, what it can do, and the button that chooses it."""
    cells = "".join(
        f'<span class="{"yes" if holds else "no"}">{"●" if holds else "–"}<i>{label}: {"yes" if holds else "no"}</i></span>'
        for label, holds in can.items()
    )
    left, right = st.columns([7, 1.4], vertical_alignment="center")
    left.html(f'<div class="bi-model"><span>{name}</span>{cells}</div>')
    if key == state.get("model"):
        right.markdown(":material/check: **speaks**")
    elif right.button(label, key=f"choose_{key}", help=None if catalog_spec(key) is None else messages.escape(key)):
        _choose(key)


def _choose(key: str) -> None:
    """Make a model the session's, and close the catalogue."""
    st.session_state.setdefault("_linked_models", set()).discard(state.get("model"))
    state.put("model", key)
    caching.models().forget(key, caching.person())
    st.rerun()
