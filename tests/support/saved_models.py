"""Folders of tiny seeded models with a head or a kind of vectors, as the libraries save them."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from transformers import BertConfig, BertForPreTraining, BertModel

from tests.support import tiny


def save_cross_encoder(folder, kind, outputs=1, seed=3):
    """A tiny seeded cross-encoder in sentence-transformers' format; BERT's with or without segments for the pair."""
    from sentence_transformers import CrossEncoder

    torch.manual_seed(seed)
    tiny.save_tiny(folder / "encoder", kind.split()[0])
    if kind.endswith("segments"):
        path = folder / "encoder" / "tokenizer_config.json"
        names = ["input_ids", "token_type_ids", "attention_mask"]
        path.write_text(json.dumps(json.loads(path.read_text()) | {"model_input_names": names}))
    model = CrossEncoder(str(folder / "encoder"), num_labels=outputs, device="cpu", local_files_only=True)
    for name, parameter in model.model.named_parameters():
        if "classifier" in name:  # large, so that a wrong head shows
            torch.nn.init.normal_(parameter, std=0.5)
    model.save_pretrained(str(folder / "scorer"), create_model_card=False)
    return folder / "scorer"


def save_sparse(folder, pooling="max", activation="relu", prompts=None, **settings):
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sparse_encoder.modules import MLMTransformer, SpladePooling

    encoder = MLMTransformer(str(tiny.save_tiny_masked_lm(folder / "encoder")))
    model = SparseEncoder(
        modules=[encoder, SpladePooling(pooling, activation)], device="cpu", prompts=prompts, **settings
    )
    model.save(str(folder / "sparse"), create_model_card=False)
    return folder / "sparse"


def save_multi(folder, normalise=True, **mask):
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    torch.manual_seed(5)
    takes = {"module_input_name": "token_embeddings"}
    dense = Dense(32, 12, bias=False, activation_function=torch.nn.Identity(), **takes)
    scaled = [Normalize(**takes)] if normalise else []
    modules = [Transformer(str(tiny.save_tiny(folder / "encoder"))), dense, *scaled, MultiVectorMask(**mask)]
    model = MultiVectorEncoder(modules=modules, device="cpu", prompts={"query": "red ", "document": ""})
    model.save(str(folder / "multi"), create_model_card=False)
    return folder / "multi"


def save_pylate(folder, *, with_tokens=True, **config):
    """A folder as PyLate writes it: the encoder, a Dense layer, and its settings beside the kind of model."""
    tokenizer = tiny.wordpiece_tokenizer()
    if with_tokens:
        tokenizer.add_tokens(["[Q] ", "[D] "])
    torch.manual_seed(3)
    model = tiny.tiny_model("bert")[0]
    model.resize_token_embeddings(len(tokenizer))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    tiny.publish(folder, tiny.dense_module(32, 12, "Identity", bias=False))
    listed = json.loads((folder / "modules.json").read_text())
    listed[1]["type"] = "pylate.models.Dense.Dense"
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 60, "do_lower_case": False}))
    own = {"query_prefix": "[Q] ", "document_prefix": "[D] ", "query_length": 16, "document_length": 20}
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"model_type": "ColBERT"} | own | config))
    return folder


def save_with_head(folder, model_class=BertForPreTraining, seed=2):
    """A tiny BERT with the heads of its pre-training, as BERT's own checkpoints have them."""
    model, tokenizer = tiny.tiny_model("bert", seed)
    torch.manual_seed(seed)
    whole = model_class(model.config).eval()
    whole.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def twelve_by_twelve(folder: Path) -> Path:
    """A seeded model with BERT base's blocks and heads, narrow so that only the drawing costs time."""
    torch.manual_seed(0)
    tokenizer = tiny.wordpiece_tokenizer()
    tokenizer.model_max_length = 512
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=48,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=96,
        max_position_embeddings=512,
        initializer_range=0.5,
    )
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
