"""Figures of a training run: loss, measures and learning rate over the steps; lengths of the texts; what moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from components.arrays import Float64
from components.charts import theme

MOST_POINTS = 2_000  # of a curve: more are thinned, since no screen shows them
CUT_OFF = "#D6246E"
_HEIGHT, _LOW = 330, 230  # pixels; the low one leaves room for a row of the data below it


def smoothed(values: np.ndarray, window: int) -> Float64:
    """The mean of each value and the `window` - 1 before it, float64 [step]; fewer at the beginning."""
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(0, ends - max(1, window))
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts), np.float64)


def loss_curves(
    losses: Mapping[str, tuple[np.ndarray, np.ndarray]],
    validation: tuple[np.ndarray, np.ndarray],
    title: str,
    *,
    window: int,
    steps: int,
    marked: int | None = None,
) -> go.Figure:
    """Training loss by objective, each as (steps, values) raw and smoothed, and the validation loss.

    The axis goes to the last of all `steps`; `marked` is a step to show with a line, such as the best one.
    """
    figure = go.Figure()
    for index, (name, (at_steps, values)) in enumerate(losses.items()):
        label = "training loss" if len(losses) == 1 else f"{theme.plain(name)} loss"
        colour = theme.PALETTE[index]
        every = slice(None, None, -(-len(values) // MOST_POINTS) or 1)
        figure.add_scatter(
            x=at_steps[every],
            y=np.asarray(values[every], np.float32),
            name=f"{label}, each step",
            mode="lines+markers" if len(values) < 2 else "lines",
            line={"color": colour, "width": 1.5},
            opacity=0.6,
            hovertemplate=f"step %{{x}}: {label} %{{y:.4f}}<extra></extra>",
        )
        figure.add_scatter(
            x=at_steps[every],
            y=smoothed(values, window)[every].astype(np.float32),
            name=f"{label}, mean of {window} steps" if window > 1 else label,
            mode="lines",
            line={"color": colour, "width": 3},
            hovertemplate=f"up to step %{{x}}: mean {label} %{{y:.4f}}<extra></extra>",
        )
    if len(validation[0]):
        figure.add_scatter(
            x=validation[0],
            y=np.asarray(validation[1], np.float32),
            name="validation loss",
            mode="lines+markers",
            line={"color": theme.ORANGE, "width": 2.5, "dash": "dash"},
            marker={"size": 8},
            hovertemplate="step %{x}: validation loss %{y:.4f}<extra></extra>",
        )
    figure.update_yaxes(title="loss", rangemode="tozero", zeroline=False)
    return _over_steps(figure, title, steps, marked, "kept")


def step_curves(
    curves: Mapping[str, tuple[np.ndarray, np.ndarray]],
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
    for index, (name, (at_steps, values)) in enumerate(curves.items()):
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
    figure.update_layout(showlegend=len(curves) > 1)
    return _over_steps(figure, title, steps, marked)


def _over_steps(figure: go.Figure, title: str, steps: int, marked: int | None, mark: str = "") -> go.Figure:
    if marked is not None:
        figure.add_vline(
            x=marked,
            line={"color": theme.GREY, "dash": "dot", "width": 2},
            annotation={"text": mark, "showarrow": False, "yanchor": "top", "xanchor": "right", "xshift": -3},
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
    """How many texts of each side have how many tokens, int [text] by side; longer ones than `cut_off` are truncated.

    `counted` and `of` name what is counted, such as "pairs" and "both texts together".
    """
    longest = max((int(values.max()) for values in lengths.values() if len(values)), default=1)
    width = max(1, -(-longest // 40))
    edges = np.arange(0, longest + width + 1, width)
    figure = go.Figure()
    for index, (name, values) in enumerate(lengths.items()):
        counts, _ = np.histogram(values, bins=edges)
        low, high = edges[:-1], edges[1:] - 1
        figure.add_bar(
            x=(low + high) / 2,
            y=counts,
            width=width,
            name=theme.plain(name),
            marker={"color": theme.PALETTE[index], "line": {"width": 0}},
            opacity=0.75,
            customdata=np.stack([low, high], axis=1),
            hovertemplate=f"{theme.plain(name)}: %{{y:,}} {counted} of %{{customdata[0]}} to %{{customdata[1]}} tokens"
            "<extra></extra>",
        )
    figure.add_vline(
        x=cut_off + 0.5,
        line={"color": CUT_OFF, "width": 3, "dash": "dash"},
        annotation={
            "text": f"cut-off: {cut_off} tokens",
            "font": {"size": theme.FONT_SIZE, "color": CUT_OFF},
            "yref": "paper",
            "y": 1.0,
            "yanchor": "top",
            "xanchor": "right",
            "xshift": -6,
        },
    )
    figure.update_xaxes(title=f"tokens of {of}, special tokens included", range=[0, max(longest, cut_off) * 1.04 + 1])
    figure.update_yaxes(title=counted)
    figure.update_layout(barmode="overlay")
    theme.legend_below(figure, shown=len(lengths) > 1)
    return theme.finish(figure, title, _LOW)


def before_after_bars(
    names: Sequence[str],
    before: np.ndarray,
    after: np.ndarray,
    title: str,
    *,
    y_title: str,
    unit: str = "",
    before_name: str = "before",
    untouched: np.ndarray | None = None,
    untouched_name: str = "untouched",
) -> go.Figure:
    """Measures of two models beside each other, each [measure, 3] as value, lower and upper end of its interval.

    `untouched` are those of a third model, which is neither of the two. Arrays [measure, 1] have values without intervals.
    """
    has_intervals = before.shape[1] == 3
    figure = go.Figure()
    bars = [(before_name, before, theme.GREY), ("after", after, theme.BLUE)]
    if untouched is not None:
        bars.append((untouched_name, untouched, theme.GREEN))
    for name, values, colour in bars:
        figure.add_bar(
            x=[theme.plain(measure) for measure in names],
            y=np.asarray(values[:, 0], np.float64),
            name=name,
            marker_color=colour,
            # Orange is seen on both bars, on a light and on a dark page.
            error_y=theme.interval(*values.T, color=theme.ORANGE, thickness=2.5, width=6) if has_intervals else None,
            texttemplate=f"%{{y:.{1 if unit else 3}f}}",
            textposition="inside",
            insidetextanchor="start",
            textangle=0 if untouched is None else -90,  # three bars are narrow on a phone
            customdata=values[:, 1:],
            hovertemplate=f"%{{x}} {name}: %{{y:.3f}}{unit}"
            + ("<br>95 % interval %{customdata[0]:.3f} to %{customdata[1]:.3f}" if has_intervals else "")
            + "<extra></extra>",
        )
    figure.update_yaxes(title=y_title, rangemode="tozero", zeroline=False)
    figure.update_layout(barmode="group", bargap=0.35)
    theme.legend_below(figure, shown=True)
    return theme.finish(figure, title, _HEIGHT)
