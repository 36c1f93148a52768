"""`cache`: how much disk space the dashboard's indexes take, and how to remove them."""

from __future__ import annotations

import argparse
from typing import Any

from components.command_line import options as shared
from components.sizes import in_words

NAME = "cache"
HELP = "show how much disk space the dashboard's indexes take, or remove them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--clear", action="store_true", help="remove all indexes")


def run(options: argparse.Namespace) -> dict[str, Any]:
    from components.retrieval.index.cache import IndexCache

    indexes = IndexCache()
    freed = indexes.clear() if options.clear else 0
    count, size = indexes.usage()
    if options.json != "-":
        if options.clear:
            shared.say(f"{in_words(freed)} freed.")
        shared.say(f"{count} indexes take {in_words(size)} of at most {in_words(indexes.limit)} in {indexes.folder}")
    return {"folder": str(indexes.folder), "indexes": count, "bytes": size, "limit": indexes.limit, "freed": freed}
