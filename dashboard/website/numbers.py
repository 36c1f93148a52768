"""The numbers of the figures at an address: the table of each, as its button “Share” shows it.

The view is drawn as a person sees it, with its panel “Session” open: that collects what is drawn for a report.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from streamlit.testing.v1 import AppTest

from components.charts.stand_alone.page import title_of
from components.errors import InputError, UserError
from components.markup import to_text
from components.retrieval.corpora.readers.limits import never
from dashboard import caching, state
from dashboard.corpora import current
from dashboard.declared import addresses, table
from dashboard.sharing.report import COLLECTED
from dashboard.website.session import Session, not_drawn

PANEL = "session_panel_0"  # the button “Session” of a session that has opened no file
# How the keys of buttons begin that a person presses to begin work whose figure then stands in their place.
BEGINS = ("learnt_every_layer", "embed_", "splade_", "find_pairs")
FIX = "Copy the address of a view again: “Share”, “Link”."


def numbers_at(address: str, key: str = "", of_corpus: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """{"view", "settings", "figures": [{"key", "title", "finding", "columns", "rows"}]}: all figures, or that of a key.

    `of_corpus`: the "paths" of a file that the view searches, and its "encoding", "column" and "dialect" as CorpusSource has
    them. Raises InputError for an address of no view, for a setting that is not valid, where there is no such figure, and for
    a file that cannot be read.
    """
    view, settings = _read(address)
    if of_corpus is not None:
        settings["corpus"] = _corpus_read(view, of_corpus)
    session = Session(view, has_open=PANEL, shows_progress=True)
    app = session.at(settings)
    found = {figure["key"]: figure for figure in _figures(app)}
    if key and key not in found and (button := _begins(app)) is not None:
        button.click()
        found = {figure["key"]: figure for figure in _figures(session.at_rest())}
    if not found:
        raise not_drawn(view, _said(app))
    if key and key not in found:
        raise InputError(
            f"The view “{view}” shows no figure “{key}”.", f"It shows {', '.join(found)}.", "Correct --figure."
        )
    shown = {table.SETTING[name].short: table.SETTING[name].show(value) for name, value in settings.items()}
    return {"view": view, "settings": shown, "figures": [found[key]] if key else list(found.values())}


def _corpus_read(view: str, of_corpus: Mapping[str, Any]) -> str:
    """The key of the corpus in a file, which is in memory then. Raises InputError, also where the view reads no corpus."""
    if "corpus" not in table.VIEWS[view].settings:
        raise InputError(f"The view “{view}” searches no corpus.", "--corpus is for views that do.", "Leave it out.")
    path = Path(of_corpus["paths"][0])
    corpus = current.CorpusSource(path.name, **{**of_corpus, "paths": (str(path),)}).read(never)
    key = current.key_of(corpus)
    caching.corpora().put(key, corpus)
    return key


def _read(address: str) -> tuple[str, dict[str, Any]]:
    """The view of an address and its settings by name, also of one of an older form. Raises InputError."""
    try:
        parts = urlsplit(address)
    except ValueError as problem:
        raise InputError(f"This is no address: {problem}.", "It is that of a view.", FIX) from problem
    path, query = parts.path.rpartition("/")[2], parts.query
    page, query = addresses.corrected(path, query) or (path, query)
    texts = parse_qs(query, keep_blank_values=True, errors="surrogatepass")
    try:
        texts = state.with_packed(texts)
    except ValueError as problem:
        raise InputError(f"The long texts of the address are damaged: {problem}.", "They are packed.", FIX) from problem
    page = page or addresses.HOME
    of_page = [view.key for view in table.views_of(page)] if page in table.PAGE_BY_KEY else []
    view = "".join(texts.pop(table.VIEW, of_page[:1]))
    if view not in table.VIEWS:
        raise InputError(f"There is no view “{view or page}”.", "`python -m dashboard.views` lists all.", FIX)
    return view, dict(_settings(view, texts))


def _settings(view: str, texts: Mapping[str, list[str]]) -> Iterator[tuple[str, Any]]:
    known = {setting.short: setting for setting in table.SETTINGS if setting.shared} | {
        setting.short: setting for setting in table.settings_in(view)
    }
    for short, values in texts.items():
        if short not in known:
            raise InputError(
                f"The view “{view}” has no setting “{short}”.", f"Its settings are {', '.join(known)}.", FIX
            )
        try:
            yield known[short].name, known[short].parse(values)
        except (ValueError, UserError) as problem:
            given = f"{short}={', '.join(values)}"[:60]
            raise InputError(
                f"The address's value for the {known[short].label} (“{given}”) is not valid.",
                f"{str(problem).rstrip('.').capitalize()}.",
                FIX,
            ) from problem


def _figures(app: AppTest) -> Iterator[dict[str, Any]]:
    """What the page has collected of its figures, in their order."""
    for key, (part, make) in app.session_state[COLLECTED].parts.items():
        if make is not None:
            made = json.loads(make().to_json(orient="split", index=False, double_precision=15))
            title = part.title or (title_of(part.figure) if part.figure is not None else "")
            about = {"key": key, "title": title, "finding": to_text(part.message)}
            yield about | {"columns": made["columns"], "rows": made["data"]}


def _begins(app: AppTest) -> Any:
    """The button that begins the work of a figure; None if the page has none."""
    return next((button for button in app.button if (button.key or "").startswith(BEGINS)), None)


def _said(app: AppTest) -> str:
    """What a page without figures says in their place."""
    return " ".join(to_text(str(item.value)) for kind in (app.error, app.warning, app.info) for item in kind)
