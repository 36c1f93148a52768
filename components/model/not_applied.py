"""What a model was published for, and which of its parts are not applied here: in words, so that nobody mistakes our
numbers for the model's own.

The sources are the modules in modules.json, the architectures in config.json, and the kind of model in
config_sentence_transformers.json. What none of these files says remains unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from components.model.files.published import PublishedModule
from components.model.files.static_files import MODULE
from components.model.trace import POOLINGS

_APPLIED = {
    "Transformer",
    MODULE,
    "BERT",
    "RoBERTa",
    "DistilBERT",
    "ALBERT",
    "XLNet",
    "Pooling",
    "Dense",
    "Normalize",
    "Dropout",
}
_LATE_INTERACTION = {"MultiVectorMask", "HierarchicalTokenPooling", "LambdaTokenPooling"}
_SPARSE = {"SpladePooling", "MLMTransformer"}
_MODES = {
    "lasttoken": "last-token pooling (the last token's vector represents the text)",
    "weightedmean": "weighted-mean pooling (later tokens count more)",
    "mean_sqrt_len_tokens": "pooling by the sum of the token vectors divided by the square root of their number",
    "mean": "the mean",
    "cls": "[CLS]",
    "max": "the maximum",
}
_INSTEAD = "the default here is the mean of all tokens"


def not_applied(
    modules: Sequence[PublishedModule],
    architectures: Sequence[str],
    published_as: str,
    head_problem: str | None,
    gives_own: bool = False,
    not_given: str = "",
    takes_last_token: bool = False,
) -> tuple[str, ...]:
    """Sentences in plain English, each about one published part: what it is, and what is done instead.

    `architectures` come from config.json, `published_as` is the model_type in config_sentence_transformers.json, and
    `head_problem` says why a Dense head is not applied; it is None if there is no head or if it is applied. `gives_own`
    says that a sparse or late-interaction model gives what it was published for; if it does not, `not_given` may say why.
    `takes_last_token` says that last-token pooling is applied.
    """
    because = f", because {not_given}" if not_given else ""
    if is_late_interaction(modules, architectures, published_as):
        text = (
            "It was published as a late-interaction model (ColBERT): every token keeps its own vector, which a Dense layer "
            "makes smaller, and two texts are compared token by token. "
        )
        if gives_own:
            text += (
                "MaxSim, under Search, Diagnose and in the Laboratory, uses these vectors. All other figures show the "
                "encoder's hidden states, or pool them to one vector per text, for which the model was not trained."
            )
        else:
            text += (
                f"The Dense layer and this comparison are not applied{because}: the encoder's hidden states are shown, and "
                "pooled to one vector per text."
            )
        return (text,)
    if _is_sparse(modules, published_as):
        text = (
            "It was published as a sparse model (SPLADE): its masked-LM head gives a text one weight for each piece of the "
            "vocabulary. "
        )
        if gives_own:
            text += (
                "The ranking “SPLADE”, under Search, Diagnose and in the Laboratory, uses these weights. All other figures "
                "show the encoder's hidden states, or pool them, although they were not trained to be compared."
            )
        else:
            text += (
                f"These weights are not applied{because}: the encoder's hidden states are shown and pooled instead, "
                "although they were not trained to be compared."
            )
        return (text,)
    sentences = []
    for pooling in (module for module in modules if module.kind == "Pooling"):
        modes = pooling.pooling_modes
        if len(modes) > 1:
            names = ", ".join(_MODES.get(mode, mode) for mode in modes)
            sentences.append(
                f"It was published with several poolings, whose vectors are joined into one ({names}). This is not "
                f"applied: mean, [CLS] and maximum can be chosen one at a time, and {_INSTEAD}."
            )
        elif modes[0] not in POOLINGS and not (takes_last_token and modes[0] == "lasttoken"):
            name = _MODES.get(modes[0], f"a pooling called {modes[0][:40]}")
            sentences.append(f"It was published with {name}. This is not applied: {_INSTEAD}.")
        if (pooling.config or {}).get("include_prompt") is False:
            sentences.append(
                "It was trained with the tokens of its prompt excluded from pooling (include_prompt: false). This is not "
                "applied: if a text has a prompt, the tokens of the prompt count like all others."
            )
    if _has_dense_before_pooling(modules):
        sentences.append(
            "It was published with a Dense layer before pooling, which changes the vector of every token. This is not "
            "applied: the encoder's hidden states are pooled without it."
        )
    if head_problem is not None:
        sentences.append(
            f"It was published with a Dense layer after pooling, which is not applied because {head_problem}. The pooled "
            "vectors are used without it."
        )
    others = list(dict.fromkeys(module.kind for module in modules if module.kind not in _APPLIED))
    if others:
        sentences.append(
            f"It was published with modules that are not applied ({', '.join(name[:40] for name in others)}). The "
            "encoder's hidden states are pooled without them."
        )
    return tuple(sentences)


def is_late_interaction(modules: Sequence[PublishedModule], architectures: Sequence[str], published_as: str) -> bool:
    """Whether a model compares texts token by token (Khattab and Zaharia 2020), as ColBERT and PyLate publish it."""
    kinds = [module.kind for module in modules]
    return (
        published_as in {"ColBERT", "MultiVectorEncoder"}
        or any("ColBERT" in name for name in architectures)
        or any(module.library == "pylate" for module in modules)
        or bool(_LATE_INTERACTION & set(kinds))
        or ("Dense" in kinds and "Pooling" not in kinds and MODULE not in kinds)
    )


def _has_dense_before_pooling(modules: Sequence[PublishedModule]) -> bool:
    """Whether a Dense layer works on the vectors of the tokens, which are pooled afterwards."""
    kinds = [module.kind for module in modules]
    return "Pooling" in kinds and "Dense" in kinds[: kinds.index("Pooling")]


def _is_sparse(modules: Sequence[PublishedModule], published_as: str) -> bool:
    """Whether a text's vector has one number for each piece of the vocabulary, mostly 0 (Formal et al. 2021)."""
    return published_as == "SparseEncoder" or any(module.kind in _SPARSE for module in modules)


def is_cross_encoder(key: str, config: Any, published_as: str) -> bool:
    """Whether a model was trained to score its input, usually a pair of texts, and not to make vectors.

    `key` is the catalog's (the hub's owner "cross-encoder" publishes nothing else), `config` the model's configuration.
    """
    architectures = getattr(config, "architectures", None) or ()
    return (
        published_as == "CrossEncoder"
        or key.startswith("cross-encoder/")
        or any(str(name).endswith("ForSequenceClassification") for name in architectures)
    )
