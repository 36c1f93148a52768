"""How much each word of two texts matters for their similarity, by several methods.

Each method gives every word of both texts a score for cos(a, b), where a and b are the texts' vectors at one layer, by one
pooling. The higher the score, the more similarity hangs on the word, as the method sees it; a negative score means
that the word holds the texts apart. A word's score is the sum over its pieces.

- ledger: what the word adds to the cosine. Pooling is a sum over tokens, a = sum_i w_i * x_i (elementwise: w is 1/n for the
  mean, and for the maximum 1 where token i has the largest value of a dimension), so that the cosine is a sum over pairs of
  tokens, (w_i * x_i).(v_j * y_j) / (|a| |b|). A token's score is the sum of its row or column. The scores of one text's
  tokens, special ones included, sum to the cosine.
- leave one out: the fall of the cosine without the word (Li, Monroe and Jurafsky 2016).
- attention rollout: the share of the text's vector that comes from the word if attention were the only effect (Abnar and
  Zuidema 2020; components.analysis.attention.flow). It does not know the other text.
- gradient x input: components.model.contributions.gradients.

What they do not show: which of them is right. They answer different questions and often disagree; the module deletion puts
them to one test. Scores of different methods have different units: compare orders, not numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from components.analysis.attention.flow import rollout
from components.analysis.leave_one_out import RemovedWord, without, words_of
from components.analysis.pooling import pool
from components.analysis.why.token_ledger import pooling_weights, token_contributions, token_weights
from components.arrays import Float32, Float64, cosine
from components.jobs import IsStopped, ReportProgress

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.trace import Pooling, TokenizedSentence, Trace

Tokenize = Callable[[str], "TokenizedSentence"]


class NotApplicable(ValueError):
    """A method that says nothing at this layer, or with this pooling; the message is a sentence for people."""


@dataclass(frozen=True)
class WordPair:
    """Two texts that a model reads one after the other, as far as it reads them, and their words."""

    sentences: tuple[TokenizedSentence, TokenizedSentence]
    words: tuple[RemovedWord, ...]  # from left to right, those of the first text first; punctuation is no word

    @classmethod
    def read(cls, tokenize: Tokenize, first: str, second: str) -> WordPair:
        """Both texts without what is truncated: else, once a word is removed, the model would read more of the rest."""
        sentences = (_as_read(tokenize, first), _as_read(tokenize, second))
        words = [
            replace(word, in_pair=bool(number))
            for number, sentence in enumerate(sentences)
            for word in words_of(sentence)
        ]
        return cls(sentences, tuple(words))

    @property
    def texts(self) -> tuple[str, str]:
        first, second = self.sentences
        return first.text, second.text

    @property
    def counts(self) -> tuple[int, int]:
        """The number of words in each text."""
        second = sum(word.in_pair for word in self.words)
        return len(self.words) - second, second

    def left(self, removed: Collection[int]) -> tuple[str, str]:
        """Both texts without some of the words, which are given by their index."""
        texts = list(self.texts)
        # From right to left: what stands before a removed word keeps its place.
        for index in sorted(removed, key=lambda index: -self.words[index].start):
            word = self.words[index]
            texts[word.in_pair] = without(texts[word.in_pair], word)
        return texts[0], texts[1]

    def without_each(self) -> list[tuple[str, str]]:
        """Both texts as they are, then without each word in turn."""
        return [self.texts, *(self.left({index}) for index in range(len(self.words)))]

    def by_word(self, token_scores: Sequence[np.ndarray]) -> Float64:
        """Scores of the tokens of each text, two arrays [token], summed over the pieces of each word: float64 [word]."""
        return np.array(
            [
                sum(
                    float(token_scores[word.in_pair][token.position])
                    for token in self.sentences[word.in_pair].tokens
                    if token.word is not None and word.start <= token.start and token.end <= word.end
                )
                for word in self.words
            ],
            np.float64,
        )


def _as_read(tokenize: Tokenize, text: str) -> TokenizedSentence:
    """The tokens of a text; of one that is too long, those of the part that is read."""
    sentence = tokenize(text.strip())
    if not sentence.dropped:
        return sentence
    if sentence.dropped[0].is_beginning:
        return tokenize(sentence.text[min(token.start for token in sentence.tokens if not token.special) :].lstrip())
    return tokenize(sentence.text[: max(token.end for token in sentence.tokens)].rstrip())


def first_words(tokenize: Tokenize, text: str, most: int) -> str:
    """A text up to its word number `most`, or as far as it is read if it has no more words."""
    sentence = _as_read(tokenize, text)
    words = words_of(sentence)
    return sentence.text if len(words) <= most else sentence.text[: words[most - 1].end]


@dataclass(frozen=True, eq=False)
class PairSimilarity:
    """The cosine of two texts at one layer by one pooling, and what a model tells of it."""

    backend: Backend
    pair: WordPair
    layer: int
    pooling: Pooling
    max_length: int  # tokens

    @classmethod
    def of(
        cls, backend: Backend, first: str, second: str, layer: int, pooling: Pooling, max_length: int | None = None
    ) -> PairSimilarity:
        """Of two texts; None as `max_length` is the model's own. Raises InputError as `Backend.tokenize` does."""
        length = max_length or backend.own_max_length
        pair = WordPair.read(lambda text: backend.tokenize([text], max_length=length)[0], first, second)
        return cls(backend, pair, layer, pooling, length)

    def cosines(
        self,
        firsts: Sequence[str],
        seconds: Sequence[str],
        progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
    ) -> Float64:
        """The cosines of other texts, in pairs, float64 [pair]. `progress` counts different texts; raises as `embed` does."""
        options = self.backend.embed_options([self.layer], [self.pooling], self.max_length, precision="float32")
        texts = list(dict.fromkeys([*firsts, *seconds]))
        vectors = self.backend.embed(texts, options=options, progress=progress, is_stopped=is_stopped)[0, 0]
        rows = {text: row for row, text in enumerate(texts)}
        return cosine(vectors[[rows[text] for text in firsts]], vectors[[rows[text] for text in seconds]])

    @cached_property
    def vectors(self) -> tuple[Float32, Float32]:
        """The two texts' own vectors [dim]."""
        first, second = (pool(trace, self.pooling)[self.layer, 0] for trace in self._traces(False))
        return first, second

    @property
    def cosine(self) -> float:
        return float(cosine(*self.vectors))

    def hidden(self) -> list[Float32]:
        """The token vectors of each text at the layer, two arrays [token, dim]."""
        return [trace.hidden_states[self.layer, 0] for trace in self._traces(False)]

    def weights(self) -> list[Float64]:
        """How much of each token's numbers each text's vector takes, two arrays [token, dim]."""
        return [token_weights(trace, self.layer, self.pooling, 0)[1] for trace in self._traces(False)]

    def attentions(self) -> list[Float32]:
        """The attentions of each text, two arrays [block, head, query, key]."""
        return [trace.attentions[:, 0] for trace in self._traces(True) if trace.attentions is not None]

    def _traces(self, attentions: bool) -> list[Trace]:
        return [
            self.backend.trace([text], attentions=attentions, max_length=self.max_length) for text in self.pair.texts
        ]


Method = Callable[[PairSimilarity, ReportProgress, IsStopped], Float64]  # to scores [word]


def by_ledger(similarity: PairSimilarity, progress: ReportProgress, is_stopped: IsStopped) -> Float64:
    """What each word adds to the cosine, float64 [word]."""
    if similarity.pooling == "own":
        raise NotApplicable(
            "the model's own vector is more than a sum over tokens: what follows the pooling has a part of it"
        )
    if similarity.pooling == "cls":
        raise NotApplicable("with [CLS] the whole cosine belongs to one token, which is no word")
    first, second = (pooling_weights(hidden, similarity.pooling) * hidden for hidden in similarity.hidden())
    contributions = token_contributions(first, second)
    return similarity.pair.by_word([contributions.sum(axis=1), contributions.sum(axis=0)])


def by_leaving_out(similarity: PairSimilarity, progress: ReportProgress, is_stopped: IsStopped) -> Float64:
    """The fall of the cosine without each word, float64 [word]; without its only word a text is [CLS] [SEP]."""
    firsts, seconds = zip(*similarity.pair.without_each(), strict=True)
    cosines = similarity.cosines(firsts, seconds, progress, is_stopped)
    return np.asarray(cosines[0] - cosines[1:])


def by_rollout(similarity: PairSimilarity, progress: ReportProgress, is_stopped: IsStopped) -> Float64:
    """The share of the text's own vector that comes from each word by attention rollout, float64 [word]."""
    if similarity.layer == 0:
        raise NotApplicable("at layer 0 no block has run, so that there is no attention yet")
    shares = []
    for weights, attentions in zip(similarity.weights(), similarity.attentions(), strict=True):
        flow = rollout(attentions[: similarity.layer])[-1]  # [query, key]
        shares.append(weights.mean(axis=1) @ flow)
    return similarity.pair.by_word(shares)


def by_gradient(similarity: PairSimilarity, progress: ReportProgress, is_stopped: IsStopped) -> Float64:
    """The gradient of the cosine with respect to each word's input vectors, times these, float64 [word]."""
    if similarity.pooling == "cls" and similarity.layer == 0:
        raise NotApplicable("at layer 0 the vector of [CLS] does not depend on any word")
    if similarity.backend.structure.ignores_word_lengths:
        raise NotApplicable(
            "in this model a norm undoes any scaling of a word vector at once, so that its gradient times itself is always 0"
        )
    scores = [
        similarity.backend.gradient_times_input(sentence, other, similarity.layer, similarity.pooling)
        for sentence, other in zip(similarity.pair.sentences, similarity.vectors[::-1], strict=True)
    ]
    return similarity.pair.by_word(scores)


LEDGER, LEFT_OUT, ROLLOUT, GRADIENT, RANDOM = "ledger", "left_out", "rollout", "gradient", "random"
# A further method is one more entry here, and its name below: scores [word], or NotApplicable with the reason.
METHODS: dict[str, Method] = {
    LEDGER: by_ledger,
    LEFT_OUT: by_leaving_out,
    ROLLOUT: by_rollout,
    GRADIENT: by_gradient,
}
METHOD_NAMES = {  # for people
    LEDGER: "Share of score",
    LEFT_OUT: "Leave one out",
    ROLLOUT: "Attention rollout",
    GRADIENT: "Gradient × input",
    RANDOM: "Random order",
}
