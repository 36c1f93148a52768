"""Why, "The score, split": what is drawn sums to the cosine, and moving a control runs no pass."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from components.analysis.pooling import pool
from components.analysis.why.ledger import Ledger, LedgerPart
from dashboard import caching
from dashboard.views.why import split_figures
from tests.dashboard.page_states import small_corpus
from tests.support.closeness import assert_close
from tests.support.pages import Open, at_rest, figures, texts

ROOT = Path(__file__).resolve().parents[4]
A, B = "A dog is chasing a ball.", "The puppy runs after its ball."


def backend_of_the_pages():
    from components.model.catalog import parse_model

    job = caching.models().request(parse_model("embedded"))
    assert job.finished.wait(120)
    return job.result


def cosine_of(layer: int, pooling: str = "mean") -> float:
    first, second = pool(backend_of_the_pages().trace([A, B]), pooling)[layer]
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def drawn(app, number: int = 0) -> np.ndarray:
    return np.asarray(figures(app)[number]["data"][0]["z"], float)


def test_the_matrix_and_the_bars_sum_to_the_cosine(open_page: Open) -> None:
    app = open_page("why", s=[A, B])
    assert not app.exception
    expected = cosine_of(6)
    assert drawn(app).sum() == pytest.approx(expected, abs=1e-4)
    of_a, of_b = (np.asarray(bar["x"], float).sum() for bar in figures(app)[1]["data"])
    assert of_a == pytest.approx(expected, abs=1e-4)
    assert of_b == pytest.approx(expected, abs=1e-4)
    assert f"The cosine is **{expected:.2f}**, higher than for" in texts(app)
    assert "All this sums to the cosine, to within 0.00001." in texts(app)

    passes = backend_of_the_pages().forward_passes
    app.slider(key="w_layer").set_value(2).run()
    assert drawn(app).sum() == pytest.approx(cosine_of(2), abs=1e-4)
    app.segmented_control(key="w_pooling").set_value("cls").run()
    assert "belongs to one pair" in texts(app)
    assert np.count_nonzero(drawn(app)) == 1
    assert backend_of_the_pages().forward_passes == passes


def test_blocks_and_heads(open_page: Open) -> None:
    app = open_page("why", s=[A, B], by="blocks", l="4")
    assert not app.exception
    assert drawn(app).shape == (4, 14)  # 12 heads, feed-forward, constants
    sums = np.asarray(figures(app)[1]["data"][0]["y"], float)
    assert sums.sum() == pytest.approx(cosine_of(4), abs=1e-4)
    assert drawn(app).sum() + sums[0] == pytest.approx(cosine_of(4), abs=1e-4)
    app.slider(key="w_layer").set_value(0).run()
    assert "before all blocks" in texts(app)
    assert len(figures(app)) == 3  # the bars, and the two of the score's place among unrelated pairs


def test_tokens_without_a_ribbon_are_said_only_where_there_are_some() -> None:
    def of(contributions: np.ndarray) -> Ledger:
        rows, columns = contributions.shape
        parts = tuple(LedgerPart(f"t{number}", "word", (number,)) for number in range(max(rows, columns)))
        cosine = float(contributions.sum())
        return Ledger(parts[:rows], parts[:columns], contributions, (), cosine, (1.0, 1.0), 6, "mean")

    assert not split_figures.has_few_ribbons(of(np.full((3, 3), 0.1)))  # nine pairs, of which fourteen would be drawn
    assert split_figures.has_few_ribbons(of(np.full((5, 5), 0.04)))
    assert split_figures.has_few_ribbons(of(np.array([[0.5, 0.001], [0.4, 0.001]])))  # too thin to be drawn
    script = (ROOT / "assets" / "web" / "ribbons.js").read_text("utf-8")
    assert f"STRONGEST = {split_figures.STRONGEST}," in script
    assert f"LEAST = {split_figures.LEAST};" in script


def test_the_score_has_its_place_among_unrelated_pairs(open_page: Open) -> None:
    other = "She bought a red ball in town."
    first, second = pool(backend_of_the_pages().trace([A, other]), "mean")[3]
    score = float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))
    app = open_page("why", s=[A, other], l="3")
    unrelated = caching.baseline(backend_of_the_pages()).sentences["mean", True].raw.cosines  # [layer, pair]
    share = 100 * float(np.mean(unrelated[3] < score))
    assert 5 < share < 95
    mean, limit = unrelated[3].mean(), np.percentile(unrelated[3], 95)
    assert f"not above 95 % of unrelated pairs (mean {mean:.2f}, 95 % below {limit:.2f})" in texts(app)
    histogram, by_layer = figures(app)[2:4]
    assert_close(histogram["data"][1]["x"], score)
    shown = np.asarray(by_layer["data"][0]["z"], float)  # [layer, pooling]
    assert shown.shape == (7, 3)
    assert shown[3, 0] == pytest.approx(share, abs=0.06)
    assert np.isnan(shown[0, 1])  # [CLS] has one vector for all texts there
    constant = open_page("why", s=[A, B], l="0", pool="cls")
    assert "one vector for all texts" in texts(constant)
    assert "unrelated pairs" not in texts(constant)
    app = at_rest(open_page("why", s=[A, B], l="3", cx="corpus", corpus=small_corpus()))
    assert "pairs of the corpus" in texts(app)


def test_words_as_typed_are_a_job(open_page: Open) -> None:
    app = at_rest(open_page("why", s=["A dog.", "The puppy."], by="words", steps="4", ref="mask"))
    assert not app.exception
    said = texts(app)
    assert "Reference: mask token." in said
    assert "both references" in said
    assert re.search(r"Error of the sum with 4 steps: [+−]0\.[0-9]+$", said, re.MULTILINE)  # no hyphen, no exponent
    matrix = drawn(app)
    assert matrix.shape == (3, 3)  # no special tokens
    bars = figures(app)[1]["data"]
    assert np.asarray(bars[0]["x"], float).sum() == pytest.approx(matrix.sum(), abs=1e-4)


def ledger_of(*values: float) -> Ledger:
    """One word of A with several of B."""
    words = tuple(LedgerPart(f"w{number}", "word", (number,)) for number in range(len(values)))
    return Ledger(words[:1], words, np.array([values]), (), sum(values), (1.0, 1.0), 6, "mean")


def test_a_negative_part_is_named_if_it_is_among_the_largest() -> None:
    said = split_figures._start(ledger_of(0.3, 0.1, -0.2, 0.01))
    assert "“w0” with “w0” (+0.30) and “w0” with “w1” (+0.10); “w0” with “w2” lowers it (−0.20)." in said
    assert "1 other pair of words: +0.01;" in split_figures._rest(ledger_of(0.3, 0.1, -0.2, 0.01))
    listed = "“w0” with “w0”, “w0” with “w1” and “w0” with “w2”: +0.20; 1 other pair of words: +0.01;"
    assert split_figures._rest(ledger_of(0.3, 0.1, -0.2, 0.01)).startswith(listed)
    assert "lowers" not in split_figures._start(ledger_of(0.3, 0.1, -0.05))
    assert "2 other pairs" in split_figures._rest(ledger_of(0.3, 0.1, -0.05, 0.01))
    assert split_figures._start(ledger_of(-0.1, -0.4)).endswith("**−0.500**; “w0” with “w1” lowers it (−0.40).")


def test_a_word_written_from_right_to_left_does_not_turn_the_numbers_beside_it() -> None:
    words = (LedgerPart("בית", "word", (0,)),)
    rest = split_figures._rest(Ledger(words, words, np.array([[0.5]]), (), 0.5, (1.0, 1.0), 6, "mean"))
    assert rest.startswith("“\u2068בית\u2069” with “\u2068בית\u2069”: +0.50; 0 other pairs of words")


def test_what_the_sum_misses_is_said() -> None:
    assert split_figures._error_of_sum(4e-6) == "All this sums to the cosine, to within 0.00001."
    assert split_figures._error_of_sum(-0.0002) == "All this sums to the cosine but for −0.00020."


def test_one_sentence_and_none(open_page: Open) -> None:
    app = open_page("why", s="A dog.")
    assert not app.exception
    assert "the same text" in texts(app)
    assert drawn(app).sum() == pytest.approx(1, abs=1e-4)
    app.session_state["sentences"] = ()
    app.run()
    assert not app.exception
    assert "No sentence yet" in texts(app)


def test_long_texts_are_summed_up(open_page: Open) -> None:
    words = (
        "river stone cloud market window garden winter letter engine bridge paper silver candle forest harbour mirror"
    )
    app = open_page("why", s=[f"{words} and then {words[::-1]}", "a cat <b>slept</b> $1$ *here*"])
    assert not app.exception
    assert drawn(app).shape[0] == 20
    assert "others" in figures(app)[0]["data"][0]["y"][-1]
    matrix, bars = figures(app)[:2]
    number = float(bars["layout"]["annotations"][0]["text"].replace("−", "-"))  # of the others, without a bar
    assert drawn(app).sum() == pytest.approx(np.asarray(bars["data"][0]["x"], float).sum() + number, abs=1e-3)
    assert matrix["data"][0]["zmax"] == pytest.approx(np.abs(drawn(app)[:-1]).max(), abs=1e-6)  # of single words
    app = open_page("why", s=["dog " * 200, "a cat"], by="words")
    assert "too many for this split" in texts(app)


def test_characters_that_the_model_cannot_read_are_named(open_page: Open) -> None:
    app = at_rest(open_page("why", s=[f"{A} \U0001f600", B]))
    assert "The model cannot read **“\U0001f600”** in sentence 1" in texts(app)
    app = at_rest(open_page("why", s=[A, "It is [UNK] here."]))  # typed so: nothing is lost
    assert "The model cannot read" not in texts(app)


@pytest.mark.parametrize(
    "address",
    [
        *(
            {"view": view, "pool": "zzz", "l": "99", "sa": "9"}
            for view in ("split", "methods", "experiments", "clinic")
        ),
        {"view": "nonsense", "l": "x"},
    ],
)
def test_values_that_do_not_exist_give_a_notice(
    open_page: Open, address: dict[str, str], tiny_folder: Callable[[str], Path]
) -> None:
    said = {
        "pool": "pooling (“pool=zzz”) was ignored",
        "view": "view (“v=nonsense”) was ignored" if address["view"] == "nonsense" else "",
        "l": "layer (“l=x”) was ignored" if address["l"] == "x" else "Layer 99 is not available",
        "sa": "" if address["view"] == "clinic" else "Sentence A 10 is not available",  # the clinic has no A
    }
    quick = {"m": str(tiny_folder("bert"))} if address["view"] == "clinic" else {}  # it embeds all pairs of its file
    app = open_page("why", s=[A, B], **address, **quick)
    assert not app.exception
    for name in address:
        assert said[name] in texts(app).replace("\\", ""), name


def test_the_two_sentences_to_begin_with_are_chosen_anew_for_others(open_page: Open) -> None:
    first = ("The bank fell.", "A cloud.", "My bank won.", "It rained.")
    app = open_page("why", v="score-split", s=list(first))
    assert (app.session_state["sentence_a"], app.session_state["sentence_b"]) == (0, 3)
    app.session_state["sentences"] = ("Snow melted.", "A green boat sank.", "Nobody came.", "Two boats left.")
    app.run()
    assert not app.exception
    assert (app.session_state["sentence_a"], app.session_state["sentence_b"]) == (1, 4)
    app.selectbox(key="w_sentence_a").set_value(2).run()  # a person's choice stays
    app.session_state["sentences"] = first
    app.run()
    assert (app.session_state["sentence_a"], app.session_state["sentence_b"]) == (2, 4)


def test_two_sentences_after_many_are_compared_with_each_other(open_page: Open) -> None:
    app = open_page("why", v="score-split", s=["Rain.", "The bank fell.", "A cloud.", "My bank won."])
    assert (app.session_state["sentence_a"], app.session_state["sentence_b"]) == (1, 4)
    app.session_state["sentences"] = (A, B)
    app.run()
    assert not app.exception
    assert (app.session_state["sentence_a"], app.session_state["sentence_b"]) == (0, 2)
