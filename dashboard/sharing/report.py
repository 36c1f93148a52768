"""A whole page as a report: one HTML file with its settings, figures and tables, which opens without a network.

Figures and tables are collected while a page is drawn, and only while the panel that offers the report is open: the memory
of a session is for small things.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Any

import streamlit as st

from components import VERSION
from components.charts.stand_alone import page as stand_alone
from components.charts.stand_alone.page import PagePart
from components.model.catalog import spec_of
from dashboard import state
from dashboard.declared import table
from dashboard.declared.table import SETTING, SETTINGS

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)
COLLECTED = "_report"  # session key
_VALUE_NAMES = "_value_names"  # session key: a setting to what its control calls its present value
_VALUE_WORDS = "_value_words"  # session key: a setting to a value of it, and to what that is in words
# Settings that an address holds in parts of their unit: how many parts are one, and what stands behind the number.
_PARTS = {
    "map_min_dist": (100, ""),
    "least_cosine": (100, ""),
    "margin": (100, ""),
    "threshold": (1000, ""),
    "warm_up": (1, " %"),
    "damage": (1, " %"),
    "held_out": (1, " %"),
}
LEFT_OUT = "Lists of hits are saved as tables; the small pictures of all heads are left out."


@dataclass(frozen=True)
class Fact:
    """A setting, or a text, of the page: its name and what it is."""

    name: str
    values: tuple[str, ...]
    setting: str = ""  # whose control names its values; empty for others


@dataclass(eq=False)
class Report:
    """What a page has drawn since it began, in order."""

    title: str = "BERT Internals"
    stated: tuple[Fact, ...] = ()
    # By a key, so that what is drawn again in its place, or every few seconds, stands in it once.
    parts: dict[str, tuple[PagePart, Callable[[], pd.DataFrame] | None]] = field(default_factory=dict)
    numbers: dict[str, Fact] = field(default_factory=dict)  # layer, block or head that nobody has chosen, by setting

    @property
    def facts(self) -> tuple[str, ...]:
        """The models, sentences and settings in the page's words, a line each."""
        return tuple(f"{fact.name}: {', '.join(fact.values)}" for fact in (*self.stated, *self.numbers.values()))


def collect(page: str) -> Report:
    """Begin to collect what a page draws from now on; the result fills while the page is drawn."""
    report = Report(stated=facts_of(page))
    st.session_state[COLLECTED] = report
    return report


def stop() -> None:
    """Collect nothing any more."""
    st.session_state.pop(COLLECTED, None)


def is_collecting() -> bool:
    """Whether what is drawn now is collected: what is costly to make is made only then."""
    return COLLECTED in st.session_state


def begin_view(page: str, title: str) -> None:
    """A page begins to draw a view: what was collected of the one before is dropped."""
    if (report := st.session_state.get(COLLECTED)) is not None:
        report.title, report.stated = title, ()
        report.parts.clear()
        report.numbers.clear()


def add(key: str, part: PagePart, table: Callable[[], pd.DataFrame] | None = None) -> None:
    """Add what is being drawn, if anything is collected, in place of what has this key; `table` gives its numbers.

    Without a key, a table takes the place of an equal one.
    """
    if (report := st.session_state.get(COLLECTED)) is not None:
        if not key and part.table is not None:
            key = part.table.to_csv()
        report.parts[key] = (part, table)


def drawn() -> dict[str, tuple[PagePart, Callable[[], pd.DataFrame] | None]]:
    """What has been collected until now, for `go_back`."""
    report = st.session_state.get(COLLECTED)
    return {} if report is None else dict(report.parts)


def go_back(before: Mapping[str, tuple[PagePart, Callable[[], pd.DataFrame] | None]]) -> None:
    """Collect only what `drawn` has returned: what was added since has been removed from the page."""
    if (report := st.session_state.get(COLLECTED)) is not None:
        report.parts.clear()
        report.parts.update(before)


def end_view(page: str, used: frozenset[str]) -> None:
    """A page has drawn a view, which has read the settings `used`: the report states these and no others."""
    if (report := st.session_state.get(COLLECTED)) is not None:
        report.stated = facts_of(page, used)


def name_values(setting: str, names: Mapping[Any, str], chosen: Any) -> None:
    """Say what the page calls the chosen value, or values, of a setting: its control has the names of all."""
    values = chosen if isinstance(chosen, tuple | list) else (chosen,)
    known: dict[str, dict[str, str]] = st.session_state.setdefault(_VALUE_NAMES, {})
    known[setting] = {str(value): str(names[value]).removeprefix("Compare: ") for value in values if value in names}


def say_value(setting: str, value: Any, *words: str) -> None:
    """Say what a value of a setting is in words, where it is a number or numbers of what was clicked, as of a token."""
    known: dict[str, tuple[Any, tuple[str, ...]]] = st.session_state.setdefault(_VALUE_WORDS, {})
    known[setting] = (value, words)


def state_number(setting: str, value: int) -> None:
    """Say which layer, block or head is drawn where nobody has chosen one."""
    if (report := st.session_state.get(COLLECTED)) is not None:
        label = SETTING[setting].label
        report.numbers[setting] = Fact(_sentence_case(label), _in_words(setting, value, (str(value),)), setting)


def facts_of(page: str, used: frozenset[str] | None = None) -> tuple[Fact, ...]:
    """The models, sentences and settings of a page in its own words; only those of some names if `used` gives them.

    The model and the sentences of a page belong to every view.
    """
    facts, in_view = [], table.VIEWS[state.view_of(page)].settings
    for setting in SETTINGS:
        if setting.name not in in_view:
            continue
        if setting.name not in ("model", "sentences") and used is not None and setting.name not in used:
            continue
        value = state.get(setting.name)
        if value is None or value == "":
            continue
        if setting.name in state.MODELS:
            if setting.name == "model" or value != setting.default:
                facts.append(Fact(_sentence_case(setting.label), (spec_of(value).title,)))
        elif setting.name == "sentences":
            facts += [Fact(f"Sentence {number}", (text,)) for number, text in enumerate(value, 1)]
        elif value != setting.default:
            words = _in_words(setting.name, value, tuple(setting.show(value)))
            facts.append(Fact(_sentence_case(setting.label), words, setting.name))
    return tuple(facts)


def _in_words(setting: str, value: Any, shown: tuple[str, ...]) -> tuple[str, ...]:
    """A setting's value as its control calls it; `shown` are the texts of an address, for values without a name."""
    if isinstance(value, bool):
        return ("yes" if value else "no",)
    said = st.session_state.get(_VALUE_WORDS, {}).get(setting)
    if said is not None and said[0] == value:
        return tuple(said[1])
    if setting in _PARTS:
        parts, unit = _PARTS[setting]
        return (f"{value / parts:g}{unit}",)
    names: dict[str, str] = st.session_state.get(_VALUE_NAMES, {}).get(setting, {})
    return tuple(names.get(text, text) for text in shown)


def _sentence_case(label: str) -> str:
    """A label with a large first letter; others stay as they are ("sentence B")."""
    return label[:1].upper() + label[1:]


def to_bytes(report: Report) -> bytes:
    """The report as it is now, made on the click."""
    parts = _without_repeated(
        replace(part, table=_made(table)) if table is not None else part for part, table in list(report.parts.values())
    )
    day = date.today()
    footer = f"BERT Internals {VERSION}, {day.day} {day:%B %Y}. The report has the figures and tables of one view. {LEFT_OUT}"
    return stand_alone.page(report.title, parts, footer, report.facts).encode()


def _without_repeated(parts: Iterable[PagePart]) -> list[PagePart]:
    """The parts without tables that stand among them before: a page can draw one, and have it again in its data.

    A title below which nothing stands is left out, too.
    """
    kept: list[PagePart] = []
    seen = set()
    for part in parts:
        content = "" if part.table is None else part.table.to_csv()
        if content and replace(part, table=None, title="") == PagePart() and content in seen:
            continue
        seen.add(content)
        if kept and _is_title(part) and _is_title(kept[-1]):
            kept.pop()
        kept.append(part)
    return kept[:-1] if kept and _is_title(kept[-1]) else kept


def _is_title(part: PagePart) -> bool:
    return bool(part.title) and part.table is None and replace(part, title="") == PagePart()


def _made(table: Callable[[], pd.DataFrame]) -> pd.DataFrame | None:
    """A figure's numbers; None if they cannot be made any more, which must not cost the person the whole report."""
    try:
        return table()
    except Exception as problem:  # noqa: BLE001 - each figure makes its table in its own way
        log.warning("a table of a report could not be made: %s", type(problem).__name__)
        return None
