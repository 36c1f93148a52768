"""Training: what a run would be, how one goes, what it changed, and who may do it."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from components.charts.training import smoothed
from components.command_line.commands import train
from components.errors import InputError
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.evaluation import pair_runs
from components.shown_code.code import Command
from components.training import data as training_data
from components.training import model as training_model
from components.training import run_folder, runs
from components.training.objectives import OBJECTIVES, legend
from components.training.run_folder import RunFolder
from components.training.settings import PRESETS, steps
from dashboard import access, caching, settings
from dashboard.corpora import current
from dashboard.jobs import training
from dashboard.jobs.requests import NotReady
from dashboard.jobs.stored import second_looks
from dashboard.ready_made import ASSETS
from dashboard.sharing import report
from dashboard.views.training import choice, row_source
from dashboard.views.training import objective as training_objective
from dashboard.views.training import plan as training_plan
from dashboard.views.training import run as training_run
from dashboard.views.training.ranks import stored_ranks
from tests.components.command_line import in_process
from tests.dashboard.code.shown import codes
from tests.support.closeness import assert_close
from tests.support.pages import Open, at_rest, backend, figures, plain_table, setting, texts, traces
from tests.support.tiny import save_tiny
from tests.support.training_runs import EVALUATIONS, LOSSES, STEPS, WATCH_STEPS, watch_vectors, write_run
from tests.support.training_runs import rows as data_of_run

NAME = "mnrl-20261122-140233-ab12"


@pytest.fixture(autouse=True)
def _own_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERT_INTERNALS_CACHE", str(tmp_path))


# --- Data


def plan_of(app: AppTest) -> dict[str, str]:
    """The lines of the plan."""
    (drawn,) = [item.proto.body for item in app.get("html") if "bi-costs" in item.proto.body]
    return dict(re.findall(r"<p><span>(.*?)</span><b>(.*?)</b></p>", drawn))


def cards_of(app: AppTest) -> str:
    """What the cards of the first rows are drawn from."""
    (drawn,) = [item.proto.body for item in app.get("html") if "bi-rows" in item.proto.body]
    return unquote(drawn)


def examples_of(app: AppTest) -> pd.DataFrame:
    """The rows that the cards are drawn from, as their table has them."""
    app.session_state["data_training_cards"] = True
    (found,) = (item.value for item in at_rest(app.run()).dataframe)
    assert isinstance(found, pd.DataFrame)
    return found


def test_the_page_opens_with_a_story_and_older_addresses_with_the_damaged_model(open_page: Open) -> None:
    app = at_rest(open_page("train"))
    assert app.button_group(key="w_training_story").value == "not"
    assert app.query_params["preset"] == "not"
    assert (
        "**For each of 154 sentences the model learns to pick its paraphrase out of 32 texts (16 rows at a time).** "
        "38 rows are held out" in texts(app)
    )
    drawn = cards_of(app)
    assert drawn.count('stroke="#2B7BBA"') == 3  # the partner of each row
    assert drawn.count('stroke="#C97F00"') == 3 + 4  # its opposite, and of the first row the cards of both others
    for text in examples_of(app).head(3).to_numpy().ravel():
        assert html.escape(text) in drawn
    app = at_rest(open_page("training", ep="3"))
    assert app.selectbox(key="w_training_preset").value == "repair"
    assert plan_of(app)["Damaged first"] == "40 % noise"


def test_a_story_lets_its_preset_decide_and_the_last_one_asks_for_a_file(open_page: Open) -> None:
    app = at_rest(open_page("training", preset="repair", ep="9"))
    app.button_group(key="w_training_story").set_value("collapse")
    app = at_rest(app.run())
    assert setting(app, "training_preset") == "collapse"
    assert setting(app, "epochs") is None
    app.button_group(key="w_training_story").set_value("own")
    app.run()
    assert setting(app, "training_data") == "file"
    assert app.button_group(key="w_training_story").value == "own"
    assert app.file_uploader(key="training_file")
    app.button_group(key="w_training_story").set_value("repair")
    app = at_rest(app.run())
    assert setting(app, "training_data") is None
    assert app.selectbox(key="w_training_data").value == "demo:pairs"


def test_the_first_view_says_what_is_trained_on_and_has_one_primary_button(open_page: Open) -> None:
    app = at_rest(open_page("training", preset="repair"))
    assert not app.error
    said = texts(app)
    assert list(plan_of(app))[:3] == ["Rows to train on", "Held out", "Steps"]
    assert list(plan_of(app).values())[:3] == ["248", "62", "64"]
    assert (
        "**For each of 248 headlines the model learns to pick its sentence out of 16 texts.** 62 rows are held out; none of "
        in said
    )
    assert "Everybody on this server" not in said  # the rows are the dashboard's own
    assert "248 rows to train, 62 held out.** No text is in both parts." in said
    assert "query = column “headline”; correct answer = column “sentence”" in said
    assert [button.label for button in app.button if button.proto.type == "primary"] == ["Start training"]
    assert not app.button(key="start_training").disabled
    assert app.selectbox(key="w_objective").value == "mnrl"
    (histogram,) = figures(app)
    assert [np.sum(trace["y"]) for trace in histogram["data"]] == [310, 310]
    examples = examples_of(app)
    assert list(examples.columns) == ["query", "correct answer"]
    assert all(html.escape(text) in cards_of(app) for text in examples.head(5).to_numpy().ravel())
    table = plain_table(app, 0)
    assert list(table.columns) == ["query", "correct answer", "part"]
    assert set(table["part"]) == {"train", "held out"}


def test_wrong_answers_are_shown_before_training(open_page: Open) -> None:
    app = at_rest(open_page("training", obj="triplet", neg="bm25"))
    table = examples_of(app)
    assert list(table.columns) == ["query", "correct answer", "wrong answer"]
    assert "learns to be nearer to its sentence than to a wrong text" in texts(app)
    assert (table["correct answer"] != table["wrong answer"]).all()
    assert "wrong answer (wrong ones: similar, by bm25)" in cards_of(app)


def test_the_lengths_for_a_cross_encoder_are_those_of_both_texts_together(open_page: Open) -> None:
    app = at_rest(open_page("training", src="demo:scored", obj="regression", tl="32"))
    assert "A cross-encoder reads both texts together: **32 tokens are the maximum for the two**" in texts(app)
    assert list(examples_of(app).columns) == ["first text", "second text", "score"]
    assert "A cross-encoder learns the score that people gave" in texts(app)
    assert 'class="told"' in cards_of(app)
    (drawn,) = figures(app)[0]["data"]
    rows = training_data.load("demo:scored")
    tokenization = caching.models().find("embedded").tokenization
    joint = [len(tokenization.tokenize(*pair).tokens) for pair in zip(*rows.columns.values(), strict=True)]
    low, high = np.asarray(drawn["customdata"], int).T
    expected = [sum(least <= length <= most for length in joint) for least, most in zip(low, high, strict=True)]
    np.testing.assert_array_equal(drawn["y"], expected)
    assert sum(expected) == len(rows)


def test_the_preset_decides_until_a_person_does_and_again_when_it_is_changed(open_page: Open) -> None:
    app = at_rest(open_page("training", preset="repair"))
    app.number_input(key="w_epochs").set_value(2).run()
    app = at_rest(app)
    assert plan_of(app)["Steps"] == "32"
    assert setting(app, "epochs") == 2
    app.selectbox(key="w_training_preset").set_value("overfitting").run()
    app = at_rest(app)
    assert setting(app, "epochs") is None
    preset = PRESETS["overfitting"].settings
    assert app.selectbox(key="w_objective").value == preset.objectives[0]
    assert app.selectbox(key="w_training_data").value == preset.data
    assert app.number_input(key="w_epochs").value == preset.epochs


def test_only_objectives_that_fit_the_rows_are_offered(open_page: Open) -> None:
    app = at_rest(open_page("training", src="demo:scored", obj="softmax"))
    assert "softmax" not in app.selectbox(key="w_objective").options
    assert "Objective “Softmax classification” is not available here." in texts(app)
    assert app.selectbox(key="w_objective").value != "softmax"


def test_an_uploaded_file_is_recognised_and_its_bad_rows_are_counted(open_page: Open) -> None:
    rows = [f'"the cat {number} sat","a red hat {number} ran",{number % 3 - 1}' for number in range(30)]
    app = open_page("training", src="file")
    assert app.button(key="start_training").disabled
    app.file_uploader(key="training_file").upload(
        "own.csv", "\n".join(["sentence1,sentence2,label", *rows]).encode()
    ).run()
    app = at_rest(app)
    said = texts(app)
    assert "10 rows: " in said  # the label -1 is no gold label
    assert ", 10 dropped.**" in said
    assert "Everybody on this server can see the rows" in said
    assert not app.button(key="start_training").disabled


def test_columns_that_are_not_recognised_are_chosen(open_page: Open) -> None:
    rows = [f"{number},a cat {number} sat,a red hat {number} ran,a river {number} rose" for number in range(20)]
    app = open_page("training", src="file")
    app.file_uploader(key="training_file").upload("odd.csv", "\n".join(["row,one,two,three", *rows]).encode()).run()
    app = at_rest(app)
    assert "Which columns hold what?" in texts(app)
    assert app.button(key="start_training").disabled
    assert list(plain_table(app, 0)["column"]) == ["row", "one", "two", "three"]
    app.selectbox(key="column_1").set_value("three").run()  # the second text alone says nothing
    assert app.button(key="start_training").disabled
    app.selectbox(key="column_0").set_value("one").run()
    app = at_rest(app)
    assert not app.button(key="start_training").disabled
    assert "query = column “one”; correct answer = column “three”" in texts(app)
    app.selectbox(key="column_2").set_value("three").run()
    app = at_rest(app)
    assert any("The same column is chosen twice" in error.value for error in app.error)
    assert app.button(key="start_training").disabled
    app.selectbox(key="column_2").set_value("two").run()
    app = at_rest(app)
    assert not app.error
    assert "wrong answer = column “two”" in texts(app)


def test_another_column_keeps_all_wrong_answers(open_page: Open) -> None:
    columns = ["query", "positive", "other", *(f"negative_{number}" for number in (1, 2, 3))]
    rows = [",".join(f"a {column} text of row {number}" for column in columns) for number in range(20)]
    app = open_page("training", src="file")
    app.file_uploader(key="training_file").upload("own.csv", "\n".join([",".join(columns), *rows]).encode()).run()
    app = at_rest(app)
    menus = {menu.label: menu for menu in app.selectbox}
    assert [menus[f"Wrong answer{number}"].value for number in ("", " 2", " 3")] == columns[3:]
    menus["Second text or answer"].set_value("other").run()
    app = at_rest(app)
    assert not app.error
    said = texts(app).replace("\\", "")
    assert (
        "anchor = query, positive = other, negative = negative_1, negative_2 = negative_2, negative_3 = negative_3"
        in said
    )
    {menu.label: menu for menu in app.selectbox}["Wrong answer"].set_value("none").run()
    app = at_rest(app)
    said = texts(app).replace("\\", "")
    assert "anchor = query, positive = other, negative = negative_2, negative_2 = negative_3 (as chosen)" in said


def test_a_held_out_part_that_is_too_small_is_said_before_the_start(open_page: Open) -> None:
    rows = "\n".join(["query,positive", *(f"cat {number},a red hat {number}" for number in range(5))])
    app = open_page("training", src="file")
    app.file_uploader(key="training_file").upload("own.csv", rows.encode()).run()
    app = at_rest(app)
    assert "has 1 row from which" in app.error[0].value
    assert app.button(key="start_training").disabled


def test_only_what_wrong_answers_depend_on_costs_a_forward_pass(open_page: Open) -> None:
    app = at_rest(open_page("training", neg="model", rows="40"))
    model = caching.models().find("embedded")
    before = model.forward_passes
    app = at_rest(app.number_input(key="w_epochs").set_value(9).run())
    assert not app.error
    assert model.forward_passes == before


def test_rows_that_cannot_be_trained_on_end_in_a_message(open_page: Open) -> None:
    app = open_page("training", src="file")
    same = "\n".join(["premise,hypothesis,label", *(f"the cat {number},a hat {number},1" for number in range(20))])
    app.file_uploader(key="training_file").upload("own.csv", same.encode()).run()
    app = at_rest(app)
    assert "have the label" in app.error[0].value
    assert app.button(key="start_training").disabled


def test_the_corpus_in_use_can_be_trained_on_but_not_the_demo(open_page: Open) -> None:
    app = open_page("training", src="corpus")
    assert "The demo corpus is never trained on" in texts(app)
    assert app.button(key="start_training").disabled
    lines = [f"a red hat {number} ran on the river,the cat {number}" for number in range(20)]
    corpus = read_corpus("\n".join(["sentence,compressed", *lines]).encode(), "own.csv", "sentence")
    key = current.key_of(corpus)
    caching.corpora().put(key, corpus)
    app = at_rest(open_page("training", src="corpus", corpus=key))
    assert not app.error
    assert "16 rows to train, 4 held out" in texts(app)
    assert "Everybody on this server can see the rows" in texts(app)
    assert "query = column “compressed”; correct answer = column “sentence”" in texts(app)


# --- Objective


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ([0, 1e-5, 2e-5, 1e-5, 0], "It rises for 2 steps (warm-up) to 2e-05, then falls to zero after the last step."),
        ([2e-5, 1e-5, 0], "It begins at 2e-05, then falls to zero after the last step."),  # no warm-up
        ([0, 2e-5, 2e-5], "It rises for 1 step (warm-up) to 2e-05 and stays there."),
        ([2e-5, 2e-5], "It is 2e-05 at every step."),
    ],
)
def test_a_learning_rate_is_told_as_it_is(rates: list[float], said: str) -> None:
    assert training_objective.rate_in_words(np.array(rates)) == said


@pytest.mark.parametrize(
    ("objective", "data"), [("mnrl", "demo:pairs"), ("softmax", "demo:nli"), ("regression", "demo:scored")]
)
def test_an_objective_has_its_picture_formula_and_schedule(open_page: Open, objective: str, data: str) -> None:
    app = at_rest(open_page("training", v="training-objective", src=data, obj=objective))
    assert not app.error
    assert len(app.latex) == 1
    (explained,) = [item.value for item in app.caption if "Source: " in item.value]
    own = legend(OBJECTIVES[objective])  # what stands in the formula, and nothing else
    assert explained.startswith("; ".join(f"{symbol}: {meaning}" for symbol, meaning in own.items()))
    assert ("s: the scale" in explained) == (objective == "mnrl")
    picture, schedule = figures(app)[:2]
    assert len(figures(app)) == (3 if objective == "softmax" else 2)
    assert picture["layout"]["annotations"]
    rates = np.asarray(schedule["data"][0]["y"], float)
    assert rates[0] == rates[-1] == 0
    assert rates.max() == pytest.approx(float(app.selectbox(key="w_learning_rate").value), rel=0.01)


def test_two_views_say_of_one_run_among_how_many_texts_an_answer_is_found(open_page: Open) -> None:
    """Scored rows of which fewer are partners than a batch holds."""
    of = {"src": "demo:scored", "obj": "mnrl", "bs": "256"}
    cards = re.search(
        r"its correct answer out of (\d+) texts", texts(at_rest(open_page("training", v="training-data", **of)))
    )
    shown = re.search(
        r"among the (\d+) texts shown", texts(at_rest(open_page("training", v="training-objective", **of)))
    )
    assert cards is not None
    assert shown is not None
    assert shown[1] == cards[1]
    assert int(shown[1]) < 100  # partners of 187 training rows


def test_the_measured_grid_of_softmax_is_drawn_as_it_was_measured(open_page: Open) -> None:
    measured = json.loads((ASSETS / "training" / "ablation.json").read_text(encoding="utf-8"))
    grid = measured["grid"]
    assert len(grid) == 3 * 7
    for row in grid:
        values = list(row["by_seed"].values())
        assert len(values) == len(measured["seeds"])
        assert row["spearman"] == pytest.approx(np.mean(values), abs=2e-4)
        assert row["spread"] == pytest.approx(np.std(values, ddof=1), abs=2e-4)
    app = at_rest(open_page("training", v="training-objective", src="demo:nli", obj="softmax"))
    drawn = figures(app)[2]
    cells = np.asarray(drawn["data"][0]["z"], float)
    np.testing.assert_allclose(cells.ravel(), [100 * row["spearman"] for row in grid], rtol=1e-6)
    assert "differs by up to" in texts(app)


def test_what_a_person_changes_reaches_the_run_in_its_own_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Per cent and hundredths become shares, each under its own name; what nobody changes is the preset's."""
    numbers = {"epochs": 7, "warm_up": 25, "margin": 40, "damage": 30, "training_seed": 11, "batch_size": 6}
    numbers |= {"training_length": 48, "held_out": 15, "most_rows": 12}
    picks = {"second_objective": "none", "trained_weights": "all", "learning_rate": "0.0005"}
    picks |= {"negatives": "bm25", "training_pooling": "cls"}
    model: Any = SimpleNamespace(spec=SimpleNamespace(key="m"), tokenization=SimpleNamespace(max_length=300))
    rows, preset = data_of_run(), PRESETS["quick"]
    bounds: dict[str, tuple[int, int]] = {}

    def number(setting: str, label: str, least: int, most: int, default: int) -> int:
        bounds[setting] = least, most
        return numbers.get(setting, default)

    monkeypatch.setattr(training_plan, "_number", number)
    monkeypatch.setattr(training_plan.controls, "pick", lambda name, *_, default, **__: picks.get(name, default))
    monkeypatch.setattr(training_plan.state, "get", numbers.get)
    made = training_plan._chosen(model, preset, "demo:pairs", "mnrl", rows)
    assert made == replace(
        preset.settings,
        model="m",
        data="demo:pairs",
        negatives="bm25",
        adapter=False,
        learning_rate=0.0005,
        epochs=7,
        warmup_share=0.25,
        margin=0.4,
        damage=0.3,
        seed=11,
        pooling="cls",
        batch_size=6,
        max_length=48,
        held_out_share=0.15,
        max_rows=12,
    )
    assert (bounds["training_length"], bounds["most_rows"]) == ((3, 300), (4, len(rows)))
    numbers.clear()
    picks.clear()
    picks["second_objective"] = "none"
    assert training_plan._chosen(model, preset, "demo:pairs", "mnrl", rows) == replace(preset.settings, model="m")


@pytest.mark.parametrize(
    ("chosen", "kind"),
    [
        ({"anchor": "a"}, {"sentence": "a"}),
        ({"anchor": "a", "positive": "b"}, {"anchor": "a", "positive": "b"}),
        ({"anchor": "a", "positive": "b", "label": "l"}, {"sentence1": "a", "sentence2": "b", "label": "l"}),
        (
            {
                "anchor": "a",
                "positive": "b",
                "negative": "c",
                "negative_2": "d",
                "label": "l",
            },  # which goes with no triplet
            {"anchor": "a", "positive": "b", "negative": "c", "negative_2": "d"},
        ),
    ],
)
def test_chosen_columns_are_those_of_one_kind_of_rows(chosen: dict[str, str], kind: dict[str, str]) -> None:
    assert row_source._kind_of(chosen) == kind


def test_the_time_of_a_step_is_that_of_the_last_run_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    settings_of = PRESETS["quick"].settings
    for number, (status, changed) in enumerate((("done", {}), ("stopped", {}), ("done", {"batch_size": 8}))):
        run = write_run(runs.runs_folder(), f"mnrl-2026112{number}-140233-ab12", status=status, **changed)  # type: ignore[arg-type]
        run.write_state(replace(run.state(), step=20, seconds=30.0 + number))
    assert training_plan._seconds_per_step(settings_of) == 1.5
    assert training_plan._seconds_per_step(replace(settings_of, batch_size=8)) == 1.6
    assert training_plan._seconds_per_step(replace(settings_of, adapter=False)) is None


def test_a_learning_rate_of_other_weights_is_the_usual_one() -> None:
    of = PRESETS["not"].settings
    assert training_plan._rate_text(of, "adapter") == "0.001"
    assert float(training_plan._rate_text(of, "all")) < float(
        training_plan._rate_text(PRESETS["quick"].settings, "adapter")
    )


# --- Run


def test_the_example_is_a_whole_run_of_the_preset_that_it_names(open_page: Open) -> None:
    run, chosen = choice.EXAMPLE, PRESETS["repair"].settings
    assert run.settings() == chosen
    state, record = run.state(), run.record()
    assert record is not None
    rows = training_data.load(chosen.data)
    split = training_data.split(rows, chosen.held_out_share, chosen.seed, chosen.max_rows)
    assert (record["data"]["sha256"], record["split"]["train"]) == (rows.sha256, len(split.train))
    assert record["steps"] == state.step == state.steps == steps(chosen, len(split.train))
    assert (state.status, state.pid) == ("done", None)
    past = caching.run_history(run)
    assert [past.last_step, past.measures["recall@1"][0][-1]] == [state.steps] * 2
    assert record["before"]["recall@1"] == past.measures["recall@1"][1][0]
    assert not run.has_model  # it is small


def test_the_stored_ranks_of_the_untouched_model_are_those_of_the_included_one() -> None:
    untouched, pairs = stored_ranks().untouched, pair_runs.pairs_of_corpus(current.demo())
    look = second_looks.look(backend(), pairs, backend().facts.layers, backend().own_pooling, None)
    assert untouched is not None
    assert look is not None
    np.testing.assert_array_equal(untouched, look.ranks(0))
    assert len(stored_ranks().base) == len(stored_ranks().tuned) == len(pairs)


def test_without_a_run_the_view_shows_the_example_and_says_so(open_page: Open) -> None:
    app = at_rest(open_page("training", v="training-run"))
    assert "**An example, “Repair a damaged model”**, shown until you train a model." in texts(app)
    said = "40 % noise in its weights, then learnt 248 rows in 64 steps: batch 16, learning rate 0.001, seed 10."
    assert f"all-MiniLM-L6-v2 got {said}" in [item.proto.help for item in app.markdown]
    evaluated = choice.EXAMPLE.events("evaluation")
    np.testing.assert_allclose(traces(app, 1)["held-out loss"], [item["validation_loss"] for item in evaluated])
    np.testing.assert_allclose(traces(app, 0)["Recall@1"], [item["recall@1"] for item in evaluated])
    app.selectbox(key="w_training_figure").set_value("speed").run()
    app.session_state["data_training_speed"] = True
    assert "the speed of the machine on which the example was trained" in texts(app.run())
    app.button(key="go_to_data").click().run()
    assert setting(app, "train_view") == "training-data"
    write_run(runs.runs_folder())  # takes its place
    assert "An example" not in texts(open_page("training", v="training-run"))


@pytest.mark.parametrize("view", ["training-run", "before-after"])
def test_a_run_that_is_not_there_is_refused_where_the_example_is_shown(open_page: Open, view: str) -> None:
    app = open_page("training", v=view, run="mine")
    assert "Run “mine” is not available here. It was deleted, or made on another server." in texts(app)
    assert "**An example, “Repair a damaged model”**, shown until you train a model." in texts(app)
    assert "run" not in app.query_params
    assert "is not available here" not in texts(open_page("training", v=view))


def test_the_figures_have_the_recorded_values(open_page: Open) -> None:
    run = write_run(runs.runs_folder())
    app = open_page("training", v="training-run")
    assert not app.error
    curves = traces(app, 1)
    np.testing.assert_allclose(curves["training loss, each step"], LOSSES, rtol=1e-6)
    np.testing.assert_allclose(curves["training loss, mean of 10 steps"], smoothed(np.array(LOSSES), 10), rtol=1e-6)
    np.testing.assert_allclose(curves["held-out loss"], [item["validation_loss"] for item in EVALUATIONS.values()])
    np.testing.assert_allclose(traces(app, 0)["Recall@1"], [item["recall@1"] for item in EVALUATIONS.values()])
    assert "Recall@1 0.400 → **0.700**" in texts(app)
    assert (
        "**It learnt: Recall@1 40 → 70 % on held-out rows; step 20, the last, is kept.** The held-out "
        "loss fell "
        "from 2.10 to "
        "1.20, and was still falling (0.20 in the last 10 steps)."
    ) in texts(app)
    assert "worse than before training" not in texts(app)
    (command,) = codes(app)["training_loss"].code.commands
    assert command[0] == "train"
    app.slider(key="w_smoothing").set_value(3).run()
    np.testing.assert_allclose(
        traces(app, 1)["training loss, mean of 3 steps"], smoothed(np.array(LOSSES), 3), rtol=1e-6
    )
    app.selectbox(key="w_training_figure").set_value("rate").run()
    assert len(traces(app, 0)["learning rate"]) == STEPS
    # Without its settings a run has its curves, and no command that trains again.
    (run.path / "settings.json").write_text("{")
    app.run()
    assert len(traces(app, 0)["learning rate"]) == STEPS
    assert [command[0] for command in codes(app)["training_rate"].code.commands] == ["numbers"]


def test_each_figure_of_a_run_is_explained_by_what_it_shows(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(runs.runs_folder())
    parts: dict[str, Any] = {}
    monkeypatch.setattr(report, "add", lambda key, part, table=None: parts.update({key: part}))
    app = open_page("training", v="training-run")
    assert (parts["training_measures"].read, parts["training_loss"].read) == (training_run.READ, "")
    assert "Recall@1" in parts["training_measures"].message
    for figure, begins in (("rate", "The learning rate at each step"), ("speed", "How many sentences")):
        app.selectbox(key="w_training_figure").set_value(figure).run()
        assert parts[f"training_{figure}"].read.startswith(begins)
        assert parts[f"training_{figure}"].message == ""
        assert parts["training_loss"].read == training_run.READ
        assert "Recall@1" in parts["training_loss"].message
    # Where nothing is measured yet, the figure is explained all the same.
    monkeypatch.setattr(training_run.findings, "watched", lambda *_: "")
    app.selectbox(key="w_training_figure").set_value("measures").run()
    assert (parts["training_measures"].message, parts["training_measures"].read) == ("", training_run.READ)


def test_the_microscope_goes_back_through_the_steps_on_one_scale(open_page: Open) -> None:
    run = write_run(runs.runs_folder())
    count = len(run.settings().watch)
    app = open_page("training", v="training-run", step="10")
    before, now = (item["data"][0] for item in figures(app)[2:4])
    assert (before["zmin"], before["zmax"]) == (now["zmin"], now["zmax"])
    for drawn, step in ((before, 0), (now, 10)):
        vectors = watch_vectors(step, count)[0][-1].astype(float)
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        cosines = np.asarray(drawn["z"], float)
        off = ~np.eye(count, dtype=bool)
        assert_close(cosines[off], (unit @ unit.T)[off])
    curves = [figures(app)[number]["layout"]["yaxis"]["range"] for number in (4, 5)]
    assert curves[0] == curves[1]
    maps = figures(app)[6:8]
    assert [item["layout"]["title"]["text"] for item in maps] == ["Tokens before training", "Tokens after step 10"]
    assert maps[0]["layout"]["xaxis"]["range"] == maps[1]["layout"]["xaxis"]["range"]
    app.select_slider(key="w_training_step").set_value(WATCH_STEPS[1]).run()
    assert setting(app, "training_step") == 5
    app.select_slider(key="w_training_step").set_value(WATCH_STEPS[-1]).run()
    assert setting(app, "training_step") is None  # the newest, also of a run that goes on


def _refuse(*_: object) -> Any:
    raise AssertionError("this was done before")


def test_a_rerun_reads_no_row_and_no_event_again(
    open_page: Open, compared: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = at_rest(open_page("training", v="before-after", on="held-out"))
    assert not app.error
    monkeypatch.setattr(RunFolder, "data", _refuse)
    assert not app.run().error
    assert not app.exception
    app = open_page("training", v="training-run")
    monkeypatch.setattr(run_folder, "_events", lambda content: _refuse(content) if content else ())
    app.run()
    assert not app.exception
    assert figures(app)


def test_a_rerun_splits_no_rows_again(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    app = at_rest(open_page("training", preset="repair"))
    monkeypatch.setattr(training_data, "split", _refuse)
    app.number_input(key="w_epochs").set_value(3).run()
    assert not app.exception
    assert plan_of(app)["Steps"] == "48"


@pytest.mark.parametrize(
    ("code", "words"),
    [("collapse", "no longer tells sentences apart"), ("overfitting", "by heart"), ("diverged", "lower learning rate")],
)
def test_what_goes_wrong_is_said_with_what_to_do(open_page: Open, code: str, words: str) -> None:
    write_run(
        runs.runs_folder(),
        notices=({"step": 10, "code": code, "value": 0.97}, {"step": 20, "code": code, "value": None}),
    )
    app = open_page("training", v="training-run")
    (warning,) = app.warning
    assert words in warning.value
    assert "step 10" in warning.value


def test_runs_are_listed_and_one_can_be_shown_and_deleted(open_page: Open) -> None:
    folder = runs.runs_folder()
    write_run(folder)
    other = write_run(folder, "cosine-20261122-150000-cd34", status="stopped", objectives=("cosine",), steps=10)
    app = open_page("training", v="training-run", run=NAME)
    said = texts(app)
    assert "Cosine regression, 22 Nov 15" in said
    assert "stopped · 10 of 20 steps" in said
    app.button(key=f"show_{other.name}").click().run()
    assert setting(app, "training_run") == other.name
    assert len(traces(app, 1)["training loss, each step"]) == 10
    (command,) = codes(app)["training_loss"].code.commands
    assert command[0] == "numbers"  # "train" would train all steps
    app.button(key=f"delete_{other.name}").click().run()
    assert not other.path.exists()
    assert "is not available here. It was deleted" in texts(app)
    assert len(traces(app, 1)["training loss, each step"]) == STEPS


def test_a_run_whose_process_died_can_continue(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(runs.runs_folder(), status="running", steps=10)
    monkeypatch.setattr(runs, "follow", _fake_follow)
    app = open_page("training", v="training-run")
    assert "The process of this run was ended from outside" in texts(app)
    app.button(key=f"resume_{run.name}").click().run()
    app = at_rest(app)
    assert run.state().status == "done"
    assert "**Done**" in texts(app)


def _fake_follow(run: RunFolder, starts: bool = True) -> Callable[..., RunFolder]:
    """Stands for a process that trains: it writes that the run is done."""

    def work(report_progress: Any, is_stopped: Any) -> RunFolder:
        for step in range(1, STEPS + 1):
            report_progress(step, STEPS)
            if is_stopped():
                run.write_state(replace(run.state(), status="stopped", step=step, steps=STEPS))
                return run
        run.write_state(replace(run.state(), status="done", step=STEPS, steps=STEPS, seconds=1.0))
        return run

    return work


def test_one_click_starts_a_run_which_another_session_joins_and_stops(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "follow", _follow_until_stopped)
    app = at_rest(open_page("training"))
    app.button(key="start_training").click().run()
    assert setting(app, "train_view") == "training-run"
    (run,) = runs.list_runs()
    assert run.settings().objectives == ("mnrl",)
    job = caching.training_runs().find(run.name)
    assert job is not None
    other = open_page("training", v="training-run")  # a reload: another session
    monkeypatch.setenv(access.TRAINING.variable, "0")
    caching.training_runs().stop(job)  # as a browser can, where training is off
    assert not job.told_to_stop.is_set()
    assert not run.is_asked_to_stop()
    other.run()
    assert "1 of 20 steps" in "".join(bar.proto.text for bar in other.get("progress"))
    assert "stop_training" not in [button.key for button in other.button]
    monkeypatch.setenv(access.TRAINING.variable, "1")
    other.run()
    other.button(key="stop_training").click().run()
    assert job.finished.wait(10)
    assert runs.state_of(run).status == "stopped"


def _follow_until_stopped(run: RunFolder, starts: bool = True) -> Callable[..., RunFolder]:
    def work(report_progress: Any, is_stopped: Any) -> RunFolder:
        report_progress(1, STEPS)
        for _ in range(1_200):  # a minute
            if is_stopped():
                return run
            time.sleep(0.05)
        raise AssertionError("nobody stopped the run")

    return work


def test_a_run_that_waits_can_be_stopped_and_one_that_outlived_the_server_comes_first(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "follow", _follow_until_stopped)
    earlier = write_run(runs.runs_folder(), "earlier", status="running", steps=5)
    alive = os.getpid()  # stands for the process of the run, which nobody follows after a restart
    earlier.write_state(replace(earlier.state(), pid=alive, process_started=runs.process_start(alive)))
    data, split = earlier.data()
    later = training.start(earlier.settings(), data, split, STEPS)
    jobs = {name: caching.training_runs().find(name) for name in ("earlier", later.name)}
    try:
        assert caching.queue().before(jobs[later.name]) == (jobs["earlier"],)
        caching.training_runs().stop(jobs[later.name])
        assert runs.state_of(later).status == "stopped"  # its work never began
    finally:
        caching.training_runs().stop(jobs["earlier"])
    assert jobs["earlier"].finished.wait(10)
    assert earlier.is_asked_to_stop()


def test_where_training_is_off_nothing_can_be_started_resumed_or_deleted(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(access.TRAINING.variable, "0")
    run = write_run(runs.runs_folder(), status="stopped")
    app = at_rest(open_page("training"))
    assert "Training is switched off on this server" in texts(app)
    assert access.TRAINING.variable in texts(app)
    assert app.button(key="start_training").disabled
    app = open_page("training", v="training-run")
    assert app.button(key=f"resume_{run.name}").disabled
    app.button(key=f"delete_{run.name}").click().run()
    assert run.exists
    # A browser can press what is not offered.
    chosen, (data, split) = run.settings(), run.data()
    for act in (
        lambda: training.start(chosen, data, split, 1),
        lambda: training.resume(run),
        lambda: training.delete(run),
    ):
        with pytest.raises(InputError, match="switched off"):
            act()
    assert runs.list_runs() == [run]


@pytest.mark.parametrize(("address", "is_allowed"), [("127.0.0.1", True), (None, False), ("0.0.0.0", False)])
def test_training_is_on_where_the_server_is_private(
    address: str | None, is_allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {
        "server.address": address,
        "server.allowedHosts": [],
        "server.corsAllowedOrigins": [],
        "server.enableCORS": True,
    }
    monkeypatch.setattr("streamlit.get_option", options.__getitem__)
    monkeypatch.delenv(access.TRAINING.variable, raising=False)
    assert access.training_allowed() is is_allowed
    monkeypatch.setenv(access.TRAINING.variable, "1")
    assert access.training_allowed()


def test_a_damaged_run_is_listed_and_can_be_deleted(open_page: Open) -> None:
    run = write_run(runs.runs_folder())
    (run.path / "state.json").write_text("{")
    app = open_page("training", v="training-run")
    assert "state.json" in app.error[0].value
    app.button(key=f"delete_{run.name}").click().run()
    assert not run.path.exists()


# --- Before and after


def test_before_and_after_without_a_model_shows_the_example_and_leads_to_the_data(open_page: Open) -> None:
    app = at_rest(open_page("training", v="before-after"))
    assert "**An example, “Repair a damaged model”**, shown until you train a model." in texts(app)
    ranks = stored_ranks()
    for name, of_model in (("undamaged", ranks.untouched), ("before (damaged)", ranks.base), ("after", ranks.tuned)):
        assert of_model is not None
        assert bars_of(app)[name] == pytest.approx(100 * np.mean(of_model == 1))
    assert not [item for item in app.button if item.key and item.key.startswith("search_")]  # it has no model
    trained, *evaluated = commands_of_example(app)
    assert (trained[0], trained[-1]) == ("train", "demo:pairs")
    out = trained[trained.index("--out") + 1]
    models = [command[command.index("--model") + 1] for command in evaluated]
    assert models == [f"{out}/{train.RUN}/{run_folder.START}", out, "embedded"]
    app.button(key="go_to_data").click().run()
    assert setting(app, "train_view") == "training-data"


def commands_of_example(app: AppTest) -> tuple[tuple[str, ...], ...]:
    """The commands that give the numbers of the example: one that trains, and one for each of its models."""
    found = codes(app)["after_measures"].code
    assert isinstance(found, Command)
    return found.commands


@pytest.mark.rare
def test_the_stored_ranks_are_what_the_commands_beside_them_give(
    open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the model before training, which is made here, and of the untouched one; training takes minutes."""
    app = at_rest(open_page("training", v="before-after"))
    _, of_base, _, of_untouched = commands_of_example(app)
    settings, ranks = choice.EXAMPLE.settings(), stored_ranks()
    start = tmp_path / choice.EXAMPLE_MODELS[0]
    damaged = training_model.build(replace(settings, adapter=False), "encoder")
    training_model.save(damaged, settings, start, tmp_path / "adapter")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "assets").symlink_to(ASSETS)
    for command, stored in ((of_base, ranks.base), (of_untouched, ranks.untouched)):
        done = in_process.run(*command)
        assert done.returncode == 0, done.stderr
        (measured,) = json.loads(done.stdout)["runs"]
        assert (measured["layer"], measured["pooling"]) == (6, "mean")
        for k in (1, 10):
            assert stored is not None
            assert measured["recall"][str(k)] == pytest.approx(100 * np.mean(stored <= k), abs=0.5)  # three queries


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("tuned") / "tuned", seed=1)


@pytest.fixture
def compared(tiny_folder: Callable[[str], Path], tuned: Path) -> RunFolder:
    """A run from one tiny model to another."""
    return write_run(runs.runs_folder(), result=tuned, model=str(tiny_folder("bert")))


def bars_of(app: AppTest) -> dict[str, float]:
    """The value of each model's bar, from the top."""
    return {trace["name"]: float(np.asarray(trace["x"], float)[0]) for trace in figures(app)[0]["data"]}


@pytest.mark.rare
def test_the_lists_hold_the_queries_that_they_name(open_page: Open, compared: RunFolder) -> None:
    app = at_rest(open_page("training", v="before-after", on="news", part="measures"))
    counts = [int(text.split()[-1]) for text in app.segmented_control(key="w_after_queries").options]
    shown = plain_table(app, 0).set_index("measure")["Recall@1"]
    before, after = (round(630 * float(shown[side].removesuffix(" %")) / 100) for side in ("before", "after"))
    repaired, lost, harmed = counts
    assert after - before == repaired - harmed
    assert lost + harmed == 630 - after  # in no list twice
    assert f"{harmed} quer" in texts(app)
    for which, expected in (
        ("repaired", r"before (?!1 )\d+ · \*\*after 1\*\*"),
        ("lost", r"before (?!1 )\d+ · \*\*after (?!1\*)\d+\*\*"),
        ("harmed", r"before 1 · \*\*after (?!1\*)\d+\*\*"),
    ):
        app.segmented_control(key="w_after_queries").set_value(which).run()
        assert " moved up, " in texts(app)  # also where the list is empty
        lines = [item.value for item in app.markdown if re.search(r"  \nbefore \d+ · ", item.value)]
        assert len(lines) == min(6, counts[("repaired", "lost", "harmed").index(which)])
        assert all(re.search(rf"  \n{expected}$", line) for line in lines)


def test_a_run_that_learnt_not_opens_with_the_known_failures(open_page: Open, compared: RunFolder) -> None:
    compared.write_settings(replace(compared.settings(), data="demo:not"))
    assert open_page("training", v="before-after").selectbox(key="w_after_part").value == "failures"
    assert open_page("training", v="before-after", part="layers").selectbox(key="w_after_part").value == "layers"


def of_training(before: float, after: float) -> str:
    """The whole finding on two shares in per cent, where no third model is beside them; a pattern."""
    verb = "raised" if after > before else "lowered" if after < before else "did not change"
    return (
        rf"\*\*Training {verb} Recall@1: {before:.1f} → {after:.1f} %\*\*( \(may be chance\))?; "
        r"\d+ quer(y|ies) found before (is|are) lost\."
    )


def test_measures_before_and_after_are_compared_with_intervals(open_page: Open, compared: RunFolder) -> None:
    app = at_rest(open_page("training", v="before-after", on="held-out"))
    assert not app.error
    drawn = bars_of(app)
    table = plain_table(app, 0).set_index("measure")
    assert list(table.columns) == ["Recall@1", "Recall@10", "MRR"]
    for side, name in (("before", "before (as published)"), ("after", "after")):
        np.testing.assert_allclose(drawn[name], float(table["Recall@1"][side].removesuffix(" %")), atol=0.06)
    assert len(drawn) == 2  # before training it was the untouched model
    assert re.search(of_training(drawn["before (as published)"], drawn["after"]), texts(app))
    held_out, other = texts(app), texts(at_rest(open_page("training", v="before-after", on="news")))
    assert "is the best one on these very rows" in held_out
    assert "This run collapsed" not in held_out
    assert "is the best one on these very rows" not in other


def test_sentences_layers_and_heads_are_compared(open_page: Open, compared: RunFolder) -> None:
    app = at_rest(open_page("training", v="before-after", part="sentences"))
    before, after = (item["data"][0] for item in figures(app))
    assert (before["zmin"], before["zmax"]) == (after["zmin"], after["zmax"])
    means = plain_table(app, 0).set_index("mean cosine").replace("−", "-", regex=True).astype(float)
    assert list(means.index) == ["within a topic", "between topics", "gap"]
    np.testing.assert_allclose(means["change"], means["after"] - means["before"], atol=1e-9)
    np.testing.assert_allclose(means.loc["gap"], means.loc["within a topic"] - means.loc["between topics"], atol=1e-9)
    app = at_rest(open_page("training", v="before-after", part="heads"))
    assert not app.error
    moved = np.asarray(figures(app)[0]["data"][0]["z"], float)
    assert moved.shape == (3, 4)  # blocks and heads of the tiny model
    assert (moved > 0).all()
    assert (moved <= 100).all()


def test_words_are_compared_in_maps_on_one_scale_and_curves(open_page: Open, compared: RunFolder) -> None:
    app = at_rest(open_page("training", v="before-after", part="words"))
    assert not app.error
    maps, curves = figures(app)[:2], figures(app)[2:]
    assert len(curves) == 2
    assert maps[0]["layout"]["xaxis"]["range"] == maps[1]["layout"]["xaxis"]["range"]
    tokens = compared.watch_tokens()
    for drawn, step in zip(maps, (0, 20), strict=True):
        points = np.array([[x, y] for part in drawn["data"] for x, y in zip(part["x"], part["y"], strict=True)], float)
        assert len(points) == len(tokens)
        np.testing.assert_allclose((points**2).sum(axis=1).mean(), 1.0, rtol=1e-4)
        vectors = compared.watch(step).tokens[-1]
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        centred = unit - unit.mean(axis=0)
        variances = np.linalg.svd(centred, compute_uv=False)[:2] ** 2  # of plain PCA
        found = np.linalg.svd(points - points.mean(axis=0), compute_uv=False) ** 2
        np.testing.assert_allclose(found / found.sum(), variances / variances.sum(), rtol=1e-3)


def test_a_run_without_a_model_is_named_as_what_it_is(open_page: Open, compared: RunFolder) -> None:
    unfinished = write_run(runs.runs_folder(), "mnrl-20261122-150233-ab13", status="stopped", steps=0)
    app = at_rest(open_page("training", v="before-after", run=unfinished.name))
    assert "This run ended before it had a model" in texts(app)
    assert "It was deleted" not in texts(app)
    app.button(key="go_to_run").click().run()
    assert setting(app, "train_view") == "training-run"
    assert app.button(key="continue_shown")
    newest_with_a_model = at_rest(open_page("training", v="before-after", on="held-out"))
    assert newest_with_a_model.selectbox(key="w_training_run").value == compared.name


def test_a_run_that_made_the_model_worse_says_so(open_page: Open, compared: RunFolder) -> None:
    record = compared.record() or {}
    compared.write_record({**record, "after": {**record["after"], "recall@1": 0.1}})
    assert "worse than before training" in texts(open_page("training", v="training-run"))


def test_scored_rows_begin_with_an_objective_that_uses_their_scores(open_page: Open) -> None:
    app = at_rest(open_page("training", src="demo:scored"))
    assert app.selectbox(key="w_objective").value == "cosine"


def test_what_is_compared_after_a_collapse_is_said(open_page: Open, compared: RunFolder) -> None:
    compared.append({"event": "notice", "step": 19, "code": "collapse", "value": 0.99})
    compared.write_record({**(compared.record() or {}), "best_step": 10})
    app = at_rest(open_page("training", v="before-after", on="held-out"))
    assert "This run collapsed at step 19, and what is compared here is step 10" in texts(app)


def test_a_damaged_model_is_compared_as_it_was_when_training_began(open_page: Open, compared: RunFolder) -> None:
    compared.write_settings(replace(compared.settings(), damage=0.4))
    shutil.copytree(compared.model_folder, compared.start_folder)
    compared.write_record({**(compared.record() or {}), "undamaged": {"recall@1": 0.875}})
    assert training.base_of(compared) == f"run:{compared.name}:start"
    app = open_page("training", v="training-run")
    assert "(undamaged: 0.875)" in texts(app)
    app.button(key="compare_trained").click().run()
    assert setting(app, "model2") == f"run:{compared.name}:start"
    app = at_rest(open_page("training", v="before-after", on="held-out"))
    assert not app.error
    assert list(bars_of(app)) == ["undamaged", "before (damaged)", "after"]
    differences = plain_table(app, 0).set_index("measure").loc["after minus before (95 % interval)"]
    assert set(differences) == {"0.0 (0.0 to 0.0), not significant"}  # a copy


@pytest.mark.parametrize("source", ["news", "scored", "held-out"])
def test_a_repaired_model_is_always_shown_beside_the_undamaged_one(
    open_page: Open, tiny_folder: Callable[[str], Path], tuned: Path, source: str
) -> None:
    """Here training gives back the very model that was damaged: equal bars, and all came back that the damage took."""
    whole = tiny_folder("bert")
    repaired = write_run(runs.runs_folder(), "mnrl-20261124-140233-ab12", result=whole, model=str(whole), damage=0.4)
    shutil.copytree(tuned, repaired.start_folder)
    app = at_rest(open_page("training", v="before-after", on=source))
    assert not app.error
    drawn = bars_of(app)
    assert list(drawn) == ["undamaged", "before (damaged)", "after"]
    assert drawn["undamaged"] == drawn["after"]
    said = texts(app)
    taken = drawn["undamaged"] - drawn["before (damaged)"]
    if source == "scored":
        assert "The undamaged model has **" in said
        assert "the trained model has as much." in said
        assert ("the damage took nothing of it" if taken <= 0 else "training won back all of the") in said
    else:
        assert ("Training won back all that the damage took" in said) == (round(taken, 1) > 0)
    if source != "scored":
        table = plain_table(app, 0).set_index("measure").T
        assert list(table["undamaged"]) == list(table["after"])
        assert set(table["after minus undamaged"]) == {"0.0 (0.0 to 0.0), not significant"}


def test_the_measures_that_a_run_took_of_itself_show_the_undamaged_model_too(
    open_page: Open, compared: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are shown while others are computed, and for a cross-encoder."""

    def not_yet(*given: object) -> None:
        raise NotReady

    compared.write_settings(replace(compared.settings(), damage=0.4))
    shutil.copytree(compared.model_folder, compared.start_folder)
    undamaged = {"recall@1": 0.875, "recall@10": 1.0}
    compared.write_record({**(compared.record() or {}), "undamaged": undamaged})
    monkeypatch.setattr("dashboard.views.training.before_after._retrieval", not_yet)
    drawn = figures(at_rest(open_page("training", v="before-after", on="held-out")))[0]["data"]
    assert {trace["name"]: np.asarray(trace["x"], float).round(6).tolist() for trace in drawn} == {
        "before (damaged)": [0.4, 0.8],
        "after": [0.7, 0.95],
        "undamaged": [0.875, 1.0],
    }


def test_a_run_that_began_with_another_run_is_shown_beside_the_model_as_published(
    open_page: Open, compared: RunFolder, tiny_folder: Callable[[str], Path]
) -> None:
    name, base = "mnrl-20261123-140233-ab12", f"run:{compared.name}"
    second = write_run(runs.runs_folder(), name, result=tiny_folder("bert"), model=base)
    assert training.untouched_of(second) == str(tiny_folder("bert"))
    app = at_rest(open_page("training", v="before-after", on="held-out", run=second.name))
    assert not app.error
    drawn = bars_of(app)
    assert set(drawn) == {"before", "after", "as published"}
    assert drawn["as published"] == drawn["after"]
    assert re.search(of_training(drawn["before"], drawn["after"]), texts(app))  # no word of the same model as published
    runs.delete(compared)
    with pytest.raises(InputError, match="was deleted, so that nobody knows"):
        training.untouched_of(second)


def test_runs_that_began_with_each_other_have_no_published_model(tiny_folder: Callable[[str], Path]) -> None:
    """The second one was deleted, and a new one of its name began with the first."""
    names = ("mnrl-20261123-140233-aaaa", "mnrl-20261123-140233-bbbb")
    written = [
        write_run(runs.runs_folder(), name, result=tiny_folder("bert"), model=f"run:{other}")
        for name, other in zip(names, reversed(names), strict=True)
    ]
    later = write_run(
        runs.runs_folder(), "mnrl-20261123-140233-cccc", result=tiny_folder("bert"), model=f"run:{names[0]}"
    )
    for run in (*written, later):
        with pytest.raises(InputError, match="was deleted, so that nobody knows"):
            training.untouched_of(run)


def test_an_undamaged_model_that_cannot_be_had_is_said(
    open_page: Open, compared: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The damaged start lies in the run, and the model itself in a folder that this server does not open."""
    compared.write_settings(replace(compared.settings(), damage=0.4))
    shutil.copytree(compared.model_folder, compared.start_folder)
    monkeypatch.setenv(access.SERVER_FILES.variable, "0")
    app = at_rest(open_page("training", v="before-after", on="held-out"))
    assert set(traces(app, 0)) == {"before (damaged)", "after"}
    assert "**The model as published is not shown here.**" in texts(app)


def test_the_trained_model_is_in_the_pickers_of_all_pages(open_page: Open, compared: RunFolder) -> None:
    app = open_page("layers", m=f"run:{compared.name}")
    assert not app.error
    assert "mnrl, 22 Nov 14:02 · trained here" in app.selectbox(key="w_model").options
    assert "mnrl, 22 Nov 14:02 · trained here" in app.selectbox(key="w_model2").options
    assert figures(app)


def test_a_folder_of_runs_that_cannot_be_used_leaves_the_pages_as_they_are(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BERT_INTERNALS_CACHE", "/" + "a" * 5_000)
    app = open_page("tokens")
    assert not app.error
    assert not app.exception
    app = open_page("training", v="training-run")
    assert "no folder can have this path" in app.error[0].value


def test_a_trained_model_is_allowed_where_free_models_are_not(
    compared: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(access.FREE_MODELS.variable, "0")
    assert settings.allowed_model(f"run:{compared.name}") == f"run:{compared.name}"
    with pytest.raises(InputError):
        settings.allowed_model(f"run:../runs/{compared.name}")  # leads to a run that exists


def test_a_base_that_the_server_does_not_offer_is_not_loaded(
    open_page: Open, compared: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run began from a folder of this machine, which people may not open here."""
    monkeypatch.setenv(access.SERVER_FILES.variable, "0")
    with pytest.raises(InputError, match="does not open files"):
        training.base_of(compared)
    app = open_page("training", v="before-after", on="held-out")
    assert any("does not open files of its own machine" in error.value for error in app.error)
    app = open_page("training", v="training-run")
    app.button(key="compare_trained").click().run()
    assert setting(app, "model2") != str(compared.settings().model)


def test_the_result_is_used_on_all_pages_and_compared_with_its_base(open_page: Open, compared: RunFolder) -> None:
    app = open_page("training", v="training-run")
    app.button(key="compare_trained").click().run()
    assert setting(app, "model") == f"run:{compared.name}"
    assert setting(app, "model2") == compared.settings().model
    assert app.selectbox(key="w_model").value == f"run:{compared.name}"
    assert app.button(key="use_trained").disabled
    assert app.button(key="use_trained").label == "All pages use it"


# --- From end to end


def test_a_model_is_trained_from_the_page(open_page: Open, tiny_folder: Callable[[str], Path]) -> None:
    address = {"m": str(tiny_folder("bert")), "rows": "16", "ep": "1", "bs": "8", "tl": "32"}
    app = at_rest(open_page("training", **address))
    assert (plan_of(app)["Rows to train on"], plan_of(app)["Steps"]) == ("16", "2")
    app.button(key="start_training").click().run()
    (run,) = runs.list_runs()
    job = caching.training_runs().find(run.name)
    assert job is not None
    assert job.finished.wait(150)
    app = at_rest(app)
    assert not app.error
    assert run.state().status == "done"
    assert len(traces(app, 1)["training loss, each step"]) == 2
    assert "**Done** · 2 of 2 steps" in texts(app)
    assert run.has_model
    assert app.button(key="use_trained")


def test_lists_of_answers_are_named_and_shown_beside_the_file(open_page: Open) -> None:
    rows = [
        {
            "query": f"How do I clean pan {n}?",
            "pos": [f"Wipe pan {n} with a cloth."],
            "neg": [f"Lamp {n}.", f"Car {n}."],
        }
        for n in range(20)
    ]
    app = open_page("training", src="file")
    app.file_uploader(key="training_file").upload("own.jsonl", "\n".join(map(json.dumps, rows)).encode()).run()
    app = at_rest(app)
    assert not app.error
    assert next(item.label for item in app.expander).startswith("**20 rows read, 20 used, 0 left out")
    said = texts(app)
    assert "Columns: anchor = query, positive = pos, negative = neg (by their names)." in said.replace("\\", "")
    assert "Each row has 2 wrong answers, from lists in neg." in said
    preview = plain_table(app, 0)
    assert list(preview["row"]) == [1, 2, 3]
    assert json.loads(preview["as it stands in the file"][0].replace("\\", "")) == rows[0]
    assert "negative\\_2: Car 0." in preview["read as"][0] or "negative_2: Car 0." in preview["read as"][0]


def rows_divided(app: Any) -> int:
    """How many rows the page says are trained on, held out or not used."""
    (said,) = re.findall(
        r"\*\*(\d+) rows to train, (\d+) held out(?:, (\d+) not used)?(?:, \d+ dropped)?\.\*\*", texts(app)
    )
    return sum(int(count or 0) for count in said)


def test_a_guess_is_offered_for_change_and_so_is_the_part(open_page: Open) -> None:
    rows = [
        {
            "question": f"What is thing {n}?",
            "answer": f"A tool {n}.",
            "context": f"In shop {n} there is thing {n}.",
            "split": "test" if n % 4 == 0 else "train",
        }
        for n in range(24)
    ]
    app = open_page("training", src="file")
    app.file_uploader(key="training_file").upload("own.jsonl", "\n".join(map(json.dumps, rows)).encode()).run()
    app = at_rest(app)
    said = texts(app)
    assert "Are these the right columns?" in said
    assert "correct answer = column “answer”" in said
    assert "only the train rows are used" in said
    assert rows_divided(app) == 18
    (second,) = [box for box in app.selectbox if box.label == "Second text or answer"]
    second.set_value("context").run()
    app = at_rest(app)
    assert "correct answer = column “context”" in texts(app)
    (part,) = [box for box in app.selectbox if box.label == "Rows (split)"]
    part.set_value("all").run()
    app = at_rest(app)
    assert not app.error
    assert rows_divided(app) == 24


def test_one_held_out_answer_is_said_before_the_start(open_page: Open) -> None:
    rows = [{"question": f"What about problem {n}?", "answer": f"Please do thing {n % 3} now."} for n in range(60)]
    app = open_page("training", src="file")
    app.file_uploader(key="training_file").upload("own.jsonl", "\n".join(map(json.dumps, rows)).encode()).run()
    app = at_rest(app)
    said = "\n".join(item.value for item in app.warning)
    assert "held-out rows have one answer in all" in said
    assert "different answers, and a batch holds each at most once" in said
