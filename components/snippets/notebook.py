"""A page's figures as a Jupyter notebook: what it is, the page's settings, and the code of each figure."""

from __future__ import annotations

import ast
import html
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from components import VERSION
from components.snippets.code import START, Snippet, program

LIBRARIES = ("torch", "transformers", "numpy")
_CHECK = START[START.index("try:") :].strip("\n")  # the introduction says how to run a notebook
_LOADS_MODEL = re.compile(r"\w+ = (Backend\.load|AutoModelForMaskedLM\.from_pretrained)\(")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+.!|~$>-])")


@dataclass(frozen=True)
class TitledSnippet:
    """A figure's title and its code."""

    title: str
    snippet: Snippet


def notebook(title: str, settings: Mapping[str, str], figures: Sequence[TitledSnippet]) -> bytes:
    """The .ipynb of a page; `settings` are names with values in words.

    The model and the texts of the first figure have a cell of their own, which the others use too; a figure of another
    model or other texts has these in its own cell.
    """
    import nbformat  # its import takes 0.2 seconds, which only a person who asks for a notebook waits for
    from nbformat import v4

    models = dict.fromkeys(
        line.partition("  # ")[2] for item in figures for line in item.snippet.setup if _LOADS_MODEL.match(line)
    )
    cells = [v4.new_markdown_cell(_introduction(title, list(models), settings))]
    shared = figures[0].snippet.setup
    if shared:
        cells += [v4.new_markdown_cell("## The model and the texts"), v4.new_code_cell(program(shared).strip("\n"))]
    values = _assigned(shared)
    for figure in figures:
        setup, body = figure.snippet.setup, figure.snippet.body
        is_known = all(values.get(name) == line for name, line in _assigned(setup).items())
        lines = body if is_known else (*setup, "", *body)
        values |= _assigned(lines)
        cells += [v4.new_markdown_cell(f"## {_escaped(figure.title)}"), v4.new_code_cell(program(lines).strip("\n"))]
    first = next(cell for cell in cells if cell["cell_type"] == "code")
    first["source"] = f"{_CHECK}\n\n{first['source']}"
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # not random: the same page gives the same file
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python", "version": platform.python_version()},
    }
    return nbformat.writes(v4.new_notebook(cells=cells, metadata=metadata)).encode("utf-8")


def _introduction(title: str, models: Sequence[str], settings: Mapping[str, str]) -> str:
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    lines = [
        f"# {_escaped(title)}",
        "",
        f"**How to run it:** save this notebook in the folder of BERT Internals {VERSION}, the one with README.md and "
        "components/, and open it there, with the packages that requirements.txt lists. Your own files that a cell reads "
        "belong into the same folder.",
        "",
        "The figures of a page as code: each cell prints the numbers of one figure. Run the cells in order.",
        "",
        *(f"- Model: {_escaped(line)}" for line in models),
        f"- Made with Python {platform.python_version()}, {libraries}",
    ]
    if settings:
        lines += ["", "| setting | value |", "|---|---|"]
        lines += [f"| {_escaped(name)} | {_escaped(value)} |" for name, value in settings.items()]
    return "\n".join(lines)


def _assigned(statements: Sequence[str]) -> dict[str, str]:
    """Each name that some statements assign, with the last statement that does."""
    return {
        node.id: statement
        for statement in statements
        for node in ast.walk(ast.parse(statement))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _escaped(text: str) -> str:
    """Text of a person in one line of Markdown, as typed."""
    return _MARKDOWN.sub(r"\\\1", html.escape(" ".join(text.split()), quote=False))
