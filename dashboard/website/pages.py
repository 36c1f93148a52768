"""Which views a site has, in which states each is stored, and what of it only the running dashboard does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from components.analysis.first_look.words import Word, interest, words_of
from components.analysis.matched_words import word_vectors
from components.arrays import cosine
from components.errors import InputError
from dashboard import ready_made
from dashboard.declared import table
from dashboard.declared.stops import VIEW
from dashboard.settings import DEFAULT_SET

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence, Trace

BANK = ready_made.ready_made_sets()[DEFAULT_SET].sentences
TROPHY = ("The trophy does not fit in the suitcase because it is too big.",)
PRONOUNS = frozenset(("it", "they", "he", "she", "them", "him"))
MOST_SENTENCES, MOST_TOKENS = 6, 48  # of a site: more would make its files too large
MOST_WORDS = 24  # of a sentence that can be chosen
MOST_PAIRED = 4  # sentences of which all pairs are stored
QUERIES = (
    "volcano erupted",
    "a storm at sea",
    "new medicine helps patients",
    "the team won the match",
    "money for schools",
)
SENSES = ("bank", "bat", "crane", "seal", "spring", "plant")
POOLINGS = {"mean": "Mean", "cls": "[CLS]", "max": "Max"}


class Given:
    """The model and the sentences of a site."""

    def __init__(self, backend: Backend, sentences: Sequence[str] | None) -> None:
        """`sentences` are the person's own; None: those of the dashboard. Raises InputError for too many, or too long ones."""
        self.backend = backend
        self.is_own = sentences is not None
        self.sentences = tuple(sentences) if sentences is not None else BANK
        if len(self.sentences) > MOST_SENTENCES:
            raise InputError(
                f"There are {len(self.sentences):,} sentences.",
                f"A site has at most {MOST_SENTENCES}.",
                "Leave some out.",
            )
        longest = max(map(len, self.tokens))
        if longest > MOST_TOKENS:
            raise InputError(
                f"A sentence has {longest:,} tokens.",
                f"A site shows sentences of at most {MOST_TOKENS}, so that its files stay small.",
                "Shorten it.",
            )

    @cached_property
    def tokens(self) -> Sequence[TokenizedSentence]:
        """The sentences as the model's tokenizer divides them."""
        return self.backend.tokenize(list(self.sentences))

    @cached_property
    def trace(self) -> Trace:
        """One pass over the sentences."""
        return self.backend.trace(list(self.sentences))

    @cached_property
    def words(self) -> Sequence[Word]:
        """All words of the sentences."""
        return words_of(self.tokens)

    def of_interest(self) -> tuple[int, tuple[int, ...]]:
        """The sentence and the positions that the dashboard opens with."""
        found = interest(
            self.tokens,
            ready_made.focus_of(self.sentences),
            lambda words: word_vectors(self.trace, [(word.sentence, word.positions) for word in words])[-1],
        )
        return found.row, found.positions


@dataclass(frozen=True)
class ViewState:
    """A view with settings, by name. `says` are the messages of a drawing that lead to it, as "part.message" to its value."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    says: Mapping[str, str] = field(default_factory=dict)
    is_first: bool = False  # the page opens with it


def _once(given: Given) -> list[ViewState]:
    return [ViewState("")]


def _two(given: Given) -> list[ViewState]:
    """The sentence with the word of interest, and another one to compare it with."""
    row, _ = given.of_interest()
    others = (*range(row + 1, len(given.sentences)), *range(row))
    return [ViewState("", {"sentence_a": row, "sentence_b": others[0] + 1 if others else 0})]


def _one(given: Given) -> list[ViewState]:
    """The sentence with the word of interest."""
    row, _ = given.of_interest()
    return [ViewState("", {"sentences": (given.sentences[row],)})]


def _heads(given: Given) -> list[ViewState]:
    row, _ = given.of_interest()
    facts, one = given.backend.facts, (given.sentences[row],)
    places = [(block, head) for block in range(facts.layers) for head in range(facts.heads)]
    return [
        ViewState(
            "",
            {"sentences": one, "block": block, "head": head},
            {"all_heads.clicked": f"{block},{head}"},
        )
        for block, head in places
    ]


def looks_of(given: Given) -> Given:
    """What is given, with the sentence in which a word is looked at: one with a pronoun where there is one."""
    if not given.is_own:
        return Given(given.backend, TROPHY)
    row = next((word.sentence for word in given.words if word.text.lower() in PRONOUNS), given.of_interest()[0])
    return Given(given.backend, (given.sentences[row],))


def _looks(given: Given) -> list[ViewState]:
    one = looks_of(given)
    pronoun = next((word.last for word in one.words if word.text.lower() in PRONOUNS), None)
    chosen = one.of_interest()[1][0] if pronoun is None else pronoun
    return [
        ViewState(
            word.text,
            {"sentences": one.sentences, "tokens": (word.last,), "sentence": 0},
            {"looks.word": str(word.last)},
            is_first=chosen in word.positions,
        )
        for word in one.words[:MOST_WORDS]
    ]


def _hidden(given: Given) -> list[ViewState]:
    row, positions = given.of_interest()
    one = Given(given.backend, (given.sentences[row],))
    return [
        ViewState(
            word.text,
            {"sentences": one.sentences, "masked": word.positions[0], "mask_word": True},
            {"guess.hidden": str(word.positions[0])},
            is_first=positions[row] in word.positions,
        )
        for word in one.words[:MOST_WORDS]
    ]


def _poolings(given: Given) -> list[ViewState]:
    own = given.backend.own_pooling
    return [
        ViewState(name, {"pooling": key}, is_first=key == own)
        for key, name in POOLINGS.items()
        if key in given.backend.poolings
    ]


def _pairs(given: Given) -> list[ViewState]:
    count = min(MOST_PAIRED, len(given.sentences))
    pairs = [(first, second) for first in range(count) for second in range(first + 1, count)]
    vectors = given.backend.embed(list(given.sentences))[0, 0]  # of the last layer, by the model's own pooling
    nearest = max(pairs, key=lambda pair: cosine(vectors[pair[0]], vectors[pair[1]]), default=None)
    return [
        ViewState(
            f"{first + 1} and {second + 1}",
            {"sentence_a": first, "sentence_b": second + 1},
            is_first=(first, second) == nearest,
        )
        for first, second in pairs
    ]


def _senses(given: Given) -> list[ViewState]:
    return [ViewState(word, {"sense_word": word}) for word in SENSES]


def _queries(given: Given) -> list[ViewState]:
    return [ViewState(query, {"query": query}) for query in QUERIES]


@dataclass(frozen=True)
class SitePage:
    """A view of the site."""

    view: str
    name: str  # in the list of pages
    below: str  # the grey line below it
    shows: str  # the part that it must have drawn: a component's name, or "plot"
    in_dashboard: str  # what only the running dashboard does, a sentence
    states: Callable[[Given], list[ViewState]] = _once
    choice: str = ""  # what the states are, where a person chooses among their names
    until: str = ""  # how the text begins with which what is left out begins
    least: int = 1  # sentences that it needs
    intro: str = ""  # in place of the view's line below the question

    @property
    def file(self) -> str:
        """The name of its files."""
        return self.view

    @property
    def uses_sentences(self) -> bool:
        """Whether it shows the given sentences."""
        return table.VIEWS[self.view].uses_sentences


PAGES = (
    SitePage(
        VIEW,
        "The whole path",
        "from words to a vector",
        "path",
        "A sentence of your own, and any of the others as the second one.",
        _two,
    ),
    SitePage(
        "one-word-attention",
        "What “it” looks at",
        "one word in every head",
        "looks",
        "Words of any other sentence, and models beside this one.",
        _looks,
        "Word",
    ),
    SitePage(
        "all-heads",
        "All heads",
        "and the most telling one",
        "all_heads",
        "The other sentences, long texts, and each head as numbers.",
        _heads,
    ),
    SitePage(
        "block",
        "Before and after a block",
        "what is kept, what is mixed",
        "plot",
        "Every block, other sentences, and what each part of a block adds.",
        _one,
    ),
    SitePage(
        "mask-token",
        "Guess the word",
        "a hidden word, layer by layer",
        "guess",
        "Other sentences, several hidden words, and what hiding one changes.",
        _hidden,
        "Hide",
        until="What hiding it changes",
        intro="Choose a word to hide it from the model. It guesses the word from those around it.",
    ),
    SitePage(
        "one-word",
        "One word, all layers",
        "the same word in company",
        "plot",
        "Other words, any pair of tokens, and a second model beside it.",
    ),
    SitePage(
        "sentence-curves",
        "Sentences by pooling",
        "many vectors into one",
        "plot",
        "Other sentences, and the same curves without special tokens.",
        _poolings,
        "Pooling",
        least=2,
    ),
    SitePage(
        "two-layers",
        "Map of tokens",
        "before and after all blocks",
        "plot",
        "Other layers, UMAP and t-SNE, three dimensions, thousands of tokens.",
        until="Selected tokens",
    ),
    SitePage(
        "word-senses",
        "Word senses",
        "the same word, two meanings",
        "plot",
        "Each layer of the map, eight more words, and senses of your own.",
        _senses,
        "Word",
        until="Selected tokens",
    ),
    SitePage(
        "known-failures",
        "What it cannot see",
        "negation, numbers, roles",
        "plot",
        "Seven kinds of pairs one by one, every layer, and pairs of your own.",
        until="One pair",
    ),
    SitePage(
        "score-split",
        "Why are two similar?",
        "a similarity as a sum",
        "ribbons",
        "Other texts, the sum down to the input, and what happens without a word.",
        _pairs,
        "Sentences",
        until="How high is this score?",
        least=2,
    ),
    SitePage(
        "hits",
        "Search",
        "nearest by meaning",
        "hits",
        "Your own query and your own texts, other models, re-ranking, and why a hit was found.",
        _queries,
        "Query",
        until="Which to choose: cosine or dot product",
        intro="A query and 630 included news sentences become vectors; the nearest sentences are the hits.",
    ),
)


def why_left_out(page: SitePage, given: Given) -> str:
    """Why a page is not in the site of a model and sentences; empty if it is."""
    view = table.VIEWS[page.view]
    if reason := given.backend.structure.why_not(view.needs):
        return f"{given.backend.spec.title} {reason}"
    if page.view == "mask-token" and not given.backend.spec.can_guess:
        return f"{given.backend.spec.title} has no part that guesses words"
    if page.uses_sentences and len(given.sentences) < page.least:
        return f"it needs {page.least} sentences"
    return ""
