"""The server answers an address that is not right with the right one, before a page is sent."""

from __future__ import annotations

import re
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from dashboard import logs
from dashboard.declared import addresses

HTML = {"accept": "text/html"}


@pytest.fixture(scope="module")
def client() -> TestClient:
    """The server's answer to browsers that ask for a page, in front of a page that is always the same."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "keep_texts_out", lambda: None)  # for the server's process, not for that of the tests
        from dashboard import app as server

    async def page(_: Any) -> HTMLResponse:
        return HTMLResponse("<html><body>page</body></html>")

    inner = Starlette(routes=[Route("/{path:path}", page)])
    return TestClient(server.StyledPage(inner), follow_redirects=False)


@pytest.mark.parametrize(
    ("asked", "right"),
    [
        ("/layers?v=hits&q=a%20b", "/search?v=hits&q=a%20b"),
        ("/layers/?view=within&t=2", "/laboratory?v=two-tokens&t=2"),
        ("/layers", "/meaning?v=one-word"),
        ("/why?v=home", "/?v=home"),
        ("/tokens?z=eNo%2B_-&q=%C3%A4", "/text?v=pieces&z=eNo%2B_-"),
    ],
)
def test_a_browser_is_sent_to_the_place_of_the_view(client: TestClient, asked: str, right: str) -> None:
    answer = client.get(asked, headers=HTML)
    assert (answer.status_code, answer.headers["location"]) == (307, right)


@pytest.mark.parametrize(
    "address", ["/laboratory?v=two-tokens&t=2", "/meaning", "/", "/?v=nothing", "/search?v=hits&q=%00"]
)
def test_an_address_that_is_right_is_answered(client: TestClient, address: str) -> None:
    answer = client.get(address, headers=HTML)
    assert answer.status_code == 200
    assert answer.text.endswith("page</body></html>")


def test_no_address_leads_away_from_the_server(client: TestClient) -> None:
    for address in (
        "//evil.example/x?v=hits",
        "/\\evil.example?v=hits",
        "/layers?v=//evil.example",
        "/https:?view=within",
    ):
        answer = client.get(address, headers=HTML)
        assert not answer.headers.get("location", "/").startswith(("//", "/\\", "http")), address


def test_what_is_no_page_is_left_alone(client: TestClient) -> None:
    assert client.get("/layers?v=hits", headers={"accept": "application/json"}).status_code == 200


def test_start_is_sent_without_waiting_for_an_import(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of all pages, by which other addresses are corrected, is imported beside it."""
    asked: list[str] = []
    monkeypatch.setattr(addresses, "corrected", lambda page, query: asked.append(page))
    assert client.get("/", headers=HTML).status_code == client.get("/meaning", headers=HTML).status_code == 200
    assert asked == ["meaning"]


def test_the_page_names_streamlits_code_for_what_start_draws(client: TestClient) -> None:
    from dashboard.app import EARLY

    found = re.findall(r'<link rel="modulepreload" href="\./static/js/([^"]+)">', client.get("/", headers=HTML).text)
    assert {name.rsplit(".", 2)[0] for name in found} == set(EARLY)
    assert len(found) == len(EARLY)
