"""The index: a folder with the vectors of a corpus by layer and pooling, its texts, and a manifest.

    manifest.json            model, revision, options, versions, corpus, sizes and checksums of all files and of itself
    layer-06-mean.npy        vectors [sentence, dim], float32 or float16, mapped into memory when opened
    layer-06-mean.norms.npy  their lengths, float32 [sentence]: cosine and dot product from one set of vectors
    texts.utf8, texts.offsets.npy, column-0.utf8, ...   the sentences and the other columns of the corpus

Vectors are stored without normalisation. float16 changes a cosine by less than 0.001 and halves the disk space; float32
is searched two to three times faster. "auto" means float32 up to 2 GB in total, and always for [CLS] vectors that were
embedded in float32: those of low layers differ by less than float16 can hold.

A folder may come from anybody. It is opened only if every file lies in it (a link that leads elsewhere could show any file of
this machine), holds what its size says, has the size given in its manifest, and its content as far as that is checked quickly
(see components.retrieval.index.checksums): a damaged, unfinished or other folder is refused with the reason. Indexes of
earlier versions have no checksums, or none of the manifest: of the first only the sizes, the shapes and the order of the
offsets are checked. Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from components.arrays import mapped_array
from components.errors import InputError
from components.folders import lies_in, write_json
from components.model.embedding.options import EmbedOptions
from components.model.trace import EVERY_POOLING, Pooling
from components.retrieval.corpora.texts import StoredTexts, open_texts, text_files
from components.retrieval.index.checksums import Checksum, checksum_of, checksum_of_json, first_damaged, is_hollow
from components.retrieval.search.exact import ExactSearch

FORMAT = 2
KIND = "BERT Internals index"
MANIFEST = "manifest.json"
OWN_CHECKSUM = "manifest_checksum"  # the key of the manifest's own checksum in it
DType = Literal["float32", "float16"]
MOST_MANIFEST_BYTES = 6 << 20  # 10,000 columns take 5 MB; each file takes 250 bytes
FLOAT32_BYTES = 2 << 30  # "auto" stores float32 up to here


@dataclass(frozen=True)
class IndexInfo:
    """The manifest."""

    model: str
    revision: str
    options: EmbedOptions
    dtype: DType
    dim: int
    sentences: int
    tokens: int  # after truncation
    truncated: int
    corpus: str  # its name
    corpus_hash: str
    columns: tuple[str, ...] = ()
    columns_hash: str = ""  # of their names and contents
    versions: Mapping[str, str] = field(default_factory=dict)
    # The device's name and the tokens of a batch, which only change rounding; empty where batches have a fixed size.
    computed_on: Mapping[str, str | int] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """16 hexadecimal digits that name the content of an index, equal for equal content, columns included."""
        content = f"{self.corpus_hash} {self.columns_hash}".strip()
        text = json.dumps(
            [FORMAT, self.model, self.revision, asdict(self.options), content, self.dtype], sort_keys=True
        )
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class VectorIndex:
    """An open index. Arrays and texts are mapped into memory and shared by all its users."""

    folder: Path
    info: IndexInfo
    texts: StoredTexts
    columns: Mapping[str, StoredTexts]
    engines: Mapping[tuple[int, Pooling], ExactSearch]

    @property
    def nbytes(self) -> int:
        total = 0
        for path in self.folder.iterdir():
            with suppress(FileNotFoundError):  # a graph that is being built beside the vectors has just got its name
                total += path.stat().st_size
        return total

    def engine(self, layer: int, pooling: Pooling) -> ExactSearch:
        """The search over the vectors of a layer and pooling. Raises InputError for one that is not stored."""
        engine = self.engines.get((layer, pooling))
        if engine is None:
            raise InputError(
                f"Layer {layer} with {pooling} pooling is not in this index.",
                f"It has the layers {', '.join(map(str, self.info.options.layers))} with "
                f"{', '.join(self.info.options.poolings)} pooling.",
                "Choose one of these, or build the index again with more layers or poolings.",
            )
        return engine


def vector_file(layer: int, pooling: Pooling) -> str:
    return f"layer-{layer:02d}-{pooling}.npy"


def norm_file(layer: int, pooling: Pooling) -> str:
    return f"layer-{layer:02d}-{pooling}.norms.npy"


def resolve_dtype(dtype: str, sentences: int, dim: int, options: EmbedOptions) -> DType:
    """The number format, with "auto" resolved to float32 up to 2 GB or with [CLS] in float32, else float16.

    Raises InputError for other names.
    """
    if dtype not in ("float32", "float16", "auto"):
        raise InputError(
            f"The number format {dtype!r} is not available.",
            "The formats are float32, float16 and auto.",
            "Choose one.",
        )
    size = 4 * sentences * dim * len(options.layers) * len(options.poolings)
    is_delicate = "cls" in options.poolings and options.precision == "float32"
    is_large = size > FLOAT32_BYTES and not is_delicate
    return "float16" if dtype == "float16" or (dtype == "auto" and is_large) else "float32"


def write_manifest(folder: Path, info: IndexInfo, leave_out: Sequence[str] = ()) -> None:
    """Write the last file of an index: it lists the others with their sizes and checksums."""
    unlisted = {MANIFEST, *leave_out}
    paths = [path for path in sorted(folder.iterdir()) if path.name not in unlisted]
    content = {
        "kind": KIND,
        "format": FORMAT,
        **asdict(info),
        "files": {path.name: path.stat().st_size for path in paths},
        "checksums": {path.name: asdict(checksum_of(path)) for path in paths},
    }
    write_json(folder / MANIFEST, {**content, OWN_CHECKSUM: checksum_of_json(content)})


def read_manifest(folder: Path) -> IndexInfo:
    """The manifest, after a check of the files' sizes. Raises InputError with the reason for a folder that is not an index."""
    return _read_manifest(folder)[0]


def _read_manifest(folder: Path) -> tuple[IndexInfo, dict[str, int], dict[str, Checksum]]:
    """The manifest, and the size and checksum of each file by name; no checksums in indexes of earlier versions."""
    if not folder.is_dir():
        raise _refused(folder, "does not exist" if not folder.exists() else "is a file")
    path = folder / MANIFEST
    try:
        if not path.is_file():  # a pipe or a device may keep its reader waiting for ever
            raise FileNotFoundError(path)
        if not lies_in(folder, path):
            raise _refused(folder, f"is not an index: its {MANIFEST} is a link that leads out of it")
        with path.open("rb") as file:
            text = file.read(MOST_MANIFEST_BYTES + 1)
        if len(text) > MOST_MANIFEST_BYTES:
            raise ValueError(f"more than {MOST_MANIFEST_BYTES:,} bytes")
        content = json.loads(text.decode("utf-8"), parse_constant=_no_number)
        if not isinstance(content, dict) or content.get("kind") != KIND:
            raise _refused(folder, "is not an index: its manifest has other content")
        if content.get("format") != FORMAT:
            raise _refused(folder, f"has format {content.get('format')!r:.40}; this program reads format {FORMAT}")
        own_checksum = content.pop(OWN_CHECKSUM, None)
        if own_checksum is not None and own_checksum != checksum_of_json(content):
            raise ValueError("it has other content than when the index was written")
        info = _info(content)
        files = {name: int(size) for name, size in content["files"].items()}
        checksums = {
            name: Checksum(str(both["whole"]), None if both["sample"] is None else str(both["sample"]))
            for name, both in content.get("checksums", {}).items()
        }
        if checksums and checksums.keys() != files.keys():
            raise ValueError("the sizes and checksums are not of the same files")
    except FileNotFoundError as problem:
        raise _refused(folder, f"has no {MANIFEST}: it is not an index, or an unfinished one") from problem
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as problem:
        if isinstance(problem, InputError):
            raise
        raise _refused(folder, f"has a damaged {MANIFEST} ({str(problem)[:200]})") from problem
    for name, size in files.items():
        path = folder / name
        if Path(name).name != name or not os.path.isfile(path):  # unlike Path's, it raises nothing for a long name
            raise _refused(folder, f"has no file {Path(name).name[:80]}")
        if not lies_in(folder, path):
            raise _refused(folder, f"is not an index: its {name[:80]} is a link that leads out of it")
        if path.stat().st_size != size:
            raise _refused(folder, f"is damaged: {name} has {path.stat().st_size:,} bytes instead of {size:,}")
        if is_hollow(path):
            raise _refused(
                folder, f"is damaged: {name} has {size:,} bytes, nearly all of which are missing on the disk"
            )
    return info, files, checksums


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not a number")


def _info(content: Mapping[str, Any]) -> IndexInfo:
    options = content["options"]
    layers = tuple(int(layer) for layer in options["layers"])
    poolings = tuple(name for name in EVERY_POOLING if name in options["poolings"])
    if not layers or not poolings or content["dtype"] not in ("float32", "float16"):
        raise ValueError("layers, poolings or number format are not valid")
    return IndexInfo(
        model=str(content["model"]),
        revision=str(content["revision"]),
        options=EmbedOptions(
            layers, poolings, int(options["max_length"]), options["precision"], str(options["prompt"])
        ),
        dtype=content["dtype"],
        dim=int(content["dim"]),
        sentences=int(content["sentences"]),
        tokens=int(content["tokens"]),
        truncated=int(content["truncated"]),
        corpus=str(content["corpus"]),
        corpus_hash=str(content["corpus_hash"]),
        columns=tuple(map(str, content["columns"])),
        columns_hash=str(content["columns_hash"]),
        versions=dict(content["versions"]),
        computed_on=dict(content.get("computed_on", {})),
    )


def open_index(folder: Path) -> VectorIndex:
    """The index in a folder, mapped into memory. Raises InputError with the reason for one that cannot be used."""
    return _open(folder, is_quick=True)[0]


@dataclass(frozen=True)
class CheckedIndex:
    """What was compared: all bytes of the files, or only their sizes."""

    files: int
    nbytes: int
    has_checksums: bool


def check_index(folder: Path) -> CheckedIndex:
    """Compare every byte of an index with its checksums. Raises InputError with the reason for one that is damaged."""
    _, files, checksums = _open(folder, is_quick=False)
    return CheckedIndex(len(files), sum(files.values()), bool(checksums))


def text_files_of(info: IndexInfo) -> list[str]:
    """The names of the files of the texts and of the other columns."""
    stems = ("texts", *(f"column-{number}" for number in range(len(info.columns))))
    return [path.name for stem in stems for path in text_files(Path(stem))]


def files_of(info: IndexInfo) -> Iterator[str]:
    """The names of the files that are opened: all but the manifest, and the graphs beside them."""
    yield from text_files_of(info)
    for cell in product(info.options.layers, info.options.poolings):
        yield from (vector_file(*cell), norm_file(*cell))


def _open(folder: Path, is_quick: bool) -> tuple[VectorIndex, dict[str, int], dict[str, Checksum]]:
    """The index, and the size and checksum of each file."""
    info, files, checksums = _read_manifest(folder)
    for name in files_of(info):
        if name not in files:  # so that only files are opened whose kind and size were checked
            raise _refused(folder, f"has a damaged {MANIFEST} (it does not list {name[:80]})")
    try:
        damaged = first_damaged(folder, checksums, is_quick)
        if damaged is not None:
            raise ValueError(f"{damaged} has other content than when the index was written")
        texts = open_texts(folder / "texts")
        columns = {name: open_texts(folder / f"column-{number}") for number, name in enumerate(info.columns)}
        engines = {}
        for layer in info.options.layers:
            for pooling in info.options.poolings:
                vectors = mapped_array(folder / vector_file(layer, pooling))
                norms = mapped_array(folder / norm_file(layer, pooling))
                if vectors.shape != (info.sentences, info.dim) or str(vectors.dtype) != info.dtype:
                    raise ValueError(f"{vector_file(layer, pooling)} does not match the manifest")
                if norms.shape != (info.sentences,) or norms.dtype != np.float32:
                    raise ValueError(f"{norm_file(layer, pooling)} does not match the manifest")
                engines[layer, pooling] = ExactSearch(vectors, np.asarray(norms))
    except (OSError, ValueError) as problem:
        raise _refused(folder, f"is damaged: {problem}") from problem
    if any(len(column) != info.sentences for column in (texts, *columns.values())):
        raise _refused(folder, "is damaged: the numbers of texts and vectors differ")
    return VectorIndex(folder, info, texts, columns, engines), files, checksums


def _refused(folder: Path, reason: str) -> InputError:
    return InputError(
        f"{folder} {reason}.",
        "An index is a folder written by `python -m components index`.",
        "Choose another folder, or build the index again.",
    )
