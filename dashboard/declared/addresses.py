"""Which address a browser should have opened: the page on which the view stands, in today's form. A pure function."""

from __future__ import annotations

from urllib.parse import unquote_plus

from dashboard.declared import older, table

HOME = "home"


def page_of(path: str) -> str:
    """The page that a path means: itself, or that on which the first view of a page of older addresses stands today."""
    views = () if path in table.PAGE_BY_KEY else older.views_of(path)
    return table.place_of(views[0]) if views else path


def corrected(page: str, query: str) -> tuple[str, str] | None:
    """The page and the query of an address, as they should be; None where they are right already.

    `page` is the path below the server's base, empty for Start; `query` is what stands behind the question mark, with its
    texts as they were sent: they stay as they are, packed ones too.
    """
    address: dict[str, list[str]] = {}
    for part in filter(None, query.split("&")):
        key, _, text = part.partition("=")
        address.setdefault(unquote_plus(key), []).append(text)
    found = older.translated(page or HOME, address)
    named = found.get(table.VIEW, [])
    place = table.PLACE.get("".join(named)) or page_of(page or HOME)
    if place == (page or HOME) and found == address:
        return None
    is_same = found == address
    written = query if is_same else "&".join(f"{key}={text}" for key, texts in found.items() for text in texts)
    return ("" if place == HOME else place), written
