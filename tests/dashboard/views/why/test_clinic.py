"""Why, "Known failures": the figures are those of plain transformers and scikit-learn, and the address restores the view."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from components.analysis.why import probes
from components.analysis.why.contrasts import Separation
from components.model.catalog import EMBEDDED_KEY, parse_model
from components.retrieval.corpora.minimal_pairs import PARAPHRASE, MinimalPairs, read_minimal_pairs
from components.retrieval.evaluation import metrics
from dashboard import caching
from dashboard.jobs.requests import NotReady
from dashboard.views.why import clinic, clinic_probe
from tests.support.pages import Open, at_rest, figures, setting, texts
from tests.support.plain_vectors import plain_vectors

PAIRS = clinic.demo_pairs()


@pytest.fixture(scope="module")
def cosines(embedded_folder: Path) -> np.ndarray:
    """The cosine of each pair at the last layer with mean pooling, by plain transformers, [pair]."""
    vectors = plain_vectors(embedded_folder, [*PAIRS.first, *PAIRS.second], 256)[6, 0].astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors[: len(PAIRS)] * vectors[len(PAIRS) :]).sum(axis=-1)


def share_of(cosines: np.ndarray, kind: str) -> float:
    """The share of draws, by scikit-learn."""
    positive, negative = cosines[PAIRS.rows_of("paraphrase")], cosines[PAIRS.rows_of(kind)]
    return float(roc_auc_score([1] * len(positive) + [0] * len(negative), [*positive, *negative]))


def test_the_strips_and_the_answer_are_the_models_cosines(open_page: Open, cosines: np.ndarray) -> None:
    app = at_rest(open_page("why", v="known-failures"))
    assert not app.exception
    assert not app.error
    (drawn,) = figures(app)
    strips = [trace for trace in drawn["data"] if not trace["name"].startswith("median")]
    medians = {kind: float(np.median(cosines[PAIRS.rows_of(kind)])) for kind in PAIRS.changed_kinds}
    order = sorted(medians, key=lambda kind: -medians[kind])
    assert [trace["name"] for trace in strips][:-1] == [
        "Same meaning (44)",
        *(f"{kind.capitalize()} (42)" for kind in order),
    ]
    own = next(trace for trace in strips if trace["name"] == "Negation (42)")
    np.testing.assert_allclose(own["x"], cosines[PAIRS.rows_of("negation")], atol=1e-4)
    notes = [item["text"] for item in drawn["layout"]["annotations"]]
    typical = np.median(cosines[PAIRS.rows_of("negation")])
    assert f"<b>{typical:.2f}</b> {100 * (1 - share_of(cosines, 'negation')):.0f} %" in notes
    assert strips[-1]["name"] == "Unrelated"
    assert np.median(strips[-1]["x"]) < 0.15
    median = np.median(cosines[PAIRS.rows_of("paraphrase")])
    above = int((cosines[PAIRS.rows_of("negation")] > median).sum())
    said = texts(app)
    ends = [f"{medians[kind]:.2f}" for kind in (order[-1], order[0])]
    nearer = 100 * (1 - share_of(cosines, "negation"))
    assert (
        f"A negated sentence is nearer than a paraphrase in **{nearer:.0f} %** of comparisons. "
        f"In **all 7 kinds** the typical changed pair ({ends[0]} to {ends[1]}) is nearer than two sentences that mean the same "
        "(0.68)." in said
    )
    beside = next(item.proto.body for item in app.get("html") if "bi-pairs" in item.proto.body)
    nearest = PAIRS.rows_of("negation")[np.argmax(cosines[PAIRS.rows_of("negation")])]
    assert f"<b>{cosines[nearest]:.2f}</b>" in beside
    assert "<u>not</u>" in beside
    assert f"<b>{cosines[PAIRS.rows_of('paraphrase')].min():.2f}</b>" in beside
    assert f"{above} of 42 pairs have a higher cosine than the typical pair that means the same ({median:.2f})" in said
    assert f"the changed pair is nearer in {100 * (1 - share_of(cosines, 'negation')):.0f} % of all cases" in said


@pytest.mark.parametrize(
    ("medians", "said"),
    [
        (
            {"a": 0.9, "b": 0.8},
            "In **all 2 kinds** the typical changed pair (0.80 to 0.90) is nearer than two sentences that mean the same",
        ),
        (
            {"a": 0.6, "b": 0.5},
            "In **none of 2 kinds** is the typical changed pair (0.50 to 0.60) nearer than two sentences that mean the same",
        ),
        ({"a": 0.9, "b": 0.5}, "In **1 of 2 kinds** the typical changed pair (0.90) is nearer"),
        ({"a": 0.9, "b": 0.5, "c": 0.8}, "In **2 of 3 kinds** the typical changed pair (0.80 to 0.90) is nearer"),
        ({"a": 0.7014, "b": 0.9}, "In **all 2 kinds** the typical changed pair (0.701 to 0.900) is nearer"),
        ({"a": 0.9}, "The typical pair of “a” (0.90) is nearer than two sentences that mean the same (0.70)."),
        ({"a": 0.7}, "is no nearer than two sentences that mean the same"),
        ({"a": 0.9961, "b": 0.8}, "(0.800 to 0.996)"),
    ],
)
def test_the_finding_counts_the_kinds_and_does_not_assume_that_all_are_unseen(
    medians: dict[str, float], said: str
) -> None:
    assert said in clinic.finding(medians, 0.7)


def test_a_pair_is_counted_among_the_paraphrases() -> None:
    assert [clinic.of_paraphrases(below, 44) for below in (44, 40, 0)] == [
        "all 44 paraphrases", "40 of the 44 paraphrases", "none of the 44 paraphrases",
    ]  # fmt: skip
    assert clinic.kind_finding("odd", "8 %").startswith(
        "A sentence changed in “odd” is nearer than a paraphrase in **8 %**"
    )
    assert set(clinic.CHANGED) == set(PAIRS.changed_kinds)


def test_a_link_opens_a_pair_and_a_button_takes_it_to_the_other_views(open_page: Open) -> None:
    app = at_rest(open_page("why", v="known-failures", ck="time", cp="5"))
    row = PAIRS.rows_of("time")[5]
    assert app.selectbox(key="w_clinic_kind").value == "time"
    assert app.selectbox(key="w_clinic_pair").value == 5
    assert "dentist **today**" in texts(app)
    app.button(key="pair_in_score-split_clinic").click().run()
    assert setting(app, "meaning_view") == "score-split"
    chosen = setting(app, "sentences")
    assert (chosen[setting(app, "sentence_a")], chosen[setting(app, "sentence_b") - 1]) == (
        PAIRS.first[row],
        PAIRS.second[row],
    )


def test_the_layers_share_is_the_area_under_the_curve(open_page: Open, cosines: np.ndarray) -> None:
    app = at_rest(open_page("why", v="known-failures", cf="layers", ck="names"))
    curves = {trace["name"]: trace["y"] for trace in figures(app)[0]["data"]}
    for kind in PAIRS.changed_kinds:
        assert curves[kind.capitalize()][6] == pytest.approx(100 * share_of(cosines, kind), abs=0.2)
    right = 100 * share_of(cosines, "names")
    low, high = (clinic._percent(value / 100) for value in (min(curves["Names"]), max(curves["Names"])))
    assert f"Over all layers that is between {low} and {high}." in texts(app)
    assert f"Beside another name, layer 6 ranks the paraphrase first in **{right:.0f} %** of cases" in texts(app)


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (Separation(0.08, 0.03, 0.15), "in **8 %** of cases (guessing: 50 %)."),
        (Separation(0.9, 0.8, 0.95), "in **90 %** of cases: better than guessing (50 %)."),
        (Separation(0.55, 0.45, 0.65), "in **55 %** of cases: no better and no worse than guessing (50 %)."),
    ],
)
def test_the_finding_by_layer_does_not_assume_that_the_difference_is_unseen(share: Separation, said: str) -> None:
    found = clinic.by_layer_finding(share, "negation", 3)
    assert found == f"Beside a negation, layer 3 ranks the paraphrase first {said}"


def test_the_probe_and_its_control_task(open_page: Open) -> None:
    app = at_rest(open_page("why", v="known-failures", cf="probe"))
    assert not app.error
    curves = {trace["name"]: np.array(trace["y"]) for trace in figures(app)[0]["data"]}
    assert curves["probe"].min() > 90
    assert curves["control task"].max() < 65
    by_heart = f"by heart {curves['control task'][6]:.0f} %"
    assert (
        f"tells whether a sentence is negated: **{curves['probe'][6]:.0f} %** right (guessing 50 %, {by_heart})"
        in texts(app)
    )
    for term in ("probe", "control task", "selectivity"):
        assert caching.glossary()[term] in texts(app)
    # What is read well is not called something that the model cannot see, and kinds that cannot be read come last.
    assert app.title[0].value == "What is in the vector, though the cosine does not show it?"
    options = app.selectbox(key="w_clinic_kind").options
    assert ["not readable" in name for name in options] == [False] * 4 + [True] * 3
    app.selectbox(key="w_clinic_kind").set_value("swapped roles").run()
    assert not figures(app)
    assert "there is nothing to read from one sentence alone" in texts(app)


def test_moving_the_layer_costs_no_pass(open_page: Open) -> None:
    app = at_rest(open_page("why", v="known-failures"))
    backend = caching.models().request(parse_model(EMBEDDED_KEY)).result
    passes = backend.forward_passes
    app.number_input(key="w_layer").set_value(2).run()
    assert "Cosines at layer 2" in figures(app)[0]["layout"]["title"]["text"]
    assert app.query_params["l"] == "2"
    assert backend.forward_passes == passes


def test_ones_own_pairs_are_measured_beside_the_ready_made_paraphrases(open_page: Open) -> None:
    rows = [
        {"first": f"The {word} is big.", "second": f"The {word} is small."} for word in ("cat", "<b>dog</b>", "hat")
    ]
    content = "\n".join(json.dumps(row) for row in rows).encode()
    caching.minimal_pairs().put("mine", read_minimal_pairs(content, "mine.jsonl"))
    app = open_page("why", v="known-failures", cs="file")
    assert "Each row is a pair of sentences whose meanings differ." in texts(app)
    app.session_state["_minimal_pairs"] = "mine"
    app = at_rest(app.run())
    assert not app.error
    strips = [trace["name"] for trace in figures(app)[0]["data"] if not trace["name"].startswith("median")]
    assert strips == ["Same meaning (44)", "Your pairs (3)", "Unrelated"]
    assert "fewer than 10" in texts(app)
    app.segmented_control(key="w_clinic_figure").set_value("probe").run()
    assert "3 pairs of this kind are too few to learn from" in texts(app)


def test_an_unknown_kind_of_a_link_is_replaced(open_page: Open) -> None:
    app = at_rest(open_page("why", v="known-failures", ck="irony"))
    assert app.selectbox(key="w_clinic_kind").value == "negation"
    assert any("no kind “irony”" in item.value for item in app.warning)


def test_intervals_are_computed_once_and_not_in_the_script(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Moving the layer draws no pairs again, and kinds that are not chosen have no interval."""
    app = at_rest(open_page("why", v="known-failures", cf="layers", ck="names"))
    monkeypatch.setattr(clinic, "separations", lambda *arguments, **options: pytest.fail("drawn again"))
    app.number_input(key="w_layer").set_value(2).run()
    app = at_rest(app)
    assert not app.exception
    assert "layer 2 ranks the paraphrase first" in texts(app)
    kinds = {job.key[-2] for job in caching.explanations().finished() if job.key[0] == "separations"}
    assert "names" in kinds
    assert "quantity" not in kinds  # drawn as a curve, never chosen


@pytest.mark.parametrize(
    ("right", "control", "said"),
    [
        ([1.0] * 40, [0.5] * 40, "The vector of layer 0 tells whether it is: **100 %** right"),
        ([1.0, 0.0] * 20, [0.5] * 40, "The vector of layer 0 does not clearly tell whether it is: **50 %** right"),
        ([1.0] * 35 + [0.0] * 5, [0.9] * 40, "The vector of layer 0 may tell whether it is: **88 %** right"),
    ],
)
def test_the_finding_of_a_probe_says_when_learning_by_heart_does_as_well(
    right: list[float], control: list[float], said: str
) -> None:
    result = probes.ProbeResult(np.array([right]), np.array([control]), 0)
    found = clinic_probe._answer(result, metrics.interval(result.right[0]), "whether it is", 0)
    assert found.startswith(said)


def test_a_probe_of_many_pairs_learns_from_a_sample_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first pairs of a file can be of one kind only: a sample of all is drawn, which the page says."""
    count, learnt, said = 1_000, [], []
    first, second = (tuple(f"{side} {row}" for row in range(count)) for side in ("first", "second"))

    def probed(backend: object, first: list[str], *others: object) -> None:
        learnt.extend(first)
        raise NotReady

    monkeypatch.setattr(clinic_probe, "_probed", probed)
    monkeypatch.setattr(clinic_probe, "st", SimpleNamespace(caption=said.append))
    monkeypatch.setattr(clinic_probe, "controls", SimpleNamespace(length_for=lambda backend: None))
    monkeypatch.setattr(clinic_probe.stored, "probe", lambda *arguments: None)
    pairs = MinimalPairs(("mine",) * count, first, second)
    backend = SimpleNamespace(facts=SimpleNamespace(layers=6), embed_options=lambda *arguments, **options: None)
    with pytest.raises(NotReady):
        clinic_probe.draw(backend, pairs, "mine", 6, "mean", False)  # type: ignore[arg-type]
    assert len(set(learnt)) == probes.MOST_PAIRS
    assert sum(int(text.split()[1]) >= count // 2 for text in learnt) > probes.MOST_PAIRS // 4
    assert said == ["The probe learns from a random sample of 200 of the 1,000 pairs."]


def test_how_hard_the_test_is_follows_from_the_shared_words() -> None:
    """The usual story, that pairs share nearly all words and paraphrases few, is false for the second set."""
    kinds = ("negation", PARAPHRASE)
    usual = MinimalPairs(kinds, ("the cat sat", "a dog ran"), ("the cat never sat", "one hound raced"))
    said = clinic.words_in_words(usual, "negation")
    assert "a pair shares 75 % on average and a paraphrase 0 %, which makes the test hard." in said
    reverse = MinimalPairs(kinds, ("the cat sat", "a dog ran"), ("no animal moved", "a dog ran"))
    said = clinic.words_in_words(reverse, "negation")
    assert said.endswith(
        "a pair shares 0 % on average and a paraphrase 100 %: shared words do not make this test hard."
    )
