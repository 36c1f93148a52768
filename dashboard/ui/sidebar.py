"""The sidebar: models, and sentences, where the page uses them; the link that restores it all."""

from __future__ import annotations

from typing import Any

import streamlit as st

from components.errors import UserError
from components.model.catalog import CATALOG, EMBEDDED_KEY, catalog_spec
from components.model.files import hub
from components.model.tokenization import MAX_CHARACTERS, MAX_SENTENCES
from dashboard import caching, ready_made, settings, state
from dashboard.ui import chips, controls, messages

_NONE = "(none)"


def draw(page: str) -> tuple[Any, Any]:
    """Draw it, and return the places for the model's status and for the jobs under way.

    In projector mode there are none, only a button on the page that brings it back.
    """
    if state.get("projector"):
        st.button(
            "Leave projector mode",
            key="leave_projector",
            icon=":material/close_fullscreen:",
            on_click=lambda: state.put("projector", False),
        )
        return None, None
    with st.sidebar:
        status_slot = _models(page)
        jobs_slot = st.container()
        if state.means_something("sentences", page):
            _sentences()
        _more(page)
    return status_slot, jobs_slot


def _label(key: str) -> str:
    if key == _NONE:
        return "None"
    spec = catalog_spec(key)
    if spec is None:
        return key
    if spec.source == "embedded":
        return f"{spec.title} · embedded"
    if hub.cached_folder(spec.key) is not None:
        return f"{spec.title} · cached"
    return f"{spec.title} · download"


def _models(page: str) -> Any:
    catalog = [spec.key for spec in CATALOG]
    for name, label, extra, help_text in (
        ("model", "Model", [], "The encoder all pages look into. You can also type a hub id or a folder."),
        ("model2", "Compare with", [_NONE], "A second model, shown beside the first."),
    ):
        if not state.means_something(name, page):
            continue
        chosen = state.get(name) or _NONE
        options = extra + catalog + ([] if chosen in (*extra, *catalog) else [chosen])
        widget = f"w_{name}"
        st.session_state[widget] = chosen
        st.selectbox(
            label,
            options,
            format_func=_label,
            key=widget,
            on_change=_choose_model,
            args=(name,),
            accept_new_options=settings.free_models_allowed(),
            help=help_text,
        )
        problem = st.session_state.pop(f"_{name}_problem", None)
        if problem:
            st.error(messages.escape(problem))
    slot = st.empty()
    status(slot)
    return slot


def _choose_model(name: str) -> None:
    typed = st.session_state[f"w_{name}"]
    if typed in (None, _NONE):
        state.put(name, EMBEDDED_KEY if name == "model" else "")
        return
    try:
        state.put(name, settings.allowed_model(typed))
    except UserError as problem:
        st.session_state[f"_{name}_problem"] = f"{problem.problem} {problem.fix}"
        return
    except ValueError as problem:
        st.session_state[f"_{name}_problem"] = f"Not chosen: {problem}."
        return
    st.session_state.setdefault("_linked_models", set()).discard(state.get(name))
    caching.models().forget(state.get(name), caching.person())


def status(slot: Any) -> None:
    """Device, precision and memory of the chosen model, into its place in the sidebar."""
    if slot is None:
        return
    backend = caching.models().find(state.get("model"))
    if backend is None:
        slot.caption("Not in memory yet.")
        return
    from components.model.device import memory

    used = memory(backend.device)
    text = f"Runs on **{backend.device}** in {backend.precision} · {used.process / 2**30:.1f} GiB in use"
    if used.device_used is not None and used.device_total is not None:
        text += f" · GPU {used.device_used / 2**30:.1f} of {used.device_total / 2**30:.0f} GiB"
    slot.caption(text)


def take_edits() -> None:
    """Take over what stands in the editor, where its own callback did not run.

    Text typed just before a click on a page's link arrives together with the page change, and Streamlit then
    runs no callback of the page that was left.
    """
    typed, shown = st.session_state.get("w_sentences"), st.session_state.get("_editor_shown")
    if typed is None or shown is None or typed == shown[0] or state.get("sentences") != shown[1]:
        return
    state.put("sentences", settings.clean_sentences(typed.splitlines()))


def _sentences() -> None:
    sets = ready_made.ready_made_sets()
    current = state.get("sentences")
    chosen = next((key for key, item in sets.items() if item.sentences == current), None)
    # Another widget for people's own sentences: a click that follows typed text at once still carries the set that
    # was shown before, and must not count as choosing it again.
    widget = "w_set" if chosen else "w_set_own"
    st.session_state["_set_widget"] = widget
    st.session_state[widget] = chosen
    st.selectbox(
        "Ready-made sentences",
        list(sets),
        format_func=lambda key: sets[key].title,
        key=widget,
        on_change=_choose_set,
        args=(widget,),
        placeholder="Your own sentences",
        help="Each set shows one thing well; its hint stands below.",
    )
    if chosen:
        st.caption(f":material/lightbulb: {sets[chosen].look_for}")
    shown = "\n".join(current)
    if st.session_state.get("w_sentences") != shown:
        # Not in every run: a value that is set goes to the browser, over what somebody is typing there just then.
        st.session_state["w_sentences"] = shown
    st.session_state["_editor_shown"] = (shown, current)
    st.text_area(
        "Sentences, one a line",
        key="w_sentences",
        height=max(110, min(300, 34 + 26 * sum(1 + len(line) // 34 for line in current or ("",)))),
        on_change=_edit_sentences,
        placeholder="Type a sentence, press Enter for the next",
        help=f"Up to {MAX_SENTENCES} sentences and {MAX_CHARACTERS:,} characters. Ctrl+Enter takes them over.",
    )
    if 1 < len(current) <= MAX_SENTENCES:
        panel = st.popover(
            "Reorder or remove", icon=":material/swap_vert:", width="stretch", key="arrange", on_change="rerun"
        )
        if panel.open:
            with panel:
                _arrange(current)


def _choose_set(widget: str) -> None:
    key = st.session_state[widget]
    # A page that has not drawn our last answer yet sends along what the widget before had, as if it were chosen.
    if key is not None and widget == st.session_state.get("_set_widget"):
        chosen = ready_made.ready_made_sets()[key]
        state.put("sentences", chosen.sentences)
        state.put("layers_view", chosen.view)  # the view its hint speaks of


def _edit_sentences() -> None:
    state.put("sentences", settings.clean_sentences(st.session_state["w_sentences"].splitlines()))


def _arrange(current: tuple[str, ...]) -> None:
    """One sentence at a time: choose it, then move or remove it."""
    index = min(st.session_state.get("_arranged", 0), len(current) - 1)
    st.session_state["w_arrange"] = index
    st.selectbox(
        "Sentence",
        range(len(current)),
        format_func=lambda row: f"{row + 1}  {current[row][:60]}",
        key="w_arrange",
        on_change=lambda: st.session_state.update(_arranged=st.session_state["w_arrange"]),
    )
    with st.container(horizontal=True):
        for label, icon, key, target, possible in (
            ("Up", ":material/arrow_upward:", "move_up", index - 1, index > 0),
            ("Down", ":material/arrow_downward:", "move_down", index + 1, index < len(current) - 1),
        ):
            st.button(label, icon=icon, key=key, disabled=not possible, on_click=_move, args=(current, index, target))
        st.button("Remove", icon=":material/close:", key="remove_sentence", on_click=_remove, args=(current, index))


def _move(seen: tuple[str, ...], row: int, target: int) -> None:
    """Swap two sentences of the list the person saw; a click that comes after the list changed does nothing."""
    if state.get("sentences") != seen:
        return
    lines = list(seen)
    lines[row], lines[target] = lines[target], lines[row]
    state.put("sentences", tuple(lines))
    st.session_state["_arranged"] = target


def _remove(seen: tuple[str, ...], row: int) -> None:
    if state.get("sentences") == seen:
        state.put("sentences", (*seen[:row], *seen[row + 1 :]))


def _more(page: str) -> None:
    fits = state.address_of(page)[1]
    chips.copy_link("copy_link", fits)
    if not fits:
        st.caption("Too long for a link, and a reload loses them: download the sentences under “More settings”.")
    with st.container(horizontal=True):
        st.button("Reset", key="reset", icon=":material/restart_alt:", on_click=state.reset, help="All defaults back")
        st.button(
            "Projector",
            key="projector_on",
            icon=":material/present_to_all:",
            help="Larger type, no sidebar",
            on_click=lambda: state.put("projector", True),
        )
    panel = st.expander("More settings", icon=":material/tune:", key="more_settings", on_change="rerun")
    if not panel.open:
        return
    with panel:
        backend = caching.models().find(state.get("model"))
        limit = backend.tokenization.max_length if backend is not None else 512
        controls.bind(
            "max_length",
            st.number_input,
            "Maximum length in tokens",
            default=limit,
            shown=lambda length: min(length, limit),
            taken=lambda length: None if length == limit else length,
            min_value=settings.LEAST_LENGTH,
            max_value=limit,
            help=caching.glossary()["maximum length"],
        )
        st.segmented_control(
            "A figure's camera saves",
            ["png", "svg"],
            format_func=str.upper,
            default="png",
            required=True,
            key="picture_format",
        )
        if not state.means_something("sentences", page):
            return
        st.download_button(
            "Download the sentences",
            "\n".join(state.get("sentences")).encode(),
            file_name="sentences.txt",
            mime="text/plain",
            key="download_sentences",
            icon=":material/download:",
            on_click="ignore",
        )
