"""Activation patching: where in the model does the difference between two sentences lie?

Sentence B is run with an activation of sentence A in the place of its own, and everything after it is computed anew. If
the similarity of B to a third text C then reads as that of A, what makes A and B differ was in this activation (Vig et al.
2020, "Investigating Gender Bias in Language Models Using Causal Mediation Analysis"; Meng et al. 2022, "Locating and
Editing Factual Associations in GPT"). Ablation asks the reverse: how far does the similarity of B to C fall if an
activation is replaced by zeros, by its mean over other sentences, or by that of another sentence?

    effect = (patched - B) / (A - B)      0: as without the patch, 1: all the way to A

Only tokens with a counterpart in the other sentence can be patched: with equal numbers of tokens each with the one at its
position, otherwise those that the two sentences share, in order (`align_tokens`). With equal numbers, patching all tokens
of one layer gives A exactly, because everything after a layer is computed from it alone.

What it does not show: that the model uses an activation in this way for other sentences. A patch shows that an activation
is enough here. It puts the model into a state that no text gives it, and later parts may make up for what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from components.analysis.why import common_runs
from components.analysis.why.patch_codes import Patch
from components.arrays import Float32, Float64, cosine, read_only
from components.errors import InputError
from components.model.interventions.activations import Activations, Site
from components.model.interventions.patched import Replacement
from components.model.trace import Pooling, Token, TokenizedSentence

if TYPE_CHECKING:
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.model.catalog import ModelFacts

MapKind = Literal["tokens", "heads", "parts"]
Ablation = Literal["zero", "mean", "resample"]
_ARRAYS = ("layers", "heads", "attention", "feed_forward")  # of Activations
SMALL_DIFFERENCE = 0.02  # of two outcomes: shares of a smaller difference are large numbers that mean little
SUITABLE_DIFFERENCE = 0.05  # of two cosines: from here on a pair is offered first
NEAR = 1e-5  # of two cosines: the same text embedded twice may differ by that


@dataclass(frozen=True)
class Alignment:
    """The tokens of two inputs that stand for each other."""

    pairs: tuple[tuple[int, int], ...]  # positions in A and in B, rising in both
    differing: tuple[int, ...]  # positions in B whose token is another one in A, or has no counterpart
    is_complete: bool  # every token of both has a counterpart at its own position

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions in B that have a counterpart."""
        return tuple(second for _, second in self.pairs)

    def counterpart(self, position: int) -> int | None:
        """The position in A of B's token at `position`."""
        return next((first for first, second in self.pairs if second == position), None)


def align_tokens(first: TokenizedSentence, second: TokenizedSentence) -> Alignment:
    """A's tokens matched with B's. With equal numbers each is matched with the one at its position.

    Otherwise the common beginning and end are matched, and between them the longest common runs of tokens; where a run of
    tokens is replaced by another one of the same length, its tokens are matched one by one. The others have no counterpart.
    """
    a, b = ([token.id for token in sentence.tokens] for sentence in (first, second))
    if len(a) == len(b):
        pairs = [(position, position) for position in range(len(a))]
    else:
        start, most = 0, min(len(a), len(b))
        while start < most and a[start] == b[start]:
            start += 1
        end = 0
        while end < most - start and a[-1 - end] == b[-1 - end]:
            end += 1
        pairs = [(position, position) for position in range(start)]
        for _, a1, a2, b1, b2 in common_runs.steps(a[start : len(a) - end], b[start : len(b) - end]):
            if a2 - a1 == b2 - b1:
                pairs += [(start + a1 + step, start + b1 + step) for step in range(a2 - a1)]
        pairs += [(len(a) - left, len(b) - left) for left in range(end, 0, -1)]
    same = {at_b for at_a, at_b in pairs if a[at_a] == b[at_b]}
    differing = tuple(position for position in range(len(b)) if position not in same)
    return Alignment(tuple(pairs), differing, len(a) == len(b))


class PatchSource(Protocol):
    """Where the values of replaced activations come from."""

    @property
    def positions(self) -> tuple[int, ...]: ...  # of B, that can be replaced
    def values(self, site: Site, number: int, positions: Sequence[int], head: int | None) -> Float32:
        """The values for these positions of B, float32 [position, dim]."""
        ...


@dataclass(frozen=True, eq=False)
class FromSentence:
    """The activations of another input at the tokens that stand for B's."""

    other: Activations
    counterparts: Mapping[int, int]  # position in B to position in the other

    @property
    def positions(self) -> tuple[int, ...]:
        return tuple(self.counterparts)

    def values(self, site: Site, number: int, positions: Sequence[int], head: int | None) -> Float32:
        return self.other.at(site, number, head)[[self.counterparts[position] for position in positions]]


@dataclass(frozen=True, eq=False)
class Zeros:
    """Zeros of the right size."""

    own: Activations  # of B, which has the sizes

    @property
    def positions(self) -> tuple[int, ...]:
        return tuple(range(len(self.own.sentence)))

    def values(self, site: Site, number: int, positions: Sequence[int], head: int | None) -> Float32:
        return np.zeros((len(positions), self.own.at(site, number, head).shape[-1]), np.float32)


@dataclass(frozen=True, eq=False)
class Means:
    """The mean over a sample of inputs, for the tokens of B."""

    sentence: TokenizedSentence  # B
    means: Activations  # with the roles in the place of tokens
    roles: tuple[str, ...]

    @property
    def positions(self) -> tuple[int, ...]:
        return tuple(range(len(self.sentence)))

    def values(self, site: Site, number: int, positions: Sequence[int], head: int | None) -> Float32:
        at = _roles(self.sentence)
        return self.means.at(site, number, head)[[self.roles.index(at[position]) for position in positions]]


@dataclass(frozen=True, eq=False)
class SampleMeans:
    """The mean over a sample of inputs: of each special token by itself, and of all tokens of a text. For any sentence."""

    roles: tuple[str, ...]  # every role that occurs in the sample
    arrays: Mapping[str, Float32]  # by the field of Activations, with the roles in the place of tokens

    @property
    def nbytes(self) -> int:
        """Memory the arrays take, in bytes."""
        return sum(array.nbytes for array in self.arrays.values())

    def of(self, sentence: TokenizedSentence) -> Means:
        """The means in the place of a sentence's tokens. Raises InputError for a token whose role is not in the sample."""
        missing = [
            token.piece for token, role in zip(sentence.tokens, _roles(sentence), strict=True) if role not in self.roles
        ]
        if missing:
            raise InputError(
                f"No sentence of the sample has a token in the place of “{missing[0]}”.",
                "A mean is taken over the tokens that play the same part in other sentences.",
                "Choose something else to put into B, or another sentence.",
            )
        return Means(sentence, Activations(sentence, **self.arrays), self.roles)


def _roles(sentence: TokenizedSentence) -> list[str]:
    """What each token is: one of the first or second text, or the n-th special token."""
    specials = iter(range(len(sentence)))
    return [f"special {next(specials)}" if token.special else f"text {int(token.in_pair)}" for token in sentence.tokens]


def mean_activations(sample: Iterable[Activations]) -> SampleMeans:
    """The mean of the sample's activations by the tokens' roles. Raises ValueError for an empty sample."""
    totals: dict[str, dict[str, np.ndarray]] = {}  # role to field to the sum over its tokens, [block, ...]
    counts: dict[str, int] = {}
    for item in sample:
        of_token = np.array(_roles(item.sentence))
        for role in dict.fromkeys(of_token.tolist()):
            members = of_token == role
            counts[role] = counts.get(role, 0) + int(members.sum())
            own = totals.setdefault(role, {})
            for name in _ARRAYS:
                own[name] = own.get(name, 0.0) + getattr(item, name)[:, members].sum(axis=1, dtype=np.float64)
    if not counts:
        raise ValueError("the sample is empty")
    arrays = {
        name: read_only(np.stack([own[name] / counts[role] for role, own in totals.items()], axis=1).astype(np.float32))
        for name in _ARRAYS
    }
    return SampleMeans(tuple(counts), arrays)


def same_places(sentence: TokenizedSentence, other: TokenizedSentence) -> dict[int, int]:
    """For each token of a sentence the place in another one whose activation stands in for it.

    Special tokens stand for each other in their order, and the n-th token of a text for the n-th of the other, from the
    beginning again where that one is shorter.
    """
    places: dict[int, int] = {}
    for group in ("special", "first", "second"):
        ours, theirs = _members(sentence, group), _members(other, group)
        places |= {position: theirs[row % len(theirs)] for row, position in enumerate(ours) if theirs}
    return dict(sorted(places.items()))


def _members(sentence: TokenizedSentence, group: str) -> list[int]:
    def belongs(token: Token) -> bool:
        return token.special if group == "special" else not token.special and token.in_pair == (group == "second")

    return [token.position for token in sentence.tokens if belongs(token)]


def replacements(patches: Sequence[Patch], source: PatchSource) -> list[Replacement]:
    """What the model is to replace for these patches, all at once. A head and a part of a block: at all positions."""
    made = []
    for patch in patches:
        positions = (patch.index,) if patch.site == "layer" and patch.index is not None else source.positions
        head = patch.index if patch.site == "head" else None
        values = source.values(patch.site, patch.number, positions, head)
        made.append(Replacement(patch.site, patch.number, positions, values, head))
    return made


def map_of(kind: MapKind, facts: ModelFacts, tokens: int) -> list[list[Patch]]:
    """The patches of a map [row][column]: layer by token, block by head, or block by attention and feed-forward part."""
    if kind == "tokens":
        return [[Patch("layer", layer, position) for position in range(tokens)] for layer in range(facts.layers + 1)]
    if kind == "heads":
        return [[Patch("head", block, head) for head in range(facts.heads)] for block in range(facts.layers)]
    return [[Patch("attention", block), Patch("feed_forward", block)] for block in range(facts.layers)]


def measured(
    backend: Backend,
    sentence: TokenizedSentence,
    source: PatchSource,
    experiments: Sequence[Sequence[Patch]],
    pooling: Pooling | None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Float32:
    """The vector of B after each experiment, float32 [experiment, dim]; without a pooling the logits [experiment, label].

    An experiment is a list of patches that are made together; an empty one gives B as it is. Raises as the model does.
    """
    changes = [replacements(patches, source) for patches in experiments]
    if pooling is None:
        return backend.patched_logits(sentence, changes, progress, is_stopped)
    return backend.patched_vectors(sentence, changes, pooling, progress, is_stopped)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What is measured of B with each of some patches, and of A and B as they are."""

    of_a: float  # NaN where B's activations are not replaced by A's
    of_b: float
    patched: Float64  # [patch]
    changes: Float64 = field(init=False)  # [patch]: patched - B
    shares: Float64 | None = field(init=False)  # [patch]: of the way from B to A; None if A and B hardly differ

    def __post_init__(self) -> None:
        object.__setattr__(self, "changes", read_only(self.patched - self.of_b))
        whole = self.of_a - self.of_b
        shares = None if not abs(whole) >= SMALL_DIFFERENCE else read_only(self.changes / whole)
        object.__setattr__(self, "shares", shares)


@dataclass(frozen=True)
class PairEffect:
    """What an experiment on two sentences A and B can show, with C."""

    has_same_count: bool  # of tokens
    of_a: float  # the cosines with C
    of_b: float
    carried: float  # the largest share that one vector of a token which is the same in both carries; NaN where none is measured

    @property
    def is_suitable(self) -> bool:
        """Whether every token has its counterpart, and there is a difference of which one can take shares."""
        return self.has_same_count and abs(self.of_a - self.of_b) >= SUITABLE_DIFFERENCE


def pair_effect(
    backend: Backend,
    texts: tuple[str, str, str],
    pooling: Pooling,
    is_stopped: IsStopped = lambda: False,
) -> PairEffect:
    """The effect of A's vectors put into B, for texts A, B and C; Raises Stopped.

    Tried are the tokens that are the same in both, special ones left out, at the layers between the first block and the last:
    before the first block equal tokens have equal vectors, and the last block shares everything out.
    """
    a, b, c = backend.tokenize(list(texts), max_length=backend.own_max_length)
    of_a, of_b, of_c = (backend.patched_vectors(item, [[]], pooling)[0] for item in (a, b, c))
    alignment = align_tokens(a, b)
    plain = cosine_outcomes(of_a, of_b, of_b[None], of_c)
    effect = PairEffect(alignment.is_complete, plain.of_a, plain.of_b, float("nan"))
    same = [token.position for token in b.tokens if not token.special and token.position not in alignment.differing]
    patches = [[Patch("layer", layer, position)] for layer in range(1, backend.facts.layers) for position in same]
    if not effect.is_suitable or not patches or not alignment.differing:
        return effect
    source = FromSentence(backend.activations(a), {second: first for first, second in alignment.pairs})
    vectors = measured(backend, b, source, patches, pooling, is_stopped=is_stopped)
    shares = cosine_outcomes(of_a, of_b, vectors, of_c).shares
    return effect if shares is None else PairEffect(True, plain.of_a, plain.of_b, float(shares.max()))


def best_of(effects: Sequence[PairEffect]) -> int:
    """The number of the pair to begin with: the suitable one in which a token that is the same in both carries most.

    A pair whose A is nearer to C comes before one whose A is farther away: there, what is put into B adds to the similarity.
    """
    order = sorted(range(len(effects)), key=lambda number: (not effects[number].is_suitable, number))
    known = [number for number in order if effects[number].is_suitable and effects[number].carried > 0]
    return max(
        known,
        key=lambda number: (effects[number].of_a > effects[number].of_b, effects[number].carried),
        default=order[0],
    )


def cosine_outcomes(a: Float32, b: Float32, patched: Float32, c: Float32) -> Outcomes:
    """The cosine with C's vector [dim], from the sentence vectors of A and B [dim] and of the patched B [patch, dim]."""
    return Outcomes(float(cosine(a, c)), float(cosine(b, c)), cosine(patched, c))


def score_outcomes(a: float, b: float, patched: np.ndarray) -> Outcomes:
    """The scores of a cross-encoder, those of the patched B as [patch]."""
    return Outcomes(float(a), float(b), np.asarray(patched, np.float64))


def rank_outcomes(cosines: Outcomes, corpus: np.ndarray) -> Outcomes:
    """The rank of the text for the query C: 1 + the number of texts of a corpus that are nearer to C.

    `corpus` has the cosines of the corpus's texts with C [text]; a text that is as near to within NEAR does not count.
    """
    ordered = np.sort(np.asarray(corpus, np.float64))

    def rank(values: Float64 | float) -> Float64:
        return np.asarray(1 + len(ordered) - np.searchsorted(ordered, values + NEAR, side="right"), np.float64)

    return Outcomes(float(rank(cosines.of_a)), float(rank(cosines.of_b)), rank(cosines.patched))
