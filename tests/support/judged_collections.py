"""Small judged collections in the files of each format, and what is read from them."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from components.retrieval.evaluation.graded.collection import GradedSet

DOCUMENTS = {"d1": ("Java", "A volcano erupted."), "d2": ("", "Rates rise."), "d3": ("Cats", "A cat slept.")}
QUERIES = {"q1": "volcano", "q2": "interest rates", "q3": "dogs"}
BEIR_QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td3\t1\nq2\td2\t1\nq2\td1\t0\n"
TREC_QRELS = "q1 0 d1 2\nq1 0 d3 1\nq2 0 d2 1\nq2 0 d1 0\n"


def jsonl(rows) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def write(
    folder: Path,
    documents: Mapping[str, tuple[str, str]],
    queries: Mapping[str, str],
    grades: Iterable[tuple[str, str, int]],
) -> None:
    """A collection in BEIR's files."""
    (folder / "qrels").mkdir(parents=True)
    rows = ({"_id": key, "title": title, "text": text} for key, (title, text) in documents.items())
    (folder / "corpus.jsonl").write_bytes(jsonl(rows))
    (folder / "queries.jsonl").write_bytes(jsonl({"_id": key, "text": text} for key, text in queries.items()))
    lines = "".join(f"{query}\t{document}\t{grade}\n" for query, document, grade in grades)
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{lines}")


def packed(files: Mapping[str, bytes], folder: str = "", method: int = zipfile.ZIP_DEFLATED) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as packing:
        for name, data in files.items():
            entry = zipfile.ZipInfo("name")
            entry.filename, entry.compress_type = f"{folder}{name}", method  # "" too, which writestr does not take
            with packing.open(entry, "w") as file:
                file.write(data)
    return content.getvalue()


CORPUS = jsonl({"_id": key, "title": title, "text": text, "metadata": {}} for key, (title, text) in DOCUMENTS.items())
QUERY_LINES = jsonl({"_id": key, "text": text} for key, text in QUERIES.items())
CORPUS_TSV = "".join(f"{key}\t{' '.join(parts).strip()}\n" for key, parts in DOCUMENTS.items()).encode()
QUERIES_TSV = "".join(f"{key}\t{text}\n" for key, text in QUERIES.items()).encode()
BEIR = {"corpus.jsonl": CORPUS, "queries.jsonl": QUERY_LINES, "qrels/test.tsv": BEIR_QRELS.encode()}
TREC = {"collection.tsv": CORPUS_TSV, "topics.tsv": QUERIES_TSV, "qrels.301-450.txt": TREC_QRELS.encode()}


def check(found: GradedSet) -> None:
    assert found.documents == ("Java A volcano erupted.", "Rates rise.", "Cats A cat slept.")
    assert found.queries == ("volcano", "interest rates")
    assert [dict(grades) for grades in found.grades] == [{0: 2, 2: 1}, {1: 1}]
    assert (found.report.relevant, found.report.not_relevant, found.report.queries_without_relevant) == (3, 1, 1)


FIELDED_CORPUS = jsonl(
    [
        {"_id": "d1", "title": "Java", "text": "A volcano erupted."},
        {"_id": "d2", "title": "", "text": "Rates rise."},
        {"_id": "d3", "title": "Cats", "text": ""},
    ]
)
FIELDED_QUERIES = jsonl(
    [
        {
            "_id": "q1",
            "text": "Which volcano erupted?",
            "metadata": {"query": "volcano", "narrative": "Only volcanoes."},
        },
        {"_id": "q2", "text": "Do rates rise?", "metadata": {"query": "rates", "narrative": ""}},
        {"_id": "q3", "text": "", "metadata": {"query": "cats", "url": "https://example.org"}},
    ]
)
FIELDED_QRELS = b"query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t1\nq2\td2\t1\nq3\td3\t1\nq3\td1\t0\n"
FIELDED = {"corpus.jsonl": FIELDED_CORPUS, "queries.jsonl": FIELDED_QUERIES, "qrels.tsv": FIELDED_QRELS}
