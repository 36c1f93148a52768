"""Claims are measured as plain numpy measures them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from components.arrays import cosine
from components.lessons.claims import parse_claim

SENTENCES = ("We will rob a bank next week!", "An unputdownable bank.")


def measured(embedded: Any, text: str) -> str:
    return parse_claim(text, 1).problem(embedded, SENTENCES)


def test_cosines_are_those_of_the_trace(embedded: Any) -> None:
    trace = embedded.trace(SENTENCES)
    hidden = trace.hidden_states
    word = cosine(hidden[6, 0, 5], hidden[6, 1, [2, 3, 4, 5]].mean(0))
    assert trace.sentences[1].tokens[2].piece == "un"
    for claim, value in (
        ("cosine(bank@1, unputdownable@2, 6)", word),
        ("cosine(5@1, 2@2, 0)", cosine(hidden[0, 0, 5], hidden[0, 1, 2])),
        ("cosine(CLS@1, CLS@2, 6)", cosine(hidden[6, 0, 0], hidden[6, 1, 0])),
        ("cosine(MEAN@1, MEAN@2, 6)", cosine(hidden[6, 0, :10].mean(0), hidden[6, 1, :9].mean(0))),
    ):
        assert measured(embedded, f"{claim} = {float(value):.2f}") == ""
        assert measured(embedded, f"{claim} < {float(value) - 0.01:.4f}").startswith("it measures ")
        assert measured(embedded, f"{claim} > {float(value) - 0.01:.4f}") == ""


def test_attention_and_counts(embedded: Any) -> None:
    attentions = embedded.trace(SENTENCES, attentions=True).attentions
    share = float(attentions[0][0, 2][5, 4])
    assert share > 0.99
    assert measured(embedded, f"attention(0, 2, bank@1, a@1) = {share:.2f}") == ""
    pieces = np.array([attentions[3][1, head][np.ix_([2, 3, 4, 5], [6])].mean() for head in range(12)])
    head, share = int(pieces.argmax()), float(pieces.max())  # what each piece of a word gives, on average
    claim = f"attention(3, {head}, unputdownable@2, bank@2)"
    assert (
        measured(embedded, f"{claim} > {share - 1e-3:.4f}") == measured(embedded, f"{claim} < {share + 1e-3:.4f}") == ""
    )
    assert measured(embedded, "tokens(1) = 10") == ""
    assert measured(embedded, "tokens(1) = 9") == "it measures 10.0000"
    assert measured(embedded, "pieces(unputdownable@2) = 4") == ""
    assert measured(embedded, "pieces(unputdownable@2) > tokens(1)") == "it measures 4.0000 and 10.0000"


def test_equal_is_equal_after_rounding(embedded: Any) -> None:
    value = float(np.float64(cosine(*embedded.trace(SENTENCES).hidden_states[6, 0, [5, 4]])))
    assert measured(embedded, f"cosine(bank@1, a@1, 6) = {value:.2f}") == ""
    assert measured(embedded, f"cosine(bank@1, a@1, 6) = {value + 0.01:.2f}").startswith("it measures")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cosine(river@1, a@1, 6) < 1", "it cannot be measured: sentence 1 has no word river"),
        ("cosine(bank@3, a@1, 6) < 1", "it cannot be measured: there is no sentence 3"),
        ("cosine(bank@1, a@1, 7) < 1", "it cannot be measured: the model has no layer 7"),
        ("cosine(10@1, a@1, 6) < 1", "it cannot be measured: sentence 1 has no token 10"),
        ("attention(6, 0, bank@1, a@1) < 1", "it cannot be measured: the model has no block 6 with a head 0"),
        ("attention(0, 12, bank@1, a@1) < 1", "it cannot be measured: the model has no block 0 with a head 12"),
        ("attention(0, 0, bank@1, bank@2) < 1", "it cannot be measured: attention stays within one sentence"),
    ],
)
def test_what_the_sentences_do_not_have_is_said(embedded: Any, text: str, problem: str) -> None:
    assert measured(embedded, text) == problem


@pytest.mark.parametrize(
    ("value", "misrounded"), [(0.12496, ""), (0.12502, ""), (0.12508, "0.13 (0.12508)"), (0.11490, "0.11 (0.11490)")]
)
def test_a_measure_near_half_way_may_be_written_either_way(value: float, misrounded: str) -> None:
    claim = replace(parse_claim("cosine(a@1, b@1, 0) = 0.12", 1), first=SimpleNamespace(value=lambda trace: value))
    assert claim.misrounded(SimpleNamespace(trace=lambda *_, **__: None), ()) == misrounded
    up = replace(claim, second=parse_claim("tokens(1) = 0.13", 1).second)
    assert (up.misrounded(SimpleNamespace(trace=lambda *_, **__: None), ()) == "") is (value > 0.1249)
