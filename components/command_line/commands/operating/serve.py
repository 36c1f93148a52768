"""`serve`: one model server for several dashboards, on a Ray cluster."""

from __future__ import annotations

import argparse
import signal
import time
from typing import Any

from components.command_line import options as shared
from components.model.catalog import EMBEDDED_KEY

NAME = "serve"
LOOK_SECONDS = 5.0  # how often it looks whether another server has taken its place
STOP_SECONDS = 0.2  # how soon it notices that it was asked to stop
HELP = "compute passes for several dashboards on a Ray cluster (requirements-scale.txt)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--address", default="auto", help="the cluster: host:port, or auto for one that runs on this machine (default)"
    )
    parser.add_argument(
        "--models",
        default=EMBEDDED_KEY,
        help="the models to serve, separated by commas (default: the included one); dashboards compute others themselves",
    )
    parser.add_argument(
        "--gpus", type=float, default=0, help="GPUs to reserve for it (default: 0, it computes on the CPU)"
    )


def run(options: argparse.Namespace) -> None:
    from components.distributed.serving import serving

    models = [name.strip() for name in options.models.split(",") if name.strip()]
    asked = 0  # how often it was asked to stop: a plain number, since a lock may be held where a signal comes

    def stop(*_: Any) -> None:
        nonlocal asked
        asked += 1
        if asked > 1:  # do not wait for what is under way
            raise KeyboardInterrupt

    # SIGTERM is how services are stopped. SIGINT is set too: what a script starts in the background ignores it.
    _on_stop(signal.default_int_handler)
    with serving(models, options.address, options.gpus) as is_there:
        _on_stop(stop)  # no exception from here on: it would be lost in one of Ray's callbacks
        shared.note(f"Serving {', '.join(models)}. Stop with Ctrl-C: dashboards then compute by themselves.")
        next_look = 0.0
        while not asked:
            if time.monotonic() >= next_look:
                if not is_there():
                    break
                next_look = time.monotonic() + LOOK_SECONDS
            time.sleep(STOP_SECONDS)
    if asked:
        raise KeyboardInterrupt
    shared.note("Another model server has taken its place.")


def _on_stop(handler: Any) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)
