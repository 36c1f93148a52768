"""Code for rankings learnt from vectors: what they are compared with, single pairs, and every layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from components.snippets import code
from components.snippets.code import Snippet

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.trace import Pooling
    from components.retrieval.learnt.comparison import Choice
    from components.retrieval.learnt.learnt_vectors import Reading
    from components.snippets.evaluate import Collection


@dataclass(frozen=True)
class Learning:
    """A ranking and what it is learnt from: the vectors of a model, or those of a person's file."""

    name: str  # of the ranking on the page
    choice: Choice
    backend: Backend | None  # None for a file
    reading: Reading = "apart"
    max_length: int | None = None
    file: str = ""  # its name


@dataclass(frozen=True)
class Compared:
    """A collection, the candidates of its queries, and what is learnt from them; the first of `learnt` is the page's own."""

    backend: Backend  # whose vectors find the candidates
    pooling: Pooling  # of these vectors, which are those of the last layer
    max_length: int | None
    collection: Collection
    most: int  # queries
    first: int  # documents of BM25 and of the bi-encoder
    others: int  # documents drawn
    seed: int
    learnt: Sequence[Learning]

    def _setup(self, used: Sequence[Learning], scorer: Backend | None = None) -> tuple[str, ...]:
        names = self._names(used)
        models = [code.model(self.backend)]
        models += [
            code.model(of.backend, names[of.backend.spec.key])
            for of in used
            if of.backend is not None and names[of.backend.spec.key] != "backend"
        ]
        if scorer is not None:
            models.append(code.model(scorer, "scorer"))
        return (*models, *self.collection.statements)

    def _names(self, used: Sequence[Learning]) -> dict[str, str]:
        """The name of each model in the code, by its key."""
        names = {self.backend.spec.key: "backend"}
        for of in used:
            if of.backend is not None:
                names.setdefault(of.backend.spec.key, f"backend_{len(names) + 1}")
        return names

    def _candidates(self) -> tuple[str, ...]:
        cell = f"[{self.backend.facts.layers}], [{code.literal(self.pooling)}]"
        options = {
            role: code.call("backend.embed_options", cell, max_length=self.max_length, precision="float32", role=role)
            for role in ("document", "query")
        }
        numbers = {"most": self.most, "first": self.first, "others": self.others, "seed": self.seed}
        return (
            f"search = ExactSearch(backend.embed(documents, options={options['document']})[0, 0])",
            f"asked = backend.embed(queries, options={options['query']})[0, 0]",
            "chosen = "
            + code.call("choose_candidates", "graded", "lambda query: search.scores(asked[query])", **numbers),
        )

    def _vectors(self, of: Learning, name: str) -> tuple[str, ...]:
        if of.backend is None:
            return (
                *code.file(of.file, "The vectors were those of"),
                "vectors = read_vectors(file.read_bytes(), file.name)",
                "check_fit(vectors, chosen.pairs, file.name)",
            )
        arguments = (name, "chosen.pairs", code.literal(of.reading))
        return ("vectors = " + code.call("vectors_of", *arguments, max_length=of.max_length),)

    def _learnt(self, of: Learning, names: dict[str, str]) -> tuple[str, ...]:
        choice = of.choice
        settings = {
            "layer": choice.layer,
            "pooling": choice.pooling,
            "features": choice.features,
            "c": choice.c,
            "balanced": choice.balanced,
            "seed": choice.seed,
        }
        return (
            *self._vectors(of, "" if of.backend is None else names[of.backend.spec.key]),
            "choice = " + code.call("Choice", **settings),
            "learnt = choice.learnt(vectors, chosen)",
        )

    def rankings(self, measure: str, scorer: tuple[Backend, int | None] | None) -> Snippet:
        """A measure of every ranking; `scorer` is the cross-encoder with its length, if there is one."""
        names, body = self._names(self.learnt), [*self._candidates(), "rankings = {}"]
        for number, of in enumerate(self.learnt):
            body += [*self._learnt(of, names), f"rankings[{code.literal(of.name)}] = learnt.ranks"]
            if number == 0 and of.reading == "apart":
                body.append('rankings["Cosine of the same vectors"] = learnt.unlearnt')
        body.append("rankings |= chosen.reference_ranks()")
        if scorer is not None:
            score = code.call("scorer.score_pairs", "*chosen.pairs.texts(chosen.test_rows)", max_length=scorer[1])
            body.append(f'rankings["Cross-encoder"] = chosen.reranked({score})')
        name = code.literal(measure)
        body += [
            f"values = {{name: 100 * RANKING_MEASURES[{name}](ranks).mean() for name, ranks in rankings.items()}}",
            f'values["By chance"] = 100 * chosen.random[{name}].mean()',
            "print(values)  # per cent",
        ]
        return Snippet(self._setup(self.learnt, None if scorer is None else scorer[0]), tuple(body))

    def single_pairs(self) -> Snippet:
        """Precision and recall of single pairs, and how they are classified."""
        own = self.learnt[:1]
        return Snippet(
            self._setup(own),
            (
                *self._candidates(),
                *self._learnt(own[0], self._names(own)),
                'test, train = learnt.ranking.curves["test"], learnt.ranking.curves["train"]',
                "values = 100 * test.interpolated",
                "print(values)  # precision in per cent, at recall 0, 0.1, ..., 1",
                "print(test.average_precision, train.average_precision)",
                'print(learnt.ranking.reports["test"], learnt.ranking.reports["train"])',
            ),
        )

    def by_layer(self, measure: str) -> Snippet:
        """A measure of the ranking learnt at each layer, and of the cosine there."""
        own = self.learnt[:1]
        name = code.literal(measure)
        of_layer = f"100 * RANKING_MEASURES[{name}](learnt.ranks).mean()"
        lines = [
            "for layer in vectors.layers:",
            "    learnt = replace(choice, layer=layer).learnt(vectors, chosen)",
            f"    values.append({of_layer})",
        ]
        if own[0].reading == "apart":
            lines.append(f"    cosines.append({of_layer.replace('learnt.ranks', 'learnt.unlearnt')})")
        *before, _ = self._learnt(own[0], self._names(own))
        return Snippet(
            self._setup(own),
            (
                *self._candidates(),
                *before,
                "values, cosines = [], []",
                "\n".join(lines),
                "print(values, cosines)  # per cent, [layer]: learnt, and the cosine with nothing learnt",
            ),
        )
