"""The overview by hand, and against sums that are written out."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.path.overview import overview, taken
from components.model.backend import Backend
from tests.support import static_models, tiny
from tests.support.closeness import assert_close
from tests.support.plain_encoder import run
from tests.support.shared_models import shared_backend

TEXT = "The children skipped stones by the bank of the river."


def test_two_tokens_by_hand():
    """Two heads that give, of the first token, (3, 0) and (0, 4), and of the second, (1, 0) and (-1, 0)."""
    contributions = np.array([[[3, 0], [1, 0]], [[0, 4], [-1, 0]]], np.float32)  # [head, key, dim]
    weights = np.array([[[0.5, 0.5], [1, 0]], [[0.5, 0.5], [0.25, 0.75]]], np.float32)  # [head, query, key]
    # The first query takes (1.5, 2) and (0.5, 0) - (0.5, 0); the second (3, 1) and (-0.75, 0).
    assert_close(taken(weights, contributions), np.array([[2.5, 0], [np.sqrt(10), 0.75]]))


@pytest.mark.parametrize("only_left", [False, True])
@pytest.mark.parametrize("architecture", ["embedded", *tiny.ARCHITECTURES])
def test_every_vector_that_is_taken_written_out(embedded, tiny_folder, architecture, only_left):
    backend = embedded if architecture == "embedded" else shared_backend(tiny_folder(architecture))
    trace, record = backend.trace([TEXT, "a"]), backend.inside(TEXT, only_left=only_left)
    found = overview(trace, 0, record)
    assert found.sentence == trace.sentences[0]
    for block in range(record.n_blocks):
        values = record.values[block].astype(np.float64) @ record.projection.weights[block].astype(np.float64)
        vectors = np.einsum("hqk,hkd->qkd", record.attentions[block].astype(np.float64), values)
        assert_close(found.took[block], np.linalg.norm(vectors, axis=-1))
        added = vectors.sum(axis=1) + record.projection.bias[block]
        assert_close(record.attention_output[block], added, 1e-5)
    if only_left:
        assert not np.triu(found.took, k=1).any()
    assert found.layers is record.hidden_states
    assert list(found.parts) == list(backend.structure.layer_zero_parts)
    for part in (found.layers[0], *found.parts.values(), found.took[0]):
        assert len(part) == len(found.sentence)
        assert part.dtype == np.float32
        assert not part.flags.writeable


def test_parts_and_layers_of_the_included_model(embedded):
    found = overview(embedded.trace(["a", TEXT]), 1, embedded.inside(TEXT))
    norm = embedded.encoder.embeddings.LayerNorm
    total = sum(part.astype(np.float64) for part in found.parts.values())
    centred = total - total.mean(-1, keepdims=True)
    scaled = centred / np.sqrt(total.var(-1, keepdims=True) + norm.eps)
    first = scaled * norm.weight.detach().numpy() + norm.bias.detach().numpy()
    assert_close(found.layers[0], first)
    assert_close(found.layers, run(TEXT).vectors, 1e-5)


def test_a_static_model_has_layer_zero_alone(tmp_path):
    backend = Backend.load(str(static_models.save_model2vec(tmp_path / "static")), device_name="cpu")
    trace = backend.trace(["the cat sat", "a"])
    found = overview(trace, 1, None)
    assert found.took is None
    assert found.layers.shape == (1, len(trace.sentences[1]), static_models.DIM)
    assert_close(found.parts["word"], found.layers[0])


def test_what_cannot_be_shown_says_why(embedded):
    trace = embedded.trace(["a", TEXT])
    with pytest.raises(ValueError, match="other tokens"):
        overview(trace, 0, embedded.inside(TEXT))
    with pytest.raises(ValueError, match="no attentions"):
        overview(trace, 1, embedded.inside(TEXT, attentions=False))
    with pytest.raises(IndexError):
        overview(trace, 2, embedded.inside(TEXT))
