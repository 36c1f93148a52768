"""A tiny seeded Qwen3 as a folder of sentence-transformers: last-token pooling, length 1, a prompt for queries."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, processors
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3Model

from tests.support import tiny

PROMPT = "find the bank by the river : "


def _tokenizer() -> PreTrainedTokenizerFast:
    """As Qwen3-Embedding's: one special token, at the end."""
    whole: Tokenizer = tiny.wordpiece_tokenizer().backend_tokenizer
    whole.post_processor = processors.TemplateProcessing(
        single="$A [SEP]", pair="$A $B [SEP]", special_tokens=[("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=whole, model_max_length=64, eos_token="[SEP]", pad_token="[PAD]", padding_side="left"
    )


def save_qwen3(folder: Path, seed: int = 0, pooling: str = "lasttoken") -> Path:
    """The model with its modules; `pooling` is the mode of its Pooling module."""
    torch.manual_seed(seed)
    tokenizer = _tokenizer()
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=64,
        initializer_range=0.3,
        pad_token_id=0,
    )
    Qwen3Model(config).eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    tiny.publish(folder, ("Pooling", {"word_embedding_dimension": 32, "pooling_mode": pooling}), ("Normalize", {}))
    prompts = {"prompts": {"query": PROMPT, "document": ""}, "similarity_fn_name": "cosine"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    return folder
