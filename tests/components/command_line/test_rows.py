"""What the commands say of the rows of a file, and what they measure of it."""

from __future__ import annotations

import json

import pytest

from components.retrieval.corpora.rows.roles import offered_pair
from tests.components.command_line.in_process import run
from tests.support.row_files import THINGS, answered, asked, lines, parts_file, scored, wrong


@pytest.fixture
def written(tmp_path):
    def write(name: str, content: bytes) -> str:
        (tmp_path / name).write_bytes(content)
        return str(tmp_path / name)

    return write


def test_training_names_its_columns_and_shows_three_rows(written):
    rows = [{"query": asked(thing), "pos": [answered(thing)], "neg": wrong(thing)} for thing in THINGS]
    done = run("train", written("bge.jsonl", lines(rows)), "--dry-run", "--held-out", "0.4", "--json", "-")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)["data"]
    assert data["columns"] == {"anchor": "query", "positive": "pos", "negative": "neg"}
    assert data["texts_of_a_row"] == ["anchor", "positive", "negative", "negative_2", "negative_3"]
    assert data["reading"]["rows_read"] == data["reading"]["rows_used"] == 6
    assert [row["row"] for row in data["reading"]["preview"]] == [1, 2, 3]
    assert "Columns: anchor = query, positive = pos, negative = neg (by their names)." in done.stderr
    assert f"Row 1: {json.dumps(rows[0])[:200]}" in done.stderr
    assert f"  read as: anchor: {asked('kettle')}; positive: {answered('kettle')}; negative:" in done.stderr


def test_training_leaves_out_test_rows_unless_it_is_told_to(written):
    path = written("all.tsv", parts_file(parts=["train", "train", "train", "dev", "dev", "test"]))
    done = run("train", path, "--objective", "cosine", "--dry-run", "--json", "-")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)["data"]
    assert result["rows"] == 5
    assert json.loads(done.stdout)["split"] == {"train": 3, "held_out": 2, "groups": 5, "shared_texts": 0}
    assert result["reading"]["part"] == {
        "column": "split",
        "rows": {"train": 3, "dev": 2, "test": 1},
        "other_values": {},
        "used": "train",
        "held_out": "dev",
        "is_default": True,
    }
    assert "To use other rows: --part train or dev or test or all" in done.stderr
    every = run(
        "train", path, "--objective", "cosine", "--dry-run", "--json", "-", "--part", "all", "--held-out", "0.4"
    )
    assert json.loads(every.stdout)["data"]["rows"] == 6


def test_agreement_says_what_was_read_and_measures_the_test_rows(written):
    path = written("all.tsv", parts_file())
    done = run("sts", path, "--json", "-")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [each["n"] for each in result["runs"]] == [3]
    assert result["reading"]["part"]["used"] == "test"
    assert "only the test rows are used" in done.stderr
    assert "Columns left out: genre (such as 'news')." in done.stderr
    dry = run("sts", written("scores.csv", scored(("4,85", "high", "3", "2", "1", "0"))), "--dry-run", "--json", "-")
    assert dry.returncode == 0, dry.stderr
    assert json.loads(dry.stdout)["pairs"] == 5
    assert "1 of 6 rows cannot be used and is left out: row 3 (the score is not a number)." in dry.stderr
    assert "  left out: the score is not a number" in dry.stderr
    refused = run("sts", written("none.csv", scored(("high",) * 6)))
    assert refused.returncode == 2
    assert "'high'" in refused.stderr


def test_evaluate_reads_pairs_in_any_of_these_formats(written):
    rows = [{"question": asked(thing), "answers": [answered(thing), f"Ask about the {thing}."]} for thing in THINGS]
    path = written("answers.jsonl", lines(rows))
    dry = run("evaluate", path, "--dry-run", "--json", "-")
    assert dry.returncode == 0, dry.stderr
    assert json.loads(dry.stdout)["queries"] == 6
    done = run("evaluate", path, "--json", "-")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["queries"], result["correct_answers"], result["documents"]) == (6, 12, 12)
    assert result["reading"]["columns"] == {"anchor": "question", "positive": "answers"}
    split = [
        {"sentence": answered(thing), "compressed": asked(thing), "split": part}
        for thing, part in zip(THINGS, ["train", "test"] * 3, strict=True)
    ]
    done = run("evaluate", written("split.jsonl", lines(split)), "--json", "-")
    assert json.loads(done.stdout)["queries"] == 3
    guess = [{"left": asked(thing), "right": answered(thing)} for thing in THINGS]
    done = run("evaluate", written("guess.jsonl", lines(guess)), "--dry-run")
    assert done.returncode == 2
    assert "it has left, right." in done.stderr
    path = written("guess.jsonl", lines(guess))
    chosen = run("evaluate", path, "--columns", "anchor=left,positive=right", "--dry-run", "--json", "-")
    assert json.loads(chosen.stdout)["queries"] == 6


FAQ = b"How do I pay?;By card or cash.\nWhere is my parcel?;On its way to you.\nWho are you?;A shop in the town.\n"


def test_a_guess_about_the_first_row_names_the_option_and_the_option_decides(written):
    path = written("faq.csv", FAQ)
    guess = "How the file is written is a guess. If the first row names the columns: --header"
    done = run("index", path, "--text-column", "column 2", "--dry-run", "--json", "-")
    assert guess in done.stderr
    assert json.loads(done.stdout)["could_be_read_by"] == ["--header"]
    done = run("index", path, "--text-column", "By card or cash.", "--header", "--dry-run", "--json", "-")
    assert "As chosen, the first row names the columns." in done.stderr
    assert guess not in done.stderr
    assert json.loads(done.stdout)["rows"]["read"] == 2
    done = run("evaluate", path, "--columns", "anchor=column 1,positive=column 2", "--dry-run", "--json", "-")
    assert guess in done.stderr
    assert json.loads(done.stdout)["reading"]["could_be_read_by"] == ["--header"]
    refused = run("evaluate", path, "--columns", "anchor=question,positive=answer")
    assert refused.returncode == 2
    assert "How the file is written is a guess: if the first row names the columns: --header." in refused.stderr
    columns = "anchor=How do I pay?,positive=By card or cash."
    done = run("evaluate", path, "--columns", columns, "--header", "--dry-run", "--json", "-")
    assert json.loads(done.stdout)["queries"] == 2


def test_separator_and_quotes_can_be_chosen(written):
    rows = "".join(f"A cat {number} slept; it said.,A dog {number} ran; it said.,{number}\n" for number in range(6))
    path = written("scored.csv", f"sentence1,sentence2,score\n{rows}".encode())
    done = run("sts", path, "--separator", "semicolon", "--dry-run")
    assert done.returncode == 2
    done = run("sts", path, "--separator", "comma", "--no-quotes", "--dry-run", "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["reading"]["rows_read"] == 6
    path = written("asked.csv", "".join(f"{asked(thing)},{answered(thing)}\n" for thing in THINGS).encode())
    for option, count in (("--no-header", 6), ("--header", 5)):
        done = run("train", path, option, "--held-out", "0.4", "--dry-run", "--json", "-")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["data"]["reading"]["rows_read"] == count


def test_of_what_is_no_separated_file_no_dialect_can_be_chosen(written, tmp_path):
    done = run("evaluate", written("a.jsonl", b'{"query": "a", "answer": "b"}\n'), "--no-header")
    assert done.returncode == 2
    assert "Only separated text (.csv, .tsv)" in done.stderr
    done = run("evaluate", str(tmp_path), "--separator", "tab")
    assert done.returncode == 2
    assert "--separator tab was given with a folder." in done.stderr


MAC = "question;answer\nKann ich die Lieferadresse ändern?;Ja, solange die Ware das Lager noch nicht verlassen hat.\n"
MAC += "Wie lösche ich mein Konto?;Schreiben Sie uns; wir löschen es.\n".replace("uns;", "uns,")
MAC += "Wo liegt die Größentabelle?;Sie liegt bei den Artikeln.\n"
MAC += "Gibt es Rückgaben?;Ja, drei Wochen ab Erhalt.\n"


@pytest.mark.parametrize("command", [["evaluate"], ["train", "--held-out", "0.4"]])
def test_a_guessed_encoding_is_named_and_can_be_chosen(written, command):
    path = written("mac.csv", MAC.encode("mac_roman"))
    name, *others = command
    guessed = run(name, path, *others, "--dry-run", "--json", "-")
    assert guessed.returncode == 0, guessed.stderr
    assert "The encoding cp1252 is a guess." in guessed.stderr
    assert "If letters are wrong, name the encoding: --encoding NAME" in guessed.stderr
    chosen = run(name, path, *others, "--dry-run", "--encoding", "mac_roman", "--json", "-")
    assert chosen.returncode == 0, chosen.stderr
    assert "Lieferadresse ändern?" in chosen.stderr
    assert "is a guess" not in chosen.stderr
    result = json.loads(chosen.stdout)
    reading = result["reading"] if "reading" in result else result["data"]["reading"]
    assert (reading["encoding"], reading["encoding_is_guess"]) == ("mac_roman", False)


def test_scored_pairs_can_be_read_in_an_encoding(written):
    rows = "sentence1;sentence2;score\nDer Bär schläft.;Ein Bär ruht.;4,5\nEr lügt.;Es schneit.;0,5\n"
    path = written("mac.csv", rows.encode("mac_roman"))
    assert "The encoding " in run("sts", path, "--dry-run").stdout
    chosen = run("sts", path, "--dry-run", "--encoding", "mac_roman")
    assert "Der Bär schläft." in chosen.stdout
    assert "is a guess" not in chosen.stdout + chosen.stderr


@pytest.mark.parametrize(
    ("command", "read"),
    [
        ("index", "  Antwort: Ja, wir nehmen alle Karten."),
        ("evaluate", "Columns: anchor = Frage, positive = Antwort (by"),
    ],
)
def test_a_dry_run_is_the_result_and_knows_german_names(written, command, read):
    path = written("fragen.csv", b"Nr;Frage;Antwort\n1;Wo ist es?;Im Konto.\n2;Karte?;Ja, wir nehmen alle Karten.\n")
    done = run(command, path, "--dry-run")
    assert read in done.stdout
    assert done.stderr == ""
    assert "by its name" in done.stdout or "by their names" in done.stdout


def test_repeated_scored_pairs_are_counted_and_each_counts(written):
    rows = [("Der Bär schläft.", "4,25"), ("Er lügt.", "1"), ("Er lügt.", "1"), ("Er lügt.", "2"), ("Es taut.", "0")]
    table = "".join(f"{one};Es schneit.;{score}\n" for one, score in rows)
    path = written("sts.csv", f"sentence1;sentence2;score\n{table}".encode())
    done = run("sts", path, "--json", "-")
    said = "2 pairs repeat an earlier one, 1 of them with another score; each counts."
    assert said in done.stderr
    result = json.loads(done.stdout)
    assert said in result["reading"]["notes"]
    assert [each["n"] for each in result["runs"]] == [5]


def test_an_encoding_is_not_for_a_folder(tmp_path):
    done = run("evaluate", str(tmp_path), "--encoding", "cp1252")
    assert done.returncode == 2
    assert "--encoding was given with a folder." in done.stderr


def test_columns_of_queries_are_guessed_as_a_page_guesses_them(written):
    rows = [
        {"kind": "ok", "user": asked(thing), "reply": f"{answered(thing)} {answered(thing)} {answered(thing)}"}
        for thing in THINGS
    ]
    done = run("diagnose", written("chat.jsonl", lines(rows)))
    assert done.returncode == 0, done.stderr
    why = "reply by its name, user as the only other column of texts"
    assert f"Columns: anchor = user, positive = reply ({why})." in done.stderr
    assert "The columns are a guess. To choose others: --columns anchor=user,positive=reply" in done.stderr
    with_topics = [row | {"topic": f"about {thing}"} for row, thing in zip(rows, THINGS, strict=True)]
    refused = run("diagnose", written("topics.jsonl", lines(with_topics)))
    assert refused.returncode == 2
    assert (
        "If user holds the queries and reply their right texts: --columns anchor=user,positive=reply" in refused.stderr
    )
    # Ids are no queries and a question is no right text; the columns that are offered are two, and quoted for a shell.
    numbered = [{"no": f"A-{place}", "long text": answered(thing)} for place, thing in enumerate(THINGS)]
    questions = [{"question": f"{asked(thing)} {answered(thing)}", "topic": f"on {thing}"} for thing in THINGS]
    offered = {"numbered": "'anchor=no,positive=long text'", "questions": "anchor=topic,positive=question"}
    for name, kept in (("numbered", numbered), ("questions", questions)):
        refused = run("evaluate", written(f"{name}.jsonl", lines(kept)))
        assert refused.returncode == 2
        assert f"--columns {offered[name]}" in refused.stderr, refused.stderr
    assert offered_pair(["a", "b", "query"], "", "query") == ("b", "query")
