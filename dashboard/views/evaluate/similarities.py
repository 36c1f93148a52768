"""The comparison's figure of cosine and dot product: what each retrieves, and how long that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.charts.retrieval import run_bars
from components.retrieval.evaluation import metrics
from components.retrieval.evaluation.similarities import by_each_similarity
from components.retrieval.search.exact import SIMILARITIES
from components.shown_code.code import Command
from dashboard.jobs import embedding, evaluation
from dashboard.jobs.evaluation import PairIndexes
from dashboard.ui import figures, messages
from dashboard.ui.wording import SIMILARITY_NAMES

if TYPE_CHECKING:
    from components.arrays import Float32, Int64
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.evaluation.similarities import Retrieval
    from components.retrieval.search.exact import Similarity
    from dashboard.views.evaluate.choices import RunRequest
    from dashboard.views.evaluate.queries import RunEntry

SAME_LENGTH = 1e-4  # relative difference of norms up to which vectors count as equally long


@dataclass(frozen=True, eq=False)
class SimilarityRow:
    """One run: what each similarity retrieves, and the lengths of all documents, which are the correct answers."""

    name: str
    by_similarity: Mapping[Similarity, Retrieval]
    norms: Float32  # [document]
    tokens: Int64  # [document], before truncation

    def recall(self, similarity: Similarity) -> metrics.Interval:
        """Recall@1 with its interval."""
        return metrics.interval(metrics.recall(self.by_similarity[similarity].ranks, 1))

    def excess(self, similarity: Similarity, values: Int64 | Float32) -> float:
        """By how many per cent the first hits exceed the correct answers in the mean of `values` [document]."""
        of_hits = self.by_similarity[similarity].mean_of_first_hits(values)
        return 100 * (of_hits / float(values.mean(dtype=np.float64)) - 1)

    @property
    def is_scaled(self) -> bool:
        """Whether all vectors are equally long, so that both similarities give one ranking."""
        return float(np.ptp(self.norms)) <= SAME_LENGTH * float(self.norms.max(initial=0))


def similarities(
    request: RunRequest, entries: Sequence[RunEntry], pairs: Pairs, indexes: Mapping[str, PairIndexes]
) -> None:
    """Recall@1 of each run with vectors by both similarities, and how long the first hits are. Raises NotReady."""
    rows = [
        row for entry in entries if (row := _row(request, entry, pairs, indexes)) is not None
    ]  # in the order of the table
    if not rows:
        st.info(
            "**No run with vectors.** Cosine and dot product compare vectors: add a layer and pooling under “Choose runs”.",
            icon=":material/add:",
        )
        return
    figures.figure(
        run_bars.first_hit_panels(
            [row.name for row in rows],
            [(SIMILARITY_NAMES[name].lower(), [_first_hits(row, name) for row in rows]) for name in SIMILARITIES],
            "Cosine and dot product",
        ),
        key="compare_similarities",
        code=Command(by_each_similarity),
        alt=f"Recall@1 of {len(rows)} runs by cosine and by dot product, and by how many per cent the first hits' vectors "
        "and texts are longer than those of the correct answers",
        message=_message(rows[0]) + _largest(rows),
        read="A dot product is the cosine times the lengths of both vectors, and a query's length is the same for every "
        "sentence: of two sentences in the same direction, the one with the longer vector wins. If the first hits were as "
        "long as the correct answers, a bar would be at 0. The number of tokens shows whether long vectors belong to long "
        "sentences, which depends on the pooling: a maximum over many tokens is long, a mean rather short.",
        not_shown="Models trained with dot products, such as MS MARCO BERT base (dot), use the length on purpose: it can "
        "express how relevant a sentence is. A model with a last step that scales vectors to length 1 has no difference "
        "between the two; here vectors are compared before that step. Word rankings have no vectors, and a query whose "
        "first hit shares its score with another sentence counts only in Recall@1.",
        table=lambda: _table(rows),
    )


def _row(
    request: RunRequest, entry: RunEntry, pairs: Pairs, indexes: Mapping[str, PairIndexes]
) -> SimilarityRow | None:
    """A run by both similarities; None for one without vectors, and for a re-ranked or fused one, which has another order.

    Raises NotReady.
    """
    code = entry.code
    if code is None or not code.is_vectors or code.model not in indexes:
        return None
    of_model = indexes[code.model]
    where = f"similarities_{code.model}"
    tokens = embedding.token_counts(request.models[code.model].backend, pairs.documents, where)
    by_similarity = evaluation.retrieved(pairs, *of_model.both, *code.cell, entry.short, f"similarities_{code}")
    norms = of_model.documents.engine(*code.cell).norms
    return SimilarityRow(entry.short, by_similarity, norms, tokens)


def _first_hits(row: SimilarityRow, similarity: Similarity) -> run_bars.FirstHits:
    recall = row.recall(similarity)
    return run_bars.FirstHits(
        run_bars.Bar(100 * recall.value, 100 * recall.low, 100 * recall.high),
        row.excess(similarity, row.norms),
        row.excess(similarity, row.tokens),
    )


def _message(row: SimilarityRow) -> str:
    """What the figure shows of the first run, in words."""
    name = f"**{messages.escape(row.name)}**"
    if row.is_scaled:
        return f"All vectors of {name} are equally long, so that both similarities give the same ranking."
    cosine, dot = (100 * row.recall(similarity).value for similarity in SIMILARITIES)
    norms, tokens = ([row.excess(name, values) for name in SIMILARITIES] for values in (row.norms, row.tokens))
    return (
        f"{name}: Recall@1 is {cosine:.1f} % by cosine and {dot:.1f} % by dot product. By dot product, the vectors of the "
        f"first hits are on average {_against(norms[1], 'longer', 'shorter')} than those of the correct answers (by cosine "
        f"{_against(norms[0], 'longer', 'shorter')}), and their texts have {_against(tokens[1], 'more', 'fewer')} tokens "
        f"(by cosine {_against(tokens[0], 'more', 'fewer')})."
    )


def _largest(rows: Sequence[SimilarityRow]) -> str:
    """The run whose first hits by dot product have the longest vectors, where there are several runs."""
    longest = max(rows, key=lambda row: np.nan_to_num(row.excess("dot", row.norms), nan=-np.inf))
    if len(rows) == 1 or longest is rows[0] or longest.is_scaled:
        return ""
    cosine, dot = (100 * longest.recall(similarity).value for similarity in SIMILARITIES)
    return (
        f" Dot product favours long vectors most in **{messages.escape(longest.name)}**: they are "
        f"{_against(longest.excess('dot', longest.norms), 'longer', 'shorter')}, and Recall@1 is {dot:.1f} % instead of "
        f"{cosine:.1f} % by cosine."
    )


def _against(per_cent: float, more: str, less: str) -> str:
    return f"{abs(per_cent):.1f} % {more if per_cent >= 0 else less}"


def _table(rows: Sequence[SimilarityRow]) -> pd.DataFrame:
    """One line per run and similarity; means over the queries with a single first hit."""
    return pd.DataFrame(
        [
            {
                "run": row.name,
                "similarity": SIMILARITY_NAMES[similarity].lower(),
                "Recall@1": round(100 * row.recall(similarity).value, 2),
                "norm of the first hits": round(row.by_similarity[similarity].mean_of_first_hits(row.norms), 4),
                "norm of the correct answers": round(float(row.norms.mean(dtype=np.float64)), 4),
                "tokens of the first hits": round(row.by_similarity[similarity].mean_of_first_hits(row.tokens), 2),
                "tokens of the correct answers": round(float(row.tokens.mean()), 2),
                "queries with a single first hit": int(row.by_similarity[similarity].is_single.sum()),
            }
            for row in rows
            for similarity in SIMILARITIES
        ]
    )
