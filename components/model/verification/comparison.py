"""Vectors of the same texts, by sentence-transformers and by this program, and how far they differ.

The difference of two vectors is their largest difference of one number, divided by the length of the library's vector: so it
means the same for a model whose vectors have length 1 and for one whose have length 20. Float32 results differ by some 1e-7
with the order of additions and with padding; 1e-5 is the limit of what counts as equal.

Each text is embedded as plain text, as a query and as a document, since a folder may set a prompt or a length for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from components.arrays import Float32, Float64
from components.errors import InputError, ModelError, UserError
from components.jobs import IsStopped
from components.model import loader
from components.model.device import free_memory
from components.model.files import hub, sources
from components.model.verification.first_step import first_step
from components.model.verification.process import reference_vectors
from components.sizes import in_words

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.files.sentence_config import Role

SAME = 1e-5  # of the vector's length
MOST_TEXTS, MOST_CHARACTERS = 1_000, 2_000_000
LIBRARY_BYTES = 1 << 30  # of the library's process, besides the weights
ROLES: tuple[str, ...] = ("", "query", "document")
# A short one, a long one (more tokens than most encoders read), and one with capitals and accents.
TEXTS: tuple[str, ...] = (
    "The cat sat on the mat.",
    " ".join(
        f"In part {number} the river leaves its bank, the money stays in the bank, and nobody can say which bank was meant."
        for number in range(1, 31)
    ),
    "Élodie López visited the CAFÉ in São Paulo, and Zürich, on MONDAY: naïve façade, coöperate.",
)


@dataclass(frozen=True)
class VectorDifference:
    """How far the two vectors of one text are apart."""

    text: str
    role: str  # "", "query" or "document"
    difference: float  # of one number, at most, in lengths of the library's vector; infinite for other sizes
    cosine: float  # NaN for other sizes, and for a vector without a direction


@dataclass(frozen=True)
class Verification:
    """What came of comparing a model. `why_not` says why nothing was compared, in a sentence, and is empty otherwise."""

    title: str  # of the model
    revision: str
    library: str = ""  # "sentence-transformers 6.2.0"
    differences: tuple[VectorDifference, ...] = ()
    not_applied: tuple[str, ...] = ()
    why_not: str = ""
    first_step: str = ""  # where the two computations part, of a model that differs, or why that is not known
    sizes: tuple[int, int] = (
        0,
        0,
    )  # how many numbers a vector has there, and here; meant where the difference is infinite

    @property
    def is_equal(self) -> bool | None:
        """Whether all vectors are equal; None if none were compared."""
        return self.largest_difference <= SAME if self.differences else None

    @property
    def largest_difference(self) -> float:
        """Of all texts; NaN if none were compared."""
        return max((item.difference for item in self.differences), default=float("nan"))

    @property
    def lowest_cosine(self) -> float:
        """Of all texts; NaN if a vector has no direction, or none were compared."""
        cosines = [item.cosine for item in self.differences]
        return float(np.min(cosines)) if cosines else float("nan")

    @property
    def worst(self) -> VectorDifference:
        """The text whose vectors are furthest apart. Raises ValueError if none were compared."""
        return max(self.differences, key=lambda item: item.difference)

    def sentence(self) -> str:
        """The result in one short line."""
        if self.is_equal is None:
            return self.why_not
        if self.is_equal:
            return f"Equal to {self.library} on this machine (largest difference {_power(self.largest_difference)})."
        if self.sizes[0] != self.sizes[1] and np.isinf(self.largest_difference):
            return f"Differs from {self.library}: its vectors have {self.sizes[0]:,} numbers, here {self.sizes[1]:,}."
        if self.lowest_cosine > 0.99995:
            size = _power(self.largest_difference)
            return f"Differs from {self.library} (cosine {self.lowest_cosine:.4f}, largest difference {size})."
        return f"Differs from {self.library} (cosine {self.lowest_cosine:.2f})."

    def report(self) -> str:
        """Of a model that differs: what to report."""
        as_what = {"": "", "query": " as a query", "document": " as a document"}[self.worst.role]
        said = "If what is not applied does not explain it, report" if self.not_applied else "Report"
        return (
            f"The numbers here are not those of the published model. {self.first_step}{' ' if self.first_step else ''}"
            f"{said} its name, {self.revision}, and the text that differs most: “{_shortened(self.worst.text)}”{as_what}."
        )


def verify(backend: Backend, texts: Sequence[str] = TEXTS, is_stopped: IsStopped = lambda: False) -> Verification:
    """Embed texts by sentence-transformers, in a process of its own, and by the backend, and compare.

    Raises ModelError for a model that is not compared, with the reason, InputError for no text or too many, and Stopped.
    """
    check(texts)
    name = backend.spec.title
    reason = _why_not(backend)
    if reason:
        raise ModelError(
            "unsupported",
            f"{name} is not compared with sentence-transformers, because {reason}.",
            "Only models that give a text one vector are compared.",
            "Pick another model, or compare this one's results in an environment of your own.",
        )
    most = loader.configured_bytes()
    if 2 * backend.weight_bytes > most:
        raise ModelError(
            "unsupported",
            f"{name} is too large to be held twice: its weights take {in_words(backend.weight_bytes, binary=True)}.",
            f"Both computations together may take {in_words(most, binary=True)}, the limit for models in memory.",
            "Raise BERT_INTERNALS_MODEL_BYTES on a machine with more memory.",
        )
    needed, free = 2 * backend.weight_bytes + LIBRARY_BYTES, free_memory()
    if needed > free:
        raise ModelError(
            "unsupported",
            f"{name} is not compared with sentence-transformers, because too little memory is free.",
            f"It takes {in_words(needed, binary=True)}, and {in_words(free, binary=True)} are free.",
            "Try again when less is running.",
        )
    files = sources.find_files(backend.spec)
    library, theirs = reference_vectors(files, name, backend.weight_bytes, texts, ROLES, is_stopped)
    ours = [own_vectors(backend, texts, role, is_stopped) for role in ROLES]
    differences = [
        item
        for role, expected, found in zip(ROLES, theirs, ours, strict=True)
        for item in compared(texts, role, expected, found)
    ]
    result = Verification(
        name,
        backend.revision,
        library,
        tuple(differences),
        backend.not_applied,
        sizes=(theirs.shape[-1], ours[0].shape[-1]),
    )
    if result.is_equal:
        return result
    worst, steps = result.worst, dict[str, Float32]()
    try:
        reference_vectors(files, name, backend.weight_bytes, [worst.text], [worst.role], is_stopped, steps=steps)
        said = first_step(backend, worst.text, worst.role, steps, SAME)
    except UserError as problem:  # the vectors differ all the same
        said = f"Where the two computations part is not known: {problem.problem}"
    return replace(result, first_step=said)


def own_vectors(backend: Backend, texts: Sequence[str], role: str, is_stopped: IsStopped = lambda: False) -> Float32:
    """The vectors that pages and commands compare, in float32 [text, dim]: the last layer, with the model's own pooling."""
    options = backend.embed_options(precision="float32", role=cast("Role | None", role or None))
    vectors, _ = backend.embed_with_report(list(texts), options, is_stopped=is_stopped)
    return as_compared(backend, cast("Float32", vectors[0, 0]))


def as_compared(backend: Backend, vectors: Float32) -> Float32:
    """Vectors [text, dim] with the scaling to length 1 that is left to the cosine where it is all that follows the pooling."""
    modules = backend.sentence_config.modules
    if backend.loaded.head is None and modules and modules[-1].kind == "Normalize":
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(min=1e-12)
    return vectors


def compared(texts: Sequence[str], role: str, expected: Float32, found: Float32) -> tuple[VectorDifference, ...]:
    """How far the vectors [text, dim] of each text are apart. Zeros that `found` has beyond `expected` do not count."""
    # Where one array holds several poolings, the shorter ones are padded with zeros.
    if not found[:, expected.shape[-1] :].any():
        found = found[:, : expected.shape[-1]]
    if expected.shape != found.shape:
        return tuple(VectorDifference(text, role, float("inf"), float("nan")) for text in texts)
    first: Float64 = expected.astype(np.float64)
    second: Float64 = found.astype(np.float64)
    lengths = np.linalg.norm(first, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosines = (first * second).sum(axis=1) / (lengths * np.linalg.norm(second, axis=1))
    distances = np.abs(first - second).max(axis=1, initial=0.0) / np.where(lengths == 0, 1.0, lengths)
    distances[~np.isfinite(distances)] = np.inf
    return tuple(
        VectorDifference(text, role, float(distance), float(cosine))
        for text, distance, cosine in zip(texts, distances, cosines, strict=True)
    )


def check(texts: Sequence[str]) -> None:
    """Raise InputError for no text, or for more than are compared."""
    characters = sum(map(len, texts))
    if not texts or len(texts) > MOST_TEXTS or characters > MOST_CHARACTERS:
        raise InputError(
            f"There are {len(texts):,} texts of {characters:,} characters.",
            f"From 1 to {MOST_TEXTS:,} texts of at most {MOST_CHARACTERS:,} characters in all are compared.",
            "Choose a smaller file.",
        )


def _why_not(backend: Backend) -> str:
    """Why a model of this kind is not compared, as the end of "because ..."; empty if it is."""
    if backend.is_cross_encoder:
        return "it was published to score pairs of texts, and gives no vectors of its own"
    if backend.late_interaction is not None:
        return "it was published to give each token a vector (late interaction), and a text none"
    if backend.splade is not None:
        return "it was published to give a text weights of pieces (sparse), and no vector"
    folder = backend.loaded.folder
    if backend.spec.source == "hub" and folder is not None and hub.may_lack_list(backend.spec.hub_id, folder):
        return "only its encoder is on this machine, and not how it turns a text into a vector (modules.json)"
    published_as = backend.sentence_config.published_as
    if published_as not in ("", "SentenceTransformer"):
        return f"its files call it a model of the kind {published_as[:40]}, not SentenceTransformer"
    return ""


def _power(value: float) -> str:
    """A small number in one digit: 2e-7."""
    mantissa, _, exponent = f"{value:.0e}".partition("e")
    return "0" if not value else f"{mantissa}e{int(exponent)}"


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"
