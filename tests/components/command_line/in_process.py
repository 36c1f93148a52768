"""The command line in this process: what a command prints and its status, without starting Python and torch again."""

from __future__ import annotations

import io
import subprocess
from contextlib import redirect_stderr, redirect_stdout

from components.command_line.program import main

# What a command requires, by its name; nothing of it has to exist where the command's own work is replaced.
ARGUMENTS = {
    "index": ("corpus.txt", "--out", "index"),
    "search": ("index", "query"),
    "rerank": ("index", "queries.txt"),
    "evaluate": ("pairs.csv",),
    "diagnose": ("pairs.csv",),
    "sts": ("pairs.csv",),
    "why": ("a", "b"),
    "predict": ("a [MASK]",),
    "check": ("index",),
    "plan": ("--sentences", "10"),
    "verify": ("no-such-folder",),
    "site": ("site",),
    "numbers": ("/meaning?v=score-split",),
}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What a process with these arguments would give. test_commands.py holds that processes work too."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = main(arguments)
        except SystemExit as ended:  # how argparse leaves after --help
            status = 0 if ended.code is None else ended.code if isinstance(ended.code, int) else 1
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())
