"""What this server lets people reach: one place for every permission, decided by its address and by the operator.

A private server (a loopback address and no proxy) serves the person who started it: files and models of that person's
machine are offered. Any other server may serve people its operator does not know: it offers neither, unless the
operator's settings say so. A widget offers what is allowed, but binds only the browser: whatever opens a file calls
`server_path`, and whatever loads a model calls `settings.allowed_model`.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from contextlib import suppress
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import streamlit as st
from streamlit.web.server import server_util

from components.errors import InputError
from components.operator_settings import (
    FRAMES,
    FREE_MODELS,
    LOGIN,
    METRICS,
    SERVER_FILES,
    TRAINING,
    UPLOADS,
    OperatorSetting,
)

UNKNOWN_HOST = (
    "This server is not reached by this name, or not through a proxy. Its operator can allow the name with Streamlit's "
    "option server.allowedHosts.\n"
)
NOT_PAGES = {"_stcore", "app", "auth", "component", "media", "static", "vendor"}  # Streamlit's own files, and its login
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
CONTAINER = Path("/.dockerenv")  # a file that Docker makes in a container


def _switch(setting: OperatorSetting[bool], default: bool) -> bool:
    chosen = setting.chosen()
    return default if chosen is None else chosen


def is_loopback(address: str | None) -> bool:
    """Whether a server at this address is reached from its own machine only. None stands for all addresses."""
    if address is None:
        return False
    if address.startswith("unix:"):
        return False  # what stands before the socket is not known
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address.lower() == "localhost"


def is_private() -> bool:
    """Whether only people at this machine reach the server, as far as its settings tell.

    A loopback address, and no sign of a proxy that serves others: no host or origin allowed beside this machine's own.
    """
    hosts = {pattern.strip().strip("[]").lower() for pattern in st.get_option("server.allowedHosts")}
    is_served_elsewhere = bool(hosts - set(LOOPBACK_NAMES) or st.get_option("server.corsAllowedOrigins"))
    return (
        is_loopback(st.get_option("server.address")) and not is_served_elsewhere and st.get_option("server.enableCORS")
    )


def free_models_allowed() -> bool:
    """Whether people may enter any hub id: on a private server, unless the operator's setting decides."""
    return _switch(FREE_MODELS, is_private())


def server_files_allowed() -> bool:
    """Whether people may open files of this machine and remove what everybody uses, such as the indexes.

    On a private server, unless the operator's setting decides. A server that offers only the models of the list
    offers no files either, unless the setting says so.
    """
    return _switch(SERVER_FILES, is_private() and free_models_allowed())


def training_allowed() -> bool:
    """Whether people may train models, and resume, stop and delete the runs of everybody.

    On a private server, unless the operator's setting decides: a run takes the processor for minutes, and disk space
    until it is deleted.
    """
    return _switch(TRAINING, is_private())


def check_training() -> None:
    """Raises InputError where training is not allowed: a widget that is not drawn can still be pressed by a browser."""
    if not training_allowed():
        raise InputError(
            "Training is switched off on this server.",
            "Its operator decides whether training is allowed.",
            f"Start the dashboard on your own machine, or ask the operator to set {TRAINING.variable}=1.",
        )


def server_path(text: str) -> Path:
    """The path of this machine that a person entered. Raises InputError where paths are not allowed.

    Nothing is looked up before that is certain. A network share is never opened: the system would send the name of its
    user to the other machine.
    """
    if not server_files_allowed():
        raise InputError(
            "This server does not open files of its own machine.",
            "It opens only models of the list, and files that you upload.",
            "Upload the file, or ask the server's operator.",
        )
    if re.match(r"[\\/]{2}", text):
        raise InputError(
            "This is the path of a network share.",
            "Only paths on this machine can be opened.",
            "Copy the files to this machine, and enter their path.",
        )
    try:
        path = Path(text).expanduser()
        os.stat(path, follow_symlinks=False)
    except (OSError, RuntimeError, ValueError) as problem:  # also: the home of a user who does not exist; zero bytes
        raise InputError(
            f"The file or folder {text[:80]!r} does not exist, or this program may not read it.",
            "The path must name an existing file or folder.",
            "Check the path.",
        ) from problem
    return path


def uploads_allowed() -> bool:
    """Whether people may upload files, unless the operator's setting forbids it."""
    return UPLOADS.value()


def may_see_pages() -> bool:
    """Whether this session's person may see the pages: everybody, unless the operator asks for a login.

    Where a login is asked for and the server has no [auth] section of Streamlit's, nobody is logged in.
    """
    return not LOGIN.value() or bool(getattr(st.user, "is_logged_in", False))


def metrics_allowed() -> bool:
    """Whether Streamlit's figures about memory and sessions can be read: only if the operator's setting says so."""
    return METRICS.value()


def frame_ancestors() -> str:
    """The pages that may show the dashboard in a frame, as Content-Security-Policy writes them: by default only its own.

    A page that frames another can lay its own buttons under a person's mouse.
    """
    return FRAMES.value()


def is_known_host(host: str | None) -> bool:
    """Whether a request's Host header is a name or number under which this server is reached.

    Streamlit's server.allowedHosts decides if it is set. Else: localhost and the loopback addresses, and on a server that
    others reach also the machine's own names and every numeric address (a foreign page's host is always a name, since
    it is the name that DNS rebinding bends).
    """
    name = _host_name(host)
    if name is None:
        return False
    allowed = st.get_option("server.allowedHosts")
    if allowed:
        return any(_matches(name, pattern.strip().lower().rstrip(".").strip("[]")) for pattern in allowed)
    if is_loopback(name):
        return True
    return not is_loopback(st.get_option("server.address")) and (_is_numeric(name) or name in _own_names())


def is_own_origin(origin: str | None, host: str | None) -> bool:
    """Whether a websocket was opened by a page of this server, or by no page at all (None).

    Origins of Streamlit's server.corsAllowedOrigins count as the server's own, and so does every origin where the
    operator switched server.enableCORS off.
    """
    if origin is None or not st.get_option("server.enableCORS"):
        return True
    if origin in {allowed.strip() for allowed in st.get_option("server.corsAllowedOrigins")}:
        return True
    try:
        return urlsplit(origin).netloc.lower() == (host or "").lower() != ""
    except ValueError:
        return False


def summary() -> str:
    """Where the dashboard is, what is allowed and what decides it, in short lines for the operator at start."""
    address = st.get_option("server.address")
    is_own = is_loopback(address)
    host = address if is_own or address not in {None, "0.0.0.0", "::"} else _own_address()
    offers = (
        ("models outside the list", free_models_allowed(), FREE_MODELS),
        ("files of this machine", server_files_allowed(), SERVER_FILES),
        ("uploads", uploads_allowed(), UPLOADS),
        ("training jobs", training_allowed(), TRAINING),
    )
    parts = [
        f"{what} are offered ({setting.variable}=0 forbids them)"
        if is_allowed
        else f"{what} are not offered ({setting.variable}=1 allows them)"
        for what, is_allowed, setting in offers
    ]
    where = server_util.get_url(f"[{host}]" if ":" in host else host)
    opened = f"Open {where}" if is_own else f"Others open {where}"
    if not is_own and CONTAINER.exists():
        opened = "Others open the address and port that this container is published at."
    return "\n  ".join(
        (
            f"The dashboard listens on {address or 'all addresses'}. {opened}",
            "Its model is loaded once the first page is there: 20 to 40 s on a slow machine. Ctrl+C ends the server.",
            *parts,
        )
    )


def _own_address() -> str:
    """The number by which other machines reach this one, else its name. Nothing is sent: a route is looked up."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # an address that stands for any other machine (RFC 5737)
        return str(probe.getsockname()[0])
    return socket.gethostname()


def _host_name(host: str | None) -> str | None:
    """The name in a Host header, in lower case without port, brackets and a final dot; None if it is not one."""
    if not host or not re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[\w.\-]+)(:\d{1,5})?", host, re.ASCII):
        return None
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return name.lower().rstrip(".") or None


def _matches(name: str, pattern: str) -> bool:
    return pattern in {"*", name} or (pattern.startswith("*.") and name.endswith(pattern[1:]))


def _is_numeric(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@cache
def _own_names() -> frozenset[str]:
    """The names of this machine, and the name the server was told to listen on."""
    names = {socket.gethostname(), str(st.get_option("server.address") or "")}
    return frozenset(name.lower() for name in names if name)


def is_below_a_page(path: str) -> bool:
    """Whether an address, without the server's base path, is below that of a page, as tokens/x is.

    Streamlit answers with a page that finds none of its scripts, and stays empty.
    """
    parts = path.strip("/").split("/")
    return len(parts) > 1 and parts[0] not in NOT_PAGES
