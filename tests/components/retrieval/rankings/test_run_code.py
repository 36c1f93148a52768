"""Codes of runs in addresses: what each names, that reading and writing agree, and what names no run."""

from __future__ import annotations

import pytest

from components.retrieval.fusion.scores import Fusion, weighted
from components.retrieval.fusion.settings import FusionSettings
from components.retrieval.rankings.run_code import RunCode

LAST, BM25 = RunCode("m", 6, "mean"), RunCode(words="bm25")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("m.6.mean", LAST),
        ("m2.0.cls", RunCode("m2", 0, "cls")),
        ("static", RunCode(words="static")),
        ("sp.m2", RunCode("m2")),
        ("rr.100.m.6.mean", RunCode("m", 6, "mean", "rr", 100)),
        ("mx.2.m.6.own", RunCode("m", 6, "own", "mx", 2)),
        ("fr.bm25.m.6.mean", RunCode(parts=(LAST, BM25))),
        ("f25.bm25.m.6.mean", RunCode(parts=(LAST, BM25), settings=FusionSettings(25))),
        ("f0.m.6.mean~static", RunCode(parts=(LAST, RunCode(words="static")), settings=FusionSettings(0))),
        ("fr10.bm25.m.6.mean", RunCode(parts=(LAST, BM25), settings=FusionSettings(rank_constant=10))),
        ("frd50.bm25.m.6.mean", RunCode(parts=(LAST, BM25), settings=FusionSettings(depth=50))),
        (
            "fr10000d1000000.bm25.m.6.mean",
            RunCode(parts=(LAST, BM25), settings=FusionSettings(rank_constant=10_000, depth=1_000_000)),
        ),
        ("frw25.bm25.m.6.mean", RunCode(parts=(LAST, BM25), settings=FusionSettings(25, "rrf"))),
        ("fr10w0d9.bm25.m.6.mean", RunCode(parts=(LAST, BM25), settings=FusionSettings(0, "rrf", 10, 9))),
        ("fz25d9.bm25.m.6.mean", RunCode(parts=(LAST, BM25), settings=FusionSettings(25, "z", depth=9))),
        (
            "f40.m.6.mean~bm25~lsa",
            RunCode(parts=(LAST, BM25, RunCode(words="lsa")), settings=FusionSettings(40)),
        ),
        ("fr.bm25~m.6.mean", RunCode(parts=(BM25, LAST))),
        ("fr.m.6.mean~ms.20.m.6.mean~bm25", RunCode(parts=(LAST, RunCode("m", 6, "mean", "ms", 20), BM25))),
    ],
)
def test_a_code_is_read_and_written(text: str, code: RunCode) -> None:
    assert RunCode.read(text) == code
    assert str(code) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "m", "m.6", "m3.6.mean", "m.6.mean.", "m.6.bm25", "sp.m3", "bm26", "m.1000.mean", "rr.0.m.6.mean"),
        *("f101.bm25.m.6.mean", "f.bm25.m.6.mean", "fr.static.m.6.mean", "f05.bm25.m.6.mean", "fr.20.m.6.mean"),
        *(
            "fr.bm25",
            "fr.bm25~bm25",
            "fr.m.6.mean~fr.bm25.m.6.mean",
            "fr05.bm25.m.6.mean",
            "fr10001.bm25.m.6.mean",
            "fz.bm25.m.6.mean",
            "f25d0.bm25.m.6.mean",
            "frd1000001.bm25.m.6.mean",
            "fr.bm25~tfidf~jm~bow",
            "fr.~",
        ),
    ],
)
def test_other_codes_name_no_run(text: str) -> None:
    with pytest.raises(ValueError, match="names no run"):
        RunCode.read(text)


@pytest.mark.parametrize("text", ["rr.1.m.6.mean", "ms.1001.m.6.mean", "fr.bm25~ms.1001.m.6.mean"])
def test_a_number_of_candidates_has_ends(text: str) -> None:
    with pytest.raises(ValueError, match=r"not 2 to 1,000"):
        RunCode.read(text)


def test_a_code_says_what_it_is_made_of() -> None:
    reranked, fused = RunCode.read("rr.100.m.6.mean"), RunCode.read("f25.bm25.m.6.mean")
    assert (reranked.first, reranked.is_vectors, LAST.is_vectors, LAST.cell) == (LAST, False, True, (6, "mean"))
    assert (fused.each, BM25.each, fused.fusion) == ((LAST, BM25), (BM25,), weighted(0.25))
    assert RunCode.read("fr.bm25~tfidf~jm").fusion == Fusion("rrf", (1.0, 1.0, 1.0))
    assert RunCode.read("fz40d50.m.6.mean~bm25~lsa").fusion == Fusion("z", (0.6, 0.2, 0.2), depth=50)
    assert RunCode.read("fr10.bm25.m.6.mean").fusion == Fusion("rrf", rank_constant=10)
    assert str(RunCode.read("fr60.bm25.m.6.mean")) == "fr.bm25.m.6.mean"  # one code for one run
    assert [RunCode.read(text).is_splade for text in ("sp.m", "m.6.mean", "bm25", "fr.bm25~sp.m")] == [
        True,
        *[False] * 3,
    ]
