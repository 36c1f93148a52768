"""Lengths, what is cut off, and the estimate."""

from __future__ import annotations

import numpy as np
import pytest

from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.corpora.facts import corpus_facts, estimate


def facts_of(lengths, max_length, bins=None):
    corpus = read_corpus("\n".join(f"s{i}" for i in range(len(lengths))).encode(), "a.txt")
    return corpus_facts(corpus, np.array(lengths), max_length)


def test_what_is_cut_off_is_counted():
    facts = facts_of([3, 8, 9, 20], max_length=8)
    assert (facts.sentences, facts.truncated, facts.truncated_share) == (4, 2, 0.5)
    assert facts.mean_tokens == (3 + 8 + 8 + 8) / 4


@pytest.mark.parametrize("bins", [1, 3, 40])
def test_every_sentence_is_in_one_bar(bins):
    lengths = [0, 1, 1, 5, 39, 40, 41, 41]
    counts, edges = facts_of(lengths, 512).histogram(bins)
    assert len(counts) <= bins
    assert len(edges) == len(counts) + 1
    assert len(set(np.diff(edges))) == 1
    for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True):
        assert count == sum(low <= length < high for length in lengths)
    assert counts.sum() == len(lengths)


def test_lengths_are_kept_apart_and_read_only():
    lengths = np.array([1, 2])
    facts = facts_of(lengths, 8)
    with pytest.raises(ValueError, match="read-only"):
        facts.token_lengths[0] = 5
    lengths[0] = 7
    assert facts.token_lengths.tolist() == [1, 2]


def test_lengths_must_be_one_a_sentence():
    corpus = read_corpus(b"a\nb", "a.txt")
    with pytest.raises(ValueError, match="2 texts"):
        corpus_facts(corpus, np.array([1]), 8)


def test_lengths_come_from_a_models_tokenizer(embedded):
    corpus = read_corpus(b"Hello world.\nA dog.", "a.txt")
    lengths = np.array(
        [len(tokens) for tokens in (["[CLS]", "hello", "world", ".", "[SEP]"], ["[CLS]", "a", "dog", ".", "[SEP]"])]
    )
    tokenized = embedded.tokenize(list(corpus.texts))
    assert [len(sentence.tokens) for sentence in tokenized] == lengths.tolist()


def test_a_million_sentences_at_all_layers_and_poolings_are_16_gb():
    """The embedded model: 7 hidden states of 384 numbers; float16; mean, cls and max."""
    cost = estimate(1_000_000, 20, dim=384, layers=7, poolings=3, dtype_bytes=2, sentences_per_second=1_000)
    vectors = 1_000_000 * 384 * 7 * 3 * 2
    assert vectors == 16_128_000_000
    assert vectors < cost.disk_bytes < 1.02 * vectors  # the texts are small beside them
    assert cost.seconds == 1_000
    # Searching holds one layer and pooling, not 21.
    assert 384 * 4 * 1_000_000 < cost.memory_bytes < 384 * 5 * 1_000_000


def test_the_estimate_of_the_texts_is_near_what_english_takes():
    texts = ["The president announced on Monday that the new law would come into force next year."] * 10
    cost = estimate(10, 18, dim=1, layers=1, poolings=1, dtype_bytes=1, sentences_per_second=1)
    vectors = 10  # one byte for each
    assert cost.disk_bytes - vectors == pytest.approx(sum(len(text) for text in texts), rel=0.25)


@pytest.mark.parametrize("wrong", [{"sentences": 0}, {"layers": 0}, {"sentences_per_second": 0.0}, {"mean_tokens": 0}])
def test_an_estimate_needs_positive_numbers(wrong):
    options = dict(sentences=1, mean_tokens=1, dim=1, layers=1, poolings=1, dtype_bytes=1, sentences_per_second=1.0)
    with pytest.raises(ValueError, match="positive"):
        estimate(**{**options, **wrong})
