"""Connecting to Ray: a cluster by its address, or one that is started on this machine for the work and ended with it.

Ray is imported only here and in this folder, and only when somebody asks for it. It is started without its statistics of use
(which it would send to its authors) and without its dashboard, and on the loopback address: nothing leaves the machine. What
a cluster that is already running sends and to whom it listens is decided by whoever started it.

An address that nobody answers is noticed within seconds. Ray itself would wait for minutes.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import components
from components.errors import InputError, first_line

ANSWER_SECONDS = 10.0  # for each attempt to reach a cluster
CPUS_PER_WORKER = 4  # more threads than that bring a small encoder little
WORKER_RESTARTS = 4  # of one worker, before the build gives up
FAR = "ray://"  # the prefix of a Ray Client server


def imported_ray() -> Any:
    """The module ray. Raises InputError where it is not installed."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # read when ray is imported, and by what it starts
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # else notes for Ray's developers are among our lines
    try:
        import ray
    except ImportError as problem:
        raise InputError(
            f"Ray is not installed ({first_line(problem)}).",
            "Work on several machines needs it.",
            "Install it with `pip install -r requirements-scale.txt`, or leave out --engine ray.",
        ) from problem
    return ray


@contextmanager
def connected(address: str | None = None) -> Iterator[Any]:
    """The module ray, connected: to `address` (host:port, or auto for a cluster of this machine), else to one of its own.

    A connection that this process already has is used and left open. Raises InputError where Ray is not installed, for an
    address that is not one, or that no cluster answers.
    """
    ray = imported_ray()
    if ray.is_initialized():
        yield ray
        return
    _quieten()
    if address is None:
        _start(ray)
    else:
        _join(ray, address)
    try:
        yield ray
    finally:
        ray.shutdown()


def workers(ray: Any, on_cpus: bool = False) -> tuple[int, dict[str, float]]:
    """How many workers the cluster has room for, and what each takes: a GPU where there are some, else a share of the CPUs.

    `on_cpus` is for work that uses no GPU.
    """
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    gpus = 0 if on_cpus else sum(int(node.get("GPU", 0)) for node in nodes)
    if gpus:
        return gpus, {"num_cpus": 1, "num_gpus": 1}
    cpus = [int(node.get("CPU", 0)) for node in nodes if node.get("CPU", 0) >= 1]
    if not cpus:
        raise InputError(
            "The cluster has neither a CPU nor a GPU for work.",
            "Its nodes say how many they have when they are started.",
            "Start a node with `ray start --num-cpus 4` or more.",
        )
    share = min(CPUS_PER_WORKER, *cpus)
    return sum(each // share for each in cpus), {"num_cpus": share, "num_gpus": 0}


def _quieten() -> None:
    """Ray's own progress and notes stay off: commands draw one progress bar, and failures become one line."""
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _start(ray: Any) -> None:
    from ray._private import ray_constants

    # On Linux Ray replaces 127.0.0.1 by the address in the network, and then its processes listen to all networks: whoever
    # reaches one of them can run code. It must stay on the loopback address, as it does on other systems.
    may_replace, ray_constants.ENABLE_RAY_CLUSTER = ray_constants.ENABLE_RAY_CLUSTER, False
    try:
        ray.init(
            address="local",
            num_cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.CRITICAL,
            _node_ip_address="127.0.0.1",
        )
    except (OSError, RuntimeError, ValueError) as problem:
        raise InputError(
            f"Ray could not be started: {first_line(problem)}.",
            "It needs free memory, and space in the temporary folder.",
            "Free some, or leave out --engine ray.",
        ) from problem
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = may_replace


def _join(ray: Any, address: str) -> None:
    if address != "auto":
        _check_answers(ray, address)
    try:
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level=logging.CRITICAL,
            # Our code goes with the work: the machines need only the packages.
            runtime_env={"py_modules": [str(Path(components.__file__).parent)], "excludes": ["**/__pycache__"]},
        )
    except (OSError, RuntimeError, ValueError) as problem:
        raise _unreachable(address, first_line(problem)) from problem


def _check_answers(ray: Any, address: str) -> None:
    """Raise InputError unless a cluster answers within ANSWER_SECONDS, by the health check that every gRPC server has."""
    import grpc

    host, colon, port = address.removeprefix(FAR).rpartition(":")
    if not (colon and host and port.isascii() and port.isdecimal() and 0 < int(port) < 1 << 16):
        raise InputError(
            f"{address[:80]!r} is no address of a Ray cluster.",
            "It has the form host:port, such as 10.0.0.1:6379; auto finds a cluster that runs on this machine.",
            "Correct --address, or leave it out to use this machine alone.",
        )
    if host in ("localhost", "127.0.0.1") and not address.startswith(FAR):
        host = ray.util.get_node_ip_address()  # as Ray does: its nodes know each other by that
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()
    except OSError as problem:
        raise _unreachable(address, first_line(problem)) from problem
    with grpc.insecure_channel(f"{host}:{port}", options=[("grpc.enable_http_proxy", 0)]) as channel:
        ask = channel.unary_unary("/grpc.health.v1.Health/Check")
        try:
            ask(b"", timeout=ANSWER_SECONDS)
        except grpc.RpcError as problem:
            if problem.code() is not grpc.StatusCode.UNIMPLEMENTED:  # Ray Client has no health check
                raise _unreachable(address, "what answers there is no Ray cluster") from problem


def _unreachable(address: str, reason: str) -> InputError:
    return InputError(
        f"No Ray cluster could be reached at {address[:80]}: {reason}.",
        f"A running cluster with the same versions of Python and Ray must answer within {ANSWER_SECONDS:.0f} seconds.",
        "Check --address, start a cluster with `ray start --head`, or leave --address out to use this machine alone.",
    )
