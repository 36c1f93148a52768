"""Files by people who wish the server ill, drawn from a seed, and a process that reads them as an upload is read.

`draw` gives the files of a case by its kind: every format that people upload or open, with texts, numbers and bytes that
readers trip over. `python -m tests.support.hostile_files FOLDER` reads a line of JSON for each case, {"kind", "seed"}, and
answers with a line: what became of it, its seconds of CPU and the most memory of the process so far. It may take 2 GB.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
import resource
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

from components.folders import ASSETS
from components.retrieval.evaluation.run_record import Run, RunData, write_runs
from tests.support.hostile_texts import HOSTILE

DATA = RunData("pairs", 4, 4, "ab" * 32)

MOST_BYTES = 2 << 30
SECRET = "the-secret-of-another-folder"  # in a file beside the folder of a case: no answer may show it
Files = dict[str, bytes]

_STRETCHES = [
    "a",
    " ",
    "\u0301",
    "\t",
    "ไ",
    "你",
    "🏦",
    ". ",
    "a\u0301 ",
    "\x00",
    "=1+1 ",
    "the bank ",
    "\\",
    '""',
    "[[",
    "\u202e",
]
_ENCODINGS = ["utf-8"] * 8 + ["utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252", "gb18030", "utf-7"]
_NUMBERS = [
    "0",
    "-0.0",
    "1e999",
    "-1e-999",
    "9" * 400,
    "9" * 5_000,
    "NaN",
    "Infinity",
    "0x10",
    "1_000",
    "٣",
    "1,5",
    "",
    "true",
]


def a_text(draw: random.Random) -> str:
    """Half of them ordinary; some of a megabyte."""
    kind = draw.random()
    if kind < 0.5:
        return draw.choice(["The river bank was steep.", "A bank lends money.", "Ships sail.", "", "x"])
    if kind < 0.75:
        return draw.choice(HOSTILE)
    if kind < 0.9:
        return draw.choice(_STRETCHES) * int(10 ** draw.uniform(0, 4))
    if kind < 0.93:
        return draw.choice(_STRETCHES) * int(10 ** draw.uniform(4, 6.2))
    return draw.choice([f"../{SECRET}.txt", "file:///etc/passwd", "/etc/passwd", "=HYPERLINK(1)", "@SUM(1)", *_NUMBERS])


def value_of(draw: random.Random, column: str) -> str:
    """A text; of a column of scores mostly a number."""
    return draw.choice(["1", "2.5", "4", draw.choice(_NUMBERS)]) if column == "score" else a_text(draw)


def json_value(draw: random.Random) -> str:
    """A value as JSON writes it, or nearly."""
    kind = draw.random()
    if kind < 0.6:
        return json.dumps(a_text(draw), ensure_ascii=draw.random() < 0.5)
    if kind < 0.8:
        return draw.choice(
            [*_NUMBERS[:10], "null", "[]", "{}", '"\\ud800"', '"\\ud800\\udc00"', "[1, [2]]", "01", "'a'"]
        )
    depth = int(10 ** draw.uniform(0, 5))
    return draw.choice(["[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth, "[" * depth, "[0," * depth])


def json_texts(draw: random.Random) -> str:
    """A list of texts as JSON writes it; one in ten has something else in it."""
    texts = [json.dumps(a_text(draw), ensure_ascii=draw.random() < 0.5) for _ in range(draw.randint(0, 4))]
    return "[" + ", ".join([*texts, *[json_value(draw)] * (draw.random() < 0.1)]) + "]"


def json_rows(draw: random.Random, *names: str) -> str:
    keys = [*names, *draw.choices(["text", "text", "", "__proto__", "a" * 300, "\ud800", "n"], k=draw.randint(0, 3))]
    rows = [
        "{"
        + ", ".join(
            f"{json.dumps(key)}: {value_of(draw, key) if key == 'score' else json_value(draw)}"
            for key in keys
            if draw.random() < 0.95
        )
        + "}"
        for _ in range(draw.randint(0, 30))
    ]
    if draw.random() < 0.1:
        rows.insert(0, draw.choice(["", "null", "[", "7", '"a"', "{", "\ufeff{}"]))
    return "[" + ",".join(rows) + "]" if draw.random() < 0.2 else "\n".join(rows)


def table(draw: random.Random, comma: str, *names: str) -> str:
    """Rows of fields, in quotes or not, not always as many as there are names."""
    columns = [*names, *draw.choices(["text", "sentence", "", "text", "a\nb", "=1"], k=draw.randint(0, 3))]
    if draw.random() < 0.03:
        columns += [f"c{number}" for number in range(draw.choice([300, 9_990, 20_000]))]

    def field(text: str) -> str:
        return '"' + text.replace('"', '""') + '"' if draw.random() < 0.7 else text

    rows = [comma.join(map(field, columns))] if draw.random() < 0.95 else []
    for _ in range(draw.randint(0, 30)):
        width = max(0, min(len(columns), 12) + draw.choice([0] * 8 + [1, -1]))
        values = [value_of(draw, columns[min(place, len(columns) - 1)]) for place in range(width)]
        rows.append(comma.join(map(field, values)))
    return draw.choice(["\n"] * 8 + ["\r\n", "\r", "\n\n"]).join(rows)


def encoded(draw: random.Random, text: str) -> bytes:
    name = draw.choice(_ENCODINGS)
    errors = "surrogatepass" if name.startswith("utf") and name != "utf-7" else "replace"
    if name == "utf-7":
        text = text.encode(errors="replace").decode()
    return text.encode(name, errors)


def damaged(draw: random.Random, content: bytes) -> bytes:
    """A fifth of the contents with bytes changed, put in, repeated or cut off."""
    if draw.random() > 0.2:
        return content
    result = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        start = draw.randint(0, len(result))
        end = min(len(result), start + draw.randint(0, 20))
        kind = draw.randrange(4)
        if kind == 0:
            result[start:end] = draw.choice(
                [b"\0", b'"', b"\xff\xfe", b"\xed\xa0\x80", b"\r", b"[" * 3_000, b"9" * 5_000]
            )
        elif kind == 1:
            result[start:start] = draw.randbytes(draw.randint(1, 20))
        elif kind == 2:
            result[start:start] = bytes(result[start:end]) * draw.randint(1, 200)
        else:
            del result[start:]
    return bytes(result)


@cache
def bomb(unit: str, size: int) -> bytes:
    """A few hundred kB that unpack to `size` bytes."""
    packer = zlib.compressobj(9, wbits=31)
    block = (unit.encode() * (1 << 20))[: 1 << 20]
    parts = [packer.compress(block) for _ in range(size >> 20)]
    return b"".join([*parts, packer.flush()])


def packed(draw: random.Random, content: bytes) -> bytes:
    """By gzip; some twice, some behind a bomb or cut off."""
    kind = draw.random()
    if kind < 0.05:
        return bomb(draw.choice(["\0", "a\n", "[", "1,"]), draw.choice([100, 1_000]) << 20)
    result = gzip.compress(content, mtime=0)
    if kind < 0.15:
        return gzip.compress(result)
    if kind < 0.25:
        return result + draw.choice([b"\0" * 100, b"rest", result])
    return result


def parquet(draw: random.Random) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    count = draw.choice([0, 1, 5, 300])
    texts = [a_text(draw).encode(errors="replace").decode() for _ in range(min(count, 20))] * 15
    columns = {
        "text": pa.array(texts[:count] if count <= 300 else texts, pa.string()),
        "bytes": pa.array([draw.randbytes(5) for _ in texts[:count]], pa.binary()),
        "list": pa.array([[1, None]] * len(texts[:count]), pa.list_(pa.int64())),
        "number": pa.array([draw.choice([float("nan"), 1e308, None]) for _ in texts[:count]], pa.float64()),
        "same": pa.array(texts[:count], pa.string()).dictionary_encode(),
    }
    names = draw.sample(sorted(columns), draw.randint(1, 5))
    sink = pa.BufferOutputStream()
    given = [draw.choice([name, name, name, "text", ""]) for name in names]
    pq.write_table(pa.Table.from_arrays([columns[name] for name in names], given), sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())


def zipped(draw: random.Random, files: Files) -> bytes:
    """A folder packed, in which a name may lead outside and an entry may unpack to far more than it says."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            kind = draw.random()
            if kind < 0.1:
                name = draw.choice([f"../{name}", f"/{name}", f"a/../../{name}", f"{name}\0", f"C:\\{name}"])
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            if kind > 0.9:  # a link
                info.external_attr = 0o120777 << 16
                content = f"../{SECRET}.txt".encode()
            archive.writestr(info, content)
        if draw.random() < 0.1:
            archive.writestr("corpus.jsonl", gzip.decompress(bomb("[", 100 << 20)))
    return sink.getvalue()


def beir(draw: random.Random) -> Files:
    ids = [*["d1", "d2"] * 9, "", "\ud800", "9" * 400]
    marks = [
        f"{draw.choice(['q1', 'q2', ''])}\t{draw.choice(ids)}\t{draw.choice(_NUMBERS[:8] + ['1'] * 40)}"
        for _ in range(9)
    ]
    known = '{"_id": "%s", "title": %s, "text": %s}'
    return {
        "corpus.jsonl": "\n".join(known % (name, json_value(draw), json_value(draw)) for name in ("d1", "d2")).encode(
            errors="surrogatepass"
        ),
        "queries.jsonl": damaged(draw, b'{"_id": "q1", "text": "river"}\n{"_id": "q2", "text": "bank"}\n'),
        "qrels/test.tsv": "\n".join(["query-id\tcorpus-id\tscore", *marks]).encode(errors="surrogatepass"),
    }


def trec(draw: random.Random) -> Files:
    entity = f'<!DOCTYPE t [<!ENTITY x SYSTEM "../{SECRET}.txt"><!ENTITY a "{"b" * 99}">]>\n'
    topics = "".join(f"<top><num>{number}</num><title>river {a_text(draw)} &x;&a;</title></top>\n" for number in (1, 2))
    return {
        "corpus.tsv": "\n".join(f"{name}\t{a_text(draw)}" for name in ("d1", "d2", "", "d3", "d1\t")).encode(
            errors="surrogatepass"
        ),
        "topics.txt": (
            draw.choice(["", entity]) + topics * draw.choice([1, 1, 5_000 if len(topics) < 2_000 else 2])
        ).encode(errors="surrogatepass"),
        "qrels.txt": damaged(draw, b"1 0 d1 1\n2 0 d2 0\n1 0 d1 -1\n"),
    }


def session(draw: random.Random) -> bytes:
    names = draw.choices(["t", "q", "view", "__proto__", "\ud800", "k", "seed"], k=4)
    settings = ", ".join(f"{json.dumps(name)}: {json_texts(draw)}" for name in names)
    parts = [
        '"format": "BERT Internals session", "format_version": 1',
        f'"page": {draw.choice(["tokens"] * 4 + ["search", "x"])!r}'.replace("'", '"'),
        f'"settings": {{"sentences": {json_texts(draw)}, {settings}}}',
        f'"models": {draw.choice(["{}"] * 4 + [json_value(draw)])}, "corpus": {draw.choice(["null"] * 4 + [json_value(draw)])}',
    ]
    return ("{" + ", ".join(parts) + "}").encode(errors="surrogatepass")


def vectors(draw: random.Random) -> bytes:
    width = draw.choice([2, 3, 300])
    numbers = [*_NUMBERS, *["0.5"] * 60]
    rows = [" ".join([a_text(draw)[:99], *draw.choices(numbers, k=width)]) for _ in range(20)]
    first = draw.choice([f"20 {width}", "9999999999 9999999999", "2 1000000", "river 0.1 0.2"])
    return "\n".join([first, *rows]).encode(errors="surrogatepass")


def runs(draw: random.Random) -> bytes:
    known = json.loads(
        write_runs(
            [
                Run(
                    *("Layer 6", {"kind": "encoder"}, DATA, {}, {}),
                    ranks=np.array([1, 2, 4, 1]),
                    milliseconds=0.25,
                    index_bytes=1_024,
                )
            ]
        )
    )
    parts = []
    for key, value in known.items():
        inner = json.dumps(value)
        if key == "runs":
            row = [f"{json.dumps(name)}: {json.dumps(each)}" for name, each in value[0].items()]
            at = draw.randrange(len(row))
            row[at] = f"{row[at].split(':')[0]}: {json_value(draw)}"
            inner = draw.choice([f"[{{{', '.join(row)}}}]", json_value(draw)])
        parts.append(f"{json.dumps(key)}: {inner}")
    return ("{" + ", ".join(parts) + "}").encode(errors="surrogatepass")


def lesson(draw: random.Random) -> bytes:
    """One of the dashboard's own, in which a line or two say something else."""
    lines = (ASSETS / "lessons" / "01-tokens.md").read_text(encoding="utf-8").split("\n")
    for _ in range(draw.randint(0, 2)):
        word = draw.choice(["", "", "", "Holds: ", "Says: ", "Show: tokens?s=", "Show: ", "- [x] ", "## ", "Answer: "])
        lines.insert(draw.randint(5, len(lines)), "\n" + word + a_text(draw) + "\n")
    return "\n".join(lines).encode(errors="surrogatepass")


def link(draw: random.Random) -> bytes:
    plain = f'{{"s": {json_texts(draw)}, {json.dumps(a_text(draw)[:99])}: {json_texts(draw)}}}'.encode(
        errors="surrogatepass"
    )
    if draw.random() < 0.1:
        plain = draw.choice([b"[", b"a", b"\0"]) * (50 << 20)
    deflate = zlib.compressobj(9, wbits=-15)
    return b"1" + base64.urlsafe_b64encode(deflate.compress(plain) + deflate.flush()).rstrip(b"=")


def of_table(*names: str) -> Callable[[random.Random], Files]:
    """A table in one of the formats of a corpus, packed or not, with these columns among others."""

    def make(draw: random.Random) -> Files:
        ending = draw.choice(["txt", "csv", "csv", "tsv", "jsonl", "jsonl", "json", "parquet"])
        if ending == "parquet":
            content = parquet(draw)
        elif ending == "txt":
            content = encoded(draw, "\n".join(a_text(draw) for _ in range(draw.randint(0, 60))))
        elif ending in {"csv", "tsv"}:
            content = encoded(draw, table(draw, "," if ending == "csv" else "\t", *names))
        else:
            content = encoded(draw, json_rows(draw, *names))
        content = damaged(draw, content)
        if ending != "parquet" and draw.random() < 0.3:
            return {f"a.{ending}.gz": damaged(draw, packed(draw, content))}
        return {f"a.{ending}": content}

    return make


def of_one(name: str, make: Callable[[random.Random], bytes]) -> Callable[[random.Random], Files]:
    return lambda draw: {name: damaged(draw, make(draw))}


def of_zip(draw: random.Random) -> Files:
    return {"set.zip": damaged(draw, zipped(draw, draw.choice([beir, trec])(draw)))}


KINDS: dict[str, Callable[[random.Random], Files]] = {
    "corpus": of_table("text"),
    "training rows": of_table("anchor", "positive"),
    "scored pairs": of_table("sentence1", "sentence2", "score"),
    "minimal pairs": of_table("first", "second", "kind"),
    "senses": of_table("word", "sense", "sentence"),
    "BEIR": beir,
    "TREC": trec,
    "zip": of_zip,
    "word vectors": of_one("vectors.txt", vectors),
    "runs": of_one("runs.json", runs),
    "session": of_one("session.json", session),
    "lesson": of_one("01-a.md", lesson),
    "link": of_one("link", link),
}


def draw_files(kind: str, seed: int) -> Files:
    """The files of a case; the same for a kind and seed."""
    return KINDS[kind](random.Random(f"{kind} {seed}"))


def read(kind: str, files: Files, folder: Path) -> str:
    """Reads the files as the dashboard does, and uses the texts as its first steps do. What it says of them.

    Raises UserError and ValueError for what is refused.
    """
    from components import packing
    from components.errors import UserError
    from components.lessons.reader import read_lesson
    from components.retrieval.corpora.corpus import columns_of, read_corpus
    from components.retrieval.corpora.minimal_pairs import read_minimal_pairs
    from components.retrieval.corpora.senses import read_senses
    from components.retrieval.evaluation.graded.collection import read_graded, read_graded_folder
    from components.retrieval.evaluation.run_record import read_runs
    from components.retrieval.evaluation.sts import scored_pairs
    from components.retrieval.search.static_vectors import read_static_vectors
    from components.training import data
    from dashboard.sharing import session_file

    (name, content), *_ = files.items()
    if kind == "corpus":
        columns = [column.name for column in columns_of(content, name) if column.is_text]
        corpus = read_corpus(content, name, columns[0] if columns else None)
        return _used(corpus.texts) + str(corpus.report)
    if kind == "training rows":
        rows = data.load(content, name)
        lengths = data.token_lengths(rows, _tokenization())
        return f"{data.split(rows)} {lengths}"
    if kind == "scored pairs":
        return str(scored_pairs(read_corpus(content, name, "sentence1"), 10_000))
    if kind == "minimal pairs":
        return str(read_minimal_pairs(content, name))
    if kind == "senses":
        return str(read_senses(content, name))
    if kind in {"BEIR", "TREC"}:
        for path, inner in files.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(inner)
        from_folder = read_graded_folder(folder)
        return _used(from_folder.documents) + str(from_folder)
    if kind == "zip":
        return str(read_graded(files))
    if kind == "word vectors":
        return str(read_static_vectors(content, name))
    if kind == "runs":
        return str(read_runs(content, name))
    if kind == "session":
        return str(session_file.sentences_of(session_file.read(content)))
    if kind == "lesson":
        (folder / name).write_bytes(content)
        found, problems = read_lesson(folder / name)
        if found is None:
            raise UserError("; ".join(map(str, problems)), "", "")
        return str(found)
    return str(packing.unpack(content.decode("latin-1")))


@cache
def _tokenization():  # type: ignore[no-untyped-def]  # its class imports transformers
    from components.model.files import example_tokenizers

    return example_tokenizers.load("bytes")


def _used(texts) -> str:  # type: ignore[no-untyped-def]  # any sequence of texts
    """What counting tokens and words of a corpus gives."""
    from components.retrieval.search.lexical import make_ranker

    ids, truncated = _tokenization().encode_many(texts[:2_000], 256)
    ranks = make_ranker("bm25", texts[:2_000]).scores("the river bank")
    return f"{sum(map(len, ids))} {sum(truncated)} {ranks[:3]} {texts[:3]}"


def most_memory() -> int:
    """The most memory of this process so far, in bytes. (`ru_maxrss` is not less than that of the process that started it.)"""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) << 10


def answers(lines: Iterator[str], folder: Path) -> Iterator[dict[str, object]]:
    """An answer for each line that names a case."""
    from components.errors import UserError

    (folder / f"{SECRET}.txt").write_text(f"<{SECRET}>")
    for number, line in enumerate(lines):
        case = json.loads(line)
        files = draw_files(case["kind"], case["seed"])
        own = folder / str(number)
        own.mkdir()
        began = time.process_time()
        try:
            said, outcome = read(case["kind"], files, own), "read"
        except (UserError, ValueError) as problem:
            is_ours = isinstance(problem, UserError) or case["kind"] == "link"
            said, outcome = str(problem), "refused" if is_ours else "failed"
        except Exception as problem:  # noqa: BLE001  # the answer names it
            said, outcome = f"{type(problem).__name__}: {problem}", "failed"
        yield {
            **case,
            "outcome": outcome,
            "said": said[:300] if outcome != "read" else "",
            "shows_secret": f"<{SECRET}>" in said,
            "lines": said.count("\n") if outcome == "refused" else 0,
            "seconds": time.process_time() - began,
            "bytes": most_memory(),
            "written": sorted(str(path.relative_to(own)) for path in own.rglob("*") if path.is_file()),
        }
        del files, said


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    with suppress(BrokenPipeError):
        for answer in answers(iter(sys.stdin), Path(sys.argv[1])):
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
