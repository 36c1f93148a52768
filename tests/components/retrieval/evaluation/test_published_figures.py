"""The published figures: each number as it was printed, found by task, model and pooling."""

from __future__ import annotations

import pytest

from components.model.catalog import catalog_spec
from components.retrieval.evaluation.published_figures import PUBLISHED, hub_id_of, published_for

BERT, MSMARCO = "google-bert/bert-base-uncased", "sentence-transformers/msmarco-bert-base-dot-v5"


@pytest.mark.parametrize(
    ("model", "pooling", "values"),
    [
        (BERT, "mean", (46.86, 63.78, 70.00, 75.79, 82.36)),
        (BERT, "cls", (10.83, 18.11, 21.72, 26.01, 32.72)),
        (MSMARCO, "mean", (90.15, 95.89, 96.89, 97.68, 98.35)),
        (MSMARCO, "cls", (3.34, 8.44, 11.84, 16.26, 23.54)),
    ],
)
def test_recall_by_model_and_pooling(model, pooling, values):
    (result,) = published_for("retrieval", model, pooling)
    assert result.values == tuple((f"recall@{k}", value) for k, value in zip((1, 5, 10, 20, 50), values, strict=True))
    assert result.n == 36_000
    assert "the split's seed is not published" in result.remarks


@pytest.mark.parametrize(("model", "other"), [(BERT, "46.94"), (MSMARCO, "90.37")])
def test_what_the_text_says_besides_its_table_is_a_remark(model, other):
    (result,) = published_for("retrieval", model, "mean")
    assert any(other in remark for remark in result.remarks)
    assert str(result.value("recall@1")) != other


def test_similarity_by_split_and_training():
    (bert,) = published_for("similarity", BERT, split="validation")
    assert (bert.value("spearman"), bert.n, bert.trained_on) == (59.32, 1_500, "")
    (tuned,) = published_for("similarity", BERT, trained=True)
    assert (tuned.value("spearman"), tuned.trained_on) == (76.74, "SNLI")
    assert set(published_for("similarity", BERT, trained=None)) == {bert, tuned}
    assert published_for("similarity", BERT, split="test") == ()
    assert bert.value("recall@1") is None


def test_the_embedded_model_is_known_for_what_it_is():
    (result,) = published_for(model="embedded")
    assert (result.value("spearman"), result.split, result.n) == (82.03, "test", 1_379)
    assert published_for(model="sentence-transformers/all-MiniLM-L6-v2") == (result,)
    assert published_for("retrieval", "embedded") == ()
    assert result.source == "a published result whose source is not known"


def test_a_short_name_finds_the_same_model():
    assert hub_id_of("bert-base-uncased") == BERT
    assert published_for(model="bert-base-uncased") == published_for(model=BERT)
    assert hub_id_of("somebody/else") == "somebody/else"
    assert published_for(model="somebody/else") == ()


def test_every_result_names_its_source_and_a_model_of_the_catalog():
    for result in PUBLISHED:
        spec = catalog_spec(result.model)
        assert spec is not None
        assert spec.key == result.model
        assert result.source
        assert "our" not in result.source.split()
        assert result.pooling in ("mean", "cls")
        assert all(0 < value < 100 for _, value in result.values)
    assert len({result.title for result in PUBLISHED}) == len(PUBLISHED)


def test_only_about_as_many_pairs_are_comparable():
    (result,) = published_for("similarity", "embedded")
    assert result.is_comparable(1_379)
    assert result.is_comparable(1_370)  # some rows could not be used
    assert not result.is_comparable(1_500)  # the validation split
    (recalls, *_) = published_for("retrieval")
    assert [recalls.is_comparable(count) for count in (35_639, 35_640, 36_360, 36_361)] == [False, True, True, False]
