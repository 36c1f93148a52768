"""`python -m dashboard.views`: all views with their places, what they need, and their example states."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from dashboard.declared import table


def rows() -> Iterator[str]:
    """A line for each view, in the order of the table of places."""
    yield f"{'page':<10} {'offered as':<26} {'view':<20} {'needs':<7} {'figure':<16} {'sentences':<9} {'examples':<8} settings"
    for page, _, key in table.PLACES:
        view = table.VIEWS[key]
        uses = "yes" if view.uses_sentences else "no"
        names = ", ".join(name for name in view.settings if not table.SETTING[name].shared)
        place = f"{page:<10} {table.name_of(key):<26} {key:<20}"
        yield f"{place} {view.needs:<7} {view.figure:<16} {uses:<9} {len(view.examples):<8} {names}".rstrip()


if __name__ == "__main__":
    sys.stdout.write("\n".join(rows()) + "\n")
