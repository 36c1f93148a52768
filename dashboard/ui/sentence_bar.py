"""The session's sentences, at the top of every page that uses them: one line, which unfolds into an editor."""

from __future__ import annotations

from functools import partial

import streamlit as st

from components.model.tokenization import MAX_CHARACTERS, MAX_SENTENCES
from dashboard import ready_made, settings, state
from dashboard.ui import browser, controls, messages, wording

EDITOR = "sentence_editor"
_KEPT, _PUT = "_own_sentences", "_put_sentences"  # session keys: what `replace` took away, and what it put there
_KEPT_FOR = "_own_sentences_for"  # session key: the first words of the message, which name what took them away
BY_LESSON = "The lesson's sentences are now in place of"
BY_LECTURE = "lecture"  # which says nothing: it shows its pictures alone, and its end brings the sentences back
MOST_TYPED = 2 * MAX_CHARACTERS  # what the editor may send; the pages say what they cannot show


def take_edits() -> None:
    """Apply the text that the editor sent; call it before anything of the page is drawn.

    The editor has no callback for this, because Streamlit runs none of the previous page's callbacks when a click
    on a page's link arrives together with the text.
    """
    edit = st.session_state[EDITOR].get("edit") if EDITOR in st.session_state else None
    if not isinstance(edit, dict):
        return
    text = str(edit.get("text", ""))
    mark = (str(edit.get("version")), hash(text))
    if mark == st.session_state.get("_edit"):
        return
    st.session_state["_edit"] = mark
    if len(text) > MOST_TYPED:
        text = text[:MOST_TYPED]
        state.notice(f"The text was too long: only its first {MOST_TYPED:,} characters were kept.")
    st.session_state["_typed"] = text
    state.put("sentences", settings.clean_sentences(text.splitlines()))


def replace(sentences: tuple[str, ...]) -> None:
    """Put other sentences in the place of the session's. A person's own are kept, and a message says how to get them back.

    Ready-made sentences are not kept, because the bar offers them anyway.
    """
    if keep_own(sentences, "This pair is now in place of"):
        state.put("sentences", sentences)


def keep_own(sentences: tuple[str, ...], what: str = BY_LESSON) -> bool:
    """Before these sentences are put in the place of the session's: keep a person's own, and say how to get them back.

    Returns whether they are others than the session's.
    """
    take_edits()  # what was typed before must not come after
    current: tuple[str, ...] = state.peek("sentences")
    if current == sentences:
        return False
    if own() and sentences:
        st.session_state.update({_KEPT: current, _KEPT_FOR: what})
        them = "it" if len(current) == 1 else "them"
        # Only as long as the new ones are there: Back brings the old ones back, and with them the button is gone.
        if what != BY_LECTURE:
            state.notice_while(
                "sentences",
                sentences,
                f"{what} your {_counted(current)}. To get {them} back, open "
                "“Sentences” at the top and press “Bring back my sentences”.",
            )
    st.session_state[_PUT] = sentences
    return True


def own() -> tuple[str, ...]:
    """The session's sentences, if a person has typed them; none where they are ready-made or were put there."""
    current: tuple[str, ...] = state.peek("sentences")
    is_put = ready_made.is_ready_made(current) or current == st.session_state.get(_PUT)
    return () if is_put else current


def bring_back(after: str = BY_LESSON) -> None:
    """Put a person's own sentences back where those of a lesson, or of a lecture, are still in their place."""
    take_edits()  # who types in a lesson wants these sentences
    kept = st.session_state.get(_KEPT)
    is_untouched = state.peek("sentences") == st.session_state.get(_PUT)
    if kept and is_untouched and st.session_state.get(_KEPT_FOR) == after:
        _bring_back()
        are = "is" if len(kept) == 1 else "are"
        state.notice_while("sentences", kept, f"Your {_counted(kept)} {are} back.")


def _counted(sentences: tuple[str, ...]) -> str:
    """A person's own sentences behind "your"."""
    return "sentence" if len(sentences) == 1 else wording.counted(len(sentences), "sentence")


def _bring_back() -> None:
    take_edits()
    kept = st.session_state.pop(_KEPT, None)
    if kept is not None:
        state.put("sentences", kept)


def draw(page: str) -> None:
    """Draw the bar of a page: folded when the page opens, whether or not it was open on the page before."""
    sentences: tuple[str, ...] = state.peek("sentences")
    label = "  ·  ".join(messages.escape(text[:200]) for text in sentences[:8]) or "No sentence yet: type one here"
    # A key of its own on each page: the browser keeps what has the same key open from page to page.
    with st.container(key="sentence_bar"):
        bar = st.expander(f"**Sentences**  {label}", key=f"sentence_bar_{page}", icon=":material/edit_note:")
    with bar:  # always drawn: an expander that tells the server when it opens would close whenever its label changes
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            _ready_made(sentences)
            if 1 < len(sentences) <= MAX_SENTENCES:
                _arrange(sentences)
            st.download_button(
                "Save",
                lambda: "\n".join(sentences).encode(),  # made on the click, as figures.download does
                file_name="sentences.txt",
                mime="text/plain",
                key="download_sentences",
                icon=":material/download:",
                on_click="ignore",
                help="Download the sentences as a text file",
            )
            if st.session_state.get(_KEPT) not in (None, sentences):
                st.button(
                    "Bring back my sentences",
                    key="bring_back",
                    icon=":material/undo:",
                    on_click=_bring_back,
                    help="The sentences that a pair replaced",
                )
        _editor(sentences)


def _editor(sentences: tuple[str, ...]) -> None:
    """The text field. Its version changes when something other than typing changed the sentences."""
    typed = st.session_state.get("_typed")
    if typed is None or settings.clean_sentences(typed.splitlines()) != sentences:
        st.session_state["_typed"] = typed = "\n".join(sentences)
        st.session_state["_text_version"] = st.session_state.get("_text_version", 0) + 1
    browser.editor(
        EDITOR,
        label="One sentence per line",
        text=typed,
        version=st.session_state.setdefault("_text_version", 0),
        hint=f"The page follows while you type. Up to {MAX_SENTENCES} sentences and {MAX_CHARACTERS:,} characters.",
        placeholder="Type a sentence; press Enter to start the next",
        rows=max(3, min(10, sum(1 + len(line) // 90 for line in sentences or ("",)))),
    )


def _ready_made(sentences: tuple[str, ...]) -> None:
    sets = ready_made.ready_made_sets()
    chosen = next((key for key, item in sets.items() if item.sentences == sentences), None)
    # A different widget for people's own sentences: a click right after typing still sends the set that was shown
    # before, and must not choose that set again.
    widget = "w_set" if chosen else "w_set_own"
    st.session_state["_set_widget"] = widget
    st.session_state[widget] = chosen
    controls.checked(
        st.selectbox,
        "Ready-made sentences",
        options=sets,
        format_func=lambda key: sets[key].title,
        key=widget,
        on_choice=partial(_choose_set, widget),
        placeholder="Your own sentences",
        help="Each set shows one effect.",
    )


def _choose_set(widget: str, key: str) -> None:
    take_edits()  # what was typed before the choice must not come after it
    chosen = ready_made.ready_made_sets()[key]
    # A browser that has not yet drawn our last answer sends the value of the previous widget as if it were chosen.
    if widget == st.session_state.get("_set_widget"):
        state.put("sentences", chosen.sentences)
        # The view that its hint describes.
        state.open_view("sentence-curves" if chosen.view == "sentences" else "one-word")


def _arrange(current: tuple[str, ...]) -> None:
    """Controls to choose one sentence, and to move or remove it."""
    panel = st.popover("Reorder or remove", icon=":material/swap_vert:", key="arrange", on_change="rerun")
    if not panel.open:
        return
    index = min(st.session_state.get("_arranged", 0), len(current) - 1)
    st.session_state["w_arrange"] = index
    with panel:
        controls.checked(
            st.selectbox,
            "Sentence",
            options=range(len(current)),
            format_func=lambda row: f"{row + 1}  {current[row][:60]}",
            key="w_arrange",
            on_choice=lambda row: st.session_state.update(_arranged=row),
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
    take_edits()
    if state.peek("sentences") != before:
        return
    sentences = list(before)
    sentences[row], sentences[target] = sentences[target], sentences[row]
    state.put("sentences", tuple(sentences))
    st.session_state["_arranged"] = target


def _remove(before: tuple[str, ...], row: int) -> None:
    take_edits()
    if state.peek("sentences") == before:
        state.put("sentences", (*before[:row], *before[row + 1 :]))
