"""Tests of the forms of a word."""

from __future__ import annotations

import pytest

from components.words.forms import are_forms, forms_in


@pytest.mark.parametrize(
    ("first", "second"),
    [
        *(("voucher", "vouchers"), ("Bat", "bats"), ("return", "returned"), ("swim", "swimming"), ("make", "making")),
        *(
            ("country", "countries"),
            ("box", "boxes"),
            ("workers", "workers'"),
            ("bank", "bank’s"),
            ("jumping", "jumped"),
        ),
    ],
)
def test_regular_forms_of_a_word_are_seen(first: str, second: str) -> None:
    assert are_forms(first, second)
    assert are_forms(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        *(("bank", "river"), ("voucher", "vouch"), ("thing", "th"), ("red", "r"), ("is", "i"), ("glass", "glas")),
        *(
            ("bus", "bu"),
            ("string", "str"),
            ("cat", "category"),
            ("war", "warm"),
            ("12", "123"),
            ("number", "numb"),
            ("virus", "viru"),
        ),
    ],
)
def test_other_words_are_not(first: str, second: str) -> None:
    assert not are_forms(first, second)
    assert not are_forms(second, first)


def test_the_forms_among_some_words_leave_out_the_word_itself() -> None:
    assert forms_in("voucher", ["The", "Vouchers", "voucher", "vouchers", "expire"]) == ("vouchers",)
    assert forms_in("voucher", ["nothing"]) == ()
