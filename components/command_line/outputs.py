"""The files that commands write their results into, refused before the work where they could not be written."""

from __future__ import annotations

import os
from pathlib import Path

from components.errors import InputError
from components.folders import check_writable, write_text


def file_of(target: str) -> Path:
    """The file that is written for --json: where a link leads, which would be replaced otherwise."""
    return Path(os.path.realpath(target))


def check_target(target: str) -> None:
    """Refuse a file that could not be written after the work is done."""
    path = file_of(target)
    try:
        if path.is_dir():
            raise not_writable(target, "it is a folder")
        if path.exists() and not path.is_file():
            raise not_writable(target, "it is a pipe, a socket or a device")
        if not path.parent.is_dir():
            raise not_writable(target, "its folder does not exist")
        if path.exists() and not os.access(path, os.W_OK):
            raise not_writable(target, "it may only be read")
        check_writable(path.parent)
    except OSError as problem:  # also a name that is too long
        raise not_writable(target, problem.strerror or str(problem)) from problem


def not_writable(target: str, reason: str) -> InputError:
    return InputError(
        f"{target} could not be written: {reason}.",
        "The output must be a file in an existing folder in which files can be written.",
        "Choose another file, or - for standard output.",
    )


def write_whole(target: str, text: str) -> None:
    """Write a text file in UTF-8 completely or not at all. Raises InputError where that is impossible."""
    try:
        write_text(file_of(target), text)
    except OSError as problem:
        raise not_writable(target, problem.strerror or str(problem)) from problem
