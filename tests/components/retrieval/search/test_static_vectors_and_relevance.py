"""Averaged word vectors, and precision of judged hits, by hand."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from components.errors import InputError
from components.retrieval.search.relevance import Judgements
from components.retrieval.search.static_vectors import StaticRanker, read_static_vectors

GLOVE = b"cat 1 0\ndog 0.8 0.6\nCar 0 1\nbroken 1\nodd x y\nnan nan 1\ncat 9 9\n"


def test_a_text_file_is_read_and_bad_lines_are_counted():
    vectors = read_static_vectors(GLOVE, "glove.txt")
    assert list(vectors.rows) == ["cat", "dog", "Car"]
    np.testing.assert_allclose(vectors.matrix, [[1, 0], [0.8, 0.6], [0, 1]])
    assert vectors.bad_lines == 3
    assert vectors.find("Cat") == 0
    assert vectors.find("Car") == 2
    assert vectors.find("CAR") is None
    same = read_static_vectors(gzip.compress(b"3 2\n" + GLOVE, mtime=0), "word2vec.vec.gz")
    np.testing.assert_array_equal(same.matrix, vectors.matrix)
    assert len(read_static_vectors(GLOVE, "g", max_words=2).rows) == 2


@pytest.mark.parametrize(("raw", "word"), [(b"\x00\x01binary", "binary"), (b"", "no line"), (b"a\nb\n", "no line")])
def test_other_files_are_refused(raw, word):
    with pytest.raises(InputError, match=word):
        read_static_vectors(raw, "x.bin")


def test_a_sentence_is_the_mean_of_its_words():
    vectors = read_static_vectors(GLOVE, "glove.txt")
    ranker = StaticRanker.of_words(vectors, ["cat dog", "Cat unknown", "unknown"])
    mean = np.array([0.9, 0.3]) / np.hypot(0.9, 0.3)
    np.testing.assert_allclose(ranker.scores("dog"), [mean @ [0.8, 0.6], 0.8, 0], rtol=1e-5)
    np.testing.assert_array_equal(ranker.scores("nothing known"), [0, 0, 0])


def test_bytes_are_those_of_the_sentences_vectors(embedded):
    vectors = read_static_vectors(GLOVE, "glove.txt")
    assert [StaticRanker.of_words(vectors, ["cat"] * count).nbytes for count in (1, 9)] == [8, 72]
    assert StaticRanker.of_model(embedded, ["cat", "dog"]).nbytes == 2 * 4 * embedded.facts.hidden_size


def test_a_models_own_embeddings_serve(embedded):
    texts = ["unputdownable book", "a cat", ""]
    ranker = StaticRanker.of_model(embedded, texts)
    matrix = embedded.encoder.embeddings.word_embeddings.weight.detach().numpy()

    def mean(text: str) -> np.ndarray:
        ids = [token.id for token in embedded.tokenize([text])[0].tokens if not token.special]
        return matrix[ids].mean(axis=0)

    query = mean("novel")
    expected = [mean(text) @ query / np.linalg.norm(mean(text)) / np.linalg.norm(query) for text in texts[:2]]
    np.testing.assert_allclose(ranker.scores("novel"), [*expected, 0], atol=1e-5)
    assert not embedded.word_embeddings().flags.writeable


def test_precision_counts_what_is_marked_relevant():
    marked = Judgements().mark("q", 3, True).mark("q", 5, False).mark("q", 9, True).mark("other", 1, True)
    found = marked.precision("q", [3, 4, 5, 9, 7, 8], 5)
    assert (found.value, found.unjudged) == (2 / 5, 2)
    assert marked.precision("q", [3], 5).value == 1 / 5
    assert marked.precision("never asked", [3], 1).value == 0
    back = marked.mark("q", 3, None)
    assert back.of("q") == {5: False, 9: True}
    assert marked.of("q") == {3: True, 5: False, 9: True}  # records do not change
    assert "other" not in back.mark("other", 1, None).marks
    assert marked.within(5).marks == {"q": {3: True}, "other": {1: True}}  # of a corpus of five, numbers 0 to 4
    assert marked.within(1).marks == {}
    assert marked.by_text(np.array([0, 1, 2, 1, 4, 0, 6, 7, 8, 9])).marks == {
        "q": {1: True, 0: False, 9: True},
        "other": {1: True},
    }
    with pytest.raises(ValueError, match="k is 0"):
        marked.precision("q", [3], 0)
