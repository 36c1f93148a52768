"""All heads as clickable tiles of one canvas: a small browser component.

The matrices are sent as one byte 0..255 per cell, so that 144 heads at 128 tokens are 2.4 MB and are drawn in a
fraction of a second. As plotly subplots they would be 49,000 elements of the page.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence

import numpy as np

from components.charts import theme
from components.charts.matrices import as_cells, palette_bytes
from dashboard.ui import browser, controls

MAX_CELLS = 4 * 2**20 - 2**16  # one byte per cell; the rest of 4 MB is for the hints


HTML = (
    '<div class="heads"><p class="axis"><span>rows: blocks, columns: heads</span><span class="key"></span></p>'
    '<canvas tabindex="0" role="img"></canvas><p class="hint" aria-live="polite"></p></div>'
)


def head_tiles(
    values: np.ndarray,
    key: str,
    hints: Sequence[str],
    on_click: Callable[[int, int], None],
    *,
    label: str,
    selected: tuple[int, int],
    height: int,
    limits: tuple[float, float] = (0.0, 1.0),
    scale: float = 1.0,
    legend: tuple[str, str, str] = ("", "", ""),
    numbers: Sequence[str] = (),
) -> None:
    """Draw values [block, head, size, size] as tiles. After a click, `on_click(block, head)` runs before the next draw.

    All tiles together are at most `height` pixels high, unless they would become too small to click. `hints` has a line
    for each tile, block by block, which is visible while the pointer or the keyboard is on the tile. The colours, from pale to
    blue, are explained by a `legend`: what they stand for, and what the palest and the bluest are. `numbers` are written into
    tiles of one cell that have room for them.
    Raises ValueError if there are more than MAX_CELLS cells.
    """
    blocks, heads, size, _ = values.shape
    if values.size > MAX_CELLS:
        raise ValueError(f"{values.size:,} cells are too many to send; at most {MAX_CELLS:,} were expected")

    def clicked() -> None:
        sent = browser.two_numbers(browser.sent_by(key, "clicked"))
        if sent is not None and browser.is_index(sent[0], blocks) and browser.is_index(sent[1], heads):
            on_click(*sent)

    layout = json.dumps(
        {
            "blocks": blocks,
            "heads": heads,
            "size": size,
            "hints": list(hints),
            "selected": list(selected),
            "label": label,
            "scale": scale,
            "height": height,
            "legend": list(legend),
            "numbers": list(numbers),
        }
    ).encode()
    # A component accepts bytes only as its whole data, so the layout is sent in front of the cells.
    colours = palette_bytes(theme.one_hue(controls.is_dark()))
    packed = struct.pack("<I", len(layout)) + layout + colours + as_cells(values, *limits)
    browser.web_component("heads", HTML)(key=key, data=packed, on_clicked_change=clicked)
