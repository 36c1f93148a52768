"""Minimal pairs: two sentences that differ in a word or a few, so that their meanings differ. Columns first, second, kind.

Beside them stand paraphrases, pairs with the same meaning in different words: their kind is "paraphrase". `kind` is
optional; without it all pairs are of one kind. In the pairs that come with the dashboard (ORDERED) the order of the two
sentences has a meaning: the second one is negated, has the larger number, is later, or says less.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from components.arrays import Int64
from components.errors import InputError
from components.jobs import IsStopped
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.corpora.readers.limits import BROWSER_LIMITS, Limits, never
from components.retrieval.corpora.texts import hash_of

PARAPHRASE = "paraphrase"
ONE_KIND = "your pairs"  # of a file without kinds
MOST_PAIRS, MOST_KINDS = 2_000, 10
FEWEST_PARAPHRASES = 10  # with fewer, paraphrases are no distribution to compare with


@dataclass(frozen=True)
class MinimalPairs:
    """Pairs of sentences with the kind of their difference, aligned."""

    kinds: tuple[str, ...]  # [pair]
    first: tuple[str, ...]  # [pair]
    second: tuple[str, ...]  # [pair]
    bad_rows: int = 0

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self.kinds)

    @cached_property
    def changed_kinds(self) -> tuple[str, ...]:
        """The kinds without paraphrases, in the order of the file."""
        return tuple(kind for kind in dict.fromkeys(self.kinds) if kind != PARAPHRASE)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of kinds and texts."""
        return hashlib.sha256(f"{hash_of((*self.first, *self.second))} {self.kinds}".encode()).hexdigest()

    def rows_of(self, kind: str) -> Int64:
        """The pairs of a kind, int64 [pair]."""
        return np.array([row for row, other in enumerate(self.kinds) if other == kind], np.int64)

    def with_paraphrases_of(self, other: MinimalPairs) -> MinimalPairs:
        """These pairs; if fewer than FEWEST_PARAPHRASES are paraphrases, those of another set take their place."""
        if len(self.rows_of(PARAPHRASE)) >= FEWEST_PARAPHRASES:
            return self
        own = [row for row, kind in enumerate(self.kinds) if kind != PARAPHRASE]
        added = other.rows_of(PARAPHRASE).tolist()
        return MinimalPairs(
            (*(self.kinds[row] for row in own), *(other.kinds[row] for row in added)),
            (*(self.first[row] for row in own), *(other.first[row] for row in added)),
            (*(self.second[row] for row in own), *(other.second[row] for row in added)),
            self.bad_rows,
        )


def read_minimal_pairs(
    source: Path | bytes, name: str, limits: Limits | None = BROWSER_LIMITS, is_stopped: IsStopped = never
) -> MinimalPairs:
    """Read a file in any format of a corpus. Raises InputError for unusable columns or too many pairs, and Stopped.

    Rows without two different sentences are left out and counted.
    """
    corpus = read_corpus(source, name, "first", limits=limits, is_stopped=is_stopped)
    if "second" not in corpus.columns:
        raise InputError(
            f"{name} has no column second.",
            "The columns first and second are needed, with one sentence each; a column kind is optional.",
            "Rename its columns, or choose another file.",
        )
    labels = corpus.columns.get("kind", ("",) * len(corpus))
    kept = [
        (_kind(label), first, second.strip())
        for first, second, label in zip(corpus.texts, corpus.columns["second"], labels, strict=True)
        if second.strip() and second.strip() != first.strip()
    ]
    if not any(kind != PARAPHRASE for kind, _, _ in kept):
        raise InputError(
            f"{name} has no pair of two different sentences whose kind is not “{PARAPHRASE}”.",
            "At least one such pair is needed: paraphrases are only the comparison.",
            "Check the columns of the file.",
        )
    if len(kept) > MOST_PAIRS:
        raise InputError(
            f"{name} has {len(kept):,} pairs.",
            f"At most {MOST_PAIRS:,} pairs are measured here.",
            "Choose a part of the file.",
        )
    kinds, first_texts, second_texts = zip(*kept, strict=True)
    pairs = MinimalPairs(kinds, first_texts, second_texts, len(corpus) - len(kept) + corpus.report.bad_count)
    if len(pairs.changed_kinds) > MOST_KINDS:
        raise InputError(
            f"The column kind of {name} has {len(pairs.changed_kinds):,} different values.",
            f"At most {MOST_KINDS} kinds are drawn, and “{PARAPHRASE}”.",
            "Use fewer kinds, or leave the column out.",
        )
    return pairs


def _kind(label: str) -> str:
    """A kind in lower case; “paraphrases” is a paraphrase too."""
    kind = " ".join(label.casefold().split())[:40]
    return PARAPHRASE if kind in {PARAPHRASE, f"{PARAPHRASE}s"} else kind or ONE_KIND
