"""The code of guesses gives the numbers of the pages, in plain transformers and by this project."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from components.model.backend import Backend
from components.snippets.code import START, Input, Snippet
from components.snippets.notebook import TitledSnippet, notebook
from components.snippets.plain import guesses as snippets
from tests.support import tiny
from tests.support.closeness import assert_close

TEXT, PAIR = "the walking cat sat on the [mask] .", "a red hat"
# Of each kind of head and encoder one: a plain one, with a causal mask given as an argument or not, and with a final norm.
ARCHITECTURES = ("bert", "distilbert", "roberta", "albert", "deberta-v2", "modernbert", "xlm-roberta-xl", "eurobert")
CLOSE = 1e-5


@pytest.fixture(scope="module", params=ARCHITECTURES)
def backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Backend:
    folder = tiny.save_masked_lm_of(tmp_path_factory.mktemp(request.param), request.param)
    return Backend.load(str(folder), device_name="cpu")


@pytest.fixture(scope="module", autouse=True)
def _one_thread_for_a_pass() -> Iterator[None]:
    """Tiny models gain nothing from several threads, and lose much where other work waits for the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def run(snippet: Snippet, is_plain: bool) -> dict[str, Any]:
    """The names that a snippet sets. Plain code imports nothing of this project."""
    names: dict[str, Any] = {}
    assert snippet.is_plain == is_plain
    assert ("components" not in snippet.code) == is_plain
    assert snippet.code.startswith(START) != is_plain
    assert len(snippet.code.splitlines()) <= 30 + START.count("\n")
    for statement in (*snippet.setup, *snippet.body):
        ast.parse(statement)
    assert notebook("A page", {}, [TitledSnippet("A figure", snippet)])
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(snippet.code, "snippet", "exec"), names)
    return names


def takes_mask(backend: Backend) -> bool:
    return not backend.loaded.modules.mask_names and backend.loaded.modules.mask_reader is None


@pytest.mark.parametrize("only_left", [False, True])
def test_the_code_gives_the_same_numbers(backend: Backend, only_left: bool) -> None:
    plain = takes_mask(backend) or not only_left
    read = Input(backend, [TEXT])
    expected = backend.guesses(TEXT, hidden=(3, 1), only_left=only_left, k=4)
    known = expected.true_ids >= 0
    names = run(snippets.guesses(read, 3, (3, 1), 4, only_left), plain)
    assert_close(names["values"], expected.probabilities[-1, 3], CLOSE)
    vocabulary = backend.tokenization.vocabulary
    assert list(names["pieces"]) == [vocabulary[number] for number in expected.ids[-1, 3]]
    names = run(snippets.through_layers(read, (3, 1), 4, only_left), plain)
    assert_close(names["values"], expected.probabilities, CLOSE)
    np.testing.assert_array_equal(names["ids"], expected.ids)
    np.testing.assert_array_equal(names["ranks"][:, known], expected.true_ranks[:, known])
    surprises = backend.surprises(TEXT, only_left=only_left)
    names = run(snippets.surprise(read, only_left), plain)
    assert_close(names["values"], surprises.bits, CLOSE)
    assert_close(names["pseudo_perplexity"], surprises.pseudo_perplexity, 1e-4)


def test_pairs_and_truncated_texts(tmp_path: Path) -> None:
    backend = Backend.load(str(tiny.save_masked_lm_of(tmp_path, "bert")), device_name="cpu")
    read = Input(backend, [TEXT], max_length=10, pairs=[PAIR])
    surprises = backend.surprises(TEXT, PAIR, max_length=10)
    assert surprises.sentence.dropped
    assert_close(run(snippets.surprise(read), True)["values"], surprises.bits, CLOSE)
    guesses = backend.guesses(TEXT, PAIR, max_length=10)
    assert_close(run(snippets.guesses(read, 2), True)["values"], guesses.probabilities[-1, 2], CLOSE)


@pytest.mark.parametrize("said", [{"tokenizer_args": {"truncation_side": "left"}}, {"do_lower_case": True}])
def test_what_the_folder_says_of_its_tokenizer_is_in_the_code(tmp_path: Path, said: dict[str, Any]) -> None:
    folder = tiny.save_masked_lm_of(tmp_path, "bert")
    plain = Backend.load(str(folder), device_name="cpu")
    encoder = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
    (folder / "modules.json").write_text(json.dumps([encoder]))
    (folder / "sentence_bert_config.json").write_text(json.dumps(said))
    backend = Backend.load(str(folder), device_name="cpu")
    text = "The Walking Cat [mask] on THE red hat by the river"
    is_plain = "tokenizer_args" in said
    expected = backend.surprises(text, max_length=6)
    assert is_plain == (expected.sentence.tokens != plain.surprises(text, max_length=6).sentence.tokens)
    snippet = snippets.surprise(Input(backend, [text], max_length=6))
    assert ('truncation_side="left"' in snippet.code) == is_plain
    assert_close(run(snippet, is_plain)["values"], expected.bits, CLOSE)


@pytest.mark.parametrize("only_left", [False, True])
def test_a_model_that_this_project_alone_can_load(tmp_path: Path, monkeypatch, only_left: bool) -> None:
    backend = Backend.load(str(tiny.save_masked_lm_of(tmp_path, "bert")), device_name="cpu")
    monkeypatch.setattr(snippets, "_is_plain", lambda *_: False)
    read = Input(backend, [TEXT], pairs=[PAIR])
    expected = backend.guesses(TEXT, PAIR, hidden=(1,), only_left=only_left)
    assert_close(run(snippets.guesses(read, 1, (1,), 10, only_left), False)["values"], expected.probabilities[-1, 1])
    names = run(snippets.through_layers(read, (1,), 10, only_left), False)
    assert_close(names["values"], expected.probabilities)
    np.testing.assert_array_equal(names["ranks"], expected.true_ranks)
    bits = backend.surprises(TEXT, PAIR, only_left=only_left).bits
    assert_close(run(snippets.surprise(read, only_left), False)["values"], bits)
