"""The sidebar, below the list of pages: the models that the page uses, the jobs, and settings needed less often."""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.errors import UserError
from components.model.catalog import CATALOG, GROUPS, RUN_PREFIX, catalog_spec, run_title, spec_of
from components.model.files import hub
from components.sizes import in_words
from dashboard import access, caching, settings, state
from dashboard.ui import controls, messages, sentence_bar, wording
from dashboard.ui.models import catalogue

if TYPE_CHECKING:
    from components.model.backend import Backend

FEWEST_TYPED = 4  # characters of a name that stand for the one model that has them
_NONE = "(none)"
_USED = {  # models that a view uses for some of its choices
    ("model2", "hits"): "Used when you choose “Compare: second model”, and for “MaxSim” or “SPLADE” if only this model "
    "was made for it.",
    ("cross_encoder", "hits"): "Used when you choose “Compare: re-ranked”.",
    ("cross_encoder", "compare-runs"): "Used by runs that are re-ranked.",
    ("cross_encoder", "graded-relevance"): "Used by runs that are re-ranked.",
}


def draw(page: str) -> Any:
    """Draw the sidebar, and return the slot for the running jobs. In projector mode there is no sidebar (None)."""
    if state.get("projector"):
        return None
    with st.sidebar:
        _models(page)
        catalogue.button()
        jobs_slot = st.container()
        _more()
    return jobs_slot


def _label(key: str, here: Set[str]) -> str:
    """What the list of models says of one; `here` as `catalogue.where` takes it."""
    if key == _NONE:
        return "None"
    if key.startswith(RUN_PREFIX):
        return f"{run_title(key.removeprefix(RUN_PREFIX))} · trained here"
    spec = catalog_spec(key)
    if spec is None:
        return spec_of(key).title  # of a folder its name: the line below the list has the path
    # The whole in the label, because typing searches the labels; but the kind once, for two lines have room.
    words = wording.model_in_words(spec, catalogue.where(spec, here), is_short=True)
    if spec.group is not None and GROUPS[spec.group] in spec.title:
        words = words.removeprefix(f"{GROUPS[spec.group]}{wording.NBSP_DOT}")
    return f"{spec.title}{wording.NBSP_DOT}{words}"


def _facts(key: str, here: Set[str]) -> None:
    """A line on the chosen model: the picker has no room for its whole label."""
    spec = catalog_spec(key)
    if spec is None and key != _NONE and spec_of(key).source == "folder":
        st.caption(_folder_facts(key))
    if spec is not None:
        text = wording.model_in_words(spec, catalogue.where(spec, here))
        st.caption(messages.escape(text[0].upper() + text[1:]))


def _folder_facts(key: str) -> str:
    """A line on a model of a folder: its path and, once it is in memory, what its configuration says."""
    text, backend = f"Folder {key}", caching.models().find(key)
    if backend is not None:
        text += f" · {backend.structure.title} · {wording.millions(backend.facts.parameters)} parameters"
        if backend.structure.has_blocks:
            text += f" · {wording.counted(backend.facts.layers, 'block')}"
    return messages.escape(text)


def _models(page: str) -> None:
    free, files = access.free_models_allowed(), access.server_files_allowed()
    folder = " or the path of a folder" if files else ""
    trained, here = catalogue.trained_models(), hub.repositories_here()
    for name, label, none, help_text in (
        ("model", "Model", [], "The encoder that all pages examine."),
        ("model2", "Second model", [_NONE], "A second model to compare with the first."),
        ("cross_encoder", "Cross-encoder", [], "A model that reads two texts together and scores the pair."),
    ):
        if not state.is_in_view(name, page):
            continue
        chosen = state.get(name) or _NONE
        widget = f"w_{name}"
        st.session_state[widget] = chosen
        st.selectbox(
            label,
            list(dict.fromkeys([*none, *_offered(name), *trained, chosen])),
            format_func=partial(_label, here=here),
            key=widget,
            on_change=_choose_model,
            args=(name,),
            accept_new_options=free,
            filter_mode="contains",
            help=f"{help_text} Type to search by name, kind, size or licence."
            + (f" You can also type a Hugging Face hub id{folder}." if free else ""),
        )
        _facts(chosen, here)
        if note := _USED.get((name, state.view_of(page))):
            st.caption(note)
        problem = st.session_state.pop(f"_{name}_problem", None)
        if problem:
            st.error(messages.escape(problem))


def _only_match(typed: str, keys: Sequence[str]) -> str | None:
    """The model of the catalog whose title is what was typed, or else has it, if there is just one.

    The list puts typed texts first: who types a title as it stands there and presses Enter means that model.
    """
    titles = {key: spec.title.casefold() for key in keys if (spec := catalog_spec(key)) is not None}
    wanted = " ".join(typed.casefold().split())
    same = [key for key, title in titles.items() if title == wanted]
    found = same or [key for key, title in titles.items() if wanted in title]
    return found[0] if len(found) == 1 and len(typed) >= FEWEST_TYPED else None


def _offered(name: str) -> list[str]:
    """The keys of the catalog's models for a setting: all, or for a cross-encoder those with a head for pairs.

    The included ones come first, then one group after the other.
    """
    order = list(GROUPS)
    offered = [spec for spec in CATALOG if spec.cross_encoder or name != "cross_encoder"]
    offered.sort(key=lambda spec: -1 if spec.source == "embedded" or spec.group is None else order.index(spec.group))
    return [spec.key for spec in offered]


def _choose_model(name: str) -> None:
    entered = st.session_state[f"w_{name}"]
    if entered not in (None, _NONE, *_offered(name)):
        entered = _only_match(entered, _offered(name)) or entered
    if entered in (None, _NONE):
        state.put(name, state.default(name))
        return
    try:
        state.put(name, settings.allowed_model(entered))
    except UserError as problem:
        st.session_state[f"_{name}_problem"] = f"{problem.problem} {problem.fix}"
        return
    except ValueError as problem:
        st.session_state[f"_{name}_problem"] = f"This model cannot be chosen: {problem}."
        return
    st.session_state.setdefault("_linked_models", set()).discard(state.get(name))
    caching.models().forget(state.get(name), caching.person())


def _more() -> None:
    """What is needed less often."""
    panel = st.expander("More settings", icon=":material/tune:", key="more_settings", on_change="rerun")
    if not panel.open:
        return
    with panel:
        backend = caching.models().find(state.get("model"))
        limit = backend.tokenization.max_length if backend is not None else 512
        published = backend.own_max_length if backend is not None else limit
        longer = (
            f" This model was published for {published:,}; up to {limit:,} is possible." if published < limit else ""
        )
        controls.bind(
            "max_length",
            st.number_input,
            "Maximum length in tokens",
            default=published,
            to_widget=lambda length: min(length, limit),
            from_widget=lambda length: None if length == published else length,
            min_value=settings.LEAST_LENGTH,
            max_value=limit,
            help=caching.glossary()["maximum length"] + longer,
        )
        controls.checked(
            st.segmented_control,
            "Picture format",
            options=["png", "svg"],
            format_func=str.upper,
            default="png",
            required=True,
            key="picture_format",
            help="The format in which the camera button of a figure saves it.",
        )
        st.button(
            "Restore all defaults",
            key="reset",
            icon=":material/restart_alt:",
            on_click=_reset,
            help="Sentences, models and every setting",
        )
        st.caption("The model is not in memory yet." if backend is None else _memory(backend))


def _reset() -> None:
    sentence_bar.take_edits()  # what was typed before must not come after
    state.reset()


def _memory(backend: Backend) -> str:
    """Where a model runs, and how much memory is in use."""
    from components.model.device import memory

    used = memory(backend.device)
    text = (
        f"Runs on **{backend.device}** in {backend.precision} · {in_words(used.process, binary=True)} of memory in use"
    )
    if used.device_used is not None and used.device_total is not None:
        text += f" · GPU {in_words(used.device_used, binary=True)} of {in_words(used.device_total, binary=True)}"
    return text
