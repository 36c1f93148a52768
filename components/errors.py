"""The errors that people are meant to read.

Domain code raises one of these (or a plain ValueError for a programming mistake); the dashboard turns them
into a message. Each says what was given, what was expected, and how to mend it.
"""

from __future__ import annotations

from typing import Literal

ModelProblem = Literal[
    "offline",  # the hub is out of reach and the model is not on this machine
    "not_found",  # no such repository, revision or folder
    "gated",  # the repository wants a login or an accepted licence
    "no_safetensors",  # weights only in formats that can run code when they are read
    "damaged",  # files incomplete, truncated or with another checksum than expected
    "unsupported",  # not a BERT-family encoder, or it needs code of its own
    "not_allowed",  # the operator has switched free model names off
    "disk",  # no room to store the files
    "cancelled",  # a person stopped the download
    "failed",  # anything else; the log tells more
    "device",  # the device asked for is not there
]


class PeopleError(ValueError):
    """A problem a person can mend. `given`, `expected` and `mend` are whole sentences."""

    def __init__(self, given: str, expected: str, mend: str) -> None:
        super().__init__(f"{given} {expected} {mend}")
        self.given, self.expected, self.mend = given, expected, mend


class InputError(PeopleError):
    """Text or an option that cannot be worked with."""


class ModelError(PeopleError):
    """A model that cannot be had; `problem` is the machine-readable kind."""

    def __init__(self, problem: ModelProblem, given: str, expected: str, mend: str) -> None:
        super().__init__(given, expected, mend)
        self.problem: ModelProblem = problem
