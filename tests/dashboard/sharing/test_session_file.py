"""A session as a file: it comes back on every page, and a file that is something else is refused and has no effect."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from components import VERSION
from components.errors import InputError
from dashboard.sharing import session_file
from tests.dashboard.page_states import STATES, place_of, settings_of, shown, small_corpus
from tests.support.pages import BANK, Open, at_rest, backend, go_to, setting, texts

PANEL = {"session_panel_0": True}  # it is open
FIRST_VIEWS = list({place_of(case)[0]: case for case in reversed(STATES)}.values())  # one case of each page


def saved(app: AppTest, page: str) -> bytes:
    """The file that a session saves on a page."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streamlit.session_state", dict(app.session_state._state.filtered_state))
        return session_file.to_bytes(session_file.written(page))


def content(**changes: Any) -> bytes:
    """A valid file with changes."""
    found = {
        "format": session_file.FORMAT,
        "format_version": 1,
        "page": "tokens",
        "settings": {"sentences": ["A cat."]},
    }
    return json.dumps(found | changes).encode()


def opened(app: AppTest, file: bytes, page: str | None = "tokens", name: str = "session.json") -> AppTest:
    """The page of a file after it was chosen in the panel; None where it is refused."""
    if not setting(app, "session_panel_0"):
        app.session_state["session_panel_0"] = True
        app.run()
    app.file_uploader(key="session_file_0").upload(name, file, "application/json").run()
    # AppTest does not follow to the page of the file: its next run would be one of the page before.
    return app if page is None else go_to(app, page)


@pytest.mark.parametrize("case", FIRST_VIEWS)
def test_a_session_comes_back_on_every_page(open_page: Open, case: str, tiny_folder: Callable[[str], Any]) -> None:
    (page, _), values = place_of(case), settings_of(case, str(tiny_folder("bert").resolve()))
    if page == "train":
        values["train_view"] = "training-data"  # the others show a run
    # Drawn once more: a level of chance that came while a page was drawn is there then.
    before = at_rest(at_rest(open_page(page, session=values)).run())
    after = at_rest(at_rest(opened(open_page("about", session=PANEL), saved(before, page), page)).run())
    assert not after.exception
    for name, value in values.items():
        assert setting(after, name) == value
    assert shown(after)[1:] == shown(before)[1:]
    assert after.query_params == before.query_params


def test_a_file_names_models_seeds_and_versions_and_reads_like_json(open_page: Open) -> None:
    app = open_page("map", by="pca", seed="7", m2="")
    found = json.loads(saved(app, "map"))
    assert found["page"] == "map"
    assert found["settings"]["map_seed"] == ["7"]
    assert found["settings"]["sentences"] == list(BANK)  # inputs are named even if they are those a session starts with
    assert found["seeds"]["map_seed"] == 7
    assert found["seeds"]["lab_seed"] == 0
    assert found["models"]["model"] == {
        "key": "embedded",
        "title": "all-MiniLM-L6-v2",
        "revision": backend().revision,
    }
    assert found["versions"].keys() == {"bert-internals", *session_file.PACKAGES}
    assert found["versions"]["bert-internals"] == VERSION
    assert found["corpus"] == {"name": "Demo news", "sentences": 630, "included": True}


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"PK\x03\x04 a zip", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"1" * 100_000, "not JSON"),
        (b"[]", "not a session"),
        (b'{"format": "other"}', "not a session"),
        (content(format_version=True), "does not name its format"),
        (content(format_version=3), "newer version"),
        (content(page="../../etc"), "names no page"),
        (content(page=["tokens"]), "names no page"),
        (content(settings=["s"]), "cannot be read"),
        (content(settings={"sentences": "A cat."}), "cannot be read"),
        (content(settings={"sentences": [1]}), "cannot be read"),
        (content(settings={"sentences": ["a"] * 5_000}), "cannot be read"),
        (content(settings={str(number): ["a"] for number in range(2_000)}), "cannot be read"),
        (content(versions={f"p{number}": "1" for number in range(50_000)}), "more than 1,000 models or packages"),
        (content(models={f"p{number}": {} for number in range(50_000)}), "more than 1,000 models or packages"),
        (b" " * (session_file.MOST_BYTES + 1), "1,048,577 bytes"),
    ],
)
def test_what_is_no_session_is_refused(file: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        session_file.read(file)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"corpus": ["0" * 32]}, ["right"]),  # of before there was a choice
        ({"corpus": ["0" * 32], "texts_searched": ["all"]}, ["all"]),
        ({"corpus": [""]}, None),
        ({}, None),
    ],
)
def test_a_session_of_before_has_the_right_texts_of_its_file(
    given: dict[str, list[str]], meant: list[str] | None
) -> None:
    assert session_file.read(content(settings=given)).settings.get("texts_searched") == meant
    read = session_file.read(content(format_version=session_file.FORMAT_VERSION, page="search", settings=given))
    assert read.settings.get("texts_searched") == meant


def test_what_is_saved_names_the_texts(open_page: Open) -> None:
    """Those of a file of one's own; the included corpus has a query for each text."""
    assert "texts_searched" not in json.loads(saved(open_page("about", session=PANEL), "about"))["settings"]
    of_file = {**PANEL, "corpus": small_corpus()}
    assert json.loads(saved(open_page("about", session=of_file), "about"))["settings"]["texts_searched"] == ["all"]


def test_a_bad_file_leaves_the_session_as_it_is(open_page: Open) -> None:
    app = opened(
        open_page("tokens", session=PANEL, s=["Mine."], v="input-tensors"),
        b"<script>alert(1)</script>",
        None,
        "<img src=x>.json",
    )
    assert "not JSON" in texts(app)
    assert not app.exception
    assert setting(app, "sentences") == ("Mine.",)
    assert [item.value for item in app.title] == ["What exactly does the model read?"]
    again = app.file_uploader(key="session_file_0").upload("large.json", b" " * (session_file.MOST_BYTES + 1)).run()
    assert "1,048,577 bytes" in texts(again)


def test_bad_values_are_replaced_by_defaults_and_said(open_page: Open) -> None:
    values = {
        "sentences": ["<script>alert(1)</script>", "**bold**"],
        "model": ["../../etc/passwd"],
        "layer": ["__import__('os').system('true')"],
        "text_view": ["input-tensors"],
        "max_length": ["12", "13"],
        "no <b>such</b>": ["x"],
    }
    app = opened(open_page("about", session=PANEL), content(settings=values))
    assert not app.exception
    assert setting(app, "sentences") == tuple(values["sentences"])
    assert setting(app, "text_view") == "input-tensors"
    assert setting(app, "model") is None
    assert setting(app, "max_length") is None
    (warning,) = app.warning
    for words in (
        "The model was ignored",
        "The layer was ignored",
        "The maximum length was ignored",
        "There is no setting",
    ):
        assert words in warning.value
    assert "<b>" not in warning.value


def test_the_file_replaces_settings_of_all_pages_and_own_sentences_can_be_brought_back(open_page: Open) -> None:
    app = open_page("tokens", session={**PANEL, "query": "another page's"}, s=["Mine."], len="9")
    app = opened(app, content())
    assert setting(app, "sentences") == ("A cat.",)
    assert setting(app, "query") is None
    assert setting(app, "max_length") is None
    assert "in place of your sentence. To get it back" in texts(app)
    app.button(key="bring_back").click().run()
    assert setting(app, "sentences") == ("Mine.",)


def test_a_file_names_each_of_several_models(open_page: Open) -> None:
    app = open_page("about", session={"compared_models": ("distilbert/distilbert-base-uncased", "embedded")})
    found = json.loads(saved(app, "model"))
    assert found["settings"]["compared_models"] == ["distilbert/distilbert-base-uncased", "embedded"]
    assert [found["models"][f"compared_models {number}"]["key"] for number in (1, 2)] == [
        "distilbert/distilbert-base-uncased",
        "embedded",
    ]


def test_another_revision_and_other_versions_are_told_of(open_page: Open) -> None:
    models = {
        "model": {"key": "embedded", "title": "x", "revision": "<b>0123"},
        "model2": 3,
        "cross_encoder": {"key": []},
    }
    app = opened(
        open_page("about", session=PANEL),
        content(models=models, versions={"torch": "1.0<b>", "numpy": 3, "other": "1"}),
    )
    said = texts(app)
    assert "**all-MiniLM-L6-v2** is not the same here" in said
    assert "numbers can differ in their last digits" in said
    assert "<b>" not in said
    go_to(app, "layers")
    assert "is not the same here" in texts(app)  # as long as the session uses the model
    app.session_state["more_settings"] = True
    app.run()
    app.button(key="reset").click().run()
    assert "is not the same here" not in texts(app)
    same = {"model": {"key": "embedded", "revision": backend().revision}}
    assert "is not the same" not in texts(opened(open_page("about", session=PANEL), content(models=same)))


def test_a_model_that_is_not_here_is_told_of(open_page: Open) -> None:
    app = opened(open_page("about", session=PANEL), content(settings={"model": ["run:mnrl-20200101-000000-ab12"]}))
    assert setting(app, "model") is None
    assert "The model was ignored: There is no trained model" in texts(app).replace("\\", "")
    app = at_rest(
        opened(open_page("about", session=PANEL), content(settings={"model": ["google-bert/bert-base-uncased"]}))
    )
    assert not app.exception
    assert "This model could not be loaded" in [item.value for item in app.subheader]
    assert any(button.label == "Continue with the included model" for button in app.button)


def test_a_corpus_that_is_not_here_is_named(open_page: Open) -> None:
    settings = {"corpus": ["0123456789abcdef" * 2], "search_view": ["corpus"]}
    file = content(page="search", settings=settings, corpus={"name": "my <b>file</b>.csv", "sentences": 3})
    app = opened(open_page("about", session=PANEL), file, "search")
    assert setting(app, "corpus") == ""
    assert "which this server does not have" in texts(app)
    assert "<b>" not in texts(app)


def test_what_one_person_opens_is_not_shown_to_another(open_page: Open) -> None:
    first = opened(
        open_page("tokens", session=PANEL), content(settings={"sentences": ["My secret sentence."]}), name="secret.json"
    )
    assert "secret" in str(shown(first))
    assert "secret" not in str(shown(open_page("tokens", session=PANEL)))


def test_where_uploads_are_forbidden_no_session_is_opened(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERT_INTERNALS_UPLOADS", "0")
    app = open_page("tokens", session=PANEL)
    assert app.file_uploader(key="session_file_0").disabled
    assert "takes no files" in texts(app)


def test_half_characters_in_a_session_file_become_whole_ones_on_every_page(open_page: Open) -> None:
    half = "\ud800"
    file = content(
        settings={"sentences": [f"A {half} bank."], "query": [half], f"un{half}known": ["x"], "layer": [half]},
        corpus={"name": f"my {half}.csv", "sentences": 3},
        versions={"numpy": half},
        models={half: {"key": "embedded", "revision": half}},
    )
    app = opened(open_page("about", session=PANEL), file)
    assert not app.exception
    assert setting(app, "sentences") == ("A \ufffd bank.",)
    read = session_file.read(file)
    assert (
        "d800" not in f"{read.settings} {read.revisions} {read.versions} {read.corpus!r}"
    )  # as Python writes a half one
    assert setting(app, "query") == "\ufffd"
    go_to(app, "layers")
    assert not app.exception
