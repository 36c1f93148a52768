"""How a page says what it is: its views, and the settings that are its own. Nothing here draws or imports what draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from components.model.architecture.structure import Offer
    from dashboard.declared.stops import Stop
    from dashboard.settings import Setting

# What a view shows first, which tests look for: a plotly figure, rows of tokens, a table, a frame with a page of its own, a
# list or canvas that we draw ourselves, the pictures of Start, the whole path, what one word looks at, the model as a drawing,
# a table or plot as its settings say, a model's guesses where it has a head for them, or rows of texts as cards; "text" has no
# figure.
Figure = Literal[
    "plot",
    "chips",
    "grids",
    "table",
    "frame",
    "heads",
    "hits",
    "start",
    "path",
    "looks",
    "architecture",
    "lists",
    "pairs",
    "found",
    "plot or table",
    "canvas or table",
    "guess or plot",
    "cards",
    "text",
]
# Stand in examples for what has another name on each machine: the key of a small corpus, of a small model, and of a run.
SMALL_CORPUS, SMALL_MODEL, A_RUN = "(a small corpus)", "(a small model)", "mnrl-20261122-140233-ab12"
# Sentences of examples, with what addresses and pages must take as it is.
RIVER = ("The boat left the bank.", "She works at a <b>bank</b>.", "He sat on the river bank, and the bank was wet.")
PAIR: Mapping[str, Any] = {"sentences": RIVER, "sentence_a": 2, "sentence_b": 1}
# Settings that every view has: an address of any page holds them.
EVERYWHERE = ("lesson", "class_code")
OF_MODELS = ("model", "max_length", "projector", *EVERYWHERE)
OF_SENTENCES = ("model", "sentences", "max_length", "projector", *EVERYWHERE)
OF_PAIRS = (*OF_SENTENCES, "sentence_a", "sentence_b")  # of views that show two sentences, A and B


@dataclass(frozen=True)
class View:
    """One view: a question, and the figures that answer it.

    `draw`, `asked_by`, `inside` and `foot` name functions as "module:function", since a view is declared without importing
    what draws.
    """

    key: str  # in addresses (`v`): unique in the whole dashboard, and never used again for another view
    label: str  # in the choice of views
    question: str  # the page's title while this view is open
    intro: str  # one line on what the first figure shows, or "module:function" if it depends on settings
    draw: str  # called with the model, or with a list of one or two models where `has_two_models`
    settings: tuple[str, ...]  # by name: what an address of this view holds
    examples: tuple[Mapping[str, Any], ...]  # settings by name, away from the defaults: tests open the view with them
    asks: tuple[str, ...] = ()  # the question in other words, by which the Laboratory finds the view
    asked_by: str = ""  # "module:function" that gives the question, where it depends on settings
    figure: Figure = "plot"
    stop: Stop | None = None  # the stop of the whole path that it treats, which is lit above it
    needs: Offer = "texts"  # what it shows of a model
    has_two_models: bool = False
    needs_sentences: bool = False  # whether there is nothing at all to show without a sentence
    without_blocks: tuple[str, str] | None = None  # question and line for a model whose blocks are not shown
    inside: str = ""  # called with what draws the view and the model, where views share how they begin
    foot: str = ""  # called without arguments below the view
    names_its_data: bool = (
        False  # it says in the first line what it measures, which may be another thing than the corpus
    )
    is_framed: bool = True  # False: it draws its own title, and no link to the next page
    requests_model: bool = False  # it requests the model itself; else it is requested before anything is drawn

    def __post_init__(self) -> None:
        if not self.examples:
            raise ValueError(f"the view “{self.key}” has no example state")
        if missing := {name for example in self.examples for name in example} - set(self.settings):
            raise ValueError(f"an address of the view “{self.key}” does not hold its example's {sorted(missing)}")

    @property
    def uses_sentences(self) -> bool:
        """Whether it shows the session's sentences."""
        return "sentences" in self.settings

    @property
    def uses_corpus(self) -> bool:
        """Whether it shows the session's corpus, and no sentences."""
        return "corpus" in self.settings and not self.uses_sentences and not self.names_its_data

    def intro_by(self) -> str:
        """The name of the function that gives the line, empty if the line is fixed."""
        return self.intro if self.intro.startswith("dashboard.") else ""


@dataclass(frozen=True)
class Declared:
    """What the folder of a page declares."""

    views: tuple[View, ...]
    settings: tuple[
        Setting, ...
    ] = ()  # those of these views alone; what several pages share is in dashboard/settings.py
