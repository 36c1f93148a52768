"""A site for a model and sentences: its pages, with what the dashboard draws for them, and the files that these share."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from plotly.offline import get_plotlyjs

from components import VERSION
from components.errors import InputError
from components.folders import ASSETS
from components.model.catalog import EMBEDDED_KEY
from components.sizes import in_words
from dashboard.declared import table
from dashboard.declared.stops import MORE, VIEW
from dashboard.ui.whole_path.packed import MODES, Path, arrays_of
from dashboard.ui.whole_path.packed import packed as packed_path
from dashboard.website.files import PARTS, SiteFolder, in_parts, json_of, packed, script_of
from dashboard.website.pages import BANK, PAGES, Given, SitePage, ViewState, why_left_out
from dashboard.website.recording import Drawn, Recorder, refused

if TYPE_CHECKING:
    from components.jobs import ReportProgress

MOST_BYTES = 10_000_000  # of all files
REST_BYTES = 150_000  # of them for what is written after the path: the pages, and what its own and Start's draw
START, TITLE = "index", "See what BERT makes of your words"
LEAD = (
    "BERT turns words into numbers, layer by layer. These pages show how, with the real numbers of a real model: follow a word "
    "from the text to the sentence's vector, and look at what each part does to it."
)
RUN = "The dashboard runs on your own machine, without a network: see its README for the two commands."
MORE_THERE = "That needs the running dashboard: this site holds stored numbers only."
_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src data:; worker-src blob:"
)
# What the three figures of a word on Start open, and the second link of the last one.
OPENED = ("one-word-attention", "one-word", "two-layers", "mask-token")
# Controls of parts that lead to what a site has not.
_HIDDEN = {"hits": ".side button { display: none; }", "all_heads": ".one .link { display: none; }"}
# What parts report while a person only looks; nothing has to follow.
QUIET = ("path.place", "looks.head", "all_heads.shape", "start_sentence.word", "ribbons.chosen", "map_labels.labels")
_RULE = re.compile(r"^([^{}@/\n]*\.bi-[^{}\n]*)\{([^{}]*)\}", re.MULTILINE)
_INSERTED = re.compile(r"export default function \(")


@dataclass
class SiteReport:
    """What was written."""

    folder: FilePath
    pages: list[str] = field(default_factory=list)  # their files
    bytes: int = 0
    left_out: dict[str, str] = field(default_factory=dict)  # the name of a page, or a part of one, and why
    notes: list[str] = field(default_factory=list)  # what else is to be said, in sentences

    def to_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "folder": str(self.folder),
            "pages": self.pages,
            "bytes": self.bytes,
            "left_out": self.left_out,
            "notes": self.notes,
        }


@dataclass
class _Page:
    """A page to write: what stands in it, in each state."""

    file: str
    name: str
    below: str
    title: str
    intro: str
    drawn: list[tuple[ViewState, Drawn]]
    in_dashboard: str
    choice: str = ""
    says: dict[str, dict[str, Any]] = field(default_factory=dict)  # what a part reports, to a state or an address
    sentences: Sequence[str] = ()
    above: str = ""  # HTML in place of the title and the intro
    below_drawn: str = ""  # HTML
    first: int = 0  # the number of the state that it opens with

    @property
    def finding(self) -> str:
        return self.drawn[self.first][1].finding

    @property
    def parts(self) -> dict[str, dict[str, str]]:
        return {name: part for _, drawn in self.drawn for name, part in drawn.parts.items()}


def write(out: FilePath, given: Given, progress: ReportProgress = lambda done, total: None) -> SiteReport:
    """Write a site into a folder that is empty, or holds an earlier one.

    Raises InputError for another folder and for sentences that cannot be drawn, OSError for what cannot be written.
    `progress(done, total)` counts states of views.
    """
    folder, written = SiteFolder(out), SiteReport(out)
    pages: list[_Page] = []
    listed = [(site_page, site_page.states(given)) for site_page in PAGES if not _left_out(site_page, given, written)]
    total, done = 2 + sum(len(states) for _, states in listed), 0
    for site_page, states in listed:
        try:
            pages.append(_recorded(site_page, states, given))
        except InputError as problem:  # these sentences have none of what it shows
            written.left_out[site_page.name] = problem.expected
        done += len(states)
        progress(done, total)
    start = _start(given, pages, written)
    folder.begin()
    folder.write(f"{PARTS}/plotly.js", script_of("plotly", get_plotlyjs().encode()))
    every = [start, *pages]
    folder.write(f"{PARTS}/site.css", _asset("site.css") + _html_styles())
    folder.write(f"{PARTS}/site.js", _asset("site.js"))
    folder.write(f"{PARTS}/parts.js", _parts(every))
    folder.write(f"{PARTS}/icon.svg", (ASSETS / "icon.svg").read_text(encoding="utf-8"))
    whole = next((page for page in pages if page.file == VIEW), None)
    for page in pages:
        if page is not whole:
            _write_data(folder, page)
    if whole is not None and _write_path(folder, given, whole, start, {page.file for page in pages}, written):
        _write_data(folder, whole)
    elif whole is not None:
        pages.remove(whole)
        written.left_out[whole.name] = f"its numbers have no room in {in_words(MOST_BYTES)}"
        start = _start(given, pages, written)
        every = [start, *pages]
        folder.write(f"{PARTS}/parts.js", _parts(every))
    _write_data(folder, start)
    for page in every:
        folder.write(f"{page.file}.html", _page_html(page, every, given))
        written.pages.append(f"{page.file}.html")
    folder.finish(
        {
            "made_by": "BERT Internals",
            "version": VERSION,
            "model": given.backend.spec.key,
            "sentences": list(given.sentences),
        }
    )
    written.bytes = folder.size
    if written.bytes >= MOST_BYTES:
        written.notes.append(
            f"The site has {in_words(written.bytes)}, and a site should have less than {in_words(MOST_BYTES)}: "
            "fewer or shorter sentences make it smaller."
        )
    progress(total, total)
    return written


def _left_out(page: SitePage, given: Given, written: SiteReport) -> bool:
    reason = why_left_out(page, given)
    if reason:
        written.left_out[page.name] = reason
    return bool(reason)


def _recorded(page: SitePage, states: Sequence[ViewState], given: Given) -> _Page:
    """A page in all its states. Raises InputError if its first state shows nothing of it."""
    common = _common(given) if page.uses_sentences else {"model": given.backend.spec.key}
    if not states:
        raise InputError(
            f"The page “{page.name}” cannot be drawn.", "the sentences have no word", "Choose other sentences."
        )
    recorder = Recorder(page.view, common, page.until)
    drawn: list[tuple[ViewState, Drawn]] = []
    for state in states:
        found = recorder.drawn(state.settings)
        if found.first(page.shows) is not None:
            drawn.append((state, found))
        elif state is states[0]:
            refused(found, page.shows, page.name)
    says: dict[str, dict[str, Any]] = {}
    for number, (state, _) in enumerate(drawn):
        for message, value in state.says.items():
            name, _, event = message.partition(".")
            says.setdefault(f"{name}.{event}", {})[value] = number
    view = table.VIEWS[page.view]
    shown = drawn[0][1]
    sentences = (
        given.sentences if page.uses_sentences and "sentences" not in states[0].settings and page.view != VIEW else ()
    )
    return _Page(
        page.file,
        page.name,
        page.below,
        shown.title or view.question,
        page.intro or shown.intro,
        drawn,
        page.in_dashboard,
        page.choice,
        says,
        sentences,
        first=_first_of(drawn),
    )


def _first_of(drawn: Sequence[tuple[ViewState, Drawn]]) -> int:
    """The number of the state that a page opens with: of all heads the most telling one."""
    heads = drawn[0][1].first("all_heads")
    if heads is not None:
        telling = json_of(heads["bytes"])["telling"]
        return min(int(telling[0]["at"]), len(drawn) - 1) if telling else 0
    return next((number for number, (state, _) in enumerate(drawn) if state.is_first), 0)


def _common(given: Given) -> dict[str, Any]:
    return {"model": given.backend.spec.key, "sentences": given.sentences}


def _start(given: Given, pages: Sequence[_Page], written: SiteReport) -> _Page:
    """The first page: the path, the sentences, two stored pictures of the included model, and a card for each view.

    Raises InputError where there is no view.
    """
    if not pages:
        raise InputError(
            f"{given.backend.spec.title} shows nothing of what a site has.",
            "A site has at least one view.",
            "Choose another model.",
        )
    drawn = Drawn()
    markup: list[str] = []
    whole = next((page for page in pages if page.file == VIEW), None)
    if whole is not None:
        drawn.figures.append(dict(whole.drawn[0][1].figures[0]))
        drawn.parts |= whole.drawn[0][1].parts
        markup.append('<div class="stage-card"><div class="figure" data-figure="0"></div></div>')
    typed = Recorder("home", {**_common(given), "looked": True}).drawn({})
    said = "Your sentences" if given.is_own else "Three sentences with one word"
    files = {page.file for page in pages}
    opens = {}
    if (figure := typed.first("start_sentence")) is not None:
        drawn.parts |= typed.parts
        markup.append(
            f'<h2>{said}</h2><p class="intro">Click a word to see what it looks at, how it changes, and what is near it.</p>'
        )
        markup.append(f'<div class="figure" data-figure="{len(drawn.figures)}"></div>')
        drawn.figures.append(figure)
        names = {page.file: page.name for page in pages}
        opens = {str(number): f"{view}.html" for number, view in enumerate(OPENED) if view in names}
        for of, view in zip(figure["data"]["figures"], OPENED, strict=False):
            of["link"] = names.get(view, of["link"])
    if given.backend.spec.key == EMBEDDED_KEY:
        stored = Recorder("home", {"sentences": BANK, "looked": False}).drawn({})
        if (figure := stored.first("start_stored")) is not None:
            drawn.parts |= {name: part for name, part in stored.parts.items() if name == "start_stored"}
            markup.append("<h2>What it tells apart, and what not</h2>")
            markup.append(f'<div class="figure" data-figure="{len(drawn.figures)}"></div>')
            drawn.figures.append(figure)
    drawn.parts = {
        name: part for name, part in drawn.parts.items() if any(name == figure["part"] for figure in drawn.figures)
    }
    drawn.markup = "".join(markup)
    says = {"start_sentence.open": opens, "start_stored.open": {file: f"{file}.html" for file in files}}
    cards = "".join(
        f'<li><a href="{page.file}.html"><b>{_text(page.title)}</b><span>{_text(page.finding or page.intro)}</span>'
        f"<i>{_text(page.name)}</i></a></li>"
        for page in pages
    )
    below = f'<h2>{len(pages)} questions, one picture each</h2><ul class="views">{cards}</ul>'
    if written.left_out:
        reasons = "; ".join(f"{_text(name)}: {_text(reason)}" for name, reason in written.left_out.items())
        below += f'<p class="caption">Not in this site: {reasons}</p>'
    above = f'<h1>{TITLE}</h1><p class="lead">{LEAD}</p>'
    return _Page(
        START,
        "Start",
        "the whole way at a glance",
        TITLE,
        "",
        [(ViewState(""), drawn)],
        "Sentences of your own, every model, training, and the search in your own texts.",
        says=says,
        above=above,
        below_drawn=below,
    )


def _write_data(folder: SiteFolder, page: _Page) -> None:
    """The figures of a page, in all its states."""
    packed_figures: dict[str, list[dict[str, Any]]] = {}
    for _, drawn in page.drawn:
        for figure in drawn.figures:
            if isinstance(figure.get("bytes"), bytes):
                packed_figures.setdefault(figure["part"], []).append(figure)
    for figures in packed_figures.values():
        for figure, parts in zip(figures, in_parts([figure["bytes"] for figure in figures]), strict=True):
            figure["bytes"] = parts
    content = {
        "states": [{"markup": drawn.markup, "figures": drawn.figures} for _, drawn in page.drawn],
        "first": page.first,
        "says": page.says,
        "quiet": QUIET,
    }
    folder.write(f"{PARTS}/{page.file}.js", script_of(page.file, packed(content)))


def _write_path(
    folder: SiteFolder, given: Given, page: _Page, start: _Page, files: set[str], written: SiteReport
) -> bool:
    """The arrays of the whole path, a file for each block. Where there is no room, some are left out, and the page says so.

    False, and nothing is written, where there is no room for what the view begins with.
    """
    drawn = page.drawn[0][1]
    facts = json_of(drawn.figures[0]["bytes"])
    facts.pop("arrays")
    texts = [facts["text"], *([facts["second"]["text"]] if facts["second"] else [])]
    path = Path(given.backend, texts, None)
    if path.id != facts["id"]:
        raise RuntimeError("the path that the page drew is another one")
    fitting: list[str] = []
    modes = MODES if facts["canLookLeft"] else MODES[:1]
    for name in (name for mode in modes for name in (mode, *(f"{mode}.{block}" for block in range(facts["blocks"])))):
        script = script_of(f"path-{name}", _chunk(path, name))
        if folder.size + len(script) > MOST_BYTES - REST_BYTES:
            break
        folder.write(f"{PARTS}/path-{name}.js", script)
        fitting.append(name)
    if not fitting:
        return False
    first = [name for name in fitting if name == "all" or name == f"all.{facts['place'][2]}"]
    opened = [block for block in range(facts["blocks"]) if f"all.{block}" in fitting]
    if len(opened) < facts["blocks"]:
        facts["opened"], first = opened, ["all", *(f"all.{block}" for block in opened)]
        written.left_out["blocks of the whole path"] = (
            f"{facts['blocks'] - len(opened)} of {facts['blocks']} have no room in {in_words(MOST_BYTES)}"
        )
    if facts["canLookLeft"] and len(fitting) < 2 * (facts["blocks"] + 1):
        facts |= {"canLookLeft": False, "whyNotLeft": "The numbers have no room in this site; the dashboard has them."}
        written.left_out["“only look left” in the whole path"] = f"its numbers have no room in {in_words(MOST_BYTES)}"
    known = {stop: view for stop, view in MORE.items() if view in files}
    facts["more"] = {stop: f"Open “{table.VIEWS[view].label}”" for stop, view in known.items()}
    later = [f"path-{name}" for name in fitting]
    page.says["path.open"] = {stop: f"{view}.html" for stop, view in known.items()}
    drawn.figures[0] = {
        "part": "path",
        "facts": facts,
        "first": [f"path-{name}" for name in first],
        "later": later,
        "takesPlace": True,
    }
    position, block, head = facts["first"]["place"] if facts["first"] else facts["place"][1:4]
    block = block if block in opened else min(opened, default=0)
    look = "look" if "look" in facts["stops"] else facts["stops"][0]
    small = {
        **facts,
        "place": [look, position, block, head, False],
        "opened": [block],
        "canLookLeft": False,
        "more": dict.fromkeys(facts["stops"], "Open the whole path, with every block"),
    }
    start.says["path.open"] = dict.fromkeys(facts["stops"], f"{page.file}.html")
    start.drawn[0][1].figures[0] = {
        "part": "path",
        "facts": small,
        "first": [f"path-{name}" for name in ("all", f"all.{block}") if name in fitting],
        "later": later,
    }
    return True


def _chunk(path: Path, name: str) -> bytes:
    """Arrays of a path, with where each lies."""
    return packed_path({}, arrays_of(path, [name]))


def _parts(pages: Sequence[_Page]) -> str:
    """The parts that draw, as one script: each is a function that gets data, as Streamlit calls it."""
    known: dict[str, dict[str, str]] = {}
    for page in pages:
        known |= page.parts
    made = []
    for name, part in known.items():
        code, count = _INSERTED.subn("function drawPart(", part["js"])
        if count != 1:
            raise RuntimeError(f"the part {name} exports {count} functions")
        styles = json.dumps({"html": part["html"], "css": part["css"] + _HIDDEN.get(name, "")}).replace("</", "<\\/")
        made.append(
            f'{json.dumps(name)}: {{ ...{styles}, run: (() => {{\n"use strict";\n{code}\nreturn drawPart;\n}})() }}'
        )
    listed = ",\n".join(made)
    return f"(globalThis.bertInternalsSite ??= {{}}).parts = {{\n{listed}\n}};\n"


def _html_styles() -> str:
    """The rules for the HTML that views draw, out of the style sheet of the dashboard."""
    return (
        "\n"
        + "\n".join(
            f"{rule[1].strip()} {{{rule[2]}}}"
            for rule in _RULE.finditer(_asset("style.css"))
            if "st-key" not in rule[1]
        )
        + "\n"
    )


def _asset(name: str) -> str:
    return (ASSETS / "web" / name).read_text(encoding="utf-8")


def _page_html(page: _Page, every: Sequence[_Page], given: Given) -> str:
    """A page: what it says stands in it, and its figures are drawn by its scripts."""
    drawn = page.drawn[page.first][1]
    description = page.finding or page.intro or LEAD
    title = page.title if page.file == START else f"{page.title} · BERT Internals"
    above = page.above or f'<h1>{_text(page.title)}</h1><p class="intro">{_text(page.intro)}</p>'
    if page.sentences:
        listed = "".join(f"<li><b>{number}</b>{_text(text)}</li>" for number, text in enumerate(page.sentences, 1))
        above += f'<ol class="sentences" aria-label="Sentences">{listed}</ol>'
    if page.choice and len(page.drawn) > 1:
        buttons = "".join(
            f'<button type="button" data-state="{number}" aria-pressed="{json.dumps(number == page.first)}">'
            f"{_text(state.name)}</button>"
            for number, (state, _) in enumerate(page.drawn)
        )
        above += (
            f'<div class="choices" role="group" aria-label="{page.choice}"><span>{page.choice}</span>{buttons}</div>'
        )
    place = every.index(page)
    links = [("‹ ", every[place - 1], "")] if place else []
    links += [("", every[place + 1], " ›")] if place + 1 < len(every) else [("", every[0], " ›")]
    following = "".join(
        f'<a href="{other.file}.html">{before}{_text(other.name)}{after}</a>' for before, other, after in links
    )
    doors = "".join(_door(other, page) for other in every)
    facts = given.backend.facts
    heads = f": {facts.layers} blocks of {facts.heads} heads, counted from 0" if facts.heads else ""
    needs_plots = any(figure["part"] == "plot" for _, of in page.drawn for figure in of.figures)
    context = {"name": page.file, "path": f"{VIEW}.html", "dashboard": MORE_THERE}
    scripts = "".join(f'<script defer src="{PARTS}/{name}.js"></script>' for name in ("parts", page.file, "site"))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{_text(title)}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="description" content="{_text(description[:300])}">'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(_POLICY)}">'
        '<meta name="color-scheme" content="light dark">'
        f'<link rel="icon" href="{PARTS}/icon.svg"><link rel="stylesheet" href="{PARTS}/site.css">'
        f"<script>(globalThis.bertInternalsSite ??= {{}}).page = {json.dumps(context)};</script>{scripts}</head>\n"
        '<body><a class="skip" href="#main">To the content</a>'
        f'<header class="side"><div class="inner"><a class="brand" href="{START}.html">{_icon()}BERT Internals</a>'
        '<button type="button" class="menu" aria-expanded="false">Pages</button>'
        f'<nav aria-label="Pages"><ul class="doors">{doors}</ul></nav></div></header>\n'
        f'<main id="main">{above}\n<div class="drawn">{drawn.markup}</div>\n{page.below_drawn}'
        f'<div class="elsewhere"><p><strong>In the running dashboard:</strong> {_text(page.in_dashboard)} {RUN}</p></div>'
        f'<div class="next">{following}</div>'
        f"<footer>The numbers are those of {_text(given.backend.spec.title)}{heads}, computed once and stored in these files. "
        f"Drawn by BERT Internals {VERSION}{' and plotly' if needs_plots else ''}.</footer></main>"
        '<p class="live" aria-live="polite"></p><p class="toast" role="status"></p>'
        '<noscript><p class="toast seen">The pictures are drawn by JavaScript, which is switched off here.</p></noscript>'
        "</body></html>\n"
    )


def _door(other: _Page, page: _Page) -> str:
    is_here = ' aria-current="page"' if other is page else ""
    first = ' class="first"' if other.file == START else ""
    return f'<li{first}><a href="{other.file}.html"{is_here}>{_text(other.name)}<small>{_text(other.below)}</small></a></li>'


def _icon() -> str:
    """The dashboard's icon, to stand in a page."""
    drawn = (ASSETS / "icon.svg").read_text(encoding="utf-8")
    return drawn[drawn.index("<svg") :]


def _text(value: str) -> str:
    return html.escape(value.encode("utf-8", "replace").decode("utf-8"))
