"""The vectors of an index that is being built: files of their final size, and a record of the blocks that are in them.

A block is some thousand consecutive sentences. Its vectors are flushed before the record says that they are there, and the
record is replaced as a whole: whatever ends the build, a block that the record names is complete, and is never embedded
again. Blocks may arrive in any order, since several machines may compute them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float32, Int64
from components.errors import InputError
from components.folders import write_json
from components.jobs import IsStopped, ReportProgress, part_of
from components.model.embedding.disk import writable_array
from components.model.embedding.options import SENTENCES_PER_BLOCK
from components.model.files.published import read_json
from components.retrieval.index.folder import IndexInfo, norm_file, vector_file

if TYPE_CHECKING:
    from components.model.backend import Backend

DONE = "done.json"


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("no number from 0 on")
    return value


class UnfinishedVectors:
    """The vector files of an unfinished index, open for writing. One process at a time may use it."""

    def __init__(self, folder: Path, info: IndexInfo, sentences_per_block: int = SENTENCES_PER_BLOCK) -> None:
        """Open the files of `folder` and read its record; one of blocks of another size, or a damaged one, counts for nothing.

        Raises OSError for files that are not those of this index.
        """
        self.info, self.sentences_per_block = info, sentences_per_block
        self.computed_on: dict[str, str | int] = {}
        self._record = folder / DONE
        record = read_json(self._record)
        # The blocks before `_first` are all complete, and counted together; the others that are come by themselves.
        self._first, self._tokens, self._truncated = 0, 0, 0
        self._later: dict[int, tuple[int, int]] = {}
        with suppress(TypeError, ValueError, AttributeError):
            if record.get("sentences_per_block", SENTENCES_PER_BLOCK) == sentences_per_block:
                later = {
                    _count(int(block)): (_count(its_tokens), _count(its_truncated))
                    for block, (its_tokens, its_truncated) in record.get("later", {}).items()
                }
                first, tokens, truncated = (_count(record.get(name, 0)) for name in ("blocks", "tokens", "truncated"))
                if max([first, *(block + 1 for block in later)]) <= self._blocks:
                    self._first, self._tokens, self._truncated, self._later = first, tokens, truncated, later
        cells, shape = list(product(info.options.layers, info.options.poolings)), (info.sentences, info.dim)
        self._vectors = [writable_array(folder / vector_file(*cell), shape, info.dtype) for cell in cells]
        self._norms = [writable_array(folder / norm_file(*cell), shape[:1], np.float32) for cell in cells]

    @property
    def _blocks(self) -> int:
        return -(-self.info.sentences // self.sentences_per_block)

    def waiting(self) -> list[int]:
        """The numbers of the blocks that are still to be embedded."""
        return [block for block in range(self._first, self._blocks) if block not in self._later]

    def rows(self, block: int) -> slice:
        """The sentences of a block."""
        start = block * self.sentences_per_block
        return slice(start, min(start + self.sentences_per_block, self.info.sentences))

    @property
    def sentences(self) -> int:
        """How many sentences the complete blocks have."""
        together = min(self._first * self.sentences_per_block, self.info.sentences)
        return together + sum(rows.stop - rows.start for rows in map(self.rows, self._later))

    @property
    def tokens(self) -> int:
        return self._tokens + sum(tokens for tokens, _ in self._later.values())

    @property
    def truncated(self) -> int:
        return self._truncated + sum(truncated for _, truncated in self._later.values())

    def keep(self, rows: Int64 | slice, vectors: NDArray[np.floating]) -> None:
        """Store vectors [layer, pooling, sentence, dim] of these sentences of the corpus, and their lengths.

        Raises InputError for a number that is too large for the number format of the index.
        """
        for number, values in enumerate(vectors.reshape(-1, *vectors.shape[2:])):  # [cell, sentence, dim]
            with np.errstate(over="ignore"):  # a number that float16 cannot hold is refused below
                stored = values.astype(self.info.dtype)
            self._vectors[number][rows] = stored
            lengths = np.linalg.norm(stored.astype(np.float32), axis=1)
            if not np.isfinite(lengths).all():
                raise InputError(
                    f"A vector has a number too large for {self.info.dtype}.",
                    "All numbers must be small enough for the index to store.",
                    "Use --dtype float32, or another model.",
                )
            self._norms[number][rows] = lengths

    def finish(self, block: int, tokens: int, truncated: int) -> None:
        """Record that all vectors of a block have been kept, with its tokens and truncated sentences."""
        for array in (*self._vectors, *self._norms):
            array.flush()
        if block >= self._first:  # else it is counted already
            self._later[block] = tokens, truncated
        while self._first in self._later:
            tokens, truncated = self._later.pop(self._first)
            self._first, self._tokens, self._truncated = (
                self._first + 1,
                self._tokens + tokens,
                self._truncated + truncated,
            )
        content: dict[str, Any] = {
            "sentences_per_block": self.sentences_per_block,
            "blocks": self._first,
            "tokens": self._tokens,
            "truncated": self._truncated,
            "later": {str(number): counts for number, counts in sorted(self._later.items())},
        }
        write_json(self._record, content)


Embed = Callable[["Backend", Sequence[str], UnfinishedVectors, ReportProgress, IsStopped], None]


def embed_here(
    backend: Backend,
    texts: Sequence[str],
    vectors: UnfinishedVectors,
    progress: ReportProgress,
    is_stopped: IsStopped,
) -> None:
    """Embed the waiting blocks in this process, one after the other. `progress(done, total)` counts sentences."""
    progress(vectors.sentences, len(texts))
    for block in vectors.waiting():
        rows = vectors.rows(block)

        def keep(batch: Int64, found: Float32, start: int = rows.start) -> None:
            vectors.keep(start + batch, found)

        report = backend.embed_into(
            texts[rows],
            vectors.info.options,
            keep,
            progress=part_of(progress, vectors.sentences, len(texts)),
            is_stopped=is_stopped,
        )
        vectors.finish(block, report.tokens, report.truncated)
    vectors.computed_on = backend.embedder.computed_on()
