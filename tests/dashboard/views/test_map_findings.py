"""The sentence above the maps: each of its cases, and the word that is marked, on sentences that nobody had in view."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.first_look.words import interest, places_of
from components.analysis.maps import token_set
from components.analysis.maps.company import Company, company
from components.analysis.maps.drawing import LayerMap
from components.analysis.maps.map_trust import MapTrust
from components.analysis.maps.surroundings import Surroundings
from components.analysis.maps.token_set import TokenSet
from dashboard.ui import messages
from dashboard.ui.wording import quoted
from dashboard.views.map import findings, labels, pictures
from tests.support.pages import backend

SETS = (  # nobody had these in view
    (["Hello"], "Hello", 1),
    (["A cat sat here.", "A cat sat here."], "cat", 2),  # two equal sentences
    (["Der Hund sah den Hund des Nachbarn."], "Hund", 2),
    ([" ".join(f"word{number}" for number in range(29))], None, None),  # about 60 tokens
    (["The bat flew.", "Two bats slept in the cave."], "bat", 2),  # inflected forms
    (["She can open the can."], "open", 1),  # "can" carries grammar in the list of function words
    (["Rain fell.", "Snow melted.", "Wind blew."], None, 1),  # nothing is repeated
    (["The match was lit.", "They lost the match.", "A match is a pair."], "match", 3),
    (["to be or not to be"], None, 1),
    (["!!!", "???"], None, None),
)


def tokens_of(sentences: list[str]) -> tuple[TokenSet, tuple[tuple[int, int], ...]]:
    """The tokens, and the places of the word that all pages look at first."""
    trace = backend().trace(sentences)
    chosen = interest(trace.sentences)
    return token_set.of_trace(trace), places_of(trace.sentences, chosen.row, chosen.positions[chosen.row])


@pytest.mark.parametrize(("sentences", "word", "count"), SETS)
def test_the_marked_word_and_its_sentence_on_unseen_sentences(
    sentences: list[str], word: str | None, count: int | None
) -> None:
    tokens, chosen = tokens_of(sentences)
    marked = findings.word_of(tokens, chosen)
    if word is not None:
        assert marked is not None
        assert marked.word.casefold() == word.casefold()
    if marked is not None and count is not None:
        assert len(marked.rows) == count
    for layers in ([0, 6], [3], [2, 2]):
        text = findings.of_layers(tokens, marked, layers, findings.around_of(tokens, marked, layers))
        assert "nan" not in text
        assert len(text.replace("*", "")) <= 260
        if marked is not None:
            said = (
                "occurs once"
                if len(marked.rows) == 1
                else f"the {len(marked.rows)} uses of “{messages.escape(marked.word)}”"
            )
            assert said in text


def test_the_counts_are_those_of_the_vectors() -> None:
    tokens, chosen = tokens_of(["The match was lit.", "They lost the match.", "A match is a pair."])
    marked = findings.word_of(tokens, chosen)
    assert marked is not None
    for layer in (0, 6):
        directions = tokens.at(layer) / np.linalg.norm(tokens.at(layer), axis=1, keepdims=True)
        cosines = directions @ directions.T
        np.fill_diagonal(cosines, -2)
        nearest = np.argsort(-cosines[list(marked.rows)], axis=1)[:, :2]
        expected = int(np.isin(nearest, marked.rows).sum())
        assert company(tokens.at(layer), marked.rows).own == pytest.approx(expected)


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        (
            6.0,
            1.0,
            "are **each other's nearest at layer 0** (6 of their 6 nearest tokens are the same word) and "
            "**apart at layer 6** (1)",
        ),
        (
            1.0,
            6.0,
            "are **apart at layer 0** (1 of their 6 nearest tokens are the same word) and "
            "**each other's nearest at layer 6** (6)",
        ),
        (
            6.0,
            5.0,
            "are **each other's nearest at both layers**: 6 and 5 of their 6 nearest tokens are the same word.",
        ),
        (0.0, 1.0, "are **apart at both layers already**"),
        (6.0, 3.0, "**partly each other's nearest at layer 6** (3)"),
    ],
)
def test_a_word_that_moves_apart_and_one_that_does_not(first: float, last: float, said: str) -> None:
    """The usual story, that a word's senses come apart, is told only where they do."""
    text = findings.of_company("bank", 3, [0, 6], [Company(first, 6), Company(last, 6)])
    assert said in text


def around(own: int, cosine: float, asked: int = 9) -> Surroundings:
    """Three occurrences among whose nearest tokens `own` are from their own sentences, as evenly as can be."""
    return spread((own // 3, (own + 1) // 3, (own + 2) // 3), cosine, asked)


def spread(own: tuple[int, ...], cosine: float, asked: int = 9) -> Surroundings:
    return Surroundings(np.zeros((3, asked // 3), np.int64), own, cosine)


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        (
            around(3, 0.98),
            around(7, 0.79),
            "From layer 0 to 6 the 3 uses of “bank” **move apart** (mean cosine 0.98 to 0.79). "
            "Each has 3 nearest other tokens; of these 9, 3 are from its own sentence at layer 0 and 7 at layer 6.",
        ),
        (
            around(7, 0.5),
            around(3, 0.9),
            "**come closer** (mean cosine 0.50 to 0.90). Each has 3 nearest other tokens; of these 9, 7 are",
        ),
        (
            around(3, 0.98),
            around(3, 0.97),
            "**stay as near to each other** (mean cosine 0.98 to 0.97). "
            "Each has 3 nearest other tokens; of these 9, 3 are from its own sentence at both layers.",
        ),
        (around(1, 0.9), around(0, 0.7), "1 is from its own sentence at layer 0 and none at layer 6."),
    ],
)
def test_a_word_moves_apart_and_towards_its_sentence_only_where_it_does(
    first: Surroundings, last: Surroundings, said: str
) -> None:
    text = findings.of_surroundings("bank", 3, [0, 6], [first, last], has_others=True)
    assert said in text
    alone = findings.of_surroundings("bank", 3, [0, 6], [first, last], has_others=False)
    assert "sentence" not in alone  # a single sentence has no other


def test_the_block_is_named_that_moves_the_word_most() -> None:
    cosines = [0.98, 0.97, 0.80, 0.81]
    text = findings.of_surroundings("bank", 3, [0, 1, 2, 3], [around(3, value) for value in cosines], True)
    assert "mean cosine 0.98 to 0.81, most in block 1" in text
    one = findings.of_surroundings("bank", 3, [2], [around(3, 0.8)], True)
    assert one == (
        "At layer 2 the 3 uses of “bank” have a mean cosine of 0.80. "
        "Each has 3 nearest other tokens; of these 9, 3 are from its own sentence at layer 2."
    )
    still = findings.of_surroundings("bank", 3, [0, 1, 2], [around(3, value) for value in (0.9, 0.5, 0.9)], True)
    assert "block" not in still


def test_of_a_word_that_stands_once_the_nearest_tokens_are_named() -> None:
    tokens, chosen = tokens_of(["She can open the can."])
    marked = findings.word_of(tokens, chosen)
    assert marked is not None
    directions = tokens.at(6) / np.linalg.norm(tokens.at(6), axis=1, keepdims=True)
    cosines = directions @ directions[marked.rows[0]]
    cosines[marked.rows[0]] = -2
    names = [tokens.tokens[row].text for row in np.argsort(-cosines)[:3].tolist()]
    assert names == ["can", "the", "can"]
    around = findings.around_of(tokens, marked, [0, 6])
    text = findings.of_layers(tokens, marked, [0, 6], around)
    assert "and “can” ×2 and “the” at layer 6." in text
    pairs = findings.nearest_pairs(tokens, marked, around[6])
    assert sorted(tokens.tokens[other].text for _, other, _ in pairs) == sorted(names)


def test_a_piece_of_a_split_word_is_no_occurrence_of_its_own() -> None:
    tokens, _ = tokens_of(["Unbelievableness is odd.", "Such unbelievableness!"])
    marked = findings.word_of(tokens)
    assert marked is not None
    assert marked.word.casefold() == "unbelievableness"
    assert len(marked.rows) == 2
    # Of a split word the points are its first pieces, and the sentence says so; a neighbour is named with its word.
    around = findings.around_of(tokens, marked, [0, 6])
    assert f"the first pieces of the 2 uses of “{marked.word}” " in findings.of_layers(tokens, marked, [0, 6], around)
    tokens, chosen = tokens_of(["Der Hund bellt laut, weil der Briefträger über die Straße läuft."])
    marked = findings.word_of(tokens, chosen)
    said = findings.of_layers(tokens, marked, [0, 6], findings.around_of(tokens, marked, [0, 6]))
    assert said.startswith(
        "The piece “St” of “Straße” occurs once; nearest to it are “Hu” of “Hund”, “die” and “wei” of"
    )
    assert "straße" in tokens.category("word")


def test_a_split_word_that_a_person_marks_is_one_occurrence() -> None:
    tokens, _ = tokens_of(["An unputdownable book.", "Such unputdownable prose!"])
    pieces = tokens.matching("unputdownable")
    assert len(pieces) > 2
    rows = findings.first_pieces(tokens, pieces)
    assert [(tokens.tokens[row].sentence, tokens.tokens[row].text) for row in rows] == [(0, "un"), (1, "un")]
    assert findings.first_pieces(tokens, tokens.matching("[SEP]")) == tokens.matching("[SEP]")
    one = tokens.matching("down")  # a piece by itself, which the model may have
    assert findings.first_pieces(tokens, one) == one


def test_a_sample_of_the_occurrences_is_said_to_be_one() -> None:
    for layers in ([0], [0, 6]):
        text = findings.of_company("bank", 2_500, layers, [Company(600.0, 900, 300)] * len(layers))
        assert "900 nearest tokens of 300 of them, drawn at random," in text
        assert "their" not in text
        assert len(text.replace("*", "")) <= 200


def test_only_lines_that_are_drawn_are_explained() -> None:
    tokens, _ = tokens_of([" ".join(f"bank{number}" for number in range(40)), "A bank."])
    marked = findings.MarkedWord("bank", (1, 2))
    assert "a blue ribbon leads from each of them" in pictures._marks(marked, are_joined=True, has_lines=True)
    moving = pictures._marks(marked, are_joined=False, has_lines=True)
    assert "lines join" not in moving
    assert (
        "Lines within a map lead to the tokens nearest in the model: solid and blue in the same sentence, else dashed."
        in moving
    )
    assert "Lines within" not in pictures._marks(marked, are_joined=False, has_lines=False)  # in three dimensions
    of_many = findings.MarkedWord("bank", tuple(range(100)))
    assert findings.around_of(tokens, of_many, tokens.layers) == {}  # of so many the nearest are not drawn
    many = pictures._marks(of_many, are_joined=True, has_lines=False)
    assert "Lines within a map" not in many
    assert f"blue ribbons lead from the first {labels.MOST_JOINED} of them" in many


def test_texts_of_people_are_escaped() -> None:
    text = findings.of_company("*b*", 2, [0], [Company(2.0, 2)])
    assert r"\*b\*" in text


def test_a_number_stays_behind_a_name_that_is_written_from_the_right() -> None:
    assert findings._listed([quoted(name) for name in ("ل", "ل", "can")]) == "“\u2068ل\u2069” ×2 and “can”"


def test_few_neighbours_that_a_map_keeps_are_said_to_be_few() -> None:
    def kept(value: float) -> str:
        return findings.kept(LayerMap(np.zeros((9, 2), np.float32), MapTrust(0.9, 0.5, 0.1, 4, kept=value, seen=5)))

    assert kept(3.7) == "Read groups, not distances: the map keeps 3.7 of 5 neighbours on average."
    assert "keeps only 2.4 of 5" in kept(2.4)
