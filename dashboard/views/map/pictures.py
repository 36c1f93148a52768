"""Maps of tokens: two layers side by side or in one map, or all layers as an animation."""

from __future__ import annotations

import html
import itertools
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.first_look.words import places_of
from components.analysis.maps.projection import FEW
from components.charts import scatter, theme
from components.numbers import apart, enumerated
from components.words.function import FUNCTION_WORDS
from components.words.unicode_words import folded
from dashboard import state
from dashboard.ui import controls, figures, messages, word_chips
from dashboard.ui.waiting import frame
from dashboard.ui.wording import shortened
from dashboard.views.map import choices, findings, labels, selection, webgl
from dashboard.views.map.choices import METHOD_NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.analysis.maps.drawing import LayerMap
    from components.analysis.maps.map_trust import MapTrust
    from components.analysis.maps.projection import MapOptions
    from components.analysis.maps.token_set import TokenSet
    from components.model.backend import Backend
    from components.shown_code.code import AnyCode

LAYER_HUES = (theme.BLUE, theme.ORANGE)  # of the first and the second layer
# Of sentences: each differs in shape too, and none is blue, which is the chosen word's.
SENTENCE_HUES = (theme.ORANGE, theme.GREEN, theme.PURPLE, theme.OLIVE, theme.VERMILION, "#5B6BC0")
SENTENCE_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "star")
SIGNS = {"circle": "●", "square": "■", "triangle-up": "▲", "diamond": "◆", "cross": "✚", "star": "★"}
SVG_MOST = 5_000  # points drawn where the browser has no WebGL
PROJECTED_PAIR = 380
PAIR_HEIGHT = 430  # of each of two maps in pixels, so that they are whole on the first screen with the line below them
MOST_OF_SENTENCE = 60  # characters of a sentence in the key
MOST_OF_WORD = 24  # characters of a word there
GROUPS = "Read groups, not distances."
READ = (
    "Each point is a token. The vectors of points that lie close together mostly point in similar directions. Click a point "
    "to list its token; to select several, use with a mouse the lasso or the box of the figure's toolbar."
)
READ_3D = (
    "Each point is a token. The vectors of points that lie close together mostly point in similar directions. Drag to turn the "
    "picture. There is no lasso in three dimensions: mark words above instead."
)
MISLEAD = (
    "**Distances in UMAP and t-SNE maps can mislead**: gaps, sizes and densities of groups can come from the method. "
    "Axes have no meaning. Select a token to see its true neighbours."
)
SHADOW = (
    "**Distances on a map mislead**: PCA shows two (in 3-D, three) of hundreds of directions, and what is far apart in the "
    "model may overlap here. Select a token to see its true neighbours."
)
MOVES_IN_PCA = (
    "A token can move although its neighbours in the model stay, since each layer's PCA shows the directions in which that "
    "layer varies most."
)


def how_to_read(options: MapOptions) -> tuple[str, str]:
    """How to read a map, and what it does not show."""
    return READ if options.dims == 2 else READ_3D, SHADOW if options.method == "pca" else MISLEAD


def ends(backend: Backend) -> None:
    """Two layers, by default the first and the last, in two maps or one."""
    place = choices.row()
    token_set = choices.tokens(backend, place)
    if token_set is None:
        return
    last = backend.facts.layers
    options = choices.options(len(token_set), place)
    first_layer = second_layer = 0
    joint = False
    if backend.structure.has_blocks:
        with place.panel:
            first_layer = controls.number("map_first", "First layer", 0, last, 0)
            second_layer = controls.layer(last, "Second layer")
            joint = controls.switch("map_joint", "One map of both", "Places the vectors of both layers in one map.")
    by = choices.colours(token_set, place, layer_allowed=backend.structure.has_blocks, is_joint=joint)
    rows = _words(backend, token_set, place)
    options, renderer = _drawable(options, len(token_set) * (2 if joint else 1))
    both = (first_layer, second_layer)
    layers = both if backend.structure.has_blocks else (0,)
    figure_slot, drawing, options = choices.drawing(token_set, options, [both] if joint else layers)
    if joint:
        with figure_slot:
            joint_code = choices.code_of_tokens(backend, len(token_set)).joint(options, *both)
            _joint(token_set, drawing.maps[both], both, by, rows, options, renderer, joint_code)
    else:
        marked = _marked(backend, token_set, rows)
        maps = {layer: drawing.maps[layer] for layer in layers}
        is_flat = options.dims == 2
        around = findings.around_of(token_set, marked, layers)
        pairs = {
            layer: findings.nearest_pairs(token_set, marked, around.get(layer) if is_flat else None) for layer in layers
        }
        are_joined = marked is not None and len(layers) == 2 and is_flat
        has_lines = any(pairs.values())
        marks = _marks(marked, are_joined=are_joined, has_lines=has_lines)
        with figure_slot:
            read, not_shown = how_to_read(options)
            figures.finding(
                findings.of_layers(token_set, marked, layers, around),
                read=f"{read} {marks}",
                not_shown=f"{not_shown} {_trusted(token_set, maps, options)} {_rule_of_method()} {in_numbers(maps)}",
                key="map_finding",
            )
            with figures.together("map_0"):
                for number, (column, layer) in enumerate(zip(st.columns(len(layers)), layers, strict=True)):
                    with column:
                        code = choices.code_of_tokens(backend, len(token_set)).layers(options, [layer])
                        _one(
                            token_set,
                            maps[layer],
                            layer,
                            number,
                            by,
                            rows,
                            options,
                            renderer,
                            code,
                            marked,
                            pairs[layer],
                        )
            lines = _lines(marked, [*itertools.chain(*pairs.values())], are_joined=are_joined)
            _key(token_set, by, [*lines, f"<span>{choices.IN_WORDS[options.method]} {GROUPS}</span>"], "map_0")
        labels.thin(_positions(_drawn_rows(token_set, renderer), marked.rows) if marked is not None else ())
    if joint:
        labels.thin()
        figures.reading(*how_to_read(options))
    choices.about(backend, token_set)
    if not backend.structure.has_blocks:
        st.caption(
            f"{messages.escape(backend.spec.title)} has only layer 0, so there is one map. A piece has the same vector in "
            "every sentence; UMAP, t-SNE and PaCMAP may still draw its occurrences side by side."
        )
    selection.selection(token_set, rows, list(dict.fromkeys(layers)))


def through(backend: Backend) -> None:
    """The maps of all layers, as an animation."""
    place = choices.row()
    token_set = choices.tokens(backend, place)
    if token_set is None:
        return
    layers = list(range(backend.facts.layers + 1))
    options = choices.options(len(token_set), place)
    by = choices.colours(token_set, place)
    rows = _words(backend, token_set, place)
    options, renderer = _drawable(options, len(token_set))
    figure_slot, drawing, options = choices.drawing(token_set, options, layers)
    selection.renew_moving((token_set.key, options, by, renderer, controls.scale()))
    maps = {layer: drawing.maps[layer] for layer in layers}
    drawn_rows = _sampled(token_set, renderer)
    marked = _marked(backend, token_set, rows)
    around = findings.around_of(token_set, marked, layers)
    nearest = {layer: findings.nearest_pairs(token_set, marked, around.get(layer)) for layer in layers}
    place_of = {int(row): number for number, row in enumerate(drawn_rows)}
    has_lines = options.dims == 2 and len(drawn_rows) == len(token_set) and bool(nearest[0])
    places = {layer: layer_map.points[drawn_rows] for layer, layer_map in maps.items()}
    figure = scatter.moving_map(
        scatter.turned(places) if options.dims == 2 and len(drawn_rows) else places,
        texts(token_set, drawn_rows),
        _part(_coloured(token_set, by), drawn_rows),
        f"Layers 0 to {layers[-1]}, {METHOD_NAMES[options.method]}",  # short: Play stands beside it
        selected=_positions(drawn_rows, selection.selected(token_set, "_moving_selection")),
        renderer=renderer,
        height=_tall() + (60 if controls.scale() == 1 else 0),  # its slider stands above it
        scale=controls.scale(),
        marked=None if marked is None else scatter.MarkedPoints(marked.word, _positions(drawn_rows, marked.rows)),
        nearest={
            layer: [(place_of[row], place_of[other], is_other) for row, other, is_other in pairs]
            for layer, pairs in nearest.items()
        }
        if has_lines
        else None,
    )
    trusts = [maps[layer].trust for layer in layers]
    marks = _marks(marked, are_joined=False, has_lines=has_lines)
    message = findings.of_layers(token_set, marked, layers, around)
    pairs = [*itertools.chain(*nearest.values())]
    lines = _lines(marked, pairs, are_joined=False, is_moving=True) if has_lines else []
    with figure_slot:
        above = st.container()
        left, right = st.columns([3, 2], gap="medium")  # wider, the frame would be empty at both sides
    with left:
        figures.figure(
            figure,
            key="map_moving",
            code=choices.code_of_tokens(backend, len(token_set)).layers(options, layers),
            alt=f"Map of {len(token_set):,} tokens that moves from layer 0 to {layers[-1]}",
            message=message,
            most_above=len(message),  # all of it, since the picture shows it
            line_in=above,
            read=f"{READ} {marks}"
            + (" A pale blue line is the path that it has taken from layer 0, where its ring is." if has_lines else "")
            + " The maps of all layers start from one common map, are turned to fit it, and have the same axes. "
            + (MOVES_IN_PCA if options.method == "pca" else "If a token moves, its neighbours have often changed."),
            not_shown=f"{how_to_read(options)[1]} {_trust_of_layers(trusts)} {_rule_of_method()}",
            table=lambda: _table(token_set, maps),
            on_select=lambda: selection.pick(token_set, "map_moving", drawn_rows),
        )
    with right:  # the map would not be larger in a wider frame
        said = f"{choices.IN_WORDS[options.method]} {GROUPS} All layers have the same axes."
        _key(token_set, by, [*lines, f"<span>{said}</span>"], "map_moving")
    labels.thin()
    choices.about(backend, token_set)
    layer = controls.layer(backend.facts.layers, "Layer of the neighbours below") if len(rows) == 1 else layers[-1]
    selection.selection(token_set, rows, [layer])
    figures.subheader("How trustworthy each layer's map is")
    near = trusts[-1].neighbours
    st.caption(
        "A flat map cannot keep all neighbours. **Trustworthiness** is 1 where tokens side by side in the map are always near "
        f"each other in the model; at random places it is about 0.5. {_judged(trusts)} **In common**: of a token's "
        f"{near} nearest in the map, the share that is also among its {near} nearest in the model."
    )
    st.dataframe(
        pd.DataFrame(
            {
                "layer": layers,
                "trustworthiness": [trust.trustworthiness for trust in trusts],
                "in common": [100 * trust.overlap for trust in trusts],
                "by chance": [100 * trust.chance for trust in trusts],
            }
        ),
        hide_index=True,
        key="map_trust",
        column_config={
            "trustworthiness": st.column_config.NumberColumn(format="%.3f"),
            "in common": st.column_config.NumberColumn(format="%.1f %%"),
            "by chance": st.column_config.NumberColumn(format="%.1f %%"),
        },
    )


def _tall() -> int:
    """The height of a single map in pixels, so that it is whole on the first screen; a projector enlarges it."""
    return 470 if controls.scale() == 1 else 420


def _drawable(options: MapOptions, count: int) -> tuple[MapOptions, scatter.Renderer]:
    """The options that this browser can draw, and the renderer. Raises NotReady before the browser was asked."""
    can = webgl.can_webgl()
    if options.dims == 2 and count <= scatter.SVG_POINTS:
        return options, "svg"
    if can is None:
        raise frame.Instead(partial(st.skeleton, height=520))
    if can:
        return options, "webgl"
    if options.dims == 3:
        st.info("This browser has no WebGL, which three dimensions need: the map is drawn in two.")
        options = replace(options, dims=2)
    return options, "svg"


def _sampled(token_set: TokenSet, renderer: scatter.Renderer) -> np.ndarray:
    """As `_drawn_rows`; says so where not all are drawn."""
    rows = _drawn_rows(token_set, renderer)
    if len(rows) < len(token_set):
        st.info(f"This browser has no WebGL: only {len(rows):,} of the {len(token_set):,} tokens are drawn.")
    return rows


def _drawn_rows(token_set: TokenSet, renderer: scatter.Renderer) -> np.ndarray:
    """The rows of the tokens that are drawn: all, or a sample for a browser without WebGL."""
    if renderer == "webgl" or len(token_set) <= SVG_MOST:
        return np.arange(len(token_set))
    return np.sort(np.random.default_rng(0).choice(len(token_set), SVG_MOST, replace=False))


def _one(
    token_set: TokenSet,
    layer_map: LayerMap,
    layer: int,
    number: int,
    by: str,
    rows: tuple[int, ...],
    options: MapOptions,
    renderer: scatter.Renderer,
    code: AnyCode,
    marked: findings.MarkedWord | None,
    pairs: Sequence[tuple[int, int, bool]],
) -> None:
    key = f"map_{number}"
    drawn = _sampled(token_set, renderer)
    if by == "layer":  # two maps in distinct colours
        colours = scatter.Colours("layer", groups=[f"layer {layer}"] * len(token_set), hues=(LAYER_HUES[number],))
    else:
        colours = _coloured(token_set, by)
    figure = scatter.token_map(
        layer_map.points[drawn],
        texts(token_set, drawn),
        _part(colours, drawn),
        f"Layer {layer}, {METHOD_NAMES[options.method]}",
        selected=_positions(drawn, rows),
        renderer=renderer,
        height=PAIR_HEIGHT if controls.scale() == 1 else PROJECTED_PAIR,
        scale=controls.scale(),
        marked=None if marked is None else scatter.MarkedPoints(marked.word, _positions(drawn, marked.rows)),
    )
    scatter.join_pairs(figure, layer_map.points, pairs, (theme.BLUE, theme.GREY))
    figures.figure(
        figure,
        key=key,
        code=code,
        alt=f"Map of {len(token_set):,} tokens at layer {layer} by {METHOD_NAMES[options.method]}",
        table=lambda: _table(token_set, {layer: layer_map}),
        on_select=lambda: selection.pick(token_set, key, drawn),
    )


def _marked(backend: Backend, token_set: TokenSet, rows: tuple[int, ...]) -> findings.MarkedWord | None:
    """The word that stands out in the maps: the one that a person marks, else the one that the pages follow."""
    if state.get("map_find") and rows:
        return findings.MarkedWord(state.get("map_find").strip(), findings.first_pieces(token_set, rows))
    if state.get("map_source") == "corpus":
        return None
    if choices.reads_pair():
        return findings.word_of(token_set)
    sentences = controls.current_tokens(backend)
    chosen = controls.interest(sentences, backend)
    return findings.word_of(token_set, places_of(sentences, chosen.row, chosen.positions[chosen.row]))


def _words(backend: Backend, token_set: TokenSet, place: choices.ControlRow) -> tuple[int, ...]:
    """Draw the choice of the word to follow, and return the selected rows.

    The words of the sentences stand in the row above the figure; of a corpus or a pair a word is typed there.
    """
    if state.get("map_source") == "corpus" or choices.reads_pair():
        return selection.find(token_set, place.main)
    rows = selection.find(token_set, place.panel)
    sentences = controls.current_tokens(backend)
    with place.main:
        word_chips.offer(
            sentences,
            controls.interest(sentences, backend),
            is_one=not (state.get("map_find") and rows),
            after_choice=lambda: state.put("map_find", ""),
        )
    return rows


def _trusted(token_set: TokenSet, maps: dict[int, LayerMap], options: MapOptions) -> str:
    return findings.trust(maps, METHOD_NAMES[options.method], token_set.vectors.shape[2], len(token_set))


def _trust_of_layers(trusts: Sequence[MapTrust]) -> str:
    """Between what ends the trustworthiness of some maps lies."""
    values = [trust.trustworthiness for trust in trusts]
    least, most = apart(min(values), max(values))
    return f"The trustworthiness of the maps is between {least} and {most} (1 is best)."


def _judged(trusts: Sequence[MapTrust]) -> str:
    """How far each layer's map can be trusted in words, layers that are alike together."""
    layers: dict[str, list[str]] = {}
    for layer, trust in enumerate(trusts):
        layers.setdefault(trust.words, []).append(str(layer))
    if len(layers) == 1:
        return f"All layers are {trusts[0].words}."
    return " ".join(
        f"Layer{'s' * (len(each) > 1)} {enumerated(each)} {'are' if len(each) > 1 else 'is'} {words}."
        for words, each in layers.items()
    )


def _marks(marked: findings.MarkedWord | None, *, are_joined: bool, has_lines: bool) -> str:
    """What the marks in the maps are; `are_joined` where lines between two maps are drawn, `has_lines` within one."""
    if marked is None:
        return ""
    lines = ""
    if are_joined and len(marked.rows) > labels.MOST_JOINED:
        lines = f", and blue ribbons lead from the first {labels.MOST_JOINED} of them to themselves in the other map"
    elif are_joined:
        lines = ", and a blue ribbon leads from each of them to itself in the other map"
    near = ""
    if has_lines:
        near = " Lines within a map lead to the tokens nearest in the model: solid and blue in the same sentence, else dashed."
    return (
        f"The blue points are “{messages.escape(marked.word[:40])}”{lines}.{near} A label with × stands for several points. "
        "Whatever has no room gets its label when the map is enlarged."
    )


def _rule_of_method() -> str:
    return (
        f"Unless a method is chosen, fewer than {FEW} points are drawn by PCA (links made before drew more than 20 by "
        "UMAP, and do so still where they name it): UMAP and t-SNE draw groups even where there are none. "
    )


def in_numbers(maps: dict[int, LayerMap]) -> str:
    """How far the maps of some layers can be trusted, with all numbers."""
    return " ".join(f"Layer {layer}: {_trust_in_words(each)}" for layer, each in maps.items())


def _coloured(token_set: TokenSet, by: str) -> scatter.Colours:
    """The colours of a set's tokens; of a few sentences with a shape each, and a key of the page's own."""
    colours = choices.coloured(token_set, by)
    count = len({token.sentence for token in token_set.tokens})
    if by != "sentence" or colours.groups is None or not 1 < count <= len(SENTENCE_HUES):
        return colours
    order = sorted({token.sentence for token in token_set.tokens})
    shapes = [SENTENCE_SHAPES[order.index(token.sentence)] for token in token_set.tokens]
    return replace(colours, hues=SENTENCE_HUES, shapes=shapes, has_key=False)


def _key(token_set: TokenSet, by: str, lines: Sequence[str], of: str) -> None:
    """Which mark is which sentence, in the words of the sentences, and what the `lines` are: once for both maps.

    `of` is the key of their picture.
    """
    parts = []
    if not _coloured(token_set, by).has_key:
        order = sorted({token.sentence for token in token_set.tokens})
        parts = [
            f'<span><b style="color:{hue}" aria-hidden="true">{SIGNS[shape]}</b> {number + 1}: '
            f"{html.escape(shortened(token_set.texts[number], MOST_OF_SENTENCE))}</span>"
            for number, hue, shape in zip(order, SENTENCE_HUES, SENTENCE_SHAPES, strict=False)
        ]
    rows = "".join(f'<div class="bi-map-key">{"".join(row)}</div>' for row in (parts, lines) if row)
    if rows:
        figures.markup(rows, "map_key", of=of)


def _lines(
    marked: findings.MarkedWord | None,
    pairs: Sequence[tuple[int, int, bool]],
    *,
    are_joined: bool,
    is_moving: bool = False,
) -> list[str]:
    """The key of the lines that are drawn: a sample of each kind, and what it leads to.

    `pairs` are those of all maps, `are_joined` where lines lead from one map to the other. In a map that `is_moving` the word
    trails its way.
    """
    if marked is None:
        return []
    name = f"“{html.escape(shortened(marked.word, MOST_OF_WORD))}”"
    near = f"to the tokens nearest to {name}"
    found = []
    if pairs:
        kinds = {is_other for _, _, is_other in pairs}
        if False in kinds:
            found.append((f"1px solid {theme.BLUE}", f"{near}, in the same sentence"))
        if True in kinds:
            found.append(
                (
                    f"2px dashed {theme.GREY}",
                    "in another sentence" if False in kinds else f"{near}, in another sentence",
                )
            )
    if is_moving and pairs:
        found.append((f"3px solid {scatter.TRAIL}", f"the path of {name} from layer 0 (○)"))
    if are_joined:
        found.append(
            (
                "7px solid light-dark(rgba(43, 123, 186, 0.28), rgba(108, 176, 242, 0.5))",
                f"from {name} towards itself in the other map, which has axes of its own",
            )
        )
    return [f'<span><i style="border-top: {line}"></i> {what}</span>' for line, what in found]


def _joint(
    token_set: TokenSet,
    layer_map: LayerMap,
    layers: tuple[int, int],
    by: str,
    rows: tuple[int, ...],
    options: MapOptions,
    renderer: scatter.Renderer,
    code: AnyCode,
) -> None:
    """One map of both layers' vectors, in which every token appears twice."""
    drawn = _sampled(token_set, renderer)
    twice = np.concatenate([drawn, drawn])
    point_rows = np.concatenate([drawn, drawn + len(token_set)])
    hover_texts = texts(token_set, drawn)
    if by == "layer":
        groups = [f"layer {layer}" for layer in layers for _ in range(len(drawn))]
        colours = scatter.Colours("layer", groups=groups, hues=LAYER_HUES)
    else:
        colours = _part(choices.coloured(token_set, by), twice)
    selected = _positions(drawn, rows)
    long = [f"{text}<br>layer {layer}" for layer in layers for text in hover_texts.long]
    figure = scatter.token_map(
        layer_map.points[point_rows],
        scatter.PointTexts([*hover_texts.short, *hover_texts.short], long, hover_texts.important),
        colours,
        f"Layers {layers[0]} and {layers[1]} in one map, {METHOD_NAMES[options.method]}",
        selected=[*selected, *(position + len(drawn) for position in selected)],
        renderer=renderer,
        height=_tall(),
        scale=controls.scale(),
    )
    figures.figure(
        figure,
        key="map_both",
        code=code,
        alt=f"One map of {len(token_set):,} tokens at layers {layers[0]} and {layers[1]}",
        table=lambda: _table(token_set, {layers[0]: layer_map, layers[1]: layer_map}, halves=True),
        on_select=lambda: selection.pick(token_set, "map_both", drawn),
    )
    trust(layer_map)
    st.caption(
        "Layers often lie apart because a block moves all vectors in one direction. This says little about single tokens."
    )


def trust(layer_map: LayerMap) -> None:
    """Write how far a single map can be trusted."""
    st.caption(_trust_in_words(layer_map))


def _trust_in_words(layer_map: LayerMap) -> str:
    measured = layer_map.trust
    return (
        f"**Trustworthiness {theme.number(measured.trustworthiness)}**, {measured.words}. Of a token's "
        f"{measured.neighbours} nearest "
        f"neighbours in the model, {100 * measured.overlap:.0f} % are among its {measured.neighbours} nearest neighbours here "
        f"(by chance: {100 * measured.chance:.0f} %)."
    )


def texts(token_set: TokenSet, rows: np.ndarray) -> scatter.PointTexts:
    short = [token_set.tokens[row].text for row in rows]
    if len(rows) > scatter.TEXT_ON_HOVER:
        return scatter.PointTexts(short, [theme.plain(text, 40) for text in short])
    long = []
    for row in rows:
        token, context = token_set.tokens[row], token_set.in_context(row, 40)
        sentence = (
            f"{theme.plain(context.before, 60)}<b>{theme.plain(context.text, 40)}</b>{theme.plain(context.after, 60)}"
        )
        long.append(f"{sentence}<br>sentence {token.sentence + 1}, position {token.position}")
    return scatter.PointTexts(short, long, _shared_words(token_set) if len(rows) <= scatter.LABELLED else frozenset())


def _shared_words(token_set: TokenSet) -> frozenset[str]:
    """The content words that occur in all of several sentences, in lower case."""
    words_of: dict[int, set[str]] = {}
    for token in token_set.tokens:
        words = words_of.setdefault(token.sentence, set())
        if not token.special and any(char.isalnum() for char in token.word):
            words.add(folded(token.word))
    shared = set.intersection(*words_of.values()) if len(words_of) > 1 else set()
    return frozenset(shared - FUNCTION_WORDS)


def _part(colours: scatter.Colours, rows: np.ndarray) -> scatter.Colours:
    return replace(
        colours,
        shapes=None if colours.shapes is None else [colours.shapes[row] for row in rows],
        groups=None if colours.groups is None else [colours.groups[row] for row in rows],
        numbers=None if colours.numbers is None else colours.numbers[rows],
    )


def _positions(drawn: np.ndarray, rows: tuple[int, ...]) -> list[int]:
    """The positions of the selected rows among the drawn ones."""
    return [int(row) for row in np.flatnonzero(np.isin(drawn, rows))]


def _table(token_set: TokenSet, maps: dict[int, LayerMap], halves: bool = False) -> pd.DataFrame:
    frames = []
    for number, (layer, layer_map) in enumerate(maps.items()):
        points = (
            layer_map.points[number * len(token_set) : (number + 1) * len(token_set)] if halves else layer_map.points
        )
        columns: dict[str, Any] = {
            "layer": layer,
            "number": range(len(token_set)),
            "token": [t.text for t in token_set.tokens],
        }
        columns |= {axis: points[:, column] for column, axis in enumerate("xyz"[: points.shape[1]])}
        columns |= {
            "sentence": [t.sentence + 1 for t in token_set.tokens],
            "position": [t.position for t in token_set.tokens],
        }
        frames.append(pd.DataFrame(columns | {name: list(labels) for name, labels in token_set.labels.items()}))
    return pd.concat(frames, ignore_index=True)
