"""Code for search: the hits of a query by vectors, by words, by SPLADE and re-ranked, and the scores of a whole corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from components.retrieval.search.exact import is_distance
from components.snippets import code
from components.snippets.code import Snippet

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.embedding.options import EmbedOptions
    from components.model.trace import Pooling
    from components.retrieval.search.exact import Similarity
    from components.retrieval.search.lexical import Kind

TEXTS_OF_HITS = "print([corpus.texts[row] for row in best])"


@dataclass(frozen=True)
class Embedded:
    """A corpus as it is searched: its vectors at a layer and pooling."""

    backend: Backend
    corpus: Sequence[str]  # the statements that read it
    options: EmbedOptions  # of the index
    layer: int
    pooling: Pooling

    @property
    def setup(self) -> tuple[str, ...]:
        return code.model(self.backend), *self.corpus

    def settings(self) -> tuple[str, ...]:
        """The statements of how texts are embedded: `documents` and `asked`."""
        settings = {
            "layers": [self.layer],
            "poolings": [self.pooling],
            "max_length": self.options.max_length,
        }
        return (
            f"settings = {code.literal(settings)}",
            f'documents = backend.embed_options(**settings, precision="{self.options.precision}", role="document")',
            'asked = backend.embed_options(**settings, precision="float32", role="query")',
        )

    def body(self, queries: str) -> tuple[str, ...]:
        """The statements that embed the corpus and the queries: `search`, and `queries` [query, dim]."""
        return (
            *self.settings(),
            "search = ExactSearch(backend.embed(corpus.texts, options=documents)[0, 0])",
            f"queries = backend.embed({queries}, options=asked)[0, 0]  # [query, dim]",
        )


def hits(of: Embedded, queries: Sequence[str], k: int, similarity: Similarity) -> Snippet:
    """The first hits of one query or several."""
    found = code.call("search.search", "queries", k=k, similarity=similarity)
    return Snippet(
        of.setup,
        (
            *of.body(code.literal(list(queries))),
            f"hits = {found}",
            "print(hits.indices, hits.scores)  # [query, hit] each",
            "print([[corpus.texts[row] for row in rows] for rows in hits.indices])",
        ),
    )


def all_scores(of: Embedded, query: str, similarity: Similarity) -> Snippet:
    """The score of every sentence for a query."""
    return Snippet(
        of.setup,
        (
            *of.body(f"[{code.literal(query)}]"),
            f"values = search.scores(queries[0], {code.literal(similarity)})",
            "print(values)  # [sentence]",
        ),
    )


def most_similar(of: Embedded, count: int) -> Snippet:
    """The most similar pairs of a corpus."""
    return Snippet(
        of.setup,
        (
            *of.settings()[:2],
            "vectors = backend.embed(corpus.texts, options=documents)[0, 0]  # [sentence, dim]",
            f"pairs = most_similar_pairs(vectors, {count}, corpus.texts)",
            'for pair in pairs:\n    print(pair.cosine, corpus.texts[pair.first], corpus.texts[pair.second], sep="  ")',
        ),
    )


def split_of_hit(of: Embedded, query: str, row: int, similarity: Similarity, most_characters: int) -> Snippet:
    """What the words of a query and of a hit add to its score; of a longer hit the first `most_characters` are split."""
    place = f"{of.layer}, {code.literal(of.pooling)}, {code.literal(similarity)}"
    whole = "split.score, which split.of names" if is_distance(similarity) else "the score"
    return Snippet(
        of.setup,
        (
            f"query, row = {code.literal(query)}, {row}",
            *of.body("[query]"),
            f"score = float(search.scores(queries[0], {code.literal(similarity)})[row])",
            f"texts = [asked.prompt + query, documents.prompt + corpus.texts[row][:{most_characters}]]",
            'trace = backend.trace(texts, max_length=documents.max_length, prompt="")',
            "prompts = (len(asked.prompt), len(documents.prompt))",
            f"split = split_of_vectors(trace, {place}, score, prompts)",
            f"print([(part.text, part.value) for part in split.query], split.terms)  # all together are {whole}",
            "print([(part.text, part.value) for part in split.hit], split.terms)  # and so are these",
        ),
    )


def split_by_words(
    backend: Backend, corpus: Sequence[str], kind: Kind, query: str, row: int, *, file_of_vectors: str = ""
) -> Snippet:
    """What each word adds to the score of a hit by a ranking of words; `file_of_vectors` names a person's file."""
    setup, ranker = _word_ranker(backend, corpus, kind, file_of_vectors)
    return Snippet(
        setup,
        (
            *ranker,
            f"query, row = {code.literal(query)}, {row}",
            "split = ranker.split(query, corpus.texts[row], row)",
            "print([(part.text, part.value) for part in split.query], split.terms)  # all together are the score",
            "print([(part.text, part.value) for part in split.hit], split.terms)  # and so are these",
        ),
    )


def words(
    backend: Backend, corpus: Sequence[str], kind: Kind, query: str, k: int, *, file_of_vectors: str = ""
) -> Snippet:
    """The scores of all sentences and the hits by a ranking of words; `file_of_vectors` names a person's file."""
    setup, ranker = _word_ranker(backend, corpus, kind, file_of_vectors)
    return Snippet(setup, (*ranker, *_ranked(query, k)))


def _word_ranker(
    backend: Backend, corpus: Sequence[str], kind: Kind, file_of_vectors: str
) -> tuple[tuple[str, ...], list[str]]:
    """The statements of the setup, and those that give `ranker`."""
    setup = (*corpus,)
    if kind != "static":
        ranker = [f"ranker = make_ranker({code.literal(kind)}, corpus.texts)"]
    elif file_of_vectors:
        ranker = [
            *code.file(file_of_vectors, "The word vectors were those of"),
            "ranker = StaticRanker.of_words(read_static_vectors(file, file.name), corpus.texts)",
        ]
    else:
        setup = (code.model(backend), *corpus)
        ranker = ["ranker = StaticRanker.of_model(backend, corpus.texts)"]
    return setup, ranker


def _ranked(query: str, k: int) -> tuple[str, ...]:
    return (
        f"values = ranker.scores({code.literal(query)})  # [sentence]",
        f"best = top(values, {k})",
        "print(best, values[best])",
        TEXTS_OF_HITS,
    )


def splade(backend: Backend, corpus: Sequence[str], max_length: int | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The statements that give `ranker`, SPLADE over a corpus."""
    index = code.call("SpladeIndex.of_texts", "backend", "corpus.texts", max_length=max_length)
    return (code.model(backend), *corpus), (f"ranker = SpladeRanker(backend, {index})",)


def by_splade(backend: Backend, corpus: Sequence[str], max_length: int | None, query: str, k: int) -> Snippet:
    """The scores of all sentences and the hits by SPLADE."""
    setup, body = splade(backend, corpus, max_length)
    return Snippet(setup, (*body, *_ranked(query, k)))


def splade_pieces(
    backend: Backend, corpus: Sequence[str], max_length: int | None, query: str, row: int | None = None
) -> Snippet:
    """The pieces of a query by SPLADE, or with `row` those of a sentence of the corpus and what each adds to its score."""
    setup, body = splade(backend, corpus, max_length)
    if row is None:
        return Snippet(
            setup,
            (*body, f"pieces = ranker.query_pieces({code.literal(query)})", "print(pieces.pieces, pieces.weights)"),
        )
    return Snippet(
        setup,
        (
            *body,
            f"query, row = {code.literal(query)}, {row}",
            "shared = ranker.shared_pieces(query, corpus.texts[row], row)",
            "pieces = ranker.sentence_pieces(corpus.texts[row], row)",
            "print(shared.pieces, shared.contributions)  # their sum is the score",
            "print(pieces.pieces, pieces.weights)  # all pieces of the sentence",
        ),
    )


@dataclass(frozen=True)
class SecondStage:
    """A model that scores candidates again; `layer` is that of MaxSim, None for a cross-encoder."""

    backend: Backend
    max_length: int | None
    label: int | None = None  # of a cross-encoder with several
    layer: int | None = None

    def scores(self, name: str = "second") -> str:
        """The expression of the scores of `documents` for `query`, by the model of this name."""
        if self.layer is not None:
            arguments = (name, "query", "documents", str(self.layer))
            return code.call("late_interaction_scores", *arguments, max_length=self.max_length)
        return code.call(
            f"{name}.score_pairs",
            "[query] * len(documents)",
            "documents",
            label=self.label,
            max_length=self.max_length,
        )


def _candidates(count: int, similarity: Similarity) -> tuple[str, ...]:
    """The statements that give `rows`, the first hits, and their texts `documents`."""
    found = code.call("search.search", "queries", k=count, similarity=similarity)
    return f"rows = {found}.indices[0]", "documents = [corpus.texts[row] for row in rows]"


def reranked(of: Embedded, stage: SecondStage, query: str, candidates: int, similarity: Similarity) -> Snippet:
    """The first hits of a query in the order of a second stage."""
    return Snippet(
        (*of.setup, code.model(stage.backend, "second")),
        (
            f"query = {code.literal(query)}",
            *of.body("[query]"),
            *_candidates(candidates, similarity),
            f"reranked = in_order_of({stage.scores()}, rows)",
            "best, values = reranked.rows, reranked.scores",
            "print(best, values)  # [candidate] each, best first",
            TEXTS_OF_HITS,
        ),
    )


# What is put together with vectors: other vectors of the model; a ranking by words, with the name of a person's file of vectors
# or ""; or a second stage of the first vectors, with the number of its candidates.
Fused = Embedded | tuple["Kind", str] | tuple[SecondStage, int]


def fused(of: Embedded, others: Sequence[Fused], query: str, k: int, similarity: Similarity) -> Snippet:
    """The first hits by vectors and one or two other rankings together, by reciprocal rank fusion, with the terms of each."""
    by = f"query_scores(queries[0], search.vectors, {code.literal(similarity)})"
    setup, body = of.setup, [f"query = {code.literal(query)}", *of.body("[query]"), f"runs = [{by}]"]
    # What needs the first vectors comes before other vectors.
    for other in sorted(others, key=lambda other: isinstance(other, Embedded)):
        if isinstance(other, Embedded):
            body += [*other.body("[query]"), f"runs.append({by})"]
        elif isinstance(other[0], SecondStage):
            stage, candidates = other[0], other[1]
            setup = (*setup, code.model(stage.backend, "second"))
            body += [*_candidates(candidates, similarity), f"scores = {stage.scores()}"]
            body.append("runs.append(reranked_scores(lambda _: runs[0], rows[None], scores[None])(slice(0, 1)))")
        else:
            _, ranker = _word_ranker(of.backend, of.corpus, other[0], other[1])
            body += [*ranker, "runs.append(ranker_scores(ranker, [query])(slice(0, 1)))"]
    fusion = "Fusion()" if len(others) == 1 else f"Fusion(weights={(1.0,) * (1 + len(others))})"
    return Snippet(
        setup,
        (
            *body,
            f"hits = fused_hits(runs, {fusion}, {k})",
            "best, values = hits.indices, hits.scores",
            "print(best, values, hits.terms)  # [hit], [hit] and [run, hit]: 1 / (60 + rank) of each run",
            TEXTS_OF_HITS,
        ),
    )


def judged(marks: Mapping[str, Mapping[int, bool]], rankings: Mapping[str, Mapping[str, Sequence[int]]]) -> Snippet:
    """The precision of judged rankings: marks of sentences by query, and the first hits of each ranking by query and title."""
    return Snippet(
        (),
        (
            code.remark("Your marks: which sentences of the corpus are relevant to a query, by their numbers."),
            f"judged = Judgements({code.literal({query: dict(of_query) for query, of_query in marks.items()})})",
            code.remark("The first hits of the rankings that were last on screen with each query."),
            f"rankings = {code.literal({q: {t: list(hits) for t, hits in each.items()} for q, each in rankings.items()})}",
            "values = {\n"
            "    (query, title): [judged.precision(query, hits, k).value for k in (5, 10)]\n"
            "    for query, titles in rankings.items()\n"
            "    for title, hits in titles.items()\n"
            "}",
            "print(values)  # P@5, P@10",
        ),
    )


def token_lengths(backend: Backend, corpus: Sequence[str]) -> Snippet:
    """The number of tokens of each sentence of a corpus, before truncation."""
    return Snippet(
        (code.model(backend), *corpus),
        ("values = backend.tokenization.lengths(corpus.texts)", "print(values)  # [sentence]"),
    )


def max_sim(backend: Backend, query: str, document: str, layer: int, max_length: int | None) -> Snippet:
    """The cosines of a query's tokens with a document's, by the hidden states of a layer."""
    prompts = [
        backend.embed_options([layer], max_length=max_length, precision="float32", role=role).prompt
        for role in ("query", "document")
    ]
    length = backend.embed_options([layer], max_length=max_length, precision="float32").max_length
    texts = [prompt + text for prompt, text in zip(prompts, (query, document), strict=True)]
    return Snippet(
        (code.model(backend),),
        (
            code.texts(texts),
            f'trace = backend.trace(texts, max_length={length}, prompt="")',
            f"similarity = late_interaction.of_trace(trace, {layer})",
            "values = similarity.matrix",
            "print(values, similarity.total)  # [query token, document token]; MaxSim",
        ),
    )


def trained_max_sim(backend: Backend, query: str, document: str, max_length: int | None) -> Snippet:
    """The products of the token vectors of a model that was trained for late interaction."""
    vectors = [
        code.call("backend.multi_vectors", f"[{code.literal(text)}]", code.literal(role), max_length=max_length)
        for text, role in ((query, "query"), (document, "document"))
    ]
    return Snippet(
        (code.model(backend),),
        (
            f"query = {vectors[0]}[0]",
            f"document = {vectors[1]}[0]",
            "values = query @ document.T",
            "print(values)  # [query token, document token]",
        ),
    )
