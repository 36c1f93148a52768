"""Search by words and vectors together: the hits, the terms of each, and what words change."""

from __future__ import annotations

import numpy as np
import pytest

from components.model.trace import POOLINGS
from components.retrieval.corpora.corpus import Corpus, ReadReport
from components.retrieval.evaluation.ranks import NOT_FOUND
from components.retrieval.fusion.hits import FusedRanking
from components.retrieval.rankings.run_code import RunCode
from components.retrieval.search.lexical import make_ranker
from dashboard import caching
from dashboard.corpora import current
from dashboard.views.search.comparisons.hybrid import finding, fused_code
from tests.support.pages import Open, at_rest, backend, hit_axis, hits, texts

QUERY = "three hundred flights"


def plain_scores(query: str) -> tuple[np.ndarray, np.ndarray]:
    """The demo's sentences by the last layer's cosine and by BM25."""
    model, corpus = backend(), current.demo()
    options = model.embed_options(range(7), POOLINGS, role="document")
    job = caching.indexes().request(model, corpus, options)
    assert job.finished.wait(120)
    stored = job.result.engine(6, "mean").vectors.astype(np.float64)
    asked = model.embed([query], options=model.embed_options([6], ["mean"], precision="float32"))[0, 0, 0]
    cosines = stored @ asked.astype(np.float64) / np.linalg.norm(stored, axis=1) / np.linalg.norm(asked)
    return cosines, make_ranker("bm25", corpus.texts).scores(query)


def plain_ranks(query: str) -> tuple[np.ndarray, np.ndarray]:
    """Their ranks, 0 for none."""
    cosines, words = plain_scores(query)
    by_vectors = np.array([np.count_nonzero(cosines >= own - 1e-12) for own in cosines])
    by_words = np.array([np.count_nonzero(words >= own - 1e-6) if own > 0 else 0 for own in words])
    return by_vectors, by_words


def test_hits_by_both_have_the_terms_of_their_scores(open_page: Open) -> None:
    app = at_rest(open_page("search", q=QUERY, vs="fused"))
    assert not app.error
    by_vectors, by_words = plain_ranks(QUERY)
    sums = 1 / (60 + by_vectors) + np.where(by_words > 0, 1 / (60.0 + by_words), 0)
    best = np.argsort(-sums, kind="stable")[:10]
    rows = hits(app, 1)
    assert [row["index"] for row in rows] == best.tolist()
    for row in rows:
        number = row["index"]
        vectors, words = row["terms"]
        assert vectors == f"vectors 1/(60+{by_vectors[number]})"
        assert words == (f"words 1/(60+{by_words[number]})" if by_words[number] else "words –")
        assert row["score"] == f"{sums[number]:.4f}"
        assert row["bar"] == pytest.approx(sums[number] / (2 / 61), abs=1e-4)
        assert row["firstShare"] == pytest.approx(1 / (60 + by_vectors[number]) / sums[number], abs=1e-4)
    assert hit_axis(app, 1)["ends"] == ("0", "2/61") or hit_axis(app, 1)["ends"] == ["0", "2/61"]
    first = int(best[0])
    assert by_vectors[first] > 1
    assert f"rises from {by_vectors[first]} to 1**: it has rank {by_words[first]} by words." in texts(app)
    assert not hits(app)[0]["terms"]  # the list by vectors has none


def test_ranks_are_put_together_with_weights(open_page: Open) -> None:
    app = at_rest(open_page("search", q=QUERY, vs="fused", fu="weighted", fuw="20", fuk="10"))
    assert not app.error
    by_vectors, by_words = plain_ranks(QUERY)
    sums = 0.8 / (10 + by_vectors) + np.where(by_words > 0, 0.2 / (10.0 + by_words), 0)
    best = np.argsort(-sums, kind="stable")[:10]
    assert [row["index"] for row in hits(app, 1)] == best.tolist()
    for row in hits(app, 1):
        assert row["terms"][0] == f"vectors 0.8/(10+{by_vectors[row['index']]})"
        assert row["score"] == f"{sums[row['index']]:.4f}"
        assert row["bar"] == pytest.approx(sums[row["index"]] * 11, abs=1e-4)
    assert "vectors + BM25, 20 % words by ranks (k 10)" in texts(app).replace("\\", "")


def test_equal_texts_are_one_text_of_a_hybrid_list(open_page: Open) -> None:
    """Their ranks are those among different texts: repeated rows are no ties."""
    lines = ["The cat is in.", "The dog is on.", "The ship is at.", "The lamp is by."]
    rows = [*lines, *[lines[1]] * 3, lines[0]]
    own = Corpus("again", tuple(rows), {}, ReadReport(len(rows), len(rows), duplicates=len(rows) - len(lines)))
    caching.corpora().put(current.key_of(own), own)
    app = at_rest(open_page("search", corpus=current.key_of(own), q="a dog", vs="fused"))
    both = backend().embed([*lines, "a dog"], options=backend().embed_options(precision="float32"))[0, 0].astype(float)
    both /= np.linalg.norm(both, axis=1, keepdims=True)
    order = np.argsort(-(both[:-1] @ both[-1])).tolist()
    assert {row["index"]: row["terms"][0] for row in hits(app, 1)} == {
        number: f"vectors 1/(60+{order.index(number) + 1})" for number in range(len(lines))
    }
    assert [row["same"] for row in hits(app, 1) if row["index"] < 2] == ["4 rows", "2 rows"]


def test_other_vectors_and_max_sim_are_put_together_and_say_their_ranks(open_page: Open) -> None:
    app = at_rest(open_page("search", q=QUERY, vs="fused", hy=["m.3.mean", "maxsim"], cand="10"))
    assert not app.error
    assert "Hybrid: vectors + layer 3, Mean + MaxSim" in texts(app).replace("\\", "")
    terms = [[term.rpartition(" ")[::2] for term in row["terms"]] for row in hits(app, 1)]
    assert all([name for name, _ in row] == ["vectors", "layer 3, Mean", "MaxSim"] for row in terms)
    for row, written in zip(hits(app, 1), terms, strict=True):
        ranks = [float(term.removeprefix("1/(60+").removesuffix(")")) for _, term in written if term != "–"]
        assert row["score"] == f"{sum(1 / (60 + rank) for rank in ranks):.4f}"
        assert row["bar"] == pytest.approx(sum(1 / (60 + rank) for rank in ranks) / (3 / 61), abs=1e-4)
    assert any(button.label.endswith("Compare them on all queries") for button in app.button)
    # The candidates of MaxSim are the first ten of the list by vectors: all others have no rank by it.
    by_vectors, _ = plain_ranks(QUERY)
    assert all(
        (written[2][1] == "–") == (by_vectors[row["index"]] > 10)
        for row, written in zip(hits(app, 1), terms, strict=True)
    )


def test_without_a_word_of_the_query_words_change_nothing(open_page: Open) -> None:
    app = at_rest(open_page("search", q="zzzz qqqq", vs="fused", l="3", hy=["bm25", "m.3.mean"]))
    assert not app.error
    # These are the list's own vectors: they alone are taken out of the choice, with their name.
    assert "These rankings cannot be put together here: layer 3, Mean." in texts(app).replace("\\", "")
    assert app.multiselect(key="w_hybrid_with").value == ["bm25"]
    assert "No sentence has a word of the query: **words change nothing**." in texts(app)
    assert [row["index"] for row in hits(app, 1)] == [row["index"] for row in hits(app)]
    assert all(row["terms"][1] == "words –" for row in hits(app, 1))
    app = app.multiselect(key="w_hybrid_with").set_value([]).run()
    assert app.query_params["hy"] == ""  # a reload does not bring the choice of before back
    assert "Nothing to put together yet." in texts(app)


def test_a_hit_by_both_says_that_its_score_is_no_sum_over_words(open_page: Open) -> None:
    app = at_rest(open_page("search", q=QUERY, vs="fused", why="3", wb="second"))
    assert not app.error
    assert "is a sum over rankings, not over words" in texts(app)


@pytest.mark.parametrize(
    ("by_vectors", "by_words", "said"),
    [
        (1, 4, "**Words leave the first place as it is**: it has rank 4 by words."),
        (1, NOT_FOUND, "**Words leave the first place as it is**: it has no word of the query."),
        (2, NOT_FOUND, "**Words leave the first place as it is**: it has no word of the query."),  # a tie by vectors
        (2, 1, "“Airlines \\<b\\>” rises from 2 to 1**: it has rank 1 by words."),
    ],
)
def test_the_finding_is_about_the_first_place(by_vectors: int, by_words: int, said: str) -> None:
    ranks = np.array([[by_vectors], [by_words]])
    found = FusedRanking("", terms=np.zeros((2, 1)), alone=ranks)
    assert said in finding(found, "Airlines <b>", True)


def test_a_sentence_that_was_first_by_vectors_with_an_equal_one_does_not_rise() -> None:
    found = FusedRanking("", terms=np.zeros((2, 1)), alone=np.array([[2], [2]]))
    assert (
        finding(found, "Airlines", True, best=2) == "**Words leave the first place as it is**: it has rank 2 by words."
    )


def test_of_other_rankings_than_those_by_words_no_word_is_said() -> None:
    ranks = np.array([[1], [NOT_FOUND]])
    found = FusedRanking("", terms=np.zeros((2, 1)), alone=ranks)
    for has_others in (False, True):
        assert "word" not in finding(found, "Airlines", has_others, names=["MaxSim"]).lower()
    assert "**words change nothing**" in finding(found, "Airlines", False, names=["BM25"])


def test_first_place_of_a_sentence_that_the_vectors_do_not_rank() -> None:
    found = FusedRanking("", terms=np.zeros((2, 1)), alone=np.array([[NOT_FOUND], [1]]))
    assert finding(found, "Airlines", True, depth=50) == (
        "**“Airlines” is first, and not among the first 50 by vectors**: it has rank 1 by words."
    )


@pytest.mark.parametrize("by", ["minmax", "z"])
def test_weighted_hits_have_the_terms_of_their_scores(open_page: Open, by: str) -> None:
    app = at_rest(open_page("search", q=QUERY, vs="fused", fu=by, fuw="30", fud="400"))
    assert not app.error
    columns, ranked = [], []
    for scores, ranks in zip(plain_scores(QUERY), plain_ranks(QUERY), strict=True):
        is_in = (ranks > 0) & (ranks <= 400)
        cut = np.where(is_in, scores, scores.min())
        start, width = (cut.min(), np.ptp(cut)) if by == "minmax" else (cut.mean(), cut.std())
        columns.append((cut - start) / width)
        ranked.append(is_in)
    terms = np.array([0.7 * columns[0], 0.3 * columns[1]])
    sums = np.where(ranked[0] | ranked[1], terms.sum(axis=0), -np.inf)
    rows = hits(app, 1)
    assert [row["index"] for row in rows] == np.argsort(-sums, kind="stable")[:10].tolist()
    for row in rows:
        number = row["index"]
        assert float(row["score"]) == pytest.approx(sums[number], abs=6e-5)
        for name, term, is_in, written in zip(
            ("vectors", "words"), terms[:, number], np.array(ranked)[:, number], row["terms"], strict=True
        ):
            if by == "minmax" and not is_in:
                assert written == f"{name} –"
                continue
            number_written = written.removeprefix(f"{name} ").removesuffix("" if is_in else " (no rank)")
            assert float(number_written.replace("−", "-")) == pytest.approx(term, abs=6e-5)
        if by == "minmax":
            assert row["bar"] == pytest.approx(sums[number], abs=1e-4)
            assert row["firstShare"] == pytest.approx(terms[0, number] / sums[number], abs=1e-4)
    shown = texts(app).replace("\\", "")
    assert (
        f"Hybrid: vectors + BM25, 30 % words{' by z scores' if by == 'z' else ''}, only the first 400 of each" in shown
    )
    # Moved to its ends, the weight gives the order of one ranking alone.
    app = at_rest(app.slider(key="w_fusion_weight").set_value(0).run())
    assert "The weight of words is 0: **this is the order by vectors**." in texts(app)
    assert [row["index"] for row in hits(app, 1)] == [row["index"] for row in hits(app)]
    app = at_rest(app.slider(key="w_fusion_weight").set_value(100).run())
    assert "The weight of the vectors is 0: **this is the order by words**." in texts(app)
    assert [row["index"] for row in hits(app, 1)] == np.argsort(-columns[1], kind="stable")[
        : len(hits(app, 1))
    ].tolist()


def test_vectors_that_are_all_the_same_add_nothing_and_this_is_said(open_page: Open) -> None:
    # The [CLS] vector of layer 0 is the same for every sentence.
    app = at_rest(open_page("search", q=QUERY, vs="fused", l="0", pool="cls", fu="minmax"))
    assert not app.error
    assert "By vectors all sentences have the same score, which adds 0 to each." in texts(app)
    assert all(row["terms"][0] == "vectors 0.0000" for row in hits(app, 1))
    # By ranks too, with another k; where only the first few count, no sentence is among them by vectors.
    app = at_rest(app.segmented_control(key="w_fusion_by").set_value("rrf").run())
    app = at_rest(app.number_input(key="w_fusion_k").set_value(10).run())
    count = len(current.demo())
    assert f"vectors 1/(10+{count})" in {row["terms"][0] for row in hits(app, 1)}
    assert "By vectors all sentences have the same score, which adds the same to each." in texts(app)
    app = at_rest(app.number_input(key="w_fusion_depth").set_value(5).run())
    assert "By vectors more than 5 sentences share the first place, so that none of them counts." in texts(app)
    assert {row["terms"][0] for row in hits(app, 1)} == {"vectors –"}


@pytest.mark.parametrize(("is_by_first", "way"), [(True, "ms"), (False, "mx")])
def test_the_comparison_on_all_queries_has_the_model_that_max_sim_is_by(is_by_first: bool, way: str) -> None:
    code = fused_code(RunCode.read("m.6.mean"), ["maxsim", "bm25"], 50, is_by_first)
    assert str(code) == f"fr.m.6.mean~{way}.50.m.6.mean~bm25"
