"""The training process: what it learns, writes and saves, and that it may be killed at any time."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import numpy as np
import pytest

from components.training.run_folder import RunFolder
from tests.support.concepts import concept_pairs


def test_a_random_model_goes_from_chance_to_most_answers(learned):
    """On held-out queries whose three concepts were never trained together."""
    record = learned.record()
    assert learned.state().status == "done"
    assert record["split"]["shared_texts"] == 0
    assert record["before"]["recall@1"] <= 0.1
    assert record["after"]["recall@1"] >= 0.6
    assert record["after"]["validation_loss"] < record["before"]["validation_loss"] / 2


def test_events_tell_the_whole_run(learned):
    losses, evaluations = learned.events("loss"), learned.events("evaluation")
    steps = learned.state().steps
    assert [event["step"] for event in losses] == list(range(1, steps + 1))
    assert [event["step"] for event in evaluations] == [*range(0, steps + 1, 10)]
    assert np.mean([event["loss"] for event in losses[-10:]]) < losses[0]["loss"] / 2
    from components.training.settings import learning_rates

    planned = learning_rates(learned.settings(), steps)[:-1]
    np.testing.assert_allclose([event["learning_rate"] for event in losses], planned, rtol=1e-5)
    assert all(event["sentences_per_second"] > 0 and event["seconds_left"] >= 0 for event in losses)
    assert {event["objective"] for event in losses} == {"mnrl"}


def test_the_best_evaluation_is_saved(learned):
    from components.training.held_out import is_better

    record = learned.record()
    trained = [event for event in learned.events("evaluation") if event["step"] > 0]
    best = next(event for event in trained if event["step"] == record["best_step"])
    assert not any(is_better(event, best) for event in trained)
    assert record["after"]["recall@1"] == best["recall@1"]


def test_sentence_transformers_and_the_dashboard_read_the_same_model(learned):
    """One line loads it; its vectors, and its Recall@1, are those that the dashboard computes."""
    from sentence_transformers import SentenceTransformer

    from components.model.backend import Backend
    from components.retrieval.evaluation.ranks import gold_ranks

    data, split = learned.data()
    held_out = data.take(split.held_out)
    queries, answers = held_out.columns.values()
    published = SentenceTransformer(str(learned.model_folder), device="cpu")
    backend = Backend.load(str(learned.model_folder), device_name="cpu")
    options = backend.embed_options(precision="float32")
    ours = [backend.embed(side, options=options)[0, 0] for side in (queries, answers)]
    for side, vectors in zip((queries, answers), ours, strict=True):
        np.testing.assert_allclose(vectors, published.encode(list(side)), atol=1e-5)
    assert np.mean(gold_ranks(*ours) == 1) == pytest.approx(learned.record()["after"]["recall@1"])


def test_watch_vectors_are_those_of_the_model_before_and_after(learned, concept_model):
    from components.analysis.pooling import pool
    from components.model.backend import Backend

    sentences = list(learned.settings().watch)
    before = Backend.load(str(concept_model), device_name="cpu").trace(sentences)
    watched = learned.watch(0)
    np.testing.assert_allclose(watched.sentences, pool(before, "mean"), atol=1e-5)
    for number, token in enumerate(learned.watch_tokens()):
        assert before.sentences[token.sentence].tokens[token.position].piece == token.piece
        expected = before.hidden_states[:, token.sentence, token.position]
        np.testing.assert_allclose(watched.tokens[:, number], expected, atol=1e-5)
    assert learned.watch_steps()[-1] == learned.state().steps
    assert np.abs(learned.watch(learned.watch_steps()[-1]).sentences - watched.sentences).max() > 0.1


def test_nothing_of_this_machine_is_in_the_saved_files(learned):
    for path in learned.model_folder.rglob("*.json"):
        assert str(learned.path.parent) not in path.read_text(encoding="utf-8")
    assert not list(learned.model_folder.rglob("*.bin"))
    assert not learned.checkpoints_folder.exists()


class Killed(BaseException):
    """Stands for a kill that leaves no time to write anything."""


@pytest.mark.parametrize(
    "changes",
    [
        {"adapter": True, "dropout": 0.1, "epochs": 3},
        pytest.param({"objectives": ("mnrl", "contrastive"), "negatives": "bm25", "epochs": 2}, marks=pytest.mark.rare),
    ],
)
def test_a_run_that_is_killed_ends_like_one_that_is_not(new_run, train_here, monkeypatch, changes):
    """Dropout, the order of batches, new weights, the optimizer: all continue as if nothing had happened.

    It is killed between the ends of two epochs, after an evaluation.
    """
    changes = {"evaluate_every": 4, "watch_every": 5, **changes}
    whole, broken = new_run(concept_pairs(120), **changes), new_run(concept_pairs(120), **changes)
    assert train_here(whole).status == "done"
    append, kill_at = RunFolder.append, whole.state().steps - 3

    def append_or_die(run, event):
        append(run, event)
        if event["step"] == kill_at:
            raise Killed

    monkeypatch.setattr(RunFolder, "append", append_or_die)
    monkeypatch.setattr(RunFolder, "write_state", lambda run, state: None)  # the dead write nothing
    train_here(broken, checkpoint_seconds=0)
    monkeypatch.undo()
    assert any(event["step"] == kill_at for event in broken.events("loss"))
    from components.training import runs

    assert runs.state_of(broken).status == "waiting"
    assert train_here(broken).status == "done"
    assert _weights(broken) == _weights(whole)
    for name in ("before", "after", "best_step", "model_sha256"):
        assert broken.record()[name] == whole.record()[name]
    strip = [[_stripped(event) for event in run.events()] for run in (broken, whole)]
    assert strip[0] == strip[1]


def test_in_a_long_run_losses_are_means_of_one_objective_each_also_after_a_kill(new_run, train_here, monkeypatch):
    from components.training import worker

    changes = {"epochs": 3, "objectives": ("mnrl", "contrastive"), "negatives": "random", "max_steps": 16}
    single = new_run(concept_pairs(120), **changes)
    assert train_here(single).status == "done"
    monkeypatch.setattr(worker, "MOST_LOSSES", 6)
    long = new_run(concept_pairs(120), **changes)
    saved = worker.RunReporter.saved

    def save_and_die(reporter, step):
        saved(reporter, step)
        if step == 7:  # between two means
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(worker.RunReporter, "saved", save_and_die)
        train_here(long, checkpoint_seconds=0)
    long.write_state(replace(long.state(), status="waiting"))
    assert train_here(long).status == "done"
    for objective in changes["objectives"]:
        losses = [event["loss"] for event in single.events("loss") if event["objective"] == objective]
        means = [event["loss"] for event in long.events("loss") if event["objective"] == objective]
        assert len(losses) == 8
        # 16 steps, at most 6 events: three steps of an objective together, and what is left at the end.
        np.testing.assert_allclose(means, [np.mean(losses[:3]), np.mean(losses[3:6]), np.mean(losses[6:])], rtol=1e-6)


def _weights(run):
    return {path.name: path.read_bytes() for path in run.model_folder.rglob("*.safetensors")}


def _stripped(event):
    timed = {"seconds", "seconds_left", "sentences_per_second"}
    return {name: value for name, value in event.items() if name not in timed}


def test_a_stop_keeps_the_best_so_far_and_can_be_taken_back(new_run, train_here):
    from components.training import runs

    run = new_run(concept_pairs(120), epochs=3)
    run.ask_to_stop()
    state = train_here(run)
    assert (state.status, state.step) == ("stopped", 1)
    assert run.has_model
    assert run.record()["steps"] == 1
    runs.resume(run)
    state = train_here(run)
    assert (state.status, state.step) == ("done", state.steps)
    assert run.record()["best_step"] > 1


@pytest.mark.parametrize(
    "changes",
    [
        {"adapter": True, "dropout": 0.1, "objectives": ("mnrl",), "epochs": 3},
        {"objectives": ("tsdae",), "negatives": "none", "max_steps": 9},  # whose evaluation draws words to delete
    ],
)
def test_a_run_that_is_stopped_between_two_evaluations_and_continued_ends_like_one_that_is_not(
    new_run, train_here, monkeypatch, changes
):
    """The stop asks for an evaluation, here the best so far, and for watch vectors that the whole run does not have."""
    from components.training import runs, worker

    changes = {"evaluate_every": 4, "watch_every": 5, **changes}
    whole, stopped = new_run(concept_pairs(120), **changes), new_run(concept_pairs(120), **changes)
    monkeypatch.setattr("components.training.held_out.is_better", lambda event, best: event["step"] == 7)
    assert train_here(whole).status == "done"
    assert whole.record()["best_step"] == 4
    stepped = worker.RunReporter.stepped

    def stop_at_seven(reporter, step, control):
        if step == 7:
            reporter.run.ask_to_stop()
        stepped(reporter, step, control)

    with monkeypatch.context() as patch:
        patch.setattr(worker.RunReporter, "stepped", stop_at_seven)
        assert train_here(stopped).status == "stopped"
    assert stopped.record()["best_step"] == stopped.watch_steps()[-1] == stopped.events("evaluation")[-1]["step"] == 7
    runs.resume(stopped)
    assert train_here(stopped).status == "done"
    assert _weights(stopped) == _weights(whole)
    assert stopped.watch_steps() == whole.watch_steps()
    for name in ("before", "after", "best_step", "model_sha256"):
        assert stopped.record()[name] == whole.record()[name]
    assert [_stripped(event) for event in stopped.events()] == [_stripped(event) for event in whole.events()]


def test_an_evaluation_changes_no_random_state(new_run, train_here, monkeypatch):
    """What Python, NumPy and torch would draw next is the same before and after each evaluation, the first one included."""
    import random

    import torch

    from components.training import worker

    make_trainer, states = worker.make_trainer, []

    def drawn():
        return random.getstate(), np.random.get_state()[1].tobytes(), torch.get_rng_state().numpy().tobytes()  # noqa: NPY002

    def watched(*arguments):
        trainer = make_trainer(*arguments)
        evaluate = trainer.evaluate

        def evaluate_and_compare(*given, **named):
            before = drawn()
            metrics = evaluate(*given, **named)
            states.append((before, drawn()))
            return metrics

        trainer.evaluate = evaluate_and_compare
        return trainer

    def measure(self, model, classifier=None):
        random.random()
        np.random.random()  # noqa: NPY002
        torch.rand(1)
        return {"recall@1": 0.5}

    monkeypatch.setattr(worker, "make_trainer", watched)
    monkeypatch.setattr("components.training.held_out.HeldOut.measure", measure)
    assert train_here(new_run(concept_pairs(120), max_steps=2, evaluate_every=1)).error == ""
    assert len(states) == 3
    assert all(before == after for before, after in states)


@pytest.mark.parametrize("step", [0, pytest.param(6, marks=pytest.mark.rare)])
def test_a_run_that_is_interrupted_keeps_a_checkpoint_and_ends_like_one_that_is_not(
    new_run, train_here, monkeypatch, step
):
    """As when the machine is shut down, or the command that it works for is killed: while wrong answers are searched, and
    between two evaluations."""
    from components.training import runs, worker

    changes = {"evaluate_every": 4, "watch_every": 5, "epochs": 3, "negatives": "model", "objectives": ("triplet",)}
    whole, interrupted = new_run(concept_pairs(120), **changes), new_run(concept_pairs(120), **changes)
    assert train_here(whole).status == "done"
    interruption, stepped = threading.Event(), worker.RunReporter.stepped

    def interrupt(reporter, done, control):
        if done == step:
            interruption.set()
        stepped(reporter, done, control)

    if step == 0:
        interruption.set()
    with monkeypatch.context() as patch:
        patch.setattr(worker.RunReporter, "stepped", interrupt)
        patch.setattr(worker, "_give_way", lambda: None)
        assert worker.main([str(interrupted.path)], interruption) == 0
    state = interrupted.state()
    assert (state.status, state.step, interrupted.has_model) == ("interrupted", step, False)
    assert [path.name for path in interrupted.checkpoints_folder.glob("checkpoint-*")] == ["checkpoint-6"][:step]
    runs.resume(interrupted)
    assert train_here(interrupted).status == "done"
    assert _weights(interrupted) == _weights(whole)
    assert [_stripped(event) for event in interrupted.events()] == [_stripped(event) for event in whole.events()]


def test_a_process_that_is_killed_between_its_last_two_writes_has_what_it_continues_from(
    new_run, train_here, monkeypatch
):
    """The checkpoints go only once the state says "done"."""
    from components.training.run_folder import RunFolder

    run = new_run(concept_pairs(120), max_steps=3)
    written = []

    def write(folder, state):
        written.append((state.status, folder.checkpoints_folder.is_dir()))
        write_state(folder, state)

    write_state = RunFolder.write_state
    monkeypatch.setattr(RunFolder, "write_state", write)
    assert train_here(run, checkpoint_seconds=0).status == "done"
    assert written[-1] == ("done", True)
    assert not run.checkpoints_folder.exists()


def test_a_full_disk_interrupts_a_run_and_its_last_checkpoint_stays(new_run, train_here, monkeypatch):
    """The third checkpoint finds no room, as torch says it; with room the run ends like one that had it from the start."""
    import torch

    from components.training import runs

    changes = {"max_steps": 5, "evaluate_every": 2}
    whole, run = new_run(concept_pairs(120), **changes), new_run(concept_pairs(120), **changes)
    assert train_here(whole).status == "done"
    save, saved = torch.save, []

    def save_or_not(content, path, *more, **named):
        saved.append(path)
        if "checkpoint-3" in str(path):
            raise RuntimeError(
                "[enforce fail at inline_container.cc:672] . PytorchStreamWriter failed writing file data/0"
            )
        return save(content, path, *more, **named)

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", save_or_not)
        state = train_here(run, checkpoint_seconds=0)
    assert (state.status, state.error) == ("interrupted", runs.DISK_IS_FULL)
    assert (run.checkpoints_folder / "checkpoint-2" / "complete.json").is_file()
    assert any("checkpoint-3" in str(path) for path in saved)
    with pytest.raises(
        runs.RunFailed, match=r"no space left.* it has [\d,.]+ (kB|MB|GB|TB)\. Make room, then continue"
    ):
        runs.follow(run, starts=False)(lambda done, total: None, lambda: False)
    runs.resume(run)
    assert train_here(run).status == "done"
    assert _weights(run) == _weights(whole)


@pytest.mark.parametrize("negatives", ["bm25", "model"])
def test_the_search_for_wrong_answers_can_be_stopped(new_run, train_here, negatives):
    from components.training import runs

    run = new_run(concept_pairs(120), objectives=("triplet",), negatives=negatives, max_steps=2)
    run.ask_to_stop()
    state = train_here(run)
    assert (state.status, state.error, state.step) == ("stopped", "", 0)
    assert not run.has_model
    runs.resume(run)
    assert train_here(run).status == "done"


def test_a_cross_encoder_searches_with_one_encoder(new_run, train_here, monkeypatch):
    """Both sides of the split, their queries and their answers: one encoder embeds them all."""
    from components.training import model

    build, built = model.mining_model, []
    monkeypatch.setattr(model, "mining_model", lambda *arguments: built.append(build(*arguments)) or built[-1])
    run = new_run(concept_pairs(120), objectives=("relevance", "regression"), negatives="model", max_steps=2)
    assert train_here(run).status == "done"
    assert len(built) == 1


def test_an_error_of_the_process_is_one_line(new_run, train_here):
    run = new_run(model="/no/such/folder")
    state = train_here(run)
    assert state.status == "failed"
    assert state.error.startswith("The folder '/no/such/folder' does not exist.")
    assert "\n" not in state.error


def check_divergence(run, state, words):
    assert state.status == "failed"
    assert state.error.startswith(words)
    assert [event["code"] for event in run.events("notice")] == ["diverged"]


def test_a_loss_that_is_no_number_ends_the_run(new_run, train_here, monkeypatch):
    from components.training import objectives

    build_loss = objectives.build_loss

    def broken(*arguments):
        loss = build_loss(*arguments)
        loss.scale = float("nan")
        return loss

    monkeypatch.setattr(objectives, "build_loss", broken)
    run = new_run(epochs=1)
    check_divergence(run, train_here(run), "The loss of step 1 is not a finite number.")
    assert run.events("loss")[-1]["loss"] is None


def test_vectors_that_are_no_numbers_are_told_as_a_divergence(new_run, train_here, monkeypatch):
    from sentence_transformers import SentenceTransformer

    encode, calls = SentenceTransformer.encode, []

    def broken(*arguments, **options):
        calls.append(1)
        return encode(*arguments, **options) * (np.nan if len(calls) > 1 else 1.0)  # not before training

    monkeypatch.setattr(SentenceTransformer, "encode", broken)
    run = new_run(epochs=1)
    check_divergence(run, train_here(run), "The model has diverged")


def test_a_projection_is_saved_as_a_dense_module(new_run, train_here):
    from sentence_transformers import SentenceTransformer

    from components.model.backend import Backend

    run = new_run(max_steps=4, projection=16, adapter=True)
    assert train_here(run).status == "done"
    published = SentenceTransformer(str(run.model_folder), device="cpu")
    vectors = published.encode(["ask1 ask2", "say5"])
    backend = Backend.load(str(run.model_folder), device_name="cpu")
    assert vectors.shape == (2, 16)
    assert backend.own_pooling == "own"
    ours = backend.embed(["ask1 ask2", "say5"], options=backend.embed_options(precision="float32"))[0, 0]
    np.testing.assert_allclose(ours[:, :16], vectors, atol=1e-5)
    assert not ours[:, 16:].any()


def test_a_cross_encoder_learns_which_texts_belong_together(new_run, train_here):
    from sentence_transformers import CrossEncoder

    run = new_run(concept_pairs(120), objectives=("relevance",), adapter=True, epochs=1)
    assert train_here(run).status == "done"
    published = CrossEncoder(str(run.model_folder), device="cpu")
    assert published.num_labels == 1
    record = run.record()
    assert set(record["after"]) == {"validation_loss", "accuracy"}
    data, split = run.data()
    from components.training.negatives import training_rows

    rows = training_rows(run.settings(), "relevance", data.take(split.held_out))
    pairs = list(zip(*rows.columns.values(), strict=True))
    import torch

    logits = published.predict(pairs, activation_fn=torch.nn.Identity())
    assert np.mean((logits > 0) == (rows.labels == 1)) == pytest.approx(record["after"]["accuracy"])
    assert {path.name for path in (run.path / "adapter").iterdir()} >= {
        "adapter_model.safetensors",
        "adapter_config.json",
        "head.safetensors",
    }


def test_the_classifier_of_softmax_is_measured(new_run, train_here, monkeypatch):
    import torch

    from components.training import held_out
    from components.training.data import TrainingData

    predict, accuracies = held_out._classes, []

    def predicted_by_hand_too(model, classifier, first, second):
        u, v = (torch.tensor(model.encode(list(side), show_progress_bar=False)) for side in (first, second))
        with torch.no_grad():
            by_hand = classifier.classifier(torch.cat([u, v, (u - v).abs()], dim=1)).argmax(dim=1).numpy()
        predicted = predict(model, classifier, first, second)
        np.testing.assert_array_equal(predicted, by_hand)
        accuracies.append(np.mean(by_hand == data.labels[run.data()[1].held_out]))
        return predicted

    monkeypatch.setattr(held_out, "_classes", predicted_by_hand_too)

    words = [
        (f"ask{number}", f"say{number if label else (number + 5) % 40}", label)
        for number in range(40)
        for label in (0, 1)
    ]
    first, second, labels = zip(*words, strict=True)
    data = TrainingData(
        "labelled",
        "classes",
        {
            "sentence1": tuple(first),
            "sentence2": tuple(f"{text} {other}" for text, other in zip(second, first, strict=True)),
        },
        np.array(labels, np.int64),
        ("different", "same"),
    )
    run = new_run(data, objectives=("softmax",), epochs=1)
    assert train_here(run).status == "done"
    assert run.record()["before"]["accuracy"] == pytest.approx(accuracies[0])
    assert run.record()["after"]["accuracy"] == pytest.approx(max(accuracies[1:]))  # the best step is kept
    assert json.loads((run.model_folder / "modules.json").read_text())[-1]["path"] == "1_Pooling"


@pytest.mark.parametrize(
    ("objective", "negatives", "measures"),
    [
        ("contrastive", "random", {"recall@1", "recall@10", "unrelated_cosine"}),
        ("online-contrastive", "random", {"recall@1", "recall@10", "unrelated_cosine"}),
        ("triplet", "model", {"recall@1", "recall@10", "unrelated_cosine"}),
        ("cosine", "random", {"recall@1", "recall@10", "unrelated_cosine"}),
        ("simcse", "none", {"recall@1", "recall@10", "unrelated_cosine"}),
        ("tsdae", "none", {"recall@1", "recall@10", "unrelated_cosine"}),
        ("regression", "model", {"spearman"}),
    ],
)
def test_every_objective_runs_and_is_measured(new_run, train_here, objective, negatives, measures):
    run = new_run(concept_pairs(120), objectives=(objective,), negatives=negatives, max_steps=2, watch_every=1)
    state = train_here(run)
    assert (state.error, state.status, state.step) == ("", "done", 2)
    assert set(run.record()["after"]) == {"validation_loss", *measures}
    assert run.watch_steps() == (0, 1, 2)
    assert {event["objective"] for event in run.events("loss")} == {objective}


def test_a_collapse_is_recognised(new_run, train_here):
    """Correct pairs alone, pulled together: in the end all texts have one vector."""
    run = new_run(objectives=("contrastive",), negatives="none", learning_rate=3e-2, epochs=3)
    assert train_here(run).status == "done"
    evaluations = run.events("evaluation")
    assert evaluations[0]["unrelated_cosine"] < 0.9
    assert evaluations[-1]["unrelated_cosine"] > 0.95
    assert "collapse" in [event["code"] for event in run.events("notice")]


def test_a_damaged_start_is_kept_to_compare_with(new_run, train_here, concept_model, monkeypatch):
    """The saved start has the vectors that were watched at step 0, and the record what the model could do before."""
    from components.analysis.pooling import pool
    from components.model.backend import Backend
    from components.model.catalog import parse_model

    run = new_run(damage=0.8, max_steps=2, adapter=True, projection=8)
    assert train_here(run).error == ""
    monkeypatch.setattr("components.model.catalog.runs_folder", lambda: run.path.parent)
    start = Backend.load(parse_model(f"run:{run.name}:start").key, device_name="cpu")
    sentences = list(run.settings().watch)
    np.testing.assert_allclose(pool(start.trace(sentences), "mean"), run.watch(0).sentences, atol=1e-5)
    whole = new_run(adapter=True, projection=8, max_steps=1)
    assert train_here(whole).error == ""
    record = run.record()
    assert record["undamaged"]["unrelated_cosine"] == pytest.approx(whole.record()["before"]["unrelated_cosine"])
    assert record["before"]["unrelated_cosine"] != pytest.approx(record["undamaged"]["unrelated_cosine"], abs=1e-4)
    assert whole.record()["undamaged"] is None
    assert not whole.start_folder.exists()
