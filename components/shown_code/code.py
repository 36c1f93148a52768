"""The code of a figure: how to get its arrays, and the functions that the page called on them.

The first part is an independent way, by transformers or sentence-transformers alone (components.shown_code.arrays); the second
is the source of the very function, with what it calls. Where 30 lines cannot give the numbers, the command that does, and the
function with its paper, stand in its place.
"""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, Literal

ROOT = Path(__file__).parents[2]
OURS = "components."  # how the names of this project's modules begin
WRITING = {"--out", "--record", "--report"}  # options of commands that write files
MOST_SENTENCES = 2  # of a module's docstring that name its papers
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`(])")


@dataclass(frozen=True)
class Code:
    """A program for an environment with transformers, sentence-transformers and numpy, in two parts.

    The first gives the arrays, the second the numbers, by `functions` of this project on numpy arrays and the `statements` that
    call them.
    """

    arrays: str
    functions: tuple[Callable[..., Any], ...]
    statements: tuple[str, ...]
    language: Literal["python"] = "python"

    @property
    def numbers(self) -> str:
        """The second part."""
        said = "# What is computed from them" + (", by the functions that the page called." if self.functions else ".")
        return "\n\n".join([said, *sources(*self.functions), "\n".join(self.statements)])

    @property
    def text(self) -> str:
        """The whole program."""
        return f"from __future__ import annotations\n\n{self.arrays}\n\n{self.numbers}\n"


@dataclass(frozen=True, init=False)
class Command:
    """Where the numbers come from that 30 lines cannot give: commands of this project, and a function.

    Where it names none, the figure has that which draws its view again (`dashboard.sharing.figure_link.command`).
    """

    function: Callable[..., Any]
    commands: tuple[tuple[str, ...], ...]  # the arguments of `python -m components`
    file: str = ""  # into which they write the numbers, where they do not print them
    prints: str = "the numbers"  # or which of them, in words, where they do not print all
    lacks: str = ""  # why there is no command, in a clause

    def __init__(
        self,
        function: Callable[..., Any],
        *commands: tuple[str, ...],
        file: str = "",
        prints: str = "the numbers",
        lacks: str = "",
    ) -> None:
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "file", file)
        object.__setattr__(self, "prints", prints)
        object.__setattr__(self, "lacks", lacks)
        object.__setattr__(self, "commands", tuple(dict.fromkeys(filter(None, commands))))

    @property
    def language(self) -> Literal["bash"]:
        """How it is coloured."""
        return "bash"

    @property
    def has_effects(self) -> bool:
        """Whether a command trains a model, or writes a file or folder."""
        options = [option for arguments in self.commands for option in arguments[: _texts_begin(arguments)]]
        return any(arguments[0] == "train" for arguments in self.commands) or not WRITING.isdisjoint(options)

    @property
    def text(self) -> str:
        """The command, and below it the function's file with its papers, as comments of a shell."""
        lines = [f"# No command prints the numbers: {self.lacks}."] if self.lacks else []
        if self.commands:
            written = [
                " ".join(map(_quoted, ("python", "-m", "components", *arguments))) for arguments in self.commands
            ]
            what = f"writes the numbers into {self.file}" if self.file else f"prints {self.prints}"
            lines = [f"# In the folder of BERT Internals this {what}:", *written, "", "# All numbers of the figure:"]
        module = sys.modules[self.function.__module__]
        file = Path(inspect.getfile(module)).relative_to(ROOT).as_posix()
        lines.append(f"# {self.function.__qualname__} in {file} computes them.")
        papers = [each for each in _SENTENCE_END.split(" ".join((module.__doc__ or "").split())) if _YEAR.search(each)]
        for sentence in papers[:MOST_SENTENCES]:
            lines += [f"# {line}" for line in textwrap.wrap(sentence, 100)]
        return "\n".join(lines) + "\n"


def _quoted(argument: str) -> str:
    """An argument for bash, with codes for the characters that a terminal obeys when they are pasted, within quotes too."""
    if argument.isprintable():
        return shlex.quote(argument)
    return f"$'{''.join(map(_escaped, argument))}'"


def _escaped(letter: str) -> str:
    """A character between the quotes of $'...'."""
    if letter in "\\'":
        return f"\\{letter}"
    if letter.isprintable():
        return letter
    code = ord(letter)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _texts_begin(arguments: tuple[str, ...]) -> int:
    """The place after which no argument is an option."""
    return arguments.index("--") if "--" in arguments else len(arguments)


@dataclass(frozen=True)
class NoCode:
    """Why a figure has no code, in a sentence for people."""

    reason: str


UNWRITTEN = NoCode("There is no code for it yet.")
AnyCode = Code | Command


def sources(*functions: Callable[..., Any]) -> list[str]:
    """The source of some functions of this project, those and the numbers that they use before those that use them."""
    found: dict[str, str] = {}
    for function in functions:
        _add_source(function, found)
    return list(found.values())


def _add_source(function: Callable[..., Any], found: dict[str, str]) -> None:
    own = inspect.getmodule(function)
    for name in _names(function.__code__):
        value = getattr(own, name, None)
        if name not in found and value is not function:
            if inspect.isfunction(value) and value.__module__.startswith(OURS):
                _add_source(value, found)
            elif isinstance(value, int | float | str) and name.isupper():
                found[name] = f"{name} = {value!r}"
    found[function.__name__] = source_of(function)


def _names(code: CodeType) -> Iterator[str]:
    """The names that some code reads, in the functions within it too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def source_of(function: Callable[..., Any]) -> str:
    """A function as it stands in its file; of its docstring the first line."""
    source = inspect.getsource(function).rstrip()
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.FunctionDef)
    first, lines = tree.body[0], source.splitlines()
    if ast.get_docstring(tree) is not None and first.end_lineno != first.lineno:
        lines[first.lineno - 1 : first.end_lineno] = [f'{lines[first.lineno - 1]}"""']
    return "\n".join(lines)
