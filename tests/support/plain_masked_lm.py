"""Masked-LM models in plain transformers, with the head of each family written out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

# The head of each family's masked-LM model, written out: from vectors [token, dim] to scores [token, vocabulary].
_BERT_HEAD = lambda model, states: model.cls(states)  # noqa: E731
_ROBERTA_HEAD = lambda model, states: model.lm_head(states)  # noqa: E731
HEADS: dict[str, Any] = {
    **dict.fromkeys(("bert", "multilingual", "ernie", "deberta-v2"), _BERT_HEAD),
    **dict.fromkeys(
        (
            "roberta",
            "xlm-roberta",
            "camembert",
            "data2vec-text",
            "xlm-roberta-xl",
            "roberta-prelayernorm",
            "mpnet",
            "eurobert",
        ),
        _ROBERTA_HEAD,
    ),
    "distilbert": lambda model, states: model.vocab_projector(
        model.vocab_layer_norm(model.activation(model.vocab_transform(states)))
    ),
    "electra": lambda model, states: model.generator_lm_head(model.generator_predictions(states)),
    "albert": lambda model, states: model.predictions(states),
    "modernbert": lambda model, states: model.decoder(model.head(states)),
}
# Where a norm follows the last block, by its name.
FINAL_NORMS: dict[str, Any] = {
    "modernbert": lambda model: model.model.final_norm,
    "eurobert": lambda model: model.model.norm,
    "xlm-roberta-xl": lambda model: model.roberta.encoder.LayerNorm,
    "roberta-prelayernorm": lambda model: model.roberta_prelayernorm.LayerNorm,
}


@dataclass(frozen=True)
class Plain:
    """A model of plain transformers."""

    architecture: str
    model: Any
    tokenizer: Any

    @classmethod
    def load(cls, folder: Path, architecture: str) -> Plain:
        """From a folder, in float64."""
        model = AutoModelForMaskedLM.from_pretrained(folder, attn_implementation="eager").double().eval()
        return cls(architecture, model, AutoTokenizer.from_pretrained(folder))

    def inputs(self, text: str, hidden: tuple[int, ...] = (), pair: str | None = None) -> dict[str, torch.Tensor]:
        """The model's arguments, with the mask's id at some positions."""
        segments = getattr(self.model.config, "type_vocab_size", 0) > 1
        encoded = dict(self.tokenizer(text, pair, return_tensors="pt", return_token_type_ids=segments))
        encoded["input_ids"][0, list(hidden)] = self.tokenizer.mask_token_id
        return encoded

    def scores(self, text: str, hidden: tuple[int, ...] = (), pair: str | None = None) -> torch.Tensor:
        """The library's own logits, [token, vocabulary]."""
        with torch.inference_mode():
            scores: torch.Tensor = self.model(**self.inputs(text, hidden, pair)).logits[0]
        return scores

    def scores_by_layer(self, text: str, hidden: tuple[int, ...] = ()) -> torch.Tensor:
        """The head, written out, on each layer's vectors, [layer, token, vocabulary]."""
        with torch.inference_mode():
            states = self.model.base_model(**self.inputs(text, hidden), output_hidden_states=True).hidden_states
            norm = FINAL_NORMS.get(self.architecture, lambda _: torch.nn.Identity())(self.model)
            below = [norm(layer[0]) for layer in states[:-1]]
            head = HEADS[self.architecture]
            return torch.stack([head(self.model, vectors[None])[0] for vectors in (*below, states[-1][0])])
