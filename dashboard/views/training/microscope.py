"""What a run makes of a few watch sentences, step by step: their similarity, and a word's curves over the layers.

Each pair of figures has one scale: the step before training on the left, the chosen one on the right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pandas as pd
import streamlit as st

from components.arrays import Float64
from components.charts import curves, heatmap
from components.errors import UserError
from components.training import before_after
from components.training.before_after import WordCurves, repeated_words
from components.training.run_folder import RunFolder, WatchVectors
from components.training.settings import WATCH_SENTENCES
from dashboard import caching, state
from dashboard.jobs import progress
from dashboard.ui import controls, figures, messages

LIVE_SECONDS = 4.0  # between two drawings while the run is at work
# The groups of the default watch sentences: three of a money bank, three of a river bank, two of benches.
WATCH_GROUPS = ("money", "money", "money", "river", "river", "river", "bench", "bench")


def options(run: RunFolder) -> None:
    """The controls that are needed less often: the layer of the matrices, and the word of the curves."""
    steps, words = run.watch_steps(), repeated_words(run.watch_tokens())
    if not steps:
        return
    try:
        layers = len(run.watch(steps[0]).sentences)
    except UserError:
        return  # the view says so below
    controls.number("training_layer", "Layer of the matrices", 0, layers - 1, layers - 1, caching.glossary()["layer"])
    if len(words) > 1:
        controls.pick("watch_word", "Word of the curves", {word: word for word in words}, default=words[0])


def draw(run: RunFolder, *, follows: bool, is_over: Callable[[], bool]) -> None:
    """The watch sentences before training and at the chosen step; while the run `follows` on, at the newest."""
    steps = run.watch_steps()
    if len(steps) < 2 and not follows:
        return
    st.subheader("Under the microscope", anchor=False)
    step = None
    if len(steps) > 1:
        kept = (run.record() or {}).get("best_step")
        names = {number: f"{number:,} (kept)" if number == kept else f"{number:,}" for number in steps}
        step = controls.bind(
            "training_step",
            st.select_slider,
            "Step",
            options=names,
            default=steps[-1],
            from_widget=lambda chosen: None if chosen == steps[-1] else chosen,
            help="Go back through the steps at which the watch sentences were embedded.",
        )
    if follows and state.get("training_step") is None:
        # The page is drawn again once there is a step to go back to: the slider is not part of what is drawn repeatedly.
        has_slider = len(steps) > 1
        progress.until(
            lambda: is_over() or (not has_slider and len(run.watch_steps()) > 1), lambda: _at(run, None), LIVE_SECONDS
        )
    else:
        _at(run, step)


def _at(run: RunFolder, step: int | None) -> None:
    """The figures of a step; None for the newest."""
    steps = run.watch_steps()
    if not steps:
        st.caption("The watch sentences are embedded as soon as the model is loaded.")
        return
    try:
        before, now = run.watch(steps[0]), run.watch(steps[-1] if step not in steps else step)
    except UserError as problem:
        messages.explain(problem, "reading the watch sentences")
        return
    _sentences(run, before, now)
    _word(run, before, now)


def _sentences(run: RunFolder, before: WatchVectors, now: WatchVectors) -> None:
    sentences = run.settings().watch
    last = len(before.sentences) - 1
    layer = min(last, last if state.get("training_layer") is None else state.get("training_layer"))
    groups = groups_of(sentences)
    change = before_after.similarity_change(
        before.sentences[layer], now.sentences[layer], groups or ("all",) * len(sentences)
    )
    matrices(change, sentences, (before, now), "watch_matrix")
    st.markdown(f":material/insights: {_gap(change, groups is not None)}")


def matrices(
    change: before_after.SimilarityChange, sentences: Sequence[str], steps: tuple[WatchVectors, WatchVectors], key: str
) -> None:
    """Both similarity matrices of the watch sentences, on one scale."""
    both = (change.base, change.tuned)
    limits = heatmap.off_diagonal_limits(*both)
    for column, matrix, vectors, name in zip(st.columns(2, gap="large"), both, steps, ("before", "now"), strict=True):
        with column:
            figures.figure(
                heatmap.similarity_heatmap(matrix, sentences, _when(vectors), limits=limits),
                key=f"{key}_{name}",
                alt=f"Cosines of {len(sentences)} watch sentences, {_when(vectors).lower()}",
                table=partial(_matrix_table, matrix),
            )


def _matrix_table(matrix: Float64) -> pd.DataFrame:
    """A square matrix as a table, numbered from 1."""
    return pd.DataFrame(matrix.round(5), columns=range(1, len(matrix) + 1))


def _curve_table(item: WordCurves) -> pd.DataFrame:
    return pd.DataFrame(item.values.T.round(5), columns=list(item.names)).rename_axis("layer").reset_index()


def _when(vectors: WatchVectors) -> str:
    return "Before training" if vectors.step == 0 else f"After step {vectors.step:,}"


def _gap(change: before_after.SimilarityChange, has_groups: bool) -> str:
    """Mean cosine within and between the groups of sentences, before and now."""
    before, now = change.base_means, change.tuned_means
    if not has_groups:
        return f"Mean cosine of all pairs: {before.within:.2f} before training, **{now.within:.2f}** here."
    return (
        f"Sentences of one topic: mean cosine {before.within:.2f} before training, **{now.within:.2f}** here; of different "
        f"topics {before.between:.2f}, **{now.between:.2f}** here. The gap went from {before.gap:.2f} to "
        f"**{round(now.gap, 2) + 0.0:.2f}**."  # no "-0.00"
    )


def groups_of(sentences: Sequence[str]) -> tuple[str, ...] | None:
    """The groups of the default watch sentences; None for others, whose groups are not known."""
    return WATCH_GROUPS if tuple(sentences) == WATCH_SENTENCES else None


def _word(run: RunFolder, before: WatchVectors, now: WatchVectors) -> None:
    if not word_figures(run, before, now, "watch_curves"):
        return
    figures.reading(
        "Both matrices have one colour scale, and both figures of curves one axis. Each curve is the mean over the pairs of "
        "sentences of its two topics. Move the slider to go back through the steps.",
        "How good the model is: these few sentences were chosen for looking, not for measuring. They are never trained on.",
    )


def word_figures(run: RunFolder, before: WatchVectors, now: WatchVectors, key: str) -> bool:
    """The curves of a word over the layers before training and at another step, on one axis; False without such a word."""
    tokens, sentences = run.watch_tokens(), run.settings().watch
    words = repeated_words(tokens)
    if not words:
        return False
    word, groups = chosen_word(words), groups_of(sentences)
    both = [before_after.word_curves(vectors.tokens, tokens, word, groups) for vectors in (before, now)]
    limits = curves.shared_range(*(item.values for item in both))
    columns = st.columns(2, gap="large")
    for column, item, vectors, name in zip(columns, both, (before, now), ("before", "now"), strict=True):
        with column:
            figures.figure(
                curves.layer_curves(
                    item.values, item.names, f"“{word}”, {_when(vectors).lower()}", y_range=limits, mark_extremes=False
                ),
                key=f"{key}_{name}",
                alt=f"Cosine of “{word}” in different sentences over the layers, {_when(vectors).lower()}",
                table=partial(_curve_table, item),
            )
    return True


def chosen_word(words: Sequence[str]) -> str:
    """The word of the curves: the chosen one, or the most frequent."""
    chosen = state.get("watch_word")
    return chosen if chosen in words else words[0]
