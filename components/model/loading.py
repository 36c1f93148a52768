"""From a folder of published files to modules: checks, and copies of a model that share one set of weights."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from components.errors import ModelError, UserError, first_line
from components.model.architecture.families import decoder
from components.model.architecture.families.static import StaticEncoder
from components.model.architecture.structure import Structure
from components.model.architecture.support import check_supported, check_supported_file
from components.model.device import machine_memory, rules_of
from components.model.files import hub, static_files
from components.model.files.allowed import MOST_LABELS
from components.model.files.checked_copy import (
    check_place,
    check_sentence_files,
    checked_copy,
    read_config,
    read_tokenizer,
)
from components.model.files.encoder import adapter
from components.model.files.encoder.casing import lower_first
from components.model.files.encoder.settings import read_encoder_settings
from components.model.files.published import read_modules
from components.model.files.weight_sizes import WEIGHTS, check_agreement, check_header

# Held while transformers imports a model's code or builds a model. Two threads that import at once get an ImportError. And
# while it builds one, it replaces functions of its own for the whole process, such as the one that ties a masked-LM head to the
# word vectors: two builds that overlap can leave the replacement in place, and later heads get random numbers.
BUILDING = threading.RLock()


def from_pretrained(folder: Path, name: str) -> tuple[Any, Any]:
    """Encoder and tokenizer of a folder, float32 on the CPU. Raises ModelError for files that are damaged or unsupported."""
    with BUILDING:
        from transformers import AutoConfig, AutoModel, AutoTokenizer
        from transformers.models.auto.modeling_auto import MODEL_MAPPING
        from transformers.utils import logging as transformers_logging

    # The server's log is for errors: no progress bars, no report of weights that belong to unused heads.
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    strict = {"local_files_only": True, "trust_remote_code": False}
    check_sentence_files(folder, name)
    static = static_files.static_folder(folder)
    if static is not None:
        return _static(static, folder, name)
    own_adapter = adapter.read_adapter(folder, name) if adapter.has_adapter(folder) else None
    with usable(name):
        is_for_texts = decoder.is_for_texts(read_modules(folder))
        check_supported_file(read_config(folder, name), name, is_for_texts)
        with checked_copy(folder, name) as checked:
            config = AutoConfig.from_pretrained(checked, **strict)
            check_supported(config, name, is_for_texts)
            with BUILDING:
                MODEL_MAPPING[type(config)]  # imports the model's own code
            if config.model_type in decoder.TITLES:
                config.use_cache = False  # keys and values are kept only to write text
            check_sizes(checked, config, name)
            settings = read_encoder_settings(folder, name)
            tokenizer = AutoTokenizer.from_pretrained(checked, **strict, **settings.tokenizer)
            if settings.is_lowered:
                lower_first(tokenizer.backend_tokenizer)
            with BUILDING:
                model, report = AutoModel.from_pretrained(
                    checked,
                    config=config,
                    use_safetensors=True,
                    dtype=torch.float32,
                    output_loading_info=True,
                    **strict,
                )
    missing = {str(key) for key in report["missing_keys"]}
    if own_adapter is not None:
        missing -= own_adapter.replaced_in(model)
    # A pooler that is not in the checkpoint would be random: leave it out rather than show noise.
    if any(key.startswith("pooler") for key in missing):
        model.pooler = None
        missing = {key for key in missing if not key.startswith("pooler")}
    if missing:
        raise ModelError(
            "damaged",
            f"{name} lacks {len(missing)} of its weights, for example {sorted(missing)[0]}.",
            "Every part of the encoder needs its weights.",
            "Download or save the model again, or pick another one.",
        )
    if own_adapter is not None:
        own_adapter.merge(model, name)
    check_finite(model, name)
    return model, tokenizer


def _static(place: Path, folder: Path, name: str) -> tuple[Any, Any]:
    """A static model as an encoder without blocks, and its tokenizer; its files are in the folder or in one within it.

    Raises ModelError.
    """
    with usable(name):
        check_place(place / WEIGHTS, folder, name)
        file = (place / static_files.TOKENIZER).relative_to(folder).as_posix()
        tokenizer = static_files.read_tokenizer(read_tokenizer(folder, name, file))
        model = StaticEncoder(static_files.read_table(place, name, machine_memory()))
    check_finite(model, name)
    return model, tokenizer


def unusable(name: str, problem: BaseException) -> ModelError:
    """The error of a model that a library cannot load or run."""
    return ModelError(
        "damaged",
        f"{name} could not be loaded: {first_line(problem)}.",
        "A model needs a complete set of files: config.json, a tokenizer, and model.safetensors.",
        "Download or save the model again, or pick another one.",
    )


def check_finite(model: torch.nn.Module, name: str) -> None:
    """Raise ModelError if a weight is NaN or infinite: every result would be, and an index would keep it."""
    for part, parameter in model.named_parameters():
        # The extremes of a tensor with a NaN are NaN; unlike isfinite, they need no memory.
        if parameter.numel() and not all(torch.isfinite(extreme) for extreme in torch.aminmax(parameter.detach())):
            raise ModelError(
                "damaged",
                f"{name} has weights that are not finite numbers (NaN or infinity), for example in {part}.",
                "A model needs finite weights.",
                "Download or save the model again, or pick another one.",
            )


def not_finite(name: str) -> ModelError:
    """The error of a model whose results overflow, though its weights are finite."""
    return ModelError(
        "damaged",
        f"{name} computes vectors that are not finite numbers (NaN or infinity).",
        "Only finite vectors can be compared.",
        "Pick another model, or save this one again with correct weights.",
    )


def check_sizes(folder: Path, config: Any, name: str) -> None:
    """Raise ModelError where an encoder with this configuration is far larger than the weights in its checked copy."""
    with BUILDING:
        from transformers import AutoModel

        with torch.device("meta"):  # the shapes of its parameters alone
            needed = sum(parameter.numel() for parameter in AutoModel.from_config(config).parameters())
    found = sum(check_header(path, f"{path.name} of {name}") for path in folder.glob("*.safetensors"))
    check_agreement(needed, found, machine_memory(), name)


@contextmanager
def usable(name: str) -> Iterator[None]:
    """Within it, a failure of a library that reads a model's files becomes a ModelError.

    A panic of the tokenizers is a BaseException: it would end the thread of a session without a word.
    """
    try:
        yield
    except (UserError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as problem:
        raise unusable(name, problem) from problem


def eager_twin(model: Any) -> Any:
    """The same model with eager attention. Its parameters and buffers are the same tensors."""
    twin = _twin(model)
    twin.set_attn_implementation("eager")
    return twin


def _twin(model: Any) -> Any:
    shared = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    return copy.deepcopy(model, shared)


SHORT_ATTENTION = "bert_internals_short"


def short_twin(model: Any, structure: Structure) -> Any:
    """The same model, its weights shared, with an attention that is fast for short sentences on a CPU.

    It uses plain matrix products, and the softmax in float32: in bfloat16 the softmax takes 4 times as long for rows of
    about 25 numbers, and the fused attention takes longer still. Architectures with their own attention get the eager one,
    and so do those whose heads share keys, and decoders.
    """
    if structure.has_own_attention_code or structure.heads_per_key > 1 or structure.is_causal:
        return eager_twin(model)
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, eager_mask

    AttentionInterface.register(SHORT_ATTENTION, _short_attention)
    AttentionMaskInterface.register(SHORT_ATTENTION, eager_mask)
    twin = _twin(model)
    twin.set_attn_implementation(SHORT_ATTENTION)
    return twin


def _short_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """softmax(query key^T / sqrt(head_dim)) value; all [sentence, head, token, head_dim], result [.., token, head, ..]."""
    scores = query @ key.transpose(2, 3) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    if attention_mask is not None:
        scores = scores + attention_mask
    shares = scores.float().softmax(dim=-1).to(query.dtype)
    return (shares @ value).transpose(1, 2).contiguous(), None


def half_copy(model: Any) -> Any:
    """The same model in bfloat16, with its own weights of half the size.

    Its buffers stay as they are: the speeds of rotation, rounded, would give other angles for tokens far from the first.
    """
    # What deepcopy finds here it does not copy: no second copy of the float32 weights is ever made.
    halves = {
        id(weights): torch.nn.Parameter(weights.detach().to(torch.bfloat16), weights.requires_grad)
        for weights in model.parameters()
    }
    return copy.deepcopy(model, halves)


def bytes_of(model: torch.nn.Module, device: torch.device) -> int:
    """Bytes that a model takes on a device: where that has its own memory, bulk work adds a copy in bfloat16."""
    nbytes = weight_bytes(model)
    return nbytes + nbytes // 2 if rules_of(device).has_own_memory else nbytes


def weight_bytes(model: torch.nn.Module) -> int:
    """Bytes of a model's weights; tensors that several modules share count once."""
    return sum(tensor.nbytes for tensor in (*model.parameters(), *model.buffers()))


def publishes_masked_lm(config: Any) -> bool:
    """Whether the weights were published with a masked-LM head."""
    return any(str(name).endswith("ForMaskedLM") for name in getattr(config, "architectures", None) or ())


def masked_lm(folder: Path, encoder: Any, name: str) -> Any:
    """The model with its published masked-LM head after this encoder, whose weights it uses. Raises ModelError without one."""
    with BUILDING:
        from transformers import AutoModelForMaskedLM
    with usable(name), checked_copy(folder, name) as checked, BUILDING:
        model, report = AutoModelForMaskedLM.from_pretrained(
            checked,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=torch.float32,
            attn_implementation="eager",
            output_loading_info=True,
        )
    if report["missing_keys"]:  # transformers would only report these and fill them with random numbers
        raise no_masked_lm(name)
    if adapter.has_adapter(folder):
        adapter.read_adapter(folder, name).merge(model, name, is_head=True)
    decoder = model.get_output_embeddings()
    # transformers leaves them apart where the folder has a decoder's matrix of its own.
    is_tied = decoder is None or decoder.weight is model.get_input_embeddings().weight
    setattr(model, model.base_model_prefix, encoder)
    if is_tied:
        with BUILDING:
            model.tie_weights()  # the decoder's matrix is the encoder's own word vectors again, not a copy of them
    return model


def pair_scorer(folder: Path | None, encoder: Any, structure: Structure, name: str) -> Any:
    """The encoder with its published scoring head, which turns a pair of texts into a logit for each of its labels.

    Only the head is read, from the folder's safetensors or those of an adapter; the encoder's weights are shared. Raises
    ModelError if there is no head, or if it is damaged.
    """
    with BUILDING:
        from transformers import AutoModelForSequenceClassification

    head = {} if folder is None else head_weights(folder, name, structure.scoring_head)
    last = head.get("classifier.out_proj.weight", head.get("classifier.weight"))  # [output, dim]
    if last is not None and (last.dim() != 2 or not len(last)):
        raise _no_score(name, f"has a head of the shape {list(last.shape)[:8]}")
    if last is not None and len(last) > MOST_LABELS:
        raise _no_score(name, f"has a head of {len(last):,} outputs, more than {MOST_LABELS:,},")
    if last is None or (structure.scores_from_pooler and getattr(encoder, "pooler", None) is None):
        raise _no_score(name, "has no head that scores a pair of texts")
    config = copy.deepcopy(encoder.config)
    published = dict(getattr(encoder.config, "id2label", None) or {})
    config.num_labels = len(last)  # which also names the labels LABEL_0, LABEL_1, ...
    if sorted(published) == list(range(len(last))):
        config.id2label = published
    # On "meta" there is no memory for the encoder's weights, which are replaced. Some kinds of models have no such head.
    with usable(name), BUILDING, torch.device("meta"):
        model = AutoModelForSequenceClassification.from_config(config)
    setattr(model, model.base_model_prefix, encoder)
    try:
        unknown = model.load_state_dict(head, strict=False, assign=True).unexpected_keys
    except RuntimeError as problem:
        raise unusable(name, problem) from problem
    if unknown or any(parameter.is_meta for parameter in model.parameters()):
        raise _no_score(name, "has an incomplete head")
    return model


CLASSIFIER = ("classifier.", "pre_classifier.")  # how the names of a classification head's weights begin
NEXT_SENTENCE = "cls.seq_relationship."  # the same of BERT's head for next-sentence prediction


def head_weights(folder: Path, name: str, prefixes: tuple[str, ...] = CLASSIFIER) -> dict[str, torch.Tensor]:
    """The float32 weights of a head in a folder's safetensors, whose names begin in one of these ways; empty without one."""
    from safetensors import SafetensorError, safe_open

    files = [*(hub.weight_parts(folder) or ("model.safetensors",))]
    files += [adapter.WEIGHTS] if adapter.has_adapter(folder) else []  # stands above the others
    weights = {}
    try:
        for path in (folder / file for file in files if (folder / file).is_file()):
            with safe_open(path, "pt") as content:
                for key in content.keys():  # noqa: SIM118 - not a dictionary
                    part = key.removeprefix(adapter.PREFIX)
                    if part.startswith(prefixes):
                        weights[part] = content.get_tensor(key).float()
    except (OSError, SafetensorError) as problem:
        raise unusable(name, problem) from problem
    return weights


def next_sentence_head(folder: Path | None, encoder: Any, name: str) -> torch.nn.Linear:
    """BERT's head for next-sentence prediction: from the pooler's output to two logits, "B follows A" and "it does not".

    Only the head is read, from the folder's safetensors. Raises ModelError if there is none, or if it is damaged.
    """
    weights = {} if folder is None else head_weights(folder, name, (NEXT_SENTENCE,))
    if not weights or getattr(encoder, "pooler", None) is None:
        raise ModelError(
            "unsupported",
            f"{name} has no head for next-sentence prediction.",
            "BERT's own checkpoints were published with one; most later models were trained without this task.",
            "Pick for example BERT base.",
        )
    head = torch.nn.Linear(encoder.config.hidden_size, 2)
    try:
        head.load_state_dict({key.removeprefix(NEXT_SENTENCE): value for key, value in weights.items()})
    except RuntimeError as problem:
        raise unusable(name, problem) from problem
    return head.requires_grad_(False)


def _no_score(name: str, reason: str) -> ModelError:
    return ModelError(
        "unsupported",
        f"{name} {reason}.",
        "Pairs need a cross-encoder.",
        "Pick for example the included cross-encoder, or MS MARCO MiniLM L6.",
    )


def no_masked_lm(name: str) -> ModelError:
    """The error of a model that cannot predict masked tokens."""
    return ModelError(
        "unsupported",
        f"{name} has no masked-LM head.",
        "Predicting masked tokens needs a model that was published with its head for this.",
        "Pick for example BERT base or RoBERTa base.",
    )
