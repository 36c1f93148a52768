"""The views that the pages have, read from the pages themselves, so that no list of a test can miss one."""

from __future__ import annotations

import ast
from functools import cache

from dashboard.navigation import PATH
from tests.support.places import ROOT


@cache
def views_of_pages() -> dict[str, tuple[str, ...]]:
    """Page to the keys of its views, in the order in which they are offered; "" alone for a page without views."""
    return {page: tuple(_views_in(page)) or ("",) for page, *_ in PATH}


def _views_in(page: str) -> list[str]:
    """The keys of VIEWS in a page's module, which cannot be imported: that would draw it."""
    source = (ROOT / "dashboard" / "views" / page / "page.py").read_text(encoding="utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and any(
            isinstance(name, ast.Name) and name.id == "VIEWS" for name in node.targets
        ):
            assert isinstance(node.value, ast.Dict), page
            return [str(ast.literal_eval(key)) for key in node.value.keys if key is not None]
    return []
