"""Hostile indexes, graphs, Parquet and compressed files, by kind, each drawn from a seed; and what a command makes of them.

    python -m tests.support.hostile_indexes --count 1000 --seed 1 [--kinds parquet_nulls graph]

Each case is made in one forked process and read in another, by the real commands: `check` and `search` for an index, the
commands that read files for a file, as far as the model, which is not loaded; an unfinished index and a training run
(hostile_resumed.py) by what goes on with them. A line of JSON says of each case the exit status
or the signal, the seconds, the memory of its processes at most, and whether a byte of a file outside was shown or changed. A
process of its own is needed since a case may end it, and forking since a start takes seconds: nothing here may import torch or
start a thread before the forks.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import io
import json
import os
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import types
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from components.model.catalog import spec_of
from components.model.files.sentence_config import SentenceConfig
from components.model.trace import Token, TokenizedSentence
from components.retrieval.corpora.texts import write_texts
from components.retrieval.index.checksums import checksum_of, checksum_of_json, sample_of
from components.retrieval.index.folder import (
    MANIFEST,
    OWN_CHECKSUM,
    EmbedOptions,
    IndexInfo,
    norm_file,
    vector_file,
    write_manifest,
)
from tests.support.hostile_resumed import RUN_KINDS, UNFINISHED_KINDS, go_on, read_run

MEMORY = 2 << 30  # that a case may take
SECONDS = 30.0  # of a processor, that a case may take: those on the clock depend on what else the machine does
MOST_BUSY_SECONDS = 120  # of a processor, after which the system ends a case
KILL_SECONDS = 1_800.0  # of the clock, for one that hangs
DIM, SENTENCES = 8, 40
MARKER = "the words of a file outside"
COMMANDS = ("index", "sts", "evaluate", "plan", "train", "reproduce", "rerank")


@dataclass(frozen=True)
class Outcome:
    """What became of a case."""

    kind: str
    seed: int
    status: int  # of the exit; -N for signal N
    seconds: float  # of a processor
    memory: int  # bytes at most, of the largest of its processes
    shown: bool  # a byte of a file outside
    changed: bool  # a file outside
    said: str

    @property
    def fault(self) -> str:
        """What is wrong with it; empty if nothing is."""
        lines = [line for line in self.said.splitlines() if line.strip()]
        if self.status not in (0, 2):
            return f"status {self.status}"
        if self.status == 2 and (len(lines) < 1 or "too little memory" in self.said):
            return "refused only for the memory that was left, or without a word"
        if self.shown or self.changed:
            return "a file outside was shown or changed"
        if self.memory > MEMORY:
            return f"{self.memory >> 20} MiB"
        return f"{self.seconds:.0f} s" if self.seconds > SECONDS else ""


# --- Indexes


def base_index(folder: Path) -> None:
    """A small valid index, with a graph of another machine."""
    from components.retrieval.engines import graph
    from components.retrieval.engines.contract import StoredVectors
    from components.retrieval.index.folder import open_index

    folder.mkdir(parents=True)
    rng = np.random.default_rng(3)
    layers = (0, 1)
    for layer in layers:
        vectors = rng.normal(size=(SENTENCES, DIM)).astype(np.float32)
        np.save(folder / vector_file(layer, "mean"), vectors)
        np.save(folder / norm_file(layer, "mean"), np.linalg.norm(vectors, axis=1).astype(np.float32))
    write_texts(folder / "texts", [f"sentence {number} of the index" for number in range(SENTENCES)])
    write_texts(folder / "column-0", [str(number) for number in range(SENTENCES)])
    write_manifest(
        folder,
        IndexInfo(
            "embedded", "r", EmbedOptions(layers, ("mean",), 16, "float32"), "float32", DIM, SENTENCES, 99, 0, "c", "ab" * 32,
            ("number",), "cd" * 32, {"torch": "2"},
        ),
    )  # fmt: skip
    graph.build_file(StoredVectors.of_index(open_index(folder), 1, "mean"))


def rewrite_manifest(folder: Path, change: Callable[[dict[str, Any]], None] = lambda content: None) -> None:
    """Make the manifest fit the files as they are now, then change it, and make its own checksum fit."""
    content = json.loads((folder / MANIFEST).read_text())
    content.pop(OWN_CHECKSUM, None)
    for name in content["files"]:
        path = folder / name
        if path.is_file():
            content["files"][name] = path.stat().st_size
            if path.stat().st_size < 64 << 20:
                content["checksums"][name] = asdict(checksum_of(path))
            else:  # nobody waits for the checksum of all of it
                content["checksums"][name] = {"whole": "0" * 64, "sample": sample_of(path)}
    change(content)
    (folder / MANIFEST).write_text(json.dumps({**content, OWN_CHECKSUM: checksum_of_json(content)}))


def without_checksums(content: dict[str, Any]) -> None:
    """As in indexes of earlier versions."""
    content.pop("checksums", None)


def mutate(draw: Random, content: bytes, most: int = 8, start: int = 0) -> bytes:
    result = bytearray(content)
    for _ in range(draw.randint(1, most)):
        place = draw.randrange(start, max(start + 1, len(result)))
        kind = draw.choice(["byte", "number", "cut", "insert", "zeros"])
        if kind == "byte":
            result[place : place + 1] = bytes([draw.randrange(256)])
        elif kind == "number":
            result[place : place + 8] = struct.pack("<q", draw.choice(LARGE))
        elif kind == "cut":
            del result[place : place + draw.choice([1, 7, 64, 10_000])]
        elif kind == "insert":
            result[place:place] = draw.randbytes(draw.choice([1, 8, 300]))
        else:
            result[place : place + 16] = bytes(16)
    return bytes(result)


LARGE = [-1, 0, 1, 127, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, -(1 << 63)]
VECTORS, NORMS = vector_file(1, "mean"), norm_file(1, "mean")
FILES = (VECTORS, NORMS, "texts.utf8", "texts.offsets.npy", "column-0.offsets.npy", "column-0.utf8")


def index_bytes(draw: Random, folder: Path) -> None:
    path = folder / draw.choice(FILES)
    path.write_bytes(mutate(draw, path.read_bytes()))
    if draw.random() < 0.8:
        rewrite_manifest(folder, draw.choice([without_checksums, lambda content: None]))


def index_manifest_bytes(draw: Random, folder: Path) -> None:
    (folder / MANIFEST).write_bytes(mutate(draw, (folder / MANIFEST).read_bytes()))


def index_counts(draw: Random, folder: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        for _ in range(draw.randint(1, 3)):
            value = draw.choice([*LARGE, 1e308, 0.5, "7", None, [], {}, True, 10**40, "x" * 100_000])
            name = draw.choice(
                ["sentences", "dim", "tokens", "truncated", "dtype", "columns", "options", "files", "format"]
            )
            if name == "options":
                option = draw.choice(["layers", "poolings", "max_length", "precision", "prompt"])
                content["options"][option] = draw.choice([value, [value], [1] * 50_000, ["mean"] * 3])
            elif name == "files":
                content["files"][draw.choice(FILES)] = value
            elif name == "columns":
                content["columns"] = draw.choice([value, [str(value)[:20]] * draw.choice([0, 2, 100_000])])
            else:
                content[name] = value

    rewrite_manifest(folder, change)


def index_headers(draw: Random, folder: Path) -> None:
    """Arrays that say to have another shape or type than they have."""
    path = folder / draw.choice([name for name in FILES if name.endswith(".npy")])
    shape = draw.choice(
        [
            (1 << 40,),
            (1 << 62, 4),
            (SENTENCES, 1 << 30),
            (-1,),
            (0, 1 << 50),
            (SENTENCES,) * 30,
            (),
            (True,),
            ("x",),
            (2.5,),
        ]
    )
    kind = draw.choice(["<f4", "|O", "<i8", "<U1000000", "<f2", "V100000", "<M8[s]", "[('a', '<f4')]", "x" * 3_000])
    text = draw.choice(
        [
            f"{{'descr': {kind!r}, 'fortran_order': {draw.choice([True, False, 3])}, 'shape': {shape!r}, }}",
            "(" * draw.choice([50, 500, 9_000]),
            "{'descr': '<f4', 'shape': (1,), 'fortran_order': False" + ", 'a': 1" * draw.choice([1, 1_000]) + "}",
            "[" + "9" * draw.choice([10, 9_000]) + "]",
            " " * draw.choice([1, 100_000, 20 << 20]),
        ]
    ).encode()
    version = draw.choice([1, 2, 3, 0, 9])
    said = draw.choice([len(text), len(text), (1 << 32) - 1, 1 << 31, 0])
    length = struct.pack("<H", said & 0xFFFF) if version == 1 else struct.pack("<I", said)
    path.write_bytes(b"\x93NUMPY" + bytes([version, 0]) + length + text + draw.randbytes(draw.choice([0, 160, 1_280])))
    rewrite_manifest(folder, draw.choice([without_checksums, lambda content: None]))


def index_pickle(draw: Random, folder: Path) -> None:
    path = folder / draw.choice([name for name in FILES if name.endswith(".npy")])
    np.save(path, np.array([_Pickled()] * draw.choice([1, SENTENCES]), dtype=object), allow_pickle=True)
    rewrite_manifest(folder)


class _Pickled:
    """Whoever unpickles this changes a file outside."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (f"echo unpickled >> {OUTSIDE}",)


OUTSIDE = Path("outside")  # the run's file outside, by its whole path


def index_cut(draw: Random, folder: Path) -> None:
    """Files that are shorter than they say: what is mapped behind their end would end the process."""
    path = folder / draw.choice(FILES)
    os.truncate(path, draw.randrange(path.stat().st_size + 1))
    if draw.random() < 0.7:
        rewrite_manifest(folder, without_checksums)


def index_links(draw: Random, folder: Path) -> None:
    """Links to a file outside, whose size the manifest knows."""
    name = draw.choice([*FILES, MANIFEST])
    path = folder / name
    path.unlink()
    path.symlink_to(draw.choice([OUTSIDE, Path(os.path.relpath(OUTSIDE, folder.resolve()))]))
    if name == MANIFEST:
        return
    if name.endswith(".utf8"):  # offsets that cut the file outside into texts
        size = OUTSIDE.stat().st_size
        offsets = np.linspace(0, size, SENTENCES + 1).astype(np.int64)
        np.save(folder / name.replace(".utf8", ".offsets.npy"), offsets)
    rewrite_manifest(folder, draw.choice([without_checksums, lambda content: None]))


def index_folder_links(draw: Random, folder: Path) -> None:
    """A folder inside that leads elsewhere, and names that lead out of the folder."""
    name = draw.choice(
        ["../outside", str(OUTSIDE), "inner/outside", ".", "..", "", "a\0b", "a" * 5_000, "//x", "texts.utf8/"]
    )
    (folder / "inner").symlink_to(OUTSIDE.parent)

    def change(content: dict[str, Any]) -> None:
        content["files"][name] = draw.choice([OUTSIDE.stat().st_size, 0, 4096])
        if draw.random() < 0.5:
            without_checksums(content)
        else:
            content["checksums"][name] = {"whole": hashlib.sha256(OUTSIDE.read_bytes()).hexdigest(), "sample": None}

    rewrite_manifest(folder, change)


def index_holes(draw: Random, folder: Path) -> None:
    """Files of up to terabytes that take some kilobytes."""
    count = draw.choice([1 << 24, 1 << 28, 1 << 33, 1 << 37])

    def grown(name: str, kind: str, shape: tuple[int, ...]) -> None:
        with (folder / name).open("wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
            if kind == "<f4":
                file.write(np.ones(16, "<f4").tobytes())
            end = file.tell() if kind == "<f4" else file.tell() + 0
        start = end - (64 if kind == "<f4" else 0)
        size = start + int(np.prod([float(part) for part in shape])) * np.dtype(kind).itemsize
        os.truncate(folder / name, size)

    for layer in (0, 1):
        grown(vector_file(layer, "mean"), "<f4", (count, DIM))
        grown(norm_file(layer, "mean"), "<f4", (count,))
    for stem in ("texts", "column-0"):
        grown(f"{stem}.offsets.npy", "<i8", (count + 1,))
        (folder / f"{stem}.utf8").write_bytes(b"")

    def change(content: dict[str, Any]) -> None:
        content["sentences"] = count
        if draw.random() < 0.5:
            without_checksums(content)
        elif draw.random() < 0.5:
            for both in content["checksums"].values():
                both["sample"] = None  # so that all of it would be read

    rewrite_manifest(folder, change)


def index_offsets(draw: Random, folder: Path) -> None:
    stem = draw.choice(["texts", "column-0"])
    path = folder / f"{stem}.offsets.npy"
    offsets = np.load(path)
    for _ in range(draw.randint(1, 6)):
        value = draw.choice([*LARGE, int(offsets[-1])])
        offsets[draw.randrange(len(offsets))] = np.int64(min(max(value, -(1 << 63)), (1 << 63) - 1))
    if draw.random() < 0.5:
        offsets[0], offsets[-1] = 0, (folder / f"{stem}.utf8").stat().st_size
    np.save(
        path, draw.choice([offsets, offsets.astype(np.int32), offsets.astype(np.float64), offsets[:0], offsets[None]])
    )
    rewrite_manifest(folder)


def index_numbers(draw: Random, folder: Path) -> None:
    for name in (VECTORS, NORMS):
        array = np.load(folder / name)
        flat = array.reshape(-1)
        for _ in range(draw.choice([0, 1, 5, 500])):
            flat[draw.randrange(len(flat))] = draw.choice([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, -0.0, 0.0])
        np.save(folder / name, array.astype(draw.choice(["<f4", "<f4", "<f2", ">f4", "<f8"])))
    rewrite_manifest(folder)


def index_special(draw: Random, folder: Path) -> None:
    """Pipes, folders and devices in the place of files."""
    path = folder / draw.choice([*FILES, MANIFEST])
    path.unlink()
    kind = draw.choice(["pipe", "folder", "zero", "loop", "proc"])
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to({"zero": "/dev/zero", "loop": path.name, "proc": "/proc/self/environ"}[kind])


def index_many(draw: Random, folder: Path) -> None:
    """Thousands of names, and values inside values."""

    def change(content: dict[str, Any]) -> None:
        kind = draw.choice(["files", "columns", "versions", "layers"])
        if kind == "files":
            content["files"] |= {f"f{number}": 0 for number in range(50_000)}
        elif kind == "columns":
            content["columns"] = [f"c{number}" for number in range(30_000)]
        elif kind == "versions":
            content["versions"] = {"x": "y" * (4 << 20)}
        else:
            content["options"]["layers"] = list(range(200_000))

    if draw.random() < 0.3:
        depth = draw.choice([900, 100_000])
        text = (folder / MANIFEST).read_text()
        (folder / MANIFEST).write_text(text.replace('"tokens": 99', f'"tokens": {"[" * depth}{"]" * depth}'))
    else:
        rewrite_manifest(folder, change)


def graph_paths(folder: Path) -> tuple[Path, Path]:
    (path,) = folder.glob("*.usearch")
    return path, path.with_name(f"{path.name}.json")


def graph_described(draw: Random, folder: Path, content: bytes) -> None:
    """Put a graph in place with a description that fits in all but, perhaps, its MAC."""
    path, description = graph_paths(folder)
    path.write_bytes(content)
    described = json.loads(description.read_text())
    described |= {"size": len(content), "checksum": hashlib.sha256(content).hexdigest()}
    described["mac"] = draw.choice([described["mac"], draw.randbytes(32).hex(), "", None, 5, [], "é"])
    if draw.random() < 0.2:
        del described[draw.choice(sorted(described))]
    description.write_text(json.dumps(described))


def graph_bytes(draw: Random, folder: Path) -> None:
    path, _ = graph_paths(folder)
    graph_described(draw, folder, mutate(draw, path.read_bytes(), most=40))


def graph_header(draw: Random, folder: Path) -> None:
    path, _ = graph_paths(folder)
    content = bytearray(path.read_bytes())
    for _ in range(draw.randint(1, 6)):
        place = draw.randrange(0, 128)
        content[place : place + 8] = struct.pack("<q", draw.choice(LARGE))
    graph_described(draw, folder, bytes(content))


def graph_links(draw: Random, folder: Path) -> None:
    """Neighbours that do not exist."""
    path, _ = graph_paths(folder)
    content = bytearray(path.read_bytes())
    start = draw.randrange(len(content))
    content[start:] = draw.choice([b"\xff", b"\x7f", b"\x00", b"\x11"]) * (len(content) - start)
    graph_described(draw, folder, bytes(content))


def graph_other(draw: Random, folder: Path) -> None:
    """No graph at all, and descriptions that are none."""
    path, description = graph_paths(folder)
    content = draw.choice([b"", b"usearch", draw.randbytes(5_000), bytes(1 << 20), path.read_bytes()[:70]])
    graph_described(draw, folder, content)
    if draw.random() < 0.5:
        description.write_bytes(
            draw.choice(
                [b"", b"[" * 50_000, b"null", b"\xff", b" " * (8 << 20), mutate(draw, description.read_bytes())]
            )
        )


def graph_beside(draw: Random, folder: Path) -> None:
    """Links and pipes where a graph, its lock or its parts are written."""
    path, description = graph_paths(folder)
    place = draw.choice([path, description, Path(f"{path}.lock"), Path(f"{path}.00000000.new")])
    place.unlink(missing_ok=True)
    kind = draw.choice(["link", "link", "pipe", "folder"])
    if kind == "link":
        place.symlink_to(OUTSIDE)
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.mkdir()


# --- Parquet


def parquet_table(draw: Random) -> Any:
    import pyarrow as pa

    rows = draw.choice([1, 50, 3_000])
    return pa.table(
        {
            "sentence1": [f"sentence {row} is about ships" for row in range(rows)],
            "sentence2": pa.array([draw.choice(["a", "b"]) for _ in range(rows)]).dictionary_encode(),
            "score": [float(row % 5) for row in range(rows)],
            "list": [[row, None] for row in range(rows)],
        }
    )


def write_parquet(draw: Random, path: Path, table: Any) -> None:
    import pyarrow.parquet as pq

    pq.write_table(
        table,
        path,
        compression=draw.choice(["none", "gzip", "zstd", "snappy", "brotli", "lz4"]),
        use_dictionary=draw.random() < 0.5,
        row_group_size=draw.choice([1_000, 1 << 20, 1 << 26]),
        data_page_version=draw.choice(["1.0", "2.0"]),
    )


def parquet_bytes(draw: Random, path: Path) -> None:
    write_parquet(draw, path, parquet_table(draw))
    path.write_bytes(mutate(draw, path.read_bytes()))


def parquet_footer(draw: Random, path: Path) -> None:
    """What the footer says: counts, sizes, places, types."""
    write_parquet(draw, path, parquet_table(draw))
    content = bytearray(path.read_bytes())
    length = struct.unpack("<I", content[-8:-4])[0]
    if draw.random() < 0.2:
        content[-8:-4] = struct.pack("<I", draw.choice([0, 1, (1 << 32) - 1, 1 << 31, len(content), length - 1]))
    for _ in range(draw.randint(1, 6)):
        place = len(content) - 8 - draw.randrange(1, length + 1)
        # Thrift writes numbers in parts of seven bits.
        content[place : place + draw.choice([1, 5, 9])] = draw.choice(
            [b"\xff" * 8 + b"\x01", b"\xff\xff\xff\xff\x0f", b"\x00", b"\x80", draw.randbytes(1)]
        )
    path.write_bytes(content)


def parquet_nulls(draw: Random, path: Path) -> None:
    """Rows that take nothing in the file."""
    import pyarrow as pa

    rows = draw.choice([1_000, 2_999_999, 3_000_001, 30_000_000])
    kind = draw.choice([pa.null(), pa.null(), pa.string(), pa.list_(pa.int64()), pa.bool_()])
    write_parquet(draw, path, pa.table({name: pa.nulls(rows, kind) for name in ("sentence1", "b")}))


def parquet_repeated(draw: Random, path: Path) -> None:
    """A long value, stored once for many rows."""
    import pyarrow as pa

    value = "ship " * draw.choice([1, 200, 20_000, 2_000_000, 20_000_000])
    rows = draw.choice([10, 3_000, 200_000, 5_000_000])
    indices = pa.array(np.zeros(rows, np.int32))
    column = pa.DictionaryArray.from_arrays(indices, pa.array([value]))
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table({"sentence1": column, "score": column}),
        path,
        compression=draw.choice(["zstd", "gzip"]),
        dictionary_pagesize_limit=1 << 30,  # else a long value would be written for each row
        write_statistics=len(value) < 1 << 20,  # a long value would be compared for every thousand rows, for minutes
    )


def parquet_cell(draw: Random, path: Path) -> None:
    """Cells that are long only once they are unpacked."""
    import pyarrow as pa

    length = draw.choice([1 << 16, 5 << 20, 100 << 20, 300 << 20])
    kind = draw.choice([pa.string(), pa.binary(), pa.large_string()])
    table = pa.table(
        {"sentence1": pa.array([("x " * (length // 2)).encode()] * draw.choice([1, 2]), pa.binary()).cast(kind)}
    )
    write_parquet(draw, path, table)


def parquet_nested(draw: Random, path: Path) -> None:
    """Lists in lists, records in records, and lists of millions of nothing."""
    import pyarrow as pa

    kind = draw.choice(["deep", "record", "long", "fixed", "wide", "map"])
    if kind == "deep":
        value: Any = 1
        for _ in range(draw.choice([5, 40, 90])):
            value = [value]
        array = pa.array([value] * 3)
    elif kind == "record":
        value = "x"
        for _ in range(draw.choice([5, 40, 90])):
            value = {"a": value, "b": None}
        array = pa.array([value] * 3)
    elif kind == "long":
        array = pa.ListArray.from_arrays([0, draw.choice([1_000, 300_000, 50_000_000])], pa.nulls(50_000_000))
    elif kind == "fixed":
        size = draw.choice([10, 100_000, 5_000_000])
        array = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(2 * size, np.int8)), size)
    elif kind == "wide":
        array = pa.StructArray.from_arrays([pa.array(["x"])] * 3_000, [f"f{number}" for number in range(3_000)])
    else:
        array = pa.array(
            [[("k", row)] * draw.choice([1, 1_000]) for row in range(200)], pa.map_(pa.string(), pa.int64())
        )
    write_parquet(draw, path, pa.table({"sentence1": array}))


def parquet_columns(draw: Random, path: Path) -> None:
    import pyarrow as pa

    count = draw.choice([300, 5_000, 20_000])
    write_parquet(draw, path, pa.table({f"c{number}": ["x"] for number in range(count)}))


def parquet_schema(draw: Random, path: Path) -> None:
    """What Arrow keeps beside the footer: a schema of its own, names, and types that need care."""
    import pyarrow as pa

    table = parquet_table(draw)
    kind = draw.choice(["large", "names", "types", "junk"])
    if kind == "large":
        table = table.replace_schema_metadata({"x": "y" * (40 << 20)})
    elif kind == "names":
        table = table.rename_columns(["=1+1", "\u202e", "a" * 100_000, "a\0b"])
    elif kind == "types":
        table = pa.table(
            {
                "sentence1": pa.array([1 << 62, -(1 << 62)], pa.timestamp("us")),
                "b": draw.choice([pa.array([10**15, 1], pa.time64("us")), pa.array([1 << 40, 2], pa.duration("s"))]),
                "c": pa.array([b"\xff\xfe", b"ok"], pa.binary()),
            }
        )
    write_parquet(draw, path, table)
    if kind == "junk":
        content = path.read_bytes()
        place = content.find(b"ARROW:schema")
        path.write_bytes(content[: place + 20] + draw.randbytes(200) + content[place + 220 :] if place > 0 else content)


# --- Compressed files and folders


def gzip_members(block: bytes, times: int) -> bytes:
    """A block that repeats, packed once: gzip files behind each other are one file."""
    return gzip.compress(block, 9, mtime=0) * times


def gz_bomb(draw: Random, path: Path) -> None:
    block = draw.choice([b"x", b"\n", b"a b\n", b"[],", b"{}\n", b'"a",', b"\0", b'["a","b"]\n', b"a,b\n"])
    start = draw.choice([b"", b"[", b"sentence1,sentence2,score\n", b'{"a":', b'"'])
    piece = block * ((16 << 20) // len(block))
    path.write_bytes(gzip.compress(start, mtime=0) + gzip_members(piece, draw.choice([1, 8, 60, 600])))


def gz_damaged(draw: Random, path: Path) -> None:
    content = gzip.compress(b"sentence1,sentence2,score\na b,c d,1\n" * draw.choice([1, 1_000]), mtime=0)
    kind = draw.choice(["bytes", "header", "twice", "crc", "tail"])
    if kind == "bytes":
        content = mutate(draw, content)
    elif kind == "header":
        content = content[:3] + bytes([draw.randrange(256)]) + content[4:10] + b"n" * (10 << 20) + content[10:]
    elif kind == "twice":
        for _ in range(draw.choice([1, 5, 40])):
            content = gzip.compress(content, mtime=0)
    elif kind == "crc":
        content = content[:-8] + struct.pack("<II", zlib.crc32(b""), draw.choice([0, 1 << 31]))
    else:
        content += draw.randbytes(draw.choice([1, 1_000]))
    path.write_bytes(content)


def gz_rows(draw: Random, path: Path) -> None:
    """Rows and values that take far more memory than bytes."""
    row = draw.choice(
        [b"a\n", b"[]\n", b'{"a":[]}\n', b"[[],[],[],[]]\n", b'{"sentence1":"a","b":{}}\n', b",,,,,,,,\n", b"1e999\n",
         b'{"a":' * 900 + b"1" + b"}" * 900 + b"\n", b"[" * 5_000 + b"\n", b"9" * 4_000 + b"\n", b'"\\ud800"\n', b'"a\n',
         b"\xff\n"]
    )  # fmt: skip
    start = draw.choice([b"", b"[", b"\xff\xfe", b"\xef\xbb\xbf"])
    path.write_bytes(gzip.compress(start + row * (draw.choice([10, 5_000_000, 40_000_000]) // len(row)), 1, mtime=0))


def gz_parquet(draw: Random, path: Path) -> None:
    inner = path.with_name("inner.parquet")
    draw.choice([parquet_nulls, parquet_repeated, parquet_footer])(draw, inner)
    path.write_bytes(gzip.compress(inner.read_bytes(), 1, mtime=0) + gzip_members(bytes(1 << 24), draw.choice([0, 60])))
    inner.unlink()


def other_archives(draw: Random, path: Path) -> None:
    """Other archives than gzip's, which are named and not unpacked."""
    import bz2
    import lzma
    import zipfile

    content = bytes(50 << 20)
    kind = draw.choice(["zip", "bz2", "xz", "lzma", "zstd"])
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("../a.txt", content)
    else:
        packed = {
            "bz2": lambda: bz2.compress(content),
            "xz": lambda: lzma.compress(content, preset=0),
            "lzma": lambda: lzma.compress(content, lzma.FORMAT_ALONE, preset=0),
            "zstd": lambda: b"\x28\xb5\x2f\xfd" + draw.randbytes(1_000),
        }
        path.write_bytes(packed[kind]())


def corpus_folder(draw: Random, path: Path) -> None:
    """A folder of texts with links that lead out of it."""
    path.mkdir()
    (path / "a.txt").write_text("a sentence\n")
    (path / draw.choice(["b.txt", "c.csv", "d.jsonl"])).symlink_to(OUTSIDE)
    (path / "inner").symlink_to(OUTSIDE.parent)
    (path / "e.txt").symlink_to(draw.choice(["e.txt", "/dev/zero", "a.txt", "/proc/self/environ"]))
    if draw.random() < 0.5:
        os.mkfifo(path / "f.txt")


def judged_folder(draw: Random, path: Path) -> None:
    """A folder with judgements whose texts, or whose judgements, lie outside."""
    path.mkdir()
    (path / "qrels").mkdir()
    (path / "corpus.jsonl").write_text('{"_id": "d1", "text": "a river"}\n')
    (path / "queries.jsonl").write_text('{"_id": "q1", "text": "river"}\n')
    (path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    name = draw.choice(["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
    if draw.random() < 0.5:
        (path / name).unlink()
        (path / name).symlink_to(OUTSIDE)
    else:
        packed = path / f"{name}.gz"
        (path / name).unlink()
        gz_rows(draw, packed)


INDEX_KINDS = (
    index_bytes, index_manifest_bytes, index_counts, index_headers, index_pickle, index_cut, index_links, index_folder_links,
    index_holes, index_offsets, index_numbers, index_special, index_many, graph_bytes, graph_header, graph_links, graph_other,
    graph_beside,
)  # fmt: skip
FILE_KINDS: dict[Callable[[Random, Path], None], tuple[str, ...]] = {
    **dict.fromkeys(
        (parquet_bytes, parquet_footer, parquet_nulls, parquet_repeated, parquet_cell, parquet_nested, parquet_columns,
         parquet_schema), (".parquet",)
    ),
    **dict.fromkeys((gz_bomb, gz_damaged, gz_rows), (".txt.gz", ".csv.gz", ".tsv.gz", ".jsonl.gz", ".json.gz")),
    gz_parquet: (".parquet.gz",),
    other_archives: (".txt", ".csv", ".jsonl.gz", ".parquet", ".zip"),
    corpus_folder: ("",),
    judged_folder: ("",),
}  # fmt: skip
KINDS: dict[str, Callable[[Random, Path], None]] = {
    kind.__name__: kind for kind in (*INDEX_KINDS, *FILE_KINDS, *UNFINISHED_KINDS, *RUN_KINDS)
}


# --- What commands make of them


class _Tokenization:
    """Each character is a piece."""

    vocabulary, unknown_id = ("ship", "a"), 0

    def tokenize(self, text: str) -> TokenizedSentence:
        tokens = (
            Token(place, character, 1, 0, False, False, place, place, place + 1) for place, character in enumerate(text)
        )
        return TokenizedSentence(text, None, tuple(tokens), ())


class _Backend:
    """A model of 8 numbers without weights."""

    def __init__(self, info: IndexInfo) -> None:
        self.spec, self.revision = spec_of(info.model), info.revision
        self.sentence_config, self.not_applied = SentenceConfig(), ()
        self.tokenization = _Tokenization()

    def embed_options(self, **_: Any) -> EmbedOptions:
        return EmbedOptions((1,), ("mean",), 16, "float32")

    def embed(self, queries: list[str], options: EmbedOptions, **_: Any) -> np.ndarray:
        return np.ones((len(options.layers), len(options.poolings), len(queries), DIM), np.float32)


def search_index(folder: Path) -> int:
    """`check` and `search` with both engines; the highest status."""
    from components.command_line import program
    from components.command_line.commands import search

    stand_in = types.ModuleType("components.model.backend")
    sys.modules["components.model.backend"] = stand_in
    opened = search.opened

    def noted(options: argparse.Namespace) -> Any:
        index, layer, pooling = opened(options)
        stand_in.Backend = types.SimpleNamespace(load=lambda spec, prompt: _Backend(index.info))  # type: ignore[attr-defined]
        for texts in (index.texts, *index.columns.values()):  # a page or a report could show any of them
            sys.stdout.write("".join(texts[:1_000]) + "\n")
        return index, layer, pooling

    search.opened = noted
    statuses = [program.main(["check", str(folder)])]
    statuses += [program.main(["search", str(folder), "ships", "--engine", engine]) for engine in ("exact", "usearch")]
    return max(statuses, key=lambda status: (status not in (0, 2), status))


def read_file(command: str, path: Path) -> int:
    """A command that reads a file, as far as the model."""
    from components.command_line import options as shared
    from components.command_line import program
    from components.command_line.commands import rerank, search
    from components.errors import InputError
    from components.retrieval.corpora import corpus
    from components.retrieval.evaluation import reproduction
    from components.training import data

    def read(*_: Any, **__: Any) -> Any:
        raise InputError("The file was read.", "", "")

    def shown(name: str) -> None:
        original = getattr(corpus, name)

        def wrapper(*values: Any, **named: Any) -> Any:
            found = original(*values, **named)
            for texts in (found.texts, *found.columns.values()):
                sys.stdout.write("".join(text for text in texts if MARKER in text))
            return found

        setattr(corpus, name, wrapper)

    shown("read_corpus")
    shared.load = read
    shared.load_cross_encoder = read
    data.split = read
    reproduction._load = read
    reproduction._of_hub = read
    search.opened = lambda _: (None, 0, "mean")
    rerank.run.__globals__["search"] = search
    sys.modules["components.model.backend"] = types.ModuleType("components.model.backend")
    sys.modules["components.model.backend"].Backend = None  # type: ignore[attr-defined]
    out = str(path.parent / "out")
    arguments = {
        "index": ["index", str(path), "--out", out],
        "sts": ["sts", str(path)],
        "evaluate": ["evaluate", str(path)],
        "plan": ["plan", "--sample", str(path)],
        "train": ["train", str(path), "--out", out],
        "reproduce": ["reproduce", "--pairs", str(path)],
        "rerank": ["rerank", str(path.parent), str(path)],
    }[command]
    return program.main(arguments)


def explained(work: Callable[[Path], int], path: Path) -> int:
    """Some work, with its failures told as a command tells them; the status."""
    from components.command_line import program

    try:
        return work(path)
    except BaseException as problem:  # noqa: BLE001 - as in program.main
        return program._explained(problem)


def forked(work: Callable[[], int], output: Path, memory: int | None = None) -> tuple[int, float, int]:
    """The status of work in a process of its own, and of all of its processes the seconds of a processor and the most bytes."""
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        status = 99
        try:
            os.setsid()
            descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            streams = [os.fdopen(number, "wb", closefd=False) for number in (1, 2)]
            sys.stdout, sys.stderr = (io.TextIOWrapper(stream, "utf-8", "replace") for stream in streams)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_CPU, (MOST_BUSY_SECONDS, MOST_BUSY_SECONDS))
            if memory is not None:
                resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
            try:
                status = work()
            except SystemExit as ended:
                status = int(ended.code or 0)
            except BaseException:  # noqa: BLE001 - whatever it is, the case has failed
                traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    end = started + KILL_SECONDS
    while True:
        found, code, usage = os.wait4(child, os.WNOHANG)
        if found:
            break
        if time.monotonic() > end:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            end = float("inf")
        time.sleep(0.01)
    return os.waitstatus_to_exitcode(code), usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10


def run_case(kind: str, seed: int, base: Path, home: Path) -> Outcome:
    """Make a case and read it."""
    draw = Random(f"{kind} {seed}")
    make = KINDS[kind]
    place = home / "case"
    place.mkdir()
    output = home / "output.txt"
    try:
        if make in INDEX_KINDS:
            path, command = place / "index", "search"
            shutil.copytree(base, path)
        elif make in UNFINISHED_KINDS or make in RUN_KINDS:
            path, command = place / "begun", "index" if make in UNFINISHED_KINDS else "train"
        else:
            path = place / f"file{draw.choice(FILE_KINDS[make])}"
            command = draw.choice(
                ["evaluate"] if make is judged_folder else ["index"] if make is corpus_folder else COMMANDS
            )

        def made() -> int:
            make(draw, path)
            return 0

        status, _, _ = forked(made, output)
        assert status == 0, f"{kind} {seed} could not be made: {output.read_text()[-2_000:]}"
        before = OUTSIDE.read_bytes(), OUTSIDE.stat().st_mtime_ns
        work = (lambda: search_index(path)) if command == "search" else (lambda: read_file(command, path))
        if make in UNFINISHED_KINDS or make in RUN_KINDS:
            work = lambda: explained(go_on if make in UNFINISHED_KINDS else read_run, path)  # noqa: E731
        status, seconds, memory = forked(work, output, MEMORY)
        said = output.read_text("utf-8", "replace")
        changed = before != (OUTSIDE.read_bytes(), OUTSIDE.stat().st_mtime_ns)
        shown = any(word in said for word in OUTSIDE_WORDS)
        last = f"{command}: " + " | ".join(line for line in said.splitlines()[-3:])
        return Outcome(kind, seed, status, round(seconds, 2), memory, shown, changed, last[-1_500:])
    finally:
        shutil.rmtree(place, ignore_errors=True)


OUTSIDE_WORDS = [f"{MARKER} {number:04d}" for number in range(200)]


@contextlib.contextmanager
def workplace() -> Iterator[tuple[Path, Path]]:
    """The base index and a folder for cases, with the file outside."""
    global OUTSIDE
    with tempfile.TemporaryDirectory(prefix="hostile-") as name:
        home = Path(name)
        (home / "outside").mkdir()
        OUTSIDE = home / "outside" / "outside"
        OUTSIDE.write_text("\n".join(OUTSIDE_WORDS) + "\n")
        os.environ["BERT_INTERNALS_CACHE"] = str(home / "another machine")
        os.environ["HF_HUB_OFFLINE"] = "1"
        status, _, _ = forked(lambda: base_index(home / "base") or 0, home / "base.txt")
        assert status == 0, (home / "base.txt").read_text()
        os.environ["BERT_INTERNALS_CACHE"] = str(home / "cache")
        yield home / "base", home


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=len(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", default=[""], help="how their names begin")
    options = parser.parse_args(arguments)
    import components.command_line.program
    import components.retrieval.corpora.corpus
    import components.retrieval.engines.opening
    import components.retrieval.evaluation.reproduction
    import components.training.data  # noqa: F401 - once, before the forks

    names = [name for name in KINDS if name.startswith(tuple(options.kinds))]
    with workplace() as (base, home):
        for number in range(options.count):
            outcome = run_case(names[number % len(names)], options.seed + number // len(names), base, home)
            sys.stdout.write(json.dumps(asdict(outcome)) + "\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
