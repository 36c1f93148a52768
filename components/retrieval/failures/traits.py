"""What failed queries share: traits of a query and its right texts, and how much more often failed queries have each.

A trait follows from the query, its right texts, the corpus and the model's reading of them, never from the rank: it is found
alike for failed and for found queries. The shares of both are compared by Newcombe's interval and Fisher's exact test; with as
many tests as traits some would be significant by chance, so that the p-values are adjusted by Holm's method, among the traits
that some queries have and some lack; those that hold for exactly the same queries are one test. A trait is *named* if its
adjusted p-value is below 0.05 and failed queries have it more often.

With fewer than 30 found queries nothing is compared, and with fewer than 30 failed ones traits are only counted.

What it does not show: that a trait makes a query fail. Queries with one trait often have others, which are compared each by
itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from components.analysis.languages.known_letters import has_long_pieces, known_letters
from components.arrays import Float32, read_only, unit
from components.jobs import IsStopped, ReportProgress, Stopped
from components.model.tokenization import Tokenization
from components.numbers import counted, enumerated, percent
from components.retrieval.evaluation.chance import unpaired
from components.retrieval.evaluation.metrics import ALPHA, Interval, holm
from components.retrieval.evaluation.pair_runs import Pairs
from components.retrieval.failures.hubness import k_occurrence
from components.retrieval.failures.vocabulary import CorpusWords
from components.retrieval.search.exact import ExactSearch
from components.retrieval.search.words import content_words
from components.words.differences import is_number, negates
from components.words.forms import forms_in
from components.words.unicode_words import words

LEAST = 30  # failed, and found, queries that are compared
SHORT, LONG = 3, 12  # words: of a short query at most, of a long one more
DUPLICATE_COSINE, DUPLICATE_WORDS = 0.95, 0.8
MOST_CHARACTERS = 500  # of a text whose letters are looked at
FEW_FAILURES = f"Fewer than {LEAST} queries fail: too few to be sure what they share."
# Each trait, with its rule.
TRAITS: dict[str, str] = {
    "likely misspelling": "A word of five letters or more that neither the corpus, in any regular form, nor the model’s "
    "vocabulary has, one edit from a word of the corpus.",
    "unknown word": "A word that neither the corpus, in any regular form, nor the model’s vocabulary has, function words and "
    "likely misspellings apart.",
    "another form of a word": "A right text has a word of the query in another regular form only (voucher, vouchers).",
    "no shared word": "No right text has a word of the query in any regular form, function words apart.",
    "negation": "The query has not, no, never, without or their kind.",
    "number or code": "The query has a number, in digits or as a word, or a code with digits.",
    "short query": f"At most {SHORT} words.",
    "long query": f"More than {LONG} words.",
    "right text not read to its end": "Every right text is longer than the model reads.",
    "query not read to its end": "The query is longer than the model reads.",
    "unknown language": "Most letters of the query, or of every right text, are unknown to the model or read one by one.",
    "near duplicate": "Another text nearly equals a right text: their cosine is at least "
    f"{DUPLICATE_COSINE}, or {100 * DUPLICATE_WORDS:.0f} % of the words of both are in both.",
    "hub as rival": "The nearest text that is not right is a hub: so many queries have it among their first 10 hits that their "
    "number lies more than two standard deviations above the mean.",
    "several right texts": "The query has more than one right text.",
}
MOST_NAMED = 3  # traits in a sentence
_CHECKED = 256  # queries between two looks at `is_stopped`


@dataclass(frozen=True, eq=False)
class Traits:
    """Which traits each query has."""

    names: tuple[str, ...]  # the keys of TRAITS
    holds: NDArray[np.bool_]  # [trait, query]

    def of(self, name: str) -> NDArray[np.bool_]:
        """[query]: whether a trait holds."""
        return np.asarray(self.holds[self.names.index(name)])

    def of_query(self, number: int) -> tuple[str, ...]:
        """The traits of one query."""
        return tuple(name for name, held in zip(self.names, self.holds[:, number], strict=True) if held)


@dataclass(frozen=True)
class TraitShare:
    """How many failed and found queries have one trait."""

    name: str
    failed: int  # failed queries that have it
    failures: int
    found: int  # found queries that have it
    successes: int
    difference: Interval | None = None  # the failed share minus the found one; None where nothing is compared
    adjusted_p: float | None = None  # Fisher's, by Holm's method
    held: NDArray[np.bool_] | None = field(default=None, repr=False, compare=False)  # [query]: whether it holds

    @property
    def share_of_failed(self) -> float:
        """0..1, and 0 without a failed query."""
        return self.failed / self.failures if self.failures else 0.0

    @property
    def share_of_found(self) -> float:
        """0..1, and 0 without a found query."""
        return self.found / self.successes if self.successes else 0.0

    @property
    def is_named(self) -> bool:
        """Whether failed queries have it more often, by more than chance."""
        is_more = self.difference is not None and self.difference.value > 0
        return is_more and self.adjusted_p is not None and self.adjusted_p < ALPHA


def compared(traits: Traits, failed: NDArray[np.bool_]) -> tuple[TraitShare, ...]:
    """The share of each trait among failed and found queries, `failed` [query]; see the module for when they are compared.

    Named traits come first, the smallest p-value before others; then those that found queries have more often by more than
    chance, in this order too; then by the difference of the shares.
    """
    failed = np.asarray(failed, bool)
    failures, successes = int(failed.sum()), int((~failed).sum())
    counts = [(int(held[failed].sum()), int(held[~failed].sum())) for held in traits.holds]
    if min(failures, successes) < LEAST:
        shares = [
            TraitShare(name, own, failures, others, successes, held=held)
            for name, (own, others), held in zip(traits.names, counts, traits.holds, strict=True)
        ]
        return tuple(sorted(shares, key=lambda share: -share.failed))
    # What all queries or none have tells nothing, however the queries are divided, and is no test.
    can_differ = [0 < own + others < failures + successes for own, others in counts]
    p_values = [unpaired.fisher(own, failures, others, successes) for own, others in counts]
    tested: dict[bytes, list[int]] = {}  # those that hold for the same queries together
    for number in np.flatnonzero(can_differ).tolist():
        tested.setdefault(traits.holds[number].tobytes(), []).append(number)
    adjusted = dict.fromkeys(range(len(counts)), 1.0)
    for numbers, p_value in zip(tested.values(), holm([p_values[own[0]] for own in tested.values()]), strict=True):
        adjusted |= dict.fromkeys(numbers, p_value)
    shares = [
        TraitShare(
            name,
            own,
            failures,
            others,
            successes,
            unpaired.difference(own, failures, others, successes),
            adjusted[number],
            traits.holds[number],
        )
        for number, (name, (own, others)) in enumerate(zip(traits.names, counts, strict=True))
    ]

    def order(number: int) -> tuple[bool, bool, float, float]:
        share, is_clear = shares[number], adjusted[number] < ALPHA
        more = share.share_of_failed - share.share_of_found
        return not share.is_named, not is_clear, p_values[number] if is_clear else 0.0, -more

    return tuple(shares[number] for number in sorted(range(len(shares)), key=order))


def named_together(shares: Sequence[TraitShare]) -> list[tuple[str, TraitShare]]:
    """The named traits, at most MOST_NAMED, each in words; those that hold for exactly the same queries are one."""
    together: dict[bytes, list[TraitShare]] = {}
    for share in shares:
        if share.is_named:
            key = share.name.encode() if share.held is None else share.held.tobytes()
            together.setdefault(key, []).append(share)
    return [
        (enumerated([f"“{share.name}”" for share in own]) + " (the same queries)" * (len(own) > 1), own[0])
        for own in list(together.values())[:MOST_NAMED]
    ]


def twin(share: TraitShare, shares: Sequence[TraitShare]) -> str:
    """That a trait holds for the same queries as one that stands before it, in words; "" where it does not."""
    for other in shares:
        if other.name == share.name or share.held is None or not share.held.any():
            return ""
        if other.held is not None and np.array_equal(other.held, share.held):
            return f"the same queries as {other.name}"
    return ""


def too_few(failures: int, successes: int) -> str:
    """What has to be said of so many failed and found queries: of which there are fewer than LEAST; "" where of none."""
    if successes >= LEAST:
        return FEW_FAILURES if failures < LEAST else ""
    hidden = "what a remedy harms cannot be seen, and part of every repair is chance. Add queries that work."
    if not successes:
        return f"Only failures were given: {hidden}"
    if failures < LEAST:
        return f"Too few failed queries ({failures}) and too few found ones ({successes}) to judge: it takes {LEAST} of each."
    return f"Too few found queries to judge ({successes}; it takes {LEAST}): {hidden}"


def remark(failed: NDArray[np.bool_]) -> str:
    """What has to be said above the shares: that nothing can be compared, and why; "" where it can."""
    failures, successes = int(np.sum(failed)), int(np.sum(~np.asarray(failed, bool)))
    return too_few(failures, successes) if failures else ""


def in_words(shares: Sequence[TraitShare]) -> str:
    """What failed queries share, in a sentence: at most three named traits, or that none is named."""
    if not shares:
        return ""
    failures, successes = shares[0].failures, shares[0].successes
    if not failures:
        return f"None of {counted(successes, 'query', 'queries')} fails."
    said = f"{failures:,} of {counted(failures + successes, 'query', 'queries')} {'fails' if failures == 1 else 'fail'}"
    if few := too_few(failures, successes):
        return f"{said}. {most_different(shares) if successes >= LEAST else few}"
    named = named_together(shares)
    if not named:
        return f"{said}, and share no trait more often than found queries by more than chance."
    parts = [
        f"{name} ({percent(share.share_of_failed)} of the failed, {percent(share.share_of_found)} of the found)".replace(
            ") (", ": "
        )
        for name, share in named
    ]
    is_one = sum(share.is_named for share in shares) == 1
    return f"{said}, and more often have the {'trait' if is_one else 'traits'} {enumerated(parts)}."


def most_different(shares: Sequence[TraitShare]) -> str:
    """Of too few queries to compare: the trait that failed ones have more often by the most, in a sentence, or that none is."""
    best = max(shares, key=lambda share: share.share_of_failed - share.share_of_found)
    is_one, among_found = best.failures == 1, percent(best.share_of_found)
    if best.share_of_failed <= best.share_of_found:
        what = "no trait more often than found queries" if best.successes else "none of the traits"
        return f"{'It has' if is_one else 'They have'} {what}."
    said = f"{best.failed} {'has' if best.failed == 1 else 'have'} the trait “{best.name}” ({percent(best.share_of_failed)}"
    if not best.successes:
        return f"{f'It has “{best.name}”' if is_one else f'{said})'}; no query is found to compare with."
    said = (
        f"It has “{best.name}”, as {among_found} of the found have"
        if is_one
        else f"{said} of the failed, {among_found} of the found)"
    )
    return f"{said}: too few to be sure{f', it takes {LEAST} of each' * (best.successes < LEAST)}."


def traits_of(
    pairs: Pairs,
    queries: Float32,
    documents: Float32,
    tokenization: Tokenization,
    max_length: int,
    prompts: tuple[str, str] = ("", ""),
    corpus_words: CorpusWords | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Traits:
    """The traits of each query.

    `queries` [query, dim] and `documents` [document, dim] are the vectors by which the queries are ranked, `max_length` is the
    number of tokens that are read of a text, and `prompts` stand before a query and before a text. `progress(done, total)`
    counts queries. Raises Stopped.
    """
    for_query, for_text = prompts
    known = corpus_words or CorpusWords(pairs.documents.texts, tokenization.vocabulary)
    rights = [pairs.answers_of(number) for number in range(len(pairs))]
    cut_texts = np.array(tokenization.lengths([for_text + text for text in pairs.documents.texts])) > max_length
    cut_queries = np.array(tokenization.lengths([for_query + text for text in pairs.queries.texts])) > max_length
    unknown_texts = _in_unknown_language(pairs.documents.texts, tokenization)
    unknown_queries = _in_unknown_language(pairs.queries.texts, tokenization)
    has_twin = _near_duplicates(documents, pairs.documents.texts, rights, is_stopped)
    rival_is_hub = _hub_rivals(queries, documents, rights, is_stopped)
    text_words = [content_words(text) for text in pairs.documents.texts]
    holds = np.zeros((len(TRAITS), len(pairs)), bool)
    for number, (query, own) in enumerate(zip(pairs.queries.texts, rights, strict=True)):
        if number % _CHECKED == 0:
            progress(number, len(pairs))
            if is_stopped():
                raise Stopped
        query_words = words(query)
        content = content_words(query)
        has = frozenset().union(*(text_words[document] for document in own))
        in_form = {word for word in content - has if forms_in(word, has)}
        unknown = known.unknown(query)
        misspelt = [word for word in unknown if known.neighbour(word) is not None]
        found = {
            "likely misspelling": bool(misspelt),
            "unknown word": len(misspelt) < len(unknown),
            "another form of a word": bool(in_form),
            "no shared word": bool(content) and not content & has and not in_form,
            "negation": any(map(negates, query_words)),
            "number or code": any(map(is_number, query_words)),
            "short query": len(query_words) <= SHORT,
            "long query": len(query_words) > LONG,
            "right text not read to its end": bool(cut_texts[list(own)].all()),
            "query not read to its end": bool(cut_queries[number]),
            "unknown language": bool(unknown_queries[number] or unknown_texts[list(own)].all()),
            "near duplicate": bool(has_twin[number]),
            "hub as rival": bool(rival_is_hub[number]),
            "several right texts": len(own) > 1,
        }
        holds[:, number] = [found[name] for name in TRAITS]
    progress(len(pairs), len(pairs))
    return Traits(tuple(TRAITS), read_only(holds))


def _in_unknown_language(texts: Sequence[str], tokenization: Tokenization) -> NDArray[np.bool_]:
    """[text]: whether the model does not know the language of a text's beginning."""
    is_long = has_long_pieces(tokenization.vocabulary)
    return np.array(
        [
            known_letters(tokenization.tokenize(text[:MOST_CHARACTERS]), tokenization.unknown_id, is_long).is_far_above
            for text in texts
        ],
        bool,
    )


def _near_duplicates(
    documents: Float32, texts: Sequence[str], rights: Sequence[Sequence[int]], is_stopped: IsStopped
) -> NDArray[np.bool_]:
    """[query]: whether a text that is not right nearly equals one that is, by its vector or by its words."""
    directions = unit(np.asarray(documents, np.float32))
    own_words = [set(words(text)) for text in texts]
    places: dict[str, int] = {}
    columns = [places.setdefault(word, len(places)) for each in own_words for word in each]
    rows = np.repeat(np.arange(len(texts)), [len(each) for each in own_words])
    have = sparse.csr_matrix((np.ones(len(columns)), (rows, columns)), shape=(len(texts), max(1, len(places))))
    sizes = np.array([len(each) for each in own_words], np.float64)
    of_text: dict[int, list[int]] = {}  # the queries to which a text is right
    for number, own in enumerate(rights):
        for document in own:
            of_text.setdefault(document, []).append(number)
    has_twin = np.zeros(len(rights), bool)
    for start in range(0, len(texts), _CHECKED):
        if is_stopped():
            raise Stopped
        block = slice(start, start + _CHECKED)
        shared = np.asarray((have[block] @ have.T).todense())
        either = sizes[block, None] + sizes[None] - shared
        is_near = (directions[block] @ directions.T >= DUPLICATE_COSINE) | (
            (shared > 0) & (shared >= DUPLICATE_WORDS * either)
        )
        for place, row in enumerate(is_near):
            for number in of_text.get(start + place, ()):
                others = row.copy()
                others[list(rights[number])] = False
                has_twin[number] |= bool(others.any())
    return has_twin


def _hub_rivals(
    queries: Float32, documents: Float32, rights: Sequence[Sequence[int]], is_stopped: IsStopped
) -> NDArray[np.bool_]:
    """[query]: whether the nearest text that is not right is a hub; False where every text is right."""
    engine = ExactSearch(np.asarray(documents, np.float32))
    hubness = k_occurrence(np.asarray(queries, np.float32), engine, is_stopped=is_stopped)
    hubs = np.zeros(len(rights), bool)
    for number, own in enumerate(rights):
        if number % _CHECKED == 0 and is_stopped():
            raise Stopped
        hits = engine.search(queries[number], min(len(own) + 1, len(documents))).indices[0]
        rivals = [row for row in hits.tolist() if row not in own]
        hubs[number] = bool(rivals) and hubness.is_hub(rivals[0])
    return hubs
