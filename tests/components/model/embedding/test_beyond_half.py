"""Models whose hidden states float16 cannot hold, and weights that are stored in half precision."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from components.model.backend import Backend
from tests.support import tiny

TEXTS = ["the cat sat on the red hat", "we will put money in the bank"]


@pytest.mark.parametrize("factor", [1e5, 1e-7])
@pytest.mark.parametrize("is_on_disk", [False, True])
def test_vectors_that_do_not_fit_are_kept_in_float32(factor: float, is_on_disk: bool, tmp_path: Path) -> None:
    folder = tiny.save_tiny(tmp_path / "m", "eurobert")
    model = AutoModel.from_pretrained(folder)
    with torch.no_grad():
        if factor > 1:
            model.layers[0].mlp.down_proj.weight[:4] *= factor
        else:
            model.embed_tokens.weight *= factor
    model.save_pretrained(folder)
    own = Backend.load(str(folder), device_name="cpu")
    found = own.token_vectors(TEXTS, folder=tmp_path / "disk" if is_on_disk else None)
    assert found.vectors.dtype == np.float32
    trace = own.trace(TEXTS)
    for row, token in enumerate(found.tokens):
        expected = trace.hidden_states[:, token.sentence, list(token.positions)].mean(axis=1)
        np.testing.assert_allclose(found.vectors[:, row], expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())
    assert np.isfinite(found.vectors).all()
    assert own.token_vectors(TEXTS, layers=[own.facts.layers]).vectors.dtype == np.float16  # behind the final norm


@pytest.mark.parametrize("precision", [torch.float16, torch.bfloat16])
def test_weights_in_half_precision_are_used_in_float32(precision: torch.dtype, tmp_path: Path) -> None:
    folder = tiny.save_tiny(tmp_path / "m")
    AutoModel.from_pretrained(folder, dtype=precision).save_pretrained(folder)
    plain, tokenizer = (
        AutoModel.from_pretrained(folder, dtype=torch.float32).eval(),
        AutoTokenizer.from_pretrained(folder),
    )
    with torch.inference_mode():
        expected = plain(**tokenizer(TEXTS[0], return_tensors="pt")).last_hidden_state[0].mean(dim=0).numpy()
    own = Backend.load(str(folder), device_name="cpu")
    vector = own.embed(TEXTS[:1], options=own.embed_options(precision="float32"))[0, 0, 0]
    np.testing.assert_allclose(vector, expected, atol=1e-5)
