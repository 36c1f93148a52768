"""What a split says: each case, with its numbers by hand, and on the included model with sentence-transformers' cosine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from components.analysis.why.in_words import is_in_percent, of_outside, of_split
from components.analysis.why.ledger import Ledger, LedgerPart
from components.analysis.why.token_ledger import token_ledger
from components.model.backend import Backend


def ledger(first: Sequence[str], second: Sequence[str], values: Sequence[Sequence[float]]) -> Ledger:
    rows, columns = (
        tuple(
            LedgerPart(text, "special" if text.startswith("[") else "word", (number,))
            for number, text in enumerate(texts)
        )
        for texts in (first, second)
    )
    numbers = np.array(values, float)
    return Ledger(rows, columns, numbers, (), float(numbers.sum()), (1.0, 1.0), 6, "mean")


@pytest.mark.parametrize(
    ("first", "second", "values", "said"),
    [
        (
            ["a", "b"],
            ["x", "y"],
            [[0.4, 0.1], [0.2, 0.3]],
            "“a” with “x” gives the most, 40.0 % of it.",
        ),
        (["a", "b"], ["x", "y"], [[0.6, 0.1], [-0.1, 0.05]], "92.3 % of it; only “b” counts against it."),
        (["a", "b", "c"], ["x", "y"], [[0.9, 0.1], [-0.1, 0.0], [-0.1, 0.0]], "; “b” and “c” count against it."),
        (
            ["a", "b", "c", "d"],
            ["x", "y"],
            [[0.9, 0.1], [-0.1, 0.0], [-0.1, 0.0], [-0.2, 0.0]],
            "; 3 words count against it, most of all “d”.",
        ),
        # The only word that differs, and the usual story that it counts against the score is not told where it adds.
        (
            ["is", "ok"],
            ["is", "not", "ok"],
            [[0.3, 0.05, 0.1], [0.1, 0.05, 0.4]],
            "“not”, does not count against it: it adds 10 %",
        ),
        (
            ["is", "ok"],
            ["is", "not", "ok"],
            [[0.3, -0.05, 0.1], [0.1, -0.05, 0.4]],
            "“not”, takes away 12 % (“ok” gives",
        ),
        (
            ["is", "not", "ok"],
            ["is", "ok"],
            [[0.3, 0.1], [0.02, 0.02], [0.1, 0.4]],
            "The only word that differs, “not”",
        ),
        # A small cosine is not divided by: parts are written as they are.
        (["a"], ["x"], [[0.05]], "“a” with “x” gives the most, +0.050"),
        (["a", "b"], ["x", "y"], [[-0.2, -0.1], [-0.1, -0.3]], "No pair of words adds to it; 4 words count against it"),
        # A pair with a special token can give more than each pair of words, and is not passed over.
        (
            ["[CLS]", "a"],
            ["[CLS]", "x"],
            [[0.011, 0.0], [0.001, 0.007]],
            "Of the words, “a” with “x” gives the most, +0.007 ([CLS] with [CLS] gives more, +0.011).",
        ),
        (["[CLS]", "a"], ["[CLS]", "x"], [[0.3, 0.1], [0.1, 0.5]], "gives the most, 50.0 % of it."),
        (
            ["[CLS]", "a"],
            ["x"],
            [[0.4], [-0.1]],
            "No pair of words adds to it ([CLS] with “x” gives 133.3 %); only “a”",
        ),
        (["[CLS]"], ["x"], [[0.5]], "One of the texts has no word of its own."),
    ],
)
def test_each_case(first: list[str], second: list[str], values: list[list[float]], said: str) -> None:
    found = of_split(ledger(first, second, values))
    assert said in found
    assert found.startswith(("Of the words, ", "No pair")) == ("([CLS]" in found or "No pair" in found)


def test_what_special_tokens_give_is_said_where_it_is_much() -> None:
    much = ledger(["[CLS]", "a"], ["[CLS]", "x"], [[0.2, 0.1], [0.0, 0.3]])
    assert of_outside(much) == "Pairs with special tokens or punctuation give 50 % in all."
    assert of_outside(ledger(["[CLS]", "a"], ["[CLS]", "x"], [[0.02, 0.0], [0.0, 0.5]])) == ""  # little
    assert of_outside(ledger(["[CLS]", "a"], ["[CLS]", "x"], [[-0.2, 0.0], [0.0, 0.5]])) == ""  # they take away
    assert (
        of_outside(ledger(["[CLS]", "a"], ["[CLS]", "x"], [[0.05, 0.0], [0.0, 0.0]])) == ""
    )  # no shares of a small sum


def test_small_and_negative_cosines_have_no_percent() -> None:
    assert [is_in_percent(value) for value in (-0.5, 0.0, 0.0999, 0.1, 1.0)] == [False, False, False, True, True]


def test_words_are_made_safe() -> None:
    assert "“<A>” with “<X>”" in of_split(ledger(["a"], ["x"], [[0.5]]), lambda text: f"<{text.upper()}>")


def test_the_sentence_names_the_largest_cell_of_the_matrix(embedded: Backend) -> None:
    trace = embedded.trace(["The cat sat on the mat.", "Stocks fell sharply in Tokyo."])
    split = token_ledger(trace, trace.n_layers, "mean", 0, 1)
    said = of_split(split)
    row, column = np.unravel_index(int(split.contributions.argmax()), split.contributions.shape)
    parts = split.first[row], split.second[column]
    assert "special" in {part.kind for part in parts}  # else this pair of texts is no example
    names = [part.text if part.kind == "special" else f"“{part.text}”" for part in parts]
    assert f"({' with '.join(names)} gives more, {split.contributions.max():+.3f})" in said
    of_words = np.ix_(*([part.kind == "word" for part in parts] for parts in (split.first, split.second)))
    assert f"gives the most, {split.contributions[of_words].max():+.3f} (" in said
    assert said.startswith("Of the words, ")


UNSEEN = (
    ("Hello", "Goodbye"),
    ("Same here.", "Same here."),
    ("Der Hund schläft.", "Ein Hund bellt laut."),
    (" ".join(f"word{number}" for number in range(28)), "One word."),
    ("The patient is allowed to leave.", "The patient is not allowed to leave."),
    ("!!!", "???"),
    ("A red hat.", "A blue hat."),
    ("I put money in the bank.", "We sat on the bank of the river."),
    ("x", "y"),
    ("The dog bit the man.", "The man bit the dog."),
)


@pytest.mark.parametrize("texts", UNSEEN)
def test_the_parts_sum_to_the_cosine_of_sentence_transformers(
    embedded: Backend, embedded_folder: Path, texts: tuple[str, str]
) -> None:
    from sentence_transformers import SentenceTransformer

    trace = embedded.trace(list(texts))
    split = token_ledger(trace, trace.n_layers, "mean", 0, 1)
    first, second = SentenceTransformer(str(embedded_folder), device="cpu").encode(list(texts)).astype(np.float64)
    plain = float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))
    assert split.contributions.sum() == pytest.approx(plain, abs=1e-5)
    said = of_split(split)
    assert said.endswith(".")
    assert "nan" not in said
    assert len(said) <= 200
