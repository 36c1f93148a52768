"""Pickers the pages share. Each owns its widget keys, keeps its value in dashboard.state, and returns it typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import streamlit as st

from components.analysis.tokens import default_positions, position_at
from components.model.trace import Pooling, TokenizedSentence
from dashboard import caching, ready_made, state
from dashboard.ui import chips

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.trace import Trace


def scale() -> float:
    """How much larger type and figures are drawn: 1, or more in projector mode."""
    return 1.35 if state.get("projector") else 1.0


def current_trace(backend: Backend) -> Trace:
    """The trace of the session's sentences. Raises InputError."""
    return backend.trace(state.get("sentences"), max_length=length_for(backend))


def current_tokens(backend: Backend) -> tuple[TokenizedSentence, ...]:
    """The tokens of the session's sentences, without a forward pass. Raises InputError."""
    return backend.tokenize(state.get("sentences"), max_length=length_for(backend))


def length_for(backend: Backend) -> int | None:
    """The chosen maximum length, where this model allows as much."""
    chosen = state.get("max_length")
    return None if chosen is None or chosen >= backend.tokenization.max_length else max(3, chosen)


def choice(
    setting: str, label: str, options: dict[str, str], help_text: str | None = None, show_label: bool = True
) -> str:
    """One of a few, as a segmented control; `options` maps values to what people read."""
    widget = f"w_{setting}"
    st.session_state[widget] = state.get(setting)
    st.segmented_control(
        label,
        list(options),
        format_func=options.__getitem__,
        key=widget,
        required=True,
        on_change=lambda: state.put(setting, st.session_state[widget]),
        help=help_text,
        label_visibility="visible" if show_label else "collapsed",
    )
    return str(state.get(setting))


def pooling(setting: str, label: str, names: Mapping[str, str], offered: Sequence[str]) -> Pooling:
    """One of the poolings that are `offered`; `names` maps every pooling to what people read."""
    chosen = offered_pooling(setting, names, offered)
    if len(offered) > 1:
        choice(setting, label, {name: names[name] for name in offered}, caching.glossary()["pooling"])
    return chosen


def offered_pooling(setting: str, names: Mapping[str, str], offered: Sequence[str]) -> Pooling:
    """The chosen pooling, replaced where it is none of those `offered`.

    An address may ask for the model's own vector, which only some models have, or for one that an index lacks.
    """
    asked = state.get(setting)
    if asked not in offered:
        if asked != state.default(setting):
            _refused(setting, f"The pooling “{names[asked]}”", ", ".join(names[name] for name in offered))
        if state.get(setting) not in offered:
            state.put(setting, offered[0])
    return cast(Pooling, state.get(setting))


def pick(setting: str, label: str, options: Mapping[str, str], help_text: str | None = None) -> str:
    """One of several, as a list that opens; `options` maps values to what people read."""
    widget = f"w_{setting}"
    st.session_state[widget] = state.get(setting)
    st.selectbox(
        label,
        list(options),
        format_func=options.__getitem__,
        key=widget,
        on_change=lambda: state.put(setting, st.session_state[widget]),
        help=help_text,
    )
    return str(state.get(setting))


def switch(setting: str, label: str, help_text: str | None = None, disabled: bool = False) -> bool:
    """An on/off switch."""
    widget = f"w_{setting}"
    st.session_state[widget] = state.get(setting)
    st.toggle(
        label,
        key=widget,
        on_change=lambda: state.put(setting, st.session_state[widget]),
        help=help_text,
        disabled=disabled,
    )
    return bool(state.get(setting))


def yardstick_switches() -> tuple[bool, bool]:
    """Centred vectors, and the band of unrelated ones."""
    words = caching.glossary()
    return switch("centred", "Centred vectors", words["centred"]), switch(
        "show_baseline", "Baseline", words["baseline"]
    )


def _refused(setting: str, asked: str, there: str) -> None:
    """Say that a choice does not fit (an address may ask for anything), and forget it."""
    state.put(setting, state.default(setting))
    st.warning(f"{asked} was asked for, but there is only {there} here.", icon=":material/link_off:")


def layer(n_layers: int, label: str = "Layer") -> int:
    """A layer 0..L; L before anybody chose."""
    chosen = state.get("layer")
    if chosen is not None and chosen > n_layers:
        _refused("layer", f"{label} {chosen}", f"0 to {n_layers}")
        chosen = None
    st.session_state["w_layer"] = n_layers if chosen is None else chosen
    st.slider(
        label,
        0,
        n_layers,
        key="w_layer",
        on_change=lambda: state.put("layer", st.session_state["w_layer"]),
        help=caching.glossary()["layer"],
    )
    return int(st.session_state["w_layer"])


def number(setting: str, label: str, least: int, most: int, default: int, help_text: str | None = None) -> int:
    """A whole number as a slider; `default` before anybody chose, or where the choice does not fit."""
    if least == most:
        return least
    widget = f"w_{setting}"
    chosen = state.get(setting)
    if chosen is not None and not least <= chosen <= most:
        _refused(setting, f"{label} {chosen}", f"{least} to {most}")
        chosen = None
    st.session_state[widget] = default if chosen is None else chosen
    st.slider(
        label,
        least,
        most,
        key=widget,
        on_change=lambda: state.put(setting, st.session_state[widget]),
        help=help_text,
    )
    return int(st.session_state[widget])


def sentence(sentences: Sequence[TokenizedSentence], setting: str = "sentence", label: str = "Sentence") -> int:
    """Which of the sentences, 0-based."""
    if len(sentences) == 1:
        return 0
    widget = f"w_{setting}"
    if state.get(setting) >= len(sentences):
        _refused(setting, f"Sentence {state.get(setting) + 1}", f"1 to {len(sentences)}")
    st.session_state[widget] = state.get(setting)
    st.selectbox(
        label,
        range(len(sentences)),
        format_func=lambda row: f"{row + 1}  {sentences[row].text[:70]}",
        key=widget,
        on_change=lambda: state.put(setting, st.session_state[widget]),
    )
    return int(st.session_state[widget])


def several(setting: str, label: str, count: int) -> tuple[int, ...]:
    """Some of the numbers 0..count-1; all of them when none is chosen."""
    widget = f"w_{setting}"
    chosen = tuple(number for number in state.get(setting) if number < count)
    if chosen != state.get(setting):
        _refused(setting, f"{label.split(' (')[0]} {', '.join(map(str, state.get(setting)))}", f"0 to {count - 1}")
        state.put(setting, chosen)
    st.session_state[widget] = list(chosen)
    st.multiselect(
        label,
        range(count),
        key=widget,
        on_change=lambda: state.put(setting, tuple(sorted(st.session_state[widget]))),
        placeholder="all",
    )
    return chosen or tuple(range(count))


def sentence_of(texts: Sequence[str], setting: str, label: str, default: int, none: str = "") -> int:
    """One of the session's texts, 0-based; with `none`, 0 stands for that and texts count from 1."""
    widget = f"w_{setting}"
    shift = 1 if none else 0
    chosen = state.get(setting)
    most = len(texts) - 1 + shift
    if chosen is not None and chosen > most:
        _refused(setting, f"{label} {chosen + 1 - shift}", f"1 to {len(texts)}")
        chosen = state.get(setting)
    st.session_state[widget] = min(default, most) if chosen is None else chosen
    st.selectbox(
        label,
        range(most + 1),
        format_func=lambda row: none if none and row == 0 else f"{row + 1 - shift}  {texts[row - shift][:60]}",
        key=widget,
        on_change=lambda: state.put(setting, st.session_state[widget]),
    )
    return int(st.session_state[widget])


def positions(sentences: Sequence[TokenizedSentence], model: str) -> tuple[int, ...]:
    """The token of interest in each sentence: chosen, or found again after a change, or the default.

    A choice is remembered by the characters it stands for, so that it survives another model's
    tokenization and sentences that were added, removed or moved.
    """
    defaults = default_positions(sentences, ready_made.focus_of(tuple(item.text for item in sentences)))
    chosen: tuple[int, ...] = state.get("tokens")
    anchors = st.session_state.get("_anchors")
    here = (model, tuple(item.text for item in sentences))
    if not chosen:
        result = defaults
    elif anchors is None or anchors["where"] == here:
        result = tuple(
            place if place < len(item) else default
            for place, item, default in zip(_padded(chosen, defaults), sentences, defaults, strict=True)
        )
    else:
        result = tuple(
            _found_again(item, anchors["spans"].get(item.text), default)
            for item, default in zip(sentences, defaults, strict=True)
        )
    if chosen and result != chosen:
        if anchors is None and any(place >= len(item) for place, item in zip(chosen, sentences, strict=False)):
            st.warning("The link's “t” names a token that its sentence does not have.", icon=":material/link_off:")
        state.put("tokens", () if result == defaults else result)
    st.session_state["_anchors"] = {
        "where": here,
        "spans": {
            item.text: (place, item.tokens[place].start, item.tokens[place].end)
            for item, place in zip(sentences, result, strict=True)
        },
    }
    return result


def _padded(chosen: tuple[int, ...], defaults: tuple[int, ...]) -> tuple[int, ...]:
    return chosen[: len(defaults)] + defaults[len(chosen) :]


def _found_again(item: TokenizedSentence, span: tuple[int, int, int] | None, default: int) -> int:
    if span is None:
        return default
    place, start, end = span
    if start == end:  # a special token: same place, if there is still a special token
        return place if place < len(item) and item.tokens[place].special else default
    found = position_at(item, start, end)
    return default if found is None else found


def token_chips(
    sentences: Sequence[TokenizedSentence],
    chosen: Sequence[int],
    key: str,
    *,
    rows: Sequence[int] | None = None,
    whole_word: bool = False,
    unknown_id: int | None = None,
    on_pick: Callable[[int, int], None] | None = None,
    also: int | None = None,
) -> None:
    """Chips of the sentences (or of some `rows`) with the chosen token of each marked; a click chooses.

    `also` is a second token to mark in each row drawn; `on_pick` replaces what a click does.
    """

    def marked(row: int) -> tuple[int, ...]:
        places = [chosen[row]] if also is None else [chosen[row], also]
        if not whole_word:
            return tuple(places)
        return tuple(piece for place in places for piece in sentences[row].word_positions(place))

    def pick(row: int, position: int) -> None:
        if on_pick is not None:
            on_pick(row, position)
            return
        new = list(chosen)
        new[row] = position
        state.put("tokens", tuple(new))

    chips.chips(
        [chips.ChipRow(row, sentences[row], marked(row)) for row in (range(len(sentences)) if rows is None else rows)],
        key=key,
        on_click=pick,
        unknown_id=unknown_id,
        scale=scale(),
    )


def chip_legend() -> None:
    """What the chips' looks mean, in one line."""
    st.caption(
        "Joined chips are pieces of one word · dashed: special token · striped: unknown to the vocabulary · "
        "filled: chosen. Click a chip, or move with the arrow keys."
    )
