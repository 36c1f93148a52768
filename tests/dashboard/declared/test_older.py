"""Addresses that the dashboard wrote before views had addresses of their own lead to the same views with the same settings.

older_addresses.txt was written once by commit 9db9ccd4: its address of each example state of each view, and of what each step
of each lesson shows.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest

from components import packing
from components.lessons.lesson import Scene
from dashboard import ready_made, state
from dashboard.declared import addresses, older, table
from dashboard.declared.view import SMALL_CORPUS, SMALL_MODEL
from dashboard.lessons import steps
from tests.support.pages import Open, setting

LINES = dict(
    line.split("\t") for line in (Path(__file__).parent / "older_addresses.txt").read_text("utf-8").splitlines()
)
STATES = {case: address for case, address in LINES.items() if not case.startswith("lesson ")}
STEPS = {case: address for case, address in LINES.items() if case.startswith("lesson ")}
NEWER = {
    "why_by",
    "least_cosine",
    "head_order",
    "head_shape",
    "failed_trait",
    "failed_only",
    "abbreviations",
}  # settings that there were not when the addresses were written
NEWER_IN = {
    "inside-block": {"second_block"},
    "model-facts": {"sentence", "tokens"},
    "failed-search": {"failed_trait", "failed_only", "abbreviations"},
}  # and those that a view has taken up since
# and that began with another value; what addresses of the last four mean is a test of its own below
OTHER_DEFAULT = {"failed_order", "second_stage", "compared_texts", "training_preset", "texts_searched"}
# Keys of settings that a view had and has no more: they stay in the address, so that the page names them.
GONE = {"learnt-ranking": {"lf", "lw", "lm", "lk", "lo", "ld"}}
STANDS_FOR = {SMALL_CORPUS: "0123456789abcdef" * 2, SMALL_MODEL: "prajjwal1/bert-tiny"}


def parts_of(address: str) -> tuple[str, dict[str, list[str]]]:
    """The page and the keys of an address."""
    parts = urlsplit(address)
    return parts.path.strip("/") or "home", parse_qs(parts.query, keep_blank_values=True)


def view_of(page: str, address: dict[str, list[str]]) -> str:
    """The view that a translated address opens."""
    return address.get(table.VIEW, [table.views_of(addresses.page_of(page))[0].key])[0]


def texts_of(view: str, address: dict[str, list[str]]) -> dict[str, list[str]]:
    """The texts by name that a translated address gives to a view. Raises KeyError for a key that the view lacks."""
    known = {item.short: item for item in table.SETTINGS if item.shared or item.name in table.VIEWS[view].settings}
    gone = {table.VIEW, *GONE.get(view, ())}
    found = {known[key].name: texts for key, texts in address.items() if key not in gone}
    return {name: texts for name, texts in found.items() if name in table.VIEWS[view].settings}


def expected_of(case: str) -> tuple[str, dict[str, list[str]]]:
    """The view that a case had, by today's key, and the texts of what its example state says that is not the default."""
    page, older_view, number = (*case.split(" "), "", "")[:3]
    view = older._pairs(older._VIEWS[page])[older_view] if older_view else page
    example = table.VIEWS[view].examples[{"blind": 1, "graph": 2, "words": 1}.get(number, 0)]
    return view, {
        name: table.SETTING[name].show(STANDS_FOR.get(value, value) if isinstance(value, str) else value)
        for name, value in example.items()
        if value != table.SETTING[name].default and name not in NEWER | OTHER_DEFAULT | NEWER_IN.get(view, set())
    }


@pytest.mark.parametrize("case", STATES)
def test_an_older_address_gives_each_view_the_settings_that_it_had(case: str) -> None:
    page, address = parts_of(STATES[case])
    translated = older.translated(page, address)
    view, expected = expected_of(case)
    assert view_of(page, translated) == view
    assert GONE.get(view, set()) <= set(translated)
    found = texts_of(view, translated)
    assert {name: texts for name, texts in found.items() if name not in OTHER_DEFAULT} == expected


def test_every_view_that_there_was_is_among_the_cases() -> None:
    views = {f"{page} {name}" for page, names in older._VIEWS.items() for name in older._pairs(names)}
    assert {" ".join(case.split(" ")[:2]) for case in STATES} == views | {"home", "lessons", "about"}


@pytest.mark.parametrize("case", STEPS)
def test_a_lesson_that_names_views_as_before_shows_what_it_did(case: str) -> None:
    page, address = parts_of(STEPS[case])
    scene = Scene(page, tuple((key, text) for key, texts in address.items() for text in texts), 1)
    assert steps.check_address(scene) == []
    _, lesson, number, kind = case.split(" ")
    now = ready_made.lessons()[lesson].steps[int(number) - 1].scenes[kind == "answer"]
    changed = {("two-banks", "5"), ("negation", "3"), ("tokens", "4")}  # their steps have been written anew since
    # What was the default and is named since, so that the step stays with the headlines of its text.
    named = {"preset": ["quick"]} if (lesson, number, kind) == ("fine-tuning", "1", "answer") else {}
    if (lesson, number) not in changed:
        assert steps.address_of(scene) | named == steps.address_of(now)


@pytest.mark.parametrize("case", ["tokens vocabulary", "attention matrix", "map ends", "training after"])
def test_packed_texts_of_an_older_address_are_read_by_their_older_keys(case: str) -> None:
    page, address = parts_of(STATES[case])
    packed = {key: texts for key, texts in address.items() if key != older.OLDER_VIEW}
    sent = {key: texts for key, texts in address.items() if key not in packed} | {older.PACKED: ["z"]}
    view, expected = expected_of(case)
    assert older.translated(page, sent)[older.PACKED] == ["z"]  # as it was sent
    assert texts_of(view, older.unpacked(view, packed)) == expected


def test_an_older_link_with_packed_texts_opens_its_view(open_page: Open) -> None:
    words = "a long text " * 8
    by_key = {"q": [words.strip()], "s": ["One.", "Two."]}
    app = open_page("tokens", v="vocabulary", z=packing.pack(by_key))
    assert setting(app, "text_view") == "vocabulary"
    assert setting(app, "vocabulary_query") == words.strip()
    assert setting(app, "sentences") == ("One.", "Two.")
    # The server has translated all but the packed texts before the page is opened.
    again = open_page("tokens", v="vocabulary", z=packing.pack(by_key))
    assert setting(again, "vocabulary_query") == words.strip()
    assert not app.warning
    assert not again.warning


def test_a_view_that_never_was_is_said_and_the_first_one_opens(open_page: Open) -> None:
    app = open_page("layers", view="nothing", pool="max", x="1")
    assert setting(app, "meaning_view") is None
    (warning,) = app.warning
    assert "“v=nothing”" in warning.value
    assert "does not use the link's “x”" in warning.value


def test_the_server_corrects_an_address_and_leaves_its_texts_as_they_are() -> None:
    for page, query, right in (
        ("layers", "v=hits&q=a%20b+c", ("search", "v=hits&q=a%20b+c")),
        ("nowhere", "v=hits", ("search", "v=hits")),
        ("layers", "view=within&t=2&t=3&s=a%26b&zip=x", ("laboratory", "v=two-tokens&t=2&t=3&s=a%26b&zip=x")),
        ("tokens", "view=vocabulary&q=%C3%A4&z=eNo%2B_-", ("text", "v=vocabulary&vq=%C3%A4&z=eNo%2B_-")),
        ("attention", "l=3&h=2&sp=hidden", ("inside", "v=head-view&b=3&h=2&spt=hidden")),
        ("layers", "", ("meaning", "v=one-word")),
        ("training", "v=before-after", ("train", "v=before-after")),
        ("why", "v=nothing", ("meaning", "v=nothing")),
        ("", "v=about", ("about", "v=about")),
        ("layers", "v=home", ("", "v=home")),
    ):
        assert addresses.corrected(page, query) == right, (page, query)
    for page, query in (
        *(
            ("meaning", ""),
            ("", ""),
            ("", "s=a&m=x"),
            ("search", "v=hits&q=x"),
            ("nowhere", "x=1"),
            ("meaning", "v=nothing"),
        ),
        *(("meaning", "v=hits&v=corpus"), ("meaning", "v"), ("about", "class=7b")),
    ):
        assert addresses.corrected(page, query) is None, (page, query)


@pytest.mark.parametrize("key", table.VIEWS)
def test_every_address_of_today_is_right_as_it_is(key: str) -> None:
    always = {setting.name: setting.default for setting in table.settings_in(key) if setting.always}
    query = urlencode(
        [(table.VIEW, key)]
        + [
            (table.SETTING[name].short, text)
            for name, value in {**always, **table.VIEWS[key].examples[0]}.items()
            for text in table.SETTING[name].show(value)
        ],
        quote_via=quote,
    )
    page = table.place_of(key)
    assert addresses.corrected("" if page == "home" else page, query) is None


def test_session_files_of_the_first_format_name_pages_and_views_as_before() -> None:
    chosen = {"layers_view": ["across"], "why_view": ["clinic"], "k": ["5"], "model_view": ["x", "y"]}
    rest = {"k": ["5"], "inside_view": ["x, y"]}
    assert older.session("why", chosen) == ("meaning", {"meaning_view": ["known-failures"]} | rest)
    assert older.session("layers", chosen) == ("meaning", {"meaning_view": ["one-word"]} | rest)
    assert older.session("training", {}) == ("train", {"train_view": ["training-data"]})
    assert older.session("attention", {"attention_view": ["neuron"]}) == (
        "laboratory",
        {"laboratory_view": ["neuron-view"]},
    )
    assert older.session("about", {"k": ["5"]}) == ("about", {"k": ["5"]})
    # A page of then and one of today have the same name.
    both = {"pairs_view": ["rerank"], "search_view": ["queries"]}
    assert older.session("pairs", both) == ("search", {"search_view": ["retrieve-rerank"]})
    assert older.session("search", both) == ("search", {"search_view": ["many-queries"]})


def test_the_frozen_table_names_settings_of_today() -> None:
    names = {name for text in (older._SHARED, *older._NAMES.values()) for name in older._pairs(text).values()}
    assert names <= table.SETTING.keys()
    assert state.PACKED != older.PACKED


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("v=attention-flow&fb=3", {"fl": ["rollout"], "fb": ["3"]}),
        ("v=attention-flow&ft=2&fs=1", {"fl": ["rollout"], "fb": ["0"], "ft": ["2"], "fs": ["1"]}),
        ("v=attention-flow&ff=all", {"fl": ["rollout"], "fb": ["0"], "ff": ["all"]}),
        ("v=attention-flow&fl=norms", {"fl": ["norms"]}),  # of one block, which was the first
        ("v=attention-flow&fl=through&ft=2", {"fl": ["through"], "ft": ["2"]}),
        ("v=attention-flow", {}),  # nothing was chosen: as it opens today
        ("v=all-heads&b=3", {"b": ["3"]}),
    ],
)
def test_an_address_of_flow_without_a_method_means_rollout(query: str, expected: dict[str, list[str]]) -> None:
    address = {key: [text] for key, text in (part.split("=") for part in query.split("&"))}
    found = older.translated("inside", address)
    assert found == {"v": address["v"], **expected}
    assert older.translated("inside", found) == found


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("v=retrieve-rerank&k=12", {"by": ["rerank"], "k": ["12"]}),
        ("v=retrieve-rerank&q=storm&by=maxsim", {"by": ["maxsim"], "q": ["storm"]}),
        ("v=retrieve-rerank&proj=1", {"proj": ["1"]}),  # nothing of the view was chosen: as it opens today
        ("v=retrieve-rerank", {}),
        ("v=similar-pairs&mc=55", {"of": ["corpus"], "mc": ["55"]}),
        ("v=similar-pairs&mc=55&of=included", {"of": ["included"], "mc": ["55"]}),
        ("v=similar-pairs", {}),
        ("v=training-data&ep=3", {"preset": ["repair"], "ep": ["3"]}),
        ("v=training-objective&preset=quick&ep=3", {"preset": ["quick"], "ep": ["3"]}),
        ("v=training-data", {}),
        ("v=training-run&ep=3&run=a", {"preset": ["repair"], "ep": ["3"], "run": ["a"]}),
        ("v=training-run&run=a&fig=rate&sm=25&step=10&lt=2&w=bank", None),  # nothing of the next run was chosen
        ("v=training-run", {}),
        ("v=hits&k=12", {"k": ["12"]}),
        # Only the right texts of a person's own file were searched; the included corpus has a query for each text.
        ("v=layer-grid&corpus=0123", {"tx": ["right"], "corpus": ["0123"]}),
        ("v=compare-runs&corpus=0123&tx=all", {"tx": ["all"], "corpus": ["0123"]}),
        ("v=compare-runs&by=mrr", {"by": ["mrr"]}),
        ("v=failed-search&corpus=0123", {"corpus": ["0123"]}),
    ],
)
def test_an_address_means_what_was_the_default_when_it_was_written(
    query: str, expected: dict[str, list[str]] | None
) -> None:
    address = {key: [text] for key, text in (part.split("=") for part in query.split("&"))}
    found = older.translated("search", address)
    assert found == (address if expected is None else {"v": address["v"], **expected})
    assert older.translated("search", found) == found
    older_form = {"view": ["rerank"], "k": ["12"]}
    assert older.translated("pairs", older_form) == {"v": ["retrieve-rerank"], "k": ["12"], "by": ["rerank"]}
    assert older.translated("search", {"view": ["pairs"], "n": ["12"]})["of"] == ["corpus"]


def test_an_older_address_of_flow_means_rollout_in_the_first_block() -> None:
    assert older.translated("attention", {"view": ["flow"], "ft": ["3"]}) == {
        "v": ["attention-flow"],
        "ft": ["3"],
        "fl": ["rollout"],
        "fb": ["0"],
    }
    assert older.session_as_meant({"flow_block": ["2"]}) == {"flow_block": ["2"], "flow": ["rollout"]}
    assert older.session_as_meant({"flow": ["through"], "flow_token": ["2"]})["flow"] == ["through"]
    assert older.session_as_meant({"block": ["2"]}) == {"block": ["2"]}
