"""`diagnose` and `evaluate --against`: the shape of the result, one line for bad input, and the numbers of `evaluate`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from components.command_line.commands import diagnose
from components.model.backend import Backend
from components.retrieval.evaluation.chance.regression import compared
from components.retrieval.evaluation.run_record import read_runs, write_runs
from components.retrieval.failures.remedies import USUAL, folds, kinds
from components.retrieval.failures.remedies.present import present
from components.retrieval.failures.vocabulary import CorpusWords
from tests.components.command_line.in_process import run
from tests.components.retrieval.failures import planted
from tests.support import judged_collections, saved_models, tiny
from tests.support.closeness import assert_close

COUNT = 80
TEXTS = planted.demo_texts(COUNT)
# A third of the queries are the text itself, which even a random model finds.
QUERIES = [text if row % 3 == 0 else planted.own_words(text) for row, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("diagnose") / "pairs.jsonl"
    rows = [{"sentence": text, "compressed": query} for text, query in zip(TEXTS, QUERIES, strict=True)]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.fixture(scope="module")
def model(tiny_folder: Callable[[str], Path]) -> str:
    return str(tiny_folder("bert"))


def result_of(*arguments: str) -> Any:
    done = run(*arguments, "--json", "-")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_result_has_the_shape_of_the_design(pairs: Path, model: str, tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    found = result_of("diagnose", str(pairs), "--model", model, "--report", str(report), "--seed", "3")
    assert list(found) == [
        *("rows", "documents", "n", "failed", "now", "traits", "columns", "remedies", "advice", "failures")
    ]
    assert (found["rows"], found["documents"], found["columns"]) == (COUNT, COUNT, [])
    assert found["n"] == COUNT
    assert 0 < found["failed"] < COUNT
    for trait in found["traits"]:
        assert list(trait) == ["name", "share_of_failed", "share_of_found", "low", "high", "named"]
    assert [remedy["name"] for remedy in found["remedies"]] == list(USUAL)
    for remedy in found["remedies"]:
        assert list(remedy) == [
            *("name", "chosen", "repaired", "harmed", "repaired_by_trait", "recall@1", "low", "high"),
            *("seconds", "milliseconds", "bytes_per_text", "bytes_once", "needs", "control"),
        ]
        assert list(remedy["repaired_by_trait"]) == [trait["name"] for trait in found["traits"] if trait["named"]]
        assert all(0 <= count <= remedy["repaired"] for count in remedy["repaired_by_trait"].values())
        assert len(remedy["chosen"]) == 2
        assert any(remedy["chosen"]) or remedy["repaired"] == remedy["harmed"] == 0
        assert remedy["needs"] == kinds.NEEDS[remedy["name"]]
        assert list(remedy["control"]) == ["repaired", "harmed"]
        change = remedy["repaired"] - remedy["harmed"]
        assert_close(remedy["recall@1"], round(100 * (COUNT - found["failed"] + change) / COUNT, 2))
        assert remedy["low"] <= 100 * change / COUNT <= remedy["high"]
    # Vectors of 32 numbers in float32; what is kept beside them adds to that.
    assert found["now"]["bytes_per_text"] == 4 * 32
    sizes = {remedy["name"]: remedy["bytes_per_text"] for remedy in found["remedies"] if remedy["milliseconds"]}
    assert set(sizes) >= {"prompt", "hybrid", "maxsim", "layer"}
    assert sizes["prompt"] == sizes["layer"] == 4 * 32
    tokens = Backend.load(model).own_token_vectors(TEXTS, max_length=None, role="document")
    assert sizes["maxsim"] == round(4 * 32 * (1 + np.mean([len(own) for own in tokens])))
    assert sizes["hybrid"] > 4 * 32
    assert min(found["now"]["milliseconds"], *(remedy["milliseconds"] or 1 for remedy in found["remedies"])) > 0
    assert found["advice"]
    # Each failed query with its rank and the two texts, as plain cosines have them.
    assert len(found["failures"]) == found["failed"]
    ranks = [failure["rank"] for failure in found["failures"]]
    assert ranks == sorted(ranks, reverse=True)
    assert_close(found["now"]["mrr"], round(100 * (sum(1 / rank for rank in ranks) + COUNT - len(ranks)) / COUNT, 2))
    vectors = Backend.load(model).embed([*QUERIES, *TEXTS])
    queries, documents = vectors[-1, 0].astype(np.float64).reshape(2, COUNT, -1)
    cosines = queries @ documents.T / np.linalg.norm(queries, axis=1)[:, None] / np.linalg.norm(documents, axis=1)
    for failure in found["failures"]:
        number = QUERIES.index(failure["query"])
        assert failure["right_text"] == TEXTS[number]
        assert failure["rank"] == 1 + int((cosines[number] > cosines[number, number]).sum())
        assert failure["rival"] == TEXTS[int(np.argmax(np.where(np.arange(COUNT) == number, -1, cosines[number])))]
    text = report.read_text()
    assert text.count("\n| ") > found["failed"]
    assert "## The failed queries" in text
    assert text.startswith("# Diagnosis of pairs.jsonl\n\n**")
    assert found["advice"] in text
    assert all(f"| {kinds.TITLES[name]} |" in text for name in USUAL)
    again = result_of("diagnose", str(pairs), "--model", model, "--seed", "3")
    for one in (found, again):
        for measured in (one["now"], *one["remedies"]):
            measured.pop("seconds", None)
            del measured["milliseconds"]
    assert again == found


def test_other_models_are_remedies_with_what_they_cost(pairs: Path, model: str, tmp_path: Path) -> None:
    """A cross-encoder of one's own, and a model whose vectors are shorter than the hidden states from which they are made."""
    scorer = saved_models.save_cross_encoder(tmp_path, "bert")
    other = tiny.publish(tiny.save_tiny(tmp_path / "other", seed=4), tiny.pooling_module(), tiny.dense_module(32, 12))
    arguments = ("--cross-encoder", str(scorer), "--other-model", str(other), "--remedies", "cross-encoder,model")
    found = result_of("diagnose", str(pairs), "--model", model, *arguments)
    reranked, replaced = found["remedies"]
    assert [(each["name"], each["needs"]) for each in found["remedies"]] == [
        ("cross-encoder", "a second model"),
        ("model", "an index again, by another model"),
    ]
    assert (reranked["bytes_per_text"], replaced["bytes_per_text"]) == (4 * 32, 4 * 12)
    for each in found["remedies"]:
        assert each["milliseconds"] > 0
        assert 0 <= each["control"]["repaired"] <= found["failed"]
    # The other model by itself: its prompts and its layers, whose vectors have another length.
    alone = result_of("diagnose", str(pairs), "--model", str(other), "--remedies", "prompt,layer")
    assert alone["now"]["bytes_per_text"] == 4 * 12  # as long as its own, whatever stands beside it in one array
    assert [each["name"] for each in alone["remedies"]] == ["prompt", "layer"]


def test_a_folder_with_graded_relevance_is_diagnosed_as_its_pairs_are(pairs: Path, model: str, tmp_path: Path) -> None:
    """A grade of 1 is a right text too, 0 is none; documents that nobody asks for are searched."""
    folder, joined = tmp_path / "graded", tmp_path / "pairs.jsonl"
    judged_collections.write(
        folder,
        {f"d{row}": ("", text) for row, text in enumerate([*TEXTS, "Nobody asks for this text."])},
        {f"q{row}": query for row, query in enumerate(QUERIES)},
        [
            (f"q{row}", f"d{(row + more) % COUNT}", grade)
            for row in range(COUNT)
            for more, grade in enumerate((2, row % 2))
        ],
    )
    rows = [(row, row) for row in range(COUNT)] + [(row, (row + 1) % COUNT) for row in range(1, COUNT, 2)]
    joined.write_text(
        "\n".join(json.dumps({"sentence": TEXTS[text], "compressed": QUERIES[row]}) for row, text in rows)
    )
    arguments = ("--model", model, "--remedies", "none")
    found, expected = (result_of("diagnose", str(path), *arguments) for path in (folder, joined))
    several = {trait["name"]: trait["share_of_found"] for trait in found["traits"]}["several right texts"]
    assert found["n"] == COUNT
    assert 0 < several < 1
    assert {trait["name"] for trait in found["traits"]} == {trait["name"] for trait in expected["traits"]}
    assert abs(found["failed"] - expected["failed"]) <= 2  # one text more is searched
    assert found["failed"] < result_of("diagnose", str(pairs), *arguments)["failed"]
    done = run("diagnose", str(folder), "--encoding", "utf-8", "--model", model)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    done = run("diagnose", str(tmp_path), "--model", model)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_few_found_queries_are_said_and_get_no_advice(tmp_path: Path, model: str) -> None:
    path = tmp_path / "failures.jsonl"
    rows = [{"sentence": text, "compressed": "nothing of it"[: 3 + row]} for row, text in enumerate(TEXTS[:10])]
    path.write_text("\n".join(map(json.dumps, rows)))
    done = run("diagnose", str(path), "--model", model, "--remedies", "hybrid", "--json", "-")
    found = json.loads(done.stdout)
    said = "Too few failed queries (7) and too few found ones (1) to judge: it takes 30 of each."
    assert found["advice"] == said
    assert said in done.stderr
    assert {(trait["low"], trait["high"], trait["named"]) for trait in found["traits"]} == {(None, None, False)}
    report = tmp_path / "report.md"
    spoken = run("diagnose", str(path), "--model", model, "--remedies", "prompt", "--report", str(report))
    assert (spoken.returncode, spoken.stdout.count(said)) == (0, 1)
    assert report.read_text(encoding="utf-8").count(said) == 1
    assert re.search(r"a prompt: 100%\S* 4/4", spoken.stderr.replace("|", ""))


def test_remedies_are_the_runs_of_evaluate(pairs: Path, model: str) -> None:
    """Every layer and pooling, MaxSim, and the present ranks, over all queries and on each half."""
    backend = Backend.load(model)
    arguments = ("evaluate", str(pairs), "--model", model, "--layers", "all", "--poolings", "all", "--max-sim", "50")
    runs = result_of(*arguments)["runs"]
    of_pairs = planted.pairs_of(TEXTS, QUERIES)
    options = [backend.embed_options(precision="float32", role=role) for role in ("query", "document")]
    now = present(backend, of_pairs, options[0], options[1], every_cell=True)
    setting = kinds.RemedyInput(now, folds.halves(QUERIES), CorpusWords(TEXTS))
    layer, max_sim = kinds.measure("layer", setting), kinds.measure("maxsim", setting)
    mine = {
        now.cell: now.now,
        **{cell: layer.options[f"layer {cell[0]}, {cell[1]}"] for cell in now.vectors if cell != now.cell},
    }
    plain = [run for run in runs if "max_sim" not in run]
    assert len(plain) == len(mine) > 6
    for one in plain:
        ranks = mine[one["layer"], one["pooling"]]
        assert_close(round(100 * float((ranks == 1).mean()), 2), one["recall"]["1"])
        assert_close(round(100 * float((1 / ranks).mean()), 2), one["mrr"])
    (reranked,) = [one for one in runs if "max_sim" in one and (one["layer"], one["pooling"]) == now.cell]
    ranks = max_sim.options["share 1"]
    assert_close(round(100 * float((ranks == 1).mean()), 2), reranked["recall"]["1"])
    assert_close(round(100 * float((1 / ranks).mean()), 2), reranked["mrr"])
    result = folds.measured(now.now, layer.options, setting.first)
    for chosen, measured_on in zip(result.chosen, (~setting.first, setting.first), strict=True):
        expected = now.now if chosen == "" else layer.options[chosen]
        assert np.array_equal(result.ranks[measured_on], expected[measured_on])


def test_both_commands_search_the_same_texts_and_a_column_is_compared(model: str, tmp_path: Path) -> None:
    """All texts by default, the right ones alone with --texts right; a query on several rows counts once."""
    path = tmp_path / "team.jsonl"
    teams = ["red" if query == text else "blue" for query, text in zip(QUERIES, TEXTS, strict=True)]
    rows = [
        {"sentence": text, "compressed": "" if row >= 70 else query, "team": team}
        for row, (text, query, team) in enumerate(zip(TEXTS, QUERIES, teams, strict=True))
    ]
    path.write_text("\n".join(map(json.dumps, [*rows, rows[0], rows[1]])))
    failed = {}
    for chosen, count in ((), COUNT), (("--texts", "right"), 70):
        arguments = (str(path), *chosen, "--model", model)
        evaluated = result_of("evaluate", *arguments)
        found = result_of("diagnose", *arguments, "--remedies", "none")
        assert (evaluated["documents"], found["documents"], found["n"], found["rows"]) == (count, count, 70, 72)
        assert_close(evaluated["runs"][0]["recall"]["1"], found["now"]["recall@1"])
        failed[count] = found["failed"]
        named = {each["name"]: each for each in found["columns"]}
        assert list(named) == ["team=blue", "team=red"]
        assert named["team=red"]["failed"] + named["team=red"]["found"] == sum(team == "red" for team in teams[:70])
        assert sum(each["failed"] for each in named.values()) == found["failed"]
    assert failed[COUNT] >= failed[70]
    assert result_of("evaluate", str(path), "--every-text", "--model", model)["documents"] == COUNT
    spoken = run("evaluate", str(path), "--model", model)
    assert "72 rows, 70 different queries: each counts once." in spoken.stderr
    assert "Columns left out: team" in spoken.stderr


def test_the_tables_of_the_terminal_have_their_numbers_in_their_columns(capsys: pytest.CaptureFixture[str]) -> None:
    failure = SimpleNamespace(rank=1_234, query="a query", rival="another text")
    share = SimpleNamespace(
        name="long",
        failed=3,
        found=1,
        share_of_failed=0.75,
        share_of_found=0.125,
        difference=None,
        is_named=True,
        held=None,
    )
    change = SimpleNamespace(low=0.015, high=0.09)
    row = SimpleNamespace(
        title="a prompt",
        result=SimpleNamespace(repaired=9, harmed=2, recall=0.775, change=change),
        cost=None,
        control=(1, 3),
        needs_with_size="needs nothing",
        chosen="both",
    )
    found: Any = SimpleNamespace(
        failed=4, now=np.array([1, 1, 1, 1, 1, 1, 2, 4, 2, 4]), remark="", failures=[failure] * 12, shares=[share],
        values=[], rows=[row], cost=None, advice=SimpleNamespace(sentence="Take the prompt."),
    )  # fmt: skip
    pairs: Any = SimpleNamespace(documents=range(7), others=2)
    diagnose._write(SimpleNamespace(json=None), found, pairs)  # type: ignore[arg-type]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "4 of 10 queries fail: Recall@1 is 60.0 %, MRR 75.0 %. 7 texts are searched, 2 of them right for no query."
    )
    assert lines[1].split() == ["rank", "1,234", "a", "query", "first:", "another", "text"]
    assert lines[11].strip() == "and 2 more, in --report and --json"
    said = {line.split("  ")[0]: " ".join(line.split()) for line in lines}
    assert said["trait"] == "trait failed found 95 % of the difference"
    assert said["long"] == "long 75.0 % 12.5 % named"
    assert said["remedy"].startswith("remedy repaired harmed R@1 ms bytes")
    assert said["as it is now"] == "as it is now 60.00"
    assert said["a prompt"] == "a prompt 9 2 77.50 1.5 to 9.0, repaired 1, harmed 3, needs nothing; chosen: both"
    assert lines[-1] == "Take the prompt."


def test_the_terminal_says_what_a_column_is_and_what_each_half_chose(model: str, tmp_path: Path) -> None:
    path = tmp_path / "team.jsonl"
    rows = [
        {"sentence": text, "compressed": text if row % 2 else planted.own_words(text), "team": ("blue", "red")[row % 2]}
        for row, text in enumerate(TEXTS)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    spoken = run("diagnose", str(path), "--model", model, "--remedies", "prompt")
    assert "Columns left out" not in spoken.stderr
    assert "Compared with what fails, and no part of a query or text: team." in spoken.stderr
    assert "Queries with team=blue fail more often by more than chance" in spoken.stdout
    assert "A value is no cause: see which traits it comes with." in spoken.stdout
    assert re.search(r"^a prompt .* nothing; chosen: \S", spoken.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("none.jsonl",), "no file"),
        (("{}", "--remedies", "magic"), "no remedy 'magic'"),
        (("{}", "--remedies", "model"), "--other-model"),
        (("{}", "--remedies", "hybrid", "--cross-encoder", "x"), "does not name cross-encoder"),
        (("{}", "--label", "yes"), "--label is given without"),
        (("{}", "--abbreviations", "kb"), "abbreviations 'kb' are not valid"),
        (("{}", "--seed", "-1"), "The seed is -1"),
        (("{}", "--report", "/no/such/folder/x.md"), "could not be written"),
        (("{}", "--columns", "anchor"), "not valid"),
        (("{}", "--query-field", "title"), "They choose the fields of a folder"),
    ],
)
def test_bad_input_is_one_line(pairs: Path, arguments: tuple[str, ...], said: str) -> None:
    done = run("diagnose", *(argument.format(pairs) for argument in arguments))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr


def test_several_layers_are_refused(pairs: Path, model: str) -> None:
    done = run("diagnose", str(pairs), "--model", model, "--layers", "all")
    assert (done.returncode, done.stderr.splitlines()[-1][:40]) == (2, "Several layers or poolings were given. T")


def test_a_recorded_run_is_kept_against_later_ones(pairs: Path, model: str, tmp_path: Path) -> None:
    record = tmp_path / "run.json"
    evaluate = ("evaluate", str(pairs), "--model", model)
    first = result_of(*evaluate, "--record", str(record))
    (kept,) = read_runs(record.read_bytes(), "run.json")
    assert_close(round(100 * float((np.asarray(kept.ranks) == 1).mean()), 2), first["runs"][0]["recall"]["1"])
    same = run(*evaluate, "--against", str(record), "--json", "-")
    assert same.returncode == 0, same.stderr
    found = json.loads(same.stdout)["against"]
    assert (found["worse"], found["recall@1"]["gained"], found["recall@1"]["lost"]) == (False, 0, 0)
    assert "not significantly worse" in same.stderr
    # [CLS] at layer 0 is the same for all texts: it finds nothing.
    worse = run(*evaluate, "--layer", "0", "--pooling", "cls", "--against", str(record), "--json", "-")
    assert worse.returncode == 1
    found = json.loads(worse.stdout)["against"]
    assert found["worse"] is True
    assert found["recall@1"]["now"] == 0
    assert found["recall@1"]["p"] < 0.05


def test_a_record_of_the_right_texts_says_with_which_texts_it_is_compared(
    pairs: Path, model: str, tmp_path: Path
) -> None:
    """As `evaluate` recorded it while these were the default."""
    record, some = tmp_path / "right.json", tmp_path / "some.jsonl"
    some.write_text(pairs.read_text() + "\n" + json.dumps({"sentence": "A text that nobody asks for."}))
    of_right = ("evaluate", str(some), "--model", model, "--texts", "right")
    assert run(*of_right, "--record", str(record)).returncode == 0
    done = run("evaluate", str(some), "--model", model, "--against", str(record))
    assert done.returncode == 2
    assert "A record from before --texts has the right texts alone: add --texts right." in done.stderr.splitlines()[-1]
    assert run(*of_right, "--against", str(record)).returncode == 0
    other = run(
        "evaluate", str(pairs), "--model", model, "--against", str(record), "--layers", "1", "--poolings", "cls"
    )
    assert "add --texts" not in other.stderr  # each text of it is right for a query


def test_what_cannot_be_compared_is_refused(pairs: Path, model: str, tmp_path: Path) -> None:
    record, other, several = tmp_path / "run.json", tmp_path / "other.jsonl", tmp_path / "several.json"
    assert run("evaluate", str(pairs), "--model", model, "--record", str(record)).returncode == 0
    other.write_text("\n".join(json.dumps({"sentence": text, "compressed": text[:9]}) for text in TEXTS[:5]))
    (kept,) = read_runs(record.read_bytes(), "run.json")
    several.write_bytes(write_runs([kept, kept]))
    cases = [
        ((str(other), "--against", str(record)), "has no run by vectors of these pairs"),
        ((str(pairs), "--against", str(tmp_path / "none.json")), "There is no file"),
        ((str(pairs), "--against", str(pairs)), "is damaged"),
        ((str(pairs), "--against", str(tmp_path)), "cannot be read: it is a pipe, a device or a folder"),
        ((str(pairs), "--against", str(record), "--layers", "all"), "several runs (all)"),
        ((str(pairs), "--record", str(tmp_path)), "it is a folder"),
        ((str(tmp_path), "--against", str(record)), "with a folder"),
        ((str(tmp_path), "--every-text"), "--texts was given with a folder."),
    ]
    for arguments, said in cases:
        done = run("evaluate", *arguments, "--model", model)
        assert (done.returncode, done.stdout, said in done.stderr.splitlines()[-1]) == (2, "", True), done.stderr
    if hasattr(os, "mkfifo"):  # nobody waits for a pipe
        os.mkfifo(tmp_path / "pipe")
        done = run("evaluate", str(pairs), "--model", model, "--against", str(tmp_path / "pipe"))
        assert (done.returncode, "cannot be read: it is a pipe" in done.stderr) == (2, True)
    done = run("evaluate", str(pairs), "--against", str(several), "--model", model)
    assert done.returncode == 2
    assert "has 2 runs of these pairs" in done.stderr


def test_worse_needs_more_than_chance() -> None:
    before = np.ones(100, np.int64)
    assert not compared(before, before).is_worse
    few = before.copy()
    few[:4] = 2
    found = compared(before, few)
    assert (found.gained, found.lost, found.is_worse) == (0, 4, False)
    many = before.copy()
    many[:8] = 2
    assert compared(before, many).is_worse
    assert not compared(many, before).is_worse
    lower = np.full(100, 5)
    assert compared(lower, lower + 40).is_worse  # by MRR alone
    with pytest.raises(ValueError, match="the same were expected"):
        compared(before, before[:5])
