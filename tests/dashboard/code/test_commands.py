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
from components.numbers import share_text
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


def printed(command: Sequence[str]) -> dict[str, Any]:
    """What a command prints as JSON."""
    done = run(*command)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def result(app: AppTest, key: str) -> dict[str, Any]:
    """What the last command of a figure prints, after those before it."""
    *before, last = commands(app, key)
    for command in before:
        assert run(*command).returncode == 0
    return printed(last)


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
    results = json.loads(done.stdout)["results"]
    scores = [hit["score"] for hit in results]
    different = list({hit["text"]: hit["score"] for hit in reversed(results)}.values())[::-1]  # the page shows these
    same(different[:4], figure(app, "spread_0")["data"][1]["x"], 1e-4)
    assert len(scores) == numbers(figure(app, "spread_0")["data"][0]["y"]).sum()


def test_the_score_of_a_hit_and_the_words_of_a_failed_query(open_page: Open, corpus: str) -> None:
    """The command splits by tokens, here one for each word; the page has one sum for special tokens."""
    app = at_rest(open_page("search", corpus=corpus, q="a dog saved a child", why="3", l="4", pool="mean"))
    (hits,) = (json.loads(each.proto.json) for each in app.get("bidi_component") if "hits" in each.proto.component_name)
    (score,) = (float(row["score"]) for row in hits["rows"] if row["index"] == 3)
    same(np.sum(result(app, "why_split")["contributions"]), score, 1e-3)  # three decimals
    app = at_rest(open_page("diagnose", v="failed-search", corpus=corpus, dq="the island of cats", dr="0"))
    drawn = {item.get("name"): item["x"] for item in figure(app, "why_words")["data"]}
    for name, command in zip(("right text", "rival"), commands(app, "why_words"), strict=True):
        parts = np.sum(printed(command)["contributions"], axis=1)
        same([*parts[1:-1], parts[0] + parts[-1]], drawn[name], 1e-5)


@pytest.mark.parametrize("kind", ["bm25", "jm"])
def test_a_ranking_by_words(open_page: Open, corpus: str, kind: str) -> None:
    app = at_rest(open_page("search", corpus=corpus, q="a dog saved a child", vs=kind, k="3", why="3", wb="second"))
    _, by_words = (
        json.loads(each.proto.json) for each in app.get("bidi_component") if "hits" in each.proto.component_name
    )
    rows = {int(row["index"]): float(row["score"].replace("−", "-")) for row in by_words["rows"]}
    found = {hit["index"]: hit["terms"][1] for hit in result(app, "spread_1")["results"]}
    for row, score in rows.items():
        same(found[row]["score"], score, 1e-2)
    drawn = sorted(np.concatenate([numbers(item["x"]) for item in figure(app, "why_split")["data"]]))
    if kind == "bm25":
        parts = sorted(value for _, value in found[3]["words"] if value)
        assert all(np.abs(np.array(drawn) - value).min() < 1e-4 for value in parts)
        assert sum(parts) == pytest.approx(found[3]["score"], abs=1e-4)


def test_ranks_of_failed_queries(open_page: Open, corpus: str, tmp_path: Path) -> None:
    app = at_rest(open_page("why", v="failed-search", corpus=corpus, l="1", pool="cls"))
    app.session_state["data_failed_queries_all"] = True
    app = at_rest(app.run())
    (shown,) = (item.value for item in app.dataframe if "lead of the rival" in item.value)
    assert len(shown)
    printed(*commands(app, "failed_queries_all"))
    (of_run,) = json.loads((tmp_path / "ranks.json").read_text())["runs"]
    assert sorted(rank for rank in of_run["ranks"] if rank > 1) == sorted(shown["rank"])


def test_guesses_in_two_contexts(open_page: Open) -> None:
    """At a typed mask, and for a word that is hidden."""
    texts = ["The dog [MASK] at the moon.", "The dog sang a song."]
    app = at_rest(open_page("attention", s=texts, v="two-contexts", t=["3", "3"]))
    (drawn,) = (
        json.loads(each.proto.json) for each in app.get("bidi_component") if "guess" in each.proto.component_name
    )
    for panel, command in zip(drawn["panels"], commands(app, "guess_two"), strict=True):
        at = {"position": 3, "layer": 6}
        (found,) = (each for each in printed(command)["predictions"] if at.items() <= each.items())
        assert [each["piece"] for each in found["pieces"]] == [row["piece"] for row in panel["rows"]]
        same([each["probability"] for each in found["pieces"]], [row["share"] for row in panel["rows"]], 1e-5)


def test_words_in_the_fillings_of_a_template(open_page: Open) -> None:
    """The commands go as far as the words that are compared."""
    app = at_rest(open_page("attention", v="two-contexts", s=["a"], gc="template"))
    (shown,) = (item.value for item in app.table if "first guess" in item.value)
    asked = commands(app, "guess_template")
    assert len(asked) == len(shown)
    for command, (_, row) in zip(asked, shown.iterrows(), strict=True):
        (found,) = printed(command)["predictions"]
        of_piece = {each["piece"]: share_text(each["probability"]) for each in found["pieces"]}
        for word in ("she", "he", "it"):
            assert row[word].replace("\\", "") == of_piece[word]


TWO_DECIMALS = 5.1e-3  # per cent as `evaluate` and `diagnose` print it


def test_runs_side_by_side(open_page: Open, corpus: str) -> None:
    """Each command measures its run, which is the last where it measures several."""
    runs = ["m.6.mean", "m.2.max", "bm25", "fr.bm25.m.6.mean"]
    app = at_rest(open_page("evaluate", v="compare-runs", corpus=corpus, r=runs, by="mrr", am="1"))
    (shown,) = (item.value for item in app.dataframe if "p (Holm)" in item.value)
    asked = commands(app, "compare_rows")
    assert asked == commands(app, "compare_curves")
    found = [printed(command)["runs"][-1] for command in asked]
    same([item["mrr"] for item in found], shown["MRR"], TWO_DECIMALS)
    # The curves stand in the order of their colours.
    first = sorted(curve[0] for curve in y(app, "compare_curves"))
    same(sorted(item["recall"]["1"] for item in found), first, TWO_DECIMALS)


def test_graded_curves(open_page: Open, tmp_path: Path) -> None:
    corpus = (
        b'{"_id": "d1", "text": "A volcano."}\n{"_id": "d2", "text": "Rates rise."}\n{"_id": "d3", "text": "Cats."}\n'
    )
    queries = b'{"_id": "q1", "text": "volcano erupts"}\n{"_id": "q2", "text": "which animals?"}\n'
    qrels = b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td3\t1\nq2\td3\t2\n"
    (tmp_path / "qrels").mkdir()
    for name, content in (("corpus.jsonl", corpus), ("queries.jsonl", queries), ("qrels/test.tsv", qrels)):
        (tmp_path / name).write_bytes(content)
    app = open_page("evaluate", v="graded-relevance", gs="path", r=["m.6.mean", "m.2.max"])
    app.text_input(key="graded_path").set_value(str(tmp_path)).run()
    app.button(key="read_graded").click()
    app = at_rest(app.run())
    found = [printed(command)["runs"][-1]["precision_at_recall"] for command in commands(app, "graded_curve")]
    assert len(found) == 2
    same(found, y(app, "graded_curve"), TWO_DECIMALS)


def test_weights_of_words_and_vectors(open_page: Open, corpus: str) -> None:
    address = {"fig": "weights", "r": ["m.6.mean", "fr.bm25.m.6.mean"]}
    app = at_rest(open_page("evaluate", v="compare-runs", corpus=corpus, by="mrr", **address))
    (curve,) = (item for item in figure(app, "compare_weights")["data"] if item.get("name") == "by scores, weighted")
    (flat,) = (item for item in figure(app, "compare_weights")["data"] if "reciprocal" in item.get("name", ""))
    of_weights, by_ranks = commands(app, "compare_weights")[:-1], commands(app, "compare_weights")[-1]
    assert len(of_weights) == len(curve["y"])
    assert len(set(np.round(numbers(curve["y"]), 3))) > 1
    places = [0, len(of_weights) // 2, len(of_weights) - 1]
    found = [printed(of_weights[place])["runs"][-1]["mrr"] for place in places]
    same(found, numbers(curve["y"])[places], TWO_DECIMALS)
    same(printed(by_ranks)["runs"][-1]["mrr"], numbers(flat["y"])[0], TWO_DECIMALS)


def test_kinds_of_search(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    app = at_rest(open_page("evaluate", v="search-kinds"))
    bars = [item for item in figure(app, "kinds_figure")["data"] if item["type"] == "bar"]
    model = [numbers(item["y"]) for item in bars if item["name"] == bars[0]["name"]]  # of each kind
    recalls = [printed(command)["runs"][0]["recall"] for command in commands(app, "kinds_figure")]
    same([[recall[k] for k in ("1", "5", "10")] for recall in recalls], model, TWO_DECIMALS)


def test_what_helps_and_what_failed_queries_share(open_page: Open, corpus: str) -> None:
    app = at_rest(open_page("diagnose", v="what-helps", corpus=corpus, l="1", pool="cls"))
    found = printed(*commands(app, "remedies"))
    assert found["failed"] > 0
    drawn = figure(app, "remedies")["data"]
    remedies = sorted(found["remedies"], key=lambda remedy: -remedy["recall@1"])  # as the page has them
    for name, sign in (("repaired", 1), ("harmed", -1)):
        (bars,) = (item for item in drawn if item.get("name") == name)
        same([item[name] for item in remedies], sign * numbers(bars["x"]), 0)


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
    remedies = sorted(found["remedies"], key=lambda remedy: -remedy["recall@1"])  # as the page has them
    for name, sign in (("repaired", 1), ("harmed", -1)):
        assert [sign * int(value) for value in drawn[name]] == [remedy[name] for remedy in remedies]
        assert [sign * int(value) for value in drawn[f"sham, {name}"]] == [
            remedy["control"][name] for remedy in remedies
        ]
    # The list of failed queries has the ranks among all texts too.
    app = at_rest(open_page("diagnose", v="failed-search", **address))
    app.session_state["data_failed_queries_all"] = True
    app = at_rest(app.run())
    (shown,) = (item.value for item in app.dataframe if "lead of the rival" in item.value)
    assert printed(*commands(app, "failed_queries_all"))["documents"] == 100
    (of_run,) = json.loads((tmp_path / "ranks.json").read_text())["runs"]
    assert sorted(rank for rank in of_run["ranks"] if rank > 1) == sorted(shown["rank"])
    # With the queries of the test rows alone, all texts are searched all the same.
    columns = ("--columns", "anchor=question,positive=sentence")
    few = run("diagnose", file.name, "--model", address["m"], *columns, "--remedies", "none", "--json", "-")
    assert json.loads(few.stdout)["n"] == 10
    assert "100 rows read, 10 used, 90 with the text alone, 0 left out" in few.stderr
    assert "90 rows are not used for a query; their texts are searched: its split is train: 75 rows; " in few.stderr
    assert "cannot be used" not in few.stderr


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
