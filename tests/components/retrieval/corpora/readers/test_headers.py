"""Whether the first row of a separated file names its columns: one answer, for a corpus and for rows of texts."""

from __future__ import annotations

import pytest

from components.retrieval.corpora.readers.files import read_table
from components.retrieval.corpora.readers.limits import Count
from components.retrieval.corpora.rows.read import rows_of, table_of

FORM = "Timestamp,What would you ask the bot?,What should the bot answer then?"
FORM_ROWS = [
    f"2024/03/0{n} 10:1{n}:00,How do I clean the lamp number {n}?,You wipe it {n} times with a cloth."
    for n in range(1, 7)
]
QUESTIONS = [
    "how do I clean the old kettle?\tboil a little vinegar in it",
    "how do I light the stove?\tTurn the left knob and wait.",
    "where is the spare key?\tIt hangs behind the kitchen door.",
    "who waters all the plants?\tthe neighbour does it on Sundays",
    "when does the heater start?\tIt starts at six in the morning.",
    "why is the lamp so dim?\tIts bulb has only two watts.",
]

HEADERS = {
    "a form": [FORM, *FORM_ROWS],
    "a form without times": [line.partition(",")[2] for line in (FORM, *FORM_ROWS)],
    "a form that asks for sentences": [
        "Timestamp,Write one question to the bot.,Write what it should answer.",
        *FORM_ROWS,
    ],
    "a long name above numbers": [
        "How much do you like it from 1 to 5,Please say why in your own words",
        "3,It is fine for me now",
    ],
    "years": ["Country Name,Country Code,1960,1961", "Aruba,ABW,54.2,55.4", "South Sudan,SSD,3.1,4"],
    "words": ["Headline|Summary of it", "A ship sinks in the north|It sank at night, nobody was hurt."],
}
ROWS = {
    "questions and answers": QUESTIONS,
    "a missing score": [
        "n/a\tA man is singing a song\tA man sings a song now",
        "4.5\tA dog runs in the park\tA dog is in a park",
    ],
    "two texts without marks": [
        "a man plays a guitar\ta man is playing music",
        "a dog runs to me\ta dog is running fast",
    ],
    "short texts and a score": ["A man sings\tA man is singing\t5.0", "A dog\tThe dog\t4.2"],
    "Chinese": ["怎么清洗这个旧水壶？\t在里面煮一点醋就可以了。", "备用钥匙放在哪里？\t它挂在厨房的门后面。"],
    "questions alone": ["how do I clean the old kettle?", "where is the spare key?"],
}


def parsed(lines: list[str]) -> tuple[bool, int]:
    ending = "tsv" if "\t" in lines[0] else "csv"
    table = read_table("\n".join(lines).encode(), f"a.{ending}")
    return table.is_named, len(table.numbers)


@pytest.mark.parametrize("kind", HEADERS)
def test_names_of_columns_are_no_row(kind: str) -> None:
    assert parsed(HEADERS[kind]) == (True, len(HEADERS[kind]) - 1)


@pytest.mark.parametrize("kind", ROWS)
def test_a_first_row_is_not_lost_as_names(kind: str) -> None:
    assert parsed(ROWS[kind]) == (False, len(ROWS[kind]))


def test_rows_of_texts_have_the_same_answer() -> None:
    """The question of a form is not learned as a pair, and the columns keep their names."""
    form = rows_of(
        table_of(["\n".join([FORM, *FORM_ROWS]).encode()], "form.csv", None, Count("form.csv", None)),
        "form.csv",
        chosen={"anchor": "What would you ask the bot?", "positive": "What should the bot answer then?"},
        wanted="pairs",
    )
    assert len(form.rows) == len(FORM_ROWS)
    assert form.rows[0].texts == ("How do I clean the lamp number 1?", "You wipe it 1 times with a cloth.")
    pairs = rows_of(table_of(["\n".join(QUESTIONS).encode()], "a.tsv", None, Count("a.tsv", None)), "a.tsv")
    assert [row.texts for row in pairs.rows] == [tuple(line.split("\t")) for line in QUESTIONS]
    assert any("numbered" in note for note in pairs.notes)
