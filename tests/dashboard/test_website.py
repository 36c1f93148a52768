"""The command `site` without a browser: what it refuses, and what it keeps in a folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from components.errors import InputError
from dashboard.website.files import MARK, Folder, in_parts, packed, script_of
from dashboard.website.pages import MOST_SENTENCES, PAGES, Given, why_left_out
from tests.components.command_line.in_process import run


def test_a_site_takes_the_place_of_an_earlier_one_and_of_nothing_else(tmp_path: Path) -> None:
    out, outside = tmp_path / "site", tmp_path / "mine.html"
    outside.write_text("mine")
    first = Folder(out)
    first.begin()
    first.write("files/old.js", "1")
    first.write("index.html", "first")
    first.finish({"version": "1"})
    marked = json.loads((out / MARK).read_text())
    (out / MARK).write_text(json.dumps({**marked, "files": [*marked["files"], "../mine.html", 7]}))
    (out / "notes.txt").write_text("a person's own")
    second = Folder(out)
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
    for place in (tmp_path / "other", tmp_path, outside):
        with pytest.raises(InputError, match=r"no site of this program|is a file"):
            Folder(place)


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
