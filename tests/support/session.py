"""A session without a browser: Streamlit's own messages over its websocket, so that a test can send what no page would."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.sync.client import ClientConnection, connect

from dashboard.declared.addresses import corrected


@dataclass
class Session:
    """One session; `elements` holds what its last run drew, in order."""

    socket: ClientConnection
    elements: list[object] = field(default_factory=list)
    asked_again: dict[str, float] = field(default_factory=dict)  # fragments that want to be run every so many seconds
    page_hash: str = ""  # of the page drawn last: a fragment that draws the whole page draws this one
    address: str = ""  # the query that the page last gave itself
    id: str = ""

    def run(
        self, page: str = "", query: str = "", *, states: tuple[WidgetState, ...] = (), seconds: float = 60
    ) -> None:
        """Ask for a run of a page with an address and these widget values, and wait until it has ended.

        It counts as Back or Forward: in other runs than a session's first, the dashboard reads no address.
        """
        page, query = right_place(page, query)
        client = ClientState(page_name=page, query_string=query, is_history_navigation=True)
        client.widget_states.widgets.extend(states)
        self._run(client, seconds)

    def wait_for_result(self, page: str = "", query: str = "", *, seconds: float = 60) -> None:
        """After a run: run the fragments that ask for it, as a browser does, until a whole page is drawn that asks no more.

        Progress bars are such fragments: they draw the whole page once their job has ended. Raises TimeoutError.
        """
        end = time.monotonic() + seconds
        while self.asked_again:
            if time.monotonic() > end:
                raise TimeoutError(f"still waiting after {seconds} s: {page} {query}")
            fragment, interval = min(self.asked_again.items(), key=lambda item: item[1])
            time.sleep(interval)
            client = ClientState(
                page_script_hash=self.page_hash, query_string=query, fragment_id=fragment, is_auto_rerun=True
            )
            self._run(client, seconds)

    def _run(self, client: ClientState, seconds: float) -> None:
        message = BackMsg()
        message.rerun_script.CopyFrom(client)
        self.elements = []
        self.socket.send(message.SerializeToString())
        while True:
            received = ForwardMsg()
            received.ParseFromString(self.socket.recv(timeout=seconds))
            kind = received.WhichOneof("type")
            if kind == "new_session":
                self.id = received.new_session.initialize.session_id
            if kind == "new_session" and not received.metadata.run.fragment_ids:
                self.elements, self.asked_again = [], {}  # a whole page is drawn
            if kind == "navigation":
                self.page_hash = received.navigation.page_script_hash
            if kind == "page_info_changed":
                self.address = received.page_info_changed.query_string
            if kind == "auto_rerun":
                self.asked_again[received.auto_rerun.fragment_id] = received.auto_rerun.interval
            if kind == "delta" and received.delta.WhichOneof("type") == "new_element":
                element = received.delta.new_element
                self.elements.append(getattr(element, element.WhichOneof("type")))
            if kind == "script_finished" and received.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                return

    def labelled(self, label: str) -> list[object]:
        """The widgets with this label, as messages."""
        return [element for element in self.elements if getattr(element, "label", None) == label]


def right_place(page: str, query: str) -> tuple[str, str]:
    """Where the server sends a browser that asks for this page and query."""
    return corrected(page, query) or (page, query)


@contextmanager
def opened(
    url: str, host: str | None = None, origin: str | None = None, token: str = "", cookies: str = ""
) -> Iterator[Session]:
    """A session with the server at this address, under another Host or Origin if they are given.

    `cookies` count if they hold the `token` against foreign pages, and the origin is the server's.
    """
    address = urlsplit(url)
    # The name goes into the address, the connection to the server itself.
    with connect(
        f"ws://{host or address.netloc}/_stcore/stream",
        sock=_socket(address.hostname, address.port),
        origin=origin,
        subprotocols=["streamlit", token] if token else ["streamlit"],
        additional_headers={"Cookie": cookies} if cookies else None,
        max_size=None,
    ) as socket:
        yield Session(socket)


def _socket(host: str | None, port: int | None) -> object:
    import socket

    return socket.create_connection((host, port), 10)
