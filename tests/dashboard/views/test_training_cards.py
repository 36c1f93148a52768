"""The cards of training: what is tied to what, and a finding that says what the objective does with these rows."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import unquote

import pandas as pd
import pytest

from components.training.objectives import OBJECTIVES
from components.training.settings import TrainingSettings
from dashboard.ui import figures
from dashboard.views.training import row_cards
from dashboard.views.training.row_cards import PULLED, PUSHED, TOLD, Tie

PAIRS = pd.DataFrame({"query": ["a", "b", "c"], "correct answer": ["A", "B", "C"]})
TRIPLETS = PAIRS.assign(**{"wrong answer": ["x", "y", "z"]})


def test_each_row_is_tied_to_its_partner_and_the_first_is_pushed_away_from_the_others() -> None:
    assert row_cards.ties(PAIRS, "mnrl") == (
        *(Tie(row, row, PULLED) for row in range(3)),
        Tie(0, 1, PUSHED),
        Tie(0, 2, PUSHED),
    )
    assert {tie.kind for tie in row_cards.ties(PAIRS, "tsdae")} == {PULLED}
    of_triplets = row_cards.ties(TRIPLETS, "triplet")
    assert [(tie.left, tie.right) for tie in of_triplets if tie.kind == PULLED] == [(0, 0), (1, 2), (2, 4)]
    assert [(tie.left, tie.right) for tie in of_triplets if tie.kind == PUSHED] == [(0, 1), (1, 3), (2, 5)]


def test_labels_and_scores_are_told_and_only_two_labels_pull_or_push() -> None:
    labels = ["belongs together", "does not belong", "neutral"]
    table = pd.DataFrame({"first text": list("abc"), "second text": list("ABC"), "label": labels})
    assert [tie.kind for tie in row_cards.ties(table, "contrastive")] == [PULLED, PUSHED, TOLD]
    scored = table.drop(columns="label").assign(score=["1.00", "4.20", "5.00"])
    assert {tie.kind for tie in row_cards.ties(scored, "cosine")} == {TOLD}
    assert row_cards.ties(pd.DataFrame({"sentence": ["a", "b"]}), "simcse") == ()


@pytest.mark.parametrize("objective", [key for key in OBJECTIVES])
def test_every_objective_has_a_finding_of_its_own(objective: str) -> None:
    settings = replace(TrainingSettings(), objectives=(objective,), adapter=objective != "tsdae")
    said = row_cards.finding(settings, PAIRS, 40, 8, 0, 96)
    assert said.startswith("**")
    assert said.endswith("8 rows are held out; none of the 96 texts is cut off.")
    assert "40" in said.partition("**.")[0]


def test_the_finding_counts_what_it_says() -> None:
    settings = TrainingSettings(data="demo:not", max_length=12)
    assert row_cards.finding(settings, TRIPLETS, 154, 38, 0, 576) == (
        "**For each of 154 sentences the model learns to pick its paraphrase out of 32 texts (16 rows at a time).** "
        "38 rows are held out; none of the 576 texts is cut "
        "off."
    )
    # Fewer rows than a batch holds, texts that are too long, and rows of one's own.
    own = replace(settings, data="own.csv")
    assert row_cards.finding(own, PAIRS, 5, 1, 1, 12) == (
        "**For each of 5 queries the model learns to pick its correct answer out of 5 texts.** "
        "1 row is held out; 1 of 12 texts is cut off at 12 "
        "tokens."
    )


def test_texts_of_people_are_escaped_and_the_ties_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(figures, "markup", lambda text, key: drawn.append(text))
    row_cards.draw(PAIRS.assign(query=["<script>", "b", '"c"']), "mnrl", "own.csv")
    assert "<script>" not in drawn[0]
    assert 'title="&quot;c&quot;"' in drawn[0]
    paths = unquote(drawn[0]).count("<path")
    assert paths == len(row_cards.ties(PAIRS, "mnrl"))
    assert "afar" not in drawn[0]
    # A phone leaves out the ties with other rows where each row has a wrong answer of its own.
    row_cards.draw(TRIPLETS, "mnrl", "own.csv")
    own, afar = (unquote(part).count("<path") for part in drawn[1].split('class="ties afar"'))
    assert (own, afar) == (6, len(row_cards.ties(TRIPLETS, "mnrl")) - 6)
    # A saved report, which has no style sheet of ours, shows one of the two legends.
    (hidden,) = re.findall(r'<em [^>]*style="display: none">([^<]*)</em>', drawn[1])
    assert "all texts of other rows" in hidden
