"""Why, "Experiments": what is shown is what the analysis gives, and an address restores it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.analysis.why import patching
from components.analysis.why.patch_codes import Patch
from components.analysis.why.patching import FromSentence, PairEffect
from components.arrays import cosine
from components.model.backend import Backend
from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY, parse_model
from components.retrieval.corpora.corpus import Corpus
from dashboard import caching, state
from dashboard.corpora import current
from dashboard.declared.table import SETTING
from dashboard.settings import MOST_PATCHES
from dashboard.views.why import experiment_texts, experiments
from dashboard.views.why.experiment_texts import MinimalPair, minimal_pairs
from tests.support.pages import Open, at_rest, figures, setting, texts, type_sentences

PARIS, PLANT = minimal_pairs()[0], minimal_pairs()[2]
BANK = state.default("sentences")


def loaded(key: str) -> Backend:
    """A model that the pages use."""
    job = caching.models().request(parse_model(key))
    assert job.finished.wait(120)
    result: Backend = job.result
    return result


def opened(open_page: Open, **address: Any) -> AppTest:
    app = at_rest(open_page("why", v="experiments", **address))
    assert not app.exception
    assert not app.error
    return app


def expected(codes: list[list[str]], pair: MinimalPair = PARIS) -> patching.Outcomes:
    """The outcomes of lists of patches on a ready-made pair, without the page."""
    backend = loaded("embedded")
    a, b, c = backend.tokenize([pair.a, pair.b, pair.c])
    places = {second: first for first, second in patching.align_tokens(a, b).pairs}
    source = FromSentence(backend.activations(a), places)
    vectors = [backend.patched_vectors(item, [[]], "mean")[0] for item in (a, b, c)]
    patches = [[Patch.parse(code) for code in together] for together in codes]
    return patching.cosine_outcomes(
        vectors[0], vectors[1], patching.measured(backend, b, source, patches, "mean"), vectors[2]
    )


def cells(app: AppTest) -> np.ndarray:
    """The values of the map."""
    (figure,) = figures(app)
    return np.asarray(figure["data"][0]["z"], float)


def frames(app: AppTest) -> int:
    """How many cells are framed, each by two lines."""
    (figure,) = figures(app)
    return len(figure["layout"].get("shapes", ())) // 2


def test_it_opens_with_the_pair_in_which_an_equal_token_carries_most_its_map_and_its_third_text(
    open_page: Open,
) -> None:
    app = opened(open_page)
    assert app.selectbox(key="w_minimal_pair").value == PLANT.title
    codes = [[f"t{layer}.{token}"] for layer in range(7) for token in range(8)]
    found = expected(codes, PLANT)
    np.testing.assert_allclose(cells(app).ravel(), found.shares, atol=1e-4)
    assert found.shares is not None
    at_one = found.shares[codes.index(["t1.2"])]  # “plant”, the second token, after the first block
    at_zero = found.shares[codes.index(["t0.5"])]  # “workers” in the place of “water”: all that differs
    assert at_zero == pytest.approx(1, abs=1e-5)
    assert (
        f"A's “workers” for “water” takes B **{100 * at_zero:.0f} % of the way** to A (layer 0); "
        f"“plant”, in both, **{100 * at_one:.0f} %** (layer 1)." in texts(app)
    )
    assert "attention has mixed “workers” into it" in texts(app)
    assert frames(app) == 1  # the cell of “plant”
    assert figures(app)[0]["layout"]["xaxis"]["ticktext"][5] == "<b>water<br>→ workers</b>"
    offered = app.button_group(key="w_add_patch").options
    assert len({name.split("”")[0] for name in offered}) == len(offered) == 5  # of each token its strongest cell
    assert PLANT.look_for.split(".")[0] in texts(app)
    assert f"**C** {PLANT.c}" in texts(app)
    captions = "\n".join(element.value for element in app.caption)
    above, below = (captions.index(said) for said in ("Compared with C.", "Click cells"))
    assert above < below
    way = next(item.proto.body for item in app.get("html") if "bi-way" in item.proto.body)
    assert f"B: cosine {found.of_b:.3f}<br>{PLANT.b}" in way
    assert f"A: cosine {found.of_a:.3f}<br>{PLANT.a}" in way


def test_pairs_in_which_nothing_can_move_come_last_and_say_why(open_page: Open) -> None:
    app = opened(open_page)
    shown = app.selectbox(key="w_minimal_pair").options
    assert "A word that B lacks (not the same number of tokens)" in shown[-2:]
    assert "Who bites whom? (hardly any difference)" in shown[-2:]
    backend = loaded("embedded")
    for pair in minimal_pairs():
        a, b, c = (
            backend.patched_vectors(item, [[]], "mean")[0] for item in backend.tokenize([pair.a, pair.b, pair.c])
        )
        same = len({len(item) for item in backend.tokenize([pair.a, pair.b])}) == 1
        can_move = same and abs(float(cosine(a, c)) - float(cosine(b, c))) >= 0.05
        assert (pair.title in shown) == can_move


def test_the_pair_to_begin_with_is_the_suitable_one_with_the_largest_share() -> None:
    effects = [
        PairEffect(False, 0.9, 0.1, float("nan")),
        PairEffect(True, 0.5, 0.48, 0.9),  # hardly any difference
        PairEffect(True, 0.2, 0.6, 0.5),  # A is farther away
        PairEffect(True, 0.6, 0.2, 0.2),
        PairEffect(True, 0.6, 0.2, 0.3),
    ]
    assert patching.best_of(effects) == 4
    assert patching.best_of(effects[:3]) == 2
    assert patching.best_of(effects[:2]) == 0  # nothing suitable: the first of all
    assert patching.best_of([PairEffect(True, 0.6, 0.2, float("nan"))]) == 0


def test_patches_of_an_address_without_sentences_are_made_in_the_first_pair_as_before(open_page: Open) -> None:
    app = opened(open_page, xp=["t3.5"])
    found = expected([["t3.5"]])
    assert found.shares is not None
    assert f"**{100 * found.shares[0]:.0f} % of the way" in texts(app)
    assert app.selectbox(key="w_minimal_pair").value == PARIS.title


def test_what_is_chosen_in_the_pair_shown_stays_with_it(open_page: Open) -> None:
    app = opened(open_page)
    app.button_group(key="w_add_patch").set_value("t1.2")
    app = at_rest(app.run())
    assert setting(app, "experiment_texts") == "3"
    assert app.selectbox(key="w_minimal_pair").value == PLANT.title
    assert setting(app, "sentences") in (None, BANK)


def test_where_no_equal_token_carries_anything_the_changed_word_is_named(open_page: Open) -> None:
    """The usual story, that the other tokens have read the changed word, is told only where one of them has."""
    app = opened(open_page, s=[PARIS.a, PARIS.b])
    assert "Putting A's “paris” in the place of “rome” at layer 5 into B moves the cosine **109 % of the way" in texts(
        app
    )
    assert "No token that is the same in both brings back 10 % of it." in texts(app)


def test_opening_the_view_leaves_the_sentences_as_they_are(open_page: Open) -> None:
    app = opened(open_page)
    assert setting(app, "sentences") in (None, BANK)
    assert "s" not in app.query_params
    app.button(key="experiment_own").click()
    app = at_rest(app.run())
    assert setting(app, "sentences") in (None, BANK)
    assert app.query_params["xt"] in ("own", ["own"])
    assert app.selectbox(key="w_minimal_pair_1").value is None
    assert BANK[1] in texts(app)  # as B


def test_the_ready_made_pair_is_kept_on_request(open_page: Open) -> None:
    app = opened(open_page)
    app.button(key="experiment_keep").click()
    app = at_rest(app.run())
    assert setting(app, "sentences") == (PLANT.a, PLANT.b)
    assert not [button for button in app.button if button.key == "experiment_keep"]


def test_a_title_that_is_no_longer_displayed_is_no_choice(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who types sees the ready-made pair until the answer arrives, and the browser sends its title with the next letter."""
    app = opened(open_page)
    app = at_rest(type_sentences(app, "A red hat.\nA blue hat."))
    assert setting(app, "sentences") == ("A red hat.", "A blue hat.")
    assert [box.value for box in app.selectbox if box.key == "w_minimal_pair_1"] == [None]  # a widget of its own
    session: dict[str, Any] = {"sentences": ("A red hat.",), "_list_version": 1}
    monkeypatch.setattr(experiment_texts.st, "session_state", session)
    experiment_texts._choose_listed(0, PARIS.title)
    assert session["sentences"] == ("A red hat.",)
    experiment_texts._choose_listed(1, PARIS.title)
    assert session["sentences"] == (PARIS.a, PARIS.b)


def test_it_says_which_text_c_is(open_page: Open) -> None:
    app = opened(open_page, s=["A red hat.", "A blue hat.", "A coat."])
    assert "**C** A red hat." in texts(app)
    assert "C, with which both are compared, is A until you choose another text." in texts(app)
    app.selectbox(key="w_third_sentence").set_value("A coat.")
    app = at_rest(app.run())
    assert setting(app, "third_text") == "A coat."
    assert "**C** A coat." in texts(app)
    assert "C is your choice." in texts(app)
    app.text_input(key="w_third_text").set_value("")
    app = at_rest(app.run())
    assert "**C** A red hat." in texts(app)


def test_an_address_restores_an_experiment(open_page: Open) -> None:
    app = opened(open_page, s=[PARIS.a, PARIS.b], sa="0", sb="2", xm="heads", xp=["h5.3", "h5.5", "t3.6"])
    assert cells(app).shape == (6, 12)
    assert frames(app) == 2  # the token is on the other map
    found = expected([["h5.3", "h5.5", "t3.6"], ["h5.3"]])
    assert found.shares is not None
    shown = texts(app)
    assert f"**{100 * found.shares[0]:.0f} % of the way from 0.239 to 0.459**" in shown
    assert f"head 3 of block 5: **{100 * found.shares[1]:.0f} %" in shown
    app.button(key="remove_h5.5").click()
    app = at_rest(app.run())
    assert setting(app, "patches") == ("h5.3", "t3.6")
    assert frames(app) == 1
    app.button(key="remove_all_patches").click()
    app = at_rest(app.run())
    assert setting(app, "patches") == ()
    assert app.query_params.get("xp") is None


def test_the_strongest_cells_can_be_added(open_page: Open) -> None:
    app = opened(open_page, s=[PARIS.a, PARIS.b], xm="heads")
    app.button_group(key="w_add_patch").set_value("h5.3")
    app = at_rest(app.run())
    assert setting(app, "patches") == ("h5.3",)
    assert frames(app) == 1
    assert app.query_params["xp"] in ("h5.3", ["h5.3"])


def test_a_ready_made_pair_replaces_sentences_text_and_patches(open_page: Open) -> None:
    app = opened(open_page, s=["one", "two"], xc="three", xp="h0.0")
    pair = minimal_pairs()[5]  # of different lengths
    app.selectbox(key="w_minimal_pair").set_value(pair.title)
    app = at_rest(app.run())
    assert setting(app, "sentences") == (pair.a, pair.b)
    assert setting(app, "patches") == ()
    found = expected([["t2.3"]], pair)
    assert found.shares is not None
    assert cells(app)[2, 3] == pytest.approx(found.shares[0], abs=1e-4)
    assert "A has 9 tokens and B 8" in texts(app)
    assert "“not” of A has no counterpart" in texts(app)


@pytest.mark.parametrize(
    ("kind", "cell", "patches"),
    [
        ("tokens", [4, 2], ("f0", "t4.2")),
        ("heads", [5, 11], ("f0", "h5.11")),
        ("parts", [2, 0], ("f0", "a2")),
        ("parts", [0, 1], ("f0",)),  # chosen already
        ("heads", [-1, 2], ("f0",)),  # what no browser of ours sends
        ("heads", ["1", 2], ("f0",)),
        ("heads", None, ("f0",)),
        ("heads", [float("nan"), 2], ("f0",)),
        ("heads", [2, float("inf")], ("f0",)),
    ],
)
def test_a_click_adds_the_patch_of_its_cell(
    monkeypatch: pytest.MonkeyPatch, kind: Any, cell: Any, patches: tuple[str, ...]
) -> None:
    event = {"selection": {"points": [{"customdata": cell}]}}
    session: dict[str, Any] = {experiments.FIGURE: event, "patches": ("f0",)}
    monkeypatch.setattr(experiments.st, "session_state", session)
    experiments._clicked(kind)
    assert session["patches"] == patches


def test_no_more_patches_than_an_address_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    full = tuple(f"h0.{head}" for head in range(MOST_PATCHES))
    session: dict[str, Any] = {"patches": full}
    monkeypatch.setattr(experiments.st, "session_state", session)
    experiments._add("a1")
    assert session["patches"] == full
    assert "remove one first" in session["_notices"][0].text


@pytest.mark.parametrize("values", ["zero", "mean", "resample"])
def test_ablations_show_how_far_the_cosine_changes(open_page: Open, values: str) -> None:
    if values == "mean":
        # The sample's means are kept for all sessions: they must not depend on the sentence that was first, an empty one.
        kept = caching.interventions()
        kept.drop([job for job in kept.finished() if job.key[0] == "mean activations"])
        opened(open_page, s=[PARIS.a, "\u200b"], xm="parts", xa="mean")
    app = opened(open_page, s=[PARIS.a, PARIS.b], xm="parts", xa=values, xs="3")
    shown = texts(app)
    assert "Change of the cosine with C" in figures(app)[0]["layout"]["title"]["text"]
    assert cells(app).shape == (6, 2)
    assert np.isfinite(cells(app)).all()
    assert np.abs(cells(app)).max() > 0.02
    by = {"zero": "zeros", "mean": "its mean over 50 sentences", "resample": "that of another sentence"}[values]
    assert f"by {by} " in shown
    assert ("The other sentence: " in shown) == (values == "resample")


@pytest.mark.parametrize("values", ["zero", "mean", "resample"])
def test_one_sentence_of_ones_own_is_enough_without_activations_of_a(open_page: Open, values: str) -> None:
    """Only patching, which needs a second sentence, has a ready-made pair in its place."""
    text = "The cat sat on the mat."
    app = opened(open_page, s=[text], xm="parts", xa=values)
    assert f"**A** {text}" in texts(app)
    assert f"**B** {text}" in texts(app)
    assert not [button for button in app.button if button.key == "experiment_keep"]
    assert np.abs(cells(app)).max() > 0.02
    patched = opened(open_page, s=[text])
    assert "Compared with C." in texts(patched)
    assert f"**A** {text}" not in texts(patched)


def test_one_activation_has_one_code(open_page: Open) -> None:
    """With “t04.2” for “t4.2” the list would have two rows with one key."""
    app = opened(open_page, s=[PARIS.a, PARIS.b], xm="heads", xp=["t4.2", "t04.2"])
    assert setting(app, "patches") in (None, ())
    assert "it names no activation" in texts(app)


def test_the_outcome_of_a_cross_encoder(open_page: Open) -> None:
    sentences, third = ["A red hat.", "A blue hat."], "Red."
    app = opened(open_page, s=sentences, xc=third, xo="score", xp="t6.0")
    scorer = loaded(EMBEDDED_CROSS_ENCODER_KEY)
    a, b = scorer.score_pairs(sentences, [third] * 2)
    shown = texts(app).replace("−", "-")
    way = next(item.proto.body for item in app.get("html") if "bi-way" in item.proto.body).replace("−", "-")
    assert f"B: score {b:.3f}<br>{sentences[1]}" in way
    assert f"A: score {a:.3f}<br>{sentences[0]}" in way
    assert "100 % of the way" in shown  # the score is read from [CLS] at the last layer
    assert cells(app).shape == (7, 9)  # the tokens of both texts together


def test_the_rank_in_the_corpus(open_page: Open) -> None:
    backend = loaded("embedded")
    corpus = Corpus("five texts", (PARIS.c, PARIS.a, "A sight of Rome.", "Famous sights of Italy.", "A red hat."))
    caching.corpora().put(current.key_of(corpus), corpus)
    app = opened(open_page, s=[PARIS.a, PARIS.b], xo="rank", xm="parts", corpus=current.key_of(corpus))
    vectors = backend.embed(
        [*corpus.texts, PARIS.a, PARIS.b, PARIS.c], options=backend.embed_options(precision="float32")
    )
    cosines = cosine(vectors[0, 0], vectors[0, 0, -1])
    a, b = (1 + int((cosines[:5] > cosines[row] + 1e-6).sum()) for row in (5, 6))
    assert b > a
    assert f"Rank with C: **{b}** for B, **{a}** for A." in texts(app)


def test_one_sentence_alone_opens_a_ready_made_pair(open_page: Open) -> None:
    app = opened(open_page, s=["one cat"])
    assert "Compared with C." in texts(app)
    assert figures(app)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ({"s": ["one cat", "one cat"]}, "A and B are the same sentence"),
        ({"s": ["One cat.", "one cat."]}, "have the same tokens"),
        ({"s": ["one cat", "cat " * 70]}, "A sentence has 72 tokens"),
        ({"s": ""}, "No sentence yet"),
    ],
)
def test_empty_cases_say_what_to_do(open_page: Open, address: dict[str, Any], message: str) -> None:
    app = opened(open_page, **address)
    assert message in texts(app)
    assert not figures(app)


def test_patches_that_do_not_exist_are_refused(open_page: Open) -> None:
    app = opened(open_page, s=[PARIS.a, PARIS.b], xm="heads", xp=["h5.3", "h99.0", "t3.70"])
    assert setting(app, "patches") == ("h5.3",)
    assert "The patches h99.0, t3.70 are not available" in texts(app).replace("\\", "")


def test_a_small_difference_shows_changes_only(open_page: Open) -> None:
    pair = minimal_pairs()[6]
    app = opened(open_page, s=[pair.a, pair.b])
    assert "A and B differ by less than 0.02" in texts(app)
    np.testing.assert_allclose(cells(app)[0, 2], expected([["t0.2"]], pair).changes[0], atol=1e-5)


def test_sentences_with_few_tokens_in_common_get_advice_and_the_ready_made_pairs(open_page: Open) -> None:
    app = opened(open_page, s=["A dog ran home.", "The quick fox was seen far away."])
    assert "A and B differ in most of their words: the map can be drawn, but it says little." in texts(app)
    assert figures(app)
    assert "Of B's 8 tokens, A has only 1 at the same place." in texts(app)
    app.button_group(key="w_advised_pair").set_value(PARIS.title)
    app = at_rest(app.run())
    assert setting(app, "sentences") == (PARIS.a, PARIS.b)
    assert "differ in most of their words" not in texts(app)
    app = opened(open_page, s=["cat", "dog"])  # one word in the place of another
    assert "differ in most of their words" not in texts(app)


def test_the_ready_made_pairs_need_no_advice() -> None:
    model = loaded("embedded")
    for pair in minimal_pairs():
        a, b = model.tokenize([pair.a, pair.b])
        assert 2 * len(patching.align_tokens(a, b).differing) < len(b) - 2


def test_what_to_look_for_is_said_of_the_included_model_only(
    open_page: Open, tiny_folder: Callable[[str], Path]
) -> None:
    app = opened(open_page, m=str(tiny_folder("bert").resolve()))
    assert not app.exception
    assert not any(pair.look_for.split(".")[0] in texts(app) for pair in minimal_pairs())


def test_each_ready_made_pair_has_a_code_for_addresses() -> None:
    """The codes are written out in page.py, so that declaring the pages reads no file."""
    for number in range(1, len(minimal_pairs()) + 1):
        assert SETTING["experiment_texts"].parse([str(number)]) == str(number)
