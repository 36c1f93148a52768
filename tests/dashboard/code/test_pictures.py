"""The pictures of what only some families have: score parts, rotation, windows, gates, shared blocks, long texts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special

from components.model.backend import Backend
from components.model.one_block import feed_forward
from components.model.one_block.feed_forward import FeedForward
from components.model.store import TraceStore
from dashboard import caching
from dashboard.ui import figures
from dashboard.views.model import inner_dimensions
from tests.dashboard.code.shown import codes, figure, same, y, z
from tests.support.closeness import assert_close
from tests.support.elsewhere import Elsewhere
from tests.support.pages import Open, at_rest, texts

TEXT = "The cat sat on the bank, we put money in."
Folder = Callable[[str], Path]


@pytest.mark.parametrize(("family", "parts"), [("bert", 1), ("mpnet", 2), ("deberta-v2", 3), ("modernbert", 1)])
def test_one_querys_scores_become_its_attention(open_page: Open, tiny_folder: Folder, family: str, parts: int) -> None:
    folder = str(tiny_folder(family))
    app = open_page("attention", m=folder, s=[TEXT], v="attention-scores", b="1", h="2", sq="4")
    assert [item.value for item in app.error] == []
    *stacked, attention = y(app, "score_bars")
    expected = Backend.load(folder, device_name="cpu").trace([TEXT], attentions=True).attentions[1, 0, 2, 4]
    drawn = expected[expected > 0] if family == "modernbert" else expected  # a window of two tokens
    assert len(drawn) == (5 if family == "modernbert" else len(expected))
    assert_close(attention, drawn)
    scores = np.sum(stacked[:parts], axis=0)
    np.testing.assert_allclose(np.exp(scores) / np.exp(scores).sum(), drawn, atol=1e-5)
    if parts > 1:
        np.testing.assert_allclose(stacked[parts], scores, atol=1e-5)  # the diamonds
        assert len([key for key in codes(app) if key.startswith("score_part_")]) == parts + 1
    assert ("rotation_angles" in codes(app)) == (family == "modernbert")


def test_the_parts_are_matrices_that_sum(open_page: Open, tiny_folder: Folder) -> None:
    app = open_page("attention", m=str(tiny_folder("deberta-v2")), s=[TEXT], v="attention-scores", b="0", h="1")
    names = ("content_to_content", "content_to_position", "position_to_content")
    matrices = [z(app, f"score_part_{name}") for name in names]
    np.testing.assert_allclose(z(app, "score_part_sum"), sum(matrices), atol=1e-5)
    backend = Backend.load(str(tiny_folder("deberta-v2")), device_name="cpu")
    own = backend.loaded.eager().encoder.layer[0].attention.self
    found: dict[str, list[np.ndarray]] = {"query": [], "key": []}  # of the tokens, then of distances
    hooks = [
        getattr(own, f"{name}_proj").register_forward_hook(lambda *given, of=of: of.append(given[2][0].numpy()))
        for name, of in found.items()
    ]
    trace = backend.trace([TEXT], attentions=True)
    for hook in hooks:
        hook.remove()
    attention = trace.attentions[0, 0, 1]
    np.testing.assert_allclose(special.softmax(z(app, "score_part_sum"), axis=-1), attention, atol=1e-5)
    size = own.attention_head_size
    queries, keys = (of[0][:, size : 2 * size] for of in found.values())
    np.testing.assert_allclose(matrices[0], queries @ keys.T / np.sqrt(3 * size), atol=1e-5)
    # A word that stands twice has one query and one key below the first block: what a query gets for a distance, and what a
    # key gets for it, is the same at both places; the other part is not.
    pieces = [token.piece for token in trace.sentences[0].tokens]
    first, second = next(
        (at, pieces.index(piece, at + 1)) for at, piece in enumerate(pieces) if piece in pieces[at + 1 :]
    )
    last = len(pieces) - 1
    shared = [step for step in range(-first, last - second + 1) if step]  # places that both can look at
    for of_query, is_same in ((matrices[1], True), (matrices[2], False)):
        rows = [[of_query[at, at + step] for step in shared] for at in (first, second)]
        columns = [[of_query[at + step, at] for step in shared] for at in (first, second)]
        assert np.allclose(*rows, atol=1e-6) == is_same
        assert np.allclose(*columns, atol=1e-6) != is_same


def products_before_rotation(backend: Backend, block: int) -> tuple[np.ndarray, np.ndarray]:
    """Queries and keys of a block of ModernBERT as its projection gives them, [head, token, dimension] each."""
    found = []
    layer = backend.loaded.encoder.layers[block].attn
    hook = layer.Wqkv.register_forward_hook(lambda *given: found.append(given[2][0].numpy()))
    backend.trace([TEXT])
    hook.remove()
    queries, keys, _ = np.moveaxis(found[0].reshape(len(found[0]), 3, -1, layer.head_dim), (1, 2), (0, 1))
    return queries, keys


def test_rotation_by_position_and_by_distance(open_page: Open, tiny_folder: Folder, elsewhere: Elsewhere) -> None:
    app = open_page(
        "attention", m=str(tiny_folder("modernbert")), s=[TEXT], v="attention-scores", b="1", h="2", sq="4", sk="2"
    )
    angles = z(app, "rotation_angles")
    assert angles.shape == (64, 4)
    backend = Backend.load(str(tiny_folder("modernbert")), device_name="cpu")
    config = backend.loaded.encoder.config
    base = config.rope_parameters["sliding_attention"]["rope_theta"]  # of block 1, which is local
    speeds = base ** (-np.arange(4) / 4)  # the first pair turns by 1 a token
    np.testing.assert_allclose(angles, np.cos(np.arange(64)[:, None] * speeds), atol=1e-5)
    same(elsewhere.values(codes(app)["rotation_angles"].code), angles, 1e-5)
    curve, own = y(app, "rotation_distance")
    both = products_before_rotation(backend, 1)
    query, key = (vectors[2, at, :4] + 1j * vectors[2, at, 4:] for vectors, at in zip(both, (4, 2), strict=True))
    distances = np.asarray(figure(app, "rotation_distance")["data"][0]["x"])  # key minus query
    same(elsewhere.values(codes(app)["rotation_distance"].code), curve, 1e-4)
    turned = np.exp(-1j * distances[:, None] * speeds)
    np.testing.assert_allclose(curve, (query * key.conj() * turned).real.sum(axis=1) / np.sqrt(8), atol=1e-5)
    place = list(figure(app, "rotation_distance")["data"][0]["x"]).index(-2)
    assert_close(own[0], curve[place])
    bars = dict(zip(figure(app, "score_bars")["data"][0]["x"], y(app, "score_bars")[0], strict=True))
    assert own[0] == pytest.approx(next(value for key, value in bars.items() if key.startswith("2 ")), abs=1e-5)
    assert "In block 1 (local)" in texts(app)


def test_a_window_is_drawn_and_said(open_page: Open, tiny_folder: Folder) -> None:
    folder = str(tiny_folder("modernbert"))
    local = open_page("attention", m=folder, s=[TEXT], v="attention-matrix", b="1", h="0")
    assert [shape["type"] for shape in figure(local, "head_matrix")["layout"]["shapes"]] == ["path", "path"]
    assert "Block 1 is local: each token sees 2 tokens on either side. Global blocks: 0, 2." in texts(local)
    everywhere = open_page("attention", m=folder, s=[TEXT], v="attention-matrix", b="0", h="0")
    assert not figure(everywhere, "head_matrix")["layout"].get("shapes")
    assert "Block 0 is global" in texts(everywhere)
    short = open_page("attention", m=folder, s=["a"], v="attention-matrix", b="1", h="0")
    assert "This text has only 3 tokens, so that the window hides nothing here." in texts(short)
    assert "is local" not in texts(open_page("attention", m=str(tiny_folder("bert")), s=[TEXT], v="attention-matrix"))


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_inner_dimensions(open_page: Open, tiny_folder: Folder, family: str) -> None:
    folder = str(tiny_folder(family))
    app = open_page("model", m=folder, s=[TEXT], v="feed-forward", fb="1", t="2")
    record = Backend.load(folder, device_name="cpu").feed_forward(TEXT)
    assert sum(y(app, "inner_distribution")[0]) == 64
    products = record.products(1)[2]
    np.testing.assert_allclose(
        y(app, "inner_strongest")[0], products[np.argsort(-np.abs(products), kind="stable")[:24]], rtol=1e-5
    )
    shares = 100 * record.closed_shares
    same(y(app, "inner_closed"), [shares[:, 2], shares.mean(axis=1)], 1e-4)
    assert ("gates are open; the other" in texts(app)) == (family == "modernbert")
    taking_part = 100 * (1 - record.closed_shares[1, 2])
    assert f"**{taking_part:.0f} %** of the 64 " in texts(app)
    assert ("feed-forward part is gated" in texts(app)) == (family == "modernbert")


def test_the_highest_bar_is_explained_only_where_gelu_brings_it_below_0() -> None:
    spread = np.linspace(-0.1, 1.7, 50)
    assert "The highest bar is below 0" in inner_dimensions._lowest_in_words(np.append(spread, np.full(100, -0.17)))
    assert inner_dimensions._lowest_in_words(spread) == ""
    wide = np.concatenate([[-0.17, 8.0], np.full(100, 0.001)])  # one bar from below 0 to above it
    assert inner_dimensions._lowest_in_words(wide) == ""
    assert inner_dimensions._lowest_in_words(np.append(spread, np.full(100, -1.0))) == ""  # another function


def test_tables_of_inner_dimensions_keep_no_more_than_they_show(
    open_page: Open, tiny_folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report keeps the tables in the session, and with them what they read."""
    kept: list[Any] = []
    draw = figures.figure

    def figure_of(*arguments: Any, table: Callable[[], pd.DataFrame], **options: Any) -> None:
        kept.extend(cell.cell_contents for cell in table.__closure__ or ())
        draw(*arguments, table=table, **options)

    monkeypatch.setattr(figures, "figure", figure_of)
    open_page("model", m=str(tiny_folder("modernbert")), s=[TEXT], v="feed-forward", fb="1", t="2")
    arrays = [item for item in kept if isinstance(item, np.ndarray)]
    assert len(arrays) == 6  # a token's gates and values, three numbers of the strongest, shares by block
    assert all(array.base is None and array.size <= 64 for array in arrays)
    assert not any(isinstance(item, FeedForward) for item in kept)


def test_inner_dimensions_of_a_long_text_are_a_job_that_can_be_stopped(
    open_page: Open, tiny_folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tiny_folder("modernbert"))
    whole = y(open_page("model", m=folder, s=[TEXT], v="feed-forward", fb="1", t="2"), "inner_strongest")
    assert not any(job.key[0] == "feed forward" for job in caching.long_texts().finished())
    monkeypatch.setattr(feed_forward, "MOST_BYTES", 0)  # every text is a long one
    monkeypatch.setattr(caching, "person", lambda: "Ann")
    begun, go_on, read = threading.Event(), threading.Event(), feed_forward.feed_forward

    def held(*given: Any) -> FeedForward:
        begun.set()
        assert go_on.wait(20)
        return read(*given)

    monkeypatch.setattr(feed_forward, "feed_forward", held)
    app = open_page("model", m=folder, s=[TEXT], v="feed-forward", fb="1", t="2")
    assert begun.is_set()
    assert not app.get("plotly_chart")
    assert app.button(key="stop_inner_dimensions").label == "Stop"
    app.button(key="stop_inner_dimensions").click().run()
    go_on.set()
    app = at_rest(app)
    assert "Stopped: Reading" in texts(app)
    app = at_rest(app.button(key="again_inner_dimensions").click().run())
    for ours, expected in zip(y(app, "inner_strongest"), whole, strict=True):
        assert_close(ours, expected)


def test_shared_blocks_are_seen_as_one(open_page: Open, tiny_folder: Folder) -> None:
    app = open_page("model", m=str(tiny_folder("albert")), s=[TEXT], v="model-facts")
    assert "**2 blocks do the work of 3**: blocks 0 to 1 are one, used 2 times" in texts(app)
    again = figure(app, "parameters")["data"][-1]
    assert (again["name"], list(again["y"])) == ("the same again (not stored)", ["Blocks 0 to 1"])
    assert "do the work" not in texts(open_page("model", m=str(tiny_folder("bert")), s=[TEXT], v="model-facts"))


@pytest.mark.parametrize(
    ("family", "said"),
    [
        ("modernbert", "positions enter by rotation in each block. It has none for token types (segments) either"),
        ("distilbert", "DistilBERT has no vectors for token types (segments): the two texts of a pair"),
        ("bert", ""),
    ],
)
def test_layer_zero_says_what_is_missing_and_why(open_page: Open, tiny_folder: Folder, family: str, said: str) -> None:
    for page, view in (("model", "zero"), ("tokens", "tensors")):
        shown = texts(open_page(page, m=str(tiny_folder(family)), s=[TEXT], view=view))
        assert said in shown
        assert ("token types (segments)" in shown) == bool(said)


def test_layer_zero_behind_a_projection(open_page: Open, tiny_folder: Folder) -> None:
    for family in ("albert", "electra"):
        said = texts(open_page("model", m=str(tiny_folder(family)), s=[TEXT], v="layer-zero"))
        assert "LayerNorm then scales each sum, and a projection brings it to the hidden size" in said


def test_a_text_that_is_too_long_for_all_heads_shows_one(
    open_page: Open, tiny_folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a store in which the attentions of this text do not fit; the limit is said, and no trace is computed."""
    folder = str(tiny_folder("modernbert"))
    open_page("attention", m=folder, s=[TEXT], v="all-heads")
    backend = caching.models().find(folder)
    assert backend is not None
    expected = backend.trace([TEXT], attentions=True).attentions[1, 0, 2]
    monkeypatch.setattr(backend, "store", TraceStore(1_000))
    app = at_rest(open_page("attention", m=folder, s=[TEXT], v="all-heads", b="1", h="2", sq="4"))
    assert [item.value for item in app.error] == []
    assert "tokens are too many for all heads at once" in texts(app)
    assert "this server keeps at most" in texts(app)
    np.testing.assert_allclose(z(app, "long_attention"), np.sqrt(expected), atol=1e-5)
    keys = [int(label.split()[0]) for label in figure(app, "long_row")["data"][0]["x"]]
    assert_close(y(app, "long_row")[0], expected[4, keys])
    assert len(figure(app, "long_attention")["layout"]["shapes"]) == 2
    own, why = ([job.key[0] for job in jobs.finished()] for jobs in (caching.long_texts(), caching.explanations()))
    assert {"queries and keys", "overview"} <= set(own)  # large: they must not push out what explanations keep
    assert not {"queries and keys", "overview"} & set(why)
    query = next(item for item in app.number_input if item.key == "w_long_query")
    assert query.value == 4
    app.session_state["sentences"] = ["money in the river bank"]
    other = at_rest(app.run())
    assert next(item for item in other.number_input if item.key == "w_long_query").value == 1  # as for a short text
    app = open_page("attention", m=str(tiny_folder("deberta-v2")), s=[TEXT], v="all-heads")
    assert "too many for all heads" not in texts(app)
