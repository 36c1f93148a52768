"""The files of a site: the folder that they are written to, and data that a page can read without a server.

A page that is opened from a folder may read no other file but scripts: so data stand in scripts, compressed, as base64.
"""

from __future__ import annotations

import base64
import errno
import json
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.folders import read_plain, write_json, write_text

MARK = "site.json"  # in the folder of a site of ours, with the names of its files
MAKER = "BERT Internals"
PARTS = "files"  # the folder within it for what the pages share
MOST_MARK_BYTES = 1 << 20
_NAME = re.compile(r"(?:files/)?[\w.-]+\.(?:html|js|css|svg)")


class SiteFolder:
    """The folder that a site is written to."""

    def __init__(self, path: Path) -> None:
        """Raises InputError for a folder that holds anything but a site of ours.

        Raises OSError for one that cannot be read, or whose part is a link.
        """
        self.path = path
        self.sizes: dict[str, int] = {}  # bytes of each file by its name
        if path.exists() and not path.is_dir():
            raise InputError(
                f"{path} is a file.", "A site is written into a folder.", "Name a folder, which may not exist yet."
            )
        if (path / PARTS).is_symlink():  # files elsewhere would be replaced and removed
            raise OSError(errno.ELOOP, "it is a link", str(path / PARTS))
        self._earlier = _names(path) if path.is_dir() and any(path.iterdir()) else ()

    @property
    def size(self) -> int:
        """Bytes of all files until now."""
        return sum(self.sizes.values())

    def begin(self) -> None:
        """Mark the folder before anything else is written, so that a site that was not finished can be written again."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(self.path / MARK, {"made_by": MAKER, "files": list(self._earlier)})

    def write(self, name: str, text: str) -> None:
        """Write a file. Raises OSError."""
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        write_text(place, text)
        self.sizes[name] = len(text.encode())

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Write what marks the folder as a site of ours, and remove the files of the site before that are in it no longer."""
        write_json(self.path / MARK, {"made_by": MAKER, **facts, "files": sorted(self.sizes)})
        for name in set(self._earlier) - set(self.sizes):
            (self.path / name).unlink(missing_ok=True)


def _names(path: Path) -> tuple[str, ...]:
    """The files of the site in a folder. Raises InputError where it is none of ours."""
    try:
        read = json.loads(read_plain(path / MARK, MOST_MARK_BYTES))
        names = tuple(read["files"]) if read["made_by"] == MAKER else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        names = None
    if names is None:
        raise InputError(
            f"The folder {path} is not empty, and no site of this program.",
            "A site is written into an empty folder, or takes the place of an earlier one.",
            "Name another folder.",
        )
    return tuple(name for name in names if isinstance(name, str) and _NAME.fullmatch(name))


def packed(content: Mapping[str, Any], numbers: bytes = b"") -> bytes:
    """Four bytes with the length of a JSON text, that text, and bytes.

    Of these, `bytes` in the content are [place, length]; equal ones are stored once.
    """
    parts, at = [numbers], len(numbers)
    known: dict[bytes, list[int]] = {}

    def placed(value: object) -> Any:
        nonlocal at
        if not isinstance(value, bytes):
            raise TypeError(f"{type(value).__name__} is not JSON")
        if value not in known:
            known[value] = [at, len(value)]
            parts.append(value)
            at += len(value)
        return known[value]

    text = json.dumps(content, default=placed, separators=(",", ":")).encode()
    return struct.pack("<I", len(text)) + text + b"".join(parts)


def json_of(data: bytes) -> dict[str, Any]:
    """The JSON text at the beginning of packed data, which parts of the dashboard take in the same form."""
    length = struct.unpack("<I", data[:4])[0]
    found: dict[str, Any] = json.loads(data[4 : 4 + length])
    return found


def in_parts(every: Sequence[bytes]) -> list[list[bytes]]:
    """Packed data, each as its JSON, what all have in common behind that, and the rest.

    Equal parts are stored once: states of a drawing differ in a few numbers.
    """
    heads = [4 + struct.unpack("<I", data[:4])[0] for data in every]
    bodies = [data[head:] for head, data in zip(heads, every, strict=True)]
    least = min(map(len, bodies))
    same = next((at for at, values in enumerate(zip(*bodies, strict=False)) if len(set(values)) > 1), least)
    return [[data[:head], body[:same], body[same:]] for data, head, body in zip(every, heads, bodies, strict=True)]


def script_of(name: str, data: bytes) -> str:
    """A script that gives `data` a name for the page (see assets/web/site.js)."""
    kept = base64.b64encode(zlib.compress(data, 9)).decode()
    return f"(globalThis.bertInternalsData??={{}})[{json.dumps(name)}]={json.dumps(kept)};\n"
