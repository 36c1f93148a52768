"""`numbers` prints the numbers of figures that have neither code nor a command of their own, as they stand on screen."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from components import operator_settings, packing
from components.command_line.commands.operating import numbers
from components.errors import InputError
from components.retrieval.corpora.corpus import read_corpus
from components.shown_code.code import Command
from dashboard import caching, state
from dashboard.corpora import current
from dashboard.declared import table
from dashboard.declared.view import PAIR, RIVER
from dashboard.website import numbers as drawn_numbers
from dashboard.website.numbers import numbers_at
from tests.components.command_line.in_process import run
from tests.dashboard.code.shown import EQUAL, codes, same, y
from tests.support.pages import Open, at_rest
from tests.support.saved_models import save_multi, save_sparse

Folder = Callable[[str], Path]
TINY = "(a tiny model)"  # in settings below: the folder of a tiny model of this architecture
BERT, DEBERTA, SPARSE, MULTI = f"{TINY} bert", f"{TINY} deberta-v2", f"{TINY} sparse", f"{TINY} multi"
SAVED = {SPARSE: save_sparse, MULTI: save_multi}
RARE = pytest.mark.rare


def opened(open_page: Open, view: str, settings: Mapping[str, Any]) -> AppTest:
    """A view with settings by name, once nothing is under way."""
    found = {table.SETTING[name].short: table.SETTING[name].show(value) for name, value in settings.items()}
    return at_rest(open_page(view, **found))


def asked(app: AppTest, key: str, *file: str) -> list[str]:
    """The arguments of the command `numbers` of a figure, as its text has them; `file`: those about a file."""
    code = codes(app)[key].code
    assert isinstance(code, Command)
    (line,) = (line for line in code.text.splitlines() if line.startswith("python"))
    _, _, _, name, *arguments = shlex.split(line)
    assert (name, arguments[:-1]) == (numbers.NAME, ["--figure", key, *file, "--json", "-", "--"])
    return arguments


def on_screen(app: AppTest, key: str, columns: list[str]) -> pd.DataFrame:
    """The table of a figure with these columns, in its open panel."""
    app.session_state[f"data_{key}"] = True
    at_rest(app.run())
    shown = [item.value for item in app.dataframe if list(map(str, item.value.columns)) == columns]
    app.session_state[f"data_{key}"] = False
    assert len(shown) == 1
    return shown[0]


def same_table(found: Mapping[str, Any], shown: pd.DataFrame) -> None:
    assert len(found["rows"]) == len(shown) > 0
    for place, (_, values) in enumerate(shown.items()):
        own = [row[place] for row in found["rows"]]
        if pd.api.types.is_numeric_dtype(values):
            same(np.array(own, float), values, EQUAL)
        else:
            assert [text or "" for text in own] == ["" if pd.isna(text) else text for text in values]


@pytest.mark.parametrize(
    ("view", "settings", "keys"),
    [
        (
            "important-words",
            {**PAIR, "deletion_order": "last", "deletion_from": "both"},
            ("word_scores", "deletion_curves"),
        ),
        ("score-split", {**PAIR, "layer": 2, "pooling": "max"}, ("context_layers",)),
        (
            "known-failures",
            {"model": BERT, "clinic_figure": "probe"},
            ("clinic_probe",),
        ),
        ("mask-token", {"sentences": RIVER, "only_left": True}, ("guess",)),
        ("attention-flow", {"sentences": RIVER, "flow": "through"}, ("flow_bars",)),
        ("attention-scores", {"sentences": RIVER, "model": DEBERTA, "block": 1, "head": 1}, ("score_bars",)),
        ("head-patterns", {"sentences": RIVER, "pattern_over_all": True}, ("patterns",)),
        pytest.param("failed-search", {"model": BERT, "failed_query": 5}, ("hubness", "failure_causes"), marks=RARE),
        pytest.param(
            "approximation",
            {"model": BERT, "layer": 1, "pooling": "max", "similarity": "dot", "approximation": "first-4"},
            ("approximation", "lost_hits"),
            marks=RARE,
        ),
        pytest.param(
            "pooling-lab",
            {"model": BERT, "layer": 2, "lab_dims": 16, "lab_pooling": "max", "lab_seed": 7},
            ("lab_recall", "lab_spearman", "sweep_spearman"),
            marks=RARE,
        ),
        pytest.param(
            "compare-runs",
            {"model": BERT, "compare_figure": "similarities", "runs": ("m.2.mean", "m.1.max")},
            ("compare_similarities",),
            marks=RARE,
        ),
        pytest.param(
            "compare-models",
            {"model": BERT, "sentences": RIVER, "compared_models": (DEBERTA,), "compare_measured": True},
            ("compare_depth", "compare_cka"),
            marks=RARE,
        ),
        pytest.param("disagreement", {"model": BERT, "disagreement_queries": 5}, ("disagreement",), marks=RARE),
        pytest.param(
            "learnt-ranking",
            {"model": BERT, "learnt_layer": 2, "learnt_pooling": "mean", "learnt_c": "1", "learnt_queries": 20},
            ("learnt_rankings", "learnt_precision"),
            marks=RARE,
        ),
        pytest.param("hits", {"compare_with": "fused", "hybrid_with": ("maxsim",)}, ("hits_1",), marks=RARE),
        pytest.param("hits", {"compare_with": "splade", "model": SPARSE}, ("hits_1",), marks=RARE),
        pytest.param(
            "hits",
            {"why": 3, "compare_with": "maxsim", "why_by": "second", "model": MULTI},
            ("trained_matrix",),
            marks=RARE,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_command_gives_the_numbers_on_screen(
    open_page: Open, tiny_folder: Folder, tmp_path: Path, view: str, settings: Mapping[str, Any], keys: tuple[str, ...]
) -> None:
    def folder(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(folder, value))
        if not isinstance(value, str) or not value.startswith(TINY):
            return value
        return str(SAVED[value](tmp_path) if value in SAVED else tiny_folder(value.removeprefix(TINY).strip()))

    app = opened(open_page, view, {name: folder(value) for name, value in settings.items()})
    for key in keys:
        *_, address = asked(app, key)
        (found,) = numbers_at(address, key)["figures"]
        same_table(found, on_screen(app, key, found["columns"]))


def test_the_process_prints_what_is_drawn(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way, with a text that a shell would read in its own way, also where the server asks for a login."""
    app = opened(open_page, "important-words", {"sentences": ("It's a “dog” & a $cat.", "Cats; dogs?")})
    monkeypatch.setenv(operator_settings.LOGIN.variable, "1")
    found = json.loads(run("numbers", *asked(app, "deletion_curves")).stdout)
    assert (found["view"], len(found["figures"])) == ("important-words", 1)
    assert found["settings"]["s"] == ["It's a “dog” & a $cat.", "Cats; dogs?"]
    (shown,) = found["figures"]
    assert shown["title"] == "Most important first, layer 6, mean"
    assert shown["finding"].startswith("Leave one out finds the words of this pair best: “cat” (A)")
    curves = y(app, "deletion_curves")[: len(shown["rows"])]
    for curve in curves:
        assert any(np.allclose(curve, [row[place] for row in shown["rows"]], atol=EQUAL) for place in (1, 3, 5, 7, 9))


def test_a_figure_whose_work_a_person_begins(open_page: Open, tiny_folder: Folder) -> None:
    address = f"/laboratory?v=learnt-ranking&m={tiny_folder('bert')}&lq=20"
    (found,) = numbers_at(address, "learnt_by_layer")["figures"]
    assert [row[0] for row in found["rows"]] == [0, 1, 2, 3]


OWN = {"typed_query": "the island of cats", "right_row": 0}  # for a query of one's own in "Failed queries"


@pytest.mark.rare
def test_a_corpus_of_ones_own_is_read_from_its_file(open_page: Open, corpus: str) -> None:
    """The column that a person has chosen is an option of the command; not where a view alone could read a corpus."""
    app = opened(open_page, "score-split", {"corpus": corpus})
    assert "corpus" not in asked(app, "context_layers")[-1]
    app = at_rest(opened(open_page, "failed-search", {"corpus": corpus, **OWN}).run())
    arguments = asked(app, "hubness", "--corpus", "your-file.csv", "--text-column", "sentence")
    (found,) = json.loads(run("numbers", *arguments).stdout)["figures"]
    same_table(found, on_screen(app, "hubness", found["columns"]))


def test_texts_behind_their_titles_are_so_for_the_command_too(open_page: Open, tmp_path: Path) -> None:
    """A column that nobody has chosen is not named: its texts would lose their titles."""
    file = tmp_path / "own.csv"
    texts = ("an island of cats", "a river of fish", "the bank of a river", "a house by the sea")
    file.write_text("_id,title,text\n" + "".join(f"{row},Part {row % 2},{text}\n" for row, text in enumerate(texts)))
    read = read_corpus(file, file.name)
    assert read.texts[0] == "Part 0 an island of cats"
    caching.corpora().put(current.key_of(read), read)
    app = at_rest(opened(open_page, "failed-search", {"corpus": current.key_of(read), **OWN}).run())
    *_, address = asked(app, "hubness", "--corpus", "own.csv")
    of_corpus = {"paths": [str(file)], "encoding": None, "column": None, "dialect": ""}
    (found,) = numbers_at(address, "hubness", of_corpus)["figures"]
    same_table(found, on_screen(app, "hubness", found["columns"]))


def test_a_file_for_a_view_that_searches_none_is_refused(tmp_path: Path) -> None:
    done = run("numbers", "--corpus", str(tmp_path / "own.csv"), "/text?v=pieces")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("The view “pieces” searches no corpus.")


@pytest.mark.parametrize(
    "option", [("--text-column", "text"), ("--encoding", "latin-1"), ("--separator", "tab"), ("--no-header",)]
)
def test_how_a_file_is_read_is_refused_where_no_file_is_given(option: tuple[str, ...]) -> None:
    done = run("numbers", *option, "/text?v=pieces")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{option[0]} is given without --corpus.")


def test_a_session_that_no_address_holds_says_so(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a figure reads rows that a person has pasted, and for texts too long."""
    pasted = read_corpus(b"sentence\nan island of cats\na river of fish\n", "my pasted rows.csv")
    caching.corpora().put(current.key_of(pasted), pasted)
    app = at_rest(opened(open_page, "failed-search", {"corpus": current.key_of(pasted), **OWN}).run())
    assert "they come from a file of this session" in codes(app)["hubness"].code.text
    assert "python" not in codes(app)["hubness"].code.text
    monkeypatch.setattr(state, "ADDRESS_LIMIT", 60)
    app = opened(open_page, "important-words", PAIR)
    assert "the texts are too long" in codes(app)["word_scores"].code.text


@pytest.mark.parametrize(
    ("address", "key", "said"),
    [
        ("/meaning?v=nothing", "", r"There is no view “nothing”"),
        ("http://[x/meaning?v=score-split", "", r"This is no address: Invalid IPv6 URL\."),
        ("/nowhere", "", r"There is no view “nowhere”"),
        ("", "x", r"The view “home” shows no figure “x”|“home” cannot be drawn"),
        ("/meaning?v=score-split&l=-1", "", r"value for the layer \(“l=-1”\) is not valid"),
        ("/meaning?v=score-split&zz=1", "", r"has no setting “zz”"),
        ("/meaning?v=score-split&zip=abc", "", r"long texts of the address are damaged"),
        ("/meaning?v=score-split&l=99", "", r"another value for layer"),
        ("/search?v=hits&corpus=" + 32 * "0", "", r"another value for corpus"),
        (
            "https://x.org/base/meaning?v=important-words",
            "hits_0",
            r"shows no figure “hits_0”\. It shows .*word_scores",
        ),
    ],
)
def test_what_cannot_be_shown_is_refused(address: str, key: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        numbers_at(address, key)


def test_a_refusal_is_one_line_with_status_2() -> None:
    done = run("numbers", "/meaning?v=nothing")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("There is no view “nothing”.")


def test_an_address_of_an_older_form_is_that_of_today() -> None:
    found = numbers_at("/why?view=methods&s=A+dog.+It+runs.&s=A+puppy.", "word_scores")
    assert found["view"] == "important-words"


def test_packed_texts_of_both_forms_are_read_and_a_visible_one_counts_more() -> None:
    texts = {"q": ["bank"], "s": ["A long text.", "Another."], "m": ["other"]}
    now = {table.SETTING["vocabulary_query"].short: texts["q"], "s": texts["s"], "m": texts["m"]}
    for address, packed in (("/text?v=vocabulary&zip=", now), ("/tokens?view=vocabulary&z=", texts)):
        view, settings = drawn_numbers._read(f"{address}{packing.pack(packed)}&m=embedded")
        assert view == "vocabulary"
        assert settings == {"vocabulary_query": "bank", "sentences": ("A long text.", "Another."), "model": "embedded"}
    with pytest.raises(InputError, match="damaged"):
        drawn_numbers._read("/tokens?view=vocabulary&z=abc")
