"""What stands above each of several pictures of one figure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import TYPE_CHECKING

from components.charts import theme

if TYPE_CHECKING:
    import plotly.graph_objects as go


def write_heads(
    figure: go.Figure, heads: Iterable[tuple[float, str]], ink: str, scale: float, tops: Iterable[float] | None = None
) -> None:
    """Write the lines of each picture above it; `heads`: where it begins on the paper, 0 to 1, and its lines as HTML.

    `tops` are where the pictures end on the paper if not all do at its upper edge.
    """
    place = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "align": "left"}
    font = {"size": 13 * scale, "color": ink}
    theme.annotate(
        figure,
        [
            {"text": text, "x": start, "y": top, **place, "showarrow": False, "font": font}
            for (start, text), top in zip(heads, repeat(1) if tops is None else tops, strict=False)
        ],
    )
