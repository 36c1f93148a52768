"""`serve`: one model server for several dashboards, on a Ray cluster."""

from __future__ import annotations

import argparse
import signal
import time
from typing import Any

from components.command_line import options as shared
from components.command_line.stopping import Terminated
from components.model.catalog import EMBEDDED_KEY, typed_model

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

    models = [typed_model(name.strip()) for name in options.models.split(",") if name.strip()]
    asked: list[int] = []  # the signals that asked it to stop: no lock, since one may be held where a signal comes

    def stop(number: int, _: Any) -> None:
        asked.append(number)
        if len(asked) > 1:  # do not wait for what is under way
            raise _stopped_by(number)

    # What a script starts in the background ignores SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with serving(models, options.address, options.gpus) as is_there:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)  # no exception from here on: it would be lost in one of Ray's callbacks
        shared.note(f"Serving {', '.join(models)}. Stop with Ctrl-C: dashboards then compute by themselves.")
        next_look = 0.0
        while not asked:
            if time.monotonic() >= next_look:
                if not is_there():
                    break
                next_look = time.monotonic() + LOOK_SECONDS
            time.sleep(STOP_SECONDS)
    if asked:
        raise _stopped_by(asked[0])
    shared.note("Another model server has taken its place.")


def _stopped_by(number: int) -> KeyboardInterrupt:
    return Terminated() if number == signal.SIGTERM else KeyboardInterrupt()
