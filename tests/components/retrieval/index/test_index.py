"""The index folder: whole or refused, resumable after a kill, and never embedded twice."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from components.command_line.program import main
from components.errors import InputError
from components.jobs import Job, Lane, Queue, Stopped
from components.model.backend import Backend
from components.model.embedding.options import SENTENCES_PER_BLOCK
from components.retrieval.corpora.corpus import Corpus
from components.retrieval.index import build, cache, checksums
from components.retrieval.index.build import build_index, needed_bytes
from components.retrieval.index.cache import IndexCache, cache_folder, cache_limit
from components.retrieval.index.folder import (
    MANIFEST,
    OWN_CHECKSUM,
    VectorIndex,
    check_index,
    open_index,
    read_manifest,
    resolve_dtype,
)
from components.retrieval.search.query import query_vectors
from tests.support.closeness import assert_close
from tests.support.made_up_corpora import sentences
from tests.support.places import ROOT
from tests.support.tiny import save_tiny


@pytest.fixture(scope="module")
def backend(tmp_path_factory):
    return Backend.load(str(save_tiny(tmp_path_factory.mktemp("index") / "bert")))


@pytest.fixture
def options(backend):
    return backend.embed_options((0, 2), ("mean", "cls"), precision="float32")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 0), ("float16", 2e-3), ("auto", 0)])
def test_an_index_has_the_vectors_texts_and_columns(backend, options, tmp_path, dtype, tolerance):
    corpus = sentences(40)
    seen: list[tuple[int, int]] = []
    index = build_index(
        backend, corpus, tmp_path / "x", options, dtype, progress=lambda done, total: seen.append((done, total))
    )
    vectors = backend.embed(corpus.texts, options=options)
    for at, layer in enumerate((0, 2)):
        for place, pooling in enumerate(("mean", "cls")):
            engine = index.engine(layer, pooling)
            np.testing.assert_allclose(engine.vectors, vectors[at, place], atol=tolerance)
            assert_close(engine.norms, np.linalg.norm(engine.vectors.astype(np.float32), axis=1))
    assert list(index.texts) == list(corpus.texts)
    assert index.texts[-1] == corpus.texts[-1]
    assert index.texts[3:5] == list(corpus.texts[3:5])
    assert list(index.columns["label"]) == list(corpus.columns["label"])
    assert index.info.tokens == sum(len(item) for item in backend.tokenization.encode_many(corpus.texts)[0])
    assert seen[0] == (0, 40)
    assert seen[-1] == (40, 40)
    assert isinstance(index.engine(0, "mean").vectors, np.memmap)
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]
    with pytest.raises(InputError, match="layers 0, 2"):
        index.engine(1, "mean")


def test_the_same_index_is_opened_and_another_is_refused(backend, options, tmp_path):
    corpus = sentences(10)
    build_index(backend, corpus, tmp_path / "x", options)
    before = backend.forward_passes
    build_index(backend, corpus, tmp_path / "x", options)
    assert backend.forward_passes == before
    with pytest.raises(InputError, match="contains another index"):
        build_index(backend, sentences(10, seed=1), tmp_path / "x", options)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="not an index"):
        build_index(backend, corpus, tmp_path / "mine", options)
    (tmp_path / "y.part").mkdir()
    (tmp_path / "y.part" / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="not an unfinished index"):
        build_index(backend, corpus, tmp_path / "y", options)
    assert (tmp_path / "y.part" / "letter.txt").read_text() == "dear"


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda folder: (folder / MANIFEST).unlink(), "no manifest"),
        (lambda folder: (folder / MANIFEST).write_text("{"), "damaged manifest"),
        (lambda folder: (folder / MANIFEST).write_text('{"kind": "cake"}'), "is not an index"),
        (lambda folder: (folder / "layer-00-mean.npy").unlink(), "has no file layer-00-mean.npy"),
        (lambda folder: (folder / "texts.utf8").write_bytes(b"short"), "texts.utf8 has 5 bytes"),
        (lambda folder: _edit(folder, format=99), "format 99"),
        (lambda folder: _edit(folder, sentences=9), "does not match the manifest"),
        (lambda folder: _edit(folder, dtype="object"), "damaged manifest"),
    ],
)
def test_a_damaged_or_foreign_folder_is_refused_with_the_reason(backend, options, tmp_path, damage, reason):
    build_index(backend, sentences(8), tmp_path / "x", options)
    damage(tmp_path / "x")
    with pytest.raises(InputError, match=reason):
        open_index(tmp_path / "x")


def _edit(folder: Path, **changes: object) -> None:
    """Change the manifest, as that of an earlier version without a checksum of its own."""
    content = json.loads((folder / MANIFEST).read_text())
    content.pop(OWN_CHECKSUM, None)
    (folder / MANIFEST).write_text(json.dumps({**content, **changes}))


def test_pickles_are_never_read(backend, options, tmp_path):
    build_index(backend, sentences(8), tmp_path / "x", options)
    path = tmp_path / "x" / "layer-00-mean.norms.npy"
    np.save(path, np.array([{"a": 1}] * 8, dtype=object), allow_pickle=True)
    _forget_checksums(tmp_path / "x")
    with pytest.raises(InputError, match="Python objects"):
        open_index(tmp_path / "x")


def _forget_checksums(folder: Path) -> None:
    """Let the manifest fit the files as they are, as that of an earlier version without checksums."""
    names = json.loads((folder / MANIFEST).read_text())["files"]
    _edit(folder, files={name: (folder / name).stat().st_size for name in names}, checksums={})


def _header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def _shape(shape: str) -> bytes:
    return _header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n") + bytes(64)


def _zip() -> bytes:
    packed = io.BytesIO()
    np.savez(packed, a=np.zeros(8))
    return packed.getvalue()


@pytest.mark.parametrize("name", ["layer-00-mean.npy", "layer-00-mean.norms.npy", "texts.offsets.npy"])
@pytest.mark.parametrize(
    "content",
    [
        _zip(),
        b"",
        _header("(" * 8999),
        _shape("(-3, 384)"),
        _shape("(300_000_000_000,)"),
        _shape("(8, -1)"),
        b"PK\x03\x04",
    ],
    ids=["zip", "empty", "brackets", "negative", "huge", "minus one", "broken zip"],
)
def test_a_file_that_is_no_array_is_said_in_one_line(backend, options, tmp_path, name, content, capsys):
    folder = tmp_path / "x"
    build_index(backend, sentences(8), folder, options)
    (folder / name).write_bytes(content)
    _forget_checksums(folder)
    assert main(["check", str(folder)]) == 2
    said = capsys.readouterr().err
    assert f"{name} is no array that can be read" in said
    assert said.count("\n") == 1


@pytest.mark.timeout(60)  # to open it would take for ever
@pytest.mark.parametrize("name", [MANIFEST, "layer-00-mean.npy", "texts.offsets.npy", "texts.utf8", "column-0.utf8"])
@pytest.mark.parametrize("is_listed", [True, False])
def test_a_pipe_in_an_index_is_never_opened(backend, options, tmp_path, name, is_listed):
    folder = tmp_path / "x"
    build_index(backend, sentences(8), folder, options)
    content = json.loads((folder / MANIFEST).read_text())
    if not is_listed:
        files = {other: size for other, size in content["files"].items() if other != name}
        _edit(folder, files=files, checksums={})
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(InputError, match=re.escape(name)):
        open_index(folder)


def test_every_file_of_an_index_is_listed_in_its_manifest(backend, options, tmp_path):
    folder = tmp_path / "x"
    build_index(backend, sentences(8), folder, options)
    listed = json.loads((folder / MANIFEST).read_text())["files"]
    for name in listed:
        _edit(folder, files={other: size for other, size in listed.items() if other != name}, checksums={})
        with pytest.raises(InputError, match=f"does not list {re.escape(name)}"):
            open_index(folder)


def test_a_manifest_of_many_megabytes_is_refused_unread(backend, options, tmp_path):
    folder = tmp_path / "x"
    build_index(backend, sentences(8), folder, options)
    (folder / MANIFEST).write_text("[")
    os.truncate(folder / MANIFEST, 1 << 40)  # a hole: no such disk is needed, and nothing can read it to its end
    with pytest.raises(InputError, match="more than 6,291,456 bytes"):
        open_index(folder)


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        open_index(tmp_path / "none")


KILLED = """
import os, signal, sys
from pathlib import Path
from components.model.backend import Backend
from components.retrieval.index.build import build_index
from tests.support.made_up_corpora import sentences
backend = Backend.load(sys.argv[1])
options = backend.embed_options((0, 2), ("mean", "cls"), precision="float32")
def stop_in_the_third_block(done, total):
    if done > 2 * 256 + 30:
        os.kill(os.getpid(), signal.SIGKILL)
build_index(
    backend, sentences(3 * 256 + 70), Path(sys.argv[2]), options,
    progress=stop_in_the_third_block, sentences_per_block=256,
)
"""
BLOCK = 256  # sentences of the blocks here: a build goes on in the same way with those of SENTENCES_PER_BLOCK


@pytest.mark.rare
def test_a_killed_build_goes_on_and_gives_the_same_bytes(backend, options, tmp_path):
    corpus = sentences(3 * BLOCK + 70)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, backend.spec.key, str(tmp_path / "x")],
        cwd=ROOT,
        capture_output=True,
        timeout=240,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert not (tmp_path / "x").exists()
    assert json.loads((tmp_path / "x.part" / "done.json").read_text())["blocks"] == 2
    seen: list[int] = []
    before = backend.forward_passes
    build_index(
        backend,
        corpus,
        tmp_path / "x",
        options,
        progress=lambda at, total: seen.append(at),
        sentences_per_block=BLOCK,
    )
    resumed = backend.forward_passes - before
    assert seen[0] == 2 * BLOCK
    build_index(backend, corpus, tmp_path / "whole", options, sentences_per_block=BLOCK)
    assert resumed < 0.6 * (backend.forward_passes - before - resumed)
    assert contents(tmp_path / "x") == contents(tmp_path / "whole")


def test_a_stopped_build_can_go_on(backend, options, tmp_path):
    corpus = sentences(SENTENCES_PER_BLOCK + 100)
    progress: list[int] = []
    with pytest.raises(Stopped):
        build_index(
            backend,
            corpus,
            tmp_path / "x",
            options,
            progress=lambda done, total: progress.append(done),
            is_stopped=lambda: bool(progress) and progress[-1] >= SENTENCES_PER_BLOCK,
        )
    progress.clear()
    index = build_index(backend, corpus, tmp_path / "x", options, progress=lambda done, total: progress.append(done))
    assert progress[0] == SENTENCES_PER_BLOCK
    np.testing.assert_allclose(
        index.engine(2, "mean").vectors, backend.embed(corpus.texts, options=options)[1, 0], atol=1e-5
    )


def test_an_unfinished_build_of_something_else_is_begun_anew(backend, options, tmp_path):
    with pytest.raises(Stopped):
        build_index(backend, sentences(20), tmp_path / "x", options, is_stopped=lambda: True)
    assert (tmp_path / "x.part").exists()
    other = sentences(30, seed=4)
    index = build_index(backend, other, tmp_path / "x", options)
    assert list(index.texts) == list(other.texts)


def test_a_build_killed_while_it_prepares_is_begun_anew(backend, options, tmp_path):
    with pytest.raises(Stopped):
        build_index(backend, sentences(20), tmp_path / "x", options, is_stopped=lambda: True)
    (tmp_path / "x.part" / "done.json").unlink()
    (tmp_path / "x.part" / "layer-02-cls.npy").unlink()
    assert len(build_index(backend, sentences(20), tmp_path / "x", options).texts) == 20


@pytest.mark.parametrize("left", [(), ("job.json.1a2b3c4d.new",)])
def test_a_build_killed_before_its_first_record_is_begun_anew(backend, options, tmp_path, left):
    (tmp_path / "x.part").mkdir()
    for name in left:
        (tmp_path / "x.part" / name).write_text('{"jo')
    build_index(backend, sentences(20), tmp_path / "x", options)
    build_index(backend, sentences(20), tmp_path / "whole", options)
    assert contents(tmp_path / "x") == contents(tmp_path / "whole")
    (tmp_path / "y.part").mkdir()
    (tmp_path / "y.part" / "letter.1a2b3c4d.new").write_text("dear")  # nobody's but the person's
    with pytest.raises(InputError, match="not an unfinished index"):
        build_index(backend, sentences(20), tmp_path / "y", options)
    assert (tmp_path / "y.part" / "letter.1a2b3c4d.new").read_text() == "dear"


def test_what_a_kill_leaves_beside_the_records_is_no_part_of_the_index(backend, options, tmp_path):
    with pytest.raises(Stopped):
        build_index(backend, sentences(20), tmp_path / "x", options, is_stopped=lambda: True)
    for name in ("done.json.1a2b3c4d.new", "manifest.json.00000000.new"):
        (tmp_path / "x.part" / name).write_text("{")
    build_index(backend, sentences(20), tmp_path / "x", options)
    build_index(backend, sentences(20), tmp_path / "whole", options)
    assert contents(tmp_path / "x") == contents(tmp_path / "whole")


def test_a_build_killed_after_it_was_moved_into_place_is_tidied_up(backend, options, tmp_path, monkeypatch):
    def stopped(folder: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(build, "_forget_build", stopped)
        with pytest.raises(KeyboardInterrupt):
            build_index(backend, sentences(20), tmp_path / "x", options)
    assert (tmp_path / "x" / "job.json").exists()
    build_index(backend, sentences(20), tmp_path / "x", options)
    build_index(backend, sentences(20), tmp_path / "whole", options)
    assert contents(tmp_path / "x") == contents(tmp_path / "whole")


def test_an_unfinished_index_is_known_as_one_until_its_last_file_is_removed(backend, options, tmp_path, monkeypatch):
    """Whatever ends the removal, the next build of either index is not refused, and continues with no file missing."""
    with pytest.raises(Stopped):
        build_index(backend, sentences(20), tmp_path / "x", options, is_stopped=lambda: True)
    part, removed, unlink = tmp_path / "x.part", [], Path.unlink

    def noted(path, missing_ok=False):
        unlink(path, missing_ok)
        removed.append(path.name)
        assert (part / "job.json").exists() or not any(part.iterdir())

    monkeypatch.setattr(Path, "unlink", noted)
    build.remove_unfinished(part)
    assert removed[0] == "done.json"
    assert removed[-1] == "job.json"
    assert not part.exists()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["job.json", "done.json", "layer-02-cls.npy"])
def test_an_unfinished_build_with_a_pipe_is_begun_anew(backend, options, tmp_path, name):
    with pytest.raises(Stopped):
        build_index(backend, sentences(20), tmp_path / "x", options, is_stopped=lambda: True)
    (tmp_path / "x.part" / name).unlink()
    os.mkfifo(tmp_path / "x.part" / name)
    assert len(build_index(backend, sentences(20), tmp_path / "x", options).texts) == 20


@pytest.mark.parametrize(
    "record",
    [
        {"blocks": "x"},
        {"blocks": 10**18},
        {"tokens": -5},
        {"later": [1]},
        {"later": {"0": "12"}},
        {"later": {"9": [1, 1]}},
        {"later": {"0": [1]}},
    ],
)
def test_a_record_that_no_build_writes_counts_for_nothing(backend, options, tmp_path, record):
    with pytest.raises(Stopped):
        build_index(backend, sentences(20), tmp_path / "x", options, is_stopped=lambda: True)
    (tmp_path / "x.part" / "done.json").write_text(json.dumps({"blocks": 0, "tokens": 0, "truncated": 0, **record}))
    build_index(backend, sentences(20), tmp_path / "x", options)
    build_index(backend, sentences(20), tmp_path / "whole", options)
    assert contents(tmp_path / "x") == contents(tmp_path / "whole")


@pytest.mark.parametrize("harm", ["array", "kind", "texts", "no texts", "another file", "shared file"])
def test_an_unfinished_index_of_somebody_else_brings_in_no_texts_and_arrays(backend, options, tmp_path, harm):
    with pytest.raises(Stopped):
        build_index(backend, sentences(20), tmp_path / "x", options, is_stopped=lambda: True)
    part, shared = tmp_path / "x.part", tmp_path / "shared"
    texts, vectors = part / "texts.utf8", part / "layer-02-cls.npy"
    if harm == "array":
        np.save(vectors, np.zeros((20, 1), np.float32))
    elif harm == "kind":
        np.save(vectors, np.zeros(np.load(vectors).shape, np.float64))
    elif harm == "texts":
        texts.write_bytes(b"x" * texts.stat().st_size)
    elif harm == "no texts":
        texts.unlink()
    elif harm == "another file":
        (part / os.fsdecode(b"\xff")).write_bytes(b"x")
    else:  # one file under two names
        shared.write_bytes(b"somebody's own")
        texts.unlink()
        os.link(shared, texts)
    build_index(backend, sentences(20), tmp_path / "x", options)
    build_index(backend, sentences(20), tmp_path / "whole", options)
    assert contents(tmp_path / "x") == contents(tmp_path / "whole")
    assert harm != "shared file" or shared.read_bytes() == b"somebody's own"


def test_an_unfinished_index_that_is_a_link_is_refused(backend, options, tmp_path):
    with pytest.raises(Stopped):
        build_index(backend, sentences(20), tmp_path / "other", options, is_stopped=lambda: True)
    before = contents(tmp_path / "other.part")
    (tmp_path / "x.part").symlink_to(tmp_path / "other.part")
    for corpus in (sentences(20), sentences(30)):
        with pytest.raises(InputError, match="not an unfinished index"):
            build_index(backend, corpus, tmp_path / "x", options)
    assert contents(tmp_path / "other.part") == before


def test_a_full_disk_is_said_before_anything_is_written(backend, options, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(build.shutil, "disk_usage", lambda path: usage._replace(free=10))
    with pytest.raises(InputError, match=r"has [0-9].* free. [0-9.]* kB are needed"):
        build_index(backend, sentences(20), tmp_path / "x", options)
    assert not (tmp_path / "x.part").exists()


def test_a_disk_that_fills_up_is_said_too(backend, options, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("components.model.embedding.disk.os.posix_fallocate", full)
    with pytest.raises(InputError, match=r"has [0-9].* free. [0-9.]* kB are needed"):
        build_index(backend, sentences(20), tmp_path / "x", options)
    assert not (tmp_path / "x.part").exists()


def test_a_second_process_on_the_same_folder_is_told(backend, options, tmp_path):
    from filelock import FileLock

    with FileLock(tmp_path / "x.lock"), pytest.raises(InputError, match="Another process"):
        build_index(backend, sentences(5), tmp_path / "x", options)


def test_a_query_is_embedded_as_the_index_was(backend, options, tmp_path):
    corpus = sentences(30)
    index = build_index(backend, corpus, tmp_path / "x", options)
    found = query_vectors(backend, [corpus.texts[7]], index.info)
    assert set(found) == {(0, "mean"), (0, "cls"), (2, "mean"), (2, "cls")}
    hits = index.engine(2, "mean").search(found[2, "mean"], 1)
    assert index.texts[int(hits.indices[0, 0])] == corpus.texts[7]
    assert hits.scores[0, 0] == pytest.approx(1, abs=1e-5)
    other = Backend.load("embedded")
    with pytest.raises(InputError, match="cannot be compared"):
        query_vectors(other, ["x"], index.info)


def test_large_indexes_are_float16_except_for_cls_in_float32(backend):
    means, every = (
        backend.embed_options((0, 2), poolings, precision="float32") for poolings in (("mean",), ("mean", "cls"))
    )
    assert resolve_dtype("auto", 1_000, 384, means) == resolve_dtype("auto", 1_000, 384, every) == "float32"
    assert resolve_dtype("auto", 10_000_000, 384, means) == "float16"
    assert resolve_dtype("auto", 10_000_000, 384, every) == "float32"
    assert resolve_dtype("float16", 10_000_000, 384, every) == "float16"
    assert resolve_dtype("auto", 10_000_000, 384, replace(every, precision="bfloat16")) == "float16"


def test_sizes_are_known_before(backend):
    options = backend.embed_options((0,), ("mean",))
    assert needed_bytes(1_000_000, 384, options, "float16") == 1_000_000 * (384 * 2 + 4)
    every = backend.embed_options((0, 1, 2), ("mean", "cls", "max"))
    assert needed_bytes(10, 8, every, "float32") == 9 * 10 * 36


# The cache


def wait(job, seconds: float = 60) -> None:
    assert job.finished.wait(seconds)


def test_two_sessions_share_one_build(backend, options, tmp_path):
    indexes = IndexCache(folder=tmp_path, limit=1 << 30)
    corpus = sentences(600)
    before = backend.forward_passes
    jobs = []
    threads = [
        threading.Thread(target=lambda: jobs.append(indexes.request(backend, corpus, options))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(job) for job in jobs}) == 1
    wait(jobs[0])
    assert jobs[0].result is not None
    assert jobs[0].done == 600
    passes = backend.forward_passes - before
    assert indexes.request(backend, corpus, options) is jobs[0]
    # A new process finds it on the disk, and a larger index serves a smaller wish.
    fresh = IndexCache(folder=tmp_path, limit=1 << 30)
    less = backend.embed_options((2,), ("cls",), precision="float32")
    assert fresh.find(backend, corpus, less) is not None
    again = fresh.request(backend, corpus, less)
    wait(again)
    assert again.result is not None
    assert again.result.folder == jobs[0].result.folder
    assert backend.forward_passes - before == passes
    more = backend.embed_options((1,), ("cls",), precision="float32")
    assert fresh.find(backend, corpus, more) is None


def test_a_manifest_is_read_again_only_after_it_changed(backend, options, tmp_path, monkeypatch):
    for seed in range(3):
        build_index(backend, sentences(20, seed), tmp_path / f"index {seed}", options)
    read = []
    monkeypatch.setattr(cache, "read_manifest", lambda path: read.append(path.name) or read_manifest(path))
    indexes = IndexCache(folder=tmp_path, limit=1 << 30)
    unknown = sentences(20, seed=9)
    assert [indexes.find(backend, unknown, options) for _ in range(3)] == [None] * 3
    assert read == ["index 0", "index 1", "index 2"]
    os.utime(tmp_path / "index 1" / MANIFEST, (1, 1))
    assert indexes.find(backend, unknown, options) is None
    assert read[3:] == ["index 1"]
    assert indexes.find(backend, sentences(20, seed=2), options) is not None


def test_a_stopped_job_stays_so_until_it_is_asked_for_again(backend, options, tmp_path, monkeypatch):
    indexes = IndexCache(folder=tmp_path, limit=1 << 30)
    corpus, begun = sentences(20), threading.Event()

    def until_stopped(*_: object, is_stopped: Callable[[], bool], **__: object) -> None:
        begun.set()
        end = time.monotonic() + 60
        while not is_stopped():
            assert time.monotonic() < end
            time.sleep(0.001)
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(backend, "embed_into", until_stopped)
        job = indexes.request(backend, corpus, options)
        assert begun.wait(60)
        indexes.jobs.stop(job)
        wait(job)
    assert job.is_stopped
    assert indexes.request(backend, corpus, options) is job
    indexes.jobs.forget(job)
    again = indexes.request(backend, corpus, options)
    wait(again)
    assert again.result is not None


def test_a_failure_is_told_and_tried_again_later(backend, options, tmp_path, monkeypatch):
    indexes = IndexCache(folder=tmp_path, limit=1 << 30)
    usage = shutil.disk_usage(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(build.shutil, "disk_usage", lambda path: usage._replace(free=10))
        job = indexes.request(backend, sentences(20), options)
        wait(job)
    assert "has 10 bytes free." in str(job.error)
    assert indexes.request(backend, sentences(20), options) is job
    job.finished_at = time.monotonic() - 60
    again = indexes.request(backend, sentences(20), options)
    wait(again)
    assert again.result is not None


def test_the_cache_is_bounded_and_can_be_cleared(backend, options, tmp_path):
    indexes = IndexCache(folder=tmp_path, limit=1)
    for seed in range(3):
        job = indexes.request(backend, sentences(50, seed=seed), options)
        wait(job)
        assert job.result is not None
        indexes.jobs.drop([job])  # nobody has it open any more
        old = time.time() - 1000 + seed
        os.utime(job.result.folder / MANIFEST, (old, old))
    count, size = indexes.usage()
    assert count == 1  # the newest stays, whatever the limit
    assert (job.result.folder / MANIFEST).exists()
    assert indexes.clear() == size
    assert indexes.usage() == (0, 0)


def test_an_index_whose_folder_was_removed_is_built_again(backend, options, tmp_path):
    indexes = IndexCache(folder=tmp_path, limit=1 << 30)
    corpus = sentences(10)
    job = indexes.request(backend, corpus, options)
    wait(job)
    shutil.rmtree(job.result.folder)
    again = indexes.request(backend, corpus, options)
    wait(again)
    assert again is not job
    assert again.result is not None


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("BERT_INTERNALS_CACHE", str(tmp_path))
    monkeypatch.setenv("BERT_INTERNALS_CACHE_BYTES", "3M")
    assert cache_folder() == tmp_path / "indexes"
    assert cache_limit() == 3 << 20
    monkeypatch.delenv("BERT_INTERNALS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    assert cache_folder() == tmp_path / "c" / "bert-internals" / "indexes"


def stopped_after_a_block(backend, corpus, options, folder) -> None:
    seen: list[int] = []
    with pytest.raises(Stopped):
        build_index(
            backend, corpus, folder, options, "auto", sentences_per_block=BLOCK,
            progress=lambda done, _: seen.append(done), is_stopped=lambda: bool(seen) and seen[-1] > BLOCK,
        )  # fmt: skip


def test_columns_are_part_of_what_is_gone_on_with(backend, options, tmp_path):
    corpus = sentences(2 * BLOCK)
    plain = Corpus(corpus.name, corpus.texts, {}, corpus.report)
    stopped_after_a_block(backend, plain, options, tmp_path / "x")
    index = build_index(backend, corpus, tmp_path / "x", options, sentences_per_block=BLOCK)
    assert list(index.columns["label"]) == list(corpus.columns["label"])
    open_index(tmp_path / "x")  # whole
    other = Corpus(corpus.name, corpus.texts, {"label": ("y",) * len(corpus.texts)}, corpus.report)
    with pytest.raises(InputError, match="another index"):
        build_index(backend, other, tmp_path / "x", options)


def test_a_damaged_index_of_the_cache_is_built_again(backend, options, tmp_path):
    corpus = sentences(20)
    first = IndexCache(folder=tmp_path).request(backend, corpus, options)
    wait(first)
    (first.result.folder / "layer-00-mean.npy").write_bytes(b"x")
    again = IndexCache(folder=tmp_path).request(backend, corpus, options)
    wait(again)
    assert again.error is None
    assert_close(again.result.engine(0, "mean").vectors, backend.embed(corpus.texts, options=options)[0, 0])


def test_an_index_with_other_columns_does_not_serve(backend, options, tmp_path):
    corpus = sentences(20)
    indexes = IndexCache(folder=tmp_path)
    first = indexes.request(backend, corpus, options)
    wait(first)
    other = Corpus(corpus.name, corpus.texts, {"label": ("y",) * 20}, corpus.report)
    second = indexes.request(backend, other, options)
    wait(second)
    assert list(second.result.columns["label"]) == ["y"] * 20
    assert list(first.result.columns["label"]) == list(corpus.columns["label"])


@pytest.mark.parametrize("change", [{"prompt": "query: "}, {"max_length": 8}, {"precision": "bfloat16"}])
def test_an_index_of_texts_that_were_read_otherwise_does_not_serve(backend, options, tmp_path, change):
    corpus = sentences(20)
    indexes = IndexCache(folder=tmp_path)
    wait(indexes.request(backend, corpus, options, "float32"))
    assert indexes.find(backend, corpus, options, "float32") is not None
    assert indexes.find(backend, corpus, replace(options, **change), "float32") is None
    assert IndexCache(folder=tmp_path).find(backend, corpus, replace(options, **change), "float32") is None


@pytest.mark.parametrize(
    "other",
    [
        {"model": "another"},
        {"revision": "another"},
        {"corpus_hash": "another"},
        {"columns_hash": "another"},
        {"dtype": "float16"},
        *({"options": change} for change in ({"layers": (2,)}, {"poolings": ("cls",)}, {"max_length": 7})),
        *({"options": change} for change in ({"precision": "bfloat16"}, {"prompt": "query: "})),
    ],
    ids=str,
)
def test_vectors_that_were_made_otherwise_do_not_serve(backend, options, other):
    wanted = build.planned(backend, sentences(20), options, "float32")
    changes = {**other, "options": replace(options, **other["options"])} if "options" in other else other
    stored = replace(wanted, **changes)
    assert cache._is_usable(wanted, wanted, "float32")
    assert not cache._is_usable(stored, wanted, "float32")
    assert stored.identity != wanted.identity


def test_a_build_of_another_process_is_not_cleared_away(backend, options, tmp_path):
    indexes = IndexCache(folder=tmp_path)
    part = tmp_path / "abc.part"
    part.mkdir()
    (part / "layer.npy").write_bytes(b"x" * 10)
    with build.lock_of(tmp_path / "abc"):
        assert indexes.clear() == 0
        assert part.exists()
    assert indexes.clear() == 10
    assert not part.exists()


def test_unfinished_builds_count_and_the_oldest_goes(backend, options, tmp_path):
    part = tmp_path / "old.part"
    part.mkdir()
    (part / "layer.npy").write_bytes(b"x" * 50_000)
    indexes = IndexCache(folder=tmp_path, limit=40_000)
    wait(indexes.request(backend, sentences(10), options))
    assert not part.exists()


def test_no_more_is_removed_than_must_be(backend, options, tmp_path):
    for age, name in enumerate(("newer", "older", "oldest")):
        part = tmp_path / f"{name}.part"
        part.mkdir()
        (part / "layer.npy").write_bytes(b"x" * 50_000)
        (part / "done.json").write_text("{}")
        os.utime(part / "done.json", (10_000 - age, 10_000 - age))
    indexes = IndexCache(folder=tmp_path, limit=140_000)
    wait(indexes.request(backend, sentences(10), options))
    assert {path.name for path in tmp_path.glob("*.part")} == {"newer.part", "older.part"}


def test_sixteen_jobs_are_kept(backend, options, tmp_path):
    indexes = IndexCache(folder=tmp_path)
    jobs = [indexes.request(backend, sentences(4, seed), options) for seed in range(18)]
    for job in jobs:
        wait(job)
    wait(indexes.request(backend, sentences(4, 99), options))
    assert len(indexes.jobs.finished()) == 16
    assert indexes.request(backend, sentences(4, 10), options) is jobs[10]


@pytest.mark.parametrize("asked_before", [False, True])
def test_float32_is_not_served_by_float16(backend, options, tmp_path, asked_before):
    corpus = sentences(20)
    half = IndexCache(folder=tmp_path).request(backend, corpus, options, "float16")
    wait(half)
    assert half.result.info.dtype == "float16"
    indexes = IndexCache(folder=tmp_path)
    if asked_before:  # "auto" would build float32 and takes what is there; that answer must not serve the stricter wish
        assert indexes.request(backend, corpus, options).result.info.dtype == "float16"
    assert indexes.find(backend, corpus, options).result.folder == half.result.folder
    assert indexes.find(backend, corpus, options, "float32") is None
    exact = indexes.request(backend, corpus, options, "float32")
    wait(exact)
    assert exact.result.info.dtype == "float32"
    assert exact.result.engine(2, "mean").vectors.dtype == np.float32
    assert exact.result.folder != half.result.folder
    assert indexes.find(backend, corpus, options, "float32") is exact
    assert indexes.find(backend, corpus, options, "float16").result.folder == half.result.folder
    assert indexes.request(backend, corpus, options, "float32") is exact


def test_an_index_that_was_built_meanwhile_serves_work_that_waited(backend, tmp_path):
    corpus, gate = sentences(20), threading.Event()
    queue = Queue({"embedding": Lane(), "short embedding": Lane()})
    indexes = IndexCache(queue, tmp_path)
    queue.put(Job("before them"), lambda report_progress, is_stopped: gate.wait(20), "short embedding")
    more, less = backend.embed_options((0, 1, 2), ("mean", "cls")), backend.embed_options((1,), ("cls",))
    first, second = (indexes.request(backend, corpus, options, "float32") for options in (more, less))
    assert first is not second
    gate.set()
    wait(first)
    passes = backend.forward_passes
    wait(second)
    assert second.result.folder == first.result.folder
    assert backend.forward_passes == passes
    assert indexes.usage()[0] == 1
    # What serves under another's name is open all the same, and stays.
    indexes.limit = 1
    indexes.jobs.drop([first])
    wait(indexes.request(backend, sentences(20, seed=1), more, "float32"))
    assert (second.result.folder / MANIFEST).exists()


def test_an_index_that_is_open_is_found_while_folders_are_removed(backend, options, tmp_path):
    indexes, corpus = IndexCache(folder=tmp_path), sentences(20)
    job = indexes.request(backend, corpus, options)
    wait(job)
    more = backend.embed_options((0,), ("mean",), precision="float32")  # served by the same index
    found = []

    def ask():
        found.append(indexes.find(backend, corpus, options))
        found.append(indexes.request(backend, corpus, options, person="Ann"))
        found.append(indexes.request(backend, corpus, more, "float32", person="Ben"))

    asking = threading.Thread(target=ask, daemon=True)
    with indexes._lock:  # as while the folder of another index is removed
        asking.start()
        asking.join(20)
        assert found == [job] * 3


def test_a_short_corpus_does_not_wait_behind_long_ones(backend, options, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "SHORT", 20)
    gate, queue = threading.Event(), Queue({"embedding": Lane(), "short embedding": Lane()})
    long = Job("a long corpus")
    queue.put(long, lambda report_progress, is_stopped: gate.wait(60), "embedding")
    job = IndexCache(queue, tmp_path).request(backend, sentences(20), options)
    wait(job)
    assert not long.finished.is_set()
    gate.set()
    assert long.finished.wait(20)


def test_whoever_leaves_a_build_does_not_end_it_for_others(backend, options, tmp_path):
    corpus, gate = sentences(600), threading.Event()
    queue = Queue({"embedding": Lane(), "short embedding": Lane()})
    indexes = IndexCache(queue, tmp_path)
    queue.put(Job("before them"), lambda report_progress, is_stopped: gate.wait(20), "short embedding")
    job = indexes.request(backend, corpus, options, person="Ann")
    assert indexes.request(backend, corpus, options, person="Ben") is job
    indexes.jobs.stop(job, "Ann")
    assert job.is_stopped_for("Ann")
    assert not job.is_stopped_for("Ben")
    gate.set()
    wait(job)
    assert not job.is_stopped
    assert job.result.info.sentences == 600


def test_the_caches_folders_and_files_are_private(tmp_path, embedded):
    (tmp_path / "indexes").mkdir(mode=0o755)  # of an earlier version
    indexes = IndexCache(folder=tmp_path / "indexes")
    corpus = Corpus("c", ("A cat slept.", "Lava reached the sea."))
    job = indexes.request(embedded, corpus, embedded.embed_options(precision="float32"))
    assert job.finished.wait(60)
    assert job.error is None
    modes = {path.is_dir(): path.stat().st_mode & 0o777 for path in (tmp_path / "indexes").rglob("*")}
    everything = [tmp_path / "indexes", *(tmp_path / "indexes").rglob("*")]
    for path in everything:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    assert modes == {True: 0o700, False: 0o600}


def _swap_offsets(folder: Path) -> None:
    path = folder / "texts.offsets.npy"
    offsets = np.load(path)
    offsets[[2, 3]] = offsets[[3, 2]]
    np.save(path, offsets)


def _change_a_byte(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        content = bytearray((folder / name).read_bytes())
        content[len(content) // 2] ^= 0xFF
        (folder / name).write_bytes(content)

    return change


DAMAGES = [
    (_swap_offsets, "texts.offsets.npy"),
    (_change_a_byte("texts.utf8"), "texts.utf8"),
    (_change_a_byte("layer-00-mean.npy"), "layer-00-mean.npy"),
    (_change_a_byte("layer-02-cls.norms.npy"), "layer-02-cls.norms.npy"),
]


@pytest.mark.parametrize(("damage", "name"), DAMAGES)
def test_damage_that_leaves_every_size_is_noticed(backend, options, tmp_path, damage, name, capsys):
    folder = tmp_path / "x"
    build_index(backend, sentences(8), folder, options)
    assert main(["check", str(folder)]) == 0
    assert "is undamaged: " in capsys.readouterr().out
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    damage(folder)
    assert {path.name: path.stat().st_size for path in folder.iterdir()} == sizes
    with pytest.raises(InputError, match=f"{name} has other content"):
        open_index(folder)
    assert main(["check", str(folder)]) == 2
    said = capsys.readouterr().err
    assert name in said
    assert said.count("\n") == 1


def test_a_large_file_is_sampled_when_opened_and_compared_whole_by_check(backend, options, tmp_path, monkeypatch):
    monkeypatch.setattr(checksums, "SAMPLED_BYTES", 1_000)
    monkeypatch.setattr(checksums, "BLOCK_BYTES", 8)
    folder = tmp_path / "x"
    build_index(backend, sentences(64), folder, options)
    monkeypatch.setattr(checksums, "WHOLE_BYTES", 0)
    path = folder / "layer-02-mean.npy"
    content = path.read_bytes()
    for position, is_sampled in ((len(content) - 1, True), (len(content) // 2 + 100, False)):
        path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
        if is_sampled:
            with pytest.raises(InputError, match="other content"):
                open_index(folder)
        else:
            assert len(open_index(folder).texts) == 64
        with pytest.raises(InputError, match=r"layer-02-mean\.npy has other content"):
            check_index(folder)


def test_an_index_of_an_earlier_version_opens_and_check_says_so(backend, options, tmp_path, capsys):
    folder = tmp_path / "x"
    built = build_index(backend, sentences(8), folder, options)
    content = json.loads((folder / MANIFEST).read_text())
    del content[OWN_CHECKSUM]
    (folder / MANIFEST).write_text(json.dumps(content))
    assert list(open_index(folder).texts) == list(built.texts)
    del content["checksums"]
    (folder / MANIFEST).write_text(json.dumps(content))
    assert list(open_index(folder).texts) == list(built.texts)
    assert main(["check", str(folder)]) == 0
    assert "has no checksums" in capsys.readouterr().out
    _change_a_byte("texts.utf8")(folder)
    with pytest.raises(InputError, match="components check"):
        list(open_index(folder).texts)
    _swap_offsets(folder)
    with pytest.raises(InputError, match="do not belong together"):
        open_index(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"corpus": "', '"corpus": "another '),
        lambda text: text.replace('"truncated": 0', '"truncated": 5'),
        lambda text: text.replace('"columns_hash": "', '"columns_hash": "0'),
    ],
)
def test_a_manifest_with_other_content_is_refused(backend, options, tmp_path, change):
    """It would still be valid, and its numbers would reach the pages."""
    folder = tmp_path / "x"
    built = build_index(backend, sentences(8), folder, options)
    text = (folder / MANIFEST).read_text()
    (folder / MANIFEST).write_text(json.dumps(json.loads(text)))  # other spaces say the same
    assert open_index(folder).info == built.info
    (folder / MANIFEST).write_text(change(text))
    with pytest.raises(
        InputError, match=r"damaged manifest\.json \(it has other content than when the index was written\)"
    ):
        open_index(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"sentences": 8', '"sentences": Infinity'),
        lambda text: text.replace('"sentences": 8', '"sentences": 1e999'),
        lambda text: text.replace('"sentences": 8', '"sentences": NaN'),
        lambda text: text.replace('"tokens": ', '"more": ' + "[" * 100_000 + "]" * 100_000 + ', "tokens": '),
        lambda text: text.replace('"files": {', '"files": {"texts": [], '),
        lambda text: text.replace('"files": {', '"files": {"texts": "\\n", '),
        lambda text: text.replace('"checksums": {', '"checksums": {"texts": 3, '),
        lambda text: text.replace('"files": {', '"files": [], "other": {'),
        lambda text: text.replace('"format": 2', '"format": "' + "x" * 5_000 + '"'),
    ],
)
def test_a_hostile_manifest_is_refused_in_one_line(backend, options, tmp_path, change, capsys):
    folder = tmp_path / "x"
    build_index(backend, sentences(8), folder, options)
    text = (folder / MANIFEST).read_text()
    (folder / MANIFEST).write_text(change(text))
    assert (folder / MANIFEST).read_text() != text
    assert main(["check", str(folder)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert len(said) < 600


def test_a_clock_that_was_set_back_changes_nothing(backend, options, tmp_path):
    """The files of the cache are then of the future. What is used last still goes last."""
    indexes = IndexCache(folder=tmp_path, limit=1)
    first = indexes.request(backend, sentences(3), options)
    wait(first)
    year_2100 = 4_102_444_800
    os.utime(first.result.folder / MANIFEST, (year_2100, year_2100))
    again = IndexCache(folder=tmp_path, limit=1)
    found = again.request(backend, sentences(3), options)
    wait(found)
    assert found.result.folder == first.result.folder
    assert (found.result.folder / MANIFEST).stat().st_mtime < year_2100  # its use just now counts
    second = again.request(backend, sentences(4), options)
    wait(second)
    again.jobs.drop([found])
    third = again.request(backend, sentences(5), options)
    wait(third)
    assert not first.result.folder.exists()
    assert third.result.folder.exists()


def test_a_build_of_another_server_is_waited_for_and_serves(backend, options, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "WAIT_SECONDS", 0.01)
    indexes, wanted = IndexCache(folder=tmp_path), build.planned(backend, sentences(5), options, "auto")
    with build.lock_of(tmp_path / wanted.identity):
        waiting = indexes.request(backend, sentences(5), options)
        assert not waiting.finished.wait(0.2)
        assert waiting.title.startswith("Another server is embedding")
        wait(indexes.request(backend, sentences(6), options))  # other work does not wait behind it
        leaving = IndexCache(folder=tmp_path)
        stopped = leaving.request(backend, sentences(5), options)
        leaving.jobs.stop(stopped)
        assert stopped.finished.wait(20)
        assert stopped.is_stopped
        assert not waiting.finished.is_set()
    wait(waiting)
    assert waiting.result.info.identity == wanted.identity


def test_a_file_that_vanishes_does_not_count(tmp_path):
    """As the files of a graph do that is being built: a link to nothing is listed too, and has no size."""
    (tmp_path / "vectors").write_bytes(bytes(10))
    (tmp_path / "graph.new").symlink_to(tmp_path / "gone")
    index = VectorIndex(tmp_path, info=None, texts=None, columns={}, engines={})
    assert index.nbytes == cache._size(tmp_path) == 10


# --- A folder from somebody else


def rewritten(folder: Path, change: Callable[[dict], None]) -> None:
    """The manifest changed, with a checksum of its own that fits."""
    content = json.loads((folder / MANIFEST).read_text())
    content.pop(OWN_CHECKSUM)
    change(content)
    (folder / MANIFEST).write_text(json.dumps({**content, OWN_CHECKSUM: checksums.checksum_of_json(content)}))


def without_checksums(content: dict) -> None:
    """As in indexes of earlier versions."""
    del content["checksums"]


@pytest.fixture
def foreign(backend, options, tmp_path: Path) -> Path:
    return build_index(backend, Corpus("c", ("the cat sat", "a dog ran")), tmp_path / "foreign", options).folder


def test_a_link_shows_no_file_outside_the_folder(foreign: Path, tmp_path: Path) -> None:
    outside, path = tmp_path / "outside", foreign / "texts.utf8"
    outside.write_bytes(b"x" * path.stat().st_size)  # of the size that the manifest names
    rewritten(foreign, without_checksums)
    path.unlink()
    path.symlink_to(outside)
    with pytest.raises(InputError, match=r"texts\.utf8 is a link that leads out of it"):
        open_index(foreign)
    path.unlink()
    path.write_bytes(outside.read_bytes())
    assert open_index(foreign).texts[0] == "xxxxxxxxxxx"  # the same file in the folder is read
    path.rename(foreign / "elsewhere")
    path.symlink_to("elsewhere")
    assert open_index(foreign).texts[0] == "xxxxxxxxxxx"  # and so is a link that stays in it
    manifest = foreign / MANIFEST
    manifest.rename(tmp_path / MANIFEST)
    manifest.symlink_to(tmp_path / MANIFEST)
    with pytest.raises(InputError, match=r"manifest\.json is a link that leads out of it"):
        open_index(foreign)


def test_a_folder_that_is_itself_a_link_is_opened(foreign: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(foreign)
    assert len(open_index(tmp_path / "link").texts) == 2


def test_a_file_of_holes_is_refused(foreign: Path) -> None:
    path = foreign / "layer-00-mean.norms.npy"
    os.truncate(path, 1 << 40)
    rewritten(foreign, lambda content: content["files"].update({path.name: 1 << 40}) or without_checksums(content))
    with pytest.raises(InputError, match=r"nearly all of which are missing on the disk"):
        open_index(foreign)


def test_holes_are_told_from_data(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(3 << 20))  # zeros that are there
    assert not checksums.is_hollow(path)
    with path.open("r+b") as file:
        file.truncate(400 << 20)
    assert not checksums.is_hollow(path)  # a 134th of it is there
    with path.open("r+b") as file:
        file.truncate(1 << 30)
    assert checksums.is_hollow(path)
    path.write_bytes(b"")
    os.truncate(path, 64 << 20)
    assert checksums.is_hollow(path)
    os.truncate(path, 1 << 20)  # small files are read whole in any case
    assert not checksums.is_hollow(path)


def test_a_large_file_without_a_sample_is_not_read_whole(foreign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksums, "SAMPLED_BYTES", 16)
    with pytest.raises(InputError, match="has other content than when the index was written"):
        open_index(foreign)


def test_vectors_of_another_size_than_the_models_are_refused(backend, foreign: Path) -> None:
    index = open_index(foreign)
    other = replace(index.info, dim=index.info.dim + 1)
    with pytest.raises(InputError, match=r"The index has vectors of 33 numbers, and .* has 32"):
        query_vectors(backend, ["the cat"], other)


def test_a_build_goes_on_in_no_folder_with_links(backend, options, tmp_path: Path) -> None:
    corpus, folder, outside = Corpus("c", ("the cat sat", "a dog ran")), tmp_path / "index", tmp_path / "outside"

    def stop(*_: object) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        build_index(backend, corpus, folder, options, embed=stop)
    path = tmp_path / "index.part" / "layer-00-mean.npy"
    outside.write_bytes(path.read_bytes())
    before = outside.read_bytes()
    path.unlink()
    path.symlink_to(outside)
    assert build_index(backend, corpus, folder, options).info.sentences == 2
    assert outside.read_bytes() == before
    assert not (folder / path.name).is_symlink()
