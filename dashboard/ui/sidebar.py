"""The sidebar: the models and sentences that the page uses, the jobs, and the link that restores the page."""

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
    """Draw the sidebar, and return the slots for the model's status and for the running jobs.

    In projector mode there are no slots (None), only a button on the page that brings the sidebar back.
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
        if state.is_used("sentences", page):
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
        return f"{spec.title} · included"
    return f"{spec.title} · {'download' if hub.cached_folder(spec.key) is None else 'cached'}"


def _models(page: str) -> Any:
    free = settings.free_models_allowed()
    for name, label, none, help_text in (
        ("model", "Model", [], "The encoder that all pages examine."),
        ("model2", "Second model", [_NONE], "A second model to compare with the first."),
    ):
        if not state.is_used(name, page):
            continue
        chosen = state.get(name) or _NONE
        widget = f"w_{name}"
        st.session_state[widget] = chosen
        st.selectbox(
            label,
            list(dict.fromkeys([*none, *(spec.key for spec in CATALOG), chosen])),
            format_func=_label,
            key=widget,
            on_change=_choose_model,
            args=(name,),
            accept_new_options=free,
            help=help_text + (" You can also type a Hugging Face hub id or the path of a folder." if free else ""),
        )
        problem = st.session_state.pop(f"_{name}_problem", None)
        if problem:
            st.error(messages.escape(problem))
    slot = st.empty()
    status(slot)
    return slot


def _choose_model(name: str) -> None:
    entered = st.session_state[f"w_{name}"]
    if entered in (None, _NONE):
        state.put(name, EMBEDDED_KEY if name == "model" else "")
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


def status(slot: Any) -> None:
    """Write the chosen model's device, precision and memory into its slot in the sidebar."""
    if slot is None:
        return
    backend = caching.models().find(state.get("model"))
    if backend is None:
        slot.caption("The model is not in memory yet.")
        return
    from components.model.device import memory

    used = memory(backend.device)
    text = f"Runs on **{backend.device}** in {backend.precision} · {used.process / 2**30:.1f} GiB of memory in use"
    if used.device_used is not None and used.device_total is not None:
        text += f" · GPU {used.device_used / 2**30:.1f} of {used.device_total / 2**30:.0f} GiB"
    slot.caption(text)


def take_edits() -> None:
    """Apply the text in the editor if the editor's own callback did not run.

    Text typed just before a click on a page's link arrives together with the page change, and Streamlit then
    does not run the callbacks of the previous page.
    """
    typed, drawn = st.session_state.get("w_sentences"), st.session_state.get("_editor_shown")
    if typed is None or drawn is None:
        return
    drawn_text, drawn_sentences = drawn
    if typed != drawn_text and state.get("sentences") == drawn_sentences:
        _edit_sentences()


def _sentences() -> None:
    sets = ready_made.ready_made_sets()
    current = state.get("sentences")
    chosen = next((key for key, item in sets.items() if item.sentences == current), None)
    # A different widget for people's own sentences: a click right after typing still sends the set that was shown
    # before, and must not choose that set again.
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
        help="Each set shows one effect. A hint below the list says what to look for.",
    )
    if chosen:
        st.caption(f":material/lightbulb: {sets[chosen].look_for}")
    text = "\n".join(current)
    if st.session_state.get("w_sentences") != text:
        # Not in every run: setting a value sends it to the browser, where it replaces what a person is typing.
        st.session_state["w_sentences"] = text
    st.session_state["_editor_shown"] = (text, current)
    st.text_area(
        "Sentences, one per line",
        key="w_sentences",
        height=max(110, min(300, 34 + 26 * sum(1 + len(line) // 34 for line in current or ("",)))),
        on_change=_edit_sentences,
        placeholder="Type a sentence; press Enter to start the next",
        help=f"Up to {MAX_SENTENCES} sentences and {MAX_CHARACTERS:,} characters. Press Ctrl+Enter or click outside to "
        "apply.",
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
    # A browser that has not yet drawn our last answer sends the value of the previous widget as if it were chosen.
    if key is not None and widget == st.session_state.get("_set_widget"):
        chosen = ready_made.ready_made_sets()[key]
        state.put("sentences", chosen.sentences)
        state.put("layers_view", chosen.view)  # the view that its hint describes


def _edit_sentences() -> None:
    state.put("sentences", settings.clean_sentences(st.session_state["w_sentences"].splitlines()))


def _arrange(current: tuple[str, ...]) -> None:
    """Controls to choose one sentence, and to move or remove it."""
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
        for label, icon, key, target in (
            ("Up", ":material/arrow_upward:", "move_up", index - 1),
            ("Down", ":material/arrow_downward:", "move_down", index + 1),
        ):
            disabled = not 0 <= target < len(current)
            st.button(label, icon=icon, key=key, disabled=disabled, on_click=_move, args=(current, index, target))
        st.button("Remove", icon=":material/close:", key="remove_sentence", on_click=_remove, args=(current, index))


def _move(before: tuple[str, ...], row: int, target: int) -> None:
    """Swap two sentences of the list that the person saw; do nothing if the list has changed since."""
    if state.get("sentences") != before:
        return
    sentences = list(before)
    sentences[row], sentences[target] = sentences[target], sentences[row]
    state.put("sentences", tuple(sentences))
    st.session_state["_arranged"] = target


def _remove(before: tuple[str, ...], row: int) -> None:
    if state.get("sentences") == before:
        state.put("sentences", (*before[:row], *before[row + 1 :]))


def _more(page: str) -> None:
    fits = state.address_of(page)[1]
    chips.copy_link("copy_link", fits)
    if not fits:
        st.caption(
            "The sentences are too long for a link, and reloading the page loses them. Download them under “More settings”."
        )
    with st.container(horizontal=True):
        st.button(
            "Reset", key="reset", icon=":material/restart_alt:", on_click=state.reset, help="Restore all defaults"
        )
        st.button(
            "Projector",
            key="projector_on",
            icon=":material/present_to_all:",
            help="Larger type and no sidebar",
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
            to_widget=lambda length: min(length, limit),
            from_widget=lambda length: None if length == limit else length,
            min_value=settings.LEAST_LENGTH,
            max_value=limit,
            help=caching.glossary()["maximum length"],
        )
        st.segmented_control(
            "Picture format",
            ["png", "svg"],
            format_func=str.upper,
            default="png",
            required=True,
            key="picture_format",
            help="The format in which the camera button of a figure saves it.",
        )
        if not state.is_used("sentences", page):
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
