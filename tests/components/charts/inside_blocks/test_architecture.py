"""The model to one scale: every matrix has the area of its numbers, nothing leaves the drawing, texts are escaped."""

from __future__ import annotations

import pytest

from components.charts.inside_blocks.architecture import Model, Read, narrow, svg, wide
from components.numbers import millions


def model(hidden: int, blocks: int, inner: int, pieces: int, gated: bool = False, keys: int | None = None) -> Model:
    attention = [
        ("Q", hidden, hidden),
        ("K", hidden, keys or hidden),
        ("V", hidden, keys or hidden),
        ("O", hidden, hidden),
    ]
    forward = [(name, hidden, inner) for name in (("gate", "in", "out") if gated else ("in", "out"))]
    counts = {
        "pieces": pieces * hidden,
        "attention": blocks * sum(size * own for _, size, own in attention),
        "feed-forward": blocks * len(forward) * hidden * inner,
    }
    tables = {"pieces": (pieces, hidden)}
    return Model(hidden, tables, None, [(attention, forward, number) for number in range(blocks)], 12, counts)


MODELS = {
    "MiniLM": model(384, 6, 1536, 30_522),
    "BERT base": model(768, 12, 3072, 30_522),
    "XLM-R large": model(1024, 24, 4096, 250_002),
    "many pieces": model(384, 12, 1536, 250_037),
    "gated": model(1024, 28, 2624, 50_368, gated=True),
    "shared keys": model(768, 12, 3072, 128_256, gated=True, keys=256),
    "tiny": model(32, 3, 64, 33),
    "one block": model(128, 1, 512, 30_522),
}
READ = Read([101, 7, 7, 20], 7, "bank", 3, "mean", 4)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("draw", [wide, narrow])
def test_areas_are_to_one_scale_and_nothing_leaves_the_drawing(name: str, draw) -> None:
    drawn = draw(MODELS[name], READ)
    rects = [item for item in drawn.items if item["t"] == "rect"]
    for item in rects:
        assert item["x"] >= -0.01, item
        assert item["x"] + item["w"] <= drawn.width + 0.01, item
        assert item["y"] + item["h"] <= drawn.height + 0.01, item
    attention, forward, pieces = (
        sum(item["w"] * item["h"] for item in rects if item["p"] == part) for part in ("attention", "forward", "pieces")
    )
    counts = MODELS[name].counts
    assert forward / attention == pytest.approx(counts["feed-forward"] / counts["attention"], rel=0.02)
    assert pieces / attention == pytest.approx(counts["pieces"] / counts["attention"], rel=0.04)


def test_the_rows_that_are_read_are_marked_where_they_stand() -> None:
    drawn = wide(MODELS["MiniLM"], READ)
    (table,) = [item for item in drawn.items if item["t"] == "rect" and item["p"] == "pieces"]
    lines = [item for item in drawn.items if item["t"] == "line" and item["c"] in {"row", "picked"}]
    places = sorted((item["y"] - table["y"]) / table["h"] for item in lines)
    assert places == pytest.approx([(row + 0.5) / 30_522 for row in (7, 20, 101)], abs=1e-4)
    assert [item["c"] for item in lines].count("picked") == 1
    assert any(item.get("s") == "bank: row 7" for item in drawn.items)
    phone = narrow(MODELS["MiniLM"], READ)
    (table,) = [item for item in phone.items if item["t"] == "rect" and item["p"] == "pieces"]
    lines = [item for item in phone.items if item["t"] == "line" and item["c"] in {"row", "picked"}]
    places = sorted((item["x"] - table["x"]) / table["w"] for item in lines)
    assert places == pytest.approx([(row + 0.5) / 30_522 for row in (7, 20, 101)], abs=1e-4)


def test_shared_weights_are_outlines_after_the_first() -> None:
    own = MODELS["tiny"]
    attention, forward, _ = own.blocks[0]
    shared = Model(32, own.tables, (16, 32), [(attention, forward, weights) for weights in (0, 0, 1)], 4, own.counts)
    boxes = [item for item in wide(shared, Read()).items if item["t"] == "rect" and item["p"] == "attention"]
    assert ["again" in item["c"] for item in boxes] == [False] * 4 + [True] * 4 + [False] * 4
    assert [item["p"] for item in wide(shared, Read()).items if item["t"] == "rect"].count("projection") == 1


def test_without_a_sentence_nothing_is_read() -> None:
    for draw in (wide, narrow):
        kinds = {item["t"] for item in draw(MODELS["MiniLM"], Read()).items}
        assert "strip" not in kinds
        assert "line" not in kinds


def test_a_static_model_is_its_table() -> None:
    static = Model(256, {"pieces": (29_528, 256)}, None, [], 0, {"pieces": 29_528 * 256})
    for draw in (wide, narrow):
        drawn = draw(static, Read([3], 3, "cat", tokens=1))
        assert [item["p"] for item in drawn.items if item["t"] == "rect"] == ["pieces"]
    assert any(item.get("s") == "100 %" for item in wide(static, Read()).items)


def test_svg_escapes_what_people_typed() -> None:
    written = svg(wide(MODELS["MiniLM"], Read([7], 7, "<script>&", 0, "", 1)))
    assert "<script>" not in written
    assert "&lt;script&gt;&amp;: row 7" in written


def test_numbers_in_words() -> None:
    assert (millions(11_720_448), millions(999_999), millions(528)) == ("11.7 million", "999,999", "528")
