"""The hub's real client against a server on this machine."""

from __future__ import annotations

import itertools
import shutil
import socketserver
import threading
import time
import types

import numpy as np
import pytest
from huggingface_hub import constants, file_download

from components.errors import ModelError
from components.model.backend import Backend
from components.model.catalog import ModelSpec
from components.model.files import hub, slow_hub
from components.model.files.sources import find_files
from components.model.verification.comparison import verify
from tests.support import decoder_models, hub_server, static_models
from tests.support.closeness import assert_close
from tests.support.hub_server import HubServer, Refusal, use_hub
from tests.support.tiny import pooling_module, publish, save_tiny

EMBEDDED = "sentence-transformers/all-MiniLM-L6-v2"
TINY = "somebody/tiny-bert"
WEIGHTS = "model.safetensors"


@pytest.fixture
def no_waiting(monkeypatch):
    """The client sleeps a second before each of its five retries; here it does not."""
    monkeypatch.setattr(file_download, "time", types.SimpleNamespace(sleep=lambda seconds: None))


@pytest.fixture
def server(monkeypatch, embedded_folder, tiny_folder, tmp_path):
    """A hub with the embedded model and a tiny one whose repository has the usual other files as well."""
    tiny = tmp_path / "tiny"
    shutil.copytree(tiny_folder("bert"), tiny)
    for name in ("pytorch_model.bin", "modeling_tiny.py", "README.md", "tf_model.h5", "training_args.bin"):
        (tiny / name).write_bytes(b"never fetched")
    (tiny / "onnx").mkdir()
    (tiny / "onnx" / "config.json").write_text("{}")
    with HubServer({EMBEDDED: embedded_folder, TINY: tiny}) as running:
        use_hub(monkeypatch, running.address, tmp_path / "cache")
        yield running


def problem_of(call, *arguments, **options):
    with pytest.raises(ModelError) as caught:
        call(*arguments, **options)
    return caught.value.kind


def wanted_files(folder):
    return {path.name: path.stat().st_size for path in folder.iterdir() if path.suffix in {".json", ".safetensors"}} | {
        name: (folder / name).stat().st_size for name in ("vocab.txt", "1_Pooling/config.json")
    }


def test_a_download_reports_its_progress_and_gives_the_embedded_models_vectors(server, embedded, embedded_folder):
    steps = []
    backend = Backend.load(EMBEDDED, device_name="cpu", progress=lambda done, total: steps.append((done, total)))

    wanted = wanted_files(embedded_folder)
    assert sorted(server.fetched()) == sorted(wanted)
    done = [step[0] for step in steps]
    assert done == sorted(done)
    assert {step[1] for step in steps} == {sum(wanted.values())}
    assert done[-1] == sum(wanted.values())
    assert len(set(done)) > len(wanted)  # the weights arrive in several steps

    assert backend.revision == server.commit(EMBEDDED)
    texts = ["I put money in the bank.", "The river bank was muddy that year."]
    here, there = embedded.run(texts), backend.run(texts)
    assert_close(there.hidden_states, here.hidden_states)
    np.testing.assert_array_equal(there.input_ids, here.input_ids)
    assert backend.facts == embedded.facts


def test_a_second_load_needs_no_hub(server):
    first = Backend.load(TINY, device_name="cpu")
    server.stop()
    asked = len(server.requests)
    second = Backend.load(TINY, device_name="cpu")
    assert len(server.requests) == asked
    assert second.revision == first.revision == server.commit(TINY)
    np.testing.assert_array_equal(second.run(["the cat sat"]).hidden_states, first.run(["the cat sat"]).hidden_states)


def test_a_cached_model_is_not_asked_for_again(server):
    assert hub.repositories_here() == frozenset()
    folder = hub.download(TINY)
    assert hub.cached_folder(TINY) == folder
    assert hub.repositories_here() == {TINY}
    fetched = server.fetched()
    assert hub.download(TINY) == folder  # asked for all the same, it fetches nothing twice
    assert server.fetched() == fetched


def test_a_hub_that_is_down_is_found_out_quickly(server):
    server.stop()
    start = time.monotonic()
    with pytest.raises(ModelError) as caught:
        Backend.load(TINY, device_name="cpu")
    assert time.monotonic() - start < 15  # left to itself, the library tries again for 23 s
    assert caught.value.kind == "offline"
    assert server.address in caught.value.problem
    assert TINY in caught.value.fix


def test_a_hub_that_never_answers_is_found_out_quickly(server):
    server.silent = True
    start = time.monotonic()
    assert problem_of(Backend.load, TINY, device_name="cpu") == "offline"
    assert time.monotonic() - start < 15  # left to itself, the library tries again for 23 s
    assert server.requests == [("HEAD", "/")]


@pytest.mark.parametrize("variable", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_told_to_stay_offline_nobody_is_asked(server, monkeypatch, variable):
    monkeypatch.setenv(variable, "1")
    with pytest.raises(ModelError) as caught:
        Backend.load(TINY, device_name="cpu")
    assert caught.value.kind == "offline"
    assert "HF_HUB_OFFLINE" in caught.value.problem
    assert not hub.is_reachable(fresh=True)
    assert server.requests == []


def test_the_probe_is_asked_once_and_kept(server):
    assert hub.is_reachable()
    assert hub.is_reachable()
    assert server.requests == [("HEAD", "/")]
    assert hub.is_reachable(fresh=True)
    assert len(server.requests) == 2


def test_a_probe_is_of_one_address(server, monkeypatch):
    assert hub.is_reachable()
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # the discard port: nobody listens
    assert not hub.is_reachable()


def test_a_hub_that_answers_with_an_error_is_in_reach(server):
    server.refusal = Refusal(503)
    assert hub.is_reachable()


@pytest.mark.parametrize("status", [401, 404])
def test_an_unknown_repository(server, status):
    server.refusal = Refusal(status, "RepoNotFound")
    assert problem_of(Backend.load, "nobody/nothing", device_name="cpu") == "not_found"
    assert server.fetched() == []


@pytest.mark.parametrize("name", ["nobody/nothing", "nobody/bert.", "nobody/bert.git", "nobody/größe"])
def test_a_name_the_hub_does_not_or_cannot_have(server, name):
    assert hub.cached_folder(name) is None
    assert problem_of(find_files, ModelSpec(name, "hub", name)) == "not_found"
    assert server.fetched() == []


def test_a_gated_repository(server):
    server.refusal = Refusal(403, "GatedRepo")
    with pytest.raises(ModelError) as caught:
        hub.download(TINY)
    assert caught.value.kind == "gated"
    assert f"{server.address}/{TINY}" in caught.value.fix


def test_a_hub_out_of_order(server):
    server.refusal = Refusal(503)
    assert problem_of(hub.download, TINY) == "offline"


@pytest.mark.parametrize("fault", ["break_off", "shortened"])
@pytest.mark.parametrize("name", [WEIGHTS, "tokenizer.json"])
def test_a_truncated_file_is_refused_and_mended_by_a_healthy_hub(server, no_waiting, fault, name, tiny_folder):
    half = (tiny_folder("bert") / name).stat().st_size // 2
    getattr(server, fault)[name] = half
    assert problem_of(Backend.load, TINY, device_name="cpu") == "damaged"
    assert hub.cached_folder(TINY) is None

    getattr(server, fault).clear()
    mended = Backend.load(TINY, device_name="cpu")
    plain = Backend.load(str(tiny_folder("bert")), device_name="cpu")
    np.testing.assert_array_equal(mended.run(["the cat"]).hidden_states, plain.run(["the cat"]).hidden_states)


def test_a_connection_that_breaks_goes_on_where_it_stopped(server, no_waiting, embedded_folder):
    size = (embedded_folder / WEIGHTS).stat().st_size
    server.break_off_once[WEIGHTS] = size // 2
    done = []
    folder = hub.download(EMBEDDED, progress=lambda so_far, total: done.append(so_far))
    assert (folder / WEIGHTS).stat().st_size == size
    assert len(server.ranges) == 1
    assert server.ranges[0] != "bytes=0-"
    # What the client had in hand but not on disk when the connection broke comes again, no more.
    assert size <= server.sent[WEIGHTS] < size + constants.DOWNLOAD_CHUNK_SIZE
    assert done == sorted(done)


def test_weights_that_can_run_code_are_not_fetched(server):
    (server.repositories[TINY] / WEIGHTS).unlink()
    with pytest.raises(ModelError) as caught:
        Backend.load(TINY, device_name="cpu")
    assert caught.value.kind == "no_safetensors"
    assert TINY in caught.value.problem
    assert server.fetched() == []


def test_only_configuration_tokenizer_and_weights_are_asked_for(server, tiny_folder):
    Backend.load(TINY, device_name="cpu")
    asked = {path.split("/resolve/")[1].split("/", 1)[1] for _, path in server.requests if "/resolve/" in path}
    assert asked == {path.name for path in tiny_folder("bert").iterdir()}
    assert not any(name.endswith((".bin", ".py", ".h5")) or "/" in name for name in asked)


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_a_file_far_too_large_for_its_kind_is_refused_before_a_download(server, name):
    with (server.repositories[TINY] / name).open("ab") as file:
        file.write(b" " * (9 << 20))  # still JSON
    with pytest.raises(ModelError) as caught:
        find_files(ModelSpec(TINY, "hub", TINY))
    assert caught.value.kind == "unsupported"
    assert f"{name} of {TINY} has 9,4" in caught.value.problem
    assert server.fetched() == []


def test_such_a_file_in_the_cache_is_refused_too(server):
    path = hub.download(TINY) / "tokenizer_config.json"
    with path.open("ab") as file:
        file.write(b" " * (9 << 20))
    assert problem_of(find_files, ModelSpec(TINY, "hub", TINY)) == "unsupported"


def test_a_repository_without_a_configuration(server):
    (server.repositories[TINY] / "config.json").unlink()
    assert problem_of(hub.download, TINY) == "unsupported"


@pytest.mark.parametrize("xet", [pytest.param(False, marks=pytest.mark.rare), True])
def test_a_stop_is_heard_and_the_next_download_goes_on(server, embedded_folder, xet):
    # Weights that the hub also holds in its chunk store must not slip past the stop.
    server.xet = xet
    server.pause = 0.005
    size = (embedded_folder / WEIGHTS).stat().st_size
    seen = []

    def report(done, total):
        seen.append(done / total)

    assert problem_of(hub.download, EMBEDDED, progress=report, is_stopped=lambda: bool(seen) and seen[-1] > 0.2) == (
        "stopped"
    )
    assert 0.2 < seen[-1] < 0.5
    assert server.sent[WEIGHTS] < size
    assert hub.cached_folder(EMBEDDED) is None

    server.pause = 0.0
    small = [name for name in server.fetched() if name != WEIGHTS]
    folder = hub.download(EMBEDDED)
    assert (folder / WEIGHTS).stat().st_size == size
    assert [name for name in server.fetched() if name != WEIGHTS] == small  # what had arrived whole is kept
    assert hub.cached_folder(EMBEDDED) == folder


def test_a_download_stopped_before_it_starts_fetches_nothing(server):
    assert problem_of(hub.download, TINY, is_stopped=lambda: True) == "stopped"
    assert server.fetched() == []


def test_a_full_disk(server, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(file_download, "http_get", full)
    assert problem_of(hub.download, TINY) == "disk"


class _Trickle(socketserver.BaseRequestHandler):
    """Sends what the server has to say, a byte every tenth of a second, until the client has gone."""

    def handle(self):
        self.request.recv(4096)
        for number in itertools.count():
            text = self.server.text
            try:
                self.request.sendall(text[number : number + 1] if number < len(text) else b"x")
            except OSError:
                self.server.gone.set()
                return
            time.sleep(self.server.pause)


@pytest.fixture
def odd_hub(monkeypatch, tmp_path):
    """Starts a hub that sends these bytes, slowly if a pause is given."""
    servers = []

    def started(text, pause=0.0):
        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Trickle)
        server.daemon_threads = True
        server.text, server.pause, server.gone = text, pause, threading.Event()
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        use_hub(monkeypatch, f"http://127.0.0.1:{server.server_address[1]}", tmp_path / "cache")
        return server

    yield started
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.rare
def test_a_hub_that_drips_is_given_up_in_time_and_its_connection_closed(odd_hub):
    server = odd_hub(b"HTTP/1.1 200 OK\r\nX: ", pause=0.1)
    started = time.monotonic()
    assert not hub.is_reachable(fresh=True)
    assert time.monotonic() - started < hub.PROBE_SECONDS + 15
    assert server.gone.wait(10)


@pytest.fixture
def short_patience(monkeypatch):
    monkeypatch.setattr(slow_hub, "STALL_SECONDS", 0.8)
    monkeypatch.setattr(slow_hub, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(hub, "LIST_SECONDS", 0.8)


@pytest.mark.parametrize(
    "name", [*(pytest.param(name, marks=pytest.mark.rare) for name in ("list", "config.json")), WEIGHTS]
)
def test_a_hub_that_drips_an_answer_is_given_up(server, short_patience, no_waiting, name):
    server.dripping.add(name)
    started = time.monotonic()
    with pytest.raises(ModelError) as caught:
        hub.download(TINY)
    assert time.monotonic() - started < 30
    assert caught.value.kind == "offline"
    assert "is too slow: it" in caught.value.problem
    server.dripping.clear()
    assert (hub.download(TINY) / WEIGHTS).is_file()


@pytest.mark.rare
def test_a_hub_that_drips_headers_is_given_up(odd_hub, short_patience, monkeypatch):
    server = odd_hub(b"HTTP/1.1 200 OK\r\nX: ", pause=0.1)
    monkeypatch.setattr(hub, "is_reachable", lambda fresh: True)
    assert problem_of(hub.download, TINY) == "offline"
    assert server.gone.wait(10)


@pytest.mark.rare
def test_a_slow_hub_that_goes_on_is_waited_for(server, short_patience, monkeypatch):
    monkeypatch.setattr(hub_server, "BLOCK", 5_000)
    server.pause = 0.1
    size = (server.repositories[TINY] / WEIGHTS).stat().st_size
    assert size / 5_000 * server.pause > 2 * slow_hub.STALL_SECONDS
    assert (hub.download(TINY) / WEIGHTS).stat().st_size == size


def test_a_hub_that_answers_rubbish_is_out_of_reach(odd_hub):
    odd_hub(b"\x00\x01 rubbish\r\n\r\n")
    with pytest.raises(ModelError) as refusal:
        hub.download("some/model")
    assert refusal.value.kind == "offline"


STATIC = "somebody/tiny-static"


@pytest.mark.parametrize("save", [static_models.save_model2vec, static_models.save_static_embedding])
def test_a_static_model_is_downloaded_once(monkeypatch, tmp_path, save):
    """Also one without a config.json, whose table and tokenizer stand in a folder of their own."""
    folder = save(tmp_path / "static")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.safetensors").write_bytes(b"never fetched")
    with HubServer({STATIC: folder}) as running:
        use_hub(monkeypatch, running.address, tmp_path / "cache")
        assert hub.cached_folder(STATIC) is None
        vectors = Backend.load(STATIC, device_name="cpu").embed(["the cat sat"])
        fetched = len(running.fetched())
        assert hub.cached_folder(STATIC) is not None
        assert np.array_equal(Backend.load(STATIC, device_name="cpu").embed(["the cat sat"]), vectors)
        assert len(running.fetched()) == fetched
        assert not any("onnx" in path for _, path in running.requests)
    assert np.array_equal(Backend.load(str(folder), device_name="cpu").embed(["the cat sat"]), vectors)


def test_a_decoder_without_text_vectors_is_refused_before_its_weights_are_fetched(monkeypatch, tmp_path):
    folder = decoder_models.save_qwen3(tmp_path / "decoder")
    (folder / "modules.json").unlink()
    with HubServer({TINY: folder}) as running:
        use_hub(monkeypatch, running.address, tmp_path / "cache")
        assert problem_of(hub.download, TINY) == "unsupported"
        assert running.fetched().count(WEIGHTS) == 0


def test_a_model_that_automodel_cached_is_completed(monkeypatch, tmp_path):
    """Its cache has the encoder alone: the list of modules and what it names are fetched, or their lack is said."""
    folder = publish(save_tiny(tmp_path / "model"), pooling_module("cls_token"))
    with HubServer({TINY: folder}) as running:
        use_hub(monkeypatch, running.address, tmp_path / "cache")
        cached = hub.download(TINY)

        def forget():
            (cached / "modules.json").unlink()
            shutil.rmtree(cached / "1_Pooling")

        forget()
        whole = Backend.load(TINY, device_name="cpu")
        assert (whole.own_pooling, whole.not_applied) == ("cls", ())
        forget()
        running.stop()
        alone = Backend.load(TINY, device_name="cpu")
        assert alone.own_pooling == "mean"
        (said,) = alone.not_applied
        assert "another pooling, prompts or length is not known" in said
        with pytest.raises(ModelError, match="only its encoder is on this machine"):
            verify(alone)


def test_a_model_without_a_list_is_asked_for_it_once(monkeypatch, tmp_path):
    folder = save_tiny(tmp_path / "model")
    with HubServer({TINY: folder}) as running:
        use_hub(monkeypatch, running.address, tmp_path / "cache")
        first = Backend.load(TINY, device_name="cpu")
        asked = len(running.requests)
        second = Backend.load(TINY, device_name="cpu")
        assert len(running.requests) == asked
        assert first.not_applied == second.not_applied == ()
        shutil.rmtree(tmp_path / "cache" / f"models--{TINY.replace('/', '--')}" / ".no_exist")
        Backend.load(TINY, device_name="cpu")  # as AutoModel leaves it: asked for once more
        assert len(running.requests) > asked
        (missing,) = (tmp_path / "cache").glob("*/.no_exist/*/chat_template.jinja")
        missing.unlink()  # as this program left it before it asked for templates
        (folder / "chat_template.jinja").write_text("{{ messages }}")
        cached = Backend.load(TINY, device_name="cpu").loaded.folder
        assert (cached / "chat_template.jinja").read_text() == "{{ messages }}"
        asked = len(running.requests)
        Backend.load(TINY, device_name="cpu")
        assert len(running.requests) == asked
