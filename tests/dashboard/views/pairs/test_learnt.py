"""The ranking learnt from [CLS] vectors: what it compares, and what a control costs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split
from streamlit.testing.v1 import AppTest

from components.errors import InputError
from components.model.backend import Backend
from components.retrieval.evaluation.graded import collection
from components.retrieval.evaluation.graded.collection import GradedSet
from components.retrieval.learnt import learnt_ranking
from components.retrieval.search.lexical import make_ranker
from dashboard import caching
from dashboard.corpora import current
from dashboard.views.pairs import learnt, learnt_rankers
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
    names = {label: name for name, label in learnt.LABELS.items()}
    drawn = [name.replace("<br>", " ") for name in trace["y"]]
    return dict(zip([names.get(name, name) for name in drawn], map(float, trace["x"]), strict=True))


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
    assert "learns nothing, and grey are other ways of ranking." in texts(page)
    answer = next(str(item.value) for item in page.markdown if "(MAP)" in str(item.value))
    assert f"Mean average precision (MAP) {values['Learnt: [CLS] layer 6']:.1f} %: better than" in answer
    for name, shown in (
        ("Cosine: [CLS] layer 6", "the cosine of the same vectors"),
        ("BM25", "BM25"),
        ("By chance", "chance"),
    ):
        assert f"{shown} ({values[name]:.1f})" in answer
    table = next(plain_table(page, number) for number, each in enumerate(page.table) if "ranking" in each.value)
    assert list(table["ranking"]) == sorted(values, key=values.__getitem__, reverse=True)
    assert {name: float(value) for name, value in zip(table["ranking"], table["MAP"], strict=True)} == pytest.approx(
        values, abs=0.06
    )


@pytest.mark.parametrize(
    ("cosine", "said"),
    [(0.9, "**Yes, but worse than without learning.** "), (0.5, "**Partly.** "), (0.2, "**Yes.** ")],
)
def test_the_answer_says_when_learning_does_harm(cosine: float, said: str) -> None:
    def ranker(name: str, value: float) -> learnt_rankers.MeasuredRanking:
        return learnt_rankers.MeasuredRanking(name, {"MAP": np.full(20, value)}, name.startswith("Learnt"))

    names = {"Learnt: [CLS] layer 6": 0.5, "Cosine: [CLS] layer 6": cosine, "BM25": 0.3, learnt_rankers.CHANCE: 0.1}
    assert learnt._answer([ranker(*each) for each in names.items()]).startswith(said)


def test_what_is_learnt_is_told_with_its_weights(page: AppTest, few: GradedSet) -> None:
    told = texts(page)
    assert "one weight for each of these 384 numbers" in told
    assert f"(test), all {len(few.documents)} documents are then ranked by that sum" in told
    assert "thin lines: 95 % intervals" in told
    assert "of 384 weights are positive" in told
    weights = next(plain_table(page, number) for number, table in enumerate(page.table) if "weight" in table.value)
    sizes = [abs(float(value)) for value in weights["weight"]]
    assert len(sizes) == 10
    assert sizes == sorted(sizes, reverse=True)
    assert weights["number"].str.fullmatch(r"q × d, dimension \d+").all()


def reports(app: AppTest) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The accuracies, and the two classes of both parts."""
    found = [plain_table(app, number) for number in range(len(app.table))]
    accuracies = next(table for table in found if "accuracy" in table)
    (own,) = (table for table in found if "precision" in table)
    return accuracies, own


def test_the_reports_are_of_both_parts_and_name_the_majority(page: AppTest) -> None:
    accuracies, report = reports(page)
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
    _, report = reports(page)
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


def test_pairs_are_read_together(open_page: Open) -> None:
    before = backend().forward_passes
    app = at_rest(open_page("pairs", v="learnt-ranking", lr="together", lq="20"))
    assert backend().forward_passes > before
    assert "Cosine: [CLS] layer 6" not in bars(app)
    assert "Learnt: [CLS] layer 6" in bars(app)
    assert "orange is learnt, blue are other ways of ranking." in texts(app)


def test_what_takes_too_much_memory_is_refused_before_any_pass(
    open_page: Open, page: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = backend().forward_passes
    monkeypatch.setattr(learnt_rankers, "MOST_LEARNING_BYTES", 1 << 20)
    app = at_rest(open_page("pairs", v="learnt-ranking", lr="together", lq="30"))
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
    app = at_rest(open_page("pairs", v="learnt-ranking", lq="25"))
    assert "of memory" in texts(app)
    assert "Choose fewer queries" in texts(app)
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


def test_a_link_with_a_choice_that_is_gone_says_so(page: AppTest, open_page: Open) -> None:
    app = at_rest(open_page("pairs", v="learnt-ranking", lf="concatenation", lk="5"))
    assert "does not use the link's “lf” and “lk”" in texts(app) + "".join(each.value for each in app.warning)
    assert bars(app) == bars(page)
