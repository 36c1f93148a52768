"""Attention: which token looks at which, in which head."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from components.analysis.attention.weights import of_sentence
from dashboard import navigation
from dashboard.ui import controls, pair_choice
from dashboard.views.attention import flow, long_texts, scores, single_heads, summaries
from dashboard.views.attention.head_choice import AttentionInput

if TYPE_CHECKING:
    from components.charts.bertviz.views import View
    from components.model.backend import Backend

VIEWS = {
    "head": navigation.View(
        "Head view",
        "Which token attends to which?",
        "Lines lead from each token to the tokens it attends to; a thick line is a high weight.",
    ),
    "model": navigation.View(
        "Model view",
        "What do all heads look like?",
        "One small picture per block and head. Click one to enlarge it.",
    ),
    "neuron": navigation.View(
        "Neuron view",
        "How is an attention weight computed?",
        "Point at a token on the left, or tap it: its query vector times each key vector, number by number.",
    ),
    "scores": navigation.View(
        "Scores",
        "What is a score made of?",
        "One query's scores with all keys, and the attention that softmax makes of them.",
    ),
    "matrix": navigation.View(
        "Matrix",
        "Which token attends to which, in numbers?",
        "Each row is a token, and its cells are the weights of the tokens it attends to.",
    ),
    "glance": navigation.View(
        "All heads",
        "What does each head do?",
        "Each tile is the matrix of one head: bright cells are high attention weights. Click one to open it.",
    ),
    "patterns": navigation.View(
        "Patterns",
        "Which heads follow a simple rule?",
        "Each tile is a head. Bright heads attend to what you choose, such as the token before. Click one to open it.",
    ),
    "flow": navigation.View(
        "Flow",
        "Which tokens does a token's vector come from?",
        flow.intro,
    ),
    "mask": navigation.View(
        "Mask a token",
        "What changes if a token is hidden?",
        "Click a token to hide it behind the mask token. The bars show how far this turns the vector of each other token.",
    ),
}
OTHER_VIEWS = {
    "scores": scores.scores,
    "matrix": single_heads.matrix,
    "glance": single_heads.glance,
    "patterns": summaries.patterns,
    "flow": flow.flow,
    "mask": summaries.mask,
}


def _view(backend: Backend, view: str) -> None:
    row = controls.row()
    with row:
        pair = pair_choice.choose()
    sentence = pair.tokens(backend)
    if not backend.fits(len(sentence)) and not backend.structure.adds_to_scores:
        pair.tell_truncation(sentence)
        long_texts.one_head(backend, pair, sentence, row)
        return
    trace = pair.trace(backend, attentions=True)
    pair.tell_truncation(trace.sentences[0])
    model_input = AttentionInput(backend, pair, trace, trace.sentences[0], of_sentence(trace, 0))
    if view in {"head", "model", "neuron"}:
        single_heads.bertviz(model_input, cast("View", view), row)
    else:
        OTHER_VIEWS[view](model_input, row)


navigation.show(
    "attention",
    VIEWS,
    _view,
    "drawing attention",
    needs_sentences=True,
    foot=summaries.caveat,
)
