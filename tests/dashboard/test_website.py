"""The command `site` without a browser: what it refuses, and what it keeps in a folder."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.command_line import dashboard_process
from components.errors import InputError
from dashboard import caching
from dashboard.declared.stops import VIEW
from dashboard.ui.whole_path.packed import Path as WholePath
from dashboard.ui.whole_path.packed import facts_of
from dashboard.ui.whole_path.packed import packed as packed_path
from dashboard.website import recording, session, writing
from dashboard.website.files import MARK, PARTS, SiteFolder, in_parts, packed, script_of
from dashboard.website.pages import MOST_SENTENCES, PAGES, Given, why_left_out
from dashboard.website.recording import Drawn, Recorder
from dashboard.website.session import Session
from tests.components.command_line.in_process import run


def test_a_site_takes_the_place_of_an_earlier_one_and_of_nothing_else(tmp_path: Path) -> None:
    out, outside = tmp_path / "site", tmp_path / "mine.html"
    outside.write_text("mine")
    first = SiteFolder(out)
    first.begin()
    first.write("files/old.js", "1")
    first.write("index.html", "first")
    first.finish({"version": "1"})
    marked = json.loads((out / MARK).read_text())
    (out / MARK).write_text(json.dumps({**marked, "files": [*marked["files"], "../mine.html", 7]}))
    (out / "notes.txt").write_text("a person's own")
    second = SiteFolder(out)
    second.begin()
    second.write("index.html", "second")
    second.finish({"version": "2"})
    assert {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()} == {
        "index.html",
        "notes.txt",
        MARK,
    }
    assert (out / "index.html").read_text() == "second"
    assert outside.read_text() == "mine"

    (tmp_path / "other").mkdir()
    (tmp_path / "other" / MARK).write_text('{"made_by": "somebody else", "files": []}')
    (tmp_path / "nested").mkdir()
    (tmp_path / "nested" / MARK).write_text("[" * 100_000)
    for place in (tmp_path / "other", tmp_path / "nested", tmp_path, outside):
        with pytest.raises(InputError, match=r"no site of this program|is a file"):
            SiteFolder(place)


def test_a_site_of_somebody_else_has_no_file_outside_replaced_or_removed(tmp_path: Path) -> None:
    out, outside = tmp_path / "site", tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.js").write_text("mine")
    out.mkdir()
    (out / MARK).write_text(json.dumps({"made_by": "BERT Internals", "files": ["files/mine.js"]}))
    (out / PARTS).symlink_to(outside)
    with pytest.raises(OSError, match="it is a link"):
        SiteFolder(out)
    result = run("site", str(out))
    assert result.returncode == 2
    assert "files cannot be used: it is a link" in result.stderr
    assert [path.name for path in outside.iterdir()] == ["mine.js"]


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    for arguments, said in (
        ([str(tmp_path / "full")], "is not empty, and no site of this program"),
        ([str(tmp_path / "new"), "--sentences", str(tmp_path / "none.txt")], "none.txt"),
        ([str(tmp_path / "new"), "--model", "no/such/folder"], "no/such/folder"),
    ):
        done = run("site", *arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
        assert said in done.stderr
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["full", "thesis.txt"]


def test_too_many_or_too_long_sentences_are_refused(embedded) -> None:
    with pytest.raises(InputError, match=f"at most {MOST_SENTENCES}"):
        Given(embedded, ["One."] * (MOST_SENTENCES + 1))
    with pytest.raises(InputError, match="at most 48"):
        Given(embedded, ["word " * 60])
    assert {page.view for page in PAGES if why_left_out(page, Given(embedded, ["One sentence."]))} == {
        "sentence-curves",
        "score-split",
    }


def test_packed_data_are_read_back_as_the_page_reads_them() -> None:
    numbers = np.arange(3, dtype="<f4").tobytes()
    data = packed({"figures": [{"bytes": b"abc"}, {"bytes": b"de"}, {"bytes": b"abc"}]}, numbers)
    length = int.from_bytes(data[:4], "little")
    body = data[4 + length :]
    found = [body[at : at + size] for at, size in (of["bytes"] for of in json.loads(data[4 : 4 + length])["figures"])]
    assert (found, body[:12]) == ([b"abc", b"de", b"abc"], numbers)
    assert len(body) == len(numbers) + 5  # equal ones are stored once
    states = [packed({"state": number}, b"cells" + bytes([number])) for number in (7, 10)]
    parts = in_parts(states)
    assert [b"".join(state) for state in parts] == states
    assert [state[1:] for state in parts] == [[b"cells", b"\x07"], [b"cells", b"\n"]]
    assert script_of("block", data).count("\n") == 1


def drawn_from(script: str, monkeypatch: pytest.MonkeyPatch) -> recording.Drawn:
    """What is recorded of a page with this script."""
    monkeypatch.setattr(Session, "_opened", lambda *_: AppTest.from_string(script))
    return Recorder("hits", {}).drawn({})


def test_an_error_on_a_page_is_no_content(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "import streamlit as st\nst.markdown('Six hits.')\n"
    assert "Six hits." in drawn_from(said, monkeypatch).markup
    assert "Nothing is near" in drawn_from(f"{said}st.info('Nothing is near.')", monkeypatch).markup
    with pytest.raises(InputError, match=r"“hits” cannot be drawn\. It failed: no memory\."):
        drawn_from(f"{said}st.error('**It failed:** no memory.')", monkeypatch)


def test_a_page_whose_work_does_not_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    finished = threading.Event()
    finished.set()
    runs_left = [1]
    job = SimpleNamespace(title="Reading the corpus", finished=finished)

    def under_way() -> tuple[SimpleNamespace, ...]:
        runs_left[0] -= 1
        return (job,) if runs_left[0] >= 0 else ()

    monkeypatch.setattr(session, "MOST_RUNS", 3)
    monkeypatch.setattr(caching, "queue", lambda: SimpleNamespace(under_way=under_way))
    said = "import streamlit as st\nst.markdown('Half of it.')"
    assert "Half of it." in drawn_from(said, monkeypatch).markup  # it ended after one run
    runs_left[0] = 3
    with pytest.raises(InputError, match="work was still under way: Reading the corpus"):
        drawn_from(said, monkeypatch)


def test_a_path_without_room_is_left_out_and_a_larger_site_says_so(
    embedded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = facts_of(WholePath(embedded, ["Money in the bank."], None))
    facts |= {"place": ["look", 0, 0, 0, False], "first": None, "stops": ["look"]}
    figures = {
        VIEW: [{"part": "path", "bytes": packed_path(facts, {})}],
        "block": [{"part": "plot", "data": [], "layout": {}}],
        "home": [],
    }

    class Stored:
        """Views whose figures are at hand."""

        def __init__(self, view: str, *_: object) -> None:
            self.view = view

        def drawn(self, _: object) -> Drawn:
            code = {"html": "", "css": "", "js": "export default function () {}"}
            return Drawn(figures=figures[self.view], parts={VIEW: {"path": code}}.get(self.view, {}))

    monkeypatch.setattr(writing, "Recorder", Stored)
    monkeypatch.setattr(writing, "PAGES", [page for page in PAGES if page.view in figures])
    monkeypatch.setattr(writing, "MOST_BYTES", 1_000_000)
    written = writing.write(tmp_path / "site", Given(embedded, ["Money in the bank."]))
    assert written.pages == ["index.html", "block.html"]
    assert written.left_out == {"The whole path": "its numbers have no room in 1.00 MB"}
    texts = {path.name: path.read_text() for path in written.folder.rglob("*.*") if path.is_file()}
    assert not [name for name in texts if name.startswith("path")]
    assert "Not in this site: The whole path: its numbers have no room in 1.00 MB" in texts["index.html"]
    linked = set(re.findall(r'(?:href|src)="([^":]+\.(?:html|js))"', texts["index.html"] + texts["block.html"]))
    assert {name for name in linked if not (written.folder / name).is_file()} == set()
    assert f"{PARTS}/parts.js" in linked
    assert '"path": {' not in texts["parts.js"]
    assert written.bytes == sum(len(text.encode()) for name, text in texts.items() if name != MARK) > 1_000_000
    (note,) = written.to_json()["notes"]
    assert note.endswith("a site should have less than 1.00 MB: fewer or shorter sentences make it smaller.")


def test_the_model_is_that_of_the_folder_in_which_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, str]] = []

    def answer(question: dict[str, str]) -> dict[str, object]:
        asked.append(question)
        return {"pages": ["index.html"], "bytes": 12, "left_out": {}, "notes": ["It is large."]}

    monkeypatch.setattr(dashboard_process, "answer_of", answer)
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    done = run("site", "out", "--model", "./model")
    assert (done.returncode, "It is large." in done.stderr) == (0, True), done.stderr
    assert [(of["model"], of["out"]) for of in asked] == [(str(tmp_path / "model"), str(tmp_path / "out"))]
