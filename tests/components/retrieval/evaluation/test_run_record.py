"""Runs survive being saved, and a file that is anything else is refused with the reason."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from components.errors import InputError
from components.retrieval.evaluation import metrics, run_record
from components.retrieval.evaluation.graded.ranks import RelevantRanks
from components.retrieval.evaluation.ranks import NOT_FOUND
from components.retrieval.evaluation.run_record import Run, RunData, read_runs, write_runs

RUN = Run(
    name="a “name”, 你好 <b>",
    system={"kind": "vectors", "model": "some/model", "layer": 3, "share": 0.25},
    data=RunData("pairs", 40, 4, "ab" * 32),
    settings={"precision": "float32", "seed": 0},
    versions={"torch": "2.13.0"},
    ranks=np.array([1, 40, 7, 1], np.int64),
    milliseconds=1.25,
    index_bytes=123_456,
    made=run_record.now(),
)
BARE = replace(RUN, name="without times", milliseconds=None, index_bytes=None)


def changed(path: str, value: object) -> bytes:
    """The file of one run with one value replaced; `path` as in "data.queries"."""
    content = json.loads(write_runs([RUN]))
    place, *names = content["runs"][0], *path.split(".")
    for name in names[:-1]:
        place = place[name]
    place[names[-1]] = value
    return json.dumps(content).encode()


def test_runs_come_back_as_they_were():
    found = read_runs(write_runs([RUN, BARE]), "runs.json")
    assert len(found) == 2
    for one, before in zip(found, (RUN, BARE), strict=True):
        for name in ("name", "system", "data", "settings", "versions", "milliseconds", "index_bytes", "made", "key"):
            assert getattr(one, name) == getattr(before, name), name
        np.testing.assert_array_equal(one.ranks, before.ranks)
        assert one.ranks.dtype == np.int64
        assert not one.ranks.flags.writeable
    assert write_runs(found) == write_runs([RUN, BARE])
    # An editor may have put a mark at the start.
    assert read_runs(b"\xef\xbb\xbf" + write_runs([RUN]), "x")[0].key == RUN.key


def test_ranks_of_several_answers_and_answers_that_are_not_found_come_back():
    several = RelevantRanks(
        np.array([1, 7, 40, 3, NOT_FOUND, 2, NOT_FOUND]), np.ones(7, int), np.array([0, 3, 5, 6, 7])
    )
    runs = [replace(RUN, ranks=several), replace(RUN, ranks=np.array([NOT_FOUND, 40, 7, 1], np.int64))]
    content = write_runs(runs)
    rows = json.loads(content)["runs"]
    assert (rows[0]["ranks"], rows[0]["answers"]) == ([1, 7, 40, 3, None, 2, None], [3, 2, 1, 1])
    assert (rows[1]["ranks"], "answers" in rows[1]) == ([None, 40, 7, 1], False)
    found = read_runs(content, "x")
    assert [run.key for run in found] == [run.key for run in runs]
    assert write_runs(found) == content
    assert metrics.summary(found[0].ranks) == metrics.summary(several)
    assert (
        found[0].key != replace(RUN, ranks=RelevantRanks(several.ranks, several.grades, np.array([0, 2, 5, 6, 7]))).key
    )
    rows[0]["ranks"] = [1, None, None, 3, None, 2, None]  # two of a query's answers are not found
    (run, _) = read_runs(json.dumps({"kind": run_record.KIND, "format": 2, "runs": rows}).encode(), "x")
    assert run.ranks.ranks.tolist() == [1, NOT_FOUND, NOT_FOUND, 3, NOT_FOUND, 2, NOT_FOUND]
    rows[0]["ranks"] = [7, 1, 40, 3, None, 2, None]
    with pytest.raises(InputError, match="the ranks of a query's answers do not rise"):
        read_runs(json.dumps({"kind": run_record.KIND, "format": 2, "runs": rows}).encode(), "x")


def test_a_file_of_the_earlier_format_is_read():
    assert read_runs(write_runs([RUN]).replace(b'"format":2', b'"format":1'), "x")[0].key == RUN.key


def test_the_time_is_that_of_utc():
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", run_record.now())


def test_the_measures_stand_in_the_file_for_others_and_are_not_believed():
    content = json.loads(write_runs([RUN]))
    assert content["runs"][0]["measures"] == json.loads(json.dumps(metrics.summary(RUN.ranks)))
    assert content["runs"][0]["measures"]["recall"]["1"] == 50.0
    (found,) = read_runs(changed("measures", {"mrr": 100}), "x")
    assert metrics.summary(found.ranks) == metrics.summary(RUN.ranks)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "damaged"),
        (b"{", "damaged"),
        (b"\xff\xfe", "damaged"),
        (b"sentence,compressed\na,b\n", "damaged"),
        (b"[" * 9_000, "damaged"),
        (b"[" * 100_000, "has more values than 200 runs"),
        (b"9" * 5_000, "damaged"),
        (b"[]", "is not a file of runs"),
        (b"null", "is not a file of runs"),
        (b'{"kind": "BERT Internals index", "format": 1, "runs": []}', "is not a file of runs"),
        (
            b'{"kind": "BERT Internals runs", "format": 3, "runs": [1]}',
            "has format 3; this program reads the formats 1 and 2",
        ),
        (b'{"kind": "BERT Internals runs", "runs": [1]}', "has format None"),
        (b'{"kind": "BERT Internals runs", "format": 1}', "damaged.*runs"),
        (b'{"kind": "BERT Internals runs", "format": 1, "runs": []}', "not have between 1 and 200 runs"),
        (b'{"kind": "BERT Internals runs", "format": 1, "runs": {"a": 1}}', "not have between 1 and 200 runs"),
        (b'{"kind": "BERT Internals runs", "format": 1, "runs": [1]}', "damaged"),
        (b'{"kind": "BERT Internals runs", "format": 1, "runs": [{}]}', "damaged"),
    ],
)
def test_other_files_are_refused(content, reason):
    with pytest.raises(InputError, match=rf"^runs\.json .*{reason}"):
        read_runs(content, "runs.json")


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("ranks", [1, 41, 7, 1], "ranks outside 1 to 40"),
        ("ranks", [1, 0, 7, 1], "ranks outside 1 to 40"),
        ("ranks", [1, -1, 7, 1], "'-1' is not a whole number"),
        ("ranks", [1, 40, 7], "3 ranks of 4 queries"),
        ("ranks", [1, 40, 7, 1, 1], "5 ranks of 4 queries"),
        ("ranks", [1, True, 7, 1], "'True' is not a whole number"),
        ("ranks", [1, 2.0, 7, 1], "'2.0' is not a whole number"),
        ("ranks", [1, "2", 7, 1], "'2' is not a whole number"),
        ("answers", [1, 1, 1], "4 ranks and 3 numbers of answers of 4 queries"),
        ("answers", [2, 2], "4 ranks and 2 numbers of answers of 4 queries"),
        ("answers", [1, 1, 1, 0], "4 ranks and 4 numbers of answers of 4 queries"),
        ("answers", [1, None, 1, 1], "'None' is not a whole number"),
        ("ranks", [1, 2**64, 7, 1], "not a whole number"),
        ("ranks", [[1], [2], [3], [4]], "not a whole number"),
        ("ranks", "1111", "'1' is not a whole number"),
        ("ranks", None, "TypeError"),
        ("data.queries", 5, "4 ranks of 5 queries"),
        ("data.queries", True, "'True' is not a whole number"),
        ("data.documents", -40, "'-40' is not a whole number"),
        ("data.documents", 39, "ranks outside 1 to 39"),
        ("data", None, "TypeError"),
        ("data", {"name": "x"}, "'documents' is missing"),
        ("settings", {"deep": {"a": 1}}, "deep is neither text nor number"),
        ("settings", {"deep": [1]}, "deep is neither text nor number"),
        ("system", {"none": None}, "none is neither text nor number"),
        ("system", ["kind"], "AttributeError"),
        ("system", {str(at): at for at in range(51)}, "more than 50 entries"),
        ("system", {"share": float("nan")}, "NaN is not a number"),
        ("settings", {"share": float("inf")}, "Infinity is not a number"),
        ("milliseconds", float("nan"), "NaN is not a number"),
        ("milliseconds", float("-inf"), "-Infinity is not a number"),
        ("milliseconds", 0, "'0' is not a time"),
        ("milliseconds", -1.0, "'-1.0' is not a time"),
        ("milliseconds", True, "'True' is not a time"),
        ("milliseconds", "3", "'3' is not a time"),
        pytest.param("milliseconds", 10**400, "is not a time", id="a time beyond all numbers"),
        ("index_bytes", -1, "not a whole number"),
        ("index_bytes", 1.5, "not a whole number"),
        pytest.param("index_bytes", 10**400, "not a whole number", id="a size beyond all numbers"),
    ],
)
def test_values_that_cannot_be_are_refused_with_the_reason(path, value, reason):
    assert read_runs(changed("name", "fine"), "x")[0].name == "fine"
    with pytest.raises(InputError, match=rf"^x is damaged \(.*{reason}"):
        read_runs(changed(path, value), "x")


def test_numbers_beyond_all_floats_are_refused():
    content = changed("settings", {"share": 0.125}).replace(b"0.125", b"1e999")
    with pytest.raises(InputError, match="share is not a finite number"):
        read_runs(content, "x")


def test_what_is_missing_is_told():
    for name in ("name", "made", "system", "data", "settings", "versions", "ranks"):
        content = json.loads(write_runs([RUN]))
        del content["runs"][0][name]
        with pytest.raises(InputError, match=f"'{name}' is missing"):
            read_runs(json.dumps(content).encode(), "x")


def test_files_that_are_too_large_are_refused(monkeypatch):
    row = json.loads(write_runs([RUN]))["runs"][0]
    for count in (200, 201):
        content = json.dumps({"kind": run_record.KIND, "format": 1, "runs": [row] * count}).encode()
        if count == 200:
            assert len(read_runs(content, "x")) == 200
        else:
            with pytest.raises(InputError, match="not have between 1 and 200 runs"):
                read_runs(content, "x")
    assert len(read_runs(write_runs([RUN, RUN]), "x")) == 2
    with monkeypatch.context() as patch:
        patch.setattr(run_record, "MOST_RANKS", 7)
        assert len(read_runs(write_runs([RUN]), "x")) == 1
        with pytest.raises(InputError, match="more than 7 ranks"):
            read_runs(write_runs([RUN, RUN]), "x")
        several = write_runs([replace(RUN, ranks=RelevantRanks(np.arange(1, 5), np.ones(4, int), np.arange(5)))])
        with pytest.raises(InputError, match="more than 7 ranks"):  # four ranks, and as many numbers of answers
            read_runs(several, "x")
    monkeypatch.setattr(run_record, "MOST_BYTES", len(write_runs([RUN])))
    assert len(read_runs(write_runs([RUN]), "x")) == 1
    with pytest.raises(InputError, match="are read"):
        read_runs(write_runs([RUN]) + b" ", "x")


def test_long_and_broken_texts_are_cut_and_mended():
    long = "n" * 1_000
    (found,) = read_runs(changed("name", long), "x")
    assert found.name == "n" * 300
    (found,) = read_runs(changed("settings", {long: long}), "x")
    assert found.settings == {"n" * 300: "n" * 300}
    # Half a character can neither be shown nor saved again.
    for path in ("name", "made", "data.name", "data.content_hash", "system", "versions"):
        value = {"a\ud800": "\udc00b"} if path in ("system", "versions") else "a\ud800b"
        (found,) = read_runs(changed(path, value), "x")
        assert b"\xef\xbf\xbd" in write_runs([found])
        assert len(found.key) == 16


def test_the_key_tells_outcomes_and_systems_apart_and_nothing_else():
    same = replace(RUN, name="other", milliseconds=9.0, index_bytes=1, made="then", versions={})
    same = replace(same, system=dict(reversed(RUN.system.items())), ranks=RUN.ranks.astype(np.int32))
    assert same.key == RUN.key
    assert len(RUN.key) == 16
    others = [
        replace(RUN, ranks=np.array([1, 40, 1, 7])),
        replace(RUN, system={**RUN.system, "layer": 4}),
        replace(RUN, settings={**RUN.settings, "seed": 1}),
        replace(RUN, data=replace(RUN.data, content_hash="cd" * 32)),
    ]
    assert len({RUN.key, *(run.key for run in others)}) == 5


def test_as_many_runs_as_are_kept_are_read_again():
    """200 runs of 5,000 queries among 36,000 documents, with names as long as they may be, fit the limits of a file."""
    ranks = np.arange(31_000, 36_000)
    data = RunData("pairs", 36_000, 5_000, "ab" * 32)
    settings = {f"setting {number}": number for number in range(20)}
    run = Run("n" * 300, {"kind": "encoder", "model": "m" * 100}, data, settings, {"torch": "2"}, ranks=ranks)
    content = write_runs([run] * run_record.MOST_RUNS)
    assert len(read_runs(content, "runs.json")) == run_record.MOST_RUNS
