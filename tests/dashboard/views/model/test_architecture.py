"""Architecture: the finding, what is sent to the drawing, and what its parts say, for models of every family."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.views.model import architecture
from tests.support import static_models, tiny
from tests.support.pages import BANK, Open, backend, texts


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What was sent to the drawing, newest last."""
    found: list[bytes] = []
    packed = architecture._packed

    def kept(facts: dict[str, Any], strips: bytes) -> bytes:
        found.append(packed(facts, strips))
        return found[-1]

    monkeypatch.setattr(architecture, "_packed", kept)
    return found


def unpacked(data: bytes) -> tuple[dict[str, Any], np.ndarray]:
    (length,) = struct.unpack("<I", data[:4])
    facts = json.loads(data[4 : 4 + length])
    return facts, np.frombuffer(data[4 + length :], np.uint8).reshape(-1, facts["dim"])


def opened(open_page: Open, sent: list[bytes], **address: Any) -> tuple[AppTest, dict[str, Any], np.ndarray]:
    app = open_page("model", v="model-facts", **address)
    assert not app.exception
    assert not app.error
    return app, *unpacked(sent[-1])


def test_the_finding_of_the_included_model(open_page: Open, sent: list[bytes]) -> None:
    app, facts, strips = opened(open_page, sent)
    assert (
        "The table of pieces holds 52 % of all 22,713,216 parameters, feed-forward 31 %, attention 16 %; this sentence's 13 "
        "pieces read 11 of its 30,522 rows."  # of the sentence with the bank of a river, which differs most
    ) in texts(app)
    assert (
        "Areas are to scale. Attention's matrices: Q query, K key, V value, O output. Add, norm: what a part gives is added to "
        "its input. Strips: the numbers of “bank” before and after each block, brown below zero, green above. The file also "
        "has a pooler, but"
    ) in texts(app)
    assert facts["parts"]["attention"]["share"] == "16 %"
    assert facts["parts"]["pieces"]["count"] == "11.7 million"
    assert strips.shape == (8, 384)  # seven layers and the sentence
    layers = backend().trace(list(BANK)).hidden_states[:, 1, 7]
    for row, layer in zip(strips, layers, strict=False):
        shown = (row.astype(float) - 128) / 127
        np.testing.assert_allclose(shown, np.clip(layer / (2.5 * layer.std()), -1, 1), atol=0.005)


@pytest.mark.parametrize(
    ("counts", "read", "expected"),
    [
        # Not the table, but attention is the largest.
        (
            {"pieces": 30, "attention": 50, "feed-forward": 20},
            4,
            "Attention holds 50 % of all 100 parameters, the table of pieces 30 %, feed-forward 20 %; this sentence reads 4 of "
            "the table's 10 rows.",
        ),
        (
            {"pieces": 100},
            2,
            "The table of pieces is all there is: 100 parameters; this sentence reads 2 of its 10 rows.",
        ),
        # What has less than a twentieth is not named, and without a sentence nothing is read.
        ({"pieces": 96, "norms": 4}, 0, "The table of pieces holds 96 % of all 100 parameters."),
    ],
)
def test_the_finding_where_the_usual_story_is_false(counts: dict[str, int], read: int, expected: str) -> None:
    assert architecture.finding(counts, 10, read) == expected


@pytest.mark.parametrize("family", tiny.DISTINCT)
def test_every_family_is_drawn_and_its_parts_say_their_shares(
    open_page: Open, sent: list[bytes], tiny_folder: Callable[[str], Path], family: str
) -> None:
    _, facts, strips = opened(open_page, sent, m=str(tiny_folder(family)), s=["The cat sat on the bank."])
    drawn = {item["p"] for name in ("wide", "narrow") for item in facts[name]["items"] if item["t"] == "rect"}
    assert drawn <= facts["parts"].keys()
    assert {"pieces", "attention", "forward"} <= drawn
    assert len(strips) >= 4
    assert ("positions" in facts["parts"]) == any(item.get("p") == "positions" for item in facts["wide"]["items"])


def test_texts_that_nobody_chose(open_page: Open, sent: list[bytes]) -> None:
    for sentences, rows in (
        (["Ja"], 3),
        (["Snow fell.", "Snow fell."], 5),
        (["stone " * 60], 3),  # equal tokens read one row
        (["Der alte Mann ging über die Straße."], None),
    ):
        app, facts, _ = opened(open_page, sent, s=sentences)
        lines = [item for item in facts["wide"]["items"] if item["t"] == "line" and item["c"] in {"row", "picked"}]
        pieces = len(backend().tokenize(sentences)[0].tokens)
        who = "this sentence reads" if pieces == len(lines) else f"this sentence's {pieces} pieces read"
        assert f"{who} {len(lines)} of its" in texts(app)
        assert rows is None or len(lines) == rows


def test_a_static_model_and_its_links(open_page: Open, sent: list[bytes], tmp_path: Path) -> None:
    folder = static_models.save_model2vec(tmp_path / "static")
    _, facts, strips = opened(open_page, sent, m=str(folder), s=["the cat"])
    assert list(facts["parts"]) == ["pieces"]
    assert facts["parts"]["pieces"]["share"] == "100 %"
    assert strips.size == 0


def test_shared_blocks_are_said(open_page: Open, sent: list[bytes], tiny_folder: Callable[[str], Path]) -> None:
    _, facts, _ = opened(open_page, sent, m=str(tiny_folder("albert")), s=["the cat"])
    assert "3 blocks use 2 sets of weights, which count once." in facts["parts"]["forward"]["texts"]


def test_a_part_leads_to_the_view_that_treats_it(open_page: Open, sent: list[bytes]) -> None:
    app, _, _ = opened(open_page, sent)
    for wrong in ("nothing", 3, None, ["attention"], "pooler"):
        app.session_state["architecture"] = {"open": wrong}
        assert "What is inside the model?" in texts(app.run()) or not app.exception
