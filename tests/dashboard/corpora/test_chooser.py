"""Choosing a corpus: uploads are read once, data sets are downloaded as a job that can be stopped and is shared."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from components.errors import InputError
from components.retrieval.corpora import corpus as reading
from components.retrieval.corpora import hub_datasets
from dashboard import caching
from dashboard.corpora import current
from tests.support.pages import texts

NAME = "somebody/news"
CSV = "id,title,text\n1,Über,Ein Satz.\n2,Zwei,Noch ein Satz.\n"


def page() -> None:
    """The chooser by itself, with the sidebar's list of jobs, as main.py draws it."""
    import streamlit as st

    from dashboard.corpora import chooser, current
    from dashboard.ui import messages
    from dashboard.ui.waiting import frame, listing

    listing.expect()
    jobs_slot = st.sidebar.container()
    messages.guarded(lambda: frame.view(chooser.choose), "testing")
    st.markdown(f"In use: {current.corpus().name}")
    listing.draw(jobs_slot)


def chooser(way: str) -> AppTest:
    app = AppTest.from_function(page, default_timeout=30).run()
    return app.segmented_control(key="corpus_way").set_value(way).run()


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    yield
    for job in caching.datasets().under_way():
        caching.datasets().stop(job)
        assert job.finished.wait(10)
    for kept in (caching.datasets, caching.readings, caching.parsed):
        kept.clear()


# Uploads


def test_a_file_is_read_once_for_all_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    previews = counted(monkeypatch, "columns_of")
    reads = counted(monkeypatch, "read_corpus")
    for _ in range(2):
        app = chooser("upload")
        app.file_uploader(key="corpus_file").upload("mine.csv", CSV.encode()).run()
        app.selectbox(key="corpus_column").set_value("text").run()
        app.button(key="use_corpus").click().run()
        assert not app.error
        assert "In use: mine.csv" in texts(app)
        assert app.session_state["corpus"]
    assert len(previews) == 1
    # Once by the column that is chosen by itself, whose rows are shown before, and once by the chosen one.
    assert [column for _, _, column, *_ in reads] == [None, "text"]


def test_an_upload_that_is_not_in_use_is_returned_and_stays_when_the_view_is_left() -> None:
    def view() -> None:
        import streamlit as st

        from dashboard.corpora import chooser, current

        if st.toggle("Open", value=True, key="open"):
            unused = chooser.choose()
            st.markdown(f"Looked at: {unused.texts if unused else None}; in use: {current.corpus().name}")

    app = AppTest.from_function(view, default_timeout=30).run()
    app.segmented_control(key="corpus_way").set_value("upload").run()
    app.file_uploader(key="corpus_file").upload("mine.csv", CSV.encode()).run()
    looked_at = "Looked at: ('Ein Satz.', 'Noch ein Satz.'); in use: Demo news"
    assert looked_at in texts(app)
    app.toggle(key="open").set_value(False).run()
    app.toggle(key="open").set_value(True).run()
    assert looked_at in texts(app)
    assert "mine.csv" in texts(app)
    app.button(key="use_corpus").click().run()
    assert "Looked at: None; in use: mine.csv" in texts(app)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"first,second\n"])
def test_an_empty_file_is_said_to_be_empty(content: bytes) -> None:
    app = chooser("upload")
    app.file_uploader(key="corpus_file").upload("empty.csv", content).run()
    assert "Several columns" not in texts(app)
    assert "the file is empty" in texts(app)


def test_a_file_with_two_possible_texts_asks_for_the_column() -> None:
    app = chooser("upload")
    table = "first,second\nA cat slept here.,Ships sailed home.\nRain fell today.,Nothing else was said.\n"
    app.file_uploader(key="corpus_file").upload("two.csv", table.encode()).run()
    assert not app.error
    assert "Choose the column with the sentences" in texts(app)
    app.selectbox(key="corpus_column").set_value("second").run()
    app.button(key="use_corpus").click().run()
    assert caching.corpora().find(app.session_state["corpus"]).texts == ("Ships sailed home.", "Nothing else was said.")


def test_another_encoding_or_column_is_another_reading() -> None:
    app = chooser("upload")
    app.file_uploader(key="corpus_file").upload("mine.csv", CSV.encode("latin-1")).run()
    app.text_input(key="corpus_encoding").set_value("latin-1").run()
    for column, expected in (("title", ("Über", "Zwei")), ("text", ("Ein Satz.", "Noch ein Satz."))):
        app.selectbox(key="corpus_column").set_value(column).run()
        app.button(key="use_corpus").click().run()
        chosen = caching.corpora().find(app.session_state["corpus"])
        assert chosen is not None
        assert chosen.texts == expected
    app.text_input(key="corpus_encoding").set_value("cp437").run()
    app.selectbox(key="corpus_column").set_value("title").run()
    app.button(key="use_corpus").click().run()
    chosen = caching.corpora().find(app.session_state["corpus"])
    assert chosen is not None
    assert chosen.texts == ("▄ber", "Zwei")  # the bytes of latin-1, read as the person said


def test_how_a_file_is_written_can_be_chosen_where_it_was_a_guess() -> None:
    app = chooser("upload")
    content = "How do I pay?;By card or cash.\nWhere is my parcel?;On its way to you.\n"
    app.file_uploader(key="corpus_file").upload("faq.csv", content.encode()).run()
    app.selectbox(key="corpus_column").set_value("column 2").run()
    (header,) = [box for box in app.selectbox if box.label == "The first row"]
    header.set_value("names the columns").run()
    app.selectbox(key="corpus_column").set_value("By card or cash.").run()
    app.button(key="use_corpus").click().run()
    assert not app.error
    key = app.session_state["corpus"]
    chosen = caching.corpora().find(key)
    assert chosen is not None
    assert chosen.texts == ("On its way to you.",)
    assert app.session_state["_corpus_upload"][3] == "header=yes"
    source = current.source_of(key)
    assert source is not None
    assert source.read(lambda: False).texts == chosen.texts  # as after a restart
    assert "--header" in current.file_of(chosen)
    app.file_uploader(key="corpus_file").set_value(("lines.txt", b"One.\nTwo.\n", "")).run()
    assert not any(box.label == "The first row" for box in app.selectbox)


def test_a_file_that_cannot_be_read_is_explained_and_the_corpus_before_stays() -> None:
    app = chooser("upload")
    app.file_uploader(key="corpus_file").upload("mine.csv", CSV.encode()).run()
    app.selectbox(key="corpus_column").set_value("text").run()
    app.button(key="use_corpus").click().run()
    app.file_uploader(key="corpus_file").set_value(("bad.parquet", b"no parquet", "")).run()
    for job in caching.readings().under_way():  # it imports a large library first
        assert job.finished.wait(30)
    app.run()
    assert app.error
    assert "Something went wrong" not in texts(app)
    assert "In use: mine.csv" in texts(app)
    # The choice of the encoding is still there: it may be what was wrong.
    assert app.text_input(key="corpus_encoding").value == ""
    app.file_uploader(key="corpus_file").set_value(("empty.csv", b"text\n", "")).run()
    assert app.error
    assert "In use: mine.csv" in texts(app)


def test_a_file_of_the_machine_that_has_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    for content in ("One.\nTwo.\n", "Three sentences.\nFour.\nFive.\n"):
        path.write_text(content)
        app = chooser("path")
        app.text_input(key="corpus_path").set_value(str(path)).run()
        app.button(key="use_corpus").click().run()
        chosen = caching.corpora().find(app.session_state["corpus"])
        assert chosen is not None
        assert list(chosen.texts) == content.splitlines()


def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[Any]:
    calls: list[Any] = []
    original = getattr(reading, name)

    def watched(*arguments: Any, **named: Any) -> Any:
        if arguments[1] != "demo_corpus.jsonl":  # which is read once in a process, whenever it is needed first
            calls.append(arguments)
        return original(*arguments, **named)

    monkeypatch.setattr(reading, name, watched)
    return calls


# Data sets


class Hub:
    """A data set that is downloaded until it is released, or its download is stopped."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "train.jsonl.gz"
        lines = [json.dumps({"text": f"Sentence {number}."}) for number in range(5)]
        self.path.write_bytes(gzip.compress("\n".join(lines).encode()))
        self.begun, self.release, self.names = threading.Event(), threading.Event(), []
        self.error: Exception | None = None

    def fetch(
        self, name: str, progress: Callable[[int, int], None], is_stopped: Callable[[], bool], limits: Any
    ) -> tuple[Path, ...]:
        self.names.append(name)
        progress(1_500_000, 6_000_000)
        self.begun.set()
        while not self.release.wait(0.01):
            if is_stopped():
                raise hub_datasets.DatasetError("stopped", "The download was stopped.", "", "")
        if self.error is not None:
            raise self.error
        return (self.path,)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    one = Hub(tmp_path)
    monkeypatch.setattr(hub_datasets, "fetch_dataset", one.fetch)
    yield one
    one.release.set()


def downloading(monkeypatch: pytest.MonkeyPatch, person: str, name: str = NAME) -> AppTest:
    monkeypatch.setattr(caching, "person", lambda: person)
    app = chooser("hub")
    app.text_input(key="corpus_dataset").set_value(name).run()
    return app.button(key="fetch_dataset").click().run()


def test_a_data_set_is_downloaded_once_for_two_people(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    downloading(monkeypatch, "Ann")
    app = downloading(monkeypatch, "Ben", f"https://huggingface.co/datasets/{NAME}")
    (job,) = caching.datasets().under_way()
    assert job.people == {"Ann", "Ben"}
    assert app.main.get("progress")[0].proto.text == "Downloading somebody/news · 1.50 MB of 6.00 MB"
    assert not app.sidebar.get("progress")  # the page itself shows it
    hub.release.set()
    assert job.finished.wait(10)
    app.run()
    app.button(key="use_corpus").click().run()
    assert f"In use: {NAME}" in texts(app)
    app.run()
    assert hub.names == [NAME]  # other clicks ask the hub nothing
    hub.path.unlink()
    app.run()
    assert hub.names == [NAME, NAME]  # its files are no longer there


def test_stop_reaches_the_download_and_it_can_be_started_again(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    app = downloading(monkeypatch, "Ann")
    (job,) = caching.datasets().under_way()
    app.button(key="stop_dataset").click().run()
    assert job.finished.wait(10)
    assert job.is_stopped
    app.run()
    assert "Stopped: Downloading somebody/news." in texts(app)
    assert not app.error
    hub.release.set()
    app.button(key="again_dataset").click().run()
    app.button(key="use_corpus").click().run()
    assert f"In use: {NAME}" in texts(app)


def test_a_download_that_fails_is_explained_and_a_click_tries_again(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.error = InputError("The data set has several subsets.", "One was expected.", "Enter its name.")
    hub.release.set()
    app = downloading(monkeypatch, "Ann")
    assert "The data set has several subsets." in texts(app)
    assert "In use: Demo news" in texts(app)  # the rest of the page is drawn
    hub.error = None
    app.button(key="fetch_dataset").click().run()
    assert not app.error
    assert app.button(key="use_corpus")
    app.button(key="fetch_dataset").click().run()
    assert len(hub.names) == 3  # the hub may have another version by now


def test_an_upload_is_shown_beside_its_file_before_it_is_used() -> None:
    def view() -> None:
        from dashboard.corpora import chooser, preview

        unused = chooser.choose()
        if unused is not None:
            preview.draw(unused, key="corpus_not_in_use")

    app = AppTest.from_function(view, default_timeout=30).run()
    app.segmented_control(key="corpus_way").set_value("upload").run()
    content = 'text\tn\n"Go on, he said.\t007\nInches: 55"\t2\n\t3\nToo\tmany\tfields\nLast.\t4\n'
    app.file_uploader(key="corpus_file").upload("mine.tsv", content.encode()).run()
    assert not app.exception
    shown = app.table[0].value
    assert list(shown["row"]) == ["2", "3", "4"]
    written, read = ([cell.replace("\\", "") for cell in shown[name]] for name in ("in the file", "what was read"))
    assert written[0] == '"Go on, he said. ⇥ 007'
    assert read[0].replace("\u00a0", " ") == 'text: "Go on, he said.  ·  n: 007'
    assert read[2] == "refused: empty"
    said = texts(app).replace("\\", "")
    assert "5 rows read, 3 used, 2 left out; 0 joined from several lines" in said
    assert "quotes are ordinary characters" in said
    assert "The sentences are the column text (by its name); kept beside it: n." in said
    assert "This is a guess: the file could also be separated by tabs, quotes enclose fields." in said
