"""Unfinished indexes and training runs of somebody who means harm, by kind, each drawn from a seed: commands go on with them.

Used by hostile_indexes.py, which makes and reads each case in a process of its own. Importing this loads no torch.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

from components.retrieval.corpora.texts import Texts
from components.retrieval.index.folder import EmbedOptions, IndexInfo, norm_file, vector_file
from components.retrieval.index.unfinished import DONE

DIM = 8
CORPUS = Texts("c", tuple(f"sentence {number}" for number in range(20)), {"number": tuple(map(str, range(20)))})
OPTIONS = EmbedOptions((0, 1), ("mean",), 16, "float32")
STRANGE: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2**31, 2**63, 10**30, 10**400, -(10**18), 0.5, 1e308, float("nan"), float("inf")),
    *("", "x", "12", "9" * 30, "../../outside", "\ud800", "\0", "\x1b]0;x\x07", "=1+1", "<img src=x>"),
    *([], {}, [[]], ["a"], {"a": 1}, [1, 2], {"0": "12"}, {"0": [1]}, {"-7": [1, 1]}),
)
NESTED = "[" * 100_000


def places(content: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of a JSON value: itself, and what is in it."""
    yield place
    inner = (
        content.items() if isinstance(content, dict) else enumerate(content[:4]) if isinstance(content, list) else ()
    )
    for key, value in inner:
        yield from places(value, (*place, key))


def changed(draw: Random, content: Any) -> str:
    """JSON with something strange at some of its places."""
    if draw.random() < 0.05:
        return NESTED
    content = copy.deepcopy(content)
    for _ in range(draw.randint(1, 3)):
        place = draw.choice(list(places(content)))
        if not place:
            if draw.random() < 0.9:
                continue
            return json.dumps(draw.choice(STRANGE))
        around = content
        for key in place[:-1]:
            around = around[key]
        around[place[-1]] = copy.deepcopy(draw.choice(STRANGE))
        if isinstance(around, dict) and draw.random() < 0.3:
            around[draw.choice(["a", "later", "\ud800", "step", "pid"])] = copy.deepcopy(draw.choice(STRANGE))
    return json.dumps(content)


def strange_array(draw: Random, path: Path) -> None:
    """Another array in the place of one."""
    shape = np.load(path).shape or (20,)  # it may have been changed before
    other = draw.choice([shape[:-1], (*shape, 1), (shape[0] + 1, *shape[1:]), (0, *shape[1:]), (), shape[::-1], shape])
    kind = draw.choice(["f4", "f8", "i1", "U3", "M8[s]", ">f4", "f2", "c8", [("a", "f4")]])
    np.save(path, np.asfortranarray(np.zeros(other, kind)) if draw.random() < 0.3 else np.zeros(other, kind))


# --- An index that somebody has begun


def _backend() -> Any:
    return SimpleNamespace(
        spec=SimpleNamespace(key="embedded"), revision="r", vector_size=lambda poolings: DIM, embed=None
    )


def begun(folder: Path) -> IndexInfo:
    """The folder of an unfinished index, as a build leaves it that was killed after it had prepared."""
    from components.retrieval.index import build

    info = build.planned(_backend(), CORPUS, OPTIONS, "float32")
    build._prepare(folder.with_name(f"{folder.name}.part"), info, CORPUS)
    return info


def unfinished_record(draw: Random, folder: Path) -> None:
    """A record of what is done that says anything."""
    begun(folder)
    record = {"sentences_per_block": 4_096, "blocks": 0, "tokens": 9, "truncated": 0, "later": {"0": [1, 1]}}
    path = folder.with_name(f"{folder.name}.part") / DONE
    path.write_text(changed(draw, record))


def unfinished_arrays(draw: Random, folder: Path) -> None:
    """Vectors and lengths of other shapes and kinds."""
    begun(folder)
    part = folder.with_name(f"{folder.name}.part")
    for _ in range(draw.randint(1, 3)):
        strange_array(draw, part / draw.choice([vector_file, norm_file])(draw.choice([0, 1]), "mean"))


def unfinished_texts(draw: Random, folder: Path) -> None:
    """Texts and columns of another corpus, cut ones, and files that no index has."""
    begun(folder)
    part = folder.with_name(f"{folder.name}.part")
    path = part / draw.choice(["texts.utf8", "texts.offsets.npy", "column-0.utf8", "column-0.offsets.npy"])
    other = path.with_name("other")
    draw.choice(
        [
            lambda: path.write_bytes(draw.randbytes(path.stat().st_size)),
            lambda: path.write_bytes(path.read_bytes()[:-1]),
            lambda: path.unlink(),
            lambda: (part / os.fsdecode(b"\xff\xfe")).write_bytes(b"x"),
            lambda: (part / "column-1.utf8").write_bytes(b"x"),
            lambda: (part / "inner").mkdir(),
            lambda: (path.rename(other), path.symlink_to(other)),
        ]
    )()


def unfinished_lock(draw: Random, folder: Path) -> None:
    """Something else in the place of the lock."""
    begun(folder)
    lock = folder.with_name(f"{folder.name}.lock")
    draw.choice(
        [
            lambda: lock.symlink_to(folder.parent.parent / "outside" / "outside"),
            lambda: lock.symlink_to(lock),
            lambda: os.mkfifo(lock),
            lock.mkdir,
        ]
    )()


def unfinished_link(draw: Random, folder: Path) -> None:
    """A link to another folder in the place of the index, with the record of a job or without."""
    begun(folder)
    part = folder.with_name(f"{folder.name}.part")
    other = folder.parent.parent / "outside" / "folder"
    if not other.exists():
        shutil.copytree(part, other)
    shutil.rmtree(part)
    part.symlink_to(draw.choice([other, other.parent, part, folder.with_name("nowhere")]))


def go_on(folder: Path) -> int:
    """Build the index to its end, with ones for vectors: it has the texts of the corpus, or the build is refused."""
    from components.retrieval.index import build

    def embed(backend: Any, texts: Any, vectors: Any, *_: Any) -> None:
        for block in vectors.waiting():
            rows = vectors.rows(block)
            count = len(range(*rows.indices(len(texts))))
            vectors.keep(rows, np.ones((len(OPTIONS.layers), 1, count, DIM), np.float32))
            vectors.finish(block, count, 0)

    index = build.build_index(_backend(), CORPUS, folder, OPTIONS, "float32", embed=embed)
    assert list(index.texts) == list(CORPUS.texts)
    assert list(index.columns["number"]) == list(CORPUS.columns["number"])
    assert index.info.tokens >= 0
    sys.stdout.write("The index is whole.\n")
    return 0


# --- A training run


def trained(folder: Path) -> None:
    """A run that was stopped."""
    from tests.support.training_runs import write_run

    write_run(folder.parent, folder.name, status="stopped")
    record = {"before": {"recall@1": 0.4}, "after": {"recall@1": 0.5}, "best_step": 20, "steps": 20, "seconds": 1.5}
    (folder / "record.json").write_text(json.dumps(record))


def run_files(draw: Random, folder: Path) -> None:
    """Settings, state, data and record that say anything."""
    trained(folder)
    for _ in range(draw.randint(1, 2)):
        path = folder / draw.choice(["settings.json", "state.json", "data.json", "record.json", "watch/tokens.json"])
        content = json.loads(path.read_text())
        if path.name == "state.json":
            content |= {"status": "running", "pid": os.getpid(), "process_started": 1.0}
        path.write_text(changed(draw, content))


def run_lines(draw: Random, folder: Path) -> None:
    """Rows and events that say anything."""
    trained(folder)
    path = folder / draw.choice(["data.jsonl", "events.jsonl"])
    lines = path.read_text().splitlines()
    for _ in range(draw.randint(1, 4)):
        number = draw.randrange(len(lines))
        try:
            lines[number] = changed(draw, json.loads(lines[number]))
        except (ValueError, RecursionError):  # it was changed before
            continue
    path.write_text("\n".join(lines) + "\n")


def run_vectors(draw: Random, folder: Path) -> None:
    """Vectors of the watch sentences in other shapes and kinds."""
    trained(folder)
    path = folder / "watch" / f"{draw.choice([0, 20])}.npz"
    with np.load(path) as file:
        arrays = dict(file)
    name = draw.choice(["sentences", "tokens"])
    shape = arrays[name].shape
    other = draw.choice([shape[1:], (*shape, 1), shape[::-1], (0, *shape[1:]), (shape[0] + 1, *shape[1:]), shape])
    arrays[name] = np.zeros(other, draw.choice(["f4", "f8", "i4", "U2", "f2", "?"]))
    if draw.random() < 0.1:
        del arrays[name]
    np.savez(path, **arrays)


def read_run(folder: Path) -> int:
    """Everything that pages and commands read of a run, which is then continued."""
    from argparse import Namespace

    from components.command_line.commands import train
    from components.errors import UserError
    from components.training import runs
    from components.training.before_after import layer_change, repeated_words, word_curves
    from components.training.history import HistoryReader
    from components.training.run_folder import RunFolder

    run = RunFolder(folder)

    def data() -> None:
        rows, split = run.data()
        len(rows.take(split.train)) and rows.sha256.encode()
        if rows.labels is not None and len(rows.labels):
            rows.scores_in_words.encode()
        for texts in (*rows.columns.values(), rows.label_names, rows.warnings, tuple(rows.read_from.values())):
            "".join(texts).encode()

    def vectors() -> None:
        before, now = run.watch_at(0, 20)
        tokens = run.watch_tokens()
        layer_change(before.tokens, now.tokens)
        for word in repeated_words(tokens):
            word_curves(now.tokens, tokens, word, None)

    looks: list[Callable[[], object]] = [
        lambda: run.settings().to_json().encode(),
        data,
        vectors,
        lambda: HistoryReader(run).read().last_step,
        lambda: run.metrics_csv().encode(),
        lambda: runs.list_runs(folder.parent),
        lambda: "{0.step:,} {0.steps:,} {0.seconds:.1f} {0.error}".format(runs.state_of(run)).encode(),
        lambda: train._told(run, folder, Namespace(json=None)),
        lambda: runs.resume(run),
        lambda: run.forget_after(2),
    ]
    for look in looks:
        try:
            look()
        except UserError as problem:
            sys.stdout.write(f"{problem}\n")
    return 0


UNFINISHED_KINDS = (unfinished_record, unfinished_arrays, unfinished_texts, unfinished_lock, unfinished_link)
RUN_KINDS = (run_files, run_lines, run_vectors)
