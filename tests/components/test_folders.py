"""Files that are written whole."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from components.folders import write_json


def test_many_may_write_one_file_and_nothing_else_stays(tmp_path: Path) -> None:
    path, problems = tmp_path / "state.json", []

    def write(number: int) -> None:
        try:
            for _ in range(30):
                write_json(path, {"number": number, "padding": "x" * 5_000})
        except OSError as problem:
            problems.append(problem)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert json.loads(path.read_text())["number"] in range(6)
    assert [item.name for item in tmp_path.iterdir()] == ["state.json"]


def test_what_cannot_be_written_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", 1)
    with pytest.raises(TypeError):
        write_json(tmp_path / "a.json", {"set": {1}})
    assert [(item.name, item.read_text()) for item in tmp_path.iterdir()] == [("a.json", "1")]
