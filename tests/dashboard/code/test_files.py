"""The code of figures whose numbers come from many texts or a training: it reads the figure's table, or the run's folder."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from components.analysis.similarity import calibration
from components.model.store import TraceStore
from components.shown_code.arrays import file_of
from components.shown_code.cosines import layers_changed
from components.training import runs
from components.training.before_after import layer_change
from dashboard import caching
from dashboard.ui import figures
from dashboard.views.attention import long_texts
from tests.dashboard.code.shown import (
    EQUAL,
    SENTENCES,
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
from tests.support.pages import Open, at_rest, texts
from tests.support.saved_models import save_cross_encoder, save_sparse
from tests.support.tiny import save_tiny
from tests.support.training_runs import write_run

DIGITS = 1e-4  # cosines with four digits
FEW_OF_MANY = 1e-3  # of shares: cosines that are equal to some 1e-7 change places
SAVED: dict[str, pd.DataFrame] = {}  # the tables of figures, by their keys


def table_of(app: AppTest, key: str) -> pd.DataFrame:
    """The table of a figure whose Share is open."""
    assert app.session_state[f"data_{key}"]
    return SAVED[key]


Save = Callable[[AppTest, str], AppTest]


@pytest.fixture
def save(elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch) -> Save:
    """Opens Share of a figure: its CSV lies where the code looks for it."""

    def download(frame: pd.DataFrame, key: str) -> None:
        SAVED[key] = frame
        (elsewhere.work / file_of(key)).write_bytes(figures._csv(frame))

    monkeypatch.setattr(figures, "download", download)

    def opened(app: AppTest, key: str) -> AppTest:
        (elsewhere.work / file_of(key)).unlink(missing_ok=True)
        app.session_state[f"data_{key}"] = True
        return at_rest(app.run())

    return opened


def test_a_threshold(open_page: Open, elsewhere: Elsewhere, save: Save, corpus: str) -> None:
    address = {"q": "a dog saved a child", "rel": "topic", "top": "animals", "t": "0"}
    app = save(at_rest(open_page("pairs", view="scores", corpus=corpus, **address)), "pair_histogram")
    bars = [item for item in figure(app, "pair_histogram")["data"] if item["type"] == "bar"]
    same(found_by(elsewhere, app, "pair_histogram"), [item["y"] for item in bars], 0)
    recall, precision = found_by(elsewhere, app, "pair_curve")
    (drawn,) = (item for item in figure(app, "pair_curve")["data"] if len(item["x"]) == len(recall))
    same([recall, precision], [drawn["x"], drawn["y"]], EQUAL)
    (cells,) = (item["text"] for item in figure(app, "pair_confusion")["data"])
    shown = [int(text.split("</b>")[0].removeprefix("<b>")) for text in cells]
    same(found_by(elsewhere, app, "pair_confusion").ravel(), shown, 0)


@pytest.fixture
def run_folder(
    tiny_folder: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    elsewhere: Elsewhere,
) -> str:
    """A run from one tiny model to another, whose folder lies where the code looks for it."""
    monkeypatch.setenv("BERT_INTERNALS_CACHE", str(tmp_path))
    name = f"mnrl-20261122-140233-{uuid4().hex[:4]}"
    run = write_run(
        runs.runs_folder(), name, result=save_tiny(tmp_path / "tuned", seed=1), model=str(tiny_folder("bert"))
    )
    (elsewhere.work / name).symlink_to(run.path, target_is_directory=True)
    return name


def test_what_a_training_changed(open_page: Open, elsewhere: Elsewhere, run_folder: str) -> None:
    app = at_rest(open_page("training", v="before-after", part="sentences"))
    for name in ("before", "now"):
        shown = z(app, f"after_matrix_{name}")
        kept = ~np.isnan(shown)
        same(found_by(elsewhere, app, f"after_matrix_{name}")[kept], shown[kept], EQUAL)
    app = at_rest(open_page("training", v="before-after", part="words"))
    for name in ("before", "now"):
        same(found_by(elsewhere, app, f"after_curves_{name}"), y(app, f"after_curves_{name}"), EQUAL)
        same_points(found_by(elsewhere, app, f"after_map_{name}"), points(app, f"after_map_{name}"), EQUAL)
    app = at_rest(open_page("training", v="before-after", part="heads"))
    same(found_by(elsewhere, app, "after_heads"), z(app, "after_heads"), 100 * EQUAL)


def test_lengths_and_near_duplicates_of_a_corpus(
    open_page: Open, elsewhere: Elsewhere, save: Save, corpus: str
) -> None:
    app = save(at_rest(open_page("search", v="corpus", corpus=corpus)), "corpus_lengths")
    (bars,) = figure(app, "corpus_lengths")["data"]
    (lengths,) = found_by(elsewhere, app, "corpus_lengths")
    same([np.sum(lengths), len(lengths)], [sum(table_of(app, "corpus_lengths")["tokens"]), np.sum(bars["y"])], 0)
    for address in ({}, {"l": "3", "pool": "max"}):
        app = at_rest(open_page("search", v="similar-pairs", corpus=corpus, comp="corpus", **address))
        app = save(save(app, "pairs"), "nearest")
        same(
            found_by(elsewhere, app, "pairs"),
            table_of(app, "pairs")["cosine"].str.replace("−", "-").astype(float),
            DIGITS,
        )
        found, shown = found_by(elsewhere, app, "nearest"), table_of(app, "nearest")["cosine with the nearest"]
        same(found, shown, EQUAL)


def test_kinds_of_differences(open_page: Open, elsewhere: Elsewhere, save: Save) -> None:
    app = save(at_rest(open_page("why", v="known-failures", s=SENTENCES)), "clinic_cosines")
    found = found_by(elsewhere, app, "clinic_cosines")
    same(found, table_of(app, "clinic_cosines")["cosine"], EQUAL)
    app = at_rest(open_page("why", v="known-failures", s=SENTENCES, cf="layers"))
    code = found_by(elsewhere, app, "clinic_layers")
    curves = [numbers(item["y"]) for item in figure(app, "clinic_layers")["data"] if len(item["y"]) == code.shape[1]]
    for shares in code:
        assert min(np.abs(shares - curve).max() for curve in curves) < 100 * FEW_OF_MANY


def test_kinds_of_differences_before_and_after_training(
    open_page: Open, elsewhere: Elsewhere, save: Save, run_folder: str
) -> None:
    save(at_rest(open_page("why", v="known-failures", s=SENTENCES)), "clinic_cosines")
    app = at_rest(open_page("training", v="before-after", part="failures"))
    drawn = [numbers(item["x"]) for item in figure(app, "after_failures")["data"] if item.get("orientation") == "h"]
    found = found_by(elsewhere, app, "after_failures").T
    for shares in found:
        assert min(np.abs(shares - bars).max() for bars in drawn) < 100 * FEW_OF_MANY


def test_the_cosine_without_each_word(open_page: Open, elsewhere: Elsewhere) -> None:
    app = at_rest(open_page("why", v="important-words", s=SENTENCES, sb="2", l="4", pool="max"))
    drawn = np.concatenate([numbers(item["y"]) for item in figure(app, "words_left_out")["data"] if "y" in item])
    found = found_by(elsewhere, app, "words_left_out")
    assert len(found) == 6 + 4
    assert all(np.abs(drawn[~np.isnan(drawn)] - fall).min() < EQUAL for fall in found)


@pytest.mark.parametrize("count", [8, 3_000])
def test_the_layers_that_a_training_changed(elsewhere: Elsewhere, tmp_path: Path, count: int) -> None:
    random = np.random.default_rng(0)
    before = random.normal(size=(3, count, 40)).astype(np.float32)
    after = (before + random.normal(size=before.shape)).astype(np.float32)
    folder = elsewhere.work / tmp_path.name / "watch"
    folder.mkdir(parents=True)
    for step, tokens in ((0, before), (5, after)):
        np.savez(folder / f"{step}.npz", sentences=tokens[:, :2], tokens=tokens)
    expected = layer_change(before, after)
    found = short(elsewhere, layers_changed(tmp_path.name, [0, 5], before.shape))
    same(found, [1 - expected.cka, 1 - expected.cosine], EQUAL)


def test_shares_and_correlations(open_page: Open, elsewhere: Elsewhere, save: Save, corpus: str) -> None:
    app = save(at_rest(open_page("why", s=SENTENCES, sb="3")), "context")
    (share,) = found_by(elsewhere, app, "context")
    assert 0 < share < 1
    assert f"than that of **{calibration.rounded(share)}** of" in texts(app)
    app = save(at_rest(open_page("evaluate", v="evaluated-data", corpus=corpus)), "evaluated_pairs")
    assert sum(found_by(elsewhere, app, "evaluated_pairs")) == 7
    (drawn,) = (item.proto.body for item in app.get("html") if "bi-kinds" in item.proto.body)
    shown = [int(number) for number in re.findall(r"<b>([\d,]+)</b>", drawn)]
    same(found_by(elsewhere, app, "evaluated_pairs"), shown, 0)
    app = save(at_rest(open_page("evaluate", v="sentence-similarity", run="bm25")), "sts_scatter")
    spearman, pearson = found_by(elsewhere, app, "sts_scatter")
    assert f"Spearman {spearman:.3f}, Pearson {pearson:.3f}" in texts(app)


def test_the_lengths_of_training_data(open_page: Open, elsewhere: Elsewhere, save: Save) -> None:
    for address in ({}, {"src": "demo:scored", "obj": "regression"}):
        app = save(at_rest(open_page("training", v="training-data", **address)), "training_lengths")
        found = found_by(elsewhere, app, "training_lengths")
        shown = table_of(app, "training_lengths").select_dtypes("number").to_numpy().T
        same(found, shown, 0)


def test_the_drops_of_a_cross_encoder(open_page: Open, elsewhere: Elsewhere, corpus: str, tmp_path: Path) -> None:
    folder = save_cross_encoder(tmp_path, "bert")
    app = at_rest(open_page("pairs", v="disagreement", corpus=corpus, nq="5", k="5", ce=str(folder)))
    drawn = np.concatenate([numbers(item["x"]) for item in figure(app, "disagreement_drops")["data"]])
    same(np.sort(found_by(elsewhere, app, "disagreement_drops")), np.sort(drawn), EQUAL)


def test_the_pieces_of_splade(open_page: Open, elsewhere: Elsewhere, corpus: str, tmp_path: Path) -> None:
    folder = save_sparse(tmp_path / "splade")
    app = at_rest(
        open_page("search", corpus=corpus, q="the dog in a hat", why="3", vs="splade", m=str(folder), wb="second")
    )
    for key in ("query_pieces", "hit_pieces", "splade_contributions"):
        drawn = np.concatenate([numbers(item["x"]) for item in figure(app, key)["data"]])
        same(np.sort(found_by(elsewhere, app, key)), np.sort(drawn), EQUAL)


def test_a_head_of_a_long_text(
    open_page: Open, elsewhere: Elsewhere, tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A text that no other test has: what was computed of it, in cells of another size, may still be kept.
    folder, text = str(tiny_folder("modernbert")), "The dog sat on the bank, we took money out."
    open_page("attention", m=folder, s=[text], v="all-heads")
    backend = caching.models().find(folder)
    monkeypatch.setattr(backend, "store", TraceStore(1_000))
    monkeypatch.setattr(long_texts, "CELLS", 8)
    for cells in ("max", "mean"):
        app = at_rest(open_page("attention", m=folder, s=[text], v="all-heads", b="1", h="2", sq="4", cell=cells))
        same(found_by(elsewhere, app, "long_attention"), z(app, "long_attention"), EQUAL)
    same(found_by(elsewhere, app, "long_row"), np.concatenate(y(app, "long_row")), EQUAL)
