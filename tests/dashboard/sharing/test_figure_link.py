"""The address that Share offers, and what is said of it."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.sharing import figure_link


@pytest.mark.parametrize(
    ("shown", "page", "values", "expected"),
    [
        ("https://bert.example/meaning", "meaning", {"v": ["block"]}, "https://bert.example/meaning?v=block"),
        ("https://uni.example/bert/inside", "text", {}, "https://uni.example/bert/text"),
        ("https://uni.example/bert/", "home", {"s": ["a b"]}, "https://uni.example/bert/?s=a%20b"),
        ("", "inside", {"h": ["3"]}, "/inside?h=3"),
    ],
)
def test_the_address_is_of_the_server_that_the_browser_shows(
    shown: str, page: str, values: dict[str, list[str]], expected: str
) -> None:
    assert figure_link.address(shown, page, values) == expected


def test_texts_come_back_from_the_address() -> None:
    texts = ["Größe & Maß?", "a+b = c#d", "\ud800", "זה"]
    query = urlsplit(figure_link.address("http://x/", "text", {"s": texts})).query
    assert parse_qs(query, errors="surrogatepass")["s"] == texts


@pytest.mark.parametrize("host", ["127.0.0.1:8501", "localhost:8501", "[::1]:8501", "dashboard.localhost"])
def test_an_address_of_this_computer_is_said_to_work_nowhere_else(host: str) -> None:
    assert "this computer only" in " ".join(figure_link.notes(f"http://{host}/text", has_room=True))


@pytest.mark.parametrize("host", ["192.168.1.7:8501", "bert.example", "10.0.0.2", "localhost.example"])
def test_nothing_is_said_of_an_address_that_others_reach(host: str) -> None:
    assert figure_link.notes(f"http://{host}/text", has_room=True) == ()


def test_an_address_too_long_for_a_camera_or_for_its_texts_says_so() -> None:
    long = "https://bert.example/text?s=" + "a" * 400
    assert re.search(r"428 characters.*room for 400", figure_link.notes(long, has_room=True)[0])
    assert "without them" in figure_link.notes("https://bert.example/text", has_room=False)[0]


def shown_link() -> None:
    import streamlit as st

    from dashboard import state
    from dashboard.sharing import figure_link

    st.session_state["sentences"] = tuple(st.session_state["texts"])
    state.open_view("pieces")
    figure_link.draw("text")


@pytest.mark.parametrize(("texts", "codes"), [(["One bank."], 1), (["A long text. " * 40], 0)])
def test_the_code_is_drawn_where_the_address_is_short(texts: list[str], codes: int) -> None:
    app = AppTest.from_function(shown_link)
    app.session_state["texts"] = texts
    app.run()
    assert not app.exception
    assert sum(element.type in ("imgs", "image", "image_list", "img") for element in app.main) == codes
    assert app.code[0].value.startswith("/text?v=pieces")
