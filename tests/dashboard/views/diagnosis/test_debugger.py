"""The view of a failed search: the query's list, the ledgers, the edits, hubs, causes, and the links that lead to it."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.analysis.why.ledger import Ledger, typed_parts
from components.model.tokenization import MAX_CHARACTERS, Tokenization
from components.retrieval.corpora.corpus import Corpus, read_corpus
from components.retrieval.corpora.readers.limits import Count
from components.retrieval.corpora.readers.table import BadRows
from components.retrieval.corpora.rows.read import rows_of, table_of
from components.retrieval.failures import edits, failed_queries, repair
from components.retrieval.failures.causes import CAUSES, Causes
from components.retrieval.failures.edits import Edit, EditSearch, WordEdit
from components.retrieval.failures.failed_queries import FailedQueries, Placing
from components.retrieval.failures.traits import Traits, too_few, traits_of
from components.retrieval.search.exact import ExactSearch
from dashboard import caching
from dashboard.corpora import current, own_queries
from dashboard.jobs import embedding, failures, requests
from dashboard.views.diagnosis import debugger_table, failed_case, rivals
from tests.support import tiny
from tests.support.pages import Open, at_rest, backend, figures, go_to, plain_table, setting, texts

ROWS = (17, 171, 95, 553, 86, 463, 479, 0, 1, 2, 3, 4, 5, 6, 7, 8)  # of the demo; the first ones are hard to find


def kept(corpus: Corpus) -> str:
    """The key of a corpus that the server keeps from now on."""
    caching.corpora().put(current.key_of(corpus), corpus)
    return current.key_of(corpus)


@pytest.fixture(scope="module")
def small() -> Corpus:
    demo = current.demo()
    chosen = [(demo.texts[row], demo.columns["compressed"][row]) for row in ROWS]
    sentences, queries = zip(*chosen, strict=True)
    return Corpus("small", sentences, {"compressed": queries})


@pytest.fixture(scope="module")
def expected(small: Corpus) -> FailedQueries:
    model, searched = backend(), failed_queries.searched_corpus(small, "compressed")
    both = model.embed([*small.texts, *searched.queries.texts], options=model.embed_options(precision="float32"))[0, 0]
    return failed_queries.find_failures(searched, both[len(small) :], ExactSearch(both[: len(small)]))


@pytest.fixture(scope="module", autouse=True)
def _few_edits() -> Iterator[None]:
    """A tenth of the edits that people's searches try: how they are tried is not the page's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edits, "MOST_SINGLE", 24)
        patch.setattr(edits, "MOST_DOUBLE", 16)
        yield


@pytest.fixture
def page(open_page: Open, small: Corpus) -> AppTest:
    """The view of the small corpus, settled."""
    return at_rest(open_page("why", v="failed-search", corpus=kept(small)))


@pytest.fixture(scope="module")
def read(read_page: Open, small: Corpus, _few_edits: None) -> AppTest:
    """The same for tests that only read it."""
    return read_page("why", v="failed-search", corpus=kept(small))


def case_html(app: AppTest) -> str:
    """The query and its two texts, as the page shows them first."""
    return next(item.proto.body for item in app.get("html") if "bi-case" in item.proto.body)


def bars(app: AppTest) -> dict[str, np.ndarray]:
    """The two dots of each word in the first figure, and their differences."""
    found = {trace["name"]: np.asarray(trace["x"], float) for trace in figures(app)[0]["data"] if "name" in trace}
    return found | {"rival minus right text": found["rival"] - found["right text"]}


def listed(app: AppTest) -> list[dict[str, Any]]:
    """The failed queries in the list, which stands before the query that is open."""
    found = [json.loads(item.proto.json) for item in every(app.main) if '"pickHint"' in getattr(item.proto, "json", "")]
    return [row for data in found for row in data["rows"]]


def every(element: Any) -> Iterator[Any]:
    for child in getattr(element, "children", {}).values():
        if getattr(child, "proto", None) is not None:
            yield child
        yield from every(child)


def test_the_page_begins_with_the_query_its_two_texts_the_reason_and_the_smallest_edit(
    read: AppTest, small: Corpus, expected: FailedQueries
) -> None:
    assert not read.exception
    assert not read.error
    worst = expected.in_order("worst")[0]
    chosen = read.selectbox(key="w_failed_query")
    assert (len(chosen.options), chosen.value) == (len(expected), worst.row)
    assert chosen.options[0].startswith(f"Rank {worst.rank}: ")
    shown = re.sub(r"<[^>]+>", "", case_html(read))
    for text in (small.columns["compressed"][worst.row], small.texts[worst.row], small.texts[worst.rival]):
        assert html.escape(text) in shown
    assert "Query all-MiniLM-L6-v2 · layer 6 · Mean" in shown
    right, rival = failed_case.told_apart(worst.right_cosine, worst.rival_cosine)
    assert f"Right text rank {worst.rank} of {len(small)} · cosine {right}" in shown
    assert f"Its rival rank 1 of {len(small)} · cosine {rival}" in shown
    found = bars(read)
    assert found["right text"].sum() == pytest.approx(worst.right_cosine, abs=1e-4)
    assert found["rival"].sum() == pytest.approx(worst.rival_cosine, abs=1e-4)
    words = small.columns["compressed"][worst.row].split()
    assert len(found["rival"]) == len(words) + 1  # as typed, and the special tokens together
    said, reason = [item.value for item in read.markdown if ":material/insights:" in item.value][:2]
    fail = "fails" if len(expected) == 1 else "fail"
    few = too_few(len(expected), expected.queries - len(expected))
    assert f"{len(expected)} of {expected.queries} queries {fail}. {few}" in said
    differences = found["rival minus right text"]  # the special tokens last
    strongest = int(np.argmax(differences[:-1]))
    assert differences[-1] > differences[strongest]  # so that it is not the word that speaks most
    assert f"**The special tokens speak most for the rival**: {differences[-1]:.3f} more there" in reason
    assert f"of the words, “{words[strongest]}” adds most, {differences[strongest]:.3f} more" in reason
    assert reason.count(". ") == 0  # one sentence
    edit = next(item.value for item in read.markdown if ":material/edit:" in item.value)
    assert "**Smallest edit of the query**" in edit or "**No edit of the query brings" in edit
    assert any("small  ·  16 sentences" in item.label for item in read.expander)


def test_the_texts_are_compared_and_all_failed_queries_can_be_opened(
    read: AppTest, small: Corpus, expected: FailedQueries
) -> None:
    sides = next(table for table in (plain_table(read, n) for n in range(len(read.table))) if "rival" in table.columns)
    assert {"BM25", "among the first 10 hits of", "length"} <= set(sides.iloc[:, 0])
    assert any(name.startswith("cross-encoder") for name in sides.iloc[:, 0])
    assert len(figures(read)) == 4  # the bars, both ledgers, the histogram
    traits = next(table for table in (plain_table(read, n) for n in range(len(read.table))) if "trait" in table.columns)
    called = {"near duplicate": "near duplicate as rival", "words": "query word that only the rival has"}
    assert list(traits["trait"]) == [called.get(name, name) for name in CAUSES]
    assert "of the queries that do not fail" in traits.columns
    assert "What the rivals of failed queries share" in texts(read)
    assert "by cause" not in texts(read)
    rows = listed(read)
    worst_first = expected.in_order("worst")
    assert [row["index"] for row in rows] == [item.row for item in worst_first]
    assert [row["picked"] for row in rows] == [True] + [False] * (len(rows) - 1)
    assert [row["rank"] for row in rows] == [str(item.rank) for item in worst_first]
    assert [row["rival"] for row in rows] == [small.texts[item.rival] for item in worst_first]


def test_a_trait_and_a_column_choose_queries_and_each_repair_has_its_rank(open_page: Open, small: Corpus) -> None:
    queries = list(small.columns["compressed"])
    queries[3] = "ovrealls kn pinao"  # two misspelt words and an abbreviation
    teams = ["billing" if row % 2 else "sales" for row in range(len(small))]
    ids = [f"K-{row}" for row in range(len(small))]
    corpus = Corpus("mine", small.texts, {"id": ids, "compressed": queries, "team": teams})
    trait, chosen = "likely misspelling", "team=billing"
    app = at_rest(open_page("why", v="failed-search", corpus=kept(corpus), col="compressed", ft=trait, only=chosen))
    assert not app.exception
    # The traits of all queries by the function, of which those of the team are counted.
    model, searched = backend(), failed_queries.searched_corpus(corpus, "compressed")
    options = model.embed_options(precision="float32")
    both = model.embed([*corpus.texts, *queries], options=options)[0, 0]
    documents, vectors = both[: len(corpus)], both[len(corpus) :]
    found = traits_of(searched.pairs, vectors, documents, model.tokenization, options.max_length)
    failures_there = failed_queries.find_failures(searched, vectors, ExactSearch(documents))
    failed = np.isin(np.arange(len(corpus)), [item.row for item in failures_there.placings])
    kept_rows = np.array([team == "billing" for team in teams])
    data = next(
        json.loads(item.proto.json) for item in every(app.main) if '"pickHint"' in getattr(item.proto, "json", "")
    )
    counts = {item["key"]: re.findall(r"(\d+) of", item["hint"])[:2] for item in data["traits"]}
    for name in found.names:
        held = found.of(name) & kept_rows
        shown = counts.get(name, ["0", "0"])
        assert shown == [str((held & failed).sum()), str((held & ~failed).sum())]
    assert not data["compared"]
    assert "Fewer than 30 queries fail: too few" in texts(app) or "too few found" in texts(app)
    for team in ("billing", "sales"):
        own = np.array([each == team for each in teams])
        cells = [f"team: {team}", str(own.sum()), str((own & failed).sum())]
        rows = [row for table in app.table for row in table.value.to_numpy().tolist()]
        assert cells in [[str(cell).replace("\\", "") for cell in row[:3]] for row in rows]
    assert "of this part fails. It has “" in texts(app)
    assert "Add queries that work" not in texts(app)  # the file may have them
    assert [item["key"] for item in data["traits"] if item["picked"]] == [trait]
    expected = [item for item in failures_there.in_order("worst") if (found.of(trait) & kept_rows)[item.row]]
    assert [row["index"] for row in data["rows"]] == [item.row for item in expected] == [3]
    assert data["rows"][0]["rival"].startswith(f"K-{expected[0].rival} · ")
    assert data["all"] == f"all {(failed & kept_rows).sum()}"  # what the list has without the trait
    assert (failed & kept_rows).sum() < failed.sum()
    # The first of them is open beside the list, with the ids of both texts.
    body = re.sub(r"<[^>]+>", "", case_html(app))
    assert f"Right text K-3 · rank {expected[0].rank} of {len(corpus)}" in body
    assert "Traits: likely misspelling" in body

    def repairs() -> dict[str, int]:
        body = next(item.proto.body for item in app.get("html") if "bi-repairs" in item.proto.body)
        lines = re.findall(r"<li><span>(.*?)</span><span[^>]*>rank [\d,]+ → <b>(\d+)</b>", body)
        return {html.unescape(re.sub(r"<[^>]+>", "", line)): int(rank) for line, rank in lines}

    def rank(query: str) -> int:
        scores = documents @ model.embed([query], options=options)[0, 0, 0]
        scores /= np.linalg.norm(documents, axis=1)
        return int((scores >= scores[3]).sum())

    assert repairs() == {
        "ovrealls → overalls": rank("overalls kn pinao"),
        "pinao → piano": rank("ovrealls kn piano"),
        "“overalls kn piano”": rank("overalls kn piano"),
    }
    app = at_rest(app.text_input(key="w_abbreviations").set_value("kn=a concert hall").run())
    assert repairs()["kn → a concert hall"] == rank("ovrealls a concert hall pinao")
    assert repairs()["“overalls a concert hall piano”"] == rank("overalls a concert hall piano")
    app.text_input(key="w_abbreviations").set_value("kn").run()
    assert "abbreviations 'kn' are not valid" in at_rest(app).error[0].value


def test_a_chosen_trait_of_rivals_that_cannot_be_sought_is_said_once(
    open_page: Open, small: Corpus, expected: FailedQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("for the test")

    def occurrences(_: object, where: str = "hubness") -> None:
        requests.prepared(("fails", small.name), "Counting", fail, where, "counting", jobs=caching.evaluations())

    monkeypatch.setattr(failures, "occurrences", occurrences)
    app = at_rest(open_page("why", v="failed-search", corpus=kept(small), fc="no-shared-word"))
    assert not app.exception
    assert [button.key for button in app.button].count("again_hubness_of_all") == 1
    data = json.loads(
        next(item.proto.json for item in every(app.main) if '"pickHint"' in getattr(item.proto, "json", ""))
    )
    assert len(data["rows"]) == len(expected)  # all, and none is said to have the trait
    assert "rival:" not in data["of"]


def test_a_corpus_is_walked_once_for_its_ids_its_parts_and_the_names_of_its_texts() -> None:
    class Walked(tuple[str, ...]):
        walks = 0

        def __iter__(self) -> Iterator[str]:
            Walked.walks += 1
            return super().__iter__()

    ids, teams = Walked(("K-1", "K-2", "K-3")), Walked(("sales", "billing", "sales"))
    corpus = Corpus("walked", Walked(("One text.", "Another.", "A third.")), {"id": ids, "team": teams})

    def looked_up() -> tuple[object, ...]:
        parts = debugger_table.parts_of(corpus, None)
        return current.own_ids(corpus), parts, own_queries.rows_named(corpus, ["k-3", "another.", "no"])

    first = looked_up()
    walks = Walked.walks
    assert first == looked_up() == (ids, {"team=billing": "team: billing", "team=sales": "team: sales"}, [2, 1, None])
    assert Walked.walks == walks


def test_the_traits_of_many_queries_are_looked_up_in_one_table() -> None:
    class Corpus:
        made = 0

        @property
        def right_rows(self) -> dict[str, tuple[int, ...]]:
            self.made += 1
            return {"cat": (0,), "dog": (1,)}

    corpus = Corpus()
    searched: Any = SimpleNamespace(corpus=corpus)
    nothing: Any = None
    found = Traits(("short", "typed"), np.array([[True, False], [True, True]]))
    chosen = debugger_table.QueryChoice(searched, nothing, "worst", traits=found)
    assert [chosen.traits_of(query) for query in ("cat", " dog ", "cow")] == [("short", "typed"), ("typed",), ()]
    assert corpus.made == 1


def test_a_typed_query_takes_its_right_text_from_the_hits(page: AppTest, small: Corpus) -> None:
    page.text_input(key="w_typed_query").set_value("A stolen piano").run()
    page = at_rest(page)
    names = page.selectbox(key="w_right_row").options
    assert len(names) == len(small)
    assert names[0].startswith("1  ")
    assert "until you choose one" in page.selectbox(key="w_right_row").label
    piano = int(np.flatnonzero(["piano" in text for text in small.texts])[0])
    page.selectbox(key="w_right_row").select(piano).run()
    assert setting(page, "right_row") == piano
    shown = re.sub(r"<[^>]+>", "", case_html(at_rest(page)))
    assert "A stolen piano" in shown
    assert html.escape(small.texts[piano]) in shown
    page.button(key="failed_list").click().run()
    assert setting(page, "typed_query") == ""


def test_texts_of_people_are_text_and_the_query_s_words_in_them_are_marked(open_page: Open) -> None:
    key = kept(Corpus("odd", ("a <b>piano</b> & <script>x</script>", "The piano was sold.", "Rain fell.")))
    app = at_rest(open_page("why", v="failed-search", corpus=key, dq="<i>piano</i>", dr="0"))
    assert not app.exception
    body = case_html(app)
    assert "&lt;i&gt;piano&lt;/i&gt;" in body
    assert "a &lt;b&gt;<mark>piano</mark>&lt;/b&gt; &amp; &lt;script&gt;" in body
    assert "<script" not in body


def test_the_split_of_the_rival_opens_with_the_pair(page: AppTest, small: Corpus, expected: FailedQueries) -> None:
    worst = expected.in_order("worst")[0]
    page.button(key="split_rival").click().run()
    assert setting(page, "meaning_view") == "score-split"
    assert setting(page, "sentences") == (small.columns["compressed"][worst.row], small.texts[worst.rival])


def test_a_corpus_without_queries_takes_a_typed_one(open_page: Open, small: Corpus) -> None:
    key = kept(Corpus("only sentences", small.texts))
    app = at_rest(open_page("why", v="failed-search", corpus=key))
    assert "has no column with queries" in texts(app)
    app.text_input(key="w_typed_query").set_value("music").run()
    app = at_rest(app)
    assert not app.exception
    box = app.selectbox(key="w_right_row")
    assert box.value is not None
    assert "texts of the corpus, each as a query" in texts(app)
    # Nobody has said which text is right: the second hit is not called that.
    assert "Second hit rank 2 of" in re.sub(r"<[^>]+>", "", case_html(app))
    assert "Second hit and rival, compared" in texts(app)
    assert "right text" not in texts(app).split("How to read this")[0].lower()
    app = at_rest(box.set_value(box.value).run())
    assert "second hit rank" in re.sub(r"<[^>]+>", "", case_html(app)).lower()  # that was no choice


def test_a_corpus_in_which_no_query_fails_says_so(open_page: Open, small: Corpus) -> None:
    key = kept(Corpus("easy", small.texts, {"compressed": small.texts}))
    app = at_rest(open_page("why", v="failed-search", corpus=key))
    assert not app.exception
    assert "No failed query" in texts(app)


def test_the_smallest_edit_says_what_is_done_and_shows_the_result_as_that() -> None:
    change = WordEdit("replaced", 8, 14, "island", "football")
    found = EditSearch("query", (Edit("volcano football", (change,), 1, -0.02),), None, 4, 4)
    said = rivals._smallest(found, "right text")
    assert (
        "replace “island” by “football”, and the right text ranks first. The query then reads “volcano football”"
        in said
    )
    assert said.endswith("It shows what the model reacts to, and is no advice for writing.")


def test_other_poolings_have_no_ledger(open_page: Open, small: Corpus) -> None:
    app = at_rest(open_page("why", v="failed-search", corpus=kept(small), pool="cls"))
    assert not app.exception
    assert "with mean or maximum pooling only" in texts(app)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((0.4379, 0.4394), ("0.438", "0.439")),
        ((0.43791, 0.43802), ("0.4379", "0.4380")),
        ((0.5, 0.5), ("0.500", "0.500")),
        ((0.5, 0.500002), ("0.500000", "0.500002")),
        ((-0.02, 0.1), ("−0.020", "0.100")),
    ],
)
def test_two_cosines_have_as_many_digits_as_tell_them_apart(
    numbers: tuple[float, float], expected: tuple[str, str]
) -> None:
    assert failed_case.told_apart(*numbers) == expected


def test_without_an_edit_that_helps_the_nearest_is_named(open_page: Open) -> None:
    """A text never ranks before another one that the model reads as the same."""
    corpus = Corpus(
        "twice", ("Snow fell *in* Oslo.", "snow fell *in* oslo.", "Rain."), {"q": ("snow in Norway", "Oslo", "wet")}
    )
    app = at_rest(open_page("why", v="failed-search", corpus=kept(corpus), fq="0"))
    assert not app.exception
    said = [item.value for item in app.markdown if ":material/edit:" in item.value]
    assert said[0].startswith(":material/edit: **No edit of the query brings the right text to rank 1.** The nearest,")
    assert said[0].endswith("leaves it at rank 2.")
    assert "**Both texts have the same cosine**, and a tie counts against the right text." in texts(app)
    assert len(said) == 2  # the edits of the right text come next
    assert "edits of the query were tried; none of them help." in texts(app)


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("A juror met the judge.", "Juror's", True),
        ("It couldn't be moved.", "didn't", False),
        ("It didn't move.", "Didn't", True),
        ("A lie was told.", "lie-detector", True),
        ("Snow fell.", "rain", False),
    ],
)
def test_a_text_has_a_word_as_typed_or_its_content(text: str, word: str, expected: bool) -> None:
    assert failed_case._has(text, word) is expected


def test_a_cell_of_the_heatmap_leads_to_the_split_of_its_score(open_page: Open) -> None:
    app = open_page("heatmaps", v="sentence-pairs")
    before = setting(app, "sentences")
    app.selectbox(key="why_pair").select_index(1).run()
    first, second = map(int, app.selectbox(key="why_pair").value.split("-"))
    app.button(key="why_similar").click().run()
    assert app.title[0].value == "What makes these two texts similar?"
    assert setting(app, "sentences") == before
    assert (setting(app, "sentence_a"), setting(app, "sentence_b")) == (first, second + 1)


def test_a_hit_leads_to_the_split_and_to_the_failed_search(open_page: Open, small: Corpus) -> None:
    key = kept(small)
    app = at_rest(open_page("search", corpus=key, q="stolen piano", why="1"))
    app.button(key="why_here").click().run()
    assert setting(app, "sentences") == ("stolen piano", small.texts[1])
    app = at_rest(open_page("search", corpus=key, q="stolen piano", why="1"))
    app.button(key="why_not_first").click().run()
    assert (setting(app, "diagnose_view"), setting(app, "typed_query"), setting(app, "right_row")) == (
        "failed-search",
        "stolen piano",
        1,
    )
    at_rest(app)


def test_a_failed_query_of_evaluate_leads_here(open_page: Open, small: Corpus, expected: FailedQueries) -> None:
    worst = expected.in_order("worst")[0]
    address = {"view": "compare", "corpus": kept(small), "r": "m.6.mean", "n": str(worst.row)}
    app = at_rest(open_page("evaluate", **address))
    app.button(key="why_m.6.mean").click().run()
    assert not app.exception
    assert (setting(app, "diagnose_view"), setting(app, "failed_query")) == ("failed-search", worst.row)
    assert (setting(app, "layer"), setting(app, "pooling")) == (6, "mean")
    at_rest(app)


def test_long_texts_share_the_characters_of_one_trace() -> None:
    """2,200 + 9,000 + 9,000 characters were more than a trace holds."""
    cut = failed_case.cut_together(("query: ", "q" * 2_200), ("passage: ", "r" * 30_000), ("passage: ", "s" * 9_500))
    assert sum(map(len, cut)) == MAX_CHARACTERS
    assert cut[0] == "query: " + "q" * 2_200
    assert min(len(cut[1]), len(cut[2])) > 8_800
    assert abs(len(cut[1]) - len(cut[2])) <= 1
    assert cut[1].startswith("passage: r")
    short = failed_case.cut_together(("", "one"), ("", "two"), ("", "x" * 50_000))
    assert [len(text) for text in short] == [3, 3, MAX_CHARACTERS - 6]
    assert max(map(len, failed_case.cut_together(("p" * 21_000, "a"), ("", "b"), ("", "c")))) == 21_000


def query_words(query: str, prompt: str, differences: dict[str, float]) -> failed_case.QueryWords:
    """What the words of a query add to the rival; nothing to the right text."""
    parts = typed_parts(Tokenization(tiny.unigram_tokenizer(), 64, False).tokenize(prompt + query))
    assert set(differences) <= {part.text for part in parts}

    def ledger(values: list[float]) -> Ledger:
        return Ledger(parts, parts[:1], np.array(values)[:, None], (), sum(values), (1.0, 1.0), 1, "mean")

    rival = [differences.get(part.text, 0.0) for part in parts]
    return failed_case.QueryWords(ledger([0.0] * len(parts)), ledger(rival), len(prompt))


def test_a_long_query_has_bars_for_the_largest_differences_and_one_sum_of_all_others() -> None:
    differences = {"cat": 0.2, "dog": -0.3, "bank": 0.01, "the": -0.02, "<s> </s>": 0.001}
    found = query_words("the cat bank dog", "", differences)
    names, right, rival = found.rows(4)
    assert names == ["cat", "dog", "<s> </s>", "2 others"]
    np.testing.assert_allclose(rival - right, [0.2, -0.3, 0.001, -0.01])
    everything = found.rows(5)
    assert everything[0] == found.names
    np.testing.assert_allclose(everything[2].sum(), rival.sum())


def case_of(placed: Placing) -> failed_case.Case:
    documents = SimpleNamespace(texts=("The bank.", "The cat."))
    return failed_case.Case(SimpleNamespace(corpus=SimpleNamespace(documents=documents)), "cat dog", (0,), placed)


def test_the_first_word_after_a_prompt_can_be_the_strongest() -> None:
    """The tokenizer counts the space before “cat” to it, so that the word seemed to begin within the prompt."""
    found = query_words("cat dog", "query: ", {"query": 0.5, "cat": 0.2, "dog": 0.1})
    strongest = found.strongest(1)
    assert strongest is not None
    assert found.names[strongest] == "cat"
    assert found.strongest(-1) is None
    said = failed_case._reason(case_of(Placing(0, 2, 1, 0.1, 0.9)), found)
    assert said == (
        "**The model's prompt speaks most for the rival**: 0.500 more there than for the right text; of the words, “cat” adds "
        "most, 0.200 more, and only the rival has this word."
    )
    found = query_words("cat dog", "query: ", {"query": 0.1, "cat": 0.2, "dog": 0.1})
    said = failed_case._reason(case_of(Placing(0, 2, 1, 0.1, 0.9)), found)
    assert said.startswith("**“cat” speaks most for the rival**: it adds 0.200 more")


def test_special_tokens_that_add_more_than_any_word_are_named_first() -> None:
    found = query_words("cat dog", "", {"<s> </s>": 0.026, "cat": 0.015})
    said = failed_case._reason(case_of(Placing(0, 2, 1, 0.1, 0.2)), found)
    assert said.startswith(
        "**The special tokens speak most for the rival**: 0.026 more there than for the right text; of "
    )
    assert "“cat” adds most, 0.015 more" in said
    found = query_words("cat dog", "", {"<s> </s>": -0.026, "cat": -0.015})
    said = failed_case._reason(case_of(Placing(0, 1, 1, 0.2, 0.1)), found)
    assert "the special tokens speak most for it; of the words, “cat” does." in said


@pytest.mark.parametrize(
    ("right", "rival", "said"),
    [
        ("A code.", "Vouchers expire.", ", and only the rival has a form of this word (“vouchers”)"),
        ("Your vouchers.", "Rain.", ", though only the right text has a form of this word (“vouchers”)"),
        ("Your vouchers.", "Vouchers expire.", ", though both texts have a form of this word (“vouchers”)"),
        ("Your vouchers.", "A voucher.", "; the right text has “vouchers”"),
        ("A voucher.", "Vouchers expire.", ", though the right text has this very word"),
        ("A code.", "A voucher.", ", and only the rival has this word"),
        ("A code.", "Rain.", ", though neither text has this word"),
        ("A voucher.", "The voucher.", ", though both texts have this word"),
    ],
)
def test_other_forms_of_a_word_are_seen_in_both_texts(right: str, rival: str, said: str) -> None:
    assert failed_case._where_it_stands("voucher", right, rival, "right text") == said


def test_a_text_that_bm25_gives_a_score_of_0_is_not_found() -> None:
    scores = np.array([0.0, 2.0, 1.0, 0.0, 2.0], np.float32)
    first_of = np.array([0, 1, 2, 3, 1])  # the last is the text of number 1 once more

    def opinion(right: int, rival: int) -> rivals.Opinion:
        return rivals.of_words(scores, first_of, Placing(right, 2, rival, 0.1, 0.2))

    assert (opinion(2, 4).ranks, opinion(2, 4).scores) == ((2, 1), (1.0, 2.0))
    assert (opinion(0, 1).ranks, opinion(0, 1).scores) == ((None, 1), (0.0, 2.0))
    neither = opinion(0, 3)
    assert neither.rows() == {"BM25": ("score 0.000, not found", "score 0.000, not found")}
    assert rivals.opinions([neither], "right text") == "BM25 finds neither of them."
    assert opinion(0, 1).rows() == {"BM25": ("score 0.000, not found", "score 2.000, rank 1 of 4")}


def test_a_trait_that_most_other_queries_have_too_is_not_said_to_set_failures_apart() -> None:
    def with_trait(held: int, count: int) -> Causes:
        holds = np.zeros((len(CAUSES), count), bool)
        holds[list(CAUSES).index("no shared word"), :held] = True
        return Causes(tuple(CAUSES), holds)

    said = debugger_table.traits_in_words(with_trait(24, 30), with_trait(62, 100))
    assert said == (
        "No trait sets them apart by more than chance; the nearest is “no shared word”: 24 of 30 failed queries have it, and "
        "62 % of those found too."
    )
    said = debugger_table.traits_in_words(with_trait(24, 30), with_trait(12, 100))
    assert said.startswith(
        "The trait that sets them apart most is “no shared word”: 24 of 30 failed queries have it, and 12 %"
    )
    # As above the list of traits: of few queries nothing is concluded.
    said = debugger_table.traits_in_words(with_trait(8, 10), with_trait(12, 100))
    assert said == (
        "“No shared word” is the trait with the largest difference: 8 of 10 failed queries have it, and 12 % of those found. "
        "Fewer than 30 queries fail or are found: too few to be sure."
    )
    assert "no trait to compare" in debugger_table.traits_in_words(with_trait(8, 10), with_trait(0, 0))


@pytest.mark.parametrize(
    ("differences", "source"),
    [
        ({"<s> </s>": 0.4, "cat": -0.1}, ": its lead comes from the special tokens."),
        ({"query": 0.4, "<s> </s>": -0.1}, ": its lead comes from the model's prompt."),
        ({"!": 0.4, "query": -0.1}, ": its lead comes from punctuation."),
        ({"!": 0.4, "query": 0.1}, ": its lead comes from the model's prompt and punctuation."),
        ({"cat": -0.1}, "."),
    ],
)
def test_a_lead_that_comes_from_no_word_has_its_sources_named(differences: dict[str, float], source: str) -> None:
    found = query_words("cat !", "query: ", differences)
    said = failed_case._reason(case_of(Placing(0, 2, 1, 0.1, 0.2)), found)
    assert said == f"**No single word of the query speaks for the rival**{source}"


@pytest.mark.parametrize(
    ("rank", "lead", "said"),
    [
        (2, 0.0, "**Both texts have the same cosine**, and a tie counts against the right text."),
        (2, 5e-13, "**Both texts have the same cosine**, and a tie counts against the right text."),
        (2, 5e-8, "**The two cosines differ by less than 0.000001**, and that of the rival is the larger one."),
        (1, -5e-8, "**The two cosines differ by less than 0.000001**, and that of the right text is the larger one."),
    ],
)
def test_a_tie_is_that_of_the_ranking(rank: int, lead: float, said: str) -> None:
    assert failed_case._reason(case_of(Placing(0, rank, 1, 0.5, 0.5 + lead)), None) == said


@pytest.mark.parametrize(
    ("query", "replaced", "said"),
    [
        ("kb " * 52, 52, "Replaced only together with the others: 2 further words."),
        ("kb " * 51, 51, "Replaced only together with the others: 1 further word."),
        ("kb " * 50, 50, ""),
        ("k" * 1_001, 0, "No other way is tried: the query is longer than 1,000 characters."),
        ("k" * 1_000, 0, ""),  # nothing to repair: nothing is said
    ],
)
def test_repairs_that_are_not_tried_are_told(
    query: str, replaced: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = [(repair.Repaired("knowledge base", (("kb", "knowledge base"),) * replaced), 1)] if replaced else []
    bodies: list[str] = []
    monkeypatch.setattr(failures, "repairs_of", lambda *arguments: whole)
    monkeypatch.setattr(failed_case.state, "get", lambda name: "")
    monkeypatch.setattr(failed_case.figures, "markup", lambda body, key: bodies.append(body))
    searched: Any = None
    failed_case._repairs(failed_case.Case(searched, query, (0,), Placing(0, 2, 1, 0.1, 0.2)))
    assert len(bodies) == (replaced > 0 or said != "")
    assert [told for body in bodies for told in re.findall(r"<p>(.*?)</p>", body)] == ([said] if said else [])


def test_the_causes_count_tokens_with_the_models_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, str] = {}
    monkeypatch.setattr(embedding, "token_counts", lambda model, corpus, where, prompt: asked.update({corpus: prompt}))
    monkeypatch.setattr(requests, "prepared", lambda *_: "sorted")
    searched: Any = SimpleNamespace(
        corpus=SimpleNamespace(documents="texts", queries="queries"),
        backend=None,
        prompts=lambda: ("query: ", "passage: "),
        engine=None,
        max_length=0,
        key=(),
    )
    nothing: Any = None
    assert failures.causes_of(searched, nothing, nothing) == "sorted"
    assert asked == {"texts": "passage: ", "queries": "query: "}


@pytest.mark.parametrize("prompt", ["", "bank the: "])
def test_a_text_is_said_to_be_cut_with_its_prompt_and_special_tokens(
    prompt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text 0 fits by itself, and not after the prompt; text 1 never fits."""
    tokenization, limit = Tokenization(tiny.unigram_tokenizer(), 64, False), 8
    texts = ("the cat sat the cat", "the cat sat the cat sat the cat sat")
    searched: Any = SimpleNamespace(
        corpus=failed_queries.searched_corpus(Corpus("few", texts), None),
        backend=SimpleNamespace(tokenization=tokenization, spec=SimpleNamespace(title="<few>")),
        layer=1,
        pooling="mean",
        max_length=limit,
        prompts=lambda: ("", prompt),
    )
    placed = Placing(0, 2, 1, 0.1, 0.2)
    bodies: list[str] = []
    monkeypatch.setattr(failed_case.st, "html", bodies.append)
    failed_case._texts(failed_case.Case(searched, "cat", (0,), placed))
    read = [
        [token for token in tokenization.tokenize(prompt + text, max_length=limit).tokens if token.end > len(prompt)]
        for text in texts
    ]
    is_cut = [own[-1].end < len(prompt + text) for own, text in zip(read, texts, strict=True)]
    assert is_cut == [bool(prompt), True]
    said = [f"the model read only its first {len(own)} tokens" for own in read]
    _, *sections = bodies[0].split("<section")[1:]
    assert [text in section for text, section in zip(said, sections, strict=True)] == is_cut
    assert [f"first {limit} tokens" in section for section in sections] == [False, False]
    lengths = rivals.rows_of_words(searched, "cat", placed)["length"]
    assert ["truncated to 8" in length for length in lengths] == is_cut
    assert ["with the model's prompt" in length for length in lengths] == [bool(prompt)] * 2
    assert lengths[1].startswith(f"9 words, {tokenization.lengths([prompt + texts[1]])[0]} tokens")


def test_another_list_of_queries_opens_its_first_one(page: AppTest) -> None:
    found = next(row for row in range(len(ROWS)) if row not in {item["index"] for item in listed(page)})
    page.session_state["failed_query"] = found
    at_rest(page.run())
    assert not any(row["picked"] for row in listed(page))
    assert not rules_of_rivals(page).proto.expanded
    causes = page.selectbox(key="w_failure_cause")
    causes.select_index(next(at for at, name in enumerate(causes.options) if at and not name.endswith("(0)")))
    at_rest(page.run())
    shown = listed(page)
    assert [row["picked"] for row in shown] == [True, *[False] * (len(shown) - 1)]
    assert rules_of_rivals(page).proto.expanded
    page.selectbox(key="w_failure_cause").select_index(0)
    at_rest(page.run())
    assert setting(page, "failure_cause") == "all"
    assert rules_of_rivals(page).proto.expanded  # the panel in which a person works does not fold
    page = at_rest(go_to(go_to(page, "pieces"), "failed-search"))
    assert not rules_of_rivals(page).proto.expanded  # as the view opens


def rules_of_rivals(app: AppTest) -> Any:
    return next(item for item in app.expander if "with their rules" in item.label)


@pytest.mark.parametrize(
    ("name", "content", "state", "reason"),
    [
        ("desk.csv", b"query,text\ncat,A cat slept.\nship,Ships sailed.\nlost,\n", "No failed query.", "empty"),
        (
            "a.json",
            b'[{"query": "a", "text": "b"}, {"query": "c", "text": 5}]',
            "one text",
            "a number instead of text",
        ),
    ],
)
def test_rows_left_out_are_counted_with_their_reasons_where_no_query_fails(
    name: str, content: bytes, state: str, reason: str, open_page: Open
) -> None:
    own = read_corpus(content, name, "text")
    app = at_rest(open_page("diagnose", v="failed-search", corpus=kept(own), col="query"))  # as a link opens it
    said = texts(app).replace("\\", "")
    assert state in said
    assert f"1 of {own.report.rows} rows cannot be used and is left out: row " in said
    assert f"({reason})." in said
    assert f"1 of {own.report.rows} rows left out" in app.expander[0].label
    if name == "desk.csv":  # as `evaluate` says it
        rows = rows_of(table_of([content], name, None, Count(name, None)), name, wanted="pairs")
        assert rows.reading(rows.rows, BadRows()).refusals() in said


def test_of_many_failed_queries_share_stands_in_the_list_before_its_pages(
    open_page: Open, small: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    placings = debugger_table.QueryChoice.placings
    monkeypatch.setattr(debugger_table, "ON_PAGE", 2)
    monkeypatch.setattr(debugger_table.QueryChoice, "placings", lambda chosen: (*placings(chosen),) * 3)
    app = at_rest(open_page("why", v="failed-search", corpus=kept(small)))
    assert not app.exception

    def within(node: Any) -> Iterator[str]:
        yield getattr(getattr(node, "proto", None), "id", "")
        for child in getattr(node, "children", {}).values():
            yield from within(child)

    names = [name.rpartition("-")[2] for name in within(app.main)]
    at = [names.index(name) for name in ("failed_queries", "line_failed_queries_all", "failed_page")]
    assert at == sorted(at)
