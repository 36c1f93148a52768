"""The errors that people are meant to read.

Domain code raises one of these (or a plain ValueError for a programming mistake); the dashboard turns them
into a message. Each says what is wrong, what is needed instead, and how to fix it.
"""

from __future__ import annotations

from typing import Literal

ModelErrorKind = Literal[
    "offline",  # the hub cannot be reached and the model is not on this machine
    "not_found",  # no such repository, revision or folder
    "gated",  # the repository requires a login or an accepted licence
    "no_safetensors",  # weights only in formats that can run code when they are read
    "damaged",  # files incomplete, truncated or with an unexpected checksum
    "unsupported",  # not a BERT-family encoder, or one that needs its own code
    "not_allowed",  # the operator allows only the models of the list
    "disk",  # no room to store the files
    "stopped",  # a person stopped the download
    "failed",  # anything else; the log has the details
    "device",  # the chosen device is not available, or has failed
    "memory",  # the device has too little memory
]


def first_line(problem: BaseException, most: int = 200) -> str:
    """What a library says of a failure, in one line of at most `most` characters; the name of its type if it says nothing."""
    lines = str(problem).strip().splitlines()
    return (lines[0][:most].rstrip(".") if lines else "") or type(problem).__name__


class UserError(ValueError):
    """A problem that a person can fix. `problem`, `expected` and `fix` are whole sentences."""

    def __init__(self, problem: str, expected: str, fix: str) -> None:
        super().__init__(f"{problem} {expected} {fix}")
        self.problem, self.expected, self.fix = problem, expected, fix

    def __reduce__(self) -> tuple[type[UserError], tuple[str, ...]]:
        """What pickle makes it from again in another process: the three sentences, not the message."""
        return type(self), (self.problem, self.expected, self.fix)


class InputError(UserError):
    """Text or an option that cannot be used."""


class ModelError(UserError):
    """A model that is not available; `kind` is the machine-readable reason."""

    def __init__(self, kind: ModelErrorKind, problem: str, expected: str, fix: str) -> None:
        super().__init__(problem, expected, fix)
        self.kind: ModelErrorKind = kind

    def __reduce__(self) -> tuple[type[UserError], tuple[str, ...]]:
        return type(self), (self.kind, self.problem, self.expected, self.fix)


class DatasetError(ModelError):
    """The same for a data set of the hub."""
