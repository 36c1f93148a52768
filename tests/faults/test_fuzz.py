"""Ten thousand mutated addresses and uploads (`make fuzz`): each is read, or refused with an error for people."""

from __future__ import annotations

import argparse
import gzip
import io
import json
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from components import packing
from components.command_line import program
from components.errors import UserError
from components.retrieval.corpora.corpus import columns_of, read_corpus
from components.retrieval.corpora.readers.files import read_table
from components.retrieval.corpora.readers.limits import Limits
from components.retrieval.corpora.senses import read_senses
from components.retrieval.evaluation.graded.collection import read_graded
from components.retrieval.evaluation.run_record import Run, RunData, read_runs, write_runs
from components.retrieval.index.folder import FORMAT, KIND, MANIFEST, open_index, read_manifest
from components.retrieval.search.static_vectors import read_static_vectors
from dashboard import state
from dashboard.declared import older, table
from dashboard.declared.table import SETTINGS
from dashboard.settings import MOST_PICTURES, untitled
from dashboard.sharing import lecture, session_file
from dashboard.views.lecture import pictures

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(1_800)]  # one test has thousands of cases


def cases(count: int) -> Callable[[Any], Any]:
    """Settings of a test with this many cases, the same in every run."""

    def decorate(test: Any) -> Any:
        chosen = settings(
            max_examples=count,
            deadline=None,
            database=None,
            derandomize=False,
            phases=(Phase.explicit, Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        return seed(20_261_122)(chosen(test))

    return decorate


# --- Addresses

KEYS = sorted({setting.short for setting in SETTINGS})
TEXTS = st.one_of(
    st.text(max_size=40),
    st.integers(-(10**12), 10**12).map(str),
    st.sampled_from(
        ["", "0", "-1", "1e9", "٣", "\ud800", "\0", "../../etc", "\\\\host\\share", "//host/x", "~root", "m.6.mean"]
    ),
    st.sampled_from(
        [text for setting in SETTINGS if setting.default is not None for text in setting.show(setting.default)]
    ),
)
ADDRESSES = st.dictionaries(
    st.one_of(st.sampled_from(KEYS), st.text(max_size=8)), st.lists(TEXTS, min_size=1, max_size=5), max_size=8
)


class Address(dict[str, list[str]]):
    """What Streamlit's query parameters give."""

    def get_all(self, key: str) -> list[str]:
        return self.get(key, [])


def session_of(page: str, address: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> str:
    session: dict[str, Any] = {}
    monkeypatch.setattr("streamlit.session_state", session)
    monkeypatch.setattr("streamlit.query_params", Address(address))
    return state.read_address(page)


@cases(6_000)
@given(page=st.sampled_from(sorted(table.PAGE_BY_KEY)), address=ADDRESSES)
def test_an_address_is_read_or_ignored_with_a_notice(page: str, address: dict[str, list[str]]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        page = session_of(page, address, monkeypatch)
        read = {setting.name: state.get(setting.name) for setting in SETTINGS}
        written, _ = state.address_of(page)
        # What is written leads back to the same values.
        assert session_of(page, written, monkeypatch) == page
        used = [setting.name for setting in table.settings_in(state.view_of(page)) if setting.short in written]
        assert {name: state.get(name) for name in used} == {name: read[name] for name in used}


# --- Uploads

SENTENCES = ["The river bank was steep.", "A bank lends money, “often”.", "Ships sailed; winds blew.", "Ünï, çödé\t!"]
CSV = "sentence,compressed,score\n" + "\n".join(f'"{text}",short {row},{row}' for row, text in enumerate(SENTENCES))
JSONL = "\n".join(
    json.dumps({"sentence": text, "n": row, "list": [1, {"a": None}]}) for row, text in enumerate(SENTENCES)
)
CORPORA: dict[str, bytes] = {
    "a.txt": "\n".join(SENTENCES).encode(),
    "a.csv": CSV.encode(),
    "a.tsv": CSV.replace(",", "\t").encode("utf-16"),
    "a.jsonl": JSONL.encode(),
    "a.json": json.dumps([{"text": text} for text in SENTENCES]).encode(),
    "a.txt.gz": gzip.compress("\n".join(SENTENCES).encode(), mtime=0),
    "a.csv.gz": gzip.compress(CSV.encode(), mtime=0),
}
GRADED: dict[str, bytes] = {
    "corpus.jsonl": b'{"_id": "d1", "title": "T", "text": "a river"}\n{"_id": "d2", "text": "a bank"}\n',
    "queries.jsonl": b'{"_id": "q1", "text": "river"}\n{"_id": "q2", "text": "bank"}\n',
    "test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t2\nq2\td2\t1\nq2\td1\t0\n",
}
ROWS = [
    {"word": "bank", "sense": "river" if row % 2 else "money", "sentence": text} for row, text in enumerate(SENTENCES)
]
SENSES: dict[str, bytes] = {
    "senses.jsonl": "\n".join(map(json.dumps, ROWS)).encode(),
    "senses.csv": (
        "word,sense,sentence\n" + "\n".join(f'bank,{row["sense"]},"{row["sentence"]}"' for row in ROWS)
    ).encode(),
}
_sink = pa.BufferOutputStream()
pq.write_table(
    pa.table(
        {"text": SENTENCES, "label": pa.array(list("aabb")).dictionary_encode(), "list": [[1, None], [], None, [2]]}
    ),
    _sink,
)
PARQUET = _sink.getvalue().to_pybytes()
VECTORS = b"3 4\nriver 0.1 0.2 -0.3 4e-2\nbank 1 2 3 4\nship 0 0 1 1\n"
RUNS = write_runs(
    [
        Run(
            "Layer 6",
            {"kind": "encoder", "model": "m", "layer": 6, "pooling": "mean"},
            RunData("pairs", 4, 4, "ab" * 32),
            {"precision": "float32", "max_length": 256},
            {"torch": "2"},
            ranks=np.array([1, 2, 4, 1]),
            milliseconds=0.25,
            index_bytes=1_024,
        )
    ]
)

FRAGMENTS = st.sampled_from(
    [b"", b"\0", b"\n", b"\r", b'"', b",", b"\t", b"{", b"}", b"[", b"]", b"NaN", b"Infinity", b"1e999", b"-", b"\xff\xfe",
     b"\xf0\x9f", b"\xed\xa0\x80", b"=1+1", b"null", b'{"a":' * 50, b"[" * 2_000, b"," * 300, b"9" * 400, b"\n" * 300]
)  # fmt: skip


INDEX = json.dumps(
    {"kind": KIND, "format": FORMAT, "model": "m", "revision": "r", "dtype": "float32", "dim": 2, "sentences": 1, "tokens": 3,
     "truncated": 0, "corpus": "c", "corpus_hash": "ab", "columns": [], "columns_hash": "", "versions": {"torch": "2"},
     "options": {"layers": [1], "poolings": ["mean"], "max_length": 16, "precision": "float32", "prompt": ""},
     "files": {"a.bin": 8}}
).encode()  # fmt: skip


def index_folder(folder: Path, manifest: bytes) -> Path:
    """A folder with this manifest and the one file that it lists."""
    (folder / MANIFEST).write_bytes(manifest)
    (folder / "a.bin").write_bytes(bytes(8))
    return folder


@st.composite
def mutated(draw: st.DrawFn, content: bytes) -> bytes:
    """The content with up to five pieces changed, inserted, repeated or cut off."""
    result = bytearray(content)
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(result)))
        end = min(len(result), start + draw(st.integers(0, 20)))
        kind = draw(st.sampled_from(["replace", "insert", "repeat", "cut", "random"]))
        if kind == "replace":
            result[start:end] = draw(FRAGMENTS)
        elif kind == "insert":
            result[start:start] = draw(FRAGMENTS)
        elif kind == "repeat":
            result[start:start] = result[start:end] * draw(st.integers(1, 30))
        elif kind == "cut":
            del result[start:]
        else:
            result[start:end] = draw(st.binary(max_size=20))
    return bytes(result)


def refused_or(read: Callable[[], Any]) -> Any:
    """The result, or None where the file is refused with an error for people; any other error fails the test."""
    try:
        return read()
    except UserError:
        return None


@cases(2_000)
@given(st.data())
def test_a_corpus_is_read_or_refused(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(CORPORA)))
    content = data.draw(mutated(CORPORA[name]))
    columns = refused_or(lambda: columns_of(content, name))
    column = data.draw(st.sampled_from([column.name for column in columns])) if columns else None
    corpus = refused_or(lambda: read_corpus(content, name, column))
    if corpus is not None:
        assert len(corpus) >= 1
        assert all(text.strip() and text.encode("utf-8") for text in corpus.texts)
        assert all(len(values) == len(corpus) for values in corpus.columns.values())


@cases(800)
@given(st.data())
def test_judged_collections_are_read_or_refused(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(GRADED)))
    files = GRADED | {name: data.draw(mutated(GRADED[name]))}
    graded = refused_or(lambda: read_graded(files))
    if graded is not None:
        assert len(graded.grades) == len(graded.queries) >= 1
        for place, grades in enumerate(graded.grades):
            assert grades or graded.missing[place]  # all of its relevant documents are lost: it counts 0
            assert all(0 <= number < len(graded.documents) and grade >= 1 for number, grade in grades.items())


@cases(150)
@given(mutated(PARQUET))
def test_parquet_files_are_read_or_refused(content: bytes) -> None:
    # A damaged file that ends a process may do so only to the reader's own.
    table = refused_or(lambda: read_table(content, "a.parquet", limits=Limits(1_000, 4 << 20)))
    if table is not None:
        assert all(len(values) == len(table.numbers) for values in table.columns.values())
        assert set(table.columns).isdisjoint(table.left_out)


@cases(500)
@given(mutated(VECTORS))
def test_static_vectors_are_read_or_refused(content: bytes) -> None:
    vectors = refused_or(lambda: read_static_vectors(content, "vectors.txt"))
    if vectors is not None:
        assert vectors.matrix.shape[0] == len(vectors.rows) >= 1
        assert vectors.matrix.shape[1] >= 2
        assert sorted(vectors.rows.values()) == list(range(len(vectors.rows)))
        assert np.isfinite(vectors.matrix).all()


@cases(400)
@given(mutated(RUNS))
def test_saved_runs_are_read_or_refused(content: bytes) -> None:
    for run in refused_or(lambda: read_runs(content, "runs.json")) or ():
        assert run.ranks.shape == (run.data.queries,)
        assert 1 <= run.ranks.min() <= run.ranks.max() <= run.data.documents


@cases(300)
@given(st.data())
def test_sentences_by_sense_are_read_or_refused(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(SENSES)))
    content = data.draw(mutated(SENSES[name]))
    file = refused_or(lambda: read_senses(content, name))
    if file is not None:
        assert file.rows
        assert all(row.word.strip() and row.sense.strip() and row.sentence.strip() for row in file.rows)
        assert all(row.index is None or 0 <= row.index < 10**9 for row in file.rows)


def test_a_manifest_with_a_file_of_a_long_name_is_refused(tmp_path: Path) -> None:
    manifest = INDEX.replace(b"a.bin", b"a" * 400)
    with pytest.raises(UserError, match="has no file aaa"):
        read_manifest(index_folder(tmp_path, manifest))


@cases(200)
@given(mutated(INDEX))
def test_the_manifest_of_an_index_is_read_or_refused(content: bytes) -> None:
    with TemporaryDirectory() as name:
        folder = index_folder(Path(name), content)
        info = refused_or(lambda: read_manifest(folder))
        if info is not None:
            assert info.options.layers
            assert info.options.poolings
            assert info.dtype in {"float32", "float16"}
        refused_or(lambda: open_index(folder))


# --- Command lines


def options_of_commands() -> dict[str, list[str]]:
    """Each command of the program and the options it takes."""
    parser = program._parser()
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return {
        name: [option for action in command._actions for option in action.option_strings if option not in LEFT_OUT]
        for name, command in commands.choices.items()
    }


LEFT_OUT = {"-h", "--help", "--debug"}  # --debug writes where an error happened, on many lines
COMMAND_LINES = options_of_commands()
del COMMAND_LINES["serve"]  # it starts a cluster, and runs until it is stopped
VALUES = st.one_of(
    st.text(st.characters(exclude_characters="\0"), max_size=30),  # no argument of a program holds a zero byte
    st.sampled_from(
        [
            *("", "-", "--", "0", "-1", "1e9", "nan", "9" * 40, "6", "mean", "all", "1,2,3", "%s", "{}", "x" * 5_000),
            *("texts.txt", "table.csv", "bad.jsonl", "folder", "no/such/file", "..", "~nobody/x"),
            *("/dev/null", "/proc/self/mem", "\ud800", "\u202e"),
        ]
    ),
)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a few files, and nothing to download."""
    folder = tmp_path_factory.mktemp("commands")
    (folder / "texts.txt").write_text("A cat slept.\nShips sailed.\n")
    (folder / "table.csv").write_text("a,b\n1,2\n")
    (folder / "bad.jsonl").write_bytes(b'\xff{"a":')
    (folder / "folder").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("BERT_INTERNALS_CACHE", str(folder / "cache"))
        yield folder


@cases(600)
@given(data=st.data())
def test_a_command_line_is_obeyed_or_refused_in_one_line(workplace: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(COMMAND_LINES)))
    words = st.one_of(st.sampled_from(COMMAND_LINES[name]), VALUES)
    arguments = [name, *data.draw(st.lists(words, max_size=6))]
    output, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(output), redirect_stderr(errors):
        status = program.main(arguments)
    assert status in {0, 2}, errors.getvalue()
    if status == 2:
        assert errors.getvalue().rstrip("\n").count("\n") == 0


def test_the_files_are_read_before_they_are_mutated() -> None:
    """Otherwise every case would be refused for the same reason."""
    for name, content in CORPORA.items():
        column = next(column.name for column in columns_of(content, name) if column.is_text)
        assert len(read_corpus(content, name, column)) == len(SENTENCES), name
    assert len(read_graded(GRADED).grades) == 2
    assert read_static_vectors(VECTORS, "vectors.txt") is not None
    assert len(read_runs(RUNS, "runs.json")) == 1
    with TemporaryDirectory() as folder:
        assert read_manifest(index_folder(Path(folder), INDEX)).dim == 2
    assert read_table(PARQUET, "a.parquet").columns["text"] == SENTENCES
    for name, content in SENSES.items():
        assert len(read_senses(content, name).rows) == len(SENTENCES), name


# --- What people share

SHARED = {setting.name: setting.show(setting.default) for setting in SETTINGS if setting.default not in (None, ())}
SESSION = json.dumps(
    {"format": session_file.FORMAT, "format_version": 1, "page": "search", "settings": SHARED,
     "models": {"model": {"key": "embedded", "revision": "r"}}, "versions": {"torch": "2"},
     "corpus": {"name": "c", "included": False}}
).encode()  # fmt: skip
PACKED = packing.pack({"s": SENTENCES, "view": ["tensors"], "t": ["1", "2"]}).encode()


@cases(1_000)
@given(content=mutated(SESSION))
def test_a_session_file_is_opened_or_refused(content: bytes) -> None:
    try:
        file = session_file.read(content)
    except UserError:
        return
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("streamlit.session_state", {})
        session_file.open_session(file)
        again = state.chosen()
        assert state.apply_chosen(again) == []  # what was accepted can be saved and opened again
        assert state.chosen() == again


STARS = st.builds(
    "{}?{}#{}{}".format,
    st.sampled_from(["inside", "lecture", "home", "nowhere"]),
    st.sampled_from(
        ["", "v=block", "v=lecture", "v=none", "s=%ff&m=../x", "zip=1AAAA", "v=pieces&s=%3Cb%3E&lecture=a"]
    ),
    st.sampled_from(["x", "%ff", "%00", "<b>", "a" * 200]),
    st.sampled_from(["", "#%3Cscript%3E", "#" + "%F0%9F" * 100, "#%ED%A0%80"]),
)


@cases(500)
@given(
    number=st.sampled_from([1, 2]),
    page=st.sampled_from(sorted(table.PAGE_BY_KEY)),
    chosen=st.dictionaries(
        st.one_of(st.sampled_from(sorted(table.SETTING)), st.text(max_size=8)),
        st.lists(TEXTS, max_size=41),
        max_size=12,
    ),
    stars=st.lists(STARS, max_size=MOST_PICTURES + 1, unique=True),
)
def test_a_session_file_of_any_settings_is_opened_and_can_be_saved(
    number: int, page: str, chosen: dict[str, list[str]], stars: list[str]
) -> None:
    content = {"format": session_file.FORMAT, "format_version": number, "page": page}
    written = json.dumps({**content, "settings": chosen | {"lecture": stars}, "corpus": {"name": chosen}})
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("streamlit.session_state", {})
        session_file.open_session(session_file.read(written.encode()))
        again = state.chosen()
        assert state.apply_chosen(again) == []
        for other in table.PAGE_BY_KEY:
            state.address_of(other)
        listed = lecture.listed()
        assert len(listed) == (len({*map(untitled, stars)}) if len(stars) <= MOST_PICTURES else 0)
        for noted in listed:
            assert pictures._card(noted)["title"]
        assert b"<script>" not in lecture.saver(listed)().partition(b"<body>")[2].partition(b"<footer")[0]


@cases(1_000)
@given(word=st.one_of(st.text(max_size=40), mutated(PACKED).map(lambda content: content.decode("latin-1"))))
def test_packed_texts_are_read_or_ignored_with_a_notice(word: str) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        session_of("text", {older.PACKED: [word], table.VIEW: ["input-tensors"]}, monkeypatch)
        assert state.get("text_view") == "input-tensors"
        assert all(isinstance(text, str) for text in state.get("sentences"))
