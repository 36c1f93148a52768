"""Controls that the pages share. Each keeps its value in dashboard.state and returns it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import streamlit as st

from components.analysis.first_look.words import Interest, chosen_everywhere
from components.analysis.first_look.words import interest as words_of_interest
from components.analysis.matched_words import word_vectors
from components.analysis.tokens import position_at
from components.charts import theme
from components.charts.stand_alone.page import PagePart
from components.model.trace import Pooling, TokenizedSentence
from components.retrieval.fusion.settings import MOST_DEPTH, MOST_RRF_K, FusionSettings
from components.shown_code.arrays import Input
from dashboard import caching, ready_made, state
from dashboard.sharing import lecture, report
from dashboard.ui import browser, wording

if TYPE_CHECKING:
    import numpy as np

    from components.analysis.first_look.words import Word
    from components.model.backend import Backend
    from components.model.trace import Trace

_SCREEN = "_screen_factor"  # session key: how much larger than usual the window of the projector is


def refuse_unavailable(page: str, models: Backend | Sequence[Backend]) -> None:
    """Restore the default of layers, blocks and heads that the models do not have, and say so.

    A control refuses such a value when it is drawn; this covers those settings of the open view for which it draws none.
    """
    facts = [model.facts for model in (models if isinstance(models, Sequence) else [models])]
    layers, heads = max(item.layers for item in facts), max(item.heads for item in facts)
    for names, label, most in (
        (("layer", "layer2", "map_first", "sense_layer"), "Layer", layers),
        (("block", "first_block", "second_block", "flow_block", "inner_block"), "Block", layers - 1),
        (("head",), "Head", heads - 1),
    ):
        for name in names:
            value = state.peek(name)
            # Without blocks the page is not drawn (`View.needs`): its settings wait for another model.
            if state.is_in_view(name, page) and value is not None and value > most >= 0:
                message = f"{label} {value} is not available in this model. Choose from 0 to {most}."
                state.refuse(name, state.default(name), message)


def is_dark() -> bool:
    """Whether the page has dark colours."""
    return st.context.theme.type == "dark"


def scale() -> float:
    """The size factor of type and figures: 1, or more in projector mode."""
    factor = screen_factor()
    return theme.PROJECTED * (factor if factor < 1 else (1 + factor) / 2) if state.get("projector") else 1.0


def list_scale() -> float:
    """The size factor of lists of texts: a projector's page has larger type anyway, and still larger texts would be cut."""
    return scale() / theme.PROJECTED if state.get("projector") else 1.0


def screen_factor() -> float:
    """How large the window is in which a lecture is given, beside 1440 × 900 pixels: 0.75 to 2, as the browser has said.

    Elsewhere 1: beside its controls a larger figure would end below the screen.
    """
    return float(st.session_state.get(_SCREEN, 1.0)) if state.get("projector") and lecture.is_given() else 1.0


def take_screen_factor(sent: object) -> None:
    """Keep what the browser says of the projector's window."""
    if isinstance(sent, int | float) and not isinstance(sent, bool) and 0.75 <= sent <= 2:
        st.session_state[_SCREEN] = sent


def current_trace(backend: Backend) -> Trace:
    """The trace of the session's sentences. Raises InputError."""
    return backend.trace(state.get("sentences"), max_length=length_for(backend))


def current_input(backend: Backend) -> Input:
    """The same for the code of a figure."""
    return Input(backend, state.get("sentences"), length_for(backend))


def current_tokens(backend: Backend) -> tuple[TokenizedSentence, ...]:
    """The tokens of the session's sentences, without a forward pass. Raises InputError."""
    return backend.tokenize(state.get("sentences"), max_length=length_for(backend))


def length_for(backend: Backend) -> int | None:
    """The chosen maximum length in tokens, within what this model can read; None for the length it was published with."""
    return state.length_within(backend.tokenization.max_length, backend.own_max_length)


def _unchanged(value: Any) -> Any:
    return value


def bind(
    setting: str,
    widget: Callable[..., Any],
    label: str,
    *,
    options: Mapping[Any, str] | Sequence[Any] | None = None,
    default: Any = None,
    to_widget: Callable[[Any], Any] = _unchanged,
    from_widget: Callable[[Any], Any] = _unchanged,
    describe: Callable[[Any], str] = str,
    after_change: Callable[[], None] | None = None,
    offers: str = "",
    key: str = "",
    max_chars: int | None = None,
    **arguments: Any,
) -> Any:
    """Draw a widget for a setting, and return the widget's value.

    Every value is checked here, on the server, and a value that the widget does not offer is refused: a browser can
    send anything over the websocket, and a link or a choice made for another model can name a value that does not
    exist here.

    options: the values to choose from; a mapping gives the text of each. default: the value before a person chooses,
    and in place of a refused one. to_widget, from_widget: convert the setting's value to the widget's, and back.
    describe: how a warning writes a refused value; offers: what it says there is instead. after_change: called after a
    choice. max_chars: of a longer text only the beginning is kept, with a notice. The other arguments are passed to the
    widget; give bounds by name.
    """
    key = key or f"w_{setting}"
    restored = state.restorations(setting)
    if restored:
        key = f"{key}_{restored}"
    if isinstance(options, Mapping):
        arguments["format_func"] = options.__getitem__
    if options is not None:
        arguments["options"] = list(options)
    chosen, original = state.get(setting), state.default(setting)
    value = default if chosen is None else to_widget(chosen)
    names = options if isinstance(options, Mapping) else {}
    report.name_values(setting, names, value)
    if chosen is None and isinstance(value, int):
        report.state_number(setting, value)
    if value is not None and not _is_offered(value, arguments):
        value = to_widget(original) if default is None else default
        replacement = None if original is None else from_widget(value)
        if chosen == original:
            state.put(setting, replacement)
        else:
            reason = offers or _between(arguments.get("min_value"), arguments.get("max_value"))
            state.refuse(setting, replacement, f"{label} {describe(chosen)} is not available here. {reason}".strip())
        report.name_values(setting, names, value)

    def changed() -> None:
        if state.restorations(setting) != restored:
            return  # Back has set it since, in a run that was interrupted: the browser sends what it has still on display
        sent = st.session_state[key]
        sent = tuple(dict.fromkeys(sent)) if isinstance(sent, list) else sent
        chosen = state.get(setting)
        # A run that the next click interrupts forgets what it has drawn, and Streamlit then reports the value on
        # display as new. Nobody has chosen it, so it must not become a choice (and get into the address).
        displayed = default if chosen is None else to_widget(chosen)
        if sent == displayed:
            return
        # Nor must it take back what was chosen elsewhere since, as another view that does not stand among these.
        if options is not None and displayed is not None and not _is_offered(displayed, arguments):
            return
        if _is_offered(sent, arguments):
            stop_playing()
            # Not by the widget, which would ignore a longer text that is pasted, without a word.
            is_cut = isinstance(sent, str) and max_chars is not None and len(sent) > max_chars
            value = from_widget(sent[:max_chars] if is_cut else sent)
            state.put(setting, value)
            if is_cut:
                text = f"The text under “{label}” was too long: only its first {max_chars:,} characters were kept."
                state.notice_while(setting, value, text)
            if after_change is not None:
                after_change()

    if options is not None or not isinstance(value, str) or st.session_state.get(key) != value:
        # Set a text only if it differs: setting it replaces what a person is typing in the browser.
        st.session_state[key] = list(value) if isinstance(value, tuple) else value
    else:
        # A slow browser may draw this run first of all: it would begin with an empty field, and send that as typed.
        arguments["value"] = value
    widget(label, key=key, on_change=changed, **arguments)
    return value


def checked(
    widget: Callable[..., Any],
    label: str,
    *,
    key: str,
    default: Any = None,
    on_choice: Callable[[Any], None] | None = None,
    **arguments: Any,
) -> Any:
    """Draw a widget that belongs to no setting, and return its value; `default` in place of what it does not offer.

    As in `bind` the check is made here, on the server. on_choice: called with a value that a person chose and that is
    offered. The other arguments are passed to the widget; give options and bounds by name.
    """
    if "options" in arguments:
        arguments["options"] = list(arguments["options"])
    if default is not None:
        st.session_state.setdefault(key, default)
    displayed = st.session_state.get(key)

    def changed() -> None:
        sent = st.session_state[key]
        if sent == displayed:  # reported as new after an interrupted run, as in `bind`: nobody has chosen it
            return
        if on_choice is not None and _is_offered(tuple(sent) if isinstance(sent, list) else sent, arguments):
            on_choice(sent)

    value = widget(label, key=key, on_change=changed, **arguments)
    is_offered = _is_offered(tuple(value) if isinstance(value, list) else value, arguments)
    return value if is_offered else default


def _is_offered(value: Any, arguments: Mapping[str, Any]) -> bool:
    """Whether a widget with these arguments offers a value."""
    options = arguments.get("options")
    if isinstance(value, tuple):
        most = arguments.get("max_selections") or len(value)
        return options is not None and len(value) <= most and all(item in options for item in value)
    if options is not None:
        return value in options
    if isinstance(value, int | float):
        return bool(arguments.get("min_value", value) <= value <= arguments.get("max_value", value))
    return isinstance(value, str)


def _between(lowest: float | None, highest: float | None) -> str:
    return "" if lowest is None else f"Choose from {lowest} to {highest}."


def choice(
    setting: str,
    label: str,
    options: Mapping[str, str],
    help_text: str | None = None,
    show_label: bool = True,
    **arguments: Any,
) -> str:
    """One of a few options, as a segmented control; `options` maps values to their texts."""
    arguments |= {"required": True, "help": help_text, "label_visibility": "visible" if show_label else "collapsed"}
    return str(bind(setting, st.segmented_control, label, options=options, **arguments))


def pooling(setting: str, label: str, names: Mapping[str, str], offered: Sequence[str], own: Pooling) -> Pooling:
    """One of the `offered` poolings; `names` maps every pooling to its text.

    `own` is the pooling that the model was published with: the default if it is offered. An address may name the
    model's own vector, which only some models have, or a pooling that an index lacks.
    """
    if len(offered) == 1:
        state.put(setting, state.default(setting))
        return cast("Pooling", offered[0])
    return cast(
        "Pooling",
        choice(
            setting,
            label,
            {name: names[name] for name in offered},
            caching.glossary()["pooling"],
            default=own if own in offered else offered[0],
            describe=lambda name: f"“{names[name]}”",
        ),
    )


def product(backend: Backend) -> str:
    """The cosine or the dot product; the default is what the model was published for, if it is one of them."""
    own = backend.sentence_config.similarity
    if state.get("similarity") not in (None, *wording.PRODUCTS):
        state.put("similarity", None)
    default = own if own in wording.PRODUCTS else "cosine"
    return choice("similarity", "Similarity", wording.PRODUCTS, wording.SIMILARITY_HELP, default=default)


def sentence_vector(
    models: Sequence[Backend], label: str = "Sentence vector", names: Mapping[str, str] = wording.POOLINGS_EXPLAINED
) -> Pooling:
    """How a sentence's tokens become one vector: one of the poolings that all these models have.

    The default is the first model's own pooling if all models have it. A row of choices that a phone shows whole has short
    `names`.
    """
    common = [name for name in models[0].poolings if all(name in model.poolings for model in models)]
    return pooling("pooling", label, names, common, models[0].own_pooling)


def pooled_special_tokens(pooling: Pooling) -> bool:
    """Whether special tokens count in a pooled vector."""
    term, fixed = caching.glossary()["special token"], pooling in {"cls", "own"}
    return switch("include_special", "Include special tokens", term, disabled=fixed)


def pick(setting: str, label: str, options: Mapping[str, str], help_text: str | None = None, **arguments: Any) -> str:
    """One of several options, as a drop-down list; `options` maps values to their texts."""
    return str(bind(setting, st.selectbox, label, options=options, help=help_text, **arguments))


def switch(setting: str, label: str, help_text: str | None = None, disabled: bool = False) -> bool:
    """An on/off switch."""
    return bool(bind(setting, st.toggle, label, help=help_text, disabled=disabled))


@dataclass(frozen=True)
class CosineScale:
    """How cosines are shown."""

    centred: bool = False  # of vectors from which the model's mean vector was subtracted
    percentiles: bool = False  # as shares of the unrelated pairs that are less similar
    baseline: bool = True  # with the unrelated pairs as a band; percentiles have them built in


def cosine_scale() -> CosineScale:
    """The switches for the scale of curves of cosines."""
    terms = caching.glossary()
    centred = switch("centred", "Centred vectors", terms["centred"])
    as_percentiles = percentiles()
    return CosineScale(
        centred, as_percentiles, switch("show_baseline", "Baseline", terms["baseline"], disabled=as_percentiles)
    )


def percentiles(disabled: bool = False) -> bool:
    """Whether cosines are shown as shares of the unrelated pairs that are less similar."""
    return switch("percentiles", "Percentiles instead of cosines", caching.glossary()["percentile"], disabled)


def fusion_settings() -> FusionSettings:
    """How rankings are put together; only what the chosen way needs is read."""
    by, depth = state.get("fusion_by"), state.get("fusion_depth") or None
    if by == "rrf":
        return FusionSettings(rank_constant=state.get("fusion_k"), depth=depth)
    if by == "weighted":
        return FusionSettings(state.get("fusion_weight"), "rrf", state.get("fusion_k"), depth)
    return FusionSettings(state.get("fusion_weight"), by, depth=depth)


def fusion() -> FusionSettings:
    """The choice of how rankings are put together."""
    by = choice(
        "fusion_by",
        "Put together by",
        {"rrf": "Ranks", "weighted": "Weighted ranks", "minmax": "Scores 0 to 1", "z": "z scores"},
        "Ranks: the sum of 1 / (k + rank) in each ranking (reciprocal rank fusion), all alike or with weights. Scores: a "
        "weighted sum of each ranking's scores, put on a scale from 0 to 1 over all sentences, or as standard deviations from "
        "the mean (z scores).",
    )
    if by in ("rrf", "weighted"):
        bind(
            "fusion_k",
            st.number_input,
            "k of 1 / (k + rank)",
            min_value=0,
            max_value=MOST_RRF_K,
            help="With a low k the first few places count much more than those below; 60 is usual.",
        )
    if by != "rrf":
        number(
            "fusion_weight",
            "Weight of the others (%)",
            0,
            100,
            state.default("fusion_weight"),
            "What all rankings but the first weigh together, in equal shares. At 0 the first ranks alone.",
        )
    bind(
        "fusion_depth",
        st.number_input,
        "First sentences of each that count (0: all)",
        min_value=0,
        max_value=MOST_DEPTH,
        help="What a ranking has further down counts as not ranked by it.",
    )
    return fusion_settings()


def layer(n_layers: int, label: str = "Layer") -> int:
    """A layer 0..L; L before a person chooses."""
    return number("layer", label, 0, n_layers, n_layers, caching.glossary()["layer"])


def number(setting: str, label: str, least: int, most: int, default: int, help_text: str | None = None) -> int:
    """A whole number as a slider; `default` before a person chooses, and if the choice is out of range."""
    if least == most:
        return least
    return int(bind(setting, st.slider, label, default=default, min_value=least, max_value=most, help=help_text))


def stepped(
    setting: str,
    label: str,
    least: int,
    most: int,
    default: int,
    help_text: str | None = None,
    to_widget: Callable[[int], int] = _unchanged,
) -> int:
    """A whole number with buttons for the next and the one before, and one that plays all numbers in order.

    The server counts, not the figure: so that a figure of any kind can be played, and the number is one setting that
    the page's other views and its address share. The browser requests the next number when the last is drawn.
    `to_widget` converts the setting's number to the one shown here, where a view offers fewer of them than others.
    """
    if least == most:
        return least
    with st.container(
        horizontal=True,
        vertical_alignment="bottom",
        gap="xsmall",
        width="content",
        wrap=False,
        key=f"stepped_{setting}",
    ):
        value = int(
            bind(
                setting,
                st.number_input,
                label,
                default=default,
                to_widget=to_widget,
                min_value=least,
                max_value=most,
                step=1,
                help=help_text,
                width=round(140 * scale()),  # with less, Streamlit hides the buttons
            )
        )
        is_playing = st.session_state.get(_PLAYING) == setting
        st.button(
            "Pause" if is_playing else "Play",
            icon=":material/pause:" if is_playing else ":material/play_arrow:",
            key=f"play_{setting}",
            help=f"{'Stops' if is_playing else 'Shows'} {least} to {most} in order",
            on_click=stop_playing if is_playing else _play,
            args=() if is_playing else (setting, value, least, most),
        )
        if is_playing:
            browser.ticker(f"tick_{setting}", value, partial(play_next, setting, least, most, default))
    return value


_PLAYING = "_playing"  # the session key of the setting that is played


def is_playing() -> bool:
    return st.session_state.get(_PLAYING) is not None


def stop_playing() -> None:
    st.session_state.pop(_PLAYING, None)


def _play(setting: str, value: int, least: int, most: int) -> None:
    st.session_state[_PLAYING] = setting
    state.put(setting, least if value == most else value + 1)


def play_next(setting: str, least: int, most: int, default: int, drawn: int) -> None:
    """Go on from the number `drawn` to the next if the setting is still played; the last number ends it."""
    value = default if state.get(setting) is None else state.get(setting)
    if st.session_state.get(_PLAYING) != setting or drawn != value:
        return
    state.put(setting, min(most, max(least, value + 1)))
    if value + 1 >= most:
        stop_playing()


def sentence(sentences: Sequence[TokenizedSentence], setting: str = "sentence", default: int = 0) -> int:
    """The index of one of the sentences, from 0; `default` before a person chooses."""
    if len(sentences) == 1:
        return 0
    return sentence_of([item.text for item in sentences], setting, "Sentence", default)


def row() -> Any:
    """The one row of controls above a figure; use it as a context (`with`)."""
    return st.container(horizontal=True, vertical_alignment="bottom", key="figure_controls")


def options() -> Any:
    """A button that opens the controls of a view that are needed less often; use it as a context (`with`)."""
    return st.popover("Options", icon=":material/tune:", width="content")


def ready_row(
    label: str, options: Mapping[str, str], chosen: object, on_choice: Callable[[str], None], *, key: str
) -> None:
    """Ready-made texts in a row, which scrolls sideways; `options` maps each value to its text.

    `chosen` is marked if it is one of them; `on_choice` gets the value that a person clicks.
    """
    st.session_state[key] = chosen if chosen in options else None
    with st.container(key="row_ready"):
        checked(
            st.pills,
            label,
            options=options,
            format_func=options.__getitem__,
            key=key,
            label_visibility="collapsed",
            on_choice=on_choice,
        )


def several(setting: str, label: str, count: int) -> tuple[int, ...]:
    """Some of the numbers 0..count-1; all of them if none is chosen."""
    chosen = state.get(setting)
    available = tuple(number for number in chosen if number < count)
    if available != chosen:
        missing = ", ".join(str(number) for number in chosen if number >= count)
        choice_name = label.split(" (")[0]
        state.refuse(setting, available, f"{choice_name} {missing} is not available here. {_between(0, count - 1)}")
    selected = bind(
        setting,
        st.multiselect,
        label,
        options=range(count),
        from_widget=lambda numbers: tuple(sorted(numbers)),
        placeholder="all",
    )
    return selected or tuple(range(count))


def sentence_of(
    texts: Sequence[str],
    setting: str,
    label: str,
    default: int,
    none: str = "",
    from_one: bool = False,
    label_inside: bool = False,
) -> int:
    """The index of one of the session's texts, from 0; with `none`, 0 stands for no text and texts count from 1.

    `from_one`: texts count from 1 though there is no choice of none. `label_inside`: the label stands within
    the choice, not above.
    """
    shift = 1 if none or from_one else 0
    front = f"{label} " if label_inside else ""
    names = {row + shift: f"{front}{row + 1}  {text[:70]}" for row, text in enumerate(texts)}
    options = {0: none, **names} if none else names
    default = min(default, max(options))
    return int(
        bind(
            setting,
            st.selectbox,
            label,
            options=options,
            default=default,
            describe=lambda row: str(row + 1 - shift),
            label_visibility="collapsed" if label_inside else "visible",
            offers=f"There {'is 1 sentence' if len(texts) == 1 else f'are {len(texts)} sentences'}.",
        )
    )


def positions(sentences: Sequence[TokenizedSentence], backend: Backend) -> tuple[int, ...]:
    """The position of the token of interest in each sentence: the chosen token, or the default. See `interest`."""
    return interest(sentences, backend).positions


MOST_TRACED = 2_000  # tokens of the sentences: of more, no forward pass is made only to choose a word


def default_interest(sentences: Sequence[TokenizedSentence], backend: Backend) -> Interest:
    """What there is to look at before a person chooses. The vectors are those that other views show, so they are kept."""

    def vectors(words: Sequence[Word]) -> np.ndarray:
        trace = current_trace(backend)
        return word_vectors(trace, [(word.sentence, word.positions) for word in words])[-1]

    texts = tuple(item.text for item in sentences)
    is_short = sum(map(len, sentences)) <= MOST_TRACED and texts == state.get("sentences")
    return words_of_interest(sentences, ready_made.focus_of(texts), vectors if is_short else None)


def interest(sentences: Sequence[TokenizedSentence], backend: Backend) -> Interest:
    """The token of interest in each sentence, and the sentence whose word is the one to look at.

    That is the one in which a person chose last. Before a person chooses, the word is that of the one rule for all pages
    (components/analysis/first_look/words.py). A choice is remembered by its characters in the text, so that it is found again
    when another model tokenizes the text, or when sentences are added, removed or moved.
    """
    offered = default_interest(sentences, backend)
    defaults = offered.positions
    chosen: tuple[int, ...] = state.get("tokens")
    anchors = st.session_state.get("_anchors")
    tokenized = (backend.spec.key, tuple(item.text for item in sentences))
    if not chosen:
        result = defaults
    elif anchors is None or anchors["where"] == tokenized:
        padded = chosen[: len(defaults)] + defaults[len(chosen) :]
        result = tuple(
            position if 0 <= position < len(item) else default
            for position, item, default in zip(padded, sentences, defaults, strict=True)
        )
    else:
        result = tuple(
            _position_of(item, anchors["spans"].get(item.text), default)
            for item, default in zip(sentences, defaults, strict=True)
        )
    if chosen and result != chosen:
        if anchors is None and any(
            not 0 <= position < len(item) for position, item in zip(chosen, sentences, strict=False)
        ):
            message = "The link's “t” names a token that its sentence does not have."
            state.refuse("tokens", () if result == defaults else result, message)
        else:
            state.put("tokens", () if result == defaults else result)
    words = [
        item.tokens[position].piece if item.tokens[position].special else item.word_text(position)
        for item, position in zip(sentences, result, strict=True)
    ]
    report.say_value("tokens", state.get("tokens"), *(f"“{word}”" for word in words))
    st.session_state["_anchors"] = {
        "where": tokenized,
        "spans": {
            item.text: (position, item.tokens[position].start, item.tokens[position].end)
            for item, position in zip(sentences, result, strict=True)
        },
    }
    row = state.peek("sentence")
    if row is None or not 0 <= row < len(sentences):
        row = 0 if state.get("tokens") else offered.row
    return Interest(row, result)


def choose_word(sentences: Sequence[TokenizedSentence], chosen: Sequence[int], row: int, position: int) -> None:
    """Make a token of a sentence the one of interest, on all pages: in every sentence that has it, or a form of its word."""
    st.session_state.pop("_anchors", None)  # which belong to the tokens chosen before
    state.put("tokens", chosen_everywhere(sentences, chosen, row, position))
    state.put("sentence", row)


def _position_of(item: TokenizedSentence, span: tuple[int, int, int] | None, default: int) -> int:
    """The position of the token that had this position, first and last character before; else the default."""
    if span is None:
        return default
    old_position, start, end = span
    if start == end:  # a special token: the same position, if a special token is still there
        return old_position if 0 <= old_position < len(item) and item.tokens[old_position].special else default
    position = position_at(item, start, end)
    return default if position is None else position


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
    """Chips of the sentences (or of some `rows`), with the chosen token of each marked; a click is a `choose_word`.

    `also` is a second token to mark in each row; `on_pick(row, position)` replaces the effect of a click.
    """

    def marked(row: int) -> tuple[int, ...]:
        positions = [chosen[row]] if also is None else [chosen[row], also]
        if not whole_word:
            return tuple(positions)
        return tuple(piece for position in positions for piece in sentences[row].word_positions(position))

    def choose(row: int, position: int) -> None:
        choose_word(sentences, chosen, row, position)

    browser.chips(
        [
            browser.ChipRow(row, sentences[row], marked(row))
            for row in (range(len(sentences)) if rows is None else rows)
        ],
        key=key,
        on_click=on_pick or choose,
        unknown_id=unknown_id,
        scale=scale(),
    )


def chip_legend() -> None:
    """One line on how chips are drawn."""
    drawn = (
        "Joined chips: pieces of one word · dashed: special token · striped: not in the vocabulary · filled: chosen."
    )
    report.add("chip_legend", PagePart(message=drawn))
    st.caption(f"{drawn} Click a chip, or move with the arrow keys.")
