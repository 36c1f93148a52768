"""The input tensors as aligned grids of numbers, in HTML. All text from people is escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np


def tensor_grids(
    tensors: Sequence[tuple[str, np.ndarray]],
    pieces: Sequence[Sequence[str]],
    mask: np.ndarray,
    first_row: int = 0,
    total: int | None = None,
    names: Sequence[str] | None = None,
) -> str:
    """Several tensors [sentence, token], one below the other, with aligned columns and grey padding.

    `pieces` are each sentence's tokens, shown as the tooltip of a cell. If these are only some rows of a larger
    tensor, the numbers of the sentences start after `first_row`, and `total` is its number of rows.
    `names` stand before the rows in place of numbers.
    """
    rows, width = mask.shape
    head = "".join(f'<th scope="col">{column}</th>' for column in range(width))
    body = []
    for name, values in tensors:
        body.append(
            f'<tr class="name"><th scope="rowgroup" colspan="{width + 1}"><span>{html.escape(name)}'
            f" &nbsp;({total or rows} × {width})</span></th></tr>"
        )
        for row in range(rows):
            cells = "".join(
                f'<td title="{html.escape(pieces[row][column])}">{values[row, column]}</td>'
                if mask[row, column]
                else f'<td class="pad" title="padding">{values[row, column]}</td>'
                for column in range(width)
            )
            row_name = str(first_row + row + 1) if names is None else html.escape(names[row])
            body.append(f'<tr><th scope="row">{row_name}</th>{cells}</tr>')
    return (
        '<div class="bi-grids" tabindex="0" role="region" aria-label="Input tensors"><table>'
        f'<thead><tr><th scope="col">sentence</th>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'
    )
