"""`why`: the JSON sums to the cosine, for every split; bad input in one line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from components.command_line.commands import why
from tests.components.command_line.in_process import run
from tests.support.closeness import assert_close

A, B = "the cat is walking", "the dog ran"


@pytest.fixture(scope="module")
def model(tiny_folder) -> str:
    return str(tiny_folder("bert"))


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--pooling", "max", "--layer", "1"),
        ("--to", "words", "--steps", "50", "--reference", "mask"),
        ("--to", "blocks"),
        ("--to", "blocks", "--pooling", "cls", "--layer", "2"),
    ],
)
def test_contributions_and_what_is_left_over_sum_to_the_cosine(model, options):
    done = run("why", A, B, "--model", model, *options, "--json", "-")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    contributions = np.array(result["contributions"])
    assert contributions.sum() + result["left_over"] == pytest.approx(result["cosine"], abs=1e-9)
    assert_close(sum(result["terms"].values()) + result["error"], result["left_over"])
    if result["to"] == "blocks":
        assert contributions.shape == (len(result["rows"]), len(result["columns"]))
        assert result["rows"][:2] == ["embeddings", "block 0"]
        assert result["columns"][0] == "embeddings"
        assert not contributions[0, 1:].any()
        assert not contributions[1:, 0].any()  # the embeddings are a row and a column of their own
        assert abs(result["left_over"]) < 1e-4
    else:
        assert contributions.shape == (len(result["tokens_a"]), len(result["tokens_b"]))
        assert result["tokens_a"] == ["[CLS]", "the", "cat", "[UNK]", "walk", "##ing", "[SEP]"]
    if result["to"] == "words":
        assert (result["reference"], result["steps"]) == ("mask", 50)
        assert abs(result["error"]) < 1e-3
        assert not contributions[0].any()


def test_the_cosine_is_that_of_the_sentence_vectors(embedded):
    done = run("why", "A dog runs.", "The puppy is running.", "--json", "-")
    options = embedded.embed_options(precision="float32")  # in bfloat16, cosines differ by up to a few thousandths
    vectors = embedded.embed(["A dog runs.", "The puppy is running."], options=options)[0, 0]
    expected = vectors[0] @ vectors[1] / np.linalg.norm(vectors[0]) / np.linalg.norm(vectors[1])
    result = json.loads(done.stdout)
    assert result["cosine"] == pytest.approx(float(expected), abs=1e-4)
    assert_close(result["left_over"], 0)
    assert (result["layer"], result["pooling"]) == (6, "mean")


def test_people_get_the_largest_parts(model, tmp_path):
    target = tmp_path / "why.json"
    done = run("why", A, B, "--model", model, "--max-length", "5", "--json", str(target))
    assert done.returncode == 0, done.stderr
    assert "2 tokens of TEXT_A are truncated." in done.stderr
    lines = done.stdout.splitlines()
    assert "cosine at layer 3, pooling mean" in lines[0]
    assert lines[-1].endswith("  error of the sum")
    numbers = [abs(float(line.split()[0])) for line in lines[1:11]]
    assert numbers == sorted(numbers, reverse=True)
    result = json.loads(target.read_text())
    assert result["cosine"] == pytest.approx(float(lines[0].split()[0]), abs=1e-4)
    assert sum(float(line.split()[0]) for line in lines[1:]) == pytest.approx(result["cosine"], abs=1e-3)
    cells = np.array(result["contributions"])
    row, column = np.unravel_index(np.abs(cells).argmax(), cells.shape)
    pair = f"“{result['tokens_a'][row]}” ({row}) with “{result['tokens_b'][column]}” ({column})"
    assert lines[1].split(maxsplit=1) == [f"{cells[row, column]:+.4f}", pair]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((A, B, "--to", "letters"), "--to letters is not possible"),
        ((A, " "), "empty"),
        ((A, B, "--layer", "4"), "layers 0 to 3"),
        ((A, B, "--pooling", "own"), "mean, cls, max"),
        ((A, B, "--steps", "5"), "--to words"),
        ((A, B, "--to", "words", "--reference", "dog"), "'dog' is not available"),
        ((A, B, "--to", "words", "--steps", "0"), "0 steps"),
        ((A,), "TEXT_B"),
    ],
)
def test_bad_input_is_one_line_and_status_2(model, arguments, said):
    done = run("why", *arguments, "--model", model)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_is_not_shown_is_summed_with_its_signs(capsys):
    parts = [(1.0 + number, f"part {number}") for number in range(10)]
    why._say_largest([*parts, (-0.5, "x"), (0.25, "y")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split(maxsplit=1) == ["+10.0000", "part 9"]
    assert lines[-1].split(maxsplit=1) == ["-0.2500", "2 others"]
