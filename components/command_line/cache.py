"""`cache`: what the dashboard's indexes take on disk, and how to be rid of them."""

from __future__ import annotations

import argparse
import sys
from typing import Any

NAME = "cache"
HELP = "show what the dashboard's kept indexes take on disk, or remove them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--clear", action="store_true", help="remove them all")


def run(options: argparse.Namespace) -> dict[str, Any]:
    from components.retrieval.index.cache import IndexShelf

    shelf = IndexShelf()
    freed = shelf.clear() if options.clear else 0
    count, size = shelf.usage()
    if options.json != "-":
        if options.clear:
            sys.stdout.write(f"{freed / 1e6:,.1f} MB freed.\n")
        sys.stdout.write(
            f"{count} indexes, {size / 1e6:,.1f} of at most {shelf.limit / 1e6:,.0f} MB, in {shelf.folder}\n"
        )
    return {"folder": str(shelf.folder), "indexes": count, "bytes": size, "limit": shelf.limit, "freed": freed}
