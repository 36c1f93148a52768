"""The words for numbers: the labels of cells that hold several tokens."""

from __future__ import annotations

from dashboard.ui import wording


def test_cells_are_named_by_the_first_and_the_last_of_their_tokens() -> None:
    assert wording.cell_labels(7, 3) == ["0–2", "3–5", "6"]
    assert wording.cell_labels(3, 1) == ["0", "1", "2"]
    assert wording.first_to_last([4, 6, 9]) == "4–9"
