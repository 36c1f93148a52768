"""The words of the sentences as a row of chips above a figure: a click chooses one, on every page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from components.analysis.first_look.words import Interest, twins_of, words_of
from components.words.unicode_words import folded
from dashboard import state
from dashboard.ui import controls, wording

if TYPE_CHECKING:
    from components.model.trace import TokenizedSentence

MOST_OFFERED = 12  # words in the row of choices


@dataclass(frozen=True)
class Offered:
    """A word that can be chosen: where it stands first, and how often it stands in the sentences, in any form."""

    text: str
    places: tuple[tuple[int, int], ...]  # sentence and position

    @property
    def label(self) -> str:
        return f"{self.text} ×{len(self.places)}" if len(self.places) > 1 else self.text


def words_offered(sentences: Sequence[TokenizedSentence], chosen: tuple[int, int] | None) -> list[Offered]:
    """The words to choose from: those that stand twice first, content words before others; then other content words.

    At most MOST_OFFERED, with the one `chosen` (its sentence and position) among them if it is a word.
    """
    words = words_of(sentences)
    twins = twins_of(words)
    equal: dict[str, list[int]] = {}
    for number, word in enumerate(words):
        if not word.is_content:
            equal.setdefault(folded(word.text), []).append(number)
    groups: list[tuple[int, Offered]] = []
    seen: set[int] = set()
    for number, word in enumerate(words):
        if number in seen:
            continue
        same = sorted({number, *twins[number]}) if word.is_content else equal[folded(word.text)]
        seen.update(same)
        places = tuple((words[other].sentence, words[other].positions[0]) for other in same)
        is_chosen = chosen in places
        if word.is_content or len(same) > 1 or is_chosen:
            order = (2 if len(same) == 1 else 0 if word.is_content else 1) if word.is_content or len(same) > 1 else 3
            groups.append((order, Offered(word.text if word.is_content else word.text.lower(), places)))
    groups.sort(key=lambda group: group[0])
    offered = [group for _, group in groups]
    first = offered[:MOST_OFFERED]
    return first + [group for group in offered[MOST_OFFERED:] if chosen in group.places]


def offer(
    sentences: Sequence[TokenizedSentence],
    interest: Interest,
    is_one: bool = True,
    after_choice: Callable[[], None] | None = None,
) -> None:
    """Draw the words of the sentences as a row, the chosen one marked if `is_one` is; a click chooses one everywhere.

    `after_choice` is called after a click.
    """
    place = (interest.row, interest.positions[interest.row])
    offered = {str(number): group for number, group in enumerate(words_offered(sentences, place if is_one else None))}
    chosen = next((key for key, group in offered.items() if is_one and place in group.places), None)

    def choose(key: str) -> None:
        # A second click on the chosen word arrives as no choice, and changes nothing.
        row, position = offered[key].places[0]
        controls.choose_word(sentences, interest.positions, row, position)
        state.put("layers_sentence", None)
        if after_choice is not None:
            after_choice()

    if offered:
        labels = {key: wording.isolated(group.label) for key, group in offered.items()}
        controls.ready_row("Word", labels, chosen, choose, key="ready_words")
