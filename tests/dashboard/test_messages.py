"""Messages and links of a size that no page sends are refused by their count, before anything is done with them."""

from __future__ import annotations

import inspect
import json
import time
from types import ModuleType
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.components.v2.bidi_component.serialization import BidiComponentSerde, deserialize_trigger_list
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import WStates

from dashboard import logs


@pytest.fixture(scope="module")
def server() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "keep_texts_out", lambda: None)  # for the server's process, not for that of the tests
        from dashboard import app

    return app


def run_of(widgets: int = 0, query: str = "") -> bytes:
    message = BackMsg()
    message.rerun_script.query_string = query
    message.rerun_script.widget_states.widgets.extend(WidgetState(id=f"w{at}", int_value=at) for at in range(widgets))
    return message.SerializeToString()


def test_what_a_page_sends_passes(server: ModuleType) -> None:
    for content in (run_of(), run_of(300, "v=hits&q=a"), run_of(5, "&".join(f"s={'a' * 50}" for _ in range(200)))):
        assert server._of_a_page(content) is not None
    names = BackMsg()
    names.file_urls_request.file_names.extend(["a.csv"] * 20)
    assert server._of_a_page(names.SerializeToString()) is not None


@pytest.mark.parametrize("case", ["widgets", "keys", "one text", "bytes", "files"])
def test_what_no_page_sends_is_dropped_at_once(server: ModuleType, case: str) -> None:
    files = BackMsg()
    files.file_urls_request.file_names.extend(["a"] * 100_000)
    content = {
        "widgets": lambda: run_of(1_000) * 500,  # which the format takes as one message
        "keys": lambda: run_of(query="&".join(f"k{at}=" for at in range(500_000))),
        "one text": lambda: run_of(query="s=" + "a" * 1_000_000),
        "bytes": lambda: run_of(query="s=" + "a" * (9 << 20)),
        "files": files.SerializeToString,
    }[case]()
    started = time.process_time()
    assert server._of_a_page(content) is None
    assert time.process_time() - started < 1


def read_as(server: ModuleType, kind: str, text: str) -> Any:
    """What a run reads of a component's value in a message."""
    state = WStates()
    state.set_widget_from_proto(WidgetState(id="w", **{kind: text}))
    read = deserialize_trigger_list if kind == "json_trigger_value" else BidiComponentSerde().deserialize
    state.set_widget_metadata(WidgetMetadata("w", read, json.dumps, kind))
    return state["w"]


def test_of_many_events_of_a_component_the_last_of_each_name_counts(server: ModuleType) -> None:
    """Streamlit calls the page once for each event, which reads them all: 8,000 took 35 seconds."""
    events = [{"event": f"e{at % 3}", "value": at} for at in range(8_000)]
    kept = [{"event": f"e{at % 3}", "value": at} for at in (7_998, 7_999, 7_997)]
    assert sorted(map(str, read_as(server, "json_trigger_value", json.dumps(events)))) == sorted(map(str, kept))
    names = [{"event": f"e{at}", "value": at} for at in range(1_000)]
    assert read_as(server, "json_trigger_value", json.dumps(names)) == names[-server.MOST_EVENTS :]
    assert read_as(server, "json_trigger_value", '[7, {"event": ["a"]}, {"event": "a", "value": [0, 1]}]') == [
        {"event": "a", "value": [0, 1]}
    ]


@pytest.mark.parametrize("levels", [40, 900, 100_000])
def test_a_value_of_many_levels_counts_as_none(server: ModuleType, levels: int) -> None:
    """Streamlit copies values by recursion: one of 900 levels ended each run with a traceback of 87 kB."""
    nested = "[" * levels + "]" * levels
    assert read_as(server, "json_trigger_value", f'[{{"event": "a", "value": {nested}}}]') is None
    assert read_as(server, "json_value", f'{{"a": {nested}}}') == {}
    assert read_as(server, "json_value", f'{{"a": {nested[levels - 20 : levels + 20]}}}') != {}


def test_a_component_with_very_many_values_sent_none(server: ModuleType) -> None:
    assert read_as(server, "json_value", json.dumps({"a": [""] * 100_000})) == {}
    assert len(read_as(server, "json_value", json.dumps({"a": [""] * 5_000}))["a"]) == 5_000


class LeftPage:
    """A session that shows the page “a”; of what it is asked for, `runs` has the pages and addresses."""

    def __init__(self, server: ModuleType, patch: pytest.MonkeyPatch) -> None:
        self.runs: list[tuple[str, str, bool]] = []
        self._ask = server._run_of_opened_page
        self._pages_manager = PagesManager("main.py")
        self.show("a")
        patch.setattr(server, "_request_run", lambda _, sent: self.runs.append(named(sent)))

    def show(self, page: str) -> None:
        self._pages_manager.set_current_page_script_hash(page)

    def ask(self, page: str, query: str = "", trigger: str = "", **fields: Any) -> tuple[str, str, bool]:
        sent = ClientState(page_script_hash=page, query_string=query, **fields)
        sent.widget_states.widgets.add(id="text", string_value="typed")
        if trigger:
            sent.widget_states.widgets.add(id="component", **{trigger: "1"})
        self._ask(self, sent)
        return self.runs[-1]


def named(sent: ClientState) -> tuple[str, str, bool]:
    return sent.page_script_hash, sent.query_string, sent.is_history_navigation


def test_a_part_of_the_page_that_is_left_does_not_open_it_again(
    server: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = LeftPage(server, monkeypatch)
    assert session.ask("a", trigger="json_trigger_value")[0] == "a"
    assert session.ask("b", "v=2", is_history_navigation=True) == ("b", "v=2", True)
    for late in ({"fragment_id": "bar", "is_auto_rerun": True}, {"trigger": "json_trigger_value"}):
        assert session.ask("a", "v=1", **late) == ("b", "v=2", True)
    assert session.ask("c")[0] == "c"  # a third page, while the browser may be at either
    session.show("b")
    assert [session.ask(page, fragment_id="bar")[0] for page in "abc"] == ["c", "c", "c"]
    session.show("c")  # which the browser has named by now
    assert session.ask("a", fragment_id="bar")[0] == "a"


def test_a_person_who_goes_back_at_once_gets_the_page_before(
    server: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = LeftPage(server, monkeypatch)
    assert [session.ask(page)[0] for page in "ba"] == ["b", "a"]
    assert session.ask("a", fragment_id="bar")[0] == "a"
    session.ask("b")
    session.show("c")  # to which the run of “b” has led by itself
    assert session.ask("c", fragment_id="bar")[0] == "c"


def test_streamlit_asks_for_runs_as_the_server_expects(server: ModuleType) -> None:
    """The rule about the page that is left stands in for this function, whose own page would be the last one named."""
    assert AppSession.request_rerun is server._run_of_opened_page
    assert list(inspect.signature(server._request_run).parameters) == ["self", "client_state"]
    assert "self.request_rerun(" in inspect.getsource(AppSession._handle_rerun_script_request)
    assert "trigger_value" in {field.name for field in WidgetState.DESCRIPTOR.oneofs_by_name["value"].fields}


def test_a_link_that_is_too_long_is_refused_before_it_is_read(
    server: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def page(_: Any) -> PlainTextResponse:
        return PlainTextResponse("page")

    inner = Starlette(routes=[Route("/{path:path}", page)])
    client = TestClient(server.Guard(inner), base_url="http://127.0.0.1")
    monkeypatch.setattr(server.access, "is_known_host", lambda host: True)
    assert client.get("/search?v=hits&s=A&s=B").text == "page"
    for query in ("&".join(f"k{at}=" for at in range(2_000)), "s=" + "a" * 64_001):
        answer = client.get(f"/search?{query}")
        assert (answer.status_code, answer.text) == (414, server.TOO_LONG)
