"""docs/pages.md, written from the declarations: `python -m dashboard.declared.document`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pkgutil import resolve_name

from components.folders import ASSETS, whole_file
from dashboard.declared import table
from dashboard.declared.addresses import HOME
from dashboard.declared.view import View

ROOT = ASSETS.parent
PATH = ROOT / "docs" / "pages.md"
PICTURES = ASSETS / "screenshots" / "views"  # one for each view, by its key; `make screenshots` takes them
_WORKS_WITH = {
    "blocks": "Works with encoders: it looks into their blocks.",
    "tokens": "Works with models that have a vector for each token.",
    "texts": "Works with every model.",
}


def written() -> str:
    """The document: each page with its views, what each asks, shows and needs, its address and its picture."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# The pages and their views"
    yield ""
    yield "Written from the declarations of the views by `python -m dashboard.declared.document`; do not edit it by hand."
    yield "An address is `/<page>?v=<view>`, followed by the view's settings; `v` alone decides what is drawn."
    for page in table.PAGES:
        views = table.views_of(page.key)
        yield ""
        yield f"## {page.title}"
        yield ""
        yield page.question
        for view in views:
            yield from _view_lines(page.key, view, is_single=len(views) == 1)


def _view_lines(page: str, view: View, is_single: bool) -> Iterator[str]:
    path = "/" if page == HOME else f"/{page}"
    if not is_single:
        yield ""
        yield f"### {view.label}: {view.question}"
    yield ""
    intro = str(resolve_name(view.intro_by())()) if view.intro_by() else view.intro
    if intro:
        yield intro
        yield ""
    facts = [f"Address: `{path if is_single else f'{path}?{table.VIEW}={view.key}'}`."]
    if view.is_framed:
        facts.append(_WORKS_WITH[view.needs] + (" A second model can stand beside it." if view.has_two_models else ""))
    if view.uses_sentences:
        facts.append("Shows your sentences.")
    yield " ".join(facts)
    picture = PICTURES / f"{view.key}.jpg"
    yield ""
    yield f"![{view.question or view.label}](../{picture.relative_to(ROOT).as_posix()})"


if __name__ == "__main__":
    with whole_file(PATH) as file:
        file.write(written().encode())
    sys.stdout.write(f"wrote {PATH.relative_to(ROOT)}\n")
