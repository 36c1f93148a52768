"""The remedies: each gives the ranks of its options for all queries, and those of a control.

Each says what a search with one of its options costs (`costs`).

A control is the same remedy with its second signal taken from another query of the same half: the scores by words or of the
re-ranker, or for a remedy that replaces all scores (another layer, a prompt, a repair, another model) what it changes in the
scores of the other query. It goes through the same choice; what it repairs is what chance repairs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float32, Float64, Int64, read_only, unit
from components.jobs import IsStopped, ReportProgress, Stopped, part_of
from components.retrieval.evaluation.metrics import first_ranks
from components.retrieval.evaluation.second_stage import CandidateScores, candidate_scores, candidates, either_ranks
from components.retrieval.failures.remedies.costs import (
    HITS,
    TIMED,
    TIMED_SECOND,
    Embed,
    SearchCost,
    bytes_of,
    cost,
    first_hits,
)
from components.retrieval.failures.remedies.folds import Options, others
from components.retrieval.failures.remedies.present import Present, Vectors, changed_by_another, present, ranks_by
from components.retrieval.failures.repair import every_way, repaired
from components.retrieval.failures.vocabulary import CorpusWords
from components.retrieval.fusion.ranks import ranker_scores, vector_scores
from components.retrieval.fusion.scores import Fusion, Method, RunScores
from components.retrieval.search.exact import top
from components.retrieval.search.lexical import make_ranker
from components.retrieval.search.rerank import late_interaction_vectors, trained_scores

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.embedding.options import EmbedOptions
    from components.model.files.sentence_config import Role

# In the order of what they cost, the cheapest first.
TITLES: dict[str, str] = {
    "prompt": "a prompt",
    "repair": "query repair",
    "hybrid": "words and vectors",
    "maxsim": "re-ranking: MaxSim + cosine",
    "layer": "another layer or pooling",
    "cross-encoder": "re-ranking by a cross-encoder",
    "model": "another model",
}
NEEDS: dict[str, str] = {
    "prompt": "nothing",
    "repair": "a list of the corpus’s words",
    "hybrid": "a second index, of words",
    "maxsim": "the token vectors of each text",
    "layer": "an index again",
    "cross-encoder": "a second model",
    "model": "an index again, by another model",
}
PROMPTS = ("query: ", "search for: ", "a text about ", "a text that says that ")
WEIGHTS = (0.2, 0.5, 0.8)  # of the scores by words
FUSIONS: dict[str, Fusion] = {
    f"{title}, weight of words {weight:g}": Fusion(method, (1 - weight, weight))
    for method, title in cast("dict[Method, str]", {"rrf": "reciprocal ranks", "z": "z scores"}).items()
    for weight in WEIGHTS
}
SHARES = (0.25, 0.5, 0.75, 1.0)  # of the re-ranker's score
ALONE = "share 1"  # the option in which it decides alone
CANDIDATES = 50  # first hits that are re-ranked
MOST_TEXTS = 5_000  # whose token vectors are kept at a time, where nobody asked for MaxSim
TOGETHER = 8  # options that are ranked in one go: what they share is computed once, and each takes 16 MB meanwhile
CONTROLS = 5  # draws of other queries; of their numbers the medians are told


@dataclass(frozen=True, eq=False)
class Remedy:
    """One remedy: its options, and the same with the second signal of other queries."""

    name: str
    options: Options
    control: Callable[[int], Options] = field(repr=False)  # from a seed
    seconds: float  # that its own scores of all queries took, without the vectors that all remedies share
    cost: Callable[[str], SearchCost] = field(repr=False)  # from an option
    draws: int = CONTROLS

    @property
    def title(self) -> str:
        return TITLES[self.name]

    @property
    def needs(self) -> str:
        return NEEDS[self.name]


@dataclass(frozen=True, eq=False)
class RemedyInput:
    """What the remedies are given."""

    present: Present
    first: NDArray[np.bool_]  # [query]: the first half
    known: CorpusWords
    abbreviations: Mapping[str, str] = field(default_factory=dict)
    prompts: Sequence[str] = PROMPTS
    cross_encoder: CandidateScores | None = None
    models: Sequence[Backend] = ()


def measure(
    name: str,
    setting: RemedyInput,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Remedy:
    """The options of a remedy, ranked. `progress(done, total)` counts what it has most to do with. Raises Stopped."""
    kinds: dict[str, Callable[[RemedyInput, ReportProgress, IsStopped], Remedy]] = {
        "prompt": _prompt,
        "repair": _repair,
        "hybrid": _hybrid,
        "maxsim": _max_sim,
        "layer": _layer,
        "cross-encoder": _cross_encoder,
        "model": _model,
    }
    if is_stopped():
        raise Stopped
    return kinds[name](setting, progress, is_stopped)


def _replacing(
    name: str,
    setting: RemedyInput,
    vectors: Mapping[str, Vectors],
    by: Mapping[str, tuple[Present, Embed]],
    started: float,
    is_stopped: IsStopped,
    among: Mapping[str, NDArray[np.bool_]] | None = None,
    bytes_once: float = 0.0,
) -> Remedy:
    """A remedy whose options have vectors of their own, of queries and documents: other scores altogether.

    `by` is whose texts each option searches, and how it makes the vector of a query. `among` [query] are the queries that an
    option changes, which exchange what it changes in the control. `bytes_once` are kept beside the vectors.
    """
    now, pairs = setting.present, setting.present.pairs
    options = {
        option: read_only(first_ranks(pairs.ranks_by_vectors(*both, is_stopped=is_stopped)))
        for option, both in vectors.items()
    }
    seconds = time.perf_counter() - started

    def control(seed: int) -> Options:
        ranks: dict[str, Int64] = {}
        size, names = TOGETHER if among is None else 1, list(vectors)  # queries exchange with the same others, or not
        for group in (names[start : start + size] for start in range(0, len(names), size)):
            taken = others(len(pairs), setting.first, seed, None if among is None else among[group[0]])
            runs = changed_by_another(now.present_vectors, [vectors[option] for option in group], taken)
            each = [Fusion(weights=tuple(float(run == own) for run in range(len(runs)))) for own in range(len(runs))]
            ranks |= zip(group, ranks_by(pairs, runs, each, is_stopped), strict=True)
        return ranks

    def cost_of(option: str) -> SearchCost:
        searched, embed = by[option]
        search = first_hits(embed, searched.document_vectors)
        as_now = first_hits(now.asked_alone, now.document_vectors)
        return cost(search, now.queries, searched.bytes_per_text, is_stopped, bytes_once=bytes_once, now=as_now)

    return Remedy(name, options, control, seconds, cost_of)


def _prompt(setting: RemedyInput, progress: ReportProgress, is_stopped: IsStopped) -> Remedy:
    now, started = setting.present, time.perf_counter()
    own = now.query_options.prompt
    tried = [prompt for prompt in dict.fromkeys((*setting.prompts, "")) if prompt != own]
    vectors, by = {}, {}
    for number, prompt in enumerate(tried):
        progress(number, len(tried))
        option, asked = f"“{prompt}”" if prompt else "no prompt", partial(now.asked_alone, prompt=prompt)
        vectors[option] = (now.asked(now.queries, prompt, is_stopped=is_stopped), now.document_vectors)
        by[option] = (now, asked)
    progress(len(tried), len(tried))
    return _replacing("prompt", setting, vectors, by, started, is_stopped)


def _repair(setting: RemedyInput, progress: ReportProgress, is_stopped: IsStopped) -> Remedy:
    now, started = setting.present, time.perf_counter()
    written = {
        name: [repaired(query, setting.known, ways, setting.abbreviations).text for query in now.queries]
        for name, ways in every_way(setting.abbreviations).items()
    }
    asked = set(now.queries)
    new = list(dict.fromkeys(text for texts in written.values() for text in texts if text not in asked))
    embedded = now.asked(new, None, progress, is_stopped) if new else now.query_vectors[:0]
    place = {text: number for number, text in enumerate(new)}
    vectors, changed, by = {}, {}, {}
    for name, texts in written.items():
        differs = np.array([text != query for text, query in zip(texts, now.queries, strict=True)])
        if not differs.any():
            continue  # nothing to try
        own = np.array(now.query_vectors)
        old = {query: number for number, query in enumerate(now.queries)}
        for row in np.flatnonzero(differs).tolist():
            text = texts[row]
            own[row] = embedded[place[text]] if text in place else now.query_vectors[old[text]]
        vectors[name], changed[name] = (own, now.document_vectors), differs
        by[name] = (now, partial(_asked_repaired, setting, name))
    return _replacing("repair", setting, vectors, by, started, is_stopped, changed, setting.known.own_nbytes)


def _asked_repaired(setting: RemedyInput, option: str, query: str) -> Any:
    """The vector of a query after a repair, [dim]."""
    ways = every_way(setting.abbreviations)[option]
    return setting.present.asked_alone(repaired(query, setting.known, ways, setting.abbreviations).text)


def _layer(setting: RemedyInput, progress: ReportProgress, is_stopped: IsStopped) -> Remedy:
    now, started = setting.present, time.perf_counter()
    cells = {f"layer {cell[0]}, {cell[1]}": cell for cell in now.vectors if cell != now.cell}
    vectors = {option: now.vectors[cell] for option, cell in cells.items()}
    by = {option: (there, there.asked_alone) for option, cell in cells.items() for there in [now.at(cell)]}
    return _replacing("layer", setting, vectors, by, started, is_stopped)


def _model(setting: RemedyInput, progress: ReportProgress, is_stopped: IsStopped) -> Remedy:
    now, started = setting.present, time.perf_counter()
    vectors, by = {}, {}
    for backend in setting.models:
        for_queries = backend.embed_options(precision="float32", role="query")
        for_documents = backend.embed_options(precision="float32", role="document")
        other = present(backend, now.pairs, for_queries, for_documents, progress=progress, is_stopped=is_stopped)
        vectors[backend.spec.key], by[backend.spec.key] = other.present_vectors, (other, other.asked_alone)
    return _replacing("model", setting, vectors, by, started, is_stopped)


def _hybrid(setting: RemedyInput, progress: ReportProgress, is_stopped: IsStopped) -> Remedy:
    now, pairs, started = setting.present, setting.present.pairs, time.perf_counter()
    ranker = make_ranker("bm25", pairs.documents.texts)
    by_vectors = vector_scores(*now.present_vectors)

    def ranked(taken: Int64) -> Options:
        """The ranks of each fusion with the scores by words of the queries `taken` [query]."""
        by_words = ranker_scores(ranker, [now.queries[number] for number in taken.tolist()])
        found = ranks_by(pairs, [by_vectors, by_words], list(FUSIONS.values()), is_stopped)
        return dict(zip(FUSIONS, found, strict=True))

    options = ranked(np.arange(len(pairs)))
    seconds = time.perf_counter() - started
    directions = unit(np.asarray(now.document_vectors, np.float32))

    def cost_of(option: str) -> SearchCost:
        def cosines_of(query: str) -> Float64:
            return directions @ unit(np.asarray(now.asked_alone(query), np.float32))

        def search(query: str) -> Int64:
            cosines = cosines_of(query)[None]
            both = [RunScores(cosines, np.ones(cosines.shape, np.bool_)), ranker_scores(ranker, [query])(slice(1))]
            return top(FUSIONS[option].of(both).scores[0], HITS)

        def as_now(query: str) -> Int64:
            return top(np.asarray(cosines_of(query), np.float32), HITS)

        size = now.bytes_per_text + ranker.nbytes / max(1, len(pairs.documents))
        return cost(search, now.queries, size, is_stopped, now=as_now)

    return Remedy("hybrid", options, lambda seed: ranked(others(len(pairs), setting.first, seed)), seconds, cost_of)


def _max_sim(setting: RemedyInput, progress: ReportProgress, is_stopped: IsStopped) -> Remedy:
    now, pairs, started = setting.present, setting.present.pairs, time.perf_counter()
    rows = candidates(now.query_vectors, now.document_vectors, CANDIDATES, is_stopped)

    def vectors(texts: Sequence[str], role: Role, done: int, options: EmbedOptions) -> Sequence[Float32]:
        report, length = part_of(progress, done, len(pairs) + len(pairs.documents)), options.max_length
        return late_interaction_vectors(now.backend, texts, role, now.cell[0], length, report, is_stopped)

    asked = vectors(now.queries, "query", 0, now.query_options)
    told = vectors(pairs.documents.texts, "document", len(pairs), now.document_options)

    def score(taken: Int64) -> Float32:
        scores = np.empty(rows.shape, np.float32)
        for number, other in enumerate(taken.tolist()):
            if number % 64 == 0 and is_stopped():
                raise Stopped
            scores[number] = trained_scores(now.backend, asked[other], [told[row] for row in rows[number]])
        return scores

    def again(query: str, found: Int64) -> Float32:
        (own,) = vectors([query], "query", len(pairs) + len(told) - 1, now.query_options)
        return trained_scores(now.backend, own, [told[row] for row in found])

    return _reranking("maxsim", setting, rows, score, again, started, is_stopped, more_bytes=bytes_of(told))


def _cross_encoder(setting: RemedyInput, progress: ReportProgress, is_stopped: IsStopped) -> Remedy:
    now, started = setting.present, time.perf_counter()
    rows = candidates(now.query_vectors, now.document_vectors, CANDIDATES, is_stopped)
    scorer, texts = setting.cross_encoder, now.pairs.documents.texts
    assert scorer is not None

    def score(taken: Int64) -> Float32:
        asked = [now.queries[other] for other in taken.tolist()]
        return candidate_scores(scorer, asked, texts, rows, progress, is_stopped)

    def again(query: str, found: Int64) -> Float32:
        own = [texts[row] for row in found]
        return scorer([query] * len(own), own, progress=lambda done, total: None, is_stopped=is_stopped)

    # Each draw costs as much as the remedy.
    return _reranking("cross-encoder", setting, rows, score, again, started, is_stopped, 1, TIMED_SECOND)


def _reranking(
    name: str,
    setting: RemedyInput,
    rows: Int64,
    score: Callable[[Int64], Float32],
    again: Callable[[str, Int64], Float32],
    started: float,
    is_stopped: IsStopped,
    draws: int = CONTROLS,
    timed: int = TIMED,
    more_bytes: float = 0.0,
) -> Remedy:
    """A remedy that puts the candidates `rows` [query, candidate] into another order, by its own score mixed with the cosine.

    Both are scaled to mean 0 and deviation 1 over a query's candidates; with the share 1 its own score decides alone, as in
    `evaluate`. `score` takes the number of the query [query] whose scores each query's candidates get; `again` gives the
    scores of one query's candidates, as they are made while a person waits. `more_bytes` are kept for each text beside its
    vector.
    """
    now, pairs = setting.present, setting.present.pairs
    asked, told = (unit(np.asarray(part, np.float32)) for part in (now.query_vectors, now.document_vectors))
    first = _scaled(np.stack([told[own] @ query for query, own in zip(asked, rows, strict=True)]))

    def ranked(taken: Int64) -> Options:
        second = score(taken)
        scaled = _scaled(second)
        return {
            f"share {share:g}": read_only(
                first_ranks(
                    either_ranks(
                        now.ranking.ranks,
                        rows,
                        second if share == 1 else (1 - share) * first + share * scaled,
                        pairs.gold,
                    )
                )
            )
            for share in SHARES
        }

    options = ranked(np.arange(len(pairs)))
    seconds = time.perf_counter() - started
    search = first_hits(now.asked_alone, now.document_vectors, CANDIDATES)

    def cost_of(_: str) -> SearchCost:
        def in_order(query: str) -> Int64:
            return top(again(query, search(query)), HITS)

        return cost(in_order, now.queries, now.bytes_per_text + more_bytes, is_stopped, timed, now=search)

    return Remedy(name, options, lambda seed: ranked(others(len(pairs), setting.first, seed)), seconds, cost_of, draws)


def _scaled(scores: Float32) -> Float32:
    """Scores [query, candidate] with mean 0 and deviation 1 for each query; 0 where all are equal."""
    from_mean = scores - scores.mean(axis=1, keepdims=True)
    deviation = from_mean.std(axis=1, keepdims=True)
    return np.asarray(from_mean / np.where(deviation > 0, deviation, 1), np.float32)


def in_order(names: Iterable[str]) -> list[str]:
    """Names of remedies from the cheapest to the dearest, each once."""
    wanted = set(names)
    return [name for name in TITLES if name in wanted]
