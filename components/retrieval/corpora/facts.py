"""Facts about a corpus before it is embedded: its size, the lengths of its sentences, and what embedding will cost.

Lengths are given as numbers of tokens, so no model is needed here. The estimate is arithmetic: vectors take
sentences x layers x poolings x dimensions numbers, and the time is the number of sentences divided by a measured speed.
It does not know how well batches fill, what else the machine does, or how fast its disk is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from components.arrays import Int64, read_only
from components.retrieval.corpora.texts import Texts

TEXT_BYTES_PER_TOKEN = 5  # English: 4 to 5 letters and a space; a word of two pieces has two tokens
STRING_BYTES = 60  # that Python adds to each string


@dataclass(frozen=True, eq=False)
class CorpusFacts:
    sentences: int
    token_lengths: Int64  # [sentence], before truncation
    max_length: int
    truncated: int  # sentences with more tokens than max_length

    @property
    def truncated_share(self) -> float:
        return self.truncated / self.sentences

    @property
    def mean_tokens(self) -> float:
        """Mean number of tokens that reach the model, after truncation."""
        return float(np.minimum(self.token_lengths, self.max_length).mean())

    def histogram(self, bins: int = 40) -> tuple[Int64, Int64]:
        """Numbers of sentences [bin] and the edges of the bins [bin + 1], in tokens; all bins have the same whole width."""
        longest = int(self.token_lengths.max())
        width = max(1, -(-(longest + 1) // bins))
        edges = np.arange(0, longest + 1 + width, width, dtype=np.int64)  # [bin + 1]
        counts = np.histogram(self.token_lengths, edges)[0].astype(np.int64)  # [bin]
        return counts, edges


@dataclass(frozen=True)
class IndexEstimate:
    seconds: float
    memory_bytes: int  # the texts, and the vectors of the layer and pooling that is searched, in float32
    disk_bytes: int  # all vectors and the texts


def corpus_facts(corpus: Texts, lengths: Int64, max_length: int) -> CorpusFacts:
    """Facts from the number of tokens of each sentence, [sentence], before truncation."""
    lengths = np.array(lengths, dtype=np.int64)
    if lengths.shape != (len(corpus.texts),):
        raise ValueError(f"{len(corpus.texts)} texts but lengths of shape {lengths.shape}")
    return CorpusFacts(
        sentences=len(corpus.texts),
        token_lengths=read_only(lengths),
        max_length=max_length,
        truncated=int(np.count_nonzero(lengths > max_length)),
    )


def estimate(
    sentences: int,
    mean_tokens: float,
    dim: int,
    layers: int,
    poolings: int,
    dtype_bytes: int,
    sentences_per_second: float,
) -> IndexEstimate:
    """The cost of embedding and storing a corpus with this many layers and poolings.

    `sentences_per_second` is the speed on sentences of this mean length.
    """
    if min(sentences, dim, layers, poolings, dtype_bytes) < 1 or mean_tokens <= 0 or sentences_per_second <= 0:
        raise ValueError("an estimate needs positive numbers")
    text = round(sentences * mean_tokens * TEXT_BYTES_PER_TOKEN)
    vectors = sentences * dim * layers * poolings * dtype_bytes
    return IndexEstimate(
        seconds=sentences / sentences_per_second,
        memory_bytes=text + sentences * (STRING_BYTES + dim * 4),
        disk_bytes=vectors + text,
    )
