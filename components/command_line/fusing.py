"""The options of commands that put a ranking by words and the one by vectors together."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast, get_args

from components.errors import InputError

if TYPE_CHECKING:
    from components.retrieval.fusion.scores import Fusion
    from components.retrieval.search.lexical import Kind

_MOST_RUNS = 2  # by words, beside the one by vectors
_OTHERS = ("weights", "normalise", "rrf_k", "depth")


def add_fusion(parser: argparse.ArgumentParser, what: str) -> None:
    """The options; `what` says what --fuse does in this command."""
    parser.add_argument(
        "--fuse",
        metavar="NAMES",
        help=f"{what}: bm25, tfidf, bow (bag of words), lsa or jm (Jelinek-Mercer, a language model), or two of them joined by "
        "a comma. Without --weights by reciprocal rank fusion, over all texts",
    )
    parser.add_argument(
        "--weights",
        metavar="NUMBERS",
        help="with --fuse: weighted sums of normalised scores, a run for each weight of the words from 0 (vectors alone) to 1 "
        "(words alone), as in 0,0.25,0.5,0.75,1",
    )
    parser.add_argument(
        "--normalise",
        help="with --weights: minmax (default), z for standard deviations from the mean, or rrf for reciprocal ranks",
    )
    parser.add_argument("--rrf-k", type=int, help="with --fuse: the k of 1 / (k + rank) (default: 60)")
    parser.add_argument("--depth", type=int, help="with --fuse: only so many first texts of each run (default: all)")


@dataclass(frozen=True)
class Fusing:
    """What is fused, and how."""

    kinds: tuple[Kind, ...]
    fusions: tuple[Fusion, ...]  # the first run is the vectors'
    weights: tuple[float | None, ...]  # [fusion], of the words; None for reciprocal rank fusion

    def records(self) -> list[dict[str, Any]]:
        """What a run's record says of its fusion, [fusion]."""
        return [
            {
                "fused": list(self.kinds),
                "method": "rrf" if weight is None else "weighted",
                "weight": weight,
                **({} if weight is None else {"normalised": fusion.method}),
                **({"k": fusion.rank_constant} if fusion.method == "rrf" else {}),
                "depth": fusion.depth,
            }
            for fusion, weight in zip(self.fusions, self.weights, strict=True)
        ]


def fusing_of(options: argparse.Namespace) -> Fusing | None:
    """What --fuse and its companions ask for; None without them. Raises InputError."""
    from components.retrieval.fusion.scores import METHODS, RRF_K, Fusion, weighted
    from components.retrieval.fusion.settings import MOST_RRF_K
    from components.retrieval.search.lexical import Kind

    if options.fuse is None:
        for name in _OTHERS:
            if getattr(options, name) is not None:
                raise InputError(
                    f"--{name.replace('_', '-')} is given without --fuse.",
                    "It says how a ranking by words and the one by vectors are put together.",
                    "Add for example --fuse bm25, or leave it out.",
                )
        return None
    every_kind = get_args(Kind)
    names = [name.strip() for name in options.fuse.split(",")]
    if not 0 < len(names) <= _MOST_RUNS or len(set(names)) < len(names) or not set(names) <= set(every_kind):
        raise InputError(
            f"--fuse {options.fuse[:80]} is not one or two different rankings by words.",
            f"The rankings are {', '.join(every_kind)}.",
            "Write for example --fuse bm25",
        )
    for name, least in (("rrf_k", 0), ("depth", 1)):
        value = getattr(options, name)
        if value is not None and value < least:
            raise InputError(
                f"--{name.replace('_', '-')} is {value}.", f"At least {least} was expected.", "Write a higher number."
            )
    if options.rrf_k is not None and options.rrf_k > MOST_RRF_K:
        raise InputError(
            f"--rrf-k is {options.rrf_k}.",
            f"At most {MOST_RRF_K:,} was expected: with more, places beside each other no longer differ.",
            "Write a lower number.",
        )
    if options.normalise not in (None, *METHODS):
        raise InputError(
            f"--normalise {options.normalise[:80]} is not known.", "It is minmax, z or rrf.", "Write one of these."
        )
    if options.weights is None and options.normalise is not None:
        raise InputError(
            "--normalise is given without --weights.", "Ranks are not normalised.", "Add for example --weights 0,0.5,1"
        )
    kinds = tuple(cast("Kind", name) for name in names)
    constant = RRF_K if options.rrf_k is None else options.rrf_k
    fusions = [Fusion("rrf", (1.0,) * (1 + len(kinds)), constant, options.depth)]
    weights = [] if options.weights is None else [_weight(text, options.weights) for text in options.weights.split(",")]
    fusions += [
        weighted(weight, len(kinds), options.normalise or "minmax", options.depth, constant) for weight in weights
    ]
    return Fusing(kinds, tuple(fusions), (None, *weights))


def _weight(text: str, whole: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not 0 <= weight <= 1:
        raise InputError(
            f"--weights {whole[:80]} has {text.strip()[:40]!r}.",
            "Weights of the words are numbers from 0 to 1, joined by commas.",
            "Write for example --weights 0,0.25,0.5,0.75,1",
        )
    return weight
