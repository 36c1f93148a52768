"""What the dashboard draws, for commands: a process of its own draws it, since no component knows the dashboard."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from components import operator_settings
from components.errors import InputError
from components.folders import ASSETS

DRAWS = "dashboard.website"


def answer_of(question: dict[str, Any]) -> dict[str, Any]:
    """What the process answers. Raises InputError for a problem that it names, RuntimeError where it gives no answer."""
    process = subprocess.Popen(
        [sys.executable, "-m", DRAWS],
        cwd=ASSETS.parent,
        # Nothing is computed that no view shows; and it is no server, which may not open every model, and asks for a login.
        env={
            **operator_settings.environment(),
            operator_settings.WARM_UP.variable: "0",
            operator_settings.FREE_MODELS.variable: "1",
            operator_settings.LOGIN.variable: "0",
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    try:
        out, _ = process.communicate(json.dumps(question))
    finally:
        process.kill()
        process.wait()
    try:
        answer: dict[str, Any] = json.loads(out)
    except ValueError as problem:
        raise RuntimeError(f"the process that draws the dashboard ended with status {process.returncode}") from problem
    if "problem" in answer:
        raise InputError(*answer["problem"])
    return answer
