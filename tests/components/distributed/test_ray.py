"""Real clusters on this machine: the same index and the same ranks as in one process, whatever is lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch

from components.distributed import cluster, embedding
from components.distributed.cluster import connected
from components.distributed.embedding import BlockEmbedder, embed_on_ray
from components.distributed.ranks import gold_ranks_on_ray
from components.errors import InputError, ModelError
from components.jobs import Stopped
from components.model.backend import Backend
from components.retrieval.corpora.texts import Texts
from components.retrieval.evaluation.ranks import gold_ranks
from components.retrieval.index.build import build_index
from components.retrieval.index.unfinished import UnfinishedVectors
from tests.components.command_line.in_process import run

ROOT = Path(__file__).parents[3]
MIB = 1 << 20
HERE = "127.0.0.2"  # loopback too; Ray replaces 127.0.0.1 by the address of the network
BLOCK = 8  # sentences
NODE = {"num_cpus": 1, "object_store_memory": 100 * MIB, "node_ip_address": HERE}


@pytest.fixture(scope="module")
def nodes(no_other_cluster):
    """The cluster: its first node stays, and tests may add others and end them."""
    cluster.imported_ray()  # which also keeps Ray from sending statistics
    from ray.cluster_utils import Cluster

    started = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    started.second = started.add_node(**NODE)
    yield started
    started.shutdown()


@pytest.fixture(scope="module")
def backend(tiny_folder) -> Backend:
    return Backend.load(str(tiny_folder("bert")), device_name="cpu")


@pytest.fixture(scope="module")
def corpus() -> Texts:
    words = ["the", "cat", "dog", "bank", "river", "money", "sat", "ran", "walking", "red", "hat"]
    numbers = np.random.default_rng(0)
    texts = tuple(" ".join(numbers.choice(words, size=int(numbers.integers(1, 20)))) for _ in range(10 * BLOCK + 3))
    return Texts("words", texts, {"number": tuple(map(str, range(len(texts))))})


@pytest.fixture(scope="module")
def options(backend):
    return backend.embed_options((1, 3), ("mean", "cls"), precision="float32")


@pytest.fixture(scope="module")
def expected(backend, corpus, options, tmp_path_factory):
    """The index of one process."""
    return build_index(backend, corpus, tmp_path_factory.mktemp("one") / "index", options, sentences_per_block=BLOCK)


def assert_same_index(index, expected) -> None:
    assert index.info == expected.info  # counts of tokens and the hash of the corpus included
    assert list(index.texts) == list(expected.texts)
    assert list(index.columns["number"]) == list(expected.columns["number"])
    for cell, engine in expected.engines.items():
        np.testing.assert_allclose(index.engines[cell].vectors, engine.vectors, atol=1e-5)
    assert {path.name for path in index.folder.iterdir()} == {path.name for path in expected.folder.iterdir()}


def record(part: Path) -> set[int]:
    """The complete blocks of an unfinished index."""
    content = json.loads((part / "done.json").read_text())
    return {*range(content["blocks"]), *map(int, content.get("later", ()))}


def test_a_cluster_of_ones_own_listens_to_this_machine_alone_and_gives_what_one_process_gives(
    no_other_cluster, backend, corpus, options, expected, tmp_path
):
    """Whoever reaches a port of Ray can run code. One node, with which an index is built and ranks are computed."""
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    own = {connection.laddr for connection in listening_of(psutil.Process())}
    with ExitStack() as resources:
        ray = a_cluster_of_its_own(resources)
        assert ray.get(ray.remote(lambda: 6 * 7).remote()) == 42
        started = [process for process in psutil.Process().children(recursive=True) if process.pid not in before]
        addresses = [connection.laddr for process in started for connection in listening_of(process)]
        addresses += [connection.laddr for connection in listening_of(psutil.Process()) if connection.laddr not in own]
        assert len(addresses) > 3
        assert {address.ip.removeprefix("::ffff:") for address in addresses} == {"127.0.0.1"}

        passes = backend.forward_passes
        done: list[int] = []
        index = build_index(
            backend,
            corpus,
            tmp_path / "x",
            options,
            progress=lambda at, total: done.append(at),
            embed=embed_on_ray,
            sentences_per_block=4 * BLOCK,
        )
        assert sorted(done) == done == [0, *done[1:-1], len(corpus)]
        assert len(done) == 1 + 3
        assert backend.forward_passes == passes  # all of it was the workers'
        assert_same_index(index, expected)
        assert_same_ranks(None)
    assert not ray.is_initialized()


def a_cluster_of_its_own(resources: ExitStack) -> Any:
    """Ray, started here. It gives up where that takes more than 30 seconds, as on a busy machine: then it is tried again."""
    for _ in range(2):
        with suppress(Exception):
            return resources.enter_context(connected())
    return resources.enter_context(connected())


def listening_of(process: psutil.Process) -> list[Any]:
    """What a process listens to; nothing of one that has ended meanwhile."""
    with suppress(psutil.NoSuchProcess):
        return [each for each in process.net_connections("inet") if each.status == psutil.CONN_LISTEN]
    return []


@pytest.mark.rare
def test_a_stopped_build_goes_on_and_equals_that_of_one_process(nodes, backend, corpus, options, expected, tmp_path):
    on_ray = partial(embed_on_ray, address=nodes.address)
    seen: list[int] = []
    with pytest.raises(Stopped):
        build_index(
            backend,
            corpus,
            tmp_path / "x",
            options,
            progress=lambda done, total: seen.append(done),
            is_stopped=lambda: len(seen) > 3,
            embed=on_ray,
            sentences_per_block=BLOCK,
        )
    assert seen[0] == 0
    complete = record(tmp_path / "x.part")
    assert len(complete) == 3
    shutil.copytree(tmp_path / "x.part", tmp_path / "y.part")
    again: list[int] = []
    before = backend.forward_passes
    index = build_index(
        backend,
        corpus,
        tmp_path / "x",
        options,
        progress=lambda done, total: again.append(done),
        embed=on_ray,
        sentences_per_block=BLOCK,
    )
    assert again[0] == seen[-1]
    assert len(again) == 1 + 11 - len(complete)  # each of the other blocks once
    assert backend.forward_passes == before  # all of it was the workers'
    assert_same_index(index, expected)
    one_process = build_index(backend, corpus, tmp_path / "y", options, sentences_per_block=BLOCK)
    assert 0 < backend.forward_passes - before <= BLOCK * (11 - len(complete))  # the other blocks alone
    assert_same_index(one_process, expected)


@pytest.mark.rare
def test_a_node_that_is_killed_costs_nothing_that_was_complete(
    nodes, backend, corpus, options, expected, tmp_path, monkeypatch
):
    """The node is killed once half of the blocks are in; what it had not given back goes to the other one."""
    written: list[int] = []
    finish = UnfinishedVectors.finish

    def finish_and_kill(self, block: int, tokens: int, truncated: int) -> None:
        finish(self, block, tokens, truncated)
        written.append(block)
        if len(written) == 4:
            nodes.second.kill_raylet()  # SIGKILL, and its workers end with it

    monkeypatch.setattr(UnfinishedVectors, "finish", finish_and_kill)
    index = build_index(
        backend,
        corpus,
        tmp_path / "x",
        options,
        embed=partial(embed_on_ray, address=nodes.address),
        sentences_per_block=BLOCK,
    )
    assert sorted(written) == list(range(11))  # each once
    assert_same_index(index, expected)


@pytest.mark.rare
def test_a_worker_that_always_dies_ends_the_build(nodes, backend, corpus, options, tmp_path, monkeypatch):
    class Dying:  # not of a module, so that Ray sends it as it is
        def __init__(self, *arguments) -> None:
            self.arguments = arguments

        def __call__(self, row):
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(embedding, "BlockEmbedder", Dying)
    monkeypatch.setattr(embedding, "WORKER_RESTARTS", 1)
    with pytest.raises(InputError, match="work on the cluster failed"):
        build_index(backend, corpus, tmp_path / "x", options, embed=partial(embed_on_ray, address=nodes.address))
    assert record(tmp_path / "x.part") == set()


def test_a_worker_says_what_a_person_can_mend(backend, options):
    """Weights of another revision, here without the cluster in between."""
    row = {"block": 3, "texts": np.array(["the cat"], dtype=object)}
    good = BlockEmbedder(backend.spec.key, backend.revision, options, "float16", torch.get_num_threads())(row)
    assert (good["block"], good["error"], good["tokens"]) == (3, ["", "", ""], 4)
    assert (good["vectors"].shape, good["vectors"].dtype) == ((2, 2, 1, 32), np.float16)
    bad = BlockEmbedder(backend.spec.key, "another", options, "float32", torch.get_num_threads())(row)
    assert "another revision" in bad["error"][0]


def assert_same_ranks(address: str | None) -> None:
    """Ranks on a cluster are those of one process, ties included, for both similarities."""
    numbers = np.random.default_rng(1)
    documents = numbers.normal(size=(700, 16)).astype(np.float32)
    documents[300:420] = documents[5]  # ties, of which many are the correct answer
    queries = documents + numbers.normal(scale=0.7, size=documents.shape).astype(np.float32)
    queries[300:330] = documents[5]
    done: list[int] = []
    for cosine in (True, False):
        ranks = gold_ranks_on_ray(
            queries,
            documents,
            progress=lambda at, total: done.append(at),
            cosine=cosine,
            address=address,
            queries_per_slice=256,
        )
        np.testing.assert_array_equal(ranks, gold_ranks(queries, documents, cosine=cosine))
    assert ranks[300:330].min() > 100
    assert len(done) == 6
    assert done[2] == done[-1] == 700


@pytest.mark.rare
def test_ranks_are_those_of_one_process_ties_included(nodes):
    assert_same_ranks(nodes.address)


@pytest.mark.rare
def test_ranks_of_vectors_that_are_no_numbers_are_refused_as_on_one_machine(nodes):
    queries = np.full((2, 4), np.nan, np.float32)
    with pytest.raises(InputError) as here:
        gold_ranks(queries, np.eye(4, dtype=np.float32))
    with pytest.raises(InputError) as there:
        gold_ranks_on_ray(queries, np.eye(4, dtype=np.float32), address=nodes.address)
    assert str(there.value) == str(here.value)


@pytest.mark.rare
def test_the_command_gives_the_index_of_one_process(nodes, backend, tmp_path):
    parts = tmp_path / "parts"
    (parts / "b").mkdir(parents=True)
    (parts / "a.txt").write_text("the cat\nthe dog ran\n")
    (parts / "b" / "c.jsonl").write_text('{"text": "money in the bank"}\n{"text": "a red hat"}\n')
    (parts / "_SUCCESS").write_text("")
    (parts / "notes.pdf").write_text("")
    common = ("--model", backend.spec.key)
    here = run("index", str(parts), "--out", str(tmp_path / "here"), *common)
    there = run(
        "index",
        parts.as_uri(),
        "--out",
        str(tmp_path / "there"),
        *common,
        "--engine",
        "ray",
        "--address",
        nodes.address,
    )
    assert (here.returncode, there.returncode) == (0, 0), here.stderr + there.stderr
    assert "notes.pdf" in there.stderr
    search = run("search", str(tmp_path / "there"), "the cat", "-k", "4", *common, "--json", "-")
    assert search.returncode == 0
    texts = [hit["text"] for hit in json.loads(search.stdout)["results"]]
    assert sorted(texts) == ["a red hat", "money in the bank", "the cat", "the dog ran"]
    assert texts[0] == "the cat"
    manifests = [json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("here", "there")]
    assert manifests[0]["corpus_hash"] == manifests[1]["corpus_hash"]


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.2:0", "127.0.0.2:99999", ":6379", "10.0.0.1:six"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(InputError, match="no address of a Ray cluster"), connected(address):
        pass


@pytest.mark.parametrize("answers", [False, True])
def test_an_address_without_a_cluster_is_noticed_soon(answers, monkeypatch):
    """Nobody listens there, or something that never answers: Ray itself, which would wait for minutes, is not asked."""
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(cluster.imported_ray(), "init", lambda **_: pytest.fail("Ray was asked"))
    with socket.socket() as listening:
        listening.bind((HERE, 0))
        if answers:
            listening.listen()
        place = f"{HERE}:{listening.getsockname()[1]}"
        with pytest.raises(InputError, match=f"No Ray cluster could be reached at {place}"), connected(place):
            pass


def test_without_ray_the_command_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    (tmp_path / "x.txt").write_text("the cat\n")
    done = run("index", str(tmp_path / "x.txt"), "--out", str(tmp_path / "x"), "--engine", "ray")
    assert done.returncode == 2
    assert "pip install -r requirements-scale.txt" in done.stderr
    assert not (tmp_path / "x.part").exists()


def test_an_address_needs_the_engine(tmp_path):
    done = run("index", "x.txt", "--out", str(tmp_path / "x"), "--address", "auto")
    assert done.returncode == 2
    assert "--engine ray" in done.stderr


def test_no_package_for_scale_is_imported_before_it_is_asked_for():
    code = (
        "import sys; import components.distributed.cluster, components.distributed.embedding, components.distributed.ranks;"
        "import components.command_line.program; from components.retrieval.engines import approximation, opening;"
        "print({'ray', 'usearch', 'pymilvus', 'milvus_lite'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=240, check=True
    )
    assert done.stdout.strip() == "set()"


def test_errors_for_people_come_back_from_another_process():
    import pickle

    for problem in (InputError("a.", "b.", "c."), ModelError("device", "a.", "b.", "c.")):
        again = pickle.loads(pickle.dumps(problem))
        assert (type(again), str(again), vars(again)) == (type(problem), str(problem), vars(problem))
