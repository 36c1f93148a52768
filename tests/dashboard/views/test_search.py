"""The Search page: what it shows is what plain vectors and formulas give."""

from __future__ import annotations

import html
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from components import operator_settings
from components.analysis.similarity import late_interaction
from components.jobs import Job, Stopped
from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY, parse_model
from components.model.trace import POOLINGS, TraceOptions
from components.retrieval.corpora.corpus import Corpus, ReadReport, read_corpus
from components.retrieval.corpora.demo import sentences_that_differ
from components.retrieval.corpora.facts import corpus_facts
from components.retrieval.engines import graph
from components.retrieval.search import chance, lexical, score_split
from components.retrieval.search.exact import Hits
from components.retrieval.search.lexical import make_ranker
from components.retrieval.search.paraphrases import SimilarPair, most_similar_pairs
from components.retrieval.search.relevance import Judgements
from components.retrieval.search.rerank import late_interaction_scores
from components.words.differences import difference
from dashboard import caching, settings
from dashboard.corpora import current
from dashboard.jobs import embedding, requests, reranking, search_engines
from dashboard.views.search import batches, results, shading
from dashboard.views.search import chance as chance_findings
from dashboard.views.search.ranked import Ranked, different_hits, up_to
from dashboard.views.search.request import SearchRequest
from dashboard.views.search.whole_corpus import contents, duplicates
from tests.dashboard.page_states import small_corpus
from tests.support.closeness import assert_close
from tests.support.pages import Open, at_rest, backend, choose_view, figures, hit_axis, hits, texts
from tests.support.rare_cases import but_a_few


@pytest.fixture(scope="module")
def demo_vectors() -> np.ndarray:
    """The demo corpus, [layer, pooling, sentence, dim], and the index is made."""
    model, corpus = backend(), current.demo()
    options = model.embed_options(range(7), POOLINGS, role="document")
    job = caching.indexes().request(model, corpus, options)
    assert job.finished.wait(120)
    return np.array([[job.result.engine(layer, name).vectors for name in POOLINGS] for layer in range(7)], np.float32)


def expected(vectors: np.ndarray, query: str, layer: int, pooling: str, dot: bool = False) -> np.ndarray:
    """Scores by the formula, with the query in float32."""
    options = backend().embed_options(range(7), POOLINGS, precision="float32")
    place = POOLINGS.index(pooling)
    asked = backend().embed([query], options=options)[layer, place, 0]
    stored = vectors[layer, place]
    scores = stored @ asked
    return scores if dot else scores / np.linalg.norm(stored, axis=1) / np.linalg.norm(asked)


def rows_of(app: Any, number: int = 0) -> list[int]:
    return [row["index"] for row in hits(app, number)]


def test_counting_tokens_and_words_is_a_job_with_progress_and_stop(
    open_page: Open, demo_vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_rest(open_page("search", v="corpus"))
    caching.preparations.clear()
    gate, make = threading.Event(), lexical.make_ranker
    monkeypatch.setattr(lexical, "make_ranker", lambda kind, texts: gate.wait(60) and make(kind, texts))
    app = open_page("search", q="actor wins award", vs="bm25")
    try:
        (bar,) = app.main.get("progress")
        assert bar.proto.text.startswith("BM25\\: counting the words of 630 sentences")
        assert app.button(key="stop_ranker_bm25").label == "Stop"
        assert len(hits(app)) == 10  # the model's own hits do not wait
    finally:
        gate.set()
    assert hits(at_rest(app), 1)
    open_page("search", v="corpus")
    assert any(job.key[0] == "token counts" for job in caching.preparations().finished())


def test_it_opens_with_hits_of_the_first_ready_made_query(demo_vectors: np.ndarray, read_page: Open) -> None:
    app = read_page("search")
    assert not app.error
    scores = expected(demo_vectors, "volcano erupted", 6, "mean")
    best = np.argsort(-scores, kind="stable")[:10]
    assert rows_of(app) == best.tolist()
    assert [row["score"] for row in hits(app)] == [f"{scores[at]:.3f}" for at in best]
    assert "volcano" in hits(app)[0]["tag"]
    assert hits(app)[0]["tag"].endswith(f" · number {best[0]}")
    assert "place in the corpus, counted from 0" in texts(app)  # while ranks count from 1
    assert hits(app)[0]["rank"] == 1
    marked = [part["text"] for part in hits(app)[0]["parts"] if part["shared"]]
    assert marked == ["volcano", "erupted"]
    histogram = figures(app)[0]["data"]
    assert sum(map(int, histogram[0]["y"])) == 630
    np.testing.assert_allclose(histogram[1]["x"], scores[best], atol=1e-4)


@pytest.mark.parametrize(
    ("layer", "pooling", "similarity"), [(0, "max", "cosine"), (3, "mean", "dot"), (6, "cls", "dot")]
)
def test_layer_pooling_and_similarity(
    open_page: Open, demo_vectors: np.ndarray, layer: int, pooling: str, similarity: str
) -> None:
    app = open_page("search", q="bridge collapses after storm", l=str(layer), pool=pooling, sim=similarity, k="25")
    scores = expected(demo_vectors, "bridge collapses after storm", layer, pooling, similarity == "dot")
    best = np.argsort(-scores, kind="stable")[:25]
    np.testing.assert_allclose([float(row["score"].replace("−", "-")) for row in hits(app)], scores[best], atol=2e-3)
    assert len(set(rows_of(app)) & set(best.tolist())) >= 24  # neighbours may swap at the last digit


def test_changing_layer_pooling_and_k_costs_no_forward_pass(
    open_page: Open, demo_vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The words of hits, which come behind them, are the test below.
    monkeypatch.setattr(shading, "of_vectors", lambda *_: None)
    app = at_rest(open_page("search"))  # random queries are embedded once, for the level of chance
    before = backend().forward_passes
    app.slider(key="w_k").set_value(30).run()
    app.select_slider(key="w_layer").set_value(2).run()
    app.segmented_control(key="w_pooling").set_value("max").run()
    app.segmented_control(key="w_similarity").set_value("dot").run()
    assert len(hits(app)) == 30
    assert backend().forward_passes == before
    at_rest(app)
    app.text_input(key="w_query").set_value("a new query of its own").run()
    assert backend().forward_passes == before + 1


def test_hits_do_not_wait_for_their_words_which_cost_one_pass(
    open_page: Open, demo_vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_rest(open_page("search", q="a query whose words are known"))
    gate, shades = threading.Event(), score_split.shades
    monkeypatch.setattr(shading, "shades", lambda parts: gate.wait(60) and shades(parts))
    before = backend().forward_passes
    app = open_page("search", q="ferries stayed in port")
    try:
        assert len(hits(app)) == 10
        assert {part["shade"] for row in hits(app) for part in row["parts"]} == {None}
        assert any(part["shared"] for row in hits(app) for part in row["parts"])  # marked until then
        assert not app.main.get("progress")
    finally:
        gate.set()
    app = at_rest(app)
    assert max(part["shade"] for part in hits(app)[0]["parts"]) > 0
    assert backend().forward_passes == before + 2  # the query's vector, and the words of ten hits together


def test_shaded_words_are_those_of_the_exact_split(open_page: Open, demo_vectors: np.ndarray) -> None:
    """As strongly as the word adds to the cosine that is on screen, by the formula, with a pass of its own."""
    query, nonsense = "volcano erupted", "flurbish quontle zib"
    for asked in (query, nonsense):
        app = at_rest(open_page("search", q=asked))
        for _ in range(200):  # the hits do not wait for their words
            if all(part["shade"] is not None for row in hits(app) for part in row["parts"]):
                break
            time.sleep(0.1)
            app.run()
        for row in hits(app)[:3]:
            text = current.demo().texts[row["index"]]
            trace = backend().run([asked, text], options=TraceOptions(max_length=256))
            vectors = [trace.hidden_states[6, side, : len(trace.sentences[side])].astype(np.float64) for side in (0, 1)]
            means = [side.mean(axis=0) for side in vectors]
            scale = np.linalg.norm(means[0]) * np.linalg.norm(means[1])
            added = vectors[1] @ means[0] / len(vectors[1]) / scale  # [token] of the hit
            assert added.sum() == pytest.approx(float(row["score"]), abs=2e-3)
            by_word: dict[int, float] = {}
            for token, value in zip(trace.sentences[1].tokens, added, strict=True):
                if not token.special:  # with the marks that stand at a word, as typed
                    place = text.rfind(" ", 0, token.start + 1) + 1
                    by_word[place] = by_word.get(place, 0.0) + value
            top = max(0.08, *by_word.values())
            expected_words = {
                text[place:].split()[0].strip(".,"): value / top
                for place, value in by_word.items()
                if value >= 0.4 * top
            }
            shown = {part["text"].strip(".,"): part["shade"] for part in row["parts"] if part["shade"]}
            if not any("-" in word or "'" in word for word in expected_words):
                assert shown == pytest.approx(expected_words, abs=2e-3), text
            assert all(row["asked"])


def test_shades_begin_at_40_per_cent_of_the_largest_part_and_never_grow_beyond_it() -> None:
    def part(value: float, start: int, kind: score_split.PartKind = "word") -> score_split.ScorePart:
        return score_split.ScorePart("word", kind, ((start, start + 2),), value)

    parts = [part(0.2, 0), part(0.08, 3), part(0.079, 6), part(-0.3, 9), part(0.9, 12, "punctuation")]
    assert score_split.shades(parts) == ((0, 2, 1.0), (3, 5, pytest.approx(0.4)))
    faint = score_split.shades([part(0.04, 0), part(0.03, 3)])  # nonsense: half of what would be shaded fully
    assert faint == ((0, 2, pytest.approx(0.5)),)
    assert score_split.shades([part(0.02, 0)]) == ()
    assert score_split.shades([]) == ()


@pytest.mark.parametrize("kind", ["bow", "tfidf", "lsa", "bm25", "jm"])
def test_a_baseline_stands_beside_with_changes_of_rank(open_page: Open, demo_vectors: np.ndarray, kind: str) -> None:
    app = at_rest(open_page("search", q="actor wins award", vs=kind))
    assert not app.error
    is_lsa = kind == "lsa"  # which is called an approximation
    assert ("roughly the main directions in which words occur together" in texts(app)) == is_lsa
    assert "reduced to the main directions" not in texts(app)
    scores = make_ranker(kind, current.demo().texts).scores("actor wins award")
    best = np.argsort(-scores, kind="stable")[:10]
    best = best[scores[best] > (scores.min() if kind == "jm" else 0)]
    assert rows_of(app, 1) == best.tolist()
    left = rows_of(app)
    for rank, row in enumerate(hits(app, 1), start=1):
        if row["index"] not in left:
            assert row["change"]["kind"] == "new"
        else:
            other = left.index(row["index"]) + 1
            assert row["change"]["kind"] == ("same" if other == rank else "up" if rank < other else "down")


def test_static_vectors_and_another_setting_beside(open_page: Open, demo_vectors: np.ndarray) -> None:
    app = open_page("search", vs="static")
    assert not app.error
    assert len(hits(app, 1)) == 10
    app = open_page("search", vs="setting", l2="3", pool2="max")
    scores = expected(demo_vectors, "volcano erupted", 3, "max")
    np.testing.assert_allclose(
        [float(row["score"].replace("−", "-")) for row in hits(app, 1)], np.sort(scores)[::-1][:10], atol=2e-3
    )


def test_a_query_without_a_known_word_is_said_on_the_lexical_side(open_page: Open, demo_vectors: np.ndarray) -> None:
    app = open_page("search", q="zzzz qqqq", vs="bm25")
    assert "No sentence shares a word" in texts(app)
    assert len(hits(app)) == 10


def test_a_query_without_spaces_says_what_stands_for_its_words(open_page: Open, demo_vectors: np.ndarray) -> None:
    assert "pairs of neighbouring characters stand for them" in texts(open_page("search", q="火山爆发", vs="bm25"))
    assert "neighbouring characters" not in texts(open_page("search", q="volcano erupted", vs="bm25"))


def test_an_empty_query_asks_for_one(open_page: Open, demo_vectors: np.ndarray) -> None:
    app = open_page("search", q=" ")
    assert "No query yet" in texts(app)
    assert not app.error


def test_marks_give_precision(open_page: Open, demo_vectors: np.ndarray) -> None:
    from components.retrieval.search.relevance import Judgements

    app = open_page("search")
    corpus = current.demo()
    found = rows_of(app)
    record = Judgements().mark("volcano erupted", found[0], True).mark("volcano erupted", found[2], True)
    app.session_state["_judgements"] = {corpus.content_hash: record.mark("volcano erupted", found[1], False)}
    app.run()
    assert app.table[0].value.to_dict("records") == [
        {"ranking": "Layer 6, Mean, cosine", "queries": 1, "P@5": "0.40", "P@10": "0.20"}
    ]
    assert [row["relevant"] for row in hits(app)[:4]] == [1, 0, 1, None]


def adds_to(app: Any, side: str) -> float:
    """What the bars of “Why?” of one text sum to, with those of no word; an annotation stands for many bars."""
    (figure,) = (item for item in figures(app) if "adds to the score" in item["layout"]["title"]["text"])
    values = {trace["name"]: np.asarray(trace["x"], float).sum() for trace in figure["data"]}
    places = sorted(zip(figure["layout"]["yaxis"]["tickvals"], figure["layout"]["yaxis"]["ticktext"], strict=True))
    for note in figure["layout"].get("annotations", ()):
        of = [text for place, text in places if place <= note["y"] and text.startswith("<b>")][-1]
        name = of.removeprefix("<b>").removesuffix("</b>")
        values[name] = values.get(name, 0.0) + float(note["text"].replace("−", "-"))
    return float(values[side] + values.get("No word", 0.0))


RANKINGS = {
    "cosine": {},
    "dot product": {"sim": "dot"},
    "max": {"pool": "max"},
    "another setting": {"vs": "setting", "l2": "3", "sim2": "dot", "wb": "second"},
    "graph": {"eng": "usearch"},
    **{kind: {"vs": kind, "wb": "second"} for kind in ("bow", "tfidf", "lsa", "bm25", "jm", "static")},
}


@pytest.mark.parametrize("ranking", but_a_few(RANKINGS, ("cosine", "another setting", "lsa", "bm25")))
def test_what_words_add_sums_to_the_score_on_screen(open_page: Open, demo_vectors: np.ndarray, ranking: str) -> None:
    app = at_rest(open_page("search", q="the volcano erupted", why="439", k="100", **RANKINGS[ranking]))
    assert not app.exception
    number = int("vs" in RANKINGS[ranking])
    (on_screen,) = (row["score"] for row in hits(app, number) if row["index"] == 439)
    assert f"**{on_screen}**" in texts(app)  # the sentence names the same score
    shares = figures(app)[0]["layout"]["yaxis"]["ticktext"]
    sides = ["Words of both"] if "<b>Words of both</b>" in shares else ["Query", "Hit"]
    for side in sides:
        assert adds_to(app, side) == pytest.approx(float(on_screen.replace("−", "-")), abs=0.0016)
    assert not any(item["data"][0]["type"] == "heatmap" for item in figures(app))  # MaxSim did not rank it


def test_of_a_distance_it_is_said_what_is_split(open_page: Open, demo_vectors: np.ndarray) -> None:
    app = at_rest(open_page("search", q="the volcano erupted", why="439", k="100", sim="euclidean"))
    (on_screen,) = (float(row["score"].replace("−", "-")) for row in hits(app) if row["index"] == 439)
    assert "which is no sum over words. Its negative square" in texts(app)
    assert "Of the negative squared distance" in texts(app)
    for side in ("Query", "Hit"):
        assert adds_to(app, side) == pytest.approx(-(on_screen**2), abs=0.01)
    app = at_rest(open_page("search", q="the volcano erupted", why="439", k="100", sim="manhattan"))
    assert "Split here is the cosine of the same two vectors" in texts(app)
    sides = [adds_to(app, side) for side in ("Query", "Hit")]
    app = at_rest(open_page("search", q="the volcano erupted", why="439", k="100"))
    (of_cosine,) = (float(row["score"]) for row in hits(app) if row["index"] == 439)
    assert sides == pytest.approx([of_cosine] * 2, abs=0.0016)


def test_special_tokens_are_named_where_they_add_more_than_any_word(open_page: Open, demo_vectors: np.ndarray) -> None:
    """Sentence 0 has nothing of the query: most of what little cosine there is comes from [CLS] and [SEP]."""
    app = open_page("search", q="volcano erupted", why="0")
    assert r"\[CLS\] and \[SEP\] of the query add more than any word" in texts(app)


def test_with_cls_there_is_no_split_and_it_is_said(open_page: Open, demo_vectors: np.ndarray) -> None:
    app = open_page("search", q="volcano erupted", why="439", pool="cls")
    assert "is no sum over words here" in texts(app)
    assert not any("adds to the score" in item["layout"]["title"]["text"] for item in figures(app))
    assert app.button(key="why_here")


def test_a_list_s_own_score_is_explained(open_page: Open, demo_vectors: np.ndarray) -> None:
    app = at_rest(open_page("search", q="volcano erupted", why="439", vs="bm25", wb="second"))
    assert "Of the BM25 score" in texts(app)
    app.segmented_control(key="w_why_by").set_value("first").run()
    assert "Of the cosine" in texts(app)
    app = at_rest(open_page("search", q="volcano erupted", why="439", vs="rerank", cand="10", wb="second"))
    assert "The cross-encoder gave a logit of" in texts(app)
    app = at_rest(open_page("search", q="volcano erupted", why="439", vs="maxsim", cand="10", wb="second"))
    assert "MaxSim, the sum of each query token's best cosine" in texts(app)
    assert "Not how this hit was ranked" not in texts(app)
    assert "maxsim" not in app.segmented_control(key="w_why_by").options


def test_bars_go_from_0_to_1_with_the_level_of_chance(open_page: Open, demo_vectors: np.ndarray) -> None:
    for query in ("volcano erupted", "flurbish quontle zib"):
        app = at_rest(open_page("search", q=query))
        for row in hits(app):
            assert row["bar"] == pytest.approx(float(row["score"]), abs=6e-4)
        axis = hit_axis(app)
        assert axis["ends"] == ["0", "1"]
        assert 0.35 < axis["level"] < 0.5
        assert axis["unrelated"] < axis["level"]
        assert [row["close"] for row in hits(app)] == [float(row["score"]) > axis["level"] for row in hits(app)]
    assert re.search(
        r"\*\*Nothing close:\*\* the first hit has 0\.27\d?, and random words reach 0\.4\d*\.", texts(app)
    )  # one level


def test_the_level_of_other_scores_is_in_their_own_units(open_page: Open, demo_vectors: np.ndarray) -> None:
    axis = hit_axis(at_rest(open_page("search", q="flurbish quontle zib", sim="dot")))
    assert axis["level"] == 1.0  # the best hit is below it: its bar is not full
    app = at_rest(open_page("search", q="zebra volcano", vs="bm25"))
    assert hit_axis(app, 1)["ends"] == ["no word", "each at its most"]
    assert hit_axis(app, 1)["level"] is None
    assert "The first hit has 1 of the query's 2 words" in texts(app)
    app = at_rest(open_page("search", q="volcano erupted", vs="rerank", cand="10"))
    assert hit_axis(app, 1) is None
    assert {row["bar"] for row in hits(app, 1)} == {None}


def test_equal_vectors_are_no_better_than_chance(open_page: Open, demo_vectors: np.ndarray) -> None:
    app = at_rest(open_page("search", l="0", pool="cls"))  # the same vector for every sentence: all cosines are 1
    assert "Nothing close" in texts(app)
    assert not any(row["close"] for row in hits(app))


def test_ties_at_the_first_place_are_part_of_the_finding(open_page: Open, demo_vectors: np.ndarray) -> None:
    app = at_rest(open_page("search", l="0", pool="cls", k="5"))
    assert "**Nothing close:** the first 630 hits tie at 1.00" in texts(app)
    near = chance_findings.finding_of(0.437, 2, 630, 0.4261, near=[0.4272, 0.388])
    assert near == "**2 of 630 sentences are closer than chance:** the first has 0.437, and random words reach 0.426."
    finding = chance_findings.finding_of(1.0, 6, 8, 0.5, has_none=True, tied=6)
    assert (
        finding == "**6 of 8 sentences are closer than chance:** the first 6 tie at 1.00, and random words reach 0.50."
    )


def test_equal_sentences_count_once_in_the_finding() -> None:
    texts = ["Tea is hot."] * 3 + ["Warm tea.", "Snow falls.", "Snow falls."]
    corpus = read_corpus("\n".join(texts).encode(), "x.txt")
    ranked: Any = SimpleNamespace(
        best=[0, 1, 2],
        scores=np.array([0.8, 0.8, 0.8, 0.7, 0.1, np.nan]),
        explained=SimpleNamespace(counts_words=False),
        level=SimpleNamespace(level=0.5, median=0.3),
        hits_only=False,
    )
    said = chance_findings.finding(ranked, corpus, "a hot drink", True)
    assert (
        said == "**2 of 3 sentences are closer than chance:** the first has 0.80 (3 rows), and random words reach 0.50."
    )


def test_a_query_in_a_language_that_the_model_does_not_know_finds_nothing_close(
    open_page: Open, demo_vectors: np.ndarray
) -> None:
    """Its pieces are all unknown: whatever is closest to that vector is no answer."""
    app = at_rest(open_page("search", q="แมวกำลังนอนอยู่บนโซฟา"))
    said = texts(app)
    assert "These scores say nothing:** the model does not know the language of the query. The first" in said
    assert "closer than chance:**" not in said
    assert "Nothing close:**" not in said


def test_what_the_level_of_chance_is_stands_behind_the_question_mark_with_what_was_left_out(
    open_page: Open, demo_vectors: np.ndarray
) -> None:
    app = at_rest(open_page("search", q="volcano erupted"))
    (line,) = [item.value for item in app.markdown if "closer than chance" in item.value]
    assert line == (
        ":material/insights: **4 of 630 sentences are closer than chance:** the first, at 0.57, has "
        "“volcano” "
        "and “erupted”; random words reach 0.43."
    )
    (read,) = [item.value for item in app.markdown if "The level of chance" in item.value]
    assert "find nothing above it among the sentences that have none of their words" in read
    assert "**Layer 6, Mean, cosine.**" in read
    assert hit_axis(app)["name"] == "random words reach 0.43"


@pytest.mark.parametrize(
    ("best", "level", "ends", "note"),
    [
        (-3.2, None, ("", ""), "no hit has more than that: the first one has −3.20"),
        (-3.2, -4.0, ("", ""), "no hit has more than that: the first one has −3.20"),
        (0.0, None, ("", ""), "no hit has more than that: the first one has 0.00"),
        (-3.2, 0.5, ("0", "0.50"), "from 0 to 0.50, which is that of the level of chance"),
        (2.0, 0.5, ("0", "2.00"), "from 0 to 2.00, which is that of the best hit"),
    ],
)
def test_bars_of_dot_products_of_either_sign(
    best: float, level: float | None, ends: tuple[str, str], note: str
) -> None:
    scale = up_to(best, level)
    assert scale.names == ends
    assert note in scale.note
    assert scale.length(best) == (1.0 if best > max(0.0, level or 0.0) else 0.0)


def test_a_level_that_is_measured_while_the_page_is_drawn_waits_for_the_next_drawing() -> None:
    job = Job("Measuring chance")
    known = chance.ChanceLevel(np.array([0.3, 0.4]), np.array([0.1]))
    ranked = Ranked.of_scores("BM25", "score", np.array([0.5]), 1, chance=job)
    job.finish(known)
    assert ranked.level is None
    assert ranked.is_measured_now
    again = Ranked.of_scores("BM25", "score", np.array([0.5]), 1, chance=job)
    assert again.level is known
    assert not again.is_measured_now


def test_hits_do_not_wait_for_the_level_of_chance(
    open_page: Open, demo_vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    caching.chance_levels.clear()
    gate, draw_queries = threading.Event(), chance.random_queries
    monkeypatch.setattr(chance, "random_queries", lambda texts: gate.wait(60) and draw_queries(texts))
    app = open_page("search", q="volcano erupted")
    try:
        assert len(hits(app)) == 10
        assert "is being measured" in texts(app)
        assert hit_axis(app)["level"] is None
        assert not app.main.get("progress")
    finally:
        gate.set()
    assert "sentences are closer than chance" in texts(at_rest(app))


def test_why_can_show_maxsim_which_did_not_rank_the_hit(
    open_page: Open, demo_vectors: np.ndarray, read_page: Open
) -> None:
    best = rows_of(read_page("search"))[0]
    app = open_page("search", why=str(best), l="5", wb="maxsim")
    assert "Not how this hit was ranked" in texts(app)
    trace = backend().trace(["volcano erupted", current.demo().texts[best]], max_length=256)
    similarity = late_interaction.of_trace(trace, 5)
    matrix = next(item for item in figures(app) if item["data"][0]["type"] == "heatmap")["data"][0]["z"]
    assert_close(matrix, similarity.matrix)
    assert f"best cosine, is {similarity.total:.3f};" in texts(app)
    assert "Shared words:** volcano, erupted" in texts(app)
    app.button(key="close_why").click().run()
    assert not any(item["data"][0]["type"] == "heatmap" for item in figures(app))


def test_markup_in_a_query_is_text(open_page: Open, demo_vectors: np.ndarray) -> None:
    app = open_page("search", q="<img src=x onerror=alert(1)> **volcano**", why="0")
    assert not app.error
    assert not any("<img" in element.value for element in app.markdown)


def test_many_queries_at_once(open_page: Open, demo_vectors: np.ndarray) -> None:
    app = open_page("search", v="many-queries")
    app.text_area(key="w_typed_queries").set_value("volcano erupted\n\nactor wins award\nflurbish quontle\n").run()
    at_rest(app)
    assert not app.dataframe  # which would clip long sentences
    found = found_of_queries(app)
    assert [query for query, *_ in found] == ["volcano erupted", "actor wins award", "flurbish quontle"]
    assert [said for *_, said in found] == ["", "", "nothing close"]
    for query, text, score, _ in found:
        cosines = expected(demo_vectors, query, 6, "mean")
        assert text == current.demo().texts[int(cosines.argmax())]
        assert score == pytest.approx(cosines.max(), abs=6e-4)
    (drawn,) = [item.proto.body for item in app.get("html") if "bi-found" in item.proto.body]
    assert "The <mark>volcano</mark> above" in drawn  # the words that query and hit share
    assert "the dashed line" in texts(app)


def test_many_queries_by_a_distance_have_numbers_and_no_bars(open_page: Open, demo_vectors: np.ndarray) -> None:
    app = at_rest(open_page("search", v="many-queries", sim="euclidean"))
    (drawn,) = [item.proto.body for item in app.get("html") if "bi-found" in item.proto.body]
    assert len(found_of_queries(app)) == 6
    assert all(score < 0 for _, _, score, _ in found_of_queries(app))
    assert "negative Euclidean distance" in drawn
    assert "track" not in drawn
    assert "random words reach" not in drawn
    said = texts(app)
    assert "It has no bar, because it has no upper end" in said
    assert "dashed line" not in said
    assert "Bars" not in said


def test_the_line_of_chance_is_told_only_where_it_is_drawn() -> None:
    shown = batches.what_is_drawn("cosine", batches.bars_of("cosine", 0.5, 0.4), 0.4)
    assert "Here it is 0.400, the dashed line. Bars that do not reach it are grey." in shown
    unknown = batches.what_is_drawn("cosine", batches.bars_of("cosine", 0.5, None), None)
    assert unknown == "Bars show the cosine from 0 to 1; below 0 there is none."
    assert batches.bars_of("dot", -2.0, 1.0) is None
    below = batches.what_is_drawn("dot", None, -1.0)
    assert below.startswith("There are no bars, because no score is above 0.")
    assert "dashed" not in below
    found = [batches.QueryHit("q", "text", 0.5, 0.5, "")]
    assert "<u " in batches._drawn(found, batches.COSINES, "cosine", 0.4)
    for level in (None, -0.1):
        drawn = batches._drawn(found, batches.COSINES, "cosine", level)
        assert "<u " not in drawn
        assert "by chance" not in drawn


def test_similar_pairs_are_those_of_brute_force(open_page: Open, demo_vectors: np.ndarray) -> None:
    app = open_page("search", v="similar-pairs", of="corpus")
    assert "place in the corpus, counted from 0" in texts(app)
    table = near_pairs(app)
    unit = demo_vectors[6, 0] / np.linalg.norm(demo_vectors[6, 0], axis=1, keepdims=True)
    cosines = unit @ unit.T
    cosines[np.tril_indices(630)] = -1
    shown = [cosine for _, _, cosine in table]
    assert sorted(shown, reverse=True) == pytest.approx(np.sort(cosines, axis=None)[::-1][:100], abs=6e-4)
    pairs = [(first, second) for first, second, _ in table]
    np.testing.assert_allclose([cosines[pair] for pair in pairs], shown, atol=6e-4)
    assert len(set(pairs)) == 100
    # None of them is above the level: the nearest ones are shown, and it is said so.
    assert (
        f"has a cosine of 0.90 or more; the nearest has {cosines.max():.3f}. No sentence is repeated exactly."
        in texts(app)
    )
    app.slider(key="w_least_cosine").set_value(0.55).run()
    above = int((cosines >= 0.55).sum())
    assert f"**{above} pairs** have a cosine of 0.55 or more" in texts(app)
    assert len(near_pairs(app)) == above > 1


def found_of_queries(app: Any) -> list[tuple[str, str, float, str]]:
    """Each query on screen with its best hit, the score, and why the hit says nothing."""
    (drawn,) = [item.proto.body for item in app.get("html") if "bi-found" in item.proto.body]
    query_and_text = r'<div><b dir="auto">(.*?)</b><p dir="auto">(.*?)</p></div>'
    rows = re.findall(query_and_text + r".*?<b>([\d.−]+)</b>(?:<em>([^<]*)</em>)?</section>", drawn)
    return [
        (html.unescape(query), html.unescape(re.sub("</?mark>", "", text)), float(score.replace("−", "-")), said)
        for query, text, score, said in rows
    ]


def test_a_corpus_says_how_many_of_its_sentences_are_cut_off() -> None:
    own = Corpus("mine", ("a", "b", "c"), {})
    said = contents.finding("mine", corpus_facts(own, np.array([9, 3, 4]), 5))
    assert said == (
        "**mine has 3 sentences**; the middle one by length has 4 tokens, the longest 9. **1 (33 %) is cut off** after 5 "
        "tokens."
    )
    repeated = contents.finding("mine", corpus_facts(own, np.array([9, 3, 4]), 5), repeated=1)
    assert repeated.startswith("**mine has 2 different texts in 3 sentences**; the middle one")
    alike = contents.finding("mine", corpus_facts(own, np.array([4, 4, 4]), 5))
    assert alike == "**mine has 3 sentences**, each of 4 tokens. None is cut off: the model reads up to 5."
    single = Corpus("mine", ("a",), {})
    assert contents.finding("mine", corpus_facts(single, np.array([9]), 5)) == (
        "**mine has 1 sentence**, of 9 tokens. **It is cut off** after 5."
    )
    assert contents.finding("mine", corpus_facts(single, np.array([5]), 5)) == (
        "**mine has 1 sentence**, of 5 tokens. It is not cut off: the model reads up to 5."
    )


def test_the_length_of_the_session_cuts_the_sentences_of_the_corpus(open_page: Open) -> None:
    app = open_page("search", v="corpus", len="12")
    cut = int(np.count_nonzero(np.array(backend().tokenization.lengths(current.demo().texts)) > 12))
    assert cut
    assert f"**{cut:,} ({cut / len(current.demo()):.0%}) are cut off** after 12 tokens".replace("%)", " %)") in texts(
        app
    )
    assert "longer than 12 tokens (the maximum length of this session) are truncated" in texts(app)


def near_pairs(app: Any) -> list[tuple[int, int, float]]:
    """The numbers and the cosine of each pair on screen."""
    (drawn,) = [item.proto.body for item in app.get("html") if "bi-near" in item.proto.body]
    found = re.findall(r'data-first="(\d+)" data-second="(\d+)"[^>]*><b>([\d.−]+)</b>', drawn)
    return [(int(first), int(second), float(cosine.replace("−", "-"))) for first, second, cosine in found]


def test_opposites_are_named_where_the_view_opens(open_page: Open) -> None:
    app = at_rest(open_page("similar-pairs"))
    assert not app.error
    assert any("Pairs that differ in one thing" in bar.label for bar in app.expander)  # the corpus has no part in them
    texts_of = sentences_that_differ().texts
    shown = near_pairs(app)
    assert len(shown) == 100
    (list_title,) = [
        re.findall("<h6>(.*?)</h6>", item.proto.body)[0] for item in app.get("html") if "bi-near" in item.proto.body
    ]
    assert re.search(r"^(The nearest pairs|Pairs, two of each kind first): 100( of \d+)?$", list_title)
    assert "not this corpus. Choose “Demo news” in the view to compare it." in texts(app)
    assert min(cosine for *_, cosine in shown) >= 0.9
    assert len({difference(texts_of[first], texts_of[second]).kind for first, second, _ in shown[:8]}) >= 4
    assert re.search(
        r"\*\*\d+ of \d+ pairs\*\* with a cosine of 0.90 or more mean something different: deleting duplicates by a "
        "threshold alone",
        texts(app),
    )
    app = at_rest(open_page("similar-pairs", corpus=small_corpus()))  # of an own corpus there is no choice
    assert "w_compared_texts" not in {group.key for group in app.button_group}


def test_opposites_are_claimed_only_where_there_are_some() -> None:
    pair = SimilarPair(0, 1, 0.95)
    said = duplicates.duplicates_in_words([pair] * 5, 5, 0.9, {}, {"word": 4, "wording": 1})
    assert (
        said
        == "**5 pairs** have a cosine of 0.90 or more, and none differs in a number, a day, a “not” or their order."
    )
    said = duplicates.duplicates_in_words([pair] * 5, 5, 0.9, {}, {"negation": 2, "number": 1, "word": 2})
    assert said == (
        "**3 of 5 pairs** with a cosine of 0.90 or more mean something different: deleting duplicates by a threshold alone "
        "would lose them."
    )
    said = duplicates.duplicates_in_words([pair], 1, 0.9, {}, {"negation": 1})
    assert said.startswith("**1 of 1 pair** with a cosine of 0.90 or more means something different")
    said = duplicates.duplicates_in_words(
        [pair] * 9, 9, 0.9, {}, {"negation": 1, "number": 2, "order": 4, "opposite": 2}
    )
    assert said.startswith("**9 of 9 pairs** with a cosine of 0.90 or more mean something different")


def test_exact_repeats_are_listed_and_are_no_pairs(open_page: Open) -> None:
    repeated = Corpus(
        "twice", ("A ship sailed.", "Rain fell.", "A ship sailed.", "A ship sailed.", "Rain fell.", "Snow.")
    )
    key = current.key_of(repeated)
    caching.corpora().put(key, repeated)
    app = at_rest(open_page("search", v="similar-pairs", corpus=key))
    assert "**3 sentences** repeat an earlier one exactly, and stand below." in texts(app)
    repeated_texts = repeated.texts
    assert not any(repeated_texts[first] == repeated_texts[second] for first, second, _ in near_pairs(app))
    (repeats,) = (table.value for table in app.table)
    assert list(repeats["times"]) == [3, 2]
    assert list(repeats["numbers"]) == ["0, 2, 3", "1, 4"]


def test_long_pairs_are_cut_before_their_difference_and_say_what_the_model_does_not_read() -> None:
    same = "The water filter of the machine is changed every month. " * 30
    texts_of = f"{same}Call 5551 now.", f"{same}Call 7772 now."
    pair, item = SimilarPair(0, 1, 1.0), difference(*texts_of)
    drawn = duplicates._marked("By cosine", [pair], {pair: item}, {pair: 256})
    assert "5551</mark>" in drawn
    assert "7772</mark>" in drawn
    assert "another number, behind the 256 tokens that the model reads" in drawn
    near = difference("Call 5551 now.", "Call 7772 now.")
    assert "…" not in duplicates._with_marks(near.first, "one", len(duplicates._alike(near)))
    assert duplicates.duplicates_in_words([pair], 1, 0.9, {"a": (1, 2)}).endswith("exactly, and stands below.")


def test_of_texts_that_share_few_words_these_are_marked() -> None:
    pair, item = (
        SimilarPair(0, 1, 0.5),
        difference("Our ship sailed away at dawn.", "No ship burnt near the old harbour."),
    )
    drawn = duplicates._marked("By cosine", [pair], {pair: item}, {})
    assert re.findall('<mark class="both">(.*?)</mark>', drawn) == ["ship", "ship"]
    assert "<mark class=" not in drawn.replace('<mark class="both">', "")
    assert "other wording<br>marked: what both have" in drawn


def test_what_both_have_is_marked_in_whatever_place_and_named_only_where_it_is_shown() -> None:
    def marked(first: str, second: str) -> tuple[list[str], bool]:
        pair = SimilarPair(0, 1, 0.9)
        drawn = duplicates._marked("By cosine", [pair], {pair: difference(first, second)}, {})
        return re.findall('<mark class="both">(.*?)</mark>', drawn), "marked: what both have" in drawn

    moved = marked("In Paris police arrested a man on Monday.", "A man was arrested by police in Paris.")
    assert moved == (["In Paris police arrested a man", "A man", "arrested", "police in Paris."], True)
    far = ["some other word " * 40 + "ship", "this one is long too " * 40 + "ship"]
    assert marked(*far) == ([], False)  # both are cut before the word that they share


class Comparison:
    """The comparison of all pairs, held until it is released or stopped."""

    def __init__(self) -> None:
        self.runs, self.begun, self.release = 0, threading.Event(), threading.Event()

    def __call__(
        self, vectors: Any, k: int, texts: Any, progress: Callable[[int, int], None], is_stopped: Callable[[], bool]
    ) -> Any:
        self.runs += 1
        progress(1, 4)
        self.begun.set()
        while not self.release.wait(0.01):
            if is_stopped():
                raise Stopped
        return most_similar_pairs(vectors, k, texts, progress, is_stopped)


@pytest.fixture
def comparison(monkeypatch: pytest.MonkeyPatch) -> Iterator[Comparison]:
    caching.evaluations.clear()
    one = Comparison()
    monkeypatch.setattr(duplicates, "most_similar_pairs", one)
    yield one
    one.release.set()
    for job in caching.evaluations().under_way():
        assert job.finished.wait(20)
    caching.evaluations.clear()


def test_two_people_wait_for_one_comparison_of_all_pairs(
    open_page: Open, demo_vectors: np.ndarray, comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    for person in ("Ann", "Ben"):
        monkeypatch.setattr(caching, "person", lambda person=person: person)
        app = open_page("search", v="similar-pairs", of="corpus")
    (job,) = caching.evaluations().under_way()
    assert job.people == {"Ann", "Ben"}
    assert app.main.get("progress")[0].proto.text.startswith(
        "Comparing all pairs of Demo news · 1 of 4 blocks of pairs"
    )
    assert not app.sidebar.get("progress")  # one bar is enough
    comparison.release.set()
    assert job.finished.wait(20)
    app.run()
    assert len(near_pairs(app)) == 100
    first = near_pairs(app)
    app.slider(key="w_shown_pairs").set_value(30).run()
    assert sorted(near_pairs(app)) == sorted(sorted(first, key=lambda pair: -pair[2])[:30])
    assert comparison.runs == 1  # fewer pairs are the first of those that are there


def test_stop_reaches_the_comparison_of_all_pairs(
    open_page: Open, demo_vectors: np.ndarray, comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caching, "person", lambda: "Ann")
    app = open_page("search", v="similar-pairs", of="corpus")
    (job,) = caching.evaluations().under_way()
    app.button(key="stop_pairs").click().run()
    assert job.finished.wait(10)
    assert job.is_stopped
    app.run()
    assert "Stopped: Comparing all pairs of Demo news." in texts(app)
    assert not app.table
    comparison.release.set()
    app.button(key="again_pairs").click().run()
    app.run()
    assert len(near_pairs(app)) == 100


def test_a_large_corpus_is_compared_on_a_click_only(
    open_page: Open, demo_vectors: np.ndarray, comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duplicates, "PAIRS_AT_ONCE", 100)
    monkeypatch.setattr(caching, "person", lambda: "Ann")
    app = open_page("search", v="similar-pairs", of="corpus")
    assert comparison.runs == 0
    app.button(key="find_pairs").click().run()
    (job,) = caching.evaluations().under_way()
    other = open_page("search", v="similar-pairs", of="corpus")  # whoever did not ask does not join
    assert other.button(key="find_pairs").label == "Compare all 198,135 pairs"
    app.button(key="stop_pairs").click().run()
    assert job.finished.wait(10)
    comparison.release.set()
    app.run()
    app.button(key="again_pairs").click().run()  # one click is enough
    app.run()
    assert len(near_pairs(app)) == 100
    assert len(near_pairs(other.run())) == 100
    assert comparison.runs == 2


def test_queries_of_a_file_are_read_once_and_a_bad_file_leaves_them(
    open_page: Open, demo_vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []
    read = batches.reading.read_corpus
    monkeypatch.setattr(
        batches.reading, "read_corpus", lambda *given, **named: reads.append(given) or read(*given, **named)
    )
    caching.parsed().clear()
    for _ in range(2):
        app = open_page("search", v="many-queries")
        app.file_uploader(key="queries_file").upload("mine.txt", b"actor wins award\n\nvolcano erupted\n").run().run()
        assert [query for query, *_ in found_of_queries(app)] == ["actor wins award", "volcano erupted"]
    assert len(reads) == 1
    too_many = "\n".join(f"query {number}" for number in range(settings.MOST_QUERIES + 1)).encode()
    app.file_uploader(key="queries_file").set_value(("many.txt", too_many, "text/plain")).run()
    assert "There are 1,001 queries." in texts(app).replace("\\", "")
    assert [query for query, *_ in found_of_queries(app)] == ["actor wins award", "volcano erupted"]
    app.file_uploader(key="queries_file").clear().run()
    assert not app.error
    assert len(found_of_queries(app)) == 6  # those typed


def test_the_session_is_read_once_in_a_run(
    open_page: Open, monkeypatch: pytest.MonkeyPatch, tiny_folder: Callable[[str], Path]
) -> None:
    calls = []
    of_session = SearchRequest.of_session.__func__  # type: ignore[attr-defined]
    monkeypatch.setattr(
        SearchRequest, "of_session", classmethod(lambda cls, *given: calls.append(given) or of_session(cls, *given))
    )
    own = Corpus("twenty", current.demo().texts[:20], {})
    caching.corpora().put(current.key_of(own), own)
    address = {"vs": "model", "m2": str(tiny_folder("bert")), "corpus": current.key_of(own)}
    app = at_rest(open_page("search", q="volcano erupted", **address))
    calls.clear()
    app.run()
    assert len(hits(app, 1)) == 10
    assert len(calls) == 1


def test_a_corpus_of_ones_own_is_looked_at_embedded_and_searched(
    open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "AT_ONCE", 200)
    monkeypatch.setattr(embedding, "MOST_TURNS", 1)
    lines = [f"Sentence number {at} is about {('cats', 'ships', 'rain')[at % 3]}." for at in range(300)]
    path = tmp_path / "mine.csv"
    path.write_text("id,text\n" + "".join(f"{at},{line}\n" for at, line in enumerate(lines)) + "broken\n")
    app = open_page("search", v="corpus")
    app.segmented_control(key="corpus_way").set_value("path").run()
    at_rest(app.text_input(key="corpus_path").set_value(str(path)).run())
    at_rest(app.button(key="use_corpus").click().run())
    assert not app.error, [error.value for error in app.error]
    assert "has 300 sentences**" in texts(app)
    assert "1 of 301 rows cannot be used" in [expander.label for expander in app.expander]
    assert "on disk" in texts(app)  # the costs stand there before anything runs
    app.multiselect(key="layers_corpus").set_value([0, 6]).run()
    at_rest(app.button(key="embed_corpus").click().run())
    choose_view(app, "hits")
    app.text_input(key="w_query").set_value("a story about ships").run()
    assert not app.error, [error.value for error in app.error]
    assert len(hits(app)) == 10
    assert all("ships" in "".join(part["text"] for part in row["parts"]) for row in hits(app)[:5])
    assert "Layer 6" in texts(app)
    choose_view(app, "corpus")
    app.segmented_control(key="corpus_way").set_value("demo").run()
    app.button(key="use_demo").click().run()
    said = "**Demo news has 630 sentences**; the middle one by length has 19 tokens, the longest 30. None is cut off"
    assert said in texts(app)


def test_a_corpus_that_cannot_be_read_is_said(open_page: Open, tmp_path: Path) -> None:
    app = open_page("search", v="corpus")
    app.segmented_control(key="corpus_way").set_value("path").run()
    app.text_input(key="corpus_path").set_value(str(tmp_path / "none.txt")).run()
    assert app.error
    assert "Something went wrong" not in texts(app)
    app.segmented_control(key="corpus_way").set_value("hub").run()
    app.text_input(key="corpus_dataset").set_value("no/such-dataset-here").run()
    app.button(key="fetch_dataset").click().run()
    assert app.error
    assert "Something went wrong" not in texts(app)


def test_a_server_that_allows_no_free_models_offers_no_paths(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERT_INTERNALS_FREE_MODELS", "0")
    app = open_page("search", v="corpus")
    assert "File on this machine" not in app.segmented_control(key="corpus_way").options


def test_an_upload_that_was_let_go_is_said(open_page: Open, demo_vectors: np.ndarray) -> None:
    app = open_page("search", corpus="ab" * 16, why="2")
    assert "no longer kept on this server" in texts(app)
    assert len(hits(app)) == 10
    assert app.session_state["corpus"] == ""
    assert app.session_state["why"] is None  # it was of another corpus


def test_a_link_finds_a_corpus_that_is_still_kept_and_a_repeated_text_is_one_hit(open_page: Open) -> None:
    own = read_corpus(b"A cat slept.\nShips sailed home.\nRain fell on the roof.\nShips sailed home.\n", "three.txt")
    key = current.key_of(own)
    caching.corpora().put(key, own)
    app = at_rest(open_page("search", corpus=key, q="a sleeping cat"))
    assert rows_of(app)[0] == 0
    assert "three.txt" in texts(app).replace("\\", "")
    same = {row["index"]: row["same"] for row in hits(app)}
    assert same == {0: "", 1: "2 rows", 2: ""}
    assert [row["rank"] for row in hits(app)] == [1, 2, 3]
    # The mark goes by the text: also one of an earlier session on the other row.
    app.session_state["_judgements"] = {own.content_hash: Judgements().mark("a sleeping cat", 3, True)}
    app = at_rest(app.run())
    assert {row["index"]: row["relevant"] for row in hits(app)} == {0: None, 1: 1, 2: None}
    two = at_rest(open_page("search", corpus=key, q="a sleeping cat", k="2", vs="fused"))
    assert [[row["rank"] for row in hits(two, number)] for number in (0, 1)] == [[1, 2], [1, 2]]


def test_a_list_of_texts_is_that_of_plain_numpy_where_rows_repeat(open_page: Open) -> None:
    """Equal texts are one: k different ones are shown, each by its first row, and no tie is said of them."""
    words = ["cat", "dog", "ship", "rain", "bank", "lava"]
    lines = [f"The {word} is number {number}." for number, word in enumerate(words)]
    rows = [*lines, *[lines[1]] * 8, *lines]
    own = Corpus("again", tuple(rows), {}, ReadReport(len(rows), len(rows), duplicates=len(rows) - len(lines)))
    caching.corpora().put(current.key_of(own), own)
    app = at_rest(open_page("search", corpus=current.key_of(own), q="a dog", k="4"))
    both = backend().embed([*lines, "a dog"], options=backend().embed_options(precision="float32"))[0, 0].astype(float)
    both /= np.linalg.norm(both, axis=1, keepdims=True)
    expected = np.argsort(-(both[:-1] @ both[-1]))[:4].tolist()
    assert rows_of(app) == expected
    assert [row["same"] for row in hits(app)] == [f"{rows.count(lines[row])} rows" for row in expected]
    assert "have the same score" not in texts(app)


def test_a_much_repeated_text_pushes_no_other_out(open_page: Open) -> None:
    """150 of 200 rows have one text: there are ten hits all the same, also of a second stage, and the code is of these."""
    rows = [*["Thanks!"] * 150, *(f"Thank you for number {number}." for number in range(49)), "Rain fell."]
    own = Corpus("thanked", tuple(rows), {}, ReadReport(200, 200, duplicates=149))
    key = current.key_of(own)
    caching.corpora().put(key, own)
    for compared in ("maxsim", "bm25", "jm"):
        app = at_rest(open_page("search", corpus=key, q="thanks number", cand="10", vs=compared))
        for number in (0, 1):
            found = rows_of(app, number)
            assert len({rows[row] for row in found}) == len(found) == 10, (compared, number)
            assert all(rows.index(rows[row]) == row for row in found)
        drawn = {name: each.code.text for name, each in app.session_state["_figures_drawn"].items()}
        assert "top(values, 10)" in drawn["hits_0"]
        if compared == "bm25":
            assert "-k 10 " in drawn["hits_1"]
            assert "for each row of a repeated text too" in drawn["hits_1"]
    together = at_rest(open_page("search", corpus=key, q="thanks number", vs="fused"))
    code = together.session_state["_figures_drawn"]["hits_1"].code
    assert code.commands == ()  # that of the rows has other ranks


@pytest.mark.parametrize(("wanted", "asked"), [(1, [2, 11]), (2, [3, 21])])
def test_an_engine_that_approximates_is_asked_for_more_rows_where_texts_repeat(wanted: int, asked: list[int]) -> None:
    own = Corpus("thanked", ("a", *["b"] * 9, "c", "a"), {}, ReadReport(12, 12, duplicates=9))
    scores = np.array([0.2, *[0.9] * 9, 0.4999995, 0.5])
    order, counts = np.argsort(-scores, kind="stable"), []

    def search(count: int) -> Hits:
        counts.append(count)
        best = order[None, :count]
        return Hits(best, scores[best], np.array([1]), np.array([1]))

    found = different_hits(search, own, wanted)
    assert counts == asked
    assert found.indices[0].tolist() == [1, 0][:wanted]
    np.testing.assert_array_equal(found.scores[0], [0.9, 0.5][:wanted])
    assert (int(found.tied[0]), int(found.tied_shown[0])) == (1, 1)
    assert not len(
        different_hits(lambda _: Hits(order[None, :0], scores[None, :0], *[np.array([0])] * 2), own, 3).scores[0]
    )


def test_marks_of_equal_texts_are_one_and_the_last_counts() -> None:
    own = Corpus("twice", ("a", "b", "a"), {}, ReadReport(3, 3, duplicates=1))
    judged = Judgements().mark("q", 0, True).mark("q", 1, True).mark("q", 2, False)
    assert dict(judged.by_text(own.first_rows).of("q")) == {0: False, 1: True}
    assert dict(judged.mark("q", 0, True).by_text(own.first_rows).of("q")) == {0: True, 1: True}


def test_nearly_equal_scores_of_low_layers_are_in_the_order_of_float64(
    open_page: Open, demo_vectors: np.ndarray
) -> None:
    """[CLS] at layer 3: cosines that differ by 1e-7 are no ties, alone or among many queries."""
    options = backend().embed_options((3,), ("cls",), precision="float32")
    query = backend().embed(["volcano erupted"], options=options)[0, 0].astype(np.float64)[0]
    stored = demo_vectors[3, POOLINGS.index("cls")].astype(np.float64)
    best = np.argsort(-(stored @ query) / np.linalg.norm(stored, axis=1), kind="stable")[:10]
    app = open_page("search", l="3", pool="cls")
    assert rows_of(app) == best.tolist()
    assert "have the same score" not in texts(app)
    many = open_page("search", v="many-queries", l="3", pool="cls")
    assert found_of_queries(many)[0][1] == current.demo().texts[int(best[0])]
    assert "the same score" not in texts(many)


def test_ties_are_said(open_page: Open, demo_vectors: np.ndarray, read_page: Open) -> None:
    app = open_page("search", l="0", pool="cls")  # the same vector for every sentence
    assert "630 sentences have the same score" in texts(app)
    assert "have the same score" not in texts(read_page("search"))
    assert "For 6 of 6 queries, more sentences have the same score" in texts(
        open_page("search", v="many-queries", l="0", pool="cls")
    )
    app = open_page("search", v="similar-pairs", l="0", pool="cls")
    assert "All of these pairs have the same cosine" in texts(app)


def test_another_query_closes_the_explanation(open_page: Open, demo_vectors: np.ndarray) -> None:
    app = open_page("search", why="3")
    app.text_input(key="w_query").set_value("actor wins award").run()
    assert app.session_state["why"] is None


def test_a_query_of_unknown_pieces_is_said(open_page: Open, demo_vectors: np.ndarray) -> None:
    assert "has no piece" in texts(open_page("search", q="🦄"))
    assert "has no piece" not in texts(open_page("search", q="🦄 horse"))


def test_a_language_model_finds_nothing_without_a_shared_word(open_page: Open, demo_vectors: np.ndarray) -> None:
    assert "No sentence shares a word" in texts(at_rest(open_page("search", q="zzzz qqqq", vs="jm")))


def test_words_without_meaning_are_not_marked(open_page: Open, demo_vectors: np.ndarray) -> None:
    app = open_page("search", q="the volcano at dawn")
    marked = {part["text"].lower() for row in hits(app) for part in row["parts"] if part["shared"]}
    assert "volcano" in marked
    assert not marked & {"the", "at"}


@pytest.mark.parametrize("page", ["search", "evaluate"])
def test_the_first_line_names_the_corpus(open_page: Open, demo_vectors: np.ndarray, page: str) -> None:
    app = open_page(page, view={"search": "corpus", "evaluate": "pairs"}[page])
    assert any("Demo news" in item.label and "630 sentences" in item.label for item in app.expander)
    own = read_corpus(b"A cat slept.\n", "one.txt")
    caching.corpora().put(current.key_of(own), own)
    app = open_page(page, view={"search": "corpus", "evaluate": "pairs"}[page], corpus=current.key_of(own))
    assert any("one.txt" in item.label and "1 sentence" in item.label for item in app.expander)


def test_all_bad_values_of_a_link_are_one_notice(open_page: Open, demo_vectors: np.ndarray) -> None:
    app = open_page("search", k="0", sim="x", s=["a"] * 100)
    (notice,) = (item.value for item in app.warning if "was ignored" in item.value)
    for value in ("number of hits \\(“k=0”", "similarity \\(“sim=x”", "sentences \\(“s=a, a"):  # `s` is of other pages
        assert f"value for the {value}" in notice


def test_a_notice_on_a_refused_layer_goes_when_another_is_chosen_in_any_way(
    open_page: Open, demo_vectors: np.ndarray
) -> None:
    app = open_page("search", l="999")
    assert "Layer 999 is not available" in texts(app)
    assert "Layer 999 is not available" in texts(app.run())  # a job draws the page again
    app.session_state["layer"] = 2  # as a figure or a chip does, without a widget
    assert "Layer 999" not in texts(app.run())


@pytest.mark.parametrize("view", ["hits", "many-queries"])
def test_a_layer_that_the_model_lacks_is_said_in_every_view(
    open_page: Open, demo_vectors: np.ndarray, view: str
) -> None:
    app = open_page("search", v=view, l="999")
    assert "Layer 999 is not available" in texts(app)
    assert app.session_state["layer"] is None or app.session_state["layer"] == 6
    app.session_state["_notices"] = []  # as after some seconds
    assert "Layer 999" not in texts(app.run())


def test_a_hundred_candidates_are_ranked_again_unless_somebody_chooses(
    open_page: Open, demo_vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[str] = []

    def by_number(self: Any, query: str, documents: Sequence[str], *_: Any) -> np.ndarray:
        scored.extend(documents)
        return np.arange(len(documents), dtype=np.float32)

    monkeypatch.setattr(reranking.SecondStage, "scores", by_number)
    app = at_rest(open_page("search", q="a query of the MaxSim test alone", vs="maxsim"))
    first = np.argsort(-expected(demo_vectors, "a query of the MaxSim test alone", 6, "mean"), kind="stable")[:100]
    assert set(scored) == {current.demo().texts[row] for row in first}
    assert rows_of(app, 1) == first[::-1][:10].tolist()
    assert "first 100 hits" in texts(app)


@pytest.mark.parametrize(("kind", "candidates"), [("rerank", "15"), ("maxsim", "30")])
def test_a_second_stage_ranks_the_first_candidates_only(
    open_page: Open, demo_vectors: np.ndarray, kind: str, candidates: str
) -> None:
    query, corpus = "Title slips away by one run", current.demo()
    app = at_rest(open_page("search", q=query, vs=kind, cand=candidates))
    assert any(item.value.startswith("**Re-ranked") for item in app.markdown)
    count = int(candidates)
    first = np.argsort(-expected(demo_vectors, query, 6, "mean"), kind="stable")[:count]
    texts_of = [corpus.texts[row] for row in first]
    if kind == "rerank":
        job = caching.models().request(parse_model(EMBEDDED_CROSS_ENCODER_KEY))
        scores = job.result.score_pairs([query] * count, texts_of)
    else:
        scores = late_interaction_scores(backend(), query, texts_of, 6)
    order = np.argsort(-scores, kind="stable")[:10]
    assert rows_of(app, 1) == first[order].tolist()
    np.testing.assert_allclose(
        [float(row["score"].replace("−", "-")) for row in hits(app, 1)], scores[order], atol=2e-3
    )
    assert f"first {count} hits" in texts(app)
    left = rows_of(app)
    for rank, row in enumerate(hits(app, 1), start=1):
        old = left.index(row["index"]) + 1 if row["index"] in left else 0
        expected_kind = "new" if not old else "same" if old == rank else "up" if rank < old else "down"
        assert row["change"]["kind"] == expected_kind
    scored = next(trace for trace in figures(app)[1]["data"] if trace["type"] == "bar")
    assert sum(map(int, scored["y"])) == count  # the others have no score


def test_percentiles_are_shares_of_the_corpus_own_pairs(
    open_page: Open, demo_vectors: np.ndarray, read_page: Open
) -> None:
    app = open_page("search", pct="1")
    plain = read_page("search")
    assert rows_of(app) == rows_of(plain)
    directions = demo_vectors[6, POOLINGS.index("mean")].astype(np.float64)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    of_pairs = (directions @ directions.T)[np.triu_indices(len(directions), k=1)]
    for row, unchanged in zip(hits(app), hits(plain), strict=True):
        share = 100 * np.mean(of_pairs < float(unchanged["score"]))
        assert float(row["score"].strip("> %")) == pytest.approx(share, abs=0.06)
        assert row["bar"] == pytest.approx(share / 100, abs=6e-4)
    assert "all pairs among up to 1,000 sentences" in texts(app)
    assert open_page("search", pct="1", sim="dot").toggle(key="w_percentiles").disabled


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_the_graph_finds_what_the_exact_search_finds(
    open_page: Open, demo_vectors: np.ndarray, read_page: Open, similarity: str
) -> None:
    exact = read_page("search") if similarity == "cosine" else open_page("search", q="volcano erupted", sim=similarity)
    app = at_rest(open_page("search", q="volcano erupted", sim=similarity, eng="usearch"))
    assert not app.exception
    assert app.selectbox(key="w_engine").value == "usearch"
    assert rows_of(app) == rows_of(exact)
    assert [row["score"] for row in hits(app)] == [row["score"] for row in hits(exact)]
    assert "cosine, HNSW graph" in texts(app) or "dot product, HNSW graph" in texts(app)
    assert not figures(app)  # the other sentences have no scores
    assert app.selectbox(key="w_engine").options == ["Exact", "HNSW graph (usearch)"]  # Milvus is the operator's


def test_the_hits_of_an_engine_are_those_whose_ties_are_counted(
    open_page: Open, demo_vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = graph.GraphEngine.search

    def without_the_first(engine: Any, queries: Any, k: int, similarity: Any) -> Any:
        found = search(engine, queries, 10, similarity)
        first = slice(0, k) if k >= 10 else slice(1, k + 1)  # a search for fewer looks at less
        return replace(found, indices=found.indices[:, first], scores=found.scores[:, first])

    monkeypatch.setattr(graph.GraphEngine, "search", without_the_first)
    ten = rows_of(at_rest(open_page("search", q="volcano erupted", eng="usearch", k="10")))
    five = rows_of(at_rest(open_page("search", q="volcano erupted", eng="usearch", k="5")))
    assert five == ten[1:6]


def test_an_approximate_engine_is_offered_from_some_thousand_sentences(
    open_page: Open, demo_vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph, "is_installed", lambda: True)
    app = open_page("search", q="volcano erupted")
    assert not [box for box in app.selectbox if box.key == "w_engine"]
    assert "with 630 that takes milliseconds. Approximate engines are offered from 5,000 sentences." in texts(app)
    monkeypatch.setattr(search_engines, "MANY", 600)
    assert open_page("search", q="volcano erupted").selectbox(key="w_engine").value == "exact"


def test_the_page_says_when_a_graph_of_another_machine_was_built_anew(
    open_page: Open, demo_vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    caching.search_engines.clear()
    open_file, calls = graph.open_file, []

    def foreign_once(*values: Any, **named: Any) -> Any:
        calls.append(values)
        if len(calls) == 1:
            raise graph._refused(Path("g.usearch"), graph.NOT_OURS)
        return open_file(*values, **named)

    monkeypatch.setattr(graph, "open_file", foreign_once)
    app = at_rest(open_page("search", q="volcano erupted", eng="usearch"))
    assert not app.exception
    (note,) = [item.value for item in app.caption if "built anew" in item.value]
    assert "was not made on this machine" in note
    caching.search_engines.clear()
    again = at_rest(open_page("search", q="volcano erupted", eng="usearch"))
    assert rows_of(again) == rows_of(app)
    assert not [item for item in again.caption if "built anew" in item.value]


def test_an_engine_that_is_not_there_is_refused(open_page: Open, demo_vectors: np.ndarray, monkeypatch) -> None:
    monkeypatch.setattr(graph, "is_installed", lambda: False)
    app = open_page("search", q="volcano erupted", eng="usearch")
    assert "is not available here" in " ".join(item.value for item in app.warning) + texts(app)
    assert not [box for box in app.selectbox if box.key == "w_engine"]
    assert len(rows_of(app)) == 10
    assert figures(app)


def test_milvus_where_the_operator_names_it(open_page: Open, demo_vectors: np.ndarray, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv(operator_settings.MILVUS.variable, str(tmp_path / "vectors.db"))
    exact = open_page("search", q="actor wins award")
    app = at_rest(open_page("search", q="actor wins award", eng="milvus"))
    assert not app.exception
    assert rows_of(app) == rows_of(exact)
    assert "Milvus" in texts(app)


def test_the_data_of_a_list_are_its_hits_with_the_columns_of_the_file() -> None:
    own = Corpus("own", ("a", "b", "c"), {"rank": ("r0", "r1", "r2"), "topic": ("x", "y", "z")})
    ranked = Ranked.of_scores("BM25", "score", np.array([0.1, 0.9, 0.5]), 2)
    assert results._table(ranked, own).to_dict("list") == {
        "rank": [1, 2],
        "number": [1, 2],
        "score": [0.9, 0.5],
        "text": ["b", "c"],
        "rank (column)": ["r1", "r2"],
        "topic": ["y", "z"],
    }


def test_a_second_click_on_a_hit_closes_its_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    session: dict[str, Any] = {}
    monkeypatch.setattr("streamlit.session_state", session)
    for row, by, opened in ((3, "first", 3), (3, "second", 3), (4, "second", 4), (4, "second", None)):
        results._explain(row, by)
        assert (session["why"], session["why_by"]) == (opened, by)
    session.update(why=4, why_by="maxsim")  # chosen for this hit: it is open too
    results._explain(4, "first")
    assert session["why"] is None


def test_a_text_has_one_mark_also_where_an_earlier_one_was_on_another_row(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Corpus("twice", ("a", "b", "a"), {}, ReadReport(3, 3, duplicates=1))
    session = {"_judgements": {own.content_hash: Judgements().mark("q", 2, True).mark("other", 2, True)}}
    monkeypatch.setattr("streamlit.session_state", session)
    again = results._marked_again(own, "q")
    assert again == {0: [2]}
    results._marker(own.content_hash, "q", again)(0, False)
    judged = session["_judgements"][own.content_hash]
    assert (dict(judged.of("q")), dict(judged.of("other"))) == ({0: False}, {2: True})


def test_many_queries_say_for_how_many_the_best_hit_is_right() -> None:
    right = {"tea": {"Tea is hot.", "Drink tea."}, "ice": {"Ice is cold."}, "snow": {"Snow falls."}}
    found = [("tea", "Drink tea."), ("ice", "Tea is hot."), ("snow", "Snow falls.")]
    assert batches.right_hits(found, right) == " By the file the best hit is right for 2 of 3 queries (66.7 %)."
    assert batches.right_hits([*found[1:2], ("rain", "Snow falls.")], right) == (
        " By the file the best hit is right for 0 of 1 query (0.0 %). Of 1 other the file does not say it."
    )
    assert not batches.right_hits([("rain", "Snow falls.")], right)


def test_more_than_a_few_queries_are_embedded_with_progress_and_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[tuple[int, int]] = []
    cells: dict[tuple[int, str], np.ndarray] = {(1, "mean"): np.zeros((40, 2)), (2, "mean"): np.ones((40, 2))}

    def embedded(*given: Any, progress: Callable[..., Any], is_stopped: Callable[[], bool]) -> Any:
        progress(1, 40)
        assert is_stopped()
        return cells

    def made(key: Any, title: str, work: Callable[..., Any], *more: Any, **options: Any) -> Any:
        assert title == "Embedding 40 queries"
        return work(lambda *step: steps.append(step), lambda: True)

    monkeypatch.setattr(requests, "latest", made)
    monkeypatch.setattr(batches, "query_vectors", embedded)
    monkeypatch.setattr(caching, "query_vectors", lambda *given: {(2, "mean"): "at once"})
    monkeypatch.setattr(caching, "evaluations", lambda: None)
    options = SimpleNamespace(layers=(1, 2), poolings=("mean",))
    index: Any = SimpleNamespace(info=SimpleNamespace(identity="i", options=options))
    request: Any = SimpleNamespace(backend=None)
    assert str(batches._vectors(request, index, (2, "mean"), ("tea",))) == "at once"
    assert not steps
    assert batches._vectors(request, index, (2, "mean"), tuple(map(str, range(40)))).tolist() == [[1, 1]] * 40
    assert steps == [(1, 40)]


def test_the_weakest_of_many_queries_is_named_where_there_is_one() -> None:
    best = [("tea", 0.6), ("jury *verdict*", 0.4), ("sea", 0.5)]
    assert batches.weakest(best) == " The weakest is “jury \\*verdict\\*”, 0.400."
    assert batches.weakest(best, {"jury *verdict*"}) == " The weakest is “sea”, 0.500."  # its score says nothing
    assert batches.weakest(best[:1]) == batches.weakest([("tea", 0.5), ("sea", 0.5)]) == batches.weakest([]) == ""


def test_many_queries_say_for_how_many_something_is_close() -> None:
    assert batches.finding_of_queries([0.5, 0.3], 0.4) == "**For 1 of 2 queries** the best hit is closer than chance."
    assert batches.finding_of_queries([0.5, 0.6], 0.4) == "**For all 2 queries** the best hit is closer than chance."
    assert batches.finding_of_queries([0.4, 0.3], 0.4).startswith("**Nothing close** to any of the 2 queries")
    assert batches.finding_of_queries([0.5], 0.4) == "**The query's best hit is closer than chance.**"
    assert batches.finding_of_queries([0.1], 0.4) == "**Nothing close** to the query."
    assert batches.finding_of_queries([0.1], None) == "1 query, each with its best hit."
    assert (
        batches.finding_of_queries([], 0.4, 2)
        == "**The scores of 2 queries say nothing:** the model does not know the language."
    )
    assert batches.finding_of_queries([0.5], None, 1, is_measured_now=True) == (
        "**The scores of 1 query say nothing:** the model does not know the language. "
        "1 query, each with its best hit. The level of chance is still being measured …"
    )
    assert batches.finding_of_queries([0.5], 0.4, 1) == (
        "**The scores of 1 query say nothing:** the model does not know the language. "
        "**The query's best hit is closer than chance.**"
    )
