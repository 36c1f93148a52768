"""What is measured of the compared models: retrieval on the demo, speed, and how alike their layers are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components import numbers
from components.analysis.similarity import cka
from components.charts import curves
from components.retrieval.evaluation import metrics, pair_runs
from components.shown_code import commands
from components.shown_code.code import Command
from dashboard import caching
from dashboard.corpora import current
from dashboard.jobs import embedding, evaluation
from dashboard.jobs.embedding import EmbedRequest
from dashboard.ui import controls, figures, messages
from dashboard.ui.waiting import before_work, frame
from dashboard.ui.wording import POOLING_NAMES

if TYPE_CHECKING:
    from components.analysis.similarity.cka import LayerCKA
    from components.model.backend import Backend
    from components.model.embedding.options import Resolved
    from components.model.trace import Pooling
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.index.folder import VectorIndex
    from dashboard.jobs.evaluation import PairIndexes

PRECISION: Resolved = "float32"
MANY_LAYERS = 13  # of one model: with more, the cells have no numbers


def draw(models: Mapping[str, Backend], every_name: Sequence[str]) -> None:
    """Recall@1 and speed of each model, then CKA of two of them; each as soon as it is there.

    `every_name` has those of models that are not available, or not yet: choices and colours count them too.
    """
    figures.subheader("How well and how fast each model retrieves")
    pairs = demo_pairs()
    count = len(pairs.queries) + len(pairs.documents)
    is_measured = controls.switch(
        "compare_measured",
        "Measure here",
        f"Recall@1 on the demo corpus, sentences per second, and how alike the layers are. Each model embeds {count:,} texts.",
    )
    if not is_measured:  # several large models take minutes of the server's time
        st.caption(
            f"Recall@1 on the demo corpus, sentences per second, and how alike the models' layers are. Each model embeds "
            f"{count:,} texts: seconds for a small one, minutes for a large one without a GPU."
        )
        return
    place = st.container()
    ready, is_waiting = _indexes(models, pairs)
    with place:
        speeds = {} if is_waiting else _speeds({name: models[name] for name in ready})
        if ready:
            _retrieval({name: models[name] for name in ready}, ready, speeds, pairs, every_name)
            messages.cross_encoder_note(list(models.values()))
    figures.subheader("How alike the layers of two models are")
    if len(every_name) < 2:
        st.caption("Choose a second model to compare its layers with these.")
        return
    _layers(models, ready, every_name)


def demo_pairs() -> Pairs:
    """The headlines of the demo corpus with their sentences, the same that Evaluate begins with."""
    key = f" {pair_runs.QUERY_COLUMN}"  # no corpus was chosen
    return caching.pair_sets().get(key, lambda: pair_runs.pairs_of_corpus(current.demo()))


def _indexes(models: Mapping[str, Backend], pairs: Pairs) -> tuple[dict[str, PairIndexes], bool]:
    """The vectors and ranks of the models that are ready, and whether those of others are under way."""
    ready, is_waiting = {}, False
    for number, (name, model) in enumerate(models.items()):
        with frame.figure(f"retrieval_{number}") as figure:
            request = EmbedRequest.of_session(model, exact=True)
            ready[name] = evaluation.pair_indexes(request, pairs, f"compare_{number}")
            before_work.other_layers(request, pairs.documents, f"compare_{number}")
        is_waiting |= figure.not_ready is not None and figure.not_ready.is_under_way
    return ready, is_waiting


def _speeds(models: Mapping[str, Backend]) -> dict[str, tuple[float, bool]]:
    """Sentences per second of the models that are measured, and whether nothing else was at work; one after another."""
    found: dict[str, tuple[float, bool]] = {}
    for number, (name, model) in enumerate(models.items()):
        with frame.figure(f"speed_{number}") as figure:
            found[name] = embedding.speed(model, PRECISION, f"compare_{number}")
        if figure.not_ready is not None:
            break  # the next one would disturb it
    return found


def _retrieval(
    models: Mapping[str, Backend],
    ready: Mapping[str, PairIndexes],
    speeds: Mapping[str, tuple[float, bool]],
    pairs: Pairs,
    every_name: Sequence[str],
) -> None:
    """The table of Recall@1 and speed, and the figure of Recall@1 by depth, of the models that are ready."""
    lines, by_layer = [], {}
    for name, model in models.items():
        layer, pooling, ranks = model.facts.layers, model.own_pooling, ready[name].ranks
        estimate = metrics.interval(metrics.recall(ranks.of(layer, pooling), 1))
        by_layer[name] = np.full(layer + 1, np.nan)  # of a decoder only the last layer gives vectors of texts
        for row in ranks.layers:
            by_layer[name][row] = 100 * metrics.recall(ranks.of(row, pooling), 1).mean()
        measured = speeds.get(name)
        lines.append(
            {
                "model": name,
                "Recall@1 (95 % interval)": f"{100 * estimate.value:.1f} % "
                f"({100 * estimate.low:.1f}–{100 * estimate.high:.1f})",
                "layer and pooling": f"{layer}, {POOLING_NAMES[pooling]}",
                "sentences per second": "" if measured is None else f"{measured[0]:,.0f}{'' if measured[1] else ' *'}",
            }
        )
    figures.plain_table(pd.DataFrame(lines), key="compare_retrieval")
    _about_speed(models, speeds)
    best = {name: int(np.nanargmax(line)) for name, line in by_layer.items()}
    figures.figure(
        curves.depth_curves(
            list(by_layer.values()),
            list(by_layer),
            "Recall@1 at each depth",
            y_title="Recall@1 (%)",
            decimals=1,
            y_range=(-3.0, 103.0),
            styles=[every_name.index(name) for name in by_layer],
        ),
        key="compare_recall",
        code=Command(
            metrics.recall,
            *(
                commands.measured(
                    "evaluate",
                    current.file_of_pairs(current.demo()),
                    model,
                    ready[name].ranks.layers,
                    [model.own_pooling],
                    controls.length_for(model),
                )
                for name, model in models.items()
            ),
        ),
        alt=f"Recall@1 of {len(models)} models at each layer over relative depth",
        message="Best: "
        + "; ".join(
            f"**{messages.escape(name)}** at layer {layer} of {len(by_layer[name]) - 1} ({by_layer[name][layer]:.1f} %)"
            for name, layer in best.items()
        )
        + ".",
        read=f"Each of {len(pairs):,} headlines of the demo corpus searches for its sentence among {len(pairs):,}, by cosine. "
        "Recall@1 is the share that finds it first. Each model uses the pooling that it was published with, or "
        "the mean if it was published without one, at every layer. "
        "Unlike cosines, these heights can be compared.",
        not_shown="How well a model retrieves other texts: the sentences are news, in English, and few. Differences within the "
        "intervals of the table mean nothing.",
        table=lambda: pd.DataFrame(
            [
                {"model": name, "layer": layer, "Recall@1 (%)": round(float(value), 2)}
                for name, line in by_layer.items()
                for layer, value in enumerate(line)
                if not np.isnan(value)
            ]
        ),
    )


def _about_speed(models: Mapping[str, Backend], speeds: Mapping[str, tuple[float, bool]]) -> None:
    text = (
        "Sentences per second: how many sentences of about 20 tokens each model turned into vectors, in float32, one model "
        "after another. Measured on this machine at one moment: on another one, or beside other work, it is different."
    )
    if len(speeds) < len(models):
        text = "The sentences per second are measured once the models' vectors are there, one model after another."
    if any(not was_alone for _, was_alone in speeds.values()):
        text += " * measured beside other work: it will be measured again as soon as no other job runs."
    st.caption(text)


def _layers(models: Mapping[str, Backend], ready: Mapping[str, PairIndexes], names: Sequence[str]) -> None:
    """CKA of all layers of one model with all layers of another, over the sentences of the demo."""
    offered = {f"{a}-{b}": (names[a], names[b]) for a, b in combinations(range(len(names)), 2)}
    chosen = "0-1"
    if len(offered) > 1:
        labels = {key: f"{first} and {second}" for key, (first, second) in offered.items()}
        chosen = controls.pick("cka_pair", "Models", labels, describe=lambda _: "of models", width=420)
    first, second = offered[chosen]
    if first not in ready or second not in ready:
        st.caption("It is computed once the vectors of both models are there.")
        return
    sides = [_side(models[name], ready[name].documents) for name in (first, second)]
    compared = evaluation.result(
        ("layers alike", *(ready[name].documents.folder.name for name in (first, second))),
        f"Comparing the layers of {first} and {second}",
        lambda report_progress, is_stopped: cka.layer_cka(
            _vectors(ready[first].documents, sides[0]), _vectors(ready[second].documents, sides[1])
        ),
        "compare_cka",
        short=True,
    )
    rows, columns = ([str(layer) for layer in side.layers] for side in sides)
    poolings = " and ".join(dict.fromkeys(POOLING_NAMES[side.pooling].lower() for side in sides))
    figures.matrix(
        compared.debiased,
        rows,
        columns,
        f"Layers of {first} and {second}",
        key="compare_cka",
        alt=f"Heatmap of the CKA of {len(rows)} layers of {first} with {len(columns)} layers of {second}",
        code=Command(cka.layer_cka),
        label_column=f"layer of {first}",
        rows=f"layer of {first}",
        columns=f"layer of {second}",
        value="similarity (CKA)",
        limits=(0.0, 1.0),
        show_values=len(columns) <= MANY_LAYERS,
        upright=False,
        message=_message(compared, (first, second), sides),
        read=f"Each cell says how alike a layer of {messages.escape(first)} (rows) and one of {messages.escape(second)} "
        f"(columns) arrange the same {compared.tokens:,} sentences, by {poolings} pooling: 1 is the same arrangement apart "
        "from rotation and scale, 0 is no more than unrelated vectors reach. Models of any size and width can be compared. A "
        "bright diagonal means that both go through similar stages at the same depth. This is linear **CKA** "
        "([Kornblith et al. 2019](https://arxiv.org/abs/1905.00414)) without its bias for few texts "
        "([Nguyen et al. 2021](https://arxiv.org/abs/2010.15327)).",
        not_shown="A relation that is not linear, and which of the two is better. A few directions with large variance, "
        "such as the length of a text, can alone make two layers look alike.",
    )


@dataclass(frozen=True)
class LayersOf:
    """The vectors of a model at some layers by one pooling."""

    layers: Sequence[int]
    pooling: Pooling


def _side(model: Backend, index: VectorIndex) -> LayersOf:
    """Which vectors of a model are compared: the mean of the tokens where it has that, at all layers of the index."""
    pooling: Pooling = "mean" if "mean" in model.poolings else model.own_pooling
    return LayersOf(index.info.options.layers, pooling)


def _vectors(index: VectorIndex, side: LayersOf) -> np.ndarray:
    """The vectors of an index at all layers, float32 [layer, sentence, dim]."""
    return np.stack([index.engine(layer, side.pooling).vectors for layer in side.layers])


def _message(compared: LayerCKA, names: tuple[str, str], sides: Sequence[LayersOf]) -> str:
    """How alike the last layers are, and which layers are most alike, in words; empty where a value is not known."""
    values = compared.debiased
    if np.isnan(values).any():
        return ""
    row, column = divmod(int(values.argmax()), values.shape[1])
    of_last, highest = numbers.apart(values[-1, -1], values[row, column])
    return (
        f"The last layers have a similarity of **{of_last}**. Most alike ({highest}) are layer "
        f"{sides[0].layers[row]} of {messages.escape(names[0])} and layer {sides[1].layers[column]} of "
        f"{messages.escape(names[1])}."
    )
