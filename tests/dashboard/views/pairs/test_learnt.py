"""The ranking learnt from [CLS] vectors: what it compares, what a control costs, and vectors from a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split
from streamlit.testing.v1 import AppTest

from components.errors import InputError
from components.model.backend import Backend
from components.retrieval.evaluation.graded import collection
from components.retrieval.evaluation.graded.collection import GradedSet
from components.retrieval.learnt import learnt_ranking, learnt_vectors
from components.retrieval.search.lexical import make_ranker
from dashboard import caching
from dashboard.corpora import current
from dashboard.views.pairs import learnt_rankers
from tests.support.pages import Open, at_rest, backend, figures, plain_table, setting, texts

QUERIES = 40


@pytest.fixture(scope="module")
def few() -> GradedSet:
    """The demo's first queries, and all documents of their topics: few texts, so that the tests are fast."""
    whole = collection.demo_graded(current.demo())
    rows = sorted({row for grades in whole.grades[:QUERIES] for row in grades})[:120]
    number = {row: position for position, row in enumerate(rows)}
    grades = [{number[row]: grade for row, grade in each.items() if row in number} for each in whole.grades[:QUERIES]]
    kept = [query for query, each in enumerate(grades) if each]
    return GradedSet(
        "Few news",
        tuple(whole.documents[row] for row in rows),
        tuple(whole.queries[query] for query in kept),
        tuple(grades[query] for query in kept),
        whole.report,
    )


@pytest.fixture(scope="module", autouse=True)
def _few_texts(few: GradedSet) -> Iterator[None]:
    caching.graded_sets().put("demo", few)
    yield
    caching.graded_sets().put("demo", collection.demo_graded(current.demo()))


@pytest.fixture
def page(scorer: Backend, read_page: Open) -> AppTest:
    """The view, to be read; the cross-encoder is loaded first, since the page does not wait for it in the queue of jobs."""
    return read_page("pairs", v="learnt-ranking")


@pytest.fixture
def own_page(scorer: Backend, open_page: Open) -> AppTest:
    """The view, for a test that changes it."""
    return at_rest(open_page("pairs", v="learnt-ranking"))


def bars(app: AppTest) -> dict[str, float]:
    (trace,) = figures(app)[0]["data"]
    return dict(zip([name.replace("<br>", " ") for name in trace["y"]], map(float, trace["x"]), strict=True))


def test_the_learnt_ranking_stands_beside_the_others(page: AppTest) -> None:
    assert not page.exception
    assert page.title[0].value == "Can a ranking be learnt from [CLS] vectors alone?"
    values = bars(page)
    assert set(values) == {
        "Learnt: [CLS] layer 6",
        "Cosine: [CLS] layer 6",
        "Bi-encoder",
        "Cross-encoder",
        "BM25",
        "Jelinek-Mercer",
        "By chance",
    }
    assert values["Bi-encoder"] > values["BM25"] > values["By chance"]
    assert min(values, key=values.__getitem__) == "By chance"
    answer = next(str(item.value) for item in page.markdown if "Learnt MAP" in str(item.value))
    assert f"Learnt MAP {values['Learnt: [CLS] layer 6']:.1f} %: better than" in answer
    for name, shown in (("Cosine: [CLS] layer 6", "cosine"), ("BM25", "BM25"), ("By chance", "chance")):
        assert f"{shown} ({values[name]:.1f})" in answer
    table = next(plain_table(page, number) for number, each in enumerate(page.table) if "ranking" in each.value)
    assert list(table["ranking"]) == sorted(values, key=values.__getitem__, reverse=True)
    assert {name: float(value) for name, value in zip(table["ranking"], table["MAP"], strict=True)} == pytest.approx(
        values, abs=0.06
    )


def test_what_is_learnt_is_told_with_its_weights(page: AppTest) -> None:
    told = texts(page)
    assert "one weight for each of these 384 numbers" in told
    assert "of 384 weights are positive" in told
    weights = next(plain_table(page, number) for number, table in enumerate(page.table) if "weight" in table.value)
    sizes = [abs(float(value)) for value in weights["weight"]]
    assert len(sizes) == 10
    assert sizes == sorted(sizes, reverse=True)
    assert weights["number"].str.fullmatch(r"q × d, dimension \d+").all()


def reports(app: AppTest) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The accuracies, the two classes of both parts, and the published figures."""
    found = [plain_table(app, number) for number in range(len(app.table))]
    accuracies = next(table for table in found if "accuracy" in table)
    own, published = (table for table in found if "precision" in table)
    return accuracies, own, published


def test_the_reports_are_of_both_parts_and_name_the_majority(page: AppTest) -> None:
    accuracies, report, published = reports(page)
    assert list(report["pairs"]) == [
        "test, not relevant",
        "test, relevant",
        "training, not relevant",
        "training, relevant",
    ]
    for part, start in enumerate((0, 2)):
        other, relevant = (int(report.iloc[start + row]["number"].replace(",", "")) for row in (0, 1))
        assert int(accuracies.iloc[part]["number"].replace(",", "")) == other + relevant
        majority = float(accuracies.iloc[part]["always “not relevant”"])
        assert majority == pytest.approx(100 * other / (other + relevant), abs=0.06)
    assert f"right for **{accuracies.iloc[0]['accuracy']} %** of the test pairs" in texts(page)
    assert list(published.iloc[1]) == ["test, relevant", "36", "21", "27", "556"]
    assert "another collection" in texts(page)


def test_a_change_of_c_costs_no_forward_pass(own_page: AppTest) -> None:
    before, values = backend().forward_passes, bars(own_page)
    own_page.selectbox(key="w_learnt_c").select("1")
    at_rest(own_page.run())
    assert setting(own_page, "learnt_c") == "1"
    assert backend().forward_passes == before
    changed = bars(own_page)
    assert changed["Learnt: [CLS] layer 6"] != values["Learnt: [CLS] layer 6"]
    assert changed["Bi-encoder"] == values["Bi-encoder"]


def test_the_shown_numbers_are_those_of_the_components(page: AppTest, few: GradedSet) -> None:
    """The table's supports against the pairs, chosen and split here: BM25, single vectors, NumPy and scikit-learn."""
    model, count = backend(), len(few.queries)
    bm25 = make_ranker("bm25", few.documents)
    options = model.embed_options([model.facts.layers], [model.own_pooling], precision="float32")
    q, d = (model.embed(texts, options=options)[0, 0] for texts in (few.queries, few.documents))
    cosines = (q / np.linalg.norm(q, axis=1)[:, None]) @ (d / np.linalg.norm(d, axis=1)[:, None]).T
    drawn, supports, precisions = np.random.default_rng(0), [], []
    for query, grades in enumerate(few.grades):
        words = bm25.scores(few.queries[query])
        first = {int(row) for scores in (words, cosines[query]) for row in np.argsort(-scores, kind="stable")[:10]}
        pairs = first | set(grades) | set(drawn.integers(len(few.documents), size=20).tolist())
        supports.append((len(pairs - set(grades)), len(grades)))
        ranks = [np.sum(words >= words[row] - 1e-9) for row in grades]  # ties count against the ranking
        precisions.append(np.sum(np.array(ranks) <= 10) / 10)
    values, value_of, counts = np.unique(np.round(precisions, 9), return_inverse=True, return_counts=True)
    strata, stratum, in_stratum = np.zeros(len(values), int), 0, 0
    for value in range(len(values)):
        if in_stratum >= 4 and counts[value:].sum() >= 4:
            stratum, in_stratum = stratum + 1, 0
        strata[value], in_stratum = stratum, in_stratum + counts[value]
    train, test = train_test_split(np.arange(count), test_size=0.25, random_state=0, stratify=strata[value_of])
    _, report, _ = reports(page)
    for start, part in ((0, test), (2, train)):
        expected = np.array(supports)[part].sum(axis=0).tolist()
        shown = [int(report.iloc[start + row]["number"].replace(",", "")) for row in (0, 1)]
        assert shown == expected


def test_layers_are_trained_on_request(own_page: AppTest) -> None:
    assert len(figures(own_page)) == 2
    before = backend().forward_passes
    at_rest(own_page.button(key="learnt_every_layer").click().run())
    assert backend().forward_passes == before
    learnt, cosine = figures(own_page)[2]["data"]
    assert len(learnt["y"]) == 7
    assert float(learnt["y"][6]) == pytest.approx(bars(own_page)["Learnt: [CLS] layer 6"], abs=0.01)
    assert float(cosine["y"][6]) == pytest.approx(bars(own_page)["Cosine: [CLS] layer 6"], abs=0.01)
    assert float(learnt["y"][0]) < 10  # nothing to learn from at layer 0: all ties, the worst order


def test_texts_side_by_side_are_explained(open_page: Open, page: AppTest) -> None:
    app = at_rest(open_page("pairs", v="learnt-ranking", lf="concatenation"))
    assert "every query gets the same order of documents" in texts(app)
    assert "every query gets the same order" not in texts(page)


def test_pairs_are_read_together(open_page: Open) -> None:
    before = backend().forward_passes
    app = at_rest(open_page("pairs", v="learnt-ranking", lr="together", lq="20", lk="3", lo="2"))
    assert backend().forward_passes > before
    assert "Cosine: [CLS] layer 6" not in bars(app)
    assert "Learnt: [CLS] layer 6" in bars(app)


def test_what_takes_too_much_memory_is_refused_before_any_pass(
    open_page: Open, page: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = backend().forward_passes
    monkeypatch.setattr(learnt_rankers, "MOST_LEARNING_BYTES", 1 << 20)
    app = at_rest(open_page("pairs", v="learnt-ranking", lr="together", lk="4", lo="2"))
    assert "This view uses at most" in texts(app)
    assert backend().forward_passes == before


def test_scores_that_take_too_much_memory_are_refused_before_they_are_put_together(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert learnt_ranking.choosing_bytes(2_000, 400_000) > 10e9
    with pytest.raises(InputError, match="2,000 queries"):
        learnt_rankers.check_choosing(2_000, 400_000)
    learnt_rankers.check_choosing(2_000, learnt_ranking.MOST_DOCUMENTS)
    monkeypatch.setattr(learnt_rankers, "MOST_LEARNING_BYTES", 1 << 10)
    made: list[int] = []
    monkeypatch.setattr(learnt_ranking, "random_means", lambda *arguments, **options: made.append(1))
    app = at_rest(open_page("pairs", v="learnt-ranking", lk="5", lo="3"))
    assert "of memory" in texts(app)
    assert "Choose fewer queries or candidates" in texts(app)
    assert not made


def test_the_vectors_of_two_models_are_kept() -> None:
    class Large:
        nbytes = learnt_rankers.MOST_BYTES

    jobs = caching.learnt_vectors()
    first, second = (jobs.request(("of a test", number), "test", lambda *_: Large()) for number in range(2))
    try:
        assert first.finished.wait(60)
        assert second.finished.wait(60)
        assert jobs.find(first.key) is first
        assert jobs.find(second.key) is second
    finally:
        jobs.drop([first, second])


def test_vectors_from_a_file_are_one_more_ranking_or_are_refused(own_page: AppTest, few: GradedSet) -> None:
    """A file of another model joins the table; one of other texts does not, and says so."""
    pairs = next(
        job.result.pairs
        for job in caching.preparations()._finished.values()  # no other way to the session's pairs
        if hasattr(job.result, "split")
        and hasattr(job.result, "pairs")
        and len(job.result.pairs.queries) == len(few.queries)
    )
    numbers = np.random.default_rng(0)

    def vectors(pairs_hash: str) -> learnt_vectors.LearntVectors:
        sides = [
            numbers.normal(size=(1, 1, count, 8)).astype(np.float32)
            for count in (len(pairs.queries), len(pairs.documents))
        ]
        return learnt_vectors.LearntVectors("org/other", "r1", "apart", (12,), ("cls",), 128, pairs_hash, *sides)

    caching.pair_vectors().put("other.npz " + "0" * 64, vectors(pairs.content_hash))
    own_page.session_state["_pair_vectors"] = "other.npz " + "0" * 64
    values = bars(at_rest(own_page.run()))
    assert "Learnt: other (file, apart), [CLS] layer 12" in values
    # A file with the same name and other numbers gives other results; the same model with another length stays apart.
    caching.pair_vectors().put("other.npz " + "2" * 64, vectors(pairs.content_hash))
    own_page.session_state["_pair_vectors"] = "other.npz " + "2" * 64
    others = bars(at_rest(own_page.run()))
    name = "Learnt: other (file, apart), [CLS] layer 12"
    assert others[name] != values[name]
    assert {other: value for other, value in others.items() if other != name} == {
        other: value for other, value in values.items() if other != name
    }
    own = replace(vectors(pairs.content_hash), model=backend().spec.key, revision=backend().revision, layers=(6,))
    for length, expected in (
        (backend().own_max_length, "Learnt: [CLS] layer 6 (file)"),
        (17, f"Learnt: {backend().spec.key.rpartition('/')[2]} (file, apart, 17 tokens), [CLS] layer 6"),
    ):
        caching.pair_vectors().put(f"own{length}.npz " + "3" * 64, replace(own, max_length=length))
        own_page.session_state["_pair_vectors"] = f"own{length}.npz " + "3" * 64
        shown = bars(at_rest(own_page.run()))
        assert expected in shown
        assert ("Learnt: [CLS] layer 6" in shown) == (length == 17)
    caching.pair_vectors().put("wrong.npz " + "1" * 64, vectors("0" * 64))
    own_page.session_state["_pair_vectors"] = "wrong.npz " + "1" * 64
    at_rest(own_page.run())
    assert "are of other texts" in texts(own_page)
    assert len(bars(own_page)) == len(values) - 1
    assert learnt_ranking.read_pairs(learnt_ranking.write_pairs(pairs)).content_hash == pairs.content_hash
