"""The score of two texts, split down to the words as typed: integrated Jacobians for siamese encoders.

Each text's vector f(x) is the vector of a reference f(r), which says nothing, and what each token adds on the way from there to
the text (components.model.contributions.path_products). The dot product of two texts is then

    f(a) . f(b) = sum over i, j of c_i . d_j  +  f(a) . f(r_b)  +  f(r_a) . f(b)  -  f(r_a) . f(r_b)

with the contributions c_i of A's tokens and d_j of B's: Moeller, Nikolaev and Pado 2023, "An Attribution Method for Siamese
Encoders", equation 5, and 2024, "Approximate Attributions for Off-the-Shelf Siamese Transformers". Divided by both norms, this
is the cosine. They train models whose reference has the vector 0, so that the last three terms vanish. A published model has no
such reference. The terms are then large for some and small for others, and are shown apart. Without a choice, the reference for
which their sizes sum to least is taken.

What it does not show: causes, and meaning beyond the reference. Another reference gives other numbers with the same sum.
Tokens can be negative: they then make the texts less alike than the reference would.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from components.analysis.why.ledger import Ledger, Term, token_parts
from components.arrays import Float64, cosine
from components.jobs import IsStopped, ReportProgress
from components.model.contributions.path_products import DEFAULT_STEPS, PathProducts, Reference
from components.model.trace import Pooling, TokenizedSentence

if TYPE_CHECKING:
    from components.model.backend import Backend


@dataclass(frozen=True, eq=False)
class IntegratedLedger:
    """A ledger of tokens as typed, and how it was computed."""

    ledger: Ledger
    reference: Reference
    steps: int
    reference_sizes: Mapping[Reference, float]  # of every reference: the sum of the sizes of its three terms

    @property
    def nbytes(self) -> int:
        """Memory the contributions take, in bytes."""
        return self.ledger.contributions.nbytes


def integrated_ledger(first: PathProducts, second: PathProducts) -> Ledger:
    """The ledger of two texts from the products of their paths. Raises ValueError for two layers or poolings."""
    if (first.layer, first.pooling) != (second.layer, second.pooling):
        raise ValueError("both texts' vectors must be of one layer and pooling")
    lengths = float(np.linalg.norm(first.vector)), float(np.linalg.norm(second.vector))
    return Ledger(
        token_parts(first.sentence),
        token_parts(second.sentence),
        first.contributions @ second.contributions.T / (lengths[0] * lengths[1] or 1.0),
        reference_terms(first.vector, second.vector, first.reference_vector, second.reference_vector),
        float(cosine(first.vector, second.vector)),
        lengths,
        first.layer,
        first.pooling,
    )


def reference_terms(
    first: Float64, second: Float64, first_reference: Float64, second_reference: Float64
) -> tuple[Term, Term, Term]:
    """What belongs to the references of two texts, in units of the cosine; the arguments are vectors [dim]."""
    scale = float(np.linalg.norm(first) * np.linalg.norm(second)) or 1.0
    return (
        Term("A with the reference of B", float(first @ second_reference) / scale),
        Term("the reference of A with B", float(first_reference @ second) / scale),
        Term("both references", -float(first_reference @ second_reference) / scale),
    )


def split_to_words(
    backend: Backend,
    first: TokenizedSentence,
    second: TokenizedSentence,
    layer: int,
    pooling: Pooling,
    reference: Reference | None = None,
    steps: int = DEFAULT_STEPS,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> IntegratedLedger:
    """The split of two texts with a reference, by default the one with the smallest terms. `progress` counts steps of both.

    Raises InputError and Stopped as `path_products` does.
    """
    names = backend.references
    ways = [backend.reference_vectors(text, names, layer, pooling) for text in (first, second)]  # each [reference, dim]
    own = [backend.reference_vectors(text, (None,), layer, pooling)[0] for text in (first, second)]
    sizes: dict[Reference, float] = {
        name: sum(abs(term.value) for term in reference_terms(*own, *references))
        for name, *references in zip(names, *ways, strict=True)
    }
    chosen: Reference = min(sizes, key=sizes.__getitem__) if reference is None else reference

    def products_of(text: TokenizedSentence, before: int) -> PathProducts:
        def report(done: int, total: int) -> None:
            progress(before + done, 2 * total)

        return backend.path_products(text, chosen, layer, pooling, steps, report, is_stopped)

    products = products_of(first, 0), products_of(second, steps)
    return IntegratedLedger(integrated_ledger(*products), chosen, steps, MappingProxyType(sizes))
