"""Pickers the pages share. Each owns its widget keys, keeps its value in dashboard.state, and returns it typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import streamlit as st

from components.analysis.tokens import default_positions, position_at
from components.model.trace import Pooling, TokenizedSentence
from dashboard import caching, ready_made, state
from dashboard.ui import chips, messages

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


def _same(value: Any) -> Any:
    return value


def bind(
    setting: str,
    widget: Callable[..., Any],
    label: str,
    *,
    options: Mapping[Any, str] | Sequence[Any] | None = None,
    default: Any = None,
    shown: Callable[[Any], Any] = _same,
    taken: Callable[[Any], Any] = _same,
    named: Callable[[Any], str] = str,
    then: Callable[[], None] | None = None,
    key: str = "",
    **how: Any,
) -> Any:
    """Draw a widget for a setting, and return what it shows.

    What a widget offers binds only the browser: anything can come over the websocket, and a link or the choice made
    for another model can name what is not there. So every value is checked here, on the server, and one that was not
    offered is refused.

    options: what there is to choose from; a mapping says how each is written. default: what is shown before anybody
    chose, and instead of a choice that is not there. shown, taken: from the setting's value to the widget's, and back.
    named: how a refused choice is written. then: called after a choice. `how` goes to the widget; give bounds by name.
    """
    key = key or f"w_{setting}"
    if isinstance(options, Mapping):
        how["format_func"] = options.__getitem__
    if options is not None:
        how["options"] = list(options)
    chosen, original = state.get(setting), state.default(setting)
    value = default if chosen is None else shown(chosen)
    if value is not None and not _fits(value, how):
        if chosen != original:
            bounds = (
                f"there is only {how['min_value']} to {how['max_value']}" if "min_value" in how else "it is not offered"
            )
            text = f"{label} {named(chosen)} was asked for, but {bounds} here."
            st.warning(messages.escape(text), icon=":material/link_off:")
        value = shown(original) if default is None else default
        state.put(setting, None if original is None else taken(value))

    def changed() -> None:
        given = st.session_state[key]
        given = tuple(dict.fromkeys(given)) if isinstance(given, list) else given
        if _fits(given, how):
            state.put(setting, taken(given))
            if then is not None:
                then()

    if options is not None or not isinstance(value, str) or st.session_state.get(key) != value:
        # A text is set only where it differs: what is set goes to the browser, over what is being typed there.
        st.session_state[key] = list(value) if isinstance(value, tuple) else value
    widget(label, key=key, on_change=changed, **how)
    return value


def _fits(value: Any, how: Mapping[str, Any]) -> bool:
    """Whether a widget with these arguments offers a value."""
    offered = how.get("options")
    if isinstance(value, tuple):
        most = how.get("max_selections") or len(value)
        return offered is not None and len(value) <= most and all(item in offered for item in value)
    if offered is not None:
        return value in offered
    if isinstance(value, int | float):
        return bool(how.get("min_value", value) <= value <= how.get("max_value", value))
    return isinstance(value, str)


def choice(
    setting: str,
    label: str,
    options: Mapping[str, str],
    help_text: str | None = None,
    show_label: bool = True,
    **how: Any,
) -> str:
    """One of a few, as a segmented control; `options` maps values to what people read."""
    visibility = "visible" if show_label else "collapsed"
    return str(
        bind(
            setting,
            st.segmented_control,
            label,
            options=options,
            required=True,
            help=help_text,
            label_visibility=visibility,
            **how,
        )
    )


def pooling(setting: str, label: str, names: Mapping[str, str], offered: Sequence[str]) -> Pooling:
    """One of the poolings that are `offered`; `names` maps every pooling to what people read.

    An address may ask for the model's own vector, which only some models have, or for one that an index lacks.
    """
    if len(offered) == 1:
        state.put(setting, offered[0])
        return cast(Pooling, offered[0])
    return cast(
        Pooling,
        choice(
            setting,
            label,
            {name: names[name] for name in offered},
            caching.glossary()["pooling"],
            default=state.default(setting) if state.default(setting) in offered else offered[0],
            named=lambda name: f"“{names[name]}”",
        ),
    )


def common_poolings(models: Sequence[Backend]) -> tuple[Pooling, ...]:
    """The poolings that all of some models have, so that their curves show the same thing."""
    return tuple(name for name in models[0].poolings if all(name in model.poolings for model in models))


def pick(setting: str, label: str, options: Mapping[str, str], help_text: str | None = None, **how: Any) -> str:
    """One of several, as a list that opens; `options` maps values to what people read."""
    return str(bind(setting, st.selectbox, label, options=options, help=help_text, **how))


def switch(setting: str, label: str, help_text: str | None = None, disabled: bool = False) -> bool:
    """An on/off switch."""
    return bool(bind(setting, st.toggle, label, help=help_text, disabled=disabled))


def yardstick_switches() -> tuple[bool, bool]:
    """Centred vectors, and the band of unrelated ones."""
    words = caching.glossary()
    return switch("centred", "Centred vectors", words["centred"]), switch(
        "show_baseline", "Baseline", words["baseline"]
    )


def layer(n_layers: int, label: str = "Layer") -> int:
    """A layer 0..L; L before anybody chose."""
    return number("layer", label, 0, n_layers, n_layers, caching.glossary()["layer"])


def number(setting: str, label: str, least: int, most: int, default: int, help_text: str | None = None) -> int:
    """A whole number as a slider; `default` before anybody chose, or where the choice does not fit."""
    if least == most:
        return least
    return int(bind(setting, st.slider, label, default=default, min_value=least, max_value=most, help=help_text))


def sentence(sentences: Sequence[TokenizedSentence], setting: str = "sentence", label: str = "Sentence") -> int:
    """Which of the sentences, 0-based."""
    if len(sentences) == 1:
        return 0
    return sentence_of([item.text for item in sentences], setting, label, 0)


def several(setting: str, label: str, count: int) -> tuple[int, ...]:
    """Some of the numbers 0..count-1; all of them when none is chosen."""
    asked = state.get(setting)
    there = tuple(number for number in asked if number < count)
    if there != asked:
        st.warning(
            f"{label.split(' (')[0]} {', '.join(map(str, asked))} was asked for, but there is only 0 to {count - 1} here.",
            icon=":material/link_off:",
        )
        state.put(setting, there)
    picked = bind(
        setting,
        st.multiselect,
        label,
        options=range(count),
        taken=lambda numbers: tuple(sorted(numbers)),
        placeholder="all",
    )
    return picked or tuple(range(count))


def sentence_of(texts: Sequence[str], setting: str, label: str, default: int, none: str = "") -> int:
    """One of the session's texts, 0-based; with `none`, 0 stands for that and texts count from 1."""
    shift = 1 if none else 0
    names = {row + shift: f"{row + 1}  {text[:70]}" for row, text in enumerate(texts)}
    options = {0: none, **names} if none else names
    default = min(default, len(options) - 1)
    return int(
        bind(setting, st.selectbox, label, options=options, default=default, named=lambda row: str(row + 1 - shift))
    )


def positions(sentences: Sequence[TokenizedSentence], model: str) -> tuple[int, ...]:
    """The token of interest in each sentence: chosen, or found again after a change, or the default.

    A choice is remembered by the characters it stands for, so that it survives another model's
    tokenization and sentences that were added, removed or moved.
    """
    defaults = default_positions(sentences, ready_made.focus_of(tuple(item.text for item in sentences)))
    chosen: tuple[int, ...] = state.get("tokens")
    anchors = st.session_state.get("_anchors")
    tokenized = (model, tuple(item.text for item in sentences))
    if not chosen:
        result = defaults
    elif anchors is None or anchors["where"] == tokenized:
        result = tuple(
            position if position < len(item) else default
            for position, item, default in zip(_padded(chosen, defaults), sentences, defaults, strict=True)
        )
    else:
        result = tuple(
            _found_again(item, anchors["spans"].get(item.text), default)
            for item, default in zip(sentences, defaults, strict=True)
        )
    if chosen and result != chosen:
        if anchors is None and any(position >= len(item) for position, item in zip(chosen, sentences, strict=False)):
            st.warning("The link's “t” names a token that its sentence does not have.", icon=":material/link_off:")
        state.put("tokens", () if result == defaults else result)
    st.session_state["_anchors"] = {
        "where": tokenized,
        "spans": {
            item.text: (position, item.tokens[position].start, item.tokens[position].end)
            for item, position in zip(sentences, result, strict=True)
        },
    }
    return result


def _padded(chosen: tuple[int, ...], defaults: tuple[int, ...]) -> tuple[int, ...]:
    return chosen[: len(defaults)] + defaults[len(chosen) :]


def _found_again(item: TokenizedSentence, span: tuple[int, int, int] | None, default: int) -> int:
    if span is None:
        return default
    position, start, end = span
    if start == end:  # a special token: same place, if there is still a special token
        return position if position < len(item) and item.tokens[position].special else default
    position_now = position_at(item, start, end)
    return default if position_now is None else position_now


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
        positions = [chosen[row]] if also is None else [chosen[row], also]
        if not whole_word:
            return tuple(positions)
        return tuple(piece for position in positions for piece in sentences[row].word_positions(position))

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
