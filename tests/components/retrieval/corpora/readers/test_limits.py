"""Small files that would take gigabytes are refused in one sentence, within three times the limit of bytes.

Each is read in a process of its own that may take no more, and no longer than a minute. These processes are copies (forks)
of one that has imported what the readers need: to import it again for each file would take most of the time.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from components import operator_settings
from components.errors import InputError
from components.jobs import Stopped
from components.retrieval.corpora.corpus import columns_of, read_corpus
from components.retrieval.corpora.readers import encoding, parquet_child, parquet_files
from components.retrieval.corpora.readers import limits as limits_module
from components.retrieval.corpora.readers.files import read_table
from components.retrieval.corpora.readers.limits import (
    LONG_ROW,
    MOST_FIELDS,
    MOST_ROW_CHARACTERS,
    Count,
    Limits,
    memory_of_all,
)
from components.retrieval.corpora.readers.places import files_at
from components.retrieval.corpora.readers.table import NAMES_AGAIN, SET_COLUMN, BadRow, BadRows
from components.retrieval.corpora.senses import read_senses
from components.retrieval.evaluation.graded.collection import read_graded
from components.retrieval.search.static_vectors import read_static_vectors
from tests.support.places import ROOT
from tests.support.rare_cases import but_a_few

MB = 1 << 20
LIMIT, SENTENCES = 8 * MB, 50_000
RUNS_LIMIT = 16 * MB  # whose own limit are 8 MB of JSON
MEMORY, ROWS = "take more than 16.0 MiB of memory", "more than 150,000 rows"
LONG = "a row of more than 1,048,576 characters"
SECONDS = 60
# A process may take three times the limit, besides what it has after its imports and 32 MB for blocks.
READ = f"""
import json, os, resource, signal, sys
from pathlib import Path
import numpy, pyarrow.parquet
from components.errors import InputError
from components.retrieval.corpora import corpus
from components.retrieval.evaluation import run_record
from components.retrieval.evaluation.graded import files as graded
from components.retrieval.search import static_vectors
from components.retrieval.corpora.readers.limits import Limits

static_vectors.MAX_VECTOR_BYTES = {LIMIT}
readers = {{
    "corpus": lambda *given: corpus.read_corpus(*given[:2], limits=given[2]),
    "columns": lambda path, name, limits: corpus.columns_of(path, name),
    "entries": lambda path, name, limits: graded.read_entries(path, name, graded.DOCUMENT_FIELDS, limits),
    "judgements": graded.read_judgements,
    "vectors": lambda path, name, limits: static_vectors.read_static_vectors(path, name),
    "runs": lambda path, name, limits: run_record.read_runs(path.read_bytes(), name),
}}

def read(reader, path):
    signal.alarm({SECONDS})
    used = next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmData:"))
    most = used + 3 * ({RUNS_LIMIT} if reader == "runs" else {LIMIT}) + {32 * MB}
    resource.setrlimit(resource.RLIMIT_DATA, (most, resource.RLIM_INFINITY))
    try:
        readers[reader](path, path.name, Limits({SENTENCES}, {LIMIT}))
    except InputError as problem:
        return str(problem)
    return "was read"

for line in sys.stdin:
    reader, path = json.loads(line)
    said, into = os.pipe()
    process = os.fork()
    if process == 0:
        os.write(into, read(reader, Path(path)).encode())
        os._exit(0)
    os.close(into)
    text = open(said, encoding="utf-8").read()
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    print(json.dumps([status, text]), flush=True)
"""


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, Path], str]]:
    """What a reader says about a file, as far as it stays within its limits of memory and time."""
    log = tmp_path_factory.mktemp("limits") / "log.txt"
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", READ],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
            env={
                **os.environ,
                "BERT_INTERNALS_CORPUS_BYTES": str(LIMIT),
                "BERT_INTERNALS_CORPUS_SENTENCES": str(SENTENCES),
                "ARROW_DEFAULT_MEMORY_POOL": "system",  # the others reserve 1 GB at once
                "OMP_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1",
            },
        )
    assert process.stdin is not None
    assert process.stdout is not None

    def ask(reader: str, path: Path) -> str:
        process.stdin.write(json.dumps([reader, str(path)]) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        status, said = json.loads(line) if line else (process.wait(), "")
        assert status == 0, log.read_text()[-2_000:]
        return said

    yield ask
    process.stdin.close()
    process.wait(10)


def rows(number: int, row: Callable[[int], bytes]) -> bytes:
    return b"".join(map(row, range(number)))


def parquet(**columns: object) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, compression="gzip", compression_level=1)
    return sink.getvalue().to_pybytes()


def categories(rows: int, texts: list[str]) -> pa.DictionaryArray:
    """A categorical column that has its texts in turn."""
    return pa.DictionaryArray.from_arrays(pa.array([row % len(texts) for row in range(rows)], pa.int32()), texts)


NUMBERS = rows(750, lambda n: b"w%d" % n + b" 0" * 4_000 + b"\n")  # of word vectors
# A file's name, its content, the reader, and what is said. Those with .gz are small, those without take no unpacking.
HOSTILE: dict[str, tuple[str, Callable[[], bytes], str, str]] = {
    "blank lines, plain": ("a.txt", lambda: b"\n" * 7 * MB, "corpus", MEMORY + "|" + ROWS),
    "short lines": ("a.txt", lambda: rows(750_000, lambda n: b"%07d\n" % n), "corpus", MEMORY + "|" + ROWS),
    "one long line": ("a.txt", lambda: b"word " * (3 * MB // 2), "corpus", LONG),
    "a long line and an emoji": ("a.txt", lambda: b"word " * (3 * MB // 2) + "\U0001f600".encode(), "corpus", LONG),
    "empty lists": ("a.json", lambda: b"[" + b"[]," * 2_500_000 + b"[]]", "corpus", MEMORY + "|" + ROWS),
    "a row of empty lists": ("a.jsonl", lambda: b"[" + b"[]," * 2_500_000 + b"[]]", "corpus", LONG),
    "empty objects": ("a.jsonl", lambda: b"{}\n" * 2_500_000, "corpus", ROWS),
    "many keys, few values": (
        "a.jsonl",
        lambda: b"{" + b",".join(b'"%d":1' % n for n in range(200)) + b"}\n" + rows(500_000, lambda n: b'{"1":"x"}\n'),
        "corpus",
        MEMORY,
    ),
    "one row of commas": ("a.csv", lambda: b"," * 8_000_000, "corpus", LONG),
    "its columns": ("a.csv", lambda: b"," * 8_000_000, "columns", LONG),
    "narrow rows": ("a.csv", lambda: b"a,b,c,d\n" + b"1,2,3,4\n" * 1_000_000, "corpus", MEMORY),
    "bad rows": ("a.csv", lambda: b"text,n\n" + b"x\n" * 4_000_000, "corpus", ROWS),
    "nulls": ("a.parquet", lambda: parquet(text=pa.nulls(2_000_000, pa.string())), "corpus", ROWS),
    "one large cell": ("a.parquet", lambda: parquet(text=["x" * 120 * MB]), "corpus", "of memory"),
    "a repeated cell": (
        "a.parquet",
        lambda: parquet(text=pa.DictionaryArray.from_arrays(pa.array([0] * 2_000), ["x" * MB])),
        "corpus",
        MEMORY,
    ),
    "a long list of nothing": (
        "a.parquet",
        lambda: parquet(
            text=["One."],
            n=pa.ListArray.from_arrays(
                [0, 1_000_000], pa.StructArray.from_arrays([pa.nulls(1_000_000, pa.int8())], ["a"])
            ),
        ),
        "corpus",
        "200,000 values",
    ),
    "lists of nothing": (
        "a.parquet",
        lambda: parquet(
            n=pa.ListArray.from_arrays(
                pa.array(range(0, 2_000_001, 1_000), pa.int32()),
                pa.StructArray.from_arrays([pa.nulls(2_000_000, pa.int8())], ["a"]),
            )
        ),
        "corpus",
        MEMORY,
    ),
    "a large dictionary": (
        "a.parquet",
        lambda: parquet(text=categories(50_000, [f"{n} " + "x" * 400 for n in range(50_000)])),
        "corpus",
        MEMORY + "|of memory",
    ),
    "a dictionary inside lists": (
        "a.parquet",
        lambda: parquet(
            text=pa.ListArray.from_arrays(
                pa.array(range(50_001), pa.int32()), categories(50_000, [f"{n} " + "x" * 400 for n in range(50_000)])
            )
        ),
        "corpus",
        MEMORY + "|of memory",
    ),
    "one long list": (
        "a.parquet",
        lambda: parquet(text=[["x"] * 3_000_000]),
        "corpus",
        "of memory|row of more than 16.0 MiB",
    ),
    "judgements": ("a.tsv", lambda: rows(350_000, lambda n: b"q%d\td%d\t1\n" % (n, n)), "judgements", MEMORY),
    "documents": ("a.tsv", lambda: rows(500_000, lambda n: b"d%d\ttext\n" % n), "entries", MEMORY + "|" + ROWS),
    "word vectors": ("a.vec", lambda: NUMBERS, "vectors", "vectors of 4,000 numbers that take more than 8.00 MiB"),
    "lists instead of runs": ("a.json", lambda: b"[" + b"[]," * 2_700_000 + b"[]]", "runs", "more values than"),
    "runs of texts": ("a.json", lambda: b'{"runs":[' + b'"ab",' * 1_600_000 + b"1]}", "runs", "more values than"),
    "as many ranks as are read": ("a.json", lambda: b"[" + b"30000," * 1_000_000 + b"1]", "runs", "not a file of runs"),
    "large saved runs": ("a.json", lambda: b"[" + b"[]," * 3_000_000 + b"[]]", "runs", "at most 8.00 MiB are read"),
    "a line of numbers": ("a.vec.gz", lambda: gzip.compress(b"w" + b" 0" * 5_000_000, 1), "vectors", "1,048,576"),
}


# Those of which a quarter of a million values says as much as millions, which take seconds to be made.
FEWER: dict[str, Callable[[], bytes]] = {
    "blank lines, plain": lambda: b"\n" * 250_000,
    "short lines": lambda: rows(250_000, lambda n: b"%07d\n" % n),
    "empty lists": lambda: b"[" + b"[]," * 250_000 + b"[]]",
    "empty objects": lambda: b"{}\n" * 250_000,
    "many keys, few values": lambda: (
        b"{" + b",".join(b'"%d":1' % n for n in range(200)) + b"}\n" + rows(50_000, lambda n: b'{"1":"x"}\n')
    ),
    "bad rows": lambda: b"text,n\n" + b"x\n" * 250_000,
    "nulls": lambda: parquet(text=pa.nulls(250_000, pa.string())),
    "a repeated cell": lambda: parquet(
        text=pa.DictionaryArray.from_arrays(pa.array([0] * 200), ["x" * (MB // 4)]),
    ),
    "a long list of nothing": lambda: parquet(
        text=["One."],
        n=pa.ListArray.from_arrays([0, 250_000], pa.StructArray.from_arrays([pa.nulls(250_000, pa.int8())], ["a"])),
    ),
}
LARGE = {
    *FEWER,
    "one large cell",
    "a large dictionary",
    "a dictionary inside lists",
    "one long list",
    "lists of nothing",
}
EACH = [
    pytest.param(kind, HOSTILE[kind][1], id=kind, marks=pytest.mark.rare if kind in LARGE else ()) for kind in HOSTILE
]
EACH += [pytest.param(kind, content, id=f"{kind}, fewer") for kind, content in FEWER.items()]


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is Linux's")
@pytest.mark.parametrize(("kind", "content"), but_a_few(EACH, 8))
def test_no_file_takes_more_than_three_times_the_limit(
    kind: str, content: Callable[[], bytes], tmp_path: Path, answer: Callable[[str, Path], str]
) -> None:
    name, _, reader, expected = HOSTILE[kind]
    path = tmp_path / name
    path.write_bytes(content())
    said = answer(reader, path)
    assert any(part in said for part in expected.split("|")), said
    assert said.startswith(name)
    assert "\n" not in said


@pytest.mark.parametrize("reader", ["corpus", "vectors"])
def test_a_file_that_expands_far_more_than_text_is_refused(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits_module, "EXPANDED_BYTES", 1 << 20)
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress((b"a" + b" 0" * 100 + b"\n") * 20_000))
    with pytest.raises(InputError, match="expands to more than 200 times") as caught:
        (read_corpus if reader == "corpus" else read_static_vectors)(path, "a.txt.gz")
    assert caught.value.fix.startswith("Decompress it")


def test_a_small_file_may_expand_as_far_as_it_likes() -> None:
    content = b"word " * 200_000
    assert limits_module.read_bytes(gzip.compress(content), "a.txt.gz", Limits(100, 4 * MB)) == content


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_of_as_many_bytes_as_the_limit_is_read(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    content = (b"word " * 100 + b"\n") * 20
    assert limits_module.read_bytes(pack(content), "a.txt", Limits(100, len(content))) == content
    path = tmp_path / ("a.txt" if pack is bytes else "a.txt.gz")
    path.write_bytes(pack(content))
    assert len(read_table(path, path.name, limits=Limits(100, len(content))).numbers) == 20
    with pytest.raises(InputError, match="more than"):
        limits_module.read_bytes(pack(content), "a.txt", Limits(100, len(content) - 1))


def test_a_header_of_too_many_fields_is_said() -> None:
    with pytest.raises(InputError, match=f"20,001 fields, which is more than {MOST_FIELDS:,}"):
        read_corpus(b"," * 20_000 + b"\n" + b"," * 20_000, "a.csv")
    most = ",".join(f"name{number}" for number in range(MOST_FIELDS)).encode()
    assert len(read_table(most + b"\n" + b"," * (MOST_FIELDS - 1), "a.csv").numbers) == 1


def test_names_that_come_again_are_said_by_the_line_of_the_file() -> None:
    table = read_table(b"\n\nsentence,team\nThe cat sat.,x\nsentence,team\nA dog ran.,y\n", "a.csv")
    assert (list(table.numbers), table.bad.first) == ([4, 6], [BadRow(5, NAMES_AGAIN)])


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.jsonl", "a.json"])
def test_of_a_file_no_more_rows_are_read_than_are_asked_for(name: str) -> None:
    rows = [{"text": f"Sentence {number}."} for number in range(5)]
    lines = [row["text"] for row in rows]
    content = {
        "a.txt": "\n".join(lines),
        "a.csv": "\n".join(["text", *lines]),
        "a.jsonl": "\n".join(map(json.dumps, rows)),
        "a.json": json.dumps(rows),
    }[name]
    table = read_table(content.encode(), name, max_rows=2)
    assert ([list(values) for values in table.columns.values()], len(table.numbers)) == ([lines[:2]], 2)


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.jsonl"])
def test_a_long_row_is_a_bad_row_and_the_others_are_read(name: str) -> None:
    long = "x" * (MOST_ROW_CHARACTERS + 1)
    lines = ["One.", long, "Two."]
    content = {
        "a.txt": "\n".join(lines),
        "a.csv": "text\n" + "\n".join(lines),
        "a.jsonl": "\n".join(f'{{"text": "{line}"}}' for line in lines),
    }[name]
    corpus = read_corpus(content.encode(), name)
    assert corpus.texts == ("One.", "Two.")
    header = name == "a.csv"
    assert [(row.row, row.reason) for row in corpus.report.bad_rows] == [(2 + header, LONG)]


def test_a_hundred_bad_rows_are_kept_and_all_are_counted() -> None:
    before, after = BadRows(), BadRows()
    for number in range(1, 2_001, 2):
        before.add(number, "empty")
        after.add(number + 1, f"{number} fields")
    both = before.joined(after)
    assert [row.row for row in both.first] == list(range(1, 101))
    assert len(both) == 2_000
    assert both.reasons["empty"] == 1_000
    assert [bad.last for bad in (both, before.joined(after, 5_000), before.joined(BadRows(), 5_000))] == [
        2_000,
        7_000,
        1_999,
    ]
    few = BadRows([BadRow(3, "empty")]).joined(BadRows([BadRow(1, "empty")]), 10)
    assert [row.row for row in few.first] == [3, 11]
    report = read_corpus(b"text,n\nGood.,1\n" + b"x\n" * 500, "a.csv").report
    assert (report.bad_count, len(report.bad_rows), report.rows) == (500, 100, 501)


@pytest.mark.parametrize(
    ("values", "least"),
    [
        (["abc", "\U0001f600"], 49 + 3 + 49 + 4),
        ([1, 2.5, True], 3 * 32),
        ([None, "x"], 50),
        ([[["x"], {"a": []}]], 56 + 56 + 50 + 64 + 50 + 56),
        ([{"a" * 5_000: "b" * 5_000}], 64 + 2 * 5_049),
    ],
)
def test_the_memory_of_values_is_not_counted_too_low(values: list[object], least: int) -> None:
    assert least <= memory_of_all(values) < 4 * least + 200


def test_values_of_an_array_are_read_over_the_edges_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    values = ["One \u2028 two.", 12345, {"text": "Ein Satz."}, ["a b", "c d"], [], None, True, -1.5e10, "]"] * 3
    content = json.dumps(values, indent=1).encode()
    whole = read_table(content, "a.json")
    for size in (1, 2, 3, 7, 50):
        monkeypatch.setattr(encoding, "BLOCK_BYTES", size)
        table = read_table(content, "a.json")
        assert (table.columns, table.numbers) == (whole.columns, whole.numbers)
        assert table.bad.first == whole.bad.first
    for broken in (b"[1,]", b"[1 2]", b"[1", b"[]]", b"[1],"):
        with pytest.raises(InputError, match="could not be read as JSON"):
            read_table(broken.replace(b"1", b'"x" "') if broken != b"[]]" else broken, "a.json")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'[{"text": "One."},\n {"text": "Two."}\n {"text": "Three."}]', "Expecting ',' delimiter (line 3, column 2)"),
        (b'[\n{"text": "One."},\n{"text" "Two."}\n]', "Expecting ':' delimiter (line 3, column 9)"),
        (b'[\n{"text": "One."},\n]', "Expecting value (line 3, column 1)"),
        (b'["One.",\n"Two.', "Unterminated string starting at (line 2, column 1)"),
        (b'["One.",\n"Two."]\n]', "Text after the array (line 3, column 1)"),
        (b'["One.", ' + b"[" * 100_000 + b"]" * 100_001, "A value is nested too deeply (line 1, column 10)"),
        (
            b'["One.", "' + b"x" * (MOST_ROW_CHARACTERS + 9) + b'"]',
            "more than 1,048,576 characters (line 1, column 10)",
        ),
    ],
)
def test_an_error_in_an_array_is_said_with_its_position(
    content: bytes, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read as lines, it would lose the rows that end with a comma, and say that the others are broken."""
    for size in (7 if len(content) < 100 else 400_000, 1 << 20):
        monkeypatch.setattr(encoding, "BLOCK_BYTES", size)
        with pytest.raises(InputError) as caught:
            read_table(content, "a.json")
        assert caught.value.problem.endswith(f"{reason}.")
        assert caught.value.problem.startswith("a.json could not be read as JSON: ")


def test_lists_on_lines_are_no_array_with_an_error() -> None:
    table = read_table(b'["a", "b"]\n["c" "d"]\n["e", "f"]\n', "a.json")
    assert table.columns == {SET_COLUMN: [["a", "b"], ["e", "f"]]}
    assert [(row.row, row.reason) for row in table.bad.first] == [(2, "broken JSON")]


@pytest.mark.parametrize("name", ["utf-8", "utf-16", "utf-16-le", "shift_jis", "cp1252"])
def test_text_is_the_same_in_blocks_of_any_size(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "One\r\ntwo\rthree\n\n" + ("caf\xe9" if name == "cp1252" else "\u65e5\u672c") + "\r\n"
    content = text.encode(name)
    for size in (1, 2, 3, 5):
        monkeypatch.setattr(encoding, "BLOCK_BYTES", size)
        decoded = encoding.decode(content, "a.txt", name)
        with_returns, line_feeds = text.replace("\r\n", "\n"), text.replace("\r\n", "\n").replace("\r", "\n")
        assert "".join(decoded.blocks()) == with_returns
        assert "".join(decoded.blocks(every_return=True)) == line_feeds
        assert list(decoded.lines())[:3] == ["One", "two\rthree", ""]
        assert [line for lines in decoded.line_blocks(every_return=True) for line in lines][:4] == [
            "One",
            "two",
            "three",
            "",
        ]
        old = encoding.decode(text.replace("\r\n", "\r").encode(name), "a.txt", name)
        assert "".join(old.blocks()) == line_feeds  # a return ends the first line, and so each


def stream(*rows: str, is_closed: bool = True) -> bytes:
    """What the process sends of a batch, with the end of its stream or without."""
    sink = pa.BufferOutputStream()
    writer = pa.ipc.new_stream(sink, pa.schema([("name", pa.string())]))
    writer.write_batch(pa.record_batch([pa.array(rows)], names=["name"]))
    sent = sink.tell()
    writer.close()
    return sink.getvalue().to_pybytes()[: None if is_closed else sent]


def test_a_parquet_process_that_ends_is_an_error_and_not_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(parquet(text=["One.", "Two."], picture=[b"\xff", b"\xfe"]))
    table = read_table(path, "a.parquet", limits=Limits(10, 1_000_000))
    assert table.columns == {"text": ["One.", "Two."]}
    assert table.left_out == ("picture",)
    script = tmp_path / "ends.py"
    monkeypatch.setattr(parquet_files.parquet_child, "__file__", str(script))
    whole, broken_off = stream("text"), stream("One.", is_closed=False)
    two = f"import os, sys; sys.stdout.buffer.write({whole + broken_off!r}); sys.stdout.buffer.flush(); "
    for end, said in {
        "import os; os.abort()": "MiB of memory",
        "import sys; sys.exit(4)": "MiB of memory",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)": "MiB of memory",
        "import os, signal; os.kill(os.getpid(), signal.SIGXCPU)": "far more work to read",
        "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)": "could not be read: .* ended with status -11",
        "import sys; sys.exit('no such module')": "could not be read: .* ended with status 1",
        "": "could not be read",
        # It ends between two batches, where the stream could also be complete.
        two + "os.abort()": "MiB of memory",
        two + "sys.exit(1)": "could not be read",
        f"import sys; sys.stdout.buffer.write({whole!r})": "could not be read",
    }.items():
        script.write_text(end)
        with pytest.raises(InputError, match=said):
            read_table(path, "a.parquet", limits=Limits(10, 1_000_000))
    assert "ended with status 1" in caplog.text
    assert "no such module" not in caplog.text  # what it writes can quote cells
    monkeypatch.setenv("BERT_INTERNALS_DEBUG", "1")
    script.write_text("import sys; sys.exit('no such module')")
    with pytest.raises(InputError):
        read_table(path, "a.parquet", limits=Limits(10, 1_000_000))
    assert "no such module" in caplog.text


@pytest.mark.parametrize("limits", [None, Limits(10, 1_000_000)])
def test_dates_beyond_the_calendar_are_an_error_for_people(limits: Limits | None) -> None:
    days = pa.array([0, 2**31 - 5], pa.int32()).cast(pa.date32())
    with pytest.raises(InputError, match=r"a\.parquet could not be read"):
        read_table(parquet(text=["One.", "Two."], day=days), "a.parquet", limits=limits)


@pytest.mark.rare
def test_a_parquet_file_that_takes_too_much_of_a_processor_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "works.py"
    script.write_text("import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 60))\nwhile True:\n    pass\n")
    monkeypatch.setattr(parquet_files.parquet_child, "__file__", str(script))
    for source in (parquet(text=["One."]), parquet(text=["One."]) * 1_000):  # the second is more than a pipe holds
        with pytest.raises(InputError, match="far more work to read than it has values"):
            read_table(source, "a.parquet", limits=Limits(10, 10_000_000))


def test_a_parquet_file_that_unpacks_far_more_than_it_gives_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each group of rows can have a large dictionary that a few rows use: bytes count, which no busy machine changes."""
    script = tmp_path / "strict.py"
    folder = Path(parquet_files.parquet_child.__file__).parent
    script.write_text(
        f"import sys\nsys.path.insert(0, {str(folder)!r})\nimport parquet_child\nparquet_child.MOST_WORK = 0\n"
        "sys.exit(parquet_child.main(sys.argv[1], *map(int, sys.argv[2:])))\n"
    )
    content = parquet(text=["One."] * 5_000)
    read_table(content, "a.parquet", limits=Limits(10_000, 10_000_000))
    monkeypatch.setattr(parquet_files.parquet_child, "__file__", str(script))
    with pytest.raises(InputError, match="far more work to read than it has values"):
        read_table(content, "a.parquet", limits=Limits(10_000, 10_000_000))


def test_what_the_server_sets_for_itself_is_not_passed_to_the_parquet_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, found = tmp_path / "says.py", tmp_path / "found.txt"
    script.write_text(f"import os; open({str(found)!r}, 'w').write(' '.join(os.environ))")
    monkeypatch.setattr(parquet_files.parquet_child, "__file__", str(script))
    monkeypatch.setattr(operator_settings, "_here_alone", {"GOMP_SPINCOUNT"})
    monkeypatch.setenv("GOMP_SPINCOUNT", "3000")
    with pytest.raises(InputError):  # it gives no rows
        read_table(parquet(text=["One."]), "a.parquet", limits=Limits(10, 1_000_000))
    assert {"PATH", "ARROW_DEFAULT_MEMORY_POOL"} <= set(found.read_text().split())
    assert "GOMP_SPINCOUNT" not in found.read_text()


def test_a_stop_ends_the_parquet_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "sleeps.py"
    script.write_text("import time; time.sleep(1_000)")  # longer than a test may take
    monkeypatch.setattr(parquet_files.parquet_child, "__file__", str(script))
    stopped = threading.Event()
    threading.Timer(0.3, stopped.set).start()
    with pytest.raises(Stopped):
        read_corpus(parquet(text=["One."]), "a.parquet", is_stopped=stopped.is_set)


VECTORS = b"".join(b"w%d 1 2 3\n" % n for n in range(200_000))
GRADED = {
    "corpus.tsv": rows(50_000, lambda n: b"d%d\ttext\n" % n),
    "queries.tsv": b"q1\ttext\n",
    "qrels.tsv": rows(50_000, lambda n: b"q1\td%d\t1\n" % n),
}
SENSES = b"word,sense,sentence\n" + b"bank,river,A bank.\n" * 20_000


@pytest.mark.parametrize(
    "read",
    [
        lambda stop: read_corpus(b"text\n" + b"One.\n" * 50_000, "a.csv", is_stopped=stop),
        lambda stop: read_corpus(b"One.\n" * 500_000, "a.txt", is_stopped=stop),
        lambda stop: read_corpus(b'{"a": "b"}\n' * 50_000, "a.jsonl", is_stopped=stop),
        lambda stop: read_corpus(gzip.compress(b"One two %d.\n" * 500_000), "a.txt.gz", is_stopped=stop),
        lambda stop: read_corpus(parquet(text=["One."] * 20_000), "a.parquet", is_stopped=stop),
        lambda stop: columns_of(parquet(text=["One."] * 20_000), "a.parquet", is_stopped=stop),
        lambda stop: read_graded(GRADED, is_stopped=stop),
        lambda stop: read_senses(SENSES, "a.csv", is_stopped=stop),
        lambda stop: read_static_vectors(VECTORS, "a.vec", is_stopped=stop),
    ],
)
def test_every_reader_ends_when_it_is_stopped(read: Callable[[Callable[[], bool]], object]) -> None:
    with pytest.raises(Stopped):
        read(lambda: True)
    asked = 0

    def is_third() -> bool:
        nonlocal asked
        asked += 1
        return asked >= 3

    with pytest.raises(Stopped):  # while it reads, and not only before
        read(is_third)


def test_what_was_read_says_how_much_memory_it_takes() -> None:
    """A bounded cache asks for it: more than the characters or numbers alone, and less than four times as much."""
    corpus = read_corpus(b"text,n\n" + rows(1_000, lambda n: b"%0200d,%0100d\n" % (n, n)), "a.csv")
    assert 300_000 < corpus.nbytes < 600_000
    graded = read_graded(GRADED)
    assert 50_000 * (4 + 8) < graded.nbytes < 50_000 * 300
    vectors = read_static_vectors(b"".join(VECTORS.splitlines(True)[:50_000]), "a.vec")
    assert vectors.matrix.nbytes + 50_000 * 100 < vectors.nbytes < vectors.matrix.nbytes + 50_000 * 400


@pytest.mark.parametrize("limits", [None, Limits(1_000_000, 20 * MB)])
def test_whether_a_column_is_of_bytes_is_decided_by_its_first_rows_with_values(limits: Limits | None) -> None:
    """Although the first batch may be one row: here rows of 5 MB, most of which a picture takes."""
    big = [bytes([0xFF]) * (5 * MB // 10 if row < 3 else 10) for row in range(30)]
    texts = [b"\xff", *(b"Sentence %d." % row for row in range(29))]
    late = [None] * 20 + [b"\xff\xfe"] * 10
    few = [None] * 28 + [b"\xff", None]
    content = parquet(text=texts, picture=big, late=late, few=few, names=["a"] * 30)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(parquet_files.parquet_child, "BATCH_ROWS", 1)
        table = read_table(content, "a.parquet", limits=limits)
    assert list(table.columns) == ["text", "names"]
    assert table.left_out == ("picture", "late", "few")
    assert table.columns["text"] == [b"\xff", *(f"Sentence {row}." for row in range(29))]


def test_a_column_of_which_half_is_text_is_kept() -> None:
    assert list(read_table(parquet(text=[b"\xff", b"A sentence."]), "a.parquet").columns) == ["text"]


def test_categorical_columns_are_the_same_in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["a", None, "b", "a", "c", None, "b"] * 100
    labels = pa.array(texts).dictionary_encode()
    lists = pa.ListArray.from_arrays(pa.array(range(len(texts) + 1), pa.int32()), labels)
    maps = pa.array([[("k", 1)], [], None, [("x", 2), ("y", 3)]] * 175, pa.map_(pa.string(), pa.int64()))
    content = parquet(label=labels, list=lists, map=maps)
    for size in (1_000, 10):
        monkeypatch.setattr(parquet_files.parquet_child, "BATCH_VALUES", size)
        table = read_table(content, "a.parquet")
        assert table.columns["label"] == texts
        assert table.columns["list"] == [[text] for text in texts]
        assert table.columns["map"] == maps.to_pylist()


def test_links_that_lead_out_of_a_folder_are_left_out_and_named(tmp_path: Path) -> None:
    folder, outside = tmp_path / "corpus", tmp_path / "outside.txt"
    outside.write_text("a text of somebody else\n")
    (folder / "inner").mkdir(parents=True)
    (folder / "a.txt").write_text("a sentence\n")
    (folder / "b.txt").symlink_to(outside)
    (folder / "c.txt").symlink_to("a.txt")
    (folder / "inner" / "d.txt").symlink_to("../../outside.txt")
    for name in ("_of_a_program.txt", "inner/.hidden.txt"):
        (folder / name).write_text("no sentence\n")
    with files_at(str(folder)) as (files, left_out):
        assert [path.name for path in files] == ["a.txt", "c.txt"]
        assert left_out == [f"{name}: a link that leads out of the folder" for name in ("b.txt", "inner/d.txt")]
    (folder / "a.txt").unlink()
    with pytest.raises(InputError, match="2 links lead out of it"), files_at(str(folder)):
        pass
    (tmp_path / "link").symlink_to(folder)  # the folder that a person names may be a link
    (folder / "a.txt").write_text("a sentence\n")
    with files_at(str(tmp_path / "link")) as (files, _):
        assert len(files) == 2


@pytest.mark.parametrize("limits", [None, Limits(1_000, 64 << 20)])
@pytest.mark.parametrize("kind", ["one cell", "many cells", "a list", "a category"])
def test_a_row_of_a_parquet_file_has_as_few_characters_as_any_other(kind: str, limits: Limits | None) -> None:
    """It is left out and counted, as a row of .csv or .jsonl is; the others keep their numbers."""
    long = "x" * (MOST_ROW_CHARACTERS // 8)
    columns: dict[str, object] = {
        "one cell": {"text": ["One.", long * 9, "Three.", "Four."]},
        "many cells": {
            "text": ["One.", "Two.", "Three.", "Four."],
            **{f"c{at}": ["", long, "", ""] for at in range(9)},
        },
        "a list": {"text": ["One.", "Two.", "Three.", "Four."], "list": [[], [long] * 9, [], []]},
        "a category": {
            "text": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3]), ["One.", long * 9, "Three.", "Four."])
        },
    }[kind]  # type: ignore[assignment]
    table = read_table(parquet(**columns), "a.parquet", limits=limits)
    assert table.columns["text"] == ["One.", "Three.", "Four."]
    assert list(table.numbers) == [1, 3, 4]
    assert [(row.row, row.reason) for row in table.bad.first] == [(2, LONG_ROW)]
    assert {len(column) for column in table.columns.values()} == {3}


def test_a_long_row_behind_the_first_batch_is_told_by_its_place_in_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_files.parquet_child, "BATCH_ROWS", 2)
    table = read_table(parquet(text=["One.", "Two.", "Three.", "x" * (MOST_ROW_CHARACTERS + 1), "Five."]), "a.parquet")
    assert list(table.numbers) == [1, 2, 3, 5]
    assert [(row.row, row.reason) for row in table.bad.first] == [(4, LONG_ROW)]


def test_the_footer_of_a_parquet_file_is_asked_before_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, limits = tmp_path / "a.parquet", Limits(2_000, 8 << 20)
    pq.write_table(pa.table({"text": pa.nulls(6_001)}), path)
    with pytest.raises(InputError, match="has more than 6,000 rows"):
        read_table(path, path.name, limits=limits)
    assert len(read_table(path, path.name, limits=limits, max_rows=3).numbers) == 3  # a part of it is looked at
    count = Count("all", limits)
    count.rows = 5_900  # of the parts before it
    pq.write_table(pa.table({"text": ["a"] * 101}), path)
    with pytest.raises(InputError, match="has more than 6,000 rows"):
        read_table(path, path.name, limits=limits, count=count)
    assert count.rows == 5_900  # none was read


def test_what_a_footer_says_of_bytes_is_summed_without_pictures(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"text": ["a" * 1_000] * 50, "number": list(range(50)), "picture": [bytes(9_000)] * 50})
    pq.write_table(table, path, use_dictionary=False, compression="gzip")
    with pq.ParquetFile(path) as file:
        facts = file.metadata
        both = parquet_child.declared_bytes(facts, ["text", "number", "picture"])
        assert 50 * 1_000 + 50 * 8 < both < 60_000
        assert both - parquet_child.declared_bytes(facts, ["text"]) >= 400
        assert parquet_child.declared_bytes(facts, ["picture"]) == 0
