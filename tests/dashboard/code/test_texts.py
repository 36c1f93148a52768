"""The code of figures gives the numbers on screen, in a process with transformers and numpy and without this project."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest

from components.analysis.attention.head_kinds import head_kinds
from components.analysis.attention.head_patterns import score_heads
from components.analysis.pooling import mean_of
from components.analysis.similarity.cka import MOST_TOKENS, layer_cka
from components.model.backend import Backend
from components.model.embedding.embedder import Embedder
from components.retrieval.search.relevance import Judgements
from components.retrieval.search.rerank import late_interaction_scores
from components.shown_code.arrays import Input, pieces
from components.shown_code.attention import kinds, one_word, patterns
from components.shown_code.code import Code, Command
from components.shown_code.cosines import layers_alike
from components.shown_code.notebook import WITH_EFFECTS, WITHOUT_CELL, TitledCode, notebook
from components.shown_code.search import judged_precision, max_sim_scores, reranked
from tests.dashboard.code.shown import (
    EQUAL,
    SENTENCES,
    codes,
    figure,
    found_by,
    numbers,
    points,
    same,
    same_points,
    short,
    y,
    z,
)
from tests.support.elsewhere import Elsewhere
from tests.support.pages import Open, at_rest, frame
from tests.support.places import ROOT
from tests.support.saved_models import save_cross_encoder

NINE = [f"{text} {number}" for number in range(3) for text in SENTENCES]
TEXT = "The cat sat on the bank, we put money in."


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ({}, "words_0"),
        ({"view": "within", "word": "0", "len": "8"}, "words_0"),
        ({"view": "sentences", "pool": "max", "sp": "0"}, "sentences_0"),
        ({"view": "sentences", "pool": "cls"}, "sentences_0"),
    ],
)
def test_curves(open_page: Open, elsewhere: Elsewhere, address: dict[str, str], key: str) -> None:
    app = open_page("layers", s=SENTENCES, **address)
    shown = y(app, key)
    same(found_by(elsewhere, app, key), shown[3:], EQUAL)  # the first three are the grey band


def test_a_token_with_all_others(open_page: Open, elsewhere: Elsewhere) -> None:
    app = open_page("layers", s=SENTENCES, v="one-against-all")
    same(found_by(elsewhere, app, "words_0"), z(app, "words_0"), EQUAL)


def test_a_matrix_of_many_sentences(open_page: Open, elsewhere: Elsewhere) -> None:
    app = open_page("layers", s=NINE, v="sentence-curves", l="4")
    shown = z(app, "sentences_matrix_0")
    kept = ~np.isnan(shown)
    same(found_by(elsewhere, app, "sentences_matrix_0")[kept], shown[kept], EQUAL)


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert", "distilbert"])
def test_other_families(open_page: Open, elsewhere: Elsewhere, tiny_folder: Callable[[str], Path], family: str) -> None:
    app = open_page("layers", m=str(tiny_folder(family)), s=["the cat sat .", "a red hat ran on"])
    same(found_by(elsewhere, app, "words_0"), y(app, "words_0")[3:], EQUAL)


@pytest.mark.parametrize(
    ("page", "address", "key"),
    [
        ("heatmaps", {"view": "tokens", "l": "3", "ag": "2"}, "tokens_0"),
        ("heatmaps", {"view": "tokens", "ag": "0", "sp": "0"}, "tokens_0"),
        ("heatmaps", {"view": "pairs", "l": "5"}, "together_1"),
        ("heatmaps", {"v": "layer-pairs"}, "cka_0"),
        ("heatmaps", {"view": "sentences", "l": "4", "clu": "1"}, "sentences_0"),
        ("attention", {"view": "matrix", "l": "1", "h": "3", "len": "9"}, "head_matrix"),
        ("attention", {"view": "matrix", "agg": "mean", "bs": ["1", "2"], "word": "1", "sp": "hidden"}, "head_matrix"),
        ("attention", {"view": "matrix", "agg": "max", "hs": "4", "sp": "renormalised"}, "head_matrix"),
        ("attention", {"view": "matrix", "sb": "2", "f": "ab", "word": "1", "sp": "renormalised"}, "head_matrix"),
        ("attention", {"view": "flow", "ff": "all", "fb": "2"}, "flow_matrix"),
        ("attention", {"view": "mask", "mp": "2", "l": "3", "h": "2", "mw": "1"}, "mask_change"),
    ],
)
def test_matrices(open_page: Open, elsewhere: Elsewhere, page: str, address: dict[str, Any], key: str) -> None:
    app = open_page(page, s=SENTENCES, **address)
    shown, found = z(app, key), found_by(elsewhere, app, key)
    kept = ~np.isnan(shown)
    assert kept.sum() >= 6
    assert found.shape == shown.shape
    same(found[kept], shown[kept], EQUAL)


def test_the_layers_of_two_models(open_page: Open, elsewhere: Elsewhere, tiny_folder: Callable[[str], Path]) -> None:
    app = open_page("heatmaps", s=NINE * 5, m2=str(tiny_folder("modernbert")), v="layer-pairs")
    same(found_by(elsewhere, app, "cka_1"), z(app, "cka_1"), EQUAL)


@pytest.mark.rare
def test_the_layers_of_many_tokens(elsewhere: Elsewhere, embedded: Any) -> None:
    texts = [
        f"{word} " * 120 for word in ("bank", "river", "money", "dog", "the park", "runs", "a", "fell", "again")
    ] * 2
    trace = embedded.trace(texts)
    kept = trace.hidden_states[:, ~trace.special_mask]
    assert kept.shape[1] > MOST_TOKENS
    found = short(elsewhere, layers_alike(Input(embedded, texts), kept.shape))
    same(found, layer_cka(kept).matrix, EQUAL)


@pytest.mark.parametrize(
    ("page", "address", "key", "traces"),
    [
        ("heatmaps", {"sp": "0", "sa": "0", "sb": "2"}, "diagonal", slice(-1)),  # the last trace is the mean
        ("attention", {"view": "mask", "mp": "3"}, "mask_vectors", slice(None)),
        ("model", {"view": "vectors", "l": "2", "n": "1"}, "vector", slice(None)),
    ],
)
def test_bars(
    open_page: Open, elsewhere: Elsewhere, page: str, address: dict[str, Any], key: str, traces: slice
) -> None:
    """A figure may divide its values among traces in any order, so that all of them are compared by size."""
    app = open_page(page, s=SENTENCES, **address)
    shown = np.concatenate(y(app, key)[traces])
    found = found_by(elsewhere, app, key).ravel()
    same(np.sort(found), np.sort(shown[~np.isnan(shown)]), EQUAL * max(1, np.abs(found).max()))


def test_the_sum_of_rows_and_the_open_head(open_page: Open, elsewhere: Elsewhere) -> None:
    app = open_page("attention", s=SENTENCES, view="matrix", qt=["1", "3"], l="1", h="3")
    code = codes(app)["received"].code
    assert isinstance(code, Code)
    same(elsewhere.run(code.text, names=("received",))["received"], np.concatenate(y(app, "received")), EQUAL)
    app = open_page("attention", s=SENTENCES, view="head", l="2", h="3", sb="2", f="ab")
    app.session_state["data_head_view"] = True
    app.run()
    (shown,) = (table.value for table in app.dataframe if "query" in table.value)
    same(found_by(elsewhere, app, "head_view"), shown.drop(columns="query").to_numpy(), EQUAL)


@pytest.mark.parametrize("address", [{"b1": "2"}, {"sp": "0", "sa": "0", "sb": "2", "b2": "1"}])
def test_two_blocks_before_and_after(open_page: Open, elsewhere: Elsewhere, address: dict[str, str]) -> None:
    app = open_page("heatmaps", s=SENTENCES, **address)
    traces = figure(app, "block_change")["data"]
    for matrix, axis in zip(found_by(elsewhere, app, "block_change"), ("x", "x2"), strict=True):
        others, own = [item for item in traces if item.get("xaxis") == axis][:2]
        same(np.diagonal(matrix), own["z"], EQUAL)
        of_others = ~np.eye(len(matrix), dtype=bool)
        same(matrix[of_others], numbers(others["z"])[of_others], EQUAL)


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ({"by": "pca"}, "map_0"),
        ({"by": "tsne", "l": "3", "seed": "7", "sp": "0"}, "map_1"),
        pytest.param({"by": "umap", "nn": "4", "md": "20"}, "map_1", marks=pytest.mark.rare),  # it compiles UMAP
        ({"by": "pca", "j": "1"}, "map_both"),
        ({"rd": "together", "sb": "2", "by": "pca"}, "map_1"),
    ],
)
def test_maps(open_page: Open, elsewhere: Elsewhere, address: dict[str, str], key: str) -> None:
    app = at_rest(open_page("map", s=SENTENCES, **address))
    found = found_by(elsewhere, app, key)
    same_points(found.reshape(-1, 2), points(app, key), 2e-4)


def test_the_tensors_of_a_pair(open_page: Open, elsewhere: Elsewhere) -> None:
    app = open_page("tokens", s=SENTENCES, v="input-tensors", rd="together", sb="3")
    code = codes(app)["tensors"].code
    assert isinstance(code, Code)
    shown = elsewhere.run(code.text)["values"]
    assert sum(shown["token_type_ids"][0]) == 5  # “Prices fell again.” and its [SEP]
    assert len(shown["input_ids"][0]) == 14


@pytest.mark.parametrize("address", [{}, {"sim": "dot"}, {"sim": "euclidean"}, {"l": "5", "pool": "max", "sim": "dot"}])
def test_hits(
    open_page: Open, elsewhere: Elsewhere, corpus: str, address: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Embedder, "resolve", lambda *_: "float32")  # on every chip
    app = at_rest(open_page("search", corpus=corpus, q="a dog saved a child", k="4", **address))
    (shown,) = [item for item in app.get("bidi_component") if item.proto.component_name == "bert_internals_hits"]
    found = found_by(elsewhere, app, "hits_0")
    scores = [
        float(row["score"].replace("−", "-")) for row in json.loads(shown.proto.json)["rows"]
    ]  # with three decimals
    same(found, scores, 6e-4 + 1e-5 * np.abs(found).max())


def test_the_tokens_of_a_hit(open_page: Open, elsewhere: Elsewhere, corpus: str) -> None:
    app = at_rest(open_page("search", corpus=corpus, q="a dog saved a child", why="3", l="4", wb="maxsim"))
    same(found_by(elsewhere, app, "why_matrix"), z(app, "why_matrix"), EQUAL)


def test_what_a_word_looks_at(open_page: Open, elsewhere: Elsewhere, embedded: Any) -> None:
    app = at_rest(open_page("attention", s=SENTENCES, v="one-word-attention", n="1", t=["2", "3", "1"]))
    (code,) = (item.code for item in codes(app).values())
    assert isinstance(code, Code)
    found = elsewhere.values(code)
    attentions = embedded.trace([SENTENCES[1]], attentions=True).attentions[:, 0]
    same(found, attentions[:, :, 3], EQUAL)
    words = elsewhere.values(one_word(Input(embedded, [SENTENCES[1]]), [2, 3]))  # who looks at a word of two pieces
    same(words, attentions[..., 2] + attentions[..., 3], EQUAL)


def test_kinds_and_patterns_of_heads(open_page: Open, elsewhere: Elsewhere, embedded: Any) -> None:
    text = "The bank, a river bank, was unputdownable."
    trace = embedded.trace([text], attentions=True)
    attentions, sentence = trace.attentions[:, 0], trace.sentences[0]
    found = found_by(elsewhere, open_page("attention", s=[text], v="all-heads"), "glance_kinds")
    of_heads = head_kinds(attentions, sentence)
    assert of_heads is not None
    same(found, of_heads.shares, EQUAL)
    app = open_page("attention", s=[text], v="head-patterns")
    found = found_by(elsewhere, app, "patterns")
    scored = score_heads([attentions], [sentence])
    names = ("previous", "next", "itself", "first", "separators", "punctuation", "rarest", "same_word")
    same(found, np.stack([scored.scores[name] for name in names], axis=-1), EQUAL)
    code = codes(app)["patterns"].code
    assert isinstance(code, Code)
    same(elsewhere.run(code.text, names=("broad",))["broad"], scored.scores["broad"], EQUAL)


def test_heads_of_blocks_with_windows(elsewhere: Elsewhere, tiny_folder: Callable[[str], Path]) -> None:
    """A token can spread its attention no further than it sees."""
    backend = Backend.load(str(tiny_folder("modernbert")), device_name="cpu")
    trace, windows = backend.trace([TEXT], attentions=True), backend.structure.windows
    found = head_kinds(trace.attentions[:, 0], trace.sentences[0], windows)
    assert found is not None
    same(elsewhere.run(kinds(Input(backend, [TEXT])).text, names=("evenness",))["evenness"], found.evenness, EQUAL)
    code = patterns(Input(backend, [TEXT]), trace.sentences[0])
    scored = score_heads([trace.attentions[:, 0]], trace.sentences[:1], windows=windows)
    same(elsewhere.run(code.text, names=("broad",))["broad"], scored.scores["broad"], EQUAL)


@pytest.mark.parametrize("family", ["", "modernbert", "albert"])
def test_parameters(open_page: Open, elsewhere: Elsewhere, tiny_folder: Callable[[str], Path], family: str) -> None:
    address = {"m": str(tiny_folder(family))} if family else {}
    app = open_page("model", s=[TEXT], v="model-facts", **address)
    found = found_by(elsewhere, app, "parameters")
    drawn = [trace for trace in figure(app, "parameters")["data"] if "again" not in trace.get("name", "")]
    same(np.sort(found), np.sort(np.concatenate([numbers(trace["x"]) for trace in drawn])), 0)


def test_candidates_by_max_sim(elsewhere: Elsewhere, embedded: Any) -> None:
    query, texts = "a dog saved a child", SENTENCES
    found = short(elsewhere, max_sim_scores(embedded, query, texts, 4, None))
    same(found, late_interaction_scores(embedded, query, texts, 4), EQUAL)


def test_precision_of_judged_queries(elsewhere: Elsewhere) -> None:
    marks, hits = (
        {'a "b"': {3: True, 1: False, 8: True}, "c": {2: True}},
        [('a "b"', "left", [1, 8, 5, 3]), ("c", "left", [4])],
    )
    found = short(elsewhere, judged_precision(marks, hits, (2, 4)))
    same(found, [[Judgements(marks).precision(query, rows, k).value for k in (2, 4)] for query, _, rows in hits], 0)


def test_senses_apart(open_page: Open, elsewhere: Elsewhere) -> None:
    """Vectors are kept in float16 on the page."""
    app = at_rest(open_page("map", v="word-senses", by="pca"))
    same_sense, silhouette = found_by(elsewhere, app, "senses_curve")
    same(same_sense, y(app, "senses_curve")[0], EQUAL)
    app.session_state["data_senses_curve"] = True  # Share, whose table has the silhouette
    same(silhouette, frame(at_rest(app.run()), "silhouette")["silhouette"].to_numpy(), 1e-3)
    same_points(found_by(elsewhere, app, "senses_map")[0], points(app, "senses_map"), 2e-3)


def test_the_pieces_of_two_models(elsewhere: Elsewhere, embedded: Any, tiny_folder: Callable[[str], Path]) -> None:
    other = Backend.load(str(tiny_folder("roberta")), device_name="cpu")
    reads = {"first": Input(embedded, ["a", "An unputdownable bank"], 5), "second": Input(other, ["a", "unread"])}
    found = elsewhere.run(pieces(reads, 1).text)["values"]
    text = reads["first"].texts[1]
    expected = [embedded.tokenize([text], max_length=5)[0], other.tokenize([text])[0]]
    assert found == dict(zip(reads, [[token.piece for token in each.tokens] for each in expected], strict=True))
    assert len(found["first"]) == 5
    assert len(found["second"]) > 5


def test_a_page_as_a_notebook_runs_from_its_first_cell_to_its_last(open_page: Open, elsewhere: Elsewhere) -> None:
    """The figures of three views; a command is no code."""
    shown = [
        item
        for page, address in (("heatmaps", {}), ("layers", {}), ("model", {"view": "vectors"}))
        for item in codes(open_page(page, s=SENTENCES, **address)).values()
    ]
    content = notebook("A <b>page</b>", {"a | b": "c\nd"}, shown)
    assert content == notebook("A <b>page</b>", {"a | b": "c\nd"}, shown)
    page = nbformat.reads(content.decode(), as_version=4)
    nbformat.validate(page)
    cells = [cell["source"] for cell in page["cells"] if cell["cell_type"] == "code"]
    assert sum("from_pretrained" in cell for cell in cells) == 2  # once for each input
    elsewhere.run(*cells)
    said = page["cells"][0]["source"]
    assert "<b>" not in said
    assert "| a \\| b | c d |" in said


def test_a_command_has_a_cell_that_runs_it_and_its_lack_a_reason(
    elsewhere: Elsewhere, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("why", "--json", "-", "--", 'it\'s "--out"', "-b")
    shown = [
        TitledCode("A", Command(mean_of, asked)),
        TitledCode("B", Command(mean_of, asked)),
        TitledCode("D", Command(mean_of, ("train", "--json", "-", "--", "demo:nli"))),
        TitledCode(
            "E", Command(mean_of, ("index", "--out", "a", "--", "b.csv"), ("search", "--", "a", "b"), prints="2 of 3")
        ),
        TitledCode("F", Command(mean_of, ("evaluate", "--record", "a.json", "--", "b.csv"), file="a.json")),
        TitledCode("C", Command(mean_of)),
    ]
    page = nbformat.reads(notebook("A page", {}, shown).decode(), as_version=4)
    (cell,) = (cell["source"] for cell in page["cells"] if cell["cell_type"] == "code")
    of_last = page["cells"][-1]["source"]
    assert of_last.startswith(WITHOUT_CELL)
    assert [WITHOUT_CELL in each["source"] for each in page["cells"]].count(True) == 1
    only_shown = [each["source"] for each in page["cells"] if each["source"].startswith(WITH_EFFECTS)]
    assert [text.splitlines()[3] for text in only_shown] == [
        "# In the folder of BERT Internals this prints the numbers:",
        "# In the folder of BERT Internals this prints 2 of 3:",
        "# In the folder of BERT Internals this writes the numbers into a.json:",
    ]
    assert "No module named components" in elsewhere.run(cell, names=())["printed"]  # and the next cell runs
    monkeypatch.chdir(ROOT)
    exec(cell, {})
    assert json.loads(capsys.readouterr().out)["tokens_b"] == ["[CLS]", "-", "b", "[SEP]"]


@pytest.mark.parametrize(("outputs", "label"), [(1, None), (3, 2)])
def test_the_scores_of_a_cross_encoder(elsewhere: Elsewhere, tmp_path: Path, outputs: int, label: int | None) -> None:
    backend = Backend.load(str(save_cross_encoder(tmp_path, "bert", outputs)), device_name="cpu")
    texts = ["the dog sat", "a bank by the river", "x"]
    found = elsewhere.values(reranked(backend, "the cat", texts, label, 16))
    same(found, backend.score_pairs(["the cat"] * len(texts), texts, label=label, max_length=16), EQUAL)
    included = reranked(Backend.load("embedded-cross-encoder", device_name="cpu"), "a", ["b"], None, None)
    assert isinstance(included, Command)  # an adapter of this project, which no library loads
