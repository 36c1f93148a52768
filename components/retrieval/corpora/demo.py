"""The texts that come with the program: a corpus to search, and the sample of sentences behind every baseline."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from components.folders import ASSETS
from components.retrieval.corpora.corpus import Corpus, read_corpus
from components.retrieval.corpora.minimal_pairs import read_minimal_pairs


@cache
def demo_corpus() -> Corpus:
    """630 news-like sentences with a headline and a topic each."""
    # The operator's limits are for other people's files.
    return replace(
        read_corpus(ASSETS / "demo_corpus.jsonl", "demo_corpus.jsonl", "sentence", limits=None), name="Demo news"
    )


@cache
def sentences_that_differ() -> Corpus:
    """The included minimal pairs as sentences to search: most have a neighbour that differs from them in one thing."""
    pairs = read_minimal_pairs(ASSETS / "minimal_pairs.jsonl", "minimal_pairs.jsonl", limits=None)
    texts = tuple(dict.fromkeys(text for pair in zip(pairs.first, pairs.second, strict=True) for text in pair))
    return Corpus("Pairs that differ in one thing", texts)


@cache
def demo_sentences() -> tuple[str, ...]:
    """The sample in which unrelated tokens and sentences are compared (components.analysis.similarity.baseline)."""
    return tuple((ASSETS / "demo_sentences.txt").read_text(encoding="utf-8").splitlines())
