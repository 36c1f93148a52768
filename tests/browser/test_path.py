"""The whole path in a browser: what is written on its canvas, what the browser computes, and when it asks the server."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from pathlib import Path as Folder
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from components.analysis.path.overview import overview
from components.arrays import cosine
from components.model.backend import Backend
from dashboard.declared.stops import STOPS, VIEW
from dashboard.views.home.whole import SENTENCES
from tests.support.browser import Visit, downloaded, wait_until
from tests.support.stage import PHONE, Stage
from tests.support.static_models import save_model2vec

WORDS = ("the", "cat", "sat", "on", "a", "bank", "by", "river", "we", "put", "money", "in")  # of the tiny vocabularies
FAMILIES = ("bert", "modernbert", "deberta-v2", "albert", "static")
# Reads the state of the drawing, once everything that it needs has been drawn.
STATE = """(root) => {
  const path = root.bertInternalsPath, { pen, state, numbers, facts } = path;
  return {
    width: pen.width, height: pen.height, texts: pen.texts, state: { ...state },
    tokens: facts.tokens.map((token) => token.piece), scores: [], finding: root.querySelector(".found").textContent,
    rows: path.rows, ys: facts.tokens.map((_, token) => path.rowOf.get(token)),
  };
}"""
# What the browser computes itself, of one token in one head: products, shares, sums, lengths and cosines.
COMPUTED = """(root, [block, head, token]) => {
  const { numbers, facts } = root.bertInternalsPath, list = (array) => Array.from(array);
  return {
    scores: list(numbers.scores(block, head, token)).map((score) => (score === -Infinity ? null : score)),
    weights: list(numbers.weights(block, head, token)),
    joined: list(numbers.joined(block, token)),
    taken: list(numbers.afterTake(block, token)),
    alone: list(numbers.afterAlone(block, token)),
    took: list(numbers.took(block, token)),
    check: numbers.check(block),
    similarity: facts.second ? numbers.similarity() : null,
  };
}"""

# Plays quickly from the open stop, and returns of each how far its words, its picture and the keys are within the window.
PLAYED = """(root) => new Promise((done) => {
  const path = root.bertInternalsPath, seen = {}, box = (selector) => root.querySelector(selector).getBoundingClientRect();
  path.stay = () => 250;
  root.querySelector(".play").click();
  const look = () => {
    seen[path.state.stop] = [box(".say").top, box(".player").top - box(".stage").bottom, innerHeight - box(".player").bottom];
    if (path.isPlaying) requestAnimationFrame(look);
    else {
      delete path.stay;
      done(seen);
    }
  };
  look();
})"""


@pytest.fixture(scope="module")
def family_folder(
    tmp_path_factory: pytest.TempPathFactory, tiny_folder: Callable[[str], Folder]
) -> Callable[[str], str]:
    """Where a tiny model of a family is."""

    def folder(family: str) -> str:
        if family == "static":
            made = tmp_path_factory.mktemp("static")
            return str(save_model2vec(made / "model"))
        return str(tiny_folder(family))

    return folder


def address(**values: Any) -> str:
    return f"/inside?{urlencode({'v': VIEW, **values}, doseq=True)}"


def drawn(page: Page, stop: str, mode: str = "all") -> Locator:
    """The drawing, once this stop is drawn with its block."""
    path = page.locator(".path")
    whole = re.compile(rf"^{stop} {mode} \d+ \d+$")
    expect(path.locator(".stage canvas")).to_have_attribute("data-drawn", whole, timeout=60_000)
    return path


def move(page: Page, **state: Any) -> Locator:
    """Another stop, token, block or head, as by a click."""
    page.locator(".path").evaluate("(root, state) => root.bertInternalsPath.set(state)", state)
    return drawn(page, state["stop"])


def number(text: str) -> float:
    return float(text.replace("−", "-").replace("+", ""))


def rounded_from(text: str, value: float) -> bool:
    """Whether a written number is one that its value rounds to; float64 here and there may differ in the last bits."""
    digits = len(text.partition(".")[2])
    return abs(number(text) - value) <= 0.5 * 10**-digits + 1e-6


@pytest.mark.parametrize("family", FAMILIES)
def test_every_number_on_screen_is_right_for_random_sentences(
    use: Stage, family_folder: Callable[[str], str], family: str
) -> None:
    draw = random.Random(family)
    sentences = [" ".join(draw.choices(WORDS, k=draw.randint(4, 9))) for _ in range(2)]
    folder = family_folder(family)
    page = use.at(address(m=folder, s=sentences))
    path = drawn(page, "pieces")
    facts: dict[str, Any] = path.evaluate("(root) => root.bertInternalsPath.facts")
    backend = Backend.load(folder)
    trace = backend.trace(sentences)
    record = backend.inside(sentences[0], score_terms=backend.structure.adds_to_scores) if facts["blocks"] else None
    whole = overview(trace, 0, record)
    token = draw.randrange(len(facts["tokens"]))
    if record is not None:
        assert record.attentions is not None
        block, head = draw.randrange(facts["blocks"]), draw.randrange(facts["heads"])
        read = written(move(page, stop="look", token=token, block=block, head=head))
        computed = path.evaluate(COMPUTED, [block, head, token])
        in_head(read, computed, record.attentions[block, head, token])
        as_python(computed, record, block, head, token)
        took = whole.took
        assert took is not None
        np.testing.assert_allclose(
            computed["took"], took[block, token] / took[block, token].sum(dtype=np.float64), atol=1e-6
        )
        assert max(computed["check"].values()) < 1e-5
        lengths(written(move(page, stop="take")), record.attention_output[block, token], whole.layers[block, token])
        lengths(written(move(page, stop="alone")), record.after_attention[block, token], whole.layers[block + 1, token])
        finding = written(move(page, stop="blocks"))["finding"]
        angle = re.search(r"\(cosine (−?\d+\.\d+)\)", finding)
        assert angle is not None, finding
        assert rounded_from(angle[1], float(cosine(whole.layers[-1, token], whole.layers[0, token])))
    last = written(move(page, stop="compare"))
    read_vector = "(root, which) => Array.from(root.bertInternalsPath.numbers.vector(which))"
    vectors = [path.evaluate(read_vector, which) for which in ("first", "second")]
    expected = float(cosine(*(np.array(vector) for vector in vectors)))
    shown = re.search(r"Cosine (−?\d+\.\d+)", last["finding"])
    assert shown is not None
    assert rounded_from(shown[1], expected)
    sums_to(last, ("cells agree", "disagree"), "together")
    pairs = path.evaluate("(root) => root.bertInternalsPath.numbers.pairs()")
    if pairs is not None:  # of a plain mean
        assert sum(pair["value"] for pair in pairs) == pytest.approx(expected, abs=1e-5)
        assert re.search(r"Of the \d+ pairs of their pieces", last["finding"])


def written(path: Locator) -> dict[str, Any]:
    """What is written on the canvas, and the state: nothing lies over anything else or leaves the drawing."""
    read: dict[str, Any] = path.evaluate(STATE)
    for one, other in itertools.combinations(read["texts"], 2):
        across = min(one["x"] + one["width"], other["x"] + other["width"]) - max(one["x"], other["x"])
        down = min(one["y"] + one["height"], other["y"] + other["height"]) - max(one["y"], other["y"])
        assert across < 2 or down < 3, (one["text"], other["text"], read["state"])
    for one in read["texts"]:
        inside = (
            -1 <= one["x"] <= one["x"] + one["width"] <= read["width"] + 1
            and one["y"] + one["height"] <= read["height"] + 1
        )
        assert inside, (one["text"], read["state"])
    return read


def in_head(read: dict[str, Any], computed: dict[str, Any], weights: np.ndarray) -> None:
    """The matches and shares of a head are those of the model, and with what rounding leaves they sum to 100 %."""
    np.testing.assert_allclose(computed["weights"], weights, atol=2e-6)
    matches = [text["text"] for text in read["texts"] if re.fullmatch(r"−?\d+\.\d\d", text["text"])]
    for score in computed["scores"]:
        assert score is None or any(rounded_from(text, score) for text in matches), score
    shares = [text["text"] for text in read["texts"] if re.fullmatch(r"\d+\u00a0%", text["text"])]
    seen = [weight for weight, score in zip(computed["weights"], computed["scores"], strict=True) if score is not None]
    # In the order of the rows, then "100 %", then the share of the match that is opened.
    assert [int(text[:-2]) for text in shares[: len(seen)]] == [
        pytest.approx(100 * weight, abs=0.5 + 1e-4) for weight in seen
    ]
    rest = next(
        (text["text"] for text in read["texts"] if text["text"].startswith("rounding") and "%" in text["text"]),
        "rounding 0",
    )
    assert sum(int(text[:-2]) for text in shares[: len(seen)]) + int(number(rest.split()[1].rstrip("\u00a0%"))) == 100
    sums_to(read, ("above zero", "below zero"), "sum")


def sums_to(read: dict[str, Any], terms: tuple[str, ...], total: str) -> None:
    """Written terms and their rounding add up to the written sum, to the last digit."""
    texts = [text["text"] for text in read["texts"]]
    end = next(place for place, text in enumerate(texts) if text == total)
    first = next(place for place, text in enumerate(texts) if text.endswith(terms[0]))
    values = [number(text) for text in texts[first : end + 2] if re.fullmatch(r"[+−]?\d+\.\d+", text)]
    assert len(values) in (3, 4), texts[first : end + 2]
    assert sum(values[:-1]) == pytest.approx(values[-1], abs=1e-9), texts[first : end + 2]


def as_python(computed: dict[str, Any], record: Any, block: int, head: int, token: int) -> None:
    """What the browser sums is what Python sums of the same arrays."""
    joined = np.concatenate(
        [
            weights[token] @ values
            for weights, values in zip(record.attentions[block], record.values[block], strict=True)
        ]
    )
    np.testing.assert_allclose(computed["joined"], joined, atol=1e-5 * max(1.0, float(np.abs(joined).max())))
    before, after = record.hidden_states[block, token], record.after_attention[block, token]
    np.testing.assert_allclose(
        computed["taken"], before.astype(np.float64) + record.attention_output[block, token], atol=1e-9
    )
    np.testing.assert_allclose(
        computed["alone"], after.astype(np.float64) + record.feed_forward_output[block, token], atol=1e-9
    )


def lengths(read: dict[str, Any], *vectors: np.ndarray) -> None:
    """The lengths of these vectors are written."""
    found = [text["text"] for text in read["texts"] if re.fullmatch(r"\d+\.\d\d", text["text"])]
    for vector in vectors:
        length = float(np.linalg.norm(vector.astype(np.float64)))
        assert any(rounded_from(text, length) for text in found), (length, found)


@pytest.mark.core
def test_take_shows_the_way_round_and_names_its_head_and_no_special_token_is_most_like_the_sentence(
    visit: Visit,
) -> None:
    page = visit(address(s=SENTENCES, t=["7", "6"]))
    path = drawn(page, "pieces")
    for stop, part in (("take", "attention"), ("alone", "the feed-forward part")):
        read = written(move(page, stop=stop, token=7, block=3, head=1))
        assert "+" in [text["text"] for text in read["texts"]]
        hints = path.evaluate("(root) => root.bertInternalsPath.pen.spots.map((spot) => spot.hint ?? '')")
        assert f"The residual: what came in goes round {part} and is added to what that made of it." in hints
    read = written(move(page, stop="take", token=7, block=3, head=1))
    assert "cell by cell: lengths do not simply add" in [text["text"] for text in read["texts"]]
    weights = path.evaluate("(root) => Array.from(root.bertInternalsPath.numbers.weights(3, 1, 7))")
    most, tokens = int(np.argmax(weights)), read["tokens"]
    head = re.search(r"Head 1, drawn here, gives its largest share, (\d+)\s%, to (itself|“(.+?)”)", read["finding"])
    assert head is not None, read["finding"]
    assert rounded_from(head[1], 100 * weights[most])
    assert (head[2] == "itself") == (most == 7)
    assert head[3] is None or head[3] == tokens[most]
    assert read["finding"].startswith("All 12 heads together: ")
    took = path.evaluate("(root) => Array.from(root.bertInternalsPath.numbers.took(3, 7))")
    column = beside(read, next(text for text in read["texts"] if text["text"] == "all heads"))
    assert [int(text[:-2]) for text in column] == [pytest.approx(100 * share, abs=0.5 + 1e-4) for share in took]
    assert cells_of_the_sum(page, path) > 0, "no cell of the sum is rounded"
    finding = written(move(page, stop="pool"))["finding"]
    named = re.match(r"Of your text, most like the result is “(.+?)”.*, least “(.+?)”", finding)
    assert named is not None, finding
    assert not {named[1], named[2]} & {"[CLS]", "[SEP]"}
    # Where a person rests is told while the page is open, and not of one that is being left, whose place another takes.
    told = path.evaluate(
        """(root) => {
          const path = root.bertInternalsPath, { report } = path, here = location.href, told = [];
          path.report = (name) => told.push(`${name} at ${location.pathname}`);
          for (const address of [here, "/about"]) {
            history.replaceState(history.state, "", address);
            path.lastPlace = null;
            path.reportPlace();
          }
          history.replaceState(history.state, "", here);
          path.report = report;
          return told;
        }"""
    )
    assert told == ["place at /inside"]
    # A late answer of the server moves nobody back; another place does.
    moves = path.evaluate(
        """(root) => {
          const path = root.bertInternalsPath, kept = [path.said, path.reported, path.lastPlace];
          [path.said, path.lastPlace] = ["a", "c"];
          path.reported = ["b", "c"].map((place) => ({ place, at: performance.now() }));
          const moves = ["a", "b", "c", "c", "b", "a"].map((place) => path.isSent(place));
          [path.said, path.reported, path.lastPlace] = kept;
          return moves;
        }"""
    )
    assert moves == [False, False, False, False, True, True]
    say = """(root, [values, unknown]) => {
      const path = root.bertInternalsPath;
      path.numbers.pairs = () => values.map((value, at) => ({ first: at, second: at, value }));
      path.facts.unknownLanguage = unknown;
      path.set({ stop: "compare" });
      return root.querySelector(".found").textContent;
    }"""
    said = path.evaluate(say, [[0.9, 0.02, -0.0004, 0.001], False])  # the first is [CLS] with [CLS]
    assert (
        "Of the 3 pairs of their pieces, “the” (piece 1) with “i” (+0.020) pulls them together most, “children” with"
        in said
    )
    assert said.endswith("(−0.0004) apart.")
    assert path.evaluate(say, [[0.9, 0.02, 0.01], False]).endswith("; none pulls them apart.")
    assert "none pulls them together, " in path.evaluate(say, [[0.9, -0.02, -0.01], False])
    assert "It says little: the model does not know the language. Of the" in path.evaluate(say, [[0.1, 0.2, 0.3], True])


def beside(read: dict[str, Any], head: dict[str, Any]) -> list[str]:
    """What is written below a heading, at its left edge."""
    below = [text for text in read["texts"] if abs(text["x"] - head["x"]) < 1 and text["y"] > head["y"]]
    return [text["text"] for text in sorted(below, key=lambda text: text["y"])]


def cells_of_the_sum(page: Page, path: Locator) -> int:
    """Point at cells of the sum: its terms, their rounding and the sum are in sight and add up; how many are rounded."""
    strip = path.evaluate(
        """(root) => {
          const { pen, columns, facts } = root.bertInternalsPath, frame = pen.canvas.getBoundingClientRect();
          const { x, y, width, height } = pen.spots.find((spot) => spot.name === "sum with what came in");
          const open = columns[facts.stops.indexOf("take")];
          return { x, width, left: frame.x + x, middle: frame.y + y + height / 2, end: open.x + open.width + 5 * pen.scale };
        }"""
    )
    rounded = 0
    for part in np.linspace(0.02, 0.98, 12):
        page.mouse.move(strip["left"] + part * strip["width"], strip["middle"])
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        right = strip["x"] + strip["width"]
        texts = [
            text for text in path.evaluate(STATE)["texts"] if right <= text["x"] <= strip["end"] and "." in text["text"]
        ]
        tip = path.locator(".tip").bounding_box()
        frame = path.locator(".stage canvas").bounding_box()
        assert tip is not None
        assert frame is not None
        for text in texts:
            assert text["x"] + text["width"] <= strip["end"], text
            across = min(frame["x"] + text["x"] + text["width"], tip["x"] + tip["width"]) - max(
                frame["x"] + text["x"], tip["x"]
            )
            down = min(frame["y"] + text["y"] + text["height"], tip["y"] + tip["height"]) - max(
                frame["y"] + text["y"], tip["y"]
            )
            assert across <= 0 or down <= 0, text
        came, _joined, added, total, *rest, _norm = (
            number(text["text"]) for text in sorted(texts, key=lambda text: text["y"])
        )
        assert sum((came, added, *rest)) == pytest.approx(total, abs=1e-9)
        rounded += len(rest)
    return rounded


def test_a_block_is_fetched_once_and_nothing_else_is(visit: Visit) -> None:
    page = visit(address(s=SENTENCES, t=["7", "6"]))
    path = drawn(page, "pieces")
    # What is asked for, by the page's own words for it, on whichever element the drawing stands.
    path.evaluate(
        """(root) => {
          const path = Object.getPrototypeOf(root.bertInternalsPath), ask = path.ask;
          globalThis.asked = [];
          path.ask = function () {
            const { report } = this;
            this.report = (name, value) => { globalThis.asked.push(value); report(name, value); };
            ask.call(this);
            this.report = report;
          };
        }"""
    )
    move(page, stop="look", block=3)
    assert page.evaluate("globalThis.asked") == [["all.3"]]
    size = path.evaluate("(root) => root.bertInternalsPath.numbers.store.size")
    for stop in ("take", "alone", "blocks", "pool", "compare", "pieces"):
        move(page, stop=stop, token=3, head=7)
    move(page, stop="look", block=0)
    move(page, stop="look", block=3)
    assert path.evaluate("(root) => root.bertInternalsPath.numbers.store.size") == size
    # Where a person rests is in the address, and a reload opens it.
    wait_until(
        page,
        "() => ['stop', 'b', 't'].map((key) => new URLSearchParams(location.search).get(key)).join() === 'look,3,3'",
    )
    page.reload()
    assert drawn(page, "look").evaluate(
        "(root) => [root.bertInternalsPath.state.block, root.bertInternalsPath.state.token]"
    ) == [3, 3]


def test_only_look_left_hides_what_is_to_the_right(visit: Visit) -> None:
    page = visit(address(s=SENTENCES, t=["7", "6"], stop="look", b="0", h="4"))
    drawn(page, "look")
    page.get_by_role("switch", name="only look left").click()
    path = drawn(page, "look", "left")
    read = path.evaluate(STATE)
    assert [text["text"] for text in read["texts"]].count("hidden") == len(read["tokens"]) - 8
    assert "trained to look both ways" in path.locator(".line").inner_text()
    record = Backend.load().inside(SENTENCES[0], only_left=True)
    assert record.attentions is not None
    np.testing.assert_allclose(path.evaluate(COMPUTED, [0, 4, 7])["weights"], record.attentions[0, 4, 7], atol=2e-6)


def test_keys_lead_through_the_path_and_the_table_says_it_in_words(visit: Visit) -> None:
    page = visit(address(s=SENTENCES, t=["7", "6"]))
    path = drawn(page, "pieces")
    path.locator("canvas").first.focus()
    for key, (stop, token) in {
        "ArrowRight": ("zero", 7),
        "ArrowDown": ("zero", 8),
        "End": ("compare", 8),
        "ArrowLeft": ("pool", 8),
    }.items():
        path.locator(".stage canvas").press(key)
        state = drawn(page, stop).evaluate("(root) => root.bertInternalsPath.state")
        assert state["token"] == token, key
    path.locator(".stage canvas").press("Home")
    drawn(page, "pieces")
    path.get_by_text("Numbers of this stop").click()
    expect(path.locator("table tr")).to_have_count(1 + 13)
    expect(path.locator("ol.text li")).to_have_count(len(STOPS))
    saved = downloaded(page, path.get_by_role("button", name="Save as picture"))
    assert saved.suggested_filename == "path-1-pieces.png"
    path.locator(".stage canvas").press("ArrowRight")
    finding = written(drawn(page, "zero"))["finding"]
    ratio = re.search(r"is ([\d.]+) times as long as its \w+ vector \(([\d.]+) ÷ ([\d.]+)\)", finding)
    assert ratio is not None, finding
    assert f"{float(ratio[2]) / float(ratio[3]):.1f}" == ratio[1]
    rows = {
        row.split("\t")[0]: row.split("\t")[-1].split(", ") for row in path.locator("table").inner_text().split("\n")
    }
    parts = [rows[name] for name in ("word vector", "position vector", "segment vector", "rounding") if name in rows]
    assert "rounding" in rows
    sums = [sum(number(cell) for cell in cells) for cells in zip(*parts, strict=True)]
    assert sums == pytest.approx([number(cell) for cell in rows["sum"]], abs=1e-9)
    page.set_viewport_size({"width": 1280, "height": 720})
    page.evaluate("document.querySelector('.stMain').scrollTo(0, 0)")
    play = path.get_by_role("button", name="Play")
    at = play.bounding_box()
    assert at is not None
    assert at["y"] + at["height"] <= 720  # in the window before anybody scrolls
    for stop, room in path.evaluate(PLAYED).items():
        assert min(room) >= -1, (stop, room)  # words, picture and keys
    move(page, stop="zero")
    path.get_by_role("button", name="Parts of layer 0").click()
    wait_until(page, "() => new URLSearchParams(location.search).get('v') === 'layer-zero'")


def test_a_long_sentence_shows_a_window_and_says_what_it_leaves_out(use: Stage) -> None:
    words = " ".join(itertools.islice(itertools.cycle(WORDS), 60))
    page = use.at(address(s=[words, "a cat"], t=["30", "1"], stop="look"))
    read = written(drawn(page, "look"))
    rests = [row["rest"] for row in read["rows"] if "rest" in row]
    assert (rests[0][0], rests[-1][1]) == (0, len(read["tokens"]) - 1)
    assert sum(last - first + 1 for first, last in rests) + len(read["rows"]) - len(rests) == len(read["tokens"])
    texts = [text["text"] for text in read["texts"]]
    for first, last in rests:
        assert any(re.fullmatch(rf"{last - first + 1} more · \d+\u00a0% together", text) for text in texts), texts
    weights = page.locator(".path").evaluate(
        "({ bertInternalsPath: { numbers, state } }) => Array.from(numbers.weights(state.block, state.head, 30))"
    )
    assert int(np.argmax(weights)) in [row["token"] for row in read["rows"] if "token" in row]


def tapped(page: Page, path: Locator, which: str) -> None:
    """Tap on the first spot for which a condition holds."""
    at = path.evaluate(
        f"""(root) => {{
          const {{ pen }} = root.bertInternalsPath, spot = pen.spots.find((spot) => {which});
          const frame = pen.canvas.getBoundingClientRect();
          document.querySelector(".stMain").scrollBy(0, frame.y + spot.y - 300);
          const moved = pen.canvas.getBoundingClientRect();
          return [moved.x + spot.x + spot.width * 0.7, moved.y + spot.y + spot.height / 2];
        }}"""
    )
    page.touchscreen.tap(*at)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_on_a_phone_the_stops_stand_below_one_another(touched: Callable[[str], Page]) -> None:
    page = touched(address(s=SENTENCES, t=["7", "6"]))
    following, places = page.get_by_role("button", name="Next stop"), []
    for stop in STOPS:
        path = drawn(page, stop)
        written(path)
        player = following.bounding_box()
        question, opened = path.locator("h3").bounding_box(), path.locator(".here").bounding_box()
        assert question is not None
        assert opened is not None
        assert player is not None
        assert question["y"] >= 56, stop  # below the first line, which stays
        assert min(player["y"], opened["y"] + opened["height"]) - opened["y"] >= 120, stop  # and some of the picture
        places.append(player)
        following.tap()  # again and again in the same place
    assert all(place == pytest.approx(places[0], abs=2) for place in places), places
    path = page.locator(".path")
    # While it plays, the end of a stop is above the keys once all of it has appeared.
    end = path.evaluate(
        """(root) => new Promise((done) => {
          const path = root.bertInternalsPath, box = (selector) => root.querySelector(selector).getBoundingClientRect();
          path.isCalm = false;
          path.set({ stop: "take" });
          path.play(true);
          path.moving.arrived = performance.now() - path.stay();
          const end = () => done(box(".player").top - box(".here").bottom);
          const look = () => requestAnimationFrame(path.reveal < 1 ? look : end);
          look();
        })"""
    )
    assert 0 <= end < 20
    # A finger on a strip writes its terms, which add up; at Look, on a row, its match and all that leads to its share.
    tapped(page, path, "spot.name === 'sum with what came in'")
    assert not path.evaluate("(root) => root.bertInternalsPath.isPlaying")
    texts = path.evaluate(STATE)["texts"]
    right = sorted(
        (text for text in texts if re.fullmatch(r"(cell \d+: |rounding )?[+−]?\d\.\d{3}", text["text"])),
        key=lambda text: (text["y"], text["x"]),
    )
    came, _joined, added, *total, _norm = (number(text["text"].split()[-1]) for text in right)
    assert sum((came, added, *total[:-1])) == pytest.approx(total[-1], abs=1e-9)
    move(page, stop="look")
    tapped(page, path, "spot.partner === 3")
    read = written(path)
    assert (read["state"]["token"], read["state"]["partner"]) == (7, 3)
    assert {"÷ sum of rows", "share"} < {text["text"] for text in read["texts"]}
    path.get_by_role("button", name="Piece 10: river").click()
    expect(page.locator(".path .line")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.set_viewport_size({"width": PHONE[1], "height": PHONE[0]})  # turned on its side
    expect(page.locator(".path")).to_have_class("path stacked beside")
    page.get_by_role("button", name="Stop before").tap()
    assert (page.locator(".path .player").bounding_box() or {})["height"] < 60
    expect(page.locator('[data-testid="stSidebar"]')).to_have_attribute("data-collapsed", "true")
    said, picture = page.locator(".path .say").bounding_box(), page.locator(".path .stage").bounding_box()
    assert said is not None
    assert picture is not None
    assert said["x"] + said["width"] <= picture["x"]
    assert said["y"] >= 0
    assert picture["y"] < PHONE[0] / 3
