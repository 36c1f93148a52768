"""What the tests of the masked-LM head share: a tiny dictionary in WordNet's format, tiny texts and a tiny encoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from components.training.masked_words.adapter import FrozenEncoder, MaskedWordModel, first_values, read_encoder
from components.training.masked_words.batches import Pieces, pieces_of
from components.training.masked_words.units import Units
from tests.support.tiny import save_tiny, wordpiece_tokenizer

# offset, kind, words, pointers, gloss: the rest of a line follows.
NOUNS = (
    ("00000001", ["animal", "beast"], [], "a living thing that moves on its own and eats"),
    ("00000002", ["cat"], [("@", "00000001", "n")], 'a small soft pet that hunts mice; "the cat slept all day"'),
    (
        "00000003",
        ["dog"],
        [("@", "00000001", "n"), ("#m", "00000007", "n")],
        "(old word) a pet that barks at strangers",
    ),
    ("00000004", ["paw"], [("#p", "00000002", "n")], "the soft foot of some animals that walk on four legs"),
    (
        "00000005",
        ["Bruno"],
        [("@i", "00000003", "n"), ("#p", "00000006", "n")],
        "a large dog that once won many a prize",
    ),
    ("00000006", ["Berne"], [], "a town by a river where people once kept bears"),
    ("00000007", ["pack"], [("#s", "00000008", "n")], "some dogs together"),
    ("00000008", ["ice_cream"], [], "a cold sweet"),
)
VERBS = (("00000001", ["bark", "yap"], [], "make the short loud sound of a dog"),)
ADJECTIVES = (("00000001", ["red(p)"], [], 'of the colour of blood; "a red hat on a peg" - a friend; "red"'),)


def write_wordnet(folder: Path) -> Path:
    """A dictionary of ten synsets, with irregular forms; lines of the licence come first, as in the real files."""
    folder.mkdir(parents=True)
    for name, kind, rows in (("noun", "n", NOUNS), ("verb", "v", VERBS), ("adj", "s", ADJECTIVES), ("adv", "r", ())):
        lines = ["  1 These lines of a licence begin with a space | and are no synset."]
        for offset, words, pointers, gloss in rows:
            named = " ".join(f"{word} 0" for word in words)
            pointing = "".join(f"{symbol} {other} {part} 0000 " for symbol, other, part in pointers)
            frames = "01 + 02 00 " if kind == "v" else ""
            lines.append(
                f"{offset} 03 {kind} {len(words):02x} {named} {len(pointers):03d} {pointing}{frames}| {gloss}  "
            )
        (folder / f"data.{name}").write_text("\n".join(lines) + "\n")
        index = sorted(word.partition("(")[0].lower() for _, words, _, _ in rows for word in words)
        (folder / f"index.{name}").write_text("".join(f"{word} {kind} 1 0 1 0 00000001\n" for word in index))
        (folder / f"{name}.exc").write_text("mice mouse\n" if name == "noun" else "")
    return folder


def tiny_units(count: int = 40, seed: int = 0) -> tuple[Units, Pieces, list[str]]:
    """Random units of the tiny tokenizer's pieces, what the masks must know of these, and their names."""
    names = sorted(wordpiece_tokenizer().get_vocab().items(), key=lambda item: item[1])
    pieces = [name for name, _ in names]
    rng = np.random.default_rng(seed)
    lengths = rng.integers(3, 12, count)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    numbers = rng.integers(5, len(pieces), starts[-1]).astype(np.int32)
    units = Units(numbers, starts, rng.choice([0.5, 1.0, 2.3], count).astype(np.float32))
    return units, pieces_of(pieces, units.counts(len(pieces)), common=4), pieces


def tiny_encoder(folder: Path) -> FrozenEncoder:
    """A tiny seeded BERT, read from where it was saved."""
    return read_encoder(save_tiny(folder))


def random_head(encoder: FrozenEncoder, rank: int = 3) -> MaskedWordModel:
    """A model all of whose trained tensors are random."""
    values = first_values(encoder, rank, torch.zeros(len(encoder.word_vectors)), seed=1)
    numbers = torch.Generator().manual_seed(2)
    return MaskedWordModel(
        encoder, {name: value + torch.randn(value.shape, generator=numbers) / 5 for name, value in values.items()}
    )
