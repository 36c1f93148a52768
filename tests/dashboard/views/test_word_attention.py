"""One word's attention: what is drawn is the model's attention, and what is said of it is counted from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from components.analysis.first_look.decisive import REACH, Look
from components.analysis.first_look.first_looks import FirstLooks
from components.analysis.first_look.looked_at import decisive_looks_at, looked_at, received
from components.analysis.first_look.words import words_of
from components.numbers import percent
from dashboard.jobs.stored.included_words import kept_habits
from dashboard.views.word_attention import findings, picture
from tests.support import plain_encoder as plain
from tests.support.packed import unpacked
from tests.support.pages import Open, at_rest, backend, setting, texts

TROPHY = "The trophy does not fit in the suitcase because it is too big."
VIEW = "one-word-attention"
# Sentences that nobody had in view while the rules were written.
UNSEEN = (
    "Hello",
    "The band played. The band played.",
    "Der Hund schläft unter dem Tisch, weil er müde ist.",
    "the of and",
    "Maria told Anna that she had won.",
    "An unbelievably antidisestablishmentarian committee reconvened.",
    "北京 is a city",
    "12 + 30 = 42",
    "!?",
    "one two three four five six seven eight nine ten " * 6,
)


def sent(app: Any) -> tuple[dict[str, Any], np.ndarray]:
    """What the page sent to its drawing: facts, and weights [block, head, row]."""
    element = next(item for item in app.get("bidi_component") if item.proto.component_name == "bert_internals_looks")
    facts, arrays = unpacked(element.proto.bytes)
    return facts, arrays["weights"]


def test_the_weights_are_those_of_plain_transformers(open_page: Open) -> None:
    facts, weights = sent(at_rest(open_page(VIEW, s=TROPHY, t="10")))
    assert (facts["word"], facts["position"]) == ("it", 10)
    np.testing.assert_allclose(weights, plain.run(TROPHY).attention[:, :, 10], atol=2e-6)
    assert [row["name"] for row in facts["rows"]][8:12] == ["suitcase", "because", "itself", "is"]


def test_it_opens_with_the_most_decisive_head_and_a_chosen_one_stays(open_page: Open) -> None:
    app = at_rest(open_page(VIEW, s=TROPHY, t="10"))
    facts, _ = sent(app)
    assert (facts["chosen"], facts["heading"]) == ([2, 1], "Most unusual attention")
    assert [each["says"] for each in facts["decisive"]] == [
        "block 2, head 1: big 78 %",
        "block 3, head 1: trophy 61 %",
        "block 0, head 6: suitcase 44 %",
    ]  # the best head for each word, though block 2, head 8 gives "big" more
    app.session_state["word_looks"] = {"head": [4, 7]}
    assert sent(at_rest(open_page(VIEW, s=TROPHY, t="10", b="4", h="7")))[0]["chosen"] == [4, 7]


def test_the_counts_are_those_of_plain_transformers(open_page: Open) -> None:
    app = at_rest(open_page(VIEW, s=TROPHY, t="10"))
    run = plain.run(TROPHY)
    first = run.attention[:, :, 10].argmax(-1).ravel()
    counts = {
        piece: int((first == at).sum()) for at, piece in enumerate(run.pieces) if piece in ("trophy", "suitcase", "big")
    }
    special = int(np.isin(first, (0, len(run.pieces) - 1)).sum())
    shown = texts(app)
    words = [piece.isalpha() and at != 10 for at, piece in enumerate(run.pieces)]
    named = f"(“trophy” {counts['trophy']}, “big” {counts['big']})"
    others = sum(words[at] for at in first)
    left = 72 - special - others
    said = f"{special} of 72 heads look first at [CLS] or [SEP], {others} at words {named} and {left} at "
    assert said in shown.replace("\\", "")
    assert (counts["trophy"], special) == (11, 40)


def test_a_pronoun_has_the_sentence_with_the_other_answer_beside_it(open_page: Open) -> None:
    shown = texts(at_rest(open_page(VIEW, s=TROPHY, t="10")))
    other = plain.run(TROPHY.replace("big", "small"))
    first = other.attention[:, :, 10].argmax(-1).ravel()
    trophy, suitcase = (int((first == other.pieces.index(word)).sum()) for word in ("trophy", "suitcase"))
    assert "With “small” for “big” the sentence says the opposite" in shown
    assert f"11 → {trophy} for “trophy” and 5 → {suitcase} for “suitcase”" in shown
    assert "says the opposite" not in texts(at_rest(open_page(VIEW, s=TROPHY, t="2")))  # of no pronoun


@pytest.mark.parametrize("text", UNSEEN)
def test_it_stands_for_any_sentence(open_page: Open, text: str) -> None:
    app = at_rest(open_page(VIEW, s=text))
    assert not app.exception
    facts, weights = sent(app)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)  # a row for the others where there are many
    assert len(facts["rows"]) <= picture.MOST_ROWS
    assert sum(row["name"] == "itself" for row in facts["rows"]) >= 1
    if not words_of(backend().tokenize([text])):
        assert "is no word, and the sentence has none: type one with a word" in texts(app)
    else:
        assert "heads look" in texts(app) or "heads looks" in texts(app)


def test_many_tokens_have_a_row_for_all_others(open_page: Open) -> None:
    facts, weights = sent(at_rest(open_page(VIEW, s=UNSEEN[-1], t="5")))
    assert len(facts["rows"]) == picture.ROWS_OF_MANY + 1
    assert facts["rows"][-1]["name"] == "42 others"
    row = plain.run(UNSEEN[-1].strip()).attention[:, :, 5]
    shown = [each["position"] for each in facts["rows"][:-1]]
    np.testing.assert_allclose(weights[:, :, -1], row.sum(-1) - row[:, :, shown].sum(-1), atol=1e-5)
    assert row.max((0, 1))[shown].min() >= np.delete(row.max((0, 1)), shown).max()


def test_a_long_sentence_is_refused_with_what_to_do(open_page: Open) -> None:
    app = open_page(VIEW, s="word " * 400, len="512")
    assert any("at most 256" in error.value for error in app.error)


@pytest.mark.parametrize("sent_word", [-1, 99, "x", None, True, [1]])
def test_nothing_else_that_a_browser_sends_has_an_effect(open_page: Open, sent_word: Any) -> None:
    app = at_rest(open_page(VIEW, s=TROPHY, t="10"))
    app.session_state["word_looks"] = {"word": sent_word, "head": [sent_word, 0]}
    app.run()
    assert not app.exception
    assert setting(app, "head") is None


def test_the_finding_follows_the_chosen_head(open_page: Open) -> None:
    shown = texts(at_rest(open_page(VIEW, s=TROPHY, t="10", b="4", h="7"))).replace("\\", "")
    run, habits = plain.run(TROPHY), kept_habits(backend())
    weights = run.attention[4, 7, 10]
    first, second = np.argsort(-weights)[:2].tolist()
    names = [run.pieces[at] if at in (0, len(run.pieces) - 1) else f"“{run.pieces[at]}”" for at in (first, second)]
    assert f"In block 4, head 7, “it” looks most at {names[0]}: {percent(weights[first])}" in shown
    assert f", then at {names[1]}: {percent(weights[second])}. 40 of 72" in shown
    # Of a word that is looked at, what the head gives to that distance anyway.
    assert habits is not None
    word = texts(at_rest(open_page(VIEW, s=TROPHY, t="10", b="3", h="1")))
    usual = percent(float(habits.weights[3, 1, REACH + 2 - 10]))
    assert f"looks most at “trophy”: {percent(run.attention[3, 1, 10, 2])} ({usual} is usual at that distance)" in word
    # The most decisive head, chosen or not, has the sentence that says so.
    assert "“it” gives “big” " in texts(at_rest(open_page(VIEW, s=TROPHY, t="10", b="2", h="1")))


@pytest.mark.parametrize("direction", ["from", "to"])
def test_numbered_heads_are_explained_where_there_are_any(open_page: Open, direction: str) -> None:
    """However many they are, the sentence is true of each; one word alone has none."""
    for text, token in ((TROPHY, "10"), ("two words", "1"), ("Hello", "1")):
        app = at_rest(open_page(VIEW, s=text, t=token, dir=direction))
        numbered = [(each["block"], each["head"]) for each in sent(app)[0]["decisive"]]
        assert len(set(numbered)) == len(numbered)
        said = "A numbered head gives a word far more than it usually gives at that distance: its cell"
        assert (said in texts(app)) == bool(numbered), text
    assert not numbered


def test_a_head_that_looks_at_its_own_word_has_no_usual_share() -> None:
    (sentence,) = backend().tokenize(["unbelievably"])
    (word,) = words_of([sentence])
    weights = np.full(len(sentence), 0.05, np.float32)
    weights[word.last] = 0.8
    said = findings.of_head(word, (1, 2), weights, FirstLooks(4, (), 4, 0, 0), sentence, kept_habits(backend()))
    assert said.startswith("In block 1, head 2, “unbelievably” looks most at itself: 80 %, then at ")
    assert "usual" not in said


def look(weight: float, usual: float, target: int = 2) -> Look:
    return Look(1, 3, target, weight, usual, ((target, weight),))


def said(text: str, word_text: str, looks: dict[str, int], decisive: Look | None, special: int = 0) -> str:
    (sentence,) = backend().tokenize([text])
    words = words_of([sentence])
    by_text = {word.text: word for word in words}
    at_words = tuple((by_text[name], count) for name, count in looks.items())
    counts = FirstLooks(sum(looks.values()) + special, at_words, 0, special, 0)
    return findings.of_word(by_text[word_text], counts, decisive, sentence)


def test_the_finding_is_of_what_is_shown() -> None:
    text = "The cat saw a dog."
    usual = said(text, "dog", {"cat": 5, "saw": 2}, look(0.8, 0.1), special=1)
    assert usual.startswith(
        "“dog” gives “cat” 80 % in block 1, head 3; this head usually gives 10 % at that distance. 7 of"
    )
    assert " 7 of 8 heads look first at words (“cat” 5) and 1 at" in usual
    # The word of the most decisive look is named, though most heads look elsewhere.
    most = said(text, "dog", {"saw": 3, "The": 2, "cat": 1}, look(0.8, 0.1), special=57).replace("\\", "")
    assert most.endswith(". 57 of 63 heads look first at [CLS] or [SEP] and 6 at words (“saw” 3, “cat” 1).")
    assert "“cat” 0" not in said(text, "dog", {"saw": 3, "The": 2}, look(0.8, 0.1), special=57)  # no head's first look
    # A share of one piece is not that of its word.
    piece = said("The Briefträger saw a dog.", "dog", {"saw": 1}, look(0.28, 0.02))
    assert "gives “brief” of “Briefträger” 28 % in" in piece
    habit = said(text, "dog", {"cat": 1}, look(0.8, 0.75))
    assert habit.startswith("From “dog”, 1 of 1 head looks first at “cat”. No head gives another word much more")
    assert said(text, "dog", {}, None, special=4).endswith("There is no other word to look at.")


def test_without_what_is_usual_nothing_is_said_of_it() -> None:
    (sentence,) = backend().tokenize(["The cat saw a dog."])
    words = words_of([sentence])
    assert picture.heading([look(0.45, 0.0)], False) == "Largest shares"
    assert picture.heading([look(0.8, 0.75)], True) == "Most above usual"  # the finding says that it is not much
    counts = FirstLooks(3, ((words[1], 1),), 1, 0, 1)
    said = findings.of_word(words[-1], counts, look(0.45, 0.0), sentence, is_usual_known=False)
    assert said == (
        "The largest share that “dog” gives to another word goes to “cat”: 45 % in block 1, head 3. "
        "1 of 3 heads looks first at “cat” and 2 at itself or punctuation."
    )
    few = FirstLooks(72, ((words[1], 13),), 1, 57, 1)  # all heads are named, also two
    assert findings.of_word(words[-1], few, look(0.45, 0.0), sentence).endswith(
        ", 13 at “cat” and 2 at itself or punctuation."
    )
    for itself, rest, left in ((2, 0, "2 at itself"), (0, 2, "2 at punctuation and signs")):
        counts = FirstLooks(3, ((words[1], 1),), itself, 0, rest)
        said = findings.of_word(words[-1], counts, None, sentence)
        # Where most heads look at the word itself, that is said first.
        assert "2 of 3 heads look first at itself and 1 at “cat”." in said if itself else f"“cat” and {left}." in said


def test_it_opens_with_the_sentence_whose_word_is_the_one_to_look_at(open_page: Open) -> None:
    app = at_rest(open_page(VIEW, s=["Hello there.", TROPHY]))
    assert sent(app)[0]["word"] == "it"


def test_whether_the_other_answer_moves_the_heads_is_counted() -> None:
    same = findings.of_other_answer("big", "small", [("trophy", 11, 11), ("suitcase", 5, 6)], 72)
    moved = findings.of_other_answer("big", "small", [("trophy", 11, 3), ("suitcase", 5, 14)], 72)
    assert "hardly anything changes" in same
    assert "look elsewhere" in moved
    assert "11 → 3 for “trophy” and 5 → 14 for “suitcase”" in moved


def test_the_chosen_sentence_is_shown(open_page: Open) -> None:
    app = at_rest(open_page(VIEW, s=["One.", TROPHY], n="1", t=["1", "10"]))
    assert setting(app, "sentence") == 1
    assert sent(app)[0]["word"] == "it"


def test_who_looks_at_a_word_are_the_columns_of_plain_transformers(open_page: Open) -> None:
    app = at_rest(open_page(VIEW, s=TROPHY, t="10", dir="to"))
    facts, weights = sent(app)
    run = plain.run(TROPHY)
    np.testing.assert_allclose(weights, run.attention[:, :, :, 10], atol=2e-6)
    words = [at for at, piece in enumerate(run.pieces) if piece.isalpha() and at != 10]
    first = run.attention[:, :, words].argmax(-1) == 10  # [block, head, word]
    order = np.argsort(-first.sum((0, 1)), kind="stable")[:2].tolist()
    named = [f"“{run.pieces[words[at]]}” in {first.sum((0, 1))[at]}" for at in order]
    shown = texts(app)
    assert f"In {first.any(-1).sum()} of 72 heads another word looks first at “it”: {named[0]}, {named[1]}" in shown
    assert "a column does not add up to 100 %" in shown
    block, head = facts["chosen"]
    looking = facts["decisive"][0]["says"].split(": ")[1].rsplit(" ", 2)[0]
    share = percent(run.attention[block, head, run.pieces.index(looking), 10])
    assert f"“{looking}” gives it {share} in block {block}, head {head}; this head usually gives " in shown
    assert "says the opposite" not in shown


def test_what_goes_to_the_pieces_of_a_word_is_added_up_and_nobody_may_look_there() -> None:
    (sentence,) = backend().tokenize(["An unbelievably good cat"])
    words = words_of([sentence])
    word = words[1]
    assert len(word.positions) > 1
    weights = np.zeros((1, 2, len(sentence), len(sentence)), np.float32)
    weights[..., 0] = 0.6
    weights[0, 1, words[2].last, list(word.positions)] = 0.3 / len(word.positions)
    assert received(weights, word.positions)[0, 1, words[2].last] == pytest.approx(0.3)
    nobody = looked_at(weights, word, words)
    habits = kept_habits(backend())
    assert (nobody.looking, nobody.from_words) == (0, ())
    said = findings.of_looked_at(word, nobody, None, sentence, True)
    assert said == "In none of 2 heads does another word look first at “unbelievably”."
    of_head = findings.of_head_looked_at(word, (0, 1), weights[0, 1, :, word.last], words, nobody, sentence)
    assert of_head.startswith("In block 0, head 1, “good” gives “unbelievably” ")
    assert habits is not None
    twice = replace(nobody, looking=6, from_words=((words[0], 4), (words[2], 3)))
    assert findings.of_looked_at(word, twice, None, sentence, True).endswith(" A head can count for several words.")
    faint = Look(0, 1, words[2].last, 0.1, 0.08, ())
    assert "In no head does another word give it much more" in findings.of_looked_at(
        word, nobody, faint, sentence, True
    )
    (alone,) = words_of([single := backend().tokenize(["cat"])[0]])
    assert decisive_looks_at(np.ones((1, 1, 3, 3), np.float32) / 3, alone, (alone,), habits, 3) == ()
    assert "In none of 1 head" in findings.of_looked_at(
        alone, looked_at(np.ones((1, 1, 3, 3)), alone, (alone,)), None, single, True
    )
