"""The shapes of a drawing, and the counts beside them: sums over the model's own named parameters, for every family."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.model.architecture.shapes import shapes_of
from components.model.backend import Backend
from tests.support import static_models, tiny

OWN = {  # parts of a name by kind, in the order in which they are tried
    "norms": ("norm",),
    "pieces": ("word_embeddings", "tok_embeddings", "embed_tokens"),
    "positions": ("position_embeddings",),
    "segments": ("token_type_embeddings",),
    "tasks": ("task_type_embeddings",),
    "projection": ("embeddings_project", "embedding_hidden_mapping_in", "embed_proj"),
    "pooler": ("pooler",),
    "distances": ("relative_attention_bias", "rel_embeddings"),
    "attention": ("attention.", "attn.", "self_attn."),
}


@pytest.mark.parametrize("family", tiny.ARCHITECTURES)
def test_the_counts_are_sums_over_named_parameters(family: str) -> None:
    model, _ = tiny.tiny_model(family)
    expected: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        kind = next(
            (kind for kind, marks in OWN.items() if any(mark in name.lower() for mark in marks)), "feed-forward"
        )
        if family == "deberta-v2" and name.startswith("encoder.LayerNorm"):
            kind = "distances"  # it normalises their vectors
        expected[kind] = expected.get(kind, 0) + parameter.numel()
    shapes = shapes_of(model)
    assert shapes.counts == expected
    assert shapes.total == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("family", tiny.ARCHITECTURES)
def test_the_matrices_are_those_of_the_model(family: str) -> None:
    """Together with the tables they hold all but biases, norms, the pooler and what distances add."""
    model, _ = tiny.tiny_model(family)
    shapes = shapes_of(model)
    own = {block.weights: block for block in shapes.blocks}.values()
    drawn = sum(matrix.count for block in own for matrix in (*block.attention, *block.feed_forward))
    drawn += sum(rows * size for rows, size in shapes.tables.values())
    drawn += shapes.projection[0] * shapes.projection[1] if shapes.projection else 0
    weights = sum(
        parameter.numel()
        for name, parameter in model.named_parameters()
        if parameter.dim() == 2
        and not any(mark in name for mark in ("pooler", "relative_attention_bias", "rel_embeddings"))
    )
    assert drawn == weights


def test_shared_blocks_smaller_keys_and_gates() -> None:
    albert = shapes_of(tiny.tiny_model("albert")[0])
    assert [block.weights for block in albert.blocks] == [0, 0, 1]
    assert albert.projection == (16, 32)
    euro = shapes_of(tiny.tiny_model("eurobert")[0])
    assert [(matrix.name, matrix.inner) for matrix in euro.blocks[0].attention] == [
        ("Q", 32),
        ("K", 16),
        ("V", 16),
        ("O", 32),
    ]
    assert euro.heads_per_key == 2
    modern = shapes_of(tiny.tiny_model("modernbert")[0])
    assert [matrix.name for matrix in modern.blocks[0].feed_forward] == ["gate", "in", "out"]


def test_a_static_model_is_a_table(tmp_path: Path) -> None:
    backend = Backend.load(str(static_models.save_model2vec(tmp_path / "static")))
    assert backend.shapes.blocks == ()
    assert list(backend.shapes.counts) == ["pieces"]
    assert backend.shapes.total == backend.facts.parameters


def test_the_included_model(embedded: Backend) -> None:
    shapes = embedded.shapes
    assert shapes.tables["pieces"] == (30_522, 384)
    assert shapes.total == 22_713_216
    assert {kind: round(100 * count / shapes.total) for kind, count in shapes.counts.items() if count > 1e6} == {
        "pieces": 52,
        "attention": 16,
        "feed-forward": 31,
    }
