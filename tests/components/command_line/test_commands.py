"""The command line end to end: results, and bad input in one line; a process of its own for what only that can show."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from components import VERSION
from components.command_line.commands.operating import cache
from components.command_line.options import visible
from components.command_line.program import COMMANDS, main
from components.model.backend import Backend
from components.sizes import in_words
from tests.components.command_line.in_process import ARGUMENTS, run
from tests.support.places import ROOT

TEXTS = ["A volcano erupted near the town.", "The bank raised its rates.", "Lava reached the sea.", "A cat slept."]


SCORED = """sentence1,sentence2,score
A cat slept.,A cat was asleep.,4.5
A cat slept.,A dog barked.,1.5
The bank raised rates.,The bank increased its rates.,4.8
Lava reached the sea.,He bought a new car.,0
Rain fell.,It rained.,5
nobody scored,this,?
"""


def run_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "components", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    where = tmp_path_factory.mktemp("cli")
    (where / "news.csv").write_text("topic,text\n" + "".join(f'x,"{text}"\n' for text in TEXTS) + "bad\n")
    pairs = [{"sentence": text, "compressed": text.split()[1]} for text in TEXTS]
    (where / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in [*pairs, {"sentence": "no query"}]))
    (where / "alone.csv").write_text("sentence,other\nA text.,x\n")
    categories = "".join(f"text {number},{('cat', 'dog')[number % 2]}\n" for number in range(8))
    (where / "categories.csv").write_text(f"sentence,compressed\n{categories}")
    (where / "scored.csv").write_text(SCORED)
    (where / "unscored.csv").write_text("sentence1,sentence2\na cat,a dog\n")
    done = run_process(
        "index", str(where / "news.csv"), "--out", str(where / "idx"), "--layers", "all", "--poolings", "mean,cls",
        "--precision", "float32", "--json", str(where / "made.json"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "1 of 5 rows cannot be used and is left out: row 6 (1 field instead of 2)." in done.stderr
    assert "4/4" in done.stderr  # the bar
    return where


def test_index_says_what_it_made(folder):
    made = json.loads((folder / "made.json").read_text())
    assert made["sentences"] == 4
    assert made["layers"] == list(range(7))
    assert made["poolings"] == ["mean", "cls"]
    assert made["bad_rows"] == 1
    assert made["bytes"] > 14 * 4 * 384 * 4


def test_index_says_how_its_file_was_read(folder):
    made = json.loads((folder / "made.json").read_text())
    assert made["rows"] == {"read": 4, "refused": 1, "joined": 0, "changed": 0}
    assert made["refused_rows"] == [{"row": 6, "reason": "1 field instead of 2"}]
    assert (made["text_column"], made["text_column_reason"]) == ("text", "by its name")
    assert (made["other_columns"], made["left_out_columns"]) == (["topic"], [])


def test_a_dry_run_shows_rows_and_writes_nothing(folder, tmp_path):
    path = tmp_path / "lines.tsv"
    path.write_text('id\ttext\n007\t"Go on, he said.\n2\tInches: 55"\n3\t\n')
    done = run("index", str(path), "--dry-run", "--json", "-")
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["dry_run"] is True
    assert made["preview"][0]["written"] == '007\t"Go on, he said.'
    assert made["preview"][0]["read"] == {"text": '"Go on, he said.', "id": "007"}
    assert made["preview"][2]["refused"] == "empty"
    assert made["rows"]["read"] == 2
    assert "3 rows read, 2 used, 1 left out" in done.stderr
    assert "--text-column NAME" in done.stderr
    assert list(tmp_path.iterdir()) == [path]
    pairs = run("evaluate", str(folder / "pairs.jsonl"), "--dry-run", "--json", "-")
    assert pairs.returncode == 0, pairs.stderr
    said = json.loads(pairs.stdout)
    assert said["dry_run"] is True
    assert [row["read"]["positive"] for row in said["reading"]["preview"]] == TEXTS[:3]
    assert said["reading"]["columns"] == {"anchor": "compressed", "positive": "sentence"}
    refused = run("index", str(path))
    assert refused.returncode == 2
    assert "--dry-run" in refused.stderr


def test_search_gives_the_exact_ranking(folder, embedded):
    done = run("search", str(folder / "idx"), "a volcano erupts", "-k", "3", "--json", "-")
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)["results"]
    vectors = embedded.embed([*TEXTS, "a volcano erupts"], options=embedded.embed_options(precision="float32"))[0, 0]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit[:4] @ unit[4]
    order = np.argsort(-cosines)[:3]
    assert [hit["index"] for hit in results] == order.tolist()
    assert [hit["rank"] for hit in results] == [1, 2, 3]
    assert [hit["text"] for hit in results] == [TEXTS[at] for at in order]
    np.testing.assert_allclose([hit["score"] for hit in results], cosines[order], atol=1e-4)


@pytest.mark.parametrize("named", ["{}", "somebody/strange-model", "run:mnrl-20200101-000000-ab12"])
@pytest.mark.parametrize("command", ["search", "rerank"])
def test_an_index_from_elsewhere_loads_no_model_unless_it_is_named(tmp_path, monkeypatch, command, named):
    named = named.format(tmp_path)
    (tmp_path / "queries.txt").write_text("bank\n")
    index = SimpleNamespace(info=SimpleNamespace(model=named))
    monkeypatch.setattr("components.retrieval.index.folder.open_index", lambda folder: index)
    monkeypatch.setattr("components.model.files.hub.cached_folder", lambda repo_id: None)
    monkeypatch.setattr("components.model.backend.Backend.load", lambda *_: pytest.fail("a model was loaded"))
    done = run(command, str(tmp_path), str(tmp_path / "queries.txt"))
    assert done.returncode == 2
    assert f"Add --model {named}" in done.stderr or "There is no trained model" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.rare
@pytest.mark.usefixtures("loaded_once")
def test_search_by_other_engines_finds_the_same(folder):
    """usearch builds its graph once, with a bar; Milvus Lite keeps a file."""
    query = ("search", str(folder / "idx"), "a volcano erupts", "-k", "3", "--json", "-")
    exact = json.loads(run(*query).stdout)
    assert exact["engine"] == "exact"
    by_graph, again = (run(*query, "--engine", "usearch") for _ in range(2))
    assert by_graph.returncode == 0, by_graph.stderr
    assert "Preparing usearch: 100%" in by_graph.stderr
    assert "Preparing" not in again.stderr
    by_milvus = run(*query, "--engine", "milvus", "--address", str(folder / "vectors.db"))
    assert by_milvus.returncode == 0, by_milvus.stderr
    for done, name in ((by_graph, "usearch"), (again, "usearch"), (by_milvus, "milvus")):
        found = json.loads(done.stdout)
        assert (found["engine"], found["results"]) == (name, exact["results"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--engine", "faiss"), "The engines are exact, usearch, milvus."),
        (("--engine", "milvus"), "needs an address"),
        (("--engine", "milvus", "--address", "http://name:secret@host"), "none may hold a secret"),
        (("--engine", "usearch", "--address", "a.db"), "has no address"),
    ],
)
def test_search_refuses_other_engines(folder, arguments, said):
    done = run("search", str(folder / "idx"), "bank", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr
    assert "secret@" not in done.stderr


@pytest.mark.usefixtures("loaded_once")
def test_search_by_layer_pooling_and_dot_product_as_a_table(folder, embedded):
    done = run(
        "search", str(folder / "idx"), "bank", "-k", "1", "--layer", "3", "--pooling", "cls", "--similarity", "dot"
    )
    assert done.returncode == 0, done.stderr
    options = embedded.embed_options((3,), ("cls",), precision="float32")
    vectors = embedded.embed([*TEXTS, "bank"], options=options)[0, 0]
    scores = vectors[:4] @ vectors[4]
    rank, score, index, text = done.stdout.split(None, 3)
    assert (rank, int(index), text.strip()) == ("1", int(scores.argmax()), TEXTS[int(scores.argmax())])
    assert float(score) == pytest.approx(scores.max(), abs=1e-2)


@pytest.mark.usefixtures("loaded_once")
def test_search_says_that_scores_are_equal(folder):
    """[CLS] at layer 0 is the same vector for every sentence; at the last layer it is not."""
    done = run("search", str(folder / "idx"), "bank", "-k", "3", "--layer", "0", "--pooling", "cls", "--json", "-")
    assert "4 sentences have the same score as the last hit, and 3 of them are shown." in done.stderr
    found = json.loads(done.stdout)
    assert (found["tied_with_last"], found["tied_shown"]) == (4, 3)
    every = run("search", str(folder / "idx"), "bank", "-k", "4", "--layer", "0", "--pooling", "cls")
    assert "4 hits have the same score (ranks 1 to 4). Equal hits are in the order of the corpus" in every.stderr
    assert [hit["index"] for hit in found["results"]] == [0, 1, 2]
    done = run("search", str(folder / "idx"), "bank", "-k", "3", "--json", "-")
    assert "same score" not in done.stderr
    found = json.loads(done.stdout)
    assert (found["tied_with_last"], found["tied_shown"]) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("index", "none.txt", "--out", "{}/o"), "no file"),
        (("index", "{}/news.csv", "--out", "{}/o", "--text-column", "nope"), "no column 'nope'"),
        (("index", "{}/news.csv", "--out", "{}/o", "--layers", "0,9"), "layers 0 to 6"),
        (("index", "{}/news.csv", "--out", "{}/o", "--layers", "few"), "numbers from 0 to 6"),
        (("index", "{}/news.csv", "--out", "{}/o", "--poolings", "median"), "median"),
        (("index", "{}/news.csv", "--out", "{}/o", "--dtype", "int8"), "int8"),
        (("index", "{}/news.csv", "--out", "{}/o", "--model", "/no/such/folder"), "does not exist"),
        (("index", "{}/news.csv", "--out", "{}"), "not an index"),
        (("index", "{}/news.csv"), "--out"),
        (("search", "{}", "x"), "no manifest.json"),
        (("search", "{}/idx", "x", "-k", "0"), "k = 0"),
        (("search", "{}/idx", " "), "a query with text"),
        (("search", "{}/idx", "x", "-k", "many"), "many"),
        (("search", "{}/idx", "x", "--layer", "7"), "Layer 7"),
        (("search", "{}/idx", "x", "--pooling", "max"), "max pooling"),
        (("search", "{}/idx", "x", "--similarity", "far"), "far"),
        (("search", "{}/idx", "x", "--model", "other/model"), "made with embedded"),
        (("search", "{}/idx", "x", "--json", "/no/such/folder/x.json"), "could not be written"),
        (("evaluate", "none.jsonl"), "no file"),
        (("evaluate", "{}/news.csv"), "no column 'sentence'"),
        (("evaluate", "{}/alone.csv"), "sentence and compressed"),
        (("evaluate", "{}/pairs.jsonl", "--layers", "8"), "layers 0 to 6"),
        (("evaluate", "{}/pairs.jsonl", "--precision", "int4"), "int4"),
        (("sts", "{}/pairs.jsonl"), "no column score"),
        (("sts", "{}/scored.csv", "--poolings", "median"), "median"),
        (("sts", "{}/unscored.csv"), "no column score"),
        (("dance",), "dance"),
        ((), "COMMAND"),
    ],
)
@pytest.mark.usefixtures("loaded_once")
def test_bad_input_is_one_line_and_status_2(folder, arguments, word, capsys):
    status = main([argument.format(folder) for argument in arguments])
    lines = [line for line in capsys.readouterr().err.splitlines() if "rows cannot be used" not in line]
    assert status == 2
    assert len(lines) == 1
    assert word in lines[0]
    assert not (folder / "o").exists()


def test_a_process_gives_that_status_too_and_no_traceback(folder):
    done = run_process("search", str(folder), "x")
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1


def test_evaluate_gives_the_grid(folder, embedded):
    done = run(
        "evaluate", str(folder / "pairs.jsonl"), "--layers", "all", "--poolings", "mean,cls,max", "--json", "-"
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "5 rows read, 4 used, 1 with the text alone, 0 left out" in done.stderr
    runs = json.loads(done.stdout)["runs"]
    assert [(found["layer"], found["pooling"]) for found in runs] == [
        (layer, name) for layer in range(7) for name in ("mean", "cls", "max")
    ]
    searched = [*TEXTS, "no query"]  # the text of a row without a query is searched too
    vectors = embedded.embed(
        [*searched, *(text.split()[1] for text in TEXTS)], options=embedded.embed_options(precision="float32")
    )[0, 0]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = unit[5:] @ unit[:5].T
    ranks = 1 + (scores > np.diag(scores)[:, None]).sum(axis=1)
    last = next(found for found in runs if (found["layer"], found["pooling"]) == (6, "mean"))
    assert last["recall"]["1"] == 100 * float((ranks == 1).mean())
    assert last["mrr"] == pytest.approx(100 * (1 / ranks).mean(), abs=0.01)
    assert last["n"] == 4
    assert last["model"] == "embedded"
    first = next(found for found in runs if (found["layer"], found["pooling"]) == (0, "cls"))
    assert first["recall"]["1"] == 0  # the same vector for every sentence: ties count against the query


@pytest.mark.usefixtures("loaded_once")
def test_evaluate_counts_every_correct_answer_of_a_query(folder):
    """Each query's nearest text is one of its answers: all of them are found first, in whatever row that text stands."""
    desk = {
        "How do I reset my password?": (
            "Press the link for a forgotten password and follow the mail.",
            "Ask the help desk for a new password.",
            "In the settings choose account, then password, then reset.",
        ),
        "When is the library open?": (
            "The library opens at nine and closes at six.",
            "On Sundays the library is closed.",
        ),
        "Where can I park?": ("Parking is free behind the town hall.",),
    }
    rows = [{"compressed": query, "sentence": text} for query, answers in desk.items() for text in answers]
    (folder / "several.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, rows[0]]))
    done = run("evaluate", str(folder / "several.jsonl"), "--rerank", "2", "--json", "-")
    assert done.returncode == 0, done.stderr
    assert (
        "3 queries have 6 correct answers: Recall@k is the share of queries with one of theirs among the" in done.stderr
    )
    assert "7 rows read, 6 used, 1 equal to an earlier one, 0 left out; " in done.stderr
    assert "sentence of an earlier row" not in done.stderr
    found = json.loads(done.stdout)
    assert (found["queries"], found["correct_answers"], found["documents"]) == (3, 6, 6)
    assert found["runs"][0] | {"recall": found["runs"][0]["recall"]["1"]} == {
        "model": "embedded", "layer": 6, "pooling": "mean", "recall": 100.0, "mrr": 100.0, "ndcg@10": 100.0, "n": 3,
    }  # fmt: skip
    assert found["runs"][1]["reranked"] == 2


@pytest.mark.usefixtures("loaded_once")
def test_evaluate_says_that_queries_look_like_a_category(folder):
    done = run("evaluate", str(folder / "categories.csv"), "--json", "-")
    assert done.returncode == 0, done.stderr
    assert "The column compressed has 2 different values for 8 texts, so that it looks like a category" in done.stderr
    assert json.loads(done.stdout)["correct_answers"] == 8


@pytest.mark.usefixtures("loaded_once")
def test_evaluate_and_sts_print_a_table_for_people(folder):
    done = run("evaluate", str(folder / "pairs.jsonl"))
    assert done.stdout.split()[:3] == ["layer", "pooling", "R@1"]
    assert done.stdout.splitlines()[1].split()[:2] == ["6", "mean"]
    done = run("sts", str(folder / "scored.csv"), "--layers", "0", "--poolings", "cls")
    assert done.stdout.splitlines()[1].split() == ["0", "cls", "-", "-"]


@pytest.mark.usefixtures("loaded_once")
def test_sts_gives_correlations(folder, embedded):
    from scipy import stats

    done = run("sts", str(folder / "scored.csv"), "--json", "-")
    assert done.returncode == 0, done.stderr
    assert "1 of 6 rows cannot be used" in done.stderr
    (found,) = json.loads(done.stdout)["runs"]
    rows = [line.split(",") for line in SCORED.splitlines()[1:6]]
    vectors = embedded.embed(
        [row[0] for row in rows] + [row[1] for row in rows], options=embedded.embed_options(precision="float32")
    )[0, 0]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (unit[:5] * unit[5:]).sum(axis=1)
    gold = [float(row[2]) for row in rows]
    assert found["spearman"] == pytest.approx(stats.spearmanr(cosines, gold).statistic, abs=1e-4)
    assert found["pearson"] == pytest.approx(stats.pearsonr(cosines, gold).statistic, abs=1e-4)
    assert (found["layer"], found["pooling"], found["n"]) == (6, "mean", 5)


def test_help_is_quick_and_names_every_option():
    command = [sys.executable, "-X", "importtime", "-m", "components", "index", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    imported = set(re.findall(r"^import time:.*\| *(\S+)$", done.stderr, re.MULTILINE))
    assert "components.command_line.program" in imported
    assert not {"torch", "transformers", "pandas", "streamlit"} & imported  # each takes seconds
    for option in ("--out", "--text-column", "--layers", "--poolings", "--precision", "--model", "--json"):
        assert option in done.stdout


def test_the_version_is_the_one_of_the_project():
    assert run("--version").stdout == f"BERT Internals {VERSION}\n"


def test_the_cache_is_shown_and_cleared(tmp_path, monkeypatch):
    monkeypatch.setenv("BERT_INTERNALS_CACHE", str(tmp_path))
    (tmp_path / "indexes" / "old").mkdir(parents=True)
    (tmp_path / "indexes" / "old" / "layer.npy").write_bytes(b"x" * 1000)
    shown = run("cache", "--json", "-")
    assert json.loads(shown.stdout) | {"folder": "", "limit": 0} == {
        "folder": "", "indexes": 1, "bytes": 1000, "limit": 0, "freed": 0,
    }  # fmt: skip
    assert run("cache").stdout.startswith(f"1 indexes take {in_words(1000)} of at most ")
    assert run("cache", "--clear").stdout.startswith(f"{in_words(1000)} freed.\n0 indexes take ")
    assert [path for path in (tmp_path / "indexes").iterdir() if path.suffix != ".lock"] == []


# Whatever goes wrong: one line, a status, nothing left behind


def run_shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command line of the shell in which $RUN is the program."""
    return subprocess.run(
        ["bash", "-c", line],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "RUN": f"{sys.executable} -m components", "HF_HUB_OFFLINE": "1", **environment},
    )


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--out", "/"), "not an index"),
        (("--out", "{}/news.csv"), "is a file"),
        (("--out", "~nobody_such/x"), "a user who does not exist"),
        (("--out", "x" * 5_000), "File name too long"),
        (("--out", "{}/o", "--layers", "9" * 5_000), "numbers from 0 to 6"),
    ],
)
def test_a_bad_folder_or_layer_is_one_line_and_leaves_no_lock(folder, arguments, word):
    before = sorted(path.name for path in folder.iterdir())
    done = run("index", str(folder / "news.csv"), *(argument.format(folder) for argument in arguments))
    (line,) = [line for line in done.stderr.splitlines() if "rows cannot be used" not in line]
    assert (done.returncode, word in line, len(line) < 1_500) == (2, True, True), line
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_folder_that_is_not_an_unfinished_index_leaves_no_lock(folder, tmp_path):
    (tmp_path / "idx.part").mkdir()
    (tmp_path / "idx.part" / "letter.txt").write_text("mine")
    done = run("index", str(folder / "news.csv"), "--out", str(tmp_path / "idx"))
    assert done.returncode == 2
    assert "not an unfinished index" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["idx.part"]


@pytest.mark.parametrize("path", ["~nobody_such", "x" * 5_000])
def test_a_cache_that_cannot_be_is_one_line(path, monkeypatch):
    monkeypatch.setenv("BERT_INTERNALS_CACHE", path)
    done = run("cache")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "no folder can have this path" in done.stderr


@pytest.mark.rare
def test_a_full_disk_a_reader_that_ends_and_a_closed_output():
    """Of a command that loads no model: every command writes through the same program."""
    done = run_shell("$RUN cache > /dev/full")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert "No space left" in done.stderr
    done = run_shell("$RUN cache | true; exit ${PIPESTATUS[0]}")
    assert (done.returncode, done.stderr) == (0, "")
    # argparse says nothing of a failure in mid-write
    for asked, unbuffered in (("check --help", ""), ("check --help", "1"), ("--version", "1")):
        done = run_shell(f"$RUN {asked} > /dev/full", PYTHONUNBUFFERED=unbuffered)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    done = run_shell("$RUN cache >&-")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.usefixtures("loaded_once")
def test_an_output_in_ascii_gets_codes_for_what_it_lacks(tmp_path, monkeypatch):
    """The results of a search in this process, and the name of a folder in one of its own, which loads no model."""
    text, index = "Ein Café 你.", f"{tmp_path}/é 你"
    (tmp_path / "t.txt").write_text(text + "\n", encoding="utf-8")
    assert run("index", f"{tmp_path}/t.txt", "--out", index).returncode == 0
    said = []
    for more in ((), ("--json", "-")):
        output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr(sys, "stdout", output)
        assert main(["search", index, "x", *more]) == 0
        said.append(output.buffer.getvalue().decode("ascii"))
    assert said[0].endswith("Ein Caf\\xe9 \\u4f60.\n")
    assert json.loads(said[1])["results"][0]["text"] == text
    done = run_shell(f'$RUN check "{index}" && $RUN check "{index}" --json -', PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    line, _, result = done.stdout.partition("\n")
    assert line.startswith(f"{tmp_path}/\\xe9 \\u4f60 is undamaged")
    assert json.loads(result)["folder"] == index


def test_ctrl_c_is_one_line_and_130(monkeypatch):
    monkeypatch.setattr(cache, "run", lambda options: (_ for _ in ()).throw(KeyboardInterrupt))
    done = run("cache")
    assert (done.returncode, len(done.stderr.splitlines())) == (130, 1)
    assert done.stderr.startswith("Stopped")


@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM ends a process there")
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.NAME)
def test_sigterm_ends_every_command_as_ctrl_c_does(command, monkeypatch, tmp_path):
    """Python would end at once, and leave behind what the work has on the disk."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    earlier = signal.getsignal(signal.SIGTERM)

    def work(options):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "vectors").write_bytes(bytes(1_000))
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)

    monkeypatch.setattr(command, "run", work)
    done = run(command.NAME, *ARGUMENTS.get(command.NAME, ()))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (143, "", 1)
    assert done.stderr.startswith("Stopped.")
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) is earlier


def test_a_command_in_another_thread_leaves_signals_alone(monkeypatch):
    monkeypatch.setattr(cache, "run", lambda options: None)
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(run, "cache").result().returncode == 0


@pytest.mark.parametrize(
    ("problem", "status", "word"),
    [
        (PermissionError(13, "Permission denied", "corpus.txt"), 2, "corpus.txt cannot be used: Permission denied"),
        (ZeroDivisionError("two\nlines"), 1, "ZeroDivisionError: two lines"),
        (BaseException("a panic"), 1, "BaseException: a panic"),
    ],
)
def test_what_nobody_foresaw_is_one_line_and_a_traceback_only_if_asked_for(problem, status, word, monkeypatch):
    def fails(options):
        raise problem

    monkeypatch.setattr(cache, "run", fails)
    done = run("cache")
    assert (done.returncode, len(done.stderr.splitlines())) == (status, 1)
    assert word in done.stderr
    assert "Traceback" in run("cache", "--debug").stderr
    monkeypatch.setenv("BERT_INTERNALS_DEBUG", "1")
    assert "Traceback" in run("cache").stderr


def test_a_json_file_that_cannot_be_written_is_refused_before_the_work(folder, monkeypatch):
    monkeypatch.setattr(cache, "run", lambda options: pytest.fail("it worked first"))
    for target in (str(folder), "/no/such/folder/x.json", "x" * 5_000, "/dev/full", "/dev/null"):
        done = run("cache", "--json", target)
        assert done.returncode == 2
        assert "could not be written" in done.stderr


@pytest.mark.parametrize("name", ["a\x1b]0;title\x07", "a\x1b[31mred", "a\u202eb", "a\x9b2J"])
def test_what_a_terminal_would_obey_is_written_as_its_code(name, tmp_path, capsys):
    assert main(["check", str(tmp_path / name)]) == 2
    said = capsys.readouterr().err
    assert "does not exist" in said
    assert said.removesuffix("\n").isprintable()
    assert ascii(name)[1:-1] in said


def test_names_in_a_result_are_written_so_too_and_json_holds_them_as_they_are(folder, tmp_path):
    name = "a\x1b]0;title\x07\x9b2Jb\u202ec"
    shutil.copytree(folder / "idx", tmp_path / name)
    done = run("check", str(tmp_path / name))
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert ascii(name)[1:-1] in done.stdout
    assert done.stdout.removesuffix("\n").isprintable()
    done = run("check", str(tmp_path / name), "--json", "-")
    assert json.loads(done.stdout)["folder"] == str(tmp_path / name)
    assert "\x1b" not in done.stdout


def test_what_joins_letters_and_wide_spaces_stay_in_a_result():
    for text in (
        "\U0001f469\u200d\U0001f52c",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u65e5\u3000\u672c",
        "a\u00a0b",
    ):
        assert visible(text) == text


def test_an_error_never_lists_a_folder(tmp_path, capsys):
    for name in ("secret.txt", "corpus.jsonl", "corpus.private.jsonl"):
        (tmp_path / name).write_text("{}\n")
    assert main(["evaluate", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "Among the files of the folder: the corpus could be 2 files" in said
    assert not any(word in said for word in ("secret", "private"))


def test_a_gpu_without_memory_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr(Backend, "load", full)
    assert main(["why", "a bank", "a river"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "too little memory" in said
    assert "report it" not in said


def test_without_the_packages_one_line_says_what_to_do():
    """As with the system's Python: -S leaves out what is installed into the environment."""
    done = subprocess.run(
        [sys.executable, "-S", "-m", "components", "search", "a", "b"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 2
    assert re.fullmatch(
        r"The Python of this command \(.+\) lacks the package .+ source \.venv/bin/activate\n", done.stderr
    )
