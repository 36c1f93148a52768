"""The two tokenizers that come with the dashboard."""

import pytest

from components.model.files import example_tokenizers
from tests.support.places import ASSETS

TEXTS = ["The bank of the river.", "naïve 😀 Zażółć\n  x", "A  B"]


@pytest.mark.parametrize("key", example_tokenizers.EXAMPLES)
def test_the_files_are_small_and_what_training_gives(key, tmp_path):
    example_tokenizers.train(tmp_path)
    kept = ASSETS / "tokenizers" / f"{key}.json"
    assert kept.read_bytes() == (tmp_path / f"{key}.json").read_bytes()
    assert kept.stat().st_size < 150_000
    assert len(example_tokenizers.load(key).vocabulary) <= example_tokenizers.EXAMPLES[key].vocabulary_size


@pytest.mark.parametrize("text", TEXTS)
def test_bytes_come_back_as_typed(text):
    tokenization = example_tokenizers.load("bytes")
    tokens = tokenization.tokenize(text).tokens
    assert tokenization.decode([token.id for token in tokens], skip_special=True) == text
    assert tokenization.unknown_id not in {token.id for token in tokens}


@pytest.mark.parametrize("text", TEXTS)
def test_characters_are_one_piece_each(text):
    tokens = example_tokenizers.load("characters").tokenize(text).tokens[1:-1]
    assert [(token.start, token.end) for token in tokens] == [(index, index + 1) for index in range(len(text))]
    assert all(token.piece in (text[token.start], "[UNK]") for token in tokens)


def test_byte_level_pieces_stand_for_their_characters_without_the_space():
    tokens = example_tokenizers.load("bytes").tokenize("the bank").tokens[1:-1]
    assert (tokens[-1].piece, tokens[-1].start, tokens[-1].end) == ("Ġbank", 4, 8)


def test_long_text_is_not_truncated():
    assert example_tokenizers.load("characters").tokenize("a" * 20_000).dropped == ()


def test_each_says_what_it_learnt_from_and_what_its_counts_do_not_say():
    count = len(example_tokenizers.texts())
    said = example_tokenizers.limits("bytes")
    assert f"its {len(example_tokenizers.load('bytes').vocabulary):,} pieces from {count:,} short texts" in said
    assert "say nothing of GPT-2 or RoBERTa" in said
    said = example_tokenizers.limits("characters")
    assert "GPT-2" not in said
    assert "a character that these texts lack is unknown to it" in said
    assert "[UNK]" in {token.piece for token in example_tokenizers.load("characters").tokenize("ℵ").tokens}
