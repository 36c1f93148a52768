"""Data to train on: the rows, how long their texts are, what was left out, the split, and the wrong answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components import numbers
from components.arrays import Float32, Int64
from components.charts import training as charts
from components.retrieval.corpora.columns import called
from components.shown_code.arrays import Input, columns
from components.shown_code.code import NoCode
from components.training import data as training_data
from components.training import negatives
from components.training.objectives import OBJECTIVES
from dashboard.jobs import requests
from dashboard.ui import figures, messages
from dashboard.ui.waiting import frame
from dashboard.ui.wording import counted
from dashboard.views.training import plan as plans
from dashboard.views.training import row_cards, row_source
from dashboard.views.training.plan import Plan

if TYPE_CHECKING:
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.shown_code.arrays import Kind
    from components.training.data import TrainingData
    from components.training.settings import TrainingSettings

SIDES = {
    "sentence": "sentence",
    "anchor": "query",
    "positive": "correct answer",
    "negative": "wrong answer",
    "sentence1": "first text",
    "sentence2": "second text",
    "label": "label",
}
ROWS_SHOWN, EXAMPLES = 50, 6


def side(column: str) -> str:
    """What a column of texts is called: "wrong answer 2" for a further wrong answer."""
    name, _, number = column.partition("_")
    return f"{SIDES[name]} {number}" if number else SIDES[name]


def data(backend: Backend) -> None:
    """The first rows as the model learns from them, beside the plan; below them the texts' lengths and the split."""
    with plans.beside(backend) as plan:
        if plan is None:
            return
        for warning in (*plan.data.warnings, *negatives.few_answers(plan.settings, plan.data, plan.split)):
            st.warning(messages.escape(warning), icon=":material/swap_horiz:")
        with frame.figure("training_examples"):
            _cards(backend, plan, _examples(backend, plan))
    is_joint = OBJECTIVES[plan.settings.objectives[0]].models == "cross-encoder"
    figures.subheader("All rows")
    _split(plan)
    _columns(plan.data)
    with frame.figure("training_lengths"):
        (_joint_histogram if is_joint else _histogram)(backend, plan, _lengths(backend, plan.data))
    _rows(plan)


def _cards(backend: Backend, plan: Plan, table: pd.DataFrame) -> None:
    """The finding and the first rows. Raises NotReady while tokens are counted."""
    settings = plan.settings
    lengths = _lengths(backend, plan.data)
    if OBJECTIVES[settings.objectives[0]].models == "cross-encoder":
        lengths = {
            " ".join(names): values
            for names, values in training_data.joint_lengths(lengths, backend.tokenization).items()
        }
    cut = sum(int(np.count_nonzero(values > settings.max_length)) for values in lengths.values())
    count = sum(map(len, lengths.values()))
    objective = settings.objectives[0]
    figures.above(
        row_cards.finding(settings, table, plan.rows_of_each[0], len(plan.split.held_out), cut, count),
        key="training_cards",
        table=lambda: table,
        code=NoCode("There is no code for it: these are rows as they are."),
        title="What the model learns from",
        read="Cards beside each other are a row. A blue line joins texts whose vectors are pulled together; a dashed orange "
        "one leads to a text that is pushed away. Where rows have a label or a score, the model learns that. "
        f"{OBJECTIVES[objective].idea}",
        not_shown="Rows that are held out: they only measure what was learnt. Other rows of a batch, which change with each "
        "step.",
        place=".bi-rows",
    )
    has_wrong = "wrong answer" in table.columns or "does not belong" in set(table.get("label", ()))
    is_own = plan.data.kind in {"triplets", "labelled", "scored"}
    found = plans.NEGATIVES_NAMES[settings.negatives].lower() if has_wrong and not is_own else ""
    row_cards.draw(table, objective, settings.data, found)


def _lengths(backend: Backend, rows: TrainingData) -> dict[str, Int64]:
    tokenization = backend.tokenization

    def count(_: ReportProgress, is_stopped: IsStopped) -> dict[str, Int64]:
        return training_data.token_lengths(rows, tokenization, is_stopped)

    key = ("training lengths", rows.sha256, backend.spec.key, backend.revision)
    return requests.prepared(key, f"Counting the tokens of {len(rows):,} rows", count, "training_lengths")


_CUT_TEXTS = "Whether what is cut would have mattered: often the beginning of a text says what it is about."


def _joint_histogram(backend: Backend, plan: Plan, lengths: dict[str, Int64]) -> None:
    """A cross-encoder reads both texts in one row of tokens, so that its maximum length counts them together."""
    cut_off = plan.settings.max_length
    together = {
        f"{side(first)} and {side(second)}": values
        for (first, second), values in training_data.joint_lengths(lengths, backend.tokenization).items()
    }
    too_long = sum(int(np.count_nonzero(values > cut_off)) for values in together.values())
    figures.figure(
        charts.length_histogram(
            together,
            cut_off,
            f"Lengths of both texts in {row_source.name_of(plan.data)}",
            "pairs",
            "both texts together",
        ),
        key="training_lengths",
        code=_read(backend, plan.data).lengths(*(f"texts[0], texts[{other}]" for other in range(1, len(lengths)))),
        alt=f"Histogram of the lengths in tokens of both texts of {len(plan.data):,} rows, cut off at {cut_off} tokens",
        message=(
            f"A cross-encoder reads both texts together: **{cut_off} tokens are the maximum for the two**, special tokens "
            "included. "
            + (
                f"{counted(too_long, 'pair')} of {len(plan.data) * len(together):,} will be truncated."
                if too_long
                else "No pair is longer: nothing will be truncated."
            )
        ),
        read=f"Each bar counts the pairs of a length, in tokens. What is longer than {cut_off} is cut.",
        not_shown=_CUT_TEXTS,
        table=lambda: pd.DataFrame({**together, **_texts(plan.data)}),
    )


def _histogram(backend: Backend, plan: Plan, lengths: dict[str, Int64]) -> None:
    cut_off = plan.settings.max_length
    too_long = {name: int(np.count_nonzero(values > cut_off)) for name, values in lengths.items()}
    names = {name: row_cards.named(plan.settings.data, side(name)) for name in lengths}  # as on the cards above
    truncated = [f"{counted(count, names[name])}" for name, count in too_long.items() if count]
    figures.figure(
        charts.length_histogram(
            {names[name]: values for name, values in lengths.items()},
            cut_off,
            f"Lengths in {row_source.name_of(plan.data)}",
        ),
        key="training_lengths",
        code=_read(backend, plan.data).lengths(*(f"texts[{column}]" for column in range(len(lengths)))),
        alt=f"Histogram of the lengths in tokens of {len(plan.data):,} rows, cut off at {cut_off} tokens",
        message=(
            f"{' and '.join(truncated)} of {len(plan.data):,} have more than {cut_off} tokens and will be truncated."
            if truncated
            else f"No text is longer than {cut_off} tokens: nothing will be truncated."
        ),
        read=f"Each bar counts the texts of a length, in tokens. What is longer than {cut_off} is cut.",
        not_shown=_CUT_TEXTS,
        table=lambda: pd.DataFrame({**{side(name): values for name, values in lengths.items()}, **_texts(plan.data)}),
    )


def _texts(rows: TrainingData) -> dict[str, Sequence[str]]:
    """The columns of the table of lengths that hold the texts."""
    return {f"{side(name)}, text": texts for name, texts in rows.columns.items()}


def _read(backend: Backend, rows: TrainingData) -> Input:
    """The texts of that table, for its code: `texts` [column][row]."""
    names = [f"texts_{number}" for number in range(len(rows.columns))]
    of_table: dict[str, tuple[str, Kind]] = {
        name: (column, "texts") for name, column in zip(names, _texts(rows), strict=True)
    }
    return Input(
        backend,
        (),
        prompt="",
        source=(*columns("training_lengths", of_table), f"texts = [{', '.join(names)}]"),
    )


def _split(plan: Plan) -> None:
    split, rows = plan.split, plan.data
    unused = len(rows) - len(split.train) - len(split.held_out)
    dropped = sum(rows.dropped.values())
    left = "".join(f", {count:,} {what}" for count, what in ((unused, "not used"), (dropped, "dropped")) if count)
    text = (
        "No text is in both parts."
        if split.overlap == 0
        else f"**{counted(split.overlap, 'text')} in both parts:** the held-out part says too much."
    )
    together = (
        "No two rows share a text."
        if split.groups == len(rows)
        else f"Rows that share a text, in any column, stay together: there are {counted(split.groups, 'group')}."
    )
    st.markdown(
        f"**{len(split.train):,} rows to train, {len(split.held_out):,} held out{left}.** {text} {together} "
        "The held-out part is only for measuring."
    )
    if dropped:
        lines = "\n".join(
            f"- {counted(count, 'row')}: {messages.escape(reason)}" for reason, count in sorted(rows.dropped.items())
        )
        st.markdown(f"**Dropped rows**\n{lines}")


def _columns(rows: TrainingData) -> None:
    """Which column was read as what."""
    parts = [
        f"{side(ours)} = {theirs if called(theirs) == theirs else f'column “{messages.escape(theirs)}”'}"
        for ours, theirs in rows.read_from.items()
    ]
    labels = f" Labels: {', '.join(map(messages.escape, rows.label_names))}." if rows.label_names else ""
    if rows.kind == "scored":
        labels = f" {rows.scores_in_words}"
    st.caption(f"Recognised as {rows.kind}" + (f": {'; '.join(parts)}." if parts else ".") + labels)


def _examples(backend: Backend, plan: Plan) -> pd.DataFrame:
    """Some of the rows that the first objective learns from, with their wrong answers. Raises NotReady."""
    settings, key = plan.settings, plan.settings.objectives[0]

    def make(report_progress: ReportProgress, is_stopped: IsStopped) -> pd.DataFrame:
        train = plan.data.take(plan.split.train)
        vectors = _vectors_of(backend, settings, is_stopped)
        return _sample(negatives.training_rows(settings, key, train, vectors, report_progress, is_stopped))

    # Nothing but what the rows depend on: another number of epochs must not cost a forward pass.
    by_model = (backend.spec.key, backend.revision, settings.pooling, settings.max_length)
    model = by_model if settings.negatives == "model" else None
    name = ("training rows", key, *plans.split_key(settings, plan.data), settings.negatives, model)
    title = f"Finding wrong answers for {len(plan.split.train):,} rows"
    return requests.prepared(name, title, make, "training_examples")


def _vectors_of(backend: Backend, settings: TrainingSettings, is_stopped: IsStopped) -> negatives.Embed:
    """How the model embeds texts before training, with the run's pooling and length, for wrong answers it finds similar."""
    max_length = settings.max_length if settings.max_length < backend.own_max_length else None

    def vectors(texts: Sequence[str], role: negatives.Role) -> Float32:
        options = backend.embed_options([backend.facts.layers], [settings.pooling], max_length, role=role)
        return backend.embed(texts, options=options, is_stopped=is_stopped)[0, 0]

    return vectors


def _sample(rows: TrainingData) -> pd.DataFrame:
    """A few rows; of two labels as many of each."""
    numbers = np.random.default_rng(0).permutation(len(rows))
    if rows.label_names:
        assert rows.labels is not None
        labels = rows.labels[numbers]
        present = np.unique(labels)
        each = -(-EXAMPLES // len(present))
        numbers = np.concatenate([numbers[labels == label][:each] for label in present])
    return _frame(rows.take(numbers[:EXAMPLES]))


def _frame(rows: TrainingData) -> pd.DataFrame:
    """Rows as a table for people."""
    frame = pd.DataFrame({side(name): texts for name, texts in rows.columns.items()})
    if rows.labels is not None and rows.label_names:
        frame["label"] = [rows.label_names[int(number)] for number in rows.labels]
    elif rows.labels is not None:
        low, high = rows.score_range
        frame["score"] = [numbers.as_read(float(f"{low + (high - low) * float(score):.6g}")) for score in rows.labels]
    return frame


def _rows(plan: Plan) -> None:
    """The first rows as they were read, and which part each belongs to."""
    rows, split = plan.data, plan.split
    part = np.full(len(rows), "not used", dtype=object)
    part[split.train], part[split.held_out] = "train", "held out"
    count = min(ROWS_SHOWN, len(rows))
    frame = _frame(rows.take(np.arange(count)))
    frame["part"] = part[:count]
    with st.expander(f"The first {count} of {counted(len(rows), 'row')}, as they were read", icon=":material/table:"):
        figures.whole_texts(frame, "training_rows")
