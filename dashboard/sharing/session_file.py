"""A session as a JSON file: what was typed and chosen on all pages, and with which models and packages.

It holds no data: an uploaded corpus stays on its server and is only named. Opening a file is like opening a link: each
value goes through the parser of its setting, and nothing of the file is run, kept for others, or read as markup.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from components import VERSION, packing
from components.errors import InputError
from components.model.catalog import spec_of
from components.retrieval.index.build import versions
from dashboard import caching, state
from dashboard.corpora import current
from dashboard.declared import older
from dashboard.declared.addresses import page_of
from dashboard.declared.table import PAGE_BY_KEY, SETTING, SETTINGS

FORMAT, FORMAT_VERSION = "BERT Internals session", 2  # files of format 1 name pages and views as older addresses do
MOST_BYTES = 1 << 20
MOST_SETTINGS, MOST_TEXTS = 1_000, 2_000  # in a file, and of one setting
PACKAGES = ("streamlit", "torch", "transformers", "numpy")
_FIX = "Choose a file that was saved under “Session”, or save it again."


@dataclass(frozen=True)
class SessionFile:
    """What a file says, with values that are still to be checked by their settings."""

    page: str
    settings: Mapping[str, list[str]]  # by name
    revisions: Mapping[str, str] = field(default_factory=dict)  # of the models, by key
    versions: Mapping[str, str] = field(default_factory=dict)  # by package
    corpus: str = ""  # the name of the corpus that was in use; empty: the demo


def written(page: str) -> dict[str, Any]:
    """The session as the content of a file, as it is now."""
    chosen = state.chosen() | {name: [state.get(name)] for name in state.MODELS if state.get(name)}
    chosen["sentences"] = list(state.get("sentences")) or [""]
    keys = state.named_models()
    corpus = current.in_use()
    source = current.source_of(state.get("corpus")) if corpus is current.demo() and state.get("corpus") else None
    named = (corpus.name, len(corpus)) if source is None else (source.name, source.sentences)
    is_included = corpus is current.demo() and source is None
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
        "page": page,
        "settings": dict(sorted(chosen.items())),
        "models": {name: {"key": key, "title": spec_of(key).title} for name, key in keys.items()},
        "seeds": {item.name: state.get(item.name) for item in SETTINGS if item.name.endswith("_seed")},
        "corpus": {"name": named[0], "sentences": named[1], "included": is_included},
        "versions": {"bert-internals": VERSION, **versions(PACKAGES)},
    }


def to_bytes(content: Mapping[str, Any]) -> bytes:
    """The file: JSON that a person can read, with the revisions of those models that are loaded by now."""
    models = {}
    for name, model in content["models"].items():
        backend = caching.models().find(model["key"])
        models[name] = model | {"revision": None if backend is None else backend.revision}
    content = dict(content) | {"models": models}
    return json.dumps(content, ensure_ascii=False, indent=2).encode(errors="replace")


def check_size(size: int) -> None:
    """Raises InputError for a file of more than MOST_BYTES."""
    if size > MOST_BYTES:
        raise _bad(f"This file has {size:,} bytes.", f"A session file has at most {MOST_BYTES:,}.")


def read(content: bytes) -> SessionFile:
    """What is in a file. Raises InputError for anything but a session file."""
    check_size(len(content))
    try:
        found = packing.valid(json.loads(content.decode("utf-8-sig")))
    except (ValueError, RecursionError) as problem:  # also bytes that are no UTF-8, and numbers of thousands of digits
        raise _bad("This file is not JSON, or it is damaged.", "A session file is JSON in UTF-8.") from problem
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise _bad("This file is not a session of this dashboard.", f"A session file says so: “format”: “{FORMAT}”.")
    number = found.get("format_version")
    if type(number) is not int or number < 1:
        raise _bad("This session file does not name its format.", "“format_version” is a whole number from 1.")
    if number > FORMAT_VERSION:
        raise InputError(
            f"This session was saved by a newer version of the dashboard (format {number}).",
            f"This server reads formats up to {FORMAT_VERSION}.",
            "Open it on the server where it was saved, or update this one.",
        )
    page, chosen = found.get("page"), found.get("settings")
    if not isinstance(page, str) or (page_of(page) if number == 1 else page) not in PAGE_BY_KEY:
        raise _bad("This session file names no page of the dashboard.", f"“page” is one of {', '.join(PAGE_BY_KEY)}.")
    if not isinstance(chosen, dict) or len(chosen) > MOST_SETTINGS or not all(map(_are_texts, chosen.values())):
        raise _bad(
            "The settings in this session file cannot be read.",
            "“settings” has a list of texts for each setting's name.",
        )
    models, versions_there = found.get("models"), found.get("versions")
    if any(isinstance(part, dict) and len(part) > MOST_SETTINGS for part in (models, versions_there)):
        raise _bad(
            f"This session file names more than {MOST_SETTINGS:,} models or packages.",
            "A session uses a few models, and names a few packages.",
        )
    corpus = found.get("corpus")
    own_corpus = corpus if isinstance(corpus, dict) and corpus.get("included") is not True else {}
    if number == 1:
        page, chosen = older.session(page, chosen)
    return SessionFile(
        page,
        older.session_as_meant(chosen),
        _texts_only((item.get("key"), item.get("revision")) for item in _objects(models)),
        _texts_only(versions_there.items() if isinstance(versions_there, dict) else ()),
        str(own_corpus.get("name", ""))[:100],
    )


def sentences_of(file: SessionFile) -> tuple[str, ...]:
    """The sentences of a file; none if they are not valid."""
    with suppress(ValueError):
        sentences: tuple[str, ...] = SETTING["sentences"].parse(file.settings.get("sentences", []))
        return sentences
    return ()


def open_session(file: SessionFile) -> None:
    """Give the session what a file says, and say what differs here. The page is still to be changed."""
    with state.restoring():
        ignored = state.apply_chosen(dict(file.settings))
    for line in ignored[:8]:
        state.notice(f"The session file: {line}")
    if len(ignored) > 8:
        state.notice(f"The session file: {len(ignored) - 8} more settings were ignored.")
    if state.get("corpus") and not current.is_kept(state.get("corpus")):
        state.put("corpus", state.default("corpus"))
        state.notice(
            f"The session used the corpus “{file.corpus}”, which this server does not have: upload it on the page Search, "
            "at the top. The demo corpus is used instead."
        )
    here = versions(PACKAGES)
    others = [
        f"{name} {text} (here {here[name]})" for name, text in file.versions.items() if here.get(name, text) != text
    ]
    if others:
        named = ", ".join(others[:8])
        state.notice(f"The session was saved with {named}: numbers can differ in their last digits.")
    st.session_state[state.EXPECTED_REVISIONS] = dict(file.revisions)


def _bad(problem: str, expected: str) -> InputError:
    return InputError(problem, expected, _FIX)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and len(value) <= MOST_TEXTS and all(isinstance(text, str) for text in value)


def _objects(value: object) -> list[dict[str, Any]]:
    """The objects in a JSON object."""
    return [item for item in value.values() if isinstance(item, dict)] if isinstance(value, dict) else []


def _texts_only(pairs: Iterable[tuple[object, object]]) -> dict[str, str]:
    """Pairs of short texts; what is something else is left out."""
    return {
        key: text
        for key, text in pairs
        if isinstance(key, str) and isinstance(text, str) and max(len(key), len(text)) <= 200
    }
