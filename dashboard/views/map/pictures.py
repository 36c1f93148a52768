"""The Map page's pictures: two layers side by side or in one, all layers moving, and what was selected in them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from components.charts import scatter, theme
from dashboard.ui import controls, figures
from dashboard.views.map import choices, selection, webgl
from dashboard.views.map.choices import METHOD_NAMES

if TYPE_CHECKING:
    from components.analysis.maps.drawing import LayerMap
    from components.analysis.maps.projection import MapOptions
    from components.analysis.maps.token_set import TokenSet
    from components.model.backend import Backend

LAYER_HUES = (theme.BLUE, theme.ORANGE)  # the first layer shown, the second
SVG_MOST = 5_000  # points drawn where the browser has no WebGL
READ = (
    "Each point is a token. Points close together are, mostly, tokens whose vectors point the same way. Click a point to "
    "list it; for several take the lasso or the box from the figure's toolbar. “Let go” below takes it back."
)
READ_3D = (
    "Each point is a token. Drag to turn the picture. Mark words below: in three dimensions there is no lasso. Points close "
    "together are, mostly, tokens whose vectors point the same way."
)
MISLEAD = (
    "Directions and axes have no meaning. **UMAP distances mislead**, and t-SNE's too: how far apart two groups lie, how "
    "large or dense one is, and gaps can come from the method. Ask a token for its true neighbours."
)
SHADOW = (
    "PCA is a shadow of hundreds of dimensions: points may lie on top of each other here that are far apart there. Ask a "
    "token for its true neighbours. (**UMAP distances mislead** in another way: it keeps neighbours, and bends the rest.)"
)


def how_to_read(options: MapOptions) -> tuple[str, str]:
    """How to read a map, and what it does not show, by its method and dimensions."""
    return READ if options.dims == 2 else READ_3D, SHADOW if options.method == "pca" else MISLEAD


def ends(backend: Backend) -> None:
    """Two layers, by default the first and the last: two maps, or one of both."""
    shown = choices.tokens(backend)
    if shown is None:
        return
    last = backend.facts.layers
    options = choices.options(len(shown))
    columns = st.columns([3, 3, 3, 3], vertical_alignment="bottom")
    with columns[0]:
        first_layer = controls.number("map_first", "First layer", 0, last, 0)
    with columns[1]:
        second_layer = controls.layer(last, "Second layer")
    with columns[2]:
        by = choices.colours(shown, layer_allowed=True)
    with columns[3]:
        joint = controls.switch("map_joint", "One map of both", "Both layers' vectors laid out together in one map.")
    rows = selection.selected(shown)
    options, renderer = _drawable(options, len(shown) * (2 if joint else 1))
    if renderer is None:
        return
    if joint:
        made = choices.drawing(shown, options, [(first_layer, second_layer)])
        if made is None:
            return
        drawing, options = made
        _joint(shown, drawing.maps[first_layer, second_layer], (first_layer, second_layer), by, rows, options, renderer)
    else:
        made = choices.drawing(shown, options, [first_layer, second_layer])
        if made is None:
            return
        drawing, options = made
        maps = [drawing.maps[layer] for layer in (first_layer, second_layer)]
        for number, (column, layer) in enumerate(zip(st.columns(2), (first_layer, second_layer), strict=True)):
            with column:
                _one(shown, maps[number], layer, number, by, rows, options, renderer)
    figures.reading(*how_to_read(options))
    selection.selection(shown, rows, list(dict.fromkeys((first_layer, second_layer))))


def through(backend: Backend) -> None:
    """Every layer's map, one after the other."""
    shown = choices.tokens(backend)
    if shown is None:
        return
    layers = list(range(backend.facts.layers + 1))
    options = choices.options(len(shown))
    by = choices.colours(shown, layer_allowed=False)
    options, renderer = _drawable(options, len(shown))
    if renderer is None:
        return
    made = choices.drawing(shown, options, layers)
    if made is None:
        return
    drawing, options = made
    selection.renew_moving((shown.key, options, by, renderer, controls.scale()))
    maps = {layer: drawing.maps[layer] for layer in layers}
    rows = selection.selected(shown)
    drawn = _sampled(shown, renderer)
    figure = scatter.moving_map(
        {layer: layer_map.points[drawn] for layer, layer_map in maps.items()},
        texts(shown, drawn),
        _part(choices.coloured(shown, by), drawn),
        f"{len(shown):,} tokens, layer 0 to {layers[-1]}, {METHOD_NAMES[options.method]}",
        selected=_drawn_rows(drawn, selection.selected(shown, "_moving_selection")),
        renderer=renderer,
        scale=controls.scale(),
    )
    trusts = [maps[layer].trust for layer in layers]
    figures.figure(
        figure,
        key="map_moving",
        alt=f"Map of {len(shown):,} tokens that moves from layer 0 to {layers[-1]}",
        message=f"Press play, or move the layer. Trustworthiness lies between {min(t.trustworthiness for t in trusts):.2f} "
        f"and {max(t.trustworthiness for t in trusts):.2f} (1 is best).",
        read=READ
        + " All layers start from one common map and are turned to fit it, so that a token that moves is a token "
        "whose neighbours change.",
        not_shown=how_to_read(options)[1],
        table=lambda: _table(shown, maps),
        on_select=lambda: selection.pick(shown, "map_moving", drawn),
    )
    layer = controls.layer(backend.facts.layers, "Layer of the neighbours below") if len(rows) == 1 else layers[-1]
    selection.selection(shown, rows, [layer])
    st.subheader("How far to trust each layer's map", anchor=False)
    st.dataframe(
        pd.DataFrame(
            {
                "layer": layers,
                "trustworthiness": [trust.trustworthiness for trust in trusts],
                "in words": [trust.words for trust in trusts],
                "neighbours in common": [trust.overlap for trust in trusts],
                "by chance": [trust.chance for trust in trusts],
            }
        ),
        hide_index=True,
        key="map_trust",
        column_config={
            "trustworthiness": st.column_config.NumberColumn(format="%.3f"),
            "neighbours in common": st.column_config.NumberColumn(format="percent"),
            "by chance": st.column_config.NumberColumn(format="percent"),
        },
    )


def _drawable(options: MapOptions, count: int) -> tuple[MapOptions, scatter.Renderer | None]:
    """The options as this browser can draw them, and by what; None while it is being asked."""
    can = webgl.can_webgl()
    if options.dims == 2 and count <= scatter.SVG_POINTS:
        return options, "svg"
    if can is None:
        st.skeleton(height=520)
        return options, None
    if can:
        return options, "webgl"
    if options.dims == 3:
        st.info("This browser has no WebGL, which three dimensions need: here are two.")
        options = replace(options, dims=2)
    return options, "svg"


def _sampled(shown: TokenSet, renderer: scatter.Renderer) -> np.ndarray:
    """The tokens that are drawn: all, or as many as a browser without WebGL can carry."""
    if renderer == "webgl" or len(shown) <= SVG_MOST:
        return np.arange(len(shown))
    st.info(f"This browser has no WebGL: {SVG_MOST:,} of the {len(shown):,} tokens are drawn.")
    return np.sort(np.random.default_rng(0).choice(len(shown), SVG_MOST, replace=False))


def _one(
    shown: TokenSet,
    layer_map: LayerMap,
    layer: int,
    number: int,
    by: str,
    rows: tuple[int, ...],
    options: MapOptions,
    renderer: scatter.Renderer,
) -> None:
    key = f"map_{number}"
    drawn = _sampled(shown, renderer)
    if by == "layer":  # two maps in distinct colours
        colours = scatter.Colours("layer", groups=[f"layer {layer}"] * len(shown), hues=(LAYER_HUES[number],))
    else:
        colours = choices.coloured(shown, by)
    figure = scatter.token_map(
        layer_map.points[drawn],
        texts(shown, drawn),
        _part(colours, drawn),
        f"Layer {layer}, {METHOD_NAMES[options.method]}",
        selected=_drawn_rows(drawn, rows),
        renderer=renderer,
        symbol=("circle", "diamond")[number],
        scale=controls.scale(),
    )
    figures.figure(
        figure,
        key=key,
        alt=f"Map of {len(shown):,} tokens at layer {layer} by {METHOD_NAMES[options.method]}",
        table=lambda: _table(shown, {layer: layer_map}),
        on_select=lambda: selection.pick(shown, key, drawn),
    )
    trust(layer_map)


def _joint(
    shown: TokenSet,
    layer_map: LayerMap,
    layers: tuple[int, int],
    by: str,
    rows: tuple[int, ...],
    options: MapOptions,
    renderer: scatter.Renderer,
) -> None:
    """One map of both layers' vectors: every token is there twice."""
    drawn = _sampled(shown, renderer)
    twice = np.concatenate([drawn, drawn])
    places = np.concatenate([drawn, drawn + len(shown)])
    written = texts(shown, drawn)
    if by == "layer":
        groups = [f"layer {layer}" for layer in layers for _ in range(len(drawn))]
        colours = scatter.Colours("layer", groups=groups, hues=LAYER_HUES)
    else:
        colours = _part(choices.coloured(shown, by), twice)
    chosen = _drawn_rows(drawn, rows)
    long = [f"{text}<br>layer {layer}" for layer in layers for text in written.long]
    figure = scatter.token_map(
        layer_map.points[places],
        scatter.PointTexts([*written.short, *written.short], long),
        colours,
        f"Layers {layers[0]} and {layers[1]} in one map, {METHOD_NAMES[options.method]}",
        selected=[*chosen, *(row + len(drawn) for row in chosen)],
        renderer=renderer,
        height=620,
        scale=controls.scale(),
    )
    figures.figure(
        figure,
        key="map_both",
        alt=f"One map of {len(shown):,} tokens at layers {layers[0]} and {layers[1]}",
        table=lambda: _table(shown, {layers[0]: layer_map, layers[1]: layer_map}, halves=True),
        on_select=lambda: selection.pick(shown, "map_both", drawn),
    )
    trust(layer_map)
    st.caption(
        "Layers often lie apart because a block moves all vectors in one direction: that says little of any token."
    )


def trust(layer_map: LayerMap) -> None:
    known = layer_map.trust
    st.caption(
        f"**Trustworthiness {known.trustworthiness:.3f}**, {known.words}. Of each token's {known.neighbours} nearest in "
        f"the model, {known.overlap:.0%} are among its {known.neighbours} nearest here (by chance {known.chance:.0%})."
    )


def texts(shown: TokenSet, rows: np.ndarray) -> scatter.PointTexts:
    short = [shown.tokens[row].text for row in rows]
    if len(rows) > scatter.TEXT_ON_HOVER:
        return scatter.PointTexts(short, [theme.plain(text, 40) for text in short])
    long = []
    for row in rows:
        token, context = shown.tokens[row], shown.in_context(row, 40)
        sentence = (
            f"{theme.plain(context.before, 60)}<b>{theme.plain(context.text, 40)}</b>{theme.plain(context.after, 60)}"
        )
        long.append(f"{sentence}<br>sentence {token.sentence + 1}, position {token.position}")
    return scatter.PointTexts(short, long)


def _part(colours: scatter.Colours, rows: np.ndarray) -> scatter.Colours:
    return scatter.Colours(
        colours.title,
        None if colours.groups is None else [colours.groups[row] for row in rows],
        None if colours.numbers is None else colours.numbers[rows],
        colours.hues,
    )


def _drawn_rows(drawn: np.ndarray, rows: tuple[int, ...]) -> list[int]:
    """Where the selected tokens are among those that are drawn."""
    return [int(row) for row in np.flatnonzero(np.isin(drawn, rows))]


def _table(shown: TokenSet, maps: dict[int, LayerMap], halves: bool = False) -> pd.DataFrame:
    frames = []
    for number, (layer, layer_map) in enumerate(maps.items()):
        points = layer_map.points[number * len(shown) : (number + 1) * len(shown)] if halves else layer_map.points
        columns: dict[str, Any] = {"layer": layer, "number": range(len(shown)), "token": [t.text for t in shown.tokens]}
        columns |= {axis: points[:, column] for column, axis in enumerate("xyz"[: points.shape[1]])}
        columns |= {"sentence": [t.sentence + 1 for t in shown.tokens], "position": [t.position for t in shown.tokens]}
        frames.append(pd.DataFrame(columns | {name: list(labels) for name, labels in shown.labels.items()}))
    return pd.concat(frames, ignore_index=True)
