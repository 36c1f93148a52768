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
from dashboard.views.evaluate import page as evaluate
from dashboard.views.heatmaps import page as heatmaps
from dashboard.views.home import page as home
from dashboard.views.layers import page as layers
from dashboard.views.lessons import page as lessons
from dashboard.views.map import page as map_page
from dashboard.views.model import page as model
from dashboard.views.pairs import page as pairs
from dashboard.views.search import page as search
from dashboard.views.tokens import page as tokens
from dashboard.views.training import page as training
from dashboard.views.why import page as why

VIEW = "v"  # the address key of the view that is open


@dataclass(frozen=True)
class Page:
    """A page: a place for views."""

    key: str  # also its path
    title: str
    icon: str
    question: str = ""  # empty for pages that are no step on the way from text to use


PAGES = (  # in the order in which a person visits them
    Page("home", "Home", ":material/home:"),
    Page("lessons", "Lessons", ":material/school:"),
    Page("tokens", "Tokens", ":material/match_word:", "How does text become numbers?"),
    Page("model", "Model", ":material/layers:", "What is inside the model?"),
    Page("layers", "Layers", ":material/show_chart:", "How does a word's vector change?"),
    Page("heatmaps", "Heatmaps", ":material/grid_on:", "What does a block do to each token?"),
    Page("attention", "Attention", ":material/visibility:", "Which token attends to which?"),
    Page("map", "Map", ":material/scatter_plot:", "How do blocks rearrange the tokens?"),
    Page("search", "Search", ":material/search:", "Which sentences come closest?"),
    Page("evaluate", "Evaluate", ":material/leaderboard:", "Which layer and pooling retrieve best?"),
    Page("pairs", "Pairs", ":material/compare_arrows:", "How does a model read two texts together?"),
    Page("why", "Why", ":material/troubleshoot:", "What makes two texts similar?"),
    Page("training", "Training", ":material/model_training:", "What does fine-tuning change?"),
    Page("about", "About", ":material/info:"),
)
PLACES = (  # page and view; the views of a page in the order in which they are offered
    ("home", "home"),
    ("lessons", "lessons"),
    ("tokens", "pieces"),
    ("tokens", "input-tensors"),
    ("tokens", "decoding"),
    ("tokens", "vocabulary"),
    ("tokens", "two-tokenizers"),
    ("model", "model-facts"),
    ("model", "output-vectors"),
    ("model", "layer-zero"),
    ("model", "feed-forward"),
    ("model", "compare-models"),
    ("model", "available-models"),
    ("layers", "one-word"),
    ("layers", "two-tokens"),
    ("layers", "one-against-all"),
    ("layers", "sentence-curves"),
    ("heatmaps", "block"),
    ("heatmaps", "inside-block"),
    ("heatmaps", "token-pairs"),
    ("heatmaps", "read-together"),
    ("heatmaps", "layer-pairs"),
    ("heatmaps", "sentence-pairs"),
    ("attention", "head-view"),
    ("attention", "model-view"),
    ("attention", "neuron-view"),
    ("attention", "attention-scores"),
    ("attention", "attention-matrix"),
    ("attention", "all-heads"),
    ("attention", "head-patterns"),
    ("attention", "attention-flow"),
    ("attention", "mask-token"),
    ("map", "two-layers"),
    ("map", "layer-by-layer"),
    ("map", "word-senses"),
    ("search", "hits"),
    ("search", "many-queries"),
    ("search", "similar-pairs"),
    ("search", "corpus"),
    ("evaluate", "layer-grid"),
    ("evaluate", "compare-runs"),
    ("evaluate", "search-kinds"),
    ("evaluate", "graded-relevance"),
    ("evaluate", "sentence-similarity"),
    ("evaluate", "pooling-lab"),
    ("evaluate", "approximation"),
    ("evaluate", "evaluated-data"),
    ("pairs", "one-input"),
    ("pairs", "pair-scores"),
    ("pairs", "retrieve-rerank"),
    ("pairs", "disagreement"),
    ("pairs", "learnt-ranking"),
    ("why", "score-split"),
    ("why", "important-words"),
    ("why", "experiments"),
    ("why", "failed-search"),
    ("why", "known-failures"),
    ("training", "training-data"),
    ("training", "training-objective"),
    ("training", "training-run"),
    ("training", "before-after"),
    ("about", "about"),
)
_FOLDERS = (home, lessons, tokens, model, layers, heatmaps, attention, map_page, search, evaluate, pairs, why)
_DECLARED = tuple(folder.DECLARED for folder in (*_FOLDERS, training, about))


def _checked_views() -> dict[str, View]:
    """All views by key. Raises ValueError for one that is declared twice, or stands nowhere or in two places."""
    views = [view for declared in _DECLARED for view in declared.views]
    by_key = {view.key: view for view in views}
    placed = [key for _, key in PLACES]
    twice = sorted({key for key in [*placed, *(view.key for view in views)] if placed.count(key) > 1})
    if twice or len(views) > len(by_key):
        raise ValueError(f"a view is declared or placed twice: {twice or sorted(view.key for view in views)}")
    if wrong := sorted(by_key.keys() ^ set(placed)):
        raise ValueError(f"views that are declared and not placed, or placed and not declared: {wrong}")
    if wrong := sorted({page for page, _ in PLACES} ^ {page.key for page in PAGES}):
        raise ValueError(f"pages without views, or views on no page: {wrong}")
    return by_key


VIEWS: Mapping[str, View] = _checked_views()
PAGE_BY_KEY: Mapping[str, Page] = {page.key: page for page in PAGES}


def views_of(page: str) -> tuple[View, ...]:
    """The views that stand on a page, in the order in which they are offered."""
    return _views_by_page()[page]


@cache
def _views_by_page() -> dict[str, tuple[View, ...]]:
    return {page.key: tuple(VIEWS[key] for place, key in PLACES if place == page.key) for page in PAGES}


def place_of(view: str) -> str:
    """The key of the page on which a view stands. Raises KeyError for a view that does not exist."""
    return PLACE[view]


PLACE: Mapping[str, str] = {view: page for page, view in PLACES}


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
    if wrong := sorted((used | choices) ^ SETTING.keys()):
        raise ValueError(f"settings that are used and not declared, or declared and not used: {wrong}")
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


@cache
def is_used(name: str, page: str) -> bool:
    """Whether a view of a page uses a setting; the choice of views is used by its page."""
    return name == view_setting(page) or any(name in view.settings for view in views_of(page))
