"""`settings`: what the operator can set, the values, and where they come from."""

from __future__ import annotations

import argparse
from typing import Any

from components import operator_settings
from components.command_line import options as shared
from components.operator_settings import SettingValue

NAME = "settings"
HELP = "list the operator's settings, their values, and where each value comes from"
SECRET = "(set, not shown)"


def add_arguments(_: argparse.ArgumentParser) -> None:
    """No arguments beside those of every command."""


def run(options: argparse.Namespace) -> dict[str, Any]:
    rows, file = operator_settings.check_all(), operator_settings.file_path()
    if options.json != "-":
        _write(rows)
        shared.say()
        shared.say(f"File: {file or 'none'}. A variable of the environment counts before the file.")
    unknown = operator_settings.unknown_variables()
    for line in unknown:
        shared.note(line)
    return {
        "file": None if file is None else str(file),
        "settings": [
            {
                "section": row.setting.section,
                "name": row.setting.name,
                "variable": row.setting.variable,
                "value": SECRET if row.setting.is_secret and row.value else row.value,
                "source": row.source,
                "default": row.setting.rule,
                "meaning": row.setting.meaning,
            }
            for row in rows
        ],
        "unknown": list(unknown),
    }


def _write(rows: tuple[SettingValue[Any], ...]) -> None:
    """The table: one block for each section of the file, one line for each setting."""
    section = ""
    names = max(len(row.setting.name) for row in rows)
    values = min(50, max(len(_shown(row)) for row in rows))
    for row in rows:
        if row.setting.section != section:
            section = row.setting.section
            shared.say(f"[{section}]")
        value = f"{row.setting.name:<{names}}  {_shown(row):<{values}}  {row.source:<11}"
        shared.say(f"  {value}  {row.setting.variable}: {row.setting.meaning}")


def _shown(row: SettingValue[Any]) -> str:
    """A value as the environment would write it; the rule where the default has no fixed value."""
    if row.source == "default":
        return row.setting.rule
    if row.setting.is_secret:
        return SECRET
    return ("1" if row.value else "0") if isinstance(row.value, bool) else str(row.value)
