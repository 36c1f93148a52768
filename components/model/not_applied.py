"""What a model was published for, and which of its parts are not applied here: in words, so that nobody mistakes our
numbers for the model's own.

The sources are the modules in modules.json, the architectures in config.json, and the kind of model in
config_sentence_transformers.json. What none of these files says remains unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from components.model.files import decisions
from components.model.files.published import PublishedModule
from components.model.files.sentence_config import SentenceConfig, prompt_for
from components.model.files.static_files import MODULE

_LATE_INTERACTION = {"MultiVectorMask", "HierarchicalTokenPooling", "LambdaTokenPooling"}
_SPARSE = {"SpladePooling", "MLMTransformer"}


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
    `head_problem` says why the published way to a vector is not applied; it is None if it is. `gives_own`
    says that a sparse or late-interaction model gives what it was published for; if it does not, `not_given` may say why.
    `takes_last_token` says that the last token is used instead of the mean.
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
    if published_as not in _KINDS and modules:
        sentences.append(
            f"{decisions.TOP} calls it a model of the kind “{published_as[:40]}”. sentence-transformers does not know it, and "
            "leaves the modules and prompts of such a folder aside and takes the mean of all tokens' vectors. Here they are "
            "applied."
        )
    if head_problem is not None:
        instead = "vector of the last token" if takes_last_token else "mean of all tokens' vectors"
        sentences.append(
            f"Its published way from tokens to a text's vector is not applied, because {head_problem}. The vectors are "
            f"made without it: the {instead}."
        )
    others = list(dict.fromkeys(module.kind for module in modules if not decisions.is_applied(module.kind)))
    others = [kind for kind in others if head_problem is None or kind[:40] not in head_problem]
    if others:
        sentences.append(
            f"It was published with modules that are not applied ({', '.join(name[:40] for name in others)}). The "
            "encoder's hidden states are pooled without them."
        )
    return tuple(sentences)


def unused_prompts(published: SentenceConfig) -> tuple[str, ...]:
    """Sentences about what the files set and sentence-transformers does not use, or would stop at."""
    sentences = []
    if published.not_read:
        sentences.append(
            f"It has {', '.join(published.not_read)}, and no {decisions.MODULES}, without which sentence-transformers does not "
            "read them. This is not applied."
        )
    if published.default_prompt is not None and published.default_prompt not in {
        *published.prompts,
        "query",
        "document",
    }:
        sentences.append(
            f"Its files name “{published.default_prompt[:40]}” as the prompt of every text, and have no prompt of this name. "
            "None is applied."
        )
    for name in ("passage", "corpus"):
        if published.prompts.get(name) and published.default_prompt != name:
            sentences.append(
                f"It has a prompt named “{name}”, which sentence-transformers does not use for documents: it looks for "
                "“document”. This prompt is not applied."
            )
    return tuple(sentences)


@dataclass(frozen=True)
class StepInWords:
    """One step from a text to a vector."""

    step: str
    how: str
    source: str  # the file that says so, within the model's folder; in words where none does


# What the libraries write as model_type; without one it is the first.
_KINDS = {"", "SentenceTransformer", "SparseEncoder", "CrossEncoder", "MultiVectorEncoder", "ColBERT"}
_NO_FILE = "no file says it"


def vector_in_words(
    published: SentenceConfig,
    own_max_length: int,
    pooling: str,
    head_steps: Sequence[str],
    length_file: str = "",
    is_chosen: bool = False,
    pooling_file: str = "",
) -> tuple[StepInWords, ...]:
    """How a model turns a text into a vector: prompt, length, pooling, head and scaling, similarity.

    `pooling` says in plain words what is pooled, `head_steps` what follows; `length_file` is the file with the length, and
    `is_chosen` says that the prompts are a person's or the authors', and no file's. `pooling_file` is the file that decides the
    pooling where no module does.
    """
    prompts = [
        f"“{text}” before each {role}" for role in ("query", "document") if (text := published.prompts.get(role))
    ]
    if every := prompt_for(published, None):
        prompts.append(f"“{every}” before every other text")
    roles = [
        f"{length:,} of a {role}"
        for role, length in (("query", published.query_length), ("document", published.document_length))
        if length is not None
    ]
    pools = [f"{module.path}/config.json" for module in published.modules if module.kind == "Pooling"]
    heads = [f"{module.path or 'the folder'}" for module in published.modules if module.kind in _AFTER_POOLING]
    is_scaled = any(module.kind == "Normalize" for module in published.modules)
    steps = list(head_steps)
    if is_scaled and not any("length 1" in step for step in steps):
        steps.append(
            "scaled to length 1, which changes no cosine; lengths and dot products are those of the vectors before it"
        )
    return (
        StepInWords(
            "Prompt",
            "; ".join(prompts) or "none",
            "chosen, not in the model's files" if is_chosen else decisions.TOP if prompts else _NO_FILE,
        ),
        StepInWords("Length", f"{'; '.join([f'up to {own_max_length:,} tokens', *roles])}", length_file or _NO_FILE),
        StepInWords("Pooling", pooling, pools[0] if pools else pooling_file or _NO_FILE),
        StepInWords(
            "Head and scaling",
            "; ".join(steps) or "none",
            ", ".join([*heads, *([decisions.TOP] if published.truncate_dim is not None else [])]) or _NO_FILE,
        ),
        StepInWords(
            "Similarity",
            _SIMILARITY_NAMES[published.similarity],
            decisions.TOP if published.says_similarity else f"{_NO_FILE}; the cosine is usual",
        ),
    )


_AFTER_POOLING = {"Dense", "LayerNorm", "Normalize", "WeightedLayerPooling"}
_SIMILARITY_NAMES = {
    "cosine": "cosine",
    "dot": "dot product",
    "euclidean": "negative Euclidean distance",
    "manhattan": "negative Manhattan distance",
}


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


def _is_sparse(modules: Sequence[PublishedModule], published_as: str) -> bool:
    """Whether a text's vector has one number for each piece of the vocabulary, mostly 0 (Formal et al. 2021)."""
    return published_as == "SparseEncoder" or any(module.kind in _SPARSE for module in modules)


def is_cross_encoder(key: str, config: Any, published_as: str, modules: Sequence[PublishedModule] = ()) -> bool:
    """Whether a model was trained to score its input, usually a pair of texts, and not to make vectors.

    `key` is the catalog's (the hub's owner "cross-encoder" publishes nothing else), `config` the model's configuration.
    An architecture that classifies says it too, unless the modules of an encoder, which pool its tokens, stand beside it.
    """
    architectures = getattr(config, "architectures", None) or ()
    return (
        published_as == "CrossEncoder"
        or key.startswith("cross-encoder/")
        or (
            any(str(name).endswith("ForSequenceClassification") for name in architectures)
            and not any(module.kind == "Pooling" for module in modules)
        )
    )
