"""A figure with the line above it: its finding, “?” (how to read it, what it does not show) and “Share”.

Share holds what a person takes along: the picture, a slide, a page, the table as a file, the address, the numbers, the code.
"""

from __future__ import annotations

import csv
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from components.charts import bars, matrices, theme
from components.charts.stand_alone import page as stand_alone
from components.shown_code import notebook as notebooks
from components.shown_code.arrays import file_of
from components.shown_code.code import Command, NoCode
from components.shown_code.notebook import TitledCode
from components.words.quotes import with_isolated_quotes
from dashboard.sharing import figure_files, figure_link, lecture, report
from dashboard.ui import controls, messages

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go
    from streamlit.delta_generator import DeltaGenerator

    from components.shown_code.code import AnyCode

_FORMULA_SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20"  # how a spreadsheet recognises a formula; the last four are wide forms
MOST_ABOVE = 150  # characters of a finding above its figure: two lines on a laptop, four on a phone
# Of a figure of a lecture: pixels of a window of 900; of two beside each other, with a key below; and times its own height
LECTURE_HEIGHT, LECTURE_PAIR_HEIGHT, LARGEST = 520, 465, 1.7
MOST_ABOVE_HALF = 60  # above a figure that has half the page
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.) +(?=[A-Z“*\[(])")
LIGHT_PAPER, DARK_PAPER = "#FFFFFF", "#12161C"  # the page's own backgrounds, as in .streamlit/config.toml


def figure(
    chart: go.Figure,
    *,
    key: str,
    alt: str,
    table: Callable[[], pd.DataFrame],
    code: AnyCode | NoCode,
    read: str = "",
    not_shown: str = "",
    message: str = "",
    on_select: Callable[[], None] | None = None,
    select_many: bool = True,
    most_above: int = MOST_ABOVE,
    line_in: DeltaGenerator | None = None,
    is_shared: bool = False,
    on_phone: tuple[go.Figure, Callable[[], None]] | None = None,
) -> None:
    """Draw a figure, and above it a line with its finding (`message`), “?” and “Share”.

    `read` and `not_shown`, behind “?”, say how the figure is read and what it does not show; figures that share one `reading`
    leave them empty. `table` is called only when a person opens Share. `code` gives the figure's numbers, or says why there is
    none, which few figures do: tests/dashboard/code/test_every_figure.py names them. `on_select` is called before the next
    run after points were selected by click, or with `select_many` by box or lasso; the selection is in the session state
    under `key`. Of the finding the sentences within `most_above` characters stand above the figure, the rest below.
    `line_in` is where the line stands that belongs above more than the figure, such as rows beside it. Where it `is_shared`,
    the figures that follow without texts of their own have its texts in a lecture. `on_phone` is the figure that a phone shows
    instead, where the first would be too wide, and what is called after a selection in it; what a person takes along is
    always the first.
    """
    begin_of, rest = map(with_isolated_quotes, parted(message, most_above))  # the signs around a word are no letters
    message = with_isolated_quotes(message)
    part = stand_alone.PagePart(chart, alt=alt, message=message, read=read, not_shown=not_shown)
    title = stand_alone.title_of(chart)
    report.add(key, part, table)
    if is_shared:
        st.session_state[_FINDING] = stand_alone.PagePart(message=message, read=read, not_shown=not_shown)
    taken, star_in = st.session_state.get(_TOGETHER) or (key, None)
    with line_in or nullcontext(), _line(begin_of, read, not_shown, key):
        if taken == key:
            with star_in or nullcontext():
                lecture.star(st.session_state[_PAGE], key, _with_finding(part, key), table)
        else:
            lecture.add_beside(st.session_state[_PAGE], taken, part, table)
        _share(key, table, code, title, draw_files=partial(figure_files.draw, part, key=key))
    sized(chart)
    if lecture.shows(taken):  # alone on the projector: it has the room of the controls
        most = (LECTURE_PAIR_HEIGHT if star_in else LECTURE_HEIGHT) * controls.screen_factor()
        chart.layout.height = round(max(chart.layout.height, min(LARGEST * chart.layout.height, most)))
    draw = partial(_draw, alt=alt, select_many=select_many)
    if on_phone is None:
        draw(chart, key, on_select=on_select)
    else:
        with st.container(key=f"beside_{key}"):
            draw(chart, key, on_select=on_select)
            draw(sized(on_phone[0]), f"phone_{key}", on_select=on_phone[1])
    if rest:
        st.markdown(rest)


def _draw(chart: go.Figure, key: str, *, alt: str, on_select: Callable[[], None] | None, select_many: bool) -> None:
    # Not transparent: a picture saved in dark mode would have light type without a background.
    chart.layout.paper_bgcolor = DARK_PAPER if controls.is_dark() else LIGHT_PAPER
    st.plotly_chart(
        chart,
        key=key,
        alt=alt,
        on_select=on_select or "ignore",
        selection_mode=("points", "box", "lasso") if select_many else "points",
        config={
            "displaylogo": False,
            "modeBarButtonsToRemove": ["autoScale2d", *(() if on_select and select_many else ("select2d", "lasso2d"))],
            "toImageButtonOptions": figure_files.picture_options(key),
        },
    )


def parted(message: str, most: int = MOST_ABOVE) -> tuple[str, str]:
    """The sentences of a finding that stand above its figure, `most` characters if the first is not longer, and the rest.

    No emphasis is cut in two.
    """
    ends = [found.start() for found in _SENTENCE_END.finditer(message) if message[: found.start()].count("**") % 2 == 0]
    fitting = [end for end in ends if end <= most]
    if len(message) <= most or not ends:
        return message, ""
    cut = fitting[-1] if fitting else ends[0]
    return message[:cut], message[cut:].strip()


def finding(
    message: str,
    *,
    key: str,
    read: str = "",
    not_shown: str = "",
    picture: str = "",
    table: Callable[[], pd.DataFrame] | None = None,
) -> None:
    """Draw the finding of several figures above them, with “?” for how they are read and what they do not show.

    With a `table`, the `picture` that we draw ourselves, named by its key, has a star: it is put into a lecture with these
    numbers.
    """
    message = with_isolated_quotes(message)
    part = stand_alone.PagePart(message=message, read=read, not_shown=not_shown)
    report.add(f"finding {key}", part)
    with _line(message, read, not_shown, key):
        if table is not None:
            lecture.star(st.session_state[_PAGE], picture, part, table, f".st-key-{picture}")
    st.session_state[_FINDING] = part


@contextmanager
def together(first: str) -> Iterator[None]:
    """Figures that a lecture takes as one picture, by one star in the line of the finding that stands above them all.

    `first` is the key of the figure that is drawn first; the picture has its name.
    """
    st.session_state[_TOGETHER] = (first, st.session_state[_LINE])
    try:
        with st.container(key=f"beside_{first}"):
            yield
    finally:
        st.session_state[_TOGETHER] = None


def _with_finding(part: stand_alone.PagePart, key: str) -> stand_alone.PagePart:
    """A figure as it stands alone in a lecture: with the finding and the reading that it shares with others, if it has none."""
    shared: stand_alone.PagePart = st.session_state.get(_FINDING) or stand_alone.PagePart()
    if not part.message:
        part = replace(part, message=shared.message)
    if not part.read:
        part = replace(part, read=shared.read, not_shown=part.not_shown or shared.not_shown)
    if not part.read:
        st.session_state.setdefault(_UNREAD, []).append(key)  # `reading` may follow
    return part


def above(
    message: str,
    *,
    key: str,
    table: Callable[[], pd.DataFrame],
    code: AnyCode | NoCode,
    title: str,
    read: str,
    not_shown: str,
    place: str = "",
    chart: go.Figure | None = None,
    alt: str = "",
) -> None:
    """The line above a picture that we draw ourselves: its finding, “?”, and “Share” with its numbers and their code.

    `place` is the CSS selector of the picture, which the browser saves as a file. Instead of it a `chart`, described by `alt`,
    can say the same as a figure: it is what a person takes along then. A list of texts has neither.
    """
    message = with_isolated_quotes(message)
    if chart is None:
        part = stand_alone.PagePart(title=title, message=message, read=read, not_shown=not_shown)
    else:
        part = stand_alone.PagePart(chart, alt=alt, title=title, message=message, read=read, not_shown=not_shown)
    report.add(key, part, table)
    draw_files = None
    if chart is not None:
        draw_files = partial(figure_files.draw, part, key=key)
    elif place:
        draw_files = partial(figure_files.draw_own, place, message, key=key)
    with _line(message, read, not_shown, key):
        lecture.star(st.session_state[_PAGE], key, _with_finding(part, key), table, place)
        _share(key, table, code, title, draw_files=draw_files)


def _line(message: str, read: str, not_shown: str, key: str) -> DeltaGenerator:
    """Draw the finding, with “?” where there is something to read; returns the line, which has room for more at its right.

    Without a finding the line lies over the figure's title, which needs the left of it only.
    """
    line = st.container(key=f"{'line' if message else 'bare_line'}_{key}", horizontal=True, vertical_alignment="top")
    with line:
        if message:
            st.markdown(f":material/insights: {message}")
        if read:
            _reading(read, not_shown, f"read_{key}")
    st.session_state[_LINE] = line
    return line


def _reading(read: str, not_shown: str, key: str) -> None:
    with st.popover("How to read this", icon=":material/help:", key=key, width="content"):
        st.markdown(f"**How to read this**  \n{read}")
        if not_shown:
            st.markdown(f"**What it does not show**  \n{not_shown}")


_DRAWN = "_figures_drawn"  # session key: the code of each figure that the page shows now, by the figure's key
_PAGE = "_figures_page"  # session key: the page that draws them
_FINDING = "_figures_finding"  # session key: the finding of several figures that was drawn last, with how they are read
_UNREAD = "_figures_unread"  # session key: the keys of the figures that nothing says how to read, until `reading` does
_TOGETHER = "_figures_together"  # session key: the first of the figures that have one star, and the line of that star
_LINE = "_figures_line"  # session key: the line above the figure that was drawn last, which has room for “?”


def begin(page: str) -> None:
    """Forget the figures of the view before; a page calls it before it draws its own."""
    st.session_state[_DRAWN] = {}
    st.session_state[_PAGE] = page
    st.session_state[_LINE] = st.session_state[_FINDING] = st.session_state[_TOGETHER] = None
    st.session_state[_UNREAD] = []


def drawn() -> dict[str, TitledCode]:
    """The code of the figures that the page shows until now, for `go_back`."""
    return dict(_drawn())


def go_back(before: Mapping[str, TitledCode]) -> None:
    """Show the code only of what `drawn` has returned: the figures that were drawn since have been removed."""
    st.session_state[_DRAWN] = dict(before)
    st.session_state[_LINE] = None  # removed, perhaps


def _drawn() -> dict[str, TitledCode]:
    shown: dict[str, TitledCode] = st.session_state.setdefault(_DRAWN, {})
    return shown


def notebook(title: str, page: str, used: frozenset[str]) -> None:
    """A button that saves the figures drawn since `begin` as a notebook; none where no figure has code.

    The notebook states the settings `used`, which the view has read.
    """
    codes = tuple(_drawn().values())
    if not codes:
        return
    stated = {fact.name: ", ".join(fact.values) for fact in report.facts_of(page, used) if fact.setting}
    st.download_button(
        "Open as a notebook",
        lambda: notebooks.notebook(title, stated, codes),
        file_name=f"bert-internals-{page}.ipynb",
        mime="application/x-ipynb+json",
        key=f"notebook_{page}",
        icon=":material/code_blocks:",
        type="tertiary",
        help="Saves the code of the figures above as a Jupyter notebook.",
        on_click="ignore",
    )


def sized(chart: go.Figure) -> go.Figure:
    """A figure with type as large as the page's: larger in projector mode."""
    return theme.enlarge(chart, controls.scale())


def matrix(
    values: np.ndarray,
    row_labels: Sequence[str],
    column_labels: Sequence[str],
    title: str,
    *,
    key: str,
    alt: str,
    code: AnyCode | NoCode,
    label_column: str = "query",
    digits: int = 5,
    read: str = "",
    not_shown: str = "",
    message: str = "",
    most_above: int = MOST_ABOVE,
    **options: Any,
) -> None:
    """A figure of a matrix; the row labels are the first column of its table, named `label_column`.

    The `options` are those of `matrices.token_matrix`.
    """

    def table() -> pd.DataFrame:
        import pandas as pd

        frame = pd.DataFrame(values.round(digits), columns=list(column_labels))
        frame.insert(0, label_column, list(row_labels))
        return frame

    chart = matrices.token_matrix(values, row_labels, column_labels, title, dark=controls.is_dark(), **options)
    figure(
        chart,
        key=key,
        alt=alt,
        table=table,
        code=code,
        read=read,
        not_shown=not_shown,
        message=message,
        most_above=most_above,
    )


def subheader(text: str) -> None:
    """Draw the title of a section; a report has it too."""
    report.add(f"subheader {text}", stand_alone.PagePart(title=text))
    st.session_state[_FINDING] = None  # of the section before
    st.subheader(text, anchor=False)


def note(markdown: str, key: str = "") -> None:
    """Draw a line of text, or a heading in bold type above a table; a report has it too.

    The `key` tells lines apart that say the same.
    """
    report.add(f"note {key or markdown}", stand_alone.PagePart(message=markdown))
    st.markdown(markdown)


def markup(drawn: str, key: str, of: str = "") -> None:
    """Draw HTML, in which the texts of people are escaped; a report has it too.

    `of` is the key of the figure above to which it belongs: a lecture shows both, and its page has this below that one.
    """
    report.add(key, stand_alone.PagePart(markup=drawn))
    if of:
        lecture.add_texts(st.session_state[_PAGE], of, markup=drawn)
    with st.container(key=f"explains_{key}") if of else nullcontext():
        st.html(drawn)


def colour_bar(value: str, limits: tuple[float, float], *, pale: bool = False, mark: float | None = None) -> None:
    """One colour bar for several figures on one scale, dark to bright or `pale` to blue, each drawn without its own.

    A `mark` between the ends has a line, of which the finding says what it is.
    """
    low, high = (theme.number(limit, 2) for limit in limits)
    ends = f"{'pale' if pale and not controls.is_dark() else 'dark'} is {low}, {'blue' if pale else 'bright'} is {high}"
    key = f"Colours of these figures: {messages.escape(value)}, {ends}."
    report.add(key, stand_alone.PagePart(message=key))
    colours = matrices.palette(9, theme.one_hue(controls.is_dark()) if pale else theme.SEQUENTIAL)
    stops = ", ".join(f"rgb({red}, {green}, {blue})" for red, green, blue in colours)
    line = ""
    if mark is not None and limits[0] < mark < limits[1]:
        place = theme.number(100 * (mark - limits[0]) / (limits[1] - limits[0]), 1)
        line = f'<b style="left: {place}%"></b>'
        value = f"{value} (line: {theme.number(mark, 2)})"
    st.html(
        f'<div class="bi-scale" role="img" aria-label="{value}: {ends}"><span>{value}</span>'
        f'<div><span>{low}</span><i style="background: linear-gradient(to right, {stops})">{line}</i><span>{high}</span></div>'
        "</div>"
    )


def part_bars(
    parts: Mapping[str, np.ndarray],
    pieces: Sequence[str],
    title: str,
    *,
    key: str,
    alt: str,
    code: AnyCode | NoCode,
    read: str,
    not_shown: str,
    message: str = "",
    digits: int = 4,
    most_above: int = MOST_ABOVE,
    **options: Any,
) -> None:
    """Bars of one value per part and token, with a table; the `options` are those of `bars.part_norm_bars`."""
    values = np.array(list(parts.values()))  # [part, token]

    def table() -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame({"token": pieces, **dict(zip(parts, values.round(digits), strict=True))})

    figure(
        bars.part_norm_bars(list(parts), pieces, values, title, **options),
        key=key,
        alt=alt,
        code=code,
        read=read,
        not_shown=not_shown,
        message=message,
        most_above=most_above,
        table=table,
    )


def reading(read: str, not_shown: str) -> None:
    """How the figures above are read and what they do not show: a “?” in the line of the last one, or one of its own."""
    report.add(read, stand_alone.PagePart(read=read, not_shown=not_shown))
    for figure_key in st.session_state.get(_UNREAD) or ():
        lecture.add_texts(st.session_state[_PAGE], figure_key, read=read, not_shown=not_shown)
    st.session_state[_UNREAD] = []
    key = f"read_{zlib.crc32(read.encode())}"
    line = st.session_state.get(_LINE)
    if line is None:
        line = st.container(key=f"line_{key}", horizontal=True, horizontal_alignment="right")
    with line:
        _reading(read, not_shown, key)


def data(
    key: str,
    table: Callable[[], pd.DataFrame],
    code: AnyCode | NoCode,
    title: str = "",
) -> None:
    """A line with “Share” for numbers that no figure shows: as a table and a CSV, and the code that gives them.

    The `title` is that of what the page shows of the numbers: a notebook of the page has it.
    """
    report.add(key, stand_alone.PagePart(title=title), table)  # the table of a list or of texts
    line = st.session_state[_LINE] = st.container(key=f"line_{key}", horizontal=True, horizontal_alignment="right")
    with line:
        _share(key, table, code, title)


def _share(
    key: str,
    table: Callable[[], pd.DataFrame],
    code: AnyCode | NoCode,
    title: str,
    draw_files: Callable[[], None] | None = None,
) -> None:
    """The button with what a person takes along; its content is made when it is opened.

    `draw_files` draws further files of a figure beside the CSV.
    """
    panel = st.popover("Share", icon=":material/ios_share:", key=f"data_{key}", on_change="rerun", width="content")
    if isinstance(code, Command) and not code.commands:
        code = figure_link.command(st.session_state[_PAGE], key, code.function)
    if not isinstance(code, NoCode):
        _drawn()[key] = TitledCode(title, code)
    if not panel.open:
        return
    with panel:
        names = ["Files", "Link", "Table", *(() if isinstance(code, NoCode) else ("Code",))]
        of_files, of_link, of_table, *of_code = st.tabs(names, key=f"parts_{key}")
        frame = table()
        with of_files, st.container(horizontal=True, key=f"files_{key}"):
            if draw_files is not None:
                draw_files()
            download(frame, key)
        with of_link:
            figure_link.draw(st.session_state[_PAGE])
        with of_table:
            st.dataframe(frame, hide_index=True, key=f"table_{key}")
            if isinstance(code, NoCode):
                st.caption(code.reason)
        for place in of_code:
            assert not isinstance(code, NoCode)
            place.code(code.text, language=code.language)


def plain_table(frame: pd.DataFrame, *, key: str = "", **arguments: Any) -> None:
    """A small table that shows long texts on several lines, without its index.

    Streamlit renders the cells as Markdown, so that texts of files, models and people are escaped: here, for all tables.
    Several spaces stay several. The names of the columns must be the page's own words. A table that is drawn again with
    other lines, or whose numbers stand in a panel of `data` too, needs the `key` of both.
    """
    report.add(key, stand_alone.PagePart(table=frame))
    _plain_table(frame, **arguments)


def _plain_table(frame: pd.DataFrame, **arguments: Any) -> None:
    def shown(value: object) -> object:
        return messages.escape(value).replace("  ", "\u00a0 ") if isinstance(value, str) else value

    st.table(frame.map(shown), hide_index=True, **arguments)


def download(frame: pd.DataFrame, key: str) -> None:
    """A button that saves a table as CSV, which is made on the click.

    Streamlit gives a file that is made at once a temporary address, which another drawing of the page can remove before
    the browser has checked it.
    """
    st.download_button(
        "Download as CSV",
        lambda: _csv(frame),
        file_name=file_of(key),
        mime="text/csv",
        key=f"csv_{key}",
        icon=":material/download:",
        on_click="ignore",
    )


def whole_texts(frame: pd.DataFrame, key: str, scrolls: bool = True) -> None:
    """Draw a table whose long texts are wrapped, not clipped; it `scrolls` if it has many rows."""
    report.add(key, stand_alone.PagePart(table=frame))
    with st.container(height=560 if scrolls and len(frame) > 10 else "content", key=key):
        _plain_table(frame.rename(columns=messages.escape))


def corpus_columns(
    own: Mapping[str, object], columns: Mapping[str, Sequence[str]], rows: Iterable[int]
) -> dict[str, list[str]]:
    """The corpus's columns at these rows, renamed where a name would hide one of the table's `own` columns."""
    row_indices = [int(row) for row in rows]
    return {
        f"{name} (column)" if name in own else name: [column[row] for row in row_indices]
        for name, column in columns.items()
    }


def _csv(frame: pd.DataFrame) -> bytes:
    """A CSV for spreadsheets: marked as UTF-8, and with an apostrophe before text that would act as a formula.

    All texts are quoted: a spreadsheet that separates at semicolons would begin a cell in the middle of one.
    """

    def plain(value: object) -> object:
        return f"'{value}" if isinstance(value, str) and _is_formula(value) else value

    cells = frame.map(plain).rename(columns=plain)
    return cells.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC).encode("utf-8-sig", "replace")


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet may take a text for a formula: by its first character that is seen."""
    if text[:1] in ("\t", "\r", "\n"):
        return True
    seen = (letter for letter in text if not letter.isspace() and not unicodedata.category(letter).startswith("C"))
    return next(seen, " ") in _FORMULA_SIGNS
