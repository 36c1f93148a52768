"""A page's figures as a Jupyter notebook: what it is, the page's settings, and the code of each figure."""

from __future__ import annotations

import html
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from components import VERSION
from components.shown_code.code import Command
from components.shown_code.written import literal

if TYPE_CHECKING:
    from components.shown_code.code import AnyCode

LIBRARIES = ("transformers", "sentence-transformers", "torch", "numpy")
ANNOTATIONS = "from __future__ import annotations"
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+.!|~$>-])")


# Before the name of the function that computes what no command prints.
WITHOUT_CELL = (
    "No cell runs this: its numbers take more than 30 lines of code, and no command of BERT Internals prints them. They are in "
    "the table of the figure, under “Share” on its page, and this computes them:\n\n"
)


# Before a command that is only shown.
WITH_EFFECTS = (
    "No cell runs this with the others, since it trains a model or writes files on this machine. Run it in a terminal, in the "
    "folder of BERT Internals, if you want that:\n\n"
)


@dataclass(frozen=True)
class TitledCode:
    """A figure's title and its code."""

    title: str
    code: AnyCode


def notebook(title: str, settings: Mapping[str, str], figures: Sequence[TitledCode]) -> bytes:
    """The .ipynb of a page; `settings` are names with values in words.

    The arrays of a figure have a cell of their own, which those that follow use too where they have the same. A command has a
    cell that runs it, unless it trains or writes files; in another place than this project's folder the cell says so, and the
    next ones run all the same.
    """
    import nbformat  # its import takes 0.2 seconds, which only a person who asks for a notebook waits for
    from nbformat import v4

    cells: list[Any] = [v4.new_markdown_cell(_introduction(title, settings))]
    last = ""  # the arrays of the figure before
    known: set[tuple[str, ...]] = set()  # commands that a cell above runs
    for figure in figures:
        cells.append(v4.new_markdown_cell(f"## {_escaped(figure.title)}"))
        if isinstance(figure.code, Command):
            fence = "`" * (2 + max(map(len, re.findall("`+", figure.code.text)), default=1))
            is_run = bool(figure.code.commands) and not figure.code.has_effects
            said = "" if is_run else WITH_EFFECTS if figure.code.commands else WITHOUT_CELL
            cells.append(v4.new_markdown_cell(f"{said}{fence}bash\n{figure.code.text}{fence}"))
            new = [arguments for arguments in figure.code.commands if is_run and arguments not in known]
            known.update(new)
            if new:
                cells.append(v4.new_code_cell(in_folder(new)))
            continue
        if figure.code.arrays != last:
            cells.append(v4.new_code_cell(last := figure.code.arrays))
        cells.append(v4.new_code_cell(f"{ANNOTATIONS}\n\n{figure.code.numbers}"))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # not random: the same page gives the same file
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python", "version": platform.python_version()},
    }
    return nbformat.writes(v4.new_notebook(cells=cells, metadata=metadata)).encode("utf-8")


def in_folder(commands: Sequence[Sequence[str]]) -> str:
    """A cell that runs commands of this project, one after the other, and prints what they print."""
    return "\n".join(
        [
            "import subprocess",
            "import sys",
            "",
            'FOLDER = "."  # that of BERT Internals, whose packages this Python needs',
            f"for arguments in {literal([list(arguments) for arguments in commands])}:",
            '    command = [sys.executable, "-m", "components", *arguments]',
            "    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True)",
            "    print(done.stdout if done.returncode == 0 else done.stderr)",
        ]
    )


def _introduction(title: str, settings: Mapping[str, str]) -> str:
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    lines = [
        f"# {_escaped(title)}",
        "",
        f"The figures of a page of BERT Internals {VERSION}: each cell with a title prints the numbers of one figure. Run the "
        "cells in order. What they need, in the versions in which the page used it: "
        f"Python {platform.python_version()}, {libraries}. Models that are not on this machine are downloaded from the hub. "
        "A command runs in the folder of BERT Internals, which FOLDER names in its cell.",
    ]
    if settings:
        lines += ["", "| setting | value |", "|---|---|"]
        lines += [f"| {_escaped(name)} | {_escaped(value)} |" for name, value in settings.items()]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """Text of a person in one line of Markdown, as typed."""
    return _MARKDOWN.sub(r"\\\1", html.escape(" ".join(text.split()), quote=False))
