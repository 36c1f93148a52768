"""Uploaded files: the code reads each by its name from the same folder, and gives what the page shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.corpora.texts import Texts
from components.retrieval.evaluation import pair_runs
from components.retrieval.evaluation.run_record import Run as SavedRun
from components.retrieval.evaluation.run_record import RunData, write_runs
from components.retrieval.search.relevance import Judgements
from components.snippets import code
from dashboard import caching
from dashboard.corpora import current
from tests.dashboard.code.shown import codes, figure, numbers, same, y
from tests.support.pages import Open, at_rest
from tests.support.snippets import Run

TWO = {
    "corpus.jsonl": '{"_id": "a", "title": "", "text": "A cat slept."}\n{"_id": "b", "title": "", "text": "Ships sailed."}\n'
    '{"_id": "c", "title": "", "text": "Rain fell on the roof."}\n',
    "queries.jsonl": '{"_id": "q1", "text": "sleeping cat"}\n{"_id": "q2", "text": "rain"}\n',
    "qrels.tsv": "query-id\tcorpus-id\tscore\nq1\ta\t1\nq2\tc\t1\n",
}
PEOPLE = "sentence1,sentence2,score\nA cat slept.,A cat sleeps.,5\nRain fell.,It rained.,4\nA dog.,A ship.,1\nOne.,A car.,0\n"
SENSES = "word,sense,sentence\n" + "".join(
    f"bank,{sense},{text}\n"
    for sense, texts in (
        ("money", ("The bank lent money.", "I paid at the bank.", "A bank gave credit.")),
        (
            "river",
            ("The bank of the river.", "We sat on the bank.", "A muddy bank."),
        ),
    )
    for text in texts
)
MINIMAL = "first,second,kind\n" + "".join(
    f"The {noun} is old.,The {noun} is not old.,denial\n" for noun in ("cat", "dog", "ship", "house", "road", "town")
)
WORDS = ("a", "cat", "dog", "volcano", "lava", "child")
VECTORS = "".join(f"{word} {number} {number % 3} 1\n" for number, word in enumerate(WORDS))


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def upload(app: AppTest, key: str, files: dict[str, str | bytes], *, many: bool = False) -> AppTest:
    """The page after these files were uploaded; they lie in the working folder too, for the code."""
    sent = []
    for name, content in files.items():
        content = content.encode() if isinstance(content, str) else content
        Path(name).write_bytes(content)
        sent.append((name, content, "text/plain"))
    app.file_uploader(key=key).set_value(sent if many else sent[0])
    return at_rest(app.run())


def test_a_graded_collection(open_page: Open, run: Run) -> None:
    app = upload(
        open_page("evaluate", v="graded-relevance", gs="file", r=["bm25"]), "graded_files", dict(TWO), many=True
    )
    values = run(codes(app)["graded_curve"].snippet)["values"]
    for trace in figure(app, "graded_curve")["data"]:
        same(values[trace["name"]], trace["y"], 1e-4)


def test_pairs_with_scores(open_page: Open, run: Run) -> None:
    app = upload(open_page("evaluate", v="sentence-similarity", src="file"), "sts_file", {"Pairs of mine.csv": PEOPLE})
    names = run(codes(app)["sts_scatter"].snippet)
    same(names["values"], y(app, "sts_scatter")[0], 1e-5)
    assert len(names["scored"].first) == 4


def test_pairs_of_a_file_whose_dialect_was_chosen(open_page: Open, run: Run) -> None:
    content = PEOPLE.partition("\n")[2]
    app = upload(open_page("evaluate", v="sentence-similarity", src="file"), "sts_file", {"mine.csv": content})
    (header,) = [box for box in app.selectbox if box.label == "The first row"]
    app = at_rest(header.set_value("is a row").run())
    snippet = codes(app)["sts_scatter"].snippet
    assert "dialect=DialectChoice(header=False)" in snippet.code
    names = run(snippet)
    same(names["values"], y(app, "sts_scatter")[0], 1e-5)
    assert len(names["scored"].first) == 4
    app = at_rest(
        next(box for box in app.selectbox if box.label == "The first row").set_value("names the columns").run()
    )
    assert not any("4 pairs" in item.value for item in app.caption)  # the choice is part of what is kept


def test_senses(open_page: Open, run: Run) -> None:
    app = upload(open_page("map", v="word-senses", ws="file"), "senses_file", {"senses.csv": SENSES})
    curve = run(codes(app)["senses_curve"].snippet)["curve"]
    same(curve.accuracy, y(app, "senses_curve")[0])


def test_minimal_pairs(open_page: Open, run: Run) -> None:
    app = upload(open_page("why", v="known-failures", cs="file", cf="layers"), "clinic_file", {"minimal.csv": MINIMAL})
    values = run(codes(app)["clinic_layers"].snippet)["values"]
    assert any(len(item) == 7 and np.allclose(values["denial"], item, atol=1e-3) for item in y(app, "clinic_layers"))


def test_word_vectors(open_page: Open, run: Run, corpus: str) -> None:
    app = open_page("search", corpus=corpus, v="corpus")
    app.session_state["kept"] = True
    app = upload(app.run(), "static_file", {"my vectors.txt": VECTORS})
    app.session_state["search_view"] = "hits"
    app.session_state["query"] = "a cat and a dog"
    app.session_state["compare_with"] = "static"
    app = at_rest(app.run())
    names = run(codes(app)["spread_1"].snippet)
    assert "“my vectors.txt”" in codes(app)["spread_1"].snippet.code
    shown = numbers(figure(app, "spread_1")["data"][1]["x"])
    same(names["values"][names["best"]][: len(shown)], shown, 1e-5)


def test_saved_runs(open_page: Open, run: Run, corpus: str) -> None:
    uploaded = caching.corpora().find(corpus)
    assert uploaded is not None
    pairs = pair_runs.pairs_of_corpus(uploaded)
    data = RunData("mine", len(pairs.documents), len(pairs.queries), pairs.content_hash)
    ranks = np.minimum(np.arange(1, len(pairs.queries) + 1), len(pairs.documents))
    ours = SavedRun("Last year's", {"kind": "x"}, data, {}, {}, ranks)
    app = at_rest(open_page("evaluate", corpus=corpus, v="compare-runs", r=["bm25"]))
    app.session_state["load_runs"] = True
    app = upload(app.run(), "run_files_0", {"last year.json": write_runs([ours])}, many=True)
    values = run(codes(app)["compare_curves"].snippet)["values"]
    traces = {trace["name"]: trace["y"] for trace in figure(app, "compare_curves")["data"]}
    assert len(values) == len(traces) == 2
    (own,) = [shown for name, shown in traces.items() if name.startswith("Last year's")]
    same(values["Last year's (loaded)"], own, 1e-4)


@pytest.mark.parametrize("columns", ["row,anchor,positive,place", "row,one,two,three"])
def test_rows_to_train_on(open_page: Open, run: Run, columns: str) -> None:
    rows = [f"{number},the cat {number} sat,a red hat {number} ran,a river {number}" for number in range(20)]
    app = upload(open_page("training", src="file"), "training_file", {"rows.csv": "\n".join([columns, *rows])})
    if columns == "row,one,two,three":
        app.selectbox(key="column_0").set_value("one")
        app.selectbox(key="column_1").set_value("two")
        app = at_rest(app.run())
        assert '"anchor": "one"' in codes(app)["training_lengths"].snippet.code
    values = run(codes(app)["training_lengths"].snippet)["values"]
    shown = sum(numbers(item["y"]).sum() for item in figure(app, "training_lengths")["data"] if item["type"] == "bar")
    assert sum(map(len, values.values())) == shown == 40


def test_rows_to_train_on_of_a_file_whose_dialect_was_chosen(open_page: Open, run: Run) -> None:
    rows = [f"the cat {number} sat,a red hat {number} ran" for number in range(20)]
    app = upload(open_page("training", src="file"), "training_file", {"rows.csv": "\n".join(["query,positive", *rows])})
    (quotes,) = [box for box in app.selectbox if box.label == "Quotation marks"]
    app = at_rest(quotes.set_value("are characters").run())
    snippet = codes(app)["training_lengths"].snippet
    assert "dialect=DialectChoice(quotes=False)" in snippet.code
    assert len(run(snippet)["rows"]) == 20


def test_marks(open_page: Open, run: Run, corpus: str) -> None:
    app = at_rest(open_page("search", corpus=corpus, q="a dog"))
    uploaded = caching.corpora().find(corpus)
    assert uploaded is not None
    app.session_state["_judgements"] = {
        uploaded.content_hash: Judgements().mark("a dog", 3, True).mark("a dog", 0, False)
    }
    app = at_rest(app.run())
    ((_, (five, ten)),) = run(codes(app)["precision"].snippet)["values"].items()
    assert (five, ten) == (0.2, 0.1)
    table = next(item.value for item in app.table if "P@5" in item.value)
    assert [float(str(table["P@5"][0]).replace("\\", "")), float(str(table["P@10"][0]).replace("\\", ""))] == [
        five,
        ten,
    ]


def test_a_name_with_marks_of_code_and_an_encoding(tmp_path: Path) -> None:
    name = 'my "best"\n# file\'.csv'
    (tmp_path / "latin.csv").write_bytes("sentence\nDer Bär schläft.\nDie Tür.\n".encode("cp1252"))
    of = read_corpus(tmp_path / "latin.csv", "latin.csv", "sentence")
    statements = code.corpus(of, False, "sentence", encoding=of.report.encoding)
    assert of.report.encoding != "utf-8"
    assert repr(of.report.encoding).strip("'") in statements[-1]
    remark, statement, _ = code.corpus(Texts(name, ("a",)), False)
    assert "\n" not in remark
    names: dict[str, object] = {"Path": str}
    exec(f"{remark}\n{statement}", names)
    assert names["file"] == name


def test_a_corpus_of_the_hub_is_fetched_by_its_name() -> None:
    (statement,) = code.corpus(Texts("org/news", ("a",)), False, "text")
    assert statement == 'corpus = read_corpus(fetch_dataset("org/news"), "org/news", "text")'
    assert current.code_of(current.demo()) == ("corpus = demo_corpus()",)
