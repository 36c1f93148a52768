"""The cross-encoder's promise, against sentence-transformers' CrossEncoder on the same pairs (`make bench -s`)."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from components.model.backend import Backend
from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY
from tests.support.measurements import report, seconds
from tests.support.places import ASSETS, REAL_SENTENCES

PAIRS = 2_000


@pytest.fixture(scope="module")
def pairs() -> tuple[list[str], list[str]]:
    """Queries of some words, and documents of one to four sentences; generated sentences where the real ones are missing."""
    numbers = np.random.default_rng(0)
    sentences = (
        REAL_SENTENCES.read_text(encoding="utf-8").splitlines() if REAL_SENTENCES.exists() else generated(numbers)
    )

    def drawn(count: int) -> list[str]:
        return [sentences[row] for row in numbers.integers(len(sentences), size=count)]

    queries = [" ".join(sentence.split()[: 3 + row % 10]) for row, sentence in enumerate(drawn(PAIRS))]
    return queries, [" ".join(drawn(int(count))) for count in numbers.choice([1, 1, 1, 2, 3, 4], PAIRS)]


def generated(numbers: np.random.Generator) -> list[str]:
    """Sentences of 5 to 40 words of the demo corpus: as long as real ones, which is what the speed depends on."""
    words = " ".join((ASSETS / "demo_sentences.txt").read_text(encoding="utf-8").splitlines()).split()
    counts = numbers.integers(5, 41, size=PAIRS)
    return [" ".join(numbers.choice(words, int(count))) for count in counts]


def test_pairs_against_sentence_transformers(
    pairs: tuple[list[str], list[str]], embedded_folder: Path, tmp_path: Path
) -> None:
    from sentence_transformers import CrossEncoder
    from transformers import AutoTokenizer

    ours = Backend.load(EMBEDDED_CROSS_ENCODER_KEY, device_name="cpu")
    ours.loaded.pair_scorer().save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(embedded_folder).save_pretrained(tmp_path)
    theirs = CrossEncoder(str(tmp_path), device="cpu", local_files_only=True, max_length=ours.own_max_length)
    queries, documents = pairs
    both, best = list(zip(queries, documents, strict=True)), ours.embedder.best_precision()
    for precision in ("float32", best):
        ours.score_pairs(queries[:128], documents[:128], precision=precision)
    theirs.predict(both[:128])
    times: dict[str, list[float]] = {"theirs": [], "float32": [], "best": []}
    scores: dict[str, Any] = {}
    for _ in range(3):  # in turn, so that a slow minute hits all of them

        def predict() -> None:
            scores["theirs"] = theirs.predict(both, activation_fn=torch.nn.Identity())

        def score(name: str, precision: Any) -> None:
            scores[name] = ours.score_pairs(queries, documents, precision=precision)

        times["theirs"].append(seconds(predict))
        times["float32"].append(seconds(lambda: score("float32", "float32")))
        times["best"].append(seconds(lambda: score("best", best)))
    ratio = {name: statistics.median(times["theirs"]) / statistics.median(times[name]) for name in ("float32", "best")}
    report(
        f"{PAIRS} pairs: sentence-transformers {PAIRS / statistics.median(times['theirs']):.0f}/s; float32 "
        f"{ratio['float32']:.2f} times as fast; as chosen here ({best}) {ratio['best']:.2f} times, largest difference "
        f"{np.abs(scores['best'] - scores['theirs']).max():.4f} of a spread of {np.ptp(scores['theirs']):.1f}"
    )
    np.testing.assert_allclose(scores["float32"], scores["theirs"], atol=1e-4)
    assert ratio["float32"] >= 1.1
    # The factor 2 comes from bfloat16 products, which not every processor has. Where they are measured as no faster, "auto" is
    # float32, whose own promise is asserted above; the report names the precision.
    if best == "bfloat16":
        assert ratio["best"] >= 2
