"""Addresses below those of pages: the server sends them to Home."""

from __future__ import annotations

import pytest

from dashboard.access import is_below_a_page


@pytest.mark.parametrize("path", ["/tokens/x", "tokens/x", "/no/such/page", "/tokens/x/"])
def test_an_address_below_that_of_a_page_has_no_page(path: str) -> None:
    assert is_below_a_page(path)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "",
        "/tokens",
        "tokens/",
        "/static/a.js",
        "/_stcore/health",
        "component/a/index.html",
        "/auth/login",
        "/auth/logout",
    ],
)
def test_pages_and_files_are_left_alone(path: str) -> None:
    assert not is_below_a_page(path)
