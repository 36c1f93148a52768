"""bertviz's pages: what they carry, what they keep out, how large they are."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from functools import partial
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from components.charts.bertviz import page as bertviz_page
from components.charts.bertviz.views import MAX_BYTES, attention_page, estimate_bytes, fitting_zoom, frame_height
from components.charts.quantise import quantise_vectors, quantise_weights
from components.errors import InputError

NASTY = [
    "</script>",
    "<!--",
    "-->",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "]]>",
    "\u2028\u2029",
    "&lt;b&gt;",
    "\"'\\",
    "</title></p>",
    "\ud83d",
    "你好",
]


head_view, model_view = partial(attention_page, "head"), partial(attention_page, "model")


def neuron_view(
    attentions: np.ndarray, queries: np.ndarray, keys: np.ndarray, tokens: list[str], **options: Any
) -> str:
    return attention_page("neuron", attentions, tokens, queries=queries, keys=keys, **options)


def attentions(blocks: int = 2, heads: int = 3, tokens: int = 5, seed: int = 0) -> np.ndarray:
    """Weights [block, head, query, key] whose rows sum to 1, sharp and broad ones."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(scale=3, size=(blocks, heads, tokens, tokens)).astype(np.float32)
    weights = np.exp(scores)
    return weights / weights.sum(-1, keepdims=True)


def vectors(blocks: int = 2, heads: int = 3, tokens: int = 5, dim: int = 4, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=4, size=(blocks, heads, tokens, dim)).astype(np.float32)


def names(count: int) -> list[str]:
    return [f"token{place}" for place in range(count)]


def page_of(view: str, tokens: list[str], **options: object) -> str:
    """A small page of any view."""
    n = len(tokens)
    if view == "neuron":
        return neuron_view(attentions(tokens=n), vectors(tokens=n), vectors(tokens=n, seed=2), tokens, **options)
    return {"head": head_view, "model": model_view}[view](attentions(tokens=n), tokens, **options)


class Reader(HTMLParser):
    """The document as a browser reads it: elements with their attributes, scripts with their text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.texts: dict[str, str] = {}
        self.comments = 0
        self.open: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.open = tag
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self.open = None

    def handle_data(self, data: str) -> None:
        if self.open is None:
            return  # only elements without children matter here
        tag, attributes = self.elements[-1]
        if tag == "script":
            kept, before = self.scripts[-1]
            self.scripts[-1] = (kept, before + data)
        key = attributes.get("id") or tag
        self.texts[key] = self.texts.get(key, "") + data

    def handle_comment(self, data: str) -> None:
        self.comments += 1

    def data(self, name: str) -> str:
        return next(text for attributes, text in self.scripts if attributes.get("id") == name)

    def facts(self) -> dict[str, object]:
        return json.loads(self.data("page"))

    def array(self, name: str, kind: type | str) -> np.ndarray:
        return np.frombuffer(base64.b64decode(self.data(name), validate=True), kind)


@pytest.mark.parametrize("view", ["head", "model", "neuron"])
def test_weights_are_read_back_within_the_bound(view: str) -> None:
    weights = attentions(tokens=7)
    page = Reader(page_of(view, names(7)))
    read = page.array("weights", np.uint8).reshape(weights.shape) / 255
    assert np.abs(read - weights).max() <= 1 / 510 + 1e-6  # half a step of a byte
    assert page.facts()["tokens"] == names(7)


def test_queries_and_keys_are_read_back_within_the_bound() -> None:
    queries, keys = vectors(dim=8), vectors(dim=8, seed=2)
    queries[0, 0, 0] = 0  # a vector without a largest element
    page = Reader(neuron_view(attentions(), queries, keys, names(5)))
    for name, vector in (("queries", queries), ("keys", keys)):
        steps = page.array(name, np.int8).reshape(vector.shape)
        scales = page.array(f"{name}-scales", "<f4").reshape(vector.shape[:3])
        bound = 1 / 254 * np.abs(vector).max(-1, keepdims=True)
        assert (np.abs(steps * scales[..., None] - vector) <= bound + 1e-6).all()
    assert page.facts()["dim"] == 8


def test_the_neuron_view_has_the_numbers_of_the_head_that_it_shows() -> None:
    weights, queries, keys = attentions(), vectors(), vectors(seed=2)
    for options, place in (({"block": 1, "head": 2}, (1, 2)), ({"blocks": [1], "heads": [1, 2]}, (1, 1))):
        page = Reader(neuron_view(weights, queries, keys, names(5), **options))
        np.testing.assert_array_equal(page.array("percents", np.uint8), np.rint(100 * weights[place]).ravel())
        scores = page.array("scores", "<f4").reshape(5, 5)  # of each query (row) with each key
        np.testing.assert_allclose(scores, queries[place] @ keys[place].T, rtol=1e-5)


def test_what_a_view_is_told_reaches_its_page() -> None:
    told = {"least": 0.25, "told": (1, 3), "opened": 2, "step": "softmax"}
    colours = [["#0", "#1", "#2"], ["#3", "#4", "#5"]]
    facts = Reader(head_view(attentions(), names(5), blocks=[1], heads=[0, 2], colours=colours, **told)).facts()
    assert {name: facts[name] for name in told} == told | {"told": [1, 3]}
    assert facts["colours"] == [["#3", "#5"]]  # of the heads that are sent


def test_a_view_fills_its_frame_as_far_as_both_sides_allow() -> None:
    natural = frame_height("head", 10)
    assert fitting_zoom("head", 10, 1, 12, 720, 3 * natural) == 2.0  # twice as wide as the drawing
    assert fitting_zoom("head", 10, 1, 12, 720, natural) == 1.0
    assert [fitting_zoom("head", 10, 1, 12, size, size) for size in (1, 100_000)] == [0.7, 2.2]


def test_a_byte_holds_nothing_one_half_and_all_of_the_attention() -> None:
    np.testing.assert_array_equal(quantise_weights(np.array([0, 0.5, 1, 1.0004, -1e-9])), [0, 128, 255, 255, 0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.1, 1.1])
def test_what_is_no_weight_is_refused(bad: float) -> None:
    weights = attentions()
    weights[0, 0, 0, 0] = bad
    with pytest.raises(ValueError, match="from 0 to 1"):
        head_view(weights, names(5))


def test_vectors_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        quantise_vectors(np.array([[1.0, np.nan]]))


@pytest.mark.parametrize("view", ["head", "model", "neuron"])
def test_the_data_goes_once(view: str) -> None:
    text = page_of(view, names(9))
    page = Reader(text)
    assert text.count(page.data("weights")) == 1
    assert text.count('"token8"') == 1
    assert "PYTHON_PARAMS" not in text


@pytest.mark.parametrize("view", ["head", "model", "neuron"])
def test_a_page_names_no_other_host(view: str) -> None:
    text = page_of(view, names(3))
    addresses = re.findall(r"(?:https?|wss?|ftp)://[^\s\"'<>)]*", text)
    assert [address for address in addresses if not address.startswith("http://www.w3.org/")] == []
    assert "cdnjs" not in text
    assert not re.search(r"""(?:src|href)\s*=\s*["']?//""", text)
    for tag, attributes in Reader(text).elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base"}
        assert not attributes.keys() & {"src", "href"}


@pytest.mark.parametrize("view", ["head", "model", "neuron"])
def test_markup_in_tokens_stays_text(view: str) -> None:
    plain, nasty = Reader(page_of(view, names(len(NASTY)))), Reader(page_of(view, NASTY))
    assert nasty.facts()["tokens"] == NASTY
    assert [tag for tag, _ in nasty.elements] == [tag for tag, _ in plain.elements]
    assert [text for kept, text in nasty.scripts if not kept] == [text for kept, text in plain.scripts if not kept]
    assert nasty.comments == plain.comments == 0
    assert "<img src=x onerror=alert(1)>" in nasty.texts["about"]  # the text alternative, read back as text
    assert not re.search(r"[<>&\u2028\u2029]", nasty.data("page"))
    page_of(view, NASTY).encode()  # half a surrogate pair must not stop it from being sent


@pytest.mark.parametrize("view", ["head", "model", "neuron"])
def test_only_the_scripts_named_may_run_and_nothing_be_fetched(view: str) -> None:
    page = Reader(page_of(view, names(3)))
    policy = next(kept["content"] for tag, kept in page.elements if kept.get("http-equiv"))
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    scripts = [text for kept, text in page.scripts if not kept]
    digests = {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts}
    assert len(scripts) == 4
    assert set(rules["script-src"].split()) == {f"'sha256-{digest}'" for digest in digests}


def test_a_page_has_a_language_a_title_and_a_text_alternative() -> None:
    page = Reader(head_view(attentions(), ["[CLS]", "a", "bank", ".", "[SEP]"], blocks=[1]))
    assert ("html", {"lang": "en"}) in page.elements
    assert page.texts["title"] == "Attention, head view: 1 block, 3 heads each"
    assert "5 tokens: [CLS] a bank . [SEP]" in page.texts["about"]


@pytest.mark.parametrize("view", ["head", "model", "neuron"])
def test_dark_changes_colours_only(view: str) -> None:
    light, dark = Reader(page_of(view, names(3))), Reader(page_of(view, names(3), dark=True))
    assert light.facts() | {"dark": True} == dark.facts()
    classes = [next(kept["class"] for tag, kept in page.elements if tag == "body") for page in (light, dark)]
    assert classes == [view, f"{view} dark"]
    assert "#12161c" in dark.texts["style"]


def test_blocks_and_heads_restrict_what_is_sent_and_keep_their_numbers() -> None:
    weights = attentions(4, 5, 6)
    page = Reader(model_view(weights, names(6), blocks=[3, 1], heads=np.array([4, 0, 4])))
    facts = page.facts()
    assert (facts["blocks"], facts["heads"], facts["total_heads"]) == ([1, 3], [0, 4], 5)
    read = page.array("weights", np.uint8).reshape(2, 2, 6, 6)
    np.testing.assert_array_equal(read, np.rint(weights[[1, 3]][:, [0, 4]] * 255))


def test_the_first_thing_shown_is_chosen_among_what_is_sent() -> None:
    weights = attentions(4, 5, 6)
    assert Reader(head_view(weights, names(6), blocks=[2, 3])).facts()["block"] == 2
    facts = Reader(head_view(weights, names(6), blocks=[2, 3], block=3, head=4)).facts()
    assert (facts["block"], facts["head"]) == (3, 4)
    with pytest.raises(ValueError, match=r"block 0 .* \[2, 3\]"):
        head_view(weights, names(6), blocks=[2, 3], block=0)
    with pytest.raises(ValueError, match=r"head 4 .* \[0\]"):
        neuron_view(weights, vectors(4, 5, 6), vectors(4, 5, 6), names(6), heads=[0], head=4)


def test_a_filter_is_for_a_pair_only() -> None:
    pair = Reader(page_of("head", names(5), second_start=2, filter="ba"))
    assert (pair.facts()["second_start"], pair.facts()["filter"]) == (2, "ba")
    assert [tag for tag, _ in pair.elements if tag in {"select", "option", "label"}] == []  # the dashboard has these
    with pytest.raises(ValueError, match="no sentence B"):
        page_of("head", names(5), filter="ab")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": names(4)}, "for 4 tokens"),
        ({"attentions": attentions()[0]}, r"got \(3, 5, 5\)"),
        ({"second_start": 0}, "within 1..4"),
        ({"second_start": 5}, "within 1..4"),
        ({"blocks": [2]}, "0..1"),
        ({"heads": []}, "0..2"),
        ({"heads": [-1]}, "0..2"),
        ({"filter": "<b>", "second_start": 2}, "none of"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(change: dict[str, object], message: str) -> None:
    arguments = {"attentions": attentions(), "tokens": names(5), **change}
    with pytest.raises(ValueError, match=message):
        head_view(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(("queries", "keys"), [(vectors(tokens=4), vectors()), (vectors(dim=3), vectors())])
def test_queries_and_keys_that_do_not_fit_are_refused(queries: np.ndarray, keys: np.ndarray) -> None:
    with pytest.raises(ValueError, match="queries and keys"):
        neuron_view(attentions(), queries, keys, names(5))


SIZES = [(1, 1, 3), (6, 12, 14), (6, 12, 128), (12, 12, 64), (1, 12, 512)]


@pytest.mark.parametrize(("blocks", "heads", "tokens"), SIZES)
@pytest.mark.parametrize("view", ["head", "model", "neuron"])
def test_the_size_is_known_before(view: str, blocks: int, heads: int, tokens: int) -> None:
    weights, pieces = np.zeros((blocks, heads, tokens, tokens), np.float32), ["##ation"] * tokens
    if view == "neuron":
        flat = np.zeros((blocks, heads, tokens, 32), np.float32)
        made = neuron_view(weights, flat, flat, pieces, second_start=1)
    else:
        made = {"head": head_view, "model": model_view}[view](weights, pieces, second_start=1)
    size = len(made.encode())
    assert estimate_bytes(blocks, heads, tokens, view, 32) == pytest.approx(size, rel=0.2)  # type: ignore[arg-type]


def test_all_heads_of_bert_base_at_128_tokens_go() -> None:
    weights = np.full((12, 12, 128, 128), 1 / 128, np.float32)
    for view in (head_view, model_view):
        assert len(view(weights, names(128)).encode()) < 4 * 2**20
    flat = np.ones((12, 12, 128, 64), np.float32)
    assert len(neuron_view(weights, flat, flat, names(128)).encode()) < MAX_BYTES


def test_a_page_too_large_says_what_to_leave_out() -> None:
    weights = np.zeros((12, 12, 256, 256), np.float32)
    with pytest.raises(InputError) as caught:
        model_view(weights, names(256))
    problem = caught.value
    assert problem.problem.startswith("12 blocks of 12 heads at 256 tokens make a page of 12.")
    blocks, heads = map(int, re.findall(r"at most (\d+) of the", problem.fix))
    for most, key in ((blocks, "blocks"), (heads, "heads")):
        assert len(model_view(weights, names(256), **{key: range(most)}).encode()) <= MAX_BYTES
        with pytest.raises(InputError):
            model_view(weights, names(256), **{key: range(most + 1)})


def test_tokens_too_long_for_a_page_are_refused_too() -> None:
    with pytest.raises(InputError, match="2 blocks of 3 heads at 1 tokens make a page of 12"):
        head_view(attentions(tokens=1), ["<" * 2 * 2**20])


def test_nothing_is_shared_between_pages() -> None:
    """The parts that are kept are the same for everybody; the same arguments give the same page."""
    first = page_of("head", ["first", "a"])
    assert '"second"' not in first
    assert "first" not in Reader(page_of("head", ["second", "b"])).texts["about"]
    assert page_of("head", ["first", "a"]) == first


def test_heights_grow_with_what_is_drawn() -> None:
    assert frame_height("head", 20) - frame_height("head", 10) == 225
    assert frame_height("neuron", 20) - frame_height("neuron", 10) == 260
    assert frame_height("model", 14, 12, 12) - frame_height("model", 14, 6, 12) == 6 * (14 * 7 + 10)


def test_neither_torch_nor_bertviz_is_imported() -> None:
    """bertviz' own import brings in torch, transformers and IPython: seconds and hundreds of megabytes."""
    code = """
import sys
import numpy as np
from components.charts.bertviz.views import attention_page
attention_page("head", np.zeros((1, 1, 2, 2), np.float32), ["a", "b"])
print(sorted({"torch", "transformers", "bertviz", "mpld3", "matplotlib", "IPython", "streamlit"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bertviz_page.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"package mpld3.*requirements\.txt"):
        bertviz_page._installed("mpld3", "js/d3.v5.min.js")


def test_bertvizs_scripts_are_those_that_were_looked_at() -> None:
    """Another version may draw text in another way: read its scripts before changing these numbers."""
    read = {view: bertviz_page._installed("bertviz", f"{view}_view.js") for view in ("head", "model", "neuron")}
    digests = {view: hashlib.sha256(text.encode()).hexdigest()[:16] for view, text in read.items()}
    assert digests == {"head": "32885444af280c17", "model": "a22b6b559eebfb38", "neuron": "87a134cd9eaa05a2"}
    assert all(".html(" not in text and "innerHTML" not in text for text in read.values())
    assert '.text("Blocks")' in bertviz_page._scripts("model")[3]
    assert "v5.7.0" in bertviz_page._installed("mpld3", "js/d3.v5.min.js")[:40]  # with 7, hover and toggle die
