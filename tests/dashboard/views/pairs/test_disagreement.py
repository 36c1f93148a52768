"""Where the models disagree: ranks, the largest differences, and the evidence of both for the chosen pair."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.analysis.similarity import late_interaction
from components.model.backend import Backend
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.search.rerank import late_interaction_scores
from dashboard import caching
from dashboard.corpora import current
from dashboard.jobs import reranking
from dashboard.jobs.stored import cross_looks
from dashboard.views.pairs import disagreement as view
from dashboard.views.pairs import rerank
from tests.support.pages import Open, at_rest, backend, figures, plain_table, texts
from tests.support.saved_models import save_pylate


def test_a_word_counts_most_only_if_the_score_falls_without_it() -> None:
    said = view.drop_in_words("visas", "query", 1.5, 0.25)
    assert said.startswith("“visas” of the query counts most.")
    assert said.endswith("the score of 1.500 falls by 0.250.")
    assert view.drop_in_words("visas", "query", 1.5, -0.1).startswith("No word raises the score.")


def test_differences_are_sorted_and_equal_ranks_left_out() -> None:
    candidates = view._Candidates(
        rows=np.array([[7, 8, 9], [1, 2, 3]]),
        cosines=np.array([[0.9, 0.8, 0.7], [0.6, 0.5, 0.4]]),
        logits=np.array([[0, 1, 2], [5, 1, 3]], np.float32),
    )
    pairs = view.disagreements(candidates, ("first", "second"), (9, 1))
    found = [(pair.query, pair.row, pair.by_vectors, pair.by_cross_encoder, pair.is_correct) for pair in pairs]
    assert found == [
        ("first", 9, 3, 1, True),  # the correct answer before an equal difference
        ("first", 7, 1, 3, False),
        ("second", 3, 3, 2, False),
        ("second", 2, 2, 3, False),
    ]
    assert [pair.difference for pair in pairs] == [2, -2, 1, -1]
    assert (pairs[0].cosine, pairs[0].logit) == (0.7, 2.0)
    assert [pair.correct_ranks for pair in pairs] == [(3, 1), (3, 1), (1, 1), (1, 1)]


def test_correct_answers_that_one_model_ranks_first_come_first() -> None:
    candidates = view._Candidates(
        rows=np.array([[1, 2, 3, 4]] * 3),
        cosines=np.array([[0.9, 0.8, 0.7, 0.6]] * 3),
        logits=np.array([[0, 1, 2, 3], [3, 4, 1, 0], [9, 2, 3, 4]], np.float32),
    )
    pairs = view.disagreements(candidates, ("turned", "swapped", "kept"), (2, 1, 1))
    assert [(pair.query, pair.by_vectors, pair.by_cross_encoder) for pair in pairs[:3]] == [
        ("swapped", 1, 2),  # the only correct answer that one of the models ranks first
        ("turned", 4, 1),
        ("turned", 1, 4),
    ]
    assert [pair.is_decisive for pair in pairs] == [True] + [False] * (len(pairs) - 1)


@pytest.mark.parametrize(
    ("ranks", "is_correct", "said"),
    [
        ((4, 1), True, "**the cross-encoder is right:** it moved the correct answer from rank 4 up to 1."),
        ((1, 7), True, "**the vectors are right:** the cross-encoder moved the correct answer from rank 1 down to 7."),
        ((9, 3), True, "**the cross-encoder is nearer to right:** it moved the correct answer from rank 9 up to 3. Neither"),
        ((3, 9), True, "**the vectors are nearer to right:** the cross-encoder moved the correct answer from rank 3 down"),
        ((9, 1), False, "**not the correct answer:** its move from rank 9 to 1 does not say who is right. The correct answer: "
            "rank 2 by vectors, 3 by the cross-encoder."),
    ],
)  # fmt: skip
def test_the_headline_says_which_model_is_right(ranks: tuple[int, int], is_correct: bool, said: str) -> None:
    pair = view.Disagreement("query", 0, *ranks, 0.5, 1.0, is_correct, ranks if is_correct else (2, 3))
    assert view.headline(pair).startswith(f"For “query” {said}")


def test_what_holds_of_all_queries_is_said_of_the_included_models_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rerank, "is_included", lambda kind: kind == "rerank")
    assert cross_looks.finding() in view.intro()
    monkeypatch.setattr(rerank, "is_included", lambda kind: False)
    assert view.intro() == "Documents that the vectors and the cross-encoder rank differently."


def test_a_name_in_the_chooser_is_short_and_has_ranks_and_both_texts() -> None:
    pair = view.Disagreement("A short query", 0, 10, 1, 0.5, 1.0, False)
    name = view._short_name(pair, "Its   document\nis long: " + 60 * "a")
    assert name == f"rank 10, then 1: A short query · Its document is long: {38 * 'a'}…"


def test_the_sample_of_queries_is_seeded_and_grows() -> None:
    corpus = current.demo()
    queries, rows = view.sample_of_queries(corpus, 20)
    assert queries == tuple(corpus.columns["compressed"][row] for row in rows)
    assert len(set(rows)) == 20
    assert view.sample_of_queries(corpus, 30)[1][:20] == rows


def test_the_first_pair_and_its_evidence(open_page: Open, scorer: Backend, demo_vectors: np.ndarray) -> None:
    app = at_rest(open_page("pairs", v="disagreement", nq="6", k="8"))
    assert not app.exception
    corpus, model = current.demo(), backend()
    queries, _ = view.sample_of_queries(corpus, 6)
    vectors = model.embed(queries, options=model.embed_options(precision="float32"))[0, 0]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    differences = []
    for number in range(6):
        candidates = np.argsort(-(demo_vectors @ unit[number]), kind="stable")[:8]
        logits = scorer.score_pairs([queries[number]] * 8, [corpus.texts[row] for row in candidates])
        for after, before in enumerate(np.argsort(-logits, kind="stable"), start=1):
            if before + 1 != after:
                change = (int(before) + 1, after)
                differences.append((queries[number], corpus.texts[candidates[before]], *change))
    own = {query: corpus.texts[row] for query, row in zip(*view.sample_of_queries(corpus, 6), strict=True)}
    differences.sort(key=lambda item: (not (own[item[0]] == item[1] and 1 in item[2:]), -abs(item[2] - item[3])))
    assert len(app.selectbox(key="w_disagreement").options) == min(len(differences), view.MOST_LISTED)
    table = plain_table(app)
    listed = list(
        zip(
            table["query"],
            table["document"],
            table["vectors"].astype(int),
            table["cross-encoder"].astype(int),
            strict=True,
        )
    )
    assert set(listed) <= set(differences)
    assert [abs(before - after) for *_, before, after in listed] == [
        abs(before - after) for *_, before, after in differences[: view.MOST_LISTED]
    ]
    query, document, before, after = listed[0]
    assert document == own[query]
    assert 1 in (before, after)  # the page opens with a pair that says who is right
    right = "cross-encoder is" if after == 1 else "vectors are"
    assert f"**the {right} right:**" in texts(app)
    # Both orders of the query's candidates, with the pair's document in a frame and the correct answer in blue.
    (drawn,) = [item for item in app.get("bidi_component") if item.proto.component_name == "bert_internals_reranked"]
    orders = json.loads(drawn.proto.json)
    assert query in orders["titles"][0][1]
    (row,) = orders["correct"]
    assert row == orders["chosen"] == corpus.texts.index(document)
    candidates = np.argsort(-(demo_vectors @ unit[queries.index(query)]), kind="stable")[:8]
    logits = scorer.score_pairs([query] * 8, [corpus.texts[row] for row in candidates])
    assert [hit["row"] for hit in orders["before"]] == candidates.tolist()
    assert [hit["row"] for hit in orders["after"]] == candidates[np.argsort(-logits, kind="stable")].tolist()
    assert [(hit["before"], hit["rank"]) for hit in orders["after"] if hit["row"] == row] == [(before, after)]
    assert "The vectors did not rank this way: they compare one vector per text (cosine " in texts(app)
    drops, matrix = figures(app)[:2]
    expected = late_interaction.of_trace(model.trace([query, document], max_length=model.own_max_length), 6)
    np.testing.assert_allclose(matrix["data"][0]["z"], expected.matrix, atol=1e-5)
    (score,) = late_interaction_scores(model, query, [document], 6)
    assert np.max(matrix["data"][0]["z"], axis=1).sum() == pytest.approx(float(score), abs=1e-4)
    assert drops["data"][0]["customdata"] == query.split()
    whole, shorter = scorer.score_pairs([query, query.split(" ", 1)[1]], [document] * 2)
    assert drops["data"][0]["x"][0] == pytest.approx(whole - shorter, abs=1e-4)


def test_work_is_shared_within_a_step_of_the_slider_and_older_work_is_stopped(
    open_page: Open, scorer: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = at_rest(open_page("pairs", v="disagreement", nq="6", k="8"))
    gate, score = threading.Event(), reranking.SecondStage.pair_scores

    def slow(self: Any, first: Any, second: Any, *arguments: Any) -> Any:
        if len(first) >= 6 * 20:  # not for the evidence
            gate.wait(60)
        return score(self, first, second, *arguments)

    def scoring() -> list[Any]:
        return [job for job in caching.preparations().under_way() if job.key[0] == "disagreement"]

    monkeypatch.setattr(reranking.SecondStage, "pair_scores", slow)
    try:
        app.slider(key="w_k").set_value(20).run()
        assert not scoring()
        assert "first 20 hits" in texts(app)
        app.slider(key="w_k").set_value(21).run()
        (older,) = scoring()
        app.slider(key="w_disagreement_queries").set_value(7).run()
        assert older.told_to_stop.is_set()
    finally:
        for job in scoring():
            caching.preparations().stop(job)  # its scores are read by nobody
        gate.set()


def test_another_pair_is_chosen_and_the_caveat_stays(open_page: Open, scorer: Backend) -> None:
    app = at_rest(open_page("pairs", v="disagreement", nq="6", k="8", dis="2"))
    chosen = app.selectbox(key="w_disagreement").options[2]
    before, after = chosen.removeprefix("rank ").partition(":")[0].split(", then ")
    assert f"from rank {before} to {after} does not say who is right" in texts(app)
    assert "the drops do not sum to the score" in texts(app)
    app = at_rest(open_page("pairs", v="disagreement", nq="6", k="8", dis="900"))
    assert app.selectbox(key="w_disagreement").index == 0


def test_a_late_interaction_model_is_explained_by_its_trained_vectors(
    open_page: Open, scorer: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "MOST_CHARACTERS", 12)
    pairs = (
        ("the cat sat on the red hat", "a cat"),
        ("money in the bank", "the bank"),
        ("we walk by the river", "red"),
    )
    lines = "\n".join(json.dumps({"sentence": text, "compressed": query}) for text, query in pairs)
    corpus = read_corpus(lines.encode(), "few.jsonl", "sentence")
    caching.corpora().put(current.key_of(corpus), corpus)
    folder = save_pylate(tmp_path / "pylate", document_length=12)
    app = at_rest(open_page("pairs", v="disagreement", corpus=current.key_of(corpus), m=str(folder)))
    assert not app.error, texts(app)
    (pair,) = plain_table(app).head(1).to_dict("records")
    model = Backend.load(str(folder), device_name="cpu")
    (score,) = late_interaction_scores(model, pair["query"], [pair["document"][:12]], model.facts.layers)
    shown = np.asarray(figures(app)[-1]["data"][0]["z"], float)
    assert shown.max(axis=1).sum() == pytest.approx(float(score), abs=1e-3)
    assert "The vectors did not rank this way: they compare one vector per text (cosine " in texts(app)
    assert "only the first 12 are explained here" in texts(app)
