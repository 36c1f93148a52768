"""Numbers as people read them: rounded once, from the full value, with the minus sign of print."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pytest

from components import numbers
from components.charts import theme


def by_decimal(value: float, digits: int) -> str:
    """The same by decimal arithmetic on the exact value of a float, in one rounding."""
    rounded = Decimal(float(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN)
    return f"{rounded if rounded else abs(rounded):,}".replace("-", "−")


HALF_WAY = [
    0.745,
    0.7446,
    0.985,
    0.98487,
    0.995,
    0.996,
    1.005,
    2.675,
    0.125,
    0.375,
    0.5,
    1.5,
    2.5,
    12.5,
    0.0005,
    999.9995,
]


@pytest.mark.parametrize("digits", range(6))
def test_a_number_is_rounded_once_from_its_full_value(digits: int) -> None:
    draw = np.random.default_rng(digits)
    drawn = [*draw.normal(size=300), *draw.normal(size=100).astype(np.float32), *(draw.integers(0, 200, 100) / 8)]
    for value in [*HALF_WAY, *(-value for value in HALF_WAY), *drawn]:
        assert numbers.number(value, digits) == by_decimal(value, digits), value
        assert numbers.number(value, digits) == numbers.number(float(value), digits)  # whatever type holds it


def test_what_was_rounded_before_gives_another_number() -> None:
    """The cases that were wrong on screen and in a lesson."""
    assert numbers.number(0.7446, 2) == "0.74"
    assert numbers.number(0.98487, 2) == "0.98"
    assert numbers.number(0.996, 2) == "1.00"
    assert numbers.number(0.996) == "0.996"


def test_signs_are_those_of_print_and_zero_has_none() -> None:
    assert numbers.number(-2.948) == "−2.948"
    assert numbers.signed(0.0241) == "+0.024"
    assert numbers.number(0.25, 2) == "0.25"
    for nothing in (0.0, -0.0, 0.0004, -0.0004, np.float32(-1e-9)):
        assert numbers.number(nothing) == numbers.signed(nothing) == "0.000"
    assert numbers.number(-0.0, 0) == "0"
    assert "-" not in "".join(numbers.signed(value, digits) for value in (-1e9, -0.5, -1e-5) for digits in range(7))


def test_what_is_no_number_is_a_dash_and_what_has_no_end_says_so() -> None:
    assert numbers.number(math.nan) == numbers.signed(np.float32("nan")) == numbers.significant(math.nan) == "–"
    assert numbers.number(math.inf) == "∞"
    assert numbers.number(-math.inf, 2) == numbers.significant(-math.inf) == "−∞"
    assert numbers.number(1234567.891, 1) == "1,234,567.9"


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ((0.88, 0.48), ("0.88", "0.48")),
        ((0.302, 0.3), ("0.302", "0.300")),
        ((1.0, 0.996), ("1.000", "0.996")),
        ((0.996, 0.5), ("0.996", "0.500")),  # "1.00" would say that nothing is missing
        ((0.5, 0.5), ("0.50", "0.50")),
        ((0.5, 0.50001), ("0.50", "0.50")),  # three decimals tell them apart no better
        ((math.nan, 0.25), ("–", "0.25")),
        ((-0.304, -0.301, 0.7), ("−0.304", "−0.301", "0.700")),
    ],
)
def test_numbers_that_are_compared_differ_where_they_can(values: tuple[float, ...], written: tuple[str, ...]) -> None:
    assert numbers.apart(*values) == written


@pytest.mark.parametrize(
    ("later", "earlier", "apart"),
    [(87.14, 96.72, "−9.6"), (77.7, 77.0, "0.7"), (77.69, 77.02, "0.7"), (5.04, 4.96, "0.0")],
)
def test_a_difference_is_that_of_the_numbers_beside_it(later: float, earlier: float, apart: str) -> None:
    assert numbers.number(numbers.difference(later, earlier), 1) == apart


def test_a_small_share_is_not_zero() -> None:
    assert [numbers.percent(share) for share in (0.0, 0.001, 0.005, 0.784)] == ["0 %", "less than 1 %", "0 %", "78 %"]


@pytest.mark.parametrize(
    ("value", "written"), [(0.00123, "+0.0012"), (-8.5e-06, "−0.0000085"), (1234.5, "+1,234"), (0.0, "0")]
)
def test_a_number_of_any_size_has_so_many_figures(value: float, written: str) -> None:
    assert numbers.significant(value) == written


def test_charts_write_numbers_by_the_same_functions() -> None:
    assert (theme.number, theme.signed, theme.significant) == (numbers.number, numbers.signed, numbers.significant)
