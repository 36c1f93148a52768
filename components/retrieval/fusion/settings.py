"""How runs are put together, whichever runs they are: what a person chooses, and its code in addresses.

"r" is by reciprocal ranks, "r10" with a k of 10; "25" is by scores from 0 to 1, of which the runs behind the first have a
weight of 25 % together; "z25" is the same by z scores, "rw25" and "r10w25" by reciprocal ranks. "d50" behind one of these: only
the first 50 texts of each run count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from components.retrieval.fusion.scores import RRF_K, Fusion, Method, weighted

MOST_RRF_K, MOST_DEPTH = 10_000, 1_000_000
_WEIGHT = "[1-9]?[0-9]|100"
_CODE = re.compile(
    rf"(?:(?P<ranks>r)(?P<k>0|[1-9][0-9]{{0,3}}|10000)?(?:w(?P<share>{_WEIGHT}))?|(?P<z>z?)(?P<weight>{_WEIGHT}))"
    r"(?:d(?P<depth>[1-9][0-9]{0,5}|1000000))?"
)


@dataclass(frozen=True)
class FusionSettings:
    """By ranks, with a weight or without, or by scores with a weight."""

    weight: int | None = None  # of all runs but the first together, in per cent; None: ranks, all runs alike
    normalised: Method = "minmax"  # how, where there is a weight
    rank_constant: int = RRF_K  # k of reciprocal ranks
    depth: int | None = None  # how many first texts of each run count; None for all

    @classmethod
    def read(cls, text: str) -> FusionSettings:
        """The settings that a code names. Raises ValueError."""
        code = _CODE.fullmatch(text)
        if code is None:
            raise ValueError("it names no way to put runs together")
        depth = int(code["depth"]) if code["depth"] else None
        if code["ranks"]:
            share = None if code["share"] is None else int(code["share"])
            constant = RRF_K if code["k"] is None else int(code["k"])
            return cls(share, "minmax" if share is None else "rrf", constant, depth)
        return cls(int(code["weight"]), "z" if code["z"] else "minmax", depth=depth)

    def __str__(self) -> str:
        by_ranks = "r" if self.rank_constant == RRF_K else f"r{self.rank_constant}"
        head = {"minmax": "", "z": "z", "rrf": f"{by_ranks}w"}[self.normalised]
        code = by_ranks if self.weight is None else f"{head}{self.weight}"
        return code + ("" if self.depth is None else f"d{self.depth}")

    def of(self, runs: int) -> Fusion:
        """The fusion of so many runs; those behind the first share the weight equally."""
        if self.weight is None:
            return Fusion("rrf", (1.0,) * runs, self.rank_constant, self.depth)
        return weighted(self.weight / 100, runs - 1, self.normalised, self.depth, self.rank_constant)

    def name(self, others: str) -> str:
        """What a run's name says of it; `others` says whose weight it is, as "words"."""
        by_ranks = "by ranks" if self.rank_constant == RRF_K else f"by ranks (k {self.rank_constant})"
        if self.weight is None:
            name = by_ranks
        else:
            how = {"minmax": "", "z": " by z scores", "rrf": f" {by_ranks}"}[self.normalised]
            name = f"{self.weight} % {others}{how}"
        return name if self.depth is None else f"{name}, only the first {self.depth:,} of each"


USUAL = FusionSettings()  # reciprocal rank fusion of all texts, with the k that is usual
