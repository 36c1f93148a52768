"""Masks as people write them, and words as pieces."""

from __future__ import annotations

import pytest

from components.model.guesses.masks import typed_masks, with_gaps, with_masks, word_id
from components.model.tokenization import Tokenization
from tests.support import tiny


@pytest.fixture(scope="module")
def bert() -> Tokenization:
    return Tokenization(tiny.tiny_tokenizer("bert"), 64, True)


@pytest.fixture(scope="module")
def roberta() -> Tokenization:
    return Tokenization(tiny.tiny_tokenizer("roberta"), 64, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a [mask] b <MASK>", "a [MASK] b [MASK]"),
        ("[Mask][MASK]", "[MASK][MASK]"),
        ("the mask, [masks] and < mask >", "the mask, [masks] and < mask >"),
        ("\\1 [MASK]", "\\1 [MASK]"),
        ("The capital is ___.", "The capital is [MASK]."),
        ("_____ and (___), “___”", "[MASK] and ([MASK]), “[MASK]”"),
        ("a __ b (__).", "a [MASK] b ([MASK])."),
        ("I like___. I like____ and like__.", "I like[MASK]. I like[MASK] and like__."),
        ("a__b, a___b, ___b, __init__ and _", "a__b, a___b, ___b, __init__ and _"),
        ("", ""),
    ],
)
def test_masks_are_written_as_the_tokenizer_does(bert, roberta, text, expected):
    assert with_masks(text, bert) == expected
    assert with_masks(text, roberta) == expected.replace("[MASK]", "<mask>")
    assert with_masks(with_masks(text, roberta), bert) == expected


@pytest.mark.parametrize("gap", ["...", "…", ".....", "_", "[ ]", "[]", "(...)", "[…]", "( )", "[_]", "[___]"])
def test_what_stands_alone_in_a_typed_sentence_is_a_gap(gap):
    assert with_gaps(f"She drinks {gap} with milk.") == "She drinks ___ with milk."
    assert with_gaps(f"{gap} is what she drinks, not {gap}, or {gap}!") == "___ is what she drinks, not ___, or ___!"
    assert with_gaps(f"She drinks {gap}") == ("She drinks ___." if set(gap) <= {".", "…"} else "She drinks ___")


@pytest.mark.parametrize(
    "text", ["Well... no.", "and so on...", "...no", "f() and a_b", "a[i] .. b", "(no) [x] [MASK]", "___", ""]
)
def test_signs_at_a_word_are_no_gap(text):
    assert with_gaps(text) == text


def test_a_tokenizer_without_a_mask_leaves_texts_alone(monkeypatch):
    tokenizer = tiny.tiny_tokenizer("bert")
    tokenizer.mask_token = None
    tokenization = Tokenization(tokenizer, 64, True)
    assert with_masks("a [mask]", tokenization) == "a [mask]"
    assert typed_masks(tokenization.tokenize("a [mask]"), tokenization) == ()


def test_typed_masks(bert):
    assert typed_masks(bert.tokenize("the [MASK] sat [MASK]", "a [MASK]"), bert) == (2, 4, 7)
    assert typed_masks(bert.tokenize("the cat"), bert) == ()


def test_a_word_is_a_piece_or_none(bert, roberta):
    assert word_id("Bank ", bert) == bert.vocabulary.index("bank")
    for word in ("walking", "zebra", "", "two words", "[MASK]"):
        assert word_id(word, bert) is None, word
    assert word_id("bank", roberta) == roberta.vocabulary.index("Ġbank")
    # At a text's beginning and inside a word no space belongs to the piece.
    assert word_id("an", roberta, "<mask> apple") == roberta.vocabulary.index("an")
