"""The part of Markdown that lessons and pages use, as HTML: paragraphs, lists, bold, italic, code and links.

The text is escaped first, so that only these marks become HTML: whatever a person typed stays text.
"""

from __future__ import annotations

import re
from html import escape, unescape

# Marks that Streamlit draws and a plain page cannot: icons, and colours, whose text is kept.
_ICON = re.compile(r":material/\w+:\s?")
# Lengths are bounded: each of many beginnings without an end would look through the rest of the text.
_COLOURED = re.compile(r":[a-z]{1,20}(?:-background)?\[([^\]]{0,1000})\]")
_LINK = re.compile(r"\[([^\[\]]{1,1000})\]\((https://[^\s()]{1,2000})\)")
_PERCENT = re.compile(r"(?:(?<=\d)|(?<=\d</strong>)) %")  # a number and its sign stay in one line
_SHIELDED = 0xE000  # of private use: a character after a backslash stands for itself, and is no mark


def to_html(markdown: str) -> str:
    """A text as HTML."""
    return "".join(_block(block) for block in re.split(r"\n\s*\n", _shielded(markdown).strip()) if block)


def to_text(markdown: str) -> str:
    """Markdown as plain text: its words without marks."""
    within = re.sub(
        r"</?(?:strong|em|code|a|b|i)\b[^<>]*>", "", to_html(markdown)
    )  # of a sentence: no space is between
    return " ".join(unescape(re.sub(r"<[^<>]*>", " ", within)).replace("\u2060", "").split())


def _shielded(text: str) -> str:
    """The text without marks that have no place on a plain page; escaped characters are taken out of the way."""
    text = re.sub(r"\\([!-/:-@\[-`{-~])", lambda match: chr(_SHIELDED + ord(match[1])), text)
    return _COLOURED.sub(r"\1", _ICON.sub("", text)).replace("\u2060", "")


def _block(block: str) -> str:
    lines = block.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("- ")]
    if not starts:
        return f"<p>{_inline(' '.join(lines))}</p>"
    before = f"<p>{_inline(' '.join(lines[: starts[0]]))}</p>" if starts[0] else ""
    ends = [*starts[1:], len(lines)]
    items = (" ".join(line.strip() for line in lines[start:end])[2:] for start, end in zip(starts, ends, strict=True))
    return f"{before}<ul>{''.join(f'<li>{_inline(item)}</li>' for item in items)}</ul>"


def _inline(text: str) -> str:
    parts = re.split(r"(`[^`]+`)", escape(text))
    html = "".join(
        f"<code>{part[1:-1]}</code>"
        if part.startswith("`") and part.endswith("`") and len(part) > 2
        else re.sub(
            r"\*([^*\s](?:[^*]*[^*\s])?)\*", r"<em>\1</em>", re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", part)
        )
        for part in parts
    )
    html = _PERCENT.sub("\u00a0%", _LINK.sub(r'<a href="\2">\1</a>', html))
    return re.sub(
        f"[{chr(_SHIELDED + 0x21)}-{chr(_SHIELDED + 0x7E)}]", lambda match: escape(chr(ord(match[0]) - _SHIELDED)), html
    )
