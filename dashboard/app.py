"""The server: `streamlit run dashboard/app.py`. It refuses strangers, foreign messages and values, and files too large,
and gives the first page its style sheet.

Whatever passes reaches main.py, which draws the pages of each session.

A browser runs scripts of any page a person has open, and some try servers on the person's own machine. Streamlit refuses
none of them by default: it answers whatever name its address was given (DNS rebinding: a page of evil.example that lets
its name point to 127.0.0.1 reads what this server sends), and to decide on a foreign origin it asks a host outside for
its own address, while all sessions wait. So requests are checked here, before Streamlit sees them.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import chain, repeat
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from weakref import WeakKeyDictionary

# As in main.py: Streamlit puts the folder of this file on sys.path, not the project's root.
ROOT = str(Path(__file__).resolve().parent.parent)
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from components import operator_settings  # noqa: E402

# Threads of numpy's and torch's libraries wait for their next work by spinning, 20 ms and more after each product. In a server
# of many small products that takes a third of its processor time from other sessions. Read once, when they are loaded.
operator_settings.set_here("OPENBLAS_THREAD_TIMEOUT", "10")  # 2^10 cycles
operator_settings.set_here("GOMP_SPINCOUNT", "3000")

import streamlit as st  # noqa: E402
import uvicorn  # noqa: E402
from google.protobuf.message import DecodeError  # noqa: E402
from starlette.concurrency import run_in_threadpool  # noqa: E402
from starlette.datastructures import Headers, MutableHeaders  # noqa: E402
from starlette.exceptions import HTTPException  # noqa: E402
from starlette.middleware import Middleware  # noqa: E402
from starlette.responses import PlainTextResponse, RedirectResponse  # noqa: E402
from starlette.types import ASGIApp, Message, Receive, Scope, Send  # noqa: E402
from streamlit import delta_generator, runtime  # noqa: E402
from streamlit.components.v2.bidi_component import serialization  # noqa: E402
from streamlit.proto.BackMsg_pb2 import BackendOperationRequest, BackMsg  # noqa: E402
from streamlit.proto.ClientState_pb2 import ClientState  # noqa: E402
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg  # noqa: E402
from streamlit.runtime import media_file_manager  # noqa: E402
from streamlit.runtime.app_session import AppSession  # noqa: E402
from streamlit.runtime.media_file_manager import MediaFileMetadata  # noqa: E402
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager  # noqa: E402
from streamlit.runtime.state.session_state import Serialized, Value, WStates  # noqa: E402

from components.errors import UserError  # noqa: E402
from components.folders import ASSETS  # noqa: E402
from components.retrieval.corpora.readers.limits import browser_limits  # noqa: E402
from dashboard import access, garbage, logs, readiness  # noqa: E402

log = logging.getLogger(__name__)
HEALTH, METRICS, READY = "/_stcore/health", ("/_stcore/metrics", "/metrics"), "/ready"
UPLOADS = ["_stcore", "upload_file"]  # of a path, followed by the ids of the session and of the file
METRICS_TYPE = "text/plain; version=0.0.4"  # of Prometheus; Starlette adds the encoding
TOO_LARGE = "This file is too large, or the files of this session are too large together.\n"
NO_UPLOADS = "This server takes no files, or none before a login.\n"
FILES_PER_SESSION = 2  # of the largest size: all files of a session together have no more bytes
# Each alone is the sign of a proxy, beside all that begin with x-forwarded-. Browsers send none of them.
PROXY_HEADERS = {
    *("forwarded", "via", "x-real-ip", "true-client-ip", "cf-connecting-ip", "cf-ray", "fly-client-ip", "x-client-ip"),
    *("x-cluster-client-ip", "x-original-host", "x-original-forwarded-for", "x-envoy-external-address", "cdn-loop"),
    *("fastly-client-ip", "x-appengine-user-ip", "x-azure-clientip", "x-proxyuser-ip"),
}
NUMBERS = {"int_value", "double_value"}  # a field of numbers may send either
COMPONENT_VALUES = {"json_value", "json_trigger_value"}
UNSTYLED_HEADERS = {b"accept-encoding", b"if-none-match", b"if-modified-since", b"range"}
# A page has some dozens of widgets, and a link some dozens of keys: each more costs every run of the session.
MOST_MESSAGE_BYTES, MOST_WIDGETS, MOST_FILES = 8 << 20, 5_000, 1_000
# Of a connection: messages at once and in a second, of which one of many bytes or files counts as several; and what waits for
# an answer of its own, such as a file that is made on a click.
MOST_AT_ONCE, PER_SECOND, BYTES_OF_ONE, MOST_ASKED, LONGEST_IDS = 400, 100, 50_000, 10, 200
MOST_RECEIVED_BYTES = 2 * MOST_MESSAGE_BYTES  # of a message: one that is larger than this ends its connection
# Of a component: values of what it sends, and events of different names in a message. Streamlit calls us once for each event.
MOST_VALUES, MOST_EVENTS = 10_000, 16
MOST_LEVELS = 32  # within each other, of a value of any widget
MOST_ADDRESS_CHARACTERS, MOST_ADDRESS_KEYS = 64_000, 1_000
TOO_LONG = "This link is too long.\n"
MINUTE, HOUR = 60.0, 3_600.0  # seconds
SHORT_TURN = 0.0005  # seconds for which a thread may go on while others wait; Python's own default is ten times as long
DOWNLOAD_WAIT = MINUTE  # for which a file that was made on a click waits for its browser
FRAMING_BYTES = 16 << 10  # of a request with a file that are not the file's own: its name, its type, the boundaries


class Guard:
    """Answers 403 to a host or an origin that is not this server's, and gives every answer its protective headers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._logged_at = float("-inf")  # seconds of the monotonic clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        path = scope["path"].rstrip("/")
        is_ready_asked = scope["type"] == "http" and path == _below_base(READY)
        # A health check may use any name: its answer says nothing about anybody.
        is_known = (
            is_ready_asked
            or path.endswith(HEALTH)
            or (
                len(headers.getlist("host")) == 1
                and access.is_known_host(headers.get("host"))
                and not (access.is_private() and _is_forwarded(headers))
            )
        )
        if scope["type"] == "websocket":
            if is_known and access.is_own_origin(headers.get("origin"), headers.get("host")):
                await self.app(scope, _only_of_pages(receive), send)
            else:
                self._log_refusal(headers)
                await receive()
                await send({"type": "websocket.close", "code": 1008})  # before it is accepted: status 403
            return
        if not is_known:
            self._log_refusal(headers)
            await PlainTextResponse(access.UNKNOWN_HOST, 403)(scope, receive, send)
        elif not _is_short(scope["query_string"].decode("latin-1")):
            await PlainTextResponse(TOO_LONG, 414)(scope, receive, _with_headers(send))
        elif is_ready_asked:
            state = await readiness.asked()
            answer = PlainTextResponse(f"{state}\n", 200 if state == "ready" else 503)
            await answer(scope, receive, _with_headers(send))
        elif path.endswith(METRICS) and not access.metrics_allowed():
            await PlainTextResponse("Not found", 404)(scope, receive, send)
        elif path == _below_base("/metrics"):
            figures = PlainTextResponse(await run_in_threadpool(_metrics), media_type=METRICS_TYPE)
            await figures(scope, receive, _with_headers(send))
        else:
            await self.app(scope, receive, _with_headers(send))

    def _log_refusal(self, headers: Headers) -> None:
        """Tell the operator, who may have forgotten a setting; once in ten seconds, so that nobody can fill the disk."""
        if time.monotonic() - self._logged_at < 10:
            return
        self._logged_at = time.monotonic()
        log.warning(
            "refused: host %.100r, origin %.100r. A server that people reach by another name, as through a proxy, needs "
            "that name in server.allowedHosts.",
            headers.get("host"),
            headers.get("origin"),
        )


def _below_base(path: str) -> str:
    """A path of the server below the base path that its operator chose."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}{path}" if base else path


def _metrics() -> str:
    from dashboard import metrics  # here: the server answers before it is loaded

    return metrics.written()


def _is_forwarded(headers: Headers) -> bool:
    """Whether a proxy passed a request on. A private server offers its files: a proxy would offer them to others."""
    return any(name in PROXY_HEADERS or name.startswith("x-forwarded-") for name in headers)


def _only_of_pages(receive: Receive) -> Receive:
    """The messages of a websocket, no faster than pages send them, and without those that none sends, by their kind or size.

    Streamlit obeys them from anybody: one empties the caches of all sessions, so that every model is loaded again, others
    write to the server's disk, and one runs git, while all sessions wait, and tells the names of files in the folder.
    """

    left, since = float(MOST_AT_ONCE), time.monotonic()

    async def received() -> Message:
        nonlocal left, since
        while True:
            message = await receive()
            content = message.get("bytes")
            if message["type"] != "websocket.receive" or not content:
                return message
            read, now = _of_a_page(content), time.monotonic()
            names = 0 if read is None else len(read.file_urls_request.file_names)
            left = min(MOST_AT_ONCE, left + (now - since) * PER_SECOND) - 1 - names - len(content) / BYTES_OF_ONE
            since = now
            if left < 0:  # the connection is not read meanwhile
                await asyncio.sleep(-left / PER_SECOND)
            if read is not None:
                return message

    return received


def _of_a_page(content: bytes) -> BackMsg | None:
    """The message, if a page can have sent it."""
    if len(content) > MOST_MESSAGE_BYTES:
        return None
    message = BackMsg()
    try:
        message.ParseFromString(content)
    except DecodeError:
        return None
    return message if _is_of_a_page(message) else None


def _is_of_a_page(message: BackMsg) -> bool:
    kind = message.WhichOneof("type")
    if kind == "backend_operation_request":
        asked = message.backend_operation_request
        is_short = len(asked.request_id) + len(asked.session_id) <= LONGEST_IDS
        return is_short and asked.WhichOneof("payload") in {"deferred_file", "dataframe_chunk"}
    if kind == "rerun_script":
        run = message.rerun_script
        return len(run.widget_states.widgets) <= MOST_WIDGETS and _is_short(run.query_string)
    if kind == "file_urls_request":
        asked_for = message.file_urls_request
        return len(asked_for.file_names) <= MOST_FILES and len(asked_for.request_id) <= LONGEST_IDS
    return kind in {"stop_script", "app_heartbeat"}


def _is_short(query: str) -> bool:
    """Whether what stands behind the question mark of an address is no longer than that of a link can be."""
    return len(query) <= MOST_ADDRESS_CHARACTERS and query.count("&") < MOST_ADDRESS_KEYS


_read_value = WStates.__getitem__


def _value_or_default(values: WStates, widget: str) -> Any:
    """The value of a widget as Streamlit reads it; the widget's default if a message held what no page sends.

    Streamlit reads what was sent when a run begins, and keeps it until that has worked: a number for a list of texts, or
    broken JSON, would end this run and each later one of the session.
    """
    kept, widget_type = values.states.get(widget), values.widget_metadata.get(widget)
    if not isinstance(kept, Serialized) or widget_type is None:
        return _read_value(values, widget)
    sent, expected = kept.value.WhichOneof("value"), widget_type.value_type
    # No value at all is that of a field that was cleared.
    if sent is None or expected is None or sent == expected or {sent, expected} <= NUMBERS:
        try:
            value = _read_value(values, widget)
        except KeyError:  # which Streamlit takes for no value
            raise
        except Exception as problem:  # noqa: BLE001 - each kind of widget reads its values in its own way
            log.info("a value was dropped: %s", type(problem).__name__)
        else:
            if sent == "json_trigger_value" and isinstance(value, list):
                value = _last_of_each_event(value)
                values.states[widget] = Value(value)
            if _is_small(value, MOST_VALUES if sent in COMPONENT_VALUES else sys.maxsize):
                return value
    default = widget_type.deserializer(None)
    values.states[widget] = Value(default)
    return default


def _last_of_each_event(events: list[Any]) -> list[dict[str, Any]]:
    """The events that can have an effect: of several with one name a page reads the last one."""
    named = {
        event["event"]: event for event in events if isinstance(event, dict) and isinstance(event.get("event"), str)
    }
    return list(named.values())[-MOST_EVENTS:]


def _is_small(value: Any, most: int) -> bool:
    """Whether a value has at most `most` values within it, in at most MOST_LEVELS levels: Streamlit copies it by recursion."""
    level, count = [value], 0
    for _ in range(MOST_LEVELS):
        lists = (part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list))
        level = list(chain.from_iterable(lists))
        count += len(level)
        if not level or count > most:
            return not level
    return False


_answer = AppSession._handle_backend_operation_request
_asked: Counter[str] = Counter()  # what waits, by session; only the event loop's thread
_turns: dict[str, asyncio.Lock] = {}  # by session


async def _answer_in_turn(session: AppSession, request: BackendOperationRequest) -> None:
    """Answer what a page asks for beside its runs: one thing at a time for each session, of which few may wait.

    Streamlit would make as many files at once as it is asked for, each in memory, and write into the log what was sent to it
    under a false name.
    """
    if request.session_id != session.id or not _is_own(request) or _asked[session.id] >= MOST_ASKED:
        refused = ForwardMsg()
        refused.backend_operation_response.request_id = request.request_id
        refused.backend_operation_response.error_msg = "This is not there, or too much is waited for."
        session._enqueue_forward_msg(refused)
        return
    _asked[session.id] += 1
    try:
        async with _turns.setdefault(session.id, asyncio.Lock()):
            await _answer(session, request)
    finally:
        _asked[session.id] -= 1
        if not _asked[session.id]:
            del _asked[session.id], _turns[session.id]


def _is_own(request: BackendOperationRequest) -> bool:
    """Whether a file that is to be made is one that the session itself was offered."""
    if request.WhichOneof("payload") != "deferred_file":
        return True
    offered = runtime.get_instance().media_file_mgr._deferred_callables.get(request.deferred_file.file_id)
    return offered is not None and offered["session_id"] == request.session_id


_request_run = AppSession.request_rerun
# What asked for the page that a session opens, and the pages at which its browser may still be; only the event loop's thread.
_opened: WeakKeyDictionary[AppSession, tuple[ClientState, frozenset[str]]] = WeakKeyDictionary()


def _run_of_opened_page(session: AppSession, sent: ClientState | None) -> None:
    """Ask for a run. What a part of a page sends while the page is being left does not open this page again.

    Until a browser hears of the page that a person opens, all that it sends names the page before: a bar that is drawn anew
    every second, a component that says its size. Streamlit draws the page that was named last: the click would be lost.
    """
    if sent is not None and sent.page_script_hash:
        shown = session._pages_manager.current_page_script_hash
        opening, left = _opened.pop(session, (sent, frozenset[str]()))
        values = (state.WhichOneof("value") or "" for state in sent.widget_states.widgets)
        if sent.fragment_id or any(value.endswith("trigger_value") for value in values):
            if sent.page_script_hash in left:
                for name in ("page_script_hash", "query_string", "is_history_navigation"):
                    setattr(sent, name, getattr(opening, name))
                _opened[session] = opening, left
        elif sent.page_script_hash != shown:
            _opened[session] = sent, (left | {shown, opening.page_script_hash}) - {sent.page_script_hash}
    _request_run(session, sent)


AppSession._handle_backend_operation_request = _answer_in_turn  # type: ignore[assignment, method-assign]
AppSession.request_rerun = _run_of_opened_page  # type: ignore[assignment, method-assign]
WStates.__getitem__ = _value_or_default  # type: ignore[method-assign]


class KeptDownload(MediaFileMetadata):
    """What is noted of a file: one that was made on a click is marked for deletion only after DOWNLOAD_WAIT.

    Streamlit deletes it with the second run of any session that ends: in a lecture room before the browser has asked for it,
    which then gets a 404 and says nothing.
    """

    _made: float | None = None  # seconds of the monotonic clock

    def mark_for_delete(self) -> None:
        if self._made is None:
            self._made = time.monotonic()
        if time.monotonic() - self._made >= DOWNLOAD_WAIT:
            super().mark_for_delete()


media_file_manager.MediaFileMetadata = KeptDownload  # type: ignore[misc]
# Else the first element that is drawn has Streamlit look up the files of all loaded modules, to find out whether it runs in a
# notebook: a quarter of the first page's time.
delta_generator._use_warning_has_been_displayed = True
# Of each part of a component's data Streamlit asks pandas whether it is a table. Ours get none, and wait for no import.
serialization.is_dataframe_like = lambda obj: False
# What is larger is not even received: Streamlit lets each connection fill 200 MB, since it has one limit for what it sends and
# what it gets. The server's configuration is made before this module is read, and asked for each connection.
uvicorn.Config.ws_max_size = property(lambda _: MOST_RECEIVED_BYTES, lambda _, value: None)  # type: ignore[assignment]


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Content-Security-Policy"] = f"frame-ancestors {access.frame_ancestors()}"
            headers["X-Content-Type-Options"] = "nosniff"
            headers["Referrer-Policy"] = "same-origin"  # an address carries what a person typed
        await send(message)

    return sent


# Pages stand beside each other below the server's root, so that it is where the address of a page ends. Without this the
# browser asks for the server below the page's own path first, and its console has an error for each answer of 404.
SERVER_OF_PAGES = "<script>window.__streamlit = {BACKEND_BASE_URL: new URL('.', window.location.href).href}</script>"


# Streamlit's own code for what Start draws: the browser has it before the first element says that it is needed.
EARLY = ("BidiComponent", "serialization", "recordbatch", "Selectbox", "Button", "FileUploader", "Html", "purify.es")


def early_scripts() -> list[str]:
    """The names of the files of EARLY in the installed Streamlit."""
    folder = Path(st.__file__).parent / "static" / "static" / "js"
    return sorted(path.name for name in EARLY for path in folder.glob(f"{name}.*.js"))


class StyledPage:
    """Puts our style sheet into the page that a browser loads first, and says in it where the server is.

    As an element that a script draws it would arrive seconds after the first others, which would then move. Of
    rules that are equally specific the later one counts: it stands after Streamlit's own, which are in the head, and before
    what pages draw.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        style = (ASSETS / "web" / "style.css").read_text(encoding="utf-8")
        early = "".join(f'<link rel="modulepreload" href="./static/js/{name}">' for name in early_scripts())
        self._begin = f"<body>{SERVER_OF_PAGES}<style>{style}</style>{early}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else {}
        if "text/html" not in headers.get("accept", ""):
            await self.app(scope, receive, send)
            return
        path = scope["path"].removeprefix(_below_base("/"))
        if access.is_below_a_page(path):
            await RedirectResponse(_below_base("/"))(scope, receive, send)
            return
        if address := await run_in_threadpool(_corrected, path, scope["query_string"]):
            # 307, before Streamlit sees the address: the browser's history has one step for it.
            await RedirectResponse(address)(scope, receive, send)
            return
        # Neither compressed nor out of the browser's store: it has some 24 kB, and its date does not tell another style sheet.
        kept = [pair for pair in scope["headers"] if pair[0] not in UNSTYLED_HEADERS]
        started: Message | None = None
        body = b""

        async def sent(message: Message) -> None:
            nonlocal started, body
            if message["type"] == "http.response.start" and _is_page(message):
                started = message
            elif started is None:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body"):
                    styled = body.replace(b"<body>", self._begin, 1)
                    answer = MutableHeaders(scope=started)
                    answer["Content-Length"] = str(len(styled))
                    for name in ("etag", "last-modified", "accept-ranges"):
                        del answer[name]
                    await send(started)
                    await send({"type": "http.response.body", "body": styled})

        await self.app({**scope, "headers": kept, "extensions": {}}, receive, sent)


def _corrected(path: str, query: bytes) -> str:
    """Where an address leads that names a view of another page, or is of an older form; empty where it is right."""
    if not query and not path:
        return ""
    from dashboard.declared import addresses  # here: the server answers before it is loaded

    found = addresses.corrected(path.strip("/"), query.decode("latin-1"))
    return "" if found is None else _below_base(f"/{found[0]}?{found[1]}")


def _is_page(message: Message) -> bool:
    return bool(message["status"] == 200 and Headers(scope=message).get("content-type", "").startswith("text/html"))


class UploadLimit:
    """Answers 413 to a file above the operator's limit, and to one for which its session has no room left.

    Streamlit has a limit of its own for a file, and none for a session. Bytes count from their announcement, or else as
    they arrive: requests at the same time share the room.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._arriving: Counter[tuple[str, str]] = Counter()  # bytes by session and file; only the event loop's thread

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].split("/")[-4:] if scope["type"] == "http" else []
        if path[:2] != UPLOADS or len(path) < 4 or scope["method"] != "PUT":
            await self.app(scope, receive, send)
            return
        session, file = path[2:]
        if not access.uploads_allowed() or (operator_settings.LOGIN.value() and not _is_logged_in(session)):
            await PlainTextResponse(NO_UPLOADS, 403)(scope, receive, send)
            return
        arrived = claimed = 0

        def is_allowed(size: int) -> bool:
            nonlocal claimed
            more = max(0, size - FRAMING_BYTES - claimed)
            claimed += more
            self._arriving[session, file] += more
            limit = browser_limits().bytes
            return claimed <= limit and self._bytes_of(session) <= FILES_PER_SESSION * limit

        async def received() -> Message:
            nonlocal arrived
            message = await receive()
            arrived += len(message.get("body", b""))
            if not is_allowed(arrived):
                raise HTTPException(413, TOO_LARGE)
            return message

        announced = Headers(scope=scope).get("content-length", "")
        try:
            if is_allowed(int(announced) if announced.isdecimal() else 0):
                await self.app(scope, received, send)
            else:
                await PlainTextResponse(TOO_LARGE, 413)(scope, receive, send)
        finally:
            self._arriving[session, file] -= claimed
            self._arriving += Counter()  # without those that are 0
            # Where the session ended meanwhile, its other files are gone.
            if not runtime.get_instance().is_active_session(session):
                uploaded_files().remove_file(session, file)

    def _bytes_of(self, session: str) -> int:
        """The bytes of a session's files, stored and arriving. What arrives under a stored file's id replaces it."""
        arriving = {file: size for (owner, file), size in self._arriving.items() if owner == session}
        stored = dict(uploaded_files().file_storage.get(session, {}))
        return sum(arriving.values()) + sum(len(stored[file].data) for file in stored.keys() - arriving.keys())


def _is_logged_in(session: str) -> bool:
    """Whether the person of a session has logged in, as Streamlit found in the cookie when it was opened."""
    found = runtime.get_instance()._session_mgr.get_active_session_info(session)
    return found is not None and bool(found.session._user_info.get("is_logged_in"))


def uploaded_files() -> MemoryUploadedFileManager:
    """The files of all sessions: what Streamlit's own server keeps them in."""
    files = runtime.get_instance().uploaded_file_mgr
    assert isinstance(files, MemoryUploadedFileManager)
    return files


@asynccontextmanager
async def started(_: Any) -> AsyncIterator[None]:
    log.warning(access.summary())
    garbage.keep_collections_short()
    garbage.share_freed_memory()
    for line in operator_settings.unknown_variables():
        log.warning(line)
    tasks = [asyncio.create_task(_drop_old_uploads()), asyncio.create_task(run_in_threadpool(_import_first_page))]
    yield
    for task in tasks:
        task.cancel()
    readiness.end_work()


def _import_first_page() -> None:
    """Import what draws the first page, while the browser still loads its own code.

    The server sends that code meanwhile: it must get its turn often. And full collections would visit, over and over, what
    stays for ever.
    """
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SHORT_TURN)
    gc.disable()
    try:
        from dashboard import main  # noqa: F401 - here: the server answers before it is loaded
        from dashboard.declared import table

        resolve_name(table.VIEWS["home"].draw)
    except Exception:  # the page will raise it again, for whoever opens it
        log.warning("the first page could not be imported", exc_info=True)
    finally:
        gc.enable()
        sys.setswitchinterval(interval)


async def _drop_old_uploads() -> None:
    """Delete what people uploaded and did not use for the days of the setting, also while nobody visits the server."""
    for seconds in chain([MINUTE], repeat(HOUR)):
        await asyncio.sleep(seconds)
        try:
            await run_in_threadpool(_drop_old_now)
        except Exception:
            log.warning("old uploads could not be deleted", exc_info=True)


def _drop_old_now() -> None:
    from dashboard import caching  # here: the server answers before it is loaded

    caching.kept_files().drop_old()


def check_settings() -> None:
    """End the process where a setting cannot be read: a server with a wrong one may offer what its operator forbade."""
    try:
        operator_settings.check_all()
    except UserError as problem:
        sys.exit(f"The server does not start. {problem}")


check_settings()
if not operator_settings.DEBUG.value():
    logs.keep_texts_out()
app = st.App(
    Path(__file__).parent / "main.py",
    middleware=[Middleware(Guard), Middleware(UploadLimit), Middleware(StyledPage)],
    lifespan=started,
)
