"""The stored numbers of the ready-made pairs are plain sentence-transformers', and hold for the included model alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from components.arrays import cosine
from components.retrieval.corpora.minimal_pairs import MinimalPairs
from dashboard import caching
from dashboard.jobs import interventions
from dashboard.jobs.stored import pairs as stored
from dashboard.views.why import clinic
from tests.support.pages import Open, at_rest, figures
from tests.support.plain_vectors import plain_vectors

PAIRS = stored.demo_pairs()


def test_the_cosines_are_those_of_plain_sentence_transformers(embedded_folder: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(embedded_folder), device="cpu")
    first, second = (model.encode(list(texts), convert_to_numpy=True) for texts in (PAIRS.first, PAIRS.second))
    kept = stored.stored().cosines
    np.testing.assert_allclose(kept.of_pairs[-1, 0], cosine(first, second), atol=1e-5)
    np.testing.assert_allclose(kept.unrelated[-1, 0], cosine(first, second[kept.partners]), atol=1e-5)
    assert (kept.partners != np.arange(len(PAIRS))).all()


def test_all_layers_and_poolings_by_plain_transformers(embedded_folder: Path) -> None:
    vectors = plain_vectors(embedded_folder, [*PAIRS.first, *PAIRS.second], 256)  # [layer, pooling, text, dim]
    kept = stored.stored()
    assert kept.options["poolings"] == ["mean", "cls", "max"]
    expected = cosine(vectors[:, :, : len(PAIRS)], vectors[:, :, len(PAIRS) :])
    np.testing.assert_allclose(kept.cosines.of_pairs, expected, atol=1e-5)


def test_a_probe_trained_again_says_the_same(embedded: Any) -> None:
    kept, again = stored.stored().probes["time"], stored._probe(embedded, PAIRS, "time")
    # On another chip a sentence that lies on the border can fall to the other side.
    assert np.mean(kept.right != again.right) < 0.02
    np.testing.assert_allclose(kept.accuracy, again.accuracy, atol=0.03)
    np.testing.assert_allclose(kept.control_accuracy, again.control_accuracy, atol=0.03)
    assert kept.repeated == again.repeated


def test_the_effects_of_experiments_measured_again(embedded: Any) -> None:
    from components.analysis.why import patching

    for kept, texts in zip(stored.stored().effects, stored.texts_of_experiments(), strict=True):
        again = patching.pair_effect(embedded, texts, embedded.own_pooling)
        assert (kept.has_same_count, kept.is_suitable) == (again.has_same_count, again.is_suitable)
        found = (kept.of_a, kept.of_b, kept.carried)
        np.testing.assert_allclose(found, (again.of_a, again.of_b, again.carried), atol=1e-5)


def test_they_hold_for_this_model_these_texts_and_a_length_that_cuts_nothing(embedded: Any) -> None:
    options = embedded.embed_options(embedded.text_layers, embedded.poolings, precision="float32")
    assert stored.cosines(embedded, PAIRS, options) is stored.stored().cosines
    changed = SimpleNamespace(revision="folder:0123456789ab")  # a model's folder with other weights
    assert stored.cosines(changed, PAIRS, options) is None  # type: ignore[arg-type]
    assert stored.effects(changed, stored.texts_of_experiments()) is None  # type: ignore[arg-type]
    longest = stored.stored().tokens
    assert stored.cosines(embedded, PAIRS, replace(options, max_length=longest)) is not None
    changes: list[dict[str, Any]] = [
        {"max_length": longest - 1},
        {"layers": (6,)},
        {"poolings": ("mean",)},
        {"precision": "bfloat16"},
        {"prompt": "q: "},
    ]
    for other in changes:
        assert stored.cosines(embedded, PAIRS, replace(options, **other)) is None
    others = MinimalPairs(PAIRS.kinds, PAIRS.first, (*PAIRS.second[:-1], "Something else."))
    assert stored.cosines(embedded, others, options) is None
    of_probe = embedded.embed_options(embedded.text_layers, ["mean"], precision="float32")
    assert stored.probe(embedded, PAIRS, "negation", of_probe) is not None
    assert stored.probe(embedded, PAIRS, "negation", replace(of_probe, poolings=("max",))) is None
    assert stored.probe(changed, PAIRS, "negation", of_probe) is None  # type: ignore[arg-type]
    texts = stored.texts_of_experiments()
    assert interventions.known_effects(embedded, texts) == stored.stored().effects
    assert stored.effects(embedded, texts[1:]) is None


@pytest.mark.parametrize("figure", ["cosines", "layers", "probe"])
def test_nobody_waits_for_the_included_models_pairs(
    open_page: Open, monkeypatch: pytest.MonkeyPatch, figure: str
) -> None:
    monkeypatch.setattr(clinic, "pair_cosines", lambda *arguments, **options: pytest.fail("embedded"))
    monkeypatch.setattr(clinic.clinic_probe, "_probed", lambda *arguments: pytest.fail("trained"))
    app = at_rest(open_page("why", v="known-failures", cf=figure))
    assert not app.exception
    assert figures(app)


def test_another_models_pairs_are_embedded(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same model, as if its folder held other weights."""
    other = replace(stored.stored(), revision="folder:0123456789ab")
    monkeypatch.setattr(stored, "stored", lambda: other)
    few = MinimalPairs(
        ("negation", "negation", *["paraphrase"] * 10),
        ("It is big.", "He came.", *[f"The {number} cats sleep." for number in range(10)]),
        ("It is not big.", "He never came.", *[f"{number} cats are asleep." for number in range(10)]),
    )
    monkeypatch.setattr(clinic, "demo_pairs", lambda: few)
    app = at_rest(open_page("why", v="known-failures"))
    assert not app.exception
    assert figures(app)
    assert any(job.key[0] == "minimal pairs" for job in caching.explanations().finished())
