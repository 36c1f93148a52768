"""Which words matter: the curves are the model's own cosines, the answer follows from them, and empty cases."""

from __future__ import annotations

import re
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.analysis.pooling import pool
from components.analysis.why.deletion import compare_methods
from components.analysis.why.word_scores import METHOD_NAMES, METHODS, RANDOM, PairSimilarity
from dashboard import caching
from dashboard.views.why import methods as view
from tests.support.pages import Open, at_rest, backend, figures, plain_table, texts
from tests.support.pages import traces as traces_of
from tests.support.places import ROOT

LEFT_OUT, SCORES, CURVES = 0, 1, 2  # the figures
FIRST, SECOND = "We rob a bank.", "I put money in the bank."


def traces(app: AppTest) -> dict[str, np.ndarray]:
    """The curves of the methods."""
    return traces_of(app, CURVES)


QUICKLY = {"orders_of_random": 2, "most_steps": 4}  # what `compare_methods` is given besides the page's own


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer orders and steps than people see: what is measured stays the same."""
    monkeypatch.setattr(view, "compare_methods", partial(compare_methods, **QUICKLY))


@pytest.fixture(scope="module")
def expected():
    return compare_methods(PairSimilarity.of(backend(), FIRST, SECOND, 6, "mean"), from_both=False, **QUICKLY)


def test_curves_scores_and_areas_of_a_pair(open_page: Open, expected) -> None:
    app = at_rest(open_page("why", v="important-words", s=[FIRST, SECOND]))
    assert not app.exception
    drawn = traces(app)
    assert list(drawn) == [METHOD_NAMES[name] for name in (*METHODS, RANDOM)]
    for name, curve in expected.first.items():
        np.testing.assert_allclose(drawn[METHOD_NAMES[name]], curve.cosines, atol=1e-5)
    heat = figures(app)[SCORES]["data"][0]
    scores = np.array([expected.scaled(name) for name in METHODS]).T
    np.testing.assert_allclose(heat["customdata"], scores, atol=1e-4)
    signed = [name not in view.WITHOUT_SIGN for name in METHODS]
    np.testing.assert_allclose(heat["z"], scores * signed, atol=1e-4)  # rollout has no sign, and no colour
    assert heat["y"] == [
        "A1  We",
        "A2  rob",
        "A3  a",
        "A4  bank",
        "B1  I",
        *["B2  put", "B3  money", "B4  in", "B5  the", "B6  bank"],
    ]
    best = expected.by_area[0]
    assert f"**{METHOD_NAMES[best]}** finds the words of this pair best: “bank”" in texts(app)
    assert f"**{expected.first[best].area:.2f}**, in random orders {expected.first[RANDOM].area:.2f}." in texts(app)
    table = plain_table(app)
    areas = dict(zip(table["method"], table["most important first"].astype(float), strict=True))
    assert areas == pytest.approx({METHOD_NAMES[name]: curve.area for name, curve in expected.first.items()}, abs=6e-4)
    assert list(areas.values()) == sorted(areas.values())
    assert "unlike any that it was trained on" in texts(app)
    hover = figures(app)[CURVES]["data"][1]["customdata"]
    assert hover[0] == "0 of 3 and 0 of 5 removed"
    assert re.fullmatch(r"3 of 3 and 5 of 5 removed, the last “\w+” \(A\) and “\w+” \(B\)", hover[-1])
    assert "while the other text stays whole" in texts(app)
    assert (
        figures(app)[CURVES]["layout"]["xaxis"]["title"]["text"] == "removed of all words but the last, mean of both, %"
    )
    ends = sorted(f"{curve.cosines[-1]:.2f}" for curve in expected.first.values())
    assert "Each curve is the mean of two: words removed from A while B stays whole" in texts(app)
    assert f"so the curves end apart, at {ends[0]} to {ends[-1]}." in texts(app)
    # The order of each text by itself: a word of B can have a higher score than one of A that is named before it.
    of_a, of_b = (
        ", then ".join(f"“{expected.pair.words[index].text}” ({side})" for index in order[:2])
        for side, order in zip("AB", expected.first[best].removals, strict=True)
    )
    assert f"best: {of_a}; {of_b}." in texts(app).replace("\\", "")


def test_the_first_picture_and_its_finding_are_what_the_model_says_without_each_word(open_page: Open) -> None:
    """By plain encodings of the texts without the word."""
    app = at_rest(open_page("why", v="important-words", s=[FIRST, SECOND]))
    model = backend()

    def cosine_of(first: str, second: str) -> float:
        one, other = (pool(model.trace([text]), "mean")[6][0].astype(np.float64) for text in (first, second))
        return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))

    whole = cosine_of(FIRST, SECOND)
    without_bank = {"A": cosine_of("We rob a .", SECOND), "B": cosine_of(FIRST, "I put money in the .")}
    of_a, of_b = figures(app)[LEFT_OUT]["data"]
    assert of_a["customdata"] == ["We", "rob", "a", "bank"]
    assert of_a["y"][3] == pytest.approx(whole - without_bank["A"], abs=1e-4)
    assert of_b["y"][5] == pytest.approx(whole - without_bank["B"], abs=1e-4)
    assert of_b["y"][1] == pytest.approx(whole - cosine_of(FIRST, "I money in the bank."), abs=1e-4)
    most = max([*of_a["y"], *of_b["y"]])
    assert most == of_a["y"][3]
    falls = f"falls by {most:.2f}, from **{whole:.2f}** to **{whole - most:.2f}**"
    said = f"Without “bank” (A) the cosine {falls}; next is “bank” (B), by "
    assert said in texts(app).replace("\\", "")


def told(cosine: float, *falls: float) -> str:
    """The finding of words w0, w1, ... of A whose removal lets the cosine fall so far."""
    words = tuple(SimpleNamespace(text=f"w{number}", in_pair=0) for number in range(len(falls)))
    comparison = SimpleNamespace(cosine=cosine, scores={"left_out": np.array(falls)}, pair=SimpleNamespace(words=words))
    return view.left_out_finding(comparison).replace("\\", "")  # type: ignore[arg-type]


def test_the_finding_does_not_assume_that_some_word_matters() -> None:
    falls = "(A) the cosine falls by"
    assert told(0.5, 0.1, 0.3, -0.2) == (
        f"Without “w1” {falls} 0.30, from **0.50** to **0.20**; next is “w0” (A), by 0.10."
    )
    assert (
        told(0.5, 0.1, -0.2)
        == f"Without “w0” {falls} 0.10, from **0.50** to **0.40**; without any other word it does not fall."
    )
    assert told(0.5, -0.1, -0.2).startswith("No single word matters: without any one of them, the cosine of **0.50** ")
    assert told(0.5, 0.0, 0.004).startswith("No single word matters")


def test_a_word_that_keeps_the_texts_apart_more_than_any_holds_them_together_is_named() -> None:
    words = tuple(SimpleNamespace(text=text, in_pair=0) for text in ("a", "b"))

    def agreement(**scores: list[float]) -> str:
        arrays = {name: np.array(values) for name, values in scores.items()}
        comparison = SimpleNamespace(scores=arrays, pair=SimpleNamespace(words=words))
        return view._agreement(comparison).replace("\\", "")  # type: ignore[arg-type]

    assert agreement(left_out=[0.3, -0.2], gradient=[0.4, 0.1]) == "All methods rate “a” (A) highest."
    told = agreement(left_out=[0.3, -0.2], gradient=[-0.4, 0.1])
    left_out, gradient = METHOD_NAMES["left_out"], METHOD_NAMES["gradient"]
    assert told.startswith(f"Rated highest: “a” (A) by {left_out}; “b” (A) by {gradient}.")
    assert told.endswith(f" By {METHOD_NAMES['gradient']}, “a” (A), which keeps the two apart, counts even more.")


def test_the_other_order_costs_nothing_and_another_layer_is_another_job(open_page: Open, expected) -> None:
    app = at_rest(open_page("why", v="important-words", s=[FIRST, SECOND]))
    passes = backend().forward_passes
    app.segmented_control(key="w_deletion_order").set_value("last").run()
    assert backend().forward_passes == passes
    for name, curve in expected.last.items():
        np.testing.assert_allclose(traces(app)[METHOD_NAMES[name]], curve.cosines, atol=1e-5)
    assert "knows best which words of this pair can be spared" in texts(app)
    assert "last" in app.query_params["del"]
    app = at_rest(app.slider(key="w_layer").set_value(0).run())
    assert "Attention rollout" not in traces(app)
    assert "Attention rollout is missing: at layer 0 no block has run" in texts(app)
    app = at_rest(app.segmented_control(key="w_pooling").set_value("cls").run())
    assert not app.exception
    assert list(traces(app)) == ["Leave one out", "Random order"]
    # Every [CLS] vector of layer 0 is the same: no word matters, and no method can be better than chance.
    assert "No method does better than chance" in texts(app)
    passes = backend().forward_passes
    app.segmented_control(key="w_pooling").set_value("mean").run()
    app.slider(key="w_layer").set_value(6).run()
    assert backend().forward_passes == passes  # what was measured is kept
    assert not caching.queue().under_way()


def test_words_can_be_removed_from_both_texts_as_one_list(open_page: Open) -> None:
    app = at_rest(open_page("why", v="important-words", s=[FIRST, SECOND], **{"from": "both"}))
    assert not app.exception
    found = compare_methods(PairSimilarity.of(backend(), FIRST, SECOND, 6, "mean"), from_both=True, **QUICKLY)
    for name, curve in found.first.items():
        np.testing.assert_allclose(traces(app)[METHOD_NAMES[name]], curve.cosines, atol=1e-5)
    hover = figures(app)[CURVES]["data"][1]["customdata"]
    assert hover[0] == "0 of 8 removed"
    assert re.fullmatch(r"8 of 8 removed, the last “\w+” \([AB]\)", hover[-1])
    assert "leaves them similar" in texts(app)


def test_texts_of_one_word_have_scores_but_no_curve(open_page: Open) -> None:
    app = at_rest(open_page("why", v="important-words", s=["Bank!", "River"]))
    assert not app.exception
    assert "the last word of a text is never removed" in texts(app)
    assert [figure["data"][0]["type"] for figure in figures(app)] == ["bar", "heatmap"]
    assert not app.table


def test_a_text_without_words_is_named(open_page: Open) -> None:
    app = at_rest(open_page("why", v="important-words", s=["We rob a bank.", "?!"]))
    assert not app.exception
    assert "Sentence 2 has no word that could be removed." in texts(app)
    assert not figures(app)


def test_one_sentence_alone_is_compared_with_itself(open_page: Open) -> None:
    app = at_rest(open_page("why", v="important-words", s="We <b>rob</b> a *bank*"))
    assert not app.exception
    assert "A and B are the same text" in texts(app)
    assert traces(app)["Share of score"][0] == pytest.approx(1, abs=1e-5)
    assert "<b>" not in " ".join(figures(app)[SCORES]["data"][0]["y"])
    alone = at_rest(open_page("why", v="important-words", s="cat"))
    assert "Each text has only one word" in texts(alone)
    assert "A and B are the same text" not in texts(alone)  # one message is enough


def test_only_the_part_that_is_read_counts(open_page: Open) -> None:
    app = at_rest(open_page("why", v="important-words", s=["one two three four five six seven", SECOND], len="7"))
    assert "2 tokens are truncated** of sentence 1" in texts(app).replace("**2 tokens", "2 tokens")
    names = figures(app)[SCORES]["data"][0]["y"]
    assert names[:6] == ["A1  one", "A2  two", "A3  three", "A4  four", "A5  five", "B1  I"]


def test_of_many_words_those_with_the_largest_scores_are_drawn(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "MOST_ROWS", 4)
    app = at_rest(open_page("why", v="important-words", s=["money and a bank", SECOND]))
    assert not app.exception
    found = compare_methods(PairSimilarity.of(backend(), "money and a bank", SECOND, 6, "mean"), both_ways=False)
    largest = np.max([np.abs(found.scaled(name)) for name in METHODS], axis=0)
    rows = sorted(sorted(range(10), key=lambda row: -largest[row])[:4])  # in the order of the texts
    words = [
        "A1  money",
        "A2  and",
        "A3  a",
        "A4  bank",
        "B1  I",
        "B2  put",
        "B3  money",
        "B4  in",
        "B5  the",
        "B6  bank",
    ]
    assert figures(app)[SCORES]["data"][0]["y"] == [words[row] for row in rows]
    assert "Shown are the 4 of 10 words" in texts(app)
    assert "4 steps are measured" in texts(app)
    assert len(traces(app)["Share of score"]) == 5


def test_no_sentences(open_page: Open) -> None:
    app = open_page("why", v="important-words", s="")
    assert not app.exception
    assert "No sentence yet" in texts(app)


def test_the_table_over_many_pairs_is_that_of_the_measurements() -> None:
    measurements = (ROOT / "docs" / "measurements.md").read_text(encoding="utf-8")
    assert set(view.OVER_MANY_PAIRS) == set(METHOD_NAMES)
    for name, cells in view.OVER_MANY_PAIRS.items():
        assert f"| {METHOD_NAMES[name]} | {' | '.join(cells)} |\n" in measurements
    assert view.MANY_PAIRS.split(" (")[0] in " ".join(measurements.split())


def test_long_texts_are_tested_by_their_beginning_unless_asked(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers of words are those of the texts, and what is tested is what is said."""
    monkeypatch.setattr(view, "FIRST_WORDS", 4)
    monkeypatch.setattr(view, "MOST_WORDS", 6)
    long_text = "We rob a bank, and run away."  # seven words
    app = at_rest(open_page("why", v="important-words", s=[long_text, SECOND]))
    assert not app.exception
    assert "the first 4 words of each are tested**, of 7 and 6." in texts(app)
    assert "texts for the model to read, about " in texts(app)
    expected = compare_methods(
        PairSimilarity.of(backend(), "We rob a bank", "I put money in", 6, "mean"), from_both=False, **QUICKLY
    )
    np.testing.assert_allclose(traces(app)[METHOD_NAMES[RANDOM]], expected.first[RANDOM].cosines, atol=1e-5)
    app = at_rest(app.toggle(key="w_all_words").set_value(True).run())
    assert "the first 6 words of each are tested (the most that can be)**, of 7 and 6." in texts(app)
    assert figures(app)[SCORES]["data"][0]["y"][-1] == "B6  bank"
    assert "A7  away" not in figures(app)[SCORES]["data"][0]["y"]
    assert app.query_params["aw"] in ("1", ["1"])


def test_texts_are_read_as_far_as_in_the_other_views(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as the model was published for, 256 tokens; as far as it can read where that is chosen, and that is said."""
    monkeypatch.setattr(view, "FIRST_WORDS", 2)
    app = at_rest(open_page("why", v="important-words", s=["so " * 250 + "long", "cat " * 300]))
    assert "**46 tokens are truncated** of sentence 2" in texts(app)
    assert "of sentence 1" not in texts(app)
    assert "of 251 and 254." in texts(app)
    assert "Read to" not in texts(app)
    app = at_rest(open_page("why", v="important-words", s=["so " * 505 + "long", "cat " * 600], len="512"))
    assert "Read to 512 tokens, as chosen;" in texts(app)
    assert "**90 tokens are truncated** of sentence 2" in texts(app)
    assert "of sentence 1" not in texts(app)
    assert "of 506 and 510." in texts(app)


@pytest.mark.parametrize("in_order", [1, -1])
def test_the_pace_is_measured_on_a_batch_of_the_longer_text(monkeypatch: pytest.MonkeyPatch, in_order: int) -> None:
    """A short text read alone takes several times as long a token."""
    monkeypatch.setattr(view.st, "session_state", {})
    model, read = backend(), []

    def embed(texts: list[str], **options: object) -> None:
        read.append(texts)

    monkeypatch.setattr(model, "embed", embed)
    long_text = " ".join(f"We put money {number} in the bank." for number in range(60))
    sentences = model.tokenize([FIRST, long_text][::in_order])
    assert view._seconds_per_token(model, sentences, 6, "mean", 512) > 0
    assert len(read) == 2  # the second time counts
    assert all(text and text in long_text for text in read[1])
    tokens = sum(map(len, model.tokenize(read[1], max_length=512)))
    assert len(read[1]) > 1
    assert view.SAMPLE_TOKENS * 0.8 < tokens < view.SAMPLE_TOKENS * 1.5
