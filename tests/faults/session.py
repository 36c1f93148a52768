"""A session without a browser: Streamlit's own messages over its websocket, so that a test can send what no page would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.sync.client import ClientConnection, connect


@dataclass
class Session:
    """One session; `elements` holds what its last run drew, in order."""

    socket: ClientConnection
    elements: list[object] = field(default_factory=list)

    def run(
        self, page: str = "", query: str = "", *, states: tuple[WidgetState, ...] = (), seconds: float = 60
    ) -> None:
        """Ask for a run of a page with an address and these widget values, and wait until it has ended."""
        client = ClientState(page_name=page, query_string=query)
        client.widget_states.widgets.extend(states)
        message = BackMsg()
        message.rerun_script.CopyFrom(client)
        self.elements = []
        self.socket.send(message.SerializeToString())
        while True:
            received = ForwardMsg()
            received.ParseFromString(self.socket.recv(timeout=seconds))
            kind = received.WhichOneof("type")
            if kind == "delta" and received.delta.WhichOneof("type") == "new_element":
                element = received.delta.new_element
                self.elements.append(getattr(element, element.WhichOneof("type")))
            if kind == "script_finished":
                return

    def labelled(self, label: str) -> list[object]:
        """The widgets with this label, as messages."""
        return [element for element in self.elements if getattr(element, "label", None) == label]


@contextmanager
def opened(url: str, host: str | None = None, origin: str | None = None) -> Iterator[Session]:
    """A session with the server at this address, under another Host or Origin if they are given."""
    address = urlsplit(url)
    # The name goes into the address, the connection to the server itself.
    with connect(
        f"ws://{host or address.netloc}/_stcore/stream",
        sock=_socket(address.hostname, address.port),
        origin=origin,
        subprotocols=["streamlit"],
        max_size=None,
    ) as socket:
        yield Session(socket)


def _socket(host: str | None, port: int | None) -> object:
    import socket

    return socket.create_connection((host, port), 10)
