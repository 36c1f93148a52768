"""The chat template of a tokenizer, through which sentence-transformers writes every text of a folder without modules.json.

Such a folder says nothing of how texts are read, so that the library infers it (Transformer.infer_modalities): where the
tokenizer has a template of chats, each text becomes a message of a chat, with the template's words and special tokens around
it. With modules.json that is so only where modality_config names messages. Here a template is never rendered; it is named as
not applied.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from components.model.files.decisions import MODULES, TOKENIZER, decision
from components.model.files.published import is_within, read_json

KEY = "chat_template"
FILE = f"{KEY}.jinja"
OTHERS = "additional_chat_templates"  # a folder
MOST_CHARACTERS = (
    100_000  # of a template that is handed to the library for a comparison; published ones have up to 20,000
)


def place_of_template(folder: Path) -> str:
    """The file or folder that has a tokenizer's template of chats, in words; empty if there is none."""
    if (folder / FILE).exists():
        return FILE
    if _of_config(folder) is not None:
        return f"{KEY} in {TOKENIZER}"
    return OTHERS if any((folder / OTHERS).glob("*.jinja")) else ""


def only_template(folder: Path) -> str | None:
    """The text of the only template; None if there is none, or several, or it is too long or cannot be read."""
    if any((folder / OTHERS).glob("*.jinja")):
        return None
    text: Any
    if (folder / FILE).exists():
        if not is_within(folder / FILE, folder) or (folder / FILE).stat().st_size > 4 * MOST_CHARACTERS:
            return None
        text = (folder / FILE).read_text(encoding="utf-8", errors="replace")
    else:
        text = _of_config(folder)
    return text if isinstance(text, str) and len(text) <= MOST_CHARACTERS else None


def told_of_template(folder: Path) -> tuple[str, ...]:
    """That texts are not written as messages, for a folder without modules.json."""
    place = "" if (folder / MODULES).is_file() else place_of_template(folder)
    row = decision(TOKENIZER, KEY)
    if not place or row is None:
        return ()
    return (f"Its tokenizer has a template of chats ({place}), and the folder no {MODULES}. {row.note}",)


def _of_config(folder: Path) -> Any:
    said = read_json(folder / TOKENIZER)
    return said.get(KEY) if isinstance(said, dict) else None
