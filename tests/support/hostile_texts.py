"""Texts that would like to break out of the string they stand in."""

from __future__ import annotations

HOSTILE = [
    'She said "no".',
    "It's 'fine'",
    "both ' and \"",
    '"""',
    "'''",
    "\\",
    'ends in a backslash and a quote \\"',
    "two\nlines\r\nand a tab\t",
    "line\u2028separator, paragraph\u2029separator, next\x85line",
    "right-to-left \u202e override, zero\u200bwidth",
    "null \x00 and escape \x1b[31m",
    "lone surrogate \ud800",
    "{braces} %s {0} f-string",
    '"); import os; os.abort(); ("',
    "مرحبا 你好 🙂",
    "",
]
