"""Models that cannot be used are refused when they are loaded, in words; a tokenizer that fails later fails as an error."""

from __future__ import annotations

import json
import threading
import time

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from components.errors import InputError, ModelError, UserError
from components.model.backend import Backend
from components.model.files.tokenizer_files import check_growth
from components.retrieval.corpora.corpus import Corpus
from components.retrieval.index.build import build_index
from tests.support import odd_models
from tests.support.tiny import dense_module, pooling_module, publish, save_tiny


def loaded(folder, seconds=20):
    """The model of a folder, loaded in a thread, so that a load that never ends fails the test."""
    outcome = {}

    def load():
        try:
            outcome["backend"] = Backend.load(str(folder), device_name="cpu")
        except BaseException as problem:  # noqa: BLE001 - raised again below
            outcome["problem"] = problem

    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "it still loads"
    if "problem" in outcome:
        raise outcome["problem"]
    return outcome["backend"]


@pytest.mark.parametrize("name", odd_models.REFUSED)
def test_it_is_refused_in_words(name, tmp_path):
    save, word = odd_models.REFUSED[name]
    folder = save(tmp_path / "odd")
    with pytest.raises(UserError) as refusal:
        loaded(folder)
    assert word in refusal.value.problem
    assert "\n" not in str(refusal.value)
    assert all(part.endswith((".", "!")) for part in (refusal.value.expected, refusal.value.fix))


def test_a_sound_model_passes_and_its_check_is_not_counted(tmp_path):
    assert loaded(save_tiny(tmp_path / "sound")).forward_passes == 0


def test_the_replacements_of_published_tokenizers_are_allowed():
    """Those of RoBERTa's relatives, ALBERT and CLIP; the charsmap's longest replacement is that of U+FDFA."""
    spaces = odd_models.replacing({"Regex": " {2,}"}, " ")
    quotes = [odd_models.replacing({"String": "``"}, '"'), odd_models.replacing({"String": "''"}, '"')]
    words = {"type": "Prepend", "prepend": "▁"}
    steps = [odd_models.charsmap("صلى الله عليه وسلم"), *quotes, spaces, spaces, words, {"type": "NFKC"}]
    check_growth(
        {"type": "Sequence", "normalizers": [{"type": "Sequence", "normalizers": steps}, {"type": "Lowercase"}]}
    )
    with pytest.raises(ModelError, match="16 times"):
        check_growth({"type": "Sequence", "normalizers": [*steps, odd_models.replacing({"String": "a"}, "ab" * 2)]})


def test_a_head_with_nan_is_not_applied(tmp_path):
    folder = publish(save_tiny(tmp_path / "m"), pooling_module(), dense_module(32, 16))
    weights = load_file(folder / "2_Dense" / "model.safetensors")
    weights["linear.bias"][0] = float("nan")
    save_file(weights, folder / "2_Dense" / "model.safetensors")
    backend = loaded(folder)
    assert "own" not in backend.poolings
    assert "NaN" in " ".join(backend.not_applied)


def test_vectors_that_overflow_reach_neither_a_trace_nor_an_index(tmp_path, tiny_folder):
    backend = loaded(tiny_folder("bert"))
    norm = backend.encoder.encoder.layer[-1].output.LayerNorm
    norm.weight.data.fill_(3e38)
    with pytest.raises(ModelError, match="not finite"):
        backend.trace(["the cat sat"])
    with pytest.raises(ModelError, match="not finite"):
        backend.token_vectors(["the cat sat"])
    options = backend.embed_options(precision="float32")  # on the model's own weights, which this test changes
    with pytest.raises(ModelError, match="not finite"):
        build_index(backend, Corpus("c", ("the cat",)), tmp_path / "index", options)
    assert not (tmp_path / "index").exists()
    norm.weight.data.fill_(1e6)  # finite, but too large for float16
    vectors = backend.embed(["the cat"], options=options)
    assert np.isfinite(vectors).all()
    assert np.abs(vectors).max() > 65_504
    with pytest.raises(InputError, match="too large for float16"):
        build_index(backend, Corpus("c", ("the cat",)), tmp_path / "half", options, "float16")


@pytest.fixture(scope="module")
def backtracking(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("components.model.files.tokenizer_files.check_pattern", lambda expression: None)  # it is refused
        return loaded(odd_models.backtracking(tmp_path_factory.mktemp("odd") / "backtracking"))


ENDLESS = "a" * 40 + "x"


@pytest.mark.parametrize(
    "use",
    [
        lambda backend: backend.trace([ENDLESS]),
        lambda backend: backend.tokenize(["the cat"], [ENDLESS]),
        lambda backend: backend.embed([ENDLESS]),
        lambda backend: backend.tokenization.lengths(["the cat", ENDLESS]),
    ],
)
def test_a_pattern_that_gives_up_is_an_error_for_people(backtracking, use):
    """The library panics after ten million steps: a BaseException, which ends a session's thread."""
    with pytest.raises(InputError, match="tokenizer failed"):
        use(backtracking)
    assert backtracking.trace(["the cat"]).sentences[0].tokens[1].piece == "the"  # and works on


def test_a_decoder_that_gives_up_is_an_error_for_people(tmp_path):
    folder = save_tiny(tmp_path / "m")
    content = json.loads((folder / "tokenizer.json").read_text())
    content["decoder"] = {"type": "Strip", "content": "a", "start": 0, "stop": 10**12}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="tokenizer failed"):
        loaded(folder).tokenization.decode([5, 6])


def test_a_slow_pattern_leaves_pythons_lock_to_others(backtracking):
    beats = [time.monotonic()]
    stop = threading.Event()

    def beat():
        while not stop.wait(0.01):
            beats.append(time.monotonic())

    thread = threading.Thread(target=beat)
    thread.start()
    started = time.monotonic()
    with pytest.raises(InputError):
        backtracking.tokenize([ENDLESS])
    took = time.monotonic() - started
    stop.set()
    thread.join()
    longest = float(np.diff([*beats, time.monotonic()]).max())
    assert longest < max(0.2, took / 2)
