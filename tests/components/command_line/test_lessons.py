"""`lessons`: the included files pass, and each problem of a file is one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from components.command_line.program import main


def test_the_included_lessons_have_no_problem(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lessons", "--no-model", "--json", "-"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert len(result["lessons"]) >= 13
    assert result["lessons"][:2] == ["ten-minutes", "tokens"]


def test_each_problem_is_a_line_and_the_status_is_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "01-mine.md"
    head = "---\ntitle: Mine\nquestion: Why?\nminutes: 99\nlevel: first steps\n---\n"
    path.write_text(f"{head}## One\nShow: layers?s=A dog.\nHolds: tokens(1) = 5\nLook.\n", encoding="utf-8")
    assert main(["lessons", str(path)]) == 2
    told = capsys.readouterr()
    assert told.out.splitlines() == [
        "01-mine.md:4: “99” is not a number of minutes. Write a whole number from 1 to 90.",
    ]
    assert told.err.startswith("1 problem in 1 of 1 files.")
    (tmp_path / "02-more.md").write_text(head.replace("99", "98").replace("first steps", "easy"), encoding="utf-8")
    assert main(["lessons", str(path), str(tmp_path / "02-more.md")]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"{len(said.out.splitlines())} problems in 2 of 2 files.")
    assert len(said.out.splitlines()) > 2
    path.write_text(path.read_text(encoding="utf-8").replace("99", "9"), encoding="utf-8")
    assert main(["lessons", str(path)]) == 0
    path.write_text(path.read_text(encoding="utf-8").replace("= 5", "= 6"), encoding="utf-8")
    assert main(["lessons", str(path)]) == 2
    assert capsys.readouterr().out.splitlines()[-1] == (
        "01-mine.md:9: “tokens(1) = 6” does not hold: it measures 5.0000. Correct the text and the claim."
    )
    assert main(["lessons", str(path), "--no-model"]) == 0
