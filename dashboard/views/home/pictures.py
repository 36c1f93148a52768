"""The two pictures that stand on Start before anything is typed: the senses of a word, and what negation does."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from components.charts import scatter
from components.charts.stand_alone.page import PagePart
from components.numbers import apart, counted, percent
from dashboard import navigation
from dashboard.declared import table
from dashboard.sharing import report
from dashboard.ui import browser
from dashboard.views.home import findings

if TYPE_CHECKING:
    from collections.abc import Callable

    from dashboard.views.home.stored import Blindness, ScoredPair, Senses, StoredNumbers

_KEY = "start_stored"
SENSES_VIEW, FAILURES_VIEW = "word-senses", "known-failures"
_HTML = (
    '<div class="start drawing two"><article class="card senses"><h2></h2><div class="draw"></div><div class="foot">'
    '<button type="button" class="play"></button><button type="button" class="link"></button></div></article>'
    '<article class="card failures"><h2></h2><div class="draw"></div><div class="foot"><span class="said"></span>'
    '<button type="button" class="link"></button></div></article></div>'
)


def draw(of: StoredNumbers, take: Callable[[str], bool]) -> None:
    """Draw both pictures; a click on one opens its view, and `take` gets the text that was typed meanwhile."""
    for key, said in (("senses", findings.of_senses(of.senses)), ("blindness", findings.of_blindness(of.blindness))):
        report.add(f"start_{key}", PagePart(message=said))
    browser.web_component("start_stored", _HTML, "drawing")(
        key=_KEY,
        data={"senses": _senses(of.senses), "blindness": _blindness(of.blindness)},
        on_open_change=lambda: None,
    )
    sent = browser.sent_by(_KEY, "open")  # not by a callback, which cannot go to another page
    if not isinstance(sent, list | tuple) or len(sent) != 2 or not isinstance(sent[1], str):
        return
    opened, typed = sent
    take(typed)
    if opened == SENSES_VIEW:
        open_senses(of.senses)
    elif opened == FAILURES_VIEW:
        open_failures()


def open_senses(senses: Senses) -> None:
    """Go to the senses of the word."""
    navigation.go_to(SENSES_VIEW, sense_source="demo", sense_word=senses.word, sense_layer=senses.apart)


def open_failures() -> None:
    """Go to what the model cannot see, at negations."""
    navigation.go_to(FAILURES_VIEW, clinic_source="demo", clinic_kind="negation")


def _senses(senses: Senses) -> dict[str, Any]:
    kinds = list(dict.fromkeys(senses.labels))
    hues = scatter.hues_of(senses.labels)
    counts = [len(senses.labels) * share for share in senses.accuracy[: len(senses.maps)]]
    has_ties = any(abs(count - round(count)) > 0.1 for count in counts)  # a tie counts as a guess
    return {
        "key": SENSES_VIEW,
        "link": table.VIEWS[SENSES_VIEW].label,
        "says": findings.of_senses(senses),
        "labels": [kinds.index(label) for label in senses.labels],
        "names": [f"{senses.word} ({kind})" for kind in kinds],
        "hues": [hues[kind] for kind in kinds],
        "unit": "% nearest to their own sense" + ", ties in part" * has_ties,
        "sentences": senses.sentences,
        "maps": senses.maps,
        "layers": [
            {
                "name": f"layer {layer}" if layer else "layer 0, before any block",
                "short": f"layer {layer}",
                "share": percent(senses.accuracy[layer]),
            }
            for layer in range(len(senses.maps))
        ],
        "play": "Play the blocks",
        "stop": "Stop",
    }


def _blindness(blindness: Blindness) -> dict[str, Any]:
    strips = (
        ("negation", blindness.opposite, blindness.negations),
        ("paraphrase", blindness.paraphrase, blindness.paraphrases),
    )
    shown = apart(blindness.opposite.cosine, blindness.paraphrase.cosine)
    return {
        "key": FAILURES_VIEW,
        "link": table.VIEWS[FAILURES_VIEW].label,
        "says": findings.of_blindness(blindness),
        "strip": findings.of_strips(blindness),
        "unit": "similarity",
        "ticks": [0, 0.25, 0.5, 0.75, 1],
        "pairs": [
            _pair("The opposite", blindness.opposite, shown[0], is_marked=True),
            _pair("The same in other words", blindness.paraphrase, shown[1], is_marked=False),
        ],
        "strips": [
            {"name": counted(len(cosines), noun), "shown": pair.cosine, "cosines": cosines}
            for noun, pair, cosines in strips
        ],
    }


def _pair(name: str, pair: ScoredPair, shown: str, is_marked: bool) -> dict[str, Any]:
    """A pair of sentences with its similarity as text; what the second has more than the first is marked, if `is_marked`."""
    words = pair.second.split(" ")
    steps = SequenceMatcher(None, pair.first.split(" "), words, autojunk=False).get_opcodes()
    parts: list[dict[str, Any]] = []
    for kind, _, _, start, end in steps:
        if end > start:
            space = [{"text": " ", "new": False}] if parts else []
            parts += [*space, {"text": " ".join(words[start:end]), "new": is_marked and kind != "equal"}]
    return {"name": name, "first": pair.first, "second": parts, "shown": shown}
