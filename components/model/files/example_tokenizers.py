"""Two small tokenizers that come with the dashboard, to compare a model's tokenizer with when there is no network.

They are trained on this project's own texts by `python -m components.model.files.example_tokenizers` (`make tokenizers`), which
writes assets/tokenizers/. No model uses them: they only show other ways to split a text. A vocabulary of 4,000 pieces from
100 kB of text splits more words than one of 30,000 pieces from a large corpus.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from components.folders import ASSETS, write_text
from components.model.tokenization import Tokenization

FOLDER = ASSETS / "tokenizers"
MAX_LENGTH = 100_000  # tokens: longer than any text that the dashboard reads
SPECIAL = {
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "mask_token": "[MASK]",
}


@dataclass(frozen=True)
class ExampleTokenizer:
    title: str
    note: str
    vocabulary_size: int  # at most
    says_nothing_of: str  # what a reader may take its counts for


EXAMPLES = {
    "bytes": ExampleTokenizer(
        "Byte-level BPE",
        "Byte-level BPE joins frequent pairs of bytes, as in GPT-2 and RoBERTa, and keeps capitals. Every text can be written "
        "in bytes, so that nothing is unknown.",
        4_000,
        "its counts say nothing of GPT-2 or RoBERTa, which use this method with pieces of their own",
    ),
    "characters": ExampleTokenizer(
        "Characters",
        "Every character is a piece: a small vocabulary and long inputs.",
        400,
        "a character that these texts lack is unknown to it, while a model that reads characters would know it",
    ),
}


@cache
def load(key: str) -> Tokenization:
    """The tokenizer of an entry of EXAMPLES."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(FOLDER / f"{key}.json"), model_max_length=MAX_LENGTH, **SPECIAL
    )
    return Tokenization(tokenizer, max_positions=MAX_LENGTH, has_segments=False)


@cache
def limits(key: str) -> str:
    """What the tokenizer of an entry of EXAMPLES was trained on, and what its counts do not say: a sentence."""
    return (
        f"“{EXAMPLES[key].title}” belongs to no model: it learnt its {len(load(key).vocabulary):,} pieces from "
        f"{len(texts()):,} short texts, so {EXAMPLES[key].says_nothing_of}."
    )


def texts() -> list[str]:
    """This project's own texts: the demo corpus and the ready-made sets."""
    corpus = [json.loads(line) for line in (ASSETS / "demo_corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    sets = json.loads((ASSETS / "sets.json").read_text(encoding="utf-8"))
    return [text for row in corpus for text in (row["sentence"], row["compressed"])] + [
        text for row in sets for text in row["sentences"]
    ]


def train(folder: Path = FOLDER) -> None:
    """Train the tokenizers, and write each as <key>.json into the folder."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    special = list(SPECIAL.values())
    by_bytes = Tokenizer(models.BPE())
    by_bytes.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    by_bytes.decoder = decoders.ByteLevel()
    by_bytes.train_from_iterator(
        texts(),
        trainers.BpeTrainer(
            vocab_size=EXAMPLES["bytes"].vocabulary_size,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    by_character = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    by_character.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    by_character.decoder = decoders.Fuse()
    by_character.train_from_iterator(
        texts(),
        trainers.WordLevelTrainer(
            vocab_size=EXAMPLES["characters"].vocabulary_size, special_tokens=special, show_progress=False
        ),
    )
    folder.mkdir(parents=True, exist_ok=True)
    for key, tokenizer in (("bytes", by_bytes), ("characters", by_character)):
        ends = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
        frame = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=ends
        )
        # The space that a byte-level piece begins with is no part of the characters it stands for.
        tokenizer.post_processor = (
            processors.Sequence([processors.ByteLevel(trim_offsets=True), frame]) if key == "bytes" else frame
        )
        write_text(folder / f"{key}.json", tokenizer.to_str(pretty=False) + "\n")


if __name__ == "__main__":
    train()
    sys.stdout.write(f"Written: {', '.join(f'{key}.json' for key in EXAMPLES)} in {FOLDER}\n")
