"""The most similar words of two sentences, in words."""

from __future__ import annotations

import numpy as np

from components.analysis.block_change import token_similarity
from components.arrays import cosine
from components.model.backend import Backend
from dashboard.views.heatmaps.pair_findings import of_pictures


def test_the_most_similar_words_are_told_with_their_unit(embedded: Backend) -> None:
    trace = embedded.trace(["The bank lent money.", "A bank paid."])
    picture = token_similarity(trace, 6, 0, 1)
    rows, columns = [1, 2, 3, 4], [1, 2, 3]  # without [CLS], [SEP] and the full stop
    hidden = trace.hidden_states[6]
    most = cosine(hidden[0, rows][:, None], hidden[1, columns][None]).max()
    said = of_pictures([(picture, 1)], 0, trace.sentences)
    assert said == f"Most similar words: “bank” with “bank” of sentence 2 (**{most:.2f}**)."
    assert of_pictures([(picture, 1)], 0, trace.sentences, unrelated=float(most) - 0.01) == said
    chance = of_pictures([(picture, 1)], 0, trace.sentences, unrelated=float(most) + 0.01)
    assert chance == (
        f"No pair of words stands out: the most similar, “bank” with “bank” of sentence 2 (**{most:.2f}**), have no more than "
        f"unrelated tokens reach ({most + 0.01:.2f})."
    )
    percentiles = of_pictures([(picture, 1)], 0, trace.sentences, as_percentiles=True)
    assert percentiles.endswith(f"(cosine **{most:.2f}**).")


def test_where_there_are_no_words_they_are_called_tokens(embedded: Backend) -> None:
    trace = embedded.trace(["?", "A bank."])
    said = of_pictures([(token_similarity(trace, 6, 0, 1), 1)], 0, trace.sentences)
    assert said.startswith("Most similar tokens: “"), said
    assert " of sentence 2 (**" in said
    assert np.isfinite(float(said[said.rindex("(") + 3 : -4].replace("−", "-")))
