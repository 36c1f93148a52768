"""The commands that figures show give the numbers on screen."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.command_line import program
from components.retrieval.corpora.corpus import read_corpus
from components.shown_code.code import Command
from dashboard import caching
from dashboard.corpora import current
from tests.components.command_line.in_process import run
from tests.dashboard.code.shown import SENTENCES, codes, figure, numbers, same, y, z
from tests.support.pages import Open, at_rest, texts
from tests.support.places import ROOT


def commands(app: AppTest, key: str) -> list[Sequence[str]]:
    """The arguments of the commands of a figure, as its text has them."""
    code = codes(app)[key].code
    assert isinstance(code, Command)
    lines = [line for line in code.text.splitlines() if line.startswith("python")]
    assert len(lines) == len(code.commands) > 0
    return [shlex.split(line)[3:] for line in lines]


def result(app: AppTest, key: str) -> dict[str, Any]:
    """What the last command of a figure prints, after those before it."""
    for command in commands(app, key):
        done = run(*command)
        assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ({"l": "4"}, "split_tokens"),
        ({"by": "words", "steps": "4", "sa": "1", "sb": "3"}, "split_words"),
        ({"by": "blocks", "l": "3"}, "split_blocks"),
    ],
)
def test_splits(open_page: Open, address: dict[str, str], key: str) -> None:
    app = at_rest(open_page("why", s=SENTENCES, **address))
    found, shown = np.array(result(app, key)["contributions"]), z(app, key)
    own = {"split_tokens": slice(None), "split_words": slice(1, -1), "split_blocks": slice(1, None)}[key]
    columns = {"split_tokens": slice(None), "split_words": slice(1, -1), "split_blocks": slice(1, None)}[key]
    same(found[own, columns], shown, 1e-4)


def test_every_layer_and_pooling_and_a_search(open_page: Open, corpus: str, tmp_path: Path) -> None:
    app = at_rest(open_page("evaluate", corpus=corpus, by="mrr", l="3", pool="max", len="30"))
    found = [run_of["mrr"] for run_of in result(app, "grid_figure")["runs"]]
    shown = np.array(y(app, "grid_figure")[:-1])  # without the ring around the chosen one
    same(np.sort(found), np.sort(shown.ravel()), 1e-2)  # in per cent with two decimals
    app = at_rest(open_page("search", corpus=corpus, q="a dog saved a child", k="4", l="5", pool="max"))
    for command in commands(app, "spread_0"):
        name, *arguments = command
        done = run(name, *(["--json", "-"] if name == "search" else []), *arguments)
        assert done.returncode == 0, done.stderr
    scores = [hit["score"] for hit in json.loads(done.stdout)["results"]]
    same(scores[:4], figure(app, "spread_0")["data"][1]["x"], 1e-4)
    assert len(scores) == numbers(figure(app, "spread_0")["data"][0]["y"]).sum()


def test_a_diagnosis_searches_all_texts_of_a_file_whatever_part_they_are_of(
    open_page: Open, tiny_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most rows have no query; the command alone would take the test rows, and leave out the other texts."""
    demo, rows = current.demo(), []
    for row, (text, query) in enumerate(zip(demo.texts[:100], demo.columns["compressed"], strict=False)):
        asked = "" if row >= 40 else text[: 9 * len(text) // 10] if row % 2 else query
        rows.append({"sentence": text, "question": asked, "split": "train" if row % 4 else "test"})
    file = tmp_path / "mine.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    uploaded = read_corpus(file, file.name, "sentence")
    caching.corpora().put(current.key_of(uploaded), uploaded)
    address = {"corpus": current.key_of(uploaded), "col": "question", "m": str(tiny_folder("bert")), "seed": "3"}
    app = at_rest(open_page("diagnose", v="what-helps", **address))
    found = result(app, "remedies")
    assert found["n"] == 40
    assert f"{found['failed']} of 40 queries fail" in texts(app)
    drawn = {trace["name"]: trace["x"] for trace in figure(app, "remedies")["data"] if trace["type"] == "bar"}
    for name, sign in (("repaired", 1), ("harmed", -1)):
        assert [sign * int(value) for value in drawn[name]] == [remedy[name] for remedy in found["remedies"]]
        assert [sign * int(value) for value in drawn[f"sham, {name}"]] == [
            remedy["control"][name] for remedy in found["remedies"]
        ]
    # With the queries of the test rows alone, all texts are searched all the same.
    columns = ("--columns", "anchor=question,positive=sentence")
    few = run("diagnose", file.name, "--model", address["m"], *columns, "--remedies", "none", "--json", "-")
    assert json.loads(few.stdout)["n"] == 10
    assert "not used as queries, which are searched too: 90." in few.stderr


def test_commands_of_other_pages_are_commands(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their arguments are those of the program, and a file that is included is there."""
    monkeypatch.chdir(ROOT)
    for page, address, key in (
        ("attention", {"view": "mask", "mp": "2"}, "guess"),
        ("training", {"v": "training-objective", "src": "demo:nli", "obj": "softmax"}, "ablation"),
        ("evaluate", {"v": "sentence-similarity"}, "sts_curves"),
    ):
        app = at_rest(open_page(page, s=SENTENCES, **address))
        for command in commands(app, key):
            options = program._parser().parse_args(command)
            assert options.run
            assert all(Path(part).exists() for part in command if part.startswith("assets/"))
