"""Messages to people: notices, errors, empty states, notes on models, truncated text."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.runtime.scriptrunner import RerunException, StopException

from components.errors import UserError
from components.model import device
from components.model.catalog import EMBEDDED_KEY
from components.operator_settings import CACHE
from dashboard import ready_made, state
from dashboard.jobs import verification
from dashboard.ui import wording
from dashboard.ui.wording import escape as escape

if TYPE_CHECKING:
    from components.analysis.similarity.baseline import Baseline
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence, Trace


log = logging.getLogger(__name__)
# How writing a file fails where the folder is read-only or the disk is full, and how reading can fail too.
_FAILED_WRITES = {errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FAILED_FILES = {*_FAILED_WRITES, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EIO}
NO_BASELINE = (
    "There is no baseline for this model: its tokenizer cannot tell the words of the English sample apart, or the model "
    "cannot read them."
)
FAILED_BASELINE = (
    "The baseline of this model could not be measured: the server's log says why. It is tried again later."
)


def no_baseline(*baselines: Baseline) -> str:
    """Why these models have no baseline."""
    return FAILED_BASELINE if any(baseline.has_failed for baseline in baselines) else NO_BASELINE


def notices(page: str | None = None) -> None:
    """Show the current notices: those about a page's settings, or without a page the others.

    A page that has some of its own shows all in one box (dashboard/main.py then removes the others' box). They may quote
    the link, so nothing in them may act as markup.
    """
    texts = list(dict.fromkeys(state.current_notices(page)))
    if not texts:
        return
    if page is not None:
        texts = list(dict.fromkeys([*state.current_notices(), *texts]))
    lines = [escape(text) for text in texts]
    st.warning(lines[0] if len(lines) == 1 else "\n".join(f"- {line}" for line in lines), icon=":material/link_off:")


def lost_device() -> None:
    """Say that the server's accelerator computes nothing any more, where that is so."""
    if device.goes_on_with_cpu():
        st.warning(
            f"**This server's GPU ({', '.join(device.lost())}) has failed.** Models run on the CPU until the server is started "
            "again: the numbers are the same, but everything takes longer. Tell whoever runs it.",
            icon=":material/memory:",
        )
    elif device.lost():
        st.error(
            f"**This server's GPU ({', '.join(device.lost())}) has failed.** What needs the model cannot be computed until the "
            "server is started again. Tell whoever runs it.",
            icon=":material/memory:",
        )


def explain(problem: BaseException, doing: str) -> None:
    """Show an error as a message. Only a UserError is written for people; of the system's own the reason is said.

    Nothing is logged here, since a page shows the error of a job again whenever it is drawn: the queue has logged it.
    """
    if isinstance(problem, UserError):
        st.error(f"**{escape(problem.problem)}** {escape(problem.expected)}\n\n{escape(problem.fix)}")
        return
    failed = device.failure(problem)
    if failed is not None:
        explain(failed, doing)
        return
    if isinstance(problem, OSError) and problem.errno in _FAILED_FILES:  # no path: a page names none of the server's
        tried = "write" if problem.errno in _FAILED_WRITES else "read or write"
        st.error(
            f"**The server could not {tried} a file while {doing}: {escape(problem.strerror or '')}.** Vectors and training "
            "runs are kept in the server's cache folder, which needs room and permission to write.\n\nTell whoever runs "
            f"this server; the setting {escape(CACHE.variable)} names another folder."
        )
        return
    st.error(
        f"**Something went wrong while {doing}.** This is an error in the dashboard, not yours. The server's log has "
        "the details.\n\nChange the sentences or the model, or use “Restore all defaults” under “More settings” in the sidebar."
    )


def guarded(draw: Callable[[], None], doing: str) -> None:
    """Run a page's body; show an error as a message, never as a traceback, which goes to the server's log."""
    try:
        draw()
    except (RerunException, StopException, KeyboardInterrupt, SystemExit):  # Streamlit repeats or ends a run by them
        raise
    except BaseException as problem:  # a library's panic is no Exception, and would end the session without a word
        if not isinstance(problem, UserError):  # those are no fault of the server
            log.error("%s failed", doing, exc_info=problem)
        explain(problem, doing)


def no_sentences() -> bool:
    """Whether the session has no sentences; if so, the empty state is drawn."""
    if state.get("sentences"):
        return False
    st.info(
        "**No sentence yet.** Type sentences at the top of the page, one per line, or start with an example.",
        icon=":material/edit_note:",
    )
    if st.button("Start with the bank sentences", key="start_example", type="primary"):
        state.put("sentences", ready_made.ready_made_sets()["bank"].sentences)
        st.rerun()  # the whole page, because the sidebar shows the sentences too
    return True


def hint(view: str) -> None:
    """What to look for, if the session's sentences are a ready-made set whose hint describes this view.

    The hints say what the included model does.
    """
    chosen = ready_made.set_of(state.get("sentences"))
    if chosen is not None and chosen.view == view and state.get("model") == EMBEDDED_KEY:
        st.markdown(f":material/lightbulb: {chosen.look_for}")


def needs_second_sentence(texts: Sequence[str]) -> bool:
    """Whether there is only one sentence where sentences are compared; if so, a hint is drawn."""
    if len(texts) > 1:
        return False
    st.info("One sentence has no other to compare with. Add a second one at the top of the page.")
    return True


def model_notes(backend: Backend) -> None:
    """Say whether a model gives the vectors that it was published for, which of its parts are not applied here, and whether a
    session file had another one.
    """
    expected = st.session_state.get(state.EXPECTED_REVISIONS, {}).get(backend.spec.key)
    if expected not in (None, backend.revision):
        st.warning(
            f"**{escape(backend.spec.title)}** is not the same here as where this session was saved: revision "
            f"{escape(wording.shortened(backend.revision, 16))}, there {escape(wording.shortened(expected, 16))}. "
            "Numbers can differ.",
            icon=":material/difference:",
        )
    _verified(backend)
    length = state.length_within(backend.tokenization.max_length, backend.own_max_length)
    if length is not None and length > backend.own_max_length:
        st.caption(
            f":material/straighten: Read to {length:,} tokens, as chosen; **{escape(backend.spec.title)}** was published for "
            f"{backend.own_max_length:,}."
        )
    if backend.not_applied:
        st.warning(f"**{escape(backend.spec.title)}:** {escape(' '.join(backend.not_applied))}", icon=":material/info:")
    _authors_prompts(backend)


def _put_model(slots: Sequence[str], key: str) -> None:
    for slot in slots:
        state.put(slot, key)


def _authors_prompts(backend: Backend) -> None:
    """Offer the prompts that a model's authors describe and its files do not have, or say that they are in use."""
    spec = backend.spec
    if not spec.prompts or (not spec.with_prompts and any(backend.sentence_config.prompts.values())):
        return
    named = " and ".join(f"“{text}” before {'queries' if role == 'query' else 'texts'}" for role, text in spec.prompts)
    title = escape(spec.title.removesuffix(" with its authors' prompts"))
    said = "with it, as chosen" if spec.with_prompts else "without it, as its files say nothing of it"
    slots = [setting for setting in ("model", "model2") if state.peek(setting) == spec.key]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"**{title}** was trained with {escape(named)}. Texts are read {said}.", width="content")
        st.button(
            "Use none" if spec.with_prompts else "Use it",
            key=f"authors_prompts_{spec.key}",
            type="tertiary",
            disabled=not slots,
            on_click=_put_model,
            args=(slots, spec.other_key),
        )


def _verified(backend: Backend) -> None:
    """Say in a line what came of comparing a model with sentence-transformers; nothing as long as that is not known."""
    found = verification.find(backend)
    if found is None:
        return
    title = escape(backend.spec.title)
    if found.is_equal is False:
        st.warning(f"**{title}:** {escape(found.sentence())} {escape(found.report())}", icon=":material/warning:")
    else:
        icon = ":material/verified:" if found.is_equal else ":material/info:"
        st.caption(f"{icon} **{title}:** {escape(found.sentence())}")


def cross_encoder_note(backends: Sequence[Backend], after: Sequence[Backend] = ()) -> None:
    """Where sentence vectors are compared: say that those of a cross-encoder are not made for it, and what it is for.

    `after` are models that the page has handled before. If one of them is a cross-encoder, the note is short.
    """
    names = " and ".join(f"**{escape(model.spec.title)}**" for model in backends if model.is_cross_encoder)
    if not names:
        return
    if any(model.is_cross_encoder for model in after):
        st.caption(f":material/info: {names} is a cross-encoder too: the same holds for its vectors.")
        return
    verb, possessive = ("were", "their") if " and " in names else ("was", "its")
    st.warning(
        f"{names} {verb} trained to give scores, usually to two texts that are read together (a cross-encoder), and not to "
        f"make vectors that can be compared. This page shows cosines of {possessive} pooled hidden states. Low numbers do "
        "not mean that the model is weak. Use a cross-encoder to score a few candidates again that another model has found "
        "(re-ranking). The page Inside shows how it reads two texts together. To search with vectors or to compare "
        "them, choose a sentence encoder such as all-MiniLM-L6-v2.",
        icon=":material/info:",
    )


def head_note(backends: Sequence[Backend], pooling: str, layer: int | None = None) -> None:
    """Say how the model's own vector is made, and that it is trained for the last layer; `layer` None: all are shown."""
    if pooling != "own":
        return
    for backend in backends:
        last, head = backend.facts.layers, backend.loaded.head
        if head is None:
            continue
        text = (
            f"The model's own vector of {escape(backend.spec.title)}, as it was published: the {head.pooling_name}"
            f"{''.join(f', then {step}' for step in head.step_names)}; {head.size} numbers."
        )
        if layer != last:
            text += f" It was trained on layer {last}; here the same is done with other layers too."
        st.caption(text)


def truncation(
    sentences: Sequence[TokenizedSentence], model: str = "", names: Sequence[tuple[str, str]] | None = None
) -> None:
    """Say in a line what did not reach the model, with the text in a popover; `model` is its name if there are two.

    `names` are those of each sentence and of the second text that was read with it.
    """
    whose = f"{escape(model)}'s" if model else "the chosen" if state.get("max_length") else "the model's"
    for number, sentence in enumerate(sentences, start=1):
        for item in sentence.dropped:
            text_names = (f"sentence {number}", "the second text") if names is None else names[number - 1]
            text_name = text_names[item.of_pair]
            verb = " is" if item.tokens == 1 else "s are"
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(
                    f":orange[:material/content_cut:] **{item.tokens:,} token{verb} truncated** of {text_name}: it is longer "
                    f"than {whose} maximum length.",
                    width="content",
                )
                with st.popover("Truncated text", width="content"):
                    where = (
                        f"its beginning up to character {item.end:,}: this model's tokenizer keeps the end of {text_name}"
                        if item.is_beginning
                        else f"all after the first {item.start:,} characters of {text_name}"
                    )
                    st.caption(f"The model did not see this text, {where}:")
                    st.text(item.text if len(item.text) <= 1_500 else item.text[:1_500] + " …")


def unreadable(sentences: Sequence[TokenizedSentence], unknown_id: int | None, names: Sequence[str]) -> None:
    """Say in a line which characters or words the model cannot read: one token stands for all of them."""
    for sentence, name in zip(sentences, names, strict=True):
        unknown = [token for token in sentence.tokens if token.id == unknown_id and token.word is not None]
        surfaces = dict.fromkeys(sentence.surface(token.position) for token in unknown)
        lost = [text for text in surfaces if text.strip() != unknown[0].piece]  # not where “[UNK]” itself was typed
        if lost:
            quoted = ", ".join(f"“{escape(wording.shortened(text, 20))}”" for text in lost[:5])
            more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
            st.markdown(
                f":orange[:material/visibility_off:] The model cannot read **{quoted}**{more} in {name}: not in its "
                f"vocabulary. The token {escape(unknown[0].piece)} stands there instead, the same for all that is unknown."
            )


def truncations(models: Sequence[Backend], traces: Sequence[Trace]) -> None:
    """Show the truncated text of each model, with the models' names if there are two."""
    for model, trace in zip(models, traces, strict=True):
        truncation(trace.sentences, model.spec.title if len(models) > 1 else "")
