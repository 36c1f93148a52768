"""Runs as a table with measures, intervals and significance; saving, loading and exporting runs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from components.retrieval.evaluation import metrics
from components.retrieval.evaluation.metrics import Float64
from components.retrieval.evaluation.run_record import Run, read_runs, write_runs
from dashboard import caching, state
from dashboard.corpora import uploads
from dashboard.declared.table import place_of
from dashboard.ui import controls, figures
from dashboard.ui.waiting import frame
from dashboard.views.evaluate import choices

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from components.jobs import IsStopped

HOLM = (
    "From a paired randomisation test: how often a difference at least this large appears when the two runs' results are "
    "swapped at random. Holm's method then raises this value for the number of comparisons (if the reference is the best run, "
    "all pairs of runs count), so that it is no longer a frequency. Calling differences with p < 0.05 statistically "
    "significant limits the chance of any false one among them to 5 %."
)

DIFFERS = "significant difference"
ALL_MEASURES_HELP = (
    "Shows every measure of each run, and the p-values behind “yes” and “no”. The downloads always have them."
)

SHORT_NAME = 22  # characters: fits a narrow column


@dataclass(frozen=True, eq=False)
class RunComparison:
    """Runs compared with one of them by a measure. Runs are named by their numbers, from 0."""

    reference: int
    p_values: Mapping[int, float]  # run to adjusted p; without the reference and runs on other data
    cells: tuple[str, ...]  # the p-value of each run, as text
    comparisons: int = 1  # for which the p-values are adjusted

    @property
    def answers(self) -> list[str]:
        """Whether each run differs significantly from the reference, in a word."""
        words = {run: "yes" if p < metrics.ALPHA else "no" for run, p in self.p_values.items()}
        return [words.get(run, cell) for run, cell in enumerate(self.cells)]

    @property
    def unsure(self) -> list[int]:
        """The runs that are not significantly different from the reference."""
        return [run for run, p in self.p_values.items() if p >= metrics.ALPHA]


def against(values: Sequence[Float64], reference: int, are_paired: Sequence[bool], is_best: bool) -> RunComparison:
    """Paired randomisation tests of runs' values [query] against those of the reference, adjusted for their number (Holm).

    `are_paired` says which runs had the same queries. `is_best` says that the reference was picked as the best run on
    these queries: then every pair of runs counts as a comparison.
    """
    others = [run for run, is_paired in enumerate(are_paired) if is_paired and run != reference]
    raw = [metrics.randomisation_test(values[run], values[reference]) for run in others]
    count = len(others) + 1
    comparisons = count * (count - 1) // 2 if is_best else len(others)
    adjusted = metrics.holm(raw, comparisons)
    cells = ["other data"] * len(values)
    cells[reference] = "reference"
    for run, p, raw_p in zip(others, adjusted, raw, strict=True):
        cells[run] = metrics.shown_p(p, raw_p)
    return RunComparison(reference, dict(zip(others, adjusted, strict=True)), tuple(cells), comparisons)


def results(
    runs: Sequence[Run], measure: str, reference: int, is_best: bool, names: Sequence[str] | None = None
) -> tuple[pd.DataFrame, RunComparison]:
    """One row per run: all measures in per cent, the chosen one's interval and its difference to the reference run.

    `names` replace the runs' own; `is_best` as in `against`.
    """
    values = [{name: judge(run.ranks) for name, judge in metrics.MEASURES.items()} for run in runs]
    judged = [run_values[measure] for run_values in values]
    compared = against(judged, reference, [paired(run, runs[reference]) for run in runs], is_best)
    rows = []
    for number, run in enumerate(runs):
        is_comparable = number == reference or number in compared.p_values
        difference = 100 * float(judged[number].mean() - judged[reference].mean())
        tests = {
            "difference": difference if is_comparable else np.nan,
            DIFFERS: compared.answers[number],
            "p (Holm)": compared.cells[number],
        }
        rows.append(
            {
                **measured(names[number] if names is not None else run.name, values[number], measure, tests),
                "queries": run.data.queries,
                "data": run.data.name,
            }
        )
    table = pd.DataFrame(rows)
    for name, column in costs(runs).items():
        table.insert(list(table.columns).index("queries"), name, column)
    return table, compared


def costs(runs: Sequence[Run]) -> dict[str, list[float]]:
    """The columns of what a run costs; NaN where that is not known."""
    return {
        "ms per query": [np.nan if run.milliseconds is None else run.milliseconds for run in runs],
        "index MB": [np.nan if run.index_bytes is None else run.index_bytes / 1e6 for run in runs],
    }


def measured(name: str, values: Mapping[str, Float64], measure: str, tests: Mapping[str, object]) -> dict[str, object]:
    """A run's row: the measure in per cent with its interval, the tests, then all other measures."""
    estimate = metrics.interval(values[measure])
    return {
        "run": name,
        measure: 100 * estimate.value,
        "95 % interval": f"{100 * estimate.low:.1f} – {100 * estimate.high:.1f}",
        **tests,
        **{other: 100 * float(values[other].mean()) for other in values if other != measure},
    }


def paired(run: Run, other: Run) -> bool:
    """Whether two runs had the same queries and documents, so that they can be compared query by query."""
    return run.data.content_hash == other.data.content_hash and len(run.ranks) == len(other.ranks)


def show(table: pd.DataFrame, measure: str, names: Sequence[str], is_same_data: bool) -> None:
    """Draw the table with the runs' short `names`, and what its columns mean; the downloads have all columns.

    Of the measures it shows only the chosen one unless a person wants all, and the data unless all runs share it.
    """
    config = measure_columns() | {
        "run": name_column(names),
        "difference": st.column_config.NumberColumn(format="%.1f", help="In percentage points"),
        DIFFERS: st.column_config.TextColumn("significant?", help=HOLM),
    }
    config["ms per query"] = st.column_config.NumberColumn(format="%.1f", help="Median of some queries, one at a time")
    config["index MB"] = st.column_config.NumberColumn(format="%.2f", help="Size of what is stored about the sentences")
    config["p (Holm)"] = st.column_config.TextColumn(help=HOLM)
    st.dataframe(
        table.assign(run=names),
        hide_index=True,
        key="runs_table",
        column_config=config,
        column_order=columns_shown(table, measure, ("data", "queries") if is_same_data else ()),
        placeholder="–",
    )
    legend(
        measure,
        "**significant?** says whether the difference is more than chance. **ms per query**: measured on this machine, the "
        "median of some queries, one at a time, while no other job ran here; other programs may have lengthened it. "
        "“What helps” takes the fastest of a few searches while others may compute.",
    )


def measure_columns(meanings: Mapping[str, str] = choices.MEANINGS) -> dict[str, Any]:
    """The columns of all measures, each with what it means."""
    return {
        name: st.column_config.NumberColumn(format="%.1f %%", help=f"{meaning[0].upper()}{meaning[1:]}")
        for name, meaning in meanings.items()
    }


def columns_shown(table: pd.DataFrame, measure: str, left_out: Collection[str] = ()) -> list[str]:
    """The columns that a table of runs shows: the chosen measure and answers in words, unless a person wants all."""
    hidden = {*left_out}
    if not state.get("all_measures"):
        hidden |= {*choices.GRADED_MEANINGS, "p (Holm)", "p to the best (Holm)"} - {measure}
    return [name for name in table.columns if name not in hidden]


def all_measures() -> None:
    """The switch between the chosen measure and all of them."""
    controls.switch("all_measures", "All measures", ALL_MEASURES_HELP)


def legend(measure: str, rest: str, meanings: Mapping[str, str] = choices.MEANINGS) -> None:
    """What a table's columns mean, directly below it."""
    meaning = meanings[measure]
    st.caption(f"**{measure}**: {meaning}. **95 % interval**: where it may lie for other queries. {rest}")


def name_column(names: Sequence[str]) -> Any:
    """The column of the runs' names: it stays in view, and is as wide as they need."""
    width = 150 if max(map(len, names)) <= SHORT_NAME else 230
    return st.column_config.TextColumn(pinned=True, width=round(width * controls.scale()))


def exports(runs: Sequence[Run], table: pd.DataFrame) -> None:
    """Downloads: the table as CSV, Markdown and LaTeX, and the runs as JSON; each is made on the click."""
    rounded = table.round(2)
    with st.container(horizontal=True, key="run_exports"):
        figures.download(rounded, "runs")
        save_help = "With model revisions, settings, versions and the rank of every query. Load the file again below."
        for label, ending, mime, content, icon, help_text in (
            ("Markdown table", "md", "text/markdown", lambda: markdown(rounded), "download", None),
            ("LaTeX table", "tex", "application/x-tex", lambda: latex(rounded), "download", None),
            ("Save the runs (JSON)", "json", "application/json", lambda: write_runs(runs), "save", save_help),
        ):
            st.download_button(
                label,
                content,
                f"bert-internals-runs.{ending}",
                mime,
                key=f"runs_{ending}",
                icon=f":material/{icon}:",
                on_click="ignore",
                help=help_text,
            )


def markdown(table: pd.DataFrame) -> str:
    """A Markdown table; its texts are escaped, each on one line."""

    def plain(value: object) -> str:
        return re.sub(r"([\\`*_{}\[\]<>#|!~])", r"\\\1", _one_line(value))

    columns = _text_columns(table)
    escaped = table.assign(**{name: table[name].map(plain) for name in columns}).rename(columns=plain)
    return (
        escaped.astype(object)
        .where(escaped.notna(), None)
        .to_markdown(index=False, disable_numparse=[table.columns.get_loc(name) for name in columns], missingval="")
    )


def latex(table: pd.DataFrame) -> str:
    """A LaTeX table; LaTeX's special characters are escaped."""
    plain = table.assign(**{name: table[name].map(_latex) for name in _text_columns(table)})
    return plain.rename(columns=_latex).to_latex(index=False, float_format="%.2f", na_rep="")


def _text_columns(table: pd.DataFrame) -> list[str]:
    return [str(name) for name in table.select_dtypes(exclude="number").columns]


def _one_line(value: object) -> str:
    """A value without line ends and control characters, which no table may hold."""
    return " ".join("".join(" " if unicodedata.category(letter) == "Cc" else letter for letter in str(value)).split())


def _latex(value: object) -> str:
    signs = {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "–": "--",
        "<": "$<$",
        ">": "$>$",
        "|": "$|$",
        '"': r"\textquotedbl{}",
        "[": "{[}",  # at the beginning of a row it, and a star, would belong to the end of the row before
        "]": "{]}",
        "*": "{*}",
    }
    return "".join(signs.get(char, f"\\{char}" if char in "&%$#_{}" else char) for char in _one_line(value))


def loaded() -> list[Run]:
    """The runs that this session loaded from files and that are still kept."""
    return [run for key in st.session_state.get("_saved_runs", ()) for run in caching.saved_runs().find(key) or ()]


def loading() -> None:
    """Draw the upload of saved runs. Call it before `loaded`, so that new files count in the same run of the page."""
    panel = st.expander("Load saved runs", icon=":material/upload_file:", key="load_runs", on_change="rerun")
    if panel.open:
        with panel:
            _uploads()
    keys = st.session_state.get("_saved_runs", ())
    here = tuple(key for key in keys if uploads.is_here(caching.saved_runs(), key))
    if len(here) < len(keys):
        state.notice(
            "Some loaded runs are no longer kept on this server: load their files again.", place_of("compare-runs")
        )
        st.session_state["_saved_runs"] = here
    for number, key in enumerate(here):
        with frame.figure(f"loaded_{number}"):
            uploads.again(caching.saved_runs(), key, _read_runs)


def _uploads() -> None:
    # Only a new key empties an uploader.
    number = st.session_state.setdefault("_run_uploader", 0)
    files = uploads.uploader(
        "run_files",
        "Runs saved on this page (.json)",
        type=["json"],
        accept_multiple_files=True,
        key=f"run_files_{number}",
    )
    for place, file in enumerate(files):
        with frame.figure(f"run_file_{place}"):
            key = uploads.added(caching.saved_runs(), file, _read_runs)
            known = st.session_state.get("_saved_runs", ())
            if key not in known:
                st.session_state["_saved_runs"] = (*known, key)
    if st.session_state.get("_saved_runs"):
        count = len(loaded())
        st.caption(f"{count} loaded run{' is' if count == 1 else 's are'} in the table.")
        st.button("Remove", key="drop_runs", on_click=_remove)


def _read_runs(file: UploadedFile | uploads.StoredFile, is_stopped: IsStopped) -> tuple[Run, ...]:
    return read_runs(file.getvalue(), file.name)


def _remove() -> None:
    uploads.forget("saved_runs")
    st.session_state["_run_uploader"] = st.session_state.get("_run_uploader", 0) + 1
