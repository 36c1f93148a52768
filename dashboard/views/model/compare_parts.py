"""The parts of the compared models: parameters by kind of part, and what each encoder is."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from components.charts import bars
from components.model.architecture.parameters import totals_by_part
from components.shown_code.parameters import parameters_of
from dashboard.ui import figures, messages, wording

if TYPE_CHECKING:
    from components.model.backend import Backend


def draw(models: Mapping[str, Backend]) -> None:
    """Bars of the parameters, then a table of the models' properties."""
    totals = {name: totals_by_part(model.parameter_parts) for name, model in models.items()}
    title = "Where the parameters are"
    is_same = len(totals) > 1 and len({tuple(counts.items()) for counts in totals.values()}) == 1
    with st.expander(f"{title}: no difference") if is_same else nullcontext():
        _parameters(models, totals, title)
    figures.subheader("What each model is")
    properties = _properties(models)
    same = (properties[list(models)].nunique(axis=1) == 1) & (len(models) > 1)
    figures.whole_texts(properties[~same], key="compare_properties", scrolls=False)
    if same.any():
        with st.expander(f"No difference ({same.sum()})"):
            figures.whole_texts(
                properties[same].iloc[:, :2].set_axis(["property", "each model"], axis=1), "compare_same", False
            )


def _parameters(models: Mapping[str, Backend], totals: Mapping[str, Mapping[str, int]], title: str) -> None:
    figures.figure(
        bars.models_by_part(list(totals), list(totals.values()), title),
        key="compare_parameters",
        code=parameters_of(models, by_kind=True),
        alt=f"Bars of the parameters of {len(models)} models, by part",
        message=_message(totals),
        read="Each bar is a model, each colour a kind of part. Embeddings are the tables of layer 0, most of it one vector for "
        "each piece of the vocabulary. Most of them are looked up, which costs hardly any time (a projection to the model's "
        "width, as in ELECTRA and ALBERT, is computed); attention and feed-forward compute for every token. Norms have few "
        "parameters.",
        not_shown="Heads for a task, such as that of a cross-encoder or the Dense layers of a sentence encoder: only the "
        "encoder is counted. Blocks that share their weights count once.",
        table=lambda: pd.DataFrame(
            [
                {"model": name, "part": part, "parameters": count}
                for name, counts in totals.items()
                for part, count in counts.items()
            ]
        ),
    )


def _message(totals: Mapping[str, Mapping[str, int]]) -> str:
    """How large each model is, and the share of its embeddings."""
    whole = {sum(counts.values()) for counts in totals.values()}
    if len(totals) > 1 and len(whole) == 1 and len({counts["embeddings"] for counts in totals.values()}) == 1:
        (count,), (first, *_) = whole, totals.values()
        who = "Both" if len(totals) == 2 else "All"
        share = f"{100 * first['embeddings'] / count:.0f} %"
        return f"{who} have {wording.millions(count)} parameters, {share} of them in the embeddings."
    parts = [
        f"**{messages.escape(name)}** has {wording.millions(sum(counts.values()))} parameters, "
        f"{100 * counts['embeddings'] / sum(counts.values()):.0f} % of them in the embeddings"
        for name, counts in totals.items()
    ]
    return "; ".join(parts) + "."


def _vector_in_words(model: Backend) -> str:
    """How a model makes a vector of a text, and where it was published without one, what is taken here."""
    pooling = wording.POOLINGS_EXPLAINED[model.own_pooling]
    if model.own_pooling == "own" or (model.sentence_config.pooling and not model.is_cross_encoder):
        return pooling
    return f"none of its own; here: {pooling}"


def _properties(models: Mapping[str, Backend]) -> pd.DataFrame:
    """A line for each property, a column for each model."""
    columns: dict[str, dict[str, str]] = {}
    for name, model in models.items():
        facts = model.facts
        blocks, structure = {"Width": f"{facts.hidden_size:,}"}, {}
        if model.structure.has_blocks:
            feed_forward = f"{facts.feed_forward_size:,} in the feed-forward part"
            blocks = {
                "Attention heads": f"{facts.heads} in each block",
                "Width": f"{facts.hidden_size:,}; {feed_forward}",
            }
            structure = wording.structure_in_words(model.structure)
        columns[name] = {
            "Published": "not known" if model.spec.year is None else str(model.spec.year),
            "Architecture": model.structure.title,
            "Blocks": f"{facts.layers}",
            **blocks,
            "Longest input": wording.counted(facts.max_positions, "token")
            + (
                f", of which {model.own_max_length:,} are read"
                if 0 < (model.own_max_length or 0) < facts.max_positions
                else ""
            )
            + ("" if model.structure.has_blocks else " here; no limit of its own"),
            "Vocabulary": wording.counted(facts.vocabulary_size, "piece"),
            **structure,
            "Sentence vector": _vector_in_words(model),
        }
    frame = pd.DataFrame(columns, index=list(dict.fromkeys(row for rows in columns.values() for row in rows))).fillna(
        "–"
    )
    return frame.rename_axis("property").reset_index()
