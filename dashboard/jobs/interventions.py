"""Jobs that replace activations: of the sentences of an experiment, and of the experiments themselves.

Their results hold arrays and no model, so that a model that is dropped can be freed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from components.analysis.why import patching
from components.analysis.why.patching import FromSentence, Means, PairEffect, SampleMeans, Zeros
from components.errors import InputError
from components.jobs import Stopped
from components.retrieval.corpora.demo import demo_sentences
from dashboard import caching
from dashboard.jobs import requests
from dashboard.jobs.stored import pairs as stored

if TYPE_CHECKING:
    from components.analysis.why.patch_codes import Patch
    from components.analysis.why.patching import Alignment, PatchSource
    from components.arrays import Float32
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.model.interventions.activations import Activations
    from components.model.trace import Pooling, TokenizedSentence

Values = Literal["patch", "zero", "mean", "resample"]  # what is put into B
MOST_TOKENS = 64  # of each sentence: a map of all tokens is a pass for each token at each layer
SAMPLE = 50  # sentences whose mean activation replaces one


@dataclass(frozen=True, eq=False)
class Experiment:
    """Two sentences A and B, a text C, and what is put into B."""

    backend: Backend  # of a cross-encoder if there is no pooling
    a: str
    b: str
    c: str
    pooling: Pooling | None  # None: a cross-encoder reads each sentence together with C
    label: int = 0  # of the cross-encoder's logits
    values: Values = "patch"
    seed: int = 0

    @property
    def key(self) -> Hashable:
        """What determines the results."""
        model = (self.backend.spec.key, self.backend.revision, str(self.backend.device))
        # The seed counts only where a sentence is drawn by it.
        seed = self.seed if self.values == "resample" else 0
        return (*model, self.a, self.b, self.c, self.pooling, self.values, seed)

    def tokens(self, text: str) -> TokenizedSentence:
        """A text's tokens, with C's if a cross-encoder reads both. Raises InputError if they are too many."""
        pair = self.c if self.pooling is None else None
        tokens = self.backend.tokenize([text], [pair], self.backend.own_max_length)[0]
        most = MOST_TOKENS * (1 if pair is None else 2)
        if len(tokens) > most or tokens.dropped:
            raise InputError(
                f"A sentence has {len(tokens) + sum(item.tokens for item in tokens.dropped)} tokens"
                f"{' together with C' if pair is not None else ''}.",
                f"Experiments are made with at most {min(most, self.backend.own_max_length)}, because each token at each layer "
                "is a pass of its own.",
                "Shorten the sentence, or choose another one.",
            )
        return tokens


@dataclass(frozen=True, eq=False)
class Ready:
    """The sentences of an experiment as the model reads them, before anything is replaced."""

    a: TokenizedSentence
    b: TokenizedSentence
    alignment: Alignment
    source: PatchSource
    outputs: Float32  # [A, B, C; dim]: sentence vectors; or [A, B; label]: logits
    other: str  # the sentence whose activations are put into B, where it is drawn by the seed
    nbytes: int


def ready(experiment: Experiment, where: str) -> Ready:
    """Tokens, activations and outputs of an experiment's sentences. Raises NotReady while they are computed.

    Raises InputError for sentences that are too long, and for a mean that the sample does not have.
    """
    a, b = experiment.tokens(experiment.a), experiment.tokens(experiment.b)
    means = None
    if experiment.values == "mean":
        means = _means(experiment, where).of(b)

    def prepare(report_progress: ReportProgress, is_stopped: IsStopped) -> Ready:
        source, other, nbytes = _source(experiment, a, b, means)
        rows = [_output(experiment, a), _output(experiment, b)]
        if experiment.pooling is not None:
            (tokens,) = experiment.backend.tokenize([experiment.c], max_length=experiment.backend.own_max_length)
            rows.append(_output(experiment, tokens))
        return Ready(a, b, patching.align_tokens(a, b), source, np.concatenate(rows), other, nbytes)

    return requests.latest(
        ("sentences", experiment.key),
        "Reading the sentences",
        prepare,
        f"read_{where}",
        doing="reading the sentences",
        view=("experiment", experiment.key),
        jobs=caching.interventions(),
    )


def results(
    experiment: Experiment, prepared: Ready, patches: Sequence[Sequence[Patch]], title: str, where: str
) -> Float32:
    """B's vector (or logits) with each list of patches made together, float32 [experiment, dim]. Raises NotReady."""
    backend, sentence, source, pooling = experiment.backend, prepared.b, prepared.source, experiment.pooling

    def run(report_progress: ReportProgress, is_stopped: IsStopped) -> Float32:
        return patching.measured(backend, sentence, source, patches, pooling, report_progress, is_stopped)

    codes = tuple(tuple(patch.code for patch in together) for together in patches)
    return requests.latest(
        ("experiments", experiment.key, codes),
        title,
        run,
        where,
        doing="replacing activations",
        unit="experiments",
        view=("experiment", experiment.key),
        jobs=caching.interventions(),
    )


def pair_effects(backend: Backend, texts: Sequence[tuple[str, str, str]]) -> tuple[PairEffect, ...]:
    """What experiments on some pairs with their texts C can show, with the model's own pooling. Raises NotReady.

    Those of the ready-made ones in the included model are kept in a file.
    """
    kept = stored.effects(backend, texts)
    if kept is not None:
        return kept

    def measure(report_progress: ReportProgress, is_stopped: IsStopped) -> tuple[PairEffect, ...]:
        found = []
        for number, pair in enumerate(texts):
            report_progress(number, len(texts))
            found.append(patching.pair_effect(backend, pair, backend.own_pooling, is_stopped))
        return tuple(found)

    return requests.prepared(
        _key_of_pairs(backend, texts),
        "Trying the ready-made pairs",
        measure,
        "pairs_experiments",
        doing="trying the ready-made pairs",
        unit="pairs",
        jobs=caching.interventions(),
    )


def known_effects(backend: Backend, texts: Sequence[tuple[str, str, str]]) -> tuple[PairEffect, ...] | None:
    """The same if they have been measured, without waiting."""
    kept = stored.effects(backend, texts)
    if kept is not None:
        return kept
    job = caching.interventions().find(_key_of_pairs(backend, texts))
    return None if job is None or job.error is not None else job.result


def _key_of_pairs(backend: Backend, texts: Sequence[tuple[str, str, str]]) -> Hashable:
    return ("ready-made pairs", backend.spec.key, backend.revision, str(backend.device), tuple(texts))


def _output(experiment: Experiment, tokens: TokenizedSentence) -> Float32:
    if experiment.pooling is None:
        return experiment.backend.patched_logits(tokens, [[]])
    return experiment.backend.patched_vectors(tokens, [[]], experiment.pooling)


def _source(
    experiment: Experiment, a: TokenizedSentence, b: TokenizedSentence, means: Means | None
) -> tuple[PatchSource, str, int]:
    """Where the values come from, the sentence drawn for them if one was, and the size in bytes."""
    if means is not None:
        return means, "", 0  # the sample's own job keeps the arrays
    backend = experiment.backend
    if experiment.values == "patch":
        own = backend.activations(a)
        places = {second: first for first, second in patching.align_tokens(a, b).pairs}
        return FromSentence(own, places), "", own.nbytes
    if experiment.values == "zero":
        own = backend.activations(b)
        return Zeros(own), "", own.nbytes
    texts = [text for text in demo_sentences() if text != experiment.b]
    other = texts[int(np.random.default_rng(experiment.seed).integers(len(texts)))]
    tokens = _of_sample(experiment, other)
    own = backend.activations(tokens)
    return FromSentence(own, patching.same_places(b, tokens)), other, own.nbytes


def _of_sample(experiment: Experiment, text: str) -> TokenizedSentence:
    pair = experiment.c if experiment.pooling is None else None
    return experiment.backend.tokenize([text], [pair], experiment.backend.own_max_length)[0]


def _means(experiment: Experiment, where: str) -> SampleMeans:
    """The mean activations of a sample of sentences, the same for all experiments of a model. Raises NotReady."""

    def measure(report_progress: ReportProgress, is_stopped: IsStopped) -> SampleMeans:
        texts = demo_sentences()[:SAMPLE]

        def sample() -> Iterator[Activations]:
            for number, text in enumerate(texts):
                if is_stopped():
                    raise Stopped
                yield experiment.backend.activations(_of_sample(experiment, text))
                report_progress(number + 1, len(texts))

        return patching.mean_activations(sample())

    backend = experiment.backend
    pair = experiment.c if experiment.pooling is None else None
    return requests.latest(
        ("mean activations", backend.spec.key, backend.revision, str(backend.device), pair),
        f"Mean activations of {SAMPLE} sentences",
        measure,
        f"mean_{where}",
        doing="reading the sample",
        unit="sentences",
        view=("experiment", experiment.key),  # which ends the work for another one
        jobs=caching.interventions(),
    )
