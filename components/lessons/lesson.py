"""A lesson as it is read from its file: steps that name a page to show, and questions to answer before the page is seen."""

from __future__ import annotations

from dataclasses import dataclass

from components.lessons.claims import Claim


@dataclass(frozen=True)
class Scene:
    """What a page shows in a step, and what the lesson says about it."""

    page: str
    values: tuple[tuple[str, str], ...]  # keys and texts of the address, in its order; a key may occur several times
    line: int  # of the file, from 1
    claims: tuple[Claim, ...] = ()  # numbers that must hold for the included model
    says: tuple[str, ...] = ()  # texts that the page must contain

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences that the address names."""
        return tuple(text for key, text in self.values if key == "s")

    @property
    def address(self) -> dict[str, list[str]]:
        """Each key with its texts."""
        texts: dict[str, list[str]] = {}
        for key, text in self.values:
            texts.setdefault(key, []).append(text)
        return texts


@dataclass(frozen=True)
class Question:
    """A question that is answered before the answer can be seen."""

    text: str
    choices: tuple[str, ...]
    right: int | None  # the number of the right choice, from 0; None: a matter of opinion
    answer: str  # Markdown, shown after a choice
    scene: Scene | None  # shown with the answer, where it is not the step's own


@dataclass(frozen=True)
class Step:
    title: str
    text: str  # Markdown
    scene: Scene
    question: Question | None = None

    @property
    def scenes(self) -> tuple[Scene, ...]:
        """The step's own scene, and the one of its answer if that is another."""
        of_answer = None if self.question is None else self.question.scene
        return (self.scene,) if of_answer is None else (self.scene, of_answer)


@dataclass(frozen=True)
class Lesson:
    key: str  # in addresses; the name of the file without its number and ending
    title: str
    question: str  # which the lesson answers
    minutes: int
    level: str
    steps: tuple[Step, ...]
