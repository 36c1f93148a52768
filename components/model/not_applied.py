"""What a model was published for, and what of it is not applied here: said in words, so that nobody takes our numbers
for the model's own.

Told by the modules of modules.json, by the architectures that config.json names, and by the kind of model that
config_sentence_transformers.json names. Whatever none of these files tells stays unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from components.model.files.published import PublishedModule
from components.model.trace import POOLINGS

_APPLIED = {
    "Transformer",
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
_POOLING_NAMES = {
    "lasttoken": "last-token pooling (the last token's vector stands for the text)",
    "weightedmean": "weighted-mean pooling (later tokens count more)",
    "mean_sqrt_len_tokens": "pooling by the sum of the tokens' vectors divided by the square root of their number",
    "mean": "the mean",
    "cls": "[CLS]",
    "max": "the maximum",
}
_INSTEAD = "the mean of all tokens is the default here instead"


def not_applied(
    modules: Sequence[PublishedModule], architectures: Sequence[str], published_as: str, head_problem: str | None
) -> tuple[str, ...]:
    """Sentences in plain English, each on one thing that was published: what it is, and what is done instead.

    `architectures` are those of config.json, `published_as` is the model_type of config_sentence_transformers.json, and
    `head_problem` says why a Dense head is not applied; None where there is none, or where it is.
    """
    if is_late_interaction(modules, architectures, published_as):
        return (
            "It was published as a late-interaction model (ColBERT): every token keeps a vector of its own, made smaller "
            "by a Dense layer, and two texts are compared token by token. The Dense layer and this comparison are not "
            "applied: the encoder's hidden states are shown, and pooled to one vector for each text.",
        )
    if _is_sparse(modules, published_as):
        return (
            "It was published as a sparse model (SPLADE): its masked-LM head gives a text a weight for each piece of the "
            "vocabulary. These weights are not applied: the encoder's hidden states are shown and pooled instead, and "
            "were not trained to be compared.",
        )
    found = []
    for pooling in (module for module in modules if module.kind == "Pooling"):
        modes = pooling.pooling_modes
        if len(modes) > 1:
            names = ", ".join(_POOLING_NAMES.get(mode, mode) for mode in modes)
            found.append(
                f"It was published with several poolings, whose vectors are put one after the other ({names}). That is not "
                f"applied: mean, [CLS] and maximum can be chosen one at a time, and {_INSTEAD}."
            )
        elif modes[0] not in POOLINGS:
            name = _POOLING_NAMES.get(modes[0], f"a pooling called {modes[0][:40]}")
            found.append(f"It was published with {name}. That is not applied: {_INSTEAD}.")
        if (pooling.config or {}).get("include_prompt") is False:
            found.append(
                "It was trained with the tokens of its prompt left out of pooling (include_prompt: false). That is not "
                "applied: where a prompt stands before a text, its tokens count like all others."
            )
    if head_problem is not None:
        found.append(
            f"It was published with a Dense layer after pooling, which is not applied because {head_problem}. The pooled "
            "vectors are used without it."
        )
    others = list(dict.fromkeys(module.kind for module in modules if module.kind not in _APPLIED))
    if others:
        found.append(
            f"It was published with modules that are not applied ({', '.join(name[:40] for name in others)}). The "
            "encoder's hidden states are pooled without them."
        )
    return tuple(found)


def is_late_interaction(modules: Sequence[PublishedModule], architectures: Sequence[str], published_as: str) -> bool:
    """Whether a model compares texts token by token (Khattab and Zaharia 2020), as ColBERT and PyLate publish it."""
    kinds = [module.kind for module in modules]
    return (
        published_as in {"ColBERT", "MultiVectorEncoder"}
        or any("ColBERT" in name for name in architectures)
        or any(module.library == "pylate" for module in modules)
        or bool(_LATE_INTERACTION & set(kinds))
        or ("Dense" in kinds and "Pooling" not in kinds)
    )


def _is_sparse(modules: Sequence[PublishedModule], published_as: str) -> bool:
    """Whether a text's vector has a number for each piece of the vocabulary, most of them 0 (Formal et al. 2021)."""
    return published_as == "SparseEncoder" or any(module.kind in _SPARSE for module in modules)


def is_cross_encoder(key: str, config: Any, published_as: str) -> bool:
    """Whether a model was trained to score what it reads, two texts together as a rule, and not to make vectors.

    `key` is the catalog's (the collection "cross-encoder" has nothing else), `config` the model's configuration.
    """
    architectures = getattr(config, "architectures", None) or ()
    return (
        published_as == "CrossEncoder"
        or key.startswith("cross-encoder/")
        or any(str(name).endswith("ForSequenceClassification") for name in architectures)
    )
