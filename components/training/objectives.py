"""What a model can be asked to learn: each objective's idea, formula and source, and its loss.

The losses are sentence-transformers' own. The legend of a formula is read from it, so that the two agree; d is a distance
(cosine: 1 - cos, euclidean or manhattan).

`SoftmaxLoss` decides about u and v together: they are either both seen by the classifier or both not. So the parts to
choose from are "u, v" (one part), "|u-v|" and "u*v", which covers the combinations of Reimers and Gurevych (2019).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from components.errors import InputError
from components.retrieval.corpora.rows.roles import DataKind

if TYPE_CHECKING:
    from torch import nn

    from components.training.settings import TrainingSettings

ModelKind = Literal["encoder", "cross-encoder"]
# What one row of an objective is: a kind of data, or "binary", two texts with label 1 (belong together) or 0.
RowKind = Literal["sentences", "pairs", "triplets", "scored", "labelled", "binary"]


@dataclass(frozen=True)
class Objective:
    """One objective, for people and for the program."""

    key: str
    name: str
    models: ModelKind
    rows: RowKind  # what it learns from
    takes: tuple[DataKind, ...]  # data from which its rows can be made, the most suitable first
    idea: str  # what it asks for, in two sentences
    formula: str  # of the loss of a batch, LaTeX
    source: str
    drawing: str  # what its picture shows


_OBJECTIVES = (
    Objective(
        "mnrl",
        "Multiple negatives ranking",
        "encoder",
        "pairs",
        ("pairs", "triplets", "labelled", "scored"),
        "Each query must find its own answer among those of all rows shown at once (a batch). The others are wrong "
        "answers. A larger batch makes the task harder.",
        r"-\frac{1}{n}\sum_i \log \frac{e^{s \cos(u_i, v_i)}}{\sum_j e^{s \cos(u_i, v_j)}}",
        "Henderson et al. 2017; van den Oord et al. 2018",
        "A square table of the batch: the cosines on the diagonal rise, all others fall.",
    ),
    Objective(
        "contrastive",
        "Contrastive",
        "encoder",
        "binary",
        ("labelled", "pairs", "triplets"),
        "Texts that belong together are pulled together. Texts that do not are pushed apart until their distance reaches "
        "the margin.",
        r"\frac{1}{2n}\sum_i y_i\, d(u_i, v_i)^2 + (1 - y_i) \max(0, m - d(u_i, v_i))^2",
        "Hadsell, Chopra and LeCun 2006",
        "A point with a circle of the margin's radius: partners move inwards, others move out of the circle and stop there.",
    ),
    Objective(
        "online-contrastive",
        "Online contrastive",
        "encoder",
        "binary",
        ("labelled", "pairs", "triplets"),
        "The contrastive objective for the hard rows of each batch only. Those are partners further apart than the closest "
        "wrong pair, and wrong pairs closer than the furthest partners; their losses are added up, not averaged.",
        r"\sum_{i \in \text{hard}^{+}} d(u_i, v_i)^2 + \sum_{i \in \text{hard}^{-}} \max(0, m - d(u_i, v_i))^2",
        "Hadsell, Chopra and LeCun 2006; hard rows as in sentence-transformers",
        "The same circle with the rows that are already right in grey: only the coloured ones move.",
    ),
    Objective(
        "cosine",
        "Cosine regression",
        "encoder",
        "scored",
        ("scored", "labelled", "pairs", "triplets"),
        "The cosine of two texts must equal the score that people gave them, from 0 to 1. The loss is the squared "
        "difference.",
        r"\frac{1}{n}\sum_i \left(\cos(u_i, v_i) - y_i\right)^2",
        "Reimers and Gurevych 2019",
        "Two arrows whose angle opens or closes until its cosine is the score.",
    ),
    Objective(
        "softmax",
        "Softmax classification",
        "encoder",
        "labelled",
        ("labelled", "pairs", "triplets"),
        "A classifier sees the two vectors and their difference, and must name the label. It is only needed while training: "
        "what stays is an encoder whose vectors tell the labels apart.",
        r"-\frac{1}{n}\sum_i \log \operatorname{softmax}\left(W [u_i; v_i; |u_i - v_i|] + b\right)_{y_i}",
        "Conneau et al. 2017; Reimers and Gurevych 2019",
        "Two encoders with the same weights, their vectors side by side, and a bar for each label.",
    ),
    Objective(
        "triplet",
        "Triplet",
        "encoder",
        "triplets",
        ("triplets", "pairs", "labelled"),
        "A text must be closer to its partner than to a wrong text, by at least the margin. Rows that satisfy this cost "
        "nothing.",
        r"\frac{1}{n}\sum_i \max\left(0, d(a_i, p_i) - d(a_i, q_i) + m\right)",
        "Schroff et al. 2015; Reimers and Gurevych 2019",
        "A text between its partner and a wrong text: the first distance shrinks, the second grows by the margin.",
    ),
    Objective(
        "simcse",
        "SimCSE, without labels",
        "encoder",
        "sentences",
        ("sentences", "pairs", "triplets", "scored", "labelled"),
        "Each sentence is encoded twice, and dropout makes the two vectors differ a little. Each must find its twin among "
        "all sentences of the batch.",
        r"-\frac{1}{n}\sum_i \log \frac{e^{s \cos(u_i, u'_i)}}{\sum_j e^{s \cos(u_i, u'_j)}}",
        "Gao, Yao and Chen 2021",
        "One sentence, two passes with different neurons switched off, two points that move together.",
    ),
    Objective(
        "tsdae",
        "TSDAE, without labels",
        "encoder",
        "sentences",
        ("sentences", "pairs", "triplets", "scored", "labelled"),
        "Most words of a sentence are deleted, and a decoder must write the whole sentence from the vector of the rest. So "
        "the vector has to hold what the sentence says. The decoder has the encoder's weights and is thrown away.",
        r"-\frac{1}{T}\sum_t \log p\left(w_t \mid w_{<t}, u\right)",
        "Wang, Reimers and Gurevych 2021",
        "A sentence with holes, one vector, and the whole sentence written out again.",
    ),
    Objective(
        "relevance",
        "Relevance",
        "cross-encoder",
        "binary",
        ("labelled", "pairs", "triplets", "scored"),
        "A cross-encoder reads both texts together and must say whether they belong together. The loss is the binary "
        "cross-entropy of its one output.",
        r"-\frac{1}{n}\sum_i y_i \log \sigma(z_i) + (1 - y_i) \log (1 - \sigma(z_i))",
        "Nogueira and Cho 2019",
        "Both texts in one row of tokens, one number at its [CLS] token, and a switch between yes and no.",
    ),
    Objective(
        "regression",
        "Score regression",
        "cross-encoder",
        "scored",
        ("scored", "labelled", "pairs", "triplets"),
        "A cross-encoder reads both texts together, and its one output must equal the score that people gave them, from 0 "
        "to 1. The loss is the squared difference.",
        r"\frac{1}{n}\sum_i \left(z_i - y_i\right)^2",
        "Cer et al. 2017 for the task",
        "Both texts in one row of tokens, one number at its [CLS] token, and a scale from 0 to 1.",
    ),
)
# A name in letters that is one symbol; then a Greek letter; then a letter with its prime. Other commands are no symbols.
_NAMES = re.compile(r"\\text\{(\w+)\}|\\(sigma)\b|\\operatorname\{\w+\}|\\[A-Za-z]+|([A-Za-z]'?)")
_CONSTANTS = frozenset({"e"})  # Euler's number

_MEANINGS = {
    "n": "the number of rows of the batch",
    "i": "a row of the batch",
    "j": "each row of the batch",
    "u": "the vector of a row's first text",
    "v": "the vector of its second text",
    "s": "the scale",
    "d": "the distance of two vectors",
    "m": "the margin",
    "y": "the label",
    "z": "the output of the cross-encoder for a row",
    "sigma": "the logistic function",
}
_OF_SCORES = {"y": "the score that people gave the row, from 0 to 1"}
_OF_BINARY = {"y": "the label: 1 if the two texts belong together, else 0"}
# Where a formula uses a symbol in a sense of its own, by the objective's key.
_OWN = {
    "contrastive": _OF_BINARY,
    "online-contrastive": {"hard": "the hard rows of the batch that belong together (+), and those that do not (−)"},
    "cosine": _OF_SCORES,
    "softmax": {
        "y": "the label, by whose number the output is chosen",
        "W": "the weights of the classifier",
        "b": "its bias",
    },
    "triplet": {
        "a": "the vector of a row's text",
        "p": "the vector of its partner",
        "q": "the vector of the wrong text",
    },
    "simcse": {"u": "the vector of a sentence in one pass", "u'": "its vector in another pass, with another dropout"},
    "tsdae": {
        "T": "the number of pieces of the sentence",
        "t": "a place in the sentence",
        "w": "the piece at a place",
        "p": "the probability that the decoder gives it",
        "u": "the vector of the sentence with deleted words",
    },
    "relevance": _OF_BINARY,
    "regression": _OF_SCORES,
}

OBJECTIVES: Mapping[str, Objective] = MappingProxyType({objective.key: objective for objective in _OBJECTIVES})


def objective(key: str) -> Objective:
    """The objective with this key. Raises InputError for an unknown one."""
    if key not in OBJECTIVES:
        raise InputError(
            f"There is no objective {key[:80]!r}.",
            f"There are these: {', '.join(OBJECTIVES)}.",
            "Choose one of them.",
        )
    return OBJECTIVES[key]


def symbols_of(formula: str) -> tuple[str, ...]:
    """The symbols of a formula in LaTeX, each once, in the order in which they stand."""
    found = (text or greek or letter for text, greek, letter in _NAMES.findall(formula))
    return tuple(dict.fromkeys(symbol for symbol in found if symbol and symbol not in _CONSTANTS))


def legend(item: Objective) -> dict[str, str]:
    """Each symbol of an objective's formula with what it means. Raises KeyError for one that has no meaning here."""
    meanings = _MEANINGS | _OWN.get(item.key, {})
    return {symbol: meanings[symbol] for symbol in symbols_of(item.formula)}


def check_objectives(keys: tuple[str, ...]) -> ModelKind:
    """The kind of model that these objectives train. Raises InputError for unknown ones and for two kinds at once."""
    kinds = {objective(key).models for key in keys}
    if len(kinds) > 1:
        raise InputError(
            f"The objectives {' and '.join(keys)} train different kinds of model.",
            "Objectives that are trained together must be of one kind: all for an encoder, or all for a cross-encoder.",
            "Choose another second objective, or remove it.",
        )
    return kinds.pop()


def build_loss(settings: TrainingSettings, objective_key: str, model: Any, label_count: int | None = None) -> nn.Module:
    """sentence-transformers' loss for an objective, around `model` (SentenceTransformer or CrossEncoder).

    `label_count` is needed by softmax, whose classifier starts at random: seed torch before. TSDAE ties the encoder's
    weights to those of its decoder, so call this before an optimizer has them. The rows come from
    components.training.negatives.training_rows, with one column for each text and one named "label" if there are labels.
    Raises InputError for an unknown objective, and ValueError for softmax without `label_count`.
    """
    key = objective(objective_key).key
    if key in {"relevance", "regression"}:
        from sentence_transformers.cross_encoder import losses as cross_losses

        return cross_losses.BinaryCrossEntropyLoss(model) if key == "relevance" else cross_losses.MSELoss(model)
    from sentence_transformers.sentence_transformer import losses

    distances = {"cosine": "COSINE_DISTANCE", "euclidean": "EUCLIDEAN", "manhattan": "MANHATTAN"}
    distance = getattr(losses.SiameseDistanceMetric, distances[settings.distance])
    if key in {"mnrl", "simcse"}:
        return losses.MultipleNegativesRankingLoss(model, scale=settings.scale)
    if key == "contrastive":
        return losses.ContrastiveLoss(model, distance_metric=distance, margin=settings.margin)
    if key == "online-contrastive":
        return losses.OnlineContrastiveLoss(model, distance_metric=distance, margin=settings.margin)
    if key == "cosine":
        return losses.CosineSimilarityLoss(model)
    if key == "triplet":
        names = {"cosine": "COSINE", "euclidean": "EUCLIDEAN", "manhattan": "MANHATTAN"}
        metric = getattr(losses.TripletDistanceMetric, names[settings.distance])
        return losses.TripletLoss(model, distance_metric=metric, triplet_margin=settings.margin)
    if key == "tsdae":
        return losses.DenoisingAutoEncoderLoss(model, tie_encoder_decoder=True)
    if label_count is None:
        raise ValueError("softmax needs the number of labels")
    return losses.SoftmaxLoss(
        model,
        model.get_embedding_dimension(),
        label_count,
        concatenation_sent_rep="u, v" in settings.softmax_parts,
        concatenation_sent_difference="|u-v|" in settings.softmax_parts,
        concatenation_sent_multiplication="u*v" in settings.softmax_parts,
    )
