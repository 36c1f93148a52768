"""What a large index would cost: hours, bytes and money, from a rate that was measured and sizes that are exact.

    hours  = sentences / (sentences a second of one machine x machines) / 3,600
    bytes  = sentences x layers x poolings x bytes of one vector, and the texts
    money  = hours x machines x price of an hour, and bytes x price of a gigabyte for a month

A rate measured on the very machines counts; elsewhere it only says what those machines would take. One pass gives every
layer and pooling (about 1.2 times the time of one), so that the hours hardly depend on them, and the bytes do.

What it does not know: slower disks and networks, machines that wait for each other, discounts.
Sizes: int8 keeps one byte a number; a product quantiser (PQ, Jegou et al. 2011, doi:10.1109/TPAMI.2010.57) with one byte for
four numbers is the usual size, not something that `index` writes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from components.errors import InputError

Format = Literal["float32", "float16", "int8", "pq"]
FORMATS: tuple[Format, ...] = get_args(Format)
LENGTH_BYTES = 4  # the length of each vector, which cosines need
START_BYTES = 8  # where a text begins
NUMBERS_PER_CODE = 4  # of a product quantiser's byte


@dataclass(frozen=True)
class Rate:
    """What was measured on some sentences of the kind to be embedded."""

    sentences_per_second: float  # of one machine
    text_bytes: float  # of one sentence, in UTF-8


@dataclass(frozen=True)
class Prices:
    """In any currency."""

    machine_hour: float
    gigabyte_month: float  # 10^9 bytes for a month


@dataclass(frozen=True)
class IndexCost:
    """What an index of so many sentences takes."""

    sentences: int
    hours: float  # from the first sentence to the last, on all machines together
    text_bytes: int
    vector_bytes: dict[Format, int]  # by the format of the numbers
    money: dict[Format, float] | None  # the machines once, and a month of storage; None without prices
    money_once: float | None  # of that, the machines


def vector_bytes(dim: int, number_format: Format) -> int:
    """Bytes of one vector of `dim` numbers with its length."""
    codes = {"float32": 4 * dim, "float16": 2 * dim, "int8": dim, "pq": -(-dim // NUMBERS_PER_CODE)}
    return codes[number_format] + LENGTH_BYTES


def cost(
    sentences: int, dim: int, layers: int, poolings: int, rate: Rate, machines: int = 1, prices: Prices | None = None
) -> IndexCost:
    """What an index of `layers` x `poolings` vectors of `dim` numbers for each sentence takes.

    Raises InputError for counts below 1, a rate of 0 or less, or prices below 0.
    """
    if min(sentences, machines) < 1 or not 0 < rate.sentences_per_second < math.inf:
        raise InputError(
            f"{sentences:,} sentences on {machines:,} machines at {rate.sentences_per_second:g} a second cannot be planned.",
            "All of these must be above 0.",
            "Correct the numbers.",
        )
    if prices is not None and not all(0 <= price < math.inf for price in (prices.machine_hour, prices.gigabyte_month)):
        raise InputError("A price is below 0, or no number.", "Prices are 0 or more.", "Correct the prices.")
    hours = sentences / (rate.sentences_per_second * machines) / 3600
    texts = round(sentences * (rate.text_bytes + START_BYTES))
    sizes = {name: sentences * layers * poolings * vector_bytes(dim, name) for name in FORMATS}
    once = None if prices is None else hours * machines * prices.machine_hour
    money = None
    if prices is not None and once is not None:
        money = {name: once + (size + texts) / 1e9 * prices.gigabyte_month for name, size in sizes.items()}
    return IndexCost(sentences, hours, texts, sizes, money, once)


def sentence_counts(numbers: Sequence[str]) -> list[int]:
    """Counts from "1e8", "10,000,000" or "250000". Raises InputError for anything else, or for less than 1."""
    counts = []
    for text in numbers:
        digits = re.sub(r"[,_](?=\d{3}(?!\d))", "", text)
        try:
            count = float(digits) if "_" not in digits else 0.0
        except ValueError:
            count = 0.0
        if not 1 <= count <= 1e15 or count != int(count):
            raise InputError(
                f"{text[:40]!r} is not a number of sentences.",
                "It must be a whole number of at least 1.",
                "Write for example --sentences 1e8, or --sentences 10000000",
            )
        counts.append(int(count))
    return counts
