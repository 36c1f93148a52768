"""The nearest words, by all cosines of plain transformers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from components.analysis.first_look import nearest as module
from components.analysis.first_look.nearest import NEAREST, WordCollection, WordPlace, WordStore
from components.model.backend import Backend
from tests.support import plain_encoder as plain

TEXTS = (
    "The bank raised its mortgage rate.",
    "An otter slid down the bank.",
    "Banks lend money.",
    "She opened a savings account.",
    "The river rose.",
    "Willows lean over the muddy bank where the bank ends.",
    "He laughed.",
)
SENSES = {TEXTS[0]: [("bank", "money")], TEXTS[1]: [("bank", "river")]}


@pytest.fixture(scope="module")
def store(embedded: Backend) -> WordStore:
    return collected(embedded, None)


def collected(embedded: Backend, folder: Path | None) -> WordStore:
    with WordCollection(SENSES, folder) as collection:
        collection.add(embedded.trace(TEXTS[:3]))
        collection.add(embedded.trace(TEXTS[3:]))
        return collection.store()


def test_in_files_without_a_name_they_are_the_same(embedded: Backend, store: WordStore, tmp_path: Path) -> None:
    kept = collected(embedded, tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert kept.nbytes == 0
    assert kept.places == store.places
    for in_file, in_memory in zip(kept.layers, store.layers, strict=True):
        np.testing.assert_array_equal(in_file, in_memory)


def test_each_word_stands_where_it_says(store: WordStore) -> None:
    assert store.sentences == TEXTS
    for place in store.places:
        assert store.sentences[place.sentence][place.start : place.end] == place.text
    assert {place.sense for place in store.places if place.text == "bank" and place.sentence < 2} == {"money", "river"}
    assert {place.sense for place in store.places if place.sentence > 1} == {""}
    assert store.nbytes == sum(layer.nbytes for layer in store.layers)
    assert len(store.layers) == 7


@pytest.mark.parametrize("layer", [0, 3, 6])
def test_the_nearest_words_by_all_cosines(store: WordStore, layer: int) -> None:
    query = plain.run("They walked along the bank.").word("bank")
    expected = {}
    for text in TEXTS:
        run = plain.run(text)
        values = []
        for number in {word for word in run.words if word is not None}:
            places = [place for place, word in enumerate(run.words) if word == number]
            if run.pieces[places[0]].isalnum():
                values.append(float(plain.cosine(query[layer], run.vectors[layer, places].mean(axis=0))))
        expected[text] = max(values)
    (found,) = store.nearest(query[[layer]], ["They walked along the bank."], layer)
    assert [item.cosine for item in found[:NEAREST]] == pytest.approx(
        sorted(expected.values(), reverse=True)[:NEAREST], abs=2e-3
    )
    assert len({item.sentence for item in found}) == len(found)
    for item in found:
        assert item.cosine == pytest.approx(expected[item.sentence], abs=2e-3)


def test_its_own_sentence_is_left_out(store: WordStore) -> None:
    query = plain.run(TEXTS[1]).word("bank")[[6]]
    (found,) = store.nearest(query, [TEXTS[1]])
    assert TEXTS[1] not in {item.sentence for item in found}
    (all_of_them,) = store.nearest(query, ["another"])
    assert all_of_them[0].sentence == TEXTS[1]


def by_hand(cosines: list[float]) -> WordStore:
    """Words of a sentence each, at these cosines to the first axis."""
    vectors = np.array([[value, np.sqrt(1 - value**2)] for value in cosines], np.float16)
    texts = tuple(f"word {number}" for number in range(len(cosines)))
    return WordStore(
        texts, tuple(WordPlace(number, "word", 0, 4) for number in range(len(cosines))), (vectors, vectors)
    )


def test_words_as_near_as_the_last_are_among_them() -> None:
    (found,) = by_hand([0.5] * 9 + [0.1]).nearest(np.array([[1.0, 0.0]]), [""])
    assert len(found) == 9
    (found,) = by_hand([0.9, 0.8, 0.7, 0.6, 0.5, 0.4]).nearest(np.array([[1.0, 0.0]]), [""])
    assert [item.sentence for item in found] == [f"word {number}" for number in range(NEAREST)]


def test_words_beyond_the_first_that_are_sorted_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_SORTED", 2)
    (found,) = by_hand([0.1, 0.9, 0.3, 0.8, 0.5, 0.7]).nearest(np.array([[1.0, 0.0]]), [""])
    assert [item.sentence for item in found] == ["word 1", "word 3", "word 5", "word 4", "word 2"]


def test_sentences_without_a_word_are_refused() -> None:
    with pytest.raises(ValueError, match="no word"):
        WordCollection({}).store()


def test_what_one_in_200_pairs_of_unrelated_words_exceeds(store: WordStore) -> None:
    """Of so few words all pairs are taken that are no form twice and stand in two sentences."""
    words = [(place.text.lower(), place.sentence) for place in store.places]
    pairs = [
        (a, b)
        for a, (form, sentence) in enumerate(words)
        for b, (other, elsewhere) in enumerate(words[:a])
        if form != other and sentence != elsewhere
    ]
    for layer, vectors in enumerate(store.layers):
        cosines = [float(np.dot(vectors[a].astype(float), vectors[b].astype(float))) for a, b in pairs]
        assert store.unrelated[layer] == pytest.approx(np.percentile(cosines, 99.5), abs=0.01)


def test_words_of_one_sentence_have_no_unrelated_pair(embedded: Backend) -> None:
    with WordCollection({}) as collection:
        collection.add(embedded.trace(TEXTS[:1]))
        assert np.isnan(collection.store().unrelated).all()
