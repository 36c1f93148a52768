"""The codes by which addresses name runs. Nothing else writes or divides them.

- "m.6.mean": vectors, layer 6 of the model with mean pooling; "m2.6.mean" of the second model
- "bm25", or another kind of ranking by words or static vectors
- "sp.m": SPLADE by the weights of the model
- "rr.100.m.6.mean": the first 100 hits of such vectors, re-ranked by the cross-encoder; "ms.100..." by MaxSim, "mx.100..." by
  the second model's MaxSim
- "fr.m.6.mean~bm25~tfidf": two or three of these put together, here by reciprocal ranks; "f25.m.6.mean~bm25" by scores, of
  which all but the first have a weight of 25 %. Between "f" and the dot stands a code of FusionSettings. Vectors with a ranking
  by words have a shorter form: "fr.bm25.m.6.mean", "f25.bm25.m.6.mean".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

from components.model.trace import EVERY_POOLING, Pooling
from components.retrieval.fusion.scores import Fusion
from components.retrieval.fusion.settings import USUAL, FusionSettings
from components.retrieval.search.lexical import KINDS, TITLES

# How first hits are re-ranked: by the cross-encoder; by MaxSim over the model's token vectors; over the second model's.
Second = Literal["rr", "ms", "mx"]
LEAST_CANDIDATES, MOST_CANDIDATES = 2, 1_000
MOST_FUSED = 3
_SECOND, _FUSED = "|".join(get_args(Second)), r"f(?P<settings>[rzwd0-9]{1,18})\."
_VECTORS = rf"(?P<model>m2?)\.(?P<layer>[0-9]{{1,3}})\.(?P<pooling>{'|'.join(EVERY_POOLING)})"
_ALONE = re.compile(
    rf"(?P<words>{'|'.join(TITLES)})|sp\.(?P<splade>m2?)|((?P<second>{_SECOND})\.(?P<k>[1-9][0-9]{{0,3}})\.)?{_VECTORS}"
)
_SHORT = re.compile(rf"{_FUSED}(?P<words>{'|'.join(KINDS)})\.(?P<vectors>{_VECTORS})")
_LONG = re.compile(rf"{_FUSED}(?P<parts>[^~]+(?:~[^~]+){{1,{MOST_FUSED - 1}}})")


@dataclass(frozen=True)
class RunCode:
    """One way to rank. Vectors have a pooling, of which `second` says how the first `k` hits are re-ranked."""

    model: str = ""  # "m" for the session's first model, "m2" for the second; "" for a ranking by words and a fused run
    layer: int = 0
    pooling: Pooling | Literal[""] = ""
    second: Second | Literal[""] = ""
    k: int = 0
    words: str = ""  # a key of TITLES; "" for other runs
    parts: tuple[RunCode, ...] = ()  # of a fused run; of others none
    settings: FusionSettings = USUAL  # how the parts are put together

    @classmethod
    def read(cls, text: str) -> RunCode:
        """The run that a code names. Raises ValueError."""
        if short := _SHORT.fullmatch(text):
            return cls.fused((cls.read(short["vectors"]), cls.read(short["words"])), short["settings"])
        if long := _LONG.fullmatch(text):
            return cls.fused(tuple(map(cls.read, long["parts"].split("~"))), long["settings"])
        code = _ALONE.fullmatch(text)
        if code is None:
            raise ValueError("it names no run")
        if code["words"] or code["splade"]:
            return cls(model=code["splade"] or "", words=code["words"] or "")
        k = int(code["k"] or 0)
        if k and not LEAST_CANDIDATES <= k <= MOST_CANDIDATES:
            raise ValueError(f"the candidates are not {LEAST_CANDIDATES} to {MOST_CANDIDATES:,}")
        pooling, second = cast("Pooling", code["pooling"]), cast("Second", code["second"] or "")
        return cls(code["model"], int(code["layer"]), pooling, second, k)

    @classmethod
    def fused(cls, parts: tuple[RunCode, ...], settings: FusionSettings | str = USUAL) -> RunCode:
        """Two or three different runs put together; the settings may be their code. Raises ValueError."""
        if len(set(parts)) < len(parts) or any(part.parts for part in parts):
            raise ValueError("it names no run: different runs that are not fused themselves are put together")
        if not 2 <= len(parts) <= MOST_FUSED:
            raise ValueError("it names no run: two or three are put together")
        try:
            return cls(parts=parts, settings=FusionSettings.read(str(settings)))
        except ValueError as problem:
            raise ValueError(f"it names no run: {problem}") from None

    def __str__(self) -> str:
        if self.parts:
            head, (first, *_, last) = f"f{self.settings}", self.parts
            is_short = first.is_vectors and len(self.parts) == 2 and last.words in KINDS
            return f"{head}.{last}.{first}" if is_short else f"{head}.{'~'.join(map(str, self.parts))}"
        vectors = f"{self.model}.{self.layer}.{self.pooling}"
        return self.words or (
            f"sp.{self.model}" if self.is_splade else f"{self.second}.{self.k}.{vectors}" if self.second else vectors
        )

    @property
    def is_splade(self) -> bool:
        """Whether SPLADE's weights rank."""
        return bool(self.model) and not self.pooling

    @property
    def is_vectors(self) -> bool:
        """Whether vectors of a layer and pooling rank, and nothing else."""
        return bool(self.pooling) and not self.second

    @property
    def cell(self) -> tuple[int, Pooling]:
        """The layer and pooling of vectors."""
        return self.layer, cast("Pooling", self.pooling)

    @property
    def first(self) -> RunCode:
        """The run whose hits are re-ranked; of another run itself."""
        return replace(self, second="", k=0)

    @property
    def each(self) -> tuple[RunCode, ...]:
        """The runs that are put together; of another run itself alone."""
        return self.parts or (self,)

    @property
    def fusion(self) -> Fusion:
        """How the parts are put together."""
        return self.settings.of(len(self.parts))

    @property
    def fusion_name(self) -> str:
        """How the parts are put together, as the run's name says it."""
        others = "of the last" if len(self.parts) == 2 else "of the others"
        return self.settings.name("words" if all(part.words for part in self.parts[1:]) else others)
