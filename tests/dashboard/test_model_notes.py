"""What pages say of a model: what of it is not applied, what a cross-encoder is for, and what its own vector is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.analysis.pooling import pool
from components.analysis.similarity.cosines import cosine
from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY, EMBEDDED_KEY, parse_model
from components.model.verification import comparison
from dashboard import caching, ready_made
from dashboard.jobs import verification
from tests.dashboard.page_states import small_corpus
from tests.support.pages import Open, at_rest, figures, read_texts, texts, traces
from tests.support.rare_cases import but_a_few
from tests.support.reference import compare_in_this_process
from tests.support.tiny import dense_module, pooling_module, publish, save_tiny
from tests.support.views import ONE_OF_EACH

BANK = ready_made.ready_made_sets()["bank"].sentences
SAID = "is not applied, because"
TRAINED = "trained to give scores"
OWN = "The model's own vector of"


@pytest.fixture(scope="module")
def last_token(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model whose pooling is not known."""
    folder = save_tiny(tmp_path_factory.mktemp("models") / "last-token", "bert")
    return str(publish(folder, ("Pooling", {"pooling_mode": "something new"})))


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = save_tiny(tmp_path_factory.mktemp("models") / "scorer", "bert", seed=1)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["BertForSequenceClassification"]}))
    return str(folder)


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model with a head that is larger than its hidden states."""
    folder = save_tiny(tmp_path_factory.mktemp("models") / "dense", "bert", seed=2)
    return str(publish(folder, pooling_module(), dense_module(32, 48)))


def on_few(page: str = "search") -> dict[str, str]:
    """The part of an address that lets a page which searches measure a few sentences only."""
    corpus = {"corpus": small_corpus()} if page in {"search", "evaluate", "hits", "layer-grid"} else {}
    return corpus | (
        {"q": "a storm"} if page in {"search", "hits"} else {}
    )  # an own corpus is asked no query of the demo's


def backend(folder: str) -> Any:
    job = caching.models().request(parse_model(folder))
    assert job.finished.wait(60)
    return job.result


def settled(app: AppTest) -> AppTest:
    """The page once nothing is being embedded or measured any more."""
    app = at_rest(app)
    assert not app.exception
    return app


@pytest.mark.parametrize("page", but_a_few(ONE_OF_EACH, 5))
def test_every_page_says_once_what_is_not_applied(open_page: Open, last_token: str, page: str) -> None:
    quick = {"by": "pca"} if page == "two-layers" else {}  # UMAP would be compiled first
    shown = {"look": "1"} if page == "home" else {}  # its stored pictures are of the included model
    app = open_page(page, m=last_token, **quick, **on_few(page), **shown)
    assert texts(app).count(SAID) == 1
    assert not app.exception


@pytest.mark.parametrize(("page", "view"), [("layers", "one-word"), ("heatmaps", "sentence-pairs")])
def test_the_second_model_is_said_too_by_name(open_page: Open, last_token: str, page: str, view: str) -> None:
    said = texts(open_page(page, v=view, m2=last_token))
    assert said.count(SAID) == 1
    assert "**last\\-token:**" in said or "**last-token:**" in said


@pytest.mark.parametrize(
    ("page", "view", "noted"),
    but_a_few(
        [
            ("layers", "sentences", True),
            ("heatmaps", "sentences", True),
            ("search", "results", True),
            ("search", "pairs", True),
            ("evaluate", "grid", True),
            ("evaluate", "similarity", True),
            ("layers", "tokens", False),
            ("heatmaps", "blocks", False),
            ("search", "corpus", False),
        ],
        3,
    ),
)
def test_a_cross_encoder_is_noted_once_where_vectors_are_compared(
    open_page: Open, cross_encoder: str, page: str, view: str, noted: bool
) -> None:
    app = open_page(page, m=cross_encoder, view=view, **on_few(page))
    assert texts(app).count(TRAINED) == int(noted)
    assert "too: the same" not in texts(app)  # there is no second one
    assert not app.exception


def test_the_included_cross_encoder_is_treated_like_others(open_page: Open) -> None:
    app = open_page("layers", m=EMBEDDED_CROSS_ENCODER_KEY, v="sentence-curves")
    assert "**MiniLM cross-encoder** was trained to give scores" in texts(app)
    assert "not applied" not in texts(app)
    page = open_page("model", m=EMBEDDED_CROSS_ENCODER_KEY)
    values = [table.value.astype(str).to_string() for table in page.dataframe] + [
        table.value.astype(str).to_string() for table in page.table
    ]
    assert any("the adapter in assets/cross" in value for value in values)
    assert any("CC BY-SA 4.0" in value for value in values)
    assert not page.exception


def test_two_cross_encoders_share_one_note(open_page: Open, cross_encoder: str, tmp_path: Path) -> None:
    other = save_tiny(tmp_path / "other", "bert", seed=3)
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {"architectures": ["BertForSequenceClassification"]}))
    said = texts(open_page("layers", m=cross_encoder, m2=str(other), v="sentence-curves"))
    assert "**scorer** and **other** were trained" in said
    said = texts(open_page("evaluate", m=cross_encoder, m2=str(other), v="compare-runs", **on_few()))
    assert said.count("and not to make vectors") == 1


def test_the_models_own_vector_over_the_layers(open_page: Open, dense: str) -> None:
    app = open_page("layers", m=dense, v="sentence-curves", pool="own", s=list(BANK[:2]))
    (caption,) = [item.value for item in app.caption if OWN in item.value]
    assert "48 numbers" in caption
    assert "trained on layer 3" in caption
    vectors = pool(backend(dense).trace(BANK[:2]), "own")
    (curve,) = (values for name, values in traces(app).items() if " – " in name)
    np.testing.assert_allclose(curve, cosine(vectors[:, 0], vectors[:, 1]), atol=1e-4)


def test_at_the_last_layer_there_is_nothing_to_warn_of(open_page: Open, dense: str) -> None:
    said = texts(open_page("heatmaps", m=dense, v="sentence-pairs", pool="own", l="3"))
    assert OWN in said
    assert "trained on layer" not in said
    assert "trained on layer 3" in texts(open_page("heatmaps", m=dense, v="sentence-pairs", pool="own", l="1"))


@pytest.mark.parametrize(("page", "view"), [("layers", "sentences"), ("heatmaps", "sentences"), ("search", "results")])
def test_a_link_to_an_own_vector_that_the_model_has_not(open_page: Open, page: str, view: str) -> None:
    app = settled(open_page(page, view=view, pool="own", **on_few(page)))
    assert "Model's own" in texts(app) or "model's own vector” is not available here" in texts(app)
    assert "is not available here" in texts(app)
    assert app.session_state["pooling"] is None  # the default: the model's own pooling, here the mean
    assert app.button_group(key="w_pooling").value == "mean"


@pytest.mark.parametrize(
    ("page", "view"),
    [("layers", "sentences"), ("heatmaps", "sentences"), ("search", "results"), ("evaluate", "grid")],
)
def test_the_default_is_the_models_own_pooling_which_the_address_omits(
    open_page: Open, read_page: Open, dense: str, page: str, view: str
) -> None:
    app = read_page(page, m=dense, view=view, **on_few(page))
    assert not app.exception
    assert app.button_group(key="w_pooling").value == "own"
    assert "pool" not in app.query_params
    app = settled(open_page(page, m=dense, view=view, pool="mean", **on_few(page)))
    assert app.button_group(key="w_pooling").value == "mean"
    assert app.query_params["pool"] == "mean"


def test_other_views_of_search_use_the_models_own_pooling_by_default(open_page: Open, dense: str) -> None:
    assert "pooling Model's own" in texts(
        settled(open_page("search", m=dense, v="many-queries", qs="a storm", **on_few()))
    )
    assert "(layer 3, Model's own)" in texts(settled(open_page("search", m=dense, v="similar-pairs", **on_few())))
    assert "(layer 3, Max)" in texts(settled(open_page("search", m=dense, v="similar-pairs", pool="max", **on_few())))


def test_the_second_setting_and_the_second_model_have_their_own_default(open_page: Open, dense: str) -> None:
    app = settled(open_page("search", m=dense, vs="setting", **on_few()))
    assert app.button_group(key="w_pooling2").value == "own"
    app = settled(open_page("search", m2=dense, vs="model", **on_few()))
    assert app.button_group(key="w_pooling").value == "mean"
    assert app.button_group(key="w_pooling2").value == "own"


def test_two_models_share_the_first_ones_own_pooling_only_if_both_have_it(
    open_page: Open, dense: str, tmp_path: Path
) -> None:
    assert (
        open_page("layers", m=dense, v="sentence-curves", m2=EMBEDDED_KEY).button_group(key="w_pooling").value == "mean"
    )
    first = str(publish(save_tiny(tmp_path / "cls", "bert"), pooling_module("cls_token")))
    assert open_page("layers", m=first, v="sentence-curves", m2=dense).button_group(key="w_pooling").value == "cls"


def test_search_by_the_models_own_vector(open_page: Open, dense: str) -> None:
    app = settled(open_page("search", m=dense, pool="own", l="2", **on_few()))
    assert "trained on layer 3" in texts(app)
    lists = [item for item in app.get("bidi_component") if item.proto.component_name == "bert_internals_hits"]
    assert lists
    assert "Layer 2, Model's own" in texts(app)


def test_evaluate_has_a_row_for_it(open_page: Open, read_page: Open, dense: str) -> None:
    app = read_page("evaluate", m=dense, v="layer-grid", **on_few())
    assert not app.exception
    assert "Model's own" in [trace["name"] for trace in json.loads(app.get("plotly_chart")[0].proto.spec)["data"]]
    assert "trained on layer 3" in texts(app)
    app = settled(open_page("evaluate", m=dense, v="sentence-similarity"))
    assert "Model's own" in [trace["name"] for trace in figures(app)[0]["data"]]
    app = open_page("evaluate", m=dense, v="compare-runs", r=["m.3.own"], **on_few())
    assert app.multiselect(key="w_runs").value == ["m.3.own"]


@pytest.fixture
def compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Loads a folder as a server does that compares models, and waits for what comes of it."""
    compare_in_this_process(monkeypatch)
    monkeypatch.setenv("BERT_INTERNALS_VERIFY", "1")

    def compare(folder: Path, change: Callable[[], object] = lambda: None) -> Any:
        loaded = backend(str(folder))
        change()
        verification.request(loaded)
        job = caching.verifications().find((str(folder), loaded.revision))
        assert job is not None
        assert job.finished.wait(120)
        return verification.find(loaded)

    return compare


@pytest.mark.parametrize(("page", "view"), [("model", "architecture"), ("layers", "tokens"), ("heatmaps", "blocks")])
def test_pages_say_that_a_model_equals_the_published_one(
    open_page: Open, compared: Any, tmp_path: Path, page: str, view: str
) -> None:
    folder = publish(save_tiny(tmp_path / "model", "bert", seed=5), pooling_module())
    found = compared(folder)
    app = open_page(page, m=str(folder), v=view)
    assert found.is_equal
    (line,) = [str(item.value) for item in app.caption if "sentence-transformers" in str(item.value)]
    assert "Equal to sentence" in line
    assert not [item for item in app.warning if "sentence-transformers" in str(item.value)]
    assert not app.exception


def test_a_model_that_differs_has_a_warning_above_everything(open_page: Open, compared: Any, tmp_path: Path) -> None:
    folder = publish(save_tiny(tmp_path / "model", "bert", seed=6), pooling_module())
    settings = folder / "config_sentence_transformers.json"
    said = json.dumps({"prompts": {"a": "the river "}, "default_prompt_name": "a"})
    found = compared(folder, lambda: settings.write_text(said))
    assert found.is_equal is False
    settings.unlink()
    app = open_page("model", m=str(folder))
    (first,) = [str(item.value) for item in app.warning][:1]
    assert f"cosine {found.lowest_cosine:.2f}" in read_texts(app)
    assert "Differs from" in first
    assert not app.exception


def test_a_model_that_gives_no_vectors_is_named_as_not_compared(
    open_page: Open, compared: Any, cross_encoder: str
) -> None:
    found = compared(Path(cross_encoder))
    assert found.is_equal is None
    app = open_page("model", m=cross_encoder)
    assert "is not compared with sentence" in texts(app)
    assert not app.exception


def test_nothing_is_compared_where_the_operator_wants_none_or_the_model_is_included(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = publish(save_tiny(tmp_path / "model", "bert", seed=7), pooling_module())
    loaded = backend(str(folder))
    monkeypatch.setattr(caching, "verifications", lambda: pytest.fail("a comparison began"))
    verification.request(loaded)
    monkeypatch.setenv("BERT_INTERNALS_VERIFY", "1")
    verification.request(backend(EMBEDDED_KEY))


def test_a_comparison_that_fails_fails_no_page(
    open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = publish(save_tiny(tmp_path / "model", "bert", seed=8), pooling_module())
    monkeypatch.setenv("BERT_INTERNALS_VERIFY", "1")
    monkeypatch.setattr(comparison, "verify", lambda *_, **__: 1 / 0)
    loaded = backend(str(folder))
    verification.request(loaded)
    for job in caching.verifications().under_way():
        assert job.finished.wait(60)
    assert verification.find(loaded) is None
    app = open_page("model", m=str(folder))
    assert not app.exception
    assert "sentence-transformers 6" not in texts(app)
