"""The bound on uploads against what no browser sends: requests of any size, number and form."""

from __future__ import annotations

import http.client
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string

from tests.browser.conftest import Server, start_server, stop_server
from tests.faults.session import Session, opened

LIMIT = 400_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("uploads") / "log.txt"
    started = start_server(log, BERT_INTERNALS_WARM_UP="0", BERT_INTERNALS_CORPUS_BYTES=str(LIMIT))
    yield started
    stop_server(started)


def folder(session: Session) -> str:
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
def test_a_session_has_room_for_two_files_of_the_largest_size(server: Server, chunked: bool) -> None:
    with opened(server.url) as session:
        session.run("about")
        where = folder(session)
        assert [send(server, f"{where}/raw{n}", LIMIT, chunked) for n in range(4)] == [204, 204, 413, 413]
        assert send(server, f"{where}/raw0", LIMIT, chunked) == 204  # it takes its own place
        assert send(server, f"{where}/raw0", 0, method="DELETE") == 204
        assert send(server, f"{where}/raw2", LIMIT, chunked) == 204
        assert send(server, f"{where}/raw3", 50_000, chunked) == 413
    with opened(server.url) as another:
        another.run("about")
        assert send(server, f"{folder(another)}/raw0", LIMIT, chunked) == 204


@pytest.mark.parametrize("chunked", [False, True])
def test_a_file_above_the_operators_limit_is_refused(server: Server, chunked: bool) -> None:
    with opened(server.url) as session:
        session.run("about")
        where = folder(session)
        assert send(server, f"{where}/raw0", LIMIT + 50_000, chunked) == 413
        assert send(server, f"{where}/raw0", 1_000, chunked) == 204


def test_files_at_the_same_time_share_the_room(server: Server) -> None:
    with opened(server.url) as session, ThreadPoolExecutor(8) as pool:
        session.run("about")
        where = folder(session)
        answers = [pool.submit(send, server, f"{where}/raw{n}", LIMIT, n % 2 == 0) for n in range(8)]
        assert 1 <= [answer.result() for answer in answers].count(204) <= 2
