"""Failed queries, hubs, causes and edits, against plain numpy and against the model itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from components.errors import InputError
from components.jobs import Stopped
from components.retrieval.corpora.corpus import Corpus
from components.retrieval.evaluation.pair_runs import pairs_of_corpus
from components.retrieval.evaluation.ranks import gold_ranks
from components.retrieval.failures import causes as causes_module
from components.retrieval.failures import edits, failed_queries, hubness
from components.retrieval.failures.edits import Embedding, WordEdit
from components.retrieval.failures.failed_queries import Placing, SearchedCorpus
from components.retrieval.search.exact import ExactSearch
from tests.support.closeness import assert_close

TEXTS = (
    "Eleven miners were rescued through a borehole after six days.",
    "Miners came up after nineteen days when the company withdrew its cuts.",
    "A plume of ash drifted over the airport.",
    "The central bank raised its key rate by half a point.",
    "Inflation fell to two per cent, the goal that the bank had missed.",
    "The winner of the lottery never came for the prize.",
    "A man won the main prize for the second time.",
    "Lava ran down the mountain into the sea.",
)
QUERIES = (
    "Trapped miners brought up",
    "Strike of the miners is over",
    "Ash stops flights",
    "Bank raises rate",
    "Price rise back at goal",
    "Winner never came",
    "Second prize for a man",
    "Volcano erupts",
)


def unit(vectors: np.ndarray) -> np.ndarray:
    doubled = vectors.astype(np.float64)
    return doubled / np.linalg.norm(doubled, axis=1, keepdims=True)


def random_vectors(count: int, dim: int = 6, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)


def searched(texts: tuple[str, ...], queries: tuple[str, ...]) -> SearchedCorpus:
    return failed_queries.searched_corpus(Corpus("test", texts, {"query": queries}), "query")


def test_failed_queries_are_those_of_plain_numpy() -> None:
    count = 40
    documents, noise = random_vectors(count), random_vectors(count, seed=1)
    queries = documents + 0.9 * noise
    corpus = searched(tuple(f"text {row}" for row in range(count)), tuple(f"query {row}" for row in range(count)))
    found = failed_queries.find_failures(corpus, queries, ExactSearch(documents))
    scores = unit(queries) @ unit(documents).T
    expected = []
    for row in range(count):
        rank = 1 + int((np.delete(scores[row], row) >= scores[row, row]).sum())
        if rank > 1:
            rival = int(np.argmax(np.where(np.arange(count) == row, -2, scores[row])))
            expected.append((row, rank, rival))
    assert len(expected) > 5
    assert [(item.row, item.rank, item.rival) for item in found.placings] == expected
    assert (found.queries, len(found.successes)) == (count, count - len(expected))
    assert all(item.rank == 1 and item.lead < 0 for item in found.successes)
    for item in found.placings:
        assert_close(item.right_cosine, scores[item.row, item.row])
        assert_close(item.rival_cosine, scores[item.row, item.rival])
    assert [item.rank for item in found.in_order("worst")] == sorted((rank for _, rank, _ in expected), reverse=True)
    assert list(found.leads[np.argsort(found.leads)]) == [item.lead for item in found.in_order("nearest")]


def test_rows_with_the_same_query_are_no_rivals() -> None:
    documents = np.array([[1, 0, 0], [0.9, 0.1, 0], [0, 1, 0], [0, 0, 1]], np.float32)
    corpus = searched(("a", "b", "c", "d"), ("same", " same ", "other", "last"))
    queries = np.array([[0.8, 0.2, 0], [0.8, 0.2, 0], [1, 0.05, 0], [0, 0, 1]], np.float32)
    found = failed_queries.find_failures(corpus, queries, ExactSearch(documents))
    assert found.queries == 3
    assert [(item.row, item.rank, item.rival) for item in found.placings] == [(2, 3, 0)]


def test_of_rows_with_the_same_query_the_one_that_ranks_best_is_given() -> None:
    documents = np.array([[0, 1, 0], [1, 0.2, 0], [1, 0, 0], [0, 0, 1]], np.float32)
    corpus = searched(("far", "near", "nearest", "d"), ("same", "same", "other", "last"))
    queries = np.array([[1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 0, 1]], np.float32)
    found = failed_queries.find_failures(corpus, queries, ExactSearch(documents))
    assert [(item.row, item.rank, item.rival) for item in found.placings] == [(1, 2, 2)]


def test_of_failures_with_one_rank_the_one_with_the_largest_lead_is_the_worst() -> None:
    placings = (Placing(0, 2, 5, 0.5, 0.6), Placing(1, 3, 5, 0.5, 0.6), Placing(2, 2, 5, 0.5, 0.7))
    found = failed_queries.FailedQueries(placings, 6)
    assert [item.row for item in found.in_order("worst")] == [1, 2, 0]
    assert [item.row for item in found.in_order("nearest")] == [0, 1, 2]


def test_a_tie_with_another_text_is_a_failure_and_one_with_a_right_text_is_none() -> None:
    documents = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    query = np.array([1, 0], np.float32)
    engine = ExactSearch(documents)
    assert failed_queries.placing(query, 1, (1,), engine) == Placing(1, 2, 0, 1.0, 1.0)
    assert failed_queries.placing(query, 1, (0, 1), engine) == Placing(1, 1, 2, 1.0, 0.0)
    with pytest.raises(InputError, match="no text that is not right"):
        failed_queries.placing(query, 0, (0, 1, 2), engine)


def test_equal_texts_are_one_text() -> None:
    """As for layers and poolings: a right text that is repeated is no rival, and a rival that is repeated counts once."""
    documents = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0.6, 0.7, 0], [0, 0, 1]], np.float32)
    texts, queries = ("a", "a", "b", "b", "c", "d"), ("for a", " ", "for b", "b again", "for c", "for d")
    corpus = searched(texts, queries)
    vectors = np.array([[1, 0.1, 0], [0.1, 1, 0], [0.2, 1, 0], [0, 1, 0], [0, 0, 1]], np.float32)
    found = failed_queries.find_failures(corpus, vectors, ExactSearch(documents))
    assert [(item.row, item.rank, item.rival) for item in found.placings] == [(4, 2, 2)]
    assert found.queries == 5
    assert list(corpus.firsts) == [0, 2, 4, 5]
    assert corpus.no_rivals((1,)) == (0, 1, 3)
    pairs = pairs_of_corpus(Corpus("test", texts, {"query": queries}), "query")
    unique = documents[corpus.firsts]
    ranks = gold_ranks(vectors, unique, np.array([pairs.answers_of(row)[0] for row in range(5)]))
    assert list(ranks) == [1, 1, 1, 2, 1]


def test_rows_without_a_query_are_ranked_but_have_none() -> None:
    corpus = searched(("a", "b", "c"), ("one", " ", "three"))
    assert corpus.queries.texts == ("one", "three")
    assert corpus.rows.tolist() == [0, 2]
    assert (corpus.number_of, corpus.right_rows) == ({0: 0, 2: 1}, {"one": (0,), "three": (2,)})
    assert len(failed_queries.searched_corpus(Corpus("test", ("a",)), None).queries) == 0


def test_the_right_texts_alone_are_searched_as_plain_numpy_searches_them() -> None:
    texts = ("b", "a", "a", "b", "c", "d", "e")  # the first "b" stands on a row without a query too
    queries = ("", "for a", "again for a", "for b", "", "for d", "")
    documents = random_vectors(7)
    documents[[2, 3]] = documents[[1, 0]]
    asked = random_vectors(4, seed=5)
    corpus = failed_queries.searched_corpus(Corpus("test", texts, {"query": queries}), "query", every_text=False)
    assert corpus.firsts.tolist() == [1, 3, 5]
    assert corpus.first_of.tolist() == [3, 1, 1, 3, -1, 5, -1]
    assert corpus.pairs.documents.texts == ("a", "b", "d")
    assert (corpus.pairs.content_hash, corpus.pairs.unsearched) == (
        pairs_of_corpus(Corpus("test", texts, {"query": queries}), "query").content_hash,
        2,
    )
    found = failed_queries.find_failures(corpus, asked, ExactSearch(documents))
    scores = unit(asked) @ unit(documents[corpus.firsts]).T
    right = [0, 0, 1, 2]
    ranks = [int((scores[number] >= scores[number, own]).sum()) for number, own in enumerate(right)]
    expected = {(row, rank) for row, rank in zip((1, 2, 3, 5), ranks, strict=True)}
    assert {(item.row, item.rank) for item in (*found.placings, *found.successes)} == expected
    assert {item.rival for item in found.placings} <= {1, 3, 5}


@pytest.mark.parametrize("of_corpus", [False, True])
def test_k_occurrence_is_that_of_plain_numpy(of_corpus: bool) -> None:
    documents = random_vectors(300)
    queries = documents[5:290] if of_corpus else random_vectors(285, seed=3)
    own = np.arange(5, 290) if of_corpus else None
    k, done = 7, []
    found = hubness.k_occurrence(queries, ExactSearch(documents), k, own, lambda *step: done.append(step))
    scores = unit(queries) @ unit(documents).T
    if own is not None:
        scores[np.arange(len(queries)), own] = -2
    counts = np.bincount(np.argsort(-scores, axis=1)[:, :k].ravel(), minlength=300)
    assert np.array_equal(found.counts, counts)
    assert found.mean == pytest.approx(k * len(queries) / 300)
    deviations = counts - counts.mean()
    assert found.skewness == pytest.approx((deviations**3).mean() / counts.std() ** 3)
    hubs = {row for row in range(300) if counts[row] > counts.mean() + 2 * counts.std()}
    assert {row for row in range(300) if found.is_hub(row)} == hubs
    assert hubs
    assert done[-1] == (285, 285)


def test_equal_texts_still_leave_k_hits_for_a_text_of_the_corpus() -> None:
    same = np.ones((5, 3), np.float32)
    found = hubness.k_occurrence(same, ExactSearch(same), 2, np.arange(5))
    assert found.counts.sum() == 5 * 2
    assert hubness.k_occurrence(same, ExactSearch(same), 9).counts.tolist() == [5] * 5
    assert hubness.k_occurrence(same, ExactSearch(same), 9).skewness == 0
    assert not hubness.k_occurrence(same, ExactSearch(same), 9).is_hub(0)  # found as often as every other text
    assert hubness.k_occurrence(same, ExactSearch(same), 9, np.arange(5)).counts.sum() == 5 * 4
    with pytest.raises(Stopped):
        hubness.k_occurrence(same, ExactSearch(same), 2, is_stopped=lambda: True)


def test_each_cause_has_its_rule() -> None:
    texts = (
        "The volcano threw ash over the town.",  # right for the first query
        "The volcano threw ash over the old town.",  # nearly equal to it
        "Rain fell on the hills.",
        "Volcano ash closes the airport of the town.",
        "A fourth text about boats.",
    )
    queries = ("volcano ash town", "ash closes airport volcano", "wet weather", "airport", "boats")
    corpus = searched(texts, queries)
    vectors = np.eye(5, dtype=np.float32)
    failed = (
        Placing(0, 2, 1, 0.5, 0.6),  # near duplicate by words
        Placing(1, 2, 3, 0.5, 0.6),  # the rival has two more words of the query; a hub
        Placing(2, 2, 4, 0.5, 0.6),  # shares no word
        Placing(4, 2, 0, 0.5, 0.6),  # nothing holds
        Placing(3, 2, 0, 0.5, 0.6),  # the right text is truncated
    )
    counts = np.array([1, 1, 1, 50, 1, *[1] * 20])
    found = causes_module.causes_of(
        failed,
        corpus,
        ExactSearch(vectors),
        hubness.Hubness(counts, 5, 10),
        ([False] * 5, [False, False, False, True, False]),
    )
    assert [found.of_failure(number) for number in range(5)] == [
        ("near duplicate",),
        ("hub", "often found", "words"),
        ("no shared word",),
        ("other",),
        ("truncated",),
    ]
    assert found.of("hub").tolist() == [False, True, False, False, False]
    assert causes_module.shared_content("my voucher expired", "Vouchers expire.") == {"voucher", "expired"}
    assert causes_module.are_near_duplicates("one", "two", 0.96)
    assert not causes_module.are_near_duplicates("", "", 0.1)


def test_what_failures_have_beyond_twice_the_error_is_more_than_chance() -> None:
    def causes(held: int, count: int) -> Any:
        holds = np.zeros((len(causes_module.CAUSES), count), bool)
        holds[list(causes_module.CAUSES).index("hub"), :held] = True
        holds[list(causes_module.CAUSES).index("other")] = count == 100
        return causes_module.Causes(tuple(causes_module.CAUSES), holds)

    for held, is_sure in ((60, True), (55, False), (50, False)):  # the error is 7 %
        share, is_more = causes_module.telling(causes(held, 100), causes(45, 99))
        assert (share.name, is_more) == ("hub", is_sure)
    assert causes_module.telling(causes(0, 100), causes(45, 99)) is None
    assert causes_module.telling(causes(9, 100), causes(0, 0)) is None


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ([WordEdit("removed", 0, 7, "Trapped")], "miners brought up"),
        ([WordEdit("removed", 8, 14, "miners")], "Trapped brought up"),
        ([WordEdit("removed", 23, 25, "up")], "Trapped miners brought"),
        ([WordEdit("replaced", 0, 7, "Trapped", "Eleven")], "Eleven miners brought up"),
        ([WordEdit("removed", 8, 14, "miners"), WordEdit("replaced", 0, 7, "Trapped", "A")], "A brought up"),
        ([WordEdit("added", 25, 25, "days")], "Trapped miners brought up days"),
    ],
)
def test_changes_leave_no_double_spaces(changes: list[WordEdit], text: str) -> None:
    assert edits.edited("Trapped miners brought up", changes) == text


@pytest.mark.parametrize(
    ("text", "word", "left"),
    [
        ("Juror's sleuthing ends trial", "Juror's", "sleuthing ends trial"),
        ("The model doesn't see it.", "doesn't", "The model see it."),
        ("The judge left the old town.", "town", "The judge left the old."),
        ("Rain, hail, and snow", "hail", "Rain, and snow"),
        ("Ash, lava and a flood; then rain.", "flood", "Ash, lava and a; then rain."),
        ("The jury (twelve) met", "twelve", "The jury met"),
        ("The “old” town", "old", "The town"),
        ("The “old town” met", "old", "The “town” met"),
        ("The “old town” met", "town", "The “old” met"),
        ('"Never," he said', "Never", "he said"),
        ("He came, saw.", "saw", "He came."),
        ("He came, saw", "saw", "He came"),
        ("Fire – town burns", "Fire", "town burns"),
        ("Town burns – fire", "fire", "Town burns"),
        ("It burns – again – today", "again", "It burns – today"),
        ("Wait! No, go", "No", "Wait! go"),
        ("a  b   c", "b", "a  c"),
        ("The workers' strike ends", "workers'", "The strike ends"),
        ("The workers’ strike ends", "workers’", "The strike ends"),
        ("The 'old workers' struck", "workers", "The 'old' struck"),
        ("The ‘old workers’ struck", "workers", "The ‘old’ struck"),
        ("It doesn’t say ‘old town’ here", "town", "It doesn’t say ‘old’ here"),
        ("rock 'n' roll dies", "n", "rock roll dies"),
        ("rock ’n’ roll dies", "n", "rock roll dies"),
        ("In the ’90s it fell", "90s", "In the it fell"),
        ("The 'old town' met", "old", "The 'town' met"),
        ("Top 2) second item", "2", "Top second item"),
        ("Look (see page 2) there", "2", "Look (see page) there"),
        ("f(x, y) is odd", "y", "f(x) is odd"),
        ('The "old town" met', "town", 'The "old" met'),
        ("It “rained, hailed,” he said", "hailed", "It “rained,” he said"),
        ("The “Go. Now” sign", "Now", "The “Go.” sign"),
        ('An old" town met', "old", "An town met"),
    ],
)
def test_a_removed_word_takes_its_punctuation_with_it(text: str, word: str, left: str) -> None:
    """“'s” was a word of its own, so that edits read “Juror'detector”."""
    change = next(change for change in edits.removals(text) if change.word == word)
    assert edits.edited(text, (change,)) == left


def test_edits_put_whole_words_in_the_place_of_whole_words() -> None:
    query, right = "Juror's sleuthing ends trial", "The judge didn't hear of the metal-detector, or “juror's” map."
    assert edits.new_words(query, right) == ("judge", "hear", "metal-detector", "map")
    texts = {
        edits.edited(query, (change,))
        for change in (*edits.removals(query), *edits.replacements(query, 0, len("Juror's"), right))
    }
    assert {"judge sleuthing ends trial", "metal-detector sleuthing ends trial", "Juror's ends trial"} <= texts
    allowed = {"Juror's", "sleuthing", "ends", "trial", "judge", "hear", "metal-detector", "map"}
    assert {word for text in texts for word in text.split()} <= allowed
    strike = "Workers' strike halts trains"
    assert edits.edited(strike, edits.replacements(strike, 0, len("Workers'"), "judge")) == "judge strike halts trains"
    assert (0, len("Workers'")) == (edits.removals(strike)[0].start, edits.removals(strike)[0].end)
    both = (WordEdit("replaced", 0, 7, "Juror's", "Judge"), WordEdit("removed", 8, 17, "sleuthing"))
    assert edits.edited(query, both) == "Judge ends trial"


def test_an_elision_goes_with_its_word() -> None:
    query = "Nothin' goin' on"
    assert [edits.edited(query, (change,)) for change in edits.removals(query)] == [
        "goin' on",
        "Nothin' on",
        "Nothin' goin'",
    ]


def test_new_words_are_content_words_that_the_text_does_not_have() -> None:
    assert edits.new_words("Trapped miners brought up", TEXTS[0]) == (
        "Eleven",
        "rescued",
        "borehole",
        "six",
        "days",
    )
    assert edits.new_words("Die Wege", "Straße STRASSE Cafe\u0301 Café") == ("Straße", "Cafe\u0301")
    assert edits.removals("word") == ()
    assert edits.additions("a b", "c") == (WordEdit("added", 3, 3, "c"),)


@dataclass(frozen=True, eq=False)
class Searched:
    """The embedded model's vectors of the small corpus."""

    backend: Any
    engine: ExactSearch
    queries: np.ndarray
    embedding: Embedding
    known: dict[str, np.ndarray] = field(default_factory=dict)

    def vector_of(self, text: str) -> np.ndarray:
        """The vector of a text that is embedded by itself."""
        if text not in self.known:
            self.known[text] = self.backend.embed([text], [6], ["mean"])[0, 0, 0]
        return self.known[text]


@pytest.fixture(scope="module")
def small(embedded: Any) -> Searched:
    options = embedded.embed_options([2, 6], ["mean", "cls"], precision="float32")
    documents = embedded.embed(TEXTS, options=options)[1, 0]
    queries = embedded.embed(QUERIES, options=options)[1, 0]
    return Searched(embedded, ExactSearch(documents), queries, Embedding(embedded, options, 6, "mean"))


def independent_rank(small: Searched, query: str, texts: tuple[str, ...], row: int) -> int:
    """The rank of a text when everything is embedded again, one text at a time."""
    vectors = np.stack([small.vector_of(text) for text in (query, *texts)])
    scores = unit(vectors[1:]) @ unit(vectors[:1])[0]
    return 1 + int((np.delete(scores, row) >= scores[row]).sum())


@pytest.mark.parametrize(("query", "row"), [("Winner never came", 6), ("Price rise", 4), ("Volcano", 2)])
def test_every_listed_edit_brings_the_right_text_to_rank_1(small: Searched, query: str, row: int) -> None:
    rank = edits.rank_queries(small.embedding, small.engine, row)
    done: list[tuple[int, int]] = []
    found = edits.query_edits(query, TEXTS[row], rank, lambda *step: done.append(step))
    assert independent_rank(small, query, TEXTS, row) > 1
    assert found.helping
    assert 0 < found.tried <= edits.MOST_SINGLE + edits.MOST_DOUBLE
    assert [len(edit.changes) for edit in found.helping] == sorted(len(edit.changes) for edit in found.helping)
    assert all(step <= total for step, total in done)
    for edit in found.helping:
        assert (edit.rank, edit.text) == (1, edits.edited(query, edit.changes))
        assert edit.lead < 0
        assert independent_rank(small, edit.text, TEXTS, row) == 1
    if found.nearest is not None:
        assert independent_rank(small, found.nearest.text, TEXTS, row) == found.nearest.rank


def test_every_listed_edit_of_the_text_helps(small: Searched) -> None:
    query = "Prices"
    vector = small.embedding.vectors([query], by_itself=True)[0]
    rank = edits.rank_texts(small.embedding, small.engine, vector, 5)
    found = edits.text_edits(query, TEXTS[5], rank)
    assert found.side == "text"
    assert found.possible == len(edits.removals(TEXTS[5])) + 1 == found.tried
    for edit in (*found.helping, found.nearest):
        assert edit is not None
        changed = (*TEXTS[:5], edit.text, *TEXTS[6:])
        assert independent_rank(small, query, changed, 5) == edit.rank
    assert [edit.changes[0].kind for edit in found.helping] == ["added"]  # “Prices” itself


def test_two_words_are_edited_only_if_one_does_not_help() -> None:
    tried: list[str] = []

    def rank(texts: Any, by_itself: bool) -> tuple[np.ndarray, np.ndarray]:
        tried.extend(texts)
        good = np.array([text == "a x y" for text in texts])
        return np.where(good, 1, 3), np.where(good, -0.1, np.array([0.9 - 0.1 * len(text) / 10 for text in texts]))

    found = edits.query_edits("a b c", "x y", rank)
    assert [edit.text for edit in found.helping] == ["a x y"]
    assert len(found.helping[0].changes) == 2
    assert found.possible == 3 + 3 * 2
    assert found.tried == len(set(tried))
    assert found.nearest is not None
    assert found.nearest.rank == 3
    with pytest.raises(Stopped):
        edits.query_edits("a b c", "x y", rank, is_stopped=lambda: True)


def test_the_two_words_are_those_that_alone_came_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edits, "COMBINED", 2)
    leads = {"b c": 0.1, "a b x": 0.2, "b x": -0.1}

    def rank(texts: Any, by_itself: bool) -> tuple[np.ndarray, np.ndarray]:
        return np.array([1 + (text != "b x") for text in texts]), np.array([leads.get(text, 0.9) for text in texts])

    assert [edit.text for edit in edits.query_edits("a b c", "x", rank).helping] == ["b x"]


def test_edits_without_new_words_come_first() -> None:
    def rank(texts: Any, by_itself: bool) -> tuple[np.ndarray, np.ndarray]:
        return np.ones(len(texts), int), np.array([-0.5 if "x" in text else -0.1 for text in texts])

    found = edits.query_edits("a b", "x", rank)
    assert [edit.changes[0].kind for edit in found.helping] == ["removed", "removed", "replaced", "replaced"]


def test_an_edit_that_helps_only_within_a_batch_is_not_listed() -> None:
    def rank(texts: Any, by_itself: bool) -> tuple[np.ndarray, np.ndarray]:
        return np.full(len(texts), 2 if by_itself else 1), np.zeros(len(texts))

    assert edits.query_edits("one two", "three", rank).helping == ()


def test_ranks_and_leads_are_those_of_placing(small: Searched) -> None:
    ranks, leads = edits.ranks_and_leads(small.queries, small.engine, 4)
    for number, query in enumerate(small.queries):
        placed = failed_queries.placing(query, 4, (), small.engine)
        assert (ranks[number], leads[number]) == (placed.rank, pytest.approx(placed.lead, abs=1e-12))


@pytest.mark.parametrize("count", [edits.MOST_LISTED - 1, edits.MOST_LISTED, edits.MOST_LISTED + 5])
def test_more_edits_that_help_than_are_looked_at_again_are_said(count: int) -> None:
    """One word is replaced by each of so many; each helps in a batch, and half of them by themselves."""
    found = edits.query_edits(
        "boats",
        " ".join(f"word{number}" for number in range(count)),
        lambda texts, by_itself: (
            np.array([1 + (by_itself and row % 2) for row in range(len(texts))]),
            np.full(len(texts), -0.1),
        ),
    )
    assert found.has_more == (count > edits.MOST_LISTED)
    assert len(found.helping) == -(-min(count, edits.MOST_LISTED) // 2)
    assert found.nbytes >= sum(len(edit.text) for edit in found.helping)


def test_a_query_without_spaces_loses_one_letter_at_a_time():
    query = "火山爆发 now"
    assert [edits.edited(query, (change,)) for change in edits.removals(query)] == [
        "山爆发 now",
        "火爆发 now",
        "火山发 now",
        "火山爆 now",
        "火山爆发",
    ]
    assert edits.new_words("火山", "火车站 fire") == ("车", "站", "fire")
    assert edits.new_words("कल", "कला कल") == ("कला",)
