"""What a run makes of a few watch sentences, step by step: their similarity, and a word's curves over the layers.

Each pair of figures has one scale: the step before training on the left, the chosen one on the right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pandas as pd
import streamlit as st

from components.analysis.maps import projection
from components.arrays import Float32, Float64
from components.charts import curves, heatmap, scatter, theme
from components.errors import InputError, UserError
from components.numbers import apart, number
from components.shown_code.cosines import watched, word_changed
from components.shown_code.maps import of_watched
from components.training import before_after
from components.training.before_after import WordCurves, repeated_words
from components.training.run_folder import RunFolder, WatchToken, WatchVectors
from components.training.settings import WATCH_SENTENCES
from dashboard import caching, state
from dashboard.ui import controls, figures, messages
from dashboard.ui.waiting import progress
from dashboard.ui.wording import counted

MAP_HEIGHT = 420
MAP = projection.MapOptions("pca")
MAPS_READ = (
    "In the maps each point is a token of the watch sentences in the last layer; words of several sentences have labels. They "
    "show the two directions in which these vectors vary most (PCA), and the right one is turned and mirrored so that it lies "
    "as close to the left one as possible."
)
MAPS_DO_NOT_SHOW = "Distances between the two maps: each has directions of its own, and both show only two of hundreds."
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
    figures.subheader("Under the microscope")
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
        before, now = run.watch_at(steps[0], steps[-1] if step not in steps else step)
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
    matrices(run, change, sentences, (before, now), layer, "watch_matrix")
    st.markdown(f":material/insights: {_gap(change, groups is not None)}")


def matrices(
    run: RunFolder,
    change: before_after.SimilarityChange,
    sentences: Sequence[str],
    steps: tuple[WatchVectors, WatchVectors],
    layer: int,
    key: str,
) -> None:
    """Both similarity matrices of the watch sentences, on one scale."""
    both = (change.base, change.tuned)
    limits = heatmap.off_diagonal_limits(*both)
    for column, matrix, vectors, name in zip(st.columns(2, gap="large"), both, steps, ("before", "now"), strict=True):
        with column:
            figures.figure(
                heatmap.similarity_heatmap(matrix, sentences, _when(vectors), dark=controls.is_dark(), limits=limits),
                key=f"{key}_{name}",
                alt=f"Cosines of {len(sentences)} watch sentences, {_when(vectors).lower()}",
                table=partial(_matrix_table, matrix),
                code=watched(run.name, vectors.step, layer),
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
        before_training, here = apart(before.within, now.within)
        return f"Mean cosine of all pairs: {before_training} before training, **{here}** here."
    within, between, within_now, between_now = apart(before.within, before.between, now.within, now.between)
    digits = max(len(text.partition(".")[2]) for text in (within, between, within_now, between_now))
    gap, gap_now = (number(means.gap(digits), digits) for means in (before, now))
    return (
        f"Sentences of one topic: mean cosine {within} before training, **{within_now}** here; of different topics {between}, "
        f"**{between_now}** here. The gap went from {gap} to **{gap_now}**."
    )


def groups_of(sentences: Sequence[str]) -> tuple[str, ...] | None:
    """The groups of the default watch sentences; None for others, whose groups are not known."""
    return WATCH_GROUPS if tuple(sentences) == WATCH_SENTENCES else None


def _word(run: RunFolder, before: WatchVectors, now: WatchVectors) -> None:
    word_figures(run, before, now, "watch_curves")
    token_maps(run, before, now, "watch_map")
    figures.reading(
        "Both matrices have one colour scale, and both figures of curves one axis. Each curve is the mean over the pairs of "
        f"sentences of its two topics. {MAPS_READ} Move the slider to go back through the steps.",
        "How good the model is: these few sentences were chosen for looking, not for measuring. They are never trained on. "
        + MAPS_DO_NOT_SHOW,
    )


def word_figures(run: RunFolder, before: WatchVectors, now: WatchVectors, key: str) -> None:
    """The curves of a word over the layers before training and at another step, on one axis, if one is repeated."""
    tokens, sentences = run.watch_tokens(), run.settings().watch
    words = repeated_words(tokens)
    if not words:
        return
    word, groups = chosen_word(words), groups_of(sentences)
    both = [before_after.word_curves(vectors.tokens, tokens, word, groups) for vectors in (before, now)]
    pairs = before_after.word_pairs(tokens, word, groups)
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
                code=word_changed(run.name, vectors.step, pairs),
            )


def token_maps(run: RunFolder, before: WatchVectors, now: WatchVectors, key: str) -> None:
    """Maps of the watch sentences' tokens in the last layer, before training and at another step, on one scale."""
    tokens, sentences = run.watch_tokens(), run.settings().watch
    words, groups = repeated_words(tokens), groups_of(sentences)
    try:
        maps = _maps(before, now)
    except InputError as problem:
        st.caption(messages.escape(problem.problem))
        return
    texts = scatter.PointTexts(
        # All labels would hide each other; the pointer shows them.
        [token.piece if token.piece in words else "" for token in tokens],
        [f"<b>{theme.plain(token.piece, 40)}</b>: {theme.plain(sentences[token.sentence], 120)}" for token in tokens],
        frozenset({chosen_word(words)} if words else ()),
    )
    colours = scatter.Colours(
        "topic" if groups else "sentence",
        [groups[token.sentence] if groups else str(token.sentence + 1) for token in tokens],
    )
    if groups is not None:
        owners = [token.sentence for token in tokens]
        share = [before_after.same_topic_share(vectors.tokens[-1], owners, groups) for vectors in (before, now)]
        st.markdown(
            f":material/insights: The most similar token of another sentence is of the same topic for {100 * share[0]:.0f} % "
            f"of the tokens before training, **{100 * share[1]:.0f} %** after {_step(now)}."
        )
    start = "Tokens before training, damaged" if run.settings().damage else "Tokens before training"
    titles = (start, f"Tokens after {_step(now)}")
    columns = st.columns(2, gap="large")
    for column, points, title, name in zip(columns, maps, titles, ("before", "now"), strict=True):
        with column:
            figures.figure(
                scatter.token_map(points, texts, colours, title, extent=scatter.fitting(*maps), height=MAP_HEIGHT),
                key=f"{key}_{name}",
                alt=f"Map of {counted(len(tokens), 'token')} of the watch sentences. {title}",
                table=partial(_map_table, tokens, points),
                code=of_watched(run.name, [before.step, now.step][: 1 if name == "before" else 2], MAP, len(tokens)),
            )


def _maps(before: WatchVectors, now: WatchVectors) -> tuple[Float32, Float32]:
    """Maps of the last layer's tokens, [token, 2] each; the second is aligned to the first."""
    first = projection.layer_map(before.tokens[-1], MAP, None)
    return first, projection.layer_map(now.tokens[-1], MAP, first)


def _map_table(tokens: Sequence[WatchToken], points: Float32) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "token": [token.piece for token in tokens],
            "sentence": [token.sentence + 1 for token in tokens],
            "x": points[:, 0].round(5),
            "y": points[:, 1].round(5),
        }
    )


def _step(vectors: WatchVectors) -> str:
    return f"step {vectors.step:,}"


def chosen_word(words: Sequence[str]) -> str:
    """The word of the curves: the chosen one, or the most frequent."""
    chosen = state.get("watch_word")
    return chosen if chosen in words else words[0]
