"""From a folder of published files to modules: what is refused, and twins that share one set of weights."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch

from components.errors import ModelError
from components.model import architecture


def from_pretrained(folder: Path, name: str) -> tuple[Any, Any]:
    """Encoder and tokenizer of a folder, float32 on the CPU. Raises ModelError for what cannot be shown truly."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedConfig
    from transformers.utils import logging as transformers_logging

    # The server's log is for faults: no progress bars, no report of weights that belong to unused heads.
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    strict = {"local_files_only": True, "trust_remote_code": False}
    try:
        architecture.check_supported_file(PreTrainedConfig.get_config_dict(folder, **strict)[0], name)
        config = AutoConfig.from_pretrained(folder, **strict)
        architecture.check_supported(config, name)
        tokenizer = AutoTokenizer.from_pretrained(folder, **strict)
        model, report = AutoModel.from_pretrained(
            folder,
            config=config,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
            **strict,
        )
    except ModelError:
        raise
    except Exception as problem:
        first_line = (str(problem).splitlines() or [type(problem).__name__])[0][:200]
        raise ModelError(
            "damaged",
            f"{name} could not be loaded: {first_line}",
            "A whole set of files was expected: config.json, a tokenizer, and model.safetensors.",
            "Fetch or save the model again, or pick another one.",
        ) from problem
    # A pooler the checkpoint does not have would be random: leave it out rather than show noise.
    missing = {str(key) for key in report["missing_keys"]}
    if any(key.startswith("pooler") for key in missing):
        model.pooler = None
        missing = {key for key in missing if not key.startswith("pooler")}
    if missing:
        raise ModelError(
            "damaged",
            f"{name} lacks {len(missing)} of its weights, {sorted(missing)[0]} among them.",
            "Weights for every part of the encoder were expected.",
            "Fetch or save the model again, or pick another one.",
        )
    return model, tokenizer


def eager_twin(model: Any) -> Any:
    """The same model with eager attention. Its parameters and buffers are the very same tensors."""
    twin = _twin(model)
    twin.set_attn_implementation("eager")
    return twin


def _twin(model: Any) -> Any:
    shared = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    return copy.deepcopy(model, shared)


SHORT_ATTENTION = "bert_internals_short"
_WITH_INTERFACE = {"bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert"}


def short_twin(model: Any) -> Any:
    """The same model, its weights shared, with an attention that is quick for short sentences on a CPU.

    Plain matrix products, and the softmax in float32: in bfloat16 it takes 4 times as long for rows of some 25 numbers,
    and the fused attention longer still. Architectures that bring an attention of their own get the eager one.
    """
    if model.config.model_type not in _WITH_INTERFACE:
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
    """The same model in bfloat16: weights of its own, at half the size."""
    return copy.deepcopy(model).to(torch.bfloat16)


def publishes_masked_lm(config: Any) -> bool:
    """Whether the weights were published with a masked-LM head."""
    return any(str(name).endswith("ForMaskedLM") for name in getattr(config, "architectures", None) or ())


def masked_lm(folder: Path, encoder: Any, name: str) -> Any:
    """The model with its published masked-LM head, on the encoder's own weights. Raises ModelError without one."""
    from transformers import AutoModelForMaskedLM

    model, report = AutoModelForMaskedLM.from_pretrained(
        folder,
        local_files_only=True,
        trust_remote_code=False,
        use_safetensors=True,
        attn_implementation="eager",
        output_loading_info=True,
    )
    if report["missing_keys"]:  # transformers would fill these with random numbers and only report it
        raise no_masked_lm(name)
    setattr(model, model.base_model_prefix, eager_twin(encoder))
    model.tie_weights()  # the decoder's matrix is the encoder's own word vectors again, not a copy
    return model.to(next(encoder.parameters()).device).eval()


def no_masked_lm(name: str) -> ModelError:
    """The error of a model that cannot predict masked tokens."""
    return ModelError(
        "unsupported",
        f"{name} has no masked-LM head.",
        "A model that was published with the head that predicts masked tokens was expected.",
        "Pick for example BERT base or RoBERTa base.",
    )
