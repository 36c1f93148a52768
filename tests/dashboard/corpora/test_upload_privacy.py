"""What one person uploads is never shown to another, for each kind of upload, with the same address and without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.retrieval.evaluation.run_record import Run, RunData, write_runs
from tests.support.pages import Open, settled

SECRET = "Zanzibar"  # in each file's name and, where it holds words, in its content
LINES = "\n".join(f"{SECRET} ship number {number} sailed home." for number in range(12))
RUNS = write_runs(
    [Run(f"{SECRET}'s", {"kind": "x"}, RunData(SECRET, 9, 3, "0" * 64), {}, {}, ranks=np.array([1, 2, 3]))]
)
SENSES = "word,sense,sentence\n" + "\n".join(
    f"bank,{sense},The {SECRET} bank of {sense} number {number}." for sense in ("river", "money") for number in range(4)
)
BEIR = {
    "corpus.jsonl": f'{{"_id": "a", "title": "", "text": "{SECRET} slept."}}\n{{"_id": "b", "title": "", "text": "No."}}\n',
    "queries.jsonl": f'{{"_id": "q1", "text": "{SECRET} asleep"}}\n',
    f"{SECRET}.tsv": "query-id\tcorpus-id\tscore\nq1\ta\t1\n",
}
SCORED = "sentence1,sentence2,score\n" + "\n".join(f"{SECRET} {n},A ship {n},{n % 6}" for n in range(20))
MINIMAL = "first,second,kind\n" + "\n".join(f"{SECRET} ran {n}.,{SECRET} did not run {n}.,negation" for n in range(12))
TRAINING = "query,answer\n" + "\n".join(f"{SECRET} {n},The {SECRET} ship {n}" for n in range(30))
SHOWN = {"word vectors": "2 words with 3 numbers each"}  # what a page shows of an upload, where it quotes nothing of it
# By the kind: page, address, key of the uploader, and files.
UPLOADS: dict[str, tuple[str, dict[str, Any], str, dict[str, str | bytes]]] = {
    "corpus": ("search", {"view": "corpus"}, "corpus_file", {f"{SECRET}.txt": LINES}),
    "queries": ("search", {"view": "queries"}, "queries_file", {f"{SECRET}.txt": LINES}),
    "word vectors": ("search", {"view": "corpus"}, "static_file", {f"{SECRET}.vec": f"{SECRET} 1 2 3\nship 2 1 0\n"}),
    "judged collection": ("evaluate", {"view": "graded", "gs": "file", "r": ["tfidf"]}, "graded_files", BEIR),
    "scored pairs": ("evaluate", {"view": "similarity", "src": "file"}, "sts_file", {f"{SECRET}.csv": SCORED}),
    "saved runs": ("evaluate", {"view": "compare", "r": ["tfidf", "bm25"]}, "run_files_0", {f"{SECRET}.json": RUNS}),
    "training rows": ("training", {"src": "file"}, "training_file", {f"{SECRET}.csv": TRAINING}),
    "sentences by sense": ("map", {"view": "senses", "ws": "file"}, "senses_file", {f"{SECRET}.csv": SENSES}),
    "minimal pairs": ("why", {"view": "clinic", "cs": "file"}, "clinic_file", {f"{SECRET}.csv": MINIMAL}),
}


def drawn(element: Any) -> str:
    """Every message of a page, as text; arrays and tables travel as bytes."""
    proto = getattr(element, "proto", None)
    own = "" if proto is None else str(proto) + _bytes_of(proto)
    return own + "".join(map(drawn, getattr(element, "children", {}).values()))


def _bytes_of(proto: Any) -> str:
    raw = proto.SerializeToString() if hasattr(proto, "SerializeToString") else b""
    return raw.decode("utf-8", "replace") + raw.decode("utf-16-le", "replace")


def whole(app: AppTest) -> str:
    return drawn(app._tree)


@pytest.mark.parametrize("kind", UPLOADS)
def test_what_one_person_uploads_is_shown_to_nobody_else(open_page: Open, kind: str) -> None:
    page, address, key, files = UPLOADS[kind]
    mine = settled(open_page(page, **address))
    if kind == "corpus":
        mine.segmented_control(key="corpus_way").set_value("upload").run()
    for panel in ("load_runs", "kept"):  # that hold an uploader, open
        mine.session_state[panel] = True
    mine.run()
    given = [(name, text if isinstance(text, bytes) else text.encode(), "text/plain") for name, text in files.items()]
    uploader = mine.file_uploader(key=key)
    uploader.set_value(given if uploader.multiple_files else given[0]).run()
    mine = settled(mine)
    if kind == "corpus":
        mine.button(key="use_corpus").click().run()
        mine = settled(mine)
    shown = SHOWN.get(kind, SECRET)
    assert shown in whole(mine)
    link = dict(mine.query_params)
    assert SECRET not in str(link)
    for of_link in (address,) if link == address else (address, link):
        if kind == "corpus" and of_link is link:
            of_link = {name: value for name, value in link.items() if name != "corpus"}  # which shares it, by intention
        theirs = open_page(page, **of_link)
        for panel in ("load_runs", "kept"):
            theirs.session_state[panel] = True
        theirs = settled(theirs)
        assert theirs.main.children
        assert SECRET not in whole(theirs)
        assert shown not in whole(theirs)
