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
        f"No pair of words stands out: the most similar, “bank” with “bank” of sentence 2 (**{most:.2f}**), lie no higher "
        f"than {most + 0.01:.2f}, as 95 % of unrelated tokens do."
    )
    percentiles = of_pictures([(picture, 1)], 0, trace.sentences, as_percentiles=True)
    assert f"(cosine **{most:.2f}**)." in percentiles


def test_a_higher_pair_of_special_tokens_is_not_passed_over_in_silence(embedded: Backend) -> None:
    trace = embedded.trace(["We will rob a bank next week!", "I put money in the bank."])
    first, second = (trace.hidden_states[6, 0, 0], trace.hidden_states[6, 1, 0])
    said = of_pictures([(token_similarity(trace, 6, 0, 1), 1)], 0, trace.sentences)
    assert said.endswith(f" Special tokens are higher: [CLS] with [CLS] of sentence 2 ({cosine(first, second):.2f}).")
    words = token_similarity(trace, 6, 0, 1, include_special=False)
    assert "higher" not in of_pictures([(words, 1)], 0, trace.sentences)


def test_where_there_are_no_words_they_are_called_tokens(embedded: Backend) -> None:
    trace = embedded.trace(["?", "A bank."])
    said = of_pictures([(token_similarity(trace, 6, 0, 1), 1)], 0, trace.sentences)
    assert said.startswith("Most similar tokens: “"), said
    assert " of sentence 2 (**" in said
    assert np.isfinite(float(said.partition("(**")[2].partition("**)")[0].replace("−", "-")))
