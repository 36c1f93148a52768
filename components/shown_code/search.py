"""Code for search: how the scores of the hits on screen come about, and the commands that search a whole corpus."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from components.analysis.leave_one_out import leave_one_out, left_out
from components.analysis.similarity.late_interaction import max_sim
from components.arrays import cosine
from components.retrieval.rankings.ranking import Ranking
from components.retrieval.search.exact import ExactSearch, top
from components.retrieval.search.rerank import late_interaction_scores
from components.shown_code import arrays
from components.shown_code.arrays import Functions, Input
from components.shown_code.code import AnyCode, Code, Command
from components.shown_code.commands import of_model
from components.shown_code.vectors import of_sentences
from components.shown_code.written import literal, places

if TYPE_CHECKING:
    from components.analysis.leave_one_out import RemovedWord
    from components.model.backend import Backend
    from components.model.embedding.options import EmbedOptions
    from components.model.trace import Pooling
    from components.retrieval.search.exact import Similarity

# The scores [document] of one query with some documents; each of `queries` and `documents` is [text, dim].
SCORES: dict[Similarity, str] = {
    "cosine": "cosine(queries, documents)",
    "dot": "(queries * documents).sum(axis=1)",
    "euclidean": "-np.linalg.norm(queries - documents, axis=1)",
    "manhattan": "-np.abs(queries - documents).sum(axis=1)",
}


CORPUS_TABLE = "corpus_lengths"  # the figure whose table has the texts of a corpus


@dataclass(frozen=True)
class SearchCode:
    """A corpus as it is searched: its vectors at a layer and pooling."""

    backend: Backend
    corpus: Sequence[str]  # the file and its options for a command
    options: EmbedOptions  # of the index
    layer: int
    pooling: Pooling

    @property
    def folder(self) -> str:
        """The folder of the commands' index: one for each model, corpus, layer and pooling."""
        of = json.dumps([self.backend.spec.key, self.backend.revision, *self.corpus, self.options.max_length])
        return f"index-{hashlib.sha256(of.encode()).hexdigest()[:6]}-{self.layer}-{self.pooling}"

    def of_texts(self, source: Sequence[str], functions: Functions, *statements: str) -> AnyCode:
        """Code from the vectors [text, dim] of the `texts` that `source` reads from a file; statements call them {vectors}."""
        rounded = ["# On the page the vectors are in bfloat16, and cosines differ in the third digit."]
        statements = (*(rounded if self.options.precision == "bfloat16" else []), *statements)
        if self.is_own and arrays.is_published(self.backend):
            of = (self.backend, source, self.options.prompt, self.options.max_length)
            return arrays.embedded(*of, functions, *(line.format(vectors="vectors") for line in statements))
        read = Input(self.backend, (), self.options.max_length, prompt=self.options.prompt, source=source)
        of_layer = (line.format(vectors=f"vectors[{self.layer}]") for line in statements)
        return of_sentences(read, self.pooling, include_special=True).code(functions, *of_layer)

    @property
    def is_own(self) -> bool:
        """Whether these are the vectors that the model was published for."""
        return self.layer == self.backend.facts.layers and self.pooling == self.backend.own_pooling

    def command(self, function: Callable[..., Any], *searches: tuple[str, ...], prints: str = "the numbers") -> Command:
        """The command that embeds the corpus, and `searches` in it."""
        file, *options = self.corpus
        if file == arrays.file_of(CORPUS_TABLE):
            prints += f" (Search, Corpus, Share, Files saves {file})"
        cell = ("--layers", str(self.layer), "--poolings", self.pooling)
        index = ("index", *options, *cell, *self._model(with_length=True), "--out", self.folder, "--", file)
        return Command(function, index, *searches, prints=prints)

    def search(self, query: str, k: int, similarity: Similarity, *options: str) -> tuple[str, ...]:
        """The command that searches it."""
        how = ("-k", str(k), "--similarity", similarity, *options, *self._model(with_length=False))
        return ("search", *how, "--", self.folder, query)

    def _model(self, with_length: bool) -> tuple[str, ...]:
        is_own = self.options.max_length == self.backend.embed_options().max_length
        return of_model(self.backend, None if is_own or not with_length else self.options.max_length)

    def hits(self, query: str, texts: Sequence[str], similarity: Similarity) -> AnyCode:
        """The scores of a query's hits, whose texts are on screen."""
        asked = self.backend.embed_options([self.layer], [self.pooling], precision="float32", role="query").prompt
        rounded = ["# On the page the vectors of the corpus are in bfloat16, and scores differ in the third digit."]
        scored = (
            *(rounded if self.options.precision == "bfloat16" else []),
            f"values = {SCORES[similarity]}",
            f"for row in top(values, {len(texts)}):\n    print(values[row], texts[row])",
        )
        functions: Functions = (ExactSearch.search, *([cosine] if similarity == "cosine" else []), top)
        # The library normalises, where the model does; other similarities than the cosine see the lengths of vectors.
        is_own = self.is_own
        is_own &= similarity == "cosine" or self.pooling == "own"
        prompts = (asked, self.options.prompt)
        if is_own and arrays.is_published(self.backend):
            return arrays.encoded(self.backend, query, texts, prompts, self.options.max_length, functions, *scored)
        written = [asked + query, *(self.options.prompt + text for text in texts)]
        read = Input(self.backend, written, self.options.max_length, prompt="")
        found = of_sentences(read, self.pooling, include_special=True).code(
            functions[:-1],
            f"queries, documents = vectors[{self.layer}, :1], vectors[{self.layer}, 1:]",
            *scored[:-1],
            "print(values)  # [hit]",
        )
        if isinstance(found, Command):
            return self.command(ExactSearch.search, self.search(query, len(texts), similarity))
        return found


def reranked(backend: Backend, query: str, texts: Sequence[str], label: int | None, max_length: int | None) -> AnyCode:
    """A cross-encoder's scores of candidates, whose texts are on screen in its order."""
    order = (Ranking.of_candidates,)
    return arrays.predicted(backend, query, texts, label, max_length, order, "print(values)  # [candidate]")


def drops(
    backend: Backend, query: str, text: str, words: Sequence[RemovedWord], label: int | None, max_length: int | None
) -> AnyCode:
    """How much a cross-encoder's score of a query with a text falls without each word."""
    fall = ("values = values[0] - values[1:]", "print(values)  # [word]")
    return arrays.predicted(backend, *left_out(query, text, words), label, max_length, (leave_one_out,), *fall)


def pieces(backend: Backend, query: str, text: str, max_length: int | None, of: str, count: int) -> AnyCode:
    """The heaviest pieces `of` a "query" or a "sentence" by SPLADE, or those that add most to the score of "both"."""
    weights = {"query": "queries[0]", "sentence": "documents[0]", "both": "queries[0] * documents[0]"}[of]
    return arrays.sparse(
        backend,
        query,
        text,
        max_length,
        f"weights = {weights}",
        f'order = np.argsort(-weights, kind="stable")[:{count}]',
        "values = weights[order]",
        "print(values, model.tokenizer.convert_ids_to_tokens(order))  # [piece]",
    )


def max_sim_scores(backend: Backend, query: str, texts: Sequence[str], layer: int, max_length: int | None) -> AnyCode:
    """The MaxSim of a query with candidates, by the hidden states of a layer; of a model that was trained for it no code."""
    if backend.late_interaction is not None:
        return Command(late_interaction_scores)
    asked, stored = (
        backend.embed_options([layer], max_length=max_length, precision="float32", role=role)
        for role in ("query", "document")
    )
    if asked.prompt or stored.prompt:  # whose tokens count as those of a text here
        return Command(late_interaction_scores)
    return Input(backend, [query, *texts], asked.max_length, prompt="").states(
        (max_sim, late_interaction_scores),
        f"tokens = [states[own] for states, own in zip(hidden_states[{layer}], ~special)]  # [token, dim] of each text",
        "values = np.array([max_sim(tokens[0], document).max(axis=1).sum() for document in tokens[1:]])",
        "print(values)  # [candidate]",
    )


def judged_precision(
    marks: Mapping[str, Mapping[int, bool]], rankings: Sequence[tuple[str, str, Sequence[int]]], cutoffs: Sequence[int]
) -> Code:
    """The precision of rankings, each with its query and its name, at some cutoffs, by the marks of queries."""
    shares = f"sum(marks[query].get(hit, False) for hit in hits[:k]) / k for k in {literal(tuple(cutoffs))}"
    given = [
        "# What was judged: of each query whether its hits are relevant, and the first hits of each ranking",
        f"marks = {literal(marks)}",
        f"rankings = {literal([(query, name, list(hits)) for query, name, hits in rankings])}",
    ]
    statements = f"values = [[{shares}] for query, _, hits in rankings]", "print(values)  # [ranking, cutoff]"
    return Code("\n".join(given), (), statements)


def token_matches(
    backend: Backend, texts: Sequence[str], positions: Sequence[Sequence[int]], layer: int, length: int
) -> AnyCode:
    """The cosines of a query's tokens with a document's, by the hidden states of a layer; `texts` have their prompts."""
    first, second = (f"hidden_states[{layer}, {row}, {places(at)}]" for row, at in enumerate(positions))
    return Input(backend, texts, length, prompt="").states(
        (max_sim,),
        f"values = max_sim({first}, {second})",
        "print(values, values.max(axis=1).sum())  # [query token, document token]; MaxSim",
    )
