"""The examples below the field of Start."""

from __future__ import annotations

from dataclasses import dataclass

from components.words.lines import on_one_line
from dashboard import ready_made, settings

SEARCH_VIEW = "hits"
TROPHY = ("The trophy does not fit in the suitcase because it is too big.",)
MOST_NAMED = 40  # characters of a person's own sentences


@dataclass(frozen=True)
class Example:
    """What a chip shows, or where it leads without sentences."""

    key: str
    label: str
    sentences: tuple[str, ...] = ()


def offered(own: tuple[str, ...]) -> tuple[Example, ...]:
    """The examples; before them a person's own sentences (`own` are the session's), which can be brought back."""
    bank = ready_made.ready_made_sets()[settings.DEFAULT_SET].sentences
    ready = (
        Example("bank", "A bank by a river", bank),
        Example("it", "What does “it” mean?", TROPHY),
        Example("good", "Good, and not good", ("The food was good.", "The food was not good.")),
        Example("search", "Search in your own words"),
    )
    if not own or any(item.sentences == own for item in ready):
        return ready
    line = on_one_line(own)
    name = line if len(line) <= MOST_NAMED else f"{line[: MOST_NAMED - 1].rstrip()}…"
    return (*ready, Example("own", f"Yours: {name}", own))
