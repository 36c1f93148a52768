"""Which values of a file's own columns, such as a category, a channel or a language, failed queries have more often.

A value is compared as a trait is (components.retrieval.failures.traits): Newcombe's interval of the difference between failed
and found queries, Fisher's exact test, and Holm's correction over the values of all columns; nothing is compared with fewer
failed or found queries than traits need. A query has the values of all rows that name it.

What it does not show: that a value makes a query fail. Columns of more than MOST_VALUES different values are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from components.arrays import read_only
from components.numbers import counted, enumerated, percent
from components.retrieval.failures.traits import MOST_NAMED, Traits, TraitShare, too_few

MOST_VALUES, MOST_PARTS = 20, 60  # different values of a column that is looked at, and of all such columns
MOST_CHARACTERS = 300  # of a value
MOST_SHOWN = 40  # characters of a value in its name


def parts_of(columns: Mapping[str, Sequence[str]], skipped: Collection[str] = ()) -> dict[str, str]:
    """Parts of a file's rows by the value of a column, each with its name: "team=billing" is "team: billing"."""
    found: dict[str, str] = {}
    for name, values in columns.items():
        if name in skipped or "=" in name:
            continue
        different = {value.strip() for value in set(values) if 0 < len(value.strip()) <= MOST_CHARACTERS}
        if 1 < len(different) <= MOST_VALUES:
            found |= {f"{name}={value}": f"{name}: {value[:MOST_SHOWN]}" for value in sorted(different)}
    return found if len(found) <= MOST_PARTS else {}


def values_of(columns: Mapping[str, Sequence[str]], parts: Sequence[str], rows: Sequence[Sequence[int]]) -> Traits:
    """Which of the `parts` each query has, as traits; `rows` [query] are the rows of the file that name it, at least one."""
    holds = np.zeros((len(parts), len(rows)), bool)
    named = [part.partition("=")[::2] for part in parts]
    stripped = {name: np.array([value.strip() for value in columns[name]], object) for name in dict(named)}
    every = np.concatenate([np.empty(0, np.int64), *(np.asarray(own, np.int64) for own in rows)])
    starts = np.cumsum([0, *map(len, rows)])[:-1]
    for number, (name, value) in enumerate(named if rows else ()):
        holds[number] = np.logical_or.reduceat(stripped[name][every] == value, starts)
    return Traits(tuple(parts), read_only(holds))


def share_that_fails(share: TraitShare) -> float:
    """Of the queries with a value the share that fails, 0 to 1; 0 without such a query."""
    return share.failed / max(1, share.failed + share.found)


def named_in_words(shares: Sequence[TraitShare], names: Mapping[str, str]) -> str:
    """The values that failed queries have more often by more than chance, in a sentence; "" where there is none."""
    named = [
        f"“{names[each.name]}” ({each.failed:,} of {each.failed + each.found:,} fail, {percent(share_that_fails(each))})"
        for each in shares
        if each.is_named
    ][:MOST_NAMED]
    return f"Queries with {enumerated(named)} fail more often by more than chance" if named else ""


def in_words(shares: Sequence[TraitShare], names: Mapping[str, str]) -> str:
    """Which values failed queries have more often, in a sentence; `names` are those of `parts_of`."""
    if not shares or not shares[0].failures:
        return ""
    failures, successes = shares[0].failures, shares[0].successes
    if few := too_few(failures, successes):
        return few
    every = percent(failures / (failures + successes))
    if named := named_in_words(shares, names):
        return f"{named}; of all queries {every} fail."
    values = counted(sum(share.failed + share.found > 0 for share in shares), "value")
    return (
        f"None of {values} of the file’s columns has failed queries more often by more than chance; of all queries {every} "
        "fail."
    )
