"""The page around bertviz's JavaScript: one HTML document without external resources.

bertviz's own pages load require.js, jQuery and d3 from another host and stay blank without a network. Here
bertviz's scripts are read from the installed package, d3 5 from the package mpld3 and jQuery 3 from XStatic-jQuery;
page.js replaces require.js and passes the data to bertviz.

Two protections against markup in tokens: all text from people is escaped in the document, and the page's content
security policy allows only these scripts to run (by their hash) and nothing to be loaded.
For the same reason Streamlit cannot measure the page: give `st.iframe` a height, not "content".
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import importlib.util
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

View = Literal["head", "model", "neuron"]

_HERE = Path(__file__).parent
# bertviz and transformers call a block a layer; the dashboard's "layer" counts hidden states.
_WORDS = (('.text("Layers")', '.text("Blocks")'), ("'Layer '", "'Block '"), ("' \\u2219 k'", "' \\u00b7 k'"))
# What page.js changes in bertviz's scripts: sizes where the frame is narrow, and a call. Each stands in its script once.
_SIZES: dict[View, dict[str, str]] = {
    "head": {
        "CHECKBOX_SIZE = 20": "CHECKBOX_SIZE = params.sizes.square",
        "TEXT_TOP = 30": "TEXT_TOP = params.sizes.top",
    },
    "model": {},
    "neuron": {
        "HEADING_TEXT_SIZE = 16": "HEADING_TEXT_SIZE = params.sizes.heading",
        "HEADING_HEIGHT = 42": "HEADING_HEIGHT = params.sizes.top",
        "const TEXT_SIZE = 15": "const TEXT_SIZE = params.sizes.text",
        "MATRIX_WIDTH = 200": "MATRIX_WIDTH = params.sizes.vector",
        "BOXWIDTH = TEXT_SIZE * 8": "BOXWIDTH = params.sizes.token",
        "BOXHEIGHT = 26": "BOXHEIGHT = params.sizes.row",
        "PADDING_WIDTH = 25": "PADDING_WIDTH = params.sizes.gap",
        "posQueries + MATRIX_WIDTH + PADDING_WIDTH * 1.5": "posQueries + params.sizes.beside",
        "posDotProduct + BOXHEIGHT + PADDING_WIDTH": "posDotProduct + BOXHEIGHT + params.sizes.step",
        "posRightText - PADDING_WIDTH - 2": "posRightText - params.sizes.arrow",
        # On a dark page its own orange and blue are too dark for small numbers; on a light one all are the dashboard's.
        f"'neg': '#ff6318',\n{' ' * 16}'pos': '#2090dd'": "'neg': '#ff9a5c', 'pos': '#66bbff'",
        f"'neg': '#ff6318',\n{' ' * 16}'pos': '#0c36d8'": "'neg': '#c97f00', 'pos': '#1f5f9e'",
        "'attn': 'blue'": "'attn': '#2463a6'",
        "'connector': \"blue\"": "'connector': '#2463a6'",
        "'text_highlight_left': \"#e5e5e5\"": "'text_highlight_left': '#c9ddf0'",
        "updateTextAttention(svg, att);": "updateTextAttention(svg, att); params.writeShares(query_index);",
    },
}
_ADDRESS = re.compile(r"https?://(?!www\.w3\.org/)")
_REQUIRE_CONFIG = re.compile(r"^require\.config\(\{.*?^\}\);\n", re.DOTALL | re.MULTILINE)


def document(
    view: View,
    *,
    title: str,
    description: str,
    facts: Mapping[str, Any],
    arrays: Mapping[str, bytes],
    dark: bool,
) -> str:
    """A whole HTML document that draws one of bertviz's views.

    `title` and `description` are plain text, the description for people who cannot see the drawing.
    `facts` is passed to the script as JSON; each of `arrays` as base64, once.
    """
    data = "".join(
        f'<script type="text/plain" id="{name}">{base64.b64encode(array).decode("ascii")}</script>\n'
        for name, array in arrays.items()
    )
    return (
        f"{_head(view)}<title>{_text(title)}</title>\n</head>\n"
        f'<body class="{view}{" dark" if dark else ""}">\n'
        f'<main id="bertviz" aria-describedby="about">\n<p id="about" class="alternative">{_text(description)}</p>\n'
        '<p id="note" role="status"></p>\n<div id="vis"></div>\n'
        "<noscript>This view needs JavaScript, which is switched off.</noscript>\n</main>\n"
        f'<script type="application/json" id="page">{script_json(facts)}</script>\n{data}'
        + "".join(f"<script>{script}</script>\n" for script in _scripts(view))
        + "</body>\n</html>\n"
    )


@functools.cache
def frame_bytes(view: View) -> int:
    """The size of a page without its data, in bytes: mostly jQuery, d3 and bertviz's script."""
    empty = document(view, title="", description="", facts={}, arrays={}, dark=False)
    return len(empty.encode())


def base64_bytes(size: int) -> int:
    """Length of `size` bytes in base64."""
    return 4 * -(-size // 3)


def script_json(value: object) -> str:
    """JSON that is safe in a script element: it cannot end the script or begin a comment.

    The output is ASCII; U+2028 and U+2029, which end lines in older JavaScript, are escaped too.
    """
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _text(text: str) -> str:
    """Text as HTML. Invalid characters, which cannot be sent, become question marks."""
    return html.escape(text.encode("utf-8", "replace").decode("utf-8"))


@functools.cache
def _head(view: View) -> str:
    """The document up to its title."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in _scripts(view)
    )
    policy = f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    style = (_HERE / "page.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{style}</style>\n"
    )


@functools.cache
def _scripts(view: View) -> tuple[str, ...]:
    """jQuery, d3, our own and bertviz's script, in the order they run."""
    theirs = _REQUIRE_CONFIG.sub("", _installed("bertviz", f"{view}_view.js"))
    # The marker also occurs in a comment: replacing it by the data itself, as bertviz does, would send the data twice.
    theirs = theirs.replace("PYTHON_PARAMS", "window.bertviz_params")
    for old, new in (*_WORDS, *_SIZES[view].items()):
        theirs = theirs.replace(old, new)
    scripts = (
        _installed("xstatic.pkg.jquery", "data/jquery.slim.min.js"),  # without the part for requests
        _installed("mpld3", "js/d3.v5.min.js"),
        (_HERE / "page.js").read_text(encoding="utf-8"),
        theirs,
    )
    # Addresses in comments, such as those of licences, lose their "https://" so that they are no longer links.
    return tuple(_ADDRESS.sub("", script) for script in scripts)


def _installed(package: str, path: str) -> str:
    """A file of an installed package, without importing it: bertviz would import torch and IPython.

    Raises ModuleNotFoundError with the command that installs it.
    """
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:  # the package's parent is missing too
        spec = None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(folder) / path
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise ModuleNotFoundError(
        f"bertviz's views need the file {path} of the package {package}, which is not installed. "
        "Install the packages of requirements.txt: pip install -r requirements.txt"
    )
