"""Files of pairs, triples and scores as other people write them."""

from __future__ import annotations

import json

THINGS = ("kettle", "lamp", "bicycle", "printer", "toaster", "heater")


def lines(rows) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode()


def asked(thing: str) -> str:
    return f"How do I clean the {thing}?"


def answered(thing: str) -> str:
    return f"Wipe the {thing} with a damp cloth."


def wrong(thing: str, count: int = 3) -> list[str]:
    return [f"The museum shows a {thing} from the year {1900 + number}." for number in range(count)]


SCORES = ("4,85", "4,25", "3,65", "2", "0", "4")


def scored(scores=SCORES, separator: str = ";") -> bytes:
    rows = [separator.join((asked(thing), answered(thing), score)) for thing, score in zip(THINGS, scores, strict=True)]
    return "\n".join([separator.join(("sentence1", "sentence2", "score")), *rows]).encode()


PARTS = ("train", "Train", "dev", "test", "test", "test")


def parts_file(column: str = "split", parts=PARTS) -> bytes:
    rows = [
        f"{part}\tnews\t{number}.5\t{asked(thing)}\t{answered(thing)}"
        for number, (part, thing) in enumerate(zip(parts, THINGS, strict=True))
    ]
    return "\n".join([f"{column}\tgenre\tscore\tsentence1\tsentence2", *rows]).encode()
