"""Data sets by name: which files of a repository, and the hub's real client against a server on this machine."""

from __future__ import annotations

import gzip
import json
import types

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import file_download

from components.errors import DatasetError, InputError
from components.retrieval.corpora.corpus import Limits, read_corpus
from components.retrieval.corpora.hub_datasets import choose_files, dataset_name, fetch_dataset
from tests.support.hub_server import HubServer, Refusal, use_hub

COMPRESSION = "embedding-data/sentence-compression"
PACKED = "sentence-compression_compressed.jsonl.gz"
SHARDED = "somebody/news"
PAIRS = [[f"A long sentence about thing number {i}.", f"Thing {i}."] for i in range(50)]


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A hub with a data set of pairs, as the original has them, and one of parquet parts in two splits."""
    monkeypatch.setattr(file_download, "time", types.SimpleNamespace(sleep=lambda seconds: None))
    pairs, news = tmp_path / "pairs", tmp_path / "news"
    pairs.mkdir()
    (news / "data").mkdir(parents=True)
    lines = "\n".join(json.dumps({"set": pair}) for pair in PAIRS)
    (pairs / PACKED).write_bytes(gzip.compress(lines.encode(), mtime=0))
    for name in ("README.md", ".gitattributes", "loader.py", "dataset_infos.json", "data.pkl"):
        (pairs / name).write_bytes(b"never fetched")
    for split, part, parts in (("train", 0, 2), ("train", 1, 2), ("test", 0, 1)):
        table = pa.table({"text": [f"{split} sentence {part}.{i}" for i in range(3)], "label": [0, 1, 2]})
        pq.write_table(table, news / "data" / f"{split}-{part:05}-of-{parts:05}.parquet")
    with HubServer({f"datasets/{COMPRESSION}": pairs, f"datasets/{SHARDED}": news}) as running:
        use_hub(monkeypatch, running.address, tmp_path / "cache")
        yield running


def problem_of(*arguments, **options):
    with pytest.raises(DatasetError) as caught:
        fetch_dataset(*arguments, **options)
    return caught.value.kind


def test_pairs_are_fetched_and_unpacked(server):
    steps = []
    paths = fetch_dataset(COMPRESSION, progress=lambda done, total: steps.append((done, total)))
    assert server.fetched() == [PACKED]
    size = paths[0].stat().st_size
    assert steps[-1] == (size, size)
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    corpus = read_corpus(paths, COMPRESSION)
    assert corpus.texts == tuple(pair[0] for pair in PAIRS)
    assert corpus.columns["compressed"] == tuple(pair[1] for pair in PAIRS)


def test_the_training_split_is_fetched_in_its_parts(server):
    corpus = read_corpus(fetch_dataset(SHARDED), SHARDED, limits=None)
    assert corpus.texts == tuple(f"train sentence {part}.{i}" for part in (0, 1) for i in range(3))
    assert read_corpus(fetch_dataset(SHARDED, split="test"), SHARDED).texts[0] == "test sentence 0.0"
    assert len(server.fetched()) == 3


def test_what_was_fetched_is_found_again_without_a_network(server):
    paths = fetch_dataset(SHARDED)
    server.stop()
    assert fetch_dataset(SHARDED) == paths
    assert problem_of(SHARDED, split="test") == "offline"
    assert problem_of(COMPRESSION) == "offline"


def test_what_is_cached_is_not_fetched_again(server):
    paths = fetch_dataset(SHARDED)
    fetched = server.fetched()
    assert fetch_dataset(SHARDED) == paths
    assert server.fetched() == fetched


def test_a_fetch_that_was_broken_off_is_not_taken_for_whole(server):
    fetch_dataset(SHARDED, split="test")
    stopped = []

    def is_stopped():
        stopped.append(True)
        return len(server.fetched()) > 1

    assert problem_of(SHARDED, is_stopped=is_stopped) == "stopped"
    assert stopped
    server.stop()
    assert problem_of(SHARDED) == "offline"


def test_told_to_stay_offline_nobody_is_asked(server, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DatasetError, match="HF_HUB_OFFLINE") as caught:
        fetch_dataset(COMPRESSION)
    assert caught.value.kind == "offline"
    assert server.requests == []


@pytest.mark.parametrize(
    ("refusal", "problem"),
    [
        (Refusal(401, "GatedRepo"), "gated"),
        (Refusal(403, "GatedRepo"), "gated"),
        (Refusal(404, "RepoNotFound"), "not_found"),
        (Refusal(404, "RevisionNotFound"), "not_found"),
        (Refusal(500), "offline"),
    ],
)
def test_what_the_hub_refuses_is_explained(server, refusal, problem):
    server.refusal = refusal
    with pytest.raises(DatasetError) as caught:
        fetch_dataset(COMPRESSION)
    assert caught.value.kind == problem
    assert "data set" in caught.value.problem
    assert "model" not in str(caught.value)


def test_a_file_that_arrives_short_is_found_out(server):
    server.shortened[PACKED] = 20
    assert problem_of(COMPRESSION) in {"damaged", "offline"}
    server.shortened.clear()
    assert len(read_corpus(fetch_dataset(COMPRESSION), COMPRESSION).texts) == len(PAIRS)


def test_more_than_the_limit_is_not_fetched(server):
    with pytest.raises(InputError, match="python -m components index"):
        fetch_dataset(COMPRESSION, limits=Limits(1_000, 100))
    assert server.fetched() == []


@pytest.mark.parametrize("revision", ["../../etc", "a b", "x" * 300])
def test_a_revision_that_is_none_is_refused(server, revision):
    with pytest.raises(InputError, match="not a revision"):
        fetch_dataset(COMPRESSION, revision=revision)


@pytest.mark.parametrize(
    "text",
    [
        COMPRESSION,
        f" {COMPRESSION}/ ",
        f"datasets/{COMPRESSION}",
        f"https://huggingface.co/datasets/{COMPRESSION}",
    ],
)
def test_a_name_may_be_pasted_as_an_address(text):
    assert dataset_name(text) == COMPRESSION


@pytest.mark.parametrize("text", ["", "a/b/c", "../secrets", "a--b/c", "with space/x", "/etc/passwd", "a/" + "b" * 100])
def test_a_text_that_is_no_name_is_refused(text):
    with pytest.raises(InputError, match="not the name of a data set"):
        dataset_name(text)


@pytest.mark.parametrize(
    ("paths", "split", "chosen"),
    [
        (["README.md", PACKED], None, [PACKED]),
        ([PACKED], "train", [PACKED]),
        (["a.csv", "a.parquet", "a.jsonl"], None, ["a.parquet"]),
        (["train.csv", "test.csv", "dev.csv"], None, ["train.csv"]),
        (["train.csv", "test.csv", "dev.csv"], "validation", ["dev.csv"]),
        (["data/test-00000-of-00001.parquet"], None, ["data/test-00000-of-00001.parquet"]),
        (["b.txt", "a.txt"], None, ["a.txt", "b.txt"]),
        (["en/train.csv", "de/train.csv"], "de", ["de/train.csv"]),
        (["en/train.csv", "en/test.csv", "de/test.csv"], "en/test", ["en/test.csv"]),
        (["plain_text/train.csv", "other/train.csv"], None, ["plain_text/train.csv"]),
        (["train/a.jsonl", "train/b.jsonl", "test/a.jsonl"], "train", ["train/a.jsonl", "train/b.jsonl"]),
        (
            ["latest_news.csv", "contest.csv"],
            "train",
            ["contest.csv", "latest_news.csv"],
        ),  # no word of theirs is a split
        (["data.jsonl", "dataset_infos.json", "code.py", "x.pkl"], None, ["data.jsonl"]),
    ],
)
def test_which_files_are_a_split(paths, split, chosen):
    assert list(choose_files(paths, "owner/name", split)) == chosen


@pytest.mark.parametrize(
    ("paths", "split", "words"),
    [
        (["README.md", "weights.pkl", "load.py"], None, "no files in a format"),
        (["en/train.csv", "de/train.csv"], None, "several subsets"),
        (["en/train.csv", "de/train.csv"], "train", "no single split"),
        (["train.csv"], "test", "no single split"),
        (["train.csv"], "nonsense", "no single split"),
    ],
)
def test_a_choice_that_is_none_lists_what_there_is(paths, split, words):
    with pytest.raises(InputError, match=words) as caught:
        choose_files(paths, "owner/name", split)
    if "files in" not in words:
        assert "train" in caught.value.expected


COLLECTIONS = {
    "flat": ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "README.md"],
    "folders": [
        "corpus/corpus-00000-of-00001.parquet",
        "queries/queries-00000-of-00001.parquet",
        "qrels/test-00000-of-00001.parquet",
    ],
    "parts": ["data/corpus-00000-of-00001.parquet", "data/queries-00000-of-00001.parquet", "data/qrels-test.parquet"],
    "english": ["en/corpus.jsonl", "en/queries.jsonl", "en/qrels.tsv"],
}


@pytest.mark.parametrize("layout", COLLECTIONS)
def test_of_a_retrieval_collection_the_documents_alone_are_chosen(layout):
    paths = COLLECTIONS[layout]
    assert choose_files(paths, "example-owner/claims") == (paths[0],)


def test_queries_of_a_collection_can_be_asked_for():
    paths = COLLECTIONS["folders"]
    assert choose_files(paths, "example-owner/claims", "queries") == (paths[1],)


def test_a_query_does_not_find_itself_among_the_documents(monkeypatch, tmp_path):
    """As mteb publishes its data sets: the title stands before the text, and stays beside it too."""
    place = tmp_path / "claims"
    place.mkdir()
    documents = [{"_id": f"d{n}", "title": f"Title {n}", "text": f"Document number {n}."} for n in range(6)]
    queries = [{"_id": f"q{n}", "text": f"Claim number {n}."} for n in range(4)]
    (place / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)))
    (place / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    with HubServer({"datasets/example-owner/claims": place}) as running:
        use_hub(monkeypatch, running.address, tmp_path / "cache")
        online = read_corpus(fetch_dataset("example-owner/claims"), "example-owner/claims")
    assert online.texts == tuple(f"{row['title']} {row['text']}" for row in documents)
    assert online.columns["title"] == tuple(row["title"] for row in documents)
