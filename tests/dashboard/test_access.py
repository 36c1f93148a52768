"""What a server offers by its address and its operator's settings, and what it never opens."""

from __future__ import annotations

import os
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from components.errors import InputError
from dashboard import access, settings
from tests.dashboard.page_states import small_corpus
from tests.support.pages import Open

PRIVATE: dict[str, Any] = {
    "server.address": "127.0.0.1",
    "server.allowedHosts": [],
    "server.corsAllowedOrigins": [],
    "server.enableCORS": True,
}
PUBLIC = PRIVATE | {"server.address": "0.0.0.0"}


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch):
    """Calls of it set Streamlit's options, as its configuration would; access asks for no others."""
    for variable in (access.FREE_MODELS.variable, access.SERVER_FILES.variable, access.FRAMES.variable):
        monkeypatch.delenv(variable, raising=False)

    def configure(options: dict[str, Any]) -> None:
        original = access.st.get_option
        monkeypatch.setattr(access.st, "get_option", lambda name: options[name] if name in options else original(name))

    return configure


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.0.2.1", False),
        ("bert.example", False),
        ("unix:///run/bert.sock", False),
        (None, False),
    ],
)
def test_only_loopback_addresses_are_this_machines_own(address: str | None, expected: bool) -> None:
    assert access.is_loopback(address) is expected


@pytest.mark.parametrize(
    "change",
    [
        {"server.address": "0.0.0.0"},
        {"server.address": None},
        {"server.allowedHosts": ["bert.example"]},  # a proxy that passes a name on serves others
        {"server.corsAllowedOrigins": ["https://bert.example"]},
        {"server.enableCORS": False},
    ],
)
def test_a_server_for_others_offers_neither_files_nor_models_outside_the_list(configured, change) -> None:
    configured(PRIVATE)
    assert access.free_models_allowed()
    assert access.server_files_allowed()
    configured(PRIVATE | change)
    assert not access.free_models_allowed()
    assert not access.server_files_allowed()


@pytest.mark.parametrize(
    ("options", "models", "files", "expected"),
    [
        (PRIVATE, "0", None, (False, False)),  # the list only: then no files either
        (PRIVATE, "0", "1", (False, True)),
        (PRIVATE, None, "0", (True, False)),
        (PUBLIC, "1", None, (True, False)),  # models of the hub are no files of the server
        (PUBLIC, None, "1", (False, True)),
        (PUBLIC, " ", "", (False, False)),  # set to nothing: as if not set
    ],
)
def test_the_operators_variables_decide(configured, monkeypatch, options, models, files, expected) -> None:
    configured(options)
    for variable, value in ((access.FREE_MODELS.variable, models), (access.SERVER_FILES.variable, files)):
        if value is not None:
            monkeypatch.setenv(variable, value)
    assert (access.free_models_allowed(), access.server_files_allowed()) == expected


def test_a_path_is_not_even_looked_up_where_files_are_not_offered(configured, monkeypatch) -> None:
    configured(PUBLIC)
    assert not access.server_files_allowed()  # looks for the file of settings, once
    monkeypatch.setattr(os, "stat", lambda *_, **__: pytest.fail("looked up"))
    with pytest.raises(InputError, match="does not open files"):
        access.server_path("/etc/hostname")


@pytest.mark.parametrize("share", ["\\\\host\\share", "//host/share", "\\/host\\share", "/\\host"])
def test_a_network_share_never_reaches_a_file_call(configured, monkeypatch, share: str) -> None:
    configured(PRIVATE)
    monkeypatch.setattr(os, "stat", lambda *_, **__: pytest.fail("looked up"))
    with pytest.raises(InputError, match="network share"):
        access.server_path(share)
    with pytest.raises(InputError, match="network share"):
        settings.allowed_model(share)


@pytest.mark.parametrize("text", ["~nobody_such/x", "/no/such/file", "a\0b", "x" * 5_000])
def test_a_path_that_leads_nowhere_is_one_clear_error(configured, text: str) -> None:
    configured(PRIVATE)
    with pytest.raises(InputError, match="does not exist, or this program may not read it"):
        access.server_path(text)


def test_a_path_that_exists_is_returned(configured, tmp_path, monkeypatch) -> None:
    configured(PRIVATE)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "corpus.txt").write_text("x")
    assert access.server_path("~/corpus.txt") == tmp_path / "corpus.txt"


def test_a_folder_in_an_address_is_refused_like_a_folder_that_does_not_exist(configured, monkeypatch, tmp_path) -> None:
    configured(PUBLIC)
    monkeypatch.setenv(access.FREE_MODELS.variable, "1")
    refused = []
    for folder in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(InputError) as problem:
            settings.allowed_model(str(folder))
        refused.append(str(problem.value))
    assert refused[0] == refused[1]
    assert settings.allowed_model("someone/some-bert") == "someone/some-bert"


@pytest.mark.parametrize(
    ("options", "known", "foreign"),
    [
        (
            PRIVATE,
            ["localhost", "localhost:8501", "LOCALHOST.", "127.0.0.1:1", "127.0.0.2:80", "[::1]:8501"],
            [
                None,
                "",
                "evil.example",
                "192.0.2.1",
                "127.0.0.1.evil.example",
                "a@127.0.0.1",
                "127.0.0.1/x",
                "[::1",
                "localhost:x",
            ],
        ),
        (PUBLIC, ["localhost", "192.0.2.1:8501", "[2001:db8::1]"], ["evil.example", "192.0.2.1.evil.example"]),
        (
            PUBLIC | {"server.allowedHosts": ["bert.example", "*.school.example"]},
            ["bert.example:80", "a.school.example"],
            ["192.0.2.1", "school.example", "evilbert.example", "localhost"],
        ),
    ],
)
def test_hosts(configured, options, known, foreign) -> None:
    configured(options)
    assert [host for host in known if not access.is_known_host(host)] == []
    assert [host for host in foreign if access.is_known_host(host)] == []


def test_origins(configured) -> None:
    configured(PRIVATE | {"server.corsAllowedOrigins": ["https://lms.example"]})
    assert access.is_own_origin(None, "localhost:8501")
    assert access.is_own_origin("http://localhost:8501", "localhost:8501")
    assert access.is_own_origin("https://lms.example", "localhost:8501")
    for origin in (
        "http://evil.example",
        "http://localhost:9999",
        "null",
        "",
        "http://[",
        "http://localhost:8501.evil.example",
    ):
        assert not access.is_own_origin(origin, "localhost:8501"), origin
    assert not access.is_own_origin("", "")


def test_a_header_takes_no_line_of_its_own(monkeypatch) -> None:
    monkeypatch.setenv(access.FRAMES.variable, "'self' https://lms.example")
    assert access.frame_ancestors() == "'self' https://lms.example"
    monkeypatch.setenv(access.FRAMES.variable, "https://a.example\r\nSet-Cookie: x")
    with pytest.raises(InputError, match="BERT_INTERNALS_FRAMES"):
        access.frame_ancestors()


def test_pages_of_a_server_for_others_offer_no_files(configured, open_page: Open) -> None:
    configured(PUBLIC)
    app = open_page("search", v="corpus", corpus=small_corpus())
    assert "File on this machine" not in app.segmented_control(key="corpus_way").options
    assert app.selectbox(key="w_model").help == (
        "The encoder that all pages examine. Type to search by name, kind, size or licence."
    )
    app = open_page("evaluate", v="graded-relevance", gs="file")
    assert "Folder on this machine" not in app.segmented_control(key="w_graded_source").options


def test_only_who_owns_the_files_removes_everybodys_indexes(configured, open_page: Open) -> None:
    configured(PRIVATE)
    panel_is_open = {"search_view": "corpus", "kept": True, "corpus": small_corpus()}
    app = open_page("search", session=panel_is_open)
    assert app.button(key="clear_cache")
    configured(PUBLIC)
    assert [button for button in app.run().button if button.key == "clear_cache"] == []


def test_with_a_login_nobody_sees_a_page_before_it(open_page: Open, monkeypatch) -> None:
    assert access.may_see_pages()
    monkeypatch.setenv(access.LOGIN.variable, "1")
    app = open_page("home", s="A sentence from an address")
    assert [title.value for title in app.title] == ["BERT Internals"]
    assert [button.label for button in app.button] == ["Log in"]
    assert len(app.sidebar) == 0
    app = app.button(key="log_in").click().run()  # no provider is set up
    assert "Nobody can log in at the moment" in app.error[0].value
    assert app.exception == []


def test_after_the_login_the_pages_are_there(open_page: Open, monkeypatch) -> None:
    monkeypatch.setenv(access.LOGIN.variable, "1")

    class Person:
        is_logged_in = True

    monkeypatch.setattr(access.st, "user", Person())
    app = open_page("about")
    assert app.button(key="log_out").label == "Log out"
    assert len(app.title) == 1
    assert app.title[0].value != "BERT Internals"


def test_without_uploads_the_uploader_takes_nothing_and_says_so(monkeypatch) -> None:
    def page() -> None:
        from dashboard.corpora import uploads

        assert not uploads.uploader("kind", "A file", key="a_file", is_kept=False)

    for variable, is_disabled in (("1", False), ("0", True)):
        monkeypatch.setenv(access.UPLOADS.variable, variable)
        app = AppTest.from_function(page, default_timeout=30).run()
        assert app.exception == []
        assert app.get("file_uploader")[0].proto.disabled is is_disabled
        assert [caption.value for caption in app.caption] == [
            "This server takes no files: its operator decides that."
        ] * (is_disabled)
