"""A task that a tiny random BERT can learn in seconds, and nothing but training can teach it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from components.training.data import TrainingData

CONCEPTS = 40  # each has one word in queries and another in answers


def concept_pairs(rows: int = 400, seed: int = 3) -> TrainingData:
    """Pairs of a query of three words and an answer of three others, word by word a translation: no word is shared.

    Nothing but training can tell which answer belongs to a query.
    """
    random = np.random.default_rng(seed)
    chosen = {tuple(sorted(random.choice(CONCEPTS, 3, replace=False))) for _ in range(2 * rows)}
    triples = [random.permutation(triple) for triple in sorted(chosen)][:rows]
    return TrainingData(
        "pairs",
        "concepts",
        {
            "anchor": tuple(" ".join(f"ask{number}" for number in triple) for triple in triples),
            "positive": tuple(" ".join(f"say{number}" for number in reversed(triple)) for triple in triples),
        },
    )


def save_concept_model(folder: Path) -> Path:
    """Save a random BERT of two blocks that knows the words of `concept_pairs`, one token each."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces += [f"{role}{number}" for role in ("ask", "say") for number in range(CONCEPTS)]
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=32, **special).save_pretrained(folder)
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=32,
    )
    BertModel(config).save_pretrained(folder)
    return folder
