"""The findings say what the curves show, also where the usual story is false."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.similarity.cosines import LayerCurves
from components.charts.curves import BandData
from dashboard.views.layers import findings


def curves(*values: list[float]) -> LayerCurves:
    labels = tuple(f"pair {number}" for number in range(1, len(values) + 1))
    return LayerCurves(labels, tuple((0, number) for number in range(1, len(values) + 1)), np.array(values))


def band(reach: float, layers: int = 3) -> BandData:
    return BandData(np.full(layers, 0.03), np.zeros(layers), np.full(layers, reach), "unrelated tokens")


@pytest.mark.parametrize(
    ("values", "reach", "said"),
    [
        (
            ([0.97, 0.8, 0.745], [0.98, 0.9, 0.856]),
            0.176,
            "The two move apart until layer 2: a and b 0.745, c and d 0.856; unrelated tokens: mean 0.03, 95 % below 0.18.",
        ),
        (
            ([0.99, 0.99, 0.98], [0.98, 0.98, 0.97]),
            0.2,
            "The two hardly differ at any layer: c and d 0.970, a and b 0.980",
        ),
        (([0.5, 0.51, 0.52], [0.6, 0.6, 0.6]), 0.2, "The two hardly move from layer 0 to layer 2: a and b 0.520"),
        (([0.2, 0.4, 0.6], [0.3, 0.5, 0.7]), 0.2, "The two come closer until layer 2"),
        (([0.9, 0.5, 0.7], [0.9, 0.5, 0.7]), 0.2, "The two move apart until layer 1 and come closer again"),
        (([0.4, 0.9, 0.5], [0.4, 0.9, 0.5]), 0.2, "The two come closer until layer 1 and move apart again"),
        (
            ([0.9, 0.5, 0.1], [0.9, 0.5, 0.15]),
            0.2,
            "c and d 0.150; not above 95 % of unrelated tokens (mean 0.03, 95 % below 0.20).",
        ),
        (([0.9, 0.8, 0.7],), 0.2, "The two move apart until layer 2: 0.900 at layer 0, 0.700 after the last block"),
        (([np.nan, np.nan, np.nan],), 0.2, "There is no value to show."),
    ],
)
def test_occurrences_move_as_their_curves_do(values: tuple[list[float], ...], reach: float, said: str) -> None:
    labels = ["a and b", "c and d"][: len(values)]
    assert said in findings.of_occurrences("The two", labels, curves(*values), band(reach))
    assert "unrelated" not in findings.of_occurrences("The two", labels, curves(*values), None)


def test_a_word_that_occurs_once_says_what_is_shown_instead() -> None:
    shown = curves([0.1, 0.3, 0.62], [0.1, 0.2, 0.4])
    others = ["suitcase", "fit"]
    said = findings.of_one_occurrence("“trophy”", "content words", others, shown, band(0.18), are_nearest=True)
    assert said == (
        "“trophy” occurs once; the nearest content words of its sentence are suitcase 0.620 and fit 0.400; unrelated tokens: "
        "mean 0.03, 95 % below 0.18."
    )
    single = curves([0.1, 0.1, 0.1])
    alone = findings.of_one_occurrence("“a”", "words", ["b"], single, band(0.2), are_nearest=True)
    assert alone.endswith(
        "the nearest word of its sentence is b 0.100; not above 95 % of unrelated tokens (mean 0.03, 95 % below 0.20)."
    )
    nothing = LayerCurves((), (), np.empty((0, 3)))
    assert (
        findings.of_one_occurrence("“a”", "tokens", [], nothing, None, are_nearest=True)
        == "“a” has nothing in its sentence to be compared with."
    )


def test_beside_another_model_words_are_sorted_by_its_values_and_not_called_nearest() -> None:
    shown = curves([0.1, 0.3, 0.15], [0.1, 0.2, 0.4])  # the first model had them the other way round
    said = findings.of_one_occurrence("“it”", "content words", ["suitcase", "fit"], shown, band(0.2), are_nearest=False)
    assert said == (
        "“it” occurs once; shown with content words of its sentence: fit 0.400 and suitcase 0.150; unrelated tokens: "
        "mean 0.03, 95 % below 0.20."
    )
    one = findings.of_one_occurrence("“it”", "words", ["of"], curves([0.1, 0.3, 0.5]), None, are_nearest=False)
    assert one == "“it” occurs once; shown with a word of its sentence: of 0.500."


def test_a_token_with_all_others_names_the_two_most_similar() -> None:
    values = np.array([[0.1, 0.3, 0.6], [0.3, 0.1, 0.3], [0.0, 0.0, 0.1]])
    said = findings.of_all_tokens("“bank”", ["“river”", "“of”", "“.”"], values)
    assert said == "After the last block “bank” is most like “river” (0.60, from 0.10 at layer 0), then “of” (0.30)."
    assert findings.of_all_tokens("“bank”", ["“river”"], values[:1]).endswith("(0.60, from 0.10 at layer 0).")
    assert "no other token" in findings.of_all_tokens("“bank”", [], np.empty((0, 3)))


def test_sentences_name_the_nearest_pair_only_where_one_stands_out() -> None:
    labels = ["1 and 2", "1 and 3", "2 and 3"]
    apart = curves([0.5, 0.5, 0.21], [0.5, 0.5, 0.44], [0.5, 0.5, 0.19])
    said = findings.of_sentences(labels, apart, band(0.22), "the mean")
    assert said == (
        "By the mean, sentences 1 and 3 end nearest (0.440), 2 and 3 farthest (0.190); only the nearest ends "
        "above 95 % of unrelated pairs (0.22)."
    )
    for reach, ending in (
        (0.5, "; none of the 3 pairs ends above 95 % of unrelated pairs (0.50)."),
        (0.2, "; 2 of the 3 pairs end above 95 % of unrelated pairs (0.20)."),
        (0.1, "; all 3 pairs end above 95 % of unrelated pairs (0.10)."),
    ):
        assert findings.of_sentences(labels, apart, band(reach), "the mean").endswith(ending)
    tied = curves(
        [0.5, 0.5, -0.0530001], [0.5, 0.5, 0.44], [0.5, 0.5, -0.0530002]
    )  # two equal sentences, but for rounding
    assert "1 and 2 farthest" in findings.of_sentences(labels, tied, None, "the mean")
    words = findings.of_sentences(["“a” and “b”", "“a” and “c”", "“b” and “c”"], apart, None, "the mean", of_words=True)
    assert words == "By the mean, the sentences with “a” and “c” end nearest (0.440), “b” and “c” farthest (0.190)."
    level = curves([0.9, 0.9, 0.79], [0.9, 0.9, 0.82], [0.9, 0.9, 0.78])
    said = findings.of_sentences(labels, level, band(0.85), "the maximum")
    assert "no pair stands out after the last block: 0.780 to 0.820; none of the 3 pairs ends above 95 % of" in said
    one = findings.of_sentences(labels, level, band(0.8), "the maximum")
    assert one.endswith("0.780 to 0.820; 1 of the 3 pairs ends above 95 % of unrelated pairs (0.80).")
    first = curves([1.0, 1.0, 0.87], [1.0, 1.0, 0.63], [1.0, 1.0, 0.68])
    assert findings.of_sentences(labels, first, None, "[CLS]").endswith("All are the same up to layer 1.")
    one = findings.of_sentences(labels[:1], curves([1.0, 1.0, 1.0]), None, "[CLS]")
    assert (
        one == "By [CLS], the two sentences hardly differ at any layer: 1.000 at layer 0, 1.000 after the last block."
    )


NAMES = ("rob", "river", "money")


def three(*values: list[float]) -> LayerCurves:
    """Curves of all pairs of three occurrences."""
    return LayerCurves(("rr", "rm", "im"), ((0, 1), (0, 2), (1, 2)), np.array(values))


def test_the_occurrence_that_moves_away_is_named() -> None:
    moved = three([0.98, 0.9, 0.773], [0.98, 0.9, 0.856], [0.97, 0.9, 0.745])
    assert findings.of_one_that_moves_away("bank", NAMES, moved, band(0.18)) == (
        "The “bank” beside “river” moves away from the other two: cosine 0.74 and 0.77 after the last block, 0.86 "
        "between those; unrelated tokens: mean 0.03, 95 % below 0.18."
    )
    still = findings.of_one_that_moves_away("bank", NAMES, three([0.9, 0.773], [0.86, 0.856], [0.9, 0.745]), None)
    assert "still 0.86 between those" in still
    assert findings._span(np.array([0.9, 0.7, 0.8])) == "0.70 to 0.90"
    numbered = findings.of_one_that_moves_away("bank", ("sentence 1", "sentence 2", "sentence 3"), moved, None)
    assert numbered.startswith("The “bank” of sentence 2 moves away")


@pytest.mark.parametrize(
    "values",
    [
        ([0.98, 0.9, 0.79], [0.98, 0.9, 0.80], [0.97, 0.9, 0.78]),  # all move apart alike
        ([0.70, 0.7, 0.75], [0.98, 0.9, 0.95], [0.70, 0.7, 0.75]),  # it was away from the start, and comes closer
        ([0.98, 0.9, np.nan], [0.98, 0.9, 0.856], [0.97, 0.9, 0.745]),  # a word that one model does not have
    ],
)
def test_none_is_said_to_move_away_where_none_does(values: tuple[list[float], ...]) -> None:
    assert findings.of_one_that_moves_away("bank", NAMES, three(*values), band(0.18)) == ""
    pair = LayerCurves(("a",), ((0, 1),), np.array([[0.9, 0.5, 0.2]]))
    assert findings.of_one_that_moves_away("bank", NAMES[:2], pair, None) == ""
