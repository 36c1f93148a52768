"""The views that the pages have, as they are declared."""

from __future__ import annotations

from dashboard.declared import table


def views_of_pages() -> dict[str, tuple[str, ...]]:
    """Page to the keys of its views, in the order in which they are offered."""
    return {page.key: tuple(view.key for view in table.views_of(page.key)) for page in table.PAGES}
