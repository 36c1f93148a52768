"""Building an index: block by block, resumable, and moved into place when it is complete.

The folder grows as `NAME.part`. Its vector files have their final size from the start, so that a full disk is noticed at
once. After each block (4,096 sentences) the vectors are flushed, and then a small record says how many blocks are done: a
build that was killed or stopped continues after the last complete block and writes the same bytes as without the
interruption, since the batches are the same (components.retrieval.index.unfinished). A lock file lets only one process build
an index.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from components.errors import InputError
from components.folders import check_writable, is_unfinished, write_json
from components.jobs import IsStopped, ReportProgress
from components.model.embedding.disk import reserve_array
from components.model.embedding.options import SENTENCES_PER_BLOCK, EmbedOptions
from components.model.files.published import read_json
from components.retrieval.corpora.texts import Texts, bytes_of_texts, write_texts
from components.retrieval.index import folder as index_folder
from components.retrieval.index.folder import DType, IndexInfo, VectorIndex, norm_file, open_index, vector_file
from components.retrieval.index.unfinished import DONE, Embed, UnfinishedVectors, embed_here
from components.sizes import in_words

if TYPE_CHECKING:
    from components.model.backend import Backend

JOB = "job.json"


def needed_bytes(sentences: int, dim: int, options: EmbedOptions, dtype: DType) -> int:
    """Bytes of vectors and lengths on disk, without the texts."""
    bytes_per_vector = dim * (4 if dtype == "float32" else 2) + 4
    return sentences * bytes_per_vector * len(options.layers) * len(options.poolings)


def planned(backend: Backend, corpus: Texts, options: EmbedOptions, dtype: str) -> IndexInfo:
    """What the manifest of an index will say, without the counts of tokens. Raises InputError for another number format.

    Builds with equal `identity` can be continued or reused.
    """
    dim, sentences = backend.vector_size(options.poolings), len(corpus.texts)
    return IndexInfo(
        model=backend.spec.key,
        revision=backend.revision,
        options=options,
        dtype=index_folder.resolve_dtype(dtype, sentences, dim, options),
        dim=dim,
        sentences=sentences,
        tokens=0,
        truncated=0,
        corpus=corpus.name,
        corpus_hash=corpus.content_hash,
        columns=tuple(corpus.columns),
        columns_hash=corpus.columns_hash,
    )


def lock_of(folder: Path) -> FileLock:
    """The lock held while this index is built or removed; it never waits."""
    return FileLock(folder.with_name(folder.name.removesuffix(".part") + ".lock"), timeout=0, mode=0o600)


def check_folder(folder: Path) -> None:
    """Raise InputError for a folder in which no index could be built; an index that is there already needs no writing.

    A question to ask before the corpus is read and the model is loaded.
    """
    folder = _whole_path(folder)
    try:
        if not folder.exists():
            check_writable(folder.parent)
    except OSError as problem:
        raise _not_writable(folder, problem) from problem


def _whole_path(folder: Path) -> Path:
    """The absolute path, without "..": a lock file beside that would have no place. Raises InputError."""
    try:
        return Path(os.path.abspath(folder.expanduser()))
    except RuntimeError as problem:
        raise InputError(
            f"{folder} begins with the home folder of a user who does not exist.",
            "The index needs the path of a folder.",
            "Choose another folder.",
        ) from problem


def build_index(
    backend: Backend,
    corpus: Texts,
    folder: Path,
    options: EmbedOptions,
    dtype: str = "auto",
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
    embed: Embed = embed_here,
    sentences_per_block: int = SENTENCES_PER_BLOCK,
) -> VectorIndex:
    """Embed a corpus into a folder, continue an unfinished build, or open the index that is already there.

    `embed` computes the vectors: in this process, or as components.distributed.embedding does. An unfinished build goes on
    with any of them. `progress(done, total)` counts sentences. Raises InputError for a folder with other content, for a full
    disk, or while another process builds the same index. After Stopped the build can be continued.
    """
    info = planned(backend, corpus, options, dtype)
    folder = _whole_path(folder)
    try:
        return built(backend, corpus, folder, info, progress, is_stopped, embed, sentences_per_block)
    except Timeout as problem:
        raise InputError(
            f"Another process is building {folder}.",
            "Only one process at a time can build a folder.",
            "Wait until it is finished, or choose another folder.",
        ) from problem
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _full(folder, info, corpus) from problem
        raise _not_writable(folder, problem) from problem


def built(
    backend: Backend,
    corpus: Texts,
    folder: Path,
    info: IndexInfo,
    progress: ReportProgress,
    is_stopped: IsStopped,
    embed: Embed = embed_here,
    sentences_per_block: int = SENTENCES_PER_BLOCK,
) -> VectorIndex:
    """`build_index` of what is planned, for callers who have a folder of their own.

    Raises filelock.Timeout while another process builds the same index, and OSError where nothing can be written.
    """
    if folder.exists():
        return _already_there(folder, info)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with lock_of(folder) as lock:
        if folder.exists():  # another process has just finished it
            return _already_there(folder, info)
        part = folder.with_name(folder.name + ".part")
        try:
            _prepare(part, info, corpus)
        except BaseException:  # nothing was begun here
            Path(lock.lock_file).unlink(missing_ok=True)
            raise
        vectors = UnfinishedVectors(part, info, sentences_per_block)
        embed(backend, corpus.texts, vectors, progress, is_stopped)
        info = replace(
            info,
            tokens=vectors.tokens,
            truncated=vectors.truncated,
            versions=versions(),
            computed_on=vectors.computed_on,
        )
        del vectors  # Windows moves no folder while its files are mapped into memory
        index_folder.write_manifest(part, info, leave_out=(JOB, DONE))
        part.rename(folder)
        _forget_build(folder)  # after the move: a build killed in between leaves a complete index
        return open_index(folder)


def _already_there(folder: Path, expected: IndexInfo) -> VectorIndex:
    if folder.is_dir() and not any(folder.iterdir()):
        raise InputError(
            f"{folder} already exists and is empty.",
            "The folder must not exist yet, since a complete index is moved there.",
            "Remove the folder, or choose another name.",
        )
    index = open_index(folder)  # refuses other folders
    info = index.info
    if info.identity != expected.identity:
        raise InputError(
            f"{folder} contains another index: {info.sentences:,} sentences of {info.corpus} by {info.model}.",
            "An index continues only with the same model, corpus and options; another one needs a folder that does not exist.",
            "Choose another folder, or remove this one.",
        )
    if _read(folder / JOB).get("job") == info.identity:
        with suppress(OSError):  # the index may only be read
            _forget_build(folder)
    return index


def _forget_build(folder: Path) -> None:
    """Remove what only an unfinished index needs, last what tells that it is ours."""
    for name in (DONE, JOB):
        (folder / name).unlink(missing_ok=True)


def remove_unfinished(part: Path) -> None:
    """Remove an unfinished index; the lock is held. Raises OSError.

    Killed in between, it is still known as one until its last file is gone, and never taken for one that can be continued.
    """
    (part / DONE).unlink(missing_ok=True)
    for path in part.iterdir():
        if path.name != JOB:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    _forget_build(part)
    part.rmdir()


def _prepare(part: Path, info: IndexInfo, corpus: Texts) -> None:
    """Keep the unfinished folder of an earlier build of the same index, or create a new one."""
    if part.is_symlink():  # what it leads to is not ours
        raise _not_begun(part)
    if part.exists():
        for name in (JOB, DONE, index_folder.MANIFEST):
            for path in part.glob(f"{name}.*"):
                if is_unfinished(path.name) and path.is_file():  # a killed build was writing it
                    path.unlink()
        is_same_job = _read(part / JOB).get("job") == info.identity and (part / DONE).exists()
        # The folder may come from somebody else. A pipe or a device among the files would keep the build waiting for ever, by
        # a link it would write elsewhere, and other texts or columns would be shown as those of this corpus.
        if is_same_job and _is_of(part, info):
            for name in index_folder.text_files_of(info):
                (part / name).unlink(missing_ok=True)  # what shares its bytes under another name stays as it is
            _write_texts(part, corpus)
            return
        # Killed before the record of the job was there, a build leaves an empty folder.
        if not (part / JOB).exists() and any(part.iterdir()):
            raise _not_begun(part)
        remove_unfinished(part)  # of another corpus, model or options
    if _bytes_of(info, corpus) > shutil.disk_usage(part.parent).free:
        raise _full(part, info, corpus)
    part.mkdir()
    try:
        # The record of the job comes first, so that a build killed here leaves a folder that can be recognised.
        write_json(part / JOB, {"job": info.identity})
        for cell in product(info.options.layers, info.options.poolings):
            reserve_array(part / vector_file(*cell), (info.sentences, info.dim), info.dtype)
            reserve_array(part / norm_file(*cell), (info.sentences,), "float32")
        _write_texts(part, corpus)
        write_json(part / DONE, {"blocks": 0, "tokens": 0, "truncated": 0})
    except OSError:
        with suppress(OSError):
            remove_unfinished(part)
        raise


def _not_begun(part: Path) -> InputError:
    return InputError(
        f"{part} exists and is not an unfinished index.",
        "The unfinished index needs a name that is not in use.",
        "Remove it, or choose another folder.",
    )


def _is_of(part: Path, info: IndexInfo) -> bool:
    """Whether an unfinished folder holds the files of this index and no others, its arrays in their shapes."""
    allowed = {*index_folder.files_of(info), JOB, DONE, index_folder.MANIFEST}
    if not all(path.is_file() and not path.is_symlink() and path.name in allowed for path in part.iterdir()):
        return False
    try:
        UnfinishedVectors(part, info)
    except OSError:
        return False
    return True


def _write_texts(part: Path, corpus: Texts) -> None:
    write_texts(part / "texts", corpus.texts)
    for number, column in enumerate(corpus.columns.values()):
        write_texts(part / f"column-{number}", column)


def _read(path: Path) -> dict[str, Any]:
    content = read_json(path)
    return content if isinstance(content, dict) else {}


def _bytes_of(info: IndexInfo, corpus: Texts) -> int:
    """Bytes of all files of an index, but for some thousand of its manifest."""
    vectors = needed_bytes(info.sentences, info.dim, info.options, info.dtype)
    return vectors + sum(bytes_of_texts(texts) for texts in (corpus.texts, *corpus.columns.values()))


def _full(folder: Path, info: IndexInfo, corpus: Texts) -> InputError:
    free = shutil.disk_usage(folder.parent).free
    return InputError(
        f"The disk of {folder.parent} has {in_words(free)} free.",
        f"{in_words(_bytes_of(info, corpus))} are needed: {info.sentences:,} sentences, {len(info.options.layers)} layers, "
        f"{len(info.options.poolings)} poolings.",
        "Choose fewer layers or poolings, free some space, or choose a folder on another disk.",
    )


def _not_writable(folder: Path, problem: OSError) -> InputError:
    return InputError(
        f"{folder} could not be written: {problem.strerror or problem}.",
        "The index needs a folder with permission to write.",
        "Choose another folder.",
    )


def versions(names: Sequence[str] = ("torch", "transformers", "numpy")) -> dict[str, str]:
    """The versions of packages, by default of those on which vectors depend."""
    return {name: version(name) for name in names}
