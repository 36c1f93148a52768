"""Values of a file's own columns: which parts there are, which queries have them, and what is said of their shares."""

from __future__ import annotations

from collections import UserList
from collections.abc import Iterator

import numpy as np
from scipy import stats

from components.retrieval.evaluation.metrics import holm
from components.retrieval.failures import own_columns
from components.retrieval.failures.traits import compared
from tests.support.closeness import assert_close

COLUMNS = {
    "channel": ["chat"] * 40 + ["mail"] * 40 + [" chat "] * 40,
    "note": [f"note {row}" for row in range(120)],  # too many different values
    "one": ["same"] * 120,
    "a=b": ["x", "y"] * 60,
    "team": ["red", "blue", ""] * 40,
}
ROWS = [(row,) for row in range(119)] + [(119, 40)]  # the last query stands on two rows, of both channels


class CountedColumn(UserList[str]):
    """Counts how often it is read through."""

    readings = 0

    def __iter__(self) -> Iterator[str]:
        self.readings += 1
        return iter(self.data)


def test_parts_are_the_values_of_columns_with_a_few() -> None:
    parts = own_columns.parts_of(COLUMNS)
    assert parts == {
        "channel=chat": "channel: chat",
        "channel=mail": "channel: mail",
        "team=blue": "team: blue",
        "team=red": "team: red",
    }
    assert list(own_columns.parts_of(COLUMNS, ["team"])) == ["channel=chat", "channel=mail"]
    found = own_columns.values_of(COLUMNS, tuple(parts), ROWS)
    assert found.of("channel=chat").sum() == 80
    assert found.of("channel=mail").tolist() == [40 <= row < 80 for row in range(119)] + [True]
    column = CountedColumn(COLUMNS["team"])
    own_columns.values_of(COLUMNS | {"team": column}, tuple(parts), ROWS)
    assert column.readings == 1  # also of two of its values
    assert own_columns.values_of(COLUMNS, tuple(parts), []).holds.shape == (4, 0)


def test_a_value_is_compared_as_scipy_and_holm_do() -> None:
    parts = own_columns.parts_of(COLUMNS)
    found = own_columns.values_of(COLUMNS, tuple(parts), ROWS)
    failed = found.of("channel=mail") & (np.arange(120) % 4 > 0) | (np.arange(120) % 15 == 0)
    shares = compared(found, failed)
    tables = [
        [[(held & failed).sum(), (~held & failed).sum()], [(held & ~failed).sum(), (~held & ~failed).sum()]]
        for held in found.holds
    ]
    expected = dict(zip(found.names, holm([stats.fisher_exact(table).pvalue for table in tables]), strict=True))
    for share in shares:
        assert share.adjusted_p is not None
        assert_close(share.adjusted_p, expected[share.name])
    assert [share.name for share in shares if share.is_named] == ["channel=mail"]
    said = own_columns.in_words(shares, parts)
    mail = shares[0]
    assert said == (
        f"Queries with “channel: mail” ({mail.failed} of 41 fail, {100 * mail.failed / 41:.0f} %) fail more often by more than "
        f"chance; of all queries {100 * failed.mean():.0f} % fail."
    )


def test_what_no_value_sets_apart_and_what_is_not_compared_is_said() -> None:
    parts = own_columns.parts_of(COLUMNS)
    found = own_columns.values_of(COLUMNS, tuple(parts), ROWS)
    even = compared(found, np.arange(120) % 2 == 0)
    assert own_columns.in_words(even, parts) == (
        "None of 4 values of the file’s columns has failed queries more often by more than chance; of all queries 50 % fail."
    )
    few = compared(found, np.arange(120) < 5)
    assert own_columns.in_words(few, parts) == "Fewer than 30 queries fail: too few to be sure what they share."
    assert own_columns.in_words(compared(found, np.zeros(120, bool)), parts) == ""
