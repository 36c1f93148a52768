"""Where each view stands, and what follows from it: the pages in their order, the settings, the keys of addresses.

The only module that knows all declarations. To move a view, change its line in PLACES.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from dashboard import settings
from dashboard.declared.view import View
from dashboard.settings import Setting, choice
from dashboard.views.about import page as about
from dashboard.views.attention import page as attention
from dashboard.views.diagnosis import page as diagnosis
from dashboard.views.evaluate import page as evaluate
from dashboard.views.heatmaps import page as heatmaps
from dashboard.views.home import page as home
from dashboard.views.laboratory import page as laboratory
from dashboard.views.layers import page as layers
from dashboard.views.lecture import page as lecture
from dashboard.views.lessons import page as lessons
from dashboard.views.map import page as map_page
from dashboard.views.model import page as model
from dashboard.views.pairs import page as pairs
from dashboard.views.path import page as path
from dashboard.views.search import page as search
from dashboard.views.tokens import page as tokens
from dashboard.views.training import page as training
from dashboard.views.why import page as why
from dashboard.views.word_attention import page as word_attention

VIEW = "v"  # the address key of the view that is open


@dataclass(frozen=True)
class Page:
    """A page: a place for views."""

    key: str  # also its path
    title: str
    icon: str
    hint: str  # a few words below the title in the list of pages
    question: str
    is_step: bool = False  # on the way from text to use
    is_door: bool = True  # in the upper part of the list of pages


PAGES = (  # the doors in the order in which a person meets them, then what stands below them
    Page("home", "Start", ":material/home:", "Type a sentence", "Type a sentence, and see what a model makes of it"),
    Page("lessons", "Lessons", ":material/school:", "BERT in ten minutes", "What can be learnt here?"),
    Page("text", "Text", ":material/match_word:", "From letters to ids", "How does text become numbers?", True),
    Page("inside", "Inside", ":material/layers:", "Blocks and attention", "What do the blocks do?", True),
    Page(
        "meaning", "Meaning", ":material/scatter_plot:", "What vectors tell or miss", "What do the vectors mean?", True
    ),
    Page("search", "Search", ":material/search:", "Find by meaning", "Which sentences come closest?", True),
    Page("diagnose", "Diagnose", ":material/troubleshoot:", "Why a search fails", "Why does a search fail?", True),
    Page("train", "Train", ":material/model_training:", "Change a model", "What does fine-tuning change?", True),
    Page("laboratory", "Laboratory", ":material/science:", "Everything else", "What else can be asked?", is_door=False),
    Page(
        "lecture",
        "My lecture",
        ":material/star:",
        "Pictures in your order",
        "Which pictures do I show?",
        is_door=False,
    ),
    Page(
        "glossary",
        "Glossary",
        ":material/dictionary:",
        "Words of the field",
        "What does this word mean?",
        is_door=False,
    ),
    Page("about", "About", ":material/info:", "Version and licences", "What is this?", is_door=False),
)
# Page, name and view: the views of a page in the order in which they are offered. Views of one name are choices below it;
# a view that stands alone is offered under its own label.
PLACES = (
    ("home", "", "home"),
    ("lessons", "", "lessons"),
    ("text", "Pieces", "pieces"),
    ("text", "Pieces", "input-tensors"),
    ("text", "Pieces", "decoding"),
    ("text", "Pieces", "vocabulary"),
    ("text", "", "two-tokenizers"),
    ("inside", "", "whole-path"),
    ("inside", "", "model-facts"),
    ("inside", "Before and after a block", "block"),
    ("inside", "Before and after a block", "inside-block"),
    ("inside", "Attention", "all-heads"),
    ("inside", "Attention", "head-view"),
    ("inside", "Attention", "attention-matrix"),
    ("inside", "Attention", "attention-scores"),
    ("inside", "Attention", "head-patterns"),
    ("inside", "", "one-word-attention"),
    ("inside", "", "attention-flow"),
    ("inside", "Guess the word", "mask-token"),
    ("inside", "Guess the word", "two-contexts"),
    ("meaning", "Words and sentences by layer", "one-word"),
    ("meaning", "Words and sentences by layer", "one-against-all"),
    ("meaning", "Words and sentences by layer", "sentence-curves"),
    ("meaning", "Words and sentences by layer", "sentence-pairs"),
    ("meaning", "Map of tokens", "two-layers"),
    ("meaning", "Map of tokens", "layer-by-layer"),
    ("meaning", "", "word-senses"),
    ("meaning", "Two sentences: why similar", "score-split"),
    ("meaning", "Two sentences: why similar", "important-words"),
    ("meaning", "Two sentences: why similar", "token-pairs"),
    ("meaning", "", "known-failures"),
    ("meaning", "", "experiments"),
    ("search", "Hits", "hits"),
    ("search", "Hits", "many-queries"),
    ("search", "", "retrieve-rerank"),
    ("search", "", "similar-pairs"),
    ("search", "", "corpus"),
    ("diagnose", "", "failed-search"),
    ("diagnose", "", "what-helps"),
    ("diagnose", "Compare models and methods", "compare-runs"),
    ("diagnose", "Compare models and methods", "graded-relevance"),
    ("diagnose", "Compare models and methods", "sentence-similarity"),
    ("diagnose", "", "layer-grid"),
    ("diagnose", "", "evaluated-data"),
    ("train", "Set up", "training-data"),
    ("train", "Set up", "training-objective"),
    ("train", "", "training-run"),
    ("train", "", "before-after"),
    ("laboratory", "", "laboratory"),
    ("laboratory", "", "output-vectors"),
    ("laboratory", "", "layer-zero"),
    ("laboratory", "", "feed-forward"),
    ("laboratory", "", "compare-models"),
    ("laboratory", "", "available-models"),
    ("laboratory", "", "two-tokens"),
    ("laboratory", "", "read-together"),
    ("laboratory", "", "layer-pairs"),
    ("laboratory", "", "model-view"),
    ("laboratory", "", "neuron-view"),
    ("laboratory", "", "pooling-lab"),
    ("laboratory", "", "approximation"),
    ("laboratory", "", "search-kinds"),
    ("laboratory", "", "one-input"),
    ("laboratory", "", "pair-scores"),
    ("laboratory", "", "disagreement"),
    ("laboratory", "", "learnt-ranking"),
    ("lecture", "", "lecture"),
    ("glossary", "", "glossary"),
    ("about", "", "about"),
)
_FOLDERS = (
    home,
    lessons,
    path,
    tokens,
    model,
    layers,
    heatmaps,
    attention,
    word_attention,
    map_page,
    search,
    evaluate,
    pairs,
    why,
    diagnosis,
)
_DECLARED = tuple(folder.DECLARED for folder in (*_FOLDERS, training, laboratory, lecture, about))


def _checked_views() -> dict[str, View]:
    """All views by key. Raises ValueError for one that is declared twice, or stands nowhere or in two places."""
    views = [view for declared in _DECLARED for view in declared.views]
    by_key = {view.key: view for view in views}
    placed = [key for _, _, key in PLACES]
    twice = sorted({key for key in [*placed, *(view.key for view in views)] if placed.count(key) > 1})
    if twice or len(views) > len(by_key):
        raise ValueError(f"a view is declared or placed twice: {twice or sorted(view.key for view in views)}")
    if wrong := sorted(by_key.keys() - set(placed)):
        raise ValueError(f"views without a line in PLACES (dashboard/declared/table.py): {wrong}")
    if wrong := sorted(set(placed) - by_key.keys()):
        raise ValueError(f"views in PLACES that no page.py declares: {wrong}")
    if wrong := sorted({page for page, _, _ in PLACES} ^ {page.key for page in PAGES}):
        raise ValueError(f"pages without views, or views on no page: {wrong}")
    return by_key


VIEWS: Mapping[str, View] = _checked_views()
PAGE_BY_KEY: Mapping[str, Page] = {page.key: page for page in PAGES}


def views_of(page: str) -> tuple[View, ...]:
    """The views that stand on a page, in the order in which they are offered."""
    return _views_by_page()[page]


@cache
def _views_by_page() -> dict[str, tuple[View, ...]]:
    return {page.key: tuple(VIEWS[key] for place, _, key in PLACES if place == page.key) for page in PAGES}


def place_of(view: str) -> str:
    """The key of the page on which a view stands. Raises KeyError for a view that does not exist."""
    return PLACE[view]


PLACE: Mapping[str, str] = {view: page for page, _, view in PLACES}


def choices_of(page: str) -> dict[str, tuple[View, ...]]:
    """The names under which a page offers its views, in their order, each with the views that are choices below it."""
    found: dict[str, tuple[View, ...]] = {}
    for place, _, key in PLACES:
        if place == page:
            name = name_of(key)
            found[name] = (*found.get(name, ()), VIEWS[key])
    return found


def name_of(view: str) -> str:
    """The name under which a view is offered on its page: its own label, or that of the views beside which it is a choice."""
    return _NAMES[view]


_NAMES: Mapping[str, str] = {key: name or VIEWS[key].label for _, name, key in PLACES}


def view_setting(page: str) -> str:
    """The name of the setting that says which view of a page is open."""
    return f"{page}_view"


def view_choice(page: str) -> Setting:
    """Which view of a page is open: the address of a page begins with it."""
    return choice(view_setting(page), VIEW, tuple(view.key for view in views_of(page)), words="view")


def _view_choices() -> tuple[Setting, ...]:
    """The choice of each page with several views."""
    return tuple(view_choice(page.key) for page in PAGES if len(views_of(page.key)) > 1)


SETTINGS: tuple[Setting, ...] = (
    *_view_choices(),
    *settings.SHARED,
    *(setting for declared in _DECLARED for setting in declared.settings),
)
SETTING: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}


def _checked_names() -> None:
    """Raises ValueError for a setting declared twice or used nowhere, and for a key that means two things in one view."""
    if len(SETTING) < len(SETTINGS):
        raise ValueError("a setting is declared twice")
    choices = {setting.name for setting in _view_choices()}
    used = {name for view in VIEWS.values() for name in view.settings}
    if wrong := sorted((used | choices) - SETTING.keys()):
        raise ValueError(f"settings in `settings` of a view that no SETTINGS declares: {wrong}")
    if wrong := sorted(SETTING.keys() - used - choices):
        raise ValueError(f"settings in SETTINGS that no view has in its `settings`: {wrong}")
    for view in VIEWS.values():
        names = {*view.settings, *(setting.name for setting in SETTINGS if setting.shared)}
        shorts = [VIEW, *(SETTING[name].short for name in names)]
        if wrong := sorted({short for short in shorts if shorts.count(short) > 1}):
            raise ValueError(f"the view “{view.key}” has two settings with the address key {wrong}")
    common = {setting.short: setting.name for setting in settings.SHARED}
    for setting in SETTINGS:
        if common.get(setting.short, setting.name) != setting.name:
            raise ValueError(
                f"the address key “{setting.short}” of {setting.name} means {common[setting.short]} in all views"
            )


_checked_names()


@cache
def settings_in(view: str) -> tuple[Setting, ...]:
    """What an address of a view holds, in the order of the table."""
    names = set(VIEWS[view].settings)
    return tuple(setting for setting in SETTINGS if setting.name in names)
