"""The table of runs: differences to one run, p-values of pairs only, and exports that others' programs can read."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from components.retrieval.evaluation import metrics
from components.retrieval.evaluation.graded import metrics as graded_metrics
from components.retrieval.evaluation.run_record import Run, RunData
from dashboard.views.evaluate import choices, lab, run_table
from dashboard.views.evaluate.run_table import latex, markdown, paired

DATA = RunData("pairs", 100, 60, "a" * 64)


def run(name: str, ranks: object, **options: object) -> Run:
    return Run(name, {"kind": name}, options.pop("data", DATA), {}, {}, ranks=np.asarray(ranks, np.int64), **options)


def results(runs: list[Run], measure: str, reference: int) -> pd.DataFrame:
    """The table, where somebody chose the reference."""
    return run_table.results(runs, measure, reference, is_best=False)[0]


@pytest.fixture
def runs() -> list[Run]:
    """The reference first; then a little better, much better, the same on other data, and as good."""
    random = np.random.default_rng(0)
    ranks = random.integers(2, 60, 60)
    little, much = ranks.copy(), ranks.copy()
    little[:6] = 1
    much[:40] = 1
    return [
        run("reference", ranks, milliseconds=2.5, index_bytes=3_000_000),
        run("little", little),
        run("much", much),
        run("elsewhere", much, data=replace(DATA, content_hash="b" * 64, name="other pairs")),
        run("same", ranks),
    ]


def test_each_run_has_its_measures_in_per_cent(runs):
    table = results(runs, "Recall@1", 0)
    assert list(table["run"]) == ["reference", "little", "much", "elsewhere", "same"]
    assert table["Recall@1"].tolist() == pytest.approx([0, 10, 200 / 3, 200 / 3, 0])
    for name, judge in metrics.MEASURES.items():
        assert table[name].tolist() == pytest.approx([100 * judge(each.ranks).mean() for each in runs])
    assert list(table.columns).count("Recall@1") == 1
    one = metrics.interval(metrics.recall(runs[2].ranks, 1))
    assert table["95 % interval"][2] == f"{100 * one.low:.1f} – {100 * one.high:.1f}"
    assert table["ms per query"][0] == 2.5
    assert table["index MB"][0] == 3
    assert table["ms per query"].isna().tolist() == table["index MB"].isna().tolist() == [False] + [True] * 4
    assert table["queries"].tolist() == [60] * 5
    assert table["data"][3] == "other pairs"


def test_p_values_are_adjusted_and_only_of_runs_on_the_same_data(runs):
    table = results(runs, "Recall@1", 0)
    own = metrics.recall(runs[0].ranks, 1)
    little, much, same = (metrics.randomisation_test(metrics.recall(runs[at].ranks, 1), own) for at in (1, 2, 4))
    # Six queries in one direction: 2 of 64 sign patterns, times the two comparisons that are not smaller.
    assert little == pytest.approx(1 / 32, abs=0.006)
    assert table["p (Holm)"].tolist() == [
        "reference", metrics.shown_p(2 * little, little), metrics.shown_p(3 * much, much), "other data", "1.000"
    ]  # fmt: skip
    assert same == 1
    assert table["difference"][[1, 2, 4]].tolist() == pytest.approx([10, 200 / 3, 0])
    assert table["difference"].isna().tolist() == [False, False, False, True, False]
    assert table["difference"][0] == 0
    # Who looks at the best of them has looked at every pair: six of four runs, so the smallest counts 6 times, not 3.
    best, compared = run_table.results(runs, "Recall@1", 2, is_best=True)
    alone = metrics.randomisation_test(metrics.recall(runs[1].ranks, 1), metrics.recall(runs[2].ranks, 1))
    assert compared.p_values[1] == pytest.approx(metrics.holm([alone] * 3, 6)[0], abs=3e-4)
    assert compared.unsure == []
    chosen = run_table.results(runs, "Recall@1", 2, is_best=False)[1]
    assert set(compared.p_values) == set(chosen.p_values) == {0, 1, 4}
    assert min(compared.p_values.values()) == pytest.approx(2 * min(chosen.p_values.values()))
    assert best["p (Holm)"][2] == "reference"


def test_another_reference_and_measure(runs):
    table = results(runs, "MRR", 2)
    judged = [100 * metrics.reciprocal_rank(each.ranks).mean() for each in runs]
    assert table["p (Holm)"][2] == "reference"
    assert table["p (Holm)"][0] == table["p (Holm)"][4] != "other data"
    assert table["difference"][[0, 1, 4]].tolist() == pytest.approx([judged[at] - judged[2] for at in (0, 1, 4)])
    # From a run on other data nothing can be compared.
    alone = results(runs, "MRR", 3)
    assert alone["p (Holm)"].tolist() == ["other data"] * 3 + ["reference", "other data"]
    assert alone["difference"].isna().tolist() == [True] * 3 + [False, True]


def test_runs_are_pairs_only_on_the_same_queries_and_documents(runs):
    reference, little, _, elsewhere, _ = runs
    assert paired(reference, little)
    assert not paired(reference, elsewhere)
    # A hash alone is not believed: it stands in a file that anybody can write.
    assert not paired(reference, run("short", [1, 2], data=replace(DATA, queries=2)))


SIGNS = "a_b & c% #1 $x {y} \\z ~ ^ <i> |"


def braces(text: str) -> int:
    """How many braces are open at the end, those that are printed left out; never fewer than none on the way."""
    level = 0
    for sign in re.sub(r"\\[{}]", "", text):
        level += {"{": 1, "}": -1}.get(sign, 0)
        assert level >= 0
    return level


def test_latex_prints_every_sign_as_it_is(runs):
    text = latex(results([replace(runs[0], name=SIGNS), *runs[1:]], "MRR", 0).round(2))
    signs = r"a\_b \& c\% \#1 \$x \{y\} \textbackslash{}z \textasciitilde{} \textasciicircum{} $<$i$>$ $|$"
    (row,) = (line for line in text.splitlines() if r"a\_b" in line)
    assert row.startswith(signs + " & ")
    assert braces(text) == 0
    assert text.count("\\begin{tabular}") == text.count("\\end{tabular}") == 1
    assert re.search(r"(?<!\\)[%#~^]|[<>](?!\$)|–", text) is None
    # Each row has as many cells as the head says columns.
    (layout,) = re.findall(r"\\begin\{tabular\}\{(\w+)\}", text)
    rows = [line for line in text.splitlines() if line.endswith("\\\\")]
    assert len(rows) == 6
    assert {len(re.findall(r"(?<!\\)&", line)) + 1 for line in rows} == {len(layout)} == {16}
    assert r"95 \% interval" in rows[0]
    assert rows[0].count("Recall@") == 5


@pytest.mark.parametrize("name", ["[1cm] x", "*x", "* [x]"])
def test_a_row_of_latex_is_no_part_of_the_row_before(runs, name):
    """After the end of a row LaTeX reads a star, and a length in brackets."""
    rows = latex(results([replace(runs[0], name=name), *runs[1:]], "MRR", 0)).splitlines()
    assert not any(row.lstrip().startswith(("[", "*")) for row in rows)
    assert any(row.startswith("{") and "x" in row for row in rows)


def test_no_table_holds_control_characters(runs):
    table = results([replace(runs[0], name="one\x00two\x1b[31m\x7f")], "MRR", 0)
    for text in (latex(table), markdown(table)):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)
        assert "one two" in text


def test_a_name_of_several_lines_stays_in_its_row(runs):
    named = [replace(runs[0], name="one\n\ntwo\r\nthree")]
    table = results(named, "MRR", 0)
    assert "one two three & " in latex(table)
    assert "| one two three " in markdown(table)
    assert len(markdown(table).splitlines()) == 3


def test_what_is_not_known_stays_empty(runs):
    alone = results([runs[1]], "MRR", 0).round(2)  # no difference, no time, no size: whole columns of nothing
    for table in (alone, results(runs, "MRR", 0).round(2)):
        for text in (latex(table), markdown(table)):
            assert not re.search(r"\b(None|nan|NaN)\b", text)


def test_markdown_has_a_cell_for_each_value_whatever_the_names(runs):
    table = results([replace(runs[0], name="a | b"), *runs[1:]], "MRR", 0).round(2)
    lines = markdown(table).splitlines()
    assert len(lines) == 7
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    assert {len(row) for row in rows} == {len(table.columns)}
    assert rows[0] == list(table.columns)
    assert rows[2][0] == r"a \| b"
    at = list(table.columns).index("Recall@1")
    assert [float(row[at]) for row in rows[2:]] == table["Recall@1"].tolist()
    assert [row[list(table.columns).index("difference")] for row in (rows[2], rows[5])] == ["0", ""]
    assert [row[list(table.columns).index("ms per query")] for row in rows[2:]] == ["2.5", "", "", "", ""]


def test_markdown_shows_text_as_typed(runs):
    (row,) = markdown(results([replace(runs[0], name="a_b *c* `d` <i> [e](f) 007")], "MRR", 0)).splitlines()[2:]
    assert row.split(" | ")[0] == r"| a\_b \*c\* \`d\` \<i\> \[e\](f) 007"
    (row,) = markdown(results([replace(runs[0], name="007")], "MRR", 0)).splitlines()[2:]
    assert row.startswith("| 007 ")  # a name is no number


def test_a_table_is_exported_without_being_changed(runs):
    table = results(runs, "MRR", 0)
    before = table.copy()
    latex(table)
    markdown(table)
    pd.testing.assert_frame_equal(table, before)


def test_an_adjusted_p_is_called_no_probability():
    assert "no longer a frequency" in run_table.HOLM
    assert "probability of a difference" not in run_table.HOLM


def test_whitening_and_centring_are_told_apart():
    assert "vary equally in all of them" in lab.EXPLAINED
    assert "(centring), which\nremoves what all sentences share" in lab.EXPLAINED


@pytest.fixture
def shown_table() -> pd.DataFrame:
    row = {"Recall@1": 96.0, "Recall@20": 99.0, "Recall@50": 99.5, "queries": 630, "data": "Demo news"}
    return pd.DataFrame([{"run": f"all-MiniLM-L6-v2, layer {layer}, Mean", **row} for layer in (6, 0)])


def shown(
    table: pd.DataFrame, measure: str, is_same_data: bool, monkeypatch: pytest.MonkeyPatch
) -> tuple[pd.DataFrame, list[str]]:
    """The table that is drawn, and the columns of it that are shown."""
    drawn: list[tuple[pd.DataFrame, list[str]]] = []
    monkeypatch.setattr("streamlit.dataframe", lambda frame, **options: drawn.append((frame, options["column_order"])))
    run_table.show(table, measure, ["Layer 6, Mean", "Layer 0, Mean", *table["run"][2:]], is_same_data)
    return drawn[0]


def test_runs_on_the_same_data_are_told_apart_by_short_names(
    shown_table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, columns = shown(shown_table, "Recall@1", True, monkeypatch)
    assert list(frame["run"]) == ["Layer 6, Mean", "Layer 0, Mean"]
    assert columns == ["run", "Recall@1"]
    assert "data" in shown_table.columns  # the downloads keep all


def test_the_chosen_measure_and_other_data_are_shown(
    shown_table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, columns = shown(shown_table.assign(data=["Demo news", "own.csv"]), "Recall@20", False, monkeypatch)
    assert columns == ["run", "Recall@20", "queries", "data"]


def test_all_measures_and_p_values_are_shown_on_request(runs, monkeypatch):
    table = results(runs, "Recall@1", 0)
    _, plain = shown(table, "Recall@1", True, monkeypatch)
    assert plain == [
        "run",
        "Recall@1",
        "95 % interval",
        "difference",
        "significant difference",
        "ms per query",
        "index MB",
    ]
    assert table["significant difference"].tolist() == ["reference", "no", "yes", "other data", "no"]
    monkeypatch.setattr(run_table.state, "get", lambda name: name == "all_measures")
    _, whole = shown(table, "Recall@1", True, monkeypatch)
    assert {"p (Holm)", *metrics.MEASURES} < set(whole)


def test_every_measure_has_its_meaning_in_words():
    assert {*metrics.MEASURES, *graded_metrics.MEASURES} == set(choices.GRADED_MEANINGS)
