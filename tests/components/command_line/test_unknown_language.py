"""Commands say on standard error and in their JSON that the model does not know the language."""

from __future__ import annotations

import json

from tests.components.command_line.in_process import run

THAI = ("ธนาคารเปิดตอนเช้า", "ฉันฝากเงินที่ธนาคาร")
SAID = "all-MiniLM-L6-v2 does not know the language of {}: 100 % of letters are unknown or read one by one"


def is_said(done, of):
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["unknown_language"]
    plain = [sentence.replace("\u00a0", " ").replace("\u202f", " ") for sentence in found]
    assert [sentence.partition(" (usual")[0] for sentence in plain] == [SAID.format(name) for name in of]
    assert all(sentence in done.stderr for sentence in found)
    assert ("does not know the language" in done.stderr) == bool(of)


def test_why_names_the_text(loaded_once):
    is_said(run("why", *THAI, "--json", "-"), ["TEXT_A", "TEXT_B"])
    is_said(run("why", "The bank is closed.", THAI[1], "--json", "-"), ["TEXT_B"])
    is_said(run("why", "Die Bank am Fluss ist geschlossen.", "La banque est fermée.", "--json", "-"), [])


def test_search_names_the_index_and_the_query(loaded_once, tmp_path):
    for name, lines in (("thai", THAI), ("english", ("The bank is closed.", "A dog ran."))):
        (tmp_path / f"{name}.txt").write_text("\n".join(lines), encoding="utf-8")
        made = run("index", str(tmp_path / f"{name}.txt"), "--out", str(tmp_path / name), "--json", "-")
        is_said(made, ["the texts"] if name == "thai" else [])
    is_said(run("search", str(tmp_path / "thai"), "the bank", "--json", "-"), ["the index"])
    is_said(run("search", str(tmp_path / "english"), THAI[0], "--json", "-"), ["the query"])
    is_said(run("search", str(tmp_path / "english"), "the bank", "--json", "-"), [])


def test_agreement_names_the_pairs(loaded_once, tmp_path):
    path = tmp_path / "scored.csv"
    path.write_text(f"sentence1,sentence2,score\n{THAI[0]},{THAI[1]},4\n{THAI[1]},ที่ธนาคารตอนเช้า,1\n", encoding="utf-8")
    is_said(run("sts", str(path), "--json", "-"), ["the pairs"])


def test_evaluate_names_texts_and_queries(loaded_once, tmp_path):
    rows = [{"sentence": text, "compressed": text[:8]} for text in (*THAI, "ธนาคารปิด", "ที่ธนาคารตอนเช้า")]
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    is_said(run("evaluate", str(path), "--json", "-"), ["the texts", "the queries"])
