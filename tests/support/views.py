"""The views as they are declared."""

from __future__ import annotations

from dashboard.declared import table


def views_of_pages() -> dict[str, tuple[str, ...]]:
    """Page to the keys of its views, in the order in which they are offered."""
    return {page.key: tuple(view.key for view in table.views_of(page.key)) for page in table.PAGES}


def views_by_folder() -> dict[str, tuple[str, ...]]:
    """Folder of code to the keys of its views: those of a folder look at one subject, wherever they stand."""
    found: dict[str, tuple[str, ...]] = {}
    for view in table.VIEWS.values():
        folder = view.draw.split(".")[2]
        found[folder] = (*found.get(folder, ()), view.key)
    return found


# A view of each subject that needs a model.
ONE_OF_EACH = tuple(
    views[0] for folder, views in views_by_folder().items() if folder not in {"lessons", "lecture", "about"}
)
