"""Where the program finds its own files, where it keeps what it computed, and how a file is written whole."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.operator_settings import CACHE

ASSETS = Path(__file__).resolve().parents[1] / "assets"


def cache_part(name: str) -> Path:
    """The folder `name` (indexes, runs, ...) in the operator's setting `cache` if that is set, else in the user's cache folder.

    It may not exist yet. Raises InputError for a path that no folder can have.
    """
    set_folder = CACHE.chosen()
    if not set_folder:
        base = os.environ.get("XDG_CACHE_HOME")
        return (Path(base) if base else Path.home() / ".cache") / "bert-internals" / name
    try:
        folder = Path(set_folder).expanduser() / name
        folder.exists()
    except (OSError, RuntimeError, ValueError) as problem:  # too long, a loop of links, or a user that does not exist
        raise InputError(
            f"{CACHE.variable} is {set_folder[:80]!r}: no folder can have this path.",
            "The cache needs the path of a folder.",
            f"Correct {CACHE.variable}, or leave it unset.",
        ) from problem
    return folder


def private_folder(folder: Path) -> None:
    """Create a folder, or take an existing one, that only its owner may read: it holds people's texts and vectors.

    Raises OSError if it cannot be created, or belongs to somebody else.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file completely or not at all: first as a new file, which then replaces the old one.

    Several processes and threads may write the same file: each has a new file of its own, and the last one stays.
    """
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    try:
        with part.open("w", encoding="utf-8") as file:
            json.dump(content, file, indent=1, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)  # after an error; else it has its name no longer
