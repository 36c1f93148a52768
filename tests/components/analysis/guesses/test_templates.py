"""Templates: each cell of the table is the probability that plain transformers give; what is no template is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from components.analysis.guesses.templates import MOST_FILLINGS, MOST_TEMPLATES, read_template, template_guesses
from components.errors import InputError, ModelError
from components.jobs import Stopped
from components.model.backend import Backend
from tests.support import tiny
from tests.support.closeness import assert_close

FIRST, SECOND = "The [cat, dog,  red hat] sat on the [MASK].", "We put a [dog, red hat, cat] in <mask>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_masked_lm_of(tmp_path_factory.mktemp("model"), "bert")


@pytest.fixture(scope="module")
def backend(folder: Path) -> Backend:
    return Backend.load(str(folder), device_name="cpu")


def plain_probabilities(folder: Path, text: str) -> np.ndarray:
    """Of every piece at the text's only mask, by plain transformers."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder).eval()
    inputs = tokenizer(text, return_tensors="pt")
    with torch.inference_mode():
        logits = model(**inputs).logits[inputs["input_ids"] == tokenizer.mask_token_id]
    return logits[0].double().softmax(-1).numpy()


def test_a_template_is_read() -> None:
    template = read_template("The [nurse, doctor,doctor, ] said [MASK] [sic].")
    assert template.fillings == ("nurse", "doctor")
    assert template.filled("pilot") == "The pilot said [MASK] [sic]."


def test_each_cell_equals_plain_transformers(backend: Backend, folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    found = template_guesses(
        backend,
        [FIRST, SECOND],
        words=["bank", "Money", "walking", "bank"],
        controls=["x", "dog"],
        k=4,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert found.fillings == ("cat", "dog", "red hat", "x")
    assert found.controls == ("x",)
    assert found.words == ("bank", "Money", "walking")
    assert found.unknown_words == ("walking",)
    assert seen[-1] == (8, 8)
    vocabulary = backend.tokenization.vocabulary
    texts = [[f"The {filling} sat on the [MASK]." for filling in found.fillings]]
    texts.append([f"We put a {filling} in [MASK]" for filling in found.fillings])
    expected = np.array([[plain_probabilities(folder, text) for text in row] for row in texts])
    ids = [vocabulary.index("bank"), vocabulary.index("money")]
    assert found.word_ids.tolist() == [[*ids, -1]] * 2
    assert_close(found.word_probabilities[..., :2], expected[..., ids], 1e-5)
    assert np.isnan(found.word_probabilities[..., 2]).all()
    assert_close(found.mean_probabilities[:, :2], expected[..., ids].mean(0), 1e-5)
    ranks = 1 + (expected[..., None, :] > expected[..., ids][..., None] + 1e-7).sum(-1)
    np.testing.assert_array_equal(found.word_ranks[..., :2], ranks)
    assert (found.word_ranks[..., 2] == 0).all()
    np.testing.assert_array_equal(found.ids, np.argsort(-expected, axis=-1)[..., :4])
    assert_close(found.probabilities, -np.sort(-expected, axis=-1)[..., :4], 1e-5)
    with pytest.raises(ValueError, match="read-only"):
        found.probabilities[:] = 0


@pytest.mark.parametrize(
    ("templates", "controls", "is_anecdote"),
    [([FIRST], ["x"], True), ([FIRST, SECOND], [], True), ([FIRST], [], True), ([FIRST, SECOND], ["x"], False)],
)
def test_one_template_or_no_control_word_is_an_anecdote(backend, templates, controls, is_anecdote) -> None:
    found = template_guesses(backend, templates, controls=controls)
    assert found.is_anecdote == is_anecdote
    assert found.word_probabilities.shape == (len(templates), 3 + len(controls), 0)
    assert found.unknown_words == ()


@pytest.mark.parametrize(
    ("templates", "said"),
    [
        (["The cat sat on the [MASK]."], "no list"),
        (["The [cat, dog] sat on [a, b] [MASK]."], "2 lists"),
        (["The [, ] sat on [MASK]."], "is empty"),
        (["The [cat, dog] sat."], "no mask"),
        (["The [cat, dog] [MASK] [mask]."], "2 masks"),
        ([FIRST, "A [cat, dog] on [MASK]"], "Template 2 has other words"),
        ([FIRST] * (MOST_TEMPLATES + 1), "9 templates"),
        ([f"[{', '.join(f'w{n}' for n in range(MOST_FILLINGS + 1))}] [MASK]"], "33 fillings"),
        ([], "no template"),
        (["[cat, dog] " + "x " * 80 + "[MASK]"], "among the tokens that are read"),
    ],
)
def test_what_is_no_template_is_refused(backend, templates, said) -> None:
    with pytest.raises(InputError, match=said):
        template_guesses(backend, templates)


def test_a_model_without_a_head_and_a_stop(backend, tmp_path) -> None:
    headless = Backend.load(str(tiny.save_tiny(tmp_path)), device_name="cpu")
    with pytest.raises(ModelError, match="no masked-LM head"):
        template_guesses(headless, [FIRST])
    with pytest.raises(Stopped):
        template_guesses(
            backend, ["The [cat, hat] ran to [MASK]."], is_stopped=lambda: True
        )  # what is kept needs no pass
    with pytest.raises(ValueError, match="k is 0"):
        template_guesses(backend, [FIRST], k=0)
