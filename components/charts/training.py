"""Figures of a training run: loss, measures and learning rate over the steps; lengths of the texts; what moved."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from components.arrays import Float64
from components.charts import curves, theme
from components.numbers import percent

MOST_POINTS = 2_000  # of a curve: more are thinned, since no screen shows them
CUT_OFF = "#D6246E"
_LOSS_HEIGHT, _ROOM, _LETTER = 400, 18, 9.2  # pixels: of the loss, beside the end of a line, of a letter
_PANELS_HEIGHT, _PANEL_TITLE, _PANEL_LEFT = (
    420,
    34,
    44,
)  # pixels: of the measures, between two panels, left of their plots
# The three models of a run, in all figures: undamaged or as published, before training, and while and after it learns.
UNDAMAGED, BEFORE, AFTER = theme.GREY, theme.ORANGE, theme.BLUE
_RING = {"size": 18, "color": "rgba(0,0,0,0)", "line": {"width": 2, "color": AFTER}}  # around the step that is kept
# Of the texts of a row: what is searched with, what belongs to it, what is pushed apart.
_SIDES = (theme.GREY, theme.BLUE, theme.ORANGE, theme.GREEN, *theme.PALETTE[3:])
_HEIGHT, _LOW = 330, 230  # pixels; the low one leaves room for a row of the data below it
_NAME = 20  # pixels: a line with a name above bars
_TWO_DECIMALS = partial(theme.number, digits=2)


def smoothed(values: np.ndarray, window: int) -> Float64:
    """The mean of `window` values around each one, float64 [step].

    At the beginning as many before it as after it, since the mean of falling values lies above one that is not in their
    middle; at the end those that are there.
    """
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    places, others = np.arange(len(values)), max(1, window) - 1
    starts = places - np.minimum(others // 2, places)
    ends = np.minimum(places + np.minimum(others - others // 2, places) + 1, len(values))
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts), np.float64)


def loss_curves(
    losses: Mapping[str, tuple[np.ndarray, np.ndarray]],
    held_out: tuple[np.ndarray, np.ndarray],
    title: str,
    *,
    window: int,
    steps: int,
    marked: int | None = None,
    dark: bool = False,
) -> go.Figure:
    """Training loss by objective, each as (steps, values), a dot for each step and their mean as a line; and that held out.

    The axis goes to the last of all `steps`; `marked` is a step to show with a ring on the held-out loss, the best one.
    """
    figure = go.Figure()
    colours = (theme.GREY,) if len(losses) == 1 else theme.PALETTE[2:]
    ends: list[tuple[float, float, str, str]] = []  # x and y of a line's end, its label, its colour
    for (name, (at_steps, values)), colour in zip(losses.items(), colours, strict=False):
        label = "training loss" if len(losses) == 1 else f"{theme.plain(name)} loss"
        every = slice(None, None, -(-len(values) // MOST_POINTS) or 1)
        means = smoothed(values, window)
        figure.add_scatter(
            x=at_steps[every],
            y=np.asarray(values[every], np.float32),
            name=f"{label}, each step",
            mode="markers",
            marker={"color": colour, "size": 6},
            cliponaxis=False,  # the dots of the first and the last step are whole
            opacity=0.55,
            hovertemplate=f"step %{{x}}: {label} %{{y:.4f}}<extra></extra>",
        )
        figure.add_scatter(
            x=at_steps[every],
            y=means[every].astype(np.float32),
            name=f"{label}, mean of {window} steps" if window > 1 else label,
            mode="lines",
            line={"color": colour, "width": 3},
            hovertemplate=f"around step %{{x}}: mean {label} %{{y:.4f}}<extra></extra>",
        )
        if len(values):
            name = f"<b>{label.removesuffix(' loss')} {_TWO_DECIMALS(float(means[-1]))}</b>"
            ends.append((float(at_steps[-1]), float(means[-1]), name, colour))
    if len(held_out[0]):
        figure.add_scatter(
            x=held_out[0],
            y=np.asarray(held_out[1], np.float32),
            name="held-out loss",
            mode="lines+markers",
            line={"color": theme.BLUE, "width": 3},
            marker={"size": 9, "color": _colours(held_out[0])},
            cliponaxis=False,
            hovertemplate="step %{x}: held-out loss %{y:.4f}<extra></extra>",
        )
        last = float(held_out[1][-1])
        ends.append((float(held_out[0][-1]), last, f"<b>held out {_TWO_DECIMALS(last)}</b>", theme.BLUE))
    figure.update_yaxes(rangemode="tozero", zeroline=False)
    _over_steps(
        figure, title, steps, marked, f"kept: step {marked:,}" if marked is not None else "", theme.whiskers(dark)
    )
    if marked is not None and marked in held_out[0]:
        kept = float(held_out[1][np.flatnonzero(held_out[0] == marked)[0]])
        figure.add_scatter(
            x=[marked],
            y=[kept],
            name="kept",
            mode="markers",
            marker=_RING,
            cliponaxis=False,
            hovertemplate=f"step {marked}: the best on held-out rows, kept<extra></extra>",
        )
    if losses:
        figure.layout.title.text += (
            f"{theme.BELOW_TITLE}dots: each step{f' · line: mean of {window}' * (window > 1)}</span>"
        )
        figure.layout.margin.t += theme.KEY_HEIGHT + 4
    figure.layout.showlegend, figure.layout.height = False, _LOSS_HEIGHT
    figure.layout.margin.t += 16 if marked is not None else 0  # for what stands above its line
    values = np.concatenate([np.asarray(trace.y, float) for trace in figure.data] or [np.zeros(0)])
    if np.isfinite(values).any() and np.nanmin(values) >= 0:  # the ring, too, has room at the bottom
        top = float(np.max(values[np.isfinite(values)]))
        figure.update_yaxes(range=(-0.04 * top, 1.05 * top) if top else (0, 1))
    _name_ends(figure, ends, _LOSS_HEIGHT - 110, dark=dark)
    return figure


def _colours(steps: np.ndarray) -> list[str]:
    """The colours of a curve's dots: the model before training, at step 0, has the one of its bars."""
    return [theme.BLUE if step else BEFORE for step in steps.tolist()]


def _name_ends(
    figure: go.Figure, ends: Sequence[tuple[float, float, str, str]], height: float, axis: str = "", dark: bool = False
) -> None:
    """Write each line's label beside its end, in its colour, apart from each other; the plot is so many pixels high."""
    finite = [end for end in ends if np.isfinite(end[1])]
    shown = [trace for trace in figure.data if (trace.yaxis or "y") == f"y{axis}"]
    values = np.concatenate([np.asarray(trace.y, float) for trace in shown] or [np.zeros(1)])
    low, high = figure.layout[f"yaxis{axis}"].range or (-np.inf, np.inf)
    span = high - low if np.isfinite(high - low) else float(np.max(values[np.isfinite(values)], initial=0.0))
    apart = 18 * max(span, 1e-9) / max(60, height)
    places = curves.spread([y for _, y, _, _ in finite], apart)
    order = np.argsort(places, kind="stable").tolist()
    for step, number in enumerate(order[::-1]):  # plotly draws no text beyond an axis
        places[number] = min(places[number], high - step * apart)
    for step, number in enumerate(order):
        places[number] = max(places[number], low + step * apart)
    for (x, _, label, colour), place in zip(finite, places, strict=True):
        figure.add_annotation(
            x=x,
            y=place,
            xref=f"x{axis}",
            yref=f"y{axis}",
            text=label,
            font={"color": colour if colour != theme.GREY else theme.whiskers(dark), "size": theme.FONT_SIZE},
            xanchor="left",
            xshift=12,
            showarrow=False,
        )
    longest = max((len(label.removeprefix("<b>").removesuffix("</b>")) for _, _, label, _ in finite), default=0)
    figure.layout.margin.r = max(int(figure.layout.margin.r or 0), round(_ROOM + _LETTER * longest))


def measure_panels(
    panels: Mapping[str, tuple[str, tuple[np.ndarray, np.ndarray]]],
    levels: Mapping[str, float],
    *,
    steps: int,
    marked: int | None = None,
    shares: Collection[str] = (),
    dark: bool = False,
) -> go.Figure:
    """Measures on held-out rows over the steps of a run, in panels below each other, from 0 to 1 where they lie there.

    `panels` maps a panel's title to a measure's name and its curve (steps, values); the first is the largest. `levels` maps a
    name to what the model had before it was damaged, drawn as a dashed line. The title has the value at the `marked` step,
    which is kept, and the one before training, and the curve's end the last one. The measures `shares` are in per cent.
    """
    count, height = max(1, len(panels)), _PANELS_HEIGHT
    spacing = _PANEL_TITLE / (height - 80)
    figure = make_subplots(
        rows=count,
        cols=1,
        subplot_titles=[theme.plain(title) for title in panels],
        row_heights=[2.0] + [1.0] * (count - 1),
        vertical_spacing=spacing,
        shared_xaxes=True,
    )
    for row, (name, (at_steps, of)) in enumerate(panels.values(), start=1):
        values = np.asarray(of, np.float64)
        figure.add_scatter(
            x=at_steps,
            y=values,
            name=theme.plain(name),
            mode="lines+markers",
            line={"color": AFTER, "width": 2.5},
            marker={"size": 8, "color": _colours(at_steps)},
            cliponaxis=False,
            hovertemplate=f"step %{{x}}: {theme.plain(name)} %{{y:.3f}}<extra></extra>",
            row=row,
            col=1,
        )
        known = [*values[np.isfinite(values)].tolist(), *([levels[name]] if name in levels else [])]
        if not known or (min(known) >= 0 and max(known) <= 1):
            figure.update_yaxes(range=(-0.08, 1.08), row=row, col=1)
        figure.update_yaxes(zeroline=False, nticks=5 if row == 1 else 3, row=row, col=1)
        if name in shares:
            figure.update_yaxes(tickvals=(0, 0.5, 1), ticktext=("0 %", "50 %", "100 %"), row=row, col=1)
    _over_steps(figure, "", steps, None)
    figure.update_xaxes(title=None)
    figure.update_xaxes(title="step", row=count, col=1)
    figure.layout.height, figure.layout.showlegend, figure.layout.margin.t = height, False, 30
    plot = (height - 80) * (1 - spacing * (count - 1)) / (count + 1)  # pixels of a small panel
    headings, ink = figure.layout.annotations[: len(panels)], theme.whiskers(dark)
    for heading, (name, (at_steps, of)) in zip(headings, panels.values(), strict=True):
        shown = slice(-1, None) if marked is None else at_steps == marked
        kept, before = np.asarray(of)[shown].tolist(), np.asarray(of)[(at_steps == 0) & (len(of) > 1)].tolist()
        text = "".join(
            f' <span style="color:{colour}">{_written(name, value, shares)}</span>'
            for value, colour in zip(kept, _colours(at_steps[shown]), strict=True)
        )
        of_before = [
            f'<span style="color:{BEFORE}">, before {_written(name, value, shares)}</span>' for value in before
        ]
        text = f"<b>{heading.text}{text}</b>{''.join(of_before)}"
        heading.update(
            text=text, x=0, xanchor="left", xshift=-_PANEL_LEFT, font={"size": theme.FONT_SIZE, "color": ink}
        )
    for row, (name, (at_steps, of)) in enumerate(panels.values(), start=1):
        values = np.asarray(of, np.float64)
        ends = []
        if len(values):
            is_last = marked in (None, int(at_steps[-1]))
            label = "now" if marked is None else "kept" if is_last else f"step {int(at_steps[-1]):,}:"
            label = f"{label} {_written(name, float(values[-1]), shares)}"
            label = f"<b>{label}</b>" if is_last else label
            ends.append((float(at_steps[-1]), float(values[-1]), label, _colours(at_steps)[-1]))
        if name in levels:
            figure.add_hline(y=levels[name], line={"color": UNDAMAGED, "dash": "dash", "width": 1.5}, row=row, col=1)
            ends.append((float(steps), levels[name], f"undamaged {_written(name, levels[name], shares)}", UNDAMAGED))
        if marked is not None:
            figure.add_vline(x=marked, line={"color": theme.GREY, "dash": "dot", "width": 2}, row=row, col=1)
            figure.add_scatter(
                x=at_steps[at_steps == marked],
                y=values[at_steps == marked],
                name="kept",
                mode="markers",
                marker=_RING,
                cliponaxis=False,
                hoverinfo="skip",
                row=row,
                col=1,
            )
        _name_ends(figure, ends, plot * (2 if row == 1 else 1), "" if row == 1 else str(row), dark)
    return figure


def _written(name: str, value: float, shares: Collection[str]) -> str:
    return percent(value) if name in shares else _TWO_DECIMALS(value)


def step_curves(
    named: Mapping[str, tuple[np.ndarray, np.ndarray]],
    title: str,
    *,
    y_title: str,
    steps: int,
    marked: int | None = None,
    y_range: tuple[float, float] | None = None,
    markers: bool = True,
    digits: int = 3,
) -> go.Figure:
    """Named curves (steps, values) over the steps of a run: measures on held-out rows, learning rate, speed."""
    figure = go.Figure()
    for index, (name, (at_steps, values)) in enumerate(named.items()):
        every = slice(None, None, -(-len(values) // MOST_POINTS) or 1)
        figure.add_scatter(
            x=at_steps[every],
            y=np.asarray(values[every], np.float64),
            name=theme.plain(name),
            mode="lines+markers" if markers or len(values) < 2 else "lines",
            line=theme.line_style(index),
            marker={"size": 8},
            hovertemplate=f"step %{{x}}: {theme.plain(name)} %{{y:.{digits}g}}<extra></extra>",
        )
    # Not 200µ for a learning rate of 0.0002.
    figure.update_yaxes(title=y_title, range=y_range, zeroline=False, exponentformat="none", separatethousands=True)
    figure.update_layout(showlegend=len(named) > 1)
    return _over_steps(figure, title, steps, marked)


def _over_steps(
    figure: go.Figure, title: str, steps: int, marked: int | None, mark: str = "", ink: str | None = None
) -> go.Figure:
    if marked is not None:
        figure.add_vline(
            x=marked,
            line={"color": theme.GREY, "dash": "dot", "width": 2},
            annotation={
                "text": mark,
                "showarrow": False,
                "y": 1,
                "yanchor": "bottom",
                "xanchor": "center",
                "font_color": ink,
            },
        )
    if not any(len(trace.x) for trace in figure.data):
        figure.update_yaxes(range=(0, 1))
        figure.add_annotation(text="no step yet", showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5)
    figure.update_xaxes(title="step", range=[-0.01 * max(1, steps), 1.01 * max(1, steps)], zeroline=False)
    theme.legend_below(figure)
    return theme.finish(figure, title, _HEIGHT)


def length_histogram(
    lengths: Mapping[str, np.ndarray], cut_off: int, title: str, counted: str = "texts", of: str = "a text"
) -> go.Figure:
    """How many texts of each side have how many tokens, int [text] by side, each in a row; those above `cut_off` are truncated.

    `counted` and `of` name what is counted, such as "pairs" and "both texts together".
    """
    longest = max((int(values.max()) for values in lengths.values() if len(values)), default=1)
    width = max(1, -(-longest // 40))
    edges = np.arange(0, longest + width + 1, width)
    rows = max(1, len(lengths))
    height = _LOW + (56 + _NAME) * (rows - 1)
    reached = max(longest, cut_off) * 1.04
    is_far = 2 * longest < cut_off  # with its line on the axis, most of the figure would be empty
    is_left = 2 * cut_off < reached  # names stand on the other side of the line
    figure = make_subplots(rows=rows, cols=1, shared_xaxes=True, vertical_spacing=_NAME / (height - 120))
    for index, (name, values) in enumerate(lengths.items()):
        counts, _ = np.histogram(values, bins=edges)
        low, high = edges[:-1], edges[1:] - 1
        colour = _SIDES[index % len(_SIDES)]
        figure.add_bar(
            x=(low + high) / 2,
            y=counts,
            width=width,
            name=theme.plain(name),
            marker={"color": colour, "line": {"width": 0}},
            customdata=np.stack([low, high], axis=1),
            hovertemplate=f"{theme.plain(name)}: %{{y:,}} {counted} of %{{customdata[0]}} to %{{customdata[1]}} tokens"
            "<extra></extra>",
            row=index + 1,
            col=1,
        )
        if rows > 1:  # above its bars
            figure.add_annotation(
                text=f"<b>{theme.plain(name)}</b>",
                font={"color": colour},
                showarrow=False,
                xref="paper",
                x=int(is_left),
                xanchor="right" if is_left else "left",
                yref=f"y{index + 1 if index else ''} domain",
                y=1,
                yanchor="bottom",
            )
    figure.add_annotation(
        text=f"cut-off: {cut_off} tokens{' →' if is_far else ''}",
        font={"color": CUT_OFF},
        yref="paper",
        y=1.0,
        yanchor="bottom",
        yshift=_NAME * (rows > 1),  # above the first name
        xanchor="left" if is_left else "right",
        showarrow=False,
        **({"x": 1.0, "xref": "paper"} if is_far else {"x": cut_off + 0.5}),
    )
    if not is_far:
        ends = {"x0": cut_off + 0.5, "x1": cut_off + 0.5, "y0": 0, "y1": 1, "yref": "paper"}
        figure.add_shape(type="line", line={"color": CUT_OFF, "width": 3, "dash": "dash"}, **ends)
    figure.update_xaxes(range=[0, (1.3 * longest if is_far else reached) + 1])
    figure.update_xaxes(title=f"tokens of {of}, special tokens included", row=rows, col=1)
    figure.update_yaxes(nticks=3)
    figure.update_yaxes(title=counted, row=(rows + 1) // 2, col=1)
    figure.layout.showlegend, figure.layout.bargap = False, 0
    theme.finish(figure, title, height)
    figure.layout.margin.t += _NAME * (1 + (rows > 1))  # for the name of the line, above the bars
    return figure


def before_after_bars(
    names: Sequence[str],
    before: np.ndarray,
    after: np.ndarray,
    title: str,
    *,
    quantity: str,
    unit: str = "",
    before_name: str = "before",
    untouched: np.ndarray | None = None,
    untouched_name: str = "untouched",
    guessing: float | None = None,
    dark: bool = False,
) -> go.Figure:
    """Measures of two models as bars below each other, each [measure, 3] as value, lower and upper end of its interval.

    `untouched` are those of a third model, which is neither of the two. Arrays [measure, 1] have values without intervals.
    Values stand at the right, where no interval crosses them. At `guessing`, what chance gives, stands a dashed line. The
    first bars have the names of the models: in them, or behind those that are short.
    """
    has_intervals, ink = before.shape[1] == 3, theme.whiskers(dark)
    figure = go.Figure()
    bars = [(before_name, before, BEFORE), ("after", after, AFTER)]
    if untouched is not None:
        bars.insert(0, (untouched_name, untouched, UNDAMAGED))
    wide, most = 0.8 / len(bars), max(float(np.nan_to_num(values).max()) for _, values, _ in bars)
    for place, (name, values, colour) in enumerate(bars):
        rows = np.arange(len(names)) + wide * (place - (len(bars) - 1) / 2)
        figure.add_bar(
            y=rows,
            x=np.asarray(values[:, 0], np.float64),
            orientation="h",
            width=0.92 * wide,
            name=theme.plain(name),
            marker_color=colour,
            error_x=theme.interval(*values.T, color=ink, thickness=2.5, width=5) if has_intervals else None,
            customdata=[[theme.plain(measure), *ends] for measure, ends in zip(names, values[:, 1:], strict=True)],
            hovertemplate=f"%{{customdata[0]}} {theme.plain(name)}: %{{x:.3f}}{unit}"
            + ("<br>95 % interval %{customdata[1]:.3f} to %{customdata[2]:.3f}" if has_intervals else "")
            + "<extra></extra>",
        )
        is_long = values[0, 0] > most / 2
        figure.add_annotation(
            x=0.0 if is_long else max(0.0, float(np.nan_to_num(values[0]).max())),
            y=rows[0],
            text=theme.plain(name.partition(" (")[0]),
            font={"size": theme.FONT_SIZE, "color": ink if not is_long else "white" if colour == AFTER else "black"},
            xanchor="left",
            xshift=6,
            showarrow=False,
        )
        for row, value in zip(rows, values[:, 0], strict=True):
            figure.add_annotation(
                x=1,
                xref="paper",
                y=row,
                text=theme.number(float(value), 1 if unit else 3),
                xanchor="left",
                xshift=6,
                showarrow=False,
                font={"size": theme.FONT_SIZE, "color": ink},
            )
    if guessing is not None:
        figure.add_vline(
            x=guessing,
            line={"color": theme.GREY, "dash": "dash", "width": 1.5},
            annotation={"text": "guessing", "font": {"size": theme.FONT_SIZE, "color": ink}, "yanchor": "bottom"},
            annotation_position="top",
        )
    figure.update_xaxes(title=quantity, rangemode="tozero", zeroline=False)
    figure.update_yaxes(
        tickvals=np.arange(len(names)),
        ticktext=[theme.plain(measure) for measure in names],
        range=[len(names) - 0.45, -0.55],
        showgrid=False,
        zeroline=False,
    )
    figure.layout.showlegend, figure.layout.hovermode = False, "closest"
    theme.finish(figure, title, 110 + len(names) * (24 * len(bars) + 12))
    figure.layout.margin.r = 56
    if guessing is not None:
        figure.layout.margin.t += 24  # for the name of the line, below the title
    return figure


def model_bars(
    models: Sequence[tuple[str, str, tuple[float, float, float]]],
    title: str,
    *,
    x_title: str,
    unit: str = "",
    top: float = 100.0,
    digits: int = 1,
    dark: bool = False,
) -> go.Figure:
    """One measure of two or three models as bars below each other, with intervals and their values at the right.

    Each model is a name, what it is in a few words, and (value, low, high). The first is the undamaged one where there are
    three: a dashed line leads down from it, past the bars but not through what stands above them.
    """
    figure = go.Figure()
    colours = (UNDAMAGED, BEFORE, AFTER)[-len(models) :]
    ink = theme.whiskers(dark)
    for place, ((name, note, (value, low, high)), colour) in enumerate(zip(models, colours, strict=True)):
        figure.add_bar(
            y=[place],
            x=[value],
            name=theme.plain(name),
            orientation="h",
            width=0.56,
            marker_color=colour,
            error_x=theme.interval([value], [low], [high], color=ink, thickness=2.5, width=7),
            customdata=[[low, high]],
            hovertemplate=f"{theme.plain(name)}: %{{x:.{digits}f}}{unit}<br>95 % interval %{{customdata[0]:.{digits}f}} to "
            f"%{{customdata[1]:.{digits}f}}<extra></extra>",
        )
        said = f"<b>{theme.plain(name[:1].upper() + name[1:])}</b>" + (f"  {theme.plain(note)}" if note else "")
        figure.add_annotation(
            x=0,
            y=place - 0.28,
            text=said,
            xanchor="left",
            yanchor="bottom",
            showarrow=False,
            yshift=1,
            font={"size": theme.FONT_SIZE, "color": ink},
        )
        figure.add_annotation(
            x=1,
            xref="paper",
            y=place,
            text=f"<b>{theme.number(value, digits)}</b>",
            xanchor="left",
            xshift=8,
            showarrow=False,
            font={"size": theme.FONT_SIZE + 4, "color": ink},
        )
    if len(models) == 3 and np.isfinite(models[0][2][0]):
        line = {
            "type": "line",
            "x0": models[0][2][0],
            "x1": models[0][2][0],
            "line": {"color": theme.GREY, "dash": "dash"},
        }
        theme.add_shapes(figure, [line | {"y0": place - 0.28, "y1": place + 0.28} for place in (1, 2)])
    lowest = min([0.0, *(low for _, _, (_, low, _) in models if np.isfinite(low))])
    figure.update_xaxes(title=x_title, range=[lowest, top], zeroline=False)
    figure.update_yaxes(range=[len(models) - 0.5, -0.62], visible=False)
    figure.update_layout(showlegend=False, hovermode="closest")
    theme.finish(figure, title, 120 + 96 * len(models))
    figure.layout.margin.r = 66
    return figure
