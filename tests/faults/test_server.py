"""The server against strangers: foreign hosts and origins, values that no widget offers, what it tells by itself, uploads."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value, generate_xsrf_token_string
from websockets.exceptions import ConnectionClosed, InvalidStatus

from dashboard.access import CONTAINER
from tests.support.corpus_paths import FILE, PATH, ask_for_path
from tests.support.hostile_messages import errors, sent_for
from tests.support.places import ROOT
from tests.support.server import Server, start_server, stop_server
from tests.support.session import Session, opened
from tests.support.views import views_of_pages

LIMIT = 400_000  # bytes of an upload
FUZZ_MESSAGES = int(os.environ.get("FUZZ_MESSAGES", "20"))  # to each view


class Outside:
    """Counts the connections that a server makes to the world: it is the proxy that the server is told to use."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with connection:
                self.requests.append(connection.recv(200))

    def close(self) -> None:
        self._listening.close()


@pytest.fixture(scope="module")
def outside() -> Iterator[Outside]:
    counting = Outside()
    yield counting
    counting.close()


def environment(outside: Outside) -> dict[str, str]:
    return {
        "BERT_INTERNALS_WARM_UP": "0",
        **{name: outside.url for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")},
        "no_proxy": "",
        "NO_PROXY": "",
    }


def open_a_session(server: Server) -> None:
    with opened(server.url) as session:
        session.run("tokens")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, outside: Outside) -> Iterator[tuple[Server, Server]]:
    """A private server and one that listens on all addresses, started at the same time."""
    of_private = {"BERT_INTERNALS_CORPUS_BYTES": str(LIMIT)}
    of_public = {
        "STREAMLIT_SERVER_ADDRESS": "0.0.0.0",
        "BERT_INTERNALS_METRICS": "1",
        "BERT_INTERNALS_FRAMES": "https://course.example",
    }
    with ThreadPoolExecutor(2) as pool:
        starting = [
            pool.submit(start_server, tmp_path_factory.mktemp(name) / "log.txt", **settings, **environment(outside))
            for name, settings in (("private", of_private), ("public", of_public))
        ]
        private, public = (started.result() for started in starting)
        # The first session of a server waits for torch's import: of both at the same time.
        list(pool.map(open_a_session, (private, public)))
    yield private, public
    stop_server(private)
    stop_server(public)


@pytest.fixture(scope="module")
def private(servers: tuple[Server, Server]) -> Server:
    return servers[0]


@pytest.fixture(scope="module")
def public(servers: tuple[Server, Server]) -> Server:
    """A server that listens on all addresses."""
    return servers[1]


def status(server: Server, path: str, host: str | None = None, **headers: str) -> tuple[int, dict[str, str]]:
    request = urllib.request.Request(server.url + path, headers=headers | ({"Host": host} if host else {}))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as answer:
            return answer.status, {name.lower(): value for name, value in answer.headers.items()}
    except urllib.error.HTTPError as refused:
        return refused.code, {}


@pytest.mark.parametrize("path", ["/", "/search", "/_stcore/host-config", "/_stcore/upload_file/a/b"])
def test_a_foreign_host_is_refused(private: Server, path: str) -> None:
    assert status(private, path, "evil.example")[0] == 403
    assert status(private, path, "127.0.0.1.evil.example:8501")[0] == 403
    assert status(private, path)[0] != 403


@pytest.mark.parametrize(
    "header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via", "X-Forwarded-Proto", "CF-Connecting-IP"]
)
def test_a_private_server_is_not_served_through_a_proxy(private: Server, public: Server, header: str) -> None:
    """It offers its files: an operator who serves others has to name the host, and then it is not private."""
    assert status(private, "/", **{header: "192.0.2.9"})[0] == 403
    assert status(public, "/", **{header: "192.0.2.9"})[0] == 200


def test_refusals_are_logged(private: Server) -> None:
    status(private, "/", "evil.example")
    assert "refused: host '" in private.log.read_text()


def test_the_health_address_answers_to_any_name(private: Server) -> None:
    assert status(private, "/_stcore/health", "probe.internal")[0] == 200


def test_a_server_on_all_addresses_is_known_by_numbers_and_its_own_name(public: Server) -> None:
    for host in ("192.0.2.7:8501", "[2001:db8::7]", "localhost", socket.gethostname()):
        assert status(public, "/", host)[0] == 200, host
    assert status(public, "/", "evil.example")[0] == 403


def test_a_foreign_host_opens_no_websocket(private: Server) -> None:
    """DNS rebinding: the name of a foreign page points to this machine, and the page's origin is that name."""
    with pytest.raises(InvalidStatus) as refused, opened(private.url, "evil.example", "http://evil.example"):
        pass
    assert refused.value.response.status_code == 403


def test_foreign_origins_are_refused_at_once_and_nobody_outside_is_asked(
    private: Server, public: Server, outside: Outside
) -> None:
    def refused(server: Server) -> int:
        with pytest.raises(InvalidStatus) as problem, opened(server.url, origin="http://evil.example"):
            pass
        return problem.value.response.status_code

    for server in (private, public):
        with ThreadPoolExecutor(10) as pool:
            answers = [pool.submit(refused, server) for _ in range(10)]
            # One lookup of the server's own address took two seconds, and everybody waited: ten are more than `status` waits.
            assert status(server, "/_stcore/health")[0] == 200
            assert [answer.result() for answer in answers] == [403] * 10
    assert outside.requests == []


def test_a_page_of_the_server_itself_opens_a_session(private: Server) -> None:
    with opened(private.url, origin=private.url) as session:
        session.run("tokens")
        assert session.elements
        assert not [element for element in session.elements if type(element).__name__ == "Exception"]


def threads_of(server: Server) -> int:
    return int(psutil.Process(server.process.pid).num_threads())


def test_nobody_empties_the_caches_of_all(private: Server) -> None:
    """The model that a session works with must stay loaded whatever another one sends."""
    with opened(private.url) as session:
        for _ in range(300):
            session.run("model", "v=model-facts")
            if "22,713,216" in shown(session):
                break
            time.sleep(0.2)
        before = threads_of(private)
        for _ in range(5):
            with opened(private.url) as other:
                other.run("about")
                for message in (BackMsg(clear_cache=True), BackMsg(set_run_on_save=True), BackMsg(load_git_info=True)):
                    other.socket.send(message.SerializeToString())
                other.socket.send(b"\xff no message at all")
                other.run("about")  # the session itself goes on
                assert other.elements
        session.run("model", "v=model-facts")
        assert "22,713,216" in shown(session)  # at once: without the cache it would be loaded again
        assert threads_of(private) <= before + 2  # each emptied cache left threads behind


def test_nobody_lets_the_server_run_git(private: Server) -> None:
    """A thousand small messages stopped it for half a minute, and each named the files of the folder that git does not know."""
    with opened(private.url) as session:
        session.run("about")
        for _ in range(300):
            session.socket.send(BackMsg(load_git_info=True).SerializeToString())
        started = time.monotonic()
        assert status(private, "/_stcore/health")[0] == 200
        assert time.monotonic() - started < 2


@pytest.mark.rare
def test_many_messages_of_one_session_do_not_stop_the_others(private: Server) -> None:
    """Two megabytes that ask for the addresses of a million files stopped the server for a minute."""
    message = BackMsg()
    message.file_urls_request.file_names.extend([""] * 1_000)
    with opened(private.url) as session, opened(private.url) as other:
        session.run("about")
        for _ in range(200):
            session.socket.send(message.SerializeToString())
        started = time.monotonic()
        other.run("about")
        assert status(private, "/_stcore/health")[0] == 200
        assert time.monotonic() - started < 5


def answers_to(session: Session, files: Iterable[str], owner: str) -> list[str]:
    """What a session is answered that asks for files to be made, each by its id, in the name of an owner: the errors."""
    message, found = BackMsg(), []
    asked = message.backend_operation_request
    asked.session_id = owner
    for number, file in enumerate(files):
        asked.request_id, asked.deferred_file.file_id = str(number), file
        session.socket.send(message.SerializeToString())
    while not found or len(found) <= number:
        received = ForwardMsg()
        received.ParseFromString(session.socket.recv(timeout=60))
        if received.WhichOneof("type") == "backend_operation_response":
            found.append(received.backend_operation_response.error_msg)
    return found


def files_of(session: Session) -> list[str]:
    """The ids of the files that the page of a session offers to make."""
    return [file for element in session.elements if (file := getattr(element, "deferred_file_id", ""))]


def drawn(session: Session, *asked: ClientState) -> tuple[list[str], str]:
    """The pages whose runs begin once all of these are asked for at once; and a fragment that the last one draws."""
    for run in asked:
        session.socket.send(BackMsg(rerun_script=run).SerializeToString())
    pages, fragment = [], ""
    with suppress(TimeoutError):
        while True:
            message = ForwardMsg()
            message.ParseFromString(session.socket.recv(timeout=1))
            if message.HasField("new_session"):
                pages.append(message.new_session.page_script_hash)
            fragment = message.delta.fragment_id or fragment
    return pages, fragment


@pytest.mark.parametrize("by_fragment", [True, pytest.param(False, marks=pytest.mark.rare)])
def test_what_a_page_sends_while_it_is_left_does_not_bring_it_back(private: Server, by_fragment: bool) -> None:
    """The last page that Streamlit begins is what a browser shows: also a fragment's, which then is an empty page."""
    with opened(private.url) as session:
        session.run("meaning", "v=one-word")
        other = session.page_hash
        session.run("tokens")
        own = session.page_hash
        _, fragment = drawn(session, ClientState(page_script_hash=own))
        late = ClientState(page_script_hash=own, is_auto_rerun=by_fragment, fragment_id=fragment if by_fragment else "")
        late.widget_states.widgets.add(id="a component", trigger_value=True)
        assert fragment
        assert set(drawn(session, late)[0]) <= {
            own
        }  # none where the part is gone, two where it asks for a run of its page
        assert set(drawn(session, ClientState(page_script_hash=other), late)[0]) == {other}
        assert drawn(session, ClientState(page_script_hash=own))[0] == [own]  # a person goes back, and on from there
        assert set(drawn(session, late)[0]) <= {own}


def test_a_session_gets_its_own_files_a_few_at_a_time(private: Server) -> None:
    """As many as were asked for were made at once, and what was asked for under a false name went into the log."""
    with opened(private.url) as session, opened(private.url) as other:
        session.run("inside", "v=block")
        session.wait_for_result("inside", "v=block")
        other.run("about")
        file = files_of(session)[0]
        assert answers_to(session, [file], session.id) == [""]
        answers = answers_to(session, [file] * 60, session.id)
        assert 1 <= answers.count("") < 60
        assert all(answers_to(other, [file, "nothing"], other.id))
        assert all(answers_to(other, [file, "nothing"], session.id))
        assert answers_to(session, [file], session.id) == [""]
    assert "session ID mismatch" not in private.log.read_text()


def values_of_other_kinds(widget: str) -> Iterator[WidgetState]:
    """What a message can hold for a widget, whatever the widget is."""
    for kind, value in {"int_value": 3, "double_value": 0.5, "bool_value": True, "string_value": "{", "json_value": "{",
                        "json_trigger_value": "{", "bytes_value": b"x"}.items():  # fmt: skip
        yield WidgetState(id=widget, **{kind: value})
    for kind in ("int_array_value", "double_array_value", "string_array_value"):
        state = WidgetState(id=widget)
        getattr(state, kind).data.extend(["no option"] if "string" in kind else [7, 8, 9])
        yield state
    yield WidgetState(id=widget)


MOST_RECEIVED_BYTES = 16 << 20  # as dashboard/app.py has it


def test_a_message_that_no_page_sends_is_not_received_whole(private: Server) -> None:
    """Each connection could fill 200 MB before its message was dropped, and some twenty connections the machine."""
    with opened(private.url) as session:
        session.run("about")
        session.socket.send(b"\0" * (MOST_RECEIVED_BYTES // 2 + 1_000_000))  # dropped: it is larger than those of pages
        session.run("about")
        with suppress(ConnectionClosed):  # it ends while the message is sent, or afterwards
            session.socket.send(b"\0" * (MOST_RECEIVED_BYTES + 1))
        with pytest.raises(ConnectionClosed):  # after what was still on its way
            deque(iter(partial(session.socket.recv, timeout=30), None), maxlen=0)
        assert session.socket.close_code in (1009, 1006)  # too large; or ended while the message was on its way
    with opened(private.url) as session:  # the server goes on
        session.run("about")


def test_a_value_of_another_kind_ends_nobodys_session(private: Server) -> None:
    """Streamlit keeps what was sent: what it cannot read would end each later run too."""
    with opened(private.url) as session:
        for page, query in (("search", "v=corpus"), ("attention", "")):
            session.run(page, query)
            widgets = [str(element.id) for element in session.elements if getattr(element, "id", "")]  # type: ignore[attr-defined]
            assert len(widgets) > 5
            for start in (0, 4, 8):
                states = tuple(
                    of_widget[(start + number) % len(of_widget)]
                    for number, of_widget in enumerate([*values_of_other_kinds(widget)] for widget in widgets)
                )
                session.run(page, query, states=states)
                session.run(page, query)
                assert "no option" not in shown(session)
                assert session.elements
                assert [element for element in session.elements if type(element).__name__ == "Exception"] == []


# Each has another kind of what reports a selection: the cells of a figure, the points of a map, a component, a list.
OF_EACH_KIND = (
    ("inside", "block"),
    pytest.param("meaning", "two-layers", marks=pytest.mark.rare),
    pytest.param("inside", "whole-path", marks=pytest.mark.rare),
    ("search", "hits"),
)


def send_hostile_values(server: Server, page: str, view: str, seeds: Iterable[int]) -> None:
    """Send values that the widgets of a view do not offer; the session goes on, and nothing ends in an error."""
    with opened(server.url) as session:
        session.run(page, f"v={view}")
        with suppress(TimeoutError):  # of a view that waits for long work there is the progress
            session.wait_for_result(page, f"v={view}")
        for seed in seeds:
            for states in (sent_for(session, seed), ()):
                session.run(page, f"v={view}", states=states)
                assert errors(session) == [], (view, seed)
                assert session.elements


@pytest.mark.parametrize(("page", "view"), OF_EACH_KIND)
def test_values_that_no_widget_offers_leave_no_error(private: Server, page: str, view: str) -> None:
    send_hostile_values(private, page, view, range(4))


@pytest.mark.fuzz
@pytest.mark.timeout(7_200)
def test_thousands_of_values_that_no_widget_offers_leave_no_error(private: Server) -> None:
    process = psutil.Process(private.process.pid)
    before = process.memory_info().rss
    for page, views in views_of_pages().items():
        for view in views:
            send_hostile_values(private, page, view, range(FUZZ_MESSAGES))
    assert process.memory_info().rss < before + (2 << 30)


def test_headers_protect_every_answer(private: Server, public: Server) -> None:
    _, headers = status(private, "/")
    assert headers["content-security-policy"] == "frame-ancestors 'self'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert status(public, "/")[1]["content-security-policy"] == "frame-ancestors https://course.example"


def test_the_first_page_has_the_style_sheet_and_is_sent_whole(private: Server) -> None:
    sheet = (ROOT / "assets" / "web" / "style.css").read_text(encoding="utf-8")
    for path in ("/", "/tokens"):
        asked = {"Accept": "text/html,*/*", "Accept-Encoding": "gzip, br", "If-None-Match": "*", "Range": "bytes=0-9"}
        request = urllib.request.Request(private.url + path, headers=asked)
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
            page = answer.read().decode()
            assert answer.status == 200
            assert "etag" not in answer.headers
            assert answer.headers["content-security-policy"]
        before, _, after = page.partition(sheet)
        assert re.search(
            r"<body><script>window\.__streamlit = \{BACKEND_BASE_URL: [^<]*\}</script><style>$", before.rstrip()
        )
        assert '<div id="root">' in after
        assert after.rstrip().endswith("</html>")


def test_the_metrics_are_closed_unless_the_operator_opens_them(private: Server, public: Server) -> None:
    assert status(private, "/_stcore/metrics")[0] == 404
    assert status(public, "/_stcore/metrics")[0] == 200


def test_a_server_says_at_start_what_it_offers(private: Server, public: Server) -> None:
    assert f"listens on 127.0.0.1. Open {private.url}\n" in private.log.read_text()
    assert "files of this machine are offered" in private.log.read_text()
    said = public.log.read_text()
    opened_at = rf"http://[\w.-]+:{public.url.rpartition(':')[2]}\n"
    if CONTAINER.exists():  # whose own address nobody outside can open
        opened_at = "the address and port that this container is published at"
    assert re.search(rf"listens on 0\.0\.0\.0\. Others open {opened_at}", said)
    assert "models outside the list are not offered (BERT_INTERNALS_FREE_MODELS=1 allows them)" in said
    assert "files of this machine are not offered (BERT_INTERNALS_SERVER_FILES=1 allows them)" in said


def options_of(widget: object) -> list[str]:
    return [option.content for option in widget.options]  # type: ignore[attr-defined]


FORGED: list[list[str]] = [[], [FILE], ["path"], ["3"]]


def shown(session: Session) -> str:
    """All that the last run drew, tables included."""
    return "\n".join(repr(element.SerializeToString()) for element in session.elements)  # type: ignore[attr-defined]


def test_a_server_on_all_addresses_reads_no_file_whatever_is_sent(
    private: Server, public: Server, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret sentence\nanother line\n")
    with opened(private.url) as session:  # where files are offered, the same messages do show the file
        states, known = ask_for_path(session, [FILE], secret)
        for _ in range(600):  # it is read by a job
            if "secret sentence" in shown(session):
                break
            time.sleep(0.1)
            session.run("search", "v=corpus", states=states)
        assert "secret sentence" in shown(session)
    for values in FORGED:
        with opened(public.url) as session:
            states, _ = ask_for_path(session, values, secret, known)  # the field's id is the same on every server
            for _ in range(3):
                session.run("search", "v=corpus", states=states)
                (chooser,) = session.labelled("Corpus")
                assert options_of(chooser) == ["Demo corpus", "Upload a file", "Hugging Face dataset"]
                assert session.labelled(PATH) == []
                assert "secret sentence" not in shown(session)
                time.sleep(0.1)


def test_a_private_server_offers_files(private: Server) -> None:
    with opened(private.url) as session:
        session.run("search", "v=corpus")
        (chooser,) = session.labelled("Corpus")
        assert "File on this machine" in options_of(chooser)


def test_an_address_names_no_folder_of_a_public_server(public: Server, tmp_path: Path) -> None:
    """Whether a folder exists must not show: both are refused with the same words."""
    answers = []
    for folder in (tmp_path, tmp_path / "nothing here"):
        with opened(public.url) as session:
            session.run("tokens", f"m={folder}")
            alerts = [element.body for element in session.elements if type(element).__name__ == "Alert"]  # type: ignore[attr-defined]
            answers.append([alert.replace(str(folder), "") for alert in alerts])
    assert answers[0] == answers[1]
    assert any("only the models of the list" in alert for alert in answers[0])


# Uploads: requests of any size, number and form, as no browser sends them


def upload_folder(session: Session) -> str:
    """Where a session's files are sent: asked of the server, as its page does."""
    message = BackMsg()
    message.file_urls_request.request_id = "1"
    message.file_urls_request.file_names.append("a.txt")
    session.socket.send(message.SerializeToString())
    while True:
        received = ForwardMsg()
        received.ParseFromString(session.socket.recv(timeout=60))
        if received.WhichOneof("type") == "file_urls_response":
            return received.file_urls_response.file_urls[0].upload_url.rpartition("/")[0]


def send(server: Server, path: str, size: int, chunked: bool = False, method: str = "PUT") -> int:
    """The status of a request with a file of this size."""
    address, boundary, token = urlsplit(server.url), uuid.uuid4().hex, generate_xsrf_token_string()
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="f"; filename="f.txt"\r\n\r\n'
    body = head.encode() + b"x" * size + f"\r\n--{boundary}--\r\n".encode()
    parts = (body[start : start + 50_000] for start in range(0, len(body), 50_000))
    headers = {"Cookie": f"_streamlit_xsrf={token}", "X-Xsrftoken": token}
    headers["Content-Type"] = f"multipart/form-data; boundary={boundary}"
    if chunked:
        headers["Transfer-Encoding"] = "chunked"
    with suppress(BrokenPipeError, ConnectionResetError):  # refused before it was sent as a whole: the answer is there
        connection.request(method, path, parts if chunked else body, headers, encode_chunked=chunked)
    with connection.getresponse() as answer:
        return answer.status


@pytest.mark.parametrize("chunked", [False, True])
def test_a_session_has_room_for_two_files_of_the_largest_size(private: Server, chunked: bool) -> None:
    with opened(private.url) as session:
        session.run("about")
        where = upload_folder(session)
        assert [send(private, f"{where}/raw{n}", LIMIT, chunked) for n in range(4)] == [204, 204, 413, 413]
        assert send(private, f"{where}/raw0", LIMIT, chunked) == 204  # it takes its own place
        assert send(private, f"{where}/raw0", 0, method="DELETE") == 204
        assert send(private, f"{where}/raw2", LIMIT, chunked) == 204
        assert send(private, f"{where}/raw3", 50_000, chunked) == 413
    with opened(private.url) as another:
        another.run("about")
        assert send(private, f"{upload_folder(another)}/raw0", LIMIT, chunked) == 204


def test_before_a_login_no_file_is_taken(tmp_path: Path) -> None:
    secret = "a long random text of 32 letters"
    (tmp_path / "secrets.toml").write_text(f'[auth]\ncookie_secret = "{secret}"\n')
    server = start_server(
        tmp_path / "log.txt", BERT_INTERNALS_LOGIN="1", STREAMLIT_SECRETS_FILES=str(tmp_path / "secrets.toml")
    )
    try:
        token = generate_xsrf_token_string()
        person = json.dumps({"origin": server.url, "is_logged_in": True})
        cookie = create_signed_value(secret, "_streamlit_user", person).decode()
        for given, status in (("", 403), (f"; _streamlit_user={cookie}", 204)):
            with opened(server.url, None, server.url, token, f"_streamlit_xsrf={token}{given}") as session:
                session.run("about")
                assert send(server, f"{upload_folder(session)}/raw0", 1_000) == status
    finally:
        stop_server(server)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_file_above_the_operators_limit_is_refused(private: Server, chunked: bool) -> None:
    with opened(private.url) as session:
        session.run("about")
        where = upload_folder(session)
        assert send(private, f"{where}/raw0", LIMIT + 50_000, chunked) == 413
        assert send(private, f"{where}/raw0", 1_000, chunked) == 204


def test_files_at_the_same_time_share_the_room(private: Server) -> None:
    with opened(private.url) as session, ThreadPoolExecutor(8) as pool:
        session.run("about")
        where = upload_folder(session)
        answers = [pool.submit(send, private, f"{where}/raw{n}", LIMIT, n % 2 == 0) for n in range(8)]
        assert 1 <= [answer.result() for answer in answers].count(204) <= 2
