"""What the server takes of a websocket: no more, no faster and of no other kind than pages send."""

from __future__ import annotations

import asyncio
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg

from dashboard import logs


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(logs, "keep_texts_out", lambda: None)  # for the server's process, not for that of the tests
    from dashboard import app

    return app


def run(widgets: int = 0, query: str = "") -> BackMsg:
    message = BackMsg()
    message.rerun_script.query_string = query
    for number in range(widgets):
        message.rerun_script.widget_states.widgets.add(id=str(number))
    return message


def files(count: int = 1, request: str = "r") -> BackMsg:
    message = BackMsg()
    message.file_urls_request.file_names.extend(["x"] * count)
    message.file_urls_request.request_id = request
    return message


def answer(request: str, session: str) -> BackMsg:
    message = BackMsg()
    asked = message.backend_operation_request
    asked.request_id, asked.session_id, asked.deferred_file.file_id = request, session, "f"
    return message


def test_the_limits_of_a_message(server: ModuleType) -> None:
    keys, ids = server.MOST_ADDRESS_KEYS, server.LONGEST_IDS
    taken = (
        *(run(server.MOST_WIDGETS), run(query="x" * server.MOST_ADDRESS_CHARACTERS), run(query="&".join("a" * keys))),
        *(files(server.MOST_FILES), files(request="r" * ids), answer("r" * (ids - 1), "s")),
        *(BackMsg(stop_script=True), BackMsg(app_heartbeat=True)),
    )
    refused = (
        run(server.MOST_WIDGETS + 1),
        run(query="x" * (server.MOST_ADDRESS_CHARACTERS + 1)),
        run(query="&".join("a" * (keys + 1))),
        *(files(server.MOST_FILES + 1), files(request="r" * (ids + 1)), answer("r" * ids, "s")),
        *(BackMsg(clear_cache=True), BackMsg(load_git_info=True), BackMsg(set_run_on_save=True), BackMsg()),
    )
    assert [number for number, message in enumerate(taken) if not server._is_of_a_page(message)] == []
    assert [number for number, message in enumerate(refused) if server._is_of_a_page(message)] == []


def test_what_is_no_message_or_too_long_is_none(server: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    content = run(3).SerializeToString()
    assert server._of_a_page(content) == run(3)
    assert server._of_a_page(b"\xff" * 20) is None
    monkeypatch.setattr(server, "MOST_MESSAGE_BYTES", len(content))
    assert server._of_a_page(content) is not None
    monkeypatch.setattr(server, "MOST_MESSAGE_BYTES", len(content) - 1)
    assert server._of_a_page(content) is None


def test_a_connection_is_read_no_faster_than_pages_send(server: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some hundreds of messages come at once; one that asks for many files counts as many, and one of no page is dropped."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    now = [100.0]
    monkeypatch.setattr(server, "asyncio", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: now[0]))
    few, many, foreign = run(), files(1_000), BackMsg(clear_cache=True)
    sent = iter([*[few] * 398, foreign, few, many, few])

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.receive", "bytes": next(sent).SerializeToString()}

    async def read() -> None:
        received = server._only_of_pages(receive)
        for _ in range(398):
            await received()
        assert waits == []
        assert (await received())["bytes"] == few.SerializeToString()  # the foreign one counts, and is not passed on
        assert (await received())["bytes"] == many.SerializeToString()
        now[0] += 100  # as long as it waits, and longer
        await received()

    asyncio.run(read())
    assert waits[-1] == pytest.approx(1_001 / server.PER_SECOND, abs=0.2)
    assert all(wait < 0.1 for wait in waits[:-1])


def test_of_events_with_one_name_the_last_is_kept_and_of_many_names_the_last_ones(server: ModuleType) -> None:
    events = [{"event": "a", "value": 1}, {"event": "b"}, {"event": "a", "value": 2}, "no event", {"event": 3}]
    assert server._last_of_each_event(events) == [{"event": "a", "value": 2}, {"event": "b"}]
    named = [{"event": str(number)} for number in range(server.MOST_EVENTS + 1)]
    assert server._last_of_each_event(named) == named[1:]


def test_how_much_a_value_may_hold(server: ModuleType) -> None:
    assert server._is_small([0] * 5, 5)
    assert not server._is_small([0] * 6, 5)
    assert not server._is_small([[0, 0], {"a": [0, 0]}], 6)  # two, three, and two within these
    assert server._is_small([[0, 0], {"a": [0, 0]}], 7)
    deep: Any = 0
    for _ in range(server.MOST_LEVELS - 1):
        deep = [deep]
    assert server._is_small(deep, 1_000)
    assert not server._is_small([deep], 1_000)
