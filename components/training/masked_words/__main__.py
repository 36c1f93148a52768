"""Train the included model's masked-LM head: `python -m components.training.masked_words PACKAGES OUT`.

OUT gets `head.safetensors`, `card.json`, which says how it was made and what was measured, and `checkpoint.safetensors`.
Four hours on two cores are meant. How the packages are had: docs/guesses.md.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from tokenizers import Tokenizer

from components.errors import InputError, UserError
from components.folders import write_json
from components.model.catalog import EMBEDDED_KEY, EMBEDDED_SHA256, spec_of
from components.model.files.sources import find_files
from components.numbers import counted
from components.training.masked_words.adapter import read_encoder, save_head
from components.training.masked_words.batches import pieces_of
from components.training.masked_words.measure import count, holes, measure_all, whole_words
from components.training.masked_words.train import HeadTraining, Settings, look_at
from components.training.masked_words.units import CLASSROOM, Material, gather, tokenise

HEAD_FILE, CARD_FILE, CHECKPOINT_FILE = "head.safetensors", "card.json", "checkpoint.safetensors"
log = logging.getLogger(__name__)


class TrainingParser(argparse.ArgumentParser):
    """argparse with errors in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}.", "The help lists all arguments.", f"See {self.prog} --help")


def parser() -> TrainingParser:
    """The command's arguments."""
    found = TrainingParser(
        prog="python -m components.training.masked_words",
        description="Train the included model's masked-LM head on free texts from unpacked Debian packages.",
    )
    defaults = Settings()
    found.add_argument("packages", metavar="PACKAGES", type=Path, help="folder of packages unpacked with dpkg -x")
    found.add_argument("out", metavar="OUT", type=Path, help="folder for the head, its card and the checkpoint")
    found.add_argument(
        "--minutes", type=_positive, default=defaults.minutes, help="of training (default: %(default).0f)"
    )
    found.add_argument("--tokens", type=_count, help="to train on, instead of so many minutes")
    found.add_argument("--rank", type=_count, default=defaults.rank, help="of the change (default: %(default)s)")
    found.add_argument("--seed", type=int, default=defaults.seed, help="default: %(default)s")
    found.add_argument("--running-text", metavar="FILE", type=Path, help="sentences of another source to measure with")
    found.add_argument(
        "--classroom",
        metavar="FILE",
        type=Path,
        nargs="+",
        default=[CLASSROOM],
        help='JSON lists of {"sentence", "answers"} to measure with (default: the project\'s own)',
    )
    found.add_argument("--continue", dest="goes_on", action="store_true", help="go on from the checkpoint in OUT")
    return found


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no positive number")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is no positive number")
    return value


def train(options: argparse.Namespace) -> None:
    """Read the texts, train, measure and save. Raises UserError, and OSError where OUT cannot be written."""
    checkpoint = options.out / CHECKPOINT_FILE
    if checkpoint.exists() != options.goes_on:
        raise InputError(
            f"{checkpoint} {'already exists' if checkpoint.exists() else 'does not exist'}.",
            "A new run begins in a folder without a checkpoint; with --continue a run goes on from its own.",
            "Leave out --continue, add it, or choose another folder.",
        )
    options.out.mkdir(parents=True, exist_ok=True)
    folder = find_files(spec_of(EMBEDDED_KEY)).folder
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    vocabulary = tokenizer.get_vocab()
    names = sorted(vocabulary, key=lambda name: vocabulary[name])
    material = gather(options.packages, frozenset(names), options.running_text, options.classroom)
    sets = {name: holes(sentences, tokenizer) for name, sentences in material.measured.items()}
    units = tokenise(material.parts, tokenizer)
    _say_texts(material)
    settings = Settings(options.rank, options.seed, options.minutes, options.tokens)
    run = HeadTraining(read_encoder(folder), units, pieces_of(names, units.counts(len(names))), settings)
    if options.goes_on:
        run.go_on(checkpoint)
    may_be_guessed = whole_words(names)

    def look() -> None:
        look_at(run, sets, may_be_guessed)
        run.write_checkpoint(checkpoint)

    run.train(look)
    run.write_checkpoint(checkpoint)
    save_head(options.out / HEAD_FILE, run.model)
    asked = [hole for some in sets.values() for hole in some]
    counts = count(units, len(names), vocabulary["[SEP]"], asked)
    measured = measure_all(run.model, counts, sets, may_be_guessed)
    checksum = hashlib.sha256((options.out / HEAD_FILE).read_bytes()).hexdigest()
    write_json(options.out / CARD_FILE, {"head_sha256": checksum, **card(run, material, measured)})
    log.info("Done: %s", options.out / CARD_FILE)


def card(run: HeadTraining, material: Material, measured: dict[str, Any]) -> dict[str, Any]:
    """How the head was made, and what was measured; shares from 0 to 1."""
    state = run.state
    return {
        "model_checksum": EMBEDDED_SHA256,
        "rank": state.rank,
        "seed": state.seed,
        "texts": state.texts,
        "steps": state.steps,
        "tokens": state.tokens,
        "minutes": round(state.seconds / 60, 1),
        "curve": state.curve,
        "sources": material.card(),
        "measured": measured,
    }


def _say_texts(material: Material) -> None:
    for part in material.parts:
        log.info(
            "%s: %s, %s; %s left out for eight words in a row that are measured with or stand in this project",
            part.source.name,
            counted(len(part.units), "unit"),
            counted(part.words, "word"),
            counted(part.left_out, "unit"),
        )


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit status: 2, with one line, for what cannot be used."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        train(parser().parse_args(arguments))
    except (UserError, OSError) as problem:
        log.error("%s", problem)
        return 2
    except KeyboardInterrupt:
        log.error("Stopped. The run goes on from its last checkpoint with --continue.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
