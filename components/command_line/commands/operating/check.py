"""`check DIR`: whether an index is undamaged."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from components.command_line import options as shared
from components.sizes import in_words

NAME = "check"
HELP = "compare every byte of an index with its checksums"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path, help="a folder written by `index`")


def run(options: argparse.Namespace) -> dict[str, Any]:
    from components.retrieval.index.folder import check_index

    checked = check_index(options.folder)
    if options.json != "-":
        size = f"{checked.files} files, {in_words(checked.nbytes)}"
        shared.say(
            f"{options.folder} is undamaged: {size}."
            if checked.has_checksums
            else f"{options.folder} has no checksums, since an earlier version wrote it; the sizes of its files are right: "
            f"{size}. Build it again to have them."
        )
    return {
        "folder": str(options.folder),
        "files": checked.files,
        "bytes": checked.nbytes,
        "has_checksums": checked.has_checksums,
    }
