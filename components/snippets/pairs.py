"""Code for pairs of texts that a cross-encoder reads together: scores, thresholds, the words that a score depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from components.snippets import code
from components.snippets.code import Snippet

if TYPE_CHECKING:
    from components.analysis.pair_scales import Scale
    from components.snippets.search import Embedded, SecondStage


Relevant = Sequence[int] | tuple[str, str]  # rows of the relevant documents, or a column and its value


def drops(stage: SecondStage, query: str, document: str) -> Snippet:
    """The fall of a cross-encoder's score without each word of a pair."""
    read = code.call(
        "scorer.tokenize", f"[{code.literal(query)}]", f"[{code.literal(document)}]", max_length=stage.max_length
    )
    score = "scorer.score_pairs"
    if stage.label is not None or stage.max_length is not None:
        score = code.call("partial", score, label=stage.label, max_length=stage.max_length)
    return Snippet(
        (code.model(stage.backend, "scorer"),),
        (
            f"(sentence,) = {read}",
            f"result = leave_one_out(sentence, {score})",
            "values = result.drops",
            "print(result.score, [word.text for word in result.words], values)",
        ),
    )


def disagreement(
    of: Embedded, stage: SecondStage, queries: Sequence[str], own_rows: Sequence[int], candidates: int
) -> Snippet:
    """The ranks of the first hits of some queries by vectors and by a cross-encoder, where they differ."""
    score = code.call(
        "scorer.score_pairs",
        "[query for query, rows in zip(asked_for, hits.indices) for _ in rows]",
        "[corpus.texts[row] for rows in hits.indices for row in rows]",
        label=stage.label,
        max_length=stage.max_length,
    )
    return Snippet(
        (*of.setup, code.model(stage.backend, "scorer")),
        (
            *of.body(code.literal(list(queries))),
            f"asked_for = {code.literal(list(queries))}",
            f"own_rows = {code.literal([int(row) for row in own_rows])}  # the sentence that belongs to each query",
            f"hits = search.search(queries, k={candidates})",
            f"scores = {score}.reshape(hits.indices.shape)",
            "values = []",
            "for query, own, rows, of_query in zip(asked_for, own_rows, hits.indices, scores):\n"
            "    reranked = in_order_of(of_query, rows)\n"
            "    for after, (before, row) in enumerate(zip(reranked.before, reranked.rows), start=1):\n"
            "        if before != after:\n"
            "            values.append((int(before), after, bool(row == own), query, corpus.texts[row]))",
            "for line in values:\n    print(*line)  # rank by vectors, by the cross-encoder, whether correct, query, text",
        ),
    )


@dataclass(frozen=True)
class ScoredDocuments:
    """A query and the documents of a corpus that a cross-encoder scores with it."""

    embedded: Embedded  # by the model whose first hits are among them
    stage: SecondStage
    scale: Scale
    query: str
    documents: int  # how many
    total: int  # sentences of the corpus
    seed: int  # of the sample
    relevant: Relevant

    def snippet(self, shown: Literal["scores", "curve", "confusion"], threshold: float) -> Snippet:
        """The scores, precision and recall at every threshold, or the decisions at one."""
        body = [*self._rows(), *self._scores(), *self._relevant()]
        if shown == "scores":
            body.append("print(scores, relevant)  # [document] each")
        else:
            body.append("analysis = analyse(scores, relevant)")
        if shown == "curve":
            body.append("print(analysis.thresholds, analysis.precision, analysis.recall)")
        if shown == "confusion":
            body.append(f"confusion = analysis.at({code.literal(threshold)})")
            body.append("print(confusion, confusion.precision, confusion.recall)")
        return Snippet((*self.embedded.setup, code.model(self.stage.backend, "scorer")), tuple(body))

    def _rows(self) -> tuple[str, ...]:
        if self.documents >= self.total:
            return f"query = {code.literal(self.query)}", "rows = np.arange(len(corpus))"
        first = -(-self.documents // 2)
        return (
            f"query = {code.literal(self.query)}",
            *self.embedded.body("[query]"),
            f"first = top(search.scores(queries[0]), {first})",
            "others = np.setdiff1d(np.arange(len(corpus)), first)",
            f"sample = np.random.default_rng({self.seed}).choice(others, {self.documents - first}, replace=False)",
            "rows = np.sort(np.concatenate([first, sample]))",
        )

    def _scores(self) -> tuple[str, ...]:
        read = code.call("scorer.pair_logits", "[query] * len(rows)", "documents", max_length=self.stage.max_length)
        return (
            "documents = [corpus.texts[row] for row in rows]",
            f"scores = on_scale({read}, {code.literal(self.scale)})[:, {self.stage.label or 0}]",
        )

    def _relevant(self) -> tuple[str, ...]:
        if isinstance(self.relevant, tuple) and isinstance(self.relevant[0], str):
            column, value = self.relevant
            is_relevant = f"corpus.columns[{code.literal(column)}][row] == {code.literal(value)}"
            return (f"relevant = np.array([{is_relevant} for row in rows])",)
        return (f"relevant = np.isin(rows, {code.literal([int(row) for row in self.relevant])})",)
