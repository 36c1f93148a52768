"""Models the tests of this folder share."""

from __future__ import annotations

import pytest

from components.model.backend import Backend
from components.model.catalog import ModelSpec
from tests.support.tiny import tiny_model

BANK = (
    "We will rob a bank next week!",
    "The children skipped stones by the bank of the river.",
    "I put money in the bank.",
)


@pytest.fixture(scope="session")
def tiny_backends():
    """Tiny seeded backends by architecture: WordPiece for bert and electra, byte-level pieces for roberta."""
    return {
        name: Backend(ModelSpec(f"tiny-{name}", "folder", name), "0", *tiny_model(name))
        for name in ("bert", "distilbert", "roberta", "electra")
    }


@pytest.fixture(scope="session")
def bank_trace(embedded):
    return embedded.trace(BANK)
