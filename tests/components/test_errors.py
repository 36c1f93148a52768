"""What people read of a library's failure."""

import pytest

from components.errors import first_line


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (ValueError("broken."), "broken"),
        (ValueError("first\nsecond"), "first"),
        (ValueError("\n  \nafter empty lines"), "after empty lines"),
        (ValueError(""), "ValueError"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (ValueError("x" * 500), "x" * 200),
    ],
)
def test_a_failure_in_one_line(problem, expected):
    assert first_line(problem) == expected
